/* The verdict on a fixtures gate: the harness's JSON, held against the suite. */
#include "common/judge_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/ntstatus.h"
#include "common/str.h"

static cJSON *
object_in(const char *p, size_t n)
{
	size_t bytes;
	const char *from = json_object_in(p, n, &bytes);
	cJSON *o = NULL;

	return from == NULL || json_parse(from, bytes, 1u << 20, &o, NULL) ? NULL : o;
}

/* The first run of a harness whose output holds an object; false when none does. */
static bool
fixtures_run(const char *log, size_t len, struct section *s)
{
	size_t pos = 0;
	cJSON *o;

	while (transcript_next(log, len, &pos, s, NULL) == 1) {
		if (strcmp(s->kind, "run") == 0 && strstr(s->head, "-verify\"") != NULL && (o = object_in(s->body, s->len)) != NULL) {
			cJSON_Delete(o);
			return true;
		}
		section_fini(s);
	}
	return false;
}

cJSON *
fixtures_read(const char *log, size_t len)
{
	struct section s;
	cJSON *o;

	if (!fixtures_run(log, len, &s))
		return NULL;
	o = object_in(s.body, s.len);
	section_fini(&s);
	return o;
}

/* First of that name from v on. */
static const cJSON *
named(const cJSON *v, const char *name)
{
	while (v != NULL && !str_eq(json_str(v, "name"), name))
		v = v->next;
	return v;
}

static const cJSON *
first_of(const cJSON *o, const char *key)
{
	const cJSON *list = json_get(o, key);

	return cJSON_IsArray(list) ? list->child : NULL;
}

/* One check against the suite's tolerance; our own comparison, not its word. */
static bool
fixture_ok(const cJSON *c, double tolerance, struct judgement *out)
{
	const char *name = json_str(c, "name");
	double diff = json_num(c, "maxAbsDiff", NAN);
	int64_t elements = json_int(c, "elements", 0), bad = json_int(c, "nonFinite", -1);

	if (str_eq(json_str(c, "outcome"), "blocked"))
		judgement_set(out, REASON_FIXTURE_INVALID, "%s: %s", name,
			json_str(c, "detail") ? json_str(c, "detail") : "could not be read");
	else if (elements <= 0)
		judgement_set(out, REASON_NO_CASE_EXECUTED, "%s: no element was compared", name);
	else if (bad != 0)
		judgement_set(out, REASON_FIXTURE_MISMATCH, "%s: %lld of %lld outputs are not finite",
			name, (long long)bad, (long long)elements);
	else if (!(diff >= 0 && diff < tolerance))
		judgement_set(out, REASON_FIXTURE_MISMATCH, "%s: max abs diff %.3g, tolerance %.3g",
			name, diff, tolerance);
	else if (!json_bool(c, "guardIntact", false))
		judgement_set(out, REASON_FIXTURE_MISMATCH, "%s: wrote outside its output", name);
	else if (!str_eq(json_str(c, "outcome"), "pass"))
		judgement_set(out, REASON_FIXTURE_MISMATCH, "%s: the harness does not call it a pass",
			name);
	else
		return true;
	return false;
}

/* Each must be there and caught, every time it stands there. */
static bool
controls_ok(const cJSON *o, struct judgement *out)
{
	static const char *const wanted[] = {"flipped-code-bit", "nan-output"};
	const cJSON *c;
	size_t i;

	for (i = 0; i < str_count(wanted); i++) {
		if ((c = named(first_of(o, "controls"), wanted[i])) == NULL) {
			judgement_set(out, REASON_CONTROL_MISSED, "control %s was not run", wanted[i]);
			return false;
		}
		for (; c != NULL; c = named(c->next, wanted[i]))
			if (!json_bool(c, "caught", false)) {
				judgement_set(out, REASON_CONTROL_MISSED, "control %s was not caught",
					wanted[i]);
				return false;
			}
	}
	return true;
}

/* All checks of the suite; of two with one name both count. */
static bool
checks_ok(const cJSON *o, const struct suite *su, int64_t *elements, double *worst,
	struct judgement *out)
{
	const cJSON *c;
	int i;

