#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/treeid.h"
#include "tests/unit/repo.h"

#define EMPTY_TREE "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#define EMPTY_BLOB "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

static char root[256];

static int
setup(void **state)
{
	(void)state;
	repo_folder(root, sizeof root);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	repo_remove(root);
	return 0;
}

/* What git itself says of the folder. */
static void
git_tree(char out[TREEID_HEX])
{
	char none[8];

	repo_git(root, none, sizeof none, "init", "-q", ".");
	repo_git(root, none, sizeof none, "add", "-A", "-f");
	repo_git(root, out, TREEID_HEX, "write-tree");
}

static void
equal_to_git(void)
{
	char ours[TREEID_HEX], theirs[TREEID_HEX];
	struct err e = {0};

	assert_int_equal(treeid_folder(root, NULL, NULL, ours, NULL, &e), 0);
	git_tree(theirs);
	assert_string_equal(ours, theirs);
	/* And the repository that is there now changes nothing. */
	assert_int_equal(treeid_folder(root, NULL, NULL, ours, NULL, &e), 0);
	assert_string_equal(ours, theirs);
}

static void
empty_folder_is_the_empty_tree(void **state)
{
	char hex[TREEID_HEX];
	struct err e;

	(void)state;
	assert_int_equal(treeid_folder(root, NULL, NULL, hex, NULL, &e), 0);
	assert_string_equal(hex, EMPTY_TREE);
}

static void
empty_blob_is_known(void **state)
{
	char hex[TREEID_HEX];
	struct err e;

	(void)state;
	assert_int_equal(treeid_blob("", 0, hex, &e), 0);
	assert_string_equal(hex, EMPTY_BLOB);
}

/* "a-b" < "a/" < "a0": a folder sorts as if it ended in a slash. */
static void
folders_sort_as_git_sorts_them(void **state)
{
	(void)state;
	repo_write(root, "a/x", "1", 0644);
	repo_write(root, "a-b", "2", 0644);
	repo_write(root, "a0", "3", 0644);
	repo_write(root, "a.c", "4", 0644);
	repo_write(root, "B/y", "5", 0644);
	repo_write(root, "\xc3\xa4 blank", "6", 0644);
	equal_to_git();
}

static void
modes_links_and_hidden_files_count(void **state)
{
	char path[300];

	(void)state;
	repo_write(root, "run.sh", "#!/bin/sh\n", 0755);
	repo_write(root, "group.sh", "x", 0654); /* only the group may execute */
	repo_write(root, ".hidden", "h", 0600);
	repo_write(root, ".gitignore", "ignored\n", 0644);
	repo_write(root, "ignored", "still counts", 0644);
	snprintf(path, sizeof path, "%s/link", root);
	assert_int_equal(symlink("run.sh", path), 0);
	snprintf(path, sizeof path, "%s/away", root);
	assert_int_equal(symlink("/does/not/exist", path), 0);
	equal_to_git();
}

static void
empty_folders_and_fifos_do_not_count(void **state)
{
	char path[300], before[TREEID_HEX], after[TREEID_HEX];
	struct err e;

	(void)state;
	repo_write(root, "f", "1", 0644);
	assert_int_equal(treeid_folder(root, NULL, NULL, before, NULL, &e), 0);
	snprintf(path, sizeof path, "%s/empty", root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof path, "%s/empty/inner", root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof path, "%s/fifo", root);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(treeid_folder(root, NULL, NULL, after, NULL, &e), 0);
	assert_string_equal(before, after);
	equal_to_git();
}

static void
one_byte_changes_the_id(void **state)
{
	char before[TREEID_HEX], after[TREEID_HEX];
	struct treeid_count n;
	struct err e;

	(void)state;
	repo_write(root, "deep/er/f", "1", 0644);
	assert_int_equal(treeid_folder(root, NULL, NULL, before, &n, &e), 0);
	assert_int_equal(n.files, 1);
	assert_int_equal(n.bytes, 1);
	repo_write(root, "deep/er/f", "2", 0644);
	assert_int_equal(treeid_folder(root, NULL, NULL, after, NULL, &e), 0);
	assert_string_not_equal(before, after);
}

static void
folders_without_end_are_refused(void **state)
{
	char path[REPO_PATH], hex[TREEID_HEX];
	struct err e = {0};
	size_t n;
	int i;

	(void)state;
	n = (size_t)snprintf(path, sizeof path, "%s", root);
	for (i = 0; i < TREEID_MAX_DEPTH + 1; i++) {
		n += (size_t)snprintf(path + n, sizeof path - n, "/d");
		assert_int_equal(mkdir(path, 0755), 0);
	}
	assert_int_equal(treeid_folder(root, NULL, NULL, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
missing_folder_is_not_found(void **state)
{
	char path[300], hex[TREEID_HEX];
	struct err e = {0};

	(void)state;
	snprintf(path, sizeof path, "%s/none", root);
	assert_int_equal(treeid_folder(path, NULL, NULL, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static int
stop(void *arg)
{
	(void)arg;
	return 1;
}

static void
cancelling_stops_the_walk(void **state)
{
	char hex[TREEID_HEX];
	struct err e = {0};

	(void)state;
	repo_write(root, "f", "1", 0644);
	assert_int_equal(treeid_folder(root, stop, NULL, hex, NULL, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(empty_folder_is_the_empty_tree),
		T(empty_blob_is_known),
		T(folders_sort_as_git_sorts_them),
		T(modes_links_and_hidden_files_count),
		T(empty_folders_and_fifos_do_not_count),
		T(one_byte_changes_the_id),
		T(folders_without_end_are_refused),
		T(missing_folder_is_not_found),
		T(cancelling_stops_the_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
