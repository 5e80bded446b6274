/* Speculative decoding: counters of the right speculator, above zero, or no claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/judge.h"
#include "common/plat.h"
#include "common/spec.h"
#include "common/str.h"

#define B "#verify 0011223344556677 "
#define HEAD "0.00.000.001 I llama_model_loader: - kv   0:                       general.architecture str              = gemma4\n"
#define FLASH "0.00.000.001 I llama_context: flash_attn    = enabled\n"
#define CACHE "0.00.000.001 I llama_kv_cache:      CUDA0 KV buffer size =     8.00 MiB\n" \
	"0.00.000.001 I llama_kv_cache: size =    8.00 MiB (  2048 cells,   2 layers,  1/1 seqs), K (q8_0):    4.00 MiB, V (q8_0):    4.00 MiB\n"
#define ADDED "0.00.000.001 I common_speculative_init: adding speculative implementation 'draft-mtp'\n"
#define COUNTS "7.02.255.331 I statistics draft-mtp: #calls(b,g,a) = 1 84 84, #gen drafts = 84, #acc drafts = 70, " \
	"#gen tokens = 159, #acc tokens = 111, dur(b,g,a) = 0.016, 825.426, 2.174 ms\n"
#define GOOD HEAD FLASH CACHE ADDED COUNTS

static struct judgement
judged_with(const char *text, size_t len, const char *argv, int exit)
{
	static char log[400000];
	struct suite *s = NULL;
	struct judge_ask ask = {.lane = lane_find("cuda")};
	struct judgement j;
	size_t n;

	assert_int_equal(suite_builtin("eliza-1-gemma", &s, NULL), 0);
	ask.suite = s;
	n = (size_t)snprintf(log, sizeof log, B "run {\"argv\":[\"/e/llama-cli\",\"-m\",\"g.gguf\"%s]}\n", argv);
	memcpy(log + n, text, len);
	n += len;
	if (len > 0 && text[len - 1] != '\n')
		log[n++] = '\n';
	n += (size_t)snprintf(log + n, sizeof log - n, B "end {\"exit\":%d,\"signal\":0,\"ms\":1,\"bytes\":%zu,"
		"\"dropped\":0}\n", exit, len);
	judge_of(GATE_MTP)(log, n, &ask, &j);
	suite_free(s);
	return j;
}

static void
gives(const char *text, enum reason wanted)
{
	struct judgement j = judged_with(text, strlen(text), ",\"--spec-type\",\"draft-mtp\"", 0);

	if (j.reason != wanted)
		fail_msg("wanted %s, got %s: %s\n%s", reason_name(wanted), reason_name(j.reason), j.detail, text);
}

static void
drafts_that_were_accepted_are_a_pass_in_each_spelling(void **state)
{
	(void)state;
	gives(GOOD, REASON_NONE);
	gives(HEAD FLASH CACHE ADDED "draft acceptance rate = 0.69811 (  111 accepted /   159 generated)\n", REASON_NONE);
	gives(HEAD FLASH CACHE ADDED "n_drafted   = 100\nn_accept    = 44\n", REASON_NONE);
	gives(HEAD FLASH CACHE ADDED "MTP: drafted 100 accepted 44\n", REASON_NONE);
	gives(HEAD "llama_context: flash_attn = auto\n0.00.000.009 I llama_context: Flash Attention was auto, set to enabled\n"
		CACHE ADDED COUNTS, REASON_NONE);
}

static void
no_draft_or_none_accepted_is_a_fail(void **state)
{
	(void)state;
	gives(HEAD FLASH CACHE ADDED "MTP: drafted 0 accepted 0\n", REASON_NO_DRAFT_ACCEPTED);
	gives(HEAD FLASH CACHE ADDED "n_drafted = 8\nn_accept = 0\n", REASON_NO_DRAFT_ACCEPTED);
	gives(HEAD FLASH CACHE ADDED "MTP: drafted 100 accepted 2\n", REASON_ACCEPTANCE_LOW);
	gives(HEAD FLASH CACHE ADDED "MTP: drafted 10 accepted 20\n", REASON_UNKNOWN_TOOL_FORMAT);
	gives(HEAD FLASH CACHE ADDED, REASON_LOG_TOO_QUIET);
	gives(HEAD FLASH CACHE ADDED "we saw an acceptance of 45 percent\n", REASON_LOG_TOO_QUIET);
}

static void
counters_of_another_speculator_do_not_count(void **state)
{
	static const char dflash[] = HEAD FLASH CACHE ADDED
		"statistics dflash: #calls(b,g,a) = 1 2 1, #gen drafts = 1, #acc drafts = 1, #gen tokens = 9, #acc tokens = 9, dur\n";

	(void)state;
	gives(dflash, REASON_LOG_TOO_QUIET);
	gives(HEAD FLASH CACHE "0.00.000.009 I common_speculative_init: adding speculative implementation 'ngram-simple'\n"
		"draft acceptance rate = 0.5 ( 5 accepted / 10 generated)\n", REASON_SPEC_NOT_USED);
	gives(HEAD FLASH CACHE ADDED "0.00.000.009 I common_speculative_init: adding speculative implementation 'ngram-simple'\n"
		"draft acceptance rate = 0.5 ( 5 accepted / 10 generated)\n", REASON_LOG_TOO_QUIET);
}

static void
the_claim_needs_gemma_flash_attention_and_stock_caches(void **state)
{
	(void)state;
	gives("0.00.000.009 I llama_model_loader: - kv 0: general.architecture str = llama\n" FLASH CACHE ADDED COUNTS,
		REASON_MODEL_NOT_SUITABLE);
	gives(FLASH CACHE ADDED COUNTS, REASON_LOG_TOO_QUIET);
	gives(HEAD CACHE ADDED COUNTS, REASON_FLASH_ATTN_OFF);
	gives(HEAD "llama_context: flash_attn = auto\n" CACHE ADDED COUNTS, REASON_FLASH_ATTN_OFF);
	gives(HEAD FLASH "0.00.000.009 I llama_context: Flash Attention was auto, set to disabled\n" CACHE ADDED COUNTS,
		REASON_FLASH_ATTN_OFF);
	gives(HEAD FLASH "llama_kv_cache: CUDA0 KV buffer size = 8.00 MiB\nllama_kv_cache: size = 8.00 MiB ( 2048 cells, 2 layers, "
		"1/1 seqs), K (tbq3_tcq): 4.00 MiB, V (f16): 4.00 MiB\n" ADDED COUNTS, REASON_KV_NOT_STOCK);
	gives(HEAD FLASH ADDED COUNTS, REASON_LOG_TOO_QUIET);
	gives(HEAD FLASH CACHE "llama_kv_cache: CPU KV buffer size = 8.00 MiB\n" ADDED COUNTS, REASON_KV_NOT_ON_DEVICE);
	gives(HEAD FLASH CACHE COUNTS, REASON_SPEC_NOT_USED);
	gives(HEAD FLASH CACHE "0.00.000.009 W common_speculative_init: no implementations specified for speculative decoding\n" COUNTS,
		REASON_SPEC_NOT_USED);
}

static void
words_of_the_command_line_count(void **state)
{
	(void)state;
	assert_int_equal(judged_with(GOOD, strlen(GOOD), "", 0).reason, REASON_SPEC_NOT_USED);
	assert_int_equal(judged_with(GOOD, strlen(GOOD), ",\"--spec-type\",\"dflash\"", 0).reason, REASON_SPEC_NOT_USED);
	assert_int_equal(judged_with(GOOD, strlen(GOOD), ",\"--spec-type\",\"draft-mtp\"", 1).reason, REASON_ENGINE_EXIT);
	assert_int_equal(judged_with("error: invalid argument: --spec-type\n", 37, ",\"--spec-type\",\"draft-mtp\"", 1).reason,
		REASON_SPEC_NOT_IN_BUILD);
}

static void
no_part_of_a_good_log_passes(void **state)
{
	struct judgement j;
	size_t n;

	(void)state;
	for (n = 0; n + 45 < strlen(GOOD); n++) {
		j = judged_with(GOOD, n, ",\"--spec-type\",\"draft-mtp\"", 0);
		if (j.outcome == OUTCOME_PASS)
			fail_msg("cut at %zu: %s", n, j.detail);
	}
}

static void
published_runs_are_refused(void **state)
{
	static const char root[] = "../shared/upstream-data/packages/inference/verify/hardware-results/";
	static const char *const files[] = {"dflash-drafter-runtime-repaired-2026-05-11.json",
		"dflash-drafter-runtime-2026-05-11.json"};
	char path[4096], *text;
	cJSON *o;
	const cJSON *r;
	size_t i, len;

	(void)state;
	snprintf(path, sizeof path, "../shared/upstream-data/plugins/plugin-local-inference/native/verify/evidence/"
		"platform/darwin-arm64-metal-fused-llm.log");
	if (plat_read_file(path, 1u << 20, &text, &len, NULL)) {
		print_message("skipped: %s is not here\n", path);
		skip();
	}
	assert_int_not_equal(judged_with(text, len, ",\"--spec-type\",\"draft-mtp\"", 0).outcome, OUTCOME_PASS);
	free(text);
	for (i = 0; i < str_count(files); i++) {
		snprintf(path, sizeof path, "%s%s", root, files[i]);
		assert_int_equal(json_load(path, 4u << 20, &o, NULL), 0);
		cJSON_ArrayForEach(r, json_get(o, "runtime"))
			assert_int_not_equal(judged_with(json_str(r, "outputTail"), strlen(json_str(r, "outputTail")),
				",\"--spec-type\",\"dflash\"", 0).outcome, OUTCOME_PASS);
		cJSON_Delete(o);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drafts_that_were_accepted_are_a_pass_in_each_spelling),
		cmocka_unit_test(no_draft_or_none_accepted_is_a_fail),
		cmocka_unit_test(counters_of_another_speculator_do_not_count),
		cmocka_unit_test(the_claim_needs_gemma_flash_attention_and_stock_caches),
		cmocka_unit_test(words_of_the_command_line_count),
		cmocka_unit_test(no_part_of_a_good_log_passes),
		cmocka_unit_test(published_runs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
