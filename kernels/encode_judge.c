#include "kernels/encode_judge.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "kernels/table.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Of REF_HEAD terms summed in f32, in any order: see encode_check.h. */
#define UNIT 0x1p-24
#define GAMMA (REF_HEAD * UNIT / (1 - REF_HEAD * UNIT))
/* What products lose when they are subnormal. */
#define LOST (REF_HEAD * 0x1p-149)

void
encode_judge_find(struct encode_row *row, const char *fmt, ...)
{
	va_list ap;

	if (row->outcome != OUTCOME_FAIL) {
		va_start(ap, fmt);
		(void)vsnprintf(row->detail, sizeof row->detail, fmt, ap);
		va_end(ap);
	}
	row->outcome = OUTCOME_FAIL;
}

/* Counts something that differs; gives whether it may. */
static bool
tally(struct encode_tally *t, bool near)
{
	t->near += near;
	t->wrong += !near;
	return near;
}

/* The spacing of floats at v. */
static double
ulp_at(double v)
{
	int e = ilogb(v);

	return ldexp(1.0, (e < -126 ? -126 : e) - 23);
}

/* How far v is from the farthest threshold between two codes, in ulp. */
static double
ulps_off(const struct encode_form *f, double v, unsigned a, unsigned b)
{
	unsigned i, end = a < b ? b : a;
	double worst = 0, t, off;

	for (i = a < b ? a : b; i < end; i++) {
		t = encode_form_threshold(f, i);
		off = fabs(v - t) / ulp_at(t != 0.0 ? t : (double)f->level[i + 1]);
		if (!(off <= worst))
			worst = off;
	}
	return worst;
}

/* Whether v is on a threshold beside its code. */
static bool
is_tie(const struct encode_form *f, double v, unsigned code)
{
	return (code > 0 && v == encode_form_threshold(f, code - 1)) ||
	       (code + 1 < f->levels && v == encode_form_threshold(f, code));
}

static void
judge_levels(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	const struct encode_form *f = j->form;
	float v[REF_HEAD];
	unsigned i, a, b;
	double off;

	f->values(j->x, v);
	for (i = 0; i < REF_HEAD; i++) {
		a = f->code(want, i);
		b = f->code(got, i);
		j->row->codes.all++;
		j->row->ties += is_tie(f, (double)v[i], a);
		if (a == b)
			continue;
		off = ulps_off(f, (double)v[i], a, b);
		if (!tally(&j->row->codes, !j->kind->exact && off <= ENCODE_ULPS))
			encode_judge_find(j->row,
					  "key %zu (%s), element %u: code %u, not %u, "
					  "for %.9g, %.3g ulp from a threshold",
					  j->at, j->kind->name, i, b, a, (double)v[i],
					  off);
		else if (off > j->row->worst_ulps)
			j->row->worst_ulps = off;
	}
}

static void
judge_signs(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	unsigned i, n;
	double sum, all, term;

	for (n = 0; n < REF_PROJ; n++) {
		j->row->codes.all++;
		if (j->form->code(want, n) == j->form->code(got, n))
			continue;
		sum = all = 0;
		for (i = 0; i < REF_HEAD; i++) {
			term = (double)j->x[i] * (double)j->pi[i * REF_PROJ + n];
			sum += term;
			all += fabs(term);
		}
		if (!tally(&j->row->codes,
			   !j->kind->exact && fabs(sum) <= GAMMA * all + LOST))
			encode_judge_find(
				j->row,
				"key %zu (%s): sign %u is wrong, its sketch is "
				"%.9g, %.3g times its rounding bound",
				j->at, j->kind->name, n, sum,
				fabs(sum) / (GAMMA * all + LOST));
	}
}

static double
path_cost(const float y[REF_HEAD], const uint8_t *key)
{
	double cost = 0, d;
	unsigned t;

	for (t = 0; t < REF_HEAD; t++) {
		d = (double)y[t] -
		    (double)table_tcq_codebook[encode_form_state(key, t)];
		cost += d * d;
	}
	return cost;
}

static void
judge_path(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	float y[REF_HEAD];
	double best, excess = 0;
	unsigned t;

	j->row->paths.all++;
	for (t = 0; t < REF_HEAD; t++)
		if (encode_form_state(want, t) != encode_form_state(got, t))
			break;
	if (t < REF_HEAD) {
		j->form->values(j->x, y);
		best = path_cost(y, want);
		excess = (path_cost(y, got) - best) / best;
		if (!tally(&j->row->paths, excess <= ENCODE_COST))
			encode_judge_find(
				j->row,
				"key %zu (%s): the path parts at element %u and "
				"costs %.3g more, relative",
				j->at, j->kind->name, t, excess);
	}
	if (excess > j->row->worst_cost)
		j->row->worst_cost = excess;
}

