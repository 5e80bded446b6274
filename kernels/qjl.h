/*
 * qjl - scores of sign sketches, for score and attention kernels: see score.h.
 *
 * acc = sum of (bit ? q : -q) = 2 * (sum of q where the bit is set) - (sum of q).  The
 * matrix way: a word of sign bits masked with 0x01010101 << i is four operands of 2^i, one
 * instruction for four signs.  The query is a 24-bit integer in three digits of 8 bits,
 * scaled down by 2^i in the columns that meet such operands; products and sums are exact
 * in 32-bit integers, so only the rounding of the query, 2^-21 of its largest, is felt.
 */
#ifndef KERNELS_QJL_H
#define KERNELS_QJL_H

#include "kernels/score.h"

#define QJL_BYTES 34
#define QJL_NORM_AT 32
#define QJL_PROJ 256
#define QJL_SCALE (1.2533141373155003f / 256.0f)
#define QJL_STEPS 8              /* of 32 sign bits for each key */
#define QJL_DIGITS 3
/* |q| < 2^QJL_BITS after scaling: three balanced digits hold a little less than 2^23. */
#define QJL_BITS 22

/* Query heads of this block; DIGITS for matrix units, else floats. */
struct qjl_floats {
	float q[SCORE_HEADS][QJL_PROJ];
};
struct qjl_digits {
	/* Four neighbouring bytes are an operand: see qjl_slot.  A head starts four banks
	 * after the one before it. */
	int8_t q[QJL_DIGITS][SCORE_HEADS][QJL_PROJ + 16];
	float sum[SCORE_HEADS], unscale[SCORE_HEADS];
};

GPU_DEVICE float
load_bf16(const uint8_t *base, uint32_t at)
{
	return gpu_float(load_half(base, at) << 16);
}

GPU_DEVICE void
qjl_floats_load(const gpu_args &a, const struct score_part &p, struct qjl_floats *to)
{
	for (uint32_t i = threadIdx.x; i < SCORE_HEADS * QJL_PROJ; i += SCORE_BLOCK)
		to->q[i / QJL_PROJ][i % QJL_PROJ] = i / QJL_PROJ < p.heads
			? ((const float *)a.q)[(uint64_t)p.first * QJL_PROJ + i]
			: 0.0f;
}

#if GPU_MATRIX
/*
 * Lane t of a key has bytes 8 t to 8 t + 7 of its signs, two words of four bytes.  Step s
 * takes bit s of each byte: words masked by 0x01010101 << (s & 3), shifted by s & 4.
 * The byte of the operand for sketch element e.
 */
GPU_DEVICE int
qjl_slot(int e)
{
	int t = e >> 6, word = e >> 5 & 1, byte = e >> 3 & 3, s = e & 7;

	return ((s * 2 + word) * 4 + t) * 4 + byte;
}

GPU_DEVICE void
qjl_digits_load(const gpu_args &a, const struct score_part &p, struct qjl_digits *to)
{
	int lane = threadIdx.x & 31, n;
	float v[QJL_PROJ / 32], top, sum, other, scale;
	uint32_t e;

	for (uint32_t h = threadIdx.x / 32; h < SCORE_HEADS; h += SCORE_BLOCK / 32) {
		const float *q = (const float *)a.q + (uint64_t)(p.first + h) * QJL_PROJ;

		top = sum = 0;
#pragma unroll
		for (int i = 0; i < QJL_PROJ / 32; i++) {
			v[i] = h < p.heads ? q[32 * i + lane] : 0.0f;
			sum += v[i];
			top = fmaxf(top, fabsf(v[i]));
		}
		for (int m = 1; m < 32; m *= 2) {
			other = gpu_shfl_xor(top, m, 32);
			top = fmaxf(top, other);
			sum += gpu_shfl_xor(sum, m, 32);
		}
		/* top < 2^(e - 126).  A query that is not finite shows in its sum. */
		e = gpu_bits(top) >> 23;
		e = e < 30 ? 30 : e > 250 ? 250 : e;
		/* An element meets operands of 2^(bit & 3), and lane & 3 is its bit & 3. */
		scale = gpu_float((127 + QJL_BITS - (e - 126) - (lane & 3)) << 23);
#pragma unroll
		for (int i = 0; i < QJL_PROJ / 32; i++) {
			n = (int)rintf(v[i] * scale);
#pragma unroll
			for (int d = 0; d < QJL_DIGITS; d++) {
				int digit = (int)(int8_t)(n & 255);

				to->q[d][h][qjl_slot(32 * i + lane)] = (int8_t)digit;
				n = (n - digit) >> 8;
			}
		}
		if (lane == 0) {
			to->unscale[h] = gpu_float((127 - QJL_BITS + (e - 126)) << 23);
			to->sum[h] = sum;
		}
	}
}

