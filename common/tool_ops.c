/* What test-backend-ops prints, and adb devices -l. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tool_impl.h"

/* ---- test-backend-ops ---- */

/* "  SET_ROWS(type=q8_0,ne=[256,5]): OK": the op's name, its parameters, what follows. */
static bool
case_split(char *line, struct tool_case *c, const char **rest)
{
	char *p = tool_trim(line), *open, *end = NULL, *q;
	size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	int depth = 0;

	if (n < 2 || n >= sizeof c->op || p[n] != '(' || !isupper((unsigned char)p[0]))
		return false;
	open = p + n;
	for (q = open; *q != '\0' && end == NULL; q++) {
		depth += *q == '(' || *q == '[' ? 1 : *q == ')' || *q == ']' ? -1 : 0;
		if (depth == 0 && *q == ')')
			end = q;
	}
	if (end == NULL || end[1] != ':')
		return false;
	snprintf(c->line, sizeof c->line, "%.199s", p);
	memcpy(c->op, p, n);
	c->op[n] = '\0';
	str_show(c->params, sizeof c->params, open + 1, (size_t)(end - open - 1));
	*rest = end + 2;
	return true;
}

/* "[MUL_MAT] NMSE = 0.5 > 0.0005   MUL_MAT(...): FAIL": what a comparison said stands in
 * front of its row, without a line's end. */
static char *
row_of(char *line, double *nmse)
{
	char *p = tool_trim(line), *end, *at, mark[64];
	const char *value;

	*nmse = -1;
	if (p[0] != '[' || (end = strchr(p, ']')) == NULL || (size_t)(end - p) >= sizeof mark - 2)
		return p;
	snprintf(mark, sizeof mark, " %.*s(", (int)(end - p - 1), p + 1);
	if ((at = strstr(end, mark)) == NULL)
		return p;
	if ((value = strstr(end, " = ")) != NULL && value < at)
		*nmse = strtod(value + 3, NULL);
	return at + 1;
}

/* The last word of a row decides. */
static bool
result_read(const char *rest, struct tool_case *c)
{
	const char *err = strstr(rest, "ERR = ");
	size_t n;

	while (isspace((unsigned char)*rest))
		rest++;
	for (n = strlen(rest); n > 0 && isspace((unsigned char)rest[n - 1]); n--)
		;
	c->nmse = -1;
	if (err == NULL)
		err = strstr(rest, "NMSE = ");
	if (err != NULL)
		c->nmse = strtod(strchr(err, '=') + 1, NULL);
	if (!(c->nmse >= 0 && c->nmse < 1e300))
		c->nmse = -1;
	if (strstr(rest, "not supported") != NULL)
		c->result = CASE_NOT_SUPPORTED;
	else if (n >= 4 && strncmp(rest + n - 4, "FAIL", 4) == 0)
		c->result = CASE_FAILED;
	else if (n >= 2 && strncmp(rest + n - 2, "OK", 2) == 0)
		c->result = CASE_OK;
	else
		return false;
	return true;
}

struct walk {
	char backend[32];
	void (*each)(void *arg, const struct tool_case *c);
	void *arg;
};

/* "Backend 1/2: CUDA0" */
static bool
head_read(const char *p, char backend[32])
{
	unsigned i, n;
	int used = 0;

	size_t length;

	if (sscanf(p, "Backend %u/%u: %n", &i, &n, &used) == 2 && used > 0 && p[used] != '\0') {
		snprintf(backend, 32, "%.31s", p + used);
		return true;
	}
	/* before October 2024: "Backend 1/2 (CUDA0)" */
	used = 0;
	length = strlen(p);
	if (sscanf(p, "Backend %u/%u (%n", &i, &n, &used) != 2 || used == 0 || p[length - 1] != ')' ||
	    length < (size_t)used + 2)
		return false;
	snprintf(backend, 32, "%.*s", (int)(length - 1 - (size_t)used < 31 ? length - 1 - (size_t)used : 31),
		p + used);
	return true;
}

static void
cases_walk(const char *text, size_t len, struct walk *w)
{
	struct tool_case c;
	char line[2048], *row;
	const char *rest;
	double nmse;
	size_t pos = 0;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		if (head_read(tool_trim(line), w->backend))
			continue;
		memset(&c, 0, sizeof c);
		row = row_of(line, &nmse);
		if (case_split(row, &c, &rest) && result_read(rest, &c)) {
			if (c.nmse < 0 && nmse >= 0 && nmse < 1e300)
				c.nmse = nmse;
			memcpy(c.backend, w->backend, sizeof c.backend);
			w->each(w->arg, &c);
		}
	}
}

int
tool_ops_each(const char *text, size_t len, void (*each)(void *arg, const struct tool_case *c),
	void *arg, struct err *e)
{
	struct walk w = {.each = each, .arg = arg};
	char *clean;
	size_t n;

	if (tool_clean(text, len, &clean, &n, e))
		return -1;
	cases_walk(clean, n, &w);
	free(clean);
	return 0;
}

