/*
 * stream - event streams that stay open: a job's NDJSON file followed over HTTP.
 *
 * A stream with nothing to send is suspended in libmicrohttpd; one thread watches the
 * events folder (inotify) and the clients' sockets and resumes what has something to do:
 * new lines, the job's end, a heartbeat, a client that left.  Without streams the thread
 * sleeps for ever.
 *
 * Only whole lines are sent.  Threads: stream_open is called by libmicrohttpd's thread,
 * stream_ended by any (with the store locked or not: streams never lock it).
 */
#ifndef AGENT_STREAM_H
#define AGENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <microhttpd.h>

#include "common/err.h"

struct streams;

/* events_dir is watched; heartbeat_s: an empty line after so much silence.  max bounds
 * the streams that are open at the same time.  Gives *out. */
CHECKED int streams_new(const char *events_dir, unsigned max, unsigned heartbeat_s,
	struct streams **out, struct err *e);
/* Before MHD_stop_daemon: ends every stream (properly terminated, without the rest of
 * its events) and waits until libmicrohttpd has let go of them.  No stream is opened any
 * more. */
void streams_stop(struct streams *ss);
void streams_free(struct streams *ss); /* NULL is fine; after MHD_stop_daemon */
unsigned streams_count(struct streams *ss);

struct stream_spec {
	const char *id;    /* of the job */
	const char *path;  /* its events */
	uint64_t after;    /* skip events up to this sequence number */
	bool ended;        /* the job has ended: the stream does with its last line */
	bool follow;       /* false: as if it had */
};
/* A response that streams; gives *out (MHD_destroy_response).  ERR_BUSY: too many. */
CHECKED int stream_open(struct streams *ss, struct MHD_Connection *c,
	const struct stream_spec *spec, struct MHD_Response **out, struct err *e);
/* The job has ended and its last event is in the file. */
void stream_ended(struct streams *ss, const char *id);

#endif
