/*
 * make_model - the command that writes a synthetic model, of `make-model` and of the agent.
 *
 * Exit status: 0, 2 (usage, or the file exists), 6 (could not be written).
 */
#ifndef AGENT_MAKE_MODEL_H
#define AGENT_MAKE_MODEL_H

#include "common/opt.h"

/* A row for a table of commands. */
extern const struct command make_model_command;

/* The whole of the stand-alone program; argv[0] is its name. */
int make_model_main(int argc, char **argv);

#endif
