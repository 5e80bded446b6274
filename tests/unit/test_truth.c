#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/draw.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "kernels/spread.h"
#include "kernels/truth.h"

#define KEYS 300

static bool
is_score(const struct kernel *k)
{
	return k->v_bytes == 0;
}

/* Both scores of each key for a few heads, held against each other. */
static void
hold(const struct kernel *k, enum draw_norms norms, bool strays, float q_scale, double *worst)
{
	static uint8_t keys[KEYS * 82];
	static float q[3 * REF_PROJ], got[3 * KEYS];
	static double query[TRUTH_TERMS * TRUTH_HEADS], weights[TRUTH_TERMS];
	double scores[TRUTH_HEADS], tolerance, d;
	size_t bytes = (size_t)k->k_bytes * k->k_blocks, i;
	struct ref_case c = {3, 1, KEYS, q, keys, NULL, k->use_qjl, false, 0, 0};
	struct err e = {0};
	struct draw dr;
	unsigned h;

	draw_init(&dr, 42);
	for (i = 0; i < 3 * k->q_dim; i++)
		q[i] = draw_normal(&dr) * q_scale * problem_query_scale(k);
	draw_keys(&dr, k->quantise_k, norms, strays, KEYS, keys);
	memset(query, 0, sizeof query);
	for (h = 0; h < 3; h++)
		truth_query(k, q + h * k->q_dim, h, query);
	assert_int_equal(k->run(&c, got, &e), 0);
	for (i = 0; i < KEYS; i++) {
		truth_key(k, keys + i * bytes, k->use_qjl, weights);
		truth_scores(k, weights, query, scores);
		for (h = 0; h < 3; h++) {
			/* A tenth of what a kernel may be off. */
			tolerance = truth_tolerance(k, 1e-4, truth_query_length(k, query, h),
				truth_key_length(k, weights) / 10);
			d = fabs(scores[h] - (double)got[h * KEYS + i]);
			if (!(d < tolerance))
				fail_msg("%s, norms %d, key %zu: %.9g is not %.9g", k->name,
					(int)norms, i, scores[h], (double)got[h * KEYS + i]);
			*worst = fmax(*worst, d);
		}
	}
}

static void
truth_is_ref_for_all_valid_keys(void **state)
{
	double worst;
	size_t i;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		if (!is_score(&kernels[i]))
			continue;
		worst = 0;
		hold(&kernels[i], DRAW_USUAL, false, 1, &worst);
		hold(&kernels[i], DRAW_USUAL, true, 1, &worst);
		assert_true(worst < 1e-4);
		hold(&kernels[i], DRAW_SUBNORMAL, false, 256, &worst);
		hold(&kernels[i], DRAW_HUGE, false, 1, &worst);
		worst = 0;
		hold(&kernels[i], DRAW_ZERO, false, 1, &worst);
		assert_true(worst == 0);
	}
}

/* Keys of the encoders, so that no mistake in drawing hides one in reading. */
static void
truth_is_ref_for_keys_of_the_encoders(void **state)
{
	static float pi[REF_PI], x[REF_HEAD], q[REF_PROJ];
	double query[TRUTH_TERMS * TRUTH_HEADS], weights[TRUTH_TERMS], s[TRUTH_HEADS];
	const struct kernel *k;
	uint8_t key[4 * 82];
	struct err e = {0};
	struct draw d;
	size_t i, j, n;
	float want;

	(void)state;
	ref_pi_fill(7, pi);
	draw_init(&d, 1);
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		for (n = 0; n < 40 && is_score(k); n++) {
			struct ref_case c = {1, 1, 1, q, key, NULL, k->use_qjl, false, 0, 0};

			for (j = 0; j < REF_HEAD; j++)
				x[j] = draw_normal(&d);
			for (j = 0; j < REF_PROJ; j++)
				q[j] = draw_normal(&d);
			k->quantise_k(x, pi, key);
			assert_int_equal(k->run(&c, &want, &e), 0);
			memset(query, 0, sizeof query);
			truth_query(k, q, 0, query);
			truth_key(k, key, k->use_qjl, weights);
			truth_scores(k, weights, query, s);
			assert_true(fabs(s[0] - (double)want) < 3e-5);
		}
	}
}

