/*
 * job - what a controller asks an agent to do: the wire document of POST /v1/jobs.
 *
 *   { "schemaVersion": 1, "id": 32 hex, "nonce": 64 hex, "lane": "cpu",
 *     "suite": "llama.cpp", "suiteDigest": 64 hex, "suiteDocument": TEXT | absent,
 *     "model": path | absent, "source": path or git URL | absent,
 *     "sourceRef": TEXT | absent, "only": "probe" | ... | absent,
 *     "prebuilt": folder | absent, "overrides": { "cacheTypes": ..., ... } | absent,
 *     "controller": { "version": ..., "host": ... } | absent }
 *
 * Life: job_parse or job_new, job_free.  Immutable once parsed.
 */
#ifndef COMMON_JOB_H
#define COMMON_JOB_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"
#include "common/suite.h"

#define JOB_MAX_BYTES 131072
#define JOB_ID_HEX 32
#define JOB_NONCE_HEX 64
#define JOB_MAX_PATH 4096

/* Names of the members of "overrides", which are also the old variables' last words. */
enum override {
	OVERRIDE_CACHE_TYPES,
	OVERRIDE_TOKENS,
	OVERRIDE_NGL,
	OVERRIDE_PROMPT,
	OVERRIDE_EXTRA_ARGS,
	OVERRIDE_CMAKE_FLAGS,
	OVERRIDE_DRIVER,
	OVERRIDE_COUNT
};
struct override_row {
	const char *key;      /* in the job: "cacheTypes" */
	const char *variable; /* "ELIZA_MTP_SMOKE_CACHE_TYPES"; the older name swaps MTP
	                       * for DFLASH */
	uint32_t max;         /* bytes, or the largest number */
	int number;           /* 1: a whole number */
	const char *help;
};
extern const struct override_row overrides[OVERRIDE_COUNT];

struct job {
	cJSON *root;              /* owned; the strings borrow from it */
	char *text;               /* owned; canonical bytes: the same job has the same */
	char digest[DIGEST_HEX];  /* of text */
	const char *id, *nonce;
	const struct lane *lane;  /* static */
	struct suite *suite;      /* owned */
	const char *model, *source, *source_ref, *prebuilt; /* NULL when absent */
	const char *device;       /* UUID, PCI address, serial or index; NULL: the first */
	const char *draft_model;  /* of speculative decoding; NULL when absent */
	enum only only;
	const char *override[OVERRIDE_COUNT]; /* NULL when absent */
};

/* Reads untrusted JSON.  Unknown fields, lanes and suites are errors that name them;
 * a suite digest that differs from ours is ERR_CONFLICT. */
CHECKED int job_parse(const char *text, size_t len, struct job **out, struct err *e);
/* Fills id and nonce with random bits when o has none, then parses.  Takes o. */
CHECKED int job_new(cJSON *o, struct job **out, struct err *e);
void job_free(struct job *j);

#endif
