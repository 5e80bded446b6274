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

/* One whole good run, and the verdict over it after a test damaged it. */
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

static void
appraise_signed(struct run *r, bool signed_ok)
{
	struct verdict_logs logs = {evidence_read, &r->v};
	struct err e = {0};
	int i;

	if (verdict_appraise(r->v.report, r->v.suite, signed_ok, &logs, &r->out, &e))
		fail_msg("%s", e.msg);
	/* whatever was damaged: words are clean, and sums agree with each other */
	assert_true(r->out.recordable == (r->out.exit == EXIT_PASS));
	assert_true(!r->out.recordable || (r->out.why_count == 0 && r->out.outcome == OUTCOME_PASS));
	assert_true(r->out.recordable || r->out.why_count > 0);
	for (i = 0; i < r->out.why_count; i++)
		assert_null(strchr(r->out.why[i], 0x1b));
	assert_null(strchr(r->out.disagreement, 0x1b));
	assert_null(strchr(r->out.detail, 0x1b));
}

static bool
has_why(const struct run *r, const char *word)
{
	int i;

	for (i = 0; i < r->out.why_count; i++)
		if (strstr(r->out.why[i], word) != NULL)
			return true;
	return false;
}

/* Outcome, exit status and a word of the reason why it can not be recorded. */
static void
ends(struct run *r, enum outcome outcome, int exit, const char *word)
{
	appraise_signed(r, true);
	if (r->out.outcome != outcome || r->out.exit != exit || r->out.recordable || !has_why(r, word))
		fail_msg("wanted %s, exit %d, \"%s\"; got %s, exit %d: %s, %s", outcome_name(outcome),
			exit, word, outcome_name(r->out.outcome), r->out.exit,
			r->out.why_count ? r->out.why[0] : "recordable", r->out.disagreement);
}

static void
disagrees(struct run *r, const char *word)
{
	if (strstr(r->out.disagreement, word) == NULL)
		fail_msg("no \"%s\" in \"%s\"", word, r->out.disagreement);
}

static const struct verdict_gate *
gate_of(const struct run *r, const char *name)
{
	int i;

	for (i = 0; i < r->out.gate_count; i++)
		if (strcmp(r->out.gates[i].name, name) == 0)
			return &r->out.gates[i];
	fail_msg("no gate %s", name);
	return NULL;
}

/* ---- the good run ---- */

static void
whole_good_run_is_recordable(void **state)
{
	struct run *r = *state;

	appraise_signed(r, true);
	if (!r->out.recordable)
		fail_msg("%s; %s", r->out.why[0], r->out.disagreement);
	assert_int_equal(r->out.outcome, OUTCOME_PASS);
	assert_int_equal(r->out.exit, EXIT_PASS);
	assert_int_equal(r->out.why_count, 0);
	assert_string_equal(r->out.disagreement, "");
	assert_string_equal(r->out.device_class, GOOD_CLASS);
	assert_true(r->out.claimed_recordable);
	assert_int_equal(r->out.gate_count, 15);
	assert_int_equal(r->out.claims[CLAIM_FIXTURE_PARITY], OUTCOME_PASS);
	assert_int_equal(r->out.claims[CLAIM_LEGACY_KV_GRAPH], OUTCOME_PASS);
	assert_int_equal(r->out.claims[CLAIM_GEMMA_RUNTIME], OUTCOME_SKIPPED);
}

static void
unsigned_run_is_never_recordable(void **state)
{
	struct run *r = *state;

	appraise_signed(r, false);
	assert_int_equal(r->out.outcome, OUTCOME_PASS);
	assert_int_equal(r->out.exit, EXIT_UNRECORDED);
	assert_true(has_why(r, "not signed"));
}

/* ---- logs ---- */

static void
changed_byte_of_a_log_is_seen(void **state)
{
	struct run *r = *state;
	char *p = strchr(r->v.log[7], 'K');

	assert_non_null(p);
	*p = 'k';
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_digest_mismatch");
	disagrees(r, r->out.gates[7].name);
	assert_true(r->out.gates[7].disagrees);
}

