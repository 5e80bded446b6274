/*
 * verdict - what a whole run amounts to: appraised from gates, evidence and suite.
 *
 * The agent computes it as a claim, the controller from the bytes it pulled; both call
 * this.  Recordable = every gate the suite requires passed on one device, in one job,
 * signed, with its logs, no overrides, clean source, allowed model, not emulated.
 */
#ifndef COMMON_VERDICT_H
#define COMMON_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/job.h"
#include "common/judge.h"
#include "common/suite.h"

#define VERDICT_MAX_GATES 64
#define VERDICT_MAX_WHY 32

struct verdict_gate {
	char name[80];           /* "graph-smoke/q8_0" */
	enum gate_id id;
	struct judgement j;      /* as appraised */
	struct judgement claimed; /* as the agent said */
	bool disagrees;
};

struct verdict {
	enum outcome outcome;
	enum reason reason;      /* of the gate that decides */
	char detail[416];        /* "graph-smoke/turbo3: ..." */
	char hint[160];
	bool recordable;
	bool claimed_recordable; /* the agent's passRecordable */
	int exit;                /* enum exit_status */
	char device_class[160];  /* recomputed; "" unknown */
	bool simulated;          /* a recording played the machine */
	struct verdict_gate gates[VERDICT_MAX_GATES];
	int gate_count;
	char why[VERDICT_MAX_WHY][200];   /* why it is not recordable */
	int why_count;
	enum outcome claims[CLAIM_COUNT]; /* OUTCOME_SKIPPED: not claimed by the suite */
	char disagreement[400];  /* "" or the first disagreement, in words */
};

/* Bytes of an artifact by its name.  Gives *out (free()).  ERR_NOTFOUND when absent. */
struct verdict_logs {
	int (*read)(void *arg, const char *name, char **out, size_t *len, struct err *e);
	void *arg;
};

/* Form of a report: schema version, required members and their types, names of outcomes
 * and reasons.  ERR_PARSE names the field, the found and the wanted. */
CHECKED int report_check(const cJSON *report, struct err *e);

/*
 * Judges every gate again from the logs, compares with what the report claims, and
 * decides.  signed_ok: the envelope was opened with the expected key.  -1 only when the
 * report is no report (ERR_PARSE) or there is no memory; everything else is a verdict.
 */
CHECKED int verdict_appraise(const cJSON *report, const struct suite *suite, bool signed_ok,
	const struct verdict_logs *logs, struct verdict *out, struct err *e);

/*
 * What the job asked for stands above what the report says of it: a pass whose report
 * hides an override, an only or a prebuilt engine of its own job, or answers another text
 * than the job's, is none to record.  For whoever has the job, after verdict_appraise.
 */
void verdict_hold(struct verdict *v, const cJSON *report, const struct job *job);

/* From gates already judged (out->gates filled, claimed ignored): the deciding part. */
void verdict_decide(const cJSON *report, const struct suite *suite, bool signed_ok,
	struct verdict *out);

/* Of several hosts the first in the order 1, 6, 5, 4, 3, 7, 0 (2 before all). */
int verdict_worst_exit(const int *exits, size_t n);

#endif
