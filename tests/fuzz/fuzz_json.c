#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What is accepted is written the same twice, and can be read again. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = {0};
	cJSON *o = NULL, *again = NULL;
	char *text, *second;

	if (json_parse((const char *)p, n, 1u << 20, &o, &e)) {
		if (o != NULL || e.code == ERR_NONE || e.msg[0] == '\0')
			__builtin_trap();
		return 0;
	}
	if (json_check((const char *)p, n, 1u << 20, &e))
		__builtin_trap();
	if ((text = json_text(o, false)) == NULL)
		__builtin_trap();
	/* escapes may make it longer, never unreadable */
	if (json_parse(text, strlen(text), 8u << 20, &again, &e))
		__builtin_trap();
	if ((second = json_text(again, false)) == NULL || strcmp(text, second) != 0)
		__builtin_trap();
	free(text);
	free(second);
	cJSON_Delete(o);
	cJSON_Delete(again);
	return 0;
}
