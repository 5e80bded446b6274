# A real llama.cpp built from source, and the product's main job to a recordable pass; then
# again, with the build reused.  The first build takes about ten minutes on two cores; it
# is kept in the user's cache, outside the checkout, so that later runs take seconds.
# shellcheck shell=sh disable=SC2154

engine=$(HOME=$user_home XDG_CACHE_HOME=${cache%/verify} "$root/deploy/fetch-engine" 2>"$T/fetch.err") || {
	rc=$?
	[ $rc -ne 77 ] || skip "the engine's source can not be had here: $(tail -n 1 "$T/fetch.err")"
	fail "deploy/fetch-engine: $(cat "$T/fetch.err")"
	exit 1
}
for tool in cmake ninja c++ git; do
	command -v $tool >/dev/null || skip "no $tool"
done
limit=1800
state=$cache/ci-state
export CCACHE_DIR="$cache/ccache"
cat >"$T/agent.conf" <<'END'
[work]
build_timeout_s = 1700
[spool]
keep_days = 0
END
mkdir -p "$state"
model
start_agent --config "$T/agent.conf" || exit 1

# verified N: a run that is a recordable pass; its result is in $T/result
verified() {
	controller run lab --suite llama.cpp --model "$MODEL" --source "$engine" --json >"$T/run.json" 2>"$T/err"
	status 0 $? "run $1: $(tail -n 1 "$T/run.json" | cut -c 1-600) $(cat "$T/err")"
	tail -n 1 "$T/run.json" >"$T/result"
	equal "result pass 1 1 0" "$(field "$T/result" type) $(field "$T/result" outcome) $(field "$T/result" recordable) $(field "$T/result" agentRecordable) $(field "$T/result" exitCode)" "run $1"
	equal "0424752fbbc3bb01469ec830a30f2bc035497cd4" "$(field "$T/result" source.tree)" "the tree of run $1"
	equal "pass pass" "$(field "$T/result" 'claims."fixture-parity"') $(field "$T/result" 'claims."legacy-kv-graph"')" "claims of run $1"
	equal 7 "$(query "sum(json_extract(s.value, '\$.outcome') = 'pass' and json_extract(s.value, '\$.kvDevice') = 'CPU' and json_extract(s.value, '\$.cacheApplied') = json_extract(s.value, '\$.cacheAsked') and json_extract(s.value, '\$.distance') = 0)" "$T/result" "json_each(f.j, '\$.smokes') s")" "families that passed in run $1"
	run=$(field "$T/result" run)
	controller show "$run" >"$T/show"
	has "$T/show" "RECORDABLE PASS"
	controller logs "$run" report.json >"$T/r.json"
}
verified 1
class=$(field "$T/result" deviceClass)
sha=$(field "$T/r.json" 'build.artifacts[0].sha256')
equal "0 linux" "$(field "$T/r.json" build.prebuilt) $(field "$T/r.json" target | cut -d- -f1)" "not prebuilt"
# The artifact is what lies in the cache, and says which machine it is for.
program=$(field "$T/r.json" build.binDir)/llama-completion
equal "$sha" "$(sha256sum "$program" | cut -d' ' -f1)" "digest of the built program"
verified 2
equal 1 "$(field "$T/r.json" build.reused)" "the second run reuses the build"
has "$T/show" "reused the build of"
equal "$sha" "$(field "$T/r.json" 'build.artifacts[0].sha256')" "the same program"

controller classes >"$T/classes"; status 0 $? classes
cat "$T/classes"
has "$T/classes" "$class" fixture-parity legacy-kv-graph
controller classes --json >"$T/classes.json"
equal 2 "$(query "sum(json_extract(c.value, '\$.passed'))" "$T/classes.json" "json_each(f.j, '\$[0].claims') c")" "claims that have passed"
controller why "$class" >"$T/why"; status 0 $? why
controller runs --recordable --json >"$T/runs"
equal 2 "$(query "json_array_length(j)" "$T/runs")" "recordable runs"
controller ledger verify >"$T/out" 2>&1; status 0 $? "ledger verify: $(cat "$T/out")"

# The same engine has none of eliza-1's cache types; an override makes any run unrecordable.
controller run lab --model "$MODEL" --source "$engine" --suite eliza-1 >"$T/out" 2>"$T/err"
status 3 $? "eliza-1"
has "$T/out" "BLOCKED family_not_in_build" "reused the build of"
controller run lab --suite llama.cpp --model "$MODEL" --source "$engine" --set tokens=5 >"$T/out" 2>"$T/err"
status 7 $? "an override: $(cat "$T/err")"
has "$T/out" "PASS, NOT RECORDABLE" "override tokens"
# What came later takes nothing away from what has passed.
controller classes --json >"$T/classes.json"
equal 2 "$(query "sum(json_extract(c.value, '\$.passed'))" "$T/classes.json" "json_each(f.j, '\$[0].claims') c")" "claims that have passed, in the end"

# The claim gemma-runtime, with the same source's llama-cli: a pair of synthetic models whose
# drafter is right about half of the letters.  A drafter that is none is not suitable.
"$bin/make-model" "$T/gemma.gguf" --mtp "$T/drafter.gguf" >/dev/null || fail "make-model --mtp"
# gemma DRAFTER: the mtp gate of such a run is $T/gate
gemma() {
	controller run lab --suite eliza-1-gemma --model "$T/gemma.gguf" --draft-model "$1" --source "$engine" --json >"$T/run.json" 2>"$T/err"
	code=$?
	tail -n 1 "$T/run.json" >"$T/result"
	controller logs "$(field "$T/result" run)" report.json >"$T/r.json"
}
gemma "$T/drafter.gguf"
status 7 $code "eliza-1-gemma: $(cut -c 1-600 "$T/result") $(cat "$T/err")"
equal "pass none" "$(outcome "$T/r.json" mtp)" "the mtp gate"
field "$T/r.json" 'gates' >"$T/gates"
has "$T/gates" "gemma4, flash attention, K f16 V f16 on CPU, draft-mtp accepted 62 of 127 (48.8 %)"
equal "0" "$(field "$T/result" recordable)" "a synthetic Gemma is not recordable"
gemma "$MODEL"
status 3 $code "a drafter without layers of multi-token prediction"
equal "blocked model_not_suitable" "$(outcome "$T/r.json" mtp)" "such a drafter"
