/*
 * chip - which code objects run on which chip, and which compiler knows it.
 *
 * NVIDIA: a cubin runs on its own major version from its own minor on; with an `a` on that
 * chip alone, with an `f` on its major version from its minor on.  PTX is compiled by the
 * driver for its own and later chips (with an `a` for that chip alone).  AMD: a code object
 * runs on its own gfx name, a generic one on those that it stands for, and where it names
 * xnack or sramecc, only with that setting.
 * Source: the compatibility chapters of the CUDA and LLVM AMDGPU documentation.
 * Pure functions, any thread.
 */
#ifndef COMMON_CHIP_H
#define COMMON_CHIP_H

#include <stdbool.h>
#include <stddef.h>

enum chip_fit { CHIP_NO, CHIP_JIT, CHIP_NATIVE };

/* code: "sm_90a", "compute_80", "gfx90a:xnack-"; chip: "sm_90", "gfx942"; features of the
 * device: "sramecc+:xnack-", "" unknown. */
enum chip_fit chip_fits(const char *code, const char *chip, const char *features);
/* The name that a compiler takes for exactly that chip: "90a", "86", "gfx942"; false: the
 * chip is unknown to us. */
bool chip_flag(const char *chip, char *out, size_t size);
/* Least nvcc that knows the chip ("12.0" for 90a); "" no nvcc row. */
const char *chip_nvcc(const char *chip);
/* Names in a cmake list of architectures ("90a;86", "gfx90a;gfx942"): the first that no
 * compiler knows, NULL when all are fine. */
bool chip_list_known(const char *list, char *bad, size_t size);
/* -1, 0, 1 of dotted versions. */
int chip_version_compare(const char *a, const char *b);

#endif
