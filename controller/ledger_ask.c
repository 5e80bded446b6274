#include <stdlib.h>
#include <string.h>

#include "controller/ledger_db.h"

#define DEFAULT_LIMIT 100

static int
no_memory(struct err *e)
{
	return err_set(e, ERR_NOMEM, "no memory for an answer of the ledger");
}

/* ---- runs ---- */

static int
run_read(struct ledger_run *r, sqlite3_stmt *s, struct arena *a, struct err *e)
{
	memset(r, 0, sizeof *r);
	r->seq = sqlite3_column_int64(s, 0);
	if ((r->host = ledger_arena_text(a, s, 3)) == NULL ||
	    (r->device_class = ledger_arena_text(a, s, 4)) == NULL)
		return no_memory(e);
	return ledger_row_read(&ledger_run_row, r, s, 5, a, e);
}

/* Steps a bound statement over run_rows to its end. */
static int
runs_read(struct ledger *l, sqlite3_stmt *s, struct ledger_list *list, struct err *e)
{
	void *rows = NULL;
	int rc;

	while ((rc = ledger_step(l, s, e)) == 1) {
		if (!ledger_grow(&rows, list->count, sizeof *list->runs))
			rc = no_memory(e);
		list->runs = rows;
		if (rc < 0 || run_read(&list->runs[list->count], s, list->arena, e)) {
			sqlite3_reset(s);
			return -1;
		}
		list->count++;
	}
	return rc;
}

static int
list_init(struct ledger_list *list, struct err *e)
{
	memset(list, 0, sizeof *list);
	return (list->arena = ledger_arena_new()) != NULL ? 0 : no_memory(e);
}

void
ledger_list_fini(struct ledger_list *list)
{
	if (list == NULL)
		return;
	free(list->runs);
	ledger_arena_free(list->arena);
	memset(list, 0, sizeof *list);
}

static enum sql_id
runs_statement(const struct ledger_filter *f)
{
	if (f->device_class != NULL)
		return SQL_RUNS_OF_CLASS;
	return f->host != NULL ? SQL_RUNS_OF_HOST : SQL_RUNS;
}

static void
filter_bind(sqlite3_stmt *s, const struct ledger_filter *f)
{
	const char *texts[8] = {f->outcome, f->lane, f->target,	      NULL,
				NULL,	    NULL,    f->device_class, f->host};
	int i;

	for (i = 0; i < 8; i++)
		if (texts[i] != NULL)
			sqlite3_bind_text(s, i + 1, texts[i], -1, SQLITE_STATIC);
	sqlite3_bind_int(s, 4, f->recordable);
	sqlite3_bind_int64(s, 5, f->before > 0 ? f->before : INT64_MAX);
	sqlite3_bind_int64(s, 6, f->limit != 0 ? f->limit : DEFAULT_LIMIT);
}

int
ledger_runs(struct ledger *l, const struct ledger_filter *f, struct ledger_list *out,
	    struct err *e)
{
	sqlite3_stmt *s;
	int rc = -1;

	if (list_init(out, e))
		return -1;
	if (f->limit > LEDGER_MAX_LIST) {
		err_set(e, ERR_LIMIT, "at most %d runs at once", LEDGER_MAX_LIST);
		goto out;
	}
	if (ledger_stmt(l, runs_statement(f), &s, e))
		goto out;
	filter_bind(s, f);
	rc = runs_read(l, s, out, e);
	sqlite3_clear_bindings(s);
out:
	if (rc)
		ledger_list_fini(out);
	return rc ? err_wrap(e, "%s", l->path) : 0;
}

/* Rows of one kind, of run r, by the statement `list`. */
static int
children_read(struct ledger *l, const struct row_kind *k, enum sql_id list,
	      struct ledger_run *r, struct arena *a, struct err *e)
{
	sqlite3_stmt *s;
	char *rows = NULL;
	size_t n = 0;
	int rc;

