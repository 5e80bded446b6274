#include "common/lane.h"

#include <string.h>

#include "common/str.h"

static const char *const outcomes[OUTCOME_COUNT] = {
	[OUTCOME_PASS] = "pass",
	[OUTCOME_FAIL] = "fail",
	[OUTCOME_BLOCKED] = "blocked",
	[OUTCOME_SKIPPED] = "skipped",
	[OUTCOME_INCOMPLETE] = "incomplete",
};

static const struct {
	const char *name;
	enum outcome outcome;
	const char *hint;
} reasons[REASON_COUNT] = {
#define X(id, name, outcome, hint) [REASON_##id] = {name, OUTCOME_##outcome, hint},
	REASON_TABLE(X)
#undef X
};

static const char *const claims[CLAIM_COUNT] = {
	[CLAIM_FIXTURE_PARITY] = "fixture-parity",
	[CLAIM_LEGACY_KV_GRAPH] = "legacy-kv-graph",
	[CLAIM_GEMMA_RUNTIME] = "gemma-runtime",
};

static const char *const onlys[ONLY_COUNT] = {
	[ONLY_ALL] = "all",
	[ONLY_PROBE] = "probe",
	[ONLY_BUILD] = "build",
	[ONLY_FIXTURES] = "fixtures",
	[ONLY_SMOKE] = "smoke",
};

#define H GATE_BIT(GATE_HOST)
#define D GATE_BIT(GATE_DEVICE)
#define T GATE_BIT(GATE_TOOLCHAIN)
#define M GATE_BIT(GATE_MODEL)
#define S GATE_BIT(GATE_SOURCE)
#define B GATE_BIT(GATE_BUILD)
#define ANY ~0u
#define PROBE (1u << ONLY_PROBE)
#define BUILD (1u << ONLY_BUILD)
#define FIXTURES (1u << ONLY_FIXTURES)
#define SMOKE (1u << ONLY_SMOKE)

const struct gate_row gates[GATE_COUNT] = {
	/*                     name           title                      needs          only                     family */
	[GATE_HOST]        = { "host",        "Host",                    0,             ANY,                     false },
	[GATE_DEVICE]      = { "device",      "Device",                  H,             ANY,                     false },
	[GATE_TOOLCHAIN]   = { "toolchain",   "Toolchain",               H,             PROBE | BUILD | SMOKE,   false },
	[GATE_MODEL]       = { "model",       "Model",                   H,             SMOKE,                   false },
	[GATE_SOURCE]      = { "source",      "Engine source",           H,             BUILD | SMOKE,           false },
	[GATE_BUILD]       = { "build",       "Engine build",            H | T | S,     BUILD | SMOKE,           false },
	[GATE_FIXTURES]    = { "fixtures",    "Kernel fixtures",         H | D,         FIXTURES,                false },
	[GATE_OP_PARITY]   = { "op-parity",   "Engine op parity",        H | D | B,     FIXTURES,                false },
	[GATE_GRAPH_SMOKE] = { "graph-smoke", "Graph smoke",             H | D | M | B, SMOKE,                   true  },
	[GATE_MTP]         = { "mtp",         "Speculative decoding",    H | D | M | B, SMOKE,                   false },
	[GATE_REPORT]      = { "report",      "Report",                  0,             ANY,                     false },
};

const struct target targets[] = {
	{ "linux-x64-cpu",     "Linux", "x86_64",  API_CPU, 62 },
	{ "linux-aarch64-cpu", "Linux", "aarch64", API_CPU, 183 },
};
const size_t target_count = str_count(targets);

#define CPU_GATES (H | D | T | M | S | B | GATE_BIT(GATE_FIXTURES) | \
	GATE_BIT(GATE_GRAPH_SMOKE) | GATE_BIT(GATE_REPORT))

const struct lane lanes[] = {
	/* name   title          api      harness       backend kv_device gates      runner        build_switch      skip_switch             cmake_flags  offloads */
	{ "cpu",  "CPU",         API_CPU, "cpu-verify", "cpu",  "CPU",    CPU_GATES, "cpu_runner", "CPU_BUILD_FORK", "CPU_SKIP_GRAPH_SMOKE", "",          false },
};
const size_t lane_count = str_count(lanes);

const char *
outcome_name(enum outcome o)
{
	return outcomes[o];
}

/* Index of name in a table of words, -1 when it is none of them. */
static int
word_find(const char *const *words, int count, const char *name)
{
	int i;

	for (i = 0; name != NULL && i < count; i++)
		if (strcmp(words[i], name) == 0)
			return i;
	return -1;
}

int
outcome_find(const char *name)
{
	return word_find(outcomes, OUTCOME_COUNT, name);
}

const char *
reason_name(enum reason r)
{
	return reasons[r].name;
}

const char *
reason_hint(enum reason r)
{
	return reasons[r].hint;
}

enum outcome
reason_outcome(enum reason r)
{
	return reasons[r].outcome;
}

int
reason_find(const char *name)
{
	int i;

	for (i = 0; name != NULL && i < REASON_COUNT; i++)
		if (strcmp(reasons[i].name, name) == 0)
			return i;
	return -1;
}

const char *
claim_name(enum claim c)
{
	return claims[c];
}

int
gate_find(const char *name)
{
	size_t n = strcspn(name, "/");
	int i;

	for (i = 0; i < GATE_COUNT; i++)
		if (strlen(gates[i].name) == n && memcmp(gates[i].name, name, n) == 0 &&
		    (name[n] == '\0' || gates[i].family))
			return i;
	return -1;
}

const char *
only_name(enum only o)
{
	return onlys[o];
}

int
only_find(const char *name)
{
	return word_find(onlys, ONLY_COUNT, name);
}

const struct target *
target_find(const char *name)
{
	size_t i;

	for (i = 0; name != NULL && i < target_count; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

const struct lane *
lane_find(const char *name)
{
	size_t i;

	for (i = 0; name != NULL && i < lane_count; i++)
		if (strcmp(lanes[i].name, name) == 0)
			return &lanes[i];
	return NULL;
}

const struct target *
lane_target(const struct lane *l, const char *os, const char *arch)
{
	size_t i;

	for (i = 0; i < target_count; i++)
		if (targets[i].api == l->api && strcmp(targets[i].os, os) == 0 &&
		    strcmp(targets[i].arch, arch) == 0)
			return &targets[i];
	return NULL;
}
