#include "kernels/vulkan_impl.h"

#include <stdlib.h>
#include <string.h>

static int
module_make(struct backend_session *s, enum vulkan_module m, struct err *e)
{
	VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
					 .codeSize = s->spirv[m].bytes,
					 .pCode = s->spirv[m].words};
	VkResult r;

	if (s->modules[m] != VK_NULL_HANDLE)
		return 0;
	r = s->instance->vk.CreateShaderModule(s->device, &info, NULL, &s->modules[m]);
	if (r != VK_SUCCESS) {
		vulkan_lose(s, e, "vkCreateShaderModule", r);
		return err_wrap(e, "%s.spv", s->spirv[m].name);
	}
	return 0;
}

static int
pipeline_make(struct backend_session *s, const struct vulkan_step *step, VkPipeline *out,
	      struct err *e)
{
	static const VkSpecializationMapEntry entries[VULKAN_SPECS] = {
		{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
	VkSpecializationInfo specs = {VULKAN_SPECS, entries, sizeof step->specs, step->specs};
	VkComputePipelineCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
			  .module = s->modules[step->module],
			  .pName = "main",
			  .pSpecializationInfo = &specs},
		.layout = s->layout};
	VkResult r;

	r = s->instance->vk.CreateComputePipelines(s->device, VK_NULL_HANDLE, 1, &info, NULL,
						   out);
	if (r == VK_SUCCESS)
		return 0;
	vulkan_lose(s, e, "vkCreateComputePipelines", r);
	return err_wrap(e, "%s.spv", s->spirv[step->module].name);
}

static int
pipeline_get(struct backend_session *s, const struct vulkan_step *step, VkPipeline *out,
	     struct err *e)
{
	struct vulkan_pipeline *p;
	size_t i;

	for (i = 0; i < s->pipeline_count; i++) {
		p = &s->pipelines[i];
		if (p->module == step->module &&
		    memcmp(p->specs, step->specs, sizeof p->specs) == 0) {
			*out = p->handle;
			return 0;
		}
	}
	if (s->pipeline_count == VULKAN_PIPELINES)
		return err_set(e, ERR_LIMIT, "more than %d pipelines", VULKAN_PIPELINES);
	p = &s->pipelines[s->pipeline_count];
	if (module_make(s, step->module, e) || pipeline_make(s, step, &p->handle, e))
		return -1;
	p->module = step->module;
	memcpy(p->specs, step->specs, sizeof p->specs);
	s->pipeline_count++;
	*out = p->handle;
	return vulkan_check(s, e);
}

/* The buffer of an operand; a shader's binding that has none gets the tables, which it
 * does not look at. */
static VkDescriptorBufferInfo
binding_info(const struct backend_session *s, const struct backend_args *a,
	     const struct vulkan_binding *b)
{
	const struct backend_buffer *buffers[] = {
		[VULKAN_NONE] = NULL,		[VULKAN_Q] = a->q.buffer,
		[VULKAN_K] = a->k.buffer,	[VULKAN_V] = a->v.buffer,
		[VULKAN_OUT] = a->out.buffer,	[VULKAN_WORK] = s->work};
	const struct backend_buffer *buffer = buffers[b->of];

	if (buffer == NULL || b->bytes == 0)
		return (VkDescriptorBufferInfo){s->tables->handle, 0, VK_WHOLE_SIZE};
	return (VkDescriptorBufferInfo){buffer->handle, b->at, b->bytes};
}

static void
set_fill(struct backend_session *s, VkDescriptorSet set, const struct backend_args *a,
	 const struct vulkan_step *step)
{
	static const struct vulkan_binding none = {VULKAN_NONE, 0, 0};
	VkDescriptorBufferInfo infos[VULKAN_SLOTS];
	VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
				      .dstSet = set,
				      .descriptorCount = VULKAN_SLOTS,
				      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
				      .pBufferInfo = infos};
	unsigned i;

	for (i = 0; i < VULKAN_BINDINGS; i++)
		infos[i] = binding_info(s, a, &step->bind[i]);
	infos[VULKAN_BINDINGS] = binding_info(s, a, &none);
	s->instance->vk.UpdateDescriptorSets(s->device, 1, &write, 0, NULL);
}

static int
pool_make(struct backend_session *s, size_t steps, VkDescriptorPool *out, struct err *e)
{
	VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
				     (uint32_t)steps * VULKAN_SLOTS};
	VkDescriptorPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = (uint32_t)steps,
		.poolSizeCount = 1,
		.pPoolSizes = &size};
	VkResult r = s->instance->vk.CreateDescriptorPool(s->device, &info, NULL, out);

	return r == VK_SUCCESS ? 0 : vulkan_lose(s, e, "vkCreateDescriptorPool", r);
}

static int
step_record(struct backend_session *s, VkDescriptorPool pool, const struct backend_args *a,
	    const struct vulkan_step *step, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	VkDescriptorSetAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorPool = pool,
		.descriptorSetCount = 1,
		.pSetLayouts = &s->set_layout};
	VkPipeline pipeline = VK_NULL_HANDLE;
	VkDescriptorSet set;
	VkResult r;

	if (pipeline_get(s, step, &pipeline, e))
		return -1;
	if ((r = vk->AllocateDescriptorSets(s->device, &info, &set)) != VK_SUCCESS)
		return vulkan_lose(s, e, "vkAllocateDescriptorSets", r);
	set_fill(s, set, a, step);
	if (step->wait)
		vulkan_barrier(s);
	vk->CmdBindPipeline(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vk->CmdBindDescriptorSets(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1,
				  &set, 0, NULL);
	vk->CmdPushConstants(s->commands, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
			     sizeof step->push, &step->push);
	vk->CmdDispatch(s->commands, step->grid[0], step->grid[1], 1);
	return 0;
}

