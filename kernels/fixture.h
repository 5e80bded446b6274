/*
 * fixture - the strict reader of a kernel fixture, and the fixtures built in.
 *
 * A fixture is one JSON object: which kernel, its sizes, its inputs and the outputs that
 * are expected.  Every size is checked against the kernel's row and every array against
 * the sizes before anything is computed; a key that the schema does not know is refused,
 * since a kernel that ignored it would answer another question.  Errors (ERR_PARSE,
 * ERR_LIMIT) name the field, what was found and what was wanted.
 *
 * Life: fixture_parse or fixture_load, fixture_free.  Immutable once made, any thread.
 */
#ifndef KERNELS_FIXTURE_H
#define KERNELS_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "kernels/kernel.h"

#define FIXTURE_MAX_BYTES (4u << 20) /* of a file */
#define FIXTURE_MAX_CASES 16
#define FIXTURE_MAX_HEADS 256
#define FIXTURE_MAX_KV 65536

struct fixture_case {
	struct ref_case in; /* its pointers are the arrays below */
	float *q;
	uint8_t *k, *v;     /* v is NULL for score kernels */
	float *expected;
	size_t q_count, k_bytes, v_bytes, expected_count;
};

struct fixture {
	const struct kernel *of;  /* first row with the file's "kernel" field; static */
	struct fixture_case cases[FIXTURE_MAX_CASES];
	size_t case_count;
	char sha256[DIGEST_HEX];  /* of the file's bytes */
};

/* Borrows text (untrusted); gives *out, freed with fixture_free. */
CHECKED int fixture_parse(const char *text, size_t len, struct fixture **out,
	struct err *e);
/* DIR/FILE of the row, or the one built in when dir is NULL; also checks that it is the
 * row's: kernel, residual, causal.  *sha256, when not NULL, is set as soon as there are
 * bytes, also when they are refused. */
CHECKED int fixture_load(const struct kernel *k, const char *dir, struct fixture **out,
	char sha256[DIGEST_HEX], struct err *e);
void fixture_free(struct fixture *f); /* NULL is fine */

/* Whether a row can be checked with it: ERR_PARSE says what differs. */
CHECKED int fixture_fits(const struct fixture *f, const struct kernel *k, struct err *e);

/* The built-in file of that name: static bytes, NULL when there is none. */
const char *fixture_builtin(const char *file, size_t *len);

#endif
