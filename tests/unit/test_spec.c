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
#include "tests/unit/spec_help.h"

#define HEAD ARCH DRAFTER
#define COUNTS STATISTICS("draft-mtp", "159", "111")
#define GOOD HEAD FLASH CACHE ADDED COUNTS

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
	assert_int_equal(judged(GOOD, strlen(GOOD), "cuda", "", 0).reason, REASON_SPEC_NOT_USED);
	assert_int_equal(judged(GOOD, strlen(GOOD), "cuda", ",\"--spec-type\",\"dflash\"", 0).reason, REASON_SPEC_NOT_USED);
	assert_int_equal(judged(GOOD, strlen(GOOD), "cuda", MTP_ARGV, 1).reason, REASON_ENGINE_EXIT);
	assert_int_equal(judged("error: invalid argument: --spec-type\n", 37, "cuda", MTP_ARGV, 1).reason,
		REASON_SPEC_NOT_IN_BUILD);
}

static void
no_part_of_a_good_log_passes(void **state)
{
	struct judgement j;
	size_t n;

	(void)state;
	for (n = 0; n + 45 < strlen(GOOD); n++) {
		j = judged(GOOD, n, "cuda", MTP_ARGV, 0);
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
	assert_int_not_equal(judged(text, len, "cuda", MTP_ARGV, 0).outcome, OUTCOME_PASS);
	free(text);
	for (i = 0; i < str_count(files); i++) {
		snprintf(path, sizeof path, "%s%s", root, files[i]);
		assert_int_equal(json_load(path, 4u << 20, &o, NULL), 0);
		cJSON_ArrayForEach(r, json_get(o, "runtime"))
			assert_int_not_equal(judged(json_str(r, "outputTail"), strlen(json_str(r, "outputTail")),
				"cuda", ",\"--spec-type\",\"dflash\"", 0).outcome, OUTCOME_PASS);
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
