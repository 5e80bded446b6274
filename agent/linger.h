/*
 * linger - the small library that lets an engine finish its log (preload/linger.c).
 */
#ifndef AGENT_LINGER_H
#define AGENT_LINGER_H

#include <stddef.h>

#include "common/digest.h"
#include "common/err.h"

/* Puts it into the folder under its digest, unless it is there, and gives its path and
 * digest.  ERR_UNSUPPORTED where the dynamic linker could not take the path (blanks,
 * colons): then the engine runs without it. */
CHECKED int linger_place(const char *folder, char *path, size_t size,
	char digest[DIGEST_HEX], struct err *e);

#endif
