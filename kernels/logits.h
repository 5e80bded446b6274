/*
 * logits - scores of sign sketches as attention wants them: see digits.h.
 *
 * Here keys are columns, eight in a product, and the digits of the heads are rows, so that
 * lane (g, t) gets head g for keys 2t and 2t + 1: the weights it then needs as operands.
 */
#ifndef KERNELS_LOGITS_H
#define KERNELS_LOGITS_H

#include "kernels/digits.h"

#if GPU_MATRIX

/* Rows R = 16 * tile + row: head R % HEADS, digit DIGITS - 1 - R / HEADS. */
template <int HEADS> struct digit_rows {
	enum { TILES = (HEADS * DIGITS + 15) / 16 };
	uint32_t a[DIGIT_STEPS][TILES][4];

	__device__ void load(const struct digit_query *q)
	{
		int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;

#pragma unroll
		for (int i = 0; i < TILES; i++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				int row = 16 * i + 8 * half + g, digit = DIGITS - 1 - row / HEADS;
				const uint32_t *from =
					(const uint32_t *)q->q[digit < 0 ? 0 : digit][row % HEADS];

#pragma unroll
				for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
					for (int word = 0; word < 2; word++)
						a[s][i][2 * word + half] = digit < 0
							? 0
							: from[digit_slot(t, s, word, 0) / 4];
			}
	}

	__device__ void multiply(int acc[TILES][4], int s, const uint32_t b[2]) const
	{
#pragma unroll
		for (int i = 0; i < TILES; i++)
			gpu_mma_s8(acc[i], a[s][i], b);
	}

	/* Step s of several tiles of keys. */
	template <int WIDE>
	__device__ void multiply_all(int acc[WIDE][TILES][4], int s, const uint32_t b[WIDE][2]) const
	{
#pragma unroll
		for (int k = 0; k < WIDE; k++)
			multiply(acc[k], s, b[k]);
	}

	/* What this lane has of the sums of a head for keys 2t and 2t + 1. */
	static __device__ void partial(const int acc[TILES][4], float v[2])
	{
		int g = threadIdx.x >> 2 & 7;

#pragma unroll
		for (int j = 0; j < 2; j++)
			if (HEADS == 8)
				v[j] = (float)acc[0][j] * 65536.0f +
					(float)(acc[0][j + 2] * 256 + acc[TILES - 1][j]);
			else
				/* Rows 0 to 3 digit 2, 4 to 7 digit 1, 8 to 11 digit 0. */
				v[j] = (float)acc[0][j] * (g < 4 ? 65536.0f : 256.0f) + (float)acc[0][j + 2];
	}

	/* All of head g, for lanes g < HEADS; every lane takes part. */
	static __device__ void join(float v[2])
	{
#pragma unroll
		for (int j = 0; j < 2 && HEADS != 8; j++)
			v[j] += gpu_shfl_xor(v[j], 16, 32);
	}
};

/* The same rows in shared memory, for kernels that have no registers to spare. */
template <int HEADS> struct digit_rows_shared : digit_rows<HEADS> {
	enum { TILES = digit_rows<HEADS>::TILES, BYTES = DIGIT_STEPS * TILES * 32 * 16 };
	const uint4 *lanes;

	__device__ void load(const struct digit_query *q)
	{
		uint4 *to = (uint4 *)((uint8_t *)q + DIGIT_QUERY_BYTES);
		uint32_t lane = threadIdx.x & 31;

		/* Every warp writes the same. */
		digit_rows<HEADS>::load(q);
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
			for (int i = 0; i < TILES; i++)
				to[(s * TILES + i) * 32 + lane] = make_uint4(this->a[s][i][0],
					this->a[s][i][1], this->a[s][i][2], this->a[s][i][3]);
		lanes = to + lane;
		gpu_sync();
	}

	/* Step s of several tiles of keys. */
	template <int WIDE>
	__device__ void multiply_all(int acc[WIDE][TILES][4], int s, const uint32_t b[WIDE][2]) const
	{
#pragma unroll
		for (int i = 0; i < TILES; i++) {
			const uint4 v = lanes[(s * TILES + i) * 32];
			const uint32_t x[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
			for (int k = 0; k < WIDE; k++)
				gpu_mma_s8(acc[k][i], x, b[k]);
		}
	}
};

template <int HEADS_, class ROWS = digit_rows<HEADS_>, int WIDE_ = HEADS_ == 8 ? 2 : 4>
struct logit_engine {
	enum {
		BYTES = QJL_BYTES,
		HEADS = HEADS_,
		WIDE = WIDE_,
	};
	typedef ROWS rows;
	uint8_t *shared;
	rows query;
	float scale, extra;             /* of this lane's head */
	uint32_t codes, norm;           /* where in a tile */

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		struct digit_query *q = (struct digit_query *)shared;
		uint32_t g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;

		for (uint32_t h = threadIdx.x / 32; h < SCORE_HEADS; h += SCORE_BLOCK / 32)
			qjl_bytes::prepare_head(args, p, h, q);
		gpu_sync();
		query.load(q);
		scale = q->scale[g % HEADS];
		extra = q->extra[g % HEADS];
		codes = lead + g * BYTES + 8 * t;
		norm = lead + 2 * t * BYTES + QJL_NORM_AT;
	}

	/* Scores of head g for keys 2t and 2t + 1 of each tile. */
	__device__ void tiles(const uint8_t *stage, float v[WIDE][2])
	{
		int acc[WIDE][rows::TILES][4] = {};
		uint32_t w[WIDE][4], b[WIDE][2];

#pragma unroll
		for (int i = 0; i < WIDE; i++)
			qjl_bytes::load(stage + i * TILE_KEYS * BYTES, codes, w[i]);
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++) {
#pragma unroll
			for (int i = 0; i < WIDE; i++)
				qjl_bytes::operands(NULL, w[i], s, b[i]);
			query.template multiply_all<WIDE>(acc, s, b);
		}
#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			rows::partial(acc[i], v[i]);
			rows::join(v[i]);
#pragma unroll
			for (int j = 0; j < 2; j++)
				v[i][j] = (QJL_SCALE * load_bf16(stage + (i * TILE_KEYS + j) * BYTES, norm)) *
					(v[i][j] * scale + extra);
		}
	}
};

#endif

#endif
