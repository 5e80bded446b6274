/* What vulkaninfo --summary prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tool_impl.h"

static const struct tool_refusal refusals[] = {
	{"ERROR_INCOMPATIBLE_DRIVER", REASON_DRIVER_MISSING_ON_HOST,
		"install the device's Vulkan driver, and see VK_DRIVER_FILES"},
	{"Found no drivers", REASON_DRIVER_MISSING_ON_HOST, "install the device's Vulkan driver"},
	{"vkEnumeratePhysicalDevices failed", REASON_PROBE_CRASHED,
		"one driver hides all others: try each with VK_DRIVER_FILES"},
	{"ERROR_INITIALIZATION_FAILED", REASON_PROBE_CRASHED,
		"one driver hides all others: try each with VK_DRIVER_FILES"},
	{"Segmentation fault", REASON_PROBE_CRASHED, ""},
	{"command not found", REASON_TOOL_MISSING, "install vulkan-tools"},
	{"is not recognized as an internal or external command", REASON_TOOL_MISSING, ""},
	{"error while loading shared libraries", REASON_TOOL_BROKEN, ""},
	{"No such file or directory", REASON_TOOL_MISSING, ""},
};

/* The word without what older and newer versions put in front of it. */
static const char *
behind(const char *word, const char *prefix)
{
	return str_starts(word, prefix) ? word + strlen(prefix) : word;
}

static void
value_read(struct tool_device *d, const char *key, const char *value)
{
	static const struct {
		const char *word;
		enum tool_type type;
	} types[] = {
		{"CPU", TYPE_CPU}, {"INTEGRATED_GPU", TYPE_INTEGRATED}, {"DISCRETE_GPU", TYPE_DISCRETE},
		{"VIRTUAL_GPU", TYPE_VIRTUAL},
	};
	/* old versions print "INTEGRATED_GPU", and a version as "4206816 (1.3.224)" */
	const char *type = behind(value, "PHYSICAL_DEVICE_TYPE_");
	const char *version = strchr(value, '(') != NULL ? strchr(value, '(') + 1 : value;
	const struct {
		const char *key;
		char *to;
		size_t size;
	} texts[] = {
		{"deviceName", d->name, sizeof d->name}, {"deviceUUID", d->uuid, sizeof d->uuid},
		{"driverInfo", d->driver, sizeof d->driver},
	};
	size_t i;

	/* of a key that stands there twice the first counts; driverInfo stands behind a number */
	for (i = 0; i < str_count(texts); i++)
		if (strcmp(key, texts[i].key) == 0 && (i == 2 || texts[i].to[0] == '\0'))
			str_show(texts[i].to, texts[i].size, value, strlen(value));
	for (i = 0; strcmp(key, "deviceType") == 0 && d->type == TYPE_UNKNOWN && i < str_count(types); i++)
		if (strcmp(type, types[i].word) == 0)
			d->type = types[i].type;
	/* printed, and none of the kinds above: not cut off, and never chosen */
	if (strcmp(key, "deviceType") == 0 && strcmp(type, "OTHER") == 0)
		snprintf(d->state, sizeof d->state, "other");
	if (strcmp(key, "apiVersion") == 0)
		d->driver_due = !str_starts(version, "1.0") && !str_starts(version, "1.1");
	if (strcmp(key, "driverID") == 0 && d->driver_id[0] == '\0') {
		value = behind(behind(value, "VK_"), "DRIVER_ID_");
		/* of the extension that the name comes from */
		snprintf(d->driver_id, sizeof d->driver_id, "%.*s",
			(int)(strlen(value) - (str_ends(value, "_KHR") ? 4 : 0)), value);
	}
	/* a second witness of what is none */
	if (strcmp(key, "driverName") == 0 && strcasestr(value, "MoltenVK") != NULL)
		snprintf(d->driver_id, sizeof d->driver_id, "MOLTENVK");
	if (strcmp(key, "driverVersion") == 0 && d->driver[0] == '\0')
		snprintf(d->driver, sizeof d->driver, "%.90s", value);
	if (strcmp(key, "driverName") == 0 && tool_is_software_name(value))
		d->software = true;
	if (strcmp(key, "vendorID") == 0)
		d->mesa_vendor = strtoul(value, NULL, 16) == 0x10005;
	if (strcmp(key, "conformanceVersion") == 0)
		d->conformant = strcmp(value, "0.0.0.0") != 0;
}

static void
device_end(struct tool_device *d, struct tool_answer *out)
{
	/* alone it says nothing: Honeykrisp is a driver of hardware, and has it too */
	d->software |= tool_is_software(d) || (d->mesa_vendor && strcmp(d->driver_id, "MESA_HONEYKRISP") != 0);
	if (!d->conformant)
		tool_note(out, "%s has no conformant driver", d->name);
	/* a virtual GPU of a vendor's own driver is a slice of a card */
	if (strcmp(d->driver_id, "NVIDIA_PROPRIETARY") == 0 &&
	    (d->type == TYPE_VIRTUAL || tool_is_vgpu_name(d->name)))
		d->vgpu = true;
}

