# Every command and every option that --help names is in the manual, and the completion
# script is one that the shell reads.
# shellcheck shell=sh disable=SC2154,SC2013
page=$root/controller/verify-controller.1
controller help >"$T/help" || fail "help"
for c in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\).*/\1/p' "$T/help"); do
	grep -q "^\.It Ic $c\( \|\$\)" "$page" || fail "the manual lacks the command $c"
	controller help "$c" >"$T/one" || fail "help $c"
	for o in $(sed -n 's/^  \(    \|-., \)--\([a-z-]*\).*/\2/p' "$T/one"); do
		[ "$o" = help ] && continue
		awk -v c="$c" '$1 == ".It" && $2 == "Ic" { on = $3 == c } on' "$page" >"$T/part"
		grep -q "^\.It .*Fl Fl $o\( \|\$\)" "$T/part" || fail "the manual lacks $c --$o"
	done
done
controller --version >"$T/out"; has "$T/out" 'verify-controller '
controller completion bash >"$T/completion"; status 0 $? "completion"
bash -n "$T/completion" || fail "the completion script is not one"
bash -c '. "$1"; COMP_WORDS=(verify-controller run --on) COMP_CWORD=2
	_verify_controller; echo "${COMPREPLY[*]}"' bash "$T/completion" >"$T/out"
[ "$(cat "$T/out")" = --only ] || fail "completes --only, got $(cat "$T/out")"
bash -c '. "$1"; COMP_WORDS=(verify-controller run --only s) COMP_CWORD=3
	_verify_controller; echo "${COMPREPLY[*]}"' bash "$T/completion" >"$T/out"
[ "$(cat "$T/out")" = smoke ] || fail "completes the value, got $(cat "$T/out")"
