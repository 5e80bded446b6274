#include "kernels/hip_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/proc.h"
#include "common/str.h"
#include "kernels/gpu_code.h"

#define PATH 4096
#define FILE_MAX (64u << 20)
#define COMPILE_MS (10 * 60 * 1000)
#define LOG_MAX 65536

/* One compilation: a folder that becomes the cache's when all went well. */
struct making {
	char hipcc[PATH], version[128];
	char dir[PATH], work[PATH];
};

static bool
has_ending(const char *name)
{
	return str_ends(name, ".cu");
}

bool
hip_code_possible(const char *arch, char *note, size_t size)
{
	char path[PATH];

	if (gpu_code_next(NULL, GPU_CODE_HIP, arch) != NULL ||
		plat_find_tool("hipcc", path, sizeof path, NULL) == 0)
		return true;
	(void)snprintf(note, size,
		"no_code_for_device: none for %.32s in this program, and no hipcc on this host",
		arch);
	return false;
}

void
hip_code_free(struct hip_code *c)
{
	size_t i;

	for (i = 0; i < c->count; i++)
		free(c->own[i]);
	memset(c, 0, sizeof *c);
}

/* ---- what this program has ------------------------------------------------------ */

static int
embedded_get(const char *arch, struct hip_code *out, struct err *e)
{
	const struct gpu_code *c = NULL;

	while ((c = gpu_code_next(c, GPU_CODE_HIP, arch)) != NULL) {
		if (out->count == HIP_CODE_FILES)
			return err_set(e, ERR_UNSUPPORTED, "more than %d code objects",
				HIP_CODE_FILES);
		out->image[out->count++] = c->start;
	}
	(void)snprintf(out->told.name, sizeof out->told.name, "kernels.%.40s.co", arch);
	(void)snprintf(out->told.how, sizeof out->told.how, "%.40s", arch);
	if (gpu_code_digest(GPU_CODE_HIP, arch, out->told.sha256))
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	return 0;
}

/* ---- what the host's hipcc makes ------------------------------------------------- */

/* "6.2.41133" of the one line of hipcc --version that is about it. */
static int
version_read(struct making *m, struct err *e)
{
	const char *argv[] = { m->hipcc, "--version", NULL };
	struct proc_result r;
	char *text = NULL;
	const char *line;

	if (proc_capture(argv, NULL, 60000, LOG_MAX, &text, NULL, &r, e))
		return -1;
	if ((line = strstr(text ? text : "", "HIP version:")) != NULL) {
		line += strlen("HIP version:");
		line += strspn(line, " ");
		str_show(m->version, sizeof m->version, line, strcspn(line, "\n"));
	}
	free(text);
	if (m->version[0] == '\0')
		return err_set(e, ERR_UNSUPPORTED, "%s --version tells no HIP version",
			m->hipcc);
	return 0;
}

/* The cache's folder for these sources, this chip and this compiler. */
static int
dir_choose(struct making *m, const char *arch, struct err *e)
{
	char sources[DIGEST_HEX], key[DIGEST_HEX], text[512];
	char cache[PATH];

	if (gpu_code_digest(GPU_CODE_SOURCE, NULL, sources))
		return err_set(e, ERR_UNSUPPORTED, "this program carries no sources");
	if (str_fmt(text, sizeof text, e, "%s %s %s", sources, arch, m->version))
		return -1;
	digest_bytes(text, strlen(text), key);
	if (plat_xdg("CACHE", "verify/hip", cache, sizeof cache, e) ||
		plat_mkdirs(cache, 0700, e) ||
		str_fmt(m->dir, sizeof m->dir, e, "%s/%.32s", cache, key))
		return -1;
	return str_fmt(m->work, sizeof m->work, e, "%s.%ld", m->dir, (long)getpid());
}

static int
sources_write(const struct making *m, struct err *e)
{
	const struct gpu_code *c = NULL;
	char path[PATH], *slash;

	while ((c = gpu_code_next(c, GPU_CODE_SOURCE, NULL)) != NULL) {
		if (str_fmt(path, sizeof path, e, "%s/%s", m->work, c->name))
			return -1;
		slash = strrchr(path, '/');
		*slash = '\0';
		if (plat_mkdirs(path, 0700, e))
			return -1;
		*slash = '/';
		if (plat_write_file(path, c->start, (size_t)(c->end - c->start), 0600, e))
			return -1;
	}
	return 0;
}

/* "kernels/score.cu" to "DIR/score.co". */
static int
object_path(const char *dir, const char *source, char *out, size_t size, struct err *e)
{
	const char *base = strrchr(source, '/');

	base = base ? base + 1 : source;
	return str_fmt(out, size, e, "%s/%.*s.co", dir, (int)(strlen(base) - 3), base);
}

