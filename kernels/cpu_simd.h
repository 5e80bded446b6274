/*
 * cpu_simd - the kernels of a CPU, written once over vectors of 16 floats.
 *
 * A file per instruction set defines the vectors, then includes this one, which ends in
 * the set's table of kernels.  What the file has to define:
 *
 *   SIMD_TABLE, INLINE        the name of the table; static and always inline
 *   SIMD_ACCS                 how many sums of 16 floats fit in registers (4 or 8)
 *   struct v16                16 floats: v16_zero, v16_set, v16_load, v16_store (any
 *                             address), v16_mul, v16_fma(a, b, c) = a * b + c
 *   v16_sums(v, out)          the sum of each of SIMD_ACCS vectors
 *   v16_signs(p)              bits 0 to 15 of p as +1 and -1
 *   struct c16                16 small numbers:
 *   fields(p, at, n)          number j starts at bit at + n * j of 16 bytes; bits above
 *                             its width are undefined, here and below
 *   c16_join(low, high)       two bits of low, and one of high above them
 *   struct levels             8 or 16 floats to choose from: levels8, levels16(p),
 *                             lookup8, lookup16(levels, numbers)
 *   half(h)                   fp16 to float, exact
 *
 * Everything is inline, and at, n and the functions passed on are constants, so that a
 * kernel becomes one loop with its shuffles in registers.
 */
#ifndef KERNELS_CPU_SIMD_H
#define KERNELS_CPU_SIMD_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/cpu.h"
#include "kernels/table.h"

#define QJL_SCALE (1.2533141373155003f / 256.0f) /* sqrt(pi / 2) per direction */
#define POLAR_STEP 0.04419417382415922f		 /* 0.5 / sqrt(128) */
#define POLAR_SCALE (1.0f / 128.0f)
#define MIX_TOKENS 16 /* values unpacked together: 8 KiB of a first-level cache */

INLINE uint16_t
load16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* What a call knows beside the blocks. */
struct run {
	bool residual;		 /* polar's */
	const float (*pairs)[2]; /* turbo3_tcq's */
};

/* Reads a key, or a value, into floats and gives the factor that they lack. */
typedef float (*unpack)(const uint8_t *in, struct run run, float *out);

INLINE float
unpack_turbo3(const uint8_t *in, struct run run, float *out)
{
	struct levels t = levels8(table_turbo3_centroids);
	struct v16 norm;
	unsigned b;

	(void)run;
	for (b = 0; b < REF_QUARTERS; b++, in += REF_TURBO3_BLOCK, out += 32) {
		norm = v16_set(half(load16(in)));
		v16_store(out, v16_mul(norm, lookup8(t, c16_join(fields(in, 16, 2),
								 fields(in, 80, 1)))));
		v16_store(out + 16,
			  v16_mul(norm, lookup8(t, c16_join(fields(in, 48, 2),
							    fields(in, 96, 1)))));
	}
	return 1.0f;
}

INLINE float
unpack_turbo4(const uint8_t *in, struct run run, float *out)
{
	struct levels t = levels16(table_turbo4_centroids);
	struct v16 norm;
	unsigned b;

	(void)run;
	for (b = 0; b < REF_QUARTERS; b++, in += REF_TURBO4_BLOCK, out += 32) {
		norm = v16_set(half(load16(in)));
		v16_store(out, v16_mul(norm, lookup16(t, fields(in + 2, 0, 8))));
		v16_store(out + 16, v16_mul(norm, lookup16(t, fields(in + 2, 4, 8))));
	}
	return 1.0f;
}

/* A value of the fused kernel, in the conditioned space. */
INLINE float
unpack_tbq3(const uint8_t *in, struct run run, float *out)
{
	struct levels t = levels8(table_tbq3_codebook);
	struct v16 norm;
	unsigned b;

	(void)run;
	for (b = 0; b < REF_QUARTERS; b++, in += REF_TBQ3_BLOCK, out += 32) {
		norm = v16_set(half(load16(in)));
		v16_store(out, v16_mul(norm, lookup8(t, fields(in, 16, 3))));
		v16_store(out + 16, v16_mul(norm, lookup8(t, fields(in, 64, 3))));
	}
	return 1.0f;
}

