#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/proc.h"
#include "common/str.h"
#include "tests/unit/repo.h"

/* What came, byte for byte. */
struct seen {
	struct buf stream[2];
	int ticks, cancel_at; /* cancel_at: ticks until cancelled, 0 never */
	size_t stop_at;       /* chunk() says stop after that many bytes, 0 never */
};

static int
seen_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct seen *s = arg;

	assert_true(stream == 1 || stream == 2);
	if (buf_add(&s->stream[stream - 1], p, n, NULL))
		return -1;
	return s->stop_at != 0 && s->stream[0].len >= s->stop_at;
}

static int
seen_tick(void *arg)
{
	struct seen *s = arg;

	return ++s->ticks == s->cancel_at;
}

static void
seen_init(struct seen *s)
{
	memset(s, 0, sizeof *s);
	buf_init(&s->stream[0], 64u << 20);
	buf_init(&s->stream[1], 64u << 20);
}

static void
seen_fini(struct seen *s)
{
	buf_fini(&s->stream[0]);
	buf_fini(&s->stream[1]);
}

static void
run_spec(struct proc_spec *spec, struct seen *s, struct proc_result *r)
{
	struct err e = {0};

	spec->chunk = seen_chunk;
	spec->tick = seen_tick;
	spec->arg = s;
	if (proc_run(spec, r, &e))
		fail_msg("%s", e.msg);
}

static void
shell(const char *script, uint32_t timeout_ms, struct seen *s, struct proc_result *r)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = timeout_ms};

	run_spec(&spec, s, r);
}

static void
exit_codes_come_back_as_they_are(void **state)
{
	static const int codes[] = {0, 1, 2, 77, 127, 128, 137, 139, 255};
	struct proc_result r;
	struct seen s;
	char script[32], how[64], wanted[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(codes); i++) {
		seen_init(&s);
		snprintf(script, sizeof script, "exit %d", codes[i]);
		shell(script, 0, &s, &r);
		assert_int_equal(r.exit, codes[i]);
		assert_int_equal(r.signal, 0);
		assert_false(r.timed_out || r.cancelled || r.aborted);
		proc_describe(&r, how, sizeof how);
		snprintf(wanted, sizeof wanted, "exit %d", codes[i]);
		assert_string_equal(how, wanted);
		seen_fini(&s);
	}
}

/* 139 as an exit code is not signal 11. */
static void
signals_are_kept_apart_from_exit_codes(void **state)
{
	static const struct {
		const char *name;
		int number;
		const char *how;
	} rows[] = {
		{"SEGV", SIGSEGV, "signal 11 (SIGSEGV)"}, {"ABRT", SIGABRT, "signal 6 (SIGABRT)"},
		{"KILL", SIGKILL, "signal 9 (SIGKILL)"}, {"TERM", SIGTERM, "signal 15 (SIGTERM)"},
		{"HUP", SIGHUP, "signal 1 (SIGHUP)"}, {"PIPE", SIGPIPE, "signal 13 (SIGPIPE)"},
	};
	struct proc_result r;
	struct seen s;
	char script[64], how[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		seen_init(&s);
		snprintf(script, sizeof script, "ulimit -c 0; kill -%s $$", rows[i].name);
		shell(script, 0, &s, &r);
		assert_int_equal(r.exit, -1);
		assert_int_equal(r.signal, rows[i].number);
		proc_describe(&r, how, sizeof how);
		assert_string_equal(how, rows[i].how);
		seen_fini(&s);
	}
}

static bool
is_gone(pid_t pid)
{
	char path[64], *text;
	bool zombie;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (plat_read_file(path, 4096, &text, NULL, NULL))
		return true;
	zombie = strstr(text, ") Z ") != NULL;
	free(text);
	return zombie;
}

static void
assert_gone(const char *decimal)
{
	pid_t pid = (pid_t)strtol(decimal, NULL, 10);
	int i;

	assert_true(pid > 1);
	for (i = 0; i < 100 && !is_gone(pid); i++)
		usleep(20000);
	assert_true(i < 100);
}

