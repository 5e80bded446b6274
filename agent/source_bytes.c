#include "agent/source_bytes.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/plat.h"
#include "common/str.h"

#define ID_MAX 32          /* bytes of a SHA-256 */
#define FILE_MAX (1u << 30)
#define TREE_MAX (64u << 20)
#define MAX_DEPTH 64

/* A row of the list. */
struct row {
	char mode[8], kind[8], hex[65];
	const char *path; /* borrows the list */
};

/* A folder whose rows are being read. */
struct level {
	struct buf tree;
	size_t prefix; /* bytes of its path with the slash */
};

struct walk {
	const char *folder;
	const EVP_MD *md;
	size_t id;        /* bytes */
	struct level level[MAX_DEPTH];
	int depth;
	char path[PATH_MAX]; /* of the row before */
};

static int
object_id(const struct walk *w, const char *kind, const void *p, size_t n,
	unsigned char id[ID_MAX], struct err *e)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	char head[48];
	int k = snprintf(head, sizeof head, "%s %zu", kind, n);
	bool ok;

	/* the NUL behind the header belongs to the object */
	ok = c != NULL && EVP_DigestInit_ex(c, w->md, NULL) == 1 &&
		EVP_DigestUpdate(c, head, (size_t)k + 1) == 1 &&
		EVP_DigestUpdate(c, p, n) == 1 && EVP_DigestFinal_ex(c, id, NULL) == 1;
	EVP_MD_CTX_free(c);
	return ok ? 0 : err_set(e, ERR_IO, "a digest failed");
}

static size_t
without_cr(char *p, size_t n)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (p[i] != '\r' || i + 1 == n || p[i + 1] != '\n')
			p[k++] = p[i];
	return k;
}

static int
file_id(const struct walk *w, const struct row *r, const char *path,
	unsigned char id[ID_MAX], struct err *e)
{
	unsigned char wanted[ID_MAX];
	char *text = NULL;
	size_t n, k;
	int rc = -1;

	if (str_unhex(wanted, w->id, r->hex))
		return err_set(e, ERR_PARSE, "the list of files has a strange id");
	if (plat_read_file(path, FILE_MAX, &text, &n, e))
		return -1;
	if (object_id(w, "blob", text, n, id, e))
		goto out;
	if (memcmp(id, wanted, w->id) != 0 && (k = without_cr(text, n)) < n) {
		unsigned char other[ID_MAX];

		if (object_id(w, "blob", text, k, other, e))
			goto out;
		if (memcmp(other, wanted, w->id) == 0)
			memcpy(id, other, w->id);
	}
	rc = 0;
out:
	free(text);
	return rc;
}

