#include "common/opt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

#define HELP_MAX 262144 /* bytes of one help text or completion script */
#define HELP_COLUMN 26
#define HELP_WIDTH 80
#define WORD_MAX 64     /* longest word that is compared for suggestions */

/* Answered by opt_main itself, listed after the program's own. */
static const struct command builtins[] = {
	{.name = "help", .arguments = "[COMMAND]", .summary = "explain a command",
	 .max_args = 1},
	{.name = "completion", .arguments = "bash",
	 .summary = "print a completion script for the shell",
	 .help = "Prints a script that completes commands, options and their values.\n\n"
		 "  source <(PROGRAM completion bash)     in ~/.bashrc",
	 .min_args = 1, .max_args = 1},
};

/* ---- finding and suggesting ---- */

static size_t
smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, change, swap of neighbours) from a to b. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[3][WORD_MAX + 1], n = strlen(a), m = strlen(b), i, j, cost;
	size_t *two = row[0], *one = row[1], *now = row[2], *spare;

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= m; j++)
		one[j] = two[j] = j;
	for (i = 1; i <= n; i++) {
		now[0] = i;
		for (j = 1; j <= m; j++) {
			cost = a[i - 1] != b[j - 1];
			now[j] = smaller(one[j - 1] + cost, smaller(one[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = smaller(now[j], two[j - 2] + 1);
		}
		spare = two, two = one, one = now, now = spare;
	}
	return one[m];
}

const char *
opt_nearest(const char *word, const char *const *words, size_t n)
{
	size_t best = strlen(word) / 3 + 1, d, i;
	const char *found = NULL;

	for (i = 0; i < n; i++) {
		if (*word != '\0' && str_starts(words[i], word))
			return words[i];
		d = distance(word, words[i]);
		if (d <= best && d < strlen(words[i]) && (found == NULL || d < best))
			best = d, found = words[i];
	}
	return found;
}

/* The i-th command: the program's, then ours; NULL past the end. */
static const struct command *
command_at(const struct program *p, size_t i)
{
	if (i < p->count)
		return &p->commands[i];
	i -= p->count;
	return i < str_count(builtins) ? &builtins[i] : NULL;
}

const struct command *
opt_find(const struct program *p, const char *name)
{
	const struct command *c;
	size_t i;

	for (i = 0; (c = command_at(p, i)) != NULL; i++)
		if (str_eq(c->name, name))
			return c;
	return NULL;
}

static int
unknown_command(const struct program *p, const char *name, struct err *e)
{
	const char *words[OPT_MAX_LIST * 2], *near;
	const struct command *c;
	size_t i, n = 0;

	for (i = 0; (c = command_at(p, i)) != NULL && n < str_count(words); i++)
		if (!c->hidden)
			words[n++] = c->name;
	err_set(e, ERR_USAGE, "no such command: \"%.60s\"", name);
	if ((near = opt_nearest(name, words, n)) != NULL)
		return err_hint(e, "did you mean \"%s\"?", near);
	return err_hint(e, "see \"%s help\"", p->name);
}

static const struct opt *
find_long(const struct opt *opts, size_t count, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strlen(opts[i].name) == len && memcmp(opts[i].name, name, len) == 0)
			return &opts[i];
	return NULL;
}

static const struct opt *
find_letter(const struct opt *opts, size_t count, char letter)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (opts[i].letter != 0 && opts[i].letter == letter)
			return &opts[i];
	return NULL;
}

static int
unknown_option(const struct opt *opts, size_t count, const char *arg, size_t len,
	struct err *e)
{
	const char *words[OPT_MAX_LIST * 2], *near;
	char name[WORD_MAX + 1];
	size_t i, n = 0;

	str_show(name, sizeof name, arg, len);
	for (i = 0; i < count && n < str_count(words); i++)
		words[n++] = opts[i].name;
	err_set(e, ERR_USAGE, "no such option: --%s", name);
	if ((near = opt_nearest(name, words, n)) != NULL)
		return err_hint(e, "did you mean --%s?", near);
	return err_hint(e, "--help lists the options");
}

/* ---- values ---- */

static int
set_text(const struct opt *o, const char *text, const char **to, struct err *e)
{
	uint64_t max = o->max ? o->max : OPT_MAX_TEXT;

	if (strlen(text) > max)
		return err_set(e, ERR_LIMIT, "--%s: longer than %llu bytes", o->name,
			(unsigned long long)max);
	*to = text;
	return 0;
}

