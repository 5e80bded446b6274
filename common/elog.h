/*
 * elog - reads the log of an engine run (llama.cpp and its forks) for what it proves.
 *
 * A versioned table of line patterns; old and new prefixes ("llm_load_tensors:",
 * "0.00.123.456 I load_tensors:"), ANSI colour, backspaces of spinners and CRLF are
 * understood.  With --fit on the engine prints a first, dry set of lines with 0.00 MiB:
 * only the last complete pass counts, and nothing that looks like an allocation after the
 * first computed graph: it may be text of the model, which stands in the same log.  A
 * missing line is unknown, never a pass.
 * Pure function over bytes: no state, any thread, any input.
 */
#ifndef COMMON_ELOG_H
#define COMMON_ELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/lane.h"
#include "common/suite.h"

#define ELOG_VERSION 4        /* of the pattern table; stands in the report */
#define ELOG_MAX_BUFFERS 16
#define ELOG_MAX_PLACES 64
#define ELOG_MAX_BACKENDS 16
#define ELOG_TYPE 24
#define ELOG_MAX_LINE 4096    /* bytes of a line that are looked at */

struct elog_buffer {
	char device[32];      /* "CPU", "CUDA0", "Vulkan0" */
	double mib;
};
/* A device that is named, and where first. */
struct elog_device {
	char name[32];
	size_t line;
};
/* How many nodes of one op sat on one backend in the real graphs. */
struct elog_place {
	char op[16];          /* as printed, at most 10 letters: "FLASH_ATTN" */
	char backend[16];     /* at most 5 letters for some builds: "Vulka" */
	uint32_t nodes;
};
/* Attention nodes of the real graphs on one backend: scores, soft max, flash attention,
 * writes to and copies of the cache.  op and tensor are those of the first one. */
struct elog_attn {
	char backend[16];
	uint32_t nodes;
	char op[16], tensor[24];
	size_t line;          /* of that one in the log, from 1 */
};
/* Nodes of the real graphs by op and tensor without its layer: "MUL_MAT kq" on "CPU". */
#define ELOG_MAX_GROUPS 384
#define ELOG_MAX_LAYERS 256
struct elog_group {
	char op[16], tensor[24], backend[16];
	bool copied;          /* of the cache as it is read: "(permuted) (copy)" */
	uint32_t nodes, layers;
	size_t line;          /* of the first one in the log, from 1 */
	uint64_t seen[ELOG_MAX_LAYERS / 64]; /* layers, as bits */
};
enum elog_fa { ELOG_FA_UNKNOWN, ELOG_FA_ENABLED, ELOG_FA_DISABLED, ELOG_FA_AUTO };

struct elog {
	/* allocation, of the last complete pass */
	char k_type[ELOG_TYPE], v_type[ELOG_TYPE];  /* "" unknown */
	struct elog_buffer kv[ELOG_MAX_BUFFERS];    /* KV buffers; empty: unknown */
	int kv_count;
	int offloaded, layers;                       /* -1 unknown */
	char device[96];                             /* "using device CUDA0 (NVIDIA H200)" */
	struct elog_device used[ELOG_MAX_BUFFERS];   /* of all such lines */
	int used_count;
	struct elog_device layer_on[ELOG_MAX_BUFFERS]; /* "layer 1: dev = CUDA0", each once */
	int layer_count;
	bool layered;                                /* a device behind another interface */
	bool device_listed;                          /* some device is, in whatever list */
	bool cpu_type;                               /* Vulkan says that one is of type CPU */
	char device_pci[32];                         /* "0000:00:06.0"; "" not said */
	char architecture[32];
	enum elog_fa flash_attention;
	/* generation */
	int prompt_tokens;                           /* -1 unknown */
	int tokens;        /* generated: runs of the last eval time line plus the first
	                    * one; without that line n_predict once n_remain is 0;
	                    * -1 unknown */
	double prompt_ms, eval_ms;                   /* -1 unknown */
	/* placement (GGML_SCHED_DEBUG=2), of the graphs after the last allocation that
	 * were computed: graphs that only try or reserve are not counted */
	struct elog_place places[ELOG_MAX_PLACES];
	int place_count;
	struct elog_attn attn[ELOG_MAX_BACKENDS];
	int attn_count;
	struct elog_group groups[ELOG_MAX_GROUPS];
	int group_count;
	bool custom_op;       /* ATTN_SCORE or FUSED_ATTN was computed */
	bool cache_cast;      /* the K cache was copied into another type to be read */
	int compute_buffers, freed_buffers; /* of the last context; the second when it ended */
	uint32_t graphs;      /* computed graphs that were printed */
	uint32_t bare_graphs; /* of them, without a write to and a read of the cache */
	bool open;                                    /* a graph is read now */
	uint32_t open_reads, open_writes, open_values; /* its nodes on keys, and writes of V */
	uint32_t torn;        /* messages about nodes or buffers that are not whole */
	bool cut_late;        /* the transcript's cut stands behind the first token */
	bool whole;           /* the log ends with the end of a line */
	size_t next_run;      /* line in which another run begins, which was not read; 0 none */
	bool kv_write_seen;   /* SET_ROWS or CPY into cache_k on some backend */
	bool attn_seen;       /* an op that reads the cache: scores or flash attention */
	bool overflow;        /* more devices than the tables hold: proves nothing */
	/* trouble; texts are cleaned for display */
	char error[240];      /* headline: the last error line */
	char cause[240];      /* the line that set the first of the flags below */
	size_t device_line, error_line, cause_line, kv_line, type_line, tokens_line, offload_line; /* 0 none */
	bool error_prefix;    /* an "Error:" line of llama-cli */
	bool aborted;         /* GGML_ASSERT, GGML_ABORT, terminate, "abort" */
	bool no_gpu_warning;  /* a fact, not a verdict */
	bool backend_init_failed, device_lost, software_device;
	bool speaks_cli_only; /* the banner of a conversing llama-cli */
	bool out_of_memory, no_code; /* the second: none for the device's chip */
	char op_unsupported[64]; /* "SET_ROWS on CUDA0 for cache_k" */
	bool v_needs_fa, head_not_divisible, unknown_cache_type, model_load_failed;
	enum reason model_reason;  /* of model_load_failed */
	char accepted[200];        /* of unknown_cache_type: what the build takes */
	bool conversation_refused; /* "please use llama-completion instead" */
};

