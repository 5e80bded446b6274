/* gpu_cuda - the names of gpu.h for nvcc.  See gpu.h. */
#ifndef KERNELS_GPU_CUDA_H
#define KERNELS_GPU_CUDA_H

#include <cuda_fp16.h>

#define GPU_WAVE 32
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define GPU_MATRIX 1
#else
#define GPU_MATRIX 0
#endif
#define GPU_INLINE static __device__ __forceinline__
#define GPU_SHARED(name) extern __shared__ __align__(16) uint8_t name[]

GPU_INLINE void
gpu_sync(void)
{
	__syncthreads();
}

GPU_INLINE void
gpu_sync_warp(void)
{
	__syncwarp();
}

template <class T>
GPU_INLINE T
gpu_shfl_xor(T v, int mask, int width)
{
	return __shfl_xor_sync(0xffffffffu, v, mask, width);
}

template <class T>
GPU_INLINE T
gpu_shfl(T v, int lane, int width)
{
	return __shfl_sync(0xffffffffu, v, lane, width);
}

GPU_INLINE void
gpu_copy16_async(void *shared, const void *global)
{
#if GPU_MATRIX
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
			     (uint32_t)__cvta_generic_to_shared(shared)),
		     "l"(global)
		     : "memory");
#else
	*(uint4 *)shared = *(const uint4 *)global;
#endif
}

GPU_INLINE void
gpu_copy_commit(void)
{
#if GPU_MATRIX
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most N groups of this thread are open. */
template <int N>
GPU_INLINE void
gpu_copy_wait(void)
{
#if GPU_MATRIX
	asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

GPU_INLINE uint32_t
gpu_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	uint32_t r;

	/* __byte_perm would mask the selector first. */
	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
	return r;
}

GPU_INLINE uint32_t
gpu_funnel(uint32_t lo, uint32_t hi, uint32_t shift)
{
	return __funnelshift_r(lo, hi, shift);
}

GPU_INLINE uint16_t
gpu_to_half(float v)
{
	return __half_as_ushort(__float2half_rn(v));
}

GPU_INLINE float
gpu_from_half(uint16_t h)
{
	return __half2float(__ushort_as_half(h));
}

/* Two in one instruction; a is the low half. */
#define GPU_TO_HALF2
GPU_INLINE uint32_t
gpu_to_half2(float a, float b)
{
	__half2 h = __floats2half2_rn(a, b);

	return *(const uint32_t *)&h;
}

GPU_INLINE float
gpu_exp(float v)
{
	return __expf(v);
}

GPU_INLINE uint32_t
gpu_popc(uint32_t v)
{
	return (uint32_t)__popc(v);
}

GPU_INLINE uint32_t
gpu_bits(float v)
{
	return __float_as_uint(v);
}

GPU_INLINE float
gpu_float(uint32_t bits)
{
	return __uint_as_float(bits);
}

/* One rounding each: never part of a fused multiply-add. */
GPU_INLINE float
gpu_mul(float a, float b)
{
	return __fmul_rn(a, b);
}

GPU_INLINE float
gpu_add(float a, float b)
{
	return __fadd_rn(a, b);
}

GPU_INLINE float
gpu_div(float a, float b)
{
	return __fdiv_rn(a, b);
}

GPU_INLINE float
gpu_sqrt(float v)
{
	return __fsqrt_rn(v);
}

GPU_INLINE double
gpu_sqrt_double(double v)
{
	return __dsqrt_rn(v);
}

#if GPU_MATRIX
/* d += a * b; fragments as PTX lays them out for mma.m16n8k16 and mma.m16n8k32. */
GPU_INLINE void
gpu_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
	    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

GPU_INLINE void
gpu_mma_s8(int d[4], const uint32_t a[4], const uint32_t b[2])
{
	asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
	    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#endif
