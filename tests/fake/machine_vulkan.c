/*
 * libvulkan.so.1 of a recorded machine: the devices are those of vulkan.json, and what they
 * compute is computed by the real loader's first device, which is software here.
 */
#include <vulkan/vulkan.h>

#include <dlfcn.h>

#include "tests/fake/machine.h"

#define DEVICES 8
/* The real loader's library, by path: by name we would find ourselves. */
static const char *const paths[] = {
	"/usr/lib/x86_64-linux-gnu/libvulkan.so.1", "/usr/lib/aarch64-linux-gnu/libvulkan.so.1",
	"/usr/lib64/libvulkan.so.1", "/usr/lib/libvulkan.so.1",
};

static struct device {
	const cJSON *o;
	VkPhysicalDevice real;
} devices[DEVICES];
static PFN_vkGetInstanceProcAddr real_address;
static VkInstance instance; /* the last one that was made */

#define REAL(name) ((PFN_##name)real_address(instance, #name))
#define DEVICE(d) ((const struct device *)(const void *)(d))
#define EXPORTED(type, name, ...)                    \
	VKAPI_ATTR type VKAPI_CALL name(__VA_ARGS__); \
	API VKAPI_ATTR type VKAPI_CALL name(__VA_ARGS__)

static VkResult VKAPI_CALL
create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a, VkInstance *out)
{
	VkResult r = ((PFN_vkCreateInstance)real_address(NULL, "vkCreateInstance"))(info, a, out);

	machine_load("vulkan.json");
	if (machine_error() != 0)
		return (VkResult)machine_error();
	instance = *out;
	return r;
}

static VkResult VKAPI_CALL
enumerate_devices(VkInstance i, uint32_t *n, VkPhysicalDevice *out)
{
	uint32_t room = *n, one = 1, k;
	VkPhysicalDevice real = VK_NULL_HANDLE;
	VkResult r = REAL(vkEnumeratePhysicalDevices)(i, &one, &real);

	if (r != VK_SUCCESS && r != VK_INCOMPLETE)
		return r;
	*n = (uint32_t)machine_count(0);
	*n = *n > DEVICES ? DEVICES : *n;
	for (k = 0; out != NULL && k < *n && k < room; k++) {
		devices[k].o = machine_device((int)k, 0);
		devices[k].real = real;
		out[k] = (VkPhysicalDevice)(void *)&devices[k];
	}
	if (out != NULL && room < *n) {
		*n = room;
		return VK_INCOMPLETE;
	}
	return VK_SUCCESS;
}

static void
properties_set(const struct device *d, VkPhysicalDeviceProperties *p)
{
	static const char *const types[] = {"other", "integrated", "discrete", "virtual", "cpu"};
	const char *type = machine_text(d->o, "type");
	int k;

	snprintf(p->deviceName, sizeof p->deviceName, "%s", machine_text(d->o, "name"));
	for (k = 0; type != NULL && k < 5; k++)
		if (strcmp(type, types[k]) == 0)
			p->deviceType = (VkPhysicalDeviceType)k;
}

static void VKAPI_CALL
get_properties(VkPhysicalDevice d, VkPhysicalDeviceProperties *out)
{
	REAL(vkGetPhysicalDeviceProperties)(DEVICE(d)->real, out);
	properties_set(DEVICE(d), out);
}

/* The registry's numbers, so that a machine with any driver can be played. */
static VkDriverId
driver_id(const char *name)
{
	static const char *const names[] = {
		[1] = "AMD_PROPRIETARY", "AMD_OPEN_SOURCE", "MESA_RADV", "NVIDIA_PROPRIETARY",
		"INTEL_PROPRIETARY_WINDOWS", "INTEL_OPEN_SOURCE_MESA", "IMAGINATION_PROPRIETARY",
		"QUALCOMM_PROPRIETARY", "ARM_PROPRIETARY", "GOOGLE_SWIFTSHADER", "GGP_PROPRIETARY",
		"BROADCOM_PROPRIETARY", "MESA_LLVMPIPE", "MOLTENVK", "COREAVI_PROPRIETARY",
		"JUICE_PROPRIETARY", "VERISILICON_PROPRIETARY", "MESA_TURNIP", "MESA_V3DV",
		"MESA_PANVK", "SAMSUNG_PROPRIETARY", "MESA_VENUS", "MESA_DOZEN", "MESA_NVK",
		"IMAGINATION_OPEN_SOURCE_MESA", "MESA_HONEYKRISP",
	};
	size_t i;

	for (i = 1; name != NULL && i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return (VkDriverId)i;
	return (VkDriverId)(name != NULL ? strtol(name, NULL, 10) : 0);
}

static void
member_set(const struct device *d, VkBaseOutStructure *s)
{
	VkPhysicalDeviceDriverProperties *driver = (void *)s;
	VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (void *)s;
	const char *text;

	switch ((int)s->sType) {
	case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES:
		driver->driverID = driver_id(machine_text(d->o, "driverId"));
		text = machine_text(d->o, "driver");
		snprintf(driver->driverName, sizeof driver->driverName, "%.*s",
			text ? (int)strcspn(text, " ") : 0, text ? text : "");
		snprintf(driver->driverInfo, sizeof driver->driverInfo, "%s",
			text && strchr(text, ' ') ? strchr(text, ' ') + 1 : "");
		if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(d->o, "conformant")))
			memset(&driver->conformanceVersion, 0, sizeof driver->conformanceVersion);
		break;
	case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT:
		text = machine_text(d->o, "pci");
		if (text != NULL)
			sscanf(text, "%x:%x:%x.%x", &pci->pciDomain, &pci->pciBus, &pci->pciDevice, &pci->pciFunction);
		break;
	case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES:
		machine_uuid(machine_text(d->o, "uuid"), ((VkPhysicalDeviceIDProperties *)(void *)s)->deviceUUID);
		break;
	default:
		break;
	}
}

