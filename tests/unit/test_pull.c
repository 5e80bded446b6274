/*
 * Pulling evidence from an agent that lies, cuts, or mixes things up (fake_http.h); the
 * envelopes are really signed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/digest.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/pull.h"
#include "tests/unit/fake_http.h"

#define LOG_BYTES 100000
#define REPORT "{\"schemaVersion\":2,\"runner\":\"cpu\",\"status\":\"fail\"," \
	"\"passRecordable\":false,\"exitCode\":3,\"failureReason\":null," \
	"\"startedAt\":\"2026-06-01T10:00:00Z\",\"finishedAt\":\"2026-06-01T10:00:01Z\"," \
	"\"host\":{\"emulated\":\"\"},\"target\":null,\"remoteDelegated\":false,\"requirements\":{}," \
	"\"evidence\":{},\"outcome\":\"blocked\",\"reasonCode\":null,\"jobId\":\"%s\"," \
	"\"nonce\":\"%s\",\"lane\":\"cpu\",\"suite\":{\"name\":\"llama.cpp\",\"digest\":\"%s\"}," \
	"\"agent\":{\"version\":\"0.1.0\"},\"device\":{},\"probes\":[],\"source\":null," \
	"\"build\":null,\"model\":null,\"gates\":[],\"fixtures\":[],\"claims\":{}," \
	"\"overrides\":[],\"smokes\":[],\"controls\":[],\"artifacts\":[%s]}"

static char folder[64], in[100];
static struct err e;
static struct sign_key *key, *other;
static struct job *job;
static struct client *client;
static struct progress *progress;
static FILE *null;
static struct pulled pulled;
/* What the fake agent gives; written before the fork. */
static char log_bytes[LOG_BYTES], log_sha[DIGEST_HEX];
static char *envelope, *report_text;

static struct sign_key *
key_at(const char *name)
{
	struct sign_key *k = NULL;
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(sign_key_open(path, true, &k, &e), 0);
	return k;
}

