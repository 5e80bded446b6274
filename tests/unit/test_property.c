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
#include "kernels/property.h"
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
	return 0;
}

static struct property_report
run(const char *only, fake_run kernel, bool full)
{
	struct property_report r = {0};
	struct err e = {0};

	fake.run = kernel;
	if (verify_items(&rig, only ? &only : NULL, only != NULL, items, &task.item_count, &e) ||
	    property_run(&rig, &task, full, &r, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void
reference_has_every_property(void **state)
{
	struct property_report r = run(NULL, NULL, false);
	size_t i;

	(void)state;
	assert_int_equal(r.count, KERNEL_COUNT);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	for (i = 0; i < r.count; i++) {
		assert_string_equal(r.rows[i].name, kernels[i].name);
		assert_int_equal(r.rows[i].outcome, OUTCOME_PASS);
		assert_true(r.rows[i].elements > 10000);
		assert_true(r.rows[i].problems >= 32);
	}
	property_fini(&r);
}

/* ---- kernels that are right in another way ---- */

/* Sums in f32, in four strands, scale last: as a GPU may do it. */
static int
sum_otherwise(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	float part[4], unit[REF_HEAD];
	uint32_t h, t, i;

	(void)e;
	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < c->n_kv; t++) {
			ref_turbo4_decode(c->k + ((size_t)ref_kv_head(c, h) * c->n_kv + t) *
							 k->k_bytes * k->k_blocks, unit);
			memset(part, 0, sizeof part);
			for (i = 0; i < REF_HEAD; i++)
				part[i % 4] += c->q[h * REF_HEAD + i] * unit[i];
			*out++ = (part[3] + part[2]) + (part[1] + part[0]);
		}
	return 0;
}

static void
other_order_of_a_sum_passes_with_room_to_spare(void **state)
{
	struct property_report r = run("turbo4", sum_otherwise, true);

	(void)state;
	assert_int_equal(r.outcome, OUTCOME_PASS);
	assert_true(r.rows[0].worst > 0 && r.rows[0].worst < 0.25);
	property_fini(&r);
}

/* ---- kernels that are wrong ---- */

/* A query rounded to fp16: what tensor cores do without a second term. */
static int
round_query(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t n = (size_t)c->n_heads * k->q_dim, i;
	struct ref_case rounded = *c;
	float *q = malloc(n * sizeof *q);
	int rc;

	if (q == NULL)
		return err_set(e, ERR_NOMEM, "no memory");
	for (i = 0; i < n; i++)
		q[i] = ref_fp16_decode(ref_fp16_encode(c->q[i]));
	rounded.q = q;
	rc = k->run(&rounded, out, e);
	free(q);
	return rc;
}

/* Exponentials without the largest logit taken off first. */
static int
overflow(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	uint32_t h, t, n = ref_visible(c);

	if (k->run(c, out, e))
		return -1;
	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < n; t++)
			if (isinf(expf(ref_fused_raw(c, h, t))))
				out[h * REF_HEAD] = NAN;
	return 0;
}

/* Only whole groups of 32 keys. */
static int
drop_the_rest(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	uint32_t h, t;

	if (k->run(c, out, e))
		return -1;
	for (h = 0; h < c->n_heads; h++)
		for (t = c->n_kv / 32 * 32; t < c->n_kv; t++)
			out[(size_t)h * c->n_kv + t] = 0;
	return 0;
}

/* Writes although there is nothing to write: the launch has one block at least. */
static int
write_without_keys(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	if (c->n_kv == 0)
		out[0] = 0;
	return k->run(c, out, e);
}

/* Another result each time, far below any tolerance. */
static int
race(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	static unsigned n;

	if (k->run(c, out, e))
		return -1;
	if (kernel_outputs(k, c) > 0)
		out[0] *= 1 + (float)(n++ % 2) * 0x1p-23f;
	return 0;
}

/* Right numbers that depend on where the key stands, below the absolute tolerance. */
static int
lean(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	uint32_t h, t;

	if (k->run(c, out, e))
		return -1;
	for (h = 0; h < c->n_heads; h++)
		for (t = 0; t < c->n_kv; t += 2)
			out[(size_t)h * c->n_kv + t] += 5e-4f;
	return 0;
}

/* A constant that is always added: the doubled score is not twice. */
static int
offset(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t i;

	if (k->run(c, out, e))
		return -1;
	for (i = 0; i < kernel_outputs(k, c); i++)
		out[i] += 1e-5f;
	return 0;
}

/* The norm of the first block for all four. */
static int
one_norm(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t n = (size_t)c->n_kv_heads * c->n_kv, bytes = (size_t)k->k_bytes * k->k_blocks, i;
	struct ref_case other = *c;
	uint8_t *keys = malloc(n * bytes + 1);
	unsigned b;
	int rc;

	if (keys == NULL)
		return err_set(e, ERR_NOMEM, "no memory");
	memcpy(keys, c->k, n * bytes);
	for (i = 0; i < n; i++)
		for (b = 1; b < k->k_blocks; b++)
			memcpy(keys + i * bytes + b * k->k_bytes, keys + i * bytes, 2);
	other.k = keys;
	rc = k->run(&other, out, e);
	free(keys);
	return rc;
}

static void
fault_is_caught(void **state)
{
	static const struct {
		const char *what, *only;
		fake_run kernel;
		const char *said;
	} rows[] = {
		{"writes after", "turbo3", fake_writes_after, "outside of its output"},
		{"writes far after", "qjl", fake_writes_far_after, "outside of its output"},
		{"writes before", "polar", fake_writes_before, "outside of its output"},
		{"changes a key", "turbo4", fake_changes_input, "into an input"},
		{"changes the query", "qjl", fake_changes_query, "into an input"},
		{"forgets the last", "turbo3_tcq", fake_forgets_last, "nan, wanted"},
		{"gives NaN", "polar_qjl", fake_gives_nan, "nan, wanted"},
		{"swaps heads", "turbo3", fake_swaps_heads, "wanted"},
		{"takes a wrong kv head", "turbo3", fake_takes_wrong_kv_head, "wanted"},
		{"takes what lies after the keys", "qjl", fake_reads_past, "nan"},
		{"halves subnormals", "turbo3", fake_halves_subnormals, "norms"},
		{"halves subnormals", "turbo4", fake_halves_subnormals, "norms"},
		{"halves subnormals", "polar_preht", fake_halves_subnormals, "norms"},
		{"takes the residual from the block", "polar", fake_trusts_the_block, "reserved"},
		{"takes the residual from the block", "polar_preht", fake_trusts_the_block,
			"reserved"},
		{"sees the future", "fused_attn_qjl_tbq_causal", fake_sees_the_future, "causal"},
		{"rounds the query", "turbo3", round_query, "wanted"},
		{"rounds the query", "qjl", round_query, "wanted"},
		{"overflows", "fused_attn_qjl_polar", overflow, "large queries"},
		{"drops the rest", "qjl", drop_the_rest, "wanted"},
		{"writes without keys", "turbo4", write_without_keys, "0 keys"},
		{"is a race", "turbo4", race, "other bits"},
		{"is a race", "fused_attn_qjl_tbq", race, "other bits"},
		{"leans", "polar", lean, "another order"},
		{"adds a constant", "turbo3_tcq", offset, "wanted 0,"},
		{"takes one norm for all", "turbo4", one_norm, "wanted"},
	};
	struct property_report r;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		r = run(rows[i].only, rows[i].kernel, false);
		if (r.outcome != OUTCOME_FAIL || r.rows[0].outcome != OUTCOME_FAIL)
			fail_msg("%s that %s passes", rows[i].only, rows[i].what);
		if (strstr(r.rows[0].detail, rows[i].said) == NULL &&
		    !str_eq(rows[i].said, "wanted 0,"))
			fail_msg("%s that %s: %s", rows[i].only, rows[i].what, r.rows[0].detail);
		property_fini(&r);
	}
}