static int
set_choice(const struct opt *o, const char *text, const char **to, struct err *e)
{
	struct buf list;
	size_t i, n = 0;
	const char *near;

	for (n = 0; o->choices[n] != NULL; n++)
		if (str_eq(o->choices[n], text)) {
			*to = o->choices[n];
			return 0;
		}
	buf_init(&list, sizeof e->hint);
	for (i = 0; i < n; i++)
		if (buf_addf(&list, NULL, "%s%s", i ? ", " : "", o->choices[i]))
			break;
	err_set(e, ERR_USAGE, "--%s: \"%.60s\" is not one of: %.200s", o->name, text,
		list.data ? list.data : "");
	buf_fini(&list);
	if ((near = opt_nearest(text, o->choices, n)) != NULL)
		err_hint(e, "did you mean %s?", near);
	return -1;
}

static int
set_list(const struct opt *o, const char *text, struct opt_list *to, struct err *e)
{
	if (to->count == OPT_MAX_LIST)
		return err_set(e, ERR_LIMIT, "--%s: given more than %d times", o->name,
			OPT_MAX_LIST);
	return set_text(o, text, &to->item[to->count], e) ? -1 : (to->count++, 0);
}

int
opt_set(const struct opt *o, const char *text, void *values, struct err *e)
{
	void *to = (char *)values + o->offset;
	bool *flag = to;

	switch (o->kind) {
	case OPT_FLAG:
		*flag = true;
		return 0;
	case OPT_TEXT:
		return set_text(o, text, to, e);
	case OPT_NUMBER:
		if (str_u64(text, o->min, o->max, to, e) == 0)
			return 0;
		e->code = ERR_USAGE;
		return err_wrap(e, "--%s", o->name);
	case OPT_CHOICE:
		return set_choice(o, text, to, e);
	case OPT_LIST:
		return set_list(o, text, to, e);
	}
	return err_set(e, ERR_USAGE, "--%s: a kind of option that is not known", o->name);
}

/* ---- parsing ---- */

/* argv while it is read: at is the next word. */
struct words {
	int argc, at;
	char **argv;
};

static int
take_value(const struct opt *o, const char *joined, struct words *w, void *values,
	struct err *e)
{
	if (o->kind == OPT_FLAG) {
		if (joined != NULL)
			return err_set(e, ERR_USAGE, "--%s takes no value", o->name);
		return opt_set(o, "", values, e);
	}
	if (joined == NULL) {
		if (w->at == w->argc) {
			err_set(e, ERR_USAGE, "--%s needs a value", o->name);
			return err_hint(e, "--%s %s", o->name, o->word ? o->word : "VALUE");
		}
		joined = w->argv[w->at++];
	}
	return opt_set(o, joined, values, e);
}

static int
parse_long(const struct opt *opts, size_t count, const char *arg, struct words *w,
	void *values, struct err *e)
{
	size_t len = strcspn(arg, "=");
	const struct opt *o = find_long(opts, count, arg, len);

	if (o == NULL)
		return unknown_option(opts, count, arg, len, e);
	return take_value(o, arg[len] == '=' ? arg + len + 1 : NULL, w, values, e);
}

static int
parse_letters(const struct opt *opts, size_t count, const char *arg, struct words *w,
	void *values, struct err *e)
{
	const struct opt *o;

	for (; *arg != '\0'; arg++) {
		if ((o = find_letter(opts, count, *arg)) == NULL) {
			err_set(e, ERR_USAGE, "no such option: -%c",
				isprint((unsigned char)*arg) ? *arg : '?');
			return err_hint(e, "--help lists the options");
		}
		if (o->kind != OPT_FLAG)
			return take_value(o, arg[1] ? arg + 1 : NULL, w, values, e);
		if (opt_set(o, "", values, e))
			return -1;
	}
	return 0;
}

static int
put_fallbacks(const struct opt *opts, size_t count, void *values, struct err *e)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (opts[i].fallback != NULL && opts[i].kind != OPT_LIST &&
		    opt_set(&opts[i], opts[i].fallback, values, e))
			return err_wrap(e, "default");
	return 0;
}

