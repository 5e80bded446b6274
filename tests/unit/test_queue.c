#include "agent_help.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/queue.h"

/* Stands in for `verify-agent work`: what it does stands in the file STATE/mode. */
static const char worker[] =
	"#!/bin/sh\n"
	"state=$3 id=$5 d=$3/spool/$5\n"
	"report() {\n"
	"	printf '{\"outcome\":\"%s\",\"exitCode\":%s,\"reasonCode\":\"%s\"}' \"$@\""
	" >\"$d/report.json\"\n"
	"	echo '{}' >\"$d/report.dsse.json\"\n"
	"}\n"
	"if [ \"$6\" = --post-mortem ]; then\n"
	"	[ ! -e \"$state/no-mortem\" ] || exit 6\n"
	"	report incomplete 6 \"$7\"; exit 6\n"
	"fi\n"
	"echo \"start $id\" >>\"$state/order\"\n"
	"case $(cat \"$state/mode\") in\n"
	"pass) sleep 0.1; echo \"end $id\" >>\"$state/order\"; report pass 0 none; exit 0 ;;\n"
	"crash) kill -SEGV $$ ;;\n"
	"quiet) exit 0 ;;\n"
	"orphan) sleep 300 & echo $! >\"$state/orphan\"; kill -KILL $$ ;;\n"
	"polite) trap 'report incomplete 6 cancelled; exit 6' TERM\n"
	"	while :; do sleep 0.05; done ;;\n"
	"stubborn) trap '' TERM; while :; do sleep 0.05; done ;;\n"
	"esac\n";

struct bench {
	const struct place *place;
	struct conf conf;
	struct store *store;
	struct queue *queue;
	unsigned told;                  /* calls of ended() */
	void (*act)(struct bench *b);   /* by the other thread, once jobs run */
	unsigned left;                  /* jobs that may be left when it stops */
};

static void
on_ended(void *arg, const char *id)
{
	struct bench *b = arg;

	assert_true(str_is_hex(id, JOB_ID_HEX));
	b->told++;
}

static void
bench_open(struct bench *b, void **state, const char *mode)
{
	char program[300];
	struct queue_spec spec = {.conf = &b->conf, .program = program, .ended = on_ended,
		.arg = b};
	struct err e = {0};

	memset(b, 0, sizeof *b);
	b->place = *state;
	conf_default(&b->conf);
	b->conf.v[CONF_CANCEL_GRACE] = 1;
	file_write(b->place->dir, "worker", worker);
	file_write(b->place->dir, "mode", mode);
	assert_int_equal(str_fmt(program, sizeof program, NULL, "%s/worker",
		b->place->dir), 0);
	assert_int_equal(chmod(program, 0700), 0);
	if (store_open(b->place->dir, 100, &b->store, &e))
		fail_msg("%s", e.msg);
	spec.store = b->store;
	if (queue_new(&spec, &b->queue, &e))
		fail_msg("%s", e.msg);
}

static void
bench_close(struct bench *b)
{
	queue_free(b->queue);
	store_close(b->store);
}

static int
give(struct bench *b, const char *id, const char *ref, bool *created, struct err *e)
{
	struct job *j = job_make(id, ref);
	struct job_state s;
	int rc = queue_submit(b->queue, j, created, &s, e);

	if (rc == 0)
		assert_string_equal(s.id, id);
	job_free(j);
	return rc;
}

static void
given(struct bench *b, const char *id)
{
	struct err e = {0};
	bool created = false;

	if (give(b, id, NULL, &created, &e))
		fail_msg("%s", e.msg);
	assert_true(created);
}

/* Acts when a worker runs, stops the queue when all has ended. */
static void *
watch(void *arg)
{
	struct bench *b = arg;
	struct queue_counts n;
	int i;

	for (i = 0; i < 1500; i++) {
		usleep(10000);
		queue_count(b->queue, &n);
		if (b->act != NULL && n.running > 0 && file_there(b->place->dir, "order")) {
			usleep(50000);
			b->act(b);
			b->act = NULL;
		}
		if (n.queued + n.running <= b->left)
			break;
	}
	queue_stop(b->queue);
	return NULL;
}

static void
bench_run(struct bench *b)
{
	struct err e = {0};
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, watch, b), 0);
	assert_int_equal(queue_loop(b->queue, &e), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
}

