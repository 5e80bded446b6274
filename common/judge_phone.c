/* The verdicts on the gates of a phone, and on evidence that others made on it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/judge_impl.h"
#include "common/phone.h"
#include "common/plat.h"
#include "common/str.h"

#define TARGET "android-arm64-vulkan"

void
judge_phone_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct phone_facts *f = NULL;
	char serial[64] = "", wanted[64] = "", allowed[8] = "", software[8] = "";
	struct err e = {0};
	enum reason r;

	(void)ask;
	if (judge_decided(log, len, out))
		return;
	if ((f = malloc(sizeof *f)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory for a phone");
		return;
	}
	log_fact(log, len, "wantedSerial", wanted, sizeof wanted);
	log_fact(log, len, "emulatorAllowed", allowed, sizeof allowed);
	log_fact(log, len, "softwareAllowed", software, sizeof software);
	r = phone_choose(log, len, wanted, serial, sizeof serial, &e);
	if (r != REASON_NONE)
		judgement_set(out, r, "%s", e.msg);
	else if (!phone_facts_read(log, len, serial, f))
		judgement_set(out, REASON_PROBE_UNREADABLE, "%s says no model: getprop gave nothing", serial);
	else if (f->emulator[0] != '\0' && strcmp(allowed, "1") != 0)
		judgement_set(out, REASON_EMULATOR, "%s is an emulator: %s", serial, f->emulator);
	else if (f->software[0] != '\0' && strcmp(allowed, "1") != 0 && strcmp(software, "1") != 0)
		judgement_set(out, REASON_SOFTWARE_DEVICE, "%s has Vulkan in software: %s", serial,
			f->software);
	else if (strcmp(f->abi, "arm64-v8a") != 0)
		judgement_set(out, REASON_WRONG_DEVICE, "%s is %s, the target is for arm64-v8a", serial,
			f->abi[0] ? f->abi : "of an unknown kind");
	else if (f->boot_id[0] == '\0')
		judgement_set(out, REASON_PROBE_UNREADABLE, "%s does not say its boot id", serial);
	else
		judgement_set(out, REASON_NONE, "%.40s %.60s, %.60s%s, Android %.12s, serial %s",
			f->manufacturer, f->model, f->gpu_known ? f->gpu : f->platform,
			f->gpu_known ? "" : " (the GPU could not be asked)", f->android, serial);
	free(f);
}

void
judge_phone_toolchain(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	static const char *const wanted[] = {"adb", "glslc", "clang"};
	struct section s;
	size_t pos = 0, used = 0, i;
	char name[96], version[32], list[256] = "";
	unsigned seen = 0;

	(void)ask;
	if (judge_decided(log, len, out))
		return;
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		judge_tool_name(&s, name, sizeof name);
		for (i = 0; strcmp(s.kind, "run") == 0 && i < str_count(wanted); i++) {
			if (strstr(name, wanted[i]) == NULL || s.exit != 0 ||
			    !judge_version(s.body, s.len, version, sizeof version))
				continue;
			if ((seen & (1u << i)) == 0 && used < sizeof list)
				used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %s",
					used ? ", " : "", name, version);
			seen |= 1u << i;
		}
		section_fini(&s);
	}
	for (i = 0; i < str_count(wanted); i++)
		if ((seen & (1u << i)) == 0) {
			judgement_set(out, REASON_TOOL_BROKEN, "%s does not say its version", wanted[i]);
			return;
		}
	judgement_set(out, REASON_NONE, "%s", list);
}

/* ---- fixtures on the phone ---- */

/* Lines "DIGEST  NAME" of sha256sum against the facts pushed=DIGEST NAME. */
static bool
pushed_ok(const char *log, size_t len, const char *said, size_t said_len,
	struct judgement *out)
{
	struct section s;
	size_t pos = 0, at, n, count = 0;
	const char *p;
	char line[400];
	bool ok = true;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		for (at = 0; strcmp(s.kind, "facts") == 0 && section_line(&s, &at, &p, &n);) {
			if (n < 7 || n >= sizeof line || memcmp(p, "pushed=", 7) != 0)
				continue;
			snprintf(line, sizeof line, "%.*s", (int)n - 7, p + 7);
			count++;
			if (ok && memmem(said, said_len, line, strlen(line)) == NULL) {
				judgement_set(out, REASON_PUSH_MISMATCH, "%.150s is not what the phone has",
					strlen(line) > 66 ? line + 66 : line);
				ok = false;
			}
		}
		section_fini(&s);
	}
	if (ok && count == 0)
		judgement_set(out, REASON_PUSH_MISMATCH, "the log names no file that was pushed");
	return ok && count > 0;
}

