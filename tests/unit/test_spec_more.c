/* Speculative decoding: logs of other engines and machines, and texts that only look like a run. */
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

#define PUBLISHED "../shared/upstream-data/plugins/plugin-local-inference/native/verify/evidence/platform/"

static void
terminals_and_windows_do_not_change_a_good_log(void **state)
{
	(void)state;
	gives("\xef\xbb\xbf" "build: 1\r\n" "0.00.000.001 I llama_model_loader: - kv   0: general.architecture str = gemma4\r\n"
		"0.00.000.002 I llama_model_loader: - kv   0: general.architecture str = gemma4-assistant\r\n"
		"0.00.000.003 I llama_context: flash_attn    = enabled\r\n"
		"0.00.000.004 I llama_kv_cache:      CUDA0 KV buffer size =     8.00 MiB\r\n"
		"0.00.000.004 I llama_kv_cache: size =    8.00 MiB (  2048 cells,   2 layers,  1/1 seqs), K (q8_0):    4.00 MiB, V (q8_0):    4.00 MiB\r\n"
		"0.00.000.005 I common_speculative_init: adding speculative implementation 'draft-mtp'\r\n"
		"draft acceptance rate = 0.69811 (  111 accepted /   159 generated)\r\n", REASON_NONE);
	gives(FRONT ADDED "\x1b[34m7.02.255.331\x1b[0m \x1b[32mI \x1b[0mstatistics draft-mtp: #calls(b,g,a) = 1 84 84, #gen drafts = 84, "
		"#acc drafts = 70, #gen tokens = 159, #acc tokens = 111, dur(b,g,a) = 0.016, 825.426, 2.174 ms\n", REASON_NONE);
	gives(FRONT ADDED "The lamp turns.7.02.255.331 I statistics draft-mtp: #calls(b,g,a) = 1 84 84, #gen drafts = 84, "
		"#acc drafts = 70, #gen tokens = 159, #acc tokens = 111, dur(b,g,a) = 0.016, 825.426, 2.174 ms\n", REASON_NONE);
}

static void
every_lane_has_its_own_device(void **state)
{
	(void)state;
	gives_on("vulkan", ARCH DRAFTER FLASH BUFFER("Vulkan0") SIZES("f16", "f16") ADDED STATISTICS("draft-mtp", "159", "111"), REASON_NONE);
	gives_on("rocm", ARCH DRAFTER FLASH BUFFER("ROCm0") SIZES("f16", "f16") ADDED STATISTICS("draft-mtp", "159", "111"), REASON_NONE);
	gives_on("vulkan", ARCH FLASH BUFFER("CUDA0") SIZES("f16", "f16") ADDED STATISTICS("draft-mtp", "159", "111"),
		REASON_KV_NOT_ON_DEVICE);
	gives_on("cuda", ARCH FLASH BUFFER("CUDA_Host") SIZES("f16", "f16") ADDED STATISTICS("draft-mtp", "159", "111"),
		REASON_KV_NOT_ON_DEVICE);
}

static void
every_stock_type_passes_and_every_fork_type_does_not(void **state)
{
	static const char *const stock[] = {"f16", "f32", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"};
	static const char *const fork[] = {"tbq1_0", "tbq2_0", "tbq3_0", "tbq4_0", "tbq3_0_tcq", "tbq3_tcq", "turbo2", "turbo3",
		"turbo4", "turbo2_0", "turbo3_0", "turbo4_0", "turbo2_tcq", "turbo3_tcq", "qjl1_256", "qjl1_512", "q4_polar",
		"q8_01", "f16x", "?"};
	char text[4096];
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < str_count(stock); i++) {
		snprintf(text, sizeof text, ARCH DRAFTER FLASH BUFFER("CUDA0") "llama_kv_cache: size = 8.00 MiB ( 2048 cells, 2 layers, 1/1 seqs), "
			"K (%s): 4.00 MiB, V (%s): 4.00 MiB\n" ADDED STATISTICS("draft-mtp", "159", "111"), stock[i], stock[i]);
		gives(text, REASON_NONE);
	}
	for (i = 0; i < str_count(fork); i++)
		for (k = 0; k < 2; k++) {
			snprintf(text, sizeof text, ARCH DRAFTER FLASH BUFFER("CUDA0") "llama_kv_cache: size = 8.00 MiB ( 2048 cells, 2 layers, 1/1 seqs), "
				"K (%s): 4.00 MiB, V (%s): 4.00 MiB\n" ADDED STATISTICS("draft-mtp", "159", "111"), k ? "q8_0" : fork[i],
				k ? fork[i] : "q8_0");
			gives(text, REASON_KV_NOT_STOCK);
		}
	/* the second cache of a model with sliding windows, or the drafter's */
	gives(FRONT BUFFER("CUDA0") SIZES("f16", "tbq4_0") ADDED STATISTICS("draft-mtp", "159", "111"), REASON_KV_NOT_STOCK);
}

