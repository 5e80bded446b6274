#include "common/plat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "common/str.h"

static int64_t
clock_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t
plat_now_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

int64_t
plat_mono_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

void
plat_utc(int64_t ms, char out[24])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (gmtime_r(&s, &tm) == NULL || strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}

int64_t
plat_utc_parse(const char *s)
{
	struct tm tm;
	const char *end;
	char again[24];
	time_t t;

	memset(&tm, 0, sizeof tm);
	if (s == NULL || strlen(s) != 20 ||
	    (end = strptime(s, "%Y-%m-%dT%H:%M:%SZ", &tm)) == NULL || *end != '\0' ||
	    (t = timegm(&tm)) < 0)
		return -1;
	/* strptime takes blanks for digits, and the 31st of any month */
	plat_utc((int64_t)t * 1000, again);
	return strcmp(again, s) == 0 ? (int64_t)t * 1000 : -1;
}

int
plat_random(void *p, size_t n, struct err *e)
{
	if (n > INT32_MAX || RAND_bytes(p, (int)n) != 1)
		return err_set(e, ERR_IO, "the random generator failed");
	return 0;
}

int
plat_random_hex(char *out, size_t count, struct err *e)
{
	uint8_t raw[64];

	if (count % 2 != 0 || count / 2 > sizeof raw)
		return err_set(e, ERR_LIMIT, "%zu random digits at once", count);
	if (plat_random(raw, count / 2, e))
		return -1;
	str_hex(out, raw, count / 2);
	return 0;
}

int
plat_mkdirs(const char *path, unsigned mode, struct err *e)
{
	char part[4096];
	char *p;

	if (path[0] == '\0')
		return err_set(e, ERR_USAGE, "a folder without a name");
	if (str_copy(part, sizeof part, path, e))
		return -1;
	for (p = part + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, mode) && errno != EEXIST)
			return err_errno(e, errno, "mkdir %s", part);
		*p = '/';
	}
	if (mkdir(part, mode) && errno != EEXIST)
		return err_errno(e, errno, "mkdir %s", part);
	if (!plat_is_dir(part))
		return err_set(e, ERR_CONFLICT, "%s is not a folder", part);
	return 0;
}

