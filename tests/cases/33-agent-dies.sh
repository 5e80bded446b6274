# kill -9 of the agent in the build and in the smoke: at its next start the job is
# incomplete agent_died, with a signed report that says where; what had passed stays.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
fake_engine "$T/src"
building
start_agent
key=$(sha256sum <"$state/key.pem")

# died GATE: the job $id after the agent's next start
died() {
	kill_agent
	start_agent
	wait_for 60 phase "$id" 'done' || fail "the job of a dead agent does not end"
	ask "/v1/jobs/$id" >"$T/state.json"
	equal "incomplete agent_died 6" "$(field "$T/state.json" outcome) $(field "$T/state.json" reasonCode) $(field "$T/state.json" exitCode)" "state after a kill in $1"
	ask "/v1/jobs/$id/artifacts/report.json" >"$T/r.json"
	equal "incomplete agent_died" "$(outcome "$T/r.json" "$1")" "$1 in the report"
	equal "incomplete 6 0" "$(field "$T/r.json" outcome) $(field "$T/r.json" exitCode) $(field "$T/r.json" passRecordable)" "the report"
	equal "pass none" "$(outcome "$T/r.json" toolchain)" "what had passed before"
	query "json_extract(g.value, '\$.detail')" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.name') = '$1'" >"$T/detail"
	# said by the next agent, or by the worker while it was told to end
	grep -q "cut off here\|stopped in this gate" "$T/detail" || fail "$1: $(cat "$T/detail")"
	equal "$key" "$(sha256sum <"$state/key.pem")" "the agent's key"
}

# In the build; a controller was there, lost it, and brings the end in.
"$bin/verify-controller" run lab --suite llama.cpp --source "$T/src" --model "$MODEL" >"$T/out" 2>"$T/err" & pid=$!
wait_for 30 test -e "$T/building" || fail "the build did not start: $(cat "$T/out" "$T/err")"
id=$(sed -n 's/.*"id":[[:space:]]*"\([0-9a-f]*\)".*/\1/p' "$state"/jobs/*.json | head -n 1)
kill -9 $pid; wait $pid 2>/dev/null # its agent will have another port
died build
wait_for 10 gone "$T/src/wait.sh" || fail "the build outlives its agent: $(pgrep -af "$T/src/wait.sh")"
equal "incomplete agent_died" "$(outcome "$T/r.json" graph-smoke/q8_0)" "what was not reached"
controller attach "$id" >"$T/out" 2>"$T/err"
status 6 $? "attach to the job of a dead agent: $(cat "$T/err")"
has "$T/out" "INCOMPLETE agent_died" "build"
lacks "$T/out" DISAGREEMENT
# The build that was cut off is done by the next job, in the same cache.
: >"$T/go"
controller run lab --suite llama.cpp --only build --source "$T/src" >"$T/out" 2>"$T/err"
status 7 $? "the same build after that: $(cat "$T/err")"
has "$T/out" "built llama-completion"

# In the smoke: a real engine that stands still.
stop_agent
prebuilt_engine
start_agent
id=0000000000000000000000000000d1ed
equal 201 "$(submit $id "\"prebuilt\":\"$ENGINE_BIN\"" "\"model\":\"$MODEL\"" '"overrides":{"tokens":"1500"}')" submit
engine=
find_engine() { engine=$(pgrep -f "llama-completion -m $MODEL") && [ -n "$engine" ]; }
wait_for 60 find_engine || fail "no engine runs"
# shellcheck disable=SC2086
kill -STOP $engine || fail "the engine was too quick"
died graph-smoke/f16
equal "pass none" "$(outcome "$T/r.json" fixtures)" "fixtures before the kill"
wait_for 10 gone "llama-completion -m $MODEL" || fail "the engine outlives its agent"
# What had ended keeps its log, with the digest that the report names.
query "json_extract(a.value, '\$.sha256') || '  ' || json_extract(a.value, '\$.name')" "$T/r.json" "json_each(f.j, '\$.artifacts') a" >"$T/sums"
[ "$(wc -l <"$T/sums")" -ge 5 ] || fail "only $(wc -l <"$T/sums") logs were kept"
(cd "$state/spool/$id" && sha256sum --quiet -c "$T/sums") || fail "digests of what was kept"
# The report is signed by the same key: the envelope's payload repeats the nonce.
equal 200 "$(code "/v1/jobs/$id/report")" "the report"
query "json_extract(j, '\$.payload')" "$T/body" | base64 -d >"$T/statement"
equal "$(printf %064d 7)" "$(field "$T/statement" predicate.nonce)" nonce
equal "$(field "$T/r.json" agent.keyId)" "$(field "$T/body" 'signatures[0].keyid')" "key of the signature"

# A worker alone that dies: the agent sees it at once.
id=0000000000000000000000000000d1ee
equal 201 "$(submit $id "\"prebuilt\":\"$ENGINE_BIN\"" "\"model\":\"$MODEL\"" '"overrides":{"tokens":"1500"}')" submit
wait_for 60 find_engine || fail "no engine runs"
# shellcheck disable=SC2086
kill -STOP $engine
worker=$(pgrep -f "work --state $state --job $id") || fail "no worker"
kill -9 "$worker"
wait_for 20 phase $id 'done' || fail "the job of a dead worker does not end"
ask "/v1/jobs/$id" >"$T/state.json"
equal "incomplete agent_died" "$(field "$T/state.json" outcome) $(field "$T/state.json" reasonCode)" "a dead worker"
wait_for 10 gone "llama-completion -m $MODEL" || fail "the engine outlives its worker"

# A stopped agent cancels what runs, and keeps what waits for its next start.
id=0000000000000000000000000000d1ef
stop_agent
building
start_agent
rm -f "$T/go" "$T/building"
echo "/* another tree */" >>"$T/src/include/llama.h"
equal 201 "$(submit $id '"only":"build"' "\"source\":\"$T/src\"")" submit
wait_for 30 test -e "$T/building" || fail "the build did not start"
waiting=0000000000000000000000000000d1f0
equal 201 "$(submit $waiting '"only":"probe"')" submit
stop_agent
start_agent
wait_for 30 phase $waiting 'done' || fail "a waiting job is lost by a restart"
ask "/v1/jobs/$id" >"$T/state.json"
equal "done incomplete cancelled" "$(field "$T/state.json" state) $(field "$T/state.json" outcome) $(field "$T/state.json" reasonCode)" "the job that ran when the agent was stopped"
ask "/v1/jobs/$waiting" >"$T/state.json"
equal "done skipped" "$(field "$T/state.json" state) $(field "$T/state.json" outcome)" "the job that waited"
