/*
 * The fixtures inside the program, so that a copied binary checks the same numbers.
 *
 * The assembler copies the files; paths are from the root of the tree, and the build
 * must make this object again when one of them changes.
 */
#include "kernels/fixture.h"

#include "common/str.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SYMBOL(name) TEXT(__USER_LABEL_PREFIX__) "fixture_file_" #name

#ifdef __ELF__
#define SECTION ".section .rodata\n"
#else
#define SECTION ".section .rdata,\"dr\"\n"
#endif

#define FILES(X)                                                                         \
	X(turbo3)                                                                        \
	X(turbo4)                                                                        \
	X(turbo3_tcq)                                                                    \
	X(qjl)                                                                           \
	X(polar)                                                                         \
	X(polar_qjl)                                                                     \
	X(polar_preht)                                                                   \
	X(fused_attn_qjl_tbq)                                                            \
	X(fused_attn_qjl_polar)                                                          \
	X(fused_attn_qjl_tbq_causal)                                                     \
	X(fused_attn_qjl_polar_causal)

#define EMBED(name)                                                                      \
	__asm__(SECTION                                                                  \
		".globl " SYMBOL(name) "\n"                                              \
		".globl " SYMBOL(name) "_end\n"                                          \
		SYMBOL(name) ":\n"                                                       \
		".incbin \"fixtures/kernels/" #name ".json\"\n"                          \
		SYMBOL(name) "_end:\n"                                                   \
		".byte 0\n"                                                              \
		".text\n");                                                              \
	extern const char fixture_file_##name[], fixture_file_##name##_end[];
FILES(EMBED)

static const struct {
	const char *file;
	const char *text, *end;
} files[] = {
#define ROW(name) {#name ".json", fixture_file_##name, fixture_file_##name##_end},
	FILES(ROW)
};

const char *
fixture_builtin(const char *file, size_t *len)
{
	size_t i;

	for (i = 0; i < str_count(files); i++)
		if (str_eq(files[i].file, file)) {
			*len = (size_t)(files[i].end - files[i].text);
			return files[i].text;
		}
	return NULL;
}
