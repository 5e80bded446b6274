/*
 * engine_env - the environment that the engine under test runs in.
 *
 * An engine reads some two hundred variables that change what it does as much as its
 * arguments do, and the dynamic linker reads more.  Those are taken away, so that a run is
 * what its argv says; what was taken away stands in the log by name.  Variables that choose
 * among devices or bound threads stay, and stand in the log with their value.
 */
#ifndef AGENT_ENGINE_ENV_H
#define AGENT_ENGINE_ENV_H

#include "common/judge.h"
#include "common/transcript.h"

struct engine_env {
	const char *v[24]; /* for proc_spec.env */
	char library[4096 + 32], preload[2 * 4096 + 32], pin[128];
};

/* library_dir: where the libraries of an engine that was built elsewhere lie, or NULL. */
void engine_env_make(struct engine_env *out, const char *library_dir);
/* Lets a program see the lane's device alone, by UUID where the interface has that, else by
 * its place in the interface's own list. */
void engine_env_pin(struct engine_env *env, const struct lane *lane,
	const struct device_facts *device);
/* Adds a library that we preload ourselves (preload.h), before those that it has. */
void engine_env_preload(struct engine_env *env, const char *path);
/* Facts env_removed (names) and env_kept (NAME=value) of our own environment. */
CHECKED int engine_env_note(struct transcript *t, const struct engine_env *env,
	struct err *e);

/* Facts env_removed alone, of any list for proc_spec.env. */
CHECKED int env_removed_note(struct transcript *t, const char *const *env, struct err *e);

#endif