static struct job_state
state_of(struct bench *b, const char *id)
{
	struct job_state s;
	struct err e = {0};

	store_lock(b->store);
	if (store_read(b->store, id, &s, &e))
		fail_msg("%s", e.msg);
	store_unlock(b->store);
	return s;
}

static void
ended_with(struct bench *b, const char *id, enum outcome o, enum reason r, bool report)
{
	struct job_state s = state_of(b, id);
	bool done = false;

	assert_int_equal(s.phase, PHASE_DONE);
	assert_string_equal(outcome_name((enum outcome)s.outcome), outcome_name(o));
	assert_string_equal(reason_name((enum reason)s.reason), reason_name(r));
	assert_int_equal(s.envelope_sha256[0] != '\0', report);
	assert_int_equal(store_last_event(b->store, id, &done), s.last_event);
	assert_true(done);
}

static void
job_ends_with_the_report_of_its_worker(void **state)
{
	struct bench b;
	struct job_state s;
	struct queue_counts n;

	bench_open(&b, state, "pass");
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_PASS, REASON_NONE, true);
	s = state_of(&b, ID_A);
	assert_int_equal(s.exit, 0);
	assert_int_equal(s.last_event, 3); /* queued, running, done */
	assert_true(s.submitted_ms <= s.started_ms && s.started_ms <= s.finished_ms);
	assert_true(s.spool_bytes > 0);
	assert_int_equal(b.told, 1);
	queue_count(b.queue, &n);
	assert_int_equal(n.ended[OUTCOME_PASS], 1);
	bench_close(&b);
}

static void
jobs_run_one_at_a_time_in_their_order(void **state)
{
	static const char want[] = "start " ID_C "\nend " ID_C "\nstart " ID_A "\nend " ID_A
		"\nstart " ID_B "\nend " ID_B "\n";
	struct bench b;
	char path[300], *text;
	size_t len;

	bench_open(&b, state, "pass");
	given(&b, ID_C);
	given(&b, ID_A);
	given(&b, ID_B);
	bench_run(&b);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/order", b.place->dir), 0);
	assert_int_equal(plat_read_file(path, 4096, &text, &len, NULL), 0);
	assert_string_equal(text, want);
	free(text);
	bench_close(&b);
}

static void
crashed_worker_gets_a_post_mortem(void **state)
{
	struct bench b;

	bench_open(&b, state, "crash");
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, true);
	bench_close(&b);
}

static void
worker_that_leaves_no_report_did_not_pass(void **state)
{
	struct bench b;

	bench_open(&b, state, "quiet");
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, true);
	bench_close(&b);
}

static void
job_ends_even_when_the_post_mortem_fails(void **state)
{
	struct bench b;

	bench_open(&b, state, "crash");
	file_write(b.place->dir, "no-mortem", "");
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, false);
	assert_true(state_of(&b, ID_A).detail[0] != '\0');
	bench_close(&b);
}

static void
what_a_worker_started_dies_with_it(void **state)
{
	struct bench b;
	char path[300], *text;
	size_t len;
	uint32_t pid;

	bench_open(&b, state, "orphan");
	given(&b, ID_A);
	bench_run(&b);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/orphan", b.place->dir), 0);
	assert_int_equal(plat_read_file(path, 40, &text, &len, NULL), 0);
	text[strcspn(text, "\n")] = '\0';
	assert_int_equal(str_u32(text, 2, INT32_MAX, &pid, NULL), 0);
	free(text);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "/proc/%u/stat", pid), 0);
	if (plat_read_file(path, 4096, &text, &len, NULL) == 0) { /* a zombie, perhaps */
		assert_non_null(strstr(text, ") Z"));
		free(text);
	}
	bench_close(&b);
}

static void
cancel_a(struct bench *b)
{
	struct job_state s;

	assert_int_equal(queue_cancel(b->queue, ID_A, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_RUNNING);
}

static void
cancelled_worker_writes_its_own_report(void **state)
{
	struct bench b;
	struct job_state s;

	bench_open(&b, state, "polite");
	b.act = cancel_a;
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_CANCELLED, true);
	assert_int_equal(queue_cancel(b.queue, ID_A, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_DONE);
	bench_close(&b);
}

static void
stubborn_worker_is_killed_after_its_grace(void **state)
{
	struct bench b;
	struct job_state s;

	bench_open(&b, state, "stubborn");
	b.act = cancel_a;
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_CANCELLED, true);
	s = state_of(&b, ID_A);
	assert_true(s.finished_ms - s.started_ms >= 1000);
	bench_close(&b);
}

