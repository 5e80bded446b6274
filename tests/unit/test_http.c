#include "agent_help.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/event.h"
#include "agent/http.h"

/* The real server on a Unix socket in a folder of its own; no worker is ever started. */
struct bench {
	struct serve s;
	const char *dir;
	char answer[65536]; /* of the last ask() */
};

static const char *const probe[] = {"/bin/echo", "{\"os\":\"Linux\"}", NULL};

static void
bench_open(struct bench *b, void **state, unsigned connections, unsigned heartbeat_s)
{
	struct queue_spec spec = {.program = "/bin/false"};
	struct err e = {0};
	char address[300], events[300];

	memset(b, 0, sizeof *b);
	b->dir = ((struct place *)*state)->dir;
	conf_default(&b->s.conf);
	b->s.conf.v[CONF_MAX_CONNECTIONS] = connections;
	assert_int_equal(str_fmt(address, sizeof address, NULL, "unix:%s/s", b->dir), 0);
	assert_int_equal(str_fmt(events, sizeof events, NULL, "%s/events", b->dir), 0);
	spec.conf = &b->s.conf;
	if (store_open(b->dir, 100, &b->s.store, &e) ||
	    listen_open(address, &b->s.listener, &e) ||
	    streams_new(events, 3, heartbeat_s, &b->s.streams, &e) ||
	    host_new(probe, &b->s.host, &e))
		fail_msg("%s", e.msg);
	spec.store = b->s.store;
	if (queue_new(&spec, &b->s.queue, &e) || http_start(&b->s, &b->s.http, &e))
		fail_msg("%s", e.msg);
}

static void
bench_close(struct bench *b)
{
	http_stop(b->s.http);
	queue_free(b->s.queue);
	host_free(b->s.host);
	streams_free(b->s.streams);
	listen_close(&b->s.listener);
	store_close(b->s.store);
}

static int
dial(const struct bench *b)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(str_fmt(un.sun_path, sizeof un.sun_path, NULL, "%s/s", b->dir), 0);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&un, sizeof un), 0);
	return fd;
}

static void
say(int fd, const char *text)
{
	size_t n = strlen(text);

	while (n > 0) {
		ssize_t done = send(fd, text, n, MSG_NOSIGNAL);

		assert_true(done > 0);
		text += done;
		n -= (size_t)done;
	}
}