static void
lost_log_is_incomplete(void **state)
{
	struct run *r = *state;

	free(r->v.log[3]);
	r->v.log[3] = NULL;
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_missing");
	disagrees(r, "model");
}

static void
pass_without_a_log_is_no_pass(void **state)
{
	static const char *const forms[] = {"null", "\"x\"", "{}", "[]", "{\"name\":7,\"sha256\":7}",
		"{\"name\":\"other.log\",\"sha256\":\"" MODEL_SHA "\"}"};
	struct run *r = *state;
	cJSON *g = evidence_row(&r->v, "fixtures"), *item;
	struct err e = {0};
	size_t i;

	for (i = 0; i < str_count(forms); i++) {
		cJSON_DeleteItemFromObjectCaseSensitive(g, "log");
		assert_int_equal(json_parse(forms[i], strlen(forms[i]), 1000, &item, &e), 0);
		assert_true(json_add(g, "log", item));
		ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_missing");
	}
	cJSON_DeleteItemFromObjectCaseSensitive(g, "log");
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_missing");
}

static void
digest_that_is_missing_or_odd_is_no_digest(void **state)
{
	static const char *const forms[] = {NULL, "null", "7", "\"\"", "\"00\""};
	struct run *r = *state;
	cJSON *log = cJSON_GetObjectItemCaseSensitive(evidence_row(&r->v, "host"), "log"), *item;
	struct err e = {0};
	size_t i;

	for (i = 0; i < str_count(forms); i++) {
		cJSON_DeleteItemFromObjectCaseSensitive(log, "sha256");
		if (forms[i] != NULL) {
			assert_int_equal(json_parse(forms[i], strlen(forms[i]), 100, &item, &e), 0);
			assert_true(json_add(log, "sha256", item));
		}
		ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_digest_mismatch");
	}
}

static void
claimed_pass_whose_log_fails_is_a_fail(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "fixtures", evidence_replace(evidence_fixtures(r->v.suite),
		"\"maxAbsDiff\":0.00099", "\"maxAbsDiff\":0.5"));
	ends(r, OUTCOME_FAIL, EXIT_FAIL, "fixture_mismatch");
	disagrees(r, "fixtures: the agent says pass none, its log says fail fixture_mismatch");
	assert_int_equal(r->out.claims[CLAIM_FIXTURE_PARITY], OUTCOME_FAIL);
	assert_int_equal(r->out.claims[CLAIM_LEGACY_KV_GRAPH], OUTCOME_PASS);
	assert_true(str_starts(r->out.detail, "fixtures: "));
}

/* One gate's good log given as that of another. */
static void
log_of_another_family_is_no_evidence(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "graph-smoke/q4_0",
		evidence_copy(evidence_log_of(&r->v, "graph-smoke/q8_0")));
	ends(r, OUTCOME_FAIL, EXIT_FAIL, "kv_type_differs");
	assert_int_equal(gate_of(r, "graph-smoke/q8_0")->j.outcome, OUTCOME_PASS);
}

/* Yesterday's good log under today's nonce. */
static void
log_of_another_job_is_no_evidence(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "graph-smoke/q8_0", evidence_replace(
		evidence_copy(evidence_log_of(&r->v, "graph-smoke/q8_0")), BOUNDARY, "fedcba9876543210"));
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_of_another_job");
	disagrees(r, "graph-smoke/q8_0");
}

static void
nonce_that_is_too_short_fits_no_log(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "nonce", "\"0123\"");
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "log_of_another_job");
}

static void
log_cut_in_a_section_is_incomplete(void **state)
{
	struct run *r = *state;
	char *log = evidence_smoke(r->v.suite, "q8_0");

	log[strlen(log) - 40] = '\0';
	evidence_log(&r->v, "graph-smoke/q8_0", log);
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "agent_died");
}

static void
empty_log_is_incomplete(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "host", evidence_copy(""));
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "agent_died");
}

/* ---- what makes a good run unrecordable ---- */

