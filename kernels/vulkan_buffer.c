#include "kernels/vulkan_impl.h"

#include <stdlib.h>
#include <string.h>

/* First memory type of those bits that has all the properties; UINT32_MAX: none. */
static uint32_t
memory_type(const struct backend_session *s, uint32_t bits, VkMemoryPropertyFlags wanted)
{
	uint32_t t;

	for (t = 0; t < s->memory.memoryTypeCount; t++)
		if ((bits >> t & 1) &&
		    (s->memory.memoryTypes[t].propertyFlags & wanted) == wanted)
			return t;
	return UINT32_MAX;
}

static int
memory_bind(struct backend_session *s, VkBuffer b, uint32_t type, VkDeviceSize size,
	    VkDeviceMemory *out, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
				     .allocationSize = size,
				     .memoryTypeIndex = type};
	uint32_t heap = s->memory.memoryTypes[type].heapIndex;
	VkResult r;

	if (size > s->memory.memoryHeaps[heap].size || size > s->allocation_max)
		return err_set(e, ERR_NOMEM,
			       "%llu bytes of the device's memory: its heap has %llu, and "
			       "maxMemoryAllocationSize is %llu", (unsigned long long)size,
			       (unsigned long long)s->memory.memoryHeaps[heap].size,
			       (unsigned long long)s->allocation_max);
	if ((r = vk->AllocateMemory(s->device, &info, NULL, out)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkAllocateMemory", r);
	if ((r = vk->BindBufferMemory(s->device, b, *out, 0)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkBindBufferMemory", r);
	return 0;
}

static int
handle_new(struct backend_session *s, VkDeviceSize size, VkBufferUsageFlags usage,
	   VkBuffer *out, VkMemoryRequirements *needs, struct err *e)
{
	VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
				   .size = size,
				   .usage = usage};
	VkResult r = s->instance->vk.CreateBuffer(s->device, &info, NULL, out);

	if (r != VK_SUCCESS)
		return vulkan_lose(s, e, "vkCreateBuffer", r);
	s->instance->vk.GetBufferMemoryRequirements(s->device, *out, needs);
	return 0;
}

int
vulkan_buffer_new(struct backend_session *s, size_t bytes, struct backend_buffer **out,
		  struct err *e)
{
	struct backend_buffer *b = NULL;
	VkMemoryRequirements needs;
	uint32_t type;
	int rc = -1;

	if (vulkan_check(s, e))
		return -1;
	/* Before the driver sees it: some take any size and fail much later. */
	if (bytes > s->allocation_max - VULKAN_SLACK - 16)
		return err_set(e, ERR_NOMEM, "a buffer of %zu bytes: maxMemoryAllocationSize "
			       "is %llu", bytes, (unsigned long long)s->allocation_max);
	if ((b = calloc(1, sizeof *b)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a buffer");
	b->bytes = bytes;
	if (handle_new(s, (bytes + 15) / 16 * 16 + VULKAN_SLACK,
		       VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
			       VK_BUFFER_USAGE_TRANSFER_DST_BIT,
		       &b->handle, &needs, e))
		goto out;
	type = memory_type(s, needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
	if (type == UINT32_MAX)
		type = memory_type(s, needs.memoryTypeBits, 0);
	if (type == UINT32_MAX) {
		err_set(e, ERR_DEVICE, "vkGetBufferMemoryRequirements: no memory type fits");
		goto out;
	}
	if (memory_bind(s, b->handle, type, needs.size, &b->memory, e))
		goto out;
	b->next = s->buffers, b->link = &s->buffers;
	if (b->next != NULL)
		b->next->link = &b->next;
	s->buffers = b;
	*out = b;
	b = NULL;
	rc = vulkan_check(s, e);
out:
	vulkan_buffer_free(s, b);
	return rc;
}

void
vulkan_buffer_free(struct backend_session *s, struct backend_buffer *b)
{
	if (b == NULL)
		return;
	if (b->link != NULL) {
		*b->link = b->next;
		if (b->next != NULL)
			b->next->link = b->link;
	}
	s->instance->vk.DestroyBuffer(s->device, b->handle, NULL);
	s->instance->vk.FreeMemory(s->device, b->memory, NULL);
	free(b);
}

int
vulkan_staging_new(struct backend_session *s, struct err *e)
{
	VkMemoryPropertyFlags flags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
				      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	VkMemoryRequirements needs;
	void *mapped = NULL;
	uint32_t type;
	VkResult r;

	if (handle_new(s, VULKAN_STAGING,
		       VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
		       &s->staging, &needs, e))
		return -1;
	/* Reading memory that is not cached is slow, but every device has that. */
	type = memory_type(s, needs.memoryTypeBits, flags | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
	if (type == UINT32_MAX)
		type = memory_type(s, needs.memoryTypeBits, flags);
	if (type == UINT32_MAX)
		return err_set(e, ERR_DEVICE,
			       "vkGetBufferMemoryRequirements: no memory that the host sees");
	if (memory_bind(s, s->staging, type, needs.size, &s->staging_memory, e))
		return -1;
	r = s->instance->vk.MapMemory(s->device, s->staging_memory, 0, VK_WHOLE_SIZE, 0,
				      &mapped);
	if (r != VK_SUCCESS)
		return vulkan_lose(s, e, "vkMapMemory", r);
	s->staged = mapped;
	return 0;
}

static int
range_check(const struct backend_buffer *b, size_t at, size_t bytes, struct err *e)
{
	if (at > b->bytes || bytes > b->bytes - at)
		return err_set(e, ERR_USAGE, "%zu bytes at %zu of a buffer of %zu", bytes, at,
			       b->bytes);
	return 0;
}

static int
transfer(struct backend_session *s, VkBuffer to, size_t to_at, VkBuffer from, size_t from_at,
	 size_t bytes, struct err *e)
{
	VkBufferCopy region = {.srcOffset = from_at, .dstOffset = to_at, .size = bytes};

	if (vulkan_begin(s, e))
		return -1;
	s->instance->vk.CmdCopyBuffer(s->commands, from, to, 1, &region);
	return vulkan_end(s, e) || vulkan_submit(s, e) ? -1 : 0;
}

int
vulkan_write(struct backend_session *s, struct backend_buffer *b, size_t at, const void *src,
	     size_t bytes, struct err *e)
{
	const uint8_t *from = src;
	size_t n;

	if (range_check(b, at, bytes, e))
		return -1;
	for (; bytes > 0; bytes -= n, at += n, from += n) {
		n = bytes < VULKAN_STAGING ? bytes : VULKAN_STAGING;
		memcpy(s->staged, from, n);
		if (transfer(s, b->handle, at, s->staging, 0, n, e))
			return -1;
	}
	return 0;
}

int
vulkan_read(struct backend_session *s, struct backend_buffer *b, size_t at, void *dst,
	    size_t bytes, struct err *e)
{
	uint8_t *to = dst;
	size_t n;

	if (range_check(b, at, bytes, e))
		return -1;
	for (; bytes > 0; bytes -= n, at += n, to += n) {
		n = bytes < VULKAN_STAGING ? bytes : VULKAN_STAGING;
		if (transfer(s, s->staging, 0, b->handle, at, n, e))
			return -1;
		memcpy(to, s->staged, n);
	}
	return 0;
}

int
vulkan_copy(struct backend_session *s, struct backend_buffer *to, size_t to_at,
	    struct backend_buffer *from, size_t from_at, size_t bytes, struct err *e)
{
	if (range_check(to, to_at, bytes, e) || range_check(from, from_at, bytes, e))
		return -1;
	if (to == from && to_at < from_at + bytes && from_at < to_at + bytes)
		return err_set(e, ERR_USAGE, "a copy of %zu bytes onto itself", bytes);
	if (bytes == 0)
		return 0;
	return transfer(s, to->handle, to_at, from->handle, from_at, bytes, e);
}
