/*
 * parse - `verify-agent parse KIND FILE`: what a tool's output says, for people who were
 * handed one.  The same code reads it in a run.
 */
#ifndef AGENT_PARSE_H
#define AGENT_PARSE_H

#include "common/opt.h"

extern const struct command parse_command;

#endif
