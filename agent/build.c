#include "agent/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/build_impl.h"
#include "agent/lock.h"
#include "common/plat.h"

/* One build_engine; the large parts are on the heap. */
struct work {
	const struct build_ask *ask;
	struct transcript *log;
	struct build_info *b;
	struct build_words words;
	char builds[BUILD_PATH], lock_path[BUILD_PATH + 80];
	char cmake[BUILD_PATH], ninja[BUILD_PATH], ccache[BUILD_PATH];
	struct build_info old; /* what a stamp says */
};

static void
waiting(void *arg)
{
	const struct work *w = arg;

	if (w->ask->progress != NULL)
		w->ask->progress(w->ask->arg, 0, 0,
			"another job is building this engine: waiting for it");
}

static int
waiting_tick(void *arg)
{
	const struct work *w = arg;

	return w->ask->tick != NULL ? w->ask->tick(w->ask->arg) : 0;
}

static int
names_check(const struct build_ask *ask, enum reason *why, struct err *e)
{
	int i;

	*why = REASON_INTERNAL;
	if (ask->program_count < 1 || ask->program_count > BUILD_MAX_ARTIFACTS)
		return err_set(e, ERR_USAGE, "a build of %d programs", ask->program_count);
	for (i = 0; i < ask->program_count; i++)
		if (!build_is_name(ask->programs[i]))
			return err_set(e, ERR_USAGE, "%s is no name of a program",
				ask->programs[i]);
	return 0;
}

static int
folder_take(struct work *w, enum reason *why, struct err *e)
{
	const struct lock_wait wait = {waiting_tick, waiting, w};

	if (str_fmt(w->builds, sizeof w->builds, e, "%s/builds", w->ask->cache_dir) ||
	    str_fmt(w->b->folder, sizeof w->b->folder, e, "%s/%s", w->builds, w->b->key) ||
	    str_fmt(w->b->bin_dir, sizeof w->b->bin_dir, e, "%s/bin", w->b->folder) ||
	    str_fmt(w->lock_path, sizeof w->lock_path, e, "%s.lock", w->b->folder) ||
	    plat_mkdirs(w->builds, 0755, e) ||
	    lock_take(w->lock_path, true, &wait, &w->b->lock, e) ||
	    plat_mkdirs(w->b->folder, 0755, e))
		return build_why(e, REASON_INTERNAL, why);
	utimensat(AT_FDCWD, w->lock_path, NULL, 0); /* used now */
	return 0;
}

/* 1: an earlier build of this key is there, whole; 0: it has to be built; -1: error. */
static int
reuse_try(struct work *w, enum reason *why, struct err *e)
{
	struct err no = {ERR_NONE, "", ""};
	char stamp[BUILD_PATH + 32];
	int i;

	snprintf(stamp, sizeof stamp, "%s/" BUILD_STAMP, w->b->folder);
	if (!plat_exists(stamp))
		return 0;
	memcpy(w->old.bin_dir, w->b->bin_dir, sizeof w->old.bin_dir);
	if (build_stamp_read(w->b->folder, w->b->bin_dir, &w->old, &no) == 0 &&
	    strcmp(w->old.key, w->b->key) == 0 && build_again(&w->old, &no) == 0) {
		for (i = 0; i < w->ask->program_count; i++)
			if (build_find(&w->old, w->ask->programs[i]) == NULL)
				break;
		if (i == w->ask->program_count)
			return 1;
		err_set(&no, ERR_INTEGRITY, "the stamp does not name %s",
			w->ask->programs[i]);
	}
	/* Somebody wrote into the folder: nothing in it can be relied on. */
	if (transcript_fact(w->log, "build_distrusted", no.msg, e) ||
	    plat_remove_tree(w->b->folder, e) || plat_mkdirs(w->b->folder, 0755, e))
		return build_why(e, REASON_INTERNAL, why);
	return 0;
}

