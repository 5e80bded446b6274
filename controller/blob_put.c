#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "common/plat.h"
#include "common/str.h"
#include "controller/blob.h"
#include "controller/blob_format.h"

#define LEVEL 3
#define STALE_MS                                                                       \
	(24 * 3600 * 1000ll) /* a temporary file older than that is nobody's           \
			      */

struct item {
	char digest[DIGEST_HEX];
	char temp[17]; /* name in DIR/tmp; "" once renamed */
};
struct blob_batch {
	char *dir;
	struct item *items;
	size_t count, cap;
	ZSTD_CCtx *zstd;    /* made at the first put, used by all */
	char *raw, *packed; /* a frame each */
	size_t packed_size;
};

/* ---- the batch ---- */

static void
stale_remove(const char *tmp)
{
	struct dirent *d;
	struct stat st;
	DIR *dir = opendir(tmp);

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL)
		if (str_is_hex(d->d_name, 16) &&
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    plat_now_ms() - (int64_t)st.st_mtime * 1000 > STALE_MS)
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	closedir(dir);
}

static int
temp_path(const struct blob_batch *b, const char *name, char out[PATH_MAX],
	  struct err *e)
{
	return str_fmt(out, PATH_MAX, e, "%s/tmp/%s", b->dir, name);
}

