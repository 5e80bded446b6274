/*
 * route - the table of requests: method, path, largest body, handler.
 *
 * A path is literal but for {id}, 32 lower-case hex digits, and {name}, the whole rest: a
 * flat name of letters, digits and . _ + - that does not begin with a dot.
 */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/job.h"

#define ROUTE_COUNT 14
#define ROUTE_MAX_NAME 200

struct req; /* http.h */

struct route {
	const char *method;   /* "GET" answers HEAD too */
	const char *pattern;
	bool body;            /* takes one, at most max_body_bytes; others take none */
	bool at_limit;        /* answered above max_connections too */
	/* Sends an answer (http_json and such) or parks the request; -1: the error is
	 * sent for it. */
	int (*run)(struct req *r, struct err *e);
};
extern const struct route routes[ROUTE_COUNT];

struct route_args {
	char id[JOB_ID_HEX + 1];
	char name[ROUTE_MAX_NAME + 1];
};

/* Finds the row for a decoded path.  ERR_NOTFOUND; ERR_METHOD with the methods there are
 * in allow ("GET, HEAD"); ERR_PARSE for a bad id or name.  *out is set as soon as the
 * path is known, also with an error, else NULL. */
CHECKED int route_find(const char *method, const char *path, const struct route **out,
	struct route_args *args, char allow[32], struct err *e);
bool route_is_name(const char *name);

/* route_info.c */
int route_health(struct req *r, struct err *e);
int route_host(struct req *r, struct err *e);
int route_suites(struct req *r, struct err *e);
int route_suite(struct req *r, struct err *e);
int route_metrics(struct req *r, struct err *e);
/* route_job.c */
int route_submit(struct req *r, struct err *e);
int route_jobs(struct req *r, struct err *e);
int route_job(struct req *r, struct err *e);
int route_events(struct req *r, struct err *e);
int route_cancel(struct req *r, struct err *e);
int route_ack(struct req *r, struct err *e);
/* route_file.c */
int route_report(struct req *r, struct err *e);
int route_artifacts(struct req *r, struct err *e);
int route_artifact(struct req *r, struct err *e);

/* A single range of a Range header over size bytes. */
enum range_kind { RANGE_NONE, RANGE_PART, RANGE_OUTSIDE };
/* RANGE_NONE: no range, or one we need not understand (several, other units, nonsense):
 * the whole is the answer. */
enum range_kind range_parse(const char *header, uint64_t size, uint64_t *from,
	uint64_t *count);
/* True if one of the header's entity tags is this digest; "*" is. */
bool range_etag_is(const char *header, const char *sha256, bool weak_too);

#endif
