/* The gates of the engine under test: its source, its build. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code_objects.h"
#include "agent/engine_env.h"
#include "agent/gate.h"
#include "common/control.h"
#include "common/plat.h"
#include "common/str.h"

struct engine_arg {
	struct work *w;
	const char *gate;
};

static void
source_say(void *arg, const char *text)
{
	struct work *w = arg;

	event_progress(w->ask->events, "source", 0, 0, "steps", text);
}

static void
build_say(void *arg, uint32_t done, uint32_t total, const char *text)
{
	struct work *w = arg;

	event_progress(w->ask->events, "build", done, total, "steps", text);
}

void
gate_source(struct work *w, struct gate *g)
{
	struct transcript *t;
	struct err e = {0};
	enum reason why = REASON_INTERNAL;
	const struct source_info *s = &w->source;

	if ((t = gate_open(w, g, "source")) == NULL)
		return;
	w->source_ask = (struct source_ask){.spec = w->job->source, .ref = w->job->source_ref,
		.cache_dir = w->ask->cache_dir, .timeout_ms = 900000, .tick = work_tick,
		.say = source_say, .arg = w};
	if (w->job->source == NULL && w->prebuilt) {
		gate_say(t, REASON_PREBUILT, NULL, "a prebuilt engine: its source was not seen");
	} else if (w->job->source == NULL) {
		gate_say(t, REASON_SOURCE_NOT_GIVEN, NULL, "no engine source was named");
	} else if (source_get(&w->source_ask, t, &w->source, &why, &e)) {
		gate_say(t, why, e.hint, "%s", e.msg);
	} else {
		w->source_known = true;
		gate_done(t, "%s%s%s, tree %.12s%s", s->origin, s->describe[0] ? ", " : "",
			s->describe, s->tree, s->dirty ? ", dirty" : "");
	}
	gate_close(w, g, t);
}

/* The device code that a file really holds, into the log and into names.  False: no memory. */
static bool
code_of(struct transcript *t, const struct build_artifact *a, struct code_objects *o, cJSON *names)
{
	struct err e = {0};
	cJSON *name;
	int k;

	if (code_objects_read(a->path, o, &e)) {
		gate_factf(t, "codeUnread", "%s: %s", a->name, e.msg);
		return true;
	}
	for (k = 0; k < o->count; k++) {
		gate_factf(t, "code", "%s %s x%u", a->name, o->v[k].name, (unsigned)o->v[k].count);
		if ((name = cJSON_CreateString(o->v[k].name)) == NULL)
			return false;
		if (!cJSON_AddItemToArray(names, name)) {
			cJSON_Delete(name);
			return false;
		}
	}
	if (o->compressed > 0)
		gate_factf(t, "codeCompressed", "%s x%u", a->name, (unsigned)o->compressed);
	return true;
}

/* The same of every artifact; the report says it again from w->code. */
static void
code_facts(struct transcript *t, struct work *w)
{
	struct code_objects *o = malloc(sizeof *o);
	cJSON *names;
	bool ok = o != NULL && (w->code = cJSON_CreateArray()) != NULL;
	int i;

	gate_factf(t, "chip", "%s", w->device.level);
	gate_factf(t, "chipFeatures", "%s", w->device.features);
	for (i = 0; ok && i < w->build.artifact_count; i++) {
		names = cJSON_CreateArray();
		ok = names != NULL && cJSON_AddItemToArray(w->code, names) &&
			code_of(t, &w->build.artifacts[i], o, names);
	}
	if (!ok)
		gate_say(t, REASON_INTERNAL, NULL, "no memory for the code of %d files",
			w->build.artifact_count);
	free(o);
}

int
engine_run(const struct work *w, struct transcript *t, const char *const *argv,
	uint32_t timeout_ms, struct err *e)
{
	struct engine_env env;
	struct proc_spec spec = {.argv = argv, .cwd = w->engine_dir, .env = env.v,
		.timeout_ms = timeout_ms, .tick = work_tick};
	struct proc_result r;

	engine_env_make(&env, w->prebuilt ? w->engine_dir : NULL);
	engine_env_pin(&env, w->lane, &w->device);
	return engine_env_note(t, &env, e) || transcript_run(t, &spec, NULL, &r, e) ? -1 : 0;
}

static void
build_facts(struct transcript *t, struct work *w)
{
	const struct build_info *b = &w->build;

	if (w->lane->library[0] != '\0')
		code_facts(t, w);
	if (b->device.path[0] != '\0')
		gate_factf(t, "deviceCompiler", "%s %s", b->device.path, b->device.version);
	gate_factf(t, "reused", "%s", b->reused ? "true" : "false");
	gate_factf(t, "flags", "%s", b->flags);
	gate_factf(t, "compiler", "%s %s", b->cxx.path, b->cxx.version);
}

