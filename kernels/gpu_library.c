#include "kernels/gpu_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"

static char simulated[64], path[1024];

const char *
gpu_library_simulated(void)
{
	return simulated[0] != '\0' ? simulated : NULL;
}

const char *
gpu_library_path(void)
{
	return path;
}

void
gpu_library_note(void *library, const char *symbol)
{
	const char *name = dlsym(library, "verify_simulated");
	void *address = dlsym(library, symbol);
	Dl_info info;

	if (name != NULL)
		snprintf(simulated, sizeof simulated, "%.60s", name);
	if (address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL)
		snprintf(path, sizeof path, "%.1000s", info.dli_fname);
}

/* Opens the first that is there.  When none is, why holds the loader's words: those about
 * a library that was found but could not be used before those about one that was not. */
static void *
open_first(const char *const *names, char *why, size_t size)
{
	const char *said;
	void *library;
	size_t i;

	why[0] = '\0';
	for (i = 0; names[i] != NULL; i++) {
		if ((library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL)) != NULL)
			return library;
		if ((said = dlerror()) == NULL)
			said = names[i];
		if (why[0] == '\0' || !str_starts(said, names[i]) ||
			strstr(said, "cannot open shared object file") == NULL)
			str_show(why, size, said, strlen(said));
	}
	return NULL;
}

int
gpu_library_load(const char *const *names, const struct gpu_symbol *symbols, size_t count,
	void *into, struct err *e)
{
	char why[256];
	void *library = open_first(names, why, sizeof why), *address;
	size_t i;

	if (library == NULL)
		return err_set(e, ERR_NO_DEVICE, "%s", why);
	gpu_library_note(library, symbols[0].name);
	for (i = 0; i < count; i++) {
		address = dlsym(library, symbols[i].name);
		if (address == NULL && !symbols[i].optional)
			return err_set(e, ERR_NO_DEVICE, "%s has no %s", names[0],
				symbols[i].name);
		memcpy((char *)into + symbols[i].at, &address, sizeof address);
	}
	return 0;
}

int
gpu_library_fail(const struct gpu_status *rows, size_t count, int status, const char *call,
	const char *name, struct err *e)
{
	enum err_code code = ERR_DEVICE;
	const char *hint = NULL;
	size_t i;

	for (i = 0; i < count; i++)
		if (rows[i].status == status) {
			code = rows[i].code;
			hint = rows[i].hint;
		}
	if (name != NULL)
		err_set(e, code, "%s: %s", call, name);
	else
		err_set(e, code, "%s: error %d", call, status);
	return hint ? err_hint(e, "%s", hint) : -1;
}

void
gpu_library_uuid(const uint8_t bytes[16], char out[37])
{
	static const uint8_t ends[] = { 4, 6, 8, 10, 16 };
	size_t i, at = 0, group;

	for (i = group = 0; group < str_count(ends); group++) {
		for (; i < ends[group]; i++, at += 2)
			(void)snprintf(out + at, 37 - at, "%02x", bytes[i]);
		if (i < 16)
			out[at++] = '-';
	}
}
