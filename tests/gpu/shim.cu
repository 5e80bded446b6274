/* Kernels of test_gpu_shim: what gpu_cpu.h must play right, and what it must refuse. */
#include "kernels/gpu.h"

/* A block sums its numbers through shared memory and two barriers. */
GPU_KERNEL
test_barrier(struct gpu_args a)
{
	__shared__ float part[256];
	const float *in = (const float *)a.k;
	float *out = (float *)a.out, sum = 0;
	unsigned i = threadIdx.x, at = blockIdx.x * blockDim.x;

	part[i] = in[at + i];
	gpu_sync();
	for (unsigned j = 0; j < blockDim.x; j++)
		sum += part[j];
	gpu_sync();
	part[i] = sum + (float)i;
	gpu_sync();
	out[at + i] = part[blockDim.x - 1 - i];
}

/* The same without the first barrier: numbers that are not there yet. */
GPU_KERNEL
test_no_barrier(struct gpu_args a)
{
	__shared__ float part[256];
	const float *in = (const float *)a.k;
	float *out = (float *)a.out, sum = 0;

	part[threadIdx.x] = in[threadIdx.x];
	for (unsigned j = 0; j < blockDim.x; j++)
		sum += part[j];
	out[threadIdx.x] = sum;
}

/* a.visible: the width.  Sums of groups, then the lane numbers of a rotation. */
GPU_KERNEL
test_shuffle(struct gpu_args a)
{
	const float *in = (const float *)a.k;
	float *out = (float *)a.out, v = in[threadIdx.x];
	int width = (int)a.visible, lane = (int)threadIdx.x;

	for (int m = 1; m < width; m *= 2)
		v += gpu_shfl_xor(v, m, width);
	out[lane] = v;
	out[blockDim.x + threadIdx.x] = (float)gpu_shfl(lane, lane + 1, width);
}

GPU_KERNEL
test_copy_async(struct gpu_args a)
{
	GPU_SHARED(bytes);
	uint4 *held = (uint4 *)bytes, *out = (uint4 *)a.out;
	const uint4 *in = (const uint4 *)a.k;
	unsigned i = threadIdx.x, n = blockDim.x;

	gpu_copy16_async(&held[i], &in[i]);
	gpu_copy_commit();
	gpu_copy16_async(&held[n + i], &in[n + i]);
	gpu_copy_commit();
	gpu_copy_wait<1>();
	gpu_sync();
	out[i] = held[n - 1 - i];
	if (a.visible)
		gpu_copy_wait<0>();
	gpu_sync();
	out[n + i] = held[n + n - 1 - i];
}

#if GPU_MATRIX
/* One warp: A [16][K] in k, B [8][K] (column by column) in v, out [16][8].  a.visible: 0
 * for f16 (K 16), 1 for u8 x s8, 2 for s8 x s8 (K 32), 3 for f16 in two steps of K 8. */
GPU_KERNEL
test_mma(struct gpu_args a)
{
	const uint32_t *m = (const uint32_t *)a.k, *n = (const uint32_t *)a.v;
	unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
	uint32_t fa[4], fb[2];
	float *out = (float *)a.out, f[4] = { 1, 1, 1, 1 };
	int s[4] = { 1, 1, 1, 1 };

	fa[0] = m[g * 8 + t];
	fa[1] = m[(g + 8) * 8 + t];
	fa[2] = m[g * 8 + t + 4];
	fa[3] = m[(g + 8) * 8 + t + 4];
	fb[0] = n[g * 8 + t];
	fb[1] = n[g * 8 + t + 4];
	if (a.visible == 0)
		gpu_mma_f16(f, fa, fb);
	else
		gpu_mma_s8(s, fa, fb);
	for (unsigned i = 0; i < 4; i++)
		out[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = a.visible ? (float)s[i] : f[i];
}
#endif

GPU_KERNEL
test_bits(struct gpu_args a)
{
	uint32_t *out = (uint32_t *)a.out;

	if (threadIdx.x == 0) {
		out[0] = gpu_prmt(0x33221100, 0x77665544, 0x7250);
		out[1] = gpu_funnel(0x89abcdef, 0x01234567, 12);
		out[2] = gpu_funnel(0x89abcdef, 0x01234567, 0);
		out[3] = gpu_popc(0xf0f00001);
	}
	for (unsigned i = threadIdx.x; i < 65536; i += blockDim.x) {
		float v = gpu_from_half((uint16_t)i);

		out[16 + i] = gpu_bits(v);
		out[16 + 65536 + i] = gpu_to_half(v);
		/* Half way to the next one up: to the even one of both. */
		out[16 + 131072 + i] = gpu_to_half((v + gpu_from_half((uint16_t)(i + 1))) / 2);
	}
}

/* ---- refused --------------------------------------------------------------------- */

GPU_KERNEL
test_divergent_barrier(struct gpu_args a)
{
	if (threadIdx.x != a.visible)
		gpu_sync();
}

GPU_KERNEL
test_divergent_kinds(struct gpu_args a)
{
	if (threadIdx.x == a.visible)
		(void)gpu_shfl(1, 0, 4);
	else
		gpu_sync();
}

GPU_KERNEL
test_divergent_waves(struct gpu_args a)
{
	if (threadIdx.x / GPU_WAVE == a.visible)
		gpu_sync_warp();
	else
		gpu_sync();
}

GPU_KERNEL
test_far_lane(struct gpu_args a)
{
	((uint32_t *)a.out)[threadIdx.x] = gpu_shfl(threadIdx.x, 7, 8);
}

GPU_KERNEL
test_wide_mask(struct gpu_args a)
{
	((uint32_t *)a.out)[threadIdx.x] = gpu_shfl_xor(threadIdx.x, 16, 16);
}

GPU_KERNEL
test_address(struct gpu_args a)
{
	((float *)a.out)[threadIdx.x] = ((const float *)a.k)[threadIdx.x + a.visible];
}

GPU_KERNEL
test_misaligned(struct gpu_args a)
{
	*(uint4 *)(a.out + 4) = make_uint4(1, 2, 3, 4);
}

GPU_KERNEL
test_shared_end(struct gpu_args a)
{
	GPU_SHARED(bytes);

	bytes[a.visible + threadIdx.x] = 1;
}

GPU_KERNEL
test_shared_front(struct gpu_args a)
{
	GPU_SHARED(bytes);

	bytes[-(int)a.visible] = 1;
}
