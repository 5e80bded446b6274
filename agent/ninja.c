#include "agent/ninja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

/*
 * What is sought in a line, the first row that fits wins.  A trouble gives way to one that
 * stands behind it in enum ninja_trouble and explains more: "No space left" explains
 * everything.  But what a source says wrong is not excused by a compiler killed later.
 */
static const struct pattern {
	enum ninja_trouble trouble;
	const char *text;
} patterns[] = {
	{NINJA_NOSPACE, "No space left on device"},
	{NINJA_NOSPACE, "Disk quota exceeded"},
	/* what cmake, nvcc and clang say of "native" on a machine that shows no GPU */
	{NINJA_NO_GPU, "compute_No CUDA"},
	{NINJA_NO_GPU, "compute_no CUDA"},
	{NINJA_NO_GPU, "Unsupported gpu architecture 'compute_'"},
	{NINJA_NO_GPU, "Unsupported gpu architecture 'compute_native'"},
	{NINJA_NO_GPU, "is set to \"native\", but no GPU was detected"},
	{NINJA_NO_GPU, "Failed to find a default HIP architecture"},
	{NINJA_NO_GPU, "Failed to find a default CUDA architecture"},
	{NINJA_NO_GPU, "cannot determine amdgcn architecture"},
	{NINJA_NO_GPU, "cannot determine hip architecture"},
	{NINJA_NO_GPU, "cannot determine cuda architecture"},
	{NINJA_NO_GPU, "cannot determine HIP architecture"},
	{NINJA_NO_GPU, "cannot determine nvptx64 architecture"},
	{NINJA_TOO_OLD, "Unsupported gpu architecture 'compute_"},
	{NINJA_TOO_OLD, "is not defined for option 'gpu-"},
	{NINJA_TOO_OLD, "Unsupported .target 'sm_"},
	{NINJA_TOO_OLD, "Unsupported .version "},
	{NINJA_TOO_OLD, "unsupported GNU version!"},
	{NINJA_TOO_OLD, "unsupported clang version!"},
	{NINJA_TOO_OLD, "unsupported Microsoft Visual Studio version!"},
	{NINJA_TOO_OLD, "or higher is required.  You are running version"},
	{NINJA_CRASH, "nternal compiler error"},
	{NINJA_CRASH, "Killed signal terminated program"},
	{NINJA_CRASH, "signal terminated program"},
	{NINJA_CRASH, "terminated with signal"},
	{NINJA_CRASH, "died due to signal"},
	{NINJA_CRASH, "died with status 0xC"},
	{NINJA_CRASH, "failed due to signal"},
	{NINJA_CRASH, "frontend command failed with exit code"},
	{NINJA_CRASH, "unable to execute command: Killed"},
	{NINJA_CRASH, "unable to execute command: Segmentation fault"},
	{NINJA_CRASH, "unable to execute command: Aborted"},
	{NINJA_CRASH, "unable to execute command: Bus error"},
	{NINJA_CRASH, "unable to execute command: Illegal instruction"},
	{NINJA_CRASH, "unable to execute command: Terminated"},
	{NINJA_CRASH, "PLEASE submit a bug report to"},
	{NINJA_CRASH, "PLEASE ATTACH THE FOLLOWING FILES TO THE BUG REPORT"},
	{NINJA_CRASH, "internal error, aborting at "},
	/* no memory: the source may be well */
	{NINJA_CRASH, "virtual memory exhausted"},
	{NINJA_CRASH, "out of memory allocating"},
	{NINJA_CRASH, "LLVM ERROR: out of memory"},
	{NINJA_CRASH, "Memory allocation failure"},
	{NINJA_CRASH, "memory exhausted"},
	{NINJA_CRASH, "Cannot allocate memory"},
	{NINJA_CRASH, "std::bad_alloc"},
	{NINJA_CRASH, "compiler is out of heap space"},
	{NINJA_CRASH, "ninja: fatal: posix_spawn: "},
	{NINJA_CRASH, "ninja: fatal: fork: "},
	{NINJA_MISSING, "CMake was unable to find a build program"},
	{NINJA_MISSING, "_COMPILER could be found"},
	{NINJA_MISSING, "is not a full path to an existing compiler tool"},
	{NINJA_MISSING, "is not a full path and was not found in the PATH"},
	{NINJA_MISSING, "Failed to find nvcc."},
	{NINJA_MISSING, "Failed to find ROCm root directory"},
	{NINJA_MISSING, "cannot execute 'cc1plus'"},
	{NINJA_BROKEN, "is not able to compile a simple test program"},
	{NINJA_BROKEN, "Failed to detect a default CUDA architecture"},
	{NINJA_BROKEN, "nvcc fatal   : Failed to preprocess host compiler properties"},
	{NINJA_BROKEN, "nvcc fatal   : Host compiler targets unsupported OS"},
	{NINJA_ERROR, ": error: "},
	{NINJA_ERROR, ": error C"},
	{NINJA_ERROR, "; error   : "}, /* ptxas, of its input's line */
	{NINJA_ERROR, ": fatal error: "},
	{NINJA_ERROR, "undefined reference to"},
	{NINJA_ERROR, "multiple definition of"},
	{NINJA_ERROR, "ld: cannot find "},
	{NINJA_ERROR, "nvcc fatal"},
	{NINJA_ERROR, "ptxas fatal"},
	{NINJA_ERROR, "ninja: error: "},
	{NINJA_ERROR, "ninja: fatal: "},
};

