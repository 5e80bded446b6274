#include "kernels/gpu_device.h"

#include <stdlib.h>
#include <string.h>

#include "common/str.h"

struct backend_buffer {
	struct backend_session *session;
	struct backend_buffer *next, **link;
	uint64_t address;
	size_t bytes;
};

struct backend_session {
	const struct gpu_api *api;
	struct gpu_context *context;
	struct gpu_limits limits;
	struct backend_code code;
	struct backend_buffer *buffers;
	uint64_t tables;       /* struct gpu_tables on the device */
	uint64_t work;         /* grows with what plans ask for */
	size_t work_bytes;
	char lost[200];        /* what the device failed with; "" while it lives */
};

/* ---- sessions ------------------------------------------------------------------- */

/* Every answer of the driver passes here: a device that failed is asked no more. */
static int
answer(struct backend_session *s, int rc, struct err *e)
{
	if (rc && e != NULL && e->code == ERR_DEVICE && s->lost[0] == '\0')
		str_show(s->lost, sizeof s->lost, e->msg, strlen(e->msg));
	return rc;
}

static int
is_lost(const struct backend_session *s, struct err *e)
{
	if (s->lost[0] == '\0')
		return 0;
	return err_set(e, ERR_DEVICE, "the device was lost before: %s", s->lost);
}

static int
tables_new(struct backend_session *s, struct err *e)
{
	struct gpu_tables t;

	memset(&t, 0, sizeof t);
	gpu_tables_fill(&t);
	if (s->api->alloc(s->context, sizeof t, &s->tables, e))
		return -1;
	return s->api->to_device(s->context, s->tables, &t, sizeof t, e);
}

int
gpu_device_open(const struct gpu_api *api, const struct backend_device *d,
	struct backend_session **out, struct err *e)
{
	struct backend_session *s = calloc(1, sizeof *s);

	if (s == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a session");
	s->api = api;
	if (api->open(d, &s->context, &s->limits, &s->code, e) || tables_new(s, e)) {
		gpu_device_close(s);
		return -1;
	}
	*out = s;
	return 0;
}

void
gpu_device_close(struct backend_session *s)
{
	if (s == NULL)
		return;
	while (s->buffers != NULL)
		gpu_device_buffer_free(s, s->buffers);
	if (s->context != NULL) {
		if (s->work)
			s->api->free(s->context, s->work);
		if (s->tables)
			s->api->free(s->context, s->tables);
		s->api->close(s->context);
	}
	free(s);
}

size_t
gpu_device_code(struct backend_session *s, struct backend_code *out, size_t max)
{
	if (max == 0)
		return 0;
	*out = s->code;
	return 1;
}

/* ---- buffers -------------------------------------------------------------------- */

int
gpu_device_buffer_new(struct backend_session *s, size_t bytes, struct backend_buffer **out,
	struct err *e)
{
	struct backend_buffer *b;
	size_t whole;

