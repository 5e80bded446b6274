/* The graph smoke: the driver program once per cache family, judged from its log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine_env.h"
#include "agent/gate.h"
#include "agent/preload.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define SMOKE_TIMEOUT_MS 600000
#define SMOKE_CONTEXT "2048"
#define MAX_ATTEMPTS 5
#define HELP_MAX (1u << 20)
#define LINE_SHOWN 400 /* bytes of the deciding line, in the report */

struct smoke {
	struct work *w;
	struct gate *g;
	const char *driver;     /* program name */
	char cache[ELOG_TYPE];
	struct smoke_words words;
	int attempts;
};

static const char *
pick_override(const struct work *w, enum override o, const char *fallback)
{
	return w->job->override[o] != NULL ? w->job->override[o] : fallback;
}

const char *
smoke_driver(const struct work *w)
{
	return pick_override(w, OVERRIDE_DRIVER, w->suite->driver);
}

int
smoke_help(struct work *w, struct err *e)
{
	char path[GATE_PATH], how[64];
	const char *argv[] = {path, "--help", NULL};
	struct engine_env env;
	struct proc_spec spec = {.argv = argv, .cwd = w->engine_dir, .env = env.v,
		.timeout_ms = 60000, .tick = work_tick};
	struct proc_result r;
	char *out = NULL, *errs = NULL;

	if (w->help != NULL)
		return 0;
	engine_env_make(&env, w->prebuilt ? w->engine_dir : NULL);
	if (str_fmt(path, sizeof path, e, "%s/%s", w->engine_dir, smoke_driver(w)) ||
	    proc_capture_spec(&spec, HELP_MAX, &out, &errs, &r, e))
		return -1;
	if (r.exit != 0) {
		proc_describe(&r, how, sizeof how);
		err_set(e, ERR_BLOCKED, "%s --help: %s%s%.120s", smoke_driver(w), how,
			errs[0] ? ": " : "", errs);
		e->msg[strcspn(e->msg, "\n")] = '\0';
		free(out);
		free(errs);
		return -1;
	}
	/* some builds print it on stderr */
	w->help = strlen(out) > strlen(errs) ? out : errs;
	free(w->help == out ? errs : out);
	w->help_len = strlen(w->help);
	return 0;
}

static void
types_text(char names[][ELOG_TYPE], int n, char *out, size_t size)
{
	size_t used = 0, k;
	int i;

	out[0] = '\0';
	for (i = 0; i < n; i++) {
		k = strlen(names[i]);
		if (used + k + 3 > size)
			return;
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", names[i]);
	}
}

enum reason
smoke_cache(const struct work *w, const char *family, char cache[ELOG_TYPE], struct err *e)
{
	static char names[64][ELOG_TYPE];
	struct suite_family plain = {.aliases = {family}, .alias_count = 1};
	const struct suite_family *f;
	const char *found;
	char list[200];
	int n;

	n = elog_help_types(w->help, w->help_len, names, str_count(names));
	if (n == 0) {
		err_set(e, ERR_BLOCKED, "the help of %s has no --cache-type-k", smoke_driver(w));
		return REASON_HELP_UNREADABLE;
	}
	if (strcmp(family, "baseline") == 0)
		plain.aliases[0] = w->suite->baseline;
	f = w->job->override[OVERRIDE_CACHE_TYPES] ? NULL : suite_family_find(w->suite, family);
	found = elog_resolve(f ? f : &plain, names, n);
	if (found == NULL) {
		types_text(names, n, list, sizeof list);
		err_set(e, ERR_BLOCKED, "no name of %s is a cache type of this build; it accepts %s",
			family, list);
		return REASON_FAMILY_NOT_IN_BUILD;
	}
	snprintf(cache, ELOG_TYPE, "%s", found);
	return gguf_suits(&w->model, cache, e) ? REASON_NONE : REASON_MODEL_NOT_SUITABLE;
}

void
engine_arg(struct engine_args *a, const char *word)
{
	if (a->n + 1 < (int)str_count(a->v))
		a->v[a->n++] = word;
}

bool
engine_has(const struct work *w, const char *option)
{
	return elog_help_has(w->help, w->help_len, option);
}

void
engine_options(struct engine_args *a, const struct work *w, const struct engine_option *rows,
	size_t count)
{
	size_t i, k;

	for (i = 0; i < count; i++)
		for (k = 0; engine_has(w, rows[i].probe) && k < str_count(rows[i].words) &&
				rows[i].words[k] != NULL; k++)
			engine_arg(a, rows[i].words[k]);
}

