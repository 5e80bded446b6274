/* The engine's six routes: numbers decide, on the lane's device, each route once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/judge.h"
#include "common/plat.h"
#include "common/str.h"

#define MARK "#verify 0123456789abcdef "
#define ID "GPU-11111111-2222-3333-4444-555555555555"
#define PCI "0000:1b:00.0"
#define QJL "GGML_OP_ATTN_SCORE_QJL"
#define TURBO4 "GGML_OP_ATTN_SCORE_TBQ/turbo4"
#define POLAR "GGML_OP_ATTN_SCORE_POLAR/use_qjl=1"

static const char *const labels[] = {QJL, "GGML_OP_ATTN_SCORE_TBQ/turbo3", TURBO4,
	"GGML_OP_ATTN_SCORE_TBQ/turbo3_tcq", "GGML_OP_ATTN_SCORE_POLAR/use_qjl=0", POLAR};

/* ---- a good run, and changes of it ---- */

#define P "[engine-verify] "
#define HEAD P "device=NVIDIA H200\n" P "backend=CUDA0 registry=CUDA id=" PCI "\n" P "cpu=AMD EPYC\n"
#define END P "PASS engine suite: 6 graph routes\n"
#define SAID ": 286 scores, max diff 2.441e-04\n"

static char body[262144], log_text[300000];
static size_t body_len, log_len;

static void PRINTF(1, 2)
add(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(body + body_len, sizeof body - body_len, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof body - body_len);
	body_len += (size_t)n;
}

/* Scores are multiples of 1/4, but for the fourth of a set, which is off by 2^-12; the
 * planted error moves the eighth. */
static void
scores(const char *set, int n, bool planted)
{
	double v;
	int i;

	for (i = 0; i < n; i++) {
		v = (i % 7) * 1.5 - 4.25 + (planted && i == 7 ? 0.5 : 0);
		add(P "score %s %d %.9g %.9g %.9g\n", set, i, v + (i == 3 ? 0.000244140625 : 0), v, v);
	}
}

static void
route(const char *label)
{
	add(P "route %s type=x bytes=34\n", label);
	scores("plain", 32, false);
	scores("odd", 222, false);
	scores("planted", 32, true);
	add(P "PASS %s" SAID, label);
}

static void
good(void)
{
	size_t i;

	body_len = 0;
	add("ggml_cuda_init: found 1 CUDA devices:\n" HEAD);
	for (i = 0; i < str_count(labels); i++)
		route(labels[i]);
	add(END);
}

/* The first such text becomes another one. */
static void
change(const char *from, const char *to)
{
	char *at = strstr(body, from);
	size_t n = strlen(from), m = strlen(to);

	if (at == NULL)
		fail_msg("no \"%s\" in the run", from);
	assert_true(body_len - n + m < sizeof body);
	memmove(at + m, at + n, body_len - (size_t)(at - body) - n + 1);
	memcpy(at, to, m);
	body_len += m - n;
}

#define RUN "\"/c/engine-verify\",\"--device\",\"CUDA0\",\"--backends\",\"/e\""
#define LOOK MARK "run {\"argv\":[\"/a/verify-agent\",\"probe\",\"nvml\",\"--device\",\"" ID "\"]}\n" \
	"{\"probe\":\"nvml\",\"schema\":1,\"bootId\":\"b0\",\"error\":null,\"devices\":[{\"index\":0,\"name\":" \
	"\"NVIDIA H200\",\"uuid\":\"" ID "\",\"pci\":\"" PCI "\",\"arch\":\"9.0\",\"type\":\"discrete\"," \
	"\"driver\":\"580.65.06\"}]}\n" MARK "end {\"exit\":0,\"signal\":0,\"ms\":7,\"bytes\":9,\"dropped\":0}\n"
#define COMPILED(exit) MARK "run {\"argv\":[\"/usr/bin/cc\",\"kernels/engine_verify.c\"]}\n" \
	"x.c:3: error: no such thing\n" MARK "end {\"exit\":" exit ",\"signal\":0,\"ms\":7,\"bytes\":9,\"dropped\":0}\n"

