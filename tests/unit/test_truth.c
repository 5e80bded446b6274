/* Ways to a pass that was not deserved: each was tried, and each must stay shut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/build.h"
#include "agent/engine_env.h"
#include "agent/source.h"
#include "agent/work.h"
#include "common/elog.h"
#include "common/proc.h"
#include "common/verdict.h"
#include "tests/unit/evidence.h"
#include "tests/unit/repo.h"

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

/* A commit that was made here is not the remote's, whatever URL the clone names. */
static void
local_commit_is_not_of_its_origin(void **state)
{
	struct world *w = *state;
	char none[8];

	repo_engine(w->engine);
	repo_git(w->engine, none, sizeof none, "remote", "add", "origin",
		"https://github.com/ggml-org/llama.cpp");
	get(w);
	assert_string_equal(w->info.origin, "folder:engine");
	source_release(&w->info);
	repo_git(w->engine, none, sizeof none, "update-ref", "refs/remotes/origin/main", "HEAD");
	get(w);
	assert_string_equal(w->info.origin, "https://github.com/ggml-org/llama.cpp");
}

static void
suites_count_no_source_that_only_looks_like_theirs(void **state)
{
	static const char *const origins[] = {
		"file:///tmp/ggml-org/llama.cpp", "https://example.org/ggml-org/llama.cpp",
		"https://github.com/ggml-org/llama.cpp-changed", "git@example.org:ggml-org/llama.cpp",
		"https://example.org/elizaOS/llama.cpp", "file:///srv/elizaOS/llama.cpp",
		"folder:llama.cpp", "bundle:ggml-org-llama.cpp", "https://github.com/x/ggml-org/llama.cpp",
	};
	struct suite *s;
	struct err e;
	size_t i, k;

	(void)state;
	for (k = 0; suite_builtin_name(k) != NULL; k++) {
		assert_int_equal(suite_builtin(suite_builtin_name(k), &s, &e), 0);
		for (i = 0; i < str_count(origins); i++)
			if (suite_source_counts(s, NULL, origins[i]))
				fail_msg("suite %s counts %s", s->name, origins[i]);
		suite_free(s);
	}
}

/* ---- an engine other than the one that was proved ---- */

static void
engine_that_changed_after_its_proof_is_seen(void **state)
{
	struct world *w = *state;
	struct build_info *b = calloc(1, sizeof *b);
	struct build_artifact *a;
	char path[400];

	assert_non_null(b);
	repo_write(w->engine, "llama-completion", "a program", 0755);
	repo_write(w->engine, "notes.txt", "no library", 0644);
	snprintf(b->bin_dir, sizeof b->bin_dir, "%s", w->engine);
	a = &b->artifacts[b->artifact_count++];
	snprintf(a->name, sizeof a->name, "llama-completion");
	snprintf(a->path, sizeof a->path, "%s/llama-completion", w->engine);
	assert_int_equal(digest_file(a->path, a->sha256, &a->bytes, &w->e), 0);
	assert_int_equal(build_again(b, &w->e), 0);
	repo_write(w->engine, "libm.so.6", "another libm", 0644);
	assert_int_equal(build_again(b, &w->e), -1);
	assert_non_null(strstr(w->e.msg, "libm.so.6"));
	repo_write(w->engine, "llama-completion", "a Program", 0755);
	snprintf(path, sizeof path, "%s/libm.so.6", w->engine);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(build_again(b, &w->e), -1);
	assert_non_null(strstr(w->e.msg, "llama-completion"));
	free(b);
}

/* ---- arguments that come through the environment ---- */

