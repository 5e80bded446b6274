/*
 * bench - how fast the kernels of a device move bytes, against a plain copy on it.
 *
 * Moved bytes are those that must move: the key bytes once per kv head and 4 bytes per
 * score written; for attention K and V bytes once per kv head and the output.  Beside
 * each time stands that of a copy kernel that reads and writes as many bytes in the same
 * session (it copies half of them), and the kernel's plain variant on the same problem.
 * A time is the median of at least 20 runs after a warm-up; a shape that takes too long
 * for that says how many there were.  Some scores are held against truth afterwards: a
 * kernel that is fast because it is wrong is a fail.
 */
#ifndef KERNELS_BENCH_H
#define KERNELS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"
#include "kernels/verify.h"

#define BENCH_KV_HEADS 8
#define BENCH_RUNS 20
#define BENCH_LARGE (UINT64_C(1) << 30)  /* key bytes of the large shape, at least */
/* More than any cache holds; what is smaller may come out of one. */
#define BENCH_CACHE (UINT64_C(512) << 20)

struct bench_row {
	char name[80];           /* of the item */
	uint32_t n_kv, gqa;      /* keys of a kv head; query heads for one */
	bool large;              /* the shape of at least BENCH_LARGE */
	bool cached;             /* may fit into a cache: no measure of memory */
	uint64_t moved;          /* bytes */
	unsigned runs;           /* fewer than BENCH_RUNS: it takes too long */
	double seconds, best;    /* median, fastest; 0: not measured */
	double copy_seconds;     /* median of the copy kernel for the same bytes */
	char plain[32];          /* the variant beside it; "" for none */
	double plain_seconds;    /* 0: not measured */
	size_t checked, wrong;   /* scores held against truth afterwards */
	enum outcome outcome;    /* skipped: too large for the device, or stopped */
	enum err_code why;
	char detail[512];
};

struct bench_options {
	uint32_t gqa, keys;      /* 0: 1, 4 and 8; 4096, 32768, 131072 and large */
	double seconds;          /* for one shape, more or less; 0: 2 */
};

struct bench_report {
	struct bench_row *rows;
	size_t count;
	enum outcome outcome;
	enum err_code why;
};

/* Fills out, freed with bench_fini.  -1: no memory. */
CHECKED int bench_run(struct rig *r, const struct verify_task *t,
	const struct bench_options *o, struct bench_report *out, struct err *e);
void bench_fini(struct bench_report *r);
cJSON *bench_json(const struct bench_report *r);
void bench_print(FILE *out, const struct bench_report *r, bool colour);

#endif
