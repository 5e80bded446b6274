/* The client against answers that no real agent gives (fake_http.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/client.h"
#include "tests/unit/fake_http.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEALTH "{\"status\":\"ok\",\"apiVersions\":[\"v1\"],\"agent\":{\"version\":\"0.1.0\"," \
	"\"publicKey\":\"" KEY "\",\"bootId\":\"b\"},\"uptimeSeconds\":7," \
	"\"jobs\":{\"queued\":1,\"running\":2}}"

static char folder[64], path[100];
static struct client *c;
static struct err e;
static int ticks_left;

static int
tick(void *arg)
{
	(void)arg;
	return ticks_left >= 0 && ticks_left-- == 0;
}

static int
setup(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	ticks_left = -1;
	snprintf(folder, sizeof folder, "/tmp/client.XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/sock", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	client_close(c);
	c = NULL;
	fake_stop();
	return plat_remove_tree(folder, &e);
}

static void
connect_to(fake_handler handler)
{
	struct reach r = {.base = "http://localhost", .shown = "fake"};

	if (handler != NULL)
		assert_int_equal(fake_start(path, handler), 0);
	snprintf(r.socket, sizeof r.socket, "%s", path);
	assert_int_equal(client_open(&r, tick, NULL, &c, &e), 0);
	client_patience(c, 1);
}

static void
good(int fd, const struct fake_request *r)
{
	(void)r;
	fake_json(fd, "200 OK", HEALTH);
}

static void
health_is_read_past_any_proxy(void **state)
{
	struct agent_health h;

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	connect_to(good);
	assert_int_equal(client_health(c, &h, &e), 0);
	assert_string_equal(h.public_key, KEY);
	assert_string_equal(h.version, "0.1.0");
	assert_true(str_starts(h.fingerprint, "SHA256:"));
	assert_int_equal(h.running, 2);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}

static void
other_version(int fd, const struct fake_request *r)
{
	(void)r;
	fake_json(fd, "200 OK", "{\"apiVersions\":[\"v2\",7],\"agent\":{}}");
}

static void
an_agent_of_another_version_is_named(void **state)
{
	struct agent_health h;

	(void)state;
	connect_to(other_version);
	assert_int_equal(client_health(c, &h, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.msg, "v1"));
}

static void
web_page(int fd, const struct fake_request *r)
{
	(void)r;
	fake_answer(fd, "200 OK", "text/html", "<html>", 6);
}

static void
a_web_page_is_not_an_agent(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(web_page);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.hint, "verify-agent"));
}

static void
redirect(int fd, const struct fake_request *r)
{
	static const char text[] = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
		"Content-Length: 0\r\nConnection: close\r\n\r\n";

	(void)r;
	fake_raw(fd, text, sizeof text - 1);
}

static void
a_redirect_is_not_followed(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(redirect);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_int_equal(*fake_count, 1);
}

static void
endless(int fd, const struct fake_request *r)
{
	static char block[65536];
	int i;

	(void)r;
	fake_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
	memset(block, ' ', sizeof block);
	for (i = 0; i < 200; i++)
		fake_raw(fd, block, sizeof block);
}

static void
an_endless_answer_is_cut_at_its_maximum(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(endless);
	assert_int_equal(client_get(c, "/v1/jobs", &o, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(*fake_count, 1);
}

static void
twice(int fd, const struct fake_request *r)
{
	(void)r;
	fake_json(fd, "200 OK", "{\"a\":1,\"a\":2}");
}

static void
duplicate_keys_are_refused(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(twice);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
}

static void
conflict(int fd, const struct fake_request *r)
{
	(void)r;
	fake_json(fd, "409 Conflict", "{\"error\":{\"code\":\"conflict\",\"message\":"
		"\"another \\u001b[2J body\",\"hint\":\"take a new id\"}}");
}

static void
an_agents_error_keeps_code_and_hint_without_control_bytes(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(conflict);
	assert_int_equal(client_post(c, "/v1/jobs", "{}", &o, NULL, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_string_equal(e.msg, "the agent says: another ?[2J body");
	assert_string_equal(e.hint, "take a new id");
}

static void
bare_500(int fd, const struct fake_request *r)
{
	(void)r;
	fake_answer(fd, "507 Full", "text/plain", "x", 1);
}

static void
an_error_without_words_goes_by_its_status(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(bare_500);
	assert_int_equal(client_get(c, "/v1/jobs", &o, &e), -1);
	assert_int_equal(e.code, ERR_NOSPACE);
}

static void
cut_twice(int fd, const struct fake_request *r)
{
	if (r->number == 1)
		fake_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			"Content-Length: 500\r\n\r\n{\"apiV");
	if (r->number >= 2)
		fake_json(fd, "200 OK", HEALTH);
}

static void
a_cut_call_is_repeated(void **state)
{
	struct agent_health h;

	(void)state;
	connect_to(cut_twice);
	assert_int_equal(client_health(c, &h, &e), 0);
	assert_int_equal(*fake_count, 3);
}

static void
always_cut(int fd, const struct fake_request *r)
{
	(void)fd;
	(void)r;
}

static void
a_call_that_is_always_cut_ends_as_no_contact(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(always_cut);
	client_attempts(c, 2);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_UNREACHABLE);
	assert_int_equal(*fake_count, 2);
	assert_true(str_starts(e.msg, "no contact"));
}

static void
no_socket_is_no_contact_and_says_how_to_start(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(NULL);
	client_attempts(c, 1);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_UNREACHABLE);
	assert_int_equal(err_exit(e.code), EXIT_UNREACHABLE);
	assert_non_null(strstr(e.msg, "no such socket"));
	assert_non_null(strstr(e.hint, "verify-agent serve"));
}

static void
silent(int fd, const struct fake_request *r)
{
	(void)fd;
	(void)r;
	sleep(20);
}

static void
silence_is_no_answer_yet_not_no_contact(void **state)
{
	cJSON *o = NULL;

	(void)state;
	connect_to(silent);
	client_attempts(c, 1);
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_TIMEOUT);
	assert_true(str_starts(e.msg, "no answer yet"));
}

static void
a_tick_stops_a_call_at_once(void **state)
{
	cJSON *o = NULL;
	int64_t t = plat_mono_ms();

	(void)state;
	connect_to(silent);
	client_patience(c, 30);
	ticks_left = 2;
	assert_int_equal(client_get(c, "/v1/health", &o, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	assert_true(plat_mono_ms() - t < 5000);
}

/* ---- events ---- */

