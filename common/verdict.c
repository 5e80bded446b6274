#include "common/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/agree.h"
#include "common/bound.h"
#include "common/control.h"
#include "common/digest.h"
#include "common/json.h"
#include "common/job.h"
#include "common/str.h"
#include "common/tool.h"
#include "common/transcript.h"

/* ---- deciding ---- */

static void
why(struct verdict *v, const char *fmt, ...) PRINTF(2, 3);

static void
why(struct verdict *v, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (v->why_count == VERDICT_MAX_WHY)
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof text, fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	str_show(v->why[v->why_count++], sizeof v->why[0], text, strlen(text));
}

static void disagree(struct verdict *v, const char *fmt, ...) PRINTF(2, 3);

/* Keeps the first: the others often follow from it. */
static void
disagree(struct verdict *v, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (v->disagreement[0] != '\0')
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof text, fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	str_show(v->disagreement, sizeof v->disagreement, text, strlen(text));
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

/* A family gate stands once for each family of the suite. */
static int
gate_rows(const struct suite *s, int id)
{
	return gates[id].family ? s->family_count : 1;
}

static void
gate_row_name(const struct suite *s, int id, int k, char name[80])
{
	snprintf(name, 80, "%s%s%s", gates[id].name, gates[id].family ? "/" : "",
		gates[id].family ? s->families[k].name : "");
}

/* Whether no family of the suite is run with the type that all are compared with. */
static bool
baseline_is_apart(const struct suite *s)
{
	int i, k;

	for (i = 0; i < s->family_count; i++)
		for (k = 0; k < s->families[i].alias_count; k++)
			if (strcmp(s->families[i].aliases[k], s->baseline) == 0)
				return false;
	return (s->required & GATE_BIT(GATE_GRAPH_SMOKE)) != 0;
}

static void
required_gate(struct verdict *v, const char *name)
{
	const struct verdict_gate *g = gate_named(v, name);

	if (g == NULL)
		why(v, "%s did not run", name);
	else if (g->j.outcome != OUTCOME_PASS)
		why(v, "%s is %s: %s", name, outcome_name(g->j.outcome), reason_name(g->j.reason));
}

/* Every gate that the suite requires and the lane has stands there and passed; of a family
 * gate, all. */
static void
required_check(const cJSON *report, const struct suite *s, struct verdict *v)
{
	const struct lane *lane = lane_find(json_str(report, "lane"));
	unsigned required = s->required & (lane != NULL ? lane->gates : ~0u);
	char name[80];
	int i, k;

	for (i = 0; i < GATE_COUNT; i++)
		for (k = 0; (required & GATE_BIT(i)) != 0 && k < gate_rows(s, i); k++) {
			gate_row_name(s, i, k, name);
			required_gate(v, name);
		}
	if (baseline_is_apart(s))
		required_gate(v, "graph-smoke/baseline");
}

/* A suite that borrows the name of one of ours would be recorded as it. */
static void
suite_check(const cJSON *r, const struct suite *s, struct verdict *v)
{
	struct suite *own = NULL;
	bool same = str_eq(json_path_str(r, "suite.digest"), s->digest);

	if (suite_builtin(s->name, &own, NULL) == 0)
		same = same && strcmp(own->digest, s->digest) == 0;
	suite_free(own);
	if (!same)
		why(v, "the suite is not the one of this version");
}

static void
evidence_check(const cJSON *r, const struct suite *s, struct verdict *v)
{
	const cJSON *o, *model = json_get(r, "model"), *source = json_get(r, "source");
	const char *emulated = json_path_str(r, "host.emulated");

	cJSON_ArrayForEach(o, json_get(r, "overrides"))
		why(v, "override %.60s from %.40s", json_str(o, "name") ? json_str(o, "name") : "?",
			json_str(o, "from") ? json_str(o, "from") : "?");
	if (emulated == NULL)
		why(v, "the host does not say whether it is emulated");
	else if (emulated[0] != '\0')
		why(v, "emulated: %.60s", emulated);
	v->simulated |= json_bool(r, "simulated", false) ||
		json_bool(json_path(r, "kernels.device"), "simulated", false);
	if (v->simulated)
		why(v, "simulated: a recording played the machine");
	if (json_bool(json_get(r, "device"), "faked", false))
		why(v, "a variable or a chip id says that the device is another: %.80s",
			json_path_str(r, "device.override") ? json_path_str(r, "device.override") : "?");
	if (json_bool(json_get(r, "device"), "software", false))
		why(v, "a software device");
	if (json_bool(json_get(r, "device"), "emulator", false))
		why(v, "an emulator, not a phone");
	if (json_bool(json_path(r, "kernels.device"), "emulated", false))
		why(v, "emulated: the fixtures ran on a device that a program plays");
	if (v->device_class[0] == '\0')
		why(v, "the device class is not known");
	suite_check(r, s, v);
	if (!cJSON_IsObject(json_get(r, "build")))
		why(v, "no build");
	else if (json_bool(json_get(r, "build"), "prebuilt", true))
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

/* What the gates of a claim say together.  A gate that is not there was not executed, and
 * of a family gate every family of the suite must be there. */
static enum outcome
claim_outcome(const struct suite *s, const struct verdict *v, unsigned mask)
{
	enum outcome worst = OUTCOME_PASS;
	char name[80];
	int i, k;

	for (i = 0; i < v->gate_count; i++)
		if ((mask & GATE_BIT(v->gates[i].id)) != 0 &&
		    weight[v->gates[i].j.outcome] > weight[worst])
			worst = v->gates[i].j.outcome;
	for (i = 0; i < GATE_COUNT && worst == OUTCOME_PASS; i++)
		for (k = 0; k < gate_rows(s, i); k++) {
			gate_row_name(s, i, k, name);
			if ((mask & GATE_BIT(i)) != 0 && gate_named(v, name) == NULL)
				worst = OUTCOME_SKIPPED;
		}
	return worst;
}

/* The control stands beside the smokes where lane and suite have one. */
static unsigned
control_bit(const cJSON *report, const struct suite *s)
{
	const struct lane *lane = lane_find(json_str(report, "lane"));

	return lane != NULL && suite_wants(s, GATE_CONTROL) ? lane->gates & GATE_BIT(GATE_CONTROL) : 0;
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
			GATE_BIT(GATE_MODEL) | GATE_BIT(GATE_BUILD) | GATE_BIT(GATE_MTP),
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
	required_check(report, suite, v);
	evidence_check(report, suite, v);
	if (!signed_ok)
		why(v, "the report is not signed by a known key");
	if (v->disagreement[0] != '\0')
		why(v, "agent and controller disagree: %.150s", v->disagreement);
	for (c = 0; c < CLAIM_COUNT; c++)
		v->claims[c] = (suite->claims & (1u << c)) ? claim_outcome(suite, v, masks[c] |
			(c == CLAIM_LEGACY_KV_GRAPH ? control_bit(report, suite) : 0))
							   : OUTCOME_SKIPPED;
	/* a suite may require less than it claims */
	for (c = 0; c < CLAIM_COUNT; c++)
		if ((suite->claims & (1u << c)) && v->claims[c] != OUTCOME_PASS && v->why_count == 0)
			why(v, "claim %s is %s", claim_name((enum claim)c), outcome_name(v->claims[c]));
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
	struct device_facts device; /* of the device gate; no UUID: not known */
	struct smoke_facts *smoke;  /* of the graph smoke that was judged last; owned */
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
		str_show(g->claimed.detail, sizeof g->claimed.detail, json_str(row, "detail"),
			strlen(json_str(row, "detail")));
	if (json_str(row, "hint") != NULL)
		str_show(g->claimed.hint, sizeof g->claimed.hint, json_str(row, "hint"),
			strlen(json_str(row, "hint")));
}

/* A gate that did not run has no log; its claim is taken unless it says it passed, or
 * does not agree with itself. */
static void
judge_without_log(struct verdict_gate *g)
{
	g->j = g->claimed;
	if (g->claimed.outcome == OUTCOME_PASS && judge_of(g->id) == NULL)
		judgement_set(&g->j, REASON_LOG_MISSING,
			"%s claims a pass that this version can not check", g->name);
	else if (g->claimed.outcome == OUTCOME_PASS)
		judgement_set(&g->j, REASON_LOG_MISSING, "%s claims a pass without a log", g->name);
	else if (reason_outcome(g->claimed.reason) != g->claimed.outcome)
		judgement_set(&g->j, REASON_INTERNAL, "%s is %s with the reason %s", g->name,
			outcome_name(g->claimed.outcome), reason_name(g->claimed.reason));
}

/* ---- what report and logs both say ---- */

/* Members of the report that repeat a fact of a gate's log. */
static const struct {
	enum gate_id gate;
	const char *path, *fact;
} echoes[] = {
	{GATE_HOST, "host.os", "os"},
	{GATE_HOST, "host.arch", "arch"},
	{GATE_HOST, "host.virtualisation", "virtualisation"},
	{GATE_HOST, "host.emulated", "emulated"},
	{GATE_MODEL, "model.path", "path"},
	{GATE_MODEL, "model.sha256", "sha256"},
	{GATE_MODEL, "model.architecture", "architecture"},
	{GATE_MODEL, "model.headSize", "headSizeK"},
	{GATE_MODEL, "model.synthetic", "synthetic"},
	{GATE_SOURCE, "source.tree", "tree"},
	{GATE_SOURCE, "source.origin", "origin"},
	{GATE_SOURCE, "source.dirty", "dirty"},
};

static void
value_text(const cJSON *v, char *out, size_t size)
{
	const char *text = cJSON_GetStringValue(v);

	if (cJSON_IsBool(v))
		text = cJSON_IsTrue(v) ? "true" : "false";
	if (text != NULL)
		str_show(out, size, text, strlen(text));
	else if (cJSON_IsNumber(v))
		snprintf(out, size, "%.17g", v->valuedouble);
	else
		out[0] = '\0';
}

static void
echoes_check(const struct appraisal *a, const struct verdict_gate *g, const char *log,
	size_t len)
{
	char raw[8192], found[8192], said[8192];
	size_t i;

	for (i = 0; i < str_count(echoes); i++) {
		if (echoes[i].gate != g->id)
			continue;
		if (!log_fact(log, len, echoes[i].fact, raw, sizeof raw))
			raw[0] = '\0';
		str_show(found, sizeof found, raw, strlen(raw));
		value_text(json_path(a->report, echoes[i].path), said, sizeof said);
		if (strcmp(found, said) != 0)
			disagree(a->v, "%s: the agent says \"%.100s\", its log says \"%.100s\"",
				echoes[i].path, said, found);
	}
}

/* Members of the report that repeat a part of the harness's JSON, word for word. */
static const struct {
	const char *path, *part;
} fixture_echoes[] = {
	{"kernels.backend", "backend"},
	{"kernels.device", "device"},
	{"kernels.code", "code"},
	{"fixtures", "checks"},
	{"controls", "controls"},
};

/* Texts are compared: what both have read from the same bytes prints alike, and it takes
 * no longer than printing.  What is told begins shortly before the first difference. */
static void
part_check(const struct appraisal *a, const char *path, const cJSON *part)
{
	const cJSON *said = json_path(a->report, path);
	char *ours = part ? json_text(part, false) : NULL;
	char *theirs = said ? json_text(said, false) : NULL;
	const char *x = ours ? ours : "nothing", *y = theirs ? theirs : "nothing";
	size_t i = 0;

	while (x[i] != '\0' && x[i] == y[i])
		i++;
	if (x[i] != y[i]) {
		i = i > 30 ? i - 30 : 0;
		disagree(a->v, "%s: the agent says %.100s, its log says %.100s", path, y + i, x + i);
	}
	free(ours);
	free(theirs);
}

static void
fixtures_check(const struct appraisal *a, const char *log, size_t len)
{
	cJSON *o = fixtures_read(log, len);
	size_t i;

	for (i = 0; i < str_count(fixture_echoes); i++)
		part_check(a, fixture_echoes[i].path, json_get(o, fixture_echoes[i].part));
	cJSON_Delete(o);
}

/* The target must be the one that the lane has on that host. */
static void
target_check(const struct appraisal *a, const char *log, size_t len)
{
	const char *said = json_str(a->report, "target");
	const struct target *t;
	struct host_facts h;

	if (!host_facts_read(log, len, &h))
		return;
	t = lane_target(a->lane, h.os, h.arch);
	if (t == NULL || !str_eq(t->name, said))
		disagree(a->v, "target: the agent says %.60s, its host is %.20s on %.20s",
			said ? said : "nothing", h.os, h.arch);
}

/* The argv of the engine run that counts; freed with cJSON_Delete. */
static cJSON *
smoke_argv(const char *log, size_t len)
{
	struct section s;
	size_t pos = 0;
	cJSON *o = NULL;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0 && strstr(s.head, "--cache-type-k") != NULL) {
			cJSON_Delete(o);
			o = NULL;
			if (json_parse(s.head, strlen(s.head), 1u << 20, &o, NULL))
				o = NULL;
		}
		section_fini(&s);
	}
	return o;
}

