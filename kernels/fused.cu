/*
 * Attention over sign-sketched keys and quantised values: softmax(q k) v for each query
 * head, split over the tokens and merged.
 *
 * Values stay in the space they were rounded in: sum_t w_t U(y_t) = U(sum_t w_t y_t), so
 * the merge applies the inverse transform once for each head.  A split leaves in the
 * scratch, for each head, the largest logit, the sum of weights relative to it, 128 sums
 * of weighted levels, and the weighted sum of polar's residual signs.
 */
#include "kernels/logits.h"

#define FUSED_TOKENS 64 /* of a round of the portable way */

struct tbq_value {
	enum { BYTES = 56, QUARTERS = 4, LEVELS = 8, WORDS = 4, RESIDUAL = 0 };
	static __device__ const float *values(const gpu_tables *t) { return t->tbq3_c; }
	static __device__ float norm(const uint8_t *b, uint32_t at, int quarter)
	{
		return load_fp16(b, at + 14 * quarter);
	}
	static __device__ uint32_t code(const uint8_t *b, uint32_t at, int i)
	{
		uint32_t bit = 3 * (i & 31), from = at + 14 * (i >> 5) + 2 + (bit >> 4) * 2;
		uint32_t w = load_half(b, from);

		/* The next half word belongs to the block only where it is needed. */
		if ((bit & 15) > 13)
			w |= load_half(b, from + 2) << 16;
		return w >> (bit & 15) & 7;
	}
	/* Back to the real space: element i of x, all of them in shared memory. */
	static __device__ float transform(const gpu_tables *t, const float *x, int i)
	{
		float v = 0;

		for (int j = 0; j < 32; j++)
			v += gpu_popc((uint32_t)(i & j & 31)) & 1 ? -x[(i & ~31) + j] : x[(i & ~31) + j];
		return v * 0.1767766952966369f * (t->signs32[0] >> (i & 31) & 1 ? 1.0f : -1.0f);
	}
};

struct polar_value {
	enum { BYTES = 82, QUARTERS = 1, LEVELS = 16, WORDS = 2, RESIDUAL = 1 };
	static __device__ const float *values(const gpu_tables *t) { return t->polar_c; }
	static __device__ float norm(const uint8_t *b, uint32_t at, int quarter)
	{
		(void)quarter;
		return load_fp16(b, at);
	}
	static __device__ uint32_t code(const uint8_t *b, uint32_t at, int i)
	{
		return b[at + 2 + (i >> 1)] >> 4 * (i & 1) & 15;
	}
	static __device__ float transform(const gpu_tables *, const float *x, int i)
	{
		float v = 0;

		for (int j = 0; j < SCORE_HEAD; j++)
			v += gpu_popc((uint32_t)(i & j)) & 1 ? -x[j] : x[j];
		return v * (1.0f / 128.0f);
	}
};

/* Head h's part of a split. */
GPU_DEVICE float *
fused_part(const gpu_args &a, uint32_t split, uint32_t h)
{
	return (float *)a.work + ((uint64_t)split * a.n_heads + h) * FUSED_PART;
}

/* Weight of a logit beside the largest; an empty part has none. */
GPU_DEVICE float
weight_of(float raw, float max)
{
	return max == -INFINITY ? 0.0f : gpu_exp(raw - max);
}

/* The largest of a value over the block's threads. */
GPU_DEVICE float
merge_max(float v, float shared[FUSED_MERGE_BLOCK])
{
	shared[threadIdx.x] = v;
	gpu_sync();
	for (int m = FUSED_MERGE_BLOCK / 2; m > 0; m /= 2) {
		if ((int)threadIdx.x < m)
			shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + m]);
		gpu_sync();
	}
	v = shared[0];
	gpu_sync();
	return v;
}

/* Groups of SCORE_HEAD threads take every MERGE_GROUPS-th split, an element each. */
#define MERGE_GROUPS (FUSED_MERGE_BLOCK / SCORE_HEAD)

