/*
 * gpu_plan - how a kernel of the table runs on a CUDA or HIP device: which entry points
 * of the code object, in which grids, with how much scratch.
 *
 * Pure arithmetic over the shape and the device's limits; no allocation, any thread.
 */
#ifndef KERNELS_GPU_PLAN_H
#define KERNELS_GPU_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/backend.h"
#include "kernels/gpu_args.h"

#define GPU_STEPS 3

struct gpu_limits {
	uint32_t sms;          /* multiprocessors, compute units */
	uint32_t warp;         /* lanes: 32 or 64 */
	uint32_t shared;       /* bytes a block may ask for, opt-in included */
	uint32_t shared_sm;    /* bytes of a multiprocessor, over its blocks */
	bool matrix;           /* the code object for this device uses matrix units:
	                        * CUDA of sm_80 and later, and the shim at 32 lanes */
};

struct gpu_step {
	const char *entry;     /* extern "C" name in the code object */
	const char *file;      /* the kernels/FILE.cu that has it */
	uint32_t grid[3], block, shared; /* shared: dynamic bytes */
};

struct gpu_plan {
	struct gpu_step steps[GPU_STEPS];
	unsigned count;
	size_t work;           /* bytes of args.work */
	uint32_t splits;       /* args.splits */
};

/* Names of a kernel's variants, the default first. */
size_t gpu_variants(const struct kernel *k, const struct gpu_limits *l,
	const char *names[BACKEND_VARIANTS]);
/* -1: ERR_UNSUPPORTED, also for a shape whose grid the device can not have. */
CHECKED int gpu_plan_kernel(const struct kernel *k, size_t variant,
	const struct backend_args *a, const struct gpu_limits *l, struct gpu_plan *out,
	struct err *e);
/* The copy kernel that benchmarks measure against: out from k, a->out.bytes (a multiple
 * of 16). */
CHECKED int gpu_plan_copy(const struct backend_args *a, const struct gpu_limits *l,
	struct gpu_plan *out, struct err *e);
CHECKED int gpu_plan_encode(const struct kernel_format *f, size_t keys,
	const struct gpu_limits *l, struct gpu_plan *out, struct err *e);
/* The tables, from table.h. */
void gpu_tables_fill(struct gpu_tables *t);

#endif
