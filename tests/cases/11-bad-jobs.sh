# Jobs that are no jobs: each is refused with its own status and sentence, none is kept, and
# the agent goes on.
# shellcheck shell=sh disable=SC2154

start_agent
id=00000000000000000000000000000001
post() { code /v1/jobs --data-binary "@$1"; }
# refused HTTP NAME: sends $T/job.json, and notes what came
refused() {
	got=$(post "$T/job.json")
	equal "$1" "$got" "$2"
	printf '%-22s %s %s: %s\n' "$2" "$got" "$(field "$T/body" error.code)" \
		"$(field "$T/body" error.message)" >>"$T/table"
}
# with NAME MEMBER...: a good job with members that are not
with() { name=$1; shift; job_body "$id" "$@" >"$T/job.json"; refused 400 "$name"; }
# edited NAME SED: a good job after sed
edited() { job_body "$id" | sed "$2" >"$T/job.json"; refused 400 "$1"; }

edited unknown-lane 's/"cpu"/"gpu"/'
edited unknown-suite 's/"llama.cpp"/"llama"/'
with unknown-field '"mode":"fast"'
with unknown-override '"overrides":{"token":"4"}'
with duplicate-key '"lane":"cpu"'
with duplicate-inner-key '"overrides":{"tokens":"4","tokens":"5"}'
with nan '"only":NaN'
with infinite-number '"only":1e999'
with number-for-text '"model":7'
with null-byte-escape '"model":"/m\u0000.gguf"'
edited other-version 's/"schemaVersion":1/"schemaVersion":2/'
edited short-id 's/"id":"0/"id":"/'
edited upper-case-id 's/"id":"00/"id":"AB/'
edited no-nonce 's/,"nonce":"[0-9]*"//'
edited two-values 's/$/ {}/'
edited cut-off 's/}$//'
edited trailing-comma 's/}$/,}/'
edited empty 's/.*//'
with 'ref-like-an-option' '"sourceRef":"--upload-pack=x"'
with 'other-suite-document' '"suiteDocument":"{}"'

# Deeper than any honest document, in a member and as the whole.
{ printf '{"x":'; head -c 64 /dev/zero | tr '\0' '['; head -c 64 /dev/zero | tr '\0' ']'; echo '}'; } >"$T/job.json"
refused 413 nested-64-deep
{ head -c 100000 /dev/zero | tr '\0' '['; } >"$T/job.json"
refused 413 nested-100000-deep
# UTF-16 with its mark, and bytes that are no UTF-8.
{ printf '\377\376'; job_body $id | sed 's/./&\x00/g'; } >"$T/job.json"
refused 400 utf-16
job_body $id '"model":"/m?.gguf"' | tr '?' '\377' >"$T/job.json"
refused 400 not-utf-8
# Ten megabytes, with and without a length; and one byte above the limit.
{ job_body $id | tr -d '\n'; head -c 10000000 /dev/zero | tr '\0' ' '; } >"$T/job.json"
refused 413 ten-megabytes
equal 413 "$(code /v1/jobs -H 'Transfer-Encoding: chunked' --data-binary "@$T/job.json")" "ten megabytes in chunks"
{ job_body $id | tr -d '\n'; head -c 131072 /dev/zero | tr '\0' ' '; } | head -c 131073 >"$T/job.json"
refused 413 one-byte-too-many
# A suite that differs from ours is a conflict of versions, not a typing error.
job_body $id '"suiteDigest":"0000000000000000000000000000000000000000000000000000000000000000"' >"$T/job.json"
refused 409 other-suite-digest

sed 's/differs from ours: [0-9a-f]*/differs from ours: DIGEST/' "$T/table" >"$T/shown"
golden bad-jobs "$T/shown"

# Nothing of it was kept, and the agent is there.
equal 200 "$(code /v1/health)" health
ask /v1/jobs >"$T/jobs"
equal 0 "$(query "json_array_length(j, '\$.jobs')" "$T/jobs")" "jobs after all that"
kept=$(find "$state/spool" "$state/jobs" "$state/events" -mindepth 1)
equal "" "$kept" "files of refused jobs"

# The same document twice is one job; another body under its id is refused and changes nothing.
equal 201 "$(submit $id '"only":"probe"')" "a new job"
equal 200 "$(submit $id '"only":"probe"')" "the same again"
equal $id "$(field "$T/body" id)" "its id"
# as JSON the same: other spaces do not make another job
job_body $id '"only" :  "probe"' >"$T/job.json"
equal 200 "$(post "$T/job.json")" "the same with other spaces"
equal 409 "$(submit $id '"only":"fixtures"')" "another body"
has "$T/body" conflict "another body" "choose a new id"
wait_for 60 phase $id 'done' || fail "the job does not end"
equal 200 "$(submit $id '"only":"probe"')" "the same after its end"
equal 'done' "$(field "$T/body" state)" "its state"
equal 409 "$(submit $id '"only":"fixtures"')" "another body after its end"
ask "/v1/jobs/$id/artifacts/report.json" >"$T/report"
equal probe "$(field "$T/report" only)" "the first body is the one that ran"
ask /v1/jobs >"$T/jobs"
equal 1 "$(query "json_array_length(j, '\$.jobs')" "$T/jobs")" "one job in the end"
