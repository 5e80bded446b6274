#include "kernels/draw.h"

#include <math.h>
#include <string.h>

#include "common/str.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Where a format has what. */
struct form {
	ref_quantise quantise;
	uint32_t bytes, blocks;      /* of a block, of a key */
	uint32_t norm_at;
	bool bf16, same_norm;        /* same_norm: one norm, in every block */
	uint32_t code_at, code_bits; /* any bits are valid there */
	uint32_t residual_at;        /* byte of which bit 0 is a code; 0: none */
	float usual;                 /* norm of a key as long as a normal vector */
};

/* usual: sqrt(128) over the length of a key with norm 1 whose codes are all equally
 * likely; in qjl the norm is the key's length itself. */
static const struct form forms[] = {
	{ref_turbo3_quantise, 14, 4, 0, false, true, 2, 96, 0, 8.7f},
	{ref_turbo4_quantise, 18, 4, 0, false, false, 2, 128, 0, 0.66f},
	{ref_tcq_quantise, 52, 1, 0, false, false, 2, 390, 0, 11.0f},
	{ref_qjl_quantise, 34, 1, 32, true, false, 0, 256, 0, 11.3f},
	{ref_polar_quantise, 82, 1, 0, false, false, 2, 512, 0, 7.5f},
	{ref_polar_qjl_quantise, 82, 1, 0, false, false, 2, 512, 66, 7.5f},
	{ref_tbq3_quantise, 14, 4, 0, false, false, 2, 96, 0, 0.77f},
};

static const struct form *
form_of(ref_quantise quantise)
{
	size_t i;

	for (i = 0; i + 1 < str_count(forms); i++)
		if (forms[i].quantise == quantise)
			break;
	return &forms[i];
}

void
draw_init(struct draw *d, uint64_t seed)
{
	*d = (struct draw){.state = seed};
}

void
draw_init_part(struct draw *d, uint64_t seed, uint64_t n)
{
	draw_init(d, seed);
	/* Streams that start a draw's step apart would overlap. */
	d->state = draw_bits(d) ^ (n + 1) * UINT64_C(0xD1342543DE82EF95);
	d->state = draw_bits(d);
}

/* splitmix64 */
uint64_t
draw_bits(struct draw *d)
{
	uint64_t z = d->state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

uint32_t
draw_below(struct draw *d, uint32_t n)
{
	return (uint32_t)((draw_bits(d) >> 32) * n >> 32);
}

/* In [-1, 1). */
static float
uniform(struct draw *d)
{
	return (float)(draw_bits(d) >> 40) / 8388608.0f - 1.0f;
}

float
draw_normal(struct draw *d)
{
	float u, v, r, f;

	if (d->has_spare) {
		d->has_spare = false;
		return d->spare;
	}
	do {
		u = uniform(d);
		v = uniform(d);
		r = u * u + v * v;
	} while (r >= 1.0f || r == 0.0f);
	f = sqrtf(-2.0f * logf(r) / r);
	d->spare = v * f;
	d->has_spare = true;
	return u * f;
}

static uint16_t
draw_norm(struct draw *d, const struct form *f, enum draw_norms norms)
{
	uint32_t bits = (uint32_t)(draw_bits(d) >> 32);
	/* A power of two from 1/8 to 1, times a number from 1 to 2: no libm function,
	 * whose last bit differs between machines. */
	float v = f->usual * (1.0f + (float)(bits >> 12) / 1048576.0f) /
		  (float)(1u << bits % 4);

	switch (norms) {
	case DRAW_SUBNORMAL:
		return (uint16_t)(1 + bits % (f->bf16 ? 0x7f : 0x3ff));
	case DRAW_HUGE:
		return (uint16_t)(f->bf16 ? 0x5d80 + bits % 0x1400 : 0x7000 + bits % 0xc00);
	case DRAW_ZERO:
		return 0;
	default:
		return f->bf16 ? ref_bf16_encode(v) : ref_fp16_encode(v);
	}
}

static void
draw_bytes(struct draw *d, uint8_t *out, size_t n)
{
	uint64_t bits = 0;
	size_t i;

	for (i = 0; i < n; i++, bits >>= 8) {
		if (i % 8 == 0)
			bits = draw_bits(d);
		out[i] = (uint8_t)bits;
	}
}

static void
draw_block(struct draw *d, const struct form *f, uint16_t norm, bool strays,
	uint8_t *out)
{
	uint32_t whole = f->code_bits / 8, rest = f->code_bits % 8;
	uint8_t all[96];

	draw_bytes(d, all, f->bytes);
	if (strays)
		memcpy(out, all, f->bytes);
	else {
		memset(out, 0, f->bytes);
		memcpy(out + f->code_at, all, whole);
		if (rest)
			out[f->code_at + whole] =
				(uint8_t)(all[whole] & ((1u << rest) - 1));
		if (f->residual_at)
			out[f->residual_at] = all[f->residual_at] & 1;
	}
	out[f->norm_at] = (uint8_t)(norm & 0xff);
	out[f->norm_at + 1] = (uint8_t)(norm >> 8);
}

void
draw_keys(struct draw *d, ref_quantise format, enum draw_norms norms, bool strays,
	size_t n, uint8_t *out)
{
	const struct form *f = form_of(format);
	uint16_t norm = 0;
	uint32_t b;
	size_t i;

	for (i = 0; i < n; i++)
		for (b = 0; b < f->blocks; b++, out += f->bytes) {
			if (b == 0 || !f->same_norm)
				norm = draw_norm(d, f, norms);
			draw_block(d, f, norm, strays, out);
		}
}

void
draw_double_norms(ref_quantise format, size_t n, uint8_t *keys)
{
	const struct form *f = form_of(format);
	uint16_t norm;
	uint8_t *p;
	size_t i;

	for (i = 0; i < n * f->blocks; i++) {
		p = keys + i * f->bytes + f->norm_at;
		norm = (uint16_t)(p[0] | p[1] << 8);
		norm = f->bf16 ? ref_bf16_encode(2 * ref_bf16_decode(norm))
			       : ref_fp16_encode(2 * ref_fp16_decode(norm));
		p[0] = (uint8_t)(norm & 0xff);
		p[1] = (uint8_t)(norm >> 8);
	}
}
