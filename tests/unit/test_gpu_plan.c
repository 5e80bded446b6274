/* Plans of the GPU kernels: grids that fill a device, and files that exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_plan.h"

/* An H200: 132 multiprocessors of 228 KiB, of which a block may have 227. */
static const struct gpu_limits h200 = {132, 32, 227 * 1024, 228 * 1024, true};

static struct gpu_plan
plan(const char *name, size_t variant, uint32_t gqa, uint32_t n_kv, const struct gpu_limits *l)
{
	struct backend_args a = {.n_heads = 8 * gqa, .n_kv_heads = 8, .n_kv = n_kv};
	struct gpu_plan p;
	struct err e = {0};

	assert_int_equal(gpu_plan_kernel(kernel_find(name), variant, &a, l, &p, &e), 0);
	return p;
}

/* Registers allow 2 blocks of most kernels, 4 of qjl for one head. */
static void
blocks_share_a_multiprocessor_as_far_as_registers_and_memory_allow(void **state)
{
	static const struct {
		const char *name;
		uint32_t gqa, blocks;
	} rows[] = {{"turbo3", 1, 2}, {"turbo3", 8, 2}, {"turbo4", 4, 2}, {"turbo3_tcq", 4, 2},
		{"qjl", 1, 4}, {"qjl", 8, 2}, {"polar", 1, 2}, {"polar_preht", 8, 2}};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		struct gpu_plan p = plan(rows[i].name, 0, rows[i].gqa, 1u << 20, &h200);

		assert_int_equal(p.count, 1);
		assert_int_equal(p.steps[0].grid[1], 8);
		assert_int_equal(p.steps[0].grid[0], 132 * rows[i].blocks / 8);
		assert_true((p.steps[0].shared + 1024) * rows[i].blocks <= h200.shared_sm);
	}
}

static void
less_shared_memory_means_fewer_blocks(void **state)
{
	struct gpu_limits l = h200;

	(void)state;
	l.shared_sm = l.shared;
	l.shared = 160 * 1024;
	assert_int_equal(plan("polar", 0, 1, 1u << 20, &l).steps[0].grid[0], 132 * 2 / 8);
	l.shared_sm = 164 * 1024;
	assert_int_equal(plan("polar", 0, 1, 1u << 20, &l).steps[0].grid[0], 132 / 8);
}

static void
more_than_eight_heads_share_reads_eight_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(plan("turbo3", 0, 16, 4096, &h200).steps[0].grid[1], 16);
	assert_string_equal(plan("turbo3", 0, 16, 4096, &h200).steps[0].entry, "matrix_turbo3_8");
	assert_string_equal(plan("turbo3", 0, 3, 4096, &h200).steps[0].entry, "matrix_turbo3_4");
	assert_string_equal(plan("turbo3", 0, 1, 4096, &h200).steps[0].entry, "matrix_turbo3_1");
}

static void
no_keys_need_no_launch_but_attention_writes_zeros(void **state)
{
	(void)state;
	assert_int_equal(plan("qjl", 0, 4, 0, &h200).count, 0);
	assert_int_equal(plan("fused_attn_qjl_tbq", 0, 4, 0, &h200).count, 2);
}

static void
heads_that_do_not_divide_and_too_many_keys_are_refused(void **state)
{
	struct backend_args a = {.n_heads = 7, .n_kv_heads = 2, .n_kv = 8};
	struct gpu_plan p;
	struct err e = {0};

	(void)state;
	assert_int_equal(gpu_plan_kernel(kernel_find("qjl"), 0, &a, &h200, &p, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	a = (struct backend_args){.n_heads = 1, .n_kv_heads = 1, .n_kv = UINT32_MAX};
	assert_int_equal(gpu_plan_kernel(kernel_find("qjl"), 0, &a, &h200, &p, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
}

static void
is_source(const char *file)
{
	const struct gpu_code *c = NULL;
	char path[64];

	assert_non_null(file);
	(void)snprintf(path, sizeof path, "kernels/%s.cu", file);
	while ((c = gpu_code_next(c, GPU_CODE_SOURCE, NULL)) != NULL)
		if (str_eq(c->name, path))
			return;
	fail_msg("no source %s", path);
}

static void
every_step_names_a_file_that_exists(void **state)
{
	const char *names[BACKEND_VARIANTS];
	struct gpu_plan p;
	struct err e = {0};
	size_t i, v;
	unsigned s;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (v = 0; v < gpu_variants(&kernels[i], &h200, names); v++) {
			p = plan(kernels[i].name, v, 4, 1000, &h200);
			for (s = 0; s < p.count; s++)
				is_source(p.steps[s].file);
		}
	for (i = 0; i < KERNEL_FORMATS; i++) {
		assert_int_equal(gpu_plan_encode(&kernel_formats[i], 5, &h200, &p, &e), 0);
		is_source(p.steps[0].file);
	}
}

/* (high * ratio + low) * unit: the search's promise, see gpu_plan.c. */
static void
bytes_of_levels_are_as_near_as_they_are_said_to_be(void **state)
{
	struct gpu_tables t;
	const float *levels[] = {t.turbo3_c, t.turbo4_c, t.polar_c};
	const double most[] = {5e-8, 3.3e-6, 4.7e-6};
	const int count[] = {8, 16, 16};
	int set, i;

	(void)state;
	gpu_tables_fill(&t);
	for (set = GPU_TURBO3; set <= GPU_POLAR; set++)
		for (i = 0; i < count[set]; i++) {
			const struct gpu_levels *l = &t.levels[set];
			double v = (l->high[i] * (double)l->ratio + l->low[i]) * (double)l->unit;
			double off = v - (double)levels[set][i];

			assert_true(off < most[set] && off > -most[set]);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_share_a_multiprocessor_as_far_as_registers_and_memory_allow),
		cmocka_unit_test(less_shared_memory_means_fewer_blocks),
		cmocka_unit_test(more_than_eight_heads_share_reads_eight_at_a_time),
		cmocka_unit_test(no_keys_need_no_launch_but_attention_writes_zeros),
		cmocka_unit_test(heads_that_do_not_divide_and_too_many_keys_are_refused),
		cmocka_unit_test(every_step_names_a_file_that_exists),
		cmocka_unit_test(bytes_of_levels_are_as_near_as_they_are_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
