# The documents are tested: every command line that README and the manual pages show is
# understood, and the five commands of README do what it says.
# shellcheck shell=sh disable=SC2154

PATH=$bin:$PATH
# Lines of the shell blocks of README.md, comments cut off.
awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$root/README.md" | sed 's/[[:space:]]*#.*//' >"$T/readme"
# Examples of the manual pages: between EXAMPLES and the next section, and .Dl lines.
for page in "$root"/agent/*.8 "$root"/agent/*.5 "$root"/controller/*.1 "$root"/kernels/*.1; do
	sed -n 's/^\.Dl //p' "$page"
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/p' "$page" | grep -v '^\.'
done >"$T/pages"
# Command lines in the prose, between backquotes.
# shellcheck disable=SC2016
grep -o '`[^`]*`' "$root/README.md" | tr -d '`' >"$T/prose"
cat "$T/readme" "$T/pages" "$T/prose" | grep -E '^(([A-Z_]+=[^ ]* )*)(verify-agent|verify-controller|make-model|(cpu|cuda|hip|vulkan|emulated)-verify) ' |
	grep -vE '^verify-(agent|controller|agent\.conf)\([0-9]\)' | sort -u >"$T/lines"
[ "$(wc -l <"$T/lines")" -ge 8 ] || fail "only $(wc -l <"$T/lines") command lines were found in the documents"

# Understood: its options are options, its choices are choices.  --help comes last and
# keeps the command from being done.
while IFS= read -r line; do
	line=${line%&}
	# shellcheck disable=SC2016
	words=$(printf '%s' "$line" | sed 's/^\([A-Z_]*=[^ ]* \)*//; s/"\$PWD\//"\//; s/|.*//; s/>.*//')
	# shellcheck disable=SC2086
	eval "set -- $words" 2>/dev/null || { fail "no shell line: $line"; continue; }
	"$@" --help >"$T/out" 2>"$T/err" </dev/null
	status 0 $? "$line: $(cat "$T/err")"
done <"$T/lines"

# The five commands for a kernel, as README has them, on this processor and in small.
grep -E '^cuda-verify ' "$T/readme" | sed 's/^cuda/cpu/; s/mine\.json/qjl.json/; s/--exhaustive/--exhaustive 4000/; s/$/ /; s/--gqa 8/--gqa 8 --keys 64/' >"$T/five"
equal 5 "$(wc -l <"$T/five")" "commands for a kernel in README"
cp "$root/fixtures/kernels/qjl.json" .
while IFS= read -r line; do
	eval "set -- $line"
	timeout --foreground "$limit" "$@" >"$T/out" 2>"$T/err" </dev/null
	status 0 $? "$line: $(tail -n 3 "$T/out") $(cat "$T/err")"
done <"$T/five"
cpu-verify --kernels >"$T/out"; status 0 $? --kernels
equal 12 "$(grep -c json "$T/out")" "kernels of the table"
make -s -C "$root" metal-verify >"$T/out" 2>&1
has "$T/out" "blocked metal_host_not_built" "Error 3"

# Options: every one that a program has is in its manual page, and the other way round.
# manual PROGRAM PAGE COMMAND...
manual() {
	program=$1 page=$2
	shift 2
	mandoc -T ascii "$page" 2>/dev/null | col -b >"$T/page" || skip "no mandoc"
	for command; do
		"$bin/$program" "$command" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u >"$T/options"
		while IFS= read -r option; do
			[ "$option" = --help ] || grep -qF -- "$option" "$T/page" || fail "${page##*/} lacks $option of $command"
		done <"$T/options"
		cat "$T/options" >>"$T/all"
	done
}
if command -v mandoc >/dev/null && command -v col >/dev/null; then
	manual verify-agent "$root/agent/verify-agent.8" serve run make-model
	manual verify-controller "$root/controller/verify-controller.1" run attach cancel runs show logs classes why hosts pin ledger
	manual cpu-verify "$root/kernels/cpu-verify.1" ""
	# settings of the configuration, with their defaults
	mandoc -T ascii "$root/agent/verify-agent.conf.5" 2>/dev/null | col -b | tr '\n' ' ' | tr -s ' ' >"$T/page"
	"$bin/verify-agent" serve --print-config | sed -n 's/^#\([a-z_]*\) = *\([0-9]*\)$/\1 \2/p' | while read -r key default; do
		grep -qE "$key .*$default" "$T/page" || echo "$key $default"
	done >"$T/missing"
	[ ! -s "$T/missing" ] || fail "verify-agent.conf(5) lacks $(tr '\n' ',' <"$T/missing")"
fi
# Exit statuses: the table of README has the eight that there are.
for n in 0 1 2 3 4 5 6 7; do
	grep -qE "\| $n \|$" "$root/README.md" || fail "README's table lacks exit status $n"
done
# Files that the text names are there; variables that the page names are read.
grep -oE '\]\([a-zA-Z][^)#]*\)' "$root/README.md" | tr -d '](' | tr -d ')' | grep -v '^http' | while read -r f; do
	[ -e "$root/$f" ] || echo "$f"
done >"$T/missing"
[ ! -s "$T/missing" ] || fail "README links to $(cat "$T/missing")"
# shellcheck disable=SC2016
grep -oE '`make [a-z0-9-]+' "$root/README.md" | sed 's/.*make //' | sort -u | while read -r target; do
	grep -qE "^$target:" "$root/Makefile" || echo "$target"
done >"$T/missing"
[ ! -s "$T/missing" ] || fail "README names make $(cat "$T/missing")"

# The five commands.  A real engine from the cache stands for the one that README builds.
prebuilt_engine || exit 1
cd "$T" || exit 1
verify-agent serve 2>>"$T/agent.log" &
agent_pid=$!
wait_for 20 test -S "$XDG_STATE_HOME/verify-agent/agent.sock" || fail "verify-agent serve: $(cat "$T/agent.log")"
timeout 100 verify-agent make-model tiny.gguf >"$T/out" 2>&1; status 0 $? "make-model: $(cat "$T/out")"
timeout "$limit" verify-controller run local --suite llama.cpp --model tiny.gguf --prebuilt "$ENGINE_BIN" >"$T/out" 2>"$T/err"
status 7 $? "run local: $(cat "$T/err")"
verify-controller classes >"$T/out"; status 0 $? classes
class=$(sed -n 2p "$T/out"); class=${class%% *}
verify-controller why "$class" >"$T/out"; status 0 $? "why $class"
has "$T/out" "$class"
# Paths of the README's inventory example parse.
mkdir -p "$XDG_CONFIG_HOME/verify"
awk '/^```ini/ { on = 1; next } /^```/ { on = 0 } on' "$root/README.md" >"$XDG_CONFIG_HOME/verify/hosts.conf"
verify-controller hosts --names >"$T/out" 2>"$T/err"; status 0 $? "README's hosts.conf: $(cat "$T/err")"
has "$T/out" lab-1
sed -n '/^\.Bd/,/^\.Ed/p' "$root/agent/verify-agent.conf.5" | grep -v '^\.' >"$T/agent.conf"
timeout 20 verify-agent serve --config "$T/agent.conf" --state "$T/none" --listen nonsense >"$T/out" 2>"$T/err"
lacks "$T/err" "agent.conf:"
