/*
 * generate - writes the fixtures from one documented stream of random numbers.
 *
 * The files follow each other in one stream, so they can only be made together.  The
 * same bytes come out on every machine whose logf and expf round as glibc's do.
 */
#ifndef KERNELS_GENERATE_H
#define KERNELS_GENERATE_H

#include <stddef.h>

#include "common/err.h"

/* Called for each file in order; borrows name and text.  Not 0 stops. */
typedef int (*generate_sink)(void *arg, const char *name, const char *text, size_t len,
	struct err *e);
CHECKED int generate_all(generate_sink sink, void *arg, struct err *e);

#endif
