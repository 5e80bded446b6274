#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/ref.h"
#include "kernels/table.h"

#define PI_SEED UINT64_C(0xCAFEBABE12345678)
#define PI_SEED_FUSED UINT64_C(0xF00DCAFEBABE1234)

static float pi[REF_PI];

static uint32_t
crc32_of(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint32_t crc = 0xffffffff;
	size_t i;
	int bit;

	for (i = 0; i < n; i++) {
		crc ^= b[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void
draw(struct ref_rng *r, float *x)
{
	int i;

	for (i = 0; i < REF_HEAD; i++)
		x[i] = ref_rng_normal(r);
}

static void
tables_have_their_checksums(void **state)
{
	static const struct {
		const float *v;
		size_t n;
		uint32_t crc;
	} rows[] = {
		{table_turbo3_centroids, 8, 0x11a3b2df},
		{table_turbo3_thresholds, 7, 0x63a59b62},
		{table_turbo4_centroids, 16, 0x6f430355},
		{table_turbo4_thresholds, 15, 0x65c57e67},
		{table_tbq3_codebook, 8, 0x6a88cb65},
		{table_polar_centroids, 16, 0x84a4dffd},
		{table_polar_boundaries, 15, 0x3a10b96e},
		{table_tcq_codebook, 512, 0x04b9690c},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		assert_int_equal(crc32_of(rows[i].v, rows[i].n * sizeof(float)), rows[i].crc);
}

static void
sign_maps_are_the_documented_ones(void **state)
{
	char hex[33];

	(void)state;
	str_hex(hex, table_signs1, 16);
	assert_string_equal(hex, "a6fc951bb6a607bd44c4395b56af0db6");
	str_hex(hex, table_signs2, 16);
	assert_string_equal(hex, "6f1153e923709dc085ca5a489d9a5a41");
	str_hex(hex, table_signs32, 4);
	assert_string_equal(hex, "2d4b96a5");
	str_hex(hex, table_polar_residual, 16);
	assert_string_equal(hex, "04cb343a54e8cba3f51079dab1262597");
}

static void
polar_residual_signs_come_from_xorshift(void **state)
{
	uint32_t x = 42;
	unsigned i;

	(void)state;
	for (i = 0; i < REF_HEAD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		assert_true(ref_sign(table_polar_residual, i) == (x & 1 ? 1.0f : -1.0f));
	}
}

static void
fp16_rounds_half_away_from_zero(void **state)
{
	(void)state;
	assert_int_equal(ref_fp16_encode(1.0f + 0x1p-11f), 0x3c01);
	assert_int_equal(ref_fp16_encode(2049.0f), 0x6801);
	assert_int_equal(ref_fp16_encode(65519.99f), 0x7bff);
	assert_int_equal(ref_fp16_encode(65520.0f), 0x7c00);
	assert_int_equal(ref_fp16_encode(0x1p-24f), 0x0001);
	assert_int_equal(ref_fp16_encode(-2049.0f), 0xe801);
	assert_int_equal(ref_fp16_encode(0x1p-25f), 0x0001);
	assert_int_equal(ref_fp16_encode(0x1.fffffep-26f), 0x0000);
	assert_int_equal(ref_fp16_encode(0x1p-60f), 0x0000);
	assert_int_equal(ref_fp16_encode(-0.0f), 0x8000);
	assert_int_equal(ref_fp16_encode(3e38f), 0x7c00);
	assert_int_equal(ref_fp16_encode(-INFINITY), 0xfc00);
	assert_int_equal(ref_fp16_encode(NAN) & 0x7fff, 0x7e00);
}

static void
fp16_survives_a_round_trip(void **state)
{
	unsigned h;
	float v;

	(void)state;
	for (h = 0; h < 0x10000; h++) {
		v = ref_fp16_decode((uint16_t)h);
		if ((h & 0x7fff) > 0x7c00)
			assert_true(isnan(v));
		else
			assert_int_equal(ref_fp16_encode(v), h);
	}
}

static void
fp16_subnormals_are_multiples_of_2_to_minus_24(void **state)
{
	unsigned m;

	(void)state;
	for (m = 0; m < 1024; m++) {
		assert_true(ref_fp16_decode((uint16_t)m) == ldexpf((float)m, -24));
		assert_true(ref_fp16_decode((uint16_t)(m | 0x8000)) == ldexpf(-(float)m, -24));
	}
}

static void
bf16_rounds_half_to_even_and_keeps_a_nan(void **state)
{
	(void)state;
	assert_int_equal(ref_bf16_encode(1.0f), 0x3f80);
	assert_int_equal(ref_bf16_encode(1.0f + 0x1p-8f), 0x3f80);
	assert_int_equal(ref_bf16_encode(1.0f + 0x1.8p-7f), 0x3f82);
	assert_true(ref_bf16_decode(0x4136) == 11.375f);
	assert_true(isnan(ref_bf16_decode(ref_bf16_encode(NAN))));
}

static void
code_search_breaks_ties_as_documented(void **state)
{
	static const float t[] = {-1.0f, 0.0f, 2.0f}, c[] = {0.0f, 1.0f, 3.0f};

	(void)state;
	assert_int_equal(ref_below(-1.5f, t, 3), 0);
	assert_int_equal(ref_below(-1.0f, t, 3), 1); /* the upper one */
	assert_int_equal(ref_below(2.0f, t, 3), 3);
	assert_int_equal(ref_below(NAN, t, 3), 3);
	assert_int_equal(ref_nearest(-9.0f, c, 3), 0);
	assert_int_equal(ref_nearest(0.5f, c, 3), 0); /* the lower one */
	assert_int_equal(ref_nearest(2.0f, c, 3), 1);
	assert_int_equal(ref_nearest(2.1f, c, 3), 2);
	assert_int_equal(ref_nearest(9.0f, c, 3), 2);
	assert_int_equal(ref_nearest(NAN, c, 3), 2);
}

static void
hadamard_is_the_matrix_of_bit_parities(void **state)
{
	float x[REF_HEAD], y[REF_HEAD];
	struct ref_rng r;
	double s;
	int i, j;

	(void)state;
	ref_rng_init(&r);
	draw(&r, x);
	memcpy(y, x, sizeof y);
	ref_hadamard(y, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++) {
		for (s = 0, j = 0; j < REF_HEAD; j++)
			s += __builtin_popcount((unsigned)(i & j)) & 1 ? -(double)x[j] :
				(double)x[j];
		assert_true(fabs(s - (double)y[i]) < 1e-4);
	}
}

static void
conditioning_has_its_inverse(void **state)
{
	float x[32], y[32];
	struct ref_rng r;
	int i;

	(void)state;
	ref_rng_init(&r);
	for (i = 0; i < 32; i++)
		y[i] = x[i] = ref_rng_normal(&r);
	ref_condition(y);
	ref_uncondition(y);
	for (i = 0; i < 32; i++)
		assert_true(fabsf(x[i] - y[i]) < 1e-5f);
}

static void
stream_begins_as_documented(void **state)
{
	static const float first[] = {-1.22754014f, 0.600449562f, -1.10636687f, -1.08065319f};
	struct ref_rng r;
	size_t i;

	(void)state;
	ref_rng_init(&r);
	for (i = 0; i < str_count(first); i++)
		assert_true(ref_rng_normal(&r) == first[i]);
}

static void
projections_are_the_documented_ones(void **state)
{
	static const struct {
		uint64_t seed;
		float first[4];
		uint32_t crc;
	} rows[] = {
		{PI_SEED, {0.0873827115f, -0.560412824f, 1.76852381f, 0.566575229f},
			0xdf65d3ec},
		{PI_SEED_FUSED, {0.894858181f, -0.150600865f, 1.00402403f, 0.536920726f},
			0xc48eda72},
	};
	size_t i;
	int j;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		ref_pi_fill(rows[i].seed, pi);
		for (j = 0; j < 4; j++)
			assert_true(pi[j] == rows[i].first[j]);
		assert_int_equal(crc32_of(pi, sizeof pi), rows[i].crc);
	}
}

/* Score of one drawn key for one drawn query, elements drawn in turn. */
static float
self_test(ref_quantise quantise, ref_run run, bool use_qjl, bool sketch)
{
	float q[REF_PROJ], x[REF_HEAD], raw[REF_HEAD], out = NAN;
	uint8_t blocks[REF_POLAR_BLOCK];
	struct ref_case c = {1, 1, 1, q, blocks, NULL, use_qjl, false, 0, 0};
	struct ref_rng r;
	struct err e = {0};
	int i;

	ref_rng_init(&r);
	for (i = 0; i < REF_HEAD; i++) {
		q[i] = raw[i] = ref_rng_normal(&r);
		x[i] = ref_rng_normal(&r);
	}
	ref_pi_fill(PI_SEED, pi);
	if (sketch)
		ref_sketch(raw, pi, q);
	quantise(x, pi, blocks);
	assert_int_equal(run(&c, &out, &e), 0);
	return out;
}

static void
self_test_constants_are_reproduced(void **state)
{
	static const struct {
		ref_quantise quantise;
		ref_run run;
		bool use_qjl, sketch;
		double wanted;
	} rows[] = {
		{ref_turbo3_quantise, ref_turbo3_score, false, false, -2.501480},
		{ref_turbo4_quantise, ref_turbo4_score, false, false, -23.721790},
		{ref_tcq_quantise, ref_tcq_score, false, false, -4.822659},
		{ref_qjl_quantise, ref_qjl_score, false, true, 3.696591},
		{ref_polar_quantise, ref_polar_score, false, false, -1.994053},
		{ref_polar_qjl_quantise, ref_polar_score, true, false, -1.438744},
	};
	size_t i;
	float got;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		got = self_test(rows[i].quantise, rows[i].run, rows[i].use_qjl, rows[i].sketch);
		/* Six digits after the point are printed. */
		assert_true(fabs((double)got - rows[i].wanted) < 1.5e-6);
	}
}

/* All formats, for what must hold of each. */
static const struct format {
	ref_quantise quantise;
	ref_decode decode;
	size_t bytes;
	bool rotated, conditioned; /* space that decode stays in */
	double error;              /* mean relative squared error on N(0, 1) keys */
} formats[] = {
	{ref_turbo3_quantise, ref_turbo3_decode, 56, true, false, 0.0339},
	{ref_turbo4_quantise, ref_turbo4_decode, 72, false, true, 0.0089},
	{ref_tcq_quantise, ref_tcq_decode, 52, true, false, 0.0217},
	{ref_polar_quantise, ref_polar_decode, 82, false, false, 0.0093},
	{ref_polar_qjl_quantise, ref_polar_qjl_decode, 82, false, false, 0.0107},
	{ref_tbq3_quantise, ref_tbq3_decode, 56, false, false, 0.0326},
	{ref_tbq4_quantise, ref_tbq4_decode, 72, false, false, 0.0089},
};

static double
relative_error(const struct format *f, const float *x, const float *y)
{
	float want[REF_HEAD];
	double d = 0, s = 0;
	int i;

	memcpy(want, x, sizeof want);
	if (f->rotated)
		ref_rotate(want);
	for (i = 0; f->conditioned && i < REF_HEAD; i += 32)
		ref_condition(want + i);
	for (i = 0; i < REF_HEAD; i++) {
		d += ((double)y[i] - (double)want[i]) * ((double)y[i] - (double)want[i]);
		s += (double)want[i] * (double)want[i];
	}
	return d / s;
}

static void
decoding_loses_what_the_format_costs(void **state)
{
	const int keys = 300;
	float x[REF_HEAD], y[REF_HEAD];
	uint8_t blocks[REF_POLAR_BLOCK];
	struct ref_rng r;
	double sum;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < str_count(formats); i++) {
		ref_rng_init(&r);
		for (n = 0, sum = 0; n < keys; n++) {
			draw(&r, x);
			formats[i].quantise(x, NULL, blocks);
			formats[i].decode(blocks, y);
			sum += relative_error(&formats[i], x, y);
		}
		assert_true(fabs(sum / keys / formats[i].error - 1) < 0.05);
	}
}

static void
zero_key_decodes_to_zero(void **state)
{
	float x[REF_HEAD] = {0}, y[REF_HEAD];
	uint8_t blocks[REF_POLAR_BLOCK];
	size_t i;
	int j;

	(void)state;
	for (i = 0; i < str_count(formats); i++) {
		formats[i].quantise(x, NULL, blocks);
		formats[i].decode(blocks, y);
		for (j = 0; j < REF_HEAD; j++)
			assert_true(y[j] == 0);
	}
	/* turbo3 and polar take the code above 0, turbo4 no code at all. */
	ref_turbo3_quantise(x, NULL, blocks);
	assert_int_equal(blocks[2], 0);
	assert_int_equal(blocks[10], 0xff);
	ref_polar_quantise(x, NULL, blocks);
	assert_int_equal(blocks[2], 0x88);
	assert_int_equal(blocks[66], 0);
	ref_polar_qjl_quantise(x, NULL, blocks);
	assert_int_equal(blocks[66], 1);
	ref_turbo4_quantise(x, NULL, blocks);
	assert_int_equal(blocks[2], 0);
}

/* An element that is not a number makes every score of its key one. */
static void
nan_key_stays_not_a_number(void **state)
{
	static const size_t nan_block[] = {0, 32, 0, 0, 0, 32, 32};
	float x[REF_HEAD], y[REF_HEAD];
	uint8_t blocks[REF_POLAR_BLOCK];
	struct ref_rng r;
	size_t i;

	(void)state;
	ref_rng_init(&r);
	for (i = 0; i < str_count(formats); i++) {
		draw(&r, x);
		x[40] = NAN;
		formats[i].quantise(x, NULL, blocks);
		formats[i].decode(blocks, y);
		/* A format of four norms confines it to one quarter: 32 to 63. */
		assert_true(isnan(y[nan_block[i]]));
		assert_true(isnan(y[40]));
	}
	ref_qjl_quantise(x, pi, blocks);
	assert_true(isnan(ref_bf16_decode((uint16_t)(blocks[32] | blocks[33] << 8))));
}

static void
subnormal_norm_is_decoded_whole(void **state)
{
	float x[REF_HEAD], y[REF_HEAD], q[REF_HEAD], out = NAN, tiny = NAN;
	uint8_t blocks[REF_POLAR_BLOCK];
	struct ref_case c = {1, 1, 1, q, blocks, NULL, false, false, 0, 0};
	struct ref_rng r;
	struct err e = {0};
	int i;

	(void)state;
	ref_rng_init(&r);
	draw(&r, q);
	draw(&r, x);
	ref_polar_quantise(x, NULL, blocks);
	blocks[0] = 0x00, blocks[1] = 0x3c; /* 1.0 */
	assert_int_equal(ref_polar_score(&c, &out, &e), 0);
	ref_polar_decode(blocks, y);
	blocks[0] = 0x55, blocks[1] = 0x01; /* 341 * 2^-24 */
	assert_int_equal(ref_polar_score(&c, &tiny, &e), 0);
	assert_true(fabsf(tiny / (out * (341.0f * 0x1p-24f)) - 1) < 1e-5f);
	for (i = 0; i < REF_HEAD; i++)
		y[i] *= 1e-6f;
	ref_polar_quantise(y, NULL, blocks);
	assert_int_equal(blocks[0] | blocks[1] << 8, ref_fp16_encode(1e-6f));
	assert_true(ref_fp16_encode(1e-6f) < 0x0400);
}

/* Bit p of the stream of a trellis block. */
static unsigned
stream_bit(const uint8_t *block, unsigned p)
{
	return block[2 + (p >> 3)] >> (p & 7) & 1;
}

static void
trellis_state_is_a_window_of_nine_bits(void **state)
{
	float x[REF_HEAD], y[REF_HEAD], norm;
	uint8_t block[REF_TCQ_BLOCK];
	struct ref_rng r;
	unsigned t, b, s;

	(void)state;
	ref_rng_init(&r);
	draw(&r, x);
	ref_tcq_quantise(x, NULL, block);
	ref_tcq_decode(block, y);
	norm = ref_fp16_decode((uint16_t)(block[0] | block[1] << 8));
	for (s = 0, b = 0; b < 6; b++)
		s |= stream_bit(block, b) << (3 + b);
	for (t = 0; t < REF_HEAD; t++) {
		s = s >> 3 | stream_bit(block, 6 + 3 * t) << 6 |
			stream_bit(block, 7 + 3 * t) << 7 | stream_bit(block, 8 + 3 * t) << 8;
		assert_true(y[t] == table_tcq_codebook[s] * norm);
	}
	assert_int_equal(block[50] >> 6, 0);
	assert_int_equal(block[51], 0);
}

static void
qjl_score_equals_the_reconstructed_key(void **state)
{
	float q[REF_HEAD], x[REF_HEAD], sketch[REF_PROJ], got = NAN;
	uint8_t block[REF_QJL_BLOCK];
	struct ref_case c = {1, 1, 1, sketch, block, NULL, false, false, 0, 0};
	double key[REF_HEAD], want;
	struct ref_rng r;
	struct err e = {0};
	int n, i;

	(void)state;
	ref_rng_init(&r);
	ref_pi_fill(PI_SEED, pi);
	for (n = 0; n < 8; n++) {
		draw(&r, q);
		draw(&r, x);
		ref_sketch(q, pi, sketch);
		ref_qjl_quantise(x, pi, block);
		ref_qjl_decode(block, pi, key);
		for (want = 0, i = 0; i < REF_HEAD; i++)
			want += key[i] * (double)q[i];
		assert_int_equal(ref_qjl_score(&c, &got, &e), 0);
		assert_true(fabs((double)got - want) < 1e-5);
	}
}

static void
polar_score_equals_the_matrix_form_and_preht(void **state)
{
	float q[REF_HEAD], hq[REF_HEAD], x[REF_HEAD], got = NAN, preht = NAN, y;
	uint8_t block[REF_POLAR_BLOCK];
	struct ref_case c = {1, 1, 1, q, block, NULL, false, false, 0, 0};
	struct ref_rng r;
	struct err e = {0};
	double want;
	int n, i, j;

	(void)state;
	ref_rng_init(&r);
	for (n = 0; n < 8; n++) {
		draw(&r, q);
		draw(&r, x);
		c.use_qjl = n & 1;
		ref_polar_qjl_quantise(x, NULL, block);
		for (want = 0, i = 0; i < REF_HEAD; i++)
			for (j = 0; j < REF_HEAD; j++) {
				y = table_polar_centroids[block[2 + j / 2] >> 4 * (j & 1) & 15];
				if (c.use_qjl)
					y += (block[66] & 1 ? 0.04419417f : -0.04419417f) *
						ref_sign(table_polar_residual, (unsigned)j);
				want += (double)q[i] * (double)y *
					(__builtin_popcount((unsigned)(i & j)) & 1 ? -1 : 1);
			}
		want *= (double)ref_fp16_decode((uint16_t)(block[0] | block[1] << 8)) / 128;
		memcpy(hq, q, sizeof hq);
		ref_hadamard(hq, REF_HEAD);
		c.q = q;
		assert_int_equal(ref_polar_score(&c, &got, &e), 0);
		c.q = hq;
		assert_int_equal(ref_preht_score(&c, &preht, &e), 0);
		assert_true(fabs((double)got - want) < 1e-3);
		assert_true(fabs((double)preht - want) < 1e-3);
	}
}

static void
residual_belongs_to_the_run(void **state)
{
	float x[REF_HEAD], y[REF_HEAD], z[REF_HEAD];
	uint8_t block[REF_POLAR_BLOCK];
	struct ref_rng r;
	unsigned i;

	(void)state;
	ref_rng_init(&r);
	draw(&r, x);
	ref_polar_quantise(x, NULL, block);
	ref_polar_decode(block, y);
	block[66] = 0xff;
	ref_polar_decode(block, z);
	assert_memory_equal(y, z, sizeof y);
	/* With it a 0 bit is minus, so the two bits lie as far from "none". */
	block[66] = 0;
	ref_polar_qjl_decode(block, y);
	block[66] = 1;
	ref_polar_qjl_decode(block, z);
	for (i = 0; i < REF_HEAD && y[i] == z[i]; i++)
		;
	assert_true(i < REF_HEAD);
}

#define HEADS 4
#define KV_HEADS 2
#define TOKENS 24

/* A small attention problem: both value formats over the same keys. */
struct attention {
	float q[HEADS * REF_PROJ];
	uint8_t k[KV_HEADS * TOKENS * REF_QJL_BLOCK];
	uint8_t tbq[KV_HEADS * TOKENS * 56], polar[KV_HEADS * TOKENS * REF_POLAR_BLOCK];
	struct ref_case c;
};

static void
attention_init(struct attention *a)
{
	float x[REF_HEAD];
	struct ref_rng r;
	int i;

	ref_rng_init(&r);
	ref_pi_fill(PI_SEED_FUSED, pi);
	for (i = 0; i < HEADS; i++) {
		draw(&r, x);
		ref_sketch(x, pi, a->q + i * REF_PROJ);
	}
	for (i = 0; i < KV_HEADS * TOKENS; i++) {
		draw(&r, x);
		ref_qjl_quantise(x, pi, a->k + i * REF_QJL_BLOCK);
		draw(&r, x);
		ref_tbq3_quantise(x, NULL, a->tbq + i * 56);
		ref_polar_qjl_quantise(x, NULL, a->polar + i * REF_POLAR_BLOCK);
	}
	a->c = (struct ref_case){HEADS, KV_HEADS, TOKENS, a->q, a->k, NULL, false, false, 0,
		0.08838834764831845f};
}

/* The same in three steps and f64: scores, softmax, mix. */
static void
unfused(const struct ref_case *c, ref_decode decode, size_t bytes, double *out)
{
	float scores[HEADS * TOKENS], v[REF_HEAD];
	double w[TOKENS], sum;
	struct err e = {0};
	uint32_t h, t, d;

	assert_int_equal(ref_qjl_score(c, scores, &e), 0);
	for (h = 0; h < HEADS; h++) {
		for (t = 0, sum = 0; t < ref_visible(c); t++)
			sum += w[t] = exp((double)scores[h * TOKENS + t] * (double)c->sm_scale);
		for (d = 0; d < REF_HEAD; d++)
			out[h * REF_HEAD + d] = 0;
		for (t = 0; t < ref_visible(c); t++) {
			decode(c->v + ((size_t)h / 2 * TOKENS + t) * bytes, v);
			for (d = 0; d < REF_HEAD; d++)
				out[h * REF_HEAD + d] += w[t] / sum * (double)v[d];
		}
	}
}

static void
compare(const float *got, const double *want, double tolerance)
{
	size_t i;

	for (i = 0; i < (size_t)HEADS * REF_HEAD; i++)
		assert_true(fabs((double)got[i] - want[i]) < tolerance);
}

static void
fused_attention_equals_three_steps(void **state)
{
	static struct attention a;
	float got[HEADS * REF_HEAD];
	double want[HEADS * REF_HEAD];
	struct err e = {0};
	int causal;

	(void)state;
	attention_init(&a);
	for (causal = 0; causal < 2; causal++) {
		a.c.causal = causal;
		a.c.q_pos_base = 10;
		assert_int_equal(ref_visible(&a.c), causal ? 11 : TOKENS);
		a.c.v = a.tbq;
		a.c.use_qjl = false;
		assert_int_equal(ref_fused_tbq(&a.c, got, &e), 0);
		unfused(&a.c, ref_tbq3_decode, 56, want);
		compare(got, want, 1e-3);
		a.c.v = a.polar;
		a.c.use_qjl = true;
		assert_int_equal(ref_fused_polar(&a.c, got, &e), 0);
		unfused(&a.c, ref_polar_qjl_decode, REF_POLAR_BLOCK, want);
		compare(got, want, 1e-3);
	}
}

static void
split_tokens_merge_to_the_single_pass(void **state)
{
	static struct attention a;
	float got[HEADS * REF_HEAD], v[REF_HEAD];
	double want[HEADS * REF_HEAD];
	struct ref_part all, part;
	uint32_t h, t, n, chunk;

	(void)state;
	attention_init(&a);
	a.c.v = a.tbq;
	unfused(&a.c, ref_tbq3_decode, 56, want);
	for (h = 0; h < HEADS; h++) {
		ref_part_init(&all);
		/* Three chunks, then an empty one. */
		for (n = 0; n < 4; n++) {
			ref_part_init(&part);
			chunk = n < 3 ? TOKENS / 3 : 0;
			for (t = n * (TOKENS / 3); t < n * (TOKENS / 3) + chunk; t++) {
				ref_tbq3_decode(a.tbq + (h / 2 * TOKENS + t) * 56, v);
				ref_part_add(&part, ref_fused_raw(&a.c, h, t), v);
			}
			ref_part_merge(&all, &part);
		}
		ref_part_out(&all, got + (size_t)h * REF_HEAD);
	}
	compare(got, want, 1e-4);
}

static void
empty_parts_merge_to_zeros(void **state)
{
	struct ref_part a, b;
	float out[REF_HEAD];
	int i;

	(void)state;
	ref_part_init(&a);
	ref_part_init(&b);
	ref_part_merge(&a, &b);
	ref_part_out(&a, out);
	for (i = 0; i < REF_HEAD; i++)
		assert_true(out[i] == 0);
}

static void
causal_mask_is_a_prefix_of_each_kv_head(void **state)
{
	struct ref_case c = {.n_heads = 8, .n_kv_heads = 2, .n_kv = 10, .causal = true};

	(void)state;
	assert_int_equal(ref_visible(&c), 1);
	c.q_pos_base = 9;
	assert_int_equal(ref_visible(&c), 10);
	c.q_pos_base = UINT32_MAX;
	assert_int_equal(ref_visible(&c), 10);
	assert_int_equal(ref_kv_head(&c, 3), 0);
	assert_int_equal(ref_kv_head(&c, 4), 1);
}

static void
attention_of_a_nan_logit_is_not_a_number(void **state)
{
	static struct attention a;
	float got[HEADS * REF_HEAD];
	struct err e = {0};
	int t;

	(void)state;
	attention_init(&a);
	a.c.v = a.tbq;
	a.k[32] = 0xc0, a.k[33] = 0x7f;
	assert_int_equal(ref_fused_tbq(&a.c, got, &e), 0);
	assert_true(isnan(got[0]));
	assert_true(isfinite(got[2 * REF_HEAD])); /* the other kv head */
	/* Without any finite logit the output is defined as zero. */
	for (t = 0; t < TOKENS; t++)
		a.k[t * REF_QJL_BLOCK + 32] = 0xc0, a.k[t * REF_QJL_BLOCK + 33] = 0x7f;
	assert_int_equal(ref_fused_tbq(&a.c, got, &e), 0);
	assert_true(got[0] == 0);
}

static void
tbq_decodes_any_bytes_to_finite_numbers(void **state)
{
	uint8_t blocks[REF_QUARTERS * REF_TBQ4_BLOCK];
	float y[REF_HEAD];
	struct ref_rng r;
	size_t i;
	int n;

	(void)state;
	ref_rng_init(&r);
	for (n = 0; n < 200; n++) {
		for (i = 0; i < sizeof blocks; i++)
			blocks[i] = (uint8_t)(int)(ref_rng_normal(&r) * 100.0f);
		/* Any finite norm: its exponent is not all ones. */
		for (i = 0; i < REF_QUARTERS; i++)
			blocks[i * REF_TBQ3_BLOCK + 1] &= 0xfb;
		ref_tbq3_decode(blocks, y);
		for (i = 0; i < REF_HEAD; i++)
			assert_true(isfinite(y[i]));
		for (i = 0; i < REF_QUARTERS; i++)
			blocks[i * REF_TBQ4_BLOCK + 1] &= 0xfb;
		ref_tbq4_decode(blocks, y);
		for (i = 0; i < REF_HEAD; i++)
			assert_true(isfinite(y[i]));
	}
}

static void
tbq3_codes_are_three_bits_in_a_row(void **state)
{
	uint8_t blocks[REF_QUARTERS * REF_TBQ3_BLOCK] = {0x00, 0x3c};
	float y[REF_HEAD], z[32];
	unsigned j, c;

	(void)state;
	for (j = 0; j < 32; j++) {
		c = j % 8;
		z[j] = table_tbq3_codebook[c];
		blocks[2 + 3 * j / 8] |= (uint8_t)(c << 3 * j % 8);
		if (3 * j % 8 > 5)
			blocks[3 + 3 * j / 8] |= (uint8_t)(c >> (8 - 3 * j % 8));
	}
	ref_uncondition(z);
	ref_tbq3_decode(blocks, y);
	assert_memory_equal(y, z, sizeof z);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_have_their_checksums),
		cmocka_unit_test(sign_maps_are_the_documented_ones),
		cmocka_unit_test(polar_residual_signs_come_from_xorshift),
		cmocka_unit_test(fp16_rounds_half_away_from_zero),
		cmocka_unit_test(fp16_survives_a_round_trip),
		cmocka_unit_test(fp16_subnormals_are_multiples_of_2_to_minus_24),
		cmocka_unit_test(bf16_rounds_half_to_even_and_keeps_a_nan),
		cmocka_unit_test(code_search_breaks_ties_as_documented),
		cmocka_unit_test(hadamard_is_the_matrix_of_bit_parities),
		cmocka_unit_test(conditioning_has_its_inverse),
		cmocka_unit_test(stream_begins_as_documented),
		cmocka_unit_test(projections_are_the_documented_ones),
		cmocka_unit_test(self_test_constants_are_reproduced),
		cmocka_unit_test(decoding_loses_what_the_format_costs),
		cmocka_unit_test(zero_key_decodes_to_zero),
		cmocka_unit_test(nan_key_stays_not_a_number),
		cmocka_unit_test(subnormal_norm_is_decoded_whole),
		cmocka_unit_test(trellis_state_is_a_window_of_nine_bits),
		cmocka_unit_test(qjl_score_equals_the_reconstructed_key),
		cmocka_unit_test(polar_score_equals_the_matrix_form_and_preht),
		cmocka_unit_test(residual_belongs_to_the_run),
		cmocka_unit_test(fused_attention_equals_three_steps),
		cmocka_unit_test(split_tokens_merge_to_the_single_pass),
		cmocka_unit_test(empty_parts_merge_to_zeros),
		cmocka_unit_test(causal_mask_is_a_prefix_of_each_kv_head),
		cmocka_unit_test(attention_of_a_nan_logit_is_not_a_number),
		cmocka_unit_test(tbq_decodes_any_bytes_to_finite_numbers),
		cmocka_unit_test(tbq3_codes_are_three_bits_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
