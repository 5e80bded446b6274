/*
 * The encoder of turbo3_tcq: Viterbi over a trellis of 512 states, 128 steps.
 *
 * A key belongs to 32 lanes.  A lane holds the costs of 16 states in registers, 16 lane
 * to 16 lane + 15: just the predecessors of two groups of states, so that the search for
 * the least of eight needs no neighbour.  Only those 64 minima per step go through shared
 * memory, and the back pointers, two of three bits in a byte.  Nothing waits for other
 * keys, and nothing is kept in global memory.
 */
#include "kernels/encode.h"

#define INV_SQRT_128 0.08838834764831845f
#define TCQ_LANES 32            /* of a key */
#define TCQ_OWN 16              /* states of a lane */
#define TCQ_WORDS 13            /* 52 bytes */
#define TCQ_PITCH 20            /* floats from 16 minima to the next: spreads the banks */

/* Of one key. */
struct alignas(16) tcq_shared {
	float y[ENCODE_HEAD]; /* the direction; at the end, squares */
	float least[2][4 * TCQ_PITCH];
	uint8_t back[ENCODE_HEAD][TCQ_LANES];
	uint8_t symbol[ENCODE_HEAD];
};

/* Sum of 128 floats in shared memory, in their order; every lane has it. */
GPU_DEVICE float
sum_shared(const float *v)
{
	float s = 0, four[4];

#pragma unroll 4
	for (int i = 0; i < ENCODE_HEAD; i += 4) {
		load_four(v + i, four);
#pragma unroll
		for (int j = 0; j < 4; j++)
			s += four[j];
	}
	return s;
}

/* The root of the sum of squares of v, four elements a lane. */
GPU_DEVICE float
length_shared(struct tcq_shared &s, uint32_t lane, const float v[4])
{
	float square[4], sum;

#pragma unroll
	for (int j = 0; j < 4; j++)
		square[j] = gpu_mul(v[j], v[j]);
	store_four(s.y + 4 * lane, square);
	gpu_sync_warp();
	sum = sum_shared(s.y);
	gpu_sync_warp();
	return gpu_sqrt(sum);
}

/* Puts the unit direction in the rotated space into s.y and gives the length. */
GPU_DEVICE float
rotate(struct tcq_shared &s, const gpu_tables *tables, uint32_t lane, float v[4])
{
	uint32_t before = tables->signs1[lane / 8] >> 4 * (lane % 8);
	uint32_t after = tables->signs2[lane / 8] >> 4 * (lane % 8);
	float n = length_shared(s, lane, v), r = reciprocal(n);

#pragma unroll
	for (int j = 0; j < 4; j++)
		v[j] = signed_by(gpu_mul(v[j], r), before, j);
	hadamard_own<4>(v);
	hadamard_group<4, TCQ_LANES>(v, lane);
#pragma unroll
	for (int j = 0; j < 4; j++)
		v[j] = signed_by(gpu_mul(v[j], INV_SQRT_128), after, j);
	store_four(s.y + 4 * lane, v);
	gpu_sync_warp();
	return n;
}

struct tcq_least {
	float cost;
	uint32_t at;
};

/* The first of two unless the second costs less. */
GPU_DEVICE struct tcq_least
lesser(struct tcq_least a, struct tcq_least b)
{
	bool second = b.cost < a.cost;
	struct tcq_least r = {second ? b.cost : a.cost, second ? b.at : a.at};

	return r;
}

/* Of costs i and i + 1, and so on: the left side wins, hence the first of equals. */
GPU_DEVICE struct tcq_least
least_of_two(const float *cost, uint32_t i)
{
	struct tcq_least a = {cost[i], i}, b = {cost[i + 1], i + 1};

	return lesser(a, b);
}

GPU_DEVICE struct tcq_least
least_of_eight(const float *cost)
{
	return lesser(lesser(least_of_two(cost, 0), least_of_two(cost, 2)),
		      lesser(least_of_two(cost, 4), least_of_two(cost, 6)));
}

/* One step: from the costs before it to those after it. */
GPU_DEVICE void
step(struct tcq_shared &s, uint32_t lane, int t, float x, const float level[TCQ_OWN],
     float cost[TCQ_OWN])
{
	struct tcq_least a = least_of_eight(cost), b = least_of_eight(cost + 8);
	float *own = s.least[t & 1] + lane / 8 * TCQ_PITCH + 2 * lane % 16;
	const float *from = s.least[t & 1] + lane % 4 * TCQ_PITCH;
	float before[4];

	s.back[t][lane] = (uint8_t)(a.at | b.at << 3);
	own[0] = a.cost;
	own[1] = b.cost;
	/* Once is enough: the next step writes the other half of s.least. */
	gpu_sync_warp();
#pragma unroll
	for (int i = 0; i < TCQ_OWN; i += 4) {
		load_four(from + i, before);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			float d = x - level[i + j];

			cost[i + j] = before[j] + gpu_mul(d, d);
		}
	}
}

