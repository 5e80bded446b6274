/*
 * gpu_emulated - the kernels as compiled for gpu_fiber: a row per entry point and wave,
 * made at build time from the symbols of the objects.
 */
#ifndef KERNELS_GPU_EMULATED_H
#define KERNELS_GPU_EMULATED_H

#include "kernels/gpu_fiber.h"

struct gpu_emulated {
	const char *name;      /* NULL: the end */
	uint32_t wave;
	gpu_fiber_entry entry;
};
extern const struct gpu_emulated gpu_emulated[];

#endif
