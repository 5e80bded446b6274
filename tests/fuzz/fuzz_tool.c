/* What a tool prints may be anything: the first byte picks the tool, the second its exit. */
#include <stdint.h>
#include <stdlib.h>

#include "common/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tool_answer a;
	cJSON *o;

	if (size < 2)
		return 0;
	tool_parse((enum tool_kind)(data[0] % TOOL_KIND_COUNT), (const char *)data + 2, size - 2,
		(int8_t)data[1], &a);
	if (a.count < 0 || a.count > TOOL_MAX_DEVICES || a.op_count > TOOL_MAX_OPS)
		abort();
	if ((o = tool_json(&a)) == NULL)
		abort();
	cJSON_Delete(o);
	return 0;
}
