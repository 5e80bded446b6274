/*
 * agree - the probes of a lane: who is asked, what each said, whether they agree, and which
 * device the lane speaks of.
 *
 * A source is a row: a tool or a probe of ours, run as a child of its own into the device
 * gate's log.  Agent and controller read them from there.  What is legitimately different
 * is no disagreement: a variable that hides devices and stands in the log, slices of MIG
 * beside their card, software beside hardware, a tool that is not installed.
 * Pure functions over the bytes of a log: any thread, any input.
 */
#ifndef COMMON_AGREE_H
#define COMMON_AGREE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/judge.h"
#include "common/str.h"
#include "common/tool.h"

#define AGREE_MAX 6
#define AGREE_SELF "verify-agent" /* argv[0] of our own probes, whatever its folder */

struct agree_row {
	const char *name;          /* in tables: "NVML" */
	enum api    api;
	const char *argv[6];       /* NULL-terminated */
	enum tool_kind kind;
	bool        required;      /* its absence blocks */
	unsigned    timeout_ms;
};
extern const struct agree_row agree_rows[];
extern const size_t agree_row_count;

struct agree_source {
	const struct agree_row *row;
	bool ran;                  /* its section stands in the log, with its end */
	int exit, signal;
	bool timed_out;
	struct tool_answer a;
};
struct agree {
	struct agree_source source[AGREE_MAX];
	int count;
	/* facts of the log */
	char wanted[64];           /* device that was asked for; "" the first */
	char host_arch[32];        /* uname -m */
	char visible[1024];         /* variables that hide devices, "NAME=VALUE ..." */
	char faking[1024];          /* variables that make a chip claim another's name */
	bool wsl, software_allowed, simulated;
};

/* Variables that change what is seen: recorded by the agent as facts "env.NAME". */
struct agree_variable {
	const char *name;          /* a * at its end: all that begin so */
	bool hides, fakes;
};
/* The first row that fits the n bytes of a variable's name; NULL none. */
const struct agree_variable *agree_variable_find(const char *name, size_t n);

/* Reads the sources of the API from a device gate's log.  out is large: heap. */
void agree_read(const char *log, size_t len, enum api api, struct agree *out);
/* The source of that name; NULL when the log has none. */
const struct agree_source *agree_source(const struct agree *g, const char *name);
/* Slices that NVML lists of the card with that id. */
int agree_slices(const struct agree *g, const char *uuid);
/* REASON_NONE, or why the sources give no device: *out says it. */
enum reason agree_judge(const struct agree *g, const struct lane *lane, struct judgement *out);
/* The device of the lane, merged from all sources; false when there is none. */
bool agree_device(const struct agree *g, const struct lane *lane, const struct target *t,
	struct device_facts *out);
/* One line a source: what it said. */
CHECKED int agree_table(const struct agree *g, struct buf *b, struct err *e);

/* A recording played the machine of this log, whichever gate's and however it ended: a
 * fact says so, or an answer of our probes or of a harness. */
bool agree_simulated(const char *log, size_t len);

/* Equal but for a prefix "GPU-", hyphens and the case of letters. */
bool agree_same_id(const char *a, const char *b);
/* "NVIDIA GeForce RTX 4090" and "GeForce RTX 4090" are one. */
bool agree_same_name(const char *a, const char *b);

#endif
