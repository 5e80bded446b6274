/*
 * The device of a GPU lane: chosen among what the lane's own interface can run on, its
 * facts merged from every probe, its class named.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/agree.h"
#include "common/judge_impl.h"
#include "common/str.h"
#include "common/tool_impl.h"

/* The source whose devices a lane runs on, and those that know more of them. */
static const struct {
	enum api api;
	const char *runs, *knows[3];
} places[] = {
	{API_CUDA, "CUDA", {"NVML", "nvidia-smi --query-gpu", NULL}},
	{API_HIP, "HIP", {"rocminfo", "KFD", NULL}},
	{API_VULKAN, "Vulkan", {"vulkaninfo", NULL}},
};

static const struct agree_source *
runner(const struct agree *g, enum api api, const char *const **knows)
{
	size_t i;

	for (i = 0; i < str_count(places); i++)
		if (places[i].api == api) {
			*knows = places[i].knows;
			return agree_source(g, places[i].runs);
		}
	return NULL;
}

/* ---- names ---- */

void
device_slug(char *const *words, int n, const char *const *drop, char *out, size_t size)
{
	size_t used = 0, i, k;
	int w;

	out[0] = '\0';
	for (w = 0; w < n; w++) {
		for (i = 0; drop[i] != NULL && strcasecmp(words[w], drop[i]) != 0; i++)
			;
		if (drop[i] != NULL || used + 2 >= size)
			continue;
		if (used > 0)
			out[used++] = '-';
		for (k = 0; words[w][k] != '\0' && used + 1 < size; k++)
			if (isalnum((unsigned char)words[w][k]) || strchr(".-+_", words[w][k]) != NULL)
				out[used++] = (char)tolower((unsigned char)words[w][k]);
		out[used] = '\0';
	}
	while (used > 0 && out[used - 1] == '-')
		out[--used] = '\0';
	if (used == 0)
		snprintf(out, size, "unknown");
}

/* "NVIDIA GeForce RTX 4090" -> "rtx-4090", "AMD Instinct MI300X" -> "mi300x",
 * "Intel(R) Arc(tm) A770 Graphics (DG2)" -> "arc-a770", "Adreno (TM) 740" -> "adreno-740". */
static void
slug_of(const char *name, char *out, size_t size)
{
	static const char *const marks[] = {"(R)", "(TM)", "(C)"};
	static const char *const drop[] = {"nvidia", "amd", "intel", "ati", "arm", "qualcomm", "geforce",
		"tesla", "quadro", "grid", "instinct", "graphics", "with", "max-q", "design", "generation",
		"(tm)", "(r)", NULL};
	char copy[128], *words[32], *p, *close;
	size_t i;

	snprintf(copy, sizeof copy, "%.127s", name);
	if ((p = strstr(copy, " MIG ")) != NULL)
		*p = '\0';
	for (i = 0; i < str_count(marks); i++)
		while ((p = strcasestr(copy, marks[i])) != NULL)
			memset(p, ' ', strlen(marks[i]));
	/* what a driver adds in parentheses: "(RADV NAVI31)", "(DG2)" */
	while ((p = strchr(copy, '(')) != NULL) {
		close = strchr(p, ')');
		memset(p, ' ', close != NULL ? (size_t)(close - p) + 1 : strlen(p));
	}
	device_slug(words, str_split(copy, false, words, 32), drop, out, size);
}

/* "9.0" -> "sm_90", "gfx942", "NVIDIA_PROPRIETARY" -> "nvidia-proprietary" */
static void
level_of(enum api api, const struct tool_device *d, char *out, size_t size)
{
	size_t i, used = 0;

	if (api == API_CUDA && d->arch[0] != '\0') {
		used = (size_t)snprintf(out, size, "sm_");
		for (i = 0; d->arch[i] != '\0' && used + 1 < size; i++)
			if (isdigit((unsigned char)d->arch[i]))
				out[used++] = d->arch[i];
		out[used] = '\0';
	} else if (api == API_HIP) {
		snprintf(out, size, "%s", d->arch);
	} else if (api == API_VULKAN) {
		for (i = 0; d->driver_id[i] != '\0' && used + 1 < size; i++)
			out[used++] = d->driver_id[i] == '_' ? '-' : (char)tolower((unsigned char)d->driver_id[i]);
		out[used] = '\0';
	}
}