static void
acceptance_has_a_floor_and_a_ceiling_that_is_told(void **state)
{
	struct judgement j;
	static const char high[] = FRONT ADDED STATISTICS("draft-mtp", "100", "96");
	static const char all[] = FRONT ADDED STATISTICS("draft-mtp", "100", "100");

	(void)state;
	gives(FRONT ADDED STATISTICS("draft-mtp", "100", "5"), REASON_NONE);
	gives(FRONT ADDED STATISTICS("draft-mtp", "1000", "49"), REASON_ACCEPTANCE_LOW);
	gives(FRONT ADDED STATISTICS("draft-mtp", "100", "95"), REASON_NONE);
	j = judged(high, sizeof high - 1, "cuda", ",\"--spec-type\",\"mtp\"", 0);
	assert_int_equal(j.reason, REASON_NONE);
	assert_non_null(strstr(j.detail, "above the ceiling"));
	j = judged(all, sizeof all - 1, "cuda", ",\"--spec-type\",\"mtp\"", 0);
	assert_int_equal(j.reason, REASON_NONE);
	assert_non_null(strstr(j.detail, "above the ceiling"));
	gives(FRONT ADDED STATISTICS("draft-mtp", "100", "101"), REASON_UNKNOWN_TOOL_FORMAT);
	gives(FRONT ADDED STATISTICS("draft-mtp", "0", "0"), REASON_NO_DRAFT_ACCEPTED);
	gives(FRONT ADDED STATISTICS("draft-mtp", "159", "0"), REASON_NO_DRAFT_ACCEPTED);
}

static void
the_right_speculator_counts_beside_others(void **state)
{
	(void)state;
	/* one line per speculator: mtp made none of the accepted ones */
	gives(FRONT ADDED STATISTICS("ngram-simple", "159", "111") STATISTICS("draft-mtp", "20", "0"), REASON_NO_DRAFT_ACCEPTED);
	gives(FRONT ADDED STATISTICS("draft-mtp", "20", "0") STATISTICS("draft-simple", "159", "111"), REASON_NO_DRAFT_ACCEPTED);
	gives(FRONT ADDED "draft acceptance rate = 0.69811 (  111 accepted /   159 generated)\n"
		STATISTICS("ngram-mod", "159", "111") STATISTICS("draft-mtp", "20", "0"), REASON_NO_DRAFT_ACCEPTED);
	gives(FRONT ADDED STATISTICS("draft-mtp", "159", "111") STATISTICS("ngram-mod", "9", "0"), REASON_NONE);
	/* cumulative: the last line of the run counts */
	gives(FRONT ADDED STATISTICS("draft-mtp", "0", "0") STATISTICS("draft-mtp", "159", "111"), REASON_NONE);
	refuses(FRONT "0.00.000.005 I common_speculative_init: adding speculative implementation 'dflash'\n"
		STATISTICS("dflash", "159", "111"));
	refuses(FRONT "0.00.000.005 I common_speculative_init: adding speculative implementation 'draft-mtp-like'\n"
		STATISTICS("draft-mtp-like", "159", "111"));
	refuses(FRONT ADDED STATISTICS("draft-simple", "159", "111") "n_drafted = 159\nn_accept  = 111\n");
}

