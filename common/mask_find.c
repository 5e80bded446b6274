/* Where ids stand in a text. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mask_impl.h"
#include "common/str.h"

/* A text with its end; past it stands a NUL. */
struct span_text {
	const char *p;
	size_t len;
};

static char
at(const struct span_text *t, size_t i)
{
	return i < t->len ? t->p[i] : '\0';
}

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool
begins_word(const struct span_text *t, size_t i)
{
	return i == 0 || !isalnum((unsigned char)t->p[i - 1]);
}

static size_t
hex_run(const struct span_text *t, size_t i)
{
	size_t n = 0;

	while (isxdigit((unsigned char)at(t, i + n)))
		n++;
	return n;
}

/* The hex digits of n bytes without hyphens, in lower case. */
static void
digits_of(const struct span_text *t, size_t i, size_t n, char out[MASK_BYTES])
{
	size_t k = 0;

	for (; n > 0 && k + 1 < MASK_BYTES; i++, n--)
		if (isxdigit((unsigned char)at(t, i)))
			out[k++] = (char)tolower((unsigned char)at(t, i));
	out[k] = '\0';
}

static bool
is_nil(const char *digits)
{
	return strspn(digits, "0") == strlen(digits);
}

/* ---- UUIDs, and AMD's numbers ---- */

static bool
uuid_at(const struct span_text *t, size_t i, struct mask_match *out)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};
	size_t k, n = 0;

	if (hex_run(t, i) == 32)
		n = 32;
	for (k = 0; n != 32 && k < str_count(groups); k++) {
		if (hex_run(t, i + n) != groups[k] || (k < 4 && at(t, i + n + groups[k]) != '-'))
			return false;
		n += groups[k] + (k < 4);
	}
	if (isalnum((unsigned char)at(t, i + n)))
		return false;
	out->kind = MASK_UUID;
	out->n = n;
	digits_of(t, i, n, out->real);
	return !is_nil(out->real);
}

static bool
follows(const struct span_text *t, size_t i, const char *word)
{
	size_t n = strlen(word);

	return i >= n && strncasecmp(t->p + i - n, word, n) == 0;
}

/* What "unique_id" or "Unique ID" say, with what may stand between. */
static bool
is_unique_id(const struct span_text *t, size_t i)
{
	size_t from = i;

	while (from > 0 && strchr(" \t:=\"'", t->p[from - 1]) != NULL)
		from--;
	return from < i && (follows(t, from, "unique_id") || follows(t, from, "uniqueid") ||
		follows(t, from, "unique id"));
}

static bool
known(const struct mask *m, enum mask_kind kind, const char *real)
{
	size_t i;

	for (i = 0; i < m->count; i++)
		if (m->ids[i].kind == kind && strcmp(m->ids[i].real, real) == 0)
			return true;
	return false;
}

static bool
number_at(const struct mask *m, const struct span_text *t, size_t i, struct mask_match *out)
{
	bool hex = i >= 2 && t->p[i - 2] == '0' && (t->p[i - 1] == 'x' || t->p[i - 1] == 'X');
	char text[24];
	uint64_t value;
	size_t n = hex_run(t, i);

	out->kind = MASK_NUMBER;
	out->n = n;
	out->decimal = false;
	if (isalnum((unsigned char)at(t, i + n)))
		return false;
	if (n == 16) {
		digits_of(t, i, n, out->real);
		if (!is_nil(out->real) && (follows(t, i, "GPU-") || known(m, MASK_NUMBER, out->real) ||
				(hex && is_unique_id(t, i - 2))))
			return true;
	}
	if (hex || n < 1 || n > 20 || at(t, i + n) == '-')
		return false;
	snprintf(text, sizeof text, "%.*s", (int)n, t->p + i);
	if (strspn(text, "0123456789") != n || str_u64(text, 1, UINT64_MAX, &value, NULL))
		return false;
	snprintf(out->real, sizeof out->real, "%016llx", (unsigned long long)value);
	out->decimal = true;
	return is_unique_id(t, i) || (n > 8 && known(m, MASK_NUMBER, out->real));
}

/* "GPU-3b1c8c8c": tools take the beginning of an id for it. */
static bool
cut_at(const struct mask *m, const struct span_text *t, size_t i, struct mask_match *out)
{
	char digits[MASK_BYTES];
	size_t n = 0, k;

	if (!follows(t, i, "GPU-") && !follows(t, i, "MIG-"))
		return false;
	while (isxdigit((unsigned char)at(t, i + n)) || (n > 0 && at(t, i + n) == '-'))
		n++;
	digits_of(t, i, n, digits);
	if (isalnum((unsigned char)at(t, i + n)) || digits[0] == '\0' || strlen(digits) > 31)
		return false;
	for (k = 0; k < m->count; k++)
		if (m->ids[k].kind == MASK_UUID && str_starts(m->ids[k].real, digits)) {
			out->kind = MASK_CUT;
			out->n = n;
			memcpy(out->real, m->ids[k].real, sizeof out->real);
			return true;
		}
	return false;
}

