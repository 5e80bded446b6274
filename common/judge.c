#include "common/judge_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bound.h"
#include "common/chip.h"
#include "common/json.h"
#include "common/ntstatus.h"
#include "common/phone.h"
#include "common/str.h"
#include "common/transcript.h"

void
judgement_set(struct judgement *j, enum reason r, const char *fmt, ...)
{
	va_list ap;

	j->reason = r;
	j->outcome = reason_outcome(r);
	/* words of logs end on terminals */
	va_start(ap, fmt);
	str_showv(j->detail, sizeof j->detail, fmt, ap);
	va_end(ap);
	snprintf(j->hint, sizeof j->hint, "%s", reason_hint(r));
}

/* True when some facts section has the key, even with a value that fits nowhere. */
static bool
has_fact(const char *log, size_t len, const char *key)
{
	struct section s;
	size_t pos = 0, at, n, k = strlen(key);
	const char *p;
	bool found = false;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		for (at = 0; strcmp(s.kind, "facts") == 0 && section_line(&s, &at, &p, &n);)
			found |= n > k && memcmp(p, key, k) == 0 && p[k] == '=';
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
		judgement_set(out, REASON_WRONG_HOST, "the %s lane is for %s%s%s; this host is %s on %s",
			ask->lane->name, ask->lane->targets[0], ask->lane->targets[1] ? " and " : "",
			ask->lane->targets[1] ? ask->lane->targets[1] : "", h.os, h.arch);
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
	const char *path;

	snprintf(out, size, "?");
	if (json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return;
	path = cJSON_GetStringValue(cJSON_GetArrayItem(json_get(o, "argv"), 0));
	if (path != NULL)
		snprintf(out, size, "%s", str_base(path));
	cJSON_Delete(o);
}

/* Tools that are there and can not do it. */
static bool
toolchain_old(const char *log, size_t len, const struct judge_ask *ask, const char *nvcc,
	struct judgement *out)
{
	char chip[48] = "", headers[256] = "", lacks[96] = "", prebuilt[8] = "";
	const char *least;

	log_fact(log, len, "chip", chip, sizeof chip);
	log_fact(log, len, "prebuilt", prebuilt, sizeof prebuilt);
	least = chip_nvcc(chip);
	if (strcmp(prebuilt, "true") == 0)
		return false;
	if (ask->lane->api == API_CUDA && nvcc[0] != '\0' && least[0] != '\0' &&
	    chip_version_compare(nvcc, least) < 0) {
		judgement_set(out, REASON_TOOLCHAIN_TOO_OLD, "nvcc %s does not know %s, which needs %s", nvcc,
			chip, least);
		return true;
	}
	if (ask->lane->api != API_VULKAN || ask->lane->place != PLACE_HERE)
		return false;
	if (!log_fact(log, len, "vulkanHeaders", headers, sizeof headers) || strcmp(headers, "none") == 0)
		judgement_set(out, REASON_TOOL_MISSING, "Vulkan's headers are not installed");
	else if (log_fact(log, len, "vulkanLacks", lacks, sizeof lacks))
		judgement_set(out, REASON_VULKAN_HEADERS_TOO_OLD, "Vulkan's headers %.150s lack %s", headers,
			lacks);
	else
		return false;
	return true;
}

static void
judge_toolchain(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct section s;
	size_t pos = 0, used = 0;
	char list[256] = "", name[64], version[32], nvcc[32] = "", status[96];
	int r, n = 0;

	if (judge_decided(log, len, out))
		return;
	while ((r = transcript_next(log, len, &pos, &s, NULL)) == 1) {
		if (strcmp(s.kind, "run") == 0) {
			judge_tool_name(&s, name, sizeof name);
			if (s.exit != 0) {
				ntstatus_show(s.signal ? s.signal : s.exit, status, sizeof status);
				judgement_set(out, REASON_TOOL_BROKEN, "%s --version ended with %s %s",
					name, s.signal ? "signal" : "exit", status);
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
			if (strcmp(name, "nvcc") == 0)
				snprintf(nvcc, sizeof nvcc, "%s", version);
			n++;
		}
		section_fini(&s);
	}
	if (r < 0 || n == 0)
		judgement_set(out, REASON_PROBE_UNREADABLE, "the toolchain log has no command");
	else if (!toolchain_old(log, len, ask, nvcc, out))
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

/* The best fit among the facts "code=FILE NAME xN". */
static enum chip_fit
code_fit(const struct section *s, const char *chip, const char *features, char *list, size_t size)
{
	const char *p;
	char line[256], name[64];
	enum chip_fit best = CHIP_NO, fit;
	size_t pos = 0, n, used;

	while (section_line(s, &pos, &p, &n)) {
		if (n < 6 || n >= sizeof line || strncmp(p, "code=", 5) != 0)
			continue;
		snprintf(line, sizeof line, "%.*s", (int)n, p);
		if (sscanf(line + 5, "%*s %63s", name) != 1)
			continue;
		fit = chip_fits(name, chip, features);
		best = fit > best ? fit : best;
		used = strlen(list);
		if (strstr(list, name) == NULL && used + strlen(name) + 3 < size)
			snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
	}
	return best;
}

/* The device must have code of its own in what was built, or be told to compile PTX. */
static void
judge_code(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	char chip[48] = "", features[64] = "", list[160] = "", detail[320];
	struct section s;
	size_t pos = 0;
	enum chip_fit best = CHIP_NO, fit;
	char packed[128] = "";

	log_fact(log, len, "codeCompressed", packed, sizeof packed);
	log_fact(log, len, "chip", chip, sizeof chip);
	log_fact(log, len, "chipFeatures", features, sizeof features);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "facts") == 0) {
			fit = code_fit(&s, chip, features, list, sizeof list);
			best = fit > best ? fit : best;
		}
		section_fini(&s);
	}
	memcpy(detail, out->detail, sizeof detail);
	/* Only AMD's bundles are compressed, and AMD has no PTX: what then runs on the device,
	 * as the gates after this one demand, has code for it. */
	if (best == CHIP_NO && packed[0] != '\0')
		judgement_set(out, REASON_NONE, "%s; code for %s, and compressed code that names no chip: %s",
			detail, list[0] ? list : "no chip that is named", packed);
	else if (best == CHIP_NO)
		judgement_set(out, REASON_NO_CODE_FOR_DEVICE, "%s has code for %s, the device is %s",
			ask->lane->library, list[0] ? list : "no chip", chip[0] ? chip : "unknown");
	else
		judgement_set(out, REASON_NONE, "%s; code for %s%s", detail, list,
			best == CHIP_JIT ? ", compiled from PTX by the driver" : "");
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
	else if (ask->lane->library[0] != '\0' && ask->lane->arch_flag[0] != '\0')
		judge_code(log, len, ask, out);
}