static void
override_is_not_recordable_whatever_the_flag_says(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "overrides",
		"[{\"name\":\"tokens\",\"value\":\"8\",\"from\":\"ELIZA_MTP_SMOKE_TOKENS\"}]");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "override tokens from ELIZA_MTP_SMOKE_TOKENS");
	disagrees(r, "recordable");
	assert_true(r->out.claimed_recordable);
	evidence_set(&r->v, "passRecordable", "false");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "override tokens");
	assert_string_equal(r->out.disagreement, "");
	evidence_set(&r->v, "overrides", "[7]");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "override ?");
	evidence_set(&r->v, "overrides", "[{\"name\":\"\\u001b[2J\",\"from\":\"\\u009b31m\"}]");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "override");
}

/* The log shows it, the report does not say it. */
static void
override_that_the_report_hides_is_seen_in_the_log(void **state)
{
	static const struct {
		const char *from, *to, *word;
	} rows[] = {
		{"\"-ngl\",\"99\"", "\"-ngl\",\"0\"", "-ngl"},
		{"\"--seed\",\"42\"", "\"--seed\",\"42\",\"-ngl\",\"0\"", "-ngl"},
		{"graph dispatch smoke.", "graph dispatch smoke!", "-p"},
		{"\"--seed\",\"42\"", "\"--seed\",\"7\"", "--seed"},
		{"/m/tiny.gguf", "/m/other.gguf", "-m"},
		{"/e/llama-completion", "/e/llama-cli", "driver"},
	};
	struct run *r = *state;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		evidence_log(&r->v, "graph-smoke/q8_0",
			evidence_replace(evidence_smoke(r->v.suite, "q8_0"), rows[i].from, rows[i].to));
		ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
		disagrees(r, rows[i].word);
	}
}

static void
dirty_source_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "source.dirty", "true");
	evidence_log(&r->v, "source", evidence_replace(evidence_copy(GOOD_SOURCE), "dirty=false",
		"dirty=true"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "the source tree is dirty");
	evidence_set(&r->v, "source.dirty", "\"no\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "the source tree is dirty");
	evidence_set(&r->v, "source.dirty", NULL);
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "the source tree is dirty");
}

static void
dirty_source_that_the_report_hides_is_seen_in_the_log(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "source", evidence_replace(evidence_copy(GOOD_SOURCE), "dirty=false",
		"dirty=true"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "source.dirty");
}

static void
source_that_the_suite_does_not_count_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "source.tree", "\"0000000000000000000000000000000000000000\"");
	evidence_log(&r->v, "source", evidence_replace(evidence_copy(GOOD_SOURCE), STOCK_TREE,
		"0000000000000000000000000000000000000000"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "does not count the source");
	evidence_set(&r->v, "source", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "no source");
}

static void
source_named_otherwise_than_in_its_log_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "source", evidence_replace(evidence_copy(GOOD_SOURCE), STOCK_TREE,
		"0000000000000000000000000000000000000000"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "source.tree");
}

static void
model_named_otherwise_than_in_its_log_is_not_recordable(void **state)
{
	static const struct {
		const char *from, *to, *word;
	} rows[] = {
		{"sha256=a", "sha256=b", "model.sha256"}, {"headSizeK=128", "headSizeK=64", "model.headSize"},
		{"architecture=llama", "architecture=gemma4", "model.architecture"},
		{"synthetic=true", "synthetic=false", "model.synthetic"},
		{"synthetic=true\n", "", "model.synthetic"}, {"path=/m/tiny", "path=/m/other", "model.path"},
	};
	struct run *r = *state;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		evidence_log(&r->v, "model",
			evidence_replace(evidence_copy(GOOD_MODEL), rows[i].from, rows[i].to));
		ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
		disagrees(r, rows[i].word);
	}
}

