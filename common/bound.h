/*
 * bound - that a gate ran on the device of the device gate, and that it was the same one,
 * in the same state, before and after.
 *
 * The log of such a gate begins and ends with a probe of that one device.  Pure function
 * over its bytes: any thread, any input.
 */
#ifndef COMMON_BOUND_H
#define COMMON_BOUND_H

#include "common/judge.h"

/* The probe that looks at one device of an API: "nvml", "kfd", "vulkan"; NULL: none. */
const char *bound_probe(enum api api);
/* Whether the gate's work happens on the lane's device, so that its log is bound. */
bool bound_gate(const struct lane *lane, enum gate_id g);

/* What both looks at the device have in common. */
struct bound {
	char name[128], uuid[64], pci[32], driver[96], boot_id[40];
	bool simulated;
};
/* REASON_NONE with *b, or device_changed, device_vanished, cancelled in *out. */
enum reason bound_judge(const char *log, size_t len, const struct lane *lane, struct bound *b,
	struct judgement *out);

#endif
