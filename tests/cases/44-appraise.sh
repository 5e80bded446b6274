# Engine logs that somebody was handed, judged by the code that judges a run.  What must be
# concluded stands in fixtures/logs/index.tsv; a cut log is never a pass.
logs=${VERIFY_SAMPLES:-$root/../shared/samples}/engine-logs
[ -d "$logs" ] || skip "the whole logs are not here: ../shared/samples/engine-logs"

# judged WANTED_EXIT WANTED LOG OPTION...
judged() {
	_exit=$1 _want=$2 _log=$3; shift 3
	controller appraise "$@" --json "$logs/$_log" >"$T/a.json" 2>"$T/a.err"
	status "$_exit" $? "appraise $_log"
	equal "$_want" "$(query "json_extract(j, '\$.outcome') || ' ' || ifnull(json_extract(j, '\$.reasonCode'), 'none')" "$T/a.json")" "$_log"
}
judged 0 "pass none" h200-cuda-fork-96dd1a8-fa-off-f16.log -l cuda -t f16
judged 1 "fail op_on_cpu" h200-cuda-fork-96dd1a8-fa-off-tbq3_0.log -l cuda -f turbo3 -t tbq3_0
equal "1|1|0" "$(query "json_extract(j,'\$.accepted')||'|'||json_extract(j,'\$.allocated')||'|'||json_extract(j,'\$.dispatched')" "$T/a.json")" "three facts apart"
has "$T/a.json" 'MUL_MAT kq on CPU in 2 layers'
judged 1 "fail op_not_supported" h200-cuda-fork-96dd1a8-fa-off-qjl1_256.log -l cuda -f qjl --exit 134
judged 0 "pass none" h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log -l cuda -s llama.cpp -t q8_0
judged 3 "blocked log_too_quiet" h200-cuda-stock-v0.4.0-tiny128-bc-f16.log -l cuda -t f16 --tokens 8
judged 0 "pass none" h200-vulkan-stock-v0.4.0-q8_0.log -l vulkan -t q8_0 --tokens 8
judged 0 "pass none" h200-vulkan-stock-v0.4.0-fa-on-k-q8_0-v-q8_0.log -l vulkan -t q8_0 --tokens 8
judged 1 "fail kv_not_on_device" llvmpipe-vulkan-stock-v0.4.0-silent-cpu-q8_0.log -l vulkan -t q8_0 --tokens 8
judged 3 "blocked software_device" llvmpipe-vulkan-stock-v0.4.0-forced-q8_0.log -l vulkan -t q8_0 --tokens 8
judged 1 "fail kv_not_on_device" h200-vulkan-stock-v0.4.0-q8_0.log -l cuda -t q8_0 --tokens 8
judged 1 "fail too_few_tokens" h200-vulkan-stock-v0.4.0-q8_0.log -l vulkan -t q8_0 --tokens 9
judged 1 "fail kv_type_differs" h200-vulkan-stock-v0.4.0-q8_0.log -l vulkan -t q4_0 --tokens 8

# the same in the clothes of other systems, and by standard input
sed 's/$/\r/' "$logs/h200-vulkan-stock-v0.4.0-q8_0.log" >"$T/crlf.log"
controller appraise -l vulkan -t q8_0 --tokens 8 "$T/crlf.log" >"$T/out" || fail "CRLF changes nothing"
has "$T/out" "pass" "Vulkan0" "FLASH_ATTN"
controller appraise -l vulkan -t q8_0 --tokens 8 - <"$T/crlf.log" >/dev/null || fail "standard input is read"
{ printf '\377\376'; iconv -c -f UTF-8 -t UTF-16LE "$logs/h200-vulkan-stock-v0.4.0-q8_0.log"; } >"$T/wide.log"
controller appraise -l vulkan -t q8_0 --tokens 8 "$T/wide.log" >/dev/null || fail "UTF-16 changes nothing"
for order in LE BE; do
	for f in h200-vulkan-stock-v0.4.0-q8_0.log h200-cuda-fork-96dd1a8-fa-off-tbq3_0.log; do
		case $f in *vulkan*) lane=vulkan type=q8_0 want=0 ;; *) lane=cuda type=tbq3_0 want=1 ;; esac
		{ [ $order = LE ] && printf '\377\376' || printf '\376\377'; sed 's/$/\r/' "$logs/$f" | iconv -c -f UTF-8 -t UTF-16$order; } >"$T/wide.log"
		controller appraise -l $lane -t $type --tokens 8 "$T/wide.log" >"$T/wide.out"
		status $want $? "$f in UTF-16$order"
		controller appraise -l $lane -t $type --tokens 8 "$logs/$f" >"$T/plain.out"
		cmp -s "$T/plain.out" "$T/wide.out" || fail "$f is told otherwise in UTF-16$order"
	done
