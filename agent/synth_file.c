#include "agent/synth_file.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/synth.h"
#include "common/plat.h"
#include "common/str.h"

#define SEED UINT64_C(0x76657269667931)
#define FILE_MAX (32u << 20)
#define ALIGN 32
#define VOCABULARY_ARRAYS 3

enum { KV_I32 = 5, KV_ARR = 9 };

uint64_t
synth_random(uint64_t stream, uint64_t i)
{
	uint64_t z = SEED + (stream << 32 | i) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

int32_t
synth_sign(uint64_t stream, uint64_t i)
{
	return synth_random(stream, i) >> 63 ? -1 : 1;
}

int32_t
synth_walsh(unsigned index, unsigned dim)
{
	unsigned x = index & dim;

	x ^= x >> 4;
	x ^= x >> 2;
	x ^= x >> 1;
	return x & 1 ? -1 : 1;
}

static unsigned
tensor_count(const struct synth_file *f)
{
	return f->tensor_count + f->layers * f->layer_tensor_count;
}

/* The i-th tensor of the file and the layer it is in (0 for those of no layer). */
static const struct synth_tensor *
tensor_at(const struct synth_file *f, unsigned i, unsigned *layer, bool *of_layer)
{
	*of_layer = i >= f->tensor_count;
	*layer = 0;
	if (!*of_layer)
		return &f->tensors[i];
	i -= f->tensor_count;
	*layer = i / f->layer_tensor_count;
	return &f->layer_tensors[i % f->layer_tensor_count];
}

static uint64_t
tensor_bytes(const struct synth_file *f, const struct synth_tensor *t)
{
	return (uint64_t)(t->weight == NULL ? 4 : 2) * f->dims[t->in] * f->dims[t->out];
}

static uint64_t
aligned(uint64_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* To the nearest half, ties to even, from units of 2^-20; all of ours are in range. */
static uint16_t
half_of(int32_t v)
{
	uint32_t mag = (uint32_t)(v < 0 ? -v : v), sign = v < 0 ? 0x8000 : 0, top = 0;
	uint32_t shift, kept, rest;

	while (mag >> top > 1)
		top++;
	if (top < 6) /* below 2^-14: a subnormal, units of 2^-24 */
		return (uint16_t)(sign | mag << 4);
	if (top <= 10)
		return (uint16_t)(sign | (((top - 5) << 10) + (mag << (10 - top)) - 1024));
	shift = top - 10;
	kept = mag >> shift;
	rest = mag & ((1u << shift) - 1);
	if (rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && kept & 1))
		kept++;
	/* A carry out of the fraction lands in the exponent, as it should. */
	return (uint16_t)(sign | (((top - 5) << 10) + kept - 1024));
}

static int
put_u(struct buf *b, uint64_t v, unsigned bytes, struct err *e)
{
	uint8_t le[8];

	for (unsigned i = 0; i < bytes; i++)
		le[i] = (uint8_t)(v >> 8 * i);
	return buf_add(b, le, bytes, e);
}

static int
put_str(struct buf *b, const char *s, struct err *e)
{
	size_t len = strlen(s);

	return put_u(b, len, 8, e) || buf_add(b, s, len, e) ? -1 : 0;
}

static int
put_array(struct buf *b, int type, unsigned count, struct err *e)
{
	return put_u(b, KV_ARR, 4, e) || put_u(b, (uint64_t)type, 4, e) || put_u(b, count, 8, e) ? -1 : 0;
}

static int
put_meta(struct buf *b, const struct synth_meta *m, unsigned layers, struct err *e)
{
	if (put_str(b, m->key, e))
		return -1;
	if (m->type == SYNTH_BOOLS) {
		if (put_array(b, SYNTH_BOOL, layers, e))
			return -1;
		for (unsigned i = 0; i < layers; i++)
			if (put_u(b, m->value >> i & 1, 1, e))
				return -1;
		return 0;
	}
	if (put_u(b, (uint64_t)m->type, 4, e))
		return -1;
	if (m->type == SYNTH_STR)
		return put_str(b, m->text, e);
	return put_u(b, m->value, m->type == SYNTH_BOOL ? 1 : 4, e);
}

static int
put_metas(const struct synth_file *f, struct buf *b, const struct synth_meta *m, unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++)
		if (put_meta(b, &m[i], f->layers, e))
			return -1;
	return 0;
}

static int
put_vocabulary(struct buf *b, struct err *e)
{
	static const char *const special[] = { "<unk>", "<s>", "</s>" };
	static const uint8_t special_type[] = { 2, 3, 3 }; /* unknown, control */
	char name[8];

	if (put_str(b, "tokenizer.ggml.tokens", e) || put_array(b, SYNTH_STR, SYNTH_TOKENS, e))
		return -1;
	for (unsigned t = 0; t < SYNTH_TOKENS; t++) {
		if (t >= 3 && str_fmt(name, sizeof name, e, "<0x%02X>", t - 3))
			return -1;
		if (put_str(b, t < 3 ? special[t] : name, e))
			return -1;
	}
	if (put_str(b, "tokenizer.ggml.scores", e) || put_array(b, SYNTH_F32, SYNTH_TOKENS, e))
		return -1;
	for (unsigned t = 0; t < SYNTH_TOKENS; t++)
		if (put_u(b, 0, 4, e))
			return -1;
	if (put_str(b, "tokenizer.ggml.token_type", e) || put_array(b, KV_I32, SYNTH_TOKENS, e))
		return -1;
	for (unsigned t = 0; t < SYNTH_TOKENS; t++)
		if (put_u(b, t < 3 ? special_type[t] : 6 /* byte */, 4, e))
			return -1;
	return 0;
}

