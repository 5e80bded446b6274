/*
 * vulkan_spirv - the shaders as the driver gets them: embedded, or files of a folder.
 *
 * Life: vulkan_spirv_load, vulkan_spirv_free.  Threads: no state.
 */
#ifndef KERNELS_VULKAN_SPIRV_H
#define KERNELS_VULKAN_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "kernels/vulkan_modules.h"

#define VULKAN_SPIRV_MAX (1u << 20) /* bytes of a module */

enum vulkan_module {
#define X(name) VULKAN_##name,
	VULKAN_MODULES(X)
#undef X
	VULKAN_MODULE_COUNT
};

struct vulkan_spirv {
	const char *name;        /* "turbo3"; static */
	const uint32_t *words;
	size_t bytes;
	char sha256[DIGEST_HEX];
	void *own;               /* NULL: words are embedded */
};

/* Whether a driver may see it: a whole SPIR-V module of at most version 1.3 whose
 * instructions end where it ends, with a compute entry "main".  ERR_PARSE, ERR_LIMIT. */
CHECKED int vulkan_spirv_check(const uint32_t *words, size_t bytes, struct err *e);
/* The module of dir (NAME.spv), or the embedded one when dir is NULL, checked. */
CHECKED int vulkan_spirv_load(enum vulkan_module m, const char *dir,
	struct vulkan_spirv *out, struct err *e);
void vulkan_spirv_free(struct vulkan_spirv *s); /* NULL is fine */

#endif
