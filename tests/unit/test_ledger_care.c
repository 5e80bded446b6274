/* The file of the ledger: append-only, shared, killed, full, damaged, foreign, newer.
 */
#include "tests/unit/ledger_help.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "controller/ledger_db.h"

static const struct ledger_gate one_gate = {"host", NULL, "pass", "none", NULL,
					    NULL,   JUNE, JUNE,	  D1};
static const struct ledger_fixture one_fixture = {"turbo3", D2, 1,     0,     0,
						  0,	    0,	0.001, "pass"};
static const struct ledger_smoke one_smoke = {
	"q8_0", "q8_0", "q8_0", "llama-completion", "CPU", 4, 4, D1, 0, "pass", "none"};
static const struct ledger_artifact one_artifact = {"host.log", 3, D1, false};
static const struct ledger_code one_code = {
	"cpu", "a processor", "x86-64 avx2", "verify-agent", D2, "avx2 by gcc"};

/* A ledger with one run and a row in every table, closed again. */
static void
ledger_with_all_tables(void)
{
	struct ledger_run r = run_of(ID("a"), "pass", true);
	struct ledger *l = opened();

	r.gates = &one_gate, r.gate_count = 1;
	r.fixtures = &one_fixture, r.fixture_count = 1;
	r.smokes = &one_smoke, r.smoke_count = 1;
	r.artifacts = &one_artifact, r.artifact_count = 1;
	r.code = &one_code, r.code_count = 1;
	add(l, &r);
	check_is_clean(l);
	ledger_close(l);
}

static const char *const tables[] = {"hosts",	  "device_classes", "runs",
				     "gates",	  "fixtures",	    "smokes",
				     "artifacts", "entries",	    "code"};

/* ---- append-only ---- */

static void
no_table_lets_a_row_change_or_go(void **state)
{
	char sql[200];
	size_t i;

	(void)state;
	ledger_with_all_tables();
	for (i = 0; i < str_count(tables); i++) {
		const char *column = i < 2    ? "first_ms"
				     : i == 2 ? "appended_ms"
				     : i == 7 ? "created_ms"
					      : "n";

		snprintf(sql, sizeof sql, "UPDATE %s SET %s = %s", tables[i], column,
			 column);
		foreign_refused("", sql);
		snprintf(sql, sizeof sql, "DELETE FROM %s", tables[i]);
		foreign_refused("", sql);
	}
	for (i = 0; i < str_count(tables); i++) {
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", tables[i]);
		view_says(sql, "1");
	}
}

static const char *const replacements[] = {
	"INSERT OR REPLACE INTO hosts (id, name, first_ms) VALUES (1, 'x', 1)",
	"INSERT OR REPLACE INTO hosts (name, first_ms) VALUES ('gh200-lab-3', 1)",
	"INSERT OR REPLACE INTO device_classes (id, name, target, first_ms)"
	" VALUES (1, 'a/b', 'a', 1)",
	"INSERT OR REPLACE INTO device_classes (name, target, first_ms)"
	" VALUES ('" CLASS "', 'linux-x64-cuda', 1)",
	"INSERT OR REPLACE INTO runs (seq, host_id, run_id, outcome, reason, "
	"recordable,"
	" appended_ms, lane, target, suite, model_synthetic, controller_version,"
	" agent_recordable) SELECT seq, host_id, run_id, 'fail', reason, 0, 1, lane, "
	"target,"
	" suite, 0, '0', 0 FROM runs",
	"INSERT OR REPLACE INTO runs (seq, host_id, run_id, outcome, reason, "
	"recordable,"
	" appended_ms, lane, target, suite, model_synthetic, controller_version,"
	" agent_recordable) SELECT 2, host_id, run_id, 'fail', reason, 0, 1, lane, "
	"target,"
	" suite, 0, '0', 0 FROM runs",
	"INSERT OR REPLACE INTO gates (run, n, name, outcome, reason)"
	" VALUES (1, 1, 'host', 'fail', 'none')",
	"INSERT OR REPLACE INTO fixtures (run, n, name, outcome) VALUES (1, 1, 'x', "
	"'pass')",
	"INSERT OR REPLACE INTO smokes (run, n, family, outcome, reason)"
	" VALUES (1, 1, 'x', 'pass', 'none')",
	"INSERT OR REPLACE INTO artifacts (run, n, name, truncated) VALUES (1, 1, 'x', "
	"0)",
	"INSERT OR REPLACE INTO code (run, n, backend, name) VALUES (1, 1, 'x', 'x')",
	"INSERT OR REPLACE INTO entries (seq, kind, leaf_hash, created_ms)"
	" VALUES (1, 'run', '" D1 "', 1)",
};

