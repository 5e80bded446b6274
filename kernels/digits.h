/*
 * digits - score engines on integer matrix units: see matrix.h for the stream.
 *
 * A query is scaled to an integer of QUERY_BITS bits and split into three balanced digits
 * of 8 bits; each digit of each head is a row of the product.  The columns are keys, whose
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
	float sum[SCORE_HEADS], unscale[SCORE_HEADS];
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

/* Rows R = 16 * tile + row: head R % HEADS, digit DIGITS - 1 - R / HEADS. */
template <int HEADS> struct digit_rows {
	enum { TILES = (HEADS * DIGITS + 15) / 16 };
	uint32_t a[DIGIT_STEPS][TILES][4];

	__device__ void load(const struct digit_query *q)
	{
		int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;

#pragma unroll
		for (int i = 0; i < TILES; i++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				int row = 16 * i + 8 * half + g, digit = DIGITS - 1 - row / HEADS;
				const uint32_t *from =
					(const uint32_t *)q->q[digit < 0 ? 0 : digit][row % HEADS];

#pragma unroll
				for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
					for (int word = 0; word < 2; word++)
						a[s][i][2 * word + half] = digit < 0
							? 0
							: from[digit_slot(t, s, word, 0) / 4];
			}
	}

	__device__ void multiply(int acc[TILES][4], int s, const uint32_t b[2]) const
	{
#pragma unroll
		for (int i = 0; i < TILES; i++)
			gpu_mma_s8(acc[i], a[s][i], b);
	}

	/* Step s of several tiles of keys. */
	template <int WIDE>
	__device__ void multiply_all(int acc[WIDE][TILES][4], int s, const uint32_t b[WIDE][2]) const
	{
#pragma unroll
		for (int k = 0; k < WIDE; k++)
			multiply(acc[k], s, b[k]);
	}

	/* What this lane has of the sums of a head for keys 2t and 2t + 1. */
	static __device__ void partial(const int acc[TILES][4], float v[2])
	{
		int g = threadIdx.x >> 2 & 7;

#pragma unroll
		for (int j = 0; j < 2; j++)
			if (HEADS == 8)
				v[j] = (float)acc[0][j] * 65536.0f +
					(float)(acc[0][j + 2] * 256 + acc[TILES - 1][j]);
			else
				/* Rows 0 to 3 digit 2, 4 to 7 digit 1, 8 to 11 digit 0. */
				v[j] = (float)acc[0][j] * (g < 4 ? 65536.0f : 256.0f) + (float)acc[0][j + 2];
	}

	/* All of head g, for lanes g < HEADS; every lane takes part. */
	static __device__ void join(float v[2])
	{
#pragma unroll
		for (int j = 0; j < 2 && HEADS != 8; j++)
			v[j] += gpu_shfl_xor(v[j], 16, 32);
	}
};

