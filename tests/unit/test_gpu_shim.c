/* gpu_fiber and gpu_cpu.h: what they play right, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/gpu_fiber.h"
#include "kernels/ref.h"

/* The kernels of tests/gpu/shim.cu, of both waves. */
#define KERNELS(X)                                                                  \
	X(test_barrier) X(test_no_barrier) X(test_shuffle) X(test_copy_async)       \
	X(test_bits) X(test_divergent_barrier) X(test_divergent_kinds)              \
	X(test_divergent_waves) X(test_far_lane) X(test_wide_mask) X(test_address)  \
	X(test_misaligned) X(test_shared_end) X(test_shared_front)
#define DECLARE(name)                           \
	void wave32_##name(struct gpu_args a); \
	void wave64_##name(struct gpu_args a);
KERNELS(DECLARE)
void wave32_test_mma(struct gpu_args a);

static const struct {
	const char *name;
	gpu_fiber_entry wave32, wave64;
} kernels_here[] = {
#define ROW(name) { #name, wave32_##name, wave64_##name },
	KERNELS(ROW)
	{ "test_mma", wave32_test_mma, NULL },
};

static const uint32_t waves[] = { 32, 64 };

static union {
	float f[1 << 18];
	uint32_t u[1 << 18];
} in, out;

static int
launch(const char *name, uint32_t wave, uint32_t blocks, uint32_t threads, uint32_t visible,
	uint32_t shared, struct err *e)
{
	struct gpu_fiber_launch l = { .name = name, .wave = wave, .grid = { blocks, 1, 1 },
		.block = threads, .shared = shared };
	struct gpu_args a = { .k = (uintptr_t)in.f, .v = (uintptr_t)(in.f + 4096),
		.out = (uintptr_t)out.f, .visible = visible };
	size_t i;

	for (i = 0; i < str_count(kernels_here); i++)
		if (str_eq(kernels_here[i].name, name))
			l.entry = wave == 32 ? kernels_here[i].wave32 : kernels_here[i].wave64;
	assert_non_null(l.entry);
	memset(e, 0, sizeof *e);
	return gpu_fiber_run(&l, &a, e);
}

