#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/digest.h"
#include "common/plat.h"
#include "common/str.h"
#include "kernels/fixture.h"

/* A built-in file with the first `old` in it replaced. */
static char *
changed(const char *file, const char *old, const char *new, size_t *len)
{
	struct buf b;
	const char *text, *at;
	size_t n, at_off;

	assert_non_null(text = fixture_builtin(file, &n));
	buf_init(&b, 2 * FIXTURE_MAX_BYTES);
	/* The text is followed by a NUL. */
	assert_non_null(at = strstr(text, old));
	at_off = (size_t)(at - text);
	assert_int_equal(buf_add(&b, text, at_off, NULL), 0);
	assert_int_equal(buf_add(&b, new, strlen(new), NULL), 0);
	assert_int_equal(buf_add(&b, at + strlen(old), n - at_off - strlen(old), NULL), 0);
	*len = b.len;
	return buf_take(&b);
}

/* Every mistake is met by an error that says where it is. */
struct mistake {
	const char *file, *old, *new;
	enum err_code code;
	const char *says;
};

static void
refuses(const struct mistake *m)
{
	struct fixture *f = NULL;
	struct err e = {0};
	size_t len;
	char *text = changed(m->file, m->old, m->new, &len);
	int rc = fixture_parse(text, len, &f, &e);

	free(text);
	if (rc != -1)
		fail_msg("%s with %s was taken", m->file, m->new);
	assert_null(f);
	assert_int_equal(e.code, m->code);
	if (strstr(e.msg, m->says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.msg, m->says);
}

static void
refuse_all(const struct mistake *m, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		refuses(&m[i]);
}

static void
built_in_fixtures_are_read(void **state)
{
	struct fixture *f = NULL;
	struct err e = {0};
	char sha256[DIGEST_HEX];
	size_t i;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		assert_int_equal(fixture_load(&kernels[i], NULL, &f, sha256, &e), 0);
		assert_string_equal(f->sha256, sha256);
		fixture_free(f);
	}
}

static void
numbers_arrive_where_they_belong(void **state)
{
	struct fixture *f = NULL;
	struct err e = {0};
	const struct fixture_case *c;

	(void)state;
	assert_int_equal(fixture_load(kernel_find("turbo3"), NULL, &f, NULL, &e), 0);
	c = &f->cases[0];
	assert_int_equal(f->case_count, 1);
	assert_int_equal(c->in.n_kv, 8);
	assert_true(c->q[0] == -1.22754f);
	assert_int_equal(c->k[0], 107);
	assert_true(c->expected[7] == -0.5589415f);
	assert_ptr_equal(c->in.q, c->q);
	/* The first 16 digits of the original's digest. */
	assert_true(str_starts(f->sha256, "41da0add36ed15d7"));
	fixture_free(f);

	assert_int_equal(fixture_load(kernel_find("fused_attn_qjl_polar_causal"), NULL, &f,
		NULL, &e), 0);
	c = &f->cases[0];
	assert_int_equal(f->case_count, 2);
	assert_int_equal(c->in.n_heads, 4);
	assert_int_equal(c->in.n_kv_heads, 2);
	assert_int_equal(c->in.n_kv, 96);
	assert_true(c->in.causal);
	assert_int_equal(c->in.q_pos_base, 17);
	assert_true(c->in.use_qjl);
	assert_int_equal(c->v_bytes, 2 * 96 * 82);
	fixture_free(f);
}

