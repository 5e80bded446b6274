#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/plat.h"
#include "common/str.h"
#include "tests/unit/repo.h"

/* FIPS 180-4 examples. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define MILLION_A "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void
digests_are_those_of_the_standard(void **state)
{
	char hex[DIGEST_HEX];
	struct digest *d;
	int i;

	(void)state;
	digest_bytes("", 0, hex);
	assert_string_equal(hex, EMPTY);
	digest_bytes("abc", 3, hex);
	assert_string_equal(hex, ABC);
	d = digest_new();
	assert_non_null(d);
	for (i = 0; i < 1000000 / 50; i++)
		digest_add(d, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50);
	digest_end(d, hex);
	assert_string_equal(hex, MILLION_A);
	digest_free(digest_new());
	digest_free(NULL);
}

struct watched {
	uint64_t calls, last, total, stop_at;
};

static int
watch(void *arg, uint64_t done, uint64_t total)
{
	struct watched *w = arg;

	assert_true(done > w->last && done <= total);
	w->calls++;
	w->last = done;
	w->total = total;
	return w->stop_at != 0 && w->calls == w->stop_at;
}

static void
file_is_read_from_its_start_with_progress(void **state)
{
	char dir[256], path[300], hex[DIGEST_HEX], *big = malloc(1000001);
	struct watched w = {0};
	struct err e = {0};
	uint64_t bytes = 0;
	int fd;

	(void)state;
	assert_non_null(big);
	memset(big, 'a', 1000000);
	big[1000000] = '\0';
	repo_folder(dir, sizeof dir);
	repo_write(dir, "f", big, 0644);
	free(big);
	snprintf(path, sizeof path, "%s/f", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && lseek(fd, 500, SEEK_SET) == 500);
	assert_int_equal(digest_fd(fd, watch, &w, hex, &bytes, &e), 0);
	assert_string_equal(hex, MILLION_A);
	assert_int_equal(bytes, 1000000);
	assert_true(w.calls > 1);
	assert_int_equal(w.last, 1000000);
	assert_int_equal(w.total, 1000000);
	w = (struct watched){.stop_at = 1};
	assert_int_equal(digest_fd(fd, watch, &w, hex, &bytes, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	assert_int_equal(w.calls, 1);
	close(fd);
	assert_int_equal(digest_file(path, hex, NULL, &e), 0);
	assert_string_equal(hex, MILLION_A);
	repo_remove(dir);
}

static void
what_is_no_file_has_no_digest(void **state)
{
	char dir[256], path[300], hex[DIGEST_HEX];
	struct err e = {0};
	int p[2];

	(void)state;
	repo_folder(dir, sizeof dir);
	assert_int_equal(digest_file(dir, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	snprintf(path, sizeof path, "%s/fifo", dir);
	assert_int_equal(digest_file(path, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(digest_file(path, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_int_equal(digest_file("/dev/zero", hex, NULL, &e), -1);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(digest_fd(p[0], NULL, NULL, hex, NULL, &e), -1);
	close(p[0]);
	close(p[1]);
	assert_int_equal(digest_fd(-1, NULL, NULL, hex, NULL, &e), -1);
	repo_remove(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standard),
		cmocka_unit_test(file_is_read_from_its_start_with_progress),
		cmocka_unit_test(what_is_no_file_has_no_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
