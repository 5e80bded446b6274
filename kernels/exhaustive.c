#include "kernels/exhaustive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "kernels/draw.h"
#include "kernels/problem.h"
#include "kernels/spread.h"
#include "kernels/truth.h"

#define KV_HEADS 4
#define N_KV 65536      /* keys of a kv head in a part, at most */
#define STRIP 256       /* keys of one stream of random numbers */
#define GUARD 1024      /* bytes around the scores */
#define MAX_GQA TRUTH_HEADS

/* Heads for a kv head, part by part: mostly many, since a key is decoded once for all. */
static const uint32_t groups[] = {8, 4, 8, 1, 8, 8, 2, 8};

/* What one thread found. */
struct tally {
	uint64_t bad;
	double max_abs, worst;
	struct exhaustive_place where, first_bad;
};

/* A part: a launch on the device, and room for the largest there is. */
struct work {
	struct rig *r;
	const struct verify_task *t;
	const struct verify_item *item;
	unsigned threads;
	double base;
	uint64_t part;
	uint32_t gqa, n_kv;
	size_t key_bytes;
	uint8_t *keys, *scores; /* scores: with guards */
	float *q;
	double *queries;        /* [KV_HEADS][TRUTH_TERMS * TRUTH_HEADS] */
	double lengths[KV_HEADS * MAX_GQA];
	struct tally tallies[SPREAD_MAX];
	struct backend_buffer *d_q, *d_k, *d_out;
};

static uint64_t
stream(const struct work *w)
{
	return (uint64_t)(w->item->kernel - kernels) << 40 | w->part;
}

static size_t
score_bytes(const struct work *w)
{
	return (size_t)KV_HEADS * w->gqa * w->n_kv * sizeof(float);
}

/* ---- operands ---- */

static void
draw_strips(void *arg, size_t from, size_t to, unsigned number)
{
	const struct work *w = arg;
	ref_quantise format = w->item->kernel->quantise_k;
	size_t all = (size_t)KV_HEADS * w->n_kv, n;
	struct draw d, place;
	uint8_t *at;

	(void)number;
	for (; from < to; from++) {
		n = all - from * STRIP < STRIP ? all - from * STRIP : STRIP;
		at = w->keys + from * STRIP * w->key_bytes;
		draw_init_part(&place, w->t->seed, stream(w));
		draw_init_part(&d, draw_bits(&place), from);
		draw_keys(&d, format, DRAW_USUAL, false, n, at);
		/* Two that are rare in life. */
		draw_keys(&d, format, DRAW_SUBNORMAL, false, 1,
			at + draw_below(&d, (uint32_t)n) * w->key_bytes);
		draw_keys(&d, format, DRAW_ZERO, false, 1,
			at + draw_below(&d, (uint32_t)n) * w->key_bytes);
	}
}

static void
draw_queries(struct work *w)
{
	const struct kernel *k = w->item->kernel;
	float scale = problem_query_scale(k);
	uint32_t h, heads = KV_HEADS * w->gqa;
	struct draw d;
	double *query;
	size_t i;

	draw_init_part(&d, w->t->seed ^ UINT64_C(0x5155455259), stream(w));
	for (i = 0; i < (size_t)heads * k->q_dim; i++)
		w->q[i] = draw_normal(&d) * scale;
	memset(w->queries, 0,
		KV_HEADS * TRUTH_TERMS * TRUTH_HEADS * sizeof *w->queries);
	for (h = 0; h < heads; h++) {
		query = w->queries + (size_t)(h / w->gqa) * TRUTH_TERMS * TRUTH_HEADS;
		truth_query(k, w->q + (size_t)h * k->q_dim, h % w->gqa, query);
		w->lengths[h] = truth_query_length(k, query, h % w->gqa);
	}
}

static uint8_t
guard_byte(size_t i)
{
	return (uint8_t)(0xa5 ^ i * 7);
}

static void
fill_scores(struct work *w)
{
	size_t n = score_bytes(w), i;

	/* All ones is a NaN: a score that nobody writes is not a number. */
	memset(w->scores, 0xff, n + 2 * GUARD);
	for (i = 0; i < GUARD; i++)
		w->scores[i] = w->scores[GUARD + n + i] = guard_byte(i);
}

static bool
is_intact(const struct work *w)
{
	size_t n = score_bytes(w), i;

	for (i = 0; i < GUARD; i++)
		if (w->scores[i] != guard_byte(i) || w->scores[GUARD + n + i] != guard_byte(i))
			return false;
	return true;
}

/* ---- comparison ---- */

