# A device's driver, or a program of the engine, that hangs, floods or dies in the middle of a
# lane on a recorded machine: its gate says so within its deadline, whatever was printed before,
# the other gates stand, and nothing is left running.
[ -f "$bin/machine/libcuda.so.1" ] || skip "the stand-in libraries are not built: make machines"
[ "$(uname -m)" = x86_64 ] || skip "the recorded machine is an x86-64 host"
for tool in cmake ninja cc c++ git; do
	command -v $tool >/dev/null || skip "no $tool"
done
machine=$T/machines/h200
mkdir -p "$T/tools" "$T/machines"
for tool in nvidia-smi nvcc; do cp "$root/tests/fake/tool" "$T/tools/$tool"; done
cp -r "$root/tests/fake/engine" "$T/engine"
cp -r "$root/fixtures/machines/h200" "$machine"
# the rows of the recorded engine name their files from the machine's folder
cp -r "$root/fixtures/logs" "$root/fixtures/probes" "$T/"
model
# the deadlines of one run of the engine, and of one op's test
printf '[work]\nsmoke_timeout_s = 4\nfixture_timeout_s = 12\nlog_cap_bytes = 1048576\n' >"$T/agent.conf"

# engine NAME PROGRAM [WORD HOW]...: the recorded engine, but the answer to that word ends so
engine() {
	_dir=$machine/$1 _program=$2
	mkdir "$_dir"
	cp "$machine/engine/answers.tsv" "$_dir/answers.tsv"
	shift 2
	while [ $# -gt 0 ]; do
		awk -F '\t' -v OFS='\t' -v p="$_program" -v w="$1" -v how="$2" \
			'$1 == p && index($2, w) { $4 = how; n++ } { print } END { exit n != 1 }' \
			"$_dir/answers.tsv" >"$T/rows" || fail "no row of $1"
		cp "$T/rows" "$_dir/answers.tsv"
		shift 2
	done
}
# play COMMAND...: on the machine; the agent must be the process itself
play() { exec env VERIFY_MACHINE="$machine" LD_LIBRARY_PATH="$bin/machine" PATH="$T/tools:$PATH" "$@"; }
# left: what a run must not leave
left() { pgrep -f "$T/.*(llama-completion|test-backend-ops)|probe nvml --device GPU-0000d200" >/dev/null; }
# lane NAME SECONDS NAME=VALUE... -- OPTION...: within those seconds; $r is its report
lane() {
	name=$1 r=$T/$1.json _limit=$2
	shift 2
	_set=
	while [ "$1" != -- ]; do _set="$_set $1"; shift; done
	shift
	_from=$(date +%s)
	# shellcheck disable=SC2086
	(play $_set timeout 240 "$bin/verify-agent" run cuda --suite llama.cpp --source "$T/engine" --model "$MODEL" \
		--config "$T/agent.conf" --state "$T/state" --log-dir "$T/$name" --report "$r" "$@" >"$T/$name.out" 2>&1)
	code=$?
	[ $(($(date +%s) - _from)) -le "$_limit" ] || fail "$name: it took more than $_limit seconds"
	! left || fail "$name: something is left running"
	[ -f "$r" ] || { fail "$name: no report (exit $code)"; return 1; }
	equal "1 0" "$(field "$r" simulated) $(field "$r" passRecordable)" "$name: simulated, not recordable"
	lacks "$T/$name.out" "RECORDABLE PASS"
}
# gate WANTED GATE [TEXT]: outcome and reason, and what its line says
gate() {
	equal "$1" "$(outcome "$r" "$2")" "$name: $2"
	[ -z "${3-}" ] || grep -F " $2 " "$T/$name.out" | grep -qF -- "$3" || fail "$name: $2 does not say \"$3\""
}

# The engine prints all of a good run, and then it is none.
engine engine-smoke llama-completion q8_0 hang q5_1 sig11 q5_0 flood
if lane smoke 150 VERIFY_ENGINE=engine-smoke -- --only smoke --set cacheTypes=q8_0,q5_1,q5_0; then
	status 1 "$code" "engines that die are a fail"
	gate "incomplete timeout" graph-smoke/q8_0 "time limit"
	gate "fail engine_crash" graph-smoke/q5_1 "signal 11"
	# all that proves the run came before its first token is kept, and how much was cut out is said
	gate "pass none" graph-smoke/q5_0 "bytes of log cut out"
	gate "blocked depends_on" control/q8_0
	size=$(wc -c <"$T/smoke/linux-x64-cuda-q5_0-q5_0.log")
	[ "$size" -lt 2097152 ] || fail "a flood of 24 MB became a log of $size bytes"
fi

# The engine's own test of an op.
for row in "hang incomplete timeout" "sig9 fail engine_crash" "flood blocked unknown_tool_format"; do
	how=${row%% *}
	engine "ops-$how" test-backend-ops SET_ROWS "$how"
	lane "ops-$how" 120 "VERIFY_ENGINE=ops-$how" -- --set cacheTypes=f16 || continue
	gate "${row#* }" op-parity
	gate "pass none" graph-smoke/f16
done

# The driver is well until an engine runs: the look at the device after it gets no answer.
for row in "crash 60 signal" "flood 60 more_than_is_kept" "hang 100 in_time"; do
	fault=${row%% *}
	_words=${row#* }
	lane "look-$fault" "${_words%% *}" VERIFY_FAULT="$fault" \
		VERIFY_FAULT_WHEN="$T/look-$fault/linux-x64-cuda-f16-f16.out" -- --only smoke --set cacheTypes=f16 || continue
	status 6 "$code" "$name"
	gate "pass none" device
	gate "incomplete device_changed" graph-smoke/f16 "$(echo "${_words#* }" | tr _ ' ')"
done

# A tool of the toolchain, after the device was found well.
cp "$root/tests/fake/tool" "$T/tools/ninja"
printf 'ninja\t--version\tnvcc-version.txt\thang\tstdout\n' >>"$machine/tools.tsv"
if lane ninja-hangs 90 NO=1 -- --only build; then
	status 3 "$code" "$name"
	gate "pass none" device
	gate "blocked tool_broken" toolchain
	gate "blocked depends_on" build
fi
rm "$T/tools/ninja"

# begin NAME NAME=VALUE...: a run of two families in the background
begin() {
	name=$1 r=$T/$1.json
	shift
	(play "$@" "$bin/verify-agent" run cuda --suite llama.cpp --source "$T/engine" --model "$MODEL" --state "$T/state" \
		--only smoke --set cacheTypes=f16,q8_0 --log-dir "$T/$name" --report "$r" >"$T/$name.out" 2>&1) &
	pid=$!
}
# stop SECONDS: within which the run ends by Ctrl-C, as one that was cancelled
stop() {
	kill -INT $pid
	_from=$(date +%s)
	wait $pid
	status 6 $? "$name: a run that was stopped"
	[ $(($(date +%s) - _from)) -le "$1" ] || fail "$name: stopping took long"
	! left || fail "$name: something is left running"
	gate "incomplete cancelled" graph-smoke/f16
}

# Whoever waits for such a driver may stop the run.
begin drop VERIFY_FAULT=hang VERIFY_FAULT_WHEN="$T/drop/linux-x64-cuda-f16-f16.out"
# two looks at the device: before the engine, and the one that hangs
looks() { [ "$(grep -c '"probe","nvml"' "$T/drop/linux-x64-cuda-f16-f16.log")" -ge 2 ]; }
wait_for 60 looks || fail "the engine was not run"
stop 15

# Whoever waits for an engine that never ends may stop the run.
engine engine-hang llama-completion f16 hang
begin stop VERIFY_ENGINE=engine-hang
wait_for 60 test -e "$T/stop/linux-x64-cuda-f16-f16.out" || fail "the engine did not start"
stop 20
[ "$(outcome "$r" graph-smoke/q8_0)" != "pass none" ] || fail "a family after the stop passes"
