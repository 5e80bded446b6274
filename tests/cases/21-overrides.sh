# What changes the question is listed in overrides[] and is never recordable: by variable,
# by its older name, by --set; each --only; the skip switches.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
set -- run cpu --suite llama.cpp --model "$MODEL" --prebuilt "$ENGINE_BIN"
n=0
# overridden NAME VALUE: the last run listed it, and said that it is not recordable
overridden() {
	equal "$2" "$(query "json_extract(o.value, '\$.value')" "$T/r.json" "json_each(f.j, '\$.overrides') o where json_extract(o.value, '\$.name') = '$1'")" "override $1"
	query "n.value" "$T/r.json" "json_each(f.j, '\$.notRecordable') n" | grep -q "override $1" || fail "notRecordable does not name $1"
	equal 0 "$(field "$T/r.json" passRecordable)" passRecordable
}
quick="--only smoke --set cacheTypes=q8_0 --report $T/r.json --log-dir $T/logs"

# shellcheck disable=SC2086
ELIZA_MTP_SMOKE_TOKENS=6 agent "$@" $quick >"$T/out" 2>"$T/err"
status 7 $? "by variable: $(cat "$T/err")"
overridden tokens 6
overridden cacheTypes q8_0
equal 6 "$(field "$T/r.json" 'smokes[1].tokensGenerated')" "tokens generated"
equal "graph-smoke/baseline graph-smoke/q8_0" "$(query "group_concat(json_extract(g.value, '\$.name'), ' ')" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.name') like 'graph%'")" "the gates of a changed list"
# shellcheck disable=SC2086
ELIZA_DFLASH_SMOKE_TOKENS=5 ELIZA_DFLASH_SMOKE_NGL=3 agent "$@" $quick >"$T/out" 2>"$T/err"
status 7 $? "by the older name"
overridden tokens 5
overridden ngl 3
# --set wins over the variable, and a prompt with everything a shell would take apart
# shellcheck disable=SC2086,SC2016
ELIZA_MTP_SMOKE_TOKENS=6 agent "$@" $quick --set tokens=3 --set 'prompt=a "b" $(touch made) ; é 100%s' >"$T/out" 2>"$T/err"
status 7 $? "--set: $(cat "$T/err")"
overridden tokens 3
# shellcheck disable=SC2016
overridden prompt 'a "b" $(touch made) ; é 100%s'
[ ! -e made ] || fail "a shell read the prompt"
# shellcheck disable=SC2016
has "$T/logs/$(field "$T/r.json" target)-q8_0-q8_0.3.log" '"a \"b\" $(touch made) ; é 100%s"'
# Older names are said, and what nothing here reads is said.
ELIZA_DFLASH_SMOKE_TOKENS=5 ELIZA_MTP_SMOKE_NGL=3 ELIZA_DFLASH_SMOKE_NGL=4 ELIZA_DFLASH_JOBS=2 CUDA_REMOTE_DIR=/srv/eliza ELIZA_MTP_SMOKE_GEN_CHECK='' \
	agent run cpu --only probe --report "$T/r.json" --log-dir "$T/logs" >"$T/out" 2>"$T/err"
status 7 $? "older names"
has "$T/err" "ELIZA_DFLASH_SMOKE_TOKENS is read; its newer name is ELIZA_MTP_SMOKE_TOKENS" \
	"ELIZA_DFLASH_SMOKE_NGL is not read: ELIZA_MTP_SMOKE_NGL is set, too" \
	"ELIZA_DFLASH_JOBS is not read: " "CUDA_REMOTE_DIR is not read: "
lacks "$T/err" GEN_CHECK ELIZA_MTP_JOBS
overridden tokens 5
overridden ngl 3
ELIZA_DFLASH_TARGET=linux-x64-cuda agent run vulkan --only probe >"$T/out" 2>"$T/err"
status 2 $? "a target that the lane does not have"
has "$T/err" "ELIZA_DFLASH_TARGET is linux-x64-cuda"
# A variable that is set to nothing sets nothing.
# shellcheck disable=SC2086
ELIZA_MTP_SMOKE_TOKENS='' agent "$@" $quick >"$T/out" 2>"$T/err"
equal 1 "$(query "json_array_length(j, '\$.overrides')" "$T/r.json")" "overrides of an empty variable"
# Two types, one that no build has.
agent "$@" --only smoke --set "cacheTypes=q4_0 nosuch" --report "$T/r.json" --log-dir "$T/logs" >"$T/out" 2>"$T/err"
status 3 $? "a type that the build does not have"
equal "blocked family_not_in_build" "$(outcome "$T/r.json" graph-smoke/nosuch)" nosuch
equal "pass none" "$(outcome "$T/r.json" graph-smoke/q4_0)" "q4_0 beside it"
agent "$@" --set driver=llama-cli --only smoke --report "$T/r.json" --log-dir "$T/logs" >"$T/out" 2>"$T/err"
status 3 $? "a driver that is not there"
equal "blocked driver_missing" "$(outcome "$T/r.json" graph-smoke/f16)" "the other driver"

# --only PART: its gates and what they need; the others are skipped.
# only PART EXIT GATE...: the gates that ran
only() {
	part=$1 want=$2
	shift 2
	agent run cpu --suite llama.cpp --model "$MODEL" --prebuilt "$ENGINE_BIN" --only "$part" --report "$T/r.json" --log-dir "$T/logs" >"$T/out" 2>"$T/err"
	status "$want" $? "--only $part: $(cat "$T/err")"
	equal "$*" "$(query "group_concat(json_extract(g.value, '\$.name'), ' ')" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.startedAt') is not null")" "gates that --only $part ran"
	equal "not_asked" "$(query "group_concat(distinct json_extract(g.value, '\$.reasonCode'))" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.startedAt') is null")" "the others of --only $part"
	equal "0 $part" "$(field "$T/r.json" passRecordable) $(field "$T/r.json" only)" "--only $part in the report"
}
only probe 7 host device toolchain report
only fixtures 7 host device fixtures report
only build 7 host device toolchain source build report
only smoke 7 host device toolchain model source build graph-smoke/f16 graph-smoke/q8_0 graph-smoke/q5_1 graph-smoke/q5_0 graph-smoke/q4_1 graph-smoke/q4_0 graph-smoke/iq4_nl report
equal "skipped pass" "$(field "$T/r.json" 'claims."fixture-parity"') $(outcome "$T/r.json" graph-smoke/f16 | cut -d' ' -f1)" "a claim whose gates were not asked"

# The switches of the shell runners.
CPU_SKIP_GRAPH_SMOKE=1 agent "$@" --report "$T/r.json" --log-dir "$T/logs" >"$T/out" 2>"$T/err"
status 7 $? CPU_SKIP_GRAPH_SMOKE=1
equal "skipped skip_switch" "$(outcome "$T/r.json" graph-smoke/q8_0)" "the graph smoke with its switch"
equal "pass none" "$(outcome "$T/r.json" fixtures)" "fixtures with the switch"
equal "skipped fail 0" "$(field "$T/r.json" requirements.graphSmoke) $(field "$T/r.json" status) $(field "$T/r.json" passRecordable)" "graphSmoke, status, passRecordable"
