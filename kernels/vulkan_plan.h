/*
 * vulkan_plan - how a kernel of the table runs on a Vulkan device: which shaders, over
 * which ranges of which operands, in which grids.
 *
 * A binding reaches over at most limits.range bytes, so that large caches are cut into
 * pieces: ranges of keys, and of query heads where the scores are what is too long.
 * Pure arithmetic.  Life: vulkan_plan_kernel or _copy, vulkan_plan_free.
 */
#ifndef KERNELS_VULKAN_PLAN_H
#define KERNELS_VULKAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/backend.h"
#include "kernels/vulkan_spirv.h"

#define VULKAN_BINDINGS 4   /* q, k, v, out; the tables are the fifth */
#define VULKAN_SPECS 3      /* ROWS, HEADS, POLAR of the merge */
#define VULKAN_STEPS 65536  /* of a plan, at most */
#define VULKAN_SLACK 32     /* bytes that a binding may need past its operand */

struct vulkan_limits {
	uint32_t range;     /* bytes of a binding */
	uint32_t groups[2]; /* workgroups in x and y */
};

/* The push constants: see vulkan_args.glsl. */
struct vulkan_push {
	uint32_t n_kv, heads, groups, head0, count, k_at, v_at, out_at, use_qjl, per, split0,
		splits;
	float sm_scale;
};

enum vulkan_operand { VULKAN_NONE, VULKAN_Q, VULKAN_K, VULKAN_V, VULKAN_OUT, VULKAN_WORK };

struct vulkan_binding {
	enum vulkan_operand of;
	size_t at, bytes;   /* of the operand's buffer */
};

struct vulkan_step {
	enum vulkan_module module;
	uint32_t specs[VULKAN_SPECS];
	uint32_t grid[2];
	bool wait;          /* for what the steps before it wrote */
	struct vulkan_push push;
	struct vulkan_binding bind[VULKAN_BINDINGS];
};

struct vulkan_plan {
	struct vulkan_step *steps;
	size_t count, room;
	size_t work;        /* bytes of scratch */
};

/* Names of a kernel's variants, the default first. */
size_t vulkan_plan_variants(const struct kernel *k, const char *names[BACKEND_VARIANTS]);
/* ERR_UNSUPPORTED: names the limit; ERR_USAGE: spans that do not hold the problem. */
CHECKED int vulkan_plan_kernel(const struct kernel *k, size_t variant,
	const struct backend_args *a, const struct vulkan_limits *l,
	struct vulkan_plan *out, struct err *e);
/* The copy that benchmarks measure against: a->out.bytes, a multiple of 16. */
CHECKED int vulkan_plan_copy(const struct backend_args *a, const struct vulkan_limits *l,
	struct vulkan_plan *out, struct err *e);
void vulkan_plan_free(struct vulkan_plan *p); /* NULL is fine */

#endif
