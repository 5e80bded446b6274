/* What a person sees of a job: plain lines, the live list, JSON lines. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/str.h"
#include "controller/progress.h"

#define T0 1780308000000 /* 2026-06-01T10:00:00Z */

static int64_t mono;
static char *text;
static size_t len;
static FILE *out;
static struct progress *p;

static int64_t
clock_now(void)
{
	return mono;
}

static void
begin(enum progress_mode mode, bool colour, bool utf8, int width, int height)
{
	struct progress_look look = {mode, colour, utf8, width, height, clock_now};
	struct err e;

	mono = 1000000;
	text = NULL;
	assert_non_null(out = open_memstream(&text, &len));
	assert_int_equal(progress_new(out, &look, "lab", "0123456789abcdef", &p, &e), 0);
}

static const char *
shown(void)
{
	fflush(out);
	return text;
}

static void
end(void)
{
	progress_free(p);
	fclose(out);
	free(text);
}

static void
send(const char *json)
{
	cJSON *o = NULL;
	struct err e;

	assert_int_equal(json_parse(json, strlen(json), 100000, &o, &e), 0);
	progress_event(p, o);
	cJSON_Delete(o);
}

/* Text without escape sequences, of the last drawing only. */
static char *
last_frame(void)
{
	const char *s = shown(), *q, *from = s;
	char *plain;
	size_t n = 0;

	for (q = s; (q = strstr(q, "A\r")) != NULL; q++)
		from = q + 2;
	assert_non_null(plain = malloc(strlen(from) + 1));
	for (q = from; *q != '\0'; q++)
		if (*q == '\033')
			q += strcspn(q, "mKJAh");
		else
			plain[n++] = *q;
	plain[n] = '\0';
	return plain;
}

static void
durations_are_short(void **state)
{
	static const struct {
		int64_t ms;
		const char *wanted;
	} rows[] = {{0, "0.0 s"}, {450, "0.4 s"}, {59999, "59.9 s"}, {60000, "1m00s"},
		{63000, "1m03s"}, {3599000, "59m59s"}, {3660000, "1h01m"}, {-1, "-"}};
	char got[32];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		progress_duration(rows[i].ms, got, sizeof got);
		assert_string_equal(got, rows[i].wanted);
	}
}

static void
amounts_of_bytes_have_binary_units(void **state)
{
	char got[32];

	(void)state;
	progress_amount(1536, "bytes", got, sizeof got);
	assert_string_equal(got, "1.5 KiB");
	progress_amount(1023, "bytes", got, sizeof got);
	assert_string_equal(got, "1023 B");
	progress_amount(3221225472.0, "bytes", got, sizeof got);
	assert_string_equal(got, "3.0 GiB");
	progress_amount(412, "steps", got, sizeof got);
	assert_string_equal(got, "412");
	progress_amount(5.14, "steps", got, sizeof got);
	assert_string_equal(got, "5.1");
}

static void
bars_fill_by_eighths_or_by_signs(void **state)
{
	char got[64];

	(void)state;
	progress_bar(1, 2, 4, false, got, sizeof got);
	assert_string_equal(got, "##..");
	progress_bar(9, 8, 4, false, got, sizeof got);
	assert_string_equal(got, "####");
	progress_bar(0, 0, 4, false, got, sizeof got);
	assert_string_equal(got, "....");
	progress_bar(5, 8, 2, true, got, sizeof got);
	assert_string_equal(got, "\u2588\u258e");
	progress_bar(1, 2, 40, true, got, 8);
	assert_true(strlen(got) < 8);
}

static void
plain_lines_carry_the_agents_time(void **state)
{
	(void)state;
	begin(PROGRESS_PLAIN, false, false, 80, 24);
	send("{\"type\":\"job\",\"t\":1780308000000,\"state\":\"running\"}");
	send("{\"type\":\"gate\",\"t\":1780308003000,\"gate\":\"build\",\"state\":\"start\"}");
	send("{\"type\":\"progress\",\"t\":1780308013000,\"gate\":\"build\",\"done\":34,"
		"\"total\":412,\"unit\":\"steps\",\"text\":\"ggml.c\"}");
	send("{\"type\":\"gate\",\"t\":1780308075000,\"gate\":\"build\",\"state\":\"end\","
		"\"outcome\":\"fail\",\"reasonCode\":\"build_failed\",\"ms\":72000,"
		"\"detail\":\"x.c:1: error\"}");
	assert_string_equal(shown(), "[10:00:00] job 01234567: running\n"
		"[10:00:03] build: started\n"
		"[10:00:13] build: 34/412 steps  ggml.c\n"
		"[10:01:15] build: fail build_failed (1m12s): x.c:1: error\n");
	end();
}