done
# what Windows ended
controller appraise -l vulkan -t q8_0 --tokens 8 --exit -1073741819 "$T/crlf.log" >"$T/out"
status 1 $? "an access violation"
has "$T/out" "engine_crash" "STATUS_ACCESS_VIOLATION"
controller appraise -l vulkan -t q8_0 --tokens 8 --exit=0xC0000135 - </dev/null >"$T/out"
status 3 $? "a library that is missing"
has "$T/out" "tool_broken" "STATUS_DLL_NOT_FOUND"
controller appraise -l vulkan -t q8_0 --exit five "$T/crlf.log" >/dev/null 2>&1; status 2 $? "an exit code that is none"

# no beginning of a good log is a pass
f=$logs/h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log
n=$(wc -l <"$f")
for cut in 1 10 100 500 828 829 1000 $((n - 200)) $((n - 20)) $((n - 8)) $((n - 7)) $((n - 6)) $((n - 5)) $((n - 3)) $((n - 1)); do
	head -n "$cut" "$f" | controller appraise -l cuda -s llama.cpp -t q8_0 - >/dev/null && fail "cut at line $cut it passes"
done

# several runs in one file: each is judged, and one that is no pass decides
other=$logs/h200-cuda-fork-96dd1a8-fa-off-tbq3_0.log
cat "$f" "$f" >"$T/two.log"
controller appraise -l cuda -s llama.cpp -t q8_0 "$T/two.log" >"$T/out" || fail "two good runs pass"
has "$T/out" "run 2 of the 2 in the file"
cat "$f" "$other" >"$T/two.log"
controller appraise -l cuda -s llama.cpp -t q8_0 - <"$T/two.log" >"$T/out"; status 1 $? "a bad run behind a good one"
has "$T/out" "run 2 of the 2 in the file"
cat "$other" "$f" >"$T/two.log"
controller appraise -l cuda -s llama.cpp -t q8_0 "$T/two.log" >"$T/out"; status 1 $? "a good run behind a bad one"
has "$T/out" "run 1 of the 2 in the file"
# what is lost, and what a shell says of the end
sed '/MUL_MAT): *kq-1 /d' "$f" >"$T/lost.log"
controller appraise -l cuda -s llama.cpp -t q8_0 "$T/lost.log" >"$T/out"; status 3 $? "scores of one layer are lost"
{ cat "$f"; echo "Segmentation fault (core dumped)"; } >"$T/crash.log"
controller appraise -l cuda -s llama.cpp -t q8_0 "$T/crash.log" >"$T/out"; status 1 $? "a crash behind the end"
has "$T/out" "engine_abort"

# A log larger than the memory it may have: all of it is read, and the last of its lines counts.
node='node # 99 (   MUL_MAT): kq-0 (   1K) [  CPU         ] use=1,c=1:'
at=$(grep -n 'perf_print' "$f" | head -n 1)
# small ARGUMENT...: the controller in 120 MB of memory
if prlimit --as=120000000 "$bin/verify-controller" --version >/dev/null 2>&1; then
	small() { timeout 100 prlimit --as=120000000 "$bin/verify-controller" "$@"; }
else
	echo "    skipped: the bound of the memory (no prlimit, or a sanitizer that needs room)"
	small() { controller "$@"; }
fi
{ head -n $((${at%%:*} - 1)) "$f"
	yes '0.00.300.000 D ggml_foo: a thread that says the same thing again and again and again and' | head -c 150000000
	printf '\n%s\n' "$node"
	tail -n +"${at%%:*}" "$f"; } >"$T/big.log"
grep -av 'node # 99 ' "$T/big.log" >"$T/good.log"
small appraise -l cuda -s llama.cpp -t q8_0 "$T/good.log" >"$T/out" 2>"$T/err"
status 0 $? "a large log: $(cat "$T/err")"
small appraise -l cuda -s llama.cpp -t q8_0 "$T/big.log" >"$T/out" 2>"$T/err"
status 1 $? "a large log with a node on the CPU: $(cat "$T/err")"
line=$(grep -an 'node # 99 ' "$T/big.log")
has "$T/out" "fail op_on_cpu" "the first in line ${line%%:*} of the log" "  line ${line%%:*}: $node"
rm -f "$T/big.log" "$T/good.log"

controller appraise "$f" >/dev/null 2>"$T/err"; status 2 $? "a lane is wanted"
controller appraise -l abacus "$f" >/dev/null 2>"$T/err"; status 2 $? "an unknown lane"
controller appraise -l cuda "$f" >/dev/null 2>"$T/err"; status 2 $? "a cache type is wanted"
has "$T/err" "--cache-type"
controller appraise -l cuda -t q8_0 "$T/none" >/dev/null 2>"$T/err"; status 2 $? "a log that is not there"