static void
insert_or_replace_is_refused_whatever_the_pragmas(void **state)
{
	struct ledger *l;
	size_t i;

	(void)state;
	ledger_with_all_tables();
	for (i = 0; i < str_count(replacements); i++) {
		foreign_refused("PRAGMA recursive_triggers = on", replacements[i]);
		foreign_refused(
			"PRAGMA recursive_triggers = off; PRAGMA foreign_keys = off",
			replacements[i]);
	}
	l = opened();
	check_is_clean(l);
	ledger_close(l);
}

static void
nothing_is_added_to_a_sealed_run(void **state)
{
	static const char *const late[] = {
		"INSERT INTO gates (run, n, name, outcome, reason)"
		" VALUES (1, 2, 'build', 'pass', 'none')",
		"INSERT INTO fixtures (run, n, name, outcome) VALUES (1, 2, 'x', "
		"'pass')",
		"INSERT INTO smokes (run, n, family, outcome, reason)"
		" VALUES (1, 2, 'x', 'pass', 'none')",
		"INSERT INTO artifacts (run, n, name, truncated) VALUES (1, 2, 'x', 0)",
		"INSERT INTO code (run, n, backend, name) VALUES (1, 2, 'x', 'x')",
	};
	size_t i;

	(void)state;
	ledger_with_all_tables();
	for (i = 0; i < str_count(late); i++)
		foreign_refused("", late[i]);
}

static void
a_run_without_its_entry_can_not_be_committed(void **state)
{
	static const char run[] =
		"INSERT INTO runs (seq, host_id, run_id, outcome, reason, recordable,"
		" appended_ms, lane, target, suite, model_synthetic, "
		"controller_version,"
		" agent_recordable) VALUES (2, 1, '" ID(
			"b") "', 'fail', 'none', 0, 1, 'cpu',"
			     " 'linux-x64-cpu', 's', 0, '0', 0)";

	(void)state;
	ledger_with_all_tables();
	foreign_refused("PRAGMA foreign_keys = on", run);
	/* nor an entry out of order, or without its run */
	foreign_refused("", "INSERT INTO entries (seq, kind, leaf_hash, created_ms)"
			    " VALUES (3, 'run', '" D1 "', 1)");
	foreign_refused("", "INSERT INTO entries (seq, kind, leaf_hash, created_ms)"
			    " VALUES (2, 'run', '" D1 "', 1)");
	/* where foreign keys are off, the check finds it */
	foreign_do(run);
	check_finds("run " ID("b") " has no entry");
}

/* ---- what the check finds ---- */

static void
open_refuses(enum err_code code, const char *words)
{
	struct ledger *l = NULL;
	struct err e = {0};

	assert_int_equal(ledger_open(path, 0, NULL, &l, &e), -1);
	assert_null(l);
	assert_int_equal(e.code, code);
	if (strstr(e.msg, words) == NULL)
		fail_msg("wanted \"%s\" in: %s", words, e.msg);
	assert_true(e.hint[0] != '\0');
}

static void
a_dropped_trigger_is_found(void **state)
{
	(void)state;
	ledger_with_all_tables();
	foreign_do("DROP TRIGGER runs_no_delete");
	check_finds("the trigger runs_no_delete is missing");
	open_refuses(ERR_INTEGRITY, "the trigger runs_no_delete is missing");
}

static void
a_trigger_changed_by_writable_schema_is_found(void **state)
{
	(void)state;
	ledger_with_all_tables();
	foreign_do("PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql ="
		   " replace(sql, 'append-only', 'append-happy')"
		   " WHERE name = 'gates_no_update'");
	check_finds("the trigger gates_no_update was altered");
	foreign_do("PRAGMA writable_schema = on;"
		   " DELETE FROM sqlite_schema WHERE name = 'gates_no_update'");
	check_finds("the trigger gates_no_update is missing");
	open_refuses(ERR_INTEGRITY, "gates_no_update");
}

static void
a_trigger_of_others_on_our_table_is_found_and_their_tables_are_not_minded(void **state)
{
	struct ledger *l;

	(void)state;
	ledger_with_all_tables();
	foreign_do("CREATE TABLE _replica (a); CREATE INDEX _replica_a ON _replica (a);"
		   " CREATE VIEW mine AS SELECT * FROM runs; ANALYZE");
	l = opened();
	check_is_clean(l);
	ledger_close(l);
	foreign_do("CREATE TRIGGER eat BEFORE INSERT ON gates"
		   " BEGIN SELECT raise(IGNORE); END");
	check_finds("the trigger eat does not belong to the ledger");
}

