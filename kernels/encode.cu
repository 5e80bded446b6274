/*
 * Encoders with a code per element: turbo3, turbo4, tbq3_0, polar.
 *
 * A lane holds a quarter of a key in registers, so that the blocks of 32 elements need no
 * neighbour at all, and the 128-point transform two exchanges.
 */
#include "kernels/encode.h"

#define INV_SQRT_128 0.08838834764831845f
#define INV_SQRT_32 0.1767766952966369f

/* What a lane knows. */
struct quarter {
	float v[ENCODE_QUARTER];
	uint32_t at;            /* 0 to 3 */
	uint8_t *key;           /* where the key's bytes go: shared memory */
	const float *levels, *thresholds; /* of the format: shared memory */
	const gpu_tables *tables;
};

/* Two bytes at an even address. */
GPU_DEVICE void
put16(uint8_t *to, uint32_t v)
{
	*(uint16_t *)to = (uint16_t)v;
}

template <int WORDS>
GPU_DEVICE void
put_words(uint8_t *to, const uint32_t w[WORDS])
{
#pragma unroll
	for (int i = 0; i < 2 * WORDS; i++)
		put16(to + 2 * i, w[i / 2] >> 16 * (i & 1));
}

/* Sum of a key's 128 terms in their order: lane q goes on where lane q - 1 ended.  All
 * lanes add in every round; the one whose turn it is adds to the right sum. */
GPU_DEVICE float
ordered_sum(const float term[ENCODE_QUARTER])
{
	float s = 0;

#pragma unroll
	for (int turn = 0; turn < 4; turn++) {
		if (turn > 0)
			s = gpu_shfl(s, turn - 1, 4);
#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++)
			s += term[i];
	}
	return gpu_shfl(s, 3, 4);
}

GPU_DEVICE void
squares(const float v[ENCODE_QUARTER], float out[ENCODE_QUARTER])
{
#pragma unroll
	for (int i = 0; i < ENCODE_QUARTER; i++)
		out[i] = gpu_mul(v[i], v[i]);
}

GPU_DEVICE float
key_length(const float v[ENCODE_QUARTER])
{
	float term[ENCODE_QUARTER];

	squares(v, term);
	return gpu_sqrt(ordered_sum(term));
}

GPU_DEVICE double
shuffle_double(double v, int lane)
{
	uint64_t u;
	uint32_t lo, hi;

	__builtin_memcpy(&u, &v, sizeof u);
	lo = gpu_shfl((uint32_t)u, lane, 4);
	hi = gpu_shfl((uint32_t)(u >> 32), lane, 4);
	u = (uint64_t)hi << 32 | lo;
	__builtin_memcpy(&v, &u, sizeof v);
	return v;
}

/* The same from an f64 sum.  Squares of floats are exact there: fused or not is one. */
GPU_DEVICE float
key_length_double(const float v[ENCODE_QUARTER])
{
	double s = 0;

#pragma unroll 1
	for (int turn = 0; turn < 4; turn++) {
		if (turn > 0)
			s = shuffle_double(s, turn - 1);
#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++)
			s += (double)v[i] * (double)v[i];
	}
	return (float)gpu_sqrt_double(shuffle_double(s, 3));
}

GPU_DEVICE void
scale(float v[ENCODE_QUARTER], float by)
{
#pragma unroll
	for (int i = 0; i < ENCODE_QUARTER; i++)
		v[i] = gpu_mul(v[i], by);
}

GPU_DEVICE void
flip(float v[ENCODE_QUARTER], uint32_t map)
{
#pragma unroll
	for (int i = 0; i < ENCODE_QUARTER; i++)
		v[i] = signed_by(v[i], map, i);
}

GPU_DEVICE void
hadamard(struct quarter &q)
{
	hadamard_own<ENCODE_QUARTER>(q.v);
	hadamard_group<ENCODE_QUARTER, 4>(q.v, q.at);
}

