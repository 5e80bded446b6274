#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"

static void
buffer_grows_to_its_maximum_and_not_a_byte_more(void **state)
{
	struct buf b;
	struct err e = {0};
	size_t i;

	(void)state;
	buf_init(&b, 1000);
	for (i = 0; i < 1000; i++)
		assert_int_equal(buf_add(&b, "x", 1, &e), 0);
	assert_true(b.cap <= 1001);
	assert_int_equal(buf_add(&b, "x", 1, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.data[1000], '\0');
	assert_int_equal(buf_add(&b, "", 0, &e), 0);
	buf_fini(&b);
	buf_fini(&b);
}

static void
lengths_near_the_end_of_memory_do_not_wrap_around(void **state)
{
	struct buf b;
	struct err e = {0};

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_add(&b, "abc", 3, &e), 0);
	assert_int_equal(buf_add(&b, "abc", SIZE_MAX, &e), -1);
	assert_int_equal(buf_add(&b, "abc", SIZE_MAX - 2, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(b.data, "abc");
	buf_fini(&b);
	buf_init(&b, SIZE_MAX);
	assert_int_equal(buf_add(&b, "abc", 3, &e), 0);
	buf_fini(&b);
}

static void
empty_buffer_with_nothing_added_is_text_after_an_empty_add(void **state)
{
	struct buf b;
	char *p;

	(void)state;
	buf_init(&b, 0);
	assert_int_equal(buf_add(&b, "", 0, NULL), 0);
	assert_string_equal(b.data, "");
	assert_int_equal(buf_add(&b, "x", 1, NULL), -1);
	p = buf_take(&b);
	assert_non_null(p);
	assert_null(b.data);
	free(p);
	buf_fini(&b);
}

static void
formatted_text_longer_than_the_stack_buffer_is_whole(void **state)
{
	char word[3000];
	struct buf b;
	struct err e = {0};

	(void)state;
	memset(word, 'w', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	buf_init(&b, 4000);
	assert_int_equal(buf_addf(&b, &e, "%s=%d", word, 7), 0);
	assert_int_equal(b.len, 3001);
	assert_string_equal(b.data + 2999, "=7");
	assert_int_equal(buf_addf(&b, &e, "%s", word), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(b.len, 3001);
	buf_fini(&b);
}

static void
copies_fail_rather_than_truncate(void **state)
{
	char d[4];
	struct err e = {0};

	(void)state;
	assert_int_equal(str_copy(d, sizeof d, "abc", &e), 0);
	assert_string_equal(d, "abc");
	assert_int_equal(str_copy(d, sizeof d, "abcd", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(str_fmt(d, sizeof d, &e, "%d", 123), 0);
	assert_int_equal(str_fmt(d, sizeof d, &e, "%d", 1234), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
only_decimal_digits_in_range_are_numbers(void **state)
{
	static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "0x10", "1e3", "1.0", "1,000",
		"18446744073709551616", "99999999999999999999999", "\xd9\xa1", "1\n"};
	uint64_t v = 0;
	uint32_t w = 7;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		assert_int_equal(str_u64(bad[i], 0, UINT64_MAX, &v, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
	}
	assert_int_equal(str_u64("18446744073709551615", 0, UINT64_MAX, &v, &e), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(str_u32("4294967295", 0, UINT32_MAX, &w, &e), 0);
	assert_int_equal(w, UINT32_MAX);
	w = 7;
	assert_int_equal(str_u32("4294967296", 0, UINT32_MAX, &w, &e), -1);
	assert_int_equal(str_u32("4", 5, 9, &w, &e), -1);
	assert_int_equal(str_u32("10", 5, 9, &w, &e), -1);
	assert_int_equal(w, 7);
	assert_int_equal(str_u32("5", 5, 9, &w, &e), 0);
	assert_int_equal(str_u32("9", 5, 9, &w, &e), 0);
}

/* Against a decoder written from the table of RFC 3629, section 4. */
static bool
utf8_by_table(const unsigned char *p, size_t n)
{
	static const unsigned char rows[][8] = {
		{0xc2, 0xdf, 0x80, 0xbf}, {0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf},
		{0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf}, {0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf},
		{0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf}, {0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
		{0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
		{0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
	};
	size_t i = 0, r, k;

	while (i < n) {
		if (p[i] < 0x80) {
			i++;
			continue;
		}
		for (r = 0; r < str_count(rows) && (p[i] < rows[r][0] || p[i] > rows[r][1]); r++)
			;
		if (r == str_count(rows))
			return false;
		for (k = 1, i++; k < 4 && rows[r][2 * k] != 0; k++, i++)
			if (i >= n || p[i] < rows[r][2 * k] || p[i] > rows[r][2 * k + 1])
				return false;
	}
	return true;
}

static void
utf8_is_that_of_the_standard_for_all_starts(void **state)
{
	static const unsigned char tails[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
		0xc0, 0xff};
	unsigned char text[4];
	unsigned a;
	size_t b, c, d, n;

	(void)state;
	for (a = 0; a < 256; a++)
		for (b = 0; b < sizeof tails; b++)
			for (c = 0; c < sizeof tails; c++)
				for (d = 0; d < sizeof tails; d++) {
					text[0] = (unsigned char)a;
					text[1] = tails[b];
					text[2] = tails[c];
					text[3] = tails[d];
					for (n = 0; n <= 4; n++)
						assert_int_equal(str_is_utf8((char *)text, n),
							utf8_by_table(text, n));
				}
}

static void
shown_text_is_always_printable_utf8(void **state)
{
	char dst[16], src[64];
	unsigned seed = 1;
	size_t i, n, k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		for (k = 0; k < sizeof src; k++) {
			seed = seed * 1103515245u + 12345u;
			src[k] = (char)(seed >> 16);
		}
		n = i % sizeof src;
		str_show(dst, 1 + i % sizeof dst, src, n);
		assert_true(str_is_utf8(dst, strlen(dst)));
		assert_true(strlen(dst) <= i % sizeof dst);
		for (k = 0; dst[k] != '\0'; k++) {
			assert_true((unsigned char)dst[k] >= 0x20 && dst[k] != 0x7f);
			assert_false((unsigned char)dst[k] == 0xc2 && (unsigned char)dst[k + 1] < 0xa0);
		}
	}
}

static void
shown_text_keeps_whole_characters_and_does_not_vanish(void **state)
{
	char dst[8], bytes[100];

	(void)state;
	str_show(dst, sizeof dst, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9);
	assert_string_equal(dst, "\xe2\x82\xac\xe2\x82\xac");
	str_show(dst, sizeof dst, "a\tb\nc", 5);
	assert_string_equal(dst, "a?b?c");
	memset(bytes, 0x80, sizeof bytes);
	str_show(dst, sizeof dst, bytes, sizeof bytes);
	assert_true(strlen(dst) >= 4);
	assert_int_equal(dst[0], '?');
	str_show(dst, 0, "x", 1);
	str_show(dst, 1, "x", 1);
	assert_string_equal(dst, "");
}

static void
hex_is_lower_case_and_of_that_length_only(void **state)
{
	uint8_t raw[2] = {9, 9};
	char text[5];

	(void)state;
	assert_true(str_is_hex("09af", 4));
	assert_false(str_is_hex("09AF", 4));
	assert_false(str_is_hex("09a", 4));
	assert_false(str_is_hex("09af0", 4));
	assert_false(str_is_hex("09ag", 4));
	assert_int_equal(str_unhex(raw, 2, "0fa0"), 0);
	assert_int_equal(raw[0], 0x0f);
	assert_int_equal(raw[1], 0xa0);
	assert_int_equal(str_unhex(raw, 2, "0fA0"), -1);
	assert_int_equal(str_unhex(raw, 2, "0fa"), -1);
	assert_int_equal(raw[0], 0x0f);
	str_hex(text, raw, 2);
	assert_string_equal(text, "0fa0");
}

static void
split_gives_words_and_says_when_there_are_too_many(void **state)
{
	char text[] = "  a,b\tc\r\nd  ", commas[] = ",,a,,b c,", blank[] = " \n", many[] = "a b c";
	char *out[4];

	(void)state;
	assert_int_equal(str_split(text, false, out, 4), 3);
	assert_string_equal(out[0], "a,b");
	assert_string_equal(out[2], "d");
	assert_int_equal(str_split(commas, true, out, 4), 3);
	assert_string_equal(out[2], "c");
	assert_int_equal(str_split(blank, true, out, 4), 0);
	assert_int_equal(str_split(many, true, out, 2), -1);
}

static void
equal_prefix_and_suffix_take_odd_arguments(void **state)
{
	(void)state;
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq(NULL, ""));
	assert_false(str_eq("a", "b"));
	assert_true(str_starts("abc", ""));
	assert_false(str_starts("a", "abc"));
	assert_true(str_ends("abc", "bc"));
	assert_false(str_ends("c", "bc"));
	assert_true(str_ends("c", ""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_grows_to_its_maximum_and_not_a_byte_more),
		cmocka_unit_test(lengths_near_the_end_of_memory_do_not_wrap_around),
		cmocka_unit_test(empty_buffer_with_nothing_added_is_text_after_an_empty_add),
		cmocka_unit_test(formatted_text_longer_than_the_stack_buffer_is_whole),
		cmocka_unit_test(copies_fail_rather_than_truncate),
		cmocka_unit_test(only_decimal_digits_in_range_are_numbers),
		cmocka_unit_test(utf8_is_that_of_the_standard_for_all_starts),
		cmocka_unit_test(shown_text_is_always_printable_utf8),
		cmocka_unit_test(shown_text_keeps_whole_characters_and_does_not_vanish),
		cmocka_unit_test(hex_is_lower_case_and_of_that_length_only),
		cmocka_unit_test(split_gives_words_and_says_when_there_are_too_many),
		cmocka_unit_test(equal_prefix_and_suffix_take_odd_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
