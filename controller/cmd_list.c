/* runs, show, classes, why: what the ledger knows. */
#include "controller/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/result.h"
#include "controller/store_run.h"
#include "controller/table.h"

static bool
has(const char *s)
{
	return s != NULL && s[0] != '\0';
}

/* ---- for all commands ---- */

int
cmd_fail(const struct err *e)
{
	fflush(stdout);
	err_print(CMD_NAME, e);
	return err_exit(e->code);
}

int
cmd_json(cJSON *o, bool pretty)
{
	char *text = o ? json_text(o, pretty) : NULL;
	struct err e = {0};

	cJSON_Delete(o);
	if (text == NULL) {
		err_set(&e, ERR_NOMEM, "no memory for the answer");
		return cmd_fail(&e);
	}
	printf("%s%s", text, pretty ? "" : "\n");
	fflush(stdout);
	free(text);
	return EXIT_PASS;
}

int
cmd_ledger_read(struct ledger **out, struct err *e)
{
	*out = NULL;
	if (ledger_of_user(LEDGER_READ, out, e) == 0)
		return 0;
	if (e->code != ERR_NOTFOUND)
		return -1;
	memset(e, 0, sizeof *e);
	return 0;
}

void
cmd_look(struct progress_look *look)
{
	progress_look_of(stdout, false, look);
}

static int
print_table(struct table *t)
{
	struct progress_look look;
	struct err e = {0};
	int rc;

	cmd_look(&look);
	rc = table_print(t, stdout, look.colour, &e);
	table_fini(t);
	return rc ? cmd_fail(&e) : EXIT_PASS;
}

static int
nothing_yet(bool json)
{
	if (json)
		printf("[]\n");
	else
		printf("no run is stored yet; try: %s run local\n", CMD_NAME);
	return EXIT_PASS;
}

/* ---- runs ---- */

static int
print_runs(struct ledger *l, const struct ledger_list *list)
{
	static const char *const heads[] = {"RUN", "WHEN", "HOST", "CLASS", "SUITE", "OUTCOME",
		"WHY", NULL};
	const struct ledger_run *r;
	struct table t;

	table_init(&t, heads);
	for (r = list->runs; r < list->runs + list->count; r++) {
		char id[LEDGER_RUN_ID + 1], when[32], outcome[64], why[96];
		const char *cells[] = {id, when, r->host, r->device_class, r->suite, outcome, why};

		result_short(l, r->run_id, id);
		result_time(r->started_ms, when, sizeof when);
		snprintf(outcome, sizeof outcome, "%s%s", r->outcome,
			r->recordable ? " recordable" : "");
		/* A list has room for a glance; `show` has the rest. */
		snprintf(why, sizeof why, "%.90s", str_eq(r->outcome, "pass") ?
			r->not_recordable : r->reason);
		table_row(&t, cells);
	}
	return print_table(&t);
}

static int
runs_json(const struct ledger_list *list)
{
	cJSON *a = cJSON_CreateArray(), *o;
	size_t i;

	for (i = 0; a != NULL && i < list->count; i++) {
		if ((o = result_json(&list->runs[i])) != NULL && cJSON_AddItemToArray(a, o))
			continue;
		cJSON_Delete(o);
		cJSON_Delete(a);
		a = NULL;
	}
	return cmd_json(a, true);
}

int
cmd_runs(const struct opt_call *call)
{
	const struct runs_values *v = call->values;
	struct ledger_filter f = {.host = v->host, .device_class = v->device_class,
		.outcome = v->outcome, .lane = v->lane, .recordable = v->recordable,
		.limit = (uint32_t)v->limit};
	struct ledger_list list = {0};
	struct ledger *l = NULL;
	struct err e = {0};
	int status = EXIT_PASS;

	if (cmd_ledger_read(&l, &e) == 0 && l == NULL)
		return nothing_yet(v->json);
	if (l != NULL && ledger_runs(l, &f, &list, &e) == 0) {
		if (v->json)
			status = runs_json(&list);
		else if (list.count == 0)
			printf("no run is like that\n");
		else
			status = print_runs(l, &list);
	}
	ledger_list_fini(&list);
	ledger_close(l);
	return e.code != ERR_NONE ? cmd_fail(&e) : status;
}

/* ---- show ---- */

static int
show_pending(const char *id)
{
	struct pending *p = NULL;
	struct err e = {0};
	char when[32];

	if (pending_load(id, &p, &e))
		return cmd_fail(&e);
	result_time(p->created_ms, when, sizeof when);
	printf("PENDING: job %s on %s since %s, lane %s, suite %s\n"
		"its evidence is not stored yet: %s attach %.8s\n", id, p->host, when,
		p->job->lane->name, p->job->suite->name, CMD_NAME, id);
	pending_free(p);
	return EXIT_PASS;
}

