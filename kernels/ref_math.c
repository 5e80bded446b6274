#include "kernels/ref.h"

#include <math.h>
#include <string.h>

#include "kernels/table.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define INV_SQRT_128 0.08838834764831845f
#define INV_SQRT_32 0.1767766952966369f

static uint32_t
float_bits(float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof u);
	return u;
}

static float
bits_float(uint32_t u)
{
	float v;

	memcpy(&v, &u, sizeof v);
	return v;
}

uint16_t
ref_fp16_encode(float v)
{
	uint32_t u = float_bits(v), a = u & 0x7fffffff, m, h;
	int e;

	if (a >= 0x7f800000)
		h = a > 0x7f800000 ? 0x7e00 : 0x7c00;
	else if (a >= 0x47800000)
		h = 0x7c00;
	else if (a >= 0x38800000)
		h = (a - 0x38000000 + 0x1000) >> 13;
	else {
		e = (int)(a >> 23) - 112;
		m = (a & 0x7fffff) | 0x800000;
		h = e < -10 ? 0 : (m + (UINT32_C(1) << (13 - e))) >> (14 - e);
	}
	return (uint16_t)((u >> 16 & 0x8000) | h);
}

float
ref_fp16_decode(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 0x1f, m = h & 0x3ff;

	if (e == 0x1f)
		return bits_float(s | 0x7f800000 | m << 13);
	if (e == 0)
		return (s ? -1.0f : 1.0f) * (float)m * 0x1p-24f;
	return bits_float(s | (e + 112) << 23 | m << 13);
}

uint16_t
ref_bf16_encode(float v)
{
	uint32_t u = float_bits(v);

	/* Rounding would carry some NaNs into a zero, and hide them. */
	if (v != v)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float
ref_bf16_decode(uint16_t h)
{
	return bits_float((uint32_t)h << 16);
}

float
ref_sign(const uint8_t *map, unsigned i)
{
	return map[i >> 3] >> (i & 7) & 1 ? 1.0f : -1.0f;
}

void
ref_hadamard(float *x, size_t n)
{
	size_t h, i, j;
	float a, b;

	for (h = 1; h < n; h *= 2)
		for (i = 0; i < n; i += 2 * h)
			for (j = i; j < i + h; j++) {
				a = x[j], b = x[j + h];
				x[j] = a + b;
				x[j + h] = a - b;
			}
}

void
ref_rotate(float x[REF_HEAD])
{
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		x[i] *= ref_sign(table_signs1, i);
	ref_hadamard(x, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++) {
		x[i] *= INV_SQRT_128;
		x[i] *= ref_sign(table_signs2, i);
	}
}

void
ref_condition(float x[32])
{
	unsigned i;

	for (i = 0; i < 32; i++)
		x[i] *= ref_sign(table_signs32, i);
	ref_hadamard(x, 32);
	for (i = 0; i < 32; i++)
		x[i] *= INV_SQRT_32;
}

void
ref_uncondition(float x[32])
{
	unsigned i;

	ref_hadamard(x, 32);
	for (i = 0; i < 32; i++) {
		x[i] *= INV_SQRT_32;
		x[i] *= ref_sign(table_signs32, i);
	}
}

unsigned
ref_below(float v, const float *thresholds, unsigned n)
{
	unsigned i;

	for (i = 0; i < n && !(v < thresholds[i]); i++)
		;
	return i;
}

unsigned
ref_nearest(float v, const float *levels, unsigned n)
{
	unsigned i;

	if (v <= levels[0])
		return 0;
	for (i = 0; i + 1 < n; i++)
		if (v < levels[i + 1])
			return v - levels[i] <= levels[i + 1] - v ? i : i + 1;
	return n - 1;
}

void
ref_rng_init(struct ref_rng *r)
{
	r->state = REF_RNG_SEED;
	r->spare = 0;
	r->has_spare = false;
}

/* 24 bits of a draw to [-1, 1). */
static float
uniform(uint64_t draw)
{
	return (float)(draw >> 11 & 0xffffff) / 16777216.0f * 2.0f - 1.0f;
}

typedef uint64_t (*draw_fn)(uint64_t *state);

static uint64_t
draw_lcg(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state;
}

static uint64_t
draw_splitmix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Marsaglia's polar method: two normals. */
static void
normal_pair(draw_fn draw, uint64_t *state, float *a, float *b)
{
	float u, v, r, f;

	do {
		u = uniform(draw(state));
		v = uniform(draw(state));
		r = u * u + v * v;
	} while (r >= 1.0f || r == 0.0f);
	f = sqrtf(-2.0f * logf(r) / r);
	*a = u * f;
	*b = v * f;
}

float
ref_rng_normal(struct ref_rng *r)
{
	float v;

	if (r->has_spare) {
		r->has_spare = false;
		return r->spare;
	}
	normal_pair(draw_lcg, &r->state, &v, &r->spare);
	r->has_spare = true;
	return v;
}

void
ref_pi_fill(uint64_t seed, float pi[REF_PI])
{
	size_t i;

	for (i = 0; i < REF_PI; i += 2)
		normal_pair(draw_splitmix, &seed, &pi[i], &pi[i + 1]);
}

void
ref_sketch(const float v[REF_HEAD], const float pi[REF_PI], float out[REF_PROJ])
{
	size_t i, j;

	for (j = 0; j < REF_PROJ; j++)
		out[j] = 0;
	/* Each out[j] is a sum in the order of i; this nesting only helps the cache. */
	for (i = 0; i < REF_HEAD; i++)
		for (j = 0; j < REF_PROJ; j++)
			out[j] += v[i] * pi[i * REF_PROJ + j];
}
