#include "common/str.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof *b);
	b->max = max < SIZE_MAX ? max : SIZE_MAX - 1; /* room for the NUL */
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

int
buf_add(struct buf *b, const void *p, size_t n, struct err *e)
{
	size_t cap;
	char *grown;

	if (n > b->max || b->len > b->max - n)
		return err_set(e, ERR_LIMIT, "more than %zu bytes", b->max);
	if (b->len + n + 1 > b->cap) {
		cap = b->cap ? b->cap : 128;
		do
			cap = cap < b->max / 2 ? cap * 2 : b->max + 1;
		while (cap < b->len + n + 1);
		if ((grown = realloc(b->data, cap)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for %zu bytes", cap);
		b->data = grown;
		b->cap = cap;
	}
	if (n > 0)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int
buf_addf(struct buf *b, struct err *e, const char *fmt, ...)
{
	char small[512], *big = NULL;
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_set(e, ERR_PARSE, "cannot format");
	if ((size_t)n < sizeof small)
		return buf_add(b, small, (size_t)n, e);
	if ((big = malloc((size_t)n + 1)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %d bytes", n);
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	rc = buf_add(b, big, (size_t)n, e);
	free(big);
	return rc;
}

char *
buf_take(struct buf *b)
{
	char *p = b->data;

	b->data = NULL;
	b->len = b->cap = 0;
	return p;
}

int
str_copy(char *dst, size_t size, const char *src, struct err *e)
{
	size_t n = strlen(src);

	if (n >= size)
		return err_set(e, ERR_LIMIT, "longer than %zu bytes: \"%.40s...\"",
			size - 1, src);
	memcpy(dst, src, n + 1);
	return 0;
}

int
str_fmt(char *dst, size_t size, struct err *e, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size)
		return err_set(e, ERR_LIMIT, "longer than %zu bytes: \"%.40s...\"",
			size - 1, dst);
	return 0;
}

void
str_show(char *dst, size_t size, const char *src, size_t len)
{
	size_t n, i;

	if (size == 0)
		return;
	n = len < size - 1 ? len : size - 1;
	/* at most the three bytes that a character can go on with */
	for (i = 0; i < 3 && n > 0 && n < len && ((unsigned char)src[n] & 0xc0) == 0x80; i++)
		n--;
	for (i = 0; i < n; i++)
		dst[i] = (unsigned char)src[i] < 0x20 || src[i] == 0x7f ? '?' : src[i];
	dst[n] = '\0';
	if (!str_is_utf8(dst, n))
		for (i = 0; i < n; i++)
			if ((unsigned char)dst[i] >= 0x80)
				dst[i] = '?';
	/* U+0080 to U+009F: control characters that some terminals obey */
	for (i = 0; i + 1 < n; i++)
		if ((unsigned char)dst[i] == 0xc2 && (unsigned char)dst[i + 1] < 0xa0)
			dst[i] = dst[i + 1] = '?';
}

void
str_showv(char *dst, size_t size, const char *fmt, va_list ap)
{
	char text[1024];

	if (vsnprintf(text, sizeof text, fmt, ap) < 0)
		text[0] = '\0';
	str_show(dst, size, text, strlen(text));
}

int
str_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out, struct err *e)
{
	uint64_t v = 0, d;
	const char *p = s;

	if (*p == '\0')
		return err_set(e, ERR_PARSE, "a number is missing");
	for (; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return err_set(e, ERR_PARSE, "not a whole number: \"%.40s\"", s);
		d = (uint64_t)(*p - '0');
		if (v > (UINT64_MAX - d) / 10)
			return err_set(e, ERR_PARSE, "too large: %.40s", s);
		v = v * 10 + d;
	}
	if (v < min || v > max)
		return err_set(e, ERR_PARSE, "%.40s is outside %llu to %llu", s,
			(unsigned long long)min, (unsigned long long)max);
	*out = v;
	return 0;
}

int
str_u32(const char *s, uint32_t min, uint32_t max, uint32_t *out, struct err *e)
{
	uint64_t v;

	if (str_u64(s, min, max, &v, e))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

bool
str_leading_u64(const char *text, uint64_t max, uint64_t *out)
{
	char digits[24];
	size_t n = strspn(text, "0123456789");

	if (n == 0 || n >= sizeof digits)
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	return str_u64(digits, 0, max, out, NULL) == 0;
}

const char *
str_base(const char *path)
{
	const char *p = path + strlen(path);

	while (p > path && p[-1] != '/' && p[-1] != '\\')
		p--;
	return p;
}

bool
str_eq(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

bool
str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool
str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool
str_is_hex(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	return s[n] == '\0';
}

bool
str_is_utf8(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;
	uint32_t c;
	int k, need;

	while (p < end) {
		if (*p < 0x80) {
			p++;
			continue;
		}
		if (*p >= 0xc2 && *p <= 0xdf)
			need = 1, c = *p & 0x1f;
		else if (*p >= 0xe0 && *p <= 0xef)
			need = 2, c = *p & 0x0f;
		else if (*p >= 0xf0 && *p <= 0xf4)
			need = 3, c = *p & 0x07;
		else
			return false;
		if (end - p <= need)
			return false;
		for (k = 1; k <= need; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (p[k] & 0x3f);
		}
		if ((need == 2 && c < 0x800) || (need == 3 && c < 0x10000) ||
		    (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
			return false;
		p += need + 1;
	}
	return true;
}

void
str_hex(char *dst, const uint8_t *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		dst[2 * i] = digit[p[i] >> 4];
		dst[2 * i + 1] = digit[p[i] & 15];
	}
	dst[2 * n] = '\0';
}

int
str_unhex(uint8_t *dst, size_t n, const char *hex)
{
	size_t i;
	int hi, lo;

	if (!str_is_hex(hex, 2 * n))
		return -1;
	for (i = 0; i < n; i++) {
		hi = hex[2 * i], lo = hex[2 * i + 1];
		hi -= hi <= '9' ? '0' : 'a' - 10;
		lo -= lo <= '9' ? '0' : 'a' - 10;
		dst[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

int
str_split(char *s, bool commas, char **out, int max)
{
	const char *sep = commas ? " \t\r\n," : " \t\r\n";
	int n = 0;

	for (s += strspn(s, sep); *s != '\0'; s += strspn(s, sep)) {
		if (n == max)
			return -1;
		out[n++] = s;
		s += strcspn(s, sep);
		if (*s != '\0')
			*s++ = '\0';
	}
	return n;
}

size_t
str_lines(const char *p, size_t n)
{
	const char *end = p + n;
	size_t lines = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		lines++;
		p++;
	}
	return lines;
}

bool
str_line(const char *p, size_t n, size_t number, const char **line, size_t *len)
{
	const char *end = p + n, *nl;

	for (; number > 0 && p < end; number--, p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if (number > 1)
			continue;
		*line = p;
		*len = (size_t)(nl - p);
		return true;
	}
	return false;
}
