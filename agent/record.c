#include "agent/record.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gate.h"
#include "agent/machine.h"
#include "agent/record_impl.h"
#include "common/agree.h"
#include "common/json.h"
#include "common/plat.h"

extern char **environ;

static volatile sig_atomic_t stopped;

static void
on_signal(int sig)
{
	stopped = sig;
}

static int
tick(void *arg)
{
	(void)arg;
	return stopped;
}

static void
signals_catch(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = on_signal};
	size_t i;

	sigemptyset(&sa.sa_mask);
	for (i = 0; i < str_count(sigs); i++)
		sigaction(sigs[i], &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void
record_say(const char *what, const char *fmt, ...)
{
	char shown[200];
	va_list ap;

	va_start(ap, fmt);
	str_showv(shown, sizeof shown, fmt, ap);
	va_end(ap);
	printf("  %-24s %s\n", what, shown);
	fflush(stdout);
}

int
record_add(struct record *r, char *text, size_t len, int kind, int exit, struct err *e, const char *fmt, ...)
{
	struct record_file *f = &r->files[r->count];
	va_list ap;
	int n;

	if (text == NULL || r->count == RECORD_MAX_FILES) {
		free(text);
		return text == NULL ? err_set(e, ERR_NOMEM, "no memory for a file")
				    : err_set(e, ERR_LIMIT, "more than %d files", RECORD_MAX_FILES);
	}
	va_start(ap, fmt);
	n = vsnprintf(f->name, sizeof f->name, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof f->name) {
		free(text);
		return err_set(e, ERR_LIMIT, "a file's name is too long");
	}
	f->text = text;
	f->len = len;
	f->kind = kind;
	f->exit = exit;
	r->count++;
	return 0;
}

/* ---- the host ---- */

struct device_lines {
	struct buf b;
	int failed;
};

static void
device_line(void *arg, const char *line)
{
	struct device_lines *d = arg;

	d->failed |= buf_addf(&d->b, NULL, "%s\n", line);
}

static int
devices_record(struct record *r, struct err *e)
{
	struct device_lines d = {.failed = 0};
	size_t len;

	if (machine_dir() != NULL)
		return 0; /* those of whoever plays it */
	buf_init(&d.b, 1u << 20);
	device_files_each(device_line, &d);
	d.failed |= buf_add(&d.b, "", 0, NULL);
	len = d.b.len;
	record_say("device files", "dev.txt, %zu bytes", len);
	if (d.failed) {
		buf_fini(&d.b);
		return err_set(e, ERR_NOMEM, "no memory");
	}
	return record_add(r, buf_take(&d.b), len, -1, -1, e, "dev.txt");
}

/* Variables that change what the probes see. */
static bool
variables_add(cJSON *o)
{
	cJSON *env = json_add_object(o, "env");
	char name[128], **entry;
	size_t n;

	for (entry = environ; env != NULL && *entry != NULL; entry++) {
		n = strcspn(*entry, "=");
		if (n >= sizeof name || (*entry)[n] != '=' || agree_variable_find(*entry, n) == NULL)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)n, *entry);
		if (json_get(env, name) == NULL && !json_add_text(env, name, *entry + n + 1, strlen(*entry + n + 1)))
			return false;
	}
	return env != NULL;
}

static int
machine_record(struct record *r, const char *name, const char *title, struct err *e)
{
	cJSON *o = cJSON_CreateObject();
	struct utsname u;
	char from[160] = "recorded by verify-agent " VERSION ", ids replaced", *text = NULL;

	if (machine_dir() != NULL)
		snprintf(from, sizeof from, "recorded by verify-agent " VERSION " from the recording %.80s", machine_name());
	if (o != NULL && machine_uname(&u) == 0 && json_add_str(o, "name", name) && json_add_str(o, "title", title) &&
	    json_add_str(o, "provenance", from) && json_add_str(o, "os", u.sysname) &&
	    json_add_str(o, "arch", u.machine) && json_add_str(o, "kernel", u.release) && variables_add(o) &&
	    json_add(o, "absent", cJSON_Duplicate(r->absent, true)))
		text = json_text(o, true);
	cJSON_Delete(o);
	if (text == NULL)
		return err_set(e, ERR_IO, "the host can not be asked");
	record_say("host", "machine.json");
	return record_add(r, text, strlen(text), -1, -1, e, "machine.json");
}

