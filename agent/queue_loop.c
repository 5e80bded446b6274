/* The main thread of an agent: starts workers, waits for them, ends jobs. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/queue_impl.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define MORTEM_MS 60000        /* time for a post mortem */
#define RETRY_MS 5000          /* a state that the disk refused */
#define PRUNE_MS (3600 * 1000) /* a look at the age of acknowledged jobs */
#define FULL_BYTES (256 * 1024)

static bool
is_disk_full(const struct queue *q)
{
	struct statvfs v;

	return statvfs(store_dir(q->store), &v) == 0 &&
		(uint64_t)v.f_bavail * v.f_frsize < FULL_BYTES;
}

/* The job has ended, with whatever s says of it. */
static void
job_done(struct queue *q, struct job_state *s)
{
	char path[4096];
	bool ended;

	s->phase = PHASE_DONE;
	s->finished_ms = plat_now_ms();
	s->pid = 0;
	if (store_spool(q->store, s->id, "", path, sizeof path, NULL) == 0)
		s->spool_bytes = worker_spool_bytes(path);
	store_last_event(q->store, s->id, &ended);
	if (!ended)
		queue_event(q, s);
	s->last_event = store_last_event(q->store, s->id, NULL);
	store_save(q->store, s, NULL);
	q->outcomes[s->outcome]++;
	q->prune_due = true;
	if (q->ended != NULL)
		q->ended(q->arg, s->id);
	malloc_trim(0); /* a report was parsed */
}

/* Nothing could write a report: the state alone says how the job ended. */
static void
job_give_up(struct queue *q, struct job_state *s, enum reason why, const char *detail)
{
	s->outcome = OUTCOME_INCOMPLETE;
	s->reason = (int)(is_disk_full(q) ? REASON_DISK_FULL : why);
	s->recordable = false;
	s->exit = EXIT_INCOMPLETE;
	str_show(s->detail, sizeof s->detail, detail, strlen(detail));
	job_done(q, s);
}

static bool
job_result(struct queue *q, struct job_state *s)
{
	struct err e = {0};

	if (store_result(q->store, s, &e))
		return false;
	job_done(q, s);
	return true;
}

static void
mortem_start(struct queue *q, struct slot *slot, struct job_state *s, enum reason why)
{
	struct err e = {0};

	slot->kind = SLOT_MORTEM;
	memcpy(slot->id, s->id, sizeof slot->id);
	slot->why = why;
	slot->deadline_ms = 0;
	slot->kill_ms = plat_mono_ms() + MORTEM_MS;
	slot->pid = worker_start(q, s->id, reason_name(why), &e);
	if (slot->pid > 0)
		return;
	slot->kind = SLOT_FREE;
	job_give_up(q, s, why, e.msg);
}

static void
work_start(struct queue *q, struct slot *slot, struct job_state *s)
{
	struct err e = {0};

	s->phase = PHASE_RUNNING;
	s->started_ms = plat_now_ms();
	memcpy(s->boot_id, q->boot_id, sizeof s->boot_id);
	/* Running before it runs: a job is never started twice in one folder.  A disk
	 * that refuses this will refuse the report, and the job ends disk_full. */
	store_save(q->store, s, NULL);
	queue_event(q, s);
	slot->kind = SLOT_WORK;
	memcpy(slot->id, s->id, sizeof slot->id);
	slot->why = REASON_AGENT_DIED;
	slot->kill_ms = 0;
	slot->deadline_ms =
		plat_mono_ms() + (int64_t)q->conf->v[CONF_JOB_TIMEOUT] * 1000;
	slot->pid = worker_start(q, s->id, NULL, &e);
	if (slot->pid < 0) {
		slot->kind = SLOT_FREE;
		job_give_up(q, s, REASON_INTERNAL, e.msg);
		return;
	}
	s->pid = slot->pid;
	s->pid_start = worker_started(slot->pid);
	store_save(q->store, s, NULL);
}

