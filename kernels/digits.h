/*
 * digits - score engines on integer matrix units: see matrix.h for the stream.
 *
 * A query is scaled to an integer of QUERY_BITS bits and split into three balanced digits
 * of 8 bits; each digit of each head is a column of the product.  The rows are keys, whose
 * operands are bytes.  Products and sums are exact, so only the rounding of the query,
 * 2^-QUERY_BITS of its largest element, and that of the levels is felt.
 *
 * qjl: acc = sum of (bit ? q : -q) = 2 * (sum of q where the bit is set) - (sum of q).  A
 * word of sign bits masked with 0x01010101 << i is four operands of 2^i, one instruction
 * for four signs; the query's elements that meet such operands are scaled down by 2^i.
 *
 * Codebooks: a level is (high * ratio + low) * unit with two signed bytes; gpu_plan.c says
 * how ratio and unit were found.  turbo3's eight levels lie in four registers, where a byte
 * permutation looks up four codes at once; sixteen levels lie in a table in shared memory,
 * indexed by the byte that holds two codes.
 */
#ifndef KERNELS_DIGITS_H
#define KERNELS_DIGITS_H

#include "kernels/matrix.h"
#include "kernels/qjl.h"

#if GPU_MATRIX

#define QUERY_BITS 22
#define DIGITS 3
#define DIGIT_STEPS 8     /* of two operands for each lane */

struct digit_query {
	/* Four neighbouring bytes are an operand: see digit_slot.  A head starts four banks
	 * after the one before it. */
	int8_t q[DIGITS][SCORE_HEADS][DIGIT_STEPS * 32 + 16];
	/* A score is (sum of products * scale + extra, or with the residual's sign) * norm. */
	float scale[SCORE_HEADS], extra[SCORE_HEADS];
};
static_assert(sizeof(struct digit_query) <= DIGIT_QUERY_BYTES, "room for the queries");

/* Byte k of operand `word` of step s of lane t. */
GPU_DEVICE int
digit_slot(int t, int s, int word, int k)
{
	return ((s * 2 + word) * 4 + t) * 4 + k;
}

GPU_DEVICE void
digit_store(struct digit_query *to, uint32_t head, int slot, float v)
{
	int n = (int)rintf(v);

#pragma unroll
	for (int d = 0; d < DIGITS; d++) {
		int digit = (int)(int8_t)(n & 255);

		to->q[d][head][slot] = (int8_t)digit;
		n = (n - digit) >> 8;
	}
}

/* Exponent of a scale that brings magnitudes up to top below 2^QUERY_BITS.  A query that is
 * not finite shows in its sum. */
GPU_DEVICE int
digit_exponent(float top)
{
	int e = (int)(gpu_bits(top) >> 23);

	e = e < 30 ? 30 : e > 250 ? 250 : e;
	return QUERY_BITS - (e - 126);
}

GPU_DEVICE float
power_of_2(int e)
{
	return gpu_float((uint32_t)(127 + e) << 23);
}

template <class D>
GPU_DEVICE void
levels_prepare_head(const gpu_args &a, const struct score_part &p, uint32_t h, struct digit_query *to)
{
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	const float *q = (const float *)a.q + (uint64_t)(p.first + h) * SCORE_HEAD;
	float ratio = tables->levels[D::LEVEL_SET].ratio, v[4], top = 0, sum = 0, r = 0;
	int lane = threadIdx.x & 31, e;

	for (int i = 0; i < 4; i++)
		v[i] = h < p.heads ? q[4 * lane + i] : 0.0f;
	if (D::HADAMARD)
		hadamard_lanes(v, lane);
	for (int i = 0; i < 4; i++) {
		top = fmaxf(top, fabsf(v[i]));
		sum += v[i];
		r += tables->residual[lane >> 3] >> (4 * (lane & 7) + i) & 1 ? v[i] : -v[i];
	}
	for (int m = 1; m < 32; m *= 2) {
		top = fmaxf(top, gpu_shfl_xor(top, m, 32));
		sum += gpu_shfl_xor(sum, m, 32);
		r += gpu_shfl_xor(r, m, 32);
	}
	e = digit_exponent(top * ratio);
	for (int i = 0; i < 4; i++) {
		digit_store(to, h, D::place(4 * lane + i, 0), v[i] * ratio * power_of_2(e));
		digit_store(to, h, D::place(4 * lane + i, 1), v[i] * power_of_2(e));
	}
	if (lane == 0) {
		/* A query that is not finite makes scores that are not. */
		to->scale[h] = power_of_2(-e) * tables->levels[D::LEVEL_SET].unit + (sum - sum);
		to->extra[h] = has_residual<typename D::format>::value && a.use_qjl ? r * POLAR_STEP : 0;
	}
}