static int
row_id(const struct walk *w, const struct row *r, unsigned char id[ID_MAX], struct err *e)
{
	char path[2 * PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (strcmp(r->kind, "commit") == 0)
		return str_unhex(id, w->id, r->hex)
			? err_set(e, ERR_PARSE, "the list of files has a strange id") : 0;
	if (str_fmt(path, sizeof path, e, "%s/%s", w->folder, r->path))
		return -1;
	if (lstat(path, &st) == 0 && strcmp(r->mode, "120000") == 0 && S_ISLNK(st.st_mode) &&
	    (n = readlink(path, target, sizeof target)) >= 0)
		return object_id(w, "blob", target, (size_t)n, id, e);
	if (lstat(path, &st) == 0 && strcmp(r->mode, "120000") != 0 && S_ISREG(st.st_mode))
		return file_id(w, r, path, id, e);
	memset(id, 0, ID_MAX);
	return 0;
}

static int
entry_add(struct walk *w, struct level *l, const char *mode, const char *name, size_t n,
	const unsigned char *id, struct err *e)
{
	return buf_addf(&l->tree, e, "%s %.*s", mode, (int)n, name) ||
		buf_add(&l->tree, "", 1, e) || buf_add(&l->tree, id, w->id, e) ? -1 : 0;
}

static int
level_open(struct walk *w, size_t prefix, struct err *e)
{
	if (w->depth == MAX_DEPTH)
		return err_set(e, ERR_LIMIT, "deeper than %d folders", MAX_DEPTH);
	buf_init(&w->level[w->depth].tree, TREE_MAX);
	w->level[w->depth++].prefix = prefix;
	return 0;
}

/* The innermost folder is whole: its id goes to the one around it, or to id. */
static int
level_close(struct walk *w, unsigned char id[ID_MAX], struct err *e)
{
	struct level *l = &w->level[--w->depth], *up = l - 1;
	int rc = object_id(w, "tree", l->tree.data ? l->tree.data : "", l->tree.len, id, e);

	buf_fini(&l->tree);
	if (rc || w->depth == 0)
		return rc;
	return entry_add(w, up, "40000", w->path + up->prefix, l->prefix - 1 - up->prefix, id,
		e);
}

/* Leaves the folders that the path is not in, enters those that it is in. */
static int
levels_fit(struct walk *w, const char *path, struct err *e)
{
	unsigned char id[ID_MAX];
	const char *slash;
	size_t at;

	while (w->depth > 1 && strncmp(w->path, path, w->level[w->depth - 1].prefix) != 0)
		if (level_close(w, id, e))
			return -1;
	for (;;) {
		at = w->level[w->depth - 1].prefix;
		if ((slash = strchr(path + at, '/')) == NULL)
			return str_copy(w->path, sizeof w->path, path, e);
		if (slash == path + at)
			return err_set(e, ERR_PARSE, "the list of files has an empty name");
		if (level_open(w, (size_t)(slash - path) + 1, e))
			return -1;
	}
}

/* "100644 blob ID\tPATH" */
static int
row_parse(char *text, struct row *r, struct err *e)
{
	char *tab = strchr(text, '\t'), *word[3];

	if (tab != NULL)
		*tab = '\0';
	if (tab == NULL || tab[1] == '\0' || str_split(text, false, word, 3) != 3 ||
	    str_copy(r->mode, sizeof r->mode, word[0], NULL) ||
	    str_copy(r->kind, sizeof r->kind, word[1], NULL) ||
	    str_copy(r->hex, sizeof r->hex, word[2], NULL) ||
	    (!str_is_hex(r->hex, 40) && !str_is_hex(r->hex, 64)))
		return err_set(e, ERR_PARSE, "the list of files is not git's");
	r->path = tab + 1;
	return 0;
}

static int
rows_read(struct walk *w, char *text, size_t len, int (*tick)(void *arg), void *arg,
	struct err *e)
{
	unsigned char id[ID_MAX];
	struct level *l;
	struct row r;
	size_t at, n;

	for (at = 0; at < len; at += n + 1) {
		n = strlen(text + at);
		if (tick != NULL && tick(arg) != 0)
			return err_set(e, ERR_CANCELLED, "cancelled");
		if (row_parse(text + at, &r, e))
			return -1;
		if (w->md == NULL) {
			w->id = strlen(r.hex) / 2;
			w->md = w->id == 20 ? EVP_sha1() : EVP_sha256();
		}
		if (strlen(r.hex) != w->id * 2)
			return err_set(e, ERR_PARSE, "the list of files mixes kinds of ids");
		if (levels_fit(w, r.path, e) || row_id(w, &r, id, e))
			return -1;
		l = &w->level[w->depth - 1];
		if (entry_add(w, l, r.mode, r.path + l->prefix, strlen(r.path + l->prefix), id, e))
			return -1;
	}
	return w->md != NULL ? 0 : err_set(e, ERR_PARSE, "the list of files is empty");
}

int
source_bytes(const char *folder, const char *list, size_t len, int (*tick)(void *arg),
	void *arg, char hex[65], struct err *e)
{
	struct walk *w = calloc(1, sizeof *w);
	char *text = malloc(len + 1);
	unsigned char id[ID_MAX];
	int rc = -1;

	if (w == NULL || text == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a list of files");
		goto out;
	}
	if (len > 0)
		memcpy(text, list, len);
	text[len] = '\0';
	w->folder = folder;
	if (level_open(w, 0, e) || rows_read(w, text, len, tick, arg, e))
		goto out;
	do
		if (level_close(w, id, e))
			goto out;
	while (w->depth > 0);
	str_hex(hex, id, w->id);
	rc = 0;
out:
	while (w != NULL && w->depth > 0)
		buf_fini(&w->level[--w->depth].tree);
	free(w);
	free(text);
	return rc;
}
