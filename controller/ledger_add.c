#include <string.h>

#include "common/digest.h"
#include "controller/ledger_db.h"

static const void *
rows_of(const struct ledger_run *r, const struct row_kind *k, size_t *n)
{
	*n = *(const size_t *)((const char *)r + k->rows_count);
	return *(const void *const *)((const char *)r + k->rows);
}

static const char *
or_empty(const char *s)
{
	return s != NULL ? s : "";
}

/* ---- what may be stored ---- */

static int
name_check(const char *what, const char *s, bool need, struct err *e)
{
	size_t n = strlen(or_empty(s));

	if (need && n == 0)
		return err_set(e, ERR_PARSE, "run: %s is missing", what);
	if (n > LEDGER_MAX_NAME)
		return err_set(e, ERR_LIMIT, "run: %s is longer than %d bytes", what,
			       LEDGER_MAX_NAME);
	if (!str_is_utf8(or_empty(s), n))
		return err_set(e, ERR_PARSE, "run: %s is not UTF-8", what);
	return 0;
}

static int
class_check(const struct ledger_run *r, struct err *e)
{
	size_t n = strlen(or_empty(r->target));
	const char *name = or_empty(r->device_class);

	if (name_check("class", name, false, e))
		return -1;
	if (*name != '\0' &&
	    (strncmp(name, or_empty(r->target), n) != 0 || name[n] != '/'))
		return err_set(e, ERR_PARSE, "run: class %.100s is not of target %.60s",
			       name, or_empty(r->target));
	return 0;
}

static int
children_check(const struct ledger_run *r, struct err *e)
{
	size_t i, j, n;

	for (i = 0; i < ledger_child_kinds; i++) {
		const struct row_kind *k = &ledger_children[i];
		const char *rows = rows_of(r, k, &n);

		if (n > LEDGER_MAX_ROWS)
			return err_set(e, ERR_LIMIT,
				       "run: more than %d rows of kind %s",
				       LEDGER_MAX_ROWS, k->name);
		for (j = 0; j < n; j++)
			if (ledger_row_check(k, rows + j * k->size, e))
				return -1;
	}
	return 0;
}

static int
run_check(const struct ledger_run *r, struct err *e)
{
	if (ledger_row_check(&ledger_run_row, r, e) ||
	    name_check("host", r->host, true, e) || class_check(r, e) ||
	    children_check(r, e))
		return -1;
	if (!str_is_hex(r->run_id, LEDGER_RUN_ID))
		return err_set(e, ERR_PARSE, "run: run_id is not %d hex digits",
			       LEDGER_RUN_ID);
	if (r->recordable && strcmp(r->outcome, outcome_name(OUTCOME_PASS)) != 0)
		return err_set(e, ERR_PARSE,
			       "run: recordable, but its outcome is %.40s", r->outcome);
	return 0;
}

/* ---- the entry ---- */

static int
leaf_hash(const struct buf *b, char leaf[DIGEST_HEX], struct err *e)
{
	struct digest *d = digest_new();

	if (d == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	digest_add(d, "\0", 1);
	digest_add(d, b->data, b->len);
	digest_end(d, leaf);
	return 0;
}

int
ledger_entry(const struct ledger_run *r, struct buf *b, char leaf[DIGEST_HEX],
	     struct err *e)
{
	size_t i, j, n;

	if (buf_addf(b, e,
		     "verify-ledger-entry=1\nkind=3:run\nhost=%zu:%s\nclass=%zu:%s\n",
		     strlen(or_empty(r->host)), or_empty(r->host),
		     strlen(or_empty(r->device_class)), or_empty(r->device_class)) ||
	    ledger_row_entry(&ledger_run_row, r, b, e))
		return -1;
	for (i = 0; i < ledger_child_kinds; i++) {
		const struct row_kind *k = &ledger_children[i];
		const char *rows = rows_of(r, k, &n);

		if (k->later && n == 0)
			continue;
		if (buf_addf(b, e, "%ss=%zu\n", k->name, n))
			return -1;
		for (j = 0; j < n; j++)
			if (ledger_row_entry(k, rows + j * k->size, b, e))
				return -1;
	}
	return leaf_hash(b, leaf, e);
}

/* ---- writing ---- */

/* The row of a name in hosts or device_classes, made when new. */
static int
name_id(struct ledger *l, enum sql_id find, enum sql_id add, const char *name,
	const struct ledger_run *r, int64_t *id, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, find, &s, e))
		return -1;
	sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
	if ((rc = ledger_step(l, s, e)) < 0)
		return -1;
	if (rc == 1) {
		*id = sqlite3_column_int64(s, 0);
		sqlite3_reset(s);
		return 0;
	}
	if (ledger_stmt(l, add, &s, e))
		return -1;
	sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, r->appended_ms);
	if (sqlite3_bind_parameter_count(s) > 2)
		sqlite3_bind_text(s, 3, r->target, -1, SQLITE_STATIC);
	if (ledger_step(l, s, e) < 0)
		return -1;
	*id = sqlite3_last_insert_rowid(l->db);
	return 0;
}

