/*
 * toolchain - the tools of a lane: where they are, and which of several.
 *
 * A service's PATH is short and a distribution's nvcc is old: of all that are found the
 * newest counts, and it is named by its absolute path from then on.
 */
#ifndef AGENT_TOOLCHAIN_H
#define AGENT_TOOLCHAIN_H

#include <stddef.h>

#include "common/err.h"

struct work;
struct transcript;

/* PATH, then the usual folders; of several nvcc the newest.  ERR_NOTFOUND says where it
 * looked. */
CHECKED int toolchain_find(const char *name, char *out, size_t size, struct err *e);
/* The tools of the lane besides those of every build, into the toolchain gate's log: runs,
 * and facts chip, vulkanHeaders, also.  What is missing is written to list. */
void toolchain_log(struct work *w, struct transcript *t, char *list, size_t size, struct err *e);

#endif
