/*
 * lock - a file that one process (or many readers) holds; the kernel lets go of it when a
 * holder dies, however it dies.
 *
 * Not inherited by children.  Threads: a lock stays with one thread.
 */
#ifndef AGENT_LOCK_H
#define AGENT_LOCK_H

#include <stdbool.h>

#include "common/err.h"

/* Gives *fd, closed with lock_release.  ERR_BUSY: somebody else holds it.  The folder must
 * exist; the file is made. */
CHECKED int lock_try(const char *path, bool exclusive, int *fd, struct err *e);

struct lock_wait {
	int (*tick)(void *arg);    /* optional; non-zero gives up with ERR_CANCELLED */
	void (*waiting)(void *arg); /* optional; called once when there is a wait */
	void *arg;
};
/* Waits as long as it takes; w may be NULL. */
CHECKED int lock_take(const char *path, bool exclusive, const struct lock_wait *w, int *fd,
	struct err *e);
/* From exclusive to shared. */
CHECKED int lock_share(int fd, struct err *e);
/* Removes the file of a lock that is held exclusively; the lock stays held. */
void lock_remove(const char *path);
void lock_release(int fd); /* -1 is fine */

#endif
