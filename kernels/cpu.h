/*
 * cpu - the instruction sets that the CPU backend has kernels for, one row each.
 *
 * A set's kernels are compiled for it and called only where `usable` says that both the
 * processor and the operating system have it; the rest of the program runs anywhere.
 * They sum in f32 in any order, so they equal ref up to rounding.  They read a query
 * and an output at any address of a float's alignment, blocks at any address, and at
 * most BACKEND_TAIL bytes after the last block.  Single-threaded, no state.
 */
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/ref.h"

/* Found by the scalar function that it stands for: kernels share those, too. */
struct cpu_kernel {
	ref_run scalar, run;
};

struct cpu_set {
	const char *arch; /* "x86-64 avx512": of struct backend_device, and the key */
	const char *variant; /* "avx512" */
	bool (*usable)(void);
	const struct cpu_kernel *kernels; /* NULL: the scalar truth of each row */
	size_t kernel_count;
};

/* Best first; the scalar truth is the last. */
extern const struct cpu_set *const cpu_sets[];
extern const size_t cpu_set_count;

extern const struct cpu_set cpu_scalar;

/* Rows of a set's file, which is nothing on another processor. */
#define CPU_KERNELS 8
extern const struct cpu_kernel cpu_avx512[CPU_KERNELS], cpu_avx2[CPU_KERNELS];
extern const struct cpu_kernel cpu_neon[CPU_KERNELS];

/* The set's implementation of what `scalar` computes; NULL if it has none. */
ref_run cpu_find(const struct cpu_set *s, ref_run scalar);

#endif
