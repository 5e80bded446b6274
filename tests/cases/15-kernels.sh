# The harness of kernels as its users run it: the processor, the CUDA and HIP sources played on
# it, Vulkan on a software device; and what all of them say when there is no device.
# shellcheck shell=sh disable=SC2154

verify() { _p=$1; shift; timeout --foreground "$limit" "$bin/$_p-verify" "$@"; }

# Everything that this processor can do.
verify cpu --device all --json >"$T/cpu.json" 2>"$T/err"; status 0 $? "cpu-verify --device all: $(cat "$T/err")"
equal pass "$(field "$T/cpu.json" outcome)" "cpu-verify's outcome"
equal cpu-ref "$(query "json_extract(r.value, '\$.backend')" "$T/cpu.json" "json_each(f.j, '\$.reports') r where json_extract(r.value, '\$.device.arch') = 'scalar'")" \
	"the scalar truth is called"
equal 0 "$(query "count(*)" "$T/cpu.json" "json_tree(f.j) t where t.key = 'outcome' and t.value <> 'pass'")" "other outcomes than pass"
[ "$(query "count(*)" "$T/cpu.json" "json_each(f.j, '\$.reports[0].checks')")" -ge 14 ] || fail "fewer than 14 checks"

# What the agent asks for: one check for each name, nothing else.
agent cpu-verify --json --tolerance 0.001 --only turbo3,polar_preht_qjl,fused_attn_qjl_tbq_causal >"$T/gate.json" 2>"$T/err"
status 0 $? "verify-agent cpu-verify: $(cat "$T/err")"
equal "turbo3 polar_preht_qjl fused_attn_qjl_tbq_causal" \
	"$(query "group_concat(json_extract(c.value, '\$.name'), ' ')" "$T/gate.json" "json_each(f.j, '\$.checks') c")" "checks of the gate"
equal "2 2" "$(query "count(*) || ' ' || sum(json_extract(c.value, '\$.caught'))" "$T/gate.json" "json_each(f.j, '\$.controls') c")" \
	"planted errors, caught"

# A file of one's own, and files that are wrong.
fixtures=$root/fixtures/kernels
verify cpu --fixture "$fixtures/turbo4.json" "$fixtures/polar.json" >"$T/out" 2>&1; status 0 $? "--fixture: $(cat "$T/out")"
has "$T/out" turbo4 "polar_preht[polar]" "0 failed, 0 blocked"
sed 's/"n_kv": 8/"n_kv": 8, "n_kv": 8/' "$fixtures/turbo4.json" >"$T/twice.json"
sed 's/"block_bytes": 18/"block_bytes": 66/' "$fixtures/turbo4.json" >"$T/old.json"
sed 's/"q": \[/"q": [1e999,/' "$fixtures/turbo4.json" >"$T/infinite.json"
sed 's/"kernel": "turbo4"/"kernel": "turbo9"/' "$fixtures/turbo4.json" >"$T/unknown.json"
sed '/"n_kv"/d' "$fixtures/turbo4.json" >"$T/missing.json"
: >"$T/empty.json"
for f in twice old infinite unknown missing empty none; do
	verify cpu --fixture "$T/$f.json" >"$T/out" 2>&1; status 2 $? "$f.json: $(cat "$T/out")"
	has "$T/out" blocked
done
# the first expected score moved by two thousandths
awk '/"expected_scores"/ { match($0, /\[[^,]*/); v = substr($0, RSTART + 1, RLENGTH - 1)
	sub(/\[[^,]*/, "[" sprintf("%.7g", v + 0.002)) } { print }' "$fixtures/turbo4.json" >"$T/moved.json"
verify cpu --fixture "$T/moved.json" --json >"$T/out" 2>&1; status 1 $? "an expected score that is 0.002 off"
verify cpu --fixture "$T/moved.json" --tolerance 0.0021 >"$T/out" 2>&1; status 0 $? "the same within 0.0021: $(cat "$T/out")"