void
judge_phone_fixtures(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	char serial[64] = "", from[64], command[4096];
	struct section s;
	const char *text;
	size_t pos = 0, n;
	int exit;
	bool digests = false, ran = false;

	if (judge_decided(log, len, out))
		return;
	log_fact(log, len, "serial", serial, sizeof serial);
	judgement_set(out, REASON_NO_CASE_EXECUTED, "nothing was run on the phone");
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (!phone_command(&s, from, sizeof from, command, sizeof command)) {
			/* adb push and the like */
		} else if (strcmp(from, serial) != 0) {
			judgement_set(out, REASON_DEVICE_CHANGED, "a command went to %s, the phone is %s",
				from, serial);
			ran = false, digests = false;
			section_fini(&s);
			break;
		} else if (!phone_output(&s, &text, &n, &exit)) {
			judgement_set(out, REASON_MARKER_MISSING, "\"%.80s\" did not come to its end",
				command);
			ran = false, digests = false;
			section_fini(&s);
			break;
		} else if (strstr(command, "sha256sum ") != NULL) {
			digests = exit == 0 && pushed_ok(log, len, text, n, out);
			if (exit != 0)
				judgement_set(out, REASON_PUSH_MISMATCH, "sha256sum ended with exit %d", exit);
		} else if (strstr(command, "./vulkan-verify ") != NULL && digests) {
			judge_harness(text, n, exit, 0, ask, out);
			ran = true;
		}
		section_fini(&s);
	}
	if (!ran && out->outcome == OUTCOME_PASS)
		judgement_set(out, REASON_NO_CASE_EXECUTED, "nothing was run on the phone");
}

/* ---- graph evidence ---- */

struct evidence {
	const struct phone_evidence *ask;
	const cJSON *top;
	struct judgement *out;
	unsigned seen;
	bool bad;
};

static void bad(struct evidence *v, const char *fmt, ...) PRINTF(2, 3);

static void
bad(struct evidence *v, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	if (v->bad)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	v->bad = true;
	judgement_set(v->out, REASON_EVIDENCE_INVALID, "%s", text);
}

/* A name and the bit that it fills; what is allowed but not asked for has none. */
struct wanted {
	const char *name;
	unsigned bit;
};
static const struct wanted routes[] = {
	{"GGML_OP_ATTN_SCORE_QJL", 1}, {"GGML_OP_ATTN_SCORE_TBQ/turbo3", 2},
	{"GGML_OP_ATTN_SCORE_TBQ/turbo4", 4}, {"GGML_OP_ATTN_SCORE_TBQ/turbo3_tcq", 8},
	{"GGML_OP_ATTN_SCORE_POLAR/use_qjl=0", 16}, {"GGML_OP_ATTN_SCORE_POLAR/use_qjl=1", 32},
	{"GGML_OP_FUSED_ATTN_QJL_TBQ", 64},
};
#define ROUTES 63u
static const struct wanted capabilities[] = {
	{"turbo3", 1}, {"turbo4", 2}, {"turbo3_tcq", 4}, {"qjl_full", 8}, {"polarquant", 16},
	{"fused_attn", 32}, {"fused_attn_qjl_tbq", 32},
};
#define CAPABILITIES 31u

static void
entry_seen(struct evidence *v, const struct wanted *list, size_t count, const char *name)
{
	size_t i;

	for (i = 0; name != NULL && i < count; i++)
		if (strcmp(list[i].name, name) == 0) {
			if (v->seen & list[i].bit)
				bad(v, "%.80s stands there twice", name);
			v->seen |= list[i].bit;
			return;
		}
	bad(v, "unknown entry \"%.80s\"", name ? name : "(no name)");
}

