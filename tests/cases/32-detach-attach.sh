# Ctrl-C once leaves, twice cancels; a controller that is killed loses nothing; two of them
# on one ledger get on.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
cat >"$T/agent.conf" <<'END'
[http]
heartbeat_s = 1
[jobs]
cancel_grace_s = 1
END
building
start_agent --config "$T/agent.conf"
fake_engine "$T/src"
stored() { controller runs --json >"$T/stored"; query "json_array_length(j)" "$T/stored"; }
# The controller itself in the background, so that signals meet it and nothing else.
# shellcheck disable=SC2086
begin() { "$bin/verify-controller" "$@" >"$T/out" 2>"$T/err" & pid=$!; }
id_of() { find "$XDG_DATA_HOME/verify/pending" -name '*.json' 2>/dev/null | sed 's,.*/,,; s/\.json$//'; }
pended() { [ -n "$(id_of)" ]; }
dead() { ! kill -0 "$pid" 2>/dev/null; }

# Once: it leaves after two seconds, says how to come back, and the job goes on.
begin run lab --suite llama.cpp --only build --source "$T/src"
wait_for 30 test -e "$T/building" || fail "the build did not start: $(cat "$T/out" "$T/err")"
kill -INT $pid
wait_for 10 dead || fail "Ctrl-C does not detach"
wait $pid
status 6 $? "left by Ctrl-C: $(cat "$T/err")"
has "$T/out" "the job goes on"
has "$T/err" "verify-controller attach"
id=$(id_of)
[ ${#id} -eq 32 ] || fail "no pending job: $(ls "$XDG_DATA_HOME/verify/pending")"
phase "$id" running || fail "the job does not go on"
controller logs "$id" build >"$T/log" 2>"$T/err" || fail "logs of a job that runs: $(cat "$T/err")"
has "$T/log" cmake
: >"$T/go"
controller attach >"$T/out" 2>"$T/err"
status 7 $? "attach: $(cat "$T/err")"
has "$T/out" "not_asked"
equal 1 "$(stored)" "stored after attach"
pended && fail "still pending: $(id_of)"

# Twice: the job is cancelled, and the report of what was done comes in.
rm -f "$T/go" "$T/building"
echo "/* another tree */" >>"$T/src/include/llama.h"
begin run lab --suite llama.cpp --only build --source "$T/src"
wait_for 30 test -e "$T/building" || fail "the second build did not start"
kill -INT $pid
sleep 0.5
kill -INT $pid
wait_for 20 dead || fail "twice does not end it"
wait $pid
status 6 $? "cancelled: $(cat "$T/err")"
has "$T/out" cancelling "INCOMPLETE cancelled" "graph-smoke/q8_0"
equal 2 "$(stored)" "stored after cancel"
equal "incomplete cancelled" "$(query "json_extract(j, '\$[0].outcome') || ' ' || json_extract(j, '\$[0].reasonCode')" "$T/stored")" "the newest run"
wait_for 5 gone "$T/src/wait.sh" || fail "the build goes on after the cancel"

# `cancel` from another terminal; and the first one sees it.
rm -f "$T/building"
echo "/* a third tree */" >>"$T/src/include/llama.h"
begin run lab --suite llama.cpp --only build --source "$T/src"
wait_for 30 test -e "$T/building" || fail "the third build did not start"
controller cancel "$(id_of)" >"$T/out2" 2>&1; status 0 $? "cancel: $(cat "$T/out2")"
wait_for 20 dead || fail "run does not see the cancel"
wait $pid
status 6 $? "run of a cancelled job"
equal 3 "$(stored)" "stored after the second cancel"

# kill -9 while the job runs; the next attach completes it.
stop_agent
prebuilt_engine
start_agent --config "$T/agent.conf"
begin run lab --suite llama.cpp --model "$MODEL" --prebuilt "$ENGINE_BIN"
wait_for 30 grep -q 'graph-smoke/f16: started' "$T/out" || fail "the smoke did not start"
kill -9 $pid; wait $pid 2>/dev/null
id=$(id_of)
[ ${#id} -eq 32 ] || fail "a killed controller forgets its job"
# and kill -9 while it pulls: the agent stands still in the middle of it
wait_for 60 phase "$id" 'done' || fail "the job does not end without a controller"
"$bin/verify-controller" attach --json "$id" >"$T/out" 2>"$T/err" & pid=$!
wait_for 20 sh -c "find '$XDG_DATA_HOME/verify/incoming/$id' -type f 2>/dev/null | grep -q ." && {
	kill -STOP "$agent_pid"
	kill -9 $pid
}
wait $pid 2>/dev/null
kill -CONT "$agent_pid"
had=$(stored)
controller attach "$id" >"$T/out" 2>"$T/err"
status 7 $? "attach after a kill in the pull: $(cat "$T/err")"
[ "$had" -eq 3 ] || [ "$had" -eq 4 ] || fail "$had runs after a kill"
equal 4 "$(stored)" "stored once, however often it was brought in"
pended && fail "still pending: $(id_of)"
controller ledger verify >"$T/out2" 2>&1; status 0 $? "ledger verify: $(cat "$T/out2")"

# Two controllers on one ledger, and two on one job.
"$bin/verify-controller" run lab --only probe >"$T/out1" 2>"$T/err1" & one=$!
"$bin/verify-controller" run lab --only fixtures >"$T/out2" 2>"$T/err2" & two=$!
wait $one; status 7 $? "the first of two: $(cat "$T/err1")"
wait $two; status 7 $? "the second of two: $(cat "$T/err2")"
equal 6 "$(stored)" "stored by two at once"
controller run lab --only probe --detach >"$T/out" 2>"$T/err"; status 0 $? "run --detach"
id=$(id_of)
"$bin/verify-controller" attach "$id" >"$T/out1" 2>"$T/err1" & one=$!
"$bin/verify-controller" attach "$id" >"$T/out2" 2>"$T/err2" & two=$!
wait $one; status 7 $? "the first attach: $(cat "$T/err1")"
wait $two; status 7 $? "the second attach: $(cat "$T/err2")"
equal 7 "$(stored)" "one job brought in by two"
controller ledger verify >"$T/out2" 2>&1; status 0 $? "ledger verify at the end: $(cat "$T/out2")"