/* ---- addresses ---- */

static bool
mac_at(const struct span_text *t, size_t i, struct mask_match *out)
{
	char sep = at(t, i + 2);
	size_t k;

	if ((sep != ':' && sep != '-') || (i > 0 && t->p[i - 1] == sep))
		return false;
	for (k = 0; k < 6; k++)
		if (hex_run(t, i + 3 * k) != 2 || (k < 5 && at(t, i + 3 * k + 2) != sep))
			return false;
	if (at(t, i + 17) == sep || isalnum((unsigned char)at(t, i + 17)))
		return false;
	out->kind = MASK_MAC;
	out->n = 17;
	snprintf(out->real, sizeof out->real, "%.17s", t->p + i);
	for (k = 0; k < 17; k++)
		out->real[k] = (char)tolower((unsigned char)out->real[k]);
	return strcmp(out->real, "00:00:00:00:00:00") != 0 && strcmp(out->real, "ff:ff:ff:ff:ff:ff") != 0;
}

/* A line about versions has numbers with points that are no address. */
static bool
is_version_line(const struct span_text *t, size_t i)
{
	static const char *const words[] = {"version", "driver", "release", "firmware", "vbios", "llvm",
		"mesa", "revision", "\"api\"", "conformance", "cuda", "rocm", "compiler"};
	char line[256];
	size_t from = i, n, k;

	while (from > 0 && t->p[from - 1] != '\n' && i - from < 200)
		from--;
	n = i - from;
	memcpy(line, t->p + from, n);
	line[n] = '\0';
	for (k = 0; k < str_count(words); k++)
		if (strcasestr(line, words[k]) != NULL)
			return true;
	return i > 0 && (t->p[i - 1] == 'v' || t->p[i - 1] == '-' || t->p[i - 1] == '.');
}

static bool
ipv4_at(const struct mask *m, const struct span_text *t, size_t i, struct mask_match *out)
{
	size_t n = 0, k, digits;
	unsigned part;

	for (k = 0; k < 4; k++) {
		part = 0;
		for (digits = 0; isdigit((unsigned char)at(t, i + n)) && digits < 4; digits++)
			part = part * 10 + (unsigned)(at(t, i + n++) - '0');
		if (digits < 1 || digits > 3 || part > 255 || (k < 3 && at(t, i + n++) != '.'))
			return false;
	}
	if (is_word(at(t, i + n)) || (at(t, i + n) == '.' && isdigit((unsigned char)at(t, i + n + 1))))
		return false;
	out->kind = MASK_IPV4;
	out->n = n;
	snprintf(out->real, sizeof out->real, "%.*s", (int)n, t->p + i);
	if (known(m, MASK_IPV4, out->real))
		return i == 0 || t->p[i - 1] != '.';
	return !str_starts(out->real, "127.") && !str_starts(out->real, "0.") &&
		!str_starts(out->real, "255.") && !is_version_line(t, i);
}

static bool
ipv6_at(const struct span_text *t, size_t i, struct mask_match *out)
{
	size_t n = 0, groups = 0, gaps = 0, digits = 0;
	bool number = false;

	for (;;) {
		digits = hex_run(t, i + n);
		if (digits > 4)
			return false;
		groups += digits > 0;
		for (; digits > 0; digits--, n++)
			number |= isdigit((unsigned char)at(t, i + n)) != 0;
		if (at(t, i + n) != ':')
			break;
		n++;
		if (at(t, i + n) == ':') {
			gaps++;
			n++;
		} else if (!isxdigit((unsigned char)at(t, i + n))) {
			n--; /* "2001:db8::1:" in front of other words */
			break;
		}
	}
	if (is_word(at(t, i + n)) || !number || !((gaps == 1 && groups >= 2 && groups < 8) ||
			(gaps == 0 && groups == 8)) || n + 1 > MASK_BYTES)
		return false;
	out->kind = MASK_IPV6;
	out->n = n;
	snprintf(out->real, sizeof out->real, "%.*s", (int)n, t->p + i);
	for (n = 0; out->real[n] != '\0'; n++)
		out->real[n] = (char)tolower((unsigned char)out->real[n]);
	return true;
}

/* ---- words ---- */

static bool
word_at(const struct mask *m, const struct span_text *t, size_t i, struct mask_match *out)
{
	const struct mask_id *id;
	size_t k, n;

	for (k = 0; k < m->count; k++) {
		id = &m->ids[k];
		n = strlen(id->real);
		if (id->kind != MASK_WORD || n > t->len - i || strncmp(t->p + i, id->real, n) != 0 ||
		    is_word(at(t, i + n)))
			continue;
		out->kind = MASK_WORD;
		out->n = n;
		memcpy(out->real, id->real, sizeof out->real);
		return true;
	}
	return false;
}

