#include "kernels/fixture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

/* An object of the document, and where errors go. */
struct reader {
	const cJSON *o;
	struct err *e;
};

static const char *
kind_of(const cJSON *v)
{
	static const struct {
		int type;
		const char *name;
	} kinds[] = {
		{cJSON_NULL, "null"},	     {cJSON_False, "false"},
		{cJSON_True, "true"},	     {cJSON_Number, "a number"},
		{cJSON_String, "a string"},  {cJSON_Array, "an array"},
		{cJSON_Object, "an object"},
	};
	size_t i;

	if (v == NULL)
		return "nothing";
	for (i = 0; i < str_count(kinds); i++)
		if ((v->type & 0xff) == kinds[i].type)
			return kinds[i].name;
	return "something else";
}

/* A number that is there; its value still has to be looked at. */
static int
need_number(struct reader *r, const char *key, double *out)
{
	const cJSON *v = json_get(r->o, key);

	if (!cJSON_IsNumber(v))
		return err_set(r->e, ERR_PARSE, "%s: found %s, wanted a number", key,
			       kind_of(v));
	*out = v->valuedouble;
	return 0;
}

static int
need_size(struct reader *r, const char *key, uint32_t min, uint32_t max, uint32_t *out)
{
	double v;

	if (need_number(r, key, &v))
		return -1;
	if (!(v >= min && v <= max) || v != floor(v))
		return err_set(r->e, ERR_PARSE,
			       "%s: found %.9g, wanted an integer from %u to %u", key,
			       v, min, max);
	*out = (uint32_t)v;
	return 0;
}

/* A header field that has one right value. */
static int
need_value(struct reader *r, const char *key, double wanted)
{
	double v;

	if (need_number(r, key, &v))
		return -1;
	if (v != wanted)
		return err_set(r->e, ERR_PARSE, "%s: found %.9g, wanted %.9g", key, v,
			       wanted);
	return 0;
}

/* Finds the array and holds its length against the header before memory is taken. */
static int
need_array(struct reader *r, const char *key, size_t wanted, const cJSON **out)
{
	const cJSON *v = json_get(r->o, key), *i;
	size_t n = 0;

	if (!cJSON_IsArray(v))
		return err_set(r->e, ERR_PARSE,
			       "%s: found %s, wanted an array of %zu numbers", key,
			       kind_of(v), wanted);
	cJSON_ArrayForEach(i, v) n++;
	if (n != wanted) {
		err_set(r->e, ERR_PARSE, "%s: found %zu numbers, wanted %zu", key, n,
			wanted);
		return err_hint(r->e, "the header's sizes give the length");
	}
	*out = v;
	return 0;
}

static int
bad_element(struct reader *r, const char *key, size_t i, const cJSON *v,
	    const char *wanted)
{
	if (cJSON_IsNumber(v))
		return err_set(r->e, ERR_PARSE, "%s[%zu]: found %.9g, wanted %s", key,
			       i, v->valuedouble, wanted);
	return err_set(r->e, ERR_PARSE, "%s[%zu]: found %s, wanted %s", key, i,
		       kind_of(v), wanted);
}

static int
need_floats(struct reader *r, const char *key, size_t wanted, float **out,
	    size_t *count)
{
	const cJSON *a, *v;
	float *p;
	size_t i = 0;

	if (need_array(r, key, wanted, &a))
		return -1;
	if ((p = *out = calloc(wanted, sizeof *p)) == NULL)
		return err_set(r->e, ERR_NOMEM, "no memory for %s", key);
	cJSON_ArrayForEach(v, a)
	{
		if (!cJSON_IsNumber(v) || !(fabs(v->valuedouble) <= (double)FLT_MAX))
			return bad_element(r, key, i, v, "a finite float");
		p[i++] = (float)v->valuedouble;
	}
	*count = wanted;
	return 0;
}

