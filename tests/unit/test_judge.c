#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/judge.h"
#include "tests/unit/evidence.h"

static struct suite *suite; /* llama.cpp */

static int
suite_open(void **state)
{
	struct err e = {0};

	(void)state;
	return suite_builtin("llama.cpp", &suite, &e);
}

static int
suite_close(void **state)
{
	(void)state;
	suite_free(suite);
	return 0;
}

/* The judge over a copy that ends where the log ends. */
static struct judgement
judged_bytes(enum gate_id g, const char *family, const char *log, size_t len)
{
	struct judge_ask ask = {.lane = lane_find("cpu"), .suite = suite, .family = family,
		.min_tokens = 4};
	struct judgement j;
	char *copy = malloc(len > 0 ? len : 1);

	assert_non_null(copy);
	memcpy(copy, log, len);
	memset(&j, 0xaa, sizeof j);
	judge_of(g)(copy, len, &ask, &j);
	free(copy);
	assert_int_equal(reason_outcome(j.reason), j.outcome);
	assert_true(str_is_utf8(j.detail, strlen(j.detail)));
	return j;
}

static void
gives(enum gate_id g, const char *family, const char *log, enum reason wanted)
{
	struct judgement j = judged_bytes(g, family, log, strlen(log));

	if (j.reason != wanted)
		fail_msg("%s: wanted %s, got %s: %s\n%.300s", gates[g].name, reason_name(wanted),
			reason_name(j.reason), j.detail, log);
}

/* Takes log. */
static void
gives_text(enum gate_id g, const char *family, char *log, enum reason wanted)
{
	gives(g, family, log, wanted);
	free(log);
}

/* ---- every gate ---- */

static const struct {
	enum gate_id id;
	const char *log;
} plain[] = {
	{GATE_HOST, GOOD_HOST}, {GATE_DEVICE, GOOD_DEVICE}, {GATE_TOOLCHAIN, GOOD_TOOLCHAIN},
	{GATE_MODEL, GOOD_MODEL}, {GATE_SOURCE, GOOD_SOURCE}, {GATE_BUILD, GOOD_BUILD},
	{GATE_REPORT, DONE},
};

static char *
good_log(enum gate_id g)
{
	size_t i;

	for (i = 0; i < str_count(plain); i++)
		if (plain[i].id == g)
			return evidence_copy(plain[i].log);
	return g == GATE_FIXTURES ? evidence_fixtures(suite) : evidence_smoke(suite, "q8_0");
}

/* Gates of the cpu lane that every suite of ours has. */
static bool
has_good_log(int g)
{
	return judge_of((enum gate_id)g) != NULL && g != GATE_MTP &&
		(lane_find("cpu")->gates & GATE_BIT(g)) != 0;
}

static void
good_logs_pass(void **state)
{
	int g;

	(void)state;
	for (g = 0; g < GATE_COUNT; g++)
		if (has_good_log(g))
			gives_text((enum gate_id)g, gates[g].family ? "q8_0" : NULL,
				good_log((enum gate_id)g), REASON_NONE);
}

/* A log that ends anywhere before its end is never a pass: a full disk, a power cut. */
static void
log_cut_at_any_byte_is_no_pass(void **state)
{
	struct judgement j;
	size_t n, step, len;
	char *log;
	int g;

	(void)state;
	for (g = 0; g < GATE_COUNT; g++) {
		if (!has_good_log(g))
			continue;
		log = good_log((enum gate_id)g);
		len = strlen(log);
		step = len > 3000 ? 97 : 1;
		for (n = 0; n < len; n += step) {
			j = judged_bytes((enum gate_id)g, gates[g].family ? "q8_0" : NULL, log, n);
			/* whole sections may be lost only where what is left proves the gate */
			if (j.outcome == OUTCOME_PASS)
				assert_true(n > 0 && log[n - 1] == '\n' && (g == GATE_TOOLCHAIN));
		}
		free(log);
	}
}