static void VKAPI_CALL
get_properties2(VkPhysicalDevice d, VkPhysicalDeviceProperties2 *out)
{
	VkBaseOutStructure *s;

	REAL(vkGetPhysicalDeviceProperties2)(DEVICE(d)->real, out);
	properties_set(DEVICE(d), &out->properties);
	for (s = out->pNext; s != NULL; s = s->pNext)
		member_set(DEVICE(d), s);
}

/* A device with a PCI address says so by this extension. */
static VkResult VKAPI_CALL
enumerate_extensions(VkPhysicalDevice d, const char *layer, uint32_t *n, VkExtensionProperties *out)
{
	uint32_t room = *n;
	VkResult r = REAL(vkEnumerateDeviceExtensionProperties)(DEVICE(d)->real, layer, n, out);

	if (r != VK_SUCCESS || machine_text(DEVICE(d)->o, "pci") == NULL)
		return r;
	if (out != NULL && *n < room) {
		memset(&out[*n], 0, sizeof *out);
		snprintf(out[*n].extensionName, sizeof out->extensionName, "%s", VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
	}
	++*n;
	return r;
}

static void VKAPI_CALL
get_memory(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties *out)
{
	REAL(vkGetPhysicalDeviceMemoryProperties)(DEVICE(d)->real, out);
}

static void VKAPI_CALL
get_families(VkPhysicalDevice d, uint32_t *n, VkQueueFamilyProperties *out)
{
	const char *state = machine_text(DEVICE(d)->o, "state");
	uint32_t i;

	REAL(vkGetPhysicalDeviceQueueFamilyProperties)(DEVICE(d)->real, n, out);
	/* one that could not be used, whatever the reason was */
	for (i = 0; out != NULL && i < *n && state != NULL && strcmp(state, "unusable") == 0; i++)
		out[i].queueFlags &= ~(VkQueueFlags)VK_QUEUE_COMPUTE_BIT;
}

static VkResult VKAPI_CALL
create_device(VkPhysicalDevice d, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *a, VkDevice *out)
{
	return REAL(vkCreateDevice)(DEVICE(d)->real, info, a, out);
}

EXPORTED(PFN_vkVoidFunction, vkGetInstanceProcAddr, VkInstance i, const char *name)
{
#define X(name, f) {name, (PFN_vkVoidFunction)f}
	static const struct {
		const char *name;
		PFN_vkVoidFunction f;
	} ours[] = {
		X("vkCreateInstance", create_instance), X("vkEnumeratePhysicalDevices", enumerate_devices),
		X("vkGetPhysicalDeviceProperties", get_properties), X("vkGetPhysicalDeviceProperties2", get_properties2),
		X("vkEnumerateDeviceExtensionProperties", enumerate_extensions),
		X("vkGetPhysicalDeviceMemoryProperties", get_memory),
		X("vkGetPhysicalDeviceQueueFamilyProperties", get_families), X("vkCreateDevice", create_device),
	};
#undef X
	void *library = NULL, *symbol;
	size_t k;

	for (k = 0; real_address == NULL && library == NULL && k < sizeof paths / sizeof *paths; k++)
		if ((library = dlopen(paths[k], RTLD_NOW | RTLD_LOCAL)) != NULL &&
		    (symbol = dlsym(library, "vkGetInstanceProcAddr")) != NULL)
			memcpy(&real_address, &symbol, sizeof real_address);
	for (k = 0; real_address != NULL && k < sizeof ours / sizeof *ours; k++)
		if (strcmp(ours[k].name, name) == 0)
			return ours[k].f;
	return real_address != NULL ? real_address(i, name) : NULL;
}
