#include "kernels/kernel.h"

#include "common/str.h"

#define NAN_FP16 0x7e00
#define NAN_BF16 0x7fc0
#define PI_QJL UINT64_C(0xCAFEBABE12345678)
#define PI_FUSED UINT64_C(0xF00DCAFEBABE1234)

_Static_assert(REF_TURBO3_BLOCK == 2 + 8 + 4, "norm, low bits, high bits");
_Static_assert(REF_TURBO4_BLOCK == 2 + 16, "norm, nibbles");
_Static_assert(REF_TCQ_BLOCK == 2 + 49 + 1, "norm, stream, pad");
_Static_assert(REF_QJL_BLOCK == 32 + 2, "signs, norm");
_Static_assert(REF_POLAR_BLOCK == 2 + 64 + 1 + 15, "norm, nibbles, residual, reserved");
_Static_assert(REF_TBQ3_BLOCK == 2 + 12, "norm, codes");

/* The columns that rows of one block format share. */
#define KEY_TURBO3 \
	.q_dim = REF_HEAD, .k_bytes = REF_TURBO3_BLOCK, .k_blocks = REF_QUARTERS, \
	.code_at = 2, .code_bytes = 12, .norm_at = 0, .norm_nan = NAN_FP16, \
	.quantise_k = ref_turbo3_quantise
#define KEY_TURBO4 \
	.q_dim = REF_HEAD, .k_bytes = REF_TURBO4_BLOCK, .k_blocks = REF_QUARTERS, \
	.code_at = 2, .code_bytes = 16, .norm_at = 0, .norm_nan = NAN_FP16, \
	.quantise_k = ref_turbo4_quantise
#define KEY_TCQ \
	.q_dim = REF_HEAD, .k_bytes = REF_TCQ_BLOCK, .k_blocks = 1, \
	.code_at = 2, .code_bytes = 48, .norm_at = 0, .norm_nan = NAN_FP16, \
	.quantise_k = ref_tcq_quantise
#define KEY_QJL(seed) \
	.q_dim = REF_PROJ, .k_bytes = REF_QJL_BLOCK, .k_blocks = 1, \
	.code_at = 0, .code_bytes = 32, .norm_at = 32, .norm_nan = NAN_BF16, \
	.pi_seed = seed, .quantise_k = ref_qjl_quantise
#define KEY_POLAR(quantise) \
	.q_dim = REF_HEAD, .k_bytes = REF_POLAR_BLOCK, .k_blocks = 1, \
	.code_at = 2, .code_bytes = 64, .norm_at = 0, .norm_nan = NAN_FP16, \
	.quantise_k = quantise
#define VALUE_TBQ \
	.v_bytes = REF_TBQ3_BLOCK, .v_blocks = REF_QUARTERS, \
	.quantise_v = ref_tbq3_quantise, .run = ref_fused_tbq, .truth = ref_fused_tbq
#define VALUE_POLAR \
	.v_bytes = REF_POLAR_BLOCK, .v_blocks = 1, .use_qjl = true, \
	.quantise_v = ref_polar_qjl_quantise, .run = ref_fused_polar, .truth = ref_fused_polar
#define ROW(n, k, schema_, ...) \
	{ .name = n, .kernel = k, .schema = schema_, .tolerance = KERNEL_TOLERANCE, \
	  .backends = KERNEL_ON_ALL, __VA_ARGS__ }

