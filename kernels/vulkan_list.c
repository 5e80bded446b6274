#include "kernels/vulkan_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

#define DEVICE_EXTENSIONS 512
#define FAMILIES 32

struct row {
	struct backend_device device;
	unsigned rank; /* lower is better */
};

struct list {
	struct row *rows;
	size_t count;
};

static void
uuid_format(char out[48], const uint8_t uuid[VK_UUID_SIZE])
{
	char hex[2 * VK_UUID_SIZE + 1];

	str_hex(hex, uuid, VK_UUID_SIZE);
	snprintf(out, 48, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}

static VkExtensionProperties *
extensions_of(struct vulkan_instance *i, VkPhysicalDevice d, uint32_t *n)
{
	VkExtensionProperties *x = calloc(DEVICE_EXTENSIONS, sizeof *x);
	VkResult r;

	*n = DEVICE_EXTENSIONS;
	if (x == NULL)
		return NULL;
	r = i->vk.EnumerateDeviceExtensionProperties(d, NULL, n, x);
	if (r == VK_SUCCESS || r == VK_INCOMPLETE)
		return x;
	free(x);
	return NULL;
}

static bool
has_extension(const VkExtensionProperties *x, uint32_t n, const char *name)
{
	while (x != NULL && n-- > 0)
		if (str_eq(x[n].extensionName, name))
			return true;
	return false;
}

static bool
is_software(VkPhysicalDeviceType type, VkDriverId driver)
{
	return type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
	       driver == VK_DRIVER_ID_MESA_LLVMPIPE ||
	       driver == VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
}

/* Names of the registry's numbers, of which older headers have fewer. */
static void
driver_id_name(VkDriverId id, char *out, size_t size)
{
	static const char *const names[] = {
		[1] = "AMD_PROPRIETARY", "AMD_OPEN_SOURCE", "MESA_RADV", "NVIDIA_PROPRIETARY",
		"INTEL_PROPRIETARY_WINDOWS", "INTEL_OPEN_SOURCE_MESA", "IMAGINATION_PROPRIETARY",
		"QUALCOMM_PROPRIETARY", "ARM_PROPRIETARY", "GOOGLE_SWIFTSHADER", "GGP_PROPRIETARY",
		"BROADCOM_PROPRIETARY", "MESA_LLVMPIPE", "MOLTENVK", "COREAVI_PROPRIETARY",
		"JUICE_PROPRIETARY", "VERISILICON_PROPRIETARY", "MESA_TURNIP", "MESA_V3DV",
		"MESA_PANVK", "SAMSUNG_PROPRIETARY", "MESA_VENUS", "MESA_DOZEN", "MESA_NVK",
		"IMAGINATION_OPEN_SOURCE_MESA", "MESA_HONEYKRISP",
		"VULKAN_SC_EMULATION_ON_VULKAN", "MESA_KOSMICKRISP", "MESA_GFXSTREAM", "APE_SOFT",
	};

	if ((size_t)id < str_count(names) && names[id] != NULL)
		snprintf(out, size, "%s", names[id]);
	else
		snprintf(out, size, "%d", (int)id);
}

static const char *
kind_name(VkPhysicalDeviceType type)
{
	static const char *const names[] = {
		[VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = "integrated",
		[VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = "discrete",
		[VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = "virtual",
		[VK_PHYSICAL_DEVICE_TYPE_CPU] = "cpu",
	};

	return (size_t)type < str_count(names) && names[type] != NULL ? names[type] : "other";
}

static uint64_t
local_memory(struct vulkan_instance *i, VkPhysicalDevice d)
{
	VkPhysicalDeviceMemoryProperties m;
	uint64_t sum = 0;
	uint32_t h;

	i->vk.GetPhysicalDeviceMemoryProperties(d, &m);
	for (h = 0; h < m.memoryHeapCount; h++)
		if (m.memoryHeaps[h].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
			sum += m.memoryHeaps[h].size;
	return sum;
}

bool
vulkan_family(struct vulkan_instance *i, VkPhysicalDevice d, uint32_t *family,
	      uint32_t *time_bits)
{
	VkQueueFamilyProperties f[FAMILIES];
	uint32_t n = FAMILIES, q;
	bool found = false;

	i->vk.GetPhysicalDeviceQueueFamilyProperties(d, &n, f);
	for (q = 0; q < n; q++)
		if ((f[q].queueFlags & VK_QUEUE_COMPUTE_BIT) && f[q].queueCount > 0 &&
		    (!found || (*time_bits == 0 && f[q].timestampValidBits > 0))) {
			*family = q, *time_bits = f[q].timestampValidBits;
			found = true;
		}
	return found;
}

static void
version_format(char *out, size_t size, uint32_t v)
{
	snprintf(out, size, "%u.%u.%u", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v),
		 VK_API_VERSION_PATCH(v));
}

static void
note_needs(struct vulkan_instance *i, VkPhysicalDevice d, const VkPhysicalDeviceProperties *p,
	   struct backend_device *out)
{
	uint32_t family, bits;

	if (p->apiVersion < VK_API_VERSION_1_1)
		snprintf(out->note, sizeof out->note, "Vulkan %s, 1.1 is needed", out->api);
	else if (!vulkan_family(i, d, &family, &bits))
		snprintf(out->note, sizeof out->note, "it has no queue that computes");
	else if (p->limits.maxPerStageDescriptorStorageBuffers < VULKAN_SLOTS)
		snprintf(out->note, sizeof out->note,
			 "%u storage buffers for a shader, %d are needed",
			 p->limits.maxPerStageDescriptorStorageBuffers, VULKAN_SLOTS);
}

/* What a device of Vulkan 1.1 and later tells besides. */
static void
row_identify(struct vulkan_instance *i, VkPhysicalDevice d, struct backend_device *out)
{
	VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
	VkPhysicalDeviceIDProperties id = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceProperties2 p = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
	VkExtensionProperties *x;
	bool has_pci, has_driver;
	uint32_t n;

	i->vk.GetPhysicalDeviceProperties(d, &p.properties);
	x = extensions_of(i, d, &n);
	has_pci = has_extension(x, n, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
	has_driver = p.properties.apiVersion >= VK_API_VERSION_1_2 ||
		     has_extension(x, n, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
	free(x);
	if (has_pci)
		pci.pNext = id.pNext, id.pNext = &pci;
	if (has_driver)
		driver.pNext = id.pNext, id.pNext = &driver;
	i->vk.GetPhysicalDeviceProperties2(d, &p);
	uuid_format(out->uuid, id.deviceUUID);
	if (has_pci)
		snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.%x",
			 pci.pciDomain & 0xffffu, pci.pciBus & 0xffu, pci.pciDevice & 0xffu,
			 pci.pciFunction & 0xfu);
	if (has_driver) {
		driver.driverName[VK_MAX_DRIVER_NAME_SIZE - 1] = '\0';
		driver.driverInfo[VK_MAX_DRIVER_INFO_SIZE - 1] = '\0';
		snprintf(out->driver, sizeof out->driver, "%.60s %.60s", driver.driverName,
			 driver.driverInfo);
		out->software = is_software(p.properties.deviceType, driver.driverID);
		driver_id_name(driver.driverID, out->driver_id, sizeof out->driver_id);
		out->nonconformant = driver.conformanceVersion.major == 0 &&
			driver.conformanceVersion.minor == 0;
	}
}

void
vulkan_row(struct vulkan_instance *i, VkPhysicalDevice d, struct backend_device *out)
{
	VkPhysicalDeviceProperties p;

	memset(out, 0, sizeof *out);
	i->vk.GetPhysicalDeviceProperties(d, &p);
	str_show(out->name, sizeof out->name, p.deviceName,
		 strnlen(p.deviceName, sizeof p.deviceName));
	snprintf(out->arch, sizeof out->arch, "%04x:%04x", p.vendorID, p.deviceID);
	snprintf(out->driver, sizeof out->driver, "driver 0x%08x", p.driverVersion);
	version_format(out->api, sizeof out->api, p.apiVersion);
	out->software = is_software(p.deviceType, (VkDriverId)0);
	snprintf(out->kind, sizeof out->kind, "%s", kind_name(p.deviceType));
	out->memory = local_memory(i, d);
	if (p.apiVersion >= VK_API_VERSION_1_1)
		row_identify(i, d, out);
	note_needs(i, d, &p, out);
}

/* Hardware first, its own card before a shared one; what can not be used last. */
static unsigned
rank_of(VkPhysicalDeviceType type, const struct backend_device *d)
{
	unsigned rank = type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU	 ? 0
			: type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU	 ? 1
			: type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 2
									 : 3;

	return rank + (d->software ? 10 : 0) + (d->note[0] ? 20 : 0);
}

static int
list_visit(void *arg, struct vulkan_instance *i)
{
	struct list *l = arg;
	VkPhysicalDeviceProperties p;
	uint32_t n;

	for (n = 0; n < i->count && l->count < BACKEND_DEVICES; n++) {
		struct row *row = &l->rows[l->count++];
		vulkan_row(i, i->devices[n], &row->device);
		i->vk.GetPhysicalDeviceProperties(i->devices[n], &p);
		row->rank = rank_of(p.deviceType, &row->device);
		row->device.ordinal = n;
	}
	return 0;
}

static void
list_broken(void *arg, const char *file, const struct err *why)
{
	struct list *l = arg;
	struct backend_device *d;
	const char *base = strrchr(file, '/');

	if (l->count == BACKEND_DEVICES)
		return;
	d = &l->rows[l->count].device;
	l->rows[l->count++].rank = 30;
	base = base ? base + 1 : file;
	str_show(d->name, sizeof d->name, base, strlen(base));
	snprintf(d->note, sizeof d->note, "this driver is broken: %.130s", why->msg);
}

static int
row_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	/* device.index is still the place in which it was found. */
	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1)
	       : x->device.index < y->device.index ? -1
						   : 1;
}

int
vulkan_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	struct list l = {.rows = calloc(BACKEND_DEVICES, sizeof(struct row))};
	size_t n;
	int rc = -1;

	*count = 0;
	if (l.rows == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the list of devices");
	if (vulkan_walk(list_visit, list_broken, &l, e)) {
		/* No loader and no driver are an answer; a missing layer is none. */
		rc = e->code == ERR_NO_DEVICE ? 0 : -1;
		goto out;
	}
	for (n = 0; n < l.count; n++)
		l.rows[n].device.index = (unsigned)n;
	qsort(l.rows, l.count, sizeof *l.rows, row_order);
	for (n = 0; n < l.count && n < max; n++) {
		out[n] = l.rows[n].device;
		out[n].index = (unsigned)n;
	}
	*count = n;
	if (n == 0)
		err_set(e, ERR_NO_DEVICE, "vkEnumeratePhysicalDevices: no device");
	rc = 0;
out:
	free(l.rows);
	return rc;
}
