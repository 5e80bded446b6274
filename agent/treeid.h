/*
 * treeid - the git tree id of a plain folder, computed as git itself would.
 *
 * The same bytes have the same id wherever they come from: a clone, a bundle, an unpacked
 * archive.  What git would add with `git add --all --force` counts: regular files (mode
 * 100755 when the owner may execute, else 100644) and symbolic links (120000, never
 * followed).  `.git` at any depth, empty folders, FIFOs, sockets and devices do not count.
 * SHA-1, the object format of every llama.cpp repository.
 *
 * Threads: no shared state.
 */
#ifndef AGENT_TREEID_H
#define AGENT_TREEID_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define TREEID_HEX 41          /* 40 lower-case hex digits and the NUL */
#define TREEID_MAX_DEPTH 64    /* folders below the root */
#define TREEID_MAX_ENTRIES 400000 /* files and folders in all */

struct treeid_count {
	uint64_t files, bytes; /* that went into the id; links count as files */
};

/* tick may be NULL; it is called about once a file, and non-zero stops with
 * ERR_CANCELLED.  ERR_LIMIT: too deep or too many; ERR_IO: unreadable, or a file that
 * changed while it was read.  count may be NULL. */
CHECKED int treeid_folder(const char *path, int (*tick)(void *arg), void *arg,
	char hex[TREEID_HEX], struct treeid_count *count, struct err *e);

/* Id of one blob: what `git hash-object` says of the bytes. */
CHECKED int treeid_blob(const void *p, size_t n, char hex[TREEID_HEX], struct err *e);

#endif
