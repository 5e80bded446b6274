#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/preload.h"
#include "common/plat.h"

static char dir[] = "/tmp/test-preload-XXXXXX";

static void
library_lies_under_its_digest(void **state)
{
	char path[4096], digest[DIGEST_HEX], found[DIGEST_HEX];
	struct err e = {0};

	(void)state;
	assert_int_equal(preload_place(PRELOAD_LINGER, dir, path, sizeof path, digest, &e), 0);
	assert_int_equal(digest_file(path, found, NULL, &e), 0);
	assert_string_equal(found, digest);
	/* each its own bytes */
	assert_int_equal(preload_place(PRELOAD_SCRAMBLE, dir, path, sizeof path, digest, &e), 0);
	assert_non_null(strstr(path, "/scramble-"));
	assert_string_not_equal(found, digest);
	assert_int_equal(digest_file(path, found, NULL, &e), 0);
	assert_string_equal(found, digest);
}

static void
damaged_library_is_written_anew(void **state)
{
	char path[4096], digest[DIGEST_HEX], found[DIGEST_HEX];
	struct err e = {0};

	(void)state;
	assert_int_equal(preload_place(PRELOAD_LINGER, dir, path, sizeof path, digest, &e), 0);
	assert_int_equal(plat_write_file(path, "x", 1, 0644, &e), 0);
	assert_int_equal(preload_place(PRELOAD_LINGER, dir, path, sizeof path, digest, &e), 0);
	assert_int_equal(digest_file(path, found, NULL, &e), 0);
	assert_string_equal(found, digest);
}

static void
path_that_the_linker_would_split_is_refused(void **state)
{
	static const char *const bad[] = {"/tmp/a b", "/tmp/a:b", "relative", "/tmp/$ORIGIN"};
	char path[4096], digest[DIGEST_HEX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = {0};

		assert_int_equal(preload_place(PRELOAD_LINGER, bad[i], path, sizeof path, digest, &e), -1);
		assert_int_equal(e.code, ERR_UNSUPPORTED);
	}
}

static int
setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	return plat_remove_tree(dir, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_lies_under_its_digest),
		cmocka_unit_test(damaged_library_is_written_anew),
		cmocka_unit_test(path_that_the_linker_would_split_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
