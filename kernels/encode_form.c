#include "kernels/encode_form.h"

#include <math.h>
#include <string.h>

#include "common/str.h"
#include "kernels/table.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define TINY 1e-10f

/* n <= 9 bits from bit `at`. */
static unsigned
bits(const uint8_t *p, unsigned at, unsigned n)
{
	unsigned i, v = 0;

	for (i = 0; i < n; i++)
		v |= (unsigned)(p[(at + i) >> 3] >> ((at + i) & 7) & 1) << i;
	return v;
}

static unsigned
turbo3_code(const uint8_t *key, unsigned i)
{
	const uint8_t *b = key + i / 32 * REF_TURBO3_BLOCK;

	return bits(b + 2, 2 * (i % 32), 2) | bits(b + 10, i % 32, 1) << 2;
}

static unsigned
turbo4_code(const uint8_t *key, unsigned i)
{
	const uint8_t *b = key + i / 32 * REF_TURBO4_BLOCK + 2;

	return bits(b + i % 16, i % 32 / 16 * 4, 4);
}

static unsigned
polar_code(const uint8_t *key, unsigned i)
{
	return bits(key + 2, 4 * i, 4);
}

static unsigned
tbq3_code(const uint8_t *key, unsigned i)
{
	return bits(key + i / 32 * REF_TBQ3_BLOCK + 2, 3 * (i % 32), 3);
}

static unsigned
qjl_code(const uint8_t *key, unsigned i)
{
	return bits(key, i, 1);
}

unsigned
encode_form_state(const uint8_t *key, unsigned t)
{
	return bits(key + 2, 3 * t, 9);
}

static float
root_of_squares(const float *x, unsigned n, float of)
{
	float s = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		s += x[i] * x[i];
	return sqrtf(s / of);
}

static void
rotated(const float x[REF_HEAD], float v[REF_HEAD])
{
	float n = root_of_squares(x, REF_HEAD, 1.0f), r = n > TINY ? 1.0f / n : 0.0f;
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		v[i] = x[i] * r;
	ref_rotate(v);
}

static void
conditioned(const float x[REF_HEAD], float v[REF_HEAD])
{
	unsigned b, i;
	float d;

	memcpy(v, x, REF_HEAD * sizeof *v);
	for (b = 0; b < REF_QUARTERS; b++, v += 32) {
		ref_condition(v);
		d = root_of_squares(v, 32, 32.0f);
		for (i = 0; i < 32; i++)
			v[i] *= d == 0.0f ? 0.0f : 1.0f / d;
	}
}

static void
transformed(const float x[REF_HEAD], float v[REF_HEAD])
{
	double s = 0;
	unsigned i;
	float l, r;

	for (i = 0; i < REF_HEAD; i++)
		s += (double)x[i] * (double)x[i];
	l = (float)sqrt(s);
	r = l > TINY ? 1.0f / l : 0.0f;
	for (i = 0; i < REF_HEAD; i++)
		v[i] = x[i] * r;
	ref_hadamard(v, REF_HEAD);
}

static void
hadamard(double *x, size_t n)
{
	size_t h, i;
	double a, b;

	for (h = 1; h < n; h *= 2)
		for (i = 0; i < n; i++)
			if (!(i & h)) {
				a = x[i], b = x[i + h];
				x[i] = a + b;
				x[i + h] = a - b;
			}
}

static void
unrotate(double v[REF_HEAD])
{
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		v[i] *= (double)ref_sign(table_signs2, i);
	hadamard(v, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++)
		v[i] *= (double)ref_sign(table_signs1, i) / sqrt(128.0);
}

static void
uncondition(double v[REF_HEAD])
{
	unsigned b, i;

	for (b = 0; b < REF_QUARTERS; b++, v += 32) {
		hadamard(v, 32);
		for (i = 0; i < 32; i++)
			v[i] *= (double)ref_sign(table_signs32, i) / sqrt(32.0);
	}
}

static void
untransform(double v[REF_HEAD])
{
	unsigned i;

	hadamard(v, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++)
		v[i] /= 128.0;
}

