/* A kernel fixture; what is taken is also run, so that no size it states can lie. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/fixture.h"
#include "kernels/verify.h"

/* The scalar truth, the last of the list. */
static struct rig *
scalar(void)
{
	static struct backend_device list[BACKEND_DEVICES];
	static struct rig rig;
	struct err e = {0};
	size_t n;

	if (rig.session == NULL && (backend_cpu.list(list, BACKEND_DEVICES, &n, &e) || n == 0 ||
					   rig_open(&backend_cpu, &list[n - 1], &rig, &e)))
		abort();
	return &rig;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verify_check check;
	struct fixture *f = NULL;
	struct err e = {0};
	size_t i;

	if (fixture_parse((const char *)data, size, &f, &e)) {
		if (f != NULL || e.msg[0] == '\0')
			abort();
		return 0;
	}
	for (i = 0; i < KERNEL_COUNT; i++) {
		if (fixture_fits(f, &kernels[i], &e))
			continue;
		verify_fixture(scalar(), &kernels[i], 0, f, 1e-3, &check);
		/* The kernels write what they were given room for, whatever the bytes. */
		if (!check.guard_intact || check.elements == 0)
			abort();
	}
	fixture_free(f);
	return 0;
}
