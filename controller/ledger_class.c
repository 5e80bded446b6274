#include <stdlib.h>
#include <string.h>

#include "controller/ledger_db.h"

/* What a class shows of a run; which members are filled depends on the statement. */
struct brief {
	int64_t seq, at_ms;
	const char *run, *suite, *commit, *driver, *detail, *not_recordable;
	struct {
		const char *outcome, *reason;
	} claims[CLAIM_COUNT];
};

struct place {
	int column;
	size_t offset;
};
#define CLAIM_PLACES(column, claim)                                                    \
	{column, offsetof(struct brief, claims[claim].outcome)},                       \
	{                                                                              \
		column + 1, offsetof(struct brief, claims[claim].reason)               \
	}

/* Where the statements have the texts, and the time. */
static const struct place of_latest[] = {
	{9, offsetof(struct brief, run)},
	{19, offsetof(struct brief, suite)},
	{20, offsetof(struct brief, commit)},
	{21, offsetof(struct brief, driver)},
	{23, offsetof(struct brief, detail)},
	{24, offsetof(struct brief, not_recordable)},
	CLAIM_PLACES(13, CLAIM_FIXTURE_PARITY),
	CLAIM_PLACES(15, CLAIM_LEGACY_KV_GRAPH),
	CLAIM_PLACES(17, CLAIM_GEMMA_RUNTIME),
};
static const struct place of_pass[] = {
	{0, offsetof(struct brief, run)},
	{2, offsetof(struct brief, suite)},
	{3, offsetof(struct brief, commit)},
	{4, offsetof(struct brief, driver)},
};
static const struct place of_try[] = {
	{0, offsetof(struct brief, run)},
	{8, offsetof(struct brief, detail)},
	{9, offsetof(struct brief, not_recordable)},
	CLAIM_PLACES(2, CLAIM_FIXTURE_PARITY),
	CLAIM_PLACES(4, CLAIM_LEGACY_KV_GRAPH),
	CLAIM_PLACES(6, CLAIM_GEMMA_RUNTIME),
};

/* Columns of `classes` that are read by themselves. */
enum {
	LATEST_NAME,
	LATEST_SEQ,
	LATEST_HOST,
	LATEST_CARRIED,
	LATEST_AT = 10,
	LATEST_OUTCOME,
	LATEST_REASON,
	LATEST_RECORDABLE = 22,
	LATEST_TARGET = 25
};

static const struct {
	enum sql_id id;
	const struct place *places;
	size_t count;
} asks[2] = {
	{SQL_CLASS_PASS, of_pass, str_count(of_pass)},
	{SQL_CLASS_TRY, of_try, str_count(of_try)},
};

static int
brief_read(struct brief *b, sqlite3_stmt *s, const struct place *places, size_t count,
	   int at_column, struct arena *a, struct err *e)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const char **at = (const char **)((char *)b + places[i].offset);

		if ((*at = ledger_arena_text(a, s, places[i].column)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for a class");
	}
	b->at_ms = sqlite3_column_type(s, at_column) == SQLITE_NULL
			   ? -1
			   : sqlite3_column_int64(s, at_column);
	return 0;
}

/* The runs that one class speaks of; mostly they are its newest one. */
struct briefs {
	struct brief latest;
	struct brief v[2][CLAIM_COUNT]; /* passes, and tries */
	int count[2];
};

static const struct brief *
brief_get(struct ledger *l, struct briefs *all, int ask, int64_t seq, struct arena *a,
	  struct err *e)
{
	struct brief *b = &all->v[ask][all->count[ask]];
	sqlite3_stmt *s;
	int i, rc;

	if (seq == all->latest.seq)
		return &all->latest;
	for (i = 0; i < all->count[ask]; i++)
		if (all->v[ask][i].seq == seq)
			return &all->v[ask][i];
	if (ledger_stmt(l, asks[ask].id, &s, e))
		return NULL;
	sqlite3_bind_int64(s, 1, seq);
	if ((rc = ledger_step(l, s, e)) != 1) {
		if (rc == 0)
			err_set(e, ERR_INTEGRITY, "run number %lld is missing",
				(long long)seq);
		return NULL;
	}
	rc = brief_read(b, s, asks[ask].places, asks[ask].count, 1, a, e);
	sqlite3_reset(s);
	if (rc)
		return NULL;
	b->seq = seq;
	all->count[ask]++;
	return b;
}

