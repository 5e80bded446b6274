#include "kernels/vulkan_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/str.h"

#define LANES 128u      /* of a score workgroup: a key each */
#define HEADS_MAX 8u
#define TILE 64u        /* keys that attention takes at a time */
#define PART 132u       /* floats of a part */
#define PER_MIN 256u    /* keys of a split that are worth a workgroup */
#define WORKGROUPS 1024u /* enough for any device */
#define ROWS_MAX 8u
#define ROWS_AUTO UINT32_MAX
#define COPY_ROWS 1024u /* of 16 bytes, of a workgroup */
#define PAGE 256u       /* every device's alignment of bindings divides it */

/* The shaders of a row are those of its function. */
static const struct shaders {
	ref_run run;
	enum vulkan_module tiled, plain;
	bool polar;     /* values */
} shaders[] = {
	{ref_turbo3_score, VULKAN_turbo3, VULKAN_turbo3_plain, false},
	{ref_turbo4_score, VULKAN_turbo4, VULKAN_turbo4_plain, false},
	{ref_tcq_score, VULKAN_turbo3_tcq, VULKAN_turbo3_tcq_plain, false},
	{ref_qjl_score, VULKAN_qjl, VULKAN_qjl_plain, false},
	{ref_polar_score, VULKAN_polar, VULKAN_polar_plain, false},
	{ref_preht_score, VULKAN_polar_preht, VULKAN_polar_preht_plain, false},
	{ref_fused_tbq, VULKAN_fused_attn_qjl_tbq, VULKAN_fused_attn_qjl_tbq_plain, false},
	{ref_fused_polar, VULKAN_fused_attn_qjl_polar, VULKAN_fused_attn_qjl_polar_plain,
	 true},
};

/* rows: runs of LANES keys that a workgroup takes; 0: the plain shader. */
static const struct variant {
	const char *name;
	uint32_t rows;
} score_variants[] = {{"auto", ROWS_AUTO}, {"rows-1", 1}, {"rows-2", 2}, {"rows-4", 4},
		      {"rows-8", 8}, {"plain", 0}},
  fused_variants[] = {{"split", 1}, {"plain", 0}};

/* What a plan is made from. */
struct shape {
	const struct backend_args *a;
	const struct vulkan_limits *l;
	const struct shaders *s;
	uint32_t rows;              /* of the variant */
	uint32_t gqa, heads;        /* heads: of a workgroup */
	uint32_t n, unit;           /* keys that take part; keys of a workgroup */
	size_t key, value;          /* bytes of one; value 0: scores */
	uint32_t splits;
};

/* A part of the problem: keys t0 on of kv heads kv0 on, for some of their queries. */
struct piece {
	uint32_t kv0, kvs, head0, heads, t0, count;
};

static const struct variant *
variants_of(const struct kernel *k, size_t *count)
{
	*count = k->v_bytes ? str_count(fused_variants) : str_count(score_variants);
	return k->v_bytes ? fused_variants : score_variants;
}

static const struct shaders *
shaders_of(const struct kernel *k)
{
	size_t i;

	for (i = 0; i < str_count(shaders); i++)
		if (shaders[i].run == k->run)
			return &shaders[i];
	return NULL;
}

size_t
vulkan_plan_variants(const struct kernel *k, const char *names[BACKEND_VARIANTS])
{
	const struct variant *v;
	size_t i, n;

	if (!(k->backends & KERNEL_ON_VULKAN) || shaders_of(k) == NULL)
		return 0;
	v = variants_of(k, &n);
	for (i = 0; i < n; i++)
		names[i] = v[i].name;
	return n;
}

static uint32_t
ceil_div(uint32_t a, uint32_t b)
{
	return a / b + (a % b != 0);
}