/* ---- choice ---- */

static bool
is_hardware(const struct tool_device *d)
{
	return !d->software && tool_layer(d) == NULL && !tool_is_virtual(d) && d->state[0] == '\0';
}

static bool
is_wanted(const struct tool_device *d, const char *wanted)
{
	char pci[32], index[16];

	snprintf(index, sizeof index, "%d", d->index);
	return (d->uuid[0] != '\0' && agree_same_id(d->uuid, wanted)) || strcmp(wanted, index) == 0 ||
		(tool_pci(wanted, pci) && strcmp(pci, d->pci) == 0);
}

/* The same device as another source knows it. */
static const struct tool_device *
known_as(const struct agree *g, const char *source, const struct tool_device *d)
{
	const struct agree_source *s = agree_source(g, source);
	const struct tool_device *v;
	int i;

	for (i = 0; s != NULL && i < s->a.count; i++) {
		v = &s->a.device[i];
		if (d->uuid[0] != '\0' && v->uuid[0] != '\0' ? agree_same_id(d->uuid, v->uuid)
				: d->pci[0] != '\0' && strcmp(d->pci, v->pci) == 0)
			return v;
	}
	return NULL;
}

/* Graphics of a processor, by whoever knows: HIP calls them a card on many hosts. */
static bool
is_integrated(const struct agree *g, const char *const *knows, const struct tool_device *d)
{
	const struct tool_device *v;
	int i;

	if (d->type == TYPE_INTEGRATED || tool_is_apu(d->arch))
		return true;
	for (i = 0; knows[i] != NULL; i++)
		if ((v = known_as(g, knows[i], d)) != NULL &&
		    (v->type == TYPE_INTEGRATED || tool_is_apu(v->arch)))
			return true;
	return false;
}

/* Hardware before software, a card before shared memory, then by place. */
static int
rank(const struct agree *g, const char *const *knows, const struct tool_device *d)
{
	return (is_hardware(d) ? 0 : 4) + (d->type == TYPE_UNKNOWN ? 2 : is_integrated(g, knows, d) ? 1 : 0);
}

static const struct tool_device *
choose(const struct agree *g, const struct agree_source *s, const char *const *knows)
{
	const struct tool_device *d, *best = NULL;
	int i, r, lowest = 0;

	for (i = 0; s != NULL && i < s->a.count; i++) {
		d = &s->a.device[i];
		if (g->wanted[0] != '\0') {
			if (is_wanted(d, g->wanted))
				return d;
			continue;
		}
		r = rank(g, knows, d);
		if (best == NULL || r < lowest || (r == lowest && strcmp(d->pci, best->pci) < 0)) {
			best = d;
			lowest = r;
		}
	}
	return best;
}

static void
take(char *to, size_t size, const char *from)
{
	if (to[0] == '\0' && from[0] != '\0')
		snprintf(to, size, "%s", from);
}

/* What d does not know is taken from v. */
static void
merge(struct tool_device *d, const struct tool_device *v)
{
	take(d->name, sizeof d->name, v->name);
	take(d->uuid, sizeof d->uuid, v->uuid);
	take(d->pci, sizeof d->pci, v->pci);
	take(d->arch, sizeof d->arch, v->arch);
	take(d->features, sizeof d->features, v->features);
	take(d->driver, sizeof d->driver, v->driver);
	take(d->mig, sizeof d->mig, v->mig);
	take(d->mig_mode, sizeof d->mig_mode, v->mig_mode);
	take(d->compute_mode, sizeof d->compute_mode, v->compute_mode);
	take(d->state, sizeof d->state, v->state);
	d->vgpu |= v->vgpu;
	d->chip_differs |= v->chip_differs;
	d->memory_mib = d->memory_mib < 0 ? v->memory_mib : d->memory_mib;
	d->used_mib = d->used_mib < 0 ? v->used_mib : d->used_mib;
	d->processes = d->processes < 0 ? v->processes : d->processes;
	d->mps |= v->mps;
	d->rows_failed |= v->rows_failed;
}

