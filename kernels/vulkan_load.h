/*
 * vulkan_load - the Vulkan loader by dlopen: its calls, instances, names of results.
 *
 * VERIFY_VULKAN_VALIDATION=1 in the environment switches the Khronos validation layer on
 * in each instance; where it is missing an instance is not made, never made without it.
 * Threads: an instance belongs to one thread; vulkan_walk changes the environment for a
 * moment when a driver is broken, so no other thread may be reading it.
 */
#ifndef KERNELS_VULKAN_LOAD_H
#define KERNELS_VULKAN_LOAD_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define VULKAN_PHYSICAL 64     /* devices of an instance */

#define VULKAN_GLOBAL_CALLS(X)                                                          \
	X(EnumerateInstanceLayerProperties)                                             \
	X(EnumerateInstanceExtensionProperties)                                         \
	X(CreateInstance)

#define VULKAN_INSTANCE_CALLS(X)                                                        \
	X(DestroyInstance)                                                              \
	X(EnumeratePhysicalDevices)                                                     \
	X(EnumerateDeviceExtensionProperties)                                           \
	X(GetPhysicalDeviceProperties)                                                  \
	X(GetPhysicalDeviceProperties2)                                                 \
	X(GetPhysicalDeviceMemoryProperties)                                            \
	X(GetPhysicalDeviceQueueFamilyProperties)                                       \
	X(CreateDevice)                                                                 \
	X(GetDeviceProcAddr)

#define VULKAN_DEVICE_CALLS(X)                                                          \
	X(DestroyDevice)                                                                \
	X(DeviceWaitIdle)                                                               \
	X(GetDeviceQueue)                                                               \
	X(CreateBuffer)                                                                 \
	X(DestroyBuffer)                                                                \
	X(GetBufferMemoryRequirements)                                                  \
	X(AllocateMemory)                                                               \
	X(FreeMemory)                                                                   \
	X(BindBufferMemory)                                                             \
	X(MapMemory)                                                                    \
	X(CreateShaderModule)                                                           \
	X(DestroyShaderModule)                                                          \
	X(CreateDescriptorSetLayout)                                                    \
	X(DestroyDescriptorSetLayout)                                                   \
	X(CreatePipelineLayout)                                                         \
	X(DestroyPipelineLayout)                                                        \
	X(CreateComputePipelines)                                                       \
	X(DestroyPipeline)                                                              \
	X(CreateDescriptorPool)                                                         \
	X(DestroyDescriptorPool)                                                        \
	X(AllocateDescriptorSets)                                                       \
	X(UpdateDescriptorSets)                                                         \
	X(CreateCommandPool)                                                            \
	X(DestroyCommandPool)                                                           \
	X(AllocateCommandBuffers)                                                       \
	X(ResetCommandBuffer)                                                           \
	X(BeginCommandBuffer)                                                           \
	X(EndCommandBuffer)                                                             \
	X(CmdBindPipeline)                                                              \
	X(CmdBindDescriptorSets)                                                        \
	X(CmdPushConstants)                                                             \
	X(CmdDispatch)                                                                  \
	X(CmdPipelineBarrier)                                                           \
	X(CmdCopyBuffer)                                                                \
	X(CmdResetQueryPool)                                                            \
	X(CmdWriteTimestamp)                                                            \
	X(QueueSubmit)                                                                  \
	X(CreateFence)                                                                  \
	X(DestroyFence)                                                                 \
	X(ResetFences)                                                                  \
	X(WaitForFences)                                                                \
	X(CreateQueryPool)                                                              \
	X(DestroyQueryPool)                                                             \
	X(GetQueryPoolResults)

struct vulkan_calls {
#define X(name) PFN_vk##name name;
	VULKAN_GLOBAL_CALLS(X)
	VULKAN_INSTANCE_CALLS(X)
	VULKAN_DEVICE_CALLS(X)
#undef X
};

/* What the validation layer said: how often, and first. */
struct vulkan_messages {
	unsigned count;
	char id[96];           /* "VUID-..." */
	char text[200];
};

struct vulkan_instance {
	struct vulkan_calls vk;
	PFN_vkGetInstanceProcAddr address;
	VkInstance handle;
	VkDebugUtilsMessengerEXT messenger;
	struct vulkan_messages messages;
	VkPhysicalDevice devices[VULKAN_PHYSICAL];
	uint32_t count;
};

/* Validation messages of this process, those of closed instances too. */
unsigned vulkan_messages_total(void);

const char *vulkan_result_name(VkResult r); /* "VK_ERROR_DEVICE_LOST" */
/* "vkQueueSubmit: VK_ERROR_DEVICE_LOST"; ERR_NOMEM for want of memory, else ERR_DEVICE. */
int vulkan_failed(struct err *e, const char *call, VkResult r);

/* Called for each instance with its devices; returns 1 to keep it (freed with
 * vulkan_instance_free) and stop, 0 to go on. */
typedef int (*vulkan_visit)(void *arg, struct vulkan_instance *i);
/* Called for each driver file that is broken. */
typedef void (*vulkan_broken)(void *arg, const char *file, const struct err *why);

/* Visits one instance with all drivers or, when one of them breaks that, an instance for
 * each driver file.  -1: there is no loader, no driver, or no layer when it was asked for:
 * e says what. */
CHECKED int vulkan_walk(vulkan_visit visit, vulkan_broken broken, void *arg,
	struct err *e);
void vulkan_instance_free(struct vulkan_instance *i); /* NULL is fine */
/* The calls of a device, into i->vk. */
CHECKED int vulkan_device_calls(struct vulkan_instance *i, VkDevice d, struct err *e);

#endif
