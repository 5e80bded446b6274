/*
 * cpu-verify - the reference kernels against their fixtures, as a program.
 */
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	return cpu_verify_main(argc, argv);
}
