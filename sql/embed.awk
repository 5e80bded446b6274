# Turns the migrations and the named statements into C tables.
# usage: awk -f sql/embed.awk sql/001_*.sql ... sql/queries.sql > sql.c
# Migrations become character arrays: they are longer than a string literal may be.

function die(text) {
	print FILENAME ":" FNR ": " text | "cat 1>&2"
	failed = 1
	exit 1
}

function begin_file(    base) {
	base = FILENAME
	sub(/^.*\//, "", base)
	migration = base ~ /^[0-9][0-9][0-9]_[a-z0-9_]+\.sql$/
	name = ""
	if (!migration)
		return
	count++
	if (substr(base, 1, 3) + 0 != count)
		die("migration numbers must follow each other from 001")
	title[count] = substr(base, 5, length(base) - 8)
	printf "\nstatic const char migration_%d[] = {", count
}

function begin_statement(word) {
	if (word !~ /^[a-z][a-z0-9_]*$/)
		die("a statement's name is a lower-case word")
	if (word in seen)
		die("second statement named " word)
	seen[word] = 1
	statements++
	order[statements] = word
	name = word
}

BEGIN {
	for (i = 32; i < 127; i++)
		literal[sprintf("%c", i)] = "'" sprintf("%c", i) "'"
	literal["'"] = "'\\''"
	literal["\\"] = "'\\\\'"
	literal["\t"] = "'\\t'"
	print "/* Made by sql/embed.awk: do not edit. */"
	print "#include \"controller/sql.h\"\n\n#include <stddef.h>"
}

FNR == 1 {
	if (NR > 1 && migration)
		print "\n\t0};"
	begin_file()
}

/[^\t -~]/ {
	die("only ASCII may stand in SQL")
}

migration {
	line = ""
	for (i = 1; i <= length($0); i++)
		line = line literal[substr($0, i, 1)] ","
	printf "\n\t%s'\\n',", line
	next
}

/^-- name: / {
	begin_statement($3)
	next
}

/^(--|$)/ {
	next
}

{
	if (name == "")
		die("a statement without a name")
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	gsub(/\t/, "\\t")
	text[name] = text[name] "\n\t\t\"" $0 "\\n\""
}

END {
	if (failed)
		exit 1
	if (migration)
		print "\n\t0};"
	print "\nconst struct sql_migration sql_migrations[] = {"
	for (i = 1; i <= count; i++)
		printf "\t{%d, \"%s\", migration_%d},\n", i, title[i], i
	print "\t{0, NULL, NULL},\n};"
	printf "const int sql_version = %d;\n", count
	print "\nconst char *const sql_text[SQL_COUNT] = {"
	for (i = 1; i <= statements; i++)
		printf "\t[SQL_%s] =%s,\n", toupper(order[i]), text[order[i]]
	print "};"
	printf "_Static_assert(SQL_COUNT == %d, ", statements
	print "\"controller/sql.h and sql/queries.sql differ\");"
}