static const judge_fn judges[GATE_COUNT] = {
	[GATE_HOST] = judge_host,
	[GATE_DEVICE] = judge_device,
	[GATE_TOOLCHAIN] = judge_toolchain,
	[GATE_MODEL] = judge_said,
	[GATE_SOURCE] = judge_said,
	[GATE_BUILD] = judge_build,
	[GATE_FIXTURES] = judge_fixtures,
	[GATE_OP_PARITY] = judge_ops,
	[GATE_ROUTES] = judge_routes,
	[GATE_GRAPH_SMOKE] = judge_smoke,
	[GATE_CONTROL] = judge_control,
	[GATE_MTP] = judge_mtp,
	[GATE_REPORT] = judge_said,
};

/* Gates that a phone has its own way for. */
static const judge_fn phone_judges[GATE_COUNT] = {
	[GATE_DEVICE] = judge_phone_device,
	[GATE_TOOLCHAIN] = judge_phone_toolchain,
	[GATE_FIXTURES] = judge_phone_fixtures,
	[GATE_OP_PARITY] = judge_phone_evidence,
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
	bool phone = ask->lane->place == PLACE_ADB && phone_judges[g] != NULL;
	struct bound b;
	struct judgement changed;

	(phone ? phone_judges : judges)[g](log, len, ask, out);
	if (out->outcome != OUTCOME_PASS && out->outcome != OUTCOME_FAIL)
		return;
	/* a device that went away in the middle makes a failure of the gate no failure of the code */
	if (bound_gate(ask->lane, g) && bound_judge(log, len, ask->lane, &b, &changed) != REASON_NONE)
		*out = changed;
}
