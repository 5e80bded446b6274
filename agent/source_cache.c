#include "agent/source_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lock.h"
#include "common/plat.h"
#include "common/str.h"

/* One URL or bundle in the cache: DIR/git is bare, DIR/COMMIT are checkouts of it. */
struct cache {
	char dir[SOURCE_PATH], git[SOURCE_PATH];
	int lock; /* of DIR, while it changes */
};

static int
why_of(const struct err *e, enum reason *why)
{
	*why = e->code == ERR_CANCELLED ? REASON_CANCELLED
		: e->code == ERR_TIMEOUT ? REASON_TIMEOUT
		: e->code == ERR_NOSPACE ? REASON_DISK_FULL
					 : REASON_SOURCE_FETCH;
	return -1;
}

static void
say(const struct source_ask *ask, const char *text)
{
	if (ask->say != NULL)
		ask->say(ask->arg, text);
}

struct waiter {
	const struct source_ask *ask;
};

static void
waiting(void *arg)
{
	const struct waiter *w = arg;

	say(w->ask, "another job is fetching this source: waiting for it");
}

static int
waiting_tick(void *arg)
{
	const struct waiter *w = arg;

	return w->ask->tick != NULL ? w->ask->tick(w->ask->arg) : 0;
}

/* A repository that a killed agent left half-made is completed by the same commands. */
static int
cache_open(const struct source_ask *ask, struct git *g, const char *name,
	struct cache *c, struct err *e)
{
	const char *init[] = {"init", "--quiet", "--bare", "--template=", "--", c->git, NULL};
	struct waiter w = {ask};
	struct lock_wait wait = {waiting_tick, waiting, &w};
	char hex[DIGEST_HEX], path[SOURCE_PATH + 8];

	digest_bytes(name, strlen(name), hex);
	hex[32] = '\0';
	c->lock = -1;
	if (str_fmt(c->dir, sizeof c->dir, e, "%s/sources/%s", ask->cache_dir, hex) ||
	    str_fmt(c->git, sizeof c->git, e, "%s/git", c->dir) ||
	    str_fmt(path, sizeof path, e, "%s.lock", c->dir) ||
	    plat_mkdirs(c->dir, 0755, e) || lock_take(path, true, &wait, &c->lock, e))
		return -1;
	return git_run(g, NULL, init, NULL, NULL, e);
}

static bool
commit_find(struct git *g, const struct cache *c, const char *name, char commit[65])
{
	char word[320];
	const char *args[] = {"rev-parse", "--verify", "--quiet", word, NULL};
	struct err none;

	snprintf(word, sizeof word, "%s^{commit}", name);
	return git_line(g, c->git, args, commit, 65, &none) == 0 &&
		(str_is_hex(commit, 40) || str_is_hex(commit, 64));
}

/* ---- checkouts ---- */

static int
checkout_add(struct git *g, const struct cache *c, const char *path, const char *commit,
	struct err *e)
{
	static const char *const prune[] = {"worktree", "prune", NULL};
	const char *add[] = {"worktree", "add", "--quiet", "--force", "--detach", path,
		commit, NULL};

	if (plat_remove_tree(path, e) && e->code != ERR_NOTFOUND)
		return -1;
	if (git_run(g, c->git, prune, NULL, NULL, e))
		return -1;
	return git_run(g, c->git, add, NULL, NULL, e);
}

/* A checkout that nobody uses is put right: a killed agent may have left half of one. */
static int
checkout_repair(struct git *g, const struct cache *c, const char *path,
	const char *commit, struct err *e)
{
	const char *reset[] = {"reset", "--quiet", "--hard", commit, NULL};
	static const char *const clean[] = {"clean", "-ffdxq", NULL};
	char link[SOURCE_PATH + 8];

	snprintf(link, sizeof link, "%s/.git", path);
	if (!plat_is_file(link))
		return checkout_add(g, c, path, commit, e);
	if (git_run(g, path, reset, NULL, NULL, e) == 0 &&
	    git_run(g, path, clean, NULL, NULL, e) == 0)
		return 0;
	/* git itself says no: the checkout is beyond repair, and is only a copy. */
	return e->code == ERR_BLOCKED ? checkout_add(g, c, path, commit, e) : -1;
}

