# The controller's command line against a real agent: words for every mistake, a run that
# is left and taken up again, a key that changes, several hosts, the ledger behind it.
# shellcheck shell=sh disable=SC2154
data=$XDG_DATA_HOME/verify

# Ids of the pending jobs, one a line.
pending() { find "$data/pending" -name '*.json' 2>/dev/null | sed 's/.*\/\(.*\)\.json$/\1/'; }

controller rnu 2>"$T/err"; status 2 $? "an unknown command"
has "$T/err" 'no such command: "rnu"' 'did you mean "run"?'
controller run lab --lnae cpu 2>"$T/err"; status 2 $? "an unknown option"
has "$T/err" 'did you mean --lane?'
controller run local 2>"$T/err"; status 5 $? "no agent"
has "$T/err" 'no contact' 'verify-agent serve'
controller runs >"$T/out"; status 0 $? "runs before any run"
has "$T/out" 'no run is stored yet'
[ "$(controller runs --json)" = "[]" ] || fail "no runs are an empty array"

start_agent || return
controller lab 2>"$T/err"; status 2 $? "a host where a command belongs"
has "$T/err" 'is a host, not a command' 'run lab'
controller run lba 2>"$T/err"; status 2 $? "an unknown host"
has "$T/err" 'did you mean lab?'
controller run lab --lane warp --only probe 2>"$T/err"; status 2 $? "an unknown lane"
controller run lab --suite nosuch 2>"$T/err"; status 2 $? "an unknown suite"
controller run lab --set tokens=many 2>"$T/err"; status 2 $? "an override out of bounds"
controller run lab --set token=8 2>"$T/err"; status 2 $? "an unknown override"
has "$T/err" 'did you mean tokens?'
controller run lab --model m.gguf 2>"$T/err"; status 2 $? "a relative path over a port"
[ -z "$(pending)" ] || fail "a refused run left a pending job"

# All that ran passed, but not everything was asked for.
controller run lab --only probe >"$T/out" 2>"$T/err"; status 7 $? "a probe"
has "$T/out" 'first contact with lab' 'fingerprint SHA256:' 'host: pass' 'SKIPPED not_asked'
lacks "$T/out" "$(printf '\033')"
controller runs --json >"$T/runs.json"
run=$(sed -n 's/.*"run":[[:space:]]*"\([0-9a-f]*\)".*/\1/p' "$T/runs.json")
[ ${#run} -eq 32 ] || fail "one run is stored, got \"$run\""
short=$(printf %.6s "$run")
controller show "$short" >"$T/out"; status 0 $? "show by an abbreviated id"
has "$T/out" 'linux-' 'evidence'
controller logs "$short" >"$T/out"; status 0 $? "logs"
has "$T/out" 'host.log' 'envelope.json'
controller logs "$short" host >"$T/host.log"; status 0 $? "the log of a gate"
sum=$(sha256sum "$T/host.log" | cut -d' ' -f1)
has "$T/out" "$sum"
controller logs "$short" ../pins 2>"$T/err"; status 2 $? "a file that is not there"
controller classes >"$T/out"; status 0 $? "classes"
has "$T/out" 'fixture-parity' 'legacy-kv-graph' 'gemma-runtime'
controller why linux >"$T/out"; status 0 $? "why"
controller ledger verify >"$T/out"; status 0 $? "ledger verify"
has "$T/out" 'all as stored'

# JSON: nothing but objects, a result at the end, which says what `runs` says.
controller run lab --only probe --json >"$T/out" 2>"$T/err"; status 7 $? "a probe in JSON"
[ ! -s "$T/err" ] || fail "JSON mode wrote to stderr"
grep -vq '^{.*}$' "$T/out" && fail "a line that is no object"
tail -n 1 "$T/out" >"$T/last"
has "$T/last" '"type":"result"' '"outcome":"skipped"' '"exitCode":7' '"host":"lab"'

# Left at the submit; a pull that was killed has left half a file and some rubbish.
controller run lab --only probe --detach >"$T/out"; status 0 $? "detach"
job=$(pending)
[ ${#job} -eq 32 ] || fail "one job is pending"
controller show "$job" >"$T/out"; has "$T/out" PENDING
mkdir -p "$data/incoming/$job"
echo rubbish >"$data/incoming/$job/linux-x64-cpu-host.log.part"
controller attach "$(printf %.8s "$job")" >"$T/out" 2>"$T/err"; status 7 $? "attach"
[ -z "$(pending)" ] || fail "attach left the job pending"
[ ! -e "$data/incoming/$job" ] || fail "attach left what it pulled"
controller attach "$job" >"$T/out"; status 7 $? "attach to a stored run shows it"
controller attach >"$T/out"; status 0 $? "attach with nothing pending"
has "$T/out" 'no job is pending'

# Killed while it follows: the next attach completes the run.
controller run lab --only probe >"$T/out" 2>&1 & victim=$!
wait_for 10 test -e "$data/pending" || fail "no pending job"
kill -9 $victim; wait $victim 2>/dev/null
if [ -n "$(pending)" ]; then
	controller attach >"$T/out" 2>"$T/err"; status 7 $? "attach after a kill"
fi

# Two controllers bring the same job in; both say the same, the ledger has it once.
controller run lab --only probe --detach >/dev/null
job=$(pending)
controller attach "$job" >"$T/one" 2>&1 & one=$!
controller attach "$job" >"$T/two" 2>&1; status 7 $? "the second of two"
wait $one; status 7 $? "the first of two"
controller runs --json >"$T/runs.json"
[ "$(grep -c "\"run\":.*$job" "$T/runs.json")" -eq 1 ] || fail "the run is stored once"

# Several hosts: a dead one stops no other, and the worst counts.
printf '[lab2]\nurl = %s\n[dead]\nurl = http://127.0.0.1:9\n[far]\nurl = ssh://far\n' "$url" \
	>>"$XDG_CONFIG_HOME/verify/hosts.conf"
controller run 'lab[2],dead' --only probe >"$T/out" 2>"$T/err"; status 5 $? "one dead host of two"
has "$T/out" 'lab2| ' 'lab2' 'SKIPPED not_asked' 'no contact'
has "$T/err" 'dead| '
controller run far --only probe 2>"$T/err"; status 2 $? "a host by ssh"
has "$T/err" 'not supported yet' 'unix:/PATH'
controller hosts >"$T/out"; status 0 $? "hosts"
has "$T/out" 'no contact' 'not supported yet' 'SHA256:'

# Another key is refused until a person says so.
before=$(cat "$data/pins")
sed 's/^lab \(....\)/lab 0000/' "$data/pins" >"$T/pins" && cat "$T/pins" >"$data/pins"
controller run lab --only probe >"$T/out" 2>"$T/err"; status 4 $? "another key"
[ "$(grep -o 'SHA256:' "$T/err" | wc -l)" -eq 2 ] || fail "both fingerprints are shown"
controller pin lab >"$T/out"; status 4 $? "pin shows the difference"
controller pin lab --replace >"$T/out"; status 0 $? "pin --replace"
controller pin lab >"$T/out"; status 0 $? "the same key"
[ "$(cut -d' ' -f1,2 "$data/pins")" = "$(echo "$before" | cut -d' ' -f1,2)" ] ||
	fail "replacing changed another pin"
stop_agent
