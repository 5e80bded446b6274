#include "common/agree.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json.h"
#include "common/phone.h"
#include "common/transcript.h"

#define QUERY "--query-gpu=index,name,uuid,pci.bus_id,driver_version,vbios_version,compute_cap," \
	"memory.total,mig.mode.current,ecc.mode.current,compute_mode"

const struct agree_row agree_rows[] = {
	{"NVML", API_CUDA, {AGREE_SELF, "probe", "nvml"}, TOOL_PROBE, true, 20000},
	{"CUDA", API_CUDA, {AGREE_SELF, "probe", "cuda"}, TOOL_PROBE, true, 30000},
	{"nvidia-smi -L", API_CUDA, {"nvidia-smi", "-L"}, TOOL_NVIDIA_SMI_L, false, 20000},
	{"nvidia-smi --query-gpu", API_CUDA, {"nvidia-smi", QUERY, "--format=csv"},
		TOOL_NVIDIA_SMI_QUERY, false, 20000},
	{"HIP", API_HIP, {AGREE_SELF, "probe", "hip"}, TOOL_PROBE, true, 30000},
	{"KFD", API_HIP, {AGREE_SELF, "probe", "kfd"}, TOOL_PROBE, false, 10000},
	{"rocminfo", API_HIP, {"rocminfo"}, TOOL_ROCMINFO, false, 30000},
	{"Vulkan", API_VULKAN, {AGREE_SELF, "probe", "vulkan"}, TOOL_PROBE, true, 30000},
	{"vulkaninfo", API_VULKAN, {"vulkaninfo", "--summary"}, TOOL_VULKANINFO, false, 30000},
};
const size_t agree_row_count = str_count(agree_rows);

static const struct agree_variable variables[] = {
	{"CUDA_VISIBLE_DEVICES", true, false}, {"CUDA_DEVICE_ORDER", false, false},
	/* for a container's NVML as for its CUDA */
	{"NVIDIA_VISIBLE_DEVICES", false, false}, {"CUDA_MPS_PIPE_DIRECTORY", false, false},
	{"HIP_VISIBLE_DEVICES", true, false}, {"ROCR_VISIBLE_DEVICES", true, false},
	{"GPU_DEVICE_ORDINAL", true, false}, {"HSA_OVERRIDE_GFX_VERSION*", false, true},
	{"HSA_*", false, false}, {"VK_ICD_FILENAMES", true, false}, {"VK_DRIVER_FILES", true, false},
	{"VK_ADD_DRIVER_FILES", true, false}, {"VK_LOADER_*", true, false},
	{"VK_INSTANCE_LAYERS", false, false}, {"MESA_VK_DEVICE_SELECT*", true, false},
	{"MESA_VK_VERSION_OVERRIDE", false, false}, {"DRI_PRIME", true, false},
	{"RADV_FORCE_FAMILY", false, true}, {"INTEL_DEVID_OVERRIDE", false, true},
	{"INTEL_FORCE_PROBE", false, false}, {"GGML_VK_VISIBLE_DEVICES", true, false},
	{"GGML_CUDA_*", false, false}, {"LP_NUM_THREADS", false, false},
};

/* ---- words ---- */

bool
agree_same_id(const char *a, const char *b)
{
	while (str_starts(a, "GPU-") || str_starts(a, "MIG-"))
		a += 4;
	while (str_starts(b, "GPU-") || str_starts(b, "MIG-"))
		b += 4;
	for (;; a++, b++) {
		while (*a == '-')
			a++;
		while (*b == '-')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (*a == '\0')
			return true;
	}
}

/* Without vendor in front and what follows in parentheses or as a slice. */
static size_t
name_core(const char **name)
{
	static const char *const vendors[] = {"NVIDIA ", "AMD ", "Intel(R) ", "Intel ", "Tesla ", "Quadro "};
	const char *p = *name, *end;
	size_t i;

	for (i = 0; i < str_count(vendors); i++)
		if (strncasecmp(p, vendors[i], strlen(vendors[i])) == 0)
			p += strlen(vendors[i]);
	end = strstr(p, " MIG ");
	if (end == NULL)
		end = strstr(p, " (RADV");
	*name = p;
	return end != NULL ? (size_t)(end - p) : strlen(p);
}

bool
agree_same_name(const char *a, const char *b)
{
	size_t n = name_core(&a), k = name_core(&b);

	return n == k && strncasecmp(a, b, n) == 0;
}

