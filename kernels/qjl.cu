/* Scores by integer matrix units, and of sign sketches: see qjl.h and digits.h. */
#include "kernels/digits.h"

/* Four lanes a key, 64 signs each. */
GPU_KERNEL __launch_bounds__(SCORE_BLOCK)
score_qjl(struct gpu_args a)
{
	__shared__ struct qjl_query query;
	struct score_part p = score_part_of(a, blockIdx.y, SCORE_HEADS);
	const uint8_t *kv = (const uint8_t *)a.k + (uint64_t)p.kv_head * a.n_kv * QJL_BYTES;
	uint32_t at, stride = gridDim.x * (SCORE_BLOCK / 4);
	int t = threadIdx.x & 3;
	float acc[SCORE_HEADS];

	qjl_query_load(a, p, &query);
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
		qjl_sums(&query, b, at, t, acc);
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
typedef pair_bytes<turbo4_format, GPU_TURBO4> turbo4_bytes;
typedef pair_bytes<polar_raw_format, GPU_POLAR> polar_bytes;
typedef pair_bytes<polar_format, GPU_POLAR> preht_bytes;
typedef digit_engine<turbo3_bytes, 4> turbo3_engine_4;
typedef digit_engine<turbo3_bytes, 8> turbo3_engine_8;
typedef digit_engine<turbo4_bytes, 4> turbo4_engine_4;
typedef digit_engine<turbo4_bytes, 8> turbo4_engine_8;
typedef digit_engine<polar_bytes, 4> polar_engine_4;
typedef digit_engine<polar_bytes, 8> polar_engine_8;
typedef digit_engine<preht_bytes, 4> preht_engine_4;
typedef digit_engine<preht_bytes, 8> preht_engine_8;
#endif
MATRIX_KERNEL(matrix_qjl_4, qjl_engine<4>, 2)
MATRIX_KERNEL(matrix_qjl_8, qjl_engine<8>, 2)
MATRIX_KERNEL(matrix_turbo3_4, turbo3_engine_4, 3)
MATRIX_KERNEL(matrix_turbo3_8, turbo3_engine_8, 2)
MATRIX_KERNEL(matrix_turbo4_4, turbo4_engine_4, 2)
MATRIX_KERNEL(matrix_turbo4_8, turbo4_engine_8, 2)
MATRIX_KERNEL(matrix_polar_4, polar_engine_4, 2)
MATRIX_KERNEL(matrix_polar_8, polar_engine_8, 2)
MATRIX_KERNEL(matrix_polar_preht_4, preht_engine_4, 2)
MATRIX_KERNEL(matrix_polar_preht_8, preht_engine_8, 2)
