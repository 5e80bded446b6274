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

static const struct lane cpu = { .name = "cpu", .api = API_CPU, .kv_device = "CPU" };
static const struct lane cuda = {
	.name = "cuda", .api = API_CUDA, .kv_device = "CUDA[0-9]*", .offloads = true,
};
static const struct lane vulkan = {
	.name = "vulkan", .api = API_VULKAN, .kv_device = "Vulkan[0-9]*", .offloads = true,
};

/* ---- lines ---- */

static struct elog
parse(const char *log)
{
	struct elog l;

	elog_parse(log, strlen(log), &l);
	return l;
}

static struct smoke_verdict
judge(const struct elog *l, const struct lane *lane, const char *type, int exit, int sig)
{
	struct smoke_ask ask = {
		.lane = lane, .cache_type = type, .tokens = 4, .exit = exit, .signal = sig,
	};
	struct smoke_verdict v;

	elog_judge(l, &ask, &v);
	return v;
}

static enum reason
reason_of(const char *log, const struct lane *lane, const char *type, int exit, int sig)
{
	struct elog l = parse(log);

	return judge(&l, lane, type, exit, sig).reason;
}

#define KV(device, mib, type) \
	"llama_kv_cache: " device " KV buffer size = " mib " MiB\n" \
	"llama_kv_cache: size =    1.53 MiB (  2048 cells,   2 layers,  1/1 seqs), K (" type \
	"):    0.53 MiB, V (f16):    1.00 MiB\n"
#define SPLITS "sched_reserve: graph splits = 2\n"
#define NODE(op, tensor, backend) \
	"node #  1 (" op "): " tensor " (   1K) [" backend "         ] use=1,c=1:  a (   1K) [  CPU         ]\n"
#define GRAPH "## SPLIT #0: CPU # 0 inputs\n"
#define WRITE(backend) NODE("  SET_ROWS", "   cache_k_l0 (view)", backend)
#define SCORE(backend) NODE("FLASH_ATTN", "          __fattn__-0", backend)
#define EVAL \
	"common_perf_print: prompt eval time =      38.63 ms /    17 tokens (    2.27 ms per token,   440.12 tokens per second)\n" \
	"common_perf_print:        eval time =       2.05 ms /     3 runs   (    0.68 ms per token,  1462.70 tokens per second)\n"
#define OFFLOADED "llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:00:06.0) - 142629 MiB free\n" \
	"load_tensors: offloaded 3/3 layers to GPU\n"
#define GOOD_CUDA OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH WRITE("CUDA0") SCORE("CUDA0") EVAL

static void
small_good_log_passes(void **state)
{
	(void)state;
	assert_int_equal(reason_of(GOOD_CUDA, &cuda, "q8_0", 0, 0), REASON_NONE);
	assert_int_equal(reason_of(KV("CPU", "1.53", "q8_0") EVAL, &cpu, "q8_0", 0, 0), REASON_NONE);
}