static bool
variable_fits(const struct agree_variable *v, const char *name, size_t n)
{
	size_t k = strlen(v->name);

	if (v->name[k - 1] == '*')
		return n >= k - 1 && strncmp(v->name, name, k - 1) == 0;
	return n == k && strncmp(v->name, name, k) == 0;
}

const struct agree_variable *
agree_variable_find(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < str_count(variables); i++)
		if (variable_fits(&variables[i], name, n))
			return &variables[i];
	return NULL;
}

/* ---- reading ---- */

static void
add_word(char *to, size_t size, const char *word, size_t n)
{
	size_t used = strlen(to);

	/* cut, never left away: that a variable was set decides */
	if (used + 1 < size)
		(void)snprintf(to + used, size - used, "%s%.*s", used ? " " : "", (int)n, word);
}

/* Facts "env.NAME=VALUE"; of rows that fit the first decides. */
static void
variables_read(const struct section *s, struct agree *out)
{
	const struct agree_variable *v;
	const char *p, *eq;
	size_t pos = 0, n;

	while (section_line(s, &pos, &p, &n)) {
		if (n <= 4 || strncmp(p, "env.", 4) != 0 || (eq = memchr(p, '=', n)) == NULL ||
		    (v = agree_variable_find(p + 4, (size_t)(eq - p) - 4)) == NULL)
			continue;
		if (v->hides)
			add_word(out->visible, sizeof out->visible, p + 4, n - 4);
		if (v->fakes)
			add_word(out->faking, sizeof out->faking, p + 4, n - 4);
	}
}

static bool
argv_is(const cJSON *argv, const struct agree_row *row)
{
	const char *word;
	int i;

	for (i = 0; row->argv[i] != NULL; i++) {
		if ((word = cJSON_GetStringValue(cJSON_GetArrayItem(argv, i))) == NULL)
			return false;
		if (i == 0) {
			word = str_base(word);
			if (str_starts(word, row->argv[0]) &&
			    (word[strlen(row->argv[0])] == '\0' || str_ends(word, ".exe")))
				continue;
			return false;
		}
		/* the fields of a query may become more */
		if (strcmp(word, row->argv[i]) != 0 &&
		    !(str_starts(word, "--query-gpu=") && str_starts(row->argv[i], "--query-gpu=")))
			return false;
	}
	return cJSON_GetArraySize(argv) == i;
}

