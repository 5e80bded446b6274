/*
 * doctor - `verify-agent doctor [LANE]`: the gates that ask the machine, and what to do.
 */
#ifndef AGENT_DOCTOR_H
#define AGENT_DOCTOR_H

#include "common/opt.h"

extern const struct command doctor_command;

#endif
