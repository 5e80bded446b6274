/* appraise: the verdict on an engine's log for people who were handed one, by the code that
 * judges a run. */
#include <errno.h>
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
#include "controller/cmd.h"

/* An engine's own log may have any size: it is read in pieces.  A gate's log, one of UTF-16
 * and one that comes through a pipe are held in memory. */
#define LOG_MAX ((size_t)4 << 30)
#define PIECE ((size_t)1 << 20)
#define SHOWN 400
#define LINE_LOOKED 4096u           /* bytes of the deciding line that are looked at */

struct input {
	const char *path;
	char *text;                 /* owned; NULL: read in pieces */
	size_t len;
};

/* What is asked, and what came of it. */
struct appraisal {
	const struct lane *lane;
	struct suite *suite;        /* owned */
	const char *family, *cache_type, *cache_asked; /* the last only with --cache-type */
	int exit;                   /* that the engine ended with, as it is told */
	struct smoke_facts facts;
	struct smoke_verdict v;
	char line[SHOWN];           /* the deciding one, shown; "" none */
	/* Of a file with several runs: how many before the last, and the first that is no pass,
	 * which decides. */
	int runs, bad_run;          /* 0: none */
	struct elog bad;
	struct smoke_verdict bad_v;
};

static bool
is_transcript(const struct input *in)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t at = in->len > 3 && memcmp(in->text, bom, 3) == 0 ? 3 : 0;

	return in->len >= at + 8 && memcmp(in->text + at, "#verify ", 8) == 0;
}

static struct smoke_ask
raw_ask(const struct appraisal *a)
{
	struct smoke_ask ask = smoke_ask_of(&a->facts, a->lane, suite_placement_of(a->suite, a->family));

	ask.raw = true;
	return ask;
}

static void
run_judge(void *arg, const struct elog *run)
{
	struct appraisal *a = arg;
	struct smoke_ask ask = raw_ask(a);
	struct smoke_verdict v = {0};

	a->runs++;
	elog_judge(run, &ask, &v);
	if (v.outcome == OUTCOME_PASS || a->bad_run != 0)
		return;
	a->bad_run = a->runs;
	a->bad = *run;
	a->bad_v = v;
}

/* The last run stands in the facts; one before it that is no pass decides. */
static void
runs_judge(struct appraisal *a)
{
	struct smoke_ask ask = raw_ask(a);
	int number = a->runs + 1;
	char detail[sizeof a->v.detail];

	elog_judge(&a->facts.elog, &ask, &a->v);
	if (a->runs == 0)
		return;
	if (a->bad_run != 0) {
		number = a->bad_run;
		a->facts.elog = a->bad;
		a->v = a->bad_v;
	}
	memcpy(detail, a->v.detail, sizeof detail);
	snprintf(a->v.detail, sizeof a->v.detail, "run %d of the %d in the file: %.200s", number, a->runs + 1, detail);
}

/* ---- reading ---- */

static int
piece_read(FILE *f, const struct input *in, char *buf, size_t *n, struct err *e)
{
	*n = fread(buf, 1, PIECE, f);
	return ferror(f) ? err_errno(e, errno, "%s", in->path) : 0;
}

static int
runs_open(struct appraisal *a, struct elog_stream **s, struct err *e)
{
	if (elog_open(&a->facts.elog, s, e))
		return -1;
	elog_each_run(*s, run_judge, a);
	return 0;
}

static int
raw_stream(FILE *f, const struct input *in, char *buf, size_t n, struct appraisal *a, struct err *e)
{
	struct elog_stream *s = NULL;
	int rc = runs_open(a, &s, e);

	for (; rc == 0 && n > 0; rc = piece_read(f, in, buf, &n, e))
		elog_add(s, buf, n);
	elog_close(s);
	return rc;
}

static int
raw_whole(const struct input *in, struct appraisal *a, struct err *e)
{
	struct elog_stream *s = NULL;

	if (runs_open(a, &s, e))
		return -1;
	elog_add(s, in->text, in->len);
	elog_close(s);
	return 0;
}

static bool
is_stream(const char *path)
{
	return strcmp(path, "-") != 0 && plat_is_file(path);
}