static void
own_reason_of_a_log_is_never_a_pass(void **state)
{
	static const char *const tails[] = {"", DONE};
	static const struct {
		const char *said;
		enum reason wanted;
	} rows[] = {
		{"tool_missing", REASON_TOOL_MISSING}, {"disk_full", REASON_DISK_FULL},
		{"nonsense", REASON_PROBE_UNREADABLE}, {"none", REASON_PROBE_UNREADABLE},
		{"", REASON_PROBE_UNREADABLE}, {"PASS", REASON_PROBE_UNREADABLE},
		{"a reason that is so long that it fits into no buffer which somebody set aside for it",
			REASON_PROBE_UNREADABLE},
	};
	char *log;
	size_t i, k;
	int g;

	(void)state;
	for (g = 0; g < GATE_COUNT; g++)
		for (i = 0; judge_of((enum gate_id)g) != NULL && i < str_count(rows); i++)
			for (k = 0; k < str_count(tails); k++) {
				log = good_log((enum gate_id)g);
				gives_text((enum gate_id)g, gates[g].family ? "q8_0" : NULL,
					evidence_text("%s" FACTS "reason=%s\ndetail=d\n" END "%s", log,
						rows[i].said, tails[k]), rows[i].wanted);
				free(log);
			}
}

static void
words_of_a_log_are_cleaned(void **state)
{
	static const char log[] = FACTS "reason=tool_missing\ndetail=\x1b[2Jno \xff tool\x07\n"
		"hint=\x1b]0;own\x07 run it\n" END;
	struct judgement j = judged_bytes(GATE_TOOLCHAIN, NULL, log, sizeof log - 1);

	(void)state;
	assert_int_equal(j.reason, REASON_TOOL_MISSING);
	assert_null(strpbrk(j.detail, "\x1b\x07"));
	assert_null(strpbrk(j.hint, "\x1b\x07"));
	assert_non_null(strstr(j.hint, "run it"));
}

static void
text_that_is_no_log_is_no_pass(void **state)
{
	static const char *const texts[] = {"", "\n", "os=Linux\narch=x86_64\n", "done=true\n",
		"{\"checks\":[]}\n", "#verify\n", "all 12 passed\n", "\xff\xfe"};
	struct judgement j;
	size_t i;
	int g;

	(void)state;
	for (g = 0; g < GATE_COUNT; g++)
		for (i = 0; judge_of((enum gate_id)g) != NULL && i < str_count(texts); i++) {
			j = judged_bytes((enum gate_id)g, gates[g].family ? "q8_0" : NULL, texts[i],
				strlen(texts[i]));
			assert_int_not_equal(j.outcome, OUTCOME_PASS);
		}
}

static void
text_between_sections_is_no_pass(void **state)
{
	char *log;
	int g;

	(void)state;
	for (g = 0; g < GATE_COUNT; g++) {
		if (judge_of((enum gate_id)g) == NULL)
			continue;
		log = good_log((enum gate_id)g);
		gives_text((enum gate_id)g, gates[g].family ? "q8_0" : NULL,
			evidence_text("%sstray words\n", log), REASON_AGENT_DIED);
		/* what a job before left behind */
		gives_text((enum gate_id)g, gates[g].family ? "q8_0" : NULL,
			evidence_text("%s#verify ffffffffffffffff facts {}\n#verify ffffffffffffffff end {}\n",
				log), REASON_AGENT_DIED);
		free(log);
	}
}

/* ---- host, device ---- */

static void
host_must_have_a_target_of_the_lane(void **state)
{
	struct judgement j;

	(void)state;
	gives(GATE_HOST, NULL, FACTS "os=Linux\narch=aarch64\n" END, REASON_NONE);
	gives(GATE_HOST, NULL, FACTS "os=Linux\narch=riscv64\n" END, REASON_WRONG_HOST);
	gives(GATE_HOST, NULL, FACTS "os=Darwin\narch=x86_64\n" END, REASON_WRONG_HOST);
	gives(GATE_HOST, NULL, FACTS "os=Linux\n" END, REASON_PROBE_UNREADABLE);
	gives(GATE_HOST, NULL, FACTS "arch=x86_64\n" END, REASON_PROBE_UNREADABLE);
	j = judged_bytes(GATE_HOST, NULL, FACTS "os=Linux\narch=x86_64\nemulated=qemu-user\n" END,
		strlen(FACTS "os=Linux\narch=x86_64\nemulated=qemu-user\n" END));
	assert_non_null(strstr(j.detail, "emulated"));
}

