#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "kernels/verify.h"

/* Three outputs of a turbo3 case; the backends below decide what they are. */
static float wanted[3] = {1.0f, -2.0f, 0.0f};
static struct fixture small;

static const struct kernel *
small_fixture(void)
{
	memset(&small, 0, sizeof small);
	small.case_count = 1;
	small.cases[0].in = (struct ref_case){1, 1, 3, NULL, NULL, NULL, false, false, 0, 0};
	small.cases[0].expected = wanted;
	small.cases[0].expected_count = 3;
	return kernel_find("turbo3");
}

static int
write_right(const struct ref_case *c, float *out, struct err *e)
{
	(void)e;
	memcpy(out, wanted, c->n_kv * sizeof *out);
	return 0;
}

static int
write_half_off(const struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e;
	out[0] = 1.5f, out[1] = -2.0f, out[2] = 0.0f;
	return 0;
}

static int
write_after(const struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[3 * sizeof *out] ^= 1;
	return write_right(c, out, e);
}

static int
write_far_after(const struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[3 * sizeof *out + VERIFY_GUARD - 1] ^= 1;
	return write_right(c, out, e);
}

static int
write_before(const struct ref_case *c, float *out, struct err *e)
{
	out[-1] = 0;
	return write_right(c, out, e);
}

static int
write_too_little(const struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e;
	out[0] = wanted[0], out[1] = wanted[1];
	return 0;
}

static int
write_infinity(const struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)e;
	out[0] = wanted[0], out[1] = -INFINITY, out[2] = NAN;
	return 0;
}

static int
write_nothing_for_want_of_memory(const struct ref_case *c, float *out, struct err *e)
{
	(void)c, (void)out;
	return err_set(e, ERR_NOMEM, "no memory on the device");
}

static void
every_kernel_passes_far_below_the_tolerance(void **state)
{
	static const size_t elements[KERNEL_COUNT] = {8, 8, 8, 8, 8, 8, 8, 8, 1920, 1920, 1536,
		1536};
	struct verify_options o = {0};
	struct verify_report r;
	size_t i;

	(void)state;
	verify_run(&o, &r);
	assert_int_equal(r.check_count, KERNEL_COUNT);
	for (i = 0; i < KERNEL_COUNT; i++) {
		assert_int_equal(r.checks[i].outcome, OUTCOME_PASS);
		assert_int_equal(r.checks[i].elements, elements[i]);
		/* A correct kernel lands at about 1e-5; the stored digits allow no 0. */
		assert_true(r.checks[i].max_abs < 1.5e-5);
		assert_true(r.checks[i].max_abs > 0);
		assert_true(r.checks[i].nmse < 1e-11);
		assert_int_equal(r.checks[i].non_finite, 0);
		assert_true(r.checks[i].guard_intact);
		assert_true(r.checks[i].tolerance == 1e-3);
	}
	assert_true(r.controls[0].caught);
	assert_true(r.controls[1].caught);
	assert_int_equal(r.passed, KERNEL_COUNT);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	assert_int_equal(verify_exit(&r), 0);
}

static void
preht_kernel_also_answers_the_polar_fixtures(void **state)
{
	static const char *const names[] = {"polar", "polar_qjl"};
	const struct kernel *preht = kernel_find("polar_preht"), *k;
	struct verify_check check;
	struct fixture *f = NULL;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		assert_non_null(k = kernel_find(names[i]));
		assert_int_equal(fixture_load(k, NULL, &f, NULL, &e), 0);
		verify_fixture(k, f, preht->run, 1e-3, &check);
		assert_int_equal(check.outcome, OUTCOME_FAIL); /* q is not transformed */
		ref_hadamard(f->cases[0].q, REF_HEAD);
		verify_fixture(k, f, preht->run, 1e-3, &check);
		assert_int_equal(check.outcome, OUTCOME_PASS);
		fixture_free(f);
	}
}

