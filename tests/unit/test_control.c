/* The control run: what llama-perplexity says, and the verdict on the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/control.h"
#include "tests/unit/evidence.h"

#define LOGS "fixtures/logs/"
#define SCRAMBLED LOGS "perplexity-stock-v0.4.0-scrambled-q4_0.log"
#define RIGHT "z3NEUKp0vW43q9yf" /* make-model --expect, for the suites' prompt */

static char *
load(const char *path)
{
	struct err e = {0};
	char *text = NULL;

	if (plat_read_file(path, 1u << 20, &text, NULL, &e))
		fail_msg("%s", e.msg);
	return text;
}

static struct kl
read_text(const char *text)
{
	struct kl k;

	kl_parse(text, strlen(text), &k);
	return k;
}

/* Of the file with a text in it replaced. */
static struct kl
read_changed(const char *path, const char *from, const char *to)
{
	char *text = evidence_replace(load(path), from, to);
	struct kl k = read_text(text);

	free(text);
	return k;
}

static void
numbers_are_those_of_the_log(void **state)
{
	char *text = load(SCRAMBLED);
	struct kl k = read_text(text);

	(void)state;
	assert_true(k.whole && k.finite && k.ordered);
	assert_int_equal(k.chunks, 3);
	assert_int_equal(k.context, 128);
	assert_true(k.mean == 22.352011 && k.error == 0.582081 && k.max == 41.613895);
	assert_true(k.p99 == 37.886433 && k.median == 22.687271 && k.same_top == 1.058);
	assert_false(k.saved || k.final);
	free(text);
}

static void
base_run_says_that_it_saved_and_has_no_statistics(void **state)
{
	static const char *const files[] = {LOGS "perplexity-stock-v0.4.0-base-f16.log",
		LOGS "perplexity-fork-96dd1a8-base-f16.log"};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(files); i++) {
		char *text = load(files[i]);
		struct kl k = read_text(text);

		assert_true(k.saved && k.final && !k.whole);
		assert_int_equal(k.chunks, 3);
		free(text);
	}
}

static void
no_beginning_of_the_statistics_is_whole(void **state)
{
	char *text = load(SCRAMBLED);
	const char *end = strstr(text, "Same top p:");
	size_t n, whole;
	struct kl k;

	(void)state;
	assert_non_null(end);
	whole = (size_t)(strchr(end, '\n') - text);
	for (n = whole - 3000; n < whole; n++) {
		kl_parse(text, n, &k);
		assert_false(k.whole);
	}
	kl_parse(text, whole, &k);
	assert_true(k.whole);
	free(text);
}

