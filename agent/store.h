/*
 * store - the state folder: one JSON file a job, and an index of all of them in memory.
 *
 *   STATE/lock             held while an agent runs: one agent a folder
 *   STATE/key.pem          the signing key (sign.h)
 *   STATE/listen           where the running agent answers
 *   STATE/jobs/ID.json     a job's state, replaced atomically
 *   STATE/events/ID.ndjson its events (event.h)
 *   STATE/spool/ID/        job.json and all that the job makes
 *   STATE/cache/           builds, sources, model digests
 *
 * A job can do what it likes to its own folder: its state lies elsewhere.
 *
 * Life: store_open, store_close.  Threads: store_lock around every other call; the
 * pointers that calls give stay valid until store_unlock.  Times are ms UTC, 0: not yet.
 */
#ifndef AGENT_STORE_H
#define AGENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/job.h"
#include "common/lane.h"

#define STORE_MAX_STATE 65536      /* bytes of a state file */
#define STORE_MAX_REPORT (32u << 20)
#define STORE_LIST_MAX 200         /* jobs in one listing */

enum phase { PHASE_QUEUED, PHASE_RUNNING, PHASE_DONE, PHASE_COUNT };
const char *phase_name(enum phase p);

struct job_state {
	char id[JOB_ID_HEX + 1];
	enum phase phase;
	char lane[32], suite[128];
	char job_digest[DIGEST_HEX]; /* of the canonical document: same job or another */
	int64_t submitted_ms, started_ms, finished_ms, acked_ms;
	int outcome;                 /* enum outcome, -1 none yet */
	int reason;                  /* enum reason, -1 none yet */
	bool recordable;             /* the agent's claim */
	int exit;                    /* enum exit_status, -1 none yet */
	uint64_t last_event;
	char envelope_sha256[DIGEST_HEX]; /* "" none */
	bool cancel;                 /* somebody asked */
	bool pruned;                 /* the spool is gone */
	char detail[320];
	/* not shown: the worker, as /proc has it, to find what an earlier agent left */
	int64_t pid;                 /* also its session; 0 none */
	uint64_t pid_start;          /* clock ticks after boot */
	char boot_id[40];
	uint64_t spool_bytes;        /* when the job ended */
};

/* What is known of every job without reading its file. */
struct entry {
	char id[JOB_ID_HEX + 1];
	enum phase phase;
	enum api api;                /* of its lane: the device it needs */
	bool acked, pruned;
	int64_t submitted_ms;
	uint64_t spool_bytes;
	struct job_state *live;      /* not NULL while queued or running, and while the
	                              * disk refuses its last state (dirty) */
	bool dirty;
};

struct store;

/* Makes the folders (0750), takes the lock (ERR_CONFLICT when another agent holds it),
 * reads every state.  A damaged state file is put aside as ID.json.damaged and made anew
 * from the spool.  Gives *out. */
CHECKED int store_open(const char *dir, size_t max_known, struct store **out,
	struct err *e);
void store_close(struct store *st); /* NULL is fine; releases the lock */
void store_lock(struct store *st);
void store_unlock(struct store *st);

const char *store_dir(const struct store *st);
/* STATE/KIND/ID.SUFFIX; suffix may be "". */
CHECKED int store_path(const struct store *st, const char *kind, const char *id,
	const char *suffix, char *out, size_t size, struct err *e);
/* STATE/spool/ID/NAME. */
CHECKED int store_spool(const struct store *st, const char *id, const char *name,
	char *out, size_t size, struct err *e);

size_t store_count(const struct store *st);
struct entry *store_at(struct store *st, size_t i); /* oldest first */
struct entry *store_find(struct store *st, const char *id); /* or NULL */

/* A new job: its document into the spool, its state to disk, both whole before it
 * returns.  ERR_NOSPACE when the disk is full: nothing is left behind.  The entry is
 * live. */
CHECKED int store_add(struct store *st, const struct job *j, struct entry **out,
	struct err *e);
/* Reads a job's state (last_event fresh from its events).  ERR_NOTFOUND. */
CHECKED int store_read(struct store *st, const char *id, struct job_state *s,
	struct err *e);
/* Writes a state and updates the index.  On failure the entry holds it live and dirty,
 * so that nobody reads an older one; store_retry writes it later. */
int store_save(struct store *st, const struct job_state *s, struct err *e);
/* Writes what could not be written; true when nothing is left to write. */
bool store_retry(struct store *st);

/* Fills in how a job ended from its report and envelope: outcome, reason, recordable,
 * exit, detail, envelope_sha256.  ERR_NOTFOUND when there is no whole report. */
CHECKED int store_result(struct store *st, struct job_state *s, struct err *e);
/* Sequence number of the last whole event; its `type` and `state` say "job" and "done"
 * when *ended is true. */
uint64_t store_last_event(struct store *st, const char *id, bool *ended);

/* The files of acknowledged jobs that are older than keep_days, and of the oldest ones
 * while the spool holds more than max_bytes.  Never of a job that was not acknowledged.
 * Returns how many jobs were pruned. */
size_t store_prune(struct store *st, uint64_t keep_days, uint64_t max_bytes);
uint64_t store_spool_bytes(const struct store *st);

/* The state as API.md has it; gives, cJSON_Delete.  NULL: no memory. */
cJSON *store_public(const struct job_state *s);
/* The file's form and back (untrusted: anything may have written it). */
cJSON *store_format(const struct job_state *s);
CHECKED int store_parse(const char *text, size_t len, struct job_state *s, struct err *e);

#endif