int
cmd_show(const struct opt_call *call)
{
	const struct json_values *v = call->values;
	struct ledger_list list = {0};
	struct progress_look look;
	struct ledger *l = NULL;
	struct err e = {0}, none = {0};
	char id[JOB_ID_HEX + 1];
	int status = EXIT_PASS;

	cmd_look(&look);
	if (cmd_ledger_read(&l, &e))
		return cmd_fail(&e);
	if (l == NULL)
		err_set(&e, ERR_NOTFOUND, "no run is stored yet");
	if (l == NULL || ledger_get(l, call->argv[0], &list, &e)) {
		if (e.code == ERR_NOTFOUND && pending_find(call->argv[0], id, &none) == 0) {
			memset(&e, 0, sizeof e);
			status = show_pending(id);
		}
	} else if (v->json)
		status = cmd_json(result_json(&list.runs[0]), true);
	else if (result_print(stdout, l, &list.runs[0], &look, false, &e))
		status = EXIT_INCOMPLETE;
	ledger_list_fini(&list);
	ledger_close(l);
	return e.code != ERR_NONE ? cmd_fail(&e) : status;
}

/* ---- classes ---- */

/* "pass llama.cpp 2026-06-01 80fb11ac73e6 6.1.0", or why not.  The suite stands there
 * because a pass speaks of the families of its suite alone. */
static void
claim_cell(const struct ledger_claim *c, char *out, size_t size)
{
	char when[32];

	if (!c->passed && !has(c->outcome)) {
		snprintf(out, size, "-");
		return;
	}
	if (!c->passed) {
		snprintf(out, size, "%s %s", c->outcome, str_eq(c->outcome, "pass") ?
			"not recordable" : has(c->reason) ? c->reason : "");
		return;
	}
	result_time(c->pass_ms, when, sizeof when);
	snprintf(out, size, "pass %.24s %.10s %.12s%s%s",
		has(c->pass_suite) ? c->pass_suite : "?", when,
		has(c->pass_commit) ? c->pass_commit : "no commit",
		has(c->pass_driver) ? " " : "", has(c->pass_driver) ? c->pass_driver : "");
	if (!c->holds && !str_eq(c->outcome, "pass") && strlen(out) + 80 < size)
		snprintf(out + strlen(out), size - strlen(out), " (since then %.20s %.40s)",
			c->outcome, has(c->reason) ? c->reason : "");
}

static int
print_classes(const struct ledger_classes *list)
{
	const char *heads[CLAIM_COUNT + 2] = {"CLASS"}, *cells[CLAIM_COUNT + 1];
	char text[CLAIM_COUNT][200];
	struct table t;
	size_t i;
	int k;

	for (k = 0; k < CLAIM_COUNT; k++)
		heads[k + 1] = claim_name((enum claim)k);
	table_init(&t, heads);
	for (i = 0; i < list->count; i++) {
		cells[0] = list->classes[i].name;
		for (k = 0; k < CLAIM_COUNT; k++) {
			claim_cell(&list->classes[i].claims[k], text[k], sizeof text[k]);
			cells[k + 1] = text[k];
		}
		table_row(&t, cells);
	}
	return print_table(&t);
}

static bool
add_text(cJSON *o, const char *key, const char *s)
{
	return json_add_str(o, key, has(s) ? s : NULL);
}

static bool
add_time(cJSON *o, const char *key, int64_t ms)
{
	char text[24];

	if (ms < 0)
		return json_add_null(o, key);
	plat_utc(ms, text);
	return json_add_str(o, key, text);
}

static bool
add_claim(cJSON *to, const char *name, const struct ledger_claim *c)
{
	cJSON *o = json_add_object(to, name);

	return o != NULL && json_add_bool(o, "passed", c->passed) &&
		json_add_bool(o, "holds", c->holds) && add_text(o, "passRun", c->pass_run) &&
		add_text(o, "passSuite", c->pass_suite) &&
		add_text(o, "passCommit", c->pass_commit) &&
		add_text(o, "passDriver", c->pass_driver) &&
		add_time(o, "passAt", c->passed ? c->pass_ms : -1) &&
		add_text(o, "outcome", c->outcome) && add_text(o, "reasonCode", c->reason) &&
		add_text(o, "detail", c->detail) && add_text(o, "run", c->run) &&
		add_time(o, "at", c->at_ms);
}