static void
device_must_name_model_and_features(void **state)
{
	(void)state;
	gives(GATE_DEVICE, NULL, FACTS "cpus=4\n" END, REASON_PROBE_UNREADABLE);
	gives(GATE_DEVICE, NULL, MARK "file {\"file\":\"/proc/cpuinfo\"}\n" END,
		REASON_PROBE_UNREADABLE);
	gives(GATE_DEVICE, NULL, MARK "file {}\nmodel name\t: X\n" END, REASON_PROBE_UNREADABLE);
	gives(GATE_DEVICE, NULL, MARK "file {}\nmodel name\t: X\nflags\t: fpu\n" END, REASON_NONE);
	/* a command's output is no file of the kernel */
	gives(GATE_DEVICE, NULL, RUN("\"/bin/echo\"") "model name\t: X\nflags\t: fpu\n"
		ENDED("0", "0"), REASON_PROBE_UNREADABLE);
}

/* ---- toolchain, build ---- */

static void
every_tool_must_end_well_and_print_a_version(void **state)
{
	(void)state;
	gives(GATE_TOOLCHAIN, NULL, RUN("\"/usr/bin/cc\"") "cc 12.2.0\n" ENDED("1", "0"),
		REASON_TOOL_BROKEN);
	gives(GATE_TOOLCHAIN, NULL, RUN("\"/usr/bin/cc\"") "cc 12.2.0\n" ENDED("-1", "11"),
		REASON_TOOL_BROKEN);
	gives(GATE_TOOLCHAIN, NULL, RUN("\"/usr/bin/cc\"") "no version here\n" ENDED("0", "0"),
		REASON_UNKNOWN_TOOL_FORMAT);
	gives(GATE_TOOLCHAIN, NULL, RUN("\"/usr/bin/cc\"") "version 12\n" ENDED("0", "0"),
		REASON_UNKNOWN_TOOL_FORMAT);
	gives(GATE_TOOLCHAIN, NULL, GOOD_TOOLCHAIN RUN("\"/usr/bin/cc\"") "" ENDED("0", "0"),
		REASON_UNKNOWN_TOOL_FORMAT);
	gives(GATE_TOOLCHAIN, NULL, GOOD_TOOLCHAIN RUN("\"/usr/bin/cc\"") "1.2\n" END,
		REASON_TOOL_BROKEN);
	gives(GATE_TOOLCHAIN, NULL, FACTS "a=b\n" END, REASON_PROBE_UNREADABLE);
	gives(GATE_TOOLCHAIN, NULL, RUN("7") "1.2.3\n" ENDED("0", "0"), REASON_NONE);
	gives(GATE_TOOLCHAIN, NULL, MARK "run not json\n1.2.3\n" ENDED("0", "0"), REASON_NONE);
}

static void
gates_that_speak_for_themselves_must_say_done(void **state)
{
	static const enum gate_id ids[] = {GATE_MODEL, GATE_SOURCE, GATE_BUILD, GATE_REPORT};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(ids); i++) {
		gives(ids[i], NULL, FACTS "detail=x\n" END, REASON_AGENT_DIED);
		gives(ids[i], NULL, FACTS "detail=x\ndone=false\n" END, REASON_AGENT_DIED);
		gives(ids[i], NULL, FACTS "detail=x\ndone=\n" END, REASON_AGENT_DIED);
		gives(ids[i], NULL, RUN("\"/bin/echo\"") "done=true\n" ENDED("0", "0"),
			REASON_AGENT_DIED);
	}
}

static void
build_without_a_ninja_that_ended_well_is_none(void **state)
{
	(void)state;
	gives(GATE_BUILD, NULL, DONE, REASON_BUILD_FAILED);
	gives(GATE_BUILD, NULL, RUN("\"/usr/bin/ninja\"") "x\n" ENDED("1", "0") DONE,
		REASON_BUILD_FAILED);
	gives(GATE_BUILD, NULL, RUN("\"/usr/bin/ninja\"") "x\n" ENDED("-1", "9") DONE,
		REASON_BUILD_FAILED);
	gives(GATE_BUILD, NULL, RUN("\"/usr/bin/make\"") "x\n" ENDED("0", "0") DONE,
		REASON_BUILD_FAILED);
	gives(GATE_BUILD, NULL, RUN("\"/usr/bin/ninja\"") "x\n" ENDED("4294967296", "0") DONE,
		REASON_BUILD_FAILED);
	gives(GATE_BUILD, NULL, FACTS "reused=true\ndetail=x\ndone=true\n" END, REASON_NONE);
	gives(GATE_BUILD, NULL, FACTS "reused=yes\ndetail=x\ndone=true\n" END, REASON_BUILD_FAILED);
}

