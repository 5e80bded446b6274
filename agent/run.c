#include "agent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/build.h"
#include "agent/machine.h"
#include "agent/serve.h"
#include "agent/variables.h"
#include "agent/work.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define PATH_BYTES 4096

/* ---- what both commands share ---- */

struct place {
	struct conf conf;
	char state[PATH_BYTES], cache[PATH_BYTES], key_path[PATH_BYTES];
	struct sign_key *key;
};

static int
place_open(struct place *p, const char *config, const char *state, struct err *e)
{
	p->key = NULL;
	if (conf_load(config, &p->conf, e) ||
	    serve_state_dir(&p->conf, state, p->state, sizeof p->state, e) ||
	    plat_mkdirs(p->state, 0750, e) ||
	    str_fmt(p->cache, sizeof p->cache, e, "%s/cache", p->state) ||
	    str_fmt(p->key_path, sizeof p->key_path, e, "%s/key.pem", p->state))
		return -1;
	return sign_key_open(p->key_path, true, &p->key, e);
}

static void
ask_fill(struct work_ask *ask, const struct place *p, const struct job *j)
{
	const uint64_t *v = p->conf.v;

	ask->job = j;
	ask->key = p->key;
	ask->cache_dir = p->cache;
	ask->log_cap = v[CONF_LOG_CAP];
	ask->build_timeout_ms = (uint32_t)v[CONF_BUILD_TIMEOUT] * 1000;
	ask->smoke_timeout_ms = (uint32_t)v[CONF_SMOKE_TIMEOUT] * 1000;
	ask->fixture_timeout_ms = (uint32_t)v[CONF_FIXTURE_TIMEOUT] * 1000;
}

/* ---- run ---- */

struct run_values {
	const char *report, *model, *source, *source_ref, *suite, *only, *log_dir, *prebuilt;
	const char *config, *state, *device, *draft_model;
	struct opt_list set;
	bool json;
};

static const char *const onlys[] = {"probe", "build", "fixtures", "smoke", NULL};
#define O(member) offsetof(struct run_values, member)
static const struct opt run_opts[] = {
	{"report", 'r', OPT_TEXT, O(report), .word = "PATH",
		.help = "write the report there; not being able to is not a pass (ELIZA_MTP_HARDWARE_REPORT)"},
	{"suite", 's', OPT_TEXT, O(suite), .fallback = "eliza-1", .word = "NAME|FILE",
		.help = "what to run: eliza-1, eliza-1-gemma, llama.cpp, or a suite file"},
	{"model", 'm', OPT_TEXT, O(model), .word = "PATH",
		.help = "the GGUF model (ELIZA_MTP_SMOKE_MODEL)"},
	{"device", 'd', OPT_TEXT, O(device), .word = "ID",
		.help = "the device: UUID, PCI address, serial or index; else the first that counts"},
	{"draft-model", 0, OPT_TEXT, O(draft_model), .word = "PATH",
		.help = "the drafter of speculative decoding (ELIZA_MTP_SMOKE_DRAFT_MODEL)"},
	{"source", 'S', OPT_TEXT, O(source), .word = "PATH",
		.help = "the engine's source: a folder, a git URL or a git bundle (ELIZA_MTP_LLAMA_DIR)"},
	{"source-ref", 0, OPT_TEXT, O(source_ref), .word = "REF",
		.help = "branch, tag or commit of the source"},
	{"only", 0, OPT_CHOICE, O(only), .choices = onlys, .word = "PART",
		.help = "only these gates and what they need; never recordable"},
	{"prebuilt", 0, OPT_TEXT, O(prebuilt), .word = "DIR",
		.help = "an engine that was built elsewhere; never recordable"},
	{"set", 0, OPT_LIST, O(set), .word = "KEY=VALUE",
		.help = "override for bring-up: cacheTypes, tokens, ngl, prompt, extraArgs, cmakeFlags, driver"},
	{"log-dir", 0, OPT_TEXT, O(log_dir), .word = "DIR",
		.help = "where logs and summary go (ELIZA_MTP_HARDWARE_REPORT_DIR)"},
	{"json", 0, OPT_FLAG, O(json), .help = "one JSON event a line on standard output"},
	{"config", 'c', OPT_TEXT, O(config), .word = "FILE", .help = "the configuration file"},
	{"state", 0, OPT_TEXT, O(state), .word = "DIR", .help = "the state folder: key and caches"},
};

