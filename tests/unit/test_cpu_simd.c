#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/backend.h"
#include "kernels/cpu.h"
#include "kernels/fixture.h"

/* A right kernel is within 1e-5 of numbers of this size: ten times that is a bug. */
#define CLOSE 1e-4
#define GUARD 0xa5
#define DEVICES 4

static struct {
	struct backend_device device[DEVICES];
	struct backend_session *session[DEVICES];
	size_t count;
} cpu;

static int
open_all(void **state)
{
	struct err e = {0};
	size_t i;

	(void)state;
	if (backend_cpu.list(cpu.device, DEVICES, &cpu.count, &e))
		return -1;
	for (i = 0; i < cpu.count; i++)
		if (backend_cpu.open(&cpu.device[i], &cpu.session[i], &e))
			return -1;
	return 0;
}

static int
close_all(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < cpu.count; i++)
		backend_cpu.close(cpu.session[i]);
	return 0;
}

static uint64_t seed = 1;

static uint32_t
draw(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33);
}

/* A case with arrays of its own, exactly as long as they have to be. */
struct problem {
	const struct kernel *kernel;
	struct ref_case in;
	float *q, *want;
	uint8_t *k, *v;
	size_t q_bytes, k_bytes, v_bytes, count; /* count: outputs */
};

static void *
allocate(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	assert_non_null(p);
	return p;
}

static uint16_t
norm_of(const struct kernel *k, float v)
{
	return k->norm_nan == 0x7e00 ? ref_fp16_encode(v) : ref_bf16_encode(v);
}

static void
put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v & 0xff);
	p[1] = (uint8_t)(v >> 8);
}

/* Every byte at random, codes, residual and padding alike, with norms of usual size. */
static void
problem_init(struct problem *p, const struct kernel *k, uint32_t n_kv, uint32_t gqa,
	     uint32_t n_kv_heads)
{
	size_t keys = (size_t)n_kv * n_kv_heads, i;

	memset(p, 0, sizeof *p);
	p->kernel = k;
	p->in = (struct ref_case){.n_heads = gqa * n_kv_heads,
				  .n_kv_heads = n_kv_heads,
				  .n_kv = n_kv,
				  .use_qjl = k->use_qjl,
				  .causal = k->causal,
				  .q_pos_base = n_kv / 2,
				  .sm_scale = 0.08838834764831845f};
	p->q_bytes = (size_t)p->in.n_heads * k->q_dim * sizeof(float);
	p->k_bytes = keys * k->k_bytes * k->k_blocks;
	p->v_bytes = keys * k->v_bytes * k->v_blocks;
	p->count = kernel_outputs(k, &p->in);
	p->in.q = p->q = allocate(p->q_bytes);
	p->in.k = p->k = allocate(p->k_bytes);
	p->in.v = p->v = allocate(p->v_bytes);
	p->want = allocate(p->count * sizeof(float));
	for (i = 0; i < p->q_bytes / sizeof(float); i++)
		p->q[i] = (float)((double)draw() / 0x40000000 - 1.0);
	for (i = 0; i < p->k_bytes; i++)
		p->k[i] = (uint8_t)(draw() >> 16);
	for (i = 0; i < p->v_bytes; i++)
		p->v[i] = (uint8_t)(draw() >> 16);
	for (i = 0; i < p->k_bytes; i += k->k_bytes)
		put16(p->k + i + k->norm_at,
		      norm_of(k, (float)(draw() % 1000 + 1) / 500.0f));
	for (i = 0; i < p->v_bytes; i += k->v_bytes)
		put16(p->v + i, ref_fp16_encode((float)(draw() % 1000 + 1) / 500.0f));
}

static void
problem_fini(struct problem *p)
{
	free(p->q);
	free(p->k);
	free(p->v);
	free(p->want);
}

/* The expected numbers, from the scalar truth. */
static void
problem_expect(struct problem *p)
{
	struct err e = {0};

	assert_int_equal(p->kernel->run(&p->in, p->want, &e), 0);
}