/* Options that only some builds know: a row each. */
static const struct engine_option optionals[] = {
	{"--ignore-eos", {"--ignore-eos", NULL, NULL}},
	{"--fit", {"--fit", "off", NULL}},
	{"-lv", {"-lv", "5", NULL}},
	{"--no-display-prompt", {"--no-display-prompt", NULL, NULL}},
};
/* What each driver needs so that it generates once and ends. */
static const struct driver_row {
	const char *name;
	const char *arg;
} drivers[] = {
	{"llama-completion", "-no-cnv"},
	{"llama-cli", "-st"},
};

int
smoke_extra(const struct work *w, struct smoke_words *out, struct err *e)
{
	char *words[64];
	int n, j;

	if (w->job->override[OVERRIDE_EXTRA_ARGS] == NULL)
		return 0;
	if ((out->extra = strdup(w->job->override[OVERRIDE_EXTRA_ARGS])) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for arguments");
	if ((n = str_split(out->extra, false, words, 64)) < 0)
		return err_set(e, ERR_LIMIT, "more than 64 extra arguments");
	for (j = 0; j < n; j++)
		engine_arg(&out->args, words[j]);
	return 0;
}

int
smoke_words_make(const struct work *w, const char *cache, const char *tokens, const char *ngl,
	struct smoke_words *out, struct err *e)
{
	struct engine_args *a = &out->args;
	size_t i;

	if (str_fmt(out->path, sizeof out->path, e, "%s/%s", w->engine_dir, smoke_driver(w)))
		return -1;
	snprintf(out->tokens, sizeof out->tokens, "%lld", (long long)w->suite->tokens);
	snprintf(out->ngl, sizeof out->ngl, "%lld", (long long)w->suite->ngl);
	snprintf(out->seed, sizeof out->seed, "%lld", (long long)w->suite->seed);
	engine_arg(a, out->path);
	engine_arg(a, "-m");
	engine_arg(a, w->model_path);
	engine_arg(a, "-p");
	engine_arg(a, pick_override(w, OVERRIDE_PROMPT, w->suite->prompt));
	engine_arg(a, "-n");
	engine_arg(a, tokens ? tokens : pick_override(w, OVERRIDE_TOKENS, out->tokens));
	engine_arg(a, "-ngl");
	engine_arg(a, ngl ? ngl : pick_override(w, OVERRIDE_NGL, out->ngl));
	engine_arg(a, "--cache-type-k");
	engine_arg(a, cache);
	engine_arg(a, "-c");
	engine_arg(a, SMOKE_CONTEXT);
	engine_arg(a, "--seed");
	engine_arg(a, out->seed);
	engine_arg(a, "--temp");
	engine_arg(a, "0");
	for (i = 0; i < str_count(drivers); i++)
		if (strcmp(drivers[i].name, smoke_driver(w)) == 0)
			engine_arg(a, drivers[i].arg);
	engine_options(a, w, optionals, str_count(optionals));
	return smoke_extra(w, out, e);
}

static cJSON *
strings(const char *const *list)
{
	cJSON *a = cJSON_CreateArray(), *v;

	for (; a != NULL && *list != NULL; list++) {
		v = cJSON_CreateObject(); /* wrapper, so that odd bytes become U+FFFD */
		if (v == NULL || !json_add_text(v, "s", *list, strlen(*list)) ||
		    !cJSON_AddItemToArray(a, cJSON_DetachItemFromObject(v, "s"))) {
			cJSON_Delete(v);
			cJSON_Delete(a);
			return NULL;
		}
		cJSON_Delete(v);
	}
	return a;
}

static bool
placement_add(cJSON *o, const struct elog *l)
{
	cJSON *places = json_add_object(o, "opPlacement"), *op;
	int i;

	for (i = 0; places != NULL && i < l->place_count; i++) {
		op = (cJSON *)json_get(places, l->places[i].op);
		if (op == NULL && (op = json_add_object(places, l->places[i].op)) == NULL)
			return false;
		if (json_get(op, l->places[i].backend) == NULL &&
		    !json_add_int(op, l->places[i].backend, l->places[i].nodes))
			return false;
	}
	return places != NULL;
}

static bool
buffers_add(cJSON *o, const struct elog *l)
{
	cJSON *list = json_add_array(o, "kvBuffers"), *b;
	int i;

	for (i = 0; list != NULL && i < l->kv_count; i++) {
		b = cJSON_CreateObject();
		if (b == NULL || !cJSON_AddItemToArray(list, b) ||
		    !json_add_str(b, "device", l->kv[i].device) ||
		    !json_add_num(b, "mib", l->kv[i].mib))
			return false;
	}
	return list != NULL;
}

/* The line of the gate's log that decided, and what it says. */
static bool
line_add(cJSON *o, const char *log, size_t len, size_t number)
{
	const char *line;
	cJSON *d;
	size_t n;

	if (!str_line(log, len, number, &line, &n))
		return json_add_null(o, "decidingLine");
	return (d = json_add_object(o, "decidingLine")) != NULL && json_add_int(d, "number", (int64_t)number) &&
		json_add_text(d, "text", line, n < LINE_SHOWN ? n : LINE_SHOWN);
}

/* What elog says of the run that the gate's log holds. */
static struct smoke_verdict
facts_judge(const struct smoke *s)
{
	const struct smoke_ask ask = smoke_ask_of(s->g->smoke, s->w->lane,
		suite_placement_of(s->w->suite, s->g->family));
	struct smoke_verdict v = {0};

	elog_judge(&s->g->smoke->elog, &ask, &v);
	return v;
}

/* smokes[]: what the log says, in numbers. */
static cJSON *
smoke_row(const struct smoke *s, const char *log, size_t len, const char *out_name,
	const char *out_sha)
{
	const struct smoke_facts *f = s->g->smoke;
	const struct elog *l = &f->elog;
	const struct smoke_verdict v = facts_judge(s);
	cJSON *o = cJSON_CreateObject();
	char offload[32];

	snprintf(offload, sizeof offload, "%d/%d", l->offloaded, l->layers);
	if (o != NULL && json_add_str(o, "family", s->g->family) &&
	    json_add_str(o, "driver", s->driver) && json_add_str(o, "cacheAsked", s->cache) &&
	    json_add_str(o, "cacheApplied", l->k_type[0] ? l->k_type : NULL) &&
	    json_add_str(o, "cacheAppliedV", l->v_type[0] ? l->v_type : NULL) &&
	    json_add(o, "argv", strings(s->words.args.v)) &&
	    json_add_str(o, "kvDevice", l->kv_count > 0 ? l->kv[0].device : NULL) &&
	    buffers_add(o, l) &&
	    json_add_str(o, "layersOffloaded", l->layers >= 0 ? offload : NULL) &&
	    json_add_bool(o, "accepted", v.accepted) && json_add_bool(o, "allocated", v.allocated) &&
	    json_add_bool(o, "dispatched", v.dispatched) &&
	    json_add_bool(o, "customOpDispatched", l->custom_op && v.dispatched) &&
	    json_add_bool(o, "cacheCast", l->cache_cast) &&
	    /* not of what another part of the gate's log decided */
	    line_add(o, log, len, v.reason == s->g->j.reason ? v.line : 0) &&
	    json_add_str(o, "device", l->device[0] ? l->device : NULL) &&
	    json_add_str(o, "devicePci", l->device_pci[0] ? l->device_pci : NULL) &&
	    placement_add(o, l) && json_add_int(o, "tokensAsked", f->tokens_asked) &&
	    json_add_int(o, "tokensGenerated", l->tokens) &&
	    json_add_str(o, "outputFile", out_name) && json_add_str(o, "outputSha256", out_sha) &&
	    json_add_num(o, "promptMs", l->prompt_ms) && json_add_num(o, "evalMs", l->eval_ms) &&
	    json_add_int(o, "exit", f->exit) && json_add_int(o, "signal", f->signal) &&
	    json_add_int(o, "ms", f->ms) && json_add_int(o, "attempts", s->attempts) &&
	    json_add_int(o, "logBytesDropped", (int64_t)f->dropped) &&
	    json_add_int(o, "logGrammar", ELOG_VERSION) && json_add_str(o, "log", s->g->log_name))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void
smoke_note(struct smoke *s, const char *out_name)
{
	char path[GATE_PATH], sha[DIGEST_HEX] = "";
	char *text = NULL;
	size_t len;
	cJSON *row;

	/* read again for the line that is shown */
	if (s->g->smoke_read && s->g->log_name[0] != '\0' &&
	    work_path(s->w, s->g->log_name, path, sizeof path, NULL) == 0 &&
	    plat_read_file(path, SIZE_MAX / 4, &text, &len, NULL) == 0) {
		work_artifact_file(s->w, out_name, sha);
		if ((row = smoke_row(s, text, len, out_name, sha)) != NULL)
			cJSON_AddItemToArray(s->w->smokes, row);
	}
	free(text);
}

/* Whether the run lost the end of its own log, which some engines do at random: such a
 * run proves nothing, and is made again. */
static bool
log_lost(const struct smoke *s)
{
	return s->g->j.reason == REASON_LOG_TOO_QUIET && s->g->smoke_read && facts_judge(s).again;
}

void
engine_preload(const struct work *w, struct transcript *t, struct engine_env *env, bool scramble)
{
	static const enum preload which[] = {PRELOAD_LINGER, PRELOAD_SCRAMBLE};
	char path[GATE_PATH], digest[DIGEST_HEX];
	int i;

	for (i = 0; i < 1 + scramble; i++) {
		struct err e = {0};

		if (preload_place(which[i], w->ask->cache_dir, path, sizeof path, digest, &e)) {
			gate_factf(t, "preload", "none: %s", e.msg);
			continue;
		}
		engine_env_preload(env, path);
		gate_factf(t, "preload", "%s %s", digest, path);
	}
}

/* One run of the engine into a log of its own, which becomes the gate's. */
static void
smoke_once(struct smoke *s, const char *stem, char *out_name, size_t size)
{
	struct work *w = s->w;
	char path[GATE_PATH];
	struct engine_env env;
	struct proc_spec spec = {.argv = s->words.args.v, .cwd = w->engine_dir, .env = env.v,
		.timeout_ms = w->ask->smoke_timeout_ms ? w->ask->smoke_timeout_ms : SMOKE_TIMEOUT_MS,
		.tick = work_tick};
	struct transcript *t = gate_open(w, s->g, stem);
	struct proc_result r;
	struct err e = {0};

	if (t == NULL)
		return;
	engine_env_make(&env, w->prebuilt ? w->engine_dir : NULL);
	engine_env_pin(&env, w->lane, &w->device);
	engine_preload(w, t, &env, false);
	if (engine_env_note(t, &env, &e) || work_name(w, stem, "out", out_name, size, &e) ||
	    work_path(w, out_name, path, sizeof path, &e) ||
	    transcript_run(t, &spec, path, &r, &e))
		gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	gate_close(w, s->g, t);
}

static void
smoke_run(struct smoke *s, const char *stem)
{
	char name[256] = "", again[200];

	for (s->attempts = 1;; s->attempts++) {
		snprintf(again, sizeof again, "%s-try%d", stem, s->attempts);
		smoke_once(s, s->attempts == 1 ? stem : again, name, sizeof name);
		if (s->attempts == MAX_ATTEMPTS || work_cancelled() || !log_lost(s))
			break;
		event_note(s->w->ask->events, s->g->name,
			"the engine lost the end of its log; running it again");
		work_artifact_file(s->w, name, NULL);
	}
	smoke_note(s, name);
}

/* A family that could not be run: its log says why, with the help that was read. */
static void
smoke_refuse(struct smoke *s, enum reason why, const struct err *e, bool with_help)
{
	char stem[128];
	struct transcript *t;
	struct err inner = {0};

	snprintf(stem, sizeof stem, "%s-none", s->g->family);
	if ((t = gate_open(s->w, s->g, stem)) == NULL)
		return;
	if (with_help && transcript_bytes(t, "--help", s->w->help, s->w->help_len, &inner))
		gate_factf(t, "help", "%s", inner.msg);
	gate_say(t, why, e->hint, "%s", e->msg);
	gate_close(s->w, s->g, t);
}

/* ERR_NOTFOUND: the engine has no such driver. */
static int
smoke_here(const struct work *w, struct err *e)
{
	char path[GATE_PATH];

	if (str_fmt(path, sizeof path, e, "%s/%s", w->engine_dir, smoke_driver(w)))
		return -1;
	return plat_is_file(path) ? 0
		: err_set(e, ERR_NOTFOUND, "%s is not in %s", smoke_driver(w), w->engine_dir);
}

void
gate_smoke(struct work *w, struct gate *g)
{
	struct smoke s = {.w = w, .g = g};
	struct err e = {0};
	char stem[160];
	enum reason why;

	s.driver = smoke_driver(w);
	if ((g->smoke = calloc(1, sizeof *g->smoke)) == NULL) {
		judgement_set(&g->j, REASON_INTERNAL, "no memory to read a log");
		return;
	}
	if (smoke_here(w, &e)) {
		smoke_refuse(&s, e.code == ERR_NOTFOUND ? REASON_DRIVER_MISSING : REASON_INTERNAL, &e, false);
	} else if (smoke_help(w, &e)) {
		smoke_refuse(&s, REASON_HELP_UNREADABLE, &e, false);
	} else if ((why = smoke_cache(w, g->family, s.cache, &e)) != REASON_NONE) {
		smoke_refuse(&s, why, &e, true);
	} else if (smoke_words_make(w, s.cache, NULL, NULL, &s.words, &e)) {
		smoke_refuse(&s, REASON_INTERNAL, &e, false);
	} else {
		snprintf(stem, sizeof stem, "%.60s-%s", g->family, s.cache);
		smoke_run(&s, stem);
	}
	free(s.words.extra);
	free(g->smoke);
	g->smoke = NULL;
}

/* ---- after the runs ---- */

static const cJSON *
baseline_row(const struct work *w)
{
	const cJSON *v, *found = NULL;

	cJSON_ArrayForEach(v, w->smokes) {
		if (str_eq(json_str(v, "family"), "baseline"))
			return v;
		if (found == NULL && str_eq(json_str(v, "cacheAsked"), w->suite->baseline))
			found = v;
	}
	return found;
}

static char *
output_read(const struct work *w, const cJSON *row, size_t *len)
{
	const char *name = json_str(row, "outputFile");
	char path[GATE_PATH], *text = NULL;

	if (name == NULL || work_path(w, name, path, sizeof path, NULL) ||
	    plat_read_file(path, 64u << 20, &text, len, NULL))
		return NULL;
	return text;
}

static void
distances(struct work *w)
{
	const cJSON *base = baseline_row(w);
	size_t base_len = 0, len = 0;
	char *base_text = base ? output_read(w, base, &base_len) : NULL, *text;
	cJSON *v;
	double d;

	cJSON_ArrayForEach(v, w->smokes) {
		text = base_text ? output_read(w, v, &len) : NULL;
		d = text ? output_distance(base_text, base_len, text, len) : -1;
		if (d < 0 ? json_add_null(v, "distance") : json_add_num(v, "distance", d))
			json_add_str(v, "baseline", json_str(base, "cacheAsked"));
		free(text);
	}
	free(base_text);
}

/* The plain key=value summary that the shell runners wrote; without finished_at it is an
 * unfinished run. */
static int
summary_text(const struct work *w, struct buf *b, struct err *e)
{
	char when[24];
	const cJSON *v;
	int i, rc;

	plat_utc(w->started_ms, when);
	rc = buf_addf(b, e, "target=%s\nbin_dir=%s\nmodel=%s\ntokens=%s\nngl=%s\ncache_runs=",
		w->target ? w->target->name : w->lane->name, w->engine_dir, w->model_path,
		pick_override(w, OVERRIDE_TOKENS, "4"), pick_override(w, OVERRIDE_NGL, "99"));
	cJSON_ArrayForEach(v, w->smokes)
		rc |= buf_addf(b, e, "%s%s:%s", v == w->smokes->child ? "" : " ",
			json_str(v, "family"), json_str(v, "cacheAsked"));
	rc |= buf_addf(b, e, "\nbackend_pattern=KV buffer on %s\ndriver=%s\nstarted_at=%s\nuname=%s %s %s\n",
		w->lane->kv_device, smoke_driver(w), when,
		w->host.os, w->host.kernel, w->host.arch);
	for (i = 0; i < w->gate_count; i++)
		if (w->gates[i].id == GATE_GRAPH_SMOKE)
			rc |= buf_addf(b, e, "%s %s log=%s%s%s\n",
				w->gates[i].j.outcome == OUTCOME_PASS ? "PASS"
					: outcome_name(w->gates[i].j.outcome),
				w->gates[i].family, w->gates[i].log_name,
				w->gates[i].j.reason != REASON_NONE ? " reason=" : "",
				w->gates[i].j.reason != REASON_NONE ? reason_name(w->gates[i].j.reason) : "");
	plat_utc(plat_now_ms(), when);
	return rc | buf_addf(b, e, "finished_at=%s\n", when);
}

void
smoke_finish(struct work *w)
{
	struct err e = {0};
	struct buf b;
	char name[256], path[GATE_PATH];

	distances(w);
	buf_init(&b, 1u << 20);
	if (summary_text(w, &b, &e) == 0 &&
	    work_name(w, "graph-smoke", "summary", name, sizeof name, &e) == 0 &&
	    work_path(w, name, path, sizeof path, &e) == 0 &&
	    plat_write_file(path, b.data, b.len, 0644, &e) == 0)
		work_artifact_file(w, name, NULL);
	else
		event_note(w->ask->events, "graph-smoke", e.msg);
	buf_fini(&b);
}