static struct slot *
slot_of(struct queue *q, const char *id)
{
	size_t i;

	for (i = 0; i < SLOT_COUNT; i++)
		if (q->slots[i].kind != SLOT_FREE && strcmp(q->slots[i].id, id) == 0)
			return &q->slots[i];
	return NULL;
}

static enum reason
why_stopped(const struct job_state *s, enum reason otherwise)
{
	return s->cancel ? REASON_CANCELLED : otherwise;
}

/* Starts what can start.  Jobs that need no device any more (cancelled while they waited,
 * or left by an earlier agent) take the spare slot. */
static void
dispatch(struct queue *q)
{
	struct slot *spare = &q->slots[SLOT_SPARE];
	size_t i;

	for (i = 0; i < store_count(q->store); i++) {
		struct entry *en = store_at(q->store, i);
		struct job_state s;
		bool dead;

		if (en->phase == PHASE_DONE || en->live == NULL ||
		    slot_of(q, en->id) != NULL)
			continue;
		s = *en->live;
		dead = s.phase == PHASE_RUNNING;
		if (dead && job_result(q, &s))
			continue;
		if (dead || s.cancel) {
			if (spare->kind == SLOT_FREE)
				mortem_start(q, spare, &s,
					why_stopped(&s, REASON_AGENT_DIED));
		} else if (!atomic_load(&q->stop) &&
			   q->slots[en->api].kind == SLOT_FREE) {
			work_start(q, &q->slots[en->api], &s);
		}
	}
}