/* A buffer with the bytes in its middle, and guards of `fill` around them. */
static struct backend_span
upload(struct backend_session *s, const void *p, size_t bytes, int fill)
{
	size_t all = BACKEND_ALIGN + bytes + BACKEND_TAIL;
	struct backend_span out = {NULL, BACKEND_ALIGN, bytes};
	uint8_t *image = allocate(all);
	struct err e = {0};

	memset(image, fill, all);
	if (p != NULL && bytes)
		memcpy(image + BACKEND_ALIGN, p, bytes);
	assert_int_equal(backend_cpu.buffer_new(s, all, &out.buffer, &e), 0);
	assert_int_equal(backend_cpu.write(s, out.buffer, 0, image, all, &e), 0);
	free(image);
	return out;
}

/* Reads the outputs and looks at the bytes around them. */
static void
download(struct backend_session *s, struct backend_span span, float *got)
{
	size_t all = BACKEND_ALIGN + span.bytes + BACKEND_TAIL, i;
	uint8_t *image = allocate(all);
	struct err e = {0};

	assert_int_equal(backend_cpu.read(s, span.buffer, 0, image, all, &e), 0);
	for (i = 0; i < all; i++)
		if (i < BACKEND_ALIGN || i >= BACKEND_ALIGN + span.bytes)
			assert_int_equal(image[i], GUARD);
	memcpy(got, image + BACKEND_ALIGN, span.bytes);
	free(image);
}

static struct backend_args
bind(struct backend_session *s, const struct problem *p, int fill)
{
	return (struct backend_args){
		.n_heads = p->in.n_heads,
		.n_kv_heads = p->in.n_kv_heads,
		.n_kv = p->in.n_kv,
		.use_qjl = p->in.use_qjl,
		.causal = p->in.causal,
		.q_pos_base = p->in.q_pos_base,
		.sm_scale = p->in.sm_scale,
		.q = upload(s, p->q, p->q_bytes, fill),
		.k = upload(s, p->k, p->k_bytes, fill),
		.v = p->v_bytes ? upload(s, p->v, p->v_bytes, fill)
				: (struct backend_span){0},
		.out = upload(s, NULL, p->count * sizeof(float), GUARD)};
}

static void
unbind(struct backend_session *s, struct backend_args *a)
{
	backend_cpu.buffer_free(s, a->q.buffer);
	backend_cpu.buffer_free(s, a->k.buffer);
	backend_cpu.buffer_free(s, a->v.buffer);
	backend_cpu.buffer_free(s, a->out.buffer);
}

/* The default variant's outputs, freed with free. */
static float *
run_filled(struct backend_session *s, const struct problem *p, int fill)
{
	float *got = allocate(p->count * sizeof *got);
	struct backend_args a = bind(s, p, fill);
	struct err e = {0};

	assert_int_equal(backend_cpu.run(s, p->kernel, 0, &a, &e), 0);
	download(s, a.out, got);
	unbind(s, &a);
	return got;
}

/* The largest finite number, as a yardstick for rounding. */
static double
size_of(const float *v, size_t n)
{
	double max = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (isfinite(v[i]))
			max = fmax(max, fabs((double)v[i]));
	return max;
}

static void
check(size_t device, const struct problem *p, const float *got, double tolerance)
{
	size_t i;
	double d;

	for (i = 0; i < p->count; i++) {
		d = fabs((double)got[i] - (double)p->want[i]);
		if (isfinite(p->want[i]) ? d <= tolerance : !isfinite(got[i]))
			continue;
		fail_msg(
			"%s, %s, %u keys, %u heads over %u: output %zu is %.9g, wanted "
			"%.9g",
			cpu.device[device].arch, p->kernel->name, p->in.n_kv,
			p->in.n_heads, p->in.n_kv_heads, i, (double)got[i],
			(double)p->want[i]);
	}
}

/* Every device against the truth; guards are not finite as fp16, bf16 and float. */
static void
compare(struct problem *p, double tolerance)
{
	size_t i;
	float *got;

	problem_expect(p);
	for (i = 0; i < cpu.count; i++) {
		got = run_filled(cpu.session[i], p, 0xff);
		check(i, p, got, tolerance);
		free(got);
	}
}

