#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/build_impl.h"
#include "agent/lock.h"
#include "common/plat.h"

#define MAX_BUILDS 512
#define MAX_DEPTH 40

struct kept {
	char key[DIGEST_HEX];
	struct timespec used; /* of the lock file: each use touches it */
	uint64_t bytes;
};

/* Takes fd.  What can not be read counts as nothing. */
static uint64_t
folder_bytes(int fd, int depth)
{
	const struct dirent *de;
	struct stat st;
	uint64_t sum = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((de = readdir(d)) != NULL) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, "..") ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		sum += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			sum += folder_bytes(openat(dirfd(d), de->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), depth + 1);
	}
	closedir(d);
	return sum;
}

static int
used_compare(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

static int
kept_list(const char *builds, struct kept *v, int max)
{
	char path[BUILD_PATH + 80];
	const struct dirent *de;
	struct stat st;
	DIR *d = opendir(builds);
	int n = 0;

	while (d != NULL && n < max && (de = readdir(d)) != NULL) {
		if (!str_is_hex(de->d_name, 64))
			continue;
		memset(&v[n], 0, sizeof v[n]);
		memcpy(v[n].key, de->d_name, DIGEST_HEX);
		v[n].bytes = folder_bytes(openat(dirfd(d), de->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0);
		snprintf(path, sizeof path, "%s/%s.lock", builds, v[n].key);
		if (stat(path, &st) == 0)
			v[n].used = st.st_mtim;
		n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* One that is being made or used is held by its lock, and stays. */
static bool
kept_remove(const char *builds, const struct kept *k)
{
	char path[BUILD_PATH + 80], lock[BUILD_PATH + 88];
	struct err e;
	bool done = false;
	int fd;

	snprintf(path, sizeof path, "%s/%s", builds, k->key);
	snprintf(lock, sizeof lock, "%s.lock", path);
	if (lock_try(lock, true, &fd, &e))
		return false;
	if (plat_remove_tree(path, &e) == 0) {
		lock_remove(lock);
		done = true;
	}
	lock_release(fd);
	return done;
}

int
build_cache_prune(const struct build_ask *ask, const char *builds, const char *key,
	struct transcript *log, struct err *e)
{
	uint64_t max = ask->keep_bytes ? ask->keep_bytes : BUILD_KEEP_BYTES, sum = 0;
	int keep = ask->keep ? (int)ask->keep : BUILD_KEEP;
	struct kept *v = calloc(MAX_BUILDS, sizeof *v);
	int i, n = 0, left, rc = 0;

	if (v != NULL)
		n = kept_list(builds, v, MAX_BUILDS);
	for (i = 0; i < n; i++)
		sum += v[i].bytes;
	left = n;
	if (n > 0)
		qsort(v, (size_t)n, sizeof *v, used_compare);
	for (i = 0; i < n && rc == 0 && (left > keep || sum > max); i++) {
		if (strcmp(v[i].key, key) == 0 || !kept_remove(builds, &v[i]))
			continue;
		rc = transcript_fact(log, "build_removed", v[i].key, e);
		sum -= v[i].bytes;
		left--;
	}
	free(v);
	return rc;
}
