#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "controller/blob.h"

/* SHA-256 of nothing and of "abc" (FIPS 180-4 examples). */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char dir[64];

static int
folder_make(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/test-blob-XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
folder_remove(void **state)
{
	(void)state;
	return plat_remove_tree(dir, NULL);
}

/* Bytes that compress a little and differ everywhere. */
static char *
noise(size_t n)
{
	char *p = malloc(n + 1);
	uint32_t x = 2463534242u;
	size_t i;

	assert_non_null(p);
	for (i = 0; i < n; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		p[i] = (char)("0123456789abcdef"[x & 15]);
	}
	p[n] = '\0';
	return p;
}

static void
store(const char *p, size_t n, char digest[DIGEST_HEX])
{
	struct blob_batch *b;
	struct err e = {0};

	assert_int_equal(blob_batch_begin(dir, &b, &e), 0);
	assert_int_equal(blob_batch_bytes(b, p, n, NULL, digest, &e), 0);
	assert_int_equal(blob_batch_commit(b, &e), 0);
	blob_batch_free(b);
}

static void
file_name(const char *digest, char *out, size_t size)
{
	assert_int_equal(
		str_fmt(out, size, NULL, "%s/%.2s/%s.zst", dir, digest, digest), 0);
}

/* Changes one byte at an offset from the start, or from the end when negative. */
static void
flip(const char *digest, long offset)
{
	char path[256];
	FILE *f;
	int c;

	file_name(digest, path, sizeof path);
	assert_non_null(f = fopen(path, "r+"));
	assert_int_equal(fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
	assert_int_not_equal(c = getc(f), EOF);
	assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
	assert_int_not_equal(putc(c ^ 0x55, f), EOF);
	assert_int_equal(fclose(f), 0);
}

static int files_seen;

static int
file_count(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)path, (void)st, (void)where;
	files_seen += kind == FTW_F;
	return 0;
}

/* Number of files below a folder of the store. */
static int
files_in(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	files_seen = 0;
	assert_int_equal(nftw(path, file_count, 8, FTW_PHYS), 0);
	return files_seen;
}

static void
bytes_come_back_under_their_digest(void **state)
{
	char digest[DIGEST_HEX], *out;
	size_t len;

	(void)state;
	store("abc", 3, digest);
	assert_string_equal(digest, ABC);
	assert_true(blob_exists(dir, ABC));
	assert_int_equal(blob_load(dir, ABC, 100, &out, &len, NULL), 0);
	assert_int_equal(len, 3);
	assert_string_equal(out, "abc");
	free(out);
	assert_int_equal(blob_verify(dir, ABC, NULL), 0);
}

static void
nothing_at_all_is_a_blob_too(void **state)
{
	char digest[DIGEST_HEX], *out;
	struct blob *b;
	size_t len = 9;

	(void)state;
	store("", 0, digest);
	assert_string_equal(digest, EMPTY);
	assert_int_equal(blob_load(dir, EMPTY, 0, &out, &len, NULL), 0);
	assert_int_equal(len, 0);
	free(out);
	assert_int_equal(blob_open(dir, EMPTY, &b, NULL), 0);
	assert_int_equal(blob_size(b), 0);
	assert_int_equal(blob_read(b, 0, digest, 5, &len, NULL), 0);
	assert_int_equal(len, 0);
	blob_close(b);
}

static void
ranges_over_frame_borders_are_exact(void **state)
{
	static const struct {
		uint64_t offset;
		size_t len;
	} ranges[] = {
		{0, 1},
		{BLOB_FRAME - 1, 2},
		{BLOB_FRAME - 5, 2 * BLOB_FRAME},
		{BLOB_FRAME, 7},
		{3 * BLOB_FRAME - 3, 100},
		{3 * BLOB_FRAME + 100, 100000},
		{0, 4 * BLOB_FRAME},
	};
	size_t n = 3 * BLOB_FRAME + 12345, i, got, want;
	char digest[DIGEST_HEX], *p = noise(n), *out = malloc(5 * BLOB_FRAME);
	struct blob *b;

	(void)state;
	assert_non_null(out);
	store(p, n, digest);
	assert_int_equal(blob_open(dir, digest, &b, NULL), 0);
	assert_int_equal(blob_size(b), n);
	for (i = 0; i < str_count(ranges); i++) {
		want = ranges[i].len < n - ranges[i].offset
			       ? ranges[i].len
			       : n - (size_t)ranges[i].offset;
		assert_int_equal(
			blob_read(b, ranges[i].offset, out, ranges[i].len, &got, NULL),
			0);
		assert_int_equal(got, want);
		assert_memory_equal(out, p + ranges[i].offset, want);
	}
	assert_int_equal(blob_read(b, n, out, 10, &got, NULL), 0);
	assert_int_equal(got, 0);
	assert_int_equal(blob_read(b, UINT64_MAX - 3, out, 10, &got, NULL), 0);
	assert_int_equal(got, 0);
	blob_close(b);
	free(p);
	free(out);
}

static void
a_range_needs_only_the_frames_it_touches(void **state)
{
	size_t n = 3 * BLOB_FRAME, got;
	char digest[DIGEST_HEX], *p = noise(n), out[16];
	struct err e = {0};
	struct blob *b;

	(void)state;
	store(p, n, digest);
	flip(digest, 100); /* in the first frame */
	assert_int_equal(blob_open(dir, digest, &b, NULL), 0);
	assert_int_equal(blob_read(b, 2 * BLOB_FRAME, out, 16, &got, NULL), 0);
	assert_memory_equal(out, p + 2 * BLOB_FRAME, 16);
	assert_int_equal(blob_read(b, BLOB_FRAME - 1, out, 2, &got, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	blob_close(b);
	free(p);
}

static void
damage_is_named_by_digest_and_frame(void **state)
{
	size_t n = 2 * BLOB_FRAME, len;
	char digest[DIGEST_HEX], path[256], *p = noise(n), *out;
	struct err e = {0};
	struct stat st;

	(void)state;
	store(p, n, digest);
	file_name(digest, path, sizeof path);
	assert_int_equal(stat(path, &st), 0);
	flip(digest,
	     (long)st.st_size - 1000); /* in the second frame: the table is 33 bytes */
	assert_int_equal(blob_verify(dir, digest, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	assert_non_null(strstr(e.msg, digest));
	assert_non_null(strstr(e.msg, "frame 2 of 2"));
	assert_int_equal(blob_load(dir, digest, n, &out, &len, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	free(p);
}

static void
a_blob_under_a_wrong_name_is_an_integrity_error(void **state)
{
	char digest[DIGEST_HEX], from[256], to[256], folder[128];
	struct err e = {0};

	(void)state;
	store("abd", 3, digest);
	file_name(digest, from, sizeof from);
	file_name(ABC, to, sizeof to);
	snprintf(folder, sizeof folder, "%s/ba", dir);
	assert_int_equal(plat_mkdirs(folder, 0700, NULL), 0);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(blob_verify(dir, ABC, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	assert_non_null(strstr(e.msg, "another digest"));
}

static void
a_damaged_or_short_table_is_an_integrity_error(void **state)
{
	/* every byte of the table: 8 head, 8 a frame, 9 foot */
	char digest[DIGEST_HEX], path[256];
	struct err e = {0};
	struct stat st;
	long i, end;

	(void)state;
	store("abc", 3, digest);
	file_name(digest, path, sizeof path);
	assert_int_equal(stat(path, &st), 0);
	for (i = 1; i <= 8 + 8 + 9; i++) {
		flip(digest, -i);
		memset(&e, 0, sizeof e);
		assert_int_equal(blob_verify(dir, digest, &e), -1);
		assert_int_equal(e.code, ERR_INTEGRITY);
		flip(digest, -i);
	}
	assert_int_equal(blob_verify(dir, digest, NULL), 0);
	for (end = st.st_size - 1; end >= 0; end--) {
		assert_int_equal(truncate(path, end), 0);
		memset(&e, 0, sizeof e);
		assert_int_equal(blob_verify(dir, digest, &e), -1);
		assert_int_equal(e.code, ERR_INTEGRITY);
	}
}

static void
a_second_put_is_free_and_mends_a_damaged_table(void **state)
{
	char digest[DIGEST_HEX], path[256];
	struct blob_batch *b;
	struct stat before, after;
	uint64_t bytes = 0;
	int fd = open("/dev/null", O_WRONLY); /* reading it fails */

	(void)state;
	assert_true(fd >= 0);
	store("abc", 3, digest);
	file_name(digest, path, sizeof path);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(blob_put(dir, fd, ABC, digest, &bytes, NULL), 0);
	assert_int_equal(bytes, 3);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino);
	store("abc", 3, digest);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino);
	flip(digest, -1);
	assert_int_equal(blob_batch_begin(dir, &b, NULL), 0);
	assert_int_equal(blob_batch_bytes(b, "abc", 3, ABC, digest, NULL), 0);
	assert_int_equal(blob_batch_commit(b, NULL), 0);
	blob_batch_free(b);
	assert_int_equal(blob_verify(dir, ABC, NULL), 0);
	close(fd);
}

static void
other_bytes_than_expected_are_refused_and_leave_nothing(void **state)
{
	struct err e = {0};
	struct blob_batch *b;

	(void)state;
	assert_int_equal(blob_batch_begin(dir, &b, &e), 0);
	assert_int_equal(blob_batch_bytes(b, "abd", 3, ABC, NULL, &e), -1);
	assert_int_equal(e.code, ERR_INTEGRITY);
	assert_int_equal(blob_batch_bytes(b, "abd", 3, "../../etc/passwd", NULL, &e),
			 -1);
	assert_int_equal(e.code, ERR_PARSE);
	blob_batch_free(b);
	assert_false(blob_exists(dir, ABC));
	assert_int_equal(files_in("."), 0);
}

static void
a_batch_without_commit_leaves_nothing(void **state)
{
	struct blob_batch *b;
	char digest[DIGEST_HEX];

	(void)state;
	assert_int_equal(blob_batch_begin(dir, &b, NULL), 0);
	assert_int_equal(blob_batch_bytes(b, "abc", 3, NULL, digest, NULL), 0);
	assert_int_equal(blob_batch_bytes(b, "abc", 3, NULL, digest, NULL), 0);
	assert_int_equal(files_in("tmp"), 1);
	blob_batch_free(b);
	assert_int_equal(files_in("."), 0);
	assert_false(blob_exists(dir, ABC));
}

static void
a_batch_stores_every_blob_once(void **state)
{
	struct blob_batch *b;
	char digest[40][DIGEST_HEX], text[32];
	int i;

	(void)state;
	assert_int_equal(blob_batch_begin(dir, &b, NULL), 0);
	for (i = 0; i < 40; i++) {
		snprintf(text, sizeof text, "log %d", i / 2);
		assert_int_equal(
			blob_batch_bytes(b, text, strlen(text), NULL, digest[i], NULL),
			0);
	}
	assert_int_equal(blob_batch_commit(b, NULL), 0);
	blob_batch_free(b);
	assert_int_equal(files_in("."), 20);
	for (i = 0; i < 40; i++)
		assert_int_equal(blob_verify(dir, digest[i], NULL), 0);
}

static void
an_old_temporary_file_is_swept_and_a_fresh_one_kept(void **state)
{
	struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
	char path[128];
	struct blob_batch *b;
	int fd, i;

	(void)state;
	assert_int_equal(blob_batch_begin(dir, &b, NULL), 0);
	blob_batch_free(b);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/tmp/%016d", dir, i);
		assert_true((fd = open(path, O_WRONLY | O_CREAT, 0600)) >= 0);
		if (i == 0)
			assert_int_equal(futimens(fd, old), 0);
		close(fd);
	}
	assert_int_equal(blob_batch_begin(dir, &b, NULL), 0);
	blob_batch_free(b);
	assert_int_equal(files_in("tmp"), 1);
	assert_true(plat_exists(path));
}

static void
folders_and_missing_files_are_told_apart(void **state)
{
	struct blob_batch *b;
	struct err e = {0};
	char path[128];

	(void)state;
	assert_int_equal(blob_batch_begin(dir, &b, &e), 0);
	assert_int_equal(blob_batch_file(b, dir, NULL, NULL, NULL, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	snprintf(path, sizeof path, "%s/absent", dir);
	assert_int_equal(blob_batch_file(b, path, NULL, NULL, NULL, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	snprintf(path, sizeof path, "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(blob_batch_file(b, path, NULL, NULL, NULL, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	blob_batch_free(b);
	assert_int_equal(blob_verify(dir, ABC, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
zstd_gives(const char *zstd, const char *p, size_t n)
{
	char digest[DIGEST_HEX], path[256], out_path[128], *out;
	const char *const argv[] = {zstd, "-q", "-f", "-d", path, "-o", out_path, NULL};
	size_t len;
	int status;
	pid_t pid;

	store(p, n, digest);
	file_name(digest, path, sizeof path);
	snprintf(out_path, sizeof out_path, "%s/plain", dir);
	if ((pid = fork()) == 0) {
		execv(zstd, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(plat_read_file(out_path, n, &out, &len, NULL), 0);
	assert_int_equal(len, n);
	assert_memory_equal(out, p, n);
	free(out);
}

static void
the_zstd_command_gives_the_whole(void **state)
{
	size_t n = 2 * BLOB_FRAME + 777;
	char zstd[256], *p;

	(void)state;
	if (plat_find_tool("zstd", zstd, sizeof zstd, NULL))
		skip();
	p = noise(n);
	zstd_gives(zstd, p, n);
	zstd_gives(zstd, p, BLOB_FRAME);
	zstd_gives(zstd, "", 0);
	free(p);
}

static void
a_copy_goes_to_a_file(void **state)
{
	char digest[DIGEST_HEX], path[128], *out;
	size_t len;
	int fd;

	(void)state;
	store("abc", 3, digest);
	snprintf(path, sizeof path, "%s/copy", dir);
	assert_true((fd = open(path, O_WRONLY | O_CREAT, 0600)) >= 0);
	assert_int_equal(blob_copy(dir, ABC, fd, NULL), 0);
	close(fd);
	assert_int_equal(plat_read_file(path, 10, &out, &len, NULL), 0);
	assert_string_equal(out, "abc");
	free(out);
	assert_int_equal(blob_load(dir, ABC, 2, &out, &len, NULL), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(bytes_come_back_under_their_digest),
		CASE(nothing_at_all_is_a_blob_too),
		CASE(ranges_over_frame_borders_are_exact),
		CASE(a_range_needs_only_the_frames_it_touches),
		CASE(damage_is_named_by_digest_and_frame),
		CASE(a_blob_under_a_wrong_name_is_an_integrity_error),
		CASE(a_damaged_or_short_table_is_an_integrity_error),
		CASE(a_second_put_is_free_and_mends_a_damaged_table),
		CASE(other_bytes_than_expected_are_refused_and_leave_nothing),
		CASE(a_batch_without_commit_leaves_nothing),
		CASE(a_batch_stores_every_blob_once),
		CASE(an_old_temporary_file_is_swept_and_a_fresh_one_kept),
		CASE(folders_and_missing_files_are_told_apart),
		CASE(the_zstd_command_gives_the_whole),
		CASE(a_copy_goes_to_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
