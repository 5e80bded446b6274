/*
 * gate - what the gates of one job share: the job's state, its logs, its report parts.
 *
 * Private to the worker (work.c and gate_*.c, report.c).  One thread.
 */
#ifndef AGENT_GATE_H
#define AGENT_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "agent/build.h"
#include "agent/gguf.h"
#include "agent/source.h"
#include "agent/work.h"
#include "common/judge.h"
#include "common/transcript.h"
#include "common/verdict.h"

#define GATE_PATH 4096
#define GATE_MAX_ARTIFACTS 128

struct gate {
	enum gate_id id;
	char family[64];         /* "" unless the gate is one per family */
	char name[80];
	struct judgement j;
	int64_t begun, ended;    /* ms UTC; 0: did not run */
	int64_t ms;              /* on a clock that never steps */
	char log_name[256];      /* "" when there is none */
	char log_sha256[DIGEST_HEX];
	uint64_t log_bytes;
	struct smoke_facts *smoke; /* the gate's own, or NULL: gets what its log says ... */
	bool smoke_read;         /* ... when it holds a run that ended */
};

struct artifact {
	char name[256];
	char sha256[DIGEST_HEX];
	uint64_t bytes, dropped;
};

struct work {
	const struct work_ask *ask;
	const struct job *job;
	const struct suite *suite;
	const struct lane *lane;
	const struct target *target; /* NULL: this host has none for the lane */
	int64_t started_ms;
	int number;                  /* of the run in a shared folder; 1: no suffix */
	bool prebuilt, skip_build, skip_smoke;

	struct gate gates[VERDICT_MAX_GATES];
	int gate_count;

	struct host_facts host;
	struct device_facts device;
	char boot_id[40];

	struct gguf_info model;
	char model_path[GATE_PATH], model_sha256[DIGEST_HEX];
	uint64_t model_bytes;
	bool model_known, model_cached;
	int64_t model_stamp;        /* of the file before it was read */

	struct source_info source;
	bool source_known;
	struct source_ask source_ask;

	struct build_info build;
	struct install_info install;
	bool build_known;
	char engine_dir[GATE_PATH]; /* where the driver program lies */

	char *help;                 /* of the driver; owned */
	size_t help_len;

	cJSON *code;                /* of each artifact its code objects; owned, NULL until then */
	cJSON *routes;              /* what engine-verify said; owned, NULL until then */
	cJSON *cache_controls;      /* a row per family, of the control runs; owned, NULL until then */
	cJSON *ops;                 /* what the engine's own test said; owned, NULL until then */
	cJSON *probes, *fixtures, *controls, *smokes, *overrides; /* arrays, owned */
	char delegate_path[GATE_PATH], delegate_sha256[DIGEST_HEX]; /* of Grace Hopper's second report */
	cJSON *kernels;             /* what ran the fixtures; owned, NULL until then */
	struct artifact artifacts[GATE_MAX_ARTIFACTS];
	int artifact_count;
};

/* Each runs one gate: opens its log, works, and leaves the judgement in g->j. */
void gate_host(struct work *w, struct gate *g);
void gate_device(struct work *w, struct gate *g);
void gate_toolchain(struct work *w, struct gate *g);
void gate_model(struct work *w, struct gate *g);
void gate_source(struct work *w, struct gate *g);
void gate_build(struct work *w, struct gate *g);
void gate_fixtures(struct work *w, struct gate *g);
void gate_mtp(struct work *w, struct gate *g);
void gate_ops(struct work *w, struct gate *g);
void gate_routes(struct work *w, struct gate *g);
void gate_control(struct work *w, struct gate *g);
void gate_smoke(struct work *w, struct gate *g);
void gate_report(struct work *w, struct gate *g);
/* Those of a phone behind adb. */
void gate_phone_device(struct work *w, struct gate *g);
void gate_phone_toolchain(struct work *w, struct gate *g);
void gate_phone_fixtures(struct work *w, struct gate *g);
void gate_phone_evidence(struct work *w, struct gate *g);

/* The checks and controls of a fixtures log, and what ran them, become parts of the report. */
void fixtures_note(struct work *w, const struct gate *g);

/* Stamp of a file's size, inode, mtime and ctime; -1 when it is not there. */
int64_t model_stamp(const char *path);
/* Reads the driver's help into w->help once. */
CHECKED int smoke_help(struct work *w, struct err *e);
/* The driver program's name: the suite's, or an override. */
const char *smoke_driver(const struct work *w);

/* gate_smoke.c: the words of an engine's command line; borrowed. */
struct engine_args {
	const char *v[160];         /* NULL-terminated */
	int n;
};
/* An option that only some builds know: its words are added when probe is in the help. */
struct engine_option {
	const char *probe, *words[3];
};
void engine_arg(struct engine_args *a, const char *word);
void engine_options(struct engine_args *a, const struct work *w, const struct engine_option *rows,
	size_t count);
/* Whether the driver's help, which was read, knows the option. */
bool engine_has(const struct work *w, const char *option);
/* Which cache type stands for the family in this build; REASON_NONE with cache filled.  The
 * driver's help must have been read. */
