#include "common/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/digest.h"
#include "common/json.h"
#include "common/job.h"
#include "common/str.h"

/* ---- form ---- */

enum kind { TEXT, TEXT_OR_NULL, NUMBER, BOOLEAN, OBJECT, OBJECT_OR_NULL, ARRAY };

static const struct {
	const char *path;
	enum kind kind;
} members[] = {
	{"schemaVersion", NUMBER},
	{"runner", TEXT},
	{"status", TEXT},
	{"passRecordable", BOOLEAN},
	{"exitCode", NUMBER},
	{"failureReason", TEXT_OR_NULL},
	{"startedAt", TEXT},
	{"finishedAt", TEXT},
	{"host", OBJECT},
	{"target", TEXT_OR_NULL},
	{"remoteDelegated", BOOLEAN},
	{"requirements", OBJECT},
	{"evidence", OBJECT},
	{"outcome", TEXT},
	{"reasonCode", TEXT_OR_NULL},
	{"jobId", TEXT},
	{"nonce", TEXT},
	{"lane", TEXT},
	{"suite", OBJECT},
	{"suite.name", TEXT},
	{"suite.digest", TEXT},
	{"agent", OBJECT},
	{"agent.version", TEXT},
	{"device", OBJECT},
	{"probes", ARRAY},
	{"source", OBJECT_OR_NULL},
	{"build", OBJECT_OR_NULL},
	{"model", OBJECT_OR_NULL},
	{"gates", ARRAY},
	{"fixtures", ARRAY},
	{"claims", OBJECT},
	{"overrides", ARRAY},
	{"smokes", ARRAY},
	{"controls", ARRAY},
	{"artifacts", ARRAY},
};

static bool
is_kind(const cJSON *v, enum kind k)
{
	switch (k) {
	case TEXT:
		return cJSON_IsString(v);
	case TEXT_OR_NULL:
		return cJSON_IsString(v) || cJSON_IsNull(v);
	case NUMBER:
		return cJSON_IsNumber(v);
	case BOOLEAN:
		return cJSON_IsBool(v);
	case OBJECT:
		return cJSON_IsObject(v);
	case OBJECT_OR_NULL:
		return cJSON_IsObject(v) || cJSON_IsNull(v);
	case ARRAY:
		return cJSON_IsArray(v);
	}
	return false;
}

static int
gate_row_check(const cJSON *g, struct err *e)
{
	const char *name, *outcome, *reason;

	if (json_need_str(g, "name", &name, e) || json_need_str(g, "outcome", &outcome, e))
		return -1;
	if (gate_find(name) < 0)
		return err_set(e, ERR_PARSE, "unknown gate \"%.64s\"", name);
	if (outcome_find(outcome) < 0)
		return err_set(e, ERR_PARSE, "%s.outcome is \"%.40s\", wanted pass, fail, blocked, "
			"skipped or incomplete", name, outcome);
	reason = json_str(g, "reasonCode");
	if (reason != NULL && reason_find(reason) < 0)
		return err_set(e, ERR_PARSE, "%s.reasonCode is \"%.40s\", which we do not know", name,
			reason);
	return 0;
}

int
report_check(const cJSON *report, struct err *e)
{
	const cJSON *g;
	size_t i;
	int n = 0;

	if (!cJSON_IsObject(report))
		return err_set(e, ERR_PARSE, "report: not an object");
	if (json_int(report, "schemaVersion", 0) != 2)
		return err_set(e, ERR_PARSE, "report: schemaVersion is %lld, wanted 2",
			(long long)json_int(report, "schemaVersion", 0));
	for (i = 0; i < str_count(members); i++)
		if (!is_kind(json_path(report, members[i].path), members[i].kind))
			return err_set(e, ERR_PARSE, "report: \"%s\" is %s", members[i].path,
				json_path(report, members[i].path) ? "of another type" : "missing");
	if (outcome_find(json_str(report, "outcome")) < 0)
		return err_set(e, ERR_PARSE, "report: outcome is \"%.40s\", which we do not know",
			json_str(report, "outcome"));
	cJSON_ArrayForEach(g, json_get(report, "gates")) {
		if (n++ == VERDICT_MAX_GATES)
			return err_set(e, ERR_LIMIT, "report: more than %d gates", VERDICT_MAX_GATES);
		if (gate_row_check(g, e))
			return err_wrap(e, "report: gates[%d]", n - 1);
	}
	return 0;
}

/* ---- deciding ---- */

static void
why(struct verdict *v, const char *fmt, ...) PRINTF(2, 3);