static void
words_about_a_run_are_no_run(void **state)
{
	(void)state;
	refuses("# Gemma-4-E2B MTP drafter, draft-mtp, Flash Attention enabled, K (q8_0) V (q8_0), 41-49% accepted\n");
	refuses(FRONT ADDED "Draft acceptance ~41-49% (was ~2% before the fork-MTP correctness fixes).\n");
	refuses(FRONT ADDED "we drafted 100 and accepted 44 tokens\n");
	refuses(FRONT ADDED "MTP: drafted some accepted 44\n");
	refuses(FRONT ADDED "MTP: drafted -100 accepted -44\n");
	refuses(FRONT ADDED "n_drafted = 100\n");
	refuses(FRONT ADDED "n_accept = 44\n");
	refuses(FRONT ADDED "accept    = 69.811%\n");
	refuses(FRONT ADDED "draft acceptance rate = 0.69811\n");
	refuses(FRONT "the engine is adding speculative implementation 'draft-mtp' soon\n" STATISTICS("draft-mtp", "159", "111"));
	refuses(FRONT "command: llama-cli --spec-type draft-mtp\n" STATISTICS("draft-mtp", "159", "111"));
	refuses("");
	refuses("\n\n\n");
}

static void
flash_attention_must_stay_on(void **state)
{
	(void)state;
	gives(ARCH "llama_context: flash_attn = auto\n" CACHE ADDED STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
	gives(ARCH "llama_context: flash_attn = disabled\n" CACHE ADDED STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
	gives(ARCH FLASH CACHE "0.00.000.009 W llama_context: Flash Attention was auto, set to disabled\n" ADDED
		STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
	gives(ARCH FLASH CACHE "0.00.000.009 W llama_context: V embeddings have different sizes across layers and FA is not enabled - padding\n"
		ADDED STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
	gives(ARCH "ggml_metal_library_compile_pipeline: compiling pipeline: base = 'kernel_flash_attn_ext_f16_dk64_dv64'\n" CACHE ADDED
		STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
}

static void
a_neighbour_of_the_architecture_is_not_it(void **state)
{
	static const char *const others[] = {"gemma", "gemma2", "gemma3", "gemma3n", "gemma4x", "gemma4-assistant", "Gemma4"};
	char text[4096];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(others); i++) {
		snprintf(text, sizeof text, "llama_model_loader: - kv 0: general.architecture str = %s\n" FLASH CACHE ADDED
			STATISTICS("draft-mtp", "159", "111"), others[i]);
		gives(text, REASON_MODEL_NOT_SUITABLE);
	}
}

static void
an_engine_that_refuses_the_option_is_named_so(void **state)
{
	static const char *const said[] = {
		"error: invalid argument: --spec-type\n",
		"error while handling argument \"--spec-type\": unknown speculative type: draft-mtp\n\nusage:\n--spec-type none,ngram-simple\n",
		"error while handling argument \"--spec-type\": unknown speculative decoding type without draft model\n",
	};
	struct judgement j;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(said); i++) {
		j = judged(said[i], strlen(said[i]), "cuda", ",\"--spec-type\",\"draft-mtp\"", 1);
		if (j.reason != REASON_SPEC_NOT_IN_BUILD)
			fail_msg("got %s: %s\n%s", reason_name(j.reason), j.detail, said[i]);
	}
	/* refused, and yet counters stand there: of whatever ran before */
	refuses(FRONT ADDED STATISTICS("draft-mtp", "159", "111") "error: invalid argument: --spec-type\n");
}

static void
a_good_run_that_ended_badly_is_no_pass(void **state)
{
	static const char good[] = FRONT ADDED STATISTICS("draft-mtp", "159", "111");
	static const char *const argvs[] = {",\"--spec-type\",\"none\"", ",\"--spec-type\",\"ngram-simple\"", ",\"--spec-type\",\"dflash\"",
		",\"--spec-type\"", ",\"-md\",\"draft-mtp\"", ",\"draft-mtp\"", ",\"--spec-type\",\"draft-mtp\",\"--spec-type\",\"copyspec\""};
	size_t i;

	(void)state;
	assert_int_equal(judged(good, sizeof good - 1, "cuda", ",\"--spec-type\",\"draft-mtp\"", 0).reason, REASON_NONE);
	assert_int_equal(judged(good, sizeof good - 1, "cuda", ",\"--spec-type\",\"draft-mtp\"", 134).reason, REASON_ENGINE_EXIT);
	assert_int_equal(judged(good, sizeof good - 1, "cuda", ",\"--spec-type\",\"draft-mtp\"", -1).reason, REASON_ENGINE_EXIT);
	for (i = 0; i < str_count(argvs); i++)
		if (judged(good, sizeof good - 1, "cuda", argvs[i], 0).outcome == OUTCOME_PASS)
			fail_msg("passed with %s", argvs[i]);
}

/* Any one line taken out that the claim rests on. */
static void
each_line_of_a_good_log_is_needed(void **state)
{
	static const char *const lines[] = {ARCH, DRAFTER, FLASH, BUFFER("CUDA0"), SIZES("q8_0", "q8_0"), ADDED,
		STATISTICS("draft-mtp", "159", "111")};
	char text[4096];
	size_t skip, i;

	(void)state;
	for (skip = 0; skip <= str_count(lines); skip++) {
		text[0] = '\0';
		for (i = 0; i < str_count(lines); i++)
			if (i != skip)
				snprintf(text + strlen(text), sizeof text - strlen(text), "%s", lines[i]);
		if (skip == str_count(lines))
			gives(text, REASON_NONE);
		else
			refuses(text);
	}
}

static void
published_files_and_samples_say_what_they_say(void **state)
{
	static const struct {
		const char *path;
		enum reason wanted;
	} files[] = {
		{"../shared/samples/probes/llama-cli/speculative-mtp-good.stderr.txt", REASON_NONE},
		{"../shared/samples/probes/llama-cli/speculative-not-configured.stderr.txt", REASON_SPEC_NOT_USED},
		{PUBLISHED "drafter-draft-mtp-metal.log", REASON_SPEC_NOT_USED},
		{PUBLISHED "gemma4-assistant-fork-draft-mtp.log", REASON_SPEC_NOT_USED},
		{PUBLISHED "darwin-arm64-metal-fused-llm.log", REASON_SPEC_NOT_USED},
	};
	char *part, *text;
	size_t i, len, there = 0;

	(void)state;
	for (i = 0; i < str_count(files); i++) {
		if (plat_read_file(files[i].path, 1u << 20, &part, &len, NULL)) {
			print_message("skipped: %s is not here\n", files[i].path);
			continue;
		}
		there++;
		/* as it is, and then with everything in front of it that a good run has but the speculator */
		if (judged(part, len, "cuda", ",\"--spec-type\",\"draft-mtp\"", 0).outcome == OUTCOME_PASS)
			fail_msg("%s passed", files[i].path);
		text = malloc(len + sizeof FRONT);
		assert_non_null(text);
		memcpy(text, FRONT, sizeof FRONT - 1);
		memcpy(text + sizeof FRONT - 1, part, len);
		text[sizeof FRONT - 1 + len] = '\0';
		gives(text, files[i].wanted);
		free(text);
		free(part);
	}
	if (there == 0)
		skip();
}

/* make-model --mtp in llama-cli of llama.cpp v0.4.0: all that the claim rests on is there. */
static void
a_real_run_with_a_drafter_passes_and_no_beginning_of_it_does(void **state)
{
	static const char path[] = "fixtures/logs/cpu-stock-v0.4.0-mtp-gemma4.log";
	const char *counters = "draft acceptance = 0.48819 (   62 accepted /   127 generated)", *at;
	struct judgement j;
	char *text;
	size_t len, cut;

	(void)state;
	assert_int_equal(plat_read_file(path, 1u << 20, &text, &len, NULL), 0);
	j = judged(text, len, "cpu", ",\"--spec-type\",\"draft-mtp\"", 0);
	if (j.outcome != OUTCOME_PASS)
		fail_msg("%s: %s", reason_name(j.reason), j.detail);
	assert_non_null(strstr(j.detail, "accepted 62 of 127 (48.8 %)"));
	assert_int_not_equal(judged(text, len, "cuda", ",\"--spec-type\",\"draft-mtp\"", 0).outcome, OUTCOME_PASS);
	at = strstr(text, counters);
	assert_non_null(at);
	for (cut = 0; cut < (size_t)(at - text) + strlen(counters); cut += 61)
		if (judged(text, cut, "cpu", ",\"--spec-type\",\"draft-mtp\"", 0).outcome == OUTCOME_PASS)
			fail_msg("the first %zu bytes passed", cut);
	free(text);
}

/* llama.cpp v0.4.0: trace lines with a short head, padded columns, words behind the counters. */
#define TRACE_HEAD "0.01.002.255 I spec common_specu: "
#define TRACE_ADDED TRACE_HEAD "adding speculative implementation 'draft-mtp'\n" \
	TRACE_HEAD "- n_max=2, n_min=0, p_min=0.75, n_embd=1536, backend_sampling=0\n"
#define TRACE_STATISTICS "7.02.255.331 I spec common_specu: statistics        draft-mtp: #calls(b,g,a) =    1     84     84, " \
	"#gen drafts =     84, #acc drafts =    70, #gen tokens =    159, #acc tokens =   111, #mean acc len = 2.32, " \
	"#acc rate/pos = (0.800, 0.521), dur(b,g,a) = 0.016, 825.426, 2.174 ms\n"

static void
the_trace_lines_of_stock_v0_4_0_are_read(void **state)
{
	(void)state;
	gives(FRONT TRACE_ADDED TRACE_STATISTICS, REASON_NONE);
	gives(FRONT TRACE_ADDED "7.02.255.100 I slot print_timing: id  0 | task 0 | draft acceptance = 0.69811 (  111 accepted /   159 generated), "
		"mean len =  2.32\n", REASON_NONE);
	gives(FRONT TRACE_ADDED "7.02.255.331 I spec common_specu: statistics        draft-mtp: #calls(b,g,a) =    1      1      0, "
		"#gen drafts =      0, #acc drafts =     0, #gen tokens =      0, #acc tokens =     0\n", REASON_NO_DRAFT_ACCEPTED);
	gives(FRONT TRACE_ADDED TRACE_HEAD "adding speculative implementation 'ngram-mod'\n"
		"7.02.255.100 I slot print_timing: id  0 | task 0 | draft acceptance = 0.69811 (  111 accepted /   159 generated), mean len =  2.32\n",
		REASON_LOG_TOO_QUIET);
	gives(FRONT TRACE_ADDED "7.02.255.331 I spec common_specu: statistics        ngram-mod: #calls(b,g,a) =    1     84     84, "
		"#gen drafts =     84, #acc drafts =    70, #gen tokens =    159, #acc tokens =   111\n", REASON_LOG_TOO_QUIET);
	gives(FRONT TRACE_HEAD "no implementations specified for speculative decoding\n" TRACE_STATISTICS, REASON_SPEC_NOT_USED);
}

static void
counters_count_in_every_spelling_of_the_published_parsers(void **state)
{
	static const char *const pairs[] = {"n_drafted=100\nn_accept=44\n", "n_drafted: 100\nn_accept: 44\n", "n_drafted : 100\nn_accepted : 44\n",
		"n_drafted = 100\nn_drafted_accepted = 44\n", "n_drafted: 100\nn_drafted_accepted: 44\n",
		"draft acceptance rate = 0.44 (   44 accepted /   100 drafted)\n"};
	char text[4096];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(pairs); i++) {
		snprintf(text, sizeof text, "%s%s", FRONT ADDED, pairs[i]);
		gives(text, REASON_NONE);
	}
}

static void
a_ninth_cache_counts_too(void **state)
{
	char text[8192] = FRONT BUFFER("CUDA0");
	int i;

	(void)state;
	for (i = 0; i < 7; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s", SIZES("q8_0", "q8_0"));
	snprintf(text + strlen(text), sizeof text - strlen(text), "%s", SIZES("tbq3_tcq", "f16") ADDED STATISTICS("draft-mtp", "159", "111"));
	gives(text, REASON_KV_NOT_STOCK);
}

static void
a_sentence_does_not_switch_flash_attention_on(void **state)
{
	(void)state;
	gives(ARCH CACHE "This ran with Flash Attention enabled\n" ADDED STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
	gives(ARCH CACHE "note: if Flash Attention was auto, set to enabled\n" ADDED STATISTICS("draft-mtp", "159", "111"), REASON_FLASH_ATTN_OFF);
}

static void
the_option_and_its_value_may_be_one_word(void **state)
{
	static const char good[] = FRONT ADDED STATISTICS("draft-mtp", "159", "111");

	(void)state;
	assert_int_equal(judged(good, sizeof good - 1, "cuda", ",\"--spec-type=draft-mtp\"", 0).reason, REASON_NONE);
	assert_int_equal(judged(good, sizeof good - 1, "cuda", ",\"--spec-type=dflash\"", 0).reason, REASON_SPEC_NOT_USED);
}

/* The last line of a log that was cut off ends nowhere: "11" may have been 111. */
static void
a_line_without_an_end_proves_nothing(void **state)
{
	static const char *const logs[] = {FRONT ADDED STATISTICS("draft-mtp", "159", "111"), FRONT TRACE_ADDED TRACE_STATISTICS,
		FRONT ADDED "draft acceptance rate = 0.69811 (  111 accepted /   159 generated)\n", FRONT ADDED "n_drafted = 100\nn_accept = 44\n",
		FRONT ADDED "MTP: drafted 100 accepted 44\n"};
	struct judgement j;
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(logs); i++)
		for (n = 0; n < strlen(logs[i]); n++) {
			j = judged(logs[i], n, "cuda", ",\"--spec-type\",\"draft-mtp\"", 0);
			if (j.outcome == OUTCOME_PASS)
				fail_msg("log %zu cut at %zu: %s", i, n, j.detail);
		}
}

static void
a_speculator_that_was_switched_off_again_is_not_used(void **state)
{
	(void)state;
	gives(FRONT ADDED "0.00.000.006 E common_speculative_init: disabling speculative implementation 'draft-mtp': no context\n"
		"MTP: drafted 100 accepted 44\n", REASON_SPEC_NOT_USED);
}

/* ---- the drafter ---- */

static void
drafter_is_one_by_its_name_or_by_its_layers(void **state)
{
	static const char rest[] = FLASH CACHE ADDED STATISTICS("draft-mtp", "159", "111");
	static const struct {
		const char *drafter;
		enum reason wanted;
	} rows[] = {
		{"- kv 0: general.architecture str = gemma4-assistant\n", REASON_NONE},
		{"- kv 0: general.architecture str = gemma4x\nllama_model_loader: - kv 9: gemma4x.nextn_predict_layers u32 = 1\n", REASON_NONE},
		/* layers of the model itself */
		{"- kv 9: gemma4.nextn_predict_layers u32 = 1\n", REASON_NONE},
		{"- kv 9: gemma4.nextn_predict_layers u32 = 0\n", REASON_LOG_TOO_QUIET},
		{"", REASON_LOG_TOO_QUIET},
		/* the model again, as with --fit on */
		{"- kv 0: general.architecture str = gemma4\n", REASON_LOG_TOO_QUIET},
		{"- kv 0: general.architecture str = llama\n", REASON_MODEL_NOT_SUITABLE},
		{"- kv 0: general.architecture str = gemma3\n", REASON_MODEL_NOT_SUITABLE},
		{"- kv 0: general.architecture str = gemma4-assistan\n", REASON_MODEL_NOT_SUITABLE},
	};
	char text[4096];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, ARCH "%s%s%s", rows[i].drafter[0] ? "llama_model_loader: " : "", rows[i].drafter, rest);
		gives(text, rows[i].wanted);
	}
}

/* What llama.cpp v0.4.0 printed with a drafter that has no such layers, and its end. */
static void
drafter_without_layers_is_blocked_and_no_failure(void **state)
{
	static const char said[] = ARCH "0.00.776.825 I llama_model_loader: - kv   0:                       general.architecture str              = llama\n"
		FLASH CACHE "0.00.782.181 W llama_init_from_model: context type MTP requested but model doesn't contain MTP layers\n"
		"0.00.782.182 E common_speculative_init_result: failed to create MTP context\n"
		"0.00.782.198 E srv    load_model: failed to create MTP context\n"
		"|0.00.792.742 E srv  llama_server: exiting due to model loading error\n";
	struct judgement j = judged(said, sizeof said - 1, "cuda", MTP_ARGV, 1);

	(void)state;
	assert_int_equal(j.reason, REASON_MODEL_NOT_SUITABLE);
	assert_int_equal(j.outcome, OUTCOME_BLOCKED);
	assert_non_null(strstr(j.detail, "no layers of multi-token prediction"));
	assert_non_null(strstr(j.hint, "--draft-model"));
}

/* A real run of v0.4.0 with a drafter of the simple kind, and one whose drafts were all
 * given up: good counters, of another speculator; none, of the right one. */
static void
real_counters_of_a_simple_drafter_are_no_claim(void **state)
{
	static const char simple[] = FRONT "0.00.939.662 I spec common_specu: adding speculative implementation 'draft-simple'\n"
		"0.03.778.174 I slot print_timing: id  0 | task 0 | draft acceptance = 1.00000 (   15 accepted /    15 generated), mean len =  2.88\n"
		"0.03.778.197 I slot print_timing: id  0 | task 0 |      acc per pos = (1.000, 0.875)\n"
		"0.03.778.368 I spec common_specu: statistics     draft-simple: #calls(b,g,a) =    1      8      8, #gen drafts =      8, "
		"#acc drafts =     8, #gen tokens =     15, #acc tokens =    15, #mean acc len = 2.88, #acc rate/pos = (1.000, 0.875), dur(b,g,a) = 0.0\n";
	static const char none[] = FRONT "0.00.939.662 I spec common_specu: adding speculative implementation 'draft-mtp'\n"
		"0.03.778.368 I spec common_specu: statistics        draft-mtp: #calls(b,g,a) =    1     23      0, #gen drafts =      0, "
		"#acc drafts =     0, #gen tokens =      0, #acc tokens =     0, #mean acc len = 0.00, #acc rate/pos = (), dur(b,g,a) = 0.0\n";

	(void)state;
	assert_int_equal(judged(simple, sizeof simple - 1, "cuda", ",\"--spec-type\",\"draft-simple\"", 0).reason,
		REASON_SPEC_NOT_USED);
	assert_int_equal(judged(simple, sizeof simple - 1, "cuda", MTP_ARGV, 0).reason, REASON_SPEC_NOT_USED);
	gives(none, REASON_NO_DRAFT_ACCEPTED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drafter_is_one_by_its_name_or_by_its_layers),
		cmocka_unit_test(drafter_without_layers_is_blocked_and_no_failure),
		cmocka_unit_test(real_counters_of_a_simple_drafter_are_no_claim),
		cmocka_unit_test(terminals_and_windows_do_not_change_a_good_log),
		cmocka_unit_test(every_lane_has_its_own_device),
		cmocka_unit_test(every_stock_type_passes_and_every_fork_type_does_not),
		cmocka_unit_test(acceptance_has_a_floor_and_a_ceiling_that_is_told),
		cmocka_unit_test(the_right_speculator_counts_beside_others),
		cmocka_unit_test(words_about_a_run_are_no_run),
		cmocka_unit_test(flash_attention_must_stay_on),
		cmocka_unit_test(a_neighbour_of_the_architecture_is_not_it),
		cmocka_unit_test(an_engine_that_refuses_the_option_is_named_so),
		cmocka_unit_test(a_good_run_that_ended_badly_is_no_pass),
		cmocka_unit_test(each_line_of_a_good_log_is_needed),
		cmocka_unit_test(published_files_and_samples_say_what_they_say),
		cmocka_unit_test(a_real_run_with_a_drafter_passes_and_no_beginning_of_it_does),
		cmocka_unit_test(the_trace_lines_of_stock_v0_4_0_are_read),
		cmocka_unit_test(counters_count_in_every_spelling_of_the_published_parsers),
		cmocka_unit_test(a_ninth_cache_counts_too),
		cmocka_unit_test(a_sentence_does_not_switch_flash_attention_on),
		cmocka_unit_test(the_option_and_its_value_may_be_one_word),
		cmocka_unit_test(a_line_without_an_end_proves_nothing),
		cmocka_unit_test(a_speculator_that_was_switched_off_again_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