static cJSON *
class_json(const struct ledger_class *c)
{
	cJSON *o = cJSON_CreateObject(), *claims = NULL;
	int k;

	if (o == NULL || !add_text(o, "class", c->name) || !add_text(o, "target", c->target) ||
	    !add_text(o, "run", c->run) || !add_text(o, "host", c->host) ||
	    !add_text(o, "outcome", c->outcome) || !add_text(o, "reasonCode", c->reason) ||
	    !json_add_bool(o, "recordable", c->recordable) || !add_time(o, "at", c->at_ms) ||
	    (claims = json_add_object(o, "claims")) == NULL)
		goto fail;
	for (k = 0; k < CLAIM_COUNT; k++)
		if (!add_claim(claims, claim_name((enum claim)k), &c->claims[k]))
			goto fail;
	return o;
fail:
	cJSON_Delete(o);
	return NULL;
}

static int
classes_json(const struct ledger_classes *list)
{
	cJSON *a = cJSON_CreateArray(), *o;
	size_t i;

	for (i = 0; a != NULL && i < list->count; i++) {
		if ((o = class_json(&list->classes[i])) != NULL && cJSON_AddItemToArray(a, o))
			continue;
		cJSON_Delete(o);
		cJSON_Delete(a);
		a = NULL;
	}
	return cmd_json(a, true);
}

int
cmd_classes(const struct opt_call *call)
{
	const struct json_values *v = call->values;
	struct ledger_classes list = {0};
	struct ledger *l = NULL;
	struct err e = {0};
	int status = EXIT_PASS;

	if (cmd_ledger_read(&l, &e) == 0 && l == NULL)
		return nothing_yet(v->json);
	if (l != NULL && ledger_class_list(l, &list, &e) == 0) {
		if (v->json)
			status = classes_json(&list);
		else if (list.count == 0)
			printf("no run has named a device class yet\n");
		else
			status = print_classes(&list);
	}
	ledger_classes_fini(&list);
	ledger_close(l);
	return e.code != ERR_NONE ? cmd_fail(&e) : status;
}

/* ---- why ---- */

/* A line of text out of the ledger, cleaned. */
static void
say(const char *indent, const char *head, const char *text)
{
	char shown[1200];

	if (!has(text))
		return;
	str_show(shown, sizeof shown, text, strlen(text));
	printf("%s%s%s\n", indent, head, shown);
}

static int
print_state(struct ledger *l, const char *name, struct err *e)
{
	struct ledger_classes list = {0};
	char cell[200];
	size_t i;
	int k;

	if (ledger_class_list(l, &list, e))
		return -1;
	for (i = 0; i < list.count; i++) {
		if (!str_eq(list.classes[i].name, name))
			continue;
		for (k = 0; k < CLAIM_COUNT; k++) {
			claim_cell(&list.classes[i].claims[k], cell, sizeof cell);
			printf("  %-16s ", claim_name((enum claim)k));
			say("", "", cell[0] == '-' ? "no run has tried it" : cell);
		}
	}
	ledger_classes_fini(&list);
	return 0;
}

static void
print_why(struct ledger *l, const struct ledger_run *r)
{
	char id[LEDGER_RUN_ID + 1], when[32], verdict[600];
	const char *hinted = NULL;
	const struct ledger_gate *g;

	result_short(l, r->run_id, id);
	result_time(r->started_ms, when, sizeof when);
	result_line(r, verdict, sizeof verdict);
	printf("\n%s  %s  on %s, suite %s\n", id, when, r->host, r->suite);
	say("  ", "", verdict);
	say("  ", "DISAGREEMENT: ", r->disagreement);
	for (g = r->gates; g < r->gates + r->gate_count; g++) {
		char head[200];

		if (str_eq(g->outcome, "skipped"))
			continue; /* nobody asked; the verdict says so once */
		snprintf(head, sizeof head, "%s: %s %s", g->name, g->outcome, g->reason);
		say("    ", "", head);
		say("      ", "", g->detail);
		if (str_eq(g->reason, reason_name(REASON_DEPENDS)))
			continue;
		if (!str_eq(g->hint, hinted))
			say("      ", "hint: ", g->hint);
		hinted = g->hint;
	}
}

int
cmd_why(const struct opt_call *call)
{
	const struct why_values *v = call->values;
	struct ledger_list list = {0};
	struct ledger *l = NULL;
	struct err e = {0};
	char name[256] = "";
	size_t i;

	if (cmd_ledger_read(&l, &e) == 0 && l == NULL)
		return nothing_yet(false);
	if (l != NULL && ledger_why(l, call->argv[0], (uint32_t)v->limit, name, sizeof name,
		&list, &e) == 0) {
		say("", "", name);
		if (print_state(l, name, &e) == 0)
			for (i = 0; i < list.count; i++)
				print_why(l, &list.runs[i]);
	} else if (e.code == ERR_NOTFOUND && e.hint[0] == '\0')
		err_hint(&e, "\"classes\" lists them");
	ledger_list_fini(&list);
	ledger_close(l);
	return e.code != ERR_NONE ? cmd_fail(&e) : EXIT_PASS;
}
