#include "kernels/gpu_api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_library.h"

/* Numbers of cuda.h, which is part of no driver. */
#define SUCCESS 0
#define ATTRIBUTE_WARP 10
#define ATTRIBUTE_SMS 16
#define ATTRIBUTE_INTEGRATED 18
#define ATTRIBUTE_MAJOR 75
#define ATTRIBUTE_MINOR 76
#define ATTRIBUTE_SHARED_SM 81
#define ATTRIBUTE_SHARED_OPTIN 97
#define FUNCTION_SHARED 8      /* most dynamic shared bytes of a launch */
#define SHARED_PLAIN (48 * 1024)

#define MODULES 64
#define ENTRIES 256

typedef int result;
typedef int device;
typedef uint64_t address;

/* Names with _v2 are what the header's macros turn the plain ones into. */
static struct {
	result (*init)(unsigned flags);
	result (*driver_version)(int *version);
	result (*error_name)(result r, const char **name);
	result (*count)(int *n);
	result (*get)(device *d, int ordinal);
	result (*name)(char *name, int size, device d);
	result (*uuid)(uint8_t *uuid, device d);
	result (*uuid_mig)(uint8_t *uuid, device d);
	result (*pci)(char *out, int size, device d);
	result (*memory)(size_t *bytes, device d);
	result (*attribute)(int *value, int attribute, device d);
	result (*retain)(void **context, device d);
	result (*release)(device d);
	result (*current)(void *context);
	result (*synchronize)(void);
	result (*module_load)(void **module, const void *image);
	result (*module_unload)(void *module);
	result (*module_function)(void **function, void *module, const char *name);
	result (*function_attribute)(void *function, int attribute, int value);
	result (*alloc)(address *p, size_t bytes);
	result (*free)(address p);
	result (*to_device)(address to, const void *from, size_t bytes);
	result (*to_host)(void *to, address from, size_t bytes);
	result (*copy)(address to, address from, size_t bytes);
	result (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
		void **extra);
	result (*event_new)(void **event, unsigned flags);
	result (*event_free)(void *event);
	result (*event_record)(void *event, void *stream);
	result (*event_wait)(void *event);
	result (*event_between)(float *ms, void *start, void *end);
} cu;

#define SYMBOL(member, name) { name, offsetof(__typeof__(cu), member), 0 }
static const struct gpu_symbol symbols[] = {
	SYMBOL(init, "cuInit"),
	SYMBOL(driver_version, "cuDriverGetVersion"),
	SYMBOL(error_name, "cuGetErrorName"),
	SYMBOL(count, "cuDeviceGetCount"),
	SYMBOL(get, "cuDeviceGet"),
	SYMBOL(name, "cuDeviceGetName"),
	SYMBOL(uuid, "cuDeviceGetUuid"),
	{ "cuDeviceGetUuid_v2", offsetof(__typeof__(cu), uuid_mig), 1 },
	SYMBOL(pci, "cuDeviceGetPCIBusId"),
	SYMBOL(memory, "cuDeviceTotalMem_v2"),
	SYMBOL(attribute, "cuDeviceGetAttribute"),
	SYMBOL(retain, "cuDevicePrimaryCtxRetain"),
	SYMBOL(release, "cuDevicePrimaryCtxRelease_v2"),
	SYMBOL(current, "cuCtxSetCurrent"),
	SYMBOL(synchronize, "cuCtxSynchronize"),
	SYMBOL(module_load, "cuModuleLoadData"),
	SYMBOL(module_unload, "cuModuleUnload"),
	SYMBOL(module_function, "cuModuleGetFunction"),
	SYMBOL(function_attribute, "cuFuncSetAttribute"),
	SYMBOL(alloc, "cuMemAlloc_v2"),
	SYMBOL(free, "cuMemFree_v2"),
	SYMBOL(to_device, "cuMemcpyHtoD_v2"),
	SYMBOL(to_host, "cuMemcpyDtoH_v2"),
	SYMBOL(copy, "cuMemcpyDtoD_v2"),
	SYMBOL(launch, "cuLaunchKernel"),
	SYMBOL(event_new, "cuEventCreate"),
	SYMBOL(event_free, "cuEventDestroy_v2"),
	SYMBOL(event_record, "cuEventRecord"),
	SYMBOL(event_wait, "cuEventSynchronize"),
	SYMBOL(event_between, "cuEventElapsedTime"),
};

