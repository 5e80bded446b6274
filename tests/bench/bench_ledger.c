/*
 * bench_ledger - a ledger with many runs against the least that SQLite could do.
 *
 * usage: bench_ledger FOLDER [RUNS [PAIRS]]
 * FOLDER must lie on the disk that a ledger would lie on; its files "bench-ledger.db"
 * and "bench-bare.db" are made anew.  Prints two ratios, each taken in one run: append
 * ledger_add of a run with all its rows, against a bare INSERT of one row into a table
 * of one column (WAL, synchronous=FULL) beside it; interleaved pairs classes
 * ledger_class_list, against one prepared, indexed query per class
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/str.h"
#include "controller/ledger.h"

#define CLASSES 40
#define HOSTS 12
#define GATES 12
#define FIXTURES 12
#define SMOKES 8
#define ARTIFACTS 16
#define BATCH 100
#define GOAL_APPEND 3.0
#define GOAL_CLASSES 2.0

/* One run and everything it points to. */
struct sample {
	char run_id[33], host[32], class_name[64], commit[41], digest[65],
		file[ARTIFACTS][65];
	struct ledger_gate gates[GATES];
	struct ledger_fixture fixtures[FIXTURES];
	struct ledger_smoke smokes[SMOKES];
	struct ledger_artifact artifacts[ARTIFACTS];
	struct ledger_run run;
};

static uint64_t seed = 88172645463325252u;

static uint64_t
next(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

static void
hex(char *out, size_t digits)
{
	size_t i;

	for (i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[next() & 15];
	out[digits] = '\0';
}

static int64_t
ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "bench_ledger: %s: %s\n", what, why);
	exit(1);
}

/* ---- a realistic run ---- */

static void
sample_rows(struct sample *s, const char *outcome, const char *reason, int64_t at)
{
	int i;

	for (i = 0; i < GATES; i++)
		s->gates[i] = (struct ledger_gate){
			.name = "graph-smoke/q8_0",
			.family = i > 6 ? "q8_0" : NULL,
			.outcome = i == 9 ? outcome : "pass",
			.reason = i == 9 ? reason : "none",
			.detail = "the K cache is q8_0 on CUDA0 and 4 tokens came",
			.hint = i == 9 ? "build an engine that has the cache type"
				       : NULL,
			.started_ms = at + 100 * i,
			.finished_ms = at + 100 * i + 99,
			.log_digest = s->digest};
	for (i = 0; i < FIXTURES; i++)
		s->fixtures[i] = (struct ledger_fixture){"fused_attn_qjl_tbq",
							 s->digest,
							 4096,
							 1e-6 * (double)(next() % 999),
							 1e-5,
							 1e-9,
							 0,
							 0.001,
							 "pass"};
	for (i = 0; i < SMOKES; i++)
		s->smokes[i] = (struct ledger_smoke){
			"q8_0",	 "q8_0",  "q8_0", "llama-completion",
			"CUDA0", 4,	  4,	  s->digest,
			0.25,	 outcome, reason};
	for (i = 0; i < ARTIFACTS; i++) {
		hex(s->file[i], 64);
		s->artifacts[i] = (struct ledger_artifact){
			"linux-x64-cuda-q8_0-q8_0.log", (int64_t)(next() % 1000000),
			s->file[i], false};
	}
}

