#include "kernels/property.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/problem.h"

#define RANDOM_SHAPES 12 /* of a full run, after those of the table */
#define QUICK 4          /* a quick run takes each fourth shape of a kind */
#define PARTS 1000       /* streams of random numbers that a kernel has */

static const struct problem_kind kinds[] = {
	{"ordinary", DRAW_USUAL, DRAW_USUAL, 1, .mixed = false},
	{"subnormal norms", DRAW_SUBNORMAL, DRAW_SUBNORMAL, 256, .mixed = false},
	{"huge norms", DRAW_HUGE, DRAW_HUGE, 1, .mixed = false},
	{"zero norms", DRAW_ZERO, DRAW_ZERO, 1, .mixed = false},
	{"all kinds of norms", DRAW_USUAL, DRAW_USUAL, 16, .mixed = true},
	{"equal keys", DRAW_USUAL, DRAW_USUAL, 1, .equal = true},
	{"reserved bits set", DRAW_USUAL, DRAW_USUAL, 1, .strays = true},
	{"large queries", DRAW_USUAL, DRAW_USUAL, 64, .edge = true},
};

/* Odd numbers of keys with several kv heads make bases that are hardly aligned; kernels
 * take up to eight heads of a group at once, so the last of twelve are fewer.  2100 keys
 * are more than the grid of a small device takes in one round. */
static const struct problem_shape shapes[] = {
	{1, 1, 1}, {4, 2, 33}, {8, 1, 7}, {2, 3, 31}, {1, 1, 1000}, {8, 2, 0}, {16, 1, 31},
	{3, 2, 33}, {8, 3, 1}, {1, 5, 7}, {4, 1, 257}, {2, 2, 1000}, {8, 2, 129}, {3, 3, 64},
	{1, 3, 33}, {16, 2, 7}, {12, 2, 65}, {6, 1, 44}, {2, 2, 2100},
};

/* One item and where its results go. */
struct subject {
	const struct verify_item *item;
	struct property_row *row;
};

struct work {
	struct rig *r;
	const struct verify_task *t;
	bool full;
	struct subject subjects[BACKEND_VARIANTS];
	size_t subject_count; /* of the kernel at hand */
	float *out;           /* room for the outputs of a problem */
	struct err *e;
};

/* ---- looking at outputs ---- */

static void
fail_row(struct property_row *row, const struct problem *p,
	const struct problem_kind *kind, const char *what)
{
	struct err ignored = {0};

	row->outcome = OUTCOME_FAIL;
	if (row->detail[0] == '\0' &&
	    str_fmt(row->detail, sizeof row->detail, &ignored,
		    "%s, %u heads, %u kv heads, %u keys%s: %s", kind->name, p->in.n_heads,
		    p->in.n_kv_heads, p->in.n_kv, p->in.causal ? ", causal" : "", what))
		row->detail[0] = '\0';
}

static void
fail_output(struct property_row *row, const struct problem *p,
	const struct problem_kind *kind, size_t i, double got)
{
	size_t columns = p->kernel->v_bytes ? REF_HEAD : p->in.n_kv;
	char what[160];

	snprintf(what, sizeof what, "head %zu, %s %zu: got %.9g, wanted %.9g, tolerance %.3g",
		i / columns, p->kernel->v_bytes ? "element" : "key", i % columns, got,
		(double)p->expected[i], p->tolerance[i]);
	fail_row(row, p, kind, what);
}

static void
compare(struct property_row *row, const struct problem *p,
	const struct problem_kind *kind, const float *out)
{
	double d, share;
	size_t i;

	for (i = 0; i < p->outputs; i++) {
		d = fabs((double)out[i] - (double)p->expected[i]);
		share = d / p->tolerance[i];
		row->elements++;
		row->non_finite += !isfinite(out[i]);
		if (!(d < p->tolerance[i])) {
			row->over++;
			fail_output(row, p, kind, i, (double)out[i]);
		}
		if (share > row->worst)
			row->worst = share;
		if (d > row->max_abs && p->rounding[i] < KERNEL_TOLERANCE)
			row->max_abs = d;
	}
}

