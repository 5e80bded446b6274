/* libnvidia-ml.so.1 of a recorded machine: answers from nvml.json. */
#include "tests/fake/machine.h"

#include <stdbool.h>

struct pci_info {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
struct memory {
	unsigned long long total, free, used;
};
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
struct fabric {
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
};
#define NOT_SUPPORTED 3
#define NOT_FOUND 6

const char *nvmlErrorString(int r);
API const char *
nvmlErrorString(int r)
{
	static const struct {
		int r;
		const char *text;
	} rows[] = {{4, "Insufficient Permissions"}, {9, "Driver Not Loaded"}, {15, "GPU is lost"},
		{16, "GPU requires reset"}, {18, "Driver/library version mismatch"}, {999, "Unknown Error"}};
	size_t i;

	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].r == r)
			return rows[i].text;
	return machine_error_name(r) != NULL ? machine_error_name(r) : "Not Supported";
}

FAKE(nvmlInit_v2, void)
{
	machine_load("nvml.json");
	return machine == NULL ? 9 : machine_error();
}

static int
copy(const char *text, char *out, unsigned size)
{
	if (text == NULL)
		return NOT_SUPPORTED;
	snprintf(out, size, "%s", text);
	return 0;
}

FAKE(nvmlSystemGetDriverVersion, char *out, unsigned size) { return copy(machine_text(machine, "driver"), out, size); }
FAKE(nvmlSystemGetNVMLVersion, char *out, unsigned size) { return copy(machine_text(machine, "version"), out, size); }
FAKE(nvmlDeviceGetCount_v2, unsigned *n) { *n = (unsigned)machine_count(0); return 0; }

FAKE(nvmlDeviceGetHandleByIndex_v2, unsigned i, const cJSON **d)
{
	const char *state;

	if ((*d = machine_device((int)i, 0)) == NULL)
		return NOT_FOUND;
	state = machine_text(*d, "state");
	return state == NULL ? 0 : strcmp(state, "lost") == 0 ? 15 : 16;
}

FAKE(nvmlDeviceGetMigDeviceHandleByIndex, const cJSON *card, unsigned i, const cJSON **d)
{
	const cJSON *v;
	int place = 0, n = (int)i;

	cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(machine, "devices")) {
		if (v == card)
			break;
		place++;
	}
	cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(machine, "devices"))
		if ((int)machine_number(v, "parent", -1) == place && n-- == 0) {
			*d = v;
			return 0;
		}
	return NOT_FOUND;
}

FAKE(nvmlDeviceGetName, const cJSON *d, char *out, unsigned size) { return copy(machine_text(d, "name"), out, size); }
FAKE(nvmlDeviceGetUUID, const cJSON *d, char *out, unsigned size) { return copy(machine_text(d, "uuid"), out, size); }

FAKE(nvmlDeviceGetPciInfo_v3, const cJSON *d, struct pci_info *out)
{
	const char *pci = machine_text(d, "pci");

	memset(out, 0, sizeof *out);
	return pci != NULL && sscanf(pci, "%x:%x:%x", &out->domain, &out->bus, &out->device) == 3
		? 0 : NOT_SUPPORTED;
}

FAKE(nvmlDeviceGetCudaComputeCapability, const cJSON *d, int *major, int *minor)
{
	const char *arch = machine_text(d, "arch");

	return arch != NULL && sscanf(arch, "%d.%d", major, minor) == 2 ? 0 : NOT_SUPPORTED;
}

FAKE(nvmlDeviceGetMemoryInfo, const cJSON *d, struct memory *out)
{
	double total = machine_number(d, "memoryMiB", -1), used = machine_number(d, "usedMiB", 0);

	if (total < 0)
		return NOT_SUPPORTED;
	out->total = (unsigned long long)total << 20;
	out->used = (unsigned long long)used << 20;
	out->free = out->total - out->used;
	return 0;
}

