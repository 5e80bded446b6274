# An engine that was built elsewhere runs only when both variables say so and a
# CAPABILITIES.json stands beside it; a foreign or damaged one does not run at all.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
engine=$T/engine
cp -r "$ENGINE_BIN" "$engine"
# refused REASON TEXT [VARIABLE=VALUE...]
refused() {
	reason=$1 text=$2
	shift 2
	env "$@" timeout 60 "$bin/verify-agent" run cpu --suite llama.cpp --only smoke --model "$MODEL" --prebuilt "$engine" --report "$T/r.json" >"$T/out" 2>"$T/err"
	status 3 $? "$reason, $text: $(cat "$T/err")"
	equal "blocked $reason" "$(outcome "$T/r.json" build)" "build with $* ($text)"
	equal "blocked depends_on" "$(outcome "$T/r.json" graph-smoke/q8_0)" "the smoke after that"
	has "$T/err" "$text"
	lacks "$T/out" PASS
}
both="ELIZA_MTP_SKIP_BUILD=1 ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE=1"
refused prebuilt_refused ELIZA_MTP_SKIP_BUILD -u ELIZA_MTP_SKIP_BUILD
refused prebuilt_refused ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE -u ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE
refused prebuilt_refused ELIZA_MTP_ -u ELIZA_MTP_SKIP_BUILD -u ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE
refused prebuilt_refused ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE=yes
# shellcheck disable=SC2086
set -- $both
mv "$engine/CAPABILITIES.json" "$T/caps"
refused prebuilt_refused CAPABILITIES.json "$@"
sed 's/"target": "[^"]*"/"target": "linux-riscv-cuda"/' "$T/caps" >"$engine/CAPABILITIES.json"
refused prebuilt_refused "is for linux-riscv-cuda" "$@"
sed 's/"binaries": .*/"binaries": ["llama-server"],/' "$T/caps" >"$engine/CAPABILITIES.json"
refused prebuilt_refused "does not name llama-completion" "$@"
echo '{"target": "linux", "target": "windows"}' >"$engine/CAPABILITIES.json"
refused prebuilt_refused "duplicate key" "$@"
cp "$T/caps" "$engine/CAPABILITIES.json"
mv "$engine/llama-completion" "$T/program"
refused prebuilt_refused llama-completion "$@"
# A program of another machine is not this host's engine.
{ head -c 18 "$T/program"; printf '\363\000'; tail -c +21 "$T/program"; } >"$engine/llama-completion"
chmod +x "$engine/llama-completion"
refused stale_binary llama-completion "$@"
cp "$T/program" "$engine/llama-completion"
mkdir -p "$T/tree/ggml" "$T/tree/include"
echo "project(other)" >"$T/tree/CMakeLists.txt"; echo >"$T/tree/include/llama.h"
env "$@" "$bin/verify-agent" run cpu --suite llama.cpp --only smoke --model "$MODEL" --prebuilt "$engine" --source "$T/tree" --report "$T/r.json" >"$T/out" 2>"$T/err"
status 3 $? "an engine of another source"
equal "blocked stale_binary" "$(outcome "$T/r.json" build)" "an engine of another source"

# The Vulkan runner's own variable for such a folder; other lanes do not read it.
if [ "$(uname -m)" = x86_64 ]; then
	env "$@" ELIZA_MTP_BIN_DIR="$T/managed" ELIZA_MTP_VULKAN_BIN_DIR="$T/given" "$bin/verify-agent" run vulkan --only build --report "$T/r.json" >"$T/out" 2>"$T/err"
	equal "blocked prebuilt_refused" "$(outcome "$T/r.json" build)" "an engine that ELIZA_MTP_VULKAN_BIN_DIR names"
	has "$T/err" "$T/given/CAPABILITIES.json"
	env "$@" ELIZA_MTP_BIN_DIR="$T/managed" ELIZA_MTP_VULKAN_BIN_DIR="$T/given" "$bin/verify-agent" run cpu --only build --report "$T/r.json" >"$T/out" 2>"$T/err"
	has "$T/err" "$T/managed/CAPABILITIES.json"
fi

# And when all is right it runs.
env "$@" "$bin/verify-agent" run cpu --suite llama.cpp --only smoke --set cacheTypes=f16 --model "$MODEL" --prebuilt "$engine" --report "$T/r.json" >"$T/out" 2>"$T/err"
status 7 $? "the copy runs: $(cat "$T/err")"
equal "skipped prebuilt_engine" "$(outcome "$T/r.json" build)" "build"
equal "pass none" "$(outcome "$T/r.json" graph-smoke/f16)" "f16"
