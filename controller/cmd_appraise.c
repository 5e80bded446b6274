/* appraise: the verdict on an engine's log for people who were handed one, by the code that
 * judges a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/elog.h"
#include "common/json.h"
#include "common/judge.h"
#include "common/ntstatus.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"
#include "common/transcript.h"
#include "controller/cmd.h"

#define LOG_MAX ((size_t)4 << 30)
#define LINE_SHOWN 4096u /* bytes of the deciding line */

struct input {
	char *text;
	size_t len;
};

/* What is asked, and what came of it. */
struct appraisal {
	const struct lane *lane;
	struct suite *suite;        /* owned */
	const char *family, *cache_type;
	int exit;                   /* that the engine ended with, as it is told */
	struct smoke_facts facts;
	struct smoke_verdict v;
	const char *log;            /* the engine's own text */
	size_t log_len;
	size_t skipped;             /* lines of a transcript before it */
};

static size_t
lines_in(const char *p, size_t n)
{
	size_t i, lines = 0;

	for (i = 0; i < n; i++)
		lines += p[i] == '\n';
	return lines;
}

/* What PowerShell wrote is UTF-16: lines are told and shown as of any other log. */
static int
input_read(const char *path, struct input *in, struct err *e)
{
	char *text;
	size_t len;

	if (plat_read_input(path, LOG_MAX, &in->text, &in->len, e))
		return -1;
	if (!tool_is_utf16(in->text, in->len))
		return 0;
	if ((text = tool_utf8(in->text, in->len, &len)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the log");
	free(in->text);
	in->text = text;
	in->len = len;
	return 0;
}

static bool
is_transcript(const struct input *in)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t at = in->len > 3 && memcmp(in->text, bom, 3) == 0 ? 3 : 0;

	return in->len >= at + 8 && memcmp(in->text + at, "#verify ", 8) == 0;
}

/* A gate's whole log: its engine run, with the words of its own command line.  False when
 * it holds none that ended; the judge of the gate says so. */
static bool
transcript_take(struct appraisal *a, const struct input *in)
{
	struct section s;
	size_t pos = 0;
	bool found = false;

	while (transcript_next(in->text, in->len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0 && strstr(s.head, "--cache-type-k") != NULL) {
			a->log = s.body;
			a->log_len = s.len;
			a->skipped = lines_in(in->text, (size_t)(s.body - in->text));
			found = true;
		}
		section_fini(&s);
	}
	return found && smoke_facts_read(in->text, in->len, &a->facts);
}

/* The verdict of the gate's own judge, who asks for more than the engine's text: that the
 * log is whole, and that the device stayed the same.  What elog found stays beside it. */
static void
transcript_judge(struct appraisal *a, const struct input *in)
{
	struct judge_ask ask = {.lane = a->lane, .suite = a->suite, .family = a->family,
		.only_cache = a->facts.cache_type};
	struct judgement j;

	judge_gate(GATE_GRAPH_SMOKE, in->text, in->len, &ask, &j);
	if (j.reason == a->v.reason && j.outcome == a->v.outcome)
		return;
	a->v.outcome = j.outcome;
	a->v.reason = j.reason;
	a->v.line = 0;
	snprintf(a->v.detail, sizeof a->v.detail, "%.239s", j.detail);
	snprintf(a->v.hint, sizeof a->v.hint, "%s", j.hint);
}

static void
raw_take(struct appraisal *a, const struct input *in, const struct appraise_values *v)
{
	a->log = in->text;
	a->log_len = in->len;
	elog_parse(in->text, in->len, &a->facts.elog);
	a->facts.tokens_asked = v->tokens != 0 ? (int)v->tokens : (int)a->suite->tokens;
	a->facts.exit = a->exit;
	snprintf(a->facts.cache_type, sizeof a->facts.cache_type, "%.23s", a->cache_type);
}

static int
ask_read(struct appraisal *a, const struct appraise_values *v, struct err *e)
{
	const struct suite_family *f;

	if (v->lane == NULL || (a->lane = lane_find(v->lane)) == NULL) {
		err_set(e, ERR_USAGE, "--lane: %s%.40s%s", v->lane ? "no lane is named \"" : "a lane is wanted",
			v->lane ? v->lane : "", v->lane ? "\"" : "");
		return err_hint(e, "cpu, cuda, gh200, rocm, vulkan, android, windows-cuda, ...");
	}
	if (exit_code_parse(v->exit, &a->exit, e))
		return err_wrap(e, "--exit");
	if (suite_is_path(v->suite) ? suite_load(v->suite, &a->suite, e) : suite_builtin(v->suite, &a->suite, e))
		return -1;
	a->family = v->family;
	a->cache_type = v->cache_type;
	if (a->cache_type == NULL && (f = suite_family_find(a->suite, v->family)) != NULL)
		a->cache_type = f->aliases[0];
	return 0;
}

/* The n-th line of the log, shown; "" when there is none. */
static void
line_show(const struct appraisal *a, size_t number, char *out, size_t size)
{
	const char *p = a->log, *end = a->log + a->log_len, *nl;
	char *clean = NULL;
	size_t i, n;

	out[0] = '\0';
	for (i = 1; number > 0 && p < end; i++, p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if (i != number)
			continue;
		/* without what terminals and Windows add */
		n = (size_t)(nl - p) < LINE_SHOWN ? (size_t)(nl - p) : LINE_SHOWN;
		if (tool_clean(p, n, &clean, &n, NULL) == 0)
			str_show(out, size, clean, n);
		free(clean);
		return;
	}
}

static const char *
yes(bool b)
{
	return b ? "yes" : "no";
}

static void
table_print(const struct elog *l)
{
	const struct elog_group *g;
	int i;

	if (l->group_count == 0) {
		printf("\nno graph that was computed is printed: run the engine with GGML_SCHED_DEBUG=2 and -lv 5\n");
		return;
	}
	printf("\n%-11s %-20s %-8s %6s %7s %8s\n", "OP", "TENSOR", "BACKEND", "NODES", "LAYERS", "LINE");
	for (i = 0; i < l->group_count; i++) {
		g = &l->groups[i];
		printf("%-11s %-20s %-8s %6u %7u %8zu%s\n", g->op, g->tensor, g->backend, (unsigned)g->nodes,
			(unsigned)g->layers, g->line, g->copied ? "  a copy, to be read" : "");
	}
	printf("%u graphs\n", (unsigned)l->graphs);
}

static void
people_print(const struct appraisal *a)
{
	char line[200];
	const struct smoke_verdict *v = &a->v;

	line_show(a, v->line, line, sizeof line);
	printf("%s%s%s\n", outcome_name(v->outcome), v->reason ? " " : "", v->reason ? reason_name(v->reason) : "");
	printf("  %s\n", v->detail);
	if (v->reason != REASON_NONE && v->hint[0] != '\0')
		printf("  hint: %s\n", v->hint);
	if (line[0] != '\0')
		printf("  line %zu: %s\n", v->line + a->skipped, line);
	printf("  accepted %s, allocated %s, dispatched %s%s\n", yes(v->accepted), yes(v->allocated),
		yes(v->dispatched), a->facts.elog.custom_op ? ", by an op of the family" : a->facts.elog.cache_cast
		? ", after a cast of the cache" : "");
	if (a->facts.elog.device[0] != '\0')
		printf("  device %s %s\n", a->facts.elog.device, a->facts.elog.device_pci);
	table_print(&a->facts.elog);
}

static cJSON *
tree_make(const struct appraisal *a)
{
	const struct elog *l = &a->facts.elog;
	const struct smoke_verdict *v = &a->v;
	cJSON *o = cJSON_CreateObject(), *list, *g;
	char line[400];
	int i;

	line_show(a, v->line, line, sizeof line);
	if (o == NULL)
		return NULL;
	json_add_str(o, "lane", a->lane->name);
	json_add_str(o, "family", a->family);
	json_add_str(o, "cacheType", a->facts.cache_type);
	json_add_str(o, "outcome", outcome_name(v->outcome));
	json_add_str(o, "reasonCode", v->reason ? reason_name(v->reason) : NULL);
	json_add_text(o, "detail", v->detail, strlen(v->detail));
	json_add_str(o, "hint", v->reason ? v->hint : NULL);
	if (v->line > 0) {
		json_add_int(o, "line", (int64_t)(v->line + a->skipped));
		json_add_text(o, "text", line, strlen(line));
	} else {
		json_add_null(o, "line");
		json_add_null(o, "text");
	}
	json_add_bool(o, "accepted", v->accepted);
	json_add_bool(o, "allocated", v->allocated);
	json_add_bool(o, "dispatched", v->dispatched);
	json_add_bool(o, "customOpDispatched", l->custom_op && v->dispatched);
	json_add_bool(o, "cacheCast", l->cache_cast);
	json_add_str(o, "device", l->device[0] ? l->device : NULL);
	json_add_str(o, "devicePci", l->device_pci[0] ? l->device_pci : NULL);
	json_add_int(o, "graphs", l->graphs);
	list = json_add_array(o, "placement");
	for (i = 0; list != NULL && i < l->group_count && (g = cJSON_CreateObject()) != NULL; i++) {
		json_add_str(g, "op", l->groups[i].op);
		json_add_str(g, "tensor", l->groups[i].tensor);
		json_add_str(g, "backend", l->groups[i].backend);
		json_add_int(g, "nodes", l->groups[i].nodes);
		json_add_int(g, "layers", l->groups[i].layers);
		json_add_int(g, "line", (int64_t)(l->groups[i].line + a->skipped));
		if (!cJSON_AddItemToArray(list, g)) {
			cJSON_Delete(g);
			break;
		}
	}
	return o;
}

static int
appraise(struct appraisal *a, const struct input *in, const struct appraise_values *v, struct err *e)
{
	bool raw = !is_transcript(in);
	struct smoke_ask ask;

	if (!raw) {
		a->log = in->text;
		(void)transcript_take(a, in);
		if (v->cache_type != NULL)
			snprintf(a->facts.cache_type, sizeof a->facts.cache_type, "%.23s", v->cache_type);
	} else {
		if (a->cache_type == NULL) {
			err_set(e, ERR_USAGE, "--family or --cache-type: which K cache type was asked for?");
			return err_hint(e, "--cache-type q8_0");
		}
		raw_take(a, in, v);
	}
	ask = smoke_ask_of(&a->facts, a->lane, suite_placement_of(a->suite, a->family));
	ask.raw = raw;
	elog_judge(&a->facts.elog, &ask, &a->v);
	if (!raw)
		transcript_judge(a, in);
	return 0;
}

int
cmd_appraise(const struct opt_call *call)
{
	static const int exits[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = EXIT_PASS, [OUTCOME_FAIL] = EXIT_FAIL, [OUTCOME_BLOCKED] = EXIT_BLOCKED,
		[OUTCOME_SKIPPED] = EXIT_UNRECORDED, [OUTCOME_INCOMPLETE] = EXIT_INCOMPLETE,
	};
	const struct appraise_values *v = call->values;
	struct appraisal *a = calloc(1, sizeof *a);
	struct input in = {NULL, 0};
	struct err e = {0};
	int status = EXIT_INCOMPLETE;

	if (a == NULL)
		err_set(&e, ERR_NOMEM, "no memory");
	else if (ask_read(a, v, &e) == 0 && input_read(call->argv[0], &in, &e) == 0 &&
		 appraise(a, &in, v, &e) == 0) {
		status = exits[a->v.outcome];
		if (!v->json)
			people_print(a);
		else if (cmd_json(tree_make(a), true) != EXIT_PASS)
			status = EXIT_INCOMPLETE;
	}
	if (e.code != ERR_NONE)
		status = cmd_fail(&e);
	free(in.text);
	if (a != NULL)
		suite_free(a->suite);
	free(a);
	return status;
}
