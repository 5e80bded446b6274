#include "agent/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/event.h"
#include "agent/queue_impl.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

void
queue_wake(struct queue *q)
{
	static const uint64_t one = 1;
	ssize_t n;

	do /* EAGAIN: 2^64 - 2 wakes are waiting already */
		n = write(q->wake_fd, &one, sizeof one);
	while (n < 0 && errno == EINTR);
}

void
queue_stop(struct queue *q)
{
	atomic_store(&q->stop, true);
	queue_wake(q);
}

static cJSON *
event_body(const struct job_state *s)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL || !json_add_str(o, "state", phase_name(s->phase)))
		goto fail;
	if (s->phase != PHASE_DONE)
		return o;
	if (!json_add_str(o, "outcome", outcome_name((enum outcome)s->outcome)) ||
	    !json_add_str(o, "reasonCode", s->reason <= REASON_NONE
			? NULL : reason_name((enum reason)s->reason)) ||
	    !json_add_bool(o, "passRecordable", s->recordable) ||
	    !json_add_int(o, "exitCode", s->exit) ||
	    !json_add_text(o, "detail", s->detail, strlen(s->detail)))
		goto fail;
	return o;
fail:
	cJSON_Delete(o);
	return NULL;
}

void
queue_event(struct queue *q, const struct job_state *s)
{
	char path[4096];
	struct event_log *l = NULL;
	cJSON *o;

	/* Progress, not evidence: a disk too full for it does not stop the job. */
	if (store_path(q->store, "events", s->id, ".ndjson", path, sizeof path, NULL) ||
	    event_open(path, &l, NULL))
		return;
	if ((o = event_body(s)) != NULL)
		event_add(l, "job", o);
	event_close(l);
}

static void
count(struct queue *q, struct queue_counts *out)
{
	size_t i;

	memset(out, 0, sizeof *out);
	for (i = 0; i < store_count(q->store); i++) {
		enum phase p = store_at(q->store, i)->phase;

		out->queued += p == PHASE_QUEUED;
		out->running += p == PHASE_RUNNING;
	}
	memcpy(out->ended, q->outcomes, sizeof out->ended);
}

void
queue_count(struct queue *q, struct queue_counts *out)
{
	store_lock(q->store);
	count(q, out);
	store_unlock(q->store);
}

static int
submit(struct queue *q, const struct job *j, bool *created, struct job_state *s,
	struct err *e)
{
	struct queue_counts now;
	struct entry *en;

	if (store_find(q->store, j->id) != NULL) {
		*created = false;
		if (store_read(q->store, j->id, s, e))
			return -1;
		if (strcmp(s->job_digest, j->digest) == 0)
			return 0;
		err_set(e, ERR_CONFLICT, "job %s was submitted with another body", j->id);
		return err_hint(e, "choose a new id for another job");
	}
	count(q, &now);
	if (atomic_load(&q->stop))
		return err_set(e, ERR_BUSY, "the agent is stopping");
	if (now.queued >= q->conf->v[CONF_MAX_QUEUE]) {
		err_set(e, ERR_BUSY, "%u jobs wait already", now.queued);
		return err_hint(e, "submit the same job again when one has ended");
	}
	if (store_add(q->store, j, &en, e))
		return -1;
	*created = true;
	*s = *en->live;
	queue_event(q, s);
	queue_wake(q);
	return 0;
}

int
queue_submit(struct queue *q, const struct job *j, bool *created, struct job_state *s,
	struct err *e)
{
	int rc;

	store_lock(q->store);
	rc = submit(q, j, created, s, e);
	if (rc == 0)
		s->last_event = store_last_event(q->store, j->id, NULL);
	store_unlock(q->store);
	return rc;
}

int
queue_cancel(struct queue *q, const char *id, struct job_state *s, struct err *e)
{
	int rc;

	store_lock(q->store);
	rc = store_read(q->store, id, s, e);
	if (rc == 0 && s->phase != PHASE_DONE && !s->cancel) {
		s->cancel = true;
		/* A full disk does not protect a job: the live state is what counts. */
		store_save(q->store, s, NULL);
		queue_wake(q);
	}
	store_unlock(q->store);
	return rc;
}

static int
ack(struct queue *q, const char *id, const char *digest, struct job_state *s,
	struct err *e)
{
	if (store_read(q->store, id, s, e))
		return -1;
	if (s->phase != PHASE_DONE) {
		err_set(e, ERR_CONFLICT, "job %s has not ended", id);
		return err_hint(e, "acknowledge when its report is pulled");
	}
	if (s->envelope_sha256[0] == '\0' || strcmp(s->envelope_sha256, digest) != 0) {
		err_set(e, ERR_CONFLICT, "the envelope of job %s has another digest", id);
		return err_hint(e, "pull the report again and compare");
	}
	if (s->acked_ms != 0)
		return 0;
	s->acked_ms = plat_now_ms();
	if (store_save(q->store, s, e))
		return -1;
	q->prune_due = true;
	queue_wake(q);
	return 0;
}

int
queue_ack(struct queue *q, const char *id, const char *envelope_sha256,
	struct job_state *s, struct err *e)
{
	int rc;

	store_lock(q->store);
	rc = ack(q, id, envelope_sha256, s, e);
	store_unlock(q->store);
	return rc;
}

/* A worker of an earlier agent was asked to stop when that died; it must be gone before
 * its device is used again.  A pid of another boot means nothing here. */
static void
leftovers_kill(struct queue *q)
{
	size_t i;

	for (i = 0; i < store_count(q->store); i++) {
		const struct job_state *s = store_at(q->store, i)->live;
		uint64_t started;

		if (s == NULL || s->phase != PHASE_RUNNING || s->pid <= 1 ||
		    strcmp(s->boot_id, q->boot_id) != 0)
			continue;
		started = worker_started((pid_t)s->pid);
		if (started == 0 || started == s->pid_start)
			worker_kill((pid_t)s->pid);
	}
}

int
queue_new(const struct queue_spec *spec, struct queue **out, struct err *e)
{
	struct queue *q;
	int rc = -1;

	if ((q = calloc(1, sizeof *q)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the queue");
	q->conf = spec->conf;
	q->store = spec->store;
	q->config = spec->config;
	q->ended = spec->ended;
	q->arg = spec->arg;
	q->prune_due = true;
	plat_boot_id(q->boot_id);
	if ((q->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		err_errno(e, errno, "eventfd");
		goto out;
	}
	if (spec->program != NULL ? str_copy(q->program, sizeof q->program, spec->program, e)
				  : plat_self(q->program, sizeof q->program, e))
		goto out;
	leftovers_kill(q);
	*out = q, q = NULL;
	rc = 0;
out:
	queue_free(q);
	return rc;
}

void
queue_free(struct queue *q)
{
	if (q == NULL)
		return;
	if (q->wake_fd >= 0)
		close(q->wake_fd);
	free(q);
}
