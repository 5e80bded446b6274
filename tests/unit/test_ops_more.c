/* Op parity, from logs that nobody meant well with, and from good ones in odd clothes. */
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
#include "common/tool.h"

#define B "#verify 0011223344556677 "
#define LOG_MAX 262144
#define PROBES "fixtures/probes/test-backend-ops/"

#define GREEN "\033[1;32mOK\033[0m"
#define RED "\033[1;31mFAIL\033[0m"
#define ROW "  SOFT_MAX(type=f32,ne=[16,2,32,1],mask=0,scale=1.000000): "
#define SKIP_CPU "Backend 2/2: CPU\n  Skipping\n"
#define HEAD(name, device) "Testing 2 devices\n\nBackend 1/2: " name "\n  Device description: " device \
	"\n  Device memory: 8192 MB (8000 MB free)\n\n"
#define TAIL(name) "  Backend " name ": " GREEN "\n" SKIP_CPU "2/2 backends passed\n" GREEN "\n"
#define GOOD(name, device) HEAD(name, device) ROW GREEN "\n" "  1/1 tests passed\n" TAIL(name)

struct log {
	char text[LOG_MAX];
	size_t len;
};

static struct log *
log_new(void)
{
	struct log *l = calloc(1, sizeof *l);

	assert_non_null(l);
	return l;
}

/* One run: the words behind the program's name as JSON, the bytes, how it ended. */
static void
log_add(struct log *l, const char *argv, const char *text, size_t len, const char *end)
{
	int n;

	assert_true(l->len + len + 1024 < sizeof l->text);
	n = snprintf(l->text + l->len, 512, B "run {\"argv\":[\"/e/test-backend-ops\",%s]}\n", argv);
	l->len += (size_t)n;
	if (len > 0)
		memcpy(l->text + l->len, text, len);
	l->len += len;
	if (len > 0 && text[len - 1] != '\n')
		l->text[l->len++] = '\n';
	n = snprintf(l->text + l->len, 512, B "end {%s,\"ms\":1,\"bytes\":%zu,\"dropped\":0}\n", end, len);
	l->len += (size_t)n;
}

static int
suite_try(const char *ops, struct suite **s, struct err *e)
{
	char text[4096];

	snprintf(text, sizeof text, "{\"schemaVersion\":1,\"name\":\"t\",\"title\":\"t\","
		"\"driver\":\"llama-completion\",\"programs\":[\"llama-completion\"],\"prompt\":\"p\",\"tokens\":4,"
		"\"ngl\":99,\"seed\":1,\"baseline\":\"f16\",\"families\":[{\"name\":\"f16\",\"aliases\":[\"f16\"]}],"
		"\"fixtures\":[\"turbo3\"],\"tolerance\":0.001,\"ops\":[%s],\"models\":[{\"synthetic\":true}],"
		"\"sources\":[{\"origin\":\"x\"}],\"required\":[\"op-parity\"],\"claims\":[\"legacy-kv-graph\"]}", ops);
	return suite_parse(text, strlen(text), s, e);
}

static void
suite_make(const char *ops, struct suite **s)
{
	struct err e = {0};

	if (suite_try(ops, s, &e))
		fail_msg("%s", e.msg);
}

static struct judgement
log_judged(const struct log *l, const char *ops, const char *lane)
{
	struct suite *s = NULL;
	struct judge_ask ask = {.lane = lane_find(lane)};
	struct judgement j = {0};

	suite_make(ops, &s);
	ask.suite = s;
	assert_non_null(ask.lane);
	judge_of(GATE_OP_PARITY)(l->text, l->len, &ask, &j);
	suite_free(s);
	return j;
}

#define EXIT_0 "\"exit\":0,\"signal\":0"
#define SOFT "{\"op\":\"SOFT_MAX\"}"
#define SOFT_ON(backend) "\"test\",\"-o\",\"SOFT_MAX\",\"-b\",\"" backend "\""

