/*
 * mask - ids in the texts of a host, replaced by made-up ones.
 *
 * UUIDs in any form (with or without hyphens, "GPU-", "MIG-", cut to their beginning), the
 * 16 digits of AMD's "GPU-..." and the same number in decimal, serials, names of hosts and
 * users, MAC and IP addresses.  One id is one made-up id in every text and every form, and
 * two are two, so what agreed still agrees and what differed differs.  Length and form stay.
 * Learn every text first, then apply to each: nothing made up is another's real id.
 * What is the same on every host stays: the nil UUID, loopback, versions that look like an
 * address, "emulator-5554".
 * Life: mask_new to mask_free; one thread.
 */
#ifndef COMMON_MASK_H
#define COMMON_MASK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct mask;

CHECKED int mask_new(struct mask **out, struct err *e);
void mask_free(struct mask *m); /* NULL is fine */

/* A name of this host or its user: replaced where it stands as a word.  Names that many
 * hosts have ("localhost", "root", "gpu") and those of one or two letters are left. */
CHECKED int mask_name(struct mask *m, const char *name, struct err *e);
/* An address of this host: an IPv4, IPv6 or MAC address as text. */
CHECKED int mask_address(struct mask *m, const char *address, struct err *e);
CHECKED int mask_learn(struct mask *m, const char *text, size_t len, struct err *e);
/* Gives *out (free()), NUL-terminated, of *out_len bytes. */
CHECKED int mask_apply(struct mask *m, const char *text, size_t len, char **out,
	size_t *out_len, struct err *e);
/* Ids that were replaced, each counted once. */
size_t mask_count(const struct mask *m);
/* Whether an id that is known still stands in a text. */
bool mask_left(const struct mask *m, const char *text, size_t len);

#endif
