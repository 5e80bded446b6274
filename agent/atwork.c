#include "agent/atwork.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/str.h"

#define MAX_PROCESSES 32768
#define MAX_DEPTH 12    /* ninja, a shell, ccache, nvcc, its own shell, a compiler */
#define MAX_COMMAND 32768

struct process {
	pid_t pid, parent;
	uint64_t start; /* clock ticks since the boot */
	int depth;      /* below the parent that is asked about; 0 not below it */
	int command;    /* index of the command it belongs to, -1 none */
};

/* ---- the file in a command line ---- */

static bool
is_source(const char *word)
{
	static const char *const ends[] = {
		".c", ".cc", ".cpp", ".cxx", ".cu", ".hip", ".m", ".mm", ".metal", ".S", ".s", ".asm",
		".comp", ".glsl", ".f90",
	};
	size_t i;

	for (i = 0; i < str_count(ends); i++)
		if (word[0] != '-' && strlen(word) > strlen(ends[i]) && str_ends(word, ends[i]))
			return true;
	return false;
}

/* The last word of a row of words that is a source, and the one behind -o. */
struct found {
	const char *source, *output;
	bool compile; /* the source stood behind -c, which says it for certain */
};

static void
word_take(struct found *f, const char *before, const char *word)
{
	bool compile = strcmp(before, "-c") == 0;

	if (strcmp(before, "-o") == 0)
		f->output = word;
	else if (is_source(word) && (compile || !f->compile)) {
		f->source = word;
		f->compile = compile;
	}
}

/* Takes a shell's command apart in place: blanks, quotes, backslashes, and nothing more. */
static void
shell_take(struct found *f, char *text)
{
	const char *before = "";
	char *in = text, *out, *word;
	char quote;

	while (*in != '\0') {
		in += strspn(in, " \t\n;&|()");
		for (word = out = in, quote = '\0'; *in != '\0'; in++) {
			if (quote == '\0' && strchr(" \t\n;&|()", *in) != NULL)
				break;
			if (quote == '\0' && (*in == '"' || *in == '\'')) {
				quote = *in;
			} else if (*in == quote) {
				quote = '\0';
			} else {
				in += *in == '\\' && quote != '\'' && in[1] != '\0';
				*out++ = *in;
			}
		}
		in += *in != '\0';
		*out = '\0';
		if (*word != '\0')
			word_take(f, before, word);
		before = word;
	}
}

static bool
is_shell(const char *word)
{
	static const char *const shells[] = {"sh", "bash", "dash", "ash", "zsh"};
	size_t i;

	for (i = 0; i < str_count(shells); i++)
		if (strcmp(str_base(word), shells[i]) == 0)
			return true;
	return false;
}

/* With the folder it is in: names repeat. */
static void
name_show(const char *path, char out[ATWORK_NAME])
{
	const char *base = str_base(path), *from = base;

	for (; from > path && (from == base || from[-1] != '/'); from--)
		;
	if (strlen(from) >= ATWORK_NAME)
		from = base;
	str_show(out, ATWORK_NAME, from, strlen(from));
}

void
atwork_name(const char *words, size_t len, char out[ATWORK_NAME])
{
	struct found f = {NULL, NULL, false};
	const char *before = "", *program = "";
	char *copy = malloc(len + 1);
	size_t at, n, i;

	out[0] = '\0';
	if (copy == NULL)
		return;
	memcpy(copy, words, len);
	copy[len] = '\0';
	for (at = i = 0; at < len; at += n + 1, i++) {
		n = strlen(copy + at);
		if (i == 0)
			program = copy + at;
		else if (i == 2 && is_shell(program) && strcmp(before, "-c") == 0)
			shell_take(&f, copy + at);
		else
			word_take(&f, before, copy + at);
		before = copy + at;
	}
	if (f.source != NULL)
		name_show(f.source, out);
	else if (f.output != NULL)
		name_show(f.output, out);
	free(copy);
}

/* ---- processes ---- */

static size_t
proc_read(pid_t pid, const char *file, char *buf, size_t size)
{
	char path[64];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = '\0';
	return len;
}

