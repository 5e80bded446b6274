# The daemon's interface as other programs meet it: health, metrics, event streams, the
# limit of connections, web pages, addresses, one daemon per state folder.
# shellcheck shell=sh disable=SC2154

cat >"$T/agent.conf" <<'END'
[http]
max_connections = 8
heartbeat_s = 1
idle_timeout_s = 20
[jobs]
cancel_grace_s = 1
END
start_agent --config "$T/agent.conf"
equal 600 "$(stat -c %a "$state/key.pem")" "mode of the key"
ask /v1/health >"$T/health"
equal ok "$(field "$T/health" status)" status
equal v1 "$(field "$T/health" 'apiVersions[0]')" "API version"
field "$T/health" agent.fingerprint | grep -q '^SHA256:' || fail "a fingerprint"
ask /v1/suites >"$T/suites"
has "$T/suites" eliza-1 llama.cpp
sha=$(ask /v1/suites/llama.cpp | sha256sum); sha=${sha%% *}
equal "$sha" "$(sha256sum <"$root/fixtures/suites/llama.cpp.json" | cut -d' ' -f1)" "a suite's bytes"
ask /v1/host >"$T/host"
equal cpu "$(field "$T/host" 'lanes[0].name')" "the lane"
case $(field "$T/host" 'lanes[0].deviceClass') in
linux-*-cpu/*/*) ;;
*) fail "device class: $(cat "$T/host")" ;;
esac
# A lane whose driver is not asked says so in words, and who asks it.
equal "cuda skipped not_asked" "$(field "$T/host" 'lanes[1].name') $(field "$T/host" 'lanes[1].outcome') $(field "$T/host" 'lanes[1].reasonCode')" "a lane of a GPU"
field "$T/host" 'lanes[1].detail' | grep -q "run's own gates only.*doctor" || fail "why no driver is asked: $(field "$T/host" 'lanes[1].detail')"
equal "" "$(field "$T/host" 'lanes[0].detail')" "a lane that says all"

equal 405 "$(code /v1/health -X DELETE -D "$T/head")" "DELETE of health"
grep -qi '^allow: .*GET' "$T/head" || fail "405 says what is allowed"
equal 404 "$(code /v1/nothing)" "an unknown path"
equal 404 "$(code /v1/jobs/00000000000000000000000000000000)" "an unknown job"
has "$T/body" not_found "GET /v1/jobs lists"
# A web page can not start jobs, nor a name that somebody's DNS points here.
equal 403 "$(code /v1/jobs -H 'Origin: http://example.org' -d '{}')" "a request of a web page"
equal 403 "$(code /v1/health -H 'Host: example.org')" "another name"
equal 200 "$(code /v1/health -H 'Host: localhost:1')" "localhost"

# An event stream: open until the job has ended, with heartbeats while it is silent.  The
# job waits in the compiler until it is told to go on.
id=00000000000000000000000000000013
fake_engine "$T/src"
equal 201 "$(submit $id '"only":"build"' "\"source\":\"$T/src\"")" "a job that takes long"
ask "/v1/jobs/$id/events?after=0" -N --max-time 60 >"$T/stream" &
stream=$!
wait_for 30 test -e "$T/building" || fail "the build did not start: $(cat "$T/stream")"
wait_for 5 grep -qx '' "$T/stream" || fail "no heartbeat in an open stream"
kill -0 $stream 2>/dev/null || fail "the stream ended before the job"
# What was there when asked; then only what comes after it.
last=$(ask "/v1/jobs/$id/events?after=0&follow=0" | tee "$T/first" | wc -l)
[ "$last" -ge 5 ] || fail "only $last events"
ask "/v1/jobs/$id/events?after=$((last - 1))&follow=0" >"$T/rest"
head -n 1 "$T/rest" >"$T/line"
equal "$last" "$(field "$T/line" seq)" "the first event after the last but one"
equal 400 "$(code "/v1/jobs/$id/events?after=x")" "after=x"

ask /metrics >"$T/metrics"
has "$T/metrics" 'verify_agent_jobs_running 1' 'verify_agent_event_streams 1' \
	'verify_agent_build_info{version="' '# TYPE verify_agent_http_requests_total counter'
lacks "$T/metrics" '/v1/nothing' "$id"
grep -v '^#' "$T/metrics" | grep -qvE '^verify_agent_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+]+$' &&
	fail "a line that Prometheus can not read: $(grep -v '^#' "$T/metrics" | grep -vE '^verify_agent_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+]+$' | head -n 1)"

# Cancel: the job ends incomplete with a report, and the stream says so and ends.
equal 202 "$(code /v1/jobs/$id/cancel -X POST -d '{}')" cancel
wait_for 20 phase $id 'done' || fail "the cancelled job does not end"
wait_for 5 test ! -d /proc/$stream || fail "the stream stays open after the end"
grep -v '^$' "$T/stream" | tail -n 1 >"$T/line"
equal "job done incomplete cancelled" "$(field "$T/line" type) $(field "$T/line" state) $(field "$T/line" outcome) $(field "$T/line" reasonCode)" "the last event"
grep -v '^$' "$T/stream" | sed 's/^{"seq":\([0-9]*\),.*/\1/' >"$T/seqs"
seq "$(wc -l <"$T/seqs")" | cmp -s - "$T/seqs" || fail "a gap in seq: $(tr '\n' ' ' <"$T/seqs")"
equal 200 "$(code /v1/jobs/$id/cancel -X POST -d '{}')" "cancel after the end"
equal 200 "$(code /v1/jobs/$id/report)" "the report of a cancelled job"
wait_for 5 gone "$T/src/wait.sh" || fail "the build goes on: $(pgrep -af "$T/src/wait.sh")"

