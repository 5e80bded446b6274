# Suite eliza-1 against a stock engine: every family of it is blocked, with the list that
# the build accepts, and nothing is called a pass.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
agent run cpu --model "$MODEL" --prebuilt "$ENGINE_BIN" --report "$T/r.json" >"$T/out" 2>"$T/err"
status 3 $? "eliza-1 is the default suite of run: $(tail -n 1 "$T/err")"
equal eliza-1 "$(field "$T/r.json" suite.name)" "the suite"
has "$T/out" "blocked family_not_in_build"
for family in turbo3 turbo4 turbo3_tcq qjl polar; do
	equal "blocked family_not_in_build" "$(outcome "$T/r.json" graph-smoke/$family)" $family
	query "json_extract(g.value, '\$.detail')" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.name') = 'graph-smoke/$family'" >"$T/detail"
	has "$T/detail" "no name of $family " "f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1"
	# its log holds the help that was read
	has hardware-results/"$(field "$T/r.json" target)"-$family-none.log "--cache-type-k" "reason=family_not_in_build"
done
equal "pass none" "$(outcome "$T/r.json" graph-smoke/baseline)" "the baseline ran"
equal "pass none" "$(outcome "$T/r.json" fixtures)" fixtures
equal "blocked 3 0 fail" "$(field "$T/r.json" outcome) $(field "$T/r.json" exitCode) $(field "$T/r.json" passRecordable) $(field "$T/r.json" status)" "outcome, exit, recordable, status"
equal "blocked pass" "$(field "$T/r.json" 'claims."legacy-kv-graph"') $(field "$T/r.json" 'claims."fixture-parity"')" "the two claims are kept apart"
query "n.value" "$T/r.json" "json_each(f.j, '\$.notRecordable') n" >"$T/why"
has "$T/why" "suite eliza-1 does not count this synthetic model"
