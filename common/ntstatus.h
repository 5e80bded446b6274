/*
 * ntstatus - exit codes of Windows programs that did not end by themselves.
 *
 * Windows ends a program that crashed, or could not be loaded, with the status of what
 * went wrong; tools print it as an unsigned number, a negative one or in hex.
 * Pure functions: no state, any thread.
 */
#ifndef COMMON_NTSTATUS_H
#define COMMON_NTSTATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* Exit code of a command line or a log: "3", "-1073741515", "3221225781", "0xC0000135";
 * of 32 bits, what is above INT_MAX becomes negative. */
CHECKED int ntstatus_parse(const char *text, int *out, struct err *e);

/* Whether the code is an error status of the system: 0xC0000000 and above without -1..-255,
 * which programs give themselves, or one of the few others of the table. */
bool ntstatus_is(int exit);
/* Whether the program was never started: a library, an entry point or its format. */
bool ntstatus_not_loaded(int exit);
/* "0xC0000135 (STATUS_DLL_NOT_FOUND: a library is missing)"; any other code as it is: "3". */
void ntstatus_show(int exit, char *out, size_t size);
/* The first status of the table that is written out in a text, in one of the three forms;
 * false when there is none. */
bool ntstatus_find(const char *text, size_t len, int *out);

#endif
