#include "agent/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/job.h"
#include "common/plat.h"
#include "common/str.h"

#define BLOCK 16384
#define TICK_MS 40      /* where inotify is not to be had */
#define QUIET_MS 5      /* a burst of lines wakes us so often, not once a line */
#define END_MS 1000     /* streams_stop: per try */
#define THREAD_STACK 131072

struct stream {
	struct streams *all;
	struct stream *next;
	struct MHD_Connection *conn;
	int sock;            /* of the client */
	int fd;              /* of the events */
	char id[JOB_ID_HEX + 1];
	off_t at;            /* sent or skipped up to here */
	off_t whole;         /* end of the last whole line known */
	off_t seen;          /* end of the file when it was read last */
	uint64_t skip;       /* lines still to be skipped */
	int64_t said_ms;     /* when something was sent last */
	bool ended;          /* no more lines will come */
	bool suspended;
	bool dead;           /* the client has left */
	bool beat;           /* a heartbeat is due */
};

struct streams {
	pthread_mutex_t mutex; /* guards the list, its flags, suspend and resume */
	pthread_cond_t gone;   /* a stream left the list */
	struct stream *list;
	unsigned count, max;
	int64_t beat_ms;
	char dir[4096];
	int inotify, watch;    /* -1: none */
	int wake;              /* eventfd */
	bool stop;
	pthread_t thread;
	bool thread_on;
};

static void
wake(const struct streams *ss)
{
	static const uint64_t one = 1;
	ssize_t n;

	do
		n = write(ss->wake, &one, sizeof one);
	while (n < 0 && errno == EINTR);
}

/* ---- the watching thread; every function with the mutex held ---- */

