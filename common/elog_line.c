#include "common/elog_line.h"

#include <stdbool.h>
#include <string.h>

#include "common/elog.h"
#include "common/str.h"

static bool
level_is(char c)
{
	return c == 'I' || c == 'W' || c == 'E' || c == 'D';
}

struct sink {
	elog_message_fn each;
	void *arg;
	size_t line;
};

static void
message_give(struct span s, char level, const struct sink *to)
{
	s = span_trim(s);
	if (s.n > 0)
		to->each(to->arg, s, level, to->line);
}

/* "0.00.123.456 I " with its point at line.p[at]; gives the length from there on. */
static size_t
stamp_length(struct span line, size_t at)
{
	static const char form[] = ".00.000.000 L";
	size_t i, n = sizeof form - 1;
	char c;

	if (at == 0 || !span_is_digit(line.p[at - 1]) || at + n > line.n)
		return 0;
	for (i = 0; i < n; i++) {
		c = line.p[at + i];
		if (form[i] == '0' ? !span_is_digit(c) :
		    form[i] == 'L' ? !level_is(c) : c != form[i])
			return 0;
	}
	return at + n == line.n ? n : line.p[at + n] == ' ' ? n + 1 : 0;
}

/* A line may hold several messages: generated text stands before the time stamp, and
 * the scheduler's list gives each part of a line a stamp of its own. */
static void
line_split(struct span line, const struct sink *to)
{
	struct span part;
	const char *dot;
	size_t i, n, start = 0, stamp;
	char level = '\0';

	for (i = 0; i < line.n; i++) {
		if ((dot = memchr(line.p + i, '.', line.n - i)) == NULL)
			break;
		i = (size_t)(dot - line.p);
		if ((n = stamp_length(line, i)) == 0)
			continue;
		for (stamp = i; stamp > start && span_is_digit(line.p[stamp - 1]);
		     stamp--)
			;
		part.p = line.p + start;
		part.n = stamp - start;
		message_give(part, level, to);
		level = line.p[i + 12];
		start = i + n;
		i = start - 1;
	}
	part.p = line.p + start;
	part.n = line.n - start;
	if (level == '\0' && part.n > 2 && part.p[1] == ' ' && level_is(part.p[0])) {
		level = part.p[0];
		part.p += 2, part.n -= 2;
	}
	message_give(part, level, to);
}

/* Length of the escape sequence at p (p[0] is ESC). */
static size_t
escape_length(const char *p, size_t n)
{
	size_t i = 2;

	if (n < 2)
		return n;
	if (p[1] == '[') {
		while (i < n && (p[i] < 0x40 || p[i] > 0x7e) &&
		       (unsigned char)p[i] >= 0x20)
			i++;
		return i < n ? i + 1 : n;
	}
	if (p[1] == ']') {
		while (i < n && p[i] != '\a' && p[i] != 0x1b)
			i++;
		return i < n && p[i] == '\a' ? i + 1 : i;
	}
	return 2;
}

/* Copies a line as a terminal would leave it: no colours, backspaces done. */
static size_t
line_clean(char *dst, size_t size, const char *p, size_t n)
{
	size_t i, len = 0;

	for (i = 0; i < n && len < size; i++) {
		if (p[i] == 0x1b)
			i += escape_length(p + i, n - i) - 1;
		else if (p[i] == '\b')
			len -= len > 0;
		else if ((unsigned char)p[i] >= 0x20 || p[i] == '\t')
			dst[len++] = p[i];
		else if (p[i] != '\r')
			dst[len++] = '?';
	}
	return len;
}

static size_t
line_end(const char *p, size_t n, size_t *newline)
{
	const char *cr;
	size_t i, end;

	/* looked for once, not once for each message that ends with a lone CR */
	if (*newline == 0) {
		cr = memchr(p, '\n', n);
		*newline = cr != NULL ? (size_t)(cr - p) : n;
	}
	end = *newline;
	for (i = 0; i < end && (cr = memchr(p + i, '\r', end - i)) != NULL; i++) {
		i = (size_t)(cr - p);
		if (i + 1 < n && p[i + 1] != '\n' && p[i + 1] != '\r')
			return i;
	}
	return end;
}