int
opt_parse(const struct opt *opts, size_t count, int argc, char **argv, void *values,
	char **args, int max, int *n, bool *help, struct err *e)
{
	struct words w = {argc, 0, argv};
	bool ended = false;
	char *a;

	*n = 0, *help = false;
	if (put_fallbacks(opts, count, values, e))
		return -1;
	while (w.at < w.argc) {
		a = w.argv[w.at++];
		if (ended || a[0] != '-' || a[1] == '\0') {
			if (*n == max)
				return err_set(e, ERR_USAGE, "too many arguments, from \"%.60s\" on",
					a);
			args[(*n)++] = a;
		} else if (str_eq(a, "--"))
			ended = true;
		else if (str_eq(a, "--help") ||
			 (str_eq(a, "-h") && find_letter(opts, count, 'h') == NULL))
			*help = true;
		else if (a[1] == '-' ? parse_long(opts, count, a + 2, &w, values, e)
				     : parse_letters(opts, count, a + 1, &w, values, e))
			return *help ? 0 : -1;
	}
	return 0;
}

/* ---- help ---- */

/* Words of text wrapped into the columns from `from` on; the line already holds `at`. */
static int
add_wrapped(struct buf *b, size_t at, size_t from, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n + strspn(text + n, " ")) {
		n = strcspn(text, " ");
		if (at > from && at + 1 + n > HELP_WIDTH) {
			if (buf_addf(b, NULL, "\n"))
				return -1;
			at = 0;
		}
		if (at < from) {
			if (buf_addf(b, NULL, "%*s", (int)(from - at), ""))
				return -1;
			at = from;
		} else if (at > from) {
			if (buf_addf(b, NULL, " "))
				return -1;
			at++;
		}
		if (buf_add(b, text, n, NULL))
			return -1;
		at += n;
	}
	return buf_addf(b, NULL, "\n");
}

/* A row of two columns; the left one may be too long for its column. */
static int
add_row(struct buf *b, const char *left, const char *right)
{
	size_t n = strlen(left);

	if (buf_addf(b, NULL, "%s", left))
		return -1;
	if (n + 2 > HELP_COLUMN) {
		if (buf_addf(b, NULL, "\n"))
			return -1;
		n = 0;
	}
	return add_wrapped(b, n, HELP_COLUMN, right);
}

/* "one of a, b; default x; 1 to 20 ms" after an option's sentence. */
static int
add_bounds(struct buf *b, const struct opt *o)
{
	const char *sep = " (";
	size_t i;

	if (o->kind == OPT_CHOICE) {
		for (i = 0; o->choices[i] != NULL; i++, sep = ", ")
			if (buf_addf(b, NULL, "%s%s", sep, o->choices[i]))
				return -1;
		sep = "; ";
	}
	if (o->kind == OPT_NUMBER) {
		if (buf_addf(b, NULL, "%s%llu to %llu%s%s", sep, (unsigned long long)o->min,
			(unsigned long long)o->max, o->unit ? " " : "",
			o->unit ? o->unit : ""))
			return -1;
		sep = "; ";
	}
	if (o->fallback != NULL) {
		if (buf_addf(b, NULL, "%sdefault %s", sep, o->fallback))
			return -1;
		sep = "; ";
	}
	if (o->kind == OPT_LIST) {
		if (buf_addf(b, NULL, "%smay be repeated", sep))
			return -1;
		sep = "; ";
	}
	return sep[0] == ' ' ? 0 : buf_addf(b, NULL, ")");
}

static int
add_option(struct buf *b, const struct opt *o)
{
	char left[128], letter[8] = "    ";
	struct buf right;
	int rc = -1;

	buf_init(&right, HELP_MAX);
	if (o->letter != 0)
		snprintf(letter, sizeof letter, "-%c, ", o->letter);
	snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name,
		o->kind == OPT_FLAG ? "" : " ",
		o->kind == OPT_FLAG ? "" : o->word ? o->word : "VALUE");
	if (buf_addf(&right, NULL, "%s", o->help) || add_bounds(&right, o))
		goto out;
	rc = add_row(b, left, right.data);
out:
	buf_fini(&right);
	return rc;
}

static int
add_options(struct buf *b, const struct command *c)
{
	size_t i;

	if (buf_addf(b, NULL, "\noptions:\n"))
		return -1;
	for (i = 0; i < c->opt_count; i++)
		if (add_option(b, &c->opts[i]))
			return -1;
	return add_row(b, "      --help", "show this text");
}

/* Gives the text, or frees it when it is not whole. */
static char *
finish(struct buf *b, int failed)
{
	if (!failed)
		return buf_take(b);
	buf_fini(b);
	return NULL;
}

