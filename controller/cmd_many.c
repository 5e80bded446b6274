/* One process per host: a dead host, or a controller that crashes, stops no other. */
#include "controller/cmd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/str.h"
#include "common/verdict.h"
#include "controller/result.h"
#include "controller/table.h"

#define AT_ONCE 32        /* processes; more wait for their turn */
#define LINE_MAX_BYTES 65536
#define CHUNK 4096

/* One of a child's two streams. */
struct stream {
	int fd;               /* -1: closed */
	FILE *to;
	bool prefixed;
	struct buf line;
};

struct child {
	const struct host *host;
	char id[JOB_ID_HEX + 1];
	pid_t pid;            /* 0: not started, -1: ended */
	int status;           /* exit status, once ended */
	struct stream out, err;
};

/* ---- streams ---- */

static void
flush_line(struct child *c, struct stream *s)
{
	if (s->line.len == 0)
		return;
	if (s->prefixed)
		fprintf(s->to, "%s| ", c->host->name);
	fwrite(s->line.data, 1, s->line.len, s->to);
	if (s->line.data[s->line.len - 1] != '\n')
		putc('\n', s->to);
	fflush(s->to);
	s->line.len = 0;
}

static void
take_bytes(struct child *c, struct stream *s, const char *p, size_t n)
{
	const char *nl;
	size_t k;

	while (n > 0) {
		nl = memchr(p, '\n', n);
		k = nl ? (size_t)(nl - p) + 1 : n;
		if (buf_add(&s->line, p, k, NULL)) {
			/* A line longer than any of ours: print it in pieces. */
			flush_line(c, s);
			k = k < LINE_MAX_BYTES ? k : LINE_MAX_BYTES;
			if (buf_add(&s->line, p, k, NULL))
				return;
		}
		if (nl != NULL)
			flush_line(c, s);
		p += k, n -= k;
	}
}

static void
read_stream(struct child *c, struct stream *s)
{
	char buffer[CHUNK];
	ssize_t n = read(s->fd, buffer, sizeof buffer);

	if (n > 0) {
		take_bytes(c, s, buffer, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	flush_line(c, s);
	close(s->fd);
	s->fd = -1;
}

/* ---- children ---- */

static void
run_child(struct child *c, struct pending *pending, const int out[2], const int err[2],
	bool detach, bool json)
{
	int status;

	if (dup2(out[1], STDOUT_FILENO) < 0 || dup2(err[1], STDERR_FILENO) < 0)
		_exit(EXIT_INCOMPLETE);
	close(out[0]), close(out[1]);
	close(err[0]), close(err[1]);
	status = job_drive(c->host, pending, detach, json);
	fflush(stdout);
	fflush(stderr);
	_exit(status);
}

static int
start_child(struct child *c, struct pending *pending, bool detach, bool json)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1};

	fflush(stdout);
	fflush(stderr);
	if (pipe(out) != 0 || pipe(err) != 0)
		goto fail;
	if ((c->pid = fork()) < 0)
		goto fail;
	if (c->pid == 0)
		run_child(c, pending, out, err, detach, json);
	close(out[1]);
	close(err[1]);
	c->out.fd = out[0];
	c->err.fd = err[0];
	return 0;
fail:
	fprintf(stderr, "%s: %s: cannot start: %s\n", CMD_NAME, c->host->name,
		strerror(errno));
	c->pid = -1;
	c->status = EXIT_INCOMPLETE;
	if (out[0] >= 0)
		close(out[0]), close(out[1]);
	if (err[0] >= 0)
		close(err[0]), close(err[1]);
	return -1;
}

static void
end_child(struct child *c)
{
	int status;

	while (waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR) {
			status = 0xff00;
			break;
		}
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_INCOMPLETE;
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: %s: ended by signal %d; the job goes on: attach %.8s\n",
			CMD_NAME, c->host->name, WTERMSIG(status), c->id);
	c->pid = -1;
}

static bool
is_running(const struct child *c)
{
	return c->pid > 0;
}

/* Waits for bytes of any child, passes them on, and ends those that have closed both. */
static void
serve(struct child *children, size_t count)
{
	struct pollfd p[AT_ONCE * 2];
	struct stream *s[AT_ONCE * 2];
	struct child *owner[AT_ONCE * 2];
	nfds_t n = 0, k;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!is_running(&children[i]))
			continue;
		if (children[i].out.fd >= 0)
			owner[n] = &children[i], s[n++] = &children[i].out;
		if (children[i].err.fd >= 0)
			owner[n] = &children[i], s[n++] = &children[i].err;
	}
	for (k = 0; k < n; k++)
		p[k] = (struct pollfd){.fd = s[k]->fd, .events = POLLIN};
	if (n > 0 && poll(p, n, -1) < 0)
		return;
	for (k = 0; k < n; k++)
		if (p[k].revents != 0)
			read_stream(owner[k], s[k]);
	for (i = 0; i < count; i++)
		if (is_running(&children[i]) && children[i].out.fd < 0 && children[i].err.fd < 0)
			end_child(&children[i]);
}