/* 1: the ledger has this very run; 0: not yet; -1: another run under its id. */
static int
same_run(struct ledger *l, const struct ledger_run *r, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, SQL_SAME_RUN, &s, e))
		return -1;
	sqlite3_bind_text(s, 1, r->run_id, -1, SQLITE_STATIC);
	if ((rc = ledger_step(l, s, e)) <= 0)
		return rc;
	if (!str_eq((const char *)sqlite3_column_text(s, 1),
		    or_empty(r->envelope_digest)) ||
	    !str_eq((const char *)sqlite3_column_text(s, 2),
		    or_empty(r->report_digest))) {
		err_set(e, ERR_CONFLICT, "run %s is in the ledger with other evidence",
			r->run_id);
		err_hint(e,
			 "`show %.12s` prints what was recorded; nothing is replaced",
			 r->run_id);
		rc = -1;
	}
	sqlite3_reset(s);
	return rc;
}

/* State of one claim, carried from the class's newest run and changed by this one. */
static void
bind_claim(sqlite3_stmt *s, int at, const struct ledger_run *r, enum claim c,
	   int64_t seq, sqlite3_stmt *tail)
{
	const char *outcome = or_empty(r->claims[c].outcome);
	bool passed = r->recordable && strcmp(outcome, outcome_name(OUTCOME_PASS)) == 0;
	bool tried =
		*outcome != '\0' && strcmp(outcome, outcome_name(OUTCOME_SKIPPED)) != 0;
	bool state[2] = {passed, tried};
	int i, column;

	for (i = 0; i < 2; i++) {
		column = 2 * (int)c + i;
		if (state[i])
			sqlite3_bind_int64(s, at + column, seq);
		else if (tail != NULL)
			sqlite3_bind_value(s, at + column,
					   sqlite3_column_value(tail, column));
	}
}

/* 1 with the newest run of the class in *tail, 0 when it has none. */
static int
class_tail(struct ledger *l, int64_t class_id, sqlite3_stmt **tail, struct err *e)
{
	if (ledger_stmt(l, SQL_CLASS_TAIL, tail, e))
		return -1;
	sqlite3_bind_int64(*tail, 1, class_id);
	return ledger_step(l, *tail, e);
}

