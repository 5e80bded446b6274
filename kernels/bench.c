#include "kernels/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/draw.h"
#include "kernels/problem.h"
#include "kernels/truth.h"

#define SECONDS 2.0      /* for one shape */
#define MANY_RUNS 100    /* of what takes no time */
#define PATTERN (4u << 20) /* bytes of random keys that are repeated */
#define SPOTS 64         /* outputs that are looked at */
#define SM_SCALE 0.08838834764831845f

static const uint32_t all_keys[] = {4096, 32768, 131072};
static const uint32_t all_groups[] = {1, 4, 8};

/* What is on the device for one shape. */
struct bench {
	struct rig *r;
	const struct verify_task *t;
	const struct verify_item *item;
	const struct bench_options *o;
	struct bench_row *row;
	size_t key, value;       /* bytes of one */
	size_t keys_at_all;      /* keys of all kv heads */
	size_t bulk_bytes, value_at, out_bytes, sink_bytes;
	uint8_t *pattern;        /* keys */
	size_t pattern_keys;
	float *q;
	struct backend_buffer *d_q, *d_bulk, *d_sink; /* K and V; outputs or copies */
	double per_key, plain_per_key; /* seconds, of the last shape; 0: not known */
};

static size_t
round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
shape_up(struct bench *b)
{
	const struct kernel *k = b->item->kernel;
	const struct bench_row *row = b->row;

	b->key = (size_t)k->k_bytes * k->k_blocks;
	b->value = (size_t)k->v_bytes * k->v_blocks;
	b->keys_at_all = (size_t)BENCH_KV_HEADS * row->n_kv;
	b->value_at = round_up(b->keys_at_all * b->key + BACKEND_TAIL, BACKEND_ALIGN);
	b->bulk_bytes = b->value_at + b->keys_at_all * b->value;
	b->out_bytes = (size_t)BENCH_KV_HEADS * row->gqa *
		       (b->value ? REF_HEAD : row->n_kv) * sizeof(float);
	b->row->moved = b->keys_at_all * (b->key + b->value) + b->out_bytes;
	b->row->cached = b->row->moved < BENCH_CACHE;
	b->sink_bytes = b->row->moved / 2 / 16 * 16;
	if (b->sink_bytes < b->out_bytes)
		b->sink_bytes = b->out_bytes;
}

/* ---- operands ---- */

/* Random keys again and again, by copies on the device that double what is there. */
static int
fill(struct bench *b, ref_quantise format, size_t bytes, size_t at, size_t all,
	uint8_t *pattern, size_t *keys, struct err *e)
{
	const struct kernel_backend *k = b->r->backend;
	size_t n = PATTERN / bytes, have;
	struct draw d;

	if (n * bytes > all)
		n = all / bytes;
	draw_init_part(&d, b->t->seed, at);
	draw_keys(&d, format, DRAW_USUAL, false, n, pattern);
	*keys = n;
	if (k->write(b->r->session, b->d_bulk, at, pattern, n * bytes, e))
		return -1;
	for (have = n * bytes; have < all; have += n) {
		n = have < all - have ? have : all - have;
		if (k->copy(b->r->session, b->d_bulk, at + have, b->d_bulk, at, n, e))
			return -1;
	}
	return 0;
}