/* Asks the program what it can, and puts the build where the world looks for it. */
static enum reason
install(struct work *w, struct transcript *t, struct err *e)
{
	static char types[64][ELOG_TYPE];
	struct install_ask ask = {.build = &w->build, .source = &w->source,
		.target = w->target, .suite = w->suite, .types = types};
	char out_dir[BUILD_PATH];
	enum reason why = REASON_INTERNAL;

	if (smoke_help(w, e)) {
		gate_factf(t, "help", "%s", e->msg);
		return REASON_HELP_UNREADABLE;
	}
	ask.type_count = elog_help_types(w->help, w->help_len, types, str_count(types));
	ask.help = w->help;
	ask.out_dir = out_dir;
	if (build_output_dir(w->target, out_dir, sizeof out_dir, e))
		return REASON_INTERNAL;
	return build_install(&ask, t, &w->install, &why, e) ? why : REASON_NONE;
}

/* Engines of long ago, and some forks, do not have it. */
static bool
tool_offered(const struct work *w)
{
	char path[GATE_PATH];

	return str_fmt(path, sizeof path, NULL, "%s/tools/perplexity/CMakeLists.txt", w->source.path) == 0 &&
		plat_is_file(path);
}

static enum reason
build_from_source(struct work *w, struct transcript *t, struct err *e)
{
	struct build_ask ask = {.source_ask = &w->source_ask, .source = &w->source,
		.lane = w->lane, .target = w->target, .programs = w->suite->programs,
		.program_count = w->suite->program_count,
		.extra_flags = w->job->override[OVERRIDE_CMAKE_FLAGS], .chip = w->device.level,
		.cache_dir = w->ask->cache_dir, .timeout_ms = w->ask->build_timeout_ms,
		.tick = work_tick, .progress = build_say, .arg = w};
	const char *driver = w->job->override[OVERRIDE_DRIVER];
	const char *programs[SUITE_MAX_PROGRAMS + 3];
	enum reason why = REASON_INTERNAL;
	int i;

	for (i = 0; i < ask.program_count; i++)
		programs[i] = ask.programs[i];
	if (driver != NULL)
		programs[ask.program_count++] = driver;
	if (gate_planned(w, GATE_OP_PARITY))
		programs[ask.program_count++] = "test-backend-ops";
	if (gate_planned(w, GATE_CONTROL) && tool_offered(w))
		programs[ask.program_count++] = CONTROL_TOOL;
	ask.programs = programs;
	if (build_engine(&ask, t, &w->build, &why, e))
		return why;
	w->build_known = true;
	snprintf(w->engine_dir, sizeof w->engine_dir, "%s", w->build.bin_dir);
	return install(w, t, e);
}

static enum reason
build_found(struct work *w, struct transcript *t, struct err *e)
{
	struct prebuilt_ask ask = {.target = w->target, .programs = w->suite->programs,
		.program_count = w->suite->program_count, .skip_build = w->skip_build,
		.allow_prebuilt = str_eq(plat_env("ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE", NULL), "1"),
		.source = w->source_known ? &w->source : NULL};
	char managed[BUILD_PATH];
	enum reason why = REASON_INTERNAL;

	ask.bin_dir = w->job->prebuilt;
	if (ask.bin_dir == NULL && w->lane->api == API_VULKAN)
		ask.bin_dir = plat_env("ELIZA_MTP_VULKAN_BIN_DIR", NULL);
	if (ask.bin_dir == NULL) {
		if (build_output_dir(w->target, managed, sizeof managed, e))
			return REASON_INTERNAL;
		ask.bin_dir = managed;
	}
	if (build_prebuilt(&ask, t, &w->build, &why, e))
		return why;
	w->build_known = true;
	snprintf(w->engine_dir, sizeof w->engine_dir, "%s", w->build.bin_dir);
	return REASON_NONE;
}

void
gate_build(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "build");
	struct err e = {0};
	enum reason why;

	if (t == NULL)
		return;
	why = w->prebuilt ? build_found(w, t, &e) : build_from_source(w, t, &e);
	if (w->build_known)
		build_facts(t, w);
	if (why != REASON_NONE)
		gate_say(t, why, e.hint, "%s", e.msg);
	else if (w->prebuilt)
		gate_say(t, REASON_PREBUILT, NULL, "prebuilt engine in %s, not built here",
			w->engine_dir);
	else
		gate_done(t, "%s %s%s%s", w->build.reused ? "reused the build of" : "built",
			w->build.artifacts[0].name, w->build.reused ? " of " : "",
			w->build.reused ? w->build.built_at : "");
	gate_close(w, g, t);
}