char *
opt_help_command(const struct program *p, const struct command *c)
{
	struct buf b;
	int bad;

	buf_init(&b, HELP_MAX);
	bad = buf_addf(&b, NULL, "usage: %s %s%s%s%s\n%s: %s\n", p->name, c->name,
		c->arguments ? " " : "", c->arguments ? c->arguments : "",
		c->opt_count ? " [options]" : "", c->name, c->summary);
	if (!bad && c->help != NULL)
		bad = buf_addf(&b, NULL, "\n%s\n", c->help);
	if (!bad)
		bad = add_options(&b, c);
	return finish(&b, bad);
}

char *
opt_help_program(const struct program *p)
{
	const struct command *c;
	struct buf b;
	char left[96];
	size_t i;
	int bad;

	buf_init(&b, HELP_MAX);
	bad = buf_addf(&b, NULL, "usage: %s COMMAND [arguments] [options]\n%s\n\ncommands:\n",
		p->name, p->summary);
	for (i = 0; !bad && (c = command_at(p, i)) != NULL; i++) {
		if (c->hidden)
			continue;
		snprintf(left, sizeof left, "  %s%s%s", c->name, c->arguments ? " " : "",
			c->arguments ? c->arguments : "");
		bad = add_row(&b, left, c->summary);
	}
	if (!bad)
		bad = buf_addf(&b, NULL, "\n\"%s help COMMAND\" explains one.%s%s\n", p->name,
			p->help ? "\n\n" : "", p->help ? p->help : "");
	return finish(&b, bad);
}

/* ---- completion ---- */

static bool
is_file_word(const char *word)
{
	return str_eq(word, "PATH") || str_eq(word, "DIR") || str_eq(word, "FILE");
}

static int
add_value_case(struct buf *b, const struct command *c, const struct opt *o)
{
	size_t i;

	if (buf_addf(b, NULL, "\t\"%s --%s\"", c->name, o->name))
		return -1;
	if (o->letter != 0 && buf_addf(b, NULL, "|\"%s -%c\"", c->name, o->letter))
		return -1;
	if (o->kind != OPT_CHOICE)
		return buf_addf(b, NULL, ")%s return ;;\n", is_file_word(o->word) ?
			" COMPREPLY=($(compgen -f -- \"$cur\"));" : "");
	if (buf_addf(b, NULL, ") COMPREPLY=($(compgen -W \""))
		return -1;
	for (i = 0; o->choices[i] != NULL; i++)
		if (buf_addf(b, NULL, "%s%s", i ? " " : "", o->choices[i]))
			return -1;
	return buf_addf(b, NULL, "\" -- \"$cur\")); return ;;\n");
}

static int
add_values(struct buf *b, const struct program *p)
{
	const struct command *c;
	size_t i, k;

	for (i = 0; (c = command_at(p, i)) != NULL; i++)
		for (k = 0; !c->hidden && k < c->opt_count; k++)
			if (c->opts[k].kind != OPT_FLAG && add_value_case(b, c, &c->opts[k]))
				return -1;
	return 0;
}

static int
add_words(struct buf *b, const struct program *p, const struct command *c)
{
	size_t i;

	if (buf_addf(b, NULL, "\t\"%s -\"*) words=\"--help", c->name))
		return -1;
	for (i = 0; i < c->opt_count; i++)
		if (buf_addf(b, NULL, " --%s", c->opts[i].name))
			return -1;
	if (buf_addf(b, NULL, "\" ;;\n"))
		return -1;
	if (str_eq(c->name, "completion"))
		return buf_addf(b, NULL, "\t\"completion \"*) words=bash ;;\n");
	if (str_eq(c->name, "help"))
		return buf_addf(b, NULL, "\t\"help \"*) words=$commands ;;\n");
	if (c->complete == NULL)
		return 0;
	(void)p;
	return buf_addf(b, NULL, "\t\"%s \"*) words=$(%s 2>/dev/null) ;;\n", c->name,
		c->complete);
}

char *
opt_completion_bash(const struct program *p)
{
	const struct command *c;
	char fn[WORD_MAX + 1];
	struct buf b;
	size_t i;
	int bad;

	str_show(fn, sizeof fn, p->name, strlen(p->name));
	for (i = 0; fn[i] != '\0'; i++)
		if (!isalnum((unsigned char)fn[i]))
			fn[i] = '_';
	buf_init(&b, HELP_MAX);
	bad = buf_addf(&b, NULL,
		"# bash completion of %s; made by \"%s completion bash\"\n_%s()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tlocal words= commands=\"", p->name, p->name, fn);
	for (i = 0; !bad && (c = command_at(p, i)) != NULL; i++)
		if (!c->hidden)
			bad = buf_addf(&b, NULL, "%s%s", i ? " " : "", c->name);
	if (!bad)
		bad = buf_addf(&b, NULL, "\"\n\tCOMPREPLY=()\n\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))\n"
			"\t\treturn\n\tfi\n\tcase \"${COMP_WORDS[1]} $prev\" in\n") ||
			add_values(&b, p) ||
			buf_addf(&b, NULL, "\tesac\n\tcase \"${COMP_WORDS[1]} $cur\" in\n");
	for (i = 0; !bad && (c = command_at(p, i)) != NULL; i++)
		if (!c->hidden)
			bad = add_words(&b, p, c);
	if (!bad)
		bad = buf_addf(&b, NULL, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			"}\ncomplete -F _%s %s\n", fn, p->name);
	return finish(&b, bad);
}