FAKE(nvmlDeviceGetComputeMode, const cJSON *d, int *mode)
{
	const char *text = machine_text(d, "computeMode");

	*mode = text == NULL ? 0 : strcmp(text, "Prohibited") == 0 ? 2 : strcmp(text, "Exclusive_Process") == 0 ? 3 : 0;
	return 0;
}

FAKE(nvmlDeviceGetMigMode, const cJSON *d, unsigned *now, unsigned *pending)
{
	const char *mode = machine_text(d, "migMode");

	if (mode == NULL)
		return NOT_SUPPORTED;
	*now = *pending = strcmp(mode, "enabled") == 0;
	return 0;
}

FAKE(nvmlDeviceGetComputeRunningProcesses_v3, const cJSON *d, unsigned *n, struct process *list)
{
	unsigned room = *n, i;

	*n = (unsigned)machine_number(d, "processes", 0);
	for (i = 0; i < *n && i < room; i++)
		list[i].pid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(d, "mps")) ? 77 : 1000 + i;
	return *n > room ? 7 : 0;
}

FAKE(nvmlSystemGetProcessName, unsigned pid, char *out, unsigned size)
{
	return copy(pid == 77 ? "/usr/bin/nvidia-cuda-mps-server" : "/usr/bin/python3", out, size);
}

FAKE(nvmlDeviceGetTotalEccErrors, const cJSON *d, int type, int counter, unsigned long long *n)
{
	(void)type;
	*n = (unsigned long long)machine_number(d, counter ? "eccUncorrectedEver" : "eccUncorrected", 0);
	return 0;
}

static bool
flag(const cJSON *d, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(d, key));
}

FAKE(nvmlDeviceGetRemappedRows, const cJSON *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
	unsigned *failed)
{
	if (machine_number(d, "rowsRemapped", -1) < 0)
		return NOT_SUPPORTED;
	*corrected = 0;
	*uncorrected = (unsigned)machine_number(d, "rowsRemapped", 0);
	*pending = flag(d, "rowRemapPending");
	*failed = flag(d, "rowRemapFailed");
	return 0;
}

FAKE(nvmlDeviceGetGpuFabricInfo, const cJSON *d, struct fabric *out)
{
	static const char *const states[] = {"not_supported", "not_started", "in_progress", "completed"};
	const char *state = machine_text(d, "fabric");

	memset(out, 0, sizeof *out);
	for (; state != NULL && out->state < 4; out->state++)
		if (strcmp(state, states[out->state]) == 0) {
			out->status = (int)machine_number(d, "fabricStatus", 0);
			return 0;
		}
	return NOT_SUPPORTED;
}

FAKE(nvmlDeviceGetVirtualizationMode, const cJSON *d, int *mode)
{
	*mode = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(d, "vgpu")) ? 2 : 0;
	return 0;
}

FAKE(nvmlDeviceGetPersistenceMode, const cJSON *d, int *mode)
{
	*mode = flag(d, "persistence");
	return cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(d, "persistence")) ? 0 : NOT_SUPPORTED;
}

FAKE(nvmlDeviceGetTemperature, const cJSON *d, int sensor, unsigned *out)
{
	(void)sensor;
	*out = (unsigned)machine_number(d, "temperature", 0);
	return machine_number(d, "temperature", -1) < 0 ? NOT_SUPPORTED : 0;
}

FAKE(nvmlDeviceGetUtilizationRates, const cJSON *d, unsigned out[2])
{
	out[0] = (unsigned)machine_number(d, "utilization", 0);
	out[1] = 0;
	return machine_number(d, "utilization", -1) < 0 ? NOT_SUPPORTED : 0;
}

FAKE(nvmlDeviceGetVbiosVersion, const cJSON *d, char *out, unsigned size) { return copy(machine_text(d, "firmware"), out, size); }

FAKE(nvmlDeviceGetCurrentClocksThrottleReasons, const cJSON *d, unsigned long long *bits)
{
	const char *text = machine_text(d, "throttle");

	*bits = text != NULL ? strtoull(text, NULL, 16) : 0;
	return text != NULL ? 0 : NOT_SUPPORTED;
}
