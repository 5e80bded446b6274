#include "controller/result.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

/* ---- words ---- */

const char *
result_word(const struct ledger_run *r)
{
	static const struct {
		const char *outcome, *word;
	} words[] = {
		{"fail", "FAIL"}, {"blocked", "BLOCKED"}, {"skipped", "SKIPPED"},
		{"incomplete", "INCOMPLETE"},
	};
	size_t i;

	if (r->recordable)
		return "RECORDABLE PASS";
	for (i = 0; i < str_count(words); i++)
		if (str_eq(words[i].outcome, r->outcome))
			return words[i].word;
	return "PASS, NOT RECORDABLE";
}

static bool
has(const char *s)
{
	return s != NULL && s[0] != '\0';
}

void
result_line(const struct ledger_run *r, char *out, size_t size)
{
	char text[1024];
	const char *why = str_eq(r->outcome, "pass") ? r->not_recordable : r->detail;

	snprintf(text, sizeof text, "%s%s%s%s%s", result_word(r),
		str_eq(r->outcome, "pass") ? "" : " ",
		str_eq(r->outcome, "pass") ? "" : r->reason,
		!r->recordable && has(why) ? ": " : "",
		!r->recordable && has(why) ? why : "");
	str_show(out, size, text, strlen(text));
}

void
result_time(int64_t ms, char *out, size_t size)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	if (ms < 0 || localtime_r(&s, &tm) == NULL ||
	    strftime(out, size, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(out, size, "-");
}

void
result_short(struct ledger *l, const char *run_id, char out[LEDGER_RUN_ID + 1])
{
	char full[LEDGER_RUN_ID + 1];
	size_t n;

	for (n = RESULT_ID_MIN; n < LEDGER_RUN_ID; n++) {
		snprintf(out, n + 1, "%s", run_id);
		if (ledger_find(l, out, full, NULL) == 0)
			return;
	}
	snprintf(out, LEDGER_RUN_ID + 1, "%s", run_id);
}

/* ---- for people ---- */

/* One line of text from the ledger, cleaned. */
static void
line(FILE *out, const char *head, const char *text)
{
	char shown[1200];

	str_show(shown, sizeof shown, text, strlen(text));
	fprintf(out, "%s%s\n", head, shown);
}

static void
coloured(FILE *out, bool colour, const char *sgr, const char *text)
{
	if (colour && sgr[0] != '\0')
		fprintf(out, "\033[%sm%s\033[0m", sgr, text);
	else
		fputs(text, out);
}

/* *hinted is the hint that was printed last: one that follows itself is not repeated. */
static void
print_gate(FILE *out, const struct ledger_gate *g, const struct progress_look *look,
	const char **hinted)
{
	const char *sgr = progress_colour(g->outcome);
	char took[32] = "", text[160];
	bool pass = str_eq(g->outcome, "pass");

	if (g->started_ms >= 0 && g->finished_ms >= g->started_ms)
		progress_duration(g->finished_ms - g->started_ms, took, sizeof took);
	fputs("  ", out);
	coloured(out, look->colour, sgr, progress_sign(g->outcome, look->utf8));
	str_show(text, sizeof text, g->name, strlen(g->name));
	fprintf(out, " %-24s %8s  ", text, took);
	if (pass) {
		line(out, "", g->detail);
		return;
	}
	snprintf(text, sizeof text, "%s %s", g->outcome, g->reason);
	coloured(out, look->colour, sgr, text);
	/* Nothing to do about these: one line is enough. */
	if (str_eq(g->outcome, "skipped") ||
	    str_eq(g->reason, reason_name(REASON_DEPENDS))) {
		line(out, has(g->detail) ? ": " : "", g->detail);
		return;
	}
	putc('\n', out);
	if (has(g->detail))
		line(out, "      ", g->detail);
	if (has(g->hint) && !str_eq(g->hint, *hinted))
		line(out, "      hint: ", g->hint);
	*hinted = g->hint;
}

static void
print_smokes(FILE *out, const struct ledger_run *r)
{
	const struct ledger_smoke *s;
	char text[160], tokens[24];
	size_t ran = 0;

	/* A smoke that did not run has a gate that says so, and no numbers. */
	for (s = r->smokes; s < r->smokes + r->smoke_count; s++)
		ran += has(s->cache_asked);
	if (ran == 0)
		return;
	fprintf(out, "\n  %-16s %-10s %-10s %-10s %9s  %s\n", "family", "asked", "applied",
		"kv device", "tokens", "distance from baseline");
	for (s = r->smokes; s < r->smokes + r->smoke_count; s++) {
		if (!has(s->cache_asked))
			continue;
		if (s->tokens_generated < 0)
			snprintf(tokens, sizeof tokens, "?");
		else
			snprintf(tokens, sizeof tokens, "%lld", (long long)s->tokens_generated);
		snprintf(text, sizeof text, "  %-16s %-10s %-10s %-10s %4s/%-4lld", s->family,
			s->cache_asked,
			has(s->cache_applied) ? s->cache_applied : "-",
			has(s->kv_device) ? s->kv_device : "-", tokens,
			(long long)s->tokens_asked);
		str_show(text, sizeof text, text, strlen(text));
		if (s->distance == s->distance)
			fprintf(out, "%s  %.3f\n", text, s->distance);
		else
			fprintf(out, "%s  -\n", text);
	}
}

static void
print_fact(FILE *out, const char *name, const char *fmt, ...) PRINTF(3, 4);

static void
print_fact(FILE *out, const char *name, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(out, "%-10s", name);
	line(out, "", text);
}

static void
print_facts(FILE *out, struct ledger *l, const struct ledger_run *r)
{
	const struct ledger_code *c;
	char id[LEDGER_RUN_ID + 1], when[32];

	result_short(l, r->run_id, id);
	result_time(r->started_ms, when, sizeof when);
	print_fact(out, "run", "%s on %s, %s", id, r->host, when);
	print_fact(out, "class", "%s", has(r->device_class) ? r->device_class : "unknown");
	print_fact(out, "suite", "%s, lane %s", r->suite, r->lane);
	if (has(r->source_tree))
		print_fact(out, "source", "%s tree %.12s%s%.12s%s", r->source_origin,
			r->source_tree, has(r->source_commit) ? " commit " : "",
			r->source_commit, has(r->source_dirty) ? ", dirty" : "");
	if (has(r->model_sha256))
		print_fact(out, "model", "%s sha256 %.12s%s", r->model_name, r->model_sha256,
			r->model_synthetic ? ", synthetic" : "");
	for (c = r->code; c < r->code + r->code_count; c++)
		print_fact(out, c == r->code ? "kernels" : "", "%s on %s: %s sha256 %.12s%s%s",
			c->backend, has(c->arch) ? c->arch : "?", c->name, c->digest,
			has(c->how) ? ", " : "", c->how);
	print_fact(out, "agent", "%s, key %.12s", r->agent_version, r->agent_key);
	print_fact(out, "evidence", "%zu files in %s; verify-controller logs %s",
		r->artifact_count, ledger_blobs(l), id);
}

int
result_print(FILE *out, struct ledger *l, const struct ledger_run *r,
	const struct progress_look *look, bool after_list, struct err *e)
{
	const char *hinted = NULL;
	char text[1024];
	size_t i;

	result_line(r, text, sizeof text);
	coloured(out, look->colour, r->recordable ? "32;1" : str_eq(r->outcome, "pass") ? "33" :
		progress_colour(r->outcome), text);
	fputs("\n", out);
	if (has(r->disagreement))
		line(out, "DISAGREEMENT: ", r->disagreement);
	putc('\n', out);
	for (i = 0; i < r->gate_count; i++)
		if (!after_list || !str_eq(r->gates[i].outcome, "pass"))
			print_gate(out, &r->gates[i], look, &hinted);
	print_smokes(out, r);
	putc('\n', out);
	print_facts(out, l, r);
	if (ferror(out))
		return err_set(e, ERR_IO, "cannot write the result");
	return 0;
}

/* ---- for scripts ---- */

static bool
add(cJSON *o, const char *key, const char *s)
{
	return json_add_str(o, key, has(s) ? s : NULL);
}

static bool
add_known(cJSON *o, const char *key, int64_t v)
{
	return v < 0 ? json_add_null(o, key) : json_add_int(o, key, v);
}

static bool
add_when(cJSON *o, const char *key, int64_t ms)
{
	char text[24];

	if (ms < 0)
		return json_add_null(o, key);
	plat_utc(ms, text);
	return json_add_str(o, key, text);
}

static cJSON *
push(cJSON *list)
{
	cJSON *o = list ? cJSON_CreateObject() : NULL;

	if (o != NULL && !cJSON_AddItemToArray(list, o)) {
		cJSON_Delete(o);
		return NULL;
	}
	return o;
}

static bool
add_gates(cJSON *o, const struct ledger_run *r)
{
	cJSON *list = json_add_array(o, "gates"), *g;
	const struct ledger_gate *row;

	for (row = r->gates; list && row < r->gates + r->gate_count; row++)
		if ((g = push(list)) == NULL || !add(g, "name", row->name) ||
		    !add(g, "outcome", row->outcome) || !add(g, "reasonCode", row->reason) ||
		    !add(g, "detail", row->detail) || !add(g, "hint", row->hint) ||
		    !add_when(g, "startedAt", row->started_ms) ||
		    !add_when(g, "finishedAt", row->finished_ms) ||
		    !add(g, "logSha256", row->log_digest))
			return false;
	return list != NULL;
}

static bool
add_fixtures(cJSON *o, const struct ledger_run *r)
{
	cJSON *list = json_add_array(o, "fixtures"), *f;
	const struct ledger_fixture *row;

	for (row = r->fixtures; list && row < r->fixtures + r->fixture_count; row++)
		if ((f = push(list)) == NULL || !add(f, "name", row->name) ||
		    !add(f, "sha256", row->digest) ||
		    !add_known(f, "elements", row->elements) ||
		    !json_add_num(f, "maxAbsDiff", row->max_abs) ||
		    !json_add_num(f, "maxRelDiff", row->max_rel) ||
		    !json_add_num(f, "nmse", row->nmse) ||
		    !add_known(f, "nonFinite", row->non_finite) ||
		    !json_add_num(f, "tolerance", row->tolerance) ||
		    !add(f, "outcome", row->outcome))
			return false;
	return list != NULL;
}

static bool
add_code(cJSON *o, const struct ledger_run *r)
{
	cJSON *list = json_add_array(o, "code"), *c;
	const struct ledger_code *row;

	for (row = r->code; list && row < r->code + r->code_count; row++)
		if ((c = push(list)) == NULL || !add(c, "backend", row->backend) ||
		    !add(c, "device", row->device) || !add(c, "arch", row->arch) ||
		    !add(c, "name", row->name) || !add(c, "sha256", row->digest) ||
		    !add(c, "how", row->how))
			return false;
	return list != NULL;
}

static bool
add_smokes(cJSON *o, const struct ledger_run *r)
{
	cJSON *list = json_add_array(o, "smokes"), *s;
	const struct ledger_smoke *row;

	for (row = r->smokes; list && row < r->smokes + r->smoke_count; row++)
		if ((s = push(list)) == NULL || !add(s, "family", row->family) ||
		    !add(s, "cacheAsked", row->cache_asked) ||
		    !add(s, "cacheApplied", row->cache_applied) ||
		    !add(s, "driver", row->driver) || !add(s, "kvDevice", row->kv_device) ||
		    !add_known(s, "tokensAsked", row->tokens_asked) ||
		    !add_known(s, "tokensGenerated", row->tokens_generated) ||
		    !add(s, "outputSha256", row->output_digest) ||
		    !json_add_num(s, "distance", row->distance) ||
		    !add(s, "outcome", row->outcome) || !add(s, "reasonCode", row->reason))
			return false;
	return list != NULL;
}

static bool
add_artifacts(cJSON *o, const struct ledger_run *r)
{
	cJSON *list = json_add_array(o, "artifacts"), *a;
	const struct ledger_artifact *row;

	for (row = r->artifacts; list && row < r->artifacts + r->artifact_count; row++)
		if ((a = push(list)) == NULL || !add(a, "name", row->name) ||
		    !add_known(a, "bytes", row->bytes) || !add(a, "sha256", row->sha256) ||
		    !json_add_bool(a, "truncated", row->truncated))
			return false;
	return list != NULL;
}

static bool
add_claims(cJSON *o, const struct ledger_run *r)
{
	cJSON *claims = json_add_object(o, "claims");
	int i;

	for (i = 0; claims && i < CLAIM_COUNT; i++)
		if (!add(claims, claim_name((enum claim)i), r->claims[i].outcome))
			return false;
	return claims != NULL;
}

static bool
add_parts(cJSON *o, const struct ledger_run *r)
{
	cJSON *source = json_add_object(o, "source"), *model = json_add_object(o, "model");
	cJSON *device = json_add_object(o, "device"), *agent = json_add_object(o, "agent");

	return source && model && device && agent &&
		add(source, "origin", r->source_origin) &&
		add(source, "commit", r->source_commit) && add(source, "tree", r->source_tree) &&
		add(source, "dirtyDigest", r->source_dirty) && add(model, "name", r->model_name) &&
		add(model, "sha256", r->model_sha256) &&
		add_known(model, "bytes", r->model_bytes) &&
		json_add_bool(model, "synthetic", r->model_synthetic) &&
		add(device, "class", r->device_class) && add(device, "name", r->device_name) &&
		add(device, "driver", r->device_driver) && add(device, "uuid", r->device_uuid) &&
		add(agent, "version", r->agent_version) && add(agent, "keyId", r->agent_key);
}

static bool
add_head(cJSON *o, const struct ledger_run *r)
{
	return json_add_str(o, "type", "result") && add(o, "run", r->run_id) &&
		add(o, "host", r->host) && add(o, "outcome", r->outcome) &&
		add(o, "reasonCode", r->reason) && add(o, "detail", r->detail) &&
		json_add_bool(o, "recordable", r->recordable) &&
		add(o, "notRecordable", r->not_recordable) &&
		json_add_bool(o, "agentRecordable", r->agent_recordable) &&
		add(o, "disagreement", r->disagreement) &&
		add_known(o, "exitCode", r->exit_code) && add(o, "deviceClass", r->device_class) &&
		add(o, "lane", r->lane) && add(o, "target", r->target) &&
		add(o, "suite", r->suite) && add(o, "suiteDigest", r->suite_digest) &&
		add_when(o, "startedAt", r->started_ms) &&
		add_when(o, "finishedAt", r->finished_ms) &&
		add_when(o, "appendedAt", r->appended_ms) && add_known(o, "seq", r->seq) &&
		add(o, "envelopeSha256", r->envelope_digest) &&
		add(o, "reportSha256", r->report_digest) &&
		add(o, "controllerVersion", r->controller_version);
}

cJSON *
result_json(const struct ledger_run *r)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && add_head(o, r) && add_claims(o, r) && add_parts(o, r) &&
	    add_gates(o, r) && add_fixtures(o, r) && add_code(o, r) && add_smokes(o, r) &&
	    add_artifacts(o, r))
		return o;
	cJSON_Delete(o);
	return NULL;
}