/* ---- fixtures ---- */

static void
doctored(const char *from, const char *to, enum reason wanted)
{
	gives_text(GATE_FIXTURES, NULL, evidence_replace(evidence_fixtures(suite), from, to), wanted);
}

static void
one_doctored(const char *from, const char *to, enum reason wanted)
{
	char *log = evidence_fixtures(suite), *at = strstr(log, from), *out;

	assert_non_null(at);
	*at = '\0';
	out = evidence_text("%s%s%s", log, to, at + strlen(from));
	free(log);
	gives_text(GATE_FIXTURES, NULL, out, wanted);
}

#define DIFF "\"maxAbsDiff\":0.00099"

static void
largest_difference_must_be_a_number_below_the_tolerance(void **state)
{
	static const struct {
		const char *value;
		enum reason wanted;
	} rows[] = {
		{"0", REASON_NONE}, {"0.0009999999", REASON_NONE},
		{"0.001", REASON_FIXTURE_MISMATCH}, {"1e-3", REASON_FIXTURE_MISMATCH},
		{"0.0010000000000000002", REASON_FIXTURE_MISMATCH}, {"1e300", REASON_FIXTURE_MISMATCH},
		{"-0.0001", REASON_FIXTURE_MISMATCH}, {"-1e300", REASON_FIXTURE_MISMATCH},
		{"null", REASON_FIXTURE_MISMATCH}, {"\"0.0001\"", REASON_FIXTURE_MISMATCH},
		{"\"NaN\"", REASON_FIXTURE_MISMATCH}, {"true", REASON_FIXTURE_MISMATCH},
		{"[0]", REASON_FIXTURE_MISMATCH},
		{"NaN", REASON_HARNESS_CRASHED}, {"1e999", REASON_HARNESS_CRASHED},
		{"-Infinity", REASON_HARNESS_CRASHED}, {"", REASON_HARNESS_CRASHED},
	};
	char to[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(to, sizeof to, "\"maxAbsDiff\":%s", rows[i].value);
		one_doctored(DIFF, to, rows[i].wanted);
	}
	one_doctored(DIFF, "\"maxabsdiff\":0", REASON_FIXTURE_MISMATCH);
	one_doctored(DIFF, DIFF "," DIFF, REASON_HARNESS_CRASHED);
}

static void
zero_elements_are_no_case(void **state)
{
	static const char *const values[] = {"0", "-1", "null", "\"8\"", "0.5", "1e300"};
	char to[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(values); i++) {
		snprintf(to, sizeof to, "\"elements\":%s", values[i]);
		one_doctored("\"elements\":8", to, REASON_NO_CASE_EXECUTED);
	}
}

static void
not_finite_outputs_guards_and_the_harness_word_count(void **state)
{
	(void)state;
	one_doctored("\"nonFinite\":0", "\"nonFinite\":1", REASON_FIXTURE_MISMATCH);
	one_doctored("\"nonFinite\":0", "\"nonFinite\":null", REASON_FIXTURE_MISMATCH);
	one_doctored("\"nonFinite\":0,", "", REASON_FIXTURE_MISMATCH);
	one_doctored("\"guardIntact\":true", "\"guardIntact\":false", REASON_FIXTURE_MISMATCH);
	one_doctored("\"guardIntact\":true", "\"guardIntact\":1", REASON_FIXTURE_MISMATCH);
	one_doctored("\"outcome\":\"pass\"", "\"outcome\":\"fail\"", REASON_FIXTURE_MISMATCH);
	one_doctored("\"outcome\":\"pass\"", "\"outcome\":\"skipped\"", REASON_FIXTURE_MISMATCH);
	one_doctored("\"outcome\":\"pass\"", "\"outcome\":\"blocked\"", REASON_FIXTURE_INVALID);
}

/* The same of a lane that the tests have alone: what is said of its device is read. */
static void
gives_on_gpu(const char *device, enum reason wanted)
{
	struct lane gpu = *lane_find("cpu");
	struct judge_ask ask = {.lane = &gpu, .suite = suite};
	struct judgement j;
	char *log = evidence_replace(evidence_fixtures(suite), "\"backend\":\"cpu\"",
		"\"backend\":\"cuda\"");

	gpu.name = "cuda", gpu.api = API_CUDA;
	gpu.harness = "cuda-verify", gpu.backend = "cuda";
	log = evidence_replace(log, "\"software\":false,\"emulated\":false", device);
	memset(&j, 0, sizeof j);
	judge_of(GATE_FIXTURES)(log, strlen(log), &ask, &j);
	if (j.reason != wanted)
		fail_msg("%s: wanted %s, got %s: %s", device, reason_name(wanted),
			reason_name(j.reason), j.detail);
	free(log);
}

