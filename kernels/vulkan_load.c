#include "kernels/vulkan_load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/gpu_library.h"
#include "kernels/vulkan_files.h"

#define LIBRARY "libvulkan.so.1"
#define LAYER "VK_LAYER_KHRONOS_validation"
#define DEBUG VK_EXT_DEBUG_UTILS_EXTENSION_NAME
#define FEATURES VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME
#define LAYERS_MAX 64
#define EXTENSIONS_MAX 256

static unsigned messages_total;

unsigned
vulkan_messages_total(void)
{
	return messages_total;
}

const char *
vulkan_result_name(VkResult r)
{
	static const struct {
		VkResult r;
		const char *name;
	} names[] = {
#define X(name) {name, #name},
		X(VK_SUCCESS) X(VK_NOT_READY) X(VK_TIMEOUT) X(VK_INCOMPLETE)
		X(VK_ERROR_OUT_OF_HOST_MEMORY) X(VK_ERROR_OUT_OF_DEVICE_MEMORY)
		X(VK_ERROR_INITIALIZATION_FAILED) X(VK_ERROR_DEVICE_LOST)
		X(VK_ERROR_MEMORY_MAP_FAILED) X(VK_ERROR_LAYER_NOT_PRESENT)
		X(VK_ERROR_EXTENSION_NOT_PRESENT) X(VK_ERROR_FEATURE_NOT_PRESENT)
		X(VK_ERROR_INCOMPATIBLE_DRIVER) X(VK_ERROR_TOO_MANY_OBJECTS)
		X(VK_ERROR_FORMAT_NOT_SUPPORTED) X(VK_ERROR_FRAGMENTED_POOL)
		X(VK_ERROR_UNKNOWN) X(VK_ERROR_OUT_OF_POOL_MEMORY)
		X(VK_ERROR_INVALID_EXTERNAL_HANDLE) X(VK_ERROR_FRAGMENTATION)
		X(VK_ERROR_INVALID_SHADER_NV)
#undef X
	};
	size_t i;

	for (i = 0; i < str_count(names); i++)
		if (names[i].r == r)
			return names[i].name;
	return "an unknown VkResult";
}

int
vulkan_failed(struct err *e, const char *call, VkResult r)
{
	enum err_code code = r == VK_ERROR_OUT_OF_HOST_MEMORY ||
					     r == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
					     r == VK_ERROR_OUT_OF_POOL_MEMORY
				     ? ERR_NOMEM
				     : ERR_DEVICE;

	return err_set(e, code, "%s: %s (%d)", call, vulkan_result_name(r), (int)r);
}

/* General messages are the loader's own, about drivers that we do not use. */
static VKAPI_ATTR VkBool32 VKAPI_CALL
message_take(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
	     VkDebugUtilsMessageTypeFlagsEXT types,
	     const VkDebugUtilsMessengerCallbackDataEXT *data, void *arg)
{
	struct vulkan_messages *m = arg;
	const char *id = data->pMessageIdName ? data->pMessageIdName : "no id";
	const char *text = data->pMessage ? data->pMessage : "";

	(void)severity;
	if (!(types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT))
		return VK_FALSE;
	messages_total++;
	if (m->count++ == 0) {
		str_show(m->id, sizeof m->id, id, strlen(id));
		str_show(m->text, sizeof m->text, text, strlen(text));
	}
	return VK_FALSE;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_template = {
	.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
	.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
			   VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
	.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
		       VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
	.pfnUserCallback = message_take,
};

/* ISO C has no conversion from dlsym's result to a function. */
static PFN_vkGetInstanceProcAddr
symbol_address(void *library)
{
	void *symbol = dlsym(library, "vkGetInstanceProcAddr");
	PFN_vkGetInstanceProcAddr f = NULL;

	_Static_assert(sizeof f == sizeof symbol, "a function's address is an object's");
	memcpy(&f, &symbol, sizeof f);
	return f;
}

/* The library stays loaded: drivers leave threads and exit handlers behind. */
static int
library_load(struct vulkan_instance *i, struct err *e)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		err_set(e, ERR_NO_DEVICE, "no Vulkan loader: %s", dlerror());
		return err_hint(e, "Debian's packages are libvulkan1 and a driver's, such as "
				   "mesa-vulkan-drivers");
	}
	gpu_library_note(library, "vkGetInstanceProcAddr");
	if ((i->address = symbol_address(library)) == NULL)
		return err_set(e, ERR_NO_DEVICE, "%s has no vkGetInstanceProcAddr", LIBRARY);
