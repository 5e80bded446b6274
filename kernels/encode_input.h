/*
 * encode_input - what encoders are tried with: usual keys, and those that encoders get
 * wrong.
 *
 * One seed gives the same keys on every machine whose libm rounds as glibc's does.
 * Threads: no shared state.
 */
#ifndef KERNELS_ENCODE_INPUT_H
#define KERNELS_ENCODE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/encode_form.h"

struct encode_kind {
	const char *name;        /* "zero", "ties" */
	bool exact;              /* at most one element is not 0: no code may differ */
	size_t keys;             /* of it; 0: as many as are asked for */
	void (*fill)(const struct encode_form *f, struct ref_rng *rng, size_t n,
		float x[REF_HEAD]);
};

struct encode_input {
	float *x;                /* [count][REF_HEAD] */
	const struct encode_kind **kind; /* of each */
	size_t count;
};

/* Makes the keys for a format, freed with encode_input_fini. */
CHECKED int encode_input_make(const struct encode_form *f, size_t random, uint64_t seed,
	struct encode_input *out, struct err *e);
void encode_input_fini(struct encode_input *in);

#endif
