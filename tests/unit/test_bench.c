#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/bench.h"
#include "tests/unit/fake_backend.h"

static struct rig rig;
static struct verify_item items[VERIFY_ITEMS];
static struct verify_task task;

static int
open_rig(void **state)
{
	struct err e = {0};

	(void)state;
	fake_reset();
	/* Less than the large shape needs. */
	fake.devices[0].memory = 64u << 20;
	task = (struct verify_task){.items = items, .seed = 1};
	return rig_open(&backend_fake, &fake.devices[0], &rig, &e);
}

static int
close_rig(void **state)
{
	(void)state;
	assert_int_equal(fake.buffers, 0);
	rig_close(&rig);
	assert_int_equal(fake.open, 0);
	return 0;
}

static struct bench_report
run(const char *only, fake_run kernel, uint32_t keys, uint32_t gqa)
{
	struct bench_options o = {.keys = keys, .gqa = gqa};
	struct bench_report r = {0};
	struct err e = {0};

	fake.run = kernel;
	if (verify_items(&rig, &only, 1, items, &task.item_count, &e) ||
	    bench_run(&rig, &task, &o, &r, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void
moved_bytes_are_keys_once_and_scores(void **state)
{
	static const struct {
		const char *name;
		uint64_t moved; /* 8 kv heads, 100 keys, 4 query heads for each */
	} rows[] = {
		{"turbo3", 8 * 100 * 56 + 4 * 8 * 4 * 100},
		{"turbo4", 8 * 100 * 72 + 4 * 8 * 4 * 100},
		{"turbo3_tcq", 8 * 100 * 52 + 4 * 8 * 4 * 100},
		{"qjl", 8 * 100 * 34 + 4 * 8 * 4 * 100},
		{"polar_preht_qjl", 8 * 100 * 82 + 4 * 8 * 4 * 100},
		{"fused_attn_qjl_tbq", 8 * 100 * (34 + 56) + 4 * 8 * 4 * 128},
		{"fused_attn_qjl_polar_causal", 8 * 100 * (34 + 82) + 4 * 8 * 4 * 128},
	};
	struct bench_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		r = run(rows[i].name, NULL, 100, 4);
		assert_int_equal(r.count, 1);
		assert_int_equal(r.rows[0].outcome, OUTCOME_PASS);
		assert_int_equal(r.rows[0].moved, rows[i].moved);
		assert_true(r.rows[0].cached);
		assert_int_equal(r.rows[0].wrong, 0);
		assert_true(r.rows[0].checked > 0);
		bench_fini(&r);
	}
}

/* The fake device takes 1, 2, 3, 1, 2, ... times its unit: 1 unit for a copy, 2 for the
 * first variant, 3 for the second. */
static void
times_are_medians_beside_copy_and_plain(void **state)
{
	struct bench_report r;
	const struct bench_row *p;
	cJSON *o;
	const cJSON *row;

	(void)state;
	fake.variants[1] = "plain";
	fake.variant_count = 2;
	r = run("turbo3", NULL, 1000, 8);
	p = &r.rows[0];
	assert_true(p->runs >= BENCH_RUNS);
	assert_true(fabs(p->seconds - 4e-3) < 1e-9);
	assert_true(fabs(p->best - 2e-3) < 1e-9);
	assert_true(fabs(p->copy_seconds - 2e-3) < 1e-9);
	assert_true(fabs(p->plain_seconds - 6e-3) < 1e-9);
	assert_string_equal(p->plain, "plain");
	o = bench_json(&r);
	row = cJSON_GetArrayItem(json_get(o, "rows"), 0);
	assert_true(fabs(json_num(row, "fractionOfCopy", 0) - 0.5) < 1e-9);
	assert_true(fabs(json_num(row, "timeOverCopy", 0) - 2) < 1e-9);
	assert_true(fabs(json_num(row, "plainOverThis", 0) - 1.5) < 1e-9);
	assert_true(fabs(json_num(row, "gbPerSecond", 0) -
			    json_num(row, "movedBytes", 0) / 4e-3 / 1e9) < 1e-9);
	assert_true(fabs(json_num(row, "copyGbPerSecond", 0) /
			    json_num(row, "gbPerSecond", 1) - 2) < 1e-9);
	cJSON_Delete(o);
	bench_fini(&r);
}

static void
shapes_are_the_agreed_ones(void **state)
{
	static const uint32_t keys[] = {4096, 32768, 131072}, gqa[] = {1, 4, 8};
	struct bench_report r;
	size_t i;

	(void)state;
	task.stop = &(const volatile sig_atomic_t){1}; /* nothing is measured */
	r = run("qjl", NULL, 0, 0);
	assert_int_equal(r.count, 12);
	for (i = 0; i < 12; i++) {
		assert_int_equal(r.rows[i].gqa, gqa[i % 3]);
		if (i < 9)
			assert_int_equal(r.rows[i].n_kv, keys[i / 3]);
		else
			assert_true((uint64_t)r.rows[i].n_kv * 8 * 34 >= UINT64_C(1) << 30);
		assert_int_equal(r.rows[i].large, i >= 9);
		assert_int_equal(r.rows[i].cached, i < 9);
		assert_int_equal(r.rows[i].outcome, OUTCOME_SKIPPED);
	}
	bench_fini(&r);
}

static void
shape_that_is_too_large_is_skipped_and_says_so(void **state)
{
	struct bench_report r = run("turbo3", NULL, 4u << 20, 1);

	(void)state;
	assert_int_equal(r.rows[0].outcome, OUTCOME_SKIPPED);
	assert_non_null(strstr(r.rows[0].detail, "the device has 0.1 GB"));
	/* Nothing measured is no pass. */
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	bench_fini(&r);
}

static void
slow_shape_says_how_many_runs_there_were(void **state)
{
	struct bench_report r;

	(void)state;
	fake.seconds = 0.5;
	r = run("turbo3", NULL, 64, 1);
	assert_int_equal(r.rows[0].runs, 2);
	assert_int_equal(r.rows[0].outcome, OUTCOME_PASS);
	bench_fini(&r);
}

static void
wrong_kernel_is_no_benchmark(void **state)
{
	static const struct {
		const char *what, *only;
		fake_run kernel;
	} rows[] = {
		{"forgets the last", "turbo3", fake_forgets_last},
		{"takes a wrong kv head", "qjl", fake_takes_wrong_kv_head},
		{"forgets the last", "fused_attn_qjl_tbq", fake_forgets_last},
	};
	struct bench_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		r = run(rows[i].only, rows[i].kernel, 40, 2);
		if (r.outcome != OUTCOME_FAIL)
			fail_msg("a kernel that %s passes", rows[i].what);
		bench_fini(&r);
	}
}

static void
named_variant_is_measured(void **state)
{
	struct bench_report r;

	(void)state;
	fake.variants[1] = "rows-4";
	fake.variant_count = 2;
	r = run("turbo3[rows-4]", NULL, 64, 1);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.rows[0].name, "turbo3[rows-4]");
	assert_string_equal(r.rows[0].plain, "");
	assert_int_equal(fake.variant, 1);
	bench_fini(&r);
}

