#include "kernels/verify.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"

/* A control must move an output by this many tolerances, so that rounding can not
 * decide whether it is caught. */
#define CONTROL_MARGIN 2.0
#define CONTROL_BLOCKS 8 /* searched for such a bit */

/* An output buffer between two guards: bytes that differ from place to place, so that
 * no fill restores them. */
struct guarded {
	uint8_t *bytes;
	float *out;
	size_t count;
};

static uint8_t
guard_byte(size_t i)
{
	return (uint8_t)(0xa5 ^ i * 7);
}

static int
guarded_init(struct guarded *g, size_t count)
{
	size_t i, size = count * sizeof *g->out;

	if ((g->bytes = malloc(size + 2 * VERIFY_GUARD)) == NULL)
		return -1;
	/* All ones is a NaN: an output that nobody writes is not a number. */
	memset(g->bytes, 0xff, size + 2 * VERIFY_GUARD);
	for (i = 0; i < VERIFY_GUARD; i++) {
		g->bytes[i] = guard_byte(i);
		g->bytes[VERIFY_GUARD + size + i] = guard_byte(i);
	}
	/* malloc's alignment is kept: VERIFY_GUARD is a multiple of it. */
	g->out = (float *)(void *)(g->bytes + VERIFY_GUARD);
	g->count = count;
	return 0;
}

static bool
guarded_is_intact(const struct guarded *g)
{
	size_t i, end = VERIFY_GUARD + g->count * sizeof *g->out;

	for (i = 0; i < VERIFY_GUARD; i++)
		if (g->bytes[i] != guard_byte(i) || g->bytes[end + i] != guard_byte(i))
			return false;
	return true;
}

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

/* 0, or -1 when the case could not be run: the check is blocked then. */
static int
run_case(const struct fixture_case *fc, ref_run run, struct verify_check *c,
	 struct tally *t)
{
	struct guarded g = {0};
	struct err e = {0};
	int rc = -1;

	if (guarded_init(&g, fc->expected_count)) {
		conclude_check(c, OUTCOME_BLOCKED, "no memory for the outputs");
		return -1;
	}
	if (run(&fc->in, g.out, &e)) {
		conclude_check(c, OUTCOME_BLOCKED, e.msg);
		goto out;
	}
	c->guard_intact = c->guard_intact && guarded_is_intact(&g);
	compare(c, t, g.out, fc->expected, g.count);
	rc = 0;
out:
	free(g.bytes);
	return rc;
}

