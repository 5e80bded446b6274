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

/* first: the number of the first line, 1 of a whole log.  Gives that of the line behind
 * the last one that ended. */
size_t elog_messages(const char *log, size_t len, size_t first, elog_message_fn each, void *arg);

/* "llama_kv_cache: text", "srv    load_model: text": *fn is the last word before the colon,
 * *body what follows; both stay as they are when the message has none. */
void elog_head_split(struct span line, struct span *fn, struct span *body);
/* "/path/ggml.c:123: text" of an abort. */
bool elog_source_split(struct span line, struct span *body);
/* want: NULL any, "x*" begins so. */
bool elog_fn_matches(const char *want, struct span fn);
/* Where a message begins that another thread's, or the model's, words stand before; s.n:
 * nowhere. */
size_t elog_glued_at(struct span s);

struct elog;
/* elog_place.c: a node of a computed graph.  proves: no word of the model can stand here;
 * else it counts only against the run. */
void elog_node(struct elog *l, const char *op, const char *tensor, const char *backend, size_t line,
	bool proves);
void elog_graph_begin(struct elog *l);
void elog_graph_end(struct elog *l);

#endif
