# Whole lanes on recorded machines: host, device, toolchain, model, source, a build that cmake
# and ninja really do (of the stand-in engine, tests/fake/engine), the kernels played on the
# CPU, and what an engine printed on that machine, judged.  Every such report says simulated.
# lists of gates, and rows of a machine and its engine, are split on purpose
# shellcheck disable=SC2086
[ -f "$bin/machine/libamdhip64.so" ] || skip "the stand-in libraries are not built: make machines"
for tool in cmake ninja cc c++ git iconv; do
	command -v $tool >/dev/null || skip "no $tool"
done
machines=$root/fixtures/machines
host=$(uname -m)
mkdir -p "$T/tools" "$T/sdk/include/vulkan"
for tool in nvidia-smi nvcc rocminfo hipcc vulkaninfo glslc; do cp "$root/tests/fake/tool" "$T/tools/$tool"; done
cp -r "$root/tests/fake/engine" "$T/engine"
# Headers that are new enough, and the shader compiler of that SDK: by their looks alone, for
# nothing here compiles against them.
cat >"$T/sdk/include/vulkan/vulkan_core.h" <<'END'
/* A stand-in (simulated). */
#define VK_HEADER_VERSION 290
#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION)
/* VkScopeKHR VkLayerSettingsCreateInfoEXT VkPhysicalDeviceCooperativeMatrixFeaturesKHR VkPipelineCreateFlagBits2 */
END
printf '#!/bin/sh\necho "shaderc v2024.1 (simulated)"\n' >"$T/tools/glslc"
chmod +x "$T/tools/glslc"
model

# lane MACHINE LANE SUITE [NAME=VALUE...]: the whole lane; its report is $r, its exit code $code
lane() {
	_m=$machines/$1 _lane=$2 _suite=$3
	r=$T/$1-$2-$3.json
	name="$1 on the lane $2, suite $3"
	shift 3
	env VERIFY_MACHINE="$_m" LD_LIBRARY_PATH="$bin/machine" PATH="$T/tools:$PATH" VULKAN_SDK="$T/sdk" "$@" \
		timeout 300 "$bin/verify-agent" run "$_lane" --suite "$_suite" --source "$T/engine" --model "$MODEL" \
		--state "$T/state" --log-dir "${r%.json}" --report "$r" >"${r%.json}.out" 2>&1
	code=$?
	[ -f "$r" ] || { fail "$name: no report (exit $code)"; return 1; }
	equal "1 0" "$(field "$r" simulated) $(field "$r" passRecordable)" "$name: simulated, not recordable"
	lacks "${r%.json}.out" "RECORDABLE PASS"
}
# gates WANTED GATE...
gates() {
	_want=$1
	shift
	for _g; do equal "$_want" "$(outcome "$r" "$_g")" "$name: $_g"; done
}
before="host device toolchain model source build"
stock="graph-smoke/f16 graph-smoke/q8_0 graph-smoke/q4_0 graph-smoke/q5_1 graph-smoke/iq4_nl"
# smokes PREFIX: each stock family says that its cache was on such a device
smokes() {
	equal 0 "$(query "count(*)" "$r" "json_each(f.j, '\$.smokes') s where json_extract(s.value, '\$.kvDevice') not glob '$1*'")" \
		"$name: caches elsewhere than on $1"
	equal 7 "$(query "json_array_length(j, '\$.smokes')" "$r")" "$name: families"
}