static void
what_is_no_number_is_not_finite(void **state)
{
	static const char *const rows[][2] = {
		{"Mean    KLD:  22.352011 ±   0.582081", "Mean    KLD:        nan ±        nan"},
		{"Mean    KLD:  22.352011 ±   0.582081", "Mean    KLD:       -nan ±       -nan"},
		{"Mean    KLD:  22.352011", "Mean    KLD:        inf"},
		{"Maximum KLD:  41.613895", "Maximum KLD:        inf"},
		{"Minimum KLD:   0.000000", "Minimum KLD:       -inf"},
		{"Same top p:  1.058", "Same top p:    nan"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		struct kl k = read_changed(SCRAMBLED, rows[i][0], rows[i][1]);

		if (!k.whole || k.finite)
			fail_msg("%s", rows[i][1]);
	}
}

static void
statistics_that_are_not_in_order_are_no_statistics(void **state)
{
	static const char *const rows[][2] = {
		{"Mean    KLD:  22.352011", "Mean    KLD:  2x.352011"},
		{"Mean    KLD:  22.352011", "Mean    KLD:  0x16"},
		{"Mean    KLD:  22.352011 ±   0.582081", "Mean    KLD:  22.352011"},
		{"Mean    KLD:  22.352011", "Mean    KLD:  42.352011"},
		{"Median  KLD:", "Median  XLD:"},
		{"Maximum KLD:", "Minimum KLD:"},
		{"95.0%   KLD:  34.662457", "95.0%   KLD:  54.662457"},
		{"Minimum KLD:   0.000000", "Minimum KLD:   0.000000\nMean    KLD:   0.000000 ±   0.000000"},
		{"Same top p:  1.058", "Same top p:  101.058"}, {"Same top p:", "Same bottom p:"},
		{"Same top p:", "Same top p:  1.058 ± 0.746 %\nSame top p:"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		struct kl k = read_changed(SCRAMBLED, rows[i][0], rows[i][1]);

		if (k.whole && k.finite && k.ordered)
			fail_msg("%s", rows[i][1]);
	}
}

static void
line_ends_colours_and_time_stamps_change_nothing(void **state)
{
	static const char *const rows[][2] = {
		{"\n", "\r\n"}, {"Mean    KLD", "\033[32mMean\033[0m    KLD"},
		{"Mean    KLD", "0.00.626.171 I Mean    KLD"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		struct kl k = read_changed(SCRAMBLED, rows[i][0], rows[i][1]);

		assert_true(k.whole && k.finite && k.ordered && k.mean == 22.352011);
	}
}

/* ---- the whole control ---- */

#define ON_CPU "\"-ngl\",\"0\",\"--device\",\"none\""
#define ON_DEVICE "\"-ngl\",\"99\""
#define KL_RUN(words, type) "\"/e/llama-perplexity\",\"-m\",\"/m/tiny.gguf\"," words \
	",\"--kl-divergence-base\",\"/l/base.kl\",\"--cache-type-k\",\"" type "\""
#define TEXT_RUN(words, type) "\"/e/llama-completion\",\"-m\",\"/m/tiny.gguf\",\"-p\"," \
	"\"Eliza local backend graph dispatch smoke.\",\"-n\",\"16\"," words ",\"--cache-type-k\",\"" type "\""
#define STDOUT(text) MARK "file {\"file\":\"stdout\"}\n" text "\n" MARK "end {\"bytes\":18,\"dropped\":0}\n"

static char *
run_text(const char *argv, const char *file)
{
	char path[256], *body, *out;

	snprintf(path, sizeof path, LOGS "%s", file);
	body = load(path);
	out = evidence_text(MARK "run {\"argv\":[%s]}\n%s" ENDED("0", "0"), argv, body);
	free(body);
	return out;
}

static char *
joined(char *a, char *b)
{
	char *out = evidence_text("%s%s", a, b);

	free(a);
	free(b);
	return out;
}

static char *
texts(void)
{
	char *log = run_text(TEXT_RUN(ON_CPU, "f16"), "control-text-stock-v0.4.0-f16.log");

	log = joined(log, evidence_copy(STDOUT(RIGHT)));
	log = joined(log, run_text(TEXT_RUN(ON_CPU, "q4_0"), "control-text-stock-v0.4.0-q4_0.log"));
	log = joined(log, evidence_copy(STDOUT(RIGHT)));
	log = joined(log, run_text(TEXT_RUN(ON_DEVICE, "q4_0"), "control-text-stock-v0.4.0-q4_0.log"));
	return joined(log, evidence_copy(STDOUT(RIGHT)));
}

/* As the gate writes it, with q4_0; each part can be left out. */
static char *
control_log(const struct suite *s, const char *device, bool scrambled)
{
	char *base = evidence_text("\"/e/llama-perplexity\",\"-m\",\"/m/tiny.gguf\",\"-p\",\"%s\",\"--chunks\","
		"\"3\",\"--kl-divergence-base\",\"/l/base.kl\"," ON_CPU ",\"--cache-type-k\",\"f16\"",
		s->control.text);
	char *log = joined(texts(), run_text(base, "perplexity-stock-v0.4.0-base-f16.log"));

	free(base);
	if (device != NULL)
		log = joined(log, run_text(KL_RUN("\"--kl-divergence\"," ON_DEVICE, "q4_0"), device));
	log = joined(log, run_text(KL_RUN("\"--kl-divergence\"," ON_CPU, "q4_0"), "perplexity-stock-v0.4.0-q4_0.log"));
	if (scrambled)
		log = joined(log, run_text(KL_RUN("\"--kl-divergence\"," ON_CPU, "q4_0"),
			"perplexity-stock-v0.4.0-scrambled-q4_0.log"));
	return log;
}

#define GOOD "perplexity-stock-v0.4.0-q4_0.log"

static struct judgement
judged(const struct suite *s, const char *family, const char *log, size_t len)
{
	const struct judge_ask ask = {.lane = lane_find("cpu"), .suite = s, .family = family};
	struct judgement j = {0};

	judge_of(GATE_CONTROL)(log, len, &ask, &j);
	return j;
}

/* Takes log. */
static void
gives(const struct suite *s, const char *family, char *log, enum reason wanted)
{
	struct judgement j = judged(s, family, log, strlen(log));

	if (j.reason != wanted)
		fail_msg("%s (%s), wanted %s", reason_name(j.reason), j.detail, reason_name(wanted));
	free(log);
}

static struct suite *
suite_named(const char *name)
{
	struct suite *s = NULL;
	struct err e = {0};

	if (suite_builtin(name, &s, &e))
		fail_msg("%s", e.msg);
	return s;
}

/* The n-th place of a text, replaced by one as long or not. Takes log. */
static char *
nth(char *log, int n, const char *from, const char *to)
{
	char *at = log, *out;

	/* nothing that is looked for begins the log */
	while (n-- > 0) {
		at = strstr(at + 1, from);
		assert_non_null(at);
	}
	out = evidence_text("%.*s%s%s", (int)(at - log), log, to, at + strlen(from));
	free(log);
	return out;
}

static void
honest_cache_passes_and_the_detail_has_the_numbers(void **state)
{
	struct suite *s = suite_named("llama.cpp");
	char *log = control_log(s, GOOD, true);
	struct judgement j = judged(s, "q4_0", log, strlen(log));

	(void)state;
	assert_string_equal(j.detail, "mean divergence from f16 is 0, the ceiling 0.5; on the CPU 0, scrambled 22.352");
	assert_int_equal(j.outcome, OUTCOME_PASS);
	free(log);
	suite_free(s);
}

static void
garbage_on_the_device_is_a_failure(void **state)
{
	struct suite *s = suite_named("llama.cpp");

	(void)state;
	gives(s, "q4_0", nth(nth(control_log(s, GOOD, true), 1, "Mean    KLD:   0.000000", "Mean    KLD:   0.500001"), 1,
		"Maximum KLD:   0.000000", "Maximum KLD:   9.000000"), REASON_KL_ABOVE_CEILING);
	gives(s, "q4_0", nth(nth(control_log(s, GOOD, true), 1, "Mean    KLD:   0.000000", "Mean    KLD:   0.500000"), 1,
		"Maximum KLD:   0.000000", "Maximum KLD:   9.000000"), REASON_NONE);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Mean    KLD:   0.000000 ±   0.000000",
		"Mean    KLD:        nan ±        nan"), REASON_KL_ABOVE_CEILING);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Mean    KLD:", "Mean    LKD:"), REASON_SUMMARY_MISSING);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Median  KLD:   0.000000", "Median  KLD:   1.000000"),
		REASON_UNKNOWN_TOOL_FORMAT);
	/* a run that only looks like one on the device */
	gives(s, "q4_0", control_log(s, NULL, true), REASON_AGENT_DIED);
	suite_free(s);
}

