/*
 * code_objects - the device code inside a library or program: which chips it is for.
 *
 * Read from the ELF sections themselves, since a flag of the build is only a wish: fat
 * binaries of nvcc (.nv_fatbin) and offload bundles of clang (.hip_fatbin).  A bounded
 * reader of untrusted bytes.  Bundles that are compressed name no chips: they are counted.
 */
#ifndef AGENT_CODE_OBJECTS_H
#define AGENT_CODE_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CODE_MAX 32

struct code_object {
	char name[48];      /* "sm_90a", "compute_80" (PTX), "gfx90a:xnack-" */
	uint32_t count;
	uint64_t bytes;
};
struct code_objects {
	struct code_object v[CODE_MAX];
	int count;
	uint32_t compressed; /* bundles that could not be looked into */
};

/* No section of the kind is no error: count is 0.  ERR_PARSE: no ELF, or damaged. */
CHECKED int code_objects_read(const char *path, struct code_objects *out, struct err *e);
/* The same of the bytes of one section; for tests. */
CHECKED int code_objects_fatbin(const uint8_t *p, size_t n, struct code_objects *out,
	struct err *e);
CHECKED int code_objects_bundle(const uint8_t *p, size_t n, struct code_objects *out,
	struct err *e);

#endif