static void
time_limit_kills_child_and_grandchildren(void **state)
{
	struct proc_result r;
	struct seen s;
	char how[64];

	(void)state;
	seen_init(&s);
	/* the grandchild holds the pipe and does not listen to SIGTERM */
	shell("(trap '' TERM; echo \"$(exec sh -c 'echo $PPID')\"; while :; do sleep 1; done) &"
	      " wait", 400, &s, &r);
	assert_true(r.timed_out);
	assert_false(r.cancelled);
	assert_true(r.ms >= 400 && r.ms < 5000);
	proc_describe(&r, how, sizeof how);
	assert_true(str_starts(how, "timed out after "));
	assert_gone(s.stream[0].data);
	seen_fini(&s);
}

static void
child_that_ignores_sigterm_is_killed(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("trap '' TERM; echo $$; while :; do sleep 1; done", 300, &s, &r);
	assert_true(r.timed_out);
	assert_int_equal(r.signal, SIGKILL);
	assert_true(r.ms < 6000);
	assert_gone(s.stream[0].data);
	seen_fini(&s);
}

static void
stopped_child_is_killed_too(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("kill -STOP $$", 300, &s, &r);
	assert_true(r.timed_out);
	assert_true(r.signal == SIGTERM || r.signal == SIGKILL);
	seen_fini(&s);
}

/* A daemon that the child leaves behind with its output open. */
static void
grandchild_that_keeps_the_pipe_does_not_hold_us(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("sleep 60 & echo $!; exit 3", 0, &s, &r);
	assert_int_equal(r.exit, 3);
	assert_true(r.ms < 4000);
	assert_gone(s.stream[0].data);
	seen_fini(&s);
}

static void
grandchild_without_the_pipe_is_killed_as_well(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("sleep 60 >/dev/null 2>&1 & echo $!; exit 0", 0, &s, &r);
	assert_int_equal(r.exit, 0);
	assert_true(r.ms < 2000);
	assert_gone(s.stream[0].data);
	seen_fini(&s);
}

/* One that left the group writes without end: given up after a while, not for ever. */
static void
endless_writer_outside_the_group_is_given_up(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("setsid sh -c 'echo $$; n=0; while [ $n -lt 600 ]; do echo more; sleep 0.1;"
	      " n=$((n+1)); done' & sleep 0.3", 0, &s, &r);
	assert_int_equal(r.exit, 0);
	assert_true(r.ms < 15000);
	kill((pid_t)strtol(s.stream[0].data, NULL, 10), SIGKILL);
	seen_fini(&s);
}

static void
child_that_closes_its_output_is_still_watched(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("exec >&- 2>&-; while :; do sleep 1; done", 500, &s, &r);
	assert_true(r.timed_out);
	seen_fini(&s);
	seen_init(&s);
	shell("exec >&- 2>&-; sleep 0.4; exit 5", 0, &s, &r);
	assert_int_equal(r.exit, 5);
	seen_fini(&s);
}

static void
tick_cancels(void **state)
{
	struct proc_result r;
	struct seen s;
	char how[64];

	(void)state;
	seen_init(&s);
	s.cancel_at = 2;
	shell("sleep 60", 0, &s, &r);
	assert_true(r.cancelled);
	assert_false(r.timed_out);
	assert_true(r.ms < 4000);
	proc_describe(&r, how, sizeof how);
	assert_true(str_starts(how, "cancelled"));
	seen_fini(&s);
}

static void
chunk_that_says_stop_ends_an_endless_child(void **state)
{
	struct proc_result r;
	struct seen s;
	char how[64];

	(void)state;
	seen_init(&s);
	s.stop_at = 100000;
	shell("while :; do echo yes; done", 20000, &s, &r);
	assert_true(r.aborted);
	assert_false(r.timed_out || r.cancelled);
	assert_true(r.ms < 5000);
	assert_true(s.stream[0].len < 300000);
	proc_describe(&r, how, sizeof how);
	assert_true(str_starts(how, "stopped"));
	seen_fini(&s);
}