static int
setup(void **state)
{
	struct progress_look look = {.mode = PROGRESS_PLAIN};
	cJSON *o = cJSON_CreateObject();
	size_t i;

	(void)state;
	memset(&e, 0, sizeof e);
	memset(&pulled, 0, sizeof pulled);
	snprintf(folder, sizeof folder, "/tmp/pull.XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(in, sizeof in, "%s/in", folder);
	if (plat_mkdirs(in, 0700, &e) || !json_add_str(o, "lane", "cpu") ||
	    !json_add_str(o, "suite", "llama.cpp") || job_new(o, &job, &e))
		return -1;
	key = key_at("key");
	other = key_at("other");
	for (i = 0; i < LOG_BYTES; i++)
		log_bytes[i] = (char)('a' + i * 7 % 26);
	digest_bytes(log_bytes, LOG_BYTES, log_sha);
	if ((null = fopen("/dev/null", "w")) == NULL)
		return -1;
	return progress_new(null, &look, "h", job->id, &progress, &e);
}

static int
teardown(void **state)
{
	(void)state;
	fake_stop();
	pulled_fini(&pulled);
	client_close(client);
	progress_free(progress);
	fclose(null);
	job_free(job);
	sign_key_free(key);
	sign_key_free(other);
	free(envelope);
	free(report_text);
	client = NULL, envelope = report_text = NULL;
	return plat_remove_tree(folder, &e);
}

/* Signs a report: artifacts is the inside of the list; subject a digest for report.json
 * or NULL. */
static void
sign_report(const struct sign_key *k, const char *id, const char *nonce,
	const char *artifacts, const char *subject)
{
	size_t size = strlen(REPORT) + strlen(artifacts) + 300, whole = size + 600;
	char *statement, hex[DIGEST_HEX];

	assert_non_null(report_text = malloc(size));
	snprintf(report_text, size, REPORT, id, nonce, job->suite->digest, artifacts);
	digest_bytes(report_text, strlen(report_text), hex);
	assert_non_null(statement = malloc(whole));
	snprintf(statement, whole, "{\"_type\":\"%s\",\"subject\":[{\"name\":\"report.json\","
		"\"digest\":{\"sha256\":\"%s\"}}],\"predicateType\":\"%s\",\"predicate\":%s}",
		SIGN_STATEMENT_TYPE, subject ? subject : hex, SIGN_PREDICATE_TYPE, report_text);
	assert_int_equal(sign_envelope(k, statement, strlen(statement), &envelope, &e), 0);
	free(statement);
}

static void
sign_log(const char *name, size_t bytes, const char *sha)
{
	char row[400];

	snprintf(row, sizeof row, "{\"name\":\"%s\",\"bytes\":%zu,\"sha256\":\"%s\"}", name,
		bytes, sha);
	sign_report(key, job->id, job->nonce, row, NULL);
}

static int
pull(fake_handler handler)
{
	struct reach r = {.base = "http://localhost", .shown = "fake"};
	struct pull_ask ask = {.progress = progress, .job = job, .folder = in,
		.public_key = sign_key_public(key)};

	snprintf(r.socket, sizeof r.socket, "%s/sock", folder);
	assert_int_equal(fake_start(r.socket, handler), 0);
	assert_int_equal(client_open(&r, NULL, NULL, &client, &e), 0);
	client_patience(client, 2);
	ask.client = client;
	return pull_run(&ask, &pulled, &e);
}

/* What every handler answers alike; true when it was that. */
static int
is_common(int fd, const struct fake_request *r)
{
	if (strstr(r->path, "/report.json") != NULL)
		fake_range(fd, r, report_text, strlen(report_text));
	else if (strstr(r->path, "/report") != NULL)
		fake_json(fd, "200 OK", envelope);
	else
		return 0;
	return 1;
}

static void
honest(int fd, const struct fake_request *r)
{
	if (!is_common(fd, r))
		fake_range(fd, r, log_bytes, LOG_BYTES);
}

static void
is_stored(const char *name)
{
	char path[200], hex[DIGEST_HEX];

	snprintf(path, sizeof path, "%s/%s", in, name);
	assert_int_equal(digest_file(path, hex, NULL, &e), 0);
	assert_string_equal(hex, log_sha);
}

static void
a_whole_pull_brings_log_and_report(void **state)
{
	char path[200];

	(void)state;
	sign_log("cpu-build.log", LOG_BYTES, log_sha);
	if (pull(honest))
		fail_msg("%s", e.msg);
	is_stored("cpu-build.log");
	snprintf(path, sizeof path, "%s/report.json", in);
	assert_true(plat_is_file(path));
	assert_string_equal(pulled.opened.key_id, sign_key_id(key));
	assert_int_equal(pulled.bytes, LOG_BYTES);
}

static void
another_key_is_refused_in_the_signature_layer(void **state)
{
	(void)state;
	sign_report(other, job->id, job->nonce, "", NULL);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_true(str_starts(e.msg, "signature: "));
}

static void
yesterdays_good_report_is_a_nonce_mismatch(void **state)
{
	char nonce[JOB_NONCE_HEX + 1];

	(void)state;
	memset(nonce, 'a', JOB_NONCE_HEX);
	nonce[JOB_NONCE_HEX] = '\0';
	sign_report(key, job->id, nonce, "", NULL);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_int_equal(err_exit(e.code), EXIT_REFUSED);
	assert_true(str_starts(e.msg, "nonce_mismatch"));
}

static void
another_jobs_report_is_a_job_mismatch(void **state)
{
	(void)state;
	sign_report(key, "0123456789abcdef0123456789abcdef", job->nonce, "", NULL);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_true(str_starts(e.msg, "job_mismatch"));
}

static void
a_report_file_with_another_digest_fails_in_the_subject_layer(void **state)
{
	(void)state;
	sign_report(key, job->id, job->nonce, "", log_sha);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_true(str_starts(e.msg, "subject: "));
}

static void
something_else_than_an_envelope_fails_in_the_envelope_layer(void **state)
{
	(void)state;
	assert_non_null(envelope = strdup("{\"payload\":7}"));
	assert_non_null(report_text = strdup("{}"));
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_true(str_starts(e.msg, "envelope: "));
}

/* Each connection gives 30000 bytes more and is cut; without Range it would never end. */
static void
cutting(int fd, const struct fake_request *r)
{
	char head[200];
	size_t from = r->from > 0 ? (size_t)r->from : 0, n = LOG_BYTES - from;

	if (is_common(fd, r))
		return;
	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
		"Content-Range: bytes %zu-%d/%d\r\nContent-Length: %zu\r\n\r\n",
		r->from > 0 ? "206 Partial Content" : "200 OK", from, LOG_BYTES - 1, LOG_BYTES,
		n);
	fake_text(fd, head);
	fake_raw(fd, log_bytes + from, n < 30000 ? n : 30000);
}

