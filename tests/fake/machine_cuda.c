/*
 * libcuda.so.1 of a recorded machine: answers from cuda.json, and computes: its kernels are
 * the CUDA sources played on the processor, so that the checks of a simulated device are
 * real ones of the arithmetic.
 */
#include "tests/fake/machine.h"

#include "kernels/gpu_emulated.h"

#define NOT_FOUND 500

FAKE(cuInit, unsigned flags)
{
	(void)flags;
	machine_load("cuda.json");
	return machine == NULL ? 100 : machine_error();
}

FAKE(cuGetErrorName, int r, const char **name)
{
	static const struct {
		int r;
		const char *name;
	} names[] = {
		{2, "CUDA_ERROR_OUT_OF_MEMORY"}, {34, "CUDA_ERROR_STUB_LIBRARY"}, {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{100, "CUDA_ERROR_NO_DEVICE"}, {101, "CUDA_ERROR_INVALID_DEVICE"}, {304, "CUDA_ERROR_OPERATING_SYSTEM"},
		{500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{802, "CUDA_ERROR_SYSTEM_NOT_READY"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
		{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}, {999, "CUDA_ERROR_UNKNOWN"},
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].r == r) {
			*name = names[i].name;
			return 0;
		}
	*name = machine_error_name(r);
	return *name == NULL;
}

FAKE(cuDriverGetVersion, int *version)
{
	double v = 13.0;
	const char *text = machine_text(machine, "version");

	if (text != NULL && strstr(text, "CUDA ") != NULL)
		v = strtod(strstr(text, "CUDA ") + 5, NULL);
	*version = (int)(v * 1000 + 0.5) / 100 * 100;
	*version = *version / 1000 * 1000 + *version % 1000 / 10;
	return 0;
}

/* One of CUDA_VISIBLE_DEVICES, as the driver has it: ids, or places. */
static const cJSON *
visible(int i)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	const cJSON *d;
	char word[80];
	size_t n;
	int k;

	if (list == NULL) {
		d = machine_device(i, 0);
		return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(d, "hidden")) ? NULL : d;
	}
	while (*list != '\0') {
		n = strcspn(list, ",");
		snprintf(word, sizeof word, "%.*s", (int)n, list);
		d = NULL;
		for (k = 0; k < machine_count(0); k++)
			if (strcmp(machine_text(machine_device(k, 0), "uuid"), word) == 0 ||
			    (word[0] >= '0' && word[0] <= '9' && strtol(word, NULL, 10) == k))
				d = machine_device(k, 0);
		/* a slice has the same digits behind another prefix */
		for (k = 0; d == NULL && strncmp(word, "MIG-", 4) == 0 && k < machine_count(0); k++)
			if (strcmp(machine_text(machine_device(k, 0), "uuid") + 4, word + 4) == 0)
				d = machine_device(k, 0);
		if (d == NULL)
			return NULL;
		if (i-- == 0)
			return d;
		list += n + (list[n] == ',');
	}
	return NULL;
}

FAKE(cuDeviceGetCount, int *n)
{
	for (*n = 0; visible(*n) != NULL; ++*n)
		;
	return 0;
}

FAKE(cuDeviceGet, int *d, int i) { *d = i; return visible(i) ? 0 : 101; }

FAKE(cuDeviceGetName, char *out, int size, int d)
{
	snprintf(out, (size_t)size, "%s", machine_text(visible(d), "name"));
	return 0;
}

FAKE(cuDeviceGetUuid, uint8_t *out, int d) { machine_uuid(machine_text(visible(d), "uuid"), out); return 0; }
FAKE(cuDeviceGetUuid_v2, uint8_t *out, int d) { machine_uuid(machine_text(visible(d), "uuid"), out); return 0; }

FAKE(cuDeviceGetPCIBusId, char *out, int size, int d)
{
	snprintf(out, (size_t)size, "%s", machine_text(visible(d), "pci"));
	return 0;
}

FAKE(cuDeviceTotalMem_v2, size_t *out, int d)
{
	*out = (size_t)machine_number(visible(d), "memoryMiB", 1024) << 20;
	return 0;
}

FAKE(cuDeviceGetAttribute, int *out, int attribute, int d)
{
	int major = 0, minor = 0;
	const char *arch = machine_text(visible(d), "arch");

	if (arch == NULL || sscanf(arch, "%d.%d", &major, &minor) != 2)
		return 1;
	*out = attribute == 10 ? 32 : attribute == 16 ? 4 : attribute == 75 ? major : attribute == 76 ? minor
		: attribute == 81 ? 233472 : attribute == 97 ? 232448 : attribute == 8 ? 49152 : 0;
	return 0;
}

FAKE(cuDevicePrimaryCtxRetain, void **c, int d) { static int one; (void)d; *c = &one; return 0; }
FAKE(cuDevicePrimaryCtxRelease_v2, int d) { (void)d; return 0; }
FAKE(cuCtxSetCurrent, void *c) { (void)c; return 0; }
FAKE(cuCtxSynchronize, void) { return 0; }
FAKE(cuModuleLoadData, void **m, const void *image) { static int one; (void)image; *m = &one; return 0; }
FAKE(cuModuleUnload, void *m) { (void)m; return 0; }

FAKE(cuModuleGetFunction, const struct gpu_emulated **f, void *m, const char *name)
{
	(void)m;
	for (*f = gpu_emulated; (*f)->name != NULL; ++*f)
		if ((*f)->wave == 32 && strcmp((*f)->name, name) == 0)
			return 0;
	return NOT_FOUND;
}

FAKE(cuFuncSetAttribute, void *f, int a, int v) { (void)f, (void)a, (void)v; return 0; }

FAKE(cuMemAlloc_v2, uint64_t *p, size_t bytes)
{
	void *at = NULL;

	if (posix_memalign(&at, 256, bytes ? bytes : 256))
		return 2;
	memset(at, 0xff, bytes);
	*p = (uint64_t)(uintptr_t)at;
	return 0;
}

FAKE(cuMemFree_v2, uint64_t p) { free((void *)(uintptr_t)p); return 0; }
FAKE(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t n) { memcpy((void *)(uintptr_t)to, from, n); return 0; }
FAKE(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t n) { memcpy(to, (void *)(uintptr_t)from, n); return 0; }
FAKE(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t n)
{
	memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
	return 0;
}

FAKE(cuLaunchKernel, const struct gpu_emulated *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	struct gpu_fiber_launch l = {.name = f->name, .wave = 32, .entry = f->entry, .grid = {gx, gy, gz},
		.block = bx, .shared = shared};
	struct err e = {0};

	(void)by, (void)bz, (void)stream, (void)extra;
	if (gpu_fiber_run(&l, params[0], &e)) {
		fprintf(stderr, "%s\n", e.msg);
		return 700;
	}
	return 0;
}

FAKE(cuEventCreate, void **ev, unsigned flags) { static int one; (void)flags; *ev = &one; return 0; }
FAKE(cuEventDestroy_v2, void *ev) { (void)ev; return 0; }
FAKE(cuEventRecord, void *ev, void *s) { (void)ev, (void)s; return 0; }
FAKE(cuEventSynchronize, void *ev) { (void)ev; return 0; }
FAKE(cuEventElapsedTime, float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
