/*
 * hip_code - code objects for one AMD chip: those of this program, else made on this host.
 *
 * ROCm has no code that every chip runs.  For a chip that this program has no code for,
 * the host's own hipcc compiles the embedded sources; what it made is kept in the user's
 * cache under a digest of sources, chip and compiler, and is made anew when one changes.
 */
#ifndef KERNELS_HIP_CODE_H
#define KERNELS_HIP_CODE_H

#include <stddef.h>

#include "common/err.h"
#include "kernels/backend.h"

#define HIP_CODE_FILES 64

struct hip_code {
	size_t count;
	const void *image[HIP_CODE_FILES];
	char *own[HIP_CODE_FILES];     /* freed with it; NULL: part of the program */
	struct backend_code told;
};

/* arch: "gfx942".  -1: ERR_UNSUPPORTED "no code for this device" with a hint, or what the
 * compiler failed with. */
CHECKED int hip_code_get(const char *arch, struct hip_code *out, struct err *e);
void hip_code_free(struct hip_code *c);
/* Whether there is a way to code for that chip here; else note says what is missing. */
bool hip_code_possible(const char *arch, char *note, size_t size);

#endif
