/*
 * elog_impl - what the files that read an engine's log share; nobody else includes it.
 */
#ifndef COMMON_ELOG_IMPL_H
#define COMMON_ELOG_IMPL_H

#include "common/elog.h"
#include "common/span.h"

/* The ASCII letters that stand in a text, as bits: what a row wants and a message lacks
 * need not be looked for. */
struct letters {
	uint64_t bits[2];
};
#define ELOG_MAX_ROWS 160

struct parse {
	struct elog *l;
	struct letters needs[ELOG_MAX_ROWS]; /* of each row's own words */
	/* The KV caches that one context allocates, one after the other.  `real` once a
	 * buffer is larger than 0: the dry pass of --fit prints the same with 0.00. */
	char k_type[ELOG_TYPE], v_type[ELOG_TYPE];
	bool open, real;
	/* The engine generates: what looks like an allocation now is text that the model
	 * wrote, whose words nobody chose. */
	bool generating;
	/* The first token is out: from here on any line may be what the model wrote.  It
	 * may count against the run, never for it. */
	bool talking;
	/* Nodes are printed at the level of debugging.  A log whose lines say their level, and
	 * that has none of that level by the time the cache is there, prints no nodes: what
	 * looks like one is text. */
	bool debug_seen, levels;
	bool took;            /* a row understood this message */
	bool soft, hard, layered; /* kinds of devices that are listed, used or not */
	struct elog_device layer_on[ELOG_MAX_BUFFERS]; /* of the context that is made */
	int layer_count;
	elog_run_fn each_run; /* NULL: one run alone is read, then stop */
	void *each_arg;
	bool stop;
	char compute[ELOG_MAX_BUFFERS][32]; /* devices of the context's compute buffers */
	/* The graph whose nodes are printed now, and whether it is only tried. */
	bool reserving, try_next, trial;
	/* The message at hand, without time stamp; its level "IWED" or NUL. */
	struct span line;
	char level;
	size_t number;   /* of the line in the log */
	/* Of the debug lines of llama-completion; -1 unknown. */
	int n_predict, n_remain;
	/* What follows the refusal of a cache type: the option's own help. */
	char usage[2048];
	size_t usage_len;
};

/* elog_trouble.c: what rows fill in of devices, refusals and ends.  caps are the texts of
 * the row's fields. */
void elog_set_error(struct parse *p);
void elog_on_node(struct parse *p, const struct span *caps, int arg);
void elog_on_device(struct parse *p, const struct span *caps, int arg);
void elog_on_vulkan_device(struct parse *p, const struct span *caps, int arg);
void elog_on_layer(struct parse *p, const struct span *caps, int arg);
void elog_device_add(struct elog_device *list, int *count, struct span name, size_t line);
void elog_on_listed(struct parse *p, const struct span *caps, int arg);
void elog_on_cpu_type(struct parse *p, const struct span *caps, int arg);
void elog_on_graph_failed(struct parse *p, const struct span *caps, int arg);
void elog_on_flag(struct parse *p, const struct span *caps, int arg);
void elog_on_trouble(struct parse *p, const struct span *caps, int arg);
void elog_on_abort(struct parse *p, const struct span *caps, int arg);
void elog_on_backtrace(struct parse *p, const struct span *caps, int arg);
void elog_on_op_unsupported(struct parse *p, const struct span *caps, int arg);
void elog_on_op_refused(struct parse *p, const struct span *caps, int arg);
void elog_on_op_missing(struct parse *p, const struct span *caps, int arg);
void elog_source_abort(struct parse *p, struct span line, struct span body);
void elog_on_model(struct parse *p, const struct span *caps, int arg);
void elog_on_model_open(struct parse *p, const struct span *caps, int arg);
void elog_on_error(struct parse *p, const struct span *caps, int arg);
void elog_on_error_prefix(struct parse *p, const struct span *caps, int arg);

#endif