void
ninja_init(struct ninja *n, ninja_step step, void *arg)
{
	memset(n, 0, sizeof *n);
	n->step = step;
	n->arg = arg;
}

/* "[12/345] " in front; gives the text behind it, or NULL. */
static const char *
status_parse(const char *s, uint32_t *done, uint32_t *total)
{
	uint32_t v[2] = {0, 0};
	int i, digits;

	if (*s++ != '[')
		return NULL;
	for (i = 0; i < 2; i++) {
		for (digits = 0; *s >= '0' && *s <= '9'; s++, digits++)
			v[i] = v[i] * 10 + (uint32_t)(*s - '0');
		if (digits < 1 || digits > 7 || *s++ != (i == 0 ? '/' : ']'))
			return NULL;
	}
	if (*s != ' ' || v[1] == 0 || v[0] > v[1])
		return NULL;
	*done = v[0];
	*total = v[1];
	return s + 1;
}

static void
trouble_set(struct ninja *n, enum ninja_trouble t, const char *line)
{
	while (*line == ' ' || *line == '\t')
		line++;
	n->trouble = t;
	str_show(n->headline, sizeof n->headline, line, strlen(line));
}

/* "CMake Error at CMakeLists.txt:3 (message):" says where, a line below says what. */
static void
cmake_line(struct ninja *n, const char *line)
{
	char where[NINJA_TEXT];
	const char *at, *end;

	if (!n->cmake_error) {
		n->cmake_error = true;
		at = str_starts(line, "CMake Error at ") ? line + 15 : line;
		end = strstr(at, " (");
		str_show(where, sizeof where, at,
			end != NULL && at != line ? (size_t)(end - at) : strlen(at));
		trouble_set(n, NINJA_ERROR, where);
	}
}

static void
cmake_detail(struct ninja *n, const char *line)
{
	char both[NINJA_LINE];
	size_t len;

	line += strspn(line, " \t");
	len = strlen(n->headline);
	if (n->trouble != NINJA_ERROR || *line == '\0')
		return;
	snprintf(both, sizeof both, "%s%s %.600s", n->headline,
		len > 0 && n->headline[len - 1] == ':' ? "" : ":", line);
	trouble_set(n, NINJA_ERROR, both);
	n->cmake_error = false;
}

/* The shell's own word for a command that a signal ended, alone on its line. */
static bool
is_shell_crash(const char *line)
{
	static const char *const words[] = {"Segmentation fault", "Killed", "Aborted",
		"Bus error", "Illegal instruction", "Floating point exception", "Terminated"};
	size_t i, len;

	for (i = 0; i < str_count(words); i++) {
		len = strlen(words[i]);
		if (strncmp(line, words[i], len) == 0 && (line[len] == '\0' ||
				strcmp(line + len, " (core dumped)") == 0))
			return true;
	}
	return false;
}

/* "  12 |     perror("No space left on device");": a line of the source, shown below what
 * the compiler says of it. */
static bool
is_excerpt(const char *line)
{
	line += strspn(line, " \t");
	line += strspn(line, "0123456789");
	line += strspn(line, " \t");
	return *line == '|';
}

