/* Jobs: submit, look, follow, cancel, acknowledge. */
#include <string.h>

#include "agent/build.h"
#include "agent/http.h"
#include "common/json.h"

static int
state_send(struct req *r, int status, const struct job_state *s, struct err *e)
{
	return http_json(r, status, store_public(s), e);
}

int
route_submit(struct req *r, struct err *e)
{
	struct job_state s;
	struct job *j = NULL;
	bool created;
	int rc;

	if (r->body.len == 0) {
		err_set(e, ERR_PARSE, "a job document is missing");
		return err_hint(e, "send it as the body of the request");
	}
	if (job_parse(r->body.data, r->body.len, &j, e))
		return -1;
	if (build_flags_check(j->override[OVERRIDE_CMAKE_FLAGS], e)) {
		job_free(j);
		return -1;
	}
	rc = queue_submit(r->serve->queue, j, &created, &s, e);
	job_free(j);
	if (rc)
		return -1;
	return state_send(r, created ? MHD_HTTP_CREATED : MHD_HTTP_OK, &s, e);
}

static int
state_read(struct req *r, const char *id, struct job_state *s, struct err *e)
{
	int rc;

	store_lock(r->serve->store);
	rc = store_read(r->serve->store, id, s, e);
	store_unlock(r->serve->store);
	return rc;
}

int
route_job(struct req *r, struct err *e)
{
	struct job_state s;

	if (state_read(r, r->args.id, &s, e))
		return -1;
	return state_send(r, MHD_HTTP_OK, &s, e);
}

/* A state that can not be read is still a job that is known. */
static cJSON *
job_row(struct store *st, const struct entry *en)
{
	struct job_state s;
	struct err e = {0};
	cJSON *o;

	if (store_read(st, en->id, &s, &e) == 0)
		return store_public(&s);
	o = cJSON_CreateObject();
	if (o != NULL && json_add_str(o, "id", en->id) &&
	    json_add_str(o, "state", phase_name(en->phase)) &&
	    json_add_text(o, "detail", e.msg, strlen(e.msg)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

int
route_jobs(struct req *r, struct err *e)
{
	struct store *st = r->serve->store;
	cJSON *o = cJSON_CreateObject(), *list = json_add_array(o, "jobs"), *row;
	size_t i, n = 0;

	store_lock(st);
	for (i = store_count(st); list != NULL && i > 0 && n < STORE_LIST_MAX; i--, n++) {
		row = job_row(st, store_at(st, i - 1));
		if (row == NULL || !cJSON_AddItemToArray(list, row)) {
			cJSON_Delete(row);
			list = NULL;
		}
	}
	store_unlock(st);
	if (list == NULL) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for the list of jobs");
	}
	return http_json(r, MHD_HTTP_OK, o, e);
}

static int
query_number(const struct req *r, const char *name, uint64_t max, uint64_t fallback,
	uint64_t *out, struct err *e)
{
	const char *text = http_query(r, name);

	*out = fallback;
	if (text == NULL || str_u64(text, 0, max, out, e) == 0)
		return 0;
	return err_wrap(e, "%s", name);
}

/* The stream joins the list before the store is unlocked: the job's end, told under the
 * same lock, can not fall between. */
static int
events_open(struct req *r, uint64_t after, bool follow, struct MHD_Response **resp,
	struct err *e)
{
	struct store *st = r->serve->store;
	struct stream_spec spec = {.id = r->args.id, .after = after, .follow = follow};
	struct job_state s;
	char path[4096];
	int rc = -1;

	store_lock(st);
	if (store_read(st, r->args.id, &s, e) ||
	    store_path(st, "events", r->args.id, ".ndjson", path, sizeof path, e))
		goto out;
	if (s.pruned) {
		err_set(e, ERR_NOTFOUND, "the events of job %s were pruned", s.id);
		goto out;
	}
	spec.path = path;
	spec.ended = s.phase == PHASE_DONE;
	rc = stream_open(r->serve->streams, r->conn, &spec, resp, e);
out:
	store_unlock(st);
	return rc;
}

int
route_events(struct req *r, struct err *e)
{
	struct MHD_Response *resp = NULL;
	uint64_t after, follow;

	if (query_number(r, "after", UINT64_MAX, 0, &after, e) ||
	    query_number(r, "follow", 1, 1, &follow, e))
		return -1;
	/* A HEAD has no body that could stay open. */
	if (events_open(r, after, follow == 1 && !r->head, &resp, e))
		return -1;
	if (!http_add(resp, "Content-Type", "application/x-ndjson")) {
		MHD_destroy_response(resp);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	return http_send(r, MHD_HTTP_OK, resp, e);
}

int
route_cancel(struct req *r, struct err *e)
{
	struct job_state s;

	if (queue_cancel(r->serve->queue, r->args.id, &s, e))
		return -1;
	return state_send(r, s.phase == PHASE_DONE ? MHD_HTTP_OK : MHD_HTTP_ACCEPTED, &s,
		e);
}

int
route_ack(struct req *r, struct err *e)
{
	static const char *const keys[] = {"envelopeSha256", NULL};
	struct job_state s;
	const char *digest;
	cJSON *o = NULL;
	int rc = -1;

	if (json_parse(r->body.data != NULL ? r->body.data : "", r->body.len,
		    r->body.max, &o, e) ||
	    json_known(o, keys, e) || json_need_str(o, keys[0], &digest, e))
		goto out;
	rc = queue_ack(r->serve->queue, r->args.id, digest, &s, e);
out:
	cJSON_Delete(o);
	return rc ? -1 : state_send(r, MHD_HTTP_OK, &s, e);
}