static void
a_cut_artifact_goes_on_where_it_stopped(void **state)
{
	(void)state;
	sign_log("a.log", LOG_BYTES, log_sha);
	if (pull(cutting))
		fail_msg("%s", e.msg);
	is_stored("a.log");
	/* Envelope, report.json, and four stretches. */
	assert_int_equal(*fake_count, 6);
}

static void
only_rest(int fd, const struct fake_request *r)
{
	if (is_common(fd, r))
		return;
	if (r->from == LOG_BYTES / 2)
		fake_range(fd, r, log_bytes, LOG_BYTES);
	else
		fake_json(fd, "404 Not Found",
			"{\"error\":{\"code\":\"not_found\",\"message\":\"only the rest\"}}");
}

static void
what_a_killed_pull_left_is_not_sent_again(void **state)
{
	char path[200];

	(void)state;
	snprintf(path, sizeof path, "%s/a.log.part", in);
	assert_int_equal(plat_write_file(path, log_bytes, LOG_BYTES / 2, 0600, &e), 0);
	sign_log("a.log", LOG_BYTES, log_sha);
	if (pull(only_rest))
		fail_msg("%s", e.msg);
	is_stored("a.log");
}

static void
nothing(int fd, const struct fake_request *r)
{
	if (!is_common(fd, r))
		fake_json(fd, "404 Not Found",
			"{\"error\":{\"code\":\"not_found\",\"message\":\"no\"}}");
}

static void
a_finished_artifact_is_not_sent_again(void **state)
{
	char path[200];

	(void)state;
	snprintf(path, sizeof path, "%s/a.log", in);
	assert_int_equal(plat_write_file(path, log_bytes, LOG_BYTES, 0600, &e), 0);
	sign_log("a.log", LOG_BYTES, log_sha);
	if (pull(nothing))
		fail_msg("%s", e.msg);
}

static void
rubbish_from_an_earlier_pull_is_replaced(void **state)
{
	char path[200];

	(void)state;
	snprintf(path, sizeof path, "%s/a.log.part", in);
	assert_int_equal(plat_write_file(path, "rubbish", 7, 0600, &e), 0);
	snprintf(path, sizeof path, "%s/a.log", in);
	assert_int_equal(plat_write_file(path, "more", 4, 0600, &e), 0);
	sign_log("a.log", LOG_BYTES, log_sha);
	if (pull(honest))
		fail_msg("%s", e.msg);
	is_stored("a.log");
}

static void
wrong_once(int fd, const struct fake_request *r)
{
	static char other_bytes[LOG_BYTES];

	if (is_common(fd, r))
		return;
	memset(other_bytes, 'x', sizeof other_bytes);
	fake_range(fd, r, r->number == 2 ? other_bytes : log_bytes, LOG_BYTES);
}

static void
wrong_bytes_are_fetched_again(void **state)
{
	(void)state;
	sign_log("a.log", LOG_BYTES, log_sha);
	if (pull(wrong_once))
		fail_msg("%s", e.msg);
	is_stored("a.log");
}

static void
always_wrong(int fd, const struct fake_request *r)
{
	static char other_bytes[LOG_BYTES];

	if (is_common(fd, r))
		return;
	memset(other_bytes, 'x', sizeof other_bytes);
	fake_range(fd, r, other_bytes, LOG_BYTES);
}

