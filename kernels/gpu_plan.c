#include "kernels/gpu_plan.h"

#include <math.h>
#include <string.h>

#include "common/str.h"
#include "kernels/gpu_shape.h"
#include "kernels/table.h"

#define COPY_BLOCK 256
#define PLAIN_BLOCK 256
#define GRID_Y 65535u
#define GRID_X 0x7fffffffu
#define PORTABLE_KEYS (SCORE_BLOCK / 4) /* of a block at once */
#define PORTABLE_BLOCKS 8               /* for each multiprocessor */
#define MATRIX_KEYS (SCORE_BLOCK / 32 * STAGE_KEYS)
#define SPLIT_KEYS 64                   /* no split of attention is smaller */

/* A kernel of up to that many query heads for each read of the keys. */
struct matrix_entry {
	uint32_t heads;
	const char *entry;
	uint32_t blocks; /* that share a multiprocessor */
};

struct plan_row {
	const char *portable, *plain;
	const char *portable_in, *matrix_in; /* their files; plain ones are in plain.cu */
	struct matrix_entry matrix[3]; /* ascending; unused ones have 0 heads */
	uint32_t shared;               /* of the matrix kernels */
	const char *merge;             /* attention: joins the splits */
};

/* Values looked up in a table: all heads of the group in one kernel. */
#define LEVEL_ROW(f, table, key)                                         \
	{                                                                \
		.portable = "score_" f, .plain = "plain_" f,             \
		.portable_in = "score", .matrix_in = "score",            \
		.matrix = {{4, "matrix_" f "_4", 2}, {8, "matrix_" f "_8", 2}}, \
		.shared = (table) + SCORE_QUERY_BYTES + STAGES_BYTES(LEVEL_STAGES, key), \
	}
/* Integers: b1, b4, b8 blocks share a multiprocessor for 1, up to 4 and 8 heads. */
#define DIGIT_ROW(f, in, b1, b4, b8, table, stages, key)                        \
	{                                                                   \
		.portable = "score_" f, .plain = "plain_" f,                \
		.portable_in = in, .matrix_in = "qjl",                      \
		.matrix = {{1, "matrix_" f "_1", b1}, {4, "matrix_" f "_4", b4}, \
			{8, "matrix_" f "_8", b8}},                         \
		.shared = (table) + DIGIT_QUERY_BYTES + STAGES_BYTES(stages, key), \
	}
#define FUSED_ROW(f, bytes)                                                 \
	{                                                                   \
		.portable = "fused_" f, .plain = "plain_fused_" f,          \
		.portable_in = "fused", .matrix_in = "fused",               \
		.matrix = {{4, "fused_" f "_4", FUSED_BLOCKS}, {8, "fused_" f "_8", FUSED_BLOCKS}},     \
		.shared = bytes, .merge = "fused_" f "_merge",              \
	}

/* In the order of kernels[]. */
static const struct plan_row rows[KERNEL_COUNT] = {
	DIGIT_ROW("turbo3", "score", 2, 2, 2, TURBO3_TABLE_BYTES, DIGIT_STAGES, REF_QUARTERS * REF_TURBO3_BLOCK),
	DIGIT_ROW("turbo4", "score", 2, 2, 2, PAIR_TABLE_BYTES, LEVEL_STAGES, REF_QUARTERS * REF_TURBO4_BLOCK),
	LEVEL_ROW("tcq", SINGLE_TABLE_BYTES, REF_TCQ_BLOCK),
	DIGIT_ROW("qjl", "qjl", 4, 2, 2, 0, DIGIT_STAGES, REF_QJL_BLOCK),
	DIGIT_ROW("polar", "score", 2, 2, 2, PAIR_TABLE_BYTES, LEVEL_STAGES, REF_POLAR_BLOCK),
	DIGIT_ROW("polar", "score", 2, 2, 2, PAIR_TABLE_BYTES, LEVEL_STAGES, REF_POLAR_BLOCK),
	DIGIT_ROW("polar_preht", "score", 2, 2, 2, PAIR_TABLE_BYTES, LEVEL_STAGES, REF_POLAR_BLOCK),
	DIGIT_ROW("polar_preht", "score", 2, 2, 2, PAIR_TABLE_BYTES, LEVEL_STAGES, REF_POLAR_BLOCK),
	FUSED_ROW("tbq", FUSED_TBQ_SHARED),
	FUSED_ROW("polar", FUSED_POLAR_SHARED),
	FUSED_ROW("tbq", FUSED_TBQ_SHARED),
	FUSED_ROW("polar", FUSED_POLAR_SHARED),
};

enum way { WAY_MATRIX, WAY_PORTABLE, WAY_PLAIN };
static const char *const way_names[] = {"matrix", "portable", "plain"};

static bool
fits(const struct plan_row *r, const struct gpu_limits *l)
{
	return l->matrix && r->shared <= l->shared;
}

