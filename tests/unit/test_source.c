#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/source.h"
#include "agent/git.h"
#include "agent/treeid.h"
#include "common/str.h"
#include "tests/unit/repo.h"

#define NONCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct world {
	char root[256], engine[300], cache[300], log_path[300];
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
	snprintf(w->engine, sizeof w->engine, "%s/my engine", w->root);
	snprintf(w->cache, sizeof w->cache, "%s/cache", w->root);
	snprintf(w->log_path, sizeof w->log_path, "%s/log", w->root);
	assert_int_equal(mkdir(w->engine, 0755), 0);
	assert_int_equal(transcript_open(w->log_path, NONCE, 1 << 20, &w->log, &w->e), 0);
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
refused(struct world *w, enum reason why)
{
	assert_int_equal(source_get(&w->ask, w->log, &w->info, &w->why, &w->e), -1);
	assert_string_equal(reason_name(w->why), reason_name(why));
	assert_true(w->e.msg[0] != '\0');
}

static void
clean_git_folder_is_named_by_its_commit(void **state)
{
	struct world *w = *state;
	char commit[65], tree[65], none[8];

	repo_engine(w->engine);
	repo_git(w->engine, none, sizeof none, "tag", "v9");
	repo_git(w->engine, none, sizeof none, "remote", "add", "origin",
		"https://user:secret@example.org/ggml-org/llama.cpp?token=1");
	repo_git(w->engine, commit, sizeof commit, "rev-parse", "HEAD");
	repo_git(w->engine, tree, sizeof tree, "rev-parse", "HEAD^{tree}");
	get(w);
	assert_string_equal(w->info.kind, "folder");
	assert_true(w->info.is_git);
	assert_string_equal(w->info.commit, commit);
	assert_string_equal(w->info.tree, tree);
	assert_string_equal(w->info.describe, "v9");
	assert_string_equal(w->info.origin, "https://example.org/ggml-org/llama.cpp");
	assert_false(w->info.dirty);
	assert_string_equal(w->info.dirty_digest, "");
	assert_string_equal(w->info.path, w->engine);
}

static void
plain_folder_has_the_tree_of_its_bytes(void **state)
{
	struct world *w = *state;
	char tree[65], path[400];
	struct err e;

	repo_engine(w->engine);
	repo_git(w->engine, tree, sizeof tree, "rev-parse", "HEAD^{tree}");
	snprintf(path, sizeof path, "%s/.git", w->engine);
	assert_int_equal(plat_remove_tree(path, &e), 0);
	get(w);
	assert_false(w->info.is_git);
	assert_string_equal(w->info.tree, tree);
	assert_string_equal(w->info.commit, "");
	assert_string_equal(w->info.origin, "folder:my engine");
	assert_false(w->info.dirty);
}

static void
changed_file_makes_it_dirty(void **state)
{
	struct world *w = *state;
	char first[DIGEST_HEX];

	repo_engine(w->engine);
	repo_write(w->engine, "ggml/a.c", "int b;\n", 0644);
	get(w);
	assert_true(w->info.dirty);
	assert_true(str_is_hex(w->info.dirty_digest, 64));
	memcpy(first, w->info.dirty_digest, sizeof first);
	get(w);
	assert_string_equal(w->info.dirty_digest, first);
	repo_write(w->engine, "ggml/a.c", "int c;\n", 0644);
	get(w);
	assert_string_not_equal(w->info.dirty_digest, first);
}

static void
untracked_file_makes_it_dirty_by_content(void **state)
{
	struct world *w = *state;
	char first[DIGEST_HEX];

	repo_engine(w->engine);
	repo_write(w->engine, "ggml/new.c", "1\n", 0644);
	get(w);
	assert_true(w->info.dirty);
	memcpy(first, w->info.dirty_digest, sizeof first);
	repo_write(w->engine, "ggml/new.c", "2\n", 0644);
	get(w);
	assert_string_not_equal(w->info.dirty_digest, first);
}

static void
build_folder_that_the_tree_ignores_is_clean(void **state)
{
	struct world *w = *state;

	repo_engine(w->engine);
	repo_write(w->engine, "build/x.o", "1\n", 0644);
	get(w);
	assert_false(w->info.dirty);
}

