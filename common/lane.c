#include "common/lane.h"

#include <stdio.h>
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
#define G GATE_BIT(GATE_GRAPH_SMOKE) /* of the same family */
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
	[GATE_ROUTES]      = { "engine-verify", "Engine routes",         H | D | B,     FIXTURES,                false },
	[GATE_GRAPH_SMOKE] = { "graph-smoke", "Graph smoke",             H | D | M | B, SMOKE,                   true  },
	[GATE_CONTROL]     = { "control",     "Control against f16",     H | D | M | B | G, SMOKE,               true  },
	[GATE_MTP]         = { "mtp",         "Speculative decoding",    H | D | M | B, SMOKE,                   false },
	[GATE_REPORT]      = { "report",      "Report",                  0,             ANY,                     false },
};

const struct target targets[] = {
	{ "linux-x64-cpu",        "Linux",   "x86_64",  API_CPU,    62 },
	{ "linux-aarch64-cpu",    "Linux",   "aarch64", API_CPU,    183 },
	{ "linux-x64-cuda",       "Linux",   "x86_64",  API_CUDA,   62 },
	{ "linux-aarch64-cuda",   "Linux",   "aarch64", API_CUDA,   183 },
	{ "linux-x64-rocm",       "Linux",   "x86_64",  API_HIP,    62 },
	{ "linux-x64-vulkan",     "Linux",   "x86_64",  API_VULKAN, 62 },
	{ "android-arm64-vulkan", "Android", "aarch64", API_VULKAN, 183 },
	{ "windows-x64-cpu",      "Windows", "x86_64",  API_CPU,    0 },
	{ "windows-x64-cuda",     "Windows", "x86_64",  API_CUDA,   0 },
	{ "windows-x64-vulkan",   "Windows", "x86_64",  API_VULKAN, 0 },
	{ "windows-arm64-cpu",    "Windows", "aarch64", API_CPU,    0 },
	{ "windows-arm64-vulkan", "Windows", "aarch64", API_VULKAN, 0 },
	{ "darwin-arm64-metal",   "Darwin",  "arm64",   API_METAL,  0 },
};
const size_t target_count = str_count(targets);

#define R GATE_BIT(GATE_REPORT)
#define ENGINE (H | D | T | M | S | B | G | GATE_BIT(GATE_MTP) | R)
/* The control compares a device with the CPU; where the CPU is the device, kernels and
 * smokes are what is known of it. */
#define CPU_GATES (ENGINE | GATE_BIT(GATE_FIXTURES))
#define GPU_GATES (CPU_GATES | GATE_BIT(GATE_OP_PARITY) | GATE_BIT(GATE_ROUTES) | GATE_BIT(GATE_CONTROL))
#define PHONE_GATES (H | D | T | S | GATE_BIT(GATE_FIXTURES) | GATE_BIT(GATE_OP_PARITY) | R)
#define CHIPS_NVIDIA "90a;90;89;86;80"
#define CHIPS_AMD "gfx90a;gfx942;gfx1100;gfx1101;gfx1102"
/* A library for each backend: the device code can be looked into, and our own program over
 * the same interface can use it. */
#define SHARED "-DBUILD_SHARED_LIBS=ON "
#define CUDA_FLAGS SHARED "-DGGML_CUDA=ON"