static int
need_bytes(struct reader *r, const char *key, size_t wanted, uint8_t **out,
	   size_t *count)
{
	const cJSON *a, *v;
	uint8_t *p;
	size_t i = 0;

	if (need_array(r, key, wanted, &a))
		return -1;
	if ((p = *out = calloc(wanted, 1)) == NULL)
		return err_set(r->e, ERR_NOMEM, "no memory for %s", key);
	cJSON_ArrayForEach(v, a)
	{
		if (!cJSON_IsNumber(v) ||
		    !(v->valuedouble >= 0 && v->valuedouble <= 255) ||
		    v->valuedouble != floor(v->valuedouble))
			return bad_element(r, key, i, v, "an integer from 0 to 255");
		p[i++] = (uint8_t)v->valuedouble;
	}
	*count = wanted;
	return 0;
}

/* Query, keys and expected scores of a case that has no values. */
static int
read_scores(struct reader *r, const struct kernel *k, const char *q, const char *keys,
	    const char *expected, struct fixture_case *c)
{
	const struct ref_case *n = &c->in;
	size_t key_count = (size_t)n->n_kv_heads * n->n_kv;

	if (need_floats(r, q, (size_t)n->n_heads * k->q_dim, &c->q, &c->q_count) ||
	    need_bytes(r, keys, key_count * k->k_bytes * k->k_blocks, &c->k,
		       &c->k_bytes) ||
	    need_floats(r, expected, (size_t)n->n_heads * n->n_kv, &c->expected,
			&c->expected_count))
		return -1;
	return 0;
}

/* The one mistake that old checkouts make is worth its own hint. */
static int
need_block(struct reader *r, const char *key, uint32_t wanted)
{
	if (need_value(r, key, wanted) == 0)
		return 0;
	if (json_num(r->o, key, 0) == 66)
		err_hint(r->e,
			 "66-byte blocks are the old layout of turbo4 (legacy66); "
			 "kernels read 18-byte blocks: write new fixtures with "
			 "make-fixtures");
	return -1;
}

static int
read_turbo(struct reader *r, const struct kernel *k, struct fixture *f)
{
	static const char *const keys[] = {"kernel",	  "head_dim",	     "n_kv",
					   "block_bytes", "blocks_per_kv",   "q",
					   "k_blocks",	  "expected_scores", NULL};
	struct fixture_case *c = &f->cases[0];

	c->in.n_heads = c->in.n_kv_heads = 1;
	f->case_count = 1;
	if (json_known(r->o, keys, r->e) || need_value(r, "head_dim", REF_HEAD) ||
	    need_size(r, "n_kv", 1, FIXTURE_MAX_KV, &c->in.n_kv) ||
	    need_block(r, "block_bytes", k->k_bytes) ||
	    need_value(r, "blocks_per_kv", k->k_blocks) ||
	    read_scores(r, k, "q", "k_blocks", "expected_scores", c))
		return -1;
	return 0;
}

static int
read_heads(struct reader *r, struct ref_case *c)
{
	if (need_size(r, "n_heads", 1, FIXTURE_MAX_HEADS, &c->n_heads) ||
	    need_size(r, "n_kv_heads", 1, FIXTURE_MAX_HEADS, &c->n_kv_heads))
		return -1;
	if (c->n_heads % c->n_kv_heads)
		return err_set(
			r->e, ERR_PARSE,
			"n_heads: found %u, wanted a multiple of n_kv_heads (%u)",
			c->n_heads, c->n_kv_heads);
	return 0;
}

static int
read_qjl(struct reader *r, const struct kernel *k, struct fixture *f)
{
	static const char *const keys[] = {"kernel",	      "head_dim",   "proj_dim",
					   "n_heads",	      "n_kv_heads", "n_tokens",
					   "block_bytes",     "q_sketch",   "k_blocks",
					   "expected_scores", NULL};
	struct fixture_case *c = &f->cases[0];

	f->case_count = 1;
	if (json_known(r->o, keys, r->e) || need_value(r, "head_dim", REF_HEAD) ||
	    need_value(r, "proj_dim", REF_PROJ) || read_heads(r, &c->in) ||
	    need_size(r, "n_tokens", 1, FIXTURE_MAX_KV, &c->in.n_kv) ||
	    need_block(r, "block_bytes", k->k_bytes) ||
	    read_scores(r, k, "q_sketch", "k_blocks", "expected_scores", c))
		return -1;
	return 0;
}