int
plat_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	ssize_t w;

	while (n > 0) {
		if ((w = write(fd, at, n)) < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

/* So that the rename itself survives a power cut. */
static void
sync_parent(const char *path)
{
	char dir[4096];
	char *slash;
	int fd;

	if (str_copy(dir, sizeof dir, path, NULL))
		return;
	slash = strrchr(dir, '/');
	if (slash != NULL)
		slash[slash == dir] = '\0';
	if ((fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return;
	fsync(fd);
	close(fd);
}

int
plat_write_file(const char *path, const void *p, size_t n, unsigned mode, struct err *e)
{
	char temp[4200], tag[17];
	int fd = -1, rc = -1;

	if (plat_random_hex(tag, 16, e) ||
	    str_fmt(temp, sizeof temp, e, "%s.%s.tmp", path, tag))
		return -1;
	if ((fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)) < 0)
		return err_errno(e, errno, "%s", path);
	if (fchmod(fd, mode) || plat_write_all(fd, p, n) || fsync(fd)) {
		err_errno(e, errno, "write %s", path);
		goto out;
	}
	if (rename(temp, path)) {
		err_errno(e, errno, "rename to %s", path);
		goto out;
	}
	sync_parent(path);
	rc = 0;
out:
	close(fd);
	if (rc)
		unlink(temp);
	return rc;
}

/* The rest of fd, of about `expected` bytes, as plat_read_file gives it. */
static int
fd_read(int fd, const char *name, size_t expected, size_t max, char **out, size_t *len,
	struct err *e)
{
	char *text = NULL, *grown;
	size_t got = 0, cap = 0;
	ssize_t n;

	/* Up to one byte more than the maximum: files of /proc say 0 bytes, others grow. */
	do {
		if (got == cap) {
			cap = text != NULL ? cap * 2 : expected > 0 ? expected + 1 : 4096;
			cap = cap < max + 1 ? cap : max + 1;
			if ((grown = realloc(text, cap + 1)) == NULL) {
				err_set(e, ERR_NOMEM, "no memory for %s", name);
				goto out;
			}
			text = grown;
		}
		n = read(fd, text + got, cap - got);
		if (n < 0 && errno != EINTR) {
			err_errno(e, errno, "read %s", name);
			goto out;
		}
		got += n > 0 ? (size_t)n : 0;
	} while (n != 0 && got <= max);
	if (got > max) {
		err_set(e, ERR_LIMIT, "%s: more than %zu bytes", name, max);
		goto out;
	}
	text[got] = '\0';
	*out = text;
	if (len != NULL)
		*len = got;
	return 0;
out:
	free(text);
	return -1;
}

int
plat_read_file(const char *path, size_t max, char **out, size_t *len, struct err *e)
{
	struct stat st;
	int fd, rc = -1;

	max = max < SIZE_MAX / 2 ? max : SIZE_MAX / 2;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return err_errno(e, errno, "%s", path);
	if (fstat(fd, &st))
		err_errno(e, errno, "%s", path);
	else if (!S_ISREG(st.st_mode))
		err_set(e, ERR_PARSE, "%s: not a regular file", path);
	else if ((uint64_t)st.st_size > max)
		err_set(e, ERR_LIMIT, "%s: %lld bytes, more than %zu", path,
			(long long)st.st_size, max);
	else
		rc = fd_read(fd, path, (size_t)st.st_size, max, out, len, e);
	close(fd);
	return rc;
}

int
plat_read_input(const char *path, size_t max, char **out, size_t *len, struct err *e)
{
	if (strcmp(path, "-") != 0)
		return plat_read_file(path, max, out, len, e);
	return fd_read(STDIN_FILENO, "standard input", 0, max, out, len, e);
}

/* Removes what is in the open folder; takes fd. */
static int
remove_below(int fd, int depth, struct err *e)
{
	struct dirent *d;
	DIR *dir;
	int sub, rc = 0;

	if (depth > 200 || (dir = fdopendir(fd)) == NULL) {
		close(fd);
		return err_set(e, ERR_LIMIT, "a folder tree too deep to remove");
	}
	while (rc == 0 && (d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, d->d_name, 0) == 0 || errno == ENOENT)
			continue;
		sub = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			rc = err_errno(e, errno, "remove %s", d->d_name);
		else if ((rc = remove_below(sub, depth + 1, e)) == 0 &&
			unlinkat(fd, d->d_name, AT_REMOVEDIR) && errno != ENOENT)
			rc = err_errno(e, errno, "remove %s", d->d_name);
	}
	closedir(dir);
	return rc;
}

int
plat_remove_tree(const char *path, struct err *e)
{
	int fd;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0) {
		if (unlink(path) && errno != ENOENT)
			return err_errno(e, errno, "remove %s", path);
		return 0;
	}
	if (remove_below(fd, 0, e))
		return err_wrap(e, "%s", path);
	if (rmdir(path) && errno != ENOENT)
		return err_errno(e, errno, "remove %s", path);
	return 0;
}

bool
plat_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

bool
plat_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool
plat_is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int
plat_xdg(const char *kind, const char *name, char *out, size_t size, struct err *e)
{
	static const struct {
		const char *kind, *variable, *below_home;
	} rows[] = {
		{"STATE", "XDG_STATE_HOME", ".local/state"},
		{"DATA", "XDG_DATA_HOME", ".local/share"},
		{"CONFIG", "XDG_CONFIG_HOME", ".config"},
		{"CACHE", "XDG_CACHE_HOME", ".cache"},
	};
	const char *base, *home;
	size_t i;

	for (i = 0; i < str_count(rows) && strcmp(rows[i].kind, kind) != 0; i++)
		;
	if (i == str_count(rows))
		return err_set(e, ERR_USAGE, "no such base folder: %s", kind);
	base = getenv(rows[i].variable);
	if (base != NULL && base[0] == '/')
		return str_fmt(out, size, e, "%s/%s", base, name);
	if ((home = getenv("HOME")) == NULL || home[0] != '/') {
		err_set(e, ERR_USAGE, "neither $%s nor $HOME is set", rows[i].variable);
		return err_hint(e, "set HOME, or $%s to an absolute path", rows[i].variable);
	}
	return str_fmt(out, size, e, "%s/%s/%s", home, rows[i].below_home, name);
}

int
plat_absolute(const char *path, char *out, size_t size, struct err *e)
{
	char cwd[4096];

	if (path[0] == '/')
		return str_copy(out, size, path, e);
	if (getcwd(cwd, sizeof cwd) == NULL)
		return err_errno(e, errno, "the current folder can not be named");
	return str_fmt(out, size, e, "%s/%s", cwd, path);
}

int
plat_self(char *out, size_t size, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", out, size);

	if (n < 0)
		return err_errno(e, errno, "/proc/self/exe");
	if ((size_t)n >= size)
		return err_set(e, ERR_LIMIT, "the path of this program is too long");
	out[n] = '\0';
	/* after an upgrade in place the old file's link ends so */
	if (str_ends(out, " (deleted)"))
		out[n - 10] = '\0';
	return 0;
}

void
plat_boot_id(char out[40])
{
	char *text = NULL;

	out[0] = '\0';
	if (plat_read_file("/proc/sys/kernel/random/boot_id", 64, &text, NULL, NULL))
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) < 40)
		memcpy(out, text, strlen(text) + 1);
	free(text);
}

static bool
is_executable(const char *path)
{
	return plat_is_file(path) && access(path, X_OK) == 0;
}

int
plat_find_tool(const char *name, char *out, size_t size, struct err *e)
{
	const char *cuda = getenv("CUDA_HOME"), *path = getenv("PATH");
	char list[8192];
	char *dir, *next;

	if (name[0] == '/')
		return is_executable(name) ? str_copy(out, size, name, e)
					   : err_set(e, ERR_NOTFOUND, "%s: no such program", name);
	if (str_fmt(list, sizeof list, e, "%s:%s%s/usr/local/cuda/bin:/opt/rocm/bin",
		    path ? path : "/usr/local/bin:/usr/bin:/bin", cuda ? cuda : "",
		    cuda ? "/bin:" : ""))
		return -1;
	for (dir = list; dir != NULL; dir = next) {
		if ((next = strchr(dir, ':')) != NULL)
			*next++ = '\0';
		if (dir[0] == '/' && str_fmt(out, size, NULL, "%s/%s", dir, name) == 0 &&
		    is_executable(out))
			return 0;
	}
	err_set(e, ERR_NOTFOUND, "%s is not in PATH, nor in the CUDA and ROCm folders", name);
	return err_hint(e, "install %s, or add its folder to PATH", name);
}

const char *
plat_env(const char *name, const char **used)
{
	static char older[96]; /* constant text per name; callers use it at once */
	const char *v = getenv(name);

	if (used != NULL)
		*used = name;
	if (v != NULL && v[0] != '\0')
		return v;
	if (!str_starts(name, "ELIZA_MTP_") ||
	    str_fmt(older, sizeof older, NULL, "ELIZA_DFLASH_%s", name + 10))
		return NULL;
	v = getenv(older);
	if (v == NULL || v[0] == '\0')
		return NULL;
	if (used != NULL)
		*used = older;
	return v;
}
