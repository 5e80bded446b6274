# Engine sources that are none, flags that are none, builds that fail: each its own reason,
# and what was installed before stays.
# shellcheck shell=sh disable=SC2154

mkdir -p "$T/empty" "$T/half/ggml" "$T/git"
echo text >"$T/file"
mkfifo "$T/fifo"
# wants GATE "OUTCOME REASON" EXIT TEXT ARGUMENT...
wants() {
	gate=$1 want=$2 code=$3 text=$4
	shift 4
	timeout 100 "$bin/verify-agent" run cpu --only build --suite llama.cpp --report "$T/r.json" "$@" >"$T/out" 2>"$T/err"
	status "$code" $? "$*: $(tail -n 1 "$T/err")"
	equal "$want" "$(outcome "$T/r.json" "$gate")" "$gate with $*"
	has "$T/err" "$text"
	lacks "$T/out" PASS
	equal 0 "$(field "$T/r.json" passRecordable)" passRecordable
}
wants source "blocked source_not_given" 3 "no engine source was named"
wants source "blocked source_not_engine" 3 "has no CMakeLists.txt" --source "$T/empty"
wants source "blocked source_not_engine" 3 "has no CMakeLists.txt" --source "$T/half"
wants source "blocked source_missing" 3 "$T/nothing" --source "$T/nothing"
wants source "blocked source_not_engine" 3 "the source is a file, and not a git bundle" --source "$T/file"
wants source "blocked source_missing" 3 "$T/fifo is neither a folder nor a bundle" --source "$T/fifo"
wants source "blocked source_fetch_failed" 3 "git fetch" --source "file://$T/nothing.git"
grep -q "$T/nothing.git' does not" hardware-results/*-source.*.log || fail "the log has git's own words"

fake_engine "$T/src"
: >"$T/go"
out=$T/eliza/local-inference/bin/mtp/$(agent run cpu --only probe --report "$T/r.json" >/dev/null 2>&1; field "$T/r.json" target)
mkdir -p "$out"
echo "stood here before" >"$out/llama-completion"
# Flags are looked at before anything is done.
rm -f "$T/r.json"
agent run cpu --source "$T/src" --set 'cmakeFlags=-DX=1 rm -rf' --report "$T/r.json" >"$T/out" 2>"$T/err"
status 2 $? "cmake flags that are none"
has "$T/err" "rm"
[ ! -e "$T/r.json" ] || fail "a report of nothing"
printf 'message(FATAL_ERROR "this tree refuses")\n' >>"$T/src/CMakeLists.txt"
wants build "fail configure_failed" 1 "this tree refuses" --source "$T/src"
fake_engine "$T/src"
printf 'echo "int main(void) { return nonsense; }" >waited.c\n' >"$T/src/wait.sh"
wants build "fail build_failed" 1 "nonsense" --source "$T/src"
# A compiler that the kernel kills says nothing about the source.
real_cc=$(command -v cc)
mkdir -p "$T/tools"
cat >"$T/tools/cc" <<-END
	#!/bin/sh
	case "\$*" in
	*"-c "*waited.c) exec $(command -v cc) -wrapper /bin/sh,-c,'kill -SEGV \$\$' "\$@" ;;
	esac
	exec $(command -v cc) "\$@"
END
chmod +x "$T/tools/cc"
fake_engine "$T/src"
PATH=$T/tools:$PATH
wants build "blocked toolchain_crash" 3 "Segmentation fault" --source "$T/src"
# One file takes long: the progress says which, and for how long, while nothing else happens.
cat >"$T/tools/cc" <<-END
	#!/bin/sh
	case "\$*" in *"-c "*waited.c) sleep 12 ;; esac
	exec $real_cc "\$@"
END
fake_engine "$T/src"
wants build "pass none" 7 "compiling " --source "$T/src"
grep -q '^  build [0-9]*/[0-9]* compiling .*waited\.c (1[0-9] s)' "$T/err" || fail "what is compiled: $(cat "$T/err")"
cat hardware-results/*-build*.log | grep -q '^slowStep=.*waited\.c 1[0-9] s$' || fail "the log names no slow step"
PATH=${PATH#"$T/tools:"}
# It builds; but nobody's other files in the output folder are touched for it.
fake_engine "$T/src"
wants build "pass none" 7 "built llama-completion" --source "$T/src"
equal "0 0" "$(field "$T/r.json" build.installed) $(field "$T/r.json" build.reused)" "installed, reused"
field "$T/r.json" build.publishGate | grep -q "left alone" || fail "publishGate: $(field "$T/r.json" build.publishGate)"
equal "stood here before" "$(cat "$out/llama-completion")" "what was installed before"
# The second time nothing is built; another flag is another build; a changed tree too.
wants build "pass none" 7 "reused the build of" --source "$T/src"
equal 1 "$(field "$T/r.json" build.reused)" reused
wants build "pass none" 7 "built llama-completion" --source "$T/src" --set cmakeFlags=-DVERIFY_TEST=1
echo "/* changed */" >>"$T/src/include/llama.h"
wants build "pass none" 7 "built llama-completion" --source "$T/src"
# Folders as people type them, below the current one: git, cmake and the engine run in others.
if ! git -C "$T/src" init -q || ! git -C "$T/src" add -A ||
	! git -C "$T/src" -c user.name=Test -c user.email=test@example.org commit -qm engine; then
	fail "a commit"
fi
mkdir "$T/here"
(cd "$T/here" && wants build "pass none" 7 "built llama-completion" --source ../src --state state --log-dir logs; exit "$bad") || bad=1
[ -s "$T/here/state/key.pem" ] || fail "--state below the current folder"
[ -z "$(git -C "$T/src" status --porcelain)" ] || fail "something was left in the source: $(git -C "$T/src" status --porcelain)"
# A program that prints no help is no driver: the smoke is blocked, not passed.
model
timeout 100 "$bin/verify-agent" run cpu --suite llama.cpp --source "$T/src" --model "$MODEL" --report "$T/r.json" >"$T/out" 2>"$T/err"
status 3 $? "a fake engine: $(tail -n 1 "$T/err")"
for family in f16 q8_0 iq4_nl; do
	equal "blocked help_unreadable" "$(outcome "$T/r.json" graph-smoke/$family)" "$family of a fake engine"
done
equal 0 "$(field "$T/r.json" passRecordable)" "a fake engine"
