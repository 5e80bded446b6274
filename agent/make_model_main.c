/* The stand-alone program `make-model`. */
#include "agent/make_model.h"

int
main(int argc, char **argv)
{
	return make_model_main(argc, argv);
}
