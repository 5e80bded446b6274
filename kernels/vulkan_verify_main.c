/*
 * vulkan-verify - the kernels for Vulkan devices, against their fixtures.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return verify_main(&backend_vulkan, argc, argv);
}