static void
what_ran_is_named_as_in_the_log_or_not_recordable(void **state)
{
	static const struct {
		const char *from, *to, *word;
	} rows[] = {
		{CODE_SHA, MODEL_SHA, "kernels.code"}, {"avx512 by gcc", "avx2 by gcc", "kernels.code"},
		{"x86-64 avx512", "x86-64 avx2", "kernels.device"},
		{"\"backend\":\"cpu\"", "\"backend\":\"cpu-ref\"", "kernels.backend"},
		{"\"maxAbsDiff\":0.00099", "\"maxAbsDiff\":0.00098", "fixtures"},
		{"\"caught\":true}]", "\"caught\":true,\"detail\":\"\"}]", "controls"},
	};
	struct run *r = *state;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		evidence_log(&r->v, "fixtures", evidence_replace(evidence_fixtures(r->v.suite),
			rows[i].from, rows[i].to));
		ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
		disagrees(r, rows[i].word);
		evidence_echo(&r->v, evidence_log_of(&r->v, "fixtures"));
		appraise_signed(r, true);
		assert_string_equal(r->out.disagreement, "");
		evidence_log(&r->v, "fixtures", evidence_fixtures(r->v.suite));
		evidence_echo(&r->v, evidence_log_of(&r->v, "fixtures"));
	}
}

static void
what_ran_can_not_be_left_out(void **state)
{
	static const char *const members[] = {"kernels", "kernels.code", "kernels.device",
		"kernels.backend"};
	struct run *r = *state;
	size_t i;

	for (i = str_count(members); i-- > 0;) {
		evidence_set(&r->v, members[i], NULL);
		ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
		disagrees(r, "the agent says nothing");
		evidence_echo(&r->v, evidence_log_of(&r->v, "fixtures"));
	}
	evidence_set(&r->v, "kernels", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	evidence_set(&r->v, "kernels", "[]");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
}

static void
fixtures_on_an_emulated_processor_are_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "fixtures", evidence_replace(evidence_fixtures(r->v.suite),
		"\"emulated\":false", "\"emulated\":true"));
	evidence_echo(&r->v, evidence_log_of(&r->v, "fixtures"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "emulated: the fixtures ran");
}

static void
emulated_host_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "host.emulated", "\"qemu-user\"");
	evidence_log(&r->v, "host", evidence_replace(evidence_copy(GOOD_HOST), "emulated=",
		"emulated=qemu-user"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "emulated: qemu-user");
	evidence_set(&r->v, "host.emulated", "true");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "does not say whether it is emulated");
	evidence_set(&r->v, "host.emulated", NULL);
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "does not say whether it is emulated");
}

static void
emulation_that_the_report_hides_is_seen_in_the_log(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "host", evidence_replace(evidence_copy(GOOD_HOST), "emulated=",
		"emulated=qemu-user"));
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "host.emulated");
}

static void
class_that_differs_from_the_log_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "device.class", "\"linux-x64-cpu/epyc-9654/x86-64-v4\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "device class");
	assert_string_equal(r->out.device_class, GOOD_CLASS);
	evidence_set(&r->v, "device.class", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
}

static void
target_of_another_machine_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "target", "\"linux-aarch64-cpu\"");
	evidence_set(&r->v, "device.class", "\"linux-aarch64-cpu/epyc-9654/x86-64-v1\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "target");
	evidence_set(&r->v, "target", "\"linux-x64-cuda\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	evidence_set(&r->v, "target", "\"linux-x64-abacus\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "class is not known");
	evidence_set(&r->v, "target", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "class is not known");
}

static void
prebuilt_engine_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "build.prebuilt", "true");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "prebuilt");
	evidence_set(&r->v, "build.prebuilt", NULL);
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "prebuilt");
	evidence_set(&r->v, "build", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "no build");
}

static void
suite_of_another_version_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "suite.digest", "\"" MODEL_SHA "\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "suite");
}

static void
missing_model_is_not_recordable(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "model", "null");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "no model");
}

/* ---- gates ---- */

static void
missing_gate_is_not_recordable(void **state)
{
	static const char *const names[] = {"host", "toolchain", "model", "source", "build", "fixtures",
		"report"};
	struct run *r = *state;
	size_t i;
	char word[64];

	for (i = 0; i < str_count(names); i++) {
		struct run one = {.v = {0}};

		evidence_make(&one.v, "llama.cpp");
		evidence_drop(&one.v, names[i]);
		snprintf(word, sizeof word, "%s did not run", names[i]);
		ends(&one, OUTCOME_PASS, EXIT_UNRECORDED, word);
		disagrees(&one, "recordable");
		evidence_free(&one.v);
	}
	evidence_drop(&r->v, "device");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "device did not run");
	assert_true(has_why(r, "class is not known"));
}

