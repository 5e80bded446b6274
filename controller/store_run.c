#include "controller/store_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/blob.h"

#define PATH_SIZE 4096
#define LOG_MAX (512u << 20)   /* bytes of a log that is read again */
#define OUTPUT_MAX (64u << 20) /* bytes of an output that is compared */

/* A run on its way into the ledger; everything that its row borrows lives here. */
struct storing {
	const char *host, *folder;
	const struct job *job;
	const struct pulled *pulled;
	const cJSON *report;
	struct verdict v;
	struct smoke_facts facts[VERDICT_MAX_GATES]; /* of smokes, by gate */
	struct ledger_gate gates[VERDICT_MAX_GATES];
	struct ledger_smoke smokes[VERDICT_MAX_GATES];
	size_t smoke_count;
	cJSON *checks;                     /* the harness's JSON out of its log */
	struct ledger_fixture *fixtures;
	struct ledger_artifact *artifacts;
	struct ledger_code *code;
	struct buf why;
	struct ledger_run run;
};

static void
storing_free(struct storing *s)
{
	if (s == NULL)
		return;
	cJSON_Delete(s->checks);
	free(s->fixtures);
	free(s->artifacts);
	free(s->code);
	buf_fini(&s->why);
	free(s);
}

/* ---- words that a table takes ---- */

/* Fixed-size texts may have been cut in the middle of a character. */
static const char *
whole(char *text)
{
	size_t n = strlen(text), i;

	for (i = 0; i < 3 && n > 0 && !str_is_utf8(text, n); i++)
		text[--n] = '\0';
	str_show(text, n + 1, text, n);
	return text;
}

static const char *
or_unknown(const char *s)
{
	return s != NULL && s[0] != '\0' ? s : "unknown";
}

static const char *
base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* ---- the logs that were pulled ---- */

static int
read_pulled(const struct storing *s, const char *name, size_t max, char **out,
	size_t *len, struct err *e)
{
	char path[PATH_SIZE];

	if (!pull_name_ok(name))
		return err_set(e, ERR_NOTFOUND, "\"%.60s\" is no name of a log", name);
	return str_fmt(path, sizeof path, e, "%s/%s", s->folder, name) ||
		plat_read_file(path, max, out, len, e) ? -1 : 0;
}

static int
read_log(void *arg, const char *name, char **out, size_t *len, struct err *e)
{
	return read_pulled(arg, name, LOG_MAX, out, len, e);
}

/* The report's row of a gate: same order as the appraised gates. */
static const cJSON *
gate_row(const struct storing *s, int i)
{
	return cJSON_GetArrayItem(json_get(s->report, "gates"), i);
}

/* The bytes of a gate's log; NULL when there are none. */
static char *
gate_log(const struct storing *s, int i, size_t *len)
{
	const char *name = json_path_str(gate_row(s, i), "log.name");
	char *text = NULL;

	if (name == NULL || read_pulled(s, name, LOG_MAX, &text, len, NULL))
		return NULL;
	return text;
}

static const cJSON *
artifact_row(const struct storing *s, const char *name)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, json_get(s->report, "artifacts"))
		if (str_eq(json_str(row, "name"), name))
			return row;
	return NULL;
}

/* ---- gates ---- */

static int64_t
time_of(const cJSON *o, const char *key)
{
	const char *text = json_str(o, key);

	return text ? plat_utc_parse(text) : -1;
}

/* Dates have whole seconds; the agent's stop-watch has milliseconds. */
static int64_t
end_of(const cJSON *gate)
{
	int64_t from = time_of(gate, "startedAt"), to = time_of(gate, "finishedAt");
	int64_t ms = json_int(gate, "ms", -1);

	if (from < 0 || to < 0 || ms < 0 || from + ms > to + 1000 || from + ms < to - 1000)
		return to;
	return from + ms;
}

static void
fill_gates(struct storing *s)
{
	struct verdict_gate *g;
	struct ledger_gate *row;
	const cJSON *claimed;
	const char *slash;
	int i;

	for (i = 0; i < s->v.gate_count; i++) {
		g = &s->v.gates[i];
		row = &s->gates[i];
		claimed = gate_row(s, i);
		slash = strchr(g->name, '/');
		row->name = whole(g->name);
		row->family = slash ? slash + 1 : NULL;
		row->outcome = outcome_name(g->j.outcome);
		row->reason = reason_name(g->j.reason);
		row->detail = whole(g->j.detail);
		row->hint = whole(g->j.hint);
		row->started_ms = time_of(claimed, "startedAt");
		row->finished_ms = end_of(claimed);
		row->log_digest = json_path_str(claimed, "log.sha256");
	}
	s->run.gates = s->gates;
	s->run.gate_count = (size_t)s->v.gate_count;
}

