/*
 * gpu_api - the few calls of a GPU driver that the gpu backends need: one row for CUDA's
 * driver API, one for HIP's module API, one for the shim that plays a GPU on the CPU.
 *
 * gpu_device.c is the backend over such a row.  Addresses are device addresses.  Every
 * call returns 0, or -1 with e: ERR_DEVICE "cuMemcpyHtoD_v2: CUDA_ERROR_ILLEGAL_ADDRESS"
 * (call and the API's own name of the error), ERR_NOMEM for the device's memory,
 * ERR_UNSUPPORTED for a missing architecture or entry point.
 */
#ifndef KERNELS_GPU_API_H
#define KERNELS_GPU_API_H

#include "kernels/backend.h"
#include "kernels/gpu_plan.h"

struct gpu_context;            /* one open device, the row's own */

struct gpu_api {
	const char *backend;   /* "cuda", "hip", "emulated" */
	int (*list)(struct backend_device *out, size_t max, size_t *count, struct err *e);
	/* Opens the device, loads the code object for it and tells its limits. */
	int (*open)(const struct backend_device *d, struct gpu_context **out,
		struct gpu_limits *l, struct backend_code *code, struct err *e);
	void (*close)(struct gpu_context *c);
	int (*alloc)(struct gpu_context *c, size_t bytes, uint64_t *address, struct err *e);
	void (*free)(struct gpu_context *c, uint64_t address);
	int (*to_device)(struct gpu_context *c, uint64_t to, const void *from, size_t bytes,
		struct err *e);
	int (*to_host)(struct gpu_context *c, void *to, uint64_t from, size_t bytes,
		struct err *e);
	int (*copy)(struct gpu_context *c, uint64_t to, uint64_t from, size_t bytes,
		struct err *e);
	/* Queues one step; sync waits and reports what went wrong since. */
	int (*launch)(struct gpu_context *c, const struct gpu_step *s,
		const struct gpu_args *a, struct err *e);
	int (*sync)(struct gpu_context *c, struct err *e);
	/* Time on the device between start and stop, which are queued like launches. */
	int (*timer_start)(struct gpu_context *c, struct err *e);
	int (*timer_stop)(struct gpu_context *c, double *seconds, struct err *e);
};

extern const struct gpu_api gpu_api_cuda, gpu_api_hip, gpu_api_emulated;

#endif
