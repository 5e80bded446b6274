#include "common/bound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/agree.h"
#include "common/json.h"
#include "common/transcript.h"

static const struct {
	enum api api;
	const char *probe;
} probes[] = {{API_CUDA, "nvml"}, {API_HIP, "kfd"}, {API_VULKAN, "vulkan"}};

const char *
bound_probe(enum api api)
{
	size_t i;

	for (i = 0; i < str_count(probes); i++)
		if (probes[i].api == api)
			return probes[i].probe;
	return NULL;
}

bool
bound_gate(const struct lane *lane, enum gate_id g)
{
	static const unsigned mask = GATE_BIT(GATE_FIXTURES) | GATE_BIT(GATE_OP_PARITY) |
		GATE_BIT(GATE_ROUTES) | GATE_BIT(GATE_GRAPH_SMOKE) | GATE_BIT(GATE_CONTROL) | GATE_BIT(GATE_MTP);

	return lane->place == PLACE_HERE && bound_probe(lane->api) != NULL && (mask & GATE_BIT(g)) != 0;
}

/* {SELF,"probe",NAME,"--device",UUID} */
static bool
is_look(const struct section *s, const char *probe)
{
	cJSON *o = NULL;
	const cJSON *argv;
	bool yes;

	if (strcmp(s->kind, "run") != 0 || strstr(s->head, "\"--device\"") == NULL ||
	    json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return false;
	argv = json_get(o, "argv");
	yes = cJSON_GetArraySize(argv) == 5 &&
		str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(argv, 1)), "probe") &&
		str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(argv, 2)), probe) &&
		str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(argv, 3)), "--device");
	cJSON_Delete(o);
	return yes;
}

static bool
differs(const char *a, const char *b, const char *what, struct judgement *out)
{
	if (strcmp(a, b) == 0)
		return false;
	judgement_set(out, REASON_DEVICE_CHANGED, "the %s was %.60s before and %.60s after", what,
		a[0] ? a : "unknown", b[0] ? b : "unknown");
	return true;
}

/* A probe that came to no end of its own says nothing, whatever it printed. */
static void
look_ended(const struct section *s, struct tool_answer *a)
{
	if (s->cancelled) {
		a->reason = REASON_CANCELLED;
	} else if (s->timed_out) {
		a->reason = REASON_PROBE_TIMEOUT;
		snprintf(a->detail, sizeof a->detail, "its driver did not answer in time");
	} else if (s->signal != 0) {
		a->reason = REASON_PROBE_CRASHED;
		snprintf(a->detail, sizeof a->detail, "its driver's library died of signal %d", s->signal);
	} else if (s->dropped > 0) {
		a->reason = REASON_UNKNOWN_TOOL_FORMAT;
		snprintf(a->detail, sizeof a->detail, "its driver printed more than is kept");
	}
}

static bool
state_changed(const struct tool_answer *a, const struct tool_answer *b, struct judgement *out)
{
	const struct tool_device *x = &a->device[0], *y = &b->device[0];

	if (a->reason == REASON_CANCELLED || b->reason == REASON_CANCELLED)
		judgement_set(out, REASON_CANCELLED, "stopped while the device was looked at");
	else if (b->reason == REASON_DEVICE_VANISHED || (b->reason == REASON_NO_DEVICE && a->count > 0))
		judgement_set(out, REASON_DEVICE_VANISHED, "%.80s was there before and is not after", x->name);
	else if (a->reason != REASON_NONE || b->reason != REASON_NONE)
		judgement_set(out, REASON_DEVICE_CHANGED, "the device does not answer: %.160s",
			a->reason != REASON_NONE ? a->detail : b->detail);
	else if (a->count != 1 || b->count != 1)
		judgement_set(out, REASON_DEVICE_CHANGED, "%d devices answer to one id", a->count != 1
			? a->count : b->count);
	else if (x->xid >= 0 && y->xid > x->xid)
		judgement_set(out, REASON_DEVICE_CHANGED, "the kernel logged %lld Xid errors of the device",
			(long long)(y->xid - x->xid));
	else if (x->ecc >= 0 && y->ecc > x->ecc)
		judgement_set(out, REASON_DEVICE_CHANGED, "%lld uncorrected memory errors in this gate",
			(long long)(y->ecc - x->ecc));
	else
		return differs(x->uuid, y->uuid, "UUID", out) || differs(x->pci, y->pci, "PCI address", out) ||
			differs(x->driver, y->driver, "driver", out) ||
			differs(a->boot_id, b->boot_id, "boot id", out);
	return true;
}

enum reason
bound_judge(const char *log, size_t len, const struct lane *lane, struct bound *b,
	struct judgement *out)
{
	struct tool_answer *looks = calloc(2, sizeof *looks);
	struct section s;
	size_t pos = 0;
	int n = 0, k = 0, first = -1, last = -1;

	memset(b, 0, sizeof *b);
	if (looks == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return out->reason;
	}
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0)
			k++;
		if (is_look(&s, bound_probe(lane->api))) {
			tool_parse(TOOL_PROBE, s.body, s.len, s.exit, &looks[n > 0]);
			look_ended(&s, &looks[n > 0]);
			first = n == 0 ? k : first;
			last = k;
			n++;
		}
		section_fini(&s);
	}
	if (n < 2 || first != 1 || last != k) {
		judgement_set(out, REASON_DEVICE_CHANGED,
			"the log does not look at the device before and after the work");
	} else if (!state_changed(&looks[0], &looks[1], out)) {
		memcpy(b->name, looks[0].device[0].name, sizeof b->name);
		memcpy(b->uuid, looks[0].device[0].uuid, sizeof b->uuid);
		memcpy(b->pci, looks[0].device[0].pci, sizeof b->pci);
		memcpy(b->driver, looks[0].device[0].driver, sizeof b->driver);
		memcpy(b->boot_id, looks[0].boot_id, sizeof b->boot_id);
		b->simulated = looks[0].simulated || looks[1].simulated;
		free(looks);
		return REASON_NONE;
	}
	free(looks);
	return out->reason;
}
