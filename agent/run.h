/*
 * run - one job in the foreground: `verify-agent run LANE`, the drop-in for the shell
 * runners, and `verify-agent work`, the same for the daemon's worker process.
 */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include "common/opt.h"

extern const struct command run_command, work_command;

#endif
