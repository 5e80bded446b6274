#include "controller/session.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/pins.h"
#include "controller/pull.h"
#include "controller/store_run.h"

#define PAUSE_FIRST_MS 500
#define PAUSE_MAX_MS 15000
#define SETTLE_MS 60000

/* The only thing that a signal handler may touch. */
static volatile sig_atomic_t interrupts, terminated;

static void
on_signal(int sig)
{
	if (sig == SIGINT)
		interrupts++;
	else
		terminated = 1;
}

static void
catch_signals(bool on)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on ? on_signal : SIG_DFL;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* ---- interrupts ---- */

static void
first_interrupt(struct session *s)
{
	s->detach_at = plat_mono_ms() + SESSION_DETACH_MS;
	progress_say(s->progress, "leaving in %d s, the job goes on (attach %.8s); Ctrl-C "
		"again cancels it", SESSION_DETACH_MS / 1000, s->pending->job->id);
}

/* Decides what a Ctrl-C means; non-zero ends the call that is under way. */
static int
on_tick(void *arg)
{
	struct session *s = arg;
	int now = interrupts;

	if (s->progress != NULL)
		progress_tick(s->progress);
	if (terminated || (now > 0 && !s->following) || (s->cancelling && now > s->seen)) {
		s->detached = true;
		return 1;
	}
	if (s->cancelling)
		return 0;
	if (now > s->seen && s->detach_at == 0) {
		s->seen = 1;
		first_interrupt(s);
	}
	if (now > 1) {
		s->cancel_wanted = true;
		return 1;
	}
	if (s->detach_at != 0 && plat_mono_ms() >= s->detach_at) {
		s->detached = true;
		return 1;
	}
	return 0;
}

static int
say_detached(const struct session *s, struct err *e)
{
	err_set(e, ERR_CANCELLED, "left job %s on %s; it goes on", s->pending->job->id,
		s->host->name);
	return err_hint(e, "verify-controller attach %.8s", s->pending->job->id);
}

/* ---- first contact ---- */

int
session_open(struct session *s, const struct host *host, bool json, struct err *e)
{
	memset(s, 0, sizeof *s);
	s->host = host;
	s->json = json;
	interrupts = 0, terminated = 0;
	catch_signals(true);
	if (host_reach(host, &s->reach, e) ||
	    client_open(&s->reach, on_tick, s, &s->client, e))
		return -1;
	/* A dead host is to be told soon. */
	client_attempts(s->client, 2);
	if (client_health(s->client, &s->health, e))
		return err_wrap(e, "host %s", host->name);
	client_attempts(s->client, CLIENT_ATTEMPTS);
	return pins_check(NULL, host->name, s->health.public_key, &s->fresh_pin, e);
}

void
session_close(struct session *s)
{
	if (s->progress != NULL)
		progress_end(s->progress);
	progress_free(s->progress);
	pending_free(s->pending);
	client_close(s->side);
	client_close(s->client);
	s->progress = NULL, s->pending = NULL, s->client = NULL, s->side = NULL;
	catch_signals(false);
}

/* ---- submit ---- */

int
session_begin(struct session *s, struct pending *pending, struct err *e)
{
	struct progress_look look;
	cJSON *state = NULL;

	s->pending = pending;
	progress_look_of(stdout, s->json, &look);
	if (pending_save(pending, e) ||
	    progress_new(stdout, &look, s->host->name, pending->job->id, &s->progress, e))
		return -1;
	if (s->fresh_pin)
		progress_say(s->progress, "first contact with %s: key pinned, fingerprint %s",
			s->host->name, s->health.fingerprint);
	if (client_post(s->client, "/v1/jobs", pending->job->text, &state, NULL, e)) {
		if (e->code == ERR_UNREACHABLE || e->code == ERR_TIMEOUT ||
		    e->code == ERR_BUSY || e->code == ERR_CANCELLED)
			return err_hint(e, "nothing is lost: verify-controller attach %.8s",
				pending->job->id);
		return -1;
	}
	cJSON_Delete(state);
	return 0;
}

