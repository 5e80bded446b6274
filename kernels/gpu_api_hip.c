#include "kernels/gpu_api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/gpu_library.h"
#include "kernels/hip_code.h"

/* hipDeviceAttribute_t of HIP 5, 6 and 7; in HIP 4 they had other numbers. */
#define SUCCESS 0
#define ATTRIBUTE_INTEGRATED 16
#define ATTRIBUTE_SMS 63
#define ATTRIBUTE_SHARED 74
#define ATTRIBUTE_WARP 87
#define OLDEST 5               /* major version */
#define TO_DEVICE 1            /* hipMemcpyKind */
#define TO_HOST 2
#define ON_DEVICE 3
#define ENTRIES 256

/* The chip's name is only in hipDeviceProp_t, whose layout has versions; each has a
 * function of its own, so that the place in it is fixed.  From hip_runtime_api.h of 5.2
 * (offsetof gcnArchName) and of 6.0, where the older layout keeps the plain name. */
#define PROPERTIES 8192
#define ARCH_AT_R0600 1160
#define ARCH_AT_R0000 396

typedef int result;

static struct {
	result (*init)(unsigned flags);
	result (*runtime_version)(int *version);
	const char *(*error_name)(result r);
	result (*count)(int *n);
	result (*select)(int ordinal);
	result (*name)(char *name, int size, int device);
	result (*uuid)(uint8_t *uuid, int device);
	result (*pci)(char *out, int size, int device);
	result (*memory)(size_t *bytes, int device);
	result (*attribute)(int *value, int attribute, int device);
	result (*properties_r0600)(void *out, int device);
	result (*properties_r0000)(void *out, int device);
	result (*synchronize)(void);
	result (*module_load)(void **module, const void *image);
	result (*module_unload)(void *module);
	result (*module_function)(void **function, void *module, const char *name);
	result (*alloc)(void **p, size_t bytes);
	result (*free)(void *p);
	result (*copy)(void *to, const void *from, size_t bytes, int kind);
	result (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
		void **extra);
	result (*event_new)(void **event);
	result (*event_free)(void *event);
	result (*event_record)(void *event, void *stream);
	result (*event_wait)(void *event);
	result (*event_between)(float *ms, void *start, void *end);
} hip;

#define SYMBOL(member, name) { name, offsetof(__typeof__(hip), member), 0 }
static const struct gpu_symbol symbols[] = {
	SYMBOL(init, "hipInit"),
	SYMBOL(runtime_version, "hipRuntimeGetVersion"),
	SYMBOL(error_name, "hipGetErrorName"),
	SYMBOL(count, "hipGetDeviceCount"),
	SYMBOL(select, "hipSetDevice"),
	SYMBOL(name, "hipDeviceGetName"),
	{ "hipDeviceGetUuid", offsetof(__typeof__(hip), uuid), 1 },
	SYMBOL(pci, "hipDeviceGetPCIBusId"),
	SYMBOL(memory, "hipDeviceTotalMem"),
	SYMBOL(attribute, "hipDeviceGetAttribute"),
	{ "hipGetDevicePropertiesR0600", offsetof(__typeof__(hip), properties_r0600), 1 },
	{ "hipGetDeviceProperties", offsetof(__typeof__(hip), properties_r0000), 1 },
	SYMBOL(synchronize, "hipDeviceSynchronize"),
	SYMBOL(module_load, "hipModuleLoadData"),
	SYMBOL(module_unload, "hipModuleUnload"),
	SYMBOL(module_function, "hipModuleGetFunction"),
	SYMBOL(alloc, "hipMalloc"),
	SYMBOL(free, "hipFree"),
	SYMBOL(copy, "hipMemcpy"),
	SYMBOL(launch, "hipModuleLaunchKernel"),
	SYMBOL(event_new, "hipEventCreate"),
	SYMBOL(event_free, "hipEventDestroy"),
	SYMBOL(event_record, "hipEventRecord"),
	SYMBOL(event_wait, "hipEventSynchronize"),
	SYMBOL(event_between, "hipEventElapsedTime"),
};

/* On Windows the same functions are in amdhip64.dll and amdhip64_6.dll. */
static const char *const libraries[] = {
	"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
	"/opt/rocm/lib/libamdhip64.so", NULL,
};