template <class V>
GPU_DEVICE void
fused_merge(const gpu_args &a)
{
	__shared__ float weights[FUSED_MERGE_BLOCK], x[MERGE_GROUPS][SCORE_HEAD + 2];
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	uint32_t h = blockIdx.x, tid = threadIdx.x, i = tid % SCORE_HEAD, group = tid / SCORE_HEAD;
	float max = -INFINITY, sum = 0, acc = 0, residual = 0;

	/* fmaxf drops a NaN; the sums keep it. */
	for (uint32_t s = tid; s < a.splits; s += FUSED_MERGE_BLOCK)
		max = fmaxf(max, fused_part(a, s, h)[0]);
	max = merge_max(max, weights);
	for (uint32_t first = 0; first < a.splits; first += FUSED_MERGE_BLOCK) {
		uint32_t n = a.splits - first < FUSED_MERGE_BLOCK ? a.splits - first : FUSED_MERGE_BLOCK;

		weights[tid] = tid < n ? weight_of(fused_part(a, first + tid, h)[0], max) : 0.0f;
		gpu_sync();
#pragma unroll 8
		for (uint32_t s = group; s < n; s += MERGE_GROUPS) {
			const float *part = fused_part(a, first + s, h);

			acc += weights[s] * part[2 + i];
			/* Two threads of the group sum what a split has one of. */
			if (i == 0)
				sum += weights[s] * part[1];
			if (i == 1)
				residual += weights[s] * part[2 + SCORE_HEAD];
		}
		gpu_sync();
	}
	x[group][i] = acc;
	if (i == 0)
		x[group][SCORE_HEAD] = sum;
	if (i == 1)
		x[group][SCORE_HEAD + 1] = residual;
	gpu_sync();
	acc = sum = residual = 0;
	for (int g = 0; g < MERGE_GROUPS; g++) {
		acc += x[g][i];
		sum += x[g][SCORE_HEAD];
		residual += x[g][SCORE_HEAD + 1];
	}
	gpu_sync();
	if (V::RESIDUAL && a.use_qjl)
		acc += residual * POLAR_STEP * (tables->residual[i >> 5] >> (i & 31) & 1 ? 1.0f : -1.0f);
	x[0][i] = acc;
	gpu_sync();
	acc = V::transform(tables, x[0], (int)i);
	if (group == 0)
		((float *)a.out)[(uint64_t)h * SCORE_HEAD + i] = sum == 0 ? 0.0f : acc / sum;
}

/* Tokens of a split: whole runs of `unit` tokens. */
struct fused_range {
	uint32_t first, end;
};

GPU_DEVICE struct fused_range
fused_range_of(const gpu_args &a, uint32_t split, uint32_t unit)
{
	uint64_t units = ((uint64_t)a.visible + unit - 1) / unit;
	uint64_t first = units * split / a.splits * unit, end = units * (split + 1) / a.splits * unit;
	struct fused_range r;

	r.first = (uint32_t)(first < a.visible ? first : a.visible);
	r.end = (uint32_t)(end < a.visible ? end : a.visible);
	return r;
}

/* The portable way: logits of a round by four lanes a token, then each thread sums one
 * element for half of the heads. */
