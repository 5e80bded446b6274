/*
 * gpu - one source for nvcc, hipcc and the CPU shim: the few names that differ.
 *
 * Device code only: kernels are loaded as a code object through the driver, so there is
 * no launch syntax and no runtime call here.  A wave has GPU_WAVE lanes, 32 or 64; code
 * that shuffles names the width of its own group (4, 8, 16 or 32) and so is right for
 * both.  GPU_MATRIX says whether gpu_mma_* exist: CUDA from sm_80, and the shim at 32.
 */
#ifndef KERNELS_GPU_H
#define KERNELS_GPU_H

#include "kernels/gpu_args.h"

#if defined(GPU_CPU)
#include "kernels/gpu_cpu.h"
#elif defined(__HIPCC__) || defined(__HIP__)
#include "kernels/gpu_hip.h"
#else
#include "kernels/gpu_cuda.h"
#endif

#define GPU_KERNEL extern "C" __global__ void
#define GPU_DEVICE static __device__ __forceinline__

/* Two halves of a word, a the low one. */
#ifndef GPU_TO_HALF2
GPU_DEVICE uint32_t
gpu_to_half2(float a, float b)
{
	return gpu_to_half(a) | (uint32_t)gpu_to_half(b) << 16;
}
#endif

#endif
