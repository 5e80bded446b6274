#include "kernels/gpu_plan.h"

#include <string.h>

#include "common/str.h"
#include "kernels/encode_shape.h"

/* The entry point that writes what a function of ref writes. */
static const struct encoder {
	ref_quantise truth;
	const char *entry, *file;
	uint32_t keys; /* of a block */
} encoders[] = {
	{ref_turbo3_quantise, "encode_turbo3", "encode", ENCODE_TILE},
	{ref_turbo4_quantise, "encode_turbo4", "encode", ENCODE_TILE},
	{ref_tcq_quantise, "encode_tcq", "encode_tcq", ENCODE_TCQ_KEYS},
	{ref_qjl_quantise, "encode_qjl", "encode_qjl", ENCODE_TILE},
	{ref_polar_quantise, "encode_polar", "encode", ENCODE_TILE},
	{ref_polar_qjl_quantise, "encode_polar_qjl", "encode", ENCODE_TILE},
	{ref_tbq3_quantise, "encode_tbq3", "encode", ENCODE_TILE},
};

static const struct encoder *
find(ref_quantise truth)
{
	size_t i;

	for (i = 0; i < str_count(encoders); i++)
		if (encoders[i].truth == truth)
			return &encoders[i];
	return NULL;
}

int
gpu_plan_encode(const struct kernel_format *f, size_t keys, const struct gpu_limits *l,
		struct gpu_plan *out, struct err *e)
{
	const struct encoder *n = find(f->quantise);
	uint64_t blocks;

	/* Nothing depends on the device: no encoder asks for dynamic shared memory, and
	 * the static part, at most 21 KiB, fits every one. */
	(void)l;
	if (n == NULL)
		return err_set(e, ERR_UNSUPPORTED, "no encoder of %s for GPUs",
			       f->name);
	if (keys == 0)
		return err_set(e, ERR_UNSUPPORTED, "no keys to encode");
	blocks = keys / n->keys + (keys % n->keys != 0);
	/* HIP counts the threads of a grid in 32 bits, encoders the keys. */
	if (keys > UINT32_MAX || blocks > UINT32_MAX / ENCODE_BLOCK)
		return err_set(e, ERR_UNSUPPORTED, "%zu keys are too many for one grid",
			       keys);
	memset(out, 0, sizeof *out);
	out->count = 1;
	out->steps[0] = (struct gpu_step){
		.entry = n->entry,
		.file = n->file,
		.grid = {(uint32_t)blocks, 1, 1},
		.block = ENCODE_BLOCK,
	};
	return 0;
}
