/*
 * synth_file - the GGUF file of a synthetic model: metadata, a vocabulary of bytes, tensors.
 *
 * GGUF v3, little-endian, f16 weights (vectors: f32 ones), 259 tokens: <unk>, <s>, </s>,
 * <0x00> to <0xFF>.  A model is tables: its rows say which tensors there are, and a
 * function says each weight, an integer in units of 2^-20, to which noise is added.
 *
 * Format: the GGUF specification of ggml.  Threads: no shared state.
 */
#ifndef AGENT_SYNTH_FILE_H
#define AGENT_SYNTH_FILE_H

#include <stdint.h>

#include "common/err.h"

#define SYNTH_ONE (1 << 20)
#define SYNTH_TOKENS 259

/* Value types of GGUF metadata; SYNTH_BOOLS is an array, one bit of the value a layer. */
enum synth_type { SYNTH_U32 = 4, SYNTH_F32 = 6, SYNTH_BOOL = 7, SYNTH_STR = 8, SYNTH_BOOLS = 100 };

struct synth_meta {
	const char *key;
	enum synth_type type;
	const char *text;
	uint32_t value; /* of SYNTH_F32: its bits */
};

/* in and out are indexes of the model's dims, where dims[0] is 1; a tensor whose weight is
 * NULL is a vector of ones, in long. */
struct synth_tensor {
	const char *name; /* of a layer: what follows "blk.N." */
	unsigned in, out;
	int32_t (*weight)(const void *net, unsigned layer, unsigned out, unsigned in);
};

struct synth_file {
	const char *architecture, *name;
	const void *net; /* for the weights */
	const unsigned *dims;
	unsigned layers;
	const struct synth_meta *metas; /* of the architecture */
	const struct synth_tensor *tensors, *layer_tensors; /* in file order */
	unsigned meta_count, tensor_count, layer_tensor_count;
};

/* Bits of SplitMix64 (synth.h), a sign from them, and element dim of Walsh code index. */
uint64_t synth_random(uint64_t stream, uint64_t i);
int32_t synth_sign(uint64_t stream, uint64_t i);
int32_t synth_walsh(unsigned index, unsigned dim);

/* ERR_CONFLICT, with a hint to --force, where path exists. */
CHECKED int synth_file_vacant(const char *path, struct err *e);

/* Writes the file beside path and renames it.  ERR_NOMEM, ERR_IO. */
CHECKED int synth_file_write(const struct synth_file *f, const char *path, struct err *e);

#endif
