#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/build_impl.h"
#include "agent/toolchain.h"
#include "common/chip.h"
#include "common/plat.h"

/* One program file to install, nothing that needs a network, nothing that is not asked. */
static const char *const base_flags[] = {
	"-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF",
	"-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON", "-DGGML_NATIVE=ON", "-DGGML_CCACHE=OFF",
	"-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF",
	"-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_WEBUI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF",
	"-DLLAMA_OPENSSL=OFF", "-DLLAMA_CURL=OFF",
};

/* Parts of the tree that are only configured when a program of theirs is asked for. */
static const struct part {
	const char *flag;
	const char *programs[4];
} parts[] = {
	{"-DLLAMA_BUILD_SERVER", {"llama-cli", "llama-server"}},
	{"-DLLAMA_BUILD_TESTS", {"test-backend-ops", "test-quantize-fns"}},
};

int
build_why(const struct err *e, enum reason other, enum reason *why)
{
	*why = e->code == ERR_CANCELLED ? REASON_CANCELLED
		: e->code == ERR_TIMEOUT ? REASON_TIMEOUT
		: e->code == ERR_NOSPACE ? REASON_DISK_FULL
		: e->code == ERR_NOMEM ? REASON_INTERNAL
				       : other;
	return -1;
}

bool
build_is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < CAPABILITIES_NAME && name[0] != '-' && name[0] != '.' &&
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			"0123456789._+-") == n;
}

/* ---- flags ---- */

/* Quotes and dashes as word processors write them: U+2010 to U+2015, U+2018 to U+201F,
 * U+2039, U+203A, guillemets. */
static bool
has_typographic(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	for (; *p; p++) {
		if (p[0] == 0xc2 && (p[1] == 0xab || p[1] == 0xbb))
			return true;
		if (p[0] == 0xe2 && p[1] == 0x80 &&
		    ((p[2] >= 0x90 && p[2] <= 0x95) || (p[2] >= 0x98 && p[2] <= 0x9f) ||
			    p[2] == 0xb9 || p[2] == 0xba))
			return true;
	}
	return false;
}

static int
word_check(const char *word, struct err *e)
{
	const char *p;

	if (has_typographic(word)) {
		err_set(e, ERR_USAGE, "cmake flag %s has typographic quotes or dashes", word);
		return err_hint(e, "type plain ASCII: -DNAME=VALUE without quotes");
	}
	for (p = word; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127 || *p == '"' || *p == '\'' ||
		    *p == '`' || *p == '\\')
			return err_set(e, ERR_USAGE,
				"cmake flag %s has a quote or control character", word);
	/* -P, -E, -S or -B would make it another command. */
	if (word[0] != '-' || strchr("DUW", word[1]) == NULL || word[1] == '\0' ||
	    word[2] == '\0')
		return err_set(e, ERR_USAGE, "cmake flag %s is not -DNAME=VALUE", word);
	return 0;
}

/* Lists of chips must be of chips: a misspelt one costs a build. */
static int
chips_check(const char *word, struct err *e)
{
	static const char *const flags[] = {"CMAKE_CUDA_ARCHITECTURES", "CMAKE_HIP_ARCHITECTURES",
		"AMDGPU_TARGETS", "GPU_TARGETS"};
	char bad[96];
	const char *eq = strchr(word, '=');
	size_t i, n;

	for (i = 0; i < str_count(flags) && eq != NULL; i++) {
		n = strlen(flags[i]);
		if (!str_starts(word, "-D") || strncmp(word + 2, flags[i], n) != 0 ||
		    (word[2 + n] != '=' && word[2 + n] != ':'))
			continue;
		if (!chip_list_known(eq + 1, bad, sizeof bad)) {
			err_set(e, ERR_USAGE, "cmake flag %s: no chip is named \"%s\"", flags[i], bad);
			return err_hint(e, "90a, 86 or gfx942, with semicolons between them");
		}
	}
	return 0;
}