/* The verdict on SOFT_MAX where that text is all that the log has. */
static struct judgement
judged_bytes(const char *lane, const char *argv, const char *text, size_t len, const char *end)
{
	struct log *l = log_new();
	struct judgement j;

	log_add(l, argv, text, len, end);
	j = log_judged(l, SOFT, lane);
	free(l);
	return j;
}

static enum reason
judged(const char *lane, const char *argv, const char *text, const char *end)
{
	return judged_bytes(lane, argv, text, strlen(text), end).reason;
}

static char *
load(const char *name, size_t *len)
{
	char path[256], *text;

	snprintf(path, sizeof path, PROBES "%s", name);
	assert_int_equal(plat_read_file(path, 1u << 20, &text, len, NULL), 0);
	return text;
}

static void
a_good_run_passes_on_every_interface(void **state)
{
	(void)state;
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), GOOD("CUDA0", "NVIDIA H200"), EXIT_0), REASON_NONE);
	assert_int_equal(judged("cuda", SOFT_ON("CUDA11"), GOOD("CUDA11", "NVIDIA H200"), EXIT_0), REASON_NONE);
	assert_int_equal(judged("gh200", SOFT_ON("CUDA0"), GOOD("CUDA0", "NVIDIA GH200 480GB"), EXIT_0),
		REASON_NONE);
	assert_int_equal(judged("rocm", SOFT_ON("ROCm0"), GOOD("ROCm0", "AMD Instinct MI300X"), EXIT_0),
		REASON_NONE);
	assert_int_equal(judged("vulkan", SOFT_ON("Vulkan0"),
		GOOD("Vulkan0", "AMD Radeon RX 7900 XTX (RADV NAVI31)"), EXIT_0), REASON_NONE);
	assert_int_equal(judged("cpu", SOFT_ON("CPU"), "Testing 1 devices\n\nBackend 1/1: CPU\n"
		"  Device description: AMD EPYC\n\n" ROW GREEN "\n  1/1 tests passed\n  Backend CPU: " GREEN
		"\n1/1 backends passed\n" GREEN "\n", EXIT_0), REASON_NONE);
}

static void
a_backend_of_a_similar_name_is_another(void **state)
{
	static const char *const names[] = {"CUDA", "CUDA0x", "XCUDA0", "cuda0", "CUDA-0", "Vulkan0", "CPU",
		"ROCm0", ""};
	char text[1024], argv[128];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(argv, sizeof argv, SOFT_ON("%s"), names[i]);
		snprintf(text, sizeof text, "Testing 1 devices\n\nBackend 1/1: %s\n  Device description: x\n\n" ROW
			GREEN "\n  1/1 tests passed\n  Backend %s: " GREEN "\n1/1 backends passed\n" GREEN "\n", names[i],
			names[i]);
		if (judged("cuda", argv, text, EXIT_0) == REASON_NONE)
			fail_msg("\"%s\" passes for CUDA", names[i]);
		/* asked for the right one, and another one answered */
		if (judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0) != REASON_BACKEND_NOT_PRESENT && names[i][0])
			fail_msg("\"%s\" answers for CUDA0", names[i]);
	}
}

static void
rows_of_the_wrong_backend_do_not_count(void **state)
{
	(void)state;
	/* before any head */
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), ROW GREEN "\n" HEAD("CUDA0", "NVIDIA H200")
		"  0/0 tests passed\n" TAIL("CUDA0"), EXIT_0), REASON_NONE);
	/* the device does nothing, the processor everything */
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), HEAD("CUDA0", "NVIDIA H200")
		ROW "not supported [CUDA0] \n  0/0 tests passed\n  Backend CUDA0: " GREEN "\nBackend 2/2: CPU\n"
		"  Device description: AMD EPYC\n\n" ROW GREEN "\n  1/1 tests passed\n  Backend CPU: " GREEN
		"\n2/2 backends passed\n" GREEN "\n", EXIT_0), REASON_NONE);
	/* the device is there and was skipped */
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), "Testing 2 devices\n\nBackend 1/2: CUDA0\n  Skipping\n"
		"Backend 2/2: CPU\n  Skipping\n2/2 backends passed\n" GREEN "\n", EXIT_0), REASON_BACKEND_NOT_PRESENT);
	/* of another op */
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), HEAD("CUDA0", "NVIDIA H200")
		"  SOFT_MAX_BACK(type=f32): " GREEN "\n  1/1 tests passed\n" TAIL("CUDA0"), EXIT_0),
		REASON_OP_NOT_IN_ENGINE);
}