int
blob_batch_begin(const char *dir, struct blob_batch **out, struct err *e)
{
	struct blob_batch *b = calloc(1, sizeof *b);
	char tmp[PATH_MAX];
	int rc = -1;

	if (b == NULL || (b->dir = strdup(dir)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for blobs");
		goto out;
	}
	if (str_fmt(tmp, sizeof tmp, e, "%s/tmp", dir) || plat_mkdirs(tmp, 0700, e))
		goto out;
	stale_remove(tmp);
	*out = b, b = NULL;
	rc = 0;
out:
	blob_batch_free(b);
	return rc;
}

static void
temp_remove(struct blob_batch *b, const char *name)
{
	char path[PATH_MAX];

	if (*name != '\0' && temp_path(b, name, path, NULL) == 0)
		(void)unlink(path);
}

void
blob_batch_free(struct blob_batch *b)
{
	size_t i;

	if (b == NULL)
		return;
	for (i = 0; i < b->count; i++)
		temp_remove(b, b->items[i].temp);
	ZSTD_freeCCtx(b->zstd);
	free(b->raw);
	free(b->packed);
	free(b->items);
	free(b->dir);
	free(b);
}

static bool
in_batch(const struct blob_batch *b, const char *digest)
{
	size_t i;

	for (i = 0; i < b->count; i++)
		if (strcmp(b->items[i].digest, digest) == 0)
			return true;
	return false;
}

static int
buffers_make(struct blob_batch *b, struct err *e)
{
	if (b->zstd != NULL)
		return 0;
	b->packed_size = ZSTD_compressBound(BLOB_FRAME);
	free(b->raw); /* of an attempt that ran out of memory half way */
	free(b->packed);
	b->raw = malloc(BLOB_FRAME);
	b->packed = malloc(b->packed_size);
	if (b->raw == NULL || b->packed == NULL ||
	    (b->zstd = ZSTD_createCCtx()) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to compress a blob");
	ZSTD_CCtx_setParameter(b->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(b->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

static int
item_room(struct blob_batch *b, struct err *e)
{
	struct item *more;
	size_t cap = b->cap != 0 ? 2 * b->cap : 32;

	if (b->count < b->cap)
		return 0;
	if (b->count >= BLOB_MAX_BATCH)
		return err_set(e, ERR_LIMIT, "more than %d blobs at once",
			       BLOB_MAX_BATCH);
	if ((more = realloc(b->items, cap * sizeof *more)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for blobs");
	b->items = more, b->cap = cap;
	return 0;
}

/* ---- writing one ---- */

/* Where raw bytes come from: an open file, or memory. */
struct source {
	int fd; /* -1: memory */
	const char *p;
	size_t left;
};
struct writer {
	struct blob_batch *b;
	int fd;
	struct digest *digest;
	uint64_t bytes;
	unsigned char *table; /* 8 bytes a frame, as in the file */
	size_t frames, cap;
};

/* Fills up to a frame; *n is less only at the end. */
static int
source_read(struct source *s, char *out, size_t *n, struct err *e)
{
	ssize_t got;

	*n = 0;
	if (s->fd < 0) {
		*n = s->left < BLOB_FRAME ? s->left : BLOB_FRAME;
		if (*n > 0)
			memcpy(out, s->p, *n);
		s->p += *n, s->left -= *n;
		return 0;
	}
	while (*n < BLOB_FRAME) {
		got = read(s->fd, out + *n, BLOB_FRAME - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(e, errno, "reading a file to store");
		if (got == 0)
			break;
		*n += (size_t)got;
	}
	return 0;
}

static int
table_add(struct writer *w, size_t packed, size_t raw, struct err *e)
{
	size_t cap = w->cap != 0 ? 2 * w->cap : 64;
	unsigned char *more;

	if (w->frames == w->cap) {
		if ((more = realloc(w->table, cap * BLOB_ROW)) == NULL)
			return err_set(e, ERR_NOMEM,
				       "no memory for the table of a blob");
		w->table = more, w->cap = cap;
	}
	blob_put32(w->table + w->frames * BLOB_ROW, (uint32_t)packed);
	blob_put32(w->table + w->frames * BLOB_ROW + 4, (uint32_t)raw);
	w->frames++;
	return 0;
}

static int
frame_write(struct writer *w, size_t raw, struct err *e)
{
	struct blob_batch *b = w->b;
	size_t n = ZSTD_compress2(b->zstd, b->packed, b->packed_size, b->raw, raw);

	if (ZSTD_isError(n))
		return err_set(e, ERR_IO, "zstd: %s", ZSTD_getErrorName(n));
	w->bytes += raw;
	if (w->bytes > BLOB_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "larger than %llu bytes",
			       (unsigned long long)BLOB_MAX_BYTES);
	digest_add(w->digest, b->raw, raw);
	return table_add(w, n, raw, e) || blob_write_all(w->fd, b->packed, n, e) ? -1
										 : 0;
}

static int
table_write(struct writer *w, struct err *e)
{
	unsigned char head[8], foot[BLOB_FOOT];

	blob_put32(head, BLOB_SKIP_MAGIC);
	blob_put32(head + 4, (uint32_t)(w->frames * BLOB_ROW + BLOB_FOOT));
	blob_put32(foot, (uint32_t)w->frames);
	foot[4] = 0; /* no checksums in the table: each frame has its own */
	blob_put32(foot + 5, BLOB_SEEK_MAGIC);
	return blob_write_all(w->fd, head, sizeof head, e) ||
			       blob_write_all(w->fd, w->table, w->frames * BLOB_ROW,
					      e) ||
			       blob_write_all(w->fd, foot, sizeof foot, e)
		       ? -1
		       : 0;
}

static int
temp_write(struct blob_batch *b, struct source *s, const char *temp,
	   char digest[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	struct writer w = {.b = b, .fd = -1};
	char path[PATH_MAX];
	size_t n;
	int rc = -1;

	if (temp_path(b, temp, path, e))
		return -1;
	if ((w.digest = digest_new()) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a digest");
		goto out;
	}
	if ((w.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0) {
		err_errno(e, errno, "%s", path);
		goto out;
	}
	do {
		if (source_read(s, b->raw, &n, e) || (n > 0 && frame_write(&w, n, e)))
			goto out;
	} while (n == BLOB_FRAME);
	/* Nothing at all is one empty frame, for programs that want a frame. */
	if ((w.frames == 0 && frame_write(&w, 0, e)) || table_write(&w, e))
		goto out;
	digest_end(w.digest, digest), w.digest = NULL;
	*bytes = w.bytes;
	rc = 0;
out:
	if (w.fd >= 0 && close(w.fd) != 0 && rc == 0)
		rc = err_errno(e, errno, "%s", path);
	digest_free(w.digest);
	free(w.table);
	return rc;
}

static int
known(struct blob_batch *b, const char *digest, uint64_t *bytes)
{
	struct blob *old;

	if (in_batch(b, digest) && bytes == NULL)
		return 1;
	if (blob_open(b->dir, digest, &old, NULL))
		return 0;
	if (bytes != NULL)
		*bytes = blob_size(old);
	blob_close(old);
	return 1;
}

static int
put(struct blob_batch *b, struct source *s, const char *expected,
    char digest[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	char own[DIGEST_HEX], temp[17];
	struct item *item;
	uint64_t n;

	if (expected != NULL && !str_is_hex(expected, 64))
		return err_set(e, ERR_PARSE, "a digest is 64 hex digits");
	if (expected != NULL && known(b, expected, bytes))
		return digest != NULL ? str_copy(digest, DIGEST_HEX, expected, e) : 0;
	if (buffers_make(b, e) || item_room(b, e) || plat_random_hex(temp, 16, e))
		return -1;
	if (temp_write(b, s, temp, own, &n, e)) {
		temp_remove(b, temp);
		return -1;
	}
	if (expected != NULL && strcmp(own, expected) != 0) {
		temp_remove(b, temp);
		return err_set(e, ERR_INTEGRITY,
			       "the bytes have digest %.16s..., not %.16s...", own,
			       expected);
	}
	if (digest != NULL)
		snprintf(digest, DIGEST_HEX, "%s", own);
	if (bytes != NULL)
		*bytes = n;
	if (known(b, own, NULL)) {
		temp_remove(b, temp);
		return 0;
	}
	item = &b->items[b->count++];
	snprintf(item->digest, sizeof item->digest, "%s", own);
	snprintf(item->temp, sizeof item->temp, "%s", temp);
	return 0;
}

int
blob_batch_fd(struct blob_batch *b, int fd, const char *expected,
	      char digest[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	struct source s = {fd, NULL, 0};

	return put(b, &s, expected, digest, bytes, e);
}

int
blob_batch_bytes(struct blob_batch *b, const void *p, size_t n, const char *expected,
		 char digest[DIGEST_HEX], struct err *e)
{
	struct source s = {-1, p, n};

	return put(b, &s, expected, digest, NULL, e);
}

int
blob_batch_file(struct blob_batch *b, const char *path, const char *expected,
		char digest[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int rc = -1;

	if (fd < 0)
		return err_errno(e, errno, "%s", path);
	if (fstat(fd, &st) != 0)
		err_errno(e, errno, "%s", path);
	else if (!S_ISREG(st.st_mode))
		err_set(e, ERR_USAGE, "not a file");
	else
		rc = blob_batch_fd(b, fd, expected, digest, bytes, e);
	close(fd);
	return rc ? err_wrap(e, "%s", path) : 0;
}

/* ---- commit ---- */

static int
sync_path(const char *path, int flags, struct err *e)
{
	int fd = open(path, flags | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_errno(e, errno, "%s", path);
	rc = fsync(fd) == 0 ? 0 : err_errno(e, errno, "%s", path);
	close(fd);
	return rc;
}

static int
item_sync(struct blob_batch *b, const struct item *item, struct err *e)
{
	char path[PATH_MAX];

	return *item->temp == '\0'						   ? 0
	       : temp_path(b, item->temp, path, e) || sync_path(path, O_RDONLY, e) ? -1
										   : 0;
}

static int
item_rename(struct blob_batch *b, struct item *item, struct err *e)
{
	char from[PATH_MAX], to[PATH_MAX], folder[PATH_MAX];

	if (*item->temp == '\0')
		return 0;
	if (temp_path(b, item->temp, from, e) ||
	    blob_path(b->dir, item->digest, to, e) ||
	    str_fmt(folder, sizeof folder, e, "%s/%.2s", b->dir, item->digest) ||
	    plat_mkdirs(folder, 0700, e))
		return -1;
	if (rename(from, to) != 0)
		return err_errno(e, errno, "%s", to);
	item->temp[0] = '\0';
	return 0;
}

/* Each folder that got a name, once; then the one that holds the folders. */
static int
folders_sync(struct blob_batch *b, struct err *e)
{
	bool done[256] = {false};
	char folder[PATH_MAX];
	uint8_t first;
	size_t i;

	for (i = 0; i < b->count; i++) {
		if (str_fmt(folder, sizeof folder, e, "%.2s", b->items[i].digest) ||
		    str_unhex(&first, 1, folder))
			return err_set(e, ERR_PARSE, "a digest is 64 hex digits");
		if (done[first])
			continue;
		done[first] = true;
		if (str_fmt(folder, sizeof folder, e, "%s/%.2s", b->dir,
			    b->items[i].digest) ||
		    sync_path(folder, O_RDONLY | O_DIRECTORY, e))
			return -1;
	}
	/* the parent too: the folder of all blobs may be new */
	if (b->count == 0)
		return 0;
	return str_fmt(folder, sizeof folder, e, "%s/..", b->dir) ||
			       sync_path(b->dir, O_RDONLY | O_DIRECTORY, e) ||
			       sync_path(folder, O_RDONLY | O_DIRECTORY, e)
		       ? -1
		       : 0;
}

int
blob_batch_commit(struct blob_batch *b, struct err *e)
{
	size_t i;

	for (i = 0; i < b->count; i++)
		if (item_sync(b, &b->items[i], e))
			return err_wrap(e, "blob %.16s", b->items[i].digest);
	for (i = 0; i < b->count; i++)
		if (item_rename(b, &b->items[i], e))
			return err_wrap(e, "blob %.16s", b->items[i].digest);
	if (folders_sync(b, e))
		return err_wrap(e, "blobs");
	b->count = 0;
	return 0;
}

int
blob_put(const char *dir, int fd, const char *expected, char digest[DIGEST_HEX],
	 uint64_t *bytes, struct err *e)
{
	struct blob_batch *b = NULL;
	int rc;

	rc = blob_batch_begin(dir, &b, e) ||
			     blob_batch_fd(b, fd, expected, digest, bytes, e) ||
			     blob_batch_commit(b, e)
		     ? -1
		     : 0;
	blob_batch_free(b);
	return rc;
}
