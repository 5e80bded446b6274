#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "tests/unit/repo.h"

#define MAX 65536

/* Parses a copy that ends where the text ends, so that a read behind it is seen. */
static int
parse(const char *text, size_t len, cJSON **out, struct err *e)
{
	char *copy = malloc(len > 0 ? len : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, text, len);
	*out = NULL;
	memset(e, 0, sizeof *e);
	rc = json_parse(copy, len, MAX, out, e);
	/* the tree is never built of what the check refuses */
	assert_true(json_check(copy, len, MAX, NULL) == 0 || rc != 0);
	free(copy);
	return rc;
}

static void
refused_bytes(const char *text, size_t len, enum err_code code)
{
	struct err e;
	cJSON *o;

	if (parse(text, len, &o, &e) == 0) {
		cJSON_Delete(o);
		fail_msg("accepted: %s", text);
	}
	assert_null(o);
	assert_int_equal(e.code, code);
	assert_true(str_starts(e.msg, "JSON: "));
}

static void
refused(const char *text)
{
	refused_bytes(text, strlen(text), ERR_PARSE);
}

static void
accepted(const char *text)
{
	struct err e;
	cJSON *o;

	if (parse(text, strlen(text), &o, &e))
		fail_msg("refused: %s: %s", text, e.msg);
	cJSON_Delete(o);
}

static cJSON *
tree(const char *text)
{
	struct err e;
	cJSON *o;

	if (parse(text, strlen(text), &o, &e))
		fail_msg("refused: %s: %s", text, e.msg);
	return o;
}

static void
duplicate_keys_are_refused_in_every_spelling(void **state)
{
	(void)state;
	refused("{\"status\":\"pass\",\"passRecordable\":false,\"passRecordable\":true}");
	refused("{\"a\":1,\"\\u0061\":2}");
	refused("{\"\\u0061\":1,\"a\":2}");
	refused("{\"x\":[{\"b\":{\"\\/\":1,\"/\":2}}]}");
	refused("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}");
	refused("{\"\":1,\"\":2}");
	refused("{\"a\":1,\"b\":2,\"c\":{\"d\":1},\"a\":3}");
	accepted("{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}");
	accepted("{\"a\":1,\"A\":2}");
	accepted("{\"a\":\"\\u0061\",\"b\":\"\\u0061\"}");
}

static void
numbers_that_are_not_finite_are_refused(void **state)
{
	static const char *const bad[] = {"NaN", "nan", "-NaN", "Infinity", "-Infinity", "inf",
		"1e999", "-1e999", "1E+400", "1.8e308", "2e308",
		/* finite, but written with 15 digits it is not */
		"1.7976931348623157e308"};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		refused(bad[i]);
		snprintf(text, sizeof text, "{\"maxDiff\":%s}", bad[i]);
		refused(text);
	}
	accepted("-1e308");
	accepted("1e-999");
	accepted("-0");
}

static void
numbers_follow_the_grammar(void **state)
{
	static const char *const bad[] = {"-", "+1", "01", "-01", "00", ".5", "1.", "-.5", "1e", "1e+",
		"1E-", "0x10", "1_000", "1,5", "--1", "1-", "1.e5", "1e5.", "\xef\xbc\x91"};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		refused(bad[i]);
		snprintf(text, sizeof text, "[%s]", bad[i]);
		if (strcmp(bad[i], "1,5") != 0)
			refused(text);
		snprintf(text, sizeof text, "{\"a\":%s", bad[i]);
		refused(text);
	}
}

static void
huge_numbers_are_refused_by_length(void **state)
{
	char text[400];

	(void)state;
	memset(text, '1', sizeof text);
	refused_bytes(text, 63 + 1, ERR_LIMIT);
	refused_bytes(text, sizeof text, ERR_LIMIT);
	text[1] = '.';
	refused_bytes(text, sizeof text, ERR_LIMIT);
	text[63] = '\0';
	accepted(text);
}

static void
nest(char *text, size_t depth, char open, char close)
{
	memset(text, open, depth);
	memset(text + depth, close, depth);
	text[2 * depth] = '\0';
}