int
run_log_dir(const char *given, char *out, size_t size, struct err *e)
{
	static const char verify[] = "packages/inference/verify";
	const char *env = plat_env("ELIZA_MTP_HARDWARE_REPORT_DIR", NULL);
	char cwd[PATH_BYTES], *slash;

	if (given != NULL || env != NULL)
		return str_copy(out, size, given ? given : env, e);
	if (getcwd(cwd, sizeof cwd) == NULL)
		return err_set(e, ERR_IO, "the current folder can not be named");
	do {
		if (str_fmt(out, size, NULL, "%s/%s", cwd, verify) == 0 && plat_is_dir(out))
			return str_fmt(out, size, e, "%s/%s/hardware-results", cwd, verify);
		if ((slash = strrchr(cwd, '/')) != NULL)
			*slash = '\0';
	} while (slash != NULL);
	return str_copy(out, size, "./hardware-results", e);
}

static int
suite_add(cJSON *o, const char *suite, struct err *e)
{
	struct suite *s = NULL;
	bool ok;

	if (!suite_is_path(suite))
		return json_add_str(o, "suite", suite) ? 0 : err_set(e, ERR_NOMEM, "no memory");
	if (suite_load(suite, &s, e))
		return -1;
	ok = json_add_str(o, "suite", s->name) && json_add_str(o, "suiteDocument", s->text);
	suite_free(s);
	return ok ? 0 : err_set(e, ERR_NOMEM, "no memory for a job");
}

static bool
override_known(const char *key)
{
	int i;

	for (i = 0; i < OVERRIDE_COUNT; i++)
		if (str_eq(key, overrides[i].key))
			return true;
	return false;
}

/* The old variables, then what was --set over them. */
static int
overrides_add(cJSON *o, const struct run_values *v, struct err *e)
{
	cJSON *list = cJSON_CreateObject();
	const char *value, *eq;
	char key[64];
	int i;

	if (list == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	for (i = 0; i < OVERRIDE_COUNT; i++)
		if ((value = plat_env(overrides[i].variable, NULL)) != NULL &&
		    !json_add_str(list, overrides[i].key, value))
			goto nomem;
	for (i = 0; i < v->set.count; i++) {
		if ((eq = strchr(v->set.item[i], '=')) == NULL || eq - v->set.item[i] > 60) {
			cJSON_Delete(list);
			err_set(e, ERR_USAGE, "--set %.40s: KEY=VALUE is wanted", v->set.item[i]);
			return err_hint(e, "--set tokens=8");
		}
		memcpy(key, v->set.item[i], (size_t)(eq - v->set.item[i]));
		key[eq - v->set.item[i]] = '\0';
		if (!override_known(key)) {
			cJSON_Delete(list);
			err_set(e, ERR_USAGE, "--set: unknown field \"overrides.%.60s\"", key);
			return err_hint(e, "cacheTypes, tokens, ngl, prompt, extraArgs, cmakeFlags, driver");
		}
		cJSON_DeleteItemFromObjectCaseSensitive(list, key);
		if (!json_add_str(list, key, eq + 1))
			goto nomem;
	}
	if (list->child == NULL) {
		cJSON_Delete(list);
		return 0;
	}
	return json_add(o, "overrides", list) ? 0 : err_set(e, ERR_NOMEM, "no memory for a job");
nomem:
	cJSON_Delete(list);
	return err_set(e, ERR_NOMEM, "no memory for a job");
}

static bool
text_add(cJSON *o, const char *key, const char *given, const char *variable)
{
	const char *v = given != NULL ? given : variable != NULL ? plat_env(variable, NULL) : NULL;

	return v == NULL || v[0] == '\0' || json_add_str(o, key, v);
}

/* The phone runner's switches for a part of its work; neither can end well by itself. */
static const char *
phone_part(const char *lane)
{
	if (strcmp(lane, "android") != 0)
		return NULL;
	return str_eq(getenv("ELIZA_ANDROID_VULKAN_PREFLIGHT_ONLY"), "1") ? "probe"
		: str_eq(getenv("ELIZA_ANDROID_VULKAN_STANDALONE_ONLY"), "1") ? "fixtures" : NULL;
}

/* The engine runs in a folder of its own, where a relative path would be another file. */
static int
drafter_add(cJSON *o, const char *given, struct err *e)
{
	const char *v = given != NULL ? given : plat_env("ELIZA_MTP_SMOKE_DRAFT_MODEL", NULL);
	char path[PATH_BYTES];

	if (v == NULL || v[0] == '\0')
		return 0;
	if (plat_absolute(v, path, sizeof path, e))
		return err_wrap(e, "--draft-model");
	return json_add_str(o, "draftModel", path) ? 0 : err_set(e, ERR_NOMEM, "no memory for a job");
}

static int
job_make(const struct run_values *v, const char *lane, struct job **out, struct err *e)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL || !json_add_str(o, "lane", lane) ||
	    !text_add(o, "model", v->model, "ELIZA_MTP_SMOKE_MODEL") ||
	    !text_add(o, "source", v->source, "ELIZA_MTP_LLAMA_DIR") ||
	    !text_add(o, "sourceRef", v->source_ref, NULL) ||
	    !text_add(o, "device", v->device, NULL) ||
	    !text_add(o, "only", v->only ? v->only : phone_part(lane), NULL) || !text_add(o, "prebuilt", v->prebuilt, NULL)) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for a job");
	}
	if (suite_add(o, v->suite, e) || overrides_add(o, v, e) || drafter_add(o, v->draft_model, e)) {
		cJSON_Delete(o);
		return -1;
	}
	return job_new(o, out, e);
}

