#include "controller/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "common/plat.h"
#include "common/str.h"
#include "controller/blob_format.h"

struct blob {
	int fd;
	char digest[DIGEST_HEX];
	uint64_t size; /* raw */
	uint32_t frames;
	uint64_t *starts; /* packed offset of each frame, and of the end */
	ZSTD_DCtx *zstd;
	char *raw, *packed; /* a frame each */
	uint32_t held;	    /* the frame that raw holds; == frames: none */
	size_t raw_size;    /* of the held frame */
};

void
blob_put32(unsigned char *p, uint32_t v)
{
	int i;

	for (i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

uint32_t
blob_get32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

int
blob_path(const char *dir, const char *digest, char out[PATH_MAX], struct err *e)
{
	if (!str_is_hex(digest, 64))
		return err_set(e, ERR_PARSE, "a digest is 64 hex digits");
	return str_fmt(out, PATH_MAX, e, "%s/%.2s/%s.zst", dir, digest, digest);
}

int
blob_write_all(int fd, const void *p, size_t n, struct err *e)
{
	return plat_write_all(fd, p, n) ? err_errno(e, errno, "writing a blob") : 0;
}

/* 0 when all n bytes came; a short file is an error without errno. */
static int
read_at(int fd, void *p, size_t n, uint64_t offset)
{
	char *at = p;
	ssize_t got;

	while (n > 0) {
		got = pread(fd, at, n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		at += got, n -= (size_t)got, offset += (uint64_t)got;
	}
	return 0;
}

static int
damaged(const struct blob *b, const char *what, struct err *e)
{
	err_set(e, ERR_INTEGRITY, "blob %s: %s", b->digest, what);
	return err_hint(e, "restore the file, or pull the run's artifacts again");
}

static int
frame_damaged(const struct blob *b, uint32_t frame, const char *what, struct err *e)
{
	err_set(e, ERR_INTEGRITY, "blob %s: frame %u of %u: %s", b->digest, frame + 1,
		b->frames, what);
	return err_hint(e, "restore the file, or pull the run's artifacts again");
}

/* ---- the table ---- */

/* Every number is checked against the others before it is believed. */
static int
table_parse(struct blob *b, const unsigned char *table, uint64_t packed_end,
	    struct err *e)
{
	uint64_t at = 0;
	uint32_t i, packed, raw;

	for (i = 0; i < b->frames; i++) {
		packed = blob_get32(table + (size_t)i * BLOB_ROW);
		raw = blob_get32(table + (size_t)i * BLOB_ROW + 4);
		if (raw > BLOB_FRAME || (i + 1 < b->frames && raw != BLOB_FRAME) ||
		    packed == 0 || packed > ZSTD_compressBound(BLOB_FRAME))
			return frame_damaged(b, i, "impossible size in the table", e);
		b->starts[i] = at;
		at += packed, b->size += raw;
	}
	b->starts[b->frames] = at;
	return at == packed_end ? 0 : damaged(b, "the table does not fit the file", e);
}

static int
table_read(struct blob *b, uint64_t file_size, struct err *e)
{
	unsigned char foot[BLOB_FOOT], *table = NULL;
	size_t size;
	int rc = -1;

	if (file_size < 8 + BLOB_FOOT ||
	    read_at(b->fd, foot, sizeof foot, file_size - BLOB_FOOT) ||
	    blob_get32(foot + 5) != BLOB_SEEK_MAGIC || foot[4] != 0)
		return damaged(b, "the file has no table at its end", e);
	b->frames = blob_get32(foot);
	if (b->frames == 0 || b->frames > BLOB_MAX_FRAMES ||
	    (size = (size_t)b->frames * BLOB_ROW) + 8 + BLOB_FOOT > file_size)
		return damaged(b, "impossible number of frames", e);
	b->starts = malloc(((size_t)b->frames + 1) * sizeof *b->starts);
	table = malloc(8 + size);
	if (b->starts == NULL || table == NULL)
		err_set(e, ERR_NOMEM, "no memory for the table of a blob");
	else if (read_at(b->fd, table, 8 + size, file_size - BLOB_FOOT - size - 8))
		damaged(b, "the table can not be read", e);
	else if (blob_get32(table) != BLOB_SKIP_MAGIC ||
		 blob_get32(table + 4) != size + BLOB_FOOT)
		damaged(b, "the table is not one", e);
	else
		rc = table_parse(b, table + 8, file_size - BLOB_FOOT - size - 8, e);
	free(table);
	b->held = b->frames;
	return rc;
}

int
blob_open(const char *dir, const char *digest, struct blob **out, struct err *e)
{
	char path[PATH_MAX];
	struct blob *b = NULL;
	struct stat st;
	int rc = -1;

	if (blob_path(dir, digest, path, e))
		return -1;
	if ((b = calloc(1, sizeof *b)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a blob");
	snprintf(b->digest, sizeof b->digest, "%s", digest);
	if ((b->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
		err_errno(e, errno, "blob %s", digest);
		goto out;
	}
	if (fstat(b->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		damaged(b, "not a file", e);
		goto out;
	}
	if (table_read(b, (uint64_t)st.st_size, e))
		goto out;
	*out = b, b = NULL;
	rc = 0;
out:
	blob_close(b);
	return rc;
}

void
blob_close(struct blob *b)
{
	if (b == NULL)
		return;
	if (b->fd >= 0)
		close(b->fd);
	ZSTD_freeDCtx(b->zstd);
	free(b->starts);
	free(b->raw);
	free(b->packed);
	free(b);
}

uint64_t
blob_size(const struct blob *b)
{
	return b->size;
}

bool
blob_exists(const char *dir, const char *digest)
{
	struct blob *b;

	if (blob_open(dir, digest, &b, NULL))
		return false;
	blob_close(b);
	return true;
}

/* ---- reading ---- */

static int
buffers_make(struct blob *b, struct err *e)
{
	if (b->raw == NULL)
		b->raw = malloc(BLOB_FRAME);
	if (b->packed == NULL)
		b->packed = malloc(ZSTD_compressBound(BLOB_FRAME));
	if (b->zstd == NULL)
		b->zstd = ZSTD_createDCtx();
	return b->raw != NULL && b->packed != NULL && b->zstd != NULL
		       ? 0
		       : err_set(e, ERR_NOMEM, "no memory to read a blob");
}

static size_t
frame_size(const struct blob *b, uint32_t frame)
{
	return frame + 1 < b->frames ? BLOB_FRAME
				     : (size_t)(b->size - (uint64_t)frame * BLOB_FRAME);
}

static int
frame_read(struct blob *b, uint32_t frame, struct err *e)
{
	size_t packed = (size_t)(b->starts[frame + 1] - b->starts[frame]), n;

	if (b->held == frame)
		return 0;
	if (buffers_make(b, e))
		return -1;
	b->held = b->frames;
	if (read_at(b->fd, b->packed, packed, b->starts[frame]))
		return frame_damaged(b, frame, "can not be read", e);
	if (ZSTD_findFrameCompressedSize(b->packed, packed) != packed)
		return frame_damaged(b, frame, "not one frame of the size in the table",
				     e);
	n = ZSTD_decompressDCtx(b->zstd, b->raw, BLOB_FRAME, b->packed, packed);
	if (ZSTD_isError(n))
		return frame_damaged(b, frame, ZSTD_getErrorName(n), e);
	if (n != frame_size(b, frame))
		return frame_damaged(b, frame, "not of the raw size in the table", e);
	b->held = frame, b->raw_size = n;
	return 0;
}

int
blob_read(struct blob *b, uint64_t offset, void *out, size_t len, size_t *got,
	  struct err *e)
{
	size_t skip, n;

	*got = 0;
	while (*got < len && offset < b->size) {
		if (frame_read(b, (uint32_t)(offset / BLOB_FRAME), e))
			return -1;
		skip = (size_t)(offset % BLOB_FRAME);
		n = b->raw_size - skip;
		if (n > len - *got)
			n = len - *got;
		memcpy((char *)out + *got, b->raw + skip, n);
		*got += n, offset += n;
	}
	return 0;
}

/* ---- the whole ---- */

/* Hands each frame to fn (may be NULL), then compares the digest. */
static int
walk(struct blob *b, int (*fn)(void *arg, const char *p, size_t n, struct err *e),
     void *arg, struct err *e)
{
	struct digest *d = digest_new();
	char found[DIGEST_HEX];
	uint32_t i;

	if (d == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	for (i = 0; i < b->frames; i++) {
		if (frame_read(b, i, e) ||
		    (fn != NULL && fn(arg, b->raw, b->raw_size, e))) {
			digest_free(d);
			return -1;
		}
		digest_add(d, b->raw, b->raw_size);
	}
	digest_end(d, found);
	return strcmp(found, b->digest) == 0
		       ? 0
		       : damaged(b, "the bytes have another digest", e);
}

int
blob_verify(const char *dir, const char *digest, struct err *e)
{
	struct blob *b = NULL;
	int rc = blob_open(dir, digest, &b, e) || walk(b, NULL, NULL, e) ? -1 : 0;

	blob_close(b);
	return rc;
}

static int
collect(void *arg, const char *p, size_t n, struct err *e)
{
	return buf_add(arg, p, n, e);
}

int
blob_load(const char *dir, const char *digest, size_t max, char **out, size_t *len,
	  struct err *e)
{
	struct blob *b = NULL;
	struct buf text;
	int rc = -1;

	buf_init(&text, max);
	if (blob_open(dir, digest, &b, e))
		goto out;
	if (b->size > max) {
		err_set(e, ERR_LIMIT, "blob %s is larger than %zu bytes", digest, max);
		goto out;
	}
	if (walk(b, collect, &text, e))
		goto out;
	*len = text.len;
	*out = buf_take(&text);
	rc = 0;
out:
	buf_fini(&text);
	blob_close(b);
	return rc;
}

static int
pour(void *arg, const char *p, size_t n, struct err *e)
{
	return blob_write_all(*(const int *)arg, p, n, e);
}

int
blob_copy(const char *dir, const char *digest, int fd, struct err *e)
{
	struct blob *b = NULL;
	int rc = blob_open(dir, digest, &b, e) || walk(b, pour, &fd, e) ? -1 : 0;

	blob_close(b);
	return rc;
}