/* The last word after the option, NULL when there is none. */
static const char *
word_after(const cJSON *argv, const char *option)
{
	const cJSON *v;
	const char *found = NULL;

	cJSON_ArrayForEach(v, argv)
		if (v->next != NULL && str_eq(cJSON_GetStringValue(v), option))
			found = cJSON_GetStringValue(v->next);
	return found;
}

/* A run that was not what the suite asks must say so in overrides[]. */
static void
smoke_check(const struct appraisal *a, const struct verdict_gate *g, const char *log,
	size_t len)
{
	const struct suite *s = a->suite;
	char ngl[24], seed[24];
	cJSON *head = smoke_argv(log, len);
	const cJSON *argv = json_get(head, "argv");
	const char *program = cJSON_GetStringValue(cJSON_GetArrayItem(argv, 0)), *word;
	const struct {
		const char *option, *wanted, *override;
	} rows[] = {
		{"-p", s->prompt, "prompt"},
		{"-ngl", ngl, "ngl"},
		{"--seed", seed, NULL},
		{"-m", json_path_str(a->report, "model.path"), NULL},
	};
	size_t i;

	snprintf(ngl, sizeof ngl, "%lld", (long long)s->ngl);
	snprintf(seed, sizeof seed, "%lld", (long long)s->seed);
	for (i = 0; i < str_count(rows); i++) {
		word = word_after(argv, rows[i].option);
		if ((rows[i].override == NULL || override_of(a->report, rows[i].override) == NULL) &&
		    !str_eq(word, rows[i].wanted))
			disagree(a->v, "%s: %s was \"%.60s\", wanted \"%.60s\", and no override says so",
				g->name, rows[i].option, word ? word : "", rows[i].wanted ? rows[i].wanted : "");
	}
	if (program != NULL)
		program = str_base(program);
	if (override_of(a->report, "driver") == NULL && !str_eq(program, s->driver))
		disagree(a->v, "%s: the driver was %.60s, wanted %.60s, and no override says so",
			g->name, program ? program : "nothing", s->driver);
	cJSON_Delete(head);
}