/* What PowerShell wrote is UTF-16: lines are told and shown as of any other log. */
static int
whole_read(struct input *in, struct err *e)
{
	char *text;
	size_t len;

	if (plat_read_input(in->path, LOG_MAX, &in->text, &in->len, e))
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

/* Gives the text of what must be held whole, or the facts of what needs not. */
static int
input_read(struct input *in, struct appraisal *a, bool *streamed, struct err *e)
{
	struct input first = {.path = in->path};
	char *buf;
	size_t n = 0;
	FILE *f;
	int rc = -1;

	*streamed = false;
	if (!is_stream(in->path))
		return whole_read(in, e);
	if ((f = fopen(in->path, "rbe")) == NULL)
		return err_errno(e, errno, "%s", in->path);
	if ((buf = malloc(PIECE)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory to read a log");
	} else if (piece_read(f, in, buf, &n, e) == 0) {
		first.text = buf;
		first.len = n;
		*streamed = !is_transcript(&first) && !tool_is_utf16(buf, n);
		rc = *streamed ? raw_stream(f, in, buf, n, a, e)
			: whole_read(in, e);
	}
	free(buf);
	fclose(f);
	return rc;
}

/* Without what terminals and Windows add. */
static void
line_take(const char *at, size_t len, char line[SHOWN])
{
	char *clean = NULL;
	size_t n = 0;

	if (tool_clean(at, len < LINE_LOOKED ? len : LINE_LOOKED, &clean, &n, NULL) == 0)
		str_show(line, SHOWN, clean, n);
	free(clean);
}

/* The number-th line of a file that is not held; *line stays "" when it is not there any
 * more. */
static void
file_line(const struct input *in, size_t number, char line[SHOWN])
{
	FILE *f = fopen(in->path, "rbe");
	char *buf = malloc(PIECE + 1);
	const char *at;
	size_t n, len, lines, keep = 0;
	bool found = false;

	while (f != NULL && buf != NULL && !found && (n = fread(buf + keep, 1, PIECE - keep, f)) > 0) {
		n += keep;
		lines = str_lines(buf, n);
		/* the line and its end, or as much of it as a piece holds */
		if (number <= lines || (number == lines + 1 && (n < PIECE || lines == 0)))
			found = str_line(buf, n, number, &at, &len);
		if (found) {
			line_take(at, len, line);
			break;
		}
		number -= lines;
		for (keep = 0; keep < n && buf[n - keep - 1] != '\n'; keep++)
			;
		keep = keep < PIECE ? keep : 0;
		memmove(buf, buf + n - keep, keep);
	}
	free(buf);
	if (f != NULL)
		fclose(f);
}

static void
line_show(struct appraisal *a, const struct input *in)
{
	const char *line;
	size_t n;

	if (a->v.line == 0)
		return;
	if (in->text == NULL)
		file_line(in, a->v.line, a->line);
	else if (str_line(in->text, in->len, a->v.line, &line, &n))
		line_take(line, n, a->line);
}

/* ---- judging ---- */

/* The verdict of the gate's own judge, who asks for more than the engine's text: that the
 * log is whole, and that the device stayed the same.  What elog found stays beside it. */
static void
transcript_judge(struct appraisal *a, const struct input *in, bool found)
{
	struct judge_ask ask = {.lane = a->lane, .suite = a->suite, .family = a->family,
		.only_cache = a->cache_asked ? a->cache_asked : a->facts.cache_type,
		.smoke = &a->facts, .smoke_read = found};
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
facts_ask(struct appraisal *a, const struct appraise_values *v)
{
	a->facts.tokens_asked = v->tokens != 0 ? (int)v->tokens : (int)a->suite->tokens;
	a->facts.exit = a->exit;
	snprintf(a->facts.cache_type, sizeof a->facts.cache_type, "%.23s", a->cache_type ? a->cache_type : "");
}

static int
ask_read(struct appraisal *a, const struct appraise_values *v, struct err *e)
{
	const struct suite_family *f;

	if (v->lane == NULL)
		return err_set(e, ERR_USAGE, "--lane NAME is wanted");
	if (lane_get(v->lane, &a->lane, e))
		return err_wrap(e, "--lane");
	if (ntstatus_parse(v->exit, &a->exit, e))
		return err_wrap(e, "--exit");
	if (suite_is_path(v->suite) ? suite_load(v->suite, &a->suite, e) : suite_builtin(v->suite, &a->suite, e))
		return -1;
	a->family = v->family;
	a->cache_type = a->cache_asked = v->cache_type;
	if (a->cache_type == NULL && (f = suite_family_find(a->suite, v->family)) != NULL)
		a->cache_type = f->aliases[0];
	return 0;
}

static const char *
yes(bool b)
{
	return b ? "yes" : "no";
}

static void
table_print(const struct appraisal *a)
{
	const struct elog *l = &a->facts.elog;
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
			(unsigned)g->layers, g->line + a->facts.lines_before, g->copied ? "  a copy, to be read" : "");
	}
	printf("%u graphs\n", (unsigned)l->graphs);
}

static void
people_print(const struct appraisal *a)
{
	const struct smoke_verdict *v = &a->v;

	printf("%s%s%s\n", outcome_name(v->outcome), v->reason ? " " : "", v->reason ? reason_name(v->reason) : "");
	printf("  %s\n", v->detail);
	if (v->reason != REASON_NONE && v->hint[0] != '\0')
		printf("  hint: %s\n", v->hint);
	if (a->line[0] != '\0')
		printf("  line %zu: %.200s\n", v->line, a->line);
	printf("  accepted %s, allocated %s, dispatched %s%s\n", yes(v->accepted), yes(v->allocated),
		yes(v->dispatched), a->facts.elog.custom_op ? ", by an op of the family" : a->facts.elog.cache_cast
		? ", after a cast of the cache" : "");
	if (a->facts.elog.device[0] != '\0')
		printf("  device %s %s\n", a->facts.elog.device, a->facts.elog.device_pci);
	table_print(a);
}

static cJSON *
tree_make(const struct appraisal *a)
{
	const struct elog *l = &a->facts.elog;
	const struct smoke_verdict *v = &a->v;
	cJSON *o = cJSON_CreateObject(), *list, *g;
	int i;

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
		json_add_int(o, "line", (int64_t)v->line);
		json_add_text(o, "text", a->line, strlen(a->line));
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
		json_add_int(g, "line", (int64_t)(l->groups[i].line + a->facts.lines_before));
		if (!cJSON_AddItemToArray(list, g)) {
			cJSON_Delete(g);
			break;
		}
	}
	return o;
}