static int
compile(const struct making *m, const char *source, const char *arch, struct err *e)
{
	char object[PATH], include[PATH], chip[80], what[80];
	const char *argv[] = { m->hipcc, "-std=c++17", "-O3", include, "-x", "hip", "--genco",
		chip, "-o", object, source, NULL };
	struct proc_result r;
	char *errs = NULL;
	int rc;

	if (object_path(m->work, source, object, sizeof object, e) ||
		str_fmt(include, sizeof include, e, "-I%s", m->work) ||
		str_fmt(chip, sizeof chip, e, "--offload-arch=%s", arch) ||
		proc_capture(argv, m->work, COMPILE_MS, LOG_MAX, NULL, &errs, &r, e))
		return -1;
	rc = r.exit == 0 && plat_is_file(object) ? 0 : -1;
	if (rc) {
		proc_describe(&r, what, sizeof what);
		err_set(e, ERR_UNSUPPORTED, "hipcc %s for %s, %s: %s: %.*s", m->version, arch,
			source, what, (int)strcspn(errs ? errs : "", "\n"), errs ? errs : "");
		err_hint(e, "update ROCm to one that knows %s", arch);
	}
	free(errs);
	return rc;
}

/* All sources into m->dir.  Another process that was faster made the same. */
static int
make_all(const struct making *m, const char *arch, struct err *e)
{
	const struct gpu_code *c = NULL;
	int rc = -1;

	if (plat_mkdirs(m->work, 0700, e) || sources_write(m, e))
		goto out;
	while ((c = gpu_code_next(c, GPU_CODE_SOURCE, NULL)) != NULL)
		if (has_ending(c->name) && compile(m, c->name, arch, e))
			goto out;
	if (rename(m->work, m->dir) == 0 || plat_is_dir(m->dir))
		rc = 0;
	else
		err_errno(e, errno, "rename to %s", m->dir);
out:
	if (plat_exists(m->work) && plat_remove_tree(m->work, NULL) && rc == 0)
		rc = err_set(e, ERR_IO, "%s can not be removed", m->work);
	return rc;
}

static int
read_all(const struct making *m, struct hip_code *out, struct err *e)
{
	const struct gpu_code *c = NULL;
	struct digest *d = digest_new();
	char path[PATH];
	size_t len;
	int rc = -1;

	if (d == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	while ((c = gpu_code_next(c, GPU_CODE_SOURCE, NULL)) != NULL) {
		if (!has_ending(c->name))
			continue;
		if (out->count == HIP_CODE_FILES) {
			err_set(e, ERR_UNSUPPORTED, "more than %d code objects",
				HIP_CODE_FILES);
			goto out;
		}
		if (object_path(m->dir, c->name, path, sizeof path, e) ||
			plat_read_file(path, FILE_MAX, &out->own[out->count], &len, e))
			goto out;
		out->image[out->count] = out->own[out->count];
		out->count++;
		digest_add(d, out->image[out->count - 1], len);
	}
	rc = 0;
out:
	if (rc)
		digest_free(d);
	else
		digest_end(d, out->told.sha256);
	return rc;
}

static int
made_get(const char *arch, struct hip_code *out, struct err *e)
{
	struct making *m = calloc(1, sizeof *m);
	int rc = -1;

	if (m == NULL)
		return err_set(e, ERR_NOMEM, "no memory to compile for %s", arch);
	if (plat_find_tool("hipcc", m->hipcc, sizeof m->hipcc, NULL)) {
		err_set(e, ERR_UNSUPPORTED,
			"no_code_for_device: this program has none for %s, and this host no hipcc",
			arch);
		err_hint(e, "install ROCm's hipcc here: the program then compiles its kernels");
		goto out;
	}
	if (version_read(m, e) || dir_choose(m, arch, e))
		goto out;
	if (!plat_is_dir(m->dir) && make_all(m, arch, e))
		goto out;
	(void)snprintf(out->told.name, sizeof out->told.name, "kernels.%.40s.co", arch);
	(void)snprintf(out->told.how, sizeof out->told.how, "%.16s by this host's hipcc %.24s",
		arch, m->version);
	rc = read_all(m, out, e);
out:
	free(m);
	return rc;
}

int
hip_code_get(const char *arch, struct hip_code *out, struct err *e)
{
	int rc;

	memset(out, 0, sizeof *out);
	rc = gpu_code_next(NULL, GPU_CODE_HIP, arch) ? embedded_get(arch, out, e)
						     : made_get(arch, out, e);
	if (rc)
		hip_code_free(out);
	return rc;
}
