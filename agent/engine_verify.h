/*
 * engine_verify - makes engine-verify on this host and runs it, into a log.
 *
 * The program is compiled from the sources in this binary, against the headers of the
 * engine's source and the shared libraries of its build, in a folder that is gone
 * afterwards.  judge_of(GATE_ROUTES) reads the log.
 */
#ifndef AGENT_ENGINE_VERIFY_H
#define AGENT_ENGINE_VERIFY_H

#include <stdint.h>

#include "common/err.h"
#include "common/lane.h"
#include "common/transcript.h"

struct engine_verify {
	const char *program;       /* its file name: "engine-verify", "vulkan_dispatch_smoke" */
	const char *engine_dir;    /* with libggml-base and the libraries of the backends */
	const char *source;        /* of the engine: its ggml/include is used; NULL: not known */
	const char *compiler;      /* path; NULL or "": the one in PATH */
	const char *device;        /* as the engine names it: "CUDA0" */
	const char *cache_dir;     /* the folder is made below it */
	const char *const *env;    /* for proc_spec.env of the program */
	int (*tick)(void *arg);    /* optional; non-zero cancels */
};

/* Both runs are in the log.  On failure *why is the reason, and there is nothing to judge. */
CHECKED int engine_verify_run(const struct engine_verify *ask, struct transcript *t,
	enum reason *why, struct err *e);

#endif