static void
measures_are_what_they_say(void **state)
{
	const struct kernel *k = small_fixture();
	struct verify_check c;

	(void)state;
	verify_fixture(k, &small, write_half_off, 0.75, &c);
	assert_int_equal(c.outcome, OUTCOME_PASS);
	assert_int_equal(c.elements, 3);
	assert_true(c.max_abs == 0.5);
	assert_true(c.max_rel == 0.5);
	assert_true(c.nmse == 0.25 / 5);
}

static void
difference_of_just_the_tolerance_fails(void **state)
{
	const struct kernel *k = small_fixture();
	struct verify_check c;

	(void)state;
	verify_fixture(k, &small, write_half_off, 0.5, &c);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.over, 1);
	verify_fixture(k, &small, write_half_off, 0.5000001, &c);
	assert_int_equal(c.outcome, OUTCOME_PASS);
}

static void
write_outside_the_output_fails(void **state)
{
	static const ref_run runs[] = {write_after, write_far_after, write_before};
	const struct kernel *k = small_fixture();
	struct verify_check c;
	size_t i;

	(void)state;
	verify_fixture(k, &small, write_right, 1e-3, &c);
	assert_int_equal(c.outcome, OUTCOME_PASS);
	assert_true(c.guard_intact);
	for (i = 0; i < str_count(runs); i++) {
		verify_fixture(k, &small, runs[i], 1e-3, &c);
		assert_int_equal(c.outcome, OUTCOME_FAIL);
		assert_false(c.guard_intact);
		assert_int_equal(c.over, 0); /* the numbers themselves are right */
		assert_non_null(strstr(c.detail, "outside"));
	}
}

static void
output_that_is_not_finite_or_not_written_fails(void **state)
{
	const struct kernel *k = small_fixture();
	struct verify_check c;

	(void)state;
	verify_fixture(k, &small, write_infinity, 1e30, &c);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.non_finite, 2);
	assert_true(isnan(c.max_abs) && isnan(c.max_rel) && isnan(c.nmse));
	verify_fixture(k, &small, write_too_little, 1e30, &c);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.non_finite, 1);
}

static void
backend_that_can_not_run_is_blocked(void **state)
{
	const struct kernel *k = small_fixture();
	struct verify_check c;

	(void)state;
	verify_fixture(k, &small, write_nothing_for_want_of_memory, 1e-3, &c);
	assert_int_equal(c.outcome, OUTCOME_BLOCKED);
	assert_string_equal(c.detail, "no memory on the device");
}

static void
nothing_compared_is_not_a_pass(void **state)
{
	const struct kernel *k = small_fixture();
	struct verify_check c;

	(void)state;
	small.cases[0].in.causal = true; /* no case that the row takes */
	verify_fixture(k, &small, write_right, 1e-3, &c);
	assert_int_equal(c.outcome, OUTCOME_FAIL);
	assert_int_equal(c.elements, 0);
}

static void
planted_errors_are_caught_with_every_kernel(void **state)
{
	struct verify_control c[VERIFY_CONTROLS];
	size_t i;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		verify_controls(&kernels[i], NULL, NULL, 1e-3, c);
		assert_string_equal(c[0].name, "flipped-code-bit");
		assert_string_equal(c[1].name, "nan-output");
		assert_string_equal(c[0].fixture, kernels[i].file);
		if (!c[0].caught || !c[1].caught)
			fail_msg("%s: %s; %s", kernels[i].name, c[0].detail, c[1].detail);
	}
}

/* A backend that knows the answers and looks at nothing. */
static int
recite(const struct ref_case *c, float *out, struct err *e)
{
	struct fixture *f = NULL;

	(void)c;
	if (fixture_load(kernel_find("turbo3"), NULL, &f, NULL, e))
		return -1;
	memcpy(out, f->cases[0].expected, f->cases[0].expected_count * sizeof *out);
	fixture_free(f);
	return 0;
}

