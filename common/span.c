#include "common/span.h"

#include <string.h>

#include "common/str.h"

bool
span_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool
span_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool
span_is_word(char c)
{
	return span_is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

struct span
span_trim(struct span s)
{
	for (; s.n > 0 && span_is_blank(*s.p); s.n--)
		s.p++;
	while (s.n > 0 && span_is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool
span_has(struct span s, const char *word)
{
	size_t n = strlen(word);

	for (; s.n >= n; s.p++, s.n--)
		if (memcmp(s.p, word, n) == 0)
			return true;
	return false;
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool
span_has_nocase(struct span s, const char *word)
{
	size_t i, n = strlen(word);

	for (; s.n >= n; s.p++, s.n--) {
		for (i = 0; i < n && lower(s.p[i]) == word[i]; i++)
			;
		if (i == n)
			return true;
	}
	return false;
}

bool
span_eq_nocase(struct span s, const char *word)
{
	size_t i;

	for (i = 0; i < s.n && word[i] != '\0'; i++)
		if (lower(s.p[i]) != lower(word[i]))
			return false;
	return i == s.n && word[i] == '\0';
}

/* The tail is zeroed too, so that structs compare and digest the same. */
void
span_copy(char *dst, size_t size, struct span s)
{
	memset(dst, 0, size);
	str_show(dst, size, s.p, s.n);
}

double
span_number(struct span s)
{
	double v = 0, scale = 1;
	bool point = false;
	size_t i;

	for (i = 0; i < s.n && i < 24; i++) {
		if (s.p[i] == '.' && !point) {
			point = true;
		} else if (span_is_digit(s.p[i])) {
			v = v * 10 + (s.p[i] - '0');
			scale *= point ? 10 : 1;
		} else {
			break;
		}
	}
	return v / scale;
}

int
span_int(struct span s)
{
	double v = span_number(s);

	return v > 1e9 ? 1000000000 : (int)v;
}

/* Length of the literal part of a pattern, up to its next field. */
static size_t
literal_length(const char *pat)
{
	size_t n = 0;

	while (pat[n] != '\0' && pat[n] != '%')
		n++;
	return n;
}

/* First place in s where the literal of n bytes stands; s.n when nowhere. */
static size_t
literal_find(struct span s, const char *literal, size_t n)
{
	const char *at;
	size_t i;

	for (i = 0; i + n <= s.n; i++) {
		at = memchr(s.p + i, *literal, s.n - n + 1 - i);
		if (at == NULL)
			break;
		i = (size_t)(at - s.p);
		if (memcmp(at, literal, n) == 0)
			return i;
	}
	return s.n;
}

/* One field of a pattern; gives how much of s it takes, 0 when it does not fit
 * (except %*, which may take nothing). */
static bool
field_match(char kind, const char *rest, struct span s, size_t *taken)
{
	size_t i = 0, n;

	switch (kind) {
	case 'd':
		while (i < s.n && span_is_digit(s.p[i]))
			i++;
		break;
	case 'f':
		while (i < s.n && (span_is_digit(s.p[i]) || s.p[i] == '.'))
			i++;
		break;
	case 's':
		while (i < s.n && !span_is_blank(s.p[i]) && s.p[i] != *rest)
			i++;
		break;
	default:
		n = literal_length(rest);
		*taken = n > 0 ? literal_find(s, rest, n) : s.n;
		return n == 0 || *taken < s.n;
	}
	*taken = i;
	return i > 0;
}

bool
span_match(struct span s, const char *pat, struct span fields[SPAN_MAX_FIELDS])
{
	size_t taken;
	int n = 0;

	while (*pat != '\0') {
		if (*pat == '%') {
			if (n == SPAN_MAX_FIELDS ||
			    !field_match(pat[1], pat + 2, s, &taken))
				return false;
			fields[n].p = s.p;
			fields[n++].n = taken;
			s.p += taken, s.n -= taken;
			pat += 2;
		} else if (*pat == ' ') {
			if (s.n == 0 || !span_is_blank(*s.p))
				return false;
			for (; s.n > 0 && span_is_blank(*s.p); s.n--)
				s.p++;
			pat++;
		} else {
			if (s.n == 0 || *s.p != *pat)
				return false;
			s.p++, s.n--, pat++;
		}
	}
	return span_trim(s).n == 0;
}
