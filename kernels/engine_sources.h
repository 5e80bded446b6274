/*
 * engine_sources - what engine-verify is compiled from, byte for byte.
 *
 * It is compiled on the machine under test against the engine there (engine_verify.c says
 * why), and the agent is one file that has no tree beside it.  All data is static.
 */
#ifndef KERNELS_ENGINE_SOURCES_H
#define KERNELS_ENGINE_SOURCES_H

struct engine_source {
	const char *name;        /* from the root of the tree; NULL: the end */
	const char *start, *end;
};
extern const struct engine_source engine_sources[];

#endif
