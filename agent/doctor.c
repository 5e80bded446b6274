#include "agent/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/machine.h"
#include "agent/work.h"
#include "common/agree.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/transcript.h"

#define PATH_BYTES 4096

struct doctor_values {
	bool json;
};
static const struct opt doctor_opts[] = {
	{"json", 'j', OPT_FLAG, offsetof(struct doctor_values, json), .help = "JSON on standard output"},
};

/* One look at one lane: the gates host, device and toolchain of a job that asks for no
 * more, in a folder of its own that goes away. */
struct look {
	const struct lane *lane;
	bool json, terminal;
	char dir[PATH_BYTES];
	enum outcome worst;
	cJSON *gates;       /* what was seen; owned */
	char device_log[PATH_BYTES];
};

static bool
is_preflight(const char *gate)
{
	return str_eq(gate, "host") || str_eq(gate, "device") || str_eq(gate, "toolchain");
}

/* ready < blocked < incomplete < fail */
static int
weight(enum outcome o)
{
	static const int w[OUTCOME_COUNT] = {[OUTCOME_PASS] = 0, [OUTCOME_SKIPPED] = 1,
		[OUTCOME_BLOCKED] = 2, [OUTCOME_INCOMPLETE] = 3, [OUTCOME_FAIL] = 4};

	return w[o];
}

static void
look_event(void *arg, const cJSON *o)
{
	struct look *l = arg;
	const char *gate = json_str(o, "gate"), *hint = json_str(o, "hint");
	const char *reason = json_str(o, "reasonCode");
	int outcome = outcome_find(json_str(o, "outcome"));

	if (!str_eq(json_str(o, "type"), "gate") || !is_preflight(gate))
		return;
	if (!str_eq(json_str(o, "state"), "end")) {
		/* the first word at once; a driver may take its time */
		if (!l->json && l->terminal)
			fprintf(stderr, "\r\033[K  asking the %s ...\r", gate);
		return;
	}
	if (outcome >= 0 && weight((enum outcome)outcome) > weight(l->worst))
		l->worst = (enum outcome)outcome;
	if (str_eq(gate, "device") && json_str(o, "log") != NULL &&
	    str_fmt(l->device_log, sizeof l->device_log, NULL, "%s/%s", l->dir, json_str(o, "log")))
		l->device_log[0] = '\0';
	if (l->json) {
		cJSON_AddItemToArray(l->gates, cJSON_Duplicate(o, true));
		return;
	}
	if (l->terminal)
		fputs("\033[K", stderr);
	printf("  %-10s %-10s %s%s%s\n", gate, outcome == OUTCOME_PASS ? "ready" : json_str(o, "outcome"),
		reason ? reason : "", reason ? ": " : "", json_str(o, "detail") ? json_str(o, "detail") : "");
	if (outcome != OUTCOME_PASS && hint != NULL && hint[0] != '\0' && !str_eq(reason, "depends_on"))
		printf("  %-10s %-10s hint: %s\n", "", "", hint);
	fflush(stdout);
}

/* Each probe with what it tried and found; facts that explain. */
static void
log_show(const struct look *l)
{
	static const char *const keys[] = {"absent", "device", "adb"};
	char *text = NULL, *p, *nl;
	int n;
	struct agree *g = malloc(sizeof *g);
	struct section s;
	struct buf b;
	size_t len, pos = 0, i;

	buf_init(&b, 65536);
	if (g != NULL && l->device_log[0] != '\0' &&
	    plat_read_file(l->device_log, 64u << 20, &text, &len, NULL) == 0) {
		agree_read(text, len, l->lane->api, g);
		if (agree_table(g, &b, NULL) == 0 && b.len > 0)
			for (p = b.data; *p != '\0'; p = *nl ? nl + 1 : nl) {
				nl = p + strcspn(p, "\n");
				printf("             %.*s\n", (int)(nl - p), p);
			}
		for (i = 0; i < (size_t)g->count; i++)
			for (n = 0; n < g->source[i].a.note_count; n++)
				printf("             %s: %s\n", g->source[i].row->name, g->source[i].a.note[n]);
		while (transcript_next(text, len, &pos, &s, NULL) == 1) {
			for (i = 0; strcmp(s.kind, "facts") == 0 && i < str_count(keys); i++) {
				char value[512];

				if (section_fact(&s, keys[i], value, sizeof value))
					printf("             %s: %s\n", keys[i], value);
			}
			section_fini(&s);
		}
		if (g->visible[0] != '\0' || g->faking[0] != '\0')
			printf("             variables: %s %s\n", g->visible, g->faking);
	}
	free(text);
	free(g);
	buf_fini(&b);
}