static void
run_read(const struct section *s, enum api api, struct agree *out)
{
	struct agree_source *src;
	cJSON *o = NULL;
	size_t i;

	if (json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return;
	for (i = 0; i < agree_row_count; i++) {
		if (agree_rows[i].api != api || out->count == AGREE_MAX ||
		    !argv_is(json_get(o, "argv"), &agree_rows[i]) ||
		    agree_source(out, agree_rows[i].name) != NULL)
			continue;
		src = &out->source[out->count++];
		src->row = &agree_rows[i];
		src->ran = s->ended;
		src->exit = s->exit;
		src->signal = s->signal;
		src->timed_out = s->timed_out;
		tool_parse(src->row->kind, s->body, s->len, s->exit, &src->a);
		out->simulated |= src->a.simulated;
		if (src->row->kind == TOOL_PROBE && src->a.reason == REASON_NONE &&
		    strcmp(src->a.probe, src->row->argv[2]) != 0) {
			src->a.reason = REASON_PROBE_UNREADABLE;
			snprintf(src->a.detail, sizeof src->a.detail, "the answer is that of another probe");
		}
		if (s->dropped > 0) {
			src->a.reason = REASON_UNKNOWN_TOOL_FORMAT;
			snprintf(src->a.detail, sizeof src->a.detail, "it printed more than is kept");
		}
		break;
	}
	cJSON_Delete(o);
}

/* A slice of the card in MIG mode with that id; k: its place among them; -1 none. */
static int
slice_at(const struct tool_answer *a, const char *uuid, const char *profile, int k)
{
	const struct tool_device *d, *card;
	int i;

	for (i = 0; i < a->count; i++) {
		d = &a->device[i];
		card = d->parent >= 0 ? &a->device[d->parent] : NULL;
		if (card != NULL && agree_same_id(card->uuid, uuid) &&
		    (profile == NULL || strcmp(d->mig, profile) == 0 || strcmp(d->mig, "unknown") == 0) && k-- == 0)
			return i;
	}
	return -1;
}

int
agree_slices(const struct agree *g, const char *uuid)
{
	const struct agree_source *nvml = agree_source(g, "NVML");
	int n = 0;

	while (nvml != NULL && uuid[0] != '\0' && slice_at(&nvml->a, uuid, NULL, n) >= 0)
		n++;
	return n;
}

/* The slice that CUDA was told to show: by whoever ran us, else by the agent itself. */
static bool
slice_told(const struct agree *g, const char *id)
{
	const char *value = strstr(g->visible, "CUDA_VISIBLE_DEVICES=");
	char word[80];
	size_t n;

	if (value == NULL)
		return agree_same_id(g->wanted, id);
	value += strlen("CUDA_VISIBLE_DEVICES=");
	n = strcspn(value, ", ");
	snprintf(word, sizeof word, "%.*s", (int)(n < 79 ? n : 79), value);
	return str_starts(word, "MIG-") && agree_same_id(word, id);
}

/* A card in slices is never listed by CUDA itself.  What has its id there is a slice that a
 * driver before R470 names so: the one that was told, or the only one of its profile. */
static void
slices_name(struct agree *g)
{
	struct agree_source *cuda = NULL;
	const struct agree_source *nvml = agree_source(g, "NVML");
	struct tool_device *d;
	const char *profile;
	int i, k, at, found;

	for (i = 0; i < g->count; i++)
		if (strcmp(g->source[i].row->name, "CUDA") == 0)
			cuda = &g->source[i];
	for (i = 0; cuda != NULL && nvml != NULL && i < cuda->a.count; i++) {
		d = &cuda->a.device[i];
		profile = strstr(d->name, " MIG ");
		profile = profile != NULL ? profile + 5 : NULL;
		found = slice_at(&nvml->a, d->uuid, profile, 1) < 0 ? slice_at(&nvml->a, d->uuid, profile, 0) : -1;
		for (k = 0; (at = slice_at(&nvml->a, d->uuid, profile, k)) >= 0; k++)
			if (slice_told(g, nvml->a.device[at].uuid))
				found = at;
		if (d->uuid[0] == '\0' || found < 0)
			continue;
		memcpy(d->uuid, nvml->a.device[found].uuid, sizeof d->uuid);
		snprintf(d->mig, sizeof d->mig, "%.31s", profile != NULL ? profile : nvml->a.device[found].mig);
	}
}

void
agree_read(const char *log, size_t len, enum api api, struct agree *out)
{
	char word[64];
	struct section s;
	size_t pos = 0;

	memset(out, 0, sizeof *out);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0)
			run_read(&s, api, out);
		else if (strcmp(s.kind, "facts") == 0)
			variables_read(&s, out);
		section_fini(&s);
	}
	log_fact(log, len, "wantedDevice", out->wanted, sizeof out->wanted);
	log_fact(log, len, "hostArch", out->host_arch, sizeof out->host_arch);
	out->wsl = log_fact(log, len, "wsl", word, sizeof word) && strcmp(word, "no") != 0;
	out->software_allowed = log_fact(log, len, "softwareAllowed", word, sizeof word) &&
		strcmp(word, "1") == 0;
	out->simulated |= log_fact(log, len, "simulated", word, sizeof word) && word[0] != '\0';
	slices_name(out);
}

/* Our own programs say it in the object that they print. */
static bool
run_simulated(const struct section *s)
{
	cJSON *head = NULL, *said = NULL;
	const char *word, *from = memchr(s->body, '{', s->len), *to = memrchr(s->body, '}', s->len);
	bool found = false;

	if (from == NULL || to == NULL || to < from || json_parse(s->head, strlen(s->head), 1u << 20, &head, NULL))
		return false;
	word = cJSON_GetStringValue(cJSON_GetArrayItem(json_get(head, "argv"), 1));
	if (word != NULL && (strcmp(word, "probe") == 0 || strstr(word, "-verify") != NULL) &&
	    json_parse(from, (size_t)(to - from) + 1, 16u << 20, &said, NULL) == 0)
		found = json_bool(said, "simulated", false) ||
			json_bool(json_get(said, "device"), "simulated", false);
	cJSON_Delete(head);
	cJSON_Delete(said);
	return found;
}

