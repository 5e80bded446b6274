#include "agent/work.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gate.h"
#include "agent/machine.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define LOG_CAP (16u << 20)

static volatile sig_atomic_t cancelled; /* the signal, 0: none */

static void
on_signal(int sig)
{
	if (cancelled == 0)
		cancelled = sig;
}

/* Why a job is asked to stop: the server's signals say it. */
static enum reason
stop_reason(void)
{
	return cancelled == SIGALRM ? REASON_TIMEOUT
		: cancelled == SIGHUP ? REASON_AGENT_DIED : REASON_CANCELLED;
}

bool
work_cancelled(void)
{
	return cancelled != 0;
}

int
work_tick(void *arg)
{
	(void)arg;
	return cancelled;
}

static void
signals_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	static const int sigs[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM};
	size_t i;

	sigemptyset(&sa.sa_mask);
	for (i = 0; i < str_count(sigs); i++)
		sigaction(sigs[i], &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file limit is a full disk, not a death */
}

/* ---- names and artifacts ---- */

int
work_name(const struct work *w, const char *stem, const char *ext, char *out, size_t size,
	struct err *e)
{
	char number[16] = "";

	if (w->number > 1)
		snprintf(number, sizeof number, ".%d", w->number);
	return str_fmt(out, size, e, "%s-%s%s.%s", w->target ? w->target->name : w->lane->name,
		stem, number, ext);
}

int
work_path(const struct work *w, const char *name, char *out, size_t size, struct err *e)
{
	return str_fmt(out, size, e, "%s/%s", w->ask->log_dir, name);
}

void
work_artifact(struct work *w, const char *name, const char *sha256, uint64_t bytes,
	uint64_t dropped)
{
	struct artifact *a;

	if (w->artifact_count == GATE_MAX_ARTIFACTS) {
		event_note(w->ask->events, "report", "more files than a report lists");
		return;
	}
	a = &w->artifacts[w->artifact_count++];
	snprintf(a->name, sizeof a->name, "%s", name);
	snprintf(a->sha256, sizeof a->sha256, "%s", sha256);
	a->bytes = bytes;
	a->dropped = dropped;
}

void
work_artifact_file(struct work *w, const char *name, char sha[DIGEST_HEX])
{
	char path[GATE_PATH], hex[DIGEST_HEX];
	uint64_t bytes;

	if (work_path(w, name, path, sizeof path, NULL) ||
	    digest_file(path, hex, &bytes, NULL))
		return;
	work_artifact(w, name, hex, bytes, 0);
	if (sha != NULL)
		memcpy(sha, hex, DIGEST_HEX);
}

/* ---- helpers for gates ---- */

enum reason
gate_reason_of(const struct err *e)
{
	switch (e->code) {
	case ERR_NOSPACE:
		return REASON_DISK_FULL;
	case ERR_TIMEOUT:
		return REASON_TIMEOUT;
	case ERR_CANCELLED:
		return REASON_CANCELLED;
	default:
		return REASON_INTERNAL;
	}
}

struct transcript *
gate_open(struct work *w, struct gate *g, const char *stem)
{
	struct transcript *t = NULL;
	struct err e = {0};
	char path[GATE_PATH];
	cJSON *o;

	if (work_name(w, stem, "log", g->log_name, sizeof g->log_name, &e) ||
	    work_path(w, g->log_name, path, sizeof path, &e) ||
	    transcript_open(path, w->job->nonce, w->ask->log_cap ? w->ask->log_cap : LOG_CAP,
		    &t, &e)) {
		judgement_set(&g->j, gate_reason_of(&e), "no log: %s", e.msg);
		g->log_name[0] = '\0';
		return NULL;
	}
	if ((o = cJSON_CreateObject()) != NULL) {
		json_add_str(o, "gate", g->name);
		json_add_str(o, "name", g->log_name);
	}
	event_add(w->ask->events, "log", o);
	if (gate_look(w, g, t, &e))
		gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	return t;
}

void
gate_factf(struct transcript *t, const char *key, const char *fmt, ...)
{
	char value[8192];
	va_list ap;
	struct err e = {0};

	va_start(ap, fmt);
	vsnprintf(value, sizeof value, fmt, ap);
	va_end(ap);
	/* a write error stays in the transcript and comes back when it is closed */
	if (transcript_fact(t, key, value, &e))
		return;
}

