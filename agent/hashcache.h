/*
 * hashcache - SHA-256 of large files, remembered while device, inode, size, mtime and
 * ctime stay the same.
 *
 * The cache is one small text file: a first line "verify-hashcache 1", then per file
 *
 *     DEVICE INODE SIZE MTIME_NS CTIME_NS SHA256
 *
 * oldest first, at most HASHCACHE_MAX.  It is replaced as a whole; two writers at once lose
 * entries, never truth.  A damaged file is ignored and rewritten; one that can not be
 * written costs time only.  A file that changed within HASHCACHE_SETTLE_MS before it is
 * read is not remembered: a second change could leave the same times.
 */
#ifndef AGENT_HASHCACHE_H
#define AGENT_HASHCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"

#define HASHCACHE_MAX 256
#define HASHCACHE_SETTLE_MS 2000

/*
 * The digest of file, from the cache or by reading it all.  cache_path: NULL never
 * remembers; its folder is made.  fn (may be NULL) is called while bytes are read.
 * *bytes and *cached (either may be NULL) say how long the file is and whether it was
 * spared.  ERR_INTEGRITY: the file changed while it was read.  ERR_CANCELLED: fn said so.
 */
CHECKED int hashcache_file(const char *cache_path, const char *file, digest_progress fn,
	void *arg, char hex[DIGEST_HEX], uint64_t *bytes, bool *cached, struct err *e);

#endif
