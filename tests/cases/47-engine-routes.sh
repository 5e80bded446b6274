# The six score routes in an engine that has them, on its CPU backend, and what an engine that
# is wrong looks like.  VERIFY_FORK names the source of such an engine (a llama.cpp tree with
# ggml_attn_score_*); its ggml is built once, in the cache.
# shellcheck shell=sh disable=SC2154

fork=${VERIFY_FORK-}
[ -n "$fork" ] || skip "no engine with the ops: VERIFY_FORK names none"
grep -q ggml_attn_score_qjl "$fork/ggml/include/ggml.h" || { fail "VERIFY_FORK has no ggml_attn_score_qjl"; exit 1; }
build=$cache/engine-verify-fork
{
	cmake -S "$fork" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DLLAMA_CURL=OFF &&
		nice ninja -C "$build" ggml
} >"$T/build.log" 2>&1 || { tail -n 3 "$T/build.log"; fail "the engine's ggml is built"; exit 1; }
(cd "$root" && "${CC:-cc}" -std=c17 -D_GNU_SOURCE -O2 -ffp-contract=off -Wall -Wextra -Wshadow -Wpedantic -Werror \
	-I. -I"$fork/ggml/include" -o "$T/engine-verify" kernels/engine_verify.c kernels/ref.c kernels/ref_math.c \
	kernels/table.c -L"$build/bin" -lggml -lggml-base "-Wl,-rpath,$build/bin" -lm) ||
	fail "engine-verify compiles against the engine"

"$T/engine-verify" --device CPU >"$T/out" 2>"$T/err"
status 0 $? "the engine's CPU backend: $(grep -v ' score ' "$T/out")"
equal 1716 "$(grep -c ' score ' "$T/out")" "scores"
for r in QJL TBQ/turbo3 TBQ/turbo4 TBQ/turbo3_tcq POLAR/use_qjl=0 POLAR/use_qjl=1; do
	has "$T/out" "[engine-verify] PASS GGML_OP_ATTN_SCORE_$r: 286 scores, max diff "
done
equal "[engine-verify] PASS engine suite: 6 graph routes" "$(tail -n 1 "$T/out")" "the last line"

# wrong WHAT C-TEXT: a library of these functions stands before the engine's
wrong() {
	printf '#include <dlfcn.h>\n#include <stddef.h>\n%s\n' "$2" >"$T/wrong.c"
	"${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -o "$T/wrong.so" "$T/wrong.c" || fail "$1 compiles"
	LD_PRELOAD=$T/wrong.so "$T/engine-verify" --device CPU >"$T/out" 2>"$T/err"
	status 1 $? "$1"
	has "$T/out" "FAIL engine suite: 0 of 6"
	lacks "$T/out" PASS
}
wrong "a score that is off by 0.002" '
void ggml_backend_tensor_get(const void *t, void *p, size_t at, size_t n)
{
	((void (*)(const void *, void *, size_t, size_t))dlsym(RTLD_NEXT, "ggml_backend_tensor_get"))(t, p, at, n);
	((float *)p)[3] += 0.002f;
}'
wrong "an engine that computes nothing" '
int ggml_backend_graph_compute(void *b, void *g) { (void)b; (void)g; return 0; }'
has "$T/out" "score plain 0 nan nan "
wrong "a bit of each key that gets lost" '
void ggml_backend_tensor_set(void *t, const void *p, size_t at, size_t n)
{
	static unsigned char copy[1 << 16];
	size_t i;

	for (i = 0; i < n && i < sizeof copy; i++)
		copy[i] = ((const unsigned char *)p)[i];
	/* keys are 2 heads of 8 tokens; queries and scores are of other sizes */
	if (n == 16 * 34 || n == 16 * 56 || n == 16 * 72 || n == 16 * 52 || n == 16 * 82)
		copy[n / 16 * 5 + 4] ^= 0x81;
	((void (*)(void *, const void *, size_t, size_t))dlsym(RTLD_NEXT, "ggml_backend_tensor_set"))(t, copy, at, n);
}'
