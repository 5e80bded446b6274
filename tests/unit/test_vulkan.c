#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/fixture.h"
#include "kernels/vulkan_impl.h"

/*
 * The shaders on whatever Vulkan device is first, lavapipe where there is no card, with
 * the validation layer on.  Expected numbers are those of ref.c.
 */
#define LAYER "libVkLayer_khronos_validation"

/* The layer leaks when it looks at synchronisation.  Read by the leak checker. */
const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
	return "leak:" LAYER "\n";
}

#define GUARD 512 /* bytes on each side of a span */
#define FILL 0xa5

static const struct kernel_backend *const vk = &backend_vulkan;
static struct backend_device device;
static struct backend_session *session; /* NULL: no device, all is skipped */
static char why[400];

static void
need_device(void)
{
	if (session != NULL)
		return;
	print_message("skipped: %s\n", why);
	skip();
}

/* ---- random problems ---------------------------------------------------- */

enum norms { NORMS_PLAIN, NORMS_SUBNORMAL, NORMS_HUGE, NORMS_NAN };

struct problem {
	const struct kernel *kernel;
	struct ref_case c;
	float *q, *want;
	uint8_t *k, *v;
	size_t q_count, k_bytes, v_bytes, out_count;
	float k_norm, v_norm; /* the largest */
};

static uint64_t stream;

static uint32_t
draw(void)
{
	stream = stream * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(stream >> 32);
}

static uint16_t
norm_draw(enum norms kind, bool brain)
{
	uint16_t sign = draw() % 8 == 0 ? 0x8000 : 0;

	switch (kind) {
	case NORMS_SUBNORMAL:
		return sign | (uint16_t)(draw() % (brain ? 128 : 1024));
	case NORMS_HUGE:
		return sign | (brain ? 0x7d00 + draw() % 128 : 0x7b00 + draw() % 256);
	case NORMS_NAN:
		return brain ? 0x7fc0 : 0x7e00;
	default:
		return sign | (brain ? 0x3f00 + draw() % 256 : 0x3800 + draw() % 2048);
	}
}

/* Random codes, and a norm where the format has it; in a key of several blocks the same
 * one, as turbo3 has it, or one each. */
static float
blocks_draw(uint8_t *at, size_t keys, uint32_t bytes, uint32_t blocks, uint32_t norm_at,
	    bool brain, bool same, enum norms kind)
{
	float most = 0, value;
	uint16_t norm = 0;
	size_t i, b;

	for (i = 0; i < keys; i++)
		for (b = 0; b < blocks; b++, at += bytes) {
			size_t n;
			for (n = 0; n < bytes; n++)
				at[n] = (uint8_t)(draw() >> 13);
			if (b == 0 || !same)
				norm = norm_draw(kind, brain);
			at[norm_at] = (uint8_t)norm;
			at[norm_at + 1] = (uint8_t)(norm >> 8);
			value = fabsf(brain ? ref_bf16_decode(norm) : ref_fp16_decode(norm));
			most = value > most ? value : most;
			/* Bits 390 and 391 of the stream and the pad are 0. */
			if (bytes == REF_TCQ_BLOCK)
				at[50] &= 0x3f, at[51] = 0;
		}
	return most;
}

static void
problem_init(struct problem *p, const struct kernel *k, uint32_t heads, uint32_t kv_heads,
	     uint32_t n, enum norms kind)
{
	size_t keys = (size_t)kv_heads * n, i;
	struct ref_rng rng;

	memset(p, 0, sizeof *p);
	p->kernel = k;
	p->c = (struct ref_case){.n_heads = heads, .n_kv_heads = kv_heads, .n_kv = n,
				 .use_qjl = k->use_qjl, .causal = k->causal,
				 .sm_scale = 0.08838834764831845f};
	stream = UINT64_C(77) * heads + n;
	p->q_count = (size_t)heads * k->q_dim;
	p->k_bytes = keys * k->k_bytes * k->k_blocks;
	p->v_bytes = keys * k->v_bytes * k->v_blocks;
	assert_non_null(p->q = malloc(p->q_count * sizeof(float)));
	assert_non_null(p->k = malloc(p->k_bytes + 1));
	assert_non_null(p->v = malloc(p->v_bytes + 1));
	ref_rng_init(&rng);
	for (i = 0; i < p->q_count; i++)
		p->q[i] = ref_rng_normal(&rng);
	p->k_norm = blocks_draw(p->k, keys, k->k_bytes, k->k_blocks, k->norm_at,
				k->norm_nan == 0x7fc0, k->quantise_k == ref_turbo3_quantise,
				kind);
	if (k->v_bytes)
		p->v_norm = blocks_draw(p->v, keys, k->v_bytes, k->v_blocks, 0, false, false,
					kind == NORMS_NAN ? NORMS_PLAIN : kind);
	p->c.q = p->q, p->c.k = p->k, p->c.v = k->v_bytes ? p->v : NULL;
	p->out_count = kernel_outputs(k, &p->c);
	assert_non_null(p->want = malloc(p->out_count * sizeof(float) + 1));
}