static void
nesting_ends_at_the_maximum(void **state)
{
	char text[8192];
	int i;

	(void)state;
	nest(text, JSON_MAX_DEPTH, '[', ']');
	accepted(text);
	nest(text, JSON_MAX_DEPTH + 1, '[', ']');
	refused_bytes(text, strlen(text), ERR_LIMIT);
	nest(text, 64, '[', ']');
	refused_bytes(text, strlen(text), ERR_LIMIT);
	memset(text, '[', 4000); /* never closed */
	refused_bytes(text, 4000, ERR_LIMIT);
	for (i = 0; i < 64; i++)
		memcpy(text + 5 * i, "{\"a\":", 5);
	memcpy(text + 5 * i, "1", 2);
	refused_bytes(text, strlen(text), ERR_LIMIT);
}

static void
body_over_the_maximum_is_refused_before_it_is_read(void **state)
{
	size_t n = 10u << 20;
	char *text = malloc(n);
	struct err e = {0};
	cJSON *o = NULL;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', n);
	text[0] = '1';
	assert_int_equal(json_parse(text, n, MAX, &o, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_null(o);
	assert_int_equal(json_parse(text, MAX, MAX, &o, &e), 0);
	cJSON_Delete(o);
	free(text);
}

static void
other_encodings_and_byte_order_marks_are_refused(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} rows[] = {
		{"\xff\xfe{\0}\0", 6}, {"\xfe\xff\0{\0}", 6}, {"{\0}\0", 4}, {"\0{\0}", 4},
		{"\xff\xfe\0\0{\0\0\0", 8}, {"\0\0\0{", 4}, {"1\0", 2}, {"\0", 1},
		{"\xef\xbb\xbf{\"status\":\"pass\"}", 20}, {"\xef\xbb\xbf", 3}, {"\xef\xbb", 2},
		{"\"\xe9\"", 3}, {"\"\xc0\xaf\"", 4}, {"\"\xed\xa0\x80\"", 5},
		{"\"\xf4\x90\x80\x80\"", 6}, {"\"\xe2\x82\"", 4}, {"{}\xff", 3},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		refused_bytes(rows[i].p, rows[i].n, ERR_PARSE);
}

static void
text_after_the_value_is_refused(void **state)
{
	static const char *const bad[] = {"{} {}", "{}x", "1 2", "[]]", "null,", "{}//", "{}\v",
		"\"a\"\"b\"", "true false", "{}/**/", "{}\xc2\xa0"};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		refused(bad[i]);
	refused_bytes("{}\0", 3, ERR_PARSE);
	accepted(" \t\r\n{} \t\r\n");
}

static void
strings_hold_no_control_characters_and_whole_surrogates(void **state)
{
	static const char *const bad[] = {"\"a\nb\"", "\"\t\"", "\"\x01\"", "\"\\u0000\"",
		"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"",
		"\"\\ud800x\"", "\"\\ud800\\", "\"\\ud800\\u", "\"\\udc00\\ud800\"", "\"\\u12\"",
		"\"\\u12g4\"", "\"\\u 123\"", "\"\\u+123\"", "\"\\x41\"", "\"\\'\"", "\"\\", "\"\\\"",
		"\"", "\"abc", "'a'", "\"\\u", "\"\\u1", "\"\\U0041\""};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		refused(bad[i]);
	refused_bytes("\"a\0b\"", 5, ERR_PARSE);
	accepted("\"\\ud83d\\ude00 \\\" \\\\ \\/ \\b\\f\\n\\r\\t \\u001f \x7f\"");
}

static void
damaged_structure_is_refused(void **state)
{
	static const char *const bad[] = {"", " ", "{", "[", "}", "]", "{]", "[}", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{,}", "[1,]", "[,1]", "[1 2]", "{\"a\":1 \"b\":2}", "{a:1}",
		"{1:1}", "{null:1}", "{\"a\"=1}", "{\"a\":1", "[1", "{\"1\":1,", "tru", "nul", "True",
		"nulll", "truefalse", "undefined", ":", ",", "[1,,2]", "{\"a\"::1}", "#", "// x\n1"};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		refused(bad[i]);
}

static void
more_keys_than_an_object_may_have_are_refused(void **state)
{
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, MAX);
	assert_int_equal(buf_addf(&b, NULL, "{"), 0);
	for (i = 0; i < 1025; i++)
		assert_int_equal(buf_addf(&b, NULL, "%s\"k%d\":0", i ? "," : "", i), 0);
	assert_int_equal(buf_addf(&b, NULL, "}"), 0);
	refused_bytes(b.data, b.len, ERR_LIMIT);
	buf_fini(&b);
}

static void
message_names_line_and_column(void **state)
{
	struct err e;
	cJSON *o;

	(void)state;
	assert_int_equal(parse("{\n  \"a\": 1,\n  \"a\": 2\n}", 23, &o, &e), -1);
	assert_non_null(strstr(e.msg, "duplicate key \"a\""));
	assert_non_null(strstr(e.msg, "line 3"));
	assert_int_equal(parse("[1,\n\n x]", 8, &o, &e), -1);
	assert_non_null(strstr(e.msg, "line 3, column 2"));
}

static void
readers_tolerate_absence_and_other_types(void **state)
{
	cJSON *o;

	(void)state;
	o = tree("{\"s\":\"x\",\"n\":1.5,\"i\":7,\"b\":true,\"z\":null,"
		"\"o\":{\"p\":{\"q\":\"deep\"}},\"a\":[\"v\"]}");
	assert_string_equal(json_str(o, "s"), "x");
	assert_null(json_str(o, "n"));
	assert_null(json_str(o, "S"));
	assert_null(json_str(NULL, "s"));
	assert_null(json_str(json_get(o, "a"), "v"));
	assert_true(json_bool(o, "b", false));
	assert_true(json_bool(o, "s", true));
	assert_false(json_bool(o, "z", false));
	assert_true(json_num(o, "n", 0) == 1.5);
	assert_true(isnan(json_num(o, "z", (double)NAN)));
	assert_int_equal(json_int(o, "i", -1), 7);
	assert_int_equal(json_int(o, "n", -1), -1);
	assert_int_equal(json_int(o, "s", -1), -1);
	assert_string_equal(json_path_str(o, "o.p.q"), "deep");
	assert_null(json_path_str(o, "o.p"));
	assert_null(json_path(o, "o.x.q"));
	assert_null(json_path(o, "s.x"));
	cJSON_Delete(o);
}

static void
whole_numbers_beyond_what_a_double_holds_are_refused(void **state)
{
	struct err e;
	cJSON *o;
	int64_t v = 5;

	(void)state;
	o = tree("{\"a\":9223372036854775807,\"b\":9007199254740991,\"c\":-1e300,"
		"\"d\":1.0,\"e\":0.5,\"f\":\"1\"}");
	assert_int_equal(json_int(o, "a", -7), -7);
	assert_int_equal(json_need_int(o, "a", INT64_MIN, INT64_MAX, &v, &e), -1);
	assert_int_equal(json_need_int(o, "c", INT64_MIN, INT64_MAX, &v, &e), -1);
	assert_int_equal(json_need_int(o, "e", 0, 1, &v, &e), -1);
	assert_int_equal(json_need_int(o, "f", 0, 1, &v, &e), -1);
	assert_non_null(strstr(e.msg, "another type"));
	assert_int_equal(json_need_int(o, "g", 0, 1, &v, &e), -1);
	assert_non_null(strstr(e.msg, "missing"));
	assert_int_equal(v, 5);
	assert_int_equal(json_need_int(o, "b", 0, INT64_MAX, &v, &e), 0);
	assert_true(v == 9007199254740991);
	assert_int_equal(json_need_int(o, "d", 0, 1, &v, &e), 0);
	assert_int_equal(v, 1);
	cJSON_Delete(o);
}

static void
known_fields_are_those_of_an_object_only(void **state)
{
	static const char *const keys[] = {"a", "b", NULL};
	static const char *const rows[] = {"{\"a\":1,\"c\":2}", "{\"A\":1}", "[1]", "[[1]]", "7",
		"\"a\"", "null"};
	struct err e;
	cJSON *o;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_int_equal(parse(rows[i], strlen(rows[i]), &o, &e), 0);
		assert_int_equal(json_known(o, keys, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
		cJSON_Delete(o);
	}
	assert_int_equal(json_known(NULL, keys, &e), -1);
	o = tree("{\"b\":1}");
	assert_int_equal(json_known(o, keys, &e), 0);
	cJSON_Delete(o);
}

static void
text_of(const char *bytes, size_t n, const char *wanted)
{
	cJSON *o = cJSON_CreateObject(), *back;
	struct err e;
	char *text;

	assert_true(json_add_text(o, "t", bytes, n));
	assert_string_equal(json_str(o, "t"), wanted);
	text = json_text(o, true);
	assert_non_null(text);
	assert_int_equal(parse(text, strlen(text), &back, &e), 0);
	assert_string_equal(json_str(back, "t"), wanted);
	cJSON_Delete(back);
	cJSON_Delete(o);
	free(text);
}

#define BAD "\xef\xbf\xbd"

static void
bytes_that_are_not_utf8_are_replaced_and_no_others(void **state)
{
	(void)state;
	text_of("", 0, "");
	text_of("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 17, "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	text_of("a\x80" "b", 3, "a" BAD "b");
	text_of("\xc3\xa9\x80", 3, "\xc3\xa9" BAD);
	text_of("\xe2\x82", 2, BAD BAD);
	text_of("caf\xe9", 4, "caf" BAD);
	text_of("\xed\xa0\x80", 3, BAD BAD BAD);
	text_of("a\0b", 3, "a" BAD "b");
	text_of("\x1b[31m\"\\\n", 8, "\x1b[31m\"\\\n");
	text_of("\xff\xfe\xc3", 3, BAD BAD BAD);
}

/* Milliseconds of today, sizes of disks. */
static void
written_numbers_come_back_the_same(void **state)
{
	static const int64_t rows[] = {0, -1, 1780000000123, 999999999999999, INT32_MAX,
		(int64_t)INT32_MAX + 1, INT32_MIN, 281474976710656};
	cJSON *o, *back;
	struct err e;
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		o = cJSON_CreateObject();
		assert_true(json_add_int(o, "n", rows[i]));
		text = json_text(o, false);
		assert_int_equal(parse(text, strlen(text), &back, &e), 0);
		assert_true(json_int(back, "n", -9) == rows[i]);
		cJSON_Delete(back);
		cJSON_Delete(o);
		free(text);
	}
}

static void
numbers_that_json_has_no_word_for_are_written_as_null(void **state)
{
	cJSON *o = cJSON_CreateObject();
	char *text;

	(void)state;
	assert_true(json_add_num(o, "nan", (double)NAN));
	assert_true(json_add_num(o, "inf", (double)INFINITY));
	assert_true(json_add_num(o, "max", 1.7976931348623157e308));
	assert_true(json_add_num(o, "x", 0.001));
	assert_true(json_add_str(o, "none", NULL));
	text = json_text(o, false);
	assert_string_equal(text, "{\"nan\":null,\"inf\":null,\"max\":null,\"x\":0.001,\"none\":null}");
	free(text);
	assert_false(json_add(o, "item", NULL));
	cJSON_Delete(o);
}

static void
file_is_loaded_and_its_name_is_in_the_error(void **state)
{
	char dir[256], path[300];
	struct err e = {0};
	cJSON *o = NULL;

	(void)state;
	repo_folder(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/x.json", dir);
	assert_int_equal(json_load(path, MAX, &o, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_int_equal(json_load(dir, MAX, &o, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	repo_write(dir, "x.json", "{\"a\":1,\"a\":2}", 0644);
	assert_int_equal(json_load(path, MAX, &o, &e), -1);
	assert_non_null(strstr(e.msg, "x.json"));
	assert_int_equal(json_load(path, 12, &o, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	repo_write(dir, "x.json", "{\"a\":1}", 0644);
	assert_int_equal(json_load(path, 7, &o, &e), 0);
	assert_int_equal(json_int(o, "a", 0), 1);
	cJSON_Delete(o);
	repo_remove(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicate_keys_are_refused_in_every_spelling),
		cmocka_unit_test(numbers_that_are_not_finite_are_refused),
		cmocka_unit_test(numbers_follow_the_grammar),
		cmocka_unit_test(huge_numbers_are_refused_by_length),
		cmocka_unit_test(nesting_ends_at_the_maximum),
		cmocka_unit_test(body_over_the_maximum_is_refused_before_it_is_read),
		cmocka_unit_test(other_encodings_and_byte_order_marks_are_refused),
		cmocka_unit_test(text_after_the_value_is_refused),
		cmocka_unit_test(strings_hold_no_control_characters_and_whole_surrogates),
		cmocka_unit_test(damaged_structure_is_refused),
		cmocka_unit_test(more_keys_than_an_object_may_have_are_refused),
		cmocka_unit_test(message_names_line_and_column),
		cmocka_unit_test(readers_tolerate_absence_and_other_types),
		cmocka_unit_test(whole_numbers_beyond_what_a_double_holds_are_refused),
		cmocka_unit_test(known_fields_are_those_of_an_object_only),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced_and_no_others),
		cmocka_unit_test(written_numbers_come_back_the_same),
		cmocka_unit_test(numbers_that_json_has_no_word_for_are_written_as_null),
		cmocka_unit_test(file_is_loaded_and_its_name_is_in_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
