#include "agent_help.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/store.h"

#define REPORT "{\"outcome\":\"blocked\",\"passRecordable\":false,\"exitCode\":3," \
	"\"failureReason\":\"no model\",\"gates\":[{\"outcome\":\"pass\",\"reasonCode\":" \
	"\"none\"},{\"outcome\":\"blocked\",\"reasonCode\":\"model_not_given\"}]}"

static struct store *
opened(const char *dir)
{
	struct store *st = NULL;
	struct err e = {0};

	if (store_open(dir, 100, &st, &e))
		fail_msg("%s", e.msg);
	return st;
}

static void
added(struct store *st, const char *id)
{
	struct job *j = job_make(id, NULL);
	struct entry *en = NULL;
	struct err e = {0};

	if (store_add(st, j, &en, &e))
		fail_msg("%s", e.msg);
	assert_string_equal(en->id, id);
	job_free(j);
}

/* Ends a job as if its worker had, long ago. */
static void
ended(struct store *st, const char *id, bool acked, uint64_t bytes)
{
	struct job_state s;

	assert_int_equal(store_read(st, id, &s, NULL), 0);
	s.phase = PHASE_DONE;
	s.outcome = OUTCOME_PASS;
	s.reason = REASON_NONE;
	s.exit = 0;
	s.spool_bytes = bytes;
	s.acked_ms = acked ? 1 : 0;
	s.submitted_ms = plat_now_ms() - 10 * INT64_C(86400000);
	assert_int_equal(store_save(st, &s, NULL), 0);
}

static void
state_reads_back_as_it_was_written(void **state)
{
	struct job_state s, back;
	cJSON *o;
	char *text;

	(void)state;
	memset(&s, 0, sizeof s);
	assert_int_equal(str_copy(s.id, sizeof s.id, ID_A, NULL), 0);
	assert_int_equal(str_copy(s.lane, sizeof s.lane, "cpu", NULL), 0);
	assert_int_equal(str_copy(s.suite, sizeof s.suite, "llama.cpp", NULL), 0);
	memset(s.job_digest, 'a', 64);
	memset(s.envelope_sha256, 'b', 64);
	assert_int_equal(str_copy(s.detail, sizeof s.detail, "said \"why\"\n", NULL), 0);
	assert_int_equal(str_copy(s.boot_id, sizeof s.boot_id,
		"89439a2c-afab-4976-be1f-74db4ce9710e", NULL), 0);
	s.phase = PHASE_DONE;
	s.submitted_ms = 1780000000123;
	s.started_ms = 1780000000456;
	s.finished_ms = 1780000000789;
	s.acked_ms = 1780000001000;
	s.outcome = OUTCOME_FAIL;
	s.reason = REASON_BUILD_FAILED;
	s.exit = EXIT_FAIL;
	s.last_event = 17;
	s.cancel = s.pruned = true;
	s.pid = 4711;
	s.pid_start = UINT64_C(0xfffffffffffffff1);
	s.spool_bytes = 1234567;
	assert_non_null(o = store_format(&s));
	assert_non_null(text = json_text(o, true));
	assert_int_equal(store_parse(text, strlen(text), &back, NULL), 0);
	assert_memory_equal(&s, &back, sizeof s);
	free(text);
	cJSON_Delete(o);
}

static void
public_state_has_the_members_of_the_interface(void **state)
{
	static const char *const keys[] = {"id", "state", "lane", "suite", "submittedAt",
		"startedAt", "finishedAt", "outcome", "reasonCode", "passRecordable",
		"exitCode", "lastEvent", "envelopeSha256", "acknowledged", "detail", NULL};
	struct job_state s = {.phase = PHASE_QUEUED, .outcome = -1, .reason = -1, .exit = -1,
		.submitted_ms = 1780272000000};
	cJSON *o = store_public(&s);

	(void)state;
	assert_non_null(o);
	assert_int_equal(json_known(o, keys, NULL), 0);
	assert_int_equal(cJSON_GetArraySize(o), 15);
	assert_string_equal(json_str(o, "state"), "queued");
	assert_string_equal(json_str(o, "submittedAt"), "2026-06-01T00:00:00Z");
	assert_true(cJSON_IsNull(json_get(o, "startedAt")));
	assert_true(cJSON_IsNull(json_get(o, "outcome")));
	assert_true(cJSON_IsNull(json_get(o, "exitCode")));
	assert_true(cJSON_IsNull(json_get(o, "envelopeSha256")));
	assert_true(cJSON_IsNull(json_get(o, "detail")));
	cJSON_Delete(o);
	s.phase = PHASE_DONE;
	s.outcome = OUTCOME_PASS;
	s.reason = REASON_NONE;
	assert_non_null(o = store_public(&s));
	assert_string_equal(json_str(o, "outcome"), "pass");
	assert_true(cJSON_IsNull(json_get(o, "reasonCode")));
	cJSON_Delete(o);
}