if [ "$host" = x86_64 ]; then
	if lane h200 cuda llama.cpp; then
		gates "pass none" $before fixtures op-parity $stock
		smokes CUDA0
		has "${r%.json}/linux-x64-cuda-build.log" "code=libggml-cuda.so sm_90a x1"
	fi
	# The fork, as it was measured on the real device.
	if lane h200 cuda eliza-1 VERIFY_ENGINE=engine-fork; then
		status 1 "$code" "$name"
		gates "pass none" build fixtures graph-smoke/baseline
		gates "fail op_on_cpu" graph-smoke/turbo3 graph-smoke/turbo4
		gates "fail op_not_supported" graph-smoke/turbo3_tcq graph-smoke/qjl graph-smoke/polar
		gates "blocked no_case_executed" op-parity
	fi
	# A drafter below the current folder is that file for the engine, too, which runs elsewhere.
	cp "$MODEL" "$T/drafter.gguf"
	if lane h200 cuda eliza-1-gemma VERIFY_ENGINE=engine-speculation ELIZA_MTP_SMOKE_DRAFT_MODEL=drafter.gguf; then
		[ "$(outcome "$r" mtp)" != "pass none" ] || fail "$name: speculation that nobody recorded passes"
		has "${r%.json}/linux-x64-cuda-mtp.log" "draftModel=$T/drafter.gguf" "\"-md\",\"$T/drafter.gguf\""
	fi
	for machine in mi300x-x8 mi250x rx7900-igpu; do
		lane $machine rocm llama.cpp || continue
		gates "pass none" $before fixtures op-parity $stock
		smokes ROCm0
	done
	has "$T/mi300x-x8-rocm-llama.cpp/linux-x64-rocm-build.log" "code=libggml-hip.so gfx942 x1"
	# A stock engine has none of eliza-1's cache types.
	if lane mi250x rocm eliza-1; then
		gates "blocked family_not_in_build" graph-smoke/turbo3 graph-smoke/qjl
	fi
	for row in "rx7900-radv engine" "h200 engine-vulkan"; do
		[ -f "$bin/machine/libvulkan.so.1" ] || { echo "    skipped: ${row% *} through Vulkan"; continue; }
		lane ${row% *} vulkan llama.cpp VERIFY_ENGINE="${row#* }" || continue
		gates "pass none" $before op-parity $stock
		smokes Vulkan0
		# the stand-in computes with the host's own Vulkan device, where there is one
		case $(outcome "$r" fixtures) in
		"pass none") ;;
		"blocked no_device") echo "    skipped: the shaders of ${row% *}: no Vulkan device computes here" ;;
		*) fail "$name: fixtures $(outcome "$r" fixtures)" ;;
		esac
	done
	if [ -f "$bin/machine/libvulkan.so.1" ] && lane llvmpipe-only vulkan llama.cpp; then
		status 3 "$code" "$name"
		gates "blocked software_device" device
		gates "blocked depends_on" fixtures op-parity graph-smoke/f16
	fi
	# An engine that ran on another device than the recorded one is no witness.
	if lane h200-x2 cuda llama.cpp VERIFY_ENGINE=../mi300x-x8/engine; then
		[ "$code" -ne 7 ] || fail "$name: an engine of another machine passes"
		gates "fail kv_not_on_device" graph-smoke/f16 graph-smoke/q8_0
	fi
fi

# aarch64: the class is by the recorded host's userspace; the engine that this host's compiler
# makes is for this host, which the build says where they differ.
if lane gh200 gh200 llama.cpp; then
	gates "pass none" host device toolchain model source fixtures
	equal linux-aarch64-cuda "$(field "$r" target)" "$name: target"
	if [ "$host" = aarch64 ]; then
		gates "pass none" build op-parity graph-smoke/f16
	else
		gates "fail artifact_wrong_machine" build
		gates "blocked depends_on" op-parity graph-smoke/f16
	fi
fi

# Windows: up to the build, which makes programs for this host and says so.
for row in "windows-rtx windows-cuda windows-x64-cuda" "windows-rtx windows-vulkan windows-x64-vulkan" \
	"windows-rtx windows-cpu windows-x64-cpu" "windows-arm64 windows-vulkan windows-arm64-vulkan"; do
	lane_name=${row#* } target=${row##* }
	lane_name=${lane_name% *}
	case $lane_name in
	windows-vulkan) [ -f "$bin/machine/libvulkan.so.1" ] || { echo "    skipped: ${row%% *} through Vulkan"; continue; } ;;
	esac
	lane ${row%% *} $lane_name llama.cpp || continue
	status 1 "$code" "$name"
	gates "pass none" host device toolchain model source
	gates "fail artifact_wrong_machine" build
	gates "blocked depends_on" graph-smoke/f16 graph-smoke/q8_0
	equal "$target" "$(field "$r" target)" "$name: target"
	has "${r%.json}.out" "llama-completion is an ELF file for" "$target needs programs of Windows" "run this lane on a Windows host"