static bool
client_left(const struct stream *s)
{
	struct pollfd p = {.fd = s->sock, .events = POLLRDHUP};

	/* libmicrohttpd does not look at a suspended connection, so we must. */
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static bool
has_grown(const struct stream *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && st.st_size != s->seen;
}

static void
look(struct streams *ss)
{
	int64_t now = plat_mono_ms();
	struct stream *s;

	for (s = ss->list; s != NULL; s = s->next) {
		if (!s->suspended)
			continue;
		s->dead = client_left(s);
		s->beat = now - s->said_ms >= ss->beat_ms;
		if (!s->dead && !s->beat && !s->ended && !ss->stop && !has_grown(s))
			continue;
		s->suspended = false;
		MHD_resume_connection(s->conn);
	}
}

/* What to poll: slot 0 wakes us, slot 1 is inotify, then the clients. */
static nfds_t
polls_fill(struct streams *ss, struct pollfd *fds, int *timeout)
{
	int64_t now = plat_mono_ms(), left;
	struct stream *s;
	nfds_t n = 2;

	fds[0] = (struct pollfd){.fd = ss->wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = ss->inotify, .events = POLLIN};
	*timeout = -1;
	for (s = ss->list; s != NULL; s = s->next) {
		if (!s->suspended)
			continue;
		fds[n++] = (struct pollfd){.fd = s->sock, .events = POLLRDHUP};
		left = s->said_ms + ss->beat_ms - now;
		if (left < 0)
			left = 0;
		if (*timeout < 0 || left < *timeout)
			*timeout = (int)left;
	}
	if (ss->watch < 0 && n > 2 && *timeout > TICK_MS)
		*timeout = TICK_MS;
	return n;
}

static void
drain(int fd)
{
	char junk[4096];

	while (fd >= 0 && read(fd, junk, sizeof junk) > 0)
		;
}

static void *
watch_main(void *arg)
{
	static const struct timespec quiet = {.tv_nsec = QUIET_MS * 1000000};
	struct streams *ss = arg;
	struct pollfd *fds = calloc(ss->max + 2, sizeof *fds);
	nfds_t n;
	int timeout;

	if (fds == NULL)
		return NULL;
	for (;;) {
		pthread_mutex_lock(&ss->mutex);
		if (ss->stop) {
			pthread_mutex_unlock(&ss->mutex);
			break;
		}
		look(ss);
		n = polls_fill(ss, fds, &timeout);
		pthread_mutex_unlock(&ss->mutex);
		if (poll(fds, n, timeout) <= 0)
			continue;
		if (fds[1].revents != 0)
			nanosleep(&quiet, NULL);
		drain(ss->wake);
		drain(ss->inotify);
	}
	free(fds);
	return NULL;
}

/* ---- the folder's watch lives as long as there is a stream ---- */

static void
list_add(struct streams *ss, struct stream *s)
{
	s->next = ss->list;
	ss->list = s;
	if (ss->count++ == 0 && ss->inotify >= 0)
		ss->watch = inotify_add_watch(ss->inotify, ss->dir, IN_MODIFY);
}

static void
list_remove(struct streams *ss, const struct stream *s)
{
	struct stream **p;

	for (p = &ss->list; *p != NULL; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			if (--ss->count == 0 && ss->watch >= 0) {
				inotify_rm_watch(ss->inotify, ss->watch);
				ss->watch = -1;
			}
			break;
		}
	pthread_cond_broadcast(&ss->gone);
}

/* ---- libmicrohttpd's thread ---- */

/* Looks for more whole lines: skips those not asked for, leaves whole behind the last. */
static int
lines_find(struct stream *s)
{
	char block[BLOCK];
	ssize_t n, i;
	off_t from = s->whole;

	for (;;) {
		if ((n = pread(s->fd, block, sizeof block, from)) < 0)
			return errno == EINTR ? 0 : -1;
		s->seen = from + n;
		if (n == 0)
			return 0;
		for (i = 0; i < n; i++) {
			if (block[i] != '\n')
				continue;
			s->whole = from + i + 1;
			if (s->skip > 0) {
				s->skip--;
				s->at = s->whole;
			}
		}
		from += n;
		if (s->whole > s->at)
			return 0;
	}
}

/* Nothing to send: sleep until the watching thread says otherwise.  Returning 0 without
 * being suspended would spin. */
static ssize_t
rest(struct stream *s)
{
	struct streams *ss = s->all;
	ssize_t rc = 0;

	pthread_mutex_lock(&ss->mutex);
	if (ss->stop) {
		rc = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		s->suspended = true;
		MHD_suspend_connection(s->conn);
	}
	pthread_mutex_unlock(&ss->mutex);
	/* What came since we looked is found by the look that follows. */
	if (rc == 0)
		wake(ss);
	return rc;
}

struct mood {
	bool ended, dead, beat, stop;
};

static struct mood
mood_take(struct stream *s)
{
	struct mood m;

	pthread_mutex_lock(&s->all->mutex);
	m = (struct mood){s->ended, s->dead, s->beat, s->all->stop};
	s->beat = false;
	pthread_mutex_unlock(&s->all->mutex);
	return m;
}

static ssize_t
reader(void *cls, uint64_t pos, char *out, size_t max)
{
	struct stream *s = cls;
	struct mood m = mood_take(s); /* before the file: the last line comes before it */
	size_t n;
	ssize_t got;

	(void)pos; /* heartbeats and skipped lines make it another offset than ours */
	/* A proper end, not an error: who only closed its sending half can read it. */
	if (m.dead)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (s->at == s->whole && lines_find(s))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = (size_t)(s->whole - s->at);
	if (n > max)
		n = max;
	if (n > 0 && (got = pread(s->fd, out, n, s->at)) > 0) {
		s->at += got;
		s->said_ms = plat_mono_ms();
		return got;
	}
	if (n > 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (m.ended || m.stop)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (m.beat) {
		s->said_ms = plat_mono_ms();
		out[0] = '\n';
		return 1;
	}
	return rest(s);
}

static void
stream_free(void *cls)
{
	struct stream *s = cls;
	struct streams *ss = s->all;

	pthread_mutex_lock(&ss->mutex);
	list_remove(ss, s);
	pthread_mutex_unlock(&ss->mutex);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

static int
stream_admit(struct streams *ss, struct stream *s, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&ss->mutex);
	if (ss->stop)
		rc = err_set(e, ERR_BUSY, "the agent is stopping");
	else if (ss->count >= ss->max)
		rc = err_set(e, ERR_BUSY, "%u event streams are open already", ss->max);
	else
		list_add(ss, s);
	pthread_mutex_unlock(&ss->mutex);
	return rc;
}

int
stream_open(struct streams *ss, struct MHD_Connection *c, const struct stream_spec *spec,
	struct MHD_Response **out, struct err *e)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct stream *s;

	if ((s = calloc(1, sizeof *s)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a stream");
	s->all = ss;
	s->conn = c;
	s->sock = info->connect_fd;
	s->skip = spec->after;
	s->ended = spec->ended || !spec->follow;
	s->said_ms = plat_mono_ms();
	s->fd = open(spec->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0) {
		err_errno(e, errno, "the events of job %s", spec->id);
		free(s);
		return -1;
	}
	if (str_copy(s->id, sizeof s->id, spec->id, e) || stream_admit(ss, s, e)) {
		close(s->fd);
		free(s);
		return -1;
	}
	*out = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, reader, s,
		stream_free);
	if (*out == NULL) {
		stream_free(s);
		return err_set(e, ERR_NOMEM, "no memory for a stream");
	}
	return 0;
}

void
stream_ended(struct streams *ss, const char *id)
{
	struct stream *s;
	bool any = false;

	pthread_mutex_lock(&ss->mutex);
	for (s = ss->list; s != NULL; s = s->next)
		if (strcmp(s->id, id) == 0)
			s->ended = any = true;
	pthread_mutex_unlock(&ss->mutex);
	if (any)
		wake(ss);
}

unsigned
streams_count(struct streams *ss)
{
	unsigned n;

	pthread_mutex_lock(&ss->mutex);
	n = ss->count;
	pthread_mutex_unlock(&ss->mutex);
	return n;
}

/* ---- life ---- */

static int
thread_start(struct streams *ss, struct err *e)
{
	pthread_attr_t attr;
	int bad;

	if (pthread_attr_init(&attr))
		return err_set(e, ERR_NOMEM, "no memory for a thread");
	bad = pthread_attr_setstacksize(&attr, THREAD_STACK);
	if (bad == 0)
		bad = pthread_create(&ss->thread, &attr, watch_main, ss);
	pthread_attr_destroy(&attr);
	if (bad != 0)
		return err_errno(e, bad, "start the thread of the streams");
	ss->thread_on = true;
	return 0;
}

int
streams_new(const char *events_dir, unsigned max, unsigned heartbeat_s,
	struct streams **out, struct err *e)
{
	struct streams *ss;
	int rc = -1;

	if ((ss = calloc(1, sizeof *ss)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the streams");
	ss->max = max;
	ss->beat_ms = (int64_t)heartbeat_s * 1000;
	ss->watch = ss->wake = -1;
	/* A user may have no inotify instance left; then a tick does. */
	ss->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (pthread_mutex_init(&ss->mutex, NULL) || pthread_cond_init(&ss->gone, NULL)) {
		err_set(e, ERR_NOMEM, "no mutex");
		goto out;
	}
	if ((ss->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		err_errno(e, errno, "eventfd");
		goto out;
	}
	if (str_copy(ss->dir, sizeof ss->dir, events_dir, e) || thread_start(ss, e))
		goto out;
	*out = ss, ss = NULL;
	rc = 0;
out:
	streams_free(ss);
	return rc;
}

/* Waits until the list is empty; false after END_MS. */
static bool
list_wait(struct streams *ss)
{
	struct timespec until;
	int bad = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_MS / 1000;
	while (ss->list != NULL && bad == 0)
		bad = pthread_cond_timedwait(&ss->gone, &ss->mutex, &until);
	return ss->list == NULL;
}

void
streams_stop(struct streams *ss)
{
	struct stream *s;

	pthread_mutex_lock(&ss->mutex);
	ss->stop = true;
	look(ss); /* resumes every one: libmicrohttpd aborts over a suspended connection */
	pthread_mutex_unlock(&ss->mutex);
	wake(ss);
	if (ss->thread_on)
		pthread_join(ss->thread, NULL);
	ss->thread_on = false;
	pthread_mutex_lock(&ss->mutex);
	if (!list_wait(ss)) {
		/* Clients that do not read. */
		for (s = ss->list; s != NULL; s = s->next)
			shutdown(s->sock, SHUT_RDWR);
		list_wait(ss);
	}
	pthread_mutex_unlock(&ss->mutex);
}

void
streams_free(struct streams *ss)
{
	if (ss == NULL)
		return;
	if (ss->thread_on)
		streams_stop(ss);
	if (ss->inotify >= 0)
		close(ss->inotify);
	if (ss->wake >= 0)
		close(ss->wake);
	pthread_cond_destroy(&ss->gone);
	pthread_mutex_destroy(&ss->mutex);
	free(ss);
}
