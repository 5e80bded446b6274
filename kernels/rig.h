/*
 * rig - one open device, and guarded runs of problems on it.
 *
 * A run lays the operands of a problem into one piece of device memory, each between
 * guards: bytes that differ from place to place (no fill restores them) and that are not
 * numbers however they are read, so that a kernel that uses what lies before or after an
 * operand shows it.  Outputs start as NaN.  Afterwards everything is read back: guards
 * and inputs must be as they were.
 *
 * Life: rig_open, rig_close.  When the device fails (ERR_DEVICE) the rig is lost: each
 * further run says so.  Threads: one at a time.
 */
#ifndef KERNELS_RIG_H
#define KERNELS_RIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "kernels/backend.h"
#include "kernels/kernel.h"

#define RIG_GUARD 1024 /* bytes before and after every operand, at least */
#define RIG_CODE 64    /* pieces of code that are told, at most */

struct rig {
	const struct kernel_backend *backend;
	struct backend_device device;
	struct backend_session *session;
	bool lost;
};

/* What a run did that is not a number. */
struct rig_faults {
	bool guard, input; /* a guard, an input was changed */
	char where[96];    /* the first such byte: "byte 4 after out"; "" for none */
};

CHECKED int rig_open(const struct kernel_backend *b, const struct backend_device *d,
	struct rig *out, struct err *e);
void rig_close(struct rig *r); /* a zeroed one is fine */

/* Names of the kernel's variants, the default first; 0: this device has none. */
size_t rig_variants(const struct rig *r, const struct kernel *k,
	const char *names[BACKEND_VARIANTS]);
/* Fills out, kernel_outputs(k, c) floats.  -1: it could not be run. */
CHECKED int rig_run(struct rig *r, const struct kernel *k, size_t variant,
	const struct ref_case *c, float *out, struct rig_faults *f, struct err *e);
/* Takes note of an error of the session: ERR_DEVICE loses the rig.  Returns -1. */
int rig_note(struct rig *r, const struct err *e);

#endif
