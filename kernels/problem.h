/*
 * problem - random operands for a kernel, what ref says to them, and how far off each
 * output may be.
 *
 * Life: problem_init, problem_fini.  Threads: no shared state.
 */
#ifndef KERNELS_PROBLEM_H
#define KERNELS_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/draw.h"
#include "kernels/kernel.h"

/* What the operands are like. */
struct problem_kind {
	const char *name;
	enum draw_norms k, v; /* attention: huge keys are ordinary, their logits would be
	                       * further apart than any rounding matters */
	float q_scale;        /* of a normal query: shows small norms, makes large logits */
	bool mixed;           /* each key has norms of a kind of its own */
	bool equal;           /* all keys of all heads are one, and so are the values */
	bool strays;          /* reserved bits are random */
	bool edge;            /* the largest element of a query is just below a power of 2 */
};

struct problem_shape {
	uint32_t gqa, n_kv_heads, n_kv;
};

struct problem {
	const struct kernel *kernel;
	struct ref_case in;   /* its pointers are the arrays below */
	float *q, *expected;
	uint8_t *k, *v;
	double *tolerance;    /* one for each output */
	double *rounding;     /* the same without the absolute one */
	size_t outputs;
};

/* base: the absolute tolerance.  q_pos_base counts for causal rows only. */
CHECKED int problem_init(struct problem *p, const struct kernel *k,
	const struct problem_kind *kind, const struct problem_shape *shape,
	uint32_t q_pos_base, double base, struct draw *d, struct err *e);
void problem_fini(struct problem *p); /* a zeroed one is fine */

/* What a kernel's query is to a normal vector: sketches and transforms are longer. */
float problem_query_scale(const struct kernel *k);

#endif