static void
run_all(struct child *children, struct pending **pending, size_t count, bool detach,
	bool json)
{
	size_t next = 0, running, i;

	do {
		for (i = 0, running = 0; i < count; i++)
			running += is_running(&children[i]);
		while (next < count && running < AT_ONCE) {
			running += start_child(&children[next], pending[next], detach, json) == 0;
			next++;
		}
		if (running > 0)
			serve(children, count);
	} while (running > 0 || next < count);
}

/* ---- the summary ---- */

static void
status_word(int status, char *out, size_t size)
{
	static const char *const words[] = {"recordable pass", "fail", "usage or bad input",
		"blocked", "refused", "no contact", "no answer yet, or cut off",
		"passed, not recordable"};

	if (status >= 0 && (size_t)status < str_count(words))
		snprintf(out, size, "%s", words[status]);
	else
		snprintf(out, size, "exit %d", status);
}

static void
add_summary(struct table *t, struct ledger *l, const struct child *c)
{
	struct ledger_list list = {0};
	char verdict[400], exit[16];
	const char *cells[4] = {c->host->name, exit, verdict, NULL};

	snprintf(exit, sizeof exit, "%d", c->status);
	if (l != NULL && ledger_get(l, c->id, &list, NULL) == 0) {
		result_line(&list.runs[0], verdict, sizeof verdict);
		cells[3] = list.runs[0].device_class;
	} else
		status_word(c->status, verdict, sizeof verdict);
	table_row(t, cells);
	ledger_list_fini(&list);
}

static int
print_summary(const struct child *children, size_t count)
{
	static const char *const heads[] = {"HOST", "EXIT", "VERDICT", "CLASS", NULL};
	struct progress_look look;
	struct ledger *l = NULL;
	struct err e = {0};
	struct table t;
	size_t i;
	int rc;

	/* A ledger that can not be read makes the table poorer, not the runs. */
	if (cmd_ledger_read(&l, &e))
		(void)cmd_fail(&e);
	memset(&e, 0, sizeof e);
	cmd_look(&look);
	table_init(&t, heads);
	for (i = 0; i < count; i++)
		add_summary(&t, l, &children[i]);
	putchar('\n');
	rc = table_print(&t, stdout, look.colour, &e);
	table_fini(&t);
	ledger_close(l);
	return rc ? cmd_fail(&e) : EXIT_PASS;
}

int
job_drive_many(const struct host *const *hosts, struct pending **pending, size_t count,
	bool detach, bool json)
{
	struct child *children = calloc(count, sizeof *children);
	int *exits = calloc(count, sizeof *exits);
	struct err e = {0};
	size_t i;
	int status;

	if (children == NULL || exits == NULL) {
		err_set(&e, ERR_NOMEM, "no memory for the hosts");
		status = cmd_fail(&e);
		goto out;
	}
	for (i = 0; i < count; i++) {
		children[i].host = hosts[i];
		memcpy(children[i].id, pending[i]->job->id, sizeof children[i].id);
		children[i].out = (struct stream){.fd = -1, .to = stdout, .prefixed = !json};
		children[i].err = (struct stream){.fd = -1, .to = stderr, .prefixed = true};
		buf_init(&children[i].out.line, LINE_MAX_BYTES);
		buf_init(&children[i].err.line, LINE_MAX_BYTES);
	}
	/* Ctrl-C reaches every child, and they decide. */
	signal(SIGINT, SIG_IGN);
	run_all(children, pending, count, detach, json);
	signal(SIGINT, SIG_DFL);
	for (i = 0; i < count; i++)
		exits[i] = children[i].status;
	status = verdict_worst_exit(exits, count);
	if (!json && !detach && print_summary(children, count) != EXIT_PASS &&
	    status == EXIT_PASS)
		status = EXIT_INCOMPLETE;
out:
	for (i = 0; i < count; i++) {
		if (children != NULL) {
			buf_fini(&children[i].out.line);
			buf_fini(&children[i].err.line);
		}
		pending_free(pending[i]);
	}
	free(children);
	free(exits);
	return status;
}
