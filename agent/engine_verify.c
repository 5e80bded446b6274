#include "agent/engine_verify.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gate.h"
#include "common/digest.h"
#include "common/plat.h"
#include "common/str.h"
#include "kernels/engine_sources.h"

#define COMPILE_MS 300000
#define RUN_MS 600000       /* a driver may compile PTX for every kernel first */
#define LIBRARY_MAX (512u << 20)

/* The files of one compilation. */
struct make {
	const struct engine_verify *ask;
	char folder[GATE_PATH], program[GATE_PATH], headers[GATE_PATH];
	char base[GATE_PATH], ggml[GATE_PATH]; /* the engine's two libraries */
};

/* "libggml-base.so", "libggml-base.so.0", "libggml.v0.4.0.so": of the name before a dot. */
static bool
is_library(const char *file, const char *name)
{
	size_t n = strlen(name);

	return strncmp(file, name, n) == 0 && file[n] == '.' &&
		(str_ends(file, ".so") || strstr(file + n, ".so.") != NULL);
}

/* The one with the shortest name, which is the link to the others where there are some. */
static bool
library_find(const char *dir, const char *name, char *out, size_t size)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	char best[256] = "";

	while (d != NULL && (entry = readdir(d)) != NULL)
		if (is_library(entry->d_name, name) && (best[0] == '\0' || strlen(entry->d_name) < strlen(best) ||
			    (strlen(entry->d_name) == strlen(best) && strcmp(entry->d_name, best) < 0)))
			snprintf(best, sizeof best, "%s", entry->d_name);
	if (d != NULL)
		closedir(d);
	return best[0] != '\0' && str_fmt(out, size, NULL, "%s/%s", dir, best) == 0;
}

static int refuse(enum reason *why, enum reason r, struct err *e, const char *hint,
	const char *fmt, ...) PRINTF(5, 6);

static int
refuse(enum reason *why, enum reason r, struct err *e, const char *hint, const char *fmt, ...)
{
	char msg[sizeof e->msg];
	va_list ap;

	*why = r;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	err_set(e, ERR_BLOCKED, "%s", msg);
	return err_hint(e, "%s", hint);
}

/* Without headers one thing can still be told: an engine whose library has none of the names
 * has none of the ops. */
static int
headers_missing(const struct make *m, enum reason *why, struct err *e)
{
	static const char *const names[] = {"ggml_attn_score_qjl", "ggml_attn_score_tbq", "ggml_attn_score_polar"};
	char *bytes = NULL;
	size_t n, i;
	bool there = false;

	if (plat_read_file(m->base, LIBRARY_MAX, &bytes, &n, e)) {
		*why = gate_reason_of(e);
		return -1;
	}
	for (i = 0; i < str_count(names); i++)
		there |= memmem(bytes, n, names[i], strlen(names[i])) != NULL;
	free(bytes);
	if (!there)
		return refuse(why, REASON_OP_NOT_IN_ENGINE, e, "", "%s has no ggml_attn_score function", m->base);
	return refuse(why, REASON_TOOL_MISSING, e, "name the engine's source with --source or ELIZA_MTP_LLAMA_DIR",
		"the headers of the engine in %s are not known", m->ask->engine_dir);
}

static int
engine_find(struct make *m, enum reason *why, struct err *e)
{
	const char *dir = m->ask->engine_dir;
	char header[GATE_PATH];

	*why = REASON_INTERNAL;
	if (!library_find(dir, "libggml-base", m->base, sizeof m->base) ||
	    !library_find(dir, "libggml", m->ggml, sizeof m->ggml))
		return refuse(why, REASON_BACKEND_NOT_PRESENT, e, "build the engine with -DBUILD_SHARED_LIBS=ON",
			"the shared libraries libggml and libggml-base are not in %s", dir);
	if (m->ask->source == NULL)
		return headers_missing(m, why, e);
	if (str_fmt(m->headers, sizeof m->headers, e, "-I%s/ggml/include", m->ask->source) ||
	    str_fmt(header, sizeof header, e, "%s/ggml-backend.h", m->headers + 2))
		return -1;
	return plat_is_file(header) ? 0 : headers_missing(m, why, e);
}

