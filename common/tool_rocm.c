/* What rocminfo prints: one agent for each processor, of which only GPUs count. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tool_impl.h"

static const struct tool_refusal refusals[] = {
	{"ROCk module is NOT loaded", REASON_DRIVER_MISSING_ON_HOST, "load the amdgpu module"},
	{"Unable to open /dev/kfd read-write: Permission denied", REASON_NO_PERMISSION,
		"add the agent's user to the groups render and video"},
	{"Unable to open /dev/kfd read-write: Invalid argument", REASON_NO_PERMISSION,
		"a cgroup or a container keeps /dev/kfd away: pass --device /dev/kfd --device /dev/dri"},
	{"Unable to open /dev/kfd read-write: No such file", REASON_NO_PERMISSION,
		"pass --device /dev/kfd --device /dev/dri to the container, or load the amdgpu module"},
	{"Unable to open /dev/kfd", REASON_NO_PERMISSION, ""},
	{"/dev/kfd", REASON_NO_PERMISSION, ""},
	{"HSA_STATUS_ERROR_OUT_OF_RESOURCES", REASON_NO_PERMISSION,
		"add the agent's user to the groups render and video"},
	{"is not member of \"", REASON_NO_PERMISSION, "add the agent's user to the groups render and video"},
	{"hsa_init Failed", REASON_NO_DEVICE, "under WSL: update the driver of the Windows host"},
	{"hsa api call failure", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"command not found", REASON_TOOL_MISSING, "install rocminfo"},
	{"No such file or directory", REASON_TOOL_MISSING, ""},
};

/* Chip ids and what they really are; one that is none of these proves nothing. */
static const struct {
	int id;
	const char *arch;
} chips[] = {
	{0x66a0, "gfx906"}, {0x66a1, "gfx906"}, {0x66af, "gfx906"}, {0x738c, "gfx908"},
	{0x738e, "gfx908"}, {0x7408, "gfx90a"}, {0x740c, "gfx90a"}, {0x740f, "gfx90a"},
	{0x7410, "gfx90a"}, {0x74a0, "gfx942"}, {0x74a1, "gfx942"}, {0x74a2, "gfx942"},
	{0x74a5, "gfx942"}, {0x74a9, "gfx942"}, {0x74b5, "gfx942"}, {0x74b9, "gfx942"},
	{0x75a0, "gfx950"}, {0x75a3, "gfx950"}, {0x731f, "gfx1010"}, {0x7340, "gfx1012"},
	{0x73a5, "gfx1030"}, {0x73af, "gfx1030"}, {0x73bf, "gfx1030"}, {0x73df, "gfx1031"},
	{0x73ff, "gfx1032"}, {0x163f, "gfx1033"}, {0x743f, "gfx1034"}, {0x1681, "gfx1035"},
	{0x164d, "gfx1035"}, {0x164e, "gfx1036"}, {0x13c0, "gfx1036"}, {0x744c, "gfx1100"},
	{0x7448, "gfx1100"}, {0x745e, "gfx1100"}, {0x747e, "gfx1101"}, {0x7470, "gfx1101"},
	{0x7480, "gfx1102"}, {0x7483, "gfx1102"}, {0x15bf, "gfx1103"}, {0x15c8, "gfx1103"},
	{0x1900, "gfx1103"}, {0x1901, "gfx1103"}, {0x150e, "gfx1150"}, {0x1586, "gfx1151"},
	{0x7550, "gfx1201"}, {0x7551, "gfx1201"}, {0x7590, "gfx1200"},
};