static void
compare_relative(struct problem *p)
{
	problem_expect(p);
	/* And the last bit of a subnormal float. */
	compare(p, CLOSE * size_of(p->want, p->count) + 3e-45);
}

static void
devices_are_listed_best_first_and_the_truth_last(void **state)
{
	size_t i, j;

	(void)state;
	assert_true(cpu.count >= 1);
	assert_string_equal(cpu.device[cpu.count - 1].arch, "scalar");
#ifdef __aarch64__
	assert_string_equal(cpu.device[0].arch, "aarch64 neon");
#endif
#ifdef __x86_64__
	assert_int_equal(cpu.count, 1 + !!__builtin_cpu_supports("avx2") +
					    !!__builtin_cpu_supports("avx512bw"));
#endif
	for (i = 0; i < cpu.count; i++) {
		print_message("device %zu: %s, %s%s\n", i, cpu.device[i].name,
			      cpu.device[i].arch,
			      cpu.device[i].emulated ? ", emulated" : "");
		assert_int_equal(cpu.device[i].index, i);
		assert_true(cpu.device[i].name[0] != '\0');
		assert_false(cpu.device[i].software);
		for (j = 0; j < i; j++)
			assert_string_not_equal(cpu.device[i].arch, cpu.device[j].arch);
	}
}

static void
every_set_has_every_kernel_and_the_truth_beside_it(void **state)
{
	const char *names[BACKEND_VARIANTS];
	size_t i, k;

	(void)state;
	for (i = 0; i < cpu.count; i++)
		for (k = 0; k < KERNEL_COUNT; k++) {
			assert_int_equal(backend_cpu.variants(cpu.session[i],
							      &kernels[k], names),
					 i + 1 < cpu.count ? 2 : 1);
			assert_string_equal(names[i + 1 < cpu.count], "scalar");
		}
}

static void
the_code_is_this_program(void **state)
{
	struct backend_code code[2];

	(void)state;
	assert_int_equal(backend_cpu.code(cpu.session[0], code, 2), 1);
	assert_string_equal(code[0].name, "test_cpu_simd");
	assert_true(str_is_hex(code[0].sha256, 64));
	assert_int_equal(backend_cpu.code(cpu.session[0], code, 0), 0);
}

static void
fixtures_come_out_right(void **state)
{
	struct fixture *f;
	struct problem p;
	struct err e = {0};
	size_t i, d, n, cases = 0;
	float *got;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		assert_int_equal(fixture_load(&kernels[i], NULL, &f, NULL, &e), 0);
		for (n = 0; n < f->case_count; n++) {
			if (!kernel_takes(&kernels[i], &f->cases[n].in))
				continue;
			p = (struct problem){.kernel = &kernels[i],
					     .in = f->cases[n].in,
					     .q = f->cases[n].q,
					     .k = f->cases[n].k,
					     .v = f->cases[n].v,
					     .want = f->cases[n].expected,
					     .q_bytes = f->cases[n].q_count *
							sizeof(float),
					     .k_bytes = f->cases[n].k_bytes,
					     .v_bytes = f->cases[n].v_bytes,
					     .count = f->cases[n].expected_count};
			for (d = 0; d < cpu.count; d++, cases++) {
				got = run_filled(cpu.session[d], &p, 0xff);
				check(d, &p, got, CLOSE);
				free(got);
			}
		}
		fixture_free(f);
	}
	assert_true(cases >= KERNEL_COUNT * cpu.count);
}

static void
any_number_of_keys_and_heads_is_right(void **state)
{
	static const uint32_t counts[] = {0, 1, 7, 31, 33, 1000};
	static const uint32_t groups[] = {1, 2, 3, 4, 8, 16};
	struct problem p;
	size_t i, n, g;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (n = 0; n < str_count(counts); n++)
			for (g = 0; g < str_count(groups); g++) {
				problem_init(&p, &kernels[i], counts[n], groups[g],
					     counts[n] < 1000 ? 3 : 1);
				compare(&p, CLOSE);
				problem_fini(&p);
			}
}