/* In the order of the stream that make-fixtures draws. */
const struct kernel kernels[KERNEL_COUNT] = {
	ROW("turbo3", "turbo3", KERNEL_TURBO, .file = "turbo3.json",
		KEY_TURBO3, .run = ref_turbo3_score, .truth = ref_turbo3_score),
	ROW("turbo4", "turbo4", KERNEL_TURBO, .file = "turbo4.json",
		KEY_TURBO4, .run = ref_turbo4_score, .truth = ref_turbo4_score),
	ROW("turbo3_tcq", "turbo3_tcq", KERNEL_TURBO, .file = "turbo3_tcq.json",
		KEY_TCQ, .run = ref_tcq_score, .truth = ref_tcq_score),
	ROW("qjl", "qjl", KERNEL_QJL, .file = "qjl.json",
		KEY_QJL(PI_QJL), .run = ref_qjl_score, .truth = ref_qjl_score),
	ROW("polar", "polar", KERNEL_POLAR, .file = "polar.json",
		KEY_POLAR(ref_polar_quantise), .run = ref_polar_score, .truth = ref_polar_score),
	ROW("polar_qjl", "polar", KERNEL_POLAR, .file = "polar_qjl.json", .use_qjl = true,
		KEY_POLAR(ref_polar_qjl_quantise), .run = ref_polar_score, .truth = ref_polar_score),
	ROW("polar_preht", "polar_preht", KERNEL_PREHT, .file = "polar_preht.json",
		KEY_POLAR(ref_polar_quantise), .run = ref_preht_score, .truth = ref_polar_score),
	ROW("polar_preht_qjl", "polar_preht", KERNEL_PREHT, .file = "polar_preht.json",
		.use_qjl = true, KEY_POLAR(ref_polar_qjl_quantise), .run = ref_preht_score, .truth = ref_polar_score),
	ROW("fused_attn_qjl_tbq", "fused_attn_qjl_tbq", KERNEL_FUSED,
		.file = "fused_attn_qjl_tbq.json", KEY_QJL(PI_FUSED), VALUE_TBQ),
	ROW("fused_attn_qjl_polar", "fused_attn_qjl_polar", KERNEL_FUSED,
		.file = "fused_attn_qjl_polar.json", KEY_QJL(PI_FUSED), VALUE_POLAR),
	ROW("fused_attn_qjl_tbq_causal", "fused_attn_qjl_tbq", KERNEL_FUSED,
		.file = "fused_attn_qjl_tbq_causal.json", .causal = true, KEY_QJL(PI_FUSED),
		VALUE_TBQ),
	ROW("fused_attn_qjl_polar_causal", "fused_attn_qjl_polar", KERNEL_FUSED,
		.file = "fused_attn_qjl_polar_causal.json", .causal = true, KEY_QJL(PI_FUSED),
		VALUE_POLAR),
};

const struct kernel_format kernel_formats[KERNEL_FORMATS] = {
	{"turbo3", REF_TURBO3_BLOCK, REF_QUARTERS, 0, ref_turbo3_quantise},
	{"turbo4", REF_TURBO4_BLOCK, REF_QUARTERS, 0, ref_turbo4_quantise},
	{"turbo3_tcq", REF_TCQ_BLOCK, 1, 0, ref_tcq_quantise},
	{"qjl", REF_QJL_BLOCK, 1, PI_QJL, ref_qjl_quantise},
	{"polar", REF_POLAR_BLOCK, 1, 0, ref_polar_quantise},
	{"polar_qjl", REF_POLAR_BLOCK, 1, 0, ref_polar_qjl_quantise},
	{"tbq3_0", REF_TBQ3_BLOCK, REF_QUARTERS, 0, ref_tbq3_quantise},
};

const struct kernel_place kernel_places[KERNEL_PLACES] = {
	{"cpu", KERNEL_ON_CPU, "scalar, AVX2, AVX-512, NEON"},
	{"cuda", KERNEL_ON_CUDA, "the driver's device"},
	{"hip", KERNEL_ON_HIP, "the driver's device"},
	{"vulkan", KERNEL_ON_VULKAN, "the driver's device"},
	{"emulated", KERNEL_ON_EMULATED, "CUDA and HIP sources played on the CPU"},
	{"metal", KERNEL_ON_METAL, "translated only: blocked metal_host_not_built"},
};

bool
kernel_is_on(const struct kernel *k, const char *backend)
{
	size_t i;

	for (i = 0; i < KERNEL_PLACES; i++)
		if (str_eq(kernel_places[i].name, backend))
			return (k->backends & kernel_places[i].bit) != 0;
	return true;
}

const struct kernel *
kernel_find(const char *name)
{
	size_t i;

	for (i = 0; i < KERNEL_COUNT; i++)
		if (str_eq(kernels[i].name, name))
			return &kernels[i];
	return NULL;
}

const struct kernel *
kernel_of_field(const char *kernel)
{
	size_t i;

	for (i = 0; i < KERNEL_COUNT; i++)
		if (str_eq(kernels[i].kernel, kernel))
			return &kernels[i];
	return NULL;
}

bool
kernel_takes(const struct kernel *k, const struct ref_case *c)
{
	return k->use_qjl == c->use_qjl && k->causal == c->causal;
}

size_t
kernel_outputs(const struct kernel *k, const struct ref_case *c)
{
	return (size_t)c->n_heads * (k->v_bytes ? REF_HEAD : c->n_kv);
}
