/*
 * atwork - what the commands of a build are about now: the file that each one compiles.
 *
 * A build tool says that a step is done, not that it began; one file may take a quarter of
 * an hour.  So the tool's children are looked at in /proc: their command lines name the
 * file.  Where there is no /proc nothing is found.  Untrusted: a command line is whatever
 * a build put there; names are cleaned.  Bounded: so many processes, so much of each.
 * No state: any thread.
 */
#ifndef AGENT_ATWORK_H
#define AGENT_ATWORK_H

#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#define ATWORK_MAX 64
#define ATWORK_NAME 80

struct atwork {
	char name[ATWORK_NAME]; /* "ggml-cuda/fattn.cu"; of a link its output */
	int64_t ms;             /* since the command began */
};

/* Commands of the build tools that are children of parent, longest first; gives how many
 * there are, of which at most max stand in out. */
int atwork_list(pid_t parent, struct atwork *out, int max);
/* The file that a command line is about, cleaned, its folder in front; "" when it names
 * none.  words: each ends with a NUL. */
void atwork_name(const char *words, size_t len, char out[ATWORK_NAME]);
/* "ggml-cuda/fattn.cu (612 s), common/arg.cpp (40 s) and 3 more"; "" of none. */
void atwork_text(const struct atwork *v, int shown, int total, char *out, size_t size);

#endif
