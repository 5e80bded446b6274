#include "agent/event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define LINE_MAX_BYTES 16384          /* the longest event */
#define FILE_MAX_BYTES (64u << 20)    /* progress is dropped beyond */
#define PROGRESS_MS 100               /* a gate's progress at most so often */

struct event_log {
	int fd; /* -1: the sink alone */
	uint64_t last;
	uint64_t size;
	bool failed;
	void (*fn)(void *arg, const cJSON *o);
	void *arg;
	char gate[96]; /* of the last progress written */
	int64_t gate_ms;
};

/* Sequence numbers have no gaps, so the count of whole lines is the last of them. */
static int
lines_count(struct event_log *l, const char *path, struct err *e)
{
	static const size_t step = 65536;
	char *block;
	uint64_t at = 0;
	ssize_t n;
	ssize_t i;
	int rc = -1;

	if ((block = malloc(step)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to read %s", path);
	for (;;) {
		if ((n = pread(l->fd, block, step, (off_t)at)) < 0) {
			if (errno == EINTR)
				continue;
			err_errno(e, errno, "read %s", path);
			goto out;
		}
		if (n == 0)
			break;
		for (i = 0; i < n; i++)
			if (block[i] == '\n') {
				l->last++;
				l->size = at + (uint64_t)i + 1;
			}
		at += (uint64_t)n;
	}
	if (at > l->size && ftruncate(l->fd, (off_t)l->size)) {
		err_errno(e, errno, "cut the torn last line of %s", path);
		goto out;
	}
	rc = 0;
out:
	free(block);
	return rc;
}

int
event_open(const char *path, struct event_log **out, struct err *e)
{
	struct event_log *l = NULL;
	int rc = -1;

	if ((l = calloc(1, sizeof *l)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for an event log");
	l->fd = -1;
	if (path != NULL) {
		l->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
			0640);
		if (l->fd < 0) {
			err_errno(e, errno, "open %s", path);
			goto out;
		}
		if (lines_count(l, path, e))
			goto out;
	}
	*out = l, l = NULL;
	rc = 0;
out:
	event_close(l);
	return rc;
}

void
event_close(struct event_log *l)
{
	if (l == NULL)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

void
event_sink(struct event_log *l, void (*fn)(void *arg, const cJSON *o), void *arg)
{
	l->fn = fn;
	l->arg = arg;
}

uint64_t
event_last(const struct event_log *l)
{
	return l->last;
}

bool
event_failed(const struct event_log *l)
{
	return l->failed;
}

/* A line is there as a whole or not at all: a short write is taken back. */
static bool
line_write(struct event_log *l, const char *line, size_t len)
{
	ssize_t n;

	if (l->fd < 0)
		return true;
	if (len > LINE_MAX_BYTES || l->size + len > FILE_MAX_BYTES)
		return false;
	do
		n = write(l->fd, line, len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len) {
		l->size += len;
		return true;
	}
	if (n > 0 && ftruncate(l->fd, (off_t)l->size))
		return false; /* the next event_open cuts it */
	return false;
}

/* seq, t and type come first, so that a person reading the file finds them. */
static cJSON *
line_head(const struct event_log *l, const char *type, cJSON *o)
{
	cJSON *line = cJSON_CreateObject(), *item;

	if (line == NULL || !json_add_int(line, "seq", (int64_t)l->last + 1) ||
	    !json_add_int(line, "t", plat_now_ms()) || !json_add_str(line, "type", type))
		goto fail;
	while (o != NULL && (item = o->child) != NULL) {
		cJSON_DetachItemViaPointer(o, item);
		if (!cJSON_AddItemToArray(line, item)) {
			cJSON_Delete(item);
			goto fail;
		}
	}
	return line;
fail:
	cJSON_Delete(line);
	return NULL;
}

void
event_add(struct event_log *l, const char *type, cJSON *o)
{
	cJSON *line = line_head(l, type, o);
	struct buf b;
	char *text = NULL;

	buf_init(&b, LINE_MAX_BYTES);
	if (line == NULL || (text = json_text(line, false)) == NULL ||
	    buf_addf(&b, NULL, "%s\n", text) || !line_write(l, b.data, b.len)) {
		l->failed = true;
	} else {
		l->last++;
		if (l->fn != NULL)
			l->fn(l->arg, line);
	}
	buf_fini(&b);
	free(text);
	cJSON_Delete(line);
	cJSON_Delete(o);
}

void
event_progress(struct event_log *l, const char *gate, uint64_t done, uint64_t total,
	const char *unit, const char *text)
{
	int64_t now = plat_mono_ms();
	cJSON *o;

	if (done != total && strcmp(l->gate, gate) == 0 && now - l->gate_ms < PROGRESS_MS)
		return;
	str_show(l->gate, sizeof l->gate, gate, strlen(gate));
	l->gate_ms = now;
	if ((o = cJSON_CreateObject()) == NULL || !json_add_str(o, "gate", gate) ||
	    !json_add_int(o, "done", (int64_t)done) ||
	    !json_add_int(o, "total", (int64_t)total) || !json_add_str(o, "unit", unit) ||
	    !json_add_text(o, "text", text, text != NULL ? strlen(text) : 0)) {
		l->failed = true;
		cJSON_Delete(o);
		return;
	}
	event_add(l, "progress", o);
}

void
event_note(struct event_log *l, const char *gate, const char *text)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL || !json_add_str(o, "gate", gate) ||
	    !json_add_text(o, "text", text, strlen(text))) {
		l->failed = true;
		cJSON_Delete(o);
		return;
	}
	event_add(l, "note", o);
}
