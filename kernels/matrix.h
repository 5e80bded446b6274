/*
 * matrix - score kernels on matrix units: see score.h for the formats.
 *
 * A product has keys as rows, sixteen at a time, and query heads as columns.  Lane (g, t) =
 * (lane / 4, lane % 4) decodes a quarter of key g of two tiles of eight keys into operands
 * and gets the scores of heads t and t + 4 for them.  Queries stay in registers for the
 * whole grid.
 *
 * Here, fp16: a value is a pair {high, low} of halves along the reduction, so that a look-up
 * is an operand without further arithmetic; the two parts of a query are two columns.  All
 * four products are exact in f32 and so is nearly the sum: these are f32 numbers.  Values
 * and queries are scaled by powers of two into fp16's normal range.  digits.h has the
 * engines whose operands are bytes.
 *
 * Each warp copies runs of keys into its own shared memory ahead of its work: 8 keys
 * of any format are whole chunks of 16 bytes, so a kv head has one alignment.
 */
#ifndef KERNELS_MATRIX_H
#define KERNELS_MATRIX_H

#include "kernels/score.h"

#if GPU_MATRIX

#define TILE_KEYS 8

/* A warp's copies of its runs: where in the kv head, where in shared memory. */
template <int BYTES, int STAGES> struct stage_stream {
	enum {
		RUN = STAGE_KEYS * BYTES,
		ROOM = STAGE_BYTES(BYTES),
		ROUNDS = (RUN + 15 + 16 * 32 - 1) / (16 * 32),
	};
	const uint8_t *from;    /* this lane's first chunk of the next run to copy */
	uint64_t stride;        /* to the run after that */
	uint32_t ahead, runs, step, tail, lead, at;
	uint8_t *now, *fill, *first, *last; /* rooms: at work, to fill; of this warp */

	/* step: between runs of this warp.  rooms: this warp's. */
	__device__ void start(uint64_t kv, uint32_t n_kv, uint32_t run, uint32_t step_, uint8_t *rooms)
	{
		runs = (uint32_t)(((uint64_t)n_kv + STAGE_KEYS - 1) / STAGE_KEYS);
		lead = (uint32_t)(kv & 15);
		at = 16 * (threadIdx.x & 31);
		from = (const uint8_t *)(kv - lead + (uint64_t)run * RUN + at);
		stride = (uint64_t)step_ * RUN;
		ahead = run;
		step = step_;
		/* Bytes of the last run, which may be short. */
		tail = lead + (n_kv - (runs - 1) * STAGE_KEYS) * BYTES;
		now = fill = first = rooms;
		last = rooms + (STAGES - 1) * ROOM;
		for (int i = 0; i < STAGES - 1; i++)
			issue();
	}

	/* Starts the copy of a run, or of none; keys past the end are left as they are. */
	__device__ void issue()
	{
		uint32_t bytes = ahead + 1 < runs ? lead + RUN : ahead < runs ? tail : 0;

#pragma unroll
		for (int i = 0; i < ROUNDS; i++)
			if (at + 512 * i < bytes)
				gpu_copy16_async(fill + at + 512 * i, from + 512 * i);
		gpu_copy_commit();
		ahead += step;
		from += stride;
		fill = fill == last ? first : fill + ROOM;
	}

	/* The next run's bytes; its first key is at byte `lead`. */
	__device__ const uint8_t *next()
	{
		const uint8_t *run = now;

		gpu_copy_wait<STAGES - 2>();
		/* Others' chunks have come, and nobody reads the room that is filled next. */
		gpu_sync_warp();
		issue();
		now = now == last ? first : now + ROOM;
		return run;
	}
};

/*
 * Streams a kv head's keys through `engine` E and writes scores.  E::tiles gives what
 * lane (g, t) has for key g of each of E::WIDE tiles: heads t and t + 4, or with one head
 * lanes 0 and 1 both have it.
 */
