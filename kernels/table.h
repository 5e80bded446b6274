/*
 * table - the fixed numbers of the cache formats: codebooks, thresholds, sign vectors.
 *
 * Part of the formats: a changed digit is another format, so tests/unit/test_ref.c holds
 * the CRC-32 of each.  All data is static.
 */
#ifndef KERNELS_TABLE_H
#define KERNELS_TABLE_H

#include <stdint.h>

/* Levels ascend; level i is chosen between thresholds i - 1 and i. */
extern const float table_turbo3_centroids[8];
extern const float table_turbo3_thresholds[7];
extern const float table_turbo4_centroids[16]; /* also the codebook of tbq4_0 */
extern const float table_turbo4_thresholds[15];
extern const float table_tbq3_codebook[8];
extern const float table_polar_centroids[16];
extern const float table_polar_boundaries[15];
extern const float table_tcq_codebook[512]; /* index: 9-bit state of the trellis */

/* +-1 vectors as bit maps: bit i & 7 of byte i >> 3, 1 means +1. */
extern const uint8_t table_signs1[16]; /* the 128-point rotation, before */
extern const uint8_t table_signs2[16]; /* and after the butterfly */
extern const uint8_t table_signs32[4]; /* the 32-point conditioning */
extern const uint8_t table_polar_residual[16];

#endif