static void
a_row_that_ends_in_neither_ok_nor_fail_is_no_case(void **state)
{
	static const char *const rows[] = {
		ROW "skipping large tensors for speed \n",
		ROW "not supported [CUDA0] \n",
		ROW "not supported [max_bias > 0 is not OK]\n",
		ROW "\n",
		ROW "O\n",
		ROW "BROKEN\n",
		ROW "failed to allocate tensors [CUDA0] \n",
	};
	char text[2048];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, HEAD("CUDA0", "NVIDIA H200") "%s  0/0 tests passed\n" TAIL("CUDA0"),
			rows[i]);
		if (reason_outcome(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0)) != OUTCOME_BLOCKED)
			fail_msg("row %zu is not blocked", i);
		/* and a sum that claims it was executed makes none of it */
		snprintf(text, sizeof text, HEAD("CUDA0", "NVIDIA H200") "%s  1/1 tests passed\n" TAIL("CUDA0"),
			rows[i]);
		if (reason_outcome(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0)) == OUTCOME_PASS)
			fail_msg("row %zu passes", i);
	}
}

static void
a_wrong_number_of_any_kind_is_a_mismatch_that_names_its_case(void **state)
{
	static const char *const says[] = {
		"[SOFT_MAX] ERR = 0.000000103 > 0.000000100 " RED,
		"[SOFT_MAX] ERR = nan > 0.000000100 " RED,
		"[SOFT_MAX] ERR = inf > 0.000000100 " RED,
		"[SOFT_MAX] NaN at index 17 (CUDA0=nan CPU=0.031250) " RED,
		"[SOFT_MAX] inf sign mismatch: CUDA0=inf CPU=-inf " RED,
		"[SOFT_MAX] inf mismatch: CUDA0=inf CPU=1.0 " RED,
		"sentinel mismatch: sent_1 " RED,
		"compare failed " RED,
		"FAIL",
	};
	char text[2048];
	struct judgement j;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(says); i++) {
		snprintf(text, sizeof text, HEAD("CUDA0", "NVIDIA H200") ROW GREEN "\n"
			"  SOFT_MAX(type=f16,ne=[7,7,7,7]): %s\n  1/2 tests passed\n\nFailing tests:\n"
			"  SOFT_MAX(type=f16,ne=[7,7,7,7])\n  Backend CUDA0: " RED "\n" SKIP_CPU
			"1/2 backends passed\n" RED "\n", says[i]);
		j = judged_bytes("cuda", SOFT_ON("CUDA0"), text, strlen(text), "\"exit\":1,\"signal\":0");
		assert_int_equal(j.reason, REASON_OP_MISMATCH);
		assert_int_equal(j.outcome, OUTCOME_FAIL);
		assert_non_null(strstr(j.detail, "SOFT_MAX(type=f16,ne=[7,7,7,7])"));
		/* an exit code, or an end that is not there, makes it no better */
		assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0), REASON_OP_MISMATCH);
		*strstr(text, "  1/2 tests") = '\0';
		assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0), REASON_OP_MISMATCH);
	}
}

static void
what_was_skipped_is_quoted(void **state)
{
	static const char text[] = HEAD("CUDA0", "NVIDIA H200") ROW "not supported [CUDA0] \n"
		"  0/0 tests passed\n" TAIL("CUDA0");
	struct judgement j = judged_bytes("cuda", SOFT_ON("CUDA0"), text, sizeof text - 1, EXIT_0);

	(void)state;
	assert_int_equal(j.reason, REASON_NO_CASE_EXECUTED);
	assert_int_equal(j.outcome, OUTCOME_BLOCKED);
	assert_non_null(strstr(j.detail, "SOFT_MAX(type=f32"));
	assert_non_null(strstr(j.detail, "not supported [CUDA0]"));
}

