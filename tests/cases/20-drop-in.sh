# `verify-agent run` in the place of the shell runners: a real prebuilt engine through every
# stock cache type, the old variables, names, places and report fields.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
export ELIZA_MTP_BIN_DIR="$ENGINE_BIN" ELIZA_MTP_SMOKE_MODEL="$MODEL"

# The place of the logs: the variable, else such a checkout that is above, else here.
mkdir -p "$T/eliza/packages/inference/verify" "$T/eliza/packages/other/deep" "$T/elsewhere"
cd "$T/eliza/packages/other/deep" || exit 1
agent run cpu --suite llama.cpp --report "$T/made/for/it/report.json" >"$T/out" 2>"$T/err"
status 7 $? "a prebuilt engine is never recordable: $(cat "$T/err")"
r=$T/made/for/it/report.json
d=$T/eliza/packages/inference/verify/hardware-results
[ -d "$d" ] || fail "logs are not in the checkout"
has "$T/out" "skipped prebuilt_engine"
target=$(field "$r" target)
for family in f16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl; do
	equal "pass none" "$(outcome "$r" graph-smoke/$family)" "$family"
	equal "$family $family CPU 4 0 1" "$(query "group_concat(json_extract(s.value, '\$.cacheAsked') || ' ' || json_extract(s.value, '\$.cacheApplied')
		|| ' ' || json_extract(s.value, '\$.kvDevice') || ' ' || json_extract(s.value, '\$.tokensGenerated') || ' ' ||
		cast(json_extract(s.value, '\$.distance') as int) || ' ' || (json_extract(s.value, '\$.distance') = 0))" "$r" "json_each(f.j, '\$.smokes') s where json_extract(s.value, '\$.family') = '$family'")" "smoke of $family"
	[ -s "$d/$target-$family-$family.log" ] || fail "no $target-$family-$family.log"
	# the line that decided is that line of the gate's own log
	line=$(query "json_extract(s.value, '\$.decidingLine.number') || ':' || json_extract(s.value, '\$.decidingLine.text')" "$r" "json_each(f.j, '\$.smokes') s where json_extract(s.value, '\$.family') = '$family'")
	equal "$(sed -n "${line%%:*}p" "$d/$target-$family-$family.log")" "${line#*:}" "deciding line of $family"
	case $line in *" KV buffer size = "*) ;; *) fail "deciding line of $family: $line" ;; esac
	[ -s "$d/$target-$family-$family.out" ] || fail "no output of $family"
	has "$d/$target-graph-smoke.summary" "PASS $family log=$target-$family-$family.log"
done
has "$d/$target-graph-smoke.summary" "target=$target" "bin_dir=$ENGINE_BIN" "model=$MODEL" "tokens=4" \
	"ngl=99" "driver=llama-completion" "finished_at=20"
# The model was made so that the answer is known.
"$bin/make-model" --expect "Eliza local backend graph dispatch smoke." --tokens 4 | head -c 4 >"$T/expected"
for out in "$d"/*.out; do
	equal "$(cat "$T/expected")" "$(head -c 4 "$out")" "what the engine says (${out##*/})"
done

# Fields of schema 1, same names and kinds, and those of schema 2 beside them.
query "group_concat(key || ':' || type, ' ')" "$r" "json_each(f.j)" | tr ' ' '\n' | sort >"$T/members"
golden report-members "$T/members"
equal "fail cpu_runner 7 0" "$(field "$r" status) $(field "$r" runner) $(field "$r" exitCode) $(field "$r" passRecordable)" "status, runner, exitCode, passRecordable"
equal "required 0" "$(field "$r" requirements.graphSmoke) $(field "$r" remoteDelegated)" "graphSmoke, remoteDelegated"
sha=$(sha256sum "$MODEL")
equal "${sha%% *}" "$(field "$r" evidence.modelSha256)" evidence.modelSha256
equal 7 "$(query "json_array_length(j, '\$.evidence.cacheRuns')" "$r")" evidence.cacheRuns
equal "pass pass" "$(field "$r" 'claims."fixture-parity"') $(outcome "$r" fixtures | cut -d' ' -f1)" fixtures
# What ran the fixtures: this very program, on this very processor.
sha=$(sha256sum "$bin/verify-agent")
equal "verify-agent ${sha%% *}" "$(field "$r" 'kernels.code[0].name') $(field "$r" 'kernels.code[0].sha256')" kernels.code
equal "0 0" "$(field "$r" kernels.device.software) $(field "$r" kernels.device.emulated)" kernels.device
case $(field "$r" kernels.backend) in cpu | cpu-ref) ;; *) fail "kernels.backend is $(field "$r" kernels.backend)" ;; esac
equal "$(query "json_array_length(j, '\$.fixtures')" "$r")" "$(query "count(*)" "$r" "json_each(f.j, '\$.fixtures') c where json_extract(c.value, '\$.variant') is not null")" \
	"checks that name their variant"
