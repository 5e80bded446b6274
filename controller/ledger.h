/*
 * ledger - what was run where, and what came of it: an append-only SQLite file.
 *
 * Life: ledger_open, then ledger_add and the questions below, ledger_close.  Raw
 * reports and logs do not stand in it: they lie beside it as blobs (controller/blob.h,
 * folder ledger_blobs()) under the digests that stand here; write those first.
 *
 * Threads: a ledger stays with one thread.  Processes: any number may use one file at
 * once; a writer waits up to 10 s for another (ERR_BUSY after that).  Every question
 * copies its answer and ends its read before it returns, so no reader holds the
 * write-ahead log.  Outcomes, reasons and claims go by the names of common/lane.h.
 *
 * Leaf of an entry: SHA-256 of a zero byte and the entry's canonical bytes (RFC 6962,
 * 2.1).  Canonical bytes are lines "name=VALUE\n": first "verify-ledger-entry=1",
 * "kind=3:run", "host=...", "class=...", then the members of struct ledger_run in the
 * order of its columns (ledger_row.c), then for gates, fixtures, smokes and artifacts a
 * line "gates=COUNT" followed by the members of each; last the same for code ("codes="),
 * without that line when there is none.  VALUE is LENGTH:BYTES for text
 * (absent and empty: "0:"), decimal digits for a number, "-" for an unknown one, 0 or 1
 * for a truth, 16 hex digits of the IEEE 754 bits for a real number.
 */
#ifndef CONTROLLER_LEDGER_H
#define CONTROLLER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/lane.h"
#include "common/str.h"

#define LEDGER_RUN_ID 32
#define LEDGER_MAX_NAME 255    /* bytes of the name of a host or class */
#define LEDGER_MAX_TEXT 16384  /* bytes of one text */
#define LEDGER_MAX_ROWS 4096   /* gates, fixtures, smokes, artifacts or code of one run */
#define LEDGER_MAX_LIST 100000 /* runs of one answer */
#define LEDGER_MAX_ENTRY (64u << 20) /* canonical bytes of one entry */

/*
 * In all structs below: NULL and "" are the same, "absent"; read back it is "".  A
 * negative number is unknown (read back as -1), a real number that is not finite is
 * unknown (read back as NAN).  Digests are 64 lower-case hex digits.  Text is UTF-8.
 */
struct ledger_gate {
	const char *name;   /* "graph-smoke/q8_0" */
	const char *family; /* "q8_0", or absent */
	const char *outcome, *reason, *detail, *hint;
	int64_t started_ms, finished_ms;
	const char *log_digest;
};

struct ledger_fixture {
	const char *name, *digest;
	int64_t elements;
	double max_abs, max_rel, nmse;
	int64_t non_finite;
	double tolerance;
	const char *outcome;
};

struct ledger_smoke {
	const char *family, *cache_asked, *cache_applied, *driver, *kv_device;
	int64_t tokens_asked, tokens_generated;
	const char *output_digest;
	double distance; /* from the output of the baseline */
	const char *outcome, *reason;
};

struct ledger_artifact {
	const char *name;
	int64_t bytes;
	const char *sha256;
	bool truncated;
};

/* Code that was on the device while the fixtures ran. */
struct ledger_code {
	const char *backend, *device, *arch; /* "cuda", "NVIDIA H200", "sm_90" */
	const char *name, *digest, *how;     /* "score.fatbin", ..., "sm_90a" */
};

struct ledger_run {
	int64_t seq;	    /* given by the ledger; ignored by ledger_add */
	const char *run_id; /* 32 hex digits: the job's id */
	const char *host;
	const char *device_class; /* absent when no device was found */
	const char *lane, *target, *suite, *suite_digest;
	const char *outcome, *reason, *detail;
	bool recordable;	    /* goes with outcome "pass" only */
	const char *not_recordable; /* why not, in words */
	bool agent_recordable;	    /* what the agent claimed */
	const char *disagreement;   /* where agent and controller differ */
	struct {
		const char *outcome; /* absent: the suite does not make the claim */
		const char *reason;
	} claims[CLAIM_COUNT];
	const char *source_origin, *source_commit, *source_tree;
	const char *source_dirty; /* absent: clean; else the digest of what differs */
	const char *model_name, *model_sha256;
	int64_t model_bytes;
	bool model_synthetic;
	const char *device_name, *device_driver, *device_uuid;
	const char *agent_version, *agent_key; /* key absent: unsigned */
	const char *controller_version;
	int64_t started_ms, finished_ms, appended_ms;
	int64_t exit_code;
	const char *envelope_digest, *report_digest;
	const struct ledger_gate *gates;
	size_t gate_count;
	const struct ledger_fixture *fixtures;
	size_t fixture_count;
	const struct ledger_smoke *smokes;
	size_t smoke_count;
	const struct ledger_artifact *artifacts;
	size_t artifact_count;
	const struct ledger_code *code;
	size_t code_count;
};

struct ledger;

enum ledger_flags {
	LEDGER_CREATE = 1,  /* make file and folders (0700) when missing */
	LEDGER_READ = 2,    /* refuse to write */
	LEDGER_INSPECT = 4, /* open although the schema was altered: for ledger_check */
};

/* Where the file system is asked; NULL members: the real one. */
struct ledger_hooks {
	/* Name of the network file system that holds path (a file or a folder), or NULL
	 * when it is a local one. */
	const char *(*network_fs)(const char *path);
};

/*
 * Opens, and brings the schema up to date in one transaction.  Borrows everything;
 * gives *out, freed with ledger_close.  Errors:
 * - ERR_NOTFOUND: no file there, and no LEDGER_CREATE
 * - ERR_REFUSED: on a network file system, where SQLite's locks and log do not hold
 * - ERR_INTEGRITY: damaged, or tables, views or triggers are not what they must be
 * - ERR_CONFLICT: an SQLite file of another program
 * - ERR_UNSUPPORTED: written by a newer version
 */