/* Sign bits: an operand is bit s of each byte of a word, worth 2^(s & 3). */
struct qjl_bytes {
	enum { BYTES = QJL_BYTES, QUARTERS = 1, TABLE = 0, STAGES = DIGIT_STAGES, EXTRA = 1 };
	typedef qjl_bytes format;

	static __device__ uint32_t codes_at(int t) { return 8 * t; }
	static __device__ void load(const uint8_t *b, uint32_t at, uint32_t w[4])
	{
		load_words<2>(b, at, w);
	}
	static __device__ float norm(const uint8_t *b, uint32_t key, int)
	{
		return QJL_SCALE * load_bf16(b, key + QJL_NORM_AT);
	}
	static __device__ void build(uint8_t *, const gpu_tables *) {}
	__device__ void fetch(const uint8_t *) {}
	static __device__ void unpack(uint32_t *) {}
	static __device__ void operands(const uint8_t *, const uint32_t w[4], int s, uint32_t b[2])
	{
		b[0] = w[0] >> (s & 4) & 0x01010101u << (s & 3);
		b[1] = w[1] >> (s & 4) & 0x01010101u << (s & 3);
	}
	static __device__ void prepare_head(const gpu_args &a, const struct score_part &p, uint32_t h,
		struct digit_query *to)
	{
		const float *q = (const float *)a.q + (uint64_t)(p.first + h) * QJL_PROJ;
		int lane = threadIdx.x & 31, e;
		float v[QJL_PROJ / 32], top = 0, sum = 0;

#pragma unroll
		for (int i = 0; i < QJL_PROJ / 32; i++) {
			v[i] = h < p.heads ? q[32 * i + lane] : 0.0f;
			sum += v[i];
			top = fmaxf(top, fabsf(v[i]));
		}
		for (int m = 1; m < 32; m *= 2) {
			top = fmaxf(top, gpu_shfl_xor(top, m, 32));
			sum += gpu_shfl_xor(sum, m, 32);
		}
		e = digit_exponent(top);
		/* Element 64 t + 32 word + 8 k + s is bit s of byte k of word `word`; step s masks
		 * bit s & 3 of the word shifted by s & 4.  lane & 7 is s. */
#pragma unroll
		for (int i = 0; i < QJL_PROJ / 32; i++)
			digit_store(to, h, digit_slot(i >> 1, lane & 7, i & 1, lane >> 3),
				v[i] * power_of_2(e - (lane & 3)));
		if (lane == 0) {
			to->scale[h] = 2.0f * power_of_2(-e);
			to->extra[h] = -sum;
		}
	}
};

/* Eight levels in registers: operand 0 is the high bytes of four codes, 1 the low ones. */
struct turbo3_bytes : turbo3_format {
	enum { TABLE = TURBO3_TABLE_BYTES, STAGES = DIGIT_STAGES, LEVEL_SET = GPU_TURBO3, EXTRA = 0 };
	uint32_t high[2], low[2];

	/* Where part 0 (meets high bytes) or 1 of the query's element e goes. */
	static __device__ int place(int e, int part)
	{
		int i = e & 31, s = (i >> 4) * 4 + (i & 1) * 2 + (i >> 3 & 1);

		return digit_slot(e >> 5, s, part, i >> 1 & 3);
	}
	static __device__ void build(uint8_t *table, const gpu_tables *tables)
	{
		const struct gpu_levels *l = &tables->levels[LEVEL_SET];
		const uint32_t *high = (const uint32_t *)l->high, *low = (const uint32_t *)l->low;

		if (threadIdx.x < 32)
			((uint4 *)table)[threadIdx.x] = make_uint4(high[0], high[1], low[0], low[1]);
	}
	/* Each lane reads its own copy: what is the same in all of them would be kept where an
	 * instruction can not use it without a move. */
	__device__ void fetch(const uint8_t *table)
	{
		const uint4 v = ((const uint4 *)table)[threadIdx.x & 31];

		high[0] = v.x;
		high[1] = v.y;
		low[0] = v.z;
		low[1] = v.w;
	}
	/* Codes to nibbles: words of 8, by half and by even or odd place. */
	static __device__ void unpack(uint32_t w[4])
	{
		uint32_t bits = w[2], half[2] = {w[0], w[1]};

#pragma unroll
		for (int i = 0; i < 2; i++) {
			/* Bytes of the sign bits apart, then their nibbles, then pairs. */
			uint32_t x = gpu_prmt(bits, 0, i ? 0x4342 : 0x4140);

			x = (x | x << 4) & 0x0f0f0f0fu;
			w[2 * i] = (half[i] & 0x33333333u) + ((x | x << 2) & 0x11111111u) * 4;
			w[2 * i + 1] = (half[i] >> 2 & 0x33333333u) + ((x | x << 2) & 0x22222222u) * 2;
		}
	}
	__device__ void operands(const uint8_t *, const uint32_t w[4], int s, uint32_t b[2]) const
	{
		uint32_t code = w[s >> 1] >> 16 * (s & 1);

		b[0] = gpu_prmt(high[0], high[1], code);
		b[1] = gpu_prmt(low[0], low[1], code);
	}
	static __device__ void prepare_head(const gpu_args &a, const struct score_part &p, uint32_t h,
		struct digit_query *to)
	{
		levels_prepare_head<turbo3_bytes>(a, p, h, to);
	}
};