/* ---- the whole of a main() ---- */

static int
complain(const struct program *p, const struct err *e)
{
	err_print(p->name, e);
	return err_exit(e->code);
}

/* Prints and frees text. */
static int
print_text(const struct program *p, char *text)
{
	struct err e = {0};

	if (text == NULL) {
		err_set(&e, ERR_NOMEM, "no memory for the text");
		return complain(p, &e);
	}
	fputs(text, stdout);
	free(text);
	return EXIT_PASS;
}

static int
run_builtin(const struct program *p, const struct command *c, int n, char **args)
{
	struct err e = {0};
	const struct command *about;

	if (str_eq(c->name, "completion")) {
		if (str_eq(args[0], "bash"))
			return print_text(p, opt_completion_bash(p));
		err_set(&e, ERR_USAGE, "no completion for \"%.40s\"", args[0]);
		err_hint(&e, "bash is there");
		return complain(p, &e);
	}
	if (n == 0)
		return print_text(p, opt_help_program(p));
	if ((about = opt_find(p, args[0])) == NULL) {
		unknown_command(p, args[0], &e);
		return complain(p, &e);
	}
	return print_text(p, opt_help_command(p, about));
}

static int
check_count(const struct program *p, const struct command *c, int n, char **args,
	struct err *e)
{
	if (n >= c->min_args && n <= c->max_args)
		return 0;
	if (n < c->min_args)
		err_set(e, ERR_USAGE, "%s: an argument is missing", c->name);
	else
		err_set(e, ERR_USAGE, "%s: one argument too many: \"%.60s\"", c->name,
			args[c->max_args]);
	return err_hint(e, "usage: %s %s %s", p->name, c->name,
		c->arguments ? c->arguments : "");
}

static int
run_command(const struct program *p, const struct command *c, int argc, char **argv)
{
	struct err e = {0};
	struct opt_call call = {.program = p->name};
	char **args = NULL;
	bool help = false;
	int status, n = 0;

	args = calloc((size_t)OPT_MAX_ARGS + 1, sizeof *args);
	call.values = calloc(1, c->size ? c->size : 1);
	if (args == NULL || call.values == NULL)
		err_set(&e, ERR_NOMEM, "no memory for the arguments");
	else if (opt_parse(c->opts, c->opt_count, argc, argv, call.values, args,
		OPT_MAX_ARGS, &n, &help, &e) == 0 && !help)
		(void)check_count(p, c, n, args, &e);
	call.argc = n, call.argv = args;
	if (help)
		status = print_text(p, opt_help_command(p, c));
	else if (e.code != ERR_NONE)
		status = complain(p, &e);
	else if (c->run == NULL)
		status = run_builtin(p, c, n, args);
	else
		status = c->run(&call);
	free(call.values);
	free(args);
	return status;
}

int
opt_main(const struct program *p, int argc, char **argv)
{
	const struct command *c = NULL;
	struct err e = {0};
	int status;

	if (argc < 2) {
		err_set(&e, ERR_USAGE, "a command is missing");
		err_hint(&e, "see \"%s help\"", p->name);
		status = complain(p, &e);
	} else if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))
		status = print_text(p, opt_help_program(p));
	else if (str_eq(argv[1], "--version")) {
		printf("%s %s\n", p->name, p->version);
		status = EXIT_PASS;
	} else if ((c = opt_find(p, argv[1])) == NULL) {
		unknown_command(p, argv[1], &e);
		status = complain(p, &e);
	} else
		status = run_command(p, c, argc - 2, argv + 2);
	if ((fflush(stdout) || ferror(stdout)) && status == EXIT_PASS) {
		err_set(&e, ERR_IO, "cannot write to the standard output");
		status = complain(p, &e);
	}
	return status;
}
