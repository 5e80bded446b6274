/*
 * queue - jobs first in, first out, one at a time per device, each in a worker process.
 *
 * A worker is this program again: `verify-agent work --state DIR --job ID`, a session of
 * its own, asked to stop by SIGTERM (cancelled), SIGALRM (time limit), and SIGHUP when the
 * agent dies.  When it ends without a report
 * (crash, kill -9, time limit), another process writes the post mortem:
 * `verify-agent work --state DIR --job ID --post-mortem REASON`.  Every job ends done.
 *
 * Threads: queue_loop is the main thread's and starts every process, because the death
 * signal of a child follows the thread that made it; the rest may be called by any.
 * Locks the store itself.
 */
#ifndef AGENT_QUEUE_H
#define AGENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/conf.h"
#include "agent/store.h"
#include "common/err.h"
#include "common/job.h"

struct queue;

struct queue_spec {
	const struct conf *conf;  /* kept */
	struct store *store;      /* kept */
	const char *program;      /* kept; NULL: this program */
	const char *config;       /* kept; for the worker's --config, NULL: none */
	/* Called with the store locked when a job has ended and its last event is there. */
	void (*ended)(void *arg, const char *id);
	void *arg;
};

/* What an earlier agent left running is killed and taken up by queue_loop: its report
 * decides when it is whole, else a post mortem.  Gives *out. */
CHECKED int queue_new(const struct queue_spec *spec, struct queue **out, struct err *e);
void queue_free(struct queue *q); /* NULL is fine */

/* Until SIGTERM or SIGINT (blocked in every thread) and then until the workers have
 * written their reports, at most stop_grace_s; a second signal kills them at once.
 * Jobs that wait stay queued for the next agent. */
CHECKED int queue_loop(struct queue *q, struct err *e);
/* Makes queue_loop stop as SIGTERM does. */
void queue_stop(struct queue *q);

/* ERR_CONFLICT: the id belongs to another document; ERR_BUSY: the queue is full or the
 * agent stops.  *created is false when the same document was submitted before. */
CHECKED int queue_submit(struct queue *q, const struct job *j, bool *created,
	struct job_state *s, struct err *e);
/* s->phase says whether it had ended already. */
CHECKED int queue_cancel(struct queue *q, const char *id, struct job_state *s,
	struct err *e);
/* ERR_CONFLICT: not ended, or the digest is another. */
CHECKED int queue_ack(struct queue *q, const char *id, const char *envelope_sha256,
	struct job_state *s, struct err *e);

struct queue_counts {
	unsigned queued, running;
	uint64_t ended[OUTCOME_COUNT]; /* since the agent started */
};
void queue_count(struct queue *q, struct queue_counts *out);

#endif
