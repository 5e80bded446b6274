#include "agent/hashcache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/str.h"

#define HEADER "verify-hashcache 1"
#define LINE_MAX_BYTES 192
#define FILE_MAX_BYTES (HASHCACHE_MAX * LINE_MAX_BYTES)
#define FIELDS 5

/* Device, inode, size, mtime and ctime in ns; times before 1970 wrap and compare well. */
struct entry {
	uint64_t field[FIELDS];
	char hex[DIGEST_HEX];
};

struct cache {
	struct entry entry[HASHCACHE_MAX];
	size_t count;
};

static uint64_t
time_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static void
entry_key(const struct stat *st, uint64_t key[FIELDS])
{
	key[0] = (uint64_t)st->st_dev;
	key[1] = (uint64_t)st->st_ino;
	key[2] = (uint64_t)st->st_size;
	key[3] = time_ns(&st->st_mtim);
	key[4] = time_ns(&st->st_ctim);
}

static int
entry_parse(char *line, struct entry *en)
{
	char *word[FIELDS + 1];

	if (str_split(line, false, word, FIELDS + 1) != FIELDS + 1)
		return -1;
	for (int i = 0; i < FIELDS; i++)
		if (str_u64(word[i], 0, UINT64_MAX, &en->field[i], NULL))
			return -1;
	if (!str_is_hex(word[FIELDS], DIGEST_HEX - 1))
		return -1;
	return str_copy(en->hex, sizeof en->hex, word[FIELDS], NULL);
}

/* Anything odd makes the whole file void: half a truth is none. */
static void
cache_parse(struct cache *c, char *text)
{
	char *end, *line = text;

	c->count = 0;
	for (bool first = true; *line != '\0'; line = end + 1, first = false) {
		if ((end = strchr(line, '\n')) == NULL)
			goto damaged;
		*end = '\0';
		if (first && strcmp(line, HEADER) != 0)
			goto damaged;
		if (first)
			continue;
		if (c->count == HASHCACHE_MAX || entry_parse(line, &c->entry[c->count]))
			goto damaged;
		c->count++;
	}
	return;
damaged:
	c->count = 0;
}

static void
cache_load(struct cache *c, const char *path)
{
	char *text = NULL;
	size_t len;

	c->count = 0;
	if (plat_read_file(path, FILE_MAX_BYTES, &text, &len, NULL))
		return;
	if (strlen(text) == len)
		cache_parse(c, text);
	free(text);
}

static const struct entry *
cache_find(const struct cache *c, const uint64_t key[FIELDS])
{
	for (size_t i = 0; i < c->count; i++)
		if (memcmp(c->entry[i].field, key, sizeof c->entry[i].field) == 0)
			return &c->entry[i];
	return NULL;
}

static void
cache_remove(struct cache *c, size_t i)
{
	c->count--;
	memmove(&c->entry[i], &c->entry[i + 1], (c->count - i) * sizeof c->entry[0]);
}

/* An older state of the same inode is of no more use; then the oldest makes room. */
static void
cache_add(struct cache *c, const uint64_t key[FIELDS], const char *hex)
{
	for (size_t i = c->count; i-- > 0; )
		if (c->entry[i].field[0] == key[0] && c->entry[i].field[1] == key[1])
			cache_remove(c, i);
	if (c->count == HASHCACHE_MAX)
		cache_remove(c, 0);
	memcpy(c->entry[c->count].field, key, sizeof c->entry[0].field);
	memcpy(c->entry[c->count].hex, hex, DIGEST_HEX);
	c->count++;
}

static int
make_parent(const char *path)
{
	char folder[4096], *slash;

	if (str_copy(folder, sizeof folder, path, NULL))
		return -1;
	if ((slash = strrchr(folder, '/')) == NULL || slash == folder)
		return 0;
	*slash = '\0';
	return plat_mkdirs(folder, 0700, NULL);
}

/* Failing costs the next run some time, so it is nobody's error. */
static void
cache_save(const struct cache *c, const char *path)
{
	struct buf b;
	int bad;

	buf_init(&b, FILE_MAX_BYTES);
	bad = buf_addf(&b, NULL, "%s\n", HEADER);
	for (size_t i = 0; !bad && i < c->count; i++) {
		const uint64_t *f = c->entry[i].field;

		bad = buf_addf(&b, NULL, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 " %s\n", f[0], f[1], f[2], f[3], f[4], c->entry[i].hex);
	}
	if (!bad && make_parent(path) == 0)
		(void)!plat_write_file(path, b.data, b.len, 0600, NULL);
	buf_fini(&b);
}

static bool
is_settled(const struct stat *st, int64_t now_ms)
{
	int64_t limit = now_ms - HASHCACHE_SETTLE_MS;

	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000 < limit &&
		(int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000 < limit;
}

static int
digest_open(int fd, const uint64_t key[FIELDS], digest_progress fn, void *arg,
	char hex[DIGEST_HEX], struct err *e)
{
	struct stat after;
	uint64_t now[FIELDS], read_bytes;

	if (digest_fd(fd, fn, arg, hex, &read_bytes, e))
		return -1;
	if (fstat(fd, &after) != 0)
		return err_errno(e, errno, "stat");
	entry_key(&after, now);
	if (memcmp(now, key, sizeof now) != 0 || read_bytes != key[2])
		return err_set(e, ERR_INTEGRITY, "the file changed while it was read");
	return 0;
}

static int
digest_cached(const char *cache_path, int fd, const struct stat *st, digest_progress fn,
	void *arg, char hex[DIGEST_HEX], bool *cached, struct err *e)
{
	struct cache *c = calloc(1, sizeof *c);
	const struct entry *known;
	int64_t now_ms = plat_now_ms();
	uint64_t key[FIELDS];
	int rc = -1;

	if (c == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the digest cache");
	entry_key(st, key);
	if (cache_path != NULL)
		cache_load(c, cache_path);
	*cached = (known = cache_find(c, key)) != NULL;
	if (*cached) {
		memcpy(hex, known->hex, DIGEST_HEX);
	} else {
		if (digest_open(fd, key, fn, arg, hex, e))
			goto out;
		if (cache_path != NULL && is_settled(st, now_ms)) {
			/* Again: reading may have taken minutes. */
			cache_load(c, cache_path);
			cache_add(c, key, hex);
			cache_save(c, cache_path);
		}
	}
	rc = 0;
out:
	free(c);
	return rc;
}

int
hashcache_file(const char *cache_path, const char *file, digest_progress fn, void *arg,
	char hex[DIGEST_HEX], uint64_t *bytes, bool *cached, struct err *e)
{
	struct stat st;
	bool spared = false;
	int fd, rc = -1;

	if ((fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) < 0)
		return err_errno(e, errno, "%s", file);
	if (fstat(fd, &st) != 0) {
		err_errno(e, errno, "%s", file);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_USAGE, "%s: not a regular file", file);
		goto out;
	}
	if (digest_cached(cache_path, fd, &st, fn, arg, hex, &spared, e)) {
		err_wrap(e, "%s", file);
		goto out;
	}
	if (bytes != NULL)
		*bytes = (uint64_t)st.st_size;
	if (cached != NULL)
		*cached = spared;
	rc = 0;
out:
	(void)close(fd);
	return rc;
}