static int
take_memory(struct bench *b, struct err *e)
{
	const struct kernel *k = b->item->kernel;
	const struct kernel_backend *be = b->r->backend;
	size_t n = (size_t)BENCH_KV_HEADS * b->row->gqa * k->q_dim, i, ignored;
	uint8_t *values = NULL;
	struct draw d;
	int rc = -1;

	if ((b->q = malloc(n * sizeof *b->q)) == NULL ||
	    (b->pattern = malloc(PATTERN)) == NULL || (values = malloc(PATTERN)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the operands");
		goto out;
	}
	if (be->buffer_new(b->r->session, n * sizeof *b->q + BACKEND_TAIL, &b->d_q, e) ||
	    be->buffer_new(b->r->session, b->bulk_bytes + BACKEND_TAIL, &b->d_bulk, e) ||
	    be->buffer_new(b->r->session, b->sink_bytes + BACKEND_TAIL, &b->d_sink, e))
		goto out;
	draw_init(&d, b->t->seed);
	for (i = 0; i < n; i++)
		b->q[i] = draw_normal(&d) * problem_query_scale(k);
	if (be->write(b->r->session, b->d_q, 0, b->q, n * sizeof *b->q, e) ||
	    fill(b, k->quantise_k, b->key, 0, b->keys_at_all * b->key, b->pattern,
		    &b->pattern_keys, e) ||
	    (b->value && fill(b, k->quantise_v, b->value, b->value_at,
				b->keys_at_all * b->value, values, &ignored, e)))
		goto out;
	rc = 0;
out:
	free(values);
	return rc;
}

static void
give_memory(struct bench *b)
{
	struct backend_buffer **all[] = {&b->d_q, &b->d_bulk, &b->d_sink};
	size_t i;

	for (i = 0; i < str_count(all); i++) {
		if (*all[i] != NULL && !b->r->lost)
			b->r->backend->buffer_free(b->r->session, *all[i]);
		*all[i] = NULL;
	}
	free(b->q);
	free(b->pattern);
	b->q = NULL;
	b->pattern = NULL;
}

static struct backend_args
arguments(const struct bench *b)
{
	const struct kernel *k = b->item->kernel;
	uint32_t heads = BENCH_KV_HEADS * b->row->gqa;

	return (struct backend_args){.n_heads = heads, .n_kv_heads = BENCH_KV_HEADS,
		.n_kv = b->row->n_kv, .use_qjl = k->use_qjl, .causal = k->causal,
		.q_pos_base = b->row->n_kv, .sm_scale = SM_SCALE,
		.q = {b->d_q, 0, (size_t)heads * k->q_dim * sizeof(float)},
		.k = {b->d_bulk, 0, b->keys_at_all * b->key},
		.v = {b->value ? b->d_bulk : NULL, b->value ? b->value_at : 0,
			b->keys_at_all * b->value},
		.out = {b->d_sink, 0, b->out_bytes}};
}

/* ---- times ---- */

/* Median and fastest of a kernel's variant, or of a copy (k NULL).  *runs: how many. */
static int
measure(struct bench *b, const struct kernel *k, size_t variant,
	const struct backend_args *a, double seconds, unsigned *runs, double *median,
	double *best, struct err *e)
{
	double first = 0, times[MANY_RUNS];
	struct backend_timing t = {1, 1, &first};
	const struct kernel_backend *be = b->r->backend;
	unsigned n = MANY_RUNS;

	if (be->time(b->r->session, k, variant, a, &t, e))
		return rig_note(b->r, e);
	if (first * MANY_RUNS > seconds)
		n = first * BENCH_RUNS <= seconds ? BENCH_RUNS : (unsigned)(seconds / first);
	t = (struct backend_timing){n > BENCH_RUNS ? 3 : 0, n ? n : 1, times};
	if (be->time(b->r->session, k, variant, a, &t, e))
		return rig_note(b->r, e);
	qsort(times, t.runs, sizeof *times, compare_doubles);
	*runs = t.runs;
	*median = t.runs % 2 ? times[t.runs / 2]
			     : (times[t.runs / 2 - 1] + times[t.runs / 2]) / 2;
	*best = times[0];
	return 0;
}

static int
measure_copy(struct bench *b, double seconds, struct err *e)
{
	struct backend_args a = {0};
	double best;
	unsigned runs;

	/* As many bytes read and written as the kernel moves. */
	a.k = (struct backend_span){b->d_bulk, 0, b->row->moved / 2 / 16 * 16};
	a.out = (struct backend_span){b->d_sink, 0, a.k.bytes};
	return measure(b, NULL, 0, &a, seconds, &runs, &b->row->copy_seconds, &best, e);
}

/* The port that public kernels resemble; on a CPU the scalar one. */
static bool
find_plain(const struct bench *b, size_t *variant, char name[32])
{
	const char *names[BACKEND_VARIANTS];
	size_t n = rig_variants(b->r, b->item->kernel, names), i;

	for (i = 0; i < n; i++)
		if (i != b->item->variant &&
		    (str_eq(names[i], "plain") || str_eq(names[i], "scalar"))) {
			*variant = i;
			str_show(name, 32, names[i], strlen(names[i]));
			return true;
		}
	return false;
}

static int
measure_plain(struct bench *b, const struct backend_args *a, double seconds, struct err *e)
{
	double work = (double)b->keys_at_all * b->row->gqa, best;
	unsigned runs;
	size_t variant;

	if (!find_plain(b, &variant, b->row->plain) ||
	    b->plain_per_key * work * 2 > seconds)
		return 0;
	if (measure(b, b->item->kernel, variant, a, seconds, &runs, &b->row->plain_seconds,
		    &best, e))
		return -1;
	b->plain_per_key = b->row->plain_seconds / work;
	return 0;
}

/* ---- right, too ---- */

static bool
is_right(const struct bench *b, uint32_t head, uint32_t key, float got)
{
	const struct kernel *k = b->item->kernel;
	double weights[TRUTH_TERMS], scores[TRUTH_HEADS], tolerance;
	double *query = calloc(TRUTH_TERMS * TRUTH_HEADS, sizeof *query);
	size_t at = (size_t)(head / b->row->gqa) * b->row->n_kv + key;
	double base = b->t->tolerance > 0 ? b->t->tolerance : k->tolerance;

	if (query == NULL)
		return false;
	truth_query(k, b->q + (size_t)head * k->q_dim, 0, query);
	truth_key(k, b->pattern + at % b->pattern_keys * b->key, k->use_qjl, weights);
	truth_scores(k, weights, query, scores);
	tolerance = truth_tolerance(k, base, truth_query_length(k, query, 0),
		truth_key_length(k, weights));
	free(query);
	return fabs((double)got - scores[0]) < tolerance;
}

/* The outputs that are looked at: the last ones, and some. */
static void
find_spot(const struct bench *b, struct draw *d, uint32_t i, uint32_t *head, uint32_t *key)
{
	uint32_t heads = BENCH_KV_HEADS * b->row->gqa;
	uint32_t columns = b->value ? REF_HEAD : b->row->n_kv;

	*head = i < 4 ? heads - 1 - i : draw_below(d, heads);
	*key = i < 4 ? columns - 1 : draw_below(d, columns);
}

/* Where a kernel writes nothing, what was there before must not look right. */
static int
poison(struct bench *b, struct err *e)
{
	size_t columns = b->value ? REF_HEAD : b->row->n_kv;
	uint32_t all_ones = UINT32_MAX, i, head, key;
	struct draw d;

	draw_init(&d, b->t->seed + 1);
	for (i = 0; i < SPOTS; i++) {
		find_spot(b, &d, i, &head, &key);
		if (b->r->backend->write(b->r->session, b->d_sink,
			    (head * columns + key) * sizeof all_ones, &all_ones,
			    sizeof all_ones, e))
			return rig_note(b->r, e);
	}
	return 0;
}

/* Scores against truth; of attention's outputs only that they are numbers. */
static int
look(struct bench *b, struct err *e)
{
	size_t columns = b->value ? REF_HEAD : b->row->n_kv;
	uint32_t i, head, key;
	struct draw d;
	float got;

	draw_init(&d, b->t->seed + 1);
	for (i = 0; i < SPOTS; i++) {
		find_spot(b, &d, i, &head, &key);
		if (b->r->backend->read(b->r->session, b->d_sink,
			    (head * columns + key) * sizeof got, &got, sizeof got, e))
			return rig_note(b->r, e);
		b->row->checked++;
		b->row->wrong += b->value ? !isfinite(got) : !is_right(b, head, key, got);
	}
	if (b->row->wrong > 0) {
		b->row->outcome = OUTCOME_FAIL;
		snprintf(b->row->detail, sizeof b->row->detail,
			"%zu of %zu outputs that were looked at are wrong", b->row->wrong,
			b->row->checked);
	}
	return 0;
}

/* ---- rows ---- */

static void
skip(struct bench_row *row, const char *why)
{
	row->outcome = OUTCOME_SKIPPED;
	str_show(row->detail, sizeof row->detail, why, strlen(why));
}

/* What the device can not hold or would take too long for is skipped. */
static bool
is_too_much(struct bench *b, double seconds)
{
	double work = (double)b->keys_at_all * b->row->gqa, memory;
	char why[160];

	memory = (double)b->bulk_bytes + (double)b->sink_bytes;
	if (b->r->device.memory > 0 && memory > 0.8 * (double)b->r->device.memory) {
		snprintf(why, sizeof why, "needs %.1f GB, the device has %.1f GB",
			memory / 1e9, (double)b->r->device.memory / 1e9);
		skip(b->row, why);
		return true;
	}
	if (b->per_key * work > seconds) {
		snprintf(why, sizeof why, "one run would take about %.0f s",
			b->per_key * work);
		skip(b->row, why);
		return true;
	}
	return false;
}

static int
measure_row(struct bench *b, double seconds, struct err *e)
{
	struct backend_args a;

	if (take_memory(b, e))
		return rig_note(b->r, e);
	a = arguments(b);
	/* The plain one first: what is looked at afterwards is the kernel's output. */
	if (measure_copy(b, seconds / 4, e) || measure_plain(b, &a, seconds, e) ||
	    poison(b, e) ||
	    measure(b, b->item->kernel, b->item->variant, &a, seconds, &b->row->runs,
		    &b->row->seconds, &b->row->best, e) ||
	    look(b, e))
		return -1;
	b->per_key = b->row->seconds / ((double)b->keys_at_all * b->row->gqa);
	return 0;
}

static void
run_row(struct bench *b)
{
	double seconds = b->o->seconds > 0 ? b->o->seconds : SECONDS;
	struct bench_row *row = b->row;
	struct err e = {0};

	str_show(row->name, sizeof row->name, b->item->name, strlen(b->item->name));
	shape_up(b);
	if (verify_is_stopped(b->t)) {
		skip(row, "stopped");
		return;
	}
	if (b->r->lost)
		err_set(&e, ERR_DEVICE, "the device failed before this");
	else if (b->item->variant_name[0] == '\0')
		err_set(&e, ERR_UNSUPPORTED, "not on this device");
	else if (!is_too_much(b, seconds) && measure_row(b, seconds, &e) == 0)
		e.code = ERR_NONE;
	give_memory(b);
	if (e.code == ERR_NONE)
		return;
	/* The large shape is for devices that can. */
	if (row->large && (e.code == ERR_NOMEM || e.code == ERR_UNSUPPORTED)) {
		skip(row, e.msg);
		return;
	}
	row->outcome = OUTCOME_BLOCKED;
	row->why = e.code;
	str_show(row->detail, sizeof row->detail, e.msg, strlen(e.msg));
}

/* The shapes of an item, from small to large. */
static size_t
list_shapes(const struct kernel *k, const struct bench_options *o, struct bench_row *out)
{
	size_t bytes = (size_t)k->k_bytes * k->k_blocks + (size_t)k->v_bytes * k->v_blocks;
	uint32_t large = (uint32_t)round_up(BENCH_LARGE / (BENCH_KV_HEADS * bytes) + 1, 1024);
	size_t i, j, n = 0, shapes = o->keys ? 1 : str_count(all_keys) + 1;

	for (i = 0; i < shapes; i++)
		for (j = 0; j < (o->gqa ? 1 : str_count(all_groups)); j++)
			out[n++] = (struct bench_row){
				.gqa = o->gqa ? o->gqa : all_groups[j],
				.n_kv = o->keys			   ? o->keys
					: i < str_count(all_keys) ? all_keys[i]
								   : large,
				.large = !o->keys && i == str_count(all_keys)};
	return n;
}

static void
conclude(struct bench_report *r)
{
	struct verify_report sum = {0};
	size_t i, measured = 0;

	for (i = 0; i < r->count; i++) {
		measured += r->rows[i].seconds > 0;
		if (r->rows[i].outcome != OUTCOME_SKIPPED)
			verify_report_join(&sum, r->rows[i].outcome, r->rows[i].why);
	}
	if (measured == 0)
		verify_report_join(&sum, OUTCOME_BLOCKED, ERR_UNSUPPORTED);
	r->outcome = sum.outcome;
	r->why = sum.why;
}

int
bench_run(struct rig *r, const struct verify_task *t, const struct bench_options *o,
	struct bench_report *out, struct err *e)
{
	size_t most = (str_count(all_keys) + 1) * str_count(all_groups), i, j, n;
	struct bench b;

	memset(out, 0, sizeof *out);
	if ((out->rows = calloc(t->item_count * most + 1, sizeof *out->rows)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the rows");
	for (i = 0; i < t->item_count; i++) {
		if (t->items[i].source != t->items[i].kernel)
			continue;
		b = (struct bench){.r = r, .t = t, .item = &t->items[i], .o = o};
		n = list_shapes(b.item->kernel, o, out->rows + out->count);
		for (j = 0; j < n; j++) {
			verify_progress(t, b.item->name, i * n + j, t->item_count * n);
			b.row = &out->rows[out->count++];
			run_row(&b);
		}
	}
	verify_progress(t, "", 1, 1);
	conclude(out);
	return 0;
}

void
bench_fini(struct bench_report *r)
{
	free(r->rows);
	memset(r, 0, sizeof *r);
}

/* ---- what it says ---- */

static double
rate(const struct bench_row *p, double seconds)
{
	return seconds > 0 ? (double)p->moved / seconds / 1e9 : (double)NAN;
}

static cJSON *
row_json(const struct bench_row *p)
{
	cJSON *o = cJSON_CreateObject();
	double nan = (double)NAN, s = p->seconds > 0 ? p->seconds : nan;
	double copy = p->copy_seconds > 0 ? p->copy_seconds : nan;
	double plain = p->plain_seconds > 0 ? p->plain_seconds : nan;

	if (json_add_str(o, "name", p->name) && json_add_int(o, "nKv", p->n_kv) &&
	    json_add_int(o, "kvHeads", BENCH_KV_HEADS) && json_add_int(o, "gqa", p->gqa) &&
	    json_add_int(o, "movedBytes", (int64_t)p->moved) &&
	    json_add_bool(o, "large", p->large) &&
	    json_add_bool(o, "mayBeCached", p->cached) &&
	    json_add_int(o, "runs", p->runs) && json_add_num(o, "medianSeconds", s) &&
	    json_add_num(o, "fastestSeconds", p->best > 0 ? p->best : nan) &&
	    json_add_num(o, "gbPerSecond", rate(p, p->seconds)) &&
	    json_add_num(o, "copyGbPerSecond", rate(p, p->copy_seconds)) &&
	    json_add_num(o, "fractionOfCopy", copy / s) &&
	    json_add_num(o, "timeOverCopy", s / copy) &&
	    json_add_str(o, "plain", p->plain[0] ? p->plain : NULL) &&
	    json_add_num(o, "plainSeconds", plain) &&
	    json_add_num(o, "plainOverThis", plain / s) &&
	    json_add_int(o, "checked", (int64_t)p->checked) &&
	    json_add_int(o, "wrong", (int64_t)p->wrong) &&
	    json_add_str(o, "outcome", outcome_name(p->outcome)) &&
	    json_add_str(o, "detail", p->detail))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *
bench_json(const struct bench_report *r)
{
	cJSON *o = cJSON_CreateObject(), *a = NULL;
	size_t i;
	bool ok;

	ok = json_add_str(o, "outcome", outcome_name(r->outcome)) &&
	     (a = json_add_array(o, "rows")) != NULL;
	for (i = 0; ok && i < r->count; i++)
		ok = cJSON_AddItemToArray(a, row_json(&r->rows[i]));
	if (ok)
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void
print_row(FILE *out, const struct bench_row *p, bool colour)
{
	fprintf(out, "%-28s %8u %3u ", p->name, p->n_kv, p->gqa);
	if (p->seconds > 0) {
		fprintf(out, "%10.1f %8.1f %8.1f %6.1f%% %6.2f", p->seconds * 1e6,
			rate(p, p->seconds), rate(p, p->copy_seconds),
			100 * p->copy_seconds / p->seconds, p->seconds / p->copy_seconds);
		if (p->plain_seconds > 0)
			fprintf(out, " %7.2fx", p->plain_seconds / p->seconds);
		else
			fprintf(out, " %8s", "-");
	} else
		fprintf(out, "%10s %8s %8s %7s %6s %8s", "-", "-", "-", "-", "-", "-");
	fprintf(out, "  %s%s", verify_mark(p->outcome, colour),
		p->seconds > 0 && p->cached ? ", fits a cache" : "");
	if (p->runs > 0 && p->runs < BENCH_RUNS)
		fprintf(out, ", %u runs only", p->runs);
	fprintf(out, "\n");
	if (p->detail[0])
		fprintf(out, "    %s\n", p->detail);
}

void
bench_print(FILE *out, const struct bench_report *r, bool colour)
{
	size_t i;

	fprintf(out, "%-28s %8s %3s %10s %8s %8s %7s %6s %8s\n", "benchmark", "keys", "gqa",
		"us", "GB/s", "copy", "of copy", "time/", "plain/");
	fprintf(out, "%-28s %8s %3s %10s %8s %8s %7s %6s %8s\n", "  8 kv heads, medians", "",
		"", "", "", "GB/s", "", "copy", "this");
	for (i = 0; i < r->count; i++)
		print_row(out, &r->rows[i], colour);
}
