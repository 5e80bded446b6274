/*
 * The peers that benchmarks compare with: the way public kernels score and attend.  One
 * warp for each key and query head, bytes loaded as they lie, a reduction for each key;
 * attention walks all tokens with one warp for each head and transforms every value.
 * Simple enough to be checked by reading, and checked like any other variant.
 */
#include "kernels/gpu.h"

#define PLAIN_BLOCK 256

GPU_DEVICE float
plain_half(const uint8_t *p)
{
	return gpu_from_half((uint16_t)(p[0] | p[1] << 8));
}

GPU_DEVICE float
plain_sum(float v)
{
	for (int m = 16; m > 0; m /= 2)
		v += gpu_shfl_xor(v, m, 32);
	return v;
}

GPU_DEVICE float
plain_sign(const uint32_t *map, int i)
{
	return map[i >> 5] >> (i & 31) & 1 ? 1.0f : -1.0f;
}

/* Butterfly over the four elements of each of `lanes` lanes. */
GPU_DEVICE void
plain_hadamard(float v[4], int lane, int lanes)
{
	float o;

	for (int h = 1; h <= 2; h *= 2)
		for (int i = 0; i < 4; i++)
			if (!(i & h)) {
				o = v[i + h];
				v[i + h] = v[i] - o;
				v[i] += o;
			}
	for (int m = 1; m < lanes; m *= 2)
		for (int i = 0; i < 4; i++) {
			o = gpu_shfl_xor(v[i], m, 32);
			v[i] = lane & m ? o - v[i] : v[i] + o;
		}
}

/* Element i of a key, in the space that its query is in. */
struct bytes_turbo3 {
	enum { BYTES = 56 };
	static __device__ float value(const uint8_t *k, const gpu_tables *t, int i, bool)
	{
		const uint8_t *b = k + i / 32 * 14;
		int j = i % 32, code = (b[2 + j / 4] >> 2 * (j & 3) & 3) | (b[10 + j / 8] >> (j & 7) & 1) << 2;

		return t->turbo3_c[code] * plain_half(b);
	}
};
struct bytes_turbo4 {
	enum { BYTES = 72 };
	static __device__ float value(const uint8_t *k, const gpu_tables *t, int i, bool)
	{
		const uint8_t *b = k + i / 32 * 18;
		int j = i % 32;

		return t->turbo4_c[j < 16 ? b[2 + j] & 15 : b[2 + j - 16] >> 4] * plain_half(b);
	}
};
struct bytes_tcq {
	enum { BYTES = 52 };
	static __device__ float value(const uint8_t *k, const gpu_tables *t, int i, bool)
	{
		const uint8_t *b = k + 2 + 3 * i / 8;

		return t->tcq_c[(b[0] | b[1] << 8) >> (3 * i & 7) & 511] * plain_half(k);
	}
};
struct bytes_polar {
	enum { BYTES = 82 };
	static __device__ float value(const uint8_t *k, const gpu_tables *t, int i, bool residual)
	{
		float y = t->polar_c[k[2 + i / 2] >> 4 * (i & 1) & 15];

		if (residual)
			y += (k[66] & 1 ? 1.0f : -1.0f) * 0.04419417382415922f * plain_sign(t->residual, i);
		return y * (1.0f / 128.0f) * plain_half(k);
	}
};

/* Key and query head of this warp; -1 for none. */
GPU_DEVICE int64_t
plain_key(const gpu_args &a)
{
	uint64_t key = (uint64_t)blockIdx.x * (PLAIN_BLOCK / 32) + threadIdx.x / 32;

	return key < a.n_kv ? (int64_t)key : -1;
}

template <class F, bool TRANSFORM>
GPU_DEVICE void
plain_score(const gpu_args &a)
{
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	uint32_t h = blockIdx.y, kv = h / (a.n_heads / a.n_kv_heads);
	int64_t key = plain_key(a), shown = key < 0 ? 0 : key;
	const uint8_t *k = (const uint8_t *)a.k + ((uint64_t)kv * a.n_kv + shown) * F::BYTES;
	const float *q = (const float *)a.q + (uint64_t)h * 128;
	int lane = threadIdx.x & 31;
	float v[4], sum = 0;

	for (int i = 0; i < 4; i++)
		v[i] = F::value(k, tables, 4 * lane + i, a.use_qjl != 0);
	if (TRANSFORM)
		plain_hadamard(v, lane, 32);
	for (int i = 0; i < 4; i++)
		sum += v[i] * q[4 * lane + i];
	sum = plain_sum(sum);
	if (lane == 0 && key >= 0)
		((float *)a.out)[(uint64_t)h * a.n_kv + key] = sum;
}