bool
mask_next(const struct mask *m, const char *text, size_t len, size_t *pos, struct mask_match *out)
{
	const struct span_text t = {text, len};
	size_t i;

	memset(out, 0, sizeof *out);
	for (i = *pos; i < len; i++) {
		if (!isalnum((unsigned char)text[i]))
			continue;
		/* a number in hex begins behind its "0x" */
		if (!begins_word(&t, i) && !(i >= 2 && (text[i - 1] | 32) == 'x' && text[i - 2] == '0' &&
				begins_word(&t, i - 2)))
			continue;
		if (uuid_at(&t, i, out) || word_at(m, &t, i, out) || number_at(m, &t, i, out) ||
		    mac_at(&t, i, out) || ipv6_at(&t, i, out) || ipv4_at(m, &t, i, out) ||
		    cut_at(m, &t, i, out)) {
			out->at = i;
			*pos = i + out->n;
			return true;
		}
	}
	*pos = len;
	return false;
}

/* ---- what a text calls an id ---- */

static size_t
token_at(const struct span_text *t, size_t i, const char *more, char out[MASK_BYTES])
{
	size_t n = 0;

	while (isalnum((unsigned char)at(t, i + n)) || (at(t, i + n) != '\0' && strchr(more, at(t, i + n)) != NULL))
		n++;
	out[0] = '\0';
	if (n > 0 && n < MASK_BYTES)
		snprintf(out, MASK_BYTES, "%.*s", (int)n, t->p + i);
	return n;
}

/* A number that was given to one thing: digits in it, and not only a few. */
static bool
is_serial(const char *s)
{
	return strlen(s) >= 4 && strpbrk(s, "0123456789") != NULL && strspn(s, "0.") != strlen(s);
}

/* "Serial Number : 1654...", "serialno=R58...", "\"serial\": \"...\"" */
static bool
serial_at(const struct span_text *t, size_t i, char out[MASK_BYTES])
{
	static const char *const rest[] = {"_number", " number", "number", "no", " no.", "_no"};
	size_t k, n = i + 6, from;

	if (strncasecmp(t->p + i, "serial", t->len - i < 6 ? t->len - i : 6) != 0 || t->len - i < 6)
		return false;
	for (k = 0; k < str_count(rest); k++)
		if (t->len - n >= strlen(rest[k]) && strncasecmp(t->p + n, rest[k], strlen(rest[k])) == 0) {
			n += strlen(rest[k]);
			break;
		}
	from = n;
	while (at(t, n) != '\0' && strchr(" \t:=\"'[]", at(t, n)) != NULL)
		n++;
	if (n == from || memchr(t->p + from, '\n', n - from) != NULL)
		return false;
	token_at(t, n, "-_.", out);
	return is_serial(out);
}

/* "/home/NAME/...", "C:\Users\NAME\..." */
static bool
home_at(const struct span_text *t, size_t i, char out[MASK_BYTES])
{
	static const char *const homes[] = {"/home/", "/Users/", "\\Users\\", "\\\\Users\\\\"};
	size_t k, n;

	for (k = 0; k < str_count(homes); k++) {
		n = strlen(homes[k]);
		if (t->len - i > n && strncmp(t->p + i, homes[k], n) == 0 && token_at(t, i + n, "-_.", out) > 0)
			return out[0] != '\0';
	}
	return false;
}

/* A line "SERIAL  device usb:1-2 ..." of adb. */
static bool
adb_at(const struct span_text *t, size_t i, char out[MASK_BYTES])
{
	static const char *const states[] = {"device", "offline", "unauthorized", "authorizing", "recovery",
		"sideload", "bootloader", "rescue", "connecting", "no permissions", "host"};
	size_t n = token_at(t, i, "-_.:", out), end, k;
	char *tail;

	if (n == 0 || (i > 0 && t->p[i - 1] != '\n') || (at(t, i + n) != ' ' && at(t, i + n) != '\t'))
		return false;
	for (end = i + n; at(t, end) == ' ' || at(t, end) == '\t'; end++)
		;
	for (k = 0; k < str_count(states); k++)
		if (t->len - end >= strlen(states[k]) && strncmp(t->p + end, states[k], strlen(states[k])) == 0 &&
		    !is_word(at(t, end + strlen(states[k]))))
			break;
	if (k == str_count(states) || str_starts(out, "emulator-") || strchr(out, ':') != NULL)
		return false;
	/* "adb-R58M123ABC-x1y2z3._adb-tls-connect._tcp": the serial alone is the id */
	if (str_starts(out, "adb-") && (tail = strstr(out, "._adb")) != NULL) {
		*tail = '\0';
		memmove(out, out + 4, strlen(out + 4) + 1);
		out[strcspn(out, "-")] = '\0';
	}
	return is_serial(out);
}

bool
mask_next_said(const char *text, size_t len, size_t *pos, char out[MASK_BYTES])
{
	const struct span_text t = {text, len};
	bool adb = memmem(text, len, "List of devices attached", 24) != NULL;
	size_t i;

	for (i = *pos; i < len; i++)
		if ((begins_word(&t, i) && serial_at(&t, i, out)) || home_at(&t, i, out) ||
		    (adb && adb_at(&t, i, out))) {
			*pos = i + 1;
			return true;
		}
	*pos = len;
	return false;
}