/* Runs p; false when there is nothing to look at, which the row then says. */
static bool
run(struct work *w, const struct subject *s, const struct problem *p,
	const struct problem_kind *kind, float *out)
{
	struct rig_faults f;
	struct err e = {0};
	char what[160];

	if (s->row->outcome == OUTCOME_BLOCKED)
		return false;
	s->row->problems++;
	if (rig_run(w->r, p->kernel, s->item->variant, &p->in, out, &f, &e)) {
		s->row->outcome = OUTCOME_BLOCKED;
		s->row->why = e.code;
		str_show(s->row->detail, sizeof s->row->detail, e.msg, strlen(e.msg));
		return false;
	}
	if (f.guard || f.input) {
		snprintf(what, sizeof what, "the kernel wrote %s (%s)",
			f.guard ? "outside of its output" : "into an input", f.where);
		fail_row(s->row, p, kind, what);
	}
	return true;
}

/* ---- what holds without the right score ---- */

/* The same problem again. */
static void
repeat(struct work *w, const struct subject *s, struct problem *p,
	const struct problem_kind *kind, const float *before, float *now)
{
	if (run(w, s, p, kind, now) && memcmp(before, now, p->outputs * sizeof *now) != 0)
		fail_row(s->row, p, kind, "the same problem again gives other bits");
}

/* What stood at i stands at order[i]. */
static void
shuffle(size_t *order, size_t n)
{
	struct draw d;
	size_t i, j, spare;

	draw_init(&d, n);
	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n; i > 1; i--) {
		j = draw_below(&d, (uint32_t)i);
		spare = order[i - 1], order[i - 1] = order[j], order[j] = spare;
	}
}

static void
move_keys(const uint8_t *from, const size_t *order, size_t heads, size_t n, size_t bytes,
	uint8_t *to)
{
	size_t h, i;

	for (h = 0; h < heads; h++)
		for (i = 0; i < n; i++)
			memcpy(to + (h * n + order[i]) * bytes, from + (h * n + i) * bytes,
				bytes);
}

/* Outputs of the keys in another order: scores moved alike, a mean of values stays. */
static void
compare_moved(const struct subject *s, const struct problem *p,
	const struct problem_kind *kind, const size_t *order, const float *before,
	const float *now)
{
	size_t n = p->in.n_kv, i, j;
	char what[120];

	for (i = 0; i < p->outputs; i++) {
		j = p->kernel->v_bytes ? i : i / n * n + order[i % n];
		s->row->reordered += memcmp(&before[i], &now[j], sizeof *now) != 0;
		if (fabs((double)before[i] - (double)now[j]) <= 2 * p->rounding[i])
			continue;
		snprintf(what, sizeof what, "keys in another order give %.9g instead of %.9g",
			(double)now[j], (double)before[i]);
		fail_row(s->row, p, kind, what);
	}
}

static void
reorder(struct work *w, const struct subject *s, const struct problem *p,
	const struct problem_kind *kind, const float *before, float *now)
{
	size_t n = p->in.n_kv, heads = p->in.n_kv_heads;
	size_t k = (size_t)p->kernel->k_bytes * p->kernel->k_blocks;
	size_t v = (size_t)p->kernel->v_bytes * p->kernel->v_blocks;
	size_t *order = calloc(n + 1, sizeof *order);
	uint8_t *keys = calloc(heads * n + 1, k), *values = calloc(heads * n + 1, v + 1);
	struct problem moved = *p;

	if (order == NULL || keys == NULL || values == NULL)
		fail_row(s->row, p, kind, "no memory to put keys in another order");
	else if (!p->in.causal) { /* there it would be another prefix */
		shuffle(order, n);
		move_keys(p->k, order, heads, n, k, keys);
		moved.in.k = keys;
		if (v > 0) {
			move_keys(p->v, order, heads, n, v, values);
			moved.in.v = values;
		}
		if (run(w, s, &moved, kind, now))
			compare_moved(s, p, kind, order, before, now);
	}
	free(order);
	free(keys);
	free(values);
}

/* Twice the norms: twice the scores, exactly, since that is no rounding. */
static void
redouble(struct work *w, const struct subject *s, struct problem *p,
	const struct problem_kind *kind, const float *before, float *now)
{
	size_t n = (size_t)p->in.n_kv_heads * p->in.n_kv, i;
	size_t bytes = n * p->kernel->k_bytes * p->kernel->k_blocks;
	uint8_t *keep;

	if (p->kernel->v_bytes)
		return;
	if ((keep = malloc(bytes)) == NULL) {
		fail_row(s->row, p, kind, "no memory to double norms");
		return;
	}
	memcpy(keep, p->k, bytes);
	draw_double_norms(p->kernel->quantise_k, n, p->k);
	if (run(w, s, p, kind, now))
		for (i = 0; i < p->outputs; i++)
			if (!(now[i] == 2 * before[i]))
				fail_row(s->row, p, kind,
					"doubled norms do not double a score exactly");
	memcpy(p->k, keep, bytes);
	free(keep);
}