#define NO_CODE "the code is for another chip, or the driver is older than the compiler"
static const struct gpu_status statuses[] = {
	{ 2, ERR_NOMEM, NULL },                /* OutOfMemory */
	{ 35, ERR_NO_DEVICE, NULL },           /* InsufficientDriver */
	{ 98, ERR_UNSUPPORTED, NO_CODE },      /* InvalidDeviceFunction */
	{ 100, ERR_NO_DEVICE, NULL },          /* NoDevice */
	{ 101, ERR_NO_DEVICE, NULL },          /* InvalidDevice */
	{ 200, ERR_UNSUPPORTED, NO_CODE },     /* InvalidImage */
	{ 209, ERR_UNSUPPORTED, NO_CODE },     /* NoBinaryForGpu */
	{ 218, ERR_UNSUPPORTED, NO_CODE },     /* InvalidKernelFile */
	{ 302, ERR_UNSUPPORTED, NO_CODE },     /* SharedObjectSymbolNotFound */
	{ 303, ERR_UNSUPPORTED, NO_CODE },     /* SharedObjectInitFailed */
	{ 500, ERR_UNSUPPORTED, NULL },        /* NotFound: no such entry point */
};

struct entry {
	const char *name;
	void *function;
};

struct gpu_context {
	int device;
	struct hip_code code;
	void *modules[HIP_CODE_FILES];
	size_t module_count;
	struct entry entries[ENTRIES]; /* those that were launched */
	size_t entry_count;
	void *events[2];
};

static int
check(result r, const char *call, struct err *e)
{
	if (r == SUCCESS)
		return 0;
	return gpu_library_fail(statuses, str_count(statuses), r, call, hip.error_name(r), e);
}

/* ---- devices -------------------------------------------------------------------- */

static int
driver_start(int *version, struct err *e)
{
	static int loaded;

	if (!loaded && gpu_library_load(libraries, symbols, str_count(symbols), &hip, e))
		return -1;
	loaded = 1;
	if (check(hip.init(0), "hipInit", e) ||
		check(hip.runtime_version(version), "hipRuntimeGetVersion", e))
		return -1;
	if (*version / 10000000 < OLDEST)
		return err_set(e, ERR_NO_DEVICE, "HIP %d is too old: from %d on",
			*version / 10000000, OLDEST);
	return 0;
}

/* "gfx90a" of "gfx90a:sramecc+:xnack-"; false when that is not what stands there. */
static bool
arch_read(const char *at, char *out, size_t size)
{
	size_t n = strcspn(at, ":");

	if (!str_starts(at, "gfx") || n < 6 || n >= size || n > 16 ||
		strspn(at + 3, "0123456789abcdef") != n - 3)
		return false;
	memcpy(out, at, n);
	out[n] = '\0';
	return true;
}