struct checkout {
	char name[72];
	struct timespec used;
};

static int
checkout_compare(const void *a, const void *b)
{
	const struct checkout *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec > y->used.tv_nsec ? -1 : x->used.tv_nsec < y->used.tv_nsec;
}

static int
checkouts_list(const struct cache *c, struct checkout *v, int max)
{
	char lock[SOURCE_PATH + 80];
	const struct dirent *de;
	struct stat st;
	DIR *d = opendir(c->dir);
	int n = 0;

	while (d != NULL && n < max && (de = readdir(d)) != NULL) {
		if (!str_is_hex(de->d_name, 40) && !str_is_hex(de->d_name, 64))
			continue;
		snprintf(v[n].name, sizeof v[n].name, "%.64s", de->d_name);
		snprintf(lock, sizeof lock, "%s/%.64s.lock", c->dir, de->d_name);
		memset(&v[n].used, 0, sizeof v[n].used);
		if (stat(lock, &st) == 0)
			v[n].used = st.st_mtim;
		n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* Last used go last; what another job holds stays.  Failing to remove is no failure. */
static void
checkouts_prune(const struct cache *c)
{
	struct checkout v[256];
	char path[SOURCE_PATH + 80], lock[SOURCE_PATH + 88];
	struct err none;
	int i, fd, n = checkouts_list(c, v, (int)str_count(v));

	qsort(v, (size_t)n, sizeof *v, checkout_compare);
	for (i = SOURCE_KEEP; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s", c->dir, v[i].name);
		snprintf(lock, sizeof lock, "%s.lock", path);
		if (lock_try(lock, true, &fd, &none))
			continue;
		if (plat_remove_tree(path, &none) == 0)
			lock_remove(lock);
		lock_release(fd);
	}
}

static int
checkout_get(struct git *g, const struct cache *c, const char *commit,
	struct source_info *s, struct err *e)
{
	char lock[SOURCE_PATH + 8];

	if (str_fmt(s->path, sizeof s->path, e, "%s/%s", c->dir, commit) ||
	    str_fmt(lock, sizeof lock, e, "%s.lock", s->path))
		return -1;
	if (lock_try(lock, true, &s->lock, e) == 0) {
		utimensat(AT_FDCWD, lock, NULL, 0); /* used now */
		if ((plat_is_dir(s->path) ? checkout_repair(g, c, s->path, commit, e)
					  : checkout_add(g, c, s->path, commit, e)) ||
		    lock_share(s->lock, e))
			return -1;
	} else if (e->code != ERR_BUSY || lock_take(lock, false, NULL, &s->lock, e)) {
		return -1;
	}
	checkouts_prune(c);
	return 0;
}

/* Checks the commit out, names it, and lets go of the repository. */
static int
cache_finish(const struct source_ask *ask, struct git *g, struct cache *c,
	const char *commit, struct source_info *s, enum reason *why, struct err *e)
{
	say(ask, "checking the source out");
	if (checkout_get(g, c, commit, s, e))
		return why_of(e, why);
	if (!source_is_engine(s->path))
		return source_fail(why, REASON_SOURCE_NOT_ENGINE, e, ERR_BLOCKED,
			"the source has no CMakeLists.txt, ggml folder and llama.h");
	return source_identify(ask, g, s, why, e);
}

/* ---- URLs ---- */

/* The password must not stand in a log: git gets it from the environment, as a rule
 * that rewrites the clean URL. */
static int
secrets_set(const char *url, const char *clean, struct err *e)
{
	char key[1200];

	if (strcmp(url, clean) == 0)
		return 0;
	if (str_fmt(key, sizeof key, e, "url.%s.insteadOf", url))
		return -1;
	if (setenv("GIT_CONFIG_KEY_0", key, 1) || setenv("GIT_CONFIG_VALUE_0", clean, 1) ||
	    setenv("GIT_CONFIG_COUNT", "1", 1))
		return err_set(e, ERR_NOMEM, "no memory for the environment");
	return 0;
}

static void
secrets_unset(void)
{
	unsetenv("GIT_CONFIG_COUNT");
	unsetenv("GIT_CONFIG_KEY_0");
	unsetenv("GIT_CONFIG_VALUE_0");
}

static bool
ref_resolve(const struct source_ask *ask, struct git *g, const struct cache *c,
	char commit[65])
{
	static const char *const places[] = {"refs/verify/heads/", "refs/tags/", ""};
	char name[280];
	size_t i;

	if (ask->ref == NULL || ask->ref[0] == '\0')
		return commit_find(g, c, "refs/verify/HEAD", commit);
	for (i = 0; i < str_count(places); i++) {
		snprintf(name, sizeof name, "%s%s", places[i], ask->ref);
		if (commit_find(g, c, name, commit))
			return true;
	}
	return false;
}

static int
url_fetch(const struct source_ask *ask, struct git *g, const struct cache *c,
	const char *clean, char commit[65], struct err *e)
{
	const char *all[] = {"fetch", "--quiet", "--force", "--prune", "--tags",
		"--no-write-fetch-head", "--", clean, "+HEAD:refs/verify/HEAD",
		"+refs/heads/*:refs/verify/heads/*", NULL};
	const char *one[] = {"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--",
		clean, ask->ref, NULL};
	bool exact = ask->ref != NULL &&
		(str_is_hex(ask->ref, 40) || str_is_hex(ask->ref, 64));

	/* A full commit id says which bytes: no network is needed to have them twice. */
	if (exact && commit_find(g, c, ask->ref, commit))
		return 0;
	if (git_run(g, c->git, all, NULL, NULL, e))
		return -1;
	if (ref_resolve(ask, g, c, commit))
		return 0;
	if (exact && git_run(g, c->git, one, NULL, NULL, e) == 0 &&
	    commit_find(g, c, ask->ref, commit))
		return 0;
	return err_set(e, ERR_BLOCKED, "%s has no branch, tag or commit %s", clean,
		ask->ref ? ask->ref : "HEAD");
}

int
source_url(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e)
{
	struct cache c = {.lock = -1};
	char commit[65], name[600];
	int rc = -1;

	snprintf(s->kind, sizeof s->kind, "git-url");
	*why = REASON_SOURCE_FETCH;
	if (ask->ref != NULL && ask->ref[0] != '\0' && !git_is_ref(ask->ref))
		return err_set(e, ERR_USAGE, "the ref is not a name git could know");
	if (git_clean_url(ask->spec, s->origin, sizeof s->origin, e) ||
	    str_fmt(name, sizeof name, e, "url:%s", s->origin))
		return -1;
	say(ask, "fetching the source");
	if (cache_open(ask, g, name, &c, e) || secrets_set(ask->spec, s->origin, e)) {
		why_of(e, why);
		goto out;
	}
	rc = url_fetch(ask, g, &c, s->origin, commit, e);
	secrets_unset();
	if (rc)
		why_of(e, why);
	else
		rc = cache_finish(ask, g, &c, commit, s, why, e);
out:
	lock_release(c.lock);
	return rc;
}

/* ---- bundles ---- */

struct head {
	char sha[65];
	char ref[256];
};

/* "SHA REF" lines: the ref asked for, else HEAD, else the only one. */
static int
bundle_head(const struct source_ask *ask, struct git *g, const char *file,
	struct head *out, struct err *e)
{
	const char *args[] = {"bundle", "list-heads", file, NULL};
	const char *want = ask->ref != NULL && ask->ref[0] != '\0' ? ask->ref : NULL;
	char *line, *next, *space;
	struct buf b;
	int n = 0, rc = -1;
	bool found = false;

	buf_init(&b, GIT_MAX_OUTPUT);
	if (git_run(g, NULL, args, &b, NULL, e))
		goto out;
	for (line = b.data; line != NULL && *line != '\0'; line = next) {
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		if ((space = strchr(line, ' ')) == NULL)
			continue;
		*space++ = '\0';
		n++;
		found = want != NULL
			? !strcmp(space, want) || !strcmp(line, want) ||
				(str_ends(space, want) &&
					space[strlen(space) - strlen(want) - 1] == '/')
			: !strcmp(space, "HEAD");
		if (!found && (want != NULL || n > 1))
			continue;
		if (str_copy(out->sha, sizeof out->sha, line, e) ||
		    str_copy(out->ref, sizeof out->ref, space, e))
			goto out;
		if (found)
			break;
	}
	if (!found && (want != NULL || n != 1)) {
		err_set(e, ERR_BLOCKED, "the bundle has no %s", want ? want : "HEAD");
		goto out;
	}
	rc = git_is_ref(out->ref) && (str_is_hex(out->sha, 40) || str_is_hex(out->sha, 64))
		? 0
		: err_set(e, ERR_PARSE, "the bundle names a strange ref");
out:
	buf_fini(&b);
	return rc;
}

/* git checks the pack, the prerequisites and every object's id while it fetches. */
static int
bundle_fetch(const struct source_ask *ask, struct git *g, const struct cache *c,
	const char *file, char commit[65], struct err *e)
{
	struct head head;
	char refs[320];
	const char *args[] = {"fetch", "--quiet", "--force", "--tags",
		"--no-write-fetch-head", "--", file, refs, NULL};

	if (bundle_head(ask, g, file, &head, e))
		return -1;
	if (!commit_find(g, c, "refs/verify/bundle", commit) || strcmp(commit, head.sha)) {
		snprintf(refs, sizeof refs, "+%s:refs/verify/bundle", head.ref);
		if (git_run(g, c->git, args, NULL, NULL, e))
			return -1;
	}
	if (commit_find(g, c, "refs/verify/bundle", commit))
		return 0;
	return err_set(e, ERR_BLOCKED, "the bundle has no commit at %s", head.ref);
}

static int
bundle_digest(const struct source_ask *ask, struct source_info *s, const char *file,
	enum reason *why, struct err *e)
{
	if (digest_file(file, s->bundle_sha256, NULL, e))
		return why_of(e, why);
	if (ask->bundle_sha256 == NULL || ask->bundle_sha256[0] == '\0' ||
	    strcmp(ask->bundle_sha256, s->bundle_sha256) == 0)
		return 0;
	*why = REASON_SOURCE_DIGEST;
	return err_set(e, ERR_BLOCKED, "the bundle's SHA-256 is %s, pinned is %s",
		s->bundle_sha256, ask->bundle_sha256);
}

/* git decides by the first line what a file is. */
static bool
is_bundle(const char *file)
{
	char head[20] = "";
	FILE *f = fopen(file, "rb");
	size_t n = 0;

	if (f != NULL) {
		n = fread(head, 1, sizeof head - 1, f);
		fclose(f);
	}
	return n >= 16 && str_starts(head, "# v") && strstr(head, " git bundle") != NULL;
}

int
source_bundle(const struct source_ask *ask, struct git *g, struct source_info *s,
	enum reason *why, struct err *e)
{
	struct cache c = {.lock = -1};
	const char *slash = strrchr(s->path, '/');
	char file[SOURCE_PATH], name[DIGEST_HEX + 16], commit[65];
	int rc = -1;

	memcpy(file, s->path, sizeof file);
	snprintf(s->kind, sizeof s->kind, "bundle");
	str_show(s->origin, sizeof s->origin, "bundle:", 7);
	str_show(s->origin + 7, sizeof s->origin - 7, slash + 1, strlen(slash + 1));
	if (!is_bundle(file))
		return source_fail(why, REASON_SOURCE_NOT_ENGINE, e, ERR_BLOCKED,
			"the source is a file, and not a git bundle");
	if (ask->ref != NULL && ask->ref[0] != '\0' && !git_is_ref(ask->ref))
		return source_fail(why, REASON_SOURCE_FETCH, e, ERR_USAGE,
			"the ref is not a name git could know");
	say(ask, "unpacking the source bundle");
	if (bundle_digest(ask, s, file, why, e))
		return -1;
	snprintf(name, sizeof name, "bundle:%s", s->bundle_sha256);
	if (cache_open(ask, g, name, &c, e) || bundle_fetch(ask, g, &c, file, commit, e))
		why_of(e, why);
	else
		rc = cache_finish(ask, g, &c, commit, s, why, e);
	lock_release(c.lock);
	return rc;
}
