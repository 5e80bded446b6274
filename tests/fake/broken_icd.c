/* A Vulkan driver whose devices can not be listed, as one of WSL's was: then a loader that
 * has several drivers lists none.  Built as a shared library, named by a driver file. */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdint.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define MAGIC 0x01CDC0DE /* the loader keeps its own word at the start of a handle */

PFN_vkVoidFunction API vk_icdGetInstanceProcAddr(VkInstance i, const char *name);
VkResult API vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);

static struct {
	uintptr_t loader;
} instance = {MAGIC};

static VKAPI_ATTR VkResult VKAPI_CALL
create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a, VkInstance *out)
{
	(void)info, (void)a;
	*out = (VkInstance)(void *)&instance;
	return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL
list_devices(VkInstance i, uint32_t *count, VkPhysicalDevice *out)
{
	(void)i, (void)count, (void)out;
	return VK_ERROR_INITIALIZATION_FAILED;
}

static VKAPI_ATTR VkResult VKAPI_CALL
list_extensions(const char *layer, uint32_t *count, VkExtensionProperties *out)
{
	(void)layer, (void)out;
	*count = 0;
	return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL
nothing(void)
{
}

PFN_vkVoidFunction
vk_icdGetInstanceProcAddr(VkInstance i, const char *name)
{
	(void)i;
	if (strcmp(name, "vkCreateInstance") == 0)
		return (PFN_vkVoidFunction)create_instance;
	if (strcmp(name, "vkEnumeratePhysicalDevices") == 0)
		return (PFN_vkVoidFunction)list_devices;
	if (strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0)
		return (PFN_vkVoidFunction)list_extensions;
	/* The core of Vulkan 1.0 must be there; none of it is called. */
	return strstr(name, "KHR") || strstr(name, "EXT") || strstr(name, "2") ||
			       strstr(name, "Groups") || strstr(name, "Version")
		       ? NULL
		       : nothing;
}

VkResult
vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	*version = *version < 4 ? *version : 4;
	return VK_SUCCESS;
}
