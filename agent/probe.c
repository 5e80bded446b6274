#include "agent/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/machine.h"
#include "common/agree.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"
#include "kernels/backend.h"
#include "kernels/gpu_library.h"

/* ---- the object ---- */

static void
put(cJSON *o, const char *key, cJSON *v)
{
	if (v == NULL)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	if (!cJSON_AddItemToObject(o, key, v))
		cJSON_Delete(v);
}

void
probe_text(cJSON *d, const char *key, const char *value)
{
	char shown[512];

	if (d == NULL || value == NULL || value[0] == '\0')
		return;
	str_show(shown, sizeof shown, value, strlen(value));
	put(d, key, cJSON_CreateString(shown));
}

void
probe_number(cJSON *d, const char *key, double value)
{
	if (d != NULL)
		put(d, key, cJSON_CreateNumber(value));
}

void
probe_flag(cJSON *d, const char *key, bool value)
{
	if (d != NULL)
		put(d, key, cJSON_CreateBool(value));
}

void
probe_library(struct probe *p, const char *path, const char *simulated)
{
	probe_text(p->root, "library", path);
	if (simulated != NULL) {
		probe_flag(p->root, "simulated", true);
		probe_note(p, "played from the recording %s", simulated);
	}
}

void
probe_note(struct probe *p, const char *fmt, ...)
{
	char shown[300];
	va_list ap;
	cJSON *v;

	va_start(ap, fmt);
	str_showv(shown, sizeof shown, fmt, ap);
	va_end(ap);
	if ((v = cJSON_CreateString(shown)) != NULL && !cJSON_AddItemToArray(p->notes, v))
		cJSON_Delete(v);
}

void
probe_fail(struct probe *p, enum reason r, long code, const char *name, const char *call,
	const char *hint)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL)
		return;
	json_add_num(o, "code", (double)code);
	json_add_str(o, "name", name);
	json_add_str(o, "call", call);
	json_add_str(o, "reason", reason_name(r));
	json_add_str(o, "hint", hint && hint[0] ? hint : reason_hint(r));
	put(p->root, "error", o);
}

bool
probe_replay(struct probe *p, const char *name, bool any)
{
	const char *dir = machine_dir();
	char path[4096];
	const cJSON *error;
	cJSON *o = NULL;

	if (dir == NULL || str_fmt(path, sizeof path, NULL, "%s/%s.json", dir, name) ||
	    json_load(path, TOOL_MAX_BYTES, &o, NULL))
		return false;
	error = json_get(o, "error");
	if (!cJSON_IsObject(error) || (!any && json_int(error, "code", 1) != 0)) {
		cJSON_Delete(o);
		return false;
	}
	put(p->root, "error", cJSON_Duplicate(error, true));
	if (json_bool(p->root, "simulated", false) == false)
		probe_library(p, NULL, machine_name());
	cJSON_Delete(o);
	return true;
}

cJSON *
probe_device(struct probe *p, int index, const char *name)
{
	static const char *const keys[] = {"name", "uuid", "pci", "arch", "features", "driver",
		"driverId", "type", "firmware", "mig", "migMode", "parent", "memoryMiB", "usedMiB",
		"utilization", "computeMode", "persistence", "processes", "mps", "eccUncorrected",
		"eccUncorrectedEver", "rowsRemapped", "rowRemapPending", "rowRemapFailed", "fabric", "xid",
		"throttle", "temperature", "state", "chipId", "conformant", "ordinal"};
	cJSON *d = cJSON_CreateObject();
	size_t i;

	if (d == NULL || !cJSON_AddItemToArray(p->devices, d)) {
		cJSON_Delete(d);
		return NULL;
	}
	json_add_int(d, "index", index);
	for (i = 0; i < str_count(keys); i++)
		json_add_null(d, keys[i]);
	json_add_bool(d, "software", false);
	json_add_bool(d, "vgpu", false);
	probe_text(d, "name", name);
	return d;
}

