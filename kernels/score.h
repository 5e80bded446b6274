/*
 * score - what the score kernels share: formats as seen by a group of four lanes, queries
 * in shared memory, and the portable way to multiply.  matrix.h has the other way.
 *
 * Four lanes work on one key; lane t of them decodes 32 of its 128 elements, two in each
 * of 16 steps.  A format says which elements these are, where the codes lie and what a
 * code is worth.  Every key is read once for up to eight query heads.
 */
#ifndef KERNELS_SCORE_H
#define KERNELS_SCORE_H

#include "kernels/gpu.h"
#include "kernels/gpu_shape.h"

#define SCORE_STEPS 16           /* of two elements for each lane */
#define SCORE_HEAD 128

/* N words at byte `at` of base, which is 4-byte aligned while at is even.  Reads the word
 * after them. */
template <int N>
GPU_DEVICE void
load_words(const uint8_t *base, uint32_t at, uint32_t w[N])
{
	const uint32_t *p = (const uint32_t *)(base + (at & ~3u));
	uint32_t shift = (at & 2) * 8, held[N + 1];

#pragma unroll
	for (int i = 0; i <= N; i++)
		held[i] = p[i];
#pragma unroll
	for (int i = 0; i < N; i++)
		w[i] = gpu_funnel(held[i], held[i + 1], shift);
}

GPU_DEVICE uint32_t
load_half(const uint8_t *base, uint32_t at)
{
	return *(const uint16_t *)(base + at);
}

GPU_DEVICE float
load_fp16(const uint8_t *base, uint32_t at)
{
	return gpu_from_half((uint16_t)load_half(base, at));
}

/* Where element i of step s of lane t is kept: lanes in neighbouring banks. */
GPU_DEVICE int
slot_at(int t, int s, int i)
{
	return (2 * s + i) * 4 + t;
}

/* Of a format whose lane t has elements 32 t to 32 t + 31 in their order. */
GPU_DEVICE int
slot_of_run(int e)
{
	return slot_at(e >> 5, e >> 1 & 15, e & 1);
}

/*
 * The formats.  LEVELS values, looked up by code(); BYTES of a key; QUARTERS norms, each
 * for steps 16 / QUARTERS * quarter on.
 */
