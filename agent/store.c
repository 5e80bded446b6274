#include "agent/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/store_impl.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define PATH_BYTES 4096
#define TAIL_BYTES 20480 /* more than the longest event */

const char *
store_dir(const struct store *st)
{
	return st->dir;
}

void
store_lock(struct store *st)
{
	pthread_mutex_lock(&st->mutex);
}

void
store_unlock(struct store *st)
{
	pthread_mutex_unlock(&st->mutex);
}

int
store_path(const struct store *st, const char *kind, const char *id, const char *suffix,
	char *out, size_t size, struct err *e)
{
	return str_fmt(out, size, e, "%s/%s/%s%s", st->dir, kind, id, suffix);
}

int
store_spool(const struct store *st, const char *id, const char *name, char *out,
	size_t size, struct err *e)
{
	return str_fmt(out, size, e, "%s/spool/%s/%s", st->dir, id, name);
}

size_t
store_count(const struct store *st)
{
	return st->count;
}

struct entry *
store_at(struct store *st, size_t i)
{
	return &st->entries[i];
}

struct entry *
store_find(struct store *st, const char *id)
{
	size_t i;

	for (i = st->count; i > 0; i--)
		if (memcmp(st->entries[i - 1].id, id, JOB_ID_HEX) == 0)
			return &st->entries[i - 1];
	return NULL;
}

/* ---- the index ---- */

static void
entry_set(struct entry *en, const struct job_state *s)
{
	const struct lane *l = lane_find(s->lane);

	memcpy(en->id, s->id, sizeof en->id);
	en->phase = s->phase;
	en->api = l != NULL ? l->api : API_CPU;
	en->acked = s->acked_ms != 0;
	en->pruned = s->pruned;
	en->submitted_ms = s->submitted_ms;
	en->spool_bytes = s->pruned ? 0 : s->spool_bytes;
}

static void
entry_drop(struct store *st, size_t i)
{
	free(st->entries[i].live);
	st->count--;
	memmove(&st->entries[i], &st->entries[i + 1],
		(st->count - i) * sizeof *st->entries);
}

/* Makes room for one more: the oldest record whose files are gone is forgotten. */
static int
entry_room(struct store *st, struct err *e)
{
	char path[PATH_BYTES];
	size_t i;

	if (st->count < st->max_known)
		return 0;
	for (i = 0; i < st->count; i++) {
		if (!st->entries[i].pruned || st->entries[i].live != NULL)
			continue;
		if (store_path(st, "jobs", st->entries[i].id, ".json", path, sizeof path, e))
			return -1;
		if (unlink(path) && errno != ENOENT)
			return err_errno(e, errno, "remove %s", path);
		entry_drop(st, i);
		return 0;
	}
	err_set(e, ERR_BUSY, "%zu jobs are known and none is pruned yet", st->count);
	return err_hint(e, "pull and acknowledge finished jobs, or raise [jobs] max_known");
}

int
store_insert(struct store *st, const struct job_state *s, struct entry **out,
	struct err *e)
{
	struct entry *grown;
	size_t cap;