static int
read_polar(struct reader *r, const struct kernel *k, struct fixture *f)
{
	static const char *const keys[] = {"kernel",	  "head_dim",	     "n_rows",
					   "block_bytes", "use_qjl",	     "q",
					   "k_blocks",	  "expected_scores", NULL};
	struct fixture_case *c = &f->cases[0];
	uint32_t residual;

	c->in.n_heads = c->in.n_kv_heads = 1;
	f->case_count = 1;
	if (json_known(r->o, keys, r->e) || need_value(r, "head_dim", REF_HEAD) ||
	    need_size(r, "n_rows", 1, FIXTURE_MAX_KV, &c->in.n_kv) ||
	    need_block(r, "block_bytes", k->k_bytes) ||
	    need_size(r, "use_qjl", 0, 1, &residual))
		return -1;
	c->in.use_qjl = residual;
	return read_scores(r, k, "q", "k_blocks", "expected_scores", c);
}

/* A file whose hq belongs to another q would blame the kernel. */
static int
check_transform(struct reader *r, const float *hq)
{
	float *q = NULL;
	size_t n, i;
	int rc = -1;

	if (need_floats(r, "q", REF_HEAD, &q, &n))
		goto out;
	ref_hadamard(q, REF_HEAD);
	for (i = 0; i < REF_HEAD; i++)
		/* Both are printed with seven digits. */
		if (!(fabsf(hq[i] - q[i]) < (float)KERNEL_TOLERANCE)) {
			err_set(r->e, ERR_PARSE,
				"hq[%zu]: found %.7g, wanted %.7g, the transform of q",
				i, (double)hq[i], (double)q[i]);
			goto out;
		}
	rc = 0;
out:
	free(q);
	return rc;
}

static int
read_preht(struct reader *r, const struct kernel *k, struct fixture *f)
{
	static const char *const keys[] = {"kernel",
					   "head_dim",
					   "n_rows",
					   "block_bytes",
					   "hadamard_inv_scale",
					   "q",
					   "hq",
					   "k_blocks",
					   "k_blocks_qjl",
					   "expected_scores",
					   "expected_scores_qjl",
					   NULL};
	struct fixture_case *c = f->cases;

	f->case_count = 2;
	if (json_known(r->o, keys, r->e) || need_value(r, "head_dim", REF_HEAD) ||
	    need_size(r, "n_rows", 1, FIXTURE_MAX_KV, &c->in.n_kv) ||
	    need_block(r, "block_bytes", k->k_bytes) ||
	    need_value(r, "hadamard_inv_scale", 1.0 / REF_HEAD))
		return -1;
	c[0].in.n_heads = c[0].in.n_kv_heads = 1;
	c[1].in = c[0].in;
	c[1].in.use_qjl = true;
	if (read_scores(r, k, "hq", "k_blocks", "expected_scores", &c[0]) ||
	    read_scores(r, k, "hq", "k_blocks_qjl", "expected_scores_qjl", &c[1]) ||
	    check_transform(r, c[0].q))
		return -1;
	return 0;
}

/* "causal" and "q_pos_base" come together or not at all. */
static int
read_mask(struct reader *r, struct ref_case *c)
{
	uint32_t causal;

	if (json_get(r->o, "causal") == NULL && json_get(r->o, "q_pos_base") == NULL)
		return 0;
	if (need_size(r, "causal", 0, 1, &causal) ||
	    need_size(r, "q_pos_base", 0, FIXTURE_MAX_KV, &c->q_pos_base))
		return -1;
	c->causal = causal;
	return 0;
}

