#include "agent/http.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"

#define THREAD_STACK 262144
#define PEAK_TRIM 32        /* connections after which memory is given back */
#define LOG_EVERY_MS 10000 /* lines of libmicrohttpd */

struct conn {
	struct conn *prev, *next; /* the longest idle first */
	int fd;
	bool busy;                /* a request is being answered */
	bool evicted;
};

struct http {
	struct MHD_Daemon *daemon;
	struct serve *serve;
	struct conn *first, *last;
	unsigned count, peak, soft;
	unsigned leaving;         /* evicted, not closed yet */
	size_t body_max;
	int64_t logged_ms;        /* monotonic; 0 never */
	unsigned unlogged;        /* lines since */
};

/* ---- connections: all by libmicrohttpd's thread ---- */

static void
conn_unlink(struct http *h, struct conn *c)
{
	*(c->prev != NULL ? &c->prev->next : &h->first) = c->next;
	*(c->next != NULL ? &c->next->prev : &h->last) = c->prev;
	c->prev = c->next = NULL;
}

static void
conn_append(struct http *h, struct conn *c)
{
	c->prev = h->last;
	c->next = NULL;
	*(h->last != NULL ? &h->last->next : &h->first) = c;
	h->last = c;
}

static bool
is_crowded(const struct http *h)
{
	return h->count - h->leaving > h->soft;
}

/* Keep-alive connections that nobody uses must not lock others out. */
static void
conn_evict(struct http *h)
{
	struct conn *c;

	for (c = h->first; c != NULL && c != h->last; c = c->next)
		if (!c->busy && !c->evicted) {
			c->evicted = true;
			h->leaving++;
			shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees it and closes */
			return;
		}
}

static void
on_connection(void *cls, struct MHD_Connection *mc, void **ctx,
	enum MHD_ConnectionNotificationCode what)
{
	struct http *h = cls;
	struct conn *c = *ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		if (++h->count > h->peak)
			h->peak = h->count;
		if ((c = calloc(1, sizeof *c)) == NULL)
			return;
		c->fd = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		conn_append(h, c);
		*ctx = c;
		if (is_crowded(h))
			conn_evict(h);
		return;
	}
	h->count--;
	if (c != NULL) {
		h->leaving -= c->evicted;
		conn_unlink(h, c);
	}
	free(c);
	*ctx = NULL;
	if (h->count == 0 && h->peak > PEAK_TRIM) {
		malloc_trim(0);
		h->peak = 0;
	}
}

static void
conn_busy(struct http *h, struct MHD_Connection *mc, bool busy)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info != NULL ? info->socket_context : NULL;

	if (c == NULL)
		return;
	c->busy = busy;
	conn_unlink(h, c);
	conn_append(h, c);
}

unsigned
http_connections(const struct http *h)
{
	return h->count;
}

/* ---- answers ---- */

const char *
http_header(const struct req *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

const char *
http_query(const struct req *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name);
}

bool
http_add(struct MHD_Response *resp, const char *name, const char *value)
{
	return MHD_add_response_header(resp, name, value) == MHD_YES;
}

int
http_send(struct req *r, int status, struct MHD_Response *resp, struct err *e)
{
	bool ok;

	if (resp == NULL)
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	ok = http_add(resp, "Cache-Control", "no-store") &&
		http_add(resp, "X-Content-Type-Options", "nosniff") &&
		(!is_crowded(r->http) || http_add(resp, "Connection", "close")) &&
		MHD_queue_response(r->conn, (unsigned)status, resp) == MHD_YES;
	MHD_destroy_response(resp);
	if (!ok)
		return err_set(e, ERR_IO, "the answer can not be sent");
	metrics_count(&r->serve->metrics,
		r->route != NULL ? (unsigned)(r->route - routes) : ROUTE_COUNT, status);
	return 0;
}

int
http_text(struct req *r, int status, const char *type, char *text, size_t len,
	struct err *e)
{
	struct MHD_Response *resp;

