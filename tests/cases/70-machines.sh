# Recorded machines (fixtures/machines): the real agent, its tools and libraries played by
# stand-ins.  What it says of each is that of expected.tsv, and never recordable.
[ -f "$bin/machine/libcuda.so.1" ] || skip "the stand-in libraries are not built: make machines"
mkdir -p "$T/tools"
for tool in nvidia-smi nvcc rocminfo hipcc vulkaninfo; do cp "$root/tests/fake/tool" "$T/tools/$tool"; done
machines=$root/fixtures/machines

# play MACHINE [NAME=VALUE...] COMMAND...: the command on that machine
play() {
	case $1 in /*) _m=$1 ;; *) _m=$machines/$1 ;; esac
	shift
	env VERIFY_MACHINE="$_m" LD_LIBRARY_PATH="$bin/machine" PATH="$T/tools:$PATH" "$@"
}
# variables NAME: those that were set on the machine
variables() {
	query "group_concat(e.key || '=' || e.value, ' ')" "$machines/$1/machine.json" "json_each(f.j, '\$.env') e"
}

rows=0
while IFS="$(printf '\t')" read -r name lane outcome reason class; do
	case $name in '' | \#*) continue ;; esac
	[ "$lane" != android ] || continue # by 73-phone, through adb
	rows=$((rows + 1))
	if [ ! -f "$bin/machine/libvulkan.so.1" ]; then
		case $lane in vulkan | windows-vulkan) continue ;; esac
	fi
	r=$T/$name-$lane.json
	# shellcheck disable=SC2046
	play "$name" $(variables "$name") timeout 120 "$bin/verify-agent" run "$lane" --only probe --state "$T/state" \
		--log-dir "$T/$name-$lane" --report "$r" >"$T/$name-$lane.out" 2>&1
	code=$?
	[ -f "$r" ] || { fail "$name: no report of the lane $lane"; continue; }
	[ $code -eq 3 ] || [ $code -eq 7 ] || fail "$name, $lane: exit $code"
	equal "$outcome $reason" "$(outcome "$r" device)" "$name, lane $lane"
	[ "$class" = - ] || equal "$class" "$(field "$r" device.class)" "class of $name"
	equal 1 "$(field "$r" simulated)" "$name says that it is simulated"
	equal 0 "$(field "$r" passRecordable)" "$name is not recordable"
	has "$r" "simulated: a recording played the machine"
	lacks "$T/$name-$lane.out" "RECORDABLE PASS"
done <"$machines/expected.tsv"
# The one log that the Vulkan runner kept, of every gate, under its name; the report names it.
log=$(find "$T/h200-vulkan" -name 'linux-vulkan-smoke-*.log')
case ${log##*/} in linux-vulkan-smoke-[0-9]*T[0-9]*Z.log) ;; *) fail "no linux-vulkan-smoke-STAMP.log: \"$log\"" ;; esac
cat "$T/h200-vulkan/linux-x64-vulkan-host.log" "$T/h200-vulkan/linux-x64-vulkan-device.log" \
	"$T/h200-vulkan/linux-x64-vulkan-toolchain.log" | cmp -s - "$log" || fail "the log of all gates"
sha=$(sha256sum "$log")
equal "${sha%% *}" "$(query "json_extract(a.value, '\$.sha256')" "$T/h200-vulkan.json" \
	"json_each(f.j, '\$.artifacts') a where json_extract(a.value, '\$.name') = '${log##*/}'")" "digest of the log of all gates"
