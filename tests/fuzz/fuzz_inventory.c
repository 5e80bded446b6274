/* hosts.conf, and its first line again as a host expression. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host_names names = {0};
	struct inventory *inv = NULL;
	struct reach reach;
	struct err e = {0};
	char line[256];
	size_t i, n = 0;

	if (inventory_parse((const char *)data, size, &inv, &e) == 0)
		for (i = 0; i < inv->count; i++)
			if (host_reach(&inv->hosts[i], &reach, &e) == 0 &&
			    reach.base[0] == '\0')
				abort();
	inventory_free(inv);
	while (n < size && n < sizeof line - 1 && data[n] != '\n')
		n++;
	memcpy(line, data, n);
	line[n] = '\0';
	if (host_names_add(&names, line, &e) == 0 && names.count == 0)
		abort();
	host_names_fini(&names);
	return 0;
}
