#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/ledger_db.h"

/* clang-format off */
#define NAMED(type, name, member, kind, need) \
	{name, COLUMN_##kind, offsetof(type, member), need}
#define COLUMN(type, member, kind, need) NAMED(type, #member, member, kind, need)

/* The order is that of add_run and of the view run_rows from column 5 on. */
#define R(member, kind, need) COLUMN(struct ledger_run, member, kind, need)
#define C(name, claim, member) \
	NAMED(struct ledger_run, name, claims[claim].member, TEXT, false)
static const struct column run_columns[] = {
	R(run_id, TEXT, true), R(lane, TEXT, true), R(target, TEXT, true),
	R(suite, TEXT, true), R(suite_digest, HEX, false), R(outcome, TEXT, true),
	R(reason, TEXT, true), R(detail, TEXT, false), R(recordable, BOOL, true),
	R(not_recordable, TEXT, false), R(agent_recordable, BOOL, true),
	R(disagreement, TEXT, false),
	C("fixture_parity", CLAIM_FIXTURE_PARITY, outcome),
	C("fixture_parity_reason", CLAIM_FIXTURE_PARITY, reason),
	C("legacy_kv_graph", CLAIM_LEGACY_KV_GRAPH, outcome),
	C("legacy_kv_graph_reason", CLAIM_LEGACY_KV_GRAPH, reason),
	C("gemma_runtime", CLAIM_GEMMA_RUNTIME, outcome),
	C("gemma_runtime_reason", CLAIM_GEMMA_RUNTIME, reason),
	R(source_origin, TEXT, false), R(source_commit, TEXT, false),
	R(source_tree, TEXT, false), R(source_dirty, TEXT, false),
	R(model_name, TEXT, false), R(model_sha256, HEX, false),
	R(model_bytes, INT, false), R(model_synthetic, BOOL, true),
	R(device_name, TEXT, false), R(device_driver, TEXT, false),
	R(device_uuid, TEXT, false), R(agent_version, TEXT, false),
	R(agent_key, TEXT, false), R(controller_version, TEXT, true),
	R(started_ms, INT, false), R(finished_ms, INT, false), R(appended_ms, INT, true),
	R(exit_code, INT, false), R(envelope_digest, HEX, false),
	R(report_digest, HEX, false),
};
#undef C
#undef R

#define R(member, kind, need) COLUMN(struct ledger_gate, member, kind, need)
static const struct column gate_columns[] = {
	R(name, TEXT, true), R(family, TEXT, false), R(outcome, TEXT, true),
	R(reason, TEXT, true), R(detail, TEXT, false), R(hint, TEXT, false),
	R(started_ms, INT, false), R(finished_ms, INT, false), R(log_digest, HEX, false),
};
#undef R

#define R(member, kind, need) COLUMN(struct ledger_fixture, member, kind, need)
static const struct column fixture_columns[] = {
	R(name, TEXT, true), R(digest, HEX, false), R(elements, INT, false),
	R(max_abs, REAL, false), R(max_rel, REAL, false), R(nmse, REAL, false),
	R(non_finite, INT, false), R(tolerance, REAL, false), R(outcome, TEXT, true),
};
#undef R

#define R(member, kind, need) COLUMN(struct ledger_smoke, member, kind, need)
static const struct column smoke_columns[] = {
	R(family, TEXT, true), R(cache_asked, TEXT, false), R(cache_applied, TEXT, false),
	R(driver, TEXT, false), R(kv_device, TEXT, false), R(tokens_asked, INT, false),
	R(tokens_generated, INT, false), R(output_digest, HEX, false),
	R(distance, REAL, false), R(outcome, TEXT, true), R(reason, TEXT, true),
};
#undef R

#define R(member, kind, need) COLUMN(struct ledger_artifact, member, kind, need)
static const struct column artifact_columns[] = {
	R(name, TEXT, true), R(bytes, INT, false), R(sha256, HEX, false),
	R(truncated, BOOL, true),
};
#undef R

#define R(member, kind, need) COLUMN(struct ledger_code, member, kind, need)
static const struct column code_columns[] = {
	R(backend, TEXT, true), R(device, TEXT, false), R(arch, TEXT, false),
	R(name, TEXT, true), R(digest, HEX, false), R(how, TEXT, false),
};
#undef R

/* clang-format on */

const struct row_kind ledger_run_row = {"run",
					run_columns,
					str_count(run_columns),
					sizeof(struct ledger_run),
					SQL_ADD_RUN,
					SQL_RUN,
					0,
					0,
					false};

const struct row_kind ledger_children[] = {
	{"gate", gate_columns, str_count(gate_columns), sizeof(struct ledger_gate),
	 SQL_ADD_GATE, SQL_GATES, offsetof(struct ledger_run, gates),
	 offsetof(struct ledger_run, gate_count), false},
	{"fixture", fixture_columns, str_count(fixture_columns),
	 sizeof(struct ledger_fixture), SQL_ADD_FIXTURE, SQL_FIXTURES,
	 offsetof(struct ledger_run, fixtures),
	 offsetof(struct ledger_run, fixture_count), false},
	{"smoke", smoke_columns, str_count(smoke_columns), sizeof(struct ledger_smoke),
	 SQL_ADD_SMOKE, SQL_SMOKES, offsetof(struct ledger_run, smokes),
	 offsetof(struct ledger_run, smoke_count), false},
	{"artifact", artifact_columns, str_count(artifact_columns),
	 sizeof(struct ledger_artifact), SQL_ADD_ARTIFACT, SQL_ARTIFACTS,
	 offsetof(struct ledger_run, artifacts),
	 offsetof(struct ledger_run, artifact_count), false},
	{"code", code_columns, str_count(code_columns), sizeof(struct ledger_code),
	 SQL_ADD_CODE, SQL_CODE, offsetof(struct ledger_run, code),
	 offsetof(struct ledger_run, code_count), true},
};
const size_t ledger_child_kinds = str_count(ledger_children);

static const char *
text_at(const struct column *c, const void *row)
{
	const char *const *p = (const char *const *)((const char *)row + c->offset);

	return *p != NULL ? *p : "";
}

static int64_t
int_at(const struct column *c, const void *row)
{
	return *(const int64_t *)((const char *)row + c->offset);
}

static double
real_at(const struct column *c, const void *row)
{
	double v;

	memcpy(&v, (const char *)row + c->offset, sizeof v);
	return v;
}

static bool
bool_at(const struct column *c, const void *row)
{
	return *(const bool *)((const char *)row + c->offset);
}

static int
text_check(const struct row_kind *k, const struct column *c, const char *s,
	   struct err *e)
{
	size_t n = strlen(s);

	if (n == 0)
		return c->need ? err_set(e, ERR_PARSE, "%s: %s is missing", k->name,
					 c->name)
			       : 0;
	if (n > LEDGER_MAX_TEXT)
		return err_set(e, ERR_LIMIT, "%s: %s is longer than %d bytes", k->name,
			       c->name, LEDGER_MAX_TEXT);
	if (c->kind == COLUMN_HEX && !str_is_hex(s, 64))
		return err_set(e, ERR_PARSE, "%s: %s is not 64 hex digits", k->name,
			       c->name);
	if (!str_is_utf8(s, n))
		return err_set(e, ERR_PARSE, "%s: %s is not UTF-8", k->name, c->name);
	return 0;
}

int
ledger_row_check(const struct row_kind *k, const void *row, struct err *e)
{
	const struct column *c;

	for (c = k->columns; c < k->columns + k->count; c++) {
		if ((c->kind == COLUMN_TEXT || c->kind == COLUMN_HEX) &&
		    text_check(k, c, text_at(c, row), e))
			return -1;
		if (c->kind == COLUMN_INT && c->need && int_at(c, row) < 0)
			return err_set(e, ERR_PARSE, "%s: %s is missing", k->name,
				       c->name);
	}
	return 0;
}

static int
bind_one(const struct column *c, const void *row, sqlite3_stmt *s, int i)
{
	switch (c->kind) {
	case COLUMN_TEXT:
	case COLUMN_HEX:
		if (*text_at(c, row) == '\0')
			return SQLITE_OK; /* null */
		return sqlite3_bind_text(s, i, text_at(c, row), -1, SQLITE_STATIC);
	case COLUMN_INT:
		return int_at(c, row) < 0 ? SQLITE_OK
					  : sqlite3_bind_int64(s, i, int_at(c, row));
	case COLUMN_BOOL:
		return sqlite3_bind_int(s, i, bool_at(c, row));
	case COLUMN_REAL:
		return isfinite(real_at(c, row))
			       ? sqlite3_bind_double(s, i, real_at(c, row))
			       : SQLITE_OK;
	}
	return SQLITE_MISUSE;
}

int
ledger_row_bind(struct ledger *l, const struct row_kind *k, const void *row,
		sqlite3_stmt *s, int first, struct err *e)
{
	int i;

	for (i = 0; i < k->count; i++)
		if (bind_one(&k->columns[i], row, s, first + i) != SQLITE_OK)
			return ledger_fail(l, e);
	return 0;
}

static bool
read_one(const struct column *c, void *row, sqlite3_stmt *s, int i, struct arena *a)
{
	bool null = sqlite3_column_type(s, i) == SQLITE_NULL;
	void *at = (char *)row + c->offset;

	switch (c->kind) {
	case COLUMN_TEXT:
	case COLUMN_HEX:
		return (*(const char **)at = ledger_arena_text(a, s, i)) != NULL;
	case COLUMN_INT:
		*(int64_t *)at = null ? -1 : sqlite3_column_int64(s, i);
		break;
	case COLUMN_BOOL:
		*(bool *)at = sqlite3_column_int(s, i) != 0;
		break;
	case COLUMN_REAL:
		*(double *)at = null ? (double)NAN : sqlite3_column_double(s, i);
		break;
	}
	return true;
}

int
ledger_row_read(const struct row_kind *k, void *row, sqlite3_stmt *s, int first,
		struct arena *a, struct err *e)
{
	int i;

	for (i = 0; i < k->count; i++) {
		const struct column *c = &k->columns[i];

		if (!read_one(c, row, s, first + i, a))
			return err_set(e, ERR_NOMEM, "no memory for a %s", k->name);
		if ((c->kind == COLUMN_TEXT || c->kind == COLUMN_HEX) &&
		    strlen(text_at(c, row)) !=
			    (size_t)sqlite3_column_bytes(s, first + i))
			return err_set(e, ERR_INTEGRITY, "%s: %s holds a NUL character",
				       k->name, c->name);
	}
	return 0;
}

/* ---- canonical bytes ---- */

static int
add_text(struct buf *b, const char *name, const char *s, struct err *e)
{
	size_t n = strlen(s);

	return buf_addf(b, e, "%s=%zu:", name, n) || buf_add(b, s, n, e) ||
			       buf_add(b, "\n", 1, e)
		       ? -1
		       : 0;
}

static int
add_real(struct buf *b, const char *name, double v, struct err *e)
{
	uint64_t bits;

	if (!isfinite(v))
		return buf_addf(b, e, "%s=-\n", name);
	v += 0.0; /* the store does not keep the sign of zero */
	memcpy(&bits, &v, sizeof bits);
	return buf_addf(b, e, "%s=%016llx\n", name, (unsigned long long)bits);
}

int
ledger_row_entry(const struct row_kind *k, const void *row, struct buf *b,
		 struct err *e)
{
	const struct column *c;
	int rc = 0;

	for (c = k->columns; rc == 0 && c < k->columns + k->count; c++) {
		switch (c->kind) {
		case COLUMN_TEXT:
		case COLUMN_HEX:
			rc = add_text(b, c->name, text_at(c, row), e);
			break;
		case COLUMN_INT:
			rc = int_at(c, row) < 0 ? buf_addf(b, e, "%s=-\n", c->name)
						: buf_addf(b, e, "%s=%lld\n", c->name,
							   (long long)int_at(c, row));
			break;
		case COLUMN_BOOL:
			rc = buf_addf(b, e, "%s=%d\n", c->name, bool_at(c, row));
			break;
		case COLUMN_REAL:
			rc = add_real(b, c->name, real_at(c, row), e);
			break;
		}
	}
	return rc;
}
