#include "agent/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 100

/* The file may have been removed between our open and our lock: then what we hold is a
 * lock on nothing that a third one could find. */
static bool
is_current(const char *path, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

int
lock_try(const char *path, bool exclusive, int *fd, struct err *e)
{
	int f, tries, rc;

	for (tries = 0; tries < 100; tries++) {
		f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (f < 0)
			return err_errno(e, errno, "%s", path);
		do
			rc = flock(f, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
		while (rc != 0 && errno == EINTR);
		if (rc == 0 && is_current(path, f)) {
			*fd = f;
			return 0;
		}
		if (rc != 0) {
			rc = errno;
			close(f);
			return rc == EWOULDBLOCK
				? err_set(e, ERR_BUSY, "%s is held by another job", path)
				: err_errno(e, rc, "%s", path);
		}
		close(f);
	}
	return err_set(e, ERR_BUSY, "%s keeps being replaced", path);
}

int
lock_take(const char *path, bool exclusive, const struct lock_wait *w, int *fd,
	struct err *e)
{
	const struct timespec pause = {0, POLL_MS * 1000000L};
	struct err why = {ERR_NONE, "", ""};
	bool said = false;

	for (;;) {
		if (lock_try(path, exclusive, fd, &why) == 0)
			return 0;
		if (why.code != ERR_BUSY) {
			if (e != NULL)
				*e = why;
			return -1;
		}
		if (!said && w != NULL && w->waiting != NULL)
			w->waiting(w->arg);
		said = true;
		if (w != NULL && w->tick != NULL && w->tick(w->arg) != 0)
			return err_set(e, ERR_CANCELLED, "cancelled while waiting for %s",
				path);
		nanosleep(&pause, NULL);
	}
}

int
lock_share(int fd, struct err *e)
{
	int rc;

	do
		rc = flock(fd, LOCK_SH);
	while (rc != 0 && errno == EINTR);
	return rc ? err_errno(e, errno, "sharing a lock") : 0;
}

void
lock_remove(const char *path)
{
	unlink(path);
}

void
lock_release(int fd)
{
	if (fd >= 0)
		close(fd);
}
