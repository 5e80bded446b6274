#include "agent_help.h"

#include "agent/listen.h"
#include "agent/metrics.h"
#include "agent/route.h"

static enum err_code
found(const char *method, const char *path, const char *pattern, char allow[32])
{
	const struct route *r = NULL;
	struct route_args args;
	struct err e = {0};

	if (route_find(method, path, &r, &args, allow, &e) == 0) {
		assert_non_null(r);
		assert_string_equal(r->pattern, pattern);
		assert_non_null(r->run);
		return ERR_NONE;
	}
	assert_true(e.msg[0] != '\0');
	return e.code;
}

static void
every_path_of_the_interface_has_its_row(void **state)
{
	static const struct {
		const char *method, *path, *pattern;
	} rows[] = {
		{"GET", "/v1/health", "/v1/health"},
		{"HEAD", "/v1/health", "/v1/health"},
		{"GET", "/v1/host", "/v1/host"},
		{"GET", "/v1/suites", "/v1/suites"},
		{"GET", "/v1/suites/eliza-1", "/v1/suites/{name}"},
		{"POST", "/v1/jobs", "/v1/jobs"},
		{"GET", "/v1/jobs", "/v1/jobs"},
		{"GET", "/v1/jobs/" ID_A, "/v1/jobs/{id}"},
		{"GET", "/v1/jobs/" ID_A "/events", "/v1/jobs/{id}/events"},
		{"GET", "/v1/jobs/" ID_A "/report", "/v1/jobs/{id}/report"},
		{"GET", "/v1/jobs/" ID_A "/artifacts", "/v1/jobs/{id}/artifacts"},
		{"GET", "/v1/jobs/" ID_A "/artifacts/a.log", "/v1/jobs/{id}/artifacts/{name}"},
		{"POST", "/v1/jobs/" ID_A "/cancel", "/v1/jobs/{id}/cancel"},
		{"POST", "/v1/jobs/" ID_A "/ack", "/v1/jobs/{id}/ack"},
		{"GET", "/metrics", "/metrics"},
	};
	char allow[32];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		assert_int_equal(found(rows[i].method, rows[i].path, rows[i].pattern, allow),
			ERR_NONE);
}

static void
words_of_the_path_reach_the_handler(void **state)
{
	const struct route *r = NULL;
	struct route_args args;
	char allow[32];

	(void)state;
	assert_int_equal(route_find("GET", "/v1/jobs/" ID_A "/artifacts/x-1.log", &r, &args,
		allow, NULL), 0);
	assert_string_equal(args.id, ID_A);
	assert_string_equal(args.name, "x-1.log");
}

static void
unknown_path_is_not_found(void **state)
{
	static const char *const paths[] = {"", "/", "/v1", "/v1/", "/v1/healthy",
		"/v1/health/", "//v1/health", "/v2/health", "/v1/jobs/", "/v1/jobs//events",
		"/v1/jobs/" ID_A "/", "/v1/jobs/" ID_A "/artifacts/", "/v1/suites/",
		"/V1/health"};
	char allow[32];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(paths); i++)
		assert_int_equal(found("GET", paths[i], "", allow), ERR_NOTFOUND);
}

static void
wrong_method_is_told_the_right_ones(void **state)
{
	char allow[32];

	(void)state;
	assert_int_equal(found("DELETE", "/v1/jobs", "", allow), ERR_METHOD);
	assert_string_equal(allow, "GET, HEAD, POST");
	assert_int_equal(found("POST", "/v1/health", "", allow), ERR_METHOD);
	assert_string_equal(allow, "GET, HEAD");
	assert_int_equal(found("GET", "/v1/jobs/" ID_A "/ack", "", allow), ERR_METHOD);
	assert_string_equal(allow, "POST");
	assert_int_equal(found("get", "/v1/health", "", allow), ERR_METHOD);
}

static void
job_id_is_32_lower_case_hex_digits(void **state)
{
	static const char *const ids[] = {"x", "0123456789ABCDEF0123456789abcdef",
		"0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
		"0123456789abcdef0123456789abcde.", ".."};
	char allow[32], path[100];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(ids); i++) {
		assert_int_equal(str_fmt(path, sizeof path, NULL, "/v1/jobs/%s", ids[i]), 0);
		assert_int_equal(found("GET", path, "", allow), ERR_PARSE);
	}
}

static void
artifact_name_is_flat(void **state)
{
	static const char *const names[] = {"..", ".", ".hidden", "../key.pem", "a/b", "/a",
		"a/../b", "a\\b", "a b", "a%b", "a\nb", "\xc3\xa4", "a:b", "*"};
	char allow[32], path[120];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		assert_false(route_is_name(names[i]));
		assert_int_equal(str_fmt(path, sizeof path, NULL,
			"/v1/jobs/" ID_A "/artifacts/%s", names[i]), 0);
		assert_int_equal(found("GET", path, "", allow), ERR_PARSE);
	}
	assert_true(route_is_name("linux-x64-cpu-q8_0-Q8_0.log"));
	assert_true(route_is_name("a..b"));
	assert_true(route_is_name("libggml+x.so.1"));
	assert_false(route_is_name(""));
}