static void
header_that_does_not_fit_is_named(void **state)
{
	static const struct mistake rows[] = {
		{"turbo3.json", "\"block_bytes\": 14", "\"block_bytes\": 18", ERR_PARSE,
			"block_bytes: found 18, wanted 14"},
		{"turbo3.json", "\"head_dim\": 128", "\"head_dim\": 64", ERR_PARSE,
			"head_dim: found 64, wanted 128"},
		{"turbo3.json", "\"blocks_per_kv\": 4", "\"blocks_per_kv\": 1", ERR_PARSE,
			"blocks_per_kv: found 1, wanted 4"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 0", ERR_PARSE, "n_kv: found 0"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 8.5", ERR_PARSE, "n_kv: found 8.5"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 1e15", ERR_PARSE, "n_kv: found 1e+15"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": \"8\"", ERR_PARSE,
			"n_kv: found a string, wanted a number"},
		{"turbo3.json", "\"n_kv\": 8,", "", ERR_PARSE, "n_kv: found nothing"},
		{"qjl.json", "\"proj_dim\": 256", "\"proj_dim\": 128", ERR_PARSE,
			"proj_dim: found 128, wanted 256"},
		{"qjl.json", "\"n_kv_heads\": 1", "\"n_kv_heads\": 2", ERR_PARSE,
			"n_heads: found 1, wanted a multiple of n_kv_heads (2)"},
		{"polar.json", "\"use_qjl\": 0", "\"use_qjl\": 2", ERR_PARSE, "use_qjl: found 2"},
		{"polar_preht.json", "0.0078125", "0.015625", ERR_PARSE,
			"hadamard_inv_scale: found 0.015625"},
		{"fused_attn_qjl_tbq.json", "\"v_block_bytes\": 14", "\"v_block_bytes\": 82",
			ERR_PARSE, "v_block_bytes: found 82, wanted 14"},
		{"fused_attn_qjl_tbq.json", "\"sm_scale\": 0.0883883461", "\"sm_scale\": 0",
			ERR_PARSE, "sm_scale: found 0"},
		{"fused_attn_qjl_tbq.json", "\"q_is_pre_projected\": 1",
			"\"q_is_pre_projected\": 0", ERR_PARSE, "q_is_pre_projected: found 0"},
		{"fused_attn_qjl_tbq.json", "\"sm_scale\"", "\"use_qjl\": 1, \"sm_scale\"",
			ERR_PARSE, "use_qjl: found a number, wanted none"},
		{"fused_attn_qjl_polar.json", "\"use_qjl\": 1", "\"use_qjl\": 0", ERR_PARSE,
			"use_qjl: found 0, wanted 1"},
		{"fused_attn_qjl_tbq_causal.json", "\"causal\": 1, ", "", ERR_PARSE,
			"cases[0]: causal: found nothing"},
		{"fused_attn_qjl_tbq_causal.json", "\"n_kv\": 80", "\"n_kv\": 81", ERR_PARSE,
			"cases[1]: k_blocks: found 5440 numbers, wanted 5508"},
	};

	(void)state;
	refuse_all(rows, str_count(rows));
}

static void
array_that_does_not_fit_its_header_is_named(void **state)
{
	static const struct mistake rows[] = {
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [", ERR_PARSE,
			"q: found 127 numbers, wanted 128"},
		{"turbo3.json", "\"k_blocks\": [107,", "\"k_blocks\": [107,107,", ERR_PARSE,
			"k_blocks: found 449 numbers, wanted 448"},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 9", ERR_PARSE,
			"k_blocks: found 448 numbers, wanted 504"},
		{"turbo3.json", ",-0.5589415]", "]", ERR_PARSE,
			"expected_scores: found 7 numbers, wanted 8"},
		{"turbo3.json", "\"k_blocks\": [", "\"k_blocks\": {}, \"k_blocks\": [",
			ERR_PARSE, "k_blocks"},
		{"polar_preht.json", "\"k_blocks_qjl\": [", "\"k_blocks_qjl\": [0,", ERR_PARSE,
			"k_blocks_qjl: found 657 numbers, wanted 656"},
		{"fused_attn_qjl_tbq.json", "\"expected_out\": [", "\"expected_out\": [0,",
			ERR_PARSE, "cases[0]: expected_out: found 129 numbers, wanted 128"},
	};

	(void)state;
	refuse_all(rows, str_count(rows));
}