void
gate_say(struct transcript *t, enum reason r, const char *hint, const char *fmt, ...)
{
	char detail[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	gate_factf(t, "reason", "%s", reason_name(r));
	gate_factf(t, "detail", "%s", detail);
	if (hint != NULL && hint[0] != '\0')
		gate_factf(t, "hint", "%s", hint);
}

void
gate_done(struct transcript *t, const char *fmt, ...)
{
	char detail[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	gate_factf(t, "detail", "%s", detail);
	gate_factf(t, "done", "true");
}

static uint64_t
log_dropped(const char *log, size_t len)
{
	struct section s;
	size_t pos = 0;
	uint64_t dropped = 0;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		dropped += s.dropped;
		section_fini(&s);
	}
	return dropped;
}

void
gate_close(struct work *w, struct gate *g, struct transcript *t)
{
	struct judge_ask ask = {.lane = w->lane, .suite = w->suite, .smoke = g->smoke,
		.family = g->family[0] ? g->family : NULL,
		.only_cache = w->job->override[OVERRIDE_CACHE_TYPES] != NULL &&
				strcmp(g->family, "baseline") != 0 ? g->family : NULL,
		.min_tokens = w->job->override[OVERRIDE_TOKENS] ? 0 : w->suite->tokens};
	char path[GATE_PATH];
	char *text = NULL;
	size_t len = 0;
	uint64_t bytes = 0;
	struct err e = {0};
	bool whole;

	if (gate_look(w, g, t, &e))
		gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	whole = transcript_close(t, g->log_sha256, &bytes, &e) == 0;
	if (g->log_sha256[0] == '\0' || work_path(w, g->log_name, path, sizeof path, NULL) ||
	    plat_read_file(path, SIZE_MAX / 4, &text, &len, whole ? &e : NULL)) {
		judgement_set(&g->j, whole ? REASON_INTERNAL : gate_reason_of(&e), "%s", e.msg);
		g->log_name[0] = '\0';
		return;
	}
	g->log_bytes = bytes;
	ask.smoke_read = g->smoke_read = g->smoke != NULL && smoke_facts_read(text, len, g->smoke);
	work_artifact(w, g->log_name, g->log_sha256, bytes, log_dropped(text, len));
	if (!whole)
		judgement_set(&g->j, gate_reason_of(&e), "the log is not whole: %s", e.msg);
	else
		judge_gate(g->id, text, len, &ask, &g->j);
	free(text);
}

int
gate_keep(void *buf, int stream, const char *p, size_t n)
{
	struct buf *b = buf;
	size_t room = b->max - b->len;

	(void)stream;
	return buf_add(b, p, n < room ? n : room, NULL);
}

/* probes[]: who was asked what, and the digest of the answer. */
static int
probe_note(struct work *w, const char *tool, const char *path, const char *option,
	const struct proc_result *r, const struct buf *text, struct err *e)
{
	cJSON *o = cJSON_CreateObject(), *list;
	const char *said = text->data ? text->data : "";
	char file[DIGEST_HEX] = "", raw[DIGEST_HEX], version[160];

	digest_bytes(said, text->len, raw);
	str_show(version, sizeof version, said, strcspn(said, "\n"));
	if (digest_file(path, file, NULL, NULL))
		file[0] = '\0';
	if (o != NULL && json_add_str(o, "tool", tool) && json_add_str(o, "path", path) &&
	    (list = json_add_array(o, "argv")) != NULL &&
	    cJSON_AddItemToArray(list, cJSON_CreateString(path)) &&
	    cJSON_AddItemToArray(list, cJSON_CreateString(option)) &&
	    json_add_str(o, "version", version) && json_add_int(o, "exit", r->exit) &&
	    json_add_str(o, "textSha256", raw) &&
	    json_add_str(o, "fileSha256", file[0] ? file : NULL) &&
	    cJSON_AddItemToArray(w->probes, o))
		return 0;
	cJSON_Delete(o);
	return err_set(e, ERR_NOMEM, "no memory for a probe");
}

int
gate_probe_tool(struct work *w, struct transcript *t, const char *tool, const char *option,
	struct err *e)
{
	char path[GATE_PATH];
	const char *argv[] = {path, option, NULL};
	struct buf said;
	struct proc_spec spec = {.argv = argv, .timeout_ms = 30000, .tick = work_tick,
		.chunk = gate_keep, .arg = &said};
	struct proc_result r;
	int rc;

	if (plat_find_tool(tool, path, sizeof path, e))
		return -1;
	buf_init(&said, 65536);
	rc = transcript_run(t, &spec, NULL, &r, e);
	if (rc == 0)
		rc = probe_note(w, tool, path, option, &r, &said, e);
	buf_fini(&said);
	return rc;
}

/* ---- the report gate ---- */

/* Looks once more at what must not have changed while the job ran. */
void
gate_report(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "report");
	struct err e = {0};
	enum reason why = REASON_NONE;
	char boot[40];

	if (t == NULL)
		return;
	plat_boot_id(boot);
	gate_factf(t, "bootId", "%s", boot);
	if (w->ask->key == NULL) {
		why = REASON_NOT_SIGNED;
		err_set(&e, ERR_REFUSED, "there is no key to sign with");
	} else if (w->model_known && model_stamp(w->model_path) != w->model_stamp) {
		why = REASON_MODEL_CHANGED;
		err_set(&e, ERR_INTEGRITY, "%s changed while the job ran", w->model_path);
	} else if (w->build_known && build_again(&w->build, &e)) {
		why = REASON_STALE_BINARY;
		err_wrap(&e, "the engine is not the one that was proved");
	} else if (strcmp(boot, w->boot_id) != 0) {
		why = REASON_DEVICE_VANISHED;
		err_set(&e, ERR_IO, "the host was started anew");
	}
	if (why != REASON_NONE)
		gate_say(t, why, e.hint, "%s", e.msg);
	else
		gate_done(t, "signed by %.12s%s", sign_key_id(w->ask->key),
			w->model_known ? ", the model is the one that was hashed" : "");
	gate_close(w, g, t);
}