static void
why(struct verdict *v, const char *fmt, ...)
{
	va_list ap;

	if (v->why_count == VERDICT_MAX_WHY)
		return;
	va_start(ap, fmt);
	vsnprintf(v->why[v->why_count++], sizeof v->why[0], fmt, ap);
	va_end(ap);
}

/* Order of weight: a fail decides before a cut-off run, that before a blocked one. */
static const int weight[OUTCOME_COUNT] = {
	[OUTCOME_PASS] = 0,
	[OUTCOME_SKIPPED] = 1,
	[OUTCOME_BLOCKED] = 2,
	[OUTCOME_INCOMPLETE] = 3,
	[OUTCOME_FAIL] = 4,
};

/* The first gate of the heaviest outcome; a gate that failed by itself before one that
 * only depends on it. */
static const struct verdict_gate *
deciding(const struct verdict *v)
{
	const struct verdict_gate *g, *best = NULL;
	int i, w, best_w = 0;

	for (i = 0; i < v->gate_count; i++) {
		g = &v->gates[i];
		w = weight[g->j.outcome] * 2 + (g->j.reason != REASON_DEPENDS);
		if (g->j.outcome != OUTCOME_PASS && w > best_w)
			best = g, best_w = w;
	}
	return best;
}

static const struct verdict_gate *
gate_named(const struct verdict *v, const char *name)
{
	int i;

	for (i = 0; i < v->gate_count; i++)
		if (strcmp(v->gates[i].name, name) == 0)
			return &v->gates[i];
	return NULL;
}

/* Every gate the suite requires stands there and passed; of a family gate, all. */
static void
required_check(const struct suite *s, struct verdict *v)
{
	char name[80];
	const struct verdict_gate *g;
	int i, k;

	for (i = 0; i < GATE_COUNT; i++) {
		if ((s->required & GATE_BIT(i)) == 0)
			continue;
		for (k = 0; k < (gates[i].family ? s->family_count : 1); k++) {
			snprintf(name, sizeof name, "%s%s%s", gates[i].name, gates[i].family ? "/" : "",
				gates[i].family ? s->families[k].name : "");
			g = gate_named(v, name);
			if (g == NULL)
				why(v, "%s did not run", name);
			else if (g->j.outcome != OUTCOME_PASS)
				why(v, "%s is %s: %s", name, outcome_name(g->j.outcome),
					reason_name(g->j.reason));
		}
	}
}

static void
evidence_check(const cJSON *r, const struct suite *s, struct verdict *v)
{
	const cJSON *o, *model = json_get(r, "model"), *source = json_get(r, "source");
	const char *emulated = json_path_str(r, "host.emulated");

	cJSON_ArrayForEach(o, json_get(r, "overrides"))
		why(v, "override %.60s from %.40s", json_str(o, "name") ? json_str(o, "name") : "?",
			json_str(o, "from") ? json_str(o, "from") : "?");
	if (emulated != NULL && emulated[0] != '\0')
		why(v, "emulated: %.60s", emulated);
	if (v->device_class[0] == '\0')
		why(v, "the device class is not known");
	if (!str_eq(json_path_str(r, "suite.digest"), s->digest))
		why(v, "the suite is not the one of this version");
	if (cJSON_IsObject(json_get(r, "build")) && json_bool(json_get(r, "build"), "prebuilt", true))
		why(v, "prebuilt engine");
	if (!cJSON_IsObject(model))
		why(v, "no model");
	else if (!suite_model_counts(s, json_str(model, "sha256"), json_str(model, "architecture"),
			 json_int(model, "headSize", 0), json_bool(model, "synthetic", true)))
		why(v, "suite %s does not count this %smodel", s->name,
			json_bool(model, "synthetic", true) ? "synthetic " : "");
	if (!cJSON_IsObject(source))
		why(v, "no source");
	else {
		if (json_bool(source, "dirty", true))
			why(v, "the source tree is dirty");
		if (!suite_source_counts(s, json_str(source, "tree"), json_str(source, "origin")))
			why(v, "suite %s does not count the source %.80s", s->name,
				json_str(source, "origin") ? json_str(source, "origin") : "?");
	}
}

/* What the gates of a claim say together. */
static enum outcome
claim_outcome(const struct verdict *v, unsigned mask)
{
	enum outcome worst = OUTCOME_SKIPPED;
	bool any = false;
	int i;

	for (i = 0; i < v->gate_count; i++) {
		if ((mask & GATE_BIT(v->gates[i].id)) == 0)
			continue;
		if (!any || weight[v->gates[i].j.outcome] > weight[worst])
			worst = v->gates[i].j.outcome;
		any = true;
	}
	return worst;
}

