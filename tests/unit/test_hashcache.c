/* Digests that are remembered, and all the cases where they must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "agent/hashcache.h"
#include "common/str.h"
#include "tests/unit/repo.h"

/* FIPS 180-2, appendix B.1: "abc". */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char folder[REPO_PATH], cache[REPO_PATH + 32], settled[REPO_PATH + 16];
static char fresh[REPO_PATH + 16];
static struct err error;

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* ctime can not be set back, so the tests wait once until a file has settled. */
static int
set_up(void **state)
{
	struct timespec t = { 2, 300000000 };

	(void)state;
	repo_folder(folder, sizeof folder);
	snprintf(cache, sizeof cache, "%s/state/digests", folder);
	snprintf(settled, sizeof settled, "%s/settled", folder);
	snprintf(fresh, sizeof fresh, "%s/fresh", folder);
	write_file(settled, "abc");
	while (nanosleep(&t, &t) != 0)
		;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	repo_remove(folder);
	return 0;
}

static int
forget(void **state)
{
	(void)state;
	(void)unlink(cache);
	memset(&error, 0, sizeof error);
	return 0;
}

static int calls;

static int
count_calls(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	assert_true(done <= total);
	calls++;
	return 0;
}

static bool
is_spared(const char *path)
{
	char hex[DIGEST_HEX];
	uint64_t bytes = 0;
	bool cached = false;

	calls = 0;
	assert_int_equal(hashcache_file(cache, path, count_calls, NULL, hex, &bytes, &cached,
		&error), 0);
	assert_string_equal(hex, ABC);
	assert_int_equal(bytes, 3);
	assert_int_equal(calls > 0, !cached);
	return cached;
}

static void
a_second_call_is_spared(void **state)
{
	(void)state;
	assert_false(is_spared(settled));
	assert_true(is_spared(settled));
	assert_true(is_spared(settled));
}

static void
without_a_cache_nothing_is_spared(void **state)
{
	char hex[DIGEST_HEX];
	bool cached = true;

	(void)state;
	assert_int_equal(hashcache_file(NULL, settled, NULL, NULL, hex, NULL, &cached, &error), 0);
	assert_string_equal(hex, ABC);
	assert_false(cached);
	assert_false(plat_exists(cache));
}

static void
a_file_that_just_changed_is_not_remembered(void **state)
{
	(void)state;
	write_file(fresh, "abc");
	assert_false(is_spared(fresh));
	assert_false(is_spared(fresh));
	assert_false(plat_exists(cache));
}

/* Same inode, size and mtime, other content: only ctime tells. */
static void
a_changed_file_with_its_old_mtime_is_read_again(void **state)
{
	char copy[REPO_PATH + 16], hex[DIGEST_HEX];
	struct timespec times[2];
	struct stat st;
	bool cached;

	(void)state;
	snprintf(copy, sizeof copy, "%s/settled", folder);
	assert_false(is_spared(copy));
	assert_int_equal(stat(copy, &st), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	write_file(copy, "abd");
	assert_int_equal(utimensat(AT_FDCWD, copy, times, 0), 0);
	assert_int_equal(hashcache_file(cache, copy, NULL, NULL, hex, NULL, &cached, &error), 0);
	assert_false(cached);
	assert_string_not_equal(hex, ABC);
}

static void
write_cache(const char *text)
{
	assert_int_equal(plat_write_file(cache, text, strlen(text), 0600, &error), 0);
}

static void
a_damaged_cache_is_ignored_and_rewritten(void **state)
{
	static const char *const damaged[] = {
		"", "\n", "verify-hashcache 2\n", "verify-hashcache 1", "garbage",
		"verify-hashcache 1\n1 2 3 4\n",
		("verify-hashcache 1\n1 2 3 4 5 " ABC " 7\n"),
		("verify-hashcache 1\n1 2 3 4 99999999999999999999999 " ABC "\n"),
		"verify-hashcache 1\n1 2 3 4 5 BA7816BF\n",
		("verify-hashcache 1\n1 2 3 4 5 " ABC), /* cut: no end of line */
	};

	(void)state;
	for (size_t i = 0; i < str_count(damaged); i++) {
		assert_int_equal(plat_mkdirs(folder, 0700, &error), 0);
		write_cache(damaged[i]);
		assert_false(is_spared(settled));
		assert_true(is_spared(settled));
	}
}

static void
key_of(const char *path, char *out, size_t size, const char *hex)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	snprintf(out, size, "%llu %llu %llu %llu %llu %s\n", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, (unsigned long long)st.st_size,
		(unsigned long long)st.st_mtim.tv_sec * 1000000000u +
			(unsigned long long)st.st_mtim.tv_nsec,
		(unsigned long long)st.st_ctim.tv_sec * 1000000000u +
			(unsigned long long)st.st_ctim.tv_nsec, hex);
}

/* A line that is whole but one too many, or a truth beside rubbish, counts for nothing. */
static void
a_true_line_in_a_damaged_cache_is_not_believed(void **state)
{
	char line[256], text[512];

	(void)state;
	key_of(settled, line, sizeof line, ABC);
	snprintf(text, sizeof text, "verify-hashcache 1\n%s", line);
	write_cache(text);
	assert_true(is_spared(settled)); /* the line is right */
	snprintf(text, sizeof text, "verify-hashcache 1\n%srubbish\n", line);
	write_cache(text);
	assert_false(is_spared(settled));
}

