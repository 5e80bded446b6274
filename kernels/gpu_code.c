#include "kernels/gpu_code.h"

#include "common/str.h"

const struct gpu_code *
gpu_code_next(const struct gpu_code *at, enum gpu_code_kind kind, const char *arch)
{
	for (at = at ? at + 1 : gpu_code; at->name != NULL; at++)
		if (at->kind == kind && (arch == NULL || str_eq(arch, at->arch)))
			return at;
	return NULL;
}

int
gpu_code_digest(enum gpu_code_kind kind, const char *arch, char hex[DIGEST_HEX])
{
	const struct gpu_code *c = gpu_code_next(NULL, kind, arch);
	struct digest *d;

	if (c == NULL || (d = digest_new()) == NULL)
		return -1;
	for (; c != NULL; c = gpu_code_next(c, kind, arch))
		digest_add(d, c->start, (size_t)(c->end - c->start));
	digest_end(d, hex);
	return 0;
}
