#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/cpu.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The bytes lie in an allocation of their own, so that a sanitizer sees both ends. */
struct backend_buffer {
	struct backend_buffer *next, **link;
	uint8_t *data;
	size_t bytes;
};

struct backend_session {
	const struct cpu_set *set;
	struct backend_buffer *buffers;
};

/* What the kernel calls the processor: "" when it does not say (aarch64). */
static void
processor_name(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];
	const char *p;

	out[0] = '\0';
	while (f != NULL && out[0] == '\0' && fgets(line, sizeof line, f) != NULL)
		if (str_starts(line, "model name") && (p = strchr(line, ':')) != NULL) {
			p += 1 + strspn(p + 1, " \t");
			str_show(out, size, p, strcspn(p, "\n"));
		}
	if (f != NULL)
		fclose(f);
}

/* qemu-user shows a program itself as /proc/self/exe, but not under this name. */
static bool
is_emulated(void)
{
	char exe[4096];
	ssize_t n = readlink("/proc/thread-self/exe", exe, sizeof exe - 1);
	const char *base;

	if (n < 0)
		return false;
	exe[n] = '\0';
	base = strrchr(exe, '/');
	return str_starts(base ? base + 1 : exe, "qemu-");
}

static void
describe(const struct cpu_set *set, unsigned index, struct backend_device *d)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct utsname u;

	memset(d, 0, sizeof *d);
	d->index = index;
	processor_name(d->name, sizeof d->name);
	if (uname(&u) == 0) {
		if (d->name[0] == '\0')
			snprintf(d->name, sizeof d->name, "%.32s processor", u.machine);
		snprintf(d->driver, sizeof d->driver, "%.32s %.80s", u.sysname,
			 u.release);
	}
	snprintf(d->arch, sizeof d->arch, "%s", set->arch);
	if (pages > 0 && page > 0)
		d->memory = (uint64_t)pages * (uint64_t)page;
	d->emulated = is_emulated();
}

static int
cpu_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	size_t i, n = 0;

	(void)e;
	for (i = 0; i < cpu_set_count && n < max; i++)
		if (cpu_sets[i]->usable()) {
			describe(cpu_sets[i], (unsigned)n, &out[n]);
			n++;
		}
	*count = n;
	return 0;
}