void
verdict_decide(const cJSON *report, const struct suite *suite, bool signed_ok,
	struct verdict *v)
{
	static const unsigned masks[CLAIM_COUNT] = {
		[CLAIM_FIXTURE_PARITY] = GATE_BIT(GATE_HOST) | GATE_BIT(GATE_DEVICE) |
			GATE_BIT(GATE_FIXTURES),
		[CLAIM_LEGACY_KV_GRAPH] = GATE_BIT(GATE_HOST) | GATE_BIT(GATE_DEVICE) |
			GATE_BIT(GATE_MODEL) | GATE_BIT(GATE_BUILD) | GATE_BIT(GATE_GRAPH_SMOKE),
		[CLAIM_GEMMA_RUNTIME] = GATE_BIT(GATE_HOST) | GATE_BIT(GATE_DEVICE) |
			GATE_BIT(GATE_MTP),
	};
	static const int exits[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = EXIT_UNRECORDED,
		[OUTCOME_FAIL] = EXIT_FAIL,
		[OUTCOME_BLOCKED] = EXIT_BLOCKED,
		[OUTCOME_SKIPPED] = EXIT_UNRECORDED,
		[OUTCOME_INCOMPLETE] = EXIT_INCOMPLETE,
	};
	const struct verdict_gate *g;
	int c;

	v->why_count = 0;
	required_check(suite, v);
	evidence_check(report, suite, v);
	if (!signed_ok)
		why(v, "the report is not signed by a known key");
	if (v->disagreement[0] != '\0')
		why(v, "agent and controller disagree: %.150s", v->disagreement);
	for (c = 0; c < CLAIM_COUNT; c++)
		v->claims[c] = (suite->claims & (1u << c)) ? claim_outcome(v, masks[c])
							   : OUTCOME_SKIPPED;
	v->outcome = v->gate_count > 0 ? OUTCOME_PASS : OUTCOME_INCOMPLETE;
	v->reason = REASON_NONE;
	v->detail[0] = v->hint[0] = '\0';
	if ((g = deciding(v)) != NULL) {
		v->outcome = g->j.outcome;
		v->reason = g->j.reason;
		snprintf(v->detail, sizeof v->detail, "%s: %s", g->name, g->j.detail);
		snprintf(v->hint, sizeof v->hint, "%s", g->j.hint);
		if (v->outcome != OUTCOME_SKIPPED && v->why_count == 0)
			why(v, "%s is %s", g->name, outcome_name(v->outcome));
	}
	v->recordable = v->outcome == OUTCOME_PASS && v->why_count == 0;
	v->exit = v->recordable ? EXIT_PASS : exits[v->outcome];
}

/* ---- appraisal ---- */

struct appraisal {
	const cJSON *report;
	const struct suite *suite;
	const struct lane *lane;
	const struct verdict_logs *logs;
	struct verdict *v;
};

/* The family gate's overriding cache type: such runs carry an override and are listed as
 * "graph-smoke/CACHE". */
static const char *
override_of(const cJSON *report, const char *key)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, json_get(report, "overrides"))
		if (str_eq(json_str(o, "name"), key))
			return json_str(o, "value") ? json_str(o, "value") : "";
	return NULL;
}

static void
claimed_fill(const cJSON *row, struct verdict_gate *g)
{
	const char *reason = json_str(row, "reasonCode");

	g->claimed.outcome = (enum outcome)outcome_find(json_str(row, "outcome"));
	g->claimed.reason = reason ? (enum reason)reason_find(reason) : REASON_NONE;
	if (json_str(row, "detail") != NULL)
		snprintf(g->claimed.detail, sizeof g->claimed.detail, "%s", json_str(row, "detail"));
	if (json_str(row, "hint") != NULL)
		snprintf(g->claimed.hint, sizeof g->claimed.hint, "%s", json_str(row, "hint"));
}

/* A gate that did not run has no log; its claim is taken unless it says it passed. */
static void
judge_without_log(struct verdict_gate *g)
{
	g->j = g->claimed;
	if (judge_of(g->id) != NULL && g->claimed.outcome == OUTCOME_PASS)
		judgement_set(&g->j, REASON_LOG_MISSING, "%s claims a pass without a log", g->name);
	else if (g->claimed.outcome != OUTCOME_PASS && g->claimed.reason == REASON_NONE)
		judgement_set(&g->j, REASON_INTERNAL, "%s is %s without a reason", g->name,
			outcome_name(g->claimed.outcome));
}

