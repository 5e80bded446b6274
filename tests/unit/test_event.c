#include "agent_help.h"

#include <fcntl.h>

#include "agent/event.h"

static char *
read_all(const char *path)
{
	char *text = NULL;
	size_t len;

	assert_int_equal(plat_read_file(path, 1 << 20, &text, &len, NULL), 0);
	return text;
}

static void
path_of(const struct place *p, char out[300])
{
	assert_int_equal(str_fmt(out, 300, NULL, "%s/e.ndjson", p->dir), 0);
}

static int64_t
line_seq(const char *line)
{
	cJSON *o = NULL;
	int64_t seq;

	assert_int_equal(json_parse(line, strcspn(line, "\n"), 65536, &o, NULL), 0);
	seq = json_int(o, "seq", -1);
	assert_true(json_int(o, "t", 0) > 1700000000000);
	assert_non_null(json_str(o, "type"));
	cJSON_Delete(o);
	return seq;
}

static void
sequence_goes_on_after_a_reopen(void **state)
{
	struct event_log *l = NULL;
	char path[300], *text, *second;

	path_of(*state, path);
	assert_int_equal(event_open(path, &l, NULL), 0);
	event_note(l, "host", "one");
	assert_int_equal(event_last(l), 1);
	event_close(l);
	assert_int_equal(event_open(path, &l, NULL), 0);
	assert_int_equal(event_last(l), 1);
	event_note(l, "host", "two");
	assert_int_equal(event_last(l), 2);
	assert_false(event_failed(l));
	event_close(l);
	text = read_all(path);
	assert_int_equal(line_seq(text), 1);
	second = strchr(text, '\n') + 1;
	assert_int_equal(line_seq(second), 2);
	assert_non_null(strstr(second, "\"two\""));
	assert_string_equal(strchr(second, '\n'), "\n");
	free(text);
}

static void
torn_last_line_is_cut_off(void **state)
{
	static const char torn[] = "{\"seq\":1,\"t\":1,\"type\":\"note\"}\n{\"seq\":2,\"t";
	struct event_log *l = NULL;
	char path[300], *text;

	path_of(*state, path);
	file_write(((struct place *)*state)->dir, "e.ndjson", torn);
	assert_int_equal(event_open(path, &l, NULL), 0);
	assert_int_equal(event_last(l), 1);
	event_note(l, "host", "x");
	event_close(l);
	text = read_all(path);
	assert_memory_equal(text, torn, 30);
	assert_int_equal(line_seq(strchr(text, '\n') + 1), 2);
	free(text);
}

static void
count_events(void *arg, const cJSON *o)
{
	(void)o;
	++*(int *)arg;
}

static void
sink_alone_gets_events_without_a_file(void **state)
{
	struct event_log *l = NULL;
	int n = 0;

	(void)state;
	assert_int_equal(event_open(NULL, &l, NULL), 0);
	event_sink(l, count_events, &n);
	event_note(l, "host", "x");
	event_add(l, "log", cJSON_CreateObject());
	assert_int_equal(n, 2);
	assert_int_equal(event_last(l), 2);
	event_close(l);
}

static void
burst_of_progress_is_thinned_but_its_end_is_told(void **state)
{
	struct event_log *l = NULL;
	uint64_t i;
	int n = 0;

	(void)state;
	assert_int_equal(event_open(NULL, &l, NULL), 0);
	event_sink(l, count_events, &n);
	for (i = 0; i <= 10000; i++)
		event_progress(l, "build", i, 10000, "steps", "x");
	assert_in_range(n, 2, 100);
	event_progress(l, "model", 0, 5, "bytes", NULL);
	assert_in_range(n, 3, 101);
	event_close(l);
}

static void
event_that_is_too_long_is_remembered_as_failed(void **state)
{
	struct event_log *l = NULL;
	char path[300], *big = malloc(40001);

	path_of(*state, path);
	memset(big, 'x', 40000);
	big[40000] = '\0';
	assert_int_equal(event_open(path, &l, NULL), 0);
	event_note(l, "host", big);
	assert_true(event_failed(l));
	assert_int_equal(event_last(l), 0);
	event_note(l, "host", "small");
	assert_int_equal(event_last(l), 1);
	event_close(l);
	free(big);
}

static void
bytes_that_are_not_utf8_become_valid_text(void **state)
{
	struct event_log *l = NULL;
	char path[300], *text;

	path_of(*state, path);
	assert_int_equal(event_open(path, &l, NULL), 0);
	event_note(l, "host", "a\xff" "b");
	event_close(l);
	text = read_all(path);
	assert_int_equal(line_seq(text), 1);
	free(text);
}

static void
link_in_place_of_the_file_is_refused(void **state)
{
	struct event_log *l = NULL;
	char path[300];

	path_of(*state, path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(event_open(path, &l, NULL), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sequence_goes_on_after_a_reopen, place_make,
			place_remove),
		cmocka_unit_test_setup_teardown(torn_last_line_is_cut_off, place_make,
			place_remove),
		cmocka_unit_test(sink_alone_gets_events_without_a_file),
		cmocka_unit_test(burst_of_progress_is_thinned_but_its_end_is_told),
		cmocka_unit_test_setup_teardown(
			event_that_is_too_long_is_remembered_as_failed, place_make,
			place_remove),
		cmocka_unit_test_setup_teardown(bytes_that_are_not_utf8_become_valid_text,
			place_make, place_remove),
		cmocka_unit_test_setup_teardown(link_in_place_of_the_file_is_refused,
			place_make, place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
