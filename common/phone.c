#include "common/phone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json.h"
#include "common/judge_impl.h"
#include "common/str.h"
#include "common/tool_impl.h"

/* ---- runs on the phone ---- */

/* {"argv":["/usr/bin/adb","-s","SERIAL","shell","CMD; echo MARK $?"]} */
static bool
argv_read(const struct section *s, char *serial, size_t serial_size, char *text, size_t size)
{
	cJSON *o = NULL;
	const cJSON *argv;
	const char *v[6] = {NULL};
	int i, n;
	bool ok = false;

	if (strcmp(s->kind, "run") != 0 || json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return false;
	argv = json_get(o, "argv");
	n = cJSON_GetArraySize(argv);
	for (i = 0; i < n && i < 6; i++)
		v[i] = cJSON_GetStringValue(cJSON_GetArrayItem(argv, i));
	if (n == 5 && v[0] != NULL && str_eq(v[1], "-s") && v[2] != NULL && str_eq(v[3], "shell") &&
	    v[4] != NULL)
		ok = str_copy(serial, serial_size, v[2], NULL) == 0 &&
			str_copy(text, size, v[4], NULL) == 0;
	cJSON_Delete(o);
	return ok;
}

/* The marker at the end of a command: "__VERIFY_EXIT_0123456789abcdef__". */
static bool
mark_find(const char *text, char mark[64])
{
	static const char tail[] = "__ $?";
	const char *at = NULL, *p;
	size_t n = strlen(PHONE_MARK) + PHONE_MARK_DIGITS;

	for (p = strstr(text, "; echo " PHONE_MARK); p != NULL; p = strstr(p + 1, "; echo " PHONE_MARK))
		at = p;
	if (at == NULL || strlen(at) != strlen("; echo ") + n + sizeof tail - 1)
		return false;
	at += strlen("; echo ");
	if (strcmp(at + n, tail) != 0)
		return false;
	snprintf(mark, 64, "%.*s__", (int)n, at);
	return true;
}

bool
phone_command(const struct section *s, char *serial, size_t serial_size, char *command,
	size_t size)
{
	char mark[64];

	if (!argv_read(s, serial, serial_size, command, size))
		return false;
	if (mark_find(command, mark))
		command[strlen(command) - strlen("; echo ") - strlen(mark) - strlen(" $?")] = '\0';
	return true;
}

bool
phone_output(const struct section *s, const char **out, size_t *len, int *exit)
{
	char serial[64], text[4096], mark[64];
	const char *p, *end = s->body + s->len, *line;
	size_t n;
	int value, digits;

	if (!argv_read(s, serial, sizeof serial, text, sizeof text) || !mark_find(text, mark))
		return false;
	n = strlen(mark);
	/* the last line that begins with the marker; what the phone printed is before it */
	for (p = end; p > s->body;) {
		for (line = p - 1; line > s->body && line[-1] != '\n'; line--)
			;
		if ((size_t)(end - line) > n + 1 && memcmp(line, mark, n) == 0 && line[n] == ' ') {
			for (p = line + n + 1, value = digits = 0;
			     p < end && *p >= '0' && *p <= '9' && digits < 4; p++, digits++)
				value = value * 10 + *p - '0';
			if (digits == 0 || digits > 3 || (p < end && *p != '\n' && *p != '\r'))
				return false;
			*out = s->body;
			*len = (size_t)(line - s->body);
			*exit = value;
			return true;
		}
		p = line;
	}
	return false;
}

/* ---- what it says of itself ---- */

#define SIMULATED "ro.verify.simulated"

/* Value of a line "[ro.product.model]: [Pixel 8]". */
static void
prop(const char *text, size_t len, const char *key, char *out, size_t size)
{
	const char *p = text, *end = text + len, *nl, *close;
	size_t k = strlen(key);

	out[0] = '\0';
	for (; p < end; p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if ((size_t)(nl - p) > k + 5 && p[0] == '[' && memcmp(p + 1, key, k) == 0 &&
		    memcmp(p + 1 + k, "]: [", 4) == 0) {
			p += k + 5;
			for (close = nl; close > p && close[-1] != ']'; close--)
				;
			if (close > p)
				str_show(out, size, p, (size_t)(close - 1 - p));
			return;
		}
	}
}

/* Signs of a machine that plays a phone: a property that is equal to, or contains. */
static const struct sign {
	const char *key, *word;
	bool whole;
} signs[] = {
	{"ro.kernel.qemu", "1", true},
	{"ro.boot.qemu", "1", true},
	{"ro.hardware", "goldfish", false},
	{"ro.hardware", "ranchu", false},
	{"ro.hardware", "cutf", false},
	{"ro.hardware", "vsoc", false},
	{"ro.hardware", "vbox86", false},
	{"ro.hardware", "redroid", false},
	{"ro.boot.hardware", "ranchu", false},
	{"ro.boot.hardware", "cutf", false},
	{"ro.product.model", "sdk_gphone", false},
	{"ro.product.model", "Android SDK built for", false},
	{"ro.product.model", "Cuttlefish", false},
	{"ro.product.model", "Emulator", false},
	{"ro.product.device", "emu64", false},
	{"ro.product.device", "emulator", false},
	{"ro.product.device", "generic_x86", false},
	{"ro.product.device", "vsoc", false},
	{"ro.product.device", "waydroid", false},
	{"ro.product.name", "sdk_", false},
	{"ro.product.name", "vbox86", false},
	{"ro.product.name", "aosp_cf", false},
	{"ro.product.manufacturer", "Genymotion", false},
	{"ro.product.board", "goldfish", false},
	{"ro.build.characteristics", "emulator", false},
	{"ro.build.fingerprint", "generic/sdk", false},
	{"ro.build.fingerprint", "generic/google_sdk", false},
	{"ro.build.fingerprint", "generic_x86", false},
	{"ro.build.fingerprint", "/emulator", false},
	{"ro.build.fingerprint", "/sdk_gphone", false},
	{"ro.build.fingerprint", "cuttlefish", false},
	{"ro.hardware.vulkan", "ranchu", false},
	{"ro.hardware.egl", "emulation", false},
	{"ro.hardware.gralloc", "goldfish", false},
	{"ro.hardware.gralloc", "ranchu", false},
	{"init.svc.qemud", "running", true},
	{"init.svc.goldfish-logcat", "", false},
};
/* Signs of Vulkan in software. */
static const struct sign soft_signs[] = {
	{"ro.hardware.vulkan", "pastel", false},
	{"ro.hardware.vulkan", "lvp", true},
	{"ro.hardware.vulkan", "swiftshader", false},
	{"ro.hardware.egl", "swiftshader", false},
	{"ro.hardware.egl", "angle_swiftshader", false},
};

static void
sign_find(const struct sign *list, size_t count, const char *text, size_t len, char *out,
	size_t size)
{
	char value[256], line[64];
	size_t i;

	for (i = 0; i < count; i++) {
		prop(text, len, list[i].key, value, sizeof value);
		snprintf(line, sizeof line, "[%s]:", list[i].key);
		if (list[i].whole ? strcmp(value, list[i].word) == 0
		    : list[i].word[0] != '\0' ? strcasestr(value, list[i].word) != NULL
					      : memmem(text, len, line, strlen(line)) != NULL) {
			snprintf(out, size, "%.60s is %.80s", list[i].key, value);
			return;
		}
	}
}

static void
props_read(const char *text, size_t len, struct phone_facts *out)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} rows[] = {
		{"ro.product.manufacturer", out->manufacturer, sizeof out->manufacturer},
		{"ro.product.model", out->model, sizeof out->model},
		{"ro.board.platform", out->platform, sizeof out->platform},
		{"ro.hardware", out->hardware, sizeof out->hardware},
		{"ro.product.cpu.abi", out->abi, sizeof out->abi},
		{"ro.build.version.release", out->android, sizeof out->android},
		{"ro.build.fingerprint", out->fingerprint, sizeof out->fingerprint},
		{"ro.hardware.egl", out->vulkan, sizeof out->vulkan},
		{"ro.hardware.vulkan", out->vulkan, sizeof out->vulkan},
	};
	char value[256];
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		prop(text, len, rows[i].key, value, sizeof value);
		if (value[0] != '\0')
			str_show(rows[i].to, rows[i].size, value, strlen(value));
	}
	prop(text, len, SIMULATED, value, sizeof value);
	out->simulated = value[0] != '\0';
	sign_find(signs, str_count(signs), text, len, out->emulator, sizeof out->emulator);
	sign_find(soft_signs, str_count(soft_signs), text, len, out->software,
		sizeof out->software);
}