/* The rows are changed behind the triggers' back, and these put back as they were. */
static void
change_past_trigger(const char *trigger, const char *change)
{
	char sql[4000], text[2000];

	snprintf(sql, sizeof sql, "SELECT sql FROM sqlite_schema WHERE name = '%s'",
		 trigger);
	foreign_get(sql, text, sizeof text);
	snprintf(sql, sizeof sql, "DROP TRIGGER %s; %s; %s", trigger, change, text);
	foreign_do(sql);
}

static void
a_changed_row_no_longer_gives_its_leaf_hash(void **state)
{
	static const struct {
		const char *trigger, *change;
	} changes[] = {
		{"gates_no_update", "UPDATE gates SET detail = 'all is well'"},
		{"fixtures_no_update", "UPDATE fixtures SET max_abs = 1e-9"},
		{"smokes_no_update", "UPDATE smokes SET tokens_generated = 5"},
		{"artifacts_no_update", "UPDATE artifacts SET truncated = 1"},
		{"artifacts_no_delete", "DELETE FROM artifacts"},
		{"code_no_update", "UPDATE code SET digest = '" D1 "'"},
		{"code_no_delete", "DELETE FROM code"},
		{"runs_no_update", "UPDATE runs SET device_driver = '1'"},
		{"hosts_no_update", "UPDATE hosts SET name = 'elsewhere'"},
		{"entries_no_update", "UPDATE entries SET leaf_hash = '" D1 "'"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(changes); i++) {
		ledger_with_all_tables();
		change_past_trigger(changes[i].trigger, changes[i].change);
		check_finds("run " ID("a") ": its rows do not give its leaf hash");
		assert_int_equal(plat_remove_tree(dir, NULL), 0);
	}
}

static void
text_hidden_behind_a_nul_is_found(void **state)
{
	(void)state;
	ledger_with_all_tables();
	change_past_trigger("runs_no_update",
			    "UPDATE runs SET detail = detail || char(0) || 'more'");
	check_finds("detail holds a NUL character");
}

static void
a_class_state_that_does_not_follow_is_found(void **state)
{
	struct ledger_run fail = run_of(ID("b"), "fail", false);
	struct ledger *l;

	(void)state;
	ledger_with_all_tables();
	l = opened();
	add(l, &fail);
	check_is_clean(l);
	ledger_close(l);
	change_past_trigger("runs_no_update",
			    "UPDATE runs SET fixture_parity_pass = 2 WHERE seq = 2");
	check_finds("run " ID("b") " carries a state that does not follow");
}

static void
a_missing_run_and_a_gap_are_found(void **state)
{
	struct ledger_run more = run_of(ID("b"), "fail", false);
	struct ledger *l;

	(void)state;
	ledger_with_all_tables();
	l = opened();
	add(l, &more);
	ledger_close(l);
	change_past_trigger("entries_no_delete", "DELETE FROM entries WHERE seq = 1");
	check_finds("entries 1 to 1 are missing");
	check_finds("run " ID("a") " has no entry");
}

/* ---- what can not be opened ---- */

static const char *
always_nfs(const char *at)
{
	/* asked for the nearest thing that exists */
	return plat_exists(at) ? "NFS" : NULL;
}

static const char *
never(const char *at)
{
	(void)at;
	return NULL;
}

static void
a_network_file_system_is_refused_before_anything_is_made(void **state)
{
	const struct ledger_hooks nfs = {always_nfs}, local = {never};
	struct ledger *l = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(ledger_open(path, LEDGER_CREATE, &nfs, &l, &e), -1);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_non_null(strstr(e.msg, "NFS"));
	assert_true(e.hint[0] != '\0');
	assert_true(strstr(path, dir) == path);
	assert_false(plat_exists(path));
	assert_int_equal(ledger_open(path, LEDGER_CREATE, &local, &l, &e), 0);
	ledger_close(l);
	assert_int_equal(ledger_open(path, 0, &nfs, &l, &e), -1);
	assert_int_equal(e.code, ERR_REFUSED);
}

static void
a_missing_ledger_is_made_only_when_asked(void **state)
{
	struct ledger *l = NULL;
	char folder[96];
	struct stat st;

	(void)state;
	open_refuses(ERR_NOTFOUND, "ledger.db");
	l = opened();
	snprintf(folder, sizeof folder, "%s/data/verify", dir);
	assert_string_equal(ledger_path(l), path);
	assert_true(strncmp(ledger_blobs(l), folder, strlen(folder)) == 0);
	assert_string_equal(ledger_blobs(l) + strlen(folder), "/blobs");
	ledger_close(l);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(path, sizeof path, "%s", folder);
	open_refuses(ERR_USAGE, "not a file");
}

static void
a_reader_does_not_write(void **state)
{
	struct ledger_run r = run_of(ID("b"), "fail", false);
	struct ledger *l;
	struct err e = {0};

	(void)state;
	ledger_with_all_tables();
	assert_int_equal(ledger_open(path, LEDGER_READ, NULL, &l, &e), 0);
	assert_int_equal(run_count(l), 1);
	assert_int_equal(ledger_add(l, &r, NULL, &e), -1);
	assert_int_equal(run_count(l), 1);
	ledger_close(l);
}

/* The first schema knew no code.  A run that has none has the same entry in both. */
static void
an_older_ledger_is_brought_up_to_date(void **state)
{
	struct ledger_run first = run_of(ID("a"), "pass", true), more = run_of(ID("b"), "pass", true);
	struct ledger *l = opened();

	(void)state;
	add(l, &first);
	ledger_close(l);
	foreign_do("DROP TABLE code; PRAGMA user_version = 1");
	l = opened();
	check_is_clean(l);
	more.code = &one_code, more.code_count = 1;
	add(l, &more);
	check_is_clean(l);
	ledger_close(l);
	view_says("SELECT run || digest FROM code", "2" D2);
	view_says("PRAGMA user_version", "2");
}

static void
a_newer_schema_is_refused_and_left_alone(void **state)
{
	(void)state;
	ledger_with_all_tables();
	foreign_do("PRAGMA user_version = 7");
	open_refuses(ERR_UNSUPPORTED, "schema 7");
	view_says("PRAGMA user_version", "7");
}

static void
a_file_of_another_program_is_refused_and_left_alone(void **state)
{
	sqlite3 *db;

	(void)state;
	snprintf(path, sizeof path, "%s/other.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	open_refuses(ERR_CONFLICT, "another program");
	view_says("PRAGMA journal_mode", "delete");
	view_says("SELECT group_concat(name) FROM sqlite_schema", "t");
}

static void
bytes_set(long offset, int byte, size_t n)
{
	FILE *f = fopen(path, "r+");

	assert_non_null(f);
	assert_int_equal(fseek(f, offset, SEEK_SET), 0);
	while (n-- > 0)
		assert_int_not_equal(putc(byte, f), EOF);
	assert_int_equal(fclose(f), 0);
}

static void
a_damaged_file_is_an_integrity_error(void **state)
{
	struct ledger *l = NULL;
	struct err e = {0};

	(void)state;
	ledger_with_all_tables();
	bytes_set(4096, 0xaa, 4096); /* the second page */
	/* whether opening or reading meets it, it is named */
	if (ledger_open(path, LEDGER_INSPECT, NULL, &l, &e) == 0)
		assert_int_equal(ledger_check(l, NULL, NULL, &e), -1);
	ledger_close(l);
	assert_int_equal(e.code, ERR_INTEGRITY);
	bytes_set(0, 'x', 100); /* the header */
	open_refuses(ERR_INTEGRITY, "not a ledger");
}

/* ---- several programs, and ends in the middle ---- */

/* Appends n runs whose ids begin with the letter; in a child. */
static void
append_some(char letter, int n)
{
	char id[33];
	struct ledger *l = NULL;
	struct ledger_run r;
	int i;

	if (ledger_open(path, LEDGER_CREATE, NULL, &l, NULL))
		_exit(1);
	for (i = 0; i < n; i++) {
		snprintf(id, sizeof id, "%c%031d", letter, i);
		r = run_of(id, "pass", true);
		r.gates = &one_gate, r.gate_count = 1;
		if (ledger_add(l, &r, NULL, NULL))
			_exit(2);
	}
	ledger_close(l);
	_exit(0);
}

static void
programs_may_make_one_ledger_and_append_at_once(void **state)
{
	pid_t pids[4];
	struct ledger *l;
	int i, status;

	(void)state;
	for (i = 0; i < 4; i++)
		if ((pids[i] = fork()) == 0)
			append_some((char)('a' + i), 15);
	for (i = 0; i < 4; i++) {
		assert_true(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	l = opened();
	assert_int_equal(run_count(l), 60);
	check_is_clean(l);
	ledger_close(l);
	view_says("SELECT max(seq) FROM entries", "60");
}

/* Dies while the transaction is complete but not committed. */
static int
stop(void *arg)
{
	(void)arg;
	kill(getpid(), SIGKILL);
	return 1;
}

static void
append_and_die_at_commit(void)
{
	struct ledger_run r = run_of(ID("b"), "pass", true);
	struct ledger *l = NULL;

	r.gates = &one_gate, r.gate_count = 1;
	if (ledger_open(path, 0, NULL, &l, NULL))
		_exit(1);
	sqlite3_commit_hook(l->db, stop, NULL);
	if (ledger_add(l, &r, NULL, NULL))
		_exit(2);
	_exit(3);
}

static void
a_program_killed_before_the_commit_leaves_nothing_half(void **state)
{
	struct ledger_run r = run_of(ID("b"), "pass", true);
	struct ledger *l;
	int status;
	pid_t pid;

	(void)state;
	r.gates = &one_gate, r.gate_count = 1;
	ledger_with_all_tables();
	if ((pid = fork()) == 0)
		append_and_die_at_commit();
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	l = opened();
	assert_int_equal(run_count(l), 1);
	check_is_clean(l);
	add(l, &r); /* and the next one goes on */
	check_is_clean(l);
	ledger_close(l);
	view_says("SELECT count(*) FROM gates", "2");
}

static void
a_writer_that_holds_the_ledger_is_waited_for(void **state)
{
	struct ledger_run r = run_of(ID("b"), "pass", true);
	const struct timespec nap = {0, 300 * 1000 * 1000};
	struct ledger *l;
	int pipes[2], status;
	pid_t pid;
	char c;

	(void)state;
	ledger_with_all_tables();
	assert_int_equal(pipe(pipes), 0);
	if ((pid = fork()) == 0) {
		sqlite3 *db = NULL;

		if (sqlite3_open(path, &db) != SQLITE_OK ||
		    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) !=
			    SQLITE_OK ||
		    write(pipes[1], "x", 1) != 1)
			_exit(1);
		nanosleep(&nap, NULL);
		_exit(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0
										: 1);
	}
	assert_int_equal(read(pipes[0], &c, 1), 1);
	l = opened();
	add(l, &r);
	ledger_close(l);
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(pipes[0]), close(pipes[1]);
}

/* In a child of its own mount namespace, on a file system of 400 KiB: exit 0 when the
 * ledger said that the disk is full and kept what it had. */
static void
fill_the_disk(void)
{
	struct ledger_artifact many[200];
	struct ledger_run r;
	struct ledger *l = NULL;
	struct err e = {0};
	char id[33];
	int i, n = 0;

	if (unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=400k"))
		_exit(77);
	if (ledger_open(path, LEDGER_CREATE, NULL, &l, &e))
		_exit(10);
	for (i = 0; i < 200; i++)
		many[i] = one_artifact;
	do {
		snprintf(id, sizeof id, "%032d", n);
		r = run_of(id, "pass", true);
		r.artifacts = many, r.artifact_count = 200;
	} while (ledger_add(l, &r, NULL, &e) == 0 && ++n < 1000);
	if (n == 0 || n == 1000)
		_exit(11);
	if (e.code != ERR_NOSPACE || e.hint[0] == '\0')
		_exit(12);
	if (run_count(l) != (size_t)n || ledger_check(l, NULL, NULL, &e))
		_exit(13);
	ledger_close(l);
	_exit(0);
}

static void
a_full_disk_loses_nothing_that_was_stored(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if ((pid = fork()) == 0)
		fill_the_disk();
	assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root: no file system of our own */
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_table_lets_a_row_change_or_go),
		CASE(insert_or_replace_is_refused_whatever_the_pragmas),
		CASE(nothing_is_added_to_a_sealed_run),
		CASE(a_run_without_its_entry_can_not_be_committed),
		CASE(a_dropped_trigger_is_found),
		CASE(a_trigger_changed_by_writable_schema_is_found),
		CASE(a_trigger_of_others_on_our_table_is_found_and_their_tables_are_not_minded),
		CASE(a_changed_row_no_longer_gives_its_leaf_hash),
		CASE(text_hidden_behind_a_nul_is_found),
		CASE(a_class_state_that_does_not_follow_is_found),
		CASE(a_missing_run_and_a_gap_are_found),
		CASE(a_network_file_system_is_refused_before_anything_is_made),
		CASE(a_missing_ledger_is_made_only_when_asked),
		CASE(a_reader_does_not_write),
		CASE(an_older_ledger_is_brought_up_to_date),
		CASE(a_newer_schema_is_refused_and_left_alone),
		CASE(a_file_of_another_program_is_refused_and_left_alone),
		CASE(a_damaged_file_is_an_integrity_error),
		CASE(programs_may_make_one_ledger_and_append_at_once),
		CASE(a_program_killed_before_the_commit_leaves_nothing_half),
		CASE(a_writer_that_holds_the_ledger_is_waited_for),
		CASE(a_full_disk_loses_nothing_that_was_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
