# verify-agent record: a host, real or played, becomes a folder whose replay says of the
# device what the host said, with none of its ids.
[ -f "$bin/machine/libcuda.so.1" ] || skip "the stand-in libraries are not built: make machines"
mkdir -p "$T/tools" "$T/new"
for tool in nvidia-smi nvcc rocminfo hipcc vulkaninfo; do cp "$root/tests/fake/tool" "$T/tools/$tool"; done
machines=$root/fixtures/machines

# play FOLDER [NAME=VALUE...] COMMAND...: the command on the machine of a folder
play() {
	_m=$1
	shift
	env VERIFY_MACHINE="$_m" LD_LIBRARY_PATH="$bin/machine" PATH="$T/tools:$PATH" "$@"
}
variables() { query "group_concat(e.key || '=' || e.value, ' ')" "$1/machine.json" "json_each(f.j, '\$.env') e"; }
# verdict FOLDER LANE: outcome, reason and class of the lane's device gate on that machine
verdict() {
	rm -rf "$T/r.json" "$T/logs"
	# shellcheck disable=SC2046
	play "$1" $(variables "$1") timeout 120 "$bin/verify-agent" run "$2" --only probe --state "$T/state" \
		--log-dir "$T/logs" --report "$T/r.json" >"$T/run.out" 2>&1
	[ -f "$T/r.json" ] || { cat "$T/run.out"; return 1; }
	echo "$(outcome "$T/r.json" device) $(field "$T/r.json" device.class)"
}
# ids FOLDER: every id of its files
ids() {
	grep -rhoiE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|GPU-[0-9a-f]{16}' "$1" | grep -v '^00000000-0000-0000-0000-000000000000$' | sort -u
	find "$1" -name properties -exec sed -n 's/^unique_id \([1-9][0-9]*\)$/\1/p' {} + | sort -u
}

# Every machine of the table: recorded while it is played.
rows=0
while IFS="$(printf '\t')" read -r name lane outcome reason class; do
	case $name in '' | \#*) continue ;; esac
	[ "$lane" != android ] || continue
	# some of each kind are enough for a recording; all of them are played by 70-machines
	case $name in
	h200 | h200-x2 | h200-mig | gh200 | a100-mig-r450 | a100-mig-no-instance | driver-mismatch | fabric-manager | gpu-lost | \
	vgpu | mi300x-x8 | rx7900-igpu | kfd-permission | wsl-rx7900 | arc-llvmpipe | adreno-phone | llvmpipe-only | \
	vulkan-no-driver | probes-disagree | mig-in-container-denied | gb10 | vulkaninfo-too-old | moltenvk-linux-lie | mi210-xnack) ;;
	*) continue ;;
	esac
	if [ ! -f "$bin/machine/libvulkan.so.1" ] && [ "$lane" = vulkan ]; then continue; fi
	rows=$((rows + 1))
	if [ ! -d "$T/new/$name" ]; then
		# shellcheck disable=SC2046
		play "$machines/$name" $(variables "$machines/$name") timeout 120 "$bin/verify-agent" record "$T/new/$name" \
			>"$T/record.out" 2>&1 || { fail "record of $name"; cat "$T/record.out"; continue; }
		has "$T/record.out" "ids replaced" "machine.json"
		ids "$machines/$name" >"$T/ids"
		while read -r id; do
			! grep -rqiF -- "$id" "$T/new/$name" || fail "$name: the id $id is left"
		done <"$T/ids"
		! grep -rqi -- "$(uname -n | grep ... || echo no-such-name)" "$T/new/$name" || fail "$name: the host's name is left"
	fi
	got=$(verdict "$T/new/$name" "$lane")
	equal "$outcome $reason $([ "$class" = - ] || echo "$class")" "$got" "$name recorded, lane $lane"
done <"$machines/expected.tsv"
[ $rows -ge 25 ] || fail "only $rows rows were recorded"
# one id in three sources, and two cards that are two
first=$(query "json_extract(j, '\$.devices[0].uuid')" "$T/new/h200-x2/nvml.json")
second=$(query "json_extract(j, '\$.devices[1].uuid')" "$T/new/h200-x2/nvml.json")
has "$T/new/h200-x2/nvidia-smi-L.txt" "$first" "$second"
has "$T/new/h200-x2/nvidia-smi-query-gpu.txt" "$first" "$second"
has "$T/new/h200-x2/cuda.json" "$first" "$second"
[ "$first" != "$second" ] || fail "two cards became one"

# This host as it is: the same conclusion on each of its lanes.
agent record "$T/here" --title "the host of the tests" >"$T/record.out" 2>&1 || { fail "record of this host"; cat "$T/record.out"; }
has "$T/here/machine.json" "the host of the tests" '"absent"'
! grep -rqi -- "$(cat /proc/sys/kernel/random/boot_id)" "$T/here" || fail "the boot id is left"
for lane in cuda rocm vulkan; do
	rm -rf "$T/r.json" "$T/logs"
	agent run $lane --only probe --state "$T/state" --log-dir "$T/logs" --report "$T/r.json" >"$T/run.out" 2>&1
	want="$(outcome "$T/r.json" device) $(field "$T/r.json" device.class)"
	equal "$want" "$(verdict "$T/here" $lane)" "this host recorded, lane $lane"
done

# Drivers and tools that hang, crash or flood: one child each, told, and played again.
faults=$T/faults
cp -R "$machines/h200" "$faults"
printf 'nvidia-smi\t-L\tnvidia-smi-L.txt\thang\tstdout\nnvidia-smi\t--query-gpu=*\tnvidia-smi-query-gpu.txt\tsig11\tstdout\nnvcc\t--version\tnvcc-version.txt\tflood\tstdout\n' >"$faults/tools.tsv"
play "$faults" VERIFY_FAULT=crash timeout 120 "$bin/verify-agent" record "$T/new/faults" --timeout 8 >"$T/record.out" 2>&1
status 0 $? "faults are recorded"
has "$T/record.out" "timed out" "signal 11" "floods" "crash"
has "$T/new/faults/tools.tsv" "nvidia-smi-L.txt	hang" "sig11" "flood"
equal crash "$(query "json_extract(j, '\$.fault')" "$T/new/faults/nvml.json")" "a driver that crashes"
equal "blocked probe_crashed " "$(verdict "$T/new/faults" cuda)" "its replay"

# What is there stays; what is stopped leaves nothing.
agent record "$T/here" >"$T/out" 2>"$T/err"; status 2 $? "a folder that is not empty"
has "$T/err" "is not empty" "hint:"
agent record "$root/Makefile" >"$T/out" 2>"$T/err"; status 2 $? "a file is no folder"
mkdir "$T/empty"
agent record "$T/empty" >"$T/out" 2>&1 || fail "an empty folder is taken"
agent record >"$T/out" 2>"$T/err"; status 2 $? "a folder is wanted"
agent record --help >"$T/out" || fail "--help"
has "$T/out" "--timeout" "VERIFY_MACHINE"
mkdir "$T/stop"
env VERIFY_MACHINE="$faults" LD_LIBRARY_PATH="$bin/machine" PATH="$T/tools:$PATH" "$bin/verify-agent" record "$T/stop/it" >"$T/out" 2>"$T/err" &
pid=$!
sleep 2
kill -TERM $pid
wait $pid
status 6 $? "stopped by a signal"
has "$T/err" "nothing was written"
[ -z "$(ls -A "$T/stop")" ] || fail "something is left of a recording that was stopped"
