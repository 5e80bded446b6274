/*
 * gpu_library - a driver's library, found at run time, and the errors of its calls.
 */
#ifndef KERNELS_GPU_LIBRARY_H
#define KERNELS_GPU_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* One function of the library: where its address goes in the caller's struct. */
struct gpu_symbol {
	const char *name;
	size_t at;             /* offsetof a function pointer */
	int optional;          /* stays NULL when the library has none */
};

/* Opens the first library that is there and fills the pointers of into.  It stays loaded:
 * drivers do not like to be unloaded.  -1: ERR_NO_DEVICE, in the loader's own words. */
CHECKED int gpu_library_load(const char *const *names, const struct gpu_symbol *symbols,
	size_t count, void *into, struct err *e);

/* Keeps where an open library lies (it exports symbol), and whether it is what it seems. */
void gpu_library_note(void *library, const char *symbol);

/* The name of the recorded machine when a library that was loaded is a stand-in (it exports
 * verify_simulated, a text); NULL when all were real. */
const char *gpu_library_simulated(void);
/* Path of the library that was loaded last; "" none. */
const char *gpu_library_path(void);

/* What an API's error number means for us; a number that is in no row is ERR_DEVICE. */
struct gpu_status {
	int status;
	enum err_code code;
	const char *hint;      /* NULL: none */
};
/* Sets "call: NAME"; name NULL: the number. */
int gpu_library_fail(const struct gpu_status *rows, size_t count, int status,
	const char *call, const char *name, struct err *e);

/* 8-4-4-4-12 lower case hex. */
void gpu_library_uuid(const uint8_t bytes[16], char out[37]);

#endif
