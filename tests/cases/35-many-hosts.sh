# Hosts that are down, slow or strange: exit 5, a word that says which; of two hosts the
# good one's result comes all the same.
# shellcheck shell=sh disable=SC2154

start_agent
good=$url
stored() { controller runs --json >"$T/stored"; query "json_array_length(j)" "$T/stored"; }

inventory dead http://127.0.0.1:1
controller run dead --only probe >"$T/out" 2>"$T/err"
status 5 $? "a host that is down"
has "$T/err" "host dead" "127.0.0.1:1"
controller run dead --only probe --json >"$T/out" 2>"$T/err"
status 5 $? "the same with --json"
tail -n 1 "$T/out" >"$T/last"
equal "error dead unreachable 5" "$(field "$T/last" type) $(field "$T/last" host) $(field "$T/last" code) $(field "$T/last" exitCode)" "the last JSON line"
[ ! -e "$XDG_DATA_HOME/verify/ledger.db" ] || equal 0 "$(stored)" "stored runs of a dead host"
controller run local --only probe >"$T/out" 2>"$T/err"
status 5 $? "local without an agent: $(cat "$T/err")"

inventory good "$good" dead http://127.0.0.1:1
controller run good dead --only probe >"$T/out" 2>"$T/err"
status 5 $? "one of two is dead"
equal 1 "$(stored)" "the good one's result"
has "$T/out" "good| " "HOST" "dead" "no contact" "skipped"
controller run good dead --only probe --json >"$T/out" 2>"$T/err"
status 5 $? "the same with --json"
while IFS= read -r line; do
	printf '%s' "$line" >"$T/line"
	equal 1 "$(query "json_valid(j)" "$T/line")" "a line of --json: $line"
done <"$T/out"
grep -q '"type":"result".*"host":"good"' "$T/out" || fail "no result of good"
grep -q '"type":"error".*"host":"dead"' "$T/out" || fail "no error of dead"
# The order: 1, 6, 5, 4, 3, 7, 0; blocked beside passed is blocked.
cp -r "$XDG_DATA_HOME" "$T/kept"
controller run 'good,dead' --only build >"$T/out" 2>"$T/err"
status 5 $? "blocked beside dead"
inventory good "$good" other "$good"
controller run 'good' 'other' --only build >"$T/out" 2>"$T/err"
status 3 $? "two that are blocked"
controller run good good --only probe >"$T/out" 2>"$T/err"; rc=$?
[ $rc -eq 2 ] || [ $rc -eq 7 ] || fail "a host that is named twice: exit $rc"

controller hosts >"$T/hosts" 2>&1; status 0 $? hosts
inventory good "$good" dead http://127.0.0.1:1
controller hosts >"$T/hosts" 2>&1
has "$T/hosts" good dead "no contact" SHA256:
controller hosts --names >"$T/names"
equal "dead good local" "$(sort "$T/names" | tr '\n' ' ' | sed 's/ $//')" "hosts --names"

# Somebody listens and says nothing, or says what no agent says.
if command -v python3 >/dev/null; then
	cat >"$T/strange.py" <<-'END'
	import socket, sys
	s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8)
	print(s.getsockname()[1], flush=True)
	held = []
	while True:
	    c, _ = s.accept()
	    if sys.argv[1] == "silent":
	        held.append(c); continue
	    c.recv(4096)
	    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html>hello\r\n"); c.close()
	END
	python3 "$T/strange.py" web >"$T/port" 2>/dev/null & web=$!
	wait_for 10 test -s "$T/port"
	inventory web "http://127.0.0.1:$(cat "$T/port")"
	controller run web --only probe >"$T/out" 2>"$T/err"; rc=$?
	equal 3 $rc "a web server: $(cat "$T/err")"
	has "$T/err" "host web" "really a verify-agent?"
	kill $web; wait $web 2>/dev/null
	python3 "$T/strange.py" silent >"$T/port2" 2>/dev/null & web=$!
	wait_for 10 test -s "$T/port2"
	inventory silent "http://127.0.0.1:$(cat "$T/port2")" good "$good"
	controller hosts >"$T/hosts" 2>&1
	has "$T/hosts" "no answer yet" good
	kill $web; wait $web 2>/dev/null
fi

# An inventory with a slip names file and line; other addresses are refused.
printf '[a]\nurl = http://127.0.0.1:1\nulr = x\n' >"$XDG_CONFIG_HOME/verify/hosts.conf"
controller hosts >"$T/out" 2>"$T/err"; status 2 $? "a slip in hosts.conf"
has "$T/err" "hosts.conf: line 3"
for address in http://192.0.2.1:8420 https://127.0.0.1:1 ftp://x 127.0.0.1:1 http://127.0.0.1.example.org:80; do
	inventory far "$address"
	controller run far --only probe >"$T/out" 2>"$T/err"; rc=$?
	[ $rc -eq 2 ] || [ $rc -eq 3 ] || [ $rc -eq 4 ] || fail "address $address: exit $rc, $(cat "$T/err")"
done
