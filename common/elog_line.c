#include "common/elog_line.h"

#include <stdbool.h>
#include <string.h>

#include "common/elog.h"

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
	size_t i, n, start = 0, stamp;
	char level = '\0';

	for (i = 0; i < line.n; i++) {
		if (line.p[i] != '.' || (n = stamp_length(line, i)) == 0)
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
line_end(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n && p[i] != '\n'; i++)
		if (p[i] == '\r' && i + 1 < n && p[i + 1] != '\n' && p[i + 1] != '\r')
			break;
	return i;
}

void
elog_messages(const char *log, size_t len, elog_message_fn each, void *arg)
{
	char text[ELOG_MAX_LINE];
	struct sink to = {each, arg, 1};
	struct span line;
	size_t at = 0, n;

	while (at < len) {
		n = line_end(log + at, len - at);
		line.p = text;
		line.n = line_clean(text, sizeof text, log + at, n);
		line_split(line, &to);
		/* a lone CR makes a message, and no line of the file */
		to.line += at + n < len && log[at + n] == '\n';
		at += n + 1;
	}
}
