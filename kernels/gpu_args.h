/*
 * gpu_args - what the device kernels are called with: the one struct that host C, nvcc,
 * hipcc and the CPU shim must see alike.
 *
 * Every entry point takes one struct gpu_args by value.  Pointers are device addresses.
 * Spans may be read up to BACKEND_TAIL bytes past their end and, from the aligned word
 * that holds their first byte, before it.
 */
#ifndef KERNELS_GPU_ARGS_H
#define KERNELS_GPU_ARGS_H

#include <stdint.h>

struct gpu_args {
	uint64_t q;          /* float [n_heads][128], or sketches [n_heads][256] */
	uint64_t k, v;       /* blocks, [n_kv_heads][n_kv] keys */
	uint64_t out;        /* float, scores [n_heads][n_kv] or [n_heads][128] */
	uint64_t work;       /* scratch of the plan, 256-byte aligned; 0: none */
	uint64_t tables;     /* struct gpu_tables */
	uint64_t x, pi;      /* encoders: float [n][128]; float [128][256] */
	uint64_t bytes;      /* of out: copy kernel, encoders */
	uint32_t n_heads, n_kv_heads, n_kv; /* encoders: n_kv is the number of keys */
	uint32_t visible;    /* tokens that take part: n_kv, or the causal prefix */
	uint32_t use_qjl;
	uint32_t splits;     /* of the tokens, attention */
	float sm_scale;
	uint32_t pad;
};

/* Levels as (high * ratio + low) * unit: operands of integer matrix units. */
enum { GPU_TURBO3, GPU_TURBO4, GPU_POLAR };
struct gpu_levels {
	int8_t high[16], low[16];
	float ratio, unit;
};

/* Written once per session from table.h. */
struct gpu_tables {
	float turbo3_c[8], turbo3_t[8];
	float turbo4_c[16], turbo4_t[16];
	float tbq3_c[8];
	float polar_c[16], polar_t[16];
	float tcq_c[512];
	struct gpu_levels levels[3]; /* GPU_TURBO3, ... */
	uint32_t signs1[4], signs2[4], signs32[1], residual[4]; /* bit maps, LSB first */
};

#endif