/* ---- the order of things ---- */

static void (*const runs[GATE_COUNT])(struct work *, struct gate *) = {
	[GATE_HOST] = gate_host,
	[GATE_DEVICE] = gate_device,
	[GATE_TOOLCHAIN] = gate_toolchain,
	[GATE_MODEL] = gate_model,
	[GATE_SOURCE] = gate_source,
	[GATE_BUILD] = gate_build,
	[GATE_FIXTURES] = gate_fixtures,
	[GATE_OP_PARITY] = gate_ops,
	[GATE_ROUTES] = gate_routes,
	[GATE_GRAPH_SMOKE] = gate_smoke,
	[GATE_CONTROL] = gate_control,
	[GATE_MTP] = gate_mtp,
	[GATE_REPORT] = gate_report,
};

/* Gates that a phone has its own way for. */
static void (*const phone_runs[GATE_COUNT])(struct work *, struct gate *) = {
	[GATE_DEVICE] = gate_phone_device,
	[GATE_TOOLCHAIN] = gate_phone_toolchain,
	[GATE_FIXTURES] = gate_phone_fixtures,
	[GATE_OP_PARITY] = gate_phone_evidence,
};

static struct gate *
gate_add(struct work *w, enum gate_id id, const char *family)
{
	struct gate *g;

	if (w->gate_count == VERDICT_MAX_GATES)
		return NULL;
	g = &w->gates[w->gate_count++];
	g->id = id;
	snprintf(g->family, sizeof g->family, "%s", family);
	snprintf(g->name, sizeof g->name, "%s%s%s", gates[id].name, family[0] ? "/" : "",
		family);
	return g;
}

bool
gate_planned(const struct work *w, enum gate_id id)
{
	int i;

	for (i = 0; i < w->gate_count; i++)
		if (w->gates[i].id == id)
			return true;
	return false;
}

/* One gate per family, or per cache type of an override; a baseline before them unless
 * one of them is it. */
