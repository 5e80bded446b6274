/*
 * ledger_help - what the tests of the ledger share: a folder of their own, a plain run,
 * and another program that has the same file open.
 */
#ifndef TESTS_LEDGER_HELP_H
#define TESTS_LEDGER_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "common/plat.h"
#include "controller/ledger.h"

#define D1 "1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "2222222222222222222222222222222222222222222222222222222222222222"
#define CLASS "linux-x64-cuda/h200/sm_90"
#define JUNE 1780308000000 /* 2026-06-01T10:00:00Z */

static char dir[64], path[96];

static inline int
folder_make(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/test-ledger-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/data/verify/ledger.db", dir);
	return 0;
}

static inline int
folder_remove(void **state)
{
	(void)state;
	return plat_remove_tree(dir, NULL);
}

/* id: 32 hex digits; the claims follow the outcome. */
static inline struct ledger_run
run_of(const char *id, const char *outcome, bool recordable)
{
	const char *reason =
		strcmp(outcome, "pass") == 0 ? "none" : "family_not_in_build";

	return (struct ledger_run){
		.run_id = id,
		.host = "gh200-lab-3",
		.device_class = CLASS,
		.lane = "cuda",
		.target = "linux-x64-cuda",
		.suite = "llama.cpp",
		.suite_digest = D1,
		.outcome = outcome,
		.reason = reason,
		.detail = "as the test wants it",
		.recordable = recordable,
		.not_recordable = recordable ? NULL : "the source is dirty",
		.claims = {{outcome, reason}, {outcome, reason}, {NULL, NULL}},
		.source_origin = "https://example.org/llama.cpp",
		.source_commit = "0123abcd",
		.source_tree = "89ef0123",
		.model_name = "synthetic.gguf",
		.model_sha256 = D2,
		.model_bytes = 2097152,
		.model_synthetic = true,
		.device_name = "NVIDIA H200",
		.device_driver = "580.65.06",
		.device_uuid = "GPU-1",
		.agent_version = "0.1.0",
		.agent_key = D1,
		.controller_version = "0.1.0",
		.started_ms = JUNE,
		.finished_ms = JUNE + 60000,
		.appended_ms = JUNE + 61000,
		.exit_code = 0,
		.envelope_digest = D1,
		.report_digest = D2};
}

#define ID(c) c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c

static inline struct ledger *
opened(void)
{
	struct ledger *l = NULL;
	struct err e = {0};

	if (ledger_open(path, LEDGER_CREATE, NULL, &l, &e))
		fail_msg("%s", e.msg);
	return l;
}

static inline void
add(struct ledger *l, const struct ledger_run *r)
{
	struct err e = {0};
	bool already = true;

	if (ledger_add(l, r, &already, &e))
		fail_msg("%s", e.msg);
	assert_false(already);
}

static inline size_t
run_count(struct ledger *l)
{
	struct ledger_filter f = {.limit = LEDGER_MAX_LIST};
	struct ledger_list list;
	size_t n;

	assert_int_equal(ledger_runs(l, &f, &list, NULL), 0);
	n = list.count;
	ledger_list_fini(&list);
	return n;
}

/* ---- another program with the file open ---- */

static inline sqlite3 *
foreign_open(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL),
			 SQLITE_OK);
	return db;
}

static inline void
foreign_do(const char *sql)
{
	sqlite3 *db = foreign_open();

	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static inline void
foreign_refused(const char *before, const char *sql)
{
	sqlite3 *db = foreign_open();

	assert_int_equal(sqlite3_exec(db, before, NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		fail_msg("%s: was done", sql);
	sqlite3_close(db);
}

/* First column of the first row, copied. */
static inline void
foreign_get(const char *sql, char *out, size_t size)
{
	sqlite3 *db = foreign_open();
	sqlite3_stmt *s;
	const char *text;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	text = (const char *)sqlite3_column_text(s, 0);
	snprintf(out, size, "%s", text != NULL ? text : "(null)");
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static inline void
view_says(const char *sql, const char *want)
{
	char got[512];

	foreign_get(sql, got, sizeof got);
	assert_string_equal(got, want);
}

struct heard {
	int count;
	char text[2000];
};

static inline void
hear(void *arg, const char *text)
{
	struct heard *h = arg;
	size_t n = strlen(h->text);

	h->count++;
	snprintf(h->text + n, sizeof h->text - n, "%s\n", text);
}

/* ledger_check finds a problem whose sentence has the words. */
static inline void
check_finds(const char *words)
{
	struct heard h = {0};
	struct err e = {0};
	struct ledger *l;

	assert_int_equal(ledger_open(path, LEDGER_INSPECT, NULL, &l, &e), 0);
	assert_int_equal(ledger_check(l, hear, &h, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	if (strstr(h.text, words) == NULL)
		fail_msg("wanted \"%s\" in: %s", words, h.text);
	ledger_close(l);
}

static inline void
check_is_clean(struct ledger *l)
{
	struct heard h = {0};
	struct err e = {0};

	if (ledger_check(l, hear, &h, &e))
		fail_msg("%s: %s", e.msg, h.text);
}

#endif