static void
control_that_sees_nothing_is_not_sensitive(void **state)
{
	struct suite *s = suite_named("llama.cpp");

	(void)state;
	gives(s, "q4_0", control_log(s, GOOD, false), REASON_CONTROL_NOT_SENSITIVE);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Mean    KLD:  22.352011", "Mean    KLD:   0.500000"),
		REASON_CONTROL_NOT_SENSITIVE);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Mean    KLD:  22.352011", "Mean    KLD:   0.500001"),
		REASON_NONE);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Mean    KLD:  22.352011 ±   0.582081",
		"Mean    KLD:        nan ±        nan"), REASON_CONTROL_NOT_SENSITIVE);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "verify scramble: 8 writes", "verify scramble: 0 writes"),
		REASON_CONTROL_NOT_SENSITIVE);
	/* what is garbage before it is scrambled shows nothing */
	gives(s, "q4_0", nth(nth(control_log(s, GOOD, true), 2, "Mean    KLD:   0.000000", "Mean    KLD:   7.000000"), 2,
		"Maximum KLD:   0.000000", "Maximum KLD:   9.000000"), REASON_CONTROL_NOT_SENSITIVE);
	suite_free(s);
}

static void
runs_must_belong_together(void **state)
{
	struct suite *s = suite_named("llama.cpp");

	(void)state;
	gives(s, "q4_0", evidence_replace(control_log(s, GOOD, true), "The keeper", "A keeper"), REASON_AGENT_DIED);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 2, "/l/base.kl", "/l/other.kl"), REASON_AGENT_DIED);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 5, "/m/tiny.gguf", "/m/other.gguf"), REASON_MODEL_CHANGED);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "over 3 chunks, n_ctx=128", "over 3 chunks, n_ctx=64"),
		REASON_UNKNOWN_TOOL_FORMAT);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 2, "over 3 chunks, n_ctx=128", "over 1 chunks, n_ctx=128"),
		REASON_UNKNOWN_TOOL_FORMAT);
	gives(s, "q4_0", nth(control_log(s, GOOD, true), 1, "Final estimate: PPL", "Final: PPL"), REASON_SUMMARY_MISSING);
	gives(s, "q8_0", control_log(s, GOOD, true), REASON_KV_TYPE_DIFFERS);
	gives(s, "no-family", control_log(s, GOOD, true), REASON_CONTROL_NOT_SENSITIVE);
	gives(s, "q4_0", evidence_copy(DONE), REASON_AGENT_DIED);
	gives(s, "q4_0", evidence_copy(SAYS("driver_missing")), REASON_DRIVER_MISSING);
	suite_free(s);
}

