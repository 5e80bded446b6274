#include "kernels/problem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/truth.h"

#define SM_SCALE 0.08838834764831845f /* 1 / sqrt(REF_HEAD) */
#define F32 0x1p-24                   /* rounds a number by this much of itself */

static size_t
key_bytes(const struct kernel *k)
{
	return (size_t)k->k_bytes * k->k_blocks;
}

static size_t
value_bytes(const struct kernel *k)
{
	return (size_t)k->v_bytes * k->v_blocks;
}

/* Norms that one of the keys of a mixed problem has. */
static enum draw_norms
pick(struct draw *d, bool huge_ok)
{
	static const enum draw_norms all[] = {
		DRAW_USUAL, DRAW_SUBNORMAL, DRAW_ZERO, DRAW_HUGE};

	return all[draw_below(d, huge_ok ? 4 : 3)];
}

static void
draw_side(struct draw *d, ref_quantise format, enum draw_norms norms,
	const struct problem_kind *kind, bool huge_ok, size_t n, size_t bytes, uint8_t *out)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (kind->equal && i > 0)
			memcpy(out + i * bytes, out, bytes);
		else
			draw_keys(d, format, kind->mixed ? pick(d, huge_ok) : norms,
				kind->strays, 1, out + i * bytes);
}

float
problem_query_scale(const struct kernel *k)
{
	/* Each element of a sketch is about as large as the query is long: sqrt(128). */
	return k->q_dim == REF_PROJ || k->schema == KERNEL_PREHT ? 11.3f : 1.0f;
}

/* What scales by the largest element rounds this one up. */
static void
put_edge(float *q, size_t n)
{
	float largest = FLT_MIN;
	size_t i;

	for (i = 0; i < n; i++)
		largest = fmaxf(largest, fabsf(q[i]));
	q[0] = copysignf(nextafterf(ldexpf(1.0f, ilogbf(largest) + 1), 0.0f), q[0]);
}

static void
draw_operands(struct problem *p, const struct problem_kind *kind, struct draw *d)
{
	const struct kernel *k = p->kernel;
	size_t n = (size_t)p->in.n_kv_heads * p->in.n_kv, i;
	bool attention = k->v_bytes > 0;
	enum draw_norms norms = attention && kind->k == DRAW_HUGE ? DRAW_USUAL : kind->k;
	float scale = kind->q_scale * problem_query_scale(k);

	for (i = 0; i < (size_t)p->in.n_heads * k->q_dim; i++)
		p->q[i] = draw_normal(d) * scale;
	for (i = 0; i < p->in.n_heads && kind->edge; i++)
		put_edge(p->q + i * k->q_dim, k->q_dim);
	draw_side(d, k->quantise_k, norms, kind, !attention, n, key_bytes(k), p->k);
	if (attention)
		draw_side(d, k->quantise_v, kind->v, kind, true, n, value_bytes(k), p->v);
}

