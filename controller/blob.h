/*
 * blob - reports and logs, stored once under the SHA-256 of their raw bytes.
 *
 * File DIR/ab/abcd....zst: zstd frames of 1 MiB of raw bytes each, every one with its
 * own checksum, then the table of the zstd seekable format (a skippable frame), so that
 * `zstd -d` gives the whole and a range costs only the frames it touches.  Files are
 * written in DIR/tmp, fsynced and renamed: a name that exists holds a whole blob.
 * Memory: a few MiB, whatever the size.  Threads: calls on different batches and blobs
 * are independent; processes may share a folder.
 */
#ifndef CONTROLLER_BLOB_H
#define CONTROLLER_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"

#define BLOB_FRAME (1u << 20)	    /* raw bytes of every frame but the last */
#define BLOB_MAX_BYTES (4ull << 30) /* raw bytes of a blob */
#define BLOB_MAX_BATCH 65536	    /* blobs of one batch */

/*
 * Many blobs for few fsyncs: blob_batch_begin, any puts, blob_batch_commit, then
 * blob_batch_free.  Nothing is kept of a batch that is freed without commit.  Commit
 * before the ledger names the digests.
 */
struct blob_batch;

/* Makes dir (0700) when missing.  Gives *out, freed with blob_batch_free. */
CHECKED int blob_batch_begin(const char *dir, struct blob_batch **out, struct err *e);
void blob_batch_free(struct blob_batch *b); /* NULL is fine */
/*
 * Reads fd to its end.  expected, when not NULL, is the digest that the bytes must have
 * (ERR_INTEGRITY when not); a blob that is there under it is not even read.  digest and
 * bytes (raw) may be NULL.  ERR_LIMIT above BLOB_MAX_BYTES.
 */
CHECKED int blob_batch_fd(struct blob_batch *b, int fd, const char *expected,
			  char digest[DIGEST_HEX], uint64_t *bytes, struct err *e);
CHECKED int blob_batch_file(struct blob_batch *b, const char *path,
			    const char *expected, char digest[DIGEST_HEX],
			    uint64_t *bytes, struct err *e);
CHECKED int blob_batch_bytes(struct blob_batch *b, const void *p, size_t n,
			     const char *expected, char digest[DIGEST_HEX],
			     struct err *e);
/* On success every blob is on the disk under its name. */
CHECKED int blob_batch_commit(struct blob_batch *b, struct err *e);

/* A batch of one. */
CHECKED int blob_put(const char *dir, int fd, const char *expected,
		     char digest[DIGEST_HEX], uint64_t *bytes, struct err *e);

/* True when there is a blob with a readable table under the digest. */
bool blob_exists(const char *dir, const char *digest);

struct blob;

/* ERR_NOTFOUND when there is none, ERR_INTEGRITY when its table is damaged.  Gives
 * *out, freed with blob_close. */
CHECKED int blob_open(const char *dir, const char *digest, struct blob **out,
		      struct err *e);
void blob_close(struct blob *b);	  /* NULL is fine */
uint64_t blob_size(const struct blob *b); /* raw bytes */
/*
 * Copies up to len raw bytes from offset on; *got is less only at the end of the blob.
 * Each frame read is checked by its own checksum, not by the digest of the whole.
 */
CHECKED int blob_read(struct blob *b, uint64_t offset, void *out, size_t len,
		      size_t *got, struct err *e);

/* Reads all of it and compares the digest.  ERR_INTEGRITY names digest and frame. */
CHECKED int blob_verify(const char *dir, const char *digest, struct err *e);
/* The whole blob, of at most max bytes, its digest checked; with a NUL behind.  Gives
 * *out, freed with free(). */
CHECKED int blob_load(const char *dir, const char *digest, size_t max, char **out,
		      size_t *len, struct err *e);
/* Writes the whole blob to fd; its digest is known only at the end: what was written
 * before an ERR_INTEGRITY is not to be trusted. */
CHECKED int blob_copy(const char *dir, const char *digest, int fd, struct err *e);

#endif
