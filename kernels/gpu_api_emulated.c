#include "kernels/gpu_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/str.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_emulated.h"
#include "kernels/gpu_fiber.h"

#define PAGE 4096
#define SHARED (160 * 1024)    /* between sm_80 (163 KiB) and gfx90a (64 KiB) */

/* An allocation that ends at a page that can not be touched. */
struct memory {
	struct memory *next;
	void *map;
	size_t mapped;
	uint64_t address;
	size_t bytes;
};

struct gpu_context {
	uint32_t wave;
	struct memory *memory;
	double started;
};

static const struct model {
	const char *name, *arch;
	uint32_t wave, shared;
	bool matrix;
} models[] = {
	{ "emulated wave32", "wave32", 32, SHARED, true },
	{ "emulated wave64", "wave64", 64, 64 * 1024, false },
};

static int
emulated_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	size_t i;

	(void)e;
	for (i = 0; i < str_count(models) && i < max; i++) {
		memset(&out[i], 0, sizeof out[i]);
		out[i].index = (unsigned)i;
		(void)snprintf(out[i].name, sizeof out[i].name, "%s", models[i].name);
		(void)snprintf(out[i].arch, sizeof out[i].arch, "%s", models[i].arch);
		(void)snprintf(out[i].driver, sizeof out[i].driver, "none");
		out[i].software = out[i].emulated = true;
	}
	*count = i;
	return 0;
}

static void
code_tell(const struct model *m, struct backend_code *code)
{
	memset(code, 0, sizeof *code);
	(void)snprintf(code->name, sizeof code->name, "kernel sources");
	(void)snprintf(code->how, sizeof code->how, "played on the CPU in waves of %u",
		m->wave);
	if (gpu_code_digest(GPU_CODE_SOURCE, NULL, code->sha256))
		code->sha256[0] = '\0';
}

static int
emulated_open(const struct backend_device *d, struct gpu_context **out,
	struct gpu_limits *l, struct backend_code *code, struct err *e)
{
	const struct model *m;

	if (d->index >= str_count(models))
		return err_set(e, ERR_UNSUPPORTED, "no emulated device %u", d->index);
	if ((*out = calloc(1, sizeof **out)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a session");
	m = &models[d->index];
	(*out)->wave = m->wave;
	*l = (struct gpu_limits){ .sms = 4, .warp = m->wave, .shared = m->shared, .shared_sm = m->shared,
		.matrix = m->matrix };
	code_tell(m, code);
	return 0;
}

static void
emulated_free(struct gpu_context *c, uint64_t address)
{
	struct memory **at = &c->memory, *m;

	while (*at != NULL && (*at)->address != address)
		at = &(*at)->next;
	if ((m = *at) == NULL)
		return;
	*at = m->next;
	(void)munmap(m->map, m->mapped);
	free(m);
}

static void
emulated_close(struct gpu_context *c)
{
	if (c == NULL)
		return;
	while (c->memory != NULL)
		emulated_free(c, c->memory->address);
	free(c);
}

/* Ends at the guard page, but for what the start's alignment takes; filled with NaNs. */
static int
emulated_alloc(struct gpu_context *c, size_t bytes, uint64_t *address, struct err *e)
{
	struct memory *m = calloc(1, sizeof *m);
	size_t room;
	uint8_t *end;

	if (m == NULL || __builtin_add_overflow(bytes, (size_t)PAGE * 4, &room))
		goto nomem;
	room = (bytes + PAGE - 1) / PAGE * PAGE;
	m->mapped = room + 2 * PAGE;
	m->map = mmap(NULL, m->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->map == MAP_FAILED)
		goto nomem;
	end = (uint8_t *)m->map + PAGE + room;
	if (room && mprotect((uint8_t *)m->map + PAGE, room, PROT_READ | PROT_WRITE)) {
		(void)munmap(m->map, m->mapped);
		goto nomem;
	}
	memset(end - room, 0xff, room);
	m->bytes = (bytes + BACKEND_ALIGN - 1) / BACKEND_ALIGN * BACKEND_ALIGN;
	m->address = (uint64_t)(uintptr_t)(end - m->bytes);
	m->next = c->memory;
	c->memory = m;
	*address = m->address;
	return 0;
nomem:
	free(m);
	return err_set(e, ERR_NOMEM, "no memory for %zu bytes", bytes);
}

/* The bytes of an allocation, as a driver would refuse others. */
static int
memory_at(const struct gpu_context *c, uint64_t address, size_t bytes, const char *call,
	void **out, struct err *e)
{
	const struct memory *m;

	for (m = c->memory; m != NULL; m = m->next)
		if (address >= m->address && address - m->address <= m->bytes &&
			bytes <= m->bytes - (address - m->address)) {
			*out = (void *)(uintptr_t)address;
			return 0;
		}
	return err_set(e, ERR_DEVICE, "%s: illegal address", call);
}

static int
emulated_to_device(struct gpu_context *c, uint64_t to, const void *from, size_t bytes,
	struct err *e)
{
	void *p = NULL;

	if (memory_at(c, to, bytes, "to_device", &p, e))
		return -1;
	memcpy(p, from, bytes);
	return 0;
}

static int
emulated_to_host(struct gpu_context *c, void *to, uint64_t from, size_t bytes, struct err *e)
{
	void *p = NULL;

	if (memory_at(c, from, bytes, "to_host", &p, e))
		return -1;
	memcpy(to, p, bytes);
	return 0;
}

static int
emulated_copy(struct gpu_context *c, uint64_t to, uint64_t from, size_t bytes, struct err *e)
{
	void *dst = NULL, *src = NULL;

	if (memory_at(c, to, bytes, "copy", &dst, e) ||
		memory_at(c, from, bytes, "copy", &src, e))
		return -1;
	memmove(dst, src, bytes);
	return 0;
}

static int
emulated_launch(struct gpu_context *c, const struct gpu_step *s, const struct gpu_args *a,
	struct err *e)
{
	struct gpu_fiber_launch l = {
		.name = s->entry, .wave = c->wave,
		.grid = { s->grid[0], s->grid[1], s->grid[2] },
		.block = s->block, .shared = s->shared,
	};
	const struct gpu_emulated *r;

	for (r = gpu_emulated; r->name != NULL; r++)
		if (r->wave == c->wave && str_eq(r->name, s->entry)) {
			l.entry = r->entry;
			return gpu_fiber_run(&l, a, e);
		}
	return err_set(e, ERR_UNSUPPORTED, "no entry point %s", s->entry);
}

static int
emulated_sync(struct gpu_context *c, struct err *e)
{
	(void)c;
	(void)e;
	return 0;
}

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
emulated_timer_start(struct gpu_context *c, struct err *e)
{
	(void)e;
	c->started = now();
	return 0;
}

static int
emulated_timer_stop(struct gpu_context *c, double *seconds, struct err *e)
{
	(void)e;
	*seconds = now() - c->started;
	return 0;
}

const struct gpu_api gpu_api_emulated = {
	.backend = "emulated",
	.list = emulated_list,
	.open = emulated_open,
	.close = emulated_close,
	.alloc = emulated_alloc,
	.free = emulated_free,
	.to_device = emulated_to_device,
	.to_host = emulated_to_host,
	.copy = emulated_copy,
	.launch = emulated_launch,
	.sync = emulated_sync,
	.timer_start = emulated_timer_start,
	.timer_stop = emulated_timer_stop,
};
