/*
 * run - one job in the foreground: `verify-agent run LANE`, the drop-in for the shell
 * runners, and `verify-agent work`, the same for the daemon's worker process.
 */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include "common/opt.h"

extern const struct command run_command, work_command;

/* The folder for logs: given, ELIZA_MTP_HARDWARE_REPORT_DIR, or where the old runners put
 * them. */
CHECKED int run_log_dir(const char *given, char *out, size_t size, struct err *e);

#endif
