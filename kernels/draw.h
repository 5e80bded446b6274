/*
 * draw - random operands that are valid: any bits for codes, norms of a chosen kind.
 *
 * One seed gives the same operands on every machine.  Threads: no shared state.
 */
#ifndef KERNELS_DRAW_H
#define KERNELS_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/ref.h"

struct draw {
	uint64_t state;
	float spare; /* second normal of the last pair */
	bool has_spare;
};
void draw_init(struct draw *d, uint64_t seed);
/* A stream of its own for part n of what a seed gives. */
void draw_init_part(struct draw *d, uint64_t seed, uint64_t n);
uint64_t draw_bits(struct draw *d);
uint32_t draw_below(struct draw *d, uint32_t n); /* n > 0 */
float draw_normal(struct draw *d);

enum draw_norms {
	DRAW_USUAL,     /* keys about as long as a normal vector, from 1/8 to 2 of that */
	DRAW_SUBNORMAL, /* of the norm's 16-bit format, never 0 */
	DRAW_HUGE,      /* the upper end of fp16; up to 2^100 in bf16 */
	DRAW_ZERO,
};

/* n keys of the format that a function of ref writes.  strays: bits that the format
 * reserves, and for a polar key without residual its byte, are not 0 but random. */
void draw_keys(struct draw *d, ref_quantise format, enum draw_norms norms, bool strays,
	size_t n, uint8_t *out);
/* Doubles the norms of n keys: exact, but for norms that have no double. */
void draw_double_norms(ref_quantise format, size_t n, uint8_t *keys);

#endif