static size_t
lines(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void
the_oldest_of_too_many_makes_room(void **state)
{
	struct buf b;
	char *text = NULL;
	size_t len;

	(void)state;
	buf_init(&b, 1 << 20);
	assert_int_equal(buf_addf(&b, &error, "verify-hashcache 1\n"), 0);
	for (int i = 0; i < HASHCACHE_MAX; i++)
		assert_int_equal(buf_addf(&b, &error, "7 %d 3 4 5 %s\n", 1000 + i, ABC), 0);
	write_cache(b.data);
	buf_fini(&b);
	assert_false(is_spared(settled));
	assert_int_equal(plat_read_file(cache, 1 << 20, &text, &len, &error), 0);
	assert_int_equal(lines(text), 1 + HASHCACHE_MAX);
	assert_null(strstr(text, "\n7 1000 "));
	assert_non_null(strstr(text, "\n7 1001 "));
	free(text);
	assert_true(is_spared(settled));
}

static void
an_older_state_of_a_file_is_dropped(void **state)
{
	char line[256], old[512], *text = NULL;
	struct stat st;
	size_t len;

	(void)state;
	assert_int_equal(stat(settled, &st), 0);
	snprintf(line, sizeof line, "%llu %llu 1 1 1 %s\n", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, ABC);
	snprintf(old, sizeof old, "verify-hashcache 1\n%s", line);
	write_cache(old);
	assert_false(is_spared(settled));
	assert_int_equal(plat_read_file(cache, 1 << 20, &text, &len, &error), 0);
	assert_int_equal(lines(text), 2);
	free(text);
}

static int
grow(void *arg, uint64_t done, uint64_t total)
{
	FILE *f;

	(void)done;
	(void)total;
	if (calls++ > 0) /* once, or the reader follows for ever */
		return 0;
	assert_non_null(f = fopen(arg, "a"));
	assert_true(fputc('!', f) >= 0);
	assert_int_equal(fclose(f), 0);
	return 0;
}

static void
a_file_that_changes_while_it_is_read_is_an_error(void **state)
{
	char hex[DIGEST_HEX], text[REPO_PATH + 16];
	bool cached;

	(void)state;
	calls = 0;
	snprintf(text, sizeof text, "%s", fresh);
	write_file(fresh, "abc");
	assert_int_equal(hashcache_file(cache, fresh, grow, text, hex, NULL, &cached, &error), -1);
	assert_int_equal(error.code, ERR_INTEGRITY);
	assert_false(plat_exists(cache));
}

/* Another file of the same length: the content under the reader changed in place. */
static int
overwrite(void *arg, uint64_t done, uint64_t total)
{
	struct timespec t = { 0, 20000000 }; /* past the granularity of ctime */

	(void)done;
	(void)total;
	nanosleep(&t, NULL);
	write_file(arg, "xyz");
	return 0;
}

static void
a_change_of_equal_length_is_seen_as_well(void **state)
{
	char hex[DIGEST_HEX], text[REPO_PATH + 16];

	(void)state;
	snprintf(text, sizeof text, "%s", fresh);
	write_file(fresh, "abc");
	assert_int_equal(hashcache_file(cache, fresh, overwrite, text, hex, NULL, NULL, &error), -1);
	assert_int_equal(error.code, ERR_INTEGRITY);
}

static int
stop(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
	return 1;
}

static void
a_cancelled_digest_is_not_remembered(void **state)
{
	char hex[DIGEST_HEX];

	(void)state;
	assert_int_equal(hashcache_file(cache, settled, stop, NULL, hex, NULL, NULL, &error), -1);
	assert_int_equal(error.code, ERR_CANCELLED);
	assert_false(plat_exists(cache));
}

static void
a_fifo_is_refused_without_waiting(void **state)
{
	char path[REPO_PATH + 16], hex[DIGEST_HEX];

	(void)state;
	snprintf(path, sizeof path, "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(20);
	assert_int_equal(hashcache_file(cache, path, NULL, NULL, hex, NULL, NULL, &error), -1);
	(void)alarm(0);
	assert_int_equal(error.code, ERR_USAGE);
}

static void
a_cache_that_can_not_be_written_costs_only_time(void **state)
{
	char hex[DIGEST_HEX];
	bool cached = true;

	(void)state;
	assert_int_equal(hashcache_file("/dev/null/x/digests", settled, NULL, NULL, hex, NULL,
		&cached, &error), 0);
	assert_string_equal(hex, ABC);
	assert_false(cached);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_second_call_is_spared, forget),
		cmocka_unit_test_setup(without_a_cache_nothing_is_spared, forget),
		cmocka_unit_test_setup(a_file_that_just_changed_is_not_remembered, forget),
		cmocka_unit_test_setup(a_damaged_cache_is_ignored_and_rewritten, forget),
		cmocka_unit_test_setup(a_true_line_in_a_damaged_cache_is_not_believed, forget),
		cmocka_unit_test_setup(the_oldest_of_too_many_makes_room, forget),
		cmocka_unit_test_setup(an_older_state_of_a_file_is_dropped, forget),
		cmocka_unit_test_setup(a_file_that_changes_while_it_is_read_is_an_error, forget),
		cmocka_unit_test_setup(a_change_of_equal_length_is_seen_as_well, forget),
		cmocka_unit_test_setup(a_cancelled_digest_is_not_remembered, forget),
		cmocka_unit_test_setup(a_fifo_is_refused_without_waiting, forget),
		cmocka_unit_test_setup(a_cache_that_can_not_be_written_costs_only_time, forget),
		/* Last: it changes the settled file. */
		cmocka_unit_test_setup(a_changed_file_with_its_old_mtime_is_read_again, forget),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