int
session_cancel(struct session *s, const char *id, struct err *e)
{
	cJSON *o = NULL;
	char path[96];
	int rc;

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s/cancel", id))
		return -1;
	rc = client_post(s->client, path, "{}", &o, NULL, e);
	cJSON_Delete(o);
	return rc;
}

/* ---- follow ---- */

/*
 * The log of a gate that has ended is brought in and stored while the next gate runs, so
 * that little is left at the end.  A failure here is none: the pull does it again.
 */
static void
log_early(struct session *s, const cJSON *event)
{
	const char *name = json_str(event, "log"), *sha = json_str(event, "logSha256");
	int64_t bytes = json_int(event, "logBytes", -1);
	char folder[4096];
	struct pull_ask ask = {.progress = s->progress, .job = s->pending->job,
		.public_key = s->health.public_key, .folder = folder};
	struct err e = {0};

	if (name == NULL || sha == NULL || bytes < 0 || interrupts > 0 ||
	    (s->side == NULL && client_open(&s->reach, on_tick, s, &s->side, &e)) ||
	    pending_incoming(s->pending->job->id, folder, sizeof folder, &e))
		return;
	ask.client = s->side;
	client_attempts(s->side, 1);
	if (pull_early(&ask, name, sha, (uint64_t)bytes, &e) ||
	    store_early(folder, name, sha, &e))
		return;
}

static int
on_event(void *arg, const cJSON *event)
{
	struct session *s = arg;
	int64_t seq = json_int(event, "seq", 0);

	/* After a reconnect nothing is shown twice. */
	if (seq > 0 && (uint64_t)seq <= s->last_event)
		return 0;
	if (seq > 0)
		s->last_event = (uint64_t)seq;
	progress_event(s->progress, event);
	if (str_eq(json_str(event, "type"), "gate") && str_eq(json_str(event, "state"), "end"))
		log_early(s, event);
	s->done = str_eq(json_str(event, "type"), "job") &&
		str_eq(json_str(event, "state"), "done");
	return s->done;
}

/* The stream ended without the word that the job is done: its state decides. */
static int
ask_state(struct session *s, struct err *e)
{
	cJSON *o = NULL;
	char path[96];

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s", s->pending->job->id) ||
	    client_get(s->client, path, &o, e))
		return -1;
	s->done = str_eq(json_str(o, "state"), "done");
	cJSON_Delete(o);
	return 0;
}

static bool
is_contact_lost(const struct err *e)
{
	return e->code == ERR_UNREACHABLE || e->code == ERR_TIMEOUT || e->code == ERR_BUSY;
}

/* 0: go on, -1: error or detached.  Acts on what the tick has decided. */
static int
act(struct session *s, struct err *e)
{
	if (s->detached)
		return say_detached(s, e);
	if (!s->cancel_wanted || s->cancelling)
		return 0;
	s->cancelling = true;
	s->seen = interrupts;
	progress_say(s->progress, "cancelling; waiting for the report of what was done");
	return session_cancel(s, s->pending->job->id, e);
}

/* One stretch of the stream; *heard when something came. */
static int
stretch(struct session *s, bool *heard, struct err *e)
{
	uint64_t before = s->last_event;
	int rc = client_events(s->client, s->pending->job->id, before, on_event, s, e);

	*heard = s->last_event > before;
	if (rc == 0 && !s->done)
		rc = ask_state(s, e);
	return rc;
}

/* The worker says that it is done a moment before its agent has written so down. */
static int
settle(struct session *s, struct err *e)
{
	int64_t end = plat_mono_ms() + SETTLE_MS, pause = 20;

	for (;; pause = pause < 500 ? pause * 2 : pause) {
		s->done = false;
		if (ask_state(s, e))
			return -1;
		if (s->done)
			return 0;
		if (plat_mono_ms() > end)
			return err_set(e, ERR_TIMEOUT, "job %.8s said that it is done, but its "
				"agent does not", s->pending->job->id);
		if (client_pause(s->client, pause))
			return err_set(e, ERR_CANCELLED, "stopped on request");
	}
}

