# The android lane through the real adb client and a loopback stand-in for the phone's end
# (tests/fake/adbd.c).  No NDK and no phone is here: the compiler of the NDK and the
# verifier's numbers are stand-ins, which the phone says of itself (ro.verify.simulated).
# what the stand-ins' shells expand stays in single quotes
# shellcheck disable=SC2016
command -v adb >/dev/null || skip "adb is not installed"

"${CC:-cc}" -std=c17 -D_GNU_SOURCE -O1 -o "$T/adbd" "$root/tests/fake/adbd.c" || fail "the stand-in compiles"
phone=$T/phone out=$T/out ndk=$T/ndk
mkdir -p "$phone/bin" "$phone/data/local/tmp" "$out" "$ndk/build/cmake" \
	"$ndk/toolchains/llvm/prebuilt/linux-x86_64/bin" "$ndk/shader-tools/linux-x86_64"
echo 'cat "$PHONE_ROOT/getprop.txt"' >"$phone/bin/getprop"
echo 'cat "$PHONE_ROOT/vkjson.txt"' >"$phone/bin/cmd"
echo 'cat "$PHONE_ROOT/verifier.json"; exit $(cat "$PHONE_ROOT/verifier.exit")' >"$phone/bin/vulkan-verify"
touch "$ndk/build/cmake/android.toolchain.cmake"
echo 'echo "Android (1234, based on r5) clang version 17.0.2"' \
	>"$ndk/toolchains/llvm/prebuilt/linux-x86_64/bin/aarch64-linux-android28-clang"