/* The report's device is that of the log, and so is what keeps it from being recorded. */
static void
device_check(struct appraisal *a, const struct device_facts *d)
{
	const struct {
		const char *path, *fact;
	} rows[] = {{"device.uuid", d->uuid}, {"device.pci", d->pci}};
	const struct {
		const char *path;
		bool fact;
	} flags[] = {{"device.software", d->software}, {"device.faked", d->faked}, {"device.emulator", d->emulator}};
	const char *said;
	size_t i;

	a->device = *d;
	a->v->simulated |= d->simulated;
	if (a->lane->api == API_CPU)
		return;
	for (i = 0; i < str_count(rows); i++) {
		said = json_path_str(a->report, rows[i].path);
		if (!str_eq(said ? said : "", rows[i].fact))
			disagree(a->v, "%s: the agent says %.60s, its log says %.60s", rows[i].path,
				said ? said : "nothing", rows[i].fact[0] ? rows[i].fact : "nothing");
	}
	for (i = 0; i < str_count(flags); i++)
		if (cJSON_IsTrue(json_path(a->report, flags[i].path)) != flags[i].fact)
			disagree(a->v, "%s: the agent does not say what its log says", flags[i].path);
}

/* A gate's own look at the device, and what its program says of it, name one device. */
static void
bound_check(struct appraisal *a, struct verdict_gate *g, const char *log, size_t len)
{
	struct judgement out;
	struct bound b;

	if (bound_judge(log, len, a->lane, &b, &out) != REASON_NONE) {
		g->j = out;
		return;
	}
	a->v->simulated |= b.simulated;
	if (a->device.uuid[0] == '\0')
		judgement_set(&g->j, REASON_DEVICE_CHANGED, "the device gate names no device");
	/* slices of a card have its place in common */
	else if (!agree_same_id(a->device.uuid, b.uuid) &&
		 (str_starts(b.uuid, "MIG-") || strcmp(a->device.pci, b.pci) != 0))
		judgement_set(&g->j, REASON_DEVICE_CHANGED, "it ran on %.60s, the device is %.60s", b.uuid,
			a->device.uuid);
	else if (a->device.pci[0] && b.pci[0] && strcmp(a->device.pci, b.pci) != 0)
		judgement_set(&g->j, REASON_DEVICE_CHANGED, "it ran at %.30s, the device is at %.30s", b.pci,
			a->device.pci);
	else if (!str_eq(json_path_str(a->report, "agent.bootId"), b.boot_id))
		judgement_set(&g->j, REASON_DEVICE_CHANGED, "the host was started anew");
}

