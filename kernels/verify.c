#include "kernels/verify.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/plat.h"
#include "common/str.h"

/* A control must move an output by this many tolerances, so that rounding can not
 * decide whether it is caught. */
#define CONTROL_MARGIN 2.0
#define CONTROL_BLOCKS 8 /* searched for such a bit */

/* Sums over all cases of a check. */
struct tally {
	double max_abs, max_rel, square_diff, square_expected;
};

static void
compare(struct verify_check *c, struct tally *t, const float *got,
	const float *expected, size_t n)
{
	double d, size;
	size_t i;

	for (i = 0; i < n; i++) {
		d = fabs((double)got[i] - (double)expected[i]);
		size = fabs((double)expected[i]);
		c->elements++;
		if (!(d < c->tolerance))
			c->over++;
		if (!isfinite(got[i])) {
			c->non_finite++;
			continue;
		}
		t->max_abs = fmax(t->max_abs, d);
		t->max_rel = fmax(t->max_rel, d / fmax(size, VERIFY_REL_FLOOR));
		t->square_diff += d * d;
		t->square_expected += size * size;
	}
}

static void
conclude_check(struct verify_check *c, enum outcome outcome, const char *why)
{
	c->outcome = outcome;
	str_show(c->detail, sizeof c->detail, why, strlen(why));
}


static void
block_check(struct verify_check *c, const struct err *e)
{
	char why[512];

	snprintf(why, sizeof why, e->hint[0] ? "%s (%s)" : "%s%s", e->msg, e->hint);
	conclude_check(c, OUTCOME_BLOCKED, why);
	c->why = e->code;
}

/* 0, or -1 when the case could not be run: the check is blocked then. */
static int
run_case(struct rig *r, const struct kernel *k, size_t variant,
	const struct fixture_case *fc, struct verify_check *c, struct tally *t)
{
	float *out = calloc(fc->expected_count, sizeof *out);
	struct rig_faults f = {0};
	struct err e = {0};
	int rc = -1;

	if (out == NULL)
		err_set(&e, ERR_NOMEM, "no memory for the outputs");
	if (out == NULL || rig_run(r, k, variant, &fc->in, out, &f, &e)) {
		block_check(c, &e);
		goto out;
	}
	if (c->guard_intact && (f.guard || f.input)) {
		c->guard_intact = false;
		snprintf(c->detail, sizeof c->detail, "the kernel wrote %s (%s)",
			f.guard ? "outside of its output" : "into an input", f.where);
	}
	compare(c, t, out, fc->expected, fc->expected_count);
	rc = 0;
out:
	free(out);
	return rc;
}

static void
judge(struct verify_check *c)
{
	char why[160];

	if (!c->guard_intact)
		c->outcome = OUTCOME_FAIL; /* the detail is there */
	else if (c->elements == 0)
		conclude_check(c, OUTCOME_FAIL, "no output was compared");
	else if (c->over == 0)
		conclude_check(c, OUTCOME_PASS, "");
	else {
		snprintf(why, sizeof why,
			 "%zu of %zu outputs do not differ by less than %g, %zu are not "
			 "finite",
			 c->over, c->elements, c->tolerance, c->non_finite);
		conclude_check(c, OUTCOME_FAIL, why);
	}
}

static int
need_variant(const struct rig *r, const struct kernel *k, size_t variant, struct err *e)
{
	const char *names[BACKEND_VARIANTS];

	if (r->lost || variant < rig_variants(r, k, names))
		return 0; /* a lost rig says so itself */
	err_set(e, ERR_UNSUPPORTED, "%s has no %s for %s", r->backend->name, k->name,
		r->device.arch);
	return err_hint(e, "--list shows the other devices");
}

static void
start_check(struct verify_check *c, const struct kernel *k, double tolerance)
{
	memset(c, 0, sizeof *c);
	c->kernel = k;
	c->tolerance = tolerance;
	c->guard_intact = true;
	str_show(c->name, sizeof c->name, k->name, strlen(k->name));
	str_show(c->fixture, sizeof c->fixture, k->file, strlen(k->file));
}