void elog_parse(const char *log, size_t len, struct elog *out);

/* The same of a log that no memory has to hold: pieces of any size, one after the other.
 * A line of more than ELOG_MAX_RAW bytes that goes over the end of a piece is a torn one.
 * Life: elog_open, elog_add, elog_close, which fills *out. */
#define ELOG_MAX_RAW ((size_t)1 << 20)
struct elog_stream;
CHECKED int elog_open(struct elog *out, struct elog_stream **s, struct err *e);
void elog_add(struct elog_stream *s, const char *p, size_t n);
/* A file may hold several runs.  With a function, that is given the facts of each but the
 * last, which elog_close leaves in *out; without one the first alone is read. */
typedef void (*elog_run_fn)(void *arg, const struct elog *run);
void elog_each_run(struct elog_stream *s, elog_run_fn each, void *arg);
void elog_close(struct elog_stream *s); /* NULL is fine */

/* What the smoke asked for. */
struct smoke_ask {
	const struct lane *lane;
	const char *cache_type;  /* asked with --cache-type-k */
	int tokens;              /* asked with -n */
	int exit, signal;        /* of the process; exit -1: did not exit */
	bool timed_out, cancelled;
	uint64_t dropped;        /* bytes of log cut out */
	size_t lines_before;     /* of the file, in front of the log: added to what is told */
	bool raw;                /* only the text is known: it must show its own end */
	const struct suite_placement *placement; /* of the family; NULL: the usual one */
};

struct smoke_verdict {
	enum outcome outcome;
	enum reason reason;
	char detail[240];        /* one sentence */
	char hint[160];
	size_t line;             /* of the file, from 1: what decided; 0: nothing there */
	/* Three facts, of which a pass needs all; of an engine without any device the cpu lane
	 * does not need the third. */
	bool accepted;           /* the parser knew the cache type */
	bool allocated;          /* K is of that type, and on the lane's device */
	bool dispatched;         /* every node that must be is on the lane's device */
	/* The engine ended well but the end of its log is lost: it writes from a thread
	 * that it does not wait for.  Running it again may answer. */
	bool again;
};
/* The verdict on one family's run: exit code 0 proves nothing. */
void elog_judge(const struct elog *l, const struct smoke_ask *ask,
	struct smoke_verdict *out);

/*
 * Cache types that a --help text allows after --cache-type-k / -ctk (the list may be
 * wrapped over lines and stands again under the draft model's options).  Gives up to max
 * names into names[], returns their number, 0 when the help has no such option.
 */
int elog_help_types(const char *help, size_t len, char names[][ELOG_TYPE], int max);
/* First alias of the family that is one of the types, whole word, case-insensitive;
 * NULL when none. */
const char *elog_resolve(const struct suite_family *f, char names[][ELOG_TYPE], int n);
/* True when the help text has the option as a whole word ("--fit", "--ignore-eos"). */
bool elog_help_has(const char *help, size_t len, const char *option);

#endif