static int
sources_write(const struct make *m, struct transcript *t, struct err *e)
{
	const struct engine_source *s;
	char path[GATE_PATH], hex[DIGEST_HEX];

	for (s = engine_sources; s->name != NULL; s++) {
		digest_bytes(s->start, (size_t)(s->end - s->start), hex);
		gate_factf(t, "compiled", "%s %s", hex, s->name);
		if (str_fmt(path, sizeof path, e, "%s/%.*s", m->folder,
			    (int)(strrchr(s->name, '/') - s->name), s->name) ||
		    plat_mkdirs(path, 0700, e) || str_fmt(path, sizeof path, e, "%s/%s", m->folder, s->name) ||
		    plat_write_file(path, s->start, (size_t)(s->end - s->start), 0600, e))
			return -1;
	}
	return 0;
}

/* What was linked, as bytes: the build's own digests are in its log. */
static void
library_fact(struct transcript *t, const char *path)
{
	char hex[DIGEST_HEX];

	gate_factf(t, "linked", "%s %s", digest_file(path, hex, NULL, NULL) ? "unread" : hex, path);
}

static int
compiler_find(const struct engine_verify *ask, char *out, size_t size, enum reason *why, struct err *e)
{
	static const char *const names[] = {"cc", "gcc", "clang"};
	size_t i;

	if (ask->compiler != NULL && ask->compiler[0] != '\0')
		return str_copy(out, size, ask->compiler, e);
	for (i = 0; i < str_count(names); i++)
		if (plat_find_tool(names[i], out, size, e) == 0)
			return 0;
	return refuse(why, REASON_TOOL_MISSING, e, "install a C compiler", 
		"there is no C compiler, and engine-verify is compiled against the engine on this host");
}

static int
compile(const struct make *m, struct transcript *t, enum reason *why, struct err *e)
{
	char cc[GATE_PATH], rpath[GATE_PATH + 16];
	/* the libraries' own needs are found where they run */
	const char *argv[] = {cc, "-std=c17", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-I.", m->headers, "-o",
		m->program, "kernels/engine_verify.c", "kernels/ref.c", "kernels/ref_math.c", "kernels/table.c",
		m->ggml, m->base, "-lm", "-Wl,--allow-shlib-undefined", rpath, NULL};
	struct proc_spec spec = {.argv = argv, .cwd = m->folder, .timeout_ms = COMPILE_MS, .tick = m->ask->tick};
	struct proc_result r;

	if (compiler_find(m->ask, cc, sizeof cc, why, e) ||
	    str_fmt(rpath, sizeof rpath, e, "-Wl,-rpath,%s", m->ask->engine_dir))
		return -1;
	if (transcript_run(t, &spec, NULL, &r, e))
		return -1;
	return r.exit == 0 && !r.timed_out && !r.cancelled ? 1 : 0;
}

static int
program_run(const struct make *m, struct transcript *t, struct err *e)
{
	const char *argv[] = {m->program, "--device", m->ask->device, "--backends", m->ask->engine_dir, NULL};
	struct proc_spec spec = {.argv = argv, .cwd = m->folder, .env = m->ask->env, .timeout_ms = RUN_MS,
		.tick = m->ask->tick};
	struct proc_result r;

	return transcript_run(t, &spec, NULL, &r, e);
}

static int
make_and_run(struct make *m, struct transcript *t, enum reason *why, struct err *e)
{
	int made;

	if (str_fmt(m->program, sizeof m->program, e, "%s/%s", m->folder, m->ask->program) ||
	    sources_write(m, t, e))
		return -1;
	library_fact(t, m->ggml);
	library_fact(t, m->base);
	made = compile(m, t, why, e);
	/* a compiler's complaint is in the log, and the judge reads it there */
	return made <= 0 ? made : program_run(m, t, e);
}

int
engine_verify_run(const struct engine_verify *ask, struct transcript *t, enum reason *why,
	struct err *e)
{
	struct make *m = calloc(1, sizeof *m);
	struct err ignored = {0};
	int rc = -1;

	*why = REASON_INTERNAL;
	if (m == NULL)
		return err_set(e, ERR_NOMEM, "no memory for engine-verify");
	m->ask = ask;
	if (engine_find(m, why, e) == 0 && plat_mkdirs(ask->cache_dir, 0700, e) == 0 &&
	    str_fmt(m->folder, sizeof m->folder, e, "%s/engine-verify.XXXXXX", ask->cache_dir) == 0) {
		if (mkdtemp(m->folder) == NULL) {
			err_set(e, ERR_IO, "no folder below %s", ask->cache_dir);
		} else {
			rc = make_and_run(m, t, why, e);
			if (plat_remove_tree(m->folder, &ignored))
				gate_factf(t, "left", "%s: %s", m->folder, ignored.msg);
		}
	}
	if (rc != 0 && *why == REASON_INTERNAL)
		*why = gate_reason_of(e);
	free(m);
	return rc;
}
