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
#include "kernels/verify.h"
#include "tests/unit/fake_backend.h"

/* Three outputs of a turbo3 case; the kernels below decide what they are. */
static float wanted[3] = {1.0f, -2.0f, 0.0f};
static float query[REF_HEAD];
static uint8_t keys[3 * REF_QUARTERS * REF_TURBO3_BLOCK];
static struct fixture small;
static struct rig rig;

static const struct kernel *
small_fixture(void)
{
	memset(&small, 0, sizeof small);
	small.case_count = 1;
	small.cases[0].in = (struct ref_case){1, 1, 3, query, keys, NULL, false, false, 0, 0};
	small.cases[0].expected = wanted;
	small.cases[0].expected_count = 3;
	return kernel_find("turbo3");
}

static int
open_rig(void **state)
{
	struct err e = {0};

	(void)state;
	fake_reset();
	return rig_open(&backend_fake, &fake.devices[0], &rig, &e);
}

static int
close_rig(void **state)
{
	(void)state;
	/* Nothing may be left on the device. */
	assert_int_equal(fake.buffers, 0);
	rig_close(&rig);
	assert_int_equal(fake.open, 0);
	return 0;
}

static int
write_right(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	(void)e, (void)k;
	memcpy(out, wanted, c->n_kv * sizeof *out);
	return 0;
}

static int
write_half_off(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e, (void)k;
	out[0] = 1.5f, out[1] = -2.0f, out[2] = 0.0f;
	return 0;
}

static int
write_after(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[3 * sizeof *out] ^= 1;
	return write_right(k, c, out, e);
}

static int
write_far_after(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[3 * sizeof *out + RIG_GUARD - 1] ^= 1;
	return write_right(k, c, out, e);
}

static int
write_before(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	out[-1] = 0;
	return write_right(k, c, out, e);
}

static int
write_before_the_query(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((float *)(uintptr_t)c->q)[-1] = 0;
	return write_right(k, c, out, e);
}

static int
write_into_keys(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)(uintptr_t)c->k)[17] ^= 0x80;
	return write_right(k, c, out, e);
}

static int
write_into_query(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((float *)(uintptr_t)c->q)[REF_HEAD - 1] = 1;
	return write_right(k, c, out, e);
}

static int
write_too_little(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e, (void)k;
	out[0] = wanted[0], out[1] = wanted[1];
	return 0;
}

static int
write_infinity(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e, (void)k;
	out[0] = wanted[0], out[1] = -INFINITY, out[2] = NAN;
	return 0;
}

static int
write_nothing_for_want_of_memory(const struct kernel *k, struct ref_case *c, float *out,
	struct err *e)
{
	(void)c, (void)out, (void)k;
	return err_set(e, ERR_NOMEM, "no memory on the device");
}

static struct verify_check
small_check(fake_run run, double tolerance)
{
	struct verify_check c;

	fake.run = run;
	verify_fixture(&rig, kernel_find("turbo3"), 0, &small, tolerance, &c);
	fake.run = NULL;
	return c;
}

static void
run_all(struct verify_report *r, const struct verify_options *o)
{
	struct err e = {0};

	if (verify_run(&rig, o, r, &e))
		fail_msg("%s", e.msg);
}