#define ROTATED .values = rotated, .back = unrotate, .group = 128, .power = 1
#define CONDITIONED .values = conditioned, .back = uncondition, .group = 32, .power = 32
#define POLAR                                                                            \
	.codes = ENCODE_LEVELS, .norms = 1, .block = REF_POLAR_BLOCK, .code_at = 5,      \
	.levels = 16, .level = table_polar_centroids,                                    \
	.threshold = table_polar_boundaries, .code = polar_code, .values = transformed,  \
	.back = untransform, .group = 128, .power = 128,                                 \
	.reserved_at = 67

static const struct encode_form forms[] = {
	{.quantise = ref_turbo3_quantise, .codes = ENCODE_LEVELS, .norms = 4,
	 .block = REF_TURBO3_BLOCK, .norm_of_codes = true, .code_at = 5, .levels = 8,
	 .level = table_turbo3_centroids, .threshold = table_turbo3_thresholds,
	 .code = turbo3_code, ROTATED},
	{.quantise = ref_turbo4_quantise, .codes = ENCODE_LEVELS, .norms = 4,
	 .block = REF_TURBO4_BLOCK, .code_at = 5, .levels = 16,
	 .level = table_turbo4_centroids, .threshold = table_turbo4_thresholds,
	 .code = turbo4_code, CONDITIONED},
	{.quantise = ref_tcq_quantise, .codes = ENCODE_PATH, .norms = 1,
	 .block = REF_TCQ_BLOCK, .norm_of_codes = true, .code_at = 20, ROTATED,
	 .reserved_at = 51, .reserved_bits = 0xc0},
	{.quantise = ref_qjl_quantise, .codes = ENCODE_SIGNS, .bf16 = true, .norms = 1,
	 .norm_at = 32, .block = REF_QJL_BLOCK, .code_at = 5, .code = qjl_code},
	{.quantise = ref_polar_quantise, POLAR, .reserved_bits = 0xff},
	{.quantise = ref_polar_qjl_quantise, POLAR, .reserved_bits = 0xfe,
	 .residual_at = 66},
	{.quantise = ref_tbq3_quantise, .codes = ENCODE_LEVELS, .norms = 4,
	 .block = REF_TBQ3_BLOCK, .code_at = 5, .levels = 8, .level = table_tbq3_codebook,
	 .code = tbq3_code, CONDITIONED},
};

const struct encode_form *
encode_form_find(ref_quantise quantise)
{
	size_t i;

	for (i = 0; i < str_count(forms); i++)
		if (forms[i].quantise == quantise)
			return &forms[i];
	return NULL;
}

double
encode_form_threshold(const struct encode_form *f, unsigned i)
{
	return f->threshold ? (double)f->threshold[i]
			    : ((double)f->level[i] + (double)f->level[i + 1]) / 2;
}

uint16_t
encode_form_norm(const struct encode_form *f, const uint8_t *key, unsigned i)
{
	const uint8_t *p = key + i * f->block + f->norm_at;

	return (uint16_t)(p[0] | p[1] << 8);
}

void
encode_form_set_norm(const struct encode_form *f, uint8_t *key, unsigned i, uint16_t norm)
{
	uint8_t *p = key + i * f->block + f->norm_at;

	p[0] = (uint8_t)(norm & 0xff);
	p[1] = (uint8_t)(norm >> 8);
}

uint16_t
encode_form_norm_of_codes(const struct encode_form *f, const float x[REF_HEAD],
			  const uint8_t *key)
{
	float n = root_of_squares(x, REF_HEAD, 1.0f), rn, v[REF_HEAD];
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		v[i] = f->codes == ENCODE_PATH
			       ? table_tcq_codebook[encode_form_state(key, i)]
			       : f->level[f->code(key, i)];
	rn = root_of_squares(v, REF_HEAD, 1.0f);
	return ref_fp16_encode(rn > TINY ? n / rn : n);
}

bool
encode_form_is_clean(const struct encode_form *f, const uint8_t *key, size_t bytes)
{
	size_t i;

	if (f->reserved_at == 0)
		return true;
	for (i = f->reserved_at; i < bytes; i++)
		if (key[i] != 0)
			return false;
	return (key[f->reserved_at - 1] & f->reserved_bits) == 0;
}