	if (text == NULL)
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	resp = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (resp == NULL) {
		free(text);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	if (!http_add(resp, "Content-Type", type) ||
	    (r->allow[0] != '\0' && !http_add(resp, "Allow", r->allow)) ||
	    (status == MHD_HTTP_SERVICE_UNAVAILABLE &&
		    !http_add(resp, "Retry-After", "1"))) {
		MHD_destroy_response(resp);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	return http_send(r, status, resp, e);
}

int
http_json(struct req *r, int status, cJSON *o, struct err *e)
{
	char *text = o != NULL ? json_text(o, true) : NULL;

	cJSON_Delete(o);
	return http_text(r, status, "application/json", text,
		text != NULL ? strlen(text) : 0, e);
}

int
http_error(struct req *r, const struct err *why, struct err *e)
{
	cJSON *o = cJSON_CreateObject(), *body = json_add_object(o, "error");

	if (body == NULL || !json_add_str(body, "code", err_name(why->code)) ||
	    !json_add_text(body, "message", why->msg, strlen(why->msg)) ||
	    !json_add_text(body, "hint", why->hint, strlen(why->hint))) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for an answer");
	}
	return http_json(r, err_http(why->code), o, e);
}

/* ---- requests ---- */

static void
req_free(struct req *r)
{
	if (r == NULL)
		return;
	buf_fini(&r->body);
	free(r);
}

static bool
has_body(const struct req *r)
{
	const char *length = http_header(r, "Content-Length");

	return http_header(r, "Transfer-Encoding") != NULL ||
		(length != NULL && strcmp(length, "0") != 0);
}

static int
body_too_large(const struct req *r, struct err *e)
{
	err_set(e, ERR_LIMIT, "the body is larger than %zu bytes", r->body.max);
	return err_hint(e, r->body.max == 0 ? "this path takes no body"
					    : "see max_body_bytes of verify-agent.conf");
}

/* Everything that can be said before the body comes. */
static int
req_check(struct req *r, const char *method, const char *path, struct err *e)
{
	const char *host = http_header(r, "Host"), *length;
	uint64_t n;

	if (route_find(method, path, &r->route, &r->args, r->allow, e))
		return -1;
	if (r->serve->listener.tcp && (http_header(r, "Origin") != NULL || host == NULL ||
					      !listen_is_loopback(host))) {
		err_set(e, ERR_REFUSED, "not for web pages, and only under a loopback name");
		return err_hint(e, "call it as 127.0.0.1, [::1] or localhost");
	}
	if (!r->route->at_limit && is_crowded(r->http)) {
		err_set(e, ERR_BUSY, "%u connections are in use", r->http->soft);
		return err_hint(e, "try again in a moment");
	}
	buf_init(&r->body, r->route->body ? r->http->body_max : 0);
	length = http_header(r, "Content-Length");
	if (length != NULL && (str_u64(length, 0, UINT64_MAX, &n, NULL) ||
				      n > r->body.max))
		return body_too_large(r, e);
	return 0;
}

static struct req *
req_new(struct http *h, struct MHD_Connection *mc, const char *method, const char *path)
{
	struct req *r = calloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->serve = h->serve;
	r->http = h;
	r->conn = mc;
	r->head = strcmp(method, "HEAD") == 0;
	if (req_check(r, method, path, &r->early))
		buf_init(&r->body, 0);
	return r;
}

static enum MHD_Result
req_answer(struct req *r)
{
	struct err e = {0}, sent = {0};

	r->parked = false;
	if (r->early.code != ERR_NONE)
		e = r->early;
	else if (r->route->run(r, &e) == 0)
		return MHD_YES; /* answered, or parked */
	if (http_error(r, &e, &sent) == 0)
		return MHD_YES;
	fprintf(stderr, "verify-agent: http: %s\n", sent.msg);
	return MHD_NO; /* closes the connection */
}

/* A refused body is read to its end, within reason: a client that is still sending when
 * the connection closes never sees the answer. */
static bool
answers_now(const struct req *r)
{
	const char *length = http_header(r, "Content-Length");
	uint64_t n = 0;

	if (r->early.code == ERR_NONE || !has_body(r))
		return false;
	if (length != NULL && (str_u64(length, 0, UINT64_MAX, &n, NULL) ||
				      n > HTTP_MAX_DRAIN))
		return true;
	return http_header(r, "Expect") != NULL;
}

static bool
body_take(struct req *r, const char *p, size_t n)
{
	if (r->early.code == ERR_NONE && n > r->body.max - r->body.len) {
		/* Chunked, without a length that could have told us. */
		(void)body_too_large(r, &r->early);
		buf_fini(&r->body);
	}
	if (r->early.code == ERR_NONE && buf_add(&r->body, p, n, &r->early))
		buf_fini(&r->body);
	if (r->early.code != ERR_NONE)
		r->drained += n;
	return r->drained <= HTTP_MAX_DRAIN;
}

static enum MHD_Result
on_request(void *cls, struct MHD_Connection *mc, const char *url, const char *method,
	const char *version, const char *data, size_t *size, void **ctx)
{
	struct http *h = cls;
	struct req *r = *ctx;

	(void)version;
	if (r == NULL) {
		conn_busy(h, mc, true);
		if ((*ctx = r = req_new(h, mc, method, url)) == NULL)
			return MHD_NO;
		return answers_now(r) ? req_answer(r) : MHD_YES;
	}
	if (*size > 0) {
		bool go_on = body_take(r, data, *size);

		*size = 0;
		return go_on ? MHD_YES : MHD_NO;
	}
	return req_answer(r);
}

static void
on_completed(void *cls, struct MHD_Connection *mc, void **ctx,
	enum MHD_RequestTerminationCode why)
{
	(void)why;
	conn_busy(cls, mc, false);
	req_free(*ctx);
	*ctx = NULL;
}

/* %XX in place.  A NUL would cut the text behind our back: such text stays as it is and
 * meets no route. */
static size_t
on_unescape(void *cls, struct MHD_Connection *mc, char *s)
{
	char *from = s, *to = s;
	uint8_t byte;
	char hex[3] = {0};
	size_t i;

	(void)cls, (void)mc;
	if (strstr(s, "%00") != NULL)
		return strlen(s);
	while (*from != '\0') {
		for (i = 0; *from == '%' && i < 2 && from[1 + i] != '\0'; i++)
			hex[i] = (char)(from[1 + i] | (from[1 + i] >= 'A' ? 0x20 : 0));
		if (*from == '%' && i == 2 && str_unhex(&byte, 1, hex) == 0) {
			*to++ = (char)byte;
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - s);
}

/* ---- life ---- */

/* Nearly all of these are a client's doing: no client may fill the log. */
static void PRINTF(2, 0)
on_log(void *cls, const char *fmt, va_list ap)
{
	struct http *h = cls;
	int64_t now = plat_mono_ms();
	char line[300];

	/* who has read the last event may go before the stream's last byte */
	if (strstr(fmt, "Failed to send the footers") != NULL)
		return;
	if (h->logged_ms != 0 && now - h->logged_ms < LOG_EVERY_MS) {
		h->unlogged++;
		return;
	}
	vsnprintf(line, sizeof line, fmt, ap);
	fprintf(stderr, "verify-agent: http: %.*s", (int)strcspn(line, "\n"), line);
	if (h->unlogged > 0)
		fprintf(stderr, " (and %u other lines before)", h->unlogged);
	fputc('\n', stderr);
	h->logged_ms = now;
	h->unlogged = 0;
}

static struct MHD_Daemon *
daemon_start(struct http *h)
{
	const uint64_t *v = h->serve->conf.v;

	/* The logger comes first, or libmicrohttpd warns about it on its own. */
	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			MHD_USE_ITC | MHD_USE_ERROR_LOG,
		0, NULL, NULL, on_request, h,
		MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
		MHD_OPTION_LISTEN_SOCKET, h->serve->listener.fd,
		MHD_OPTION_CONNECTION_LIMIT, h->soft + HTTP_RESERVE,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)v[CONF_IDLE_TIMEOUT],
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)v[CONF_MAX_HEADER],
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
		MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
		MHD_OPTION_END);
}

int
http_start(struct serve *s, struct http **out, struct err *e)
{
	struct http *h;

	if ((h = calloc(1, sizeof *h)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the server");
	h->serve = s;
	h->soft = (unsigned)s->conf.v[CONF_MAX_CONNECTIONS];
	h->body_max = (size_t)s->conf.v[CONF_MAX_BODY];
	*out = h; /* requests may come before MHD_start_daemon returns */
	if ((h->daemon = daemon_start(h)) == NULL) {
		*out = NULL;
		free(h);
		return err_set(e, ERR_IO, "the HTTP server does not start");
	}
	return 0;
}

void
http_stop(struct http *h)
{
	if (h == NULL)
		return;
	/* The listening socket is ours: quiesce keeps it open, listen_close closes it. */
	MHD_quiesce_daemon(h->daemon);
	host_stop(h->serve->host);
	streams_stop(h->serve->streams);
	MHD_stop_daemon(h->daemon);
	free(h);
}