static void
sample_make(struct sample *s, unsigned n)
{
	bool pass = next() % 10 < 6;
	const char *outcome = pass ? "pass" : "blocked";
	const char *reason = pass ? "none" : "family_not_in_build";
	int64_t at = 1780000000000 + (int64_t)n * 60000;

	memset(s, 0, sizeof *s);
	hex(s->run_id, 32), hex(s->commit, 40), hex(s->digest, 64);
	snprintf(s->host, sizeof s->host, "gh200-lab-%u", n % HOSTS);
	snprintf(s->class_name, sizeof s->class_name, "linux-x64-cuda/h%u/sm_90",
		 (unsigned)(next() % CLASSES));
	sample_rows(s, outcome, reason, at);
	s->run = (struct ledger_run){
		.run_id = s->run_id,
		.host = s->host,
		.device_class = s->class_name,
		.lane = "cuda",
		.target = "linux-x64-cuda",
		.suite = "llama.cpp",
		.suite_digest = s->digest,
		.outcome = outcome,
		.reason = reason,
		.detail = pass ? NULL : "5 of 7 families are not in the build",
		.recordable = pass,
		.not_recordable =
			pass ? NULL : "a required gate did not pass: graph-smoke",
		.claims = {{"pass", "none"}, {outcome, reason}, {NULL, NULL}},
		.source_origin = "https://github.com/ggml-org/llama.cpp",
		.source_commit = s->commit,
		.source_tree = s->commit,
		.model_name = "model.gguf",
		.model_sha256 = s->digest,
		.model_bytes = 4000000000,
		.device_name = "NVIDIA H200",
		.device_driver = "580.65.06",
		.device_uuid = "GPU-0b1f9f0a-6e0d-4a1c-9c52-3c1f4a5e6d7f",
		.agent_version = "0.1.0",
		.agent_key = s->digest,
		.controller_version = "0.1.0",
		.started_ms = at,
		.finished_ms = at + 50000,
		.appended_ms = at + 51000,
		.envelope_digest = s->digest,
		.report_digest = s->digest,
		.gates = s->gates,
		.gate_count = GATES,
		.fixtures = s->fixtures,
		.fixture_count = FIXTURES,
		.smokes = s->smokes,
		.smoke_count = SMOKES,
		.artifacts = s->artifacts,
		.artifact_count = ARTIFACTS};
}

static void
fill(struct ledger *l, unsigned runs)
{
	struct sample *s = calloc(BATCH, sizeof *s);
	const struct ledger_run *list[BATCH];
	struct err e = {0};
	unsigned done, n;

	if (s == NULL)
		die("fill", "no memory");
	for (done = 0; done < runs; done += n) {
		for (n = 0; n < BATCH && done + n < runs; n++) {
			sample_make(&s[n], done + n);
			list[n] = &s[n].run;
		}
		if (ledger_add_all(l, list, n, NULL, &e))
			die("fill", e.msg);
	}
	free(s);
}

/* ---- the bare twin ---- */

static void
sql(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		die(text, sqlite3_errmsg(db));
}

static sqlite3_stmt *
prepared(sqlite3 *db, const char *text)
{
	sqlite3_stmt *s;

	if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) !=
	    SQLITE_OK)
		die(text, sqlite3_errmsg(db));
	return s;
}

static double
bare_insert(sqlite3_stmt *insert, sqlite3 *db)
{
	char text[65];
	int64_t from;

	hex(text, 64);
	from = ns();
	sqlite3_bind_text(insert, 1, text, -1, SQLITE_STATIC);
	if (sqlite3_step(insert) != SQLITE_DONE)
		die("bare insert", sqlite3_errmsg(db));
	sqlite3_reset(insert);
	return (double)(ns() - from);
}

static double
append(struct ledger *l, struct sample *s, unsigned n)
{
	struct err e = {0};
	int64_t from;

	sample_make(s, n);
	from = ns();
	if (ledger_add(l, &s->run, NULL, &e))
		die("append", e.msg);
	return (double)(ns() - from);
}

static double
append_ratio(struct ledger *l, const char *folder, unsigned runs, unsigned pairs)
{
	char path[512];
	double *ours = calloc(pairs, sizeof *ours), *bare = calloc(pairs, sizeof *bare);
	struct sample *s = calloc(1, sizeof *s);
	sqlite3_stmt *insert;
	sqlite3 *db = NULL;
	unsigned i;
	double ratio;

	snprintf(path, sizeof path, "%s/bench-bare.db", folder);
	if (s == NULL || ours == NULL || bare == NULL ||
	    sqlite3_open(path, &db) != SQLITE_OK)
		die(path, "can not be opened");
	sql(db, "PRAGMA journal_mode=wal; PRAGMA synchronous=full;"
		"CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT");
	insert = prepared(db, "INSERT INTO t (b) VALUES (?)");
	for (i = 0; i < pairs; i++) {
		bare[i] = bare_insert(insert, db);
		ours[i] = append(l, s, runs + i);
	}
	ratio = median(ours, pairs) / median(bare, pairs);
	printf("append: ledger %.0f us, bare insert %.0f us, ratio %.2f (goal <= "
	       "%.0f)\n",
	       ours[pairs / 2] / 1e3, bare[pairs / 2] / 1e3, ratio, GOAL_APPEND);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	free(s);
	free(ours);
	free(bare);
	return ratio;
}