/* What only this clone hides is still part of what would be built. */
static void
hidden_changes_are_found(void **state)
{
	struct world *w = *state;
	char none[8];

	repo_engine(w->engine);
	repo_write(w->engine, ".git/info/exclude", "ggml/secret.c\n", 0644);
	repo_write(w->engine, "ggml/secret.c", "1\n", 0644);
	get(w);
	assert_true(w->info.dirty);
	repo_write(w->engine, ".git/info/exclude", "", 0644);
	repo_git(w->engine, none, sizeof none, "clean", "-fdq");
	get(w);
	assert_false(w->info.dirty);
	repo_git(w->engine, none, sizeof none, "update-index", "--assume-unchanged",
		"ggml/a.c");
	repo_write(w->engine, "ggml/a.c", "int changed;\n", 0644);
	get(w);
	assert_true(w->info.dirty);
}

static void
index_of_the_folder_is_not_written(void **state)
{
	struct world *w = *state;
	char path[400], before[DIGEST_HEX], after[DIGEST_HEX];

	repo_engine(w->engine);
	repo_write(w->engine, "ggml/a.c", "int b;\n", 0644);
	snprintf(path, sizeof path, "%s/.git/index", w->engine);
	assert_int_equal(digest_file(path, before, NULL, &w->e), 0);
	get(w);
	assert_int_equal(digest_file(path, after, NULL, &w->e), 0);
	assert_string_equal(before, after);
}

static void
source_that_changes_is_source_changed(void **state)
{
	struct world *w = *state;

	repo_engine(w->engine);
	get(w);
	assert_int_equal(source_again(&w->ask, &w->info, w->log, &w->why, &w->e), 0);
	repo_write(w->engine, "ggml/a.c", "int changed;\n", 0644);
	assert_int_equal(source_again(&w->ask, &w->info, w->log, &w->why, &w->e), -1);
	assert_int_equal(w->why, REASON_SOURCE_CHANGED);
}

static void
bundle_is_checked_out_and_named_by_its_tree(void **state)
{
	struct world *w = *state;
	char bundle[400], tree[65], none[8], hex[DIGEST_HEX], path[SOURCE_PATH];

	repo_engine(w->engine);
	snprintf(bundle, sizeof bundle, "%s/git Release.bundle", w->root);
	repo_git(w->engine, none, sizeof none, "bundle", "create", "-q", bundle, "HEAD");
	repo_git(w->engine, tree, sizeof tree, "rev-parse", "HEAD^{tree}");
	assert_int_equal(digest_file(bundle, hex, NULL, &w->e), 0);
	w->ask.spec = bundle;
	w->ask.bundle_sha256 = hex;
	w->ask.tree = tree;
	get(w);
	assert_string_equal(w->info.kind, "bundle");
	assert_string_equal(w->info.origin, "bundle:git Release.bundle");
	assert_string_equal(w->info.tree, tree);
	assert_string_equal(w->info.bundle_sha256, hex);
	assert_false(w->info.dirty);
	assert_true(source_is_engine(w->info.path));
	/* Again: the same folder, put right when somebody wrote into it. */
	memcpy(path, w->info.path, sizeof path);
	source_release(&w->info);
	repo_write(path, "ggml/a.c", "int evil;\n", 0644);
	repo_write(path, "ggml/b.c", "int evil;\n", 0644);
	get(w);
	assert_string_equal(w->info.path, path);
	assert_false(w->info.dirty);
}

static void
other_bundle_than_the_pinned_one_is_refused(void **state)
{
	struct world *w = *state;
	char bundle[400], none[8];

	repo_engine(w->engine);
	snprintf(bundle, sizeof bundle, "%s/x.bundle", w->root);
	repo_git(w->engine, none, sizeof none, "bundle", "create", "-q", bundle, "HEAD");
	w->ask.spec = bundle;
	w->ask.bundle_sha256 = "ff00000000000000000000000000000000000000000000000000000000000000";
	refused(w, REASON_SOURCE_DIGEST);
	w->ask.bundle_sha256 = NULL;
	w->ask.tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4";
	refused(w, REASON_SOURCE_DIGEST);
}