int
session_follow(struct session *s, struct err *e)
{
	int64_t pause = PAUSE_FIRST_MS, lost_since = 0;
	bool heard = false, told = false;

	s->following = true;
	while (!s->done) {
		if (stretch(s, &heard, e) == 0 || heard) {
			if (told)
				progress_say(s->progress, "contact again");
			lost_since = 0, pause = PAUSE_FIRST_MS, told = false;
		} else if (e->code != ERR_CANCELLED && !is_contact_lost(e))
			return err_wrap(e, "job %.8s", s->pending->job->id);
		if (s->done)
			break;
		if (e->code == ERR_CANCELLED && !s->detached && !s->cancel_wanted)
			return -1;
		if (s->detached || (s->cancel_wanted && !s->cancelling)) {
			if (act(s, e))
				return -1;
			continue;
		}
		if (is_contact_lost(e) && !told) {
			progress_say(s->progress, "%s; trying again", e->msg);
			lost_since = plat_mono_ms(), told = true;
		}
		if (told && plat_mono_ms() - lost_since > SESSION_LOST_MS)
			return err_hint(e, "the job may go on: verify-controller attach %.8s",
				s->pending->job->id);
		if (client_pause(s->client, pause) == 0 && pause < PAUSE_MAX_MS)
			pause *= 2;
		memset(e, 0, sizeof *e);
	}
	memset(e, 0, sizeof *e);
	if (settle(s, e))
		return s->detached ? say_detached(s, e) : -1;
	s->following = false;
	return 0;
}

/* ---- bring in ---- */

static int
acknowledge(struct session *s, const char *envelope_sha256, struct err *e)
{
	char path[96], body[128];
	cJSON *o = NULL;
	int rc;

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s/ack", s->pending->job->id) ||
	    str_fmt(body, sizeof body, e, "{\"envelopeSha256\":\"%s\"}", envelope_sha256))
		return -1;
	rc = client_post(s->client, path, body, &o, NULL, e);
	cJSON_Delete(o);
	return rc;
}

/* Under the job's lock. */
static int
bring_in(struct session *s, struct err *e)
{
	const struct job *job = s->pending->job;
	struct pulled pulled = {0};
	struct err later = {0};
	char folder[4096];
	struct pull_ask ask = {.client = s->client, .progress = s->progress, .job = job,
		.public_key = s->health.public_key, .folder = folder};
	int rc = -1;

	if (pending_incoming(job->id, folder, sizeof folder, e) ||
	    pull_run(&ask, &pulled, e) ||
	    store_run(s->host->name, job, &pulled, folder, e))
		goto out;
	/* It is stored; what the agent makes of its spool can not undo that. */
	if (acknowledge(s, pulled.envelope_sha256, &later))
		progress_say(s->progress, "the agent keeps its copy: %s", later.msg);
	rc = pending_done(job->id, e);
out:
	pulled_fini(&pulled);
	return rc;
}

int
session_collect(struct session *s, struct err *e)
{
	struct pending *still = NULL;
	int fd = -1, rc = 0;

	s->following = false;
	interrupts = 0;
	if (pending_lock(s->pending->job->id, on_tick, s, &fd, e))
		return -1;
	/* Another controller may have brought it in while this one waited. */
	if (pending_load(s->pending->job->id, &still, e) == 0)
		rc = bring_in(s, e);
	else if (e->code == ERR_NOTFOUND)
		memset(e, 0, sizeof *e);
	else
		rc = -1;
	pending_free(still);
	close(fd);
	progress_end(s->progress);
	if (rc && s->detached)
		return say_detached(s, e);
	return rc;
}
