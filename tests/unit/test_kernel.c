#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/fixture.h"
#include "kernels/generate.h"
#include "kernels/kernel.h"

static const char *
shared(void)
{
	const char *dir = getenv("VERIFY_SHARED");

	return dir != NULL && dir[0] != '\0' ? dir : "../shared";
}

static void
every_row_can_be_found_and_is_whole(void **state)
{
	const struct kernel *k;
	size_t i, len;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		assert_ptr_equal(kernel_find(k->name), k);
		assert_non_null(kernel_of_field(k->kernel));
		assert_non_null(k->quantise_k);
		assert_non_null(k->run);
		assert_non_null(k->truth);
		assert_true(k->code_at + k->code_bytes <= k->k_bytes);
		assert_true(k->norm_at + 2 <= k->k_bytes);
		assert_true(k->norm_at + 2 <= k->code_at ||
			    k->norm_at >= k->code_at + k->code_bytes);
		assert_int_equal(k->v_bytes != 0, k->quantise_v != NULL);
		assert_int_equal(k->q_dim == REF_PROJ, k->pi_seed != 0);
		assert_true(k->tolerance == 1e-3);
		assert_non_null(fixture_builtin(k->file, &len));
	}
	assert_null(kernel_find("turbo5"));
	assert_null(kernel_find(NULL));
	assert_null(fixture_builtin("turbo5.json", &len));
}

static void
rows_have_the_documented_sizes(void **state)
{
	static const struct {
		const char *name;
		uint32_t k, v; /* bytes of a key and of a value */
	} rows[] = {
		{"turbo3", 56, 0}, {"turbo4", 72, 0}, {"turbo3_tcq", 52, 0}, {"qjl", 34, 0},
		{"polar", 82, 0}, {"polar_qjl", 82, 0}, {"polar_preht", 82, 0},
		{"polar_preht_qjl", 82, 0}, {"fused_attn_qjl_tbq", 34, 56},
		{"fused_attn_qjl_polar", 34, 82}, {"fused_attn_qjl_tbq_causal", 34, 56},
		{"fused_attn_qjl_polar_causal", 34, 82},
	};
	const struct kernel *k;
	size_t i;

	(void)state;
	assert_int_equal(str_count(rows), KERNEL_COUNT);
	for (i = 0; i < str_count(rows); i++) {
		assert_non_null(k = kernel_find(rows[i].name));
		assert_int_equal(k->k_bytes * k->k_blocks, rows[i].k);
		assert_int_equal(k->v_bytes * k->v_blocks, rows[i].v);
	}
}

/* Where a generated file is compared, and how often that was done. */
struct comparison {
	const char *dir, *instead; /* instead: where a file is that dir does not have */
	size_t same;
};

static int
compare_file(void *arg, const char *name, const char *text, size_t len, struct err *e)
{
	struct comparison *c = arg;
	char path[4096], *want = NULL;
	size_t want_len = 0;

	if (str_fmt(path, sizeof path, e, "%s/%s", c->dir, name))
		return -1;
	if (c->instead != NULL && !plat_exists(path) &&
	    str_fmt(path, sizeof path, e, "%s/%s", c->instead, name))
		return -1;
	if (plat_read_file(path, FIXTURE_MAX_BYTES, &want, &want_len, e))
		return -1;
	if (want_len != len || memcmp(want, text, len) != 0)
		err_set(e, ERR_INTEGRITY, "%s differs", path);
	else
		c->same++;
	free(want);
	return e->code ? -1 : 0;
}

static void
generated(struct comparison *c)
{
	struct err e = {0};

	if (generate_all(compare_file, c, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(c->same, 11);
}

static void
generator_gives_the_committed_files(void **state)
{
	struct comparison c = {.dir = "fixtures/kernels"};

	(void)state;
	generated(&c);
}

static void
generator_gives_the_original_files(void **state)
{
	char dir[2048], again[2048];
	struct comparison c = {.dir = dir, .instead = again};
	struct err e = {0};

	(void)state;
	assert_int_equal(str_fmt(dir, sizeof dir, &e, "%s/fixtures-upstream", shared()), 0);
	assert_int_equal(str_fmt(again, sizeof again, &e, "%s/regenerated", dir), 0);
	if (!plat_is_dir(dir))
		skip();
	generated(&c);
}

static int
compare_builtin(void *arg, const char *name, const char *text, size_t len, struct err *e)
{
	size_t *same = arg, n;
	const char *built = fixture_builtin(name, &n);

	if (built == NULL || n != len || memcmp(built, text, len) != 0)
		return err_set(e, ERR_INTEGRITY, "built-in %s differs", name);
	++*same;
	return 0;
}

static void
built_in_files_are_what_the_generator_gives(void **state)
{
	struct err e = {0};
	size_t same = 0;

	(void)state;
	if (generate_all(compare_builtin, &same, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(same, 11);
}

static int
refuse(void *arg, const char *name, const char *text, size_t len, struct err *e)
{
	(void)text, (void)len;
	++*(int *)arg;
	return err_set(e, ERR_NOSPACE, "%s", name);
}

static void
generator_stops_when_a_file_can_not_be_written(void **state)
{
	struct err e = {0};
	int calls = 0;

	(void)state;
	assert_int_equal(generate_all(refuse, &calls, &e), -1);
	assert_int_equal(calls, 1);
	assert_int_equal(e.code, ERR_NOSPACE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_can_be_found_and_is_whole),
		cmocka_unit_test(rows_have_the_documented_sizes),
		cmocka_unit_test(generator_gives_the_committed_files),
		cmocka_unit_test(generator_gives_the_original_files),
		cmocka_unit_test(built_in_files_are_what_the_generator_gives),
		cmocka_unit_test(generator_stops_when_a_file_can_not_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