static int
job_make(const struct lane *lane, struct job **out, struct err *e)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL || !json_add_str(o, "lane", lane->name) || !json_add_str(o, "suite", "llama.cpp") ||
	    !json_add_str(o, "only", "probe")) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for a job");
	}
	return job_new(o, out, e);
}

static int
look_do(struct look *l, struct err *e)
{
	struct work_ask ask = {.overrides_from = "job"};
	struct work_result result;
	struct event_log *events = NULL;
	struct job *job = NULL;
	char template[] = "/tmp/verify-doctor-XXXXXX";
	struct err ignored = {0};
	int rc = -1;

	if (mkdtemp(template) == NULL)
		return err_set(e, ERR_IO, "/tmp can not be written");
	snprintf(l->dir, sizeof l->dir, "%s", template);
	if (job_make(l->lane, &job, e) == 0 && event_open(NULL, &events, e) == 0) {
		event_sink(events, look_event, l);
		ask.job = job;
		ask.events = events;
		ask.log_dir = l->dir;
		ask.cache_dir = l->dir;
		rc = work_run(&ask, &result, e);
	}
	if (rc == 0 && !l->json)
		log_show(l);
	event_close(events);
	job_free(job);
	if (plat_remove_tree(template, &ignored))
		fprintf(stderr, "verify-agent doctor: %s\n", ignored.msg);
	return rc;
}

static int
lane_look(const struct lane *lane, bool json, cJSON *all, enum outcome *worst, struct err *e)
{
	struct look l = {.lane = lane, .json = json, .terminal = isatty(2) == 1 && isatty(1) == 1,
		.worst = OUTCOME_PASS, .gates = cJSON_CreateArray()};
	cJSON *o;
	int rc;

	if (l.gates == NULL)
		return err_set(e, ERR_NOMEM, "no memory");
	if (!json) {
		printf("%s (%s)\n", lane->name, lane->title);
		fflush(stdout);
	}
	rc = look_do(&l, e);
	if (json && (o = cJSON_CreateObject()) != NULL) {
		json_add_str(o, "lane", lane->name);
		json_add_str(o, "outcome", outcome_name(l.worst));
		if (json_add(o, "gates", l.gates))
			l.gates = NULL;
		cJSON_AddItemToArray(all, o);
	}
	cJSON_Delete(l.gates);
	*worst = l.worst;
	return rc;
}

static int
lanes_look(const char *name, bool json, cJSON *all, bool *any_ready, struct err *e)
{
	const struct lane *lane;
	struct utsname u;
	enum outcome worst;
	size_t i;

	if (name != NULL) {
		if (lane_get(name, &lane, e) || lane_look(lane, json, all, &worst, e))
			return -1;
		*any_ready = worst == OUTCOME_PASS;
		return 0;
	}
	if (machine_uname(&u))
		return err_set(e, ERR_IO, "the host can not be asked");
	for (i = 0; i < lane_count; i++) {
		if (lane_target(&lanes[i], u.sysname, u.machine) == NULL)
			continue;
		if (lane_look(&lanes[i], json, all, &worst, e))
			return -1;
		*any_ready |= worst == OUTCOME_PASS;
	}
	return 0;
}

static int
doctor_run(const struct opt_call *call)
{
	const struct doctor_values *v = call->values;
	cJSON *all = cJSON_CreateArray();
	struct err e = {0};
	bool ready = false;
	char *text;
	int rc = all == NULL ? err_set(&e, ERR_NOMEM, "no memory")
			     : lanes_look(call->argc > 0 ? call->argv[0] : NULL, v->json, all, &ready, &e);

	if (rc == 0 && v->json && (text = json_text(all, true)) != NULL) {
		fputs(text, stdout);
		free(text);
	}
	cJSON_Delete(all);
	if (rc) {
		err_print("verify-agent doctor", &e);
		return err_exit(e.code);
	}
	return ready ? EXIT_PASS : EXIT_BLOCKED;
}

const struct command doctor_command = {
	.name = "doctor",
	.arguments = "[LANE]",
	.summary = "look whether this host is ready for a lane, and say what to do",
	.help = "Asks the host, the device and the toolchain as a run would, and builds nothing.\n"
		"Each probe is a process of its own with a time limit.  Without LANE every lane of\n"
		"this host is looked at.\n"
		"\n"
		"  verify-agent doctor\n"
		"  verify-agent doctor cuda --json\n"
		"\n"
		"Exit status: 0 ready (without LANE: at least one lane is), 3 blocked, 2 usage.",
	.opts = doctor_opts,
	.opt_count = str_count(doctor_opts),
	.size = sizeof(struct doctor_values),
	.max_args = 1,
	.run = doctor_run,
};
