#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "agent/build_impl.h"
#include "agent/lock.h"
#include "common/plat.h"

#define COPY_CHUNK (256 * 1024)

int
build_output_dir(const struct target *t, char *out, size_t size, struct err *e)
{
	const char *dir = NULL, *home;
	const char *state = getenv("ELIZA_STATE_DIR");

	if (t->api == API_VULKAN)
		dir = plat_env("ELIZA_MTP_TARGET_OUT_DIR", NULL);
	if (dir == NULL)
		dir = plat_env("ELIZA_MTP_BIN_DIR", NULL);
	if (dir != NULL)
		return str_copy(out, size, dir, e);
	if (state != NULL && state[0] != '\0')
		return str_fmt(out, size, e, "%s/local-inference/bin/mtp/%s", state, t->name);
	if ((home = getenv("HOME")) == NULL || home[0] == '\0') {
		err_set(e, ERR_NOTFOUND, "no folder to install to: HOME is not set");
		return err_hint(e, "set ELIZA_STATE_DIR or ELIZA_MTP_BIN_DIR");
	}
	return str_fmt(out, size, e, "%s/.eliza/local-inference/bin/mtp/%s", home, t->name);
}

/* ---- copying ---- */

static int
bytes_copy(int from, int to, const char *name, struct err *e)
{
	char *chunk = malloc(COPY_CHUNK);
	ssize_t n, w, done;
	int rc = -1;

	if (chunk == NULL)
		return err_set(e, ERR_NOMEM, "no memory to copy");
	for (;;) {
		if ((n = read(from, chunk, COPY_CHUNK)) < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (done = 0; done < n; done += w)
			if ((w = write(to, chunk + done, (size_t)(n - done))) < 0) {
				if (errno != EINTR) {
					err_errno(e, errno, "%s", name);
					goto out;
				}
				w = 0;
			}
	}
	if (n < 0 || fsync(to) != 0)
		err_errno(e, errno, "%s", name);
	else
		rc = 0;
out:
	free(chunk);
	return rc;
}

static int
file_copy(const char *from, const char *to, unsigned mode, struct err *e)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, rc = -1;

	if (in < 0)
		return err_errno(e, errno, "%s", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (out < 0 || fchmod(out, mode) != 0)
		err_errno(e, errno, "%s", to);
	else
		rc = bytes_copy(in, out, to, e);
	close(in);
	if (out >= 0 && close(out) != 0 && rc == 0)
		rc = err_errno(e, errno, "%s", to);
	return rc;
}

static int
artifact_copy(const struct build_artifact *a, const char *dir, struct err *e)
{
	char to[BUILD_PATH + 80], hex[DIGEST_HEX];

	snprintf(to, sizeof to, "%s/%s", dir, a->name);
	if (file_copy(a->path, to, a->program ? 0755 : 0644, e) ||
	    digest_file(to, hex, NULL, e))
		return -1;
	if (strcmp(hex, a->sha256) != 0)
		return err_set(e, ERR_INTEGRITY, "%s changed while it was installed",
			a->name);
	return 0;
}

/* "libllama.so.0 -> libllama.so.0.4.0": other names of the libraries that are copied. */
static int
links_copy(const struct build_info *b, const char *dir, struct err *e)
{
	char to[CAPABILITIES_NAME];
	const struct dirent *de;
	DIR *d = opendir(b->bin_dir);
	ssize_t n;
	int rc = 0, fd;

	if (d == NULL)
		return err_errno(e, errno, "%s", b->bin_dir);
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		rc = err_errno(e, errno, "%s", dir);
	while (rc == 0 && (de = readdir(d)) != NULL) {
		if (!build_is_name(de->d_name) || strstr(de->d_name, ".so") == NULL)
			continue;
		n = readlinkat(dirfd(d), de->d_name, to, sizeof to);
		if (n <= 0 || (size_t)n >= sizeof to)
			continue;
		to[n] = '\0';
		if (build_is_name(to) && symlinkat(to, fd, de->d_name) != 0)
			rc = err_errno(e, errno, "%s/%s", dir, de->d_name);
	}
	if (fd >= 0)
		close(fd);
	closedir(d);
	return rc;
}

static int
extra_copy(const char *from, const char *name, const char *dir, struct err *e)
{
	char a[BUILD_PATH + 80], b[BUILD_PATH + 80];

	snprintf(a, sizeof a, "%s/%s", from, name);
	snprintf(b, sizeof b, "%s/%s", dir, name);
	return file_copy(a, b, 0644, e);
}

static int
folder_sync(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return err_errno(e, errno, "%s", path);
	if (fsync(fd) != 0 && errno != EINVAL)
		rc = err_errno(e, errno, "%s", path);
	close(fd);
	return rc;
}

/* ---- the swap ---- */

/* parent/.NAME.new, parent/.NAME.old, parent/.NAME.lock beside parent/NAME. */
struct places {
	char parent[BUILD_PATH], fresh[BUILD_PATH], old[BUILD_PATH], lock[BUILD_PATH];
	char out[BUILD_PATH];
};

static int
places_make(const char *out_dir, struct places *p, struct err *e)
{
	char *slash;

	if (str_copy(p->out, sizeof p->out, out_dir, e))
		return -1;
	while (strlen(p->out) > 1 && str_ends(p->out, "/"))
		p->out[strlen(p->out) - 1] = '\0';
	slash = strrchr(p->out, '/');
	if (slash == NULL || slash[1] == '\0' || !strcmp(slash, "/..") ||
	    !strcmp(slash, "/."))
		return err_set(e, ERR_USAGE, "%s is no folder to install to", out_dir);
	memcpy(p->parent, p->out, sizeof p->out);
	p->parent[slash - p->out] = '\0';
	if (p->parent[0] == '\0')
		memcpy(p->parent, "/", 2);
	if (str_fmt(p->fresh, sizeof p->fresh, e, "%s/.%s.new", p->parent, slash + 1) ||
	    str_fmt(p->old, sizeof p->old, e, "%s/.%s.old", p->parent, slash + 1) ||
	    str_fmt(p->lock, sizeof p->lock, e, "%s/.%s.lock", p->parent, slash + 1))
		return -1;
	return 0;
}

/* An earlier install that died between the two renames is undone: old comes back. */
static int
leftovers_clear(const struct places *p, struct err *e)
{
	struct stat st;

	if (lstat(p->out, &st) != 0 && lstat(p->old, &st) == 0 &&
	    rename(p->old, p->out) != 0)
		return err_errno(e, errno, "%s", p->out);
	return plat_remove_tree(p->old, e) || plat_remove_tree(p->fresh, e) ? -1 : 0;
}

/* Both names change in one step where the kernel can; the previous one is then at
 * p->fresh. */
static bool
exchange(const struct places *p)
{
#if defined(__linux__) && defined(SYS_renameat2)
	return syscall(SYS_renameat2, AT_FDCWD, p->fresh, AT_FDCWD, p->out, 2u) == 0;
#else
	(void)p;
	return false;
#endif
}

/* Where the kernel or the file system can not exchange: for a moment nothing stands there,
 * and leftovers_clear brings the old one back if we die just then. */
static int
two_steps(const struct places *p, struct err *e)
{
	if (rename(p->out, p->old) != 0)
		return err_errno(e, errno, "%s", p->out);
	if (rename(p->fresh, p->out) == 0)
		return 0;
	err_errno(e, errno, "%s", p->out);
	if (rename(p->old, p->out) != 0)
		err_wrap(e, "the old one is at %s", p->old);
	return -1;
}

static int
swap(const struct places *p, struct err *e)
{
	struct stat st;

	if (lstat(p->out, &st) != 0) {
		if (rename(p->fresh, p->out) != 0)
			return err_errno(e, errno, "%s", p->out);
	} else if (!exchange(p) && two_steps(p, e)) {
		return -1;
	}
	if (folder_sync(p->parent, e))
		return -1;
	/* What is left over is only room; the next install takes it away too. */
	return plat_remove_tree(p->old, e) || plat_remove_tree(p->fresh, e) ? -1 : 0;
}

static int
stage(const struct build_info *b, const struct places *p, struct err *e)
{
	int i;

	if (plat_mkdirs(p->fresh, 0755, e))
		return -1;
	for (i = 0; i < b->artifact_count; i++)
		if (artifact_copy(&b->artifacts[i], p->fresh, e))
			return -1;
	if (links_copy(b, p->fresh, e) ||
	    extra_copy(b->folder, CAPABILITIES_FILE, p->fresh, e) ||
	    extra_copy(b->folder, BUILD_STAMP, p->fresh, e))
		return -1;
	return folder_sync(p->fresh, e);
}

static int
install_locked(const struct build_info *b, const struct places *p, struct err *e)
{
	struct err none;

	if (leftovers_clear(p, e))
		return -1;
	if (stage(b, p, e)) {
		if (plat_remove_tree(p->fresh, &none))
			err_hint(e, "%s is left over", p->fresh);
		return -1;
	}
	return swap(p, e);
}

static int
install(const struct build_info *b, const char *out_dir, struct install_info *out,
	struct err *e)
{
	struct places p;
	int lock = -1, rc;

	if (places_make(out_dir, &p, e) || plat_mkdirs(p.parent, 0755, e) ||
	    lock_take(p.lock, true, NULL, &lock, e))
		return -1;
	rc = install_locked(b, &p, e);
	lock_release(lock);
	if (rc == 0) {
		out->installed = true;
		rc = str_copy(out->folder, sizeof out->folder, p.out, e);
	}
	return rc;
}

/* ---- with the publish gate ---- */

static int
capabilities_make(const struct install_ask *ask, struct install_info *out, struct err *e)
{
	const struct build_info *b = ask->build;
	const char *names[BUILD_MAX_ARTIFACTS];
	char path[BUILD_PATH + 32];
	struct capabilities_ask c = {
		.target = ask->target, .suite = ask->suite, .types = ask->types,
		.type_count = ask->type_count, .help = ask->help,
		.fork = ask->source->origin, .commit = ask->source->commit,
		.tree = ask->source->tree, .dirty_digest = ask->source->dirty_digest,
		.built_at = b->built_at, .binaries = names, .binary_count = b->artifact_count,
	};
	int i;

	for (i = 0; i < b->artifact_count; i++)
		names[i] = b->artifacts[i].name;
	snprintf(path, sizeof path, "%s/" CAPABILITIES_FILE, b->folder);
	return capabilities_write(path, &c, &out->capabilities, e);
}

/* The swap takes away what stood there: it must be an engine's output, or nothing. */
static bool
is_replaceable(const char *dir)
{
	char path[BUILD_PATH + 32];
	const struct dirent *de = NULL;
	DIR *d;

	snprintf(path, sizeof path, "%s/" CAPABILITIES_FILE, dir);
	if (!plat_exists(dir) || plat_is_file(path))
		return true;
	if ((d = opendir(dir)) == NULL)
		return false;
	while ((de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			break;
	closedir(d);
	return de == NULL;
}

static int
publish(const struct install_ask *ask, struct install_info *out, struct err *e)
{
	char missing[160];

	if (capabilities_make(ask, out, e))
		return -1;
	if (!out->capabilities.publishable) {
		capabilities_list(out->capabilities.missing, missing, sizeof missing);
		snprintf(out->gate, sizeof out->gate, "required kernels are missing: %s",
			missing);
		return 0;
	}
	if (is_replaceable(ask->out_dir))
		return install(ask->build, ask->out_dir, out, e);
	snprintf(out->gate, sizeof out->gate,
		"%.150s holds other things than an engine, and is left alone", ask->out_dir);
	return 0;
}

int
build_install(const struct install_ask *ask, struct transcript *log,
	struct install_info *out, enum reason *why, struct err *e)
{
	memset(out, 0, sizeof *out);
	*why = REASON_NONE;
	if (str_copy(out->folder, sizeof out->folder, ask->build->folder, e) ||
	    publish(ask, out, e) ||
	    transcript_fact(log, out->installed ? "installed" : "publish_gate",
		    out->installed ? out->folder : out->gate, e)) {
		build_why(e, e->code == ERR_INTEGRITY ? REASON_STALE_BINARY
						      : REASON_INTERNAL, why);
		return err_wrap(e, "install");
	}
	return 0;
}
