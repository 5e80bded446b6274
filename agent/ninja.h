/*
 * ninja - reads what cmake and ninja print while they run: progress, and why they failed.
 *
 * Fed with chunks of any size.  Untrusted: compilers print what the source makes them
 * print.  Lines are cut at NINJA_LINE bytes; colour codes are left out; nothing is kept but
 * the few texts below.  No state outside the struct: any thread.
 */
#ifndef AGENT_NINJA_H
#define AGENT_NINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NINJA_STATUS "[%f/%t] " /* what NINJA_STATUS is set to */
#define NINJA_LINE 1024
#define NINJA_TEXT 240

/* What an error line says about whose fault it is; later words explain more. */
enum ninja_trouble {
	NINJA_FINE,
	NINJA_ERROR,   /* the source does not build */
	NINJA_CRASH,   /* a compiler or linker died: nothing is known about the source */
	NINJA_MISSING, /* cmake: a tool is not there */
	NINJA_BROKEN,  /* cmake: a compiler can not even build a test program */
	NINJA_TOO_OLD, /* a compiler that does not know the chip, or the other compiler */
	NINJA_NO_GPU,  /* "native" was asked for, and no GPU was seen while building */
	NINJA_NOSPACE, /* the disk is full */
};

/* A step is done.  text: what it was ("Building CXX object ..."), cleaned. */
typedef void (*ninja_step)(void *arg, uint32_t done, uint32_t total, const char *text);

struct ninja {
	ninja_step step; /* may be NULL */
	void *arg;
	uint32_t done, total;      /* 0 of 0: nothing yet */
	enum ninja_trouble trouble;
	char headline[NINJA_TEXT]; /* the first line of that trouble, or "" */
	char failed[NINJA_TEXT];   /* the target that FAILED with that line, or "" */
	char said[NINJA_TEXT];     /* what its command printed first, or "" */
	char last[NINJA_TEXT];     /* the last line that was not empty */

	/* private */
	char line[NINJA_LINE];
	size_t len;
	bool cmake_error;
	int code;         /* of the command that FAILED, 0 not said */
	int after_failed; /* lines to the end of what FAILED says: command, first output */
};

void ninja_init(struct ninja *n, ninja_step step, void *arg);
void ninja_add(struct ninja *n, const char *p, size_t len);
/* The line that has not ended yet counts too. */
void ninja_end(struct ninja *n);
/* One sentence on why it failed, never empty. */
void ninja_reason(const struct ninja *n, char *out, size_t size);

#endif