static void
state_with_an_unknown_word_is_an_error(void **state)
{
	struct job_state s;
	struct err e = {0};
	static const char text[] = "{\"schemaVersion\":1,\"id\":\"" ID_A "\",\"state\":"
		"\"sleeping\"}";

	(void)state;
	assert_int_equal(store_parse(text, strlen(text), &s, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
}

static void
second_agent_on_a_folder_is_refused(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir), *two = NULL;
	struct err e = {0};

	assert_int_equal(store_open(p->dir, 100, &two, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	store_close(st);
	store_close(opened(p->dir));
}

static void
new_job_is_there_after_a_restart(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);
	struct job_state s;
	struct job *j = job_make(ID_A, NULL);
	char path[400], *text;
	size_t len;

	added(st, ID_A);
	store_close(st);
	st = opened(p->dir);
	assert_int_equal(store_read(st, ID_A, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_QUEUED);
	assert_string_equal(s.job_digest, j->digest);
	assert_int_equal(store_spool(st, ID_A, "job.json", path, sizeof path, NULL), 0);
	assert_int_equal(plat_read_file(path, JOB_MAX_BYTES, &text, &len, NULL), 0);
	assert_string_equal(text, j->text);
	free(text);
	job_free(j);
	store_close(st);
}

static void
jobs_come_back_in_the_order_of_their_submission(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);

	added(st, ID_C);
	usleep(3000);
	added(st, ID_A);
	usleep(3000);
	added(st, ID_B);
	store_close(st);
	st = opened(p->dir);
	assert_int_equal(store_count(st), 3);
	assert_string_equal(store_at(st, 0)->id, ID_C);
	assert_string_equal(store_at(st, 1)->id, ID_A);
	assert_string_equal(store_at(st, 2)->id, ID_B);
	store_close(st);
}

static void
damaged_state_is_kept_aside_and_made_anew(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);
	struct job_state s;

	added(st, ID_A);
	store_close(st);
	file_write(p->dir, "jobs/" ID_A ".json", "{\"schemaVersion\":1,\"id\":\"");
	st = opened(p->dir);
	assert_true(file_there(p->dir, "jobs/" ID_A ".json.damaged"));
	assert_int_equal(store_read(st, ID_A, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_RUNNING); /* the queue ends it */
	assert_string_equal(s.suite, "llama.cpp");
	store_close(st);
	store_close(opened(p->dir)); /* what was made anew is whole */
}

static void
damaged_state_and_damaged_document_are_still_a_job(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);
	struct job_state s;

	added(st, ID_A);
	store_close(st);
	file_write(p->dir, "jobs/" ID_A ".json", "");
	file_write(p->dir, "spool/" ID_A "/job.json", "\xff\xfe");
	st = opened(p->dir);
	assert_int_equal(store_read(st, ID_A, &s, NULL), 0);
	assert_string_equal(s.job_digest, "");
	store_close(st);
}

static void
result_comes_from_report_and_envelope(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);
	struct job_state s;
	char digest[DIGEST_HEX];

	added(st, ID_A);
	assert_int_equal(store_read(st, ID_A, &s, NULL), 0);
	assert_int_equal(store_result(st, &s, NULL), -1);
	file_write(p->dir, "spool/" ID_A "/report.json", REPORT);
	assert_int_equal(store_result(st, &s, NULL), -1); /* not signed yet */
	file_write(p->dir, "spool/" ID_A "/report.dsse.json", "{}");
	assert_int_equal(store_result(st, &s, NULL), 0);
	digest_bytes("{}", 2, digest);
	assert_string_equal(s.envelope_sha256, digest);
	assert_int_equal(s.outcome, OUTCOME_BLOCKED);
	assert_int_equal(s.reason, REASON_MODEL_NOT_GIVEN);
	assert_int_equal(s.exit, EXIT_BLOCKED);
	assert_string_equal(s.detail, "no model");
	file_write(p->dir, "spool/" ID_A "/report.json", "{\"outcome\":\"splendid\"}");
	assert_int_equal(store_result(st, &s, NULL), -1);
	assert_string_equal(s.envelope_sha256, "");
	store_close(st);
}

static void
last_event_is_that_of_the_last_whole_line(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);
	bool done;

	assert_int_equal(store_last_event(st, ID_A, &done), 0);
	assert_false(done);
	file_write(p->dir, "events/" ID_A ".ndjson", "{\"seq\":1,\"type\":\"note\"}\n"
		"{\"seq\":2,\"type\":\"job\",\"state\":\"done\"}\n{\"seq\":3,\"ty");
	assert_int_equal(store_last_event(st, ID_A, &done), 2);
	assert_true(done);
	store_close(st);
}