static void
every_kernel_passes_far_below_the_tolerance(void **state)
{
	static const size_t elements[KERNEL_COUNT + 2] = {8, 8, 8, 8, 8, 8, 8, 8, 1920, 1920, 1536,
		1536, 8, 8};
	struct verify_options o = {0};
	struct verify_report r;
	size_t i;

	(void)state;
	run_all(&r, &o);
	/* The rows, and the pre-transformed kernels over both files of polar. */
	assert_int_equal(r.check_count, KERNEL_COUNT + 2);
	for (i = 0; i < r.check_count; i++) {
		assert_int_equal(r.checks[i].outcome, OUTCOME_PASS);
		assert_int_equal(r.checks[i].elements, elements[i]);
		/* A correct kernel lands at about 1e-5; the stored digits allow no 0. */
		assert_true(r.checks[i].max_abs < 1.5e-5);
		assert_true(r.checks[i].max_abs > 0);
		assert_true(r.checks[i].nmse < 1e-11);
		assert_int_equal(r.checks[i].non_finite, 0);
		assert_true(r.checks[i].guard_intact);
		assert_true(r.checks[i].tolerance == 1e-3);
		assert_string_equal(r.checks[i].variant, "fast");
	}
	assert_string_equal(r.checks[12].name, "polar_preht[polar]");
	assert_string_equal(r.checks[12].fixture, "polar.json");
	assert_string_equal(r.checks[13].name, "polar_preht_qjl[polar_qjl]");
	assert_string_equal(r.checks[13].fixture, "polar_qjl.json");
	assert_int_equal(r.control_count, 2);
	assert_true(r.controls[0].caught);
	assert_true(r.controls[1].caught);
	assert_int_equal(r.passed, KERNEL_COUNT + 2);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	assert_int_equal(verify_exit(&r), 0);
	assert_int_equal(r.code_count, 1);
	assert_string_equal(r.backend, "fake");
	verify_report_fini(&r);
}

/* Without the transform of the query its numbers are others: it is not the polar kernel
 * under another name. */
static void
preht_kernel_needs_the_transformed_query(void **state)
{
	struct verify_check check;
	struct fixture *f = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(fixture_load(kernel_find("polar"), NULL, &f, NULL, &e), 0);
	verify_fixture(&rig, kernel_find("polar_preht"), 0, f, 1e-3, &check);
	assert_int_equal(check.outcome, OUTCOME_FAIL);
	fixture_free(f);
}

static void
measures_are_what_they_say(void **state)
{
	struct verify_check c;

	(void)state;
	small_fixture();
	c = small_check(write_half_off, 0.75);
	assert_int_equal(c.outcome, OUTCOME_PASS);
	assert_int_equal(c.elements, 3);
	assert_true(c.max_abs == 0.5);
	assert_true(c.max_rel == 0.5);
	assert_true(c.nmse == 0.25 / 5);
}

static void
difference_of_just_the_tolerance_fails(void **state)
{
	struct verify_check c;

	(void)state;
	small_fixture();
	c = small_check(write_half_off, 0.5);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.over, 1);
	c = small_check(write_half_off, 0.5000001);
	assert_int_equal(c.outcome, OUTCOME_PASS);
}

static void
write_outside_the_output_fails(void **state)
{
	static const struct {
		fake_run run;
		const char *where;
	} rows[] = {
		{write_after, "outside of its output (1 bytes past the end of out)"},
		{write_far_after, "outside of its output (1024 bytes past the end of out)"},
		{write_before, "outside of its output (4 bytes before out)"},
		{write_before_the_query, "outside of its output (4 bytes before q)"},
		{write_into_keys, "into an input (byte 17 of k)"},
		{write_into_query, "into an input (byte 510 of q)"},
	};
	struct verify_check c;
	size_t i;

	(void)state;
	small_fixture();
	memset(query, 0, sizeof query);
	c = small_check(write_right, 1e-3);
	assert_int_equal(c.outcome, OUTCOME_PASS);
	assert_true(c.guard_intact);
	for (i = 0; i < str_count(rows); i++) {
		c = small_check(rows[i].run, 1e-3);
		assert_int_equal(c.outcome, OUTCOME_FAIL);
		assert_false(c.guard_intact);
		assert_int_equal(c.over, 0); /* the numbers themselves are right */
		if (strstr(c.detail, rows[i].where) == NULL)
			fail_msg("\"%s\" instead of \"%s\"", c.detail, rows[i].where);
	}
}

static void
output_that_is_not_finite_or_not_written_fails(void **state)
{
	struct verify_check c;

	(void)state;
	small_fixture();
	c = small_check(write_infinity, 1e30);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.non_finite, 2);
	assert_true(isnan(c.max_abs) && isnan(c.max_rel) && isnan(c.nmse));
	c = small_check(write_too_little, 1e30);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.non_finite, 1);
}

static void
device_that_can_not_run_is_blocked(void **state)
{
	struct verify_check c;

	(void)state;
	small_fixture();
	c = small_check(write_nothing_for_want_of_memory, 1e-3);
	assert_int_equal(c.outcome, OUTCOME_BLOCKED);
	assert_int_equal(c.why, ERR_NOMEM);
	assert_string_equal(c.detail, "no memory on the device");
}

