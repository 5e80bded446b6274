/* What the agent says of itself: health, host, suites, metrics. */
#include <stdlib.h>
#include <string.h>

#include "agent/http.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/suite.h"

static bool
agent_add(cJSON *o, const struct serve *s)
{
	return o != NULL && json_add_str(o, "version", VERSION) &&
		json_add_str(o, "keyId", s->key.id) &&
		json_add_str(o, "publicKey", s->key.public_hex) &&
		json_add_str(o, "fingerprint", s->key.fingerprint) &&
		json_add_str(o, "bootId", s->boot_id);
}

static bool
health_add(cJSON *o, struct serve *s)
{
	struct queue_counts n;
	cJSON *versions, *jobs;

	queue_count(s->queue, &n);
	if (o == NULL || !json_add_str(o, "status", "ok") ||
	    (versions = json_add_array(o, "apiVersions")) == NULL ||
	    !cJSON_AddItemToArray(versions, cJSON_CreateString("v1")) ||
	    !agent_add(json_add_object(o, "agent"), s) ||
	    !json_add_int(o, "uptimeSeconds", (plat_mono_ms() - s->started_ms) / 1000))
		return false;
	jobs = json_add_object(o, "jobs");
	return jobs != NULL && json_add_int(jobs, "queued", n.queued) &&
		json_add_int(jobs, "running", n.running);
}

int
route_health(struct req *r, struct err *e)
{
	cJSON *o = cJSON_CreateObject();

	if (!health_add(o, r->serve)) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	return http_json(r, MHD_HTTP_OK, o, e);
}

int
route_host(struct req *r, struct err *e)
{
	char *text;

	if (host_get(r->serve->host, r->conn, &r->parked, &text, e))
		return -1;
	if (r->parked)
		return 0;
	return http_text(r, MHD_HTTP_OK, "application/json", text, strlen(text), e);
}

static cJSON *
suite_row(const struct suite *s)
{
	cJSON *o = cJSON_CreateObject(), *families;
	int i;

	if (o == NULL || !json_add_str(o, "name", s->name) ||
	    !json_add_str(o, "title", s->title) || !json_add_str(o, "digest", s->digest) ||
	    (families = json_add_array(o, "families")) == NULL)
		goto fail;
	for (i = 0; i < s->family_count; i++)
		if (!cJSON_AddItemToArray(families,
			    cJSON_CreateString(s->families[i].name)))
			goto fail;
	return o;
fail:
	cJSON_Delete(o);
	return NULL;
}

int
route_suites(struct req *r, struct err *e)
{
	cJSON *o = cJSON_CreateObject(), *list = json_add_array(o, "suites"), *row;
	struct suite *s = NULL;
	const char *name;
	size_t i;

	for (i = 0; list != NULL && (name = suite_builtin_name(i)) != NULL; i++) {
		if (suite_builtin(name, &s, e)) {
			cJSON_Delete(o);
			return -1;
		}
		row = suite_row(s);
		suite_free(s);
		if (row == NULL || !cJSON_AddItemToArray(list, row)) {
			cJSON_Delete(row);
			list = NULL;
		}
	}
	if (list == NULL) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	return http_json(r, MHD_HTTP_OK, o, e);
}

/* The bytes themselves: their digest is the suite's. */
int
route_suite(struct req *r, struct err *e)
{
	struct suite *s = NULL;
	char *copy;
	size_t len;

	if (suite_builtin(r->args.name, &s, e))
		return -1;
	len = s->text_len;
	if ((copy = malloc(len + 1)) != NULL)
		memcpy(copy, s->text, len);
	suite_free(s);
	return http_text(r, MHD_HTTP_OK, "application/json", copy, len, e);
}

int
route_metrics(struct req *r, struct err *e)
{
	struct serve *s = r->serve;
	struct metrics_view v = {
		.metrics = &s->metrics,
		.streams = streams_count(s->streams),
		.connections = http_connections(r->http),
		.uptime_s = (double)(plat_mono_ms() - s->started_ms) / 1000,
	};
	struct buf b;
	size_t len;

	queue_count(s->queue, &v.jobs);
	store_lock(s->store);
	v.spool_bytes = store_spool_bytes(s->store);
	store_unlock(s->store);
	buf_init(&b, METRICS_MAX_BYTES);
	if (metrics_format(&v, &b, e)) {
		buf_fini(&b);
		return -1;
	}
	len = b.len;
	return http_text(r, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
		buf_take(&b), len, e);
}