template <class E>
GPU_DEVICE void
matrix_stream(const gpu_args &a, const struct score_part &p, E &engine, uint8_t *stage)
{
	enum { WARPS = SCORE_BLOCK / 32, ONE = E::HEADS == 1 };
	uint32_t g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3, warp = threadIdx.x >> 5;
	uint64_t kv = a.k + (uint64_t)p.kv_head * a.n_kv * E::BYTES;
	uint32_t run = blockIdx.x * WARPS + warp, step = gridDim.x * WARPS;
	float *out = (float *)a.out + (uint64_t)(p.first + (ONE ? 0 : t)) * a.n_kv + g +
		(ONE ? TILE_KEYS * t : 0);
	uint64_t next_slot = (uint64_t)4 * a.n_kv;
	stage_stream<E::BYTES, E::STAGES> stream;

	stream.start(kv, a.n_kv, run, step, stage + warp * E::STAGES * STAGE_BYTES(E::BYTES));
	engine.prepare(a, p, stream.lead);
	out += (uint64_t)run * STAGE_KEYS;
	for (; run < stream.runs; run += step, out += (uint64_t)step * STAGE_KEYS) {
		const uint8_t *now = stream.next();
		uint32_t left = a.n_kv - run * STAGE_KEYS;

#pragma unroll
		for (uint32_t m = 0; m < STAGE_KEYS; m += TILE_KEYS * E::WIDE) {
			float v[E::WIDE][E::SLOTS];

			engine.tiles(now + m * E::BYTES, v);
#pragma unroll
			for (uint32_t i = 0; i < E::WIDE; i += ONE ? 2 : 1) {
				uint32_t key = m + TILE_KEYS * i;

				if constexpr (ONE) {
					if (t < 2 && key + TILE_KEYS * t + g < left)
						out[key] = t ? v[i + 1][0] : v[i][0];
				} else {
#pragma unroll
					for (uint32_t s = 0; s < E::SLOTS; s++)
						if (t + 4 * s < p.heads && key + g < left)
							out[s * next_slot + key] = v[i][s];
				}
			}
		}
	}
}

/* {high, low} of a value as fp16. */
GPU_DEVICE uint32_t
split(float v)
{
	uint16_t high = gpu_to_half(v);

	return high | (uint32_t)gpu_to_half(v - gpu_from_half(high)) << 16;
}

/* One half twice: part 0 is the high one. */
GPU_DEVICE uint32_t
twice(uint32_t halves, int part)
{
	return gpu_prmt(halves, halves, part ? 0x3232 : 0x1010);
}

/* Copies of a table that lanes never fight over: bank by lane.  A row is 128 bytes. */
GPU_DEVICE void
table_row(uint8_t *row, int first, uint32_t even, uint32_t odd)
{
	/* Neighbouring threads start at different banks. */
	for (int c = 0; c < 8; c++)
		*(uint4 *)(row + 16 * ((c + first) & 7)) = make_uint4(even, odd, even, odd);
}

/* Levels are at most 2.8; this keeps their low parts normal too. */
#define LEVEL_SCALE 16.0f

/* Looks up one value a time: a row of 128 bytes for each level. */
template <class F> struct single_table {
	enum { BYTES = F::LEVELS * 128 };
	static __device__ void build(uint8_t *to, const float *v)
	{
		for (int i = threadIdx.x; i < F::LEVELS; i += SCORE_BLOCK) {
			uint32_t e = split(v[i] * LEVEL_SCALE);

			table_row(to + 128 * i, i, e, e);
		}
	}
	static __device__ uint32_t offset(uint32_t lane) { return lane * 4; }
	static __device__ void look(const uint8_t *table, const uint32_t w[F::WORDS], int s,
		uint32_t offset, uint32_t out[2])
	{
		for (int i = 0; i < 2; i++)
			out[i] = *(const uint32_t *)(table + (F::code(w, s, i) << 7 | offset));
	}
};