static void
sums_that_do_not_add_up_are_no_pass(void **state)
{
	static const char *const sums[] = {"0/0", "0/1", "1/2", "1/18446744073709551615",
		"18446744073709551615/1", "1/0", "-1/1", "/1", "1/", "one/one", "1 / 1 of"};
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(sums); i++) {
		snprintf(text, sizeof text, HEAD("CUDA0", "NVIDIA H200") ROW GREEN "\n  %s tests passed\n"
			TAIL("CUDA0"), sums[i]);
		if (reason_outcome(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0)) == OUTCOME_PASS)
			fail_msg("\"%s tests passed\" passes", sums[i]);
	}
}

static void
a_run_that_was_ended_is_no_pass_whatever_it_printed(void **state)
{
	static const char text[] = GOOD("CUDA0", "NVIDIA H200");

	(void)state;
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text,
		"\"exit\":-1,\"signal\":9,\"timedOut\":true"), REASON_TIMEOUT);
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":-1,\"signal\":11"),
		REASON_ENGINE_CRASH);
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":-1,\"signal\":6"),
		REASON_ENGINE_CRASH);
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":1,\"signal\":0"), REASON_NONE);
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":-1,\"signal\":0"), REASON_NONE);
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":3221225477,\"signal\":0"),
		REASON_NONE);
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), text, "\"exit\":-1073741819,\"signal\":0"),
		REASON_NONE);
}

/* Every line but the empty ones and the notes about the device is needed. */
static void
each_line_of_the_end_is_needed(void **state)
{
	static const char *const lines[] = {ROW GREEN "\n", "  1/1 tests passed\n", "  Backend CUDA0: " GREEN "\n",
		"2/2 backends passed\n", "Backend 1/2: CUDA0\n"};
	char text[1024], *at;
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(lines); i++) {
		snprintf(text, sizeof text, "%s", GOOD("CUDA0", "NVIDIA H200"));
		at = strstr(text, lines[i]);
		assert_non_null(at);
		n = strlen(lines[i]);
		memmove(at, at + n, strlen(at + n) + 1);
		if (judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0) == REASON_NONE)
			fail_msg("without line %zu it passes", i);
	}
	/* the final word is not flushed when ops are picked */
	snprintf(text, sizeof text, "%s", GOOD("CUDA0", "NVIDIA H200"));
	text[strlen(text) - strlen(GREEN "\n")] = '\0';
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0), REASON_SUMMARY_MISSING);
}

static void
no_prefix_of_a_log_is_a_pass(void **state)
{
	struct log *l = log_new(), *cut = log_new();
	size_t n, len;
	char *text = load("h200-fork-test-backend-ops-set_rows.log", &len);

	(void)state;
	/* a long file would take long: its head and its end */
	assert_true(len > 2000);
	memmove(text + 1000, text + len - 1000, 1000);
	log_add(l, "\"test\",\"-o\",\"SET_ROWS\",\"-b\",\"CUDA0\"", text, 2000, EXIT_0);
	assert_int_equal(log_judged(l, "{\"op\":\"SET_ROWS\"}", "cuda").reason, REASON_NONE);
	for (n = 0; n + 1 < l->len; n++) {
		memcpy(cut->text, l->text, n);
		cut->len = n;
		if (log_judged(cut, "{\"op\":\"SET_ROWS\"}", "cuda").outcome == OUTCOME_PASS)
			fail_msg("cut at %zu of %zu it passes", n, l->len);
	}
	free(text);
	free(l);
	free(cut);
}

