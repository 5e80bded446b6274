/* The verdict in words, the JSON of a run, tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/str.h"
#include "controller/result.h"
#include "controller/table.h"

#define ID "0123456789abcdef0123456789abcdef"

static void
verdicts_have_one_line_each(void **state)
{
	static const struct {
		const char *outcome, *reason, *detail, *why;
		bool recordable;
		const char *wanted;
	} rows[] = {
		{"pass", "none", "", "", true, "RECORDABLE PASS"},
		{"pass", "none", "", "override tokens from job", false,
		 "PASS, NOT RECORDABLE: override tokens from job"},
		{"fail", "build_failed", "build: x.c:1: error", "", false,
		 "FAIL build_failed: build: x.c:1: error"},
		{"blocked", "family_not_in_build", "graph-smoke/turbo3: none", "x", false,
		 "BLOCKED family_not_in_build: graph-smoke/turbo3: none"},
		{"skipped", "not_asked", "", "", false, "SKIPPED not_asked"},
		{"incomplete", "cancelled", "a\033[2Jb\n", "", false,
		 "INCOMPLETE cancelled: a?[2Jb?"},
	};
	struct ledger_run r = {0};
	char got[400];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		r.outcome = rows[i].outcome, r.reason = rows[i].reason;
		r.detail = rows[i].detail, r.not_recordable = rows[i].why;
		r.recordable = rows[i].recordable;
		result_line(&r, got, sizeof got);
		assert_string_equal(got, rows[i].wanted);
	}
}

static void
unknown_numbers_are_null_in_json_never_zero(void **state)
{
	struct ledger_smoke smoke = {.family = "q8_0", .outcome = "blocked",
		.reason = "log_too_quiet", .tokens_asked = 4, .tokens_generated = -1};
	struct ledger_code code = {.backend = "cuda", .name = "score.fatbin", .digest = ID ID};
	struct ledger_run r = {.run_id = ID, .host = "h", .lane = "cpu", .target = "t",
		.suite = "s", .outcome = "blocked", .reason = "log_too_quiet", .started_ms = -1,
		.finished_ms = 1780308000000, .exit_code = 3, .model_bytes = -1,
		.smokes = &smoke, .smoke_count = 1, .code = &code, .code_count = 1};
	const cJSON *row;
	cJSON *o;

	(void)state;
	smoke.distance = (double)NAN;
	assert_non_null(o = result_json(&r));
	assert_string_equal(json_str(o, "type"), "result");
	assert_string_equal(json_str(o, "run"), ID);
	assert_true(cJSON_IsNull(json_get(o, "startedAt")));
	assert_string_equal(json_str(o, "finishedAt"), "2026-06-01T10:00:00Z");
	assert_true(cJSON_IsNull(json_path(o, "model.bytes")));
	row = cJSON_GetArrayItem(json_get(o, "smokes"), 0);
	assert_true(cJSON_IsNull(json_get(row, "tokensGenerated")));
	assert_true(cJSON_IsNull(json_get(row, "distance")));
	assert_int_equal(json_int(row, "tokensAsked", 0), 4);
	assert_true(cJSON_IsNull(json_path(o, "claims.fixture-parity")));
	row = cJSON_GetArrayItem(json_get(o, "code"), 0);
	assert_string_equal(json_str(row, "sha256"), ID ID);
	assert_true(cJSON_IsNull(json_get(row, "device")));
	cJSON_Delete(o);
}

static void
tables_line_up_and_clean_their_cells(void **state)
{
	static const char *const heads[] = {"A", "LONGER", "C", NULL};
	const char *one[] = {"x\033[2J", "pass", NULL};
	const char *two[] = {"\xc3\xa4", "", "end"};
	struct table t;
	struct err e;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	table_init(&t, heads);
	table_row(&t, one);
	table_row(&t, two);
	assert_int_equal(table_print(&t, out, false, &e), 0);
	fclose(out);
	assert_string_equal(text, "A      LONGER  C\n"
		"x?[2J  pass    -\n"
		"\xc3\xa4      -       end\n");
	free(text);
	out = open_memstream(&text, &len);
	assert_non_null(out);
	assert_int_equal(table_print(&t, out, true, &e), 0);
	fclose(out);
	assert_non_null(strstr(text, "\033[32mpass\033[0m"));
	free(text);
	table_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_have_one_line_each),
		cmocka_unit_test(unknown_numbers_are_null_in_json_never_zero),
		cmocka_unit_test(tables_line_up_and_clean_their_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
