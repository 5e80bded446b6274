/* libamdhip64.so of a recorded machine: lists the devices of hip.json, and runs nothing. */
#include "tests/fake/machine.h"

const char *hipGetErrorName(int r);
API const char *
hipGetErrorName(int r)
{
	return r == 100 ? "hipErrorNoDevice" : r == 101 ? "hipErrorInvalidDevice"
		: r == 35 ? "hipErrorInsufficientDriver" : r == 801 ? "hipErrorNotSupported"
		: machine_error_name(r) != NULL ? machine_error_name(r) : "hipErrorUnknown";
}

FAKE(hipInit, unsigned flags)
{
	(void)flags;
	machine_load("hip.json");
	return machine == NULL ? 100 : machine_error();
}

/* ROCR_VISIBLE_DEVICES shows one, by id or by place. */
static const cJSON *
visible(int i)
{
	const char *word = getenv("ROCR_VISIBLE_DEVICES");
	int k;

	if (word == NULL)
		return machine_device(i, 0);
	for (k = 0; i == 0 && k < machine_count(0); k++)
		if (strcmp(machine_text(machine_device(k, 0), "uuid"), word) == 0 ||
		    (word[0] >= '0' && word[0] <= '9' && strtol(word, NULL, 10) == k))
			return machine_device(k, 0);
	return NULL;
}

FAKE(hipRuntimeGetVersion, int *v) { *v = 60241133; return 0; }

FAKE(hipGetDeviceCount, int *n)
{
	for (*n = 0; visible(*n) != NULL; ++*n)
		;
	return 0;
}

FAKE(hipSetDevice, int d) { return visible(d) ? 0 : 101; }
FAKE(hipDeviceGetName, char *out, int size, int d) { snprintf(out, (size_t)size, "%s", machine_text(visible(d), "name")); return 0; }

/* The letters of the id are the bytes. */
FAKE(hipDeviceGetUuid, uint8_t *out, int d)
{
	const char *text = machine_text(visible(d), "uuid");

	memset(out, 0, 16);
	if (text != NULL && strlen(text) >= 20)
		memcpy(out, text + 4, 16);
	return 0;
}

FAKE(hipDeviceGetPCIBusId, char *out, int size, int d)
{
	const char *pci = machine_text(visible(d), "pci");

	snprintf(out, (size_t)size, "%s", pci ? pci : "");
	return pci ? 0 : 801;
}

FAKE(hipDeviceTotalMem, size_t *out, int d) { *out = (size_t)machine_number(visible(d), "memoryMiB", 1024) << 20; return 0; }
FAKE(hipDeviceGetAttribute, int *out, int a, int d)
{
	const char *type = machine_text(visible(d), "type");

	*out = a == 87 ? 64 : a == 74 ? 65536 : a == 16 ? type != NULL && strcmp(type, "integrated") == 0 : 4;
	return 0;
}

FAKE(hipGetDevicePropertiesR0600, char *out, int d)
{
	const char *features = machine_text(visible(d), "features");

	memset(out, 0, 1472);
	snprintf(out + 1160, 256, "%s%s%s", machine_text(visible(d), "arch"), features ? ":" : "", features ? features : "");
	return 0;
}
FAKE(hipGetDeviceProperties, char *out, int d) { (void)out, (void)d; return 801; }

/* No code runs here. */
FAKE(hipDeviceSynchronize, void) { return 801; }
FAKE(hipModuleLoadData, void **m, const void *image) { (void)m, (void)image; return 801; }
FAKE(hipModuleUnload, void *m) { (void)m; return 0; }
FAKE(hipModuleGetFunction, void **f, void *m, const char *name) { (void)f, (void)m, (void)name; return 801; }
FAKE(hipMalloc, void **p, size_t n) { (void)p, (void)n; return 801; }
FAKE(hipFree, void *p) { (void)p; return 0; }
FAKE(hipMemcpy, void *to, const void *from, size_t n, int kind) { (void)to, (void)from, (void)n, (void)kind; return 801; }
FAKE(hipModuleLaunchKernel, void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h,
	void *s, void **p, void **x)
{
	(void)f, (void)a, (void)b, (void)c, (void)d, (void)e, (void)g, (void)h, (void)s, (void)p, (void)x;
	return 801;
}
FAKE(hipEventCreate, void **e) { (void)e; return 801; }
FAKE(hipEventDestroy, void *e) { (void)e; return 0; }
FAKE(hipEventRecord, void *e, void *s) { (void)e, (void)s; return 801; }
FAKE(hipEventSynchronize, void *e) { (void)e; return 801; }
FAKE(hipEventElapsedTime, float *ms, void *a, void *b) { (void)ms, (void)a, (void)b; return 801; }
