/* elog_help - the cache types and options that an engine's help text offers. */
#include <string.h>

#include "common/elog.h"
#include "common/span.h"

/* What an option's name may consist of; "turbo3" is not in "turbo3_tcq". */
static bool
is_name(char c)
{
	return span_is_word(c) || c == '+' || c == '-';
}

/* First whole word at or after from; len when there is none. */
static size_t
word_find(const char *text, size_t len, size_t from, const char *word)
{
	size_t n = strlen(word);
	const char *at;

	while (n > 0 && from + n <= len) {
		at = memchr(text + from, *word, len - n + 1 - from);
		if (at == NULL)
			break;
		from = (size_t)(at - text);
		if (memcmp(at, word, n) == 0 &&
		    (from == 0 || !is_name(text[from - 1])) &&
		    (from + n == len || !is_name(text[from + n])))
			return from;
		from++;
	}
	return len;
}

bool
elog_help_has(const char *help, size_t len, const char *option)
{
	return word_find(help, len, 0, option) < len;
}

/* End of the option's description: the next line that begins with an option, or a blank
 * line. */
static size_t
option_end(const char *help, size_t len, size_t from)
{
	size_t i = from;

	while (i < len) {
		for (; i < len && help[i] != '\n'; i++)
			;
		for (i++; i < len && (span_is_blank(help[i]) || help[i] == '\r'); i++)
			;
		if (i < len && (help[i] == '-' || help[i] == '\n'))
			return i;
	}
	return len;
}

/* "f16, q8_0,\n   q4_0 (default: f16)": names up to the first that is no list item. */
static int
names_parse(const char *p, size_t n, char names[][ELOG_TYPE], int max)
{
	size_t i = 0, start;
	int count = 0;

	while (count < max) {
		while (i < n && (span_is_blank(p[i]) || p[i] == '\r' || p[i] == '\n'))
			i++;
		for (start = i; i < n && is_name(p[i]); i++)
			;
		if (i == start || i - start >= ELOG_TYPE)
			break;
		memset(names[count], 0, ELOG_TYPE);
		memcpy(names[count++], p + start, i - start);
		while (i < n && (span_is_blank(p[i]) || p[i] == '\r'))
			i++;
		if (i == n || p[i] != ',')
			break;
		i++;
	}
	return count;
}

int
elog_help_types(const char *help, size_t len, char names[][ELOG_TYPE], int max)
{
	static const char list[] = "allowed values:";
	size_t at = 0, end;
	struct span part;
	int count;

	/* An error message may name the option too; the description is the one with a
	 * list. */
	while ((at = word_find(help, len, at, "--cache-type-k")) < len) {
		end = option_end(help, len, at);
		for (part.p = help + at, part.n = end - at; part.n >= sizeof list - 1;
		     part.p++, part.n--)
			if (memcmp(part.p, list, sizeof list - 1) == 0)
				break;
		if (part.n >= sizeof list - 1) {
			count = names_parse(part.p + sizeof list - 1,
					    part.n - (sizeof list - 1), names, max);
			if (count > 0)
				return count;
		}
		at = end;
	}
	return 0;
}

const char *
elog_resolve(const struct suite_family *f, char names[][ELOG_TYPE], int n)
{
	struct span name;
	int a, i;

	for (a = 0; a < f->alias_count; a++)
		for (i = 0; i < n; i++) {
			name.p = names[i];
			name.n = strlen(names[i]);
			if (span_eq_nocase(name, f->aliases[a]))
				return f->aliases[a];
		}
	return NULL;
}
