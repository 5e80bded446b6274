/* The mtp gate: the engine once with a drafter, as shipped Gemma tiers run it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gate.h"
#include "common/plat.h"
#include "common/str.h"

#define MTP_TIMEOUT_MS 900000

struct ask {
	const struct work *w;
	struct engine_args args;
	char path[GATE_PATH], tokens[16], ngl[16], seed[16], draft_max[16];
};

/* The first name of the suite that stands in the help as a whole word. */
static const char *
type_find(const struct work *w)
{
	int i;

	for (i = 0; i < w->suite->mtp.type_count; i++)
		if (engine_has(w, w->suite->mtp.types[i]))
			return w->suite->mtp.types[i];
	return NULL;
}

static void
argv_make(struct ask *a, const char *type)
{
	static const struct engine_option optionals[] = {
		{"--single-turn", {"-st", NULL, NULL}}, {"--fit", {"--fit", "off", NULL}},
		{"-lv", {"-lv", "5", NULL}},
	};
	const struct suite *s = a->w->suite;

	snprintf(a->tokens, sizeof a->tokens, "%lld", (long long)s->mtp.tokens);
	snprintf(a->ngl, sizeof a->ngl, "%lld", (long long)s->ngl);
	snprintf(a->seed, sizeof a->seed, "%lld", (long long)s->seed);
	snprintf(a->draft_max, sizeof a->draft_max, "%lld", (long long)s->mtp.draft_max);
	engine_arg(&a->args, a->path);
	engine_arg(&a->args, "-m");
	engine_arg(&a->args, a->w->model_path);
	if (a->w->job->draft_model != NULL) {
		engine_arg(&a->args, "-md");
		engine_arg(&a->args, a->w->job->draft_model);
		engine_arg(&a->args, "-ngld");
		engine_arg(&a->args, a->ngl);
	}
	engine_arg(&a->args, "-p");
	engine_arg(&a->args, s->prompt);
	engine_arg(&a->args, "-n");
	engine_arg(&a->args, a->tokens);
	engine_arg(&a->args, "-ngl");
	engine_arg(&a->args, a->ngl);
	engine_arg(&a->args, "-fa");
	engine_arg(&a->args, "on");
	engine_arg(&a->args, "--spec-type");
	engine_arg(&a->args, type);
	engine_arg(&a->args, engine_has(a->w, "--spec-draft-n-max") ? "--spec-draft-n-max" : "--draft-max");
	engine_arg(&a->args, a->draft_max);
	engine_arg(&a->args, "--seed");
	engine_arg(&a->args, a->seed);
	engine_arg(&a->args, "--temp");
	engine_arg(&a->args, "0");
	engine_options(&a->args, a->w, optionals, str_count(optionals));
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

void
gate_mtp(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "mtp");
	struct ask a = {.w = w};
	struct err e = {0};
	const char *type;

	if (t == NULL)
		return;
	if (str_fmt(a.path, sizeof a.path, &e, "%s/%s", w->engine_dir, smoke_driver(w)))
		gate_say(t, REASON_INTERNAL, NULL, "%s", e.msg);
	else if (!plat_is_file(a.path))
		gate_say(t, REASON_DRIVER_MISSING, NULL, "%s is not in %s", smoke_driver(w), w->engine_dir);
	else if (w->suite->mtp.drafter && w->job->draft_model == NULL)
		gate_say(t, REASON_DRAFTER_NOT_GIVEN, NULL, "no drafter was named");
	else if (w->job->draft_model != NULL && !plat_is_file(w->job->draft_model))
		gate_say(t, REASON_MODEL_MISSING, NULL, "the drafter %.200s is no file", w->job->draft_model);
	else if (smoke_help(w, &e))
		gate_say(t, REASON_HELP_UNREADABLE, e.hint, "%s", e.msg);
	else if (!engine_has(w, "--spec-type") || (type = type_find(w)) == NULL)
		gate_say(t, REASON_SPEC_NOT_IN_BUILD, NULL, "the help of %s names no --spec-type of %s",
			smoke_driver(w), w->suite->mtp.types[0]);
	else {
		argv_make(&a, type);
		if (drafter_note(w, t, &e) || engine_run(w, t, a.args.v, w->ask->smoke_timeout_ms
				? w->ask->smoke_timeout_ms : MTP_TIMEOUT_MS, &e))
			gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	}
	gate_close(w, g, t);
}
