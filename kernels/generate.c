#include "kernels/generate.h"

#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/kernel.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MAX_BYTES (4u << 20)
#define N_KEYS 8
#define SM_SCALE 0.08838834764831845f /* 1 / sqrt(REF_HEAD) */

/* One file while it is made. */
struct work {
	const struct kernel *row;
	struct ref_rng *rng;
	float *pi; /* REF_PI, of row->pi_seed */
	struct buf text;
	struct err *e;
	int rc; /* the first failure sticks, so that lines need no check each */
};

#define PUT(w, ...)                                                                    \
	((w)->rc = (w)->rc || buf_addf(&(w)->text, (w)->e, __VA_ARGS__) ? -1 : 0)

static void
put_floats(struct work *w, int indent, const char *key, const float *v, size_t n,
	   const char *end)
{
	size_t i;

	PUT(w, "%*s\"%s\": [", indent, "", key);
	for (i = 0; i < n; i++)
		PUT(w, "%s%.7g", i ? "," : "", (double)v[i]);
	PUT(w, "]%s\n", end);
}

static void
put_bytes(struct work *w, int indent, const char *key, const uint8_t *v, size_t n)
{
	size_t i;

	PUT(w, "%*s\"%s\": [", indent, "", key);
	for (i = 0; i < n; i++)
		PUT(w, "%s%u", i ? "," : "", v[i]);
	PUT(w, "],\n");
}

static void
draw(struct ref_rng *rng, float v[REF_HEAD])
{
	size_t i;

	for (i = 0; i < REF_HEAD; i++)
		v[i] = ref_rng_normal(rng);
}

/* Draws the query of the file; q becomes what the truth of its scores takes. */
static void
put_query(struct work *w, float q[REF_PROJ])
{
	float raw[REF_HEAD], hq[REF_HEAD];

	draw(w->rng, raw);
	memcpy(q, raw, sizeof raw);
	if (w->row->schema == KERNEL_QJL) {
		ref_sketch(raw, w->pi, q);
		put_floats(w, 2, "q_sketch", q, REF_PROJ, ",");
		return;
	}
	put_floats(w, 2, "q", q, REF_HEAD, ",");
	if (w->row->schema == KERNEL_PREHT) {
		memcpy(hq, raw, sizeof hq);
		ref_hadamard(hq, REF_HEAD);
		put_floats(w, 2, "hq", hq, REF_HEAD, ",");
	}
}

static void
put_header(struct work *w)
{
	const struct kernel *k = w->row;

	PUT(w, "{\n  \"kernel\": \"%s\",\n  \"head_dim\": %d,\n", k->kernel, REF_HEAD);
	switch (k->schema) {
	case KERNEL_TURBO:
		PUT(w, "  \"n_kv\": %d,\n  \"block_bytes\": %u,\n", N_KEYS, k->k_bytes);
		PUT(w, "  \"blocks_per_kv\": %u,\n", k->k_blocks);
		break;
	case KERNEL_QJL:
		PUT(w, "  \"proj_dim\": %d,\n  \"n_heads\": 1,\n", REF_PROJ);
		PUT(w, "  \"n_kv_heads\": 1,\n  \"n_tokens\": %d,\n", N_KEYS);
		PUT(w, "  \"block_bytes\": %u,\n", k->k_bytes);
		break;
	case KERNEL_POLAR:
		PUT(w, "  \"n_rows\": %d,\n  \"block_bytes\": %u,\n", N_KEYS,
		    k->k_bytes);
		PUT(w, "  \"use_qjl\": %d,\n", k->use_qjl);
		break;
	case KERNEL_PREHT:
		PUT(w, "  \"n_rows\": %d,\n  \"block_bytes\": %u,\n", N_KEYS,
		    k->k_bytes);
		PUT(w, "  \"hadamard_inv_scale\": %.7g,\n", 1.0 / REF_HEAD);
		break;
	case KERNEL_FUSED:
		PUT(w, "  \"proj_dim\": %d,\n  \"k_block_bytes\": %u,\n", REF_PROJ,
		    k->k_bytes);
		PUT(w, "  \"v_block_bytes\": %u,\n", k->v_bytes);
		PUT(w, "  \"v_blocks_per_token\": %u,\n", k->v_blocks);
		if (k->use_qjl)
			PUT(w, "  \"use_qjl\": 1,\n");
		PUT(w, "  \"sm_scale\": %.9g,\n  \"q_is_pre_projected\": 1,\n",
		    (double)SM_SCALE);
		break;
	}
}

/* A file of one query and a few keys.  Rows of one file share both. */
static void
put_scores(struct work *w, size_t rows)
{
	float q[REF_PROJ], x[N_KEYS][REF_HEAD], out[2][N_KEYS];
	uint8_t keys[N_KEYS * REF_POLAR_BLOCK];
	size_t r, i, bytes;
	struct ref_case c = {1, 1, N_KEYS, q, keys, NULL, false, false, 0, 0};

	put_header(w);
	put_query(w, q);
	for (i = 0; i < N_KEYS; i++)
		draw(w->rng, x[i]);
	for (r = 0; r < rows; r++) {
		const struct kernel *k = w->row + r;

		bytes = (size_t)k->k_bytes * k->k_blocks;
		for (i = 0; i < N_KEYS; i++)
			k->quantise_k(x[i], w->pi, keys + i * bytes);
		c.use_qjl = k->use_qjl;
		if (k->truth(&c, out[r], w->e))
			w->rc = -1;
		put_bytes(w, 2, r ? "k_blocks_qjl" : "k_blocks", keys, N_KEYS * bytes);
	}
	for (r = 0; r < rows; r++)
		put_floats(w, 2, r ? "expected_scores_qjl" : "expected_scores", out[r],
			   N_KEYS, r + 1 < rows ? "," : "");
	PUT(w, "}\n");
}

