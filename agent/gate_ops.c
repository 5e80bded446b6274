/* The op-parity gate: the engine's own test of each op of the suite, on the lane's device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gate.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define TESTER "test-backend-ops"
#define OPS_TIMEOUT_MS 600000

static int
op_run(const struct work *w, struct transcript *t, const char *path, const struct suite_op *o,
	struct err *e)
{
	char backend[32];
	const char *argv[] = {path, "test", "-o", o->op, "-b", backend, "-p", o->params, NULL};

	if (o->params == NULL)
		argv[6] = NULL;
	lane_device(w->lane, backend, sizeof backend);
	return engine_run(w, t, argv, w->ask->fixture_timeout_ms ? w->ask->fixture_timeout_ms
		: OPS_TIMEOUT_MS, e);
}

/* Counts and errors, as the log has them, become a part of the report. */
static void
ops_note(struct work *w, const struct gate *g)
{
	struct op_facts *f = calloc(SUITE_MAX_OPS, sizeof *f);
	char path[GATE_PATH], *text = NULL;
	cJSON *list = cJSON_CreateArray(), *o;
	size_t len;
	int i, n = 0;

	if (f != NULL && work_path(w, g->log_name, path, sizeof path, NULL) == 0 &&
	    plat_read_file(path, 64u << 20, &text, &len, NULL) == 0)
		n = op_facts_read(text, len, f, SUITE_MAX_OPS);
	for (i = 0; list != NULL && i < n; i++) {
		o = cJSON_CreateObject();
		if (o == NULL || !cJSON_AddItemToArray(list, o) || !json_add_str(o, "op", f[i].op) ||
		    !json_add_str(o, "backend", f[i].backend) || !json_add_int(o, "passed", f[i].ok) ||
		    !json_add_int(o, "failed", f[i].failed) ||
		    !json_add_int(o, "notSupported", f[i].not_supported) ||
		    !(f[i].worst_nmse >= 0 ? json_add_num(o, "worstNmse", f[i].worst_nmse)
					  : json_add_null(o, "worstNmse")))
			break;
	}
	cJSON_Delete(w->ops);
	w->ops = list;
	free(text);
	free(f);
}

void
gate_ops(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "op-parity");
	char path[GATE_PATH];
	struct err e = {0};
	int i;

	if (t == NULL)
		return;
	if (str_fmt(path, sizeof path, &e, "%s/" TESTER, w->engine_dir)) {
		gate_say(t, REASON_INTERNAL, NULL, "%s", e.msg);
	} else if (!plat_is_file(path)) {
		gate_say(t, REASON_DRIVER_MISSING, "build the engine's tests: LLAMA_BUILD_TESTS",
			TESTER " is not in %s", w->engine_dir);
	} else {
		for (i = 0; i < w->suite->op_count && !work_cancelled(); i++) {
			event_progress(w->ask->events, g->name, (uint32_t)i, (uint32_t)w->suite->op_count, "ops",
				w->suite->ops[i].op);
			if (op_run(w, t, path, &w->suite->ops[i], &e)) {
				gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
				break;
			}
		}
	}
	gate_close(w, g, t);
	if (g->log_name[0] != '\0')
		ops_note(w, g);
}