static void
seed_is_all_that_decides(void **state)
{
	struct property_report a = run("qjl", fake_swaps_heads, false), b;

	(void)state;
	b = run("qjl", fake_swaps_heads, false);
	assert_string_equal(a.rows[0].detail, b.rows[0].detail);
	assert_int_equal(a.rows[0].over, b.rows[0].over);
	property_fini(&b);
	task.seed = 2;
	b = run("qjl", fake_swaps_heads, false);
	assert_string_not_equal(a.rows[0].detail, b.rows[0].detail);
	property_fini(&a);
	property_fini(&b);
}

static void
all_variants_meet_the_same_problems(void **state)
{
	struct property_report r;

	(void)state;
	fake.variants[1] = "plain";
	fake.variant_count = 2;
	r = run("turbo3[*]", NULL, false);
	assert_int_equal(r.count, 2);
	assert_string_equal(r.rows[1].name, "turbo3[plain]");
	assert_int_equal(r.rows[0].elements, r.rows[1].elements);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	property_fini(&r);
}

static void
what_is_not_there_is_blocked(void **state)
{
	struct property_report r;

	(void)state;
	fake.lacks = 1u << 0;
	r = run("turbo3", NULL, false);
	assert_int_equal(r.rows[0].outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_UNSUPPORTED);
	property_fini(&r);
	fake.lacks = 0;
	fake.lost_after = 5;
	r = run(NULL, NULL, false);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_DEVICE);
	assert_int_equal(fake.runs, 5);
	assert_int_equal(r.rows[11].outcome, OUTCOME_BLOCKED);
	property_fini(&r);
}

static volatile sig_atomic_t now = 1;

static void
stopped_run_is_no_pass(void **state)
{
	struct property_report r;

	(void)state;
	task.stop = &now;
	r = run("qjl", NULL, false);
	assert_int_equal(r.outcome, OUTCOME_INCOMPLETE);
	assert_int_equal(r.why, ERR_CANCELLED);
	property_fini(&r);
}

static void
json_tells_seed_and_rows(void **state)
{
	struct property_report r = run("qjl", NULL, false);
	cJSON *o = property_json(&r);
	const cJSON *row;

	(void)state;
	assert_string_equal(json_str(o, "seed"), "1");
	assert_string_equal(json_str(o, "depth"), "quick");
	assert_string_equal(json_str(o, "outcome"), "pass");
	row = cJSON_GetArrayItem(json_get(o, "rows"), 0);
	assert_string_equal(json_str(row, "name"), "qjl");
	assert_true(json_int(row, "elements", 0) > 0);
	cJSON_Delete(o);
	property_fini(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reference_has_every_property),
		TEST(other_order_of_a_sum_passes_with_room_to_spare),
		TEST(fault_is_caught),
		TEST(seed_is_all_that_decides),
		TEST(all_variants_meet_the_same_problems),
		TEST(what_is_not_there_is_blocked),
		TEST(stopped_run_is_no_pass),
		TEST(json_tells_seed_and_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
