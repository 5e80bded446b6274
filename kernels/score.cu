/* Scores of the formats with a codebook: see score.h and matrix.h. */
#include "kernels/matrix.h"

SCORE_PORTABLE(turbo3, turbo3_format)
SCORE_PORTABLE(turbo4, turbo4_format)
SCORE_PORTABLE(tcq, tcq_format)
SCORE_PORTABLE(polar, polar_raw_format)
SCORE_PORTABLE(polar_preht, polar_format)

#if GPU_MATRIX
typedef single_table<tcq_format> tcq_table;
typedef level_engine<tcq_format, tcq_table, 4, 4> tcq_engine_4;
typedef level_engine<tcq_format, tcq_table, 8, 2> tcq_engine_8;
#endif
MATRIX_KERNEL(matrix_tcq_4, tcq_engine_4, 2)
MATRIX_KERNEL(matrix_tcq_8, tcq_engine_8, 2)