struct turbo3_encoder {
	enum { BYTES = 56, LEVELS = 8 };
	static __device__ const float *levels(const gpu_tables *t) { return t->turbo3_c; }
	static __device__ const float *thresholds(const gpu_tables *t) { return t->turbo3_t; }

	static __device__ void run(struct quarter &q)
	{
		uint8_t *block = q.key + 14 * q.at;
		uint32_t w[3] = {0, 0, 0}, c;
		float n = key_length(q.v), rn;

		scale(q.v, reciprocal(n));
		flip(q.v, q.tables->signs1[q.at]);
		hadamard(q);
		scale(q.v, INV_SQRT_128);
		flip(q.v, q.tables->signs2[q.at]);
#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++) {
			c = below<LEVELS>(q.v[i], q.thresholds);
			q.v[i] = q.levels[c];
			w[i / 16] |= (c & 3) << 2 * (i % 16);
			w[2] |= c >> 2 << i;
		}
		/* The rounded direction is not a unit vector. */
		rn = key_length(q.v);
		put16(block, fp16_away(rn > ENCODE_TINY ? gpu_div(n, rn) : n));
		put_words<3>(block + 2, w);
	}
};

/* Turns a block of 32 into its conditioned form over its root mean square, which it
 * stores.  Gives false for a block without one, zeros or far too large: its codes are 0. */
GPU_DEVICE bool
condition(struct quarter &q, uint8_t *block)
{
	float term[ENCODE_QUARTER], s = 0, d, inverse;

	flip(q.v, q.tables->signs32[0]);
	hadamard_own<ENCODE_QUARTER>(q.v);
	scale(q.v, INV_SQRT_32);
	squares(q.v, term);
#pragma unroll
	for (int i = 0; i < ENCODE_QUARTER; i++)
		s += term[i];
	d = gpu_sqrt(gpu_mul(s, 1.0f / 32.0f));
	put16(block, fp16_away(d));
	inverse = d == 0.0f ? 0.0f : gpu_div(1.0f, d);
	scale(q.v, inverse);
	return inverse != 0.0f;
}

struct turbo4_encoder {
	enum { BYTES = 72, LEVELS = 16 };
	static __device__ const float *levels(const gpu_tables *t) { return t->turbo4_c; }
	static __device__ const float *thresholds(const gpu_tables *t) { return t->turbo4_t; }

	static __device__ void run(struct quarter &q)
	{
		uint8_t *block = q.key + 18 * q.at;
		uint32_t w[4] = {0, 0, 0, 0}, c;
		bool any = condition(q, block);

#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++) {
			c = any ? below<LEVELS>(q.v[i], q.thresholds) : 0;
			w[i % 16 / 4] |= c << (8 * (i % 4) + 4 * (i / 16));
		}
		put_words<4>(block + 2, w);
	}
};

struct tbq3_encoder {
	enum { BYTES = 56, LEVELS = 8 };
	static __device__ const float *levels(const gpu_tables *t) { return t->tbq3_c; }
	static __device__ const float *thresholds(const gpu_tables *t) { return t->tbq3_c; }

	/* The nearest level, the lower one of two; the top one for a NaN. */
	static __device__ uint32_t nearest(float v, const float *level)
	{
		uint32_t c = below<LEVELS>(v, level + 1);

		if (c == LEVELS - 1)
			return c;
		return v - level[c] <= level[c + 1] - v ? c : c + 1;
	}

	static __device__ void run(struct quarter &q)
	{
		uint8_t *block = q.key + 14 * q.at;
		uint32_t w[3] = {0, 0, 0}, c;
		bool any = condition(q, block);

#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++) {
			c = any ? nearest(q.v[i], q.levels) : 0;
			w[3 * i / 32] |= c << (3 * i % 32);
			if (3 * i % 32 > 29)
				w[3 * i / 32 + 1] |= c >> (32 - 3 * i % 32);
		}
		put_words<3>(block + 2, w);
	}
};