static void
single_ranges_are_cut_to_the_file(void **state)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum range_kind kind;
		uint64_t from, count;
	} rows[] = {
		{"bytes=0-0", 10, RANGE_PART, 0, 1},
		{"bytes=0-9", 10, RANGE_PART, 0, 10},
		{"bytes=3-5", 10, RANGE_PART, 3, 3},
		{"bytes=9-", 10, RANGE_PART, 9, 1},
		{"bytes=5-99", 10, RANGE_PART, 5, 5},
		{"bytes=-1", 10, RANGE_PART, 9, 1},
		{"bytes=-10", 10, RANGE_PART, 0, 10},
		{"bytes=-11", 10, RANGE_PART, 0, 10},
		{"bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10},
		{"bytes=10-", 10, RANGE_OUTSIDE, 0, 0},
		{"bytes=10-20", 10, RANGE_OUTSIDE, 0, 0},
		{"bytes=18446744073709551615-", 10, RANGE_OUTSIDE, 0, 0},
		{"bytes=-0", 10, RANGE_OUTSIDE, 0, 0},
		{"bytes=0-", 0, RANGE_OUTSIDE, 0, 0},
		{"bytes=-5", 0, RANGE_NONE, 0, 0},
		{"bytes=5-4", 10, RANGE_NONE, 0, 0},
		{"bytes=0-1,3-4", 10, RANGE_NONE, 0, 0},
		{"bytes=", 10, RANGE_NONE, 0, 0},
		{"bytes=-", 10, RANGE_NONE, 0, 0},
		{"bytes=a-b", 10, RANGE_NONE, 0, 0},
		{"bytes= 1-2", 10, RANGE_NONE, 0, 0},
		{"bytes=1-2 ", 10, RANGE_NONE, 0, 0},
		{"bytes=18446744073709551616-", 10, RANGE_NONE, 0, 0},
		{"bytes=99999999999999999999999999999-", 10, RANGE_NONE, 0, 0},
		{"items=0-1", 10, RANGE_NONE, 0, 0},
		{"", 10, RANGE_NONE, 0, 0},
		{NULL, 10, RANGE_NONE, 0, 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		uint64_t from = 0, count = 0;

		if (range_parse(rows[i].header, rows[i].size, &from, &count) !=
		    rows[i].kind)
			fail_msg("%s", rows[i].header);
		if (rows[i].kind == RANGE_PART) {
			assert_true(from == rows[i].from);
			assert_true(count == rows[i].count);
		}
	}
}

static void
entity_tags_are_compared_as_the_header_asks(void **state)
{
	(void)state;
	assert_true(range_etag_is("\"abc\"", "abc", false));
	assert_true(range_etag_is("*", "abc", false));
	assert_true(range_etag_is("\"x\", \"abc\"", "abc", false));
	assert_true(range_etag_is("W/\"abc\"", "abc", true));
	assert_false(range_etag_is("W/\"abc\"", "abc", false));
	assert_false(range_etag_is("\"abcd\"", "abc", true));
	assert_false(range_etag_is("\"ab\"", "abc", true));
	assert_false(range_etag_is("abc", "abc", true));
	assert_false(range_etag_is("\"abc", "abc", true));
	assert_false(range_etag_is("", "abc", true));
	assert_false(range_etag_is(NULL, "abc", true));
	assert_false(range_etag_is("*", "", true)); /* no tag is no match */
	assert_false(range_etag_is("\"\"", "", true));
}

/* A line of the text format 0.0.4: a comment, or name{labels} value. */
static bool
is_metric(const char *line, size_t n)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz_";
	char text[400], *p = text, *end;

	assert_true(n < sizeof text);
	memcpy(text, line, n);
	text[n] = '\0';
	if (str_starts(p, "# HELP verify_agent_") || str_starts(p, "# TYPE verify_agent_"))
		return true;
	if (!str_starts(p, "verify_agent_"))
		return false;
	p += strspn(p, word);
	if (*p == '{') {
		if ((p = strchr(p, '}')) == NULL || p[-1] != '"')
			return false;
		p++;
	}
	if (*p++ != ' ' || *p == '\0')
		return false;
	(void)strtod(p, &end);
	return *end == '\0';
}

