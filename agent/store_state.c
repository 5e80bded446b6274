/* A job's state as JSON: the file's form, its reader, and what the API shows of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define STATE_VERSION 1

static const char *const phases[PHASE_COUNT] = {"queued", "running", "done"};

const char *
phase_name(enum phase p)
{
	return phases[p];
}

static bool
time_add(cJSON *o, const char *key, int64_t ms)
{
	char text[24];

	if (ms == 0)
		return json_add_null(o, key);
	plat_utc(ms, text);
	return json_add_str(o, key, text);
}

static const char *
text_or_null(const char *s)
{
	return s[0] != '\0' ? s : NULL;
}

static bool
public_add(cJSON *o, const struct job_state *s)
{
	return json_add_str(o, "id", s->id) && json_add_str(o, "state", phases[s->phase]) &&
		json_add_str(o, "lane", s->lane) && json_add_str(o, "suite", s->suite) &&
		time_add(o, "submittedAt", s->submitted_ms) &&
		time_add(o, "startedAt", s->started_ms) &&
		time_add(o, "finishedAt", s->finished_ms) &&
		json_add_str(o, "outcome",
			s->outcome < 0 ? NULL : outcome_name((enum outcome)s->outcome)) &&
		json_add_str(o, "reasonCode", s->reason <= REASON_NONE
				? NULL : reason_name((enum reason)s->reason)) &&
		json_add_bool(o, "passRecordable", s->recordable) &&
		(s->exit < 0 ? json_add_null(o, "exitCode")
			     : json_add_int(o, "exitCode", s->exit)) &&
		json_add_int(o, "lastEvent", (int64_t)s->last_event) &&
		json_add_str(o, "envelopeSha256", text_or_null(s->envelope_sha256)) &&
		json_add_bool(o, "acknowledged", s->acked_ms != 0) &&
		(s->detail[0] == '\0'
				? json_add_null(o, "detail")
				: json_add_text(o, "detail", s->detail, strlen(s->detail)));
}

cJSON *
store_public(const struct job_state *s)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && public_add(o, s))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *
store_format(const struct job_state *s)
{
	cJSON *o = cJSON_CreateObject();
	char start[24];

	/* Ticks exceed no double, but text can not lose a bit. */
	if (str_fmt(start, sizeof start, NULL, "%" PRIu64, s->pid_start) == 0 &&
	    o != NULL && json_add_int(o, "schemaVersion", STATE_VERSION) &&
	    public_add(o, s) && json_add_str(o, "jobDigest", s->job_digest) &&
	    json_add_int(o, "submittedMs", s->submitted_ms) &&
	    json_add_int(o, "startedMs", s->started_ms) &&
	    json_add_int(o, "finishedMs", s->finished_ms) &&
	    json_add_int(o, "ackedMs", s->acked_ms) &&
	    json_add_bool(o, "cancel", s->cancel) && json_add_bool(o, "pruned", s->pruned) &&
	    json_add_int(o, "pid", s->pid) && json_add_str(o, "pidStart", start) &&
	    json_add_str(o, "bootId", s->boot_id) &&
	    json_add_int(o, "spoolBytes", (int64_t)s->spool_bytes))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* A text member that must be there and fit; null counts as "" when it may. */
static int
text_get(const cJSON *o, const char *key, bool may_be_null, char *out, size_t size,
	struct err *e)
{
	const char *s = json_str(o, key);

	if (s == NULL && may_be_null && cJSON_IsNull(json_get(o, key)))
		s = "";
	if (s == NULL)
		return err_set(e, ERR_PARSE, "%s is missing or no text", key);
	return str_copy(out, size, s, e) ? err_wrap(e, "%s", key) : 0;
}

static int
times_parse(const cJSON *o, struct job_state *s, struct err *e)
{
	static const double top = 9e15; /* exact in a double */
	const struct {
		const char *key;
		int64_t *to;
	} rows[] = {
		{"submittedMs", &s->submitted_ms}, {"startedMs", &s->started_ms},
		{"finishedMs", &s->finished_ms}, {"ackedMs", &s->acked_ms}, {"pid", &s->pid},
	};
	size_t i;
	int64_t v;

	for (i = 0; i < str_count(rows); i++)
		if (json_need_int(o, rows[i].key, 0, (int64_t)top, rows[i].to, e))
			return -1;
	if (json_need_int(o, "lastEvent", 0, (int64_t)top, &v, e))
		return -1;
	s->last_event = (uint64_t)v;
	if (json_need_int(o, "spoolBytes", 0, (int64_t)top, &v, e))
		return -1;
	s->spool_bytes = (uint64_t)v;
	return 0;
}

/* -1 for null; a word that this version does not know is an error. */
static int
word_parse(const cJSON *o, const char *key, int (*find)(const char *), int *out,
	struct err *e)
{
	const char *s = json_str(o, key);

	*out = -1;
	if (s == NULL)
		return cJSON_IsNull(json_get(o, key))
			? 0 : err_set(e, ERR_PARSE, "%s is missing", key);
	if ((*out = find(s)) < 0)
		return err_set(e, ERR_PARSE, "%s: unknown word \"%.60s\"", key, s);
	return 0;
}

static int
phase_find(const char *name)
{
	int i;

	for (i = 0; i < PHASE_COUNT; i++)
		if (strcmp(name, phases[i]) == 0)
			return i;
	return -1;
}

static int
state_parse(const cJSON *o, struct job_state *s, struct err *e)
{
	char start[24];
	int64_t version;
	int phase;

	if (json_need_int(o, "schemaVersion", STATE_VERSION, STATE_VERSION, &version, e) ||
	    text_get(o, "id", false, s->id, sizeof s->id, e) ||
	    text_get(o, "lane", false, s->lane, sizeof s->lane, e) ||
	    text_get(o, "suite", false, s->suite, sizeof s->suite, e) ||
	    text_get(o, "jobDigest", false, s->job_digest, sizeof s->job_digest, e) ||
	    text_get(o, "envelopeSha256", true, s->envelope_sha256,
		    sizeof s->envelope_sha256, e) ||
	    text_get(o, "detail", true, s->detail, sizeof s->detail, e) ||
	    text_get(o, "bootId", false, s->boot_id, sizeof s->boot_id, e) ||
	    text_get(o, "pidStart", false, start, sizeof start, e) ||
	    str_u64(start, 0, UINT64_MAX, &s->pid_start, e) || times_parse(o, s, e) ||
	    word_parse(o, "state", phase_find, &phase, e) ||
	    word_parse(o, "outcome", outcome_find, &s->outcome, e) ||
	    word_parse(o, "reasonCode", reason_find, &s->reason, e))
		return -1;
	if (!str_is_hex(s->id, JOB_ID_HEX) || phase < 0)
		return err_set(e, ERR_PARSE, "no job id or no state");
	s->phase = (enum phase)phase;
	if (s->reason < 0 && s->outcome >= 0)
		s->reason = REASON_NONE; /* null goes with a pass */
	s->recordable = json_bool(o, "passRecordable", false);
	s->exit = (int)json_num(o, "exitCode", -1);
	s->cancel = json_bool(o, "cancel", false);
	s->pruned = json_bool(o, "pruned", false);
	return 0;
}

int
store_parse(const char *text, size_t len, struct job_state *s, struct err *e)
{
	cJSON *o = NULL;
	int rc;

	memset(s, 0, sizeof *s);
	if (json_parse(text, len, STORE_MAX_STATE, &o, e))
		return -1;
	rc = state_parse(o, s, e);
	cJSON_Delete(o);
	return rc;
}