static void
metamorphose(struct work *w, struct problem *p, const struct problem_kind *kind)
{
	float *before = w->out, *now = w->out + p->outputs;
	size_t i;

	for (i = 0; i < w->subject_count; i++) {
		if (!run(w, &w->subjects[i], p, kind, before))
			continue;
		repeat(w, &w->subjects[i], p, kind, before, now);
		reorder(w, &w->subjects[i], p, kind, before, now);
		redouble(w, &w->subjects[i], p, kind, before, now);
	}
}

/* ---- problems ---- */

/* Prefixes of a causal kernel: one token, part, all but none, all, more than there are. */
static uint32_t
prefix(struct draw *d, uint32_t n_kv)
{
	uint32_t all[] = {0, n_kv / 2, n_kv ? n_kv - 1 : 0, n_kv, n_kv + 5, UINT32_MAX};

	return all[draw_below(d, str_count(all))];
}

static int
solve(struct work *w, const struct kernel *k, size_t kind, const struct problem_shape *shape,
	size_t part, bool meta)
{
	double base = w->t->tolerance > 0 ? w->t->tolerance : k->tolerance;
	struct problem p;
	struct draw d;
	uint32_t at;
	size_t i;

	/* Depends on seed, kernel, kind and shape only: what fails can be run alone. */
	draw_init_part(&d, w->t->seed, (uint64_t)(k - kernels) * PARTS + part);
	at = prefix(&d, shape->n_kv);
	if (problem_init(&p, k, &kinds[kind], shape, at, base, &d, w->e))
		return -1;
	free(w->out);
	if ((w->out = calloc(2 * p.outputs + 1, sizeof *w->out)) == NULL) {
		problem_fini(&p);
		return err_set(w->e, ERR_NOMEM, "no memory for the outputs");
	}
	for (i = 0; i < w->subject_count && !meta; i++)
		if (run(w, &w->subjects[i], &p, &kinds[kind], w->out))
			compare(w->subjects[i].row, &p, &kinds[kind], w->out);
	if (meta)
		metamorphose(w, &p, &kinds[kind]);
	problem_fini(&p);
	return 0;
}

static struct problem_shape
random_shape(const struct verify_task *t, size_t n)
{
	static const uint32_t gqa[] = {1, 2, 3, 4, 8, 16};
	struct draw d;

	draw_init_part(&d, t->seed, UINT64_MAX - n);
	return (struct problem_shape){gqa[draw_below(&d, str_count(gqa))],
		1 + draw_below(&d, 4), 1 + draw_below(&d, 700)};
}

static int
solve_all(struct work *w, const struct kernel *k)
{
	static const struct problem_shape meta = {4, 2, 133};
	size_t n = str_count(shapes) + (w->full ? RANDOM_SHAPES : 0), kind, i;
	struct problem_shape shape;

	for (kind = 0; kind < str_count(kinds); kind++)
		for (i = 0; i < n && !verify_is_stopped(w->t); i++) {
			if (!w->full && (i + kind) % QUICK != 0)
				continue;
			shape = i < str_count(shapes) ? shapes[i] : random_shape(w->t, i);
			if (solve(w, k, kind, &shape, kind * 100 + i, false))
				return -1;
		}
	return verify_is_stopped(w->t) ? 0 : solve(w, k, 0, &meta, PARTS - 1, true);
}

static void
conclude(const struct work *w, struct property_report *r)
{
	struct verify_report sum = {0};
	struct property_row *row;
	size_t i;

	for (i = 0; i < r->count; i++) {
		row = &r->rows[i];
		if (row->outcome == OUTCOME_PASS && verify_is_stopped(w->t)) {
			row->outcome = OUTCOME_INCOMPLETE;
			row->why = ERR_CANCELLED;
			snprintf(row->detail, sizeof row->detail, "stopped");
		} else if (row->outcome == OUTCOME_PASS && row->elements == 0) {
			row->outcome = OUTCOME_FAIL;
			snprintf(row->detail, sizeof row->detail, "no output was compared");
		}
		r->elements += row->elements;
		verify_report_join(&sum, row->outcome, row->why);
	}
	r->outcome = sum.outcome;
	r->why = sum.why;
}