done
# What an engine prints there, with the line ends of Windows and as PowerShell's > writes it,
# judged offline.
mkdir -p "$T/windows"
for program in llama-completion test-backend-ops; do
	"${CC:-cc}" -D_GNU_SOURCE -o "$T/windows/$program" "$root/tests/fake/engine/answer.c" || fail "the stand-in engine compiles"
done
# forms FILE: its other form beside it; bytes that are no UTF-8 are left away
forms() { { printf '\377\376'; iconv -c -f UTF-8 -t UTF-16LE "$1"; } >"$1.utf16"; }
while read -r machine engine lane_name type outcome words; do
	log=$T/windows/$machine-$lane_name-$type.log
	VERIFY_MACHINE=$machines/$machine VERIFY_ENGINE=$engine "$T/windows/llama-completion" --cache-type-k "$type" 2>"$log" ||
		fail "$machine: the engine with $type"
	has "$log" "$(printf '\r')" "simulated engine"
	forms "$log"
	for form in "$log" "$log.utf16"; do
		controller appraise -l "$lane_name" -s llama.cpp -t "$type" --json "$form" >"$T/out" 2>"$T/err"
		equal "$outcome" "$(field "$T/out" outcome)" "${form##*/}"
		has "$T/out" "$words"
		lacks "$T/out" '\r'
	done
done <<'END'
windows-rtx engine windows-cuda q8_0 pass CUDA0
windows-rtx engine windows-cuda f16 pass CUDA0
windows-rtx engine windows-cpu q8_0 fail kv_not_on_device
windows-rtx engine windows-vulkan q8_0 fail kv_not_on_device
windows-rtx engine-vulkan windows-vulkan q5_1 pass Vulkan0
windows-rtx engine-vulkan windows-cuda q5_1 fail kv_not_on_device
windows-arm64 engine windows-vulkan q4_0 pass Vulkan0
END
for row in "windows-rtx engine CUDA0" "windows-arm64 engine Vulkan0"; do
	machine=${row%% *} op=$T/windows/${row%% *}-ops.txt
	VERIFY_MACHINE=$machines/$machine VERIFY_ENGINE=engine "$T/windows/test-backend-ops" test -o SET_ROWS -b ${row##* } >"$op"
	forms "$op"
	for form in "$op" "$op.utf16"; do
		agent parse test-backend-ops "$form" >"$T/out" 2>"$T/err"
		status 0 $? "${form##*/}"
		has "$T/out" "${row##* }"
		lacks "$T/out" '\r'
	done
done
# The same bytes through a whole lane: the same card under WSL, where programs of Windows run too.
if [ "$host" = x86_64 ] && lane wsl-rtx cuda llama.cpp VERIFY_ENGINE=../windows-rtx/engine; then
	gates "pass none" $before fixtures op-parity $stock
	smokes CUDA0
	grep -q "$(printf '\r')" "${r%.json}/linux-x64-cuda-op-parity.log" || fail "$name: no line ends of Windows"
fi

# The whole simulated run through the daemon: judged again by the controller, refused by the
# ledger.
if [ "$host" = x86_64 ]; then
	VERIFY_MACHINE=$machines/h200 LD_LIBRARY_PATH=$bin/machine PATH=$T/tools:$PATH
	export VERIFY_MACHINE LD_LIBRARY_PATH PATH
	start_agent
	unset VERIFY_MACHINE LD_LIBRARY_PATH
	controller run lab --lane cuda --suite llama.cpp --model "$MODEL" --source "$T/engine" --json >"$T/run.json" 2>"$T/err"
	status 4 $? "the controller's run of a whole simulated lane"
	cat "$T/run.json" >>"$T/err"
	has "$T/err" "played from a recorded machine"
	controller runs --json >"$T/runs.json"
	equal 0 "$(query "json_array_length(j)" "$T/runs.json")" "runs in the ledger"
	stop_agent
fi