/* ---- ids ---- */

/* What is no id must not have changed: the text still says what it said. */
static bool
says_the_same(const struct record_file *f, const char *text, size_t len)
{
	struct tool_answer *a = calloc(2, sizeof *a);
	const struct tool_device *x, *y;
	bool same = a != NULL;
	int i;

	if (a == NULL || f->kind < 0) {
		free(a);
		return f->kind < 0;
	}
	tool_parse((enum tool_kind)f->kind, f->text, f->len, f->exit, &a[0]);
	tool_parse((enum tool_kind)f->kind, text, len, f->exit, &a[1]);
	same = a[0].reason == a[1].reason && a[0].count == a[1].count && strcmp(a[0].version, a[1].version) == 0;
	for (i = 0; same && i < a[0].count; i++) {
		x = &a[0].device[i];
		y = &a[1].device[i];
		same = strcmp(x->name, y->name) == 0 && strcmp(x->pci, y->pci) == 0 && strcmp(x->arch, y->arch) == 0 &&
			strcmp(x->driver, y->driver) == 0 && strcmp(x->driver_id, y->driver_id) == 0 &&
			strcmp(x->state, y->state) == 0 && strcmp(x->mig, y->mig) == 0 && x->type == y->type &&
			strlen(x->uuid) == strlen(y->uuid) && x->memory_mib == y->memory_mib;
	}
	free(a);
	return same;
}

static int
file_mask(struct record *r, struct record_file *f, struct err *e)
{
	char *text;
	size_t len;

	if (mask_apply(r->mask, f->text, f->len, &text, &len, e))
		return err_wrap(e, "%s", f->name);
	if (!says_the_same(f, text, len) || mask_left(r->mask, text, len)) {
		free(text);
		err_set(e, ERR_INTEGRITY, "the ids in %s can not be replaced without changing what it says", f->name);
		return err_hint(e, "nothing was written; the name of this host or its user may be a word of the tool");
	}
	free(f->text);
	f->text = text;
	f->len = len;
	return 0;
}

static int
ids_replace(struct record *r, struct err *e)
{
	size_t i;

	if (record_names(r, e))
		return -1;
	for (i = 0; i < r->count; i++)
		if (mask_learn(r->mask, r->files[i].text, r->files[i].len, e))
			return -1;
	for (i = 0; i < r->count; i++)
		if (file_mask(r, &r->files[i], e))
			return -1;
	return 0;
}

/* ---- the folder ---- */

static int
dir_check(const char *dir, struct err *e)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	bool empty = true;

	if (d == NULL && errno == ENOENT)
		return 0;
	if (d == NULL) {
		err_set(e, ERR_USAGE, "%.200s: %s", dir, strerror(errno));
		return err_hint(e, "name a folder that is not there yet");
	}
	while ((entry = readdir(d)) != NULL)
		empty &= str_eq(entry->d_name, ".") || str_eq(entry->d_name, "..");
	closedir(d);
	if (empty)
		return 0;
	err_set(e, ERR_USAGE, "%.200s is not empty", dir);
	return err_hint(e, "name a folder that is not there yet, or an empty one");
}

