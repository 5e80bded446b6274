/*
 * vulkan_modules - the SPIR-V that is embedded, for C and for the assembler: X(NAME).
 *
 * The Makefile makes NAME.spv from NAME.comp, and NAME_plain.spv from it with PLAIN.
 */
#ifndef KERNELS_VULKAN_MODULES_H
#define KERNELS_VULKAN_MODULES_H

#define VULKAN_MODULES(X)                                                               \
	X(turbo3)                                                                       \
	X(turbo3_plain)                                                                 \
	X(turbo4)                                                                       \
	X(turbo4_plain)                                                                 \
	X(turbo3_tcq)                                                                   \
	X(turbo3_tcq_plain)                                                             \
	X(qjl)                                                                          \
	X(qjl_plain)                                                                    \
	X(polar)                                                                        \
	X(polar_plain)                                                                  \
	X(polar_preht)                                                                  \
	X(polar_preht_plain)                                                            \
	X(fused_attn_qjl_tbq)                                                           \
	X(fused_attn_qjl_tbq_plain)                                                     \
	X(fused_attn_qjl_polar)                                                         \
	X(fused_attn_qjl_polar_plain)                                                   \
	X(fused_merge)                                                                  \
	X(copy)

#endif
