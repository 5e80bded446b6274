/* NVML, found at run time: no header of it is in any package that we build with. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/probe.h"
#include "common/json.h"
#include "common/str.h"
#include "kernels/gpu_library.h"

typedef int result;
typedef struct nvml_device *device;

/* Layouts and numbers of NVML's public interface. */
struct pci_info {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
struct memory {
	unsigned long long total, free, used;
};
struct utilization {
	unsigned gpu, memory;
};
#define SUCCESS 0
#define INSUFFICIENT_SIZE 7
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
struct fabric {
	unsigned char cluster[16];
	result status;
	unsigned clique;
	unsigned char state;
};
#define UNCORRECTED 1
#define VOLATILE 0
#define AGGREGATE 1
#define MAX_SLICES 16
#define MAX_PROCESSES 64

static struct {
	result (*init)(void);
	const char *(*error)(result r);
	result (*driver)(char *out, unsigned size);
	result (*version)(char *out, unsigned size);
	result (*count)(unsigned *n);
	result (*handle)(unsigned i, device *d);
	result (*name)(device d, char *out, unsigned size);
	result (*uuid)(device d, char *out, unsigned size);
	result (*pci)(device d, struct pci_info *out);
	result (*capability)(device d, int *major, int *minor);
	result (*memory)(device d, struct memory *out);
	result (*compute_mode)(device d, int *mode);
	result (*persistence)(device d, int *mode);
	result (*ecc)(device d, int type, int counter, unsigned long long *n);
	result (*rows)(device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
		unsigned *failed);
	result (*pages)(device d, int *pending);
	result (*fabric)(device d, struct fabric *out);
	result (*throttle)(device d, unsigned long long *bits);
	result (*mig)(device d, unsigned *now, unsigned *pending);
	result (*slice)(device d, unsigned i, device *out);
	result (*processes)(device d, unsigned *n, struct process *list);
	result (*process_name)(unsigned pid, char *out, unsigned size);
	result (*virtualization)(device d, int *mode);
	result (*temperature)(device d, int sensor, unsigned *out);
	result (*utilization)(device d, struct utilization *out);
	result (*vbios)(device d, char *out, unsigned size);
} nv;

#define SYMBOL(member, name, optional) { name, offsetof(__typeof__(nv), member), optional }
static const struct gpu_symbol symbols[] = {
	SYMBOL(init, "nvmlInit_v2", 0),
	SYMBOL(error, "nvmlErrorString", 0),
	SYMBOL(driver, "nvmlSystemGetDriverVersion", 0),
	SYMBOL(version, "nvmlSystemGetNVMLVersion", 1),
	SYMBOL(count, "nvmlDeviceGetCount_v2", 0),
	SYMBOL(handle, "nvmlDeviceGetHandleByIndex_v2", 0),
	SYMBOL(name, "nvmlDeviceGetName", 0),
	SYMBOL(uuid, "nvmlDeviceGetUUID", 0),
	SYMBOL(pci, "nvmlDeviceGetPciInfo_v3", 1),
	SYMBOL(capability, "nvmlDeviceGetCudaComputeCapability", 1),
	SYMBOL(memory, "nvmlDeviceGetMemoryInfo", 1),
	SYMBOL(compute_mode, "nvmlDeviceGetComputeMode", 1),
	SYMBOL(persistence, "nvmlDeviceGetPersistenceMode", 1),
	SYMBOL(ecc, "nvmlDeviceGetTotalEccErrors", 1),
	SYMBOL(rows, "nvmlDeviceGetRemappedRows", 1),
	SYMBOL(pages, "nvmlDeviceGetRetiredPagesPendingStatus", 1),
	SYMBOL(fabric, "nvmlDeviceGetGpuFabricInfo", 1),
	SYMBOL(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", 1),
	SYMBOL(mig, "nvmlDeviceGetMigMode", 1),
	SYMBOL(slice, "nvmlDeviceGetMigDeviceHandleByIndex", 1),
	SYMBOL(processes, "nvmlDeviceGetComputeRunningProcesses_v3", 1),
	SYMBOL(process_name, "nvmlSystemGetProcessName", 1),
	SYMBOL(virtualization, "nvmlDeviceGetVirtualizationMode", 1),
	SYMBOL(temperature, "nvmlDeviceGetTemperature", 1),
	SYMBOL(utilization, "nvmlDeviceGetUtilizationRates", 1),
	SYMBOL(vbios, "nvmlDeviceGetVbiosVersion", 1),
};
static const char *const libraries[] = {"libnvidia-ml.so.1", NULL};

static const struct {
	result code;
	enum reason reason;
	const char *hint;
} meanings[] = {
	{2, REASON_PROBE_UNREADABLE, ""},
	{4, REASON_NO_PERMISSION, "let the agent's user open /dev/nvidia*"},
	{6, REASON_NO_DEVICE, ""},
	{9, REASON_DRIVER_MISSING_ON_HOST, ""},
	{12, REASON_DRIVER_MISSING_ON_HOST, ""},
	{15, REASON_DEVICE_FAULT, "reboot the host; if it comes back, the card or its slot is bad"},
	{16, REASON_DEVICE_FAULT, "nvidia-smi --gpu-reset, or reboot"},
	{18, REASON_DRIVER_MISMATCH, ""},
	{999, REASON_NO_PERMISSION, "device access was lost: start the container anew, or reboot"},
};

static void
fail(struct probe *p, result r, const char *call)
{
	const char *text = nv.error(r);
	size_t i;

	for (i = 0; i < str_count(meanings) && meanings[i].code != r; i++)
		;
	probe_fail(p, i < str_count(meanings) ? meanings[i].reason : REASON_PROBE_UNREADABLE, r,
		text ? text : "an error without a name", call,
		i < str_count(meanings) ? meanings[i].hint : "");
}

/* Kernel lines "NVRM: Xid (PCI:0000:00:06): ..." of the device, where we may read them. */
static void
xid_count(cJSON *d, const char *pci)
{
	char line[8192], mark[64];
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), n = 0, lines = 0;
	ssize_t k;

	if (fd < 0)
		return;
	snprintf(mark, sizeof mark, "Xid (PCI:%.*s)", (int)strcspn(pci, "."), pci);
	/* what was overwritten (EPIPE) or is too long (EINVAL) ends nothing: the next is read */
	while (lines++ < 200000 && ((k = read(fd, line, sizeof line - 1)) > 0 ||
			(k < 0 && (errno == EPIPE || errno == EINVAL || errno == EINTR)))) {
		if (k < 0)
			continue;
		line[k] = '\0';
		n += strstr(line, "NVRM: ") != NULL && strstr(line, mark) != NULL;
	}
	k = k < 0 && errno == EAGAIN ? 0 : -1;
	close(fd);
	if (k == 0) /* all of it was read: a part of it proves nothing */
		probe_number(d, "xid", n);
}

/* What memory and links say of a card's health; a slice has its card's. */
static void
health(struct probe *p, cJSON *d, device dev)
{
	static const char *const states[] = {"not_supported", "not_started", "in_progress", "completed"};
	const char *name = json_str(d, json_str(d, "pci") != NULL ? "pci" : "name");
	struct fabric fabric;
	unsigned long long wide;
	unsigned corrected, uncorrected, pending, failed;
	int waiting;

	if (nv.ecc && nv.ecc(dev, UNCORRECTED, VOLATILE, &wide) == SUCCESS)
		probe_number(d, "eccUncorrected", (double)wide);
	if (nv.ecc && nv.ecc(dev, UNCORRECTED, AGGREGATE, &wide) == SUCCESS)
		probe_number(d, "eccUncorrectedEver", (double)wide);
	if (nv.rows && nv.rows(dev, &corrected, &uncorrected, &pending, &failed) == SUCCESS) {
		probe_number(d, "rowsRemapped", (double)corrected + uncorrected);
		probe_flag(d, "rowRemapPending", pending != 0);
		probe_flag(d, "rowRemapFailed", failed != 0);
		if (pending)
			probe_note(p, "%s: a bad row of memory waits for its exchange: nvidia-smi --gpu-reset, or reboot",
				name);
		if (failed)
			probe_note(p, "%s: a bad row of memory could not be exchanged; the card must be replaced", name);
	}
	if (nv.pages && nv.pages(dev, &waiting) == SUCCESS) {
		probe_flag(d, "pageRetirementPending", waiting != 0);
		if (waiting)
			probe_note(p, "%s: a bad page of memory waits to be retired: reboot", name);
	}
	memset(&fabric, 0, sizeof fabric);
	if (nv.fabric && nv.fabric(dev, &fabric) == SUCCESS && fabric.state < str_count(states)) {
		probe_text(d, "fabric", states[fabric.state]);
		if (fabric.state == 3)
			probe_number(d, "fabricStatus", fabric.status);
		if (fabric.state == 1 || fabric.state == 2 || (fabric.state == 3 && fabric.status != SUCCESS))
			probe_note(p, "%s: its NVLink fabric is not ready: CUDA needs nvidia-fabricmanager of the driver's own version",
				name);
	}
}

/* A server that shares the card among its clients holds it, and keeps nobody out. */
static void
processes_read(cJSON *d, device dev)
{
	struct process list[MAX_PROCESSES];
	unsigned n = MAX_PROCESSES, i;
	char name[256];
	bool shared = false;
	result r;

	if (nv.processes == NULL)
		return;
	memset(list, 0, sizeof list);
	r = nv.processes(dev, &n, list);
	if (r != SUCCESS && r != INSUFFICIENT_SIZE)
		return;
	probe_number(d, "processes", n);
	for (i = 0; r == SUCCESS && nv.process_name != NULL && i < n && i < MAX_PROCESSES; i++) {
		memset(name, 0, sizeof name);
		if (nv.process_name(list[i].pid, name, sizeof name - 1) == SUCCESS)
			shared |= strstr(name, "nvidia-cuda-mps-server") != NULL;
	}
	probe_flag(d, "mps", shared);
}

static void
persistence_note(struct probe *p, cJSON *d, bool on)
{
	probe_flag(d, "persistence", on);
	if (!on)
		probe_note(p, "persistence mode is off, so the driver starts anew for each process: nvidia-smi -pm 1");
}

static void
device_state(struct probe *p, cJSON *d, device dev, const char *pci)
{
	static const char *const modes[] = {"Default", "Exclusive_Thread", "Prohibited",
		"Exclusive_Process"};
	struct utilization use;
	unsigned long long wide;
	unsigned n = 0;
	int mode;
	char text[40];

	if (nv.compute_mode && nv.compute_mode(dev, &mode) == SUCCESS && mode >= 0 && mode < 4)
		probe_text(d, "computeMode", modes[mode]);
	if (nv.persistence && nv.persistence(dev, &mode) == SUCCESS)
		persistence_note(p, d, mode != 0);
	health(p, d, dev);
	if (nv.throttle && nv.throttle(dev, &wide) == SUCCESS) {
		snprintf(text, sizeof text, "0x%llx", wide);
		probe_text(d, "throttle", text);
	}
	processes_read(d, dev);
	if (nv.virtualization && nv.virtualization(dev, &mode) == SUCCESS) {
		probe_number(d, "virtualization", mode);
		if (mode == 2)
			probe_flag(d, "vgpu", true);
	}
	if (nv.temperature && nv.temperature(dev, 0, &n) == SUCCESS)
		probe_number(d, "temperature", n);
	if (nv.utilization && nv.utilization(dev, &use) == SUCCESS)
		probe_number(d, "utilization", use.gpu);
	if (nv.vbios && nv.vbios(dev, text, sizeof text) == SUCCESS)
		probe_text(d, "firmware", text);
	xid_count(d, pci);
}

/* Name, id, place: what a card and a slice of it both have. */
static cJSON *
identity(struct probe *p, int index, device dev, char pci[40])
{
	struct pci_info info;
	struct memory memory;
	char text[128];
	int major, minor;
	cJSON *d;

	pci[0] = '\0';
	if (nv.name(dev, text, sizeof text) != SUCCESS)
		snprintf(text, sizeof text, "unknown");
	if ((d = probe_device(p, index, text)) == NULL)
		return NULL;
	probe_text(d, "type", "discrete");
	if (nv.uuid(dev, text, sizeof text) == SUCCESS)
		probe_text(d, "uuid", text);
	memset(&info, 0, sizeof info);
	if (nv.pci && nv.pci(dev, &info) == SUCCESS) {
		snprintf(pci, 40, "%04x:%02x:%02x.0", info.domain, info.bus & 0xff, info.device & 0x1f);
		probe_text(d, "pci", pci);
	}
	if (nv.capability && nv.capability(dev, &major, &minor) == SUCCESS) {
		snprintf(text, sizeof text, "%d.%d", major, minor);
		probe_text(d, "arch", text);
	}
	if (nv.memory && nv.memory(dev, &memory) == SUCCESS) {
		probe_number(d, "memoryMiB", (double)(memory.total >> 20));
		probe_number(d, "usedMiB", (double)(memory.used >> 20));
	}
	return d;
}

/* "NVIDIA H200 MIG 1g.18gb": the profile stands behind the name. */
static void
slices(struct probe *p, device dev, int parent, const char *card_pci)
{
	unsigned i;
	device slice;
	const char *profile;
	char pci[40];
	cJSON *d;

	for (i = 0; nv.slice != NULL && i < MAX_SLICES; i++) {
		if (nv.slice(dev, i, &slice) != SUCCESS)
			continue;
		if ((d = identity(p, (int)i, slice, pci)) == NULL)
			return;
		/* what is true of the card is true of its slices */
		probe_text(d, "driver", json_str(p->root, "driver"));
		health(p, d, dev);
		if (card_pci[0] != '\0')
			xid_count(d, card_pci);
		probe_number(d, "parent", parent);
		profile = json_str(d, "name") ? strstr(json_str(d, "name"), " MIG ") : NULL;
		probe_text(d, "mig", profile ? profile + 5 : "unknown");
	}
}

void
probe_nvml(struct probe *p)
{
	struct err e = {0};
	char text[128], pci[40];
	unsigned n = 0, i, now, pending;
	device dev;
	result r;
	cJSON *d;

	if (gpu_library_load(libraries, symbols, str_count(symbols), &nv, &e)) {
		probe_fail(p, REASON_DRIVER_MISSING_ON_HOST, 0, e.msg, "dlopen", "");
		return;
	}
	probe_library(p, gpu_library_path(), gpu_library_simulated());
	if ((r = nv.init()) != SUCCESS) {
		fail(p, r, "nvmlInit");
		return;
	}
	if (nv.driver(text, sizeof text) == SUCCESS)
		probe_text(p->root, "driver", text);
	if (nv.version && nv.version(text, sizeof text) == SUCCESS)
		probe_text(p->root, "version", text);
	if ((r = nv.count(&n)) != SUCCESS) {
		fail(p, r, "nvmlDeviceGetCount");
		return;
	}
	for (i = 0; i < n && i < 64; i++) {
		if ((r = nv.handle(i, &dev)) != SUCCESS) {
			probe_note(p, "device %u: %s", i, nv.error(r) ? nv.error(r) : "?");
			if (n == 1)
				fail(p, r, "nvmlDeviceGetHandleByIndex");
			continue;
		}
		if ((d = identity(p, (int)i, dev, pci)) == NULL)
			return;
		probe_text(d, "driver", json_str(p->root, "driver"));
		device_state(p, d, dev, pci);
		if (nv.mig && nv.mig(dev, &now, &pending) == SUCCESS) {
			probe_text(d, "migMode", now ? "enabled" : "disabled");
			if (now)
				slices(p, dev, cJSON_GetArraySize(p->devices) - 1, pci);
		}
	}
	if (n == 0)
		probe_fail(p, REASON_NO_DEVICE, 0, "0 devices", "nvmlDeviceGetCount", "");
}
