#include "kernels/vulkan_impl.h"

int
vulkan_lose(struct backend_session *s, struct err *e, const char *call, VkResult r)
{
	if (r == VK_ERROR_DEVICE_LOST)
		s->lost = true;
	return vulkan_failed(e, call, r);
}

int
vulkan_check(struct backend_session *s, struct err *e)
{
	const struct vulkan_messages *m = &s->instance->messages;

	if (s->lost)
		return err_set(e, ERR_DEVICE, "the device was lost before: "
			       "VK_ERROR_DEVICE_LOST");
	if (m->count == 0)
		return 0;
	return err_set(e, ERR_DEVICE, "validation: %s: %s", m->id, m->text);
}

void
vulkan_barrier(struct backend_session *s)
{
	static const VkMemoryBarrier all = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};

	s->instance->vk.CmdPipelineBarrier(s->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
					   VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &all, 0,
					   NULL, 0, NULL);
}

int
vulkan_begin(struct backend_session *s, struct err *e)
{
	static const VkCommandBufferBeginInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	VkResult r;

	if (vulkan_check(s, e))
		return -1;
	/* A recording that failed half-way is still open. */
	if ((r = s->instance->vk.ResetCommandBuffer(s->commands, 0)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkResetCommandBuffer", r);
	if ((r = s->instance->vk.BeginCommandBuffer(s->commands, &info)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkBeginCommandBuffer", r);
	vulkan_barrier(s);
	return 0;
}

int
vulkan_end(struct backend_session *s, struct err *e)
{
	static const VkMemoryBarrier to_host = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_HOST_READ_BIT};
	VkResult r;

	s->instance->vk.CmdPipelineBarrier(s->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
					   VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
					   NULL, 0, NULL);
	if ((r = s->instance->vk.EndCommandBuffer(s->commands)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkEndCommandBuffer", r);
	return vulkan_check(s, e);
}

int
vulkan_submit(struct backend_session *s, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			     .commandBufferCount = 1,
			     .pCommandBuffers = &s->commands};
	VkResult r;

	if ((r = vk->ResetFences(s->device, 1, &s->fence)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkResetFences", r);
	if ((r = vk->QueueSubmit(s->queue, 1, &info, s->fence)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkQueueSubmit", r);
	r = vk->WaitForFences(s->device, 1, &s->fence, VK_TRUE,
			      VULKAN_WAIT_S * UINT64_C(1000000000));
	if (r == VK_SUCCESS)
		return vulkan_check(s, e);
	/* Its memory is still in use: nothing more can be done with it. */
	s->lost = true;
	return vulkan_lose(s, e, "vkWaitForFences", r);
}