/* Over a check that start_check made. */
static void
run_check(struct rig *r, const struct kernel *k, size_t variant, const struct fixture *f,
	struct verify_check *out)
{
	struct tally t = {0};
	struct err e = {0};
	size_t i;

	memcpy(out->sha256, f->sha256, sizeof out->sha256);
	if (need_variant(r, k, variant, &e)) {
		block_check(out, &e);
		return;
	}
	for (i = 0; i < f->case_count; i++)
		if (kernel_takes(k, &f->cases[i].in) &&
		    run_case(r, k, variant, &f->cases[i], out, &t))
			return;
	out->max_abs = out->non_finite ? (double)NAN : t.max_abs;
	out->max_rel = out->non_finite ? (double)NAN : t.max_rel;
	out->nmse = out->non_finite	 ? (double)NAN
		    : t.square_diff == 0 ? 0
					 : t.square_diff / t.square_expected;
	judge(out);
}

void
verify_fixture(struct rig *r, const struct kernel *k, size_t variant,
	const struct fixture *f, double tolerance, struct verify_check *out)
{
	start_check(out, k, tolerance);
	run_check(r, k, variant, f, out);
}

/* ---- fixtures ---- */

/* A fixture file: of a row, or of a path that was given. */
struct source {
	const struct kernel *row;
	const char *dir, *path; /* path, not NULL: read this */
	bool transform;         /* of the query, for preht over a polar file */
};

static void
transform_queries(struct fixture *f)
{
	size_t i, h;

	for (i = 0; i < f->case_count; i++)
		for (h = 0; h < f->cases[i].in.n_heads; h++)
			ref_hadamard(f->cases[i].q + h * REF_HEAD, REF_HEAD);
}

static int
load_path(const char *path, struct fixture **out, char sha256[DIGEST_HEX], struct err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = -1;

	if (plat_read_file(path, FIXTURE_MAX_BYTES, &text, &len, e))
		return -1;
	digest_bytes(text, len, sha256);
	if ((rc = fixture_parse(text, len, out, e)) != 0) {
		if (e->hint[0] == '\0')
			err_hint(e, "fixtures/kernels has one of each kind, and make-fixtures "
				    "writes them");
		err_wrap(e, "%s", path);
	}
	free(text);
	return rc;
}

static int
load_source(const struct source *s, struct fixture **out, char sha256[DIGEST_HEX],
	struct err *e)
{
	char ignored[DIGEST_HEX];
	int rc = s->path ? load_path(s->path, out, sha256 ? sha256 : ignored, e)
			 : fixture_load(s->row, s->dir, out, sha256, e);

	if (rc == 0 && s->transform)
		transform_queries(*out);
	return rc;
}

static struct source
item_source(const struct verify_item *i, const struct verify_options *o)
{
	return (struct source){
		.row = i->source, .dir = o->dir, .transform = i->source != i->kernel};
}

/* A file that can not be used is a mistake of whoever gave it, also when it is only
 * unreadable. */
static void
block_file(struct verify_check *c, struct err *e)
{
	if (e->code != ERR_NOMEM && err_exit(e->code) != EXIT_USAGE)
		e->code = ERR_PARSE;
	block_check(c, e);
}

/* ---- controls ---- */

/* The case of a fixture that errors are planted in: the first that the row takes. */
static struct fixture_case *
control_case(const struct kernel *k, struct fixture *f)
{
	size_t i;

	for (i = 0; i < f->case_count; i++)
		if (kernel_takes(k, &f->cases[i].in))
			return &f->cases[i];
	return NULL;
}

/* Largest distance of n outputs of the row from before; NULL before: from nothing, for
 * the first call.  Leaves the outputs in now. */
