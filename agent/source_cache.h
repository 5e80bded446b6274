/*
 * source_cache - the part of source that fetches: URLs and bundles into the cache.
 * Only for source.c; arguments and errors are those of source_get.
 */
#ifndef AGENT_SOURCE_CACHE_H
#define AGENT_SOURCE_CACHE_H

#include "agent/git.h"
#include "agent/source.h"

CHECKED int source_url(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e);
/* s->path is the bundle file, and becomes the checkout. */
CHECKED int source_bundle(const struct source_ask *ask, struct git *g,
	struct source_info *s, enum reason *why, struct err *e);

/* Of source.c: what a folder holds, and -1 with a reason and a sentence. */
CHECKED int source_identify(const struct source_ask *ask, struct git *g,
	struct source_info *s, enum reason *why, struct err *e);
int source_fail(enum reason *why, enum reason r, struct err *e, enum err_code code,
	const char *msg);

#endif