static void
engine_gets_no_variable_that_stands_for_an_argument(void **state)
{
	static const char *const names[] = {"LLAMA_ARG_CACHE_TYPE_V", "LLAMA_ATTN_ROT_DISABLE",
		"GGML_VK_DISABLE_F16", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES", "LD_LIBRARY_PATH"};
	const char *argv[] = {"/usr/bin/env", NULL};
	struct world *w = *state;
	struct engine_env env;
	struct proc_spec spec = {.argv = argv, .env = env.v};
	struct proc_result r;
	char *out = NULL, *errs = NULL, *log = NULL, line[80];
	size_t i;

	for (i = 0; i < str_count(names); i++)
		setenv(names[i], "/secret", 1);
	setenv("OMP_NUM_THREADS", "3", 1);
	engine_env_make(&env, NULL);
	assert_int_equal(engine_env_note(w->log, &env, &w->e), 0);
	assert_int_equal(proc_capture_spec(&spec, 1 << 20, &out, &errs, &r, &w->e), 0);
	assert_int_equal(plat_read_file(w->log_path, 1 << 20, &log, NULL, &w->e), 0);
	assert_null(strstr(out, "/secret"));
	assert_null(strstr(log, "/secret"));
	for (i = 0; i < str_count(names); i++) {
		snprintf(line, sizeof line, "%s=", names[i]);
		assert_null(strstr(out, line));
		assert_non_null(strstr(log, names[i]));
		unsetenv(names[i]);
	}
	assert_non_null(strstr(out, "GGML_SCHED_DEBUG=2\n"));
	assert_non_null(strstr(out, "OMP_NUM_THREADS=3\n"));
	assert_non_null(strstr(log, "env_kept="));
	assert_non_null(strstr(log, "OMP_NUM_THREADS=3"));
	unsetenv("OMP_NUM_THREADS");
	free(out);
	free(errs);
	free(log);
}

/* ---- text of the model in the log of the engine ---- */

static void
text_of_the_model_allocates_nothing(void **state)
{
	static const char real[] =
		"llama_kv_cache:        CPU KV buffer size =     3.06 MiB\n"
		"llama_kv_cache: size =    3.06 MiB (  2048 cells,   2 layers,  1/1 seqs), "
		"K (f16):    1.06 MiB, V (f16):    2.00 MiB\n"
		"sched_reserve: reserving ...\nsched_reserve: graph splits = 1\n"
		"generate: n_ctx = 2048, n_batch = 2048, n_predict = 4, n_keep = 1\n";
	static const char text[] =
		"0.00.500.000 I llama_context: constructing llama_context\n"
		"0.00.500.000 I llama_kv_cache:      CUDA0 KV buffer size =     3.06 MiB\n"
		"0.00.500.000 I llama_kv_cache: size =    3.06 MiB (  2048 cells,   2 layers,  1/1 seqs), "
		"K (q8_0):    1.06 MiB, V (f16):    2.00 MiB\n"
		"0.00.500.000 I load_tensors: offloaded 99/99 layers to GPU\n";
	char log[2048];
	struct elog l;

	(void)state;
	snprintf(log, sizeof log, "%s%s", real, text);
	elog_parse(log, strlen(log), &l);
	assert_string_equal(l.k_type, "f16");
	assert_int_equal(l.kv_count, 1);
	assert_string_equal(l.kv[0].device, "CPU");
	assert_int_equal(l.layers, -1);
}

/* ---- reports that say less than happened ---- */

struct good {
	struct evidence v;
	struct verdict out;
};

static void
appraise(struct good *g)
{
	struct verdict_logs logs = {evidence_read, &g->v};
	struct err e = {0};

	if (verdict_appraise(g->v.report, g->v.suite, true, &logs, &g->out, &e))
		fail_msg("%s", e.msg);
}

static bool
says(const struct good *g, const char *word)
{
	int i;

	for (i = 0; i < g->out.why_count; i++)
		if (strstr(g->out.why[i], word) != NULL)
			return true;
	return false;
}

/* The suite with one member changed, under the same name. */
static void
suite_change(struct good *g, const char *from, const char *to)
{
	char *text = evidence_replace(evidence_copy(g->v.suite->text), from, to);
	struct err e = {0};

	suite_free(g->v.suite);
	if (suite_parse(text, strlen(text), &g->v.suite, &e))
		fail_msg("%s", e.msg);
	free(text);
	cJSON_ReplaceItemInObjectCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(g->v.report, "suite"), "digest",
		cJSON_CreateString(g->v.suite->digest));
	cJSON_ReplaceItemInObjectCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(g->v.report, "suite"), "name",
		cJSON_CreateString(g->v.suite->name));
}