static void
problem_fini(struct problem *p)
{
	free(p->q), free(p->k), free(p->v), free(p->want);
}

/* What rounding may do to the sum of a head: its terms' size times a few ulp. */
static double
slack(const struct problem *p, size_t at)
{
	double sum = 0, most = 0;
	uint32_t i, h;
	const float *q;

	if (p->kernel->v_bytes)
		return 1e-3 + 1e-5 * p->v_norm;
	h = (uint32_t)(at / p->c.n_kv);
	q = p->q + (size_t)h * p->kernel->q_dim;
	for (i = 0; i < p->kernel->q_dim; i++) {
		sum += fabsf(q[i]);
		most = fabsf(q[i]) > most ? fabsf(q[i]) : most;
	}
	/* No format's level is above 3; a sketch is scaled down. */
	return 1e-3 + 1e-6 * p->k_norm * sum * (p->kernel->q_dim == REF_PROJ ? 0.01 : 3);
}

static bool
is_same(const struct problem *p, size_t at, float got)
{
	float want = p->want[at];

	if (isnan(want))
		return isnan(got);
	if (isinf(want))
		return got == want;
	return fabs((double)got - want) < slack(p, at);
}

/* ---- the device ---------------------------------------------------------- */

/* A span with guards around it. */
static struct backend_span
span_new(const void *data, size_t bytes)
{
	uint8_t *all = malloc(bytes + 2 * GUARD);
	struct backend_span s = {.at = GUARD, .bytes = bytes};
	struct err e = {0};

	assert_non_null(all);
	memset(all, FILL, bytes + 2 * GUARD);
	if (data != NULL)
		memcpy(all + GUARD, data, bytes);
	if (vk->buffer_new(session, bytes + 2 * GUARD, &s.buffer, &e) ||
	    vk->write(session, s.buffer, 0, all, bytes + 2 * GUARD, &e))
		fail_msg("%s", e.msg);
	free(all);
	return s;
}

/* Reads it back, looks at the guards, and that what was only read is as it was. */
static void
span_end(struct backend_span *s, const void *data, void *out)
{
	uint8_t *all = malloc(s->bytes + 2 * GUARD);
	struct err e = {0};
	size_t i;

	assert_non_null(all);
	if (vk->read(session, s->buffer, 0, all, s->bytes + 2 * GUARD, &e))
		fail_msg("%s", e.msg);
	for (i = 0; i < GUARD; i++)
		if (all[i] != FILL || all[GUARD + s->bytes + i] != FILL)
			fail_msg("a guard byte was written");
	if (data != NULL && memcmp(all + GUARD, data, s->bytes) != 0)
		fail_msg("an input was written");
	if (out != NULL)
		memcpy(out, all + GUARD, s->bytes);
	free(all);
	vk->buffer_free(session, s->buffer);
}

static void
run_problem(const struct problem *p, size_t variant, float *got)
{
	struct backend_args a = {.n_heads = p->c.n_heads, .n_kv_heads = p->c.n_kv_heads,
				 .n_kv = p->c.n_kv, .use_qjl = p->c.use_qjl,
				 .causal = p->c.causal, .q_pos_base = p->c.q_pos_base,
				 .sm_scale = p->c.sm_scale};
	struct err e = {0};

	a.q = span_new(p->q, p->q_count * sizeof(float));
	a.k = span_new(p->k, p->k_bytes);
	if (p->c.v != NULL)
		a.v = span_new(p->v, p->v_bytes);
	a.out = span_new(NULL, p->out_count * sizeof(float));
	if (vk->run(session, p->kernel, variant, &a, &e))
		fail_msg("%s: %s", p->kernel->name, e.msg);
	span_end(&a.q, p->q, NULL);
	span_end(&a.k, p->k, NULL);
	if (p->c.v != NULL)
		span_end(&a.v, p->v, NULL);
	span_end(&a.out, NULL, got);
}

