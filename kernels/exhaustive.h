/*
 * exhaustive - so many scores that a rare error can not hide: a device against truth.
 *
 * Random valid keys stream through the device in parts; each score is compared with the
 * f64 one, the worst is kept with what is needed to see it again (seed, part, head, key).
 * Of N scores without a bad one, the share of bad ones is below 3 / N with 95 %
 * certainty: (1 - 3 / N)^N is less than 0.05.
 *
 * The reference side uses threads of its own; the session stays with the caller's.
 */
#ifndef KERNELS_EXHAUSTIVE_H
#define KERNELS_EXHAUSTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"
#include "kernels/verify.h"

#define EXHAUSTIVE_SCORES UINT64_C(300000000) /* of each kernel, unless told otherwise */

/* Where a score was made. */
struct exhaustive_place {
	uint64_t part;
	uint32_t head, key, gqa, n_kv;
	float got;
	double wanted, tolerance;
};

struct exhaustive_row {
	char name[80];           /* of the item */
	uint64_t compared, bad;  /* bad: not within tolerance, a NaN too */
	double max_abs;          /* largest difference, of finite scores */
	double worst;            /* largest difference in units of its tolerance */
	struct exhaustive_place where, first_bad; /* where: of worst */
	double seconds;
	enum outcome outcome;    /* pass, fail, blocked, or incomplete when it was stopped */
	enum err_code why;
	char detail[512];
};

struct exhaustive_report {
	uint64_t seed, wanted;
	unsigned threads;
	struct exhaustive_row *rows; /* score kernels only */
	size_t count;
	enum outcome outcome;
	enum err_code why;
};

/* scores of each kernel; threads 0: one for each processor.  Fills out, freed with
 * exhaustive_fini.  -1: no memory. */
CHECKED int exhaustive_run(struct rig *r, const struct verify_task *t, uint64_t scores,
	unsigned threads, struct exhaustive_report *out, struct err *e);
void exhaustive_fini(struct exhaustive_report *r);
cJSON *exhaustive_json(const struct exhaustive_report *r);
void exhaustive_print(FILE *out, const struct exhaustive_report *r, bool colour);

#endif
