#include "kernels/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/table.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Below this length a direction can not be told; it is taken as zero. */
#define TINY 1e-10f

static void
store16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v & 0xff);
	p[1] = (uint8_t)(v >> 8);
}

static uint16_t
load16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* n <= 9 bits from bit `at`: a window of two bytes. */
static unsigned
load_bits(const uint8_t *p, unsigned at, unsigned n)
{
	unsigned v = p[at >> 3];

	/* The second byte only when it is needed: it may lie past the block. */
	if ((at & 7) + n > 8)
		v |= (unsigned)p[(at >> 3) + 1] << 8;
	return v >> (at & 7) & ((1u << n) - 1);
}

/* Bytes start as zero. */
static void
store_bits(uint8_t *p, unsigned at, unsigned n, unsigned v)
{
	unsigned i;

	for (i = 0; i < n; i++)
		p[(at + i) >> 3] |= (uint8_t)((v >> i & 1) << ((at + i) & 7));
}

/* Sequential f32 sum of squares. */
static float
sum_squares(const float *x, size_t n)
{
	float s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += x[i] * x[i];
	return s;
}

/* f64 sum of squares, its root rounded once. */
static float
length(const float *x, size_t n)
{
	double s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += (double)x[i] * (double)x[i];
	return (float)sqrt(s);
}

/* Unit direction of x in the rotated space of turbo3 and its trellis form; gives the
 * length. */
static float
rotated_unit(const float x[REF_HEAD], float y[REF_HEAD])
{
	float n = sqrtf(sum_squares(x, REF_HEAD)), r = n > TINY ? 1.0f / n : 0.0f;
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		y[i] = x[i] * r;
	ref_rotate(y);
	return n;
}

/* The rounded direction is not a unit vector: dividing keeps the key's length. */
static float
corrected_norm(float n, const float rounded[REF_HEAD])
{
	float rn = sqrtf(sum_squares(rounded, REF_HEAD));

	return rn > TINY ? n / rn : n;
}

void
ref_turbo3_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	float y[REF_HEAD], n = rotated_unit(x, y);
	unsigned code[REF_HEAD], i, j;
	uint8_t *b;

	(void)pi;
	for (i = 0; i < REF_HEAD; i++) {
		code[i] = ref_below(y[i], table_turbo3_thresholds, 7);
		y[i] = table_turbo3_centroids[code[i]];
	}
	memset(out, 0, REF_QUARTERS * REF_TURBO3_BLOCK);
	n = corrected_norm(n, y);
	for (i = 0; i < REF_HEAD; i++) {
		b = out + i / 32 * REF_TURBO3_BLOCK;
		j = i % 32;
		store16(b, ref_fp16_encode(n));
		store_bits(b + 2, 2 * j, 2, code[i] & 3);
		store_bits(b + 10, j, 1, code[i] >> 2);
	}
}

void
ref_turbo3_decode(const uint8_t *in, float out[REF_HEAD])
{
	const uint8_t *b;
	unsigned i, j, code;

	for (i = 0; i < REF_HEAD; i++) {
		b = in + i / 32 * REF_TURBO3_BLOCK;
		j = i % 32;
		code = load_bits(b + 2, 2 * j, 2) | load_bits(b + 10, j, 1) << 2;
		out[i] = table_turbo3_centroids[code] * ref_fp16_decode(load16(b));
	}
}

/* Conditions a quarter into y, stores its root mean square, and gives 1 / it, or 0 for
 * a quarter of zeros, whose codes are all 0. */
static float
conditioned(const float *x, float y[32], uint8_t *block)
{
	float d;

	memcpy(y, x, 32 * sizeof *y);
	ref_condition(y);
	d = sqrtf(sum_squares(y, 32) / 32.0f);
	store16(block, ref_fp16_encode(d));
	return d == 0.0f ? 0.0f : 1.0f / d;
}

/* Codes j and j + 16 share byte j. */
static void
store_nibble(uint8_t *codes, unsigned j, unsigned code)
{
	codes[j % 16] |= (uint8_t)(j < 16 ? code : code << 4);
}

static unsigned
load_nibble(const uint8_t *codes, unsigned j)
{
	return j < 16 ? codes[j] & 15u : codes[j - 16] >> 4;
}

void
ref_turbo4_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	unsigned b, j;
	float y[32], id;

	(void)pi;
	memset(out, 0, REF_QUARTERS * REF_TURBO4_BLOCK);
	for (b = 0; b < REF_QUARTERS; b++, out += REF_TURBO4_BLOCK) {
		id = conditioned(x + 32 * b, y, out);
		for (j = 0; j < 32 && id != 0.0f; j++)
			store_nibble(out + 2, j,
				     ref_below(y[j] * id, table_turbo4_thresholds, 15));
	}
}

