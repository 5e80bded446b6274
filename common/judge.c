#include "common/judge_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bound.h"
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
bool
judge_decided(const char *log, size_t len, struct judgement *out)
{
	return said_reason(log, len, out) || !is_whole(log, len, out);
}

static void
judge_host(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct host_facts h;

	if (judge_decided(log, len, out))
		return;
	if (!host_facts_read(log, len, &h)) {
		judgement_set(out, REASON_PROBE_UNREADABLE, "the host log names no system");
		return;
	}
	if (ask->lane->place == PLACE_NEVER) {
		judgement_set(out, ask->lane->never, "the %s lane has no program", ask->lane->name);
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

/* First "N.N" of a version text. */
bool
judge_version(const char *p, size_t n, char *out, size_t size)
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

void
judge_tool_name(const struct section *s, char *out, size_t size)
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
	if (judge_decided(log, len, out))
		return;
	while ((r = transcript_next(log, len, &pos, &s, NULL)) == 1) {
		if (strcmp(s.kind, "run") == 0) {
			judge_tool_name(&s, name, sizeof name);
			if (s.exit != 0) {
				judgement_set(out, REASON_TOOL_BROKEN, "%s --version ended with %s %d",
					name, s.signal ? "signal" : "exit", s.signal ? s.signal : s.exit);
				section_fini(&s);
				return;
			}
			if (!judge_version(s.body, s.len, version, sizeof version)) {
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
	if (judge_decided(log, len, out))
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
		judge_tool_name(&s, name, sizeof name);
		if (strcmp(s.kind, "run") == 0 && str_starts(name, "ninja"))
			last = s.exit;
		section_fini(&s);
	}
	log_fact(log, len, "reused", reused, sizeof reused);
	if (strcmp(reused, "true") != 0 && last != 0)
		judgement_set(out, REASON_BUILD_FAILED,
			"the log claims a build, but no ninja in it ended with exit 0");
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

void
judge_gate(enum gate_id g, const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct bound b;
	struct judgement changed;

	judges[g](log, len, ask, out);
	if (out->outcome != OUTCOME_PASS && out->outcome != OUTCOME_FAIL)
		return;
	/* a device that went away in the middle makes a failure of the gate no failure of the code */
	if (bound_gate(ask->lane, g) && bound_judge(log, len, ask->lane, &b, &changed) != REASON_NONE)
		*out = changed;
}