/* One that hides what is not a number. */
static int
hide_nan(const struct ref_case *c, float *out, struct err *e)
{
	uint32_t i;

	if (ref_turbo3_score(c, out, e))
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
		ref_run run;
		bool bit, nan;
	} rows[] = {{recite, false, false}, {hide_nan, true, false}};
	struct verify_options o = {.only = {kernel_find("turbo3")}, .only_count = 1};
	struct verify_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		o.run = rows[i].run;
		verify_run(&o, &r);
		assert_int_equal(r.passed, 1); /* the check itself saw nothing wrong */
		assert_int_equal(r.controls[0].caught, rows[i].bit);
		assert_int_equal(r.controls[1].caught, rows[i].nan);
		assert_int_equal(r.outcome, OUTCOME_FAIL);
		assert_int_equal(verify_exit(&r), 1);
	}
}

static void
tolerance_that_hides_everything_fails_the_run(void **state)
{
	struct verify_options o = {.tolerance = 1000};
	struct verify_report r;

	(void)state;
	verify_run(&o, &r);
	assert_int_equal(r.passed, KERNEL_COUNT);
	assert_false(r.controls[0].caught);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	o.tolerance = 1e-9;
	verify_run(&o, &r);
	assert_int_equal(r.failed, KERNEL_COUNT);
	assert_int_equal(verify_exit(&r), 1);
}

static void
folder_without_fixtures_is_blocked(void **state)
{
	struct verify_options o = {.dir = "fixtures/nowhere"};
	struct verify_report r;

	(void)state;
	verify_run(&o, &r);
	assert_int_equal(r.blocked, KERNEL_COUNT);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(verify_exit(&r), 2);
	assert_null(r.controls[0].fixture);
	assert_false(r.controls[0].caught);
}