/* AMD's marketing names are those of rocminfo; "gfx942" is no model. */
static bool
merged(const struct agree *g, enum api api, struct tool_device *out)
{
	const char *const *knows = NULL;
	const struct agree_source *s = runner(g, api, &knows);
	const struct tool_device *d = choose(g, s, knows), *v;
	int i;

	if (d == NULL)
		return false;
	*out = *d;
	for (i = 0; knows[i] != NULL; i++)
		if ((v = known_as(g, knows[i], d)) != NULL) {
			if (api == API_HIP && strcmp(knows[i], "rocminfo") == 0 && v->name[0] != '\0')
				snprintf(out->name, sizeof out->name, "%s", v->name);
			/* a slice is named by its own kind of id */
			if (v->mig[0] != '\0')
				snprintf(out->uuid, sizeof out->uuid, "%s", v->uuid);
			merge(out, v);
		}
	return true;
}

bool
agree_device(const struct agree *g, const struct lane *lane, const struct target *t,
	struct device_facts *out)
{
	struct tool_device *d = malloc(sizeof *d);
	bool ok = d != NULL && merged(g, lane->api, d);

	memset(out, 0, sizeof *out);
	out->memory_bytes = out->cpus = -1;
	if (ok) {
		snprintf(out->name, sizeof out->name, "%s", d->name);
		slug_of(d->name, out->slug, sizeof out->slug);
		level_of(lane->api, d, out->level, sizeof out->level);
		snprintf(out->features, sizeof out->features, "%s", d->features);
		/* graphics of a processor, and cards under WSL, have no UUID of their own */
		snprintf(out->uuid, sizeof out->uuid, "%s", d->uuid[0] || lane->api != API_HIP ? d->uuid : d->pci);
		snprintf(out->pci, sizeof out->pci, "%s", d->pci);
		snprintf(out->driver, sizeof out->driver, "%s", d->driver);
		snprintf(out->mig, sizeof out->mig, "%s", d->mig);
		snprintf(out->override, sizeof out->override, "%.160s%s%.160s", g->visible,
			g->visible[0] && g->faking[0] ? " " : "", g->faking);
		out->memory_bytes = d->memory_mib >= 0 ? d->memory_mib << 20 : -1;
		out->vgpu = d->vgpu;
		out->wsl = g->wsl;
		out->software = d->software;
		out->faked = g->faking[0] != '\0' || d->chip_differs;
		out->simulated = g->simulated;
		out->ordinal = d->index;
		if (t != NULL && out->level[0] != '\0')
			snprintf(out->device_class, sizeof out->device_class, "%s/%s/%s%s%s%s%s", t->name,
				out->slug, out->level, d->mig[0] ? "+mig-" : "", d->mig,
				d->vgpu ? "+vgpu" : "", g->wsl ? "+wsl" : "");
	}
	free(d);
	return ok;
}

/* ---- judgement ---- */

static bool
is_grace(const struct agree *g, const struct tool_device *d)
{
	return strcmp(g->host_arch, "aarch64") == 0 && str_starts(d->arch, "9.");
}

