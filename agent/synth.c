#include "agent/synth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/plat.h"
#include "common/str.h"

#define ONE (1 << 20) /* weights are integers in units of 2^-20 */
#define UNIT30 INT64_C(1073741824)
#define SEED UINT64_C(0x76657269667931)

#define TOKENS 259
#define EMBD 512
#define FFN 256
#define CODE SYNTH_CODE
#define MAX_PAIRS 128
#define FILE_MAX (32u << 20)
#define ALIGN 32

/* The residual stream, in blocks of dimensions. */
enum {
	AT_TOKEN = 0,            /* the token's own code */
	AT_S0 = AT_TOKEN + CODE, /* first layer, 1 back */
	AT_S1 = AT_S0 + CODE,    /* first layer, 6 back */
	AT_P = AT_S1 + CODE,     /* their product */
	AT_T0 = AT_P + CODE,     /* last layer, P of 4 back */
	AT_T1 = AT_T0 + CODE,    /* last layer, token of 13 back */
	AT_Y = AT_T1 + CODE,     /* the answer's code */
	AT_CONST = AT_Y + CODE,  /* always 1 */
	CONSTS = 16,
	AT_TAG = AT_CONST + CONSTS,
	TAGS = EMBD - AT_TAG,
};

enum { STREAM_TAG = 256, STREAM_KSIGN = 512, STREAM_KTAG = 768 };

struct shape {
	unsigned head_size;
	uint64_t ratio32;  /* 4^(-2/head_size) in units of 2^-32 */
	int32_t amp_first; /* 2^20 * amplitude / (CONSTS * gain): see weight_k */
	int32_t amp_later;
};

/*
 * Amplitudes are 3.5, 3 and 2.5, so that sqrt(head size) * amplitude^2 is about 100.  The
 * RMS norm multiplies by 2 before the first layer and by about 81/64 before later ones.
 */
static const struct shape shapes[] = {
	{ 64, UINT64_C(4112874773), ONE * 7 / 2 / 32, ONE * 7 / 2 * 4 / 81 },
	{ 128, UINT64_C(4202935003), ONE * 3 / 32, ONE * 3 * 4 / 81 },
	{ 256, UINT64_C(4248701965), ONE * 5 / 2 / 32, ONE * 5 / 2 * 4 / 81 },
};

struct net {
	const struct shape *shape;
	unsigned layers, heads, groups;
	unsigned share; /* code dimensions that one group of heads moves */
	int64_t cos1[MAX_PAIRS], sin1[MAX_PAIRS]; /* of one step, units of 2^-30 */
	struct buf out;
};

