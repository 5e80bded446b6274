/* The Vulkan backend of a program that was built without Vulkan's headers or glslc. */
#include "kernels/backend.h"

static const char without[] = "built without Vulkan: libvulkan-dev or glslc was missing";

static int
none_list(struct backend_device *out, size_t max, size_t *count, struct err *e)
{
	(void)out, (void)max;
	*count = 0;
	return err_set(e, ERR_UNSUPPORTED, "%s", without);
}

static int
none_open(const struct backend_device *d, struct backend_session **out, struct err *e)
{
	(void)d, (void)out;
	return err_set(e, ERR_UNSUPPORTED, "%s", without);
}

static void
none_close(struct backend_session *s)
{
	(void)s;
}

/* Nothing else is called without a session. */
const struct kernel_backend backend_vulkan = {
	.name = "vulkan",
	.no_device = "build again where libvulkan-dev and glslc are installed",
	.list = none_list,
	.open = none_open,
	.close = none_close,
};