static int
file_write(const char *dir, const struct record_file *f, struct err *e)
{
	char path[PATH_MAX], *slash;

	if (str_fmt(path, sizeof path, e, "%s/%s", dir, f->name))
		return -1;
	if ((slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		if (plat_mkdirs(path, 0755, e))
			return -1;
		*slash = '/';
	}
	return plat_write_file(path, f->text, f->len, 0644, e);
}

static int
folder_write(const struct record *r, const char *dir, struct err *e)
{
	char fresh[PATH_MAX];
	struct err ignored = {0};
	mode_t mask = umask(0);
	size_t i;
	int rc = 0;

	umask(mask);
	if (str_fmt(fresh, sizeof fresh, e, "%s.recording-XXXXXX", dir))
		return -1;
	if (mkdtemp(fresh) == NULL)
		return err_errno(e, errno, "make %s", fresh);
	for (i = 0; rc == 0 && i < r->count; i++)
		rc = stopped ? err_set(e, ERR_CANCELLED, "stopped by a signal; nothing was written")
			     : file_write(fresh, &r->files[i], e);
	if (rc == 0 && (chmod(fresh, 0777 & ~mask) || rename(fresh, dir)))
		rc = err_errno(e, errno, "make %s", dir);
	if (rc && plat_remove_tree(fresh, &ignored))
		fprintf(stderr, "verify-agent record: %s\n", ignored.msg);
	return rc;
}

/* ---- the command ---- */

struct record_values {
	const char *title;
	uint64_t timeout;
};
static const struct opt record_opts[] = {
	{"title", 't', OPT_TEXT, offsetof(struct record_values, title), .max = 200, .word = "TEXT",
		.help = "what the machine is, for people; default: the folder's name"},
	{"timeout", 0, OPT_NUMBER, offsetof(struct record_values, timeout), .min = 0, .max = 3600, .fallback = "0",
		.word = "N", .unit = "s", .help = "time for each tool and library; 0: as in a run, 10 to 30"},
};

static int
record_all(struct record *r, const char *dir, const char *title, struct err *e)
{
	char copy[PATH_MAX];
	const char *name;

	if (str_copy(copy, sizeof copy, dir, e))
		return -1;
	name = basename(copy);
	if (record_tools(r, e) || record_probes(r, e) || record_kfd(r, e) || devices_record(r, e) ||
	    machine_record(r, name, title != NULL ? title : name, e) || buf_add(&r->tools, "", 0, e))
		return -1;
	return record_add(r, strdup(r->tools.data), r->tools.len, -1, -1, e, "tools.tsv") || ids_replace(r, e) ||
		folder_write(r, dir, e) ? -1 : 0;
}

static int
record_run(const struct opt_call *call)
{
	const struct record_values *v = call->values;
	struct record r = {.timeout_ms = (uint32_t)v->timeout * 1000, .tick = tick};
	char dir[PATH_MAX];
	struct err e = {0};
	size_t i, n;
	int rc;

	buf_init(&r.tools, 65536);
	rc = str_copy(dir, sizeof dir, call->argv[0], &e);
	for (n = rc == 0 ? strlen(dir) : 0; n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	if (rc == 0)
		rc = dir_check(dir, &e);
	if (rc == 0 && ((r.files = calloc(RECORD_MAX_FILES, sizeof *r.files)) == NULL ||
			(r.absent = cJSON_CreateArray()) == NULL))
		rc = err_set(&e, ERR_NOMEM, "no memory for a recording");
	if (rc == 0)
		rc = mask_new(&r.mask, &e);
	signals_catch();
	if (rc == 0 && (rc = record_all(&r, dir, v->title, &e)) == 0)
		printf("%s: %zu files, %zu ids replaced\n", dir, r.count, mask_count(r.mask));
	for (i = 0; r.files != NULL && i < r.count; i++)
		free(r.files[i].text);
	free(r.files);
	cJSON_Delete(r.absent);
	buf_fini(&r.tools);
	mask_free(r.mask);
	if (rc)
		err_print("verify-agent record", &e);
	return rc ? err_exit(e.code) : EXIT_PASS;
}

const struct command record_command = {
	.name = "record",
	.arguments = "DIR",
	.summary = "keep what this host's tools and libraries answer, as a machine to be played",
	.help = "Makes a folder as those of fixtures/machines: the output of every tool that a lane\n"
		"asks, the answers of its libraries, the KFD topology.  VERIFY_MACHINE=DIR plays it.\n"
		"UUIDs, serials, names of host and user, MAC and IP addresses become made-up ones, the\n"
		"same in every file.  What is not installed is recorded as absent; what hangs, crashes\n"
		"or floods costs one child, and is recorded as doing so.\n"
		"\n"
		"  verify-agent record ./lab-7\n"
		"  verify-agent record ./lab-7 --title \"two MI210, one without power\" --timeout 60\n"
		"\n"
		"DIR must not be there yet, or be empty; it appears whole or not at all.\n"
		"\n"
		"Exit status: 0 recorded, 2 usage, 4 an id can not be replaced, 6 stopped.",
	.opts = record_opts,
	.opt_count = str_count(record_opts),
	.size = sizeof(struct record_values),
	.min_args = 1,
	.max_args = 1,
	.run = record_run,
};
