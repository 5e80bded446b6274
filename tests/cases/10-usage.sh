# The command line: help and completion answer with 0, a slip of the keyboard with 2 and a
# suggestion, and nothing is read or made before that.
# shellcheck shell=sh disable=SC2154

for command in run attach cancel runs show logs classes why hosts pin ledger; do
	controller $command --help >"$T/out" 2>"$T/err"
	status 0 $? "verify-controller $command --help"
	has "$T/out" "usage: verify-controller $command"
	[ ! -s "$T/err" ] || fail "$command --help is quiet on stderr"
	controller help $command >"$T/out2" 2>&1
	status 0 $? "verify-controller help $command"
	cmp -s "$T/out" "$T/out2" || fail "$command --help and help $command differ"
done
for command in serve run make-model; do
	agent $command --help >"$T/out" 2>"$T/err"
	status 0 $? "verify-agent $command --help"
	has "$T/out" "usage: verify-agent $command"
done
for program in verify-agent verify-controller; do
	for words in --help help --version "completion bash"; do
		# shellcheck disable=SC2086
		"$bin/$program" $words >"$T/out" 2>"$T/err"
		status 0 $? "$program $words"
		[ -s "$T/out" ] || fail "$program $words prints something"
		# shellcheck disable=SC2086
		"$bin/$program" $words >/dev/full 2>"$T/err"
		status 6 $? "$program $words into a full disk"
	done
	"$bin/$program" --version >"$T/out"
	grep -qx "$program [0-9]*\.[0-9]*\.[0-9]*" "$T/out" || fail "$program --version: $(cat "$T/out")"
	if command -v bash >/dev/null; then
		"$bin/$program" completion bash | bash -n || fail "bash reads the completion of $program"
	fi
done
agent cpu-verify --help >"$T/out" 2>&1; status 0 $? "cpu-verify --help"

# slip EXPECTED-TEXT PROGRAM WORD...: exit 2, one line of error, and what to try
slip() {
	want=$1 program=$2
	shift 2
	"$bin/$program" "$@" >"$T/out" 2>"$T/err"
	status 2 $? "$program $*"
	[ ! -s "$T/out" ] || fail "$program $*: stdout is empty"
	grep -q "^$program: " "$T/err" || fail "$program $*: $(cat "$T/err")"
	has "$T/err" "$want"
}
slip 'did you mean "classes"?' verify-controller classs
slip 'did you mean "serve"?' verify-agent serv
slip 'a command is missing' verify-controller
slip 'did you mean --lane?' verify-controller runs --lanee cpu
slip 'an argument is missing' verify-controller run
slip '0 is outside 1 to 100000' verify-controller runs --limit 0
slip 'no completion for "zsh"' verify-controller completion zsh
slip '"hosts" lists them' verify-controller run nosuch
slip 'the lanes of this version: cpu' verify-controller run local --lane gpu
slip 'the suites are ' verify-controller run local --suite nope
slip 'no such override: "token"' verify-controller run local --set token=4
slip 'did you mean tokens?' verify-controller run local --set token=4
slip 'tokens: not a whole number: "many"' verify-controller run local --set tokens=many
slip 'tokens is given twice' verify-controller run local --set tokens=1 --set tokens=2
slip 'someone@local needs ssh' verify-controller run someone@local
slip 'no run is stored yet' verify-controller show abc
slip 'the lanes of this version: cpu' verify-agent run gpu
slip 'the suites are ' verify-agent run cpu --suite nope
slip 'unknown field "overrides.x"' verify-agent run cpu --set x=1
slip 'typographic mark' verify-agent run cpu --set 'cmakeFlags=-DCMAKE_BUILD_TYPE=“Release”'
slip 'tokens: not a whole number: "x"' verify-agent run cpu --set tokens=x
[ ! -e "$XDG_DATA_HOME" ] || fail "a refused command leaves $(find "$XDG_DATA_HOME")"

# An empty ledger is no error, and says what to do.
for command in runs classes; do
	controller $command >"$T/out" 2>&1; status 0 $? "$command without a ledger"
	has "$T/out" "no run is stored yet"
done
controller runs --json >"$T/out" 2>"$T/err"; status 0 $? "runs --json without a ledger"
equal 0 "$(query "json_array_length(j)" "$T/out")" "runs --json of nothing"
[ ! -e "$XDG_DATA_HOME/verify/ledger.db" ] || fail "reading makes no ledger"
