/* Logs that nobody meant to be read: cut, glued, forged, of other machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/elog.h"
#include "common/judge.h"
#include "common/str.h"

#define MAX_LOG (1u << 20)

static const struct lane *
lane(const char *name)
{
	const struct lane *l = lane_find(name);

	assert_non_null(l);
	return l;
}

static struct smoke_verdict
judge_bytes(const char *log, size_t len, const char *lane_name, const char *type, int tokens, bool sealed,
	uint64_t dropped)
{
	struct smoke_ask ask = {.lane = lane(lane_name), .cache_type = type, .tokens = tokens, .raw = !sealed,
		.dropped = dropped};
	struct elog *l = calloc(1, sizeof *l);
	struct smoke_verdict v;

	assert_non_null(l);
	elog_parse(log, len, l);
	elog_judge(l, &ask, &v);
	free(l);
	return v;
}

static enum reason
cuda_reason(const char *log)
{
	return judge_bytes(log, strlen(log), "cuda", "q8_0", 4, true, 0).reason;
}

#define DEVICE "llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:00:06.0) - 142629 MiB free\n"
#define OFFLOADED "load_tensors: offloaded 3/3 layers to GPU\n"
#define KV "llama_kv_cache:      CUDA0 KV buffer size =     1.53 MiB\n" \
	"llama_kv_cache: size =    1.53 MiB (  2048 cells,   2 layers,  1/1 seqs), K (q8_0):    0.53 MiB, V (f16):    1.00 MiB\n"
#define RESERVED "sched_reserve: graph splits = 2\n"
#define GRAPH "## SPLIT #0: CPU # 0 inputs\n"
#define NODE(op, tensor, backend) \
	"node #  1 (" op "): " tensor " (   1K) [" backend "         ] use=1,c=1:  a (   1K) [  CPU         ]\n"
#define WRITE NODE("  SET_ROWS", "   cache_k_l0 (view)", "CUDA0")
#define SCORE(backend) NODE("   MUL_MAT", "                kq-0", backend)
#define EVAL \
	"common_perf_print: prompt eval time =      38.63 ms /    17 tokens (    2.27 ms per token,   440.12 tokens per second)\n" \
	"common_perf_print:        eval time =       2.05 ms /     3 runs   (    0.68 ms per token,  1462.70 tokens per second)\n" \
	"common_perf_print:       total time =      38.63 ms /    17 tokens\n"
#define HEAD DEVICE OFFLOADED KV RESERVED
#define GOOD HEAD GRAPH WRITE SCORE("CUDA0") EVAL
#define REMAIN "n_remain: 3\n"

static char *
read_log(const char *file, size_t *len)
{
	char path[512], *p = malloc(MAX_LOG);
	FILE *f;

	assert_non_null(p);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "fixtures/logs/%s", file), 0);
	f = fopen(path, "rb");
	assert_non_null(f);
	*len = fread(p, 1, MAX_LOG, f);
	fclose(f);
	return p;
}

/* ---- cut off ---- */

static const struct good {
	const char *file, *lane, *type;
	int tokens;
} goods[] = {
	{"h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log", "cuda", "q8_0", 4},
	{"h200-cuda-fork-96dd1a8-fa-off-f16.log", "cuda", "f16", 8},
	{"h200-vulkan-stock-v0.4.0-q8_0.log", "vulkan", "q8_0", 8},
	{"h200-vulkan-stock-v0.4.0-fa-on-k-q8_0-v-q8_0.log", "vulkan", "q8_0", 8},
	{"cpu-stock-v0.4.0-full-q8_0.log", "cpu", "q8_0", 4},
	{"cpu-stock-v0.4.0-one-token-f16.log", "cpu", "f16", 1},
	{"cpu-fork-96dd1a8-full-tbq3_tcq.log", "cpu", "tbq3_tcq", 4},
};