static void
status_say(int status, char *out, size_t size)
{
	int rc;

	if (WIFSIGNALED(status))
		rc = str_fmt(out, size, NULL, "the worker died by signal %d (%s)",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		rc = str_fmt(out, size, NULL,
			"the worker ended with exit %d and left no whole report",
			WEXITSTATUS(status));
	if (rc)
		out[0] = '\0';
}

static void
slot_ended(struct queue *q, struct slot *slot)
{
	struct job_state s;
	char said[160];
	bool was_work = slot->kind == SLOT_WORK;

	slot->kind = SLOT_FREE;
	if (store_read(q->store, slot->id, &s, NULL) || job_result(q, &s))
		return;
	status_say(slot->status, said, sizeof said);
	fprintf(stderr, "verify-agent: job %s: %s%s\n", s.id,
		was_work ? "" : "post mortem: ", said);
	if (was_work)
		mortem_start(q, slot, &s, why_stopped(&s, slot->why));
	else
		job_give_up(q, &s, slot->why, said);
}

static void
reap(struct queue *q)
{
	size_t i;

	for (i = 0; i < SLOT_COUNT; i++) {
		struct slot *slot = &q->slots[i];
		siginfo_t si = {0};

		if (slot->kind == SLOT_FREE ||
		    waitid(P_PID, (id_t)slot->pid, &si, WEXITED | WNOHANG | WNOWAIT) ||
		    si.si_pid == 0)
			continue;
		/* Its children go while the zombie still keeps the number. */
		worker_kill(slot->pid);
		if (waitpid(slot->pid, &slot->status, 0) == slot->pid)
			slot_ended(q, slot);
	}
}

static void
slot_ask(struct slot *slot, enum reason why, int64_t grace_ms)
{
	slot->why = why;
	slot->kill_ms = plat_mono_ms() + grace_ms;
	/* the worker's own report tells a time limit from a cancel by the signal */
	kill(slot->pid, why == REASON_TIMEOUT ? SIGALRM : SIGTERM);
}

/* Time limits, cancels and the end of the agent. */
static void
slots_watch(struct queue *q)
{
	int64_t now = plat_mono_ms();
	int64_t cancel_ms = (int64_t)q->conf->v[CONF_CANCEL_GRACE] * 1000;
	size_t i;

	for (i = 0; i < SLOT_COUNT; i++) {
		struct slot *slot = &q->slots[i];
		const struct entry *en;

		if (slot->kind == SLOT_FREE)
			continue;
		en = store_find(q->store, slot->id);
		if (slot->kind == SLOT_WORK && slot->kill_ms == 0) {
			if (atomic_load(&q->stop))
				slot_ask(slot, REASON_CANCELLED,
					(int64_t)q->conf->v[CONF_STOP_GRACE] * 1000);
			else if (en != NULL && en->live != NULL && en->live->cancel)
				slot_ask(slot, REASON_CANCELLED, cancel_ms);
			else if (now >= slot->deadline_ms)
				slot_ask(slot, REASON_TIMEOUT, cancel_ms);
		}
		if (slot->kill_ms != 0 && (now >= slot->kill_ms || q->hurry)) {
			worker_kill(slot->pid);
			slot->kill_ms = now + 1000; /* until it is reaped */
		}
	}
}

static int
earlier(int64_t at_ms, int64_t now, int wait_ms)
{
	int64_t left = at_ms - now;

	if (left < 0)
		left = 0;
	if (left > INT32_MAX)
		left = INT32_MAX;
	return wait_ms < 0 || left < wait_ms ? (int)left : wait_ms;
}

/* How long there is nothing to do; -1 for ever. */
static int
wait_ms(const struct queue *q, bool clean, int64_t prune_at)
{
	int64_t now = plat_mono_ms();
	int wait = -1;
	size_t i;

	for (i = 0; i < SLOT_COUNT; i++) {
		const struct slot *slot = &q->slots[i];

		if (slot->kind == SLOT_FREE)
			continue;
		if (slot->kill_ms != 0)
			wait = earlier(slot->kill_ms, now, wait);
		else if (slot->deadline_ms != 0)
			wait = earlier(slot->deadline_ms, now, wait);
	}
	if (!clean)
		wait = earlier(now + RETRY_MS, now, wait);
	if (prune_at != 0)
		wait = earlier(prune_at, now, wait);
	return wait;
}

/* Returns when to look again: 0 when nothing acknowledged waits for its age. */
static int64_t
prune(struct queue *q)
{
	size_t i;

	q->prune_due = false;
	store_prune(q->store, q->conf->v[CONF_KEEP_DAYS], q->conf->v[CONF_SPOOL_BYTES]);
	for (i = 0; i < store_count(q->store); i++)
		if (store_at(q->store, i)->acked && !store_at(q->store, i)->pruned)
			return plat_mono_ms() + PRUNE_MS;
	return 0;
}

static bool
is_idle(const struct queue *q)
{
	size_t i;

	for (i = 0; i < SLOT_COUNT; i++)
		if (q->slots[i].kind != SLOT_FREE)
			return false;
	return true;
}

static void
signals_take(struct queue *q, int fd)
{
	struct signalfd_siginfo si;

	while (read(fd, &si, sizeof si) == (ssize_t)sizeof si) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		if (atomic_exchange(&q->stop, true))
			q->hurry = true;
	}
}

static void
wakes_take(const struct queue *q)
{
	uint64_t n;

	while (read(q->wake_fd, &n, sizeof n) == (ssize_t)sizeof n)
		;
}

static int
signals_open(struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) ||
	    (fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return err_errno(e, errno, "signalfd");
	return fd;
}

int
queue_loop(struct queue *q, struct err *e)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = q->wake_fd, .events = POLLIN}};
	int64_t prune_at = 0;
	int wait, rc = -1;
	bool over = false;

	if ((fds[0].fd = signals_open(e)) < 0)
		return -1;
	while (!over) {
		store_lock(q->store);
		reap(q);
		slots_watch(q);
		dispatch(q);
		if (q->prune_due || (prune_at != 0 && plat_mono_ms() >= prune_at))
			prune_at = prune(q);
		wait = wait_ms(q, store_retry(q->store), prune_at);
		over = atomic_load(&q->stop) && is_idle(q);
		store_unlock(q->store);
		if (over)
			break;
		if (poll(fds, 2, wait) < 0 && errno != EINTR) {
			err_errno(e, errno, "poll");
			goto out;
		}
		signals_take(q, fds[0].fd);
		wakes_take(q);
	}
	rc = 0;
out:
	close(fds[0].fd);
	return rc;
}