/* VkDriverId by number, as phones have them; the names of the Vulkan registry. */
static const struct driver {
	int id;
	const char *name;
	bool software, virtual; /* virtual: the graphics of a host behind a virtual machine */
} drivers[] = {
	{7, "imagination-proprietary", false, false}, {8, "qualcomm-proprietary", false, false},
	{9, "arm-proprietary", false, false}, {10, "google-swiftshader", true, false},
	{11, "ggp-proprietary", false, false}, {13, "mesa-llvmpipe", true, false},
	{16, "juice-proprietary", false, false}, {18, "mesa-turnip", false, false},
	{19, "mesa-v3dv", false, false}, {20, "mesa-panvk", false, false},
	{21, "samsung-proprietary", false, false}, {22, "mesa-venus", false, true},
	{25, "imagination-open-source-mesa", false, false},
};
/* deviceType numbers of a hardware device. */
#define TYPE_IS_HARDWARE(t) ((t) == 1 || (t) == 2)

/* The object that vkjson prints, at its different ages: devices[].properties. */
static void
vkjson_read(const char *text, size_t len, struct phone_facts *out)
{
	const char *open = memchr(text, '{', len), *name;
	const cJSON *device, *props, *driver;
	cJSON *o = NULL;
	size_t i;
	int id, type;

	if (open == NULL || json_parse(open, len - (size_t)(open - text), 4u << 20, &o, NULL))
		return;
	device = cJSON_GetArrayItem(json_get(o, "devices"), 0);
	props = json_get(device != NULL ? device : o, "properties");
	if ((name = json_str(props, "deviceName")) != NULL && name[0] != '\0') {
		out->gpu_known = true;
		str_show(out->gpu, sizeof out->gpu, name, strlen(name));
		type = (int)json_int(props, "deviceType", -1);
		driver = json_path(device, "VK_KHR_driver_properties.driverPropertiesKHR");
		id = (int)json_int(driver, "driverID", -1);
		snprintf(out->driver, sizeof out->driver, "%.90s", json_str(driver, "driverInfo")
			? json_str(driver, "driverInfo") : "");
		if (!TYPE_IS_HARDWARE(type) && type >= 0)
			snprintf(out->software, sizeof out->software, "deviceType is %d", type);
		if (strstr(name, "Emulator") != NULL || strcasestr(name, "gfxstream") != NULL)
			snprintf(out->emulator, sizeof out->emulator, "its GPU is %.100s", out->gpu);
		for (i = 0; i < str_count(drivers); i++)
			if (drivers[i].id == id) {
				if (drivers[i].virtual)
					snprintf(out->emulator, sizeof out->emulator, "its driver is %s", drivers[i].name);
				snprintf(out->driver_id, sizeof out->driver_id, "%s", drivers[i].name);
				if (drivers[i].software)
					snprintf(out->software, sizeof out->software, "driver %s",
						drivers[i].name);
			}
		if (tool_is_software_name(out->gpu))
			snprintf(out->software, sizeof out->software, "device %.100s", out->gpu);
	}
	cJSON_Delete(o);
}

