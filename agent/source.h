/*
 * source - gets the engine's source, and names it so that a reader can find it again.
 *
 * A source is a folder, a git URL or a git bundle file.  Its identity is the git tree id:
 * a bundle's commit may be a squash that nobody knows, and a plain folder has no commit,
 * but the same bytes have the same tree.  A folder is used where it is and never written;
 * URLs and bundles are fetched into CACHE/sources/KEY/git and checked out, one folder per
 * commit, beside it.
 *
 * Life: source_get, source_again when the build is done, source_release.  A cached
 * checkout is locked against removal until then.  Threads: one at a time.
 */
#ifndef AGENT_SOURCE_H
#define AGENT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"
#include "common/transcript.h"

#define SOURCE_PATH 4096
#define SOURCE_KEEP 4 /* checkouts of one URL or bundle that are kept */

struct source_ask {
	const char *spec;          /* path of a folder or bundle, or a URL: https://, ssh://,
	                            * file://, user@host:path */
	const char *ref;           /* optional: branch, tag or commit; of a folder it must be
	                            * what is checked out */
	const char *cache_dir;
	const char *bundle_sha256; /* optional: the bundle's pinned digest */
	const char *tree;          /* optional: the pinned tree id; nothing may differ */
	uint32_t timeout_ms;       /* of each git command; 0: none */
	int (*tick)(void *arg);    /* optional; non-zero cancels */
	void (*say)(void *arg, const char *text); /* optional: what is being done */
	void *arg;
};

struct source_info {
	char kind[16];             /* "folder", "git-url", "bundle" */
	char origin[512];          /* URL without secrets, else "folder:NAME" or
	                            * "bundle:NAME": a claim, where tree is a fact */
	char describe[128];        /* git describe; "" when there is no git */
	char commit[65];           /* "" when there is no git */
	char tree[65];
	bool dirty;                /* the files are not those of the commit */
	char dirty_digest[DIGEST_HEX]; /* of all differences; "" when clean */
	char bundle_sha256[DIGEST_HEX]; /* "" when it is no bundle */
	char path[SOURCE_PATH];    /* absolute: the folder to build from */
	bool is_git;
	int lock;                  /* of a cached checkout, else -1 */
};

/* On failure *why is the gate's reason and e says it in a sentence.  ask is borrowed. */
CHECKED int source_get(const struct source_ask *ask, struct transcript *log,
	struct source_info *out, enum reason *why, struct err *e);
/* Takes the identity of the folder again: SOURCE_CHANGED when it is another one. */
CHECKED int source_again(const struct source_ask *ask, const struct source_info *s,
	struct transcript *log, enum reason *why, struct err *e);
void source_release(struct source_info *s); /* also of a zeroed struct, once */

/* CMakeLists.txt, ggml/ and llama.h are there. */
bool source_is_engine(const char *path);

#endif
