/*
 * A device of the tests: it runs ref, or what a test puts in its place, and can be made
 * to do everything that a wrong kernel or a broken driver does.
 */
#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

struct backend_buffer {
	struct backend_buffer *next;
	uint8_t *data;
	size_t bytes;
};

/* A kernel that is handed writable operands: it may break anything. */
typedef int (*fake_run)(const struct kernel *k, struct ref_case *c, float *out,
	struct err *e);

static struct {
	fake_run run;            /* NULL: the row's own */
	struct backend_device devices[4];
	size_t count;
	const char *variants[BACKEND_VARIANTS];
	size_t variant_count;
	size_t lacks;            /* bit i: kernel i is not there */
	size_t runs, lost_after; /* lost_after: runs until the device fails, 0: never */
	size_t variant;          /* of the last run */
	size_t open, buffers;    /* that are not closed, not freed */
	double seconds;          /* of a timed run */
	enum err_code no_buffers; /* buffer_new says so */
} fake;

struct backend_session {
	struct backend_buffer *buffers;
};

static inline int
fake_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	size_t i;

	for (i = 0; i < fake.count && i < max; i++)
		out[i] = fake.devices[i];
	*count = i;
	if (i == 0)
		err_set(e, ERR_NO_DEVICE, "libfake.so.1 is not here");
	return 0;
}

static inline int
fake_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	if (str_eq(d->arch, "locked"))
		return err_set(e, ERR_DEVICE, "fakeOpen: FAKE_ERROR_LOCKED");
	*out = calloc(1, sizeof **out);
	fake.open += *out != NULL;
	return *out ? 0 : err_set(e, ERR_NOMEM, "no memory");
}

static inline void
fake_buffer_free(struct backend_session *s, struct backend_buffer *b)
{
	struct backend_buffer **p;

	for (p = &s->buffers; *p != b; p = &(*p)->next)
		;
	*p = b->next;
	free(b->data);
	free(b);
	fake.buffers--;
}

static inline void
fake_close(struct backend_session *s)
{
	if (s == NULL)
		return;
	while (s->buffers != NULL)
		fake_buffer_free(s, s->buffers);
	free(s);
	fake.open--;
}

static inline size_t
fake_code(struct backend_session *s, struct backend_code *out, size_t max)
{
	(void)s;
	if (max == 0)
		return 0;
	*out = (struct backend_code){"fake.bin", "", "by the tests"};
	memset(out->sha256, 'a', 64);
	return 1;
}

static inline int
fake_buffer_new(struct backend_session *s, size_t bytes, struct backend_buffer **out,
	struct err *e)
{
	struct backend_buffer *b = calloc(1, sizeof *b);

	if (fake.no_buffers != ERR_NONE || b == NULL || (b->data = malloc(bytes + 1)) == NULL) {
		free(b);
		return err_set(e, fake.no_buffers ? fake.no_buffers : ERR_NOMEM,
			"fakeAlloc: FAKE_ERROR_OUT_OF_MEMORY");
	}
	b->bytes = bytes;
	b->next = s->buffers;
	s->buffers = b;
	fake.buffers++;
	*out = b;
	return 0;
}

static inline int
fake_write(struct backend_session *s, struct backend_buffer *b, size_t at, const void *src,
	size_t bytes, struct err *e)
{
	(void)s;
	if (at > b->bytes || bytes > b->bytes - at)
		return err_set(e, ERR_DEVICE, "fakeWrite: FAKE_ERROR_RANGE");
	memcpy(b->data + at, src, bytes);
	return 0;
}

static inline int
fake_read(struct backend_session *s, struct backend_buffer *b, size_t at, void *dst,
	size_t bytes, struct err *e)
{
	(void)s;
	if (at > b->bytes || bytes > b->bytes - at)
		return err_set(e, ERR_DEVICE, "fakeRead: FAKE_ERROR_RANGE");
	memcpy(dst, b->data + at, bytes);
	return 0;
}

static inline int
fake_copy(struct backend_session *s, struct backend_buffer *to, size_t to_at,
	struct backend_buffer *from, size_t from_at, size_t bytes, struct err *e)
{
	return fake_write(s, to, to_at, from->data + from_at, bytes, e);
}

static inline size_t
fake_variants(struct backend_session *s, const struct kernel *k,
	const char *names[BACKEND_VARIANTS])
{
	size_t i;

	(void)s;
	if (fake.lacks >> (k - kernels) & 1)
		return 0;
	for (i = 0; i < fake.variant_count; i++)
		names[i] = fake.variants[i];
	return fake.variant_count;
}

