/*
 * build - makes the engine's programs from a source, proves them, installs them.
 *
 * CACHE/builds/KEY is an out-of-tree cmake + ninja folder.  KEY is the SHA-256 over all that
 * decides what comes out: tree id, dirty digest, target, flags, programs, compilers (path,
 * version, digest), the CPU that "native" means, and the variables compilers read.  A build
 * that was finished leaves a stamp, verify-build.json, with the digests of its programs; a
 * second run with the same key checks them and builds nothing.  A folder without a stamp
 * (a killed agent) is gone on with.
 *
 * Life: build_engine or build_prebuilt, build_install, build_release.  The folder is locked
 * against another job's build and against removal until then.  Threads: one at a time.
 */
#ifndef AGENT_BUILD_H
#define AGENT_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capabilities.h"
#include "agent/elf.h"
#include "agent/source.h"
#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"
#include "common/suite.h"
#include "common/transcript.h"

#define BUILD_STAMP "verify-build.json"
#define BUILD_PATH 4096
#define BUILD_MAX_ARTIFACTS 48
#define BUILD_MAX_FLAGS 64
#define BUILD_FLAGS_TEXT 4096
/* Defaults of the limits, for 0. */
#define BUILD_CONFIGURE_MS (15u * 60 * 1000)
#define BUILD_MS (4u * 60 * 60 * 1000)
#define BUILD_LOOK_MS 10000u     /* no step ended for so long: what is at work is told */
#define BUILD_KEEP 6
#define BUILD_KEEP_BYTES (24ull << 30)
#define BUILD_JOB_BYTES (1229ull << 20) /* memory that one compiler may need: 1.2 GiB */

struct build_ask {
	const struct source_ask *source_ask; /* as given to source_get */
	const struct source_info *source;
	const struct lane *lane;
	const struct target *target;
	const char *const *programs; /* cmake targets, which are also file names */
	int program_count;
	const char *extra_flags;     /* optional override: words, appended last */
	const char *chip;            /* of the lane's device, "sm_90"; NULL or "": the lane's list */
	const char *cache_dir;
	uint32_t configure_timeout_ms, timeout_ms; /* 0: the defaults */
	uint32_t jobs;               /* 0: by CPUs and memory */
	uint32_t look_ms;            /* how often is told what is compiled; 0: the default */
	uint32_t keep;               /* builds kept in the cache; 0: the default */
	uint64_t keep_bytes;         /* and their bytes; 0: the default */
	int (*tick)(void *arg);      /* optional; non-zero cancels */
	/* optional; total 0: not known yet (waiting, configuring).  A step that ended, or the
	 * files that are compiled now and for how long, when none ended for look_ms. */
	void (*progress)(void *arg, uint32_t done, uint32_t total, const char *text);
	void *arg;
};

struct build_tool {
	char path[BUILD_PATH];   /* absolute; "" unknown */
	char version[160];       /* first line of --version */
	char sha256[DIGEST_HEX];
};

struct build_artifact {
	char name[CAPABILITIES_NAME];
	char path[BUILD_PATH];
	uint64_t bytes;
	char sha256[DIGEST_HEX];
	int machine;             /* ELF e_machine */
	char build_id[ELF_ID_HEX];
	bool program;            /* else a library of the build */
};

struct build_info {
	bool reused;             /* nothing was built: an earlier build was proved again */
	bool prebuilt;           /* not ours: never recordable */
	char key[DIGEST_HEX];    /* "" when prebuilt by another builder */
	char tree[72];           /* the source's tree, "" unknown */
	char folder[BUILD_PATH]; /* of the build; of a prebuilt engine its folder */
	char bin_dir[BUILD_PATH]; /* where the programs are */
	char flags[BUILD_FLAGS_TEXT]; /* for the report: the words given to cmake */
	struct build_tool cc, cxx;
	struct build_tool device;  /* nvcc, hipcc or glslc; path "": the lane needs none */
	char cmake[160], ninja[64];
	bool ccache;
	bool unity;              /* the engine's model sources were compiled together */
	uint32_t jobs;
	char built_at[24];       /* UTC */
	int64_t ms;              /* of this call */
	struct build_artifact artifacts[BUILD_MAX_ARTIFACTS];
	int artifact_count;
	int lock;
};

/* Refuses flags that are not plain -DNAME=VALUE (-U, -W) words: typographic quotes, other
 * options.  For the submit of a job; NULL is fine. */
CHECKED int build_flags_check(const char *extra, struct err *e);

/* On failure *why is the gate's reason, and e->msg begins with the first error line. */
CHECKED int build_engine(const struct build_ask *ask, struct transcript *log,
	struct build_info *out, enum reason *why, struct err *e);
/* Looks again whether the folder still holds the programs and libraries that were proved,
 * and no library besides.  ERR_INTEGRITY names the file that is another. */
CHECKED int build_again(const struct build_info *b, struct err *e);
void build_release(struct build_info *b); /* also of a zeroed struct */
/* The artifact of that file name, or NULL. */
const struct build_artifact *build_find(const struct build_info *b, const char *name);

/* ---- the managed output ---- */

/* $ELIZA_MTP_TARGET_OUT_DIR of a Vulkan target, else $ELIZA_MTP_BIN_DIR, else
 * ${ELIZA_STATE_DIR:-~/.eliza}/local-inference/bin/mtp/TARGET. */
CHECKED int build_output_dir(const struct target *t, char *out, size_t size,
	struct err *e);

struct install_ask {
	const struct build_info *build;
	const struct source_info *source;
	const struct target *target;
	const struct suite *suite;  /* its families are the required kernels */
	char (*types)[ELOG_TYPE];   /* cache types that the built program accepts */
	int type_count;
	const char *help;           /* its --help; may be NULL */
	const char *out_dir;        /* of build_output_dir */
};
struct install_info {
	struct capabilities capabilities;
	bool installed;             /* false: a gate stopped it, and nothing was touched */
	char gate[240];             /* why it stopped, or "" */
	char folder[BUILD_PATH];    /* with CAPABILITIES.json: the output, else the build's */
};
/* Writes CAPABILITIES.json beside the built programs.  When no required kernel is missing
 * (and out_dir is not there, empty, or has a CAPABILITIES.json), out_dir becomes a copy of programs, libraries, stamp and CAPABILITIES.json, in one step:
 * after a crash at any point the old or the new one stands there, never a mix.  Else
 * out_dir is left as it is, and that is no failure. */
CHECKED int build_install(const struct install_ask *ask, struct transcript *log,
	struct install_info *out, enum reason *why, struct err *e);

/* ---- engines that were not built here ---- */

struct prebuilt_ask {
	const char *bin_dir;
	const struct target *target;
	const char *const *programs;
	int program_count;
	bool skip_build, allow_prebuilt; /* the two variables, both exactly "1" */
	const struct source_info *source; /* optional: what it must have been built from */
};
/* PREBUILT_REFUSED without both variables or a CAPABILITIES.json that names target and
 * programs; STALE_BINARY when a program is not what the stamp, the source or the target say.
 * Whoever uses it is not recordable. */
CHECKED int build_prebuilt(const struct prebuilt_ask *ask, struct transcript *log,
	struct build_info *out, enum reason *why, struct err *e);

#endif
