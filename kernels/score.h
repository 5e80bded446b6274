/*
 * score - what the score kernels share: formats as seen by a group of four lanes, staging
 * of keys through shared memory, and the two ways to multiply.
 *
 * Four lanes work on one key; lane t of them decodes 32 of its 128 elements, two in each
 * of 16 steps.  A format says which elements these are, where the codes lie and what a
 * code is worth.  Every key is read once for up to eight query heads.
 *
 * The matrix way (GPU_MATRIX): a value is an fp16 pair {high, low}, kept as two entries
 * along the reduction, so that a table look-up is an operand without further arithmetic;
 * a query is two columns, its high and its low part.  All four products are exact in f32,
 * hence the numbers are those of f32 arithmetic.  Values and queries are scaled by powers
 * of two into fp16's normal range.
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
 * for steps 16 / QUARTERS * quarter on; PAIRS: entries of a table of two values that
 * pair() indexes, 0 when a pair has no short code.
 */
struct turbo3_format {
	enum { BYTES = 56, QUARTERS = 1, LEVELS = 8, PAIRS = 64, WORDS = 3, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	static __device__ void load(const uint8_t *b, uint32_t key, int t, uint32_t w[WORDS])
	{
		load_words<WORDS>(b, key + 14 * t + 2, w);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return (w[s >> 3] >> (4 * (s & 7) + 2 * i) & 3) | (w[2] >> (2 * s + i) & 1) << 2;
	}
	static __device__ uint32_t pair(const uint32_t w[WORDS], int s)
	{
		return (w[s >> 3] >> 4 * (s & 7) & 15) | (w[2] >> 2 * s & 3) << 4;
	}
	static __device__ int low(int p) { return (p & 3) | (p >> 4 & 1) << 2; }
	static __device__ int high(int p) { return (p >> 2 & 3) | (p >> 5 & 1) << 2; }
	static __device__ const float *values(const gpu_tables *a) { return a->turbo3_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		(void)quarter;
		return load_fp16(b, key);
	}
};

struct turbo4_format {
	enum { BYTES = 72, QUARTERS = 4, LEVELS = 16, PAIRS = 256, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e)
	{
		/* Byte 4 t + (s & 3) of quarter s >> 2 holds elements 16 apart. */
		return slot_at(e >> 2 & 3, (e >> 5) * 4 + (e & 3), e >> 4 & 1);
	}
	static __device__ void load(const uint8_t *b, uint32_t key, int t, uint32_t w[WORDS])
	{
		/* A key is a multiple of 8 bytes: odd quarters have aligned codes. */
		load_words<1>(b, key + 2 + 4 * t, w);
		w[1] = *(const uint32_t *)(b + key + 20 + 4 * t);
		load_words<1>(b, key + 38 + 4 * t, w + 2);
		w[3] = *(const uint32_t *)(b + key + 56 + 4 * t);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return w[s >> 2] >> (8 * (s & 3) + 4 * i) & 15;
	}
	static __device__ uint32_t pair(const uint32_t w[WORDS], int s)
	{
		return w[s >> 2] >> 8 * (s & 3) & 255;
	}
	static __device__ int low(int p) { return p & 15; }
	static __device__ int high(int p) { return p >> 4; }
	static __device__ const float *values(const gpu_tables *a) { return a->turbo4_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		return load_fp16(b, key + 18 * quarter);
	}
};

struct polar_format {
	enum { BYTES = 82, QUARTERS = 1, LEVELS = 16, PAIRS = 256, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	static __device__ void load(const uint8_t *b, uint32_t key, int t, uint32_t w[WORDS])
	{
		load_words<WORDS>(b, key + 2 + 16 * t, w);
	}
	static __device__ uint32_t code(const uint32_t w[WORDS], int s, int i)
	{
		return w[s >> 2] >> (8 * (s & 3) + 4 * i) & 15;
	}
	static __device__ uint32_t pair(const uint32_t w[WORDS], int s)
	{
		return w[s >> 2] >> 8 * (s & 3) & 255;
	}
	static __device__ int low(int p) { return p & 15; }
	static __device__ int high(int p) { return p >> 4; }
	static __device__ const float *values(const gpu_tables *a) { return a->polar_c; }
	static __device__ float norm(const uint8_t *b, uint32_t key, int quarter)
	{
		(void)quarter;
		return load_fp16(b, key) * (1.0f / 128.0f);
	}
};

/* The raw query: <W y, q> = <y, W q>, so it is transformed once. */
struct polar_raw_format : polar_format {
	enum { HADAMARD = 1 };
};

struct tcq_format {
	enum { BYTES = 52, QUARTERS = 1, LEVELS = 512, PAIRS = 0, WORDS = 4, HADAMARD = 0 };
	static __device__ int slot(int e) { return slot_of_run(e); }
	static __device__ void load(const uint8_t *b, uint32_t key, int t, uint32_t w[WORDS])
	{
		uint32_t a[WORDS];

		/* Steps 4j to 4j + 3 are 30 bits from bit 24 j: a word each. */
		load_words<WORDS>(b, key + 2 + 12 * t, a);
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
};

#define POLAR_RESIDUAL_AT 66
#define POLAR_STEP 0.04419417382415922f /* 0.5 / sqrt(128) */

/* Query heads of this block, prepared in shared memory; a head starts four banks after
 * the one before it. */
struct score_query {
	/* By F::slot, scaled: the largest lies in [128, 256).  Bits of the float, or for
	 * matrix units its split. */
	uint32_t q[SCORE_HEADS][SCORE_HEAD + 4];
	float unscale[SCORE_HEADS];       /* back to the query's own size, a power of 2 */
	float residual[SCORE_HEADS];      /* of polar: step * sum of signs * q */
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

/* {high, low} of a value as fp16. */
GPU_DEVICE uint32_t
split(float v)
{
	uint16_t high = gpu_to_half(v);

	return high | (uint32_t)gpu_to_half(v - gpu_from_half(high)) << 16;
}

template <class F, bool SPLIT>
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
			to->q[h][F::slot(4 * lane + i)] =
				SPLIT ? split(v[i] * scale) : gpu_bits(v[i] * scale);
		if (lane == 0) {
			to->unscale[h] = 1.0f / scale;
			to->residual[h] = sum * POLAR_STEP;
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

	score_query_load<F, false>(a, p, &query);
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
		F::load(b, at, t, w);
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
					acc[h] += v * gpu_float(query.q[h][slot_at(t, s, i)]);
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
			v *= query.unscale[h];
			if (has_residual<F>::value && a.use_qjl)
				v += F::norm(b, at, 0) * residual_sign(b, at) * query.residual[h];
			if (real && (uint32_t)h < p.heads && t == (h & 3))
				((float *)a.out)[(uint64_t)(p.first + h) * a.n_kv + key] = v;
		}
	}
}

/* Staging: each warp copies runs of keys ahead of its own work. */

/* Starts the copy of a run; keys past the end are left as they are. */
template <int BYTES>
GPU_DEVICE void
stage_issue(uint8_t *stage, uint64_t kv, uint32_t n_kv, uint64_t run)
{
	uint64_t start = kv + run * STAGE_KEYS * BYTES;
	uint64_t end = kv + (uint64_t)n_kv * BYTES, from = start & ~(uint64_t)15;
	uint32_t chunks;

	if (end > start + STAGE_KEYS * BYTES)
		end = start + STAGE_KEYS * BYTES;
	chunks = (uint32_t)((end - from + 15) >> 4);
	for (uint32_t c = threadIdx.x & 31; c < chunks; c += 32)
		gpu_copy16_async(stage + 16 * c, (const void *)(from + 16 * c));
}

#if GPU_MATRIX
/* Copies of a table that lanes never fight over: bank by lane.  A row is 128 bytes. */
GPU_DEVICE void
table_row(uint8_t *table, int row, uint32_t even, uint32_t odd)
{
	/* Neighbouring threads start at different banks. */
	for (int c = 0; c < 8; c++) {
		uint4 *to = (uint4 *)(table + 128 * row + 16 * ((c + row) & 7));

		to->x = to->z = even;
		to->y = to->w = odd;
	}
}

template <class F, int PAIRS = F::PAIRS> struct score_table {
	/* Two values an entry of 8 bytes, one copy for each lane of a half warp. */
	enum { ENTRIES = PAIRS };
	static __device__ void build(uint8_t *to, const float *v, float scale)
	{
		for (int i = threadIdx.x; i < PAIRS; i += SCORE_BLOCK)
			table_row(to, i, split(v[F::low(i)] * scale), split(v[F::high(i)] * scale));
	}
	static __device__ void look(const uint8_t *table, const uint32_t w[F::WORDS], int s,
		int lane, uint32_t out[2])
	{
		const uint2 e = *(const uint2 *)(table + (F::pair(w, s) << 7 | (lane & 15) << 3));

		out[0] = e.x;
		out[1] = e.y;
	}
};
template <class F> struct score_table<F, 0> {
	/* A value an entry, one copy for each lane. */
	enum { ENTRIES = F::LEVELS };
	static __device__ void build(uint8_t *to, const float *v, float scale)
	{
		for (int i = threadIdx.x; i < F::LEVELS; i += SCORE_BLOCK) {
			uint32_t e = split(v[i] * scale);

			table_row(to, i, e, e);
		}
	}
	static __device__ void look(const uint8_t *table, const uint32_t w[F::WORDS], int s,
		int lane, uint32_t out[2])
	{
		for (int i = 0; i < 2; i++)
			out[i] = *(const uint32_t *)(table + (F::code(w, s, i) << 7 | lane << 2));
	}
};

/* Values are at most 2.8; this keeps their low parts normal too. */
#define VALUE_SCALE 16.0f

template <class F> struct score_layout {
	enum {
		QUERY_AT = SCORE_TABLE_BYTES(score_table<F>::ENTRIES),
		STAGE_AT = QUERY_AT + SCORE_QUERY_BYTES,
		STAGE = STAGE_BYTES(F::BYTES),
	};
};
static_assert(sizeof(struct score_query) <= SCORE_QUERY_BYTES, "room for the queries");

/* 16 keys from byte `at` of the stage: rows of the product; its columns are {high, low} of
 * four heads a tile. */
template <class F, int TILES>
GPU_DEVICE void
score_rows(const uint8_t *table, const uint8_t *stage, uint32_t at,
	const uint32_t (*b)[TILES][2], float out[TILES][4])
{
	int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
	uint32_t low = at + g * F::BYTES, high = low + 8 * F::BYTES;
	uint32_t w0[F::WORDS], w1[F::WORDS], x[4], y[2], z[2];
	float acc[TILES][4], n0, n1;

	F::load(stage, low, t, w0);
	F::load(stage, high, t, w1);
#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int j = 0; j < 4; j++)
			out[i][j] = acc[i][j] = 0;
#pragma unroll
	for (int s = 0; s < SCORE_STEPS; s++) {
		score_table<F>::look(table, w0, s, lane, y);
		score_table<F>::look(table, w1, s, lane, z);
		x[0] = y[0];
		x[1] = z[0];
		x[2] = y[1];
		x[3] = z[1];
#pragma unroll
		for (int i = 0; i < TILES; i++)
			gpu_mma_f16(acc[i], x, b[s][i]);
		if ((s + 1) % (SCORE_STEPS / F::QUARTERS) == 0) {
			n0 = F::norm(stage, low, s / (SCORE_STEPS / F::QUARTERS));
			n1 = F::norm(stage, high, s / (SCORE_STEPS / F::QUARTERS));
#pragma unroll
			for (int i = 0; i < TILES; i++) {
				out[i][0] += n0 * acc[i][0];
				out[i][1] += n0 * acc[i][1];
				out[i][2] += n1 * acc[i][2];
				out[i][3] += n1 * acc[i][3];
#pragma unroll
				for (int j = 0; j < 4; j++)
					acc[i][j] = 0;
			}
		}
	}
}

template <class F, int TILES>
GPU_DEVICE void
score_matrix(const gpu_args &a)
{
	GPU_SHARED(shared);
	struct score_part p = score_part_of(a, blockIdx.y, TILES * 4);
	struct score_query *query = (struct score_query *)(shared + score_layout<F>::QUERY_AT);
	uint32_t lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
	uint32_t warp = threadIdx.x >> 5, warps = gridDim.x * (SCORE_BLOCK / 32), slot = 0;
	uint8_t *stage = shared + score_layout<F>::STAGE_AT +
		warp * STAGE_COUNT * score_layout<F>::STAGE;
	uint64_t kv = a.k + (uint64_t)p.kv_head * a.n_kv * F::BYTES;
	uint64_t runs = ((uint64_t)a.n_kv + STAGE_KEYS - 1) / STAGE_KEYS;
	uint64_t run = blockIdx.x * (SCORE_BLOCK / 32) + warp, ahead = run;
	uint32_t b[SCORE_STEPS][TILES][2];
	float back[TILES], residual[TILES];

	for (int i = 0; i < STAGE_COUNT - 1; i++, ahead += warps) {
		if (ahead < runs)
			stage_issue<F::BYTES>(stage + i * score_layout<F>::STAGE, kv, a.n_kv, ahead);
		gpu_copy_commit();
	}
	score_table<F>::build(shared, F::values((const gpu_tables *)a.tables), VALUE_SCALE);
	score_query_load<F, true>(a, p, query);
	gpu_sync();
#pragma unroll
	for (int i = 0; i < TILES; i++) {
		back[i] = query->unscale[4 * i + t] * (1.0f / VALUE_SCALE);
		residual[i] = a.use_qjl ? query->residual[4 * i + t] : 0.0f;
#pragma unroll
		for (int s = 0; s < SCORE_STEPS; s++)
#pragma unroll
			for (int j = 0; j < 2; j++) {
				uint32_t v = query->q[4 * i + (g >> 1)][slot_at(t, s, j)];

				/* Both entries of a value meet the same part of the query. */
				b[s][i][j] = gpu_prmt(v, v, g & 1 ? 0x3232 : 0x1010);
			}
	}
	for (; run < runs; run += warps, ahead += warps) {
		uint8_t *now = stage + slot * score_layout<F>::STAGE;
		uint32_t next = slot == 0 ? STAGE_COUNT - 1 : slot - 1;
		uint32_t lead = (uint32_t)((kv + run * STAGE_KEYS * F::BYTES) & 15);

		gpu_copy_wait<STAGE_COUNT - 2>();
		gpu_sync_warp();
		if (ahead < runs)
			stage_issue<F::BYTES>(stage + next * score_layout<F>::STAGE, kv, a.n_kv, ahead);
		gpu_copy_commit();
		slot = slot == STAGE_COUNT - 1 ? 0 : slot + 1;
#pragma unroll 1
		for (uint32_t m = 0; m < STAGE_KEYS; m += 16) {
			uint64_t key = run * STAGE_KEYS + m + g;
			uint32_t at = lead + m * F::BYTES;
			float r[TILES][4];

			score_rows<F, TILES>(shared, now, at, b, r);
#pragma unroll
			for (int i = 0; i < TILES; i++) {
				float *out = (float *)a.out + (uint64_t)(p.first + 4 * i + t) * a.n_kv;

				if (4 * i + t >= p.heads)
					continue;
#pragma unroll
				for (int j = 0; j < 2; j++) {
					uint32_t row = at + (g + 8 * j) * F::BYTES;
					float v = (r[i][2 * j] + r[i][2 * j + 1]) * back[i];

					if (has_residual<F>::value && a.use_qjl)
						v += F::norm(now, row, 0) * residual_sign(now, row) * residual[i];
					if (key + 8 * j < a.n_kv)
						out[key + 8 * j] = v;
				}
			}
		}
		gpu_sync_warp();
	}
}
#endif

/* The entry points of a format: portable, and by matrix units for up to 4 and 8 heads. */
#if GPU_MATRIX
#define SCORE_MATRIX(name, F, TILES)                       \
	GPU_KERNEL __launch_bounds__(SCORE_BLOCK, 2)       \
	name(struct gpu_args a)                            \
	{                                                  \
		score_matrix<F, TILES>(a);                 \
	}
#else
#define SCORE_MATRIX(name, F, TILES)                       \
	GPU_KERNEL                                         \
	name(struct gpu_args a)                            \
	{                                                  \
		(void)a;                                   \
	}
#endif
#define SCORE_KERNELS(format, F)                           \
	GPU_KERNEL __launch_bounds__(SCORE_BLOCK)          \
	score_##format(struct gpu_args a)                  \
	{                                                  \
		score_portable<F>(a);                      \
	}                                                  \
	SCORE_MATRIX(score_##format##_4, F, 1)             \
	SCORE_MATRIX(score_##format##_8, F, 2)

#endif
