/* The fixtures gate: the lane's harness in a process of its own, its JSON in the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine_env.h"
#include "agent/gate.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define FIXTURE_TIMEOUT_MS 300000

static cJSON *
array_take(cJSON *o, const char *key)
{
	cJSON *v = cJSON_DetachItemFromObjectCaseSensitive(o, key);

	return v != NULL ? v : cJSON_CreateArray();
}

/* Backend, device and code, as the harness names them. */
static cJSON *
kernels_take(cJSON *o)
{
	static const char *const keys[] = {"backend", "device", "code"};
	cJSON *k = cJSON_CreateObject(), *v;
	size_t i;

	for (i = 0; k != NULL && i < str_count(keys); i++)
		if ((v = cJSON_DetachItemFromObjectCaseSensitive(o, keys[i])) != NULL &&
		    !json_add(k, keys[i], v)) {
			cJSON_Delete(k);
			k = NULL;
		}
	return k;
}

void
fixtures_note(struct work *w, const struct gate *g)
{
	char path[GATE_PATH];
	char *text = NULL;
	size_t len;
	cJSON *o;

	if (g->log_name[0] == '\0' || work_path(w, g->log_name, path, sizeof path, NULL) ||
	    plat_read_file(path, 16u << 20, &text, &len, NULL))
		return;
	if ((o = fixtures_read(text, len)) != NULL) {
		cJSON_Delete(w->fixtures);
		cJSON_Delete(w->controls);
		cJSON_Delete(w->kernels);
		w->fixtures = array_take(o, "checks");
		w->controls = array_take(o, "controls");
		w->kernels = kernels_take(o);
	}
	cJSON_Delete(o);
	free(text);
}

/* Vulkan has no variable that shows one device alone: the harness is told. */
static void
device_args(const struct work *w, const char **argv)
{
	if (w->lane->api != API_VULKAN)
		return;
	*argv++ = "--device";
	*argv++ = w->device.uuid;
	if (w->device.software)
		*argv++ = "--software";
	*argv = NULL;
}

void
gate_fixtures(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "fixtures");
	const char *harness = w->lane->harness;
	char self[GATE_PATH], tolerance[32];
	struct buf names;
	struct proc_result r;
	struct err e = {0};
	int i, bad = 0;

	if (t == NULL)
		return;
	buf_init(&names, 4096);
	for (i = 0; i < w->suite->fixture_count; i++)
		bad |= buf_addf(&names, &e, "%s%s", i ? "," : "", w->suite->fixtures[i]);
	snprintf(tolerance, sizeof tolerance, "%.9g", w->suite->tolerance);
	if (bad || plat_self(self, sizeof self, &e)) {
		gate_say(t, REASON_INTERNAL, NULL, "%s", e.msg);
	} else {
		const char *argv[] = {self, harness, "--json", "--tolerance", tolerance,
			"--only", names.data, NULL, NULL, NULL, NULL};
		struct engine_env env = {.v = {"LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES"}};
		struct proc_spec spec = {.argv = argv, .env = env.v, .tick = work_tick,
			.timeout_ms = w->ask->fixture_timeout_ms ? w->ask->fixture_timeout_ms
								 : FIXTURE_TIMEOUT_MS};

		device_args(w, argv + 7);
		if (w->lane->api != API_VULKAN)
			engine_env_pin(&env, w->lane, &w->device);
		if (env_removed_note(t, env.v, &e) || transcript_run(t, &spec, NULL, &r, &e))
			gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
		else if (r.timed_out || r.cancelled)
			gate_say(t, r.timed_out ? REASON_TIMEOUT : REASON_CANCELLED, NULL,
				"%s was stopped after %lld s", harness, (long long)(r.ms / 1000));
		else if (r.signal != 0)
			gate_say(t, REASON_HARNESS_CRASHED, NULL, "%s died of signal %d", harness,
				r.signal);
	}
	buf_fini(&names);
	gate_close(w, g, t);
	fixtures_note(w, g);
}
