#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/elog.h"
#include "common/str.h"

#define MAX_LOG (1u << 20)

static const struct lane cpu = { .name = "cpu", .api = API_CPU, .kv_device = "CPU" };
static const struct lane cuda = {
	.name = "cuda", .api = API_CUDA, .kv_device = "CUDA[0-9]*", .offloads = true,
};
static const struct lane vulkan = {
	.name = "vulkan", .api = API_VULKAN, .kv_device = "Vulkan[0-9]*", .offloads = true,
};

/* ---- whole logs ---- */

/* What each log proves, from fixtures/logs/index.tsv and from reading it. */
struct log_case {
	const char *name; /* a sentence */
	const char *file;
	const struct lane *lane;
	const char *asked;
	int tokens_asked, exit;
	/* expected facts; NULL and -2: not looked at here */
	const char *k_type, *kv; /* kv: "CUDA0 1.53" */
	int offloaded, layers, tokens;
	const char *attn;        /* "CUDA0 24, CPU 6" */
	/* expected verdict */
	enum reason reason;
	const char *detail;      /* stands in the sentence */
};

static const struct log_case logs[] = {
	/* real runs on an H200, CUDA */
	{ "flash_attention_of_trial_graphs_on_the_cpu_is_no_failure", "h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log", &cuda, "q8_0", 4, 0,
	  "q8_0", "CUDA0 1.53", 3, 3, 4, "CUDA0 30", REASON_NONE, "K cache q8_0 on CUDA0, 4 of 4 tokens, attention on CUDA0" },
	{ "fork_with_f16_runs_attention_on_the_device", "h200-cuda-fork-96dd1a8-fa-off-f16.log", &cuda, "f16", 8, 0,
	  "f16", "CUDA0 2.00", 3, 3, 8, "CUDA0 30", REASON_NONE, "8 of 8 tokens" },
	{ "accepted_type_with_scores_on_the_cpu_is_op_on_cpu", "h200-cuda-fork-96dd1a8-fa-off-tbq3_0.log", &cuda, "tbq3_0", 8, 0,
	  "tbq3_0", "CUDA0 1.22", 3, 3, 8, "CUDA0 24, CPU 6", REASON_OP_ON_CPU, "6 attention nodes on CPU, the first MUL_MAT kq-0" },
	{ "set_rows_abort_is_op_not_supported", "h200-cuda-fork-96dd1a8-fa-off-qjl1_256.log", &cuda, "qjl1_256", 8, 134,
	  "", "", 3, 3, -1, "", REASON_OP_NOT_SUPPORTED, "SET_ROWS on CUDA0 for cache_k" },
	{ "allocation_without_placement_is_too_quiet_f16", "h200-cuda-stock-v0.4.0-tiny128-bc-f16.log", &cuda, "f16", 8, 0,
	  "f16", "CUDA0 2.00", 3, 3, 8, "", REASON_LOG_TOO_QUIET, "attention nodes" },
	{ "allocation_without_placement_is_too_quiet_q8_0", "h200-cuda-stock-v0.4.0-tiny128-bc-q8_0.log", &cuda, "q8_0", 8, 0,
	  "q8_0", "CUDA0 1.53", 3, 3, 8, "", REASON_LOG_TOO_QUIET, "attention nodes" },
	{ "allocation_without_placement_is_too_quiet_q4_0", "h200-cuda-stock-v0.4.0-tiny256-bc-q4_0.log", &cuda, "q4_0", 8, 0,
	  "q4_0", "CUDA0 2.56", 3, 3, 8, "", REASON_LOG_TOO_QUIET, "attention nodes" },
	/* Vulkan */
	{ "backend_names_cut_to_five_letters_are_the_device", "h200-vulkan-stock-v0.4.0-q8_0.log", &vulkan, "q8_0", 8, 0,
	  "q8_0", "Vulkan0 1.53", 3, 3, 8, "Vulka 18", REASON_NONE, "K cache q8_0 on Vulkan0, 8 of 8 tokens" },
	{ "forced_flash_attention_with_quantised_v_passes", "h200-vulkan-stock-v0.4.0-fa-on-k-q8_0-v-q8_0.log", &vulkan, "q8_0", 8, 0,
	  "q8_0", "Vulkan0 1.06", 3, 3, 8, "Vulka 18", REASON_NONE, "Vulkan0" },
	{ "llvmpipe_is_a_software_device", "llvmpipe-vulkan-stock-v0.4.0-forced-q8_0.log", &vulkan, "q8_0", 8, 0,
	  "q8_0", "Vulkan0 1.53", 3, 3, 8, "Vulka 18", REASON_SOFTWARE_DEVICE, "llvmpipe" },
	{ "silent_fall_back_to_the_cpu_is_no_vulkan_pass", "llvmpipe-vulkan-stock-v0.4.0-silent-cpu-q8_0.log", &vulkan, "q8_0", 8, 0,
	  "q8_0", "CPU 1.53", -1, -1, -1, "CPU 12", REASON_KV_NOT_ON_DEVICE, "q8_0 cache on CPU" },
	{ "cpu_run_is_no_pass_of_another_lane", "cpu-stock-v0.4.0-full-q8_0.log", &vulkan, "q8_0", 4, 0,
	  "q8_0", "CPU 3.06", -1, -1, 4, "CPU 18", REASON_KV_NOT_ON_DEVICE, "CPU" },
	{ "device_run_is_no_pass_of_the_cpu_lane", "h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log", &cpu, "q8_0", 4, 0,
	  "q8_0", "CUDA0 1.53", 3, 3, 4, "CUDA0 30", REASON_KV_NOT_ON_DEVICE, "CUDA0" },
	/* CPU */
	{ "cpu_run_with_stock_type_passes", "cpu-stock-v0.4.0-full-q8_0.log", &cpu, "q8_0", 4, 0,
	  "q8_0", "CPU 3.06", -1, -1, 4, "CPU 18", REASON_NONE, "K cache q8_0 on CPU, 4 of 4 tokens, attention on CPU" },
	{ "cpu_run_with_fork_type_passes", "cpu-fork-96dd1a8-full-tbq3_tcq.log", &cpu, "tbq3_tcq", 4, 0,
	  "tbq3_tcq", "CPU 2.41", -1, -1, 4, "CPU 30", REASON_NONE, "K cache tbq3_tcq on CPU" },
	{ "asked_type_is_compared_without_case", "cpu-stock-v0.4.0-full-q8_0.log", &cpu, "Q8_0", 4, 0,
	  "q8_0", "CPU 3.06", -1, -1, 4, "CPU 18", REASON_NONE, "q8_0" },
	{ "other_type_than_asked_fails", "cpu-stock-v0.4.0-full-q8_0.log", &cpu, "q4_0", 4, 0,
	  "q8_0", "CPU 3.06", -1, -1, 4, "CPU 18", REASON_KV_TYPE_DIFFERS, "K cache is q8_0, asked was q4_0" },
	{ "log_cut_before_its_timings_is_too_quiet", "cpu-stock-v0.4.0-q8_0.stderr.log", &cpu, "q8_0", 8, 0,
	  "q8_0", "CPU 1.53", -1, -1, -1, "CPU 12", REASON_LOG_TOO_QUIET, "missing in the log: the eval time line" },
	{ "tail_that_the_engine_lost_is_too_quiet", "cpu-fork-96dd1a8-tail-lost-tbq3_0.log", &cpu, "tbq3_0", 4, 0,
	  "tbq3_0", "CPU 2.44", -1, -1, -1, "CPU 18", REASON_LOG_TOO_QUIET, "the eval time line" },
	{ "one_run_of_no_time_is_one_token", "cpu-stock-v0.4.0-one-token-f16.log", &cpu, "f16", 2, 0,
	  "f16", "CPU 4.00", -1, -1, 1, "CPU 12", REASON_TOO_FEW_TOKENS, "1 of 2 tokens" },
	/* refusals */
	{ "unknown_type_names_what_the_build_has", "cpu-stock-v0.4.0-unknown-turbo3.log", &cpu, "turbo3", 4, 1,
	  "", "", -1, -1, -1, "", REASON_FAMILY_NOT_IN_BUILD, "no cache type turbo3; it has f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1" },
	{ "unknown_type_of_the_fork_names_the_wrapped_list", "cli-cache-type-unknown.stderr.txt", &cuda, "turbo3", 4, 1,
	  "", "", -1, -1, -1, "", REASON_FAMILY_NOT_IN_BUILD, "qjl1_256, q4_polar, tbq3_tcq" },
	{ "head_size_that_does_not_divide_is_model_not_suitable", "cpu-fork-96dd1a8-head-64-tbq3_tcq.log", &cpu, "tbq3_tcq", 4, 1,
	  "", "", -1, -1, -1, "", REASON_MODEL_NOT_SUITABLE, "K cache type tbq3_tcq with block size 128 does not divide n_embd_head_k=64" },
	{ "head_size_beats_the_crash_that_follows", "cli-head-size-64-tcq.stderr.txt", &cpu, "tbq3_tcq", 4, 139,
	  "", "", -1, -1, -1, "", REASON_MODEL_NOT_SUITABLE, "n_embd_head_k=64" },
	{ "quantised_v_without_flash_attention_is_blocked", "cpu-stock-v0.4.0-v-q8_0-without-fa.log", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_V_CACHE_NEEDS_FA, "quantized V cache requires flash_attn" },
	{ "quantised_v_beats_the_crash_that_follows", "cli-v-quant-without-fa.stderr.txt", &cpu, "f16", 4, 139,
	  "", "", -1, -1, -1, "", REASON_V_CACHE_NEEDS_FA, "V cache quantization requires flash_attn" },
	{ "unknown_option_is_the_engine_s_exit", "cpu-stock-v0.4.0-unknown-option.log", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_ENGINE_EXIT, "exit code 1: error: invalid argument: --nonsense" },
	/* models */
	{ "missing_model_is_model_missing", "cpu-stock-v0.4.0-missing-model.log", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_MODEL_MISSING, "No such file" },
	{ "missing_model_of_llama_cli_is_model_missing", "cli-model-missing.stderr.txt", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_MODEL_MISSING, "/models/missing.gguf" },
	{ "other_file_is_model_not_gguf", "cpu-stock-v0.4.0-not-gguf.log", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_MODEL_NOT_GGUF, "invalid magic" },
	{ "cut_file_is_model_truncated", "cpu-stock-v0.4.0-truncated-model.log", &cpu, "f16", 4, 1,
	  "", "", -1, -1, -1, "", REASON_MODEL_TRUNCATED, "not within the file bounds" },
	/* llama-cli */
	{ "allocation_says_nothing_about_dispatch", "cli-cache-qjl1_256-lv4.stderr.txt", &cpu, "qjl1_256", 4, 0,
	  "qjl1_256", "CPU 0.14", -1, -1, 4, "", REASON_NONE, "K cache qjl1_256 on CPU, 4 of 4 tokens, attention not shown" },
	{ "server_s_eval_time_counts_the_tokens_themselves", "cli-st-lv4.stderr.txt", &cpu, "f16", 4, 0,
	  "f16", "CPU 0.50", -1, -1, 4, "", REASON_NONE, "4 of 4 tokens" },
	{ "tokens_without_cache_lines_are_too_quiet", "cli-st-lv3.stderr.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, 4, "", REASON_LOG_TOO_QUIET, "the K cache type, a KV buffer larger than 0" },
	{ "default_verbosity_is_too_quiet", "cli-st-default.stdout.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_LOG_TOO_QUIET, "the eval time line" },
	{ "three_warnings_prove_nothing", "cli-st-default.stderr.txt", &cuda, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_LOG_TOO_QUIET, "a KV buffer larger than 0" },
	{ "driver_that_only_converses_is_refused", "cli-no-cnv-null-stdin.stdout.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_DRIVER_REFUSES, "--no-conversation is not supported by llama-cli" },
	{ "error_behind_a_spinner_fails_in_spite_of_exit_0", "cli-prompt-too-long.stdout.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_ENGINE_ERROR, "Error: request (1502 tokens) exceeds the available context size (256 tokens)" },
	{ "graphs_without_an_allocation_are_too_quiet", "cli-sched-debug-qjl1_256-lv5.stderr.txt", &cpu, "qjl1_256", 4, 0,
	  "", "", -1, -1, -1, "", REASON_LOG_TOO_QUIET, "the K cache type" },
	{ "flash_attention_that_switched_itself_off_is_not_verified", "cli-cuda-fa-auto-off-lv4.stderr.txt", &cuda, "tbq3_0", 4, 0,
	  "tbq3_0", "CUDA0 22.75", 29, 29, -1, "", REASON_LOG_TOO_QUIET, "attention nodes" },
	{ "full_offload_alone_is_not_dispatch", "cli-cuda-h100-good-lv4.stderr.txt", &cuda, "tbq3_0", 4, 0,
	  "tbq3_0", "CUDA0 22.75", 29, 29, -1, "", REASON_LOG_TOO_QUIET, "the eval time line, attention nodes" },
	{ "dead_cuda_is_backend_init_failed", "cli-cuda-init-failed.stderr.txt", &cuda, "tbq3_0", 4, 0,
	  "", "", -1, -1, -1, "", REASON_BACKEND_INIT_FAILED, "forward compatibility was attempted" },
	{ "abort_in_set_rows_of_llama_cli_is_op_not_supported", "cli-cuda-set-rows-abort.stderr.txt", &cuda, "qjl1_256", 4, 134,
	  "qjl1_256", "CUDA0 22.75", 29, 29, -1, "", REASON_OP_NOT_SUPPORTED, "SET_ROWS on CUDA0 for cache_k" },
	{ "vulkan_device_of_type_cpu_is_software", "cli-vulkan-llvmpipe-lv5.stderr.txt", &vulkan, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_SOFTWARE_DEVICE, "software" },
	{ "parentheses_in_a_device_s_name_are_no_trouble", "cli-vulkan-rx7900-lv5.stderr.txt", &vulkan, "tbq3_0", 4, 0,
	  "tbq3_0", "Vulkan0 22.75", 29, 29, -1, "", REASON_LOG_TOO_QUIET, "the eval time line" },
	{ "speculation_counters_are_not_the_cache", "cli-speculative-mtp-good.stderr.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, 192, "", REASON_LOG_TOO_QUIET, "the K cache type" },
	{ "llama_cli_with_a_drafter_ran_where_there_is_only_a_cpu", "cpu-stock-v0.4.0-mtp-gemma4.log", &cpu, "f16", 4, 0,
	  "f16", "CPU 1.50", -1, -1, 128, "", REASON_NONE, "" },
	{ "one_warning_line_is_too_quiet", "cli-speculative-not-configured.stderr.txt", &cpu, "f16", 4, 0,
	  "", "", -1, -1, -1, "", REASON_LOG_TOO_QUIET, "the K cache type" },
};

static char *
read_log(const char *folder, const char *file, size_t *len)
{
	char path[512], *p;
	FILE *f;

	if (str_fmt(path, sizeof path, NULL, "%s/%s", folder, file))
		return NULL;
	if ((f = fopen(path, "rb")) == NULL)
		return NULL;
	p = malloc(MAX_LOG);
	assert_non_null(p);
	*len = fread(p, 1, MAX_LOG, f);
	fclose(f);
	return p;
}

static void
facts_check(const struct log_case *c, const struct elog *l)
{
	char kv[256] = "", attn[256] = "";
	int i;

	for (i = 0; i < l->kv_count; i++)
		snprintf(kv + strlen(kv), sizeof kv - strlen(kv), "%s%s %.2f", i ? ", " : "",
			l->kv[i].device, l->kv[i].mib);
	for (i = 0; i < l->attn_count; i++)
		snprintf(attn + strlen(attn), sizeof attn - strlen(attn), "%s%s %u", i ? ", " : "",
			l->attn[i].backend, (unsigned)l->attn[i].nodes);
	assert_string_equal(l->k_type, c->k_type);
	assert_string_equal(kv, c->kv);
	assert_int_equal(l->offloaded, c->offloaded);
	assert_int_equal(l->layers, c->layers);
	assert_int_equal(l->tokens, c->tokens);
	assert_string_equal(attn, c->attn);
}

static void
case_check(const struct log_case *c, const char *log, size_t len)
{
	struct smoke_ask ask = {
		.lane = c->lane, .cache_type = c->asked, .tokens = c->tokens_asked, .exit = c->exit,
	};
	struct smoke_verdict v;
	struct elog l;

	elog_parse(log, len, &l);
	facts_check(c, &l);
	elog_judge(&l, &ask, &v);
	if (strstr(v.detail, c->detail) == NULL)
		print_error("detail: %s\n", v.detail);
	assert_string_equal(reason_name(v.reason), reason_name(c->reason));
	assert_int_equal(v.outcome, reason_outcome(c->reason));
	assert_non_null(strstr(v.detail, c->detail));
	assert_true(v.reason == REASON_NONE || v.hint[0] != '\0');
}

static void
log_case_holds(void **state)
{
	const struct log_case *c = *state;
	size_t len = 0;
	char *log = read_log("fixtures/logs", c->file, &len);

	assert_non_null(log);
	case_check(c, log, len);
	free(log);
}

/* Colours, carriage returns and a spinner in front of every line change nothing. */
static void
log_case_holds_with_terminal_noise(void **state)
{
	static const char noise[] = "\033[1;32m|\b \b\033[0m\033]0;title\a";
	const struct log_case *c = *state;
	size_t i, n = 0, len = 0;
	char *log = read_log("fixtures/logs", c->file, &len), *wild;

	assert_non_null(log);
	wild = malloc(len * 8 + 64);
	assert_non_null(wild);
	for (i = 0; i < len; i++) {
		if ((i == 0 || log[i - 1] == '\n') && n < len * 7) {
			memcpy(wild + n, noise, sizeof noise - 1);
			n += sizeof noise - 1;
		}
		if (log[i] == '\n')
			wild[n++] = '\r';
		wild[n++] = log[i];
	}
	case_check(c, wild, n);
	free(wild);
	free(log);
}

/* The uncut logs, where they are at hand. */
static void
uncut_logs_prove_the_same(void **state)
{
	const char *shared = getenv("VERIFY_SHARED");
	char folder[300], file[160], *log;
	size_t i, len, found = 0;

	(void)state;
	for (i = 0; i < str_count(logs); i++) {
		const char *dir = strncmp(logs[i].file, "cli-", 4) ? "engine-logs" : "probes/llama-cli";
		const char *name = logs[i].file + (strncmp(logs[i].file, "cli-", 4) ? 0 : 4);

		snprintf(folder, sizeof folder, "%s/samples/%s",
			shared != NULL && *shared ? shared : "../shared", dir);
		snprintf(file, sizeof file, "%s", name);
		if ((log = read_log(folder, file, &len)) == NULL)
			continue;
		case_check(&logs[i], log, len);
		free(log);
		found++;
	}
	if (found == 0)
		skip();
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(uncut_logs_prove_the_same),
	};
	struct CMUnitTest cases[2 * str_count(logs)] = { { NULL, NULL, NULL, NULL, NULL } };
	static char noisy[str_count(logs)][128];
	union { const struct log_case *in; void *out; } state;
	size_t i, n = str_count(logs);
	int failed;

	for (i = 0; i < n; i++) {
		state.in = &logs[i];
		snprintf(noisy[i], sizeof noisy[i], "%s_with_terminal_noise", logs[i].name);
		cases[i].name = logs[i].name;
		cases[i].test_func = log_case_holds;
		cases[n + i].name = noisy[i];
		cases[n + i].test_func = log_case_holds_with_terminal_noise;
		cases[i].initial_state = cases[n + i].initial_state = state.out;
	}
	failed = cmocka_run_group_tests_name("engine logs", cases, NULL, NULL);
	failed += cmocka_run_group_tests_name("uncut engine logs", tests, NULL, NULL);
	return failed != 0;
}