/* A claim speaks of all its gates: what did not run was not shown. */
static void
missing_family_is_not_recordable_and_no_claim(void **state)
{
	struct run *r = *state;

	evidence_drop(&r->v, "graph-smoke/iq4_nl");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "graph-smoke/iq4_nl did not run");
	assert_int_equal(r->out.claims[CLAIM_LEGACY_KV_GRAPH], OUTCOME_SKIPPED);
	assert_int_equal(r->out.claims[CLAIM_FIXTURE_PARITY], OUTCOME_PASS);
}

static void
run_without_gates_is_incomplete(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "gates", "[]");
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "host did not run");
	assert_int_equal(r->out.claims[CLAIM_FIXTURE_PARITY], OUTCOME_SKIPPED);
}

/* Its own table has no gate for it, so nothing can have shown it. */
static void
claim_of_a_gate_that_nobody_ran_is_not_made(void **state)
{
	struct run *r = *state;

	r->v.suite->claims |= 1u << CLAIM_GEMMA_RUNTIME;
	appraise_signed(r, true);
	assert_int_equal(r->out.claims[CLAIM_GEMMA_RUNTIME], OUTCOME_SKIPPED);
}

static void
pass_that_its_log_does_not_show_is_not_taken(void **state)
{
	struct run *r = *state;

	evidence_gate(&r->v, "mtp", evidence_copy(DONE));
	r->v.suite->claims |= 1u << CLAIM_GEMMA_RUNTIME;
	r->v.suite->required |= GATE_BIT(GATE_MTP);
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "mtp is incomplete: agent_died");
	disagrees(r, "mtp");
	assert_int_equal(r->out.claims[CLAIM_GEMMA_RUNTIME], OUTCOME_INCOMPLETE);
}

static void
no_log(struct run *r, const char *gate)
{
	cJSON_ReplaceItemInObjectCaseSensitive(evidence_row(&r->v, gate), "log", cJSON_CreateNull());
}

static void
gates_that_did_not_run_are_taken_at_their_word(void **state)
{
	struct run *r = *state;

	evidence_claim(&r->v, "graph-smoke/q8_0", "blocked", "depends_on");
	no_log(r, "graph-smoke/q8_0");
	evidence_set(&r->v, "passRecordable", "false");
	evidence_set(&r->v, "outcome", "\"blocked\"");
	evidence_set(&r->v, "status", "\"fail\"");
	ends(r, OUTCOME_BLOCKED, EXIT_BLOCKED, "graph-smoke/q8_0 is blocked: depends_on");
	assert_string_equal(r->out.disagreement, "");
	assert_int_equal(r->out.claims[CLAIM_LEGACY_KV_GRAPH], OUTCOME_BLOCKED);
}

static void
claim_that_contradicts_itself_is_no_answer(void **state)
{
	static const char *const rows[][2] = {{"blocked", "build_failed"}, {"skipped", "timeout"},
		{"fail", NULL}, {"blocked", "none"}, {"incomplete", "not_asked"}, {"incomplete", NULL},
		{"skipped", "build_failed"}};
	struct run *r = *state;
	size_t i;

	no_log(r, "build");
	for (i = 0; i < str_count(rows); i++) {
		evidence_claim(&r->v, "build", rows[i][0], rows[i][1]);
		ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "build is incomplete: internal_error");
	}
}

static void
skipped_gates_are_never_recordable(void **state)
{
	struct run *r = *state;

	evidence_claim(&r->v, "fixtures", "skipped", "not_asked");
	no_log(r, "fixtures");
	ends(r, OUTCOME_SKIPPED, EXIT_UNRECORDED, "fixtures is skipped: not_asked");
}

/* The agent saw why; the log alone would pass. */
static void
blocked_claim_over_a_passing_log_is_a_disagreement(void **state)
{
	struct run *r = *state;

	evidence_claim(&r->v, "fixtures", "blocked", "fixture_invalid");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "fixtures");
}

