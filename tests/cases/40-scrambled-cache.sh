# A real engine says what the synthetic model's rule says, for every stock cache type; once
# its K cache is scrambled it says something else, within the 4 tokens of the suites.
# Without the second half the first would prove nothing.
# shellcheck shell=sh disable=SC2154

[ -n "${ENGINE_BIN-}" ] || prebuilt_engine
engine=$ENGINE_BIN/llama-completion
[ -x "$engine" ] || skip "no llama-completion in $ENGINE_BIN"
command -v "${CC:-cc}" >/dev/null || skip "no C compiler for the shim"
"${CC:-cc}" -std=c17 -D_GNU_SOURCE -O1 -shared -fPIC -o "$T/scramble_kv.so" \
	"$root/tests/fake/scramble_kv.c" -ldl || fail "the shim compiles"

prompt="Eliza local backend graph dispatch smoke."

# say TYPE OUT [VARIABLE=VALUE...]: one greedy run of 16 tokens.  The engine's last words
# are two newlines.  On a busy machine it sometimes exits 0 before its log thread has
# written all of its text, so an unfinished text is asked for again.
say() {
	_type=$1 _out=$2 _try=0
	shift 2
	while [ "$_try" -lt 5 ]; do
		_try=$((_try + 1))
		env "$@" "$engine" -m "$MODEL" -p "$prompt" -n 16 --temp 0 --seed 42 -t 1 \
			--ignore-eos -no-cnv --no-display-prompt --cache-type-k "$_type" \
			</dev/null >"$_out.raw" 2>"$_out.log"
		status 0 $? "the engine with $_type ($_out.log)"
		[ "$(tail -c 2 "$_out.raw" | tr '\n' n)" != nn ] || break
	done
	tr -d '\n' <"$_out.raw" >"$_out"
}
# first FILE: what a suite of 4 tokens sees
first() { head -c 4 "$1"; }

"$bin/make-model" --expect "$prompt" --tokens 16 >"$T/expected.raw" || fail "make-model --expect"
tr -d '\n' <"$T/expected.raw" >"$T/expected"
[ "$(wc -c <"$T/expected")" -eq 16 ] || fail "16 characters are expected"

for head in 128 256; do
	model "$head"
	for type in f16 q8_0; do
		say "$type" "$T/plain"
		cmp -s "$T/expected" "$T/plain" ||
			fail "$head $type: \"$(cat "$T/plain")\" instead of \"$(cat "$T/expected")\""
		say "$type" "$T/copied" LD_PRELOAD="$T/scramble_kv.so" SCRAMBLE_KV=copy
		grep -q '^scramble_kv: 0 K rows moved' "$T/copied.log" || fail "the control ran"
		cmp -s "$T/expected" "$T/copied" ||
			fail "$head $type: taking the cache out and putting it back changes the text"
		say "$type" "$T/scrambled" LD_PRELOAD="$T/scramble_kv.so"
		grep -q '^scramble_kv: [1-9][0-9]* K rows moved' "$T/scrambled.log" ||
			fail "K rows were moved"
		[ "$(wc -c <"$T/scrambled")" -ge 4 ] || fail "the scrambled engine said too little"
		[ "$(first "$T/expected")" != "$(first "$T/scrambled")" ] ||
			fail "$head $type: 4 tokens do not show the scrambled cache"
	done
	for type in q5_1 q5_0 q4_1 q4_0 iq4_nl; do
		say "$type" "$T/plain"
		cmp -s "$T/expected" "$T/plain" || fail "$head $type: \"$(cat "$T/plain")\""
	done
done
