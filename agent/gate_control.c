/*
 * The control run: the engine on the CPU with f16, on the CPU and on the lane's device with
 * the family, and on the CPU with the family while K rows go into wrong cells.  A run a
 * section of the log; the judge tells them apart by their own words (common/control.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/engine_env.h"
#include "agent/gate.h"
#include "common/control.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define CONTROL_TIMEOUT_MS 600000
#define KEEP_MAX (16u << 20)
#define MAX_ATTEMPTS 5

struct control {
	struct work *w;
	struct transcript *t;
	char cache[ELOG_TYPE];
	char tool[GATE_PATH], base[GATE_PATH]; /* llama-perplexity, and what it saves */
	char context[16], chunks[16], tokens[16];
	bool offered;              /* the engine has that program */
};

static const struct step {
	const char *title;
	enum control_part part;
	bool tool;
	bool fallback;             /* only where the engine has no llama-perplexity */
} steps[] = {
	{"text with f16 on the CPU", CONTROL_BASE, false, false},
	{"text on the CPU", CONTROL_FAMILY, false, false},
	{"text on the device", CONTROL_DEVICE, false, false},
	{"text of a scrambled cache", CONTROL_SCRAMBLED, false, true},
	{"divergence: f16 on the CPU", CONTROL_BASE, true, false},
	{"divergence: the device", CONTROL_DEVICE, true, false},
	{"divergence: the CPU", CONTROL_FAMILY, true, false},
	{"divergence: a scrambled cache", CONTROL_SCRAMBLED, true, false},
};

/* No device of the engine computes anything, not even large products of a model that stays
 * in host memory. */
static void
cpu_words(const struct work *w, struct engine_args *a)
{
	static const struct engine_option none = {"--device", {"--device", "none", NULL}};

	engine_options(a, w, &none, 1);
}

/* What llama-perplexity shares with the driver is in the driver's help. */
static int
tool_words(const struct control *c, enum control_part part, const char *cache,
	struct smoke_words *out, struct err *e)
{
	static const struct engine_option optionals[] = {
		{"--fit", {"--fit", "off", NULL}},
		{"-lv", {"-lv", "5", NULL}},
		/* one engine's llama-perplexity drops the pages of what it read, the cache's, too */
		{"--no-mmap", {"--no-mmap", NULL, NULL}},
	};
	const struct work *w = c->w;
	struct engine_args *a = &out->args;

	snprintf(out->seed, sizeof out->seed, "%lld", (long long)w->suite->seed);
	snprintf(out->ngl, sizeof out->ngl, "%lld", (long long)(part == CONTROL_DEVICE ? w->suite->ngl : 0));
	engine_arg(a, c->tool);
	engine_arg(a, "-m");
	engine_arg(a, w->model_path);
	if (part == CONTROL_BASE) {
		engine_arg(a, "-p");
		engine_arg(a, w->suite->control.text);
		engine_arg(a, "--chunks");
		engine_arg(a, c->chunks);
	} else {
		engine_arg(a, "--kl-divergence");
	}
	engine_arg(a, "--kl-divergence-base");
	engine_arg(a, c->base);
	engine_arg(a, "-c");
	engine_arg(a, c->context);
	engine_arg(a, "-b");
	engine_arg(a, c->context);
	engine_arg(a, "-ub");
	engine_arg(a, c->context);
	engine_arg(a, "-ngl");
	engine_arg(a, part == CONTROL_DEVICE && w->job->override[OVERRIDE_NGL] ? w->job->override[OVERRIDE_NGL]
									       : out->ngl);
	engine_arg(a, "--cache-type-k");
	engine_arg(a, cache);
	engine_arg(a, "--seed");
	engine_arg(a, out->seed);
	engine_options(a, w, optionals, str_count(optionals));
	if (part != CONTROL_DEVICE)
		cpu_words(w, a);
	return smoke_extra(w, out, e);
}

static int
words_make(const struct control *c, const struct step *s, struct smoke_words *out, struct err *e)
{
	const char *cache = s->part == CONTROL_BASE ? c->w->suite->baseline : c->cache;
	bool cpu = s->part != CONTROL_DEVICE;

	if (s->tool)
		return tool_words(c, s->part, cache, out, e);
	if (smoke_words_make(c->w, cache, c->tokens, cpu ? "0" : NULL, out, e))
		return -1;
	if (cpu)
		cpu_words(c->w, &out->args);
	return 0;
}

/* Whether the engine lost the end of what it had to say, which some do at random. */
static bool
lost(const struct step *s, const struct proc_result *r, const struct buf *said)
{
	struct elog *l = malloc(sizeof *l);
	struct kl k;
	bool yes = false;

	if (l != NULL && r->exit == 0 && !r->timed_out && !r->cancelled) {
		elog_parse(said->data ? said->data : "", said->len, l);
		kl_parse(said->data ? said->data : "", said->len, &k);
		yes = l->kv_count > 0 && l->error[0] == '\0' && (l->tokens < 0 || l->torn > 0 ||
			(s->tool && !(s->part == CONTROL_BASE ? k.final : k.whole)));
	}
	free(l);
	return yes;
}

/* What the driver said, without what it logged. */
static int
text_keep(const struct control *c, const char *path, struct err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (plat_read_file(path, KEEP_MAX, &text, &len, e))
		return -1;
	rc = transcript_bytes(c->t, "stdout", text, len, e);
	free(text);
	unlink(path);
	return rc;
}

