#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/exhaustive.h"
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
	task = (struct verify_task){.items = items, .seed = 1};
	return rig_open(&backend_fake, &fake.devices[0], &rig, &e);
}

static int
close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	assert_int_equal(fake.open, 0);
	assert_int_equal(fake.buffers, 0);
	return 0;
}

static struct exhaustive_report
run(const char *only, fake_run kernel, uint64_t scores, unsigned threads)
{
	struct exhaustive_report r = {0};
	struct err e = {0};

	fake.run = kernel;
	if (verify_items(&rig, only ? &only : NULL, only != NULL, items, &task.item_count, &e) ||
	    exhaustive_run(&rig, &task, scores, threads, &r, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void
reference_has_no_bad_score(void **state)
{
	struct exhaustive_report r = run(NULL, NULL, 20000, 2);
	size_t i;

	(void)state;
	assert_int_equal(r.count, 8); /* the score kernels */
	for (i = 0; i < r.count; i++) {
		assert_int_equal(r.rows[i].outcome, OUTCOME_PASS);
		assert_true(r.rows[i].compared >= 20000 && r.rows[i].compared < 20100);
		assert_int_equal(r.rows[i].bad, 0);
		assert_true(r.rows[i].max_abs > 0 && r.rows[i].max_abs < 1e-4);
		assert_true(r.rows[i].worst > 0 && r.rows[i].worst < 0.1);
	}
	assert_int_equal(r.outcome, OUTCOME_PASS);
	exhaustive_fini(&r);
}

static void
threads_do_not_change_what_is_found(void **state)
{
	struct exhaustive_report a = run("turbo4", NULL, 5000, 1), b = run("turbo4", NULL, 5000, 5);

	(void)state;
	assert_true(a.rows[0].max_abs == b.rows[0].max_abs);
	assert_true(a.rows[0].worst == b.rows[0].worst);
	assert_int_equal(a.rows[0].where.head, b.rows[0].where.head);
	assert_int_equal(a.rows[0].where.key, b.rows[0].where.key);
	assert_true(a.rows[0].where.got == b.rows[0].where.got);
	exhaustive_fini(&a);
	exhaustive_fini(&b);
}

/* Answers as fast as truth does, for a device that is asked millions of times: zeros, of
 * norms that are zero, with one slip in a million. */
static size_t slip_part, slip_head, slip_key;

static int
slip_once(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	static size_t done;

	if (k->run(c, out, e))
		return -1;
	if (done++ == slip_part)
		out[slip_head * c->n_kv + slip_key] += 2e-3f;
	return 0;
}

static void
one_slip_is_found_and_placed(void **state)
{
	struct exhaustive_report r;

	(void)state;
	slip_part = 0, slip_head = 17, slip_key = 1234;
	r = run("turbo3", slip_once, 100000, 2);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	assert_int_equal(r.rows[0].bad, 1);
	assert_int_equal(r.rows[0].first_bad.part, 0);
	assert_int_equal(r.rows[0].first_bad.head, 17);
	assert_int_equal(r.rows[0].first_bad.key, 1234);
	assert_int_equal(r.rows[0].first_bad.gqa, 8);
	assert_true(fabs((double)r.rows[0].first_bad.got - r.rows[0].first_bad.wanted - 2e-3) <
		    1e-4);
	assert_true(r.rows[0].worst > 1);
	assert_non_null(strstr(r.rows[0].detail, "head 17, key 1234"));
	exhaustive_fini(&r);
}

static void
one_in_a_million_is_found(void **state)
{
	struct exhaustive_report r = run("turbo4", fake_slips, 1100000, 2);

	(void)state;
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	assert_int_equal(r.rows[0].bad, 1);
	exhaustive_fini(&r);
}

static void
fault_is_caught(void **state)
{
	static const struct {
		const char *what;
		fake_run kernel;
	} rows[] = {
		{"writes after", fake_writes_after}, {"writes before", fake_writes_before},
		{"forgets the last", fake_forgets_last}, {"gives NaN", fake_gives_nan},
		{"swaps heads", fake_swaps_heads},
		{"takes a wrong kv head", fake_takes_wrong_kv_head},
	};
	struct exhaustive_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		r = run("turbo3", rows[i].kernel, 3000, 1);
		if (r.outcome != OUTCOME_FAIL || r.rows[0].detail[0] == '\0')
			fail_msg("a kernel that %s passes", rows[i].what);
		exhaustive_fini(&r);
	}
}

static void
what_can_not_run_is_blocked(void **state)
{
	struct exhaustive_report r;

	(void)state;
	fake.lacks = 1u << 0;
	r = run("turbo3", NULL, 1000, 1);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_UNSUPPORTED);
	exhaustive_fini(&r);
	fake.lacks = 0;
	fake.no_buffers = ERR_NOMEM;
	r = run("turbo3", NULL, 1000, 1);
	assert_int_equal(r.why, ERR_NOMEM);
	assert_non_null(strstr(r.rows[0].detail, "fakeAlloc"));
	exhaustive_fini(&r);
	fake.no_buffers = ERR_NONE;
	fake.lost_after = 1;
	r = run(NULL, NULL, 1000, 1);
	assert_int_equal(r.why, ERR_DEVICE);
	assert_int_equal(r.rows[7].outcome, OUTCOME_BLOCKED);
	assert_int_equal(fake.runs, 1);
	exhaustive_fini(&r);
	fake_close(rig.session); /* frees what nobody may touch any more */
	rig.session = NULL;
}

/* Ends after two parts. */
static volatile sig_atomic_t stopping;
static int
stop_soon(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	static size_t parts;

	stopping = ++parts == 2;
	(void)k, (void)e;
	memset(out, 0, (size_t)c->n_heads * c->n_kv * sizeof *out);
	return 0;
}

static void
stopped_run_keeps_what_it_did(void **state)
{
	struct exhaustive_report r;

	(void)state;
	task.stop = &stopping;
	task.tolerance = 1e9; /* it is not about the numbers */
	r = run("qjl", stop_soon, EXHAUSTIVE_SCORES, 2);
	assert_int_equal(r.outcome, OUTCOME_INCOMPLETE);
	assert_int_equal(r.why, ERR_CANCELLED);
	assert_int_equal(r.rows[0].compared, 4 * 8 * 65536 + 4 * 4 * 65535);
	assert_non_null(strstr(r.rows[0].detail, "stopped after"));
	exhaustive_fini(&r);
	stopping = 0;
}

static void
json_bounds_the_rate_of_errors(void **state)
{
	struct exhaustive_report r = run("qjl", NULL, 3000, 1);
	cJSON *o = exhaustive_json(&r);
	const cJSON *row = cJSON_GetArrayItem(json_get(o, "rows"), 0);
	double n = json_num(row, "compared", 0);

	(void)state;
	assert_true(n >= 3000);
	assert_true(fabs(json_num(row, "errorRateBound95", 0) - 3 / n) < 1e-12);
	assert_true(cJSON_IsNull(json_get(row, "firstBad")));
	assert_int_equal(json_int(json_get(row, "worst"), "gqa", 0), 8);
	cJSON_Delete(o);
	exhaustive_fini(&r);
	r = run("qjl", fake_gives_nan, 3000, 1);
	o = exhaustive_json(&r);
	row = cJSON_GetArrayItem(json_get(o, "rows"), 0);
	assert_true(cJSON_IsNull(json_get(row, "errorRateBound95")));
	assert_true(cJSON_IsNull(json_get(json_get(row, "firstBad"), "got")));
	cJSON_Delete(o);
	exhaustive_fini(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reference_has_no_bad_score),
		TEST(threads_do_not_change_what_is_found),
		TEST(one_slip_is_found_and_placed),
		TEST(one_in_a_million_is_found),
		TEST(fault_is_caught),
		TEST(what_can_not_run_is_blocked),
		TEST(stopped_run_keeps_what_it_did),
		TEST(json_bounds_the_rate_of_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
