/*
 * gpu_cpu - the names of gpu.h for a C++ compiler: kernels played by gpu_fiber.
 *
 * Compile with -x c++ -DGPU_CPU -DGPU_WAVE=32 or 64; no library of C++ is used.
 */
#ifndef KERNELS_GPU_CPU_H
#define KERNELS_GPU_CPU_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/gpu_fiber.h"

#ifndef GPU_WAVE
#define GPU_WAVE 32
#endif
#define GPU_MATRIX (GPU_WAVE == 32)

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
/* One section, so that each block finds it full of NaNs.  No initialisers, as on GPUs. */
#define __shared__ static __attribute__((section("gpu_shared")))
#define GPU_SHARED(name) uint8_t *name = gpu_fiber_now.shared

#define threadIdx (gpu_fiber_now.thread)
#define blockIdx (gpu_fiber_now.block)
#define blockDim (gpu_fiber_now.block_dim)
#define gridDim (gpu_fiber_now.grid_dim)

struct alignas(8) uint2 { uint32_t x, y; };
struct alignas(16) uint4 { uint32_t x, y, z, w; };
struct alignas(8) int2 { int32_t x, y; };
struct alignas(16) int4 { int32_t x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

static inline uint2 make_uint2(uint32_t x, uint32_t y) { return { x, y }; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return { x, y, z, w }; }
static inline int2 make_int2(int32_t x, int32_t y) { return { x, y }; }
static inline int4 make_int4(int32_t x, int32_t y, int32_t z, int32_t w) { return { x, y, z, w }; }
static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }

#define GPU_INLINE static inline

/* Where a call stands in the kernel's source: as a default argument, the caller's line. */
#define GPU_HERE int line = __builtin_LINE()

static inline void
gpu_sync(GPU_HERE)
{
	gpu_fiber_meet(GPU_MEET_BLOCK, line);
}

static inline void
gpu_sync_warp(GPU_HERE)
{
	gpu_fiber_meet(GPU_MEET_WAVE, line);
}

template <class T>
static inline T
gpu_shfl_from(T v, uint32_t lane, int line)
{
	static_assert(sizeof v == 4, "shuffles move 4 bytes");

	memcpy(gpu_fiber_mine(), &v, 4);
	gpu_fiber_meet(GPU_MEET_SHUFFLE, line);
	memcpy(&v, gpu_fiber_seen(lane, line), 4);
	return v;
}

static inline void
gpu_shfl_width(int width, int line)
{
	if (width < 2 || width > 32 || (width & (width - 1)))
		gpu_fiber_fault(line, "a shuffle's width is 2, 4, 8, 16 or 32");
}

template <class T>
static inline T
gpu_shfl_xor(T v, int mask, int width, GPU_HERE)
{
	gpu_shfl_width(width, line);
	if (mask < 0 || mask >= width)
		gpu_fiber_fault(line, "a shuffle's mask leaves its group");
	return gpu_shfl_from(v, gpu_fiber_now.lane ^ (uint32_t)mask, line);
}

template <class T>
static inline T
gpu_shfl(T v, int lane, int width, GPU_HERE)
{
	uint32_t in = (uint32_t)width - 1;

	gpu_shfl_width(width, line);
	return gpu_shfl_from(v, (gpu_fiber_now.lane & ~in) | ((uint32_t)lane & in), line);
}

static inline void
gpu_copy16_async(void *to, const void *from, GPU_HERE)
{
	gpu_fiber_copy(to, from, line);
}

static inline void
gpu_copy_commit(void)
{
	gpu_fiber_commit();
}

template <int N>
static inline void
gpu_copy_wait(void)
{
	gpu_fiber_wait(N);
}

static inline uint32_t
gpu_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	uint64_t both = (uint64_t)b << 32 | a;
	uint32_t r = 0;
	int i;

	for (i = 0; i < 4; i++)
		r |= (uint32_t)(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
	return r;
}

static inline uint32_t
gpu_funnel(uint32_t lo, uint32_t hi, uint32_t shift)
{
	return (uint32_t)(((uint64_t)hi << 32 | lo) >> (shift & 31));
}