static void
judge_residual(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	const struct encode_form *f = j->form;
	double sum = 0, all = 0, room = 0, term;
	float v[REF_HEAD];
	unsigned i;

	if (f->residual_at == 0)
		return;
	j->row->codes.all++;
	if (((want[f->residual_at] ^ got[f->residual_at]) & 1) == 0)
		return;
	f->values(j->x, v);
	for (i = 0; i < REF_HEAD; i++) {
		term = ((double)v[i] - (double)f->level[f->code(got, i)]) *
		       (double)ref_sign(table_polar_residual, i);
		sum += term;
		all += fabs(term);
		room += v[i] != 0.0f ? ENCODE_ULPS * ulp_at((double)v[i]) : 0;
	}
	/* The bit belongs to the codes of its own key: the device's. */
	if (got[f->residual_at] % 2 == (sum > 0))
		room = INFINITY;
	if (!tally(&j->row->codes, fabs(sum) <= GAMMA * all + room))
		encode_judge_find(
			j->row,
			"key %zu (%s): the residual bit is wrong, its sum is %.9g, "
			"%.3g times its rounding bound",
			j->at, j->kind->name, sum, fabs(sum) / (GAMMA * all + room));
}

static bool
is_nan16(const struct encode_form *f, uint16_t norm)
{
	return (norm & 0x7fff) > (f->bf16 ? 0x7f80 : 0x7c00);
}

static void
judge_norms(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	const struct encode_form *f = j->form;
	uint16_t a, b;
	unsigned i;
	bool same;

	for (i = 0; i < f->norms; i++) {
		a = f->norm_of_codes ? encode_form_norm_of_codes(f, j->x, got)
				     : encode_form_norm(f, want, i);
		b = encode_form_norm(f, got, i);
		j->row->norms.all++;
		same = a == b || (is_nan16(f, a) && is_nan16(f, b));
		/* Bits of numbers without a sign go up one by one, to infinity. */
		if (!same &&
		    !tally(&j->row->norms, !is_nan16(f, a) && !is_nan16(f, b) &&
						   (a - b == 1 || b - a == 1)))
			encode_judge_find(
				j->row,
				"key %zu (%s), block %u: norm 0x%04x, not 0x%04x",
				j->at, j->kind->name, i, b, a);
		if (f->norm_of_codes && b != encode_form_norm(f, got, 0) &&
		    !is_nan16(f, b))
			encode_judge_find(
				j->row,
				"key %zu (%s): block %u has another norm than block 0",
				j->at, j->kind->name, i);
	}
}

static bool
is_finite_key(const float *x)
{
	unsigned i;

	for (i = 0; i < REF_HEAD; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

void
encode_judge_key(const struct encode_judge *j, const uint8_t *want, const uint8_t *got)
{
	static void (*const judge_codes[])(const struct encode_judge *, const uint8_t *,
					   const uint8_t *) = {
		[ENCODE_LEVELS] = judge_levels,
		[ENCODE_PATH] = judge_path,
		[ENCODE_SIGNS] = judge_signs,
	};
	size_t bytes = (size_t)j->row->format->bytes * j->row->format->blocks;

	j->row->keys++;
	j->row->same += memcmp(want, got, bytes) == 0;
	if (is_finite_key(j->x)) {
		judge_codes[j->form->codes](j, want, got);
		judge_residual(j, want, got);
	} else {
		j->row->not_finite++;
	}
	judge_norms(j, want, got);
	if (!encode_form_is_clean(j->form, got, bytes)) {
		j->row->reserved++;
		encode_judge_find(j->row, "key %zu (%s): reserved bits are not 0",
				  j->at, j->kind->name);
	}
}

/* Whether a changed key is found out; what the check counts goes nowhere. */
static void
plant(const struct encode_judge *j, const char *what, const uint8_t *want,
      const uint8_t *changed)
{
	struct encode_row scratch = {.format = j->row->format, .outcome = OUTCOME_PASS};
	struct encode_judge blind = *j;

	blind.row = &scratch;
	encode_judge_key(&blind, want, changed);
	j->row->planted++;
	if (scratch.outcome == OUTCOME_FAIL)
		j->row->caught++;
	else
		encode_judge_find(j->row, "the check does not see %s", what);
}

void
encode_judge_control(const struct encode_judge *j, const uint8_t *want)
{
	const struct encode_form *f = j->form;
	size_t bytes = (size_t)j->row->format->bytes * j->row->format->blocks;
	uint8_t key[REF_POLAR_BLOCK];
	unsigned i;

	memcpy(key, want, bytes);
	key[f->code_at] ^= 0xff;
	plant(j, "a changed byte of codes", want, key);

	memcpy(key, want, bytes);
	for (i = 0; i < f->norms; i++)
		encode_form_set_norm(f, key, i,
				     (uint16_t)(encode_form_norm(f, key, i) + 2));
	plant(j, "a norm that is two ulp off", want, key);

	if (f->reserved_at == 0)
		return;
	memcpy(key, want, bytes);
	key[bytes - 1] ^= 0x80;
	plant(j, "a reserved bit", want, key);
}
