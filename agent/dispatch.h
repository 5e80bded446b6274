/*
 * dispatch - `verify-agent vulkan-dispatch-smoke`: the engine's score routes on Vulkan alone,
 * without a job; `make vulkan-dispatch-smoke` calls it.
 */
#ifndef AGENT_DISPATCH_H
#define AGENT_DISPATCH_H

#include "common/opt.h"

extern const struct command dispatch_command;

#endif