static void
a_query_sees_the_tokens_before_it(void **state)
{
	static const uint32_t base[] = {0, 6, 32, 33, 500};
	struct problem p;
	size_t i, n;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (n = 0; n < str_count(base) && kernels[i].causal; n++) {
			problem_init(&p, &kernels[i], 33, 2, 2);
			p.in.q_pos_base = base[n];
			compare(&p, CLOSE);
			problem_fini(&p);
		}
}

/* Sets the norms of every block of K, or of V. */
static void
set_norms(struct problem *p, bool of_v, uint16_t norm)
{
	const struct kernel *k = p->kernel;
	size_t i;

	for (i = 0; !of_v && i < p->k_bytes; i += k->k_bytes)
		put16(p->k + i + k->norm_at, norm);
	for (i = 0; of_v && i < p->v_bytes; i += k->v_bytes)
		put16(p->v + i, norm);
}

static void
norms_of_any_size_are_read_exactly(void **state)
{
	/* Zeros, the smallest, the largest subnormal, the largest; of 16 bits each. */
	static const uint16_t fp16[] = {0, 0x8000, 1, 0x3ff, 0x400, 0x7bff, 0xfbff};
	static const uint16_t bf16[] = {0, 0x8000, 1, 0x7f, 0x80, 0x7f7f, 0xff7f};
	struct problem p;
	size_t i, n, v;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (n = 0; n < str_count(fp16); n++)
			for (v = 0; v < (kernels[i].v_bytes ? 2u : 1u); v++) {
				problem_init(&p, &kernels[i], 19, 2, 2);
				set_norms(&p, v,
					  v || kernels[i].norm_nan == 0x7e00 ? fp16[n]
									     : bf16[n]);
				compare_relative(&p);
				if (n < 2 && (v || !kernels[i].v_bytes))
					assert_true(size_of(p.want, p.count) == 0);
				else
					assert_true(size_of(p.want, p.count) > 0);
				problem_fini(&p);
			}
}

/* One norm that is not finite, in each block of a key or value in turn. */
static void
spoil(const struct kernel *k, bool of_v, uint16_t norm)
{
	uint32_t blocks = of_v ? k->v_blocks : k->k_blocks, b, bad, i;
	struct problem p;

	for (b = 0; b < blocks; b++) {
		problem_init(&p, k, 21, 2, 2);
		if (of_v)
			put16(p.v + (size_t)(2 * blocks + b) * k->v_bytes, norm);
		else
			put16(p.k + (size_t)(2 * blocks + b) * k->k_bytes + k->norm_at,
			      norm);
		compare(&p, CLOSE);
		for (i = bad = 0; i < p.count; i++)
			bad += !isfinite(p.want[i]);
		/* An infinite score of the wrong sign is a weight of 0. */
		if (k->v_bytes == 0)
			assert_int_equal(bad, 2);
		else if (of_v || norm == k->norm_nan)
			assert_true(bad >= 2 * REF_HEAD / blocks);
		problem_fini(&p);
	}
}

static void
norms_that_are_not_finite_show_in_the_outputs(void **state)
{
	const struct kernel *k;
	uint16_t inf;
	size_t i;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		inf = k->norm_nan == 0x7e00 ? 0x7c00 : 0x7f80;
		spoil(k, false, k->norm_nan);
		spoil(k, false, k->norm_nan | 0x8000);
		spoil(k, false, inf);
		spoil(k, false, inf | 0x8000);
		if (k->v_bytes) {
			spoil(k, true, 0x7e00);
			spoil(k, true, 0x7c00);
			spoil(k, true, 0xfc00);
		}
	}
}

static void
attention_without_a_finite_score_is_zero(void **state)
{
	struct problem p;
	size_t i;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		if (!kernels[i].v_bytes)
			continue;
		problem_init(&p, &kernels[i], 9, 2, 1);
		set_norms(&p, false, kernels[i].norm_nan);
		compare(&p, 0);
		assert_true(size_of(p.want, p.count) == 0);
		problem_fini(&p);
	}
}