void
ref_turbo4_decode(const uint8_t *in, float out[REF_HEAD])
{
	unsigned b, j;
	float d;

	for (b = 0; b < REF_QUARTERS; b++, in += REF_TURBO4_BLOCK) {
		d = ref_fp16_decode(load16(in));
		for (j = 0; j < 32; j++)
			out[32 * b + j] =
				table_turbo4_centroids[load_nibble(in + 2, j)] * d;
	}
}

#define TCQ_STATES 512

/*
 * One step of Viterbi: a state's low six bits are the high six of the one before, so
 * the eight predecessors of s are 8 * (s & 63) + 0..7.
 */
static void
viterbi_step(float x, float cost[TCQ_STATES], uint8_t back[64])
{
	float best[64], d;
	unsigned g, p, s;

	for (g = 0; g < 64; g++) {
		best[g] = cost[8 * g];
		back[g] = 0;
		for (p = 1; p < 8; p++)
			if (cost[8 * g + p] < best[g]) {
				best[g] = cost[8 * g + p];
				back[g] = (uint8_t)p;
			}
	}
	for (s = 0; s < TCQ_STATES; s++) {
		d = x - table_tcq_codebook[s];
		cost[s] = best[s & 63] + d * d;
	}
}

/* The cheapest path: its symbols, and the state before the first of them. */
static unsigned
viterbi(const float y[REF_HEAD], uint8_t symbol[REF_HEAD])
{
	float cost[TCQ_STATES] = {0};
	uint8_t back[REF_HEAD][64];
	unsigned s, t, state = 0;

	for (t = 0; t < REF_HEAD; t++)
		viterbi_step(y[t], cost, back[t]);
	for (s = 1; s < TCQ_STATES; s++)
		if (cost[s] < cost[state])
			state = s;
	for (t = REF_HEAD; t-- > 0;) {
		symbol[t] = (uint8_t)(state >> 6);
		state = (state & 63) << 3 | back[t][state & 63];
	}
	return state;
}

void
ref_tcq_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	float y[REF_HEAD], n = rotated_unit(x, y);
	uint8_t symbol[REF_HEAD];
	unsigned t, state = viterbi(y, symbol);

	(void)pi;
	memset(out, 0, REF_TCQ_BLOCK);
	/* The stream is the state before, then symbols: 9 bits of it are a state. */
	store_bits(out + 2, 0, 6, state >> 3);
	for (t = 0; t < REF_HEAD; t++) {
		store_bits(out + 2, 6 + 3 * t, 3, symbol[t]);
		state = state >> 3 | (unsigned)symbol[t] << 6;
		y[t] = table_tcq_codebook[state];
	}
	store16(out, ref_fp16_encode(corrected_norm(n, y)));
}

void
ref_tcq_decode(const uint8_t *in, float out[REF_HEAD])
{
	float norm = ref_fp16_decode(load16(in));
	unsigned t;

	for (t = 0; t < REF_HEAD; t++)
		out[t] = table_tcq_codebook[load_bits(in + 2, 3 * t, 9)] * norm;
}

void
ref_qjl_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	float sketch[REF_PROJ];
	unsigned j;

	memset(out, 0, REF_QJL_BLOCK);
	ref_sketch(x, pi, sketch);
	for (j = 0; j < REF_PROJ; j++)
		store_bits(out, j, 1, sketch[j] > 0);
	store16(out + 32, ref_bf16_encode(length(x, REF_HEAD)));
}

#define QJL_SCALE (1.2533141373155003f / 256.0f) /* sqrt(pi / 2) per direction */

void
ref_qjl_decode(const uint8_t *in, const float pi[REF_PI], double out[REF_HEAD])
{
	double norm = (double)QJL_SCALE * (double)ref_bf16_decode(load16(in + 32)), s;
	unsigned i, j;

	for (i = 0; i < REF_HEAD; i++) {
		s = 0;
		for (j = 0; j < REF_PROJ; j++)
			s += (double)(ref_sign(in, j) * pi[i * REF_PROJ + j]);
		out[i] = norm * s;
	}
}

static float
qjl_dot(const float q[REF_PROJ], const uint8_t *block)
{
	float acc = 0;
	unsigned j;

	for (j = 0; j < REF_PROJ; j++)
		acc += block[j >> 3] >> (j & 7) & 1 ? q[j] : -q[j];
	return QJL_SCALE * ref_bf16_decode(load16(block + 32)) * acc;
}

static void
polar_quantise(const float x[REF_HEAD], bool residual, uint8_t *out)
{
	float l = length(x, REF_HEAD), r = l > TINY ? 1.0f / l : 0.0f, sum = 0;
	float y[REF_HEAD];
	unsigned i, code;

	memset(out, 0, REF_POLAR_BLOCK);
	for (i = 0; i < REF_HEAD; i++)
		y[i] = x[i] * r;
	ref_hadamard(y, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++) {
		code = ref_below(y[i], table_polar_boundaries, 15);
		store_bits(out + 2, 4 * i, 4, code);
		sum += (y[i] - table_polar_centroids[code]) *
		       ref_sign(table_polar_residual, i);
	}
	store16(out, ref_fp16_encode(l));
	out[66] = residual && sum > 0;
}