static void
compare(const struct problem *p, size_t variant, const char *name)
{
	float *got = malloc(p->out_count * sizeof(float) + 1);
	size_t i;

	assert_non_null(got);
	run_problem(p, variant, got);
	for (i = 0; i < p->out_count; i++)
		if (!is_same(p, i, got[i]))
			fail_msg("%s %s, %u heads over %u, %u keys: output %zu is %.9g, wanted "
				 "%.9g", p->kernel->name, name, p->c.n_heads, p->c.n_kv_heads,
				 p->c.n_kv, i, (double)got[i], (double)p->want[i]);
	free(got);
}

/* One problem on the variants from..to of its kernel. */
static void
check(struct problem *p, bool all)
{
	const char *names[BACKEND_VARIANTS];
	size_t n = vk->variants(session, p->kernel, names), i;
	struct err e = {0};

	assert_true(n > 0);
	assert_int_equal(p->kernel->run(&p->c, p->want, &e), 0);
	for (i = 0; i < (all ? n : 1); i++)
		compare(p, i, names[i]);
	problem_fini(p);
}

/* ---- tests ----------------------------------------------------------------- */

static void
device_is_told_by_what_it_is(void **state)
{
	(void)state;
	need_device();
	assert_int_equal(strlen(device.uuid), 36);
	assert_int_equal(device.uuid[8], '-');
	assert_true(device.memory > 0);
	assert_true(strlen(device.driver) > 0 && strlen(device.api) >= 5);
	/* A software device says so by its type, whatever its name is. */
	if (strstr(device.name, "llvmpipe") != NULL)
		assert_true(device.software);
	assert_false(device.emulated);
}

static void
code_has_a_digest_for_each_shader(void **state)
{
	struct backend_code code[VULKAN_MODULE_COUNT + 1];
	size_t i, n;

	(void)state;
	need_device();
	n = vk->code(session, code, VULKAN_MODULE_COUNT + 1);
	assert_int_equal(n, VULKAN_MODULE_COUNT);
	assert_string_equal(code[0].name, "turbo3.spv");
	for (i = 0; i < n; i++)
		assert_true(str_is_hex(code[i].sha256, 64));
	assert_int_equal(vk->code(session, code, 3), 3);
}

static void
every_row_matches_its_fixture_in_every_variant(void **state)
{
	const char *names[BACKEND_VARIANTS];
	struct fixture *f;
	struct err e = {0};
	size_t r, c, v, n;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		const struct kernel *k = &kernels[r];
		f = NULL;
		assert_int_equal(fixture_load(k, NULL, &f, NULL, &e), 0);
		n = vk->variants(session, k, names);
		assert_int_equal(n, k->v_bytes ? 2 : 6);
		for (c = 0; c < f->case_count; c++) {
			struct fixture_case *x = &f->cases[c];
			struct problem p = {.kernel = k, .c = x->in, .q = x->q,
					    .want = x->expected, .k = x->k, .v = x->v,
					    .q_count = x->q_count, .k_bytes = x->k_bytes,
					    .v_bytes = x->v_bytes,
					    .out_count = x->expected_count};
			if (!kernel_takes(k, &x->in))
				continue;
			/* k_norm is 0: the plain tolerance of 1e-3. */
			for (v = 0; v < n; v++)
				compare(&p, v, names[v]);
		}
		fixture_free(f);
	}
}

static void
random_blocks_match_the_reference(void **state)
{
	static const uint32_t keys[] = {1, 7, 31, 33, 1000};
	static const uint32_t group[] = {1, 2, 4, 8};
	struct problem p;
	size_t r, n, g;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++)
		for (n = 0; n < str_count(keys); n++)
			for (g = 0; g < str_count(group); g++) {
				/* Two kv heads where the key count is odd: then the second
				 * one's blocks lie at odd halves. */
				uint32_t kv = keys[n] == 1000 ? 1 : 2;
				problem_init(&p, &kernels[r], kv * group[g], kv, keys[n],
					     NORMS_PLAIN);
				p.c.q_pos_base = keys[n] / 2;
				check(&p, keys[n] == 33 || (keys[n] == 1000 && group[g] == 2));
			}
}

static void
head_groups_that_are_no_power_of_two_match(void **state)
{
	struct problem p;
	size_t r;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		problem_init(&p, &kernels[r], 9, 3, 67, NORMS_PLAIN);
		p.c.q_pos_base = 40;
		check(&p, true);
		/* More than the eight heads of a workgroup. */
		problem_init(&p, &kernels[r], 22, 2, 67, NORMS_PLAIN);
		p.c.q_pos_base = 40;
		check(&p, true);
	}
}

