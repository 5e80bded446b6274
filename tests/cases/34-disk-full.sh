# A disk that is full while logs are written: the job ends incomplete disk_full, the agent
# stays up, answers, and works again when there is room.  A small tmpfs is that disk.
# shellcheck shell=sh disable=SC2154

[ "$(id -u)" -eq 0 ] || skip "mounting a tmpfs needs root"
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$state"
mount -t tmpfs -o size=3m,mode=750 none "$state" 2>"$T/err" || skip "no tmpfs can be mounted: $(cat "$T/err")"
trap 'stop_agent; umount "$state"' EXIT
free() { df -k --output=avail "$state" | tail -n 1; }

start_agent
id=00000000000000000000000000000034
equal 201 "$(submit $id '"only":"probe"')" "with room"
wait_for 60 phase $id 'done' || fail "no end with room"

# A build that talks without end, until the disk is full.  (A FAKE engine; real cmake.)
fake_engine "$T/src"
# shellcheck disable=SC2016
printf 'i=0; while [ $i -lt 400 ]; do head -c 60000 /dev/zero | tr "\\0" x; echo; i=$((i+1)); done; echo "int main(void){return 0;}" >waited.c\n' >"$T/src/wait.sh"
id=00000000000000000000000000000035
equal 201 "$(submit $id '"only":"build"' "\"source\":\"$T/src\"")" "a job that fills the disk"
n=0
until phase $id 'done'; do
	n=$((n + 1)); [ $n -lt 300 ] || { fail "the job does not end on a full disk"; break; }
	equal 200 "$(code /v1/health)" "health while the disk fills"
	sleep 0.2
done
ask "/v1/jobs/$id" >"$T/state.json"
equal "incomplete disk_full 6 0" "$(field "$T/state.json" outcome) $(field "$T/state.json" reasonCode) $(field "$T/state.json" exitCode) $(field "$T/state.json" passRecordable)" "the job on a full disk"
equal 200 "$(code /v1/health)" "health on a full disk"
equal 200 "$(code /metrics)" "metrics on a full disk"

# Full to the last byte: a new job is refused, or ends disk_full; nothing is called a pass.
head -c 10000000 /dev/zero >"$state/filler" 2>/dev/null
[ "$(free)" -eq 0 ] || fail "the disk is not full: $(free) KiB"
id=00000000000000000000000000000036
case $(submit $id '"only":"fixtures"') in
507) has "$T/body" disk_full ;;
201)	wait_for 60 phase $id 'done' || fail "the job does not end on the fullest disk"
	ask "/v1/jobs/$id" >"$T/state.json"
	equal "incomplete disk_full" "$(field "$T/state.json" outcome) $(field "$T/state.json" reasonCode)" "a job on the fullest disk" ;;
*)	fail "submit on the fullest disk: $(cat "$T/body")" ;;
esac
equal 200 "$(code /v1/health)" "health on the fullest disk"

# Room again: it goes on, and what had ended before is still there.
rm "$state/filler"
mount -o remount,size=8m "$state"
id=00000000000000000000000000000037
equal 201 "$(submit $id '"only":"probe"')" "with room again"
wait_for 60 phase $id 'done' || fail "no end with room again"
ask "/v1/jobs/$id" >"$T/state.json"
equal skipped "$(field "$T/state.json" outcome)" "a job with room again"
equal 200 "$(code /v1/jobs/00000000000000000000000000000034/report)" "the first report"
stop_agent
start_agent
ask /v1/jobs/00000000000000000000000000000035 >"$T/state.json"
equal "done disk_full" "$(field "$T/state.json" state) $(field "$T/state.json" reasonCode)" "the full disk's job after a restart"
stop_agent

# The controller's own disk: what it can not store stays pending, and nothing is half there.
mkdir -p "$T/data"
start_agent
mount -t tmpfs -o size=100k none "$T/data" || exit "$bad"
trap 'stop_agent; umount "$state" "$T/data"' EXIT
controller run lab --only probe >"$T/out" 2>"$T/err"
status 6 $? "a controller with a full disk: $(cat "$T/err")"
mount -o remount,size=8m "$T/data"
case $(controller attach 2>"$T/err") in
*not_asked*) ;;
*) controller run lab --only probe >"$T/out" 2>"$T/err"; status 7 $? "with room again: $(cat "$T/err")" ;;
esac
controller ledger verify >"$T/out" 2>&1; status 0 $? "ledger verify: $(cat "$T/out")"
