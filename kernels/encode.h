/*
 * encode - what the encoders share: tiles of keys through shared memory, the transforms,
 * and the roundings that ref defines.
 *
 * Blocks come out byte for byte as ref writes them.  Hence every product that meets a sum
 * goes through gpu_mul, and sums run in the order of the elements: a key belongs to four
 * lanes, a quarter each, and a sum is handed from lane to lane.
 *
 * Global memory is written once: a block packs its keys in shared memory, then copies
 * whole chunks.  All lanes stay until the end, those of keys past the last one, too.
 */
#ifndef KERNELS_ENCODE_H
#define KERNELS_ENCODE_H

#include "kernels/encode_shape.h"
#include "kernels/gpu.h"

#define ENCODE_HEAD 128
#define ENCODE_QUARTER 32
#define ENCODE_PITCH 36         /* floats from quarter to quarter: spreads the banks */
#define ENCODE_TINY 1e-10f      /* a shorter vector has no direction */
#define ENCODE_SIGN 0x80000000u

/* Four floats at an aligned address. */
GPU_DEVICE void
load_four(const float *from, float v[4])
{
	float4 four = *(const float4 *)from;

	v[0] = four.x;
	v[1] = four.y;
	v[2] = four.z;
	v[3] = four.w;
}

GPU_DEVICE void
store_four(float *to, const float v[4])
{
	*(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
}

/* Keys of this block's tile: ENCODE_TILE, fewer in the last. */
GPU_DEVICE uint32_t
tile_keys(const gpu_args &a)
{
	uint32_t left = a.n_kv - blockIdx.x * ENCODE_TILE;

	return left < ENCODE_TILE ? left : ENCODE_TILE;
}

/* Copies the packed tile out. */
GPU_DEVICE void
tile_store(const gpu_args &a, const uint8_t *bytes, uint32_t key_bytes)
{
	uint8_t *to = (uint8_t *)a.out + (uint64_t)blockIdx.x * ENCODE_TILE * key_bytes;
	uint32_t n = tile_keys(a) * key_bytes;

	for (uint32_t i = threadIdx.x; i < n / 16; i += ENCODE_BLOCK)
		((uint4 *)to)[i] = ((const uint4 *)bytes)[i];
	for (uint32_t i = (n & ~15u) + threadIdx.x; i < n; i += ENCODE_BLOCK)
		to[i] = bytes[i];
}

/* To fp16, half away from zero: the hardware's half to even is another format. */
GPU_DEVICE uint32_t
fp16_away(float v)
{
	uint32_t u = gpu_bits(v), a = u & ~ENCODE_SIGN, h;
	int e = (int)(a >> 23) - 112;

	if (a >= 0x7f800000u)
		h = a > 0x7f800000u ? 0x7e00 : 0x7c00;
	else if (a >= 0x47800000u)
		h = 0x7c00;
	else if (e > 0)
		h = (a - 0x38000000u + 0x1000) >> 13;
	else if (e < -10)
		h = 0;
	else
		h = (((a & 0x7fffff) | 0x800000) + (1u << (13 - e))) >> (14 - e);
	return (u >> 16 & 0x8000) | h;
}

/* To bf16, half to even; a NaN stays one. */
GPU_DEVICE uint32_t
bf16_even(float v)
{
	uint32_t u = gpu_bits(v);

	return v != v ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* v times entry i of a +-1 vector, given the word of its bit map. */
GPU_DEVICE float
signed_by(float v, uint32_t map, int i)
{
	return gpu_float(gpu_bits(v) ^ (~map << (31 - i) & ENCODE_SIGN));
}

/* 1 / length, or 0 for want of a direction. */
GPU_DEVICE float
reciprocal(float length)
{
	return length > ENCODE_TINY ? gpu_div(1.0f, length) : 0.0f;
}

/* The number of the N - 1 ascending thresholds that v is not below.  N: a power of 2. */
template <int N>
GPU_DEVICE uint32_t
below(float v, const float *t)
{
	uint32_t c = 0;

#pragma unroll
	for (uint32_t half = N / 2; half > 0; half /= 2)
		c += v < t[c + half - 1] ? 0 : half;
	return c;
}

/* The butterflies between the registers of a lane: distances 1 to N / 2. */
template <int N>
GPU_DEVICE void
hadamard_own(float v[N])
{
#pragma unroll
	for (int h = 1; h < N; h *= 2)
#pragma unroll
		for (int i = 0; i < N; i++)
			if (!(i & h)) {
				float a = v[i], b = v[i + h];

				v[i] = a + b;
				v[i + h] = a - b;
			}
}

/* And between the lanes of a group, of which this is number `lane`. */
template <int N, int LANES>
GPU_DEVICE void
hadamard_group(float v[N], uint32_t lane)
{
#pragma unroll
	for (int h = 1; h < LANES; h *= 2) {
		/* The upper lane of a pair takes the difference: other - own. */
		uint32_t upper = lane & h ? ENCODE_SIGN : 0;

#pragma unroll
		for (int i = 0; i < N; i++)
			v[i] = gpu_shfl_xor(v[i], h, LANES) + gpu_float(gpu_bits(v[i]) ^ upper);
	}
}

#endif