static uint64_t
random_bits(uint64_t stream, uint64_t i)
{
	uint64_t z = SEED + (stream << 32 | i) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static int32_t
random_sign(uint64_t stream, uint64_t i)
{
	return random_bits(stream, i) >> 63 ? -1 : 1;
}

static int32_t
walsh(unsigned index, unsigned dim)
{
	unsigned x = index & dim;

	x ^= x >> 4;
	x ^= x >> 2;
	x ^= x >> 1;
	return x & 1 ? -1 : 1;
}

/* Sine and cosine of 0 to 1 by their series, positive integers all the way. */
static void
sine_cosine(uint64_t x, int64_t *sine, int64_t *cosine)
{
	const uint64_t one = (uint64_t)UINT64_C(1) << 30, xx = x * x >> 30;
	uint64_t s = one, c = one;

	for (unsigned k = 12; k >= 2; k -= 2) {
		s = one - (xx * s >> 30) / (k * (k + 1));
		c = one - (xx * c >> 30) / (k * (k - 1));
	}
	*sine = (int64_t)(x * s >> 30);
	*cosine = (int64_t)c;
}

static void
net_angles(struct net *n)
{
	uint64_t theta = UINT64_C(1) << 32;

	for (unsigned j = 0; j < n->shape->head_size / 2; j++) {
		sine_cosine(theta >> 2, &n->sin1[j], &n->cos1[j]);
		/* 2^32 times a ratio below 2^32 still fits. */
		theta = theta * n->shape->ratio32 >> 32;
	}
}

/* Element of a key before rotation: one of four directions per pair. */
static int32_t
key_sign(unsigned layer, unsigned group, unsigned elem)
{
	return random_sign(STREAM_KSIGN + layer, group * 1024 + elem);
}

/* Element of the query that meets such a key `back` positions earlier; 2^-30. */
static int64_t
query_value(const struct net *n, unsigned layer, unsigned group, unsigned elem,
	unsigned back)
{
	unsigned pair = elem / 2;
	int64_t x = key_sign(layer, group, pair * 2) * UNIT30;
	int64_t y = key_sign(layer, group, pair * 2 + 1) * UNIT30;

	while (back-- > 0) {
		int64_t c = n->cos1[pair], s = n->sin1[pair];
		int64_t turned = (x * c) / UNIT30 + (y * s) / UNIT30;

		y = (y * c) / UNIT30 - (x * s) / UNIT30;
		x = turned;
	}
	return elem % 2 ? y : x;
}

static bool
is_within(unsigned v, unsigned start, unsigned count)
{
	return v >= start && v - start < count;
}

static bool
is_last(const struct net *n, unsigned layer)
{
	return layer + 1 == n->layers;
}

static int32_t
amplitude(const struct net *n, unsigned layer)
{
	return layer == 0 ? n->shape->amp_first : n->shape->amp_later;
}

static int32_t
weight_embd(const struct net *n, unsigned layer, unsigned token, unsigned dim)
{
	(void)n;
	(void)layer;
	if (is_within(dim, AT_TOKEN, CODE))
		return walsh(synth_index(token), dim - AT_TOKEN) * ONE;
	if (is_within(dim, AT_CONST, CONSTS))
		return ONE;
	if (is_within(dim, AT_TAG, TAGS))
		return random_sign(STREAM_TAG, token * TAGS + dim - AT_TAG) * ONE;
	return 0;
}

static int32_t
weight_q(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned head = out / n->shape->head_size, elem = out % n->shape->head_size;
	unsigned back = layer == 0 ? (head % 2 ? SYNTH_BACK_S1 : SYNTH_BACK_S0)
	                           : (head % 2 ? SYNTH_BACK_T1 : SYNTH_BACK_T0);

	if (!is_within(in, AT_CONST, CONSTS))
		return 0;
	return (int32_t)(query_value(n, layer, head / 2, elem, back) *
		amplitude(n, layer) / UNIT30);
}

static int32_t
weight_k(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned group = out / n->shape->head_size, elem = out % n->shape->head_size;

	if (is_within(in, AT_CONST, CONSTS))
		return key_sign(layer, group, elem) * amplitude(n, layer);
	if (is_within(in, AT_TAG, TAGS))
		return random_sign(STREAM_KTAG + layer, out * TAGS + in - AT_TAG) * (ONE / 32);
	return 0;
}

/* First half of a group's share: what its even head wants; second half: its odd one. */
static int32_t
weight_v(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned group = out / n->shape->head_size, elem = out % n->shape->head_size;
	unsigned slot = elem / n->share, dim = group * n->share + elem % n->share;
	unsigned from = slot == 0 && layer > 0 ? AT_P : AT_TOKEN;

	if (slot > 1 || (layer > 0 && !is_last(n, layer)))
		return 0;
	return in == from + dim ? ONE : 0;
}

static int32_t
weight_o(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned head = in / n->shape->head_size, elem = in % n->shape->head_size;
	unsigned slot = elem / n->share, dim = head / 2 * n->share + elem % n->share;
	unsigned to = layer == 0 ? AT_S0 : AT_T0;

	if (slot > 1 || slot != head % 2 || (layer > 0 && !is_last(n, layer)))
		return 0;
	if (out != to + slot * CODE + dim)
		return 0;
	return layer == 0 ? ONE / 2 : ONE * 13 / 16;
}

/*
 * Units 2m and 2m+1 hold silu(g) u and -silu(-g) u: together g u, the exact product.
 * The rest of the units is noise.
 */
static int32_t
weight_gate(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned from = layer == 0 ? AT_S1 : AT_T1;

	if (out >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || in != from + out / 2)
		return 0;
	return out % 2 ? -ONE : ONE;
}

static int32_t
weight_up(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned from = layer == 0 ? AT_S0 : AT_T0;

	if (out >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || in != from + out / 2)
		return 0;
	return ONE;
}

static int32_t
weight_down(const struct net *n, unsigned layer, unsigned out, unsigned in)
{
	unsigned to = layer == 0 ? AT_P : AT_Y;
	int32_t one = layer == 0 ? ONE / 2 : ONE;

	if (in >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || out != to + in / 2)
		return 0;
	return in % 2 ? -one : one;
}

static int32_t
weight_output(const struct net *n, unsigned layer, unsigned token, unsigned dim)
{
	(void)n;
	(void)layer;
	if (!synth_says(token) || !is_within(dim, AT_Y, CODE))
		return 0;
	return walsh(synth_index(token) ^ SYNTH_FLIP, dim - AT_Y) * (ONE / 2);
}

enum dim { DIM_ONE, DIM_EMBD, DIM_KV, DIM_FFN, DIM_TOKENS };

/* Tensors in file order: those of no layer, then layer by layer. */
static const struct tensor {
	const char *name;
	enum dim in, out; /* out DIM_ONE: an f32 norm of ones */
	int32_t (*weight)(const struct net *, unsigned layer, unsigned out, unsigned in);
} tensors[] = {
	{ "token_embd.weight", DIM_EMBD, DIM_TOKENS, weight_embd },
	{ "output_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "output.weight", DIM_EMBD, DIM_TOKENS, weight_output },
}, layer_tensors[] = {
	{ "attn_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "attn_q.weight", DIM_EMBD, DIM_EMBD, weight_q },
	{ "attn_k.weight", DIM_EMBD, DIM_KV, weight_k },
	{ "attn_v.weight", DIM_EMBD, DIM_KV, weight_v },
	{ "attn_output.weight", DIM_EMBD, DIM_EMBD, weight_o },
	{ "ffn_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "ffn_gate.weight", DIM_EMBD, DIM_FFN, weight_gate },
	{ "ffn_up.weight", DIM_EMBD, DIM_FFN, weight_up },
	{ "ffn_down.weight", DIM_FFN, DIM_EMBD, weight_down },
};

static unsigned
net_dim(const struct net *n, enum dim d)
{
	switch (d) {
	case DIM_EMBD: return EMBD;
	case DIM_KV: return n->groups * n->shape->head_size;
	case DIM_FFN: return FFN;
	case DIM_TOKENS: return TOKENS;
	default: return 1;
	}
}

static unsigned
tensor_count(const struct net *n)
{
	return (unsigned)(str_count(tensors) + n->layers * str_count(layer_tensors));
}

/* The i-th tensor of the file and the layer it is in (0 for those of no layer). */
static const struct tensor *
tensor_at(unsigned i, unsigned *layer, bool *of_layer)
{
	*of_layer = i >= str_count(tensors);
	*layer = 0;
	if (!*of_layer)
		return &tensors[i];
	i -= (unsigned)str_count(tensors);
	*layer = i / (unsigned)str_count(layer_tensors);
	return &layer_tensors[i % str_count(layer_tensors)];
}

static uint64_t
tensor_bytes(const struct net *n, const struct tensor *t)
{
	uint64_t size = t->weight == NULL ? 4 : 2;

	return size * net_dim(n, t->in) * net_dim(n, t->out);
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
put_u(struct net *n, uint64_t v, unsigned bytes, struct err *e)
{
	uint8_t b[8];

	for (unsigned i = 0; i < bytes; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	return buf_add(&n->out, b, bytes, e);
}

static int
put_str(struct net *n, const char *s, struct err *e)
{
	size_t len = strlen(s);

	return put_u(n, len, 8, e) || buf_add(&n->out, s, len, e) ? -1 : 0;
}

/* Value types of GGUF metadata. */
enum { KV_U32 = 4, KV_I32 = 5, KV_F32 = 6, KV_BOOL = 7, KV_STR = 8, KV_ARR = 9 };

struct meta {
	const char *key;
	int type;         /* KV_U32, KV_F32 (its bits), KV_BOOL or KV_STR */
	const char *text;
	uint32_t value;
};

static int
put_meta(struct net *n, const struct meta *m, struct err *e)
{
	if (put_str(n, m->key, e) || put_u(n, (uint64_t)m->type, 4, e))
		return -1;
	if (m->type == KV_STR)
		return put_str(n, m->text, e);
	return put_u(n, m->value, m->type == KV_BOOL ? 1 : 4, e);
}

static int
put_array(struct net *n, const char *key, int type, struct err *e)
{
	return put_str(n, key, e) || put_u(n, KV_ARR, 4, e) ||
		put_u(n, (uint64_t)type, 4, e) || put_u(n, TOKENS, 8, e) ? -1 : 0;
}

static int
put_vocabulary(struct net *n, struct err *e)
{
	static const char *const special[] = { "<unk>", "<s>", "</s>" };
	static const uint8_t special_type[] = { 2, 3, 3 }; /* unknown, control */
	char name[8];

	if (put_array(n, "tokenizer.ggml.tokens", KV_STR, e))
		return -1;
	for (unsigned t = 0; t < TOKENS; t++) {
		if (t >= 3 && str_fmt(name, sizeof name, e, "<0x%02X>", t - 3))
			return -1;
		if (put_str(n, t < 3 ? special[t] : name, e))
			return -1;
	}
	if (put_array(n, "tokenizer.ggml.scores", KV_F32, e))
		return -1;
	for (unsigned t = 0; t < TOKENS; t++)
		if (put_u(n, 0, 4, e))
			return -1;
	if (put_array(n, "tokenizer.ggml.token_type", KV_I32, e))
		return -1;
	for (unsigned t = 0; t < TOKENS; t++)
		if (put_u(n, t < 3 ? special_type[t] : 6 /* byte */, 4, e))
			return -1;
	return 0;
}

static int
put_header(struct net *n, struct err *e)
{
	const unsigned head = n->shape->head_size;
	char name[64];
	const struct meta metas[] = {
		{ "general.architecture", KV_STR, "llama", 0 },
		{ "general.name", KV_STR, name, 0 },
		{ "general.description", KV_STR, SYNTH_NOTE, 0 },
		{ "general.synthetic", KV_BOOL, NULL, 1 },
		{ "general.file_type", KV_U32, NULL, 1 },
		{ "llama.context_length", KV_U32, NULL, SYNTH_CONTEXT },
		{ "llama.embedding_length", KV_U32, NULL, EMBD },
		{ "llama.block_count", KV_U32, NULL, n->layers },
		{ "llama.feed_forward_length", KV_U32, NULL, FFN },
		{ "llama.attention.head_count", KV_U32, NULL, n->heads },
		{ "llama.attention.head_count_kv", KV_U32, NULL, n->groups },
		{ "llama.attention.key_length", KV_U32, NULL, head },
		{ "llama.attention.value_length", KV_U32, NULL, head },
		{ "llama.attention.layer_norm_rms_epsilon", KV_F32, NULL, 0x3727C5AC }, /* 1e-5 */
		{ "llama.rope.dimension_count", KV_U32, NULL, head },
		{ "llama.rope.freq_base", KV_F32, NULL, 0x40800000 }, /* 4 */
		{ "llama.vocab_size", KV_U32, NULL, TOKENS },
		{ "tokenizer.ggml.model", KV_STR, "llama", 0 },
		{ "tokenizer.ggml.bos_token_id", KV_U32, NULL, 1 },
		{ "tokenizer.ggml.eos_token_id", KV_U32, NULL, 2 },
		{ "tokenizer.ggml.unknown_token_id", KV_U32, NULL, 0 },
		{ "tokenizer.ggml.add_bos_token", KV_BOOL, NULL, 1 },
		{ "tokenizer.ggml.add_space_prefix", KV_BOOL, NULL, 0 },
	};

	if (str_fmt(name, sizeof name, e, "synthetic echo, head size %u", head))
		return -1;
	if (buf_add(&n->out, "GGUF", 4, e) || put_u(n, 3, 4, e) ||
	    put_u(n, tensor_count(n), 8, e) || put_u(n, str_count(metas) + 3, 8, e))
		return -1;
	for (size_t i = 0; i < str_count(metas); i++)
		if (put_meta(n, &metas[i], e))
			return -1;
	return put_vocabulary(n, e);
}

static int
put_tensor_table(struct net *n, struct err *e)
{
	uint64_t offset = 0;

	for (unsigned i = 0; i < tensor_count(n); i++) {
		unsigned layer, dims;
		bool of_layer;
		const struct tensor *t = tensor_at(i, &layer, &of_layer);
		char name[64];

		if (of_layer ? str_fmt(name, sizeof name, e, "blk.%u.%s", layer, t->name)
		             : str_copy(name, sizeof name, t->name, e))
			return -1;
		dims = t->out == DIM_ONE ? 1 : 2;
		if (put_str(n, name, e) || put_u(n, dims, 4, e) ||
		    put_u(n, net_dim(n, t->in), 8, e) ||
		    (dims == 2 && put_u(n, net_dim(n, t->out), 8, e)) ||
		    put_u(n, t->weight == NULL ? 0 : 1, 4, e) || put_u(n, offset, 8, e))
			return -1;
		/* Our sizes are all multiples of ALIGN. */
		offset += tensor_bytes(n, t);
	}
	return 0;
}

static int
put_tensor(struct net *n, unsigned number, struct err *e)
{
	unsigned layer, rows, columns;
	bool of_layer;
	const struct tensor *t = tensor_at(number, &layer, &of_layer);
	uint64_t i = 0;

	rows = net_dim(n, t->out);
	columns = net_dim(n, t->in);
	for (unsigned out = 0; out < rows; out++) {
		for (unsigned in = 0; in < columns; in++, i++) {
			int32_t noise = 2 * (int32_t)(random_bits(number + 1, i) >> 59) - 31;
			int rc = t->weight == NULL ? put_u(n, 0x3F800000, 4, e)
				: put_u(n, half_of(t->weight(n, layer, out, in) +
					noise * (ONE / 8192)), 2, e);

			if (rc)
				return -1;
		}
	}
	return 0;
}

static int
net_init(struct net *n, const struct synth_params *p, struct err *e)
{
	memset(n, 0, sizeof *n);
	buf_init(&n->out, FILE_MAX);
	for (size_t i = 0; i < str_count(shapes); i++)
		if (shapes[i].head_size == p->head_size)
			n->shape = &shapes[i];
	if (n->shape == NULL) {
		err_set(e, ERR_USAGE, "no synthetic model has head size %u", p->head_size);
		return err_hint(e, "the head size is 64, 128 or 256");
	}
	if (p->layers < SYNTH_LAYERS_MIN || p->layers > SYNTH_LAYERS_MAX)
		return err_set(e, ERR_USAGE, "%u layers: a synthetic model has %d to %d",
			p->layers, SYNTH_LAYERS_MIN, SYNTH_LAYERS_MAX);
	n->layers = p->layers;
	n->heads = EMBD / p->head_size;
	n->groups = n->heads / 2;
	n->share = CODE / n->groups;
	net_angles(n);
	return 0;
}

static int
net_build(struct net *n, struct err *e)
{
	static const char zeros[ALIGN];

	if (put_header(n, e) || put_tensor_table(n, e) ||
	    buf_add(&n->out, zeros, (ALIGN - n->out.len % ALIGN) % ALIGN, e))
		return -1;
	for (unsigned i = 0; i < tensor_count(n); i++)
		if (put_tensor(n, i, e))
			return -1;
	return 0;
}

int
synth_write(const char *path, const struct synth_params *p, struct err *e)
{
	struct net *n = NULL;
	struct stat st;
	int rc = -1;

	if (!p->force && lstat(path, &st) == 0) {
		err_set(e, ERR_CONFLICT, "%s exists", path);
		return err_hint(e, "choose another name, or --force to replace it");
	}
	if ((n = malloc(sizeof *n)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a synthetic model");
	if (net_init(n, p, e) || net_build(n, e) ||
	    plat_write_file(path, n->out.data, n->out.len, 0644, e))
		goto out;
	rc = 0;
out:
	buf_fini(&n->out);
	free(n);
	return rc;
}
