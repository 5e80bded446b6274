#include "kernels/rig.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_Q, PART_K, PART_V, PART_OUT, PARTS };

/* An operand in the image of the device's memory. */
struct part {
	const char *name;
	const void *src; /* NULL for the output */
	size_t at, bytes;
	bool used;
};

struct layout {
	struct part parts[PARTS];
	size_t bytes;
};

/* Pairs read as fp16 or bf16, and fours as a float, are NaN. */
static uint8_t
guard_byte(size_t at)
{
	return at & 1 ? 0x7f : (uint8_t)(0xc0 | (at >> 1 & 0x3f));
}

static size_t
round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

int
rig_open(const struct kernel_backend *b, const struct backend_device *d,
	struct rig *out, struct err *e)
{
	memset(out, 0, sizeof *out);
	out->backend = b;
	out->device = *d;
	if (b->open(d, &out->session, e) == 0)
		return 0;
	out->session = NULL;
	return err_wrap(e, "%s device %u", b->name, d->index);
}

void
rig_close(struct rig *r)
{
	if (r->backend != NULL)
		r->backend->close(r->session);
	memset(r, 0, sizeof *r);
}

size_t
rig_variants(const struct rig *r, const struct kernel *k,
	const char *names[BACKEND_VARIANTS])
{
	if (r->lost || !kernel_is_on(k, r->backend->name))
		return 0;
	return r->backend->variants(r->session, k, names);
}

int
rig_note(struct rig *r, const struct err *e)
{
	r->lost = r->lost || e->code == ERR_DEVICE;
	return -1;
}

static void
lay_out(const struct kernel *k, const struct ref_case *c, struct layout *l)
{
	size_t keys = (size_t)c->n_kv_heads * c->n_kv, i, end = 0;

	*l = (struct layout){.parts = {
		[PART_Q] = {"q", c->q, 0, (size_t)c->n_heads * k->q_dim * sizeof(float), true},
		[PART_K] = {"k", c->k, 0, keys * k->k_bytes * k->k_blocks, true},
		[PART_V] = {"v", c->v, 0, keys * k->v_bytes * k->v_blocks, k->v_bytes > 0},
		[PART_OUT] = {"out", NULL, 0, kernel_outputs(k, c) * sizeof(float), true},
	}};
	for (i = 0; i < PARTS; i++) {
		if (!l->parts[i].used)
			continue;
		l->parts[i].at = round_up(end + RIG_GUARD, BACKEND_ALIGN);
		end = l->parts[i].at + l->parts[i].bytes;
	}
	l->bytes = round_up(end + RIG_GUARD, BACKEND_ALIGN);
}

static void
fill_image(const struct layout *l, uint8_t *image)
{
	const struct part *p;
	size_t i;

	for (i = 0; i < l->bytes; i++)
		image[i] = guard_byte(i);
	for (i = 0; i < PARTS; i++) {
		p = &l->parts[i];
		if (p->bytes == 0)
			continue;
		/* All ones is a NaN: an output that nobody writes is not a number. */
		if (p->src == NULL)
			memset(image + p->at, 0xff, p->bytes);
		else
			memcpy(image + p->at, p->src, p->bytes);
	}
}

/* The first byte of [from, to) that changed; to: none. */
static size_t
first_change(const uint8_t *image, const uint8_t *seen, size_t from, size_t to)
{
	if (memcmp(image + from, seen + from, to - from) == 0)
		return to;
	while (image[from] == seen[from])
		from++;
	return from;
}

/* Looks at the guard between two operands (NULL at either end of the memory). */
static void
look_at_guard(const struct part *before, const struct part *after, size_t end,
	const uint8_t *image, const uint8_t *seen, struct rig_faults *f)
{
	size_t from = before ? before->at + before->bytes : 0, to = after ? after->at : end;
	size_t at = first_change(image, seen, from, to);

	if (at == to || f->guard)
		return;
	f->guard = true;
	if (before == NULL || (after != NULL && to - at < at - from))
		snprintf(f->where, sizeof f->where, "%zu bytes before %s", to - at,
			after->name);
	else
		snprintf(f->where, sizeof f->where, "%zu bytes past the end of %s",
			at - from + 1, before->name);
}