static void
no_prefix_of_a_good_log_passes(void **state)
{
	uint32_t random = 1;
	size_t i, k, len, step;
	char *log;

	(void)state;
	for (i = 0; i < str_count(goods); i++) {
		log = read_log(goods[i].file, &len);
		assert_int_equal(judge_bytes(log, len, goods[i].lane, goods[i].type, goods[i].tokens, false, 0).reason,
			REASON_NONE);
		step = len / 40 + 1;
		for (k = 0; k < len; k++) {
			random = random * 1664525u + 1013904223u;
			/* every byte of the end, and some before it */
			if (k + 200 < len && random % step != 0)
				continue;
			if (judge_bytes(log, k, goods[i].lane, goods[i].type, goods[i].tokens, false, 0).outcome !=
			    OUTCOME_PASS)
				continue;
			print_error("%s passes with %zu of %zu bytes\n", goods[i].file, k, len);
			fail();
		}
		free(log);
	}
}

/* The whole log of a gate: its last section says how the engine ended. */
static void
no_prefix_of_a_gate_s_log_passes(void **state)
{
	static const char mark[] = "#verify 0123456789abcdef ";
	struct err e = {0};
	struct suite *su = NULL;
	struct judge_ask ask = {.lane = lane("cpu"), .family = "q8_0"};
	struct judgement j;
	size_t len, n, k;
	char *log = read_log("cpu-stock-v0.4.0-full-q8_0.log", &len), *gate = malloc(MAX_LOG);
	judge_fn judge = judge_of(GATE_GRAPH_SMOKE);

	(void)state;
	assert_non_null(gate);
	assert_int_equal(suite_builtin("llama.cpp", &su, &e), 0);
	ask.suite = su;
	n = (size_t)snprintf(gate, MAX_LOG, "%sfacts {}\npreload=none\n%send {}\n%srun {\"argv\":[\"/x/llama-completion\","
		"\"-m\",\"/m.gguf\",\"-n\",\"4\",\"--cache-type-k\",\"q8_0\"]}\n", mark, mark, mark);
	memcpy(gate + n, log, len);
	n += len;
	n += (size_t)snprintf(gate + n, MAX_LOG - n, "%send {\"exit\":0,\"signal\":0,\"ms\":97,\"timedOut\":false,"
		"\"cancelled\":false,\"bytes\":%zu,\"dropped\":0}\n", mark, len);
	judge(gate, n, &ask, &j);
	if (j.outcome != OUTCOME_PASS)
		print_error("%s\n", j.detail);
	assert_int_equal(j.outcome, OUTCOME_PASS);
	for (k = 0; k < n; k++) {
		if (k + 200 < n && k % 1499 != 0)
			continue;
		judge(gate, k, &ask, &j);
		if (j.outcome == OUTCOME_PASS)
			print_error("passes with %zu of %zu bytes\n", k, n);
		assert_int_not_equal(j.outcome, OUTCOME_PASS);
	}
	suite_free(su);
	free(gate);
	free(log);
}

static void
no_log_without_one_of_its_needed_lines_passes(void **state)
{
	static const char *const parts[] = {DEVICE, OFFLOADED, KV, GRAPH, WRITE, SCORE("CUDA0"), EVAL};
	char log[4096];
	size_t i, k;

	(void)state;
	assert_int_equal(cuda_reason(GOOD), REASON_NONE);
	for (i = 0; i < str_count(parts); i++) {
		log[0] = '\0';
		for (k = 0; k < str_count(parts); k++)
			if (k != i)
				strncat(log, parts[k], sizeof log - strlen(log) - 1);
		assert_int_equal(cuda_reason(log), REASON_LOG_TOO_QUIET);
	}
}

static void
bytes_that_were_cut_out_may_have_held_a_node_on_the_cpu(void **state)
{
	(void)state;
	assert_int_equal(judge_bytes(GOOD, sizeof GOOD - 1, "cuda", "q8_0", 4, true, 1000).reason,
		REASON_LOG_TOO_QUIET);
}

/* ---- two threads ---- */

static void
node_glued_behind_another_is_seen(void **state)
{
	(void)state;
	assert_int_equal(cuda_reason(HEAD GRAPH WRITE SCORE("CUDA0")
		"node # 27 (  GET_ROWS): embd (   1K) [  CPU         ] use=1,c=1:"
		"node # 28 (   MUL_MAT): kq-1 (   1K) [  CPU         ] use=1,c=1:\n" EVAL), REASON_OP_ON_CPU);
}

