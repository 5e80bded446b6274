/* mask_impl - what the table of ids and their finder share. */
#ifndef COMMON_MASK_IMPL_H
#define COMMON_MASK_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#define MASK_MAX_IDS 4096
#define MASK_BYTES 80

enum mask_kind {
	MASK_UUID,   /* 32 hex digits */
	MASK_NUMBER, /* 16 hex digits */
	MASK_WORD,   /* a serial, a name: as it is written */
	MASK_MAC, MASK_IPV4, MASK_IPV6,
	MASK_KINDS,
	MASK_CUT     /* a match only: the beginning of a UUID that is known */
};

struct mask_id {
	enum mask_kind kind;
	char real[MASK_BYTES]; /* hex in lower case, without hyphens */
	char made[MASK_BYTES]; /* "" not yet */
};
struct mask {
	struct mask_id *ids;
	size_t count, room, replaced;
	unsigned made[MASK_KINDS];
};

struct mask_match {
	enum mask_kind kind;
	size_t at, n;          /* where in the text */
	bool decimal;          /* MASK_NUMBER, written so */
	char real[MASK_BYTES];
};
/* The next id of the text from *pos on; false: none. */
bool mask_next(const struct mask *m, const char *text, size_t len, size_t *pos,
	struct mask_match *out);
/* The next serial or name that a text calls so: "Serial Number : ...", "/home/...", a line
 * of adb. */
bool mask_next_said(const char *text, size_t len, size_t *pos, char out[MASK_BYTES]);

#endif