# At the limit of connections health answers: the others sit there and say nothing.
port=${url##*:}
if command -v bash >/dev/null; then
	# shellcheck disable=SC2016
	bash -c 'for i in $(seq 30); do exec {fd}<>/dev/tcp/127.0.0.1/'"$port"' || exit; printf "GET /v1/" >&$fd; done; echo open >'"$T/open"'; sleep 30' &
	idle=$!
	wait_for 10 test -e "$T/open" || fail "30 idle connections"
	for n in 1 2 3; do
		equal 200 "$(code /v1/health)" "health at the limit, $n"
	done
	kill $idle; wait $idle 2>/dev/null
	wait_for 10 ask /v1/jobs -f || fail "no answer after the crowd"
fi

# One daemon per state folder; only loopback or a socket; a socket that people of the
# group may use.
agent serve --state "$state" --listen 127.0.0.1:0 >"$T/out" 2>"$T/err" && fail "a second daemon in one folder starts"
[ -s "$T/err" ] || fail "and says nothing"
for address in 0.0.0.0:0 192.0.2.1:8420 '[::]:0' '*:1'; do
	agent serve --state "$T/other" --listen "$address" >"$T/out" 2>"$T/err"
	status 4 $? "listen on $address"
	has "$T/err" listen_needs_keys
done
stop_agent
[ ! -e "$state/listen" ] || fail "the file listen stays behind"
"$bin/verify-agent" serve --state "$T/s" 2>>"$T/agent.log" &
agent_pid=$!
wait_for 10 test -S "$T/s/agent.sock" || fail "no socket"
equal 660 "$(stat -c %a "$T/s/agent.sock")" "mode of the socket"
curl -sf --max-time 10 --unix-socket "$T/s/agent.sock" http://agent/v1/health >"$T/health" || fail "health by socket"
kill_agent
# A socket that a killed agent left behind does not stop the next.
"$bin/verify-agent" serve --state "$T/s" 2>>"$T/agent.log" &
agent_pid=$!
wait_for 10 curl -sf --max-time 10 --unix-socket "$T/s/agent.sock" http://agent/v1/health || fail "no start after a crash: $(tail -n 2 "$T/agent.log")"

# The configuration: each slip with file and line.
for line in '[http]
max_streams = 0' '[http]
max_connection = 8' '[htp]
x = 1' 'nonsense'; do
	printf '%s\n' "$line" >"$T/bad.conf"
	agent serve --config "$T/bad.conf" --state "$T/other" >"$T/out" 2>"$T/err"
	status 2 $? "configuration: $line"
	has "$T/err" "$T/bad.conf:"
done
agent serve --print-config >"$T/sample"
cmp -s "$T/sample" "$root/deploy/verify-agent.conf" || fail "deploy/verify-agent.conf is not the sample that the agent prints"
sed 's/^#\([a-z_]* = [0-9]\)/\1/' "$T/sample" >"$T/full.conf"
stop_agent
start_agent --config "$T/full.conf"