static void
look(struct work *w, struct tally *t, uint32_t head, uint32_t key, double wanted,
	double length)
{
	struct exhaustive_place p = {w->part, head, key, w->gqa, w->n_kv, 0, wanted, 0};
	double d, share;

	memcpy(&p.got, w->scores + GUARD + ((size_t)head * w->n_kv + key) * sizeof p.got,
		sizeof p.got);
	p.tolerance = truth_tolerance(w->item->kernel, w->base, w->lengths[head], length);
	d = fabs((double)p.got - wanted);
	share = d / p.tolerance;
	if (!(d < p.tolerance) && t->bad++ == 0)
		t->first_bad = p;
	if (d > t->max_abs)
		t->max_abs = d;
	if (share > t->worst) {
		t->worst = share;
		t->where = p;
	}
}

static void
compare_keys(void *arg, size_t from, size_t to, unsigned number)
{
	struct work *w = arg;
	const struct kernel *k = w->item->kernel;
	double weights[TRUTH_TERMS], scores[TRUTH_HEADS], length;
	uint32_t kv, key, g;

	for (; from < to; from++) {
		kv = (uint32_t)(from / w->n_kv);
		key = (uint32_t)(from % w->n_kv);
		truth_key(k, w->keys + from * w->key_bytes, k->use_qjl, weights);
		truth_scores(k, weights,
			w->queries + (size_t)kv * TRUTH_TERMS * TRUTH_HEADS, scores);
		length = truth_key_length(k, weights);
		for (g = 0; g < w->gqa; g++)
			look(w, &w->tallies[number], kv * w->gqa + g, key, scores[g], length);
	}
}

static void
gather(struct work *w, struct exhaustive_row *row)
{
	const struct tally *t;
	unsigned i;

	for (i = 0; i < w->threads; i++) {
		t = &w->tallies[i];
		if (row->bad == 0 && t->bad > 0)
			row->first_bad = t->first_bad;
		row->bad += t->bad;
		row->max_abs = fmax(row->max_abs, t->max_abs);
		if (t->worst > row->worst) {
			row->worst = t->worst;
			row->where = t->where;
		}
	}
	row->compared += score_bytes(w) / sizeof(float);
}

/* ---- the device ---- */

static int
run_part(struct work *w, struct err *e)
{
	const struct kernel *k = w->item->kernel;
	const struct kernel_backend *b = w->r->backend;
	struct backend_session *s = w->r->session;
	size_t q = (size_t)KV_HEADS * w->gqa * k->q_dim * sizeof(float);
	size_t keys = (size_t)KV_HEADS * w->n_kv * w->key_bytes, out = score_bytes(w);
	struct backend_args a = {.n_heads = KV_HEADS * w->gqa, .n_kv_heads = KV_HEADS,
		.n_kv = w->n_kv, .use_qjl = k->use_qjl, .q = {w->d_q, 0, q},
		.k = {w->d_k, 0, keys}, .out = {w->d_out, GUARD, out}};

	if (b->write(s, w->d_q, 0, w->q, q, e) || b->write(s, w->d_k, 0, w->keys, keys, e) ||
	    b->write(s, w->d_out, 0, w->scores, out + 2 * GUARD, e) ||
	    b->run(s, k, w->item->variant, &a, e) ||
	    b->read(s, w->d_out, 0, w->scores, out + 2 * GUARD, e))
		return rig_note(w->r, e);
	return 0;
}

