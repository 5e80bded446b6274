/*
 * json - the only JSON seam: a strict bounded check in front of cJSON, and readers.
 *
 * Refused with ERR_PARSE: not UTF-8, a byte order mark (unless allowed), duplicate keys,
 * numbers that are not finite as doubles, NUL characters in strings, anything after the
 * value; with ERR_LIMIT: deeper than JSON_MAX_DEPTH or longer than the caller's maximum.
 * Messages name line and column.  Threads: no shared state.
 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"

#define JSON_MAX_DEPTH 32
#define JSON_MAX_INT 9007199254740991.0 /* 2^53 - 1: exact in a double */

/* Borrows text; gives *out, freed with cJSON_Delete.  max_bytes bounds len. */
CHECKED int json_parse(const char *text, size_t len, size_t max_bytes, cJSON **out,
	struct err *e);
/* The check alone: what json_parse does before it builds the tree. */
CHECKED int json_check(const char *text, size_t len, size_t max_bytes, struct err *e);
/* Reads a file of at most max_bytes and parses it. */
CHECKED int json_load(const char *path, size_t max_bytes, cJSON **out, struct err *e);

/* The object among what a program prints: from the first line that begins with a brace to
 * the last brace.  Gives where, of *n bytes; NULL when there is none. */
const char *json_object_in(const char *text, size_t len, size_t *n);

/* Readers that tolerate absence: NULL, false or the fallback when o is NULL, not an
 * object, the key is missing or of another type. */
const cJSON *json_get(const cJSON *o, const char *key);
const char *json_str(const cJSON *o, const char *key);
bool json_bool(const cJSON *o, const char *key, bool fallback);
double json_num(const cJSON *o, const char *key, double fallback);
int64_t json_int(const cJSON *o, const char *key, int64_t fallback);
/* Dotted path of keys: "device.class". */
const cJSON *json_path(const cJSON *o, const char *path);
const char *json_path_str(const cJSON *o, const char *path);

/* Readers that insist: ERR_PARSE names the key and what was found. */
CHECKED int json_need_str(const cJSON *o, const char *key, const char **out,
	struct err *e);
CHECKED int json_need_int(const cJSON *o, const char *key, int64_t min, int64_t max,
	int64_t *out, struct err *e);
/* Fails on a key of o that is not in keys (NULL-terminated), naming it. */
CHECKED int json_known(const cJSON *o, const char *const *keys, struct err *e);

/* Writers: add and ignore nothing - false means no memory.  A NULL string writes null.
 * The key must not be there yet. */
bool json_add_str(cJSON *o, const char *key, const char *s);
/* Same, for text that came from outside: bytes that are not UTF-8 become U+FFFD. */
bool json_add_text(cJSON *o, const char *key, const char *s, size_t len);
bool json_add_int(cJSON *o, const char *key, int64_t v);
bool json_add_num(cJSON *o, const char *key, double v); /* not finite: writes null */
bool json_add_bool(cJSON *o, const char *key, bool v);
bool json_add_null(cJSON *o, const char *key);
/* Takes item (also on failure); NULL item fails. */
bool json_add(cJSON *o, const char *key, cJSON *item);
cJSON *json_add_object(cJSON *o, const char *key);
cJSON *json_add_array(cJSON *o, const char *key);

/* Gives text, freed with free(); NULL when out of memory.  pretty: indented, with a
 * final newline. */
char *json_text(const cJSON *o, bool pretty);

#endif