struct shape {
	uint32_t n_heads, n_kv_heads, n_kv;
	bool causal;
	uint32_t q_pos_base;
};

static const struct shape shapes[] = {
	{1, 1, 64, false, 0},  {4, 2, 512, false, 0}, {8, 2, 256, false, 0},
	{2, 1, 128, false, 0}, {4, 2, 96, true, 17},  {8, 2, 80, true, 0},
};

static void
draw_blocks(struct work *w, size_t n, ref_quantise quantise, size_t bytes, uint8_t *out)
{
	float x[REF_HEAD];
	size_t i;

	for (i = 0; i < n; i++) {
		draw(w->rng, x);
		quantise(x, w->pi, out + i * bytes);
	}
}

static void
print_case(struct work *w, const struct ref_case *c, const float *out)
{
	const struct kernel *k = w->row;
	size_t keys = (size_t)c->n_kv_heads * c->n_kv;

	PUT(w, "    {\n      \"n_heads\": %u, \"n_kv_heads\": %u, \"n_kv\": %u,",
	    c->n_heads, c->n_kv_heads, c->n_kv);
	if (c->causal)
		PUT(w, " \"causal\": 1, \"q_pos_base\": %u,", c->q_pos_base);
	PUT(w, "\n");
	put_floats(w, 6, "q_sketch", c->q, (size_t)c->n_heads * REF_PROJ, ",");
	put_bytes(w, 6, "k_blocks", c->k, keys * k->k_bytes * k->k_blocks);
	put_bytes(w, 6, "v_blocks", c->v, keys * k->v_bytes * k->v_blocks);
	put_floats(w, 6, "expected_out", out, kernel_outputs(k, c), "");
}

static void
put_case(struct work *w, const struct shape *s)
{
	const struct kernel *k = w->row;
	size_t keys = (size_t)s->n_kv_heads * s->n_kv, h;
	float *q = calloc((size_t)s->n_heads * REF_PROJ, sizeof *q), raw[REF_HEAD];
	uint8_t *kb = calloc(keys, (size_t)k->k_bytes * k->k_blocks);
	uint8_t *vb = calloc(keys, (size_t)k->v_bytes * k->v_blocks);
	float *out = calloc((size_t)s->n_heads * REF_HEAD, sizeof *out);
	struct ref_case c = {s->n_heads, s->n_kv_heads, s->n_kv,       q,	kb, vb,
			     k->use_qjl, s->causal,	s->q_pos_base, SM_SCALE};

	if (!q || !kb || !vb || !out) {
		w->rc = err_set(w->e, ERR_NOMEM, "no memory for a fixture's case");
		goto out;
	}
	for (h = 0; h < s->n_heads; h++) {
		draw(w->rng, raw);
		ref_sketch(raw, w->pi, q + h * REF_PROJ);
	}
	draw_blocks(w, keys, k->quantise_k, (size_t)k->k_bytes * k->k_blocks, kb);
	draw_blocks(w, keys, k->quantise_v, (size_t)k->v_bytes * k->v_blocks, vb);
	if (k->truth(&c, out, w->e))
		w->rc = -1;
	print_case(w, &c, out);
out:
	free(q);
	free(kb);
	free(vb);
	free(out);
}

static void
put_fused(struct work *w)
{
	size_t i;
	bool any = false;

	put_header(w);
	PUT(w, "  \"cases\": [\n");
	for (i = 0; i < str_count(shapes); i++) {
		if (shapes[i].causal != w->row->causal)
			continue;
		PUT(w, "%s", any ? "    },\n" : "");
		any = true;
		put_case(w, &shapes[i]);
	}
	PUT(w, "    }\n  ]\n}\n");
}

int
generate_all(generate_sink sink, void *arg, struct err *e)
{
	struct ref_rng rng;
	struct work w = {.rng = &rng, .e = e};
	size_t i, rows;
	int rc = -1;

	if ((w.pi = calloc(REF_PI, sizeof *w.pi)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a projection");
	ref_rng_init(&rng);
	buf_init(&w.text, MAX_BYTES);
	for (i = 0; i < KERNEL_COUNT; i += rows) {
		w.row = &kernels[i];
		rows = i + 1 < KERNEL_COUNT && str_eq(kernels[i + 1].file, w.row->file)
			       ? 2
			       : 1;
		ref_pi_fill(w.row->pi_seed, w.pi);
		if (w.row->schema == KERNEL_FUSED)
			put_fused(&w);
		else
			put_scores(&w, rows);
		if (w.rc || sink(arg, w.row->file, w.text.data, w.text.len, e))
			goto out;
		buf_fini(&w.text);
		buf_init(&w.text, MAX_BYTES);
	}
	rc = 0;
out:
	buf_fini(&w.text);
	free(w.pi);
	return rc;
}