static void
cancel_b_then_a(struct bench *b)
{
	struct job_state s;
	int i;

	assert_int_equal(queue_cancel(b->queue, ID_B, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_QUEUED);
	for (i = 0; i < 500 && state_of(b, ID_B).phase != PHASE_DONE; i++)
		usleep(10000);
	/* It did not wait for the device, which is still busy. */
	assert_int_equal(state_of(b, ID_B).phase, PHASE_DONE);
	assert_int_equal(state_of(b, ID_A).phase, PHASE_RUNNING);
	cancel_a(b);
}

static void
waiting_job_is_cancelled_at_once_with_a_report(void **state)
{
	struct bench b;

	bench_open(&b, state, "polite");
	b.act = cancel_b_then_a;
	given(&b, ID_A);
	given(&b, ID_B);
	bench_run(&b);
	ended_with(&b, ID_B, OUTCOME_INCOMPLETE, REASON_CANCELLED, true);
	assert_int_equal(state_of(&b, ID_B).started_ms, 0);
	bench_close(&b);
}

static void
job_over_its_time_limit_is_ended(void **state)
{
	struct bench b;

	bench_open(&b, state, "stubborn");
	b.conf.v[CONF_JOB_TIMEOUT] = 1;
	given(&b, ID_A);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_TIMEOUT, true);
	bench_close(&b);
}

static void
stop_it(struct bench *b)
{
	queue_stop(b->queue);
}

static void
stopping_agent_lets_the_worker_report_and_keeps_the_rest(void **state)
{
	struct bench b;
	struct err e = {0};
	bool created;

	bench_open(&b, state, "polite");
	b.act = stop_it;
	b.left = 1;
	given(&b, ID_A);
	given(&b, ID_B);
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_CANCELLED, true);
	assert_int_equal(state_of(&b, ID_B).phase, PHASE_QUEUED);
	assert_int_equal(give(&b, ID_C, NULL, &created, &e), -1);
	assert_int_equal(e.code, ERR_BUSY);
	bench_close(&b);
	/* The next agent goes on with it. */
	bench_open(&b, state, "pass");
	bench_run(&b);
	ended_with(&b, ID_B, OUTCOME_PASS, REASON_NONE, true);
	bench_close(&b);
}

/* What a killed agent leaves: a state that says running, of a process that is gone. */
static void
leave_running(struct bench *b, const char *id, int64_t pid, const char *boot)
{
	struct job_state s = state_of(b, id);

	s.phase = PHASE_RUNNING;
	s.started_ms = s.submitted_ms;
	s.pid = pid;
	s.pid_start = 1;
	assert_int_equal(str_copy(s.boot_id, sizeof s.boot_id, boot, NULL), 0);
	assert_int_equal(store_save(b->store, &s, NULL), 0);
}

static void
running_job_of_a_dead_agent_ends_incomplete(void **state)
{
	struct bench b;
	char boot[40];

	plat_boot_id(boot);
	bench_open(&b, state, "pass");
	given(&b, ID_A);
	given(&b, ID_B);
	leave_running(&b, ID_A, 0x3fffffff, boot);
	bench_close(&b);
	bench_open(&b, state, "pass");
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, true);
	ended_with(&b, ID_B, OUTCOME_PASS, REASON_NONE, true);
	bench_close(&b);
}

/* The number belongs to somebody else now: this very process, which must live on. */
static void
process_of_another_boot_or_start_is_left_alone(void **state)
{
	struct bench b;
	char boot[40];

	plat_boot_id(boot);
	bench_open(&b, state, "pass");
	given(&b, ID_A);
	given(&b, ID_B);
	leave_running(&b, ID_A, getpid(), "00000000-0000-0000-0000-000000000000");
	leave_running(&b, ID_B, getpid(), boot);
	bench_close(&b);
	bench_open(&b, state, "pass");
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, true);
	ended_with(&b, ID_B, OUTCOME_INCOMPLETE, REASON_AGENT_DIED, true);
	bench_close(&b);
}