static void
no_keys_give_no_scores_and_zero_attention(void **state)
{
	struct problem p;
	size_t r;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		problem_init(&p, &kernels[r], 4, 2, 0, NORMS_PLAIN);
		check(&p, true);
	}
}

static void
subnormal_and_huge_norms_match(void **state)
{
	static const enum norms kinds[] = {NORMS_SUBNORMAL, NORMS_HUGE};
	struct problem p;
	size_t r, n;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++)
		for (n = 0; n < str_count(kinds); n++) {
			problem_init(&p, &kernels[r], 4, 2, 33, kinds[n]);
			p.c.q_pos_base = 20;
			check(&p, true);
		}
}

/* Each subnormal half by itself: what upstream's decoder halves. */
static void
each_subnormal_norm_is_exact(void **state)
{
	const struct kernel *k = kernel_find("turbo4");
	struct problem p;
	float *got;
	uint32_t i, b;
	struct err e = {0};

	(void)state;
	need_device();
	problem_init(&p, k, 1, 1, 1024, NORMS_SUBNORMAL);
	for (i = 0; i < 1024; i++)
		for (b = 0; b < REF_QUARTERS; b++) {
			uint8_t *block = p.k + (i * REF_QUARTERS + b) * REF_TURBO4_BLOCK;
			block[0] = (uint8_t)i, block[1] = (uint8_t)(i >> 8);
		}
	/* Large enough that one ulp of a norm is seen. */
	for (i = 0; i < REF_HEAD; i++)
		p.q[i] *= 65536.0f;
	assert_int_equal(k->run(&p.c, p.want, &e), 0);
	assert_non_null(got = malloc(1024 * sizeof *got));
	run_problem(&p, 0, got);
	for (i = 0; i < 1024; i++)
		if (!(fabsf(got[i] - p.want[i]) <= 1e-5f * 200.0f * (float)i / 256.0f))
			fail_msg("norm %u: %.9g, wanted %.9g", i, (double)got[i],
				 (double)p.want[i]);
	free(got);
	problem_fini(&p);
}

static void
norm_that_is_no_number_gives_none(void **state)
{
	struct problem p;
	float *got;
	size_t r, i, v;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		/* Without any finite logit attention is zeros instead. */
		bool attention = kernels[r].v_bytes != 0;
		problem_init(&p, &kernels[r], 2, 1, 9, NORMS_NAN);
		p.c.q_pos_base = 5;
		assert_non_null(got = malloc(p.out_count * sizeof *got));
		for (v = 0; v < 2; v++) {
			run_problem(&p, v, got);
			for (i = 0; i < p.out_count; i++)
				assert_true(attention ? got[i] == 0.0f : isnan(got[i]));
		}
		free(got);
		problem_fini(&p);
	}
}

static void
all_equal_keys_give_the_mean_of_values(void **state)
{
	struct problem p;
	size_t r, i;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		size_t key = (size_t)kernels[r].k_bytes * kernels[r].k_blocks;
		problem_init(&p, &kernels[r], 4, 1, 300, NORMS_PLAIN);
		p.c.q_pos_base = 299;
		for (i = 1; i < 300; i++)
			memcpy(p.k + i * key, p.k, key);
		check(&p, true);
	}
}

static void
residual_byte_does_not_count_without_use_qjl(void **state)
{
	static const char *const names[] = {"polar", "polar_preht", "fused_attn_qjl_polar",
					    "fused_attn_qjl_polar_causal"};
	struct problem p;
	size_t r, i;

	(void)state;
	need_device();
	for (r = 0; r < str_count(names); r++) {
		const struct kernel *k = kernel_find(names[r]);
		problem_init(&p, k, 4, 2, 33, NORMS_PLAIN);
		p.c.use_qjl = false;
		p.c.q_pos_base = 30;
		for (i = 0; i < 66; i++)
			(k->v_bytes ? p.v : p.k)[i * REF_POLAR_BLOCK + 66] = i % 2 ? 1 : 0xff;
		check(&p, true);
	}
}