void
ref_polar_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	(void)pi;
	polar_quantise(x, false, out);
}

void
ref_polar_qjl_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	(void)pi;
	polar_quantise(x, true, out);
}

/* The rounded direction, not yet transformed back. */
static void
polar_direction(const uint8_t *in, bool residual, float y[REF_HEAD])
{
	float step = (in[66] & 1 ? 1.0f : -1.0f) * (0.5f / sqrtf(128.0f));
	unsigned i;

	for (i = 0; i < REF_HEAD; i++) {
		y[i] = table_polar_centroids[load_bits(in + 2, 4 * i, 4)];
		if (residual)
			y[i] += step * ref_sign(table_polar_residual, i);
	}
}

static void
polar_decode(const uint8_t *in, bool residual, float out[REF_HEAD])
{
	float l = ref_fp16_decode(load16(in));
	unsigned i;

	polar_direction(in, residual, out);
	ref_hadamard(out, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++)
		out[i] = out[i] * (1.0f / 128.0f) * l;
}

void
ref_polar_decode(const uint8_t *in, float out[REF_HEAD])
{
	polar_decode(in, false, out);
}

void
ref_polar_qjl_decode(const uint8_t *in, float out[REF_HEAD])
{
	polar_decode(in, true, out);
}

void
ref_tbq3_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	unsigned b, j;
	float y[32], id;

	(void)pi;
	memset(out, 0, REF_QUARTERS * REF_TBQ3_BLOCK);
	for (b = 0; b < REF_QUARTERS; b++, out += REF_TBQ3_BLOCK) {
		id = conditioned(x + 32 * b, y, out);
		for (j = 0; j < 32 && id != 0.0f; j++)
			store_bits(out + 2, 3 * j, 3,
				   ref_nearest(y[j] * id, table_tbq3_codebook, 8));
	}
}

void
ref_tbq3_decode(const uint8_t *in, float out[REF_HEAD])
{
	unsigned b, j;
	float d;

	for (b = 0; b < REF_QUARTERS; b++, in += REF_TBQ3_BLOCK, out += 32) {
		d = ref_fp16_decode(load16(in));
		for (j = 0; j < 32; j++)
			out[j] = d * table_tbq3_codebook[load_bits(in + 2, 3 * j, 3)];
		ref_uncondition(out);
	}
}

void
ref_tbq4_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out)
{
	unsigned b, j;
	float y[32], id;

	(void)pi;
	memset(out, 0, REF_QUARTERS * REF_TBQ4_BLOCK);
	for (b = 0; b < REF_QUARTERS; b++, out += REF_TBQ4_BLOCK) {
		id = conditioned(x + 32 * b, y, out);
		for (j = 0; j < 32 && id != 0.0f; j++)
			store_nibble(
				out + 2, j,
				ref_nearest(y[j] * id, table_turbo4_centroids, 16));
	}
}

void
ref_tbq4_decode(const uint8_t *in, float out[REF_HEAD])
{
	unsigned b;

	ref_turbo4_decode(in, out);
	for (b = 0; b < REF_QUARTERS; b++)
		ref_uncondition(out + 32 * b);
}

uint32_t
ref_kv_head(const struct ref_case *c, uint32_t h)
{
	return h / (c->n_heads / c->n_kv_heads);
}

uint32_t
ref_visible(const struct ref_case *c)
{
	return c->causal && c->q_pos_base < c->n_kv ? c->q_pos_base + 1 : c->n_kv;
}

/* Blocks of token t as query head h sees it. */
static const uint8_t *
key_at(const struct ref_case *c, const uint8_t *base, size_t bytes, uint32_t h,
       uint32_t t)
{
	return base + ((size_t)ref_kv_head(c, h) * c->n_kv + t) * bytes;
}

/* f64 sum, rounded once. */
static float
dot(const float *a, const float *b)
{
	double s = 0;
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		s += (double)a[i] * (double)b[i];
	return (float)s;
}

static int
score(const struct ref_case *c, size_t key_bytes, ref_decode decode, float *out)
{
	float k[REF_HEAD];
	uint32_t h, t;

	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < c->n_kv; t++) {
			decode(key_at(c, c->k, key_bytes, h, t), k);
			*out++ = dot(c->q + (size_t)h * REF_HEAD, k);
		}
	return 0;
}

int
ref_turbo3_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, REF_QUARTERS * REF_TURBO3_BLOCK, ref_turbo3_decode, out);
}

