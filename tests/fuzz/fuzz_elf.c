#include <stddef.h>
#include <stdint.h>

#include "agent/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct elf out;
	struct err e;

	if (elf_parse(p, n, &out, &e) == 0 && out.needed_count > ELF_MAX_NEEDED)
		__builtin_trap();
	return 0;
}
