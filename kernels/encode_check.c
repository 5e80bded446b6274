#include "kernels/encode_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/encode_form.h"
#include "kernels/encode_input.h"
#include "kernels/encode_judge.h"

#define BATCH 65536 /* keys at once, at most */

/* What is encoded: from one piece of device memory into it. */
struct image {
	uint8_t *bytes, *seen;
	size_t x_at, pi_at, out_at, out_bytes, size;
};

/* One format on one device. */
struct work {
	struct rig *rig;
	const struct encode_form *form;
	const float *pi; /* NULL: the format has none */
	size_t key;	 /* bytes of a key */
	struct encode_row *row;
};

static size_t
place(size_t *end, size_t bytes)
{
	size_t at =
		(*end + RIG_GUARD + BACKEND_ALIGN - 1) / BACKEND_ALIGN * BACKEND_ALIGN;

	*end = at + bytes;
	return at;
}

/* Guards differ from place to place and are NaNs when they are read as floats. */
static void
image_fill(struct image *m, const struct work *w, const float *x, size_t n,
	   uint8_t garbage)
{
	size_t i;

	for (i = 0; i < m->size; i++)
		m->bytes[i] = i & 1 ? 0x7f : (uint8_t)(0xc0 | (i >> 1 & 0x3f));
	memcpy(m->bytes + m->x_at, x, n * REF_HEAD * sizeof *x);
	if (w->pi != NULL)
		memcpy(m->bytes + m->pi_at, w->pi, REF_PI * sizeof *w->pi);
	memset(m->bytes + m->out_at, garbage, m->out_bytes);
}

static int
image_encode(const struct image *m, struct work *w, size_t n, struct err *e)
{
	const struct kernel_backend *b = w->rig->backend;
	struct backend_session *s = w->rig->session;
	struct backend_buffer *buffer = NULL;
	struct backend_span x, pi, out;
	int rc = -1;

	if (b->buffer_new(s, m->size, &buffer, e)) {
		buffer = NULL;
		goto out;
	}
	x = (struct backend_span){buffer, m->x_at, n * REF_HEAD * sizeof(float)};
	pi = (struct backend_span){buffer, m->pi_at, REF_PI * sizeof(float)};
	out = (struct backend_span){buffer, m->out_at, m->out_bytes};
	if (b->write(s, buffer, 0, m->bytes, m->size, e) ||
	    b->encode(s, w->row->format, &x, w->pi != NULL ? &pi : NULL, n, &out, e) ||
	    b->read(s, buffer, 0, m->seen, m->size, e))
		goto out;
	rc = 0;
out:
	if (rc)
		rig_note(w->rig, e);
	/* Of a lost session only close may follow. */
	if (!w->rig->lost && buffer != NULL)
		b->buffer_free(s, buffer);
	return rc;
}

/* Encodes n keys over garbage and looks at all that is not output. */
static int
encode_batch(struct work *w, const float *x, size_t n, uint8_t garbage, uint8_t *out,
	     struct err *e)
{
	struct image m = {.out_bytes = n * w->key};
	size_t end = 0, after;
	int rc = -1;

	/* Keys come last, so that reading on leaves the buffer where that can show. */
	m.out_at = place(&end, m.out_bytes);
	m.pi_at = place(&end, w->pi != NULL ? REF_PI * sizeof *w->pi : 0);
	m.x_at = place(&end, n * REF_HEAD * sizeof *x);
	m.size = end + BACKEND_TAIL;
	after = m.out_at + m.out_bytes;
	if ((m.bytes = malloc(m.size)) == NULL || (m.seen = malloc(m.size)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for %zu bytes of keys", m.size);
		goto out;
	}
	image_fill(&m, w, x, n, garbage);
	if (image_encode(&m, w, n, e))
		goto out;
	if (memcmp(m.bytes, m.seen, m.out_at) != 0 ||
	    memcmp(m.bytes + after, m.seen + after, m.size - after) != 0) {
		w->row->guard_intact = false;
		encode_judge_find(
			w->row,
			"encoding %zu keys changed bytes that are not its output", n);
	}
	memcpy(out, m.seen + m.out_at, m.out_bytes);
	rc = 0;
out:
	free(m.bytes);
	free(m.seen);
	return rc;
}

/* Ends of tiles, waves and blocks fall everywhere. */
static size_t
batch_keys(size_t number, size_t left)
{
	static const size_t sizes[] = {1, 31, 33, 2, 65, 7, 127};
	size_t n = number < str_count(sizes) ? sizes[number] : BATCH;

	return n < left ? n : left;
}

static int
encode_all(struct work *w, const struct encode_input *in, uint8_t garbage, uint8_t *out,
	   struct err *e)
{
	size_t at, n, number = 0;