static int
take_memory(struct work *w, struct err *e)
{
	const struct kernel_backend *b = w->r->backend;
	struct backend_session *s = w->r->session;
	size_t keys = (size_t)KV_HEADS * N_KV * w->key_bytes;
	size_t q = (size_t)KV_HEADS * MAX_GQA * REF_PROJ * sizeof(float);
	size_t out = (size_t)KV_HEADS * MAX_GQA * N_KV * sizeof(float) + 2 * GUARD;

	if ((w->keys = malloc(keys)) == NULL || (w->q = malloc(q)) == NULL ||
	    (w->scores = malloc(out)) == NULL ||
	    (w->queries = calloc(KV_HEADS * TRUTH_TERMS * TRUTH_HEADS,
		     sizeof *w->queries)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %zu bytes of keys", keys);
	if (b->buffer_new(s, q + BACKEND_TAIL, &w->d_q, e) ||
	    b->buffer_new(s, keys + BACKEND_TAIL, &w->d_k, e) ||
	    b->buffer_new(s, out + BACKEND_TAIL, &w->d_out, e))
		return rig_note(w->r, e);
	return 0;
}

static void
give_memory(struct work *w)
{
	struct backend_buffer *all[] = {w->d_q, w->d_k, w->d_out};
	size_t i;

	free(w->keys);
	free(w->q);
	free(w->scores);
	free(w->queries);
	for (i = 0; i < str_count(all) && !w->r->lost; i++)
		if (all[i] != NULL)
			w->r->backend->buffer_free(w->r->session, all[i]);
}

/* The next part: as many keys as are still wanted, and not the same number each time. */
static void
shape_part(struct work *w, uint64_t left)
{
	uint64_t n;

	w->gqa = groups[w->part % str_count(groups)];
	n = (left + KV_HEADS * w->gqa - 1) / (KV_HEADS * w->gqa);
	w->n_kv = N_KV - (uint32_t)(w->part % 17);
	if (n < w->n_kv)
		w->n_kv = (uint32_t)n;
}

static int
stream_parts(struct work *w, uint64_t wanted, struct exhaustive_row *row, struct err *e)
{
	size_t keys;

	for (; row->compared < wanted && !verify_is_stopped(w->t); w->part++) {
		verify_progress(w->t, row->name, row->compared, wanted);
		shape_part(w, wanted - row->compared);
		keys = (size_t)KV_HEADS * w->n_kv;
		spread_run(w->threads, (keys + STRIP - 1) / STRIP, draw_strips, w);
		draw_queries(w);
		fill_scores(w);
		if (run_part(w, e))
			return -1;
		if (!is_intact(w)) {
			row->outcome = OUTCOME_FAIL;
			snprintf(row->detail, sizeof row->detail,
				"the kernel wrote outside of its output in part %llu",
				(unsigned long long)w->part);
		}
		memset(w->tallies, 0, sizeof w->tallies);
		spread_run(w->threads, keys, compare_keys, w);
		gather(w, row);
	}
	verify_progress(w->t, row->name, 1, 1);
	return 0;
}

static void
judge(const struct work *w, uint64_t wanted, struct exhaustive_row *row)
{
	const struct exhaustive_place *p = &row->first_bad;

	if (row->bad > 0) {
		row->outcome = OUTCOME_FAIL;
		snprintf(row->detail, sizeof row->detail,
			"%llu bad; the first: part %llu (gqa %u, %u keys), head %u, key %u: "
			"got %.9g, wanted %.9g, tolerance %.3g",
			(unsigned long long)row->bad, (unsigned long long)p->part, p->gqa,
			p->n_kv, p->head, p->key, (double)p->got, p->wanted, p->tolerance);
	} else if (row->outcome == OUTCOME_PASS && row->compared < wanted) {
		row->outcome = OUTCOME_INCOMPLETE;
		row->why = ERR_CANCELLED;
		snprintf(row->detail, sizeof row->detail, "stopped after %llu of %llu",
			(unsigned long long)row->compared, (unsigned long long)wanted);
	}
	(void)w;
}

static void
run_item(struct rig *r, const struct verify_task *t, const struct verify_item *item,
	uint64_t scores, unsigned threads, struct exhaustive_row *row)
{
	const struct kernel *k = item->kernel;
	struct work *w = calloc(1, sizeof *w);
	int64_t start = plat_mono_ms();
	struct err e = {0};

	str_show(row->name, sizeof row->name, item->name, strlen(item->name));
	if (w == NULL)
		err_set(&e, ERR_NOMEM, "no memory");
	else {
		*w = (struct work){.r = r, .t = t, .item = item, .threads = threads,
			.base = t->tolerance > 0 ? t->tolerance : k->tolerance,
			.key_bytes = (size_t)k->k_bytes * k->k_blocks};
		if (r->lost)
			err_set(&e, ERR_DEVICE, "the device failed before this");
		else if (item->variant_name[0] == '\0')
			err_set(&e, ERR_UNSUPPORTED, "not on this device");
		else if (take_memory(w, &e) == 0 &&
			 stream_parts(w, scores, row, &e) == 0)
			judge(w, scores, row);
		give_memory(w);
	}
	if (e.code != ERR_NONE) {
		row->outcome = OUTCOME_BLOCKED;
		row->why = e.code;
		str_show(row->detail, sizeof row->detail, e.msg, strlen(e.msg));
	}
	row->seconds = (double)(plat_mono_ms() - start) / 1000;
	free(w);
}

int
exhaustive_run(struct rig *r, const struct verify_task *t, uint64_t scores,
	unsigned threads, struct exhaustive_report *out, struct err *e)
{
	struct verify_report sum = {0};
	const struct verify_item *item;
	struct exhaustive_row *row;
	size_t i;

	*out = (struct exhaustive_report){.seed = t->seed, .wanted = scores,
		.threads = threads == 0		? spread_threads()
			   : threads > SPREAD_MAX ? SPREAD_MAX
						  : threads};
	if ((out->rows = calloc(t->item_count + 1, sizeof *out->rows)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the rows");
	for (i = 0; i < t->item_count; i++) {
		item = &t->items[i];
		if (item->source != item->kernel || item->kernel->v_bytes > 0)
			continue;
		row = &out->rows[out->count++];
		run_item(r, t, item, scores, out->threads, row);
		verify_report_join(&sum, row->outcome, row->why);
	}
	out->outcome = sum.outcome;
	out->why = sum.why;
	return 0;
}

void
exhaustive_fini(struct exhaustive_report *r)
{
	free(r->rows);
	memset(r, 0, sizeof *r);
}

/* ---- what it says ---- */

static cJSON *
place_json(const struct exhaustive_place *p)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_int(o, "part", (int64_t)p->part) && json_add_int(o, "gqa", p->gqa) &&
	    json_add_int(o, "nKv", p->n_kv) && json_add_int(o, "head", p->head) &&
	    json_add_int(o, "key", p->key) && json_add_num(o, "got", (double)p->got) &&
	    json_add_num(o, "wanted", p->wanted) &&
	    json_add_num(o, "tolerance", p->tolerance))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static cJSON *
row_json(const struct exhaustive_row *p)
{
	cJSON *o = cJSON_CreateObject();
	bool known = p->bad == 0 && p->compared > 0;

	if (json_add_str(o, "name", p->name) &&
	    json_add_int(o, "compared", (int64_t)p->compared) &&
	    json_add_int(o, "bad", (int64_t)p->bad) &&
	    json_add_num(o, "errorRateBound95",
		    known ? 3 / (double)p->compared : (double)NAN) &&
	    json_add_num(o, "maxAbsDiff", p->max_abs) &&
	    json_add_num(o, "worstOfTolerance", p->worst) &&
	    json_add(o, "worst", place_json(&p->where)) &&
	    (p->bad ? json_add(o, "firstBad", place_json(&p->first_bad))
		    : json_add_null(o, "firstBad")) &&
	    json_add_num(o, "seconds", p->seconds) &&
	    json_add_str(o, "outcome", outcome_name(p->outcome)) &&
	    json_add_str(o, "detail", p->detail))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *
exhaustive_json(const struct exhaustive_report *r)
{
	cJSON *o = cJSON_CreateObject(), *a = NULL;
	char seed[24];
	size_t i;
	bool ok;

	/* Text: JSON has no 64-bit integers. */
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->seed);
	ok = json_add_str(o, "seed", seed) &&
	     json_add_int(o, "wanted", (int64_t)r->wanted) &&
	     json_add_int(o, "threads", r->threads) &&
	     json_add_str(o, "outcome", outcome_name(r->outcome)) &&
	     (a = json_add_array(o, "rows")) != NULL;
	for (i = 0; ok && i < r->count; i++)
		ok = cJSON_AddItemToArray(a, row_json(&r->rows[i]));
	if (ok)
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void
print_row(FILE *out, const struct exhaustive_row *p, bool colour)
{
	fprintf(out, "%-28s %12llu %6llu %9.2e %8.3f%% %8.1f  %s\n", p->name,
		(unsigned long long)p->compared, (unsigned long long)p->bad, p->max_abs,
		100 * p->worst, p->seconds, verify_mark(p->outcome, colour));
	if (p->compared > 0)
		fprintf(out,
			"    worst: part %llu (gqa %u, %u keys), head %u, key %u: got %.9g, "
			"wanted %.9g\n",
			(unsigned long long)p->where.part, p->where.gqa, p->where.n_kv,
			p->where.head, p->where.key, (double)p->where.got, p->where.wanted);
	if (p->detail[0])
		fprintf(out, "    %s\n", p->detail);
	else if (p->compared > 0)
		fprintf(out, "    none bad: fewer than one in %.3g are, with 95 %% certainty\n",
			(double)p->compared / 3);
}

void
exhaustive_print(FILE *out, const struct exhaustive_report *r, bool colour)
{
	size_t i;

	fprintf(out, "exhaustive, seed %llu, %u threads for the reference\n",
		(unsigned long long)r->seed, r->threads);
	fprintf(out, "%-28s %12s %6s %9s %9s %8s  %s\n", "kernel", "scores", "bad", "max abs",
		"worst", "seconds", "verdict");
	for (i = 0; i < r->count; i++)
		print_row(out, &r->rows[i], colour);
}