static inline uint32_t
gpu_popc(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

static inline float
gpu_exp(float v)
{
	return expf(v);
}

static inline uint32_t
gpu_bits(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, 4);
	return bits;
}

static inline float
gpu_float(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, 4);
	return v;
}

/* One rounding each: compile with -ffp-contract=off. */
static inline float
gpu_mul(float a, float b)
{
	return a * b;
}

static inline float
gpu_add(float a, float b)
{
	return a + b;
}

static inline float
gpu_div(float a, float b)
{
	return a / b;
}

static inline float
gpu_sqrt(float v)
{
	return sqrtf(v);
}

static inline double
gpu_sqrt_double(double v)
{
	return sqrt(v);
}

static inline float
gpu_from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
	float f;

	if (rest < 0x0400) { /* zero or subnormal: exact as a product */
		f = (float)rest * 0x1p-24f;
		memcpy(&bits, &f, 4);
	} else {
		bits = (rest << 13) + ((rest < 0x7c00 ? 112u : 224u) << 23);
	}
	bits |= sign;
	memcpy(&f, &bits, 4);
	return f;
}

static inline uint16_t
gpu_to_half(float f)
{
	uint32_t bits, sign, low, odd;
	float scaled;

	memcpy(&bits, &f, 4);
	sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (bits >= 0x477ff000) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (bits < 0x38800000) { /* subnormal: the float adder rounds at 2^-24 */
		memcpy(&scaled, &bits, 4);
		scaled += 0.5f;
		memcpy(&low, &scaled, 4);
		return (uint16_t)(sign | (low - 0x3f000000));
	}
	odd = bits >> 13 & 1;
	return (uint16_t)(sign | ((bits - (112u << 23) + 0xfff + odd) >> 13));
}

#if GPU_MATRIX

/* Lane l shows a[4] and b[2]; row g of the product is in lanes 4 g to 4 g + 3. */
static inline void
gpu_mma_show(const uint32_t a[4], const uint32_t b[2], int line)
{
	uint32_t *mine = gpu_fiber_mine();

	memcpy(mine, a, 16);
	memcpy(mine + 4, b, 8);
	gpu_fiber_meet(GPU_MEET_MATRIX, line);
}

/* The 32-bit word that holds column k of row `row` of a; per: elements of a word. */
static inline uint32_t
gpu_mma_a(int row, int k, int per, int line)
{
	int word = k / per, high = word >= 4;

	return gpu_fiber_seen((uint32_t)(row % 8 * 4 + word % 4), line)[high * 2 + row / 8];
}

/* The word that holds row k of column n of b. */
static inline uint32_t
gpu_mma_b(int k, int n, int per, int line)
{
	int word = k / per;

	return gpu_fiber_seen((uint32_t)(n * 4 + word % 4), line)[4 + word / 4];
}

static inline void
gpu_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], GPU_HERE)
{
	int lane = (int)gpu_fiber_now.lane, i, k, row, column;

	gpu_mma_show(a, b, line);
	for (i = 0; i < 4; i++) {
		row = lane / 4 + i / 2 * 8;
		column = lane % 4 * 2 + i % 2;
		for (k = 0; k < 16; k++)
			d[i] += gpu_from_half((uint16_t)(gpu_mma_a(row, k, 2, line) >> k % 2 * 16)) *
				gpu_from_half((uint16_t)(gpu_mma_b(k, column, 2, line) >> k % 2 * 16));
	}
}

/* m16n8k32 of signed bytes. */
static inline void
gpu_mma_s8(int d[4], const uint32_t a[4], const uint32_t b[2], GPU_HERE)
{
	int lane = (int)gpu_fiber_now.lane, i, k, row, column;
	uint32_t sum;

	gpu_mma_show(a, b, line);
	for (i = 0; i < 4; i++) {
		row = lane / 4 + i / 2 * 8;
		column = lane % 4 * 2 + i % 2;
		sum = (uint32_t)d[i];
		for (k = 0; k < 32; k++)
			sum += (uint32_t)((int8_t)(gpu_mma_a(row, k, 4, line) >> k % 4 * 8) *
				(int8_t)(gpu_mma_b(k, column, 4, line) >> k % 4 * 8));
		d[i] = (int)sum;
	}
}

#endif
#endif
