#include "common/ntstatus.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

static const struct row {
	uint32_t code;
	const char *name, *meaning;
	bool not_loaded;
} rows[] = {
	{0x40000015, "STATUS_FATAL_APP_EXIT", "the program gave up", false},
	{0x80000003, "STATUS_BREAKPOINT", "the program stopped at a breakpoint of its own", false},
	{0xC0000005, "STATUS_ACCESS_VIOLATION", "it used memory that is not its own", false},
	{0xC0000006, "STATUS_IN_PAGE_ERROR", "a file that it uses could not be read", false},
	{0xC0000017, "STATUS_NO_MEMORY", "no memory", false},
	{0xC000001D, "STATUS_ILLEGAL_INSTRUCTION", "it was built for another processor", false},
	{0xC0000022, "STATUS_ACCESS_DENIED", "access was denied", true},
	{0xC000007B, "STATUS_INVALID_IMAGE_FORMAT", "a library is for another architecture", true},
	{0xC0000094, "STATUS_INTEGER_DIVIDE_BY_ZERO", "division by zero", false},
	{0xC00000FD, "STATUS_STACK_OVERFLOW", "the stack is full", false},
	{0xC000012D, "STATUS_COMMITMENT_LIMIT", "the page file is too small", false},
	{0xC0000135, "STATUS_DLL_NOT_FOUND", "a library is missing", true},
	{0xC0000138, "STATUS_ORDINAL_NOT_FOUND", "a library is of another version", true},
	{0xC0000139, "STATUS_ENTRYPOINT_NOT_FOUND", "a library is of another version", true},
	{0xC000013A, "STATUS_CONTROL_C_EXIT", "it was interrupted", false},
	{0xC0000142, "STATUS_DLL_INIT_FAILED", "a library could not start", true},
	{0xC0000374, "STATUS_HEAP_CORRUPTION", "its heap is damaged", false},
	{0xC0000409, "STATUS_STACK_BUFFER_OVERRUN", "it aborted, or its stack is damaged", false},
	{0xC0000417, "STATUS_INVALID_CRUNTIME_PARAMETER", "a wrong call of the C library", false},
	{0xC0000420, "STATUS_ASSERTION_FAILURE", "an assertion failed", false},
	{0xC0000602, "STATUS_FAIL_FAST_EXCEPTION", "it aborted", false},
	{0xC06D007E, "VCPPEXCEPTION_MODULE_NOT_FOUND", "a library that is loaded late is missing", true},
	{0xC06D007F, "VCPPEXCEPTION_PROC_NOT_FOUND", "a library that is loaded late is of another version", true},
	{0xE06D7363, "an exception of C++", "nobody caught it", false},
};

static const struct row *
row_find(uint32_t code)
{
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

static int
as_int(uint32_t code)
{
	return (int)(code <= INT32_MAX ? (int64_t)code : (int64_t)code - ((int64_t)1 << 32));
}

/* Digits of a code at p: one of the three forms; the bytes it takes, 0 none. */
static size_t
code_at(const char *p, size_t n, uint32_t *out)
{
	uint64_t v = 0;
	bool minus = n > 0 && *p == '-', hex = n > 2 && p[0] == '0' && (p[1] | 0x20) == 'x';
	size_t i = minus ? 1 : hex ? 2 : 0, from = i;
	char c;

	for (; i < n && (hex ? isxdigit((unsigned char)p[i]) : isdigit((unsigned char)p[i])) && i - from < 12; i++) {
		c = (char)tolower((unsigned char)p[i]);
		v = v * (hex ? 16 : 10) + (uint64_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
	}
	if (i == from || (minus && v > (uint64_t)1 << 31) || v > UINT32_MAX)
		return 0;
	*out = minus ? (uint32_t)(0 - v) : (uint32_t)v;
	return i;
}

int
ntstatus_parse(const char *text, int *out, struct err *e)
{
	uint32_t code;
	size_t n = strlen(text);

	if (n == 0 || code_at(text, n, &code) != n)
		return err_set(e, ERR_USAGE, "\"%.40s\" is no exit code: 3, -1073741515, 3221225781 or 0xC0000135",
			text);
	*out = as_int(code);
	return 0;
}

bool
ntstatus_is(int exit)
{
	uint32_t code = (uint32_t)exit;

	return (code >= 0xC0000000u && code < 0xFFFFFF00u) || row_find(code) != NULL;
}

bool
ntstatus_not_loaded(int exit)
{
	const struct row *r = row_find((uint32_t)exit);

	return r != NULL && r->not_loaded;
}

void
ntstatus_show(int exit, char *out, size_t size)
{
	const struct row *r = row_find((uint32_t)exit);

	if (r != NULL)
		snprintf(out, size, "0x%08X (%s: %s)", (unsigned)exit, r->name, r->meaning);
	else if (ntstatus_is(exit))
		snprintf(out, size, "0x%08X", (unsigned)exit);
	else
		snprintf(out, size, "%d", exit);
}

bool
ntstatus_find(const char *text, size_t len, int *out)
{
	uint32_t code;
	size_t i, n;

	for (i = 0; i < len; i += n > 0 ? n : 1) {
		n = 0;
		if ((i > 0 && (isalnum((unsigned char)text[i - 1]) || strchr("._-", text[i - 1]) != NULL)) ||
		    (n = code_at(text + i, len - i, &code)) == 0)
			continue;
		if (i + n < len && (isalnum((unsigned char)text[i + n]) || strchr("_-", text[i + n]) != NULL ||
				(text[i + n] == '.' && i + n + 1 < len && isdigit((unsigned char)text[i + n + 1]))))
			continue;
		if (row_find(code) != NULL) {
			*out = as_int(code);
			return true;
		}
	}
	return false;
}