	if (is_lost(s, e))
		return -1;
	if (__builtin_add_overflow(bytes, (size_t)BACKEND_TAIL + BACKEND_ALIGN - 1, &whole))
		return err_set(e, ERR_NOMEM, "a buffer of %zu bytes is too large", bytes);
	whole -= whole % BACKEND_ALIGN;
	if ((b = calloc(1, sizeof *b)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a buffer");
	if (answer(s, s->api->alloc(s->context, whole, &b->address, e), e)) {
		free(b);
		return err_wrap(e, "a buffer of %zu bytes", bytes);
	}
	b->session = s;
	b->bytes = bytes;
	b->next = s->buffers;
	b->link = &s->buffers;
	if (b->next != NULL)
		b->next->link = &b->next;
	s->buffers = b;
	*out = b;
	return 0;
}

void
gpu_device_buffer_free(struct backend_session *s, struct backend_buffer *b)
{
	if (b == NULL)
		return;
	*b->link = b->next;
	if (b->next != NULL)
		b->next->link = b->link;
	s->api->free(s->context, b->address);
	free(b);
}

/* The device address of bytes that are all in the buffer. */
static int
bytes_at(const struct backend_session *s, const struct backend_buffer *b, size_t at,
	size_t bytes, const char *what, uint64_t *address, struct err *e)
{
	if (b == NULL || b->session != s || at > b->bytes || bytes > b->bytes - at)
		return err_set(e, ERR_USAGE, "%s: %zu bytes at %zu of a buffer of %zu", what,
			bytes, at, b ? b->bytes : 0);
	*address = b->address + at;
	return 0;
}

int
gpu_device_write(struct backend_session *s, struct backend_buffer *b, size_t at,
	const void *src, size_t bytes, struct err *e)
{
	uint64_t to = 0;

	if (is_lost(s, e) || bytes_at(s, b, at, bytes, "write", &to, e))
		return -1;
	return bytes ? answer(s, s->api->to_device(s->context, to, src, bytes, e), e) : 0;
}

int
gpu_device_read(struct backend_session *s, struct backend_buffer *b, size_t at, void *dst,
	size_t bytes, struct err *e)
{
	uint64_t from = 0;

	if (is_lost(s, e) || bytes_at(s, b, at, bytes, "read", &from, e))
		return -1;
	return bytes ? answer(s, s->api->to_host(s->context, dst, from, bytes, e), e) : 0;
}

int
gpu_device_copy(struct backend_session *s, struct backend_buffer *to, size_t to_at,
	struct backend_buffer *from, size_t from_at, size_t bytes, struct err *e)
{
	uint64_t dst = 0, src = 0;

	if (is_lost(s, e) || bytes_at(s, from, from_at, bytes, "copy from", &src, e) ||
		bytes_at(s, to, to_at, bytes, "copy to", &dst, e))
		return -1;
	if (bytes == 0)
		return 0;
	if (answer(s, s->api->copy(s->context, dst, src, bytes, e), e))
		return -1;
	return answer(s, s->api->sync(s->context, e), e);
}

/* ---- operands ------------------------------------------------------------------- */

/* A span that holds rows * columns things of `each` bytes. */
static int
operand(const struct backend_session *s, const struct backend_span *span, const char *what,
	size_t rows, size_t columns, size_t each, uint64_t *address, struct err *e)
{
	size_t need;

	if (__builtin_mul_overflow(rows, columns, &need) ||
		__builtin_mul_overflow(need, each, &need) || need > span->bytes)
		return err_set(e, ERR_USAGE,
			"%s: a span of %zu bytes is too short for %zu x %zu of %zu", what,
			span->bytes, rows, columns, each);
	if (span->at % BACKEND_ALIGN)
		return err_set(e, ERR_USAGE, "%s: a span at %zu, no multiple of %d", what,
			span->at, BACKEND_ALIGN);
	return bytes_at(s, span->buffer, span->at, span->bytes, what, address, e);
}

static int
bind(const struct backend_session *s, const struct kernel *k, const struct backend_args *a,
	struct gpu_args *g, struct err *e)
{
	size_t key = (size_t)k->k_bytes * k->k_blocks;
	size_t value = (size_t)k->v_bytes * k->v_blocks;
	bool prefix = a->causal && a->q_pos_base < a->n_kv;

	if (a->n_heads == 0 || a->n_kv_heads == 0 || a->n_heads % a->n_kv_heads)
		return err_set(e, ERR_USAGE, "%u heads over %u kv heads", a->n_heads,
			a->n_kv_heads);
	if (operand(s, &a->q, "q", a->n_heads, k->q_dim, sizeof(float), &g->q, e) ||
		operand(s, &a->k, "k", a->n_kv_heads, a->n_kv, key, &g->k, e) ||
		(value && operand(s, &a->v, "v", a->n_kv_heads, a->n_kv, value, &g->v, e)) ||
		operand(s, &a->out, "out", a->n_heads, value ? REF_HEAD : a->n_kv,
			sizeof(float), &g->out, e))
		return -1;
	g->n_heads = a->n_heads;
	g->n_kv_heads = a->n_kv_heads;
	g->n_kv = a->n_kv;
	g->visible = prefix ? a->q_pos_base + 1 : a->n_kv;
	g->use_qjl = a->use_qjl;
	g->sm_scale = a->sm_scale;
	g->bytes = a->out.bytes;
	return 0;
}

static int
bind_copy(const struct backend_session *s, const struct backend_args *a, struct gpu_args *g,
	struct err *e)
{
	if (operand(s, &a->k, "k", 1, 1, a->out.bytes, &g->k, e) ||
		operand(s, &a->out, "out", 1, 1, a->out.bytes, &g->out, e))
		return -1;
	g->bytes = a->out.bytes;
	return 0;
}

static int
bind_encode(const struct backend_session *s, const struct kernel_format *f,
	const struct backend_span *x, const struct backend_span *pi, size_t n,
	const struct backend_span *out, struct gpu_args *g, struct err *e)
{
	size_t key = (size_t)f->bytes * f->blocks;

	if (n > UINT32_MAX)
		return err_set(e, ERR_USAGE, "%zu keys are too many", n);
	if (operand(s, x, "x", n, REF_HEAD, sizeof(float), &g->x, e) ||
		(f->pi_seed && operand(s, pi, "pi", 1, REF_PI, sizeof(float), &g->pi, e)) ||
		operand(s, out, "out", n, 1, key, &g->out, e))
		return -1;
	g->n_kv = g->visible = (uint32_t)n;
	g->bytes = n * key;
	return 0;
}

/* ---- runs ----------------------------------------------------------------------- */

/* Room for the plan's scratch, kept for the next one. */
static int
work_grow(struct backend_session *s, size_t bytes, struct err *e)
{
	if (bytes <= s->work_bytes)
		return 0;
	if (s->work)
		s->api->free(s->context, s->work);
	s->work = 0;
	s->work_bytes = 0;
	if (answer(s, s->api->alloc(s->context, bytes, &s->work, e), e))
		return err_wrap(e, "%zu bytes of scratch", bytes);
	s->work_bytes = bytes;
	return 0;
}

static int
prepare(struct backend_session *s, const struct gpu_plan *p, struct gpu_args *g,
	struct err *e)
{
	if (p->count > GPU_STEPS)
		return err_set(e, ERR_UNSUPPORTED, "a plan of %u steps", p->count);
	if (work_grow(s, p->work, e))
		return -1;
	g->work = p->work ? s->work : 0;
	g->tables = s->tables;
	g->splits = p->splits;
	return 0;
}

static int
queue(struct backend_session *s, const struct gpu_plan *p, const struct gpu_args *g,
	struct err *e)
{
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (answer(s, s->api->launch(s->context, &p->steps[i], g, e), e))
			return -1;
	return 0;
}

static int
queue_and_wait(struct backend_session *s, const struct gpu_plan *p, struct gpu_args *g,
	struct err *e)
{
	if (prepare(s, p, g, e) || queue(s, p, g, e))
		return -1;
	return answer(s, s->api->sync(s->context, e), e);
}

size_t
gpu_device_variants(struct backend_session *s, const struct kernel *k,
	const char *names[BACKEND_VARIANTS])
{
	return gpu_variants(k, &s->limits, names);
}

int
gpu_device_run(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, struct err *e)
{
	struct gpu_args g = { 0 };
	struct gpu_plan p = { 0 };

	if (is_lost(s, e) || bind(s, k, a, &g, e) ||
		gpu_plan_kernel(k, variant, a, &s->limits, &p, e))
		return -1;
	return queue_and_wait(s, &p, &g, e);
}

static int
time_once(struct backend_session *s, const struct gpu_plan *p, const struct gpu_args *g,
	double *seconds, struct err *e)
{
	if (answer(s, s->api->timer_start(s->context, e), e) || queue(s, p, g, e))
		return -1;
	return answer(s, s->api->timer_stop(s->context, seconds, e), e);
}

int
gpu_device_time(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, const struct backend_timing *t, struct err *e)
{
	struct gpu_args g = { 0 };
	struct gpu_plan p = { 0 };
	unsigned i;

	if (is_lost(s, e) || (k ? bind(s, k, a, &g, e) : bind_copy(s, a, &g, e)))
		return -1;
	if (k ? gpu_plan_kernel(k, variant, a, &s->limits, &p, e)
	      : gpu_plan_copy(a, &s->limits, &p, e))
		return -1;
	if (prepare(s, &p, &g, e))
		return -1;
	for (i = 0; i < t->warm; i++)
		if (queue(s, &p, &g, e))
			return -1;
	if (answer(s, s->api->sync(s->context, e), e))
		return -1;
	for (i = 0; i < t->runs; i++)
		if (time_once(s, &p, &g, &t->seconds[i], e))
			return -1;
	return answer(s, s->api->sync(s->context, e), e);
}

int
gpu_device_encode(struct backend_session *s, const struct kernel_format *f,
	const struct backend_span *x, const struct backend_span *pi, size_t n,
	const struct backend_span *out, struct err *e)
{
	struct gpu_args g = { 0 };
	struct gpu_plan p = { 0 };

	if (is_lost(s, e) || bind_encode(s, f, x, pi, n, out, &g, e) ||
		gpu_plan_encode(f, n, &s->limits, &p, e))
		return -1;
	return queue_and_wait(s, &p, &g, e);
}