bool
tool_backend_matches(const char *glob, const char *name)
{
	size_t n = strcspn(glob, "[");

	if (strncmp(glob, name, n) != 0)
		return false;
	return glob[n] == '\0' ? name[n] == '\0'
		: name[n] != '\0' && strspn(name + n, "0123456789") == strlen(name + n);
}

static void
case_count(void *arg, const struct tool_case *c)
{
	struct tool_answer *a = arg;
	struct tool_op *p;
	int i;

	for (i = 0; i < a->op_count; i++)
		if (strcmp(a->op[i].op, c->op) == 0 && strcmp(a->op[i].backend, c->backend) == 0)
			break;
	if (i == TOOL_MAX_OPS) {
		a->overflow = true;
		return;
	}
	p = &a->op[i];
	if (i == a->op_count) {
		a->op_count++;
		memcpy(p->backend, c->backend, sizeof p->backend);
		memcpy(p->op, c->op, sizeof p->op);
		p->ok = p->failed = p->not_supported = 0;
		p->worst_nmse = -1;
	}
	p->ok += c->result == CASE_OK;
	p->failed += c->result == CASE_FAILED;
	p->not_supported += c->result == CASE_NOT_SUPPORTED;
	p->worst_nmse = c->nmse > p->worst_nmse ? c->nmse : p->worst_nmse;
	/* of what went wrong the first rows are quoted */
	if (c->result != CASE_OK && a->note_count < TOOL_MAX_NOTES - 1)
		tool_note(a, "%s", c->line);
}

/* "  135/135 tests passed", "2/2 backends passed" */
static bool
sum_read(const char *p, const char *what, int64_t *passed, int64_t *all)
{
	unsigned long long a, b;
	int used = 0;

	if (sscanf(p, "%llu/%llu %n", &a, &b, &used) != 2 || used == 0 || strcmp(p + used, what) != 0)
		return false;
	*passed = (int64_t)a;
	*all = (int64_t)b;
	return true;
}

static void
ends_read(const char *text, size_t len, struct tool_answer *out)
{
	struct tool_backend *b = NULL;
	char line[1024], name[32], *p;
	size_t pos = 0;
	int64_t passed, all;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		p = tool_trim(line);
		if (head_read(p, name)) {
			if (out->backend_count == (int)str_count(out->backend)) {
				out->overflow = true;
				return;
			}
			b = &out->backend[out->backend_count++];
			memset(b, 0, sizeof *b);
			memcpy(b->name, name, sizeof b->name);
			b->passed = b->executed = -1;
			out->ok_line = out->failed_line = false;
		} else if (sum_read(p, "backends passed", &passed, &all)) {
			out->backends_passed = passed;
			out->backends = all;
		} else if (b != NULL && sum_read(p, "tests passed", &passed, &all)) {
			b->passed = passed;
			b->executed = all;
		} else if (b != NULL && strncmp(p, "Skipping", 8) == 0) {
			b->skipped = true;
		} else if (b != NULL && strncmp(p, "Device description: ", 20) == 0) {
			str_show(b->device, sizeof b->device, p + 20, strlen(p + 20));
		} else if (b != NULL && strncmp(p, "Backend ", 8) == 0 && strstr(p, b->name) != NULL) {
			b->ended_ok = strcmp(p + strlen(p) - 2, "OK") == 0;
			b->ended_fail = !b->ended_ok;
		} else if (strcmp(p, "OK") == 0 || strcmp(p, "FAIL") == 0) {
			out->ok_line = p[0] == 'O';
			out->failed_line = p[0] == 'F';
		}
	}
}

/* A sum above what it is a part of, without one row, or of a backend that ends in FAIL. */
static bool
sum_is_untrue(const struct tool_answer *out, const struct tool_backend *b)
{
	uint64_t rows = 0;
	int i;

	for (i = 0; i < out->op_count; i++)
		if (strcmp(out->op[i].backend, b->name) == 0)
			rows += out->op[i].ok;
	return b->passed > b->executed || (b->passed > 0 && rows == 0) ||
		(b->ended_fail && b->executed > 0 && b->passed == b->executed);
}

