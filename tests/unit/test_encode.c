#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/encode_check.h"
#include "kernels/encode_form.h"
#include "kernels/encode_shape.h"
#include "kernels/gpu_plan.h"
#include "kernels/table.h"

#define KEYS 40

/*
 * A device in this program's own memory whose encoders are ref's, with one thing wrong.
 * An error is planted in each key for which `spoil` says so.
 */
struct backend_buffer {
	size_t bytes;
	uint8_t *data;
};

/* Changes the blocks of a key; false: not this one. */
typedef bool (*spoil_fn)(const float *x, const float *pi, uint8_t *key);

static struct {
	spoil_fn spoil;
	unsigned at_most;         /* keys that are spoilt in a call, 0: all that can be */
	size_t unwritten;         /* the last bytes of an output that are not written */
	bool past_end, into_input; /* writes one byte too many, into x */
	enum err_code fails;      /* with what encode fails */
	unsigned spoilt, encodes, frees;
} plan;

struct backend_session {
	int unused;
};

static struct backend_session only_session;

static int
fake_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	(void)e;
	assert_true(max > 0);
	memset(out, 0, sizeof *out);
	*count = 1;
	return 0;
}

static int
fake_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	(void)d;
	(void)e;
	*out = &only_session;
	return 0;
}

static void
fake_close(struct backend_session *s)
{
	(void)s;
}

static int
fake_buffer_new(struct backend_session *s, size_t bytes, struct backend_buffer **out,
		struct err *e)
{
	struct backend_buffer *b = malloc(sizeof *b);

	(void)s;
	(void)e;
	assert_non_null(b);
	b->bytes = bytes;
	assert_non_null(b->data = malloc(bytes));
	*out = b;
	return 0;
}

static void
fake_buffer_free(struct backend_session *s, struct backend_buffer *b)
{
	(void)s;
	plan.frees++;
	free(b->data);
	free(b);
}

static int
fake_write(struct backend_session *s, struct backend_buffer *b, size_t at, const void *src,
	   size_t bytes, struct err *e)
{
	(void)s;
	(void)e;
	assert_true(at + bytes <= b->bytes);
	memcpy(b->data + at, src, bytes);
	return 0;
}

static int
fake_read(struct backend_session *s, struct backend_buffer *b, size_t at, void *dst,
	  size_t bytes, struct err *e)
{
	(void)s;
	(void)e;
	assert_true(at + bytes <= b->bytes);
	memcpy(dst, b->data + at, bytes);
	return 0;
}

static int
fake_encode(struct backend_session *s, const struct kernel_format *f,
	    const struct backend_span *x, const struct backend_span *pi, size_t n,
	    const struct backend_span *out, struct err *e)
{
	const float *keys = (const float *)(x->buffer->data + x->at);
	const float *projection = pi ? (const float *)(pi->buffer->data + pi->at) : NULL;
	uint8_t *to = out->buffer->data + out->at, key[REF_POLAR_BLOCK];
	size_t i, bytes = (size_t)f->bytes * f->blocks;
	unsigned spoilt = 0;

	(void)s;
	plan.encodes++;
	assert_int_equal(out->bytes, n * bytes);
	assert_int_equal(out->at % BACKEND_ALIGN, 0);
	assert_int_equal(f->pi_seed != 0, pi != NULL);
	if (plan.fails) {
		/* A lost session: nobody frees this any more. */
		if (plan.fails == ERR_DEVICE) {
			free(out->buffer->data);
			free(out->buffer);
		}
		return err_set(e, plan.fails, "fakeLaunch: FAKE_ERROR_LOST");
	}
	for (i = 0; i < n; i++) {
		f->quantise(keys + i * REF_HEAD, projection, key);
		if (plan.spoil && (plan.at_most == 0 || spoilt < plan.at_most) &&
		    plan.spoil(keys + i * REF_HEAD, projection, key))
			spoilt++;
		memcpy(to + i * bytes, key, i + 1 < n ? bytes : bytes - plan.unwritten);
	}
	plan.spoilt += spoilt;
	if (plan.past_end)
		to[n * bytes] ^= 1;
	if (plan.into_input)
		x->buffer->data[x->at] ^= 1;
	return 0;
}

