/*
 * http - requests in, answers out: libmicrohttpd with one thread and epoll.
 *
 * Limits that hold here: body, headers, connections, idle time.  Above max_connections
 * the connection that is idle longest is closed, and only routes marked at_limit are
 * answered; so a health call gets through whatever others do.
 *
 * On TCP a request that carries Origin, or whose Host is not a loopback name, is refused:
 * web pages can not start jobs.
 *
 * Threads: everything but http_start and http_stop is libmicrohttpd's thread's.
 */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <microhttpd.h>

#include "agent/route.h"
#include "agent/serve.h"
#include "common/err.h"
#include "common/str.h"

#define HTTP_RESERVE 16          /* connections above max_connections */
#define HTTP_MAX_DRAIN (32u << 20) /* of a refused body, so that the answer arrives */

struct http;

/* Starts libmicrohttpd on s->listener.fd.  s is kept.  Gives *out. */
CHECKED int http_start(struct serve *s, struct http **out, struct err *e);
/* Closes what is open and frees; NULL is fine.  Streams are ended first. */
void http_stop(struct http *h);
unsigned http_connections(const struct http *h);

/* One request; made and freed here. */
struct req {
	struct serve *serve;
	struct http *http;
	struct MHD_Connection *conn;
	const struct route *route; /* NULL: none */
	struct route_args args;
	struct buf body;
	struct err early;          /* refused before its body was read */
	char allow[32];
	uint64_t drained;          /* bytes of a body that nobody wants */
	bool head;                 /* method HEAD */
	bool parked;               /* suspended: the handler is called again */
};

const char *http_header(const struct req *r, const char *name); /* NULL: none */
const char *http_query(const struct req *r, const char *name);

/* Answers.  Each takes what it sends, also when it fails. */
CHECKED int http_send(struct req *r, int status, struct MHD_Response *resp,
	struct err *e);
CHECKED int http_text(struct req *r, int status, const char *type, char *text, size_t len,
	struct err *e);
CHECKED int http_json(struct req *r, int status, cJSON *o, struct err *e);
CHECKED int http_error(struct req *r, const struct err *why, struct err *e);
/* Adds a header to a response that is to be sent; false when there is no memory. */
bool http_add(struct MHD_Response *resp, const char *name, const char *value);

#endif
