/*
 * span - a stretch of somebody else's bytes, and a small matcher over it.
 *
 * A span borrows: it is valid as long as the bytes it points into.  Nothing here
 * allocates, backtracks or reads behind the end; any bytes, any thread.
 */
#ifndef COMMON_SPAN_H
#define COMMON_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#define SPAN_MAX_FIELDS 6

struct span {
	const char *p;
	size_t n;
};

/* The bytes that names are made of, in ASCII whatever the locale. */
bool span_is_digit(char c);
bool span_is_word(char c);  /* letter, digit, underscore */
bool span_is_blank(char c); /* space, tab */

struct span span_trim(struct span s);
bool span_has(struct span s, const char *word);
/* word in lower case */
bool span_has_nocase(struct span s, const char *word);
bool span_eq_nocase(struct span s, const char *word);
/* Fills all of dst; cuts what does not fit and cleans as str_show does. */
void span_copy(char *dst, size_t size, struct span s);
/* Decimal number in front, 0 when there is none. */
double span_number(struct span s);
int span_int(struct span s); /* at most 1000000000 */

/*
 * True when the pattern fits all of s but blanks at its end.  A pattern is text with
 * fields: %d digits, %f a number, %s a word, %* anything up to the next literal (the
 * rest when it is last); a blank stands for one or more.  Each field takes the first
 * that fits and never gives back.  At most SPAN_MAX_FIELDS fields, their texts in order.
 */
bool span_match(struct span s, const char *pattern, struct span fields[SPAN_MAX_FIELDS]);

#endif
