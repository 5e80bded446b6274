/* The backends of this program, apart from how one is chosen: who needs one backend only
 * does not link the code of all. */
#include "common/str.h"
#include "kernels/backend.h"

/* In the order of the bits of kernel.h. */
const struct kernel_backend *const kernel_backends[] = {
	&backend_cpu, &backend_cuda, &backend_hip, &backend_vulkan, NULL,
};

const struct kernel_backend *
backend_find(const char *name)
{
	size_t i;

	for (i = 0; kernel_backends[i] != NULL; i++)
		if (str_eq(kernel_backends[i]->name, name))
			return kernel_backends[i];
	return NULL;
}
