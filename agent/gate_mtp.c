/* The mtp gate: the engine once with a drafter, as shipped Gemma tiers run it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine_env.h"
#include "agent/gate.h"
#include "common/plat.h"
#include "common/str.h"

#define MTP_TIMEOUT_MS 900000
#define MAX_ARGS 48

struct ask {
	const struct work *w;
	const char *argv[MAX_ARGS];
	int argc;
	char path[GATE_PATH], tokens[16], ngl[16], seed[16], draft_max[16];
};

static void
arg(struct ask *a, const char *word)
{
	if (a->argc + 1 < MAX_ARGS)
		a->argv[a->argc++] = word;
}

static bool
has(const struct ask *a, const char *option)
{
	return elog_help_has(a->w->help, a->w->help_len, option);
}

/* The first name of the suite that stands in the help as a whole word. */
static const char *
type_find(const struct work *w)
{
	int i;

	for (i = 0; i < w->suite->mtp.type_count; i++)
		if (elog_help_has(w->help, w->help_len, w->suite->mtp.types[i]))
			return w->suite->mtp.types[i];
	return NULL;
}

static void
argv_make(struct ask *a, const char *type)
{
	const struct suite *s = a->w->suite;

	snprintf(a->tokens, sizeof a->tokens, "%lld", (long long)s->mtp.tokens);
	snprintf(a->ngl, sizeof a->ngl, "%lld", (long long)s->ngl);
	snprintf(a->seed, sizeof a->seed, "%lld", (long long)s->seed);
	snprintf(a->draft_max, sizeof a->draft_max, "%lld", (long long)s->mtp.draft_max);
	arg(a, a->path);
	arg(a, "-m");
	arg(a, a->w->model_path);
	if (a->w->job->draft_model != NULL) {
		arg(a, "-md");
		arg(a, a->w->job->draft_model);
		arg(a, "-ngld");
		arg(a, a->ngl);
	}
	arg(a, "-p");
	arg(a, s->prompt);
	arg(a, "-n");
	arg(a, a->tokens);
	arg(a, "-ngl");
	arg(a, a->ngl);
	arg(a, "-fa");
	arg(a, "on");
	arg(a, "--spec-type");
	arg(a, type);
	arg(a, has(a, "--spec-draft-n-max") ? "--spec-draft-n-max" : "--draft-max");
	arg(a, a->draft_max);
	arg(a, "--seed");
	arg(a, a->seed);
	arg(a, "--temp");
	arg(a, "0");
	if (has(a, "--single-turn"))
		arg(a, "-st");
	if (has(a, "--fit")) {
		arg(a, "--fit");
		arg(a, "off");
	}
	if (has(a, "-lv")) {
		arg(a, "-lv");
		arg(a, "5");
	}
}

static int
drafter_note(const struct work *w, struct transcript *t, struct err *e)
{
	char sha[DIGEST_HEX];
	uint64_t bytes;

	if (w->job->draft_model == NULL)
		return 0;
	if (digest_file(w->job->draft_model, sha, &bytes, e))
		return -1;
	gate_factf(t, "draftModel", "%s", w->job->draft_model);
	gate_factf(t, "draftSha256", "%s", sha);
	gate_factf(t, "draftBytes", "%llu", (unsigned long long)bytes);
	return 0;
}

static int
engine_run(struct ask *a, struct transcript *t, struct err *e)
{
	const struct work *w = a->w;
	struct engine_env env;
	struct proc_spec spec = {.argv = a->argv, .cwd = w->engine_dir, .env = env.v,
		.timeout_ms = w->ask->smoke_timeout_ms ? w->ask->smoke_timeout_ms : MTP_TIMEOUT_MS,
		.tick = work_tick};
	struct proc_result r;

	engine_env_make(&env, w->prebuilt ? w->engine_dir : NULL);
	engine_env_pin(&env, w->lane, &w->device);
	return engine_env_note(t, &env, e) || transcript_run(t, &spec, NULL, &r, e) ? -1 : 0;
}

void
gate_mtp(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "mtp");
	struct ask *a = calloc(1, sizeof *a);
	struct err e = {0};
	const char *type;

	if (t == NULL || a == NULL) {
		free(a);
		return;
	}
	a->w = w;
	if (str_fmt(a->path, sizeof a->path, &e, "%s/%s", w->engine_dir, smoke_driver(w)))
		gate_say(t, REASON_INTERNAL, NULL, "%s", e.msg);
	else if (!plat_is_file(a->path))
		gate_say(t, REASON_DRIVER_MISSING, NULL, "%s is not in %s", smoke_driver(w), w->engine_dir);
	else if (w->suite->mtp.drafter && w->job->draft_model == NULL)
		gate_say(t, REASON_DRAFTER_NOT_GIVEN, NULL, "no drafter was named");
	else if (w->job->draft_model != NULL && !plat_is_file(w->job->draft_model))
		gate_say(t, REASON_MODEL_MISSING, NULL, "the drafter %.200s is no file", w->job->draft_model);
	else if (smoke_help(w, &e))
		gate_say(t, REASON_HELP_UNREADABLE, e.hint, "%s", e.msg);
	else if (!elog_help_has(w->help, w->help_len, "--spec-type") || (type = type_find(w)) == NULL)
		gate_say(t, REASON_SPEC_NOT_IN_BUILD, NULL, "the help of %s names no --spec-type of %s",
			smoke_driver(w), w->suite->mtp.types[0]);
	else {
		argv_make(a, type);
		if (drafter_note(w, t, &e) || engine_run(a, t, &e))
			gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	}
	gate_close(w, g, t);
	free(a);
}