int
ref_turbo4_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, REF_QUARTERS * REF_TURBO4_BLOCK, ref_turbo4_decode, out);
}

int
ref_tcq_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, REF_TCQ_BLOCK, ref_tcq_decode, out);
}

int
ref_polar_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, REF_POLAR_BLOCK,
		     c->use_qjl ? ref_polar_qjl_decode : ref_polar_decode, out);
}

int
ref_preht_score(const struct ref_case *c, float *out, struct err *e)
{
	const uint8_t *key;
	float y[REF_HEAD];
	uint32_t h, t;

	(void)e;
	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < c->n_kv; t++) {
			key = key_at(c, c->k, REF_POLAR_BLOCK, h, t);
			polar_direction(key, c->use_qjl, y);
			*out++ = dot(c->q + (size_t)h * REF_HEAD, y) * (1.0f / 128.0f) *
				 ref_fp16_decode(load16(key));
		}
	return 0;
}

int
ref_qjl_score(const struct ref_case *c, float *out, struct err *e)
{
	uint32_t h, t;

	(void)e;
	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < c->n_kv; t++)
			*out++ = qjl_dot(c->q + (size_t)h * REF_PROJ,
					 key_at(c, c->k, REF_QJL_BLOCK, h, t));
	return 0;
}

float
ref_fused_raw(const struct ref_case *c, uint32_t h, uint32_t t)
{
	return qjl_dot(c->q + (size_t)h * REF_PROJ,
		       key_at(c, c->k, REF_QJL_BLOCK, h, t)) *
	       c->sm_scale;
}

/* Logits of n tokens to weights that add up to 1; all 0 without a finite logit. */
static void
softmax(float *w, uint32_t n)
{
	float max = -INFINITY, inv;
	bool any = false;
	double sum = 0;
	uint32_t t;

	for (t = 0; t < n; t++) {
		any = any || isfinite(w[t]);
		if (w[t] > max)
			max = w[t];
	}
	for (t = 0; t < n; t++) {
		w[t] = any ? expf(w[t] - max) : 0.0f;
		sum += (double)w[t];
	}
	inv = any ? (float)(1.0 / sum) : 0.0f;
	for (t = 0; t < n; t++)
		w[t] *= inv;
}

static int
fused(const struct ref_case *c, size_t value_bytes, ref_decode decode, float *out,
      struct err *e)
{
	uint32_t n = ref_visible(c), h, t, d;
	float *w, v[REF_HEAD];

	if ((w = calloc((size_t)n + 1, sizeof *w)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %u attention weights", n);
	for (h = 0; h < c->n_heads; h++, out += REF_HEAD) {
		for (t = 0; t < n; t++)
			w[t] = ref_fused_raw(c, h, t);
		softmax(w, n);
		for (d = 0; d < REF_HEAD; d++)
			out[d] = 0;
		for (t = 0; t < n; t++) {
			decode(key_at(c, c->v, value_bytes, h, t), v);
			for (d = 0; d < REF_HEAD; d++)
				out[d] += w[t] * v[d];
		}
	}
	free(w);
	return 0;
}

int
ref_fused_tbq(const struct ref_case *c, float *out, struct err *e)
{
	return fused(c, REF_QUARTERS * REF_TBQ3_BLOCK, ref_tbq3_decode, out, e);
}

int
ref_fused_polar(const struct ref_case *c, float *out, struct err *e)
{
	return fused(c, REF_POLAR_BLOCK,
		     c->use_qjl ? ref_polar_qjl_decode : ref_polar_decode, out, e);
}

void
ref_part_init(struct ref_part *p)
{
	memset(p, 0, sizeof *p);
	p->max = -INFINITY;
}

void
ref_part_add(struct ref_part *p, float raw, const float v[REF_HEAD])
{
	struct ref_part one = {.max = raw, .sum = 1.0f};

	memcpy(one.acc, v, sizeof one.acc);
	ref_part_merge(p, &one);
}

void
ref_part_merge(struct ref_part *into, const struct ref_part *from)
{
	float max = into->max > from->max ? into->max : from->max, a, b;
	unsigned d;

	/* An empty part has max -inf, and -inf - -inf is not a number. */
	a = into->max == -INFINITY ? 0.0f : expf(into->max - max);
	b = from->max == -INFINITY ? 0.0f : expf(from->max - max);
	into->max = max;
	into->sum = into->sum * a + from->sum * b;
	for (d = 0; d < REF_HEAD; d++)
		into->acc[d] = into->acc[d] * a + from->acc[d] * b;
}

void
ref_part_out(const struct ref_part *p, float out[REF_HEAD])
{
	unsigned d;

	for (d = 0; d < REF_HEAD; d++)
		out[d] = p->sum == 0.0f ? 0.0f : p->acc[d] / p->sum;
}
