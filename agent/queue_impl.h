/* queue_impl - what queue.c and queue_loop.c share; nobody else includes it. */
#ifndef AGENT_QUEUE_IMPL_H
#define AGENT_QUEUE_IMPL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "agent/queue.h"

#define SLOT_DEVICES (API_METAL + 1) /* one worker a device */
#define SLOT_SPARE SLOT_DEVICES      /* post mortems that need no device */
#define SLOT_COUNT (SLOT_DEVICES + 1)

enum slot_kind { SLOT_FREE, SLOT_WORK, SLOT_MORTEM };

struct slot {
	enum slot_kind kind;
	char id[JOB_ID_HEX + 1];
	pid_t pid;
	int status;          /* of waitpid */
	int64_t deadline_ms; /* monotonic: when to ask it to stop; 0 never */
	int64_t kill_ms;     /* monotonic: when to kill it; 0 not asked yet */
	enum reason why;     /* should it leave no report */
};

struct queue {
	const struct conf *conf;
	struct store *store;
	char program[4096];
	const char *config;
	void (*ended)(void *arg, const char *id);
	void *arg;
	char boot_id[40];
	int wake_fd;         /* eventfd: something to look at */
	atomic_bool stop;    /* ask for the end */
	bool hurry;          /* a second signal */
	bool prune_due;
	struct slot slots[SLOT_COUNT];
	uint64_t outcomes[OUTCOME_COUNT];
};

void queue_wake(struct queue *q);
/* An event of type "job" into the job's file; with the result when it is done. */
void queue_event(struct queue *q, const struct job_state *s);

/* ---- worker.c ---- */

/* Starts a worker (mortem NULL) or a post mortem.  The child's pid, or -1. */
pid_t worker_start(const struct queue *q, const char *id, const char *mortem,
	struct err *e);
/* Clock ticks after boot when pid started, 0 when there is no such process. */
uint64_t worker_started(pid_t pid);
/* Kills every process of the worker's session. */
void worker_kill(pid_t session);
/* Bytes of all files below path. */
uint64_t worker_spool_bytes(const char *path);

#endif
