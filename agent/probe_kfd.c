/* The KFD topology that the amdgpu driver shows in sysfs: no library is needed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/machine.h"
#include "agent/probe.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define MAX_NODES 128

/* The number in a line "simd_count 1216". */
static bool
property_u64(const char *text, const char *key, uint64_t *out)
{
	size_t n = strlen(key);
	const char *p = text;

	for (; p != NULL && *p != '\0'; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, key, n) == 0 && p[n] == ' ')
			return str_leading_u64(p + n + 1, UINT64_MAX, out);
	return false;
}

/* The same of what is no id; -1 when there is none. */
static int64_t
property(const char *text, const char *key)
{
	uint64_t v;

	return property_u64(text, key, &v) && v <= INT64_MAX ? (int64_t)v : -1;
}

static char *
file_of(const char *root, const char *node, const char *name)
{
	char path[4096], *text = NULL;
	size_t len;

	if (str_fmt(path, sizeof path, NULL, "%s/%s/%s", root, node, name) ||
	    plat_read_file(path, 65536, &text, &len, NULL))
		return NULL;
	return text;
}

/* Bytes of the banks that are the card's own. */
static int64_t
memory_of(const char *root, const char *node, int64_t banks)
{
	char name[64], *text;
	int64_t sum = 0, size;
	int64_t i;

	for (i = 0; i < banks && i < 16; i++) {
		snprintf(name, sizeof name, "mem_banks/%d/properties", (int)i);
		if ((text = file_of(root, node, name)) == NULL)
			continue;
		size = property(text, "size_in_bytes");
		sum += size > 0 ? size : 0;
		free(text);
	}
	return sum;
}

/* 90402 is gfx942, 110000 gfx1100, 90010 gfx90a: major, minor, stepping in hex. */
static void
arch_of(int64_t version, char out[24])
{
	snprintf(out, 24, "gfx%d%x%x", (int)(version / 10000), (unsigned)(version / 100 % 100),
		(unsigned)(version % 100));
}

static void
node_read(struct probe *p, const char *root, const char *node)
{
	char *text = file_of(root, node, "properties"), *name = file_of(root, node, "name"), id[40],
	     arch[24], pci[32];
	uint64_t unique;
	int64_t version, location, domain, memory;
	cJSON *d;

	if (text != NULL && property(text, "simd_count") > 0 &&
	    (version = property(text, "gfx_target_version")) > 0) {
		arch_of(version, arch);
		if ((d = probe_device(p, cJSON_GetArraySize(p->devices), arch)) != NULL) {
			probe_text(d, "arch", arch);
			if (name != NULL)
				name[strcspn(name, "\n")] = '\0';
			probe_text(d, "chip", name);
			if (property_u64(text, "unique_id", &unique) && unique > 0) {
				snprintf(id, sizeof id, "GPU-%016llx", (unsigned long long)unique);
				probe_text(d, "uuid", id);
			}
			location = property(text, "location_id");
			domain = property(text, "domain");
			if (location >= 0) {
				snprintf(pci, sizeof pci, "%04x:%02x:%02x.%x", (unsigned)(domain > 0 ? domain : 0),
					(unsigned)(location >> 8 & 0xff), (unsigned)(location >> 3 & 0x1f),
					(unsigned)(location & 7));
				probe_text(d, "pci", pci);
			}
			if (property(text, "device_id") >= 0)
				probe_number(d, "chipId", (double)property(text, "device_id"));
			memory = memory_of(root, node, property(text, "mem_banks_count"));
			if (memory > 0)
				probe_number(d, "memoryMiB", (double)(memory >> 20));
			/* a processor with graphics has cores of both kinds, or two nodes */
			probe_text(d, "type", property(text, "cpu_cores_count") > 0 || tool_is_apu(arch)
				? "integrated" : "discrete");
			if (property(text, "drm_render_minor") > 0)
				probe_number(d, "renderMinor", (double)property(text, "drm_render_minor"));
		}
	}
	free(text);
	free(name);
}

static void
access_note(struct probe *p)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return;
	}
	probe_fail(p, errno == ENOENT ? REASON_DRIVER_MISSING_ON_HOST : REASON_NO_PERMISSION, errno,
		strerror(errno), "open /dev/kfd", errno == EINVAL
		? "a cgroup or a container keeps /dev/kfd away: pass --device /dev/kfd --device /dev/dri"
		: errno == ENOENT ? "load the amdgpu module"
				  : "add the agent's user to the groups render and video");
}

void
probe_kfd(struct probe *p)
{
	const char *machine = machine_dir();
	char root[4096] = NODES, node[16];
	int i;

	/* a path that is too long is no topology */
	if (machine != NULL && str_fmt(root, sizeof root, NULL, "%s/kfd/nodes", machine))
		root[0] = '\0';
	probe_library(p, root, machine);
	if (!plat_is_dir(root)) {
		probe_fail(p, REASON_DRIVER_MISSING_ON_HOST, 0, "no KFD topology", root,
			"load the amdgpu module");
		return;
	}
	/* in the order of their numbers, which is that of the runtime */
	for (i = 0; i < MAX_NODES; i++) {
		snprintf(node, sizeof node, "%d", i);
		node_read(p, root, node);
	}
	if (cJSON_GetArraySize(p->devices) == 0)
		probe_fail(p, REASON_NO_DEVICE, 0, "no node of the topology is a GPU", root, "");
	else if (machine == NULL)
		access_note(p);
	else
		(void)probe_replay(p, "kfd", true);
}
