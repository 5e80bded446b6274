/* Ways to a pass that was not deserved: each was tried, and each must stay shut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/source.h"
#include "common/str.h"
#include "tests/unit/repo.h"

#define NONCE_OF_LOG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* ---- a changed source that git calls clean ---- */

struct world {
	char root[256], engine[300], other[300], cache[300], log_path[300];
	struct transcript *log;
	struct source_ask ask;
	struct source_info info;
	enum reason why;
	struct err e;
};

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	repo_folder(w->root, sizeof w->root);
	snprintf(w->engine, sizeof w->engine, "%s/engine", w->root);
	snprintf(w->other, sizeof w->other, "%s/other", w->root);
	snprintf(w->cache, sizeof w->cache, "%s/cache", w->root);
	snprintf(w->log_path, sizeof w->log_path, "%s/log", w->root);
	assert_int_equal(mkdir(w->engine, 0755), 0);
	assert_int_equal(mkdir(w->other, 0755), 0);
	assert_int_equal(transcript_open(w->log_path, NONCE_OF_LOG, 1 << 20, &w->log, &w->e), 0);
	w->ask.spec = w->engine;
	w->ask.cache_dir = w->cache;
	w->ask.timeout_ms = 60000;
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	source_release(&w->info);
	assert_int_equal(transcript_close(w->log, NULL, NULL, &w->e), 0);
	repo_remove(w->root);
	free(w);
	return 0;
}

static void
get(struct world *w)
{
	if (source_get(&w->ask, w->log, &w->info, &w->why, &w->e))
		fail_msg("%s: %s", reason_name(w->why), w->e.msg);
}

static void
is_seen_as_changed(struct world *w)
{
	char status[256];

	/* or there would be nothing to see through */
	repo_git(w->engine, status, sizeof status, "status", "--porcelain");
	assert_string_equal(status, "");
	get(w);
	assert_true(w->info.dirty);
	assert_int_equal(strlen(w->info.dirty_digest), 64);
}

static void
change_behind_a_filter_is_seen(void **state)
{
	struct world *w = *state;
	char none[8];

	repo_engine(w->engine);
	repo_git(w->engine, none, sizeof none, "config", "filter.x.clean", "git show HEAD:%f");
	repo_write(w->engine, ".git/info/attributes", "*.c filter=x\n", 0644);
	repo_write(w->engine, "ggml/a.c", "int b;\n", 0644);
	is_seen_as_changed(*state);
}

static void
change_behind_another_work_tree_is_seen(void **state)
{
	struct world *w = *state;
	char none[8];

	repo_engine(w->engine);
	repo_engine(w->other);
	repo_git(w->engine, none, sizeof none, "config", "core.worktree", w->other);
	repo_write(w->engine, "ggml/a.c", "int b;\n", 0644);
	is_seen_as_changed(*state);
}

static void
change_behind_a_replaced_object_is_seen(void **state)
{
	struct world *w = *state;
	char none[8], before[65], after[65];

	repo_engine(w->engine);
	repo_git(w->engine, before, sizeof before, "rev-parse", "HEAD:ggml/a.c");
	repo_write(w->engine, "ggml/a.c", "int b;\n", 0644);
	repo_git(w->engine, after, sizeof after, "hash-object", "-w", "ggml/a.c");
	repo_git(w->engine, none, sizeof none, "replace", before, after);
	get(w);
	assert_true(w->info.dirty);
}

/* The repository around a folder whose own .git is none speaks of other files. */
static void
change_behind_an_empty_repository_is_seen(void **state)
{
	struct world *w = *state;
	char inner[600];

	repo_engine(w->engine);
	snprintf(inner, sizeof inner, "%s/build-x", w->engine);
	repo_write(inner, "CMakeLists.txt", "project(x)\n", 0644);
	repo_write(inner, "ggml/a.c", "int b;\n", 0644);
	repo_write(inner, "include/llama.h", "\n", 0644);
	snprintf(inner, sizeof inner, "%s/build-x/.git", w->engine);
	assert_int_equal(mkdir(inner, 0755), 0);
	snprintf(inner, sizeof inner, "%s/build-x", w->engine);
	w->ask.spec = inner;
	if (source_get(&w->ask, w->log, &w->info, &w->why, &w->e) == 0)
		assert_true(w->info.dirty);
}

static void
links_scripts_folders_and_foreign_line_ends_are_no_change(void **state)
{
	struct world *w = *state;
	char none[8], path[400];

	repo_engine(w->engine);
	repo_write(w->engine, "ggml-x/a.c", "int a;\n", 0644);
	repo_write(w->engine, "ggml.h", "int a;\n", 0644);
	repo_write(w->engine, "a/b/c/d.sh", "exit\n", 0755);
	repo_write(w->engine, "win.bat", "exit\r\n", 0644);
	repo_write(w->engine, "raw.txt", "exit\r\n", 0644);
	repo_write(w->engine, ".gitattributes", "*.bat text eol=crlf\n", 0644);
	snprintf(path, sizeof path, "%s/link", w->engine);
	assert_int_equal(symlink("a/b", path), 0);
	repo_git(w->engine, none, sizeof none, "add", "-A");
	repo_git(w->engine, none, sizeof none, "commit", "-q", "-m", "more");
	get(w);
	assert_false(w->info.dirty);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(change_behind_a_filter_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(change_behind_another_work_tree_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(change_behind_a_replaced_object_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(change_behind_an_empty_repository_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(links_scripts_folders_and_foreign_line_ends_are_no_change,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
