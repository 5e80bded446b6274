#include "common/tool_impl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json.h"
#include "common/ntstatus.h"

static const struct {
	const char *name;
	tool_read read;
} kinds[TOOL_KIND_COUNT] = {
	[TOOL_NVIDIA_SMI_L] = {"nvidia-smi-L", tool_read_smi_list},
	[TOOL_NVIDIA_SMI_QUERY] = {"nvidia-smi-query", tool_read_smi_query},
	[TOOL_NVCC] = {"nvcc-version", tool_read_nvcc},
	[TOOL_ROCMINFO] = {"rocminfo", tool_read_rocminfo},
	[TOOL_VULKANINFO] = {"vulkaninfo-summary", tool_read_vulkaninfo},
	[TOOL_TEST_BACKEND_OPS] = {"test-backend-ops", tool_read_ops},
	[TOOL_ADB_DEVICES] = {"adb-devices", tool_read_adb},
	[TOOL_PROBE] = {"probe", tool_read_probe},
};

int
tool_kind_find(const char *name)
{
	int i;

	for (i = 0; name != NULL && i < TOOL_KIND_COUNT; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return i;
	return -1;
}

const char *
tool_kind_name(enum tool_kind k)
{
	return kinds[k].name;
}

/* ---- text ---- */

static size_t
utf8_put(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* UTF-16 as PowerShell writes it: by its mark, or because every other byte of the
 * beginning is 0.  1 little, 2 big endian, 0 neither. */
static int
utf16_order(const uint8_t *p, size_t n)
{
	size_t i, little = 0, big = 0, k = n < 64 ? n / 2 * 2 : 64;

	if (n >= 2 && p[0] == 0xff && p[1] == 0xfe)
		return 1;
	if (n >= 2 && p[0] == 0xfe && p[1] == 0xff)
		return 2;
	for (i = 0; i + 1 < k; i += 2) {
		little += p[i] != 0 && p[i + 1] == 0;
		big += p[i] == 0 && p[i + 1] != 0;
	}
	if (k < 8)
		return 0;
	return little * 4 >= k / 2 * 3 ? 1 : big * 4 >= k / 2 * 3 ? 2 : 0;
}

static size_t
utf16_read(const uint8_t *p, size_t n, bool big, char *to)
{
	size_t i, used = 0;
	uint32_t c, low;

	for (i = 0; i + 1 < n; i += 2) {
		c = big ? (uint32_t)p[i] << 8 | p[i + 1] : (uint32_t)p[i + 1] << 8 | p[i];
		if (c >= 0xd800 && c < 0xdc00 && i + 3 < n) {
			low = big ? (uint32_t)p[i + 2] << 8 | p[i + 3] : (uint32_t)p[i + 3] << 8 | p[i + 2];
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			}
		}
		if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		if (c != 0xfeff)
			used += utf8_put(to + used, c);
	}
	return used;
}

/* Length of an escape sequence at p; 0: none.  CSI and OSC as terminals know them. */
static size_t
escape_length(const char *p, size_t n)
{
	size_t i;

	if (n < 2 || p[0] != '\033')
		return 0;
	if (p[1] == '[') {
		for (i = 2; i < n && i < 64; i++)
			if (p[i] >= 0x40 && p[i] <= 0x7e)
				return i + 1;
		return 2;
	}
	if (p[1] == ']') {
		for (i = 2; i < n && i < 512; i++)
			if (p[i] == '\a')
				return i + 1;
		return 2;
	}
	/* the choice of a character set, as sgr0 of many terminals: ESC ( B */
	if (n > 2 && strchr("()*+", p[1]) != NULL && p[1] != '\0')
		return 3;
	return 2;
}

bool
tool_is_utf16(const char *text, size_t len)
{
	return utf16_order((const uint8_t *)text, len) != 0;
}

char *
tool_utf8(const char *text, size_t len, size_t *out_len)
{
	/* 2 bytes of UTF-16 become at most 3 of UTF-8 */
	char *out = len < SIZE_MAX / 4 ? malloc(len * 2 + 4) : NULL;

	if (out != NULL)
		*out_len = utf16_read((const uint8_t *)text, len, utf16_order((const uint8_t *)text, len) == 2,
			out);
	return out;
}

int
tool_clean(const char *text, size_t len, char **out, size_t *out_len, struct err *e)
{
	const uint8_t *raw = (const uint8_t *)text;
	char *wide, *p;
	size_t n = len, i, used = 0, k;
	int order;

	if (len > TOOL_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "the output has %zu bytes, at most %u are read", len,
			TOOL_MAX_BYTES);
	/* 2 bytes of UTF-16 become at most 3 of UTF-8 */
	if ((wide = malloc(len * 2 + 4)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the output of a tool");
	if ((order = utf16_order(raw, len)) != 0) {
		n = utf16_read(raw, len, order == 2, wide);
	} else {
		i = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
		n = len - i;
		if (n > 0)
			memcpy(wide, text + i, n);
	}
	for (p = wide, i = 0; i < n;) {
		if ((k = escape_length(wide + i, n - i)) > 0) {
			i += k;
		} else if (wide[i] == '\r' || wide[i] == '\0') {
			/* a lone CR is the end of a line of old systems and of progress bars */
			if (wide[i] == '\r' && i + 1 < n && wide[i + 1] != '\n' && wide[i + 1] != '\r')
				p[used++] = '\n';
			i++;
		} else {
			p[used++] = wide[i++];
		}
	}
	wide[used] = '\0';
	*out = wide;
	*out_len = used;
	return 0;
}

bool
tool_line(const char *text, size_t len, size_t *pos, char *out, size_t size)
{
	size_t n, k;

	if (*pos >= len)
		return false;
	for (n = 0; *pos + n < len && text[*pos + n] != '\n'; n++)
		;
	k = n < size - 1 ? n : size - 1;
	memcpy(out, text + *pos, k);
	while (k > 0 && isspace((unsigned char)out[k - 1]))
		k--;
	out[k] = '\0';
	*pos += n + 1;
	return true;
}

char *
tool_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

bool
tool_pci(const char *text, char out[32])
{
	unsigned part[4] = {0, 0, 0, 0};
	const char *p = text;
	char *end;
	int colons = 0, i;

	for (; *p != '\0'; p++)
		colons += *p == ':';
	if (colons < 1 || colons > 2 || strlen(text) > 24)
		return false;
	for (p = text, i = colons == 2 ? 0 : 1; i < 4; i++) {
		if (!isxdigit((unsigned char)*p))
			return false;
		part[i] = (unsigned)strtoul(p, &end, 16);
		if (*end != (i < 2 ? ':' : i == 2 ? '.' : '\0'))
			return false;
		p = end + 1;
	}
	if (part[1] > 0xff || part[2] > 0x1f || part[3] > 7)
		return false;
	snprintf(out, 32, "%04x:%02x:%02x.%x", part[0], part[1], part[2], part[3]);
	return true;
}

bool
tool_is_software_name(const char *name)
{
	static const char *const names[] = {"llvmpipe", "lavapipe", "swiftshader", "softpipe",
		"software rasterizer", "basic render"};
	size_t i;

	for (i = 0; i < str_count(names); i++)
		if (strcasestr(name, names[i]) != NULL)
			return true;
	return false;
}

bool
tool_is_software(const struct tool_device *d)
{
	static const char *const drivers[] = {"GOOGLE_SWIFTSHADER", "MESA_LLVMPIPE", "APE_SOFT"};
	size_t i;

	for (i = 0; i < str_count(drivers); i++)
		if (strstr(d->driver_id, drivers[i]) != NULL)
			return true;
	return d->type == TYPE_CPU || tool_is_software_name(d->name);
}

/* A profile ends in -SIZE and the letter of its kind. */
bool
tool_is_vgpu_name(const char *name)
{
	size_t n = strlen(name), i;

	if (str_starts(name, "GRID ") || strstr(name, " vGPU") != NULL)
		return true;
	if (n < 4 || (strchr("ABCQ", name[n - 1]) == NULL && strcmp(name + n - 3, "CME") != 0))
		return false;
	/* a slice of a slice with the media engines: "-5CME" */
	n -= n > 6 && strcmp(name + n - 3, "CME") == 0 ? 2 : 0;
	for (i = n - 1; i > 0 && isdigit((unsigned char)name[i - 1]); i--)
		;
	return i < n - 1 && i > 0 && name[i - 1] == '-' && n - 1 - i <= 3;
}

/* ---- answers ---- */

struct tool_device *
tool_device_add(struct tool_answer *a)
{
	struct tool_device *d;

	if (a->count == TOOL_MAX_DEVICES) {
		a->overflow = true;
		return NULL;
	}
	d = &a->device[a->count++];
	memset(d, 0, sizeof *d);
	d->index = d->parent = -1;
	d->memory_mib = d->used_mib = d->utilization = d->chip_id = -1;
	d->ecc = d->ecc_ever = d->xid = d->processes = -1;
	d->conformant = true;
	return d;
}

void
tool_say(struct tool_answer *a, enum reason r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_showv(a->detail, sizeof a->detail, fmt, ap);
	va_end(ap);
	a->reason = r;
	str_show(a->hint, sizeof a->hint, reason_hint(r), strlen(reason_hint(r)));
}

void
tool_hint(struct tool_answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_showv(a->hint, sizeof a->hint, fmt, ap);
	va_end(ap);
}

void
tool_note(struct tool_answer *a, const char *fmt, ...)
{
	va_list ap;

	if (a->note_count == TOOL_MAX_NOTES)
		return;
	va_start(ap, fmt);
	str_showv(a->note[a->note_count++], sizeof a->note[0], fmt, ap);
	va_end(ap);
}

/* The line of the text in which a word stands. */
static void
line_of(const char *text, const char *at, char *out, size_t size)
{
	const char *from = at, *to;

	while (from > text && from[-1] != '\n')
		from--;
	for (to = at; *to != '\0' && *to != '\n'; to++)
		;
	str_show(out, size, from, (size_t)(to - from));
}

bool
tool_refused(const struct tool_refusal *rows, size_t count, const char *text,
	struct tool_answer *a)
{
	char line[240];
	const char *at;
	size_t i;

	for (i = 0; i < count; i++) {
		if ((at = strcasestr(text, rows[i].word)) == NULL)
			continue;
		line_of(text, at, line, sizeof line);
		tool_say(a, rows[i].reason, "%s", tool_trim(line));
		if (rows[i].hint[0] != '\0')
			tool_hint(a, "%s", rows[i].hint);
		return true;
	}
	return false;
}

/* What a shell or the loader says in place of a tool that could not be started. */
static void
start_failed(const char *text, int exit, struct tool_answer *out)
{
	/* of shells in some languages */
	static const char *const words[] = {": not found\n", "command not found", "is not recognized as ",
		"nicht gefunden", "commande introuvable", "orden no encontrada", "comando non trovato",
		"konnte nicht gefunden werden", "n\xe2\x80\x99""est pas reconnu", "n'est pas reconnu",
		"no se reconoce como un comando", "\xe6\x9c\xaa\xe6\x89\xbe\xe5\x88\xb0\xe5\x91\xbd\xe4\xbb\xa4",
		"\xe3\x82\xb3\xe3\x83\x9e\xe3\x83\xb3\xe3\x83\x89\xe3\x81\x8c\xe8\xa6\x8b\xe3\x81\xa4\xe3\x81\x8b"
		"\xe3\x82\x8a\xe3\x81\xbe\xe3\x81\x9b\xe3\x82\x93"};
	size_t i;

	if (out->count > 0 || out->backend_count > 0 || (out->reason != REASON_UNKNOWN_TOOL_FORMAT &&
			out->reason != REASON_TOOL_MISSING))
		return;
	if (strstr(text, "error while loading shared libraries") != NULL) {
		tool_say(out, REASON_TOOL_BROKEN, "%s lacks a shared library: %s", tool_kind_name(out->kind),
			text);
		return;
	}
	for (i = 0; i < str_count(words) && strstr(text, words[i]) == NULL; i++)
		;
	if (exit == 126)
		tool_say(out, REASON_TOOL_BROKEN, "the tool for %s is there and can not be run (exit 126): %s",
			tool_kind_name(out->kind), text);
	else if (out->reason != REASON_TOOL_MISSING && (i < str_count(words) || exit == 127 || exit == 9009))
		tool_say(out, REASON_TOOL_MISSING, "the tool for %s is not there (exit %d)",
			tool_kind_name(out->kind), exit);
}

/* What the system ended proves nothing, whatever it had printed. */
static void
end_judge(const char *text, size_t len, int exit, struct tool_answer *out)
{
	char shown[96];
	int status = exit;
	bool quiet = out->count == 0 && out->backend_count == 0 && out->reason == REASON_UNKNOWN_TOOL_FORMAT;

	if (out->reason != REASON_NONE && out->reason != REASON_SUMMARY_MISSING &&
	    out->reason != REASON_TOOL_BROKEN && !quiet)
		return;
	if (ntstatus_is(exit) || (quiet && ntstatus_find(text, len, &status))) {
		ntstatus_show(status, shown, sizeof shown);
		tool_say(out, ntstatus_not_loaded(status) ? REASON_TOOL_BROKEN : REASON_PROBE_CRASHED, "%s %s %s",
			tool_kind_name(out->kind), ntstatus_not_loaded(status) ? "could not be started:" : "ended with",
			shown);
	} else if (exit > 128 && exit < 160) {
		tool_say(out, REASON_PROBE_CRASHED, "%s ended with exit %d, as by signal %d",
			tool_kind_name(out->kind), exit, exit - 128);
	}
}

/* A tool of a GPU that says that it saw none: its words beat its exit code, and say more
 * than that nothing was executed.  Of tools with tables of their own, those tables decide. */
static void
gpu_unseen(const char *text, struct tool_answer *out)
{
	static const struct tool_refusal rows[] = {
		{"No AMD compatible GPU found", REASON_TOOL_SAW_NO_GPU, ""},
		{"No AMD GPUs specified", REASON_TOOL_SAW_NO_GPU, ""},
		{"no CUDA-capable device is detected", REASON_TOOL_SAW_NO_GPU, ""},
		{"no ROCm-capable device is detected", REASON_TOOL_SAW_NO_GPU, ""},
		{"ggml_vulkan: No devices found", REASON_TOOL_SAW_NO_GPU, ""},
	};
	int i;

	if (out->kind != TOOL_TEST_BACKEND_OPS || out->reason == REASON_NONE ||
	    out->reason == REASON_SUMMARY_MISSING)
		return;
	for (i = 0; i < out->backend_count; i++)
		if (out->backend[i].executed > 0)
			return;
	if (!tool_refused(rows, str_count(rows), text, out))
		return;
	for (i = 0; i < out->backend_count; i++)
		if (out->backend[i].skipped)
			tool_note(out, "%s was skipped", out->backend[i].name);
}

void
tool_parse(enum tool_kind k, const char *text, size_t len, int exit, struct tool_answer *out)
{
	struct err e = {0};
	char *clean = NULL;
	size_t n;

	memset(out, 0, sizeof *out);
	out->kind = k;
	out->backends = out->backends_passed = -1;
	if (tool_clean(text, len, &clean, &n, &e)) {
		tool_say(out, e.code == ERR_LIMIT ? REASON_UNKNOWN_TOOL_FORMAT : REASON_INTERNAL, "%s",
			e.msg);
		return;
	}
	kinds[k].read(clean, n, exit, out);
	start_failed(clean, exit, out);
	end_judge(clean, n, exit, out);
	gpu_unseen(clean, out);
	if (out->overflow)
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "more rows than are read (%d devices, %d ops)",
			TOOL_MAX_DEVICES, TOOL_MAX_OPS);
	free(clean);
}

/* ---- as JSON ---- */

static bool
text_or_null(cJSON *o, const char *key, const char *v)
{
	return v[0] != '\0' ? json_add_text(o, key, v, strlen(v)) : json_add_null(o, key);
}

static bool
int_or_null(cJSON *o, const char *key, int64_t v)
{
	return v >= 0 ? json_add_int(o, key, v) : json_add_null(o, key);
}

static bool
device_add(cJSON *list, const struct tool_device *d)
{
	static const char *const types[] = {NULL, "cpu", "integrated", "discrete", "virtual"};
	cJSON *o = cJSON_CreateObject();

	return o != NULL && cJSON_AddItemToArray(list, o) && int_or_null(o, "index", d->index) &&
		text_or_null(o, "name", d->name) && text_or_null(o, "uuid", d->uuid) &&
		text_or_null(o, "pci", d->pci) && text_or_null(o, "arch", d->arch) &&
		text_or_null(o, "features", d->features) && text_or_null(o, "driver", d->driver) &&
		text_or_null(o, "driverId", d->driver_id) && text_or_null(o, "mig", d->mig) &&
		text_or_null(o, "migMode", d->mig_mode) &&
		text_or_null(o, "computeMode", d->compute_mode) && text_or_null(o, "state", d->state) &&
		json_add_str(o, "type", types[d->type]) && int_or_null(o, "parent", d->parent) &&
		int_or_null(o, "memoryMiB", d->memory_mib) && int_or_null(o, "usedMiB", d->used_mib) &&
		int_or_null(o, "utilization", d->utilization) && int_or_null(o, "chipId", d->chip_id) &&
		int_or_null(o, "processes", d->processes) && int_or_null(o, "eccUncorrected", d->ecc) &&
		int_or_null(o, "eccUncorrectedEver", d->ecc_ever) && int_or_null(o, "xid", d->xid) &&
		json_add_bool(o, "rowRemapFailed", d->rows_failed) &&
		json_add_bool(o, "software", d->software) && json_add_bool(o, "vgpu", d->vgpu) &&
		json_add_bool(o, "chipDiffers", d->chip_differs) &&
		json_add_bool(o, "conformant", d->conformant);
}

static bool
backend_add(cJSON *list, const struct tool_backend *b)
{
	cJSON *o = cJSON_CreateObject();

	return o != NULL && cJSON_AddItemToArray(list, o) && json_add_str(o, "name", b->name) &&
		text_or_null(o, "device", b->device) && json_add_bool(o, "skipped", b->skipped) &&
		int_or_null(o, "passed", b->passed) && int_or_null(o, "executed", b->executed) &&
		json_add_str(o, "end", b->ended_ok ? "OK" : b->ended_fail ? "FAIL" : NULL);
}

static bool
op_add(cJSON *list, const struct tool_op *p)
{
	cJSON *o = cJSON_CreateObject();

	return o != NULL && cJSON_AddItemToArray(list, o) && json_add_str(o, "backend", p->backend) &&
		json_add_str(o, "op", p->op) && json_add_int(o, "ok", p->ok) &&
		json_add_int(o, "failed", p->failed) &&
		json_add_int(o, "notSupported", p->not_supported) &&
		(p->worst_nmse >= 0 ? json_add_num(o, "worstNmse", p->worst_nmse)
				    : json_add_null(o, "worstNmse"));
}

static bool
ops_add(cJSON *o, const struct tool_answer *a)
{
	cJSON *backends = json_add_array(o, "backends"), *ops = json_add_array(o, "ops");
	int i;

	for (i = 0; backends != NULL && i < a->backend_count; i++)
		if (!backend_add(backends, &a->backend[i]))
			return false;
	for (i = 0; ops != NULL && i < a->op_count; i++)
		if (!op_add(ops, &a->op[i]))
			return false;
	return backends != NULL && ops != NULL &&
		json_add_str(o, "end", a->ok_line ? "OK" : a->failed_line ? "FAIL" : NULL);
}

cJSON *
tool_json(const struct tool_answer *a)
{
	cJSON *o = cJSON_CreateObject(), *list = NULL;
	bool ok = o != NULL && json_add_str(o, "kind", tool_kind_name(a->kind)) &&
		text_or_null(o, "version", a->version) &&
		json_add_str(o, "reasonCode", a->reason ? reason_name(a->reason) : NULL) &&
		text_or_null(o, "detail", a->detail) && text_or_null(o, "hint", a->hint);
	int i;

	if (ok && a->kind == TOOL_PROBE)
		ok = text_or_null(o, "probe", a->probe) && json_add_bool(o, "simulated", a->simulated);
	if (ok && a->kind == TOOL_TEST_BACKEND_OPS)
		ok = ops_add(o, a);
	else if (ok && a->kind != TOOL_NVCC)
		ok = (list = json_add_array(o, "devices")) != NULL;
	for (i = 0; ok && list != NULL && i < a->count; i++)
		ok = device_add(list, &a->device[i]);
	ok = ok && (list = json_add_array(o, "notes")) != NULL;
	for (i = 0; ok && i < a->note_count; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateString(a->note[i]));
	if (ok)
		return o;
	cJSON_Delete(o);
	return NULL;
}
