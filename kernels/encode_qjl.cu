/*
 * The encoder of qjl: 256 signs of <key, column of Pi> and the length.
 *
 * A block takes 32 keys through Pi once.  A thread has eight columns, whose signs are one
 * byte, of eight keys: 64 sums in registers, each in the order of the elements, for four
 * loads of 16 bytes per row of Pi.
 */
#include "kernels/encode.h"

#define QJL_BYTES 34
#define QJL_PROJ 256
#define QJL_COLUMNS 8           /* of a thread, and as many keys */
#define QJL_GROUPS (QJL_PROJ / QJL_COLUMNS)
#define QJL_PITCH 36            /* floats from element to element: keys, and a pad */

union alignas(16) qjl_shared {
	float x[ENCODE_HEAD * QJL_PITCH]; /* [element][key] */
	uint8_t packed[ENCODE_TILE * QJL_BYTES];
};

/* Loads the tile's keys, transposed; zeros past the last. */
GPU_DEVICE void
load_transposed(const gpu_args &a, float *x)
{
	const float *from = (const float *)a.x +
			    (uint64_t)blockIdx.x * ENCODE_TILE * ENCODE_HEAD;
	uint32_t n = tile_keys(a), element = threadIdx.x;

	for (uint32_t key = 0; key < ENCODE_TILE; key++)
		x[element * QJL_PITCH + key] =
			key < n ? from[key * ENCODE_HEAD + element] : 0.0f;
}

GPU_DEVICE float
length_of(const float *x, uint32_t key)
{
	double s = 0;

#pragma unroll 8
	for (int i = 0; i < ENCODE_HEAD; i++) {
		double v = (double)x[i * QJL_PITCH + key];

		s += v * v;
	}
	return (float)gpu_sqrt_double(s);
}

/* The sketches of the thread's eight keys at its eight columns. */
GPU_DEVICE void
sketch(const gpu_args &a, const union qjl_shared &s, uint32_t keys, uint32_t columns,
       float sum[8][8])
{
	const float *pi = (const float *)a.pi + columns * QJL_COLUMNS;
	const float *x = s.x + keys * 8;
	float p[8], v[8];

#pragma unroll
	for (int k = 0; k < 8; k++)
#pragma unroll
		for (int j = 0; j < 8; j++)
			sum[k][j] = 0;
#pragma unroll 2
	for (int i = 0; i < ENCODE_HEAD; i++) {
		load_four(pi + i * QJL_PROJ, p);
		load_four(pi + i * QJL_PROJ + 4, p + 4);
		load_four(x + i * QJL_PITCH, v);
		load_four(x + i * QJL_PITCH + 4, v + 4);
#pragma unroll
		for (int k = 0; k < 8; k++)
#pragma unroll
			for (int j = 0; j < 8; j++)
				sum[k][j] += gpu_mul(v[k], p[j]);
	}
}

GPU_KERNEL __launch_bounds__(ENCODE_BLOCK)
encode_qjl(struct gpu_args a)
{
	__shared__ union qjl_shared s;
	uint32_t columns = threadIdx.x % QJL_GROUPS, keys = threadIdx.x / QJL_GROUPS;
	float sum[8][8], length = 0;

	load_transposed(a, s.x);
	gpu_sync();
	if (threadIdx.x < ENCODE_TILE)
		length = length_of(s.x, threadIdx.x);
	sketch(a, s, keys, columns, sum);
	gpu_sync(); /* the keys are done with: their room is for the bytes */
#pragma unroll
	for (int k = 0; k < 8; k++) {
		uint32_t byte = 0;

#pragma unroll
		for (int j = 0; j < 8; j++)
			byte |= (sum[k][j] > 0 ? 1u : 0u) << j;
		s.packed[(8 * keys + k) * QJL_BYTES + columns] = (uint8_t)byte;
	}
	if (threadIdx.x < ENCODE_TILE)
		*(uint16_t *)(s.packed + threadIdx.x * QJL_BYTES + 32) =
			(uint16_t)bf16_even(length);
	gpu_sync();
	tile_store(a, s.packed, QJL_BYTES);
}
