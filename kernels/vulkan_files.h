/*
 * vulkan_files - the files that name Vulkan's drivers, as the loader looks for them.
 *
 * Life: vulkan_files_find, vulkan_files_choose as often as wanted, vulkan_files_restore,
 * vulkan_files_free.  Threads: changes the environment.
 */
#ifndef KERNELS_VULKAN_FILES_H
#define KERNELS_VULKAN_FILES_H

#include <stddef.h>

#include "common/err.h"

#define VULKAN_FILES_MAX 64

struct vulkan_files {
	char *paths[VULKAN_FILES_MAX];
	size_t count;
	char *driver_files, *icd_filenames; /* as they were set; NULL: not */
};

/* Those of VK_DRIVER_FILES or VK_ICD_FILENAMES, else of the usual folders. */
CHECKED int vulkan_files_find(struct vulkan_files *f, struct err *e);
/* Makes it the only one for instances that are made from now on. */
CHECKED int vulkan_files_choose(const char *path, struct err *e);
void vulkan_files_restore(const struct vulkan_files *f);
void vulkan_files_free(struct vulkan_files *f); /* NULL is fine */

#endif
