/*
 * source_bytes - the id of the tree that lies in a folder, from the bytes of the files.
 *
 * What git says of a folder depends on its configuration: a filter, another work tree, a
 * replaced object or a forged one make a changed file look clean.  This reads no object
 * and no configuration.  Only for source.c.
 */
#ifndef AGENT_SOURCE_BYTES_H
#define AGENT_SOURCE_BYTES_H

#include <stddef.h>

#include "common/err.h"

/*
 * list: what `git ls-tree -r -z COMMIT` prints, which names the files that count.  The
 * blobs are those of the files in folder, modes are the list's; of a submodule the list's
 * id stands.  A file that is missing or of another kind counts as empty, so that the id
 * differs.  A text file whose lines end in CR LF is also taken as one with LF.
 * hex gets 40 digits, or 64 where the list has such.  ERR_PARSE: no such list; ERR_LIMIT,
 * ERR_IO, ERR_CANCELLED (tick, which may be NULL, said so).
 */
CHECKED int source_bytes(const char *folder, const char *list, size_t len,
	int (*tick)(void *arg), void *arg, char hex[65], struct err *e);

#endif
