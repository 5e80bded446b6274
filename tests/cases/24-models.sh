# Models that are none: each its own reason, none hangs, none kills the agent.
# shellcheck shell=sh disable=SC2154

prebuilt_engine || exit 1
model
mkdir folder
mkfifo fifo
head -c 3000000 "$MODEL" >truncated.gguf
head -c 20 "$MODEL" >cut-header.gguf
{ printf 'GGUF\003\000\000\000'; head -c 16 /dev/zero | tr '\0' '\377'; } >huge-counts.gguf
echo "not a model" >text.gguf
: >empty.gguf
printf 'GGUF\143\000\000\000' >version-99.gguf
ln -s nowhere link.gguf
ln -s loop loop
cp "$MODEL" "model with spaces & 'quotes' é.gguf"
start_agent
# wants REASON MODEL
n=0
wants() {
	n=$((n + 1))
	equal 201 "$(submit "$(printf %032d $n)" '"only":"smoke"' '"overrides":{"cacheTypes":"q8_0"}' "\"prebuilt\":\"$ENGINE_BIN\"" "\"model\":\"$2\"")" "submit $2"
	wait_for 60 phase "$(printf %032d $n)" 'done' || fail "$2: no end"
	ask "/v1/jobs/$(printf %032d $n)/artifacts/report.json" >"$T/r.json"
	equal "blocked $1" "$(outcome "$T/r.json" model)" "model $2"
	equal "blocked depends_on" "$(outcome "$T/r.json" graph-smoke/q8_0)" "smoke with $2"
	equal "3 0" "$(field "$T/r.json" exitCode) $(field "$T/r.json" passRecordable)" "exit with $2"
	query "json_extract(g.value, '\$.detail') || char(10) || json_extract(g.value, '\$.hint')" "$T/r.json" "json_each(f.j, '\$.gates') g where json_extract(g.value, '\$.name') = 'model'" >"$T/said"
	has "$T/said" "${2##*/}"
	[ "$(sed -n 2p "$T/said")" ] || fail "no hint for $2"
}
wants model_missing "$T/nothing.gguf"
wants model_missing "$T/link.gguf"
wants model_not_a_file "$T/folder"
wants model_not_a_file "$T/fifo"
wants model_not_a_file /dev/zero
wants model_truncated "$T/truncated.gguf"
wants model_truncated "$T/cut-header.gguf"
wants model_not_gguf "$T/text.gguf"
wants model_missing "$MODEL/below"
equal 200 "$(code /v1/health)" "health after all that"

# run: the same, and what the table above does not say.
# run_with REASON MODEL
run_with() {
	timeout 60 "$bin/verify-agent" run cpu --only smoke --suite llama.cpp --prebuilt "$ENGINE_BIN" --set cacheTypes=q8_0 --model "$2" --report "$T/r.json" >"$T/out" 2>"$T/err"
	status 3 $? "run with $2"
	equal "blocked $1" "$(outcome "$T/r.json" model)" "run with $2"
}
run_with model_truncated empty.gguf
run_with model_malformed huge-counts.gguf
run_with model_not_gguf version-99.gguf
run_with model_missing loop
timeout 60 "$bin/verify-agent" run cpu --only smoke --suite llama.cpp --prebuilt "$ENGINE_BIN" --set cacheTypes=q8_0 --report "$T/r.json" >"$T/out" 2>"$T/err"
status 3 $? "run without a model"
equal "blocked model_not_given" "$(outcome "$T/r.json" model)" "no model"
# A head size that the type's block does not divide.
if "$bin/make-model" --head-size 80 --force odd.gguf >/dev/null 2>&1; then
	timeout 60 "$bin/verify-agent" run cpu --only smoke --suite llama.cpp --prebuilt "$ENGINE_BIN" --set cacheTypes=q8_0 --model odd.gguf --report "$T/r.json" >"$T/out" 2>"$T/err"
	equal "blocked model_not_suitable" "$(outcome "$T/r.json" graph-smoke/q8_0)" "head size 80 with q8_0"
fi
# A name that a shell would take apart; and a relative one.
timeout 60 "$bin/verify-agent" run cpu --only smoke --suite llama.cpp --prebuilt "$ENGINE_BIN" --set cacheTypes=q8_0 --model "model with spaces & 'quotes' é.gguf" --report "$T/r.json" >"$T/out" 2>"$T/err"
status 7 $? "a name with spaces: $(cat "$T/err")"
equal "pass none" "$(outcome "$T/r.json" graph-smoke/q8_0)" "a name with spaces"