static void
metrics_are_prometheus_text(void **state)
{
	struct metrics m = {{0}, {{0}}};
	struct metrics_view v = {.metrics = &m, .jobs = {.queued = 2, .running = 1},
		.spool_bytes = 12345678901, .streams = 3, .connections = 4, .uptime_s = 1.5};
	struct buf b;
	const char *p, *nl;

	(void)state;
	v.jobs.ended[OUTCOME_PASS] = 5;
	metrics_count(&m, 0, 200);
	metrics_count(&m, 0, 200);
	metrics_count(&m, ROUTE_COUNT, 404);
	buf_init(&b, METRICS_MAX_BYTES);
	assert_int_equal(metrics_format(&v, &b, NULL), 0);
	for (p = b.data; *p != '\0'; p = nl + 1) {
		assert_non_null(nl = strchr(p, '\n'));
		if (!is_metric(p, (size_t)(nl - p)))
			fail_msg("no metric: %.*s", (int)(nl - p), p);
	}
	assert_non_null(strstr(b.data, "verify_agent_build_info{version=\"" VERSION "\"} 1\n"));
	assert_non_null(strstr(b.data, "verify_agent_jobs_total{outcome=\"pass\"} 5\n"));
	assert_non_null(strstr(b.data, "verify_agent_jobs_total{outcome=\"fail\"} 0\n"));
	assert_non_null(strstr(b.data, "verify_agent_jobs_running 1\n"));
	assert_non_null(strstr(b.data, "verify_agent_jobs_queued 2\n"));
	assert_non_null(strstr(b.data, "verify_agent_spool_bytes 12345678901\n"));
	assert_non_null(strstr(b.data, "verify_agent_uptime_seconds 1.500\n"));
	assert_non_null(strstr(b.data, "verify_agent_http_requests_total{method=\"GET\","
		"route=\"/v1/health\",status=\"200\"} 2\n"));
	assert_non_null(strstr(b.data, "{method=\"\",route=\"\",status=\"404\"} 1\n"));
	buf_fini(&b);
}

static void
counting_many_statuses_stays_in_its_table(void **state)
{
	struct metrics m = {{0}, {{0}}};
	int s;

	(void)state;
	for (s = 200; s < 300; s++)
		metrics_count(&m, 1, s);
	assert_int_equal(m.requests[1][0], 1);
	assert_int_equal(m.requests[1][METRICS_STATUSES - 1],
		100 - (METRICS_STATUSES - 1));
}

static void
only_loopback_may_be_listened_on(void **state)
{
	static const struct {
		const char *address;
		enum err_code code;
	} rows[] = {
		{"0.0.0.0:0", ERR_REFUSED},
		{"192.168.1.1:0", ERR_REFUSED},
		{"[::]:0", ERR_REFUSED},
		{"[fe80::1]:0", ERR_REFUSED},
		{"[::ffff:127.0.0.1]:0", ERR_REFUSED},
		{"gpu-host:8080", ERR_REFUSED},
		{"localhost:8080", ERR_REFUSED}, /* a name may become anything */
		{":8080", ERR_REFUSED},
		{"127.0.0.1", ERR_USAGE},
		{"127.0.0.1:65536", ERR_USAGE},
		{"127.0.0.1:http", ERR_USAGE},
		{"", ERR_USAGE},
		{"unix:relative.sock", ERR_USAGE},
		{"unix:", ERR_USAGE},
	};
	struct listener l;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		struct err e = {0};

		assert_int_equal(listen_open(rows[i].address, &l, &e), -1);
		if (e.code != rows[i].code)
			fail_msg("%s: %s", rows[i].address, e.msg);
		if (e.code == ERR_REFUSED)
			assert_true(str_starts(e.msg, "listen_needs_keys"));
		assert_true(e.hint[0] != '\0');
	}
	assert_int_equal(listen_open("127.0.0.1:0", &l, NULL), 0);
	assert_true(str_starts(l.url, "http://127.0.0.1:"));
	assert_false(str_ends(l.url, ":0"));
	listen_close(&l);
}

static void
host_header_must_name_loopback(void **state)
{
	(void)state;
	assert_true(listen_is_loopback("localhost"));
	assert_true(listen_is_loopback("LocalHost:8080"));
	assert_true(listen_is_loopback("127.0.0.1:1"));
	assert_true(listen_is_loopback("[::1]:1"));
	assert_false(listen_is_loopback("localhost.evil.example"));
	assert_false(listen_is_loopback("127.0.0.1.evil.example:80"));
	assert_false(listen_is_loopback("evil.example"));
	assert_false(listen_is_loopback(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_of_the_interface_has_its_row),
		cmocka_unit_test(words_of_the_path_reach_the_handler),
		cmocka_unit_test(unknown_path_is_not_found),
		cmocka_unit_test(wrong_method_is_told_the_right_ones),
		cmocka_unit_test(job_id_is_32_lower_case_hex_digits),
		cmocka_unit_test(artifact_name_is_flat),
		cmocka_unit_test(single_ranges_are_cut_to_the_file),
		cmocka_unit_test(entity_tags_are_compared_as_the_header_asks),
		cmocka_unit_test(metrics_are_prometheus_text),
		cmocka_unit_test(counting_many_statuses_stays_in_its_table),
		cmocka_unit_test(only_loopback_may_be_listened_on),
		cmocka_unit_test(host_header_must_name_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
