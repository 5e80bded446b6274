/*
 * gpu_shape - sizes that a plan (host C) and the device kernels must agree on.
 */
#ifndef KERNELS_GPU_SHAPE_H
#define KERNELS_GPU_SHAPE_H

#define SCORE_BLOCK 256  /* threads */
#define SCORE_HEADS 8    /* query heads that share one read of the keys, at most */
#define STAGE_KEYS 32    /* keys of a run: what a warp copies at once */
#define STAGE_COUNT 3    /* runs in flight for each warp, the one at work included */

/* Room of one run: its keys, unaligned ends, and the word that is read past them. */
#define STAGE_BYTES(key) ((STAGE_KEYS * (key) + 15 + 15 + 4) / 16 * 16 + 16)
/* Dynamic shared memory of the matrix kernels: table, queries, the runs of each warp. */
#define SCORE_QUERY_BYTES 4352
#define SCORE_TABLE_BYTES(entries) ((entries) * 128)
#define SCORE_SHARED(entries, key)                            \
	(SCORE_TABLE_BYTES(entries) + SCORE_QUERY_BYTES +     \
	 SCORE_BLOCK / 32 * STAGE_COUNT * STAGE_BYTES(key))
#define QJL_QUERY_BYTES 6656
#define QJL_SHARED (QJL_QUERY_BYTES + SCORE_BLOCK / 32 * STAGE_COUNT * STAGE_BYTES(34))

/* Attention: what a split leaves of a head in the scratch, in floats. */
#define FUSED_PART (2 + 128 + 1) /* max, sum, accumulator, sum of the residual */
#define FUSED_MERGE_BLOCK 128
#define FUSED_BLOCK 256
#define FUSED_BLOCKS 2 /* of a multiprocessor */
#define FUSED_TBQ_SHARED 98304
#define FUSED_POLAR_SHARED 98304

#endif