static void
software_and_emulated_devices_are_no_gpu(void **state)
{
	(void)state;
	gives_on_gpu("\"software\":false,\"emulated\":false", REASON_NONE);
	gives_on_gpu("\"software\":true,\"emulated\":false", REASON_SOFTWARE_DEVICE);
	gives_on_gpu("\"software\":false,\"emulated\":true", REASON_SOFTWARE_DEVICE);
	gives_on_gpu("\"software\":0,\"emulated\":false", REASON_SOFTWARE_DEVICE);
	gives_on_gpu("\"software\":false", REASON_SOFTWARE_DEVICE);
	gives_on_gpu("\"emulated\":false", REASON_SOFTWARE_DEVICE);
	/* a processor is no software device, and an emulated one is another matter */
	doctored("\"software\":false", "\"software\":true", REASON_SOFTWARE_DEVICE);
	doctored("\"emulated\":false", "\"emulated\":true", REASON_NONE);
}

static void
what_ran_elsewhere_or_without_a_digest_is_no_case(void **state)
{
	static const char *const backends[] = {"\"cuda\"", "\"cpux\"", "\"emulated\"", "\"\"",
		"null", "7"};
	char to[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(backends); i++) {
		snprintf(to, sizeof to, "\"backend\":%s", backends[i]);
		doctored("\"backend\":\"cpu\"", to, REASON_NO_CASE_EXECUTED);
	}
	doctored("\"backend\":\"cpu\"", "\"backend\":\"cpu-ref\"", REASON_NONE);
	doctored("\"sha256\":\"" CODE_SHA "\",", "", REASON_NO_CASE_EXECUTED);
	doctored(CODE_SHA, "bbbb", REASON_NO_CASE_EXECUTED);
	doctored("\"code\":[", "\"code\":[{\"name\":\"x\"},", REASON_NO_CASE_EXECUTED);
	doctored("\"code\":[", "\"code\":[],\"other\":[", REASON_NO_CASE_EXECUTED);
}

static void
fixture_that_was_not_run_is_no_pass(void **state)
{
	(void)state;
	one_doctored("\"name\":\"turbo3\"", "\"name\":\"turbo5\"", REASON_NO_CASE_EXECUTED);
	one_doctored("\"name\":\"turbo3\"", "\"name\":\"Turbo3\"", REASON_NO_CASE_EXECUTED);
	doctored("\"checks\"", "\"tests\"", REASON_NO_CASE_EXECUTED);
	gives(GATE_FIXTURES, NULL, RUN("\"x\",\"cpu-verify\"") "{\"checks\":[]}\n" ENDED("0", "0"),
		REASON_NO_CASE_EXECUTED);
	gives(GATE_FIXTURES, NULL, RUN("\"x\",\"cpu-verify\"") "{\"checks\":{}}\n" ENDED("0", "0"),
		REASON_NO_CASE_EXECUTED);
	gives(GATE_FIXTURES, NULL, RUN("\"x\",\"cpu-verify\"") "{}\n" ENDED("0", "0"), REASON_NO_CASE_EXECUTED);
	gives(GATE_FIXTURES, NULL, RUN("\"x\",\"cpu-verify\"") "all passed\n" ENDED("0", "0"),
		REASON_HARNESS_CRASHED);
	gives(GATE_FIXTURES, NULL, RUN("\"x\",\"cpu-verify\"") ENDED("0", "0"), REASON_HARNESS_CRASHED);
}

/* The first row passes, the second of that name does not: both were run. */
static void
second_row_of_one_name_counts_too(void **state)
{
	(void)state;
	one_doctored("{\"name\":\"turbo3\",\"elements\":8,",
		"{\"name\":\"turbo4\",\"elements\":8,\"maxAbsDiff\":5,\"nonFinite\":0,"
		"\"guardIntact\":true,\"outcome\":\"pass\"},{\"name\":\"turbo3\",\"elements\":8,",
		REASON_FIXTURE_MISMATCH);
	one_doctored("],\n \"controls\":[", ",{\"name\":\"turbo3\",\"elements\":0}],\n \"controls\":[",
		REASON_NO_CASE_EXECUTED);
	one_doctored("{\"name\":\"nan-output\",\"caught\":true}",
		"{\"name\":\"nan-output\",\"caught\":true},{\"name\":\"nan-output\",\"caught\":false}",
		REASON_CONTROL_MISSED);
}

