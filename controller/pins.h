/*
 * pins - which key each host's agent had at first contact: $XDG_DATA_HOME/verify/pins.
 *
 * A text file, one host a line: "NAME PUBLIC-KEY-HEX DATE"; lines that begin with '#'
 * are kept.  A changed key is never taken silently: pins_check refuses it, pins_replace
 * is the deliberate act.  Writers lock a file beside it and replace the file as a whole,
 * so several controllers may pin at once.  Threads: no shared state.
 */
#ifndef CONTROLLER_PINS_H
#define CONTROLLER_PINS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/sign.h"
#include "controller/inventory.h"

#define PINS_MAX_BYTES (1u << 20)

struct pin {
	char key[SIGN_KEY_HEX];
	char since[24]; /* "2026-06-01T10:00:00Z" */
};

/* path NULL: the user's file, in all calls.  ERR_NOTFOUND when the host has no pin;
 * ERR_PARSE names a bad line: a pin that can not be read is never a new host. */
CHECKED int pins_find(const char *path, const char *host, struct pin *out,
	struct err *e);
/* Pins the key when the host has none (*fresh is set); ERR_REFUSED with both
 * fingerprints when it has another. */
CHECKED int pins_check(const char *path, const char *host, const char *key, bool *fresh,
	struct err *e);
/* Pins whatever was there before. */
CHECKED int pins_replace(const char *path, const char *host, const char *key,
	struct err *e);

#endif
