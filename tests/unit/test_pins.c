/* Pinned keys: first contact, the same key, another key, damaged files, many writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "controller/pins.h"

#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static char folder[64], path[128];
static struct err e;
static struct pin pin;
static bool fresh;

static int
setup(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	snprintf(folder, sizeof folder, "%s/pins.XXXXXX",
		getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40 ? getenv("TMPDIR") : "/tmp");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/data/pins", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return plat_remove_tree(folder, &e);
}

static void
put_file(const char *text)
{
	char data[128];

	snprintf(data, sizeof data, "%s/data", folder);
	assert_int_equal(plat_mkdirs(data, 0700, &e), 0);
	assert_int_equal(plat_write_file(path, text, strlen(text), 0600, &e), 0);
}

static void
a_host_without_pin_is_not_found(void **state)
{
	(void)state;
	assert_int_equal(pins_find(path, "lab", &pin, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
the_first_key_is_pinned_and_the_same_is_taken(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(pins_check(path, "lab", KEY_A, &fresh, &e), 0);
	assert_true(fresh);
	assert_int_equal(pins_check(path, "lab", KEY_A, &fresh, &e), 0);
	assert_false(fresh);
	assert_int_equal(pins_find(path, "lab", &pin, &e), 0);
	assert_string_equal(pin.key, KEY_A);
	assert_true(plat_utc_parse(pin.since) > 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
another_key_is_refused_with_both_fingerprints(void **state)
{
	char a[64], b[64];

	(void)state;
	sign_fingerprint(KEY_A, a);
	sign_fingerprint(KEY_B, b);
	assert_int_equal(pins_check(path, "lab", KEY_A, &fresh, &e), 0);
	assert_int_equal(pins_check(path, "lab", KEY_B, &fresh, &e), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_int_equal(err_exit(e.code), EXIT_REFUSED);
	assert_non_null(strstr(e.msg, a));
	assert_non_null(strstr(e.msg, b));
	assert_non_null(strstr(e.hint, "pin lab --replace"));
	assert_int_equal(pins_find(path, "lab", &pin, &e), 0);
	assert_string_equal(pin.key, KEY_A);
}

static void
replacing_keeps_the_other_hosts_and_comments(void **state)
{
	char *text = NULL;
	size_t len;

	(void)state;
	put_file("# the lab\nlab " KEY_A " 2026-06-01T10:00:00Z\nlab2 " KEY_A
		" 2026-06-01T10:00:00Z");
	assert_int_equal(pins_replace(path, "lab", KEY_B, &e), 0);
	assert_int_equal(pins_check(path, "lab3", KEY_B, &fresh, &e), 0);
	assert_int_equal(plat_read_file(path, 10000, &text, &len, &e), 0);
	assert_memory_equal(text, "# the lab\nlab " KEY_B " ", 14 + 65);
	assert_non_null(strstr(text, "\nlab2 " KEY_A " 2026-06-01T10:00:00Z\nlab3 " KEY_B));
	free(text);
}

static void
a_damaged_file_is_never_a_first_contact(void **state)
{
	static const char *const bad[] = {
		"lab\n", "lab " KEY_A "\n", "lab 0011 2026-06-01T10:00:00Z\n",
		"lab " KEY_A " yesterday\n", "lab " KEY_A "00 2026-06-01T10:00:00Z\n",
		"<<<<<<< ours\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		memset(&e, 0, sizeof e);
		put_file(bad[i]);
		assert_int_equal(pins_check(path, "lab", KEY_B, &fresh, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
		assert_int_equal(pins_find(path, "lab", &pin, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
	}
}

static void
something_else_than_a_key_is_not_pinned(void **state)
{
	(void)state;
	assert_int_equal(pins_check(path, "lab", "abc", &fresh, &e), -1);
	assert_int_equal(pins_check(path, "lab", KEY_A "0", &fresh, &e), -1);
	assert_false(plat_exists(path));
}

static void
many_writers_lose_no_pin(void **state)
{
	char host[16];
	int i, status, bad = 0;

	(void)state;
	for (i = 0; i < 8; i++)
		if (fork() == 0) {
			snprintf(host, sizeof host, "lab%d", i);
			_exit(pins_check(path, host, KEY_A, &fresh, &e) ? 1 : 0);
		}
	for (i = 0; i < 8; i++)
		if (wait(&status) < 0 || status != 0)
			bad++;
	assert_int_equal(bad, 0);
	for (i = 0; i < 8; i++) {
		snprintf(host, sizeof host, "lab%d", i);
		assert_int_equal(pins_find(path, host, &pin, &e), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_host_without_pin_is_not_found, setup, teardown),
		cmocka_unit_test_setup_teardown(the_first_key_is_pinned_and_the_same_is_taken,
			setup, teardown),
		cmocka_unit_test_setup_teardown(another_key_is_refused_with_both_fingerprints,
			setup, teardown),
		cmocka_unit_test_setup_teardown(replacing_keeps_the_other_hosts_and_comments,
			setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_file_is_never_a_first_contact, setup,
			teardown),
		cmocka_unit_test_setup_teardown(something_else_than_a_key_is_not_pinned, setup,
			teardown),
		cmocka_unit_test_setup_teardown(many_writers_lose_no_pin, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