static int
step_new(struct vulkan_plan *p, struct vulkan_step **out, struct err *e)
{
	size_t room = p->room ? 2 * p->room : 4;
	struct vulkan_step *steps;

	if (p->count == VULKAN_STEPS)
		return err_set(e, ERR_UNSUPPORTED,
			       "the problem takes more than %d dispatches of "
			       "maxStorageBufferRange", VULKAN_STEPS);
	if (p->count == p->room) {
		if ((steps = realloc(p->steps, room * sizeof *steps)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for %zu dispatches", room);
		p->steps = steps, p->room = room;
	}
	*out = &p->steps[p->count++];
	memset(*out, 0, sizeof **out);
	(*out)->specs[0] = (*out)->specs[1] = 1;
	return 0;
}

/* Binds bytes from `at` on; gives where they begin in the binding. */
static uint32_t
bind_at(struct vulkan_step *s, unsigned slot, enum vulkan_operand of, size_t at,
	size_t bytes)
{
	size_t down = at / PAGE * PAGE;

	s->bind[slot] = (struct vulkan_binding){of, down, at - down + bytes};
	return (uint32_t)(at - down);
}

/* As bind_at, for blocks that are read by 16 bytes. */
static uint32_t
bind_blocks(struct vulkan_step *s, unsigned slot, enum vulkan_operand of,
	    const struct backend_span *span, size_t from, size_t bytes)
{
	uint32_t first = bind_at(s, slot, of, span->at + from, bytes);

	s->bind[slot].bytes = (s->bind[slot].bytes + 15) / 16 * 16 + 16;
	return first;
}

/* Bytes from the first to the last key of a piece. */
static size_t
piece_bytes(const struct shape *g, const struct piece *p, size_t each)
{
	return ((size_t)(p->kvs - 1) * g->a->n_kv + p->count) * each;
}

/* Words that a piece writes, the gaps between heads included. */
static size_t
piece_words(const struct shape *g, const struct piece *p)
{
	return g->value != 0 ? 0
			     : ((size_t)p->kvs * p->heads - 1) * g->a->n_kv + p->count;
}

static bool
piece_fits(const struct shape *g, const struct piece *p)
{
	size_t most = g->l->range - PAGE - VULKAN_SLACK;

	return piece_bytes(g, p, g->key) <= most && piece_bytes(g, p, g->value) <= most &&
	       piece_words(g, p) <= most / 4 &&
	       ceil_div(p->count, g->unit) <= g->l->groups[0] &&
	       (size_t)p->kvs * ceil_div(p->heads, g->heads) <= g->l->groups[1];
}

static int
piece_add(const struct shape *g, const struct piece *p, struct vulkan_plan *out,
	  struct err *e)
{
	const struct backend_args *a = g->a;
	size_t first = (size_t)p->kv0 * a->n_kv + p->t0;
	bool parts = g->value != 0 && g->rows != 0;
	struct vulkan_step *s;

	if (step_new(out, &s, e))
		return -1;
	s->module = g->rows ? g->s->tiled : g->s->plain;
	s->specs[0] = g->rows ? g->rows : 1, s->specs[1] = g->heads;
	s->grid[0] = ceil_div(p->count, g->unit);
	s->grid[1] = p->kvs * ceil_div(p->heads, g->heads);
	s->push = (struct vulkan_push){
		.n_kv = a->n_kv, .heads = p->heads, .groups = ceil_div(p->heads, g->heads),
		.head0 = p->head0, .count = p->count, .use_qjl = a->use_qjl,
		.per = g->unit, .split0 = p->t0 / g->unit, .splits = g->splits,
		.sm_scale = a->sm_scale};
	bind_at(s, 0, VULKAN_Q, a->q.at, a->q.bytes);
	s->push.k_at = bind_blocks(s, 1, VULKAN_K, &a->k, first * g->key,
				   piece_bytes(g, p, g->key));
	if (g->value != 0)
		s->push.v_at = bind_blocks(s, 2, VULKAN_V, &a->v, first * g->value,
					   piece_bytes(g, p, g->value));
	if (parts)
		s->push.out_at = bind_at(s, 3, VULKAN_WORK,
					 (size_t)p->head0 * g->splits * PART * 4,
					 (size_t)p->kvs * p->heads * g->splits * PART * 4) / 4;
	else if (g->value != 0)
		s->push.out_at = bind_at(s, 3, VULKAN_OUT,
					 a->out.at + (size_t)p->head0 * REF_HEAD * 4,
					 (size_t)p->kvs * p->heads * REF_HEAD * 4) / 4;
	else
		s->push.out_at = bind_at(s, 3, VULKAN_OUT,
					 a->out.at + ((size_t)p->head0 * a->n_kv + p->t0) * 4,
					 piece_words(g, p) * 4) / 4;
	/* The plain attention has a workgroup for each head. */
	if (g->value != 0 && g->rows == 0)
		s->grid[0] = p->kvs * p->heads, s->grid[1] = 1;
	return 0;
}

/* The most keys of one kv head that fit a dispatch: in whole workgroups, but that scores
 * need none. */
static uint32_t
piece_keys(const struct shape *g, uint32_t heads)
{
	size_t most = g->l->range - PAGE - VULKAN_SLACK, n = g->n;
	size_t x = (size_t)g->l->groups[0] * g->unit, gap = (size_t)(heads - 1) * g->a->n_kv;

	n = n < x ? n : x;
	n = n < most / g->key ? n : most / g->key;
	if (g->value != 0)
		n = n < most / g->value ? n : most / g->value;
	else
		n = gap >= most / 4 ? 0 : n < most / 4 - gap ? n : most / 4 - gap;
	if (n == g->n || (g->value == 0 && n < g->unit))
		return (uint32_t)n;
	return (uint32_t)(n / g->unit * g->unit);
}

/* One query group after the other over as many keys as fit. */
static int
pieces_add(struct shape *g, struct vulkan_plan *out, struct err *e)
{
	struct piece p = {.kvs = 1};
	uint32_t h, keys;

	while (g->value == 0 && g->heads > 1 &&
	       (size_t)(g->heads - 1) * g->a->n_kv * 4 > g->l->range / 2)
		g->heads /= 2;
	if ((keys = piece_keys(g, g->heads)) == 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "%u keys do not fit maxStorageBufferRange (%u bytes)", g->n,
			       g->l->range);
	for (p.kv0 = 0; p.kv0 < g->a->n_kv_heads; p.kv0++)
		for (h = 0; h < g->gqa; h += g->heads)
			for (p.t0 = 0; p.t0 < g->n; p.t0 += p.count) {
				p.head0 = p.kv0 * g->gqa + h;
				p.heads = g->gqa - h < g->heads ? g->gqa - h : g->heads;
				p.count = g->n - p.t0 < keys ? g->n - p.t0 : keys;
				if (piece_add(g, &p, out, e))
					return -1;
			}
	return 0;
}

static int
merge_add(const struct shape *g, struct vulkan_plan *out, struct err *e)
{
	const struct backend_args *a = g->a;
	struct vulkan_step *s;

	if (a->n_heads > g->l->groups[0])
		return err_set(e, ERR_UNSUPPORTED,
			       "%u heads: maxComputeWorkGroupCount is %u", a->n_heads,
			       g->l->groups[0]);
	if (step_new(out, &s, e))
		return -1;
	s->module = VULKAN_fused_merge;
	s->specs[2] = g->s->polar;
	s->grid[0] = a->n_heads, s->grid[1] = 1;
	s->wait = true;
	s->push.splits = g->splits;
	bind_at(s, 1, VULKAN_WORK, 0, out->work);
	s->push.out_at = bind_at(s, 3, VULKAN_OUT, a->out.at,
				 (size_t)a->n_heads * REF_HEAD * 4) / 4;
	return 0;
}

static int
span_check(const char *what, const struct backend_span *s, size_t each, size_t count,
	   struct err *e)
{
	size_t have = s->buffer == NULL ? 0 : s->bytes;

	if (count > SIZE_MAX / each)
		return err_set(e, ERR_USAGE, "%s: %zu items are too many", what, count);
	if (have < each * count || s->at % BACKEND_ALIGN != 0)
		return err_set(e, ERR_USAGE, "%s: a span of %zu bytes at %zu, wanted %zu",
			       what, have, s->at, each * count);
	return 0;
}

static int
args_check(const struct kernel *k, const struct shape *g, struct err *e)
{
	const struct backend_args *a = g->a;
	size_t keys = (size_t)a->n_kv_heads * a->n_kv;
	size_t each = g->value ? REF_HEAD : a->n_kv;

	if (span_check("q", &a->q, k->q_dim * sizeof(float), a->n_heads, e) ||
	    span_check("k", &a->k, g->key, keys, e) ||
	    (g->value && span_check("v", &a->v, g->value, keys, e)) ||
	    span_check("out", &a->out, sizeof(float), a->n_heads * each, e))
		return -1;
	/* These two are never cut. */
	if ((size_t)a->n_heads * k->q_dim * sizeof(float) > g->l->range - PAGE)
		return err_set(e, ERR_UNSUPPORTED,
			       "%u queries do not fit maxStorageBufferRange (%u bytes)",
			       a->n_heads, g->l->range);
	return 0;
}

static uint32_t
power_from(uint32_t n)
{
	uint32_t p = 1;

	while (p < n && p < HEADS_MAX)
		p *= 2;
	return p;
}

/* Splits so many that the device has work, each worth its workgroup. */
static void
shape_split(struct shape *g)
{
	size_t groups = (size_t)g->a->n_kv_heads * ceil_div(g->gqa, g->heads);
	uint32_t want = groups < WORKGROUPS ? (uint32_t)(WORKGROUPS / groups) : 1;

	g->unit = ceil_div(g->n, want);
	g->unit = g->unit < PER_MIN ? PER_MIN : ceil_div(g->unit, TILE) * TILE;
	g->splits = ceil_div(g->n, g->unit);
}

/* Long runs read the queries less often, as long as every unit of the device has some. */
static uint32_t
rows_auto(const struct shape *g)
{
	size_t groups = (size_t)g->a->n_kv_heads * ceil_div(g->gqa, g->heads);
	uint32_t rows = 1;

	while (rows < ROWS_MAX &&
	       groups * ceil_div(g->n, 2 * rows * LANES) >= 2 * WORKGROUPS)
		rows *= 2;
	return rows;
}

static int
shape_init(struct shape *g, const struct kernel *k, size_t variant,
	   const struct backend_args *a, const struct vulkan_limits *l, struct err *e)
{
	const struct variant *v;
	size_t n;

	*g = (struct shape){.a = a, .l = l, .s = shaders_of(k)};
	v = variants_of(k, &n);
	if (g->s == NULL || variant >= n)
		return err_set(e, ERR_UNSUPPORTED, "%s has no variant %zu on Vulkan",
			       k->name, variant);
	if (a->n_kv_heads == 0 || a->n_heads == 0 || a->n_heads % a->n_kv_heads != 0)
		return err_set(e, ERR_USAGE, "%u heads over %u kv heads", a->n_heads,
			       a->n_kv_heads);
	g->rows = v[variant].rows;
	g->gqa = a->n_heads / a->n_kv_heads;
	g->heads = g->rows ? power_from(g->gqa) : 1;
	g->key = (size_t)k->k_bytes * k->k_blocks;
	g->value = (size_t)k->v_bytes * k->v_blocks;
	g->n = g->value && a->causal && a->q_pos_base < a->n_kv ? a->q_pos_base + 1 : a->n_kv;
	if (g->value && g->rows)
		shape_split(g);
	else if (g->value)
		g->unit = g->n ? g->n : 1;
	else if (g->rows == ROWS_AUTO)
		g->unit = (g->rows = rows_auto(g)) * LANES;
	else
		g->unit = g->rows ? g->rows * LANES : 1;
	return args_check(k, g, e);
}

int
vulkan_plan_kernel(const struct kernel *k, size_t variant, const struct backend_args *a,
		   const struct vulkan_limits *l, struct vulkan_plan *out, struct err *e)
{
	struct vulkan_plan p = {0};
	struct piece all = {0};
	struct shape g;
	bool parts;
	int rc = -1;

	if (shape_init(&g, k, variant, a, l, e))
		goto out;
	parts = g.value != 0 && g.rows != 0;
	all = (struct piece){.kvs = a->n_kv_heads, .heads = g.gqa, .count = g.n};
	if (parts)
		p.work = (size_t)a->n_heads * g.splits * PART * sizeof(float);
	if (p.work > l->range - PAGE) {
		err_set(e, ERR_UNSUPPORTED, "the parts of %u heads do not fit "
			"maxStorageBufferRange (%u bytes)", a->n_heads, l->range);
		goto out;
	}
	/* Without a key there are no scores, but attention is all zeros. */
	if (g.n != 0 || (g.value != 0 && !parts))
		if (piece_fits(&g, &all) ? piece_add(&g, &all, &p, e)
					 : pieces_add(&g, &p, e))
			goto out;
	if (parts && merge_add(&g, &p, e))
		goto out;
	*out = p;
	memset(&p, 0, sizeof p);
	rc = 0;
out:
	vulkan_plan_free(&p);
	return rc;
}

int
vulkan_plan_copy(const struct backend_args *a, const struct vulkan_limits *l,
		 struct vulkan_plan *out, struct err *e)
{
	size_t most = (size_t)l->groups[0] * COPY_ROWS * 16, at, n;
	struct vulkan_plan p = {0};
	struct vulkan_step *s;

	if (a->out.bytes % 16 != 0 || span_check("k", &a->k, 1, a->out.bytes, e) ||
	    span_check("out", &a->out, 1, a->out.bytes, e))
		return err_set(e, ERR_USAGE, "a copy of %zu bytes from %zu, wanted a multiple "
			       "of 16 that is there", a->out.bytes, a->k.bytes);
	if (most > (l->range - PAGE) / PAGE * PAGE)
		most = (l->range - PAGE) / PAGE * PAGE;
	for (at = 0; at < a->out.bytes; at += n) {
		n = a->out.bytes - at < most ? a->out.bytes - at : most;
		if (step_new(&p, &s, e)) {
			vulkan_plan_free(&p);
			return -1;
		}
		s->module = VULKAN_copy;
		s->push.count = (uint32_t)(n / 16);
		s->grid[0] = ceil_div(s->push.count, COPY_ROWS), s->grid[1] = 1;
		bind_at(s, 1, VULKAN_K, a->k.at + at, n);
		bind_at(s, 3, VULKAN_OUT, a->out.at + at, n);
	}
	*out = p;
	return 0;
}

void
vulkan_plan_free(struct vulkan_plan *p)
{
	if (p == NULL)
		return;
	free(p->steps);
	memset(p, 0, sizeof *p);
}
