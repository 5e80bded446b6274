#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/str.h"
#include "tests/unit/repo.h"

struct place {
	char dir[256], path[512];
};

static int
place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	repo_folder(p->dir, sizeof p->dir);
	*state = p;
	return 0;
}

static int
place_remove(void **state)
{
	struct place *p = *state;

	repo_remove(p->dir);
	free(p);
	return 0;
}

static const char *
in(struct place *p, const char *name)
{
	snprintf(p->path, sizeof p->path, "%s/%s", p->dir, name);
	return p->path;
}

static int
entries(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return n;
}

static void
utc_text_goes_there_and_back(void **state)
{
	static const char *const good[] = {"1970-01-01T00:00:00Z", "2026-06-01T10:00:00Z",
		"2024-02-29T23:59:59Z", "2099-12-31T23:59:59Z"};
	char text[24];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(good); i++) {
		plat_utc(plat_utc_parse(good[i]), text);
		assert_string_equal(text, good[i]);
	}
	assert_true(plat_utc_parse("2026-06-01T10:00:00Z") == 1780308000000);
	plat_utc(1780308000999, text);
	assert_string_equal(text, "2026-06-01T10:00:00Z");
}

static void
times_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {"", "2026-06-01", "2026-06-01T10:00:00", "2026-02-29T00:00:00Z",
		"2026-06-31T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
		"2026-06-01T24:00:00Z", "2026-06-01T10:60:00Z", "2026-06-01T10:00:60Z",
		"2026-06-01t10:00:00z", "2026-06-01T10:00:00+", "2026- 6- 1T 1: 0: 0Z",
		"+026-06-01T10:00:00Z", "1969-12-31T23:59:59Z", "2026-06-01T10:00:00Zx",
		"2026-06-01T10:00:0 Z"};
	size_t i;

	(void)state;
	assert_true(plat_utc_parse(NULL) == -1);
	for (i = 0; i < str_count(bad); i++)
		if (plat_utc_parse(bad[i]) != -1)
			fail_msg("accepted: %s", bad[i]);
}

static void
random_digits_differ_and_are_lower_case_hex(void **state)
{
	char a[33], b[33], c[130];
	struct err e = {0};

	(void)state;
	assert_int_equal(plat_random_hex(a, 32, &e), 0);
	assert_int_equal(plat_random_hex(b, 32, &e), 0);
	assert_true(str_is_hex(a, 32));
	assert_string_not_equal(a, b);
	assert_int_equal(plat_random_hex(c, 7, &e), -1);
	assert_int_equal(plat_random_hex(c, 130, &e), -1);
}