size_t
gpu_variants(const struct kernel *k, const struct gpu_limits *l,
	     const char *names[BACKEND_VARIANTS])
{
	size_t n = 0, way = fits(&rows[k - kernels], l) ? WAY_MATRIX : WAY_PORTABLE;

	for (; way <= WAY_PLAIN; way++)
		names[n++] = way_names[way];
	return n;
}

static uint32_t
ceil_div(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b - 1) / b);
}

static uint32_t
at_most(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
at_least(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static struct gpu_step *
add_step(struct gpu_plan *p, const char *file, const char *entry, uint32_t x, uint32_t y,
	 uint32_t block)
{
	struct gpu_step *s = &p->steps[p->count++];

	s->file = file;
	s->entry = entry;
	s->grid[0] = at_least(x, 1);
	s->grid[1] = at_least(y, 1);
	s->grid[2] = 1;
	s->block = block;
	return s;
}

/* Work of a block row: query heads of one kv head, `heads` at a time. */
static uint32_t
block_rows(const struct backend_args *a, uint32_t heads)
{
	return a->n_kv_heads * ceil_div(a->n_heads / a->n_kv_heads, heads);
}

/* Which matrix kernel: the smallest that takes the whole group, else the largest. */
static const struct matrix_entry *
matrix_for(const struct plan_row *r, uint32_t gqa)
{
	size_t i, last = 0;

	for (i = 0; i < str_count(r->matrix) && r->matrix[i].heads != 0; i++) {
		if (gqa <= r->matrix[i].heads)
			return &r->matrix[i];
		last = i;
	}
	return &r->matrix[last];
}

static void
plan_score(const struct plan_row *r, enum way way, const struct backend_args *a,
	   const struct gpu_limits *l, struct gpu_plan *p)
{
	const struct matrix_entry *m = matrix_for(r, a->n_heads / a->n_kv_heads);
	uint32_t y, per_sm;

	switch (way) {
	case WAY_MATRIX:
		y = block_rows(a, m->heads);
		/* Whole waves of blocks, each with several runs for every warp. */
		per_sm = at_most(at_least(l->shared_sm / (r->shared + 1024), 1), m->blocks);
		add_step(p, r->matrix_in, m->entry,
			 at_most(ceil_div(a->n_kv, MATRIX_KEYS),
				 at_least(l->sms * per_sm / y, 1)),
			 y, SCORE_BLOCK)
			->shared = r->shared;
		break;
	case WAY_PORTABLE:
		y = block_rows(a, SCORE_HEADS);
		add_step(p, r->portable_in, r->portable,
			 at_most(ceil_div(a->n_kv, PORTABLE_KEYS),
				 at_least(l->sms * PORTABLE_BLOCKS / y, 1)),
			 y, SCORE_BLOCK);
		break;
	case WAY_PLAIN:
		add_step(p, "plain", r->plain, ceil_div(a->n_kv, PLAIN_BLOCK / 32), a->n_heads,
			 PLAIN_BLOCK);
		break;
	}
}

static uint32_t
visible(const struct backend_args *a)
{
	return a->causal && a->q_pos_base < a->n_kv ? a->q_pos_base + 1 : a->n_kv;
}

static void
plan_attention(const struct plan_row *r, enum way way, const struct backend_args *a,
	       const struct gpu_limits *l, struct gpu_plan *p)
{
	const struct matrix_entry *m = matrix_for(r, a->n_heads / a->n_kv_heads);
	uint32_t y, blocks;
	struct gpu_step *s;

	if (way == WAY_PLAIN) {
		add_step(p, "plain", r->plain, a->n_heads, 1, 32);
		return;
	}
	y = block_rows(a, way == WAY_MATRIX ? m->heads : SCORE_HEADS);
	blocks = l->sms * (way == WAY_MATRIX ? FUSED_BLOCKS : PORTABLE_BLOCKS);
	p->splits = at_least(at_most(ceil_div(visible(a), SPLIT_KEYS), blocks / y), 1);
	s = add_step(p, r->portable_in, way == WAY_MATRIX ? m->entry : r->portable, p->splits, y,
		     way == WAY_MATRIX ? FUSED_BLOCK : SCORE_BLOCK);
	if (way == WAY_MATRIX)
		s->shared = r->shared;
	add_step(p, r->portable_in, r->merge, a->n_heads, 1, FUSED_MERGE_BLOCK);
	p->work = (size_t)p->splits * a->n_heads * FUSED_PART * sizeof(float);
}

int
gpu_plan_kernel(const struct kernel *k, size_t variant, const struct backend_args *a,
		const struct gpu_limits *l, struct gpu_plan *out, struct err *e)
{
	const struct plan_row *r = &rows[k - kernels];
	enum way way = (enum way)(variant + (fits(r, l) ? WAY_MATRIX : WAY_PORTABLE));
	unsigned i;

	memset(out, 0, sizeof *out);
	if (way > WAY_PLAIN)
		return err_set(e, ERR_UNSUPPORTED, "%s has no variant %zu", k->name, variant);
	if (a->n_kv_heads == 0 || a->n_heads % a->n_kv_heads != 0)
		return err_set(e, ERR_USAGE, "%u query heads do not divide over %u kv heads",
			       a->n_heads, a->n_kv_heads);
	if (a->n_kv > UINT32_MAX - 2 * STAGE_KEYS)
		return err_set(e, ERR_UNSUPPORTED, "%u keys of a kv head are more than 2^32 - 64",
			       a->n_kv);
	if (a->n_heads == 0 || (a->n_kv == 0 && k->v_bytes == 0))
		return 0;
	if (k->v_bytes)
		plan_attention(r, way, a, l, out);
	else
		plan_score(r, way, a, l, out);
	for (i = 0; i < out->count; i++)
		if (out->steps[i].grid[0] > GRID_X || out->steps[i].grid[1] > GRID_Y)
			return err_set(e, ERR_UNSUPPORTED, "%s: a grid of %u x %u blocks",
				       k->name, out->steps[i].grid[0], out->steps[i].grid[1]);
	return 0;
}

int
gpu_plan_copy(const struct backend_args *a, const struct gpu_limits *l,
	      struct gpu_plan *out, struct err *e)
{
	(void)l;
	memset(out, 0, sizeof *out);
	if (a->out.bytes == 0 || a->out.bytes % 16 != 0)
		return err_set(e, ERR_USAGE, "a copy of %zu bytes is not one of whole chunks of 16",
			       a->out.bytes);
	add_step(out, "copy", "copy_bytes", ceil_div(a->out.bytes, 16 * COPY_UNROLL * COPY_BLOCK), 1,
		 COPY_BLOCK);
	return 0;
}

/*
 * A level x is (high * ratio + low) / scale with two signed bytes.  There are many such
 * forms of a number; a search over 6e8 random pairs (ratio, scale) for the smallest mean
 * square error, levels weighted as a normal variable meets them, gave these.  The errors
 * are 3e-8 for turbo3 and 2e-6 for turbo4 and polar, whose levels reach 0.19, 2.7 and 2.8.
 */
static const struct {
	float ratio;
	double scale;
} bytes_of[] = {
	[GPU_TURBO3] = {86.9647446F, 56735.425613694177},
	[GPU_TURBO4] = {56.9432907F, 2498.8268792944882},
	[GPU_POLAR] = {50.6805534F, 2072.32259129453},
};

static void
level_bytes(struct gpu_levels *t, int i, double x, double ratio)
{
	double best = 1e9, low, off;
	int high;

	for (high = -127; high <= 127; high++) {
		low = nearbyint(x - high * ratio);
		off = fabs(x - high * ratio - low);
		if (fabs(low) <= 127 && off < best) {
			best = off;
			t->high[i] = (int8_t)high;
			t->low[i] = (int8_t)low;
		}
	}
}

static void
levels_fill(struct gpu_levels *t, int which, const float *level, int count)
{
	int i;

	t->ratio = bytes_of[which].ratio;
	t->unit = (float)(1.0 / bytes_of[which].scale);
	for (i = 0; i < count; i++)
		level_bytes(t, i, (double)level[i] * bytes_of[which].scale, (double)t->ratio);
}

void
gpu_tables_fill(struct gpu_tables *t)
{
	/* Thresholds have one entry less: the last is never below anything. */
	memset(t, 0, sizeof *t);
	memcpy(t->turbo3_c, table_turbo3_centroids, sizeof t->turbo3_c);
	memcpy(t->turbo3_t, table_turbo3_thresholds, sizeof table_turbo3_thresholds);
	memcpy(t->turbo4_c, table_turbo4_centroids, sizeof t->turbo4_c);
	memcpy(t->turbo4_t, table_turbo4_thresholds, sizeof table_turbo4_thresholds);
	memcpy(t->tbq3_c, table_tbq3_codebook, sizeof t->tbq3_c);
	memcpy(t->polar_c, table_polar_centroids, sizeof t->polar_c);
	memcpy(t->polar_t, table_polar_boundaries, sizeof table_polar_boundaries);
	memcpy(t->tcq_c, table_tcq_codebook, sizeof t->tcq_c);
	levels_fill(&t->levels[GPU_TURBO3], GPU_TURBO3, table_turbo3_centroids, 8);
	levels_fill(&t->levels[GPU_TURBO4], GPU_TURBO4, table_turbo4_centroids, 16);
	levels_fill(&t->levels[GPU_POLAR], GPU_POLAR, table_polar_centroids, 16);
	memcpy(t->signs1, table_signs1, sizeof t->signs1);
	memcpy(t->signs2, table_signs2, sizeof t->signs2);
	memcpy(t->signs32, table_signs32, sizeof t->signs32);
	memcpy(t->residual, table_polar_residual, sizeof t->residual);
}
