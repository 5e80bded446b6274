/*
 * ledger_db - the inner side of the ledger: statements, errors, rows; for ledger_*.c
 * only.
 */
#ifndef CONTROLLER_LEDGER_DB_H
#define CONTROLLER_LEDGER_DB_H

#include <sqlite3.h>

#include "controller/ledger.h"
#include "controller/sql.h"

struct ledger {
	sqlite3 *db;
	sqlite3_stmt *stmt[SQL_COUNT]; /* prepared at first use */
	char *path, *blobs;
};

/* Ready to bind: prepared, reset, bindings cleared.  The ledger keeps it. */
CHECKED int ledger_stmt(struct ledger *l, enum sql_id id, sqlite3_stmt **out,
			struct err *e);
/* 1 a row, 0 the end (then reset), -1 an error (then reset). */
CHECKED int ledger_step(struct ledger *l, sqlite3_stmt *s, struct err *e);
/* Runs a statement without parameters to its end. */
CHECKED int ledger_do(struct ledger *l, enum sql_id id, struct err *e);
/* One row of one integer. */
CHECKED int ledger_number(struct ledger *l, enum sql_id id, int64_t *out,
			  struct err *e);
/* Sets e from the connection's last error; returns -1. */
int ledger_fail(struct ledger *l, struct err *e);

/* One run with all its rows, by its sequence number. */
CHECKED int ledger_get_seq(struct ledger *l, int64_t seq, struct ledger_list *out,
			   struct err *e);

/* Compares the tables, views, indexes and triggers with what the migrations make, one
 * call of problem for each difference. */
CHECKED int ledger_schema(struct ledger *l,
			  void (*problem)(void *arg, const char *text), void *arg,
			  struct err *e);
/* Applies the migrations above version `from`. */
CHECKED int ledger_migrate(sqlite3 *db, int from, struct err *e);

/* Name of the network file system that holds path, NULL when it is local. */
const char *ledger_network_fs(const char *path);

/* ---- rows: one table of columns serves storing, reading and hashing ---- */

enum column_kind { COLUMN_TEXT, COLUMN_HEX, COLUMN_INT, COLUMN_BOOL, COLUMN_REAL };
struct column {
	const char *name; /* in messages and canonical bytes; equals the table's */
	enum column_kind kind;
	size_t offset; /* in the struct */
	bool need;     /* must not be absent */
};
struct row_kind {
	const char *name; /* "gate" */
	const struct column *columns;
	int count;
	size_t size; /* of the struct */
	enum sql_id add, list;
	size_t rows, rows_count; /* offsets in struct ledger_run */
	bool later; /* than the first ledgers: none of it leaves no trace in an entry */
};
extern const struct row_kind ledger_run_row;
extern const struct row_kind ledger_children[];
extern const size_t ledger_child_kinds;

CHECKED int ledger_row_check(const struct row_kind *k, const void *row, struct err *e);
/* Binds the columns from parameter `first` on; borrows row until the step. */
CHECKED int ledger_row_bind(struct ledger *l, const struct row_kind *k, const void *row,
			    sqlite3_stmt *s, int first, struct err *e);
/* Copies the columns from result column `first` on into row. */
CHECKED int ledger_row_read(const struct row_kind *k, void *row, sqlite3_stmt *s,
			    int first, struct arena *a, struct err *e);
/* Appends the canonical bytes of the columns. */
CHECKED int ledger_row_entry(const struct row_kind *k, const void *row, struct buf *b,
			     struct err *e);

/* Room for one more row after `count` of them, by realloc; false when out of memory. */
CHECKED bool ledger_grow(void **rows, size_t count, size_t size);

/* ---- memory that is freed at once ---- */
struct arena *ledger_arena_new(void);
void ledger_arena_free(struct arena *a);
/* Zeroed and aligned for any type; NULL when out of memory. */
void *ledger_arena_take(struct arena *a, size_t n);
/* Room for one more row after `count` of them: rows or a moved copy; NULL when out of
 * memory. */
void *ledger_arena_grow(struct arena *a, void *rows, size_t count, size_t size);
/* Copy of a result column, "" for null; NULL when out of memory. */
const char *ledger_arena_text(struct arena *a, sqlite3_stmt *s, int column);

#endif
