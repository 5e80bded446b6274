/*
 * pending - jobs that were asked for and whose evidence is not stored yet.
 *
 * $XDG_DATA_HOME/verify/pending/ID.json is written before the job is submitted and
 * removed after the ledger holds the run, so a controller that dies loses nothing: the
 * next `attach` submits the same bytes again (the same job), follows, and pulls into
 * $XDG_DATA_HOME/verify/incoming/ID/.
 *
 * Life: pending_new or pending_load, pending_free.
 */
#ifndef CONTROLLER_PENDING_H
#define CONTROLLER_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/job.h"
#include "controller/inventory.h"

#define PENDING_MAX 10000          /* files looked at */
#define PENDING_MAX_BYTES (4 * JOB_MAX_BYTES)

struct pending {
	char host[HOST_MAX_NAME + 1];
	int64_t created_ms;
	struct job *job; /* owned */
};

/* Takes job (also on failure). */
CHECKED int pending_new(const char *host, struct job *job, struct pending **out,
	struct err *e);
void pending_free(struct pending *p); /* NULL is fine */
CHECKED int pending_save(const struct pending *p, struct err *e);
CHECKED int pending_load(const char *id, struct pending **out, struct err *e);
/* Removes the file and what was pulled for it. */
CHECKED int pending_done(const char *id, struct err *e);
/* Folder that the job's evidence is pulled into; made when missing. */
CHECKED int pending_incoming(const char *id, char *out, size_t size, struct err *e);

struct pending_id {
	char id[JOB_ID_HEX + 1];
};
/* Ids, newest first.  Gives *out, freed with free(). */
CHECKED int pending_list(struct pending_id **out, size_t *count, struct err *e);
/* The id that a unique beginning means: ERR_NOTFOUND, ERR_CONFLICT. */
CHECKED int pending_find(const char *prefix, char id[JOB_ID_HEX + 1], struct err *e);

/* Only one controller at a time brings a job in: waits while another does, ticking.
 * Gives *fd, closed by the caller. */
CHECKED int pending_lock(const char *id, int (*tick)(void *arg), void *arg, int *fd,
	struct err *e);

#endif
