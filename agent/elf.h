/*
 * elf - what an ELF file says of itself: machine, type, build id, libraries it needs.
 *
 * A bounded reader of untrusted bytes: every offset, size and count is checked before it
 * is used, and a strange part that is not needed for the answer is an ERR_PARSE, not a
 * guess.  Little-endian files only: no target of ours is anything else.
 */
#ifndef AGENT_ELF_H
#define AGENT_ELF_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define ELF_MAX_NEEDED 48
#define ELF_NAME 128
#define ELF_ID_HEX 129 /* at most 64 bytes of build id */

enum elf_type { ELF_REL = 1, ELF_EXEC = 2, ELF_DYN = 3 };

struct elf {
	int bits;            /* 32 or 64 */
	int machine;         /* e_machine: 62 x86-64, 183 aarch64 */
	int type;            /* enum elf_type; a position-independent program is ELF_DYN */
	char interp[ELF_NAME]; /* "" when statically linked, or a library */
	char build_id[ELF_ID_HEX]; /* "" when there is none to be found */
	char soname[ELF_NAME], runpath[256]; /* "" when there is none */
	char needed[ELF_MAX_NEEDED][ELF_NAME];
	int needed_count;
};

/* Of 32-bit files only bits, machine and type are read.  ERR_PARSE: no ELF, or damaged. */
CHECKED int elf_parse(const void *p, size_t n, struct elf *out, struct err *e);
/* Reads the file without holding more than a part of it. */
CHECKED int elf_read(const char *path, struct elf *out, struct err *e);

/* "x86-64", "aarch64", or "machine 243". */
void elf_machine_name(int machine, char *out, size_t size);

#endif
