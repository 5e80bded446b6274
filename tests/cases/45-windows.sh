# Outputs of tools and engines in the forms of Windows (fixtures/windows): CRLF and UTF-16
# change no conclusion, and no beginning of a good log is a pass.
files=$root/fixtures/windows
rows=0
# shellcheck disable=SC2086
while IFS="$(printf '\t')" read -r pattern how code outcome words; do
	case $pattern in '' | \#*) continue ;; esac
	for form in crlf utf16; do
		f=$files/${pattern%%.\**}.$form.${pattern##*.}
		rows=$((rows + 1))
		case $how in
		parse*) agent $how "$f" >"$T/out" 2>"$T/err" ;;
		*) controller $how --json "$f" >"$T/out" 2>"$T/err" ;;
		esac
		status "$code" $? "$how ${f##*/}"
		[ "$outcome" = - ] || equal "$outcome" "$(field "$T/out" outcome)" "$how ${f##*/}"
		left=$words
		while [ -n "$left" ]; do
			has "$T/out" "${left%%|*}"
			case $left in *'|'*) left=${left#*|} ;; *) break ;; esac
		done
		lacks "$T/out" '\r'
	done
done <"$files/index.tsv"
[ $rows -eq 18 ] || fail "$rows files were read"
for f in "$files"/engine-cuda-q8_0.*.log; do
	n=$(wc -c <"$f")
	for part in 1 10 50 90 97; do
		head -c $((n * part / 100)) "$f" | controller appraise -l windows-cuda -s llama.cpp -t q8_0 - >/dev/null && fail "$part % of ${f##*/} pass"
	done
done