static void
nothing_compared_is_not_a_pass(void **state)
{
	struct verify_check c;

	(void)state;
	small_fixture();
	small.cases[0].in.causal = true; /* no case that the row takes */
	c = small_check(write_right, 1e-3);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.elements, 0);
}

/* Every way to be wrong, over the fixtures alone: what they can not show is the business
 * of the properties. */
static void
fault_of_a_kernel_is_seen_by_the_fixtures(void **state)
{
	static const struct {
		const char *name, *only;
		fake_run run;
	} rows[] = {
		{"writes after", "turbo3", fake_writes_after},
		{"writes far after", "polar", fake_writes_far_after},
		{"writes before", "qjl", fake_writes_before},
		{"changes a key", "turbo4", fake_changes_input},
		{"changes the query", "turbo3_tcq", fake_changes_query},
		{"forgets the last", "polar_preht", fake_forgets_last},
		{"forgets the last", "fused_attn_qjl_tbq", fake_forgets_last},
		{"gives NaN", "turbo3", fake_gives_nan},
		{"swaps heads", "fused_attn_qjl_polar", fake_swaps_heads},
		{"takes what lies after the keys", "turbo3", fake_reads_past},
		{"takes what lies after the keys", "qjl", fake_reads_past},
		{"takes a wrong kv head", "fused_attn_qjl_tbq", fake_takes_wrong_kv_head},
		{"sees the future", "fused_attn_qjl_tbq_causal", fake_sees_the_future},
		{"sees the future", "fused_attn_qjl_polar_causal", fake_sees_the_future},
	};
	struct verify_options o = {.only_count = 1};
	struct verify_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		o.only = &rows[i].only;
		fake.run = rows[i].run;
		run_all(&r, &o);
		if (r.failed != 1 || verify_exit(&r) != 1)
			fail_msg("%s, %s: passed", rows[i].only, rows[i].name);
		verify_report_fini(&r);
	}
}

static void
planted_errors_are_caught_with_every_kernel(void **state)
{
	struct verify_options o = {.controls_only = true};
	struct verify_report r;
	size_t i;

	(void)state;
	run_all(&r, &o);
	assert_int_equal(r.check_count, 0);
	assert_int_equal(r.control_count, 2 * (KERNEL_COUNT + 2));
	for (i = 0; i < r.control_count; i++) {
		assert_string_equal(r.controls[i].name, i % 2 ? "nan-output" : "flipped-code-bit");
		if (i / 2 < KERNEL_COUNT)
			assert_string_equal(r.controls[i].fixture, kernels[i / 2].file);
		if (!r.controls[i].caught)
			fail_msg("%s: %s", r.controls[i].kernel, r.controls[i].detail);
	}
	assert_int_equal(r.outcome, OUTCOME_PASS);
	verify_report_fini(&r);
}

/* A kernel that knows the answers and looks at nothing. */
static int
recite(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	struct fixture *f = NULL;

	(void)c, (void)k;
	if (fixture_load(kernel_find("turbo3"), NULL, &f, NULL, e))
		return -1;
	memcpy(out, f->cases[0].expected, f->cases[0].expected_count * sizeof *out);
	fixture_free(f);
	return 0;
}

/* One that hides what is not a number. */
static int
hide_nan(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	uint32_t i;

	if (k->run(c, out, e))
		return -1;
	for (i = 0; i < c->n_kv; i++)
		if (isnan(out[i]))
			out[i] = 0;
	return 0;
}

static void
missed_control_fails_the_run(void **state)
{
	static const struct {
		fake_run run;
		bool bit, nan;
	} rows[] = {{recite, false, false}, {hide_nan, true, false}};
	static const char *const only[] = {"turbo3"};
	struct verify_options o = {.only = only, .only_count = 1};
	struct verify_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		fake.run = rows[i].run;
		run_all(&r, &o);
		assert_int_equal(r.passed, 1); /* the check itself saw nothing wrong */
		assert_int_equal(r.controls[0].caught, rows[i].bit);
		assert_int_equal(r.controls[1].caught, rows[i].nan);
		assert_int_equal(r.outcome, OUTCOME_FAIL);
		assert_int_equal(verify_exit(&r), 1);
		verify_report_fini(&r);
	}
}

