#include <stddef.h>
#include <stdint.h>

#include "agent/code_objects.h"
#include "agent/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct code_objects code = {.count = 0};
	struct elf out;
	struct err e;

	if (elf_parse(p, n, &out, &e) == 0 && out.needed_count > ELF_MAX_NEEDED)
		__builtin_trap();
	/* the containers of device code inside it, whatever the bytes are */
	if ((code_objects_fatbin(p, n, &code, &e) == 0 || code_objects_bundle(p, n, &code, &e) == 0) &&
	    (code.count < 0 || code.count > CODE_MAX))
		__builtin_trap();
	return 0;
}
