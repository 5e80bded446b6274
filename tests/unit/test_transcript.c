#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/transcript.h"
#include "tests/unit/repo.h"

#define NONCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BOUNDARY "0123456789abcdef"

struct place {
	char dir[256], path[300], out[300];
	struct transcript *t;
	char *log;
	size_t len, pos;
	struct section s;
	struct err e;
};

static int
place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	repo_folder(p->dir, sizeof p->dir);
	snprintf(p->path, sizeof p->path, "%s/x.log", p->dir);
	snprintf(p->out, sizeof p->out, "%s/x.out", p->dir);
	*state = p;
	return 0;
}

static int
place_remove(void **state)
{
	struct place *p = *state;

	section_fini(&p->s);
	free(p->log);
	repo_remove(p->dir);
	free(p);
	return 0;
}

static struct transcript *
begin(struct place *p, uint64_t cap)
{
	if (transcript_open(p->path, NONCE, cap, &p->t, &p->e))
		fail_msg("%s", p->e.msg);
	return p->t;
}

static void
end(struct place *p)
{
	char said[DIGEST_HEX], hex[DIGEST_HEX];
	uint64_t bytes = 0;

	assert_int_equal(transcript_close(p->t, said, &bytes, &p->e), 0);
	assert_int_equal(plat_read_file(p->path, 64u << 20, &p->log, &p->len, &p->e), 0);
	digest_bytes(p->log, p->len, hex);
	assert_string_equal(said, hex);
	assert_int_equal(bytes, p->len);
}

static void
next(struct place *p, const char *kind)
{
	section_fini(&p->s);
	assert_int_equal(transcript_next(p->log, p->len, &p->pos, &p->s, &p->e), 1);
	assert_string_equal(p->s.kind, kind);
}

static void
no_more(struct place *p)
{
	section_fini(&p->s);
	assert_int_equal(transcript_next(p->log, p->len, &p->pos, &p->s, &p->e), 0);
}

static void
body(struct place *p, const char *wanted, size_t n)
{
	assert_int_equal(p->s.len, n);
	assert_memory_equal(p->s.body, wanted, n);
}

static void
run(struct place *p, const char *script, struct proc_result *r)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = 60000};

	if (transcript_run(p->t, &spec, NULL, r, &p->e))
		fail_msg("%s", p->e.msg);
}

static void
what_was_written_can_be_read_again(void **state)
{
	struct place *p = *state;
	struct proc_result r;
	char value[64];

	begin(p, 1u << 20);
	assert_int_equal(transcript_fact(p->t, "os", "Linux", &p->e), 0);
	assert_int_equal(transcript_fact(p->t, "empty", "", &p->e), 0);
	assert_int_equal(transcript_bytes(p->t, "name of it", "a\nb\n", 4, &p->e), 0);
	run(p, "echo out; echo err >&2; exit 3", &r);
	assert_int_equal(transcript_fact(p->t, "late", "1", &p->e), 0);
	end(p);
	next(p, "facts");
	assert_true(p->s.ended);
	assert_true(section_fact(&p->s, "os", value, sizeof value));
	assert_string_equal(value, "Linux");
	assert_true(section_fact(&p->s, "empty", value, sizeof value));
	assert_string_equal(value, "");
	assert_false(section_fact(&p->s, "emp", value, sizeof value));
	assert_false(section_fact(&p->s, "os", value, 5));
	next(p, "file");
	assert_string_equal(p->s.head, "{\"file\":\"name of it\"}");
	body(p, "a\nb\n", 4);
	next(p, "run");
	assert_true(p->s.ended);
	assert_int_equal(p->s.exit, 3);
	assert_int_equal(p->s.signal, 0);
	assert_int_equal(p->s.dropped, 0);
	assert_true(p->s.len == 8);
	next(p, "facts");
	assert_true(section_fact(&p->s, "late", value, sizeof value));
	no_more(p);
}