static void
boot_read(const char *text, size_t len, struct phone_facts *out)
{
	str_show(out->boot_id, sizeof out->boot_id, text, strcspn(text, "\r\n") < len
		? strcspn(text, "\r\n") : len);
}

/* What is asked of every phone, and who reads the answer. */
static const struct question {
	const char *command;
	void (*read)(const char *text, size_t len, struct phone_facts *out);
} questions[] = {
	{"getprop", props_read},
	{"cmd gpu vkjson", vkjson_read},
	{"cat /proc/sys/kernel/random/boot_id", boot_read},
};

bool
phone_simulated(const struct section *s)
{
	static const char key[] = "[" SIMULATED "]: [";

	return strcmp(s->kind, "run") == 0 && strstr(s->head, "getprop") != NULL &&
		memmem(s->body, s->len, key, sizeof key - 1) != NULL;
}

const char *
phone_question(size_t i)
{
	return i < str_count(questions) ? questions[i].command : NULL;
}

bool
phone_facts_read(const char *log, size_t len, const char *serial, struct phone_facts *out)
{
	char from[64], command[4096];
	struct section s;
	const char *text;
	size_t pos = 0, n, i;
	int exit;
	bool found = false;

	memset(out, 0, sizeof *out);
	snprintf(out->serial, sizeof out->serial, "%s", serial);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (phone_command(&s, from, sizeof from, command, sizeof command) &&
		    strcmp(from, serial) == 0 && phone_output(&s, &text, &n, &exit) && exit == 0)
			for (i = 0; i < str_count(questions); i++)
				if (strcmp(command, questions[i].command) == 0) {
					questions[i].read(text, n, out);
					found = found || i == 0;
				}
		section_fini(&s);
	}
	if (found && str_starts(serial, "emulator-") && out->emulator[0] == '\0')
		snprintf(out->emulator, sizeof out->emulator, "its serial is %.60s", serial);
	return found && (out->model[0] != '\0' || out->hardware[0] != '\0');
}

