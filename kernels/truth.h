/*
 * truth - ref's scores in f64 and fast: a key is decoded once for many queries.
 *
 * A score is the sum of weights times a prepared query, which holds for every score
 * kernel: polar's transform is taken to the query, where it is exact algebra.  Tests hold
 * it against ref.  Only the logits are here for attention.
 *
 * How far a right kernel may be off: the rounding errors of n additions and products in
 * f32, in any order, are independent and at most 2^-24 of a partial sum, which is at most
 * |q| |k| (both lengths are kept by the transforms, so it holds for every way to compute
 * it).  They add up to less than sqrt(n) 2^-24 |q| |k| but for one chance in thousands of
 * keys, and four times that is never seen.  So the tolerance is the absolute one, or
 * 4 sqrt(n) 2^-24 |q| |k| where norms or queries are so large that this is more.
 *
 * Threads: no state.
 */
#ifndef KERNELS_TRUTH_H
#define KERNELS_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

#define TRUTH_TERMS REF_PROJ /* of a sum at most */
#define TRUTH_HEADS 8        /* queries that are scored at once */

/* The query as the sums below take it: out[i * TRUTH_HEADS + head]. */
void truth_query(const struct kernel *k, const float *q, unsigned head, double *out);
/* The k->q_dim weights of a key. */
void truth_key(const struct kernel *k, const uint8_t *key, bool use_qjl,
	double weights[TRUTH_TERMS]);
void truth_scores(const struct kernel *k, const double *weights, const double *query,
	double out[TRUTH_HEADS]);

/* Lengths of a prepared query and of weights, for the tolerance. */
double truth_query_length(const struct kernel *k, const double *query, unsigned head);
double truth_key_length(const struct kernel *k, const double *weights);
/* k's tolerance for two such lengths; base is the absolute one. */
double truth_tolerance(const struct kernel *k, double base, double q, double key);

#endif
