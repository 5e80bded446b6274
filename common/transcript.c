#include "common/transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/ntstatus.h"
#include "common/plat.h"
#include "common/str.h"

#define MARK "#verify "
#define FILE_MAX (1u << 20)
#define LINE_MAX_BYTES 65536 /* a longer line is written in pieces */

/* Keeps the head as it comes and the last bytes in a ring until the section ends. */
struct cap {
	uint64_t head, head_left; /* bytes */
	char *ring;
	size_t ring_size, ring_at, ring_len;
	uint64_t total, dropped;
};

struct transcript {
	int fd;
	char path[4096];
	char boundary[TRANSCRIPT_BOUNDARY + 1];
	struct cap cap;
	bool at_line_start;
	bool facts_open;
	struct err err; /* the first write error; everything after it fails the same */
};

static int
raw_write(int fd, const char *p, size_t n, const char *path, struct err *e)
{
	return plat_write_all(fd, p, n) ? err_errno(e, errno, "write %s", path) : 0;
}

static int
t_write(struct transcript *t, const char *p, size_t n)
{
	if (t->err.code != ERR_NONE)
		return -1;
	if (n > 0) {
		if (raw_write(t->fd, p, n, t->path, &t->err))
			return -1;
		t->at_line_start = p[n - 1] == '\n';
	}
	return 0;
}

static int
t_mark(struct transcript *t, const char *word, const char *json)
{
	struct buf b;
	int rc;

	buf_init(&b, 1u << 20);
	rc = buf_addf(&b, &t->err, "%s" MARK "%s %s%s%s\n", t->at_line_start ? "" : "\n",
		t->boundary, word, json[0] ? " " : "", json);
	if (rc == 0)
		rc = t_write(t, b.data, b.len);
	buf_fini(&b);
	return rc;
}

static int
t_result(const struct transcript *t, struct err *e)
{
	if (t->err.code == ERR_NONE)
		return 0;
	if (e != NULL)
		*e = t->err;
	return -1;
}

int
transcript_open(const char *path, const char *nonce, uint64_t cap_bytes,
	struct transcript **out, struct err *e)
{
	struct transcript *t;
	int errnum;