static void
causal_prefix_is_all_that_takes_part(void **state)
{
	static const uint32_t bases[] = {0, 5, 63, 64, 255, 256, 320, 332, 333, 4000000000u};
	struct problem p;
	size_t r, b;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++)
		for (b = 0; b < str_count(bases) && kernels[r].causal; b++) {
			problem_init(&p, &kernels[r], 4, 2, 333, NORMS_PLAIN);
			p.c.q_pos_base = bases[b];
			check(&p, true);
		}
}

/* Logits so far apart that weights against a wrong maximum overflow: it is found late for
 * one kv head; for the other early, and by few of the lanes that look for it. */
static void
attention_with_far_apart_logits_matches(void **state)
{
	struct problem p;
	size_t r, i;

	(void)state;
	need_device();
	for (r = 0; r < KERNEL_COUNT; r++) {
		if (!kernels[r].v_bytes)
			continue;
		problem_init(&p, &kernels[r], 4, 2, 600, NORMS_PLAIN);
		p.c.q_pos_base = 599;
		for (i = 0; i < 1200; i++) {
			uint16_t norm = ref_bf16_encode(i < 600	     ? 40.0f * (float)i
							: i % 16 == 7 ? 40.0f * (float)(1200 - i)
								      : 1.0f);
			p.k[i * REF_QJL_BLOCK + 32] = (uint8_t)norm;
			p.k[i * REF_QJL_BLOCK + 33] = (uint8_t)(norm >> 8);
		}
		check(&p, true);
	}
}

/* A device with small bindings and grids: the same numbers from many pieces. */
static void
pieces_give_the_same_numbers(void **state)
{
	static const struct vulkan_limits small[] = {
		{65536, {65535, 65535}}, /* range cuts keys */
		{16384, {65535, 65535}}, /* and scores of several heads */
		{1 << 27, {8, 65535}},   /* grids cut keys */
		{1 << 27, {65535, 1}},   /* and heads */
	};
	struct vulkan_limits real;
	struct problem p;
	size_t r, i;

	(void)state;
	need_device();
	real = session->limits;
	for (r = 0; r < KERNEL_COUNT; r++)
		for (i = 0; i < str_count(small); i++) {
			const struct kernel *k = &kernels[r];
			problem_init(&p, k, 8, 2, 1100, NORMS_PLAIN);
			p.c.q_pos_base = 1099;
			session->limits = small[i];
			if (k->v_bytes && small[i].range == 16384)
				session->limits.range = 65536;
			/* Attention in one workgroup a head can not be cut. */
			check(&p, !k->v_bytes);
			session->limits = real;
		}
}

/* Plans only: no such memory is here. */
static void
large_problem_is_cut_without_a_gap(void **state)
{
	static const struct vulkan_limits card = {UINT32_MAX, {65535, 65535}};
	struct backend_buffer none;
	struct backend_args a = {.n_heads = 4, .n_kv_heads = 2, .n_kv = 60000000};
	const struct kernel *k = kernel_find("polar");
	struct vulkan_plan p;
	struct err e = {0};
	size_t i, first, keys = 0;

	(void)state;
	a.q = (struct backend_span){&none, 0, 4 * REF_HEAD * 4};
	a.k = (struct backend_span){&none, 512, (size_t)2 * 60000000 * REF_POLAR_BLOCK};
	a.out = (struct backend_span){&none, 256, (size_t)4 * 60000000 * 4};
	assert_int_equal(vulkan_plan_kernel(k, 0, &a, &card, &p, &e), 0);
	assert_true(p.count > 2);
	for (i = 0; i < p.count; i++, keys += p.steps[i - 1].push.count) {
		const struct vulkan_step *s = &p.steps[i];
		const struct vulkan_binding *b = &s->bind[1], *o = &s->bind[3];
		assert_true(b->bytes <= card.range && o->bytes <= card.range);
		assert_int_equal(b->at % 256, 0);
		assert_int_equal(b->at + s->push.k_at, 512 + keys * REF_POLAR_BLOCK);
		assert_true(s->push.k_at + (size_t)s->push.count * REF_POLAR_BLOCK <= b->bytes);
		first = (size_t)s->push.head0 * 60000000 + keys % 60000000;
		assert_int_equal(o->at + 4 * (size_t)s->push.out_at, 256 + 4 * first);
		assert_true((size_t)s->grid[0] * s->specs[0] * 128 >= s->push.count);
	}
	assert_int_equal(keys, 120000000);
	vulkan_plan_free(&p);
	/* A usual size is one dispatch, of runs as long as the device stays busy. */
	a.n_heads = 8, a.n_kv_heads = 8, a.n_kv = 131072;
	a.q.bytes = 8 * REF_HEAD * 4;
	assert_int_equal(vulkan_plan_kernel(k, 0, &a, &card, &p, &e), 0);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.steps[0].specs[0], 4);
	assert_int_equal(p.steps[0].grid[0], 131072 / (4 * 128));
	assert_int_equal(p.steps[0].grid[1], 8);
	vulkan_plan_free(&p);
}