CHECKED int ledger_open(const char *path, unsigned flags,
			const struct ledger_hooks *hooks, struct ledger **out,
			struct err *e);
void ledger_close(struct ledger *l); /* NULL is fine */
const char *ledger_path(const struct ledger *l);
/* Folder of the blobs of this ledger. */
const char *ledger_blobs(const struct ledger *l);

/*
 * Appends a run with all its rows and its entry, in one transaction: all or nothing.
 * The same run id with the same envelope and report digests is a success and sets
 * *already (may be NULL); with others it is ERR_CONFLICT.  ERR_PARSE and ERR_LIMIT name
 * the member that can not be stored.
 */
CHECKED int ledger_add(struct ledger *l, const struct ledger_run *r, bool *already,
		       struct err *e);
/* Same for many runs in one transaction; *added (may be NULL) counts the new ones. */
CHECKED int ledger_add_all(struct ledger *l, const struct ledger_run *const *runs,
			   size_t count, size_t *added, struct err *e);
/* The canonical bytes of a run's entry, appended to b, and the leaf hash (hex). */
CHECKED int ledger_entry(const struct ledger_run *r, struct buf *b, char leaf[65],
			 struct err *e);

/* ---- questions ---- */

struct arena;

struct ledger_list {
	struct ledger_run *runs; /* newest first */
	size_t count;
	struct arena *arena; /* owns what the runs point to */
};
/* Which runs; zeroed: the newest 100. */
struct ledger_filter {
	const char *host, *device_class, *outcome, *lane, *target; /* NULL: any */
	bool recordable;					   /* only those */
	int64_t before; /* only sequence numbers below; 0: no bound */
	uint32_t limit; /* 0: 100; at most LEDGER_MAX_LIST */
};
/* Runs without their gates, fixtures, smokes, artifacts and code.  Gives *out, freed with
 * ledger_list_fini. */
CHECKED int ledger_runs(struct ledger *l, const struct ledger_filter *f,
			struct ledger_list *out, struct err *e);
/*
 * The newest runs of a class, each with the gates that did not pass.  The class may be
 * shortened to a unique beginning: ERR_CONFLICT lists the candidates, ERR_NOTFOUND when
 * there is none.  name, when not NULL, gets the full name.
 */
CHECKED int ledger_why(struct ledger *l, const char *device_class, uint32_t limit,
		       char *name, size_t name_size, struct ledger_list *out,
		       struct err *e);
void ledger_list_fini(struct ledger_list *list);

/* Full run id of a unique beginning of at least one hex digit; errors as ledger_why. */
CHECKED int ledger_find(struct ledger *l, const char *prefix,
			char run_id[LEDGER_RUN_ID + 1], struct err *e);
/* One run with all its rows, by its id or a unique beginning, as a list of one. */
CHECKED int ledger_get(struct ledger *l, const char *prefix, struct ledger_list *out,
		       struct err *e);

/* One claim of a class: its newest recordable pass, and the newest run to try it. */
struct ledger_claim {
	bool passed; /* the four below are "" and -1 when not */
	const char *pass_run, *pass_suite, *pass_commit, *pass_driver;
	int64_t pass_ms;
	const char *outcome; /* "" when never tried */
	const char *reason, *detail, *not_recordable;
	const char *run;
	int64_t at_ms;
	bool holds; /* passed, and nothing else was seen since */
};
struct ledger_class {
	const char *name, *target;
	struct ledger_claim claims[CLAIM_COUNT];
	/* the newest run, whatever it tried */
	const char *run, *host, *suite, *commit, *driver, *outcome, *reason, *detail;
	const char *not_recordable;
	bool recordable;
	int64_t at_ms;
};
struct ledger_classes {
	struct ledger_class *classes; /* by name */
	size_t count;
	struct arena *arena;
};
/* Gives *out, freed with ledger_classes_fini. */
CHECKED int ledger_class_list(struct ledger *l, struct ledger_classes *out,
			      struct err *e);
void ledger_classes_fini(struct ledger_classes *list);

struct ledger_host {
	const char *name;
	int64_t first_ms, runs;
	const char *run, *device_class, *outcome, *reason; /* of its newest run */
	int64_t at_ms;
};
struct ledger_hosts {
	struct ledger_host *hosts; /* by name */
	size_t count;
	struct arena *arena;
};
/* Gives *out, freed with ledger_hosts_fini. */
CHECKED int ledger_host_list(struct ledger *l, struct ledger_hosts *out, struct err *e);
void ledger_hosts_fini(struct ledger_hosts *list);

/* ---- care ---- */

struct ledger_stats {
	int64_t runs, entries, bytes, wal_bytes;
	int wal_frames;	      /* of the write-ahead log */
	int wal_checkpointed; /* of these, already copied into the file */
	int schema;
};
CHECKED int ledger_stats(struct ledger *l, struct ledger_stats *out, struct err *e);

/*
 * Looks for what must not be: a damaged file, an altered schema (a dropped trigger
 * included), dangling references, gaps, rows that do not give their leaf hash, a class
 * state that does not follow from the runs.  problem() gets a sentence for each; -1
 * with ERR_INTEGRITY counts them.  Reads every row: about half a millisecond a run. It
 * proves that the file agrees with itself, not that nobody wrote all of it anew: that
 * takes a checkpoint kept elsewhere.
 */
CHECKED int ledger_check(struct ledger *l, void (*problem)(void *arg, const char *text),
			 void *arg, struct err *e);

#endif
