/*
 * probe - `verify-agent probe NAME`: one library asked what devices it sees, as one JSON
 * object, in a process of its own, so that a driver that crashes or hangs costs a child.
 *
 * {"probe":"nvml","schema":1,"simulated":false,"library":PATH,"version":...,"driver":...,
 *  "error":null|{"code","name","call","reason","hint"},"devices":[...],"notes":[...]}
 * What was not said is null, never 0.  common/tool_probe.c reads it.
 */
#ifndef AGENT_PROBE_H
#define AGENT_PROBE_H

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"
#include "common/opt.h"

extern const struct command probe_command;

/* The answer that is made: members are there, error null, devices and notes empty. */
struct probe {
	cJSON *root, *devices, *notes; /* parts of root */
	const char *wanted;            /* UUID of the only device asked for; NULL: all */
};

/* Each fills p, and sets the error when the library gives no facts.  Nothing is an error
 * for the caller but want of memory. */
void probe_nvml(struct probe *p);
void probe_kfd(struct probe *p);

/* Parts for them. */
void probe_fail(struct probe *p, enum reason r, long code, const char *name, const char *call,
	const char *hint);
void probe_note(struct probe *p, const char *fmt, ...) PRINTF(2, 3);
/* A device with its place, name and the rest null; NULL: no memory. */
cJSON *probe_device(struct probe *p, int index, const char *name);
/* Sets members of a device; absence is null already. */
void probe_text(cJSON *d, const char *key, const char *value);
void probe_number(cJSON *d, const char *key, double value);
void probe_flag(cJSON *d, const char *key, bool value);
/* A recorded machine whose library gave an error that no stand-in can give: one that was
 * not there, or an error without a code; with any, every error.  True: p has it. */
bool probe_replay(struct probe *p, const char *name, bool any);
void probe_library(struct probe *p, const char *path, const char *simulated);

#endif
