/* Only for the program that plays the GPU kernels on the CPU. */
#include "kernels/gpu_device.h"

static int
emulated_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	return gpu_api_emulated.list(out, max, count, e);
}

static int
emulated_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	return gpu_device_open(&gpu_api_emulated, d, out, e);
}

const struct kernel_backend backend_emulated = {
	.name = "emulated",
	.no_device = "this program brings its devices along: it is damaged",
	.list = emulated_list,
	.open = emulated_open,
	GPU_DEVICE_CALLS,
};
