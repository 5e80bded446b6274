#include "agent/treeid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/str.h"

#define SHA_BYTES 20
#define CHUNK 65536

struct entry {
	char *name;     /* owned */
	unsigned mode;  /* octal, as git writes it */
	uint8_t sha[SHA_BYTES];
};

struct walk {
	EVP_MD *md;
	int (*tick)(void *arg);
	void *arg;
	uint32_t entries; /* seen so far, in all folders */
	struct treeid_count count;
	char *chunk;      /* CHUNK bytes to read into */
};

struct list {
	struct entry *v;
	size_t n, cap;
};

static int
folder_hash(struct walk *w, int fd, unsigned depth, uint8_t sha[SHA_BYTES], bool *empty,
	struct err *e);

static EVP_MD_CTX *
object_begin(struct walk *w, const char *kind, uint64_t size, struct err *e)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	char head[48];
	int n = snprintf(head, sizeof head, "%s %" PRIu64, kind, size);

	/* The NUL behind the header belongs to the object. */
	if (c == NULL || EVP_DigestInit_ex(c, w->md, NULL) != 1 ||
	    EVP_DigestUpdate(c, head, (size_t)n + 1) != 1) {
		EVP_MD_CTX_free(c);
		err_set(e, ERR_NOMEM, "no memory for a digest");
		return NULL;
	}
	return c;
}

static int
object_end(EVP_MD_CTX *c, uint8_t sha[SHA_BYTES], struct err *e)
{
	int ok = EVP_DigestFinal_ex(c, sha, NULL);

	EVP_MD_CTX_free(c);
	return ok == 1 ? 0 : err_set(e, ERR_IO, "a digest failed");
}

static int
object_bytes(struct walk *w, const char *kind, const void *p, size_t n,
	uint8_t sha[SHA_BYTES], struct err *e)
{
	EVP_MD_CTX *c = object_begin(w, kind, n, e);

	if (c == NULL)
		return -1;
	if (EVP_DigestUpdate(c, p, n) != 1) {
		EVP_MD_CTX_free(c);
		return err_set(e, ERR_IO, "a digest failed");
	}
	return object_end(c, sha, e);
}

/* The size stands in front of the bytes, so a file that grows meanwhile has no id. */
static int
file_stream(struct walk *w, int fd, uint64_t size, const char *name, EVP_MD_CTX *c,
	struct err *e)
{
	uint64_t done = 0;
	ssize_t n;

	for (;;) {
		n = read(fd, w->chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "%s", name);
		if (n == 0)
			break;
		done += (uint64_t)n;
		if (done > size)
			break;
		if (EVP_DigestUpdate(c, w->chunk, (size_t)n) != 1)
			return err_set(e, ERR_IO, "a digest failed");
	}
	if (done != size)
		return err_set(e, ERR_IO, "%s changed while it was read", name);
	w->count.bytes += done;
	return 0;
}

static int
file_hash(struct walk *w, int dir, struct entry *n, struct err *e)
{
	int fd = openat(dir, n->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	EVP_MD_CTX *c = NULL;
	struct stat st;
	int rc = -1;

	if (fd < 0)
		return err_errno(e, errno, "%s", n->name);
	if (fstat(fd, &st) != 0) {
		err_errno(e, errno, "%s", n->name);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_IO, "%s changed while it was read", n->name);
		goto out;
	}
	if ((c = object_begin(w, "blob", (uint64_t)st.st_size, e)) == NULL)
		goto out;
	if (file_stream(w, fd, (uint64_t)st.st_size, n->name, c, e))
		goto out;
	rc = object_end(c, n->sha, e);
	c = NULL;
	n->mode = st.st_mode & S_IXUSR ? 0100755 : 0100644;
	w->count.files++;
out:
	EVP_MD_CTX_free(c);
	close(fd);
	return rc;
}

static int
link_hash(struct walk *w, int dir, struct entry *n, struct err *e)
{
	char to[PATH_MAX];
	ssize_t len = readlinkat(dir, n->name, to, sizeof to);

	if (len < 0)
		return err_errno(e, errno, "%s", n->name);
	if ((size_t)len >= sizeof to)
		return err_set(e, ERR_LIMIT, "%s: the link is too long", n->name);
	n->mode = 0120000;
	w->count.files++;
	w->count.bytes += (uint64_t)len;
	return object_bytes(w, "blob", to, (size_t)len, n->sha, e);
}

static int
subfolder_hash(struct walk *w, int dir, struct entry *n, unsigned depth, bool *empty,
	struct err *e)
{
	int fd = openat(dir, n->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, errno, "%s", n->name);
	n->mode = 040000;
	if (folder_hash(w, fd, depth + 1, n->sha, empty, e))
		return err_wrap(e, "%s", n->name);
	return 0;
}

/* *skip: the entry has no place in a tree. */
static int
entry_hash(struct walk *w, int dir, struct entry *n, unsigned depth, bool *skip,
	struct err *e)
{
	struct stat st;