/* ---- CUDA, HIP, Vulkan: the lists that the kernels' backends make ---- */

/* What the APIs' errors mean for a person at the host. */
static const struct meaning {
	const char *name;
	enum reason reason;
	const char *hint;
} meanings[] = {
	{"CUDA_ERROR_SYSTEM_NOT_READY", REASON_FABRIC_NOT_READY, ""},
	{"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", REASON_DRIVER_MISMATCH, ""},
	{"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", REASON_DRIVER_MISMATCH,
		"a forward-compatibility library is in front of a driver for another card: remove cuda-compat from the library path"},
	{"CUDA_ERROR_NO_DEVICE", REASON_NO_DEVICE,
		"look at CUDA_VISIBLE_DEVICES, at MIG without an instance, and at the container's devices"},
	{"CUDA_ERROR_INVALID_DEVICE", REASON_NO_DEVICE, "look at CUDA_VISIBLE_DEVICES"},
	{"CUDA_ERROR_STUB_LIBRARY", REASON_DRIVER_MISSING_ON_HOST,
		"the first libcuda.so.1 on the library path is the toolkit's stub"},
	{"CUDA_ERROR_DEVICE_UNAVAILABLE", REASON_DEVICE_BUSY,
		"the device is in exclusive mode and taken, or its mode is Prohibited"},
	{"CUDA_ERROR_NOT_PERMITTED", REASON_NO_PERMISSION, ""},
	{"CUDA_ERROR_OPERATING_SYSTEM", REASON_NO_PERMISSION, "let the agent's user open /dev/nvidia*"},
	{"CUDA_ERROR_MPS_CONNECTION_FAILED", REASON_DEVICE_BUSY, "the MPS server of the host does not answer"},
	{"CUDA_ERROR_OUT_OF_MEMORY", REASON_DEVICE_BUSY, "another process holds the device's memory"},
	{"CUDA_ERROR_ECC_UNCORRECTABLE", REASON_DEVICE_FAULT, ""},
	{"CUDA_ERROR_UNKNOWN", REASON_PROBE_UNREADABLE, "load nvidia_uvm: nvidia-modprobe -u"},
	{"hipErrorNoDevice", REASON_NO_DEVICE, "look at HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES"},
	{"hipErrorInvalidDevice", REASON_NO_DEVICE, ""},
	{"hipErrorInsufficientDriver", REASON_DRIVER_MISMATCH, ""},
	{"VK_ERROR_INCOMPATIBLE_DRIVER", REASON_DRIVER_MISSING_ON_HOST,
		"install the device's Vulkan driver with libglvnd0, libegl1, libgl1 and libglx0"},
	{"VK_ERROR_INITIALIZATION_FAILED", REASON_PROBE_CRASHED, ""},
	{"cannot open shared object file", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"built without Vulkan", REASON_LANE_NOT_HERE, ""},
};

static void
list_error(struct probe *p, const struct err *e)
{
	char call[64];
	const char *colon = strstr(e->msg, ": ");
	size_t i, n = colon != NULL ? (size_t)(colon - e->msg) : 0;

	snprintf(call, sizeof call, "%.*s", (int)(n < 60 ? n : 60), e->msg);
	for (i = 0; i < str_count(meanings); i++)
		if (strstr(e->msg, meanings[i].name) != NULL) {
			probe_fail(p, meanings[i].reason, 0, e->msg, call, meanings[i].hint[0]
				? meanings[i].hint : e->hint);
			return;
		}
	probe_fail(p, e->code == ERR_NO_DEVICE ? REASON_NO_DEVICE : REASON_PROBE_UNREADABLE, 0, e->msg,
		call, e->hint);
}

/* "sm_90" as the capability "9.0": the last digit is the minor number. */
static void
capability(const char *arch, char out[16])
{
	size_t n = strlen(arch);

	out[0] = '\0';
	if (str_starts(arch, "sm_") && n >= 5 && n < 9)
		snprintf(out, 16, "%.*s.%c", (int)(n - 4), arch + 3, arch[n - 1]);
}

