# A job's files over HTTP: no name leads out of the job's folder; ranges, entity tags.
# shellcheck shell=sh disable=SC2154

start_agent
id=00000000000000000000000000000012
echo secret >"$state/secret"
equal 201 "$(submit $id '"only":"probe"')" submit
equal 404 "$(code /v1/jobs/$id/report)" "a report before the end"
wait_for 60 phase $id 'done' || fail "the job does not end"
at=/v1/jobs/$id/artifacts

# --path-as-is: curl must not tidy the path up.
for name in ../../key.pem ..%2f..%2fkey.pem %2e%2e%2f%2e%2e%2fkey.pem %2e%2e/%2e%2e/key.pem \
	.. %2e%2e . ..%2fsecret ../secret %2fetc%2fpasswd //etc/passwd host.log/../report.json \
	'..%5csecret' 'report.json%00' 'report.json%0a' .hidden 'a%20b' %ff \
	"$(head -c 5000 /dev/zero | tr '\0' a)"; do
	got=$(code "$at/$name" --path-as-is)
	case $got in
	400 | 404) ;;
	*) fail "$(printf %.60s "$name"): HTTP $got" ;;
	esac
	lacks "$T/body" secret "PRIVATE KEY" "root:" '"runner"'
done
for link in "$state/key.pem" /etc/passwd; do
	ln -sf "$link" "$state/spool/$id/link.log"
	equal 404 "$(code $at/link.log)" "a link to $link"
done
mkfifo "$state/spool/$id/pipe.log"
equal 404 "$(code $at/pipe.log)" "a FIFO"
mkdir "$state/spool/$id/folder.log"
equal 404 "$(code $at/folder.log)" "a folder"
ask $at >"$T/list"
lacks "$T/list" link.log pipe.log folder.log

log=$(field "$T/list" 'artifacts[0].name')
bytes=$(field "$T/list" 'artifacts[0].bytes')
equal 200 "$(code "$at/$log" -D "$T/head")" "an artifact"
cp "$T/body" "$T/whole"
equal "$bytes" "$(($(wc -c <"$T/whole")))" "its length"
sha=$(sha256sum "$T/whole"); sha=${sha%% *}
tr -d '\r' <"$T/head" >"$T/head.txt"
grep -qix "etag: \"$sha\"" "$T/head.txt" || fail "ETag is the SHA-256: $(cat "$T/head.txt")"
has "$T/head.txt" "Accept-Ranges: bytes" nosniff no-store
equal 304 "$(code "$at/$log" -H "If-None-Match: \"$sha\"")" If-None-Match
equal 0 "$(($(wc -c <"$T/body")))" "a 304 has no body"
equal 200 "$(code "$at/$log" -H 'If-None-Match: "another"')" "another If-None-Match"
# part RANGE FROM COUNT: a 206 with these bytes
part() {
	equal 206 "$(code "$at/$log" -H "Range: bytes=$1" -D "$T/head")" "range $1"
	tail -c +$(($2 + 1)) "$T/whole" | head -c "$3" >"$T/wanted"
	cmp -s "$T/wanted" "$T/body" || fail "bytes of range $1"
	grep -qi "^content-range: bytes $2-$(($2 + $3 - 1))/$bytes" "$T/head" || fail "Content-Range of $1"
}
part 10-19 10 10
part 0-0 0 1
part "$((bytes - 5))-" $((bytes - 5)) 5
part -7 $((bytes - 7)) 7
part "5-99999999999" 5 $((bytes - 5))
equal 416 "$(code "$at/$log" -H "Range: bytes=$bytes-" -D "$T/head")" "a range behind the end"
grep -qi "^content-range: bytes \*/$bytes" "$T/head" || fail "416 says the length"
equal 206 "$(code "$at/$log" -H 'Range: bytes=1-2' -H "If-Range: \"$sha\"")" "If-Range that holds"
equal 200 "$(code "$at/$log" -H 'Range: bytes=1-2' -H 'If-Range: "x"')" "If-Range that does not"
for range in "bytes=5-2" "bytes=a-b" "lines=1-2" "bytes=0-1,4-5" "bytes=-"; do
	equal 200 "$(code "$at/$log" -H "Range: $range")" "range \"$range\" is not understood"
done
equal 200 "$(code "$at/$log" --head -D "$T/head")" HEAD
grep -qi "^content-length: $bytes" "$T/head" || fail "HEAD says the length"

# The report's tag is what the job's state says, and an acknowledgement must name it.
equal 200 "$(code /v1/jobs/$id/report -D "$T/head")" "the report"
sha=$(sha256sum "$T/body"); sha=${sha%% *}
grep -qi "^etag: \"$sha\"" "$T/head" || fail "ETag of the report"
equal "$sha" "$(ask /v1/jobs/$id >"$T/state.json"; field "$T/state.json" envelopeSha256)" "state's digest"
equal 409 "$(code /v1/jobs/$id/ack -d '{"envelopeSha256":"0000000000000000000000000000000000000000000000000000000000000000"}')" "a wrong acknowledgement"
equal 400 "$(code /v1/jobs/$id/ack -d '{}')" "an acknowledgement of nothing"
equal 200 "$(code /v1/jobs/$id/ack -d "{\"envelopeSha256\":\"$sha\"}")" "the right one"
equal 200 "$(code /v1/jobs/$id/report)" "kept for keep_days all the same"