static int
reuse(struct work *w, struct err *e)
{
	struct build_info *b = w->b;

	b->reused = true;
	memcpy(b->built_at, w->old.built_at, sizeof b->built_at);
	memcpy(b->artifacts, w->old.artifacts, sizeof b->artifacts);
	b->artifact_count = w->old.artifact_count;
	b->ccache = w->old.ccache;
	b->unity = w->old.unity;
	return transcript_fact(w->log, "build", "reused", e);
}

static int
prove(struct work *w, enum reason *why, struct err *e)
{
	struct build_info *b = w->b;

	if (build_artifacts_find(b->bin_dir, w->ask->programs, w->ask->program_count,
		    w->ask->target, b, why, e))
		return -1;
	if (source_again(w->ask->source_ask, w->ask->source, w->log, why, e))
		return -1;
	plat_utc(plat_now_ms(), b->built_at);
	if (build_stamp_write(w->ask, b, e) || transcript_fact(w->log, "build", "made", e))
		return build_why(e, REASON_INTERNAL, why);
	return 0;
}

static int
log_artifacts(const struct work *w, struct err *e)
{
	char text[BUILD_PATH + 300];
	int i;

	for (i = 0; i < w->b->artifact_count; i++) {
		const struct build_artifact *a = &w->b->artifacts[i];

		snprintf(text, sizeof text, "%s %s %llu %d %s", a->sha256, a->name,
			(unsigned long long)a->bytes, a->machine, a->path);
		if (transcript_fact(w->log, "artifact", text, e))
			return -1;
	}
	return 0;
}

static int
build_fresh(struct work *w, enum reason *why, struct err *e)
{
	w->b->jobs = build_jobs(w->ask);
	if (build_make(w->ask, &w->words, w->log, w->b, w->cmake, w->ninja, w->ccache, why,
		    e))
		return -1;
	return prove(w, why, e);
}

static int
build_work(struct work *w, enum reason *why, struct err *e)
{
	struct build_info *b = w->b;
	int have, i;
	size_t n = 0;

	if (names_check(w->ask, why, e) || build_words_make(w->ask, &w->words, why, e) ||
	    build_tools_find(w->ask, w->log, &w->words, b, w->cmake, w->ninja, w->ccache,
		    why, e))
		return -1;
	for (i = 0; i < w->words.count; i++)
		n += (size_t)snprintf(b->flags + n, sizeof b->flags - n, "%s%s",
			i ? " " : "", w->words.v[i]);
	memcpy(b->tree, w->ask->source->tree, sizeof w->ask->source->tree);
	if (build_key_make(w->ask, &w->words, w->log, b, e) ||
	    transcript_fact(w->log, "build_key", b->key, e))
		return build_why(e, REASON_INTERNAL, why);
	if (folder_take(w, why, e) || (have = reuse_try(w, why, e)) < 0)
		return -1;
	if (have ? reuse(w, e) : build_fresh(w, why, e))
		return have ? build_why(e, REASON_INTERNAL, why) : -1;
	if (log_artifacts(w, e) || lock_share(b->lock, e) ||
	    build_cache_prune(w->ask, w->builds, b->key, w->log, e))
		return build_why(e, REASON_INTERNAL, why);
	*why = REASON_NONE;
	return 0;
}

int
build_engine(const struct build_ask *ask, struct transcript *log, struct build_info *out,
	enum reason *why, struct err *e)
{
	struct work *w = calloc(1, sizeof *w);
	int64_t start = plat_mono_ms();
	int rc;

	memset(out, 0, sizeof *out);
	out->lock = -1;
	if (w == NULL) {
		*why = REASON_INTERNAL;
		return err_set(e, ERR_NOMEM, "no memory for a build");
	}
	w->ask = ask;
	w->log = log;
	w->b = out;
	rc = build_work(w, why, e);
	out->ms = plat_mono_ms() - start;
	if (rc)
		build_release(out);
	free(w);
	return rc;
}

void
build_release(struct build_info *b)
{
	/* A zeroed struct has no folder, and its lock is not ours. */
	if (b != NULL && b->folder[0] != '\0') {
		lock_release(b->lock);
		b->lock = -1;
	}
}
