/*
 * gpu_shape - sizes that a plan (host C) and the device kernels must agree on.
 */
#ifndef KERNELS_GPU_SHAPE_H
#define KERNELS_GPU_SHAPE_H

#define COPY_UNROLL 4    /* chunks of 16 bytes that a thread copies */
#define SCORE_BLOCK 256  /* threads */
#define SCORE_HEADS 8    /* query heads that share one read of the keys, at most */
#define STAGE_KEYS 32    /* keys of a run: what a warp copies at once */
/* Runs of each warp that are held, the one at work included: with a table, without. */
#define LEVEL_STAGES 2
#define DIGIT_STAGES 3

/* Room of one run: its keys, unaligned ends, and the word that is read past them. */
#define STAGE_BYTES(key) ((STAGE_KEYS * (key) + 15 + 15 + 4) / 16 * 16 + 16)
/* Dynamic shared memory of the matrix kernels: a table, queries, the runs of each warp. */
#define SCORE_QUERY_BYTES 4352
#define DIGIT_QUERY_BYTES 6656
#define TURBO3_TABLE_BYTES 512   /* sixteen bytes for each lane */
#define PAIR_TABLE_BYTES 65536   /* a row of 256 bytes for each pair of codes */
#define SINGLE_TABLE_BYTES 65536 /* a row of 128 bytes for each state of the trellis */
#define STAGES_BYTES(stages, key) (SCORE_BLOCK / 32 * (stages) * STAGE_BYTES(key))

/* Attention: what a split leaves of a head in the scratch, in floats. */
#define FUSED_PART (2 + 128 + 1) /* max, sum, accumulator, sum of the residual */
#define FUSED_MERGE_BLOCK 512
#define FUSED_BLOCK 256
#define FUSED_BLOCKS 2 /* of a multiprocessor */
#define FUSED_TBQ_TABLE 8192
#define FUSED_POLAR_TABLE 32768
#define FUSED_ROWS_BYTES 8192 /* queries of eight heads as operands */
#define FUSED_SHARED(table, value)                                       \
	((table) + DIGIT_QUERY_BYTES + FUSED_ROWS_BYTES + STAGES_BYTES(LEVEL_STAGES, 34) +  \
	 STAGES_BYTES(LEVEL_STAGES, value))
#define FUSED_TBQ_SHARED FUSED_SHARED(FUSED_TBQ_TABLE, 56)
#define FUSED_POLAR_SHARED FUSED_SHARED(FUSED_POLAR_TABLE, 82)

#endif