static int
read_case(struct reader *r, const struct kernel *k, struct fixture_case *c)
{
	static const char *const keys[] = {
		"n_heads",  "n_kv_heads", "n_kv",     "causal",	      "q_pos_base",
		"q_sketch", "k_blocks",	  "v_blocks", "expected_out", NULL};
	struct ref_case *n = &c->in;
	size_t key_count;

	if (!cJSON_IsObject(r->o))
		return err_set(r->e, ERR_PARSE, "found %s, wanted an object",
			       kind_of(r->o));
	if (json_known(r->o, keys, r->e) || read_heads(r, n) ||
	    need_size(r, "n_kv", 1, FIXTURE_MAX_KV, &n->n_kv) || read_mask(r, n))
		return -1;
	key_count = (size_t)n->n_kv_heads * n->n_kv;
	if (need_floats(r, "q_sketch", (size_t)n->n_heads * k->q_dim, &c->q,
			&c->q_count) ||
	    need_bytes(r, "k_blocks", key_count * k->k_bytes * k->k_blocks, &c->k,
		       &c->k_bytes) ||
	    need_bytes(r, "v_blocks", key_count * k->v_bytes * k->v_blocks, &c->v,
		       &c->v_bytes) ||
	    need_floats(r, "expected_out", kernel_outputs(k, n), &c->expected,
			&c->expected_count))
		return -1;
	return 0;
}

static int
read_fused_header(struct reader *r, const struct kernel *k, float *sm_scale)
{
	static const char *const keys[] = {"kernel",
					   "head_dim",
					   "proj_dim",
					   "k_block_bytes",
					   "v_block_bytes",
					   "v_blocks_per_token",
					   "use_qjl",
					   "sm_scale",
					   "q_is_pre_projected",
					   "cases",
					   NULL};
	double v;

	if (json_known(r->o, keys, r->e) || need_value(r, "head_dim", REF_HEAD) ||
	    need_value(r, "proj_dim", REF_PROJ) ||
	    need_block(r, "k_block_bytes", k->k_bytes) ||
	    need_block(r, "v_block_bytes", k->v_bytes) ||
	    need_value(r, "v_blocks_per_token", k->v_blocks) ||
	    need_value(r, "q_is_pre_projected", 1) || need_number(r, "sm_scale", &v))
		return -1;
	if (!(v > 0 && v <= (double)FLT_MAX))
		return err_set(r->e, ERR_PARSE,
			       "sm_scale: found %.9g, wanted a positive finite float",
			       v);
	*sm_scale = (float)v;
	if (k->use_qjl)
		return need_value(r, "use_qjl", 1);
	if (json_get(r->o, "use_qjl") != NULL)
		return err_set(
			r->e, ERR_PARSE,
			"use_qjl: found %s, wanted none, these values have no residual",
			kind_of(json_get(r->o, "use_qjl")));
	return 0;
}

static int
read_fused(struct reader *r, const struct kernel *k, struct fixture *f)
{
	const cJSON *cases = json_get(r->o, "cases"), *o;
	struct reader in = {.e = r->e};
	struct fixture_case *c;
	float sm_scale = 0;

	if (read_fused_header(r, k, &sm_scale))
		return -1;
	if (!cJSON_IsArray(cases) || cases->child == NULL)
		return err_set(r->e, ERR_PARSE,
			       "cases: found %s, wanted an array of 1 to %d",
			       cJSON_IsArray(cases) ? "no case" : kind_of(cases),
			       FIXTURE_MAX_CASES);
	cJSON_ArrayForEach(o, cases)
	{
		if (f->case_count == FIXTURE_MAX_CASES)
			return err_set(r->e, ERR_LIMIT, "cases: found more than %d",
				       FIXTURE_MAX_CASES);
		c = &f->cases[f->case_count++];
		c->in.sm_scale = sm_scale;
		c->in.use_qjl = k->use_qjl;
		in.o = o;
		if (read_case(&in, k, c))
			return err_wrap(r->e, "cases[%zu]", f->case_count - 1);
	}
	return 0;
}

/* By enum kernel_schema. */
static int (*const readers[])(struct reader *, const struct kernel *,
			      struct fixture *) = {
	read_turbo, read_qjl, read_polar, read_preht, read_fused,
};

static int
unknown_kernel(const char *found, struct err *e)
{
	char list[256] = "", shown[64];
	size_t i, len = 0;

	for (i = 0; i < KERNEL_COUNT; i++)
		if (kernel_of_field(kernels[i].kernel) == &kernels[i] &&
		    str_fmt(list + len, sizeof list - len, e, "%s%s", len ? ", " : "",
			    kernels[i].kernel) == 0)
			len += (len ? 2 : 0) + strlen(kernels[i].kernel);
	str_show(shown, sizeof shown, found, strlen(found));
	return err_set(e, ERR_PARSE, "kernel: found \"%s\", wanted one of %s", shown,
		       list);
}

