/*
 * cpu-verify - the kernels that run on the processor against their fixtures.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return verify_main(&backend_cpu, argc, argv);
}
