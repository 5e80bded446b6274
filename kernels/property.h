/*
 * property - random problems beyond the fixtures: a device against ref.
 *
 * Each kind of operands (ordinary, subnormal, huge and zero norms, equal keys, reserved
 * bits that are set, causal prefixes, large logits, ...) meets each shape (no key, odd
 * numbers of keys, several heads and kv heads).  Besides: what must hold without knowing
 * the right score.  The same problem again gives the same bits; keys in another order
 * give the same scores in that order, up to rounding; doubled norms double scores to the
 * bit.
 *
 * Tolerance: truth.h for scores.  An output of attention is a mean of values V: an error
 * d of the logits moves it by at most 2 d |V|, the sums add 4 sqrt(n_kv) 2^-24 |V| and a
 * fast exponential 2^-19 |V|; the absolute tolerance holds where it is more.
 */
#ifndef KERNELS_PROPERTY_H
#define KERNELS_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"
#include "kernels/verify.h"

struct property_row {
	char name[80];           /* of the item */
	size_t problems, elements;
	size_t over, non_finite; /* outputs beyond their tolerance, not finite */
	double worst;            /* largest difference in units of its tolerance */
	double max_abs;          /* largest difference where the absolute one holds */
	size_t reordered;        /* outputs that changed a bit with the order of keys */
	enum outcome outcome;
	enum err_code why;       /* of a blocked one */
	char detail[512];        /* the first that is wrong: kind, shape, what */
};

struct property_report {
	uint64_t seed;
	bool full;
	struct property_row *rows;
	size_t count, elements;
	enum outcome outcome;
	enum err_code why;
};

/* full: every kind with every shape; else each kind with some of them.  Fills out, freed
 * with property_fini.  -1: no memory. */
CHECKED int property_run(struct rig *r, const struct verify_task *t, bool full,
	struct property_report *out, struct err *e);
void property_fini(struct property_report *r);
/* Gives the machine form, freed with cJSON_Delete; NULL when out of memory. */
cJSON *property_json(const struct property_report *r);
void property_print(FILE *out, const struct property_report *r, bool colour);

#endif