static void
carriage_returns_marks_and_wide_letters_change_nothing(void **state)
{
	static const char *const texts[] = {GOOD("CUDA0", "NVIDIA H200"),
		HEAD("CUDA0", "NVIDIA H200") ROW "not supported [CUDA0] \n  0/0 tests passed\n" TAIL("CUDA0"),
		HEAD("CUDA0", "NVIDIA H200") ROW "compare failed " RED "\n  0/1 tests passed\n  Backend CUDA0: " RED
		"\n" SKIP_CPU "1/2 backends passed\n" RED "\n"};
	static const enum reason want[] = {REASON_NONE, REASON_NO_CASE_EXECUTED, REASON_OP_MISMATCH};
	char crlf[4096], bom[4100], wide[8192];
	size_t i, k, n, w;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		for (k = n = 0; texts[i][k] != '\0'; k++) {
			if (texts[i][k] == '\n')
				crlf[n++] = '\r';
			crlf[n++] = texts[i][k];
		}
		crlf[n] = '\0';
		assert_int_equal(judged("windows-cuda", SOFT_ON("CUDA0"), crlf, EXIT_0), want[i]);
		snprintf(bom, sizeof bom, "\xef\xbb\xbf%s", crlf);
		assert_int_equal(judged("windows-cuda", SOFT_ON("CUDA0"), bom, EXIT_0), want[i]);
		wide[0] = '\xff';
		wide[1] = '\xfe';
		for (k = 0, w = 2; k < n; k++) {
			wide[w++] = crlf[k];
			wide[w++] = '\0';
		}
		assert_int_equal(judged_bytes("windows-cuda", SOFT_ON("CUDA0"), wide, w, EXIT_0).reason, want[i]);
	}
}

static void
what_a_driver_says_between_the_rows_blocks_nothing(void **state)
{
	(void)state;
	assert_int_equal(judged("vulkan", SOFT_ON("Vulkan0"),
		"ggml_vulkan: Found 1 Vulkan devices:\n"
		"ggml_vulkan: 0 = NVIDIA H200 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 1 | warp size: 32\n"
		HEAD("Vulkan0", "NVIDIA H200") "ggml_backend_vk: a note\n" ROW GREEN "\n"
		"WARNING: lavapipe is not a conformant vulkan implementation, testing use only.\n" ROW GREEN "\n"
		"  2/2 tests passed\n" TAIL("Vulkan0"), EXIT_0), REASON_NONE);
	/* a row torn in two is no case, the others are */
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), HEAD("CUDA0", "NVIDIA H200") ROW GREEN "\n" ROW
		"ggml_cuda_init: a note\n" GREEN "\n  2/2 tests passed\n" TAIL("CUDA0"), EXIT_0), REASON_NONE);
}

static void
a_type_counts_only_as_a_whole_word_of_the_stored_side(void **state)
{
	static const struct {
		const char *params;
		enum reason want;
	} rows[] = {
		{"type=tbq3_0,type_idx=i64,ne=[256,5,1,3]", REASON_NONE},
		{"type_src=f32,type_dst=tbq3_0,type_idx=i64", REASON_NONE},
		{"ne=[256,5,1,3],type=tbq3_0", REASON_NONE},
		{"type=tbq3_0x,type_idx=i64", REASON_NO_CASE_EXECUTED},
		{"type=xtbq3_0", REASON_NO_CASE_EXECUTED},
		{"type=tbq3", REASON_NO_CASE_EXECUTED},
		{"type=tbq3_0_0", REASON_NO_CASE_EXECUTED},
		{"type=f32,note=tbq3_0", REASON_NO_CASE_EXECUTED},
		{"type_src=tbq3_0,type_dst=f32", REASON_NO_CASE_EXECUTED},
		{"subtype=tbq3_0", REASON_NO_CASE_EXECUTED},
		{"type_idx=tbq3_0,type=f32", REASON_NO_CASE_EXECUTED},
		{"", REASON_NO_CASE_EXECUTED},
	};
	struct log *l;
	struct judgement j;
	char text[2048];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		l = log_new();
		snprintf(text, sizeof text, HEAD("CUDA0", "NVIDIA H200") "  SET_ROWS(%s): " GREEN "\n"
			"  SET_ROWS(type=q8_0): " GREEN "\n  2/2 tests passed\n" TAIL("CUDA0"), rows[i].params);
		log_add(l, "\"test\",\"-o\",\"SET_ROWS\",\"-b\",\"CUDA0\"", text, strlen(text), EXIT_0);
		j = log_judged(l, "{\"op\":\"SET_ROWS\",\"types\":[\"q8_0\",\"tbq3_0\"]}", "cuda");
		if (j.reason != rows[i].want)
			fail_msg("(%s): %s", rows[i].params, j.detail);
		if (j.reason != REASON_NONE)
			assert_non_null(strstr(j.detail, "tbq3_0"));
		free(l);
	}
}

