#include "kernels/truth.h"

#include <math.h>

#include "common/str.h"
#include "kernels/table.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define QJL_SCALE (1.2533141373155003f / 256.0f) /* sqrt(pi / 2) per direction */

static uint16_t
load16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static double
half(const uint8_t *p)
{
	return (double)ref_fp16_decode(load16(p));
}

static void
turbo3_key(const uint8_t *key, bool use_qjl, double *w)
{
	const uint8_t *b;
	unsigned i, code;
	double norm;

	(void)use_qjl;
	for (b = key; b < key + REF_QUARTERS * REF_TURBO3_BLOCK; b += REF_TURBO3_BLOCK) {
		norm = half(b);
		for (i = 0; i < 32; i++) {
			code = (b[2 + i / 4] >> i % 4 * 2 & 3u) |
			       (b[10 + i / 8] >> i % 8 & 1u) << 2;
			*w++ = norm * (double)table_turbo3_centroids[code];
		}
	}
}

static void
turbo4_key(const uint8_t *key, bool use_qjl, double *w)
{
	const uint8_t *b;
	unsigned i;
	double norm;

	(void)use_qjl;
	for (b = key; b < key + REF_QUARTERS * REF_TURBO4_BLOCK; b += REF_TURBO4_BLOCK) {
		norm = half(b);
		for (i = 0; i < 16; i++) {
			w[i] = norm * (double)table_turbo4_centroids[b[2 + i] & 15];
			w[16 + i] = norm * (double)table_turbo4_centroids[b[2 + i] >> 4];
		}
		w += 32;
	}
}

static void
tcq_key(const uint8_t *key, bool use_qjl, double *w)
{
	double norm = half(key);
	unsigned t, at;

	(void)use_qjl;
	for (t = 0; t < REF_HEAD; t++) {
		at = 3 * t;
		/* The last window ends in byte 48 of the stream: one more is in the block. */
		w[t] = norm * (double)table_tcq_codebook
				      [load16(key + 2 + at / 8) >> at % 8 & 511u];
	}
}

static void
qjl_key(const uint8_t *key, bool use_qjl, double *w)
{
	double norm = (double)(QJL_SCALE * ref_bf16_decode(load16(key + 32)));
	unsigned j;

	(void)use_qjl;
	for (j = 0; j < REF_PROJ; j++)
		w[j] = key[j / 8] >> j % 8 & 1 ? norm : -norm;
}

static void
polar_key(const uint8_t *key, bool use_qjl, double *w)
{
	double norm = half(key) / REF_HEAD, step = 0;
	unsigned i;

	if (use_qjl)
		step = (key[66] & 1 ? 1.0 : -1.0) * (double)(0.5f / sqrtf(128.0f));
	for (i = 0; i < REF_HEAD; i++) {
		w[i] = (double)table_polar_centroids[key[2 + i / 2] >> i % 2 * 4 & 15];
		w[i] = norm * (w[i] + step * (double)ref_sign(table_polar_residual, i));
	}
}

/* Kernels of one block format share the row of the function that is their truth. */
static const struct {
	ref_run run;
	void (*key)(const uint8_t *key, bool use_qjl, double *w);
	bool transform; /* of the query, which ref does to the key */
} rows[] = {
	{ref_turbo3_score, turbo3_key, false},
	{ref_turbo4_score, turbo4_key, false},
	{ref_tcq_score, tcq_key, false},
	{ref_qjl_score, qjl_key, false},
	{ref_fused_tbq, qjl_key, false},
	{ref_fused_polar, qjl_key, false},
	{ref_preht_score, polar_key, false},
	{ref_polar_score, polar_key, true},
};

static size_t
row_of(const struct kernel *k)
{
	size_t i;

	for (i = 0; i + 1 < str_count(rows); i++)
		if (rows[i].run == k->run)
			break;
	return i;
}

void
truth_query(const struct kernel *k, const float *q, unsigned head, double *out)
{
	bool transform = rows[row_of(k)].transform;
	size_t i, j, h, n = k->q_dim;
	double a, b;

	out += head;
	for (i = 0; i < n; i++)
		out[i * TRUTH_HEADS] = (double)q[i];
	for (h = 1; transform && h < n; h *= 2)
		for (i = 0; i < n; i += 2 * h)
			for (j = i; j < i + h; j++) {
				a = out[j * TRUTH_HEADS];
				b = out[(j + h) * TRUTH_HEADS];
				out[j * TRUTH_HEADS] = a + b;
				out[(j + h) * TRUTH_HEADS] = a - b;
			}
}

void
truth_key(const struct kernel *k, const uint8_t *key, bool use_qjl,
	double weights[TRUTH_TERMS])
{
	rows[row_of(k)].key(key, use_qjl, weights);
}

void
truth_scores(const struct kernel *k, const double *weights, const double *query,
	double out[TRUTH_HEADS])
{
	double sum[TRUTH_HEADS] = {0};
	unsigned h;
	size_t i;

	/* Heads inside: eight sums that do not wait for each other. */
	for (i = 0; i < k->q_dim; i++, query += TRUTH_HEADS)
		for (h = 0; h < TRUTH_HEADS; h++)
			sum[h] += weights[i] * query[h];
	for (h = 0; h < TRUTH_HEADS; h++)
		out[h] = sum[h];
}

static double
length(const double *v, size_t n, size_t stride)
{
	double s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += v[i * stride] * v[i * stride];
	return sqrt(s);
}

double
truth_query_length(const struct kernel *k, const double *query, unsigned head)
{
	return length(query + head, k->q_dim, TRUTH_HEADS);
}

double
truth_key_length(const struct kernel *k, const double *weights)
{
	return length(weights, k->q_dim, 1);
}

double
truth_tolerance(const struct kernel *k, double base, double q, double key)
{
	return fmax(base, 4 * sqrt((double)k->q_dim) * 0x1p-24 * q * key);
}
