/* What a run of verify says, for programs and for people. */
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "kernels/gpu_library.h"
#include "kernels/verify.h"

/* Of two errors the one that is told: a device that failed before a fixture that is
 * wrong before a kernel that is not there. */
static enum err_code
worse(enum err_code a, enum err_code b)
{
	static const int rank[] = {[EXIT_BLOCKED] = 1, [EXIT_USAGE] = 2, [EXIT_INCOMPLETE] = 3};
	int x = err_exit(a), y = err_exit(b);

	if (a == ERR_NONE || x >= (int)str_count(rank))
		return b;
	if (b == ERR_NONE || y >= (int)str_count(rank))
		return a;
	return rank[y] > rank[x] ? b : a;
}

void
verify_report_join(struct verify_report *r, enum outcome o, enum err_code why)
{
	static const int rank[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = 0, [OUTCOME_SKIPPED] = 1, [OUTCOME_BLOCKED] = 2,
		[OUTCOME_INCOMPLETE] = 3, [OUTCOME_FAIL] = 4};

	if (o == OUTCOME_BLOCKED || o == OUTCOME_INCOMPLETE)
		r->why = worse(r->why, why);
	if (rank[o] > rank[r->outcome])
		r->outcome = o;
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
		return r->why == ERR_NONE ? EXIT_BLOCKED : err_exit(r->why);
	}
}