/* The items of a kernel become the subjects; those that the device lacks are blocked. */
static void
choose_subjects(struct work *w, const struct kernel *k, struct property_report *out)
{
	const struct verify_item *item;
	struct property_row *row;
	size_t i;

	w->subject_count = 0;
	for (i = 0; i < w->t->item_count; i++) {
		item = &w->t->items[i];
		if (item->kernel != k || item->source != k ||
		    w->subject_count == BACKEND_VARIANTS)
			continue;
		row = &out->rows[out->count++];
		str_show(row->name, sizeof row->name, item->name, strlen(item->name));
		if (item->variant_name[0] == '\0') {
			row->outcome = OUTCOME_BLOCKED;
			row->why = w->r->lost ? ERR_DEVICE : ERR_UNSUPPORTED;
			snprintf(row->detail, sizeof row->detail, "not on this device");
		}
		w->subjects[w->subject_count++] = (struct subject){item, row};
	}
}

int
property_run(struct rig *r, const struct verify_task *t, bool full,
	struct property_report *out, struct err *e)
{
	struct work w = {.r = r, .t = t, .full = full, .e = e};
	int rc = -1;
	size_t i;

	*out = (struct property_report){.seed = t->seed, .full = full};
	if ((out->rows = calloc(t->item_count + 1, sizeof *out->rows)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the properties");
		goto out;
	}
	for (i = 0; i < KERNEL_COUNT; i++) {
		verify_progress(t, kernels[i].name, i, KERNEL_COUNT);
		choose_subjects(&w, &kernels[i], out);
		if (w.subject_count > 0 && solve_all(&w, &kernels[i]))
			goto out;
	}
	conclude(&w, out);
	rc = 0;
out:
	verify_progress(t, "", 1, 1);
	free(w.out);
	if (rc)
		property_fini(out);
	return rc;
}

void
property_fini(struct property_report *r)
{
	free(r->rows);
	memset(r, 0, sizeof *r);
}

/* ---- what it says ---- */

static cJSON *
row_json(const struct property_row *p)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_str(o, "name", p->name) &&
	    json_add_int(o, "problems", (int64_t)p->problems) &&
	    json_add_int(o, "elements", (int64_t)p->elements) &&
	    json_add_int(o, "over", (int64_t)p->over) &&
	    json_add_int(o, "nonFinite", (int64_t)p->non_finite) &&
	    json_add_num(o, "maxAbsDiff", p->max_abs) &&
	    json_add_num(o, "worstOfTolerance", p->worst) &&
	    json_add_int(o, "reordered", (int64_t)p->reordered) &&
	    json_add_str(o, "outcome", outcome_name(p->outcome)) &&
	    json_add_str(o, "detail", p->detail))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *
property_json(const struct property_report *r)
{
	cJSON *o = cJSON_CreateObject(), *a = NULL;
	char seed[24];
	size_t i;
	bool ok;

	/* Text: JSON has no 64-bit integers. */
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->seed);
	ok = json_add_str(o, "seed", seed) &&
	     json_add_str(o, "depth", r->full ? "full" : "quick") &&
	     json_add_int(o, "elements", (int64_t)r->elements) &&
	     json_add_str(o, "outcome", outcome_name(r->outcome)) &&
	     (a = json_add_array(o, "rows")) != NULL;
	for (i = 0; ok && i < r->count; i++)
		ok = cJSON_AddItemToArray(a, row_json(&r->rows[i]));
	if (ok)
		return o;
	cJSON_Delete(o);
	return NULL;
}

void
property_print(FILE *out, const struct property_report *r, bool colour)
{
	const struct property_row *p;
	size_t i;

	fprintf(out, "properties, seed %llu, %s\n", (unsigned long long)r->seed,
		r->full ? "full" : "quick");
	fprintf(out, "%-28s %8s %9s %9s %9s %7s  %s\n", "kernel", "problems", "elements",
		"max abs", "worst", "NaN/Inf", "verdict");
	for (i = 0; i < r->count; i++) {
		p = &r->rows[i];
		fprintf(out, "%-28s %8zu %9zu %9.2e %8.3f%% %7zu  %s\n", p->name, p->problems,
			p->elements, p->max_abs, 100 * p->worst, p->non_finite,
			verify_mark(p->outcome, colour));
		if (p->detail[0])
			fprintf(out, "    %s\n", p->detail);
	}
}
