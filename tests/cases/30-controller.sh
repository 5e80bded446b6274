# The whole way: a controller asks, the agent runs a real prebuilt engine, the evidence is
# pulled, judged again, stored, and asked for in every way.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
start_agent
export TZ=UTC
controller run lab --suite llama.cpp --model "$MODEL" --prebuilt "$ENGINE_BIN" --json >"$T/run.json" 2>"$T/err"
status 7 $? "a run with a prebuilt engine: $(cat "$T/err")"
[ ! -s "$T/err" ] || fail "--json is quiet on stderr: $(cat "$T/err")"
# Nothing but JSON lines; the last is the result.
n=0
while IFS= read -r line; do
	n=$((n + 1))
	printf '%s' "$line" >"$T/line"
	equal 1 "$(query "json_valid(j)" "$T/line")" "line $n of --json"
done <"$T/run.json"
[ "$n" -gt 20 ] || fail "only $n lines"
tail -n 1 "$T/run.json" >"$T/result"
run=$(field "$T/result" run)
equal "result lab skipped prebuilt_engine 0 7 llama.cpp" "$(field "$T/result" type) $(field "$T/result" host) $(field "$T/result" outcome) $(field "$T/result" reasonCode) $(field "$T/result" recordable) $(field "$T/result" exitCode) $(field "$T/result" suite)" "the result"
equal "" "$(field "$T/result" disagreement)" disagreement
equal 7 "$(query "sum(json_extract(s.value, '\$.outcome') = 'pass' and json_extract(s.value, '\$.distance') = 0)" "$T/result" "json_each(f.j, '\$.smokes') s")" "smokes that passed at distance 0"
equal "pass skipped" "$(field "$T/result" 'claims."fixture-parity"') $(field "$T/result" 'claims."legacy-kv-graph"')" claims
sha=$(sha256sum "$bin/verify-agent")
equal "verify-agent ${sha%% *}" "$(field "$T/result" 'code[0].name') $(field "$T/result" 'code[0].sha256')" "the code that ran the fixtures"
class=$(field "$T/result" deviceClass)
has "$T/run.json" '"host":"lab"' "$run"

# A prefix is enough wherever a run is wanted; show --json is the same result.
short=$(printf %.6s "$run")
controller show "$short" --json >"$T/show.json"; status 0 $? "show --json"
equal "$run" "$(field "$T/show.json" run)" "run of show"
controller show "$short" >"$T/show" 2>&1; status 0 $? show
has "$T/show" "verify-agent sha256 $(printf %.12s "$sha")" "SKIPPED prebuilt_engine" "$class" "graph-smoke/iq4_nl" "4/4" "0.000" "verify-controller logs"
controller runs >"$T/runs"; status 0 $? runs
has "$T/runs" "$(printf %.8s "$run")" "$class"
for filter in "--host lab" "--class $class" "--outcome skipped" "--lane cpu" "--limit 1"; do
	# shellcheck disable=SC2086
	controller runs $filter --json >"$T/some"; status 0 $? "runs $filter"
	equal 1 "$(query "json_array_length(j)" "$T/some")" "runs $filter"
done
controller runs --recordable --json >"$T/some"
equal 0 "$(query "json_array_length(j)" "$T/some")" "recordable runs"
controller runs --host other --json >"$T/some"
equal 0 "$(query "json_array_length(j)" "$T/some")" "runs of another host"

# Logs: listed, printed byte for byte, by gate and by a part of the name.
controller logs "$short" >"$T/logs"; status 0 $? logs
has "$T/logs" report.json envelope.json -q8_0-q8_0.log graph-smoke.summary
controller logs "$short" fixtures >"$T/log"; status 0 $? "the log of the fixtures"
has "$T/log" "${sha%% *}"
sha=$(field "$T/show.json" "artifacts[0].sha256")
controller logs "$short" "$(field "$T/show.json" "artifacts[0].name")" >"$T/log"; status 0 $? "a log"
equal "$sha" "$(sha256sum <"$T/log" | cut -d' ' -f1)" "digest of a printed log"
controller logs "$short" build >"$T/log"; status 0 $? "the log of a gate"
has "$T/log" "reason=prebuilt_engine"
controller logs "$short" envelope.json >"$T/envelope"; status 0 $? "the envelope"
equal "$(field "$T/show.json" envelopeSha256)" "$(sha256sum <"$T/envelope" | cut -d' ' -f1)" "its digest"
equal "application/vnd.in-toto+json" "$(field "$T/envelope" payloadType)" "DSSE payload type"
query "json_extract(j, '\$.payload')" "$T/envelope" | base64 -d >"$T/statement"
equal "https://in-toto.io/Statement/v1" "$(field "$T/statement" _type)" "the statement's type"
query "json_extract(j, '\$.predicate')" "$T/statement" >"$T/predicate"
controller logs "$short" report.json >"$T/report"
equal "$(query "json(j)" "$T/predicate")" "$(query "json(j)" "$T/report")" "predicate and report.json"
controller logs "$short" nothing >"$T/out" 2>"$T/err"; status 2 $? "a log that is not there"
controller logs "$short" graph >"$T/out" 2>"$T/err"; rc=$?
[ $rc -eq 0 ] || [ $rc -eq 2 ] || fail "a name that many have: $rc"