static inline int
fake_launch(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, struct err *e)
{
	struct ref_case c = {.n_heads = a->n_heads, .n_kv_heads = a->n_kv_heads,
		.n_kv = a->n_kv, .use_qjl = a->use_qjl, .causal = a->causal,
		.q_pos_base = a->q_pos_base, .sm_scale = a->sm_scale};
	size_t keys = (size_t)a->n_kv_heads * a->n_kv;
	float *out = (float *)(void *)(a->out.buffer->data + a->out.at);

	(void)s;
	/* What every backend may rely on. */
	if (a->q.at % BACKEND_ALIGN || a->k.at % BACKEND_ALIGN || a->v.at % BACKEND_ALIGN ||
	    a->out.at % BACKEND_ALIGN || a->q.bytes != (size_t)a->n_heads * k->q_dim * 4 ||
	    a->k.bytes != keys * k->k_bytes * k->k_blocks ||
	    a->v.bytes != keys * k->v_bytes * k->v_blocks ||
	    a->out.bytes != kernel_outputs(k, &c) * 4 ||
	    a->k.at + a->k.bytes + BACKEND_TAIL > a->k.buffer->bytes)
		return err_set(e, ERR_USAGE, "operands that do not fit");
	fake.variant = variant;
	if (fake.lost_after > 0 && ++fake.runs >= fake.lost_after)
		return err_set(e, ERR_DEVICE, "fakeLaunch: FAKE_ERROR_LOST");
	c.q = (const float *)(const void *)(a->q.buffer->data + a->q.at);
	c.k = a->k.buffer->data + a->k.at;
	c.v = a->v.buffer ? a->v.buffer->data + a->v.at : NULL;
	return fake.run ? fake.run(k, &c, out, e) : k->run(&c, out, e);
}

static inline int
fake_time(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, const struct backend_timing *t, struct err *e)
{
	unsigned i;

	for (i = 0; i < t->runs; i++)
		t->seconds[i] = fake.seconds * (k == NULL ? 1 : 2 + variant) * (1 + i % 3);
	if (k != NULL)
		return fake_launch(s, k, variant, a, e);
	return fake_copy(s, a->out.buffer, a->out.at, a->k.buffer, a->k.at, a->out.bytes, e);
}

static const struct kernel_backend backend_fake = {
	.name = "fake", .no_device = "plug one in", .list = fake_list, .open = fake_open,
	.close = fake_close, .code = fake_code, .buffer_new = fake_buffer_new,
	.buffer_free = fake_buffer_free, .write = fake_write, .read = fake_read,
	.copy = fake_copy, .variants = fake_variants, .run = fake_launch, .time = fake_time,
};

/* One good device with one variant. */
static inline void
fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	fake.count = 1;
	fake.devices[0] = (struct backend_device){.name = "Fake One",
		.uuid = "01234567-89ab-cdef-0123-456789abcdef", .arch = "fake_1",
		.driver = "fake 1.0", .api = "1.0", .pci = "0000:17:00.0"};
	fake.variants[0] = "fast";
	fake.variant_count = 1;
	fake.seconds = 1e-3;
}

/* ---- what kernels do wrong ---- */

static inline size_t
fake_outputs(const struct kernel *k, const struct ref_case *c)
{
	return kernel_outputs(k, c);
}

static inline int
fake_writes_after(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[fake_outputs(k, c) * sizeof *out] ^= 1;
	return k->run(c, out, e);
}

static inline int
fake_writes_far_after(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	((uint8_t *)out)[fake_outputs(k, c) * sizeof *out + 1023] ^= 1;
	return k->run(c, out, e);
}

static inline int
fake_writes_before(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	out[-1] = 0;
	return k->run(c, out, e);
}

/* The norm of the first key, and back to what is right: only its bytes tell. */
static inline int
fake_changes_input(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	int rc = k->run(c, out, e);

	if (c->n_kv > 0)
		((uint8_t *)(uintptr_t)c->k)[k->norm_at] ^= 1;
	return rc;
}

static inline int
fake_changes_query(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	int rc = k->run(c, out, e);

	((float *)(uintptr_t)c->q)[(size_t)c->n_heads * k->q_dim - 1] += 1;
	return rc;
}

/* Leaves the last output as it was. */
static inline int
fake_forgets_last(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t n = fake_outputs(k, c);
	float last = n ? out[n - 1] : 0;
	int rc = k->run(c, out, e);

	if (n > 0)
		out[n - 1] = last;
	return rc;
}