bool
agree_simulated(const char *log, size_t len)
{
	char word[64];
	struct section s;
	size_t pos = 0;
	bool found = log_fact(log, len, "simulated", word, sizeof word) && word[0] != '\0';

	while (!found && transcript_next(log, len, &pos, &s, NULL) == 1) {
		found = (strcmp(s.kind, "run") == 0 && run_simulated(&s)) || phone_simulated(&s);
		section_fini(&s);
	}
	return found;
}

const struct agree_source *
agree_source(const struct agree *g, const char *name)
{
	int i;

	for (i = 0; i < g->count; i++)
		if (strcmp(g->source[i].row->name, name) == 0)
			return &g->source[i];
	return NULL;
}

/* ---- agreement ---- */

static bool
is_card(const struct tool_device *d)
{
	return d->parent < 0 && d->mig[0] == '\0';
}

static int
cards(const struct tool_answer *a)
{
	int i, n = 0;

	for (i = 0; i < a->count; i++)
		n += is_card(&a->device[i]);
	return n;
}

/* The same device in another answer: by id, else by its place.  Two drivers of one card give
 * it one id. */
static const struct tool_device *
find(const struct tool_answer *a, const struct tool_device *d)
{
	const struct tool_device *found = NULL;
	int i;

	for (i = 0; d->uuid[0] != '\0' && i < a->count; i++)
		if (a->device[i].uuid[0] != '\0' && agree_same_id(a->device[i].uuid, d->uuid) &&
		    (found == NULL || strcmp(a->device[i].driver_id, d->driver_id) == 0))
			found = &a->device[i];
	if (found != NULL)
		return found;
	for (i = 0; d->pci[0] != '\0' && i < a->count; i++)
		if ((a->device[i].uuid[0] == '\0' || d->uuid[0] == '\0') && a->device[i].pci[0] != '\0' &&
		    is_card(&a->device[i]) && strcmp(a->device[i].pci, d->pci) == 0)
			return &a->device[i];
	return NULL;
}

/* Ids and places are there to compare by. */
static bool
has_ids(const struct tool_answer *a)
{
	int i;

	for (i = 0; i < a->count; i++)
		if (a->device[i].uuid[0] == '\0' && a->device[i].pci[0] == '\0')
			return false;
	return a->count > 0;
}

static void
disagree(struct judgement *out, const struct agree_source *a, const struct agree_source *b,
	const char *what, const char *x, const char *y)
{
	judgement_set(out, REASON_PROBES_DISAGREE, "%s: %s says %.70s, %s says %.70s", what,
		a->row->name, x[0] ? x : "nothing", b->row->name, y[0] ? y : "nothing");
}

/* A number stands where a program is older than the driver. */
static bool
is_driver_name(const char *id)
{
	return isupper((unsigned char)id[0]) && !str_starts(id, "UNKNOWN");
}

/* Members that two answers of one device must have in common when both know them. */
static bool
members_agree(const struct agree *g, const struct agree_source *a, const struct tool_device *x,
	const struct agree_source *b, const struct tool_device *y, struct judgement *out)
{
	if (x->pci[0] && y->pci[0] && strcmp(x->pci, y->pci) != 0)
		disagree(out, a, b, "PCI address", x->pci, y->pci);
	/* a variable that fakes a chip is told apart, and keeps the run from being recorded */
	else if (x->arch[0] && y->arch[0] && strcmp(x->arch, y->arch) != 0 && g->faking[0] == '\0')
		disagree(out, a, b, "architecture", x->arch, y->arch);
	else if (x->name[0] && y->name[0] && a->row->api != API_HIP && !agree_same_name(x->name, y->name))
		disagree(out, a, b, "name", x->name, y->name);
	else if (x->driver[0] && y->driver[0] && a->row->api == API_CUDA && strcmp(x->driver, y->driver) != 0)
		disagree(out, a, b, "driver", x->driver, y->driver);
	else if (is_driver_name(x->driver_id) && is_driver_name(y->driver_id) && strcmp(x->driver_id, y->driver_id) != 0)
		disagree(out, a, b, "driver id", x->driver_id, y->driver_id);
	else
		return true;
	return false;
}

static int
slices(const struct tool_answer *a)
{
	int i, n = 0;

	for (i = 0; i < a->count; i++)
		n += !is_card(&a->device[i]);
	return n;
}