static void
bytes_that_stay_wrong_are_an_integrity_error(void **state)
{
	char path[200];

	(void)state;
	sign_log("a.log", LOG_BYTES, log_sha);
	assert_int_equal(pull(always_wrong), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	assert_int_equal(*fake_count, 2 + PULL_ATTEMPTS);
	assert_non_null(strstr(e.hint, "attach"));
	snprintf(path, sizeof path, "%s/a.log", in);
	assert_false(plat_exists(path));
}

static void
a_missing_artifact_is_an_integrity_error(void **state)
{
	(void)state;
	sign_log("a.log", LOG_BYTES, log_sha);
	assert_int_equal(pull(nothing), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
}

static void
a_longer_or_shorter_artifact_is_an_integrity_error(void **state)
{
	(void)state;
	sign_log("a.log", LOG_BYTES - 1, log_sha);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	fake_stop();
	client_close(client);
	client = NULL;
	pulled_fini(&pulled);
	free(envelope);
	free(report_text);
	memset(&e, 0, sizeof e);
	sign_log("a.log", LOG_BYTES + 1, log_sha);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
}

static void
names_that_leave_the_folder_are_refused_before_any_byte(void **state)
{
	(void)state;
	sign_log("../../pins", LOG_BYTES, log_sha);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_int_equal(*fake_count, 1);
}

static void
a_name_listed_twice_is_refused(void **state)
{
	char rows[600];

	(void)state;
	snprintf(rows, sizeof rows, "{\"name\":\"a\",\"bytes\":1,\"sha256\":\"%s\"},"
		"{\"name\":\"b\",\"bytes\":1,\"sha256\":\"%s\"},"
		"{\"name\":\"a\",\"bytes\":1,\"sha256\":\"%s\"}", log_sha, log_sha, log_sha);
	sign_report(key, job->id, job->nonce, rows, NULL);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_non_null(strstr(e.msg, "twice"));
}

static void
too_large_an_artifact_is_refused_by_its_size(void **state)
{
	char row[300];

	(void)state;
	snprintf(row, sizeof row, "{\"name\":\"a\",\"bytes\":%llu,\"sha256\":\"%s\"}",
		CLIENT_MAX_ARTIFACT + 1, log_sha);
	sign_report(key, job->id, job->nonce, row, NULL);
	assert_int_equal(pull(honest), -1);
	assert_int_equal(*fake_count, 1);
}

static void
names_follow_one_rule(void **state)
{
	static const char *const bad[] = {"", ".", "..", ".a", "a/b", "a b", "a\n", "a:b",
		"\xc3\xa4", "a%2e"};
	char lengthy[300];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		assert_false(pull_name_ok(bad[i]));
	assert_true(pull_name_ok("linux-x64-cpu-q8_0-q8_0.log"));
	assert_true(pull_name_ok("a+b.1"));
	memset(lengthy, 'a', sizeof lengthy);
	lengthy[201] = '\0';
	assert_false(pull_name_ok(lengthy));
	lengthy[200] = '\0';
	assert_true(pull_name_ok(lengthy));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_whole_pull_brings_log_and_report),
		T(another_key_is_refused_in_the_signature_layer),
		T(yesterdays_good_report_is_a_nonce_mismatch),
		T(another_jobs_report_is_a_job_mismatch),
		T(a_report_file_with_another_digest_fails_in_the_subject_layer),
		T(something_else_than_an_envelope_fails_in_the_envelope_layer),
		T(a_cut_artifact_goes_on_where_it_stopped),
		T(what_a_killed_pull_left_is_not_sent_again),
		T(a_finished_artifact_is_not_sent_again),
		T(rubbish_from_an_earlier_pull_is_replaced),
		T(wrong_bytes_are_fetched_again),
		T(bytes_that_stay_wrong_are_an_integrity_error),
		T(a_missing_artifact_is_an_integrity_error),
		T(a_longer_or_shorter_artifact_is_an_integrity_error),
		T(names_that_leave_the_folder_are_refused_before_any_byte),
		T(a_name_listed_twice_is_refused),
		T(too_large_an_artifact_is_refused_by_its_size),
		cmocka_unit_test(names_follow_one_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
