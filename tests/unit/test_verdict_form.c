#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/verdict.h"
#include "tests/unit/evidence.h"

/* One whole good run, whose report a test then damages. */
struct run {
	struct evidence v;
	struct verdict out;
};

static int
run_make(void **state)
{
	struct run *r = calloc(1, sizeof *r);

	assert_non_null(r);
	evidence_make(&r->v, "llama.cpp");
	*state = r;
	return 0;
}

static int
run_free(void **state)
{
	struct run *r = *state;

	evidence_free(&r->v);
	free(r);
	return 0;
}

/* ---- reports that are none ---- */

static void
refused(struct run *r, const char *word)
{
	struct verdict_logs logs = {evidence_read, &r->v};
	struct err e = {0};

	if (verdict_appraise(r->v.report, r->v.suite, true, &logs, &r->out, &e) == 0)
		fail_msg("accepted: %s", word);
	assert_true(e.code == ERR_PARSE || e.code == ERR_LIMIT);
	assert_true(str_starts(e.msg, "report: "));
	if (strstr(e.msg, word) == NULL)
		fail_msg("no \"%s\" in \"%s\"", word, e.msg);
}

static void
every_member_is_needed_and_of_its_type(void **state)
{
	static const char *const members[] = {"schemaVersion", "runner", "status", "passRecordable",
		"exitCode", "failureReason", "startedAt", "finishedAt", "host", "target",
		"remoteDelegated", "requirements", "evidence", "outcome", "reasonCode", "jobId", "nonce",
		"lane", "suite", "suite.name", "suite.digest", "agent", "agent.version", "device", "probes",
		"source", "build", "model", "gates", "fixtures", "claims", "overrides", "smokes",
		"controls", "artifacts"};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(members); i++) {
		struct run one = {.v = {0}};

		evidence_make(&one.v, "llama.cpp");
		evidence_set(&one.v, members[i], NULL);
		refused(&one, members[i]);
		evidence_free(&one.v);
		evidence_make(&one.v, "llama.cpp");
		/* no member may be both of these */
		evidence_set(&one.v, members[i], strcmp(members[i], "exitCode") == 0 ||
			strcmp(members[i], "schemaVersion") == 0 ? "\"0\"" : "7");
		refused(&one, members[i]);
		evidence_free(&one.v);
	}
}

static void
unknown_words_are_refused_with_what_was_found(void **state)
{
	static const struct {
		const char *gates, *word;
	} rows[] = {
		{"[{\"name\":\"levitate\",\"outcome\":\"pass\"}]", "unknown gate \"levitate\""},
		{"[{\"name\":\"host\",\"outcome\":\"warned\"}]", "host.outcome is \"warned\", wanted pass"},
		{"[{\"name\":\"host\",\"outcome\":\"fail\",\"reasonCode\":\"moon\"}]", "\"moon\""},
		{"[{\"name\":\"host\",\"outcome\":\"fail\",\"reasonCode\":7}]", "reasonCode"},
		{"[{\"name\":\"host\"}]", "\"outcome\""}, {"[{\"outcome\":\"pass\"}]", "\"name\""},
		{"[{\"name\":7,\"outcome\":\"pass\"}]", "\"name\""}, {"[7]", "\"name\""},
		{"[[\"host\"]]", "\"name\""}, {"[null]", "\"name\""},
		{"[{\"name\":\"graph-smoke\",\"outcome\":\"pass\"}]", "graph-smoke"},
		{"[{\"name\":\"graph-smoke/\",\"outcome\":\"pass\"}]", "graph-smoke/"},
		{"[{\"name\":\"graph-smoke/a/b\",\"outcome\":\"pass\"}]", "graph-smoke/a/b"},
		{"[{\"name\":\"graph-smoke/\\u001b[2J\",\"outcome\":\"pass\"}]", "unknown gate"},
		{"[{\"name\":\"host/x\",\"outcome\":\"pass\"}]", "host/x"},
		{"[{\"name\":\"host\",\"outcome\":\"pass\"},{\"name\":\"device\",\"outcome\":\"pass\"},"
			"{\"name\":\"host\",\"outcome\":\"fail\",\"reasonCode\":\"timeout\"}]", "host stands twice"},
		{"[{\"name\":\"host\",\"outcome\":\"pass\"},{\"name\":\"host\",\"outcome\":\"pass\"}]",
			"gates[1]"},
	};
	struct run *r = *state;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		evidence_set(&r->v, "gates", rows[i].gates);
		refused(r, rows[i].word);
	}
}

static void
names_that_are_too_long_or_too_many_are_refused(void **state)
{
	struct run *r = *state;
	char text[16384];
	size_t i, used = 1;

	snprintf(text, sizeof text, "[{\"name\":\"graph-smoke/%080d\",\"outcome\":\"pass\"}]", 1);
	evidence_set(&r->v, "gates", text);
	refused(r, "unknown gate");
	text[0] = '[';
	for (i = 0; i <= VERDICT_MAX_GATES; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
			"%s{\"name\":\"graph-smoke/t%zu\",\"outcome\":\"skipped\",\"reasonCode\":\"not_asked\"}",
			i ? "," : "", i);
	snprintf(text + used, sizeof text - used, "]");
	evidence_set(&r->v, "gates", text);
	refused(r, "more than 64 gates");
}

static void
report_of_another_kind_is_refused(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "schemaVersion", "1");
	refused(r, "schemaVersion is 1, wanted 2");
	evidence_set(&r->v, "schemaVersion", "2");
	evidence_set(&r->v, "outcome", "\"great\"");
	refused(r, "\"great\"");
	evidence_set(&r->v, "outcome", "\"pass\"");
	evidence_set(&r->v, "lane", "\"quantum\"");
	refused(r, "unknown lane \"quantum\"");
	cJSON_Delete(r->v.report);
	r->v.report = cJSON_CreateArray();
	refused(r, "not an object");
	cJSON_Delete(r->v.report);
	r->v.report = NULL;
	refused(r, "not an object");
}

/* ---- several hosts ---- */

static void
worst_exit_follows_the_order_of_the_manual(void **state)
{
	static const int order[] = {2, 1, 6, 5, 4, 3, 7, 0};
	int exits[3];
	size_t i, k;

	(void)state;
	for (i = 0; i < str_count(order); i++)
		for (k = i; k < str_count(order); k++) {
			exits[0] = order[k];
			exits[1] = order[i];
			exits[2] = order[k];
			assert_int_equal(verdict_worst_exit(exits, 3), order[i]);
			assert_int_equal(verdict_worst_exit(exits, 1), order[k]);
		}
}

static void
status_that_no_host_can_have_hides_nothing(void **state)
{
	static const int odd[] = {8, 127, 139, 255, -1};
	int exits[2] = {0, 0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(odd); i++) {
		exits[1] = odd[i];
		assert_int_equal(verdict_worst_exit(exits, 2), 6);
		exits[0] = 1;
		assert_int_equal(verdict_worst_exit(exits, 2), 1);
		exits[0] = 0;
	}
	/* no host at all has shown nothing */
	assert_int_equal(verdict_worst_exit(exits, 0), 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, run_make, run_free)
		cmocka_unit_test(every_member_is_needed_and_of_its_type),
		RUN_TEST(unknown_words_are_refused_with_what_was_found),
		RUN_TEST(names_that_are_too_long_or_too_many_are_refused),
		RUN_TEST(report_of_another_kind_is_refused),
		cmocka_unit_test(worst_exit_follows_the_order_of_the_manual),
		cmocka_unit_test(status_that_no_host_can_have_hides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
