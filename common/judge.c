#include "common/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "common/transcript.h"

void
judgement_set(struct judgement *j, enum reason r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	j->reason = r;
	j->outcome = reason_outcome(r);
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof text, fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	/* words of logs end on terminals */
	str_show(j->detail, sizeof j->detail, text, strlen(text));
	snprintf(j->hint, sizeof j->hint, "%s", reason_hint(r));
}

/* True when some facts section has the key, even with a value that fits nowhere. */
static bool
has_fact(const char *log, size_t len, const char *key)
{
	struct section s;
	size_t pos = 0, k = strlen(key);
	const char *p, *end, *nl;
	bool found = false;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		end = s.body + s.len;
		for (p = s.body; strcmp(s.kind, "facts") == 0 && p < end; p = nl + 1) {
			if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
				nl = end - 1;
			if ((size_t)(end - p) > k && memcmp(p, key, k) == 0 && p[k] == '=')
				found = true;
		}
		section_fini(&s);
	}
	return found;
}

/*
 * A gate that could not do its work says why in facts ("reason", "detail", "hint"); such
 * a log is judged by its own words, which are never a pass.
 */
static bool
said_reason(const char *log, size_t len, struct judgement *out)
{
	char name[64], detail[320] = "", hint[160] = "";
	int r;

	if (!has_fact(log, len, "reason"))
		return false;
	if (!log_fact(log, len, "reason", name, sizeof name))
		snprintf(name, sizeof name, "(too long)");
	r = reason_find(name);
	log_fact(log, len, "detail", detail, sizeof detail);
	if (r <= REASON_NONE) {
		judgement_set(out, REASON_PROBE_UNREADABLE, "unknown reason \"%.40s\" in the log", name);
		return true;
	}
	judgement_set(out, (enum reason)r, "%s", detail);
	if (log_fact(log, len, "hint", hint, sizeof hint) && hint[0] != '\0')
		str_show(out->hint, sizeof out->hint, hint, strlen(hint));
	return true;
}

/* Sections from the first byte to the last, each with its end. */
static bool
is_whole(const char *log, size_t len, struct judgement *out)
{
	struct section s;
	size_t pos = 0;
	bool cut = len == 0;
	int r;

	while (!cut && (r = transcript_next(log, len, &pos, &s, NULL)) != 0) {
		cut = r < 0 || !s.ended;
		if (r > 0)
			section_fini(&s);
	}
	if (cut)
		judgement_set(out, REASON_AGENT_DIED, len == 0 ? "the log is empty"
			: "the log stops in the middle of a section");
	return !cut;
}

/* What every judge asks first. */
static bool
is_decided(const char *log, size_t len, struct judgement *out)
{
	return said_reason(log, len, out) || !is_whole(log, len, out);
}

static void
judge_host(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct host_facts h;

	if (is_decided(log, len, out))
		return;
	if (!host_facts_read(log, len, &h)) {
		judgement_set(out, REASON_PROBE_UNREADABLE, "the host log names no system");
		return;
	}
	if (lane_target(ask->lane, h.os, h.arch) == NULL) {
		judgement_set(out, REASON_WRONG_HOST, "the %s lane has no target for %s on %s",
			ask->lane->name, h.os, h.arch);
		return;
	}
	judgement_set(out, REASON_NONE, "%s %s, %s%s%s%s", h.os, h.kernel, h.arch,
		strcmp(h.virtualisation, "none") == 0 ? ", no virtualisation" : ", virtualised: ",
		strcmp(h.virtualisation, "none") == 0 ? "" : h.virtualisation,
		h.emulated[0] ? " (emulated)" : "");
}

static void
judge_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct device_facts d;

	(void)ask;
	if (is_decided(log, len, out))
		return;
	if (!device_facts_read(log, len, NULL, &d)) {
		judgement_set(out, REASON_PROBE_UNREADABLE,
			"/proc/cpuinfo names no model or no features");
		return;
	}
	if (d.cpus > 0)
		judgement_set(out, REASON_NONE, "%s, %s, %lld CPUs", d.name, d.level,
			(long long)d.cpus);
	else
		judgement_set(out, REASON_NONE, "%s, %s", d.name, d.level);
}

