/* The physical limit that benchmarks measure against: bytes from k to out. */
#include "kernels/gpu.h"

#define COPY_UNROLL 4

struct alignas(16) copy_chunk {
	uint32_t word[4];
};

/* bytes is a multiple of 16; any grid. */
GPU_KERNEL
copy_bytes(struct gpu_args a)
{
	const struct copy_chunk *from = (const struct copy_chunk *)a.k;
	struct copy_chunk *to = (struct copy_chunk *)a.out, held[COPY_UNROLL];
	uint64_t n = a.bytes / sizeof *to, step = (uint64_t)gridDim.x * blockDim.x;
	uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	for (; i + (COPY_UNROLL - 1) * step < n; i += COPY_UNROLL * step) {
#pragma unroll
		for (int u = 0; u < COPY_UNROLL; u++)
			held[u] = from[i + u * step];
#pragma unroll
		for (int u = 0; u < COPY_UNROLL; u++)
			to[i + u * step] = held[u];
	}
	for (; i < n; i += step)
		to[i] = from[i];
}
