/*
 * emulated-verify - the sources of CUDA and HIP kernels, played on the processor, against their fixtures.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return verify_main(&backend_emulated, argc, argv);
}
