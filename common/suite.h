/*
 * suite - what a run asks for, as data: cache families, driver, prompt, allowed models.
 *
 * The files are fixtures/suites/NAME.json; they are embedded in both programs.  The
 * suite's digest is that of its bytes: agent and controller must hold the same.
 * Life: suite_parse or suite_builtin, suite_free.  Immutable once made.
 */
#ifndef COMMON_SUITE_H
#define COMMON_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"

#define SUITE_MAX_BYTES 65536
#define SUITE_MAX_FAMILIES 32
#define SUITE_MAX_ALIASES 8
#define SUITE_MAX_FIXTURES 32
#define SUITE_MAX_PROGRAMS 8
#define SUITE_MAX_RULES 16
#define SUITE_MAX_OPS 16
#define SUITE_MAX_TYPES 16

/* Which nodes of a computed graph must sit on the lane's device, each "OP TENSOR" with
 * globs: "SET_ROWS cache_k*".  The engine cuts ops to ten letters and tensors to twenty. */
#define SUITE_MAX_NODES 24
struct suite_placement {
	const char *device[SUITE_MAX_NODES];
	int device_count;
	const char *cpu[SUITE_MAX_NODES]; /* may be elsewhere, whatever a rule above says */
	int cpu_count;
};

struct suite_family {
	const char *name;
	const char *aliases[SUITE_MAX_ALIASES]; /* first match in --help wins */
	int alias_count;
	struct suite_placement placement; /* device_count 0: the suite's */
	double kl_ceiling;        /* nats, of the mean divergence from f16; 0: none */
};

/* What the control run compares with: the same text and prompt on the CPU with the baseline. */
struct suite_control {
	const char *text;         /* for the divergence; NULL: the suite has no control */
	int64_t context, chunks;  /* of it: chunks of context tokens, the second half counts */
	int64_t tokens;           /* that the driver generates after the suite's prompt */
};

/* A model counts when a rule matches: the digest, or architecture, head size and
 * synthetic together (empty or 0: any). */
struct suite_model {
	const char *sha256;
	const char *architecture;
	int64_t head_size;  /* 0: any */
	bool synthetic_ok;  /* may be a model of `make-model` */
};

/* A source counts when a rule matches: its git tree id, or a glob over its origin. */
struct suite_source {
	const char *tree;
	const char *origin;
};

/* An op that the engine's own test must execute on the lane's backend; with types, at least
 * one case of each ("type=q8_0" among its parameters). */
struct suite_op {
	const char *op;
	const char *params;  /* regex over the parameters, to keep it short; NULL: all */
	const char *types[SUITE_MAX_TYPES];
	int type_count;
};

/* Speculative decoding by multi-token prediction: what its log must show. */
struct suite_mtp {
	const char *types[SUITE_MAX_ALIASES];         /* of --spec-type; first in --help wins */
	int type_count;
	const char *architectures[SUITE_MAX_ALIASES]; /* of the model; none: any */
	int architecture_count;
	bool drafter;             /* a drafter's file must be named */
	/* Architectures of the drafter; a model with layers of multi-token prediction is one
	 * whatever its name.  None: any. */
	const char *drafters[SUITE_MAX_ALIASES];
	int drafter_count;
	int64_t tokens, draft_max;
	double floor, ceiling;    /* of accepted over drafted; above the ceiling is told */
};

struct suite {
	cJSON *root;              /* owned; the strings below borrow from it */
	char *text;               /* owned; the exact bytes */
	size_t text_len;
	char digest[DIGEST_HEX];
	const char *name, *title;
	const char *driver;       /* "llama-completion", "llama-cli" */
	const char *prompt;
	int64_t tokens, ngl, seed;
	const char *baseline;     /* cache type of the run that others are compared with */
	struct suite_family families[SUITE_MAX_FAMILIES];
	int family_count;
	struct suite_placement placement; /* device_count 0: the usual one */
	const char *fixtures[SUITE_MAX_FIXTURES]; /* rows of kernels/kernel.c */
	int fixture_count;
	double tolerance;         /* absolute, strict */
	struct suite_op ops[SUITE_MAX_OPS];
	int op_count;
	struct suite_mtp mtp;     /* type_count 0: none */
	struct suite_control control; /* text NULL: none */
	bool routes;              /* the six score routes must be right in the engine */
	const char *programs[SUITE_MAX_PROGRAMS]; /* cmake targets to build */
	int program_count;
	struct suite_model models[SUITE_MAX_RULES];
	int model_count;
	struct suite_source sources[SUITE_MAX_RULES];
	int source_count;
	unsigned required;        /* GATE_BIT of gates that must pass to record */
	unsigned claims;          /* 1 << enum claim that a pass makes */
};

/* Borrows text (untrusted); gives *out, freed with suite_free. */
CHECKED int suite_parse(const char *text, size_t len, struct suite **out, struct err *e);
/* One of the embedded suites.  ERR_NOTFOUND lists the names. */
CHECKED int suite_builtin(const char *name, struct suite **out, struct err *e);
CHECKED int suite_load(const char *path, struct suite **out, struct err *e);
void suite_free(struct suite *s);
/* The i-th embedded suite's name, NULL past the end. */
const char *suite_builtin_name(size_t i);

/* Whether --suite means a file, not one of ours. */
bool suite_is_path(const char *name);
/* NULL: the suite has no such family. */
const struct suite_family *suite_family_find(const struct suite *s, const char *family);
/* The ceiling of a family, or of the family that has such a cache type; 0: none. */
double suite_ceiling(const struct suite *s, const char *family);
/* The rule of a family, the suite's where it has none of its own; NULL: neither has one. */
const struct suite_placement *suite_placement_of(const struct suite *s, const char *family);
/* Whether the suite has anything to do for the gate: an mtp gate for gemma-runtime, a
 * graph smoke for families, and so on. */
bool suite_wants(const struct suite *s, enum gate_id g);
bool suite_model_counts(const struct suite *s, const char *sha256,
	const char *architecture, int64_t head_size, bool synthetic);
bool suite_source_counts(const struct suite *s, const char *tree, const char *origin);

#endif
