#include "kernels/encode_check.h"

#include <math.h>

#include "common/json.h"
#include "kernels/verify.h"

static bool
add_tally(cJSON *o, const char *key, const struct encode_tally *t)
{
	cJSON *n = json_add_object(o, key);

	return json_add_int(n, "compared", (int64_t)t->all) &&
	       json_add_int(n, "near", (int64_t)t->near) &&
	       json_add_int(n, "wrong", (int64_t)t->wrong);
}

static cJSON *
row_json(const struct encode_row *r)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_str(o, "name", r->format->name) &&
	    json_add_int(o, "keys", (int64_t)r->keys) &&
	    json_add_int(o, "identicalKeys", (int64_t)r->same) &&
	    json_add_int(o, "notFiniteKeys", (int64_t)r->not_finite) &&
	    json_add_int(o, "ties", (int64_t)r->ties) &&
	    add_tally(o, "codes", &r->codes) && add_tally(o, "norms", &r->norms) &&
	    add_tally(o, "paths", &r->paths) &&
	    json_add_num(o, "worstUlps", r->worst_ulps) &&
	    json_add_num(o, "worstCost", r->worst_cost) &&
	    json_add_int(o, "reservedKeys", (int64_t)r->reserved) &&
	    json_add_int(o, "unwrittenBytes", (int64_t)r->unwritten) &&
	    json_add_bool(o, "guardIntact", r->guard_intact) &&
	    json_add_int(o, "planted", r->planted) &&
	    json_add_int(o, "caught", r->caught) &&
	    json_add_str(o, "outcome", outcome_name(r->outcome)) &&
	    json_add_str(o, "error",
			 r->outcome == OUTCOME_BLOCKED ? err_name(r->why) : NULL) &&
	    json_add_str(o, "detail", r->detail))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static bool
add_rows(cJSON *o, const struct encode_report *r)
{
	cJSON *a = json_add_array(o, "formats"), *row;
	size_t i;

	for (i = 0; a != NULL && i < r->count; i++)
		if ((row = row_json(&r->rows[i])) == NULL ||
		    !cJSON_AddItemToArray(a, row))
			return false;
	return a != NULL;
}

cJSON *
encode_check_json(const struct encode_report *r)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_int(o, "thresholdUlps", ENCODE_ULPS) &&
	    json_add_int(o, "normUlps", 1) &&
	    json_add_num(o, "pathCost", ENCODE_COST) && add_rows(o, r) &&
	    json_add_int(o, "passed", (int64_t)r->passed) &&
	    json_add_int(o, "failed", (int64_t)r->failed) &&
	    json_add_int(o, "blocked", (int64_t)r->blocked) &&
	    json_add_str(o, "outcome", outcome_name(r->outcome)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void
print_row(FILE *out, const struct encode_row *r, bool colour)
{
	if (r->outcome == OUTCOME_BLOCKED)
		fprintf(out, "%-12s %8s %9s %9s %6s %6s %8s %6s %6s %8s %6s %9s  %s\n",
			r->format->name, "-", "-", "-", "-", "-", "-", "-", "-", "-",
			"-", "-", verify_mark(r->outcome, colour));
	else
		fprintf(out, "%-12s %8zu %9zu %9zu %6zu %6zu %8zu %6zu %6zu %8zu %6zu ",
			r->format->name, r->keys, r->same, r->codes.all, r->codes.near,
			r->codes.wrong, r->norms.all, r->norms.near, r->norms.wrong,
			r->paths.all, r->paths.near + r->paths.wrong);
	if (r->outcome != OUTCOME_BLOCKED && r->paths.all)
		fprintf(out, "%9.2e  %s\n", r->worst_cost,
			verify_mark(r->outcome, colour));
	else if (r->outcome != OUTCOME_BLOCKED)
		fprintf(out, "%9s  %s\n", "-", verify_mark(r->outcome, colour));
	if (r->detail[0])
		fprintf(out, "    %s\n", r->detail);
}

void
encode_check_print(FILE *out, const struct encode_report *r, bool colour)
{
	unsigned planted = 0, caught = 0;
	size_t i;

	fprintf(out, "%-12s %8s %9s %9s %6s %6s %8s %6s %6s %8s %6s %9s  %s\n",
		"encoder", "keys", "identical", "codes", "near", "wrong", "norms",
		"near", "wrong", "paths", "other", "cost", "verdict");
	for (i = 0; i < r->count; i++) {
		print_row(out, &r->rows[i], colour);
		planted += r->rows[i].planted;
		caught += r->rows[i].caught;
	}
	fprintf(out,
		"near: codes within %d ulp of a threshold or a sum's rounding bound of "
		"0, "
		"norms one ulp off; cost: the worst path's, relative, %g at most\n",
		ENCODE_ULPS, ENCODE_COST);
	fprintf(out,
		"%u of %u planted errors caught; %zu passed, %zu failed, %zu blocked: "
		"%s\n",
		caught, planted, r->passed, r->failed, r->blocked,
		verify_mark(r->outcome, colour));
}