/* Sixteen levels: an operand is {high, low} of both codes of a byte, looked up in a table
 * with a copy for each lane.  A row is 256 bytes, so that the byte is byte 1 of an address. */
template <class F, int SET> struct pair_bytes : F {
	enum { TABLE = PAIR_TABLE_BYTES, STAGES = LEVEL_STAGES, LEVEL_SET = SET, EXTRA = 0 };
	uint32_t offset;

	static __device__ int place(int e, int part)
	{
		/* F::slot counts pairs by lane: byte i of word w is step 4 w + i. */
		int slot = F::slot(e), t = slot & 3, i = slot >> 2 & 1, byte = slot >> 3;

		return digit_slot(t, byte >> 1, byte & 1, 2 * i + part);
	}
	static __device__ void build(uint8_t *table, const gpu_tables *tables)
	{
		const struct gpu_levels *l = &tables->levels[LEVEL_SET];

		for (int i = threadIdx.x; i < 256; i += blockDim.x) {
			uint32_t e = (uint32_t)(l->high[i & 15] & 255) | (uint32_t)(l->low[i & 15] & 255) << 8 |
				(uint32_t)(l->high[i >> 4] & 255) << 16 | (uint32_t)(l->low[i >> 4] & 255) << 24;

			table_row(table + 256 * i, i, e, e);
		}
	}
	__device__ void fetch(const uint8_t *)
	{
		offset = (threadIdx.x & 31) * 4;
	}
	static __device__ void unpack(uint32_t *) {}
	__device__ void operands(const uint8_t *table, const uint32_t w[4], int s, uint32_t b[2]) const
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			b[i] = *(const uint32_t *)(table + gpu_prmt(w[s >> 1], offset,
				0x5504 | (uint32_t)(2 * (s & 1) + i) << 4));
	}
	static __device__ void prepare_head(const gpu_args &a, const struct score_part &p, uint32_t h,
		struct digit_query *to)
	{
		levels_prepare_head<pair_bytes>(a, p, h, to);
	}
};

/* Columns of up to HEADS heads; lane t of a row gets those of its heads t and t + 4, so
 * that digits meet in one lane.  One head: lane 0 digits 2 and 1, lane 1 digit 0. */
template <int HEADS> struct digit_columns {
	enum { TILES = HEADS == 1 ? 1 : HEADS == 4 ? 2 : 3, SLOTS = HEADS == 8 ? 2 : 1 };
	uint32_t b[DIGIT_STEPS][TILES][2];

	/* Head and digit of column n of a tile; digit -1: zeros. */
	static __device__ void column(int tile, int n, int *head, int *digit)
	{
		if (HEADS == 1) {
			*head = 0;
			*digit = n < DIGITS ? DIGITS - 1 - n : -1;
		} else if (tile < SLOTS) {
			*head = 4 * tile + (n >> 1);
			*digit = DIGITS - 1 - (n & 1);
		} else {
			*head = (n >> 1) + (SLOTS == 2 ? 4 * (n & 1) : 0);
			*digit = SLOTS == 2 || (n & 1) == 0 ? 0 : -1;
		}
	}

	__device__ void load(const struct digit_query *q)
	{
		int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3, head, digit;

#pragma unroll
		for (int i = 0; i < TILES; i++) {
			column(i, g, &head, &digit);
			const uint32_t *from = (const uint32_t *)q->q[digit < 0 ? 0 : digit][head];

#pragma unroll
			for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
				for (int word = 0; word < 2; word++)
					b[s][i][word] = digit < 0 ? 0 : from[digit_slot(t, s, word, 0) / 4];
		}
	}

	/* x, y: operands of key g of a tile and of the next. */
	__device__ void multiply(int acc[TILES][4], int s, const uint32_t x[2], const uint32_t y[2]) const
	{
		const uint32_t a[4] = {x[0], y[0], x[1], y[1]};

#pragma unroll
		for (int i = 0; i < TILES; i++)
			gpu_mma_s8(acc[i], a, b[s][i]);
	}

	/* This lane's sum of head t + 4 * slot for key g of the tile (j = 0) or the next. */
	static __device__ float sum(const int acc[TILES][4], uint32_t t, int j, int slot)
	{
		if (HEADS == 1)
			return (float)acc[0][2 * j] * (t ? 1.0f : 65536.0f) + (float)acc[0][2 * j + 1] * 256.0f;
		return (float)acc[slot][2 * j] * 65536.0f +
			(float)(acc[slot][2 * j + 1] * 256 + acc[TILES - 1][2 * j + slot]);
	}
};