/* On Windows the same functions are in nvcuda.dll. */
static const char *const libraries[] = { "libcuda.so.1", NULL };

#define NO_CODE "this program has no code for the chip, or the driver is older than it"
static const struct gpu_status statuses[] = {
	{ 2, ERR_NOMEM, NULL },                /* OUT_OF_MEMORY */
	{ 34, ERR_NO_DEVICE,                   /* STUB_LIBRARY */
		"the first libcuda.so.1 on the library path is the toolkit's stub" },
	{ 46, ERR_NO_DEVICE, NULL },           /* DEVICE_UNAVAILABLE */
	{ 100, ERR_NO_DEVICE, NULL },          /* NO_DEVICE */
	{ 101, ERR_NO_DEVICE, NULL },          /* INVALID_DEVICE */
	{ 200, ERR_UNSUPPORTED, NO_CODE },     /* INVALID_IMAGE */
	{ 209, ERR_UNSUPPORTED, NO_CODE },     /* NO_BINARY_FOR_GPU */
	{ 218, ERR_UNSUPPORTED, NO_CODE },     /* INVALID_PTX */
	{ 221, ERR_UNSUPPORTED, NO_CODE },     /* JIT_COMPILER_NOT_FOUND */
	{ 222, ERR_UNSUPPORTED, NO_CODE },     /* UNSUPPORTED_PTX_VERSION */
	{ 223, ERR_UNSUPPORTED, NO_CODE },     /* JIT_COMPILATION_DISABLED */
	{ 500, ERR_UNSUPPORTED, NULL },        /* NOT_FOUND: no such entry point */
};

struct entry {
	const char *name;
	void *function;
	uint32_t shared;       /* allowed so far */
};

struct gpu_context {
	device d;
	void *context;
	void *modules[MODULES];
	const char *module_names[MODULES]; /* "score.fatbin" */
	size_t module_count;
	struct entry entries[ENTRIES]; /* those that were launched */
	size_t entry_count;
	void *events[2];
};

/* 0, or an error that names the call.  A stub library writes no name. */
static int
check(result r, const char *call, struct err *e)
{
	const char *name = NULL;

	if (r == SUCCESS)
		return 0;
	if (cu.error_name(r, &name) != SUCCESS)
		name = NULL;
	if (name == NULL && r == 34)
		name = "CUDA_ERROR_STUB_LIBRARY";
	return gpu_library_fail(statuses, str_count(statuses), r, call, name, e);
}

/* ---- devices -------------------------------------------------------------------- */

static int
driver_start(struct err *e)
{
	static int loaded;

	if (!loaded && gpu_library_load(libraries, symbols, str_count(symbols), &cu, e))
		return -1;
	loaded = 1;
	return check(cu.init(0), "cuInit", e);
}

/* The kernel module's version: the driver API tells only that of CUDA. */
static void
driver_tell(char *out, size_t size)
{
	struct err e = { 0 };
	char *text = NULL, *words[64];
	size_t len;
	int i, n = 0;

	(void)snprintf(out, size, "NVIDIA driver");
	if (plat_read_file("/proc/driver/nvidia/version", 4096, &text, &len, &e) == 0 &&
		strchr(text, '\n') != NULL) {
		*strchr(text, '\n') = '\0';
		n = str_split(text, false, words, (int)str_count(words));
	}
	for (i = 0; i < n; i++)
		if (isdigit((unsigned char)words[i][0]) && strchr(words[i], '.') != NULL) {
			(void)snprintf(out, size, "NVIDIA %.64s", words[i]);
			break;
		}
	free(text);
}

static int
attribute(device d, int which, int *value, struct err *e)
{
	return check(cu.attribute(value, which, d), "cuDeviceGetAttribute", e);
}

