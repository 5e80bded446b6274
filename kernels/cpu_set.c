#include "kernels/cpu.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common/str.h"

static bool
is_always(void)
{
	return true;
}

const struct cpu_set cpu_scalar = {
	.arch = "scalar", .variant = "scalar", .usable = is_always};

#ifdef __x86_64__
/* The builtin also asks whether the system saves the registers; F16C, which not every
 * compiler's builtin knows, has no others than AVX. */
static bool
has_avx2(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool
has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const struct cpu_set avx512 = {"x86-64 avx512", "avx512", has_avx512, cpu_avx512,
				      CPU_KERNELS};
static const struct cpu_set avx2 = {"x86-64 avx2", "avx2", has_avx2, cpu_avx2,
				    CPU_KERNELS};
#endif

#ifdef __aarch64__
/* Every processor of the architecture has it. */
static const struct cpu_set neon = {"aarch64 neon", "neon", is_always, cpu_neon,
				    CPU_KERNELS};
#endif

const struct cpu_set *const cpu_sets[] = {
#ifdef __x86_64__
	&avx512,
	&avx2,
#endif
#ifdef __aarch64__
	&neon,
#endif
	&cpu_scalar,
};
const size_t cpu_set_count = str_count(cpu_sets);

ref_run
cpu_find(const struct cpu_set *s, ref_run scalar)
{
	size_t i;

	if (s->kernels == NULL)
		return scalar;
	for (i = 0; i < s->kernel_count; i++)
		if (s->kernels[i].scalar == scalar)
			return s->kernels[i].run;
	return NULL;
}
