#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/ninja.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
step(void *arg, uint32_t done, uint32_t total, const char *text)
{
	(void)arg;
	if (done > total || strlen(text) >= NINJA_TEXT)
		__builtin_trap();
}

/* The same bytes in one piece and byte by byte must mean the same. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ninja whole, bytes;
	char a[600], b[600];
	size_t i;

	ninja_init(&whole, step, NULL);
	ninja_init(&bytes, step, NULL);
	ninja_add(&whole, (const char *)p, n);
	for (i = 0; i < n; i++)
		ninja_add(&bytes, (const char *)p + i, 1);
	ninja_end(&whole);
	ninja_end(&bytes);
	ninja_reason(&whole, a, sizeof a);
	ninja_reason(&bytes, b, sizeof b);
	if (strcmp(a, b) != 0 || a[0] == '\0' || whole.trouble != bytes.trouble)
		__builtin_trap();
	return 0;
}