static int
run_once(const struct control *c, const struct step *s, const struct smoke_words *words, bool *again,
	struct proc_result *r, struct err *e)
{
	const struct work *w = c->w;
	struct engine_env env;
	struct buf said;
	struct proc_spec spec = {.argv = words->args.v, .cwd = w->engine_dir, .env = env.v,
		.timeout_ms = w->ask->smoke_timeout_ms ? w->ask->smoke_timeout_ms : CONTROL_TIMEOUT_MS,
		.tick = work_tick, .chunk = gate_keep, .arg = &said};
	char name[256], path[GATE_PATH];
	int rc = -1;

	buf_init(&said, KEEP_MAX);
	engine_env_make(&env, w->prebuilt ? w->engine_dir : NULL);
	engine_env_pin(&env, w->lane, &w->device);
	engine_preload(w, c->t, &env, s->part == CONTROL_SCRAMBLED);
	if (engine_env_note(c->t, &env, e) || work_name(w, "control-text", "out", name, sizeof name, e) ||
	    work_path(w, name, path, sizeof path, e) ||
	    transcript_run(c->t, &spec, s->tool ? NULL : path, r, e) || (!s->tool && text_keep(c, path, e)))
		goto out;
	*again = lost(s, r, &said);
	rc = 0;
out:
	buf_fini(&said);
	return rc;
}

/* 1: the next steps make no sense, the judge says why. */
static int
step_run(const struct control *c, const struct step *s, struct err *e)
{
	struct smoke_words words = {0};
	struct proc_result r;
	bool again = true;
	int rc = 0, i;

	if (words_make(c, s, &words, e))
		rc = -1;
	for (i = 0; rc == 0 && again && i < MAX_ATTEMPTS && !work_cancelled(); i++) {
		again = false;
		if (run_once(c, s, &words, &again, &r, e))
			rc = -1;
		else if (r.exit != 0 || r.signal != 0)
			rc = 1;
	}
	free(words.extra);
	return rc;
}

static bool
skipped(const struct control *c, const struct step *s)
{
	if (s->tool ? !c->offered : s->fallback && c->offered)
		return true;
	/* f16 against itself is one text */
	return !s->tool && s->part == CONTROL_FAMILY && strcmp(c->cache, c->w->suite->baseline) == 0;
}

static int
steps_run(const struct control *c, const struct gate *g, struct err *e)
{
	size_t i;
	int rc = 0;

	if (!c->offered)
		gate_factf(c->t, "divergence", "none: " CONTROL_TOOL " is not in %s", c->w->engine_dir);
	for (i = 0; rc == 0 && i < str_count(steps) && !work_cancelled(); i++) {
		if (skipped(c, &steps[i]))
			continue;
		event_progress(c->w->ask->events, g->name, (uint32_t)i, (uint32_t)str_count(steps), "runs",
			steps[i].title);
		rc = step_run(c, &steps[i], e);
	}
	return rc < 0 ? -1 : 0;
}

static int
control_init(struct control *c, const struct gate *g, struct err *e)
{
	const struct suite_control *s = &c->w->suite->control;
	char stem[100], name[256], *folder;
	int rc;

	snprintf(c->context, sizeof c->context, "%lld", (long long)s->context);
	snprintf(c->chunks, sizeof c->chunks, "%lld", (long long)s->chunks);
	snprintf(c->tokens, sizeof c->tokens, "%lld", (long long)s->tokens);
	snprintf(stem, sizeof stem, "control-%.60s", g->family);
	if (str_fmt(c->tool, sizeof c->tool, e, "%s/" CONTROL_TOOL, c->w->engine_dir) ||
	    work_name(c->w, stem, "kl", name, sizeof name, e))
		return -1;
	c->offered = plat_is_file(c->tool);
	/* the engine runs in its own folder */
	if ((folder = realpath(c->w->ask->log_dir, NULL)) == NULL)
		return err_errno(e, errno, "%s", c->w->ask->log_dir);
	rc = str_fmt(c->base, sizeof c->base, e, "%s/%s", folder, name);
	free(folder);
	return rc;
}

/* Numbers and texts, as the log has them, become a row of the report. */
static void
control_note(struct work *w, const struct gate *g)
{
	char path[GATE_PATH], *text = NULL;
	size_t len;
	cJSON *row = NULL;

	if (w->cache_controls == NULL)
		w->cache_controls = cJSON_CreateArray();
	if (w->cache_controls != NULL && work_path(w, g->log_name, path, sizeof path, NULL) == 0 &&
	    plat_read_file(path, SIZE_MAX / 4, &text, &len, NULL) == 0 &&
	    (row = control_row(text, len, w->suite, g->family)) != NULL &&
	    !cJSON_AddItemToArray(w->cache_controls, row))
		cJSON_Delete(row);
	free(text);
}

void
gate_control(struct work *w, struct gate *g)
{
	struct control *c = calloc(1, sizeof *c);
	char stem[100];
	struct err e = {0};
	enum reason why;

	snprintf(stem, sizeof stem, "control-%.60s", g->family);
	if (c == NULL) {
		judgement_set(&g->j, REASON_INTERNAL, "no memory for a control run");
		return;
	}
	c->w = w;
	if ((c->t = gate_open(w, g, stem)) != NULL) {
		if (smoke_help(w, &e))
			gate_say(c->t, REASON_HELP_UNREADABLE, e.hint, "%s", e.msg);
		else if ((why = smoke_cache(w, g->family, c->cache, &e)) != REASON_NONE)
			gate_say(c->t, why, e.hint, "%s", e.msg);
		else if (control_init(c, g, &e) || steps_run(c, g, &e))
			gate_say(c->t, gate_reason_of(&e), e.hint, "%s", e.msg);
		unlink(c->base);
		gate_close(w, g, c->t);
		if (g->log_name[0] != '\0')
			control_note(w, g);
	}
	free(c);
}