static double
moved(const struct kernel *k, const struct fixture_case *c, const float *before,
      float *now)
{
	struct err e = {0};
	double far = 0;
	size_t i;

	if (k->run(&c->in, now, &e))
		return 0;
	for (i = 0; before != NULL && i < c->expected_count; i++)
		far = fmax(far, fabs((double)now[i] - (double)before[i]));
	return far;
}

/* Flips code bits of the first keys one after the other until one moves the row's own
 * outputs far enough, and leaves that one flipped.  False: none does, so the tolerance
 * hides any error. */
static bool
flip_code_bit(const struct kernel *k, struct fixture_case *c, double tolerance,
	      struct verify_control *out)
{
	size_t bits = (size_t)k->code_bytes * 8, n, at;
	float *before = calloc(c->expected_count, sizeof *before);
	float *now = calloc(c->expected_count, sizeof *now);
	struct err ignored = {0};
	bool found = false;
	double far = 0;

	if (before == NULL || now == NULL)
		goto out;
	moved(k, c, NULL, before);
	for (n = 0; n < CONTROL_BLOCKS * bits && !found; n++) {
		at = n / bits * k->k_bytes + k->code_at + n % bits / 8;
		if (at >= c->k_bytes)
			break;
		c->k[at] ^= (uint8_t)(1u << n % 8);
		far = moved(k, c, before, now);
		if (!(found = far > CONTROL_MARGIN * tolerance))
			c->k[at] ^= (uint8_t)(1u << n % 8);
		else if (str_fmt(out->detail, sizeof out->detail, &ignored,
				 "bit %zu of byte %zu of k_blocks moves an output "
				 "by %.3g",
				 n % 8, at, far))
			out->detail[0] = '\0';
	}
out:
	free(before);
	free(now);
	return found;
}

static void
explain(struct verify_control *out, const char *why)
{
	str_show(out->detail, sizeof out->detail, why, strlen(why));
}

static void
block_control(struct verify_control *out, const struct verify_check *c)
{
	out->why = c->why;
	explain(out, c->detail);
}

static void
plant_bit(struct rig *r, const struct verify_item *i, struct fixture *f, double tolerance,
	  struct verify_control *out)
{
	struct fixture_case *c = control_case(i->kernel, f);
	struct verify_check check;

	if (c == NULL || !flip_code_bit(i->kernel, c, tolerance, out)) {
		explain(out,
			"no code bit moves an output by more than the tolerance, which "
			"hides every error");
		return;
	}
	verify_fixture(r, i->kernel, i->variant, f, tolerance, &check);
	out->caught = check.outcome == OUTCOME_FAIL && check.over > 0;
	if (check.outcome == OUTCOME_BLOCKED)
		block_control(out, &check);
}

/* A NaN norm must come out as NaN outputs, and these must fail. */
static void
plant_nan(struct rig *r, const struct verify_item *i, struct fixture *f, double tolerance,
	  struct verify_control *out)
{
	const struct kernel *k = i->kernel;
	struct fixture_case *c = control_case(k, f);
	struct err ignored = {0};
	struct verify_check check;
	size_t b;

	if (c == NULL)
		return;
	for (b = 0; b < c->k_bytes; b += k->k_bytes) {
		c->k[b + k->norm_at] = (uint8_t)(k->norm_nan & 0xff);
		c->k[b + k->norm_at + 1] = (uint8_t)(k->norm_nan >> 8);
		if (b / k->k_bytes + 1 == k->k_blocks)
			break;
	}
	verify_fixture(r, k, i->variant, f, tolerance, &check);
	out->caught = check.outcome == OUTCOME_FAIL && check.non_finite > 0;
	if (check.outcome == OUTCOME_BLOCKED)
		block_control(out, &check);
	else if (str_fmt(out->detail, sizeof out->detail, &ignored,
			 "a NaN norm in key 0 made %zu of %zu outputs not finite",
			 check.non_finite, check.elements))
		out->detail[0] = '\0';
}

static const struct {
	const char *name;
	void (*plant)(struct rig *, const struct verify_item *, struct fixture *, double,
		struct verify_control *);
} plants[VERIFY_CONTROLS] = {
	{"flipped-code-bit", plant_bit},
	{"nan-output", plant_nan},
};