static int
put_header(const struct synth_file *f, struct buf *b, struct err *e)
{
	const struct synth_meta general[] = {
		{ "general.architecture", SYNTH_STR, f->architecture, 0 },
		{ "general.name", SYNTH_STR, f->name, 0 },
		{ "general.description", SYNTH_STR, SYNTH_NOTE, 0 },
		{ "general.synthetic", SYNTH_BOOL, NULL, 1 },
		{ "general.file_type", SYNTH_U32, NULL, 1 },
	};
	static const struct synth_meta tokenizer[] = {
		{ "tokenizer.ggml.model", SYNTH_STR, "llama", 0 },
		{ "tokenizer.ggml.bos_token_id", SYNTH_U32, NULL, 1 },
		{ "tokenizer.ggml.eos_token_id", SYNTH_U32, NULL, 2 },
		{ "tokenizer.ggml.unknown_token_id", SYNTH_U32, NULL, 0 },
		{ "tokenizer.ggml.add_bos_token", SYNTH_BOOL, NULL, 1 },
		{ "tokenizer.ggml.add_space_prefix", SYNTH_BOOL, NULL, 0 },
	};
	const unsigned count = str_count(general) + f->meta_count + str_count(tokenizer) + VOCABULARY_ARRAYS;

	if (buf_add(b, "GGUF", 4, e) || put_u(b, 3, 4, e) || put_u(b, tensor_count(f), 8, e) ||
	    put_u(b, count, 8, e) || put_metas(f, b, general, str_count(general), e) ||
	    put_metas(f, b, f->metas, f->meta_count, e) ||
	    put_metas(f, b, tokenizer, str_count(tokenizer), e))
		return -1;
	return put_vocabulary(b, e);
}

static int
put_tensor_table(const struct synth_file *f, struct buf *b, struct err *e)
{
	uint64_t offset = 0;

	for (unsigned i = 0; i < tensor_count(f); i++) {
		unsigned layer, dims;
		bool of_layer;
		const struct synth_tensor *t = tensor_at(f, i, &layer, &of_layer);
		char name[64];

		if (of_layer ? str_fmt(name, sizeof name, e, "blk.%u.%s", layer, t->name)
		             : str_copy(name, sizeof name, t->name, e))
			return -1;
		dims = t->out == 0 ? 1 : 2;
		if (put_str(b, name, e) || put_u(b, dims, 4, e) || put_u(b, f->dims[t->in], 8, e) ||
		    (dims == 2 && put_u(b, f->dims[t->out], 8, e)) ||
		    put_u(b, t->weight == NULL ? 0 : 1, 4, e) || put_u(b, offset, 8, e))
			return -1;
		offset = aligned(offset + tensor_bytes(f, t));
	}
	return 0;
}

static int
put_padding(struct buf *b, struct err *e)
{
	static const char zeros[ALIGN];

	return buf_add(b, zeros, (size_t)(aligned(b->len) - b->len), e);
}

static int
put_tensor(const struct synth_file *f, struct buf *b, unsigned number, struct err *e)
{
	unsigned layer;
	bool of_layer;
	const struct synth_tensor *t = tensor_at(f, number, &layer, &of_layer);
	uint64_t i = 0;

	for (unsigned out = 0; out < f->dims[t->out]; out++) {
		for (unsigned in = 0; in < f->dims[t->in]; in++, i++) {
			int32_t noise = 2 * (int32_t)(synth_random(number + 1, i) >> 59) - 31;
			int rc = t->weight == NULL ? put_u(b, 0x3F800000, 4, e)
				: put_u(b, half_of(t->weight(f->net, layer, out, in) +
					noise * (SYNTH_ONE / 8192)), 2, e);

			if (rc)
				return -1;
		}
	}
	return put_padding(b, e);
}

static int
file_build(const struct synth_file *f, struct buf *b, struct err *e)
{
	if (put_header(f, b, e) || put_tensor_table(f, b, e) || put_padding(b, e))
		return -1;
	for (unsigned i = 0; i < tensor_count(f); i++)
		if (put_tensor(f, b, i, e))
			return -1;
	return 0;
}

int
synth_file_vacant(const char *path, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return 0;
	err_set(e, ERR_CONFLICT, "%s exists", path);
	return err_hint(e, "choose another name, or --force to replace it");
}

int
synth_file_write(const struct synth_file *f, const char *path, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, FILE_MAX);
	rc = file_build(f, &b, e) || plat_write_file(path, b.data, b.len, 0644, e) ? -1 : 0;
	buf_fini(&b);
	return rc;
}