static void
tolerance_is_absolute_until_numbers_are_large(void **state)
{
	const struct kernel *k = kernel_find("turbo3"), *qjl = kernel_find("qjl");

	(void)state;
	assert_true(truth_tolerance(k, 1e-3, 11.3, 11.3) == 1e-3);
	assert_true(truth_tolerance(k, 1e-3, 11.3, 22.6) == 1e-3);
	/* 4 sqrt(128) 2^-24 = 2.697e-6, 4 sqrt(256) 2^-24 = 3.815e-6 */
	assert_true(fabs(truth_tolerance(k, 1e-3, 1e3, 1e3) - 2.6973983) < 1e-6);
	assert_true(fabs(truth_tolerance(qjl, 1e-3, 1e3, 1e3) - 3.8146973) < 1e-6);
	assert_true(truth_tolerance(k, 0.5, 11.3, 11.3) == 0.5);
}

/* ---- drawn keys ---- */

static double
norm_of(const struct kernel *k, const uint8_t *block)
{
	uint16_t n = (uint16_t)(block[k->norm_at] | block[k->norm_at + 1] << 8);

	return (double)(k->norm_nan == 0x7fc0 ? ref_bf16_decode(n) : ref_fp16_decode(n));
}

static void
norms_are_of_the_kind_that_was_asked_for(void **state)
{
	static uint8_t keys[KEYS * 82];
	const struct kernel *k;
	size_t i, j;
	struct draw d;
	double v, small, huge;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		small = k->norm_nan == 0x7fc0 ? 0x1p-126 : 0x1p-14;
		huge = k->norm_nan == 0x7fc0 ? 0x1p60 : 8192;
		draw_init(&d, i);
		draw_keys(&d, k->quantise_k, DRAW_SUBNORMAL, false, KEYS, keys);
		for (j = 0; j < (size_t)KEYS * k->k_blocks; j++) {
			v = norm_of(k, keys + j * k->k_bytes);
			assert_true(v > 0 && v < small);
		}
		draw_keys(&d, k->quantise_k, DRAW_HUGE, true, KEYS, keys);
		for (j = 0; j < (size_t)KEYS * k->k_blocks; j++) {
			v = norm_of(k, keys + j * k->k_bytes);
			assert_true(v >= huge && v <= 0x1p101);
		}
		draw_keys(&d, k->quantise_k, DRAW_ZERO, true, KEYS, keys);
		for (j = 0; j < (size_t)KEYS * k->k_blocks; j++)
			assert_true(norm_of(k, keys + j * k->k_bytes) == 0);
	}
}

static void
usual_keys_are_about_as_long_as_a_normal_vector(void **state)
{
	static uint8_t keys[KEYS * 82];
	double weights[TRUTH_TERMS], sum, length;
	const struct kernel *k;
	size_t i, j;
	struct draw d;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		draw_init(&d, i);
		draw_keys(&d, k->quantise_k, DRAW_USUAL, false, KEYS, keys);
		for (j = 0, sum = 0; j < KEYS; j++) {
			truth_key(k, keys + j * k->k_bytes * k->k_blocks, k->use_qjl, weights);
			/* Weights go with the prepared query, which is longer by this. */
			length = truth_key_length(k, weights) * (double)problem_query_scale(k);
			if (k->schema == KERNEL_POLAR)
				length *= 11.3;
			if (k->q_dim == REF_PROJ)
				length *= sqrt(2) / 1.2533141373155003;
			sum += length / KEYS;
		}
		if (!(sum > 3 && sum < 18))
			fail_msg("%s: keys are %.3g long", k->name, sum);
	}
}

