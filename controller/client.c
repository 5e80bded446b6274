#include "controller/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define TICK_MS 200
#define PAUSE_FIRST_MS 250 /* before the second try; doubles */
#define ERROR_MAX 16384    /* bytes of an error answer */

struct client {
	struct reach reach;
	client_tick tick;
	void *tick_arg;
	int attempts, silent_s;
	CURLM *multi;
	CURL *easy;
};

/* One exchange. */
struct transfer {
	struct client *c;
	client_chunk chunk;  /* gets the body of a good answer */
	void *arg;
	const char *type;    /* content type wanted, NULL: any */
	uint64_t from;       /* first byte wanted */
	long silent_s;
	int64_t heard_ms;    /* when something came last, by the clock that never steps */
	bool begun;          /* the answer's head was looked at */
	long status;
	struct buf error;    /* body of a bad answer */
	struct err *e;
};

/* ---- life ---- */

int
client_open(const struct reach *reach, client_tick tick, void *arg, struct client **out,
	struct err *e)
{
	static bool ready;
	struct client *c = NULL;

	if (!ready && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_NOMEM, "libcurl does not start");
	ready = true;
	if ((c = calloc(1, sizeof *c)) == NULL || (c->multi = curl_multi_init()) == NULL ||
	    (c->easy = curl_easy_init()) == NULL) {
		client_close(c);
		return err_set(e, ERR_NOMEM, "no memory for a connection");
	}
	c->reach = *reach;
	c->tick = tick;
	c->tick_arg = arg;
	c->attempts = CLIENT_ATTEMPTS;
	c->silent_s = CLIENT_SILENT_S;
	*out = c;
	return 0;
}

void
client_close(struct client *c)
{
	if (c == NULL)
		return;
	curl_easy_cleanup(c->easy);
	curl_multi_cleanup(c->multi);
	free(c);
}

void
client_attempts(struct client *c, int attempts)
{
	c->attempts = attempts;
}

void
client_patience(struct client *c, int seconds)
{
	c->silent_s = seconds;
}

static int
ticked(struct client *c)
{
	return c->tick != NULL && c->tick(c->tick_arg) != 0;
}

int
client_pause(struct client *c, int64_t ms)
{
	int64_t end = plat_mono_ms() + ms, left;

	while ((left = end - plat_mono_ms()) > 0) {
		if (ticked(c))
			return -1;
		curl_multi_poll(c->multi, NULL, 0, left < TICK_MS ? (int)left : TICK_MS, NULL);
	}
	return 0;
}

/* ---- one exchange ---- */

static bool
is_type(const char *got, const char *want)
{
	size_t n = strlen(want);

	if (got == NULL || strncmp(got, want, n) != 0)
		return false;
	return got[n] == '\0' || got[n] == ';' || got[n] == ' ';
}

/* Before the first byte of a body: is this the answer that was asked for? */
static int
check_head(struct transfer *t)
{
	char *type = NULL;

	curl_easy_getinfo(t->c->easy, CURLINFO_RESPONSE_CODE, &t->status);
	curl_easy_getinfo(t->c->easy, CURLINFO_CONTENT_TYPE, &type);
	t->begun = true;
	if (t->status >= 400)
		return 0;
	if (t->status < 200 || t->status >= 300)
		return err_set(t->e, ERR_UNSUPPORTED, "HTTP status %ld, which no agent sends",
			t->status);
	if (t->from > 0 && t->status != 206)
		return err_set(t->e, ERR_INTEGRITY, "the whole was sent instead of the rest");
	if (t->type != NULL && !is_type(type, t->type)) {
		err_set(t->e, ERR_UNSUPPORTED, "the answer is %.60s, not %s",
			type ? type : "of no type", t->type);
		return err_hint(t->e, "is that address really a verify-agent?");
	}
	return 0;
}

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;

	t->heard_ms = plat_mono_ms();
	if (!t->begun && check_head(t))
		return 0;
	if (len == 0)
		return 0;
	if (t->status >= 400)
		/* A bad answer too long to be an agent's is cut: the status still counts. */
		return buf_add(&t->error, p, len, NULL) ? 0 : len;
	return t->chunk(t->arg, p, len, t->e) ? 0 : len;
}

static void
set_options(struct transfer *t, const char *url, const char *body,
	struct curl_slist *headers)
{
	CURL *h = t->c->easy;