# Planted errors, a little of the exhaustive comparison, and one benchmark.
verify cpu --negative-control >"$T/out" 2>&1; status 0 $? "--negative-control"
lacks "$T/out" MISSED
verify cpu --exhaustive 20000 --json >"$T/out" 2>"$T/err"; status 0 $? "--exhaustive: $(cat "$T/err")"
equal "8 0" "$(query "count(*) || ' ' || sum(json_extract(r.value, '\$.bad'))" "$T/out" "json_each(f.j, '\$.exhaustive.rows') r")" \
	"score kernels, bad scores"
verify cpu --bench --only turbo3 --gqa 8 --keys 256 --json >"$T/out" 2>"$T/err"; status 0 $? "--bench: $(cat "$T/err")"
equal "$((8 * 256 * 56 + 4 * 64 * 256))" "$(field "$T/out" 'bench.rows[0].movedBytes')" "moved bytes"

# Ctrl-C keeps what was done.
"$bin/cpu-verify" --exhaustive --only turbo3 --json >"$T/out" 2>"$T/err" &
pid=$!
sleep 2
kill -TERM $pid
wait $pid; status 6 $? "a run that was stopped"
equal incomplete "$(field "$T/out" 'exhaustive.rows[0].outcome')" "its outcome"

# The sources of CUDA and HIP kernels at 32 and 64 lanes, played.
verify emulated --list >"$T/list" 2>&1; status 0 $? "emulated-verify --list: $(cat "$T/list")"
verify emulated --device all --properties none >"$T/out" 2>&1; status 0 $? "emulated-verify --device all: $(tail -n 3 "$T/out")"
has "$T/out" ", emulated"
verify emulated --device all --only turbo3,qjl,fused_attn_qjl_polar --properties quick >"$T/out" 2>&1
status 0 $? "properties, played: $(tail -n 3 "$T/out")"
equal 2 "$(grep -c '^properties, seed 1, quick' "$T/out")" "waves with properties"

# A software device is used when it is allowed only.
verify vulkan --list --json >"$T/out" 2>"$T/err"
case $? in
0)	if [ "$(query "count(*)" "$T/out" "json_each(f.j, '\$.devices') d where json_extract(d.value, '\$.software') = 0")" -eq 0 ]; then
		verify vulkan >"$T/out" 2>"$T/err"; status 3 $? "vulkan-verify on software"
		has "$T/err" "is software" "hint: --software"
	fi
	verify vulkan --software --properties none >"$T/out" 2>"$T/err"
	status 0 $? "vulkan-verify --software: $(tail -n 3 "$T/out") $(cat "$T/err")"
	has "$T/out" "turbo3[rows-8]" "polar_preht[polar]" "0 failed, 0 blocked: pass"
	verify vulkan --software --only 'qjl[*],polar,fused_attn_qjl_tbq_causal' --properties quick >"$T/out" 2>"$T/err"
	status 0 $? "properties on software: $(tail -n 3 "$T/out") $(cat "$T/err")"
	has "$T/out" "qjl[rows-1]" "properties, seed 1" "0 failed, 0 blocked: pass" ;;
3)	has "$T/err" "there is no device here" "hint: "
	echo "    skipped: Vulkan has no device here" ;;
*)	fail "vulkan-verify --list: $(cat "$T/err")" ;;
esac

# No device is exit 3 with a hint, in each program and in the agent.
for b in cuda hip; do
	for words in "" --list --json --bench "--device 0" "--device all"; do
		# shellcheck disable=SC2086
		verify $b $words >"$T/out" 2>"$T/err"
		rc=$?
		[ $rc -ne 0 ] || continue # this machine has one
		status 3 $rc "$b-verify $words"
		has "$T/err" "there is no device here" "hint: "
	done
	verify $b --help >"$T/out" 2>&1; status 0 $? "$b-verify --help"
	has "$T/out" "usage: $b-verify"
	agent $b-verify --help >"$T/out2" 2>&1; status 0 $? "verify-agent $b-verify --help"
	cmp -s "$T/out" "$T/out2" || fail "$b-verify --help differs in the agent"
done
