/*
 * A stand-in for libcuda.so.1: the driver API over plain memory, that fails as FAKE_CUDA
 * says.  It says of itself what it is: the device's name begins with FAKE.  It runs one
 * entry point, copy_bytes; the others do nothing.
 *
 *   FAKE_CUDA=stub      cuInit: the toolkit's stub, which names no error
 *             mismatch  cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
 *             none      cuInit: CUDA_ERROR_NO_DEVICE
 *             empty     no device, and no error
 *             twins     two devices with one UUID
 *             new       a chip that no code is for but PTX: 12.9
 *             noname    the device tells no name
 *             oom       no memory beyond 1 MiB
 *             full      no memory at all
 *             lost      the first wait after a launch: CUDA_ERROR_ILLEGAL_ADDRESS, and
 *                       every call after it
 *             ecc       the same with CUDA_ERROR_ECC_UNCORRECTABLE, in a copy to the host
 *             noentry   no such entry point
 *             nobinary  cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU
 *             image     the same: CUDA_ERROR_INVALID_IMAGE, as of a truncated fatbin
 *             shared    cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu_args.h"

#define API __attribute__((visibility("default")))

int fake_cuda_calls(void);
int fake_cuda_live(void);
unsigned fake_cuda_shared(void);

static int calls, live, broken, launched;
static unsigned shared;

/* What tests ask: calls so far, allocations and modules not freed, shared bytes allowed. */
API int fake_cuda_calls(void) { return calls; }
API int fake_cuda_live(void) { return live; }
API unsigned fake_cuda_shared(void) { return shared; }

static int
is(const char *scenario)
{
	const char *s = getenv("FAKE_CUDA");

	return s != NULL && strcmp(s, scenario) == 0;
}

/* Every call but those of the start comes through here. */
static int
enter(void)
{
	calls++;
	return broken;
}

#define FAKE(name, ...)           \
	int name(__VA_ARGS__);    \
	API int name(__VA_ARGS__)

FAKE(cuInit, unsigned flags)
{
	(void)flags;
	calls++;
	broken = launched = 0;
	return is("stub") ? 34 : is("mismatch") ? 803 : is("none") ? 100 : 0;
}

FAKE(cuGetErrorName, int r, const char **name)
{
	static const struct {
		int r;
		const char *name;
	} names[] = {
		{ 1, "CUDA_ERROR_INVALID_VALUE" }, { 2, "CUDA_ERROR_OUT_OF_MEMORY" },
		{ 100, "CUDA_ERROR_NO_DEVICE" }, { 101, "CUDA_ERROR_INVALID_DEVICE" },
		{ 200, "CUDA_ERROR_INVALID_IMAGE" }, { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ 214, "CUDA_ERROR_ECC_UNCORRECTABLE" }, { 500, "CUDA_ERROR_NOT_FOUND" },
		{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" },
	};
	size_t i;

	if (is("stub"))
		return 34;
	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].r == r) {
			*name = names[i].name;
			return 0;
		}
	return 1;
}

FAKE(cuDriverGetVersion, int *version)
{
	*version = 13010;
	return enter();
}

FAKE(cuDeviceGetCount, int *n)
{
	*n = is("empty") ? 0 : is("twins") ? 2 : 1;
	return enter();
}

FAKE(cuDeviceGet, int *d, int ordinal)
{
	int n;

	(void)cuDeviceGetCount(&n);
	*d = ordinal;
	return ordinal < 0 || ordinal >= n ? 101 : enter();
}

FAKE(cuDeviceGetName, char *name, int size, int d)
{
	if (is("noname"))
		return 101;
	(void)snprintf(name, (size_t)size, "FAKE GPU %d", d);
	return enter();
}