/*
 * Columns of HEADS query heads: column c of all tiles is head c % HEADS, digit
 * QJL_DIGITS - 1 - c / HEADS.
 */
template <int HEADS> struct qjl_columns {
	enum { TILES = (HEADS * QJL_DIGITS + 7) / 8 };
};

/* This lane's operands. */
template <int HEADS>
GPU_DEVICE void
qjl_operands(const struct qjl_digits *q, uint32_t b[QJL_STEPS][qjl_columns<HEADS>::TILES][2])
{
	int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;

#pragma unroll
	for (int i = 0; i < qjl_columns<HEADS>::TILES; i++) {
		int column = 8 * i + g, digit = QJL_DIGITS - 1 - column / HEADS;
		const uint32_t *from = (const uint32_t *)q->q[digit < 0 ? 0 : digit][column % HEADS];

#pragma unroll
		for (int s = 0; s < QJL_STEPS; s++)
#pragma unroll
			for (int word = 0; word < 2; word++)
				b[s][i][word] = digit < 0 ? 0 : from[(2 * s + word) * 4 + t];
	}
}

/* Sums over set bits of 16 keys, in units of unscale: lane (g, t) gets rows g (0, 1) and
 * g + 8 (2, 3) of heads 2t and 2t + 1, modulo HEADS. */
template <int HEADS>
GPU_DEVICE void
qjl_rows(const uint8_t *stage, uint32_t at,
	const uint32_t b[QJL_STEPS][qjl_columns<HEADS>::TILES][2], float out[4])
{
	enum { TILES = qjl_columns<HEADS>::TILES };
	int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
	uint32_t low[2], high[2], x[4];
	int acc[TILES][4] = {};

	load_words<2>(stage, at + g * QJL_BYTES + 8 * t, low);
	load_words<2>(stage, at + (g + 8) * QJL_BYTES + 8 * t, high);
#pragma unroll
	for (int s = 0; s < QJL_STEPS; s++) {
		uint32_t mask = 0x01010101u << (s & 3);

		x[0] = low[0] >> (s & 4) & mask;
		x[1] = high[0] >> (s & 4) & mask;
		x[2] = low[1] >> (s & 4) & mask;
		x[3] = high[1] >> (s & 4) & mask;
#pragma unroll
		for (int i = 0; i < TILES; i++)
			gpu_mma_u8s8(acc[i], x, b[s][i]);
	}
#pragma unroll
	for (int j = 0; j < 4; j++) {
		float v = 0;

#pragma unroll
		for (int i = 0; i < TILES; i++) {
			int digit = QJL_DIGITS - 1 - (8 * i + 2 * t + (j & 1)) / HEADS;

			/* Columns past the digits are zero. */
			v += (float)acc[i][j] * gpu_float((127u + 8 * (digit < 0 ? 0 : digit)) << 23);
		}
		if (HEADS <= 2)
			v += gpu_shfl_xor(v, 1, 4);
		if (HEADS <= 4)
			v += gpu_shfl_xor(v, 2, 4);
		out[j] = v;
	}
}
#endif

#endif
