/* run, attach, cancel: a job from the command line to its verdict. */
#include "controller/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/job.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/result.h"
#include "controller/session.h"

#define DEFAULT_LANE "cpu"
#define DEFAULT_SUITE "eliza-1"

/* ---- the job document ---- */

static const char *
first_of(const char *a, const char *b, const char *c)
{
	return a != NULL ? a : b != NULL ? b : c;
}

static bool
is_url(const char *s)
{
	const char *colon = strchr(s, ':');

	return strstr(s, "://") != NULL || (colon != NULL && memchr(s, '@', (size_t)(colon - s)));
}

/* A path of the agent's host.  Through a socket that host is this one, so that a relative
 * path means what the shell means by it. */
static int
add_path(cJSON *o, const char *key, const char *path, const struct reach *reach,
	struct err *e)
{
	char whole[JOB_MAX_PATH + 1];

	if (path == NULL)
		return 0;
	if (!str_is_utf8(path, strlen(path)))
		return err_set(e, ERR_USAGE, "--%s: the path is not UTF-8", key);
	if (path[0] != '/' && !is_url(path)) {
		if (reach->socket[0] == '\0') {
			err_set(e, ERR_USAGE, "--%s %.80s: a relative path", key, path);
			return err_hint(e, "give the absolute path on the agent's host");
		}
		if (plat_absolute(path, whole, sizeof whole, e))
			return err_wrap(e, "--%s", key);
		path = whole;
	}
	if (!json_add_str(o, key, path))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	return 0;
}

static int
add_suite(cJSON *o, const char *name, struct err *e)
{
	bool file = suite_is_path(name);
	struct suite *s = NULL;
	int rc = -1;

	if (file ? suite_load(name, &s, e) : suite_builtin(name, &s, e)) {
		if (e->code == ERR_NOTFOUND)
			e->code = ERR_USAGE;
		return err_wrap(e, "--suite");
	}
	if (!json_add_str(o, "suite", s->name) || !json_add_str(o, "suiteDigest", s->digest) ||
	    (file && !json_add_str(o, "suiteDocument", s->text)))
		err_set(e, ERR_NOMEM, "no memory for a job");
	else
		rc = 0;
	suite_free(s);
	return rc;
}

static int
unknown_override(const char *text, size_t len, struct err *e)
{
	const char *words[OVERRIDE_COUNT], *near;
	char key[64];
	int i;

	str_show(key, sizeof key, text, len);
	for (i = 0; i < OVERRIDE_COUNT; i++)
		words[i] = overrides[i].key;
	err_set(e, ERR_USAGE, "--set: no such override: \"%s\"", key);
	if ((near = opt_nearest(key, words, OVERRIDE_COUNT)) != NULL)
		return err_hint(e, "did you mean %s?", near);
	return err_hint(e, "cacheTypes, tokens, ngl, prompt, extraArgs, cmakeFlags, driver");
}

static int
add_override(cJSON *to, const char *text, struct err *e)
{
	size_t len = strcspn(text, "=");
	int i;

	if (text[len] != '=') {
		err_set(e, ERR_USAGE, "--set %.60s: no '='", text);
		return err_hint(e, "--set tokens=8");
	}
	for (i = 0; i < OVERRIDE_COUNT; i++)
		if (strlen(overrides[i].key) == len && memcmp(overrides[i].key, text, len) == 0)
			break;
	if (i == OVERRIDE_COUNT)
		return unknown_override(text, len, e);
	if (json_get(to, overrides[i].key) != NULL)
		return err_set(e, ERR_USAGE, "--set: %s is given twice", overrides[i].key);
	if (!str_is_utf8(text, strlen(text)))
		return err_set(e, ERR_USAGE, "--set %s: not UTF-8", overrides[i].key);
	if (!json_add_str(to, overrides[i].key, text + len + 1))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	return 0;
}