/* Reads to the end of the connection. */
static void
hear_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len + 1 < size && (n = recv(fd, out + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	out[len] = '\0';
}

static char heard[16384]; /* by the last hear_until() */

/* Reads until the text came, or fails. */
static void
hear_until(int fd, const char *text)
{
	size_t len = 0;
	ssize_t n;

	heard[0] = '\0';
	while (strstr(heard, text) == NULL) {
		if ((n = recv(fd, heard + len, sizeof heard - 1 - len, 0)) <= 0)
			fail_msg("no \"%s\" in \"%s\"", text, heard);
		len += (size_t)n;
		heard[len] = '\0';
	}
}

/* One request on a connection of its own; the status.  The answer is in b->answer. */
static int
ask(struct bench *b, const char *head, const char *body)
{
	char request[4096];
	int fd = dial(b);

	assert_int_equal(str_fmt(request, sizeof request, NULL,
		"%s\r\nHost: agent\r\nConnection: close\r\n\r\n", head), 0);
	say(fd, request);
	if (body != NULL)
		say(fd, body);
	hear_all(fd, b->answer, sizeof b->answer);
	close(fd);
	assert_true(str_starts(b->answer, "HTTP/1.1 "));
	return (int)strtol(b->answer + 9, NULL, 10);
}

static int
get(struct bench *b, const char *path)
{
	char head[600];

	assert_int_equal(str_fmt(head, sizeof head, NULL, "GET %s HTTP/1.1", path), 0);
	return ask(b, head, NULL);
}

static int
post(struct bench *b, const char *path, const char *body)
{
	char head[600];

	assert_int_equal(str_fmt(head, sizeof head, NULL,
		"POST %s HTTP/1.1\r\nContent-Length: %zu", path, strlen(body)), 0);
	return ask(b, head, body);
}

static void
has_code(const struct bench *b, const char *code)
{
	const char *body = strstr(b->answer, "\r\n\r\n");
	cJSON *o = NULL;

	assert_non_null(body);
	assert_int_equal(json_parse(body + 4, strlen(body + 4), 65536, &o, NULL), 0);
	assert_string_equal(json_path_str(o, "error.code"), code);
	assert_true(json_path_str(o, "error.message")[0] != '\0');
	assert_non_null(json_path_str(o, "error.hint"));
	cJSON_Delete(o);
}

static void
given(struct bench *b, const char *id)
{
	struct job *j = job_make(id, NULL);

	assert_int_equal(post(b, "/v1/jobs", j->text), 201);
	job_free(j);
}

static void
finished(struct bench *b, const char *id)
{
	struct job_state s;

	store_lock(b->s.store);
	assert_int_equal(store_read(b->s.store, id, &s, NULL), 0);
	s.phase = PHASE_DONE;
	s.outcome = OUTCOME_PASS;
	s.reason = REASON_NONE;
	assert_int_equal(store_save(b->s.store, &s, NULL), 0);
	stream_ended(b->s.streams, id);
	store_unlock(b->s.store);
}

static void
noted(const struct bench *b, const char *id, const char *text)
{
	struct event_log *l = NULL;
	char path[400];

	assert_int_equal(store_path(b->s.store, "events", id, ".ndjson", path, sizeof path,
		NULL), 0);
	assert_int_equal(event_open(path, &l, NULL), 0);
	event_note(l, "host", text);
	assert_false(event_failed(l));
	event_close(l);
}

static int
follow(const struct bench *b, const char *query)
{
	char request[300];
	int fd = dial(b);

	assert_int_equal(str_fmt(request, sizeof request, NULL,
		"GET /v1/jobs/" ID_A "/events%s HTTP/1.1\r\nHost: agent\r\n\r\n", query), 0);
	say(fd, request);
	return fd;
}

static void
health_host_and_suites_are_answered(void **state)
{
	struct bench b;
	struct stat st;
	char path[300];

	bench_open(&b, state, 64, 15);
	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/s", b.dir), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(get(&b, "/v1/health"), 200);
	assert_non_null(strstr(b.answer, "\"v1\""));
	assert_int_equal(get(&b, "/v1/host"), 200);
	assert_non_null(strstr(b.answer, "{\"os\":\"Linux\"}"));
	assert_int_equal(get(&b, "/v1/suites"), 200);
	assert_non_null(strstr(b.answer, "\"eliza-1\""));
	assert_int_equal(get(&b, "/v1/suites/nope"), 404);
	has_code(&b, "not_found");
	assert_int_equal(get(&b, "/metrics"), 200);
	assert_non_null(strstr(b.answer, "version=0.0.4"));
	assert_int_equal(ask(&b, "PUT /v1/health HTTP/1.1\r\nContent-Length: 0", NULL), 405);
	assert_non_null(strstr(b.answer, "Allow: GET, HEAD\r\n"));
	bench_close(&b);
	assert_false(plat_exists(path));
}

static void
bad_jobs_are_refused_and_nothing_is_stored(void **state)
{
	static const struct {
		const char *body;
		int status;
	} rows[] = {
		{"{", 400}, {"", 400}, {"[]", 400}, {"null", 400},
		{"{\"a\":1,\"a\":1}", 400},
		{"{\"a\":NaN}", 400},
		{"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 413},
		{"\xff\xfe{", 400},
		{"{\"schemaVersion\":1,\"surprise\":1}", 400},
	};
	struct bench b;
	size_t i;

	bench_open(&b, state, 64, 15);
	for (i = 0; i < str_count(rows); i++)
		if (post(&b, "/v1/jobs", rows[i].body) != rows[i].status)
			fail_msg("%s: %.20s", rows[i].body, b.answer);
	assert_int_equal(store_count(b.s.store), 0);
	bench_close(&b);
}

static void
body_over_the_maximum_is_413_however_it_comes(void **state)
{
	struct bench b;
	char *big = malloc(300001), *chunked = malloc(310000);
	int n;

	bench_open(&b, state, 64, 15);
	memset(big, 'x', 300000);
	big[300000] = '\0';
	assert_int_equal(post(&b, "/v1/jobs", big), 413);
	has_code(&b, "too_large");
	n = snprintf(chunked, 310000, "%x\r\n%s\r\n0\r\n\r\n", 300000, big);
	assert_true(n > 0 && n < 310000);
	assert_int_equal(ask(&b, "POST /v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked",
		chunked), 413);
	/* Not one byte of it is waited for. */
	assert_int_equal(ask(&b, "POST /v1/jobs HTTP/1.1\r\nContent-Length: 99999999999",
		NULL), 413);
	assert_int_equal(ask(&b, "POST /v1/jobs HTTP/1.1\r\nContent-Length: 200000\r\n"
		"Expect: 100-continue", NULL), 413);
	assert_int_equal(ask(&b, "GET /v1/health HTTP/1.1\r\nContent-Length: 5", "hello"),
		413);
	free(big);
	free(chunked);
	bench_close(&b);
}

static void
same_job_again_is_200_and_another_409(void **state)
{
	struct bench b;
	struct job *j = job_make(ID_A, NULL), *other = job_make(ID_A, "x");

	bench_open(&b, state, 64, 15);
	assert_int_equal(post(&b, "/v1/jobs", j->text), 201);
	assert_int_equal(post(&b, "/v1/jobs", j->text), 200);
	assert_non_null(strstr(b.answer, "\"queued\""));
	assert_int_equal(post(&b, "/v1/jobs", other->text), 409);
	has_code(&b, "conflict");
	assert_int_equal(get(&b, "/v1/jobs"), 200);
	assert_non_null(strstr(b.answer, ID_A));
	assert_int_equal(get(&b, "/v1/jobs/" ID_B), 404);
	assert_int_equal(post(&b, "/v1/jobs/" ID_A "/ack", "{\"x\":1}"), 400);
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/report"), 404);
	job_free(j);
	job_free(other);
	bench_close(&b);
}

static void
artifacts_stay_in_their_folder(void **state)
{
	static const char *const ways[] = {"../job.json", "..%2fjob.json", "..", "%2e%2e",
		"a.log%00.png", ".job", "%2fetc%2fpasswd", "link", "fifo", "folder"};
	struct bench b;
	char path[400];
	size_t i;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	file_write(b.dir, "spool/" ID_A "/a.log", "0123456789");
	file_write(b.dir, "spool/" ID_A "/.job", "hidden");
	assert_int_equal(store_spool(b.s.store, ID_A, "link", path, sizeof path, NULL), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(store_spool(b.s.store, ID_A, "fifo", path, sizeof path, NULL), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(store_spool(b.s.store, ID_A, "folder", path, sizeof path, NULL), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	for (i = 0; i < str_count(ways); i++) {
		int status;

		assert_int_equal(str_fmt(path, sizeof path, NULL,
			"/v1/jobs/" ID_A "/artifacts/%s", ways[i]), 0);
		status = get(&b, path);
		if (status != 400 && status != 404)
			fail_msg("%s: %d", ways[i], status);
	}
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/artifacts"), 200);
	assert_non_null(strstr(b.answer, "a.log"));
	assert_non_null(strstr(b.answer, "job.json"));
	assert_null(strstr(b.answer, "\"link\""));
	assert_null(strstr(b.answer, "\".job\""));
	bench_close(&b);
}

static void
artifact_comes_whole_in_parts_or_not_at_all(void **state)
{
	static const char path[] = "GET /v1/jobs/" ID_A "/artifacts/a%2Elog HTTP/1.1";
	struct bench b;
	char head[600], digest[DIGEST_HEX];

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	file_write(b.dir, "spool/" ID_A "/a.log", "0123456789");
	assert_int_equal(ask(&b, path, NULL), 200);
	assert_null(strstr(b.answer, "ETag")); /* it may still grow */
	finished(&b, ID_A);
	digest_bytes("0123456789", 10, digest);
	assert_int_equal(ask(&b, path, NULL), 200);
	assert_non_null(strstr(b.answer, digest));
	assert_true(str_ends(b.answer, "\r\n\r\n0123456789"));
	assert_int_equal(str_fmt(head, sizeof head, NULL, "%s\r\nRange: bytes=-4", path), 0);
	assert_int_equal(ask(&b, head, NULL), 206);
	assert_non_null(strstr(b.answer, "Content-Range: bytes 6-9/10\r\n"));
	assert_true(str_ends(b.answer, "\r\n\r\n6789"));
	assert_int_equal(str_fmt(head, sizeof head, NULL, "%s\r\nRange: bytes=10-", path), 0);
	assert_int_equal(ask(&b, head, NULL), 416);
	assert_non_null(strstr(b.answer, "Content-Range: bytes */10\r\n"));
	has_code(&b, "range_not_satisfiable");
	assert_int_equal(str_fmt(head, sizeof head, NULL, "%s\r\nIf-None-Match: \"%s\"", path,
		digest), 0);
	assert_int_equal(ask(&b, head, NULL), 304);
	assert_int_equal(str_fmt(head, sizeof head, NULL,
		"%s\r\nRange: bytes=0-1\r\nIf-Range: \"other\"", path), 0);
	assert_int_equal(ask(&b, head, NULL), 200);
	assert_int_equal(ask(&b, "HEAD /v1/jobs/" ID_A "/artifacts/a.log HTTP/1.1", NULL), 200);
	assert_non_null(strstr(b.answer, "Content-Length: 10\r\n"));
	assert_true(str_ends(b.answer, "\r\n\r\n"));
	bench_close(&b);
}

static void
stream_stays_open_until_the_job_has_ended(void **state)
{
	struct bench b;
	int fd, skip_fd;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	fd = follow(&b, "");
	hear_until(fd, "\"state\":\"queued\"}\n");
	skip_fd = follow(&b, "?after=2");
	noted(&b, ID_A, "second");
	hear_until(fd, "\"second\"}\n");
	noted(&b, ID_A, "third");
	hear_until(fd, "\"third\"}\n");
	noted(&b, ID_A, "last");
	finished(&b, ID_A);
	hear_until(fd, "\"last\"}\n\r\n0\r\n\r\n");
	hear_until(skip_fd, "\"last\"}\n\r\n0\r\n\r\n");
	assert_non_null(strstr(heard, "\"third\""));
	assert_null(strstr(heard, "\"second\""));
	assert_null(strstr(heard, "\"queued\""));
	close(fd);
	close(skip_fd);
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events?after=2"), 200);
	assert_null(strstr(b.answer, "second"));
	assert_non_null(strstr(b.answer, "\"seq\":3"));
	assert_non_null(strstr(b.answer, "\"last\""));
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events?after=-1"), 400);
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events?follow=2"), 400);
	bench_close(&b);
}

static void
stream_without_follow_ends_at_once(void **state)
{
	struct bench b;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events?follow=0"), 200);
	assert_non_null(strstr(b.answer, "\"seq\":1"));
	bench_close(&b);
}

static void
torn_line_is_not_sent(void **state)
{
	struct bench b;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	file_write(b.dir, "events/" ID_A ".ndjson", "{\"seq\":1}\n{\"seq\":2,\"to");
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events?follow=0"), 200);
	assert_non_null(strstr(b.answer, "{\"seq\":1}\n"));
	assert_null(strstr(b.answer, "\"to"));
	bench_close(&b);
}

static void
silent_stream_gets_a_heartbeat(void **state)
{
	struct bench b;
	int fd;

	bench_open(&b, state, 64, 1);
	given(&b, ID_A);
	fd = follow(&b, "?after=1");
	hear_until(fd, "\r\n1\r\n\n\r\n"); /* a chunk of one newline */
	close(fd);
	bench_close(&b);
}

static void
client_that_left_is_let_go(void **state)
{
	struct bench b;
	int fd, i;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	fd = follow(&b, "");
	hear_until(fd, "queued");
	assert_int_equal(streams_count(b.s.streams), 1);
	close(fd);
	for (i = 0; i < 200 && streams_count(b.s.streams) > 0; i++)
		usleep(10000);
	assert_int_equal(streams_count(b.s.streams), 0);
	bench_close(&b);
}

static void
too_many_streams_are_busy(void **state)
{
	struct bench b;
	int fd[3], i;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	for (i = 0; i < 3; i++) {
		fd[i] = follow(&b, "");
		hear_until(fd[i], "queued");
	}
	assert_int_equal(get(&b, "/v1/jobs/" ID_A "/events"), 503);
	has_code(&b, "busy");
	for (i = 0; i < 3; i++)
		close(fd[i]);
	bench_close(&b);
}

/* libmicrohttpd aborts the process when it is stopped over a suspended connection. */
static void
server_stops_over_open_streams(void **state)
{
	struct bench b;
	int fd[3], i;

	bench_open(&b, state, 64, 15);
	given(&b, ID_A);
	for (i = 0; i < 3; i++) {
		fd[i] = follow(&b, "");
		hear_until(fd[i], "queued");
	}
	bench_close(&b);
	for (i = 0; i < 3; i++) {
		hear_until(fd[i], "0\r\n\r\n"); /* a proper end */
		close(fd[i]);
	}
}

static void
health_is_answered_at_the_connection_limit(void **state)
{
	struct bench b;
	int fd[5], i;

	bench_open(&b, state, 4, 15);
	given(&b, ID_A);
	/* Busy ones can not be closed: three streams and a request that never ends. */
	for (i = 0; i < 3; i++) {
		fd[i] = follow(&b, "");
		hear_until(fd[i], "queued");
	}
	for (; i < 5; i++) {
		fd[i] = dial(&b);
		say(fd[i], "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
	}
	usleep(100000);
	assert_int_equal(get(&b, "/v1/jobs"), 503);
	has_code(&b, "busy");
	assert_int_equal(get(&b, "/v1/health"), 200);
	for (i = 0; i < 5; i++)
		close(fd[i]);
	bench_close(&b);
}

static void
idle_connections_do_not_lock_others_out(void **state)
{
	struct bench b;
	int fd[60], i;

	bench_open(&b, state, 8, 15);
	for (i = 0; i < 60; i++) {
		fd[i] = dial(&b);
		say(fd[i], "GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n");
		hear_until(fd[i], "uptimeSeconds");
	}
	assert_int_equal(get(&b, "/v1/jobs"), 200);
	for (i = 0; i < 60; i++)
		close(fd[i]);
	bench_close(&b);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(health_host_and_suites_are_answered),
		IN_PLACE(bad_jobs_are_refused_and_nothing_is_stored),
		IN_PLACE(body_over_the_maximum_is_413_however_it_comes),
		IN_PLACE(same_job_again_is_200_and_another_409),
		IN_PLACE(artifacts_stay_in_their_folder),
		IN_PLACE(artifact_comes_whole_in_parts_or_not_at_all),
		IN_PLACE(stream_stays_open_until_the_job_has_ended),
		IN_PLACE(stream_without_follow_ends_at_once),
		IN_PLACE(torn_line_is_not_sent),
		IN_PLACE(silent_stream_gets_a_heartbeat),
		IN_PLACE(client_that_left_is_let_go),
		IN_PLACE(too_many_streams_are_busy),
		IN_PLACE(server_stops_over_open_streams),
		IN_PLACE(health_is_answered_at_the_connection_limit),
		IN_PLACE(idle_connections_do_not_lock_others_out),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
