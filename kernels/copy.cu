/* The physical limit that benchmarks measure against: bytes from k to out. */
#include "kernels/gpu.h"
#include "kernels/gpu_shape.h"

struct alignas(16) copy_chunk {
	uint32_t word[4];
};

/* bytes is a multiple of 16; blocks of COPY_UNROLL chunks for each thread. */
GPU_KERNEL
copy_bytes(struct gpu_args a)
{
	const struct copy_chunk *from = (const struct copy_chunk *)a.k;
	struct copy_chunk *to = (struct copy_chunk *)a.out, held[COPY_UNROLL];
	uint64_t n = a.bytes / sizeof *to;
	uint64_t i = (uint64_t)blockIdx.x * (COPY_UNROLL * blockDim.x) + threadIdx.x;

	/* Each block a piece of its own: faster than one that strides over the grid. */
#pragma unroll
	for (int u = 0; u < COPY_UNROLL; u++)
		if (i + u * blockDim.x < n)
			held[u] = from[i + u * blockDim.x];
#pragma unroll
	for (int u = 0; u < COPY_UNROLL; u++)
		if (i + u * blockDim.x < n)
			to[i + u * blockDim.x] = held[u];
}