static int
work_ensure(struct backend_session *s, size_t bytes, struct err *e)
{
	struct backend_buffer *b;

	if (bytes == 0 || (s->work != NULL && s->work->bytes >= bytes))
		return 0;
	if (vulkan_buffer_new(s, bytes, &b, e))
		return -1;
	vulkan_buffer_free(s, s->work);
	s->work = b;
	return 0;
}

/* Leaves the commands of the plan ready to be submitted, between two readings of the
 * clock when there are queries. */
static int
plan_record(struct backend_session *s, const struct vulkan_plan *p, VkDescriptorPool pool,
	    const struct backend_args *a, VkQueryPool queries, struct err *e)
{
	const struct vulkan_calls *vk = &s->instance->vk;
	size_t i;

	if (vulkan_begin(s, e))
		return -1;
	if (queries != VK_NULL_HANDLE) {
		vk->CmdResetQueryPool(s->commands, queries, 0, 2);
		vk->CmdWriteTimestamp(s->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
				      queries, 0);
	}
	for (i = 0; i < p->count; i++)
		if (step_record(s, pool, a, &p->steps[i], e))
			return -1;
	if (queries != VK_NULL_HANDLE)
		vk->CmdWriteTimestamp(s->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
				      queries, 1);
	return vulkan_end(s, e);
}

static int
span_inside(const char *what, const struct backend_span *s, struct err *e)
{
	if (s->buffer != NULL &&
	    (s->at > s->buffer->bytes || s->bytes > s->buffer->bytes - s->at))
		return err_set(e, ERR_USAGE, "%s: %zu bytes at %zu of a buffer of %zu", what,
			       s->bytes, s->at, s->buffer->bytes);
	return 0;
}

static int
plan_make(struct backend_session *s, const struct kernel *k, size_t variant,
	  const struct backend_args *a, struct vulkan_plan *out, struct err *e)
{
	if (vulkan_check(s, e) || span_inside("q", &a->q, e) || span_inside("k", &a->k, e) ||
	    span_inside("v", &a->v, e) || span_inside("out", &a->out, e))
		return -1;
	if (k == NULL)
		return vulkan_plan_copy(a, &s->limits, out, e);
	if (vulkan_plan_kernel(k, variant, a, &s->limits, out, e))
		return err_wrap(e, "%s", k->name);
	return 0;
}

int
vulkan_run(struct backend_session *s, const struct kernel *k, size_t variant,
	   const struct backend_args *a, struct err *e)
{
	VkDescriptorPool pool = VK_NULL_HANDLE;
	struct vulkan_plan p = {0};
	int rc = -1;

	if (plan_make(s, k, variant, a, &p, e))
		return -1;
	if (p.count > 0 && (work_ensure(s, p.work, e) || pool_make(s, p.count, &pool, e) ||
			    plan_record(s, &p, pool, a, VK_NULL_HANDLE, e) ||
			    vulkan_submit(s, e)))
		goto out;
	rc = 0;
out:
	s->instance->vk.DestroyDescriptorPool(s->device, pool, NULL);
	vulkan_plan_free(&p);
	return rc;
}

static int
clock_read(struct backend_session *s, double *seconds, struct err *e)
{
	uint64_t t[2], mask = s->time_bits >= 64 ? UINT64_MAX
						 : (UINT64_C(1) << s->time_bits) - 1;
	VkResult r;

	r = s->instance->vk.GetQueryPoolResults(s->device, s->queries, 0, 2, sizeof t, t,
						sizeof *t,
						VK_QUERY_RESULT_64_BIT |
							VK_QUERY_RESULT_WAIT_BIT);
	if (r != VK_SUCCESS)
		return vulkan_lose(s, e, "vkGetQueryPoolResults", r);
	*seconds = (double)((t[1] - t[0]) & mask) * s->tick;
	return 0;
}

int
vulkan_time(struct backend_session *s, const struct kernel *k, size_t variant,
	    const struct backend_args *a, const struct backend_timing *t, struct err *e)
{
	VkDescriptorPool pool = VK_NULL_HANDLE;
	struct vulkan_plan p = {0};
	double ignored;
	unsigned i;
	int rc = -1;

	if (s->queries == VK_NULL_HANDLE)
		return err_set(e, ERR_UNSUPPORTED, "its queue has no clock "
			       "(timestampValidBits 0)");
	if (plan_make(s, k, variant, a, &p, e))
		return -1;
	if (p.count == 0) {
		err_set(e, ERR_USAGE, "nothing to time: no keys");
		goto out;
	}
	if (work_ensure(s, p.work, e) || pool_make(s, p.count, &pool, e) ||
	    plan_record(s, &p, pool, a, s->queries, e))
		goto out;
	for (i = 0; i < t->warm + t->runs; i++)
		if (vulkan_submit(s, e) ||
		    clock_read(s, i < t->warm ? &ignored : &t->seconds[i - t->warm], e))
			goto out;
	rc = 0;
out:
	s->instance->vk.DestroyDescriptorPool(s->device, pool, NULL);
	vulkan_plan_free(&p);
	return rc;
}