/* The same rows in shared memory, for kernels that have no registers to spare. */
template <int HEADS> struct digit_rows_shared : digit_rows<HEADS> {
	enum { TILES = digit_rows<HEADS>::TILES, BYTES = DIGIT_STEPS * TILES * 32 * 16 };
	const uint4 *lanes;

	__device__ void load(const struct digit_query *q)
	{
		uint4 *to = (uint4 *)((uint8_t *)q + DIGIT_QUERY_BYTES);
		uint32_t lane = threadIdx.x & 31;

		/* Every warp writes the same. */
		digit_rows<HEADS>::load(q);
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
			for (int i = 0; i < TILES; i++)
				to[(s * TILES + i) * 32 + lane] = make_uint4(this->a[s][i][0],
					this->a[s][i][1], this->a[s][i][2], this->a[s][i][3]);
		lanes = to + lane;
		gpu_sync();
	}

	/* Step s of several tiles of keys. */
	template <int WIDE>
	__device__ void multiply_all(int acc[WIDE][TILES][4], int s, const uint32_t b[WIDE][2]) const
	{
#pragma unroll
		for (int i = 0; i < TILES; i++) {
			const uint4 v = lanes[(s * TILES + i) * 32];
			const uint32_t x[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
			for (int k = 0; k < WIDE; k++)
				gpu_mma_s8(acc[k][i], x, b[k]);
		}
	}
};

template <int HEADS_, class ROWS = digit_rows<HEADS_>, int WIDE_ = HEADS_ == 8 ? 2 : 4>
struct qjl_engine {
	enum {
		BYTES = QJL_BYTES,
		HEADS = HEADS_,
		STAGES = DIGIT_STAGES,
		WIDE = WIDE_,
		STAGE_AT = DIGIT_QUERY_BYTES,
	};
	typedef ROWS rows;
	uint8_t *shared;
	rows query;
	float twice, minus;             /* of this lane's head */
	uint32_t codes, norm;           /* where in a tile */

	static __device__ void prepare_head(const float *q, uint32_t h, bool real, struct digit_query *to)
	{
		int lane = threadIdx.x & 31, e;
		float v[QJL_PROJ / 32], top = 0, sum = 0;

#pragma unroll
		for (int i = 0; i < QJL_PROJ / 32; i++) {
			v[i] = real ? q[32 * i + lane] : 0.0f;
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
			to->unscale[h] = power_of_2(-e);
			to->sum[h] = sum;
		}
	}

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		struct digit_query *q = (struct digit_query *)shared;
		uint32_t g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;

		for (uint32_t h = threadIdx.x / 32; h < SCORE_HEADS; h += SCORE_BLOCK / 32)
			prepare_head((const float *)args.q + (uint64_t)(p.first + h) * QJL_PROJ, h,
				h < p.heads, q);
		gpu_sync();
		query.load(q);
		twice = 2.0f * q->unscale[g % HEADS];
		minus = q->sum[g % HEADS];
		codes = lead + g * BYTES + 8 * t;
		norm = lead + 2 * t * BYTES + QJL_NORM_AT;
	}

	/* Sums over set bits, in units of unscale. */
	__device__ void sums(const uint8_t *stage, float v[WIDE][2])
	{
		int acc[WIDE][rows::TILES][4] = {};
		uint32_t w[WIDE][2], b[WIDE][2];

#pragma unroll
		for (int i = 0; i < WIDE; i++)
			load_words<2>(stage + i * TILE_KEYS * BYTES, codes, w[i]);
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++) {
#pragma unroll
			for (int i = 0; i < WIDE; i++)
#pragma unroll
				for (int j = 0; j < 2; j++)
					b[i][j] = w[i][j] >> (s & 4) & 0x01010101u << (s & 3);
			query.template multiply_all<WIDE>(acc, s, b);
		}
#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			rows::partial(acc[i], v[i]);
			rows::join(v[i]);
		}
	}

	__device__ void tiles(const uint8_t *stage, float v[WIDE][2])
	{
		sums(stage, v);
#pragma unroll
		for (int i = 0; i < WIDE; i++)
#pragma unroll
			for (int j = 0; j < 2; j++)
				v[i][j] = (QJL_SCALE * load_bf16(stage + (i * TILE_KEYS + j) * BYTES, norm)) *
					(v[i][j] * twice - minus);
	}
};

/* Eight levels in registers: operand 0 is the high bytes of four codes, 1 the low ones. */
struct turbo3_bytes : turbo3_format {
	enum { TABLE = 0, STAGES = DIGIT_STAGES, LEVEL_SET = GPU_TURBO3 };
	uint32_t high[2], low[2];

