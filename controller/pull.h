/*
 * pull - the evidence of a job, from the agent's spool to this disk, every byte checked.
 *
 * The envelope comes first: its signature by the pinned key, then that it answers this
 * job (id, nonce, lane, suite); then every artifact that the report names, each streamed
 * to FOLDER/NAME.part, resumed where it stopped, compared in length and digest, renamed.
 * What is there already and right is not sent again, so a killed pull goes on.
 */
#ifndef CONTROLLER_PULL_H
#define CONTROLLER_PULL_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/job.h"
#include "common/sign.h"
#include "controller/client.h"
#include "controller/progress.h"

#define PULL_MAX_ARTIFACTS 4096
#define PULL_ATTEMPTS 3       /* of one artifact whose bytes are not right */
#define PULL_REPORT "report.json"

struct pull_ask {
	struct client *client;     /* all borrowed */
	struct progress *progress;
	const struct job *job;     /* what was asked */
	const char *public_key;    /* the pinned one */
	const char *folder;        /* exists */
};

struct pulled {
	char *envelope;            /* owned: the bytes as they came */
	size_t envelope_len;
	char envelope_sha256[DIGEST_HEX];
	struct sign_opened opened; /* owns the statement */
	const cJSON *report;       /* the predicate; borrows opened */
	char report_sha256[DIGEST_HEX]; /* of the file report.json; "" when not listed */
	uint64_t bytes;            /* of all artifacts */
};

/* Fill out with {0}; free with pulled_fini, also after a failure.
 *   ERR_REFUSED    the signature is not the pinned key's, or the report answers another
 *                  request: the message begins with the layer, or names job_mismatch,
 *                  nonce_mismatch, lane_mismatch, suite_mismatch
 *   ERR_PARSE      an envelope, statement or report of another form
 *   ERR_INTEGRITY  an artifact is missing or its bytes stay wrong */
CHECKED int pull_run(const struct pull_ask *ask, struct pulled *out, struct err *e);
void pulled_fini(struct pulled *p);

/* The two halves, for tests. */
CHECKED int pull_open(const struct pull_ask *ask, struct pulled *out, struct err *e);
CHECKED int pull_artifacts(const struct pull_ask *ask, struct pulled *out, struct err *e);

/* One artifact before the report names it, so that little is left to do at the end; the
 * report's own digest is compared later all the same.  For logs of gates that have ended,
 * while the job goes on.  Nothing is shown. */
CHECKED int pull_early(const struct pull_ask *ask, const char *name, const char *sha256,
	uint64_t bytes, struct err *e);

/* A name that an artifact may have: [A-Za-z0-9._+-], not beginning with '.', at most 200
 * bytes. */
bool pull_name_ok(const char *name);

#endif
