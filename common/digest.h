/*
 * digest - SHA-256 of bytes and files, through OpenSSL at its full speed.
 */
#ifndef COMMON_DIGEST_H
#define COMMON_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define DIGEST_HEX 65 /* 64 lower-case hex digits and the NUL */

struct digest; /* a running SHA-256; one thread at a time */

struct digest *digest_new(void); /* NULL when out of memory */
void digest_add(struct digest *d, const void *p, size_t n);
/* Writes the hex form and frees d. */
void digest_end(struct digest *d, char hex[DIGEST_HEX]);
void digest_free(struct digest *d); /* NULL is fine */

void digest_bytes(const void *p, size_t n, char hex[DIGEST_HEX]);

/* Called now and then while a file is read; done and total in bytes.  Returning
 * non-zero stops with ERR_CANCELLED. */
typedef int (*digest_progress)(void *arg, uint64_t done, uint64_t total);

/* Streams an open file (from its start; the offset is left anywhere).  *bytes, when
 * not NULL, gets the count.  fn may be NULL. */
CHECKED int digest_fd(int fd, digest_progress fn, void *arg, char hex[DIGEST_HEX],
	uint64_t *bytes, struct err *e);
CHECKED int digest_file(const char *path, char hex[DIGEST_HEX], uint64_t *bytes,
	struct err *e);

#endif