static void
claim_pass(struct ledger_claim *c, const struct brief *b)
{
	c->passed = b != NULL;
	c->pass_run = b != NULL ? b->run : "";
	c->pass_suite = b != NULL ? b->suite : "";
	c->pass_commit = b != NULL ? b->commit : "";
	c->pass_driver = b != NULL ? b->driver : "";
	c->pass_ms = b != NULL ? b->at_ms : -1;
}

static void
claim_try(struct ledger_claim *c, enum claim id, const struct brief *b)
{
	c->outcome = b != NULL ? b->claims[id].outcome : "";
	c->reason = b != NULL ? b->claims[id].reason : "";
	c->detail = b != NULL ? b->detail : "";
	c->not_recordable = b != NULL ? b->not_recordable : "";
	c->run = b != NULL ? b->run : "";
	c->at_ms = b != NULL ? b->at_ms : -1;
}

static int
claim_read(struct ledger *l, struct ledger_claim *c, enum claim id, sqlite3_stmt *s,
	   struct briefs *all, struct arena *a, struct err *e)
{
	const struct brief *b[2] = {NULL, NULL};
	int64_t seq;
	int i;

	for (i = 0; i < 2; i++) {
		/* sequence numbers begin at 1, so 0 is null */
		seq = sqlite3_column_int64(s, LATEST_CARRIED + 2 * (int)id + i);
		if (seq != 0 && (b[i] = brief_get(l, all, i, seq, a, e)) == NULL)
			return -1;
	}
	claim_pass(c, b[0]);
	claim_try(c, id, b[1]);
	c->holds = b[0] != NULL && b[1] != NULL && b[0]->seq == b[1]->seq;
	return 0;
}

static int
class_read(struct ledger *l, struct ledger_class *c, sqlite3_stmt *s, struct arena *a,
	   struct err *e)
{
	struct briefs all = {.latest = {.seq = sqlite3_column_int64(s, LATEST_SEQ)}};
	const struct brief *b = &all.latest;
	int i;

	if (brief_read(&all.latest, s, of_latest, str_count(of_latest), LATEST_AT, a,
		       e))
		return -1;
	c->run = b->run, c->suite = b->suite, c->commit = b->commit,
	c->driver = b->driver;
	c->detail = b->detail, c->not_recordable = b->not_recordable;
	c->recordable = sqlite3_column_int(s, LATEST_RECORDABLE) != 0;
	c->at_ms = b->at_ms;
	if ((c->name = ledger_arena_text(a, s, LATEST_NAME)) == NULL ||
	    (c->target = ledger_arena_text(a, s, LATEST_TARGET)) == NULL ||
	    (c->host = ledger_arena_text(a, s, LATEST_HOST)) == NULL ||
	    (c->outcome = ledger_arena_text(a, s, LATEST_OUTCOME)) == NULL ||
	    (c->reason = ledger_arena_text(a, s, LATEST_REASON)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a class");
	for (i = 0; i < CLAIM_COUNT; i++)
		if (claim_read(l, &c->claims[i], (enum claim)i, s, &all, a, e))
			return -1;
	return 0;
}

int
ledger_class_list(struct ledger *l, struct ledger_classes *out, struct err *e)
{
	sqlite3_stmt *s;
	void *rows = NULL;
	int rc = -1;

	memset(out, 0, sizeof *out);
	if ((out->arena = ledger_arena_new()) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a list of classes");
	if (ledger_stmt(l, SQL_CLASSES, &s, e))
		goto out;
	while ((rc = ledger_step(l, s, e)) == 1) {
		if (!ledger_grow(&rows, out->count, sizeof *out->classes))
			rc = err_set(e, ERR_NOMEM, "no memory for a list of classes");
		out->classes = rows;
		if (rc < 0 ||
		    class_read(l, &out->classes[out->count], s, out->arena, e)) {
			sqlite3_reset(s);
			rc = -1;
			goto out;
		}
		out->count++;
	}
out:
	if (rc)
		ledger_classes_fini(out);
	return rc;
}

void
ledger_classes_fini(struct ledger_classes *list)
{
	if (list == NULL)
		return;
	free(list->classes);
	ledger_arena_free(list->arena);
	memset(list, 0, sizeof *list);
}
