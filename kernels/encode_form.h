/*
 * encode_form - how blocks are read back to judge them: codes, norms, reserved bits, and
 * the values that an encoder compares.
 *
 * A row per format; all data is static, no state.  Values are those of ref: the roundings
 * and their order are its own.
 */
#ifndef KERNELS_ENCODE_FORM_H
#define KERNELS_ENCODE_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

#define ENCODE_FORM_NORMS 4

enum encode_codes {
	ENCODE_LEVELS, /* a code per element, between thresholds */
	ENCODE_PATH,   /* of the trellis */
	ENCODE_SIGNS,  /* of a sketch */
};

struct encode_form {
	ref_quantise quantise;   /* the key of the row */
	enum encode_codes codes;
	bool bf16;               /* the norms; else fp16 */
	unsigned norms;          /* of a key, one in each block */
	unsigned norm_at, block; /* in the block; bytes of a block */
	bool norm_of_codes;      /* it makes up for the codes' length */
	unsigned code_at;        /* byte of the key that holds nothing but codes */
	unsigned levels;         /* ENCODE_LEVELS */
	const float *level, *threshold; /* threshold NULL: half way between levels */
	unsigned (*code)(const uint8_t *key, unsigned i);
	/* What is compared with the thresholds; for a path, what it follows. */
	void (*values)(const float x[REF_HEAD], float v[REF_HEAD]);
	/* And back: from values, whose squares add up to power in each group of elements,
	 * to a key that has them but for rounding. */
	void (*back)(double v[REF_HEAD]);
	unsigned group;
	double power;
	unsigned residual_at;    /* byte of a residual bit; 0: none */
	unsigned reserved_at;    /* byte from which on all is 0; 0: none */
	uint8_t reserved_bits;   /* and of the byte before it */
};

/* NULL when there is no row. */
const struct encode_form *encode_form_find(ref_quantise quantise);

/* Between levels i and i + 1. */
double encode_form_threshold(const struct encode_form *f, unsigned i);
uint16_t encode_form_norm(const struct encode_form *f, const uint8_t *key, unsigned i);
void encode_form_set_norm(const struct encode_form *f, uint8_t *key, unsigned i,
	uint16_t norm);
/* The norm that goes with the key's codes, for norm_of_codes. */
uint16_t encode_form_norm_of_codes(const struct encode_form *f, const float x[REF_HEAD],
	const uint8_t *key);
/* State of the trellis at element t. */
unsigned encode_form_state(const uint8_t *key, unsigned t);
/* Whether all that is reserved is 0. */
bool encode_form_is_clean(const struct encode_form *f, const uint8_t *key, size_t bytes);

#endif