/* Nothing can be done about a gate that was not asked for, or that waits for another. */
static bool
gate_needs_help(const cJSON *o)
{
	const char *hint = json_str(o, "hint"), *outcome = json_str(o, "outcome");

	return str_eq(json_str(o, "type"), "gate") && str_eq(json_str(o, "state"), "end") &&
		hint != NULL && hint[0] != '\0' && !str_eq(outcome, "pass") &&
		!str_eq(outcome, "skipped") &&
		!str_eq(json_str(o, "reasonCode"), reason_name(REASON_DEPENDS));
}

struct screen {
	bool json, terminal, line_open;
	int64_t shown_ms;
	char hinted[300]; /* the hint that was printed last: not twice in a row */
};

static void
screen_progress(const struct screen *s, const cJSON *o)
{
	int64_t done = json_int(o, "done", 0), total = json_int(o, "total", 0);
	char count[48] = "";

	if (done > 0 || total > 0)
		snprintf(count, sizeof count, " %lld/%lld", (long long)done, (long long)total);
	fprintf(stderr, s->terminal ? "\r\033[K  %s%s %s" : "  %s%s %s\n", json_str(o, "gate"), count,
		json_str(o, "text") ? json_str(o, "text") : "");
}

static void
screen_hint(struct screen *s, const char *hint)
{
	if (str_eq(hint, s->hinted))
		return;
	fprintf(stderr, "%-10s hint: %s\n", "", hint);
	snprintf(s->hinted, sizeof s->hinted, "%s", hint);
}

static void
screen_event(void *arg, const cJSON *o)
{
	struct screen *s = arg;
	const char *type = json_str(o, "type"), *outcome = json_str(o, "outcome");
	char *text;
	int64_t now = plat_mono_ms();

	if (s->json) {
		if ((text = json_text(o, false)) != NULL) {
			puts(text);
			fflush(stdout);
		}
		free(text);
		return;
	}
	if (str_eq(type, "progress")) {
		if (now - s->shown_ms < (s->terminal ? 200 : 10000))
			return;
		s->shown_ms = now;
		screen_progress(s, o);
		s->line_open = s->terminal;
		return;
	}
	if (s->line_open)
		fputs("\r\033[K", stderr);
	s->line_open = false;
	if (str_eq(type, "gate") && str_eq(json_str(o, "state"), "end"))
		fprintf(stderr, "%-10s %-24s %s%s%s\n", outcome, json_str(o, "gate"),
			json_str(o, "reasonCode") ? json_str(o, "reasonCode") : "",
			json_str(o, "reasonCode") ? ": " : "", json_str(o, "detail"));
	else if (str_eq(type, "note"))
		fprintf(stderr, "note       %s: %s\n", json_str(o, "gate") ? json_str(o, "gate") : "",
			json_str(o, "text"));
	if (gate_needs_help(o))
		screen_hint(s, json_str(o, "hint"));
}

