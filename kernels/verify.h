/*
 * verify - checks kernels against fixtures, and itself against planted errors.
 *
 * A check runs a kernel over a fixture and passes only if every output differs from the
 * expected one by less than the tolerance: a NaN, an output that was not written, or a
 * write past the buffer is a fail.  Every run also plants two errors in a copy of a
 * fixture; a harness that lets one pass has shown nothing (verify_run's outcome is then
 * a fail, whatever the checks said).
 *
 * Units: differences are absolute unless they are called relative; NMSE is the sum of
 * squared differences over the sum of squared expected values.
 */
#ifndef KERNELS_VERIFY_H
#define KERNELS_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"
#include "kernels/fixture.h"
#include "kernels/kernel.h"

#define VERIFY_GUARD 64      /* bytes on each side of an output buffer */
#define VERIFY_REL_FLOOR 1e-6 /* expected values below it count as this, for maxRel */
#define VERIFY_CONTROLS 2

struct verify_check {
	const struct kernel *kernel;
	char sha256[DIGEST_HEX]; /* of the fixture's bytes; "" when there are none */
	size_t elements;         /* compared; 0 when blocked */
	double max_abs, max_rel, nmse; /* NaN when non_finite > 0 */
	size_t non_finite;       /* outputs that are NaN or infinite */
	size_t over;             /* outputs that do not differ by less than tolerance */
	bool guard_intact;
	double tolerance;
	enum outcome outcome;    /* pass, fail or blocked */
	char detail[512];        /* one sentence; "" for a pass */
};

struct verify_control {
	const char *name;        /* "flipped-code-bit", "nan-output" */
	const char *fixture;     /* file it was planted in; NULL when none could be read */
	bool caught;
	char detail[512];
};

struct verify_options {
	const char *dir;         /* of fixtures; NULL: the built-in ones */
	const struct kernel *only[KERNEL_COUNT]; /* rows to check */
	size_t only_count;       /* 0: all */
	double tolerance;        /* 0: each row's own */
	ref_run run;             /* NULL: each row's own; else what is under test */
};

struct verify_report {
	struct verify_check checks[KERNEL_COUNT];
	size_t check_count;
	struct verify_control controls[VERIFY_CONTROLS];
	double tolerance;        /* of the first check */
	size_t passed, failed, blocked;
	enum outcome outcome;    /* fail before blocked before pass */
};

/* One row over a fixture that fits it.  run may be NULL: the row's own. */
void verify_fixture(const struct kernel *k, const struct fixture *f, ref_run run,
	double tolerance, struct verify_check *out);
/* Plants the errors in copies of the row's fixture and looks whether they are caught. */
void verify_controls(const struct kernel *k, const char *dir, ref_run run,
	double tolerance, struct verify_control out[VERIFY_CONTROLS]);
/* All of it.  What goes wrong is in the report. */
void verify_run(const struct verify_options *o, struct verify_report *out);

/* EXIT_PASS, EXIT_FAIL, or EXIT_USAGE when something could not be checked. */
int verify_exit(const struct verify_report *r);
/* Gives the machine form, freed with cJSON_Delete; NULL when out of memory. */
cJSON *verify_json(const struct verify_report *r);
void verify_print(FILE *out, const struct verify_report *r); /* for people */

/* The program `cpu-verify`: options to exit status. */
int cpu_verify_main(int argc, char **argv);

#endif
