/*
 * hip-verify - the kernels for AMD GPUs, through the HIP runtime, against their fixtures.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return verify_main(&backend_hip, argc, argv);
}
