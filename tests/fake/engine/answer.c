/*
 * Every program of the stand-in engine: says that it is simulated, and answers from
 * answers.tsv of the folder engine (or that of VERIFY_ENGINE) below the one that VERIFY_MACHINE
 * names.  Rows:
 *
 *   program, words, file, exit code, stream, edits
 *
 * The first row whose program is ours and all of whose words stand among our arguments in
 * that order is printed.  The file's path is relative to the machine's folder.  Edits, "-" for
 * none, are FROM=>TO, with | between them, made in every line; the row's file is then
 * another's recording and the first line says what was put in.  A stream "stdout-crlf" or
 * "stderr-crlf" ends its lines as on Windows.
 *
 * Instead of an exit code, for what comes after all of it: sigN (it dies of that signal), hang
 * (it never ends), flood (24 MB more).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 6
#define EDITS 8
#define LINE 65536
#define FLOOD 24000000

struct edit {
	const char *from, *to;
};

static int
columns(char *line, char *v[COLUMNS])
{
	int n = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (n < COLUMNS) {
		v[n++] = line;
		line += strcspn(line, "\t");
		if (*line == '\0')
			break;
		*line++ = '\0';
	}
	return n;
}

/* The words of "test -o SET_ROWS", each after the one before. */
static int
asked(const char *words, int argc, char **argv)
{
	size_t n;
	int i = 1;

	if (strcmp(words, "-") == 0)
		return 1;
	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		while (i < argc && (strlen(argv[i]) != n || strncmp(argv[i], words, n) != 0))
			i++;
		if (i++ >= argc)
			return 0;
	}
	return 1;
}

static int
edits_read(char *text, struct edit v[EDITS])
{
	char *arrow, *next;
	int n = 0;

	if (strcmp(text, "-") == 0)
		return 0;
	for (; text != NULL && n < EDITS; text = next) {
		if ((next = strchr(text, '|')) != NULL)
			*next++ = '\0';
		if ((arrow = strstr(text, "=>")) == NULL || arrow == text)
			return -1;
		*arrow = '\0';
		v[n].from = text;
		v[n++].to = arrow + 2;
	}
	return n;
}

/* At each place the first edit that fits; what was put in is not edited again. */
static void
line_put(const char *p, const struct edit *v, int n, const char *end, FILE *to)
{
	size_t k;
	int i;

	while (*p != '\0') {
		for (i = 0; i < n && strncmp(p, v[i].from, strlen(v[i].from)) != 0; i++)
			;
		if (i < n) {
			fputs(v[i].to, to);
			k = strlen(v[i].from);
		} else {
			if (*p == '\n')
				fputs(end, to);
			else
				fputc(*p, to);
			k = 1;
		}
		p += k;
	}
}

/* The exit code, when it comes to one. */
static int
end(const char *how, FILE *to)
{
	static const char again[] = "simulated engine: this line comes again and again, as a fault\n";
	size_t n;
	int number;

	if (strcmp(how, "flood") == 0)
		for (n = 0; n < FLOOD; n += sizeof again - 1)
			fputs(again, to);
	if (fflush(to) != 0)
		return 2;
	if (strncmp(how, "sig", 3) == 0) {
		number = (int)strtol(how + 3, NULL, 10);
		signal(number, SIG_DFL); /* a sanitizer would make an exit code of it */
		raise(number);
	}
	while (strcmp(how, "hang") == 0)
		pause();
	return (int)strtol(how, NULL, 10);
}

static int
answer(const char *dir, char *row[COLUMNS])
{
	static char line[LINE];
	struct edit edits[EDITS];
	char path[4096];
	const char *line_end = strstr(row[4], "-crlf") != NULL ? "\r\n" : "\n";
	FILE *f, *to = strncmp(row[4], "stderr", 6) == 0 ? stderr : stdout;
	int n, i;

	if ((n = edits_read(row[5], edits)) < 0 ||
	    snprintf(path, sizeof path, "%s/%s", dir, row[2]) >= (int)sizeof path ||
	    (f = fopen(path, "re")) == NULL) {
		fprintf(stderr, "simulated engine: the row of %s can not be answered\n", row[2]);
		return 2;
	}
	fprintf(to, "simulated engine: what follows was recorded, %s", row[2]);
	for (i = 0; i < n; i++)
		fprintf(to, "%s\"%s\" for \"%s\"", i ? ", " : ", and has ", edits[i].to, edits[i].from);
	fputs(line_end, to);
	while (fgets(line, sizeof line, f) != NULL)
		line_put(line, edits, n, line_end, to);
	fclose(f);
	return end(row[3], to);
}

int
main(int argc, char **argv)
{
	static char line[LINE];
	const char *dir = getenv("VERIFY_MACHINE"), *engine = getenv("VERIFY_ENGINE");
	const char *name = strrchr(argv[0], '/');
	char path[4096], *row[COLUMNS];
	FILE *f;

	name = name != NULL ? name + 1 : argv[0];
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("version: simulated");
		return 0;
	}
	if (dir == NULL || snprintf(path, sizeof path, "%s/%s/answers.tsv", dir,
		engine != NULL ? engine : "engine") >= (int)sizeof path || (f = fopen(path, "re")) == NULL) {
		fputs("simulated engine: no recorded machine answers (VERIFY_MACHINE)\n", stderr);
		return 2;
	}
	while (fgets(line, sizeof line, f) != NULL)
		if (line[0] != '#' && columns(line, row) == COLUMNS && strcmp(row[0], name) == 0 &&
		    asked(row[1], argc, argv)) {
			fclose(f);
			return answer(dir, row);
		}
	fclose(f);
	fprintf(stderr, "simulated engine: %s was not recorded with these arguments\n", name);
	return 1;
}
