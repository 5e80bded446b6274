/* logs: the raw evidence of a run, stored or still growing. */
#include "controller/cmd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/blob.h"
#include "controller/client.h"
#include "controller/pull.h"
#include "controller/result.h"
#include "controller/session.h"
#include "controller/table.h"

#define COPY 65536
#define FOLLOW_MS 500
#define FOLLOW_MAX 256 /* logs followed at once */

/* ---- bytes for a terminal ---- */

/* What is written goes to a person's terminal: nothing in it may command that terminal. */
struct painter {
	bool clean, utf8;
	char held[4];      /* the beginning of a character that a chunk has cut */
	size_t held_len;
	char last;         /* last byte written: was the line ended? */
};

static void
paint_byte(const struct painter *p, unsigned char c)
{
	if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f))
		putchar(c);
	else if (c != '\r')
		fputs(p->utf8 ? "\uFFFD" : "?", stdout);
}

/* Bytes of the character that begins with c, 1 when none does. */
static size_t
character_length(unsigned char c)
{
	return c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? (c < 0xf0 ? 3 : 1)
		: c >= 0xc2 ? 2 : 1;
}

static void
paint(struct painter *p, const char *s, size_t n)
{
	size_t i, k, len;

	for (i = 0; i < n; i += len) {
		len = character_length((unsigned char)s[i]);
		if (len == 1 || !p->utf8) {
			len = 1;
			paint_byte(p, (unsigned char)s[i]);
			continue;
		}
		if (len > n - i) {
			for (k = 0; k < n - i; k++)
				p->held[k] = s[i + k];
			p->held_len = n - i;
			return;
		}
		/* C1 controls are two bytes of UTF-8, and controls none the less. */
		if (str_is_utf8(s + i, len) && (unsigned char)s[i] != 0xc2)
			fwrite(s + i, 1, len, stdout);
		else if (str_is_utf8(s + i, len) && (unsigned char)s[i + 1] >= 0xa0)
			fwrite(s + i, 1, len, stdout);
		else {
			len = 1;
			paint_byte(p, (unsigned char)s[i]);
		}
	}
}

static void
show_bytes(struct painter *p, const char *s, size_t n)
{
	char joined[COPY + 4];
	size_t held = p->held_len, part;

	if (n == 0)
		return;
	p->last = s[n - 1];
	if (!p->clean) {
		fwrite(s, 1, n, stdout);
		return;
	}
	for (; n > 0; s += part, n -= part) {
		part = n < COPY ? n : COPY;
		memcpy(joined, p->held, held);
		memcpy(joined + held, s, part);
		p->held_len = 0;
		paint(p, joined, held + part);
		held = p->held_len;
	}
}

static void
painter_init(struct painter *p, bool raw)
{
	struct progress_look look;

	memset(p, 0, sizeof *p);
	cmd_look(&look);
	p->clean = !raw && isatty(STDOUT_FILENO);
	p->utf8 = look.utf8;
	p->last = '\n';
}

/* ---- of a stored run ---- */

static int
list_stored(const struct ledger_run *r)
{
	static const char *const heads[] = {"NAME", "BYTES", "SHA-256", "NOTE", NULL};
	const struct ledger_artifact *a;
	struct err e = {0};
	struct table t;
	char bytes[32];
	int rc;

	table_init(&t, heads);
	for (a = r->artifacts; a < r->artifacts + r->artifact_count; a++) {
		const char *cells[] = {a->name, bytes, a->sha256, a->truncated ? "cut" : ""};

		snprintf(bytes, sizeof bytes, "%lld", (long long)a->bytes);
		table_row(&t, cells);
	}
	table_row(&t, (const char *const[]){"report.json", "", r->report_digest, ""});
	table_row(&t, (const char *const[]){"envelope.json", "", r->envelope_digest,
		"signed"});
	rc = table_print(&t, stdout, false, &e);
	table_fini(&t);
	return rc ? cmd_fail(&e) : EXIT_PASS;
}

/* The digest that a name means: an artifact, the log of a gate, or the only artifact in
 * whose name the text stands. */
static int
find_digest(const struct ledger_run *r, const char *name, const char **digest,
	struct err *e)
{
	const struct ledger_artifact *a;
	const struct ledger_gate *g;
	int hits = 0;

