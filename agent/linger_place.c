#include <string.h>

#include "agent/linger.h"
#include "common/plat.h"
#include "common/str.h"

extern const char linger_so[], linger_so_end[];
static const struct {
	const char *text, *end;
} library = {linger_so, linger_so_end};

int
linger_place(const char *folder, char *path, size_t size, char digest[DIGEST_HEX],
	struct err *e)
{
	size_t n = (size_t)(library.end - library.text);
	char there[DIGEST_HEX];

	digest_bytes(library.text, n, digest);
	if (str_fmt(path, size, e, "%s/linger-%.16s.so", folder, digest))
		return -1;
	if (path[0] != '/' || strpbrk(path, " \t:;\n$") != NULL)
		return err_set(e, ERR_UNSUPPORTED, "%s: not a path that LD_PRELOAD takes", path);
	if (digest_file(path, there, NULL, NULL) == 0 && strcmp(there, digest) == 0)
		return 0;
	return plat_write_file(path, library.text, n, 0644, e);
}
