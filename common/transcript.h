/*
 * transcript - the raw log of a gate: sections of facts, files and commands, in a form
 * that the controller can read again without trusting a summary.
 *
 * Every section begins and ends with a line that carries the log's boundary (the first
 * 16 hex digits of the job's nonce, which no child knows):
 *
 *   #verify BOUNDARY run {"argv":["/usr/bin/cc","--version"]}
 *   ...bytes of the command, whole lines of stdout and stderr...
 *   #verify BOUNDARY end {"exit":0,"signal":0,"ms":12,"bytes":304,"dropped":0,...}
 *
 * Kinds: run (a command), file (a copy of a file's bytes), facts (key=value lines).  A
 * log is capped: head and tail are kept, "\n#verify BOUNDARY cut N\n" stands between
 * with the number of bytes dropped.
 */
#ifndef COMMON_TRANSCRIPT_H
#define COMMON_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "common/proc.h"

#define TRANSCRIPT_BOUNDARY 16

struct transcript;

/* Creates the file (never overwrites: ERR_CONFLICT).  cap_bytes bounds each section. */
CHECKED int transcript_open(const char *path, const char *nonce, uint64_t cap_bytes,
	struct transcript **out, struct err *e);
/* key=value; newlines in the value become spaces. */
CHECKED int transcript_fact(struct transcript *t, const char *key, const char *value,
	struct err *e);
/* Copies up to 1 MiB of a file as a section. */
CHECKED int transcript_file(struct transcript *t, const char *path, struct err *e);
/* Runs a command into the log, stdout and stderr together by whole lines.  spec->chunk
 * still gets every byte when set.  out (NULL or a path) also receives stdout exactly, up
 * to the cap.  ERR_NOSPACE when the disk is full: the child is stopped. */
CHECKED int transcript_run(struct transcript *t, const struct proc_spec *spec,
	const char *out_path, struct proc_result *r, struct err *e);
/* Adds bytes that came from elsewhere as a section of kind "file". */
CHECKED int transcript_bytes(struct transcript *t, const char *name, const void *p,
	size_t n, struct err *e);
/* fsyncs, closes, frees; NULL is fine.  digest and bytes may be NULL. */
CHECKED int transcript_close(struct transcript *t, char digest[DIGEST_HEX],
	uint64_t *bytes, struct err *e);

/* ---- reading ---- */
struct section {
	char kind[8];           /* "run", "file", "facts" */
	char *head, *end;       /* JSON texts of the marker lines, NUL-terminated, owned */
	const char *body;       /* borrows the log */
	size_t len;
	int exit, signal;       /* of a run; exit 0 to 255, a status of ntstatus.h, -1 unknown */
	bool timed_out, cancelled;
	int64_t ms;
	uint64_t dropped;       /* bytes cut out of the body */
	bool ended;             /* false: the log stops inside the section */
};
/* Walks a log: *pos starts at 0.  Returns 1 with the next section in *s (section_fini
 * it), 0 at the end, -1 on a log that is no transcript. */
CHECKED int transcript_next(const char *log, size_t len, size_t *pos, struct section *s,
	struct err *e);
void section_fini(struct section *s);
/* The next line of the body from *pos on, of n bytes without its end; false at the end. */
bool section_line(const struct section *s, size_t *pos, const char **line, size_t *n);
/* Value of key=value in a facts body, copied; false when absent or too long. */
bool section_fact(const struct section *s, const char *key, char *out, size_t size);

#endif