echo 'echo "shaderc v2023.6 v2023.6"' >"$ndk/shader-tools/linux-x86_64/glslc"
for f in "$phone"/bin/* "$ndk"/toolchains/llvm/prebuilt/linux-x86_64/bin/* "$ndk"/shader-tools/linux-x86_64/*; do
	{ echo '#!/bin/sh'; cat "$f"; } >"$f.new" && mv "$f.new" "$f" && chmod +x "$f"
done
# a file for the phone's processor, which nobody executes
cp "$bin/vulkan-verify" "$out/vulkan-verify"
printf '\267' | dd of="$out/vulkan-verify" bs=1 seek=18 conv=notrunc 2>/dev/null
cp "$root"/build/device/*.spv "$out/" 2>/dev/null || skip "no shaders: glslc or Vulkan's headers are missing"

cat >"$T/getprop.good" <<'END'
[ro.board.platform]: [kalama]
[ro.build.fingerprint]: [Xiaomi/fuxi/fuxi:14/UKQ1.230804.001/V816:user/release-keys]
[ro.build.version.release]: [14]
[ro.hardware]: [qcom]
[ro.hardware.egl]: [adreno]
[ro.hardware.vulkan]: [adreno]
[ro.product.cpu.abi]: [arm64-v8a]
[ro.product.device]: [fuxi]
[ro.product.manufacturer]: [Xiaomi]
[ro.product.model]: [2211133C]
[ro.verify.simulated]: [stand-in]
END
cat >"$phone/vkjson.txt" <<'END'
{"devices":[{"properties":{"apiVersion":4206720,"deviceName":"Adreno (TM) 740","deviceType":1,"vendorID":20803},
"VK_KHR_driver_properties":{"driverPropertiesKHR":{"driverID":8,"driverName":"Qualcomm","driverInfo":"Build: 0123abcdef"}}}]}
END
cp "$T/getprop.good" "$phone/getprop.txt"
kernels=$(tr -d '\n' <"$root/fixtures/suites/eliza-1.json" | sed 's/.*"fixtures": *\[\([^]]*\)\].*/\1/; s/[" ]//g')
"$bin/vulkan-verify" --software --json --only "$kernels" 2>/dev/null |
	sed 's/"software":\t*true/"software":false/; s/"name":\t*"llvmpipe[^"]*"/"name":"Adreno (TM) 740"/' >"$phone/verifier.json"
grep -q '"software":false' "$phone/verifier.json" || skip "no Vulkan device, not even a software one, that could compute"
echo 0 >"$phone/verifier.exit"

port=$((20000 + $$ % 20000))
export ANDROID_ADB_SERVER_PORT="$((port + 1))" ANDROID_NDK_HOME="$ndk" ELIZA_ANDROID_VULKAN_OUT_DIR="$out"
adbd_pid=
phone_start() {
	"$T/adbd" "$port" "$phone" "$@" 2>"$T/adbd.log" &
	adbd_pid=$!
	serial=127.0.0.1:$port
	wait_for 10 sh -c "timeout 5 adb connect $serial | grep -q '^connected'" || fail "adb connects"
}
phone_stop() {
	timeout 5 adb disconnect >/dev/null 2>&1
	kill $adbd_pid 2>/dev/null
	wait $adbd_pid 2>/dev/null
}
n=0
# phone_run WANTED_EXIT [OPTION...]: one run of the lane; the report is $r
phone_run() {
	n=$((n + 1)); r=$T/r$n.json
	_want=$1; shift
	agent run android --state "$T/state" --log-dir "$T/logs$n" --report "$r" "$@" >"$T/run$n.out" 2>&1
	status "$_want" $? "run $n of the phone"
}

phone_start
phone_run 3
equal "pass none" "$(outcome "$r" device)" "a phone is a device"
equal "pass none" "$(outcome "$r" toolchain)" "the NDK is found"
equal "pass none" "$(outcome "$r" fixtures)" "the checks ran on the phone"
equal "android-arm64-vulkan/adreno-740/qualcomm-proprietary" "$(field "$r" device.class)" "class of the phone"
equal "$serial" "$(field "$r" device.uuid)" "serial of the phone"
ls "$phone/data/local/tmp/eliza-kernels/vulkan-verify" "$phone/data/local/tmp/eliza-kernels/turbo3.spv" \
	"$phone/data/local/tmp/eliza-kernels/turbo3.json" >/dev/null || fail "files were pushed"

# one sign is enough
echo '[ro.hardware]: [ranchu]' >>"$phone/getprop.txt"
sed -i '/\[ro.hardware\]: \[qcom\]/d' "$phone/getprop.txt"
phone_run 3 --only probe
equal "blocked emulator" "$(outcome "$r" device)" "an emulator is refused"
# let through to be looked at, it is named, and what is seen of it is never recorded
ELIZA_ALLOW_SOFTWARE_VULKAN=1 phone_run 3 --only probe
equal "blocked emulator" "$(outcome "$r" device)" "software that is allowed is no emulator that is"
ELIZA_ALLOW_ANDROID_EMULATOR_VULKAN=1 phone_run 7 --only probe
equal "pass none" "$(outcome "$r" device)" "an emulator that is allowed"
equal "1 0" "$(field "$r" device.emulator) $(field "$r" passRecordable)" "an emulator that is allowed"
has "$r" "an emulator, not a phone"
cp "$T/getprop.good" "$phone/getprop.txt"

echo 1 >"$phone/verifier.exit"
phone_run 1 --only fixtures
equal "fail harness_crashed" "$(outcome "$r" fixtures)" "a pass in words with exit 1 is none"
echo 0 >"$phone/verifier.exit"

sed 's/"maxAbsDiff":\t*[0-9.e-]*/"maxAbsDiff":0.5/' "$phone/verifier.json" >"$T/bad.json"
cp "$phone/verifier.json" "$T/good.json"; cp "$T/bad.json" "$phone/verifier.json"
phone_run 1 --only fixtures
equal "fail fixture_mismatch" "$(outcome "$r" fixtures)" "numbers that differ are no pass"
cp "$T/good.json" "$phone/verifier.json"
phone_stop

# adb shell of an old phone exits 0 whatever happens; the marker tells
phone_start old
echo 3 >"$phone/verifier.exit"
phone_run 1 --only fixtures
equal "fail harness_crashed" "$(outcome "$r" fixtures)" "the exit code comes from the marker"
echo 0 >"$phone/verifier.exit"
phone_stop

phone_start cut
phone_run 3 --only probe
equal "blocked probe_unreadable" "$(outcome "$r" device)" "a cut-off answer is none"
phone_stop

phone_start corrupt
phone_run 3 --only fixtures
equal "blocked push_mismatch" "$(outcome "$r" fixtures)" "what arrived damaged is not run"
phone_stop

phone_run 3 --only probe
equal "blocked no_device" "$(outcome "$r" device)" "no phone, no pass"
ANDROID_SERIAL=0123456789 phone_run 3 --only probe
equal "blocked no_device" "$(outcome "$r" device)" "a serial that is not listed"
timeout 5 adb kill-server 2>/dev/null
