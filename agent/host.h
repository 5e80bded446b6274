/*
 * host - what GET /v1/host answers: the probe, made by a child process and kept a while.
 *
 * A driver that hangs or crashes while it is probed costs the child, never the agent, and
 * the event thread never waits: a request that finds nothing fresh is suspended in
 * libmicrohttpd and its handler called again when the probe is there.
 * Threads: host_get is called by libmicrohttpd's thread.
 */
#ifndef AGENT_HOST_H
#define AGENT_HOST_H

#include <stdbool.h>

#include <microhttpd.h>

#include "common/err.h"

#define HOST_FRESH_MS 60000   /* an answer is used so long */
#define HOST_TIMEOUT_MS 60000 /* for the probe */
#define HOST_MAX_BYTES 262144

struct host;

/* argv (kept) prints the probe as JSON; argv[0] is absolute.  Gives *out. */
CHECKED int host_new(const char *const *argv, struct host **out, struct err *e);
/* Before MHD_stop_daemon: resumes who waits, with ERR_BUSY. */
void host_stop(struct host *h);
void host_free(struct host *h); /* NULL is fine; after MHD_stop_daemon */

/* *text (free with free()), or *parked: c is suspended and its handler will be called
 * again.  The error of a failed probe stands for two seconds. */
CHECKED int host_get(struct host *h, struct MHD_Connection *c, bool *parked, char **text,
	struct err *e);

#endif