static void
tolerance_that_hides_everything_fails_the_run(void **state)
{
	struct verify_options o = {.tolerance = 1000};
	struct verify_report r;

	(void)state;
	run_all(&r, &o);
	assert_int_equal(r.failed, 0);
	assert_false(r.controls[0].caught);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	verify_report_fini(&r);
	o.tolerance = 1e-9;
	run_all(&r, &o);
	assert_int_equal(r.passed, 0);
	assert_int_equal(verify_exit(&r), 1);
	verify_report_fini(&r);
}

static void
folder_without_fixtures_is_blocked(void **state)
{
	struct verify_options o = {.dir = "fixtures/nowhere"};
	struct verify_report r;

	(void)state;
	run_all(&r, &o);
	assert_int_equal(r.blocked, KERNEL_COUNT + 2);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(verify_exit(&r), 2);
	assert_string_equal(r.controls[0].fixture, "");
	assert_false(r.controls[0].caught);
	verify_report_fini(&r);
}

static void
kernel_that_the_device_lacks_is_blocked_and_exit_3(void **state)
{
	struct verify_options o = {0};
	struct verify_report r;

	(void)state;
	fake.lacks = 1u << 1;
	run_all(&r, &o);
	assert_string_equal(r.checks[1].name, "turbo4");
	assert_int_equal(r.checks[1].outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.checks[1].why, ERR_UNSUPPORTED);
	assert_int_equal(r.checks[1].elements, 0);
	assert_true(r.checks[1].detail[0] != '\0');
	assert_int_equal(r.blocked, 1);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(verify_exit(&r), 3);
	verify_report_fini(&r);
}

static void
lost_device_blocks_what_follows_and_is_exit_6(void **state)
{
	struct verify_options o = {0};
	struct verify_report r;

	(void)state;
	fake.lost_after = 3;
	run_all(&r, &o);
	assert_int_equal(r.passed, 2);
	assert_int_equal(r.blocked, KERNEL_COUNT);
	assert_non_null(strstr(r.checks[2].detail, "fakeLaunch: FAKE_ERROR_LOST"));
	assert_int_equal(r.checks[2].why, ERR_DEVICE);
	assert_int_equal(r.checks[13].why, ERR_DEVICE);
	assert_true(rig.lost);
	assert_int_equal(fake.runs, 3); /* nobody asked it again */
	/* A planted error that nobody could look at was not caught, but not missed either. */
	assert_false(r.controls[0].caught);
	assert_int_equal(r.controls[0].why, ERR_DEVICE);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(verify_exit(&r), 6);
	verify_report_fini(&r);
	fake.buffers = 0; /* of a lost session only close may follow: it frees them */
}

static void
lack_of_device_memory_is_blocked_with_the_call(void **state)
{
	struct verify_options o = {0};
	struct verify_report r;

	(void)state;
	fake.no_buffers = ERR_NOMEM;
	run_all(&r, &o);
	assert_int_equal(r.blocked, KERNEL_COUNT + 2);
	assert_non_null(strstr(r.checks[0].detail, "fakeAlloc: FAKE_ERROR_OUT_OF_MEMORY"));
	assert_int_equal(verify_exit(&r), 6);
	verify_report_fini(&r);
}

