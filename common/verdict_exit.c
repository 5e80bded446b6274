/* The exit code of several runs together. */
#include "common/verdict.h"

#include "common/str.h"

int
verdict_worst_exit(const int *exits, size_t n)
{
	static const int order[] = {EXIT_USAGE, EXIT_FAIL, EXIT_INCOMPLETE, EXIT_UNREACHABLE,
		EXIT_REFUSED, EXIT_BLOCKED, EXIT_UNRECORDED, EXIT_PASS};
	size_t i, k, best = str_count(order);

	for (k = 0; k < n; k++) {
		for (i = 0; i < str_count(order) && order[i] != exits[k]; i++)
			;
		/* a status that no host can have hides nothing: it was cut off */
		i = i == str_count(order) ? 2 : i;
		best = i < best ? i : best;
	}
	return best < str_count(order) ? order[best] : EXIT_INCOMPLETE;
}