static const struct kernel_backend fake = {
	.name = "fake",
	.list = fake_list,
	.open = fake_open,
	.close = fake_close,
	.buffer_new = fake_buffer_new,
	.buffer_free = fake_buffer_free,
	.write = fake_write,
	.read = fake_read,
	.encode = fake_encode,
};

static void
check(const struct kernel_backend *b, const char *format, struct encode_report *out)
{
	struct encode_options o = {.only = &format, .only_count = format ? 1 : 0, .keys = KEYS};
	struct backend_device d;
	struct err e = {0};
	struct rig r;
	size_t n;

	assert_int_equal(b->list(&d, 1, &n, &e), 0);
	assert_int_equal(rig_open(b, &d, &r, &e), 0);
	assert_int_equal(encode_check_run(&r, &o, out, &e), 0);
	rig_close(&r);
}

static int
reset(void **state)
{
	(void)state;
	memset(&plan, 0, sizeof plan);
	return 0;
}

static bool
is_usual(const float *x)
{
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		if (!(fabsf(x[i]) > 1e-3f && fabsf(x[i]) < 100.0f))
			return false;
	return true;
}

static const struct encode_form *
form_of(ref_quantise quantise)
{
	const struct encode_form *f = encode_form_find(quantise);

	assert_non_null(f);
	return f;
}

/* ---- what is wrong ---- */

static bool
next_turbo3_code(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[14 + 2 + 3] ^= is_usual(x) ? 0x10 : 0; /* element 46, low bit */
	return is_usual(x);
}

static bool
next_turbo4_code(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[18 + 2 + 7] ^= is_usual(x) ? 0x10 : 0;
	return is_usual(x);
}

static bool
next_tbq3_code(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[3 * 14 + 13] ^= is_usual(x) ? 0x20 : 0; /* the last code */
	return is_usual(x);
}

static bool
next_polar_code(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[65] ^= is_usual(x) ? 0x10 : 0; /* the last one */
	return is_usual(x);
}

static bool
other_sign(const float *x, const float *pi, uint8_t *key)
{
	float sketch[REF_PROJ];
	unsigned i;

	ref_sketch(x, pi, sketch);
	for (i = 0; i < REF_PROJ && is_usual(x); i++)
		if (fabsf(sketch[i]) > 0.01f && fabsf(sketch[i]) < 0.05f) {
			key[i / 8] ^= (uint8_t)(1 << i % 8);
			return true;
		}
	return false;
}

static bool
other_residual(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[66] ^= is_usual(x) ? 1 : 0;
	return is_usual(x);
}

/* The worst last symbol: one value of 128 is another. */
static bool
worse_path(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[2 + 48] ^= is_usual(x) ? 0x08 : 0; /* bit 387 */
	return is_usual(x);
}

static bool
shift_norms(const float *x, uint8_t *key, ref_quantise quantise, int by)
{
	const struct encode_form *f = form_of(quantise);
	unsigned i;

	for (i = 0; i < f->norms && is_usual(x); i++)
		encode_form_set_norm(f, key, i,
				     (uint16_t)(encode_form_norm(f, key, i) + by));
	return is_usual(x);
}

#define SHIFT(name, format, by)                                                          \
	static bool name(const float *x, const float *pi, uint8_t *key)                  \
	{                                                                                \
		(void)pi;                                                                \
		return shift_norms(x, key, format, by);                                  \
	}
SHIFT(turbo3_norm_up_1, ref_turbo3_quantise, 1)
SHIFT(turbo3_norm_up_2, ref_turbo3_quantise, 2)
SHIFT(turbo4_norm_down_1, ref_turbo4_quantise, -1)
SHIFT(turbo4_norm_down_2, ref_turbo4_quantise, -2)
SHIFT(tcq_norm_up_1, ref_tcq_quantise, 1)
SHIFT(tcq_norm_down_2, ref_tcq_quantise, -2)
SHIFT(qjl_norm_up_1, ref_qjl_quantise, 1)
SHIFT(qjl_norm_up_2, ref_qjl_quantise, 2)
SHIFT(polar_norm_up_1, ref_polar_quantise, 1)
SHIFT(polar_norm_up_2, ref_polar_quantise, 2)

