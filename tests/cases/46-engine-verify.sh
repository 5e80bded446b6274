# engine-verify and the Vulkan dispatch smoke, with a real engine that has none of the ops: it
# links, runs and says so; libraries that can not be trusted are refused before that.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
bundle=$(HOME=$user_home XDG_CACHE_HOME=${cache%/verify} "$root/deploy/fetch-engine" 2>"$T/err") ||
	skip "the engine's headers can not be fetched here"
stock=$T/stock
mkdir -p "$stock"
if ! git init -q --bare "$T/git" || ! git -C "$T/git" fetch -q "$bundle" HEAD ||
	! git -C "$T/git" archive -o "$T/src.tar" FETCH_HEAD CMakeLists.txt include ggml/include ||
	! tar -xf "$T/src.tar" -C "$stock"; then
	fail "the bundle of the engine is not readable"
fi

# ---- the program, as the gate compiles it, but without a warning ----
(cd "$root" && "${CC:-cc}" -std=c17 -D_GNU_SOURCE -O1 -ffp-contract=off -Wall -Wextra -Wshadow -Wpedantic -Werror \
	-I. -I"$stock/ggml/include" -o "$T/engine-verify" kernels/engine_verify.c kernels/ref.c kernels/ref_math.c \
	kernels/table.c "$ENGINE_BIN"/libggml.*.so "$ENGINE_BIN/libggml-base.so" "-Wl,-rpath,$ENGINE_BIN" -lm) ||
	fail "engine-verify compiles against a stock engine"
"$T/engine-verify" --device CPU --backends "$ENGINE_BIN" >"$T/out" 2>"$T/err"
status 3 $? "a stock engine"
equal 6 "$(grep -c '^\[engine-verify\] MISSING GGML_OP_ATTN_SCORE_' "$T/out")" "routes that are not there"
has "$T/out" "[engine-verify] device=" "[engine-verify] backend=CPU registry=CPU id=" \
	"MISSING GGML_OP_ATTN_SCORE_POLAR/use_qjl=1: the engine has no function ggml_attn_score_polar" \
	"FAIL engine suite: 0 of 6 graph routes right, 0 not supported, 6 not in the engine"
lacks "$T/out" PASS
"$T/engine-verify" --device CUDA7 --backends "$ENGINE_BIN" >"$T/out" 2>"$T/err"
status 3 $? "no such device"
has "$T/out" "NODEVICE CUDA7" "note there is CPU"
"$T/engine-verify" >"$T/out" 2>"$T/err"; status 2 $? "no device named"
"$T/engine-verify" --device >"$T/out" 2>"$T/err"; status 2 $? "an option without its word"

# ---- the smoke: which engine, and is it that of the source? ----
smoke() { timeout 240 "$bin/verify-agent" vulkan-dispatch-smoke --log-dir "$T/logs" "$@" >"$T/out" 2>"$T/err"; }
smoke; status 3 $? "no library anywhere"
has "$T/out" "managed output: $ELIZA_STATE_DIR/local-inference/bin/mtp/linux-" "build tree: none"
has "$T/err" "there is no libggml-vulkan.so"
ELIZA_MTP_LLAMA_DIR=$stock smoke; status 3 $? "a source without a build"
has "$T/out" "build tree: $stock/build/linux-" "(no libggml-vulkan.so)"
ELIZA_MTP_TARGET=linux-x64-cuda smoke; status 2 $? "a target of another lane"
smoke --nonsense; status 2 $? "an unknown option"

# A build tree whose Vulkan library is none: everything before the device is decided.
target=$(sed -n 's/.*mtp\/\(linux-[a-z0-9]*-vulkan\).*/\1/p' "$T/out" | head -n 1)
tree=$stock/build/${target:-linux-x64-vulkan}/bin
mkdir -p "$tree"
cp "$ENGINE_BIN"/lib*.so "$tree/"
: >"$tree/libggml-vulkan.so"
export ELIZA_MTP_LLAMA_DIR="$stock"
touch -d 2020-01-01 "$tree/libggml-vulkan.so"
smoke; status 3 $? "a library that is older than the source"
has "$T/err" "blocked stale_binary" "libggml-vulkan.so is older than $stock/ggml/include/"
touch "$tree"/lib*.so
smoke; status 3 $? "an engine without Vulkan"
has "$T/err" "blocked backend_not_present"
has "$T/out" "[vulkan_dispatch_smoke] NODEVICE Vulkan0" "log=$T/logs/vulkan-dispatch-smoke-2"
# always linked anew: the log of each has its own compiler run
equal 1 "$(grep -c '^#verify .* run .*engine_verify.c' "$(sed -n 's/.*log=//p' "$T/out")")" "compilations"
# what was written down at the build decides before the age does
sed "s/\"target\": \"[^\"]*\"/\"target\": \"linux-riscv-cuda\"/" "$ENGINE_BIN/CAPABILITIES.json" >"$tree/CAPABILITIES.json"
cp "$ENGINE_BIN/llama-completion" "$tree/"
smoke; status 3 $? "an engine for another target"
has "$T/err" "is for linux-riscv-cuda"
rm "$tree/CAPABILITIES.json"
# without headers the library's own names say it
unset ELIZA_MTP_LLAMA_DIR
smoke --dir "$tree"; status 3 $? "no headers"
has "$T/err" "blocked op_not_in_engine" "has no ggml_attn_score function"
printf ggml_attn_score_qjl >>"$tree/libggml-base.so"
smoke --dir "$tree"; status 3 $? "an engine that has such a name, and no headers"
has "$T/err" "blocked tool_missing" "the headers of the engine" "ELIZA_MTP_LLAMA_DIR"
rm "$tree"/libggml-base.so
smoke --dir "$tree"; status 3 $? "an engine that is not shared"
has "$T/err" "-DBUILD_SHARED_LIBS=ON"
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'vulkan-dispatch.*' -newer "$T/src.tar")" ] ||
	fail "no folder is left behind"
