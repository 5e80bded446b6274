# The portable agent runs in a folder that holds nothing but itself, libc, libm and their
# loader.  It needs /proc and /dev/null besides, and says so when /proc is missing.
# shellcheck shell=sh disable=SC2154,SC2034

portable=$root/build/portable/verify-agent
[ -x "$portable" ] || skip "no build/portable/verify-agent (make agent-portable makes it)"
[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
"$root/deploy/portable" gate "$portable" >"$T/gate" 2>&1 || fail "$(cat "$T/gate")"

mkdir -p "$T/root/tmp" "$T/root/proc" "$T/root/dev"
cp "$portable" "$T/root/verify-agent"
ldd "$portable" | grep -o '/[^ ]*' | sort -u >"$T/libraries"
[ "$(wc -l <"$T/libraries")" -eq 3 ] || fail "more than loader, libc and libm: $(cat "$T/libraries")"
while read -r lib; do
	mkdir -p "$T/root${lib%/*}"
	cp -L "$lib" "$T/root$lib" || fail "copy $lib"
done <"$T/libraries"

PATH=$PATH:/usr/sbin:/sbin
chroot=$(command -v chroot) || skip "no chroot command"
bare() { env -i HOME=/tmp "$chroot" "$T/root" /verify-agent "$@"; }
bare --version >"$T/version" 2>&1
status 0 $? "--version in the chroot: $(cat "$T/version")"
has "$T/version" "verify-agent "
bare cpu-verify >"$T/fixtures" 2>&1
status 0 $? "cpu-verify in the chroot: $(tail -n 1 "$T/fixtures")"
has "$T/fixtures" " 0 failed"
for c in flipped-code-bit nan-output; do
	grep -q "^control $c  *[a-z0-9_]*: caught" "$T/fixtures" || fail "control $c was not caught"
done
for b in cuda hip vulkan; do
	bare $b-verify >"$T/none" 2>&1
	status 3 $? "$b-verify in the chroot: $(cat "$T/none")"
	has "$T/none" "$b-verify: " "hint: "
done

bare run cpu --only probe --report /tmp/bare.json >"$T/bare" 2>&1
status 3 $? "a probe without /proc is blocked"
has "$T/bare" "/proc/cpuinfo"
bare serve --state /state >"$T/bare-serve" 2>&1
status 2 $? "serve without /proc is refused"
has "$T/bare-serve" "/proc/self/exe"

# The mounts are in a namespace of the process's own and end with it.
# shellcheck disable=SC2016
furnish='set -e
mount --bind /proc "$1/proc"
mount --bind /dev/null "$1/dev/null"
folder=$1 chroot=$2; shift 2
exec env -i HOME=/tmp "$chroot" "$folder" /verify-agent "$@"'
furnished() { exec unshare -m sh -c "$furnish" sh "$T/root" "$chroot" "$@"; }
: >"$T/root/dev/null"
(furnished --version) >"$T/mount" 2>&1 || {
	[ "$bad" -eq 0 ] || exit 1
	skip "/proc can not be mounted here, which run and serve need: $(head -n 1 "$T/mount")"
}

(furnished run cpu --only probe --report /tmp/probe.json) >"$T/probe" 2>&1
status 3 $? "a probe on a host without compiler is blocked"
grep -q '^pass  *device  *[^ ]' "$T/probe" || fail "the device gate: $(cat "$T/probe")"
grep -q '^blocked  *toolchain  *tool_missing' "$T/probe" || fail "the toolchain gate: $(cat "$T/probe")"
grep -q '"linux-[a-z0-9_]*-cpu/[^"]*"' "$T/root/tmp/probe.json" || fail "the report names no device class"

cd "$T/root" || fail "cd" # a short path: a socket's name holds 107 bytes
furnished serve --state /state 2>"$T/agent.log" &
agent_pid=$!
ask() { curl -sf --max-time 20 --unix-socket state/agent.sock "http://agent$1"; }
wait_for 10 ask /v1/health || fail "no answer: $(cat "$T/agent.log")"
ask /v1/health >"$T/health" || fail "/v1/health"
tr -d ' \t\n' <"$T/health" >"$T/health.flat"
has "$T/health.flat" '"status":"ok"' '"apiVersions":["v1"]' '"fingerprint":"SHA256:'
ask /v1/host >"$T/host" || fail "/v1/host: $(cat "$T/agent.log")"
grep -q '"linux-[a-z0-9_]*-cpu/[^"]*"' "$T/host" || fail "/v1/host names no device class: $(cat "$T/host")"
stop_agent
[ ! -e state/agent.sock ] || fail "the socket is left behind"
agent_pid=