/* What the engine and the harness call the device they used is that of the device gate. */
static void
named_check(struct appraisal *a, struct verdict_gate *g, const char *log, size_t len)
{
	cJSON *o = NULL;
	char pci[32] = "", other[32];
	const char *said = NULL;

	if (g->id == GATE_GRAPH_SMOKE)
		said = a->smoke->elog.device_pci;
	if (g->id == GATE_CONTROL && control_elsewhere(log, len, a->suite->baseline, a->device.pci, other))
		said = other;
	if (g->id == GATE_FIXTURES && (o = fixtures_read(log, len)) != NULL)
		said = json_path_str(o, "device.pci");
	if (said != NULL && tool_pci(said, pci) && a->device.pci[0] != '\0' && strcmp(pci, a->device.pci) != 0)
		judgement_set(&g->j, REASON_DEVICE_CHANGED, "it says that it ran at %.30s, the device is at %.30s", pci,
			a->device.pci);
	cJSON_Delete(o);
}

/* Of a log whose gate passed: what the report takes from it must be in it. */
static void
passed_check(struct appraisal *a, struct verdict_gate *g, const char *log,
	size_t len)
{
	struct device_facts d;
	char text[320];

	echoes_check(a, g, log, len);
	if (g->id == GATE_HOST)
		target_check(a, log, len);
	if (g->id == GATE_GRAPH_SMOKE)
		smoke_check(a, g, log, len);
	if (g->id == GATE_CONTROL && control_differs(a->report, a->suite, g->name, log, len, text, sizeof text))
		disagree(a->v, "%s: %s", g->name, text);
	if (g->id == GATE_FIXTURES)
		fixtures_check(a, log, len);
	if (g->id == GATE_DEVICE &&
	    device_facts_read(log, len, a->lane, target_find(json_str(a->report, "target")), &d)) {
		memcpy(a->v->device_class, d.device_class, sizeof a->v->device_class);
		device_check(a, &d);
	}
	if (bound_gate(a->lane, g->id)) {
		bound_check(a, g, log, len);
		if (g->j.outcome == OUTCOME_PASS)
			named_check(a, g, log, len);
	}
}

