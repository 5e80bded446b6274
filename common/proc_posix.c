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
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "common/plat.h"
#include "common/str.h"

extern char **environ;

#define TICK_MS 250
#define KILL_GRACE_MS 2000 /* between SIGTERM and SIGKILL of a group */
/* What is left of a child that has ended: its group is killed after LEFT_KILL_MS, a quiet
 * pipe is given up after LEFT_QUIET_MS, one that somebody still fills after LEFT_MAX_MS. */
#define LEFT_KILL_MS 500
#define LEFT_QUIET_MS 1500
#define LEFT_MAX_MS 4000

/* Set before fork, so that the child does only what is safe after it. */
struct start {
	const struct proc_spec *spec;
	char **env;
	int out[2], err[2], report[2], null;
};

/* What the child says when it can not become the program. */
struct start_failure {
	int code; /* errno */
	bool in_cwd;
};

static bool
env_is(const char *entry, const char *name, size_t n)
{
	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool
env_has(const char *const *over, const char *entry)
{
	size_t n;

	for (; over != NULL && *over != NULL; over++) {
		n = strcspn(*over, "=");
		if (env_is(entry, *over, n))
			return true;
		if (n > 1 && (*over)[n] == '\0' && (*over)[n - 1] == '*' &&
		    strncmp(entry, *over, n - 1) == 0)
			return true;
	}
	return false;
}

void
proc_env_changes(const char *const *env, void (*each)(void *arg, const char *entry),
	void *arg)
{
	const char *const *v;
	char **entry;

	for (entry = environ; *entry != NULL; entry++) {
		for (v = env; v != NULL && *v != NULL && strcmp(*v, *entry) != 0; v++)
			;
		if ((v == NULL || *v == NULL) && env_has(env, *entry))
			each(arg, *entry);
	}
}

/* Our environment with the overrides; entries are borrowed, the array is owned.  No name
 * stands twice: programs differ in which one they take.  LANGUAGE would translate the
 * messages of compilers in spite of LC_ALL. */
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
	for (i = 0; i < count; i++)
		if (!env_is(environ[i], "LC_ALL", 6) && !env_is(environ[i], "LANGUAGE", 8) &&
		    !env_has(over, environ[i]))
			env[n++] = environ[i];
	if (!env_has(over, locale))
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
	struct start_failure why;
	sigset_t none;
	int i;

	setpgid(0, 0);
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* what we inherited ourselves, or a library opened; an old kernel does not know it */
	syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
#endif
	for (i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	why.in_cwd = s->spec->cwd != NULL && chdir(s->spec->cwd) != 0;
	if (!why.in_cwd && dup2(s->null, 0) >= 0 && dup2(s->out[1], 1) >= 0 &&
	    dup2(s->err[1], 2) >= 0)
		execve(s->spec->argv[0], (char *const *)s->spec->argv, s->env);
	why.code = errno;
	if (write(s->report[1], &why, sizeof why) < 0)
		_exit(126);
	_exit(127);
}

/* Above the three standard streams, which a careless parent may have closed: dup2 onto
 * itself would leave a descriptor to be closed by exec. */
static int
raise_fd(int *fd)
{
	int high;

	if (*fd > 2)
		return 0;
	if ((high = fcntl(*fd, F_DUPFD_CLOEXEC, 3)) < 0)
		return -1;
	close(*fd);
	*fd = high;
	return 0;
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
	if (raise_fd(&s->null) || raise_fd(&s->out[0]) || raise_fd(&s->out[1]) ||
	    raise_fd(&s->err[0]) || raise_fd(&s->err[1]) || raise_fd(&s->report[0]) ||
	    raise_fd(&s->report[1]))
		return err_errno(e, errno, "a descriptor for a child");
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
	struct start_failure why = {0, false};
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
		n = read(s->report[0], &why, sizeof why);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err_errno(e, why.code, why.in_cwd ? "the folder %s" : "start %s",
		why.in_cwd ? s->spec->cwd : s->spec->argv[0]);
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
	bool ended; /* and not yet reaped: while it is a zombie, nobody gets its number */
	bool lost;  /* somebody else reaped it */
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
watch_end(struct watch *w)
{
	siginfo_t info;

	memset(&info, 0, sizeof info);
	if (w->ended)
		return;
	if (waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		w->ended = info.si_pid == w->pid;
	else if (errno == ECHILD)
		w->ended = w->lost = true;
}

/* True when nothing more is wanted of the pipes.  A grandchild that keeps one open after
 * the child has gone is killed with the group; one that left the group is given up. */
static bool
watch_leftovers(const struct watch *w, int64_t since_ms, bool quiet)
{
	if (since_ms > LEFT_KILL_MS && !w->lost)
		kill(-w->pid, SIGKILL);
	return since_ms > LEFT_MAX_MS || (quiet && since_ms > LEFT_QUIET_MS);
}

/* Until both streams are at their end and the child has ended. */
static void
watch_loop(struct watch *w, int out, int err)
{
	struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	int64_t last = 0, now, ended_at = 0;
	int i, ready, open_count = 2;

	while (open_count > 0 || !w->ended) {
		ready = poll(p, 2, w->ended || open_count == 0 ? 20 : TICK_MS);
		for (i = 0; i < 2 && ready > 0; i++)
			if (p[i].fd >= 0 && p[i].revents != 0 &&
			    !drain(w->spec, p[i].fd, i + 1, w->r))
				p[i].fd = -1, open_count--;
		watch_end(w);
		now = plat_mono_ms();
		if (w->ended && ended_at == 0)
			ended_at = now;
		if (w->ended && open_count > 0 && watch_leftovers(w, now - ended_at, ready == 0))
			break;
		if (!w->ended && (now - last >= TICK_MS || w->r->aborted)) {
			last = now;
			watch_limits(w);
		}
	}
}

/* Kills what is left of the group, which is harmless when nothing is, and reaps. */
static void
watch_close(struct watch *w)
{
	struct proc_result *r = w->r;
	pid_t got = -1;

	if (!w->lost) {
		kill(-w->pid, SIGKILL);
		while ((got = wait4(w->pid, &w->status, 0, &w->use)) < 0 && errno == EINTR)
			;
	}
	r->exit = got > 0 && WIFEXITED(w->status) ? WEXITSTATUS(w->status) : -1;
	r->signal = got > 0 && WIFSIGNALED(w->status) ? WTERMSIG(w->status) : 0;
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
	watch_close(&w);
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
	const struct proc_spec spec = {.argv = argv, .cwd = cwd, .timeout_ms = timeout_ms};

	return proc_capture_spec(&spec, max, out, errs, r, e);
}

int
proc_capture_spec(const struct proc_spec *s, size_t max, char **out, char **errs,
	struct proc_result *r, struct err *e)
{
	struct capture c;
	struct proc_spec spec = *s;
	int rc;

	spec.chunk = capture_chunk;
	spec.arg = &c;
	buf_init(&c.buf[0], max);
	buf_init(&c.buf[1], max);
	rc = proc_run(&spec, r, e);
	if (rc == 0 && r->aborted)
		rc = err_set(e, ERR_NOMEM, "no memory for the output of %s", s->argv[0]);
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
	else if (r->aborted)
		snprintf(out, size, "stopped after %lld s", (long long)(r->ms / 1000));
	else if (r->signal != 0)
		snprintf(out, size, "signal %d (SIG%s)", r->signal,
			sigabbrev_np(r->signal) ? sigabbrev_np(r->signal) : "?");
	else
		snprintf(out, size, "exit %d", r->exit);
}
