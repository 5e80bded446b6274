#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "common/err.h"
#include "common/str.h"

static void
every_call_returns_minus_one_and_takes_null(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
	assert_int_equal(err_errno(NULL, ENOENT, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
	assert_int_equal(err_hint(NULL, "x"), -1);
	assert_int_equal(err_set(&e, ERR_IO, "x"), -1);
	assert_int_equal(err_errno(&e, ENOENT, "x"), -1);
	assert_int_equal(err_wrap(&e, "x"), -1);
	assert_int_equal(err_hint(&e, "x"), -1);
}

static void
context_stands_in_front_and_code_and_hint_stay(void **state)
{
	struct err e = {0};

	(void)state;
	err_set(&e, ERR_NOTFOUND, "no such suite");
	err_hint(&e, "the suites are %d", 2);
	err_wrap(&e, "suite %s", "x");
	err_wrap(&e, "job");
	assert_string_equal(e.msg, "job: suite x: no such suite");
	assert_string_equal(e.hint, "the suites are 2");
	assert_int_equal(e.code, ERR_NOTFOUND);
	err_set(&e, ERR_IO, "other");
	assert_string_equal(e.hint, "");
}

/* A hostile host names its things: no escape sequence may reach a terminal. */
static void
control_characters_of_foreign_words_are_removed(void **state)
{
	struct err e = {0};
	const char *p;

	(void)state;
	err_set(&e, ERR_PARSE, "unknown lane \"%s\"", "\x1b[2J\x1b]0;own\x07\r\n\x7f\xc2\x9b" "31m");
	for (p = e.msg; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
	assert_null(strstr(e.msg, "\xc2\x9b"));
	err_hint(&e, "%s", "a\x1b[31mb");
	assert_null(strchr(e.hint, 0x1b));
	err_errno(&e, ENOENT, "%s", "a\nb");
	assert_null(strchr(e.msg, '\n'));
}

static void
long_message_is_cut_between_characters(void **state)
{
	char word[2048];
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i + 3 < sizeof word; i += 3)
		memcpy(word + i, "\xe2\x82\xac", 3);
	word[i] = '\0';
	err_set(&e, ERR_IO, "x%s", word);
	assert_true(str_is_utf8(e.msg, strlen(e.msg)));
	assert_true(strlen(e.msg) > sizeof e.msg - 5);
	err_wrap(&e, "%s", word);
	assert_true(str_is_utf8(e.msg, strlen(e.msg)));
}

/* "%s" of the very message that is replaced is written again and again by callers. */
static void
message_may_be_made_of_the_message_before(void **state)
{
	struct err e = {0};

	(void)state;
	err_set(&e, ERR_IO, "inner");
	err_set(&e, ERR_PARSE, "outer: %s: again %s", e.msg, e.msg);
	assert_string_equal(e.msg, "outer: inner: again inner");
	err_hint(&e, "h");
	err_set(&e, ERR_IO, "kept %s", e.hint);
	assert_string_equal(e.msg, "kept h");
}

static void
full_disk_quota_and_file_limit_are_no_space(void **state)
{
	static const struct {
		int errnum;
		enum err_code code;
		const char *hint;
	} rows[] = {
		{ENOENT, ERR_NOTFOUND, NULL}, {ENOTDIR, ERR_NOTFOUND, NULL},
		{ENOSPC, ERR_NOSPACE, "space"}, {EDQUOT, ERR_NOSPACE, "space"},
		{EFBIG, ERR_NOSPACE, "limit"}, {ENOMEM, ERR_NOMEM, NULL}, {EACCES, ERR_IO, NULL},
	};
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		memset(&e, 0, sizeof e);
		err_errno(&e, rows[i].errnum, "write %s", "f");
		assert_int_equal(e.code, rows[i].code);
		assert_true(str_starts(e.msg, "write f: "));
		if (rows[i].hint == NULL)
			assert_string_equal(e.hint, "");
		else
			assert_non_null(strstr(e.hint, rows[i].hint));
	}
}

/* The table of the manual: usage 2, blocked 3, refused 4, unreachable 5, cut off 6. */
static void
codes_end_programs_as_the_manual_says(void **state)
{
	static const struct {
		enum err_code code;
		const char *name;
		int exit, http;
	} rows[] = {
		{ERR_NONE, "ok", 0, 200}, {ERR_USAGE, "usage", 2, 400},
		{ERR_PARSE, "bad_input", 2, 400}, {ERR_LIMIT, "too_large", 2, 413},
		{ERR_NOTFOUND, "not_found", 2, 404}, {ERR_CONFLICT, "conflict", 2, 409},
		{ERR_BLOCKED, "blocked", 3, 409}, {ERR_REFUSED, "refused", 4, 403},
		{ERR_INTEGRITY, "integrity", 4, 422}, {ERR_UNREACHABLE, "unreachable", 5, 502},
		{ERR_TIMEOUT, "timeout", 6, 504}, {ERR_CANCELLED, "cancelled", 6, 499},
		{ERR_NOSPACE, "disk_full", 6, 507},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_string_equal(err_name(rows[i].code), rows[i].name);
		assert_int_equal(err_exit(rows[i].code), rows[i].exit);
		assert_int_equal(err_http(rows[i].code), rows[i].http);
	}
}

static void
printed_error_has_its_hint_on_a_line_of_its_own(void **state)
{
	struct err e = {0};
	char text[256];
	int p[2], saved;
	ssize_t n;

	(void)state;
	err_set(&e, ERR_IO, "broken");
	err_hint(&e, "mend it");
	assert_int_equal(pipe(p), 0);
	fflush(stderr);
	saved = dup(2);
	dup2(p[1], 2);
	err_print("prog", &e);
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	close(p[1]);
	n = read(p[0], text, sizeof text - 1);
	close(p[0]);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "prog: broken\n  hint: mend it\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_returns_minus_one_and_takes_null),
		cmocka_unit_test(context_stands_in_front_and_code_and_hint_stay),
		cmocka_unit_test(control_characters_of_foreign_words_are_removed),
		cmocka_unit_test(long_message_is_cut_between_characters),
		cmocka_unit_test(message_may_be_made_of_the_message_before),
		cmocka_unit_test(full_disk_quota_and_file_limit_are_no_space),
		cmocka_unit_test(codes_end_programs_as_the_manual_says),
		cmocka_unit_test(printed_error_has_its_hint_on_a_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