static void
judge_with_log(const struct appraisal *a, const cJSON *log_row, struct verdict_gate *g)
{
	const char *name = json_str(log_row, "name"), *sha = json_str(log_row, "sha256");
	const char *slash = strchr(g->name, '/');
	struct judge_ask ask = {.lane = a->lane, .suite = a->suite,
		.family = slash ? slash + 1 : NULL,
		.min_tokens = override_of(a->report, "tokens") ? 0 : a->suite->tokens};
	char hex[DIGEST_HEX];
	struct device_facts d;
	struct err e = {0};
	char *bytes = NULL;
	size_t len = 0;

	if (override_of(a->report, "cacheTypes") != NULL && ask.family != NULL &&
	    strcmp(ask.family, "baseline") != 0)
		ask.only_cache = ask.family;
	if (name == NULL || a->logs->read(a->logs->arg, name, &bytes, &len, &e)) {
		judgement_set(&g->j, REASON_LOG_MISSING, "%s", name ? e.msg : "its log has no name");
		return;
	}
	digest_bytes(bytes, len, hex);
	if (!str_eq(hex, sha))
		judgement_set(&g->j, REASON_LOG_DIGEST, "%s: %.12s found, %.12s reported", name, hex,
			sha ? sha : "nothing");
	else
		judge_of(g->id)(bytes, len, &ask, &g->j);
	if (g->id == GATE_DEVICE && g->j.outcome == OUTCOME_PASS &&
	    device_facts_read(bytes, len, target_find(json_str(a->report, "target")), &d))
		memcpy(a->v->device_class, d.device_class, sizeof a->v->device_class);
	free(bytes);
}

static void
appraise_gate(const struct appraisal *a, const cJSON *row)
{
	struct verdict *v = a->v;
	struct verdict_gate *g = &v->gates[v->gate_count++];
	const cJSON *log = json_get(row, "log");

	memset(g, 0, sizeof *g);
	snprintf(g->name, sizeof g->name, "%s", json_str(row, "name"));
	g->id = (enum gate_id)gate_find(g->name);
	claimed_fill(row, g);
	if (cJSON_IsObject(log) && judge_of(g->id) != NULL)
		judge_with_log(a, log, g);
	else
		judge_without_log(g);
	/* The cut-off of a run is the agent's to say: the log of a gate that was in work
	 * stops somewhere. */
	if (g->claimed.outcome == OUTCOME_INCOMPLETE && g->j.outcome != OUTCOME_FAIL)
		g->j = g->claimed;
	g->disagrees = g->j.outcome != g->claimed.outcome || g->j.reason != g->claimed.reason;
	if (g->disagrees && v->disagreement[0] == '\0')
		snprintf(v->disagreement, sizeof v->disagreement,
			"%s: the agent says %s %s, its log says %s %s", g->name,
			outcome_name(g->claimed.outcome), reason_name(g->claimed.reason),
			outcome_name(g->j.outcome), reason_name(g->j.reason));
}

int
verdict_appraise(const cJSON *report, const struct suite *suite, bool signed_ok,
	const struct verdict_logs *logs, struct verdict *out, struct err *e)
{
	struct appraisal a = {.report = report, .suite = suite, .logs = logs, .v = out};
	const cJSON *g;
	const char *claimed;

	memset(out, 0, sizeof *out);
	if (report_check(report, e))
		return -1;
	if ((a.lane = lane_find(json_str(report, "lane"))) == NULL)
		return err_set(e, ERR_PARSE, "report: unknown lane \"%.40s\"",
			json_str(report, "lane"));
	cJSON_ArrayForEach(g, json_get(report, "gates"))
		appraise_gate(&a, g);
	out->claimed_recordable = json_bool(report, "passRecordable", false);
	claimed = json_path_str(report, "device.class");
	if (out->device_class[0] != '\0' && !str_eq(claimed, out->device_class) &&
	    out->disagreement[0] == '\0')
		snprintf(out->disagreement, sizeof out->disagreement,
			"device class: the agent says %.100s, its log says %.100s",
			claimed ? claimed : "nothing", out->device_class);
	verdict_decide(report, suite, signed_ok, out);
	if (out->claimed_recordable && !out->recordable && out->disagreement[0] == '\0') {
		snprintf(out->disagreement, sizeof out->disagreement,
			"the agent claims a recordable pass: %.200s", out->why_count ? out->why[0] : "?");
		why(out, "agent and controller disagree");
	}
	return 0;
}

int
verdict_worst_exit(const int *exits, size_t n)
{
	static const int order[] = {EXIT_USAGE, EXIT_FAIL, EXIT_INCOMPLETE, EXIT_UNREACHABLE,
		EXIT_REFUSED, EXIT_BLOCKED, EXIT_UNRECORDED, EXIT_PASS};
	size_t i, k;

	for (i = 0; i < str_count(order); i++)
		for (k = 0; k < n; k++)
			if (exits[k] == order[i])
				return order[i];
	return n > 0 ? EXIT_INCOMPLETE : EXIT_PASS;
}