/* First "N.N" of a version text. */
static bool
version_in(const char *p, size_t n, char *out, size_t size)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		k = 0;
		while (i + k < n && k + 1 < size &&
		       ((p[i + k] >= '0' && p[i + k] <= '9') || (k > 0 && p[i + k] == '.')))
			k++;
		while (k > 0 && p[i + k - 1] == '.') /* "1.13.2.git" */
			k--;
		if (k >= 3 && memchr(p + i, '.', k) != NULL) {
			memcpy(out, p + i, k);
			out[k] = '\0';
			return true;
		}
		i += k;
	}
	return false;
}

static void
tool_name(const struct section *s, char *out, size_t size)
{
	cJSON *o = NULL;
	const char *path, *slash;

	snprintf(out, size, "?");
	if (json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return;
	path = cJSON_GetStringValue(cJSON_GetArrayItem(json_get(o, "argv"), 0));
	if (path != NULL) {
		slash = strrchr(path, '/');
		snprintf(out, size, "%s", slash ? slash + 1 : path);
	}
	cJSON_Delete(o);
}

static void
judge_toolchain(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct section s;
	size_t pos = 0, used = 0;
	char list[256] = "", name[64], version[32];
	int r, n = 0;

	(void)ask;
	if (is_decided(log, len, out))
		return;
	while ((r = transcript_next(log, len, &pos, &s, NULL)) == 1) {
		if (strcmp(s.kind, "run") == 0) {
			tool_name(&s, name, sizeof name);
			if (s.exit != 0) {
				judgement_set(out, REASON_TOOL_BROKEN, "%s --version ended with %s %d",
					name, s.signal ? "signal" : "exit", s.signal ? s.signal : s.exit);
				section_fini(&s);
				return;
			}
			if (!version_in(s.body, s.len, version, sizeof version)) {
				judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT,
					"%s prints no version that we can read", name);
				section_fini(&s);
				return;
			}
			if (used < sizeof list)
				used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %s",
					n ? ", " : "", name, version);
			n++;
		}
		section_fini(&s);
	}
	if (r < 0 || n == 0)
		judgement_set(out, REASON_PROBE_UNREADABLE, "the toolchain log has no command");
	else
		judgement_set(out, REASON_NONE, "%s", list);
}

/* Gates whose work can not be seen again in the log alone: they must have said "done",
 * and the sentence is theirs. */
static void
judge_said(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	char done[8] = "", detail[320] = "";

	(void)ask;
	if (is_decided(log, len, out))
		return;
	log_fact(log, len, "done", done, sizeof done);
	if (strcmp(done, "true") != 0) {
		judgement_set(out, REASON_AGENT_DIED, "the log does not say that the gate ended");
		return;
	}
	log_fact(log, len, "detail", detail, sizeof detail);
	judgement_set(out, REASON_NONE, "%s", detail);
}

/* As judge_said, and the last ninja of a build that was not reused must have exited 0. */
static void
judge_build(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct section s;
	size_t pos = 0;
	char reused[8] = "", name[64];
	int last = -2;

	judge_said(log, len, ask, out);
	if (out->outcome != OUTCOME_PASS)
		return;
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		tool_name(&s, name, sizeof name);
		if (strcmp(s.kind, "run") == 0 && str_starts(name, "ninja"))
			last = s.exit;
		section_fini(&s);
	}
	log_fact(log, len, "reused", reused, sizeof reused);
	if (strcmp(reused, "true") != 0 && last != 0)
		judgement_set(out, REASON_BUILD_FAILED,
			"the log claims a build, but no ninja in it ended with exit 0");
}

/* ---- fixtures ---- */

/* The object that the body holds: from the line that begins with a brace to the last
 * brace. */
static cJSON *
object_in(const char *p, size_t n)
{
	const char *end = p + n, *first = p;
	cJSON *o = NULL;

	while (first < end && *first != '{') {
		first = memchr(first, '\n', (size_t)(end - first));
		if (first == NULL)
			return NULL;
		first++;
	}
	while (end > first && end[-1] != '}')
		end--;
	if (json_parse(first, (size_t)(end - first), 1u << 20, &o, NULL))
		return NULL;
	return o;
}

