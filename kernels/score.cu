/* Scores of the formats with a codebook: see score.h and matrix.h. */
#include "kernels/matrix.h"

SCORE_PORTABLE(turbo3, turbo3_format)
SCORE_PORTABLE(turbo4, turbo4_format)
SCORE_PORTABLE(tcq, tcq_format)
SCORE_PORTABLE(polar, polar_raw_format)
SCORE_PORTABLE(polar_preht, polar_format)

#if GPU_MATRIX
typedef level_engine<tcq_format, single_table<tcq_format>> tcq_engine;
#endif
MATRIX_KERNEL(matrix_tcq, tcq_engine, 2)