static void
a_failure_says_more_than_a_gap_wherever_it_stands(void **state)
{
	static const char gap[] = HEAD("CUDA0", "NVIDIA H200") "  ROPE(type=f32): not supported [CUDA0] \n"
		"  0/0 tests passed\n" TAIL("CUDA0");
	static const char bad[] = HEAD("CUDA0", "NVIDIA H200") ROW "compare failed " RED "\n  0/1 tests passed\n"
		"  Backend CUDA0: " RED "\n" SKIP_CPU "1/2 backends passed\n" RED "\n";
	static const char good[] = GOOD("CUDA0", "NVIDIA H200");
	static const char ops[] = "{\"op\":\"ROPE\"}," SOFT;
	int order;

	(void)state;
	for (order = 0; order < 2; order++) {
		struct log *l = log_new();

		if (order == 0)
			log_add(l, "\"test\",\"-o\",\"ROPE\",\"-b\",\"CUDA0\"", gap, sizeof gap - 1, EXIT_0);
		log_add(l, SOFT_ON("CUDA0"), bad, sizeof bad - 1, "\"exit\":1,\"signal\":0");
		if (order == 1)
			log_add(l, "\"test\",\"-o\",\"ROPE\",\"-b\",\"CUDA0\"", gap, sizeof gap - 1, EXIT_0);
		/* and doing it once more until it works does not help */
		log_add(l, SOFT_ON("CUDA0"), good, sizeof good - 1, EXIT_0);
		assert_int_equal(log_judged(l, ops, "cuda").reason, REASON_OP_MISMATCH);
		free(l);
	}
}

static void
only_the_run_that_the_suite_asks_for_counts(void **state)
{
	static const char good[] = GOOD("CUDA0", "NVIDIA H200");
	static const char *const others[] = {
		"\"test\",\"-o\",\"SOFT_MAX,ROPE\",\"-b\",\"CUDA0\"",
		"\"test\",\"-o\",\"SOFT_MAX(type=f32)\",\"-b\",\"CUDA0\"",
		"\"test\",\"-o\",\"SOFT_MAX\"",
		"\"test\",\"-b\",\"CUDA0\"",
		"\"test\",\"-o\",\"SOFT_MAX\",\"-b\",\"CUDA0\",\"-p\",\"type=f32\"",
		"\"test\"",
	};
	struct log *l;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(others); i++)
		if (reason_outcome(judged("cuda", others[i], good, EXIT_0)) == OUTCOME_PASS)
			fail_msg("[%s] passes", others[i]);
	/* the same with and without the suite's filter */
	l = log_new();
	log_add(l, SOFT_ON("CUDA0") ",\"-p\",\"type=f32\"", good, sizeof good - 1, EXIT_0);
	assert_int_equal(log_judged(l, "{\"op\":\"SOFT_MAX\",\"params\":\"type=f32\"}", "cuda").reason,
		REASON_NONE);
	assert_int_not_equal(log_judged(l, "{\"op\":\"SOFT_MAX\",\"params\":\"type=f16\"}", "cuda").reason,
		REASON_NONE);
	free(l);
	/* a copied file is no run */
	l = log_new();
	l->len = (size_t)snprintf(l->text, sizeof l->text, B "file {\"argv\":[\"/e/test-backend-ops\"," SOFT_ON("CUDA0")
		"],\"path\":\"x\"}\n%s" B "end {\"bytes\":%zu,\"dropped\":0}\n", good, sizeof good - 1);
	assert_int_not_equal(log_judged(l, SOFT, "cuda").outcome, OUTCOME_PASS);
	free(l);
}