[ -z "$(find "$T/h200-cuda" -name '*-smoke-*.log')" ] || fail "the cuda lane has such a log"
has "$T/hsa-override-rocm.json" "HSA_OVERRIDE_GFX_VERSION"
# Grace Hopper has two reports: the CUDA runner's is beside the first or where the variable says,
# and the first's signed statement names its digest.
# delegate FIRST SECOND
delegate() {
	[ -f "$2" ] || { fail "no second report $2"; return; }
	equal "gh200_runner.sh cuda_runner.sh $2" \
		"$(field "$1" runner) $(field "$1" requirements.delegatedRunner) $(field "$1" evidence.delegatedReport)" "the first report"
	equal "cuda_runner.sh  0" "$(field "$2" runner) $(field "$2" requirements.delegatedRunner) $(field "$2" passRecordable)" "the second report"
	equal "$(field "$1" nonce) $(field "$1" device.uuid)" "$(field "$2" nonce) $(field "$2" device.uuid)" "job and device of both"
	query "json_extract(j, '\$.payload')" "${1%.json}.dsse.json" | base64 -d >"$T/statement"
	sha=$(sha256sum "$2")
	equal "${sha%% *}" "$(query "json_extract(s.value, '\$.digest.sha256')" "$T/statement" \
		"json_each(f.j, '\$.subject') s where json_extract(s.value, '\$.name') = 'delegate.cuda.json'")" "the second report in the statement"
}
delegate "$T/gh200-gh200.json" "$T/gh200-gh200.cuda.json"
[ ! -e "$T/h200-cuda.cuda.json" ] || fail "the cuda lane has a second report"
play gh200 GH200_DELEGATE_REPORT="$T/second.report" timeout 120 "$bin/verify-agent" run gh200 --only probe --state "$T/state" \
	--log-dir "$T/delegate" --report "$T/first.report" >"$T/delegate.out" 2>&1
delegate "$T/first.report" "$T/second.report"
# A tool that can not be asked is no witness against the driver, and is said to be none.
has "$T/vulkaninfo-too-old-vulkan/linux-x64-vulkan-device.log" "toolchain_too_old: vulkaninfo is too old"
has "$T/moltenvk-mac-vulkan.out" "wrong_host: the vulkan lane is for linux-x64-vulkan; this host is Darwin"
has "$T/moltenvk-linux-lie-vulkan.out" "MoltenVK, which is no native Vulkan"
play windows-arm64 "$bin/verify-agent" run windows-arm64-cuda --only probe --state "$T/state" >"$T/out" 2>"$T/err"
status 2 $? "CUDA for Windows on Arm"
has "$T/err" "cuda_not_declared_for_target" "windows-vulkan"
[ $rows -ge 60 ] || fail "only $rows machines were played"
# Each refusal that was collected is a machine's answer: a text that its parser takes for none.
refusals=0
while IFS="$(printf '\t')" read -r file exit _; do
	case $file in
	# noise beside a list; the columns of busy-other-tenant are fewer than the agent asks for
	vulkaninfo-summary/llvmpipe-only.stderr.txt | nvidia-smi-query/busy-other-tenant.txt) continue ;;
	nvidia-smi-L/* | nvidia-smi-query/* | rocminfo/* | vulkaninfo-summary/*) ;;
	*) continue ;;
	esac
	agent parse "${file%%/*}" --exit "$exit" "$root/fixtures/probes/$file" >"$T/out" 2>&1 && continue
	refusals=$((refusals + 1))
	found=
	for f in "$machines"/*/*.txt; do ! cmp -s "$f" "$root/fixtures/probes/$file" || found=$f; done
	[ -n "$found" ] || fail "no machine answers as $file"
