/* The backends over gpu_api that every program has. */
#include "kernels/gpu_device.h"

static int
cuda_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	return gpu_api_cuda.list(out, max, count, e);
}

static int
cuda_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	return gpu_device_open(&gpu_api_cuda, d, out, e);
}

static int
hip_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	return gpu_api_hip.list(out, max, count, e);
}

static int
hip_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	return gpu_device_open(&gpu_api_hip, d, out, e);
}

const struct kernel_backend backend_cuda = {
	.name = "cuda",
	.no_device = "install the NVIDIA driver (libcuda.so.1), or run this where it is",
	.list = cuda_list,
	.open = cuda_open,
	GPU_DEVICE_CALLS,
};

const struct kernel_backend backend_hip = {
	.name = "hip",
	.no_device = "install ROCm (libamdhip64.so) and amdgpu, and let this user open /dev/kfd",
	.list = hip_list,
	.open = hip_open,
	GPU_DEVICE_CALLS,
};