static void
each_missing_line_is_too_quiet(void **state)
{
	(void)state;
	assert_int_equal(reason_of(KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH WRITE("CUDA0")
		SCORE("CUDA0") EVAL, &cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
	assert_int_equal(reason_of(OFFLOADED SPLITS GRAPH WRITE("CUDA0") SCORE("CUDA0") EVAL,
		&cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
	assert_int_equal(reason_of(OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
		SCORE("CUDA0") EVAL, &cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
	assert_int_equal(reason_of(OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
		WRITE("CUDA0") EVAL, &cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
	assert_int_equal(reason_of(OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
		WRITE("CUDA0") SCORE("CUDA0"), &cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
	assert_int_equal(reason_of("", &cpu, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
}

static void
dry_pass_alone_is_no_allocation(void **state)
{
	struct elog l = parse(KV("CPU", "0.00", "f16") EVAL);

	(void)state;
	assert_int_equal(l.kv_count, 0);
	assert_string_equal(l.k_type, "");
	assert_int_equal(judge(&l, &cpu, "f16", 0, 0).reason, REASON_LOG_TOO_QUIET);
}

static void
last_complete_pass_counts(void **state)
{
	struct elog l = parse(KV("CUDA0", "0.00", "f16") SPLITS "llama_context: constructing llama_context\n"
		KV("CUDA0", "4.00", "q8_0") SPLITS "llama_context: constructing llama_context\n"
		KV("CUDA0", "1.53", "q4_0") SPLITS);

	(void)state;
	assert_string_equal(l.k_type, "q4_0");
	assert_int_equal(l.kv_count, 1);
	assert_true(l.kv[0].mib > 1.52 && l.kv[0].mib < 1.54);
}

/* BR-128: the first match would read 0.00. */
static void
real_buffers_after_zeros_are_read(void **state)
{
	struct elog l = parse(
		"0.00.111.397 I load_tensors:          CPU model buffer size =     0.00 MiB\n"
		"0.00.111.882 I llama_kv_cache:        CPU KV buffer size =     0.00 MiB\n"
		"0.00.205.477 I load_tensors:   CPU_Mapped model buffer size =    32.75 MiB\n"
		"0.00.206.984 I llama_kv_cache:        CPU KV buffer size =     0.50 MiB\n");

	(void)state;
	assert_int_equal(l.kv_count, 1);
	assert_string_equal(l.kv[0].device, "CPU");
	assert_true(l.kv[0].mib == 0.5);
	assert_string_equal(l.k_type, "");
}

static void
sliding_window_model_has_two_caches(void **state)
{
	struct elog l = parse(
		"llama_kv_cache_unified_iswa: creating non-SWA KV cache, size = 4096 cells\n"
		"llama_kv_cache_unified:      CUDA0 KV buffer size =    80.00 MiB\n"
		"llama_kv_cache_unified: size =   80.00 MiB (  4096 cells,   5 layers,  1/1 seqs), K (q8_0):   40.00 MiB, V (q8_0):   40.00 MiB\n"
		"llama_kv_cache_unified_iswa: creating     SWA KV cache, size = 1536 cells\n"
		"llama_kv_cache_unified:      CUDA0 KV buffer size =   174.00 MiB\n"
		"llama_kv_cache_unified: size =  174.00 MiB (  1536 cells,  29 layers,  1/1 seqs), K (q8_0):   87.00 MiB, V (q8_0):   87.00 MiB\n");

	(void)state;
	assert_string_equal(l.k_type, "q8_0");
	assert_int_equal(l.kv_count, 1);
	assert_true(l.kv[0].mib == 254);
}

static void
two_caches_of_two_types_equal_no_asked_type(void **state)
{
	static const char log[] = KV("CPU", "1.00", "q8_0") KV("CPU", "1.00", "f16") EVAL;
	struct elog l = parse(log);

	(void)state;
	assert_string_equal(l.k_type, "q8_0/f16");
	assert_int_equal(reason_of(log, &cpu, "q8_0", 0, 0), REASON_KV_TYPE_DIFFERS);
	assert_int_equal(reason_of(log, &cpu, "f16", 0, 0), REASON_KV_TYPE_DIFFERS);
}

static void
part_of_the_cache_on_the_cpu_fails(void **state)
{
	(void)state;
	assert_int_equal(reason_of(OFFLOADED KV("CUDA0", "1.53", "q8_0") KV("CPU", "0.77", "q8_0")
		SPLITS GRAPH WRITE("CUDA0") SCORE("CUDA0") EVAL, &cuda, "q8_0", 0, 0),
		REASON_KV_NOT_ON_DEVICE);
	assert_int_equal(reason_of(OFFLOADED KV("CUDA_Host", "1.53", "q8_0") SPLITS GRAPH
		WRITE("CUDA0") SCORE("CUDA0") EVAL, &cuda, "q8_0", 0, 0), REASON_KV_NOT_ON_DEVICE);
}

static void
pinned_host_memory_is_no_device_whatever_the_glob(void **state)
{
	struct lane any = cuda;

	(void)state;
	any.kv_device = "CUDA*";
	assert_int_equal(reason_of(GOOD_CUDA, &any, "q8_0", 0, 0), REASON_NONE);
	assert_int_equal(reason_of(OFFLOADED KV("CUDA_Host", "1.53", "q8_0") SPLITS GRAPH
		WRITE("CUDA0") SCORE("CUDA0") EVAL, &any, "q8_0", 0, 0), REASON_KV_NOT_ON_DEVICE);
}

static void
llama_cpp_of_2024_is_understood(void **state)
{
	struct elog l = parse(
		"ggml_cuda_init: found 1 CUDA devices:\n"
		"  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n"
		"llm_load_print_meta: arch             = llama\n"
		"llm_load_tensors: offloading 32 repeating layers to GPU\n"
		"llm_load_tensors: offloaded 33/33 layers to GPU\n"
		"llm_load_tensors:      CUDA0 buffer size =  4095.05 MiB\n"
		"llama_new_context_with_model: n_ctx      = 512\n"
		"llama_new_context_with_model: flash_attn = 0\n"
		"llama_kv_cache_init:      CUDA0 KV buffer size =    64.00 MiB\n"
		"llama_new_context_with_model: KV self size  =   64.00 MiB, K (f16):   32.00 MiB, V (q8_0):   32.00 MiB\n"
		"llama_new_context_with_model:      CUDA0 compute buffer size =    81.00 MiB\n"
		"llama_new_context_with_model: graph splits = 2\n"
		GRAPH
		NODE("       CPY", "k_cache_view-0 (copy", "CUDA0")
		NODE("   MUL_MAT", "                kq-0", "CUDA0")
		"\n"
		"llama_print_timings:        load time =    1040.42 ms\n"
		"llama_print_timings:      sample time =       0.31 ms /     4 runs   (    0.08 ms per token, 12987.01 tokens per second)\n"
		"llama_print_timings: prompt eval time =      22.60 ms /    10 tokens (    2.26 ms per token,   442.48 tokens per second)\n"
		"llama_print_timings:        eval time =      23.35 ms /     3 runs   (    7.78 ms per token,   128.48 tokens per second)\n"
		"llama_print_timings:       total time =      46.63 ms /    13 tokens\n");

	(void)state;
	assert_string_equal(l.k_type, "f16");
	assert_string_equal(l.v_type, "q8_0");
	assert_string_equal(l.architecture, "llama");
	assert_int_equal(l.offloaded, 33);
	assert_int_equal(l.layers, 33);
	assert_int_equal(l.flash_attention, ELOG_FA_DISABLED);
	assert_int_equal(l.prompt_tokens, 10);
	assert_int_equal(l.tokens, 4);
	assert_true(l.kv_write_seen && l.attn_seen);
	assert_int_equal(judge(&l, &cuda, "f16", 0, 0).reason, REASON_NONE);
}

static void
function_names_of_other_versions_are_understood(void **state)
{
	static const char *const names[] = {
		"llama_kv_cache", "llama_kv_cache_unified", "llama_kv_cache_init", "init",
		"0.00.123.456 I llama_kv_cache", "I llama_kv_cache", "cmn  kv_cache",
		"\xe2\x96\x81hello0.00.123.456 I llama_kv_cache", "8123.45.678.901 I llama_kv_cache",
	};
	char log[256];
	struct elog l;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(log, sizeof log, "%s:      ROCm0 KV buffer size =   256.00 MiB\n", names[i]);
		l = parse(log);
		assert_int_equal(l.kv_count, 1);
		assert_string_equal(l.kv[0].device, "ROCm0");
		assert_true(l.kv[0].mib == 256);
	}
}

static void
timings_of_every_printer_are_counted(void **state)
{
	static const char *const names[] = {
		"llama_print_timings:", "llama_perf_context_print:", "common_perf_print:",
		"0.00.317.176 I common_perf_print:",
	};
	char log[256];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(log, sizeof log, "%s        eval time =       2.05 ms /     3 runs   (  0.68 ms per token)\n",
			names[i]);
		assert_int_equal(parse(log).tokens, 4);
	}
	assert_int_equal(parse("slot print_timing: id  0 | task 0 | \n"
		"prompt eval time =     482.12 ms /     2 tokens (  241.06 ms per token)\n"
		"       eval time =    1043.62 ms /     4 tokens (  260.90 ms per token)\n").tokens, 4);
	assert_int_equal(parse("0.02.430.276 I slot print_timing: id  0 | task 0 |        eval time =    1043.62 ms /     4 tokens (  260.90 ms per token)\n").tokens, 4);
}

static void
last_eval_time_line_counts(void **state)
{
	(void)state;
	assert_int_equal(parse("p: eval time = 5.00 ms / 9 runs\np: eval time = 5.00 ms / 2 runs\n").tokens, 3);
}

static void
prompt_of_one_token_is_a_run(void **state)
{
	(void)state;
	assert_int_equal(parse("p: prompt eval time =       0.00 ms /     1 tokens (    0.00 ms per token)\n"
		"p: eval time =       8.05 ms /     4 runs\n").tokens, 4);
}

static void
engine_that_generated_nothing_has_too_few_tokens(void **state)
{
	static const char log[] = KV("CPU", "1.00", "f16")
		"p: prompt eval time =       0.00 ms /     1 tokens (    0.00 ms per token)\n"
		"p: eval time =       0.00 ms /     1 runs\n";

	(void)state;
	assert_int_equal(parse(log).tokens, 0);
	assert_int_equal(reason_of(log, &cpu, "f16", 0, 0), REASON_TOO_FEW_TOKENS);
}

static void
countdown_that_reached_zero_replaces_lost_timings(void **state)
{
#define PREDICT "0.00.276.203 I generate: n_ctx = 2048, n_batch = 2048, n_predict = 4, n_keep = 1\n"
	(void)state;
	assert_int_equal(parse(PREDICT "0.00.317.148 D n_remain: 1\n0.00.317.148 D n_remain: 0\n").tokens, 4);
	assert_int_equal(parse(PREDICT "0.00.317.148 D n_remain: 1\n").tokens, -1);
	assert_int_equal(parse("0.00.317.148 D n_remain: 0\n").tokens, -1);
}

static void
lost_tail_asks_for_another_run(void **state)
{
	struct elog l = parse(KV("CPU", "1.00", "f16"));
	struct smoke_verdict v = judge(&l, &cpu, "f16", 0, 0);

	(void)state;
	assert_int_equal(v.reason, REASON_LOG_TOO_QUIET);
	assert_true(v.again);
	l = parse("");
	assert_false(judge(&l, &cpu, "f16", 0, 0).again);
	l = parse(KV("CPU", "1.00", "f16"));
	assert_false(judge(&l, &cpu, "f16", 1, 0).again);
}

/* ---- placement ---- */

static void
graphs_that_only_reserve_do_not_count(void **state)
{
	struct elog l = parse(OFFLOADED KV("CUDA0", "1.53", "q8_0") "sched_reserve: reserving ...\n"
		GRAPH SCORE("  CPU") "sched_reserve: Flash Attention was auto, set to disabled\n"
		GRAPH SCORE("  CPU") SPLITS
		"graph_reserve: reserving a graph for ubatch with n_tokens =    1, n_seqs =  1, n_outputs =    1\n"
		GRAPH SCORE("  CPU") GRAPH WRITE("CUDA0") SCORE("CUDA0"));

	(void)state;
	assert_int_equal(l.graphs, 1);
	assert_int_equal(l.attn_count, 1);
	assert_string_equal(l.attn[0].backend, "CUDA0");
	assert_int_equal(l.attn[0].nodes, 2);
	assert_int_equal(l.flash_attention, ELOG_FA_DISABLED);
}

/* Once an engine computes, lines that look like an allocation are what a model wrote. */
static void
allocation_after_a_computed_graph_is_text(void **state)
{
	struct elog l = parse(KV("CUDA0", "4.00", "q8_0") SPLITS GRAPH SCORE("  CPU")
		"llama_context: constructing llama_context\n" KV("CUDA1", "1.53", "q4_0") SPLITS
		GRAPH WRITE("CUDA0") SCORE("CUDA0"));

	(void)state;
	assert_string_equal(l.k_type, "q8_0");
	assert_int_equal(l.kv_count, 1);
	assert_string_equal(l.kv[0].device, "CUDA0");
	assert_int_equal(l.graphs, 2);
	assert_int_equal(l.attn_count, 2);
}

static void
embedding_rows_on_the_cpu_are_allowed(void **state)
{
	(void)state;
	assert_int_equal(reason_of(OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
		NODE("  GET_ROWS", "embd", "  CPU") WRITE("CUDA0") SCORE("CUDA0") EVAL, &cuda,
		"q8_0", 0, 0), REASON_NONE);
}

static void
each_attention_op_on_the_cpu_fails(void **state)
{
	static const char *const nodes[] = {
		NODE("FLASH_ATTN", "__fattn__-0", "  CPU"), NODE("   MUL_MAT", "kq-0", "  CPU"),
		NODE("   MUL_MAT", "kqv-0", "  CPU"), NODE("  SOFT_MAX", "kq_soft_max-0", "  CPU"),
		NODE("  SET_ROWS", "cache_k_l0 (view)", "  CPU"),
		NODE("  SET_ROWS", "cache_v_l0 (view)", "  CPU"),
		NODE("       CPY", "cache_k_l0 (view) (p", "  CPU"),
		NODE("ATTN_SCORE", "kq-1", "  CPU"), NODE("FUSED_ATTN", "x", "  CPU"),
	};
	char log[4096];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(nodes); i++) {
		snprintf(log, sizeof log, "%s%s%s", OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
			WRITE("CUDA0") SCORE("CUDA0"), nodes[i], EVAL);
		assert_int_equal(reason_of(log, &cuda, "q8_0", 0, 0), REASON_OP_ON_CPU);
	}
}

static void
attention_on_a_gpu_is_no_pass_of_the_cpu_lane(void **state)
{
	(void)state;
	assert_int_equal(reason_of(KV("CPU", "1.53", "q8_0") SPLITS GRAPH WRITE("  CPU")
		NODE("   MUL_MAT", "kq-0", "CUDA0") EVAL, &cpu, "q8_0", 0, 0),
		REASON_KV_NOT_ON_DEVICE);
	assert_int_equal(reason_of(KV("CPU", "1.53", "q8_0") SPLITS GRAPH WRITE("  CPU")
		NODE("   MUL_MAT", "kq-0", " BLAS") EVAL, &cpu, "q8_0", 0, 0), REASON_NONE);
}

/* A machine with a GPU may offload what the processor's cache is read by. */
static void
cpu_lane_beside_a_gpu_must_show_where_it_computed(void **state)
{
	static const char *const devices[] = {
		"load_tensors: offloaded 0/3 layers to GPU\n",
		"ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA H200, compute capability 9.0, VMM: yes\n",
		"ggml_vulkan: 0 = NVIDIA H200 (NVIDIA) | uma: 0 | fp16: 1 | warp size: 32\n",
		"llama_model_load_from_file_impl: using device CUDA0 (NVIDIA H200) - 1000 MiB free\n",
	};
	char log[4096];
	size_t i;

	(void)state;
	assert_int_equal(reason_of(KV("CPU", "1.53", "q8_0") EVAL, &cpu, "q8_0", 0, 0), REASON_NONE);
	for (i = 0; i < str_count(devices); i++) {
		snprintf(log, sizeof log, "%s%s", devices[i], KV("CPU", "1.53", "q8_0") EVAL);
		if (reason_of(log, &cpu, "q8_0", 0, 0) == REASON_NONE)
			fail_msg("passes: %s", devices[i]);
		snprintf(log, sizeof log, "%s%s", devices[i], KV("CPU", "1.53", "q8_0") SPLITS GRAPH
			WRITE("  CPU") NODE("   MUL_MAT", "kq-0", "  CPU") EVAL);
		if (reason_of(log, &cpu, "q8_0", 0, 0) != REASON_NONE)
			fail_msg("no pass: %s", devices[i]);
	}
}

static void
copy_of_the_cache_that_is_read_is_no_write(void **state)
{
	struct elog l = parse(KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH
		NODE("       CPY", "cache_k_l0 (view) (p", "CUDA0"));

	(void)state;
	assert_int_equal(l.attn[0].nodes, 1);
	assert_false(l.kv_write_seen);
}

static void
more_devices_than_the_tables_hold_prove_nothing(void **state)
{
	char log[8192] = OFFLOADED;
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		snprintf(log + strlen(log), sizeof log - strlen(log),
			"llama_kv_cache: CUDA%d KV buffer size = 1.00 MiB\n", i);
	snprintf(log + strlen(log), sizeof log - strlen(log), "%s",
		KV("CUDA0", "1.00", "q8_0") SPLITS GRAPH WRITE("CUDA0") SCORE("CUDA0") EVAL);
	assert_true(parse(log).overflow);
	assert_int_equal(reason_of(log, &cuda, "q8_0", 0, 0), REASON_LOG_TOO_QUIET);
}

/* ---- offload, devices ---- */

/* BR-040 and BR-007 */
static void
one_device_found_and_no_layer_offloaded_fails(void **state)
{
	static const char log[] =
		"ggml_vulkan: Found 1 Vulkan devices:\n"
		"Vulkan0: NVIDIA GeForce RTX 3060 Laptop GPU (NVIDIA) | uma: 0 | fp16: 1 | warp size: 32\n"
		"llm_load_tensors: offloaded 0/37 layers to GPU\n" KV("CPU", "8.00", "f16") EVAL;
	struct elog l = parse(log);

	(void)state;
	assert_false(l.software_device);
	assert_int_equal(l.offloaded, 0);
	assert_int_equal(l.layers, 37);
	assert_int_equal(judge(&l, &vulkan, "f16", 0, 0).reason, REASON_NOT_OFFLOADED);
}

static void
layers_left_behind_are_not_offloaded(void **state)
{
	(void)state;
	assert_int_equal(reason_of("load_tensors: offloaded 20/37 layers to GPU\n"
		KV("CUDA0", "8.00", "f16") EVAL, &cuda, "f16", 0, 0), REASON_NOT_OFFLOADED);
}

/* BR-008 */
static void
no_gpu_warning_is_a_fact_and_no_verdict(void **state)
{
	static const char log[] =
		"warning: no usable GPU found, --gpu-layers option will be ignored\n" GOOD_CUDA;

	(void)state;
	assert_true(parse(log).no_gpu_warning);
	assert_int_equal(reason_of(log, &cuda, "q8_0", 0, 0), REASON_NONE);
}

/* BR-041 */
static void
software_device_beats_whatever_passed(void **state)
{
	static const char device[] = "ggml_vulkan: 0 = llvmpipe (LLVM 20.1.8, 256 bits) (llvmpipe) | uma: 0 | fp16: 0 | bf16: 0 | warp size: 8\n";
	static const char good[] = "using device Vulkan0 (NVIDIA H200) (0000:00:06.0) - 142629 MiB free\n"
		"load_tensors: offloaded 3/3 layers to GPU\n" KV("Vulkan0", "1.53", "q8_0") SPLITS GRAPH
		WRITE("Vulka") SCORE("Vulka") EVAL;
	char log[4096];

	(void)state;
	assert_int_equal(reason_of(good, &vulkan, "q8_0", 0, 0), REASON_NONE);
	snprintf(log, sizeof log, "%s%s", device, good);
	assert_int_equal(reason_of(log, &vulkan, "q8_0", 0, 0), REASON_SOFTWARE_DEVICE);
	snprintf(log, sizeof log, "ggml_vulkan: Warning: Device type is CPU. This is probably not the device you want.\n%s", good);
	assert_int_equal(reason_of(log, &vulkan, "q8_0", 0, 0), REASON_SOFTWARE_DEVICE);
	snprintf(log, sizeof log, "llama_prepare_model_devices: using device Vulkan0 (SwiftShader Device (LLVM 10.0.0)) (unknown id) - 2048 MiB free\n%s", good);
	assert_int_equal(reason_of(log, &vulkan, "q8_0", 0, 0), REASON_SOFTWARE_DEVICE);
}

static void
backend_that_fails_beside_the_lane_s_own_does_not_matter(void **state)
{
	(void)state;
	assert_int_equal(reason_of("ggml_vulkan: No devices found.\n" GOOD_CUDA, &cuda, "q8_0", 0, 0),
		REASON_NONE);
	assert_int_equal(reason_of("ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device is detected\n"
		KV("CPU", "1.00", "f16") EVAL, &cpu, "f16", 0, 0), REASON_NONE);
}

static void
device_s_name_keeps_its_parentheses(void **state)
{
	(void)state;
	assert_string_equal(parse("llama_prepare_model_devices: using device Vulkan0 (llvmpipe (LLVM 15.0.6, 256 bits)) (unknown id) - 2048 MiB free\n").device,
		"Vulkan0 (llvmpipe (LLVM 15.0.6, 256 bits))");
	assert_string_equal(parse("llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3090) - 23886 MiB free\n").device,
		"CUDA0 (NVIDIA GeForce RTX 3090)");
}

static void
lost_device_is_device_lost(void **state)
{
	(void)state;
	assert_int_equal(reason_of(GOOD_CUDA "terminate called after throwing an instance of 'vk::DeviceLostError'\n"
		"  what():  vk::Queue::submit: ErrorDeviceLost\n", &cuda, "q8_0", -1, 6), REASON_DEVICE_LOST);
	assert_int_equal(reason_of("ggml_vulkan: device lost on Vulkan0, likely caused by previous submission (nodes 0 to 9):\n",
		&vulkan, "q8_0", -1, 6), REASON_DEVICE_LOST);
}

static void
too_little_memory_is_no_failure_of_the_code(void **state)
{
	static const char log[] =
		"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 81920.00 MiB on device 0: cudaMalloc failed: out of memory\n"
		"llama_model_load: error loading model: unable to allocate CUDA0 buffer\n";

	(void)state;
	assert_int_equal(reason_outcome(reason_of(log, &cuda, "f16", 1, 0)), OUTCOME_BLOCKED);
	assert_true(parse(log).out_of_memory);
}

/* ---- ends ---- */

/* BR-028, BR-029 and BR-031 */
static void
v_cache_wants_flash_attention_in_every_wording(void **state)
{
	static const char *const texts[] = {
		"llama_new_context_with_model: V cache quantization requires flash_attn\n"
		"common_init_from_params: failed to create context with model 'm.gguf'\n"
		"main: error: unable to load model\n",
		"failed to initialize the context: quantized V cache was requested, but this requires Flash Attention\n",
		"llama_init_from_model: failed to initialize the context: quantized V cache was requested, but this requires Flash Attention\n",
		"0.00.001.000 E llama_init_from_model: quantized V cache requires flash_attn to be enabled\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		assert_int_equal(reason_of(texts[i], &cuda, "q8_0", 1, 0), REASON_V_CACHE_NEEDS_FA);
		assert_int_equal(reason_of(texts[i], &cuda, "q8_0", -1, 11), REASON_V_CACHE_NEEDS_FA);
	}
}

/* BR-032 */
static void
op_that_no_backend_runs_is_named_with_tensor_and_device(void **state)
{
	struct elog l = parse("/src/ggml/src/ggml-backend.cpp:898: pre-allocated tensor (cache_k_l3 (view)) in a buffer (CUDA0) that cannot run the operation (SET_ROWS)\n");

	(void)state;
	assert_string_equal(l.op_unsupported, "SET_ROWS on CUDA0 for cache_k");
	assert_true(l.aborted);
	assert_int_equal(judge(&l, &cuda, "turbo3", -1, 6).reason, REASON_OP_NOT_SUPPORTED);
}

static void
aborts_of_every_form_are_engine_abort(void **state)
{
	static const char *const texts[] = {
		"/src/ggml/src/ggml.c:1244: GGML_ASSERT(ne % ggml_blck_size(type) == 0) failed\n",
		"D:\\a\\ggml\\src\\ggml-cuda\\ggml-cuda.cu:84: CUDA error\n",
		"GGML_ASSERT: ggml.c:1234: false\n",
		"terminate called after throwing an instance of 'std::runtime_error'\n",
		"libc++abi: terminating due to uncaught exception of type std::runtime_error\n",
		"/lib/libggml-base.so.0(ggml_abort+0x15b)[0x7f0000000000]\n",
		"Memory access fault by GPU node-1 (Agent handle: 0x5581) on address 0x7f00. Reason: Unknown.\n",
	};
	char log[4096];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		snprintf(log, sizeof log, "%s%s", GOOD_CUDA, texts[i]);
		assert_int_equal(reason_of(log, &cuda, "q8_0", -1, 6), REASON_ENGINE_ABORT);
		assert_int_equal(reason_of(log, &cuda, "q8_0", 0, 0), REASON_ENGINE_ABORT);
	}
	assert_false(parse("0.00.219.664 D set_abort_callback: call\n").aborted);
}

static void
signal_is_kept_apart_from_exit_code(void **state)
{
	struct elog l = parse(GOOD_CUDA "0.00.001.000 E decode: something broke\n");
	struct smoke_verdict v = judge(&l, &cuda, "q8_0", -1, 11);

	(void)state;
	assert_int_equal(v.reason, REASON_ENGINE_CRASH);
	assert_string_equal(v.detail, "the engine died by signal 11: decode: something broke");
	assert_int_equal(judge(&l, &cuda, "q8_0", 139, 0).reason, REASON_ENGINE_CRASH);
	v = judge(&l, &cuda, "q8_0", 3, 0);
	assert_int_equal(v.reason, REASON_ENGINE_EXIT);
	assert_string_equal(v.detail, "the engine ended with exit code 3: decode: something broke");
}

static void
last_error_line_is_the_headline(void **state)
{
	(void)state;
	assert_string_equal(parse("0.00.001.000 E one: first\n0.00.002.000 E two: second\n0.00.003.000 I three: third\n").error,
		"two: second");
	assert_string_equal(parse("main: error: unable to create context\n").error,
		"main: error: unable to create context");
	assert_string_equal(parse("main : failed to eval\n").error, "main : failed to eval");
	assert_string_equal(parse("0.00.003.000 D graph: failed to allocate graph, reserving\n").error, "");
}

static void
error_line_of_llama_cli_fails_a_run_with_tokens(void **state)
{
	static const char log[] = KV("CPU", "1.00", "f16") EVAL "|\b \bError: context is full\n";

	(void)state;
	assert_true(parse(log).error_prefix);
	assert_int_equal(reason_of(log, &cpu, "f16", 0, 0), REASON_ENGINE_ERROR);
}

static void
time_limit_and_cancel_are_incomplete(void **state)
{
	struct elog l = parse(GOOD_CUDA), talk = parse("please use llama-completion instead\n> \n> \n");
	struct smoke_ask ask = { .lane = &cuda, .cache_type = "q8_0", .tokens = 4, .exit = -1, .signal = 9 };
	struct smoke_verdict v;

	(void)state;
	ask.timed_out = true;
	elog_judge(&l, &ask, &v);
	assert_int_equal(v.reason, REASON_TIMEOUT);
	elog_judge(&talk, &ask, &v);
	assert_int_equal(v.reason, REASON_DRIVER_REFUSES);
	ask.cancelled = true;
	elog_judge(&l, &ask, &v);
	assert_int_equal(v.reason, REASON_CANCELLED);
	assert_int_equal(v.outcome, OUTCOME_INCOMPLETE);
}

static void
cut_log_says_how_much_is_missing(void **state)
{
	struct elog l = parse(GOOD_CUDA);
	struct smoke_ask ask = { .lane = &cuda, .cache_type = "q8_0", .tokens = 4, .dropped = 12345 };
	struct smoke_verdict v;

	(void)state;
	elog_judge(&l, &ask, &v);
	assert_int_equal(v.reason, REASON_LOG_TOO_QUIET);
	/* the first token is out before the cut: all graphs that prove anything are there */
	l = parse(OFFLOADED KV("CUDA0", "1.53", "q8_0") SPLITS GRAPH WRITE("CUDA0") SCORE("CUDA0")
		"n_remain: 3\n\n#verify 0123456789abcdef cut 12345\n" EVAL);
	elog_judge(&l, &ask, &v);
	assert_int_equal(v.outcome, OUTCOME_PASS);
	assert_non_null(strstr(v.detail, "12345 bytes of log cut out"));
}

static void
unknown_architecture_is_no_malformed_model(void **state)
{
	(void)state;
	assert_int_equal(reason_of("llama_model_load: error loading model: unknown model architecture: 'gemma9'\n"
		"llama_model_load_from_file_impl: failed to load model\n", &cpu, "f16", 1, 0),
		REASON_MODEL_NOT_SUITABLE);
	assert_int_equal(reason_of("llama_model_load: error loading model: key not found in model: llama.context_length\n",
		&cpu, "f16", 1, 0), REASON_MODEL_MALFORMED);
	assert_int_equal(reason_of("gguf_init_from_file: failed to open GGUF file '/m (No such file).gguf' (Permission denied)\n",
		&cpu, "f16", 1, 0), REASON_MODEL_UNREADABLE);
}

static void
trouble_of_the_dry_pass_is_forgotten_by_the_real_one(void **state)
{
	(void)state;
	assert_int_equal(reason_of("llama_model_load_from_file_impl: failed to load model\n"
		"common_fit_params: encountered an error while trying to fit params to free device memory: failed to load model\n"
		GOOD_CUDA, &cuda, "q8_0", 0, 0), REASON_NONE);
}

/* ---- hostile bytes ---- */

static void
words_inside_other_text_prove_nothing(void **state)
{
	struct elog l = parse(
		"srv    load_model: loading model '/m/Error: CUDA0 KV buffer size = 1.00 MiB.gguf'\n"
		"prompt: \"llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB\"\n"
		"the CUDA0 KV buffer size = 1.00 MiB\n"
		"llama_kv_cache: CUDA0 KV buffer size = x MiB\n"
		"llama_kv_cache: CUDA0 KV buffer size = 1.00 MiB and more\n"
		"I saw an Error: here\n"
		"aborted GGML_ASSERT\n");

	(void)state;
	assert_int_equal(l.kv_count, 0);
	assert_false(l.error_prefix);
	assert_false(l.aborted);
}

static void
long_lines_and_zero_bytes_are_survived(void **state)
{
	size_t n = 3u << 20, i;
	char *log = malloc(n);
	struct elog l;

	(void)state;
	assert_non_null(log);
	memset(log, 'x', n);
	elog_parse(log, n, &l);
	assert_int_equal(l.tokens, -1);
	memset(log, 0, n);
	memcpy(log + n - 45, "\nllama_kv_cache: CPU KV buffer size = 2.00 MiB", 45);
	elog_parse(log, n, &l);
	assert_int_equal(l.kv_count, 0); /* its last letter is cut off */
	memcpy(log + n - 46, "\nllama_kv_cache: CPU KV buffer size = 2.00 MiB", 46);
	elog_parse(log, n, &l);
	assert_int_equal(l.kv_count, 1);
	for (i = 0; i < n; i++)
		log[i] = (char)(i * 2654435761u >> 13);
	elog_parse(log, n, &l);
	assert_true(l.kv_count <= ELOG_MAX_BUFFERS);
	elog_parse(NULL, 0, &l);
	assert_int_equal(l.tokens, -1);
	free(log);
}

static void
texts_shown_hold_no_control_bytes(void **state)
{
	struct elog l = parse("0.00.001.000 E f: \x01\x02\xff\x1b[31mred\x7f\n");
	size_t i;

	(void)state;
	assert_true(str_is_utf8(l.error, strlen(l.error)));
	for (i = 0; l.error[i] != '\0'; i++)
		assert_true((unsigned char)l.error[i] >= 0x20 && l.error[i] != 0x7f);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_good_log_passes),
		cmocka_unit_test(each_missing_line_is_too_quiet),
		cmocka_unit_test(dry_pass_alone_is_no_allocation),
		cmocka_unit_test(last_complete_pass_counts),
		cmocka_unit_test(real_buffers_after_zeros_are_read),
		cmocka_unit_test(sliding_window_model_has_two_caches),
		cmocka_unit_test(two_caches_of_two_types_equal_no_asked_type),
		cmocka_unit_test(part_of_the_cache_on_the_cpu_fails),
		cmocka_unit_test(pinned_host_memory_is_no_device_whatever_the_glob),
		cmocka_unit_test(llama_cpp_of_2024_is_understood),
		cmocka_unit_test(function_names_of_other_versions_are_understood),
		cmocka_unit_test(timings_of_every_printer_are_counted),
		cmocka_unit_test(last_eval_time_line_counts),
		cmocka_unit_test(prompt_of_one_token_is_a_run),
		cmocka_unit_test(engine_that_generated_nothing_has_too_few_tokens),
		cmocka_unit_test(countdown_that_reached_zero_replaces_lost_timings),
		cmocka_unit_test(lost_tail_asks_for_another_run),
		cmocka_unit_test(graphs_that_only_reserve_do_not_count),
		cmocka_unit_test(allocation_after_a_computed_graph_is_text),
		cmocka_unit_test(embedding_rows_on_the_cpu_are_allowed),
		cmocka_unit_test(each_attention_op_on_the_cpu_fails),
		cmocka_unit_test(attention_on_a_gpu_is_no_pass_of_the_cpu_lane),
		cmocka_unit_test(cpu_lane_beside_a_gpu_must_show_where_it_computed),
		cmocka_unit_test(copy_of_the_cache_that_is_read_is_no_write),
		cmocka_unit_test(more_devices_than_the_tables_hold_prove_nothing),
		cmocka_unit_test(one_device_found_and_no_layer_offloaded_fails),
		cmocka_unit_test(layers_left_behind_are_not_offloaded),
		cmocka_unit_test(no_gpu_warning_is_a_fact_and_no_verdict),
		cmocka_unit_test(software_device_beats_whatever_passed),
		cmocka_unit_test(backend_that_fails_beside_the_lane_s_own_does_not_matter),
		cmocka_unit_test(device_s_name_keeps_its_parentheses),
		cmocka_unit_test(lost_device_is_device_lost),
		cmocka_unit_test(too_little_memory_is_no_failure_of_the_code),
		cmocka_unit_test(v_cache_wants_flash_attention_in_every_wording),
		cmocka_unit_test(op_that_no_backend_runs_is_named_with_tensor_and_device),
		cmocka_unit_test(aborts_of_every_form_are_engine_abort),
		cmocka_unit_test(signal_is_kept_apart_from_exit_code),
		cmocka_unit_test(last_error_line_is_the_headline),
		cmocka_unit_test(error_line_of_llama_cli_fails_a_run_with_tokens),
		cmocka_unit_test(time_limit_and_cancel_are_incomplete),
		cmocka_unit_test(cut_log_says_how_much_is_missing),
		cmocka_unit_test(unknown_architecture_is_no_malformed_model),
		cmocka_unit_test(trouble_of_the_dry_pass_is_forgotten_by_the_real_one),
		cmocka_unit_test(words_inside_other_text_prove_nothing),
		cmocka_unit_test(long_lines_and_zero_bytes_are_survived),
		cmocka_unit_test(texts_shown_hold_no_control_bytes),
	};

	return cmocka_run_group_tests_name("engine log lines", tests, NULL, NULL);
}