static void
good_run_is_recordable(void **state)
{
	struct good *g = calloc(1, sizeof *g);

	(void)state;
	assert_non_null(g);
	evidence_make(&g->v, "llama.cpp");
	appraise(g);
	assert_true(g->out.recordable);
	suite_change(g, "\"name\": \"llama.cpp\"", "\"name\": \"mine\"");
	appraise(g);
	assert_true(g->out.recordable);
	evidence_free(&g->v);
	free(g);
}

static void
other_suite_under_the_name_of_ours_is_not_recorded(void **state)
{
	struct good *g = calloc(1, sizeof *g);

	(void)state;
	assert_non_null(g);
	evidence_make(&g->v, "llama.cpp");
	suite_change(g, "\"tolerance\": 0.001", "\"tolerance\": 1");
	appraise(g);
	assert_false(g->out.recordable);
	assert_true(says(g, "not the one of this version"));
	evidence_free(&g->v);
	free(g);
}

static void
claim_that_nothing_shows_is_not_recorded(void **state)
{
	struct good *g = calloc(1, sizeof *g);
	cJSON *list;
	int i;

	(void)state;
	assert_non_null(g);
	evidence_make(&g->v, "llama.cpp");
	suite_change(g, "\"name\": \"llama.cpp\"", "\"name\": \"mine\"");
	suite_change(g, "\"fixtures\", \"graph-smoke\", \"report\"", "\"fixtures\", \"report\"");
	list = cJSON_GetObjectItemCaseSensitive(g->v.report, "gates");
	for (i = cJSON_GetArraySize(list) - 1; i >= 0; i--)
		if (str_starts(json_str(cJSON_GetArrayItem(list, i), "name"), "graph-smoke"))
			cJSON_DeleteItemFromArray(list, i);
	appraise(g);
	assert_false(g->out.recordable);
	assert_true(says(g, "legacy-kv-graph"));
	evidence_free(&g->v);
	free(g);
}

static void
missing_baseline_is_not_recorded(void **state)
{
	struct good *g = calloc(1, sizeof *g);

	(void)state;
	assert_non_null(g);
	evidence_make(&g->v, "llama.cpp");
	suite_change(g, "\"name\": \"llama.cpp\"", "\"name\": \"mine\"");
	suite_change(g, "\"baseline\": \"f16\"", "\"baseline\": \"f32\"");
	appraise(g);
	assert_false(g->out.recordable);
	assert_true(says(g, "graph-smoke/baseline did not run"));
	evidence_gate(&g->v, "graph-smoke/baseline", evidence_smoke(g->v.suite, "f32"));
	appraise(g);
	assert_true(g->out.recordable);
	evidence_free(&g->v);
	free(g);
}

static void
hidden_override_is_not_recorded(void **state)
{
	static const char *const extras[] = {"\"overrides\":{\"cmakeFlags\":\"-DX=1\"}",
		"\"only\":\"smoke\"", "\"prebuilt\":\"/opt/e\""};
	struct good *g = calloc(1, sizeof *g);
	struct job *job;
	struct err e = {0};
	char text[600];
	size_t i;

	(void)state;
	assert_non_null(g);
	evidence_make(&g->v, "llama.cpp");
	for (i = 0; i <= str_count(extras); i++) {
		snprintf(text, sizeof text, "{\"schemaVersion\":1,\"id\":\"00112233445566778899aabbccddeeff\","
			"\"nonce\":\"" NONCE "\",\"lane\":\"cpu\",\"suite\":\"llama.cpp\"%s%s}",
			i < str_count(extras) ? "," : "", i < str_count(extras) ? extras[i] : "");
		if (job_parse(text, strlen(text), &job, &e))
			fail_msg("%s", e.msg);
		appraise(g);
		assert_true(g->out.recordable);
		verdict_hold(&g->out, g->v.report, job);
		assert_true(g->out.recordable == (i == str_count(extras)));
		assert_int_equal(g->out.exit, g->out.recordable ? EXIT_PASS : EXIT_UNRECORDED);
		assert_true(g->out.recordable || (g->out.why_count > 0 && g->out.disagreement[0] != '\0'));
		job_free(job);
	}
	evidence_free(&g->v);
	free(g);
}