static void
counts_of_the_report_are_those_of_the_text(void **state)
{
	struct op_facts f[4];
	struct log *l = log_new();
	size_t len;
	char *text = load("h200-fork-test-backend-ops-set_rows.log", &len), *p;
	uint32_t skipped = 0;

	(void)state;
	for (p = text; (p = strstr(p, ": not supported [CUDA0]")) != NULL; p++)
		skipped++;
	assert_true(skipped > 0);
	log_add(l, "\"test\",\"-o\",\"SET_ROWS\",\"-b\",\"CUDA0\"", text, len, EXIT_0);
	free(text);
	text = load("cuda-one-fail.txt", &len);
	log_add(l, SOFT_ON("CUDA0"), text, len, "\"exit\":1,\"signal\":0");
	free(text);
	assert_int_equal(op_facts_read(l->text, l->len, f, 4), 2);
	assert_string_equal(f[0].op, "SET_ROWS");
	assert_string_equal(f[0].backend, "CUDA0");
	/* "135/135 tests passed" */
	assert_int_equal(f[0].ok, 135);
	assert_int_equal(f[0].failed, 0);
	assert_int_equal(f[0].not_supported, skipped);
	assert_true(f[0].worst_nmse < 0);
	assert_string_equal(f[1].op, "SOFT_MAX");
	assert_int_equal(f[1].ok, 0);
	assert_int_equal(f[1].failed, 1);
	assert_int_equal(f[1].not_supported, 0);
	assert_true(f[1].worst_nmse > 1.029e-7 && f[1].worst_nmse < 1.031e-7);
	assert_int_equal(op_facts_read(l->text, l->len, f, 1), 1);
	free(l);
}

static void
a_check_of_gradients_or_speed_is_no_parity(void **state)
{
	static const char *const modes[] = {"grad", "perf", "support"};
	char argv[128];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(modes); i++) {
		snprintf(argv, sizeof argv, "\"%s\",\"-o\",\"SOFT_MAX\",\"-b\",\"CUDA0\"", modes[i]);
		if (judged("cuda", argv, GOOD("CUDA0", "NVIDIA H200"), EXIT_0) == REASON_NONE)
			fail_msg("%s passes", modes[i]);
	}
}

static void
a_processor_that_plays_a_gpu_is_no_device(void **state)
{
	(void)state;
	assert_int_not_equal(judged("vulkan", SOFT_ON("Vulkan0"),
		GOOD("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)"), EXIT_0), REASON_NONE);
}

static void
nine_backends_of_a_big_host_are_read(void **state)
{
	struct tool_answer *a = calloc(1, sizeof *a);
	char text[4096];
	int i, n = snprintf(text, sizeof text, "Testing 9 devices\n\nBackend 1/9: CUDA0\n  Device description: NVIDIA H200\n\n"
		ROW GREEN "\n  1/1 tests passed\n  Backend CUDA0: " GREEN "\n");

	(void)state;
	for (i = 1; i < 8; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "Backend %d/9: CUDA%d\n  Skipping\n", i + 1, i);
	snprintf(text + n, sizeof text - (size_t)n, "Backend 9/9: CPU\n  Skipping\n9/9 backends passed\n" GREEN "\n");
	assert_int_equal(judged("cuda", SOFT_ON("CUDA0"), text, EXIT_0), REASON_NONE);
	tool_parse(TOOL_TEST_BACKEND_OPS, text, strlen(text), 0, a);
	assert_int_equal(a->reason, REASON_NONE);
	free(a);
}