static void
problem_that_fits_no_binding_is_refused(void **state)
{
	struct vulkan_limits real;
	struct backend_args a = {.n_heads = 8, .n_kv_heads = 1, .n_kv = 4000,
				 .sm_scale = 1};
	const struct kernel *k = kernel_find("fused_attn_qjl_tbq");
	struct err e = {0};

	(void)state;
	need_device();
	real = session->limits;
	a.q = span_new(NULL, 8 * REF_PROJ * 4);
	a.k = span_new(NULL, 4000 * REF_QJL_BLOCK);
	a.v = span_new(NULL, 4000 * 56);
	a.out = span_new(NULL, 8 * REF_HEAD * 4);
	session->limits.range = 65536;
	assert_int_equal(vk->run(session, k, 1, &a, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.msg, "maxStorageBufferRange"));
	session->limits = real;
	span_end(&a.q, NULL, NULL);
	span_end(&a.k, NULL, NULL);
	span_end(&a.v, NULL, NULL);
	span_end(&a.out, NULL, NULL);
}

static void
spans_that_do_not_hold_the_problem_are_refused(void **state)
{
	const struct kernel *k = kernel_find("turbo3");
	struct backend_args a = {.n_heads = 1, .n_kv_heads = 1, .n_kv = 10}, bad;
	struct err e = {0};

	(void)state;
	need_device();
	a.q = span_new(NULL, 512), a.k = span_new(NULL, 560), a.out = span_new(NULL, 40);
	bad = a, bad.k.bytes--;
	assert_int_equal(vk->run(session, k, 0, &bad, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	bad = a, bad.out.at += 4;
	assert_int_equal(vk->run(session, k, 0, &bad, &e), -1);
	bad = a, bad.out.bytes = 1 << 20;
	assert_int_equal(vk->run(session, k, 0, &bad, &e), -1);
	bad = a, bad.q.buffer = NULL;
	assert_int_equal(vk->run(session, k, 0, &bad, &e), -1);
	bad = a, bad.n_kv_heads = 0;
	assert_int_equal(vk->run(session, k, 0, &bad, &e), -1);
	assert_int_equal(vk->run(session, k, 99, &a, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_int_equal(vk->run(session, k, 0, &a, &e), 0);
	span_end(&a.q, NULL, NULL);
	span_end(&a.k, NULL, NULL);
	span_end(&a.out, NULL, NULL);
}

static void
bytes_come_back_from_any_offset(void **state)
{
	static const size_t big = VULKAN_STAGING + 4099; /* more than one chunk */
	struct backend_buffer *a, *b;
	struct err e = {0};
	uint8_t *x, *y;
	size_t i;

	(void)state;
	need_device();
	assert_non_null(x = malloc(big));
	assert_non_null(y = malloc(big));
	for (i = 0; i < big; i++)
		x[i] = (uint8_t)(draw() >> 9);
	assert_int_equal(vk->buffer_new(session, big, &a, &e), 0);
	assert_int_equal(vk->buffer_new(session, big + 5, &b, &e), 0);
	assert_int_equal(vk->write(session, a, 0, x, big, &e), 0);
	assert_int_equal(vk->copy(session, b, 5, a, 1, big - 1, &e), 0);
	assert_int_equal(vk->read(session, b, 5, y, big - 1, &e), 0);
	assert_memory_equal(y, x + 1, big - 1);
	assert_int_equal(vk->read(session, a, 3, y, 7, &e), 0);
	assert_memory_equal(y, x + 3, 7);
	assert_int_equal(vk->read(session, a, big - 1, y, 2, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(vk->write(session, a, SIZE_MAX, x, 2, &e), -1);
	vk->buffer_free(session, a);
	vk->buffer_free(session, b);
	free(x), free(y);
}

static void
memory_that_the_device_has_not_is_named(void **state)
{
	struct backend_buffer *b = NULL;
	struct err e = {0};

	(void)state;
	need_device();
	assert_int_equal(vk->buffer_new(session, (size_t)1 << 50, &b, &e), -1);
	assert_int_equal(e.code, ERR_NOMEM);
	assert_null(b);
	assert_int_equal(vk->buffer_new(session, SIZE_MAX, &b, &e), -1);
	assert_int_equal(e.code, ERR_NOMEM);
}

static void
timing_measures_and_computes(void **state)
{
	double seconds[5] = {0};
	struct backend_timing t = {.warm = 1, .runs = 5, .seconds = seconds};
	const struct kernel *k = kernel_find("qjl");
	struct backend_args a;
	struct problem p;
	struct err e = {0};
	uint8_t *copied, *data;
	float got[99];
	size_t i;

	(void)state;
	need_device();
	problem_init(&p, k, 1, 1, 99, NORMS_PLAIN);
	assert_int_equal(k->run(&p.c, p.want, &e), 0);
	a = (struct backend_args){.n_heads = 1, .n_kv_heads = 1, .n_kv = 99};
	a.q = span_new(p.q, REF_PROJ * 4);
	a.k = span_new(p.k, p.k_bytes);
	a.out = span_new(NULL, 99 * 4);
	if (vk->time(session, k, 0, &a, &t, &e))
		fail_msg("%s", e.msg);
	for (i = 0; i < 5; i++)
		assert_true(seconds[i] >= 0 && seconds[i] < 60);
	span_end(&a.out, NULL, got);
	for (i = 0; i < 99; i++)
		assert_true(is_same(&p, i, got[i]));
	span_end(&a.k, p.k, NULL);
	/* The copy of benchmarks, over several workgroups and a part of one. */
	assert_non_null(data = malloc(40000));
	assert_non_null(copied = malloc(40000));
	for (i = 0; i < 40000; i++)
		data[i] = (uint8_t)(draw() >> 11);
	a.k = span_new(data, 40000), a.out = span_new(NULL, 40000);
	if (vk->time(session, NULL, 0, &a, &t, &e))
		fail_msg("%s", e.msg);
	a.out.bytes = 17;
	assert_int_equal(vk->time(session, NULL, 0, &a, &t, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	a.out.bytes = 40000;
	span_end(&a.out, NULL, copied);
	assert_memory_equal(copied, data, 40000);
	span_end(&a.k, data, NULL);
	free(copied), free(data);
	span_end(&a.q, p.q, NULL);
	problem_fini(&p);
}

static void
device_is_opened_by_its_uuid_only(void **state)
{
	struct backend_device other;
	struct backend_session *s = NULL;
	struct err e = {0};

	(void)state;
	need_device();
	other = device;
	other.uuid[0] = other.uuid[0] == '0' ? '1' : '0';
	assert_int_equal(vk->open(&other, &s, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_non_null(strstr(e.msg, other.uuid));
	/* The same card under another driver is another device. */
	other = device;
	snprintf(other.driver, sizeof other.driver, "another driver");
	assert_int_equal(vk->open(&other, &s, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	other = device;
	snprintf(other.note, sizeof other.note, "Vulkan 1.0.3, 1.1 is needed");
	assert_int_equal(vk->open(&other, &s, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_null(s);
	vk->close(NULL);
}

static void
shaders_use_the_validation_layer_without_a_word(void **state)
{
	(void)state;
	need_device();
	/* All that ran before this test, sessions that were closed included. */
	assert_int_equal(vulkan_messages_total(), 0);
}

static void
validation_message_fails_the_run(void **state)
{
	VkBufferCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 16};
	const struct kernel *k = kernel_find("turbo3");
	struct backend_args a = {.n_heads = 1, .n_kv_heads = 1, .n_kv = 0};
	struct backend_session *s = NULL;
	VkBuffer b = VK_NULL_HANDLE;
	struct err e = {0};

	(void)state;
	need_device();
	if (vk->open(&device, &s, &e))
		fail_msg("%s", e.msg);
	/* A buffer without usage. */
	(void)s->instance->vk.CreateBuffer(s->device, &wrong, NULL, &b);
	s->instance->vk.DestroyBuffer(s->device, b, NULL);
	assert_int_equal(vk->run(s, k, 0, &a, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	assert_non_null(strstr(e.msg, "VUID-VkBufferCreateInfo-usage"));
	vk->close(s);
}

/* ---- a driver that fails -------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL
submit_lost(VkQueue q, uint32_t n, const VkSubmitInfo *s, VkFence f)
{
	(void)q, (void)n, (void)s, (void)f;
	return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL
allocate_none(VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a,
	      VkDeviceMemory *out)
{
	(void)d, (void)i, (void)a, (void)out;
	return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void
device_that_is_lost_is_named_and_stays_lost(void **state)
{
	struct backend_args a = {.n_heads = 1, .n_kv_heads = 1, .n_kv = 1};
	const struct kernel *k = kernel_find("turbo3");
	struct backend_session *s = NULL, *kept = session;
	struct backend_buffer *b = NULL;
	PFN_vkAllocateMemory allocate;
	PFN_vkQueueSubmit submit;
	struct err e = {0};

	(void)state;
	need_device();
	if (vk->open(&device, &s, &e))
		fail_msg("%s", e.msg);
	session = s;
	a.q = span_new(NULL, 512), a.k = span_new(NULL, 56), a.out = span_new(NULL, 4);
	allocate = s->instance->vk.AllocateMemory;
	s->instance->vk.AllocateMemory = allocate_none;
	assert_int_equal(vk->buffer_new(s, 100, &b, &e), -1);
	assert_int_equal(e.code, ERR_NOMEM);
	assert_string_equal(e.msg, "vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)");
	assert_null(b);
	s->instance->vk.AllocateMemory = allocate;
	/* Want of memory does no harm; a lost device is the end. */
	assert_int_equal(vk->run(s, k, 0, &a, &e), 0);
	submit = s->instance->vk.QueueSubmit;
	s->instance->vk.QueueSubmit = submit_lost;
	assert_int_equal(vk->run(s, k, 0, &a, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	assert_string_equal(e.msg, "vkQueueSubmit: VK_ERROR_DEVICE_LOST (-4)");
	s->instance->vk.QueueSubmit = submit;
	assert_int_equal(vk->run(s, k, 0, &a, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	session = kept;
	vk->close(s);
}

static int
open_first(void **state)
{
	struct backend_device list[BACKEND_DEVICES];
	struct err e = {0};
	size_t count;

	(void)state;
	if (vk->list(list, BACKEND_DEVICES, &count, &e)) {
		print_message("%s\n", e.msg);
		return -1;
	}
	if (count == 0) {
		snprintf(why, sizeof why, "%s", e.msg);
		return 0;
	}
	device = list[0];
	print_message("device: %s, %s%s\n", device.name, device.driver,
		      device.software ? ", software" : "");
	if (vk->open(&device, &session, &e)) {
		print_message("%s\n", e.msg);
		return -1;
	}
	return 0;
}

static int
close_it(void **state)
{
	(void)state;
	vk->close(session);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_is_told_by_what_it_is),
		cmocka_unit_test(code_has_a_digest_for_each_shader),
		cmocka_unit_test(every_row_matches_its_fixture_in_every_variant),
		cmocka_unit_test(random_blocks_match_the_reference),
		cmocka_unit_test(head_groups_that_are_no_power_of_two_match),
		cmocka_unit_test(no_keys_give_no_scores_and_zero_attention),
		cmocka_unit_test(subnormal_and_huge_norms_match),
		cmocka_unit_test(each_subnormal_norm_is_exact),
		cmocka_unit_test(norm_that_is_no_number_gives_none),
		cmocka_unit_test(all_equal_keys_give_the_mean_of_values),
		cmocka_unit_test(residual_byte_does_not_count_without_use_qjl),
		cmocka_unit_test(causal_prefix_is_all_that_takes_part),
		cmocka_unit_test(attention_with_far_apart_logits_matches),
		cmocka_unit_test(pieces_give_the_same_numbers),
		cmocka_unit_test(large_problem_is_cut_without_a_gap),
		cmocka_unit_test(problem_that_fits_no_binding_is_refused),
		cmocka_unit_test(spans_that_do_not_hold_the_problem_are_refused),
		cmocka_unit_test(bytes_come_back_from_any_offset),
		cmocka_unit_test(memory_that_the_device_has_not_is_named),
		cmocka_unit_test(timing_measures_and_computes),
		cmocka_unit_test(device_is_opened_by_its_uuid_only),
		cmocka_unit_test(device_that_is_lost_is_named_and_stays_lost),
		cmocka_unit_test(shaders_use_the_validation_layer_without_a_word),
		cmocka_unit_test(validation_message_fails_the_run),
	};

	/* It stays, so that the leak checker can name it. */
	(void)dlopen(LAYER ".so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	setenv("VERIFY_VULKAN_VALIDATION", "1", 1);
	unsetenv("VERIFY_SPIRV_DIR");
	return cmocka_run_group_tests(tests, open_first, close_it);
}
