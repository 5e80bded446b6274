#include "agent/toolchain.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gate.h"
#include "common/chip.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"

/* ---- nvcc ---- */

/* Its release, "" when it does not run. */
static void
nvcc_version(const char *path, char *out, size_t size)
{
	const char *argv[] = {path, "--version", NULL};
	struct tool_answer *a = malloc(sizeof *a);
	struct proc_result r;
	char *text = NULL;

	out[0] = '\0';
	if (a != NULL && proc_capture(argv, NULL, 20000, 65536, &text, NULL, &r, NULL) == 0) {
		tool_parse(TOOL_NVCC, text, strlen(text), r.exit, a);
		if (a->reason == REASON_NONE)
			snprintf(out, size, "%s", a->version);
	}
	free(text);
	free(a);
}

static void
nvcc_take(const char *path, char *best, size_t size, char version[48])
{
	char v[48];

	if (!plat_is_file(path))
		return;
	nvcc_version(path, v, sizeof v);
	if (v[0] == '\0' || (version[0] != '\0' && chip_version_compare(v, version) <= 0))
		return;
	if (str_copy(best, size, path, NULL) == 0)
		snprintf(version, 48, "%s", v);
}

static void
nvcc_newest(char *best, size_t size, char version[48])
{
	static const char *const patterns[] = {"/usr/local/cuda*/bin/nvcc", "/opt/cuda*/bin/nvcc"};
	const char *home = getenv("CUDA_HOME");
	char path[4096];
	glob_t g;
	size_t i, k;

	version[0] = best[0] = '\0';
	if (home != NULL && str_fmt(path, sizeof path, NULL, "%s/bin/nvcc", home) == 0)
		nvcc_take(path, best, size, version);
	if (best[0] != '\0')
		return; /* who names a toolkit wants that one */
	if (plat_find_tool("nvcc", path, sizeof path, NULL) == 0)
		nvcc_take(path, best, size, version);
	for (i = 0; i < str_count(patterns); i++) {
		if (glob(patterns[i], 0, NULL, &g) != 0)
			continue;
		for (k = 0; k < g.gl_pathc && k < 16; k++)
			nvcc_take(g.gl_pathv[k], best, size, version);
		globfree(&g);
	}
}

int
toolchain_find(const char *name, char *out, size_t size, struct err *e)
{
	char version[48];

	if (strcmp(name, "nvcc") == 0) {
		nvcc_newest(out, size, version);
		if (out[0] != '\0')
			return 0;
	}
	return plat_find_tool(name, out, size, e);
}

/* ---- Vulkan's headers ---- */

static int
headers_find(char *out, size_t size)
{
	const char *sdk = getenv("VULKAN_SDK");
	static const char *const below[] = {"/usr/include", "/usr/local/include"};
	size_t i;

	if (sdk != NULL && str_fmt(out, size, NULL, "%s/include/vulkan/vulkan_core.h", sdk) == 0 &&
	    plat_is_file(out))
		return 0;
	for (i = 0; i < str_count(below); i++)
		if (str_fmt(out, size, NULL, "%s/vulkan/vulkan_core.h", below[i]) == 0 && plat_is_file(out))
			return 0;
	return -1;
}

/* Names of the header that engines use without asking whether they are there. */
static const char *const header_words[] = {
	"VkScopeKHR", "VkLayerSettingsCreateInfoEXT", "VkPhysicalDeviceCooperativeMatrixFeaturesKHR",
	"VkPipelineCreateFlagBits2",
};

static void
headers_note(struct transcript *t)
{
	char path[4096], line[96] = "", *text = NULL, *at;
	size_t len, i;

	if (headers_find(path, sizeof path) || plat_read_file(path, 16u << 20, &text, &len, NULL)) {
		gate_factf(t, "vulkanHeaders", "none");
		return;
	}
	if ((at = strstr(text, "#define VK_HEADER_VERSION ")) != NULL)
		snprintf(line, sizeof line, "%.*s", (int)strspn(at + 26, "0123456789"), at + 26);
	at = strstr(text, "VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, ");
	gate_factf(t, "vulkanHeaders", "%c.%c.%s of %s", at ? at[50] : '?', at ? at[53] : '?', line, path);
	for (i = 0; i < str_count(header_words); i++)
		if (strstr(text, header_words[i]) == NULL)
			gate_factf(t, "vulkanLacks", "%s", header_words[i]);
	free(text);
}

/* ---- the lane's tools ---- */

static const struct lane_tool {
	enum api api;
	const char *name, *option;
} lane_tools[] = {
	{API_CUDA, "nvcc", "--version"},
	{API_HIP, "hipcc", "--version"},
	{API_HIP, "rocminfo", NULL},
	{API_VULKAN, "glslc", "--version"},
};

void
toolchain_log(struct work *w, struct transcript *t, char *list, size_t size, struct err *e)
{
	char path[4096];
	const struct lane_tool *row;
	size_t i, used = strlen(list);

	gate_factf(t, "chip", "%s", w->device.level);
	gate_factf(t, "prebuilt", "%s", w->prebuilt ? "true" : "false");
	for (i = 0; i < str_count(lane_tools) && !w->prebuilt; i++) {
		row = &lane_tools[i];
		if (row->api != w->lane->api || w->lane->place != PLACE_HERE)
			continue;
		if (toolchain_find(row->name, path, sizeof path, e) == 0 &&
		    (row->option == NULL || gate_probe_tool(w, t, path, row->option, e) == 0))
			continue;
		if (e->code == ERR_NOTFOUND && used < size)
			used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "", row->name);
	}
	if (w->lane->api == API_VULKAN && !w->prebuilt)
		headers_note(t);
}