static void
existing_log_is_never_overwritten(void **state)
{
	struct place *p = *state;
	struct transcript *t = NULL;
	const char *argv[] = {"/bin/echo", "x", NULL};
	struct proc_spec spec = {.argv = argv};
	struct proc_result r;
	char *text;

	repo_write(p->dir, "x.log", "the first run", 0644);
	assert_int_equal(transcript_open(p->path, NONCE, 100, &t, &p->e), -1);
	assert_int_equal(p->e.code, ERR_CONFLICT);
	assert_null(t);
	assert_int_equal(plat_read_file(p->path, 100, &text, NULL, &p->e), 0);
	assert_string_equal(text, "the first run");
	free(text);
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(symlink("/dev/null", p->path), 0); /* nor is a link followed */
	assert_int_equal(transcript_open(p->path, NONCE, 100, &t, &p->e), -1);
	assert_int_equal(unlink(p->path), 0);
	repo_write(p->dir, "x.out", "first", 0644);
	begin(p, 1000);
	assert_int_equal(transcript_run(p->t, &spec, p->out, &r, &p->e), -1);
	assert_int_equal(p->e.code, ERR_CONFLICT);
	end(p);
}

static void
nonce_that_is_none_is_refused(void **state)
{
	struct place *p = *state;
	struct transcript *t = NULL;

	assert_int_equal(transcript_open(p->path, "", 100, &t, &p->e), -1);
	assert_int_equal(transcript_open(p->path, "0123456789abcde", 100, &t, &p->e), -1);
	assert_int_equal(transcript_open(p->path, "0123456789ABCDEF", 100, &t, &p->e), -1);
	assert_int_equal(transcript_open(p->path, "0123 56789abcdef", 100, &t, &p->e), -1);
	assert_false(plat_exists(p->path));
	assert_int_equal(transcript_close(NULL, NULL, NULL, &p->e), 0);
}

/* Bytes between head and tail are dropped and counted, wherever the cap lies. */
static void
capped_log_keeps_head_and_tail_and_counts_the_rest(void **state)
{
	static const uint64_t caps[] = {0, 1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 5000};
	struct place *p = *state;
	char bytes[1000], mark[64];
	size_t i, k, head, tail;

	for (k = 0; k < sizeof bytes; k++)
		bytes[k] = (char)('a' + k % 23);
	for (i = 0; i < str_count(caps); i++) {
		begin(p, caps[i]);
		assert_int_equal(transcript_bytes(p->t, "x", bytes, sizeof bytes, &p->e), 0);
		end(p);
		p->pos = 0;
		next(p, "file");
		head = (size_t)caps[i] / 2;
		tail = (size_t)caps[i] - head;
		if (caps[i] >= sizeof bytes) {
			body(p, bytes, sizeof bytes);
			assert_int_equal(p->s.dropped, 0);
		} else {
			assert_int_equal(p->s.dropped, sizeof bytes - caps[i]);
			snprintf(mark, sizeof mark, "%s#verify " BOUNDARY " cut %zu\n",
				head > 0 ? "\n" : "", sizeof bytes - (size_t)caps[i]);
			assert_memory_equal(p->s.body, bytes, head);
			assert_memory_equal(p->s.body + head, mark, strlen(mark));
			assert_memory_equal(p->s.body + head + strlen(mark),
				bytes + sizeof bytes - tail, tail);
		}
		no_more(p);
		free(p->log);
		p->log = NULL;
		unlink(p->path);
	}
}

static void
endless_output_is_capped(void **state)
{
	struct place *p = *state;
	struct proc_result r;

	begin(p, 10000);
	run(p, "echo first; i=0; while [ $i -lt 30000 ]; do echo line $i of too many; i=$((i+1));"
	       " done; echo last", &r);
	end(p);
	assert_true(p->len < 11000);
	next(p, "run");
	assert_memory_equal(p->s.body, "first\n", 6);
	assert_memory_equal(p->s.body + p->s.len - 5, "last\n", 5);
	/* first, last and 30000 lines */
	assert_int_equal(p->s.dropped, 6 + 5 + 30000 * 18 + (10 + 2 * 90 + 3 * 900 + 4 * 9000 +
		5 * 20000) - 10000);
	no_more(p);
}