/* HIP's 16 bytes are the letters of the id that other tools print. */
static void
letters_of(const char *uuid, char out[48])
{
	char hex[33], text[17];
	uint8_t bytes[16];
	size_t i, n = 0;

	for (i = 0; uuid[i] != '\0' && n < 32; i++)
		if (uuid[i] != '-')
			hex[n++] = uuid[i];
	hex[n] = '\0';
	out[0] = '\0';
	if (n != 32 || str_unhex(bytes, 16, hex))
		return;
	memcpy(text, bytes, 16);
	text[16] = '\0';
	snprintf(out, 48, "GPU-%s", strspn(text, "0123456789abcdefABCDEF") == 16 ? text : hex);
}

static void
list_device(struct probe *p, const char *api, const struct backend_device *b)
{
	char text[64];
	cJSON *d;

	if (strcmp(api, "vulkan") == 0 && b->kind[0] == '\0') {
		probe_note(p, "%s: %s", b->name, b->note); /* a driver that is broken */
		return;
	}
	if ((d = probe_device(p, (int)b->index, b->name)) == NULL)
		return;
	if (strcmp(api, "cuda") == 0) {
		snprintf(text, sizeof text, "GPU-%s", b->uuid);
		probe_text(d, "uuid", b->uuid[0] ? text : NULL);
		capability(b->arch, text);
		probe_text(d, "arch", text);
	} else if (strcmp(api, "hip") == 0) {
		letters_of(b->uuid, text);
		probe_text(d, "uuid", text);
		snprintf(text, sizeof text, "%.*s", (int)strcspn(b->arch, ":"), b->arch);
		probe_text(d, "arch", text);
		probe_text(d, "features", strchr(b->arch, ':') ? strchr(b->arch, ':') + 1 : NULL);
	} else {
		probe_text(d, "uuid", b->uuid);
		probe_text(d, "driver", b->driver);
		probe_text(d, "driverId", b->driver_id);
		probe_flag(d, "conformant", !b->nonconformant);
		probe_number(d, "ordinal", b->ordinal);
	}
	probe_text(d, "type", b->kind[0] != '\0' ? b->kind : "discrete");
	probe_text(d, "pci", b->pci);
	probe_text(d, "api", b->api);
	probe_text(d, "driverText", b->driver);
	if (b->memory > 0)
		probe_number(d, "memoryMiB", (double)(b->memory >> 20));
	probe_flag(d, "software", b->software);
	if (b->note[0] != '\0') {
		/* that a chip needs hipcc is said by the fixtures gate */
		if (strcmp(api, "hip") != 0)
			probe_text(d, "state", "unusable");
		probe_note(p, "%s: %s", b->name, b->note);
	}
}

static void
probe_list(struct probe *p, const char *api)
{
	const struct kernel_backend *b = backend_find(api);
	struct backend_device *list = calloc(BACKEND_DEVICES, sizeof *list);
	struct err e = {0};
	size_t n = 0, i;

	if (b == NULL || list == NULL)
		err_set(&e, ERR_NOMEM, "no memory for a list");
	else if (b->list(list, BACKEND_DEVICES, &n, &e) == 0 && n > 0)
		e.code = ERR_NONE;
	else if (e.code == ERR_NONE)
		err_set(&e, ERR_NO_DEVICE, "0 devices");
	probe_library(p, gpu_library_path(), gpu_library_simulated());
	if (n > 0)
		probe_text(p->root, "version", list[0].api);
	for (i = 0; i < n; i++)
		list_device(p, api, &list[i]);
	/* drivers that are all broken are no devices */
	if (e.code == ERR_NONE && cJSON_GetArraySize(p->devices) == 0 && n > 0)
		err_set(&e, ERR_NO_DEVICE, "%s: %s", list[0].name, list[0].note);
	if (e.code != ERR_NONE || cJSON_GetArraySize(p->devices) == 0)
		list_error(p, &e);
	free(list);
}

