/* record_impl - what the parts of record share. */
#ifndef AGENT_RECORD_IMPL_H
#define AGENT_RECORD_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/mask.h"
#include "common/str.h"
#include "common/tool.h"

#define RECORD_MAX_FILES 1024

/* One file of the folder to be. */
struct record_file {
	char name[96];      /* below the folder: "kfd/nodes/1/properties" */
	char *text;         /* owned */
	size_t len;
	int kind, exit;     /* of a tool's output: enum tool_kind; -1 what no parser reads */
};
struct record {
	struct record_file *files;
	size_t count;
	struct buf tools;   /* rows of tools.tsv */
	cJSON *absent;      /* names of what is not installed here */
	struct mask *mask;
	uint32_t timeout_ms; /* for every child; 0: each its own */
	int (*tick)(void *arg);
};

/* Takes text, also on failure. */
CHECKED int record_add(struct record *r, char *text, size_t len, int kind, int exit, struct err *e,
	const char *fmt, ...) PRINTF(7, 8);
/* A line for whoever waits: what was asked, what came. */
void record_say(const char *what, const char *fmt, ...) PRINTF(2, 3);
/* Each asks, says what came, and adds files.  ERR_CANCELLED: a signal. */
CHECKED int record_tools(struct record *r, struct err *e);
CHECKED int record_probes(struct record *r, struct err *e);
CHECKED int record_kfd(struct record *r, struct err *e);
/* Names and addresses of this host, which its tools may print. */
CHECKED int record_names(struct record *r, struct err *e);

#endif