/* i NULL: nothing could be run. */
static int
plant_all(struct rig *r, const struct verify_item *i, const struct source *s,
	double tolerance, struct verify_report *out, struct err *e)
{
	struct verify_control *c;
	const char *file;
	struct fixture *f;
	struct err why;
	size_t n;

	c = realloc(out->controls, (out->control_count + VERIFY_CONTROLS) * sizeof *c);
	if (c == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the controls");
	out->controls = c;
	for (n = 0; n < VERIFY_CONTROLS; n++) {
		c = &out->controls[out->control_count++];
		*c = (struct verify_control){.name = plants[n].name};
		f = NULL;
		memset(&why, 0, sizeof why);
		/* Read anew: each error gets a copy that no check sees. */
		if (i == NULL || load_source(s, &f, NULL, &why)) {
			explain(c, "no fixture could be read");
			continue;
		}
		file = s->path ? s->path : s->row->file;
		str_show(c->fixture, sizeof c->fixture, file, strlen(file));
		str_show(c->kernel, sizeof c->kernel, i->name, strlen(i->name));
		plants[n].plant(r, i, f, tolerance, c);
		fixture_free(f);
	}
	return 0;
}

/* ---- runs ---- */

/* One run and what it is about. */
struct work {
	struct rig *r;
	const struct verify_options *o;
	struct verify_report *out;
	struct verify_item *items;
	size_t item_count;
	struct verify_item first; /* that ran: the controls are planted there */
	struct source first_source;
	bool any;
	struct err *e;
};

static struct verify_check *
new_check(struct work *w)
{
	struct verify_report *r = w->out;
	struct verify_check *c =
		realloc(r->checks, (r->check_count + 1) * sizeof *c);

	if (c == NULL) {
		err_set(w->e, ERR_NOMEM, "no memory for a check");
		return NULL;
	}
	r->checks = c;
	c += r->check_count++;
	memset(c, 0, sizeof *c);
	return c;
}

static double
tolerance_of(const struct verify_options *o, const struct kernel *k)
{
	return o->tolerance > 0 ? o->tolerance : k->tolerance;
}

/* Runs an item over f; NULL: over what its source has. */
static int
check_item(struct work *w, const struct verify_item *i, const struct source *s)
{
	struct verify_check *c = new_check(w);
	struct fixture *f = NULL;
	struct err e = {0};

	if (c == NULL)
		return -1;
	start_check(c, i->kernel, tolerance_of(w->o, i->kernel));
	str_show(c->name, sizeof c->name, i->name, strlen(i->name));
	str_show(c->variant, sizeof c->variant, i->variant_name, strlen(i->variant_name));
	str_show(c->fixture, sizeof c->fixture, s->path ? s->path : s->row->file,
		strlen(s->path ? s->path : s->row->file));
	if (load_source(s, &f, c->sha256, &e))
		block_file(c, &e);
	else
		run_check(w->r, i->kernel, i->variant, f, c);
	fixture_free(f);
	if (!w->any && c->outcome != OUTCOME_BLOCKED) {
		w->any = true;
		w->first = *i;
		w->first_source = *s;
	}
	return 0;
}

static bool
has_case(const struct kernel *k, const struct fixture *f)
{
	size_t i;

	for (i = 0; i < f->case_count; i++)
		if (kernel_takes(k, &f->cases[i].in))
			return true;
	return false;
}

/* A file that was given: all items that read its kind of file and have a case in it. */
static int
check_file(struct work *w, const char *path)
{
	struct source s = {.path = path};
	const struct verify_item *i;
	struct verify_check *c;
	struct fixture *f = NULL;
	char sha256[DIGEST_HEX] = "";
	struct err e = {0};
	size_t n, used = 0;
	int rc = -1;

	if (load_path(path, &f, sha256, &e) == 0) {
		for (n = 0; n < w->item_count; n++) {
			i = &w->items[n];
			s.transform = i->source != i->kernel;
			if (!str_eq(f->of->kernel, i->source->kernel) ||
			    !has_case(i->source, f))
				continue;
			used++;
			if (check_item(w, i, &s))
				goto out;
		}
		if (used > 0) {
			rc = 0;
			goto out;
		}
		err_set(&e, ERR_USAGE, "%s: --only leaves nothing to check with it", path);
	}
	if ((c = new_check(w)) == NULL)
		goto out;
	str_show(c->name, sizeof c->name, path, strlen(path));
	str_show(c->fixture, sizeof c->fixture, path, strlen(path));
	memcpy(c->sha256, sha256, sizeof sha256);
	c->guard_intact = true;
	c->tolerance = w->o->tolerance > 0 ? w->o->tolerance : KERNEL_TOLERANCE;
	block_file(c, &e);
	rc = 0;
out:
	fixture_free(f);
	return rc;
}

/* Errors in each item, over its own fixture. */
static int
plant_items(struct work *w)
{
	struct source s;
	size_t n;

	for (n = 0; n < w->item_count; n++) {
		s = item_source(&w->items[n], w->o);
		if (plant_all(w->r, &w->items[n], &s,
			    tolerance_of(w->o, w->items[n].kernel), w->out, w->e))
			return -1;
	}
	w->any = w->item_count > 0;
	if (w->any)
		w->out->tolerance = tolerance_of(w->o, w->items[0].kernel);
	return 0;
}

static int
check_all(struct work *w)
{
	struct source s;
	size_t n;

	if (w->o->controls_only)
		return plant_items(w);
	for (n = 0; n < w->o->file_count; n++)
		if (check_file(w, w->o->files[n]))
			return -1;
	for (n = 0; n < w->item_count && w->o->file_count == 0; n++) {
		s = item_source(&w->items[n], w->o);
		if (check_item(w, &w->items[n], &s))
			return -1;
	}
	w->out->tolerance = w->out->checks[0].tolerance;
	return plant_all(w->r, w->any ? &w->first : NULL, &w->first_source,
		w->any ? tolerance_of(w->o, w->first.kernel) : 0, w->out, w->e);
}

static void
conclude(struct verify_report *r, bool planted)
{
	size_t i;

	for (i = 0; i < r->check_count; i++) {
		r->passed += r->checks[i].outcome == OUTCOME_PASS;
		r->failed += r->checks[i].outcome == OUTCOME_FAIL;
		r->blocked += r->checks[i].outcome == OUTCOME_BLOCKED;
		verify_report_join(r, r->checks[i].outcome, r->checks[i].why);
	}
	for (i = 0; i < r->control_count && planted; i++)
		if (!r->controls[i].caught)
			verify_report_join(r,
				r->controls[i].why ? OUTCOME_BLOCKED : OUTCOME_FAIL,
				r->controls[i].why);
}

int
verify_run(struct rig *r, const struct verify_options *o, struct verify_report *out,
	struct err *e)
{
	struct work w = {.r = r, .o = o, .out = out, .e = e};
	int rc = -1;

	memset(out, 0, sizeof *out);
	out->device = r->device;
	/* The name that reports have for it. */
	out->backend = str_eq(r->device.arch, "scalar") ? "cpu-ref" : r->backend->name;
	if ((w.items = calloc(VERIFY_ITEMS, sizeof *w.items)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the list of checks");
		goto out;
	}
	if (verify_items(r, o->only, o->only_count, w.items, &w.item_count, e) ||
	    check_all(&w))
		goto out;
	conclude(out, w.any);
	if (!r->lost)
		out->code_count = r->backend->code(r->session, out->code, RIG_CODE);
	rc = 0;
out:
	free(w.items);
	if (rc)
		verify_report_fini(out);
	return rc;
}

void
verify_report_fini(struct verify_report *r)
{
	free(r->checks);
	free(r->controls);
	memset(r, 0, sizeof *r);
}