	*digest = NULL;
	if (str_eq(name, "report.json"))
		*digest = r->report_digest;
	if (str_eq(name, "envelope.json"))
		*digest = r->envelope_digest;
	for (a = r->artifacts; *digest == NULL && a < r->artifacts + r->artifact_count; a++)
		if (str_eq(a->name, name))
			*digest = a->sha256;
	for (g = r->gates; *digest == NULL && g < r->gates + r->gate_count; g++)
		if (str_eq(g->name, name) && g->log_digest != NULL && g->log_digest[0] != '\0')
			*digest = g->log_digest;
	if (*digest != NULL && (*digest)[0] != '\0')
		return 0;
	for (a = r->artifacts; a < r->artifacts + r->artifact_count; a++)
		if (strstr(a->name, name) != NULL && hits++ == 0)
			*digest = a->sha256;
	if (hits == 1)
		return 0;
	err_set(e, ERR_NOTFOUND, hits ? "\"%.80s\" is in the names of several files"
		: "the run has no file \"%.80s\"", name);
	return err_hint(e, "logs %.8s lists them", r->run_id);
}

static int
print_blob(struct ledger *l, const char *digest, bool raw, struct err *e)
{
	struct blob *b = NULL;
	struct painter p;
	char *buffer = NULL;
	uint64_t at = 0;
	size_t got = 0;
	int rc = -1;

	painter_init(&p, raw);
	if (!p.clean) {
		fflush(stdout);
		return blob_copy(ledger_blobs(l), digest, STDOUT_FILENO, e);
	}
	if ((buffer = malloc(COPY)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a log");
		goto out;
	}
	if (blob_open(ledger_blobs(l), digest, &b, e))
		goto out;
	do {
		if (blob_read(b, at, buffer, COPY, &got, e))
			goto out;
		show_bytes(&p, buffer, got);
		at += got;
	} while (got > 0);
	rc = 0;
out:
	blob_close(b);
	free(buffer);
	return rc;
}

static int
logs_stored(struct ledger *l, const char *prefix, const char *name, bool raw,
	struct err *e)
{
	struct ledger_list list = {0};
	const char *digest;
	int status = EXIT_PASS, rc;

	if (ledger_get(l, prefix, &list, e))
		return -1;
	if (name == NULL) {
		status = list_stored(&list.runs[0]);
		rc = 0;
	} else
		rc = find_digest(&list.runs[0], name, &digest, e) ||
			print_blob(l, digest, raw, e) ? -1 : 0;
	ledger_list_fini(&list);
	return rc ? -1 : status;
}

/* ---- of a job that is not stored yet: from the agent's spool ---- */

struct follow {
	struct client *client;
	const char *id, *only;   /* NULL: every log */
	struct painter painter;
	struct {
		char name[256];
		uint64_t at;
	} file[FOLLOW_MAX];
	int count, shown;        /* shown: index of the file printed last, or -1 */
};

static volatile sig_atomic_t stop;

static void
on_interrupt(int sig)
{
	(void)sig;
	stop = 1;
}

static int
is_stopped(void *arg)
{
	(void)arg;
	return stop;
}

static int
on_bytes(void *arg, const char *p, size_t n, struct err *e)
{
	struct follow *f = arg;

	(void)e;
	f->file[f->shown].at += n;
	show_bytes(&f->painter, p, n);
	return 0;
}

static int
file_of(struct follow *f, const char *name)
{
	int i;

	for (i = 0; i < f->count; i++)
		if (str_eq(f->file[i].name, name))
			return i;
	if (f->count == FOLLOW_MAX ||
	    str_copy(f->file[f->count].name, sizeof f->file->name, name, NULL))
		return -1;
	f->file[f->count].at = 0;
	return f->count++;
}

/* Prints what has grown of one file. */
static int
print_growth(struct follow *f, const char *name, uint64_t bytes, struct err *e)
{
	int i = file_of(f, name);
	char url[512];

	if (i < 0 || bytes <= f->file[i].at)
		return 0;
	if (f->shown != i && f->only == NULL)
		printf("%s==> %s <==\n", f->painter.last == '\n' ? "" : "\n", name);
	f->shown = i;
	if (str_fmt(url, sizeof url, e, "/v1/jobs/%s/artifacts/%s", f->id, name))
		return -1;
	return client_stream(f->client, url, f->file[i].at, on_bytes, f, e);
}

static bool
is_wanted(const struct follow *f, const char *name)
{
	if (name == NULL || !pull_name_ok(name))
		return false;
	return f->only != NULL ? strstr(name, f->only) != NULL : str_ends(name, ".log");
}

/* One look at the spool. */
static int
look_once(struct follow *f, bool list_only, struct err *e)
{
	const cJSON *row;
	cJSON *o = NULL;
	char path[96];
	int rc = 0;

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s/artifacts", f->id) ||
	    client_get(f->client, path, &o, e))
		return -1;
	cJSON_ArrayForEach(row, json_get(o, "artifacts")) {
		const char *name = json_str(row, "name");
		int64_t bytes = json_int(row, "bytes", 0);

		if (list_only && name != NULL && pull_name_ok(name))
			printf("%12lld  %s\n", (long long)bytes, name);
		else if (!list_only && rc == 0 && bytes > 0 && is_wanted(f, name))
			rc = print_growth(f, name, (uint64_t)bytes, e);
	}
	fflush(stdout);
	cJSON_Delete(o);
	return rc;
}