GPU_DEVICE float
plain_qjl_dot(const uint8_t *k, const float *q, int lane)
{
	float sum = 0;

	for (int i = 0; i < 8; i++)
		sum += k[lane] >> i & 1 ? q[8 * lane + i] : -q[8 * lane + i];
	return plain_sum(sum) * (1.2533141373155003f / 256.0f) *
		gpu_float((uint32_t)(k[32] | k[33] << 8) << 16);
}

GPU_KERNEL __launch_bounds__(PLAIN_BLOCK)
plain_qjl(struct gpu_args a)
{
	uint32_t h = blockIdx.y, kv = h / (a.n_heads / a.n_kv_heads);
	int64_t key = plain_key(a), shown = key < 0 ? 0 : key;
	const uint8_t *k = (const uint8_t *)a.k + ((uint64_t)kv * a.n_kv + shown) * 34;
	int lane = threadIdx.x & 31;
	float v = plain_qjl_dot(k, (const float *)a.q + (uint64_t)h * 256, lane);

	if (lane == 0 && key >= 0)
		((float *)a.out)[(uint64_t)h * a.n_kv + key] = v;
}

/* Values of the attention kernels, brought back to the real space token by token. */
struct bytes_tbq_value {
	enum { BYTES = 56 };
	static __device__ void load(const uint8_t *b, const gpu_tables *t, int lane, bool, float v[4])
	{
		const uint8_t *q = b + lane / 8 * 14;

		for (int i = 0; i < 4; i++) {
			int at = 3 * (4 * (lane & 7) + i), code = q[2 + at / 8] >> (at & 7);

			if ((at & 7) > 5)
				code |= q[3 + at / 8] << (8 - (at & 7));
			v[i] = t->tbq3_c[code & 7] * plain_half(q);
		}
		plain_hadamard(v, lane, 8);
		for (int i = 0; i < 4; i++)
			v[i] *= 0.1767766952966369f * plain_sign(t->signs32, 4 * (lane & 7) + i);
	}
};
struct bytes_polar_value {
	enum { BYTES = 82 };
	static __device__ void load(const uint8_t *b, const gpu_tables *t, int lane, bool residual, float v[4])
	{
		for (int i = 0; i < 4; i++)
			v[i] = bytes_polar::value(b, t, 4 * lane + i, residual);
		plain_hadamard(v, lane, 32);
	}
};

template <class V>
GPU_DEVICE void
plain_attention(const gpu_args &a)
{
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	uint32_t h = blockIdx.x, kv = h / (a.n_heads / a.n_kv_heads);
	const uint8_t *k = (const uint8_t *)a.k + (uint64_t)kv * a.n_kv * 34;
	const uint8_t *value = (const uint8_t *)a.v + (uint64_t)kv * a.n_kv * V::BYTES;
	int lane = threadIdx.x & 31;
	float max = -INFINITY, sum = 0, acc[4] = {0, 0, 0, 0}, v[4];

	for (uint64_t t = 0; t < a.visible; t++) {
		float raw = plain_qjl_dot(k + t * 34, (const float *)a.q + (uint64_t)h * 256, lane) * a.sm_scale;
		float top = raw > max ? raw : max, keep, p;

		keep = max == -INFINITY ? 0.0f : gpu_exp(max - top);
		p = gpu_exp(raw - top);
		V::load(value + t * V::BYTES, tables, lane, a.use_qjl != 0, v);
		for (int i = 0; i < 4; i++)
			acc[i] = acc[i] * keep + p * v[i];
		sum = sum * keep + p;
		max = top;
	}
	for (int i = 0; i < 4; i++)
		((float *)a.out)[(uint64_t)h * 128 + 4 * lane + i] = sum == 0 ? 0.0f : acc[i] / sum;
}

#define PLAIN(name, block, call)                \
	GPU_KERNEL __launch_bounds__(block)     \
	name(struct gpu_args a)                 \
	{                                       \
		call(a);                        \
	}
PLAIN(plain_turbo3, PLAIN_BLOCK, (plain_score<bytes_turbo3, false>))
PLAIN(plain_turbo4, PLAIN_BLOCK, (plain_score<bytes_turbo4, false>))
PLAIN(plain_tcq, PLAIN_BLOCK, (plain_score<bytes_tcq, false>))
PLAIN(plain_polar, PLAIN_BLOCK, (plain_score<bytes_polar, true>))
PLAIN(plain_polar_preht, PLAIN_BLOCK, (plain_score<bytes_polar, false>))
PLAIN(plain_fused_tbq, 32, plain_attention<bytes_tbq_value>)
PLAIN(plain_fused_polar, 32, plain_attention<bytes_polar_value>)
