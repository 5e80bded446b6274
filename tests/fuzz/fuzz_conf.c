#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf c;
	struct err e = {0};
	size_t i;

	conf_default(&c);
	if (conf_parse((const char *)data, size, "fuzz", &c, &e)) {
		if (e.code == ERR_NONE || e.msg[0] == '\0')
			abort();
		return 0;
	}
	for (i = 0; i < CONF_COUNT; i++)
		if (c.v[i] < conf_rows[i].min || c.v[i] > conf_rows[i].max)
			abort();
	return 0;
}
