/* Op parity: nothing executed is no pass, whatever the tool calls it. */
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

#define B "#verify 0011223344556677 "

static struct suite *
suite_of(const char *ops)
{
	static char text[4096];
	struct suite *s = NULL;
	struct err e = {0};

	snprintf(text, sizeof text, "{\"schemaVersion\":1,\"name\":\"t\",\"title\":\"t\",\"driver\":\"llama-completion\","
		"\"programs\":[\"llama-completion\"],\"prompt\":\"p\",\"tokens\":4,\"ngl\":99,\"seed\":1,"
		"\"baseline\":\"f16\",\"families\":[{\"name\":\"f16\",\"aliases\":[\"f16\"]}],\"fixtures\":[\"turbo3\"],"
		"\"tolerance\":0.001,\"ops\":[%s],\"models\":[{\"synthetic\":true}],"
		"\"sources\":[{\"origin\":\"x\"}],\"required\":[\"op-parity\"],\"claims\":[\"legacy-kv-graph\"]}", ops);
	if (suite_parse(text, strlen(text), &s, &e))
		fail_msg("%s", e.msg);
	return s;
}

static uint64_t dropped; /* of the next run */

/* A log of one run of the tool; more may follow. */
static size_t
run_add(char *log, size_t size, const char *op, const char *backend, const char *text, size_t len,
	int exit)
{
	size_t n = (size_t)snprintf(log, size, B "run {\"argv\":[\"/e/test-backend-ops\",\"test\",\"-o\",\"%s\","
		"\"-b\",\"%s\"]}\n", op, backend);

	memcpy(log + n, text, len);
	n += len;
	if (len > 0 && text[len - 1] != '\n')
		log[n++] = '\n';
	return n + (size_t)snprintf(log + n, size - n, B "end {\"exit\":%d,\"signal\":0,\"ms\":1,\"bytes\":%zu,"
		"\"dropped\":%llu}\n", exit, len, (unsigned long long)dropped);
}

static enum reason
judged(const char *ops, const char *lane, const char *op, const char *backend, const char *text,
	size_t len, int exit)
{
	static char log[262144];
	struct suite *s = suite_of(ops);
	struct judge_ask ask = {.lane = lane_find(lane), .suite = s};
	struct judgement j;
	size_t n = run_add(log, sizeof log, op, backend, text, len, exit);

	judge_of(GATE_OP_PARITY)(log, n, &ask, &j);
	suite_free(s);
	return j.reason;
}

static enum reason
judged_file(const char *ops, const char *lane, const char *op, const char *backend,
	const char *file, int exit)
{
	char path[256], *text;
	size_t len;
	enum reason r;

	snprintf(path, sizeof path, "fixtures/probes/test-backend-ops/%s", file);
	assert_int_equal(plat_read_file(path, 1u << 20, &text, &len, NULL), 0);
	r = judged(ops, lane, op, backend, text, len, exit);
	free(text);
	return r;
}

static void
h200_with_the_fork_executes_no_score_op(void **state)
{
	(void)state;
	assert_int_equal(judged_file("{\"op\":\"ATTN_SCORE_QJL\"}", "cuda", "ATTN_SCORE_QJL", "CUDA0",
		"h200-fork-test-backend-ops-attn_score_qjl.log", 0), REASON_NO_CASE_EXECUTED);
}

static void
types_are_looked_for_by_name(void **state)
{
	static const char file[] = "h200-fork-test-backend-ops-set_rows.log";

	(void)state;
	assert_int_equal(judged_file("{\"op\":\"SET_ROWS\"}", "cuda", "SET_ROWS", "CUDA0", file, 0), REASON_NONE);
	assert_int_equal(judged_file("{\"op\":\"SET_ROWS\",\"types\":[\"f32\",\"q8_0\"]}", "cuda", "SET_ROWS",
		"CUDA0", file, 0), REASON_NONE);
	assert_int_equal(judged_file("{\"op\":\"SET_ROWS\",\"types\":[\"f32\",\"tbq3_0\"]}", "cuda", "SET_ROWS",
		"CUDA0", file, 0), REASON_NO_CASE_EXECUTED);
	/* q8 is no whole name */
	assert_int_equal(judged_file("{\"op\":\"SET_ROWS\",\"types\":[\"q8\"]}", "cuda", "SET_ROWS", "CUDA0",
		file, 0), REASON_NO_CASE_EXECUTED);
}

#define NO_GPU "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n" \
	"Testing 1 devices\n\nBackend 1/1: CPU\n  Skipping\n1/1 backends passed\nOK\n"