static void
verdict_print(const struct work_result *r, bool json)
{
	char report[PATH_BYTES], envelope[PATH_BYTES];

	if (json)
		return;
	str_show(report, sizeof report, r->report_path, strlen(r->report_path));
	str_show(envelope, sizeof envelope, r->envelope_path, strlen(r->envelope_path));
	printf("%s%s%s%s\n", r->recordable ? "RECORDABLE PASS"
			: r->outcome == OUTCOME_PASS ? "PASS, NOT RECORDABLE" : outcome_name(r->outcome),
		r->reason != REASON_NONE ? " " : "", r->reason != REASON_NONE ? reason_name(r->reason) : "",
		r->detail[0] ? ":" : "");
	if (r->detail[0] != '\0')
		printf("  %s\n", r->detail);
	printf("report   %s\nevidence %s\n", report, envelope);
}

/* The last event of a run; of a daemon's job the server writes it. */
static void
done_event(struct event_log *events, const struct work_result *r)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && json_add_str(o, "state", "done") &&
	    json_add_str(o, "outcome", outcome_name(r->outcome)) &&
	    json_add_str(o, "reasonCode", r->reason ? reason_name(r->reason) : NULL) &&
	    json_add_bool(o, "passRecordable", r->recordable) &&
	    json_add_int(o, "exitCode", r->exit) && json_add_str(o, "report", r->report_path) &&
	    json_add_text(o, "detail", r->detail, strlen(r->detail))) {
		event_add(events, "job", o);
		return;
	}
	cJSON_Delete(o);
}

/* What the old variables asked of a runner, and this one can not be asked. */
static int
environment_check(const struct lane *l, struct err *e)
{
	const char *remote = getenv("CUDA_REMOTE"), *target, *used = "";
	struct utsname u;
	const struct target *t = machine_uname(&u) == 0 ? lane_target(l, u.sysname, u.machine) : NULL;

	if (l->api == API_CUDA && remote != NULL && remote[0] != '\0') {
		err_set(e, ERR_USAGE, "CUDA_REMOTE is set: this command runs on the host it is called on");
		return err_hint(e, "verify-controller run %.60s --lane %s", remote, l->name);
	}
	target = l->target_variable[0] != '\0' ? plat_env(l->target_variable, &used) : NULL;
	if (target != NULL && (t == NULL || strcmp(target, t->name) != 0)) {
		err_set(e, ERR_USAGE, "%s is %.60s, the lane %s builds %s here", used, target, l->name,
			t ? t->name : "nothing");
		return err_hint(e, "unset %s", used);
	}
	return 0;
}

static void
variable_say(void *events, const char *text)
{
	event_note(events, "environment", text);
}

static int
run_run(const struct opt_call *call)
{
	const struct run_values *v = call->values;
	struct place place = {.key = NULL};
	struct work_ask ask = {.runner_names = true, .overrides_from = "environment or --set"};
	struct work_result result;
	struct screen screen = {.json = v->json, .terminal = isatty(2) == 1};
	struct event_log *events = NULL;
	struct job *job = NULL;
	struct err e = {0};
	char log_dir[PATH_BYTES];
	int status = EXIT_INCOMPLETE;

	if (job_make(v, call->argv[0], &job, &e) ||
	    environment_check(job->lane, &e) || build_flags_check(job->override[OVERRIDE_CMAKE_FLAGS], &e) ||
	    place_open(&place, v->config, v->state, &e) ||
	    run_log_dir(v->log_dir, log_dir, sizeof log_dir, &e) || event_open(NULL, &events, &e))
		goto out;
	event_sink(events, screen_event, &screen);
	variables_each(variable_say, events);
	ask_fill(&ask, &place, job);
	ask.events = events;
	ask.log_dir = log_dir;
	ask.report_path = v->report ? v->report : plat_env("ELIZA_MTP_HARDWARE_REPORT", NULL);
	if (work_run(&ask, &result, &e))
		goto out;
	done_event(events, &result);
	verdict_print(&result, v->json);
	status = result.exit;
out:
	if (e.code != ERR_NONE) {
		err_print("verify-agent", &e);
		status = err_exit(e.code);
	}
	event_close(events);
	sign_key_free(place.key);
	job_free(job);
	return status;
}

