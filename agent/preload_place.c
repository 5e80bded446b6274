#include <string.h>

#include "agent/preload.h"
#include "common/plat.h"
#include "common/str.h"

extern const char linger_so[], linger_so_end[], scramble_so[], scramble_so_end[];
static const struct {
	const char *name, *text, *end;
} libraries[] = {
	[PRELOAD_LINGER] = {"linger", linger_so, linger_so_end},
	[PRELOAD_SCRAMBLE] = {"scramble", scramble_so, scramble_so_end},
};

int
preload_place(enum preload which, const char *folder, char *path, size_t size,
	char digest[DIGEST_HEX], struct err *e)
{
	const char *text = libraries[which].text;
	size_t n = (size_t)(libraries[which].end - text);
	char there[DIGEST_HEX];

	digest_bytes(text, n, digest);
	if (str_fmt(path, size, e, "%s/%s-%.16s.so", folder, libraries[which].name, digest))
		return -1;
	if (path[0] != '/' || strpbrk(path, " \t:;\n$") != NULL)
		return err_set(e, ERR_UNSUPPORTED, "%s: not a path that LD_PRELOAD takes", path);
	if (digest_file(path, there, NULL, NULL) == 0 && strcmp(there, digest) == 0)
		return 0;
	return plat_write_file(path, text, n, 0644, e);
}