template <bool RESIDUAL>
struct polar_encoder {
	enum { BYTES = 82, LEVELS = 16 };
	static __device__ const float *levels(const gpu_tables *t) { return t->polar_c; }
	static __device__ const float *thresholds(const gpu_tables *t) { return t->polar_t; }

	static __device__ void run(struct quarter &q)
	{
		uint32_t w[4] = {0, 0, 0, 0}, c, map = q.tables->residual[q.at], bit = 0;
		float l = key_length_double(q.v);

		scale(q.v, reciprocal(l));
		hadamard(q);
#pragma unroll
		for (int i = 0; i < ENCODE_QUARTER; i++) {
			c = below<LEVELS>(q.v[i], q.thresholds);
			w[i / 8] |= c << 4 * (i % 8);
			q.v[i] = signed_by(q.v[i] - q.levels[c], map, i);
		}
		if (RESIDUAL)
			bit = ordered_sum(q.v) > 0;
		put_words<4>(q.key + 2 + 16 * q.at, w);
		/* A lane each for the norm and for 16 bytes: the residual, then zeros. */
		if (q.at == 0)
			put16(q.key, fp16_away(l));
		for (int i = 0; i < 8 && q.at == 3; i++)
			put16(q.key + 66 + 2 * i, i == 0 ? bit : 0);
	}
};

struct alignas(16) encode_shared {
	float x[ENCODE_TILE * 4 * ENCODE_PITCH];
	float levels[16], thresholds[16];
};

/* Loads the tile's keys; zeros past the last. */
GPU_DEVICE void
tile_load(const gpu_args &a, float *tile)
{
	const float *from = (const float *)a.x +
			    (uint64_t)blockIdx.x * ENCODE_TILE * ENCODE_HEAD;
	uint32_t n = tile_keys(a) * (ENCODE_HEAD / 4);

#pragma unroll
	for (uint32_t k = 0; k < ENCODE_TILE * ENCODE_HEAD / 4 / ENCODE_BLOCK; k++) {
		uint32_t i = k * ENCODE_BLOCK + threadIdx.x;
		float v[4] = {0, 0, 0, 0};

		if (i < n)
			load_four(from + 4 * i, v);
		store_four(tile + i / 8 * ENCODE_PITCH + i % 8 * 4, v);
	}
}

template <class F>
GPU_DEVICE void
encode_tile(const gpu_args &a, encode_shared &s)
{
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	uint8_t *packed = (uint8_t *)s.x;
	struct quarter q;

	tile_load(a, s.x);
	if (threadIdx.x < F::LEVELS) {
		s.levels[threadIdx.x] = F::levels(tables)[threadIdx.x];
		s.thresholds[threadIdx.x] = F::thresholds(tables)[threadIdx.x];
	}
	gpu_sync();
#pragma unroll
	for (int i = 0; i < ENCODE_QUARTER; i += 4)
		load_four(s.x + threadIdx.x * ENCODE_PITCH + i, q.v + i);
	gpu_sync(); /* the keys are in registers: their room is for the bytes */
	q.at = threadIdx.x % 4;
	q.key = packed + threadIdx.x / 4 * F::BYTES;
	q.levels = s.levels;
	q.thresholds = s.thresholds;
	q.tables = tables;
	F::run(q);
	gpu_sync();
	tile_store(a, packed, F::BYTES);
}

#define ENCODE_KERNEL(name, ...)                                                         \
	GPU_KERNEL __launch_bounds__(ENCODE_BLOCK) encode_##name(struct gpu_args a)      \
	{                                                                                \
		__shared__ encode_shared s;                                              \
		encode_tile<__VA_ARGS__>(a, s);                                          \
	}

ENCODE_KERNEL(turbo3, turbo3_encoder)
ENCODE_KERNEL(turbo4, turbo4_encoder)
ENCODE_KERNEL(tbq3, tbq3_encoder)
ENCODE_KERNEL(polar, polar_encoder<false>)
ENCODE_KERNEL(polar_qjl, polar_encoder<true>)
