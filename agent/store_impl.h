/* store_impl - what store.c and store_open.c share; nobody else includes it. */
#ifndef AGENT_STORE_IMPL_H
#define AGENT_STORE_IMPL_H

#include <pthread.h>

#include "agent/store.h"

struct store {
	char dir[3500]; /* so that every path below fits 4096 */
	int lock_fd;
	pthread_mutex_t mutex;
	struct entry *entries; /* by submission, oldest first */
	size_t count, cap, max_known;
};

CHECKED int store_insert(struct store *st, const struct job_state *s, struct entry **out,
	struct err *e);
CHECKED int store_live(struct entry *en, const struct job_state *s, struct err *e);

#endif