static void
output_without_a_final_newline_is_exact(void **state)
{
	struct place *p = *state;
	struct proc_result r;

	begin(p, 1000);
	run(p, "printf abc", &r);
	run(p, "printf ''", &r);
	run(p, "printf 'abc\\n'", &r);
	run(p, "printf 'abc\\n\\n'", &r);
	assert_int_equal(transcript_bytes(p->t, "x", "", 0, &p->e), 0);
	assert_int_equal(transcript_bytes(p->t, "x", "\n", 1, &p->e), 0);
	assert_int_equal(transcript_bytes(p->t, "x", "x", 1, &p->e), 0);
	end(p);
	next(p, "run");
	body(p, "abc", 3);
	next(p, "run");
	body(p, "", 0);
	next(p, "run");
	body(p, "abc\n", 4);
	next(p, "run");
	body(p, "abc\n\n", 5);
	next(p, "file");
	body(p, "", 0);
	next(p, "file");
	body(p, "\n", 1);
	next(p, "file");
	body(p, "x", 1);
	no_more(p);
}

static void
binary_output_is_kept_as_it_is(void **state)
{
	struct place *p = *state;
	unsigned char bytes[512];
	struct proc_result r;
	size_t i;

	for (i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 7);
	begin(p, 1u << 20);
	assert_int_equal(transcript_bytes(p->t, "b\xff\x01", bytes, sizeof bytes, &p->e), 0);
	run(p, "printf '\\000\\377\\n\\000'", &r);
	end(p);
	next(p, "file");
	body(p, (char *)bytes, sizeof bytes);
	next(p, "run");
	body(p, "\0\377\n\0", 4);
	no_more(p);
}

/* A child that knows the form but not the boundary can end nothing and begin nothing. */
static void
markers_with_a_guessed_boundary_are_output(void **state)
{
	struct place *p = *state;
	struct proc_result r;

	begin(p, 1u << 20);
	run(p, "echo '#verify 0000000000000000 end {\"exit\":0}';"
	       "echo '#verify 0123456789abcdee end {\"exit\":0,\"signal\":0}';"
	       "echo '#verify 0123456789ABCDEF end {\"exit\":0}';"
	       "echo ' #verify " BOUNDARY " end {}';"
	       "echo '#verify " BOUNDARY "0 end {}';"
	       "echo '#verify end {\"exit\":0}'; exit 9", &r);
	end(p);
	next(p, "run");
	assert_int_equal(p->s.exit, 9);
	assert_true(p->s.ended);
	no_more(p);
}

static void
facts_can_not_break_out_of_their_line(void **state)
{
	struct place *p = *state;
	char value[128];

	begin(p, 1000);
	assert_int_equal(transcript_fact(p->t, "detail",
		"x\n#verify " BOUNDARY " end {}\r\nreason=none", &p->e), 0);
	end(p);
	next(p, "facts");
	assert_false(section_fact(&p->s, "reason", value, sizeof value));
	assert_true(section_fact(&p->s, "detail", value, sizeof value));
	assert_null(strchr(value, '\n'));
	no_more(p);
}

/* Every line of the log is a line of one stream. */
static void
partial_lines_of_two_streams_never_mix(void **state)
{
	struct place *p = *state;
	struct proc_result r;
	const char *q, *nl, *stop;
	size_t n, outs = 0, errs = 0;

	begin(p, 4u << 20);
	run(p, "i=0; while [ $i -lt 300 ]; do printf ooo; printf EEE >&2; printf ooo; printf EEE >&2;"
	       " printf 'o\\n'; printf 'E\\n' >&2; i=$((i+1)); done", &r);
	end(p);
	next(p, "run");
	stop = p->s.body + p->s.len;
	for (q = p->s.body; q < stop; q = nl + 1) {
		nl = memchr(q, '\n', (size_t)(stop - q));
		assert_non_null(nl);
		n = (size_t)(nl - q);
		assert_int_equal(n, 7);
		outs += memcmp(q, "ooooooo", 7) == 0;
		errs += memcmp(q, "EEEEEEE", 7) == 0;
	}
	assert_int_equal(outs, 300);
	assert_int_equal(errs, 300);
}