template <class D, int HEADS_, int WIDE_ = D::QUARTERS == 1 ? 4 : 2> struct digit_engine {
	enum {
		BYTES = D::BYTES,
		HEADS = HEADS_,
		STAGES = D::STAGES,
		WIDE = WIDE_,
		SLOTS = digit_columns<HEADS>::SLOTS,
		STAGE_AT = D::TABLE + DIGIT_QUERY_BYTES,
	};
	typedef digit_columns<HEADS> columns;
	uint8_t *shared;
	columns query;
	D format;
	float scale[SLOTS], extra[SLOTS];
	uint32_t t, codes, key;         /* bytes of a tile */

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		struct digit_query *q = (struct digit_query *)(shared + D::TABLE);

		t = threadIdx.x & 3;
		D::build(shared, (const gpu_tables *)args.tables);
		for (uint32_t h = threadIdx.x / 32; h < HEADS; h += SCORE_BLOCK / 32)
			D::prepare_head(args, p, h, q);
		gpu_sync();
		format.fetch(shared);
		query.load(q);
#pragma unroll
		for (int s = 0; s < SLOTS; s++) {
			uint32_t h = HEADS == 1 ? 0 : t + 4 * s;

			scale[s] = q->scale[h];
			/* One head is summed over two lanes. */
			extra[s] = HEADS == 1 && t ? 0.0f : q->extra[h];
		}
		key = lead + (threadIdx.x >> 2 & 7) * BYTES;
		codes = key + D::codes_at(t);
	}

	/* Of head t + 4 * slot, or of the one head in lanes 0 and 1, for key g of each tile. */
	__device__ void tiles(const uint8_t *stage, float v[WIDE][SLOTS])
	{
		enum { EACH = DIGIT_STEPS / D::QUARTERS };
		int acc[WIDE / 2][columns::TILES][4] = {};
		uint32_t w[WIDE][4], b[2][2];

#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			D::load(stage + i * TILE_KEYS * BYTES, codes, w[i]);
			D::unpack(w[i]);
		}
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
			for (int i = 0; i < WIDE; i += 2) {
				format.operands(shared, w[i], s, b[0]);
				format.operands(shared, w[i + 1], s, b[1]);
				query.multiply(acc[i / 2], s, b[0], b[1]);
				if ((s + 1) % EACH == 0)
					add_quarter(stage + i * TILE_KEYS * BYTES, s / EACH, acc[i / 2], v + i);
			}
		if (HEADS == 1)
#pragma unroll
			for (int i = 0; i < WIDE; i++)
				v[i][0] += gpu_shfl_xor(v[i][0], 1, 4);
	}

	/* Scores of both tiles so far; the sums start again. */
	__device__ void add_quarter(const uint8_t *stage, int quarter, int acc[columns::TILES][4],
		float v[2][SLOTS])
	{
#pragma unroll
		for (int j = 0; j < 2; j++) {
			const uint8_t *tile = stage + j * TILE_KEYS * BYTES;
			float n = D::norm(tile, key, quarter);

#pragma unroll
			for (int s = 0; s < SLOTS; s++) {
				float sum = columns::sum(acc, t, j, s) * scale[s];

				if constexpr (D::EXTRA)
					sum += extra[s];
				else if constexpr (has_residual<typename D::format>::value)
					sum += residual_sign(tile, key) * extra[s];
				v[j][s] = quarter == 0 ? sum * n : v[j][s] + sum * n;
			}
		}
#pragma unroll
		for (int i = 0; i < columns::TILES; i++)
#pragma unroll
			for (int j = 0; j < 4; j++)
				acc[i][j] = 0;
	}
};

#endif

#endif