static void
real_family_that_gives_garbage_fails(void **state)
{
	struct suite *s = suite_named("eliza-1");
	char *base = evidence_text("\"/e/llama-perplexity\",\"-m\",\"/m/tiny.gguf\",\"-p\",\"%s\","
		"\"--kl-divergence-base\",\"/l/base.kl\"," ON_CPU ",\"--cache-type-k\",\"f16\"", s->control.text);
	char *log = evidence_replace(evidence_replace(texts(), "\"q4_0\"", "\"tbq3_tcq\""), "K (q4_0)", "K (tbq3_tcq)");

	(void)state;
	log = joined(log, run_text(base, "perplexity-fork-96dd1a8-base-f16.log"));
	log = joined(log, run_text(KL_RUN("\"--kl-divergence\"," ON_DEVICE, "tbq3_tcq"),
		"perplexity-fork-96dd1a8-tbq3_tcq.log"));
	gives(s, "turbo3_tcq", log, REASON_KL_ABOVE_CEILING);
	free(base);
	suite_free(s);
}

static void
no_beginning_of_a_good_log_is_a_pass(void **state)
{
	struct suite *s = suite_named("llama.cpp");
	char *log = control_log(s, GOOD, true);
	size_t len = strlen(log), n, step;

	(void)state;
	for (n = 0; n < len; n += step) {
		step = len - n < 400 ? 1 : 1009;
		/* the last line end is no part of what proves */
		if (n < len - 1 && judged(s, "q4_0", log, n).outcome == OUTCOME_PASS)
			fail_msg("%zu of %zu bytes pass", n, len);
	}
	free(log);
	suite_free(s);
}

/* ---- without llama-perplexity ---- */

#define NONE FACTS "divergence=none: llama-perplexity is not in /e\n" END

static char *
text_log(const char *scrambled)
{
	char *log = joined(texts(), run_text(TEXT_RUN(ON_CPU, "q4_0"), "control-text-stock-v0.4.0-scrambled-q4_0.log"));

	log = joined(log, evidence_text(STDOUT("%s"), scrambled));
	return joined(log, evidence_copy(NONE));
}

static void
greedy_text_decides_where_nothing_else_can(void **state)
{
	struct suite *s = suite_named("llama.cpp");

	(void)state;
	gives(s, "q4_0", text_log("3xVhPDZgG3UDgJ6j"), REASON_NONE);
	gives(s, "q4_0", text_log(RIGHT), REASON_CONTROL_NOT_SENSITIVE);
	gives(s, "q4_0", nth(text_log("3xVhPDZgG3UDgJ6j"), 3, RIGHT, "z3NEUKp0vW43q9yX"), REASON_KL_ABOVE_CEILING);
	/* all alike, and all wrong: the model's text is known */
	gives(s, "q4_0", evidence_replace(text_log("3xVhPDZgG3UDgJ6j"), RIGHT, "AAAAAAAAAAAAAAAA"),
		REASON_KL_ABOVE_CEILING);
	gives(s, "q4_0", evidence_replace(nth(text_log("3xVhPDZgG3UDgJ6j"), 3, RIGHT, "z3NEUKp0vW43q9yX"),
		"general.synthetic", "general.basic"), REASON_CONTROL_NOT_OFFERED);
	gives(s, "q4_0", evidence_replace(text_log("3xVhPDZgG3UDgJ6j"), "general.synthetic", "general.basic"),
		REASON_NONE);
	gives(s, "q4_0", evidence_replace(text_log("3xVhPDZgG3UDgJ6j"), "verify scramble:", "nothing:"),
		REASON_CONTROL_NOT_SENSITIVE);
	/* nobody says why the program is not there */
	gives(s, "q4_0", evidence_replace(text_log("3xVhPDZgG3UDgJ6j"), "divergence=", "detail="), REASON_AGENT_DIED);
	suite_free(s);
}

/* ---- the report ---- */

