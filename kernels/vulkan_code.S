/* The shaders, so that one file is the whole program. */
#include "kernels/vulkan_modules.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define EMBED(name)                                                                     \
	.global vulkan_spirv_##name, vulkan_spirv_##name##_end;                         \
	.balign 16;                                                                     \
	vulkan_spirv_##name:;                                                           \
	.incbin TEXT(build/device/name.spv);                                                \
	vulkan_spirv_##name##_end:;                                                     \
	.byte 0;

	.section .rodata
VULKAN_MODULES(EMBED)

	.section .note.GNU-stack, "", %progbits
