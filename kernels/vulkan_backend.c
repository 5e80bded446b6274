#include "kernels/vulkan_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "kernels/table.h"

/* As vulkan_args.glsl has it. */
struct vulkan_tables {
	float turbo3[8], turbo4[16], tbq3[8], polar[16], tcq[512];
	uint32_t signs32[1], residual[4]; /* bit maps, LSB first */
};

struct search {
	const struct backend_device *wanted;
	struct vulkan_instance *instance; /* NULL: not found */
	VkPhysicalDevice device;
};

/* A card with two drivers has one UUID for both. */
static bool
is_wanted(const struct backend_device *row, const struct backend_device *wanted)
{
	return str_eq(row->uuid, wanted->uuid) && str_eq(row->driver, wanted->driver);
}

static int
search_visit(void *arg, struct vulkan_instance *i)
{
	struct search *f = arg;
	struct backend_device row;
	uint32_t n;

	for (n = 0; n < i->count; n++) {
		vulkan_row(i, i->devices[n], &row);
		if (is_wanted(&row, f->wanted)) {
			f->instance = i, f->device = i->devices[n];
			return 1;
		}
	}
	return 0;
}

static void
search_broken(void *arg, const char *file, const struct err *why)
{
	(void)arg, (void)file, (void)why;
}

static int
device_find(struct backend_session *s, const struct backend_device *d, struct err *e)
{
	struct search f = {.wanted = d};

	if (d->note[0] != '\0')
		return err_set(e, ERR_UNSUPPORTED, "%s: %s", d->name, d->note);
	if (vulkan_walk(search_visit, search_broken, &f, e))
		return -1;
	if (f.instance == NULL)
		return err_set(e, ERR_NO_DEVICE, "no device with UUID %s and driver %s",
			       d->uuid, d->driver);
	s->instance = f.instance, s->physical = f.device;
	return 0;
}

static void
limits_read(struct backend_session *s)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkPhysicalDeviceMaintenance3Properties m = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
	VkPhysicalDeviceProperties2 p = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &m};
	const VkPhysicalDeviceLimits *l = &p.properties.limits;

	vk->GetPhysicalDeviceMemoryProperties(s->physical, &s->memory);
	vk->GetPhysicalDeviceProperties2(s->physical, &p);
	s->limits = (struct vulkan_limits){
		l->maxStorageBufferRange,
		{l->maxComputeWorkGroupCount[0], l->maxComputeWorkGroupCount[1]}};
	s->allocation_max = m.maxMemoryAllocationSize;
	s->tick = (double)l->timestampPeriod * 1e-9;
}

static int
device_make(struct backend_session *s, struct err *e)
{
	static const float priority = 1.0f;
	const struct vulkan_calls *vk = &s->instance->vk;
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
					 .queueCount = 1,
					 .pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
				   .queueCreateInfoCount = 1,
				   .pQueueCreateInfos = &queue};
	VkResult r;

	if (!vulkan_family(s->instance, s->physical, &s->family, &s->time_bits))
		return err_set(e, ERR_UNSUPPORTED, "it has no queue that computes");
	queue.queueFamilyIndex = s->family;
	r = vk->CreateDevice(s->physical, &info, NULL, &s->device);
	if (r != VK_SUCCESS) {
		s->device = VK_NULL_HANDLE;
		return vulkan_lose(s, e, "vkCreateDevice", r);
	}
	if (vulkan_device_calls(s->instance, s->device, e))
		return -1;
	vk->GetDeviceQueue(s->device, s->family, 0, &s->queue);
	return 0;
}