int
build_flags_check(const char *extra, struct err *e)
{
	char text[BUILD_FLAGS_TEXT], *v[BUILD_MAX_FLAGS];
	int i, n;

	if (extra == NULL)
		return 0;
	if (!str_is_utf8(extra, strlen(extra)))
		return err_set(e, ERR_USAGE, "the cmake flags are not UTF-8");
	if (str_copy(text, sizeof text, extra, e))
		return err_wrap(e, "cmake flags");
	if ((n = str_split(text, false, v, BUILD_MAX_FLAGS)) < 0)
		return err_set(e, ERR_LIMIT, "more than %d cmake flags", BUILD_MAX_FLAGS);
	for (i = 0; i < n; i++)
		if (word_check(v[i], e) || chips_check(v[i], e))
			return -1;
	return 0;
}

static bool
is_wanted(const struct build_ask *ask, const struct part *p)
{
	size_t i;
	int k;

	for (i = 0; i < str_count(p->programs) && p->programs[i] != NULL; i++)
		for (k = 0; k < ask->program_count; k++)
			if (strcmp(p->programs[i], ask->programs[k]) == 0)
				return true;
	return false;
}

/* Code for the chip at hand: for others a run would be no proof.  cmake wants its list with
 * semicolons, which are no blanks. */
static int
chips_add(const struct build_ask *ask, struct buf *b, struct err *e)
{
	char flag[32];

	if (ask->lane->arch_flag[0] == '\0')
		return 0;
	if (ask->lane->pinned || ask->chip == NULL || !chip_flag(ask->chip, flag, sizeof flag))
		return buf_addf(b, e, "-D%s=%s ", ask->lane->arch_flag, ask->lane->archs);
	return buf_addf(b, e, "-D%s=%s ", ask->lane->arch_flag, flag);
}

static int
words_text(const struct build_ask *ask, struct buf *b, struct err *e)
{
	size_t i;

	for (i = 0; i < str_count(base_flags); i++)
		if (buf_addf(b, e, "%s ", base_flags[i]))
			return -1;
	for (i = 0; i < str_count(parts); i++)
		if (buf_addf(b, e, "%s=%s ", parts[i].flag,
			    is_wanted(ask, &parts[i]) ? "ON" : "OFF"))
			return -1;
	return buf_addf(b, e, "%s ", ask->lane->cmake_flags) || chips_add(ask, b, e) ||
		buf_addf(b, e, "%s", ask->extra_flags != NULL ? ask->extra_flags : "") ? -1 : 0;
}

int
build_words_make(const struct build_ask *ask, struct build_words *w, enum reason *why,
	struct err *e)
{
	struct buf b;
	int rc = -1;

	*why = REASON_BAD_FLAGS;
	buf_init(&b, sizeof w->text - 1);
	if (build_flags_check(ask->extra_flags, e) || words_text(ask, &b, e))
		goto out;
	memcpy(w->text, b.data, b.len + 1);
	w->count = str_split(w->text, false, (char **)w->v, BUILD_MAX_FLAGS);
	if (w->count < 0) {
		err_set(e, ERR_LIMIT, "more than %d cmake flags", BUILD_MAX_FLAGS);
		goto out;
	}
	w->v[w->count] = NULL;
	rc = 0;
out:
	buf_fini(&b);
	return rc;
}

/* Value of the last -DNAME=VALUE or -DNAME:TYPE=VALUE, or NULL. */
static const char *
word_value(const struct build_words *w, const char *name)
{
	size_t n = strlen(name);
	const char *p;
	int i;

	for (i = w->count - 1; i >= 0; i--) {
		p = w->v[i];
		if (!str_starts(p, "-D") || strncmp(p + 2, name, n) != 0)
			continue;
		p += 2 + n;
		if (*p == ':')
			p += strcspn(p, "=");
		if (*p == '=')
			return p + 1;
	}
	return NULL;
}

/* ---- tools ---- */

static int
tool_seek(const char *name, char path[BUILD_PATH], struct err *e)
{
	if (strchr(name, '/') == NULL)
		return plat_find_tool(name, path, BUILD_PATH, e);
	if (name[0] != '/' || access(name, X_OK) != 0 || !plat_is_file(name))
		return err_set(e, ERR_NOTFOUND, "%s is not a program", name);
	return str_copy(path, BUILD_PATH, name, e);
}

struct first_line {
	char text[160];
	size_t len;
	bool full;
	const struct build_ask *ask;
};

static int
first_line_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct first_line *f = arg;
	size_t i;

	for (i = 0; i < n && !f->full && stream == 1; i++) {
		if (p[i] == '\n')
			f->full = true;
		else if (f->len < sizeof f->text - 1)
			f->text[f->len++] = p[i] ? p[i] : '?';
	}
	return 0;
}