static void
both_controls_must_be_caught(void **state)
{
	(void)state;
	one_doctored("\"flipped-code-bit\",\"caught\":true", "\"flipped-code-bit\",\"caught\":false",
		REASON_CONTROL_MISSED);
	one_doctored("\"nan-output\",\"caught\":true", "\"nan-output\",\"caught\":false",
		REASON_CONTROL_MISSED);
	one_doctored("\"nan-output\",\"caught\":true", "\"nan-output\",\"caught\":\"true\"",
		REASON_CONTROL_MISSED);
	one_doctored("\"nan-output\",\"caught\":true", "\"nan-output\"", REASON_CONTROL_MISSED);
	one_doctored("\"flipped-code-bit\"", "\"another\"", REASON_CONTROL_MISSED);
	doctored("\"controls\"", "\"control\"", REASON_CONTROL_MISSED);
}

/* A harness that prints good numbers and ends badly is not believed. */
static void
end_of_the_harness_counts(void **state)
{
	char *checks = evidence_checks(suite);

	(void)state;
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "%s" ENDED("1", "0"), checks),
		REASON_HARNESS_CRASHED);
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "%s" ENDED("-1", "11"), checks),
		REASON_HARNESS_CRASHED);
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "%s" END, checks),
		REASON_HARNESS_CRASHED);
	gives_text(GATE_FIXTURES, NULL, evidence_text(MARK "file {}\n%s" END, checks),
		REASON_HARNESS_CRASHED);
	/* what a crashed harness says of its numbers is no mismatch of the kernel */
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "{\"checks\":[]}\n"
		ENDED("-1", "11")), REASON_HARNESS_CRASHED);
	/* words before and after the object do no harm */
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "a warning\n%sbye\n" ENDED("0", "0"),
		checks), REASON_NONE);
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "%s{\n" ENDED("0", "0"), checks),
		REASON_NONE);
	gives_text(GATE_FIXTURES, NULL, evidence_text(RUN("\"x\",\"cpu-verify\"") "%s{}\n" ENDED("0", "0"), checks),
		REASON_HARNESS_CRASHED);
	free(checks);
}

static void
fixtures_are_read_out_of_the_log(void **state)
{
	char *log = evidence_fixtures(suite);
	cJSON *o = fixtures_read(log, strlen(log));

	(void)state;
	assert_non_null(o);
	assert_int_equal(cJSON_GetArraySize(json_get(o, "checks")), suite->fixture_count);
	cJSON_Delete(o);
	free(log);
	assert_null(fixtures_read("", 0));
	assert_null(fixtures_read(DONE, strlen(DONE)));
}

/* ---- graph smoke ---- */

static void
smoke(const char *from, const char *to, const char *family, enum reason wanted)
{
	gives_text(GATE_GRAPH_SMOKE, family, evidence_replace(evidence_smoke(suite, "q8_0"), from, to),
		wanted);
}

static void
family_must_be_the_one_that_was_asked(void **state)
{
	(void)state;
	gives_text(GATE_GRAPH_SMOKE, "q8_0", evidence_smoke(suite, "q8_0"), REASON_NONE);
	gives_text(GATE_GRAPH_SMOKE, "q4_0", evidence_smoke(suite, "q8_0"), REASON_KV_TYPE_DIFFERS);
	gives_text(GATE_GRAPH_SMOKE, "baseline", evidence_smoke(suite, "f16"), REASON_NONE);
	gives_text(GATE_GRAPH_SMOKE, "baseline", evidence_smoke(suite, "q8_0"), REASON_KV_TYPE_DIFFERS);
	gives_text(GATE_GRAPH_SMOKE, "", evidence_smoke(suite, "q8_0"), REASON_KV_TYPE_DIFFERS);
	gives_text(GATE_GRAPH_SMOKE, NULL, evidence_smoke(suite, "q8_0"), REASON_KV_TYPE_DIFFERS);
	/* asked q8_0, allocated another */
	smoke("K (q8_0)", "K (f16)", "q8_0", REASON_KV_TYPE_DIFFERS);
	/* the last of two options is the one that counts */
	smoke("\"--seed\"", "\"--cache-type-k\",\"f16\",\"--seed\"", "q8_0", REASON_KV_TYPE_DIFFERS);
}