/* The same with how the process that printed it ended. */
static cJSON *
fixtures_run(const char *log, size_t len, int *exit, int *signal)
{
	struct section s;
	size_t pos = 0;
	cJSON *o = NULL;

	while (o == NULL && transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0)
			o = object_in(s.body, s.len);
		*exit = s.exit;
		*signal = s.signal;
		section_fini(&s);
	}
	return o;
}

cJSON *
fixtures_read(const char *log, size_t len)
{
	int exit, signal;

	return fixtures_run(log, len, &exit, &signal);
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

static void
judge_fixtures(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	cJSON *o = NULL;
	const char *harness = ask->lane->harness, *arch;
	int64_t elements;
	double worst;
	int exit = -1, signal = 0;

	if (is_decided(log, len, out))
		return;
	if ((o = fixtures_run(log, len, &exit, &signal)) == NULL)
		judgement_set(out, REASON_HARNESS_CRASHED, "%s printed no verdict", harness);
	else if (signal != 0)
		judgement_set(out, REASON_HARNESS_CRASHED, "%s died of signal %d", harness, signal);
	else if (checks_ok(o, ask->suite, &elements, &worst, out) && controls_ok(o, out) &&
		 place_ok(o, ask->lane, out)) {
		arch = json_path_str(o, "device.arch");
		if (exit != 0)
			judgement_set(out, REASON_HARNESS_CRASHED,
				"%s calls everything a pass and ended with exit %d", harness, exit);
		else
			judgement_set(out, REASON_NONE,
				"%d fixtures, %lld outputs, max abs diff %.2g, both controls caught, "
				"on %.40s%s%.60s",
				ask->suite->fixture_count, (long long)elements, worst,
				json_str(o, "backend"), arch ? ", " : "", arch ? arch : "");
	}
	cJSON_Delete(o);
}

/* ---- graph smoke ---- */

/* The word after one of the options in an argv. */
static const char *
argv_value(const cJSON *argv, const char *option, const char *other)
{
	const cJSON *v;
	const char *found = NULL;

	cJSON_ArrayForEach(v, argv)
		if (cJSON_IsString(v) && v->next != NULL &&
		    (strcmp(v->valuestring, option) == 0 || strcmp(v->valuestring, other) == 0))
			found = cJSON_GetStringValue(v->next);
	return found;
}

static void
smoke_argv(const char *head, struct smoke_facts *out)
{
	cJSON *o = NULL;
	const cJSON *argv;
	const char *v;
	uint32_t n;

	if (json_parse(head, strlen(head), 1u << 20, &o, NULL))
		return;
	argv = json_get(o, "argv");
	if ((v = cJSON_GetStringValue(cJSON_GetArrayItem(argv, 0))) != NULL)
		snprintf(out->driver, sizeof out->driver, "%s",
			strrchr(v, '/') ? strrchr(v, '/') + 1 : v);
	if ((v = argv_value(argv, "--cache-type-k", "-ctk")) != NULL)
		snprintf(out->cache_type, sizeof out->cache_type, "%s", v);
	if ((v = argv_value(argv, "-n", "--predict")) != NULL && str_u32(v, 0, 1u << 20, &n, NULL) == 0)
		out->tokens_asked = (int)n;
	if ((v = argv_value(argv, "-m", "--model")) != NULL)
		snprintf(out->model, sizeof out->model, "%s", v);
	cJSON_Delete(o);
}

bool
smoke_facts_read(const char *log, size_t len, struct smoke_facts *out)
{
	struct section s;
	size_t pos = 0;
	bool found = false;

	memset(out, 0, sizeof *out);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0 && strstr(s.head, "--cache-type-k") != NULL) {
			/* nothing of a run before it stays */
			memset(out, 0, sizeof *out);
			found = s.ended;
			smoke_argv(s.head, out);
			elog_parse(s.body, s.len, &out->elog);
			out->exit = s.exit;
			out->signal = s.signal;
			out->timed_out = s.timed_out;
			out->cancelled = s.cancelled;
			out->dropped = s.dropped;
			out->ms = s.ms;
		}
		section_fini(&s);
	}
	return found;
}

