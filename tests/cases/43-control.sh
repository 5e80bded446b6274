# A real engine on the CPU: the divergence of every stock cache type from f16 stays below the
# suite's ceiling, and above it once our library has put K rows into wrong cells.  Without
# the second half the first would prove nothing.
# shellcheck shell=sh disable=SC2154

[ -n "${ENGINE_BIN-}" ] || prebuilt_engine
tool=$ENGINE_BIN/llama-perplexity
[ -x "$tool" ] || skip "no llama-perplexity in $ENGINE_BIN"
linger=$bin/preload/linger.so scramble=$bin/preload/scramble.so
suite=$root/fixtures/suites/llama.cpp.json
text=$(field "$suite" control.text)

# engine LIBRARIES WORD...: one run into $T/log, again when it lost its end
engine() {
	_libs=$1 _try=0
	shift
	while [ "$_try" -lt 5 ]; do
		_try=$((_try + 1))
		LD_PRELOAD=$_libs "$tool" -m "$MODEL" -c 128 -b 128 -ub 128 -ngl 0 -t 1 --no-mmap --fit off \
			--kl-divergence-base "$T/base.kl" "$@" </dev/null >"$T/log" 2>&1
		status 0 $? "llama-perplexity $*"
		! grep -q '^Same top p\|Final estimate' "$T/log" || break
	done
}
mean() { sed -n 's/^Mean    KLD: *\([-0-9.naif]*\).*/\1/p' "$T/log"; }
# above A B
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 > b + 0) }'; }

for head in 64 128 256; do
	model "$head"
	engine "$linger" -p "$text" --chunks 3 --cache-type-k f16
	has "$T/log" "saving all logits" "Final estimate"
	for type in f16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl; do
		ceiling=$(query "json_extract(g.value, '\$.klCeiling')" "$suite" \
			"json_each(f.j, '\$.families') g where json_extract(g.value, '\$.name') = '$type'")
		engine "$linger" --kl-divergence --cache-type-k "$type"
		honest=$(mean)
		[ -n "$honest" ] || fail "$head $type: no number"
		! above "$honest" "$ceiling" || fail "$head $type: $honest is above $ceiling"
		engine "$linger:$scramble" --kl-divergence --cache-type-k "$type"
		has "$T/log" "writes to the K cache were moved"
		above "$(mean)" "$ceiling" || fail "$head $type: scrambled, $(mean) is not above $ceiling"
	done
done