/* The length of the rounding part of the tolerance of each score. */
static int
score_rounding(struct problem *p, double *out, struct err *e)
{
	const struct kernel *k = p->kernel;
	const struct ref_case *c = &p->in;
	double *query = calloc((size_t)c->n_heads * TRUTH_TERMS * TRUTH_HEADS, sizeof *query);
	double weights[TRUTH_TERMS], length, *q;
	uint32_t h, kv, t, gqa = c->n_heads / c->n_kv_heads;

	if (query == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the queries");
	for (h = 0; h < c->n_heads; h++)
		truth_query(k, c->q + (size_t)h * k->q_dim, 0,
			query + (size_t)h * TRUTH_TERMS * TRUTH_HEADS);
	for (kv = 0; kv < c->n_kv_heads; kv++)
		for (t = 0; t < c->n_kv; t++) {
			truth_key(k, c->k + ((size_t)kv * c->n_kv + t) * key_bytes(k),
				c->use_qjl, weights);
			length = truth_key_length(k, weights);
			for (h = kv * gqa; h < (kv + 1) * gqa; h++) {
				q = query + (size_t)h * TRUTH_TERMS * TRUTH_HEADS;
				out[(size_t)h * c->n_kv + t] = truth_tolerance(k, 0,
					truth_query_length(k, q, 0), length);
			}
		}
	free(query);
	return 0;
}

/* Length of the longest value that head h sees. */
static double
longest_value(const struct problem *p, uint32_t h)
{
	const struct ref_case *c = &p->in;
	ref_decode decode = p->kernel->run == ref_fused_tbq ? ref_tbq3_decode
			    : c->use_qjl		    ? ref_polar_qjl_decode
							    : ref_polar_decode;
	uint32_t t, i, n = ref_visible(c);
	double longest = 0, s;
	float v[REF_HEAD];

	for (t = 0; t < n; t++) {
		decode(c->v + ((size_t)ref_kv_head(c, h) * c->n_kv + t) *
				      value_bytes(p->kernel), v);
		for (i = 0, s = 0; i < REF_HEAD; i++)
			s += (double)v[i] * (double)v[i];
		longest = fmax(longest, sqrt(s));
	}
	return longest;
}

static int
attention_rounding(struct problem *p, double *out, struct err *e)
{
	const struct ref_case *c = &p->in;
	double *logits = calloc((size_t)c->n_heads * c->n_kv + 1, sizeof *logits);
	double d, spread = 4 * sqrt((double)c->n_kv) * F32 + 0x1p-19, value;
	uint32_t h, t, n = ref_visible(c), i;

	if (logits == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the logits");
	if (score_rounding(p, logits, e)) {
		free(logits);
		return -1;
	}
	for (h = 0; h < c->n_heads; h++) {
		for (t = 0, d = 0; t < n; t++)
			d = fmax(d, logits[(size_t)h * c->n_kv + t] * (double)c->sm_scale);
		value = longest_value(p, h);
		for (i = 0; i < REF_HEAD; i++)
			out[(size_t)h * REF_HEAD + i] = value * (2 * d + spread);
	}
	free(logits);
	return 0;
}

static int
take_memory(struct problem *p, struct err *e)
{
	size_t n = (size_t)p->in.n_kv_heads * p->in.n_kv;

	p->outputs = kernel_outputs(p->kernel, &p->in);
	p->q = calloc((size_t)p->in.n_heads * p->kernel->q_dim, sizeof *p->q);
	p->k = calloc(n + 1, key_bytes(p->kernel));
	p->v = calloc(n + 1, value_bytes(p->kernel) + 1);
	p->expected = calloc(p->outputs + 1, sizeof *p->expected);
	p->tolerance = calloc(p->outputs + 1, sizeof *p->tolerance);
	p->rounding = calloc(p->outputs + 1, sizeof *p->rounding);
	if (!p->q || !p->k || !p->v || !p->expected || !p->tolerance || !p->rounding)
		return err_set(e, ERR_NOMEM, "no memory for a problem of %zu outputs",
			p->outputs);
	p->in.q = p->q;
	p->in.k = p->k;
	p->in.v = p->kernel->v_bytes ? p->v : NULL;
	return 0;
}

int
problem_init(struct problem *p, const struct kernel *k, const struct problem_kind *kind,
	const struct problem_shape *shape, uint32_t q_pos_base, double base,
	struct draw *d, struct err *e)
{
	size_t i;

	memset(p, 0, sizeof *p);
	p->kernel = k;
	p->in = (struct ref_case){.n_heads = shape->gqa * shape->n_kv_heads,
		.n_kv_heads = shape->n_kv_heads, .n_kv = shape->n_kv,
		.use_qjl = k->use_qjl, .causal = k->causal,
		.q_pos_base = k->causal ? q_pos_base : 0, .sm_scale = SM_SCALE};
	if (take_memory(p, e))
		goto bad;
	draw_operands(p, kind, d);
	if (k->run(&p->in, p->expected, e) ||
	    (k->v_bytes ? attention_rounding(p, p->rounding, e)
			: score_rounding(p, p->rounding, e)))
		goto bad;
	for (i = 0; i < p->outputs; i++)
		p->tolerance[i] = fmax(base, p->rounding[i]);
	return 0;
bad:
	problem_fini(p);
	return -1;
}

void
problem_fini(struct problem *p)
{
	free(p->q);
	free(p->k);
	free(p->v);
	free(p->expected);
	free(p->tolerance);
	free(p->rounding);
	memset(p, 0, sizeof *p);
}
