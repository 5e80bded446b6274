#include "agent/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/source_cache.h"
#include "agent/git.h"
#include "agent/lock.h"
#include "agent/source_bytes.h"
#include "agent/treeid.h"
#include "common/plat.h"
#include "common/str.h"

bool
source_is_engine(const char *path)
{
	char p[SOURCE_PATH + 32];

	snprintf(p, sizeof p, "%s/CMakeLists.txt", path);
	if (!plat_is_file(p))
		return false;
	snprintf(p, sizeof p, "%s/ggml", path);
	if (!plat_is_dir(p))
		return false;
	snprintf(p, sizeof p, "%s/include/llama.h", path);
	if (plat_is_file(p))
		return true;
	snprintf(p, sizeof p, "%s/llama.h", path);
	return plat_is_file(p);
}

/* The gate's reason for an error of git or of reading; other is for all that is not
 * about this machine. */
static enum reason
source_why(const struct err *e, enum reason other)
{
	switch (e->code) {
	case ERR_CANCELLED:
		return REASON_CANCELLED;
	case ERR_TIMEOUT:
		return REASON_TIMEOUT;
	case ERR_NOSPACE:
		return REASON_DISK_FULL;
	case ERR_NOMEM:
		return REASON_INTERNAL;
	default:
		return other;
	}
}