static bool
one_norm_of_four(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	key[2 * 14] = (uint8_t)(key[2 * 14] + is_usual(x));
	return is_usual(x);
}

static bool
norm_is_nan(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	if (is_usual(x))
		key[1] = 0x7e;
	return is_usual(x);
}

static bool
reserved_byte(const float *x, const float *pi, uint8_t *key)
{
	(void)x;
	(void)pi;
	key[70] = 1;
	return true;
}

static bool
pad_byte(const float *x, const float *pi, uint8_t *key)
{
	(void)x;
	(void)pi;
	key[51] = 0x80;
	return true;
}

static bool
pad_bit(const float *x, const float *pi, uint8_t *key)
{
	(void)x;
	(void)pi;
	key[50] |= 0x40;
	return true;
}

static bool
residual_without_one(const float *x, const float *pi, uint8_t *key)
{
	(void)x;
	(void)pi;
	key[66] |= 1;
	return true;
}

/* Codes of a key of zeros below the threshold that they are on. */
static bool
lower_tie_of_zero(const float *x, const float *pi, uint8_t *key)
{
	unsigned i;

	(void)pi;
	for (i = 0; i < REF_HEAD; i++)
		if (x[i] != 0.0f)
			return false;
	memset(key + 2, 0x77, 64);
	return true;
}

/* One value of polar, from..to ulp off the threshold below its code, gets the code below. */
static bool
lower_polar_code(const float *x, uint8_t *key, double from, double to)
{
	const struct encode_form *f = form_of(ref_polar_quantise);
	float v[REF_HEAD];
	unsigned i, code;
	double t, off;

	if (!is_usual(x))
		return false;
	f->values(x, v);
	for (i = 0; i < REF_HEAD; i++) {
		code = f->code(key, i);
		if (code == 0 || (t = encode_form_threshold(f, code - 1)) == 0.0)
			continue;
		off = ((double)v[i] - t) / ldexp(1.0, ilogb(t) - 23);
		if (off < from || off > to)
			continue;
		key[2 + i / 2] = (uint8_t)(key[2 + i / 2] - (i % 2 ? 0x10 : 1));
		return true;
	}
	return false;
}

static bool
code_below_a_tie(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	return lower_polar_code(x, key, 0, 0);
}

static bool
code_4_ulp_off(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	return lower_polar_code(x, key, 0.5, 4);
}

static bool
code_5_ulp_off(const float *x, const float *pi, uint8_t *key)
{
	(void)pi;
	return lower_polar_code(x, key, 5, 12);
}

static bool
codes_of_nan(const float *x, const float *pi, uint8_t *key)
{
	unsigned i;

	(void)pi;
	for (i = 0; i < REF_HEAD; i++)
		if (!isfinite(x[i])) {
			memset(key + 2, 0x35, 64);
			return true;
		}
	return false;
}

/* ---- the check ---- */

static void
right_encoders_pass_and_planted_errors_are_caught(void **state)
{
	struct encode_report r;
	const struct encode_row *row;
	size_t i;

	(void)state;
	check(&fake, NULL, &r);
	assert_int_equal(r.count, KERNEL_FORMATS);
	assert_int_equal(r.passed, KERNEL_FORMATS);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	for (i = 0; i < r.count; i++) {
		row = &r.rows[i];
		assert_ptr_equal(row->format, &kernel_formats[i]);
		assert_string_equal(row->detail, "");
		assert_true(row->keys > KEYS + 100);
		assert_int_equal(row->same, row->keys);
		assert_int_equal(row->not_finite, 9);
		assert_int_equal(row->codes.near + row->codes.wrong, 0);
		assert_int_equal(row->norms.near + row->norms.wrong, 0);
		assert_int_equal(row->caught, row->planted);
		assert_true(row->planted >= 2);
		assert_true(row->codes.all + row->paths.all > 0);
	}
	/* Each key is encoded twice, in batches. */
	assert_int_equal(plan.encodes, plan.frees);
	assert_true(plan.encodes >= KERNEL_FORMATS * 2 * 7);
}