done <"$root/fixtures/probes/index.tsv"
[ $refusals -ge 15 ] || fail "only $refusals texts were refused"
# a folder without a row would be played by nobody
for m in "$machines"/*/; do
	m=${m%/}
	grep -q "^${m##*/}	" "$machines/expected.tsv" || fail "${m##*/} has no row in expected.tsv"
done

# A driver that hangs costs a child and its deadline, in every lane: all of them at once.
: >"$T/hung"
for lane in "h200 cuda" "mi300x-x8 rocm" "arc-llvmpipe vulkan"; do
	if [ ! -f "$bin/machine/libvulkan.so.1" ] && [ "${lane#* }" = vulkan ]; then continue; fi
	(
		play "${lane% *}" VERIFY_FAULT=hang timeout 200 "$bin/verify-agent" doctor "${lane#* }" >"$T/hang-${lane#* }.out" 2>&1
		echo "${lane#* } $?" >>"$T/hung"
	) &
	hanging="${hanging-} $!"
done
# A driver that crashes or floods costs a child.
for fault in "crash probe_crashed" "flood unknown_tool_format"; do
	play h200 VERIFY_FAULT="${fault% *}" timeout 120 "$bin/verify-agent" doctor cuda >"$T/doctor.out" 2>&1
	status 3 $? "doctor with a driver that would ${fault% *}"
	has "$T/doctor.out" "${fault#* }"
done
# shellcheck disable=SC2086
wait $hanging
while read -r lane code; do
	status 3 "$code" "doctor $lane with a driver that hangs"
	has "$T/hang-$lane.out" "probe_timeout" "did not answer in time"
done <"$T/hung"
[ "$(wc -l <"$T/hung")" -ge 2 ] || fail "no lane's driver hung"
gone "$bin/verify-agent probe nvml" || fail "a probe that hangs is left"
play h200 timeout 120 "$bin/verify-agent" doctor cuda >"$T/doctor.out" 2>&1
has "$T/doctor.out" "device     ready" "4 probes agree"
# What does not block, and is worth a word.
cp -r "$machines/h200" "$T/h200-anew"
sed -i 's/"persistence": true/"persistence": false/' "$T/h200-anew/nvml.json"
lacks "$T/doctor.out" "persistence mode is off"
play "$T/h200-anew" timeout 120 "$bin/verify-agent" doctor cuda >"$T/doctor.out" 2>&1
has "$T/doctor.out" "NVML: persistence mode is off" "nvidia-smi -pm 1"
# the second card by its UUID, and one that is not there
play h200-x2 timeout 120 "$bin/verify-agent" run cuda --only probe --device GPU-0000d200-1111-2222-3333-44444444d2ff \
	--state "$T/state" --log-dir "$T/absent" --report "$T/absent.json" >"$T/absent.out" 2>&1
status 3 $? "a device that is not there"
equal "blocked no_device" "$(outcome "$T/absent.json" device)" "a device that is not there"
# A slice that is not the first: CUDA shows it to whoever names it.
slice=$(query "json_extract(j, '\$.devices[4].uuid')" "$machines/h200-mig/nvml.json")
play h200-mig timeout 120 "$bin/verify-agent" run cuda --only probe --device "$slice" \
	--state "$T/state" --log-dir "$T/slice" --report "$T/slice.json" >"$T/slice.out" 2>&1
equal "pass none" "$(outcome "$T/slice.json" device)" "the fourth slice"
equal "$slice" "$(field "$T/slice.json" device.uuid)" "the fourth slice by its UUID"
second=$(query "json_extract(j, '\$.devices[1].uuid')" "$machines/h200-x2/nvml.json")
play h200-x2 timeout 120 "$bin/verify-agent" run cuda --only probe --device "$second" \
	--state "$T/state" --log-dir "$T/second" --report "$T/second.json" >"$T/second.out" 2>&1
status 7 $? "the second card"
equal "$second" "$(field "$T/second.json" device.uuid)" "the second card by its UUID"
# The kernels, played for that card: its own name and UUID stand in the harness's output.
play h200-x2 timeout 240 "$bin/verify-agent" run cuda --only fixtures --device "$second" \
	--state "$T/state" --log-dir "$T/fixtures" --report "$T/fixtures.json" >"$T/fixtures.out" 2>&1
if grep -q "cuda_code_missing\|no code for the device" "$T/fixtures.out"; then
	echo "    skipped: the fixtures of a simulated card need nvcc"
else
	equal "pass none" "$(outcome "$T/fixtures.json" fixtures)" "the kernels on the second card"
	equal 1 "$(field "$T/fixtures.json" simulated)" "the fixtures say that they were simulated"
fi

# A simulated run comes back over HTTP, is judged, and no ledger takes it.
model
VERIFY_MACHINE=$machines/h200 LD_LIBRARY_PATH=$bin/machine PATH=$T/tools:$PATH
export VERIFY_MACHINE LD_LIBRARY_PATH PATH
start_agent
unset VERIFY_MACHINE LD_LIBRARY_PATH
controller run lab --lane cuda --suite llama.cpp --only probe --json >"$T/run.json" 2>"$T/err"
status 4 $? "the controller's run on a simulated machine"
cat "$T/run.json" >>"$T/err"
has "$T/err" "played from a recorded machine"
controller runs --json >"$T/runs.json"
equal 0 "$(query "json_array_length(j)" "$T/runs.json")" "runs in the ledger"
stop_agent