static bool
has_mig(const struct tool_answer *a)
{
	int i;

	for (i = 0; i < a->count; i++)
		if (strcmp(a->device[i].mig_mode, "enabled") == 0)
			return true;
	return false;
}

/* Every device of a is one of b; with all, every card of b is one of a too. */
static bool
lists_agree(const struct agree *g, const struct agree_source *a, const struct agree_source *b,
	bool all, struct judgement *out)
{
	const struct tool_device *d, *other;
	char x[32], y[32];
	int i;

	if (!has_ids(&a->a) || !has_ids(&b->a)) {
		if (all && cards(&a->a) != cards(&b->a)) {
			snprintf(x, sizeof x, "%d", cards(&a->a));
			snprintf(y, sizeof y, "%d", cards(&b->a));
			disagree(out, a, b, "number of devices", x, y);
			return false;
		}
		return true;
	}
	for (i = 0; i < a->a.count; i++) {
		d = &a->a.device[i];
		if ((other = find(&b->a, d)) == NULL) {
			disagree(out, a, b, "device", d->uuid[0] ? d->uuid : d->pci, "");
			return false;
		}
		if (!members_agree(g, a, d, b, other, out))
			return false;
	}
	for (i = 0; all && i < b->a.count; i++) {
		d = &b->a.device[i];
		if (is_card(d) && find(&a->a, d) == NULL) {
			disagree(out, a, b, "device", "", d->uuid[0] ? d->uuid : d->pci);
			return false;
		}
	}
	return true;
}

/* An optional tool that is too old to be read, or is not there, proves nothing either way. */
static bool
is_mute(const struct agree_source *s)
{
	return s == NULL || (!s->row->required && (s->a.reason == REASON_UNKNOWN_TOOL_FORMAT ||
		s->a.reason == REASON_TOOL_MISSING || s->a.reason == REASON_TOOLCHAIN_TOO_OLD ||
		s->a.reason == REASON_TOOL_BROKEN || s->timed_out || s->signal != 0));
}

static bool
sees_devices(const struct agree_source *s)
{
	return s != NULL && s->a.reason == REASON_NONE && s->a.count > 0;
}

/* A source that gave no facts: its own reason, or that others see what it does not. */
static bool
source_failed(const struct agree *g, const struct agree_source *s, const struct agree_source *peer,
	struct judgement *out)
{
	if (s->timed_out)
		judgement_set(out, REASON_PROBE_TIMEOUT, "%s did not answer in time", s->row->name);
	else if (s->signal != 0)
		judgement_set(out, REASON_PROBE_CRASHED, "%s died of signal %d", s->row->name, s->signal);
	else if (!s->ran)
		judgement_set(out, REASON_AGENT_DIED, "the log stops in the answer of %s", s->row->name);
	else if (s->a.reason == REASON_NO_DEVICE && sees_devices(peer) && has_mig(&peer->a) &&
		 slices(&peer->a) == 0)
		judgement_set(out, REASON_MIG_NO_INSTANCE, "%s is in MIG mode and has no instance",
			peer->a.device[0].name);
	else if (s->a.reason == REASON_NO_DEVICE && sees_devices(peer) && g->visible[0] != '\0')
		judgement_set(out, REASON_NO_DEVICE, "%s sees no device, %s sees %d; hidden by %s", s->row->name,
			peer->row->name, cards(&peer->a), g->visible);
	else if (s->a.reason == REASON_NO_DEVICE && sees_devices(peer))
		judgement_set(out, REASON_PROBES_DISAGREE, "%s sees no device (%s), %s sees %d", s->row->name,
			s->a.detail, peer->row->name, cards(&peer->a));
	else if (s->a.reason != REASON_NONE) {
		judgement_set(out, s->a.reason, "%s: %s", s->row->name, s->a.detail);
		if (s->a.hint[0] != '\0')
			str_show(out->hint, sizeof out->hint, s->a.hint, strlen(s->a.hint));
	} else
		return false;
	return true;
}

/* Software devices alone are an answer of the API, and the choice says what to think. */
static bool
is_answer(const struct agree_source *s)
{
	return s->ran && !s->timed_out && s->signal == 0 && (s->a.reason == REASON_NONE ||
		(s->row->api == API_VULKAN && s->a.count > 0 && !s->a.overflow &&
			(s->a.reason == REASON_SOFTWARE_DEVICE || s->a.reason == REASON_EMULATOR ||
				s->a.reason == REASON_WRONG_DEVICE)));
}