static void
plain_progress_lines_come_at_most_every_ten_seconds(void **state)
{
	char json[200];
	int i, n = 0;
	const char *s;

	(void)state;
	begin(PROGRESS_PLAIN, false, false, 80, 24);
	for (i = 0; i < 100; i++, mono += 500) {
		snprintf(json, sizeof json, "{\"type\":\"progress\",\"t\":%lld,\"gate\":\"build\","
			"\"done\":%d,\"total\":100,\"unit\":\"steps\",\"text\":\"\"}",
			T0 + i * 500LL, i);
		send(json);
	}
	for (s = shown(); (s = strchr(s, '\n')) != NULL; s++)
		n++;
	assert_int_equal(n, 5);
	/* 2 steps a second; 80 left at the last line. */
	assert_non_null(strstr(shown(), "[10:00:40] build: 80/100 steps  2/s  ETA 10.0 s\n"));
	end();
}

static void
the_live_list_shows_bar_rate_and_eta(void **state)
{
	char *frame;

	(void)state;
	begin(PROGRESS_LIVE, false, false, 100, 24);
	send("{\"type\":\"gate\",\"t\":1780308000000,\"gate\":\"host\",\"state\":\"start\"}");
	send("{\"type\":\"gate\",\"t\":1780308000100,\"gate\":\"host\",\"state\":\"end\","
		"\"outcome\":\"pass\",\"reasonCode\":\"none\",\"ms\":100,\"detail\":\"Linux\"}");
	send("{\"type\":\"gate\",\"t\":1780308000200,\"gate\":\"build\",\"state\":\"start\"}");
	send("{\"type\":\"progress\",\"t\":1780308001200,\"gate\":\"build\",\"done\":100,"
		"\"total\":400,\"unit\":\"steps\",\"text\":\"\"}");
	send("{\"type\":\"progress\",\"t\":1780308011200,\"gate\":\"build\",\"done\":200,"
		"\"total\":400,\"unit\":\"steps\",\"text\":\"a.c\"}");
	mono += 5000;
	progress_end(p);
	frame = last_frame();
	assert_string_equal(frame,
		" + host                     0.1 s  Linux\n"
		" > build                   16.0 s  ##########..........  200/400 steps  10/s  "
		"ETA 20.0 s  a.c\n");
	free(frame);
	end();
}

static void
a_row_is_redrawn_in_place_in_one_write(void **state)
{
	(void)state;
	begin(PROGRESS_LIVE, false, false, 80, 24);
	send("{\"type\":\"gate\",\"t\":1780308000000,\"gate\":\"host\",\"state\":\"start\"}");
	mono += 1000;
	progress_tick(p);
	mono += 1000;
	progress_tick(p);
	/* Up by the one line that was drawn, never a clear of the screen. */
	assert_non_null(strstr(shown(), "\033[1A\r"));
	assert_null(strstr(shown(), "\033[2J"));
	assert_null(strstr(shown(), "\033[2A"));
	end();
}

static void
no_line_is_wider_than_the_window(void **state)
{
	static const int widths[] = {1, 5, 20, 40, 79, 200};
	char *frame, *line, *save;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(widths); i++) {
		begin(PROGRESS_LIVE, false, false, widths[i], 24);
		send("{\"type\":\"gate\",\"t\":1,\"gate\":\"graph-smoke/turbo3_tcq-and-more\","
			"\"state\":\"end\",\"outcome\":\"blocked\",\"reasonCode\":"
			"\"family_not_in_build\",\"ms\":10,\"detail\":\"the build accepts f32, f16, "
			"bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0 and q5_1, and nothing else at all\"}");
		send("{\"type\":\"progress\",\"t\":2,\"gate\":\"build\",\"done\":3,\"total\":9,"
			"\"unit\":\"steps\",\"text\":\"\"}");
		progress_end(p);
		frame = last_frame();
		save = NULL;
		for (line = strtok_r(frame, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			assert_true((int)strlen(line) <= widths[i]);
		free(frame);
		end();
	}
}

static void
a_low_window_hides_passed_rows_first(void **state)
{
	char json[200], *frame;
	int i, lines = 0;
	const char *s;

	(void)state;
	begin(PROGRESS_LIVE, false, false, 80, 8);
	for (i = 0; i < 12; i++) {
		snprintf(json, sizeof json, "{\"type\":\"gate\",\"t\":%d,\"gate\":\"g%d\","
			"\"state\":\"end\",\"outcome\":\"%s\",\"reasonCode\":\"x\",\"ms\":1}", i, i,
			i == 3 ? "fail" : "pass");
		send(json);
	}
	send("{\"type\":\"gate\",\"t\":99,\"gate\":\"last\",\"state\":\"start\"}");
	progress_end(p);
	frame = last_frame();
	for (s = frame; (s = strchr(s, '\n')) != NULL; s++)
		lines++;
	assert_int_equal(lines, 6);
	assert_non_null(strstr(frame, "8 more are done"));
	assert_non_null(strstr(frame, "x g3"));
	assert_non_null(strstr(frame, "> last"));
	free(frame);
	end();
}

static void
colour_and_signs_follow_the_look(void **state)
{
	static const char event[] = "{\"type\":\"gate\",\"t\":1,\"gate\":\"a\",\"state\":\"end\","
		"\"outcome\":\"pass\",\"reasonCode\":\"none\",\"ms\":1}";

	(void)state;
	begin(PROGRESS_LIVE, true, true, 80, 24);
	send(event);
	progress_end(p);
	assert_non_null(strstr(shown(), "\033[32m\u2713\033[0m"));
	end();
	begin(PROGRESS_LIVE, false, true, 80, 24);
	send(event);
	progress_end(p);
	assert_null(strstr(shown(), "\033[32m"));
	assert_non_null(strstr(shown(), "\u2713"));
	end();
	begin(PROGRESS_LIVE, true, false, 80, 24);
	send(event);
	progress_end(p);
	assert_non_null(strstr(shown(), "\033[32m+\033[0m"));
	end();
}

static void
an_agents_control_bytes_do_not_reach_the_terminal(void **state)
{
	static const enum progress_mode modes[] = {PROGRESS_LIVE, PROGRESS_PLAIN};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		begin(modes[i], false, false, 80, 24);
		send("{\"type\":\"note\",\"t\":1,\"gate\":\"a\\u001b[2Jb\",\"text\":"
			"\"x\\u001b]0;evil\\u0007\\r\\ny\"}");
		send("{\"type\":\"gate\",\"t\":1,\"gate\":\"\\u001b[31m\",\"state\":\"end\","
			"\"outcome\":\"\\u001b[2J\",\"reasonCode\":\"\\u0007\",\"detail\":\"\\u001bc\"}");
		progress_end(p);
		assert_null(strstr(shown(), "\033]0"));
		assert_null(strstr(shown(), "\033[2J"));
		assert_null(strstr(shown(), "\033[31m"));
		assert_null(strstr(shown(), "\033c"));
		assert_null(strchr(shown(), '\a'));
		end();
	}
}

