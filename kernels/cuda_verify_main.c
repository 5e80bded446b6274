/*
 * cuda-verify - the kernels for NVIDIA GPUs, through the CUDA driver, against their fixtures.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return verify_main(&backend_cuda, argc, argv);
}