/* ---- classes ---- */

static double
classes_ours(struct ledger *l)
{
	struct ledger_classes list;
	struct err e = {0};
	int64_t from = ns();

	if (ledger_class_list(l, &list, &e) || list.count != CLASSES)
		die("classes", e.code ? e.msg : "not all classes came");
	ledger_classes_fini(&list);
	return (double)(ns() - from);
}

/* In one read transaction, as cheap as it gets. */
static double
classes_bare(sqlite3 *db, sqlite3_stmt *s)
{
	int64_t from = ns();
	static volatile int64_t sink; /* so that reading is not optimised away */
	int64_t sum = 0;
	int i;

	sql(db, "BEGIN");
	for (i = 1; i <= CLASSES; i++) {
		sqlite3_bind_int(s, 1, i);
		if (sqlite3_step(s) != SQLITE_ROW)
			die("classes", "a class without a run");
		sum += sqlite3_column_int64(s, 0) + sqlite3_column_int64(s, 3);
		sum += (int64_t)strlen((const char *)sqlite3_column_text(s, 1));
		sum += (int64_t)strlen((const char *)sqlite3_column_text(s, 2));
		sqlite3_reset(s);
	}
	sql(db, "COMMIT");
	sink = sum;
	return (double)(ns() - from) + (double)(sink != sum);
}

static double
classes_ratio(struct ledger *l, unsigned rounds)
{
	double *ours = calloc(rounds, sizeof *ours),
	       *bare = calloc(rounds, sizeof *bare);
	sqlite3_stmt *s;
	sqlite3 *db = NULL;
	unsigned i;
	double ratio;

	if (ours == NULL || bare == NULL ||
	    sqlite3_open(ledger_path(l), &db) != SQLITE_OK)
		die(ledger_path(l), "can not be opened");
	s = prepared(db, "SELECT seq, run_id, outcome, finished_ms FROM runs "
			 "WHERE class_id = ? ORDER BY seq DESC LIMIT 1");
	for (i = 0; i < rounds; i++) {
		bare[i] = classes_bare(db, s);
		ours[i] = classes_ours(l);
	}
	ratio = median(ours, rounds) / median(bare, rounds);
	printf("classes: ledger %.0f us, one indexed query per class %.0f us, ratio "
	       "%.2f "
	       "(goal <= %.0f)\n",
	       ours[rounds / 2] / 1e3, bare[rounds / 2] / 1e3, ratio, GOAL_CLASSES);
	sqlite3_finalize(s);
	sqlite3_close(db);
	free(ours);
	free(bare);
	return ratio;
}

static void
clear(const char *path)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	char name[640];
	size_t i;

	for (i = 0; i < str_count(ends); i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		(void)unlink(name);
	}
}

int
main(int argc, char **argv)
{
	uint32_t runs = 100000, pairs = 400;
	struct ledger *l = NULL;
	struct err e = {0};
	char path[512], bare[512];
	double a, c;
	int64_t from;

	if (argc < 2 || argc > 4 ||
	    (argc > 2 && str_u32(argv[2], CLASSES * 10, 10000000, &runs, &e)) ||
	    (argc > 3 && str_u32(argv[3], 1, 100000, &pairs, &e))) {
		fprintf(stderr, "usage: bench_ledger FOLDER [RUNS [PAIRS]]\n");
		return EXIT_USAGE;
	}
	snprintf(path, sizeof path, "%s/bench-ledger.db", argv[1]);
	snprintf(bare, sizeof bare, "%s/bench-bare.db", argv[1]);
	clear(path);
	clear(bare);
	if (ledger_open(path, LEDGER_CREATE, NULL, &l, &e))
		die("open", e.msg);
	from = ns();
	fill(l, runs);
	printf("filled %u runs over %d classes in %.1f s\n", runs, CLASSES,
	       (double)(ns() - from) / 1e9);
	a = append_ratio(l, argv[1], runs, pairs);
	c = classes_ratio(l, pairs);
	ledger_close(l);
	clear(path);
	clear(bare);
	return a <= GOAL_APPEND && c <= GOAL_CLASSES ? EXIT_PASS : EXIT_FAIL;
}
