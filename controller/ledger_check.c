#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/digest.h"
#include "controller/ledger_db.h"

/* Counts the problems on their way to the caller. */
struct teller {
	void (*problem)(void *arg, const char *text);
	void *arg;
	size_t count;
};

static void
tell(void *arg, const char *text)
{
	struct teller *t = arg;

	t->count++;
	if (t->problem != NULL)
		t->problem(t->arg, text);
}

static void PRINTF(2, 3) tellf(struct teller *t, const char *fmt, ...)
{
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	tell(t, line);
}

static const char *
text(sqlite3_stmt *s, int column)
{
	const char *t = (const char *)sqlite3_column_text(s, column);

	return t != NULL ? t : "?";
}

static int
quick_check(struct ledger *l, struct teller *t, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, SQL_PRAGMA_QUICK_CHECK, &s, e))
		return -1;
	while ((rc = ledger_step(l, s, e)) == 1)
		if (strcmp(text(s, 0), "ok") != 0)
			tellf(t, "damaged: %s", text(s, 0));
	return rc;
}

static int
references_check(struct ledger *l, struct teller *t, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, SQL_PRAGMA_FOREIGN_KEY_CHECK, &s, e))
		return -1;
	while ((rc = ledger_step(l, s, e)) == 1)
		tellf(t, "a row of %s refers to a row of %s that is missing",
		      text(s, 0), text(s, 2));
	return rc;
}

/* A statement that gives the id of a run that is wrong, at most one row. */
static int
run_check(struct ledger *l, enum sql_id id, const char *what, struct teller *t,
	  struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, id, &s, e))
		return -1;
	while ((rc = ledger_step(l, s, e)) == 1)
		tellf(t, "run %s %s", text(s, 0), what);
	return rc;
}

/* The rows of an entry give its leaf hash. */
static int
leaf_check(struct ledger *l, int64_t seq, const char *leaf, struct teller *t,
	   struct err *e)
{
	struct ledger_list run;
	struct err why = {0};
	char found[DIGEST_HEX];
	struct buf b;
	int rc;

	if (ledger_get_seq(l, seq, &run, &why)) {
		if (why.code == ERR_NOMEM || why.code == ERR_BUSY)
			return err_set(e, why.code, "%s", why.msg);
		tellf(t, "entry %lld: %s", (long long)seq, why.msg);
		return 0;
	}
	buf_init(&b, LEDGER_MAX_ENTRY);
	if ((rc = ledger_entry(&run.runs[0], &b, found, e)) == 0 &&
	    strcmp(found, leaf) != 0)
		tellf(t, "run %s: its rows do not give its leaf hash",
		      run.runs[0].run_id);
	buf_fini(&b);
	ledger_list_fini(&run);
	return rc;
}

static int
entries_check(struct ledger *l, struct teller *t, struct err *e)
{
	int64_t seq = 0, last = 0;
	char leaf[DIGEST_HEX];
	sqlite3_stmt *s;
	int rc;

	for (;;) {
		if (ledger_stmt(l, SQL_ENTRY, &s, e))
			return -1;
		sqlite3_bind_int64(s, 1, last);
		if ((rc = ledger_step(l, s, e)) != 1)
			return rc;
		seq = sqlite3_column_int64(s, 0);
		snprintf(leaf, sizeof leaf, "%s", text(s, 1));
		sqlite3_reset(s);
		if (seq != last + 1)
			tellf(t, "entries %lld to %lld are missing",
			      (long long)last + 1, (long long)seq - 1);
		if (leaf_check(l, seq, leaf, t, e))
			return -1;
		last = seq;
	}
}

static int
rows_check(struct ledger *l, struct teller *t, struct err *e)
{
	return references_check(l, t, e) ||
			       run_check(l, SQL_UNSEALED, "has no entry", t, e) ||
			       run_check(l, SQL_CARRIED_WRONGLY,
					 "carries a state that does not follow from "
					 "the runs before",
					 t, e) ||
			       entries_check(l, t, e)
		       ? -1
		       : 0;
}

int
ledger_check(struct ledger *l, void (*problem)(void *arg, const char *text), void *arg,
	     struct err *e)
{
	struct teller t = {problem, arg, 0};
	struct err why = {0};

	if (ledger_schema(l, tell, &t, &why) || quick_check(l, &t, &why) ||
	    rows_check(l, &t, &why)) {
		/* What can not be read is one more problem, unless it will pass. */
		if (why.code != ERR_INTEGRITY && t.count == 0) {
			err_set(e, why.code, "%s: %s", l->path, why.msg);
			return err_hint(e, "%s", why.hint);
		}
		tell(&t, why.msg);
	}
	if (t.count == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "%s: %zu problem%s", l->path, t.count,
		t.count == 1 ? "" : "s");
	return err_hint(e, "restore a copy; keep this file, it may show what happened");
}