FAKE(cuDeviceGetUuid_v2, uint8_t *uuid, int d)
{
	int i;

	for (i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(0xf0 + i);
	uuid[15] = (uint8_t)(is("twins") ? 0 : d);
	return enter();
}

FAKE(cuDeviceGetUuid, uint8_t *uuid, int d)
{
	return cuDeviceGetUuid_v2(uuid, d);
}

FAKE(cuDeviceGetPCIBusId, char *out, int size, int d)
{
	(void)snprintf(out, (size_t)size, "0000:%02X:00.0", 0xa0 + d);
	return enter();
}

FAKE(cuDeviceTotalMem_v2, size_t *bytes, int d)
{
	(void)d;
	*bytes = (size_t)80 << 30;
	return enter();
}

FAKE(cuDeviceGetAttribute, int *value, int attribute, int d)
{
	(void)d;
	*value = attribute == 10 ? 32 : attribute == 16 ? 7 : attribute == 97 ? 227 * 1024 : attribute == 81 ? 228 * 1024 :
		attribute == 75 ? (is("new") ? 12 : 9) : attribute == 76 ? (is("new") ? 9 : 0) : -1;
	return *value < 0 ? 1 : enter();
}

FAKE(cuDevicePrimaryCtxRetain, void **context, int d)
{
	static int one[2];

	*context = &one[d & 1];
	live++;
	return enter();
}

FAKE(cuDevicePrimaryCtxRelease_v2, int d)
{
	(void)d;
	live--;
	return enter();
}

FAKE(cuCtxSetCurrent, void *context)
{
	(void)context;
	return enter();
}

FAKE(cuCtxSynchronize, void)
{
	if (is("lost") && launched)
		broken = 700;
	return enter();
}

FAKE(cuModuleLoadData, void **module, const void *image)
{
	uint32_t magic;

	memcpy(&magic, image, sizeof magic);
	if (is("nobinary"))
		return 209;
	if (is("image") || magic != 0xba55ed50)
		return 200;
	*module = malloc(1);
	live++;
	return enter();
}

FAKE(cuModuleUnload, void *module)
{
	free(module);
	live--;
	return enter();
}

FAKE(cuModuleGetFunction, void **function, void *module, const char *name)
{
	static char other;
	static char copy_bytes;

	(void)module;
	if (is("noentry"))
		return 500;
	*function = strcmp(name, "copy_bytes") == 0 ? &copy_bytes : &other;
	other = 0;
	copy_bytes = 1;
	return enter();
}

FAKE(cuFuncSetAttribute, void *function, int attribute, int value)
{
	(void)function;
	if (attribute != 8 || is("shared"))
		return 1;
	shared = (unsigned)value;
	return enter();
}

FAKE(cuMemAlloc_v2, uint64_t *p, size_t bytes)
{
	void *m;

	if (is("full") || (is("oom") && bytes > 1 << 20))
		return 2;
	m = malloc(bytes);
	if (m == NULL)
		return 2;
	live++;
	*p = (uint64_t)(uintptr_t)m;
	return enter();
}

FAKE(cuMemFree_v2, uint64_t p)
{
	free((void *)(uintptr_t)p);
	live--;
	return enter();
}

FAKE(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
	if (!broken)
		memcpy((void *)(uintptr_t)to, from, bytes);
	return enter();
}

FAKE(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
	if (is("ecc"))
		broken = 214;
	if (!broken)
		memcpy(to, (const void *)(uintptr_t)from, bytes);
	return enter();
}

FAKE(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t bytes)
{
	if (!broken)
		memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return enter();
}

FAKE(cuLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned dynamic, void *stream, void **params, void **extra)
{
	const struct gpu_args *a = params[0];

	if (gx * gy * gz == 0 || bx * by * bz == 0 || bx > 1024 || stream != NULL ||
		extra != NULL || dynamic > (shared > 49152 ? shared : 49152))
		return 1;
	launched = 1;
	if (*(char *)function && !broken)
		memcpy((void *)(uintptr_t)a->out, (const void *)(uintptr_t)a->k, a->bytes);
	return enter();
}

FAKE(cuEventCreate, void **event, unsigned flags)
{
	(void)flags;
	*event = malloc(1);
	live++;
	return enter();
}

FAKE(cuEventDestroy_v2, void *event)
{
	free(event);
	live--;
	return enter();
}

FAKE(cuEventRecord, void *event, void *stream)
{
	(void)event;
	(void)stream;
	return enter();
}

FAKE(cuEventSynchronize, void *event)
{
	(void)event;
	return enter();
}

#ifndef FAKE_OLD
FAKE(cuEventElapsedTime, float *ms, void *start, void *end)
{
	(void)start;
	(void)end;
	*ms = 1.5f;
	return enter();
}
#endif