static int
commands_make(struct backend_session *s, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
					.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
					.queueFamilyIndex = s->family};
	VkCommandBufferAllocateInfo commands = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = 1};
	VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
					 .queryType = VK_QUERY_TYPE_TIMESTAMP,
					 .queryCount = 2};
	VkResult r;

	if ((r = vk->CreateCommandPool(s->device, &pool, NULL, &s->pool)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreateCommandPool", r);
	commands.commandPool = s->pool;
	if ((r = vk->AllocateCommandBuffers(s->device, &commands, &s->commands)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkAllocateCommandBuffers", r);
	if ((r = vk->CreateFence(s->device, &fence, NULL, &s->fence)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreateFence", r);
	if (s->time_bits > 0 &&
	    (r = vk->CreateQueryPool(s->device, &queries, NULL, &s->queries)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreateQueryPool", r);
	return 0;
}

static int
layouts_make(struct backend_session *s, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkDescriptorSetLayoutBinding slots[VULKAN_SLOTS];
	VkDescriptorSetLayoutCreateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = VULKAN_SLOTS,
		.pBindings = slots};
	VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct vulkan_push)};
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &s->set_layout,
		.pushConstantRangeCount = 1,
		.pPushConstantRanges = &push};
	uint32_t i;
	VkResult r;

	for (i = 0; i < VULKAN_SLOTS; i++)
		slots[i] = (VkDescriptorSetLayoutBinding){
			i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
			NULL};
	r = vk->CreateDescriptorSetLayout(s->device, &set, NULL, &s->set_layout);
	if (r != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreateDescriptorSetLayout", r);
	if ((r = vk->CreatePipelineLayout(s->device, &layout, NULL, &s->layout)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreatePipelineLayout", r);
	return 0;
}

/* All of them now: a bad file is found before anything runs. */
static int
spirv_load(struct backend_session *s, struct err *e)
{
	const char *dir = getenv("VERIFY_SPIRV_DIR");
	int m;

	if (dir != NULL && *dir == '\0')
		dir = NULL;
	s->from_files = dir != NULL;
	for (m = 0; m < VULKAN_MODULE_COUNT; m++)
		if (vulkan_spirv_load((enum vulkan_module)m, dir, &s->spirv[m], e))
			return -1;
	return 0;
}

static void
map_words(uint32_t *out, const uint8_t *map, size_t words)
{
	size_t i;

	for (i = 0; i < words; i++, map += 4)
		out[i] = map[0] | (uint32_t)map[1] << 8 | (uint32_t)map[2] << 16 |
			 (uint32_t)map[3] << 24;
}

static int
tables_make(struct backend_session *s, struct err *e)
{
	struct vulkan_tables t;

	memcpy(t.turbo3, table_turbo3_centroids, sizeof t.turbo3);
	memcpy(t.turbo4, table_turbo4_centroids, sizeof t.turbo4);
	memcpy(t.tbq3, table_tbq3_codebook, sizeof t.tbq3);
	memcpy(t.polar, table_polar_centroids, sizeof t.polar);
	memcpy(t.tcq, table_tcq_codebook, sizeof t.tcq);
	map_words(t.signs32, table_signs32, 1);
	map_words(t.residual, table_polar_residual, 4);
	if (vulkan_buffer_new(s, sizeof t, &s->tables, e) ||
	    vulkan_write(s, s->tables, 0, &t, sizeof t, e))
		return -1;
	return 0;
}

static void
session_close(struct backend_session *s)
{
	const struct vulkan_calls *vk;
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < VULKAN_MODULE_COUNT; i++)
		vulkan_spirv_free(&s->spirv[i]);
	if (s->instance == NULL || s->device == VK_NULL_HANDLE ||
	    s->instance->vk.GetQueryPoolResults == NULL)
		goto out;
	vk = &s->instance->vk;
	/* A lost device may never become idle. */
	if (!s->lost)
		(void)vk->DeviceWaitIdle(s->device);
	while (s->buffers != NULL)
		vulkan_buffer_free(s, s->buffers);
	for (i = 0; i < s->pipeline_count; i++)
		vk->DestroyPipeline(s->device, s->pipelines[i].handle, NULL);
	for (i = 0; i < VULKAN_MODULE_COUNT; i++)
		vk->DestroyShaderModule(s->device, s->modules[i], NULL);
	vk->DestroyPipelineLayout(s->device, s->layout, NULL);
	vk->DestroyDescriptorSetLayout(s->device, s->set_layout, NULL);
	vk->DestroyQueryPool(s->device, s->queries, NULL);
	vk->DestroyFence(s->device, s->fence, NULL);
	vk->DestroyCommandPool(s->device, s->pool, NULL);
	vk->DestroyBuffer(s->device, s->staging, NULL);
	vk->FreeMemory(s->device, s->staging_memory, NULL);
	vk->DestroyDevice(s->device, NULL);
out:
	vulkan_instance_free(s->instance);
	free(s);
}

static int
session_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	struct backend_session *s = calloc(1, sizeof *s);
	int rc = -1;

	if (s == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a Vulkan session");
	if (spirv_load(s, e) || device_find(s, d, e))
		goto out;
	limits_read(s);
	if (device_make(s, e) || commands_make(s, e) || layouts_make(s, e) ||
	    vulkan_staging_new(s, e) || tables_make(s, e) || vulkan_check(s, e))
		goto out;
	*out = s;
	s = NULL;
	rc = 0;
out:
	session_close(s);
	return rc;
}

static size_t
session_code(struct backend_session *s, struct backend_code *out, size_t max)
{
	size_t i;

	for (i = 0; i < VULKAN_MODULE_COUNT && i < max; i++) {
		memset(&out[i], 0, sizeof out[i]);
		snprintf(out[i].name, sizeof out[i].name, "%s.spv", s->spirv[i].name);
		memcpy(out[i].sha256, s->spirv[i].sha256, sizeof out[i].sha256);
		snprintf(out[i].how, sizeof out[i].how, "SPIR-V 1.3, %s",
			 s->from_files ? "of VERIFY_SPIRV_DIR" : "embedded");
	}
	return i;
}

static size_t
session_variants(struct backend_session *s, const struct kernel *k,
		 const char *names[BACKEND_VARIANTS])
{
	(void)s;
	return vulkan_plan_variants(k, names);
}

const struct kernel_backend backend_vulkan = {
	.name = "vulkan",
	.no_device = "install libvulkan1 and the driver of the card; NVIDIA's also needs "
		     "libglvnd0, libegl1, libgl1 and libglx0",
	.list = vulkan_list,
	.open = session_open,
	.close = session_close,
	.code = session_code,
	.buffer_new = vulkan_buffer_new,
	.buffer_free = vulkan_buffer_free,
	.write = vulkan_write,
	.read = vulkan_read,
	.copy = vulkan_copy,
	.variants = session_variants,
	.run = vulkan_run,
	.time = vulkan_time,
};
