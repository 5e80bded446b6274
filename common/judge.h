/*
 * judge - the verdict on one gate from the bytes of its raw log, and nothing else.
 *
 * The agent writes a log and then asks the judge; the controller asks the same judge
 * about the bytes it pulled.  So a summary never decides.  Pure functions: no state.
 */
#ifndef COMMON_JUDGE_H
#define COMMON_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/elog.h"
#include "common/lane.h"
#include "common/suite.h"

struct judgement {
	enum outcome outcome;
	enum reason reason;
	char detail[320];
	char hint[160];
};
/* Outcome and default hint follow from the reason. */
void judgement_set(struct judgement *j, enum reason r, const char *fmt, ...) PRINTF(3, 4);

struct smoke_facts;

struct judge_ask {
	const struct lane *lane;
	const struct suite *suite;
	const char *family;   /* of a graph smoke; "baseline" or a family of the suite */
	const char *only_cache; /* an overriding cache type, or NULL */
	/* optional, the caller's: gets what a smoke's log says; already has it when smoke_read */
	struct smoke_facts *smoke;
	bool smoke_read;
	int64_t min_tokens;   /* that must have been asked for; 0: an override changed it */
};

/* Borrows the log; fills *out. */
typedef void (*judge_fn)(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
/* Judges a gate of the lane, whose device must have been the same before and after. */
void judge_gate(enum gate_id g, const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
/* The judge of a gate alone; NULL for gates that have none yet. */
judge_fn judge_of(enum gate_id g);

/* ---- facts that both programs read from the same logs ---- */

struct host_facts {
	char os[32], arch[32], kernel[128], hostname[128];
	char virtualisation[64]; /* "none", "kvm", ... */
	char emulated[64];       /* "" or what emulates: "qemu-user", "tcg" */
};
bool host_facts_read(const char *log, size_t len, struct host_facts *out);

struct device_facts {
	/* of a GPU; "" and -1: unknown or not a GPU */
	char uuid[64];           /* "GPU-4b9c...", "MIG-...", 32 hex digits for Vulkan */
	char pci[32];            /* "0000:00:06.0", lower case, domain of 4 to 8 digits */
	char driver[96];         /* version: "580.159.04" */
	char firmware[64];
	char mig[32];            /* "1g.18gb" of the slice that is used; "" no slice */
	bool vgpu, wsl, software;
	bool emulator;           /* a program plays the phone */
	bool simulated;          /* a recording played it */
	bool faked;              /* a variable makes the chip claim to be another */
	char override[336];      /* the variables that change what is seen, "" none */
	int ordinal;             /* of the interface's own list, with nothing hidden */
	/* of every device */
	char name[128];          /* as the device says */
	char slug[64];           /* model without vendor: "epyc-9654" */
	char level[48];          /* "x86-64-v4", "sm_90", "gfx942", "nvidia-proprietary" */
	char features[2048];     /* vector features, blank separated */
	char device_class[160];  /* target/slug/level */
	int64_t memory_bytes;    /* -1 unknown */
	int64_t cpus;            /* -1 unknown */
};
bool device_facts_read(const char *log, size_t len, const struct lane *lane,
	const struct target *t, struct device_facts *out);
/* The same from the text of /proc/cpuinfo (memory and cpus stay unknown). */
bool device_facts_cpuinfo(const char *text, size_t len, const struct target *t,
	struct device_facts *out);

/* A fact of any transcript, from the last facts section that has it. */
bool log_fact(const char *log, size_t len, const char *key, char *out, size_t size);

/* The engine run of a smoke log. */
struct smoke_facts {
	struct elog elog;
	char driver[64];         /* base name of argv[0] */
	char cache_type[ELOG_TYPE]; /* asked: the word after --cache-type-k */
	int tokens_asked;
	char model[4096];        /* the word after -m */
	int exit, signal;
	bool timed_out, cancelled;
	uint64_t dropped;
	int64_t ms;
	size_t lines_before;     /* of the gate's log, in front of what the engine printed */
};
bool smoke_facts_read(const char *log, size_t len, struct smoke_facts *out);

/* What elog is asked of that run. */
struct smoke_ask smoke_ask_of(const struct smoke_facts *f, const struct lane *lane,
	const struct suite_placement *placement);
/* The harness's JSON out of a fixture log; gives, cJSON_Delete; NULL when there is none. */
cJSON *fixtures_read(const char *log, size_t len);

/* The engine's own test of one op, as its log has it. */
struct op_facts {
	char op[48], backend[32]; /* asked with -o and -b */
	uint32_t ok, failed, not_supported; /* cases of that op on that backend */
	double worst_nmse;        /* of what was printed; -1 none */
};
/* Fills rows of the runs in an op-parity log; gives their number, at most max. */
int op_facts_read(const char *log, size_t len, struct op_facts *out, int max);

/* A graph route of the engine, as the log of engine-verify has it. */
#define ROUTE_FACTS_MAX 6
struct route_facts {
	const char *label;       /* "GGML_OP_ATTN_SCORE_QJL"; static */
	bool supported;          /* by the device, and in the engine */
	uint32_t right, wrong;   /* scores */
	double max_diff;         /* -1: no score */
};
/* Fills a row per route that was tested; gives their number. */
int route_facts_read(const char *log, size_t len, struct route_facts out[ROUTE_FACTS_MAX]);

/* Levenshtein distance of two outputs over the length of the longer, 0 (equal) to 1;
 * at most the first 4096 bytes of each count.  -1 when out of memory. */
double output_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