static int
read_document(const cJSON *o, struct fixture *f, struct err *e)
{
	struct reader r = {.o = o, .e = e};
	const char *kernel = json_str(o, "kernel");
	size_t i;

	if (!cJSON_IsObject(o))
		return err_set(e, ERR_PARSE, "found %s, wanted an object", kind_of(o));
	if (kernel == NULL)
		return err_set(e, ERR_PARSE, "kernel: found %s, wanted a string",
			       kind_of(json_get(o, "kernel")));
	if ((f->of = kernel_of_field(kernel)) == NULL)
		return unknown_kernel(kernel, e);
	if (readers[f->of->schema](&r, f->of, f))
		return -1;
	for (i = 0; i < f->case_count; i++) {
		f->cases[i].in.q = f->cases[i].q;
		f->cases[i].in.k = f->cases[i].k;
		f->cases[i].in.v = f->cases[i].v;
	}
	return 0;
}

int
fixture_parse(const char *text, size_t len, struct fixture **out, struct err *e)
{
	struct fixture *f = NULL;
	cJSON *o = NULL;
	int rc = -1;

	if (json_parse(text, len, FIXTURE_MAX_BYTES, &o, e))
		goto out;
	if ((f = calloc(1, sizeof *f)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a fixture");
		goto out;
	}
	digest_bytes(text, len, f->sha256);
	if (read_document(o, f, e))
		goto out;
	*out = f, f = NULL;
	rc = 0;
out:
	cJSON_Delete(o);
	fixture_free(f);
	return rc;
}

void
fixture_free(struct fixture *f)
{
	size_t i;

	if (f == NULL)
		return;
	for (i = 0; i < f->case_count; i++) {
		free(f->cases[i].q);
		free(f->cases[i].k);
		free(f->cases[i].v);
		free(f->cases[i].expected);
	}
	free(f);
}

int
fixture_fits(const struct fixture *f, const struct kernel *k, struct err *e)
{
	const struct ref_case *c;
	size_t i;

	if (!str_eq(f->of->kernel, k->kernel))
		return err_set(e, ERR_PARSE, "kernel: found \"%s\", wanted \"%s\"",
			       f->of->kernel, k->kernel);
	/* A file of this schema has one case with the residual and one without. */
	if (k->schema == KERNEL_PREHT)
		return 0;
	for (i = 0; i < f->case_count; i++) {
		c = &f->cases[i].in;
		if (c->use_qjl != k->use_qjl)
			return err_set(e, ERR_PARSE,
				       "use_qjl: found %d, wanted %d for %s",
				       c->use_qjl, k->use_qjl, k->name);
		if (c->causal != k->causal)
			return err_set(e, ERR_PARSE,
				       "cases[%zu]: causal: found %d, wanted %d for %s",
				       i, c->causal, k->causal, k->name);
	}
	return 0;
}

int
fixture_load(const struct kernel *k, const char *dir, struct fixture **out,
	     char sha256[DIGEST_HEX], struct err *e)
{
	struct fixture *f = NULL;
	char *read = NULL, path[4096];
	const char *text;
	size_t len = 0;
	int rc = -1;

	if (dir == NULL)
		text = fixture_builtin(k->file, &len);
	else if (str_fmt(path, sizeof path, e, "%s/%s", dir, k->file) ||
		 plat_read_file(path, FIXTURE_MAX_BYTES, &read, &len, e))
		return -1;
	else
		text = read;
	if (text == NULL)
		return err_set(e, ERR_NOTFOUND, "%s is not built in", k->file);
	if (sha256 != NULL)
		digest_bytes(text, len, sha256);
	if (fixture_parse(text, len, &f, e) || fixture_fits(f, k, e)) {
		err_wrap(e, "%s", k->file);
		goto out;
	}
	*out = f, f = NULL;
	rc = 0;
out:
	free(read);
	fixture_free(f);
	return rc;
}