static int
first_line_tick(void *arg)
{
	const struct first_line *f = arg;

	return f->ask->tick != NULL ? f->ask->tick(f->ask->arg) : 0;
}

/* Runs `TOOL --version`: a tool that can not even do that is broken. */
static int
tool_version(const struct build_ask *ask, struct transcript *log, const char *path,
	char *out, size_t size, enum reason *why, struct err *e)
{
	const char *argv[] = {path, "--version", NULL};
	struct first_line f = {.ask = ask};
	struct proc_spec spec = {.argv = argv, .timeout_ms = 30000,
		.chunk = first_line_chunk, .tick = first_line_tick, .arg = &f};
	struct proc_result r;
	char did[64];

	if (transcript_run(log, &spec, NULL, &r, e))
		return build_why(e, REASON_TOOL_BROKEN, why);
	if (r.cancelled) {
		*why = REASON_CANCELLED;
		return err_set(e, ERR_CANCELLED, "cancelled");
	}
	if (r.exit != 0 || f.len == 0) {
		proc_describe(&r, did, sizeof did);
		*why = REASON_TOOL_BROKEN;
		return err_set(e, ERR_BLOCKED, "%s --version: %s", path, did);
	}
	str_show(out, size, f.text, f.len);
	return 0;
}

static int
tool_missing(const char *what, enum reason *why, struct err *e)
{
	*why = REASON_TOOL_MISSING;
	err_wrap(e, "no %s", what);
	e->code = ERR_BLOCKED;
	return err_hint(e, "on Debian: apt-get install build-essential cmake ninja-build");
}

/* The flag decides, then the variable that cmake knows, then the usual names. */
static int
compiler_find(const struct build_ask *ask, struct transcript *log, const char *given,
	const char *variable, const char *const *names, const char *what,
	struct build_tool *t, enum reason *why, struct err *e)
{
	const char *env = getenv(variable);
	struct err first = {ERR_NONE, "", ""};
	int rc = -1;

	if (given == NULL && env != NULL && env[0] != '\0' && strchr(env, ' ') == NULL)
		given = env;
	if (given != NULL)
		rc = tool_seek(given, t->path, &first);
	for (; given == NULL && rc != 0 && *names != NULL; names++)
		if ((rc = tool_seek(*names, t->path, e)) != 0 && first.code == ERR_NONE)
			first = *e;
	if (rc != 0) {
		*e = first;
		return tool_missing(what, why, e);
	}
	if (tool_version(ask, log, t->path, t->version, sizeof t->version, why, e))
		return -1;
	if (digest_file(t->path, t->sha256, NULL, e))
		return build_why(e, REASON_TOOL_BROKEN, why);
	return 0;
}

const struct device_tool *
build_device_tool(enum api api)
{
	static const struct device_tool rows[] = {
		{API_CUDA, "nvcc", "CMAKE_CUDA_COMPILER"}, {API_VULKAN, "glslc", "Vulkan_GLSLC_EXECUTABLE"},
	};
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		if (rows[i].api == api)
			return &rows[i];
	return NULL;
}

/* Nothing when the lane has no such compiler. */
static int
device_find(const struct build_ask *ask, struct transcript *log, const struct build_words *w,
	struct build_tool *t, enum reason *why, struct err *e)
{
	const struct device_tool *row = build_device_tool(ask->lane->api);
	const char *given;

	if (row == NULL)
		return 0;
	given = word_value(w, row->flag);
	if (given != NULL ? tool_seek(given, t->path, e)
			: toolchain_find(row->name, t->path, sizeof t->path, e))
		return tool_missing(row->name, why, e);
	if (tool_version(ask, log, t->path, t->version, sizeof t->version, why, e))
		return -1;
	return digest_file(t->path, t->sha256, NULL, e) ? build_why(e, REASON_TOOL_BROKEN, why) : 0;
}