static_assert(sizeof(struct score_query) <= SCORE_QUERY_BYTES, "room for the queries");

/* Formats with a codebook, one norm and too many levels for bytes; TABLE is a table as
 * above.  Columns are {high, low} of four heads a tile. */
template <class F, class TABLE, int HEADS_, int WIDE_> struct level_engine {
	enum {
		BYTES = F::BYTES,
		HEADS = HEADS_,
		STAGES = LEVEL_STAGES,
		WIDE = WIDE_,
		SLOTS = HEADS / 4,
		STAGE_AT = TABLE::BYTES + SCORE_QUERY_BYTES,
	};
	uint8_t *shared;
	uint32_t b[SCORE_STEPS][SLOTS][2];
	float back[SLOTS];              /* scales undone */
	uint32_t offset, codes, key;    /* bytes of a tile */

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		struct score_query *query = (struct score_query *)(shared + TABLE::BYTES);
		uint32_t lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;

		TABLE::build(shared, F::values((const gpu_tables *)args.tables));
		score_query_load<F>(args, p, query);
		gpu_sync();
#pragma unroll
		for (int i = 0; i < SLOTS; i++) {
#pragma unroll
			for (int s = 0; s < SCORE_STEPS; s++)
#pragma unroll
				for (int j = 0; j < 2; j++)
					/* Both entries of a value meet the same part of the query. */
					b[s][i][j] = twice(split(query->q[4 * i + (g >> 1)][slot_at(t, s, j)]),
						g & 1);
			back[i] = query->unscale[4 * i + t] * (1.0f / LEVEL_SCALE);
		}
		key = lead + g * BYTES;
		codes = key + F::codes_at(t);
		offset = TABLE::offset(lane);
	}

	/* Of head t + 4 * slot for key g of each tile. */
	__device__ void tiles(const uint8_t *stage, float v[WIDE][SLOTS])
	{
		uint32_t w[WIDE][F::WORDS], x[2], y[2];
		float acc[WIDE / 2][SLOTS][4] = {};

#pragma unroll
		for (int i = 0; i < WIDE; i++)
			F::load(stage + i * TILE_KEYS * BYTES, codes, w[i]);
#pragma unroll
		for (int s = 0; s < SCORE_STEPS; s++)
#pragma unroll
			for (int i = 0; i < WIDE; i += 2) {
				TABLE::look(shared, w[i], s, offset, x);
				TABLE::look(shared, w[i + 1], s, offset, y);
				uint32_t a[4] = {x[0], y[0], x[1], y[1]};

#pragma unroll
				for (int k = 0; k < SLOTS; k++)
					gpu_mma_f16(acc[i / 2][k], a, b[s][k]);
			}
#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			float n = F::norm(stage + i * TILE_KEYS * BYTES, key, 0);

#pragma unroll
			for (int k = 0; k < SLOTS; k++)
				v[i][k] = (acc[i / 2][k][i % 2 * 2] + acc[i / 2][k][i % 2 * 2 + 1]) *
					(back[k] * n);
		}
	}
};

#endif

/* The matrix entry point of a format; the name exists for every architecture. */
#if GPU_MATRIX
#define MATRIX_KERNEL(name, E, blocks)                                   \
	GPU_KERNEL __launch_bounds__(SCORE_BLOCK, blocks)                \
	name(struct gpu_args a)                                          \
	{                                                                \
		GPU_SHARED(shared);                                      \
		struct score_part p = score_part_of(a, blockIdx.y, E::HEADS); \
		E engine;                                                \
                                                                         \
		engine.shared = shared;                                  \
		matrix_stream(a, p, engine, shared + E::STAGE_AT);       \
	}
#else
#define MATRIX_KERNEL(name, E, blocks)                                   \
	GPU_KERNEL                                                       \
	name(struct gpu_args a)                                          \
	{                                                                \
		(void)a;                                                 \
	}
#endif

#endif
