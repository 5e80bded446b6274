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
# a stand-in that says so, beside what was recorded
echo 'cat "$PHONE_ROOT/getprop.txt"; echo "[ro.verify.simulated]: [stand-in]"' >"$phone/bin/getprop"
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

machines=$root/fixtures/machines
# recorded MACHINE: the phone answers as that one did
recorded() { cp "$machines/$1/getprop.txt" "$machines/$1/vkjson.txt" "$phone/"; }
recorded adreno-phone
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
equal "$serial" "$(field "$r" device.uuid)" "serial of the phone"
ls "$phone/data/local/tmp/eliza-kernels/vulkan-verify" "$phone/data/local/tmp/eliza-kernels/turbo3.spv" \
	"$phone/data/local/tmp/eliza-kernels/turbo3.json" >/dev/null || fail "files were pushed"

# Every phone and emulator that was recorded (rows of the lane android of expected.tsv).
rows=0
while IFS="$(printf '\t')" read -r name lane want reason class; do
	[ "$lane" = android ] || continue
	rows=$((rows + 1))
	recorded "$name"
	phone_run "$([ "$want" = pass ] && echo 7 || echo 3)" --only probe
	equal "$want $reason" "$(outcome "$r" device)" "$name"
	[ "$class" = - ] || equal "$class" "$(field "$r" device.class)" "class of $name"
	equal 0 "$(field "$r" passRecordable)" "$name is not recordable"
	has "$r" "simulated: a recording played the machine"
	equal 1 "$(field "$r" simulated)" "$name says that it is simulated"
done <"$machines/expected.tsv"
[ $rows -ge 3 ] || fail "only $rows phones were recorded"

# One sign is enough: each property of the emulator on a phone that is none otherwise, and its
# graphics.  What real phones say too is no sign.
signs=0
while IFS= read -r line; do
	key=${line%%]*}]
	case $key in '[ro.build.version.release]' | '[ro.product.cpu.abi]' | '[ro.product.manufacturer]') continue ;; esac
	signs=$((signs + 1))
	recorded adreno-phone
	grep -vF "$key:" "$machines/adreno-phone/getprop.txt" >"$phone/getprop.txt"
	echo "$line" >>"$phone/getprop.txt"
	phone_run 3 --only probe
	equal "blocked emulator" "$(outcome "$r" device)" "a phone with $line"
	key=${key#?}
	has "$T/run$n.out" "is an emulator: ${key%?} is "
done <"$machines/android-emulator/getprop.txt"
[ $signs -ge 10 ] || fail "the emulator has $signs signs"
recorded adreno-phone
cp "$machines/android-emulator/vkjson.txt" "$phone/vkjson.txt"
phone_run 3 --only probe
equal "blocked emulator" "$(outcome "$r" device)" "a phone with the graphics of an emulator"
has "$T/run$n.out" "its GPU is Android Emulator"
recorded adreno-phone
echo '[ro.kernel.qemu]: [1]' >>"$phone/getprop.txt"
# let through to be looked at, it is named, and what is seen of it is never recorded
ELIZA_ALLOW_SOFTWARE_VULKAN=1 phone_run 3 --only probe
equal "blocked emulator" "$(outcome "$r" device)" "software that is allowed is no emulator that is"
ELIZA_ALLOW_ANDROID_EMULATOR_VULKAN=1 phone_run 7 --only probe
equal "pass none" "$(outcome "$r" device)" "an emulator that is allowed"
equal "1 0" "$(field "$r" device.emulator) $(field "$r" passRecordable)" "an emulator that is allowed"
has "$r" "an emulator, not a phone"
recorded adreno-phone

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
