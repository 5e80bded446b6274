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
#define DIGIT_ENGINE(D, HEADS) digit_engine<D, HEADS>
#else
#define DIGIT_ENGINE(D, HEADS) void
#endif
/* For 1, up to 4 and 8 heads; the last numbers: blocks that share a multiprocessor, as the
 * plans have it. */
#define DIGIT_KERNELS(name, D, b1, b4, b8)                          \
	MATRIX_KERNEL(matrix_##name##_1, DIGIT_ENGINE(D, 1), b1)    \
	MATRIX_KERNEL(matrix_##name##_4, DIGIT_ENGINE(D, 4), b4)    \
	MATRIX_KERNEL(matrix_##name##_8, DIGIT_ENGINE(D, 8), b8)
DIGIT_KERNELS(qjl, qjl_bytes, 4, 2, 2)
DIGIT_KERNELS(turbo3, turbo3_bytes, 2, 2, 2)
DIGIT_KERNELS(turbo4, turbo4_bytes, 2, 2, 2)
DIGIT_KERNELS(polar, polar_bytes, 2, 2, 2)
DIGIT_KERNELS(polar_preht, preht_bytes, 2, 2, 2)