static char seen[256];

static int
on_event(void *arg, const cJSON *event)
{
	size_t n = strlen(seen);

	(void)arg;
	snprintf(seen + n, sizeof seen - n, "%lld ", (long long)json_int(event, "seq", -1));
	return json_int(event, "seq", -1) == 99;
}

static void
in_pieces(int fd, const struct fake_request *r)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
		"\n{\"seq\":1}\n\n\n{\"seq\":2}\n{\"seq\":3}\n{\"seq\":4";
	size_t i;

	(void)r;
	for (i = 0; i < sizeof text - 1; i++)
		fake_raw(fd, text + i, 1);
}

static void
events_come_whole_through_pieces_and_heartbeats(void **state)
{
	(void)state;
	seen[0] = '\0';
	connect_to(in_pieces);
	assert_int_equal(client_events(c, "j", 0, on_event, NULL, &e), 0);
	/* The torn last line is not an event: the next stretch brings it whole. */
	assert_string_equal(seen, "1 2 3 ");
}

static void
endless_event(int fd, const struct fake_request *r)
{
	static char block[65536];
	int i;

	(void)r;
	fake_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n");
	memset(block, 'x', sizeof block);
	for (i = 0; i < 4; i++)
		fake_raw(fd, block, sizeof block);
}

static void
an_endless_event_is_refused(void **state)
{
	(void)state;
	connect_to(endless_event);
	assert_int_equal(client_events(c, "j", 0, on_event, NULL, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
last_event(int fd, const struct fake_request *r)
{
	(void)r;
	fake_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
		"{\"seq\":99}\n{\"seq\":100}\n");
	sleep(5);
}

static void
the_callee_ends_the_stream(void **state)
{
	(void)state;
	seen[0] = '\0';
	connect_to(last_event);
	assert_int_equal(client_events(c, "j", 98, on_event, NULL, &e), 0);
	assert_int_equal(e.code, ERR_NONE);
	assert_string_equal(seen, "99 ");
}

/* ---- streams ---- */

static int
on_chunk(void *arg, const char *p, size_t n, struct err *err)
{
	return buf_add(arg, p, n, err);
}

static void
ranged(int fd, const struct fake_request *r)
{
	fake_range(fd, r, "0123456789", 10);
}

static void
a_stream_goes_on_where_it_stopped(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	connect_to(ranged);
	assert_int_equal(client_stream(c, "/x", 4, on_chunk, &b, &e), 0);
	assert_string_equal(b.data, "456789");
	/* Nothing left is a success without bytes. */
	assert_int_equal(client_stream(c, "/x", 10, on_chunk, &b, &e), 0);
	assert_int_equal(b.len, 6);
	buf_fini(&b);
}

static void
deaf(int fd, const struct fake_request *r)
{
	(void)r;
	fake_answer(fd, "200 OK", "text/plain", "0123456789", 10);
}

static void
the_whole_instead_of_the_rest_is_refused(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	connect_to(deaf);
	assert_int_equal(client_stream(c, "/x", 4, on_chunk, &b, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	assert_int_equal(b.len, 0);
	buf_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(health_is_read_past_any_proxy),
		T(an_agent_of_another_version_is_named),
		T(a_web_page_is_not_an_agent),
		T(a_redirect_is_not_followed),
		T(an_endless_answer_is_cut_at_its_maximum),
		T(duplicate_keys_are_refused),
		T(an_agents_error_keeps_code_and_hint_without_control_bytes),
		T(an_error_without_words_goes_by_its_status),
		T(a_cut_call_is_repeated),
		T(a_call_that_is_always_cut_ends_as_no_contact),
		T(no_socket_is_no_contact_and_says_how_to_start),
		T(silence_is_no_answer_yet_not_no_contact),
		T(a_tick_stops_a_call_at_once),
		T(events_come_whole_through_pieces_and_heartbeats),
		T(an_endless_event_is_refused),
		T(the_callee_ends_the_stream),
		T(a_stream_goes_on_where_it_stopped),
		T(the_whole_instead_of_the_rest_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