/* ---- which one ---- */

/* The answer of `adb devices -l` in the log; false when it is not there. */
static bool
devices_read(const char *log, size_t len, struct tool_answer *a)
{
	struct section s;
	size_t pos = 0;
	cJSON *o = NULL;
	bool found = false;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (!found && strcmp(s.kind, "run") == 0 &&
		    json_parse(s.head, strlen(s.head), 1u << 20, &o, NULL) == 0) {
			if (str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(json_get(o, "argv"), 1)),
				    "devices")) {
				tool_parse(TOOL_ADB_DEVICES, s.body, s.len, s.exit, a);
				found = true;
			}
			cJSON_Delete(o);
		}
		section_fini(&s);
	}
	return found;
}

static enum reason
choose_wanted(const struct tool_answer *a, const char *wanted, char *serial, size_t size,
	struct err *e)
{
	const struct tool_device *d;
	int k;

	for (k = 0; k < a->count; k++) {
		d = &a->device[k];
		if (strcmp(d->uuid, wanted) != 0)
			continue;
		if (d->state[0] == '\0')
			return str_copy(serial, size, wanted, e) ? REASON_INTERNAL : REASON_NONE;
		err_set(e, ERR_NO_DEVICE, "%s is %s", wanted, d->state);
		return tool_adb_reason(d->state);
	}
	err_set(e, ERR_NO_DEVICE, "%.60s is not among the %d devices of adb", wanted, a->count);
	return REASON_NO_DEVICE;
}

