#include "agent/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"

const char *
machine_dir(void)
{
	const char *dir = getenv("VERIFY_MACHINE");

	return dir != NULL && dir[0] != '\0' ? dir : NULL;
}

const char *
machine_name(void)
{
	const char *dir = machine_dir(), *slash;

	if (dir == NULL)
		return "";
	slash = strrchr(dir, '/');
	return slash != NULL && slash[1] != '\0' ? slash + 1 : dir;
}

int
machine_uname(struct utsname *out)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} rows[] = {
		{"os", out->sysname, sizeof out->sysname}, {"arch", out->machine, sizeof out->machine},
		{"kernel", out->release, sizeof out->release},
	};
	char path[4096];
	cJSON *o = NULL;
	size_t i;

	if (uname(out))
		return -1;
	if (machine_dir() == NULL)
		return 0;
	if (str_fmt(path, sizeof path, NULL, "%s/machine.json", machine_dir()) ||
	    json_load(path, 65536, &o, NULL))
		return -1;
	for (i = 0; i < str_count(rows); i++)
		if (json_str(o, rows[i].key) != NULL)
			snprintf(rows[i].to, rows[i].size, "%s", json_str(o, rows[i].key));
	cJSON_Delete(o);
	return 0;
}
