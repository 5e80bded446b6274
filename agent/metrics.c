#include "agent/metrics.h"

#include <inttypes.h>

void
metrics_count(struct metrics *m, unsigned route, int status)
{
	unsigned i;

	/* The last column takes what finds no place of its own. */
	for (i = 0; i < METRICS_STATUSES - 1 && m->status[i] != 0; i++)
		if (m->status[i] == status)
			break;
	if (m->status[i] == 0)
		m->status[i] = status;
	m->requests[route][i]++;
}

static int
head(struct buf *b, const char *name, const char *type, const char *help, struct err *e)
{
	return buf_addf(b, e, "# HELP verify_agent_%s %s\n# TYPE verify_agent_%s %s\n",
		name, help, name, type);
}

static int
one(struct buf *b, const char *name, const char *type, const char *help, uint64_t value,
	struct err *e)
{
	return head(b, name, type, help, e) ||
		buf_addf(b, e, "verify_agent_%s %" PRIu64 "\n", name, value) ? -1 : 0;
}

static int
requests_format(const struct metrics *m, struct buf *b, struct err *e)
{
	unsigned r, i;

	if (head(b, "http_requests_total", "counter", "Requests answered.", e))
		return -1;
	for (r = 0; r <= ROUTE_COUNT; r++)
		for (i = 0; i < METRICS_STATUSES; i++)
			if (m->requests[r][i] > 0 &&
			    buf_addf(b, e, "verify_agent_http_requests_total{method=\"%s\","
				    "route=\"%s\",status=\"%d\"} %" PRIu64 "\n",
				    r < ROUTE_COUNT ? routes[r].method : "",
				    r < ROUTE_COUNT ? routes[r].pattern : "",
				    m->status[i], m->requests[r][i]))
				return -1;
	return 0;
}

static int
jobs_format(const struct queue_counts *c, struct buf *b, struct err *e)
{
	int i;

	if (head(b, "jobs_total", "counter", "Jobs ended since the agent started.", e))
		return -1;
	for (i = 0; i < OUTCOME_COUNT; i++)
		if (buf_addf(b, e, "verify_agent_jobs_total{outcome=\"%s\"} %" PRIu64 "\n",
			    outcome_name((enum outcome)i), c->ended[i]))
			return -1;
	return one(b, "jobs_running", "gauge", "Jobs that run now.", c->running, e) ||
		one(b, "jobs_queued", "gauge", "Jobs that wait for a device.", c->queued, e)
		? -1 : 0;
}

int
metrics_format(const struct metrics_view *v, struct buf *b, struct err *e)
{
	return head(b, "build_info", "gauge", "Version of the agent.", e) ||
		buf_addf(b, e, "verify_agent_build_info{version=\"%s\"} 1\n", VERSION) ||
		head(b, "uptime_seconds", "gauge", "Since the agent started.", e) ||
		buf_addf(b, e, "verify_agent_uptime_seconds %.3f\n", v->uptime_s) ||
		jobs_format(&v->jobs, b, e) ||
		one(b, "spool_bytes", "gauge", "Files of ended jobs, not pruned.",
			v->spool_bytes, e) ||
		one(b, "event_streams", "gauge", "Event streams that are open.", v->streams,
			e) ||
		one(b, "http_connections", "gauge", "Connections that are open.",
			v->connections, e) ||
		requests_format(v->metrics, b, e) ? -1 : 0;
}
