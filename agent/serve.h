/*
 * serve - the daemon: `verify-agent serve`, and what its parts share.
 *
 * Threads: main (queue.h), libmicrohttpd's one (http.h), the streams' one (stream.h), and
 * one while the host is probed (host.h).
 */
#ifndef AGENT_SERVE_H
#define AGENT_SERVE_H

#include <stdint.h>

#include "agent/conf.h"
#include "agent/host.h"
#include "agent/listen.h"
#include "agent/metrics.h"
#include "agent/queue.h"
#include "agent/store.h"
#include "agent/stream.h"
#include "common/digest.h"
#include "common/opt.h"
#include "common/sign.h"

/* The agent's key as the outside may know it. */
struct serve_key {
	char id[DIGEST_HEX];
	char public_hex[SIGN_KEY_HEX];
	char fingerprint[64];
};

#define SERVE_ETAGS 32
/* Digests of artifacts of ended jobs, so that a range read does not hash the file again. */
struct serve_etag {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	char sha256[DIGEST_HEX]; /* "" unused */
};

struct serve {
	struct conf conf;
	struct serve_key key;
	char boot_id[40];
	int64_t started_ms;        /* monotonic */
	struct listener listener;
	struct store *store;
	struct queue *queue;
	struct streams *streams;
	struct host *host;
	struct http *http;
	struct metrics metrics;    /* of libmicrohttpd's thread */
	struct serve_etag etags[SERVE_ETAGS];
	unsigned etag_next;
};

/* Its row of the table of subcommands. */
struct serve_values {
	const char *config, *state, *listen;
	bool foreground, probe, print_config;
};
#define SERVE_OPT_COUNT 6
extern const struct opt serve_opts[SERVE_OPT_COUNT];
extern const char serve_help[];
int serve_run(const struct opt_call *call); /* gives the exit status */

/* The state folder that holds without --state: [agent] state, $STATE_DIRECTORY, else the
 * user's.  Absolute. */
CHECKED int serve_state_dir(const struct conf *c, const char *given, char *out, size_t size,
	struct err *e);

#endif