static void
torn_node_is_no_pass_and_no_failure(void **state)
{
	(void)state;
	assert_int_equal(cuda_reason(HEAD GRAPH WRITE SCORE("CUDA0")
		"node # 28 (   MUL_MAT): kq-1 (  load_tensors: done\n 1K) [  CPU         ] use=1,c=1:\n" EVAL),
		REASON_LOG_TOO_QUIET);
	assert_int_equal(cuda_reason(HEAD GRAPH WRITE SCORE("CUDA0") "node # 28 (   MUL\n" EVAL),
		REASON_LOG_TOO_QUIET);
}

static void
cache_buffer_glued_behind_another_line_is_no_pass(void **state)
{
	(void)state;
	assert_int_not_equal(cuda_reason(DEVICE OFFLOADED KV
		"load_tensors: donellama_kv_cache:        CPU KV buffer size =     0.77 MiB\n" RESERVED GRAPH WRITE
		SCORE("CUDA0") EVAL), REASON_NONE);
}

static void
every_computed_graph_must_show_its_attention(void **state)
{
	(void)state;
	assert_int_equal(cuda_reason(HEAD GRAPH WRITE SCORE("CUDA0") GRAPH NODE("       MUL", "norm-0", "CUDA0") EVAL),
		REASON_LOG_TOO_QUIET);
	assert_int_equal(cuda_reason(HEAD GRAPH WRITE SCORE("CUDA0") GRAPH WRITE SCORE("CUDA0") EVAL), REASON_NONE);
}

/* ---- text of the model ---- */

static void
words_of_the_model_hide_no_node_on_the_cpu(void **state)
{
	static const char *const words[] = {
		"sched_reserve: reserving ...\n",
		"graph_reserve: reserving a graph for ubatch with n_tokens =    1, n_seqs =  1, n_outputs =    1\n",
		"0.00.413.571 D graph_reserve: reserving a graph for ubatch with n_tokens =    1\n",
		"llama_context: constructing llama_context\n", KV, "loaded meta data with 3 key-value pairs\n",
		"sched_reserve: graph splits = 2\n",
	};
	char log[8192];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(words); i++) {
		snprintf(log, sizeof log, "%s%s%s%s", HEAD GRAPH WRITE SCORE("CUDA0") REMAIN, words[i],
			GRAPH WRITE SCORE("  CPU"), EVAL);
		if (cuda_reason(log) != REASON_OP_ON_CPU)
			print_error("hidden by %s\n", words[i]);
		assert_int_equal(cuda_reason(log), REASON_OP_ON_CPU);
	}
}

static void
words_of_the_model_are_no_graph_that_was_computed(void **state)
{
	(void)state;
	assert_int_equal(cuda_reason(HEAD "generate: n_ctx = 2048, n_batch = 2048, n_predict = 4, n_keep = 1\n"
		REMAIN GRAPH WRITE SCORE("CUDA0") EVAL), REASON_LOG_TOO_QUIET);
}

/* A prompt is echoed before the first token, without a stamp: in a log of stamped lines the
 * engine's own nodes have one. */
static void
words_of_the_prompt_are_no_graph_that_was_computed(void **state)
{
#define D "0.00.100.000 D "
	static const char stamped[] = D DEVICE D OFFLOADED D "llama_kv_cache:      CUDA0 KV buffer size =     1.53 MiB\n"
		D "llama_kv_cache: size =    1.53 MiB (  2048 cells,   2 layers,  1/1 seqs), K (q8_0):    0.53 MiB, V (f16):    1.00 MiB\n"
		D RESERVED "0.00.100.000 I generate: n_ctx = 2048, n_batch = 2048, n_predict = 4, n_keep = 1\n";
	char log[8192];

	(void)state;
	snprintf(log, sizeof log, "%s%s", stamped, GRAPH WRITE SCORE("CUDA0") D REMAIN EVAL);
	assert_int_equal(cuda_reason(log), REASON_LOG_TOO_QUIET);
	snprintf(log, sizeof log, "%s%s", stamped, D GRAPH D WRITE D SCORE("CUDA0") D REMAIN EVAL);
	assert_int_equal(cuda_reason(log), REASON_NONE);
}