	curl_easy_reset(h);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "verify-controller/" VERSION);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
	if (t->c->reach.socket[0] != '\0')
		curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, t->c->reach.socket);
	if (body != NULL) {
		curl_easy_setopt(h, CURLOPT_POST, 1L);
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	}
	if (t->from > 0)
		curl_easy_setopt(h, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->from);
}

static int
no_contact(const struct client *c, const char *why, struct err *e)
{
	err_set(e, ERR_UNREACHABLE, "no contact: %s: %s", c->reach.shown, why);
	return err_hint(e, "start the agent there: verify-agent serve");
}

/* libcurl's word for what went wrong, in ours. */
static int
explain(struct transfer *t, CURLcode code)
{
	const struct client *c = t->c;

	switch (code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		return no_contact(c, c->reach.socket[0] && !plat_exists(c->reach.socket) ?
			"there is no such socket" : "the connection is refused", t->e);
	case CURLE_OPERATION_TIMEDOUT:
		err_set(t->e, ERR_TIMEOUT, "no answer yet: %s: nothing in %ld s",
			c->reach.shown, t->silent_s);
		return err_hint(t->e, "a job goes on without us; \"attach\" resumes it");
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return no_contact(c, "the connection was cut", t->e);
	case CURLE_WRITE_ERROR:
		if (t->e->code != ERR_NONE)
			return -1;
		return err_set(t->e, ERR_LIMIT, "the answer is too long");
	case CURLE_RANGE_ERROR:
		return err_set(t->e, ERR_INTEGRITY, "the whole was sent instead of the rest");
	case CURLE_OUT_OF_MEMORY:
		return err_set(t->e, ERR_NOMEM, "no memory for the answer");
	default:
		err_set(t->e, ERR_UNSUPPORTED, "%s: %s", c->reach.shown,
			curl_easy_strerror(code));
		return err_hint(t->e, "is that address really a verify-agent?");
	}
}

static enum err_code
code_of(const char *name, long status)
{
	static const enum err_code codes[] = {
#define X(id, word, exit, http) id,
		ERR_TABLE(X)
#undef X
	};
	size_t i;

	for (i = 1; i < str_count(codes); i++)
		if (name != NULL && str_eq(err_name(codes[i]), name))
			return codes[i];
	for (i = 1; i < str_count(codes); i++)
		if (err_http(codes[i]) == status)
			return codes[i];
	return status < 500 ? ERR_USAGE : ERR_IO;
}

/* The agent's own error, cleaned for display. */
static int
agent_error(struct transfer *t)
{
	const char *name, *message, *hint;
	char shown[240], help[140];
	cJSON *o = NULL;

	if (t->error.data == NULL ||
	    json_parse(t->error.data, t->error.len, ERROR_MAX, &o, NULL))
		o = NULL;
	name = json_path_str(o, "error.code");
	message = json_path_str(o, "error.message");
	hint = json_path_str(o, "error.hint");
	if (message == NULL)
		err_set(t->e, code_of(NULL, t->status), "the agent answered HTTP %ld",
			t->status);
	else {
		str_show(shown, sizeof shown, message, strlen(message));
		err_set(t->e, code_of(name, t->status), "the agent says: %s", shown);
	}
	if (hint != NULL) {
		str_show(help, sizeof help, hint, strlen(hint));
		err_hint(t->e, "%s", help);
	}
	cJSON_Delete(o);
	return -1;
}

/* Drives the handle to its end.  0: *code is libcurl's; -1: the tick said stop.  Silence is
 * counted from the last byte: libcurl's lowest speed, a byte a second, takes the
 * heartbeats of a quiet stream for silence. */
static int
drive(struct transfer *t, CURLcode *code)
{
	struct client *c = t->c;
	CURLMsg *m;
	int running = 1, left, stopped = 0;
	bool silent = false;

	t->heard_ms = plat_mono_ms();

	if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK) {
		*code = CURLE_OUT_OF_MEMORY;
		return 0;
	}
	*code = CURLE_OK;
	while (running && !silent && !(stopped = ticked(c))) {
		silent = plat_mono_ms() - t->heard_ms > t->silent_s * 1000;
		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			break;
		if (running)
			curl_multi_poll(c->multi, NULL, 0, TICK_MS, NULL);
	}
	while ((m = curl_multi_info_read(c->multi, &left)) != NULL)
		if (m->msg == CURLMSG_DONE)
			*code = m->data.result, silent = false;
	if (silent)
		*code = CURLE_OPERATION_TIMEDOUT;
	curl_multi_remove_handle(c->multi, c->easy);
	return stopped ? -1 : 0;
}