template <class V>
GPU_DEVICE void
fused_portable(const gpu_args &a)
{
	__shared__ struct qjl_query query;
	__shared__ float values[V::LEVELS], raw[SCORE_HEADS][FUSED_TOKENS], max[SCORE_HEADS];
	__shared__ float sign[FUSED_TOKENS];
	struct score_part p = score_part_of(a, blockIdx.y, SCORE_HEADS);
	struct fused_range r = fused_range_of(a, blockIdx.x, FUSED_TOKENS);
	const uint8_t *k = (const uint8_t *)a.k + (uint64_t)p.kv_head * a.n_kv * QJL_BYTES;
	const uint8_t *v = (const uint8_t *)a.v + (uint64_t)p.kv_head * a.n_kv * V::BYTES;
	uint32_t at, t = threadIdx.x & 3, slot = threadIdx.x / 4, dim = threadIdx.x % SCORE_HEAD;
	uint32_t base = threadIdx.x / SCORE_HEAD * (SCORE_HEADS / 2);
	float acc[SCORE_HEADS], sum[SCORE_HEADS / 2] = {}, res[SCORE_HEADS / 2] = {};
	float out[SCORE_HEADS / 2] = {}, top[SCORE_HEADS / 2];

	qjl_query_load(a, p, &query);
	for (uint32_t i = threadIdx.x; i < V::LEVELS; i += SCORE_BLOCK)
		values[i] = V::values((const gpu_tables *)a.tables)[i];
	for (int h = 0; h < SCORE_HEADS / 2; h++)
		top[h] = -INFINITY;
	for (uint32_t first = r.first; first < r.end; first += FUSED_TOKENS) {
		uint32_t token = first + slot, shown = token < r.end ? token : r.end - 1;
		const uint8_t *b = k + (uint64_t)shown * QJL_BYTES;

		gpu_sync();
		at = (uint32_t)((uint64_t)b & 3);
		b -= at;
		qjl_sums(&query, b, at, t, acc);
#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++) {
			acc[h] += gpu_shfl_xor(acc[h], 1, 4);
			acc[h] += gpu_shfl_xor(acc[h], 2, 4);
			acc[h] *= QJL_SCALE * load_bf16(b, at + QJL_NORM_AT);
			if (t == (uint32_t)(h & 3))
				raw[h][slot] = token < r.end ? acc[h] * a.sm_scale : -INFINITY;
		}
		if (t == 0 && V::RESIDUAL)
			sign[slot] = v[(uint64_t)shown * V::BYTES + POLAR_RESIDUAL_AT] & 1 ? 1.0f : -1.0f;
		gpu_sync();
		if (threadIdx.x < SCORE_HEADS) {
			float m = -INFINITY;

			for (int i = 0; i < FUSED_TOKENS; i++)
				m = fmaxf(m, raw[threadIdx.x][i]);
			max[threadIdx.x] = m;
		}
		gpu_sync();
#pragma unroll
		for (int h = 0; h < SCORE_HEADS / 2; h++) {
			float m = fmaxf(top[h], max[base + h]), keep = weight_of(top[h], m);

			top[h] = m;
			sum[h] *= keep;
			res[h] *= keep;
			out[h] *= keep;
		}
		for (uint32_t i = 0; i < FUSED_TOKENS && first + i < r.end; i++) {
			const uint8_t *y = v + (uint64_t)(first + i) * V::BYTES;
			float n = V::norm(y, 0, dim / 32), level = values[V::code(y, 0, dim)] * n, w;

#pragma unroll
			for (int h = 0; h < SCORE_HEADS / 2; h++) {
				w = weight_of(raw[base + h][i], top[h]);
				sum[h] += w;
				out[h] += w * level;
				if (V::RESIDUAL)
					res[h] += w * n * sign[i];
			}
		}
	}
	for (uint32_t h = 0; h < SCORE_HEADS / 2; h++) {
		float *part = fused_part(a, blockIdx.x, p.first + base + h);

		if (base + h >= p.heads)
			continue;
		part[2 + dim] = out[h];
		if (dim == 0) {
			part[0] = top[h];
			part[1] = sum[h];
			part[2 + SCORE_HEAD] = res[h];
		}
	}
}

#if GPU_MATRIX
/*
 * The matrix way.  Rows of the second product are elements of the value, columns are query
 * heads, the reduction runs over tokens: eight in each step, of which lane (g, t) decodes
 * tokens 2t and 2t + 1, whose weights for head g it has from the first product.
 */
struct tbq_lane : tbq_value {
	enum { TABLE = FUSED_TBQ_TABLE };
	/* Rows g and g + 8 of row tile m are elements 4 g + 2 (m & 1) and the next of quarter
	 * m / 2. */
	static __device__ int element(int m, int row)
	{
		return 32 * (m >> 1) + 4 * (row & 7) + 2 * (m & 1) + (row >> 3);
	}
	static __device__ void build(uint8_t *table, const float *v)
	{
		for (int i = threadIdx.x; i < 64; i += FUSED_BLOCK)
			table_row(table + 128 * i, i, split(v[i & 7] * LEVEL_SCALE), split(v[i >> 3] * LEVEL_SCALE));
	}
	static __device__ uint32_t offset(uint32_t lane) { return (lane & 15) * 8; }
	static __device__ void load(const uint8_t *b, uint32_t at, int g, uint32_t w[WORDS])
	{
#pragma unroll
		for (int q = 0; q < 4; q++) {
			/* Twelve bits, in one half word or across two. */
			uint32_t from = at + 14 * q + 2 + (12 * g >> 4) * 2;

			w[q] = (load_half(b, from) | load_half(b, from + 2) << 16) >> (12 * g & 15);
		}
	}
	static __device__ void look(const uint8_t *table, const uint32_t w[WORDS], int m,
		uint32_t offset, uint32_t out[2])
	{
		uint32_t code = m & 1 ? w[m >> 1] << 1 : w[m >> 1] << 7;
		const uint2 e = *(const uint2 *)(table + ((code & 0x1f80) | offset));

		out[0] = e.x;
		out[1] = e.y;
	}
};