static void
equal_keys_get_equal_scores(void **state)
{
	struct problem p;
	size_t i, d, n, key;
	float *got;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		problem_init(&p, &kernels[i], 45, 2, 1);
		key = (size_t)kernels[i].k_bytes * kernels[i].k_blocks;
		for (n = key; n < p.k_bytes; n++)
			p.k[n] = p.k[n - key];
		compare(&p, CLOSE);
		for (d = 0; d < cpu.count && !kernels[i].v_bytes; d++) {
			got = run_filled(cpu.session[d], &p, 0xff);
			for (n = 0; n < p.count; n++)
				assert_true(got[n] == got[n / 45 * 45]);
			free(got);
		}
		problem_fini(&p);
	}
}

/* The residual byte of every polar block, in K or V. */
static void
set_residual(struct problem *p, uint8_t value)
{
	uint8_t *blocks = p->kernel->v_bytes ? p->v : p->k;
	size_t bytes = p->kernel->v_bytes ? p->v_bytes : p->k_bytes, i;

	for (i = 66; i < bytes; i += REF_POLAR_BLOCK)
		blocks[i] = value;
}

static bool
is_polar(const struct kernel *k)
{
	return (k->v_bytes ? k->v_bytes : k->k_bytes) == REF_POLAR_BLOCK;
}

static void
the_residual_byte_counts_only_when_it_is_asked_for(void **state)
{
	float *with, *without;
	struct problem p;
	size_t i, d, residual;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (residual = 0; residual < 2 && is_polar(&kernels[i]); residual++) {
			problem_init(&p, &kernels[i], 11, 2, 2);
			p.in.use_qjl = residual;
			for (d = 0; d < cpu.count; d++) {
				set_residual(&p, 1);
				with = run_filled(cpu.session[d], &p, 0);
				set_residual(&p, 0);
				without = run_filled(cpu.session[d], &p, 0);
				assert_int_equal(memcmp(with, without,
							p.count * sizeof(float)) != 0,
						 residual);
				free(with);
				free(without);
			}
			/* Only the lowest bit is the residual. */
			set_residual(&p, 0xfe);
			compare(&p, CLOSE);
			problem_fini(&p);
		}
}

static void
bytes_around_the_blocks_do_not_matter(void **state)
{
	struct problem p;
	float *a, *b;
	size_t i, d;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		problem_init(&p, &kernels[i], 13, 3, 1);
		for (d = 0; d < cpu.count; d++) {
			a = run_filled(cpu.session[d], &p, 0);
			b = run_filled(cpu.session[d], &p, 0xff);
			assert_memory_equal(a, b, p.count * sizeof(float));
			free(a);
			free(b);
		}
		problem_fini(&p);
	}
}

static void
blocks_may_start_at_any_address(void **state)
{
	struct problem p;
	struct ref_case c;
	struct err e = {0};
	uint8_t *k, *v;
	float *q, *out;
	size_t i, s, at;
	ref_run run;

	(void)state;
	for (i = 0; i < KERNEL_COUNT; i++) {
		problem_init(&p, &kernels[i], 17, 2, 1);
		problem_expect(&p);
		k = allocate(p.k_bytes + 64);
		v = allocate(p.v_bytes + 64);
		q = allocate(p.q_bytes + sizeof *q);
		out = allocate((p.count + 1) * sizeof *out);
		memcpy(q + 1, p.q, p.q_bytes);
		for (s = 0; s < cpu_set_count; s++) {
			if (!cpu_sets[s]->usable())
				continue;
			run = cpu_find(cpu_sets[s], kernels[i].run);
			for (at = 0; at < 16; at++) {
				memcpy(k + at, p.k, p.k_bytes);
				memcpy(v + at, p.v, p.v_bytes);
				c = p.in;
				c.q = q + 1;
				c.k = k + at;
				c.v = v + at;
				assert_int_equal(run(&c, out + 1, &e), 0);
				check(s, &p, out + 1, CLOSE);
			}
		}
		free(k);
		free(v);
		free(q);
		free(out);
		problem_fini(&p);
	}
}

