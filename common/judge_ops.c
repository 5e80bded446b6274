/*
 * The verdict on an op-parity gate: the engine's own test-backend-ops, an op a run, on the
 * lane's device.  It says OK and exit 0 when nothing was executed, so only cases count:
 * of that op, on that backend, in a run that printed its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/judge_impl.h"
#include "common/ntstatus.h"
#include "common/str.h"
#include "common/tool_impl.h"

struct run {
	char op[48], backend[32], params[160];
	struct tool_answer a;
	const struct suite_op *wanted;
	uint32_t ok, failed, not_supported, rows;
	unsigned types;          /* bits of wanted->types with a case that is right */
	unsigned types_seen;     /* with any case */
	char first[200];         /* the first row that is not right */
	double nmse;
};

static bool
run_of(const struct section *s, struct run *r)
{
	char name[64];
	const char *op, *backend, *params;
	cJSON *o = NULL;
	bool yes = false;

	if (strcmp(s->kind, "run") != 0)
		return false;
	judge_tool_name(s, name, sizeof name);
	if (!str_starts(name, "test-backend-ops") ||
	    json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return false;
	op = judge_argv_value(json_get(o, "argv"), "-o", "-o");
	backend = judge_argv_value(json_get(o, "argv"), "-b", "-b");
	params = judge_argv_value(json_get(o, "argv"), "-p", "-p");
	/* grad, perf and support say OK about other things */
	if (op != NULL && backend != NULL &&
	    str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(json_get(o, "argv"), 1)), "test")) {
		memset(r, 0, sizeof *r);
		snprintf(r->op, sizeof r->op, "%.47s", op);
		snprintf(r->backend, sizeof r->backend, "%.31s", backend);
		snprintf(r->params, sizeof r->params, "%.159s", params ? params : "");
		r->nmse = -1;
		yes = true;
	}
	cJSON_Delete(o);
	return yes;
}

/* "type=q8_0" or "type_K=q8_0" as a whole parameter. */
static bool
has_type(const char *params, const char *type)
{
	static const char *const keys[] = {"type=", "type_K=", "type_KV=", "type_k=", "k_type=", "type_dst="};
	size_t n = strlen(type), i;
	const char *p;

	for (i = 0; i < str_count(keys); i++)
		for (p = strstr(params, keys[i]); p != NULL; p = strstr(p + 1, keys[i]))
			if ((p == params || p[-1] == ',') &&
			    strncmp(p + strlen(keys[i]), type, n) == 0 &&
			    (p[strlen(keys[i]) + n] == ',' || p[strlen(keys[i]) + n] == '\0'))
				return true;
	return false;
}

static void
case_take(void *arg, const struct tool_case *c)
{
	struct run *r = arg;
	int i;

	if (strcmp(c->op, r->op) != 0 || strcmp(c->backend, r->backend) != 0)
		return;
	r->rows++;
	r->ok += c->result == CASE_OK;
	r->failed += c->result == CASE_FAILED;
	r->not_supported += c->result == CASE_NOT_SUPPORTED;
	r->nmse = c->nmse > r->nmse ? c->nmse : r->nmse;
	if (r->first[0] == '\0' && c->result != CASE_OK)
		snprintf(r->first, sizeof r->first, "%s", c->line);
	for (i = 0; r->wanted != NULL && i < r->wanted->type_count; i++)
		if (has_type(c->params, r->wanted->types[i])) {
			r->types_seen |= 1u << i;
			if (c->result == CASE_OK)
				r->types |= 1u << i;
		}
}

static const struct suite_op *
wanted_of(const struct suite *s, const struct run *r)
{
	int i;

	for (i = 0; i < s->op_count; i++)
		if (strcmp(s->ops[i].op, r->op) == 0 &&
		    strcmp(s->ops[i].params ? s->ops[i].params : "", r->params) == 0)
			return &s->ops[i];
	return NULL;
}

/* The backend that was tested, as the tool names it; NULL: it did not. */
static const struct tool_backend *
tested(const struct run *r)
{
	int i;

	for (i = 0; i < r->a.backend_count; i++)
		if (strcmp(r->a.backend[i].name, r->backend) == 0 && !r->a.backend[i].skipped)
			return &r->a.backend[i];
	return NULL;
}

static bool
type_missing(const struct run *r, struct judgement *out)
{
	int i;

	for (i = 0; i < r->wanted->type_count; i++)
		if ((r->types & (1u << i)) == 0) {
			judgement_set(out, REASON_NO_CASE_EXECUTED, "%s with %s: %s on %s%s%s", r->op,
				r->wanted->types[i], (r->types_seen & (1u << i)) ? "not supported" : "no case",
				r->backend, r->first[0] ? ", such as " : "", r->first);
			return true;
		}
	return false;
}