static void
the_fork_calls_the_type_of_keys_k_type(void **state)
{
	static const char text[] = HEAD("CUDA0", "NVIDIA H200") "  ATTN_SCORE_TBQ(k_type=tbq3_0,n_heads=4,n_kv_heads=1,"
		"n_kv_tokens=16,n_batch=1): " GREEN "\n  1/1 tests passed\n" TAIL("CUDA0");
	struct log *l = log_new();

	(void)state;
	log_add(l, "\"test\",\"-o\",\"ATTN_SCORE_TBQ\",\"-b\",\"CUDA0\"", text, sizeof text - 1, EXIT_0);
	assert_int_equal(log_judged(l, "{\"op\":\"ATTN_SCORE_TBQ\",\"types\":[\"tbq3_0\"]}", "cuda").reason, REASON_NONE);
	assert_int_equal(log_judged(l, "{\"op\":\"ATTN_SCORE_TBQ\",\"types\":[\"tbq4_0\"]}", "cuda").reason, REASON_NO_CASE_EXECUTED);
	free(l);
}

static void
an_op_is_asked_for_once(void **state)
{
	static const char bad[] = "{\"op\":\"ROPE\"},{\"op\":\"ROPE\"}", two[] = "{\"op\":\"ROPE\",\"params\":\"a=0\"},"
		"{\"op\":\"ROPE\",\"params\":\"a=1\"}";
	struct suite *s = NULL;

	(void)state;
	assert_int_not_equal(suite_try(bad, &s, NULL), 0);
	assert_int_equal(suite_try(two, &s, NULL), 0);
	suite_free(s);
}

static void
a_program_behind_backslashes_is_known(void **state)
{
	struct log *l = log_new();
	static const char good[] = GOOD("CUDA0", "NVIDIA H200");
	(void)state;
	l->len = (size_t)snprintf(l->text, sizeof l->text, B "run {\"argv\":[\"C:\\\\e\\\\test-backend-ops.exe\"," SOFT_ON("CUDA0") "]}\n%s"
		B "end {" EXIT_0 ",\"ms\":1,\"bytes\":%zu,\"dropped\":0}\n", good, sizeof good - 1);
	assert_int_equal(log_judged(l, SOFT, "windows-cuda").reason, REASON_NONE);
	free(l);
}

static void
a_cancelled_run_is_no_pass(void **state)
{
	(void)state;
	assert_int_not_equal(judged("cuda", SOFT_ON("CUDA0"), GOOD("CUDA0", "NVIDIA H200"), EXIT_0 ",\"cancelled\":true"), REASON_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_run_passes_on_every_interface),
		cmocka_unit_test(a_backend_of_a_similar_name_is_another),
		cmocka_unit_test(rows_of_the_wrong_backend_do_not_count),
		cmocka_unit_test(a_row_that_ends_in_neither_ok_nor_fail_is_no_case),
		cmocka_unit_test(a_wrong_number_of_any_kind_is_a_mismatch_that_names_its_case),
		cmocka_unit_test(what_was_skipped_is_quoted),
		cmocka_unit_test(sums_that_do_not_add_up_are_no_pass),
		cmocka_unit_test(a_run_that_was_ended_is_no_pass_whatever_it_printed),
		cmocka_unit_test(each_line_of_the_end_is_needed),
		cmocka_unit_test(no_prefix_of_a_log_is_a_pass),
		cmocka_unit_test(carriage_returns_marks_and_wide_letters_change_nothing),
		cmocka_unit_test(what_a_driver_says_between_the_rows_blocks_nothing),
		cmocka_unit_test(a_type_counts_only_as_a_whole_word_of_the_stored_side),
		cmocka_unit_test(a_failure_says_more_than_a_gap_wherever_it_stands),
		cmocka_unit_test(only_the_run_that_the_suite_asks_for_counts),
		cmocka_unit_test(counts_of_the_report_are_those_of_the_text),
		cmocka_unit_test(a_check_of_gradients_or_speed_is_no_parity),
		cmocka_unit_test(a_processor_that_plays_a_gpu_is_no_device),
		cmocka_unit_test(nine_backends_of_a_big_host_are_read),
		cmocka_unit_test(the_fork_calls_the_type_of_keys_k_type),
		cmocka_unit_test(an_op_is_asked_for_once),
		cmocka_unit_test(a_program_behind_backslashes_is_known),
		cmocka_unit_test(a_cancelled_run_is_no_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