static void
damaged_bundle_is_source_fetch(void **state)
{
	struct world *w = *state;
	char bundle[400], none[8];
	struct stat st;

	repo_engine(w->engine);
	snprintf(bundle, sizeof bundle, "%s/x.bundle", w->root);
	repo_git(w->engine, none, sizeof none, "bundle", "create", "-q", bundle, "HEAD");
	assert_int_equal(stat(bundle, &st), 0);
	assert_int_equal(truncate(bundle, st.st_size - 30), 0);
	w->ask.spec = bundle;
	refused(w, REASON_SOURCE_FETCH);
}

static void
file_that_is_no_bundle_is_not_an_engine(void **state)
{
	struct world *w = *state;
	char path[400];

	repo_write(w->root, "x.tar", "not a bundle at all\n", 0644);
	snprintf(path, sizeof path, "%s/x.tar", w->root);
	w->ask.spec = path;
	refused(w, REASON_SOURCE_NOT_ENGINE);
}

static void
url_follows_branches_tags_and_commits(void **state)
{
	struct world *w = *state;
	char url[400], first[65], second[65], none[8];

	repo_engine(w->engine);
	repo_git(w->engine, first, sizeof first, "rev-parse", "HEAD");
	repo_git(w->engine, none, sizeof none, "tag", "v1");
	snprintf(url, sizeof url, "file://%s", w->engine);
	w->ask.spec = url;
	get(w);
	assert_string_equal(w->info.kind, "git-url");
	assert_string_equal(w->info.origin, url);
	assert_string_equal(w->info.commit, first);
	assert_string_equal(w->info.describe, "v1");
	source_release(&w->info);

	repo_write(w->engine, "ggml/a.c", "int second;\n", 0644);
	repo_git(w->engine, none, sizeof none, "commit", "-qam", "second");
	repo_git(w->engine, second, sizeof second, "rev-parse", "HEAD");
	get(w);
	assert_string_equal(w->info.commit, second);
	source_release(&w->info);
	w->ask.ref = "v1";
	get(w);
	assert_string_equal(w->info.commit, first);
	source_release(&w->info);
	w->ask.ref = "main";
	get(w);
	assert_string_equal(w->info.commit, second);
	source_release(&w->info);

	/* A commit that is here needs no network. */
	repo_remove(w->engine);
	w->ask.ref = first;
	get(w);
	assert_string_equal(w->info.commit, first);
	source_release(&w->info);
	w->ask.ref = "main";
	refused(w, REASON_SOURCE_FETCH);
}

static void
unknown_ref_is_source_fetch(void **state)
{
	struct world *w = *state;
	char url[400];

	repo_engine(w->engine);
	snprintf(url, sizeof url, "file://%s", w->engine);
	w->ask.spec = url;
	w->ask.ref = "no-such-branch";
	refused(w, REASON_SOURCE_FETCH);
	w->ask.ref = "--upload-pack=touch /tmp/x";
	refused(w, REASON_SOURCE_FETCH);
}

static void
password_of_a_url_is_in_no_log(void **state)
{
	struct world *w = *state;
	char *text;
	size_t n;

	/* A port that nothing listens on. */
	w->ask.spec = "https://joe:hunter22@127.0.0.1:9/x.git";
	refused(w, REASON_SOURCE_FETCH);
	assert_string_equal(w->info.origin, "https://127.0.0.1:9/x.git");
	assert_int_equal(plat_read_file(w->log_path, 1 << 20, &text, &n, &w->e), 0);
	assert_non_null(strstr(text, "127.0.0.1:9"));
	assert_null(strstr(text, "hunter22"));
	assert_null(strstr(w->e.msg, "hunter22"));
	free(text);
}

static void
folder_at_another_commit_than_asked_is_refused(void **state)
{
	struct world *w = *state;
	char none[8];

	repo_engine(w->engine);
	repo_git(w->engine, none, sizeof none, "tag", "v1");
	w->ask.ref = "v1";
	get(w);
	repo_write(w->engine, "ggml/a.c", "int second;\n", 0644);
	repo_git(w->engine, none, sizeof none, "commit", "-qam", "second");
	refused(w, REASON_SOURCE_DIGEST);
}