static void
inputs_hit_thresholds_exactly(void **state)
{
	struct encode_report r;
	size_t i;

	(void)state;
	check(&fake, NULL, &r);
	for (i = 0; i < r.count; i++)
		if (form_of(r.rows[i].format->quantise)->codes == ENCODE_LEVELS)
			assert_true(r.rows[i].ties > 128);
}

static void
wrong_encoders_are_caught(void **state)
{
	static const struct {
		const char *format, *says;
		spoil_fn spoil;
	} rows[] = {
		{"turbo3", "element 46: code", next_turbo3_code},
		{"turbo4", "code", next_turbo4_code},
		{"tbq3_0", "element 127: code", next_tbq3_code},
		{"polar", "element 127: code", next_polar_code},
		{"polar_qjl", "element 127: code", next_polar_code},
		{"qjl", "sign", other_sign},
		{"polar_qjl", "the residual bit is wrong", other_residual},
		{"turbo3_tcq", "the path parts at element 127", worse_path},
		{"turbo3", "norm", turbo3_norm_up_2},
		{"turbo4", "norm", turbo4_norm_down_2},
		{"turbo3_tcq", "norm", tcq_norm_down_2},
		{"qjl", "norm", qjl_norm_up_2},
		{"polar", "norm", polar_norm_up_2},
		{"polar", "norm", norm_is_nan},
		{"turbo3", "block 2 has another norm", one_norm_of_four},
		{"polar", "reserved", reserved_byte},
		{"polar_qjl", "reserved", reserved_byte},
		{"turbo3_tcq", "reserved", pad_byte},
		{"turbo3_tcq", "reserved", pad_bit},
		{"polar", "reserved", residual_without_one},
		{"polar", "(zero), element 0: code 7, not 8", lower_tie_of_zero},
		{"polar", "ulp from a threshold", code_5_ulp_off},
	};
	struct encode_report r;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		reset(state);
		plan.spoil = rows[i].spoil;
		plan.at_most = 1;
		check(&fake, rows[i].format, &r);
		assert_true(plan.spoilt > 0);
		assert_int_equal(r.outcome, OUTCOME_FAIL);
		assert_int_equal(r.failed, 1);
		if (strstr(r.rows[0].detail, rows[i].says) == NULL)
			fail_msg("row %zu says: %s", i, r.rows[0].detail);
	}
}

static void
allowed_differences_pass_and_are_counted(void **state)
{
	static const struct {
		const char *format;
		spoil_fn spoil;
		bool norm;
	} rows[] = {
		{"turbo3", turbo3_norm_up_1, true},
		{"turbo4", turbo4_norm_down_1, true},
		{"turbo3_tcq", tcq_norm_up_1, true},
		{"qjl", qjl_norm_up_1, true},
		{"polar", polar_norm_up_1, true},
		{"polar", code_below_a_tie, false},
		{"polar", code_4_ulp_off, false},
	};
	const struct encode_row *row;
	struct encode_report r;
	size_t i, norms;

	for (i = 0; i < str_count(rows); i++) {
		reset(state);
		plan.spoil = rows[i].spoil;
		check(&fake, rows[i].format, &r);
		row = &r.rows[0];
		assert_true(plan.spoilt > 0);
		assert_string_equal(row->detail, "");
		assert_int_equal(r.outcome, OUTCOME_PASS);
		assert_int_equal(row->keys - row->same, plan.spoilt / 2);
		norms = rows[i].norm ? form_of(row->format->quantise)->norms : 0;
		assert_int_equal(row->norms.near, norms * plan.spoilt / 2);
		assert_int_equal(row->codes.near, rows[i].norm ? 0 : plan.spoilt / 2);
		assert_true(row->worst_ulps <= ENCODE_ULPS);
	}
}

static void
codes_of_keys_that_are_not_finite_are_free(void **state)
{
	struct encode_report r;

	(void)state;
	plan.spoil = codes_of_nan;
	check(&fake, "polar", &r);
	assert_int_equal(plan.spoilt, 2 * 9);
	assert_int_equal(r.outcome, OUTCOME_PASS);
	assert_int_equal(r.rows[0].keys - r.rows[0].same, 9);
}

