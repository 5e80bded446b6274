/*
 * verify - checks the kernels of a device against fixtures, and itself against planted
 * errors.
 *
 * A check runs a kernel over a fixture and passes only if every output differs from the
 * expected one by less than the tolerance: a NaN, an output that was not written, a write
 * past an operand or into an input is a fail.  What the device does not have is blocked,
 * never a pass.  Every run also plants two errors in a copy of a fixture; a harness that
 * lets one pass has shown nothing (the outcome is then a fail, whatever the checks said).
 *
 * Names: "turbo3" is the kernel's default variant over its own fixture; other variants
 * are "turbo3[rows-4]"; polar_preht answers polar's fixtures too, its query transformed
 * here: "polar_preht[polar]", "polar_preht[polar][rows-4]".
 *
 * Units: differences are absolute unless they are called relative; NMSE is the sum of
 * squared differences over the sum of squared expected values.
 */
#ifndef KERNELS_VERIFY_H
#define KERNELS_VERIFY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/lane.h"
#include "kernels/fixture.h"
#include "kernels/kernel.h"
#include "kernels/rig.h"

#define VERIFY_REL_FLOOR 1e-6 /* expected values below it count as this, for maxRel */
#define VERIFY_CONTROLS 2     /* of one kernel */
#define VERIFY_ITEMS 160      /* things to check on one device, at most */

/* A kernel's variant and the row whose fixture it is held against. */
struct verify_item {
	char name[80];
	const struct kernel *kernel, *source; /* source: kernel itself, or polar for preht */
	size_t variant;
	char variant_name[32];   /* "" when the device has no variant */
};

struct verify_check {
	char name[80];           /* of the item; of the file when its kernel is unknown */
	const struct kernel *kernel; /* NULL: the fixture names none that is known */
	char variant[32];
	char fixture[256];       /* file */
	char sha256[DIGEST_HEX]; /* of the fixture's bytes; "" when there are none */
	size_t elements;         /* compared; 0 when blocked */
	double max_abs, max_rel, nmse; /* NaN when non_finite > 0 */
	size_t non_finite;       /* outputs that are NaN or infinite */
	size_t over;             /* outputs that do not differ by less than tolerance */
	bool guard_intact;       /* guards and inputs */
	double tolerance;
	enum outcome outcome;    /* pass, fail or blocked */
	enum err_code why;       /* of a blocked one */
	char detail[512];        /* one sentence; "" for a pass */
};

struct verify_control {
	const char *name;        /* "flipped-code-bit", "nan-output" */
	char kernel[80];         /* of the item */
	char fixture[256];       /* file it was planted in; "" when none could be read */
	bool caught;
	enum err_code why;       /* not ERR_NONE: it could not be looked at */
	char detail[512];
};

struct verify_options {
	const char *dir;         /* of fixtures; NULL: the built-in ones */
	const char *const *only; /* names of items, or "turbo3[*]"; NULL: all */
	size_t only_count;
	const char *const *files; /* fixtures to check with instead */
	size_t file_count;
	double tolerance;        /* 0: each row's own */
	bool controls_only;      /* plant errors for each item, check nothing */
};

struct verify_report {
	const char *backend;     /* "cpu-ref" for the scalar truth, else its name */
	struct backend_device device;
	struct backend_code code[RIG_CODE];
	size_t code_count;
	struct verify_check *checks;
	size_t check_count;
	struct verify_control *controls;
	size_t control_count;
	double tolerance;        /* of the first check */
	size_t passed, failed, blocked;
	enum outcome outcome;    /* fail before blocked before pass */
	enum err_code why;       /* of a blocked outcome */
};

/* What the other parts of a run are given: property, exhaustive, bench. */
struct verify_task {
	const struct verify_item *items; /* those with source == kernel are looked at */
	size_t item_count;
	uint64_t seed;
	double tolerance;        /* 0: each row's own */
	const volatile sig_atomic_t *stop; /* not 0: end early, keep what is done */
	/* Optional: done of all, both in the part's own unit. */
	void (*progress)(void *arg, const char *what, uint64_t done, uint64_t all);
	void *progress_arg;
};
bool verify_is_stopped(const struct verify_task *t);
void verify_progress(const struct verify_task *t, const char *what, uint64_t done,
	uint64_t all);

/* Gives the items in out, in the order of the table: without only all of them, else those
 * that are named.  -1: ERR_USAGE for a name that is none. */
CHECKED int verify_items(const struct rig *r, const char *const *only,
	size_t only_count, struct verify_item out[VERIFY_ITEMS], size_t *count,
	struct err *e);
/* One variant over the cases of a fixture that the row takes. */
void verify_fixture(struct rig *r, const struct kernel *k, size_t variant,
	const struct fixture *f, double tolerance, struct verify_check *out);
/* All of it; fills out, freed with verify_report_fini.  What goes wrong on the device or
 * with a fixture is in the report; -1 is ERR_USAGE or ERR_NOMEM. */
CHECKED int verify_run(struct rig *r, const struct verify_options *o,
	struct verify_report *out, struct err *e);
void verify_report_fini(struct verify_report *r);
/* Joins what another part of the run has to say: fail before blocked before pass. */
void verify_report_join(struct verify_report *r, enum outcome o, enum err_code why);

/* EXIT_PASS, EXIT_FAIL, or what the worst error of a blocked check stands for. */
int verify_exit(const struct verify_report *r);
/* Gives the machine form, freed with cJSON_Delete; NULL when out of memory. */
cJSON *verify_json(const struct verify_report *r, const char *tool);
cJSON *verify_device_json(const struct backend_device *d);
/* For people; colour: mark verdicts with it. */
void verify_print(FILE *out, const struct verify_report *r, bool colour);
const char *verify_mark(enum outcome o, bool colour); /* "pass", coloured or not */

/* The command line of `cpu-verify`, `cuda-verify` and so on: options to exit status. */
int verify_main(const struct kernel_backend *b, int argc, char **argv);

#endif
