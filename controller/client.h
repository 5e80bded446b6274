/*
 * client - HTTP to one agent (agent/API.md), through libcurl.
 *
 * Life: client_open, client_*, client_close.  A client stays with one thread, and with
 * one process: fork first.  No proxy, no redirect, HTTP only.  Every answer has a
 * maximum, a content type that is checked, and a time without a byte after which it
 * counts as stuck.  An agent's own error comes back with its code, sentence and hint.
 *
 * Two kinds of silence are told apart: ERR_UNREACHABLE is "no contact" (refused, no such
 * socket, connection lost), ERR_TIMEOUT is "no answer yet" (connected, and silent).
 * Calls that are safe to repeat are repeated with growing pauses; all calls here are
 * (a submit carries its job's id).
 */
#ifndef CONTROLLER_CLIENT_H
#define CONTROLLER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/sign.h"
#include "controller/inventory.h"

#define CLIENT_MAX_JSON (4u << 20)   /* bytes of a JSON answer that is not the report */
#define CLIENT_MAX_EVENT 65536u      /* bytes of one event line */
#define CLIENT_MAX_ARTIFACT (4ull << 30)
#define CLIENT_CONNECT_MS 5000
#define CLIENT_SILENT_S 30           /* without a byte; events have heartbeats */
#define CLIENT_ATTEMPTS 4

/* Called about five times a second while something is awaited.  Non-zero stops the call
 * with ERR_CANCELLED. */
typedef int (*client_tick)(void *arg);

struct client;

/* Keeps reach; connects at the first call.  Gives *out. */
CHECKED int client_open(const struct reach *reach, client_tick tick, void *arg,
	struct client **out, struct err *e);
void client_close(struct client *c); /* NULL is fine */
/* How often a call is tried; 1 to CLIENT_ATTEMPTS. */
void client_attempts(struct client *c, int attempts);
/* After how many seconds without a byte a call counts as stuck, instead of
 * CLIENT_SILENT_S. */
void client_patience(struct client *c, int seconds);
/* Waits, ticking; non-zero when the tick said stop. */
int client_pause(struct client *c, int64_t ms);

/* GET path; gives a JSON tree, freed with cJSON_Delete. */
CHECKED int client_get(struct client *c, const char *path, cJSON **out, struct err *e);
/* POST a JSON body; as above.  *status, when not NULL, gets the HTTP status (200, 201,
 * 202). */
CHECKED int client_post(struct client *c, const char *path, const char *body, cJSON **out,
	long *status, struct err *e);
/* GET bytes of at most max; gives *out (NUL-terminated), freed with free(). */
CHECKED int client_bytes(struct client *c, const char *path, size_t max, char **out,
	size_t *len, struct err *e);

/* Gets every chunk; non-zero stops with the error that the callee has put into e. */
typedef int (*client_chunk)(void *arg, const char *p, size_t n, struct err *e);
/* GET from byte `from` on, once, without repeats; an answer that ignores the range is
 * ERR_INTEGRITY.  Nothing left to send (416) is a success without bytes. */
CHECKED int client_stream(struct client *c, const char *path, uint64_t from,
	client_chunk chunk, void *arg, struct err *e);

/* One event; the tree is borrowed.  Non-zero ends the stream, as a success. */
typedef int (*client_event)(void *arg, const cJSON *event);
/* Events of a job after sequence number `after`, once: returns 0 at the end of the
 * stream, -1 when the contact is lost (the caller goes on after the last it got). */
CHECKED int client_events(struct client *c, const char *job, uint64_t after,
	client_event fn, void *arg, struct err *e);

/* What an agent says of itself. */
struct agent_health {
	char version[64];
	char public_key[SIGN_KEY_HEX], key_id[DIGEST_HEX], fingerprint[64], boot_id[48];
	int64_t uptime_s, queued, running;
};
/* GET /v1/health; ERR_UNSUPPORTED when the agent does not speak v1.  The fingerprint is
 * computed here. */
CHECKED int client_health(struct client *c, struct agent_health *out, struct err *e);

#endif