static enum reason
choose_among(const struct tool_answer *a, const char *log, size_t len, char *serial,
	size_t size, struct err *e)
{
	struct phone_facts *f = malloc(sizeof *f);
	const struct tool_device *d, *only = NULL;
	int k, ready = 0, real = 0;

	if (f == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a phone");
		return REASON_INTERNAL;
	}
	for (k = 0; k < a->count; k++) {
		d = &a->device[k];
		if (d->state[0] != '\0')
			continue;
		ready++;
		if (a->count > 1 && phone_facts_read(log, len, d->uuid, f) && f->emulator[0] != '\0')
			continue;
		real++;
		only = d;
	}
	free(f);
	if (ready == 0 && a->count > 0)
		return choose_wanted(a, a->device[0].uuid, serial, size, e);
	if (ready == 0) {
		err_set(e, ERR_NO_DEVICE, "adb lists no device");
		return REASON_NO_DEVICE;
	}
	if (real == 0) {
		err_set(e, ERR_NO_DEVICE, "each of the %d devices of adb is an emulator", ready);
		return REASON_EMULATOR;
	}
	if (real > 1) {
		err_set(e, ERR_NO_DEVICE, "adb lists %d phones; name one with ANDROID_SERIAL", real);
		return REASON_DEVICE_NOT_CHOSEN;
	}
	return str_copy(serial, size, only->uuid, e) ? REASON_INTERNAL : REASON_NONE;
}

enum reason
phone_choose(const char *log, size_t len, const char *wanted, char *serial, size_t size,
	struct err *e)
{
	struct tool_answer *a = calloc(1, sizeof *a);
	enum reason r;

	if (a == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a list of devices");
		return REASON_INTERNAL;
	}
	if (!devices_read(log, len, a)) {
		err_set(e, ERR_PARSE, "the log holds no list of devices");
		r = REASON_PROBE_UNREADABLE;
	} else if (a->count == 0 && a->reason != REASON_NONE) {
		err_set(e, ERR_NO_DEVICE, "%s", a->detail);
		r = a->reason;
	} else if (wanted != NULL && wanted[0] != '\0') {
		r = choose_wanted(a, wanted, serial, size, e);
	} else {
		r = choose_among(a, log, len, serial, size, e);
	}
	free(a);
	return r;
}

/* ---- the device of the lane ---- */

/* "Adreno (TM) 740" -> "adreno-740": marks and vendors away. */
static void
slug(const char *name, char *out, size_t size)
{
	static const char *const drop[] = {"(tm)", "(r)", "samsung", "arm", "qualcomm", "imagination",
		NULL};
	char copy[128], *words[24];

	snprintf(copy, sizeof copy, "%.127s", name);
	device_slug(words, str_split(copy, true, words, 24), drop, out, size);
}

bool
phone_device_facts(const char *log, size_t len, const struct target *t,
	struct device_facts *out)
{
	struct phone_facts *f = malloc(sizeof *f);
	char serial[64], name[128];
	bool ok;

	memset(out, 0, sizeof *out);
	out->memory_bytes = out->cpus = -1;
	ok = f != NULL && log_fact(log, len, "serial", serial, sizeof serial) &&
		phone_facts_read(log, len, serial, f);
	if (ok) {
		/* a phone that can not be asked has the names of its board and its driver */
		snprintf(name, sizeof name, "%s", f->gpu_known ? f->gpu : f->platform);
		slug(name, out->slug, sizeof out->slug);
		snprintf(out->level, sizeof out->level, "%.47s", f->driver_id[0] ? f->driver_id
			: f->vulkan[0] ? f->vulkan : "unknown-driver");
		snprintf(out->name, sizeof out->name, "%.60s (%.20s %.40s)", name, f->manufacturer,
			f->model);
		snprintf(out->uuid, sizeof out->uuid, "%s", f->serial);
		snprintf(out->driver, sizeof out->driver, "%.60s, Android %.20s",
			f->driver[0] ? f->driver : f->vulkan, f->android);
		snprintf(out->firmware, sizeof out->firmware, "%.63s", f->fingerprint);
		out->software = f->software[0] != '\0';
		out->emulator = f->emulator[0] != '\0';
		out->simulated = f->simulated;
		if (t != NULL)
			snprintf(out->device_class, sizeof out->device_class, "%s/%s/%s", t->name,
				out->slug, out->level);
	}
	free(f);
	return ok;
}