/* ---- smokes: numbers from the log, not from the report ---- */

static const cJSON *
smoke_of(const struct storing *s, const char *family)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, json_get(s->report, "smokes"))
		if (str_eq(json_str(row, "family"), family))
			return row;
	return NULL;
}

static void
fill_smoke(struct storing *s, int i, struct ledger_smoke *row)
{
	const struct verdict_gate *g = &s->v.gates[i];
	const char *family = strchr(g->name, '/') ? strchr(g->name, '/') + 1 : g->name;
	struct smoke_facts *f = &s->facts[i];
	const cJSON *file;
	size_t len = 0;
	char *log = gate_log(s, i, &len);

	row->family = family;
	row->outcome = outcome_name(g->j.outcome);
	row->reason = reason_name(g->j.reason);
	row->tokens_asked = row->tokens_generated = -1;
	row->distance = (double)NAN;
	if (log != NULL && smoke_facts_read(log, len, f)) {
		row->cache_asked = whole(f->cache_type);
		row->cache_applied = whole(f->elog.k_type);
		row->driver = whole(f->driver);
		row->kv_device = f->elog.kv_count > 0 ? whole(f->elog.kv[0].device) : NULL;
		row->tokens_asked = f->tokens_asked;
		row->tokens_generated = f->elog.tokens;
	}
	free(log);
	file = artifact_row(s, json_str(smoke_of(s, family), "outputFile"));
	row->output_digest = json_str(file, "sha256");
}

static char *
output_of(const struct storing *s, const struct ledger_smoke *row, size_t *len)
{
	const char *name = json_str(smoke_of(s, row->family), "outputFile");
	char *text = NULL;

	if (name == NULL || read_pulled(s, name, OUTPUT_MAX, &text, len, NULL))
		return NULL;
	return text;
}

static const struct ledger_smoke *
baseline_of(const struct storing *s)
{
	const struct ledger_smoke *found = NULL;
	size_t i;

	for (i = 0; i < s->smoke_count; i++) {
		if (str_eq(s->smokes[i].family, "baseline"))
			return &s->smokes[i];
		if (found == NULL && s->smokes[i].cache_asked != NULL &&
		    str_eq(s->smokes[i].cache_asked, s->job->suite->baseline))
			found = &s->smokes[i];
	}
	return found;
}

static void
fill_distances(struct storing *s)
{
	const struct ledger_smoke *base = baseline_of(s);
	size_t base_len = 0, len = 0, i;
	char *base_text = base ? output_of(s, base, &base_len) : NULL, *text;
	double d;

	for (i = 0; base_text != NULL && i < s->smoke_count; i++) {
		if ((text = output_of(s, &s->smokes[i], &len)) == NULL)
			continue;
		d = output_distance(base_text, base_len, text, len);
		s->smokes[i].distance = d < 0 ? (double)NAN : d;
		free(text);
	}
	free(base_text);
}

static void
fill_smokes(struct storing *s)
{
	int i;

	for (i = 0; i < s->v.gate_count; i++)
		if (s->v.gates[i].id == GATE_GRAPH_SMOKE)
			fill_smoke(s, i, &s->smokes[s->smoke_count++]);
	fill_distances(s);
	s->run.smokes = s->smokes;
	s->run.smoke_count = s->smoke_count;
}

/* ---- fixtures ---- */

static double
real_of(const cJSON *o, const char *key)
{
	return json_num(o, key, (double)NAN);
}

static int
fill_fixtures(struct storing *s, struct err *e)
{
	const cJSON *list, *row;
	struct ledger_fixture *f;
	size_t len = 0;
	char *log;
	int i;

	for (i = 0; i < s->v.gate_count && s->v.gates[i].id != GATE_FIXTURES; i++)
		;
	if (i == s->v.gate_count || (log = gate_log(s, i, &len)) == NULL)
		return 0;
	s->checks = fixtures_read(log, len);
	free(log);
	list = json_get(s->checks, "checks");
	s->fixtures = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *s->fixtures);
	if ((f = s->fixtures) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the fixtures");
	cJSON_ArrayForEach(row, list) {
		f->name = or_unknown(json_str(row, "name"));
		f->digest = json_str(row, "sha256");
		f->elements = json_int(row, "elements", -1);
		f->max_abs = real_of(row, "maxAbsDiff");
		f->max_rel = real_of(row, "maxRelDiff");
		f->nmse = real_of(row, "nmse");
		f->non_finite = json_int(row, "nonFinite", -1);
		f->tolerance = real_of(row, "tolerance");
		f->outcome = json_str(row, "outcome");
		f++;
	}
	s->run.fixtures = s->fixtures;
	s->run.fixture_count = (size_t)(f - s->fixtures);
	return 0;
}