static int
exchange_once(struct transfer *t, const char *url, const char *body)
{
	struct curl_slist *headers = NULL;
	CURLcode code = CURLE_OUT_OF_MEMORY;
	int rc = -1;

	t->begun = false, t->status = 0;
	buf_init(&t->error, ERROR_MAX);
	/* No waiting for "100 Continue": bodies are small. */
	if ((headers = curl_slist_append(NULL, "Expect:")) == NULL ||
	    (body != NULL && curl_slist_append(headers,
		"Content-Type: application/json") == NULL)) {
		err_set(t->e, ERR_NOMEM, "no memory for a request");
		goto out;
	}
	set_options(t, url, body, headers);
	if (drive(t, &code)) {
		err_set(t->e, ERR_CANCELLED, "stopped on request");
		goto out;
	}
	if (!t->begun && code == CURLE_OK && check_head(t))
		goto out;
	if (t->status >= 400)
		agent_error(t);
	else if (code != CURLE_OK)
		explain(t, code);
	else
		rc = 0;
out:
	curl_slist_free_all(headers);
	buf_fini(&t->error);
	return rc;
}

static int
make_url(const struct client *c, const char *path, char *url, size_t size, struct err *e)
{
	return str_fmt(url, size, e, "%s%s", c->reach.base, path);
}

static bool
is_worth_repeating(const struct err *e)
{
	return e->code == ERR_UNREACHABLE || e->code == ERR_TIMEOUT || e->code == ERR_BUSY;
}

/* ---- whole answers ---- */

static int
collect(void *arg, const char *p, size_t n, struct err *e)
{
	return buf_add(arg, p, n, e) ? err_wrap(e, "answer") : 0;
}

/* Repeats until it is answered; gives the body. */
static int
ask(struct client *c, const char *path, const char *body, const char *type, size_t max,
	struct buf *out, long *status, struct err *e)
{
	struct transfer t = {.c = c, .chunk = collect, .arg = out, .type = type,
		.silent_s = c->silent_s, .e = e};
	int64_t pause = PAUSE_FIRST_MS;
	char url[1024];
	int i;

	if (make_url(c, path, url, sizeof url, e))
		return -1;
	for (i = 1;; i++, pause *= 2) {
		buf_init(out, max);
		memset(e, 0, sizeof *e);
		if (exchange_once(&t, url, body) == 0)
			break;
		buf_fini(out);
		if (i >= c->attempts || !is_worth_repeating(e))
			return -1;
		if (client_pause(c, pause))
			return err_set(e, ERR_CANCELLED, "stopped on request");
	}
	if (status != NULL)
		*status = t.status;
	return 0;
}

static int
ask_json(struct client *c, const char *path, const char *body, cJSON **out, long *status,
	struct err *e)
{
	struct buf b;
	int rc;

	if (ask(c, path, body, "application/json", CLIENT_MAX_JSON, &b, status, e))
		return -1;
	rc = json_parse(b.data ? b.data : "", b.len, CLIENT_MAX_JSON, out, e);
	buf_fini(&b);
	return rc ? err_wrap(e, "answer of %s", c->reach.shown) : 0;
}

int
client_get(struct client *c, const char *path, cJSON **out, struct err *e)
{
	return ask_json(c, path, NULL, out, NULL, e);
}

int
client_post(struct client *c, const char *path, const char *body, cJSON **out,
	long *status, struct err *e)
{
	return ask_json(c, path, body, out, status, e);
}

int
client_bytes(struct client *c, const char *path, size_t max, char **out, size_t *len,
	struct err *e)
{
	struct buf b;

	if (ask(c, path, NULL, NULL, max, &b, NULL, e))
		return -1;
	/* An empty answer still is a text. */
	if (b.data == NULL && buf_add(&b, "", 0, e)) {
		buf_fini(&b);
		return -1;
	}
	*len = b.len;
	*out = buf_take(&b);
	return 0;
}

int
client_stream(struct client *c, const char *path, uint64_t from, client_chunk chunk,
	void *arg, struct err *e)
{
	struct transfer t = {.c = c, .chunk = chunk, .arg = arg, .from = from,
		.silent_s = c->silent_s, .e = e};
	char url[1024];

	memset(e, 0, sizeof *e);
	if (make_url(c, path, url, sizeof url, e))
		return -1;
	if (exchange_once(&t, url, NULL) == 0)
		return 0;
	if (e->code != ERR_RANGE)
		return -1;
	memset(e, 0, sizeof *e);
	return 0;
}