/* A look-up gives two elements, since a vector's own gather is no faster than one each:
 * their windows of nine bits make twelve. */
#define TCQ_PAIRS 4096

static void
pairs_init(float pairs[TCQ_PAIRS][2])
{
	unsigned i;

	for (i = 0; i < TCQ_PAIRS; i++) {
		pairs[i][0] = table_tcq_codebook[i & 511];
		pairs[i][1] = table_tcq_codebook[i >> 3];
	}
}

/* Eight pairs from 54 bits of the stream, little-endian as all processors here. */
INLINE float
unpack_tcq(const uint8_t *in, struct run run, float *out)
{
	unsigned i, j;
	uint64_t bits;

	for (i = 0; i < REF_HEAD / 16; i++) {
		memcpy(&bits, in + 2 + 6 * i, sizeof bits);
#pragma GCC unroll 8
		for (j = 0; j < 8; j++, out += 2)
			memcpy(out, run.pairs[bits >> 6 * j & (TCQ_PAIRS - 1)],
			       sizeof run.pairs[0]);
	}
	return half(load16(in));
}

INLINE float
unpack_qjl(const uint8_t *in, struct run run, float *out)
{
	uint32_t norm = (uint32_t)load16(in + 32) << 16;
	unsigned i;
	float f;

	(void)run;
	for (i = 0; i < REF_PROJ / 16; i++)
		v16_store(out + 16 * i, v16_signs(in + 2 * i));
	memcpy(&f, &norm, sizeof f);
	return QJL_SCALE * f;
}

/* In the transformed space, where the residual is a step along fixed signs. */
INLINE float
unpack_polar(const uint8_t *in, struct run run, float *out)
{
	struct levels t = levels16(table_polar_centroids);
	struct v16 step = v16_set(!run.residual ? 0.0f
				  : in[66] & 1	? POLAR_STEP
						: -POLAR_STEP);
	unsigned i;

	for (i = 0; i < REF_HEAD; i += 32) {
		v16_store(out + i,
			  v16_fma(step, v16_signs(table_polar_residual + i / 8),
				  lookup16(t, fields(in + 2 + i / 2, 0, 4))));
		v16_store(out + i + 16,
			  v16_fma(step, v16_signs(table_polar_residual + i / 8 + 2),
				  lookup16(t, fields(in + 2 + i / 2, 64, 4))));
	}
	return POLAR_SCALE * half(load16(in));
}

/* A query against SIMD_ACCS keys. */
INLINE void
dots(const float *q, float y[][REF_PROJ], unsigned dim, float out[SIMD_ACCS])
{
	struct v16 sum[SIMD_ACCS], part;
	unsigned i, j;

	for (j = 0; j < SIMD_ACCS; j++)
		sum[j] = v16_zero();
	for (i = 0; i < dim; i += 16) {
		part = v16_load(q + i);
#pragma GCC unroll 8
		for (j = 0; j < SIMD_ACCS; j++)
			sum[j] = v16_fma(part, v16_load(y[j] + i), sum[j]);
	}
	v16_sums(sum, out);
}

/* The query heads of one kv head against its first n keys: each key is read once.  Rows
 * of out are `stride` floats apart. */