static void
number_out_of_range_is_named(void **state)
{
	static const struct mistake rows[] = {
		{"turbo3.json", "\"k_blocks\": [107,", "\"k_blocks\": [256,", ERR_PARSE,
			"k_blocks[0]: found 256, wanted an integer from 0 to 255"},
		{"turbo3.json", "\"k_blocks\": [107,73,", "\"k_blocks\": [107,-1,", ERR_PARSE,
			"k_blocks[1]: found -1"},
		{"turbo3.json", "\"k_blocks\": [107,", "\"k_blocks\": [7.5,", ERR_PARSE,
			"k_blocks[0]: found 7.5"},
		{"turbo3.json", "\"k_blocks\": [107,", "\"k_blocks\": [null,", ERR_PARSE,
			"k_blocks[0]: found null"},
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [1e39,", ERR_PARSE,
			"q[0]: found 1e+39, wanted a finite float"},
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [true,", ERR_PARSE,
			"q[0]: found true"},
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [1e999,", ERR_PARSE, "JSON"},
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [NaN,", ERR_PARSE, "JSON"},
		{"turbo3.json", "\"q\": [-1.22754,", "\"q\": [-Infinity,", ERR_PARSE, "JSON"},
	};

	(void)state;
	refuse_all(rows, str_count(rows));
}

static void
key_matches_whole_or_not_at_all(void **state)
{
	static const struct mistake rows[] = {
		{"qjl.json", "\"q_sketch\"", "\"q\"", ERR_PARSE, "unknown field \"q\""},
		{"qjl.json", "\"n_kv_heads\"", "\"n_kv\"", ERR_PARSE, "unknown field \"n_kv\""},
		{"polar.json", "\"k_blocks\"", "\"k_blocks_qjl\"", ERR_PARSE,
			"unknown field \"k_blocks_qjl\""},
		{"turbo3.json", "\"q\":", "\"causal\": 1, \"q\":", ERR_PARSE,
			"unknown field \"causal\""},
		{"fused_attn_qjl_tbq.json", "\"n_heads\": 1,", "\"n_heads\": 1, \"mask\": 1,",
			ERR_PARSE, "cases[0]: unknown field \"mask\""},
		{"turbo3.json", "\"n_kv\": 8", "\"n_kv\": 8, \"n_kv\": 8", ERR_PARSE, "n_kv"},
	};

	(void)state;
	refuse_all(rows, str_count(rows));
}

static void
unknown_kernel_lists_the_known_ones(void **state)
{
	static const struct mistake rows[] = {
		{"turbo3.json", "\"kernel\": \"turbo3\"", "\"kernel\": \"turbo5\"", ERR_PARSE,
			"kernel: found \"turbo5\", wanted one of turbo3, turbo4, turbo3_tcq, qjl, "
			"polar, polar_preht, fused_attn_qjl_tbq, fused_attn_qjl_polar"},
		{"turbo3.json", "\"kernel\": \"turbo3\"", "\"kernel\": 3", ERR_PARSE,
			"kernel: found a number"},
		{"turbo3.json", "\"kernel\": \"turbo3\",", "", ERR_PARSE,
			"kernel: found nothing"},
		/* The kernel is looked at before anything else. */
		{"turbo3.json", "\"kernel\": \"turbo3\"", "\"kernel\": \"qjl\"", ERR_PARSE,
			"unknown field \"n_kv\""},
	};

	(void)state;
	refuse_all(rows, str_count(rows));
}

static void
transform_of_another_query_is_refused(void **state)
{
	static const struct mistake row = {"polar_preht.json", "\"q\": [-1.502115,",
		"\"q\": [-1.402115,", ERR_PARSE, "hq[0]: found"};

	(void)state;
	refuses(&row);
}

static void
old_turbo4_layout_is_refused_by_name(void **state)
{
	static const struct mistake row = {"turbo4.json",
		"\"block_bytes\": 18,\n  \"blocks_per_kv\": 4",
		"\"block_bytes\": 66,\n  \"blocks_per_kv\": 1", ERR_PARSE,
		"block_bytes: found 66, wanted 18"};

	(void)state;
	refuses(&row);
}

static void
original_old_turbo4_files_are_refused(void **state)
{
	static const char *const names[] = {"turbo4.legacy66.json",
		"turbo4.legacy66-fma.json"};
	const char *dir = getenv("VERIFY_SHARED");
	struct fixture *f = NULL;
	char path[4096], *text;
	struct err e = {0};
	size_t i, len;
	int rc;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		assert_int_equal(str_fmt(path, sizeof path, &e, "%s/fixtures-upstream/%s",
			dir && dir[0] ? dir : "../shared", names[i]), 0);
		if (!plat_exists(path))
			skip();
		assert_int_equal(plat_read_file(path, FIXTURE_MAX_BYTES, &text, &len, &e), 0);
		rc = fixture_parse(text, len, &f, &e);
		free(text);
		assert_int_equal(rc, -1);
		assert_string_equal(e.msg, "block_bytes: found 66, wanted 18");
		assert_non_null(strstr(e.hint, "legacy66"));
	}
}

static void
fixture_of_another_row_does_not_fit(void **state)
{
	static const struct {
		const char *has, *wanted, *says;
	} rows[] = {
		{"turbo3", "turbo4", "kernel: found \"turbo3\", wanted \"turbo4\""},
		{"polar", "polar_qjl", "use_qjl: found 0, wanted 1"},
		{"polar_qjl", "polar", "use_qjl: found 1, wanted 0"},
		{"polar", "polar_preht", "kernel: found \"polar\""},
		{"fused_attn_qjl_tbq", "fused_attn_qjl_tbq_causal", "causal: found 0, wanted 1"},
		{"fused_attn_qjl_tbq_causal", "fused_attn_qjl_tbq", "causal: found 1, wanted 0"},
	};
	struct fixture *f = NULL;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_int_equal(fixture_load(kernel_find(rows[i].has), NULL, &f, NULL, &e), 0);
		assert_int_equal(fixture_fits(f, kernel_find(rows[i].wanted), &e), -1);
		if (strstr(e.msg, rows[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.msg, rows[i].says);
		fixture_free(f);
	}
}

static void
document_that_is_no_fixture_is_refused(void **state)
{
	static const char *const texts[] = {"", "[]", "3", "null", "{}", "{\"kernel\":\"turbo3\"}",
		"{\"kernel\":\"turbo3\"", "{\"kernel\":\"fused_attn_qjl_tbq\",\"cases\":[]}",
		"\xef\xbb\xbf{}", "{\"kernel\":\"tur\\u0000bo3\"}"};
	struct fixture *f = NULL;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		memset(&e, 0, sizeof e);
		assert_int_equal(fixture_parse(texts[i], strlen(texts[i]), &f, &e), -1);
		assert_true(e.code == ERR_PARSE);
		assert_true(e.msg[0] != '\0');
	}
}

static void
too_many_cases_or_bytes_are_refused(void **state)
{
	static const struct mistake row = {"fused_attn_qjl_tbq.json", "\"cases\": [",
		"\"cases\": [3,", ERR_PARSE, "cases[0]: found a number, wanted an object"};
	struct fixture *f = NULL;
	struct err e = {0};
	char *text = malloc(FIXTURE_MAX_BYTES + 1u);

	(void)state;
	refuses(&row);
	assert_non_null(text);
	memset(text, ' ', FIXTURE_MAX_BYTES + 1u);
	assert_int_equal(fixture_parse(text, FIXTURE_MAX_BYTES + 1u, &f, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	free(text);
}

static void
missing_file_is_not_found(void **state)
{
	struct fixture *f = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(fixture_load(kernel_find("turbo3"), "fixtures/nowhere", &f, NULL, &e),
		-1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_in_fixtures_are_read),
		cmocka_unit_test(numbers_arrive_where_they_belong),
		cmocka_unit_test(header_that_does_not_fit_is_named),
		cmocka_unit_test(array_that_does_not_fit_its_header_is_named),
		cmocka_unit_test(number_out_of_range_is_named),
		cmocka_unit_test(key_matches_whole_or_not_at_all),
		cmocka_unit_test(unknown_kernel_lists_the_known_ones),
		cmocka_unit_test(transform_of_another_query_is_refused),
		cmocka_unit_test(old_turbo4_layout_is_refused_by_name),
		cmocka_unit_test(original_old_turbo4_files_are_refused),
		cmocka_unit_test(fixture_of_another_row_does_not_fit),
		cmocka_unit_test(document_that_is_no_fixture_is_refused),
		cmocka_unit_test(too_many_cases_or_bytes_are_refused),
		cmocka_unit_test(missing_file_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
