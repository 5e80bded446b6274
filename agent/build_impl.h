/*
 * build_impl - what the files of build share; nobody else includes it.
 */
#ifndef AGENT_BUILD_IMPL_H
#define AGENT_BUILD_IMPL_H

#include "agent/build.h"
#include "common/str.h"

/* The words given to cmake, split once. */
struct build_words {
	char text[BUILD_FLAGS_TEXT];       /* the words point into it */
	const char *v[BUILD_MAX_FLAGS + 1]; /* NULL-terminated */
	int count;
};

/* Sets *why from the error's code (cancelled, timeout, disk full), else to other. */
int build_why(const struct err *e, enum reason other, enum reason *why);
/* A plain file name. */
bool build_is_name(const char *name);

/* Which program turns an interface's device code, and the cmake flag that names it. */
struct device_tool {
	enum api api;
	const char *name, *flag;
};
/* NULL: none that cmake is told of. */
const struct device_tool *build_device_tool(enum api api);

/* build_key.c: flags, tools, key. */
CHECKED int build_words_make(const struct build_ask *ask, struct build_words *w,
	enum reason *why, struct err *e);
CHECKED int build_tools_find(const struct build_ask *ask, struct transcript *log,
	const struct build_words *w, struct build_info *b, char cmake[BUILD_PATH],
	char ninja[BUILD_PATH], char ccache[BUILD_PATH], enum reason *why, struct err *e);
CHECKED int build_key_make(const struct build_ask *ask, const struct build_words *w,
	struct transcript *log, struct build_info *b, struct err *e);
uint32_t build_jobs(const struct build_ask *ask);

/* build_prove.c: artifacts and the stamp. */
CHECKED int build_artifacts_find(const char *bin_dir, const char *const *programs,
	int count, const struct target *t, struct build_info *b, enum reason *why,
	struct err *e);
CHECKED int build_stamp_write(const struct build_ask *ask, const struct build_info *b,
	struct err *e);
/* Reads folder/BUILD_STAMP into b: key, tree, flags, tools, artifacts with paths below
 * bin_dir.  Checks nothing on the disk. */
CHECKED int build_stamp_read(const char *folder, const char *bin_dir, struct build_info *b,
	struct err *e);
/* Every artifact of b is there with its size and digest. */
CHECKED int build_artifacts_check(const struct build_info *b, struct err *e);

/* build_cache.c: removes builds over the limits, oldest use first, never KEY or one that is
 * locked.  What can not be removed stays: only a log that can not be written fails. */
CHECKED int build_cache_prune(const struct build_ask *ask, const char *builds,
	const char *key, struct transcript *log, struct err *e);

#define BUILD_UNITY_OFF "-UCMAKE_PROJECT_INCLUDE"
/* build_unity.c: the flag that makes cmake compile the model sources together, and whether
 * it does (b->unity); the script is written into b->folder. */
CHECKED int build_unity_flag(const struct build_words *w, struct build_info *b, char *flag,
	size_t size, struct err *e);

/* build_make.c: cmake and ninja in b->folder; the programs that stood there are gone. */
CHECKED int build_make(const struct build_ask *ask, const struct build_words *w,
	struct transcript *log, struct build_info *b, const char *cmake, const char *ninja,
	const char *ccache, enum reason *why, struct err *e);

#endif