/* Nothing to clean, as in nearly every line: then it is not copied. */
static bool
line_is_clean(const char *p, size_t n)
{
	unsigned char odd = 0;
	size_t i;

	for (i = 0; i < n; i++)
		odd |= (unsigned char)((unsigned char)p[i] < 0x20);
	return odd == 0;
}

size_t
elog_messages(const char *log, size_t len, size_t first, elog_message_fn each, void *arg)
{
	char text[ELOG_MAX_LINE];
	struct sink to = {each, arg, first};
	struct span line;
	size_t at = 0, n, newline = 0;

	while (at < len) {
		n = line_end(log + at, len - at, &newline);
		line.p = log + at;
		line.n = n < sizeof text ? n : sizeof text;
		if (!line_is_clean(line.p, line.n)) {
			line.p = text;
			line.n = line_clean(text, sizeof text, log + at, n);
		}
		line_split(line, &to);
		/* a lone CR makes a message, and no line of the file */
		to.line += at + n < len && log[at + n] == '\n';
		newline -= n < newline ? n + 1 : newline;
		at += n + 1;
	}
	return to.line;
}

/* ---- parts of a message ---- */

/* "llama_kv_cache: text", "srv    load_model: text", "main : text": the last word
 * before the colon is the function.  Changes nothing when the line has none. */
void
elog_head_split(struct span line, struct span *fn, struct span *body)
{
	size_t i = 0, start = 0, end = 0;
	int words = 0;

	while (words < 2) {
		start = i;
		while (i < line.n && (span_is_word(line.p[i]) || line.p[i] == '~'))
			i++;
		if (i == start || i - start > 64)
			return;
		end = i;
		words++;
		while (i < line.n && span_is_blank(line.p[i]))
			i++;
		if (i < line.n && line.p[i] == ':')
			break;
	}
	if (i >= line.n || line.p[i] != ':' ||
	    (i + 1 < line.n && !span_is_blank(line.p[i + 1])))
		return;
	fn->p = line.p + start;
	fn->n = end - start;
	body->p = line.p + i + 1;
	body->n = line.n - i - 1;
	*body = span_trim(*body);
}

/* "/src/ggml.cpp:974: text", which only an abort prints.  Gives the text. */
bool
elog_source_split(struct span line, struct span *body)
{
	static const char *const ends[] = {
		".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".m", ".mm",
	};
	size_t i, j, k, n;

	for (i = 0; i < line.n && i < 512; i++) {
		if (line.p[i] != ':')
			continue;
		for (j = i + 1; j < line.n && span_is_digit(line.p[j]); j++)
			;
		if (j == i + 1 || j + 1 >= line.n || line.p[j] != ':' ||
		    line.p[j + 1] != ' ')
			continue;
		for (k = 0; k < str_count(ends); k++) {
			n = strlen(ends[k]);
			if (i > n && memcmp(line.p + i - n, ends[k], n) == 0) {
				body->p = line.p + j + 2;
				body->n = line.n - j - 2;
				return true;
			}
		}
	}
	return false;
}

bool
elog_fn_matches(const char *want, struct span fn)
{
	size_t n;

	if (want == NULL)
		return true;
	n = strlen(want);
	if (want[n - 1] == '*')
		return fn.n >= n - 1 && memcmp(fn.p, want, n - 1) == 0;
	return fn.n == n && memcmp(fn.p, want, n) == 0;
}

size_t
elog_glued_at(struct span s)
{
	static const char *const numbered[] = { "node #", "## SPLIT #" };
	static const char cache[] = "llama_kv_cache:";
	const char *hit = s.n > 1 ? memmem(s.p + 1, s.n - 1, cache, sizeof cache - 1) : NULL;
	size_t at, k, n, best = hit != NULL ? (size_t)(hit - s.p) : s.n;

	/* by the sign at their end, which is rare */
	for (at = 1; at < best; at++) {
		if ((hit = memchr(s.p + at, '#', best - at)) == NULL)
			break;
		at = (size_t)(hit - s.p);
		for (k = 0; k < str_count(numbered); k++) {
			n = strlen(numbered[k]);
			if (at >= n && memcmp(hit - (n - 1), numbered[k], n) == 0)
				return at + 1 - n;
		}
	}
	return best;
}
