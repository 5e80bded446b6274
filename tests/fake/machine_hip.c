/*
 * libamdhip64.so of a recorded machine: answers from hip.json, and computes: its kernels are
 * the HIP sources played on the processor, with the wave of the machine's chip.
 */
#include "tests/fake/machine.h"

#include "kernels/gpu_emulated.h"

#define NO_BINARY 209
#define NOT_FOUND 500

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

static int selected;

/* The chips of data centres have waves of 64 lanes, the others of 32. */
static uint32_t
wave(void)
{
	const char *arch = machine_text(visible(selected), "arch");

	return arch != NULL && strncmp(arch, "gfx9", 4) == 0 ? 64 : 32;
}

FAKE(hipSetDevice, int d)
{
	if (visible(d) == NULL)
		return 101;
	selected = d;
	return 0;
}

FAKE(hipModuleLoadData, void **m, const void *image)
{
	static int one;

	*m = &one;
	return image == NULL ? NO_BINARY : 0;
}

FAKE(hipModuleUnload, void *m) { (void)m; return 0; }

FAKE(hipModuleGetFunction, const struct gpu_emulated **f, void *m, const char *name)
{
	(void)m;
	for (*f = gpu_emulated; (*f)->name != NULL; ++*f)
		if ((*f)->wave == wave() && strcmp((*f)->name, name) == 0)
			return 0;
	return NOT_FOUND;
}

FAKE(hipMalloc, void **p, size_t bytes)
{
	*p = NULL;
	if (posix_memalign(p, 256, bytes ? bytes : 256))
		return 2;
	memset(*p, 0xff, bytes);
	return 0;
}

FAKE(hipFree, void *p) { free(p); return 0; }
FAKE(hipMemcpy, void *to, const void *from, size_t n, int kind) { (void)kind; memmove(to, from, n); return 0; }
FAKE(hipDeviceSynchronize, void) { return 0; }

FAKE(hipModuleLaunchKernel, const struct gpu_emulated *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	struct gpu_fiber_launch l = {.name = f->name, .wave = f->wave, .entry = f->entry, .grid = {gx, gy, gz},
		.block = bx, .shared = shared};
	struct err e = {0};

	(void)by, (void)bz, (void)stream, (void)extra;
	if (gpu_fiber_run(&l, params[0], &e)) {
		fprintf(stderr, "%s\n", e.msg);
		return 700;
	}
	return 0;
}

FAKE(hipEventCreate, void **ev) { static int one; *ev = &one; return 0; }
FAKE(hipEventDestroy, void *ev) { (void)ev; return 0; }
FAKE(hipEventRecord, void *ev, void *s) { (void)ev, (void)s; return 0; }
FAKE(hipEventSynchronize, void *ev) { (void)ev; return 0; }
FAKE(hipEventElapsedTime, float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