/* From the log, too; fill_fixtures has read it. */
static int
fill_code(struct storing *s, struct err *e)
{
	const cJSON *list = json_get(s->checks, "code"), *row;
	struct ledger_code *c;

	s->code = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *s->code);
	if ((c = s->code) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the code");
	cJSON_ArrayForEach(row, list) {
		c->backend = or_unknown(json_str(s->checks, "backend"));
		c->device = json_path_str(s->checks, "device.name");
		c->arch = json_path_str(s->checks, "device.arch");
		c->name = or_unknown(json_str(row, "name"));
		c->digest = json_str(row, "sha256");
		c->how = json_str(row, "how");
		c++;
	}
	s->run.code = s->code;
	s->run.code_count = (size_t)(c - s->code);
	return 0;
}

static int
fill_artifacts(struct storing *s, struct err *e)
{
	const cJSON *list = json_get(s->report, "artifacts"), *row;
	struct ledger_artifact *a;

	s->artifacts = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *s->artifacts);
	if ((a = s->artifacts) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the artifacts");
	cJSON_ArrayForEach(row, list) {
		a->name = json_str(row, "name");
		a->bytes = json_int(row, "bytes", -1);
		a->sha256 = json_str(row, "sha256");
		a->truncated = json_bool(row, "truncated", false);
		a++;
	}
	s->run.artifacts = s->artifacts;
	s->run.artifact_count = (size_t)(a - s->artifacts);
	return 0;
}

/* ---- the row itself ---- */

/* Why a claim has its outcome: the first gate with the same, its own gates before. */
static const char *
claim_reason(const struct storing *s, int claim)
{
	static const enum gate_id own[CLAIM_COUNT] = {
		[CLAIM_FIXTURE_PARITY] = GATE_FIXTURES,
		[CLAIM_LEGACY_KV_GRAPH] = GATE_GRAPH_SMOKE,
		[CLAIM_GEMMA_RUNTIME] = GATE_MTP,
	};
	const struct verdict_gate *g;
	int pass, i;

	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < s->v.gate_count; i++) {
			g = &s->v.gates[i];
			if ((pass == 1 || g->id == own[claim]) &&
			    g->j.outcome == s->v.claims[claim])
				return reason_name(g->j.reason);
		}
	return reason_name(s->v.reason);
}

static int
fill_verdict(struct storing *s, struct err *e)
{
	struct ledger_run *r = &s->run;
	struct verdict *v = &s->v;
	int i;

	r->outcome = outcome_name(v->outcome);
	r->reason = reason_name(v->reason);
	r->detail = whole(v->detail);
	r->recordable = v->recordable;
	r->agent_recordable = v->claimed_recordable;
	r->disagreement = whole(v->disagreement);
	r->exit_code = v->exit;
	r->device_class = whole(v->device_class);
	buf_init(&s->why, LEDGER_MAX_TEXT);
	for (i = 0; i < v->why_count; i++)
		if (buf_addf(&s->why, e, "%s%s", i ? "; " : "", whole(v->why[i])))
			return -1;
	r->not_recordable = s->why.data;
	for (i = 0; i < CLAIM_COUNT; i++)
		if (s->job->suite->claims & (1u << i)) {
			r->claims[i].outcome = outcome_name(v->claims[i]);
			r->claims[i].reason = claim_reason(s, i);
		}
	return 0;
}