enum reason smoke_cache(const struct work *w, const char *family, char cache[ELOG_TYPE],
	struct err *e);
/* The driver's command line for a cache type, as the smokes have it but for tokens and ngl
 * that are given; free extra. */
struct smoke_words {
	struct engine_args args;
	char path[GATE_PATH];       /* of the driver */
	char tokens[16], ngl[16], seed[16];
	char *extra;                /* owned */
};
CHECKED int smoke_words_make(const struct work *w, const char *cache, const char *tokens,
	const char *ngl, struct smoke_words *out, struct err *e);
/* Adds the words of an override. */
CHECKED int smoke_extra(const struct work *w, struct smoke_words *out, struct err *e);
/* Preloads what lets the engine finish its log, and what spoils its cache; where that can
 * not be, it runs without and the log says so: a lost log is seen and the run made again. */
struct engine_env;
void engine_preload(const struct work *w, struct transcript *t, struct engine_env *env, bool scramble);
/* gate_engine.c: runs a program of the engine on the lane's device, into the log. */
CHECKED int engine_run(const struct work *w, struct transcript *t, const char *const *argv,
	uint32_t timeout_ms, struct err *e);

/* Whether the job has such a gate. */
bool gate_planned(const struct work *w, enum gate_id id);

/* After the smokes: distances to the baseline, the summary file. */
void smoke_finish(struct work *w);
/* whole_log.c: the one log that the lane's old runner kept, where it kept one. */
void work_whole_log(struct work *w);

/* ---- helpers for gates ---- */

/* True once SIGTERM or SIGINT came. */
bool work_cancelled(void);
int work_tick(void *arg); /* for proc_spec.tick: non-zero when cancelled */

/* Name of a file of this job: "linux-x64-cpu-STEM[.N].EXT". */
CHECKED int work_name(const struct work *w, const char *stem, const char *ext, char *out,
	size_t size, struct err *e);
CHECKED int work_path(const struct work *w, const char *name, char *out, size_t size,
	struct err *e);
/* Lists a finished file in the report. */
void work_artifact(struct work *w, const char *name, const char *sha256, uint64_t bytes,
	uint64_t dropped);
/* Hashes a finished file and lists it.  *sha (may be NULL) gets the digest. */
void work_artifact_file(struct work *w, const char *name, char sha[DIGEST_HEX]);

/* A look at the lane's device into the log of a gate that works on it; nothing for others. */
CHECKED int gate_look(const struct work *w, const struct gate *g, struct transcript *t,
	struct err *e);
/* The processor of this host, as the cpu lane names it. */
bool device_now(const struct target *t, struct device_facts *out);
/* Opens the gate's log; on failure g->j says why and NULL comes back. */
struct transcript *gate_open(struct work *w, struct gate *g, const char *stem);
/* Writes the words of a gate that could not do its work. */
void gate_say(struct transcript *t, enum reason r, const char *hint, const char *fmt, ...)
	PRINTF(4, 5);
/* Writes the words of a gate that did. */
void gate_done(struct transcript *t, const char *fmt, ...) PRINTF(2, 3);
void gate_factf(struct transcript *t, const char *key, const char *fmt, ...) PRINTF(3, 4);
/* Closes the log, judges it and fills g.  A log that could not be written whole is
 * incomplete (disk_full, internal_error). */
void gate_close(struct work *w, struct gate *g, struct transcript *t);
/* Keeps what a child prints, as far as it has room: a proc_spec's chunk, arg a struct buf. */
int gate_keep(void *buf, int stream, const char *p, size_t n);
/* Runs a tool's version command into the log and notes the probe. */
int gate_probe_tool(struct work *w, struct transcript *t, const char *tool,
	const char *option, struct err *e);
/* The log's error as a gate's reason. */
enum reason gate_reason_of(const struct err *e);

/* ---- after a worker's death ---- */

/* restore.c: what the events of a dead worker say of its gates; NULL path: nothing. */
void work_from_events(struct work *w, const char *events_path);
/* Fills host, device, model or source from the log of such a gate that passed. */
void work_restore(struct work *w, const struct gate *g);
/* Lists and hashes the log of a gate that was in work, as it stands. */
void work_cut_log(struct work *w, struct gate *g);
/* Lists the logs and outputs of the job's own folder that no gate has named. */
void work_strays(struct work *w);

/* ---- the report ---- */
/* The whole tree; gives, NULL when out of memory. */
cJSON *report_make(const struct work *w, const struct verdict *v);
/* Writes the report that Grace Hopper's runner leaves to the CUDA runner; nothing for other
 * lanes.  Before report_make: the first report names it. */
CHECKED int report_delegate(struct work *w, const struct verdict *v,
	const struct work_result *out, struct err *e);
/* Writes report and envelope; fills the paths and digests of out. */
CHECKED int report_write(const struct work *w, const cJSON *report,
	struct work_result *out, struct err *e);
CHECKED int report_paths(const struct work *w, struct work_result *out, struct err *e);

/* Calls each() with a line for every file of a GPU's driver: "/dev/nvidia0 mode 0666 group
 * root, may be opened". */
void device_files_each(void (*each)(void *arg, const char *line), void *arg);

#endif
