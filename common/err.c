#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"

static const struct {
	const char *name;
	int exit, http;
} codes[] = {
#define X(id, name, exit, http) [id] = {name, exit, http},
	ERR_TABLE(X)
#undef X
};

/* Words from outside are in most messages: formatted aside, since the old message may be
 * one of the arguments, and cleaned, since they end on a terminal. */
static void show(char *dst, size_t size, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void
show(char *dst, size_t size, const char *fmt, va_list ap)
{
	char text[1024];

	if (vsnprintf(text, sizeof text, fmt, ap) < 0)
		text[0] = '\0';
	str_show(dst, size, text, strlen(text));
}

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = code;
	va_start(ap, fmt);
	show(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	e->hint[0] = '\0';
	return -1;
}

int
err_errno(struct err *e, int errnum, const char *fmt, ...)
{
	char what[256];
	va_list ap;
	enum err_code code = ERR_IO;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (errnum == ENOENT || errnum == ENOTDIR)
		code = ERR_NOTFOUND;
	else if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
		code = ERR_NOSPACE;
	else if (errnum == ENOMEM)
		code = ERR_NOMEM;
	err_set(e, code, "%s: %s", what, strerror(errnum));
	if (errnum == EFBIG)
		err_hint(e, "raise the limit on the size of a file and run again");
	else if (code == ERR_NOSPACE)
		err_hint(e, "free some space on that file system and run again");
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char head[256], whole[sizeof head + sizeof e->msg + 2];
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	vsnprintf(head, sizeof head, fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof whole, "%s: %s", head, e->msg);
	str_show(e->msg, sizeof e->msg, whole, strlen(whole));
	return -1;
}

int
err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	show(e->hint, sizeof e->hint, fmt, ap);
	va_end(ap);
	return -1;
}

const char *
err_name(enum err_code code)
{
	return codes[code].name;
}

int
err_exit(enum err_code code)
{
	return codes[code].exit;
}

int
err_http(enum err_code code)
{
	return codes[code].http;
}

void
err_print(const char *prog, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", prog, e->msg);
	if (e->hint[0] != '\0')
		fprintf(stderr, "  hint: %s\n", e->hint);
}