static void
device_that_can_not_is_blocked(void **state)
{
	struct bench_report r;

	(void)state;
	fake.no_buffers = ERR_NOMEM;
	r = run("turbo3", NULL, 64, 1);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_NOMEM);
	bench_fini(&r);
	fake.no_buffers = ERR_NONE;
	fake.lacks = 1u << 0;
	r = run("turbo3", NULL, 64, 1);
	assert_int_equal(r.why, ERR_UNSUPPORTED);
	bench_fini(&r);
	fake.lacks = 0;
	fake.lost_after = 1;
	r = run("turbo3", NULL, 64, 0);
	assert_int_equal(r.why, ERR_DEVICE);
	assert_int_equal(r.rows[2].outcome, OUTCOME_BLOCKED);
	assert_int_equal(fake.runs, 1);
	bench_fini(&r);
	fake.buffers = 0; /* of a lost session: close frees them */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(moved_bytes_are_keys_once_and_scores),
		TEST(times_are_medians_beside_copy_and_plain),
		TEST(shapes_are_the_agreed_ones),
		TEST(shape_that_is_too_large_is_skipped_and_says_so),
		TEST(slow_shape_says_how_many_runs_there_were),
		TEST(wrong_kernel_is_no_benchmark),
		TEST(named_variant_is_measured),
		TEST(device_that_can_not_is_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