static void
row_of_the_report_is_that_of_the_log(void **state)
{
	struct suite *s = suite_named("llama.cpp");
	char *log = control_log(s, GOOD, true), said[320];
	cJSON *row = control_row(log, strlen(log), s, "q4_0"), *report = cJSON_CreateObject();

	(void)state;
	assert_true(json_num(json_path(row, "kl.scrambled"), "mean", 0) == 22.352011);
	assert_true(json_num(json_path(row, "kl.device"), "sameTop", 0) == 100);
	assert_true(json_num(row, "klCeiling", 0) == 0.5);
	assert_string_equal(json_path_str(row, "greedy.device.text"), RIGHT);
	assert_string_equal(json_path_str(row, "greedy.expected"), RIGHT);
	assert_true(control_differs(report, s, "control/q4_0", log, strlen(log), said, sizeof said));
	assert_true(cJSON_AddItemToArray(json_add_array(report, "cacheControls"), row));
	assert_false(control_differs(report, s, "control/q4_0", log, strlen(log), said, sizeof said));
	assert_true(control_differs(report, s, "control/q8_0", log, strlen(log), said, sizeof said));
	cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(row, "klCeiling"), 5);
	assert_true(control_differs(report, s, "control/q4_0", log, strlen(log), said, sizeof said));
	cJSON_Delete(report);
	free(log);
	suite_free(s);
}

static void
suite_with_a_control_has_a_ceiling_for_every_family(void **state)
{
	static const struct {
		const char *from, *to;
		bool good;
	} rows[] = {
		{"\"klCeiling\": 0.25", "\"klCeiling\": 0.26", true}, {", \"klCeiling\": 0.25", "", false},
		{"\"klCeiling\": 0.25", "\"klCeiling\": 0", false}, {"\"klCeiling\": 0.25", "\"klCeiling\": -1", false},
		{"\"klCeiling\": 0.25", "\"klCeiling\": \"0.25\"", false}, {"\"klCeiling\": 0.25", "\"klCeiling\": 100", false},
		{"\"context\": 128", "\"context\": 8", false}, {"\"chunks\": 3", "\"chunks\": 1", false},
		{"\"text\": \"The", "\"texts\": \"The", false}, {"\"control\": {", "\"controls\": {", false},
	};
	struct suite *s = suite_named("llama.cpp"), *other;
	size_t i;

	(void)state;
	assert_true(suite_wants(s, GATE_CONTROL) && (s->required & GATE_BIT(GATE_CONTROL)) != 0);
	assert_true(suite_ceiling(s, "q4_0") == 0.5 && suite_ceiling(s, "tbq3_0") == 0 && suite_ceiling(s, NULL) == 0);
	for (i = 0; i < str_count(rows); i++) {
		char *text = evidence_replace(evidence_copy(s->text), rows[i].from, rows[i].to);
		struct err e = {0};
		bool good = suite_parse(text, strlen(text), &other, &e) == 0;

		if (good != rows[i].good)
			fail_msg("%s: %s", rows[i].to, e.msg);
		if (good)
			suite_free(other);
		free(text);
	}
	suite_free(s);
	s = suite_named("eliza-1");
	assert_true(suite_ceiling(s, "turbo3") == 1.5 && suite_ceiling(s, "tbq3_0") == 1.5);
	suite_free(s);
	s = suite_named("eliza-1-gemma");
	assert_false(suite_wants(s, GATE_CONTROL));
	suite_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_log),
		cmocka_unit_test(base_run_says_that_it_saved_and_has_no_statistics),
		cmocka_unit_test(no_beginning_of_the_statistics_is_whole),
		cmocka_unit_test(what_is_no_number_is_not_finite),
		cmocka_unit_test(statistics_that_are_not_in_order_are_no_statistics),
		cmocka_unit_test(line_ends_colours_and_time_stamps_change_nothing),
		cmocka_unit_test(honest_cache_passes_and_the_detail_has_the_numbers),
		cmocka_unit_test(garbage_on_the_device_is_a_failure),
		cmocka_unit_test(control_that_sees_nothing_is_not_sensitive),
		cmocka_unit_test(runs_must_belong_together),
		cmocka_unit_test(real_family_that_gives_garbage_fails),
		cmocka_unit_test(no_beginning_of_a_good_log_is_a_pass),
		cmocka_unit_test(greedy_text_decides_where_nothing_else_can),
		cmocka_unit_test(row_of_the_report_is_that_of_the_log),
		cmocka_unit_test(suite_with_a_control_has_a_ceiling_for_every_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
