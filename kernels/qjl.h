/* qjl - what score and attention kernels share of the sign sketches. */
#ifndef KERNELS_QJL_H
#define KERNELS_QJL_H

#include "kernels/score.h"

#define QJL_BYTES 34
#define QJL_NORM_AT 32
#define QJL_PROJ 256
#define QJL_SCALE (1.2533141373155003f / 256.0f)

struct qjl_query {
	float q[SCORE_HEADS][QJL_PROJ];
};

GPU_DEVICE float
load_bf16(const uint8_t *base, uint32_t at)
{
	return gpu_float(load_half(base, at) << 16);
}

GPU_DEVICE void
qjl_query_load(const gpu_args &a, const struct score_part &p, struct qjl_query *to)
{
	for (uint32_t i = threadIdx.x; i < SCORE_HEADS * QJL_PROJ; i += blockDim.x)
		to->q[i / QJL_PROJ][i % QJL_PROJ] = i / QJL_PROJ < p.heads
			? ((const float *)a.q)[(uint64_t)p.first * QJL_PROJ + i]
			: 0.0f;
}

/* This lane's quarter of the sum of (bit ? q : -q), for each head. */
GPU_DEVICE void
qjl_sums(const struct qjl_query *query, const uint8_t *key, uint32_t at, int t,
	float acc[SCORE_HEADS])
{
	uint32_t w[2];

	load_words<2>(key, at + 8 * t, w);
#pragma unroll
	for (int h = 0; h < SCORE_HEADS; h++)
		acc[h] = 0;
#pragma unroll 8
	for (int i = 0; i < 64; i++) {
		uint32_t flip = (~w[i >> 5] >> (i & 31) & 1) << 31;

#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++)
			acc[h] += gpu_float(gpu_bits(query->q[h][64 * t + i]) ^ flip);
	}
}

#endif
