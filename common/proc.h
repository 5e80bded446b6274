/*
 * proc - one child process: argv without a shell, null stdin, deadline, capped log,
 * whole process group killed.
 *
 * Children get LC_ALL=C.UTF-8.  Each is a process group of its own, dies with us
 * (PR_SET_PDEATHSIG where there is one).
 */
#ifndef COMMON_PROC_H
#define COMMON_PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct proc_spec {
	const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
	const char *cwd;         /* optional */
	const char *const *env;  /* optional: "NAME=value" set over ours, "NAME" unset,
	                          * "PREFIX*" all that begin so unset */
	uint32_t timeout_ms;     /* 0: none */
	/* Gets every chunk as it comes; stream 1 is stdout, 2 stderr.  Non-zero stops the
	 * child with ERR_IO (the callee keeps its own error). */
	int (*chunk)(void *arg, int stream, const char *p, size_t n);
	/* Called about four times a second; non-zero cancels. */
	int (*tick)(void *arg);
	void *arg;
};

struct proc_result {
	int exit;       /* 0 to 255; -1 when it did not exit */
	int signal;     /* 0, or the signal that ended it */
	bool timed_out, cancelled, aborted; /* aborted: chunk() said stop */
	int64_t ms;
	int64_t max_rss_kib;
};

/* Calls each() with every "NAME=value" of our own environment that the list takes away
 * from a child or sets to another value. */
void proc_env_changes(const char *const *env, void (*each)(void *arg, const char *entry),
	void *arg);
/* Runs to the end.  -1 only when the child could not be started (ERR_NOTFOUND,
 * ERR_IO); what the child did is in *r. */
CHECKED int proc_run(const struct proc_spec *s, struct proc_result *r, struct err *e);
/* Convenience: collects stdout and stderr, each up to max bytes (the rest is read and
 * dropped), trailing NUL.  Gives *out and *errs (either may be NULL), freed with free(). */
CHECKED int proc_capture(const char *const *argv, const char *cwd, uint32_t timeout_ms,
	size_t max, char **out, char **errs, struct proc_result *r, struct err *e);
/* The same for a whole spec, whose chunk and arg are ours. */
CHECKED int proc_capture_spec(const struct proc_spec *s, size_t max, char **out, char **errs,
	struct proc_result *r, struct err *e);
/* "exit 3", "signal 11 (SIGSEGV)", "timed out after 30 s". */
void proc_describe(const struct proc_result *r, char *out, size_t size);

#endif