	if (st->count == st->cap) {
		cap = st->cap ? st->cap * 2 : 64;
		if ((grown = realloc(st->entries, cap * sizeof *grown)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for %zu jobs", cap);
		st->entries = grown;
		st->cap = cap;
	}
	*out = &st->entries[st->count++];
	memset(*out, 0, sizeof **out);
	entry_set(*out, s);
	return 0;
}

/* Queued and running jobs are kept in memory; what ended is read when asked for. */
int
store_live(struct entry *en, const struct job_state *s, struct err *e)
{
	if (en->live == NULL && (en->live = malloc(sizeof *en->live)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job's state");
	*en->live = *s;
	return 0;
}

/* ---- states on disk ---- */

static int
state_write(struct store *st, const struct job_state *s, struct err *e)
{
	char path[PATH_BYTES], *text = NULL;
	cJSON *o = store_format(s);
	int rc = -1;

	if (o == NULL || (text = json_text(o, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a job's state");
		goto out;
	}
	if (store_path(st, "jobs", s->id, ".json", path, sizeof path, e) ||
	    plat_write_file(path, text, strlen(text), 0640, e))
		goto out;
	rc = 0;
out:
	free(text);
	cJSON_Delete(o);
	return rc;
}

int
store_save(struct store *st, const struct job_state *s, struct err *e)
{
	struct entry *en = store_find(st, s->id);
	int rc;

	if (en == NULL)
		return err_set(e, ERR_NOTFOUND, "job %s is not known", s->id);
	rc = state_write(st, s, e);
	entry_set(en, s);
	en->dirty = rc != 0;
	if (rc == 0 && s->phase == PHASE_DONE) {
		free(en->live);
		en->live = NULL;
	} else if (store_live(en, s, NULL)) {
		return err_set(e, ERR_NOMEM, "no memory for a job's state");
	}
	return rc;
}

bool
store_retry(struct store *st)
{
	bool clean = true;
	size_t i;

	for (i = 0; i < st->count; i++) {
		struct job_state s;

		if (!st->entries[i].dirty || st->entries[i].live == NULL)
			continue;
		s = *st->entries[i].live;
		if (store_save(st, &s, NULL))
			clean = false;
	}
	return clean;
}

static void
state_init(struct job_state *s, const struct job *j)
{
	memset(s, 0, sizeof *s);
	str_show(s->id, sizeof s->id, j->id, strlen(j->id));
	str_show(s->lane, sizeof s->lane, j->lane->name, strlen(j->lane->name));
	str_show(s->suite, sizeof s->suite, j->suite->name, strlen(j->suite->name));
	memcpy(s->job_digest, j->digest, sizeof s->job_digest);
	s->phase = PHASE_QUEUED;
	s->submitted_ms = plat_now_ms();
	s->outcome = s->reason = s->exit = -1;
}

int
store_add(struct store *st, const struct job *j, struct entry **out, struct err *e)
{
	struct job_state s;
	struct entry *en = NULL;
	char dir[PATH_BYTES], path[PATH_BYTES];
	int rc = -1;

	state_init(&s, j);
	if (store_spool(st, j->id, "", dir, sizeof dir, e) ||
	    store_spool(st, j->id, "job.json", path, sizeof path, e) ||
	    entry_room(st, e) || store_insert(st, &s, &en, e))
		return -1;
	if (store_live(en, &s, e) || plat_mkdirs(dir, 0750, e) ||
	    plat_write_file(path, j->text, strlen(j->text), 0640, e) ||
	    state_write(st, &s, e))
		goto out;
	*out = en;
	rc = 0;
out:
	if (rc) {
		entry_drop(st, st->count - 1);
		if (plat_remove_tree(dir, NULL))
			err_wrap(e, "%s stays behind", dir);
	}
	return rc;
}

int
store_read(struct store *st, const char *id, struct job_state *s, struct err *e)
{
	struct entry *en = store_find(st, id);
	char path[PATH_BYTES], *text = NULL;
	size_t len = 0;
	int rc;

	if (en == NULL) {
		err_set(e, ERR_NOTFOUND, "job %.40s is not known here", id);
		return err_hint(e, "GET /v1/jobs lists the jobs of this agent");
	}
	if (en->live != NULL) {
		*s = *en->live;
		s->last_event = store_last_event(st, id, NULL);
		return 0;
	}
	if (store_path(st, "jobs", id, ".json", path, sizeof path, e) ||
	    plat_read_file(path, STORE_MAX_STATE, &text, &len, e))
		return -1;
	rc = store_parse(text, len, s, e);
	free(text);
	if (rc != 0 && e != NULL)
		e->code = ERR_INTEGRITY;
	return rc;
}

/* ---- events and results ---- */

uint64_t
store_last_event(struct store *st, const char *id, bool *ended)
{
	char path[PATH_BYTES], *tail = NULL, *end, *line;
	cJSON *o = NULL;
	off_t size;
	ssize_t n;
	uint64_t seq = 0;
	int fd = -1;

	if (ended != NULL)
		*ended = false;
	if (store_path(st, "events", id, ".ndjson", path, sizeof path, NULL) ||
	    (fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0 ||
	    (size = lseek(fd, 0, SEEK_END)) <= 0 ||
	    (tail = malloc(TAIL_BYTES + 1)) == NULL)
		goto out;
	n = pread(fd, tail, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	if (n <= 0 || (end = memrchr(tail, '\n', (size_t)n)) == NULL)
		goto out;
	*end = '\0';
	line = memrchr(tail, '\n', (size_t)(end - tail));
	line = line != NULL ? line + 1 : tail;
	if (json_parse(line, (size_t)(end - line), TAIL_BYTES, &o, NULL))
		goto out;
	seq = (uint64_t)json_int(o, "seq", 0);
	if (ended != NULL)
		*ended = str_eq(json_str(o, "type"), "job") &&
			str_eq(json_str(o, "state"), "done");
out:
	cJSON_Delete(o);
	free(tail);
	if (fd >= 0)
		close(fd);
	return seq;
}

/* A report names its deciding reason, or its first gate that did not pass has it. */
static int
report_reason(const cJSON *report)
{
	const char *name = json_str(report, "reasonCode"), *outcome;
	const cJSON *gate;

	if (name != NULL)
		return reason_find(name);
	cJSON_ArrayForEach(gate, json_get(report, "gates"))
	{
		outcome = json_str(gate, "outcome");
		if (!str_eq(outcome, outcome_name(OUTCOME_PASS)) &&
		    !str_eq(outcome, outcome_name(OUTCOME_SKIPPED)) &&
		    (name = json_str(gate, "reasonCode")) != NULL)
			return reason_find(name);
	}
	return REASON_NONE;
}

int
store_result(struct store *st, struct job_state *s, struct err *e)
{
	char path[PATH_BYTES];
	cJSON *report = NULL;
	const char *outcome, *why;
	int rc = -1;

	if (store_spool(st, s->id, "report.dsse.json", path, sizeof path, e) ||
	    digest_file(path, s->envelope_sha256, NULL, e))
		goto out;
	if (store_spool(st, s->id, "report.json", path, sizeof path, e) ||
	    json_load(path, STORE_MAX_REPORT, &report, e))
		goto out;
	if ((outcome = json_str(report, "outcome")) == NULL ||
	    (s->outcome = outcome_find(outcome)) < 0) {
		err_set(e, ERR_PARSE, "%s names no outcome", path);
		goto out;
	}
	s->reason = s->outcome == OUTCOME_PASS ? REASON_NONE : report_reason(report);
	s->recordable = json_bool(report, "passRecordable", false);
	s->exit = (int)json_int(report, "exitCode", EXIT_INCOMPLETE);
	why = json_str(report, "failureReason");
	if (why != NULL)
		str_show(s->detail, sizeof s->detail, why, strlen(why));
	rc = 0;
out:
	if (rc) {
		s->envelope_sha256[0] = '\0';
		s->outcome = -1;
	}
	cJSON_Delete(report);
	return rc;
}

/* ---- pruning ---- */

uint64_t
store_spool_bytes(const struct store *st)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < st->count; i++)
		sum += st->entries[i].spool_bytes;
	return sum;
}

/* State first: a job that says "pruned" and still has files loses them next time; one
 * that has none and does not say so would be a lie. */
static bool
job_prune(struct store *st, struct entry *en)
{
	struct job_state s;
	char path[PATH_BYTES];

	if (store_read(st, en->id, &s, NULL))
		return false;
	if (!s.pruned) {
		s.pruned = true;
		s.last_event = store_last_event(st, s.id, NULL);
		if (store_save(st, &s, NULL))
			return false;
	}
	if (store_spool(st, s.id, "", path, sizeof path, NULL) == 0 &&
	    plat_remove_tree(path, NULL))
		return false;
	if (store_path(st, "events", s.id, ".ndjson", path, sizeof path, NULL) == 0)
		unlink(path);
	return true;
}

size_t
store_prune(struct store *st, uint64_t keep_days, uint64_t max_bytes)
{
	int64_t oldest = plat_now_ms() - (int64_t)keep_days * 86400000;
	uint64_t sum = store_spool_bytes(st), bytes;
	size_t i, pruned = 0;

	for (i = 0; i < st->count; i++) {
		struct entry *en = &st->entries[i];

		if (!en->acked || en->pruned || en->phase != PHASE_DONE)
			continue;
		if (en->submitted_ms > oldest && sum <= max_bytes)
			continue;
		bytes = en->spool_bytes;
		if (!job_prune(st, en))
			continue;
		sum -= bytes;
		pruned++;
	}
	return pruned;
}
