/*
 * str - bounded strings, growing buffers with a maximum, text to numbers.
 */
#ifndef COMMON_STR_H
#define COMMON_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A buffer that grows to `max` and then fails with ERR_LIMIT.  data is always
 * NUL-terminated once anything was added. */
struct buf {
	char *data;
	size_t len, cap, max; /* bytes; max excludes the NUL */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);
CHECKED int buf_add(struct buf *b, const void *p, size_t n, struct err *e);
CHECKED int buf_addf(struct buf *b, struct err *e, const char *fmt, ...) PRINTF(3, 4);
/* Gives the data (free with free()) and leaves b empty. */
char *buf_take(struct buf *b);

/* Copies or fails with ERR_LIMIT; never truncates. */
CHECKED int str_copy(char *dst, size_t size, const char *src, struct err *e);
/* snprintf that fails with ERR_LIMIT instead of truncating. */
CHECKED int str_fmt(char *dst, size_t size, struct err *e, const char *fmt, ...)
	PRINTF(4, 5);
/* Copies what fits; for display only.  Cuts at a UTF-8 boundary, control bytes
 * become '?'. */
void str_show(char *dst, size_t size, const char *src, size_t len);

/* The same of a formatted text, of which at most 1023 bytes count. */
void str_showv(char *dst, size_t size, const char *fmt, va_list ap) PRINTF(3, 0);

/* The only ways from text to a number: decimal digits, within [min, max]. */
CHECKED int str_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out,
	struct err *e);
CHECKED int str_u32(const char *s, uint32_t min, uint32_t max, uint32_t *out,
	struct err *e);

/* The digits in front of text as a number of at most max; false: none, or more. */
bool str_leading_u64(const char *text, uint64_t max, uint64_t *out);

bool str_eq(const char *a, const char *b); /* NULLs are equal to each other only */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* What follows the last slash of either kind: a program's name in an argv of any system. */
const char *str_base(const char *path);
/* How many lines end in n bytes. */
size_t str_lines(const char *p, size_t n);
/* The number-th line, from 1, without its end; false when there is none. */
bool str_line(const char *p, size_t n, size_t number, const char **line, size_t *len);
/* True if s is exactly n lower-case hex digits. */
bool str_is_hex(const char *s, size_t n);
/* Valid UTF-8 (no surrogates, no overlong forms, <= U+10FFFF). */
bool str_is_utf8(const char *s, size_t len);
void str_hex(char *dst, const uint8_t *p, size_t n); /* dst holds 2n + 1 */
CHECKED int str_unhex(uint8_t *dst, size_t n, const char *hex);

/* Splits on white space (and commas when commas is true) in place; gives pointers
 * into s.  Returns the count, or -1 when there are more than max. */
int str_split(char *s, bool commas, char **out, int max);

#define str_count(a) (sizeof(a) / sizeof *(a))

#endif