	*skip = false;
	if (fstatat(dir, n->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return err_errno(e, errno, "%s", n->name);
	if (S_ISREG(st.st_mode))
		return file_hash(w, dir, n, e);
	if (S_ISLNK(st.st_mode))
		return link_hash(w, dir, n, e);
	if (S_ISDIR(st.st_mode))
		return subfolder_hash(w, dir, n, depth, skip, e);
	*skip = true;
	return 0;
}

static struct entry *
list_grow(struct list *l, const char *name, struct err *e)
{
	struct entry *v;
	size_t cap;

	if (l->n == l->cap) {
		cap = l->cap ? l->cap * 2 : 64;
		if ((v = realloc(l->v, cap * sizeof *v)) == NULL) {
			err_set(e, ERR_NOMEM, "no memory for %zu entries", cap);
			return NULL;
		}
		l->v = v;
		l->cap = cap;
	}
	v = &l->v[l->n];
	memset(v, 0, sizeof *v);
	if ((v->name = strdup(name)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a name");
		return NULL;
	}
	l->n++;
	return v;
}

static void
list_fini(struct list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
}

/* Bytes as unsigned, and a folder's name as if it ended in '/': git's order. */
static int
entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t nx = strlen(x->name), ny = strlen(y->name), n = nx < ny ? nx : ny;
	int c = memcmp(x->name, y->name, n);
	unsigned cx, cy;

	if (c != 0)
		return c;
	cx = (unsigned char)x->name[n];
	cy = (unsigned char)y->name[n];
	if (cx == 0 && x->mode == 040000)
		cx = '/';
	if (cy == 0 && y->mode == 040000)
		cy = '/';
	return cx < cy ? -1 : cx > cy;
}

static int
list_read(struct walk *w, DIR *d, unsigned depth, struct list *l, struct err *e)
{
	const struct dirent *de;
	struct entry *n;
	bool skip;

	for (errno = 0; (de = readdir(d)) != NULL; errno = 0) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, "..") ||
		    !strcmp(de->d_name, ".git"))
			continue;
		if (++w->entries > TREEID_MAX_ENTRIES)
			return err_set(e, ERR_LIMIT, "more than %d files",
				TREEID_MAX_ENTRIES);
		if (w->tick != NULL && w->tick(w->arg) != 0)
			return err_set(e, ERR_CANCELLED, "cancelled");
		if ((n = list_grow(l, de->d_name, e)) == NULL ||
		    entry_hash(w, dirfd(d), n, depth, &skip, e))
			return -1;
		if (skip) {
			free(n->name);
			l->n--;
		}
	}
	return errno ? err_errno(e, errno, "reading a folder") : 0;
}

static int
list_hash(struct walk *w, struct list *l, uint8_t sha[SHA_BYTES], struct err *e)
{
	struct buf b;
	size_t i;
	int rc = -1;

	buf_init(&b, 256u << 20);
	if (l->n > 0)
		qsort(l->v, l->n, sizeof *l->v, entry_compare);
	for (i = 0; i < l->n; i++)
		if (buf_addf(&b, e, "%o %s", l->v[i].mode, l->v[i].name) ||
		    buf_add(&b, "", 1, e) || buf_add(&b, l->v[i].sha, SHA_BYTES, e))
			goto out;
	rc = object_bytes(w, "tree", b.data ? b.data : "", b.len, sha, e);
out:
	buf_fini(&b);
	return rc;
}

/* Takes fd. */
static int
folder_hash(struct walk *w, int fd, unsigned depth, uint8_t sha[SHA_BYTES], bool *empty,
	struct err *e)
{
	struct list l = {NULL, 0, 0};
	DIR *d = NULL;
	int rc = -1;

	if (depth > TREEID_MAX_DEPTH) {
		close(fd);
		return err_set(e, ERR_LIMIT, "deeper than %d folders", TREEID_MAX_DEPTH);
	}
	if ((d = fdopendir(fd)) == NULL) {
		err_errno(e, errno, "reading a folder");
		close(fd);
		return -1;
	}
	if (list_read(w, d, depth, &l, e))
		goto out;
	*empty = l.n == 0;
	rc = list_hash(w, &l, sha, e);
out:
	list_fini(&l);
	closedir(d);
	return rc;
}

static int
walk_init(struct walk *w, struct err *e)
{
	memset(w, 0, sizeof *w);
	if ((w->chunk = malloc(CHUNK)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to read files");
	if ((w->md = EVP_MD_fetch(NULL, "SHA1", NULL)) == NULL) {
		free(w->chunk);
		return err_set(e, ERR_UNSUPPORTED,
			"this machine's OpenSSL has no SHA-1, which git tree ids need");
	}
	return 0;
}

static void
walk_fini(struct walk *w)
{
	EVP_MD_free(w->md);
	free(w->chunk);
}

int
treeid_folder(const char *path, int (*tick)(void *arg), void *arg, char hex[TREEID_HEX],
	struct treeid_count *count, struct err *e)
{
	struct walk w;
	uint8_t sha[SHA_BYTES];
	bool empty;
	int fd, rc;

	if (walk_init(&w, e))
		return -1;
	w.tick = tick;
	w.arg = arg;
	if ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		rc = err_errno(e, errno, "%s", path);
	else
		rc = folder_hash(&w, fd, 0, sha, &empty, e);
	if (rc == 0) {
		str_hex(hex, sha, sizeof sha);
		if (count != NULL)
			*count = w.count;
	}
	walk_fini(&w);
	return rc ? err_wrap(e, "tree id") : 0;
}

int
treeid_blob(const void *p, size_t n, char hex[TREEID_HEX], struct err *e)
{
	struct walk w;
	uint8_t sha[SHA_BYTES];
	int rc;

	if (walk_init(&w, e))
		return -1;
	if ((rc = object_bytes(&w, "blob", p, n, sha, e)) == 0)
		str_hex(hex, sha, sizeof sha);
	walk_fini(&w);
	return rc;
}