static void
reserved_bits_are_set_only_when_asked_for(void **state)
{
	uint8_t key[4 * 82];
	struct draw d;
	size_t n, i;
	bool bit[2] = {false, false}, stray = false;

	(void)state;
	draw_init(&d, 5);
	for (n = 0; n < 64; n++) {
		draw_keys(&d, ref_tcq_quantise, DRAW_USUAL, false, 1, key);
		assert_int_equal(key[50] & 0xc0, 0); /* bits 390, 391 of the stream */
		assert_int_equal(key[51], 0);
		draw_keys(&d, ref_polar_quantise, DRAW_USUAL, false, 1, key);
		for (i = 66; i < 82; i++)
			assert_int_equal(key[i], 0);
		draw_keys(&d, ref_polar_qjl_quantise, DRAW_USUAL, false, 1, key);
		bit[key[66] & 1] = true;
		assert_int_equal(key[66] & 0xfe, 0);
		for (i = 67; i < 82; i++)
			assert_int_equal(key[i], 0);
		draw_keys(&d, ref_polar_quantise, DRAW_USUAL, true, 1, key);
		stray = stray || ((key[66] & 1) && (key[66] & 0xfe) && key[81]);
		draw_keys(&d, ref_turbo3_quantise, DRAW_USUAL, true, 1, key);
		/* One norm in all four blocks belongs to the format. */
		assert_memory_equal(key, key + 14, 2);
		assert_memory_equal(key, key + 42, 2);
	}
	assert_true(bit[0] && bit[1] && stray);
}

static void
seed_decides_and_parts_differ(void **state)
{
	uint8_t a[82 * 4], b[82 * 4];
	struct draw d;

	(void)state;
	draw_init_part(&d, 9, 3);
	draw_keys(&d, ref_polar_quantise, DRAW_USUAL, false, 4, a);
	draw_init_part(&d, 9, 3);
	draw_keys(&d, ref_polar_quantise, DRAW_USUAL, false, 4, b);
	assert_memory_equal(a, b, sizeof a);
	draw_init_part(&d, 9, 4);
	draw_keys(&d, ref_polar_quantise, DRAW_USUAL, false, 4, b);
	assert_memory_not_equal(a, b, sizeof a);
	draw_init_part(&d, 10, 3);
	draw_keys(&d, ref_polar_quantise, DRAW_USUAL, false, 4, b);
	assert_memory_not_equal(a, b, sizeof a);
}

static void
doubled_norms_double_the_score_of_ref(void **state)
{
	static uint8_t keys[8 * 4 * 82];
	float q[REF_PROJ], one[8], two[8];
	const struct kernel *k;
	struct err e = {0};
	struct draw d;
	size_t i, j;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		struct ref_case c = {1, 1, 8, q, keys, NULL, k->use_qjl, false, 0, 0};

		if (!is_score(k))
			continue;
		draw_init(&d, i);
		for (j = 0; j < REF_PROJ; j++)
			q[j] = draw_normal(&d);
		draw_keys(&d, k->quantise_k, DRAW_USUAL, false, 8, keys);
		assert_int_equal(k->run(&c, one, &e), 0);
		draw_double_norms(k->quantise_k, 8, keys);
		assert_int_equal(k->run(&c, two, &e), 0);
		for (j = 0; j < 8; j++)
			assert_true(two[j] == 2 * one[j] && one[j] != 0);
	}
}

/* ---- threads ---- */

static unsigned char seen[1000];

static void
mark(void *arg, size_t from, size_t to, unsigned number)
{
	unsigned *most = arg;

	assert_true(number < *most);
	for (; from < to; from++)
		seen[from]++;
}

static void
loop_over_threads_does_each_once(void **state)
{
	unsigned threads[] = {0, 1, 2, 3, 7, 64, 1000}, most;
	size_t i, j, n;

	(void)state;
	for (i = 0; i < str_count(threads); i++)
		for (n = 0; n <= 1000; n += 333) {
			memset(seen, 0, sizeof seen);
			most = threads[i] ? threads[i] : 1;
			spread_run(threads[i], n, mark, &most);
			for (j = 0; j < sizeof seen; j++)
				assert_int_equal(seen[j], j < n);
		}
	assert_true(spread_threads() >= 1 && spread_threads() <= SPREAD_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth_is_ref_for_all_valid_keys),
		cmocka_unit_test(truth_is_ref_for_keys_of_the_encoders),
		cmocka_unit_test(tolerance_is_absolute_until_numbers_are_large),
		cmocka_unit_test(norms_are_of_the_kind_that_was_asked_for),
		cmocka_unit_test(usual_keys_are_about_as_long_as_a_normal_vector),
		cmocka_unit_test(reserved_bits_are_set_only_when_asked_for),
		cmocka_unit_test(seed_decides_and_parts_differ),
		cmocka_unit_test(doubled_norms_double_the_score_of_ref),
		cmocka_unit_test(loop_over_threads_does_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