static void
folders_are_made_with_all_above_them(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	char longest[5000];

	assert_int_equal(plat_mkdirs(in(p, "a/b//c/"), 0700, &e), 0);
	assert_true(plat_is_dir(in(p, "a/b/c")));
	assert_int_equal(plat_mkdirs(in(p, "a/b"), 0700, &e), 0);
	repo_write(p->dir, "file", "x", 0644);
	assert_int_equal(plat_mkdirs(in(p, "file"), 0700, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(plat_mkdirs(in(p, "file/below"), 0700, &e), -1);
	assert_int_equal(plat_mkdirs("", 0700, &e), -1);
	assert_int_equal(plat_mkdirs("/", 0700, &e), 0);
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(plat_mkdirs(longest, 0700, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
file_is_written_whole_with_its_mode_and_nothing_beside(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	struct stat st;
	char *text;
	size_t n;

	umask(077);
	assert_int_equal(plat_write_file(in(p, "f"), "one", 3, 0644, &e), 0);
	umask(022);
	assert_int_equal(plat_write_file(in(p, "f"), "two\0!", 5, 0640, &e), 0);
	assert_int_equal(stat(in(p, "f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(entries(p->dir), 1);
	assert_int_equal(plat_read_file(in(p, "f"), 5, &text, &n, &e), 0);
	assert_int_equal(n, 5);
	assert_memory_equal(text, "two\0!", 6);
	free(text);
	assert_int_equal(plat_write_file(in(p, "no/f"), "x", 1, 0644, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	repo_write(p->dir, "folder/x", "x", 0644);
	assert_int_equal(plat_write_file(in(p, "folder"), "x", 1, 0644, &e), -1);
	assert_int_equal(entries(p->dir), 2);
}

/* A write that fails half-way leaves the old file and no rest. */
static void
failed_write_leaves_the_old_file(void **state)
{
	struct place *p = *state;
	struct rlimit old, small;
	struct err e = {0};
	char *text, *big = calloc(1, 100000);
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int rc;

	assert_non_null(big);
	assert_int_equal(plat_write_file(in(p, "f"), "old", 3, 0644, &e), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 5000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = plat_write_file(in(p, "f"), big, 100000, 0644, &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, handler);
	free(big);
	assert_int_equal(rc, -1);
	assert_int_equal(e.code, ERR_NOSPACE);
	assert_int_equal(entries(p->dir), 1);
	assert_int_equal(plat_read_file(in(p, "f"), 10, &text, NULL, &e), 0);
	assert_string_equal(text, "old");
	free(text);
}

static void
reading_never_exceeds_the_maximum(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	char *text = NULL;
	size_t n = 77;

	repo_write(p->dir, "f", "12345678", 0644);
	assert_int_equal(plat_read_file(in(p, "f"), 7, &text, &n, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(plat_read_file(in(p, "f"), 8, &text, &n, &e), 0);
	assert_int_equal(n, 8);
	free(text);
	/* these say that they hold 0 bytes */
	assert_int_equal(plat_read_file("/proc/self/status", 16, &text, &n, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(plat_read_file("/proc/self/status", 1u << 20, &text, &n, &e), 0);
	assert_true(n > 100 && strlen(text) == n);
	free(text);
	repo_write(p->dir, "empty", "", 0644);
	assert_int_equal(plat_read_file(in(p, "empty"), 0, &text, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_string_equal(text, "");
	free(text);
}

static void
what_is_no_regular_file_is_refused_at_once(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	char *text = NULL;

	assert_int_equal(plat_read_file(p->dir, 10, &text, NULL, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_int_equal(mkfifo(in(p, "fifo"), 0600), 0);
	assert_int_equal(plat_read_file(in(p, "fifo"), 10, &text, NULL, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_int_equal(plat_read_file("/dev/zero", 10, &text, NULL, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_int_equal(plat_read_file(in(p, "none"), 10, &text, NULL, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_null(text);
	assert_true(plat_exists(in(p, "fifo")));
	assert_false(plat_is_file(in(p, "fifo")));
}

static void
removing_a_tree_never_follows_a_link(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	char target[512];

	repo_write(p->dir, "outside/kept", "x", 0644);
	repo_write(p->dir, "tree/a/b", "x", 0400);
	snprintf(target, sizeof target, "%s/outside", p->dir);
	assert_int_equal(symlink(target, in(p, "tree/link")), 0);
	assert_int_equal(symlink("nowhere", in(p, "tree/broken")), 0);
	assert_int_equal(plat_remove_tree(in(p, "tree"), &e), 0);
	assert_false(plat_exists(in(p, "tree")));
	assert_true(plat_exists(in(p, "outside/kept")));
	assert_int_equal(symlink(target, in(p, "link")), 0);
	assert_int_equal(plat_remove_tree(in(p, "link"), &e), 0);
	assert_true(plat_exists(in(p, "outside/kept")));
	assert_int_equal(plat_remove_tree(in(p, "none"), &e), 0);
	assert_int_equal(plat_remove_tree(in(p, "outside/kept"), &e), 0);
	assert_false(plat_exists(in(p, "outside/kept")));
}

static void
base_folders_follow_the_environment(void **state)
{
	char out[256], *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
	struct err e = {0};

	(void)state;
	assert_non_null(home);
	setenv("XDG_STATE_HOME", "/abs", 1);
	assert_int_equal(plat_xdg("STATE", "verify", out, sizeof out, &e), 0);
	assert_string_equal(out, "/abs/verify");
	setenv("XDG_STATE_HOME", "relative", 1); /* the standard says: ignore it */
	setenv("HOME", "/h", 1);
	assert_int_equal(plat_xdg("STATE", "verify", out, sizeof out, &e), 0);
	assert_string_equal(out, "/h/.local/state/verify");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_int_equal(plat_xdg("STATE", "verify", out, sizeof out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_not_equal(e.hint, "");
	setenv("HOME", home, 1);
	assert_int_equal(plat_xdg("OTHER", "verify", out, sizeof out, &e), -1);
	assert_int_equal(plat_xdg("DATA", "verify", out, 4, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	free(home);
}

static void
tool_is_sought_in_path_and_then_in_the_gpu_folders(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	char out[600], wanted[600], *path = strdup(getenv("PATH"));

	assert_non_null(path);
	repo_write(p->dir, "bin/tool-x", "#!/bin/sh\n", 0755);
	repo_write(p->dir, "bin/not-x", "#!/bin/sh\n", 0644);
	repo_write(p->dir, "cuda/bin/nvcc-x", "#!/bin/sh\n", 0755);
	setenv("PATH", in(p, "bin"), 1);
	setenv("CUDA_HOME", in(p, "cuda"), 1);
	assert_int_equal(plat_find_tool("tool-x", out, sizeof out, &e), 0);
	snprintf(wanted, sizeof wanted, "%s/bin/tool-x", p->dir);
	assert_string_equal(out, wanted);
	assert_int_equal(plat_find_tool(wanted, out, sizeof out, &e), 0);
	assert_int_equal(plat_find_tool("nvcc-x", out, sizeof out, &e), 0);
	assert_true(str_ends(out, "/cuda/bin/nvcc-x"));
	assert_int_equal(plat_find_tool("not-x", out, sizeof out, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_int_equal(plat_find_tool("", out, sizeof out, &e), -1);
	assert_int_equal(plat_find_tool(in(p, "bin"), out, sizeof out, &e), -1);
	/* the current folder is nobody's PATH */
	assert_int_equal(chdir(in(p, "bin")), 0);
	setenv("PATH", ":.:relative:", 1);
	assert_int_equal(plat_find_tool("tool-x", out, sizeof out, &e), -1);
	assert_int_equal(chdir("/"), 0);
	unsetenv("CUDA_HOME");
	setenv("PATH", path, 1);
	free(path);
}

static void
older_variable_counts_when_the_new_one_is_empty(void **state)
{
	const char *used = NULL;

	(void)state;
	unsetenv("ELIZA_MTP_X");
	unsetenv("ELIZA_DFLASH_X");
	assert_null(plat_env("ELIZA_MTP_X", &used));
	setenv("ELIZA_DFLASH_X", "old", 1);
	setenv("ELIZA_MTP_X", "", 1);
	assert_string_equal(plat_env("ELIZA_MTP_X", &used), "old");
	assert_string_equal(used, "ELIZA_DFLASH_X");
	setenv("ELIZA_MTP_X", "new", 1);
	assert_string_equal(plat_env("ELIZA_MTP_X", &used), "new");
	assert_string_equal(used, "ELIZA_MTP_X");
	unsetenv("ELIZA_MTP_X");
	setenv("ELIZA_DFLASH_X", "", 1);
	assert_null(plat_env("ELIZA_MTP_X", NULL));
	assert_null(plat_env("OTHER_NAME_X", NULL));
	unsetenv("ELIZA_DFLASH_X");
}

static void
this_program_and_this_boot_have_names(void **state)
{
	char self[4096], boot[40], again[40];
	struct err e = {0};

	(void)state;
	assert_int_equal(plat_self(self, sizeof self, &e), 0);
	assert_true(plat_is_file(self));
	assert_int_equal(plat_self(self, 4, &e), -1);
	plat_boot_id(boot);
	plat_boot_id(again);
	assert_int_equal(strlen(boot), 36);
	assert_string_equal(boot, again);
	assert_true(plat_now_ms() > 1600000000000);
	assert_true(plat_mono_ms() <= plat_mono_ms());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utc_text_goes_there_and_back),
		cmocka_unit_test(times_that_are_none_are_refused),
		cmocka_unit_test(random_digits_differ_and_are_lower_case_hex),
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)
		IN_PLACE(folders_are_made_with_all_above_them),
		IN_PLACE(file_is_written_whole_with_its_mode_and_nothing_beside),
		IN_PLACE(failed_write_leaves_the_old_file),
		IN_PLACE(reading_never_exceeds_the_maximum),
		IN_PLACE(what_is_no_regular_file_is_refused_at_once),
		IN_PLACE(removing_a_tree_never_follows_a_link),
		cmocka_unit_test(base_folders_follow_the_environment),
		IN_PLACE(tool_is_sought_in_path_and_then_in_the_gpu_folders),
		cmocka_unit_test(older_variable_counts_when_the_new_one_is_empty),
		cmocka_unit_test(this_program_and_this_boot_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
