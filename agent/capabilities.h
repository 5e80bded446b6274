/*
 * capabilities - CAPABILITIES.json: what a folder of engine programs can do.
 *
 * The format is that of the engine's own build script (every field, same names), with
 * two more: `sourceTree` and `sourceDirtyDigest`.  A kernel's bit is true only when the
 * built program itself accepts its cache type (or, for a decode mode, says its word in
 * --help): nothing is taken from the source.
 *
 * Threads: no shared state.  The file is untrusted when read.
 */
#ifndef AGENT_CAPABILITIES_H
#define AGENT_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/elog.h"
#include "common/err.h"
#include "common/lane.h"
#include "common/suite.h"

#define CAPABILITIES_FILE "CAPABILITIES.json"
#define CAPABILITIES_MAX_BYTES (1u << 20)
#define CAPABILITIES_MAX_BINARIES 48
#define CAPABILITIES_NAME 64

/* Rows of the `kernels` object, in its order. */
struct kernel_bit {
	const char *key;      /* "qjl_full" */
	const char *older;    /* earlier name of the key, or NULL */
	const char *family;   /* suite family that requires it, or NULL: a decode mode */
	const char *types[4]; /* cache types that prove it */
	const char *word;     /* word of --help that proves it, or NULL */
};
#define CAPABILITIES_KERNELS 8
extern const struct kernel_bit kernel_bits[CAPABILITIES_KERNELS];

struct capabilities {
	char target[CAPABILITIES_NAME];
	char fork[512], fork_commit[72]; /* "" unknown */
	char source_tree[72];            /* "" in files of other builders */
	char built_at[32];
	unsigned kernels;                /* 1 << row */
	unsigned missing;                /* required ones that are not there */
	bool publishable;                /* missing == 0 */
	bool eliza1_eligible;            /* every family of eliza-1 is there */
	char binaries[CAPABILITIES_MAX_BINARIES][CAPABILITIES_NAME];
	int binary_count;
};

/* What the caller knows of a build; everything is borrowed. */
struct capabilities_ask {
	const struct target *target;
	const struct suite *suite;      /* its families are the required kernels; NULL: none */
	char (*types)[ELOG_TYPE];       /* cache types that the built program accepts */
	int type_count;
	const char *help;               /* its --help, or NULL */
	const char *fork, *commit, *tree, *dirty_digest; /* of the source; "" unknown */
	const char *built_at;           /* UTC */
	const char *const *binaries;    /* file names */
	int binary_count;
};

/* Fills *out; no file is touched. */
CHECKED int capabilities_derive(const struct capabilities_ask *ask,
	struct capabilities *out, struct err *e);
/* Derives, and writes the file atomically.  out may be NULL. */
CHECKED int capabilities_write(const char *path, const struct capabilities_ask *ask,
	struct capabilities *out, struct err *e);
/* ERR_NOTFOUND, ERR_PARSE or ERR_LIMIT when it is not one that can be relied on. */
CHECKED int capabilities_read(const char *path, struct capabilities *out, struct err *e);
bool capabilities_has_binary(const struct capabilities *c, const char *name);
/* "turbo3, qjl_full": the keys of the bits, for people. */
void capabilities_list(unsigned bits, char *out, size_t size);

#endif
