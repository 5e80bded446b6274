# Encoders of the GPU sources are held against the reference, and what has none says so.
# encoders BACKEND NAMES [OPTION...]
encoders() {
	_program=$bin/$1-verify _names=$2; shift 2
	timeout --foreground "$limit" ${VALGRIND:+valgrind -q --error-exitcode=99} "$_program" --encoders --only "$_names" "$@"
}

for device in 0 1; do
	encoders emulated turbo3,turbo3_tcq --json --device $device >"$T/out.json"
	status 0 $? "right encoders"
	for i in 0 1; do
		equal pass "$(field "$T/out.json" "encoders.formats[$i].outcome")" "outcome"
		equal 0 "$(field "$T/out.json" "encoders.formats[$i].codes.wrong")" "wrong codes"
		equal 0 "$(field "$T/out.json" "encoders.formats[$i].norms.near")" "norms that differ"
		equal 0 "$(field "$T/out.json" "encoders.formats[$i].paths.near")" "paths that differ"
	done
	[ "$(field "$T/out.json" "encoders.formats[1].paths.compared")" -gt 4000 ] || fail "few paths"
done

encoders emulated polar --device 0 >"$T/out"
status 0 $? "one format"
has "$T/out" "3 of 3 planted errors caught"

# No encoder is never a pass.
encoders cpu turbo3 >"$T/out"
status 3 $? "a backend without encoders"
has "$T/out" "the backend cpu has no encoders"

encoders emulated fused_attn_qjl_tbq --device 0 >"$T/out" 2>"$T/err"
status 2 $? "a kernel that is no format"
has "$T/err" "no name of --only is a format"
