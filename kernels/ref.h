/*
 * ref - the scalar truth: how each KV-cache format is written, read and scored.
 *
 * Every rounding is part of the definition: f32 sums run in index order without fused
 * multiply-add, f64 sums are rounded once.  Build it with -ffp-contract=off and without
 * -ffast-math; then blocks and scores are the same bits on every machine.
 *
 * A key is one head vector of REF_HEAD floats.  Blocks are packed bytes, little-endian,
 * LSB first, with no alignment.  All buffers are the caller's and are borrowed.  Input
 * that is not finite yields scores that are not finite, never a loop or a wild index.
 * Threads: no state.
 */
#ifndef KERNELS_REF_H
#define KERNELS_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define REF_HEAD 128 /* elements of a head vector */
#define REF_PROJ 256 /* elements of a sketch */

/* Bytes of a block, and blocks of a key. */
#define REF_TURBO3_BLOCK 14
#define REF_TURBO4_BLOCK 18
#define REF_TCQ_BLOCK 52
#define REF_QJL_BLOCK 34
#define REF_POLAR_BLOCK 82
#define REF_TBQ3_BLOCK 14
#define REF_TBQ4_BLOCK 18
#define REF_QUARTERS 4 /* blocks of a key where a block has 32 elements */

/* fp16: encodes by rounding half away from zero, unlike hardware (half to even); both
 * directions know subnormals, infinities and NaN. */
uint16_t ref_fp16_encode(float v);
float ref_fp16_decode(uint16_t h);
/* bf16: half to even; a NaN stays one. */
uint16_t ref_bf16_encode(float v);
float ref_bf16_decode(uint16_t h);

/* Entry i of a +-1 vector kept as a bit map (see table.h): 1.0f or -1.0f. */
float ref_sign(const uint8_t *map, unsigned i);

/* Walsh-Hadamard butterfly in place, natural order, unnormalised; n is a power of 2. */
void ref_hadamard(float *x, size_t n);
/* The rotation of turbo3 and turbo3_tcq. */
void ref_rotate(float x[REF_HEAD]);
/* The conditioning of a quarter in turbo4 and tbq, and its inverse. */
void ref_condition(float x[32]);
void ref_uncondition(float x[32]);

/* Index of the first of n ascending thresholds that is greater than v, else n: a value
 * equal to a threshold takes the upper code, a NaN the top one. */
unsigned ref_below(float v, const float *thresholds, unsigned n);
/* Index of the nearest of n ascending levels: a tie takes the lower code, a NaN the top. */
unsigned ref_nearest(float v, const float *levels, unsigned n);

/* The stream that fixtures are drawn from: a 64-bit LCG under Marsaglia's polar method. */
#define REF_RNG_SEED UINT64_C(0x9E3779B97F4A7C15)
struct ref_rng {
	uint64_t state;
	float spare; /* second normal of the last pair */
	bool has_spare;
};
void ref_rng_init(struct ref_rng *r);
float ref_rng_normal(struct ref_rng *r);

/* Gaussian projection [REF_HEAD][REF_PROJ] of a sketch, drawn by splitmix64. */
#define REF_PI (REF_HEAD * REF_PROJ)
void ref_pi_fill(uint64_t seed, float pi[REF_PI]);
void ref_sketch(const float v[REF_HEAD], const float pi[REF_PI], float out[REF_PROJ]);

/* Writes the blocks of one key.  Only qjl looks at pi; the others take NULL. */
typedef void (*ref_quantise)(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_turbo3_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_turbo4_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_tcq_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_qjl_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_polar_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_polar_qjl_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_tbq3_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);
void ref_tbq4_quantise(const float x[REF_HEAD], const float *pi, uint8_t *out);

/* Reads the blocks of one key.  turbo3, turbo4 and turbo3_tcq stay in the rotated space
 * (their query is rotated too); polar and tbq come back to the real one.  The residual
 * of polar belongs to the run: polar ignores its byte, polar_qjl reads a 0 as minus. */
typedef void (*ref_decode)(const uint8_t *in, float out[REF_HEAD]);
void ref_turbo3_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_turbo4_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_tcq_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_polar_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_polar_qjl_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_tbq3_decode(const uint8_t *in, float out[REF_HEAD]);
void ref_tbq4_decode(const uint8_t *in, float out[REF_HEAD]);
/* Estimate of the key itself, for looking at: f64, since its noise is the format's. */
void ref_qjl_decode(const uint8_t *in, const float pi[REF_PI], double out[REF_HEAD]);

/*
 * One problem for a score or attention kernel.
 *
 * k is [n_kv_heads][n_kv] keys, v the same; query head h reads kv head
 * h / (n_heads / n_kv_heads).  Scores are [n_heads][n_kv] plain dot products; attention
 * writes [n_heads][REF_HEAD].
 */
struct ref_case {
	uint32_t n_heads, n_kv_heads, n_kv;
	const float *q;      /* [n_heads][REF_HEAD], or [REF_PROJ] sketches */
	const uint8_t *k;
	const uint8_t *v;    /* attention only */
	bool use_qjl;        /* polar residual is on, for K or V */
	bool causal;         /* only tokens 0 to q_pos_base of each kv head take part */
	uint32_t q_pos_base;
	float sm_scale;      /* attention only */
};

/* -1 only for want of memory. */
typedef int (*ref_run)(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_turbo3_score(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_turbo4_score(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_tcq_score(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_qjl_score(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_polar_score(const struct ref_case *c, float *out, struct err *e);
/* q is the Hadamard transform of the query; keys are not transformed. */
CHECKED int ref_preht_score(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_fused_tbq(const struct ref_case *c, float *out, struct err *e);
CHECKED int ref_fused_polar(const struct ref_case *c, float *out, struct err *e);

/* One-pass softmax over a part of the tokens: what a kernel that splits the tokens over
 * blocks keeps of each.  A part without tokens is the neutral one. */
struct ref_part {
	float max, sum, acc[REF_HEAD];
};
void ref_part_init(struct ref_part *p);
void ref_part_add(struct ref_part *p, float raw, const float v[REF_HEAD]);
void ref_part_merge(struct ref_part *into, const struct ref_part *from);
/* Zeros when no token was added. */
void ref_part_out(const struct ref_part *p, float out[REF_HEAD]);
/* Logit of token t for head h, softmax scale included. */
float ref_fused_raw(const struct ref_case *c, uint32_t h, uint32_t t);
/* The tokens that take part: all, or the causal prefix. */
uint32_t ref_visible(const struct ref_case *c);
/* Kv head that query head h reads. */
uint32_t ref_kv_head(const struct ref_case *c, uint32_t h);

#endif