const struct command run_command = {
	.name = "run",
	.arguments = "LANE",
	.summary = "run every gate of a lane here, and write a signed report",
	.help = "Does in the foreground what the daemon does for a controller, and what the shell\n"
		"runners did: takes the same ELIZA_MTP_* (and older ELIZA_DFLASH_*) variables.\n"
		"\n"
		"  verify-agent run cpu --suite llama.cpp --model tiny.gguf --source ~/llama.cpp\n"
		"  verify-agent run cpu --only probe\n"
		"  ELIZA_MTP_SMOKE_MODEL=tiny.gguf verify-agent run cpu --report out.json\n"
		"\n"
		"Exit status: 0 recordable pass, 1 fail, 2 usage, 3 blocked, 4 refused, 6 incomplete,\n"
		"7 all that ran passed but it can not be recorded.",
	.opts = run_opts,
	.opt_count = str_count(run_opts),
	.size = sizeof(struct run_values),
	.min_args = 1,
	.max_args = 1,
	.run = run_run,
};

/* ---- work ---- */

struct work_values {
	const char *state, *job, *config, *post_mortem;
};
#define W(member) offsetof(struct work_values, member)
static const struct opt work_opts[] = {
	{"state", 0, OPT_TEXT, W(state), .word = "DIR", .help = "the state folder"},
	{"job", 0, OPT_TEXT, W(job), .word = "ID", .help = "the job"},
	{"config", 0, OPT_TEXT, W(config), .word = "FILE", .help = "the configuration file"},
	{"post-mortem", 0, OPT_TEXT, W(post_mortem), .word = "REASON",
		.help = "write the report of a job whose worker died"},
};

static int
work_job_load(const char *spool, struct job **out, struct err *e)
{
	char path[PATH_BYTES];
	char *text = NULL;
	size_t len;
	int rc;

	if (str_fmt(path, sizeof path, e, "%s/job.json", spool) ||
	    plat_read_file(path, JOB_MAX_BYTES, &text, &len, e))
		return -1;
	rc = job_parse(text, len, out, e);
	free(text);
	return rc;
}

/* What ended the worker, for people. */
static const char *
mortem_words(enum reason why)
{
	static const struct {
		enum reason reason;
		const char *words;
	} rows[] = {
		{REASON_AGENT_DIED, "the agent or its worker died"},
		{REASON_TIMEOUT, "the time limit of the whole job was over"},
		{REASON_CANCELLED, "the job was cancelled and did not end by itself"},
		{REASON_DISK_FULL, "the disk was full"},
	};
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		if (rows[i].reason == why)
			return rows[i].words;
	return "the worker ended without a report";
}

static int
work_do(const struct work_values *v, struct work_result *result, struct err *e)
{
	struct place place = {.key = NULL};
	struct work_ask ask = {.overrides_from = "job"};
	struct event_log *events = NULL;
	struct job *job = NULL;
	char spool[PATH_BYTES], events_path[PATH_BYTES];
	int reason, rc = -1;

	if (v->state == NULL || v->job == NULL || !str_is_hex(v->job, JOB_ID_HEX))
		return err_set(e, ERR_USAGE, "--state DIR and --job ID are wanted");
	if (place_open(&place, v->config, v->state, e) ||
	    str_fmt(spool, sizeof spool, e, "%s/spool/%s", place.state, v->job) ||
	    str_fmt(events_path, sizeof events_path, e, "%s/events/%s.ndjson", place.state, v->job) ||
	    work_job_load(spool, &job, e) || event_open(events_path, &events, e))
		goto out;
	ask_fill(&ask, &place, job);
	ask.events = events;
	ask.log_dir = spool;
	if (v->post_mortem == NULL) {
		rc = work_run(&ask, result, e);
	} else if ((reason = reason_find(v->post_mortem)) <= REASON_NONE) {
		err_set(e, ERR_USAGE, "unknown reason %.40s", v->post_mortem);
	} else {
		rc = work_post_mortem(&ask, events_path, (enum reason)reason,
			mortem_words((enum reason)reason), result, e);
	}
out:
	event_close(events);
	sign_key_free(place.key);
	job_free(job);
	return rc;
}

static int
work_run_command(const struct opt_call *call)
{
	struct work_result result;
	struct err e = {0};

	if (work_do(call->values, &result, &e)) {
		err_print("verify-agent work", &e);
		return err_exit(e.code);
	}
	return result.exit;
}

const struct command work_command = {
	.name = "work",
	.arguments = "",
	.summary = "one job of the daemon, in a process of its own",
	.help = "",
	.opts = work_opts,
	.opt_count = str_count(work_opts),
	.size = sizeof(struct work_values),
	.run = work_run_command,
	.hidden = true,
};