static void
look_at_input(const struct part *p, const uint8_t *image, const uint8_t *seen,
	struct rig_faults *f)
{
	size_t end = p->at + p->bytes, at = first_change(image, seen, p->at, end);

	if (at == end || f->input)
		return;
	f->input = true;
	if (!f->guard)
		snprintf(f->where, sizeof f->where, "byte %zu of %s", at - p->at, p->name);
}

static void
look_for_faults(const struct layout *l, const uint8_t *image, const uint8_t *seen,
	struct rig_faults *f)
{
	const struct part *before = NULL, *p;
	size_t i;

	for (i = 0; i < PARTS; i++) {
		p = &l->parts[i];
		if (!p->used)
			continue;
		look_at_guard(before, p, l->bytes, image, seen, f);
		before = p;
	}
	look_at_guard(before, NULL, l->bytes, image, seen, f);
	for (i = 0; i < PARTS; i++)
		if (l->parts[i].used && l->parts[i].src != NULL)
			look_at_input(&l->parts[i], image, seen, f);
}

static struct backend_span
span(const struct part *p, struct backend_buffer *b)
{
	return p->used ? (struct backend_span){b, p->at, p->bytes}
		       : (struct backend_span){NULL, 0, 0};
}

/* Writes the image, runs, reads all of it back into seen. */
static int
run_image(struct rig *r, const struct kernel *k, size_t variant,
	const struct ref_case *c, const struct layout *l, const uint8_t *image,
	uint8_t *seen, struct err *e)
{
	const struct kernel_backend *b = r->backend;
	struct backend_buffer *buffer = NULL;
	struct backend_args a = {.n_heads = c->n_heads,
		.n_kv_heads = c->n_kv_heads, .n_kv = c->n_kv, .use_qjl = c->use_qjl,
		.causal = c->causal, .q_pos_base = c->q_pos_base, .sm_scale = c->sm_scale};
	int rc = -1;

	if (b->buffer_new(r->session, l->bytes, &buffer, e)) {
		buffer = NULL;
		goto out;
	}
	a.q = span(&l->parts[PART_Q], buffer);
	a.k = span(&l->parts[PART_K], buffer);
	a.v = span(&l->parts[PART_V], buffer);
	a.out = span(&l->parts[PART_OUT], buffer);
	if (b->write(r->session, buffer, 0, image, l->bytes, e) ||
	    b->run(r->session, k, variant, &a, e) ||
	    b->read(r->session, buffer, 0, seen, l->bytes, e))
		goto out;
	rc = 0;
out:
	if (rc)
		rig_note(r, e);
	/* Of a lost session only close may follow. */
	if (!r->lost && buffer != NULL)
		b->buffer_free(r->session, buffer);
	return rc;
}

int
rig_run(struct rig *r, const struct kernel *k, size_t variant, const struct ref_case *c,
	float *out, struct rig_faults *f, struct err *e)
{
	struct layout l;
	uint8_t *image = NULL, *seen = NULL;
	int rc = -1;

	memset(f, 0, sizeof *f);
	if (r->lost) {
		err_set(e, ERR_DEVICE, "the device failed before this");
		return err_hint(e, "look for the first check that is blocked");
	}
	lay_out(k, c, &l);
	if ((image = malloc(l.bytes)) == NULL || (seen = malloc(l.bytes)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for %zu bytes of operands", l.bytes);
		goto out;
	}
	fill_image(&l, image);
	if (run_image(r, k, variant, c, &l, image, seen, e))
		goto out;
	look_for_faults(&l, image, seen, f);
	if (l.parts[PART_OUT].bytes)
		memcpy(out, seen + l.parts[PART_OUT].at, l.parts[PART_OUT].bytes);
	rc = 0;
out:
	free(image);
	free(seen);
	return rc;
}
