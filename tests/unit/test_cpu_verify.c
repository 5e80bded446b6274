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
#include "tests/unit/fake_backend.h"

/* What the program runs on: the processor, or the device of the tests. */
static const struct kernel_backend *backend = &backend_cpu;

static int
on_cpu(void **state)
{
	(void)state;
	backend = &backend_cpu;
	return 0;
}

static int
on_fake(void **state)
{
	(void)state;
	fake_reset();
	backend = &backend_fake;
	return 0;
}

static char output[262144], errors[8192];

static void
read_back(FILE *f, char *out, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	fclose(f);
}

/* The program; what it wrote is in output and errors. */
static int
program(const char *const *args)
{
	char *argv[16] = {strdup("x-verify")};
	FILE *f = tmpfile(), *g = tmpfile();
	int argc = 1, keep1 = dup(1), keep2 = dup(2), rc;

	assert_true(f != NULL && g != NULL && keep1 >= 0 && keep2 >= 0);
	for (; *args != NULL; args++)
		argv[argc++] = strdup(*args);
	fflush(stdout);
	assert_true(dup2(fileno(f), 1) == 1 && dup2(fileno(g), 2) == 2);
	rc = verify_main(backend, argc, argv);
	fflush(stdout);
	assert_true(dup2(keep1, 1) == 1 && dup2(keep2, 2) == 2);
	read_back(f, output, sizeof output);
	read_back(g, errors, sizeof errors);
	close(keep1), close(keep2);
	while (argc > 0)
		free(argv[--argc]);
	return rc;
}

#define RUN(...) program((const char *[]){__VA_ARGS__, NULL})

