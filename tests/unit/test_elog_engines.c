/* What engines of other years, models and machines print, and what a user concludes from it. */
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

#define USING(name) "llama_model_load_from_file_impl: using device " name " - 16000 MiB free\n"
#define OFFLOADED(n, m) "load_tensors: offloading output layer to GPU\nload_tensors: offloaded " n "/" m " layers to GPU\n"
#define BUFFER(d, mib) "llama_kv_cache:      " d " KV buffer size =   " mib " MiB\n"
#define SIZE(k, v) "llama_kv_cache: size =  136.00 MiB (  4096 cells,  32 layers,  1/1 seqs), K (" k "):   68.00 MiB, V (" v "):   68.00 MiB\n"
#define CONTEXT "llama_context: constructing llama_context\nllama_context: flash_attn    = enabled\n"
#define COMPUTE(d) "sched_reserve:      " d " compute buffer size =   258.50 MiB\nsched_reserve:  CUDA_Host compute buffer size =    12.01 MiB\n"
#define SPLITS "sched_reserve: graph nodes  = 1030\nsched_reserve: graph splits = 2 (with bs=512), 1 (with bs=1)\n"
#define SPLIT "## SPLIT #0: CPU # 0 inputs\n"
#define NODE(op, tensor, backend) \
	"node #  1 (" op "): " tensor " (   1K) [" backend "         ] use=1,c=1:  a (   1K) [  CPU         ]\n"
#define EMBED NODE("  GET_ROWS", "                embd", "  CPU")
#define WRITE(b) NODE("  SET_ROWS", "   cache_k_l0 (view)", b) NODE("  SET_ROWS", "   cache_v_l0 (view)", b)
#define FLASH(b) NODE("FLASH_ATTN", "       __fattn__-0", b)
#define SCORES(b) NODE("   MUL_MAT", "                kq-0", b) NODE("  SOFT_MAX", "       kq_soft_max-0", b) NODE("   MUL_MAT", "               kqv-0", b)
#define EVAL \
	"llama_perf_context_print: prompt eval time =      38.63 ms /    17 tokens (    2.27 ms per token,   440.12 tokens per second)\n" \
	"llama_perf_context_print:        eval time =       2.05 ms /     3 runs   (    0.68 ms per token,  1462.70 tokens per second)\n" \
	"llama_perf_context_print:       total time =      40.68 ms /    20 tokens\n"
/* The lines of one device, whole. */
#define MACHINE(name, d) USING(name) OFFLOADED("33", "33") CONTEXT BUFFER(d, "136.00") SIZE("q8_0", "q8_0") COMPUTE(d) SPLITS
#define GRAPH(b) SPLIT EMBED WRITE(b) FLASH(b)
#define CUDA MACHINE("CUDA0 (NVIDIA H200) (0000:00:06.0)", "CUDA0")

struct row {
	const char *what, *lane, *log;
	int exit;
	enum reason wanted;
};

static struct smoke_verdict
judge_row(const struct row *r)
{
	struct smoke_ask ask = {.lane = lane_find(r->lane), .cache_type = "q8_0", .tokens = 4, .exit = r->exit};
	struct elog *l = calloc(1, sizeof *l);
	struct suite *s = NULL;
	struct smoke_verdict v;

	assert_non_null(ask.lane);
	assert_non_null(l);
	assert_int_equal(suite_builtin("llama.cpp", &s, NULL), 0);
	ask.placement = suite_placement_of(s, "q8_0");
	elog_parse(r->log, strlen(r->log), l);
	elog_judge(l, &ask, &v);
	suite_free(s);
	free(l);
	return v;
}

static void
rows_hold(const struct row *rows, size_t n)
{
	struct smoke_verdict v;
	size_t i, bad = 0;

	for (i = 0; i < n; i++) {
		v = judge_row(&rows[i]);
		if (v.reason == rows[i].wanted)
			continue;
		bad++;
		print_error("%s: wanted %s, got %s: %s\n", rows[i].what, reason_name(rows[i].wanted), reason_name(v.reason), v.detail);
	}
	assert_int_equal(bad, 0);
}

