# The runner of mutants is itself no row: what it must not take for caught.
# shellcheck shell=sh disable=SC2154

release=$root/build/linux-release
for p in cpu emulated vulkan; do [ -x "$release/$p-verify" ] || skip "no release build"; done
mutants() { MUTANTS_TABLE=$T/table timeout --foreground "$limit" "$root/tests/mutants/run" "$release" >"$T/out" 2>&1; }

cat >"$T/table" <<'TABLE'
# Words of a row: see tests/mutants/run.
same @ kernels/encode.h @ #define ENCODE_PITCH 36 @ #define ENCODE_PITCH 36 @ encode32 encode_qjl qjl @ nothing
wrong @ kernels/encode_qjl.cu @ sum[k][j] > 0 ? 1u : 0u @ sum[k][j] < 0 ? 1u : 0u @ encode32 encode_qjl qjl @ encoder
TABLE
mutants; status 0 $? "a control and a mutant: $(cat "$T/out")"
has "$T/out" "1 caught" "by encoder check 1" "1 controls passed" "0 errors"

cat >"$T/table" <<'TABLE'
equivalent @ kernels/encode_qjl.cu @ #define QJL_PITCH 36 @ #define QJL_PITCH 40 @ encode32 encode_qjl qjl @ encoder
elsewhere @ kernels/encode_qjl.cu @ sum[k][j] > 0 ? 1u : 0u @ sum[k][j] < 0 ? 1u : 0u @ encode32 encode_qjl qjl @ fixture
TABLE
mutants; status 1 $? "survivors: $(cat "$T/out")"
has "$T/out" "SURVIVED  equivalent" "MISSED    elsewhere" "0 caught"

cat >"$T/table" <<'TABLE'
control @ kernels/encode_qjl.cu @ sum[k][j] > 0 ? 1u : 0u @ sum[k][j] < 0 ? 1u : 0u @ encode32 encode_qjl qjl @ nothing
TABLE
mutants; status 1 $? "a control that fails: $(cat "$T/out")"
has "$T/out" "FAILED    control"

cat >"$T/table" <<'TABLE'
gone @ kernels/encode_qjl.cu @ no such text @ other @ encode32 encode_qjl qjl @ encoder
twice @ kernels/encode_qjl.cu @ QJL_PITCH @ QJL_PITCHES @ encode32 encode_qjl qjl @ encoder
unchanged @ kernels/encode_qjl.cu @ #define QJL_PITCH 36 @ #define QJL_PITCH 36 @ encode32 encode_qjl qjl @ encoder
broken @ kernels/encode_qjl.cu @ #define QJL_PITCH 36 @ #define QJL_PITCH @ encode32 encode_qjl qjl @ encoder
nowhere @ kernels/encode_qjl.cu @ #define QJL_PITCH 36 @ #define QJL_PITCH 40 @ nowhere encode_qjl qjl @ encoder
short @ kernels/encode_qjl.cu @ text @ other @ encode32 encode_qjl qjl
TABLE
mutants; status 6 $? "rows that can not be tried: $(cat "$T/out")"
has "$T/out" "kernels/encode_qjl.cu does not have the text once" "the row changes nothing" \
	"it does not build" "no such way" "a row has six columns" "6 errors"
