/*
 * A stand-in for libamdhip64.so: the module API over plain memory, that fails as FAKE_HIP
 * says.  It says of itself what it is: the device's name begins with FAKE.  It runs one
 * entry point, copy_bytes; the others do nothing.  The chip is that of FAKE_HIP_ARCH.
 * Built with FAKE_OLD it is one of HIP 5, with the older layout of properties alone.
 *
 *   FAKE_HIP=none     hipInit: hipErrorNoDevice
 *            ancient  the runtime is one of HIP 4
 *            oom      no memory
 *            lost     the first wait after a launch: hipErrorIllegalAddress, as every later
 *                     call
 *            noentry  no such entry point
 *            image    hipModuleLoadData: hipErrorInvalidImage
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu_args.h"

#define API __attribute__((visibility("default")))
#define FAKE(name, ...)           \
	int name(__VA_ARGS__);    \
	API int name(__VA_ARGS__)

static int broken, launched, live;

/* What tests ask: allocations, modules and events not freed. */
int fake_hip_live(void);
API int fake_hip_live(void) { return live; }

static int
is(const char *scenario)
{
	const char *s = getenv("FAKE_HIP");

	return s != NULL && strcmp(s, scenario) == 0;
}

const char *hipGetErrorName(int r);
API const char *
hipGetErrorName(int r)
{
	return r == 2 ? "hipErrorOutOfMemory" : r == 100 ? "hipErrorNoDevice" :
		r == 200 ? "hipErrorInvalidImage" : r == 500 ? "hipErrorNotFound" :
		r == 700 ? "hipErrorIllegalAddress" : "hipErrorUnknown";
}

FAKE(hipInit, unsigned flags)
{
	(void)flags;
	broken = launched = 0;
	return is("none") ? 100 : 0;
}

FAKE(hipRuntimeGetVersion, int *version)
{
#ifdef FAKE_OLD
	*version = is("ancient") ? 40421401 : 50221153;
#else
	*version = 60241133;
#endif
	return 0;
}

FAKE(hipGetDeviceCount, int *n) { *n = 1; return 0; }
FAKE(hipSetDevice, int d) { return d ? 101 : broken; }

FAKE(hipDeviceGetName, char *name, int size, int d)
{
	(void)snprintf(name, (size_t)size, "FAKE AMD GPU %d", d);
	return 0;
}

FAKE(hipDeviceGetUuid, uint8_t *uuid, int d)
{
	memset(uuid, 0x5a + d, 16);
	return 0;
}

FAKE(hipDeviceGetPCIBusId, char *out, int size, int d)
{
	(void)snprintf(out, (size_t)size, "0000:%02X:00.0", 0xc0 + d);
	return 0;
}

FAKE(hipDeviceTotalMem, size_t *bytes, int d)
{
	(void)d;
	*bytes = (size_t)64 << 30;
	return 0;
}

FAKE(hipDeviceGetAttribute, int *value, int attribute, int d)
{
	(void)d;
	*value = attribute == 16 ? is("apu") : attribute == 63 ? 104 : attribute == 74 ? 65536 : attribute == 87 ? 64 : -1;
	return *value < 0;
}

static void
arch_put(char *at)
{
	const char *arch = getenv("FAKE_HIP_ARCH");

	(void)snprintf(at, 256, "%s", arch ? arch : "gfx90a:sramecc+:xnack-");
}

FAKE(hipGetDeviceProperties, char *out, int d)
{
	(void)d;
	memset(out, 0, 792);
	arch_put(out + 396);
	return 0;
}

#ifndef FAKE_OLD
FAKE(hipGetDevicePropertiesR0600, char *out, int d)
{
	(void)d;
	memset(out, 0, 1472);
	arch_put(out + 1160);
	return 0;
}
#endif

FAKE(hipDeviceSynchronize, void)
{
	if (is("lost") && launched)
		broken = 700;
	return broken;
}

FAKE(hipModuleLoadData, void **module, const void *image)
{
	if (is("image") || image == NULL)
		return 200;
	*module = malloc(1);
	live++;
	return broken;
}

FAKE(hipModuleUnload, void *module) { free(module); live--; return broken; }

FAKE(hipModuleGetFunction, void **function, void *module, const char *name)
{
	static char other = 0, copy_bytes = 1;

	(void)module;
	*function = strcmp(name, "copy_bytes") == 0 ? &copy_bytes : &other;
	return is("noentry") ? 500 : broken;
}

FAKE(hipMalloc, void **p, size_t bytes)
{
	if (is("oom") || (*p = malloc(bytes)) == NULL)
		return 2;
	live++;
	return broken;
}

FAKE(hipFree, void *p) { free(p); live--; return broken; }

FAKE(hipMemcpy, void *to, const void *from, size_t bytes, int kind)
{
	if (kind < 1 || kind > 3)
		return 1;
	if (!broken)
		memmove(to, from, bytes);
	return broken;
}

FAKE(hipModuleLaunchKernel, const char *function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
	void **extra)
{
	const struct gpu_args *a = params[0];

	if (gx * gy * gz == 0 || bx * by * bz == 0 || bx > 1024 || shared > 65536 ||
		stream != NULL || extra != NULL)
		return 1;
	launched = 1;
	if (*function && !broken)
		memcpy((void *)(uintptr_t)a->out, (const void *)(uintptr_t)a->k, a->bytes);
	return broken;
}

FAKE(hipEventCreate, void **event) { *event = malloc(1); live++; return broken; }
FAKE(hipEventDestroy, void *event) { free(event); live--; return broken; }
FAKE(hipEventRecord, void *event, void *stream) { (void)event; (void)stream; return broken; }
FAKE(hipEventSynchronize, void *event) { (void)event; return broken; }

FAKE(hipEventElapsedTime, float *ms, void *start, void *end)
{
	(void)start;
	(void)end;
	*ms = 2.5f;
	return broken;
}