/* The entry's own difference, else that of the whole. */
static void
diff_check(struct evidence *v, const cJSON *entry, const char *name)
{
	const cJSON *d = json_get(entry, "maxDiff");
	double x;

	if (d == NULL)
		d = json_get(v->top, "maxDiff");
	x = cJSON_IsNumber(d) ? d->valuedouble : NAN;
	if (!(x >= 0 && x < v->ask->tolerance))
		bad(v, "%.80s: maxDiff is %.20s, wanted is 0 to less than %g", name,
			d == NULL ? "missing" : cJSON_IsNumber(d) ? (x < 0 ? "negative" : "too large")
			: "no number", v->ask->tolerance);
}

static void
route_check(struct evidence *v, const cJSON *r)
{
	static const char *const keys[] = {"label", "name", "graphRoute", "graphOp"};
	const char *name = cJSON_GetStringValue(r), *status = json_str(r, "status");
	size_t i;

	for (i = 0; name == NULL && i < str_count(keys); i++)
		name = json_str(r, keys[i]);
	entry_seen(v, routes, str_count(routes), name);
	if (v->bad)
		return;
	if (cJSON_IsObject(r) && !json_bool(r, "runtimeReady", false))
		bad(v, "%.80s does not say that it is ready", name);
	if (cJSON_IsObject(r) && status != NULL && strcmp(status, "runtime-ready") != 0 &&
	    strcmp(status, "pass") != 0)
		bad(v, "%.80s has the status %.40s", name, status);
	diff_check(v, r, name);
}

static void
kernel_check(struct evidence *v, const cJSON *k)
{
	const char *name = json_str(k, "runtimeCapabilityKey");

	if (name == NULL)
		name = json_str(k, "capabilityKey");
	entry_seen(v, capabilities, str_count(capabilities), name);
	if (v->bad)
		return;
	if (!json_bool(k, "runtimeReady", false) || !str_eq(json_str(k, "status"), "runtime-ready"))
		bad(v, "%.80s is not runtime-ready", name);
	else if (json_get(k, "maxDiff") == NULL)
		bad(v, "%.80s has no maxDiff", name);
	diff_check(v, k, name);
}

/* Names what is not there of a set. */
static bool
is_complete(unsigned seen, unsigned all, const struct wanted *list, const char **missing)
{
	for (; (seen & list->bit) != 0 && (list->bit & all) != 0; list++)
		if ((seen & all) == all)
			return true;
	*missing = list->name;
	return (seen & all) == all;
}

static bool
content_check(struct evidence *v)
{
	const cJSON *list = json_get(v->top, "graphRoutes"), *kernels = json_get(v->top, "kernels");
	const cJSON *x;
	const char *missing = "graphRoutes";
	bool complete = false;

	if (!str_eq(json_str(v->top, "backend"), "vulkan"))
		bad(v, "its backend is not vulkan");
	if (!str_eq(json_str(v->top, "platform"), "android"))
		bad(v, "its platform is not android");
	if (!json_bool(v->top, "runtimeReady", false))
		bad(v, "it does not say that it is ready");
	if (str_eq(json_str(v->top, "status"), "fail") ||
	    str_eq(json_str(v->top, "status"), "diagnostic-only"))
		bad(v, "its status is %s", json_str(v->top, "status"));
	if (cJSON_IsArray(list)) {
		cJSON_ArrayForEach(x, list)
			route_check(v, x);
		complete = is_complete(v->seen, ROUTES, routes, &missing);
	}
	v->seen = 0;
	if (cJSON_IsObject(kernels)) {
		cJSON_ArrayForEach(x, kernels)
			kernel_check(v, x);
		if (!complete)
			complete = is_complete(v->seen, CAPABILITIES, capabilities, &missing);
	}
	if (!v->bad && !complete)
		bad(v, "%s is missing", missing);
	return !v->bad;
}