/* What is wrong with one run, in the order of what explains most. */
static bool
run_wrong(const struct run *r, const struct section *s, const char *glob, struct judgement *out)
{
	const struct tool_backend *b = tested(r);
	char status[96];

	if (!tool_backend_matches(glob, r->backend))
		judgement_set(out, REASON_BACKEND_NOT_PRESENT, "%s was tested on %s, the lane is for %s", r->op,
			r->backend, glob);
	else if (s->cancelled)
		judgement_set(out, REASON_CANCELLED, "cancelled while %s was tested", r->op);
	else if (s->timed_out)
		judgement_set(out, REASON_TIMEOUT, "the test of %s did not end in time", r->op);
	else if (s->signal != 0)
		judgement_set(out, REASON_ENGINE_CRASH, "the test of %s died of signal %d", r->op, s->signal);
	else if (b != NULL && strcmp(glob, "CPU") != 0 && tool_is_software_name(b->device))
		judgement_set(out, REASON_SOFTWARE_DEVICE, "%s is %.120s", r->backend, b->device);
	else if (r->failed > 0)
		judgement_set(out, REASON_OP_MISMATCH, "%u of %u cases of %s are wrong: %.150s", (unsigned)r->failed,
			(unsigned)r->rows, r->op, r->first);
	else if (r->a.overflow)
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "%s", r->a.detail);
	else if (b == NULL && r->a.reason == REASON_TOOL_SAW_NO_GPU)
		judgement_set(out, r->a.reason, "%s was not tested: %.200s", r->op, r->a.detail);
	else if (s->dropped > 0) {
		/* a case on another device, or a wrong one, may be among what was cut out */
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "the test of %s printed %llu bytes more than is kept",
			r->op, (unsigned long long)s->dropped);
		snprintf(out->hint, sizeof out->hint, "raise log_cap_bytes, or find what floods");
	} else if (b == NULL && r->a.backend_count > 0)
		judgement_set(out, REASON_BACKEND_NOT_PRESENT, "the engine has no backend %s: %s was not tested",
			r->backend, r->op);
	else if (b == NULL || r->a.reason == REASON_SUMMARY_MISSING || (!b->ended_ok && !b->ended_fail) ||
		 b->executed < 0)
		judgement_set(out, REASON_SUMMARY_MISSING, "the test of %s did not print its end", r->op);
	/* later versions call it a FAIL when no case was executed */
	else if (b->passed < b->executed || (b->executed > 0 && (b->ended_fail || s->exit != 0))) {
		ntstatus_show(s->exit, status, sizeof status);
		judgement_set(out, REASON_OP_MISMATCH, "the test of %s ended with exit %s, %lld of %lld passed", r->op,
			status, (long long)b->passed, (long long)b->executed);
	} else if (r->rows == 0)
		judgement_set(out, REASON_OP_NOT_IN_ENGINE, "the engine's test has no case of %s", r->op);
	else if (r->ok == 0 || b->executed == 0)
		judgement_set(out, REASON_NO_CASE_EXECUTED, "0 cases of %s ran on %s: %.170s", r->op, r->backend,
			r->first);
	else
		return type_missing(r, out);
	return true;
}

void
judge_ops(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct run *r;
	struct section s;
	size_t pos = 0;
	uint64_t cases = 0;
	unsigned seen = 0;
	int i;
	bool wrong = false;
	struct judgement j;

	if (judge_decided(log, len, out))
		return;
	if ((r = malloc(sizeof *r)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (run_of(&s, r) && (r->wanted = wanted_of(ask->suite, r)) != NULL) {
			tool_parse(TOOL_TEST_BACKEND_OPS, s.body, s.len, s.exit, &r->a);
			if (tool_ops_each(s.body, s.len, case_take, r, NULL))
				r->a.overflow = true;
			seen |= 1u << (r->wanted - ask->suite->ops);
			cases += r->ok;
			/* a wrong number says more than a case that is not there */
			if (run_wrong(r, &s, ask->lane->op_backend, &j) &&
			    (!wrong || (j.outcome == OUTCOME_FAIL && out->outcome != OUTCOME_FAIL))) {
				*out = j;
				wrong = true;
			}
		}
		section_fini(&s);
	}
	for (i = 0; !wrong && i < ask->suite->op_count; i++)
		if ((seen & (1u << i)) == 0) {
			judgement_set(out, REASON_NO_CASE_EXECUTED, "%s was not tested", ask->suite->ops[i].op);
			wrong = true;
		}
	if (!wrong)
		judgement_set(out, REASON_NONE, "%d ops, %llu cases executed and right", ask->suite->op_count,
			(unsigned long long)cases);
	free(r);
}

int
op_facts_read(const char *log, size_t len, struct op_facts *out, int max)
{
	struct run *r = malloc(sizeof *r);
	struct section s;
	size_t pos = 0;
	int n = 0;

	while (r != NULL && n < max && transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (run_of(&s, r) && tool_ops_each(s.body, s.len, case_take, r, NULL) == 0) {
			memcpy(out[n].op, r->op, sizeof out[n].op);
			memcpy(out[n].backend, r->backend, sizeof out[n].backend);
			out[n].ok = r->ok;
			out[n].failed = r->failed;
			out[n].not_supported = r->not_supported;
			out[n++].worst_nmse = r->nmse;
		}
		section_fini(&s);
	}
	free(r);
	return n;
}
