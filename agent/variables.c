#include "agent/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/str.h"

#define NEW "ELIZA_MTP_"
#define OLD "ELIZA_DFLASH_"
#define NAME_BYTES 96

/* Variables of the shell runners that nothing here reads, and why. */
static const struct {
	const char *name, *why;
} unread[] = {
	{"ELIZA_MTP_GRAPH_REPORT_DIR", "all logs go to one folder: --log-dir"},
	{"ELIZA_MTP_LIBGGML_CUDA", "the kernels' harness links nothing of the engine"},
	{"ELIZA_MTP_SMOKE_GEN_CHECK", "every smoke generates text"},
	{"ELIZA_MTP_ALLOW_UNVERIFIED_VULKAN_BUILD", "a build needs no evidence of an earlier one"},
	{"ELIZA_MTP_ALLOW_INCOMPLETE_KERNELS_FOR_SMOKE", "the suite says which kernels are required"},
	{"ELIZA_MTP_ALLOW_REDUCED_KERNELS", "the suite says which kernels are required"},
	{"ELIZA_MTP_SKIP_REBUILD_WITH_EVIDENCE", "nothing is built a second time"},
	{"ELIZA_MTP_JOBS", "a build takes the processors and the memory that there are"},
	{"ELIZA_MTP_LLAMA_CPP_REMOTE", "the source is named with --source"},
	{"ELIZA_MTP_LLAMA_CPP_REF", "the commit is named with --source-ref"},
	{"ELIZA_ALLOW_MOLTENVK_VULKAN_DISPATCH_SMOKE", "MoltenVK never counts as Vulkan"},
	{"ELIZA_DISPATCH_SMOKE_ALLOW_TURBO4_LAYOUT_BLOCK", "no route that fails is let pass"},
	{"ELIZA_ANDROID_VULKAN_GRAPH_EVIDENCE_OUT", "graph evidence is judged here, not made"},
	{"ELIZA_ANDROID_VULKAN_GRAPH_REMOTE_DIR", "graph evidence is judged here, not made"},
	{"ELIZA_ANDROID_VULKAN_GRAPH_BUILD_DIR", "graph evidence is judged here, not made"},
	{"CUDA_REMOTE_DIR", "verify-controller asks other hosts, by their agents"},
	{"CUDA_REMOTE_REPORT", "verify-controller asks other hosts, by their agents"},
};

/* True when the environment has the variable under that name or its older one: *used. */
static bool
is_set(const char *name, const char **used)
{
	return plat_env(name, used) != NULL;
}

static bool
is_unread(const char *name)
{
	size_t i;

	for (i = 0; i < str_count(unread); i++)
		if (strcmp(unread[i].name, name) == 0)
			return true;
	return false;
}

/* "ELIZA_DFLASH_X=..." of the environment, as ELIZA_MTP_X; false for anything else. */
static bool
newer_name(const char *entry, char out[NAME_BYTES])
{
	size_t n = strcspn(entry, "=");

	return str_starts(entry, OLD) && entry[n] == '=' && entry[n + 1] != '\0' &&
		str_fmt(out, NAME_BYTES, NULL, NEW "%.*s", (int)(n - (sizeof OLD - 1)),
			entry + sizeof OLD - 1) == 0;
}

void
variables_each(void (*say)(void *arg, const char *text), void *arg)
{
	char text[400], name[NAME_BYTES];
	const char *used;
	size_t i;

	for (i = 0; i < str_count(unread); i++)
		if (is_set(unread[i].name, &used)) {
			snprintf(text, sizeof text, "%s is not read: %s", used, unread[i].why);
			say(arg, text);
		}
	for (i = 0; environ[i] != NULL; i++) {
		if (!newer_name(environ[i], name) || is_unread(name))
			continue;
		if (is_set(name, &used) && strcmp(used, name) == 0)
			snprintf(text, sizeof text, OLD "%s is not read: %s is set, too", name + sizeof NEW - 1, name);
		else
			snprintf(text, sizeof text, OLD "%s is read; its newer name is %s",
				name + sizeof NEW - 1, name);
		say(arg, text);
	}
}
