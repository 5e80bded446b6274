/*
 * git - runs git for the agent: no shell, no prompt, no hooks, everything in the log.
 *
 * The user's own configuration is read (credential helpers, ssh), what would change the
 * bytes of a checkout or run programs on the way is overridden.
 * Threads: one at a time.
 */
#ifndef AGENT_GIT_H
#define AGENT_GIT_H

#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/str.h"
#include "common/transcript.h"

#define GIT_MAX_ARGS 48
#define GIT_MAX_OUTPUT (32u << 20)

struct git {
	struct transcript *log;   /* borrowed */
	int (*tick)(void *arg);   /* optional; non-zero cancels */
	void *arg;
	uint32_t timeout_ms;      /* of each command; 0: none */
	const char *index;        /* optional: another index file than the repository's */
	const char *work_tree;    /* optional: the folder, whatever the repository says */
	char exe[4096];
};

/* Finds the program.  ERR_NOTFOUND when there is none. */
CHECKED int git_init(struct git *g, struct transcript *log, struct err *e);

/* Runs `git ARGS...` in cwd (NULL: anywhere); args are NULL-terminated.  Its standard
 * output goes to out and to d, either may be NULL.  ERR_BLOCKED with git's own words when
 * it fails, ERR_TIMEOUT, ERR_CANCELLED, ERR_NOSPACE, ERR_LIMIT. */
CHECKED int git_run(struct git *g, const char *cwd, const char *const *args,
	struct buf *out, struct digest *d, struct err *e);
/* The first line of what it prints, without the newline.  ERR_LIMIT when longer. */
CHECKED int git_line(struct git *g, const char *cwd, const char *const *args, char *out,
	size_t size, struct err *e);

/* True for https://, ssh://, file:// and user@host:path, the ways we fetch. */
bool git_is_url(const char *spec);
/* True for a name that can stand where git expects a commit, a branch or a tag. */
bool git_is_ref(const char *ref);
/* The URL without password, token and query; ERR_LIMIT when it does not fit. */
CHECKED int git_clean_url(const char *url, char *out, size_t size, struct err *e);

#endif
