#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/build_impl.h"
#include "common/json.h"
#include "common/plat.h"

#define STAMP_SCHEMA 1
#define STAMP_MAX_BYTES (1u << 20)

/* ---- artifacts ---- */

static int
artifact_read(const char *bin_dir, const char *name, bool program,
	struct build_artifact *a, struct err *e)
{
	struct elf *elf = NULL;
	int rc = -1;

	memset(a, 0, sizeof *a);
	a->program = program;
	if (str_copy(a->name, sizeof a->name, name, e) ||
	    str_fmt(a->path, sizeof a->path, e, "%s/%s", bin_dir, name))
		return -1;
	if ((elf = malloc(sizeof *elf)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to read a program");
	if (elf_read(a->path, elf, e) || digest_file(a->path, a->sha256, &a->bytes, e))
		goto out;
	a->machine = elf->machine;
	memcpy(a->build_id, elf->build_id, sizeof a->build_id);
	rc = 0;
out:
	free(elf);
	return rc;
}

/* What a file is that is no ELF file, by how it begins; NULL: nothing that is known. */
static const char *
file_kind(const char *path)
{
	static const struct {
		const char *start, *kind;
	} rows[] = {
		{"MZ", "a PE file, of Windows"}, {"\xcf\xfa\xed\xfe", "a Mach-O file, of macOS"},
		{"\xca\xfe\xba\xbe", "a Mach-O file, of macOS"}, {"#!", "a script"}, {"!<arch>", "an archive"},
	};
	char text[8] = "";
	const char *kind = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	size_t i;

	for (i = 0; n > 0 && i < str_count(rows); i++)
		if (str_starts(text, rows[i].start))
			kind = rows[i].kind;
	if (fd >= 0)
		close(fd);
	return kind;
}

/* Says of a file that could not be read as an ELF file what it is instead. */
static int
kind_say(const char *path, const char *name, const struct target *t, struct err *e)
{
	char must[32];
	const char *kind = file_kind(path);

	if (kind == NULL)
		return -1;
	if (t->elf_machine == 0)
		return err_set(e, ERR_PARSE, "%s is %s, which this agent can not look into", name, kind);
	elf_machine_name(t->elf_machine, must, sizeof must);
	return err_set(e, ERR_PARSE, "%s is %s, not an ELF file for %s, which %s needs", name, kind, must,
		t->name);
}

static int
machine_check(const struct build_artifact *a, const struct target *t, enum reason *why,
	struct err *e)
{
	char is[32], must[32];

	if (a->machine == t->elf_machine)
		return 0;
	elf_machine_name(a->machine, is, sizeof is);
	*why = REASON_ARTIFACT_WRONG_MACHINE;
	if (t->elf_machine == 0) {
		err_set(e, ERR_INTEGRITY, "%s is an ELF file for %s, and %s needs programs of %s for %s",
			a->name, is, t->name, t->os, t->arch);
		return err_hint(e, "run this lane on a %s host", t->os);
	}
	elf_machine_name(t->elf_machine, must, sizeof must);
	return err_set(e, ERR_INTEGRITY, "%s is for %s, and %s needs %s", a->name, is,
		t->name, must);
}

static int
program_add(const char *bin_dir, const char *name, const struct target *t,
	struct build_info *b, enum reason *why, struct err *e)
{
	struct build_artifact *a = &b->artifacts[b->artifact_count];
	char path[BUILD_PATH + 80];

	snprintf(path, sizeof path, "%s/%s", bin_dir, name);
	if (!plat_is_file(path) || access(path, X_OK) != 0) {
		*why = REASON_ARTIFACT_MISSING;
		return err_set(e, ERR_BLOCKED, "there is no program %s", path);
	}
	if (artifact_read(bin_dir, name, true, a, e)) {
		build_why(e, e->code == ERR_PARSE ? REASON_ARTIFACT_WRONG_MACHINE
						  : REASON_ARTIFACT_MISSING, why);
		return e->code == ERR_PARSE ? kind_say(path, name, t, e) : -1;
	}
	b->artifact_count++;
	return machine_check(a, t, why, e);
}

static bool
is_library(const char *name)
{
	const char *so = strstr(name, ".so");

	return build_is_name(name) && so != NULL && (so[3] == '\0' || so[3] == '.');
}

static int
name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the regular files that are libraries, in order.  Links to them are not
 * artifacts, only other names. */
static int
libraries_list(const char *bin_dir, char *names[BUILD_MAX_ARTIFACTS], int *n,
	struct err *e)
{
	const struct dirent *de;
	struct stat st;
	DIR *d = opendir(bin_dir);
	int rc = 0;

	if (d == NULL)
		return err_errno(e, errno, "%s", bin_dir);
	while (rc == 0 && (de = readdir(d)) != NULL) {
		if (!is_library(de->d_name) ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (*n == BUILD_MAX_ARTIFACTS)
			rc = err_set(e, ERR_LIMIT, "more than %d libraries in %s",
				BUILD_MAX_ARTIFACTS, bin_dir);
		else if ((names[*n] = strdup(de->d_name)) == NULL)
			rc = err_set(e, ERR_NOMEM, "no memory for a name");
		else
			++*n;
	}
	closedir(d);
	if (rc == 0)
		qsort(names, (size_t)*n, sizeof *names, name_compare);
	return rc;
}

static int
libraries_add(const char *bin_dir, const struct target *t, struct build_info *b,
	enum reason *why, struct err *e)
{
	char *names[BUILD_MAX_ARTIFACTS];
	struct build_artifact *a;
	int i, n = 0, rc;

	rc = libraries_list(bin_dir, names, &n, e);
	for (i = 0; i < n && rc == 0; i++) {
		if (b->artifact_count == BUILD_MAX_ARTIFACTS) {
			rc = err_set(e, ERR_LIMIT, "more than %d programs and libraries",
				BUILD_MAX_ARTIFACTS);
			break;
		}
		a = &b->artifacts[b->artifact_count];
		if ((rc = artifact_read(bin_dir, names[i], false, a, e)) == 0) {
			b->artifact_count++;
			rc = machine_check(a, t, why, e);
		}
	}
	for (i = 0; i < n; i++)
		free(names[i]);
	return rc;
}

int
build_artifacts_find(const char *bin_dir, const char *const *programs, int count,
	const struct target *t, struct build_info *b, enum reason *why, struct err *e)
{
	int i;

	*why = REASON_ARTIFACT_MISSING;
	b->artifact_count = 0;
	if (count < 1 || count > BUILD_MAX_ARTIFACTS)
		return err_set(e, ERR_LIMIT, "%d programs", count);
	for (i = 0; i < count; i++)
		if (program_add(bin_dir, programs[i], t, b, why, e))
			return -1;
	return libraries_add(bin_dir, t, b, why, e);
}

int
build_artifacts_check(const struct build_info *b, struct err *e)
{
	char hex[DIGEST_HEX];
	uint64_t bytes;
	int i;

	for (i = 0; i < b->artifact_count; i++) {
		const struct build_artifact *a = &b->artifacts[i];

		if (digest_file(a->path, hex, &bytes, e))
			return err_wrap(e, "%s", a->name);
		if (bytes != a->bytes || strcmp(hex, a->sha256) != 0)
			return err_set(e, ERR_INTEGRITY,
				"%s is not the file that the build made", a->name);
	}
	return 0;
}

/* A library beside the program may be loaded into it without being asked for. */
int
build_again(const struct build_info *b, struct err *e)
{
	char *names[BUILD_MAX_ARTIFACTS];
	int i, n = 0, rc = libraries_list(b->bin_dir, names, &n, e);

	for (i = 0; i < n; i++) {
		if (rc == 0 && build_find(b, names[i]) == NULL)
			rc = err_set(e, ERR_INTEGRITY, "%s was not there when it was proved",
				names[i]);
		free(names[i]);
	}
	return rc ? -1 : build_artifacts_check(b, e);
}

const struct build_artifact *
build_find(const struct build_info *b, const char *name)
{
	int i;

	for (i = 0; i < b->artifact_count; i++)
		if (strcmp(b->artifacts[i].name, name) == 0)
			return &b->artifacts[i];
	return NULL;
}

/* ---- the stamp ---- */

static bool
add_tool(cJSON *o, const char *key, const struct build_tool *t)
{
	cJSON *c = json_add_object(o, key);

	return c != NULL && json_add_str(c, "path", t->path) &&
		json_add_text(c, "version", t->version, strlen(t->version)) &&
		json_add_str(c, "sha256", t->sha256);
}

static bool
add_artifacts(cJSON *o, const struct build_info *b)
{
	cJSON *list = json_add_array(o, "artifacts"), *a;
	int i;

	for (i = 0; list != NULL && i < b->artifact_count; i++) {
		const struct build_artifact *f = &b->artifacts[i];

		a = cJSON_CreateObject();
		if (a == NULL || !cJSON_AddItemToArray(list, a)) {
			cJSON_Delete(a);
			return false;
		}
		if (!json_add_str(a, "name", f->name) ||
		    !json_add_bool(a, "program", f->program) ||
		    !json_add_int(a, "bytes", (int64_t)f->bytes) ||
		    !json_add_str(a, "sha256", f->sha256) ||
		    !json_add_int(a, "machine", f->machine) ||
		    !json_add_str(a, "buildId", f->build_id))
			return false;
	}
	return list != NULL;
}

static cJSON *
stamp_json(const struct build_ask *ask, const struct build_info *b)
{
	const struct source_info *s = ask->source;
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && json_add_int(o, "schemaVersion", STAMP_SCHEMA) &&
	    json_add_str(o, "key", b->key) && json_add_str(o, "target", ask->target->name) &&
	    json_add_str(o, "tree", s->tree) && json_add_str(o, "commit", s->commit) &&
	    json_add_str(o, "dirtyDigest", s->dirty_digest) &&
	    json_add_text(o, "origin", s->origin, strlen(s->origin)) &&
	    json_add_text(o, "flags", b->flags, strlen(b->flags)) &&
	    add_tool(o, "cc", &b->cc) && add_tool(o, "cxx", &b->cxx) &&
	    json_add_str(o, "cmake", b->cmake) && json_add_str(o, "ninja", b->ninja) &&
	    json_add_bool(o, "ccache", b->ccache) && json_add_bool(o, "unity", b->unity) &&
	    json_add_str(o, "builtAt", b->built_at) && add_artifacts(o, b))
		return o;
	cJSON_Delete(o);
	return NULL;
}

int
build_stamp_write(const struct build_ask *ask, const struct build_info *b, struct err *e)
{
	char path[BUILD_PATH + 32];
	cJSON *o = stamp_json(ask, b);
	char *text = o != NULL ? json_text(o, true) : NULL;
	int rc;

	snprintf(path, sizeof path, "%s/" BUILD_STAMP, b->folder);
	rc = text == NULL ? err_set(e, ERR_NOMEM, "no memory for the build's stamp")
			  : plat_write_file(path, text, strlen(text), 0644, e);
	free(text);
	cJSON_Delete(o);
	return rc;
}

static int
text_read(const cJSON *o, const char *key, char *dst, size_t size, struct err *e)
{
	const char *s;

	if (json_need_str(o, key, &s, e))
		return -1;
	return str_copy(dst, size, s, e) ? err_wrap(e, "%s", key) : 0;
}

static int
tool_read(const cJSON *o, const char *key, struct build_tool *t, struct err *e)
{
	const cJSON *c = json_get(o, key);

	if (!cJSON_IsObject(c))
		return err_set(e, ERR_PARSE, "%s is missing", key);
	return text_read(c, "path", t->path, sizeof t->path, e) ||
			text_read(c, "version", t->version, sizeof t->version, e) ||
			text_read(c, "sha256", t->sha256, sizeof t->sha256, e)
		? -1
		: 0;
}

static int
artifact_parse(const cJSON *o, const char *bin_dir, struct build_artifact *a,
	struct err *e)
{
	int64_t bytes, machine;

	memset(a, 0, sizeof *a);
	if (text_read(o, "name", a->name, sizeof a->name, e) ||
	    text_read(o, "sha256", a->sha256, sizeof a->sha256, e) ||
	    text_read(o, "buildId", a->build_id, sizeof a->build_id, e) ||
	    json_need_int(o, "bytes", 0, INT64_MAX / 1024, &bytes, e) ||
	    json_need_int(o, "machine", 0, 65535, &machine, e))
		return -1;
	if (!build_is_name(a->name) || !str_is_hex(a->sha256, 64))
		return err_set(e, ERR_PARSE, "an artifact has no plain name and digest");
	a->bytes = (uint64_t)bytes;
	a->machine = (int)machine;
	a->program = json_bool(o, "program", false);
	return str_fmt(a->path, sizeof a->path, e, "%s/%s", bin_dir, a->name);
}

static int
artifacts_parse(const cJSON *o, const char *bin_dir, struct build_info *b, struct err *e)
{
	const cJSON *list = json_get(o, "artifacts"), *a;

	b->artifact_count = 0;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1)
		return err_set(e, ERR_PARSE, "artifacts are missing");
	cJSON_ArrayForEach(a, list) {
		if (b->artifact_count == BUILD_MAX_ARTIFACTS)
			return err_set(e, ERR_LIMIT, "more than %d artifacts",
				BUILD_MAX_ARTIFACTS);
		if (artifact_parse(a, bin_dir, &b->artifacts[b->artifact_count], e))
			return -1;
		b->artifact_count++;
	}
	return 0;
}

int
build_stamp_read(const char *folder, const char *bin_dir, struct build_info *b,
	struct err *e)
{
	char path[BUILD_PATH + 32];
	int64_t schema;
	cJSON *o = NULL;
	int rc = -1;

	snprintf(path, sizeof path, "%s/" BUILD_STAMP, folder);
	if (json_load(path, STAMP_MAX_BYTES, &o, e))
		return -1;
	if (json_need_int(o, "schemaVersion", STAMP_SCHEMA, STAMP_SCHEMA, &schema, e) ||
	    text_read(o, "key", b->key, sizeof b->key, e) ||
	    text_read(o, "tree", b->tree, sizeof b->tree, e) ||
	    text_read(o, "flags", b->flags, sizeof b->flags, e) ||
	    tool_read(o, "cc", &b->cc, e) || tool_read(o, "cxx", &b->cxx, e) ||
	    text_read(o, "cmake", b->cmake, sizeof b->cmake, e) ||
	    text_read(o, "ninja", b->ninja, sizeof b->ninja, e) ||
	    text_read(o, "builtAt", b->built_at, sizeof b->built_at, e) ||
	    artifacts_parse(o, bin_dir, b, e))
		goto out;
	b->ccache = json_bool(o, "ccache", false);
	b->unity = json_bool(o, "unity", false);
	rc = 0;
out:
	cJSON_Delete(o);
	return rc ? err_wrap(e, "%s", path) : 0;
}