static void
fill_facts(struct storing *s)
{
	const cJSON *o = s->report;
	struct ledger_run *r = &s->run;
	const char *model = json_path_str(o, "model.path");

	r->run_id = s->job->id;
	r->host = s->host;
	r->lane = s->job->lane->name;
	r->target = or_unknown(json_str(o, "target"));
	r->suite = s->job->suite->name;
	r->suite_digest = s->job->suite->digest;
	r->source_origin = json_path_str(o, "source.origin");
	r->source_commit = json_path_str(o, "source.commit");
	r->source_tree = json_path_str(o, "source.tree");
	if (json_bool(json_get(o, "source"), "dirty", false))
		r->source_dirty = or_unknown(json_path_str(o, "source.dirtyDigest"));
	r->model_name = base_name(model);
	r->model_sha256 = json_path_str(o, "model.sha256");
	r->model_bytes = json_int(json_get(o, "model"), "bytes", -1);
	r->model_synthetic = json_bool(json_get(o, "model"), "synthetic", false);
	r->device_name = json_path_str(o, "device.name");
	r->device_driver = json_path_str(o, "device.driver");
	r->device_uuid = json_path_str(o, "device.uuid");
	r->agent_version = json_path_str(o, "agent.version");
	r->agent_key = s->pulled->opened.key_id;
	r->controller_version = VERSION;
	r->started_ms = time_of(o, "startedAt");
	r->finished_ms = time_of(o, "finishedAt");
	r->appended_ms = plat_now_ms();
	r->envelope_digest = s->pulled->envelope_sha256;
	r->report_digest = s->pulled->report_sha256;
}

/* ---- putting it away ---- */

int
ledger_of_user(unsigned flags, struct ledger **out, struct err *e)
{
	char path[PATH_SIZE];

	if (plat_xdg("DATA", "verify/ledger.db", path, sizeof path, e))
		return -1;
	return ledger_open(path, flags, NULL, out, e);
}

static int
put_file(struct blob_batch *b, const char *folder, const char *name, const char *sha256,
	struct err *e)
{
	char path[PATH_SIZE];

	if (sha256 == NULL || sha256[0] == '\0')
		return 0;
	return str_fmt(path, sizeof path, e, "%s/%s", folder, name) ||
		blob_batch_file(b, path, sha256, NULL, NULL, e) ? -1 : 0;
}

static int
put_blobs(const struct storing *s, const char *dir, struct err *e)
{
	const struct pulled *p = s->pulled;
	struct blob_batch *b = NULL;
	size_t i;
	int rc = -1;

	if (blob_batch_begin(dir, &b, e) ||
	    blob_batch_bytes(b, p->envelope, p->envelope_len, p->envelope_sha256, NULL, e) ||
	    put_file(b, s->folder, PULL_REPORT, p->report_sha256, e))
		goto out;
	for (i = 0; i < s->run.artifact_count; i++)
		if (put_file(b, s->folder, s->artifacts[i].name, s->artifacts[i].sha256, e))
			goto out;
	rc = blob_batch_commit(b, e);
out:
	blob_batch_free(b);
	return rc ? err_wrap(e, "evidence") : 0;
}

int
store_early(const char *folder, const char *name, const char *sha256, struct err *e)
{
	struct blob_batch *b = NULL;
	char dir[PATH_SIZE];
	int rc;

	if (plat_xdg("DATA", "verify/blobs", dir, sizeof dir, e) || blob_batch_begin(dir, &b, e))
		return -1;
	rc = put_file(b, folder, name, sha256, e) || blob_batch_commit(b, e) ? -1 : 0;
	blob_batch_free(b);
	return rc;
}

static int
appraise(struct storing *s, struct err *e)
{
	struct verdict_logs logs = {read_log, s};

	/* pull_open let nothing through that the pinned key did not sign. */
	if (verdict_appraise(s->report, s->job->suite, true, &logs, &s->v, e))
		return err_wrap(e, "appraisal");
	verdict_hold(&s->v, s->report, s->job);
	/* a ledger tells of machines, and this was none */
	if (s->v.simulated) {
		err_set(e, ERR_REFUSED, "run %s was played from a recorded machine (simulated)", s->job->id);
		return err_hint(e, "the ledger keeps none of them; unset VERIFY_MACHINE where the agent runs");
	}
	fill_facts(s);
	fill_gates(s);
	fill_smokes(s);
	return fill_verdict(s, e) || fill_fixtures(s, e) || fill_code(s, e) ||
		fill_artifacts(s, e) ? -1 : 0;
}

int
store_run(const char *host, const struct job *job, const struct pulled *pulled,
	const char *folder, struct err *e)
{
	struct storing *s = calloc(1, sizeof *s);
	struct ledger *ledger = NULL;
	int rc = -1;

	if (s == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a run");
	s->host = host, s->folder = folder;
	s->job = job, s->pulled = pulled;
	s->report = pulled->report;
	if (appraise(s, e) || ledger_of_user(LEDGER_CREATE, &ledger, e) ||
	    put_blobs(s, ledger_blobs(ledger), e))
		goto out;
	rc = ledger_add(ledger, &s->run, NULL, e);
out:
	ledger_close(ledger);
	storing_free(s);
	return rc;
}
