/*
 * blob_format - the bytes of a stored blob, shared by the writer and the reader.
 *
 * FRAME... then, little-endian: BLOB_SKIP_MAGIC, size of what follows, for each frame
 * its packed and its raw size (4 bytes each), the number of frames (4), a byte of zero,
 * BLOB_SEEK_MAGIC: the zstd seekable format without checksums in the table.
 */
#ifndef CONTROLLER_BLOB_FORMAT_H
#define CONTROLLER_BLOB_FORMAT_H

#include <limits.h>

#include "controller/blob.h"

#define BLOB_SKIP_MAGIC 0x184D2A5Eu
#define BLOB_SEEK_MAGIC 0x8F92EAB1u
#define BLOB_ROW 8
#define BLOB_FOOT 9
#define BLOB_MAX_FRAMES (BLOB_MAX_BYTES / BLOB_FRAME)

void blob_put32(unsigned char *p, uint32_t v);
uint32_t blob_get32(const unsigned char *p);
/* DIR/ab/abcd....zst */
CHECKED int blob_path(const char *dir, const char *digest, char out[PATH_MAX],
		      struct err *e);
CHECKED int blob_write_all(int fd, const void *p, size_t n, struct err *e);

#endif