/* Who leads in a comparison, who must be found in whom, and whether all must be. */
static const struct pair {
	const char *a, *b;
	bool hidden;   /* a visibility variable may make a see less than b */
} pairs[] = {
	{"CUDA", "NVML", true},
	{"nvidia-smi -L", "NVML", false},
	{"nvidia-smi --query-gpu", "NVML", false},
	{"HIP", "KFD", true},
	{"HIP", "rocminfo", true},
	{"rocminfo", "KFD", true},
	{"Vulkan", "vulkaninfo", false},
};

/* There the card is reached through /dev/dxg, and the kernel has no KFD. */
static bool
wsl_excuses(const struct agree *g, const struct agree_source *s)
{
	return g->wsl && strcmp(s->row->name, "KFD") == 0;
}

static bool
pair_agrees(const struct agree *g, const struct pair *p, struct judgement *out)
{
	const struct agree_source *a = agree_source(g, p->a), *b = agree_source(g, p->b);
	bool all;

	if (is_mute(a) || is_mute(b) || wsl_excuses(g, a) || wsl_excuses(g, b))
		return true;
	/* a card in slices shows one of them to CUDA, and never itself */
	all = !(p->hidden && (g->visible[0] != '\0' || has_mig(&b->a)));
	return lists_agree(g, a, b, all, out);
}

/* Of the others the one that a failed source is held against. */
static const struct agree_source *
peer_of(const struct agree *g, const struct agree_source *s)
{
	int i;

	for (i = 0; i < g->count; i++)
		if (&g->source[i] != s && sees_devices(&g->source[i]))
			return &g->source[i];
	return NULL;
}

enum reason
agree_judge(const struct agree *g, const struct lane *lane, struct judgement *out)
{
	const struct agree_source *s;
	size_t i;
	int k;

	for (i = 0; i < agree_row_count; i++)
		if (agree_rows[i].api == lane->api && agree_rows[i].required &&
		    agree_source(g, agree_rows[i].name) == NULL) {
			judgement_set(out, REASON_PROBE_UNREADABLE, "%s was not asked", agree_rows[i].name);
			return out->reason;
		}
	/* what is required first, in the order of the rows; the more special reason wins */
	for (k = 0; k < g->count; k++) {
		s = &g->source[k];
		if (!is_answer(s) && s->row->required && s->a.reason != REASON_NO_DEVICE &&
		    source_failed(g, s, peer_of(g, s), out))
			return out->reason;
	}
	/* "no device" is what is left when nobody knows better */
	for (i = 0; i < 2; i++)
		for (k = 0; k < g->count; k++) {
			s = &g->source[k];
			if (!is_answer(s) && !is_mute(s) && !wsl_excuses(g, s) &&
			    (i == 1 || s->a.reason != REASON_NO_DEVICE) &&
			    source_failed(g, s, peer_of(g, s), out))
				return out->reason;
		}
	for (i = 0; i < str_count(pairs); i++)
		if (!pair_agrees(g, &pairs[i], out))
			return out->reason;
	return REASON_NONE;
}

/* ---- the table ---- */

int
agree_table(const struct agree *g, struct buf *b, struct err *e)
{
	const struct agree_source *s;
	const struct tool_device *d;
	int k, i;

	for (k = 0; k < g->count; k++) {
		s = &g->source[k];
		if (s->a.count == 0 && buf_addf(b, e, "%-24s %s%s%s\n", s->row->name,
				s->timed_out ? "did not answer in time" : s->signal ? "crashed"
				: reason_name(s->a.reason), s->a.detail[0] ? ": " : "", s->a.detail))
			return -1;
		for (i = 0; i < s->a.count; i++) {
			d = &s->a.device[i];
			if (buf_addf(b, e, "%-24s %-34.60s %-13s %-8s %s%s%s%s\n", i == 0 ? s->row->name : "",
					d->name[0] ? d->name : "-", d->pci[0] ? d->pci : "-",
					d->arch[0] ? d->arch : d->driver_id[0] ? d->driver_id : "-",
					d->uuid[0] ? d->uuid : "-", d->software ? " (software)" : "",
					d->mig[0] ? " slice " : "", d->mig))
				return -1;
		}
	}
	return 0;
}
