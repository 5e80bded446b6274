/*
 * machine - what stand-in libraries of a recorded machine share: NAME.json of the folder
 * that VERIFY_MACHINE names, read once.  A library that uses it exports verify_simulated.
 * VERIFY_FAULT=crash|hang|flood plays a driver that does so in its first call, and so does
 * a member "fault" of the file; VERIFY_FAULT_WHEN=FILE only once that file is there.
 */
#ifndef TESTS_FAKE_MACHINE_H
#define TESTS_FAKE_MACHINE_H

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define FAKE(name, ...)           \
	int name(__VA_ARGS__);    \
	API int name(__VA_ARGS__)

API extern char verify_simulated[64];
char verify_simulated[64] = "?";

static cJSON *machine;

/* Before the first call: a program may ask who answers when it has loaded the library. */
static __attribute__((constructor)) void
machine_name(void)
{
	const char *dir = getenv("VERIFY_MACHINE"), *base = dir != NULL ? strrchr(dir, '/') : NULL;

	snprintf(verify_simulated, sizeof verify_simulated, "%.60s", base != NULL ? base + 1 : "?");
}

static __attribute__((unused)) void
machine_fault(const char *fault)
{
	int i;

	if (fault == NULL)
		return;
	if (strcmp(fault, "crash") == 0) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer would make an exit code of it */
		raise(SIGSEGV);
	}
	if (strcmp(fault, "hang") == 0)
		for (;;)
			pause();
	if (strcmp(fault, "flood") == 0)
		for (i = 0; i < 2000000; i++)
			puts("a driver that writes without an end, into whoever's output it is");
}

static __attribute__((unused)) void
machine_load(const char *file)
{
	const char *dir = getenv("VERIFY_MACHINE"), *when = getenv("VERIFY_FAULT_WHEN");
	char path[4096], *text;
	long n;
	FILE *f;

	if (machine != NULL)
		return;
	if (when == NULL || access(when, F_OK) == 0)
		machine_fault(getenv("VERIFY_FAULT"));
	snprintf(path, sizeof path, "%s/%s", dir ? dir : "", file);
	if ((f = fopen(path, "re")) == NULL)
		return;
	if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) > 0 && fseek(f, 0, SEEK_SET) == 0 &&
	    (text = malloc((size_t)n + 1)) != NULL) {
		text[fread(text, 1, (size_t)n, f)] = '\0';
		machine = cJSON_Parse(text);
		free(text);
	}
	fclose(f);
	machine_fault(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(machine, "fault")));
}

static __attribute__((unused)) int
machine_error(void)
{
	const cJSON *e = cJSON_GetObjectItemCaseSensitive(machine, "error");

	return cJSON_IsObject(e) ? cJSON_GetObjectItemCaseSensitive(e, "code")->valueint : 0;
}

/* What the library called that error, as it was recorded: "cuInit: CUDA_ERROR_...". */
static __attribute__((unused)) const char *
machine_error_name(int code)
{
	const cJSON *e = cJSON_GetObjectItemCaseSensitive(machine, "error");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "name"));
	const char *colon = name != NULL ? strstr(name, ": ") : NULL;

	return code != 0 && code == machine_error() ? (colon != NULL ? colon + 2 : name) : NULL;
}

static __attribute__((unused)) int
machine_count(int slices)
{
	const cJSON *d;
	int n = 0;

	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(machine, "devices"))
		n += cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(d, "parent")) == slices;
	return n;
}

/* The i-th device that is a card, or a slice. */
static __attribute__((unused)) const cJSON *
machine_device(int i, int slices)
{
	const cJSON *d;

	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(machine, "devices"))
		if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(d, "parent")) == slices && i-- == 0)
			return d;
	return NULL;
}

static __attribute__((unused)) const char *
machine_text(const cJSON *d, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(d, key));
}

static __attribute__((unused)) double
machine_number(const cJSON *d, const char *key, double fallback)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(d, key);

	return cJSON_IsNumber(v) ? v->valuedouble : fallback;
}

/* Digits of a UUID's text as bytes. */
static __attribute__((unused)) void
machine_uuid(const char *text, uint8_t out[16])
{
	unsigned v;
	int n = 0;

	memset(out, 0, 16);
	while (text != NULL && (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0))
		text += 4;
	for (; text != NULL && text[0] != '\0' && n < 16; text++)
		if (*text != '-' && sscanf(text, "%2x", &v) == 1) {
			out[n++] = (uint8_t)v;
			text++;
		}
}

#endif
