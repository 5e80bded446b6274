#include "agent/synth.h"

#include <stdint.h>
#include <string.h>

#include "agent/synth_file.h"
#include "common/str.h"

#define UNIT30 INT64_C(1073741824)

#define EMBD 512
#define FFN 256
#define CODE SYNTH_CODE
#define MAX_PAIRS 128

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
	{ 64, UINT64_C(4112874773), SYNTH_ONE * 7 / 2 / 32, SYNTH_ONE * 7 / 2 * 4 / 81 },
	{ 128, UINT64_C(4202935003), SYNTH_ONE * 3 / 32, SYNTH_ONE * 3 * 4 / 81 },
	{ 256, UINT64_C(4248701965), SYNTH_ONE * 5 / 2 / 32, SYNTH_ONE * 5 / 2 * 4 / 81 },
};

struct net {
	const struct shape *shape;
	unsigned layers, heads, groups;
	unsigned share; /* code dimensions that one group of heads moves */
	int64_t cos1[MAX_PAIRS], sin1[MAX_PAIRS]; /* of one step, units of 2^-30 */
};

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
	return synth_sign(STREAM_KSIGN + layer, group * 1024 + elem);
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
weight_embd(const void *net, unsigned layer, unsigned token, unsigned dim)
{
	(void)net;
	(void)layer;
	if (is_within(dim, AT_TOKEN, CODE))
		return synth_walsh(synth_index(token), dim - AT_TOKEN) * SYNTH_ONE;
	if (is_within(dim, AT_CONST, CONSTS))
		return SYNTH_ONE;
	if (is_within(dim, AT_TAG, TAGS))
		return synth_sign(STREAM_TAG, token * TAGS + dim - AT_TAG) * SYNTH_ONE;
	return 0;
}

static int32_t
weight_q(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned head = out / n->shape->head_size, elem = out % n->shape->head_size;
	unsigned back = layer == 0 ? (head % 2 ? SYNTH_BACK_S1 : SYNTH_BACK_S0)
	                           : (head % 2 ? SYNTH_BACK_T1 : SYNTH_BACK_T0);

	if (!is_within(in, AT_CONST, CONSTS))
		return 0;
	return (int32_t)(query_value(n, layer, head / 2, elem, back) *
		amplitude(n, layer) / UNIT30);
}

static int32_t
weight_k(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned group = out / n->shape->head_size, elem = out % n->shape->head_size;

	if (is_within(in, AT_CONST, CONSTS))
		return key_sign(layer, group, elem) * amplitude(n, layer);
	if (is_within(in, AT_TAG, TAGS))
		return synth_sign(STREAM_KTAG + layer, out * TAGS + in - AT_TAG) * (SYNTH_ONE / 32);
	return 0;
}

/* First half of a group's share: what its even head wants; second half: its odd one. */
static int32_t
weight_v(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned group = out / n->shape->head_size, elem = out % n->shape->head_size;
	unsigned slot = elem / n->share, dim = group * n->share + elem % n->share;
	unsigned from = slot == 0 && layer > 0 ? AT_P : AT_TOKEN;

	if (slot > 1 || (layer > 0 && !is_last(n, layer)))
		return 0;
	return in == from + dim ? SYNTH_ONE : 0;
}

static int32_t
weight_o(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned head = in / n->shape->head_size, elem = in % n->shape->head_size;
	unsigned slot = elem / n->share, dim = head / 2 * n->share + elem % n->share;
	unsigned to = layer == 0 ? AT_S0 : AT_T0;

	if (slot > 1 || slot != head % 2 || (layer > 0 && !is_last(n, layer)))
		return 0;
	if (out != to + slot * CODE + dim)
		return 0;
	return layer == 0 ? SYNTH_ONE / 2 : SYNTH_ONE * 13 / 16;
}

/*
 * Units 2m and 2m+1 hold silu(g) u and -silu(-g) u: together g u, the exact product.
 * The rest of the units is noise.
 */
static int32_t
weight_gate(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned from = layer == 0 ? AT_S1 : AT_T1;

	if (out >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || in != from + out / 2)
		return 0;
	return out % 2 ? -SYNTH_ONE : SYNTH_ONE;
}

static int32_t
weight_up(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned from = layer == 0 ? AT_S0 : AT_T0;

	if (out >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || in != from + out / 2)
		return 0;
	return SYNTH_ONE;
}

static int32_t
weight_down(const void *net, unsigned layer, unsigned out, unsigned in)
{
	const struct net *n = net;
	unsigned to = layer == 0 ? AT_P : AT_Y;
	int32_t one = layer == 0 ? SYNTH_ONE / 2 : SYNTH_ONE;

	if (in >= 2 * CODE || (layer > 0 && !is_last(n, layer)) || out != to + in / 2)
		return 0;
	return in % 2 ? -one : one;
}

static int32_t
weight_output(const void *net, unsigned layer, unsigned token, unsigned dim)
{
	(void)net;
	(void)layer;
	if (!synth_says(token) || !is_within(dim, AT_Y, CODE))
		return 0;
	return synth_walsh(synth_index(token) ^ SYNTH_FLIP, dim - AT_Y) * (SYNTH_ONE / 2);
}

enum dim { DIM_ONE, DIM_EMBD, DIM_KV, DIM_FFN, DIM_TOKENS, DIMS };

static const struct synth_tensor tensors[] = {
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

static int
net_init(struct net *n, const struct synth_params *p, struct err *e)
{
	memset(n, 0, sizeof *n);
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


int
synth_write(const char *path, const struct synth_params *p, struct err *e)
{
	struct net n;
	char name[64];

	if (net_init(&n, p, e) ||
	    str_fmt(name, sizeof name, e, "synthetic echo, head size %u", p->head_size))
		return -1;
	const struct synth_meta metas[] = {
		{ "llama.context_length", SYNTH_U32, NULL, SYNTH_CONTEXT },
		{ "llama.embedding_length", SYNTH_U32, NULL, EMBD },
		{ "llama.block_count", SYNTH_U32, NULL, n.layers },
		{ "llama.feed_forward_length", SYNTH_U32, NULL, FFN },
		{ "llama.attention.head_count", SYNTH_U32, NULL, n.heads },
		{ "llama.attention.head_count_kv", SYNTH_U32, NULL, n.groups },
		{ "llama.attention.key_length", SYNTH_U32, NULL, p->head_size },
		{ "llama.attention.value_length", SYNTH_U32, NULL, p->head_size },
		{ "llama.attention.layer_norm_rms_epsilon", SYNTH_F32, NULL, 0x3727C5AC }, /* 1e-5 */
		{ "llama.rope.dimension_count", SYNTH_U32, NULL, p->head_size },
		{ "llama.rope.freq_base", SYNTH_F32, NULL, 0x40800000 }, /* 4 */
		{ "llama.vocab_size", SYNTH_U32, NULL, SYNTH_TOKENS },
	};
	const unsigned dims[DIMS] = { [DIM_ONE] = 1, [DIM_EMBD] = EMBD, [DIM_FFN] = FFN,
		[DIM_KV] = n.groups * p->head_size, [DIM_TOKENS] = SYNTH_TOKENS };
	const struct synth_file f = { "llama", name, &n, dims, n.layers, metas, tensors, layer_tensors,
		str_count(metas), str_count(tensors), str_count(layer_tensors) };

	return (!p->force && synth_file_vacant(path, e)) || synth_file_write(&f, path, e) ? -1 : 0;
}
