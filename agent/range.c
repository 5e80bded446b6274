/* Range and entity tags (RFC 9110, sections 13 and 14), as far as single ranges go. */
#include <string.h>

#include "agent/route.h"
#include "common/str.h"

/* Digits from p into *v; the number of them, 0 when there are none or too many. */
static size_t
digits(const char *p, uint64_t *v)
{
	char word[24];
	size_t n = strspn(p, "0123456789");

	if (n == 0 || n >= sizeof word)
		return 0;
	memcpy(word, p, n);
	word[n] = '\0';
	return str_u64(word, 0, UINT64_MAX, v, NULL) ? 0 : n;
}

static enum range_kind
suffix(const char *p, uint64_t size, uint64_t *from, uint64_t *count)
{
	uint64_t last;
	size_t n = digits(p, &last);

	if (n == 0 || p[n] != '\0' || size == 0)
		return RANGE_NONE;
	if (last == 0)
		return RANGE_OUTSIDE;
	*count = last < size ? last : size;
	*from = size - *count;
	return RANGE_PART;
}

enum range_kind
range_parse(const char *header, uint64_t size, uint64_t *from, uint64_t *count)
{
	uint64_t first, last = UINT64_MAX;
	const char *p;
	size_t n;

	if (header == NULL || !str_starts(header, "bytes="))
		return RANGE_NONE;
	p = header + 6;
	if (*p == '-')
		return suffix(p + 1, size, from, count);
	if ((n = digits(p, &first)) == 0 || p[n] != '-')
		return RANGE_NONE;
	p += n + 1;
	if (*p != '\0' &&
	    ((n = digits(p, &last)) == 0 || p[n] != '\0' || last < first))
		return RANGE_NONE;
	if (first >= size)
		return RANGE_OUTSIDE;
	if (last >= size)
		last = size - 1;
	*from = first;
	*count = last - first + 1;
	return RANGE_PART;
}

bool
range_etag_is(const char *header, const char *sha256, bool weak_too)
{
	const char *p = header, *end;
	bool weak;

	if (header == NULL || sha256[0] == '\0')
		return false;
	if (strcmp(header, "*") == 0)
		return true;
	for (;;) {
		p += strspn(p, " \t,");
		weak = str_starts(p, "W/");
		if (weak)
			p += 2;
		if (*p != '"' || (end = strchr(p + 1, '"')) == NULL)
			return false;
		if ((size_t)(end - p - 1) == strlen(sha256) &&
		    memcmp(p + 1, sha256, strlen(sha256)) == 0 && (weak_too || !weak))
			return true;
		p = end + 1;
	}
}
