#include "controller/ledger_db.h"

#include <stdlib.h>
#include <string.h>

/* What a primary result code of SQLite is to us. */
static const struct {
	int code;
	enum err_code err;
	const char *what, *hint;
} failures[] = {
	{SQLITE_BUSY, ERR_BUSY, "another program is writing the ledger",
	 "run it again"},
	{SQLITE_LOCKED, ERR_BUSY, "another program is writing the ledger",
	 "run it again"},
	{SQLITE_FULL, ERR_NOSPACE, "the disk is full",
	 "free some space on that file system and run again; nothing was lost"},
	{SQLITE_CORRUPT, ERR_INTEGRITY, "the file is damaged",
	 "restore a copy; `sqlite3 FILE .recover` may save rows for reading"},
	{SQLITE_NOTADB, ERR_INTEGRITY, "the file is not a ledger",
	 "give the path of a ledger, or of a file that does not exist yet"},
	{SQLITE_READONLY, ERR_IO, "the ledger can not be written",
	 "check the owner and mode of the file and its folder"},
	{SQLITE_PERM, ERR_IO, "the ledger can not be opened",
	 "check the owner and mode of the file and its folder"},
	{SQLITE_CANTOPEN, ERR_IO, "the ledger can not be opened",
	 "check the owner and mode of the file and its folder"},
	{SQLITE_NOMEM, ERR_NOMEM, "no memory", ""},
	{SQLITE_TOOBIG, ERR_LIMIT, "too large for the ledger", ""},
	{SQLITE_CONSTRAINT, ERR_CONFLICT, "the ledger refuses the row", ""},
	{SQLITE_IOERR, ERR_IO, "the ledger can not be read or written",
	 "look at the kernel log of this machine for the disk"},
};

static const struct {
	int code;
	enum err_code err;
	const char *what, *hint;
} unknown_failure = {SQLITE_ERROR, ERR_IO, "the ledger failed", ""};

int
ledger_fail(struct ledger *l, struct err *e)
{
	int code = sqlite3_extended_errcode(l->db);
	size_t i;

	for (i = 0; i < str_count(failures); i++)
		if (failures[i].code == (code & 0xff))
			break;
	if (i == str_count(failures))
		return err_set(e, unknown_failure.err, "%s: %s", unknown_failure.what,
			       sqlite3_errmsg(l->db));
	err_set(e, failures[i].err, "%s: %s (SQLite %d)", failures[i].what,
		sqlite3_errmsg(l->db), code);
	return err_hint(e, "%s", failures[i].hint);
}

int
ledger_stmt(struct ledger *l, enum sql_id id, sqlite3_stmt **out, struct err *e)
{
	sqlite3_stmt **s = &l->stmt[id];

	if (*s == NULL &&
	    sqlite3_prepare_v3(l->db, sql_text[id], -1, SQLITE_PREPARE_PERSISTENT, s,
			       NULL) != SQLITE_OK)
		return ledger_fail(l, e);
	sqlite3_reset(*s);
	sqlite3_clear_bindings(*s);
	*out = *s;
	return 0;
}

int
ledger_step(struct ledger *l, sqlite3_stmt *s, struct err *e)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		ledger_fail(l, e);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : -1;
}

int
ledger_do(struct ledger *l, enum sql_id id, struct err *e)
{
	sqlite3_stmt *s;
	int rc;

	if (ledger_stmt(l, id, &s, e))
		return -1;
	while ((rc = ledger_step(l, s, e)) == 1)
		;
	return rc;
}

int
ledger_number(struct ledger *l, enum sql_id id, int64_t *out, struct err *e)
{
	sqlite3_stmt *s;

	if (ledger_stmt(l, id, &s, e))
		return -1;
	switch (ledger_step(l, s, e)) {
	case 1:
		*out = sqlite3_column_int64(s, 0);
		sqlite3_reset(s);
		return 0;
	case 0:
		return err_set(e, ERR_INTEGRITY, "the ledger gave no number");
	default:
		return -1;
	}
}

/* ---- memory that is freed at once ---- */

#define CHUNK_BYTES 16384
#define FIRST_ROWS 64

struct chunk {
	struct chunk *next;
	max_align_t data[];
};
struct arena {
	struct chunk *chunks;
	char *at; /* free bytes of the newest chunk */
	size_t left;
};

struct arena *
ledger_arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void
ledger_arena_free(struct arena *a)
{
	struct chunk *c, *next;

	if (a == NULL)
		return;
	for (c = a->chunks; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

static void *
take(struct arena *a, size_t n, size_t align)
{
	size_t pad = a->left % align, size = n > CHUNK_BYTES ? n : CHUNK_BYTES;
	struct chunk *c;
	void *p;

	if (a->left < n + pad) {
		if ((c = malloc(sizeof *c + size)) == NULL)
			return NULL;
		c->next = a->chunks, a->chunks = c;
		a->at = (char *)c->data, a->left = size;
		pad = 0;
	}
	p = a->at + pad;
	a->at += n + pad, a->left -= n + pad;
	return p;
}

void *
ledger_arena_take(struct arena *a, size_t n)
{
	/* Chunks end on the alignment, so counting from the end serves. */
	size_t unit = sizeof(max_align_t);
	void *p;

	if (n > SIZE_MAX - unit)
		return NULL;
	n = (n + unit - 1) / unit * unit;
	if ((p = take(a, n, unit)) != NULL)
		memset(p, 0, n);
	return p;
}

bool
ledger_grow(void **rows, size_t count, size_t size)
{
	size_t cap = count != 0 ? 2 * count : FIRST_ROWS;
	void *more;

	/* full whenever the count is a power of two, from FIRST_ROWS on */
	if (count != 0 && (count < FIRST_ROWS || (count & (count - 1)) != 0))
		return true;
	if ((more = realloc(*rows, cap * size)) == NULL)
		return false;
	*rows = more;
	return true;
}

void *
ledger_arena_grow(struct arena *a, void *rows, size_t count, size_t size)
{
	void *more;

	/* full whenever the count is a power of two, from 1 on */
	if (count != 0 && (count & (count - 1)) != 0)
		return rows;
	if ((more = ledger_arena_take(a, (count != 0 ? 2 * count : 1) * size)) !=
		    NULL &&
	    count != 0)
		memcpy(more, rows, count * size);
	return more;
}

const char *
ledger_arena_text(struct arena *a, sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	size_t n;
	char *copy;

	if (text == NULL)
		return sqlite3_column_type(s, column) == SQLITE_NULL ? "" : NULL;
	if ((n = strlen(text)) == 0)
		return "";
	if ((copy = take(a, n + 1, 1)) != NULL)
		memcpy(copy, text, n + 1);
	return copy;
}