static void
job_that_nobody_acknowledged_is_never_pruned(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);

	added(st, ID_A);
	added(st, ID_B);
	added(st, ID_C);
	ended(st, ID_A, false, 1000);
	ended(st, ID_B, true, 1000);
	assert_int_equal(store_prune(st, 0, 0), 1);
	assert_true(file_there(p->dir, "spool/" ID_A "/job.json"));
	assert_false(file_there(p->dir, "spool/" ID_B));
	assert_true(file_there(p->dir, "jobs/" ID_B ".json"));
	assert_true(file_there(p->dir, "spool/" ID_C "/job.json"));
	assert_true(store_find(st, ID_B)->pruned);
	assert_int_equal(store_prune(st, 0, 0), 0);
	store_close(st);
}

static void
pruning_waits_for_age_or_size(void **state)
{
	struct place *p = *state;
	struct store *st = opened(p->dir);

	added(st, ID_A);
	added(st, ID_B);
	ended(st, ID_A, true, 600);
	ended(st, ID_B, true, 600);
	assert_int_equal(store_spool_bytes(st), 1200);
	assert_int_equal(store_prune(st, 11, 1200), 0);
	assert_int_equal(store_prune(st, 11, 1199), 1);
	assert_true(store_find(st, ID_A)->pruned); /* the older of the two */
	assert_int_equal(store_spool_bytes(st), 600);
	assert_int_equal(store_prune(st, 9, 1200), 1);
	store_close(st);
}

static void
pruned_record_makes_room_for_a_new_job(void **state)
{
	struct place *p = *state;
	struct store *st = NULL;
	struct entry *en;
	struct job *j = job_make(ID_C, NULL);
	struct err e = {0};

	assert_int_equal(store_open(p->dir, 2, &st, &e), 0);
	added(st, ID_A);
	added(st, ID_B);
	assert_int_equal(store_add(st, j, &en, &e), -1);
	assert_int_equal(e.code, ERR_BUSY);
	ended(st, ID_B, true, 1);
	assert_int_equal(store_prune(st, 0, 0), 1);
	assert_int_equal(store_add(st, j, &en, &e), 0);
	assert_null(store_find(st, ID_B));
	assert_non_null(store_find(st, ID_A));
	job_free(j);
	store_close(st);
}

/* A small file system of our own, filled up. */
static void
full_disk_leaves_nothing_behind(void **state)
{
	struct place *p = *state;
	struct job *j = job_make(ID_A, NULL);
	struct job_state s;
	struct store *st;
	struct entry *en = NULL;
	struct err e = {0};
	char path[300], block[4096] = {0};
	FILE *f;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", p->dir, "tmpfs", 0, "size=256k")) {
		job_free(j);
		skip();
	}
	st = opened(p->dir);
	added(st, ID_B);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/fill", p->dir), 0);
	assert_non_null(f = fopen(path, "w"));
	while (fwrite(block, 1, sizeof block, f) == sizeof block && fflush(f) == 0)
		;
	fclose(f);
	assert_int_equal(store_add(st, j, &en, &e), -1);
	assert_int_equal(e.code, ERR_NOSPACE);
	assert_null(store_find(st, ID_A));
	assert_false(file_there(p->dir, "spool/" ID_A));
	/* A state that the disk refuses is the one that holds, and is written later. */
	assert_int_equal(store_read(st, ID_B, &s, NULL), 0);
	s.phase = PHASE_DONE;
	s.outcome = OUTCOME_INCOMPLETE;
	s.reason = REASON_DISK_FULL;
	assert_int_equal(store_save(st, &s, NULL), -1);
	assert_false(store_retry(st));
	assert_int_equal(store_read(st, ID_B, &s, NULL), 0);
	assert_int_equal(s.reason, REASON_DISK_FULL);
	assert_int_equal(unlink(path), 0);
	assert_true(store_retry(st));
	store_close(st);
	st = opened(p->dir);
	assert_int_equal(store_read(st, ID_B, &s, NULL), 0);
	assert_int_equal(s.phase, PHASE_DONE);
	store_close(st);
	job_free(j);
	assert_int_equal(umount(p->dir), 0);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_reads_back_as_it_was_written),
		cmocka_unit_test(public_state_has_the_members_of_the_interface),
		cmocka_unit_test(state_with_an_unknown_word_is_an_error),
		IN_PLACE(second_agent_on_a_folder_is_refused),
		IN_PLACE(new_job_is_there_after_a_restart),
		IN_PLACE(jobs_come_back_in_the_order_of_their_submission),
		IN_PLACE(damaged_state_is_kept_aside_and_made_anew),
		IN_PLACE(damaged_state_and_damaged_document_are_still_a_job),
		IN_PLACE(result_comes_from_report_and_envelope),
		IN_PLACE(last_event_is_that_of_the_last_whole_line),
		IN_PLACE(job_that_nobody_acknowledged_is_never_pruned),
		IN_PLACE(pruning_waits_for_age_or_size),
		IN_PLACE(pruned_record_makes_room_for_a_new_job),
		IN_PLACE(full_disk_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
