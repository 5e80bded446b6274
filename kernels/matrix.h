/*
 * matrix - score kernels on matrix units: see score.h for the formats.
 *
 * A product has keys as columns, eight at a time, and query heads as rows.  Lane (g, t) =
 * (lane / 4, lane % 4) decodes a quarter of key g into operands and gets the scores of
 * head g for keys 2t and 2t + 1.  Queries stay in registers for the whole grid.
 *
 * Codebook formats, fp16: a value is a pair {high, low} of halves along the reduction, so
 * that a look-up is an operand without further arithmetic; the two parts of a query are
 * two rows.  All four products are exact in f32 and so is nearly the sum: these are f32
 * numbers.  Norms are fp16 already, so one more product hands them to the lanes that need
 * them.  Values and queries are scaled by powers of two into fp16's normal range.
 *
 * Each warp copies runs of 16 keys into its own shared memory ahead of its work: 16 keys
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
 * Streams a kv head's keys through `engine` E and writes scores.  E::tiles gives the
 * scores of head g for keys 2t and 2t + 1 of each of E::WIDE tiles.
 */
template <class E>
GPU_DEVICE void
matrix_stream(const gpu_args &a, const struct score_part &p, E &engine, uint8_t *stage)
{
	enum { WARPS = SCORE_BLOCK / 32 };
	uint32_t g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3, warp = threadIdx.x >> 5;
	uint64_t kv = a.k + (uint64_t)p.kv_head * a.n_kv * E::BYTES;
	uint32_t run = blockIdx.x * WARPS + warp, step = gridDim.x * WARPS;
	float *out = (float *)a.out + (uint64_t)(p.first + g) * a.n_kv + 2 * t;
	bool head = g < p.heads, even = (((uint64_t)out | (uint64_t)a.n_kv * 4) & 7) == 0;
	uint32_t whole = even ? a.n_kv / STAGE_KEYS : 0;
	stage_stream<E::BYTES, E::STAGES> stream;

	stream.start(kv, a.n_kv, run, step, stage + warp * E::STAGES * STAGE_BYTES(E::BYTES));
	engine.prepare(a, p, stream.lead);
	out += (uint64_t)run * STAGE_KEYS;
	for (; run < stream.runs; run += step, out += (uint64_t)step * STAGE_KEYS) {
		const uint8_t *now = stream.next();

#pragma unroll E::WIDE == 1 ? 1 : 4
		for (uint32_t m = 0; m < STAGE_KEYS; m += TILE_KEYS * E::WIDE) {
			float v[E::WIDE][2];

			engine.tiles(now + m * E::BYTES, v);
			if (run < whole) {
#pragma unroll
				for (uint32_t i = 0; i < E::WIDE; i++)
					if (head)
						*(float2 *)(out + m + TILE_KEYS * i) =
							make_float2(v[i][0], v[i][1]);
				continue;
			}
			for (uint32_t i = 0; i < 2 * E::WIDE; i++) {
				uint32_t key = m + TILE_KEYS * (i >> 1) + (i & 1);

				if (head && (uint64_t)run * STAGE_KEYS + key + 2 * t < a.n_kv)
					out[key] = v[i >> 1][i & 1];
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

#define HALF_ONE 0x3c00u

/* Norms of keys 2t and 2t + 1 from those that lane (g, t) has of key g: quarter t of it,
 * or with one norm any in lanes t = 0 and 0 elsewhere. */
GPU_DEVICE void
norms_of(uint32_t mine, uint32_t t, uint32_t quarter, float out[2])
{
	uint32_t pick = t == quarter ? HALF_ONE : 0;
	uint32_t a[2] = {pick, pick};
	float d[4] = {0, 0, 0, 0};

	gpu_mma_f16_k8(d, a, mine);
	out[0] = d[0];
	out[1] = d[1];
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

/* Formats with a codebook; TABLE is one of the tables above. */
template <class F, class TABLE> struct level_engine {
	enum {
		BYTES = F::BYTES,
		HEADS = SCORE_HEADS,
		STAGES = LEVEL_STAGES,
		WIDE = 2,
		STAGE_AT = TABLE::BYTES + SCORE_QUERY_BYTES,
	};
	uint8_t *shared;
	uint32_t a[SCORE_STEPS][4];     /* rows g: high parts of head g, rows g + 8: low */
	float back;                     /* scales undone */
	uint32_t t, offset;
	uint32_t codes, norm;           /* where in a tile */

	__device__ void prepare(const gpu_args &args, const struct score_part &p, uint32_t lead)
	{
		struct score_query *query = (struct score_query *)(shared + TABLE::BYTES);
		uint32_t lane = threadIdx.x & 31, g = lane >> 2;

		t = lane & 3;

		TABLE::build(shared, F::values((const gpu_tables *)args.tables));
		score_query_load<F>(args, p, query);
		gpu_sync();
#pragma unroll
		for (int s = 0; s < SCORE_STEPS; s++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				uint32_t v = split(query->q[g][slot_at(t, s, i)]);

				a[s][2 * i] = twice(v, 0);
				a[s][2 * i + 1] = twice(v, 1);
			}
		back = query->unscale[g] * (1.0f / LEVEL_SCALE) * F::norm_scale();
		codes = lead + g * BYTES + F::codes_at(t);
		norm = lead + g * BYTES + (F::QUARTERS == 1 ? 0 : t * (F::BYTES / F::QUARTERS));
		offset = TABLE::offset(lane);
	}

	__device__ void tiles(const uint8_t *stage, float v[WIDE][2])
	{
		enum { EACH = SCORE_STEPS / F::QUARTERS };
		uint32_t w[WIDE][F::WORDS], n[WIDE], b[2];
		float acc[WIDE][4] = {}, scale[2];

#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			const uint8_t *tile = stage + i * TILE_KEYS * BYTES;

			F::load(tile, codes, w[i]);
			n[i] = load_half(tile, norm);
			if (F::QUARTERS == 1 && t)
				n[i] = 0;
			v[i][0] = v[i][1] = 0;
		}
#pragma unroll
		for (int s = 0; s < SCORE_STEPS; s++)
#pragma unroll
			for (int i = 0; i < WIDE; i++) {
				TABLE::look(shared, w[i], s, offset, b);
				gpu_mma_f16(acc[i], a[s], b);
				if ((s + 1) % EACH != 0)
					continue;
				norms_of(n[i], t, s / EACH, scale);
#pragma unroll
				for (int j = 0; j < 2; j++)
					v[i][j] += (acc[i][j] + acc[i][j + 2]) * (scale[j] * back);
#pragma unroll
				for (int j = 0; j < 4; j++)
					acc[i][j] = 0;
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