static void
words_of_the_model_change_neither_device_nor_type_nor_layers(void **state)
{
	struct elog *l = calloc(1, sizeof *l);
	static const char log[] = HEAD GRAPH WRITE SCORE("CUDA0") REMAIN
		"using device Vulkan0 (llvmpipe (LLVM 15.0.6, 256 bits)) (unknown id) - 1 MiB free\n"
		"load_tensors: offloaded 1/3 layers to GPU\nllama_kv_cache: CPU KV buffer size = 3.00 MiB\n" EVAL;

	(void)state;
	assert_non_null(l);
	elog_parse(log, sizeof log - 1, l);
	assert_int_equal(l->offloaded, 3);
	assert_int_equal(l->kv_count, 1);
	assert_false(l->software_device);
	assert_string_equal(l->device_pci, "0000:00:06.0");
	free(l);
}

/* ---- other machines ---- */

static void
big_model_with_hundreds_of_unnamed_nodes_passes(void **state)
{
	char *log = calloc(1, MAX_LOG);
	size_t n = 0;
	int i;

	(void)state;
	assert_non_null(log);
	n += (size_t)snprintf(log + n, MAX_LOG - n, "%s", HEAD GRAPH);
	for (i = 0; i < 2000; i++)
		n += (size_t)snprintf(log + n, MAX_LOG - n,
			"node #%3d (   MUL_MAT): node_%d (   1K) [CUDA0         ] use=1,c=1:\n"
			"node #%3d (  SET_ROWS): cache_k_l%d (view) (   1K) [CUDA0         ] use=1,c=1:\n"
			"node #%3d (   MUL_MAT): kq-%d (   1K) [CUDA0         ] use=1,c=1:\n",
			3 * i, 3 * i, 3 * i + 1, i / 20, 3 * i + 2, i / 20);
	snprintf(log + n, MAX_LOG - n, "%s", EVAL);
	assert_int_equal(cuda_reason(log), REASON_NONE);
	free(log);
}

static void
device_that_is_only_listed_is_not_the_one_used(void **state)
{
	static const char good[] =
		"ggml_vulkan: Found 2 Vulkan devices:\n"
		"ggml_vulkan: 0 = AMD Radeon RX 7900 XTX (RADV NAVI31) (radv) | uma: 0 | fp16: 1 | warp size: 64\n"
		"ggml_vulkan: 1 = llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe) | uma: 0 | fp16: 0 | warp size: 8\n"
		"using device Vulkan0 (AMD Radeon RX 7900 XTX (RADV NAVI31)) (0000:03:00.0) - 24000 MiB free\n"
		OFFLOADED "llama_kv_cache:    Vulkan0 KV buffer size =     1.53 MiB\n"
		"llama_kv_cache: size =    1.53 MiB (  2048 cells,   2 layers,  1/1 seqs), K (q8_0):    0.53 MiB, V (f16):    1.00 MiB\n"
		RESERVED GRAPH NODE("  SET_ROWS", "cache_k_l0 (view)", "Vulka") NODE("FLASH_ATTN", "node_27", "Vulka") EVAL;
	char bad[sizeof good + 200];

	(void)state;
	assert_int_equal(judge_bytes(good, sizeof good - 1, "vulkan", "q8_0", 4, true, 0).reason, REASON_NONE);
	/* both are used: half of the layers ran in software */
	snprintf(bad, sizeof bad, "using device Vulkan1 (llvmpipe (LLVM 15.0.6, 256 bits)) (unknown id) - 1 MiB free\n%s",
		good);
	assert_int_equal(judge_bytes(bad, strlen(bad), "vulkan", "q8_0", 4, true, 0).reason, REASON_SOFTWARE_DEVICE);
}

static void
device_of_another_lane_is_no_pass(void **state)
{
	(void)state;
	assert_int_not_equal(judge_bytes(GOOD, sizeof GOOD - 1, "rocm", "q8_0", 4, true, 0).outcome, OUTCOME_PASS);
	assert_int_not_equal(judge_bytes(GOOD, sizeof GOOD - 1, "vulkan", "q8_0", 4, true, 0).outcome, OUTCOME_PASS);
	assert_int_not_equal(judge_bytes(GOOD, sizeof GOOD - 1, "cpu", "q8_0", 4, true, 0).outcome, OUTCOME_PASS);
}

