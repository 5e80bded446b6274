#include "agent/engine_env.h"

#include <stdio.h>
#include <string.h>

#include "common/proc.h"
#include "common/str.h"

#define NAMES_MAX 8000 /* bytes of a fact */

extern char **environ;

/* LLAMA_ARG_* are arguments, GGML_* switch kernels off, LD_* put other code in. */
static const char *const removed[] = {
	"LLAMA_*", "GGML_*", "MTMD_*", "LD_*", "GLIBC_TUNABLES", "HF_*", "MODEL_ENDPOINT",
};

static const char *const kept[] = {
	"CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "AMD_", "VK_", "MESA_", "OMP_", "GOMP_",
	"KMP_", "OPENBLAS_", "MKL_", "MALLOC_",
};

void
engine_env_make(struct engine_env *out, const char *library_dir)
{
	size_t i, n = 0;

	for (i = 0; i < str_count(removed); i++)
		out->v[n++] = removed[i];
	out->v[n++] = "GGML_SCHED_DEBUG=2";
	if (library_dir != NULL && str_fmt(out->library, sizeof out->library, NULL,
			"LD_LIBRARY_PATH=%s", library_dir) == 0)
		out->v[n++] = out->library;
	out->v[n] = NULL;
}

void
engine_env_pin(struct engine_env *env, const struct lane *lane,
	const struct device_facts *device)
{
	/* they count among what the pin shows, and would hide it */
	static const char *const second[] = {"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
		"CUDA_VISIBLE_DEVICES"};
	size_t n = 0, i;

	while (env->v[n] != NULL)
		n++;
	if (lane->pin[0] == '\0' || device->uuid[0] == '\0')
		return;
	for (i = 0; lane->api == API_HIP && i < str_count(second); i++)
		env->v[n++] = second[i];
	if (lane->api == API_VULKAN || strchr(device->uuid, ':') != NULL)
		snprintf(env->pin, sizeof env->pin, "%s=%d", lane->pin, device->ordinal);
	else
		snprintf(env->pin, sizeof env->pin, "%s=%.64s", lane->pin, device->uuid);
	env->v[n] = env->pin;
	env->v[n + 1] = NULL;
}

void
engine_env_preload(struct engine_env *env, const char *path)
{
	char before[sizeof env->preload] = "";
	size_t n = 0;

	while (env->v[n] != NULL && env->v[n] != env->preload)
		n++;
	if (env->v[n] != NULL)
		snprintf(before, sizeof before, ":%s", env->preload + sizeof "LD_PRELOAD=" - 1);
	if (str_fmt(env->preload, sizeof env->preload, NULL, "LD_PRELOAD=%s%s", path, before) == 0) {
		env->v[n + 1] = env->v[n] == NULL ? NULL : env->v[n + 1];
		env->v[n] = env->preload;
	}
}

struct names {
	struct buf text;
	bool values;
};

/* Values of what was removed may be secrets. */
static void
name_add(void *arg, const char *entry)
{
	struct names *n = arg;
	size_t len = n->values ? strlen(entry) : strcspn(entry, "=");

	if (n->text.len + len + 1 > n->text.max)
		return;
	if (buf_addf(&n->text, NULL, "%s%.*s", n->text.len ? " " : "", (int)len, entry))
		return;
}

static int
names_say(struct transcript *t, const char *key, struct names *n, struct err *e)
{
	char shown[NAMES_MAX + 1];
	int rc = 0;

	if (n->text.len > 0) {
		str_show(shown, sizeof shown, n->text.data, n->text.len);
		rc = transcript_fact(t, key, shown, e);
	}
	buf_fini(&n->text);
	return rc;
}

int
env_removed_note(struct transcript *t, const char *const *env, struct err *e)
{
	struct names n = {.values = false};

	buf_init(&n.text, NAMES_MAX);
	proc_env_changes(env, name_add, &n);
	return names_say(t, "env_removed", &n, e);
}

int
engine_env_note(struct transcript *t, const struct engine_env *env, struct err *e)
{
	struct names n = {.values = true};
	char **entry;
	size_t i;

	if (env_removed_note(t, env->v, e))
		return -1;
	buf_init(&n.text, NAMES_MAX);
	for (entry = environ; *entry != NULL; entry++)
		for (i = 0; i < str_count(kept); i++)
			if (str_starts(*entry, kept[i])) {
				name_add(&n, *entry);
				break;
			}
	return names_say(t, "env_kept", &n, e);
}