/* What the chosen device must not be. */
static bool
device_refused(const struct agree *g, const struct lane *lane, const struct tool_device *d,
	struct judgement *out)
{
	if (tool_layer(d) != NULL)
		judgement_set(out, REASON_WRONG_DEVICE, "%.80s is reached through %s, which is no native Vulkan",
			d->name, tool_layer(d));
	else if (lane->api == API_VULKAN && d->type == TYPE_UNKNOWN)
		judgement_set(out, REASON_WRONG_DEVICE, "%.80s does not say that it is a GPU", d->name);
	else if (tool_is_virtual(d))
		judgement_set(out, REASON_EMULATOR, "%.100s is a virtual device", d->name);
	else if (d->software && !g->software_allowed)
		judgement_set(out, REASON_SOFTWARE_DEVICE, "%.100s computes on the processor", d->name);
	else if (strcmp(d->state, "lost") == 0 || strcmp(d->state, "requires_reset") == 0)
		judgement_set(out, REASON_DEVICE_FAULT, "%.80s at %s is %s", d->name, d->pci, d->state);
	else if (d->rows_failed) {
		judgement_set(out, REASON_DEVICE_FAULT, "%.80s at %s has a bad row of memory and no spare one",
			d->name, d->pci);
		snprintf(out->hint, sizeof out->hint, "replace the card; nvidia-smi -q -d ROW_REMAPPER shows it");
	} else if (strcasecmp(d->compute_mode, "Prohibited") == 0)
		judgement_set(out, REASON_DEVICE_BUSY, "%.80s is in compute mode Prohibited", d->name);
	else if (strcasecmp(d->compute_mode, "Exclusive_Process") == 0 && d->used_mib > 1024 && !d->mps)
		judgement_set(out, REASON_DEVICE_BUSY, "%.80s is in exclusive mode, and %lld MiB of it are in use",
			d->name, (long long)d->used_mib);
	else if (strncasecmp(d->compute_mode, "Exclusive", 9) == 0 && d->processes > 0 && !d->mps)
		judgement_set(out, REASON_DEVICE_BUSY, "%.80s is in exclusive mode, and %lld process%s it", d->name,
			(long long)d->processes, d->processes == 1 ? " holds" : "es hold");
	else if (d->state[0] != '\0')
		judgement_set(out, REASON_PROBE_UNREADABLE, "%.80s can not be used: %s", d->name, d->state);
	else if (lane->kin == KIN_GRACE && !is_grace(g, d))
		judgement_set(out, REASON_WRONG_DEVICE, "%.80s (%.10s) on %.20s is no Hopper on aarch64", d->name,
			d->arch[0] ? d->arch : "unknown", g->host_arch[0] ? g->host_arch : "an unknown host");
	else if (lane->kin == KIN_NOT_GRACE && is_grace(g, d)) {
		judgement_set(out, REASON_WRONG_DEVICE, "%.80s on aarch64 belongs to the lane gh200", d->name);
		snprintf(out->hint, sizeof out->hint, "run the lane gh200");
	} else if (strcmp(d->mig_mode, "enabled") == 0 && d->mig[0] == '\0' && agree_slices(g, d->uuid) > 0) {
		judgement_set(out, REASON_DEVICE_NOT_CHOSEN,
			"%.80s is in %d slices, and its driver does not say which of them CUDA shows", d->name,
			agree_slices(g, d->uuid));
		snprintf(out->hint, sizeof out->hint, "name one: --device MIG-...; nvidia-smi -L lists them");
	} else if (strcmp(d->mig_mode, "enabled") == 0 && d->mig[0] == '\0')
		judgement_set(out, REASON_MIG_NO_INSTANCE, "%.80s is in MIG mode and no instance is chosen", d->name);
	else
		return false;
	return true;
}

void
judge_gpu_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct agree *g = malloc(sizeof *g);
	struct tool_device *d = malloc(sizeof *d);
	struct device_facts f;
	int i, asked = 0;

	if (g == NULL || d == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory for the probes");
	} else {
		agree_read(log, len, ask->lane->api, g);
		for (i = 0; i < g->count; i++)
			asked += g->source[i].a.reason == REASON_NONE && !g->source[i].timed_out &&
				g->source[i].signal == 0;
		if (agree_judge(g, ask->lane, out) != REASON_NONE) {
			/* said */
		} else if (!merged(g, ask->lane->api, d)) {
			judgement_set(out, REASON_NO_DEVICE, g->wanted[0] ? "no device is \"%.60s\"%s"
				: "no device of the lane%s%s", g->wanted, "");
		} else if (!device_refused(g, ask->lane, d, out)) {
			agree_device(g, ask->lane, NULL, &f);
			if (f.level[0] == '\0' || f.uuid[0] == '\0')
				judgement_set(out, REASON_PROBE_UNREADABLE, "%.80s does not say its %s", f.name,
					f.level[0] == '\0' ? "architecture" : "UUID");
			else
				judgement_set(out, REASON_NONE, "%.60s, %s%s%s%s, driver %.40s, %s, %s; %d probes agree",
					f.name, f.level, f.mig[0] ? ", slice " : "", f.mig, f.vgpu ? ", virtual" : "",
					f.driver[0] ? f.driver : "unknown", f.pci[0] ? f.pci : "no PCI address", f.uuid,
					asked);
		}
	}
	free(g);
	free(d);
}

bool
gpu_device_facts(const char *log, size_t len, const struct lane *lane, const struct target *t,
	struct device_facts *out)
{
	struct agree *g = malloc(sizeof *g);
	bool ok = g != NULL;

	if (ok) {
		agree_read(log, len, lane->api, g);
		ok = agree_device(g, lane, t, out);
	}
	free(g);
	return ok;
}