struct turbo3_format {
	typedef turbo3_format format;
	enum { BYTES = 56, QUARTERS = 1, LEVELS = 8, WORDS = 3, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	/* Where a lane's codes begin in a key. */
	static __device__ uint32_t codes_at(int t) { return 14 * t + 2; }
	static __device__ void load(const uint8_t *b, uint32_t at, uint32_t w[WORDS])
	{
		load_words<WORDS>(b, at, w);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return (w[s >> 3] >> (4 * (s & 7) + 2 * i) & 3) | (w[2] >> (2 * s + i) & 1) << 2;
	}
	static __device__ const float *values(const gpu_tables *a) { return a->turbo3_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		(void)quarter;
		return load_fp16(b, key);
	}
	static __device__ float norm_scale() { return 1; }
};

struct turbo4_format {
	typedef turbo4_format format;
	enum { BYTES = 72, QUARTERS = 4, LEVELS = 16, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e)
	{
		/* Byte 4 t + (s & 3) of quarter s >> 2 holds elements 16 apart. */
		return slot_at(e >> 2 & 3, (e >> 5) * 4 + (e & 3), e >> 4 & 1);
	}
	static __device__ uint32_t codes_at(int t) { return 4 * t + 2; }
	static __device__ void load(const uint8_t *b, uint32_t at, uint32_t w[WORDS])
	{
		/* A key is a multiple of 8 bytes: odd quarters have aligned codes. */
		load_words<1>(b, at, w);
		w[1] = *(const uint32_t *)(b + at + 18);
		load_words<1>(b, at + 36, w + 2);
		w[3] = *(const uint32_t *)(b + at + 54);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return w[s >> 2] >> (8 * (s & 3) + 4 * i) & 15;
	}
	static __device__ const float *values(const gpu_tables *a) { return a->turbo4_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		return load_fp16(b, key + 18 * quarter);
	}
	static __device__ float norm_scale() { return 1; }
};

struct polar_format {
	typedef polar_format format;
	enum { BYTES = 82, QUARTERS = 1, LEVELS = 16, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	static __device__ uint32_t codes_at(int t) { return 16 * t + 2; }
	static __device__ void load(const uint8_t *b, uint32_t at, uint32_t w[WORDS])
	{
		load_words<WORDS>(b, at, w);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return w[s >> 2] >> (8 * (s & 3) + 4 * i) & 15;
	}
	static __device__ const float *values(const gpu_tables *a) { return a->polar_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		(void)quarter;
		return load_fp16(b, key) * norm_scale();
	}
	static __device__ float norm_scale() { return 1.0f / 128.0f; }
};

/* The raw query: <W y, q> = <y, W q>, so it is transformed once. */
struct polar_raw_format : polar_format {
	typedef polar_raw_format format;
	enum { HADAMARD = 1 };
};

struct tcq_format {
	typedef tcq_format format;
	enum { BYTES = 52, QUARTERS = 1, LEVELS = 512, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	static __device__ uint32_t codes_at(int t) { return 12 * t + 2; }
	static __device__ void load(const uint8_t *b, uint32_t at, uint32_t w[WORDS])
	{
		uint32_t a[WORDS];

		/* Steps 4j to 4j + 3 are 30 bits from bit 24 j: a word each. */
		load_words<WORDS>(b, at, a);
		w[0] = a[0];
		w[1] = gpu_funnel(a[0], a[1], 24);
		w[2] = gpu_funnel(a[1], a[2], 16);
		w[3] = gpu_funnel(a[2], a[3], 8);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return w[s >> 2] >> (6 * (s & 3) + 3 * i) & 511;
	}
	static __device__ const float *values(const gpu_tables *a) { return a->tcq_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		(void)quarter;
		return load_fp16(b, key);
	}
	static __device__ float norm_scale() { return 1; }
};

#define POLAR_RESIDUAL_AT 66
#define POLAR_STEP 0.04419417382415922f /* 0.5 / sqrt(128) */

/* Query heads of this block, prepared in shared memory; a head starts four banks after
 * the one before it. */
struct score_query {
	/* By F::slot, scaled: the largest lies in [128, 256). */
	float q[SCORE_HEADS][SCORE_HEAD + 4];
	float unscale[SCORE_HEADS];       /* back to the query's own size, a power of 2 */
	float residual[SCORE_HEADS];      /* of polar: step * sum of signs * q, scaled */
};

/* Blocks of a kv head: which, and the query heads that this block answers. */
struct score_part {
	uint32_t kv_head, first, heads;
};

GPU_DEVICE struct score_part
score_part_of(const gpu_args &a, uint32_t y, uint32_t most)
{
	uint32_t gqa = a.n_heads / a.n_kv_heads, groups = (gqa + most - 1) / most;
	struct score_part p;

	p.kv_head = y / groups;
	p.first = p.kv_head * gqa + y % groups * most;
	p.heads = gqa - y % groups * most;
	if (p.heads > most)
		p.heads = most;
	return p;
}

/* A lane's four consecutive elements of a head, over 32 lanes. */
GPU_DEVICE void
hadamard_lanes(float v[4], int lane)
{
	float o;

	for (int h = 1; h <= 2; h *= 2)
		for (int i = 0; i < 4; i++)
			if (!(i & h)) {
				o = v[i + h];
				v[i + h] = v[i] - o;
				v[i] += o;
			}
	for (int m = 1; m < 32; m *= 2)
		for (int i = 0; i < 4; i++) {
			o = gpu_shfl_xor(v[i], m, 32);
			v[i] = lane & m ? o - v[i] : v[i] + o;
		}
}

/* A power of two that brings the largest magnitude into [2^7, 2^8); 1 when nothing does. */
GPU_DEVICE float
scale_for(float largest)
{
	uint32_t e = gpu_bits(largest) >> 23;

	return e == 0 || e == 255 || e > 250 ? 1.0f : gpu_float((127u + 134 - e) << 23);
}

template <class F>
GPU_DEVICE void
score_query_load(const gpu_args &a, const struct score_part &p, struct score_query *to)
{
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	int lane = threadIdx.x & 31;
	float v[4], top, sum, scale;
	const float *q;

	/* Groups of 32 lanes, whatever the wave is. */
	for (uint32_t h = threadIdx.x / 32; h < SCORE_HEADS; h += SCORE_BLOCK / 32) {
		q = (const float *)a.q + (uint64_t)(p.first + h) * SCORE_HEAD;
		for (int i = 0; i < 4; i++)
			v[i] = h < p.heads ? q[4 * lane + i] : 0.0f;
		if (F::HADAMARD)
			hadamard_lanes(v, lane);
		top = sum = 0;
		for (int i = 0; i < 4; i++) {
			top = fmaxf(top, fabsf(v[i]));
			sum += tables->residual[lane >> 3] >> (4 * (lane & 7) + i) & 1 ? v[i] : -v[i];
		}
		for (int m = 1; m < 32; m *= 2) {
			top = fmaxf(top, gpu_shfl_xor(top, m, 32));
			sum += gpu_shfl_xor(sum, m, 32);
		}
		scale = scale_for(top);
		for (int i = 0; i < 4; i++)
			to->q[h][F::slot(4 * lane + i)] = v[i] * scale;
		if (lane == 0) {
			to->unscale[h] = 1.0f / scale;
			to->residual[h] = sum * scale * POLAR_STEP;
		}
	}
}

/* The residual's sign, for a polar key of a run that uses it; 0 otherwise. */
GPU_DEVICE float
residual_sign(const uint8_t *b, uint32_t key)
{
	return b[key + POLAR_RESIDUAL_AT] & 1 ? 1.0f : -1.0f;
}

template <class F> struct has_residual {
	enum { value = 0 };
};
template <> struct has_residual<polar_format> {
	enum { value = 1 };
};
template <> struct has_residual<polar_raw_format> {
	enum { value = 1 };
};

/*
 * The portable way: any wave, no matrix units.  Four lanes a key, all query heads of the
 * block in registers, values from a table in shared memory.
 */
template <class F>
GPU_DEVICE void
score_portable(const gpu_args &a)
{
	__shared__ struct score_query query;
	__shared__ float values[F::LEVELS];
	struct score_part p = score_part_of(a, blockIdx.y, SCORE_HEADS);
	const uint8_t *kv = (const uint8_t *)a.k + (uint64_t)p.kv_head * a.n_kv * F::BYTES;
	uint32_t w[F::WORDS], stride, at;
	float sum[SCORE_HEADS], acc[SCORE_HEADS], v, n;
	int t = threadIdx.x & 3;

	score_query_load<F>(a, p, &query);
	for (int i = threadIdx.x; i < F::LEVELS; i += SCORE_BLOCK)
		values[i] = F::values((const gpu_tables *)a.tables)[i];
	gpu_sync();
	stride = gridDim.x * (SCORE_BLOCK / 4);
	/* All lanes take part in every shuffle: the last round repeats the last key. */
	for (uint64_t first = blockIdx.x * (SCORE_BLOCK / 4); first < a.n_kv; first += stride) {
		uint64_t key = first + threadIdx.x / 4;
		bool real = key < a.n_kv;
		const uint8_t *b;

		key = real ? key : a.n_kv - 1;
		b = kv + key * F::BYTES;
		at = (uint32_t)((uint64_t)b & 3);
		b -= at;
		F::load(b, at + F::codes_at(t), w);
#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++)
			sum[h] = acc[h] = 0;
#pragma unroll
		for (int s = 0; s < SCORE_STEPS; s++) {
#pragma unroll
			for (int i = 0; i < 2; i++) {
				v = values[F::code(w, s, i)];
#pragma unroll
				for (int h = 0; h < SCORE_HEADS; h++)
					acc[h] += v * query.q[h][slot_at(t, s, i)];
			}
			if ((s + 1) % (SCORE_STEPS / F::QUARTERS) == 0) {
				n = F::norm(b, at, s / (SCORE_STEPS / F::QUARTERS));
#pragma unroll
				for (int h = 0; h < SCORE_HEADS; h++) {
					sum[h] += n * acc[h];
					acc[h] = 0;
				}
			}
		}
#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++) {
			v = sum[h];
			v += gpu_shfl_xor(v, 1, 4);
			v += gpu_shfl_xor(v, 2, 4);
			if (has_residual<F>::value && a.use_qjl)
				v += F::norm(b, at, 0) * residual_sign(b, at) * query.residual[h];
			v *= query.unscale[h];
			if (real && (uint32_t)h < p.heads && t == (h & 3))
				((float *)a.out)[(uint64_t)(p.first + h) * a.n_kv + key] = v;
		}
	}
}

/* The portable entry point of a format. */
#define SCORE_PORTABLE(format, F)                          \
	GPU_KERNEL __launch_bounds__(SCORE_BLOCK)          \
	score_##format(struct gpu_args a)                  \
	{                                                  \
		score_portable<F>(a);                      \
	}

#endif