	/* Where part 0 (meets high bytes) or 1 of the query's element e goes. */
	static __device__ int place(int e, int part)
	{
		int i = e & 31, s = (i >> 4) * 4 + (i & 1) * 2 + (i >> 3 & 1);

		return digit_slot(e >> 5, s, part, i >> 1 & 3);
	}
	__device__ void build(uint8_t *, const struct gpu_levels *l)
	{
		for (int i = 0; i < 2; i++) {
			/* Through a shuffle, lest they go to registers that need a move each time. */
			high[i] = gpu_shfl(((const uint32_t *)l->high)[i], threadIdx.x & 31, 32);
			low[i] = gpu_shfl(((const uint32_t *)l->low)[i], threadIdx.x & 31, 32);
		}
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
};

/* Sixteen levels: an operand is {high, low} of both codes of a byte, looked up in a table
 * with a copy for each lane.  A row is 256 bytes, so that the byte is byte 1 of an address. */
template <class F, int SET> struct pair_bytes : F {
	enum { TABLE = PAIR_TABLE_BYTES, STAGES = LEVEL_STAGES, LEVEL_SET = SET };
	uint32_t offset;

	static __device__ int place(int e, int part)
	{
		/* F::slot counts pairs by lane: byte i of word w is step 4 w + i. */
		int slot = F::slot(e), t = slot & 3, i = slot >> 2 & 1, byte = slot >> 3;

		return digit_slot(t, byte >> 1, byte & 1, 2 * i + part);
	}
	__device__ void build(uint8_t *table, const struct gpu_levels *l)
	{
		for (int i = threadIdx.x; i < 256; i += blockDim.x) {
			uint32_t e = (uint32_t)(l->high[i & 15] & 255) | (uint32_t)(l->low[i & 15] & 255) << 8 |
				(uint32_t)(l->high[i >> 4] & 255) << 16 | (uint32_t)(l->low[i >> 4] & 255) << 24;

			table_row(table + 256 * i, i, e, e);
		}
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
};

template <class D, int HEADS_> struct digit_engine {
	enum {
		BYTES = D::BYTES,
		HEADS = HEADS_,
		STAGES = D::STAGES,
		WIDE = D::QUARTERS != 1 ? 1 : 2,
		STAGE_AT = D::TABLE + DIGIT_QUERY_BYTES,
	};
	typedef struct digit_rows<HEADS> rows;
	uint8_t *shared;
	rows query;
	D format;
	float back, residual;           /* scales undone; of this lane's head */
	uint32_t t, codes, norm, sign;  /* where in a tile */

	static __device__ void prepare_head(const gpu_args &args, const float *q, uint32_t h, bool real,
		struct digit_query *to)
	{
		const gpu_tables *tables = (const gpu_tables *)args.tables;
		float ratio = tables->levels[D::LEVEL_SET].ratio, v[4], top = 0, sum = 0, r = 0;
		int lane = threadIdx.x & 31, e;

		for (int i = 0; i < 4; i++)
			v[i] = real ? q[4 * lane + i] : 0.0f;
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
			to->unscale[h] = power_of_2(-e) + (sum - sum);
			to->sum[h] = r * POLAR_STEP;
		}
	}

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		const gpu_tables *tables = (const gpu_tables *)args.tables;
		struct digit_query *q = (struct digit_query *)(shared + D::TABLE);
		uint32_t g = threadIdx.x >> 2 & 7;

		t = threadIdx.x & 3;
		format.build(shared, &tables->levels[D::LEVEL_SET]);
		for (uint32_t h = threadIdx.x / 32; h < SCORE_HEADS; h += blockDim.x / 32)
			prepare_head(args, (const float *)args.q + (uint64_t)(p.first + h) * SCORE_HEAD, h,
				h < p.heads, q);
		gpu_sync();
		query.load(q);
		back = q->unscale[g % HEADS] * tables->levels[D::LEVEL_SET].unit * D::norm_scale();
		residual = has_residual<typename D::format>::value && args.use_qjl
			? q->sum[g % HEADS] * D::norm_scale() : 0.0f;
		/* In units of the sums. */
		residual /= back;
		sign = lead + 2 * t * BYTES;
		codes = lead + g * BYTES + D::codes_at(t);
		norm = lead + g * BYTES + (D::QUARTERS == 1 ? 0 : t * (D::BYTES / D::QUARTERS));
	}

	__device__ void tiles(const uint8_t *stage, float v[WIDE][2])
	{
		enum { EACH = DIGIT_STEPS / D::QUARTERS };
		int acc[WIDE][rows::TILES][4] = {};
		uint32_t w[WIDE][4], n[WIDE], b[2];
		float scale[2], part[2];

#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			const uint8_t *tile = stage + i * TILE_KEYS * BYTES;

			D::load(tile, codes, w[i]);
			D::unpack(w[i]);
			n[i] = load_half(tile, norm);
			if (D::QUARTERS == 1 && t)
				n[i] = 0;
			v[i][0] = v[i][1] = 0;
		}
#pragma unroll
		for (int s = 0; s < DIGIT_STEPS; s++)
#pragma unroll
			for (int i = 0; i < WIDE; i++) {
				format.operands(shared, w[i], s, b);
				query.multiply(acc[i], s, b);
				if ((s + 1) % EACH != 0)
					continue;
				rows::partial(acc[i], part);
				norms_of(n[i], t, s / EACH, scale);
				if (D::QUARTERS == 1)
					rows::join(part);
				if (has_residual<typename D::format>::value && residual != 0)
					add_residual(stage + i * TILE_KEYS * BYTES, part);
#pragma unroll
				for (int j = 0; j < 2; j++)
					v[i][j] += part[j] * (scale[j] * back);
#pragma unroll
				for (int r = 0; r < rows::TILES; r++)
#pragma unroll
					for (int j = 0; j < 4; j++)
						acc[i][r][j] = 0;
			}
#pragma unroll
		for (int i = 0; i < WIDE && D::QUARTERS != 1; i++)
			rows::join(v[i]);
	}

	__device__ void add_residual(const uint8_t *tile, float part[2])
	{
#pragma unroll
		for (int j = 0; j < 2; j++)
			part[j] += residual_sign(tile + j * BYTES, sign) * residual;
	}
};

#endif

#endif