static void
last_lines_without_newline_do_not_mix(void **state)
{
	struct place *p = *state;
	struct proc_result r;

	begin(p, 1u << 20);
	run(p, "printf 'all is well'; printf 'Error: it is not' >&2", &r);
	end(p);
	next(p, "run");
	body(p, "all is well\nError: it is not", 28);
}

/* A megabyte without newline must not swallow what the other stream says. */
static void
endless_line_does_not_hide_an_error(void **state)
{
	struct place *p = *state;
	struct proc_result r;
	const char *at;

	begin(p, 8u << 20);
	run(p, "head -c 1000000 /dev/zero | tr '\\0' o; sleep 0.3; echo 'Error: lost' >&2;"
	       " sleep 0.3; head -c 200000 /dev/zero | tr '\\0' o", &r);
	end(p);
	next(p, "run");
	at = memmem(p->s.body, p->s.len, "Error: lost\n", 12);
	assert_non_null(at);
	assert_int_equal(at[-1], '\n');
	assert_int_equal(at[12], 'o');
}

static void
stdout_copy_is_exact_and_apart_from_stderr(void **state)
{
	struct place *p = *state;
	const char *argv[] = {"/bin/sh", "-c", "printf 'a\\000b'; echo noise >&2; printf c", NULL};
	struct proc_spec spec = {.argv = argv};
	struct proc_result r;
	char *text;
	size_t n;

	begin(p, 1000);
	assert_int_equal(transcript_run(p->t, &spec, p->out, &r, &p->e), 0);
	end(p);
	assert_int_equal(plat_read_file(p->out, 100, &text, &n, &p->e), 0);
	assert_int_equal(n, 4);
	assert_memory_equal(text, "a\0bc", 4);
	free(text);
}

struct tap {
	size_t n[2];
	int ticks;
};

static int
tap_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct tap *t = arg;

	assert_non_null(p);
	t->n[stream - 1] += n;
	return t->n[0] > 1000;
}

static int
tap_tick(void *arg)
{
	return ++((struct tap *)arg)->ticks > 2;
}

static void
callers_chunk_and_tick_still_work(void **state)
{
	struct place *p = *state;
	const char *argv[] = {"/bin/sh", "-c", "echo 1234; echo 12 >&2", NULL};
	const char *endless[] = {"/bin/sh", "-c", "while :; do echo yes; done", NULL};
	const char *quiet[] = {"/bin/sleep", "60", NULL};
	struct tap tap = {{0, 0}, 0};
	struct proc_spec spec = {.argv = argv, .chunk = tap_chunk, .tick = tap_tick, .arg = &tap};
	struct proc_result r;

	begin(p, 100);
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), 0);
	assert_int_equal(tap.n[0], 5);
	assert_int_equal(tap.n[1], 3);
	spec.argv = endless;
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), 0);
	assert_true(r.aborted);
	spec.argv = quiet;
	tap.n[0] = 0;
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), 0);
	assert_true(r.cancelled);
	end(p);
	next(p, "run");
	next(p, "run");
	next(p, "run");
	assert_true(p->s.cancelled);
	assert_int_not_equal(p->s.exit, 0);
	no_more(p);
}

static void
time_out_and_signal_stand_in_the_log(void **state)
{
	struct place *p = *state;
	const char *argv[] = {"/bin/sleep", "60", NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = 200};
	struct proc_result r;

	begin(p, 100);
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), 0);
	run(p, "ulimit -c 0; kill -SEGV $$", &r);
	end(p);
	next(p, "run");
	assert_true(p->s.timed_out);
	assert_int_equal(p->s.exit, -1);
	assert_true(p->s.ms >= 200);
	next(p, "run");
	assert_int_equal(p->s.signal, SIGSEGV);
	assert_int_equal(p->s.exit, -1);
	assert_false(p->s.timed_out);
}

static void
command_that_can_not_start_leaves_a_whole_section(void **state)
{
	struct place *p = *state;
	const char *argv[] = {"/no/such/program", NULL};
	struct proc_spec spec = {.argv = argv};
	struct proc_result r;

	begin(p, 1000);
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), -1);
	assert_int_equal(p->e.code, ERR_NOTFOUND);
	assert_int_equal(transcript_fact(p->t, "reason", "tool_missing", &p->e), 0);
	end(p);
	next(p, "run");
	assert_true(p->s.ended);
	assert_int_equal(p->s.exit, -1);
	assert_non_null(memmem(p->s.body, p->s.len, "/no/such/program", 16));
	next(p, "facts");
	no_more(p);
}