static int
describe(device d, struct backend_device *out, struct err *e)
{
	result (*uuid)(uint8_t *, device) = cu.uuid_mig ? cu.uuid_mig : cu.uuid;
	uint8_t bytes[16] = { 0 };
	int major = 0, minor = 0, shared = 0;
	size_t memory = 0;
	char *p;

	if (check(cu.name(out->name, sizeof out->name, d), "cuDeviceGetName", e) ||
		attribute(d, ATTRIBUTE_MAJOR, &major, e) ||
		attribute(d, ATTRIBUTE_MINOR, &minor, e) ||
		check(cu.memory(&memory, d), "cuDeviceTotalMem_v2", e))
		return -1;
	out->name[sizeof out->name - 1] = '\0';
	out->memory = memory;
	(void)snprintf(out->arch, sizeof out->arch, "sm_%d%d", major, minor);
	/* Neither is needed to run: left empty by a driver that has none. */
	if (uuid(bytes, d) == SUCCESS)
		gpu_library_uuid(bytes, out->uuid);
	if (cu.attribute(&shared, ATTRIBUTE_INTEGRATED, d) == SUCCESS)
		(void)snprintf(out->kind, sizeof out->kind, "%s", shared ? "integrated" : "discrete");
	if (cu.pci(out->pci, sizeof out->pci, d) != SUCCESS)
		out->pci[0] = '\0';
	out->pci[sizeof out->pci - 1] = '\0';
	for (p = out->pci; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	if (gpu_code_next(NULL, GPU_CODE_CUDA, NULL) == NULL)
		(void)snprintf(out->note, sizeof out->note,
			"this program was built without nvcc");
	return 0;
}

static int
cuda_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	struct err why = { 0 };
	int n = 0, i, version = 0;
	device d = 0;

	*count = 0;
	if (driver_start(e) || check(cu.count(&n), "cuDeviceGetCount", e))
		return 0;
	if (n < 1)
		err_set(e, ERR_NO_DEVICE, "cuDeviceGetCount: 0 devices");
	(void)cu.driver_version(&version);
	for (i = 0; i < n && *count < max; i++) {
		memset(&out[i], 0, sizeof out[i]);
		out[i].index = (unsigned)i;
		(void)snprintf(out[i].api, sizeof out[i].api, "CUDA %d.%d", version / 1000,
			version % 1000 / 10);
		driver_tell(out[i].driver, sizeof out[i].driver);
		if (check(cu.get(&d, i), "cuDeviceGet", &why) || describe(d, &out[i], &why))
			str_show(out[i].note, sizeof out[i].note, why.msg, strlen(why.msg));
		++*count;
	}
	return 0;
}

/* ---- sessions ------------------------------------------------------------------- */

static void
cuda_close(struct gpu_context *c)
{
	size_t i;

	if (c == NULL)
		return;
	if (c->context != NULL) {
		(void)cu.current(c->context);
		for (i = 0; i < 2; i++)
			if (c->events[i] != NULL)
				(void)cu.event_free(c->events[i]);
		for (i = 0; i < c->module_count; i++)
			(void)cu.module_unload(c->modules[i]);
		(void)cu.current(NULL);
		(void)cu.release(c->d);
	}
	free(c);
}

static int
modules_load(struct gpu_context *c, struct err *e)
{
	const struct gpu_code *code = NULL;

	while ((code = gpu_code_next(code, GPU_CODE_CUDA, NULL)) != NULL) {
		if (c->module_count == MODULES)
			return err_set(e, ERR_UNSUPPORTED, "more than %d modules", MODULES);
		if (check(cu.module_load(&c->modules[c->module_count], code->start),
			"cuModuleLoadData", e))
			return err_wrap(e, "%s", code->name);
		c->module_names[c->module_count++] = code->name;
	}
	if (c->module_count == 0) {
		err_set(e, ERR_UNSUPPORTED, "this program was built without nvcc");
		return err_hint(e, "build it where nvcc is, or after deploy/fetch-nvcc");
	}
	return 0;
}