static int
smoke_gates(struct work *w, struct err *e)
{
	const struct suite *s = w->suite;
	const char *list = w->job->override[OVERRIDE_CACHE_TYPES];
	char *copy = NULL, *words[SUITE_MAX_FAMILIES];
	bool has_baseline = false;
	int i, k, n;

	if (list == NULL) {
		for (i = 0; i < s->family_count; i++)
			for (k = 0; k < s->families[i].alias_count; k++)
				has_baseline |= strcmp(s->families[i].aliases[k], s->baseline) == 0;
		if (!has_baseline)
			gate_add(w, GATE_GRAPH_SMOKE, "baseline");
		for (i = 0; i < s->family_count; i++)
			gate_add(w, GATE_GRAPH_SMOKE, s->families[i].name);
		return 0;
	}
	if ((copy = strdup(list)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for cache types");
	n = str_split(copy, true, words, SUITE_MAX_FAMILIES);
	for (i = 0; i < n; i++)
		has_baseline |= strcmp(words[i], s->baseline) == 0;
	if (n > 0 && !has_baseline)
		gate_add(w, GATE_GRAPH_SMOKE, "baseline");
	for (i = 0; i < n; i++)
		if (strlen(words[i]) >= ELOG_TYPE ||
		    strspn(words[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789._+-") != strlen(words[i]))
			n = -1;
		else
			gate_add(w, GATE_GRAPH_SMOKE, words[i]);
	free(copy);
	return n > 0 ? 0 : err_set(e, ERR_PARSE, "the list of cache types is not usable: \"%.60s\"",
		list);
}

/* One for each family that is smoked and has a ceiling. */
static void
control_gates(struct work *w)
{
	int i, n = w->gate_count;

	for (i = 0; i < n; i++)
		if (w->gates[i].id == GATE_GRAPH_SMOKE && suite_ceiling(w->suite, w->gates[i].family) > 0)
			gate_add(w, GATE_CONTROL, w->gates[i].family);
}

static int
gates_plan(struct work *w, struct err *e)
{
	int i;

	for (i = 0; i < GATE_COUNT; i++) {
		if ((w->lane->gates & GATE_BIT(i)) == 0 || !suite_wants(w->suite, (enum gate_id)i))
			continue;
		if (i == GATE_GRAPH_SMOKE) {
			if (smoke_gates(w, e))
				return -1;
		} else if (i == GATE_CONTROL) {
			control_gates(w);
		} else {
			gate_add(w, (enum gate_id)i, "");
		}
	}
	return 0;
}

/* The first gate that g needs and that neither passed nor is a prebuilt engine's. */
static const struct gate *
unmet(const struct work *w, const struct gate *g)
{
	unsigned needs = gates[g->id].needs;
	const struct gate *d;

	if (g->id == GATE_BUILD && w->prebuilt)
		needs = GATE_BIT(GATE_HOST);
	for (d = w->gates; d < g; d++)
		if ((needs & GATE_BIT(d->id)) != 0 &&
		    (!gates[d->id].family || !gates[g->id].family || strcmp(d->family, g->family) == 0) &&
		    d->j.outcome != OUTCOME_PASS &&
		    d->j.reason != REASON_PREBUILT)
			return d;
	return NULL;
}

static bool
asked(const struct work *w, const struct gate *g)
{
	return w->job->only == ONLY_ALL || (gates[g->id].only & (1u << w->job->only)) != 0;
}

static void
gate_event(struct work *w, const struct gate *g, bool end)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL)
		return;
	json_add_str(o, "gate", g->name);
	json_add_str(o, "state", end ? "end" : "start");
	if (end) {
		json_add_str(o, "outcome", outcome_name(g->j.outcome));
		json_add_str(o, "reasonCode", g->j.reason ? reason_name(g->j.reason) : NULL);
		json_add_text(o, "detail", g->j.detail, strlen(g->j.detail));
		json_add_text(o, "hint", g->j.hint, strlen(g->j.hint));
		json_add_int(o, "ms", g->ms);
		json_add_str(o, "log", g->log_name[0] ? g->log_name : NULL);
		json_add_str(o, "logSha256", g->log_name[0] ? g->log_sha256 : NULL);
		json_add_int(o, "logBytes", (int64_t)g->log_bytes);
	}
	event_add(w->ask->events, "gate", o);
}

static void
gate_run(struct work *w, struct gate *g)
{
	const struct gate *d = unmet(w, g);
	int64_t mono = plat_mono_ms();

	if (!asked(w, g)) {
		judgement_set(&g->j, REASON_NOT_ASKED, "not asked for by --only %s", only_name(w->job->only));
	} else if (w->skip_smoke && (g->id == GATE_GRAPH_SMOKE || g->id == GATE_CONTROL)) {
		judgement_set(&g->j, REASON_SKIP_SWITCH, "%s=1", w->lane->skip_switch);
	} else if (cancelled && g->id != GATE_REPORT) {
		judgement_set(&g->j, stop_reason(), "the job was stopped before this gate");
	} else if (d != NULL) {
		judgement_set(&g->j, REASON_DEPENDS, "needs %s, which is %s", d->name,
			outcome_name(d->j.outcome));
	} else {
		g->begun = plat_now_ms();
		gate_event(w, g, false);
		if (w->lane->place == PLACE_ADB && phone_runs[g->id] != NULL)
			phone_runs[g->id](w, g);
		else
			runs[g->id](w, g);
		g->ended = plat_now_ms();
		g->ms = plat_mono_ms() - mono;
		/* what a cancelled gate says of itself is about the cancelling */
		if (cancelled && g->j.outcome != OUTCOME_PASS && g->id != GATE_REPORT &&
		    g->j.reason != stop_reason())
			judgement_set(&g->j, stop_reason(), "the job was stopped in this gate");
	}
	gate_event(w, g, true);
}

/* ---- overrides, switches ---- */

static bool
override_add(struct work *w, const char *name, const char *value, const char *from)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && json_add_str(o, "name", name) &&
	    json_add_text(o, "value", value, strlen(value)) && json_add_str(o, "from", from) &&
	    cJSON_AddItemToArray(w->overrides, o))
		return true;
	cJSON_Delete(o);
	return false;
}

static bool
switch_is(const char *name, const char *value)
{
	return name[0] != '\0' && str_eq(getenv(name), value);
}

static int
switches_read(struct work *w, struct err *e)
{
	int i;

	w->skip_build = str_eq(plat_env("ELIZA_MTP_SKIP_BUILD", NULL), "1") ||
		switch_is(w->lane->build_switch, "0");
	w->prebuilt = w->skip_build || w->job->prebuilt != NULL;
	w->skip_smoke = switch_is(w->lane->skip_switch, "1");
	for (i = 0; i < OVERRIDE_COUNT; i++)
		if (w->job->override[i] != NULL && !override_add(w, overrides[i].key,
				w->job->override[i], w->ask->overrides_from ? w->ask->overrides_from : "job"))
			return err_set(e, ERR_NOMEM, "no memory for overrides");
	return 0;
}

/* Claims the smallest number whose summary is not there yet: no run overwrites another. */
static int
number_claim(struct work *w, struct err *e)
{
	char name[256], path[GATE_PATH];
	int fd;

	w->number = 1;
	if (!w->ask->runner_names)
		return 0;
	for (; w->number < 100000; w->number++) {
		if (work_name(w, "graph-smoke", "summary", name, sizeof name, e) ||
		    work_path(w, name, path, sizeof path, e))
			return -1;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (errno != EEXIST)
			return err_errno(e, errno, "%s", path);
	}
	return err_set(e, ERR_LIMIT, "too many runs in %s", w->ask->log_dir);
}

static int
work_init(struct work *w, const struct work_ask *ask, struct err *e)
{
	struct utsname u;

	w->ask = ask;
	w->job = ask->job;
	w->suite = ask->job->suite;
	w->lane = ask->job->lane;
	w->started_ms = plat_now_ms();
	w->source.lock = -1;
	w->build.lock = -1;
	if (machine_uname(&u) == 0)
		w->target = lane_target(w->lane, u.sysname, u.machine);
	plat_boot_id(w->boot_id);
	w->probes = cJSON_CreateArray();
	w->fixtures = cJSON_CreateArray();
	w->controls = cJSON_CreateArray();
	w->smokes = cJSON_CreateArray();
	w->overrides = cJSON_CreateArray();
	if (!w->probes || !w->fixtures || !w->controls || !w->smokes || !w->overrides)
		return err_set(e, ERR_NOMEM, "no memory for a report");
	if (plat_mkdirs(ask->log_dir, 0755, e) || plat_mkdirs(ask->cache_dir, 0755, e))
		return -1;
	return switches_read(w, e) || number_claim(w, e) || gates_plan(w, e) ? -1 : 0;
}

static void
work_fini(struct work *w)
{
	if (w->source_known)
		source_release(&w->source);
	if (w->build_known)
		build_release(&w->build);
	cJSON_Delete(w->probes);
	cJSON_Delete(w->fixtures);
	cJSON_Delete(w->controls);
	cJSON_Delete(w->kernels);
	cJSON_Delete(w->code);
	cJSON_Delete(w->cache_controls);
	cJSON_Delete(w->ops);
	cJSON_Delete(w->routes);
	cJSON_Delete(w->smokes);
	cJSON_Delete(w->overrides);
	free(w->help);
}

/* The agent's own claim: the same rule that the controller applies. */
static void
claim(const struct work *w, struct verdict *v)
{
	int i;

	memset(v, 0, sizeof *v);
	for (i = 0; i < w->gate_count; i++) {
		struct verdict_gate *g = &v->gates[v->gate_count++];

		memcpy(g->name, w->gates[i].name, sizeof g->name);
		g->id = w->gates[i].id;
		g->j = w->gates[i].j;
	}
	memcpy(v->device_class, w->device.device_class, sizeof v->device_class);
}

static int
work_report(struct work *w, struct work_result *out, struct err *e)
{
	struct verdict *v = malloc(sizeof *v);
	cJSON *draft = NULL, *report = NULL;
	int rc = -1;

	if (v == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a verdict");
	claim(w, v);
	/* the decision reads the report, and the report states the decision */
	if ((draft = report_make(w, v)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the report");
		goto out;
	}
	verdict_decide(draft, w->suite, w->ask->key != NULL, v);
	if (report_delegate(w, v, out, e))
		goto out;
	if ((report = report_make(w, v)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the report");
		goto out;
	}
	out->outcome = v->outcome;
	out->reason = v->reason;
	out->recordable = v->recordable;
	out->exit = v->exit;
	snprintf(out->detail, sizeof out->detail, "%.319s",
		v->outcome == OUTCOME_PASS && v->why_count > 0 ? v->why[0] : v->detail);
	rc = report_write(w, report, out, e);
out:
	cJSON_Delete(draft);
	cJSON_Delete(report);
	free(v);
	return rc;
}

int
work_run(const struct work_ask *ask, struct work_result *out, struct err *e)
{
	struct work *w = calloc(1, sizeof *w);
	bool smoked = false;
	int i, rc = -1;

	memset(out, 0, sizeof *out);
	if (w == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	signals_catch();
	if (work_init(w, ask, e) || report_paths(w, out, e))
		goto out;
	for (i = 0; i < w->gate_count; i++) {
		if (w->gates[i].id == GATE_REPORT && !smoked) {
			smoked = true;
			smoke_finish(w);
			work_whole_log(w);
		}
		gate_run(w, &w->gates[i]);
	}
	rc = work_report(w, out, e);
out:
	work_fini(w);
	free(w);
	return rc;
}

/* ---- a job whose worker died ---- */

int
work_post_mortem(const struct work_ask *ask, const char *events_path, enum reason why,
	const char *detail, struct work_result *out, struct err *e)
{
	struct work *w = calloc(1, sizeof *w);
	struct gate *g;
	int rc = -1;

	memset(out, 0, sizeof *out);
	if (w == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	signals_catch();
	if (work_init(w, ask, e) || report_paths(w, out, e))
		goto out;
	work_from_events(w, events_path);
	for (g = w->gates; g < w->gates + w->gate_count; g++) {
		if (g->ended != 0)
			continue;
		judgement_set(&g->j, why, "%s%s", g->begun ? "cut off here: " : "not reached: ",
			detail);
		work_cut_log(w, g);
		gate_event(w, g, true);
	}
	if (!ask->runner_names)
		work_strays(w);
	rc = work_report(w, out, e);
out:
	work_fini(w);
	free(w);
	return rc;
}
