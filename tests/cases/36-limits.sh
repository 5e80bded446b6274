# Limits of the configuration hold: one engine run that stands still, a log that is too
# long, a build that takes too long; and jobs wait for each other.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
cat >"$T/agent.conf" <<'END'
[jobs]
max_queue = 1
[work]
smoke_timeout_s = 12
log_cap_bytes = 65536
END
start_agent --config "$T/agent.conf"

# An engine that stands still is ended with all its children; the others still run.
id=00000000000000000000000000000361
equal 201 "$(submit $id '"only":"smoke"' "\"prebuilt\":\"$ENGINE_BIN\"" "\"model\":\"$MODEL\"" '"overrides":{"cacheTypes":"f16 q8_0","tokens":"600"}')" submit
engine=
find_engine() { engine=$(pgrep -f "llama-completion -m $MODEL .*--cache-type-k f16") && [ -n "$engine" ]; }
wait_for 60 find_engine || fail "no engine runs"
# shellcheck disable=SC2086
kill -STOP $engine || fail "the engine was too quick"
# One job at a time per device, one may wait here, a third is told to come again.
equal 201 "$(submit 00000000000000000000000000000362 '"only":"probe"')" "a second job"
ask /v1/jobs/00000000000000000000000000000362 >"$T/state.json"
equal queued "$(field "$T/state.json" state)" "the second job waits"
equal 503 "$(submit 00000000000000000000000000000363 '"only":"probe"')" "a third job"
has "$T/body" busy "submit the same job again"
wait_for 90 phase $id 'done' || fail "an engine that stands still is not ended"
ask "/v1/jobs/$id/artifacts/report.json" >"$T/r.json"
equal "incomplete timeout" "$(outcome "$T/r.json" graph-smoke/f16)" "the engine that stood still"
equal "pass none" "$(outcome "$T/r.json" graph-smoke/q8_0)" "the engine after that"
equal "incomplete 6" "$(field "$T/r.json" outcome) $(field "$T/r.json" exitCode)" "the run"
wait_for 5 gone "llama-completion -m $MODEL" || fail "an engine is left"
wait_for 60 phase 00000000000000000000000000000362 'done' || fail "the job that waited"

# The log of 600 tokens is longer than 64 KiB: head and tail are kept, and the count.
equal 1 "$(query "json_extract(a.value, '\$.truncated')" "$T/r.json" "json_each(f.j, '\$.artifacts') a where json_extract(a.value, '\$.name') like '%q8_0-q8_0.log'")" "the long log is marked"
log=$(find "$state/spool/$id" -name '*q8_0-q8_0.log')
bytes=$(wc -c <"$log")
[ "$bytes" -lt 140000 ] || fail "the log has $bytes bytes"
dropped=$(query "json_extract(s.value, '\$.logBytesDropped')" "$T/r.json" "json_each(f.j, '\$.smokes') s where json_extract(s.value, '\$.family') = 'q8_0'")
[ "$dropped" -gt 50000 ] || fail "dropped $dropped bytes"
# and the controller comes to the same verdict from what is left
stop_agent
start_agent --config "$T/agent.conf"
controller run lab --suite llama.cpp --only smoke --model "$MODEL" --prebuilt "$ENGINE_BIN" --set cacheTypes=q8_0 --set tokens=600 >"$T/out" 2>"$T/err"
status 7 $? "a cut log: $(cat "$T/err")"
lacks "$T/out" DISAGREEMENT
has "$T/out" "600/600"
