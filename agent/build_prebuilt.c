#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/build_impl.h"
#include "common/plat.h"

static int
refused(enum reason *why, struct err *e, const char *msg)
{
	*why = REASON_PREBUILT_REFUSED;
	return err_set(e, ERR_BLOCKED, "%s", msg);
}

static int
switches_check(const struct prebuilt_ask *ask, enum reason *why, struct err *e)
{
	if (!ask->skip_build)
		return refused(why, e,
			"a prebuilt engine needs ELIZA_MTP_SKIP_BUILD=1, which is not set");
	if (!ask->allow_prebuilt)
		return refused(why, e, "a prebuilt engine needs "
			"ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE=1, which is not set");
	return 0;
}

static int
capabilities_check(const struct prebuilt_ask *ask, struct capabilities *c,
	enum reason *why, struct err *e)
{
	char path[BUILD_PATH + 32];
	int i;

	*why = REASON_PREBUILT_REFUSED;
	if (str_fmt(path, sizeof path, e, "%s/" CAPABILITIES_FILE, ask->bin_dir) ||
	    capabilities_read(path, c, e))
		return err_wrap(e, "a prebuilt engine needs a readable " CAPABILITIES_FILE);
	if (strcmp(c->target, ask->target->name) != 0)
		return err_set(e, ERR_BLOCKED, "%s is for %s, not for %s",
			CAPABILITIES_FILE, c->target, ask->target->name);
	for (i = 0; i < ask->program_count; i++)
		if (!capabilities_has_binary(c, ask->programs[i]))
			return err_set(e, ERR_BLOCKED, "%s does not name %s",
				CAPABILITIES_FILE, ask->programs[i]);
	return 0;
}

/* What is known of the source on both sides must agree; the tree decides, and a commit only
 * where there is no tree. */
static int
source_compare(const struct prebuilt_ask *ask, const char *tree, const char *commit,
	enum reason *why, struct err *e)
{
	const struct source_info *s = ask->source;
	bool by_tree = tree[0] != '\0';
	const char *is = by_tree ? tree : commit, *must;

	if (s == NULL)
		return 0;
	must = by_tree ? s->tree : s->commit;
	if (is[0] == '\0' || must[0] == '\0' || strcmp(is, must) == 0)
		return 0;
	*why = REASON_STALE_BINARY;
	return err_set(e, ERR_BLOCKED, "the engine was built from %s %s, and the source is %s",
		by_tree ? "tree" : "commit", is, must);
}

/* Each file is what the stamp of our own build says, and none is missing. */
static int
stamp_compare(const struct build_info *stamp, const struct build_info *found,
	struct err *e)
{
	const struct build_artifact *a, *f;
	int i;

	for (i = 0; i < found->artifact_count; i++) {
		f = &found->artifacts[i];
		if ((a = build_find(stamp, f->name)) == NULL)
			return err_set(e, ERR_BLOCKED, "%s is not of the build that its "
				"stamp describes", f->name);
		if (a->bytes != f->bytes || strcmp(a->sha256, f->sha256) != 0)
			return err_set(e, ERR_BLOCKED,
				"%s is not the file that the stamp describes", f->name);
	}
	for (i = 0; i < stamp->artifact_count; i++)
		if (build_find(found, stamp->artifacts[i].name) == NULL)
			return err_set(e, ERR_BLOCKED, "%s of the stamp is missing",
				stamp->artifacts[i].name);
	return 0;
}

static int
stamp_check(const struct prebuilt_ask *ask, struct build_info *b, enum reason *why,
	struct err *e)
{
	char path[BUILD_PATH + 32];
	struct build_info *stamp = NULL;
	int rc = -1;

	snprintf(path, sizeof path, "%s/" BUILD_STAMP, ask->bin_dir);
	if (!plat_exists(path))
		return 0;
	*why = REASON_STALE_BINARY;
	if ((stamp = calloc(1, sizeof *stamp)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a stamp");
	if (build_stamp_read(ask->bin_dir, ask->bin_dir, stamp, e) ||
	    stamp_compare(stamp, b, e) || source_compare(ask, stamp->tree, "", why, e))
		goto out;
	memcpy(b->key, stamp->key, sizeof b->key);
	memcpy(b->tree, stamp->tree, sizeof b->tree);
	memcpy(b->flags, stamp->flags, sizeof b->flags);
	memcpy(b->built_at, stamp->built_at, sizeof b->built_at);
	b->cc = stamp->cc;
	b->cxx = stamp->cxx;
	rc = 0;
out:
	free(stamp);
	return rc;
}

static int
artifacts_find(const struct prebuilt_ask *ask, struct build_info *b, enum reason *why,
	struct err *e)
{
	if (build_artifacts_find(ask->bin_dir, ask->programs, ask->program_count,
		    ask->target, b, why, e) == 0)
		return 0;
	if (*why == REASON_ARTIFACT_WRONG_MACHINE)
		*why = REASON_STALE_BINARY;
	else if (*why == REASON_ARTIFACT_MISSING)
		*why = REASON_PREBUILT_REFUSED;
	return -1;
}

static int
prebuilt_check(const struct prebuilt_ask *ask, struct capabilities *c,
	struct build_info *b, enum reason *why, struct err *e)
{
	char *real;
	int rc;

	if (switches_check(ask, why, e) || capabilities_check(ask, c, why, e) ||
	    source_compare(ask, c->source_tree, c->fork_commit, why, e) ||
	    artifacts_find(ask, b, why, e) || stamp_check(ask, b, why, e))
		return -1;
	if (b->tree[0] == '\0')
		memcpy(b->tree, c->source_tree, sizeof b->tree);
	if (b->built_at[0] == '\0' && strlen(c->built_at) < sizeof b->built_at)
		memcpy(b->built_at, c->built_at, sizeof b->built_at);
	if ((real = realpath(ask->bin_dir, NULL)) == NULL)
		return refused(why, e, "the folder of the prebuilt engine vanished");
	*why = REASON_NONE;
	rc = str_copy(b->folder, sizeof b->folder, real, e) ||
			str_copy(b->bin_dir, sizeof b->bin_dir, real, e)
		? -1
		: 0;
	free(real);
	return rc;
}

static int
log_prebuilt(const struct build_info *b, struct transcript *log, struct err *e)
{
	char text[BUILD_PATH + 300];
	int i;

	if (transcript_fact(log, "build", "prebuilt", e) ||
	    transcript_fact(log, "folder", b->folder, e))
		return -1;
	for (i = 0; i < b->artifact_count; i++) {
		const struct build_artifact *a = &b->artifacts[i];

		snprintf(text, sizeof text, "%s %s %llu %d %s", a->sha256, a->name,
			(unsigned long long)a->bytes, a->machine, a->path);
		if (transcript_fact(log, "artifact", text, e))
			return -1;
	}
	return 0;
}

int
build_prebuilt(const struct prebuilt_ask *ask, struct transcript *log,
	struct build_info *out, enum reason *why, struct err *e)
{
	struct capabilities *c = malloc(sizeof *c);
	int rc;

	memset(out, 0, sizeof *out);
	out->lock = -1;
	out->prebuilt = true;
	*why = REASON_NONE;
	if (c == NULL) {
		*why = REASON_INTERNAL;
		return err_set(e, ERR_NOMEM, "no memory for capabilities");
	}
	rc = prebuilt_check(ask, c, out, why, e);
	if (rc == 0 && (rc = log_prebuilt(out, log, e)) != 0)
		build_why(e, REASON_INTERNAL, why);
	free(c);
	return rc;
}
