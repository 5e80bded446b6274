/*
 * listen - the socket an agent answers on: a Unix socket, loopback, or systemd's.
 *
 * Anything else would let strangers start jobs: until controllers have keys it is the
 * start-up error listen_needs_keys.  Life: listen_open, listen_close.
 */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <stdbool.h>

#include "common/err.h"

struct listener {
	int fd;            /* listening; -1 none */
	bool tcp;
	char url[256];     /* "http://127.0.0.1:8080", "unix:/run/x/agent.sock" */
	char path[128];    /* of our Unix socket, to be removed; "" none */
};

/* address: unix:/PATH (0660; a stale socket is replaced, a living one is ERR_CONFLICT),
 * 127.0.0.1:PORT, [::1]:PORT; port 0 is any free one.  ERR_REFUSED: not loopback.
 * NULL: the socket that systemd passed (LISTEN_FDS), ERR_NOTFOUND when it passed none. */
CHECKED int listen_open(const char *address, struct listener *out, struct err *e);
void listen_close(struct listener *l);

/* True for the names and addresses of this machine's loopback in a Host header, with or
 * without a port.  A page in a browser that has its own name resolve to 127.0.0.1 sends
 * that name. */
bool listen_is_loopback(const char *host);

#endif