struct polar_lane : polar_value {
	enum { TABLE = FUSED_POLAR_TABLE };
	static __device__ int element(int m, int row)
	{
		return 16 * (row & 7) + 2 * m + (row >> 3);
	}
	static __device__ void build(uint8_t *table, const float *v)
	{
		for (int i = threadIdx.x; i < 256; i += FUSED_BLOCK)
			table_row(table + 128 * i, i, split(v[i & 15] * LEVEL_SCALE), split(v[i >> 4] * LEVEL_SCALE));
	}
	static __device__ uint32_t offset(uint32_t lane) { return (lane & 15) * 8; }
	static __device__ void load(const uint8_t *b, uint32_t at, int g, uint32_t w[WORDS])
	{
		load_words<WORDS>(b, at + 2 + 8 * g, w);
	}
	static __device__ void look(const uint8_t *table, const uint32_t w[WORDS], int m,
		uint32_t offset, uint32_t out[2])
	{
		uint32_t code = m & 3 ? w[m >> 2] >> (8 * (m & 3) - 7) : w[m >> 2] << 7;
		const uint2 e = *(const uint2 *)(table + ((code & 0x7f80) | offset));

		out[0] = e.x;
		out[1] = e.y;
	}
};

#define ROW_TILES 8

/* Of a warp, and of a block when its warps have been merged. */
struct fused_state {
	float max, sum, residual;       /* of head g; sums of this lane's tokens */
	float acc[ROW_TILES][4];        /* rows g, g + 8; heads 2t, 2t + 1 */
};

/* Shared memory of the block's merge; takes the place of the table and the runs. */
struct fused_gather {
	float max[FUSED_BLOCK / 32][SCORE_HEADS], sum[FUSED_BLOCK / 32][SCORE_HEADS];
	float residual[FUSED_BLOCK / 32][SCORE_HEADS];
	float acc[FUSED_BLOCK / 32][SCORE_HEADS][SCORE_HEAD + 4];
};
static_assert(sizeof(struct fused_gather) <= FUSED_TBQ_SHARED, "room for the merge");