bool
tool_is_apu(const char *arch)
{
	static const char *const archs[] = {"gfx801", "gfx810", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033",
		"gfx1035", "gfx1036", "gfx1037", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"};
	size_t i;

	for (i = 0; i < str_count(archs) && strcmp(archs[i], arch) != 0; i++)
		;
	return i < str_count(archs);
}

struct agent {
	char name[128], marketing[128], uuid[64], type[16], isa[96], memory_flags[64];
	int64_t chip, bdf, domain, memory_kib, node;
	bool apu, open;
};

/* Number before a parenthesis: "29857(0x74a1)". */
static int64_t
number(const char *value)
{
	uint64_t v;

	return str_leading_u64(value, (uint64_t)1 << 60, &v) ? (int64_t)v : -1;
}

/* "gfx90a" of "gfx90a:sramecc+:xnack-"; false when it is no such word. */
static bool
gfx_split(const char *text, char *arch, size_t size, char *features, size_t features_size)
{
	size_t n;

	if (strncmp(text, "gfx", 3) != 0)
		return false;
	n = strspn(text + 3, "0123456789abcdef") + 3;
	if (n < 6 || n >= size || (text[n] != '\0' && text[n] != ':'))
		return false;
	memcpy(arch, text, n);
	arch[n] = '\0';
	snprintf(features, features_size, "%s", text[n] == ':' ? text + n + 1 : "");
	return true;
}

static void
agent_end(struct agent *a, struct tool_answer *out)
{
	struct tool_device *d, gfx;
	const char *isa;
	size_t i;

	if (!a->open || strcasecmp(a->type, "GPU") != 0) {
		memset(a, 0, sizeof *a);
		return;
	}
	/* a GPU is named by its architecture; a processor of another name is none */
	if (!gfx_split(a->name, gfx.arch, sizeof gfx.arch, gfx.features, sizeof gfx.features)) {
		tool_note(out, "an agent of type GPU is named %.60s", a->name);
		memset(a, 0, sizeof *a);
		return;
	}
	if ((d = tool_device_add(out)) == NULL)
		return;
	memcpy(d->arch, gfx.arch, sizeof d->arch);
	memcpy(d->features, gfx.features, sizeof d->features);
	snprintf(d->name, sizeof d->name, "%s", a->marketing[0] ? a->marketing : a->name);
	/* features stand in the name of the instruction set */
	if ((isa = strstr(a->isa, "--gfx")) != NULL && d->features[0] == '\0' &&
	    strchr(isa, ':') != NULL)
		snprintf(d->features, sizeof d->features, "%.60s", strchr(isa, ':') + 1);
	/* what has no id of its own: "GPU-XX", "GPU-ffffffffffffffff", zeros */
	if (str_starts(a->uuid, "GPU-") && a->uuid[4 + strspn(a->uuid + 4, "0")] != '\0' &&
	    a->uuid[4 + strspn(a->uuid + 4, "fF")] != '\0' && strcmp(a->uuid, "GPU-XX") != 0)
		snprintf(d->uuid, sizeof d->uuid, "%s", a->uuid);
	if (a->bdf >= 0)
		snprintf(d->pci, sizeof d->pci, "%04x:%02x:%02x.%x",
			(unsigned)(a->domain >= 0 ? a->domain : 0), (unsigned)(a->bdf >> 8 & 0xff),
			(unsigned)(a->bdf >> 3 & 0x1f), (unsigned)(a->bdf & 7));
	d->index = out->count - 1;
	d->chip_id = a->chip;
	d->memory_mib = a->memory_kib >= 0 ? a->memory_kib / 1024 : -1;
	/* versions before 5.3 say nothing of memory */
	d->type = a->apu || tool_is_apu(d->arch) ? TYPE_INTEGRATED : TYPE_DISCRETE;
	for (i = 0; i < str_count(chips); i++)
		if (chips[i].id == a->chip && d->arch[0] != '\0' && strcmp(chips[i].arch, d->arch) != 0) {
			d->chip_differs = true;
			tool_note(out, "chip 0x%x is a %s and claims to be a %s", (unsigned)a->chip,
				chips[i].arch, d->arch);
		}
	memset(a, 0, sizeof *a);
}

static void
agent_begin(struct agent *a)
{
	memset(a, 0, sizeof *a);
	a->open = true;
	a->chip = a->bdf = a->domain = a->memory_kib = a->node = -1;
}

static void
keep(char *to, size_t size, const char *value)
{
	if (to[0] == '\0')
		str_show(to, size, value, strlen(value));
}

static void
agent_line(struct agent *a, const char *key, const char *value)
{
	if (strcmp(key, "Name") == 0 && str_starts(value, "amdgcn-amd-amdhsa--"))
		keep(a->isa, sizeof a->isa, value);
	else if (strcmp(key, "Name") == 0)
		keep(a->name, sizeof a->name, value);
	else if (strcmp(key, "Marketing Name") == 0)
		keep(a->marketing, sizeof a->marketing, value);
	else if (strcmp(key, "Uuid") == 0)
		keep(a->uuid, sizeof a->uuid, value);
	else if (strcmp(key, "Device Type") == 0)
		keep(a->type, sizeof a->type, value);
	else if (strcmp(key, "Chip ID") == 0)
		a->chip = number(value);
	else if (strcmp(key, "BDFID") == 0)
		a->bdf = number(value);
	else if (strcmp(key, "Domain") == 0)
		a->domain = number(value);
	else if (strcmp(key, "Memory Properties") == 0)
		a->apu = strcasestr(value, "APU") != NULL;
	else if (strcmp(key, "Segment") == 0)
		str_show(a->memory_flags, sizeof a->memory_flags, value, strlen(value));
	else if (strcmp(key, "Size") == 0 && a->memory_kib < 0 &&
		 strstr(a->memory_flags, "GLOBAL") != NULL)
		a->memory_kib = number(value);
}

void
tool_read_rocminfo(const char *text, size_t len, int exit, struct tool_answer *out)
{
	struct agent a = {0};
	char line[1024], *p, *colon;
	size_t pos = 0;
	unsigned index;
	bool done = false, agents = false;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		p = tool_trim(line);
		if (sscanf(p, "Agent %u", &index) == 1) {
			agent_end(&a, out);
			agent_begin(&a);
			agents = true;
		} else if (strncmp(p, "*** Done", 8) == 0) {
			agent_end(&a, out);
			done = true;
		} else if (a.open && (colon = strchr(p, ':')) != NULL) {
			*colon = '\0';
			agent_line(&a, tool_trim(p), tool_trim(colon + 1));
		} else if (strncmp(p, "ROCk module version ", 20) == 0) {
			snprintf(out->version, sizeof out->version, "%.*s", (int)strcspn(p + 20, " "), p + 20);
		} else if (strcasestr(p, "WSL environment detected") != NULL) {
			tool_note(out, "WSL environment detected");
		}
	}
	if (!done) {
		/* cut off, or refused before the list */
		out->count = 0;
		if (!tool_refused(refusals, str_count(refusals), text, out))
			tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, agents
				? "rocminfo did not come to its end (exit %d)"
				: "rocminfo printed nothing that is known (exit %d)", exit);
	} else if (out->count == 0) {
		tool_say(out, REASON_NO_DEVICE, "rocminfo lists no agent whose type is GPU");
	} else if (exit > 0) {
		tool_say(out, REASON_TOOL_BROKEN, "rocminfo ended with exit %d", exit);
	}
}
