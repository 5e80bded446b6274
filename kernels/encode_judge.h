/*
 * encode_judge - whether a key's blocks are what an encoder may write: the rules of
 * encode_check, one key at a time.
 *
 * Pure arithmetic, no state but the row that it counts into.
 */
#ifndef KERNELS_ENCODE_JUDGE_H
#define KERNELS_ENCODE_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "kernels/encode_check.h"
#include "kernels/encode_form.h"
#include "kernels/encode_input.h"

struct encode_judge {
	const struct encode_form *form;
	const float *pi;         /* qjl only */
	struct encode_row *row;  /* counts */
	const float *x;          /* the key, */
	const struct encode_kind *kind; /* its kind, */
	size_t at;               /* and its number, for findings */
};

/* want: what ref writes. */
void encode_judge_key(const struct encode_judge *j, const uint8_t *want,
	const uint8_t *got);
/* Plants errors in copies of want, the blocks of j's key, and looks whether they are
 * caught; one that is not is a finding. */
void encode_judge_control(const struct encode_judge *j, const uint8_t *want);
/* The row is a fail; the first finding of a row is its detail. */
void encode_judge_find(struct encode_row *row, const char *fmt, ...) PRINTF(2, 3);

#endif