static void
a_byte_that_is_not_written_is_caught(void **state)
{
	struct encode_report r;

	(void)state;
	plan.unwritten = 1;
	check(&fake, "polar", &r);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	assert_non_null(strstr(r.rows[0].detail, "depends on what was there"));
	assert_int_equal(r.rows[0].unwritten, plan.encodes / 2);
}

static void
bytes_beside_the_output_are_caught(void **state)
{
	struct encode_report r;

	plan.past_end = true;
	check(&fake, "turbo4", &r);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	assert_false(r.rows[0].guard_intact);
	reset(state);
	plan.into_input = true;
	check(&fake, "turbo4", &r);
	assert_int_equal(r.outcome, OUTCOME_FAIL);
	assert_false(r.rows[0].guard_intact);
}

static void
a_lost_device_blocks_all_that_follows(void **state)
{
	struct encode_report r;

	(void)state;
	plan.fails = ERR_DEVICE;
	check(&fake, NULL, &r);
	assert_int_equal(plan.encodes, 1);
	assert_int_equal(plan.frees, 0);
	assert_int_equal(r.blocked, KERNEL_FORMATS);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_DEVICE);
	assert_non_null(strstr(r.rows[0].detail, "FAKE_ERROR_LOST"));
	assert_non_null(strstr(r.rows[1].detail, "failed before this"));
}

static void
what_a_device_does_not_have_is_blocked(void **state)
{
	struct kernel_backend none = fake;
	struct encode_report r;

	(void)state;
	plan.fails = ERR_UNSUPPORTED;
	check(&fake, NULL, &r);
	assert_int_equal(r.blocked, KERNEL_FORMATS);
	assert_int_equal(plan.encodes, KERNEL_FORMATS);
	assert_int_equal(plan.frees, KERNEL_FORMATS);
	none.encode = NULL;
	check(&none, NULL, &r);
	assert_int_equal(r.outcome, OUTCOME_BLOCKED);
	assert_int_equal(r.why, ERR_UNSUPPORTED);
	assert_string_equal(r.rows[0].detail, "the backend fake has no encoders");
}