/* ---- events ---- */

struct lines {
	struct buf line;
	client_event fn;
	void *arg;
	bool ended; /* fn has had enough */
};

static int
one_line(struct lines *l, struct err *e)
{
	cJSON *o = NULL;

	if (l->line.len == 0) /* a heartbeat */
		return 0;
	if (json_parse(l->line.data, l->line.len, CLIENT_MAX_EVENT, &o, e))
		return err_wrap(e, "event");
	l->ended = l->fn(l->arg, o) != 0;
	cJSON_Delete(o);
	l->line.len = 0;
	return l->ended ? -1 : 0;
}

static int
split_lines(void *arg, const char *p, size_t n, struct err *e)
{
	struct lines *l = arg;
	const char *nl;

	while ((nl = memchr(p, '\n', n)) != NULL) {
		if (buf_add(&l->line, p, (size_t)(nl - p), e))
			return err_wrap(e, "event");
		if (one_line(l, e))
			return -1;
		n -= (size_t)(nl + 1 - p);
		p = nl + 1;
	}
	return buf_add(&l->line, p, n, e) ? err_wrap(e, "event") : 0;
}

int
client_events(struct client *c, const char *job, uint64_t after, client_event fn,
	void *arg, struct err *e)
{
	struct lines l = {.fn = fn, .arg = arg};
	struct transfer t = {.c = c, .chunk = split_lines, .arg = &l,
		.type = "application/x-ndjson", .silent_s = c->silent_s * 3L, .e = e};
	char url[1024];
	int rc;

	memset(e, 0, sizeof *e);
	buf_init(&l.line, CLIENT_MAX_EVENT);
	rc = str_fmt(url, sizeof url, e, "%s/v1/jobs/%s/events?after=%llu", c->reach.base,
		job, (unsigned long long)after);
	if (rc == 0)
		rc = exchange_once(&t, url, NULL);
	buf_fini(&l.line);
	if (l.ended) {
		memset(e, 0, sizeof *e);
		return 0;
	}
	return rc;
}

/* ---- health ---- */

static bool
speaks_v1(const cJSON *o)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, json_get(o, "apiVersions"))
		if (cJSON_IsString(v) && str_eq(v->valuestring, "v1"))
			return true;
	return false;
}

static void
show_member(char *dst, size_t size, const cJSON *o, const char *key)
{
	const char *s = json_str(o, key);

	str_show(dst, size, s ? s : "", s ? strlen(s) : 0);
}

static int
read_health(const cJSON *o, struct agent_health *out, struct err *e)
{
	const cJSON *agent = json_get(o, "agent"), *jobs = json_get(o, "jobs");
	const char *key;

	if (json_get(o, "apiVersions") == NULL || agent == NULL)
		return err_set(e, ERR_UNSUPPORTED, "the answer is not a verify-agent's health");
	if (!speaks_v1(o)) {
		err_set(e, ERR_UNSUPPORTED, "the agent does not speak v1");
		return err_hint(e, "bring agent and controller to the same version");
	}
	if (json_need_str(agent, "publicKey", &key, e))
		return err_wrap(e, "health");
	if (!str_is_hex(key, SIGN_KEY_HEX - 1))
		return err_set(e, ERR_PARSE, "health: \"publicKey\" is not %d hex digits",
			SIGN_KEY_HEX - 1);
	if (str_copy(out->public_key, sizeof out->public_key, key, e) ||
	    sign_id_of(key, out->key_id, e))
		return -1;
	sign_fingerprint(key, out->fingerprint);
	show_member(out->version, sizeof out->version, agent, "version");
	show_member(out->boot_id, sizeof out->boot_id, agent, "bootId");
	out->uptime_s = json_int(o, "uptimeSeconds", -1);
	out->queued = json_int(jobs, "queued", -1);
	out->running = json_int(jobs, "running", -1);
	return 0;
}

int
client_health(struct client *c, struct agent_health *out, struct err *e)
{
	cJSON *o = NULL;
	int rc;

	memset(out, 0, sizeof *out);
	if (client_get(c, "/v1/health", &o, e))
		return -1;
	rc = read_health(o, out, e);
	cJSON_Delete(o);
	return rc;
}