static void
probe_cuda(struct probe *p)
{
	probe_list(p, "cuda");
}

static void
probe_hip(struct probe *p)
{
	probe_list(p, "hip");
}

static void
probe_vulkan(struct probe *p)
{
	probe_list(p, "vulkan");
}

/* ---- the command ---- */

static const struct {
	const char *name;
	void (*run)(struct probe *p);
} probes[] = {
	{"nvml", probe_nvml}, {"cuda", probe_cuda}, {"kfd", probe_kfd}, {"hip", probe_hip},
	{"vulkan", probe_vulkan},
};

struct probe_values {
	const char *device;
};
static const struct opt probe_opts[] = {
	{"device", 'd', OPT_TEXT, offsetof(struct probe_values, device), .word = "UUID",
		.help = "say only what is true of this device now"},
};

static void
keep_wanted(struct probe *p)
{
	const char *uuid;
	cJSON *d, *next;

	for (d = p->devices->child; p->wanted != NULL && d != NULL; d = next) {
		next = d->next;
		uuid = json_str(d, "uuid");
		if ((uuid == NULL || !agree_same_id(uuid, p->wanted)) && !str_eq(json_str(d, "pci"), p->wanted))
			cJSON_Delete(cJSON_DetachItemViaPointer(p->devices, d));
	}
	if (p->wanted != NULL && p->devices->child == NULL && cJSON_IsNull(json_get(p->root, "error")))
		probe_fail(p, REASON_DEVICE_VANISHED, 0, "the device is not there", "list", "");
}

static int
probe_run(const struct opt_call *call)
{
	const struct probe_values *v = call->values;
	struct probe p = {.root = cJSON_CreateObject(), .wanted = v->device};
	char *text = NULL;
	char boot[40];
	size_t i;
	bool failed = true;

	plat_boot_id(boot);
	for (i = 0; i < str_count(probes) && strcmp(probes[i].name, call->argv[0]) != 0; i++)
		;
	if (i == str_count(probes)) {
		fprintf(stderr, "verify-agent probe: no probe \"%.40s\": nvml, cuda, kfd, hip or vulkan\n",
			call->argv[0]);
		cJSON_Delete(p.root);
		return EXIT_USAGE;
	}
	if (p.root != NULL && json_add_str(p.root, "probe", probes[i].name) &&
	    json_add_int(p.root, "schema", 1) && json_add_bool(p.root, "simulated", false) &&
	    json_add_null(p.root, "library") && json_add_null(p.root, "version") &&
	    json_add_null(p.root, "driver") && json_add_str(p.root, "bootId", boot) && json_add_null(p.root, "error") &&
	    (p.devices = json_add_array(p.root, "devices")) != NULL &&
	    (p.notes = json_add_array(p.root, "notes")) != NULL) {
		if (probes[i].run == probe_kfd || !probe_replay(&p, probes[i].name, false))
			probes[i].run(&p);
		keep_wanted(&p);
		failed = !cJSON_IsNull(json_get(p.root, "error"));
		text = json_text(p.root, true);
	}
	if (text == NULL)
		fprintf(stderr, "verify-agent probe: no memory\n");
	else
		fputs(text, stdout);
	fflush(stdout);
	free(text);
	cJSON_Delete(p.root);
	/* a driver's threads may not like to be torn down: nothing is left to do */
	return failed ? EXIT_BLOCKED : EXIT_PASS;
}

const struct command probe_command = {
	.name = "probe",
	.arguments = "nvml|cuda|kfd|hip|vulkan",
	.summary = "ask one library which devices it sees",
	.help = "Prints one JSON object.  A run makes each probe a process of its own.\n"
		"\n"
		"Exit status: 0 facts, 3 none (the object says why), 2 usage.",
	.opts = probe_opts,
	.opt_count = str_count(probe_opts),
	.size = sizeof(struct probe_values),
	.min_args = 1,
	.max_args = 1,
	.run = probe_run,
	.hidden = true,
};