static void
assert_refused(const char *name, uint32_t wave, uint32_t threads, uint32_t visible,
	uint32_t shared, const char *says)
{
	struct err e;

	assert_int_equal(launch(name, wave, 1, threads, visible, shared, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	if (strstr(e.msg, says) == NULL || strstr(e.msg, name) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", name, e.msg, says);
}

static void
numbers(void)
{
	size_t i;

	for (i = 0; i < 8192; i++)
		in.f[i] = (float)((i * 7 + i / 5) % 23);
}

/* ---- played right --------------------------------------------------------------- */

static void
a_block_shares_what_it_wrote_before_a_barrier(void **state)
{
	struct err e;
	size_t w, b, i, j;
	float sum;

	(void)state;
	numbers();
	for (w = 0; w < 2; w++) {
		memset(&out, 0, sizeof out);
		assert_int_equal(launch("test_barrier", waves[w], 3, 256, 0, 0, &e), 0);
		for (b = 0; b < 3; b++) {
			for (sum = 0, j = 0; j < 256; j++)
				sum += in.f[b * 256 + j];
			for (i = 0; i < 256; i++)
				assert_true(out.f[b * 256 + i] == sum + (float)(255 - i));
		}
	}
}

static void
a_forgotten_barrier_shows(void **state)
{
	struct err e;
	size_t w, i, j, wrong;
	float sum;

	(void)state;
	numbers();
	for (w = 0; w < 2; w++) {
		assert_int_equal(launch("test_no_barrier", waves[w], 1, 256, 0, 0, &e), 0);
		for (sum = 0, j = 0; j < 256; j++)
			sum += in.f[j];
		for (wrong = 0, i = 0; i < 256; i++)
			wrong += out.f[i] != sum;
		assert_true(wrong >= 255);
	}
}

static void
shuffles_stay_in_groups_of_their_width(void **state)
{
	struct err e;
	uint32_t width;
	size_t w, i, j;
	float sum;

	(void)state;
	numbers();
	for (w = 0; w < 2; w++)
		for (width = 2; width <= 32; width *= 2) {
			assert_int_equal(launch("test_shuffle", waves[w], 1, 128, width, 0, &e),
				0);
			for (i = 0; i < 128; i++) {
				for (sum = 0, j = 0; j < width; j++)
					sum += in.f[i / width * width + j];
				assert_true(out.f[i] == sum);
				assert_true(out.f[128 + i] ==
					(float)(i / width * width + (i + 1) % width));
			}
		}
}

static void
a_block_of_less_than_a_wave_shuffles_what_it_has(void **state)
{
	struct err e;

	(void)state;
	numbers();
	assert_int_equal(launch("test_shuffle", 64, 1, 32, 8, 0, &e), 0);
	assert_true(out.f[32 + 31] == 24.0f);
}

static void
asynchronous_copies_are_there_once_waited_for(void **state)
{
	struct err e;
	size_t w, i;

	(void)state;
	for (i = 0; i < 1024; i++)
		in.u[i] = (uint32_t)i;
	for (w = 0; w < 2; w++) {
		assert_int_equal(
			launch("test_copy_async", waves[w], 1, 64, 1, 64 * 32, &e), 0);
		for (i = 0; i < 256; i++) {
			assert_int_equal(out.u[i], (63 - i / 4) * 4 + i % 4);
			assert_int_equal(out.u[256 + i], 256 + (63 - i / 4) * 4 + i % 4);
		}
	}
}

static void
a_forgotten_wait_shows(void **state)
{
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < 1024; i++)
		in.u[i] = (uint32_t)i;
	assert_int_equal(launch("test_copy_async", 32, 1, 64, 0, 64 * 32, &e), 0);
	assert_int_equal(out.u[0], 63 * 4);
	for (i = 0; i < 256; i++)
		assert_int_equal(out.u[256 + i], 0xffffffff);
}

/* Whole halves, that products and sums of 16 hold exactly. */
static void
half_products_are_those_of_a_triple_loop(void **state)
{
	uint16_t *a = (uint16_t *)in.u, *b = (uint16_t *)(in.u + 4096);
	struct err e;
	size_t i, r, c, k;
	float want;

	(void)state;
	for (i = 0; i < 256; i++)
		a[i] = ref_fp16_encode((float)((int)(i * 5 % 17) - 8) / 4);
	for (i = 0; i < 128; i++)
		b[i] = ref_fp16_encode((float)((int)(i * 11 % 29) - 14) / 2);
	assert_int_equal(launch("test_mma", 32, 1, 32, 0, 0, &e), 0);
	for (r = 0; r < 16; r++)
		for (c = 0; c < 8; c++) {
			for (want = 1, k = 0; k < 16; k++)
				want += ref_fp16_decode(a[r * 16 + k]) * ref_fp16_decode(b[c * 16 + k]);
			assert_true(out.f[r * 8 + c] == want);
		}
}

static void
byte_products_are_those_of_a_triple_loop(void **state)
{
	uint8_t *a = (uint8_t *)in.u, *b = (uint8_t *)(in.u + 4096);
	struct err e;
	size_t i, r, c, k;
	int want;

	(void)state;
	for (i = 0; i < 512; i++)
		a[i] = (uint8_t)(i * 37 + i / 3);
	for (i = 0; i < 256; i++)
		b[i] = (uint8_t)(i * 91 + 5);
	assert_int_equal(launch("test_mma", 32, 1, 32, 1, 0, &e), 0);
	for (r = 0; r < 16; r++)
		for (c = 0; c < 8; c++) {
			for (want = 1, k = 0; k < 32; k++)
				want += (int8_t)a[r * 32 + k] * (int8_t)b[c * 32 + k];
			assert_true(out.f[r * 8 + c] == (float)want);
		}
}

static void
bits_and_halves_are_those_of_the_hardware(void **state)
{
	uint32_t i, bits;
	struct err e;
	size_t w;
	float v;

	(void)state;
	for (w = 0; w < 2; w++) {
		assert_int_equal(launch("test_bits", waves[w], 1, 256, 0, 0, &e), 0);
		assert_int_equal(out.u[0], 0x77225500);
		assert_int_equal(out.u[1], 0x56789abc);
		assert_int_equal(out.u[2], 0x89abcdef);
		assert_int_equal(out.u[3], 9);
		for (i = 0; i < 65536; i++) {
			v = ref_fp16_decode((uint16_t)i);
			memcpy(&bits, &v, 4);
			if ((i & 0x7fff) > 0x7c00) {
				assert_true((out.u[16 + i] & 0x7fffffff) > 0x7f800000);
				assert_true((out.u[16 + 65536 + i] & 0x7fff) > 0x7c00);
				continue;
			}
			assert_int_equal(out.u[16 + i], bits);
			assert_int_equal(out.u[16 + 65536 + i], i);
			/* Between i and i + 1, both finite: the even one. */
			if ((i & 0x7fff) < 0x7bff)
				assert_int_equal(out.u[16 + 131072 + i], i + (i & 1));
		}
	}
}

/* ---- refused -------------------------------------------------------------------- */

static void
threads_that_part_at_barriers_are_refused(void **state)
{
	size_t w;

	(void)state;
	for (w = 0; w < 2; w++) {
		assert_refused("test_divergent_barrier", waves[w], 256, 9, 0, "thread 9 has ended");
		assert_refused("test_divergent_barrier", waves[w], 256, 0, 0, "thread 0 has ended");
		assert_refused("test_divergent_kinds", waves[w], 256, 9, 0,
			"thread 9 is at a shuffle");
		assert_refused("test_divergent_waves", waves[w], 256, 1, 0, "divergence");
	}
}

static void
lanes_that_are_not_there_are_refused(void **state)
{
	(void)state;
	assert_refused("test_far_lane", 32, 4, 0, 0, "a lane that does not exist");
	assert_refused("test_wide_mask", 32, 32, 0, 0, "leaves its group");
	assert_refused("test_wide_mask", 64, 64, 0, 0, "leaves its group");
}

static void
wild_addresses_are_refused_and_named(void **state)
{
	struct err e;

	(void)state;
	assert_refused("test_address", 32, 32, 1u << 31, 0, "illegal address 0x");
	assert_refused("test_misaligned", 64, 64, 0, 0, "misaligned");
	assert_int_equal(launch("test_shared_end", 32, 1, 32, 32, 64, &e), 0);
	assert_refused("test_shared_end", 32, 32, 33, 64, "illegal address");
	assert_refused("test_shared_front", 32, 32, 1, 64, "in front of its shared memory");
}

static void
wrong_launches_are_refused(void **state)
{
	struct gpu_fiber_launch l = { .name = "k", .entry = wave32_test_bits, .wave = 32,
		.grid = { 1, 1, 1 }, .block = 1025 };
	struct gpu_args a = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(gpu_fiber_run(&l, &a, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	l.block = 32;
	l.grid[1] = 0;
	assert_int_equal(gpu_fiber_run(&l, &a, &e), -1);
	l.grid[1] = 1;
	l.wave = 16;
	assert_int_equal(gpu_fiber_run(&l, &a, &e), -1);
}

static void
after_a_refusal_the_next_launch_is_right(void **state)
{
	struct err e;

	(void)state;
	numbers();
	assert_refused("test_divergent_barrier", 32, 256, 9, 0, "divergence");
	assert_int_equal(launch("test_shuffle", 32, 1, 32, 32, 0, &e), 0);
	assert_true(out.f[32] == 1.0f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_shares_what_it_wrote_before_a_barrier),
		cmocka_unit_test(a_forgotten_barrier_shows),
		cmocka_unit_test(shuffles_stay_in_groups_of_their_width),
		cmocka_unit_test(a_block_of_less_than_a_wave_shuffles_what_it_has),
		cmocka_unit_test(asynchronous_copies_are_there_once_waited_for),
		cmocka_unit_test(a_forgotten_wait_shows),
		cmocka_unit_test(half_products_are_those_of_a_triple_loop),
		cmocka_unit_test(byte_products_are_those_of_a_triple_loop),
		cmocka_unit_test(bits_and_halves_are_those_of_the_hardware),
		cmocka_unit_test(threads_that_part_at_barriers_are_refused),
		cmocka_unit_test(lanes_that_are_not_there_are_refused),
		cmocka_unit_test(wild_addresses_are_refused_and_named),
		cmocka_unit_test(wrong_launches_are_refused),
		cmocka_unit_test(after_a_refusal_the_next_launch_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
