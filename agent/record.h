/*
 * record - `verify-agent record DIR`: this host as a folder that VERIFY_MACHINE plays.
 *
 * What tools and libraries answer is kept in memory, ids are replaced by made-up ones, and
 * the folder appears at once or not at all.  A tool that hangs, crashes or floods costs one
 * child, and is recorded as doing so.
 */
#ifndef AGENT_RECORD_H
#define AGENT_RECORD_H

#include "common/opt.h"

extern const struct command record_command;

#endif
