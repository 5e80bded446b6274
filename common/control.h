/*
 * control - what the log of a control run says: the engine on the CPU with f16, on the CPU
 * with a cache family, on the lane's device with the family, and on the CPU with the family
 * while our own library puts K rows into wrong cells (agent/preload/scramble.c).
 *
 * A run's part is read from its own words: the program, -ngl and --device, the type after
 * --cache-type-k, and the line that only the scrambling library prints.  Two programs are
 * told apart: llama-perplexity measures the divergence from f16, the driver says its greedy
 * text.  Pure functions over bytes.
 */
#ifndef COMMON_CONTROL_H
#define COMMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "common/judge.h"
#include "common/kl.h"

#define CONTROL_TOOL "llama-perplexity"
#define CONTROL_TEXT 1024 /* bytes of a generated text that are kept */

enum control_part { CONTROL_BASE, CONTROL_FAMILY, CONTROL_DEVICE, CONTROL_SCRAMBLED, CONTROL_PARTS };

struct control_run {
	bool ended;              /* the run is there and its end, too */
	struct smoke_facts f;
	struct kl kl;            /* of llama-perplexity */
	char base[1024];         /* its file of probabilities */
	char prompt[DIGEST_HEX]; /* digest of the word after -p; "" none */
	char text[CONTROL_TEXT]; /* of the driver: its standard output, without blanks at the end */
	bool has_text, synthetic;
	long moved;              /* writes to the cache that the library moved; -1: it was not there */
};

struct control_facts {
	struct control_run kl[CONTROL_PARTS], text[CONTROL_PARTS];
	int kl_runs;             /* of llama-perplexity, whatever came of them */
	char expected[CONTROL_TEXT]; /* what a synthetic model must say; "" not known */
};

/* baseline: the cache type that others are compared with.  NULL when out of memory; free. */
struct control_facts *control_read(const char *log, size_t len, const char *baseline);
/* The row of the report; gives, cJSON_Delete; NULL when there is nothing to tell. */
cJSON *control_row(const char *log, size_t len, const struct suite *s, const char *family);

/* ---- what a report must have in common with the log ---- */

/* Whether the row of the report is another than the log gives; text says how. */
bool control_differs(const cJSON *report, const struct suite *s, const char *gate, const char *log,
	size_t len, char *text, size_t size);
/* Whether a run on the device says that it was at another place than pci; other says where. */
bool control_elsewhere(const char *log, size_t len, const char *baseline, const char *pci,
	char other[32]);

#endif
