/*
 * gpu_device - the backend over any row of gpu_api: sessions, buffers, plans.
 *
 * A session whose device failed (ERR_DEVICE) is lost: each further call says so, with the
 * first message, and asks the driver for nothing more.
 */
#ifndef KERNELS_GPU_DEVICE_H
#define KERNELS_GPU_DEVICE_H

#include "kernels/backend.h"
#include "kernels/gpu_api.h"

CHECKED int gpu_device_open(const struct gpu_api *api, const struct backend_device *d,
	struct backend_session **out, struct err *e);
void gpu_device_close(struct backend_session *s);
size_t gpu_device_code(struct backend_session *s, struct backend_code *out, size_t max);
CHECKED int gpu_device_buffer_new(struct backend_session *s, size_t bytes,
	struct backend_buffer **out, struct err *e);
void gpu_device_buffer_free(struct backend_session *s, struct backend_buffer *b);
CHECKED int gpu_device_write(struct backend_session *s, struct backend_buffer *b, size_t at,
	const void *src, size_t bytes, struct err *e);
CHECKED int gpu_device_read(struct backend_session *s, struct backend_buffer *b, size_t at,
	void *dst, size_t bytes, struct err *e);
CHECKED int gpu_device_copy(struct backend_session *s, struct backend_buffer *to,
	size_t to_at, struct backend_buffer *from, size_t from_at, size_t bytes,
	struct err *e);
size_t gpu_device_variants(struct backend_session *s, const struct kernel *k,
	const char *names[BACKEND_VARIANTS]);
CHECKED int gpu_device_run(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, struct err *e);
CHECKED int gpu_device_time(struct backend_session *s, const struct kernel *k,
	size_t variant, const struct backend_args *a, const struct backend_timing *t,
	struct err *e);
CHECKED int gpu_device_encode(struct backend_session *s, const struct kernel_format *f,
	const struct backend_span *x, const struct backend_span *pi, size_t n,
	const struct backend_span *out, struct err *e);

/* The members that are the same for every row of gpu_api. */
#define GPU_DEVICE_CALLS                                                                 \
	.close = gpu_device_close, .code = gpu_device_code,                              \
	.buffer_new = gpu_device_buffer_new, .buffer_free = gpu_device_buffer_free,      \
	.write = gpu_device_write, .read = gpu_device_read, .copy = gpu_device_copy,     \
	.variants = gpu_device_variants, .run = gpu_device_run, .time = gpu_device_time, \
	.encode = gpu_device_encode

#endif
