#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "common/plat.h"
#include "common/str.h"

extern char **environ;

#define TICK_MS 250
#define KILL_GRACE_MS 2000 /* between SIGTERM and SIGKILL of a group */
#define MAX_ENV 64

/* Set before fork, so that the child does only what is safe after it. */
struct start {
	const struct proc_spec *spec;
	char **env;
	int out[2], err[2], report[2], null;
};

static bool
env_is(const char *entry, const char *name, size_t n)
{
	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Our environment with the overrides; entries are borrowed, the array is owned. */
static char **
env_make(const char *const *over)
{
	static char locale[] = "LC_ALL=C.UTF-8";
	size_t count = 0, n = 0, i, k, over_count = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	while (over != NULL && over[over_count] != NULL)
		over_count++;
	if ((env = calloc(count + over_count + 2, sizeof *env)) == NULL)
		return NULL;
	for (i = 0; i < count; i++) {
		bool replaced = env_is(environ[i], "LC_ALL", 6);

		for (k = 0; k < over_count && !replaced; k++)
			replaced = env_is(environ[i], over[k], strcspn(over[k], "="));
		if (!replaced)
			env[n++] = environ[i];
	}
	env[n++] = locale;
	for (k = 0; k < over_count; k++)
		if (strchr(over[k], '=') != NULL)
			env[n++] = (char *)over[k];
	return env;
}

static void
close_pair(int fd[2])
{
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	fd[0] = fd[1] = -1;
}

/* In the child.  Tells the parent errno through the report pipe and never returns. */
static void
child(const struct start *s)
{
	sigset_t none;
	int code;

	setpgid(0, 0);
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (dup2(s->null, 0) >= 0 && dup2(s->out[1], 1) >= 0 && dup2(s->err[1], 2) >= 0 &&
	    (s->spec->cwd == NULL || chdir(s->spec->cwd) == 0))
		execve(s->spec->argv[0], (char *const *)s->spec->argv, s->env);
	code = errno;
	if (write(s->report[1], &code, sizeof code) < 0)
		_exit(126);
	_exit(127);
}

static int
start_open(struct start *s, struct err *e)
{
	s->out[0] = s->out[1] = s->err[0] = s->err[1] = s->report[0] = s->report[1] = -1;
	if ((s->null = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "/dev/null");
	if (pipe2(s->out, O_CLOEXEC) || pipe2(s->err, O_CLOEXEC) ||
	    pipe2(s->report, O_CLOEXEC))
		return err_errno(e, errno, "pipe");
	if ((s->env = env_make(s->spec->env)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for an environment");
	return 0;
}

static void
start_close(struct start *s)
{
	if (s->null >= 0)
		close(s->null);
	close_pair(s->out);
	close_pair(s->err);
	close_pair(s->report);
	free(s->env);
}

/* Forks; 0 with the pid when exec succeeded. */
static int
start_child(struct start *s, pid_t *pid, struct err *e)
{
	int code = 0;
	ssize_t n;

	if ((*pid = fork()) < 0)
		return err_errno(e, errno, "fork");
	if (*pid == 0)
		child(s);
	setpgid(*pid, *pid); /* in both, so that neither races */
	close(s->out[1]);
	close(s->err[1]);
	close(s->report[1]);
	s->out[1] = s->err[1] = s->report[1] = -1;
	do
		n = read(s->report[0], &code, sizeof code);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	waitpid(*pid, NULL, 0);
	return err_errno(e, code, "start %s", s->spec->argv[0]);
}

/* Moves what is there to the callee; false at end of file. */
static bool
drain(const struct proc_spec *spec, int fd, int stream, struct proc_result *r)
{
	char chunk[65536];
	ssize_t n;

	n = read(fd, chunk, sizeof chunk);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	if (spec->chunk != NULL && !r->aborted && spec->chunk(spec->arg, stream, chunk, (size_t)n))
		r->aborted = true;
	return true;
}

struct watch {
	const struct proc_spec *spec;
	struct proc_result *r;
	pid_t pid;
	int64_t begun, term_at; /* term_at: 0 until SIGTERM was sent */
	bool reaped;
	int status;
	struct rusage use;
};

/* Decides whether the child must go, and makes it go. */
static void
watch_limits(struct watch *w)
{
	int64_t now = plat_mono_ms();
	const struct proc_spec *s = w->spec;

	if (w->term_at == 0) {
		if (s->timeout_ms != 0 && now - w->begun >= s->timeout_ms)
			w->r->timed_out = true;
		else if (!w->r->aborted && s->tick != NULL && s->tick(s->arg))
			w->r->cancelled = true;
		if (!w->r->timed_out && !w->r->cancelled && !w->r->aborted)
			return;
		w->term_at = now;
		kill(-w->pid, SIGTERM);
	} else if (now - w->term_at >= KILL_GRACE_MS) {
		kill(-w->pid, SIGKILL);
	}
}

static void
watch_reap(struct watch *w)
{
	if (!w->reaped && wait4(w->pid, &w->status, WNOHANG, &w->use) == w->pid)
		w->reaped = true;
}

/* Until both streams are at their end and the child is reaped.  A grandchild that keeps
 * a pipe open after the child has gone is killed with the group. */
static void
watch_loop(struct watch *w, int out, int err)
{
	struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	int64_t last = 0, now, reaped_at = 0;
	int i, open_count = 2;

	while (open_count > 0 || !w->reaped) {
		if (poll(p, 2, w->reaped || open_count == 0 ? 20 : TICK_MS) > 0)
			for (i = 0; i < 2; i++)
				if (p[i].fd >= 0 && p[i].revents != 0 &&
				    !drain(w->spec, p[i].fd, i + 1, w->r))
					p[i].fd = -1, open_count--;
		watch_reap(w);
		now = plat_mono_ms();
		if (w->reaped && reaped_at == 0)
			reaped_at = now;
		if (w->reaped && open_count > 0 && now - reaped_at > 500) {
			kill(-w->pid, SIGKILL);
			if (now - reaped_at > 1500)
				break;
		}
		if (!w->reaped && (now - last >= TICK_MS || w->r->aborted)) {
			last = now;
			watch_limits(w);
		}
	}
}

static void
result_fill(const struct watch *w)
{
	struct proc_result *r = w->r;

	r->exit = WIFEXITED(w->status) ? WEXITSTATUS(w->status) : -1;
	r->signal = WIFSIGNALED(w->status) ? WTERMSIG(w->status) : 0;
	r->ms = plat_mono_ms() - w->begun;
	r->max_rss_kib = w->use.ru_maxrss;
}

int
proc_run(const struct proc_spec *spec, struct proc_result *r, struct err *e)
{
	struct start s = {.spec = spec};
	struct watch w = {.spec = spec, .r = r};
	int rc = -1;

	memset(r, 0, sizeof *r);
	r->exit = -1;
	w.begun = plat_mono_ms();
	if (start_open(&s, e) || start_child(&s, &w.pid, e))
		goto out;
	watch_loop(&w, s.out[0], s.err[0]);
	kill(-w.pid, SIGKILL); /* leftovers of the group; harmless when there are none */
	result_fill(&w);
	rc = 0;
out:
	start_close(&s);
	return rc;
}

struct capture {
	struct buf buf[2];
};

static int
capture_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct capture *c = arg;
	struct buf *b = &c->buf[stream - 1];
	size_t room = b->max - b->len;

	return buf_add(b, p, n < room ? n : room, NULL);
}

int
proc_capture(const char *const *argv, const char *cwd, uint32_t timeout_ms, size_t max,
	char **out, char **errs, struct proc_result *r, struct err *e)
{
	struct capture c;
	struct proc_spec spec = {.argv = argv, .cwd = cwd, .timeout_ms = timeout_ms,
		.chunk = capture_chunk, .arg = &c};
	int rc;

	buf_init(&c.buf[0], max);
	buf_init(&c.buf[1], max);
	rc = proc_run(&spec, r, e);
	if (rc == 0 && (buf_add(&c.buf[0], "", 0, e) || buf_add(&c.buf[1], "", 0, e)))
		rc = -1;
	if (rc == 0 && out != NULL)
		*out = buf_take(&c.buf[0]);
	if (rc == 0 && errs != NULL)
		*errs = buf_take(&c.buf[1]);
	buf_fini(&c.buf[0]);
	buf_fini(&c.buf[1]);
	return rc;
}

void
proc_describe(const struct proc_result *r, char *out, size_t size)
{
	if (r->timed_out)
		snprintf(out, size, "timed out after %lld s", (long long)(r->ms / 1000));
	else if (r->cancelled)
		snprintf(out, size, "cancelled after %lld s", (long long)(r->ms / 1000));
	else if (r->signal != 0)
		snprintf(out, size, "signal %d (SIG%s)", r->signal,
			sigabbrev_np(r->signal) ? sigabbrev_np(r->signal) : "?");
	else
		snprintf(out, size, "exit %d", r->exit);
}