static int
add_overrides(cJSON *o, const struct opt_list *set, struct err *e)
{
	cJSON *to;
	int i;

	if (set->count == 0)
		return 0;
	if ((to = json_add_object(o, "overrides")) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	for (i = 0; i < set->count; i++)
		if (add_override(to, set->item[i], e))
			return -1;
	return 0;
}

static int
add_controller(cJSON *o, struct err *e)
{
	cJSON *c = json_add_object(o, "controller");
	char name[256] = "";

	if (gethostname(name, sizeof name - 1) != 0)
		name[0] = '\0';
	if (c == NULL || !json_add_str(c, "version", VERSION) ||
	    !json_add_text(c, "host", name, strlen(name)))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	return 0;
}

static int
fill_job(cJSON *o, const struct run_values *v, const struct host *h, struct err *e)
{
	struct reach reach;

	if (host_reach(h, &reach, e))
		return -1;
	if (!json_add_str(o, "lane", first_of(v->lane, h->lane, DEFAULT_LANE)) ||
	    (v->only != NULL && !json_add_str(o, "only", v->only)))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	if (add_suite(o, first_of(v->suite, h->suite, DEFAULT_SUITE), e) ||
	    add_path(o, "model", first_of(v->model, h->model, NULL), &reach, e) ||
	    add_path(o, "source", first_of(v->source, h->source, NULL), &reach, e) ||
	    add_path(o, "prebuilt", v->prebuilt, &reach, e))
		return -1;
	if (first_of(v->source_ref, h->source_ref, NULL) != NULL &&
	    !json_add_str(o, "sourceRef", first_of(v->source_ref, h->source_ref, NULL)))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	if ((v->device != NULL && !json_add_str(o, "device", v->device)) ||
	    (v->draft_model != NULL && !json_add_str(o, "draftModel", v->draft_model)))
		return err_set(e, ERR_NOMEM, "no memory for a job");
	return add_overrides(o, &v->set, e) || add_controller(o, e) ? -1 : 0;
}

static int
make_pending(const struct run_values *v, const struct host *h, struct pending **out,
	struct err *e)
{
	cJSON *o = cJSON_CreateObject();
	struct job *job = NULL;

	if (o == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	if (fill_job(o, v, h, e)) {
		cJSON_Delete(o);
		return -1;
	}
	if (job_new(o, &job, e)) {
		e->code = e->code == ERR_PARSE ? ERR_USAGE : e->code;
		return -1;
	}
	return pending_new(h->name, job, out, e);
}

/* ---- one job to its end ---- */

/* Prints the stored run; gives its exit status. */
static int
print_stored(const char *id, bool json, bool after_list)
{
	struct ledger *l = NULL;
	struct ledger_list list = {0};
	struct progress_look look;
	struct err e = {0};
	int status = EXIT_INCOMPLETE;

	cmd_look(&look);
	if (cmd_ledger_read(&l, &e) == 0 && l == NULL)
		err_set(&e, ERR_NOTFOUND, "there is no ledger");
	if (e.code != ERR_NONE || ledger_get(l, id, &list, &e))
		goto out;
	if (json) {
		if (cmd_json(result_json(&list.runs[0]), false) != EXIT_PASS)
			goto out;
	} else if (result_print(stdout, l, &list.runs[0], &look,
		after_list && look.mode == PROGRESS_LIVE, &e))
		goto out;
	status = (int)list.runs[0].exit_code;
	if (status < EXIT_PASS || status > EXIT_UNRECORDED)
		status = EXIT_INCOMPLETE;
out:
	ledger_list_fini(&list);
	ledger_close(l);
	return e.code != ERR_NONE ? cmd_fail(&e) : status;
}

static int
print_submitted(const struct session *s)
{
	cJSON *o;

	if (!s->json) {
		printf("submitted %s to %s; verify-controller attach %.8s brings it in\n",
			s->pending->job->id, s->host->name, s->pending->job->id);
		return EXIT_PASS;
	}
	o = cJSON_CreateObject();
	if (o != NULL && (!json_add_str(o, "type", "submitted") ||
		!json_add_str(o, "host", s->host->name) ||
		!json_add_str(o, "job", s->pending->job->id))) {
		cJSON_Delete(o);
		o = NULL;
	}
	return cmd_json(o, false);
}

/* An error as the last JSON line, so that a script need not read stderr. */
static void
json_error(const struct session *s, const char *id, const struct err *e)
{
	cJSON *o;

	if (!s->json || (o = cJSON_CreateObject()) == NULL)
		return;
	if (json_add_str(o, "type", "error") && json_add_str(o, "host", s->host->name) &&
	    json_add_str(o, "job", id) && json_add_str(o, "code", err_name(e->code)) &&
	    json_add_text(o, "message", e->msg, strlen(e->msg)) &&
	    json_add_text(o, "hint", e->hint, strlen(e->hint)) &&
	    json_add_int(o, "exitCode", err_exit(e->code))) {
		(void)cmd_json(o, false);
		return;
	}
	cJSON_Delete(o);
}

int
job_drive(const struct host *host, struct pending *pending, bool detach, bool json)
{
	char id[JOB_ID_HEX + 1];
	struct session s = {0};
	struct err e = {0};
	int status;

	memcpy(id, pending->job->id, sizeof id);
	if (session_open(&s, host, json, &e)) {
		pending_free(pending);
		goto fail;
	}
	if (session_begin(&s, pending, &e))
		goto fail;
	if (detach) {
		progress_end(s.progress);
		status = print_submitted(&s);
		session_close(&s);
		return status;
	}
	if (session_follow(&s, &e) || session_collect(&s, &e))
		goto fail;
	session_close(&s);
	if (!json)
		putchar('\n');
	return print_stored(id, json, true);
fail:
	s.host = host;
	s.json = json;
	if (s.progress != NULL)
		progress_end(s.progress);
	json_error(&s, id, &e);
	session_close(&s);
	return cmd_fail(&e);
}

/* ---- run ---- */

static int
run_hosts(const struct run_values *v, const struct host *const *hosts, size_t count,
	struct err *e)
{
	struct pending **pending = calloc(count, sizeof *pending);
	size_t i;
	int status = -1;

	if (pending == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the jobs");
	/* Every job is made before any is sent: a slip of the keyboard costs nothing. */
	for (i = 0; i < count; i++)
		if (make_pending(v, hosts[i], &pending[i], e))
			goto out;
	if (count == 1)
		status = job_drive(hosts[0], pending[0], v->detach, v->json);
	else
		status = job_drive_many(hosts, pending, count, v->detach, v->json);
	memset(pending, 0, count * sizeof *pending);
out:
	for (i = 0; i < count; i++)
		pending_free(pending[i]);
	free(pending);
	return status;
}

int
cmd_run(const struct opt_call *call)
{
	const struct host **hosts = NULL;
	struct inventory *inv = NULL;
	struct err e = {0};
	size_t count = 0;
	int status = -1;

	if (inventory_load(NULL, &inv, &e) == 0 &&
	    inventory_resolve(inv, call->argv, call->argc, &hosts, &count, &e) == 0)
		status = run_hosts(call->values, hosts, count, &e);
	free(hosts);
	inventory_free(inv);
	return status < 0 ? cmd_fail(&e) : status;
}

/* ---- attach, cancel ---- */

static int
list_pending(const struct pending_id *ids, size_t n)
{
	struct pending *p;
	struct err e;
	char when[32];
	size_t i;

	if (n == 0) {
		printf("no job is pending\n");
		return EXIT_PASS;
	}
	for (i = 0; i < n; i++) {
		memset(&e, 0, sizeof e);
		if (pending_load(ids[i].id, &p, &e)) {
			(void)cmd_fail(&e);
			continue;
		}
		result_time(p->created_ms, when, sizeof when);
		printf("%.8s  %s  %s  lane %s, suite %s\n", ids[i].id, when, p->host,
			p->job->lane->name, p->job->suite->name);
		pending_free(p);
	}
	printf("attach to one of them: verify-controller attach %.8s\n", ids[0].id);
	return EXIT_PASS;
}

static int
drive_pending(const char *id, bool json, struct err *e)
{
	struct inventory *inv = NULL;
	struct pending *p = NULL;
	const struct host *h;
	int status = -1;

	if (pending_load(id, &p, e) || inventory_load(NULL, &inv, e) ||
	    inventory_need(inv, p->host, &h, e))
		pending_free(p);
	else
		status = job_drive(h, p, false, json);
	inventory_free(inv);
	return status;
}

/* Full id of a run in the ledger; ERR_NOTFOUND when there is none. */
static int
find_stored(const char *prefix, char id[LEDGER_RUN_ID + 1], struct err *e)
{
	struct ledger *l = NULL;
	int rc;

	if (cmd_ledger_read(&l, e))
		return -1;
	if (l == NULL)
		rc = err_set(e, ERR_NOTFOUND, "no run begins with \"%.40s\"", prefix);
	else
		rc = ledger_find(l, prefix, id, e);
	ledger_close(l);
	return rc;
}

static int
attach_to(const char *prefix, bool json, struct err *e)
{
	char id[JOB_ID_HEX + 1];

	if (pending_find(prefix, id, e) == 0)
		return drive_pending(id, json, e);
	if (e->code != ERR_NOTFOUND)
		return -1;
	memset(e, 0, sizeof *e);
	if (find_stored(prefix, id, e) == 0)
		return print_stored(id, json, false);
	if (e->code == ERR_NOTFOUND) {
		err_set(e, ERR_NOTFOUND, "no pending job and no run begins with \"%.40s\"",
			prefix);
		err_hint(e, "\"attach\" alone lists what is pending, \"runs\" what is stored");
	}
	return -1;
}

int
cmd_attach(const struct opt_call *call)
{
	const struct json_values *v = call->values;
	struct pending_id *ids = NULL;
	struct err e = {0};
	size_t n = 0;
	int status = -1;

	if (call->argc == 1)
		status = attach_to(call->argv[0], v->json, &e);
	else if (pending_list(&ids, &n, &e) == 0)
		status = n == 1 ? drive_pending(ids[0].id, v->json, &e) : list_pending(ids, n);
	free(ids);
	return status < 0 ? cmd_fail(&e) : status;
}

static int
cancel_pending(const char *id, struct err *e)
{
	struct inventory *inv = NULL;
	struct pending *p = NULL;
	struct session s = {0};
	const struct host *h;
	int rc = -1;

	if (pending_load(id, &p, e) || inventory_load(NULL, &inv, e) ||
	    inventory_need(inv, p->host, &h, e))
		goto out;
	if (session_open(&s, h, false, e) == 0)
		rc = session_cancel(&s, id, e);
	session_close(&s);
	if (rc == 0)
		printf("job %.8s on %s is asked to stop; verify-controller attach %.8s brings "
			"in its report\n", id, h->name, id);
out:
	inventory_free(inv);
	pending_free(p);
	return rc;
}

int
cmd_cancel(const struct opt_call *call)
{
	char id[JOB_ID_HEX + 1];
	struct err e = {0}, stored = {0};

	if (pending_find(call->argv[0], id, &e)) {
		if (e.code == ERR_NOTFOUND && find_stored(call->argv[0], id, &stored) == 0) {
			printf("run %.8s has ended and is stored\n", id);
			return EXIT_PASS;
		}
		return cmd_fail(&e);
	}
	return cancel_pending(id, &e) ? cmd_fail(&e) : EXIT_PASS;
}