	for (at = 0; at < in->count; at += n) {
		n = batch_keys(number++, in->count - at);
		if (encode_batch(w, in->x + at * REF_HEAD, n, garbage,
				 out + at * w->key, e))
			return -1;
	}
	return 0;
}

static void
compare_runs(struct work *w, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (a[i] != b[i]) {
			w->row->unwritten++;
			encode_judge_find(
				w->row,
				"byte %zu of key %zu depends on what was there before",
				i % w->key, i / w->key);
		}
}

static void
judge_all(struct work *w, const struct encode_input *in, const uint8_t *got)
{
	struct encode_judge j = {.form = w->form, .pi = w->pi, .row = w->row};
	uint8_t want[REF_POLAR_BLOCK];
	size_t i;

	for (i = 0; i < in->count; i++) {
		j.x = in->x + i * REF_HEAD;
		j.kind = in->kind[i];
		j.at = i;
		w->form->quantise(j.x, w->pi, want);
		encode_judge_key(&j, want, got + i * w->key);
	}
	/* The last key is a usual one. */
	encode_judge_control(&j, want);
}

static int
check_keys(struct work *w, const struct encode_input *in, struct err *e)
{
	size_t bytes = in->count * w->key;
	uint8_t *a = malloc(bytes), *b = malloc(bytes);
	int rc = -1;

	if (a == NULL || b == NULL) {
		err_set(e, ERR_NOMEM, "no memory for %zu bytes of blocks", bytes);
		goto out;
	}
	if (encode_all(w, in, 0xa5, a, e) || encode_all(w, in, 0x5a, b, e))
		goto out;
	compare_runs(w, a, b, bytes);
	judge_all(w, in, a);
	rc = 0;
out:
	free(a);
	free(b);
	return rc;
}

static int
pi_make(uint64_t seed, float **out, struct err *e)
{
	*out = NULL;
	if (seed == 0)
		return 0;
	if ((*out = calloc(REF_PI, sizeof **out)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a projection");
	ref_pi_fill(seed, *out);
	return 0;
}

static int
check_format(struct rig *r, const struct encode_options *o, struct encode_row *row,
	     struct err *e)
{
	const struct kernel_format *f = row->format;
	struct work w = {.rig = r, .row = row, .key = (size_t)f->bytes * f->blocks};
	struct encode_input in = {0};
	float *pi = NULL;
	int rc = -1;

	if (r->backend->encode == NULL)
		return err_set(e, ERR_UNSUPPORTED, "the backend %s has no encoders",
			       r->backend->name);
	if (r->lost)
		return err_set(e, ERR_DEVICE, "the device failed before this");
	if ((w.form = encode_form_find(f->quantise)) == NULL)
		return err_set(e, ERR_UNSUPPORTED, "nothing reads blocks of %s back",
			       f->name);
	if (pi_make(f->pi_seed, &pi, e) ||
	    encode_input_make(w.form, o->keys ? o->keys : ENCODE_KEYS,
			      o->seed ? o->seed : ENCODE_SEED, &in, e))
		goto out;
	w.pi = pi;
	rc = check_keys(&w, &in, e);
out:
	encode_input_fini(&in);
	free(pi);
	return rc;
}

static void
check_row(struct rig *r, const struct encode_options *o, const struct kernel_format *f,
	  struct encode_row *row)
{
	struct err e = {0};

	memset(row, 0, sizeof *row);
	row->format = f;
	row->guard_intact = true;
	row->worst_cost = -INFINITY;
	row->outcome = OUTCOME_PASS;
	if (check_format(r, o, row, &e) == 0)
		return;
	row->outcome = OUTCOME_BLOCKED;
	row->why = e.code;
	str_show(row->detail, sizeof row->detail, e.msg, strlen(e.msg));
}

static bool
is_asked_for(const struct encode_options *o, const char *name)
{
	size_t i;

	for (i = 0; i < o->only_count; i++)
		if (str_eq(o->only[i], name))
			return true;
	return o->only_count == 0;
}

static int
options_check(const struct encode_options *o, struct err *e)
{
	size_t i, f;

	for (i = 0; i < o->only_count; i++) {
		for (f = 0; f < KERNEL_FORMATS; f++)
			if (str_eq(o->only[i], kernel_formats[f].name))
				break;
		if (f == KERNEL_FORMATS)
			return err_set(e, ERR_USAGE,
				       "%s is no format that encoders write",
				       o->only[i]);
	}
	if (o->keys > ENCODE_KEYS_MAX)
		return err_set(e, ERR_USAGE, "%zu keys are more than %u", o->keys,
			       ENCODE_KEYS_MAX);
	return 0;
}

static void
conclude(struct encode_report *out)
{
	const struct encode_row *row;
	size_t i;

	for (i = 0; i < out->count; i++) {
		row = &out->rows[i];
		out->passed += row->outcome == OUTCOME_PASS;
		out->failed += row->outcome == OUTCOME_FAIL;
		if (row->outcome == OUTCOME_BLOCKED && out->blocked++ == 0)
			out->why = row->why;
	}
	out->outcome = out->failed    ? OUTCOME_FAIL
		       : out->blocked ? OUTCOME_BLOCKED
				      : OUTCOME_PASS;
}

int
encode_check_run(struct rig *r, const struct encode_options *o,
		 struct encode_report *out, struct err *e)
{
	size_t f;

	memset(out, 0, sizeof *out);
	if (options_check(o, e))
		return -1;
	for (f = 0; f < KERNEL_FORMATS; f++)
		if (is_asked_for(o, kernel_formats[f].name))
			check_row(r, o, &kernel_formats[f], &out->rows[out->count++]);
	conclude(out);
	return 0;
}
