#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/ledger_db.h"

int
ledger_migrate(sqlite3 *db, int from, struct err *e)
{
	const struct sql_migration *m;
	struct ledger l = {.db = db};

	for (m = sql_migrations; m->version != 0; m++)
		if (m->version > from &&
		    sqlite3_exec(db, m->text, NULL, NULL, NULL) != SQLITE_OK) {
			ledger_fail(&l, e);
			return err_wrap(e, "migration %03d_%s", m->version, m->name);
		}
	return 0;
}

#define SCHEMA_MAX 512

/* One table, view, index or trigger. */
struct object {
	const char *type, *name, *table, *sql;
};
struct schema {
	struct object objects[SCHEMA_MAX];
	size_t count;
	struct arena *arena;
};

static void
schema_free(struct schema *s)
{
	if (s == NULL)
		return;
	ledger_arena_free(s->arena);
	free(s);
}

static int
schema_read(struct ledger *l, struct schema **out, struct err *e)
{
	struct schema *s = calloc(1, sizeof *s);
	sqlite3_stmt *q;
	struct object *o;
	int rc = -1;

	if (s == NULL || (s->arena = ledger_arena_new()) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a schema");
		goto out;
	}
	if (ledger_stmt(l, SQL_SCHEMA, &q, e))
		goto out;
	while ((rc = ledger_step(l, q, e)) == 1 && s->count < SCHEMA_MAX) {
		o = &s->objects[s->count++];
		o->type = ledger_arena_text(s->arena, q, 0);
		o->name = ledger_arena_text(s->arena, q, 1);
		o->table = ledger_arena_text(s->arena, q, 2);
		o->sql = ledger_arena_text(s->arena, q, 3);
		if (o->type == NULL || o->name == NULL || o->table == NULL ||
		    o->sql == NULL)
			break;
	}
	if (rc == 1) {
		sqlite3_reset(q);
		rc = err_set(e, ERR_LIMIT, "the ledger holds too many objects");
	}
	if (rc == 0)
		*out = s, s = NULL;
out:
	schema_free(s);
	return rc;
}

/* What the migrations make, tried in memory. */
static int
schema_wanted(struct schema **out, struct err *e)
{
	struct ledger *l = calloc(1, sizeof *l);
	int rc = -1;

	if (l == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a schema");
	if (sqlite3_open(":memory:", &l->db) != SQLITE_OK)
		ledger_fail(l, e);
	else if (ledger_migrate(l->db, 0, e) == 0)
		rc = schema_read(l, out, e);
	ledger_close(l);
	return rc;
}

static const struct object *
schema_find(const struct schema *s, const struct object *o)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (strcmp(s->objects[i].type, o->type) == 0 &&
		    strcmp(s->objects[i].name, o->name) == 0)
			return &s->objects[i];
	return NULL;
}

static bool
schema_has_table(const struct schema *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (strcmp(s->objects[i].name, name) == 0)
			return true;
	return false;
}

static void
tell(void (*problem)(void *arg, const char *text), void *arg, const struct object *o,
     const char *what)
{
	char line[320];

	snprintf(line, sizeof line, "the %.20s %.200s %s", o->type, o->name, what);
	problem(arg, line);
}

int
ledger_schema(struct ledger *l, void (*problem)(void *arg, const char *text), void *arg,
	      struct err *e)
{
	struct schema *want = NULL, *have = NULL;
	const struct object *o, *h;
	int rc = -1;

	if (schema_wanted(&want, e) || schema_read(l, &have, e))
		goto out;
	for (o = want->objects; o < want->objects + want->count; o++) {
		if ((h = schema_find(have, o)) == NULL)
			tell(problem, arg, o, "is missing");
		else if (strcmp(h->sql, o->sql) != 0 || strcmp(h->table, o->table) != 0)
			tell(problem, arg, o, "was altered");
	}
	/* Tables of others (a replicator's, the statistics of ANALYZE) do no harm;
	 * anything on a table of ours can. */
	for (o = have->objects; o < have->objects + have->count; o++)
		if (schema_find(want, o) == NULL && schema_has_table(want, o->table))
			tell(problem, arg, o, "does not belong to the ledger");
	rc = 0;
out:
	schema_free(want);
	schema_free(have);
	return rc;
}