INLINE void
score_group(const float *q, unsigned heads, unsigned dim, const uint8_t *k,
	    size_t bytes, unpack u, struct run run, uint32_t n, float *out,
	    size_t stride)
{
	_Alignas(64) float y[SIMD_ACCS][REF_PROJ] = {{0}};
	float factor[SIMD_ACCS], dot[SIMD_ACCS];
	uint32_t t, j, h, keys;

	for (t = 0; t < n; t += keys) {
		keys = n - t < SIMD_ACCS ? n - t : SIMD_ACCS;
		for (j = 0; j < keys; j++, k += bytes)
			factor[j] = u(k, run, y[j]);
		for (h = 0; h < heads; h++) {
			dots(q + (size_t)h * dim, y, dim, dot);
			for (j = 0; j < keys; j++)
				out[h * stride + t + j] = factor[j] * dot[j];
		}
	}
}

INLINE int
score(const struct ref_case *c, const float *q, unsigned dim, size_t bytes, unpack u,
      struct run run, float *out)
{
	unsigned heads = c->n_heads / c->n_kv_heads;
	uint32_t kv;

	for (kv = 0; kv < c->n_kv_heads; kv++)
		score_group(q + (size_t)kv * heads * dim, heads, dim,
			    c->k + (size_t)kv * c->n_kv * bytes, bytes, u, run, c->n_kv,
			    out + (size_t)kv * heads * c->n_kv, c->n_kv);
	return 0;
}

static int
turbo3_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, c->q, REF_HEAD, REF_QUARTERS * REF_TURBO3_BLOCK, unpack_turbo3,
		     (struct run){0}, out);
}

static int
turbo4_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, c->q, REF_HEAD, REF_QUARTERS * REF_TURBO4_BLOCK, unpack_turbo4,
		     (struct run){0}, out);
}

static int
tcq_score(const struct ref_case *c, float *out, struct err *e)
{
	float pairs[TCQ_PAIRS][2];

	(void)e;
	pairs_init(pairs);
	return score(c, c->q, REF_HEAD, REF_TCQ_BLOCK, unpack_tcq,
		     (struct run){.pairs = (const float(*)[2])pairs}, out);
}

static int
qjl_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, c->q, REF_PROJ, REF_QJL_BLOCK, unpack_qjl, (struct run){0},
		     out);
}

static int
preht_score(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	return score(c, c->q, REF_HEAD, REF_POLAR_BLOCK, unpack_polar,
		     (struct run){.residual = c->use_qjl}, out);
}

