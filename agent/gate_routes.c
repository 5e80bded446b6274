/* The engine-verify gate: the engine's score routes on the lane's device, in a program of our
 * own that is linked with the built engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine_env.h"
#include "agent/engine_verify.h"
#include "agent/gate.h"
#include "common/json.h"
#include "common/plat.h"

/* Counts and differences, as the log has them, become a part of the report. */
static void
routes_note(struct work *w, const struct gate *g)
{
	struct route_facts f[ROUTE_FACTS_MAX];
	char path[GATE_PATH], *text = NULL;
	cJSON *list = cJSON_CreateArray(), *o;
	size_t len;
	int i, n = 0;

	if (work_path(w, g->log_name, path, sizeof path, NULL) == 0 &&
	    plat_read_file(path, 64u << 20, &text, &len, NULL) == 0)
		n = route_facts_read(text, len, f);
	for (i = 0; list != NULL && i < n; i++) {
		o = cJSON_CreateObject();
		if (o == NULL || !cJSON_AddItemToArray(list, o) || !json_add_str(o, "route", f[i].label) ||
		    !json_add_bool(o, "supported", f[i].supported) || !json_add_int(o, "right", f[i].right) ||
		    !json_add_int(o, "wrong", f[i].wrong) ||
		    !(f[i].max_diff >= 0 ? json_add_num(o, "maxDiff", f[i].max_diff) : json_add_null(o, "maxDiff")))
			break;
	}
	cJSON_Delete(w->routes);
	w->routes = list;
	free(text);
}

void
gate_routes(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "engine-verify");
	char device[32];
	struct engine_env env;
	struct engine_verify ask = {.program = "engine-verify", .engine_dir = w->engine_dir,
		.source = w->source_known ? w->source.path : NULL, .compiler = w->build.cc.path,
		.device = device, .cache_dir = w->ask->cache_dir, .env = env.v, .tick = work_tick};
	enum reason why = REASON_INTERNAL;
	struct err e = {0};

	if (t == NULL)
		return;
	lane_device(w->lane, device, sizeof device);
	engine_env_make(&env, w->engine_dir);
	engine_env_pin(&env, w->lane, &w->device);
	event_progress(w->ask->events, g->name, 0, 0, "steps", "compiles, then computes six routes");
	if (engine_env_note(t, &env, &e))
		gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	else if (engine_verify_run(&ask, t, &why, &e))
		gate_say(t, why, e.hint, "%s", e.msg);
	gate_close(w, g, t);
	if (g->log_name[0] != '\0')
		routes_note(w, g);
}
