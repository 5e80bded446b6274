/*
 * event - the event file of one job: NDJSON lines as API.md has them, appended whole.
 *
 * One writer at a time (the server before and after the worker, the worker between).
 * Life: event_open, event_*, event_close.  Events are progress for people and scripts,
 * never evidence: a failing write is remembered (event_failed), and does not stop a job.
 */
#ifndef AGENT_EVENT_H
#define AGENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"

struct event_log;

/* Goes on after the last whole line that is there (a torn last line is cut off).
 * path NULL: nothing is written, the sink alone gets the events. */
CHECKED int event_open(const char *path, struct event_log **out, struct err *e);
void event_close(struct event_log *l); /* NULL is fine */
/* Every event also goes to fn (for people at a terminal).  o is borrowed. */
void event_sink(struct event_log *l, void (*fn)(void *arg, const cJSON *o), void *arg);
uint64_t event_last(const struct event_log *l);
bool event_failed(const struct event_log *l);

/* Takes o; adds seq and t. */
void event_add(struct event_log *l, const char *type, cJSON *o);
void event_progress(struct event_log *l, const char *gate, uint64_t done, uint64_t total,
	const char *unit, const char *text);
void event_note(struct event_log *l, const char *gate, const char *text);

#endif
