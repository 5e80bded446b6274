/* Scores of sign sketches: see qjl.h. */
#include "kernels/qjl.h"

/* Four lanes a key, 64 signs each. */
GPU_DEVICE void
qjl_portable(const gpu_args &a)
{
	__shared__ struct qjl_floats query;
	struct score_part p = score_part_of(a, blockIdx.y, SCORE_HEADS);
	const uint8_t *kv = (const uint8_t *)a.k + (uint64_t)p.kv_head * a.n_kv * QJL_BYTES;
	uint32_t w[2], at, stride = gridDim.x * (SCORE_BLOCK / 4);
	int t = threadIdx.x & 3;
	float acc[SCORE_HEADS];

	qjl_floats_load(a, p, &query);
	gpu_sync();
	/* All lanes take part in every shuffle: the last round repeats the last key. */
	for (uint64_t first = blockIdx.x * (SCORE_BLOCK / 4); first < a.n_kv; first += stride) {
		uint64_t key = first + threadIdx.x / 4;
		bool real = key < a.n_kv;
		const uint8_t *b;

		key = real ? key : a.n_kv - 1;
		b = kv + key * QJL_BYTES;
		at = (uint32_t)((uint64_t)b & 3);
		b -= at;
		load_words<2>(b, at + 8 * t, w);
#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++)
			acc[h] = 0;
		for (int i = 0; i < 64; i++) {
			uint32_t flip = (~w[i >> 5] >> (i & 31) & 1) << 31;

#pragma unroll
			for (int h = 0; h < SCORE_HEADS; h++)
				acc[h] += gpu_float(gpu_bits(query.q[h][64 * t + i]) ^ flip);
		}
#pragma unroll
		for (int h = 0; h < SCORE_HEADS; h++) {
			float v = acc[h];

			v += gpu_shfl_xor(v, 1, 4);
			v += gpu_shfl_xor(v, 2, 4);
			v *= QJL_SCALE * load_bf16(b, at + QJL_NORM_AT);
			if (real && (uint32_t)h < p.heads && t == (h & 3))
				((float *)a.out)[(uint64_t)(p.first + h) * a.n_kv + key] = v;
		}
	}
}

#if GPU_MATRIX
static_assert(sizeof(struct qjl_digits) <= QJL_QUERY_BYTES, "room for the queries");

template <int HEADS>
GPU_DEVICE void
qjl_matrix(const gpu_args &a)
{
	GPU_SHARED(shared);
	enum { TILES = qjl_columns<HEADS>::TILES, STAGE = STAGE_BYTES(QJL_BYTES) };
	struct score_part p = score_part_of(a, blockIdx.y, HEADS);
	struct qjl_digits *query = (struct qjl_digits *)shared;
	uint32_t lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
	uint32_t warp = threadIdx.x >> 5, warps = gridDim.x * (SCORE_BLOCK / 32), slot = 0;
	uint8_t *stage = shared + QJL_QUERY_BYTES + warp * STAGE_COUNT * STAGE;
	uint64_t kv = a.k + (uint64_t)p.kv_head * a.n_kv * QJL_BYTES;
	uint64_t runs = ((uint64_t)a.n_kv + STAGE_KEYS - 1) / STAGE_KEYS;
	uint64_t run = blockIdx.x * (SCORE_BLOCK / 32) + warp, ahead = run;
	uint32_t b[QJL_STEPS][TILES][2];
	float twice[2], minus[2];

	for (int i = 0; i < STAGE_COUNT - 1; i++, ahead += warps) {
		if (ahead < runs)
			stage_issue<QJL_BYTES>(stage + i * STAGE, kv, a.n_kv, ahead);
		gpu_copy_commit();
	}
	qjl_digits_load(a, p, query);
	gpu_sync();
	qjl_operands<HEADS>(query, b);
#pragma unroll
	for (int j = 0; j < 2; j++) {
		twice[j] = 2.0f * query->unscale[(2 * t + j) % HEADS];
		minus[j] = query->sum[(2 * t + j) % HEADS];
	}
	for (; run < runs; run += warps, ahead += warps) {
		uint8_t *now = stage + slot * STAGE;
		uint32_t next = slot == 0 ? STAGE_COUNT - 1 : slot - 1;
		uint32_t lead = (uint32_t)((kv + run * STAGE_KEYS * QJL_BYTES) & 15);

		gpu_copy_wait<STAGE_COUNT - 2>();
		gpu_sync_warp();
		if (ahead < runs)
			stage_issue<QJL_BYTES>(stage + next * STAGE, kv, a.n_kv, ahead);
		gpu_copy_commit();
		slot = slot == STAGE_COUNT - 1 ? 0 : slot + 1;
#pragma unroll
		for (uint32_t m = 0; m < STAGE_KEYS; m += 16) {
			uint64_t key = run * STAGE_KEYS + m + g;
			uint32_t at = lead + m * QJL_BYTES;
			float r[4];

			qjl_rows<HEADS>(now, at, b, r);
#pragma unroll
			for (int j = 0; j < 4; j++) {
				uint32_t head = (2 * t + (j & 1)) % HEADS;
				uint64_t row = key + 8 * (j >> 1);
				float n = QJL_SCALE * load_bf16(now, at + (g + 8 * (j >> 1)) * QJL_BYTES + QJL_NORM_AT);

				/* Lanes that hold the same head: one of them writes. */
				if (2 * t < HEADS && head < p.heads && row < a.n_kv)
					((float *)a.out)[(uint64_t)(p.first + head) * a.n_kv + row] =
						n * (r[j] * twice[j & 1] - minus[j & 1]);
			}
		}
		gpu_sync_warp();
	}
}
#endif

#if GPU_MATRIX
#define QJL_MATRIX(HEADS)                                          \
	GPU_KERNEL __launch_bounds__(SCORE_BLOCK, 2)               \
	score_qjl_##HEADS(struct gpu_args a)                       \
	{                                                          \
		qjl_matrix<HEADS>(a);                              \
	}
#else
#define QJL_MATRIX(HEADS)                                          \
	GPU_KERNEL                                                 \
	score_qjl_##HEADS(struct gpu_args a)                       \
	{                                                          \
		(void)a;                                           \
	}
#endif

GPU_KERNEL __launch_bounds__(SCORE_BLOCK)
score_qjl(struct gpu_args a)
{
	qjl_portable(a);
}
QJL_MATRIX(2)
QJL_MATRIX(4)
QJL_MATRIX(8)
