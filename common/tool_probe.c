/* What `verify-agent probe NAME` prints: one JSON object, read as strictly as any other. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/tool_impl.h"

static void
keep(char *to, size_t size, const cJSON *o, const char *key)
{
	const char *v = json_str(o, key);

	if (v != NULL)
		str_show(to, size, v, strlen(v));
}

static void
device_read(const cJSON *o, struct tool_answer *out)
{
	static const char *const types[] = {"", "cpu", "integrated", "discrete", "virtual"};
	struct tool_device *d = tool_device_add(out);
	const char *type = json_str(o, "type"), *pci = json_str(o, "pci");
	int i;

	if (d == NULL)
		return;
	d->index = (int)json_int(o, "index", -1);
	keep(d->name, sizeof d->name, o, "name");
	keep(d->uuid, sizeof d->uuid, o, "uuid");
	keep(d->arch, sizeof d->arch, o, "arch");
	keep(d->features, sizeof d->features, o, "features");
	keep(d->driver, sizeof d->driver, o, "driver");
	keep(d->driver_id, sizeof d->driver_id, o, "driverId");
	keep(d->mig, sizeof d->mig, o, "mig");
	keep(d->mig_mode, sizeof d->mig_mode, o, "migMode");
	keep(d->compute_mode, sizeof d->compute_mode, o, "computeMode");
	keep(d->state, sizeof d->state, o, "state");
	if (pci != NULL && !tool_pci(pci, d->pci))
		d->pci[0] = '\0';
	for (i = 1; type != NULL && i < 5; i++)
		if (strcmp(type, types[i]) == 0)
			d->type = (enum tool_type)i;
	/* as in vulkaninfo: neither of the kinds above, and never chosen */
	if (str_eq(type, "other") && d->state[0] == '\0')
		snprintf(d->state, sizeof d->state, "other");
	d->parent = (int)json_int(o, "parent", -1);
	if (d->parent >= out->count - 1)
		d->parent = -1;
	/* a slice runs under its card's driver */
	if (d->parent >= 0 && d->driver[0] == '\0')
		snprintf(d->driver, sizeof d->driver, "%s", out->device[d->parent].driver);
	d->memory_mib = json_int(o, "memoryMiB", -1);
	d->used_mib = json_int(o, "usedMiB", -1);
	d->utilization = json_int(o, "utilization", -1);
	d->chip_id = json_int(o, "chipId", -1);
	d->ecc = json_int(o, "eccUncorrected", -1);
	d->ecc_ever = json_int(o, "eccUncorrectedEver", -1);
	d->xid = json_int(o, "xid", -1);
	d->mps = json_bool(o, "mps", false);
	d->rows_failed = json_bool(o, "rowRemapFailed", false);
	d->processes = json_int(o, "processes", -1);
	keep(d->throttle, sizeof d->throttle, o, "throttle");
	d->conformant = json_bool(o, "conformant", true);
	d->software = json_bool(o, "software", false) || tool_is_software(d);
	d->vgpu = json_bool(o, "vgpu", false) || tool_is_vgpu_name(d->name);
}

void
tool_read_probe(const char *text, size_t len, int exit, struct tool_answer *out)
{
	const char *from, *reason, *call, *name;
	const cJSON *error, *d;
	cJSON *o = NULL;
	struct err e = {0};
	size_t n;
	int r, strange = 0;

	if ((from = json_object_in(text, len, &n)) == NULL) {
		tool_say(out, REASON_PROBE_UNREADABLE, "the probe printed no object (exit %d)", exit);
		return;
	}
	if (json_parse(from, n, TOOL_MAX_BYTES, &o, &e)) {
		tool_say(out, REASON_PROBE_UNREADABLE, "the probe's answer: %s", e.msg);
		return;
	}
	keep(out->probe, sizeof out->probe, o, "probe");
	keep(out->version, sizeof out->version, o, "version");
	keep(out->boot_id, sizeof out->boot_id, o, "bootId");
	out->simulated = json_bool(o, "simulated", false);
	error = json_get(o, "error");
	cJSON_ArrayForEach(d, json_get(o, "devices")) {
		strange += !cJSON_IsObject(d);
		if (cJSON_IsObject(d))
			device_read(d, out);
	}
	cJSON_ArrayForEach(d, json_get(o, "notes"))
		if (cJSON_GetStringValue(d) != NULL)
			tool_note(out, "%s", cJSON_GetStringValue(d));
	if (out->probe[0] == '\0' || json_int(o, "schema", 0) != 1 || error == NULL ||
	    !cJSON_IsArray(json_get(o, "devices")) || !(cJSON_IsNull(error) || cJSON_IsObject(error)) ||
	    strange > 0) {
		tool_say(out, REASON_PROBE_UNREADABLE, "the probe's answer lacks probe, schema, error or devices");
	} else if (cJSON_IsObject(error)) {
		reason = json_str(error, "reason");
		r = reason != NULL ? reason_find(reason) : -1;
		call = json_str(error, "call") ? json_str(error, "call") : out->probe;
		name = json_str(error, "name") ? json_str(error, "name") : "failed";
		tool_say(out, r > 0 ? (enum reason)r : REASON_PROBE_UNREADABLE, "%s%s%s",
			str_starts(name, call) ? "" : call, str_starts(name, call) ? "" : ": ", name);
		if (json_str(error, "hint") != NULL)
			tool_hint(out, "%s", json_str(error, "hint"));
	} else if (out->count == 0) {
		tool_say(out, REASON_NO_DEVICE, "%s lists no device", out->probe);
	} else if (exit > 0) {
		tool_say(out, REASON_PROBE_UNREADABLE, "the probe ended with exit %d", exit);
	}
	cJSON_Delete(o);
}