static void
what_did_not_run_on_the_lane_is_no_pass(void **state)
{
	static const char q[] = "{\"op\":\"ATTN_SCORE_QJL\"}";

	(void)state;
	assert_int_equal(judged_file(q, "cuda", "ATTN_SCORE_QJL", "CUDA0", "backend-absent-ok.txt", 0),
		REASON_BACKEND_NOT_PRESENT);
	assert_int_equal(judged_file(q, "cuda", "ATTN_SCORE_QJL", "CUDA0", "only-cpu-skipped.txt", 0),
		REASON_BACKEND_NOT_PRESENT);
	assert_int_equal(judged(q, "cuda", "ATTN_SCORE_QJL", "CUDA0", NO_GPU, sizeof NO_GPU - 1, 0),
		REASON_TOOL_SAW_NO_GPU);
	/* right, and on the processor */
	assert_int_equal(judged_file(q, "cuda", "ATTN_SCORE_QJL", "CPU", "cpu-attn-score-qjl.txt", 0),
		REASON_BACKEND_NOT_PRESENT);
	assert_int_equal(judged_file(q, "cpu", "ATTN_SCORE_QJL", "CPU", "cpu-attn-score-qjl.txt", 0),
		REASON_NONE);
	assert_int_equal(judged_file("{\"op\":\"SET_ROWS_TURBO3\"}", "vulkan", "SET_ROWS_TURBO3", "Vulkan0",
		"vulkan-all-not-supported.txt", 0), REASON_NO_CASE_EXECUTED);
	/* of another op */
	assert_int_equal(judged_file("{\"op\":\"NOSUCHOP\"}", "cpu", "NOSUCHOP", "CPU", "cpu-attn-score-qjl.txt", 0),
		REASON_OP_NOT_IN_ENGINE);
}

static void
a_wrong_case_fails_and_a_missing_end_is_incomplete(void **state)
{
	char path[] = "fixtures/probes/test-backend-ops/cpu-attn-score-qjl.txt", *text;
	size_t len, n;

	(void)state;
	assert_int_equal(judged_file("{\"op\":\"SOFT_MAX\"}", "cuda", "SOFT_MAX", "CUDA0", "cuda-one-fail.txt", 1),
		REASON_OP_MISMATCH);
	assert_int_equal(judged_file("{\"op\":\"SOFT_MAX\"}", "cuda", "SOFT_MAX", "CUDA0", "cuda-one-fail.txt", 0),
		REASON_OP_MISMATCH);
	assert_int_equal(plat_read_file(path, 1u << 20, &text, &len, NULL), 0);
	for (n = 0; n + 12 < len; n++)
		if (judged("{\"op\":\"ATTN_SCORE_QJL\"}", "cpu", "ATTN_SCORE_QJL", "CPU", text, n, 0) == REASON_NONE)
			fail_msg("cut at %zu it passes", n);
	/* all right, and exit 1 */
	assert_int_equal(judged("{\"op\":\"ATTN_SCORE_QJL\"}", "cpu", "ATTN_SCORE_QJL", "CPU", text, len, 1),
		REASON_OP_MISMATCH);
	free(text);
}

/* The end and its summary are there, and nobody saw all of its cases. */
static void
a_test_whose_middle_was_cut_out_is_no_pass(void **state)
{
	(void)state;
	assert_int_equal(judged_file("{\"op\":\"ATTN_SCORE_QJL\"}", "cpu", "ATTN_SCORE_QJL", "CPU",
		"cpu-attn-score-qjl.txt", 0), REASON_NONE);
	dropped = 23000000;
	assert_int_equal(judged_file("{\"op\":\"ATTN_SCORE_QJL\"}", "cpu", "ATTN_SCORE_QJL", "CPU",
		"cpu-attn-score-qjl.txt", 0), REASON_UNKNOWN_TOOL_FORMAT);
	/* what is left still fails first */
	assert_int_equal(judged_file("{\"op\":\"SOFT_MAX\"}", "cuda", "SOFT_MAX", "CUDA0", "cuda-one-fail.txt", 1),
		REASON_OP_MISMATCH);
	dropped = 0;
}

static void
every_op_of_the_suite_must_have_its_run(void **state)
{
	(void)state;
	assert_int_equal(judged_file("{\"op\":\"ATTN_SCORE_QJL\"},{\"op\":\"SOFT_MAX\"}", "cpu", "ATTN_SCORE_QJL",
		"CPU", "cpu-attn-score-qjl.txt", 0), REASON_NO_CASE_EXECUTED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h200_with_the_fork_executes_no_score_op),
		cmocka_unit_test(types_are_looked_for_by_name),
		cmocka_unit_test(what_did_not_run_on_the_lane_is_no_pass),
		cmocka_unit_test(a_wrong_case_fails_and_a_missing_end_is_incomplete),
		cmocka_unit_test(a_test_whose_middle_was_cut_out_is_no_pass),
		cmocka_unit_test(every_op_of_the_suite_must_have_its_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
