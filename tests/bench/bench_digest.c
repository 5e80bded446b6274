/*
 * bench_digest - SHA-256 of a large file: digest_file against `openssl dgst -sha256`.
 *
 * usage: bench_digest FOLDER [MIB [ROUNDS]]
 * Writes a file of MIB (2048) mebibytes that do not compress into FOLDER, reads it once so
 * that it lies in memory, lets both read it in turns ROUNDS (3) times, takes the best of
 * each, compares what they say, and removes the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/plat.h"
#include "common/proc.h"
#include "common/str.h"

#define MIB ((size_t)1 << 20)
#define GOAL 0.95

struct cost {
	double wall, cpu; /* seconds */
};

static char path[4096];

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "bench_digest: %s: %s\n", what, why);
	if (path[0] != '\0')
		(void)unlink(path);
	exit(EXIT_INCOMPLETE);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
cpu_of(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		die("getrusage", strerror(errno));
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void
chunk_fill(uint64_t *p, size_t words, uint64_t *seed)
{
	size_t i;

	for (i = 0; i < words; i++) {
		*seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
		p[i] = *seed;
	}
}

static void
file_make(uint32_t mib)
{
	uint64_t *chunk = malloc(MIB), seed = 88172645463325252u;
	size_t done;
	ssize_t n;
	uint32_t i;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || chunk == NULL)
		die(path, strerror(errno));
	for (i = 0; i < mib; i++) {
		chunk_fill(chunk, MIB / sizeof *chunk, &seed);
		for (done = 0; done < MIB; done += (size_t)n)
			if ((n = write(fd, (char *)chunk + done, MIB - done)) <= 0)
				die(path, strerror(errno));
	}
	free(chunk);
	/* Writing back must not happen while we measure. */
	if (fsync(fd) || close(fd))
		die(path, strerror(errno));
}

static struct cost
ours(char hex[DIGEST_HEX])
{
	struct err e = {0};
	double wall = seconds(), cpu = cpu_of(RUSAGE_SELF);

	if (digest_file(path, hex, NULL, &e))
		die(path, e.msg);
	return (struct cost){seconds() - wall, cpu_of(RUSAGE_SELF) - cpu};
}

static struct cost
theirs(const char *openssl, char hex[DIGEST_HEX])
{
	const char *const argv[] = {openssl, "dgst", "-sha256", "-r", path, NULL};
	struct proc_result r;
	struct err e = {0};
	char *out = NULL;
	double wall = seconds(), cpu = cpu_of(RUSAGE_CHILDREN);

	if (proc_capture(argv, NULL, 0, 4096, &out, NULL, &r, &e))
		die(openssl, e.msg);
	wall = seconds() - wall;
	if (r.exit != 0 || strlen(out) < DIGEST_HEX - 1)
		die(openssl, "gave no digest");
	memcpy(hex, out, DIGEST_HEX - 1);
	hex[DIGEST_HEX - 1] = '\0';
	free(out);
	return (struct cost){wall, cpu_of(RUSAGE_CHILDREN) - cpu};
}

static void
best(struct cost *b, struct cost now)
{
	if (b->wall == 0 || now.wall < b->wall)
		b->wall = now.wall;
	if (b->cpu == 0 || now.cpu < b->cpu)
		b->cpu = now.cpu;
}

int
main(int argc, char **argv)
{
	uint32_t mib = 2048, rounds = 3, i;
	char openssl[4096], a[DIGEST_HEX], b[DIGEST_HEX];
	struct cost we = {0}, they = {0};
	struct statvfs fs;
	struct err e = {0};
	double ratio;

	if (argc < 2 || argc > 4 ||
	    (argc > 2 && str_u32(argv[2], 16, 1 << 20, &mib, &e)) ||
	    (argc > 3 && str_u32(argv[3], 1, 100, &rounds, &e))) {
		fprintf(stderr, "usage: bench_digest FOLDER [MIB [ROUNDS]]\n");
		return EXIT_USAGE;
	}
	if (plat_find_tool("openssl", openssl, sizeof openssl, &e)) {
		printf("digest: skipped, there is no openssl command here\n");
		return EXIT_UNRECORDED;
	}
	if (statvfs(argv[1], &fs) ||
	    (uint64_t)fs.f_bavail * fs.f_frsize < (uint64_t)(mib + 64) * MIB) {
		printf("digest: skipped, no room for %" PRIu32 " MiB in %s\n", mib, argv[1]);
		return EXIT_UNRECORDED;
	}
	if (str_fmt(path, sizeof path, &e, "%s/bench-digest.%ld", argv[1], (long)getpid()))
		die(argv[1], e.msg);
	file_make(mib);
	(void)ours(a);
	for (i = 0; i < rounds; i++) {
		best(&we, ours(a));
		best(&they, theirs(openssl, b));
		if (!str_eq(a, b))
			die(path, "the digests differ");
	}
	(void)unlink(path);
	ratio = they.wall / we.wall;
	printf("digest: ours %.0f MB/s, theirs %.0f MB/s, ratio %.3f (goal >= %.2f); "
	       "in CPU time %.3f\n",
		mib * 1.048576 / we.wall, mib * 1.048576 / they.wall, ratio, GOAL,
		they.cpu / we.cpu);
	return ratio >= GOAL ? EXIT_PASS : EXIT_FAIL;
}