static bool
is_whole(const struct tool_device *d)
{
	return d->name[0] != '\0' && (d->type != TYPE_UNKNOWN || d->state[0] != '\0') &&
		(!d->driver_due || d->driver_id[0] != '\0');
}

/* The graphics of another system behind a virtual machine. */
bool
tool_is_virtual(const struct tool_device *d)
{
	return strstr(d->driver_id, "MESA_VENUS") != NULL || strstr(d->driver_id, "MESA_GFXSTREAM") != NULL ||
		(d->type == TYPE_VIRTUAL && !d->vgpu && strcmp(d->driver_id, "NVIDIA_PROPRIETARY") != 0);
}

const char *
tool_layer(const struct tool_device *d)
{
	return strcasestr(d->driver_id, "MoltenVK") != NULL || strcasestr(d->driver, "MoltenVK") != NULL ? "MoltenVK"
		: strstr(d->driver_id, "MESA_KOSMICKRISP") != NULL ? "Metal"
		: strstr(d->driver_id, "MESA_DOZEN") != NULL ? "Direct3D 12" : NULL;
}

static void
list_judge(struct tool_answer *out)
{
	const struct tool_device *d;
	int i, hardware = 0, whole = 0, emulators = 0, layered = 0;

	for (i = 0; i < out->count; i++) {
		d = &out->device[i];
		whole += is_whole(d);
		emulators += tool_is_virtual(d);
		layered += tool_layer(d) != NULL && !d->software;
		hardware += is_whole(d) && d->type != TYPE_UNKNOWN && !d->software && !tool_is_virtual(d) && tool_layer(d) == NULL;
	}
	d = &out->device[0];
	if (out->count == 0)
		tool_say(out, REASON_NO_DEVICE, "vulkaninfo lists no device");
	else if (whole < out->count)
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "a device of vulkaninfo has no name, type or driver id");
	else if (hardware == 0 && emulators > 0)
		tool_say(out, REASON_EMULATOR, "%s is a virtual device", d->name);
	else if (hardware == 0 && layered > 0)
		tool_say(out, REASON_WRONG_DEVICE, "%s is reached through %s, which is no native Vulkan", d->name,
			tool_layer(d) != NULL ? tool_layer(d) : "a layer");
	else if (hardware == 0)
		tool_say(out, d->software ? REASON_SOFTWARE_DEVICE : REASON_NO_DEVICE, d->software
			? "only software devices: %s" : "no device that is hardware: %s", d->name);
}

void
tool_read_vulkaninfo(const char *text, size_t len, int exit, struct tool_answer *out)
{
	struct tool_device *d = NULL;
	char line[1024], *p, *eq;
	size_t pos = 0;
	unsigned index;
	int used;
	bool devices = false;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		if (pos >= len && len > 0 && text[len - 1] != '\n')
			break; /* a cut line says half of something */
		p = tool_trim(line);
		used = 0;
		if (strcmp(p, "Devices:") == 0) {
			devices = true;
		} else if (devices && sscanf(p, "GPU%u:%n", &index, &used) == 1 && used > 0 && p[used] == '\0') {
			if (d != NULL)
				device_end(d, out);
			if ((d = tool_device_add(out)) != NULL)
				d->index = (int)(index < 100000 ? index : 100000);
		} else if (d != NULL && (eq = strstr(p, " = ")) != NULL) {
			*eq = '\0';
			value_read(d, tool_trim(p), tool_trim(eq + 3));
		} else if (d != NULL && strlen(p) > 2 && strcmp(p + strlen(p) - 2, " =") == 0) {
			p[strlen(p) - 2] = '\0'; /* "driverInfo         =" */
			value_read(d, tool_trim(p), "");
		} else if (strncmp(p, "Vulkan Instance Version: ", 25) == 0) {
			snprintf(out->version, sizeof out->version, "%.40s", p + 25);
		}
	}
	if (d != NULL)
		device_end(d, out);
	if (devices) {
		list_judge(out);
		/* a list may be cut by a crash behind it */
		if (out->reason == REASON_NONE && exit > 0)
			tool_say(out, REASON_TOOL_BROKEN, "vulkaninfo ended with exit %d", exit);
	} else if (!tool_refused(refusals, str_count(refusals), text, out)) {
		if (strstr(text, "USAGE:") != NULL || strstr(text, "Usage:") != NULL)
			tool_say(out, REASON_TOOLCHAIN_TOO_OLD, "vulkaninfo is too old: it has no --summary");
		else
			tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, out->version[0]
				? "vulkaninfo %s printed no list of devices (exit %d)"
				: "vulkaninfo%s printed nothing that is known (exit %d)", out->version, exit);
	}
}
