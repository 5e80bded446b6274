/*
 * preload - the small libraries of ours that the dynamic linker puts into the engine: one
 * lets it finish its log (preload/linger.c), one spoils its cache for the sensitivity
 * control (preload/scramble.c).
 */
#ifndef AGENT_PRELOAD_H
#define AGENT_PRELOAD_H

#include <stddef.h>

#include "common/digest.h"
#include "common/err.h"

enum preload { PRELOAD_LINGER, PRELOAD_SCRAMBLE };

/* Puts it into the folder under its digest, unless it is there, and gives its path and
 * digest.  ERR_UNSUPPORTED where the dynamic linker could not take the path (blanks,
 * colons): then the engine runs without it. */
CHECKED int preload_place(enum preload which, const char *folder, char *path, size_t size,
	char digest[DIGEST_HEX], struct err *e);

#endif