static int
appraise(struct appraisal *a, struct input *in, const struct appraise_values *v, struct err *e)
{
	bool streamed, raw, found = false;
	struct smoke_ask ask;

	facts_ask(a, v);
	if (input_read(in, a, &streamed, e))
		return -1;
	raw = streamed || !is_transcript(in);
	if (!raw) {
		found = smoke_facts_read(in->text, in->len, &a->facts);
		ask = smoke_ask_of(&a->facts, a->lane, suite_placement_of(a->suite, a->family));
		if (a->cache_asked != NULL)
			ask.cache_type = a->cache_asked;
		elog_judge(&a->facts.elog, &ask, &a->v);
		transcript_judge(a, in, found);
	} else if (a->cache_type == NULL) {
		err_set(e, ERR_USAGE, "--family or --cache-type: which K cache type was asked for?");
		return err_hint(e, "--cache-type q8_0");
	} else {
		if (!streamed && raw_whole(in, a, e))
			return -1;
		runs_judge(a);
	}
	if (a->cache_asked != NULL)
		snprintf(a->facts.cache_type, sizeof a->facts.cache_type, "%.23s", a->cache_asked);
	line_show(a, in);
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
	struct input in = {.path = call->argv[0]};
	struct err e = {0};
	int status = EXIT_INCOMPLETE;

	if (a == NULL)
		err_set(&e, ERR_NOMEM, "no memory");
	else if (ask_read(a, v, &e) == 0 && appraise(a, &in, v, &e) == 0) {
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