/* Words that are not UTF-8 must not make the head unreadable, nor reach the child changed. */
static void
head_is_json_whatever_the_words_are(void **state)
{
	struct place *p = *state;
	const char *argv[] = {"/usr/bin/printf", "%s", "caf\xe9 \"\\\n\x1b", NULL};
	const char *env[] = {"ODD=\xff", "GONE", NULL};
	struct proc_spec spec = {.argv = argv, .env = env, .cwd = "/usr"};
	struct proc_result r;
	cJSON *o = NULL;

	begin(p, 1000);
	assert_int_equal(transcript_run(p->t, &spec, NULL, &r, &p->e), 0);
	end(p);
	next(p, "run");
	body(p, "caf\xe9 \"\\\n\x1b", 9);
	assert_int_equal(json_parse(p->s.head, strlen(p->s.head), 10000, &o, &p->e), 0);
	assert_string_equal(cJSON_GetArrayItem(json_get(o, "argv"), 2)->valuestring,
		"caf\xef\xbf\xbd \"\\\n\x1b");
	assert_string_equal(cJSON_GetArrayItem(json_get(o, "env"), 1)->valuestring, "GONE");
	assert_string_equal(json_str(o, "cwd"), "/usr");
	cJSON_Delete(o);
}

static void
large_file_and_other_things_are_no_section(void **state)
{
	struct place *p = *state;
	char *big = calloc(1, (1u << 20) + 2);
	char path[300];

	assert_non_null(big);
	memset(big, 'x', (1u << 20) + 1);
	repo_write(p->dir, "big", big, 0644);
	free(big);
	snprintf(path, sizeof path, "%s/big", p->dir);
	begin(p, 100);
	assert_int_equal(transcript_file(p->t, path, &p->e), -1);
	assert_int_equal(p->e.code, ERR_LIMIT);
	assert_int_equal(transcript_file(p->t, p->dir, &p->e), -1);
	assert_int_equal(transcript_file(p->t, "/no/such/file", &p->e), -1);
	assert_int_equal(p->e.code, ERR_NOTFOUND);
	assert_int_equal(transcript_file(p->t, "/proc/self/stat", &p->e), 0);
	end(p);
	next(p, "file");
	no_more(p);
}

/* ---- a full disk ---- */

/* Runs an endless child into a log on a place that gets full; 0 when all is as it must. */
static int
fill(const char *path)
{
	const char *argv[] = {"/bin/sh", "-c", "echo $$; while :; do echo 0123456789; done", NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = 20000};
	struct transcript *t = NULL;
	struct proc_result r;
	struct section s;
	struct err e = {0}, close_e = {0};
	char hex[DIGEST_HEX] = "", again[DIGEST_HEX], *log;
	size_t len, pos = 0;
	int pid;

	if (transcript_open(path, NONCE, 1u << 30, &t, &e))
		return 10;
	if (transcript_run(t, &spec, NULL, &r, &e) == 0 || e.code != ERR_NOSPACE)
		return 11;
	if (!r.aborted || r.timed_out || r.ms > 10000)
		return 12;
	if (transcript_fact(t, "after", "it", &e) == 0 || e.code != ERR_NOSPACE)
		return 13;
	if (transcript_close(t, hex, NULL, &close_e) == 0 || close_e.code != ERR_NOSPACE)
		return 14;
	/* what could be written is still evidence, and is not taken for a whole log */
	if (plat_read_file(path, 64u << 20, &log, &len, &e))
		return 15;
	digest_bytes(log, len, again);
	if (strcmp(hex, again) != 0)
		return 16;
	if (transcript_next(log, len, &pos, &s, &e) != 1 || s.ended || s.exit == 0)
		return 17;
	pid = (int)strtol(s.body, NULL, 10);
	section_fini(&s);
	free(log);
	return pid > 1 && kill(pid, 0) != 0 && errno == ESRCH ? 0 : 18;
}