static void
machines_of_other_makers_pass_on_their_lane(void **state)
{
	static const struct row rows[] = {
		{"CUDA", "cuda", CUDA GRAPH("CUDA0") EVAL, 0, REASON_NONE},
		{"without flash attention", "cuda", CUDA SPLIT EMBED WRITE("CUDA0") SCORES("CUDA0") EVAL, 0, REASON_NONE},
		{"ROCm", "rocm", "ggml_cuda_init: found 1 ROCm devices:\n  Device 0: AMD Instinct MI300X, gfx942:sramecc+:xnack- (0x942), VMM: no, Wave Size: 64\n"
			MACHINE("ROCm0 (AMD Instinct MI300X) (0000:c1:00.0)", "ROCm0") GRAPH("ROCm0") EVAL, 0, REASON_NONE},
		{"RADV", "vulkan", "ggml_vulkan: Found 1 Vulkan devices:\n"
			"ggml_vulkan: 0 = AMD Radeon RX 7900 XTX (RADV NAVI31) (radv) | uma: 0 | fp16: 1 | bf16: 0 | warp size: 64 | shared memory: 65536 | int dot: 1 | matrix cores: KHR_coopmat\n"
			MACHINE("Vulkan0 (AMD Radeon RX 7900 XTX (RADV NAVI31)) (0000:03:00.0)", "Vulkan0") GRAPH("Vulka") EVAL, 0, REASON_NONE},
		{"ANV", "vulkan", "ggml_vulkan: Found 1 Vulkan devices:\n"
			"ggml_vulkan: 0 = Intel(R) Arc(tm) A770 Graphics (DG2) (Intel open-source Mesa driver) | uma: 0 | fp16: 1 | bf16: 0 | warp size: 32 | shared memory: 65536 | int dot: 1 | matrix cores: KHR_coopmat\n"
			MACHINE("Vulkan0 (Intel(R) Arc(tm) A770 Graphics (DG2)) (0000:03:00.0)", "Vulkan0") GRAPH("Vulka") EVAL, 0, REASON_NONE},
		{"integrated", "vulkan", "ggml_vulkan: 0 = AMD Radeon 780M Graphics (RADV PHOENIX) (radv) | uma: 1 | fp16: 1 | bf16: 0 | warp size: 64\n"
			MACHINE("Vulkan0 (AMD Radeon 780M Graphics (RADV PHOENIX)) (0000:c4:00.0)", "Vulkan0") GRAPH("Vulka") EVAL, 0, REASON_NONE},
		{"a device without a PCI address", "vulkan", MACHINE("Vulkan0 (Adreno (TM) 740) (unknown id)", "Vulkan0") GRAPH("Vulka") EVAL, 0, REASON_NONE},
		{"CPU", "cpu", CONTEXT BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") GRAPH("  CPU") EVAL, 0, REASON_NONE},
		{"CPU with BLAS", "cpu", CONTEXT BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") SPLIT EMBED WRITE("  CPU")
			NODE("   MUL_MAT", "Qcur-0", " BLAS") SCORES("  CPU") EVAL, 0, REASON_NONE},
		{"the eleventh device", "cuda", MACHINE("CUDA10 (NVIDIA H200) (0000:00:16.0)", "CUDA10") GRAPH("CUDA1") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

static void
another_lane_s_device_is_no_pass(void **state)
{
	static const struct row rows[] = {
		{"ROCm on cuda", "cuda", MACHINE("ROCm0 (AMD Instinct MI300X) (0000:c1:00.0)", "ROCm0") GRAPH("ROCm0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"CUDA on rocm", "rocm", CUDA GRAPH("CUDA0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"SYCL on vulkan", "vulkan", MACHINE("SYCL0 (Intel(R) Data Center GPU Max 1550) (unknown id)", "SYCL0") GRAPH("SYCL0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"Metal on cuda", "cuda", MACHINE("Metal (Apple M4 Max) (unknown id)", "Metal") GRAPH("Metal") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"MTL0 on cpu", "cpu", MACHINE("MTL0 (Apple M4 Max) (unknown id)", "MTL0") GRAPH("MTL0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"CUDA on cpu", "cpu", CUDA GRAPH("CUDA0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		/* the cache stayed behind, the layers did not: where attention ran must be shown */
		{"a GPU that keeps no cache, on cpu", "cpu", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33") CONTEXT
			BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"layers on a GPU, on cpu", "cpu", OFFLOADED("33", "33") CONTEXT BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"a GPU that does nothing, on cpu", "cpu", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("0", "33") CONTEXT
			BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("  CPU") EVAL, 0, REASON_NONE},
		{"attention on a GPU, on cpu", "cpu", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("0", "33") CONTEXT
			BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

static void
layers_over_two_devices_pass_when_both_are_the_lane_s(void **state)
{
	static const struct row rows[] = {
		{"two cards", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") USING("CUDA1 (NVIDIA H200) (0000:00:07.0)") OFFLOADED("33", "33") CONTEXT
			BUFFER("CUDA0", "72.00") BUFFER("CUDA1", "64.00") SIZE("q8_0", "q8_0") COMPUTE("CUDA0") SPLITS SPLIT EMBED WRITE("CUDA0")
			FLASH("CUDA0") "## SPLIT #1: CUDA1 # 2 inputs\n" NODE("  SET_ROWS", "cache_k_l17 (view)", "CUDA1") NODE("FLASH_ATTN", "__fattn__-17", "CUDA1")
			EVAL, 0, REASON_NONE},
		{"a card and the CPU", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33") CONTEXT BUFFER("CUDA0", "72.00")
			BUFFER("CPU", "64.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"a card and another maker's", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") USING("Vulkan1 (AMD Radeon) (0000:03:00.0)")
			OFFLOADED("33", "33") CONTEXT BUFFER("CUDA0", "72.00") BUFFER("Vulkan1", "64.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("CUDA0") EVAL, 0,
			REASON_KV_NOT_ON_DEVICE},
		{"one layer of attention on the CPU", "cuda", CUDA GRAPH("CUDA0") NODE("FLASH_ATTN", "__fattn__-31", "  CPU") EVAL, 0, REASON_OP_ON_CPU},
		{"only the soft max", "cuda", CUDA SPLIT EMBED WRITE("CUDA0") NODE("   MUL_MAT", "kq-0", "CUDA0")
			NODE("  SOFT_MAX", "kq_soft_max-0", "  CPU") NODE("   MUL_MAT", "kqv-0", "CUDA0") EVAL, 0, REASON_OP_ON_CPU},
		{"experts on the CPU", "cuda", CUDA GRAPH("CUDA0") NODE("MUL_MAT_ID", "ffn_moe_gate-0", "  CPU") EVAL, 0, REASON_NONE},
		{"a norm on the CPU", "cuda", CUDA GRAPH("CUDA0") NODE("  RMS_NORM", "norm-0", "  CPU") EVAL, 0, REASON_NONE},
		{"12 of 33 layers", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("12", "33") CONTEXT BUFFER("CPU", "80.00")
			BUFFER("CUDA0", "56.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_NOT_OFFLOADED},
		{"--no-kv-offload", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33") CONTEXT BUFFER("CPU", "136.00")
			SIZE("q8_0", "q8_0") SPLITS GRAPH("  CPU") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"weights of the CPU beside", "cuda", "load_tensors:   CPU_Mapped model buffer size =   102.54 MiB\nload_tensors:        CUDA0 model buffer size =  4095.05 MiB\n"
			"load_tensors:    CUDA_Host model buffer size =   102.54 MiB\n" CUDA GRAPH("CUDA0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

static void
models_of_other_kinds_are_understood(void **state)
{
	static const struct row rows[] = {
		{"two caches of a sliding window", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("35", "35") CONTEXT
			"llama_kv_cache_iswa: creating non-SWA KV cache, size = 4096 cells\n" BUFFER("CUDA0", "80.00") SIZE("q8_0", "q8_0")
			"llama_kv_cache_iswa: creating     SWA KV cache, size = 1536 cells\n" BUFFER("CUDA0", "174.00") SIZE("q8_0", "q8_0")
			COMPUTE("CUDA0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_NONE},
		{"one of them on the CPU", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("35", "35") CONTEXT
			BUFFER("CUDA0", "80.00") SIZE("q8_0", "q8_0") BUFFER("CPU", "174.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("CUDA0") EVAL, 0,
			REASON_KV_NOT_ON_DEVICE},
		{"one of them in f16", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("35", "35") CONTEXT
			BUFFER("CUDA0", "80.00") SIZE("q8_0", "q8_0") BUFFER("CUDA0", "174.00") SIZE("f16", "f16") SPLITS GRAPH("CUDA0") EVAL, 0,
			REASON_KV_TYPE_DIFFERS},
		{"recurrent and attention", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("49", "49") CONTEXT
			BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0")
			"llama_memory_recurrent:      CUDA0 RS buffer size =    75.38 MiB\n"
			"llama_memory_recurrent: size =   75.38 MiB (     1 cells,  48 layers,  1 seqs), R (f32):    3.38 MiB, S (f32):   72.00 MiB\n"
			COMPUTE("CUDA0") SPLITS GRAPH("CUDA0") NODE("  SSM_CONV", "conv_output_raw-0", "CUDA0") NODE("       CPY", "cache_s_l0 (view) (copy", "CUDA0")
			EVAL, 0, REASON_NONE},
		{"recurrent alone: no cache to test", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("49", "49") CONTEXT
			"llama_memory_recurrent:      CUDA0 RS buffer size =    75.38 MiB\n"
			"llama_memory_recurrent: size =   75.38 MiB (     1 cells,  48 layers,  1 seqs), R (f32):    3.38 MiB, S (f32):   72.00 MiB\n"
			COMPUTE("CUDA0") SPLITS SPLIT EMBED NODE("  SSM_SCAN", "node_40", "CUDA0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"latent attention, no V cache", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("62", "62") CONTEXT BUFFER("CUDA0", "68.00")
			"llama_kv_cache: size =   68.00 MiB (  4096 cells,  61 layers,  1/1 seqs), K (q8_0):   68.00 MiB, V (q8_0):    0.00 MiB\n"
			COMPUTE("CUDA0") SPLITS SPLIT EMBED NODE("  SET_ROWS", "cache_k_l0 (view)", "CUDA0") NODE("   MUL_MAT", "kq-0", "CUDA0") EVAL, 0, REASON_NONE},
		{"an older name of the cache", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33")
			"llama_kv_cache_unified:      CUDA0 KV buffer size =   136.00 MiB\n"
			"llama_kv_cache_unified: size =  136.00 MiB (  4096 cells,  32 layers,  1 seqs), K (q8_0):   68.00 MiB, V (q8_0):   68.00 MiB\n"
			"llama_context: graph splits = 2\n" GRAPH("CUDA0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* The device has no memory or no code for the chip; the code under test does wrong; the
 * device fell off: four answers, and who reads them does four things. */
static void
ends_of_every_kind_have_their_reason(void **state)
{
#define AT "  current device: 0, in function ggml_backend_cuda_synchronize at /src/ggml/src/ggml-cuda/ggml-cuda.cu:2500\n" \
	"  cudaStreamSynchronize(cuda_ctx->stream())\n/src/ggml/src/ggml-cuda/ggml-cuda.cu:88: CUDA error\n"
	static const struct row rows[] = {
		{"no memory", "cuda", CUDA "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory\n"
			"alloc_tensor_range: failed to allocate CUDA0 buffer of size 4294967296\n", 1, REASON_MODEL_NOT_SUITABLE},
		{"no memory, aborted", "cuda", CUDA "CUDA error: out of memory\n" AT, 134, REASON_MODEL_NOT_SUITABLE},
		{"no memory, of ROCm", "rocm", "ROCm error: out of memory\n" AT, 134, REASON_MODEL_NOT_SUITABLE},
		{"no memory, of Vulkan", "vulkan", "ggml_vulkan: Device memory allocation of size 4294967296 failed.\n"
			"ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\n", 1, REASON_MODEL_NOT_SUITABLE},
		{"no code for the chip", "cuda", CUDA "CUDA error: no kernel image is available for execution on the device\n" AT, 134, REASON_NO_CODE_FOR_DEVICE},
		{"no code, in the arch list", "cuda", CUDA "/src/ggml/src/ggml-cuda/mmq.cu:128: ERROR: CUDA kernel mul_mat_q has no device code compatible with CUDA arch 700. ggml-cuda.cu was compiled for: 800,900\n",
			134, REASON_NO_CODE_FOR_DEVICE},
		{"no code, of ROCm", "rocm", "ROCm error: invalid device function\n" AT, 134, REASON_NO_CODE_FOR_DEVICE},
		{"no code, of rocBLAS", "rocm", "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1032\n", 134,
			REASON_NO_CODE_FOR_DEVICE},
		{"hipErrorNoBinaryForGpu", "rocm", "\"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!\"\n", 134, REASON_NO_CODE_FOR_DEVICE},
		{"PTX of another toolkit", "cuda", "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n" AT, 134, REASON_NO_CODE_FOR_DEVICE},
		{"wrong access", "cuda", CUDA "CUDA error: an illegal memory access was encountered\n" AT, 134, REASON_ENGINE_ABORT},
		{"an assertion", "cuda", CUDA "/src/ggml/src/ggml-cuda/fattn.cu:210: GGML_ASSERT(K->ne[1] % 256 == 0) failed\n", 134, REASON_ENGINE_ABORT},
		{"a device lost", "vulkan", "terminate called after throwing an instance of 'vk::DeviceLostError'\n  what():  vk::Queue::submit: ErrorDeviceLost\n", 134,
			REASON_DEVICE_LOST},
		{"a device that fell off", "cuda", "CUDA error: GPU is lost\n" AT, 134, REASON_DEVICE_LOST},
		{"a fault of memory", "rocm", "Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Unknown.\n", 134, REASON_ENGINE_ABORT},
		{"no driver for the runtime", "cuda", "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version\n"
			CONTEXT BUFFER("CPU", "136.00") SIZE("q8_0", "q8_0") EVAL, 0, REASON_BACKEND_INIT_FAILED},
		{"segmentation fault", "cuda", CUDA GRAPH("CUDA0"), 139, REASON_ENGINE_CRASH},
		{"killed", "cuda", CUDA GRAPH("CUDA0"), 137, REASON_ENGINE_CRASH},
		/* a lack of memory that the engine got over is none */
		{"got over", "cuda", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9999.00 MiB on device 0: cudaMalloc failed: out of memory\n"
			CUDA GRAPH("CUDA0") EVAL, 0, REASON_NONE},
		{"got over, and then an assertion", "cuda", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9999.00 MiB on device 0: cudaMalloc failed: out of memory\n"
			CUDA "/src/ggml/src/ggml-cuda/fattn.cu:210: GGML_ASSERT(K->ne[1] % 256 == 0) failed\n", 134, REASON_ENGINE_ABORT},
		/* nobody gave the exit code: the log tells of the end */
		{"no memory, exit not told", "cuda", CUDA "CUDA error: out of memory\n" AT, 0, REASON_MODEL_NOT_SUITABLE},
		{"no code, exit not told", "cuda", CUDA "CUDA error: no kernel image is available for execution on the device\n" AT, 0, REASON_NO_CODE_FOR_DEVICE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

static void
trial_graphs_say_nothing_of_the_run(void **state)
{
	static const struct row rows[] = {
		{"flash attention is tried on the CPU", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33") CONTEXT BUFFER("CUDA0", "136.00")
			SIZE("q8_0", "q8_0") "sched_reserve: reserving ...\n" SPLIT FLASH("  CPU") "sched_reserve: Flash Attention was auto, set to enabled\n"
			SPLIT FLASH("  CPU") COMPUTE("CUDA0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_NONE},
		{"nothing but trials", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("33", "33") CONTEXT BUFFER("CUDA0", "136.00")
			SIZE("q8_0", "q8_0") "sched_reserve: reserving ...\n" GRAPH("CUDA0") COMPUTE("CUDA0") SPLITS EVAL, 0, REASON_LOG_TOO_QUIET},
		{"a dry pass before the real one", "cuda", USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") CONTEXT BUFFER("CUDA0", "0.00") SIZE("f16", "f16")
			SPLITS OFFLOADED("33", "33") CONTEXT BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") COMPUTE("CUDA0") SPLITS GRAPH("CUDA0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* The first lines of nodes had no use count; the cache was written by copies. */
static void
nodes_of_2024_are_understood(void **state)
{
#define OLD(op, tensor, b) \
	"node #  7 (" op "): " tensor " (   8K) [" b "         ]:            Kcur-0 (   8K) [CUDA0         ]         k_cache_view-0 (   8K) [CUDA0         ]\n"
#define OLD_HEAD "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n" \
	"llm_load_tensors: offloaded 33/33 layers to GPU\n" \
	"llama_new_context_with_model: n_ctx      = 512\nllama_kv_cache_init:      CUDA0 KV buffer size =    64.00 MiB\n" \
	"llama_new_context_with_model: KV self size  =   64.00 MiB, K (q8_0):   32.00 MiB, V (f16):   32.00 MiB\n" \
	"llama_new_context_with_model: graph splits = 2\n## SPLIT #0: CUDA0 # 1 inputs: [inp_embd (   8K)] \n"
	static const struct row rows[] = {
		{"on the device", "cuda", OLD_HEAD OLD("       CPY", "k_cache_view-0 (copy", "CUDA0") OLD("   MUL_MAT", "                kq-0", "CUDA0") EVAL, 0, REASON_NONE},
		{"without sources", "cuda", OLD_HEAD "node #  6 (      VIEW): cache_k_l0 (   8K) [CUDA0         ]:\n"
			OLD("       CPY", "k_cache_view-0 (copy", "CUDA0") OLD("   MUL_MAT", "                kq-0", "CUDA0") EVAL, 0, REASON_NONE},
		{"on the CPU", "cuda", OLD_HEAD OLD("       CPY", "k_cache_view-0 (copy", "CUDA0") OLD("   MUL_MAT", "                kq-0", "  CPU") EVAL, 0, REASON_OP_ON_CPU},
	};

	struct smoke_verdict v = judge_row(&rows[2]);

	(void)state;
	rows_hold(rows, str_count(rows));
	/* each is counted once */
	assert_non_null(strstr(v.detail, "MUL_MAT kq on CPU in 1 layer, 1 nodes of 1 graphs"));
}

static void
copy_of_a_late_layer_is_no_sign_of_a_write(void **state)
{
	static const struct row rows[] = {
		{"layer 17 alone", "cuda", CUDA SPLIT EMBED NODE("       CPY", "cache_k_l17 (view) (", "CUDA0") FLASH("CUDA0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"layer 0 before it", "cuda", CUDA SPLIT EMBED NODE("       CPY", "cache_k_l0 (view) (c", "CUDA0") NODE("       CPY", "cache_k_l17 (view) (", "CUDA0")
			FLASH("CUDA0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* A log of lines with levels that has no debugging lines prints no nodes; then they are the
 * model's, or the prompt's, words. */
static void
nodes_in_a_log_without_debugging_lines_are_text(void **state)
{
#define I(text) "0.00.220.577 I " text
#define QUIET I("llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:00:06.0) - 142629 MiB free\n") \
	I("load_tensors: offloaded 33/33 layers to GPU\n") I(BUFFER("CUDA0", "136.00")) I(SIZE("q8_0", "q8_0")) I("sched_reserve: graph splits = 2\n")
	static const struct row rows[] = {
		{"as bare lines", "cuda", QUIET GRAPH("CUDA0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"with a stamp", "cuda", QUIET "0.00.300.000 D " SPLIT "0.00.300.000 D " NODE("  SET_ROWS", "   cache_k_l0 (view)", "CUDA0")
			"0.00.300.000 D " FLASH("CUDA0") EVAL, 0, REASON_LOG_TOO_QUIET},
		/* against the run they count */
		{"on the CPU", "cuda", QUIET GRAPH("  CPU") EVAL, 0, REASON_OP_ON_CPU},
		{"the engine's own", "cuda", "0.00.100.000 D load_tensors: layer   0 assigned to device CUDA0\n" QUIET "0.00.300.000 D " SPLIT
			"0.00.300.000 D " NODE("  SET_ROWS", "   cache_k_l0 (view)", "CUDA0") "0.00.300.000 D " FLASH("CUDA0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* Four hundred names are in no model; two hundred are, on two cards. */
static void
model_of_many_names_over_eight_cards_passes(void **state)
{
	size_t size = 1u << 20, n = 0;
	struct row row = {"many names", "cuda", NULL, 0, REASON_NONE};
	char *log = malloc(size);
	int i;

	(void)state;
	assert_non_null(log);
	n += (size_t)snprintf(log + n, size - n, USING("CUDA0 (NVIDIA H200) (0000:00:06.0)") OFFLOADED("81", "81") CONTEXT);
	for (i = 0; i < 8; i++)
		n += (size_t)snprintf(log + n, size - n, "llama_kv_cache:      CUDA%d KV buffer size =   136.00 MiB\n", i);
	n += (size_t)snprintf(log + n, size - n, "%s", SIZE("q8_0", "q8_0") SPLITS SPLIT EMBED);
	for (i = 0; i < 240; i++)
		n += (size_t)snprintf(log + n, size - n, "node #%3d (   MUL_MAT): name_of_%c%c%c-%d (   1K) [CUDA%d         ] use=1,c=1:\n", i,
			'a' + i % 120 / 12, 'a' + i % 12, 'x', i / 3, i / 120);
	for (i = 0; i < 80; i++)
		n += (size_t)snprintf(log + n, size - n, "node #%3d (  SET_ROWS): cache_k_l%d (view) (   1K) [CUDA%d         ] use=1,c=1:\n"
			"node #%3d (FLASH_ATTN): __fattn__-%d (   1K) [CUDA%d         ] use=1,c=1:\n", i, i, i / 10, i, i, i / 10);
	snprintf(log + n, size - n, "%s", EVAL);
	row.log = log;
	rows_hold(&row, 1);
	free(log);
}

/* Each layer of the cache that is written must be read: kqv reads V, and a line may be lost. */
static void
attention_of_every_layer_must_be_seen(void **state)
{
#define KEYS(l) NODE("  SET_ROWS", "   cache_k_l" l " (view)", "CUDA0")
#define VALUES(l) NODE("  SET_ROWS", "   cache_v_l" l " (view)", "CUDA0")
#define KQ(l) NODE("   MUL_MAT", "                kq-" l, "CUDA0")
#define KQV(l) NODE("  SOFT_MAX", "       kq_soft_max-" l, "CUDA0") NODE("   MUL_MAT", "               kqv-" l, "CUDA0")
	static const struct row rows[] = {
		{"two layers", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQ("0") KQV("0") KEYS("1") VALUES("1") KQ("1") KQV("1") EVAL, 0, REASON_NONE},
		{"no kq at all", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQV("0") KEYS("1") VALUES("1") KQV("1") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"no kq of layer 1", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQ("0") KQV("0") KEYS("1") VALUES("1") KQV("1") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"no write of layer 1's keys", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQ("0") KQV("0") VALUES("1") KQ("1") KQV("1") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"in the second graph", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQ("0") KQV("0") SPLIT EMBED KEYS("0") VALUES("0") KQV("0") EVAL, 0, REASON_LOG_TOO_QUIET},
		{"layers that share a cache", "cuda", CUDA SPLIT EMBED KEYS("0") VALUES("0") KQ("0") KQV("0") KQ("1") KQV("1") EVAL, 0, REASON_NONE},
		{"keys alone, as with latent attention", "cuda", CUDA SPLIT EMBED KEYS("0") KQ("0") KQV("0") KEYS("1") KQ("1") KQV("1") EVAL, 0, REASON_NONE},
		{"an indexer with keys of its own", "cuda", CUDA SPLIT EMBED KEYS("0") KEYS("0") NODE("   MUL_MAT", "indexer_kq-0", "CUDA0") KQ("0") KQV("0") EVAL, 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* Witnesses of one thing that say different things. */
static void
witnesses_that_contradict_each_other_are_no_pass(void **state)
{
#define LAYER(n, d) "llama_kv_cache: layer   " n ": dev = " d "\n"
#define TAIL COMPUTE("CUDA0") SPLITS GRAPH("CUDA0") EVAL
#define ON(name) USING(name) OFFLOADED("33", "33") CONTEXT
#define H200 "CUDA0 (NVIDIA H200) (0000:00:06.0)"
	static const struct row rows[] = {
		{"both on the card", "cuda", ON(H200) LAYER("0", "CUDA0") LAYER("1", "CUDA0") BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_NONE},
		{"a layer on the CPU", "cuda", ON(H200) LAYER("0", "CUDA0") LAYER("1", "CPU") BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_KV_NOT_ON_DEVICE},
		{"of the second cache", "cuda", ON(H200) LAYER("0", "CUDA0") BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") LAYER("1", "CPU") BUFFER("CUDA0", "1.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_KV_NOT_ON_DEVICE},
		{"in the dry pass only", "cuda", ON(H200) LAYER("1", "CPU") BUFFER("CUDA0", "0.00") CONTEXT LAYER("1", "CUDA0") BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_NONE},
		{"another card is used", "cuda", ON("CUDA1 (NVIDIA H200) (0000:00:07.0)") BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_KV_NOT_ON_DEVICE},
		{"attention on another card", "cuda", ON(H200) BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") COMPUTE("CUDA0") SPLITS GRAPH("CUDA1") EVAL, 0, REASON_KV_NOT_ON_DEVICE},
		{"the model says Error:", "cuda", CUDA GRAPH("CUDA0") "n_remain: 3\nError: no such thing\n" EVAL, 0, REASON_NONE},
		{"llama-cli says Error:", "cuda", CUDA GRAPH("CUDA0") "Error: no such thing\n" EVAL, 0, REASON_ENGINE_ERROR},
		{"one of two cards is used", "cuda", USING("CUDA1 (NVIDIA H200) (0000:00:07.0)") ON(H200) BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_NONE},
		{"a cache of no layers is of no type", "cuda", ON(H200) "llama_kv_cache: size =    0.00 MiB ( 64000 cells,   0 layers,  1/1 seqs), K (bf16):    0.00 MiB, V (bf16):    0.00 MiB\n"
			BUFFER("CUDA0", "136.00") SIZE("q8_0", "q8_0") TAIL, 0, REASON_NONE},
		{"a graph that failed", "cuda", CUDA GRAPH("CUDA0") "graph_compute: ggml_backend_sched_graph_compute_async failed with error -1\n" EVAL, 0, REASON_ENGINE_ERROR},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

/* Direct3D 12 under WSL, a virtual machine's device, a translator of CUDA. */
static void
device_behind_another_interface_is_another_class(void **state)
{
#define VULKAN(name) MACHINE("Vulkan0 (" name ") (unknown id)", "Vulkan0") GRAPH("Vulka") EVAL
#define LISTED(name) "ggml_vulkan: 0 = " name " (x) | uma: 0 | fp16: 1 | warp size: 32\n" OFFLOADED("33", "33") CONTEXT \
	BUFFER("Vulkan0", "136.00") SIZE("q8_0", "q8_0") SPLITS GRAPH("Vulka") EVAL
	static const struct row rows[] = {
		{"radv", "vulkan", VULKAN("AMD Radeon RX 9070 XT (RADV GFX1201)"), 0, REASON_NONE},
		{"nvk", "vulkan", VULKAN("NVIDIA GeForce RTX 4060 (NVK AD107)"), 0, REASON_NONE},
		{"dozen", "vulkan", VULKAN("Microsoft Direct3D12 (NVIDIA GeForce RTX 3060)"), 0, REASON_WRONG_DEVICE},
		{"dozen, listed", "vulkan", LISTED("Microsoft Direct3D12 (NVIDIA GeForce RTX 3060)"), 0, REASON_WRONG_DEVICE},
		{"venus", "vulkan", VULKAN("Virtio-GPU Venus (NVIDIA H200)"), 0, REASON_WRONG_DEVICE},
		{"zluda", "cuda", MACHINE("CUDA0 (AMD Radeon RX 7900 XTX [ZLUDA])", "CUDA0") GRAPH("CUDA0") EVAL, 0, REASON_WRONG_DEVICE},
		{"dozen beside a native driver that is used", "vulkan", "ggml_vulkan: 0 = Microsoft Direct3D12 (Intel Arc) (Dozen) | uma: 1 | fp16: 1\n"
			VULKAN("Intel(R) Arc(TM) B580 Graphics (BMG G21)"), 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

static void
last_words_of_a_shell_are_an_abort(void **state)
{
	static const char *const words[] = {
		"Segmentation fault (core dumped)", "./run.sh: line 3:  4711 Segmentation fault      (core dumped) ./llama-completion -m m.gguf",
		"bash: line 1: 4711 Aborted                 (core dumped) ./llama-completion", "Aborted (core dumped)", "Killed",
		"double free or corruption (!prev)", "free(): invalid pointer", "zsh: segmentation fault  ./llama-completion",
		"Command terminated by signal 11",
	};
	char log[16384];
	struct row row = {.lane = "cuda", .log = log, .wanted = REASON_ENGINE_ABORT};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(words); i++) {
		snprintf(log, sizeof log, "%s%s\n", CUDA GRAPH("CUDA0") EVAL, words[i]);
		row.what = words[i];
		rows_hold(&row, 1);
	}
}

/* ---- several runs in one file ---- */

#define FREED "~llama_context:      CUDA0 compute buffer size is  13.5742 MiB, matches expectation of  13.5742 MiB\n" \
	"~llama_context:  CUDA_Host compute buffer size is   5.0762 MiB, matches expectation of   5.0762 MiB\n"
#define RUN(b) "main: llama backend init\n" CUDA GRAPH(b) EVAL FREED

struct runs {
	int count;
	enum reason reasons[4];
	size_t lines[4];
};

static void
run_keep(void *arg, const struct elog *l)
{
	struct smoke_ask ask = {.lane = lane_find("cuda"), .cache_type = "q8_0", .tokens = 4, .raw = true};
	struct runs *r = arg;
	struct smoke_verdict v;

	assert_true(r->count < 4);
	elog_judge(l, &ask, &v);
	r->reasons[r->count] = v.reason;
	r->lines[r->count++] = v.line;
}

static void
each_run_of_a_file_is_judged_by_itself(void **state)
{
	static const struct {
		const char *log;
		enum reason reasons[3];
	} files[] = {
		{RUN("CUDA0") RUN("CUDA0"), {REASON_NONE, REASON_NONE}},
		{RUN("CUDA0") RUN("  CPU"), {REASON_NONE, REASON_OP_ON_CPU}},
		{RUN("  CPU") RUN("CUDA0") "Segmentation fault (core dumped)\n", {REASON_OP_ON_CPU, REASON_ENGINE_ABORT}},
	};
	struct elog *l = calloc(1, sizeof *l);
	struct elog_stream *s;
	struct runs r;
	size_t i, k;

	(void)state;
	assert_non_null(l);
	for (i = 0; i < str_count(files); i++) {
		memset(&r, 0, sizeof r);
		assert_int_equal(elog_open(l, &s, NULL), 0);
		elog_each_run(s, run_keep, &r);
		for (k = 0; k < strlen(files[i].log); k += 7)
			elog_add(s, files[i].log + k, strlen(files[i].log + k) < 7 ? strlen(files[i].log + k) : 7);
		elog_close(s);
		run_keep(&r, l);
		assert_int_equal(r.count, 2);
		for (k = 0; k < 2; k++)
			assert_int_equal(r.reasons[k], files[i].reasons[k]);
		if (r.lines[0] != 0 && r.lines[1] != 0)
			assert_true(r.lines[1] > r.lines[0]);
	}
	free(l);
}

/* Where one run is expected a second one is no part of it. */
static void
second_run_where_one_is_expected_is_no_pass(void **state)
{
	static const struct row rows[] = {
		{"two good ones", "cuda", RUN("CUDA0") RUN("CUDA0"), 0, REASON_LOG_TOO_QUIET},
		{"the second bad", "cuda", RUN("CUDA0") RUN("  CPU"), 0, REASON_LOG_TOO_QUIET},
		{"one", "cuda", RUN("CUDA0"), 0, REASON_NONE},
	};

	(void)state;
	rows_hold(rows, str_count(rows));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_of_every_layer_must_be_seen),
		cmocka_unit_test(witnesses_that_contradict_each_other_are_no_pass),
		cmocka_unit_test(device_behind_another_interface_is_another_class),
		cmocka_unit_test(last_words_of_a_shell_are_an_abort),
		cmocka_unit_test(each_run_of_a_file_is_judged_by_itself),
		cmocka_unit_test(second_run_where_one_is_expected_is_no_pass),
		cmocka_unit_test(machines_of_other_makers_pass_on_their_lane),
		cmocka_unit_test(another_lane_s_device_is_no_pass),
		cmocka_unit_test(layers_over_two_devices_pass_when_both_are_the_lane_s),
		cmocka_unit_test(models_of_other_kinds_are_understood),
		cmocka_unit_test(ends_of_every_kind_have_their_reason),
		cmocka_unit_test(nodes_of_2024_are_understood),
		cmocka_unit_test(copy_of_a_late_layer_is_no_sign_of_a_write),
		cmocka_unit_test(nodes_in_a_log_without_debugging_lines_are_text),
		cmocka_unit_test(model_of_many_names_over_eight_cards_passes),
		cmocka_unit_test(trial_graphs_say_nothing_of_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