static void
options_that_make_no_sense_are_refused(void **state)
{
	const char *name = "tbq4_0";
	struct encode_options o = {.only = &name, .only_count = 1};
	struct rig r = {.backend = &fake, .session = &only_session};
	struct encode_report out;
	struct err e = {0};

	(void)state;
	assert_int_equal(encode_check_run(&r, &o, &out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	o = (struct encode_options){.keys = ENCODE_KEYS_MAX + 1};
	assert_int_equal(encode_check_run(&r, &o, &out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

static void
reports_carry_what_was_counted(void **state)
{
	struct encode_report r;
	const cJSON *row;
	cJSON *o;
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	plan.spoil = polar_norm_up_1;
	check(&fake, "polar", &r);
	assert_non_null(o = encode_check_json(&r));
	row = cJSON_GetArrayItem(json_get(o, "formats"), 0);
	assert_string_equal(json_str(row, "name"), "polar");
	assert_string_equal(json_str(row, "outcome"), "pass");
	assert_int_equal(json_int(json_get(row, "norms"), "near", -1), plan.spoilt / 2);
	assert_int_equal(json_int(json_get(row, "norms"), "wrong", -1), 0);
	assert_int_equal(json_int(json_get(row, "codes"), "compared", -1),
			 128 * ((int64_t)r.rows[0].keys - 9));
	assert_int_equal(json_int(row, "planted", -1), 3);
	assert_string_equal(json_str(o, "outcome"), "pass");
	cJSON_Delete(o);
	assert_non_null(f = open_memstream(&text, &size));
	encode_check_print(f, &r, false);
	fclose(f);
	assert_non_null(strstr(text, "3 of 3 planted errors caught; 1 passed"));
	free(text);
}

/* ---- the plan ---- */

static const struct gpu_limits limits = {.sms = 1, .warp = 32, .shared = 48 * 1024};

static void
a_plan_has_a_block_for_every_tile(void **state)
{
	struct gpu_plan p;
	struct err e = {0};
	size_t i, keys;
	uint32_t tile;

	(void)state;
	for (i = 0; i < KERNEL_FORMATS; i++)
		for (keys = 1; keys < 200; keys++) {
			tile = kernel_formats[i].quantise == ref_tcq_quantise
				       ? ENCODE_TCQ_KEYS
				       : ENCODE_TILE;
			assert_int_equal(gpu_plan_encode(&kernel_formats[i], keys, &limits,
							 &p, &e), 0);
			assert_int_equal(p.count, 1);
			assert_int_equal(p.work, 0);
			assert_true((size_t)p.steps[0].grid[0] * tile >= keys);
			assert_true((size_t)(p.steps[0].grid[0] - 1) * tile < keys);
			assert_int_equal(p.steps[0].grid[1], 1);
			assert_int_equal(p.steps[0].block, ENCODE_BLOCK);
			assert_true(str_starts(p.steps[0].entry, "encode_"));
		}
}

static void
a_plan_for_no_keys_or_too_many_is_refused(void **state)
{
	struct kernel_format other = kernel_formats[0];
	struct gpu_plan p;
	struct err e = {0};

	(void)state;
	assert_int_equal(gpu_plan_encode(&kernel_formats[0], 0, &limits, &p, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_int_equal(gpu_plan_encode(&kernel_formats[0], SIZE_MAX, &limits, &p, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_int_equal(gpu_plan_encode(&kernel_formats[2], (size_t)1 << 28, &limits, &p, &e),
			 -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	other.quantise = ref_tbq4_quantise;
	assert_int_equal(gpu_plan_encode(&other, 1, &limits, &p, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
}

/* ---- the device code ---- */

static void
gpu_encoders_write_what_the_reference_writes(void **state)
{
	struct backend_device d[2];
	struct encode_options o = {.keys = 200};
	struct encode_report out;
	const struct encode_row *row;
	struct err e = {0};
	struct rig r;
	size_t n, i, f;

	(void)state;
	assert_int_equal(backend_emulated.list(d, 2, &n, &e), 0);
	assert_int_equal(n, 2);
	for (i = 0; i < n; i++) {
		assert_int_equal(rig_open(&backend_emulated, &d[i], &r, &e), 0);
		assert_int_equal(encode_check_run(&r, &o, &out, &e), 0);
		rig_close(&r);
		for (f = 0; f < out.count; f++) {
			row = &out.rows[f];
			if (row->outcome != OUTCOME_PASS)
				fail_msg("%s: %s: %s", d[i].name, row->format->name,
					 row->detail);
			/* Sums run in ref's order: not even a tie may be another. */
			assert_int_equal(row->codes.near, 0);
			assert_int_equal(row->norms.near, 0);
			assert_int_equal(row->paths.near, 0);
			assert_true(row->same + row->not_finite >= row->keys);
		}
		assert_int_equal(out.passed, KERNEL_FORMATS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(right_encoders_pass_and_planted_errors_are_caught, reset),
		cmocka_unit_test_setup(inputs_hit_thresholds_exactly, reset),
		cmocka_unit_test_setup(wrong_encoders_are_caught, reset),
		cmocka_unit_test_setup(allowed_differences_pass_and_are_counted, reset),
		cmocka_unit_test_setup(codes_of_keys_that_are_not_finite_are_free, reset),
		cmocka_unit_test_setup(a_byte_that_is_not_written_is_caught, reset),
		cmocka_unit_test_setup(bytes_beside_the_output_are_caught, reset),
		cmocka_unit_test_setup(a_lost_device_blocks_all_that_follows, reset),
		cmocka_unit_test_setup(what_a_device_does_not_have_is_blocked, reset),
		cmocka_unit_test_setup(options_that_make_no_sense_are_refused, reset),
		cmocka_unit_test_setup(reports_carry_what_was_counted, reset),
		cmocka_unit_test(a_plan_has_a_block_for_every_tile),
		cmocka_unit_test(a_plan_for_no_keys_or_too_many_is_refused),
		cmocka_unit_test(gpu_encoders_write_what_the_reference_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