static void
variants_are_checks_of_their_own(void **state)
{
	static const char *const one[] = {"turbo3"}, *const star[] = {"turbo3[*]", "qjl"},
		*const named[] = {"turbo3[rows-4]", "polar_preht[polar][rows-4]"};
	struct verify_options o = {0};
	struct verify_report r;

	(void)state;
	fake.variants[1] = "rows-2", fake.variants[2] = "rows-4";
	fake.variant_count = 3;
	run_all(&r, &o);
	assert_int_equal(r.check_count, 3 * (KERNEL_COUNT + 2));
	assert_string_equal(r.checks[0].name, "turbo3");
	assert_string_equal(r.checks[2].name, "turbo3[rows-4]");
	assert_string_equal(r.checks[2].variant, "rows-4");
	verify_report_fini(&r);
	o.only = one, o.only_count = 1;
	run_all(&r, &o);
	assert_int_equal(r.check_count, 1);
	assert_string_equal(r.checks[0].name, "turbo3");
	assert_int_equal(fake.variant, 0);
	verify_report_fini(&r);
	o.only = star, o.only_count = 2;
	run_all(&r, &o);
	assert_int_equal(r.check_count, 4);
	verify_report_fini(&r);
	o.only = named;
	run_all(&r, &o);
	assert_int_equal(r.check_count, 2);
	assert_string_equal(r.checks[0].name, "turbo3[rows-4]");
	assert_string_equal(r.checks[1].name, "polar_preht[polar][rows-4]");
	assert_int_equal(fake.variant, 2);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	verify_report_fini(&r);
}

static void
unknown_name_is_usage_with_a_suggestion(void **state)
{
	static const struct {
		const char *name, *hint;
	} rows[] = {
		{"turbo5", "did you mean turbo3?"}, {"turbo3[rows-3]", "did you mean turbo3[rows-2]?"},
		{"turbo3[]", "did you mean turbo3?"}, {"", "--kernels"}, {"*", "--kernels"},
		{"q", "did you mean qjl?"},
	};
	struct verify_options o = {.only_count = 1};
	struct verify_report r;
	struct err e;
	size_t i;

	(void)state;
	fake.variants[1] = "rows-2";
	fake.variant_count = 2;
	for (i = 0; i < str_count(rows); i++) {
		memset(&e, 0, sizeof e);
		o.only = &rows[i].name;
		if (verify_run(&rig, &o, &r, &e) == 0 || e.code != ERR_USAGE)
			fail_msg("\"%s\" is taken", rows[i].name);
		if (strstr(e.hint, rows[i].hint) == NULL)
			fail_msg("\"%s\": %s", rows[i].name, e.hint);
	}
}

static void
worst_error_decides_the_exit_status(void **state)
{
	struct verify_report r = {0};

	(void)state;
	verify_report_join(&r, OUTCOME_PASS, ERR_NONE);
	assert_int_equal(verify_exit(&r), 0);
	verify_report_join(&r, OUTCOME_BLOCKED, ERR_UNSUPPORTED);
	assert_int_equal(verify_exit(&r), 3);
	verify_report_join(&r, OUTCOME_BLOCKED, ERR_PARSE);
	assert_int_equal(verify_exit(&r), 2);
	verify_report_join(&r, OUTCOME_BLOCKED, ERR_DEVICE);
	assert_int_equal(verify_exit(&r), 6);
	verify_report_join(&r, OUTCOME_BLOCKED, ERR_UNSUPPORTED);
	assert_int_equal(verify_exit(&r), 6);
	verify_report_join(&r, OUTCOME_FAIL, ERR_NONE);
	assert_int_equal(verify_exit(&r), 1);
	verify_report_join(&r, OUTCOME_PASS, ERR_NONE);
	assert_int_equal(verify_exit(&r), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kernel_passes_far_below_the_tolerance, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(preht_kernel_needs_the_transformed_query, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(measures_are_what_they_say, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(difference_of_just_the_tolerance_fails, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(write_outside_the_output_fails, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(output_that_is_not_finite_or_not_written_fails, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(device_that_can_not_run_is_blocked, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(nothing_compared_is_not_a_pass, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(fault_of_a_kernel_is_seen_by_the_fixtures, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(planted_errors_are_caught_with_every_kernel, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(missed_control_fails_the_run, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(tolerance_that_hides_everything_fails_the_run, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(folder_without_fixtures_is_blocked, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(kernel_that_the_device_lacks_is_blocked_and_exit_3, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(lost_device_blocks_what_follows_and_is_exit_6, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(lack_of_device_memory_is_blocked_with_the_call, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(variants_are_checks_of_their_own, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(unknown_name_is_usage_with_a_suggestion, open_rig, close_rig),
		cmocka_unit_test_setup_teardown(worst_error_decides_the_exit_status, open_rig, close_rig),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
