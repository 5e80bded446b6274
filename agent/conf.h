/*
 * conf - verify-agent.conf: a row per setting, each with its default, range and unit.
 *
 * INI, read with libinih.  Unknown sections and keys, values out of range and settings
 * given twice are errors that name file and line.  The same rows make
 * `serve --print-config`, which is the sample deploy/verify-agent.conf.  Units stand in the names: _s seconds, _bytes.
 * Life: a plain struct; nothing to free.  Threads: read-only once loaded.
 */
#ifndef AGENT_CONF_H
#define AGENT_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/str.h"

#define CONF_MAX_BYTES 65536 /* of the file */
#define CONF_MAX_LINE 190    /* of a line; libinih cuts at 200 */
#define CONF_MAX_TEXT 160    /* of a text value */

/* Settings that are whole numbers. */
enum conf_key {
	CONF_MAX_CONNECTIONS,
	CONF_MAX_STREAMS,
	CONF_IDLE_TIMEOUT,
	CONF_HEARTBEAT,
	CONF_MAX_BODY,
	CONF_MAX_HEADER,
	CONF_MAX_QUEUE,
	CONF_MAX_KNOWN,
	CONF_JOB_TIMEOUT,
	CONF_CANCEL_GRACE,
	CONF_STOP_GRACE,
	CONF_LOG_CAP,
	CONF_BUILD_TIMEOUT,
	CONF_SMOKE_TIMEOUT,
	CONF_FIXTURE_TIMEOUT,
	CONF_KEEP_DAYS,
	CONF_SPOOL_BYTES,
	CONF_COUNT
};
/* Settings that are text. */
enum conf_text { CONF_STATE, CONF_LISTEN, CONF_TEXT_COUNT };

struct conf_row {
	const char *section, *key;
	uint64_t min, max, def; /* the range is inclusive */
	const char *unit;
	const char *help;
};
struct conf_text_row {
	const char *section, *key;
	const char *def; /* for people: what holds when it is not given */
	const char *help;
};
extern const struct conf_row conf_rows[CONF_COUNT];
extern const struct conf_text_row conf_texts[CONF_TEXT_COUNT];

struct conf {
	uint64_t v[CONF_COUNT];
	char text[CONF_TEXT_COUNT][CONF_MAX_TEXT]; /* "" when not given */
};

void conf_default(struct conf *c);
/* Reads settings over those in c.  Borrows text (untrusted); name stands in messages. */
CHECKED int conf_parse(const char *text, size_t len, const char *name, struct conf *c,
	struct err *e);
/* Defaults, then the file.  path NULL: the user's verify/agent.conf of the XDG
 * configuration folder, else /etc/verify/agent.conf, else none.  A path that is given
 * must be there. */
CHECKED int conf_load(const char *path, struct conf *c, struct err *e);
/* The sample file with every row, its range and its default as a comment. */
CHECKED int conf_sample(struct buf *b, struct err *e);

#endif
