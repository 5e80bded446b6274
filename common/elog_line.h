/*
 * elog_line - takes an engine log apart into messages; a part of elog.
 *
 * A message is what one call of the engine's logger printed, without time stamp, level,
 * colours and what backspaces removed.  Lines are cut at ELOG_MAX_LINE bytes.
 */
#ifndef COMMON_ELOG_LINE_H
#define COMMON_ELOG_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/span.h"

/* text is trimmed, not empty and borrowed until return; level is one of "IWED", NUL when
 * the message has none; line counts from 1. */
typedef void (*elog_message_fn)(void *arg, struct span text, char level, size_t line);

void elog_messages(const char *log, size_t len, elog_message_fn each, void *arg);

struct elog;
/* elog_place.c: a node of a computed graph.  proves: no word of the model can stand here;
 * else it counts only against the run. */
void elog_node(struct elog *l, const char *op, const char *tensor, const char *backend, size_t line,
	bool proves);
void elog_graph_begin(struct elog *l);
void elog_graph_end(struct elog *l);

#endif