static void
abort_of_an_op_in_every_spelling_is_op_not_supported(void **state)
{
	static const char *const aborts[] = {
		("ggml_cuda_compute_forward: op not supported cache_k_l0 (view) (SET_ROWS)\n"
		"/src/ggml/src/ggml-cuda/ggml-cuda.cu:2534: GGML_ASSERT(ok) failed\n"),
		"0.00.413.571 E ggml_cuda_compute_forward: op not supported cache_k_l0 (view) (SET_ROWS)\n",
		"ggml_vulkan: Missing op: SET_ROWS for f32 and i64 to tbq3_0\n/src/ggml-vulkan.cpp:9: fatal error\n",
		"Missing op: SET_ROWS for f32 to tbq3_0\n",
		"C:\\src\\ggml-backend.cpp:974: pre-allocated tensor (cache_k_l0 (view)) in a buffer (CUDA0) that cannot run the operation (SET_ROWS)\r\n",
		"ggml_backend_sched_split_graph: pre-allocated tensor (cache_k_l0) in a buffer (CUDA0) that cannot run the operation (SET_ROWS)\n",
		"GGML_ABORT: pre-allocated tensor (cache_k_l0) in a buffer (CUDA0) that cannot run the operation (SET_ROWS)\n",
		"ggml_metal_encode_node: error: unsupported op 'SET_ROWS'\n",
	};
	char log[4096];
	struct smoke_ask ask = {.lane = lane("cuda"), .cache_type = "q8_0", .tokens = 4, .exit = 134};
	struct elog *l = calloc(1, sizeof *l);
	struct smoke_verdict v;
	size_t i;

	(void)state;
	assert_non_null(l);
	for (i = 0; i < str_count(aborts); i++) {
		snprintf(log, sizeof log, "%s%s", DEVICE OFFLOADED KV, aborts[i]);
		elog_parse(log, strlen(log), l);
		elog_judge(l, &ask, &v);
		if (v.reason != REASON_OP_NOT_SUPPORTED)
			print_error("%s: %s\n", aborts[i], v.detail);
		assert_int_equal(v.reason, REASON_OP_NOT_SUPPORTED);
		assert_non_null(strstr(v.detail, "SET_ROWS"));
		assert_int_not_equal(v.line, 0);
	}
	free(l);
}

static void
large_log_is_read_once(void **state)
{
	size_t size = (size_t)48 << 20, n = sizeof HEAD - 1, k;
	char *log = malloc(size);

	(void)state;
	assert_non_null(log);
	/* one line without end: looked at once, not once for each of its bytes */
	memset(log, 'x', size);
	memcpy(log, HEAD, n);
	for (k = n; k < size / 2; k += 7)
		log[k] = '\r';
	memcpy(log + size - sizeof EVAL, "\n" EVAL, sizeof EVAL - 1);
	assert_int_equal(judge_bytes(log, size, "cuda", "q8_0", 4, true, 0).reason, REASON_LOG_TOO_QUIET);
	free(log);
}

/* ---- in pieces ---- */

static void
elog_in_pieces(const char *log, size_t len, size_t piece, struct elog *out)
{
	struct elog_stream *s = NULL;
	struct err e;
	size_t at, n;

	assert_int_equal(elog_open(out, &s, &e), 0);
	for (at = 0; at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		elog_add(s, log + at, n);
	}
	elog_close(s);
}

static void
log_read_in_pieces_says_the_same(void **state)
{
	static const size_t pieces[] = {1, 2, 7, 80, 4096, 65536, MAX_LOG};
	struct elog *whole = calloc(1, sizeof *whole), *parts = calloc(1, sizeof *parts);
	size_t i, k, len;
	char *log;

	(void)state;
	assert_true(whole != NULL && parts != NULL);
	for (i = 0; i < str_count(goods); i++) {
		log = read_log(goods[i].file, &len);
		elog_parse(log, len, whole);
		for (k = 0; k < str_count(pieces); k++) {
			elog_in_pieces(log, len, pieces[k], parts);
			assert_memory_equal(whole, parts, sizeof *whole);
		}
		/* without its last newline; with a lone CR in a line */
		log[len / 2] = '\r';
		elog_parse(log, len - 1, whole);
		elog_in_pieces(log, len - 1, 100, parts);
		assert_memory_equal(whole, parts, sizeof *whole);
		free(log);
	}
	elog_parse("", 0, whole);
	elog_in_pieces("", 0, 1, parts);
	assert_memory_equal(whole, parts, sizeof *whole);
	free(whole);
	free(parts);
}