static void
cut_off_run_is_the_agents_to_say(void **state)
{
	struct run *r = *state;
	char *log = evidence_smoke(r->v.suite, "iq4_nl");

	log[strlen(log) / 2] = '\0';
	evidence_log(&r->v, "graph-smoke/iq4_nl", log);
	evidence_claim(&r->v, "graph-smoke/iq4_nl", "incomplete", "cancelled");
	evidence_set(&r->v, "passRecordable", "false");
	evidence_set(&r->v, "outcome", "\"incomplete\"");
	evidence_set(&r->v, "status", "\"fail\"");
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "graph-smoke/iq4_nl is incomplete: cancelled");
	assert_string_equal(r->out.disagreement, "");
}

/* A fail in the log is not excused by a time limit that the agent claims. */
static void
failing_log_beats_a_claimed_time_limit(void **state)
{
	struct run *r = *state;

	evidence_log(&r->v, "graph-smoke/q8_0", evidence_replace(evidence_smoke(r->v.suite, "q8_0"),
		"K (q8_0)", "K (f16)"));
	evidence_claim(&r->v, "graph-smoke/q8_0", "incomplete", "timeout");
	ends(r, OUTCOME_FAIL, EXIT_FAIL, "kv_type_differs");
}

static void
heaviest_outcome_decides_and_causes_come_before_consequences(void **state)
{
	struct run *r = *state;

	evidence_claim(&r->v, "build", "blocked", "toolchain_crash");
	no_log(r, "build");
	evidence_claim(&r->v, "toolchain", "blocked", "depends_on");
	no_log(r, "toolchain");
	ends(r, OUTCOME_BLOCKED, EXIT_BLOCKED, "build is blocked");
	assert_true(str_starts(r->out.detail, "build: "));
	evidence_claim(&r->v, "report", "incomplete", "timeout");
	no_log(r, "report");
	ends(r, OUTCOME_INCOMPLETE, EXIT_INCOMPLETE, "report is incomplete");
	evidence_claim(&r->v, "graph-smoke/q8_0", "fail", "engine_crash");
	no_log(r, "graph-smoke/q8_0");
	ends(r, OUTCOME_FAIL, EXIT_FAIL, "engine_crash");
}

/* ---- the agent's sums ---- */

static void
recordable_run_that_the_agent_does_not_claim_is_not_recorded(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "passRecordable", "false");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "does not claim");
}