static int
limits_read(device d, struct gpu_limits *l, struct err *e)
{
	int sms = 0, warp = 0, shared = 0, shared_sm = 0, major = 0;

	if (attribute(d, ATTRIBUTE_SMS, &sms, e) || attribute(d, ATTRIBUTE_WARP, &warp, e) ||
		attribute(d, ATTRIBUTE_SHARED_OPTIN, &shared, e) ||
		attribute(d, ATTRIBUTE_SHARED_SM, &shared_sm, e) ||
		attribute(d, ATTRIBUTE_MAJOR, &major, e))
		return -1;
	if (sms < 1 || warp != 32 || shared < 0 || shared_sm < shared)
		return err_set(e, ERR_UNSUPPORTED, "a device of %d multiprocessors and %d lanes",
			sms, warp);
	*l = (struct gpu_limits){ .sms = (uint32_t)sms, .warp = (uint32_t)warp,
		.shared = (uint32_t)shared, .shared_sm = (uint32_t)shared_sm,
		.matrix = major >= 8 };
	return 0;
}

/* Which of the codes the driver takes: the chip's own; that of an earlier chip of the same
 * generation (not of one with an "a", which is for it alone); else PTX. */
static void
code_choose(const char *archs, const char *chip, char *out, size_t size)
{
	char text[128], exact[64], *words[16];
	unsigned long have, best = 0, want = strtoul(chip + 3, NULL, 10);
	int i, n;

	str_show(text, sizeof text, archs, strlen(archs));
	(void)snprintf(exact, sizeof exact, "%.48sa", chip);
	(void)snprintf(out, size, "PTX of %s, compiled by the driver",
		strstr(archs, "compute_") ? strstr(archs, "compute_") : "none");
	n = str_split(text, false, words, (int)str_count(words));
	for (i = 0; i < n; i++) {
		if (str_eq(words[i], chip) || str_eq(words[i], exact)) {
			(void)snprintf(out, size, "%.32s", words[i]);
			return;
		}
		if (!str_starts(words[i], "sm_") || str_ends(words[i], "a"))
			continue;
		have = strtoul(words[i] + 3, NULL, 10);
		if (have / 10 == want / 10 && have <= want && have > best) {
			best = have;
			(void)snprintf(out, size, "%.32s", words[i]);
		}
	}
}

static void
code_tell(const struct backend_device *d, struct backend_code *code)
{
	const struct gpu_code *first = gpu_code_next(NULL, GPU_CODE_CUDA, NULL);

	memset(code, 0, sizeof *code);
	(void)snprintf(code->name, sizeof code->name, "kernels.fatbin");
	if (first == NULL || gpu_code_digest(GPU_CODE_CUDA, NULL, code->sha256))
		return;
	code_choose(first->arch, d->arch, code->how, sizeof code->how);
}

static int
cuda_open(const struct backend_device *d, struct gpu_context **out, struct gpu_limits *l,
	struct backend_code *code, struct err *e)
{
	struct gpu_context *c = NULL;