static void
json_lines_carry_host_and_job_and_nothing_else_is_printed(void **state)
{
	cJSON *o = NULL;
	struct err e;
	const char *s;

	(void)state;
	begin(PROGRESS_JSON, true, true, 80, 24);
	send("{\"seq\":4,\"type\":\"gate\",\"t\":1,\"gate\":\"a\",\"state\":\"start\","
		"\"host\":\"spoofed\"}");
	progress_say(p, "for people");
	progress_tick(p);
	progress_end(p);
	s = shown();
	assert_non_null(strchr(s, '\n'));
	assert_int_equal(strchr(s, '\n') - s + 1, (long)strlen(s));
	assert_int_equal(json_parse(s, strlen(s), 10000, &o, &e), 0);
	assert_string_equal(json_str(o, "host"), "lab");
	assert_string_equal(json_str(o, "job"), "0123456789abcdef");
	assert_int_equal(json_int(o, "seq", 0), 4);
	cJSON_Delete(o);
	end();
}

static void
more_rows_than_any_job_has_are_taken_quietly(void **state)
{
	char json[120];
	int i;

	(void)state;
	begin(PROGRESS_LIVE, false, false, 80, 24);
	for (i = 0; i < PROGRESS_MAX_ROWS * 2; i++) {
		snprintf(json, sizeof json, "{\"type\":\"gate\",\"t\":%d,\"gate\":\"g%d\","
			"\"state\":\"start\"}", i, i);
		send(json);
	}
	send("{\"type\":\"what\",\"t\":\"x\",\"gate\":7}");
	send("{\"type\":\"progress\",\"gate\":\"g1\",\"done\":-5,\"total\":1e300}");
	send("[]");
	progress_end(p);
	end();
}

static void
a_waiting_job_shows_the_queue_until_it_runs(void **state)
{
	char *frame;

	(void)state;
	begin(PROGRESS_LIVE, false, false, 80, 24);
	send("{\"type\":\"job\",\"t\":1,\"state\":\"queued\"}");
	mono += 1000;
	progress_tick(p);
	frame = last_frame();
	assert_non_null(strstr(frame, "> queue"));
	free(frame);
	send("{\"type\":\"job\",\"t\":2,\"state\":\"running\"}");
	send("{\"type\":\"gate\",\"t\":3,\"gate\":\"host\",\"state\":\"start\"}");
	progress_end(p);
	frame = last_frame();
	assert_null(strstr(frame, "queue"));
	free(frame);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_short),
		cmocka_unit_test(amounts_of_bytes_have_binary_units),
		cmocka_unit_test(bars_fill_by_eighths_or_by_signs),
		cmocka_unit_test(plain_lines_carry_the_agents_time),
		cmocka_unit_test(plain_progress_lines_come_at_most_every_ten_seconds),
		cmocka_unit_test(the_live_list_shows_bar_rate_and_eta),
		cmocka_unit_test(a_row_is_redrawn_in_place_in_one_write),
		cmocka_unit_test(no_line_is_wider_than_the_window),
		cmocka_unit_test(a_low_window_hides_passed_rows_first),
		cmocka_unit_test(colour_and_signs_follow_the_look),
		cmocka_unit_test(an_agents_control_bytes_do_not_reach_the_terminal),
		cmocka_unit_test(json_lines_carry_host_and_job_and_nothing_else_is_printed),
		cmocka_unit_test(more_rows_than_any_job_has_are_taken_quietly),
		cmocka_unit_test(a_waiting_job_shows_the_queue_until_it_runs),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