static void
bad_usage_is_exit_2(void **state)
{
	static const char *const rows[][3] = {
		{"--only", "turbo5"}, {"--only", ""}, {"--only", "qjl,qjl"}, {"--tolerance", "0"},
		{"--tolerance", "-1"}, {"--tolerance", "nan"}, {"--tolerance", "1e999"},
		{"--tolerance", "1e-3x"}, {"--tolerance", ""}, {"--fixtures"}, {"--nonsense"},
		{"turbo3"}, {"--fixtures", "fixtures/nowhere"}, {"--only", "turbo3[no]"},
		{"--fixture", "fixtures/nowhere.json"}, {"--fixture", "fixtures"},
		{"--fixture", "Makefile"}, {"--gqa", "8"}, {"--keys", "8"}, {"--seed", "-1"},
		{"--properties", "some"}, {"--exhaustive", "0"}, {"--exhaustive=many"},
		{"--device", "99"}, {"--device", "nonsense"}, {"--device", ""},
		{"--threads", "1000"}, {"-x", "-1"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		if (program(rows[i]) != 2)
			fail_msg("%s %s: not exit 2", rows[i][0], rows[i][1] ? rows[i][1] : "");
}

static void
help_names_every_option(void **state)
{
	static const char *const all[] = {"--json", "--fixtures", "--fixture", "--only",
		"--tolerance", "--device", "--list", "--kernels", "--software", "--properties",
		"--negative-control", "--exhaustive", "--bench", "--gqa", "--keys", "--seed",
		"--threads", "cpu-verify --bench --only turbo3 --gqa 8"};
	size_t i;

	(void)state;
	assert_int_equal(RUN("--help"), 0);
	for (i = 0; i < str_count(all); i++)
		if (strstr(output, all[i]) == NULL)
			fail_msg("--help lacks %s", all[i]);
	assert_true(str_starts(output, "usage: cpu-verify [options] [FILE...]\n"));
	assert_null(strstr(output, "PROGRAM"));
}

/* The index of the scalar truth, which is the last of the processor's. */
static const char *
scalar(void)
{
	static struct backend_device list[BACKEND_DEVICES];
	static char index[16];
	struct err e = {0};
	size_t n = 0;

	assert_int_equal(backend_cpu.list(list, BACKEND_DEVICES, &n, &e), 0);
	assert_true(n > 0);
	snprintf(index, sizeof index, "%u", list[n - 1].index);
	return index;
}

static cJSON *
program_json(int wanted_exit, const char *const *args)
{
	cJSON *o = NULL;
	struct err e = {0};

	assert_int_equal(program(args), wanted_exit);
	if (json_parse(output, strlen(output), sizeof output, &o, &e))
		fail_msg("%s", e.msg);
	return o;
}

static void
json_has_the_agreed_fields(void **state)
{
	static const char *const top[] = {"schemaVersion", "tool", "backend", "device",
		"code", "tolerance", "checks", "controls", "passed", "failed", "blocked", "outcome", NULL};
	static const char *const check[] = {"name", "kernel", "variant", "fixture", "sha256", "elements",
		"maxAbsDiff", "maxRelDiff", "nmse", "nonFinite", "guardIntact", "tolerance",
		"outcome", "reason", "detail", NULL};
	static const char *const device[] = {"index", "name", "uuid", "arch", "driver", "api",
		"pci", "memoryBytes", "software", "emulated", "simulated", "note", NULL};
	static const char *const code[] = {"name", "sha256", "how", NULL};
	static const char *const control[] = {"name", "kernel", "fixture", "caught", "detail", NULL};
	cJSON *o = program_json(0, (const char *[]){"--json", "--only", "qjl,polar_qjl",
		"--device", scalar(), NULL});
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
	assert_int_equal(json_known(json_get(o, "device"), device, &e), 0);
	assert_string_equal(json_path_str(o, "device.arch"), "scalar");
	c = cJSON_GetArrayItem(json_get(o, "code"), 0);
	assert_int_equal(json_known(c, code, &e), 0);
	assert_true(str_is_hex(json_str(c, "sha256"), 64));
	c = cJSON_GetArrayItem(json_get(o, "checks"), 1);
	assert_string_equal(json_str(c, "variant"), "scalar");
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
asked_names_are_the_checks_one_each(void **state)
{
	cJSON *o = program_json(0, (const char *[]){"--json", "--tolerance", "0.001", "--only",
		"turbo3,turbo4,turbo3_tcq,qjl,polar,polar_qjl,polar_preht,polar_preht_qjl,"
		"fused_attn_qjl_tbq,fused_attn_qjl_polar,fused_attn_qjl_tbq_causal,"
		"fused_attn_qjl_polar_causal", NULL});
	const cJSON *c = json_get(o, "checks");
	int i;

	(void)state;
	assert_int_equal(cJSON_GetArraySize(c), KERNEL_COUNT);
	for (i = 0; i < KERNEL_COUNT; i++)
		assert_string_equal(json_str(cJSON_GetArrayItem(c, i), "name"), kernels[i].name);
	assert_null(json_get(o, "properties"));
	cJSON_Delete(o);
}

static void
table_for_people_ends_with_the_verdict(void **state)
{
	(void)state;
	assert_int_equal(RUN("--device", scalar()), 0);
	assert_non_null(strstr(output, "\n14 passed, 0 failed, 0 blocked: pass\n"));
	assert_non_null(strstr(output, "control flipped-code-bit     turbo3: caught"));
	assert_non_null(strstr(output, "fused_attn_qjl_polar_causal"));
	assert_non_null(strstr(output, "properties, seed 1, quick"));
	assert_null(strchr(output, '\033'));
}

static void
table_of_kernels_has_them_all(void **state)
{
	cJSON *o;
	size_t i;

	(void)state;
	assert_int_equal(RUN("--kernels"), 0);
	for (i = 0; i < KERNEL_COUNT; i++)
		assert_non_null(strstr(output, kernels[i].name));
	o = program_json(0, (const char *[]){"--kernels", "--json", NULL});
	assert_int_equal(cJSON_GetArraySize(json_get(o, "kernels")), KERNEL_COUNT);
	cJSON_Delete(o);
}

static void
list_shows_the_devices(void **state)
{
	cJSON *o;
	const cJSON *d;

	(void)state;
	snprintf(fake.devices[1].name, sizeof fake.devices[1].name, "Evil \033[31m\xff name");
	snprintf(fake.devices[1].note, sizeof fake.devices[1].note, "has no int8");
	fake.devices[1].index = 1;
	fake.count = 2;
	assert_int_equal(RUN("--list"), 0);
	assert_non_null(strstr(output, "0  Fake One (fake_1)"));
	assert_non_null(strstr(output, "01234567-89ab-cdef-0123-456789abcdef"));
	assert_non_null(strstr(output, "can not be used: has no int8"));
	assert_null(strchr(output, '\033'));
	o = program_json(0, (const char *[]){"--list", "--json", NULL});
	assert_int_equal(cJSON_GetArraySize(json_get(o, "devices")), 2);
	d = cJSON_GetArrayItem(json_get(o, "devices"), 0);
	assert_string_equal(json_str(d, "driver"), "fake 1.0");
	assert_string_equal(json_str(d, "pci"), "0000:17:00.0");
	assert_true(cJSON_IsNull(json_get(d, "memoryBytes")));
	cJSON_Delete(o);
}

static void
no_device_is_exit_3_with_a_hint(void **state)
{
	static const char *const rows[][4] = {{NULL}, {"--list"}, {"--json"}, {"--device", "0"},
		{"--device", "all"}, {"--bench"}, {"--negative-control"}, {"--list", "--json"}};
	size_t i;

	(void)state;
	fake.count = 0;
	for (i = 0; i < str_count(rows); i++) {
		if (program(rows[i]) != 3)
			fail_msg("%s: not exit 3", rows[i][0] ? rows[i][0] : "no option");
		assert_non_null(strstr(errors, "there is no device here"));
		assert_non_null(strstr(errors, "hint: plug one in"));
	}
	assert_int_equal(RUN("--device", "0"), 3);
	assert_non_null(strstr(errors, "libfake.so.1 is not here"));
	assert_string_equal(output, "");
}

static void
software_device_needs_to_be_allowed(void **state)
{
	(void)state;
	fake.devices[0].software = true;
	assert_int_equal(RUN("--only", "qjl"), 3);
	assert_non_null(strstr(errors, "--software"));
	assert_int_equal(RUN("--only", "qjl", "--device", "0"), 3);
	assert_int_equal(RUN("--only", "qjl", "--device", "all"), 3);
	assert_int_equal(RUN("--only", "qjl", "--software"), 0);
	assert_int_equal(RUN("--only", "qjl", "--software", "--device", "all"), 0);
	assert_non_null(strstr(output, ", software"));
}

static void
all_devices_are_checked_one_after_the_other(void **state)
{
	cJSON *o;
	const cJSON *r;

	(void)state;
	fake.devices[1] = fake.devices[0];
	fake.devices[1].index = 1;
	fake.devices[2] = fake.devices[1];
	fake.devices[2].index = 2;
	snprintf(fake.devices[2].note, sizeof fake.devices[2].note, "broken");
	fake.count = 3;
	o = program_json(0, (const char *[]){"--json", "--device", "all", "--only", "qjl",
		NULL});
	r = json_get(o, "reports");
	assert_int_equal(cJSON_GetArraySize(r), 2);
	assert_int_equal(json_int(json_get(cJSON_GetArrayItem(r, 1), "device"), "index", 9), 1);
	assert_string_equal(json_str(o, "outcome"), "pass");
	cJSON_Delete(o);
	assert_int_equal(fake.open, 0);
	/* One UUID for two: said, not guessed. */
	assert_int_equal(RUN("--device", "01234567"), 2);
	assert_non_null(strstr(errors, "--device 0 or --device"));
	fake.run = fake_gives_nan;
	assert_int_equal(RUN("--device", "all", "--only", "qjl"), 1);
}

static void
device_that_can_not_be_opened_is_exit_6_with_the_call(void **state)
{
	(void)state;
	snprintf(fake.devices[0].arch, sizeof fake.devices[0].arch, "locked");
	assert_int_equal(RUN("--only", "qjl"), 6);
	assert_non_null(strstr(errors, "fakeOpen: FAKE_ERROR_LOCKED"));
	assert_string_equal(output, "");
}

static void
lost_device_is_exit_6(void **state)
{
	(void)state;
	fake.lost_after = 2;
	assert_int_equal(RUN("--properties", "quick"), 6);
	assert_non_null(strstr(output, "fakeLaunch: FAKE_ERROR_LOST"));
	assert_int_equal(fake.open, 0);
	fake.runs = 0, fake.lost_after = 40;
	assert_int_equal(RUN("--exhaustive", "1000", "--only", "qjl"), 0);
	fake.runs = 0, fake.lost_after = 4;
	assert_int_equal(RUN("--exhaustive", "1000", "--only", "qjl"), 6);
	fake.runs = 0, fake.lost_after = 5;
	assert_int_equal(RUN("--bench", "--keys", "64", "--only", "qjl"), 6);
	assert_int_equal(fake.open, 0);
}

static void
kernel_that_is_not_there_is_exit_3(void **state)
{
	(void)state;
	fake.lacks = 1u << 3;
	assert_int_equal(RUN("--only", "qjl"), 3);
	assert_non_null(strstr(output, "blocked"));
	assert_int_equal(RUN("--only", "turbo3"), 0);
	assert_int_equal(RUN("--only", "qjl", "--exhaustive", "100"), 3);
	assert_int_equal(RUN("--only", "qjl", "--bench", "--keys", "64"), 3);
	assert_int_equal(RUN("--only", "qjl", "--properties", "quick"), 3);
}

/* ---- files that were given ---- */

static void
given_files_are_checked_by_what_they_hold(void **state)
{
	cJSON *o = program_json(0, (const char *[]){"--json", "--fixture",
		"fixtures/kernels/qjl.json", "fixtures/kernels/polar_qjl.json",
		"fixtures/kernels/polar_preht.json", "fixtures/kernels/fused_attn_qjl_tbq.json",
		NULL});
	static const char *const names[] = {"qjl", "polar_qjl", "polar_preht_qjl[polar_qjl]",
		"polar_preht", "polar_preht_qjl", "fused_attn_qjl_tbq"};
	const cJSON *c = json_get(o, "checks");
	size_t i;

	(void)state;
	assert_int_equal(cJSON_GetArraySize(c), str_count(names));
	for (i = 0; i < str_count(names); i++)
		assert_string_equal(json_str(cJSON_GetArrayItem(c, (int)i), "name"), names[i]);
	assert_string_equal(json_str(cJSON_GetArrayItem(c, 0), "fixture"),
		"fixtures/kernels/qjl.json");
	c = cJSON_GetArrayItem(json_get(o, "controls"), 0);
	assert_string_equal(json_str(c, "fixture"), "fixtures/kernels/qjl.json");
	cJSON_Delete(o);
}

static void
wrong_file_is_exit_2_and_says_what_to_try(void **state)
{
	static const struct {
		const char *file, *old, *new, *said;
	} rows[] = {
		{"turbo3.json", "\"n_kv\": 8,", "", "n_kv: found nothing, wanted a number"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 7", "k_blocks: found 448 numbers, wanted"},
		{"turbo3.json", "\"turbo3\"", "\"turbo5\"", "found \"turbo5\", wanted one of"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 8, \"n_kv\": 8", "duplicate"},
		{"turbo3.json", "\"q\": [", "\"q\": [1e999, ", "not finite"},
		{"turbo4.json", "\"block_bytes\": 18", "\"block_bytes\": 66", "legacy66"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 8, \"extra\": 1", "extra"},
		{"turbo3.json", "{", "", ""},
		{"qjl.json", "\"n_heads\": 1", "\"n_heads\": 0", "n_heads: found 0"},
	};
	char dir[32], path[64];
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(dir, sizeof dir, "/tmp/verify-kernels-XXXXXX");
		folder_with(dir, rows[i].file, rows[i].old, rows[i].new);
		snprintf(path, sizeof path, "%s/%s", dir, rows[i].file);
		if (RUN("--fixture", path) != 2 || strstr(output, rows[i].said) == NULL)
			fail_msg("row %zu: not exit 2 with \"%s\": %s", i, rows[i].said, output);
		if (strstr(output, "make-fixtures") == NULL && strstr(output, "header") == NULL)
			fail_msg("row %zu: no hint: %s", i, output);
		assert_int_equal(plat_remove_tree(dir, &e), 0);
	}
}

static void
file_of_mixed_cases_is_shared_out(void **state)
{
	char dir[] = "/tmp/verify-kernels-XXXXXX", path[64];
	const cJSON *c;
	cJSON *o;
	struct err e = {0};

	(void)state;
	/* The second case of the causal file becomes one without a mask: its numbers are
	 * wrong then, those of the first are not. */
	folder_with(dir, "fused_attn_qjl_tbq_causal.json", "\"causal\": 1, \"q_pos_base\": 0",
		"\"causal\": 0, \"q_pos_base\": 0");
	snprintf(path, sizeof path, "%s/fused_attn_qjl_tbq_causal.json", dir);
	o = program_json(1, (const char *[]){"--json", "-f", path, NULL});
	c = json_get(o, "checks");
	assert_int_equal(cJSON_GetArraySize(c), 2);
	assert_string_equal(json_str(cJSON_GetArrayItem(c, 0), "name"), "fused_attn_qjl_tbq");
	assert_string_equal(json_str(cJSON_GetArrayItem(c, 0), "outcome"), "fail");
	assert_string_equal(json_str(cJSON_GetArrayItem(c, 1), "name"),
		"fused_attn_qjl_tbq_causal");
	assert_string_equal(json_str(cJSON_GetArrayItem(c, 1), "outcome"), "pass");
	cJSON_Delete(o);
	assert_int_equal(plat_remove_tree(dir, &e), 0);
}

/* ---- the other parts ---- */

static void
planted_errors_are_shown(void **state)
{
	cJSON *o;

	(void)state;
	assert_int_equal(RUN("--negative-control", "--only", "turbo3,qjl"), 0);
	assert_non_null(strstr(output, "control nan-output           qjl: caught"));
	assert_non_null(strstr(output, "4 of 4 planted errors were caught: pass"));
	o = program_json(1, (const char *[]){"--negative-control", "--json", "--tolerance", "1e6",
		NULL});
	assert_string_equal(json_str(o, "outcome"), "fail");
	cJSON_Delete(o);
}

static void
parts_of_a_run_stand_in_its_json(void **state)
{
	cJSON *o = program_json(0, (const char *[]){"--json", "--only", "turbo3", "-p", "quick",
		"--seed", "18446744073709551615", "--exhaustive", "5000", "--bench", "--keys", "64",
		"--gqa", "2", NULL});
	const cJSON *r;

	(void)state;
	assert_string_equal(json_path_str(o, "properties.seed"), "18446744073709551615");
	r = cJSON_GetArrayItem(json_get(json_get(o, "properties"), "rows"), 0);
	assert_string_equal(json_str(r, "outcome"), "pass");
	r = cJSON_GetArrayItem(json_get(json_get(o, "exhaustive"), "rows"), 0);
	assert_true(json_int(r, "compared", 0) >= 5000);
	assert_int_equal(json_int(r, "bad", 9), 0);
	assert_true(json_num(r, "errorRateBound95", 0) > 0);
	r = json_get(json_get(o, "bench"), "rows");
	assert_int_equal(cJSON_GetArraySize(r), 1);
	r = cJSON_GetArrayItem(r, 0);
	assert_int_equal(json_int(r, "gqa", 0), 2);
	assert_true(json_num(r, "gbPerSecond", 0) > 0);
	cJSON_Delete(o);
}

static void
number_after_exhaustive_is_optional(void **state)
{
	(void)state;
	fake.lacks = ~(size_t)0; /* nothing is run */
	assert_int_equal(RUN("--exhaustive", "--json"), 3);
	assert_non_null(strstr(output, "300000000"));
	assert_int_equal(RUN("--json", "-x", "77"), 3);
	assert_non_null(strstr(output, "\"wanted\":\t77"));
	assert_int_equal(RUN("--json", "-x"), 3);
	assert_non_null(strstr(output, "300000000"));
}

static void
seed_0_draws_one_and_prints_it(void **state)
{
	char first[64];
	const char *at;

	(void)state;
	assert_int_equal(RUN("-p", "quick", "--only", "qjl", "--seed", "0"), 0);
	assert_non_null(at = strstr(output, "properties, seed "));
	assert_null(strstr(output, "properties, seed 0,"));
	snprintf(first, sizeof first, "%.40s", at);
	assert_int_equal(RUN("-p", "quick", "--only", "qjl", "--seed", "0"), 0);
	assert_null(strstr(output, first));
}

static void
verdict_that_can_not_be_written_is_exit_6(void **state)
{
	int keep = dup(1), full = open("/dev/full", O_WRONLY), rc;
	char *argv[] = {(char[]){"x"}, (char[]){"--only"}, (char[]){"qjl"}, NULL};

	(void)state;
	if (full < 0)
		skip();
	fflush(stdout);
	assert_int_equal(dup2(full, 1), 1);
	rc = verify_main(backend, 3, argv);
	fflush(stdout);
	clearerr(stdout);
	assert_int_equal(dup2(keep, 1), 1);
	close(keep), close(full);
	assert_int_equal(rc, 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bad_usage_is_exit_2, on_cpu),
		cmocka_unit_test_setup(help_names_every_option, on_cpu),
		cmocka_unit_test_setup(json_has_the_agreed_fields, on_cpu),
		cmocka_unit_test_setup(changed_fixture_is_exit_1, on_cpu),
		cmocka_unit_test_setup(nan_norm_in_a_fixture_is_written_as_null, on_cpu),
		cmocka_unit_test_setup(old_turbo4_file_is_exit_2_and_named, on_cpu),
		cmocka_unit_test_setup(asked_names_are_the_checks_one_each, on_cpu),
		cmocka_unit_test_setup(table_for_people_ends_with_the_verdict, on_cpu),
		cmocka_unit_test_setup(table_of_kernels_has_them_all, on_cpu),
		cmocka_unit_test_setup(list_shows_the_devices, on_fake),
		cmocka_unit_test_setup(no_device_is_exit_3_with_a_hint, on_fake),
		cmocka_unit_test_setup(software_device_needs_to_be_allowed, on_fake),
		cmocka_unit_test_setup(all_devices_are_checked_one_after_the_other, on_fake),
		cmocka_unit_test_setup(device_that_can_not_be_opened_is_exit_6_with_the_call, on_fake),
		cmocka_unit_test_setup(lost_device_is_exit_6, on_fake),
		cmocka_unit_test_setup(kernel_that_is_not_there_is_exit_3, on_fake),
		cmocka_unit_test_setup(given_files_are_checked_by_what_they_hold, on_fake),
		cmocka_unit_test_setup(wrong_file_is_exit_2_and_says_what_to_try, on_fake),
		cmocka_unit_test_setup(file_of_mixed_cases_is_shared_out, on_fake),
		cmocka_unit_test_setup(planted_errors_are_shown, on_fake),
		cmocka_unit_test_setup(parts_of_a_run_stand_in_its_json, on_cpu),
		cmocka_unit_test_setup(number_after_exhaustive_is_optional, on_fake),
		cmocka_unit_test_setup(seed_0_draws_one_and_prints_it, on_fake),
		cmocka_unit_test_setup(verdict_that_can_not_be_written_is_exit_6, on_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