static int
in_child(int (*f)(const char *), const char *path, uint64_t limit)
{
	struct rlimit small = {limit, RLIM_INFINITY};
	int status;
	pid_t pid;

	if ((pid = fork()) == 0) {
		signal(SIGXFSZ, SIG_IGN);
		if (limit != 0 && setrlimit(RLIMIT_FSIZE, &small))
			_exit(9);
		_exit(f(path));
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void
file_size_limit_is_a_full_disk_and_stops_the_child(void **state)
{
	struct place *p = *state;

	assert_int_equal(in_child(fill, p->path, 100000), 0);
}

static void
full_file_system_is_a_full_disk_and_stops_the_child(void **state)
{
	struct place *p = *state;
	char path[400];
	int rc;

	snprintf(path, sizeof path, "%s/small", p->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	if (mount("tmpfs", path, "tmpfs", 0, "size=256k") != 0)
		skip(); /* only root may mount */
	snprintf(path, sizeof path, "%s/small/x.log", p->dir);
	rc = in_child(fill, path, 0);
	snprintf(path, sizeof path, "%s/small", p->dir);
	assert_int_equal(umount(path), 0);
	assert_int_equal(rc, 0);
}

/* ---- damaged logs ---- */

static void
log_cut_anywhere_is_never_whole(void **state)
{
	struct place *p = *state;
	struct proc_result r;
	struct section s;
	size_t n, pos;
	int rc, whole;

	begin(p, 200);
	assert_int_equal(transcript_fact(p->t, "a", "b", &p->e), 0);
	run(p, "echo 1; echo 2", &r);
	assert_int_equal(transcript_bytes(p->t, "f", "xyz", 3, &p->e), 0);
	end(p);
	for (n = 1; n < p->len; n++) {
		char *cut = malloc(n);

		assert_non_null(cut);
		memcpy(cut, p->log, n);
		pos = 0;
		whole = 0;
		while ((rc = transcript_next(cut, n, &pos, &s, NULL)) == 1) {
			assert_true(s.body >= cut && s.body + s.len <= cut + n);
			whole += s.ended;
			if (!s.ended)
				assert_int_equal(s.exit, -1);
			section_fini(&s);
		}
		assert_true(whole < 3);
		free(cut);
	}
}

static void
text_that_is_no_log_is_refused(void **state)
{
	static const char *const bad[] = {"x", "\n", "#verify", "#verify " BOUNDARY,
		"#verify " BOUNDARY " run {}", "#verify " BOUNDARY "\n", "#verify " BOUNDARY " \n",
		"#verify XXXXXXXXXXXXXXXX run {}\n", "#verify " BOUNDARY " toolongword {}\n",
		"x\n#verify " BOUNDARY " run {}\n"};
	struct section s;
	struct err e = {0};
	size_t i, pos;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		pos = 0;
		assert_int_equal(transcript_next(bad[i], strlen(bad[i]), &pos, &s, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
	}
	pos = 0;
	assert_int_equal(transcript_next("", 0, &pos, &s, &e), 0);
}

static void
text_between_sections_is_refused(void **state)
{
	static const char log[] = "#verify " BOUNDARY " facts {}\na=1\n#verify " BOUNDARY " end {}\n"
		"stray\n#verify " BOUNDARY " facts {}\n#verify " BOUNDARY " end {}\n";
	struct section s;
	size_t pos = 0;

	(void)state;
	assert_int_equal(transcript_next(log, sizeof log - 1, &pos, &s, NULL), 1);
	section_fini(&s);
	assert_int_equal(transcript_next(log, sizeof log - 1, &pos, &s, NULL), -1);
}

static void
section_that_begins_inside_another_ends_it_unfinished(void **state)
{
	static const char log[] = "#verify " BOUNDARY " run {}\nout\n#verify " BOUNDARY " facts {}\n"
		"#verify " BOUNDARY " end {\"exit\":0}\n";
	struct section s;
	size_t pos = 0;

	(void)state;
	assert_int_equal(transcript_next(log, sizeof log - 1, &pos, &s, NULL), 1);
	assert_false(s.ended);
	assert_int_equal(s.exit, -1);
	section_fini(&s);
	assert_int_equal(transcript_next(log, sizeof log - 1, &pos, &s, NULL), 1);
	assert_string_equal(s.kind, "facts");
	section_fini(&s);
}

/* 2^32 must not become exit code 0 on the way into an int. */
static void
numbers_out_of_range_are_unknown(void **state)
{
	static const char *const ends[] = {"{\"exit\":4294967296}", "{\"exit\":-4294967296}",
		"{\"exit\":256}", "{\"exit\":\"0\"}", "{\"exit\":0.5}", "{\"exit\":null}", "{}", "",
		"{\"exit\":0,\"exit\":0}", "{\"exit\":0", "[0]", "{\"exit\":1e999}"};
	struct section s;
	char log[256];
	size_t i, pos;

	(void)state;
	for (i = 0; i < str_count(ends); i++) {
		snprintf(log, sizeof log, "#verify " BOUNDARY " run {}\n#verify " BOUNDARY " end %s\n",
			ends[i]);
		pos = 0;
		assert_int_equal(transcript_next(log, strlen(log), &pos, &s, NULL), 1);
		assert_int_equal(s.exit, -1);
		section_fini(&s);
	}
	/* that of Windows is of 32 bits, with or without its sign */
	for (i = 0; i < 2; i++) {
		snprintf(log, sizeof log, "#verify " BOUNDARY " run {}\n#verify " BOUNDARY " end {\"exit\":%s}\n",
			i ? "-1073741515" : "3221225781");
		pos = 0;
		assert_int_equal(transcript_next(log, strlen(log), &pos, &s, NULL), 1);
		assert_int_equal(s.exit, -1073741515);
		section_fini(&s);
	}
	snprintf(log, sizeof log, "#verify " BOUNDARY " run {}\n#verify " BOUNDARY
		" end {\"exit\":0,\"dropped\":-5,\"ms\":-1,\"signal\":-9}\n");
	pos = 0;
	assert_int_equal(transcript_next(log, strlen(log), &pos, &s, NULL), 1);
	assert_int_equal(s.exit, 0);
	assert_int_equal(s.dropped, 0);
	assert_int_equal(s.ms, -1);
	assert_int_equal(s.signal, 0);
	section_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)
		IN_PLACE(what_was_written_can_be_read_again),
		IN_PLACE(existing_log_is_never_overwritten),
		IN_PLACE(nonce_that_is_none_is_refused),
		IN_PLACE(capped_log_keeps_head_and_tail_and_counts_the_rest),
		IN_PLACE(endless_output_is_capped),
		IN_PLACE(output_without_a_final_newline_is_exact),
		IN_PLACE(binary_output_is_kept_as_it_is),
		IN_PLACE(markers_with_a_guessed_boundary_are_output),
		IN_PLACE(facts_can_not_break_out_of_their_line),
		IN_PLACE(partial_lines_of_two_streams_never_mix),
		IN_PLACE(last_lines_without_newline_do_not_mix),
		IN_PLACE(endless_line_does_not_hide_an_error),
		IN_PLACE(stdout_copy_is_exact_and_apart_from_stderr),
		IN_PLACE(callers_chunk_and_tick_still_work),
		IN_PLACE(time_out_and_signal_stand_in_the_log),
		IN_PLACE(command_that_can_not_start_leaves_a_whole_section),
		IN_PLACE(head_is_json_whatever_the_words_are),
		IN_PLACE(large_file_and_other_things_are_no_section),
		IN_PLACE(file_size_limit_is_a_full_disk_and_stops_the_child),
		IN_PLACE(full_file_system_is_a_full_disk_and_stops_the_child),
		IN_PLACE(log_cut_anywhere_is_never_whole),
		cmocka_unit_test(text_that_is_no_log_is_refused),
		cmocka_unit_test(text_between_sections_is_refused),
		cmocka_unit_test(section_that_begins_inside_another_ends_it_unfinished),
		cmocka_unit_test(numbers_out_of_range_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
