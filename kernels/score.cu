/* Scores of the formats with a codebook: see score.h. */
#include "kernels/score.h"

SCORE_KERNELS(turbo3, turbo3_format)
SCORE_KERNELS(turbo4, turbo4_format)
SCORE_KERNELS(tcq, tcq_format)
SCORE_KERNELS(polar, polar_raw_format)
SCORE_KERNELS(polar_preht, polar_format)
