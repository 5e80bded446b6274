/*
 * plat - the few things that differ between systems: clock, random, files, tools.
 * plat_posix.c is built on POSIX; a Windows twin comes with that port.
 */
#ifndef COMMON_PLAT_H
#define COMMON_PLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

int64_t plat_now_ms(void);  /* UTC, milliseconds since 1970 */
int64_t plat_mono_ms(void); /* a clock that never steps */
/* "2026-06-01T10:00:00Z" (second precision, as schema 1 has it). */
void plat_utc(int64_t ms, char out[24]);
/* "2026-06-01T10:00:00Z" back to ms; -1 when it is not that form. */
int64_t plat_utc_parse(const char *s);
CHECKED int plat_random(void *p, size_t n, struct err *e);
CHECKED int plat_random_hex(char *out, size_t digits, struct err *e); /* + NUL */

/* mkdir -p with the mode for new folders. */
CHECKED int plat_mkdirs(const char *path, unsigned mode, struct err *e);
/* write() until all n bytes are out.  -1 with errno set, for the caller's own words. */
CHECKED int plat_write_all(int fd, const void *p, size_t n);
/* Writes beside, fsyncs, renames, fsyncs the folder.  Never leaves half a file. */
CHECKED int plat_write_file(const char *path, const void *p, size_t n, unsigned mode,
	struct err *e);
/* Whole regular file of at most max bytes (ERR_LIMIT when longer), NUL-terminated.
 * Does not block on a FIFO.  Gives *out, freed with free(). */
CHECKED int plat_read_file(const char *path, size_t max, char **out, size_t *len,
	struct err *e);
/* The same, or standard input when path is "-". */
CHECKED int plat_read_input(const char *path, size_t max, char **out, size_t *len,
	struct err *e);
/* rm -r that stays below path and never follows a link. */
CHECKED int plat_remove_tree(const char *path, struct err *e);
/* True when path exists (links followed). */
bool plat_exists(const char *path);
bool plat_is_dir(const char *path);
bool plat_is_file(const char *path);
/* One folder of the user: kind is "STATE", "DATA", "CONFIG" or "CACHE" of the XDG
 * base directories; with `name` below it. */
CHECKED int plat_xdg(const char *kind, const char *name, char *out, size_t size,
	struct err *e);
/* The path itself, or below the current folder when it is a relative one. */
CHECKED int plat_absolute(const char *path, char *out, size_t size, struct err *e);
/* Absolute path of this program. */
CHECKED int plat_self(char *out, size_t size, struct err *e);
/* Boot id of this machine (36 characters) or "". */
void plat_boot_id(char out[40]);

/* Seeks a tool in PATH, then $CUDA_HOME/bin, /usr/local/cuda/bin, /opt/rocm/bin (a
 * service's PATH is short).  ERR_NOTFOUND lists where it looked. */
CHECKED int plat_find_tool(const char *name, char *out, size_t size, struct err *e);

/* Environment of an old runner: ELIZA_MTP_X, else ELIZA_DFLASH_X; NULL or empty: NULL.
 * name is the new one.  *used, when not NULL, gets the name that was set. */
const char *plat_env(const char *name, const char **used);

#endif