int
source_fail(enum reason *why, enum reason r, struct err *e, enum err_code code,
	const char *msg)
{
	*why = r;
	return err_set(e, code, "%s", msg);
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void
say(const struct source_ask *ask, const char *text)
{
	if (ask->say != NULL)
		ask->say(ask->arg, text);
}

/* ---- differences between a git folder and its commit ---- */

/* One path that git does not know: its bytes, or its tree when it is a repository. */
static int
untracked_add(const struct source_ask *ask, const char *folder, const char *name,
	struct digest *d, struct err *e)
{
	char path[SOURCE_PATH + 1024], hex[DIGEST_HEX] = "", target[PATH_MAX];
	ssize_t n;

	digest_add(d, name, strlen(name) + 1);
	if (str_fmt(path, sizeof path, e, "%s/%s", folder, name))
		return -1;
	if (str_ends(name, "/")) {
		if (treeid_folder(path, ask->tick, ask->arg, hex, NULL, e))
			return -1;
	} else if ((n = readlink(path, target, sizeof target)) >= 0) {
		digest_bytes(target, (size_t)n, hex);
	} else if (plat_is_file(path)) {
		if (digest_file(path, hex, NULL, e))
			return -1;
	}
	digest_add(d, hex, strlen(hex) + 1);
	return 0;
}

/* .gitignore files are part of the tree; .git/info/exclude and the user's own list are
 * not, so what only they hide still counts. */
static int
untracked_find(const struct source_ask *ask, struct git *g, const char *folder,
	struct digest *d, bool *any, struct err *e)
{
	static const char *const args[] = {"ls-files", "-z", "--others",
		"--exclude-per-directory=.gitignore", NULL};
	struct buf b;
	size_t i, n;
	int rc = -1;

	buf_init(&b, GIT_MAX_OUTPUT);
	if (git_run(g, folder, args, &b, NULL, e))
		goto out;
	for (i = 0; i < b.len; i += n + 1) {
		n = strlen(b.data + i);
		*any = true;
		if (untracked_add(ask, folder, b.data + i, d, e))
			goto out;
	}
	rc = 0;
out:
	buf_fini(&b);
	return rc;
}

/* Status and differences against a fresh index made from the commit: what the
 * repository's own index holds back (assume-unchanged, skip-worktree, a racy time stamp)
 * is compared byte by byte like the rest, and that index is not written. */
static int
differences_find(const struct source_ask *ask, struct git *g, struct source_info *s,
	struct digest *d, struct err *e)
{
	static const char *const fresh[] = {"read-tree", "HEAD", NULL};
	static const char *const status[] = {"status", "--porcelain", "-z",
		"--untracked-files=normal", "--ignore-submodules=none", NULL};
	static const char *const diff[] = {"diff-index", "-p", "--binary", "--full-index",
		"--no-ext-diff", "--no-textconv", "--no-renames",
		"--ignore-submodules=none", "HEAD", "--", NULL};
	struct buf b;
	int rc = -1;

	buf_init(&b, GIT_MAX_OUTPUT);
	if (git_run(g, s->path, fresh, NULL, NULL, e) ||
	    git_run(g, s->path, status, &b, NULL, e))
		goto out;
	s->dirty = b.len > 0;
	if (s->dirty && git_run(g, s->path, diff, NULL, d, e))
		goto out;
	rc = untracked_find(ask, g, s->path, d, &s->dirty, e);
out:
	buf_fini(&b);
	return rc;
}

/* The files themselves have the last word: what git calls clean must also hash to the tree
 * that the commit names. */
static int
bytes_compare(const struct source_ask *ask, struct git *g, struct source_info *s,
	struct digest *d, struct err *e)
{
	static const char *const args[] = {"ls-tree", "-r", "-z", "--full-tree", "HEAD", NULL};
	char hex[65];
	struct buf b;
	int rc = -1;

	buf_init(&b, GIT_MAX_OUTPUT);
	if (git_run(g, s->path, args, &b, NULL, e) ||
	    source_bytes(s->path, b.data ? b.data : "", b.len, ask->tick, ask->arg, hex, e))
		goto out;
	if (strcmp(hex, s->tree) != 0) {
		s->dirty = true;
		digest_add(d, hex, strlen(hex) + 1);
	}
	rc = 0;
out:
	buf_fini(&b);
	return rc;
}

static int
dirty_find(const struct source_ask *ask, struct git *g, struct source_info *s,
	struct err *e)
{
	char index[SOURCE_PATH + 64];
	struct digest *d = NULL;
	int rc = -1;

	if (str_fmt(index, sizeof index, e, "%s/sources/index-%ld", ask->cache_dir,
		    (long)getpid()))
		return -1;
	if ((d = digest_new()) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	unlink(index);
	g->index = index;
	g->work_tree = s->path;
	rc = differences_find(ask, g, s, d, e) || bytes_compare(ask, g, s, d, e) ? -1 : 0;
	g->index = g->work_tree = NULL;
	unlink(index);
	if (rc == 0 && s->dirty) {
		digest_end(d, s->dirty_digest);
		d = NULL;
	}
	digest_free(d);
	return rc;
}

/* ---- identity ---- */

/* The commit is one that the remote has, as far as this clone knows: one that was only made
 * here is not the remote's, whatever its URL. */
static bool
is_of_origin(struct git *g, const struct source_info *s)
{
	static const char *const args[] = {"for-each-ref", "--count=1", "--contains=HEAD",
		"--format=%(refname)", "refs/remotes/origin", "refs/tags", NULL};
	char ref[1024];
	struct err none;

	return git_line(g, s->path, args, ref, sizeof ref, &none) == 0 && ref[0] != '\0';
}

static int
origin_find(struct git *g, struct source_info *s, struct err *e)
{
	static const char *const args[] = {"remote", "get-url", "origin", NULL};
	char url[1024];
	struct err none;

	/* No remote of that name is no error: many clones have none. */
	if (is_of_origin(g, s) && git_line(g, s->path, args, url, sizeof url, &none) == 0 && url[0] != '\0' &&
	    (git_is_url(url) || strstr(url, "://") != NULL) && !str_starts(url, "file:"))
		return git_clean_url(url, s->origin, sizeof s->origin, e);
	return str_fmt(s->origin, sizeof s->origin, e, "folder:%s", base_name(s->path));
}

static int
git_identify(const struct source_ask *ask, struct git *g, struct source_info *s,
	struct err *e)
{
	static const char *const head[] = {"rev-parse", "--verify", "HEAD^{commit}", NULL};
	static const char *const tree[] = {"rev-parse", "--verify", "HEAD^{tree}", NULL};
	static const char *const describe[] = {"describe", "--always", "--tags", NULL};

	if (git_line(g, s->path, head, s->commit, sizeof s->commit, e) ||
	    git_line(g, s->path, tree, s->tree, sizeof s->tree, e) ||
	    git_line(g, s->path, describe, s->describe, sizeof s->describe, e))
		return -1;
	if (s->origin[0] == '\0' && origin_find(g, s, e))
		return -1;
	return dirty_find(ask, g, s, e);
}

/* Fills tree, commit, dirty and so on from s->path, which stands. */
int
source_identify(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e)
{
	char git[SOURCE_PATH + 8];
	int rc;

	snprintf(git, sizeof git, "%s/.git", s->path);
	s->is_git = plat_exists(git);
	if (s->is_git) {
		rc = git_identify(ask, g, s, e);
	} else {
		rc = treeid_folder(s->path, ask->tick, ask->arg, s->tree, NULL, e);
		if (rc == 0 && s->origin[0] == '\0')
			rc = str_fmt(s->origin, sizeof s->origin, e, "folder:%s",
				base_name(s->path));
	}
	if (rc)
		*why = source_why(e, REASON_SOURCE_FETCH);
	return rc;
}

/* ---- a folder ---- */

/* A folder is built as it stands: a ref can only confirm what is checked out. */
static int
ref_confirm(const struct source_ask *ask, struct git *g, const struct source_info *s,
	enum reason *why, struct err *e)
{
	char word[256], commit[65] = "";
	const char *args[] = {"rev-parse", "--verify", "--quiet", word, NULL};
	struct err none;

	if (ask->ref == NULL || ask->ref[0] == '\0')
		return 0;
	if (!git_is_ref(ask->ref))
		return source_fail(why, REASON_SOURCE_FETCH, e, ERR_USAGE,
			"the ref is not a name git could know");
	snprintf(word, sizeof word, "%s^{commit}", ask->ref);
	if (s->is_git &&
	    git_line(g, s->path, args, commit, sizeof commit, &none) == 0 &&
	    strcmp(commit, s->commit) == 0)
		return 0;
	*why = REASON_SOURCE_DIGEST;
	err_set(e, ERR_BLOCKED, "the folder is at %s, not at %s",
		s->is_git ? s->describe : "no commit", ask->ref);
	return err_hint(e, "check %s out, or leave the ref away", ask->ref);
}

static int
folder_get(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e)
{
	snprintf(s->kind, sizeof s->kind, "folder");
	if (!source_is_engine(s->path)) {
		*why = REASON_SOURCE_NOT_ENGINE;
		return err_set(e, ERR_BLOCKED,
			"%s has no CMakeLists.txt, ggml folder and llama.h", s->path);
	}
	say(ask, "reading the source folder");
	if (source_identify(ask, g, s, why, e))
		return -1;
	return ref_confirm(ask, g, s, why, e);
}

/* ---- all kinds ---- */

static int
log_facts(struct transcript *log, const struct source_info *s, struct err *e)
{
	const struct {
		const char *key, *value;
	} facts[] = {
		{"kind", s->kind}, {"origin", s->origin}, {"describe", s->describe},
		{"commit", s->commit}, {"tree", s->tree}, {"dirty", s->dirty ? "true" : "false"},
		{"dirty_digest", s->dirty_digest}, {"bundle_sha256", s->bundle_sha256},
		{"path", s->path},
	};
	size_t i;

	for (i = 0; i < str_count(facts); i++)
		if (facts[i].value[0] != '\0' &&
		    transcript_fact(log, facts[i].key, facts[i].value, e))
			return -1;
	return 0;
}

static int
pin_check(const struct source_ask *ask, const struct source_info *s, enum reason *why,
	struct err *e)
{
	if (ask->tree == NULL || ask->tree[0] == '\0' ||
	    (strcmp(ask->tree, s->tree) == 0 && !s->dirty))
		return 0;
	*why = REASON_SOURCE_DIGEST;
	return err_set(e, ERR_BLOCKED, "the tree is %s%s, pinned is %s", s->tree,
		s->dirty ? " with changes" : "", ask->tree);
}

static int
path_get(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e)
{
	char *real = realpath(ask->spec, NULL);
	int rc;

	if (real == NULL) {
		*why = REASON_SOURCE_MISSING;
		return err_errno(e, errno, "source %s", ask->spec);
	}
	rc = str_copy(s->path, sizeof s->path, real, e);
	free(real);
	if (rc) {
		*why = REASON_SOURCE_MISSING;
		return -1;
	}
	if (plat_is_dir(s->path))
		return folder_get(ask, g, s, why, e);
	if (plat_is_file(s->path))
		return source_bundle(ask, g, s, why, e);
	*why = REASON_SOURCE_MISSING;
	return err_set(e, ERR_BLOCKED, "%s is neither a folder nor a bundle file", s->path);
}

static int
tools_and_cache(const struct source_ask *ask, struct transcript *log, struct git *g,
	enum reason *why, struct err *e)
{
	char dir[SOURCE_PATH];

	if (git_init(g, log, e)) {
		*why = REASON_TOOL_MISSING;
		return -1;
	}
	g->tick = ask->tick;
	g->arg = ask->arg;
	g->timeout_ms = ask->timeout_ms;
	if (str_fmt(dir, sizeof dir, e, "%s/sources", ask->cache_dir) ||
	    plat_mkdirs(dir, 0755, e)) {
		*why = source_why(e, REASON_INTERNAL);
		return -1;
	}
	return 0;
}

int
source_get(const struct source_ask *ask, struct transcript *log, struct source_info *out,
	enum reason *why, struct err *e)
{
	struct git g;
	int rc;

	memset(out, 0, sizeof *out);
	out->lock = -1;
	*why = REASON_NONE;
	if (ask->spec == NULL || ask->spec[0] == '\0')
		return source_fail(why, REASON_SOURCE_NOT_GIVEN, e, ERR_BLOCKED,
			"no engine source was named");
	if (tools_and_cache(ask, log, &g, why, e))
		return -1;
	rc = git_is_url(ask->spec) ? source_url(ask, &g, out, why, e)
				   : path_get(ask, &g, out, why, e);
	if (rc == 0)
		rc = pin_check(ask, out, why, e);
	if (rc == 0 && log_facts(log, out, e)) {
		*why = source_why(e, REASON_INTERNAL);
		rc = -1;
	}
	if (rc)
		source_release(out);
	return rc;
}

int
source_again(const struct source_ask *ask, const struct source_info *s,
	struct transcript *log, enum reason *why, struct err *e)
{
	struct source_info *now = calloc(1, sizeof *now);
	struct git g;
	int rc = -1;

	*why = REASON_INTERNAL;
	if (now == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a source");
	now->lock = -1;
	memcpy(now->path, s->path, sizeof now->path);
	memcpy(now->origin, s->origin, sizeof now->origin);
	if (tools_and_cache(ask, log, &g, why, e) || source_identify(ask, &g, now, why, e))
		goto out;
	if (strcmp(now->tree, s->tree) || strcmp(now->commit, s->commit) ||
	    now->dirty != s->dirty || strcmp(now->dirty_digest, s->dirty_digest)) {
		*why = REASON_SOURCE_CHANGED;
		err_set(e, ERR_INTEGRITY, "the source changed during the build: tree %s%s, now %s%s",
			s->tree, s->dirty ? " with changes" : "", now->tree,
			now->dirty ? " with changes" : "");
		goto out;
	}
	*why = REASON_NONE;
	rc = 0;
out:
	free(now);
	return rc;
}

void
source_release(struct source_info *s)
{
	if (s != NULL && s->kind[0] != '\0') {
		lock_release(s->lock);
		s->lock = -1;
	}
}