/* The cache type must be the one that the family stands for. */
static bool
cache_fits(const struct judge_ask *ask, const char *cache)
{
	const struct suite *su = ask->suite;
	int i, k;

	if (ask->only_cache != NULL)
		return strcmp(cache, ask->only_cache) == 0;
	if (ask->family == NULL)
		return false;
	if (strcmp(ask->family, "baseline") == 0)
		return strcmp(cache, su->baseline) == 0;
	for (i = 0; i < su->family_count; i++)
		for (k = 0; strcmp(su->families[i].name, ask->family) == 0 &&
			k < su->families[i].alias_count; k++)
			if (strcmp(su->families[i].aliases[k], cache) == 0)
				return true;
	return false;
}

static void
judge_smoke(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct smoke_facts *f;
	struct smoke_ask sa;
	struct smoke_verdict v;

	if (is_decided(log, len, out))
		return;
	if ((f = calloc(1, sizeof *f)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	if (!smoke_facts_read(log, len, f)) {
		judgement_set(out, REASON_AGENT_DIED, "the log holds no engine run that ended");
		goto out;
	}
	if (!cache_fits(ask, f->cache_type)) {
		judgement_set(out, REASON_KV_TYPE_DIFFERS, "the run asked for %.20s, which is not %s",
			f->cache_type[0] ? f->cache_type : "no cache type",
			ask->family ? ask->family : "a family");
		goto out;
	}
	sa = (struct smoke_ask){.lane = ask->lane, .cache_type = f->cache_type,
		.tokens = f->tokens_asked, .exit = f->exit, .signal = f->signal,
		.timed_out = f->timed_out, .cancelled = f->cancelled, .dropped = f->dropped};
	elog_judge(&f->elog, &sa, &v);
	out->outcome = v.outcome;
	out->reason = v.reason;
	snprintf(out->detail, sizeof out->detail, "%s", v.detail);
	snprintf(out->hint, sizeof out->hint, "%s", v.hint);
	/* fewer tokens than the suite asks can not be argued away by a smaller -n */
	if (out->outcome == OUTCOME_PASS && f->tokens_asked < ask->min_tokens)
		judgement_set(out, REASON_TOO_FEW_TOKENS,
			"only %d tokens were asked for, the suite wants %lld", f->tokens_asked,
			(long long)ask->min_tokens);
out:
	free(f);
}

static const judge_fn judges[GATE_COUNT] = {
	[GATE_HOST] = judge_host,
	[GATE_DEVICE] = judge_device,
	[GATE_TOOLCHAIN] = judge_toolchain,
	[GATE_MODEL] = judge_said,
	[GATE_SOURCE] = judge_said,
	[GATE_BUILD] = judge_build,
	[GATE_FIXTURES] = judge_fixtures,
	[GATE_GRAPH_SMOKE] = judge_smoke,
	[GATE_REPORT] = judge_said,
};

judge_fn
judge_of(enum gate_id g)
{
	return judges[g];
}

double
output_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned *row, left, up_left, best;
	size_t i, k;
	double d;

	a_len = a_len < 4096 ? a_len : 4096;
	b_len = b_len < 4096 ? b_len : 4096;
	if (a_len == 0 && b_len == 0)
		return 0;
	if ((row = malloc((b_len + 1) * sizeof *row)) == NULL)
		return -1;
	for (k = 0; k <= b_len; k++)
		row[k] = (unsigned)k;
	for (i = 0; i < a_len; i++) {
		up_left = row[0];
		row[0] = left = (unsigned)i + 1;
		for (k = 0; k < b_len; k++) {
			best = up_left + (a[i] != b[k]);
			if (row[k + 1] + 1 < best)
				best = row[k + 1] + 1;
			if (left + 1 < best)
				best = left + 1;
			up_left = row[k + 1];
			row[k + 1] = left = best;
		}
	}
	d = (double)row[b_len] / (double)(a_len > b_len ? a_len : b_len);
	free(row);
	return d;
}