static void
whole_report_of_a_dead_agent_is_kept(void **state)
{
	struct bench b;

	bench_open(&b, state, "pass");
	given(&b, ID_A);
	leave_running(&b, ID_A, 0, "");
	file_write(b.place->dir, "spool/" ID_A "/report.json",
		"{\"outcome\":\"fail\",\"exitCode\":1,\"reasonCode\":\"build_failed\"}");
	file_write(b.place->dir, "spool/" ID_A "/report.dsse.json", "{}");
	bench_close(&b);
	bench_open(&b, state, "pass");
	bench_run(&b);
	ended_with(&b, ID_A, OUTCOME_FAIL, REASON_BUILD_FAILED, true);
	bench_close(&b);
}

static void
same_job_again_is_the_same_and_another_is_a_conflict(void **state)
{
	struct bench b;
	struct err e = {0};
	bool created = true;

	bench_open(&b, state, "pass");
	given(&b, ID_A);
	assert_int_equal(give(&b, ID_A, NULL, &created, &e), 0);
	assert_false(created);
	assert_int_equal(give(&b, ID_A, "other", &created, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	bench_run(&b);
	assert_int_equal(give(&b, ID_A, NULL, &created, &e), 0);
	assert_false(created);
	bench_close(&b);
}

static void
full_queue_is_busy(void **state)
{
	struct bench b;
	struct err e = {0};
	bool created;

	bench_open(&b, state, "pass");
	b.conf.v[CONF_MAX_QUEUE] = 1;
	given(&b, ID_A);
	assert_int_equal(give(&b, ID_B, NULL, &created, &e), -1);
	assert_int_equal(e.code, ERR_BUSY);
	assert_false(file_there(b.place->dir, "spool/" ID_B));
	bench_close(&b);
}

static void
acknowledgement_needs_the_digest_of_the_envelope(void **state)
{
	struct bench b;
	struct job_state s;
	struct err e = {0};

	bench_open(&b, state, "pass");
	b.conf.v[CONF_KEEP_DAYS] = 0;
	given(&b, ID_A);
	assert_int_equal(queue_ack(b.queue, ID_A, NONCE, &s, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT); /* not ended */
	bench_run(&b);
	assert_int_equal(queue_ack(b.queue, ID_A, NONCE, &s, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(queue_ack(b.queue, ID_B, NONCE, &s, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_true(file_there(b.place->dir, "spool/" ID_A));
	s = state_of(&b, ID_A);
	assert_int_equal(queue_ack(b.queue, ID_A, s.envelope_sha256, &s, &e), 0);
	assert_true(s.acked_ms > 0);
	bench_close(&b);
	usleep(2000); /* keep_days = 0: older than now */
	bench_open(&b, state, "pass");
	b.conf.v[CONF_KEEP_DAYS] = 0;
	bench_run(&b);
	assert_false(file_there(b.place->dir, "spool/" ID_A));
	assert_int_equal(state_of(&b, ID_A).outcome, OUTCOME_PASS);
	bench_close(&b);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(job_ends_with_the_report_of_its_worker),
		IN_PLACE(jobs_run_one_at_a_time_in_their_order),
		IN_PLACE(crashed_worker_gets_a_post_mortem),
		IN_PLACE(worker_that_leaves_no_report_did_not_pass),
		IN_PLACE(job_ends_even_when_the_post_mortem_fails),
		IN_PLACE(what_a_worker_started_dies_with_it),
		IN_PLACE(cancelled_worker_writes_its_own_report),
		IN_PLACE(stubborn_worker_is_killed_after_its_grace),
		IN_PLACE(waiting_job_is_cancelled_at_once_with_a_report),
		IN_PLACE(job_over_its_time_limit_is_ended),
		IN_PLACE(stopping_agent_lets_the_worker_report_and_keeps_the_rest),
		IN_PLACE(running_job_of_a_dead_agent_ends_incomplete),
		IN_PLACE(process_of_another_boot_or_start_is_left_alone),
		IN_PLACE(whole_report_of_a_dead_agent_is_kept),
		IN_PLACE(same_job_again_is_the_same_and_another_is_a_conflict),
		IN_PLACE(full_queue_is_busy),
		IN_PLACE(acknowledgement_needs_the_digest_of_the_envelope),
	};
	sigset_t set;

	/* As the daemon does before it starts threads. */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