static void
fewer_tokens_than_the_suite_asks_are_no_pass(void **state)
{
	(void)state;
	smoke("\"-n\",\"4\"", "\"-n\",\"1\"", "q8_0", REASON_TOO_FEW_TOKENS);
	smoke("\"-n\",\"4\"", "\"-n\",\"0\"", "q8_0", REASON_TOO_FEW_TOKENS);
	smoke("\"-n\",\"4\"", "\"-n\",\"x\"", "q8_0", REASON_TOO_FEW_TOKENS);
	smoke("\"-n\",\"4\"", "\"-n\",\"-1\"", "q8_0", REASON_TOO_FEW_TOKENS);
	smoke("\"-n\",\"4\"", "\"-n\",\"5\"", "q8_0", REASON_TOO_FEW_TOKENS);
	smoke("\"-n\",\"4\",", "", "q8_0", REASON_TOO_FEW_TOKENS);
}

static void
exit_signal_and_time_limit_of_the_engine_count(void **state)
{
	(void)state;
	smoke("\"exit\":0", "\"exit\":1", "q8_0", REASON_ENGINE_EXIT);
	smoke("\"exit\":0,\"signal\":0", "\"exit\":-1,\"signal\":11", "q8_0", REASON_ENGINE_CRASH);
	smoke("\"timedOut\":false", "\"timedOut\":true", "q8_0", REASON_TIMEOUT);
	smoke("\"cancelled\":false", "\"cancelled\":true", "q8_0", REASON_CANCELLED);
	smoke("\"exit\":0", "\"exit\":4294967296", "q8_0", REASON_INTERNAL);
}

static void
log_without_an_engine_run_is_no_pass(void **state)
{
	(void)state;
	gives(GATE_GRAPH_SMOKE, "q8_0", DONE, REASON_AGENT_DIED);
	smoke("--cache-type-k", "--cache-type-q", "q8_0", REASON_AGENT_DIED);
	smoke("\"--seed\"", "\"--seed", "q8_0", REASON_KV_TYPE_DIFFERS); /* head is no JSON */
}

/* The run that counts is the last one; nothing of an earlier one helps it. */
static void
last_of_two_runs_counts(void **state)
{
	char *good = evidence_smoke(suite, "q8_0");
	char *bad = evidence_replace(evidence_smoke(suite, "q8_0"), "\"exit\":0", "\"exit\":1");

	(void)state;
	gives_text(GATE_GRAPH_SMOKE, "q8_0", evidence_text("%s%s", bad, good), REASON_NONE);
	gives_text(GATE_GRAPH_SMOKE, "q8_0", evidence_text("%s%s", good, bad), REASON_ENGINE_EXIT);
	gives_text(GATE_GRAPH_SMOKE, "q8_0", evidence_text("%s" MARK "run {\"--cache-type-k\"}\n"
		ENDED("0", "0"), good), REASON_KV_TYPE_DIFFERS);
	free(good);
	free(bad);
}

/* Real logs, run by the lane they are no evidence for. */
static void
real_logs_of_other_machines_do_not_pass_the_cpu_lane(void **state)
{
	static const struct {
		const char *file, *cache, *family;
	} rows[] = {
		{"h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log", "q8_0", "q8_0"},
		{"h200-vulkan-stock-v0.4.0-q8_0.log", "q8_0", "q8_0"},
		{"cpu-stock-v0.4.0-truncated-model.log", "f16", "f16"},
		{"cpu-stock-v0.4.0-not-gguf.log", "f16", "f16"},
		{"cpu-stock-v0.4.0-missing-model.log", "f16", "f16"},
		{"cpu-stock-v0.4.0-unknown-option.log", "f16", "f16"},
		{"fork-96dd1a8-llama-completion-help.txt", "q8_0", "q8_0"},
		{"cli-prompt-too-long.stdout.txt", "q8_0", "q8_0"},
		{"cli-st-default.stderr.txt", "f16", "f16"},
	};
	struct judgement j;
	struct err e = {0};
	char path[128], *text, *log;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(path, sizeof path, "fixtures/logs/%s", rows[i].file);
		if (plat_read_file(path, 4u << 20, &text, NULL, &e))
			fail_msg("%s", e.msg);
		log = evidence_text(RUN("\"/e/llama-completion\",\"-n\",\"4\",\"--cache-type-k\",\"%s\"")
			"%s\n" ENDED("0", "0"), rows[i].cache, text);
		j = judged_bytes(GATE_GRAPH_SMOKE, rows[i].family, log, strlen(log));
		if (j.outcome == OUTCOME_PASS)
			fail_msg("%s passes: %s", rows[i].file, j.detail);
		free(log);
		free(text);
	}
}