static void
ops_judge(struct tool_answer *out, int exit)
{
	int64_t executed = 0, failed = 0, not_supported = 0;
	int i, tested = 0, skipped = 0, no_end = 0, untrue = 0;

	for (i = 0; i < out->op_count; i++) {
		failed += out->op[i].failed;
		not_supported += out->op[i].not_supported;
	}
	for (i = 0; i < out->backend_count; i++) {
		skipped += out->backend[i].skipped;
		tested += !out->backend[i].skipped;
		no_end += !out->backend[i].skipped &&
			(out->backend[i].executed < 0 || (!out->backend[i].ended_ok && !out->backend[i].ended_fail));
		executed += out->backend[i].executed > 0 ? out->backend[i].executed : 0;
		untrue += sum_is_untrue(out, &out->backend[i]);
		failed += out->backend[i].executed > out->backend[i].passed && failed == 0;
	}
	if (out->backend_count == 0)
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "test-backend-ops names no backend");
	else if (failed > 0)
		tool_say(out, REASON_OP_MISMATCH, "%lld cases fail: %s", (long long)failed,
			out->note_count > 0 ? out->note[0] : "");
	else if (no_end > 0 || out->backends < 0 || (!out->ok_line && !out->failed_line))
		tool_say(out, REASON_SUMMARY_MISSING, "the end of test-backend-ops is missing");
	/* later versions call it a FAIL when no case was executed */
	else if (tested > 0 && executed == 0 && untrue == 0)
		tool_say(out, REASON_NO_CASE_EXECUTED, "0 cases were executed, %lld are not supported: %s",
			(long long)not_supported, out->note_count > 0 ? out->note[0] : "no row is printed");
	else if (untrue > 0)
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "the sums of test-backend-ops are not those of its rows");
	else if (out->failed_line || exit > 0 || out->backends_passed < out->backends)
		tool_say(out, REASON_OP_MISMATCH, "test-backend-ops ends with %s, exit %d",
			out->failed_line ? "FAIL" : "OK", exit);
	else if (tested == 0)
		tool_say(out, REASON_BACKEND_NOT_PRESENT, "each of the %d backends was skipped", skipped);
}

void
tool_read_ops(const char *text, size_t len, int exit, struct tool_answer *out)
{
	struct walk w = {.each = case_count, .arg = out};

	cases_walk(text, len, &w);
	ends_read(text, len, out);
	ops_judge(out, exit);
}

/* ---- adb devices -l ---- */

static const struct tool_refusal refusals[] = {
	{"command not found", REASON_TOOL_MISSING, "install the platform tools"},
	{"cannot connect to daemon", REASON_TOOL_BROKEN, "adb kill-server, then again"},
	{"failed to start daemon", REASON_TOOL_BROKEN, ""},
	{"could not read ok from ADB Server", REASON_TOOL_BROKEN, "adb kill-server, then again"},
};

/* Words of a state, of which one holds a blank. */
static const char *const states[] = {
	"device", "unauthorized", "offline", "no permissions", "recovery", "sideload", "bootloader",
	"rescue", "host", "authorizing", "connecting", "unknown", "detached",
};

static bool
phone_line(char *p, struct tool_answer *out)
{
	struct tool_device *d;
	/* a phone found over the air may have a counter in its serial: "adb-1A2B (2)._adb-tls..." */
	char *air = strstr(p, "._adb-tls-connect._tcp"), *state, *model;
	size_t i, n;

	state = air != NULL ? air : p;
	state += strcspn(state, " \t");
	if (*state == '\0' || state == p)
		return false;
	*state++ = '\0';
	while (*state == ' ' || *state == '\t')
		state++;
	for (i = 0; i < str_count(states); i++) {
		n = strlen(states[i]);
		if (strncmp(state, states[i], n) == 0 && strchr(" \t(;", state[n]) != NULL)
			break;
	}
	if (i == str_count(states) || strlen(p) > 63)
		return false;
	if ((d = tool_device_add(out)) == NULL)
		return true;
	snprintf(d->uuid, sizeof d->uuid, "%.63s", p);
	snprintf(d->state, sizeof d->state, "%s", i == 0 ? "" : states[i]);
	d->index = out->count - 1;
	if ((model = strstr(state, "model:")) != NULL)
		str_show(d->name, sizeof d->name, model + 6, strcspn(model + 6, " \t"));
	return true;
}

enum reason
tool_adb_reason(const char *state)
{
	return strcmp(state, "unauthorized") == 0 ? REASON_DEVICE_UNAUTHORIZED
		: strcmp(state, "no permissions") == 0 ? REASON_NO_PERMISSION : REASON_DEVICE_OFFLINE;
}

void
tool_read_adb(const char *text, size_t len, int exit, struct tool_answer *out)
{
	char line[512], *p;
	size_t pos = 0;
	bool list = false;
	int ready = 0, emulators = 0, k;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		p = tool_trim(line);
		if (strncmp(p, "List of devices attached", 24) == 0)
			list = true;
		else if (list && p[0] != '\0' && p[0] != '*' && !phone_line(p, out))
			tool_note(out, "%s", p);
		else if (strncmp(p, "* daemon", 8) == 0)
			tool_note(out, "%s", p);
	}
	for (k = 0; k < out->count; k++) {
		ready += out->device[k].state[0] == '\0';
		emulators += out->device[k].state[0] == '\0' && str_starts(out->device[k].uuid, "emulator-");
	}
	if (!list && !tool_refused(refusals, str_count(refusals), text, out))
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "adb printed no list of devices (exit %d)", exit);
	else if (list && out->count == 0)
		tool_say(out, REASON_NO_DEVICE, "adb lists no device");
	else if (list && ready == 0)
		tool_say(out, tool_adb_reason(out->device[0].state), "%s is %s", out->device[0].uuid,
			out->device[0].state);
	else if (list && emulators == ready)
		tool_say(out, REASON_EMULATOR, "each of the %d devices of adb is an emulator", ready);
	else if (list && exit > 0)
		tool_say(out, REASON_TOOL_BROKEN, "adb devices ended with exit %d", exit);
}
