/*
 * session - one job on one host, from the request to the row in the ledger.
 *
 * Life: session_open, session_begin, session_follow, session_collect, session_close.
 * One session per process at a time: it owns SIGINT and SIGTERM while it is open.
 *
 * Ctrl-C while following: the first says that the job will be left alone and waits two
 * seconds; a second one within these cancels the job and waits for its report; a third
 * leaves at once.  Otherwise, and at SIGTERM, the session detaches: the job goes on.
 */
#ifndef CONTROLLER_SESSION_H
#define CONTROLLER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "controller/client.h"
#include "controller/inventory.h"
#include "controller/pending.h"
#include "controller/progress.h"

#define SESSION_DETACH_MS 2000        /* between Ctrl-C and leaving */
#define SESSION_LOST_MS (10 * 60000)  /* without contact before giving up waiting */

struct session {
	const struct host *host;  /* borrowed */
	struct reach reach;
	struct client *client;
	struct client *side;      /* for logs that come while events are streamed */
	struct agent_health health;
	bool fresh_pin;           /* this was the first contact */
	struct progress *progress;
	struct pending *pending;
	bool json;
	uint64_t last_event;
	/* state of the interrupt, by the clock that never steps */
	int seen;                 /* interrupts acted upon */
	int64_t detach_at;        /* 0: not detaching */
	bool following, cancelling, detached, cancel_wanted, done;
};

/* Health, API version, pin.  ERR_UNREACHABLE, ERR_REFUSED, ERR_UNSUPPORTED.  Fill *s with
 * {0}; session_close also after a failure. */
CHECKED int session_open(struct session *s, const struct host *host, bool json,
	struct err *e);
/* Takes pending; writes it down, submits it, and sets up the display. */
CHECKED int session_begin(struct session *s, struct pending *pending, struct err *e);
/* Until the job ended.  ERR_CANCELLED: detached on request (the message says how to go
 * on); ERR_UNREACHABLE: no contact for too long. */
CHECKED int session_follow(struct session *s, struct err *e);
/* Pulls, appraises, stores, acknowledges, forgets the pending job. */
CHECKED int session_collect(struct session *s, struct err *e);
void session_close(struct session *s);

/* Asks the agent to cancel. */
CHECKED int session_cancel(struct session *s, const char *id, struct err *e);

#endif
