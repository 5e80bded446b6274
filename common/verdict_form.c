/* The form of a report: its members and the names in them. */
#include "common/verdict.h"

#include <string.h>

#include "common/json.h"
#include "common/str.h"

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

/* "host", or "graph-smoke/" and a plain name; what fits in a verdict. */
static bool
is_gate_name(const char *name)
{
	const char *slash = strchr(name, '/');
	int id = gate_find(name);

	return id >= 0 && gates[id].family == (slash != NULL) &&
		strlen(name) < sizeof ((struct verdict_gate *)0)->name &&
		(slash == NULL || (slash[1] != '\0' &&
			slash[1 + strspn(slash + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
						    "0123456789._+-")] == '\0'));
}

static int
gate_row_check(const cJSON *g, struct err *e)
{
	const char *name, *outcome, *reason;
	const cJSON *before;

	if (json_need_str(g, "name", &name, e) || json_need_str(g, "outcome", &outcome, e))
		return -1;
	if (!is_gate_name(name))
		return err_set(e, ERR_PARSE, "unknown gate \"%.64s\"", name);
	/* the first of a list is its own prev's next */
	for (before = g->prev; before->next != NULL; before = before->prev)
		if (str_eq(json_str(before, "name"), name))
			return err_set(e, ERR_PARSE, "gate %s stands twice", name);
	if (outcome_find(outcome) < 0)
		return err_set(e, ERR_PARSE, "%s.outcome is \"%.40s\", wanted pass, fail, blocked, "
			"skipped or incomplete", name, outcome);
	reason = json_str(g, "reasonCode");
	if (reason == NULL && json_get(g, "reasonCode") != NULL &&
	    !cJSON_IsNull(json_get(g, "reasonCode")))
		return err_set(e, ERR_PARSE, "%s.reasonCode is of another type", name);
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
