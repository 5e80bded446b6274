/*
 * gpu_hip - the names of gpu.h for hipcc: waves of 64 lanes (gfx9) or 32 (gfx10 and
 * later), no asynchronous copies, no matrix units in this source.
 */
#ifndef KERNELS_GPU_HIP_H
#define KERNELS_GPU_HIP_H

#include <hip/hip_runtime.h>

/* Newer compilers drop the first macro and say the family instead. */
#if defined(__AMDGCN_WAVEFRONT_SIZE)
#define GPU_WAVE __AMDGCN_WAVEFRONT_SIZE
#elif defined(__HIP_DEVICE_COMPILE__) && !defined(__GFX8__) && !defined(__GFX9__)
#define GPU_WAVE 32
#else
#define GPU_WAVE 64
#endif
#define GPU_MATRIX 0
#define GPU_INLINE static __device__ __forceinline__

#define GPU_SHARED(name) \
	extern __shared__ __attribute__((aligned(16))) uint8_t gpu_shared_bytes[]; \
	uint8_t *name = gpu_shared_bytes

GPU_INLINE void
gpu_sync(void)
{
	__syncthreads();
}

/* Lanes of a wave go in step: only the compiler must not move memory across. */
GPU_INLINE void
gpu_sync_warp(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

template <class T>
GPU_INLINE T
gpu_shfl_xor(T v, int mask, int width)
{
	static_assert(sizeof v == 4, "shuffles move 4 bytes");
	return __builtin_bit_cast(T, __shfl_xor(__builtin_bit_cast(int, v), mask, width));
}

template <class T>
GPU_INLINE T
gpu_shfl(T v, int lane, int width)
{
	static_assert(sizeof v == 4, "shuffles move 4 bytes");
	return __builtin_bit_cast(T,
		__shfl(__builtin_bit_cast(int, v), lane & (width - 1), width));
}

GPU_INLINE void
gpu_copy16_async(void *to, const void *from)
{
	*(uint4 *)to = *(const uint4 *)from;
}

GPU_INLINE void
gpu_copy_commit(void)
{
}

template <int N>
GPU_INLINE void
gpu_copy_wait(void)
{
}

/* v_perm_b32 selects with whole bytes and has the high word first. */
GPU_INLINE uint32_t
gpu_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	uint32_t s = selector & 0x7777;

	s = (s | s << 8) & 0x00ff00ff;
	s = (s | s << 4) & 0x0f0f0f0f;
	return __builtin_amdgcn_perm(b, a, s);
}

GPU_INLINE uint32_t
gpu_funnel(uint32_t lo, uint32_t hi, uint32_t shift)
{
	return __builtin_amdgcn_alignbit(hi, lo, shift);
}

GPU_INLINE uint16_t
gpu_to_half(float f)
{
	return __builtin_bit_cast(uint16_t, (_Float16)f);
}

GPU_INLINE float
gpu_from_half(uint16_t h)
{
	return (float)__builtin_bit_cast(_Float16, h);
}

GPU_INLINE float
gpu_exp(float v)
{
	return __expf(v);
}

GPU_INLINE uint32_t
gpu_popc(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

GPU_INLINE uint32_t
gpu_bits(float v)
{
	return __builtin_bit_cast(uint32_t, v);
}

GPU_INLINE float
gpu_float(uint32_t bits)
{
	return __builtin_bit_cast(float, bits);
}

/* One rounding each: never part of a fused multiply-add. */
GPU_INLINE float
gpu_mul(float a, float b)
{
#pragma clang fp contract(off)
	return a * b;
}

GPU_INLINE float
gpu_add(float a, float b)
{
#pragma clang fp contract(off)
	return a + b;
}

/* Correctly rounded by hipcc's defaults; its __fsqrt_rn is not. */
GPU_INLINE float
gpu_div(float a, float b)
{
	return a / b;
}

GPU_INLINE float
gpu_sqrt(float v)
{
	return sqrtf(v);
}

GPU_INLINE double
gpu_sqrt_double(double v)
{
	return sqrt(v);
}

#endif