template <class V>
GPU_DEVICE void
fused_gather_write(const struct fused_state &s, struct fused_gather *to)
{
	uint32_t lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx.x >> 5;
	float sum = s.sum, residual = s.residual;

	for (int m = 1; m < 4; m *= 2) {
		sum += gpu_shfl_xor(sum, m, 32);
		residual += gpu_shfl_xor(residual, m, 32);
	}
	if (t == 0) {
		to->max[warp][g] = s.max;
		to->sum[warp][g] = sum;
		to->residual[warp][g] = residual;
	}
#pragma unroll
	for (int m = 0; m < ROW_TILES; m++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			to->acc[warp][2 * t + (i & 1)][V::element(m, (int)g + 8 * (i >> 1))] =
				s.acc[m][i] * (1.0f / LEVEL_SCALE);
}

/* With four heads the columns after them hold the low parts. */
template <int HEADS>
GPU_DEVICE void
fused_gather_read(const gpu_args &a, const struct score_part &p, const struct fused_gather *from)
{
	for (uint32_t i = threadIdx.x; i < p.heads * SCORE_HEAD; i += FUSED_BLOCK) {
		uint32_t h = i / SCORE_HEAD, d = i % SCORE_HEAD;
		float max = -INFINITY, sum = 0, residual = 0, acc = 0;
		float *part = fused_part(a, blockIdx.x, p.first + h);

		for (int w = 0; w < FUSED_BLOCK / 32; w++)
			max = fmaxf(max, from->max[w][h]);
		for (int w = 0; w < FUSED_BLOCK / 32; w++) {
			float weight = weight_of(from->max[w][h], max);

			sum += weight * from->sum[w][h];
			residual += weight * from->residual[w][h];
			acc += weight * (from->acc[w][h][d] + (HEADS == 4 ? from->acc[w][h + 4][d] : 0.0f));
		}
		part[2 + d] = acc;
		if (d == 0) {
			part[0] = max;
			part[1] = sum;
			part[2 + SCORE_HEAD] = residual;
		}
	}
}

/* Weights of two tokens as operands: high and low parts of eight heads, or of four the high
 * parts in lanes g < 4 and the low ones in the others. */
template <int HEADS>
GPU_DEVICE void
fused_weights(const float v[2], float low, uint32_t parts[2][2])
{
	uint32_t high = gpu_to_half2(v[0], v[1]), rest;

	rest = gpu_to_half2(v[0] - low * gpu_from_half((uint16_t)high),
		v[1] - low * gpu_from_half((uint16_t)(high >> 16)));
	for (int j = 0; j < 2; j++) {
		parts[0][j] = twice(HEADS == 8 ? high : rest, j);
		parts[1][j] = twice(rest, j);
	}
}

/* Adds eight tokens, whose weights for head g and tokens 2t, 2t + 1 are w. */
template <class V, int HEADS>
GPU_DEVICE void
fused_add(struct fused_state &s, const uint8_t *table, uint32_t offset, const uint8_t *tile,
	uint32_t at, int g, const float w[2], float low, bool residual)
{
	uint32_t codes[2][V::WORDS], x[4], parts[2][2];
	float v[2];

#pragma unroll
	for (int j = 0; j < 2; j++)
		V::load(tile, at + j * V::BYTES, g, codes[j]);
#pragma unroll
	for (int m = 0; m < ROW_TILES; m++) {
		if (m % (ROW_TILES / V::QUARTERS) == 0) {
#pragma unroll
			for (int j = 0; j < 2; j++) {
				v[j] = w[j] * V::norm(tile, at + j * V::BYTES, m / (ROW_TILES / V::QUARTERS));
				if (V::RESIDUAL && residual)
					s.residual += residual_sign(tile, at + j * V::BYTES) * v[j];
			}
			fused_weights<HEADS>(v, low, parts);
		}
		V::look(table, codes[0], m, offset, x);
		V::look(table, codes[1], m, offset, x + 2);
		gpu_mma_f16(s.acc[m], x, parts[0]);
		if (HEADS == 8)
			gpu_mma_f16(s.acc[m], x, parts[1]);
	}
}

/* Four heads keep their queries in registers, eight do not fit. */
template <int HEADS> struct fused_keys {
	typedef logit_engine<4> engine;
};
template <> struct fused_keys<8> {
	typedef logit_engine<8, digit_rows_shared<8>, STAGE_KEYS / TILE_KEYS> engine;
};
static_assert(digit_rows_shared<8>::BYTES <= FUSED_ROWS_BYTES, "room for the queries");

template <class V> struct fused_layout {
	enum {
		KEYS_AT = V::TABLE,
		K_STAGE_AT = KEYS_AT + DIGIT_QUERY_BYTES + FUSED_ROWS_BYTES,
		K_STAGE = LEVEL_STAGES * STAGE_BYTES(QJL_BYTES),
		V_STAGE_AT = K_STAGE_AT + FUSED_BLOCK / 32 * K_STAGE,
		V_STAGE = LEVEL_STAGES * STAGE_BYTES(V::BYTES),
	};
};

template <class V, int HEADS>
GPU_DEVICE void
fused_matrix(const gpu_args &a, uint8_t *shared)
{
	typedef fused_layout<V> layout;
	enum { TILES = STAGE_KEYS / TILE_KEYS, WARPS = FUSED_BLOCK / 32 };
	struct score_part p = score_part_of(a, blockIdx.y, HEADS);
	uint32_t lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx.x >> 5;
	uint32_t run = blockIdx.x * WARPS + warp, step = gridDim.x * WARPS;
	uint32_t offset = V::offset(lane), at;
	uint64_t kv = (uint64_t)p.kv_head * a.n_kv;
	stage_stream<QJL_BYTES, LEVEL_STAGES> k;
	stage_stream<V::BYTES, LEVEL_STAGES> v;
	struct fused_state s = {-INFINITY, 0, 0, {}};
	typename fused_keys<HEADS>::engine keys;
	bool head = g % HEADS < p.heads;
	float low = HEADS == 8 || g >= 4 ? 1.0f : 0.0f;

	k.start(a.k + kv * QJL_BYTES, a.visible, run, step, shared + layout::K_STAGE_AT + warp * layout::K_STAGE);
	v.start(a.v + kv * V::BYTES, a.visible, run, step, shared + layout::V_STAGE_AT + warp * layout::V_STAGE);
	V::build(shared, V::values((const gpu_tables *)a.tables));
	keys.shared = shared + layout::KEYS_AT;
	keys.prepare(a, p, k.lead);
	at = v.lead + 2 * t * V::BYTES;
	for (; run < k.runs; run += step) {
		const uint8_t *k_now = k.next();
		uint8_t *v_now = (uint8_t *)v.next();
		float raw[TILES][2], top = s.max, keep;

		if (run + 1 == k.runs) {
			/* What was not copied may hold any norm: 0 * NaN is not 0. */
			for (uint32_t i = v.tail + lane; i < v.lead + STAGE_KEYS * V::BYTES; i += 32)
				v_now[i] = 0;
			gpu_sync_warp();
		}
#pragma unroll
		for (int m = 0; m < TILES; m += keys.WIDE)
			keys.tiles(k_now + m * TILE_KEYS * QJL_BYTES, raw + m);
#pragma unroll
		for (int i = 0; i < 2 * TILES; i++) {
			uint32_t left = a.visible - run * STAGE_KEYS;
			float *r = &raw[i / 2][i % 2];

			*r = head && i / 2 * TILE_KEYS + 2 * t + i % 2 < left ? *r * a.sm_scale : -INFINITY;
			top = fmaxf(top, *r);
		}
		top = fmaxf(top, gpu_shfl_xor(top, 1, 32));
		top = fmaxf(top, gpu_shfl_xor(top, 2, 32));
		keep = weight_of(s.max, top);
		s.max = top;
		s.sum *= keep;
		s.residual *= keep;
		/* This lane's columns are 2t and 2t + 1, whose heads are those of lanes g alike. */
#pragma unroll
		for (int j = 0; j < 2; j++) {
			float other = gpu_shfl(keep, (int)(2 * t + j) * 4, 32);

#pragma unroll
			for (int m = 0; m < ROW_TILES; m++) {
				s.acc[m][j] *= other;
				s.acc[m][j + 2] *= other;
			}
		}
#pragma unroll
		for (int m = 0; m < TILES; m++) {
			float w[2];

#pragma unroll
			for (int j = 0; j < 2; j++) {
				w[j] = weight_of(raw[m][j], top);
				s.sum += w[j];
			}
			fused_add<V, HEADS>(s, shared, offset, v_now + m * TILE_KEYS * V::BYTES, at, (int)g, w,
				low, a.use_qjl != 0);
		}
	}
	/* The runs that are no more needed make room for the merge. */
	gpu_copy_wait<0>();
	gpu_sync();
	fused_gather_write<V>(s, (struct fused_gather *)shared);
	gpu_sync();
	fused_gather_read<HEADS>(a, p, (const struct fused_gather *)shared);
}
#endif

#define FUSED_KERNEL(name, block, call)         \
	GPU_KERNEL __launch_bounds__(block)     \
	name(struct gpu_args a)                 \
	{                                       \
		call(a);                        \
	}
#if GPU_MATRIX
#define FUSED_MATRIX(name, ...)                         \
	GPU_KERNEL __launch_bounds__(FUSED_BLOCK, FUSED_BLOCKS) \
	name(struct gpu_args a)                         \
	{                                               \
		GPU_SHARED(shared);                     \
		(__VA_ARGS__)(a, shared);               \
	}
#else
#define FUSED_MATRIX(name, ...)                         \
	GPU_KERNEL                                      \
	name(struct gpu_args a)                         \
	{                                               \
		(void)a;                                \
	}
#endif
FUSED_KERNEL(fused_tbq, SCORE_BLOCK, fused_portable<tbq_value>)
FUSED_KERNEL(fused_polar, SCORE_BLOCK, fused_portable<polar_value>)
FUSED_KERNEL(fused_tbq_merge, FUSED_MERGE_BLOCK, fused_merge<tbq_value>)
FUSED_KERNEL(fused_polar_merge, FUSED_MERGE_BLOCK, fused_merge<polar_value>)
FUSED_MATRIX(fused_tbq_4, fused_matrix<tbq_lane, 4>)
FUSED_MATRIX(fused_tbq_8, fused_matrix<tbq_lane, 8>)
FUSED_MATRIX(fused_polar_4, fused_matrix<polar_lane, 4>)
FUSED_MATRIX(fused_polar_8, fused_matrix<polar_lane, 8>)
