/*
 * work - one job from its document to its signed report: the gates in their order.
 *
 * The server runs `verify-agent work --state STATE --job ID` as a process of its own;
 * `verify-agent run LANE` calls the same in the foreground.  Life: one work_run per
 * process.
 *
 * Folders below STATE: key.pem, jobs/ID.json (state, written by the server), events/ID.ndjson,
 * spool/ID/ (job.json and everything the job makes: logs, report.json, envelope
 * report.dsse.json), cache/ (builds, sources, model digests).
 */
#ifndef AGENT_WORK_H
#define AGENT_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/event.h"
#include "common/digest.h"
#include "common/err.h"
#include "common/job.h"
#include "common/sign.h"

struct work_ask {
	const struct job *job;          /* borrowed */
	const struct sign_key *key;     /* borrowed; NULL: unsigned, never recordable */
	struct event_log *events;       /* borrowed */
	const char *log_dir;            /* where logs and summary go; made when missing */
	const char *cache_dir;
	const char *report_path;        /* NULL: log_dir/report.json; the envelope stands
	                                 * beside it: X.json -> X.dsse.json */
	bool runner_names;              /* true: in log_dir other runs' files may lie; never
	                                 * overwrite, number instead */
	const char *overrides_from;     /* "environment" or "job": for the report */
	uint64_t log_cap;               /* bytes kept of one log; 0: the default */
	uint32_t smoke_timeout_ms, build_timeout_ms, fixture_timeout_ms; /* 0: default */
};

struct work_result {
	enum outcome outcome;
	enum reason reason;             /* of the first gate that decides */
	bool recordable;                /* the agent's own claim */
	int exit;                       /* enum exit_status */
	char detail[320];
	char report_path[4096], envelope_path[4096];
	char report_sha256[DIGEST_HEX], envelope_sha256[DIGEST_HEX];
};

/* Runs every gate and writes the report, also when gates fail, when SIGTERM or SIGINT
 * came (incomplete, cancelled; SIGALRM: timeout, SIGHUP: agent_died) and when the disk is full as far as it goes.  -1 only when
 * not even a report could be written. */
CHECKED int work_run(const struct work_ask *ask, struct work_result *out, struct err *e);

/* Writes the report of a job whose worker died (incomplete, agent_died), from its job
 * document and the events that are there. */
CHECKED int work_post_mortem(const struct work_ask *ask, const char *events_path,
	enum reason why, const char *detail, struct work_result *out, struct err *e);

/* The probe of GET /v1/host, as a JSON object; gives, cJSON_Delete. */
CHECKED int work_host(cJSON **out, struct err *e);

#endif