/* "123 (a name) S 1 ..." with the start as its 22nd word; the name may hold anything. */
static bool
process_read(pid_t pid, struct process *p)
{
	char text[1024];
	const char *at;
	char *end;
	int i;

	if (proc_read(pid, "stat", text, sizeof text) == 0 || (at = strrchr(text, ')')) == NULL ||
	    at[1] != ' ' || at[2] == 'Z' || at[2] == '\0')
		return false;
	memset(p, 0, sizeof *p);
	p->pid = pid;
	p->command = -1;
	at += 3;
	p->parent = (pid_t)strtol(at, &end, 10);
	for (i = 4; i < 21 && *end == ' '; i++)
		end += 1 + strcspn(end + 1, " ");
	p->start = strtoull(end, NULL, 10);
	return i == 21;
}

static size_t
processes_read(struct process *v)
{
	DIR *d = opendir("/proc");
	const struct dirent *entry;
	size_t n = 0;
	long pid;

	while (d != NULL && n < MAX_PROCESSES && (entry = readdir(d)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		pid = strtol(entry->d_name, NULL, 10);
		n += process_read((pid_t)pid, &v[n]);
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* ---- the commands ---- */

struct list {
	struct process *v;
	size_t n;
	struct atwork commands[ATWORK_MAX];
	int count;
	char *text;
};

static int64_t
age_ms(const struct process *p)
{
	struct timespec now;
	long hz = sysconf(_SC_CLK_TCK);
	int64_t ms;

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
		return 0;
	ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
		(int64_t)(p->start * 1000 / (uint64_t)hz);
	return ms > 0 ? ms : 0;
}

/* A child of the build tool is a command; what is below it belongs to it.  The first of
 * them whose words name a file says which. */
static void
process_place(struct list *l, struct process *p, const struct process *parent)
{
	size_t len;

	p->depth = parent != NULL ? parent->depth + 1 : 1;
	p->command = parent != NULL ? parent->command : -1;
	if (p->depth == 2 && l->count < ATWORK_MAX) {
		l->commands[l->count].name[0] = '\0';
		l->commands[l->count].ms = age_ms(p);
		p->command = l->count++;
	}
	if (p->command < 0 || l->commands[p->command].name[0] != '\0')
		return;
	len = proc_read(p->pid, "cmdline", l->text, MAX_COMMAND);
	atwork_name(l->text, len, l->commands[p->command].name);
}

/* Level by level, as a pid says nothing of who was first. */
static void
tree_walk(struct list *l, pid_t root)
{
	size_t i, k;
	int depth;

	for (i = 0; i < l->n; i++)
		if (l->v[i].parent == root && l->v[i].pid != root)
			process_place(l, &l->v[i], NULL);
	for (depth = 1; depth < MAX_DEPTH; depth++)
		for (k = 0; k < l->n; k++)
			for (i = 0; l->v[k].depth == depth && i < l->n; i++)
				if (l->v[i].depth == 0 && l->v[i].parent == l->v[k].pid)
					process_place(l, &l->v[i], &l->v[k]);
}

static int
by_age(const void *a, const void *b)
{
	const struct atwork *x = a, *y = b;

	return (y->ms > x->ms) - (y->ms < x->ms);
}

int
atwork_list(pid_t parent, struct atwork *out, int max)
{
	struct list *l = calloc(1, sizeof *l);
	int i, named = 0;

	if (l != NULL && (l->v = calloc(MAX_PROCESSES, sizeof *l->v)) != NULL &&
	    (l->text = malloc(MAX_COMMAND)) != NULL) {
		l->n = processes_read(l->v);
		tree_walk(l, parent);
		for (i = 0; i < l->count; i++)
			if (l->commands[i].name[0] != '\0')
				l->commands[named++] = l->commands[i];
		qsort(l->commands, (size_t)named, sizeof l->commands[0], by_age);
		for (i = 0; i < named && i < max; i++)
			out[i] = l->commands[i];
	}
	if (l != NULL) {
		free(l->text);
		free(l->v);
	}
	free(l);
	return named;
}

void
atwork_text(const struct atwork *v, int shown, int total, char *out, size_t size)
{
	size_t used = 0, need;
	char part[ATWORK_NAME + 40];
	int i;

	out[0] = '\0';
	for (i = 0; i < shown && i < total; i++) {
		need = (size_t)snprintf(part, sizeof part, "%s%s (%lld s)", i > 0 ? ", " : "", v[i].name,
			(long long)(v[i].ms / 1000));
		if (used + need + 16 > size)
			break;
		memcpy(out + used, part, need + 1);
		used += need;
	}
	if (i < total && i > 0)
		snprintf(out + used, size - used, " and %d more", total - i);
}