static struct judgement j;

static enum reason
judged_log(const char *lane, size_t n)
{
	struct suite *s = NULL;
	struct err e = {0};
	struct judge_ask ask = {.lane = lane_find(lane)};
	char *copy = malloc(n + 1);

	assert_non_null(copy);
	if (suite_builtin("eliza-1", &s, &e))
		fail_msg("%s", e.msg);
	ask.suite = s;
	memcpy(copy, log_text, n);
	memset(&j, 0, sizeof j);
	judge_gate(GATE_ROUTES, copy, n, &ask, &j);
	suite_free(s);
	free(copy);
	return j.reason;
}

static enum reason
judged_as(const char *lane, const char *argv, const char *end)
{
	log_len = (size_t)snprintf(log_text, sizeof log_text, LOOK COMPILED("0") MARK "run {\"argv\":[%s]}\n%.*s"
		MARK "end {%s,\"ms\":7,\"bytes\":9,\"dropped\":0}\n" LOOK, argv, (int)body_len, body, end);
	assert_true(log_len < sizeof log_text);
	return judged_log(lane, log_len);
}

static enum reason
judged(void)
{
	return judged_as("cuda", RUN, "\"exit\":0,\"signal\":0");
}

static void
expect_(enum reason wanted, const char *from, const char *to, int line)
{
	enum reason got;

	good();
	change(from, to);
	if ((got = judged()) != wanted)
		fail_msg("line %d: %s, not %s: %s", line, reason_name(got), reason_name(wanted), j.detail);
}
#define expect(wanted, from, to) expect_(REASON_##wanted, from, to, __LINE__)

static void
six_right_routes_on_the_device_are_a_pass(void **state)
{
	(void)state;
	good();
	if (judged() != REASON_NONE)
		fail_msg("%s: %s", reason_name(j.reason), j.detail);
	assert_non_null(strstr(j.detail, "NVIDIA H200"));
	assert_non_null(strstr(j.detail, "2.441e-04"));
	/* with the line ends of another system, and the engine's words between */
	change(P "score plain 5 ", "ggml: a word\r\n" P "score plain 5 ");
	assert_int_equal(judged(), REASON_NONE);
}

/* What the program printed with a real engine that has the ops, on its CPU backend. */
static void
real_run_of_an_engine_with_the_ops_is_a_pass(void **state)
{
	static const char cpu[] = "\"/c/engine-verify\",\"--device\",\"CPU\"";
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(plat_read_file("fixtures/engine-verify/cpu-fork.txt", 1u << 20, &text, &n, NULL), 0);
	body_len = 0;
	add("%s", text);
	free(text);
	if (judged_as("cpu", cpu, "\"exit\":0,\"signal\":0") != REASON_NONE)
		fail_msg("%s: %s", reason_name(j.reason), j.detail);
	/* the same words are nothing for a lane with a GPU */
	assert_int_equal(judged_as("cuda", cpu, "\"exit\":0,\"signal\":0"), REASON_BACKEND_NOT_PRESENT);
	change("score odd 100 ", "score odd 100 9 9.5 9\n" P "note ");
	assert_int_equal(judged_as("cpu", cpu, "\"exit\":0,\"signal\":0"), REASON_OP_MISMATCH);
}

static void
no_prefix_of_a_good_run_is_a_pass(void **state)
{
	size_t n, whole, step;

	(void)state;
	good();
	assert_int_equal(judged(), REASON_NONE);
	whole = log_len;
	/* the raw log, where each cut ends in a section */
	for (n = 0; n < whole; n += n > 1000 && n + 1500 < whole ? 4999 : 3)
		if (judged_log("cuda", n) == REASON_NONE)
			fail_msg("%zu of %zu bytes are a pass", n, whole);
	/* the output, in a log that is whole */
	whole = body_len;
	for (n = whole - 1; n > 0; n -= step) {
		step = n + 300 > whole ? 1 : 6007 < n ? 6007 : n;
		body_len = n;
		if (judged() == REASON_NONE)
			fail_msg("%zu bytes of output are a pass", n);
	}
}