static void
pattern_line(struct ninja *n, const char *line)
{
	size_t i;

	if (is_excerpt(line))
		return;
	if (n->trouble == NINJA_FINE && is_shell_crash(line)) {
		trouble_set(n, NINJA_CRASH, line);
		return;
	}
	for (i = 0; i < str_count(patterns); i++)
		if (strstr(line, patterns[i].text) != NULL)
			break;
	if (i == str_count(patterns))
		return;
	/* What a source really says wrong stays the headline when a compiler is killed
	 * later; a full disk makes every other line meaningless. */
	if (n->trouble == NINJA_FINE ||
	    (patterns[i].trouble > n->trouble && patterns[i].trouble != NINJA_CRASH))
		trouble_set(n, patterns[i].trouble, line);
}

/* The target stands in front of what its command printed; newer versions put
 * "[code=1] " between. */
static void
failed_read(struct ninja *n, const char *text)
{
	const char *end;
	long code = 0;

	if (str_starts(text, "[code=") && (end = strstr(text, "] ")) != NULL) {
		code = strtol(text + 6, NULL, 10);
		text = end + 2;
	}
	if (n->trouble == NINJA_FINE) {
		n->code = (int)code;
		str_show(n->failed, sizeof n->failed, text, strcspn(text, " "));
		n->said[0] = '\0';
	}
	n->after_failed = 2;
}

static void
line_read(struct ninja *n)
{
	const char *text;
	uint32_t done, total;
	int after = n->after_failed;

	n->line[n->len] = '\0';
	n->len = 0;
	n->after_failed = after > 0 ? after - 1 : 0;
	if (n->line[strspn(n->line, " \t")] == '\0')
		return;
	str_show(n->last, sizeof n->last, n->line, strlen(n->line));
	if ((text = status_parse(n->line, &done, &total)) != NULL) {
		n->done = done;
		n->total = total;
		str_show(n->last, sizeof n->last, text, strlen(text));
		if (n->step != NULL)
			n->step(n->arg, done, total, n->last);
		return;
	}
	if (str_starts(n->line, "FAILED: ")) {
		failed_read(n, n->line + 8);
		return;
	}
	if (after == 2) /* the command itself, which may hold any words */
		return;
	if (after == 1 && n->said[0] == '\0' && !str_starts(n->line, "ninja: "))
		str_show(n->said, sizeof n->said, n->line, strlen(n->line));
	if (n->cmake_error && n->trouble == NINJA_ERROR && n->line[0] == ' ')
		cmake_detail(n, n->line);
	if (str_starts(n->line, "CMake Error") && n->trouble == NINJA_FINE)
		cmake_line(n, n->line);
	pattern_line(n, n->line);
}

/* Leaves out "ESC [ ... letter", so that a coloured "error:" is still found. */
static size_t
colour_skip(const char *p, size_t len)
{
	size_t i;

	if (len < 2 || p[0] != '\033' || p[1] != '[')
		return 0;
	for (i = 2; i < len && i < 32; i++)
		if ((p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= 'a' && p[i] <= 'z'))
			return i + 1;
	return 0;
}

static void
line_clean(struct ninja *n)
{
	size_t i = 0, k = 0, skip;

	while (i < n->len) {
		if ((skip = colour_skip(n->line + i, n->len - i)) > 0) {
			i += skip;
			continue;
		}
		n->line[k++] = n->line[i++];
	}
	n->len = k;
}

void
ninja_add(struct ninja *n, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] == '\n' || p[i] == '\r') {
			line_clean(n);
			line_read(n);
			continue;
		}
		/* The rest of an overlong line is dropped. */
		if (n->len < sizeof n->line - 1)
			n->line[n->len++] = p[i] ? p[i] : '?';
	}
}

void
ninja_end(struct ninja *n)
{
	char text[64];

	if (n->len > 0)
		ninja_add(n, "\n", 1);
	/* killed without a word: a shell gives 128 and the signal */
	if (n->trouble != NINJA_FINE || n->code <= 128 || n->code > 128 + 64)
		return;
	snprintf(text, sizeof text, "the compiler ended with code %d (signal %d)", n->code, n->code - 128);
	trouble_set(n, NINJA_CRASH, text);
}

void
ninja_reason(const struct ninja *n, char *out, size_t size)
{
	if (n->headline[0] != '\0' && n->trouble != NINJA_ERROR && n->failed[0] != '\0')
		snprintf(out, size, "%s (making %s)", n->headline, n->failed);
	else if (n->headline[0] != '\0')
		snprintf(out, size, "%s", n->headline);
	else if (n->failed[0] != '\0')
		snprintf(out, size, "FAILED: %s%s%s", n->failed, n->said[0] ? ": " : "",
			n->said);
	else
		snprintf(out, size, "%s", n->last[0] != '\0' ? n->last : "no output at all");
}