const struct lane lanes[] = {
	{ .name = "cpu", .title = "CPU", .api = API_CPU,
	  .targets = {"linux-x64-cpu", "linux-aarch64-cpu"},
	  .harness = "cpu-verify", .backend = "cpu", .kv_device = "CPU", .op_backend = "CPU",
	  .library = "", .pin = "", .gates = CPU_GATES, .runner = "cpu_runner",
	  .build_switch = "CPU_BUILD_FORK", .skip_switch = "CPU_SKIP_GRAPH_SMOKE",
	  .target_variable = "", .cmake_flags = "", .arch_flag = "", .archs = "" },
	{ .name = "cuda", .title = "NVIDIA, CUDA", .api = API_CUDA, .kin = KIN_NOT_GRACE,
	  .targets = {"linux-x64-cuda", "linux-aarch64-cuda"},
	  .harness = "cuda-verify", .backend = "cuda", .kv_device = "CUDA[0-9]*",
	  .op_backend = "CUDA[0-9]*", .library = "libggml-cuda", .pin = "CUDA_VISIBLE_DEVICES",
	  .gates = GPU_GATES, .runner = "cuda_runner.sh",
	  .build_switch = "CUDA_BUILD_FORK", .skip_switch = "CUDA_SKIP_GRAPH_SMOKE",
	  .target_variable = "CUDA_TARGET", .cmake_flags = CUDA_FLAGS,
	  .arch_flag = "CMAKE_CUDA_ARCHITECTURES", .archs = CHIPS_NVIDIA, .offloads = true },
	{ .name = "gh200", .title = "NVIDIA Grace Hopper", .api = API_CUDA, .kin = KIN_GRACE,
	  .targets = {"linux-aarch64-cuda"},
	  .harness = "cuda-verify", .backend = "cuda", .kv_device = "CUDA[0-9]*",
	  .op_backend = "CUDA[0-9]*", .library = "libggml-cuda", .pin = "CUDA_VISIBLE_DEVICES",
	  .gates = GPU_GATES, .runner = "gh200_runner.sh",
	  .build_switch = "CUDA_BUILD_FORK", .skip_switch = "CUDA_SKIP_GRAPH_SMOKE",
	  .target_variable = "CUDA_TARGET", .cmake_flags = CUDA_FLAGS,
	  .arch_flag = "CMAKE_CUDA_ARCHITECTURES", .archs = "90a", .pinned = true,
	  .offloads = true },
	{ .name = "rocm", .title = "AMD, ROCm", .api = API_HIP,
	  .targets = {"linux-x64-rocm"},
	  .harness = "hip-verify", .backend = "hip", .kv_device = "ROCm[0-9]*",
	  .op_backend = "ROCm[0-9]*", .library = "libggml-hip", .pin = "ROCR_VISIBLE_DEVICES",
	  .gates = GPU_GATES, .runner = "rocm_runner.sh",
	  .build_switch = "ROCM_BUILD_FORK", .skip_switch = "ROCM_SKIP_GRAPH_SMOKE",
	  .target_variable = "ROCM_TARGET", .cmake_flags = SHARED "-DGGML_HIP=ON",
	  .arch_flag = "CMAKE_HIP_ARCHITECTURES", .archs = CHIPS_AMD, .offloads = true },
	{ .name = "vulkan", .title = "Vulkan", .api = API_VULKAN,
	  .targets = {"linux-x64-vulkan"},
	  .harness = "vulkan-verify", .backend = "vulkan", .kv_device = "Vulkan[0-9]*",
	  .op_backend = "Vulkan[0-9]*", .library = "libggml-vulkan",
	  .pin = "GGML_VK_VISIBLE_DEVICES", .gates = GPU_GATES,
	  .runner = "linux_vulkan_smoke.sh", .whole_log = "linux-vulkan-smoke",
	  .build_switch = "", .skip_switch = "", .target_variable = "ELIZA_MTP_TARGET",
	  .cmake_flags = SHARED "-DGGML_VULKAN=ON", .arch_flag = "", .archs = "", .offloads = true },
	{ .name = "android", .title = "Android, Vulkan", .api = API_VULKAN, .place = PLACE_ADB,
	  .targets = {"android-arm64-vulkan"},
	  .harness = "vulkan-verify", .backend = "vulkan", .kv_device = "Vulkan[0-9]*",
	  .op_backend = "Vulkan[0-9]*", .library = "libggml-vulkan", .pin = "",
	  .gates = PHONE_GATES, .runner = "android_vulkan_smoke.sh", .whole_log = "android-vulkan-smoke",
	  .build_switch = "", .skip_switch = "", .target_variable = "ELIZA_MTP_TARGET",
	  .cmake_flags = SHARED "-DGGML_VULKAN=ON", .arch_flag = "", .archs = "", .offloads = true },
	{ .name = "windows-cuda", .title = "Windows, CUDA", .api = API_CUDA,
	  .targets = {"windows-x64-cuda"},
	  .harness = "cuda-verify", .backend = "cuda", .kv_device = "CUDA[0-9]*",
	  .op_backend = "CUDA[0-9]*", .library = "ggml-cuda", .pin = "CUDA_VISIBLE_DEVICES",
	  .gates = GPU_GATES, .runner = "windows_runner.ps1",
	  .build_switch = "WINDOWS_BUILD_FORK", .skip_switch = "WINDOWS_SKIP_GRAPH_SMOKE",
	  .target_variable = "", .cmake_flags = CUDA_FLAGS,
	  .arch_flag = "CMAKE_CUDA_ARCHITECTURES", .archs = CHIPS_NVIDIA, .offloads = true },
	{ .name = "windows-vulkan", .title = "Windows, Vulkan", .api = API_VULKAN,
	  .targets = {"windows-x64-vulkan", "windows-arm64-vulkan"},
	  .harness = "vulkan-verify", .backend = "vulkan", .kv_device = "Vulkan[0-9]*",
	  .op_backend = "Vulkan[0-9]*", .library = "ggml-vulkan",
	  .pin = "GGML_VK_VISIBLE_DEVICES", .gates = GPU_GATES,
	  .runner = "windows_runner.ps1",
	  .build_switch = "WINDOWS_BUILD_FORK", .skip_switch = "WINDOWS_SKIP_GRAPH_SMOKE",
	  .target_variable = "", .cmake_flags = SHARED "-DGGML_VULKAN=ON", .arch_flag = "",
	  .archs = "", .offloads = true },
	{ .name = "windows-cpu", .title = "Windows, CPU", .api = API_CPU,
	  .targets = {"windows-x64-cpu", "windows-arm64-cpu"},
	  .harness = "cpu-verify", .backend = "cpu", .kv_device = "CPU", .op_backend = "CPU",
	  .library = "", .pin = "", .gates = CPU_GATES, .runner = "windows_runner.ps1",
	  .build_switch = "WINDOWS_BUILD_FORK", .skip_switch = "WINDOWS_SKIP_GRAPH_SMOKE",
	  .target_variable = "", .cmake_flags = "", .arch_flag = "", .archs = "" },
	{ .name = "metal", .title = "Apple, Metal", .api = API_METAL, .place = PLACE_NEVER,
	  .targets = {"darwin-arm64-metal"},
	  .harness = "metal-verify", .backend = "metal", .kv_device = "MTL[0-9]*",
	  .op_backend = "MTL[0-9]*", .library = "", .pin = "", .gates = H | R,
	  .never = REASON_METAL_HOST_NOT_BUILT, .runner = "metal_runner",
	  .build_switch = "", .skip_switch = "", .target_variable = "", .cmake_flags = "",
	  .arch_flag = "", .archs = "", .offloads = true },
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

int
lane_get(const char *name, const struct lane **out, struct err *e)
{
	struct buf list;
	size_t i;

	if ((*out = lane_find(name)) != NULL)
		return 0;
	if (strcmp(name, "windows-arm64-cuda") == 0) {
		err_set(e, ERR_PARSE, "cuda_not_declared_for_target: there is no CUDA for Windows on Arm");
		return err_hint(e, "windows-vulkan and windows-cpu are the lanes of that host");
	}
	buf_init(&list, 512);
	for (i = 0; i < lane_count; i++)
		if (buf_addf(&list, NULL, "%s%s", i ? ", " : "", lanes[i].name))
			break;
	err_set(e, ERR_PARSE, "unknown lane \"%.64s\"", name);
	err_hint(e, "the lanes of this version: %s", list.data ? list.data : "");
	buf_fini(&list);
	return -1;
}

void
lane_device(const struct lane *l, char *out, size_t size)
{
	size_t n = strcspn(l->op_backend, "[");

	snprintf(out, size, "%.*s%s", (int)n, l->op_backend, l->op_backend[n] != '\0' ? "0" : "");
}

const struct target *
lane_target(const struct lane *l, const char *os, const char *arch)
{
	const struct target *t;
	int i;

	for (i = 0; l->targets[i] != NULL; i++) {
		t = target_find(l->targets[i]);
		if (l->place == PLACE_ADB ? strcmp(os, "Linux") == 0
				: strcmp(t->os, os) == 0 && strcmp(t->arch, arch) == 0)
			return t;
	}
	return NULL;
}