has "$d/$target-fixtures.log" "${sha%% *}"
field "$r" startedAt | grep -qx '....-..-..T..:..:..Z' || fail "startedAt"
# Every log has the digest that the report names, every file of the report is there.
query "json_extract(a.value, '\$.sha256') || '  ' || json_extract(a.value, '\$.name')" "$r" "json_each(f.j, '\$.artifacts') a" >"$T/sums"
[ "$(wc -l <"$T/sums")" -ge 20 ] || fail "only $(wc -l <"$T/sums") artifacts"
(cd "$d" && sha256sum --quiet -c "$T/sums") || fail "digests of the artifacts"
[ -s "${r%.json}.dsse.json" ] || fail "no signed envelope beside the report"
has "$T/out" "$r" "${r%.json}.dsse.json"

# A second run overwrites nothing, in the same folder and by the older names.
(cd "$d" && sha256sum ./*) >"$T/before"
cp "$r" "$T/first.json"
unset ELIZA_MTP_BIN_DIR ELIZA_MTP_SMOKE_MODEL ELIZA_MTP_SKIP_BUILD
ELIZA_DFLASH_BIN_DIR=$ENGINE_BIN ELIZA_DFLASH_SMOKE_MODEL=$MODEL ELIZA_DFLASH_SKIP_BUILD=1 \
	ELIZA_DFLASH_HARDWARE_REPORT=$T/second.json \
	agent run cpu --suite llama.cpp --only smoke --set cacheTypes=q8_0 >"$T/out" 2>"$T/err"
status 7 $? "the older names: $(cat "$T/err")"
(cd "$d" && sha256sum --quiet -c "$T/before") || fail "the second run changed a file of the first"
[ -s "$d/$target-q8_0-q8_0.2.log" ] || fail "no numbered log: $(ls "$d")"
has "$d/$target-graph-smoke.2.summary" "PASS q8_0 log=$target-q8_0-q8_0.2.log"
cmp -s "$r" "$T/first.json" || fail "the first report was overwritten"
equal "pass none" "$(outcome "$T/second.json" graph-smoke/q8_0)" "q8_0 of the second run"

# Outside a checkout: ./hardware-results; and the folder that the variable names.
cd "$T/elsewhere" || exit 1
agent run cpu --only probe >"$T/out" 2>"$T/err"
status 7 $? "a probe alone"
[ -s "hardware-results/$target-device.log" ] || fail "no ./hardware-results"
[ -s "hardware-results/$target-report.json" ] || fail "no report without --report"
ELIZA_DFLASH_HARDWARE_REPORT_DIR=$T/there agent run cpu --only probe >"$T/out" 2>"$T/err"
[ -s "$T/there/$target-device.log" ] || fail "ELIZA_DFLASH_HARDWARE_REPORT_DIR"

# A report that can not be written is no pass, whatever ran.
echo file >"$T/file"
for path in "$T/file/report.json" /dev/full /proc/nothing/report.json "$T/elsewhere"; do
	agent run cpu --only probe --report "$path" >"$T/out" 2>"$T/err"
	got=$?
	case $got in
	1 | 2 | 3 | 6) ;;
	*) fail "--report $path: exit $got" ;;
	esac
	lacks "$T/out" PASS
	has "$T/err" "verify-agent: "
done
equal file "$(cat "$T/file")" "a file in the way"
[ -c /dev/full ] || fail "/dev/full is no device any more"