static int
arch_of(int device, char *out, size_t size, struct err *e)
{
	char *properties = calloc(1, PROPERTIES);
	bool newer = hip.properties_r0600 != NULL;
	int rc = -1;

	if (properties == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the properties");
	if (!newer && hip.properties_r0000 == NULL) {
		err_set(e, ERR_UNSUPPORTED, "libamdhip64 has no hipGetDeviceProperties");
		goto out;
	}
	if (check(newer ? hip.properties_r0600(properties, device)
			: hip.properties_r0000(properties, device),
		    "hipGetDeviceProperties", e))
		goto out;
	properties[PROPERTIES - 1] = '\0';
	if (!arch_read(properties + (newer ? ARCH_AT_R0600 : ARCH_AT_R0000), out, size)) {
		err_set(e, ERR_UNSUPPORTED, "hipGetDeviceProperties tells no gfx name");
		goto out;
	}
	rc = 0;
out:
	free(properties);
	return rc;
}

static int
describe(int device, struct backend_device *out, struct err *e)
{
	uint8_t bytes[16] = { 0 };
	static const uint8_t none[16];
	size_t memory = 0;
	int shared = 0;
	char *p;

	if (check(hip.name(out->name, sizeof out->name, device), "hipDeviceGetName", e) ||
		check(hip.memory(&memory, device), "hipDeviceTotalMem", e) ||
		arch_of(device, out->arch, sizeof out->arch, e))
		return -1;
	out->name[sizeof out->name - 1] = '\0';
	out->memory = memory;
	/* Neither is needed to run: left empty by a driver that has none. */
	if (hip.uuid != NULL && hip.uuid(bytes, device) == SUCCESS &&
		memcmp(bytes, none, sizeof none) != 0)
		gpu_library_uuid(bytes, out->uuid);
	if (hip.attribute(&shared, ATTRIBUTE_INTEGRATED, device) == SUCCESS)
		(void)snprintf(out->kind, sizeof out->kind, "%s", shared ? "integrated" : "discrete");
	if (hip.pci(out->pci, sizeof out->pci, device) != SUCCESS)
		out->pci[0] = '\0';
	out->pci[sizeof out->pci - 1] = '\0';
	for (p = out->pci; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	(void)hip_code_possible(out->arch, out->note, sizeof out->note);
	return 0;
}

static void
driver_tell(int version, char *out, size_t size)
{
	(void)snprintf(out, size, "ROCm HIP %d.%d.%d", version / 10000000,
		version / 100000 % 100, version % 100000);
}

static int
hip_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	struct err why = { 0 };
	int n = 0, i, version = 0;

	*count = 0;
	if (driver_start(&version, e) || check(hip.count(&n), "hipGetDeviceCount", e))
		return 0;
	if (n < 1)
		err_set(e, ERR_NO_DEVICE, "hipGetDeviceCount: 0 devices");
	for (i = 0; i < n && *count < max; i++) {
		memset(&out[i], 0, sizeof out[i]);
		out[i].index = (unsigned)i;
		(void)snprintf(out[i].api, sizeof out[i].api, "HIP %d.%d", version / 10000000,
			version / 100000 % 100);
		driver_tell(version, out[i].driver, sizeof out[i].driver);
		if (describe(i, &out[i], &why))
			str_show(out[i].note, sizeof out[i].note, why.msg, strlen(why.msg));
		++*count;
	}
	return 0;
}

/* ---- sessions ------------------------------------------------------------------- */

static void
hip_close(struct gpu_context *c)
{
	size_t i;

	if (c == NULL)
		return;
	(void)hip.select(c->device);
	for (i = 0; i < 2; i++)
		if (c->events[i] != NULL)
			(void)hip.event_free(c->events[i]);
	for (i = 0; i < c->module_count; i++)
		(void)hip.module_unload(c->modules[i]);
	hip_code_free(&c->code);
	free(c);
}

static int
modules_load(struct gpu_context *c, struct err *e)
{
	size_t i;

	for (i = 0; i < c->code.count; i++) {
		if (check(hip.module_load(&c->modules[i], c->code.image[i]),
			"hipModuleLoadData", e))
			return err_wrap(e, "%s", c->code.told.how);
		c->module_count++;
	}
	return 0;
}

static int
limits_read(int device, struct gpu_limits *l, struct err *e)
{
	int sms = 0, warp = 0, shared = 0;

	if (check(hip.attribute(&sms, ATTRIBUTE_SMS, device), "hipDeviceGetAttribute", e) ||
		check(hip.attribute(&warp, ATTRIBUTE_WARP, device), "hipDeviceGetAttribute", e) ||
		check(hip.attribute(&shared, ATTRIBUTE_SHARED, device), "hipDeviceGetAttribute",
			e))
		return -1;
	if (sms < 1 || (warp != 32 && warp != 64) || shared < 0)
		return err_set(e, ERR_UNSUPPORTED, "a device of %d compute units and %d lanes",
			sms, warp);
	*l = (struct gpu_limits){ .sms = (uint32_t)sms, .warp = (uint32_t)warp,
		.shared = (uint32_t)shared, .matrix = false };
	return 0;
}

static int
hip_open(const struct backend_device *d, struct gpu_context **out, struct gpu_limits *l,
	struct backend_code *code, struct err *e)
{
	struct gpu_context *c = NULL;
	int version = 0;

	if (driver_start(&version, e))
		return -1;
	if ((c = calloc(1, sizeof *c)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a session");
	c->device = (int)d->index;
	if (limits_read(c->device, l, e) || hip_code_get(d->arch, &c->code, e) ||
		check(hip.select(c->device), "hipSetDevice", e) || modules_load(c, e) ||
		check(hip.event_new(&c->events[0]), "hipEventCreate", e) ||
		check(hip.event_new(&c->events[1]), "hipEventCreate", e)) {
		hip_close(c);
		return -1;
	}
	*code = c->code.told;
	*out = c;
	return 0;
}

/* ---- memory and launches -------------------------------------------------------- */

static int
use(struct gpu_context *c, struct err *e)
{
	return check(hip.select(c->device), "hipSetDevice", e);
}

static void *
pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static int
hip_alloc(struct gpu_context *c, size_t bytes, uint64_t *address, struct err *e)
{
	void *p = NULL;

	if (use(c, e) || check(hip.alloc(&p, bytes), "hipMalloc", e))
		return -1;
	*address = (uint64_t)(uintptr_t)p;
	return 0;
}

static void
hip_free(struct gpu_context *c, uint64_t address)
{
	(void)hip.select(c->device);
	(void)hip.free(pointer(address));
}

static int
hip_to_device(struct gpu_context *c, uint64_t to, const void *from, size_t bytes,
	struct err *e)
{
	return use(c, e) ? -1 :
		check(hip.copy(pointer(to), from, bytes, TO_DEVICE), "hipMemcpy", e);
}

static int
hip_to_host(struct gpu_context *c, void *to, uint64_t from, size_t bytes, struct err *e)
{
	return use(c, e) ? -1 :
		check(hip.copy(to, pointer(from), bytes, TO_HOST), "hipMemcpy", e);
}

static int
hip_copy(struct gpu_context *c, uint64_t to, uint64_t from, size_t bytes, struct err *e)
{
	return use(c, e) ? -1 :
		check(hip.copy(pointer(to), pointer(from), bytes, ON_DEVICE), "hipMemcpy", e);
}

/* The entry point's row, found in the modules at its first launch. */
static struct entry *
entry_find(struct gpu_context *c, const char *name, struct err *e)
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
	for (i = 0; i < c->module_count && r == 500; i++)
		r = hip.module_function(&n->function, c->modules[i], name);
	if (check(r, "hipModuleGetFunction", e)) {
		err_wrap(e, "%s", name);
		return NULL;
	}
	n->name = name;
	c->entry_count++;
	return n;
}

static int
hip_launch(struct gpu_context *c, const struct gpu_step *s, const struct gpu_args *a,
	struct err *e)
{
	struct gpu_args copy = *a;
	void *params[] = { &copy };
	struct entry *n;

	if (use(c, e) || (n = entry_find(c, s->entry, e)) == NULL)
		return -1;
	if (check(hip.launch(n->function, s->grid[0], s->grid[1], s->grid[2], s->block, 1, 1,
		s->shared, NULL, params, NULL), "hipModuleLaunchKernel", e))
		return err_wrap(e, "%s", s->entry);
	return 0;
}

static int
hip_sync(struct gpu_context *c, struct err *e)
{
	return use(c, e) ? -1 : check(hip.synchronize(), "hipDeviceSynchronize", e);
}

static int
hip_timer_start(struct gpu_context *c, struct err *e)
{
	return use(c, e) ? -1 :
		check(hip.event_record(c->events[0], NULL), "hipEventRecord", e);
}

static int
hip_timer_stop(struct gpu_context *c, double *seconds, struct err *e)
{
	float ms = 0;

	if (use(c, e) || check(hip.event_record(c->events[1], NULL), "hipEventRecord", e) ||
		check(hip.event_wait(c->events[1]), "hipEventSynchronize", e) ||
		check(hip.event_between(&ms, c->events[0], c->events[1]),
			"hipEventElapsedTime", e))
		return -1;
	*seconds = (double)ms * 1e-3;
	return 0;
}

const struct gpu_api gpu_api_hip = {
	.backend = "hip",
	.list = hip_list,
	.open = hip_open,
	.close = hip_close,
	.alloc = hip_alloc,
	.free = hip_free,
	.to_device = hip_to_device,
	.to_host = hip_to_host,
	.copy = hip_copy,
	.launch = hip_launch,
	.sync = hip_sync,
	.timer_start = hip_timer_start,
	.timer_stop = hip_timer_stop,
};