static int
cpu_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	const struct cpu_set *set = NULL;
	struct backend_session *s;
	size_t i;

	for (i = 0; i < cpu_set_count && set == NULL; i++)
		if (str_eq(cpu_sets[i]->arch, d->arch))
			set = cpu_sets[i];
	if (set == NULL || !set->usable())
		return err_set(e, ERR_UNSUPPORTED, "this processor has no %s", d->arch);
	if ((s = calloc(1, sizeof *s)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a session");
	s->set = set;
	*out = s;
	return 0;
}

static void
cpu_buffer_free(struct backend_session *s, struct backend_buffer *b)
{
	(void)s;
	if (b == NULL)
		return;
	*b->link = b->next;
	if (b->next != NULL)
		b->next->link = b->link;
	free(b->data);
	free(b);
}

static void
cpu_close(struct backend_session *s)
{
	if (s == NULL)
		return;
	while (s->buffers != NULL)
		cpu_buffer_free(s, s->buffers);
	free(s);
}

/* Its code is part of this program. */
static size_t
cpu_code(struct backend_session *s, struct backend_code *out, size_t max)
{
	struct err e = {0};
	char path[4096];
	const char *base;

	if (max == 0 || plat_self(path, sizeof path, &e) ||
	    digest_file(path, out->sha256, NULL, &e))
		return 0;
	base = strrchr(path, '/');
	base = base ? base + 1 : path;
	str_show(out->name, sizeof out->name, base, strlen(base));
	snprintf(out->how, sizeof out->how, "%s by %.40s", s->set->variant, COMPILER);
	return 1;
}

static int
cpu_buffer_new(struct backend_session *s, size_t bytes, struct backend_buffer **out,
	       struct err *e)
{
	struct backend_buffer *b = calloc(1, sizeof *b);

	if (b == NULL || bytes > SIZE_MAX - BACKEND_TAIL ||
	    (b->data = malloc(bytes + BACKEND_TAIL)) == NULL) {
		free(b);
		return err_set(e, ERR_NOMEM, "no memory for a buffer of %zu bytes",
			       bytes);
	}
	b->bytes = bytes;
	b->next = s->buffers;
	b->link = &s->buffers;
	if (b->next != NULL)
		b->next->link = &b->next;
	s->buffers = b;
	*out = b;
	return 0;
}

/* The bytes, or NULL with an error when they are not all in the buffer. */
static uint8_t *
bytes_at(const struct backend_buffer *b, size_t at, size_t bytes, const char *what,
	 struct err *e)
{
	if (b == NULL || at > b->bytes || bytes > b->bytes - at) {
		err_set(e, ERR_USAGE, "%s: %zu bytes at %zu of a buffer of %zu", what,
			bytes, at, b ? b->bytes : 0);
		return NULL;
	}
	return b->data + at;
}

static int
cpu_write(struct backend_session *s, struct backend_buffer *b, size_t at,
	  const void *src, size_t bytes, struct err *e)
{
	uint8_t *p = bytes_at(b, at, bytes, "write", e);

	(void)s;
	if (p == NULL)
		return -1;
	if (bytes)
		memcpy(p, src, bytes);
	return 0;
}

static int
cpu_read(struct backend_session *s, struct backend_buffer *b, size_t at, void *dst,
	 size_t bytes, struct err *e)
{
	const uint8_t *p = bytes_at(b, at, bytes, "read", e);

	(void)s;
	if (p == NULL)
		return -1;
	if (bytes)
		memcpy(dst, p, bytes);
	return 0;
}

static int
cpu_copy(struct backend_session *s, struct backend_buffer *to, size_t to_at,
	 struct backend_buffer *from, size_t from_at, size_t bytes, struct err *e)
{
	const uint8_t *src = bytes_at(from, from_at, bytes, "copy from", e);
	uint8_t *dst = src ? bytes_at(to, to_at, bytes, "copy to", e) : NULL;

	(void)s;
	if (dst == NULL)
		return -1;
	memmove(dst, src, bytes);
	return 0;
}

/* A span that holds rows * columns things of `each` bytes; nothing needs no buffer. */
static void *
operand(const struct backend_span *s, const char *what, size_t rows, size_t columns,
	size_t each, struct err *e)
{
	static float nothing[1];
	size_t need;

	if (__builtin_mul_overflow(rows, columns, &need) ||
	    __builtin_mul_overflow(need, each, &need) || need > s->bytes) {
		err_set(e, ERR_USAGE,
			"%s: a span of %zu bytes is too short for %zu x %zu", what,
			s->bytes, rows, columns);
		return NULL;
	}
	if (need == 0 && s->buffer == NULL)
		return nothing;
	return bytes_at(s->buffer, s->at, s->bytes, what, e);
}

/* The case and where its outputs go, all in bounds. */
static int
bind(const struct kernel *k, const struct backend_args *a, struct ref_case *c,
     float **out, struct err *e)
{
	size_t key = (size_t)k->k_bytes * k->k_blocks;
	size_t value = (size_t)k->v_bytes * k->v_blocks;

	*c = (struct ref_case){.n_heads = a->n_heads,
			       .n_kv_heads = a->n_kv_heads,
			       .n_kv = a->n_kv,
			       .use_qjl = a->use_qjl,
			       .causal = a->causal,
			       .q_pos_base = a->q_pos_base,
			       .sm_scale = a->sm_scale};
	if (a->n_heads == 0 || a->n_kv_heads == 0 || a->n_heads % a->n_kv_heads != 0)
		return err_set(e, ERR_USAGE, "%u heads over %u kv heads", a->n_heads,
			       a->n_kv_heads);
	if ((c->q = operand(&a->q, "q", a->n_heads, k->q_dim, sizeof *c->q, e)) ==
		    NULL ||
	    (c->k = operand(&a->k, "k", a->n_kv_heads, a->n_kv, key, e)) == NULL ||
	    (value &&
	     (c->v = operand(&a->v, "v", a->n_kv_heads, a->n_kv, value, e)) == NULL) ||
	    (*out = operand(&a->out, "out", a->n_heads, value ? REF_HEAD : a->n_kv,
			    sizeof **out, e)) == NULL)
		return -1;
	return 0;
}

/* A set's own kernel first, the scalar truth beside it; a set without one has none. */
static size_t
cpu_variants(struct backend_session *s, const struct kernel *k,
	     const char *names[BACKEND_VARIANTS])
{
	size_t n = 0;

	if (cpu_find(s->set, k->run) == NULL)
		return 0;
	names[n++] = s->set->variant;
	if (s->set != &cpu_scalar)
		names[n++] = cpu_scalar.variant;
	return n;
}

static int
find_run(const struct backend_session *s, const struct kernel *k, size_t variant,
	 ref_run *run, struct err *e)
{
	*run = cpu_find(s->set, k->run);
	if (*run == NULL || variant > (s->set != &cpu_scalar))
		return err_set(e, ERR_UNSUPPORTED, "%s: no %s variant %zu", k->name,
			       s->set->arch, variant);
	if (variant == 1)
		*run = k->run;
	return 0;
}

static int
cpu_run(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, struct err *e)
{
	struct ref_case c;
	ref_run run;
	float *out = NULL;

	if (find_run(s, k, variant, &run, e) || bind(k, a, &c, &out, e))
		return -1;
	return run(&c, out, e);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One launch of what time() measures. */
static int
launch(struct backend_session *s, const struct kernel *k, size_t variant,
       const struct backend_args *a, struct err *e)
{
	if (k != NULL)
		return cpu_run(s, k, variant, a, e);
	return cpu_copy(s, a->out.buffer, a->out.at, a->k.buffer, a->k.at, a->out.bytes,
			e);
}

static int
cpu_time(struct backend_session *s, const struct kernel *k, size_t variant,
	 const struct backend_args *a, const struct backend_timing *t, struct err *e)
{
	double start;
	unsigned i;

	for (i = 0; i < t->warm; i++)
		if (launch(s, k, variant, a, e))
			return -1;
	for (i = 0; i < t->runs; i++) {
		start = now();
		if (launch(s, k, variant, a, e))
			return -1;
		t->seconds[i] = now() - start;
	}
	return 0;
}

const struct kernel_backend backend_cpu = {
	.name = "cpu",
	.no_device = "the scalar truth needs nothing: this program is damaged",
	.list = cpu_list,
	.open = cpu_open,
	.close = cpu_close,
	.code = cpu_code,
	.buffer_new = cpu_buffer_new,
	.buffer_free = cpu_buffer_free,
	.write = cpu_write,
	.read = cpu_read,
	.copy = cpu_copy,
	.variants = cpu_variants,
	.run = cpu_run,
	.time = cpu_time,
};