static void
standard_input_is_at_its_end(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("readlink /proc/self/fd/0; cat; read x || echo eof", 5000, &s, &r);
	assert_string_equal(s.stream[0].data, "/dev/null\neof\n");
	assert_false(r.timed_out);
	seen_fini(&s);
}

static void
environment_is_ours_with_overrides_and_one_locale(void **state)
{
	static const char *const argv[] = {"/usr/bin/env", "-0", NULL};
	static const char *const over[] = {"ADDED=1 2", "CHANGED=new", "GONE", "EMPTY=", NULL};
	static const char *const locale[] = {"LC_ALL=C", NULL};
	struct proc_spec spec = {.argv = argv, .env = over};
	struct proc_result r;
	struct seen s;
	const char *p, *end;
	int all = 0, changed = 0, locales = 0;

	(void)state;
	setenv("CHANGED", "old", 1);
	setenv("GONE", "here", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	setenv("LANGUAGE", "de", 1);
	setenv("KEPT", "yes", 1);
	seen_init(&s);
	run_spec(&spec, &s, &r);
	end = s.stream[0].data + s.stream[0].len;
	for (p = s.stream[0].data; p < end; p += strlen(p) + 1) {
		all += str_eq(p, "ADDED=1 2") || str_eq(p, "CHANGED=new") || str_eq(p, "EMPTY=") ||
			str_eq(p, "KEPT=yes") || str_eq(p, "LC_ALL=C.UTF-8");
		changed += str_starts(p, "CHANGED=");
		assert_false(str_starts(p, "GONE=") || str_starts(p, "LANGUAGE="));
	}
	assert_int_equal(all, 5);
	assert_int_equal(changed, 1);
	seen_fini(&s);
	spec.env = locale;
	seen_init(&s);
	run_spec(&spec, &s, &r);
	end = s.stream[0].data + s.stream[0].len;
	for (p = s.stream[0].data; p < end; p += strlen(p) + 1)
		if (str_starts(p, "LC_ALL=")) {
			assert_string_equal(p, "LC_ALL=C");
			locales++;
		}
	assert_int_equal(locales, 1);
	seen_fini(&s);
	unsetenv("LC_ALL");
	unsetenv("LANGUAGE");
}

/* printf writes back what it got: each word must come unharmed, whatever is in it. */
static void
words_of_argv_arrive_unharmed(void **state)
{
	static const char *const fixed[] = {"a model.gguf", "it's \"quoted\"", "100%", "a&b|c;d>e<f",
		"$(touch x) `id` ${HOME}", "", " ", "-n", "--", "\\", "*?[a-z]", "~", "a\nb\ttab",
		"caf\xc3\xa9 \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x98\x80", "\xff\xfe latin \xe9", "!history",
		"%s%n%d", "^caret", "C:\\LLMS\\gemma 3.gguf", "'", "\"", "\x01\x1b[31m"};
	const char *argv[40] = {"/usr/bin/printf", "%s\\0"};
	char words[12][40];
	struct proc_spec spec = {.argv = argv};
	struct proc_result r;
	struct seen s;
	unsigned seed = 42;
	size_t i, k, n, at, round;

	(void)state;
	for (round = 0; round < 20; round++) {
		for (i = 0; i < str_count(fixed); i++)
			argv[2 + i] = fixed[i];
		for (k = 0; k < 12; k++) {
			n = 1 + (round + k) % 38;
			for (at = 0; at < n; at++) {
				seed = seed * 1103515245u + 12345u;
				words[k][at] = (char)(1 + (seed >> 16) % 255);
			}
			words[k][n] = '\0';
			argv[2 + i + k] = words[k];
		}
		argv[2 + i + k] = NULL;
		seen_init(&s);
		run_spec(&spec, &s, &r);
		assert_int_equal(r.exit, 0);
		for (at = 0, k = 2; argv[k] != NULL; at += n + 1, k++) {
			n = strlen(argv[k]);
			assert_true(at + n < s.stream[0].len);
			assert_memory_equal(s.stream[0].data + at, argv[k], n + 1);
		}
		assert_int_equal(at, s.stream[0].len);
		seen_fini(&s);
	}
}

static void
program_that_can_not_start_is_an_error_with_its_name(void **state)
{
	char dir[256], file[300];
	const char *argv[] = {file, NULL};
	struct proc_spec spec = {.argv = argv};
	struct proc_result r;
	struct err e = {0};

	(void)state;
	repo_folder(dir, sizeof dir);
	snprintf(file, sizeof file, "%s/none", dir);
	assert_int_equal(proc_run(&spec, &r, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "/none"));
	assert_int_equal(r.exit, -1);
	repo_write(dir, "plain", "#!/bin/sh\nexit 0\n", 0644);
	snprintf(file, sizeof file, "%s/plain", dir);
	assert_int_equal(proc_run(&spec, &r, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.msg, "/plain"));
	repo_write(dir, "garbage", "\x7f" "ELF but not really", 0755);
	snprintf(file, sizeof file, "%s/garbage", dir);
	assert_int_equal(proc_run(&spec, &r, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	snprintf(file, sizeof file, "%s", dir);
	assert_int_equal(proc_run(&spec, &r, &e), -1);
	snprintf(file, sizeof file, "/bin/true");
	spec.cwd = "/no/such/folder";
	assert_int_equal(proc_run(&spec, &r, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "/no/such/folder"));
	assert_null(strstr(e.msg, "/bin/true"));
	repo_remove(dir);
}

static void
working_folder_is_that_of_the_child_only(void **state)
{
	static const char *const argv[] = {"/bin/pwd", NULL};
	char *out = NULL, before[4096], after[4096];
	struct proc_result r;
	struct err e = {0};

	(void)state;
	assert_non_null(getcwd(before, sizeof before));
	assert_int_equal(proc_capture(argv, "/usr", 5000, 100, &out, NULL, &r, &e), 0);
	assert_string_equal(out, "/usr\n");
	assert_non_null(getcwd(after, sizeof after));
	assert_string_equal(before, after);
	free(out);
}

static void
capture_keeps_the_head_and_reads_the_rest(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c",
		"i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo oops >&2; exit 4",
		NULL};
	char *out = NULL, *errs = NULL;
	struct proc_result r;
	struct err e = {0};

	(void)state;
	assert_int_equal(proc_capture(argv, NULL, 60000, 10, &out, &errs, &r, &e), 0);
	assert_string_equal(out, "line 0\nlin");
	assert_string_equal(errs, "oops\n");
	assert_int_equal(r.exit, 4);
	free(out);
	free(errs);
	assert_int_equal(proc_capture(argv, NULL, 60000, 0, NULL, NULL, &r, &e), 0);
	assert_int_equal(r.exit, 4);
}

static void
megabytes_of_both_streams_come_whole(void **state)
{
	struct proc_result r;
	struct seen s;

	(void)state;
	seen_init(&s);
	shell("head -c 3000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait", 60000, &s, &r);
	assert_int_equal(r.exit, 0);
	assert_int_equal(s.stream[0].len, 3000000);
	assert_int_equal(s.stream[1].len, 2000000);
	seen_fini(&s);
}

/* A daemon started with nothing open: the child's streams must not get lost. */
static void
parent_without_standard_streams_still_sees_the_child(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "cat; echo out; echo err >&2", NULL};
	int mask, status;
	pid_t pid;

	(void)state;
	for (mask = 1; mask < 8; mask++) {
		if ((pid = fork()) == 0) {
			char *out = NULL, *errs = NULL;
			struct proc_result r;
			int i;

			for (i = 0; i < 3; i++)
				if (mask & (1 << i))
					close(i);
			if (proc_capture(argv, NULL, 10000, 100, &out, &errs, &r, NULL))
				_exit(2);
			if (r.exit != 0 || strcmp(out, "out\n") != 0 || strcmp(errs, "err\n") != 0)
				_exit(3);
			_exit(0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void
signals_we_ignore_are_not_ignored_by_the_child(void **state)
{
	struct proc_result r;
	struct seen s;
	unsigned long long blocked, ignored;
	void (*old_pipe)(int) = signal(SIGPIPE, SIG_IGN), (*old_hup)(int) = signal(SIGHUP, SIG_IGN);
	sigset_t block, old;

	(void)state;
	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, &old);
	seen_init(&s);
	shell("grep -E '^Sig(Blk|Ign)' /proc/self/status", 5000, &s, &r);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, old_pipe);
	signal(SIGHUP, old_hup);
	assert_int_equal(sscanf(s.stream[0].data, "SigBlk:\t%llx\nSigIgn:\t%llx", &blocked, &ignored), 2);
	assert_int_equal(blocked, 0);
	/* 32 and 33 are the C library's own: nobody can reset them through it */
	assert_int_equal(ignored & ~0x180000000ull, 0);
	seen_fini(&s);
}

/* With SIGCHLD ignored the kernel reaps: the end is unknown, but it is an end. */
static void
end_that_nobody_saw_is_no_exit_code(void **state)
{
	struct proc_result r;
	struct seen s;
	void (*old)(int) = signal(SIGCHLD, SIG_IGN);

	(void)state;
	seen_init(&s);
	shell("echo x; exit 0", 5000, &s, &r);
	signal(SIGCHLD, old);
	assert_int_equal(r.exit, -1);
	assert_int_equal(r.signal, 0);
	assert_string_equal(s.stream[0].data, "x\n");
	seen_fini(&s);
}

static void
no_descriptor_of_ours_reaches_the_child(void **state)
{
	struct proc_result r;
	struct seen s;
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(fd > 2);
	seen_init(&s);
	/* 3 is ls's own */
	shell("ls /proc/self/fd", 5000, &s, &r);
	assert_string_equal(s.stream[0].data, "0\n1\n2\n3\n");
	seen_fini(&s);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes_come_back_as_they_are),
		cmocka_unit_test(signals_are_kept_apart_from_exit_codes),
		cmocka_unit_test(time_limit_kills_child_and_grandchildren),
		cmocka_unit_test(child_that_ignores_sigterm_is_killed),
		cmocka_unit_test(stopped_child_is_killed_too),
		cmocka_unit_test(grandchild_that_keeps_the_pipe_does_not_hold_us),
		cmocka_unit_test(grandchild_without_the_pipe_is_killed_as_well),
		cmocka_unit_test(endless_writer_outside_the_group_is_given_up),
		cmocka_unit_test(child_that_closes_its_output_is_still_watched),
		cmocka_unit_test(tick_cancels),
		cmocka_unit_test(chunk_that_says_stop_ends_an_endless_child),
		cmocka_unit_test(standard_input_is_at_its_end),
		cmocka_unit_test(environment_is_ours_with_overrides_and_one_locale),
		cmocka_unit_test(words_of_argv_arrive_unharmed),
		cmocka_unit_test(program_that_can_not_start_is_an_error_with_its_name),
		cmocka_unit_test(working_folder_is_that_of_the_child_only),
		cmocka_unit_test(capture_keeps_the_head_and_reads_the_rest),
		cmocka_unit_test(megabytes_of_both_streams_come_whole),
		cmocka_unit_test(parent_without_standard_streams_still_sees_the_child),
		cmocka_unit_test(signals_we_ignore_are_not_ignored_by_the_child),
		cmocka_unit_test(end_that_nobody_saw_is_no_exit_code),
		cmocka_unit_test(no_descriptor_of_ours_reaches_the_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