static void
outcome_and_status_that_contradict_the_logs_are_disagreements(void **state)
{
	struct run *r = *state;

	evidence_set(&r->v, "outcome", "\"fail\"");
	evidence_set(&r->v, "status", "\"fail\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "outcome: the agent says fail, its logs say pass");
	evidence_set(&r->v, "outcome", "\"pass\"");
	evidence_set(&r->v, "status", "\"fail\"");
	ends(r, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(r, "status: the agent says fail");
}

/* ---- the eliza suite ---- */

static void
synthetic_model_is_never_recorded_under_eliza(void **state)
{
	struct run one = {.v = {0}};

	(void)state;
	evidence_make(&one.v, "eliza-1");
	ends(&one, OUTCOME_PASS, EXIT_UNRECORDED, "suite eliza-1 does not count this synthetic model");
	assert_true(has_why(&one, "does not count the source"));
	disagrees(&one, "recordable");
	/* the same by a lie about the model alone */
	evidence_set(&one.v, "model.synthetic", "false");
	ends(&one, OUTCOME_PASS, EXIT_UNRECORDED, "disagree");
	disagrees(&one, "model.synthetic");
	evidence_free(&one.v);
}

static void
stock_engine_is_blocked_for_all_five_families(void **state)
{
	struct run one = {.v = {0}};
	char gate[80];
	int i;

	(void)state;
	evidence_make(&one.v, "eliza-1");
	for (i = 0; i < one.v.suite->family_count; i++) {
		snprintf(gate, sizeof gate, "graph-smoke/%s", one.v.suite->families[i].name);
		evidence_log(&one.v, gate, evidence_copy(SAYS("family_not_in_build")));
		evidence_claim(&one.v, gate, "blocked", "family_not_in_build");
	}
	evidence_set(&one.v, "passRecordable", "false");
	evidence_set(&one.v, "outcome", "\"blocked\"");
	evidence_set(&one.v, "status", "\"fail\"");
	ends(&one, OUTCOME_BLOCKED, EXIT_BLOCKED, "graph-smoke/polar is blocked: family_not_in_build");
	assert_string_equal(one.out.disagreement, "");
	assert_int_equal(one.out.claims[CLAIM_FIXTURE_PARITY], OUTCOME_PASS);
	assert_int_equal(one.out.claims[CLAIM_LEGACY_KV_GRAPH], OUTCOME_BLOCKED);
	evidence_free(&one.v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, run_make, run_free)
		RUN_TEST(whole_good_run_is_recordable),
		RUN_TEST(unsigned_run_is_never_recordable),
		RUN_TEST(changed_byte_of_a_log_is_seen),
		RUN_TEST(lost_log_is_incomplete),
		RUN_TEST(pass_without_a_log_is_no_pass),
		RUN_TEST(digest_that_is_missing_or_odd_is_no_digest),
		RUN_TEST(claimed_pass_whose_log_fails_is_a_fail),
		RUN_TEST(log_of_another_family_is_no_evidence),
		RUN_TEST(log_of_another_job_is_no_evidence),
		RUN_TEST(nonce_that_is_too_short_fits_no_log),
		RUN_TEST(log_cut_in_a_section_is_incomplete),
		RUN_TEST(empty_log_is_incomplete),
		RUN_TEST(override_is_not_recordable_whatever_the_flag_says),
		RUN_TEST(override_that_the_report_hides_is_seen_in_the_log),
		RUN_TEST(dirty_source_is_not_recordable),
		RUN_TEST(dirty_source_that_the_report_hides_is_seen_in_the_log),
		RUN_TEST(source_that_the_suite_does_not_count_is_not_recordable),
		RUN_TEST(source_named_otherwise_than_in_its_log_is_not_recordable),
		RUN_TEST(model_named_otherwise_than_in_its_log_is_not_recordable),
		RUN_TEST(what_ran_is_named_as_in_the_log_or_not_recordable),
		RUN_TEST(what_ran_can_not_be_left_out),
		RUN_TEST(fixtures_on_an_emulated_processor_are_not_recordable),
		RUN_TEST(emulated_host_is_not_recordable),
		RUN_TEST(emulation_that_the_report_hides_is_seen_in_the_log),
		RUN_TEST(class_that_differs_from_the_log_is_not_recordable),
		RUN_TEST(target_of_another_machine_is_not_recordable),
		RUN_TEST(prebuilt_engine_is_not_recordable),
		RUN_TEST(suite_of_another_version_is_not_recordable),
		RUN_TEST(missing_model_is_not_recordable),
		RUN_TEST(missing_gate_is_not_recordable),
		RUN_TEST(missing_family_is_not_recordable_and_no_claim),
		RUN_TEST(run_without_gates_is_incomplete),
		RUN_TEST(claim_of_a_gate_that_nobody_ran_is_not_made),
		RUN_TEST(pass_that_its_log_does_not_show_is_not_taken),
		RUN_TEST(gates_that_did_not_run_are_taken_at_their_word),
		RUN_TEST(claim_that_contradicts_itself_is_no_answer),
		RUN_TEST(skipped_gates_are_never_recordable),
		RUN_TEST(blocked_claim_over_a_passing_log_is_a_disagreement),
		RUN_TEST(cut_off_run_is_the_agents_to_say),
		RUN_TEST(failing_log_beats_a_claimed_time_limit),
		RUN_TEST(heaviest_outcome_decides_and_causes_come_before_consequences),
		RUN_TEST(recordable_run_that_the_agent_does_not_claim_is_not_recorded),
		RUN_TEST(outcome_and_status_that_contradict_the_logs_are_disagreements),
		cmocka_unit_test(synthetic_model_is_never_recorded_under_eliza),
		cmocka_unit_test(stock_engine_is_blocked_for_all_five_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