static void
score_off_by_a_thousandth_or_no_number_fails(void **state)
{
	static const char from[] = "score odd 1 -2.75 -2.75 -2.75";
	static const struct {
		const char *to;
		enum reason wanted;
	} rows[] = {
		{"score odd 1 -2.7511 -2.75 -2.75", REASON_OP_MISMATCH},
		{"score odd 1 -2.7505 -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT}, /* right, and not as it was said */
		{"score odd 1 nan -2.75 -2.75", REASON_OP_MISMATCH},
		{"score odd 1 -nan nan nan", REASON_OP_MISMATCH},
		{"score odd 1 inf inf inf", REASON_OP_MISMATCH},
		{"score odd 1 1e999 1e999 1e999", REASON_OP_MISMATCH},
		/* against the engine's own CPU, and against the reference */
		{"score odd 1 -2.75 -2.76 -2.75", REASON_OP_MISMATCH},
		{"score odd 1 -2.75 -2.75 -2.74", REASON_OP_MISMATCH},
		{"score odd 1 -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT},
		{"score odd 1 -2.75 -2.75 -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT},
		{"score odd 1 x -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT},
		{"score odd 2 -2.75 -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT},
		{"score plain 1 -2.75 -2.75 -2.75", REASON_UNKNOWN_TOOL_FORMAT},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		expect_(rows[i].wanted, from, rows[i].to, (int)i);
	/* 1e-3 itself is too much: the float of it is a little more */
	expect(OP_MISMATCH, "score plain 0 -4.25 -4.25 -4.25", "score plain 0 0.001 0 0");
}

static void
missing_twofold_and_foreign_routes_are_no_pass(void **state)
{
	static char one[40000];
	size_t i;

	(void)state;
	/* each route left out, with a summary that says six */
	for (i = 0; i < str_count(labels); i++) {
		char *from, *to;

		good();
		snprintf(one, sizeof one, P "route %s ", labels[i]);
		from = strstr(body, one);
		snprintf(one, sizeof one, P "PASS %s: ", labels[i]);
		to = strchr(strstr(body, one), '\n') + 1;
		snprintf(one, sizeof one, "%.*s", (int)(to - from), from);
		change(one, "");
		assert_int_equal(judged(), REASON_NO_CASE_EXECUTED);
		/* and in the place of it another one twice */
		good();
		change(labels[i], labels[(i + 1) % str_count(labels)]);
		assert_int_equal(judged(), REASON_UNKNOWN_TOOL_FORMAT);
	}
	expect(UNKNOWN_TOOL_FORMAT, "route " QJL " ", "route GGML_OP_MUL_MAT ");
	expect(UNKNOWN_TOOL_FORMAT, "PASS " QJL ":", "PASS GGML_OP_MUL_MAT:");
	expect(UNKNOWN_TOOL_FORMAT, END, P "route " QJL " type=x bytes=34\n" END);
	expect(UNKNOWN_TOOL_FORMAT, END, P "PASS " QJL SAID END);
	expect(UNKNOWN_TOOL_FORMAT, P "route " QJL " type=x bytes=34\n", "");
	expect(UNKNOWN_TOOL_FORMAT, END, END P "score plain 0 1 1 1\n");
	expect(SUMMARY_MISSING, P "PASS " QJL SAID, "");
}

static void
summary_that_its_scores_do_not_bear_is_no_pass(void **state)
{
	(void)state;
	expect(UNKNOWN_TOOL_FORMAT, "max diff 2.441e-04", "max diff 1.000e-06");
	expect(UNKNOWN_TOOL_FORMAT, "286 scores", "32 scores");
	expect(UNKNOWN_TOOL_FORMAT, "6 graph routes", "7 graph routes");
	expect(SUMMARY_MISSING, END, "");
	expect(UNKNOWN_TOOL_FORMAT, END, END END);
	/* numbers decide, not the word */
	expect(OP_MISMATCH, "score odd 9 -1.25 -1.25 -1.25", "score odd 9 7.5 -1.25 -1.25");
	expect(OP_MISMATCH, "PASS " TURBO4, "FAIL " TURBO4);
	good();
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":1,\"signal\":0"), REASON_UNKNOWN_TOOL_FORMAT);
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":-1,\"signal\":11"), REASON_ENGINE_CRASH);
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":-1,\"signal\":9,\"timedOut\":true"), REASON_TIMEOUT);
}

