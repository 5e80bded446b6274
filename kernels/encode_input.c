#include "kernels/encode_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef const struct encode_form form;

static void
fill_zero(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	(void)f;
	(void)rng;
	(void)n;
	memset(x, 0, REF_HEAD * sizeof *x);
}

/* From far below the shortest direction to far above fp16. */
static void
fill_one_hot(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	fill_zero(f, rng, n, x);
	x[(37 * n + 5) % REF_HEAD] = ldexpf(n % 2 ? -1.0f : 1.0f, 3 * (int)n - 48);
}

/* One element half way between two numbers of fp16, then of bf16. */
static void
fill_halfway(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	unsigned bits = n % 2 ? 8 : 11, odd = 2 * ((unsigned)n / 2) + 1;

	fill_zero(f, rng, n, x);
	x[(11 * n + 64) % REF_HEAD] = 1.0f + ldexpf((float)odd, -(int)bits);
}

static void
fill_equal(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	static const float values[] = {1.0f,  -1.0f,  0.1f,   1.0f / 3, -3e4f,
				       1e-5f, 1e-30f, -1e30f, 1e-42f};
	unsigned i;

	(void)f;
	(void)rng;
	for (i = 0; i < REF_HEAD; i++)
		x[i] = values[n % str_count(values)];
}

static void
fill_normal(struct ref_rng *rng, float by, float x[REF_HEAD])
{
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		x[i] = ref_rng_normal(rng) * by;
}

static void
fill_random(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	(void)f;
	fill_normal(rng, ldexpf(1.0f, (int)(n % 9) - 4), x);
}

/* A normal vector of a given length. */
static void
fill_length(struct ref_rng *rng, double length, float x[REF_HEAD])
{
	double s = 0;
	unsigned i;

	fill_normal(rng, 1.0f, x);
	for (i = 0; i < REF_HEAD; i++)
		s += (double)x[i] * (double)x[i];
	for (i = 0; i < REF_HEAD; i++)
		x[i] = (float)((double)x[i] * (length / sqrt(s)));
}

/* Norms on both sides of fp16's largest number; they are the length, or per element. */
static void
fill_top(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	double norm = 65472.0 + 8.0 * (double)n;

	fill_length(rng, f->group == 32 ? norm * sqrt(128.0) : norm, x);
}

static void
fill_subnormal(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	double norm = ldexp(0.75 + 0.01 * (double)n, (int)(n % 12) - 25);

	fill_length(rng, f->group == 32 ? norm * sqrt(128.0) : norm, x);
}

/* Norms that overflow fp16 only; squares that overflow or vanish in f32; elements that
 * are subnormal themselves. */
static void
fill_extreme(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	static const float scales[] = {1e6f, 1e15f, 1e30f, 1e-12f, 1e-30f, 1e-42f};

	(void)f;
	fill_normal(rng, scales[n % str_count(scales)], x);
}

/* Values on thresholds as often as rounding allows: then the upper level is right. */
static void
fill_ties(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	double v[REF_HEAD], rest, t, *group;
	unsigned i, at;

	if (f->levels == 0) {
		fill_random(f, rng, n, x);
		return;
	}
	for (group = v; group < v + REF_HEAD; group += f->group) {
		rest = f->power;
		for (i = 0; i < f->group; i++) {
			/* An odd stride visits each element once. */
			at = (unsigned)(i * (2 * n + 1) + n) % f->group;
			t = encode_form_threshold(f,
						  (unsigned)(i + n) % (f->levels - 1));
			if (i + 8 > f->group || t * t > 0.95 * rest)
				t = sqrt(rest / (f->group - i));
			rest -= t * t;
			group[at] = t;
		}
	}
	f->back(v);
	for (i = 0; i < REF_HEAD; i++)
		x[i] = (float)ldexp(v[i], (int)(n % 5) - 2);
}

static void
fill_not_finite(form *f, struct ref_rng *rng, size_t n, float x[REF_HEAD])
{
	static const float values[] = {NAN, INFINITY, -INFINITY};

	fill_random(f, rng, n, x);
	x[(41 * n + 3) % REF_HEAD] = values[n % 3];
	if (n >= 3)
		x[(41 * n + 70) % REF_HEAD] = values[(n + n / 3) % 3];
}

static const struct encode_kind kinds[] = {
	{"zero", true, 1, fill_zero},	      {"one-hot", true, 32, fill_one_hot},
	{"halfway", true, 16, fill_halfway},
	{"equal", false, 9, fill_equal},      {"ties", false, 32, fill_ties},
	{"top", false, 16, fill_top},	      {"subnormal", false, 36, fill_subnormal},
	{"extreme", false, 24, fill_extreme}, {"not-finite", false, 9, fill_not_finite},
	{"random", false, 0, fill_random},
};

int
encode_input_make(form *f, size_t random, uint64_t seed, struct encode_input *out,
		  struct err *e)
{
	struct ref_rng rng = {.state = seed};
	size_t i, n, keys, count = random, at = 0;

	for (i = 0; i < str_count(kinds); i++)
		count += kinds[i].keys;
	memset(out, 0, sizeof *out);
	out->count = count;
	if ((out->x = calloc(count, REF_HEAD * sizeof *out->x)) == NULL ||
	    (out->kind = calloc(count, sizeof *out->kind)) == NULL) {
		encode_input_fini(out);
		return err_set(e, ERR_NOMEM, "no memory for %zu keys", count);
	}
	for (i = 0; i < str_count(kinds); i++) {
		keys = kinds[i].keys ? kinds[i].keys : random;
		for (n = 0; n < keys; n++, at++) {
			kinds[i].fill(f, &rng, n, out->x + at * REF_HEAD);
			out->kind[at] = &kinds[i];
		}
	}
	return 0;
}

void
encode_input_fini(struct encode_input *in)
{
	free(in->x);
	free(in->kind);
	memset(in, 0, sizeof *in);
}