static void
missing_source_is_source_missing(void **state)
{
	struct world *w = *state;
	char path[400];

	snprintf(path, sizeof path, "%s/none", w->root);
	w->ask.spec = path;
	refused(w, REASON_SOURCE_MISSING);
	snprintf(path, sizeof path, "%s/fifo", w->root);
	assert_int_equal(mkfifo(path, 0644), 0);
	refused(w, REASON_SOURCE_MISSING);
	w->ask.spec = "";
	refused(w, REASON_SOURCE_NOT_GIVEN);
	w->ask.spec = NULL;
	refused(w, REASON_SOURCE_NOT_GIVEN);
}

static void
folder_without_cmakelists_is_not_an_engine(void **state)
{
	struct world *w = *state;
	char path[400];

	repo_engine(w->engine);
	snprintf(path, sizeof path, "%s/CMakeLists.txt", w->engine);
	assert_int_equal(unlink(path), 0);
	refused(w, REASON_SOURCE_NOT_ENGINE);
}

static int
stop(void *arg)
{
	(void)arg;
	return 1;
}

static void
cancelling_is_said(void **state)
{
	struct world *w = *state;
	char path[400];
	struct err e;

	repo_engine(w->engine);
	snprintf(path, sizeof path, "%s/.git", w->engine);
	assert_int_equal(plat_remove_tree(path, &e), 0);
	w->ask.tick = stop;
	refused(w, REASON_CANCELLED);
}

static void
urls_are_told_from_paths(void **state)
{
	(void)state;
	assert_true(git_is_url("https://github.com/ggml-org/llama.cpp"));
	assert_true(git_is_url("git@github.com:ggml-org/llama.cpp.git"));
	assert_true(git_is_url("ssh://git@host:22/x"));
	assert_true(git_is_url("file:///x"));
	assert_false(git_is_url("/srv/a@b:c"));
	assert_false(git_is_url("ext::sh -c date"));
	assert_false(git_is_url("ssh://-oProxyCommand=date/x"));
	assert_false(git_is_url("git@-oProxyCommand=x:y"));
	assert_false(git_is_url("http://example.org/x"));
	assert_false(git_is_url("-x@y:z"));
}

static void
secrets_leave_a_url(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"https://u:p@h/x", "https://h/x"},
		{"https://token@h/x?a=b#c", "https://h/x"},
		{"https://h/a@b", "https://h/a@b"},
		{"https://u:p@q@h/x", "https://h/x"},
		{"ssh://git:p@h:22/x", "ssh://git@h:22/x"},
		{"ssh://git@h/x", "ssh://git@h/x"},
		{"git@h:x/y", "git@h:x/y"},
	};
	char out[128];
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_int_equal(git_clean_url(rows[i].in, out, sizeof out, &e), 0);
		assert_string_equal(out, rows[i].out);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(clean_git_folder_is_named_by_its_commit),
		T(plain_folder_has_the_tree_of_its_bytes),
		T(changed_file_makes_it_dirty),
		T(untracked_file_makes_it_dirty_by_content),
		T(build_folder_that_the_tree_ignores_is_clean),
		T(hidden_changes_are_found),
		T(index_of_the_folder_is_not_written),
		T(source_that_changes_is_source_changed),
		T(bundle_is_checked_out_and_named_by_its_tree),
		T(other_bundle_than_the_pinned_one_is_refused),
		T(damaged_bundle_is_source_fetch),
		T(file_that_is_no_bundle_is_not_an_engine),
		T(url_follows_branches_tags_and_commits),
		T(unknown_ref_is_source_fetch),
		T(password_of_a_url_is_in_no_log),
		T(folder_at_another_commit_than_asked_is_refused),
		T(missing_source_is_source_missing),
		T(folder_without_cmakelists_is_not_an_engine),
		T(cancelling_is_said),
		cmocka_unit_test(urls_are_told_from_paths),
		cmocka_unit_test(secrets_leave_a_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