static void
judge(struct verify_check *c)
{
	char why[160];

	if (!c->guard_intact)
		conclude_check(c, OUTCOME_FAIL,
			       "the kernel wrote outside of its output buffer");
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

void
verify_fixture(const struct kernel *k, const struct fixture *f, ref_run run,
	       double tolerance, struct verify_check *out)
{
	struct tally t = {0};
	size_t i;

	memset(out, 0, sizeof *out);
	out->kernel = k;
	memcpy(out->sha256, f->sha256, sizeof out->sha256);
	out->tolerance = tolerance;
	out->guard_intact = true;
	for (i = 0; i < f->case_count; i++)
		if (kernel_takes(k, &f->cases[i].in) &&
		    run_case(&f->cases[i], run ? run : k->run, out, &t))
			return;
	out->max_abs = out->non_finite ? (double)NAN : t.max_abs;
	out->max_rel = out->non_finite ? (double)NAN : t.max_rel;
	out->nmse = out->non_finite	 ? (double)NAN
		    : t.square_diff == 0 ? 0
					 : t.square_diff / t.square_expected;
	judge(out);
}

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
plant_bit(const struct kernel *k, struct fixture *f, ref_run run, double tolerance,
	  struct verify_control *out)
{
	struct fixture_case *c = control_case(k, f);
	struct verify_check check;

	if (c == NULL || !flip_code_bit(k, c, tolerance, out)) {
		explain(out,
			"no code bit moves an output by more than the tolerance, which "
			"hides every error");
		return;
	}
	verify_fixture(k, f, run, tolerance, &check);
	out->caught = check.outcome == OUTCOME_FAIL && check.over > 0;
}

/* A NaN norm must come out as NaN outputs, and these must fail. */
static void
plant_nan(const struct kernel *k, struct fixture *f, ref_run run, double tolerance,
	  struct verify_control *out)
{
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
	verify_fixture(k, f, run, tolerance, &check);
	out->caught = check.outcome == OUTCOME_FAIL && check.non_finite > 0;
	if (str_fmt(out->detail, sizeof out->detail, &ignored,
		    "a NaN norm in key 0 made %zu of %zu outputs not finite",
		    check.non_finite, check.elements))
		out->detail[0] = '\0';
}

void
verify_controls(const struct kernel *k, const char *dir, ref_run run, double tolerance,
		struct verify_control out[VERIFY_CONTROLS])
{
	static const struct {
		const char *name;
		void (*plant)(const struct kernel *, struct fixture *, ref_run, double,
			      struct verify_control *);
	} rows[VERIFY_CONTROLS] = {
		{"flipped-code-bit", plant_bit},
		{"nan-output", plant_nan},
	};
	struct fixture *f;
	struct err e;
	size_t i;

	memset(out, 0, VERIFY_CONTROLS * sizeof *out);
	for (i = 0; i < VERIFY_CONTROLS; i++) {
		out[i].name = rows[i].name;
		f = NULL;
		memset(&e, 0, sizeof e);
		/* Read anew: each error gets a copy that no check sees. */
		if (k == NULL || fixture_load(k, dir, &f, NULL, &e)) {
			explain(&out[i], "no fixture could be read");
			continue;
		}
		out[i].fixture = k->file;
		rows[i].plant(k, f, run, tolerance, &out[i]);
		fixture_free(f);
	}
}

static void
check_row(const struct kernel *k, const struct verify_options *o,
	  struct verify_check *out)
{
	double tolerance = o->tolerance > 0 ? o->tolerance : k->tolerance;
	struct fixture *f = NULL;
	struct err e = {0};
	char why[512];

	memset(out, 0, sizeof *out);
	out->kernel = k;
	out->tolerance = tolerance;
	if (fixture_load(k, o->dir, &f, out->sha256, &e)) {
		snprintf(why, sizeof why, e.hint[0] ? "%s (%s)" : "%s%s", e.msg,
			 e.hint);
		conclude_check(out, OUTCOME_BLOCKED, why);
		return;
	}
	verify_fixture(k, f, o->run, tolerance, out);
	fixture_free(f);
}

static void
conclude(struct verify_report *r, bool planted)
{
	size_t i;

	for (i = 0; i < r->check_count; i++)
		switch (r->checks[i].outcome) {
		case OUTCOME_PASS:
			r->passed++;
			break;
		case OUTCOME_FAIL:
			r->failed++;
			break;
		default:
			r->blocked++;
		}
	r->outcome = r->failed	  ? OUTCOME_FAIL
		     : r->blocked ? OUTCOME_BLOCKED
				  : OUTCOME_PASS;
	for (i = 0; i < VERIFY_CONTROLS && planted; i++)
		if (!r->controls[i].caught)
			r->outcome = OUTCOME_FAIL;
}

void
verify_run(const struct verify_options *o, struct verify_report *out)
{
	const struct kernel *k, *first = NULL;
	size_t i, n = o->only_count ? o->only_count : KERNEL_COUNT;

	memset(out, 0, sizeof *out);
	for (i = 0; i < n; i++) {
		k = o->only_count ? o->only[i] : &kernels[i];
		check_row(k, o, &out->checks[out->check_count++]);
		if (first == NULL && out->checks[i].outcome != OUTCOME_BLOCKED)
			first = k;
	}
	out->tolerance = out->checks[0].tolerance;
	verify_controls(first, o->dir, o->run, out->tolerance, out->controls);
	conclude(out, first != NULL);
}

int
verify_exit(const struct verify_report *r)
{
	switch (r->outcome) {
	case OUTCOME_PASS:
		return EXIT_PASS;
	case OUTCOME_FAIL:
		return EXIT_FAIL;
	default:
		return EXIT_USAGE;
	}
}

static cJSON *
check_json(const struct verify_check *c)
{
	cJSON *o = cJSON_CreateObject();
	bool run = c->outcome != OUTCOME_BLOCKED;

	if (json_add_str(o, "name", c->kernel->name) &&
	    json_add_str(o, "kernel", c->kernel->kernel) &&
	    json_add_str(o, "fixture", c->kernel->file) &&
	    json_add_str(o, "sha256", c->sha256[0] ? c->sha256 : NULL) &&
	    json_add_int(o, "elements", (int64_t)c->elements) &&
	    json_add_num(o, "maxAbsDiff", run ? c->max_abs : (double)NAN) &&
	    json_add_num(o, "maxRelDiff", run ? c->max_rel : (double)NAN) &&
	    json_add_num(o, "nmse", run ? c->nmse : (double)NAN) &&
	    json_add_int(o, "nonFinite", (int64_t)c->non_finite) &&
	    json_add_bool(o, "guardIntact", c->guard_intact) &&
	    json_add_num(o, "tolerance", c->tolerance) &&
	    json_add_str(o, "outcome", outcome_name(c->outcome)) &&
	    json_add_str(o, "detail", c->detail))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static bool
add_checks(cJSON *o, const struct verify_report *r)
{
	cJSON *a = json_add_array(o, "checks"), *c;
	size_t i;

	for (i = 0; a != NULL && i < r->check_count; i++)
		if ((c = check_json(&r->checks[i])) == NULL ||
		    !cJSON_AddItemToArray(a, c))
			return false;
	return a != NULL;
}

static bool
add_controls(cJSON *o, const struct verify_report *r)
{
	cJSON *a = json_add_array(o, "controls"), *c;
	size_t i;

	for (i = 0; a != NULL && i < VERIFY_CONTROLS; i++) {
		if ((c = cJSON_CreateObject()) == NULL || !cJSON_AddItemToArray(a, c) ||
		    !json_add_str(c, "name", r->controls[i].name) ||
		    !json_add_str(c, "fixture", r->controls[i].fixture) ||
		    !json_add_bool(c, "caught", r->controls[i].caught) ||
		    !json_add_str(c, "detail", r->controls[i].detail))
			return false;
	}
	return a != NULL;
}

cJSON *
verify_json(const struct verify_report *r)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_int(o, "schemaVersion", 1) &&
	    json_add_str(o, "tool", "cpu-verify") &&
	    json_add_str(o, "backend", "cpu-ref") &&
	    json_add_num(o, "tolerance", r->tolerance) && add_checks(o, r) &&
	    add_controls(o, r) && json_add_int(o, "passed", (int64_t)r->passed) &&
	    json_add_int(o, "failed", (int64_t)r->failed) &&
	    json_add_int(o, "blocked", (int64_t)r->blocked) &&
	    json_add_str(o, "outcome", outcome_name(r->outcome)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

void
verify_print(FILE *out, const struct verify_report *r)
{
	const struct verify_check *c;
	const struct verify_control *n;
	size_t i;

	fprintf(out, "%-28s %8s %9s %9s %9s %7s %9s  %s\n", "kernel", "elements",
		"max abs", "max rel", "NMSE", "NaN/Inf", "tolerance", "verdict");
	for (i = 0; i < r->check_count; i++) {
		c = &r->checks[i];
		if (c->outcome == OUTCOME_BLOCKED)
			fprintf(out, "%-28s %8s %9s %9s %9s %7s %9.3g  blocked\n",
				c->kernel->name, "-", "-", "-", "-", "-", c->tolerance);
		else
			fprintf(out, "%-28s %8zu %9.2e %9.2e %9.2e %7zu %9.3g  %s\n",
				c->kernel->name, c->elements, c->max_abs, c->max_rel,
				c->nmse, c->non_finite, c->tolerance,
				outcome_name(c->outcome));
		if (c->detail[0])
			fprintf(out, "    %s\n", c->detail);
	}
	for (i = 0; i < VERIFY_CONTROLS; i++) {
		n = &r->controls[i];
		fprintf(out, "control %-20s %s (%s)\n", n->name,
			n->caught    ? "caught"
			: n->fixture ? "MISSED"
				     : "not planted",
			n->detail);
	}
	fprintf(out, "%zu passed, %zu failed, %zu blocked: %s\n", r->passed, r->failed,
		r->blocked, outcome_name(r->outcome));
}
