#include "kernels/cpu.h"

#include "common/str.h"

static bool
always(void)
{
	return true;
}

const struct cpu_set cpu_scalar = {
	.arch = "scalar", .variant = "scalar", .usable = always};

const struct cpu_set *const cpu_sets[] = {
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