	if (driver_start(e))
		return -1;
	if ((c = calloc(1, sizeof *c)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a session");
	if (check(cu.get(&c->d, (int)d->index), "cuDeviceGet", e) ||
		limits_read(c->d, l, e) ||
		check(cu.retain(&c->context, c->d), "cuDevicePrimaryCtxRetain", e) ||
		check(cu.current(c->context), "cuCtxSetCurrent", e) ||
		modules_load(c, e) ||
		check(cu.event_new(&c->events[0], 0), "cuEventCreate", e) ||
		check(cu.event_new(&c->events[1], 0), "cuEventCreate", e)) {
		cuda_close(c);
		return -1;
	}
	code_tell(d, code);
	*out = c;
	return 0;
}

/* ---- memory and launches -------------------------------------------------------- */

/* Sessions may move between threads, and several be open: each call names its own. */
static int
use(struct gpu_context *c, struct err *e)
{
	return check(cu.current(c->context), "cuCtxSetCurrent", e);
}

static int
cuda_alloc(struct gpu_context *c, size_t bytes, uint64_t *p, struct err *e)
{
	return use(c, e) ? -1 : check(cu.alloc(p, bytes), "cuMemAlloc_v2", e);
}

static void
cuda_free(struct gpu_context *c, uint64_t p)
{
	(void)cu.current(c->context);
	(void)cu.free(p);
}

static int
cuda_to_device(struct gpu_context *c, uint64_t to, const void *from, size_t bytes,
	struct err *e)
{
	return use(c, e) ? -1 : check(cu.to_device(to, from, bytes), "cuMemcpyHtoD_v2", e);
}

static int
cuda_to_host(struct gpu_context *c, void *to, uint64_t from, size_t bytes, struct err *e)
{
	return use(c, e) ? -1 : check(cu.to_host(to, from, bytes), "cuMemcpyDtoH_v2", e);
}

static int
cuda_copy(struct gpu_context *c, uint64_t to, uint64_t from, size_t bytes, struct err *e)
{
	return use(c, e) ? -1 : check(cu.copy(to, from, bytes), "cuMemcpyDtoD_v2", e);
}

/* "score.fatbin" is of kernels/score.cu. */
static bool
names_file(const char *module, const char *file)
{
	return str_starts(module, file) && module[strlen(file)] == '.';
}

/* The entry point's row, found in the modules at its first launch. */
static struct entry *
entry_find(struct gpu_context *c, const char *name, const char *file, struct err *e)
{
	struct entry *n;
	result r = 500;
	size_t i;

	for (i = 0; i < c->entry_count; i++)
		if (str_eq(c->entries[i].name, name))
			return &c->entries[i];
	if (c->entry_count == ENTRIES) {
		err_set(e, ERR_UNSUPPORTED, "more than %d entry points", ENTRIES);
		return NULL;
	}
	n = &c->entries[c->entry_count];
	/* Its own module first: a look into others is an error that tools report. */
	for (i = 0; i < c->module_count && r == 500; i++)
		if (names_file(c->module_names[i], file))
			r = cu.module_function(&n->function, c->modules[i], name);
	for (i = 0; i < c->module_count && r == 500; i++)
		if (!names_file(c->module_names[i], file))
			r = cu.module_function(&n->function, c->modules[i], name);
	if (check(r, "cuModuleGetFunction", e)) {
		err_wrap(e, "%s", name);
		return NULL;
	}
	n->name = name;
	n->shared = SHARED_PLAIN;
	c->entry_count++;
	return n;
}

static int
cuda_launch(struct gpu_context *c, const struct gpu_step *s, const struct gpu_args *a,
	struct err *e)
{
	struct gpu_args copy = *a;
	void *params[] = { &copy };
	struct entry *n;

	if (use(c, e) || (n = entry_find(c, s->entry, s->file, e)) == NULL)
		return -1;
	if (s->shared > n->shared) {
		if (check(cu.function_attribute(n->function, FUNCTION_SHARED, (int)s->shared),
			"cuFuncSetAttribute", e))
			return err_wrap(e, "%s, %u bytes of shared memory", s->entry, s->shared);
		n->shared = s->shared;
	}
	if (check(cu.launch(n->function, s->grid[0], s->grid[1], s->grid[2], s->block, 1, 1,
		s->shared, NULL, params, NULL), "cuLaunchKernel", e))
		return err_wrap(e, "%s", s->entry);
	return 0;
}

static int
cuda_sync(struct gpu_context *c, struct err *e)
{
	return use(c, e) ? -1 : check(cu.synchronize(), "cuCtxSynchronize", e);
}

static int
cuda_timer_start(struct gpu_context *c, struct err *e)
{
	return use(c, e) ? -1 :
		check(cu.event_record(c->events[0], NULL), "cuEventRecord", e);
}

static int
cuda_timer_stop(struct gpu_context *c, double *seconds, struct err *e)
{
	float ms = 0;

	if (use(c, e) || check(cu.event_record(c->events[1], NULL), "cuEventRecord", e) ||
		check(cu.event_wait(c->events[1]), "cuEventSynchronize", e) ||
		check(cu.event_between(&ms, c->events[0], c->events[1]), "cuEventElapsedTime",
			e))
		return -1;
	*seconds = (double)ms * 1e-3;
	return 0;
}

const struct gpu_api gpu_api_cuda = {
	.backend = "cuda",
	.list = cuda_list,
	.open = cuda_open,
	.close = cuda_close,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.to_device = cuda_to_device,
	.to_host = cuda_to_host,
	.copy = cuda_copy,
	.launch = cuda_launch,
	.sync = cuda_sync,
	.timer_start = cuda_timer_start,
	.timer_stop = cuda_timer_stop,
};