/* What is behind the room for a line may be a node on the CPU. */
static void
line_longer_than_its_room_is_no_pass(void **state)
{
	struct elog *l = calloc(1, sizeof *l);
	struct smoke_ask ask = {.lane = lane("cuda"), .cache_type = "q8_0", .tokens = 4};
	struct smoke_verdict v;
	size_t size = ELOG_MAX_RAW + (ELOG_MAX_RAW >> 1), n = sizeof GOOD - sizeof EVAL;
	char *log = malloc(size);

	(void)state;
	assert_true(l != NULL && log != NULL);
	memcpy(log, GOOD, n);
	memset(log + n, '\r', size - n);
	memcpy(log + size - sizeof EVAL, "\n" EVAL, sizeof EVAL);
	elog_in_pieces(log, size - 1, 65536, l);
	elog_judge(l, &ask, &v);
	assert_int_equal(v.reason, REASON_LOG_TOO_QUIET);
	free(log);
	free(l);
}

static void
sentence_and_verdict_name_the_line_of_the_file(void **state)
{
	static const char log[] = HEAD GRAPH WRITE SCORE("  CPU") EVAL;
	struct elog *l = calloc(1, sizeof *l);
	struct smoke_ask ask = {.lane = lane("cuda"), .cache_type = "q8_0", .tokens = 4, .lines_before = 100};
	struct smoke_verdict v;
	struct suite *su = NULL;
	struct err e;

	(void)state;
	assert_non_null(l);
	assert_int_equal(suite_builtin("eliza-1", &su, &e), 0);
	elog_parse(log, sizeof log - 1, l);
	elog_judge(l, &ask, &v);
	/* device, layers, two of the cache, reserved, the graph, its write: then the node */
	assert_int_equal(v.line, 108);
	assert_non_null(strstr(v.detail, "MUL_MAT kq-0 in line 108 of the log"));
	ask.placement = suite_placement_of(su, "f16");
	elog_judge(l, &ask, &v);
	assert_int_equal(v.line, 108);
	assert_non_null(strstr(v.detail, "MUL_MAT kq on CPU in 1 layer, 1 nodes of 1 graphs, the first in line 108"));
	suite_free(su);
	free(l);
}

/* ---- at random, the same every time ---- */

static uint32_t
next_random(uint32_t *x, uint32_t below)
{
	*x = *x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)*x * below >> 32);
}

/* Puts a piece of another place of the log into it: what a second thread does. */
static size_t
interleave(char *log, size_t len, size_t size, uint32_t *x, bool whole_lines)
{
	size_t from = next_random(x, (uint32_t)len), at = next_random(x, (uint32_t)len), n, i;
	char piece[600];

	n = 1 + next_random(x, sizeof piece - 1);
	n = from + n < len ? n : len - from;
	if (whole_lines) {
		/* a foreign line, that no thread of this engine prints as it stands */
		n = (size_t)snprintf(piece, sizeof piece, "0.00.123.456 D ggml_foo: thread %u says %u\n",
			(unsigned)from, (unsigned)at);
	} else {
		memcpy(piece, log + from, n);
	}
	for (i = 0; i < n; i++)
		if (!whole_lines && next_random(x, 20) == 0)
			piece[i] = '\n';
	if (len + n > size)
		return len;
	memmove(log + at + n, log + at, len - at);
	memcpy(log + at, piece, n);
	return len + n;
}