#define X(name)                                                                          \
	i->vk.name = (PFN_vk##name)i->address(NULL, "vk" #name);                         \
	if (i->vk.name == NULL)                                                          \
		return err_set(e, ERR_NO_DEVICE, "%s has no vk" #name, LIBRARY);
	VULKAN_GLOBAL_CALLS(X)
#undef X
	return 0;
}

static bool
is_validation_wanted(void)
{
	return str_eq(getenv("VERIFY_VULKAN_VALIDATION"), "1");
}

static bool
has_layer(const struct vulkan_instance *i)
{
	VkLayerProperties layers[LAYERS_MAX];
	uint32_t n = LAYERS_MAX;
	VkResult r = i->vk.EnumerateInstanceLayerProperties(&n, layers);

	while ((r == VK_SUCCESS || r == VK_INCOMPLETE) && n-- > 0)
		if (str_eq(layers[n].layerName, LAYER))
			return true;
	return false;
}

static bool
has_extension(const struct vulkan_instance *i, const char *layer, const char *name)
{
	VkExtensionProperties *found = calloc(EXTENSIONS_MAX, sizeof *found);
	uint32_t n = EXTENSIONS_MAX;
	bool has = false;
	VkResult r;

	if (found == NULL)
		return false;
	r = i->vk.EnumerateInstanceExtensionProperties(layer, &n, found);
	while ((r == VK_SUCCESS || r == VK_INCOMPLETE) && !has && n-- > 0)
		has = str_eq(found[n].extensionName, name);
	free(found);
	return has;
}

static int
messenger_new(struct vulkan_instance *i, const VkDebugUtilsMessengerCreateInfoEXT *info,
	      struct err *e)
{
	PFN_vkCreateDebugUtilsMessengerEXT make =
		(PFN_vkCreateDebugUtilsMessengerEXT)i->address(
			i->handle, "vkCreateDebugUtilsMessengerEXT");
	VkResult r;

	if (make == NULL)
		return err_set(e, ERR_UNSUPPORTED, "no vkCreateDebugUtilsMessengerEXT");
	if ((r = make(i->handle, info, NULL, &i->messenger)) != VK_SUCCESS)
		return vulkan_failed(e, "vkCreateDebugUtilsMessengerEXT", r);
	return 0;
}

static int
instance_create(struct vulkan_instance *i, VkResult *result, struct err *e)
{
	static const char *const layers[] = {LAYER};
	static const char *const extensions[] = {DEBUG, FEATURES};
	/* Also whether a dispatch waits for what it reads. */
	static const VkValidationFeatureEnableEXT enabled[] = {
		VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
	VkValidationFeaturesEXT features = {
		.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
		.enabledValidationFeatureCount = 1,
		.pEnabledValidationFeatures = enabled};
	VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_template;
	VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
				 .pApplicationName = "verify",
				 .apiVersion = VK_API_VERSION_1_1};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
				     .pApplicationInfo = &app};
	bool validation = is_validation_wanted();

	*result = VK_SUCCESS;
	messenger.pUserData = &i->messages;
	if (validation) {
		if (!has_layer(i) || (!has_extension(i, NULL, DEBUG) &&
				      !has_extension(i, LAYER, DEBUG))) {
			err_set(e, ERR_UNSUPPORTED, "validation was asked for, and " LAYER
				" is not here");
			return err_hint(e, "Debian's package is vulkan-validationlayers");
		}
		info.pNext = &messenger;
		info.enabledLayerCount = info.enabledExtensionCount = 1;
		if (has_extension(i, LAYER, FEATURES)) {
			messenger.pNext = &features;
			info.enabledExtensionCount = 2;
		}
		info.ppEnabledLayerNames = layers;
		info.ppEnabledExtensionNames = extensions;
	}
	*result = i->vk.CreateInstance(&info, NULL, &i->handle);
	if (*result != VK_SUCCESS) {
		i->handle = VK_NULL_HANDLE;
		return vulkan_failed(e, "vkCreateInstance", *result);
	}
#define X(name)                                                                          \
	i->vk.name = (PFN_vk##name)i->address(i->handle, "vk" #name);                    \
	if (i->vk.name == NULL)                                                          \
		return err_set(e, ERR_DEVICE, "the instance has no vk" #name);
	VULKAN_INSTANCE_CALLS(X)
#undef X
	messenger.pNext = NULL;
	return validation ? messenger_new(i, &messenger, e) : 0;
}

/* An instance and its devices; *result is that of the call that failed. */
static int
instance_open(struct vulkan_instance **out, VkResult *result, struct err *e)
{
	struct vulkan_instance *i = calloc(1, sizeof *i);
	int rc = -1;

	*result = VK_SUCCESS;
	if (i == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a Vulkan instance");
	if (library_load(i, e) || instance_create(i, result, e))
		goto out;
	i->count = VULKAN_PHYSICAL;
	*result = i->vk.EnumeratePhysicalDevices(i->handle, &i->count, i->devices);
	if (*result != VK_SUCCESS && *result != VK_INCOMPLETE) {
		vulkan_failed(e, "vkEnumeratePhysicalDevices", *result);
		goto out;
	}
	*out = i;
	i = NULL;
	rc = 0;
out:
	vulkan_instance_free(i);
	return rc;
}

void
vulkan_instance_free(struct vulkan_instance *i)
{
	PFN_vkDestroyDebugUtilsMessengerEXT destroy;

	if (i == NULL)
		return;
	if (i->messenger != VK_NULL_HANDLE) {
		destroy = (PFN_vkDestroyDebugUtilsMessengerEXT)i->address(
			i->handle, "vkDestroyDebugUtilsMessengerEXT");
		if (destroy != NULL)
			destroy(i->handle, i->messenger, NULL);
	}
	if (i->handle != VK_NULL_HANDLE && i->vk.DestroyInstance != NULL)
		i->vk.DestroyInstance(i->handle, NULL);
	free(i);
}

int
vulkan_device_calls(struct vulkan_instance *i, VkDevice d, struct err *e)
{
#define X(name)                                                                          \
	i->vk.name = (PFN_vk##name)i->vk.GetDeviceProcAddr(d, "vk" #name);               \
	if (i->vk.name == NULL)                                                          \
		return err_set(e, ERR_DEVICE, "the device has no vk" #name);
	VULKAN_DEVICE_CALLS(X)
#undef X
	return 0;
}

/* One driver file at a time: the loader reads the choice when an instance is made.
 * Returns whether an instance was kept. */
static bool
files_walk(const struct vulkan_files *files, vulkan_visit visit, vulkan_broken broken,
	   void *arg)
{
	struct vulkan_instance *i;
	struct err why;
	size_t n;
	VkResult r;

	for (n = 0; n < files->count; n++) {
		memset(&why, 0, sizeof why);
		i = NULL;
		if (vulkan_files_choose(files->paths[n], &why) || instance_open(&i, &r, &why)) {
			broken(arg, files->paths[n], &why);
			continue;
		}
		if (visit(arg, i))
			return true;
		vulkan_instance_free(i);
	}
	return false;
}

int
vulkan_walk(vulkan_visit visit, vulkan_broken broken, void *arg, struct err *e)
{
	struct vulkan_files *files = NULL;
	struct vulkan_instance *i = NULL;
	VkResult r;
	int rc = -1;

	if (instance_open(&i, &r, e) == 0) {
		if (!visit(arg, i))
			vulkan_instance_free(i);
		return 0;
	}
	if (r == VK_ERROR_INCOMPATIBLE_DRIVER) {
		e->code = ERR_NO_DEVICE;
		return err_hint(e, "no Vulkan driver loads; one may lack libraries: NVIDIA's "
				   "needs libglvnd0, libegl1, libgl1 and libglx0");
	}
	if (r == VK_SUCCESS || (files = calloc(1, sizeof *files)) == NULL)
		return -1;
	if (vulkan_files_find(files, e) == 0) {
		files_walk(files, visit, broken, arg);
		vulkan_files_restore(files);
		memset(e, 0, sizeof *e);
		rc = 0;
	}
	vulkan_files_free(files);
	return rc;
}
