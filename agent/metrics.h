/*
 * metrics - what the agent counts, and its form for Prometheus (text format 0.0.4).
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stdint.h>

#include "agent/queue.h"
#include "agent/route.h"
#include "common/err.h"
#include "common/str.h"

#define METRICS_STATUSES 24
#define METRICS_MAX_BYTES 262144

/* Requests by route (the last row: no route) and status.  Counters since the start. */
struct metrics {
	int status[METRICS_STATUSES]; /* 0: unused */
	uint64_t requests[ROUTE_COUNT + 1][METRICS_STATUSES];
};

/* route: an index of routes[], or ROUTE_COUNT. */
void metrics_count(struct metrics *m, unsigned route, int status);

struct metrics_view {
	const struct metrics *metrics;
	struct queue_counts jobs;
	uint64_t spool_bytes;
	unsigned streams, connections;
	double uptime_s;
};
CHECKED int metrics_format(const struct metrics_view *v, struct buf *b, struct err *e);

#endif