cJSON *
verify_device_json(const struct backend_device *d)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_int(o, "index", d->index) &&
	    json_add_text(o, "name", d->name, strlen(d->name)) &&
	    json_add_str(o, "uuid", d->uuid[0] ? d->uuid : NULL) &&
	    json_add_text(o, "arch", d->arch, strlen(d->arch)) &&
	    json_add_text(o, "driver", d->driver, strlen(d->driver)) &&
	    json_add_text(o, "api", d->api, strlen(d->api)) &&
	    json_add_str(o, "pci", d->pci[0] ? d->pci : NULL) &&
	    (d->memory ? json_add_int(o, "memoryBytes", (int64_t)d->memory)
		       : json_add_null(o, "memoryBytes")) &&
	    json_add_bool(o, "software", d->software) &&
	    json_add_bool(o, "emulated", d->emulated) &&
	    json_add_bool(o, "simulated", d->simulated || gpu_library_simulated() != NULL) &&
	    json_add_text(o, "note", d->note, strlen(d->note)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static bool
add_code(cJSON *o, const struct verify_report *r)
{
	cJSON *a = json_add_array(o, "code"), *c;
	size_t i;

	for (i = 0; a != NULL && i < r->code_count; i++)
		if ((c = cJSON_CreateObject()) == NULL || !cJSON_AddItemToArray(a, c) ||
		    !json_add_str(c, "name", r->code[i].name) ||
		    !json_add_str(c, "sha256", r->code[i].sha256) ||
		    !json_add_str(c, "how", r->code[i].how))
			return false;
	return a != NULL;
}

static cJSON *
check_json(const struct verify_check *c)
{
	cJSON *o = cJSON_CreateObject();
	bool run = c->outcome != OUTCOME_BLOCKED;

	if (json_add_text(o, "name", c->name, strlen(c->name)) &&
	    json_add_str(o, "kernel", c->kernel ? c->kernel->kernel : NULL) &&
	    json_add_str(o, "variant", c->variant[0] ? c->variant : NULL) &&
	    json_add_text(o, "fixture", c->fixture, strlen(c->fixture)) &&
	    json_add_str(o, "sha256", c->sha256[0] ? c->sha256 : NULL) &&
	    json_add_int(o, "elements", (int64_t)c->elements) &&
	    json_add_num(o, "maxAbsDiff", run ? c->max_abs : (double)NAN) &&
	    json_add_num(o, "maxRelDiff", run ? c->max_rel : (double)NAN) &&
	    json_add_num(o, "nmse", run ? c->nmse : (double)NAN) &&
	    json_add_int(o, "nonFinite", (int64_t)c->non_finite) &&
	    json_add_bool(o, "guardIntact", c->guard_intact) &&
	    json_add_num(o, "tolerance", c->tolerance) &&
	    json_add_str(o, "outcome", outcome_name(c->outcome)) &&
	    json_add_str(o, "reason", run ? NULL : err_name(c->why)) &&
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
	const struct verify_control *n;
	size_t i;

	for (i = 0; a != NULL && i < r->control_count; i++) {
		n = &r->controls[i];
		if ((c = cJSON_CreateObject()) == NULL || !cJSON_AddItemToArray(a, c) ||
		    !json_add_str(c, "name", n->name) ||
		    !json_add_str(c, "kernel", n->kernel[0] ? n->kernel : NULL) ||
		    !json_add_str(c, "fixture", n->fixture[0] ? n->fixture : NULL) ||
		    !json_add_bool(c, "caught", n->caught) ||
		    !json_add_str(c, "detail", n->detail))
			return false;
	}
	return a != NULL;
}

cJSON *
verify_json(const struct verify_report *r, const char *tool)
{
	cJSON *o = cJSON_CreateObject();

	if (json_add_int(o, "schemaVersion", 1) && json_add_str(o, "tool", tool) &&
	    json_add_str(o, "backend", r->backend) &&
	    json_add(o, "device", verify_device_json(&r->device)) && add_code(o, r) &&
	    json_add_num(o, "tolerance", r->tolerance) && add_checks(o, r) &&
	    add_controls(o, r) && json_add_int(o, "passed", (int64_t)r->passed) &&
	    json_add_int(o, "failed", (int64_t)r->failed) &&
	    json_add_int(o, "blocked", (int64_t)r->blocked) &&
	    json_add_str(o, "outcome", outcome_name(r->outcome)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

const char *
verify_mark(enum outcome o, bool colour)
{
	static const char *const plain[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = "pass", [OUTCOME_FAIL] = "FAIL",
		[OUTCOME_BLOCKED] = "blocked", [OUTCOME_SKIPPED] = "skipped",
		[OUTCOME_INCOMPLETE] = "incomplete"};
	static const char *const marked[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = "\033[32mpass\033[0m",
		[OUTCOME_FAIL] = "\033[1;31mFAIL\033[0m",
		[OUTCOME_BLOCKED] = "\033[33mblocked\033[0m",
		[OUTCOME_SKIPPED] = "\033[33mskipped\033[0m",
		[OUTCOME_INCOMPLETE] = "\033[33mincomplete\033[0m"};

	return colour ? marked[o] : plain[o];
}

static void
print_device(FILE *out, const struct verify_report *r)
{
	const struct backend_device *d = &r->device;
	char name[2 * sizeof d->name], arch[2 * sizeof d->arch];

	str_show(name, sizeof name, d->name, strlen(d->name));
	str_show(arch, sizeof arch, d->arch, strlen(d->arch));
	fprintf(out, "%s, device %u: %s (%s)%s%s\n", r->backend, d->index, name, arch,
		d->software ? ", software" : "", d->emulated ? ", emulated" : "");
}

static void
print_check(FILE *out, const struct verify_check *c, bool colour)
{
	if (c->outcome == OUTCOME_BLOCKED)
		fprintf(out, "%-28s %8s %9s %9s %9s %7s %9.3g  %s\n", c->name, "-", "-",
			"-", "-", "-", c->tolerance, verify_mark(c->outcome, colour));
	else
		fprintf(out, "%-28s %8zu %9.2e %9.2e %9.2e %7zu %9.3g  %s\n", c->name,
			c->elements, c->max_abs, c->max_rel, c->nmse, c->non_finite,
			c->tolerance, verify_mark(c->outcome, colour));
	if (c->detail[0])
		fprintf(out, "    %s\n", c->detail);
}

void
verify_print(FILE *out, const struct verify_report *r, bool colour)
{
	const struct verify_control *n;
	size_t i;

	print_device(out, r);
	if (r->check_count > 0)
		fprintf(out, "%-28s %8s %9s %9s %9s %7s %9s  %s\n", "kernel", "elements",
			"max abs", "max rel", "NMSE", "NaN/Inf", "tolerance", "verdict");
	for (i = 0; i < r->check_count; i++)
		print_check(out, &r->checks[i], colour);
	for (i = 0; i < r->control_count; i++) {
		n = &r->controls[i];
		fprintf(out, "control %-20s %s%s%s (%s)\n", n->name, n->kernel,
			n->kernel[0] ? ": " : "",
			n->caught	? "caught"
			: n->fixture[0] ? "MISSED"
					: "not planted",
			n->detail);
	}
}
