/*
 * encode_check - holds the encoders of a device against ref, format by format.
 *
 * Two right encoders may differ, since a sum's last bits depend on its order.  So much is
 * allowed, counted and reported:
 *
 * - A code of turbo3, turbo4, polar, tbq3_0 may be another where the value that is compared
 *   lies within 4 ulp of each threshold between the two; an ulp is the spacing of floats at
 *   the threshold, for the threshold 0 that at the level beside it.
 * - A norm may be one ulp of its 16-bit format off.  The norm of turbo3 and turbo3_tcq
 *   depends on the codes and is held against that of the device's own codes.
 * - A path of turbo3_tcq may be another if it costs at most 1e-6 more, relative, both costs
 *   recomputed in f64 from the blocks.
 * - A sign of qjl may be another where the sketch is within its rounding bound of 0:
 *   128 terms in f32, in any order, fused or not, are at most gamma = 128 u / (1 - 128 u)
 *   times the sum of the terms' magnitudes away from the true sum, u = 2^-24.  The residual
 *   bit of polar_qjl: the same bound, and 4 ulp of each of the values.
 *
 * Keys whose sums have no more than one term (zero, one element) leave no room for rounding,
 * and none for codes either: there the rule for ties decides.  Of keys that are not finite only
 * norm and reserved bytes are looked at: their codes have no meaning, but encoders end.
 *
 * Every key is encoded twice over different garbage, in batches of odd sizes, between
 * guards: a byte that is not written, or written beside the output, is a fail.  In each
 * format errors are planted in copies of what the device wrote (a byte of codes, two ulp in
 * a norm, a reserved bit): a check that lets one pass has shown nothing and is a fail.
 */
#ifndef KERNELS_ENCODE_CHECK_H
#define KERNELS_ENCODE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"
#include "kernels/kernel.h"
#include "kernels/rig.h"

#define ENCODE_ULPS 4            /* of a threshold */
#define ENCODE_COST 1e-6         /* relative, of a path */
#define ENCODE_KEYS 4096         /* random ones of a format, by default */
#define ENCODE_KEYS_MAX (1u << 20)
#define ENCODE_SEED UINT64_C(0xE4C0DE5EED)

struct encode_options {
	const char *const *only; /* names of formats; NULL: all */
	size_t only_count;
	size_t keys;             /* random keys, at most ENCODE_KEYS_MAX; 0: ENCODE_KEYS */
	uint64_t seed;           /* 0: ENCODE_SEED */
};

/* Compared, different within the rules, wrong. */
struct encode_tally {
	size_t all, near, wrong;
};

struct encode_row {
	const struct kernel_format *format;
	size_t keys, same;       /* same: byte for byte what ref writes */
	size_t not_finite;       /* keys of which only norm and reserved bytes were judged */
	size_t ties;             /* values exactly on a threshold */
	struct encode_tally codes; /* levels, signs, residual bits */
	struct encode_tally norms;
	struct encode_tally paths; /* near: another path that costs no more than allowed */
	double worst_ulps;       /* of the codes that are near: how far the value was */
	double worst_cost;       /* relative excess of a path; below 0: all are cheaper */
	size_t reserved;         /* keys with a reserved bit that is not 0 */
	size_t unwritten;        /* bytes that depend on what was there before */
	bool guard_intact;       /* guards and inputs */
	unsigned planted, caught;
	enum outcome outcome;    /* pass, fail or blocked */
	enum err_code why;       /* of a blocked one */
	char detail[256];        /* the first finding, one sentence; "" for a pass */
};

struct encode_report {
	struct encode_row rows[KERNEL_FORMATS];
	size_t count, passed, failed, blocked;
	enum outcome outcome;    /* fail before blocked before pass */
	enum err_code why;       /* of a blocked outcome */
};

/* What goes wrong on the device is in the report, as is a backend without encoders
 * (blocked, ERR_UNSUPPORTED).  -1: ERR_USAGE for a name that is none or too many keys. */
CHECKED int encode_check_run(struct rig *r, const struct encode_options *o,
	struct encode_report *out, struct err *e);
/* Gives the machine form, freed with cJSON_Delete; NULL when out of memory. */
cJSON *encode_check_json(const struct encode_report *r);
void encode_check_print(FILE *out, const struct encode_report *r, bool colour);

#endif