static void
wrong_arguments_are_refused(void **state)
{
	const struct kernel *k = kernel_find("fused_attn_qjl_polar");
	struct backend_session *s = cpu.session[0];
	struct backend_args good, a;
	struct backend_device d = {.arch = "x86-64 avx1024"};
	struct backend_session *none = NULL;
	struct err e = {0};
	struct problem p;
	float f;

	(void)state;
	assert_int_equal(backend_cpu.open(&d, &none, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_null(none);
	problem_init(&p, k, 5, 2, 2);
	good = bind(s, &p, 0);
	assert_int_equal(backend_cpu.run(s, k, 9, &good, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
#define REFUSED(change)                                                                \
	a = good, change, e.code = ERR_NONE;                                           \
	assert_int_equal(backend_cpu.run(s, k, 0, &a, &e), -1);                        \
	assert_int_equal(e.code, ERR_USAGE)
	REFUSED(a.n_kv_heads = 0);
	REFUSED(a.n_heads = 0);
	REFUSED(a.n_heads = 3);
	REFUSED(a.n_heads = 6);
	REFUSED(a.n_kv = 6);
	REFUSED(a.n_kv = UINT32_MAX);
	REFUSED(a.q.bytes -= 1);
	REFUSED(a.k.bytes -= 1);
	REFUSED(a.v.bytes -= 1);
	REFUSED(a.out.bytes -= 1);
	REFUSED(a.v.buffer = NULL);
	REFUSED(a.k.at += BACKEND_ALIGN);
	assert_int_equal(backend_cpu.read(s, good.q.buffer, SIZE_MAX, &f, 4, &e), -1);
	assert_int_equal(backend_cpu.write(s, good.q.buffer, 0, &f, SIZE_MAX, &e), -1);
	assert_int_equal(backend_cpu.run(s, k, 0, &good, &e), 0);
	unbind(s, &good);
	problem_fini(&p);
}

static void
time_runs_the_kernel_or_a_copy_that_often(void **state)
{
	double seconds[3] = {-1, -1, -1};
	struct backend_timing t = {.warm = 1, .runs = 2, .seconds = seconds};
	struct backend_session *s = cpu.session[0];
	struct backend_args a;
	struct err e = {0};
	struct problem p;
	float *got;

	(void)state;
	problem_init(&p, kernel_find("turbo4"), 100, 1, 1);
	problem_expect(&p);
	got = allocate(p.count * sizeof *got);
	a = bind(s, &p, 0);
	assert_int_equal(backend_cpu.time(s, p.kernel, 0, &a, &t, &e), 0);
	download(s, a.out, got);
	check(0, &p, got, CLOSE);
	assert_true(seconds[0] > 0 && seconds[1] > 0 && seconds[2] == -1);
	assert_int_equal(backend_cpu.time(s, NULL, 0, &a, &t, &e), 0);
	download(s, a.out, got);
	assert_memory_equal(got, p.k, p.count * sizeof *got);
	unbind(s, &a);
	free(got);
	problem_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_listed_best_first_and_the_truth_last),
		cmocka_unit_test(every_set_has_every_kernel_and_the_truth_beside_it),
		cmocka_unit_test(the_code_is_this_program),
		cmocka_unit_test(fixtures_come_out_right),
		cmocka_unit_test(any_number_of_keys_and_heads_is_right),
		cmocka_unit_test(a_query_sees_the_tokens_before_it),
		cmocka_unit_test(norms_of_any_size_are_read_exactly),
		cmocka_unit_test(norms_that_are_not_finite_show_in_the_outputs),
		cmocka_unit_test(attention_without_a_finite_score_is_zero),
		cmocka_unit_test(equal_keys_get_equal_scores),
		cmocka_unit_test(the_residual_byte_counts_only_when_it_is_asked_for),
		cmocka_unit_test(bytes_around_the_blocks_do_not_matter),
		cmocka_unit_test(blocks_may_start_at_any_address),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(time_runs_the_kernel_or_a_copy_that_often),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