static inline int
fake_gives_nan(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	uint32_t all_ones = UINT32_MAX;
	int rc = k->run(c, out, e);

	if (fake_outputs(k, c) > 0)
		memcpy(&out[fake_outputs(k, c) / 2], &all_ones, sizeof *out);
	return rc;
}

/* The outputs of the first two heads change places; nothing where there is one. */
static inline int
fake_swaps_heads(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t n = k->v_bytes ? REF_HEAD : c->n_kv, i;
	int rc = k->run(c, out, e);
	float spare;

	for (i = 0; i < n && c->n_heads > 1; i++)
		spare = out[i], out[i] = out[n + i], out[n + i] = spare;
	return rc;
}

/* Two thousandths in one output of a million. */
static inline int
fake_slips(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	static size_t done;
	size_t n = fake_outputs(k, c);
	int rc = k->run(c, out, e);

	if (done / 1000000 != (done + n) / 1000000)
		out[(done / 1000000 + 1) * 1000000 - done - 1] += 2e-3f;
	done += n;
	return rc;
}

/* Reads one key more than there is, and lets it take part. */
static inline int
fake_reads_past(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	size_t bytes = (size_t)k->k_bytes * k->k_blocks, n = fake_outputs(k, c);
	const uint8_t *past = c->k + (size_t)c->n_kv_heads * c->n_kv * bytes;
	uint16_t norm;

	if (k->run(c, out, e))
		return -1;
	memcpy(&norm, past + k->norm_at, sizeof norm);
	if (n > 0)
		out[n - 1] += 0 * (k->norm_nan == 0x7fc0 ? ref_bf16_decode(norm)
							 : ref_fp16_decode(norm));
	return 0;
}

/* Knows only as many kv heads as query heads. */
static inline int
fake_takes_wrong_kv_head(const struct kernel *k, struct ref_case *c, float *out,
	struct err *e)
{
	size_t bytes = (size_t)k->k_bytes * k->k_blocks, n = k->v_bytes ? REF_HEAD : c->n_kv;
	size_t value = (size_t)k->v_bytes * k->v_blocks, kv;
	struct ref_case one = *c;
	uint32_t h;

	one.n_heads = one.n_kv_heads = 1;
	for (h = 0; h < c->n_heads; h++) {
		kv = h % c->n_kv_heads;
		one.q = c->q + (size_t)h * k->q_dim;
		one.k = c->k + kv * c->n_kv * bytes;
		one.v = c->v ? c->v + kv * c->n_kv * value : NULL;
		if (k->run(&one, out + h * n, e))
			return -1;
	}
	return 0;
}

/* Norms below the smallest normal number count half, as in one public shader. */
static inline int
fake_halves_subnormals(const struct kernel *k, struct ref_case *c, float *out,
	struct err *e)
{
	uint8_t *keys = (uint8_t *)(uintptr_t)c->k, *keep, *p;
	size_t n = (size_t)c->n_kv_heads * c->n_kv * k->k_blocks, i;
	uint16_t norm;
	int rc;

	if ((keep = malloc(n * k->k_bytes + 1)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory");
	memcpy(keep, keys, n * k->k_bytes);
	for (i = 0; i < n && k->norm_nan == 0x7e00; i++) {
		p = keys + i * k->k_bytes + k->norm_at;
		norm = (uint16_t)(p[0] | p[1] << 8);
		if ((norm & 0x7c00) == 0)
			norm /= 2;
		p[0] = (uint8_t)norm, p[1] = (uint8_t)(norm >> 8);
	}
	rc = k->run(c, out, e);
	memcpy(keys, keep, n * k->k_bytes);
	free(keep);
	return rc;
}

/* One token too many of a causal prefix. */
static inline int
fake_sees_the_future(const struct kernel *k, struct ref_case *c, float *out, struct err *e)
{
	struct ref_case more = *c;

	more.q_pos_base = c->q_pos_base < c->n_kv ? c->q_pos_base + 1 : c->q_pos_base;
	return k->run(&more, out, e);
}

/* Takes polar's residual from the block although the run has none. */
static inline int
fake_trusts_the_block(const struct kernel *k, struct ref_case *c, float *out,
	struct err *e)
{
	struct ref_case other = *c;
	size_t i, n = (size_t)c->n_kv_heads * c->n_kv;
	bool any = false;

	for (i = 0; i < n && k->k_bytes == REF_POLAR_BLOCK; i++)
		any = any || (c->k[i * REF_POLAR_BLOCK + 66] & 1);
	other.use_qjl = other.use_qjl || any;
	return k->run(&other, out, e);
}

#endif
