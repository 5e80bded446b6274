#include "kernels/vulkan_spirv.h"

#include <stdlib.h>
#include <string.h>

#include "common/plat.h"
#include "common/str.h"

#define MAGIC 0x07230203u
#define MAGIC_SWAPPED 0x03022307u
#define VERSION_MAX 0x00010300u
#define HEADER 5 /* words: magic, version, generator, bound, schema */
#define OP_ENTRY_POINT 15
#define OP_FUNCTION 54
#define OP_FUNCTION_END 56
#define OP_FUNCTION_CALL 57
#define CALLS_MAX 256
#define MODEL_COMPUTE 5

#define X(name) extern const uint8_t vulkan_spirv_##name[], vulkan_spirv_##name##_end[];
VULKAN_MODULES(X)
#undef X

static const struct {
	const char *name;
	const uint8_t *from, *end;
} embedded[VULKAN_MODULE_COUNT] = {
#define X(name) {#name, vulkan_spirv_##name, vulkan_spirv_##name##_end},
	VULKAN_MODULES(X)
#undef X
};

static int
header_check(const uint32_t *w, size_t bytes, struct err *e)
{
	if (bytes > VULKAN_SPIRV_MAX)
		return err_set(e, ERR_LIMIT, "SPIR-V of %zu bytes: %u are the most", bytes,
			       VULKAN_SPIRV_MAX);
	if (bytes < 4)
		return err_set(e, ERR_PARSE, "no SPIR-V: %zu bytes", bytes);
	if (w[0] == MAGIC_SWAPPED)
		return err_set(e, ERR_PARSE, "SPIR-V of the other byte order");
	if (w[0] != MAGIC)
		return err_set(e, ERR_PARSE,
			       "no SPIR-V: found magic 0x%08x, wanted 0x%08x", w[0], MAGIC);
	if (bytes % 4 != 0 || bytes < 4 * HEADER)
		return err_set(e, ERR_PARSE, "truncated SPIR-V: %zu bytes", bytes);
	if (w[1] > VERSION_MAX)
		return err_set(e, ERR_PARSE,
			       "SPIR-V version 0x%06x, wanted 1.3 (Vulkan 1.1) at most", w[1]);
	return 0;
}

static bool
is_compute_main(const uint32_t *op, size_t words)
{
	return words >= 5 && op[1] == MODEL_COMPUTE && memcmp(op + 3, "main\0\0\0", 8) == 0;
}

static bool
is_defined(const uint32_t *w, size_t n, uint32_t function)
{
	size_t at;

	for (at = HEADER; at < n; at += w[at] >> 16)
		if ((w[at] & 0xffff) == OP_FUNCTION && w[at] >> 16 >= 3 &&
		    w[at + 2] == function)
			return true;
	return false;
}

/* A file may end with a function, and lack the next.  Instructions are whole. */
static int
calls_check(const uint32_t *w, size_t n, struct err *e)
{
	unsigned calls = 0;
	size_t at;

	for (at = HEADER; at < n; at += w[at] >> 16) {
		if ((w[at] & 0xffff) != OP_FUNCTION_CALL || w[at] >> 16 < 4)
			continue;
		if (++calls > CALLS_MAX)
			return err_set(e, ERR_LIMIT, "SPIR-V of more than %d calls", CALLS_MAX);
		if (!is_defined(w, n, w[at + 3]))
			return err_set(e, ERR_PARSE,
				       "truncated SPIR-V: it calls function %u, which is not there",
				       w[at + 3]);
	}
	return 0;
}

int
vulkan_spirv_check(const uint32_t *w, size_t bytes, struct err *e)
{
	size_t n = bytes / 4, at, words;
	bool entry = false, open = false;

	if (header_check(w, bytes, e))
		return -1;
	for (at = HEADER; at < n; at += words) {
		words = w[at] >> 16;
		if (words == 0 || words > n - at)
			return err_set(e, ERR_PARSE,
				       "truncated SPIR-V: the instruction at word %zu has "
				       "%zu words, %zu are left", at, words, n - at);
		switch (w[at] & 0xffff) {
		case OP_ENTRY_POINT:
			entry = entry || is_compute_main(w + at, words);
			break;
		case OP_FUNCTION:
			open = true;
			break;
		case OP_FUNCTION_END:
			open = false;
			break;
		default:
			break;
		}
	}
	if (!entry)
		return err_set(e, ERR_PARSE, "SPIR-V without a compute entry \"main\"");
	if (open || (w[n - 1] & 0xffff) != OP_FUNCTION_END)
		return err_set(e, ERR_PARSE, "truncated SPIR-V: no end of its last function");
	return calls_check(w, n, e);
}

static int
file_load(const char *dir, struct vulkan_spirv *s, struct err *e)
{
	char path[4096], *data = NULL;

	if (str_fmt(path, sizeof path, e, "%s/%s.spv", dir, s->name) ||
	    plat_read_file(path, VULKAN_SPIRV_MAX, &data, &s->bytes, e))
		return -1;
	s->own = data;
	s->words = s->own;
	if (vulkan_spirv_check(s->words, s->bytes, e))
		return err_wrap(e, "%s", path);
	return 0;
}

int
vulkan_spirv_load(enum vulkan_module m, const char *dir, struct vulkan_spirv *out,
		  struct err *e)
{
	struct vulkan_spirv s = {.name = embedded[m].name};

	if (dir != NULL) {
		if (file_load(dir, &s, e)) {
			free(s.own);
			return -1;
		}
	} else {
		/* The assembler aligned it. */
		s.words = (const uint32_t *)(const void *)embedded[m].from;
		s.bytes = (size_t)(embedded[m].end - embedded[m].from);
		if (vulkan_spirv_check(s.words, s.bytes, e))
			return err_wrap(e, "%s.spv", s.name);
	}
	digest_bytes(s.words, s.bytes, s.sha256);
	*out = s;
	return 0;
}

void
vulkan_spirv_free(struct vulkan_spirv *s)
{
	if (s == NULL)
		return;
	free(s->own);
	memset(s, 0, sizeof *s);
}