static void
planted_error_that_changes_nothing_voids_the_run(void **state)
{
	(void)state;
	/* the eighth score is as without the error */
	expect(CONTROL_MISSED, "score planted 7 -3.75 -3.75 -3.75", "score planted 7 -4.25 -4.25 -4.25");
	/* the device keeps the old score where another was due */
	expect(OP_MISMATCH, "score planted 7 -3.75", "score planted 7 -4.25");
}

static void
zeros_that_agree_with_zeros_are_no_pass(void **state)
{
	char line[64];
	int i;

	(void)state;
	body_len = 0;
	add(HEAD P "route %s type=x bytes=34\n", QJL);
	for (i = 0; i < 32; i++)
		add(P "score plain %d 0 0 0\n", i);
	for (i = 0; i < 222; i++)
		add(P "score odd %d 0 0 0\n", i);
	for (i = 0; i < 32; i++) {
		snprintf(line, sizeof line, "score planted %d %s", i, i == 7 ? "0.01 0.01 0.01" : "0 0 0");
		add(P "%s\n", line);
	}
	add(P "PASS " QJL ": 286 scores, max diff 0.000e+00\n");
	for (i = 1; i < 6; i++)
		route(labels[i]);
	add(END);
	assert_int_equal(judged(), REASON_UNKNOWN_TOOL_FORMAT);
}

static void
it_must_name_the_device_of_the_lane(void **state)
{
	(void)state;
	expect(DEVICE_CHANGED, "id=" PCI, "id=0000:43:00.0");
	/* no address: then by name */
	expect(NONE, "id=" PCI, "id=unknown");
	good();
	change("id=" PCI, "id=unknown");
	change("device=NVIDIA H200", "device=NVIDIA H100");
	assert_int_equal(judged(), REASON_DEVICE_CHANGED);
	/* a short form of the same place */
	expect(NONE, "id=" PCI, "id=1b:00.0");
	expect(UNKNOWN_TOOL_FORMAT, P "device=NVIDIA H200\n", "");
	expect(UNKNOWN_TOOL_FORMAT, P "backend=CUDA0 registry=CUDA id=" PCI "\n", "");
	expect(UNKNOWN_TOOL_FORMAT, P "device=NVIDIA H200\n", HEAD P "device=NVIDIA H200\n");
	expect(BACKEND_NOT_PRESENT, "backend=CUDA0", "backend=CPU");
	expect(BACKEND_NOT_PRESENT, "backend=CUDA0", "backend=CUDA1");
	good();
	assert_int_equal(judged_as("vulkan", RUN, "\"exit\":0,\"signal\":0"), REASON_BACKEND_NOT_PRESENT);
	expect(SOFTWARE_DEVICE, "device=NVIDIA H200", "device=llvmpipe (LLVM 15.0.6, 256 bits)");
}