	if (ledger_stmt(l, list, &s, e))
		return -1;
	sqlite3_bind_int64(s, 1, r->seq);
	while ((rc = ledger_step(l, s, e)) == 1) {
		if ((rows = ledger_arena_grow(a, rows, n, k->size)) == NULL)
			rc = no_memory(e);
		if (rc < 0 || ledger_row_read(k, rows + n * k->size, s, 0, a, e)) {
			sqlite3_reset(s);
			return -1;
		}
		n++;
	}
	*(const void **)((char *)r + k->rows) = rows;
	*(size_t *)((char *)r + k->rows_count) = n;
	return rc;
}

int
ledger_get_seq(struct ledger *l, int64_t seq, struct ledger_list *out, struct err *e)
{
	sqlite3_stmt *s;
	size_t i;
	int rc = -1;

	if (list_init(out, e))
		return -1;
	if (ledger_stmt(l, SQL_RUN, &s, e))
		goto out;
	sqlite3_bind_int64(s, 1, seq);
	if (runs_read(l, s, out, e))
		goto out;
	if (out->count != 1) {
		err_set(e, ERR_NOTFOUND, "no run with sequence number %lld",
			(long long)seq);
		goto out;
	}
	for (i = 0, rc = 0; rc == 0 && i < ledger_child_kinds; i++)
		rc = children_read(l, &ledger_children[i], ledger_children[i].list,
				   &out->runs[0], out->arena, e);
out:
	if (rc)
		ledger_list_fini(out);
	return rc;
}

/* ---- names that may be shortened ---- */

#define CANDIDATES 5

struct match {
	char name[LEDGER_MAX_NAME + 1]; /* the one candidate */
	int64_t seq;			/* of a run */
	int count;
	bool exact;
	char list[240]; /* the candidates, for the message */
};

/* Candidates come in order, so a full name that begins others is the first one. */
static int
match_read(struct ledger *l, sqlite3_stmt *s, const char *prefix, int column,
	   struct match *m, struct err *e)
{
	const char *name;
	size_t n;
	int rc;

	while ((rc = ledger_step(l, s, e)) == 1) {
		name = (const char *)sqlite3_column_text(s, column);
		if (m->count++ == 0) {
			m->seq = sqlite3_column_int64(s, 0);
			m->exact = str_eq(name, prefix);
			if (str_copy(m->name, sizeof m->name, name, e)) {
				sqlite3_reset(s);
				return -1;
			}
		}
		n = strlen(m->list);
		if (m->count <= CANDIDATES - 1 &&
		    n + strlen(name) + 3 < sizeof m->list &&
		    str_fmt(m->list + n, sizeof m->list - n, e, "%s%s",
			    n > 0 ? ", " : "", name))
			rc = -1;
	}
	return rc;
}

static int
match(struct ledger *l, enum sql_id id, const char *what, const char *prefix,
      int column, struct match *m, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	memset(m, 0, sizeof *m);
	if (ledger_stmt(l, id, &s, e))
		return -1;
	sqlite3_bind_text(s, 1, prefix, -1, SQLITE_STATIC);
	rc = match_read(l, s, prefix, column, m, e);
	sqlite3_clear_bindings(s);
	if (rc)
		return -1;
	if (m->count == 0)
		return err_set(e, ERR_NOTFOUND, "no %s %.100s in the ledger", what,
			       prefix);
	if (m->count == 1 || m->exact)
		return 0;
	err_set(e, ERR_CONFLICT, "%s %.60s may be %s%s", what, prefix, m->list,
		m->count >= CANDIDATES ? " or others" : "");
	return err_hint(e, "write more of it");
}