int
build_tools_find(const struct build_ask *ask, struct transcript *log,
	const struct build_words *w, struct build_info *b, char cmake[BUILD_PATH],
	char ninja[BUILD_PATH], char ccache[BUILD_PATH], enum reason *why, struct err *e)
{
	static const char *const cc[] = {"cc", "gcc", "clang", NULL};
	static const char *const cxx[] = {"c++", "g++", "clang++", NULL};
	struct err none;

	if (tool_seek("cmake", cmake, e))
		return tool_missing("cmake", why, e);
	if (tool_seek("ninja", ninja, e))
		return tool_missing("ninja", why, e);
	if (compiler_find(ask, log, word_value(w, "CMAKE_C_COMPILER"), "CC", cc,
		    "C compiler", &b->cc, why, e) ||
	    compiler_find(ask, log, word_value(w, "CMAKE_CXX_COMPILER"), "CXX", cxx,
		    "C++ compiler", &b->cxx, why, e) ||
	    tool_version(ask, log, cmake, b->cmake, sizeof b->cmake, why, e) ||
	    tool_version(ask, log, ninja, b->ninja, sizeof b->ninja, why, e) ||
	    device_find(ask, log, w, &b->device, why, e))
		return -1;
	b->ccache = tool_seek("ccache", ccache, &none) == 0;
	if (!b->ccache)
		ccache[0] = '\0';
	return 0;
}

uint32_t
build_jobs(const struct build_ask *ask)
{
	unsigned long long kib = 0, by_memory;
	uint32_t cpus = 1;
	char line[128];
	cpu_set_t set;
	FILE *f;

	if (ask->jobs > 0)
		return ask->jobs;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		cpus = (uint32_t)CPU_COUNT(&set);
	else if (sysconf(_SC_NPROCESSORS_ONLN) > 0)
		cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if ((f = fopen("/proc/meminfo", "re")) != NULL) {
		while (fgets(line, sizeof line, f) != NULL)
			if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
				break;
		fclose(f);
	}
	by_memory = kib * 1024 / BUILD_JOB_BYTES;
	if (kib > 0 && by_memory < cpus)
		cpus = (uint32_t)by_memory;
	return cpus > 0 ? cpus : 1;
}

/* ---- the key ---- */

/* A cache on a shared disk must not give one machine's native code to another. */
static int
cpu_add(struct buf *b, struct err *e)
{
	static const char *const names[] = {"model name", "flags", "Features",
		"CPU implementer", "CPU part"};
	bool seen[str_count(names)] = {false};
	char *line = NULL, *colon;
	size_t cap = 0, i;
	FILE *f = fopen("/proc/cpuinfo", "re");
	int rc = 0;

	while (f != NULL && rc == 0 && getline(&line, &cap, f) > 0) {
		if ((colon = strchr(line, ':')) == NULL)
			continue;
		for (i = 0; i < str_count(names); i++)
			if (!seen[i] && str_starts(line, names[i])) {
				seen[i] = true;
				rc = buf_addf(b, e, "cpu %s%s", names[i], colon);
			}
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return rc;
}

static int
key_text(const struct build_ask *ask, const struct build_words *w,
	const struct build_info *b, struct buf *t, struct err *e)
{
	int i;

	if (buf_addf(t, e, "verify-build 1\ntree %s\ndirty %s\ntarget %s\n",
		    ask->source->tree, ask->source->dirty_digest, ask->target->name) ||
	    buf_addf(t, e, "cc %s\n%s\n%s\ncxx %s\n%s\n%s\n", b->cc.path, b->cc.version,
		    b->cc.sha256, b->cxx.path, b->cxx.version, b->cxx.sha256))
		return -1;
	if (b->device.path[0] != '\0' && buf_addf(t, e, "device %s\n%s\n%s\n", b->device.path,
			b->device.version, b->device.sha256))
		return -1;
	for (i = 0; i < w->count; i++)
		if (buf_addf(t, e, "flag %s\n", w->v[i]))
			return -1;
	for (i = 0; i < ask->program_count; i++)
		if (buf_addf(t, e, "program %s\n", ask->programs[i]))
			return -1;
	return cpu_add(t, e);
}

int
build_key_make(const struct build_ask *ask, const struct build_words *w,
	struct transcript *log, struct build_info *b, struct err *e)
{
	struct buf t;
	int rc = -1;

	buf_init(&t, 256 * 1024);
	if (key_text(ask, w, b, &t, e))
		goto out;
	digest_bytes(t.data, t.len, b->key);
	/* What the key is made of stands in the log, so that a miss can be explained. */
	rc = transcript_bytes(log, "build-key", t.data, t.len, e);
out:
	buf_fini(&t);
	return rc;
}
