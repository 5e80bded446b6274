/*
 * vulkan_impl - what the files of the Vulkan backend share: one open device.
 */
#ifndef KERNELS_VULKAN_IMPL_H
#define KERNELS_VULKAN_IMPL_H

#include "kernels/backend.h"
#include "kernels/vulkan_load.h"
#include "kernels/vulkan_plan.h"
#include "kernels/vulkan_spirv.h"

#define VULKAN_STAGING ((size_t)16 << 20)
#define VULKAN_SLOTS 5          /* storage buffers of a shader */
#define VULKAN_PIPELINES 128
#define VULKAN_WAIT_S 600       /* for one submission */

struct backend_buffer {
	VkBuffer handle;
	VkDeviceMemory memory;
	size_t bytes;           /* as asked for; there are VULKAN_SLACK more */
	struct backend_buffer *next, **link;
};

struct vulkan_pipeline {
	enum vulkan_module module;
	uint32_t specs[VULKAN_SPECS];
	VkPipeline handle;
};

struct backend_session {
	struct vulkan_instance *instance;
	VkPhysicalDevice physical;
	VkPhysicalDeviceMemoryProperties memory;
	struct vulkan_limits limits; /* a test may make them smaller */
	VkDeviceSize allocation_max;
	uint32_t family, time_bits;
	double tick;            /* seconds */
	VkDevice device;
	VkQueue queue;
	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
	VkQueryPool queries;    /* none where the queue has no clock */
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	struct vulkan_spirv spirv[VULKAN_MODULE_COUNT];
	bool from_files;
	VkShaderModule modules[VULKAN_MODULE_COUNT]; /* made when first used */
	struct vulkan_pipeline pipelines[VULKAN_PIPELINES];
	size_t pipeline_count;
	struct backend_buffer *buffers; /* all of them */
	struct backend_buffer *tables, *work;
	VkBuffer staging;
	VkDeviceMemory staging_memory;
	uint8_t *staged;        /* mapped, coherent */
	bool lost;
};

/* vulkan_list.c: the row of a device, complete but for its index. */
void vulkan_row(struct vulkan_instance *i, VkPhysicalDevice d, struct backend_device *out);
/* Family of a queue that computes, one with a clock first; false: there is none. */
bool vulkan_family(struct vulkan_instance *i, VkPhysicalDevice d, uint32_t *family,
	uint32_t *time_bits);
CHECKED int vulkan_list(struct backend_device *out, size_t max, size_t *count,
	struct err *e);

/* vulkan_buffer.c.  Device-local where the device has such memory. */
CHECKED int vulkan_buffer_new(struct backend_session *s, size_t bytes,
	struct backend_buffer **out, struct err *e);
void vulkan_buffer_free(struct backend_session *s, struct backend_buffer *b);
CHECKED int vulkan_staging_new(struct backend_session *s, struct err *e);
CHECKED int vulkan_write(struct backend_session *s, struct backend_buffer *b, size_t at,
	const void *src, size_t bytes, struct err *e);
CHECKED int vulkan_read(struct backend_session *s, struct backend_buffer *b, size_t at,
	void *dst, size_t bytes, struct err *e);
CHECKED int vulkan_copy(struct backend_session *s, struct backend_buffer *to,
	size_t to_at, struct backend_buffer *from, size_t from_at, size_t bytes,
	struct err *e);

/* vulkan_submit.c: commands between begin and end are run at once and waited for; what
 * earlier ones wrote is seen.  vulkan_check is -1 when the session is lost or the
 * validation layer has said something. */
CHECKED int vulkan_begin(struct backend_session *s, struct err *e);
void vulkan_barrier(struct backend_session *s);
CHECKED int vulkan_end(struct backend_session *s, struct err *e);
CHECKED int vulkan_submit(struct backend_session *s, struct err *e);
CHECKED int vulkan_check(struct backend_session *s, struct err *e);
/* vulkan_failed that also loses the session when the device is lost. */
int vulkan_lose(struct backend_session *s, struct err *e, const char *call, VkResult r);

/* vulkan_run.c */
CHECKED int vulkan_run(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, struct err *e);
CHECKED int vulkan_time(struct backend_session *s, const struct kernel *k, size_t variant,
	const struct backend_args *a, const struct backend_timing *t, struct err *e);

#endif