/* The cheapest final state, the first of equals. */
GPU_DEVICE uint32_t
cheapest(uint32_t lane, const float cost[TCQ_OWN])
{
	float least = cost[0], other;
	uint32_t at = 0, other_at;

#pragma unroll
	for (uint32_t i = 1; i < TCQ_OWN; i++)
		if (cost[i] < least) {
			least = cost[i];
			at = i;
		}
	at += TCQ_OWN * lane;
#pragma unroll
	for (int h = 1; h < TCQ_LANES; h *= 2) {
		other = gpu_shfl_xor(least, h, TCQ_LANES);
		other_at = gpu_shfl_xor(at, h, TCQ_LANES);
		if (other < least || (other == least && other_at < at)) {
			least = other;
			at = other_at;
		}
	}
	/* Costs that are NaN compare with nothing: then it is state 0. */
	return gpu_shfl(at, 0, TCQ_LANES);
}

/* Walks the path back; every lane does and keeps the states of its four elements.  Gives
 * the state before the first. */
GPU_DEVICE uint32_t
walk_back(const struct tcq_shared &s, uint32_t lane, uint32_t state, uint32_t own[4])
{
#pragma unroll 1
	for (int i = ENCODE_HEAD / 4 - 1; i >= 0; i--)
#pragma unroll
		for (int j = 3; j >= 0; j--) {
			uint32_t both = s.back[4 * i + j][(state & 63) >> 1];

			if ((uint32_t)i == lane)
				own[j] = state;
			state = (state & 63) << 3 | (both >> 3 * (state & 1) & 7);
		}
	return state;
}

/* Word w of the block: its 32 bits start at bit 32 w - 22 of the symbols, after the norm
 * and six bits of the first state. */
GPU_DEVICE uint32_t
block_word(const uint8_t *symbol, uint32_t w, uint32_t head)
{
	int bit = 32 * (int)w - 22, t = w == 0 ? 0 : bit / 3;
	uint32_t v = 0;

	for (; t < ENCODE_HEAD && 3 * t < bit + 32; t++)
		v |= 3 * t < bit ? (uint32_t)symbol[t] >> (bit - 3 * t)
				 : (uint32_t)symbol[t] << (3 * t - bit);
	return w == 0 ? v | head : v;
}

GPU_KERNEL __launch_bounds__(ENCODE_BLOCK)
encode_tcq(struct gpu_args a)
{
	__shared__ struct tcq_shared all[ENCODE_TCQ_KEYS];
	const gpu_tables *tables = (const gpu_tables *)a.tables;
	struct tcq_shared &s = all[threadIdx.x / TCQ_LANES];
	uint32_t lane = threadIdx.x % TCQ_LANES, state, own[4] = {0, 0, 0, 0};
	uint64_t key = (uint64_t)blockIdx.x * ENCODE_TCQ_KEYS + threadIdx.x / TCQ_LANES;
	bool real = key < a.n_kv; /* else the lanes work on the last key, for nothing */
	const float *x = (const float *)a.x + (real ? key : a.n_kv - 1) * ENCODE_HEAD;
	float level[TCQ_OWN], cost[TCQ_OWN], n, rn, own_x[4], y[4], path[4];

	load_four(x + 4 * lane, own_x);
	n = rotate(s, tables, lane, own_x);
#pragma unroll
	for (int i = 0; i < TCQ_OWN; i++) {
		level[i] = tables->tcq_c[TCQ_OWN * lane + i];
		cost[i] = 0;
	}
#pragma unroll 1
	for (int i = 0; i < ENCODE_HEAD; i += 4) {
		load_four(s.y + i, y);
#pragma unroll
		for (int j = 0; j < 4; j++)
			step(s, lane, i + j, y[j], level, cost);
	}
	state = walk_back(s, lane, cheapest(lane, cost), own);
#pragma unroll
	for (int j = 0; j < 4; j++) {
		path[j] = tables->tcq_c[own[j]];
		s.symbol[4 * lane + j] = (uint8_t)(own[j] >> 6);
	}
	rn = length_shared(s, lane, path);
	n = rn > ENCODE_TINY ? gpu_div(n, rn) : n;
	if (real && lane < TCQ_WORDS)
		((uint32_t *)a.out)[key * TCQ_WORDS + lane] =
			block_word(s.symbol, lane, fp16_away(n) | state >> 3 << 16);
}