/* The log's first line carries the boundary, which comes from the nonce of the job. */
static bool
is_of_job(const struct appraisal *a, const char *log, size_t len)
{
	static const char mark[] = "#verify ";
	const char *nonce = json_str(a->report, "nonce");

	return strlen(nonce) >= TRANSCRIPT_BOUNDARY &&
		len > sizeof mark - 1 + TRANSCRIPT_BOUNDARY &&
		memcmp(log, mark, sizeof mark - 1) == 0 &&
		memcmp(log + sizeof mark - 1, nonce, TRANSCRIPT_BOUNDARY) == 0;
}

static void
judge_with_log(struct appraisal *a, const cJSON *log_row, struct verdict_gate *g)
{
	const char *name = json_str(log_row, "name"), *sha = json_str(log_row, "sha256");
	const char *slash = strchr(g->name, '/');
	struct judge_ask ask = {.lane = a->lane, .suite = a->suite, .smoke = a->smoke,
		.family = slash ? slash + 1 : NULL,
		.min_tokens = override_of(a->report, "tokens") ? 0 : a->suite->tokens};
	char hex[DIGEST_HEX];
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
	else if (len > 0 && !is_of_job(a, bytes, len))
		judgement_set(&g->j, REASON_LOG_FOREIGN, "%s was written for another job", name);
	else
		judge_gate(g->id, bytes, len, &ask, &g->j);
	a->v->simulated |= agree_simulated(bytes, len);
	if (g->j.outcome == OUTCOME_PASS)
		passed_check(a, g, bytes, len);
	free(bytes);
}