static void
engine_without_the_ops_is_blocked_and_a_refusal_fails(void **state)
{
	size_t i;

	(void)state;
	body_len = 0;
	add(HEAD);
	for (i = 0; i < str_count(labels); i++)
		add(P "MISSING %s: the engine has no function f\n", labels[i]);
	add(P "FAIL engine suite: 0 of 6 graph routes right, 0 not supported, 6 not in the engine\n");
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":3,\"signal\":0"), REASON_OP_NOT_IN_ENGINE);
	assert_int_equal(j.outcome, OUTCOME_BLOCKED);
	/* so it is on every device */
	change("NVIDIA H200", "llvmpipe");
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":3,\"signal\":0"), REASON_OP_NOT_IN_ENGINE);

	body_len = 0;
	add(HEAD);
	for (i = 0; i < str_count(labels); i++)
		add(P "route %s type=x bytes=34\n" P "UNSUPPORTED %s: CUDA0 refuses the op\n", labels[i], labels[i]);
	add(P "FAIL engine suite: 0 of 6 graph routes right, 6 not supported, 0 not in the engine\n");
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":1,\"signal\":0"), REASON_OP_NOT_SUPPORTED);
	assert_int_equal(j.outcome, OUTCOME_FAIL);

	body_len = 0;
	add(P "NODEVICE CUDA0\n");
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":3,\"signal\":0"), REASON_BACKEND_NOT_PRESENT);
	body_len = 0;
	add(HEAD P "SOFTWARE CUDA0: proves nothing\n");
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":3,\"signal\":0"), REASON_SOFTWARE_DEVICE);
	/* an abort in the middle of a route */
	body_len = 0;
	add(HEAD P "route %s type=x bytes=34\n", QJL);
	assert_int_equal(judged_as("cuda", RUN, "\"exit\":-1,\"signal\":6"), REASON_ENGINE_ABORT);
}

static void
program_that_was_not_made_or_not_run_is_no_pass(void **state)
{
	(void)state;
	log_len = (size_t)snprintf(log_text, sizeof log_text, "%s", LOOK COMPILED("1") LOOK);
	assert_int_equal(judged_log("cuda", log_len), REASON_TOOL_BROKEN);
	assert_non_null(strstr(j.detail, "no such thing"));
	log_len = (size_t)snprintf(log_text, sizeof log_text, "%s", LOOK COMPILED("0") LOOK);
	assert_int_equal(judged_log("cuda", log_len), REASON_NO_CASE_EXECUTED);
	/* another program's words */
	good();
	assert_int_equal(judged_as("cuda", "\"/c/cat\",\"--device\",\"CUDA0\"", "\"exit\":0,\"signal\":0"),
		REASON_NO_CASE_EXECUTED);
	/* the other name of it has other lines */
	assert_int_equal(judged_as("cuda", "\"/c/vulkan_dispatch_smoke\",\"--device\",\"CUDA0\"",
		"\"exit\":0,\"signal\":0"), REASON_SUMMARY_MISSING);
}

static void
report_has_a_row_for_each_route(void **state)
{
	struct route_facts f[ROUTE_FACTS_MAX];

	(void)state;
	good();
	change("score odd 9 -1.25", "score odd 9 nan");
	change("PASS " QJL, "FAIL " QJL);
	judged();
	assert_int_equal(route_facts_read(log_text, log_len, f), 6);
	assert_string_equal(f[0].label, QJL);
	assert_int_equal(f[0].right, 285);
	assert_int_equal(f[0].wrong, 1);
	assert_true(f[0].supported && f[5].supported);
	assert_true(f[5].max_diff == 0.000244140625);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(six_right_routes_on_the_device_are_a_pass),
		cmocka_unit_test(real_run_of_an_engine_with_the_ops_is_a_pass),
		cmocka_unit_test(no_prefix_of_a_good_run_is_a_pass),
		cmocka_unit_test(score_off_by_a_thousandth_or_no_number_fails),
		cmocka_unit_test(missing_twofold_and_foreign_routes_are_no_pass),
		cmocka_unit_test(summary_that_its_scores_do_not_bear_is_no_pass),
		cmocka_unit_test(planted_error_that_changes_nothing_voids_the_run),
		cmocka_unit_test(zeros_that_agree_with_zeros_are_no_pass),
		cmocka_unit_test(it_must_name_the_device_of_the_lane),
		cmocka_unit_test(engine_without_the_ops_is_blocked_and_a_refusal_fails),
		cmocka_unit_test(program_that_was_not_made_or_not_run_is_no_pass),
		cmocka_unit_test(report_has_a_row_for_each_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