static int
run_match(struct ledger *l, const char *prefix, struct match *m, struct err *e)
{
	size_t n = strlen(prefix);

	if (n == 0 || n > LEDGER_RUN_ID || !str_is_hex(prefix, n)) {
		err_set(e, ERR_USAGE, "%.60s is not a run id, nor the beginning of one",
			n > 0 ? prefix : "\"\"");
		return err_hint(
			e, "a run id is %d lower-case hex digits; `runs` lists them",
			LEDGER_RUN_ID);
	}
	if (match(l, SQL_FIND_RUN, "run", prefix, 1, m, e) == 0)
		return 0;
	return e != NULL && e->code == ERR_NOTFOUND
		       ? err_hint(e, "`runs` lists the runs of this ledger")
		       : -1;
}

int
ledger_find(struct ledger *l, const char *prefix, char run_id[LEDGER_RUN_ID + 1],
	    struct err *e)
{
	struct match m;

	if (run_match(l, prefix, &m, e))
		return -1;
	return str_copy(run_id, LEDGER_RUN_ID + 1, m.name, e);
}

int
ledger_get(struct ledger *l, const char *prefix, struct ledger_list *out, struct err *e)
{
	struct match m;

	memset(out, 0, sizeof *out);
	if (run_match(l, prefix, &m, e))
		return -1;
	return ledger_get_seq(l, m.seq, out, e);
}

int
ledger_why(struct ledger *l, const char *device_class, uint32_t limit, char *name,
	   size_t name_size, struct ledger_list *out, struct err *e)
{
	struct ledger_filter f = {.limit = limit};
	struct match m;
	size_t i;

	memset(out, 0, sizeof *out);
	if (match(l, SQL_MATCH_CLASS, "device class", device_class, 0, &m, e)) {
		if (e != NULL && e->code == ERR_NOTFOUND)
			err_hint(e, "`classes` lists those that were ever run");
		return -1;
	}
	f.device_class = m.name;
	if (name != NULL && str_copy(name, name_size, m.name, e))
		return -1;
	if (ledger_runs(l, &f, out, e))
		return -1;
	for (i = 0; i < out->count; i++)
		if (children_read(l, &ledger_children[0], SQL_GATES_NOT_PASSED,
				  &out->runs[i], out->arena, e)) {
			ledger_list_fini(out);
			return -1;
		}
	return 0;
}

/* ---- hosts ---- */

static bool
host_read(struct ledger_host *h, sqlite3_stmt *s, struct arena *a)
{
	const char **texts[] = {&h->name,	  NULL,	       NULL,	  &h->run,
				&h->device_class, &h->outcome, &h->reason};
	int i;

	for (i = 0; i < (int)str_count(texts); i++)
		if (texts[i] != NULL &&
		    (*texts[i] = ledger_arena_text(a, s, i)) == NULL)
			return false;
	h->first_ms = sqlite3_column_int64(s, 1);
	h->runs = sqlite3_column_int64(s, 2);
	h->at_ms = sqlite3_column_type(s, 7) == SQLITE_NULL
			   ? -1
			   : sqlite3_column_int64(s, 7);
	return true;
}

int
ledger_host_list(struct ledger *l, struct ledger_hosts *out, struct err *e)
{
	sqlite3_stmt *s;
	void *rows = NULL;
	int rc = -1;

	memset(out, 0, sizeof *out);
	if ((out->arena = ledger_arena_new()) == NULL)
		return no_memory(e);
	if (ledger_stmt(l, SQL_HOSTS, &s, e))
		goto out;
	while ((rc = ledger_step(l, s, e)) == 1) {
		bool room = ledger_grow(&rows, out->count, sizeof *out->hosts);

		out->hosts = rows;
		if (!room || !host_read(&out->hosts[out->count], s, out->arena)) {
			sqlite3_reset(s);
			rc = no_memory(e);
			goto out;
		}
		out->count++;
	}
out:
	if (rc)
		ledger_hosts_fini(out);
	return rc;
}

void
ledger_hosts_fini(struct ledger_hosts *list)
{
	if (list == NULL)
		return;
	free(list->hosts);
	ledger_arena_free(list->arena);
	memset(list, 0, sizeof *list);
}