static void
smoke_facts_are_those_of_the_head(void **state)
{
	struct smoke_facts *f = calloc(1, sizeof *f);
	char *log = evidence_smoke(suite, "q8_0");

	(void)state;
	assert_non_null(f);
	assert_true(smoke_facts_read(log, strlen(log), f));
	assert_string_equal(f->driver, "llama-completion");
	assert_string_equal(f->cache_type, "q8_0");
	assert_string_equal(f->model, "/m/tiny.gguf");
	assert_int_equal(f->tokens_asked, 4);
	assert_int_equal(f->exit, 0);
	assert_int_equal(f->elog.tokens, 4);
	/* without its end the run says nothing of how it ended */
	assert_false(smoke_facts_read(log, strlen(log) - 2, f));
	free(log);
	free(f);
}

/* ---- distance ---- */

static void
distance_is_levenshtein_over_the_longer(void **state)
{
	char big[10000];

	(void)state;
	assert_true(output_distance("", 0, "", 0) == 0);
	assert_true(output_distance("abc", 3, "abc", 3) == 0);
	assert_true(output_distance("", 0, "abc", 3) == 1);
	assert_true(output_distance("abc", 3, "", 0) == 1);
	assert_true(output_distance("kitten", 6, "sitting", 7) == 3.0 / 7);
	assert_true(output_distance("flaw", 4, "lawn", 4) == 2.0 / 4);
	memset(big, 'x', sizeof big);
	assert_true(output_distance(big, sizeof big, big, sizeof big) == 0);
	assert_true(output_distance(big, sizeof big, "y", 1) == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_logs_pass),
		cmocka_unit_test(log_cut_at_any_byte_is_no_pass),
		cmocka_unit_test(own_reason_of_a_log_is_never_a_pass),
		cmocka_unit_test(words_of_a_log_are_cleaned),
		cmocka_unit_test(text_that_is_no_log_is_no_pass),
		cmocka_unit_test(text_between_sections_is_no_pass),
		cmocka_unit_test(host_must_have_a_target_of_the_lane),
		cmocka_unit_test(device_must_name_model_and_features),
		cmocka_unit_test(every_tool_must_end_well_and_print_a_version),
		cmocka_unit_test(gates_that_speak_for_themselves_must_say_done),
		cmocka_unit_test(build_without_a_ninja_that_ended_well_is_none),
		cmocka_unit_test(largest_difference_must_be_a_number_below_the_tolerance),
		cmocka_unit_test(zero_elements_are_no_case),
		cmocka_unit_test(not_finite_outputs_guards_and_the_harness_word_count),
		cmocka_unit_test(fixture_that_was_not_run_is_no_pass),
		cmocka_unit_test(second_row_of_one_name_counts_too),
		cmocka_unit_test(both_controls_must_be_caught),
		cmocka_unit_test(end_of_the_harness_counts),
		cmocka_unit_test(software_and_emulated_devices_are_no_gpu),
		cmocka_unit_test(what_ran_elsewhere_or_without_a_digest_is_no_case),
		cmocka_unit_test(fixtures_are_read_out_of_the_log),
		cmocka_unit_test(family_must_be_the_one_that_was_asked),
		cmocka_unit_test(fewer_tokens_than_the_suite_asks_are_no_pass),
		cmocka_unit_test(exit_signal_and_time_limit_of_the_engine_count),
		cmocka_unit_test(log_without_an_engine_run_is_no_pass),
		cmocka_unit_test(last_of_two_runs_counts),
		cmocka_unit_test(real_logs_of_other_machines_do_not_pass_the_cpu_lane),
		cmocka_unit_test(smoke_facts_are_those_of_the_head),
		cmocka_unit_test(distance_is_levenshtein_over_the_longer),
	};

	return cmocka_run_group_tests(tests, suite_open, suite_close);
}