static int
insert_run(struct ledger *l, const struct ledger_run *r, int64_t seq, struct err *e)
{
	sqlite3_stmt *s, *tail = NULL;
	int64_t host = 0, class_id = 0;
	bool has_class = *or_empty(r->device_class) != '\0';
	int rc = 0, c;

	if (name_id(l, SQL_FIND_HOST, SQL_ADD_HOST, r->host, r, &host, e) ||
	    (has_class && name_id(l, SQL_FIND_CLASS, SQL_ADD_CLASS, r->device_class, r,
				  &class_id, e)))
		return -1;
	if (has_class && (rc = class_tail(l, class_id, &tail, e)) < 0)
		return -1;
	if (ledger_stmt(l, SQL_ADD_RUN, &s, e))
		return -1;
	sqlite3_bind_int64(s, 1, seq);
	sqlite3_bind_int64(s, 2, host);
	if (has_class)
		sqlite3_bind_int64(s, 3, class_id);
	for (c = 0; has_class && c < CLAIM_COUNT; c++)
		bind_claim(s, 4, r, (enum claim)c, seq, rc == 1 ? tail : NULL);
	if (tail != NULL)
		sqlite3_reset(tail);
	if (ledger_row_bind(l, &ledger_run_row, r, s, 4 + 2 * CLAIM_COUNT, e))
		return -1;
	return ledger_step(l, s, e);
}

static int
insert_children(struct ledger *l, const struct row_kind *k, const struct ledger_run *r,
		int64_t seq, struct err *e)
{
	sqlite3_stmt *s;
	size_t j, n;
	const char *rows = rows_of(r, k, &n);

	for (j = 0; j < n; j++) {
		if (ledger_stmt(l, k->add, &s, e))
			return -1;
		sqlite3_bind_int64(s, 1, seq);
		sqlite3_bind_int64(s, 2, (sqlite3_int64)j + 1);
		if (ledger_row_bind(l, k, rows + j * k->size, s, 3, e) ||
		    ledger_step(l, s, e) < 0)
			return -1;
	}
	return 0;
}

static int
insert_entry(struct ledger *l, const struct ledger_run *r, int64_t seq, struct err *e)
{
	char leaf[DIGEST_HEX];
	sqlite3_stmt *s;
	struct buf b;
	int rc = -1;

	buf_init(&b, LEDGER_MAX_ENTRY);
	if (ledger_entry(r, &b, leaf, e) || ledger_stmt(l, SQL_ADD_ENTRY, &s, e))
		goto out;
	sqlite3_bind_int64(s, 1, seq);
	sqlite3_bind_text(s, 2, leaf, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, r->appended_ms);
	rc = ledger_step(l, s, e);
	sqlite3_clear_bindings(s);
out:
	buf_fini(&b);
	return rc;
}

/* Within the transaction; *added: false when the run was there. */
static int
add_one(struct ledger *l, const struct ledger_run *r, bool *added, struct err *e)
{
	int64_t seq;
	size_t i;
	int rc;

	*added = false;
	if (run_check(r, e) || (rc = same_run(l, r, e)) < 0)
		return -1;
	if (rc == 1)
		return 0;
	if (ledger_number(l, SQL_NEXT_SEQ, &seq, e) || insert_run(l, r, seq, e))
		return -1;
	for (i = 0; i < ledger_child_kinds; i++)
		if (insert_children(l, &ledger_children[i], r, seq, e))
			return -1;
	*added = true;
	return insert_entry(l, r, seq, e);
}

int
ledger_add_all(struct ledger *l, const struct ledger_run *const *runs, size_t count,
	       size_t *added, struct err *e)
{
	size_t i, n = 0;
	bool new = false;

	if (ledger_do(l, SQL_BEGIN, e))
		return err_wrap(e, "%s", l->path);
	for (i = 0; i < count; i++, n += new)
		if (add_one(l, runs[i], &new, e))
			goto undo;
	if (ledger_do(l, SQL_COMMIT, e))
		goto undo;
	if (added != NULL)
		*added = n;
	return 0;
undo:
	/* SQLite undoes by itself after some errors; a second time is harmless. */
	if (!sqlite3_get_autocommit(l->db) && ledger_do(l, SQL_ROLLBACK, NULL))
		return err_wrap(e, "%s: not undone", l->path);
	return err_wrap(e, "%s", l->path);
}

int
ledger_add(struct ledger *l, const struct ledger_run *r, bool *already, struct err *e)
{
	size_t added;

	if (ledger_add_all(l, &r, 1, &added, e))
		return -1;
	if (already != NULL)
		*already = added == 0;
	return 0;
}