static int
is_done(struct follow *f, bool *done, struct err *e)
{
	cJSON *o = NULL;
	char path[96];

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s", f->id) ||
	    client_get(f->client, path, &o, e))
		return -1;
	*done = str_eq(json_str(o, "state"), "done");
	cJSON_Delete(o);
	return 0;
}

static int
follow_spool(struct follow *f, bool follow, struct err *e)
{
	bool done = false, last = false;

	if (!follow)
		return look_once(f, f->only == NULL, e);
	/* Once more after the end: the last bytes come with it. */
	while (!stop && !last) {
		last = done;
		if (look_once(f, false, e) || is_done(f, &done, e))
			break;
		if (!last && !done && client_pause(f->client, FOLLOW_MS))
			break;
	}
	if (e->code == ERR_CANCELLED)
		memset(e, 0, sizeof *e);
	return e->code == ERR_NONE ? 0 : -1;
}

static int
logs_pending(const char *id, const char *name, bool follow, bool raw, struct err *e)
{
	struct sigaction sa = {.sa_handler = on_interrupt};
	struct follow f = {.id = id, .only = name, .shown = -1};
	struct inventory *inv = NULL;
	struct pending *p = NULL;
	const struct host *h;
	struct reach reach;
	int rc = -1;

	sigaction(SIGINT, &sa, NULL);
	painter_init(&f.painter, raw);
	if (pending_load(id, &p, e) || inventory_load(NULL, &inv, e) ||
	    inventory_need(inv, p->host, &h, e) || host_reach(h, &reach, e) ||
	    client_open(&reach, is_stopped, NULL, &f.client, e))
		goto out;
	rc = follow_spool(&f, follow, e);
	if (rc == 0 && name != NULL && f.count == 0) {
		err_set(e, ERR_NOTFOUND, "the job has no file \"%.80s\" yet", name);
		rc = err_hint(e, "logs %.8s lists them", id);
	}
out:
	client_close(f.client);
	inventory_free(inv);
	pending_free(p);
	return rc;
}

int
cmd_logs(const struct opt_call *call)
{
	const struct logs_values *v = call->values;
	const char *name = call->argc == 2 ? call->argv[1] : NULL;
	char id[JOB_ID_HEX + 1];
	struct ledger *l = NULL;
	struct err e = {0};
	int status = -1;

	if (pending_find(call->argv[0], id, &e) == 0) {
		status = logs_pending(id, name, v->follow, v->raw, &e) ? -1 : EXIT_PASS;
	} else if (e.code == ERR_NOTFOUND) {
		memset(&e, 0, sizeof e);
		if (cmd_ledger_read(&l, &e) == 0 && l == NULL)
			err_set(&e, ERR_NOTFOUND, "no run begins with \"%.40s\"", call->argv[0]);
		if (l != NULL)
			status = logs_stored(l, call->argv[0], name, v->raw, &e);
	}
	ledger_close(l);
	return status < 0 ? cmd_fail(&e) : status;
}