	*elements = 0;
	*worst = 0;
	for (i = 0; i < su->fixture_count; i++) {
		if ((c = named(first_of(o, "checks"), su->fixtures[i])) == NULL) {
			judgement_set(out, REASON_NO_CASE_EXECUTED, "fixture %s was not run",
				su->fixtures[i]);
			return false;
		}
		for (; c != NULL; c = named(c->next, su->fixtures[i])) {
			if (!fixture_ok(c, su->tolerance, out))
				return false;
			*elements += json_int(c, "elements", 0);
			*worst = fmax(*worst, json_num(c, "maxAbsDiff", 0));
		}
	}
	return true;
}

/* "cpu", or a form of it: "cpu-ref". */
static bool
is_backend(const char *said, const char *wanted)
{
	size_t n = strlen(wanted);

	return said != NULL && strncmp(said, wanted, n) == 0 &&
		(said[n] == '\0' || said[n] == '-');
}

static bool
has_digests(const cJSON *o)
{
	const cJSON *c = first_of(o, "code");

	if (c == NULL)
		return false;
	for (; c != NULL; c = c->next)
		if (json_str(c, "sha256") == NULL || !str_is_hex(json_str(c, "sha256"), 64))
			return false;
	return true;
}

/* What ran: code with digests, on the lane's backend, on a device that is one.  A device
 * that does not say what it is counts as software.  That a CPU is emulated keeps a pass
 * from being recorded (verdict.c), it does not void it. */
static bool
place_ok(const cJSON *o, const struct lane *lane, struct judgement *out)
{
	const cJSON *d = json_get(o, "device");
	const char *backend = json_str(o, "backend"), *name = json_str(d, "name");

	if (!is_backend(backend, lane->backend))
		judgement_set(out, REASON_NO_CASE_EXECUTED,
			"the fixtures ran on the backend %.40s, the lane %s is for %s",
			backend ? backend : "(none)", lane->name, lane->backend);
	else if (json_bool(d, "software", true) ||
		 (lane->api != API_CPU && json_bool(d, "emulated", true)))
		judgement_set(out, REASON_SOFTWARE_DEVICE, "the fixtures ran on %.100s, which is %s",
			name ? name : "a device without a name",
			json_bool(d, "software", true) ? "software" : "emulated");
	else if (!has_digests(o))
		judgement_set(out, REASON_NO_CASE_EXECUTED,
			"the log has no digest of the code that ran");
	else
		return true;
	return false;
}

void
judge_harness(const char *text, size_t len, int exit, int signal, const struct judge_ask *ask,
	struct judgement *out)
{
	cJSON *o = object_in(text, len);
	const char *harness = ask->lane->harness, *arch;
	int64_t elements;
	double worst;
	char status[96];

	if (o == NULL && ntstatus_is(exit)) {
		ntstatus_show(exit, status, sizeof status);
		judgement_set(out, ntstatus_not_loaded(exit) ? REASON_TOOL_BROKEN : REASON_HARNESS_CRASHED,
			"%s ended with %s", harness, status);
	} else if (o == NULL)
		judgement_set(out, REASON_HARNESS_CRASHED, "%s printed no verdict", harness);
	else if (signal != 0)
		judgement_set(out, REASON_HARNESS_CRASHED, "%s died of signal %d", harness, signal);
	else if (checks_ok(o, ask->suite, &elements, &worst, out) && controls_ok(o, out) &&
		 place_ok(o, ask->lane, out)) {
		arch = json_path_str(o, "device.arch");
		ntstatus_show(exit, status, sizeof status);
		if (exit != 0)
			judgement_set(out, REASON_HARNESS_CRASHED,
				"%s calls everything a pass and ended with exit %s", harness, status);
		else
			judgement_set(out, REASON_NONE,
				"%d fixtures, %lld outputs, max abs diff %.2g, both controls caught, "
				"on %.40s%s%.60s",
				ask->suite->fixture_count, (long long)elements, worst,
				json_str(o, "backend"), arch ? ", " : "", arch ? arch : "");
	}
	cJSON_Delete(o);
}

void
judge_fixtures(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct section s;

	if (judge_decided(log, len, out))
		return;
	if (!fixtures_run(log, len, &s)) {
		judgement_set(out, REASON_HARNESS_CRASHED, "%s printed no verdict", ask->lane->harness);
		return;
	}
	judge_harness(s.body, s.len, s.exit, s.signal, ask, out);
	section_fini(&s);
}