	if (strspn(nonce, "0123456789abcdef") < TRANSCRIPT_BOUNDARY)
		return err_set(e, ERR_USAGE, "a log wants a nonce of hex digits");
	if ((t = calloc(1, sizeof *t)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a log");
	t->fd = -1;
	if (str_copy(t->path, sizeof t->path, path, e))
		goto fail;
	memcpy(t->boundary, nonce, TRANSCRIPT_BOUNDARY);
	t->cap.head = cap_bytes / 2;
	t->cap.ring_size = (size_t)(cap_bytes - cap_bytes / 2);
	t->at_line_start = true;
	t->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
	if (t->fd < 0) {
		errnum = errno;
		err_errno(e, errnum, "%s", path);
		if (errnum == EEXIST && e != NULL)
			e->code = ERR_CONFLICT;
		goto fail;
	}
	*out = t;
	return 0;
fail:
	free(t);
	return -1;
}

/* ---- the cap ---- */

static int
cap_begin(struct transcript *t)
{
	t->cap.head_left = t->cap.head;
	t->cap.ring_at = t->cap.ring_len = 0;
	t->cap.total = t->cap.dropped = 0;
	return 0;
}

static int
ring_put(struct transcript *t, const char *p, size_t n)
{
	struct cap *c = &t->cap;
	size_t k;

	if (c->ring_size == 0) {
		c->dropped += n;
		return 0;
	}
	if (c->ring == NULL && (c->ring = malloc(c->ring_size + 1)) == NULL)
		return err_set(&t->err, ERR_NOMEM, "no memory for a log's tail");
	while (n > 0) {
		k = c->ring_size - c->ring_at;
		k = n < k ? n : k;
		memcpy(c->ring + c->ring_at, p, k);
		c->ring_at = (c->ring_at + k) % c->ring_size;
		if (c->ring_len + k > c->ring_size)
			c->dropped += c->ring_len + k - c->ring_size;
		c->ring_len = c->ring_len + k < c->ring_size ? c->ring_len + k : c->ring_size;
		p += k;
		n -= k;
	}
	return 0;
}

static int
cap_put(struct transcript *t, const char *p, size_t n)
{
	struct cap *c = &t->cap;
	size_t k = n < c->head_left ? n : (size_t)c->head_left;

	c->total += n;
	if (k > 0 && t_write(t, p, k))
		return -1;
	c->head_left -= k;
	return n > k ? ring_put(t, p + k, n - k) : 0;
}

static int
cap_end(struct transcript *t)
{
	struct cap *c = &t->cap;
	char n[32];
	size_t first;

	if (c->ring_len == 0 && c->dropped == 0)
		return t->err.code == ERR_NONE ? 0 : -1;
	if (c->dropped > 0) {
		snprintf(n, sizeof n, "%llu", (unsigned long long)c->dropped);
		if (t_mark(t, "cut", n))
			return -1;
	}
	if (c->ring_len < c->ring_size)
		return t_write(t, c->ring, c->ring_len);
	first = c->ring_size - c->ring_at;
	if (t_write(t, c->ring + c->ring_at, first))
		return -1;
	return t_write(t, c->ring, c->ring_at);
}

/* ---- sections ---- */

static int
section_begin(struct transcript *t, const char *kind, cJSON *head)
{
	char *text;
	int rc;

	if (t->facts_open) {
		t->facts_open = false;
		t_mark(t, "end", "{}");
	}
	text = head ? json_text(head, false) : NULL;
	cJSON_Delete(head);
	if (text == NULL)
		return err_set(&t->err, ERR_NOMEM, "no memory for a log");
	rc = t_mark(t, kind, text);
	free(text);
	return rc ? -1 : cap_begin(t);
}

static int
section_end(struct transcript *t, const struct proc_result *r)
{
	cJSON *o = cJSON_CreateObject();
	char *text = NULL;
	bool ok = o != NULL;
	int rc = -1;

	cap_end(t);
	if (r != NULL)
		ok = ok && json_add_int(o, "exit", r->exit) && json_add_int(o, "signal", r->signal) &&
			json_add_int(o, "ms", r->ms) && json_add_bool(o, "timedOut", r->timed_out) &&
			json_add_bool(o, "cancelled", r->cancelled) &&
			json_add_int(o, "maxRssKiB", r->max_rss_kib);
	ok = ok && json_add_int(o, "bytes", (int64_t)t->cap.total) &&
		json_add_int(o, "dropped", (int64_t)t->cap.dropped);
	if (ok && (text = json_text(o, false)) != NULL)
		rc = t_mark(t, "end", text);
	else
		err_set(&t->err, ERR_NOMEM, "no memory for a log");
	free(text);
	cJSON_Delete(o);
	return rc;
}

int
transcript_fact(struct transcript *t, const char *key, const char *value, struct err *e)
{
	struct buf b;
	size_t i;

	if (!t->facts_open) {
		if (section_begin(t, "facts", cJSON_CreateObject()))
			return t_result(t, e);
		t->facts_open = true;
	}
	buf_init(&b, FILE_MAX);
	if (buf_addf(&b, &t->err, "%s=%s", key, value) == 0) {
		for (i = 0; i < b.len; i++)
			if (b.data[i] == '\n' || b.data[i] == '\r')
				b.data[i] = ' ';
		if (buf_add(&b, "\n", 1, &t->err) == 0)
			t_write(t, b.data, b.len);
	}
	buf_fini(&b);
	return t_result(t, e);
}

int
transcript_bytes(struct transcript *t, const char *name, const void *p, size_t n,
	struct err *e)
{
	cJSON *head = cJSON_CreateObject();

	if (head != NULL && !json_add_text(head, "file", name, strlen(name))) {
		cJSON_Delete(head);
		head = NULL;
	}
	if (section_begin(t, "file", head) == 0 && cap_put(t, p, n) == 0)
		section_end(t, NULL);
	return t_result(t, e);
}

int
transcript_file(struct transcript *t, const char *path, struct err *e)
{
	char *text;
	size_t n;
	int rc;

	if (plat_read_file(path, FILE_MAX, &text, &n, e))
		return -1;
	rc = transcript_bytes(t, path, text, n, e);
	free(text);
	return rc;
}

/* ---- commands ---- */

struct run {
	struct transcript *t;
	const struct proc_spec *user;
	int out_fd;
	const char *out_path;
	uint64_t out_left;
	struct buf line[2]; /* a line of each stream that has not ended yet */
	int inside;         /* stream whose line was written up to its middle; 0: none */
};

/* Ends a line that the other stream left in the middle: what one stream says must not
 * hide behind what the other says. */
static int
run_put(struct run *r, int stream, const char *p, size_t n)
{
	if (n == 0)
		return 0;
	if (r->inside != 0 && r->inside != stream && cap_put(r->t, "\n", 1))
		return -1;
	r->inside = p[n - 1] == '\n' ? 0 : stream;
	return cap_put(r->t, p, n);
}

/* Whole lines go to the log, so that the two streams never mix inside one. */
static int
run_lines(struct run *r, int stream, const char *p, size_t n)
{
	struct buf *b = &r->line[stream - 1];
	const char *nl;
	size_t k;

	while (n > 0) {
		nl = memchr(p, '\n', n);
		k = nl != NULL ? (size_t)(nl - p) + 1 : n;
		if (nl == NULL && b->len + k < LINE_MAX_BYTES)
			return buf_add(b, p, k, &r->t->err);
		if (run_put(r, stream, b->data, b->len) || run_put(r, stream, p, k))
			return -1;
		b->len = 0;
		p += k;
		n -= k;
	}
	return 0;
}

static int
run_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct run *r = arg;
	size_t k = n < r->out_left ? n : (size_t)r->out_left;

	if (stream == 1 && r->out_fd >= 0 && k > 0) {
		if (raw_write(r->out_fd, p, k, r->out_path, &r->t->err))
			return -1;
		r->out_left -= k;
	}
	if (run_lines(r, stream, p, n))
		return -1;
	return r->user->chunk != NULL ? r->user->chunk(r->user->arg, stream, p, n) : 0;
}

static int
run_tick(void *arg)
{
	struct run *r = arg;

	return r->user->tick != NULL ? r->user->tick(r->user->arg) : 0;
}

/* Words of a command; bytes that are not UTF-8 become U+FFFD, so that the head can be
 * read again. */
static bool
words_add(cJSON *o, const char *key, const char *const *words)
{
	cJSON *list = json_add_array(o, key), *one;
	bool ok = list != NULL;

	for (; ok && *words != NULL; words++) {
		one = cJSON_CreateObject();
		ok = one != NULL && json_add_text(one, "s", *words, strlen(*words)) &&
			cJSON_AddItemToArray(list, cJSON_DetachItemFromObject(one, "s"));
		cJSON_Delete(one);
	}
	return ok;
}

static cJSON *
run_head(const struct proc_spec *spec)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && words_add(o, "argv", spec->argv) &&
	    (spec->cwd == NULL || json_add_text(o, "cwd", spec->cwd, strlen(spec->cwd))) &&
	    (spec->env == NULL || words_add(o, "env", spec->env)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

int
transcript_run(struct transcript *t, const struct proc_spec *spec, const char *out_path,
	struct proc_result *r, struct err *e)
{
	struct run run = {.t = t, .user = spec, .out_fd = -1, .out_path = out_path};
	struct proc_spec inner = *spec;
	struct err own = {0};
	int i, rc = -1;

	if (e == NULL)
		e = &own;
	inner.chunk = run_chunk;
	inner.tick = run_tick;
	inner.arg = &run;
	buf_init(&run.line[0], LINE_MAX_BYTES);
	buf_init(&run.line[1], LINE_MAX_BYTES);
	run.out_left = t->cap.head + t->cap.ring_size;
	if (out_path != NULL &&
	    (run.out_fd = open(out_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0) {
		i = errno;
		err_errno(e, i, "%s", out_path);
		if (i == EEXIST)
			e->code = ERR_CONFLICT;
		goto out;
	}
	memset(r, 0, sizeof *r);
	r->exit = -1;
	if (section_begin(t, "run", run_head(spec))) {
		t_result(t, e);
		goto out;
	}
	rc = proc_run(&inner, r, e);
	for (i = 0; i < 2; i++)
		run_put(&run, i + 1, run.line[i].data, run.line[i].len);
	if (rc)
		run_put(&run, 3, e->msg, strlen(e->msg));
	section_end(t, r);
	if (rc == 0)
		rc = t_result(t, e);
out:
	if (run.out_fd >= 0 && close(run.out_fd) && rc == 0)
		rc = err_errno(e, errno, "close %s", out_path);
	buf_fini(&run.line[0]);
	buf_fini(&run.line[1]);
	return rc;
}

int
transcript_close(struct transcript *t, char digest[DIGEST_HEX], uint64_t *bytes,
	struct err *e)
{
	int rc;

	if (t == NULL)
		return 0;
	if (t->facts_open)
		t_mark(t, "end", "{}");
	rc = t_result(t, e);
	if (fsync(t->fd) && errno != EINVAL && rc == 0)
		rc = err_errno(e, errno, "write %s", t->path);
	if (close(t->fd) && rc == 0)
		rc = err_errno(e, errno, "close %s", t->path);
	if (digest != NULL && digest_file(t->path, digest, bytes, rc ? NULL : e))
		rc = -1;
	free(t->cap.ring);
	free(t);
	return rc;
}

/* ---- reading ---- */

struct mark {
	const char *line, *end; /* end: past the newline */
	char boundary[TRANSCRIPT_BOUNDARY + 1];
	char word[8];
	const char *rest; /* JSON text */
	size_t rest_len;
};

/* The marker line that begins at p, when there is one. */
static bool
mark_at(const char *p, const char *end, const char *boundary, struct mark *m)
{
	const size_t head = strlen(MARK), b = TRANSCRIPT_BOUNDARY;
	const char *nl, *q;
	size_t n;

	if ((size_t)(end - p) < head + b + 2 || memcmp(p, MARK, head) != 0 || p[head + b] != ' ')
		return false;
	memcpy(m->boundary, p + head, b);
	m->boundary[b] = '\0';
	if (!str_is_hex(m->boundary, b) || (boundary != NULL && strcmp(boundary, m->boundary) != 0))
		return false;
	nl = memchr(p, '\n', (size_t)(end - p));
	if (nl == NULL)
		return false;
	q = p + head + b + 1;
	for (n = 0; q + n < nl && q[n] != ' '; n++)
		;
	if (n == 0 || n >= sizeof m->word)
		return false;
	memcpy(m->word, q, n);
	m->word[n] = '\0';
	m->rest = q + n + (q[n] == ' ');
	m->rest_len = (size_t)(nl - m->rest);
	m->line = p;
	m->end = nl + 1;
	return true;
}

static const char *
next_line(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	return nl == NULL ? end : nl + 1;
}

static char *
copy_text(const char *p, size_t n)
{
	char *s = malloc(n + 1);

	if (s != NULL) {
		memcpy(s, p, n);
		s[n] = '\0';
	}
	return s;
}

/* A number within [min, max]; out of range is as unknown as missing. */
static int64_t
number_in(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t unknown)
{
	int64_t v = json_int(o, key, unknown);

	return v >= min && v <= max ? v : unknown;
}

static void
section_numbers(struct section *s)
{
	cJSON *o = NULL;
	int64_t exit;

	if (json_parse(s->end, strlen(s->end), 1u << 16, &o, NULL))
		return;
	exit = number_in(o, "exit", INT32_MIN, UINT32_MAX, -1);
	exit -= exit > INT32_MAX ? (int64_t)1 << 32 : 0;
	s->exit = (exit >= 0 && exit <= 255) || ntstatus_is((int)exit) ? (int)exit : -1;
	s->signal = (int)number_in(o, "signal", 0, 255, 0);
	s->ms = number_in(o, "ms", 0, INT64_MAX, -1);
	s->timed_out = json_bool(o, "timedOut", false);
	s->cancelled = json_bool(o, "cancelled", false);
	s->dropped = (uint64_t)number_in(o, "dropped", 0, INT64_MAX, 0);
	/* the newline in front of the marker is ours when the body had none */
	if (s->dropped == 0 && s->len > 0 && s->body[s->len - 1] == '\n' &&
	    json_int(o, "bytes", -1) == (int64_t)s->len - 1)
		s->len--;
	cJSON_Delete(o);
}

int
transcript_next(const char *log, size_t len, size_t *pos, struct section *s, struct err *e)
{
	const char *end = log + len, *p = log + *pos;
	struct mark m, first, close_mark;

	memset(s, 0, sizeof *s);
	s->exit = -1;
	if (p >= end)
		return 0;
	/* the boundary of the log is the one of its first line */
	if (!mark_at(log, end, NULL, &first) || !mark_at(p, end, first.boundary, &m))
		return err_set(e, ERR_PARSE, "log: no section begins at byte %zu", *pos);
	memcpy(s->kind, m.word, sizeof s->kind);
	s->body = m.end;
	for (p = m.end; p < end && !(mark_at(p, end, first.boundary, &close_mark) &&
			strcmp(close_mark.word, "cut") != 0);
	     p = next_line(p, end))
		;
	s->len = (size_t)(p - m.end);
	s->ended = p < end && strcmp(close_mark.word, "end") == 0;
	s->head = copy_text(m.rest, m.rest_len);
	s->end = s->ended ? copy_text(close_mark.rest, close_mark.rest_len) : copy_text("{}", 2);
	if (s->head == NULL || s->end == NULL) {
		section_fini(s);
		return err_set(e, ERR_NOMEM, "no memory for a log");
	}
	section_numbers(s);
	*pos = (size_t)((s->ended ? close_mark.end : p) - log);
	return 1;
}

void
section_fini(struct section *s)
{
	free(s->head);
	free(s->end);
	s->head = s->end = NULL;
}

bool
section_line(const struct section *s, size_t *pos, const char **line, size_t *n)
{
	const char *nl;

	if (*pos >= s->len)
		return false;
	*line = s->body + *pos;
	nl = memchr(*line, '\n', s->len - *pos);
	*n = nl != NULL ? (size_t)(nl - *line) : s->len - *pos;
	*pos += *n + 1;
	return true;
}

bool
section_fact(const struct section *s, const char *key, char *out, size_t size)
{
	const char *p;
	size_t pos = 0, k = strlen(key), n;

	while (section_line(s, &pos, &p, &n)) {
		if (n <= k || memcmp(p, key, k) != 0 || p[k] != '=')
			continue;
		n -= k + 1;
		if (n >= size)
			return false;
		memcpy(out, p + k + 1, n);
		out[n] = '\0';
		return true;
	}
	return false;
}
