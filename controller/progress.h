/*
 * progress - a job's events for the person who waits for it.
 *
 * Three looks.  Live: a list of stages redrawn in place, each one write (no flicker),
 * clipped to the window, fitted to its height.  Plain: a line per event, a progress line
 * at most every 10 s.  JSON: each event as one object a line, with "host" and "job".
 *
 * Life: progress_new, progress_event / _tick / _say, progress_end, progress_free.
 * Threads: one.  Events are an agent's words: cleaned before they reach a terminal.
 */
#ifndef CONTROLLER_PROGRESS_H
#define CONTROLLER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"

#define PROGRESS_MAX_ROWS 128
#define PROGRESS_PLAIN_MS 10000 /* between two plain progress lines of a job */
#define PROGRESS_REDRAW_MS 150

enum progress_mode { PROGRESS_PLAIN, PROGRESS_LIVE, PROGRESS_JSON };

struct progress_look {
	enum progress_mode mode;
	bool colour, utf8;
	int width, height;       /* cells; 0: ask the terminal at every redraw */
	int64_t (*now)(void);    /* a clock that never steps, ms; NULL: the real one */
};
/* From the stream and the environment: live only on a terminal that can move its cursor
 * (TERM is set and not "dumb"), colour only there and without NO_COLOR, UTF-8 by the
 * locale (call setlocale first). */
void progress_look_of(FILE *out, bool json, struct progress_look *look);

struct progress;

/* Keeps out, host, job.  Gives *p. */
CHECKED int progress_new(FILE *out, const struct progress_look *look, const char *host,
	const char *job, struct progress **p, struct err *e);
void progress_free(struct progress *p); /* NULL is fine */

void progress_event(struct progress *p, const cJSON *event);
/* A stage of our own, such as "pull"; outcome: a name of common/lane.h, or NULL while it
 * runs. */
void progress_stage(struct progress *p, const char *stage, uint64_t done, uint64_t total,
	const char *unit, const char *text, const char *outcome);
/* A line for people above the list; not in JSON. */
void progress_say(struct progress *p, const char *fmt, ...) PRINTF(2, 3);
void progress_tick(struct progress *p);
/* Draws a last time and leaves the list where it stands; later calls print plainly. */
void progress_end(struct progress *p);

/* The parts, for other output and for tests.  out holds at least 16 bytes. */
void progress_duration(int64_t ms, char *out, size_t size); /* "0.4 s", "1m03s" */
void progress_amount(double n, const char *unit, char *out, size_t size); /* "1.5 MiB" */
/* Bar of `cells` cells; utf8: eighths of blocks, else '#' and '.'. */
void progress_bar(uint64_t done, uint64_t total, int cells, bool utf8, char *out,
	size_t size);

/* How an outcome looks: a sign of one cell and a colour (SGR, "" for none). */
const char *progress_sign(const char *outcome, bool utf8);
const char *progress_colour(const char *outcome);

#endif