/* Time of the evidence in ms, -1 when it has none that we can read. */
static int64_t
time_of(const cJSON *o)
{
	static const char *const keys[] = {"finishedAt", "generatedAt", "evidenceDate", "updatedAt"};
	const char *text;
	char whole[32];
	int64_t ms;
	size_t i;

	for (i = 0; i < str_count(keys); i++) {
		if ((text = json_str(o, keys[i])) == NULL)
			continue;
		if ((ms = plat_utc_parse(text)) >= 0)
			return ms;
		if (strlen(text) == 10 && str_fmt(whole, sizeof whole, NULL, "%sT00:00:00Z", text) == 0 &&
		    (ms = plat_utc_parse(whole)) >= 0)
			return ms;
	}
	return -1;
}

/* To this phone, this commit, and a time not long ago. */
static void
binding_check(struct evidence *v)
{
	static const int64_t day = 24 * 3600 * 1000;
	const cJSON *device = json_get(v->top, "device");
	const char *serial = cJSON_IsObject(device) ? json_str(device, "serial")
						   : json_str(v->top, "serial");
	const char *commit = json_str(v->top, "forkCommit") ? json_str(v->top, "forkCommit")
							   : json_str(v->top, "atCommit");
	int64_t when = time_of(v->top), now = v->ask->now_ms;
	struct judgement *out = v->out;

	if (serial == NULL || v->ask->serial == NULL || strcmp(serial, v->ask->serial) != 0)
		judgement_set(out, REASON_EVIDENCE_UNBOUND, "it is of the device %.60s, this is %.60s",
			serial ? serial : "(none named)", v->ask->serial ? v->ask->serial : "(unknown)");
	else if (commit == NULL || v->ask->commit == NULL || strlen(commit) < 12 ||
		 !str_starts(v->ask->commit, commit))
		judgement_set(out, REASON_EVIDENCE_UNBOUND, "it is of the commit %.45s, this is %.45s",
			commit ? commit : "(none named)", v->ask->commit ? v->ask->commit : "(unknown)");
	else if (when < 0)
		judgement_set(out, REASON_EVIDENCE_UNBOUND, "it does not say when it was made");
	else if (when > now + day || when < now - PHONE_EVIDENCE_DAYS * day)
		judgement_set(out, REASON_EVIDENCE_UNBOUND, "it was made %lld days %s",
			(long long)(when > now ? (when - now) / day : (now - when) / day),
			when > now ? "from now" : "ago");
	else
		judgement_set(out, REASON_NONE, "six graph routes within %g on %.40s at %.12s",
			v->ask->tolerance, serial, commit);
}

void
phone_evidence_judge(const char *text, size_t len, const struct phone_evidence *ask,
	struct judgement *out)
{
	struct evidence v = {.ask = ask, .out = out};
	struct err e = {0};
	cJSON *o = NULL;

	if (json_parse(text, len, 1u << 20, &o, &e)) {
		judgement_set(out, REASON_EVIDENCE_INVALID, "%s", e.msg);
		return;
	}
	v.top = json_get(json_get(o, "targets"), TARGET);
	if (v.top == NULL)
		v.top = o;
	if (!cJSON_IsObject(v.top))
		bad(&v, "it is no JSON object");
	else if (content_check(&v))
		binding_check(&v);
	cJSON_Delete(o);
}

void
judge_phone_evidence(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	char serial[64] = "", commit[72] = "", now[32] = "";
	struct phone_evidence want = {.tolerance = ask->suite->tolerance};
	struct section s;
	size_t pos = 0;
	bool found = false;

	if (judge_decided(log, len, out))
		return;
	if (log_fact(log, len, "serial", serial, sizeof serial))
		want.serial = serial;
	if (log_fact(log, len, "commit", commit, sizeof commit) && commit[0] != '\0')
		want.commit = commit;
	if (log_fact(log, len, "now", now, sizeof now))
		want.now_ms = plat_utc_parse(now);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (!found && strcmp(s.kind, "file") == 0) {
			phone_evidence_judge(s.body, s.len, &want, out);
			found = true;
		}
		section_fini(&s);
	}
	if (!found)
		judgement_set(out, REASON_EVIDENCE_MISSING, "the log holds no evidence");
}
