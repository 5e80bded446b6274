/*
 * gpu_code - the device code that is part of this program, and the sources it is from.
 *
 * Made by kernels/embed_code.awk at build time: a row per file.  A kind without a row was
 * not built (no nvcc, no hipcc); it is never a pass.  All data is static.
 */
#ifndef KERNELS_GPU_CODE_H
#define KERNELS_GPU_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"

enum gpu_code_kind {
	GPU_CODE_CUDA,         /* a fatbin of one .cu; arch: all that is in it */
	GPU_CODE_HIP,          /* a code object of one .cu for one arch */
	GPU_CODE_SOURCE,       /* "kernels/score.cu" */
};

struct gpu_code {
	const char *name;      /* NULL: the end */
	const char *arch;      /* "sm_75 sm_80 ... compute_80", "gfx90a"; "" for sources */
	enum gpu_code_kind kind;
	const uint8_t *start, *end; /* of CUDA and HIP: 16-byte aligned */
};
extern const struct gpu_code gpu_code[];

/* The next row after at (NULL: the first) of that kind and arch (NULL: any); or NULL. */
const struct gpu_code *gpu_code_next(const struct gpu_code *at, enum gpu_code_kind kind,
	const char *arch);
/* One digest over the bytes of all such rows, in order; -1 when there is none. */
int gpu_code_digest(enum gpu_code_kind kind, const char *arch, char hex[DIGEST_HEX]);

#endif
