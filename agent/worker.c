/* The worker's process: its start, its session, what it left on the disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/queue_impl.h"
#include "common/str.h"

/* Between fork and exec: async-signal-safe calls only. */
static void
child_become(const char *program, char *const argv[], pid_t parent)
{
	static const int reset[] = {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGCHLD};
	sigset_t none;
	size_t i;
	int null;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGHUP);
	if (getppid() != parent)
		_exit(EXIT_INCOMPLETE);
	for (i = 0; i < str_count(reset); i++)
		signal(reset[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if ((null = open("/dev/null", O_RDONLY)) >= 0)
		dup2(null, 0);
	dup2(2, 1); /* what it says goes where the agent's own log goes */
	execv(program, argv);
	_exit(127);
}

pid_t
worker_start(const struct queue *q, const char *id, const char *mortem, struct err *e)
{
	const char *argv[12] = {q->program, "work", "--state", store_dir(q->store), "--job",
		id};
	int n = 6;
	pid_t parent = getpid(), pid;

	if (q->config != NULL) {
		argv[n++] = "--config";
		argv[n++] = q->config;
	}
	if (mortem != NULL) {
		argv[n++] = "--post-mortem";
		argv[n++] = mortem;
	}
	if ((pid = fork()) == 0)
		child_become(q->program, (char *const *)argv, parent);
	if (pid < 0)
		err_errno(e, errno, "start a worker");
	return pid;
}

struct proc_stat {
	char state;       /* 'Z': dead, not waited for */
	int session;
	uint64_t started; /* clock ticks after boot */
};

/* Fields 3, 6 and 22 of /proc/PID/stat; the command's name, field 2, may hold spaces and
 * brackets, so that its last bracket is where counting starts. */
static bool
stat_read(pid_t pid, struct proc_stat *out)
{
	char path[40], text[1024], *p;
	ssize_t n;
	int fd;

	if (str_fmt(path, sizeof path, NULL, "/proc/%d/stat", (int)pid) ||
	    (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if ((p = strrchr(text, ')')) == NULL)
		return false;
	return sscanf(p + 1, " %c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
		" %*d %*d %*d %*d %" SCNu64, &out->state, &out->session,
		&out->started) == 3;
}

uint64_t
worker_started(pid_t pid)
{
	struct proc_stat st;

	return stat_read(pid, &st) ? st.started : 0;
}

static unsigned
session_signal(pid_t session)
{
	struct proc_stat st;
	struct dirent *d;
	unsigned hit = 0;
	uint32_t pid;
	DIR *proc = opendir("/proc");

	if (proc == NULL)
		return 0;
	while ((d = readdir(proc)) != NULL) {
		if (str_u32(d->d_name, 2, INT32_MAX, &pid, NULL) ||
		    !stat_read((pid_t)pid, &st) || st.session != session ||
		    st.state == 'Z')
			continue;
		if (kill((pid_t)pid, SIGKILL) == 0)
			hit++;
	}
	closedir(proc);
	return hit;
}

void
worker_kill(pid_t session)
{
	int round;

	if (session <= 1)
		return;
	kill(session, SIGKILL); /* the worker first: it starts nothing more */
	/* Children have groups of their own but the worker's session.  A second look
	 * catches what was forked during the first. */
	for (round = 0; round < 3 && session_signal(session) > 0; round++)
		usleep(2000);
}

uint64_t
worker_spool_bytes(const char *path)
{
	char *roots[2] = {(char *)path, NULL};
	uint64_t sum = 0;
	FTSENT *f;
	FTS *t = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);

	if (t == NULL)
		return 0;
	while ((f = fts_read(t)) != NULL)
		if (f->fts_info == FTS_F)
			sum += (uint64_t)f->fts_statp->st_size;
	fts_close(t);
	return sum;
}