static void
appraise_gate(struct appraisal *a, const cJSON *row)
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
	if (g->claimed.outcome == OUTCOME_INCOMPLETE && g->j.outcome != OUTCOME_FAIL &&
	    reason_outcome(g->claimed.reason) == OUTCOME_INCOMPLETE)
		g->j = g->claimed;
	g->disagrees = g->j.outcome != g->claimed.outcome || g->j.reason != g->claimed.reason;
	if (g->disagrees)
		disagree(v, "%s: the agent says %s %s, its log says %s %s", g->name,
			outcome_name(g->claimed.outcome), reason_name(g->claimed.reason),
			outcome_name(g->j.outcome), reason_name(g->j.reason));
}

/* What the agent says of the whole: a claim that differs from ours, either way, means that
 * one of us saw what the other did not. */
static void
sums_check(const cJSON *report, struct verdict *v)
{
	const char *outcome = json_str(report, "outcome"), *status = json_str(report, "status");
	bool known = v->disagreement[0] != '\0';

	if (!str_eq(outcome, outcome_name(v->outcome)))
		disagree(v, "outcome: the agent says %.40s, its logs say %s", outcome,
			outcome_name(v->outcome));
	if (!str_eq(status, strcmp(outcome, "pass") == 0 ? "pass" : "fail"))
		disagree(v, "status: the agent says %.40s with the outcome %.40s", status, outcome);
	if (v->claimed_recordable && !v->recordable)
		disagree(v, "the agent claims a recordable pass: %.200s",
			v->why_count > 0 ? v->why[0] : "?");
	else if (!v->claimed_recordable && v->recordable)
		disagree(v, "the agent does not claim a recordable pass, its logs show one");
	if (known || v->disagreement[0] == '\0')
		return;
	why(v, "agent and controller disagree: %.150s", v->disagreement);
	v->recordable = false;
	v->exit = v->exit == EXIT_PASS ? EXIT_UNRECORDED : v->exit;
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
	if ((a.smoke = calloc(1, sizeof *a.smoke)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to judge a report");
	cJSON_ArrayForEach(g, json_get(report, "gates"))
		appraise_gate(&a, g);
	free(a.smoke);
	out->claimed_recordable = json_bool(report, "passRecordable", false);
	claimed = json_path_str(report, "device.class");
	if (out->device_class[0] != '\0' && !str_eq(claimed, out->device_class))
		disagree(out, "device class: the agent says %.100s, its log says %.100s",
			claimed ? claimed : "nothing", out->device_class);
	verdict_decide(report, suite, signed_ok, out);
	sums_check(report, out);
	return 0;
}

static void
hold(struct verdict *v, const char *what, const char *name)
{
	if (v->recordable)
		disagree(v, "the job %s %.40s, its report does not say so", what, name);
	v->recordable = false;
}

void
verdict_hold(struct verdict *v, const cJSON *report, const struct job *job)
{
	const char *digest = json_str(report, "jobDigest");
	int i;

	if (!v->recordable)
		return;
	for (i = 0; i < OVERRIDE_COUNT; i++)
		if (job->override[i] != NULL)
			hold(v, "overrides", overrides[i].key);
	if (job->only != ONLY_ALL)
		hold(v, "asks for only", only_name(job->only));
	if (job->prebuilt != NULL)
		hold(v, "names", "a prebuilt engine");
	if (digest != NULL && strcmp(digest, job->digest) != 0)
		hold(v, "has the digest", job->digest);
	if (v->recordable)
		return;
	why(v, "agent and controller disagree: %.150s", v->disagreement);
	v->exit = EXIT_UNRECORDED;
}