/* The transform is symmetric: the query's, once, instead of every key's. */
static int
polar_score(const struct ref_case *c, float *out, struct err *e)
{
	float *hq = calloc((size_t)c->n_heads * REF_HEAD + 1, sizeof *hq);
	uint32_t h;

	if (hq == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %u queries", c->n_heads);
	memcpy(hq, c->q, (size_t)c->n_heads * REF_HEAD * sizeof *hq);
	for (h = 0; h < c->n_heads; h++)
		ref_hadamard(hq + (size_t)h * REF_HEAD, REF_HEAD);
	score(c, hq, REF_HEAD, REF_POLAR_BLOCK, unpack_polar,
	      (struct run){.residual = c->use_qjl}, out);
	free(hq);
	return 0;
}

/* Scores to weights that add up to 1; all 0 without a finite logit. */
static void
softmax(float *w, uint32_t n, float scale)
{
	float max = -INFINITY, inv;
	bool any = false;
	double sum = 0;
	uint32_t t;

	for (t = 0; t < n; t++) {
		w[t] *= scale;
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

/* Adds up to MIX_TOKENS weighted values to one head's output.  A sum of its own per
 * call keeps the rounding of long contexts small. */
INLINE void
mix(const float *w, float y[][REF_HEAD], unsigned tokens, float out[REF_HEAD])
{
	struct v16 sum[SIMD_ACCS], weight;
	unsigned d, i, t;

	for (d = 0; d < REF_HEAD; d += 16 * SIMD_ACCS) {
		for (i = 0; i < SIMD_ACCS; i++)
			sum[i] = v16_zero();
		for (t = 0; t < tokens; t++) {
			weight = v16_set(w[t]);
#pragma GCC unroll 8
			for (i = 0; i < SIMD_ACCS; i++)
				sum[i] = v16_fma(weight, v16_load(y[t] + d + 16 * i),
						 sum[i]);
		}
		for (i = 0; i < SIMD_ACCS; i++)
			v16_store(out + d + 16 * i,
				  v16_fma(v16_set(1.0f), v16_load(out + d + 16 * i),
					  sum[i]));
	}
}

/* Weighted sums of the n values of a kv head, in the space that `u` unpacks to.  Rows
 * of w are n floats apart. */
INLINE void
mix_group(const float *w, unsigned heads, const uint8_t *v, size_t bytes, unpack u,
	  struct run run, uint32_t n, float *out)
{
	_Alignas(64) float y[MIX_TOKENS][REF_HEAD];
	float factor[MIX_TOKENS], weight[MIX_TOKENS];
	uint32_t t, j, h, tokens;

	for (t = 0; t < n; t += tokens) {
		tokens = n - t < MIX_TOKENS ? n - t : MIX_TOKENS;
		for (j = 0; j < tokens; j++, v += bytes)
			factor[j] = u(v, run, y[j]);
		for (h = 0; h < heads; h++) {
			for (j = 0; j < tokens; j++)
				weight[j] = w[(size_t)h * n + t + j] * factor[j];
			mix(weight, y, tokens, out + (size_t)h * REF_HEAD);
		}
	}
}

/* Attention of all heads; `back` is what the sum of the values still needs: it is
 * linear, so once per head does for all tokens. */
INLINE int
fused(const struct ref_case *c, size_t bytes, unpack u, void (*back)(float *out),
      float *out, struct err *e)
{
	unsigned heads = c->n_heads / c->n_kv_heads, h;
	uint32_t n = ref_visible(c), kv;
	float *w = calloc((size_t)heads * n + 1, sizeof *w);

	if (w == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %u x %u attention weights",
			       heads, n);
	memset(out, 0, (size_t)c->n_heads * REF_HEAD * sizeof *out);
	for (kv = 0; kv < c->n_kv_heads; kv++, out += (size_t)heads * REF_HEAD) {
		score_group(c->q + (size_t)kv * heads * REF_PROJ, heads, REF_PROJ,
			    c->k + (size_t)kv * c->n_kv * REF_QJL_BLOCK, REF_QJL_BLOCK,
			    unpack_qjl, (struct run){0}, n, w, n);
		for (h = 0; h < heads; h++)
			softmax(w + (size_t)h * n, n, c->sm_scale);
		mix_group(w, heads, c->v + (size_t)kv * c->n_kv * bytes, bytes, u,
			  (struct run){.residual = c->use_qjl}, n, out);
		for (h = 0; h < heads; h++)
			back(out + (size_t)h * REF_HEAD);
	}
	free(w);
	return 0;
}

static void
back_tbq(float *out)
{
	unsigned b;

	for (b = 0; b < REF_QUARTERS; b++)
		ref_uncondition(out + 32 * b);
}

static void
back_polar(float *out)
{
	ref_hadamard(out, REF_HEAD);
}

static int
fused_tbq(const struct ref_case *c, float *out, struct err *e)
{
	return fused(c, REF_QUARTERS * REF_TBQ3_BLOCK, unpack_tbq3, back_tbq, out, e);
}

static int
fused_polar(const struct ref_case *c, float *out, struct err *e)
{
	return fused(c, REF_POLAR_BLOCK, unpack_polar, back_polar, out, e);
}

const struct cpu_kernel SIMD_TABLE[CPU_KERNELS] = {
	{ref_turbo3_score, turbo3_score}, {ref_turbo4_score, turbo4_score},
	{ref_tcq_score, tcq_score},	  {ref_qjl_score, qjl_score},
	{ref_polar_score, polar_score},	  {ref_preht_score, preht_score},
	{ref_fused_tbq, fused_tbq},	  {ref_fused_polar, fused_polar},
};

#endif
