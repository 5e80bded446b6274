/*
 * kernel - the table of kernels: one row per thing a backend must get right.
 *
 * A row says what its fixture looks like, which bytes carry codes and norms, and which
 * functions of ref are its truth.  Suites name rows; code reads columns and never
 * compares a name.  All data is static: no ownership, any thread.
 */
#ifndef KERNELS_KERNEL_H
#define KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/ref.h"

#define KERNEL_COUNT 12
#define KERNEL_TOLERANCE 1e-3 /* absolute, strict, the same for all */

/* The shapes a fixture file comes in: its fields, in the order they are written. */
enum kernel_schema {
	KERNEL_TURBO, /* head_dim, n_kv, block_bytes, blocks_per_kv */
	KERNEL_QJL,   /* head_dim, proj_dim, n_heads, n_kv_heads, n_tokens, block_bytes */
	KERNEL_POLAR, /* head_dim, n_rows, block_bytes, use_qjl */
	KERNEL_PREHT, /* head_dim, n_rows, block_bytes, hadamard_inv_scale; two key sets */
	KERNEL_FUSED, /* head_dim, proj_dim, ..., cases */
};

/* A block format that an encoder writes, from float vectors of REF_HEAD. */
#define KERNEL_FORMATS 7
struct kernel_format {
	const char *name;      /* "turbo3", ..., "tbq3_0" */
	uint32_t bytes, blocks; /* of a block; blocks of a key */
	uint64_t pi_seed;      /* of the projection, 0: none */
	ref_quantise quantise; /* the truth */
};
extern const struct kernel_format kernel_formats[KERNEL_FORMATS];

/* Backends that have the kernel; a bit each, in the order of kernel_backends[]. */
enum {
	KERNEL_ON_CPU = 1u << 0,
	KERNEL_ON_CUDA = 1u << 1,
	KERNEL_ON_HIP = 1u << 2,
	KERNEL_ON_VULKAN = 1u << 3,
	KERNEL_ON_EMULATED = 1u << 4, /* the CUDA and HIP sources, played on the CPU */
	KERNEL_ON_METAL = 1u << 5,    /* translated only: no host program is built */
	KERNEL_ON_ALL = (1u << 6) - 1,
};

/* The places by name, and what the name's program does there. */
#define KERNEL_PLACES 6
struct kernel_place {
	const char *name;      /* as struct kernel_backend has it */
	uint32_t bit;
	const char *how;
};
extern const struct kernel_place kernel_places[KERNEL_PLACES];

struct kernel {
	const char *name;      /* in suites, reports and commands */
	const char *kernel;    /* the fixture's "kernel" field; several rows may share it */
	const char *file;      /* of fixtures/kernels/ */
	enum kernel_schema schema;
	bool use_qjl, causal;  /* which cases of such fixtures the row takes */
	uint32_t q_dim;        /* floats of a query: REF_HEAD, or REF_PROJ for sketches */
	uint32_t k_bytes, k_blocks; /* bytes of a block, blocks of a key */
	uint32_t v_bytes, v_blocks; /* 0: a score kernel, one output per key */
	uint32_t code_at, code_bytes; /* the codes of a k block */
	uint32_t norm_at;      /* its 16-bit norm, and a NaN in that format */
	uint16_t norm_nan;
	uint64_t pi_seed;      /* of the sketch's projection; 0: none */
	double tolerance;
	uint32_t backends;     /* KERNEL_ON_... */
	ref_quantise quantise_k, quantise_v;
	ref_run run;           /* the kernel, on the CPU */
	ref_run truth;         /* what makes the expected numbers, from the raw query: the
	                        * kernel itself, or for polar_preht the one it must equal */
};
extern const struct kernel kernels[KERNEL_COUNT];

const struct kernel *kernel_find(const char *name); /* a row's name; NULL if unknown */
/* First row with that "kernel" field; NULL if unknown. */
const struct kernel *kernel_of_field(const char *kernel);
/* Whether the row has that backend's bit.  The table does not limit a backend that it does
 * not know, such as one of a test. */
bool kernel_is_on(const struct kernel *k, const char *backend);
/* Whether the row is about such a case of its fixture. */
bool kernel_takes(const struct kernel *k, const struct ref_case *c);
/* Floats that the row writes for a case. */
size_t kernel_outputs(const struct kernel *k, const struct ref_case *c);

#endif