/* Whatever is torn, glued or lost in it: nodes that ran on the CPU do not become a pass. */
static void
damage_makes_no_pass_of_a_failure(void **state)
{
	size_t len, whole, k;
	char *good = read_log("h200-cuda-fork-96dd1a8-fa-off-tbq3_0.log", &whole), *log = malloc(MAX_LOG);
	uint32_t x = 7, at, n;
	int i, round;

	(void)state;
	assert_non_null(log);
	for (round = 0; round < 24; round++) {
		memcpy(log, good, whole);
		len = whole;
		for (i = 0; i < 1 + round % 30; i++) {
			k = len;
			switch (next_random(&x, 3)) {
			case 0:
				len = interleave(log, len, MAX_LOG, &x, false);
				break;
			case 1: /* lost */
				at = next_random(&x, (uint32_t)k);
				n = 1 + next_random(&x, 3000);
				n = at + n < k ? n : (uint32_t)k - at;
				memmove(log + at, log + at + n, k - at - n);
				len = k - n;
				break;
			default: /* glued */
				for (at = next_random(&x, (uint32_t)k); at < k && log[at] != '\n'; at++)
					;
				if (at < k)
					log[at] = ' ';
			}
		}
		assert_int_not_equal(judge_bytes(log, len, "cuda", "tbq3_0", 8, false, 0).outcome, OUTCOME_PASS);
		assert_int_not_equal(judge_bytes(log, len, "cuda", "tbq3_0", 8, true, 0).outcome, OUTCOME_PASS);
	}
	free(log);
	free(good);
}

/* A line of another thread in the middle of any other makes nothing run on the CPU. */
static void
foreign_lines_make_no_failure_of_a_pass(void **state)
{
	size_t len, whole;
	char *good = read_log("h200-cuda-stock-v0.4.0-sched-debug2-q8_0.log", &whole), *log = malloc(MAX_LOG);
	struct smoke_verdict v;
	uint32_t x = 11;
	int i, round, passed = 0;

	(void)state;
	assert_non_null(log);
	for (round = 0; round < 24; round++) {
		memcpy(log, good, whole);
		len = whole;
		for (i = 0; i < 1 + round % 8; i++)
			len = interleave(log, len, MAX_LOG, &x, true);
		v = judge_bytes(log, len, "cuda", "q8_0", 4, true, 0);
		if (v.outcome == OUTCOME_FAIL)
			print_error("round %d: %s %s\n", round, reason_name(v.reason), v.detail);
		assert_int_not_equal(v.outcome, OUTCOME_FAIL);
		passed += v.outcome == OUTCOME_PASS;
	}
	/* most places are in lines that nobody needs */
	assert_true(passed > 4);
	free(log);
	free(good);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_prefix_of_a_good_log_passes),
		cmocka_unit_test(no_prefix_of_a_gate_s_log_passes),
		cmocka_unit_test(no_log_without_one_of_its_needed_lines_passes),
		cmocka_unit_test(bytes_that_were_cut_out_may_have_held_a_node_on_the_cpu),
		cmocka_unit_test(node_glued_behind_another_is_seen),
		cmocka_unit_test(torn_node_is_no_pass_and_no_failure),
		cmocka_unit_test(cache_buffer_glued_behind_another_line_is_no_pass),
		cmocka_unit_test(every_computed_graph_must_show_its_attention),
		cmocka_unit_test(words_of_the_model_hide_no_node_on_the_cpu),
		cmocka_unit_test(words_of_the_model_are_no_graph_that_was_computed),
		cmocka_unit_test(words_of_the_prompt_are_no_graph_that_was_computed),
		cmocka_unit_test(words_of_the_model_change_neither_device_nor_type_nor_layers),
		cmocka_unit_test(big_model_with_hundreds_of_unnamed_nodes_passes),
		cmocka_unit_test(device_that_is_only_listed_is_not_the_one_used),
		cmocka_unit_test(device_of_another_lane_is_no_pass),
		cmocka_unit_test(abort_of_an_op_in_every_spelling_is_op_not_supported),
		cmocka_unit_test(large_log_is_read_once),
		cmocka_unit_test(log_read_in_pieces_says_the_same),
		cmocka_unit_test(line_longer_than_its_room_is_no_pass),
		cmocka_unit_test(sentence_and_verdict_name_the_line_of_the_file),
		cmocka_unit_test(damage_makes_no_pass_of_a_failure),
		cmocka_unit_test(foreign_lines_make_no_failure_of_a_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
