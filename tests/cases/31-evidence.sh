# Evidence that is not what was signed, and a key that is not the pinned one: refused, not
# stored, with exit 4, and what was there before stays.
# shellcheck shell=sh disable=SC2154

start_agent
# ended HOW: a job is submitted and left, and has ended; sets $id
ended() {
	controller run lab --only probe --detach --json >"$T/sub" 2>"$T/err"
	status 0 $? "run --detach: $(cat "$T/err")"
	id=$(sed -n 's/.*"type":"submitted".*"job":"\([0-9a-f]*\)".*/\1/p' "$T/sub")
	[ ${#id} -eq 32 ] || { fail "no job id in $(cat "$T/sub")"; return 1; }
	wait_for 30 phase "$id" 'done' || fail "the job does not end"
}
stored() { controller runs --json >"$T/stored"; query "json_array_length(j)" "$T/stored"; }
# flip FILE OFFSET: another byte there, same length
flip() {
	case $(tail -c +$(($2 + 1)) "$1" | head -c 1) in B) byte=C ;; *) byte=B ;; esac
	printf %s "$byte" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

ended
controller attach "$id" >"$T/out" 2>"$T/err"
status 7 $? "attach brings it in: $(cat "$T/err")"
equal 1 "$(stored)" "stored runs"

# One byte of a log in the agent's spool, after it was signed.
ended
log=$(find "$state/spool/$id" -name '*-device.log')
cp "$log" "$T/good.log"
flip "$log" 100
controller attach "$id" >"$T/out" 2>"$T/err"
status 4 $? "a log with another byte"
has "$T/err" "${log##*/}" digest
equal 1 "$(stored)" "stored runs after a doctored log"
controller attach --json "$id" >"$T/out" 2>"$T/err"
status 4 $? "the same with --json"
tail -n 1 "$T/out" >"$T/last"
equal "error integrity 4" "$(field "$T/last" type) $(field "$T/last" code) $(field "$T/last" exitCode)" "the last JSON line"
# Nothing is lost: with the right bytes the same job comes in.
cp "$T/good.log" "$log"
controller attach "$id" >"$T/out" 2>"$T/err"
status 7 $? "the right bytes again: $(cat "$T/err")"
equal 2 "$(stored)" "stored runs"

# A log that is longer, and one that is gone.
ended
log=$(find "$state/spool/$id" -name '*-host.log')
cp "$log" "$T/good.log"
echo more >>"$log"
controller attach "$id" >"$T/out" 2>"$T/err"; status 4 $? "a longer log"
rm "$log"
controller attach "$id" >"$T/out" 2>"$T/err"; status 4 $? "a log that is gone"
cp "$T/good.log" "$log"
controller attach "$id" >"$T/out" 2>"$T/err"; status 7 $? "and back"

# A report that claims more than was signed; a byte of the signed envelope.
ended
sed -i 's/"passRecordable":[[:space:]]*false/"passRecordable": true /' "$state/spool/$id/report.json"
controller attach "$id" >"$T/out" 2>"$T/err"
status 4 $? "a report.json that says something else"
ended
env=$state/spool/$id/report.dsse.json
cp "$env" "$T/good.json"
flip "$env" 2000
controller attach "$id" >"$T/out" 2>"$T/err"
status 4 $? "an envelope with another byte: $(cat "$T/err")"
has "$T/err" signature
head -c 3000 "$T/good.json" >"$env"
controller attach "$id" >"$T/out" 2>"$T/err"; rc=$?
[ $rc -eq 2 ] || [ $rc -eq 4 ] || fail "half an envelope: exit $rc"
cp "$T/good.json" "$env"
# Yesterday's good report does not answer today's question.
other=$(basename "$(find "$state/spool" -mindepth 1 -maxdepth 1 ! -name "$id" | head -n 1)")
cp "$state/spool/$other/report.dsse.json" "$env"
controller attach "$id" >"$T/out" 2>"$T/err"
status 4 $? "the report of another job: $(cat "$T/err")"
has "$T/err" mismatch
cp "$T/good.json" "$env"
controller attach "$id" >"$T/out" 2>"$T/err"; status 7 $? "and its own again: $(cat "$T/err")"

# Another key: the agent is not who it was.  Both fingerprints are shown.
controller pin lab >"$T/pin"
old=$(sed -n 's/^pinned *\(SHA256:[^ ]*\).*/\1/p' "$T/pin")
before=$(stored)
stop_agent
rm "$state/key.pem"
start_agent
ask /v1/health >"$T/health"
new=$(field "$T/health" agent.fingerprint)
[ "$old" != "$new" ] || fail "the key is the old one"
controller run lab --only probe >"$T/out" 2>"$T/err"
status 4 $? "another key"
has "$T/err" "$old" "$new"
controller hosts >"$T/out" 2>&1
has "$T/out" "ANOTHER KEY"
controller pin lab >"$T/out" 2>&1; status 4 $? "pin shows it"
has "$T/out" "$old" "$new"
equal "$before" "$(stored)" "stored runs after another key"
controller pin lab --replace >"$T/out" 2>&1; status 0 $? "pin --replace: $(cat "$T/out")"
controller run lab --only probe >"$T/out" 2>"$T/err"; status 7 $? "after that: $(cat "$T/err")"
# A key file that others may read is no key.
stop_agent
chmod 644 "$state/key.pem"
agent serve --state "$state" --listen 127.0.0.1:0 >"$T/out" 2>"$T/err"
rc=$?
[ $rc -ne 0 ] || fail "a key that everybody may read"