/* The program, with what it wrote on stdout (cut at the size). */
static int
program(char *out, size_t size, const char *const *args)
{
	char *argv[8] = {strdup("cpu-verify")};
	FILE *f = tmpfile();
	int argc = 1, keep1 = dup(1), keep2 = dup(2), null = open("/dev/null", O_WRONLY), rc;
	size_t n;

	assert_true(f != NULL && keep1 >= 0 && keep2 >= 0 && null >= 0);
	for (; *args != NULL; args++)
		argv[argc++] = strdup(*args);
	fflush(stdout);
	assert_true(dup2(fileno(f), 1) == 1 && dup2(null, 2) == 2);
	rc = cpu_verify_main(argc, argv);
	fflush(stdout);
	assert_true(dup2(keep1, 1) == 1 && dup2(keep2, 2) == 2);
	rewind(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	fclose(f);
	close(keep1), close(keep2), close(null);
	while (argc > 0)
		free(argv[--argc]);
	return rc;
}

static char output[65536];

static void
bad_usage_is_exit_2(void **state)
{
	static const char *const rows[][3] = {
		{"--only", "turbo5"}, {"--only", ""}, {"--only", "qjl,qjl"}, {"--tolerance", "0"},
		{"--tolerance", "-1"}, {"--tolerance", "nan"}, {"--tolerance", "1e999"},
		{"--tolerance", "1e-3x"}, {"--tolerance", ""}, {"--fixtures"}, {"--nonsense"},
		{"turbo3"}, {"--fixtures", "fixtures/nowhere"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		if (program(output, sizeof output, rows[i]) != 2)
			fail_msg("%s %s: not exit 2", rows[i][0], rows[i][1] ? rows[i][1] : "");
}

static void
help_names_every_option(void **state)
{
	(void)state;
	assert_int_equal(program(output, sizeof output, (const char *[]){"--help", NULL}), 0);
	assert_non_null(strstr(output, "--json"));
	assert_non_null(strstr(output, "--fixtures"));
	assert_non_null(strstr(output, "--only"));
	assert_non_null(strstr(output, "--tolerance"));
	assert_true(str_starts(output, "usage: cpu-verify [options]\n"));
}

static cJSON *
program_json(int wanted_exit, const char *const *args)
{
	cJSON *o = NULL;
	struct err e = {0};

	assert_int_equal(program(output, sizeof output, args), wanted_exit);
	if (json_parse(output, strlen(output), sizeof output, &o, &e))
		fail_msg("%s", e.msg);
	return o;
}

static void
json_has_the_agreed_fields(void **state)
{
	static const char *const top[] = {"schemaVersion", "tool", "backend", "tolerance",
		"checks", "controls", "passed", "failed", "blocked", "outcome", NULL};
	static const char *const check[] = {"name", "kernel", "fixture", "sha256", "elements",
		"maxAbsDiff", "maxRelDiff", "nmse", "nonFinite", "guardIntact", "tolerance",
		"outcome", "detail", NULL};
	static const char *const control[] = {"name", "fixture", "caught", "detail", NULL};
	cJSON *o = program_json(0, (const char *[]){"--json", "--only", "qjl,polar_qjl", NULL});
	const cJSON *c;
	char digest[DIGEST_HEX];
	struct err e = {0};

	(void)state;
	assert_int_equal(json_known(o, top, &e), 0);
	assert_int_equal(json_int(o, "schemaVersion", 0), 1);
	assert_string_equal(json_str(o, "tool"), "cpu-verify");
	assert_string_equal(json_str(o, "backend"), "cpu-ref");
	assert_string_equal(json_str(o, "outcome"), "pass");
	assert_int_equal(json_int(o, "passed", 0), 2);
	assert_int_equal(json_int(o, "failed", 9), 0);
	assert_int_equal(cJSON_GetArraySize(json_get(o, "checks")), 2);
	c = cJSON_GetArrayItem(json_get(o, "checks"), 1);
	assert_int_equal(json_known(c, check, &e), 0);
	assert_string_equal(json_str(c, "name"), "polar_qjl");
	assert_string_equal(json_str(c, "kernel"), "polar");
	assert_string_equal(json_str(c, "fixture"), "polar_qjl.json");
	assert_int_equal(digest_file("fixtures/kernels/polar_qjl.json", digest, NULL, &e), 0);
	assert_string_equal(json_str(c, "sha256"), digest);
	assert_true(json_num(c, "maxAbsDiff", 1) < 1e-4);
	assert_true(json_num(c, "tolerance", 0) == 1e-3);
	assert_true(json_bool(c, "guardIntact", false));
	assert_int_equal(cJSON_GetArraySize(json_get(o, "controls")), 2);
	cJSON_ArrayForEach(c, json_get(o, "controls"))
	{
		assert_int_equal(json_known(c, control, &e), 0);
		assert_true(json_bool(c, "caught", false));
		assert_string_equal(json_str(c, "fixture"), "qjl.json");
	}
	cJSON_Delete(o);
}

/* A folder with one fixture in which the first `old` became `new`. */
static void
folder_with(char *dir, const char *file, const char *old, const char *new)
{
	char path[128];
	const char *text, *at;
	struct err e = {0};
	struct buf b;
	size_t len;

	assert_non_null(mkdtemp(dir));
	assert_non_null(text = fixture_builtin(file, &len));
	assert_non_null(at = strstr(text, old));
	buf_init(&b, FIXTURE_MAX_BYTES);
	assert_int_equal(buf_addf(&b, &e, "%.*s%s%s", (int)(at - text), text, new,
		at + strlen(old)), 0);
	assert_int_equal(str_fmt(path, sizeof path, &e, "%s/%s", dir, file), 0);
	assert_int_equal(plat_write_file(path, b.data, b.len, 0644, &e), 0);
	buf_fini(&b);
}

static void
changed_fixture_is_exit_1(void **state)
{
	char dir[] = "/tmp/verify-kernels-XXXXXX";
	cJSON *o;
	struct err e = {0};

	(void)state;
	folder_with(dir, "turbo3.json", ",-0.5589415]", ",-0.5609415]");
	o = program_json(1, (const char *[]){"--json", "--fixtures", dir, "--only", "turbo3",
		NULL});
	assert_string_equal(json_str(o, "outcome"), "fail");
	assert_int_equal(json_int(o, "failed", 0), 1);
	cJSON_Delete(o);
	assert_int_equal(plat_remove_tree(dir, &e), 0);
}

static void
nan_norm_in_a_fixture_is_written_as_null(void **state)
{
	char dir[] = "/tmp/verify-kernels-XXXXXX";
	const cJSON *c;
	cJSON *o;
	struct err e = {0};

	(void)state;
	/* 0x7e88 in fp16. */
	folder_with(dir, "turbo3.json", "\"k_blocks\": [107,73,", "\"k_blocks\": [136,126,");
	o = program_json(1, (const char *[]){"--json", "--fixtures", dir, "--only", "turbo3",
		NULL});
	c = cJSON_GetArrayItem(json_get(o, "checks"), 0);
	assert_string_equal(json_str(c, "outcome"), "fail");
	assert_int_equal(json_int(c, "nonFinite", 0), 1);
	assert_true(cJSON_IsNull(json_get(c, "maxAbsDiff")));
	assert_true(cJSON_IsNull(json_get(c, "nmse")));
	cJSON_Delete(o);
	assert_int_equal(plat_remove_tree(dir, &e), 0);
}

static void
old_turbo4_file_is_exit_2_and_named(void **state)
{
	char dir[] = "/tmp/verify-kernels-XXXXXX";
	const cJSON *c;
	cJSON *o;
	struct err e = {0};

	(void)state;
	folder_with(dir, "turbo4.json", "\"block_bytes\": 18", "\"block_bytes\": 66");
	o = program_json(2, (const char *[]){"--json", "--fixtures", dir, "--only", "turbo4",
		NULL});
	c = cJSON_GetArrayItem(json_get(o, "checks"), 0);
	assert_string_equal(json_str(o, "outcome"), "blocked");
	assert_string_equal(json_str(c, "outcome"), "blocked");
	assert_non_null(strstr(json_str(c, "detail"), "legacy66"));
	assert_true(json_str(c, "sha256") != NULL);
	assert_true(cJSON_IsNull(json_get(c, "maxAbsDiff")));
	cJSON_Delete(o);
	assert_int_equal(plat_remove_tree(dir, &e), 0);
}

static void
table_for_people_ends_with_the_verdict(void **state)
{
	(void)state;
	assert_int_equal(program(output, sizeof output, (const char *[]){NULL}), 0);
	assert_non_null(strstr(output, "\n12 passed, 0 failed, 0 blocked: pass\n"));
	assert_non_null(strstr(output, "control flipped-code-bit     caught"));
	assert_non_null(strstr(output, "fused_attn_qjl_polar_causal"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kernel_passes_far_below_the_tolerance),
		cmocka_unit_test(preht_kernel_also_answers_the_polar_fixtures),
		cmocka_unit_test(measures_are_what_they_say),
		cmocka_unit_test(difference_of_just_the_tolerance_fails),
		cmocka_unit_test(write_outside_the_output_fails),
		cmocka_unit_test(output_that_is_not_finite_or_not_written_fails),
		cmocka_unit_test(backend_that_can_not_run_is_blocked),
		cmocka_unit_test(nothing_compared_is_not_a_pass),
		cmocka_unit_test(planted_errors_are_caught_with_every_kernel),
		cmocka_unit_test(missed_control_fails_the_run),
		cmocka_unit_test(tolerance_that_hides_everything_fails_the_run),
		cmocka_unit_test(folder_without_fixtures_is_blocked),
		cmocka_unit_test(bad_usage_is_exit_2),
		cmocka_unit_test(help_names_every_option),
		cmocka_unit_test(json_has_the_agreed_fields),
		cmocka_unit_test(changed_fixture_is_exit_1),
		cmocka_unit_test(nan_norm_in_a_fixture_is_written_as_null),
		cmocka_unit_test(old_turbo4_file_is_exit_2_and_named),
		cmocka_unit_test(table_for_people_ends_with_the_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