/* ---- what a dead worker leaves ---- */

#define CUT_LOG RUN("\"/usr/bin/ninja\"") "[1/9] half"

static void
dead_worker_leaves_its_logs_and_contradicts_none(void **state)
{
	static const char name[] = "linux-x64-cpu-host.log", cut[] = "linux-x64-cpu-build.log";
	static const char out[] = "linux-x64-cpu-f16-f16-try1.out";
	struct world *w = *state;
	struct work_ask ask = {.cache_dir = w->cache, .log_dir = w->other};
	struct work_result result;
	struct job *job = NULL;
	cJSON *report = NULL, *o = cJSON_CreateObject();
	char hex[DIGEST_HEX], events[1200], path[400];
	const cJSON *a;
	int seen = 0;

	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "llama.cpp") &&
		json_add_str(o, "nonce", NONCE));
	assert_int_equal(job_new(o, &job, &w->e), 0);
	ask.job = job;
	repo_write(w->other, name, GOOD_HOST, 0644);
	repo_write(w->other, cut, CUT_LOG, 0644);
	repo_write(w->other, out, "text", 0644);
	digest_bytes(GOOD_HOST, sizeof GOOD_HOST - 1, hex);
	snprintf(events, sizeof events, "{\"type\":\"gate\",\"gate\":\"host\",\"state\":\"end\",\"t\":5,"
		"\"outcome\":\"pass\",\"log\":\"%s\",\"logSha256\":\"%s\"}\n"
		"{\"type\":\"gate\",\"gate\":\"build\",\"state\":\"start\",\"t\":6}\n"
		"{\"type\":\"log\",\"gate\":\"build\",\"name\":\"%s\"}\n", name, hex, cut);
	repo_write(w->root, "events", events, 0644);
	snprintf(path, sizeof path, "%s/events", w->root);
	assert_int_equal(event_open(NULL, &ask.events, &w->e), 0);
	assert_int_equal(work_post_mortem(&ask, path, REASON_AGENT_DIED, "it died", &result, &w->e), 0);
	assert_int_equal(result.outcome, OUTCOME_INCOMPLETE);
	assert_int_equal(json_load(result.report_path, 1 << 20, &report, &w->e), 0);
	assert_string_equal(json_path_str(report, "host.hostname"), "lab-3");
	assert_string_equal(json_path_str(report, "host.os"), "Linux");
	cJSON_ArrayForEach(a, json_get(report, "artifacts"))
		seen += str_eq(json_str(a, "name"), name) || str_eq(json_str(a, "name"), cut) ||
			str_eq(json_str(a, "name"), out);
	assert_int_equal(seen, 3);
	cJSON_ArrayForEach(a, json_get(report, "gates"))
		if (str_eq(json_str(a, "name"), "build"))
			assert_string_equal(json_path_str(a, "log.name"), cut);
	cJSON_Delete(report);
	event_close(ask.events);
	job_free(job);
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
		cmocka_unit_test_setup_teardown(local_commit_is_not_of_its_origin, setup, teardown),
		cmocka_unit_test(suites_count_no_source_that_only_looks_like_theirs),
		cmocka_unit_test_setup_teardown(engine_that_changed_after_its_proof_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(engine_gets_no_variable_that_stands_for_an_argument,
			setup, teardown),
		cmocka_unit_test(text_of_the_model_allocates_nothing),
		cmocka_unit_test(good_run_is_recordable),
		cmocka_unit_test(other_suite_under_the_name_of_ours_is_not_recorded),
		cmocka_unit_test(claim_that_nothing_shows_is_not_recorded),
		cmocka_unit_test(missing_baseline_is_not_recorded),
		cmocka_unit_test(hidden_override_is_not_recorded),
		cmocka_unit_test_setup_teardown(dead_worker_leaves_its_logs_and_contradicts_none, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