# Classes and why: no pass was recorded, and both say so.
controller classes >"$T/classes"; status 0 $? classes
has "$T/classes" "$class" "pass not recordable"
controller classes --json >"$T/classes.json"
equal "$class prebuilt_engine 0" "$(query "json_extract(j, '\$[0].class') || ' ' || json_extract(j, '\$[0].reasonCode') || ' ' || sum(json_extract(c.value, '\$.passed'))" "$T/classes.json" "json_each(f.j, '\$[0].claims') c")" "the class, its last run, claims that passed"
controller why "$class" >"$T/why"; status 0 $? why
has "$T/why" "$class" prebuilt_engine "its source was not seen"
controller why "${class%%/*}" >"$T/why2"; status 0 $? "why with an abbreviated class"
controller why nosuch >"$T/out" 2>"$T/err"; status 2 $? "why of no class"
controller hosts >"$T/hosts"; status 0 $? hosts
has "$T/hosts" lab "$url" SHA256: skipped
controller pin lab >"$T/pin"; status 0 $? pin
has "$T/pin" "(the same)"
controller ledger check >"$T/out" 2>&1; status 0 $? "ledger check: $(cat "$T/out")"
controller ledger verify >"$T/out" 2>&1; status 0 $? "ledger verify: $(cat "$T/out")"
controller ledger stats >"$T/out" 2>&1; status 0 $? "ledger stats: $(cat "$T/out")"

# Nothing is left pending, the agent was told, and attach shows a stored run again.
equal "" "$(find "$XDG_DATA_HOME/verify/pending" "$XDG_DATA_HOME/verify/incoming" -mindepth 1)" "files of pending jobs"
ask "/v1/jobs/$run" >"$T/state.json"
equal 1 "$(field "$T/state.json" acknowledged)" "acknowledged"
controller attach "$short" >"$T/out" 2>"$T/err"; status 7 $? "attach to a stored run"
has "$T/out" "SKIPPED prebuilt_engine"
controller attach >"$T/out" 2>&1; status 0 $? "attach without anything pending"
has "$T/out" "no job is pending"
controller cancel "$short" >"$T/out" 2>&1; status 0 $? "cancel of a stored run"

# Plain lines for a pipe: no escape, no carriage return, and the verdict at the end.
controller run lab --suite eliza-1 --model "$MODEL" --prebuilt "$ENGINE_BIN" >"$T/plain" 2>"$T/err"
status 3 $? "eliza-1 on a stock engine: $(cat "$T/err")"
[ "$(tr -d '\n -~' <"$T/plain" | LC_ALL=C tr -d '\200-\377' | wc -c)" -eq 0 ] || fail "control characters in a pipe"
has "$T/plain" "BLOCKED family_not_in_build" "graph-smoke/turbo3_tcq" "f32, f16, bf16, q8_0" "hint: build an engine that has the cache type"
for family in turbo3 turbo4 turbo3_tcq qjl polar; do
	has "$T/plain" "graph-smoke/$family: blocked"
done

# A byte of stored evidence that changes is found.
blob=$(find "$XDG_DATA_HOME/verify/blobs" -type f -size +1k | head -n 1)
printf X | dd of="$blob" bs=1 seek=200 conv=notrunc 2>/dev/null
controller ledger verify >"$T/out" 2>&1; rc=$?
equal 4 $rc "ledger verify of damaged evidence: $(tail -n 2 "$T/out")"
