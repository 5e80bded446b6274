#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/atwork.h"
#include "agent/build_impl.h"
#include "agent/engine_env.h"
#include "agent/ninja.h"
#include "common/plat.h"
#include "common/proc.h"

#define MAX_ARGV (BUILD_MAX_FLAGS + BUILD_MAX_ARTIFACTS + 24)
#define MARKER "verify-started"
#define MAKE_ENV 64
#define SLOW_MAX 12    /* files that took long, which the log names */
#define NOW_MAX 3      /* files that one line of progress names */

/* What a cmake or ninja run needs while it runs. */
struct make {
	const struct build_ask *ask;
	struct transcript *log;
	struct build_info *b;
	struct ninja seen;
	char ccache_dir[BUILD_PATH + 16], ccache_base[BUILD_PATH + 24], ccache_off[64];
	char unity[BUILD_PATH + 64]; /* a flag */
	/* of the run that is under way */
	int64_t begun, looked, stepped; /* monotonic */
	char now[ATWORK_NAME * NOW_MAX]; /* what was at work at the last look, "" nothing */
	struct atwork slow[SLOW_MAX];
	int slow_count;
};

static void
progress(const struct build_ask *ask, uint32_t done, uint32_t total, const char *text)
{
	if (ask->progress != NULL)
		ask->progress(ask->arg, done, total, text);
}

static void
make_step(void *arg, uint32_t done, uint32_t total, const char *text)
{
	struct make *m = arg;

	m->stepped = plat_mono_ms();
	progress(m->ask, done, total, text);
}

/* Keeps the longest that each file was seen at work. */
static void
slow_note(struct make *m, const struct atwork *a)
{
	int i;

	for (i = 0; i < m->slow_count && strcmp(m->slow[i].name, a->name) != 0; i++)
		;
	if (i == SLOW_MAX)
		return;
	if (i == m->slow_count)
		m->slow[m->slow_count++] = *a;
	else if (a->ms > m->slow[i].ms)
		m->slow[i].ms = a->ms;
}

/* A build tool prints a step when it has ended; a reader wants to know what it waits for. */
static void
make_look(struct make *m)
{
	struct atwork v[ATWORK_MAX];
	char text[sizeof m->now + 16];
	int64_t now = plat_mono_ms();
	int64_t every = m->ask->look_ms > 0 ? m->ask->look_ms : BUILD_LOOK_MS;
	int i, n;

	if (now - m->looked < every)
		return;
	m->looked = now;
	n = atwork_list(getpid(), v, ATWORK_MAX);
	for (i = 0; i < n; i++) {
		/* whatever a clock of the host says, it is a child of this run */
		if (v[i].ms > now - m->begun)
			v[i].ms = now - m->begun;
		if (v[i].ms >= every)
			slow_note(m, &v[i]);
	}
	atwork_text(v, n < NOW_MAX ? n : NOW_MAX, n, m->now, sizeof m->now);
	if (now - m->stepped < every || m->now[0] == '\0')
		return;
	snprintf(text, sizeof text, "compiling %s", m->now);
	progress(m->ask, m->seen.done, m->seen.total, text);
}

static int
make_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct make *m = arg;

	(void)stream;
	ninja_add(&m->seen, p, n);
	return 0;
}

static int
make_tick(void *arg)
{
	struct make *m = arg;

	make_look(m);
	return m->ask->tick != NULL ? m->ask->tick(m->ask->arg) : 0;
}

/*
 * Variables that would change what comes out behind the key's back are unset: flags,
 * folders that compilers search by themselves, cmake's own, other code in our tools.
 * git may look at a source that belongs to another user (the engine's build asks it for
 * the commit).  ccache: no other compiler and no wrapper, whatever its configuration
 * says; a daemon may have no home; paths of this folder are made relative, so that another
 * build of the same source finds its objects.
 */
static void
make_env(struct make *m, const char *env[MAKE_ENV])
{
	static const char *const always[] = {
		("NINJA_STATUS=" NINJA_STATUS), "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
		"CUDAFLAGS", "HIPFLAGS", "CC", "CXX", "CUDACXX", "HIPCXX", "CUDAARCHS",
		"CUDAHOSTCXX", "CMAKE_*", "MAKEFLAGS", "CLICOLOR_FORCE", "DESTDIR", "VERBOSE",
		"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
		"GCC_EXEC_PREFIX", "COMPILER_PATH", "GCC_COMPARE_DEBUG", "DEPENDENCIES_OUTPUT",
		"CCC_*", "CLANG_*", "LDEMULATION", "LD_RUN_PATH", "GNUTARGET", "NVCC_*",
		"LD_PRELOAD", "LD_AUDIT", "CCACHE_*", "CCACHE_NOHASHDIR=1", "CCACHE_COMPILER=",
		"CCACHE_PREFIX=", "CCACHE_PREFIX_CPP=", "CCACHE_SLOPPINESS=",
		"CCACHE_COMPILERCHECK=content", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_DIR",
		"GIT_WORK_TREE", "GIT_OPTIONAL_LOCKS=0",
	};
	const char *dir = getenv("CCACHE_DIR"), *off = getenv("CCACHE_DISABLE");
	size_t i, n = 0;

	_Static_assert(str_count(always) + 4 <= MAKE_ENV, "the list of variables fits");
	for (i = 0; i < str_count(always); i++)
		env[n++] = always[i];
	snprintf(m->ccache_base, sizeof m->ccache_base, "CCACHE_BASEDIR=%s", m->b->folder);
	env[n++] = m->ccache_base;
	if (dir != NULL || (getenv("HOME") == NULL && getenv("XDG_CACHE_HOME") == NULL)) {
		if (dir == NULL)
			snprintf(m->ccache_dir, sizeof m->ccache_dir, "CCACHE_DIR=%s/ccache",
				m->ask->cache_dir);
		else
			snprintf(m->ccache_dir, sizeof m->ccache_dir, "CCACHE_DIR=%s", dir);
		env[n++] = m->ccache_dir;
	}
	if (off != NULL) {
		snprintf(m->ccache_off, sizeof m->ccache_off, "CCACHE_DISABLE=%s", off);
		env[n++] = m->ccache_off;
	}
	env[n] = NULL;
}

/* Of a run that did not do its work: whose fault, in order of what explains most. */
static int
make_judge(struct make *m, const char *what, enum reason failed, uint32_t limit_ms,
	const struct proc_result *r, enum reason *why, struct err *e)
{
	static const enum reason by_trouble[] = {
		[NINJA_CRASH] = REASON_TOOLCHAIN_CRASH, [NINJA_MISSING] = REASON_TOOL_MISSING,
		[NINJA_BROKEN] = REASON_TOOL_BROKEN, [NINJA_TOO_OLD] = REASON_TOOLCHAIN_TOO_OLD,
		[NINJA_NO_GPU] = REASON_NO_GPU_AT_BUILD, [NINJA_NOSPACE] = REASON_DISK_FULL,
	};
	const struct lane *lane;
	char text[NINJA_TEXT * 2 + 32];

	if (r->cancelled) {
		*why = REASON_CANCELLED;
		return err_set(e, ERR_CANCELLED, "%s: cancelled", what);
	}
	if (r->timed_out) {
		*why = REASON_TIMEOUT;
		return err_set(e, ERR_TIMEOUT, "%s: no end within %u s%s%s", what,
			limit_ms / 1000, m->now[0] ? ", compiling " : "", m->now);
	}
	if (r->exit == 0)
		return 0;
	ninja_reason(&m->seen, text, sizeof text);
	if (m->seen.trouble == NINJA_FINE || m->seen.trouble == NINJA_ERROR) {
		*why = r->exit < 0 ? REASON_TOOLCHAIN_CRASH : failed;
		if (r->exit < 0)
			proc_describe(r, text, sizeof text);
	} else {
		*why = by_trouble[m->seen.trouble];
	}
	err_set(e, *why == REASON_DISK_FULL ? ERR_NOSPACE : ERR_BLOCKED, "%s", text);
	lane = m->ask->lane;
	if (*why == REASON_NO_GPU_AT_BUILD && lane->arch_flag[0] != '\0')
		return err_hint(e, "name the architecture: -D%s=%.*s", lane->arch_flag,
			(int)strcspn(lane->archs, ";"), lane->archs);
	return -1;
}

/* What a step of the build took, where it was long enough to be seen. */
static int
slow_facts(struct make *m, struct err *e)
{
	char text[ATWORK_NAME + 32];
	int i;

	for (i = 0; i < m->slow_count; i++) {
		snprintf(text, sizeof text, "%s %lld s", m->slow[i].name,
			(long long)(m->slow[i].ms / 1000));
		if (transcript_fact(m->log, "slowStep", text, e))
			return -1;
	}
	return 0;
}

static int
make_run(struct make *m, const char *what, const char *const *argv, uint32_t limit_ms,
	enum reason failed, enum reason *why, struct err *e)
{
	const char *env[MAKE_ENV];
	struct proc_spec spec = {.argv = argv, .cwd = m->b->folder, .env = env,
		.timeout_ms = limit_ms, .chunk = make_chunk, .tick = make_tick, .arg = m};
	struct proc_result r;

	make_env(m, env);
	ninja_init(&m->seen, make_step, m);
	m->begun = m->looked = m->stepped = plat_mono_ms();
	m->now[0] = '\0';
	m->slow_count = 0;
	if (env_removed_note(m->log, env, e) || transcript_run(m->log, &spec, NULL, &r, e) ||
	    slow_facts(m, e))
		return build_why(e, REASON_TOOL_BROKEN, why);
	ninja_end(&m->seen);
	return make_judge(m, what, failed, limit_ms, &r, why, e);
}

/* ---- cmake ---- */

/* cmake refuses a folder that it configured for a source elsewhere. */
static int
elsewhere_clear(struct make *m, struct err *e)
{
	char path[BUILD_PATH + 32], line[BUILD_PATH + 64];
	const char *source = m->ask->source->path;
	bool other = false;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "%s/CMakeCache.txt", m->b->folder);
	if ((f = fopen(path, "re")) == NULL)
		return 0;
	while (fgets(line, sizeof line, f) != NULL) {
		if (!str_starts(line, "CMAKE_HOME_DIRECTORY:INTERNAL="))
			continue;
		n = strcspn(line, "\n");
		line[n] = '\0';
		other = strcmp(line + 30, source) != 0;
	}
	fclose(f);
	if (!other)
		return 0;
	if (plat_remove_tree(m->b->folder, e) || plat_mkdirs(m->b->folder, 0755, e))
		return -1;
	return 0;
}

static int
configure(struct make *m, const struct build_words *w, const char *cmake,
	const char *ninja, const char *ccache, enum reason *why, struct err *e)
{
	const struct device_tool *device = build_device_tool(m->ask->lane->api);
	char device_word[BUILD_PATH + 64];
	char make_program[BUILD_PATH + 32], cc[BUILD_PATH + 32], cxx[BUILD_PATH + 32];
	char launch[2][BUILD_PATH + 48];
	const char *argv[MAX_ARGV];
	uint32_t ms = m->ask->configure_timeout_ms;
	int i, n = 0;

	if (elsewhere_clear(m, e))
		return build_why(e, REASON_INTERNAL, why);
	snprintf(make_program, sizeof make_program, "-DCMAKE_MAKE_PROGRAM=%s", ninja);
	snprintf(cc, sizeof cc, "-DCMAKE_C_COMPILER=%s", m->b->cc.path);
	snprintf(cxx, sizeof cxx, "-DCMAKE_CXX_COMPILER=%s", m->b->cxx.path);
	snprintf(launch[0], sizeof launch[0], "-DCMAKE_C_COMPILER_LAUNCHER=%s", ccache);
	snprintf(launch[1], sizeof launch[1], "-DCMAKE_CXX_COMPILER_LAUNCHER=%s", ccache);
	argv[n++] = cmake;
	argv[n++] = "-G";
	argv[n++] = "Ninja";
	argv[n++] = "-S";
	argv[n++] = m->ask->source->path;
	argv[n++] = "-B";
	argv[n++] = m->b->folder;
	argv[n++] = make_program;
	argv[n++] = cc;
	argv[n++] = cxx;
	argv[n++] = launch[0];
	argv[n++] = launch[1];
	argv[n++] = m->unity;
	if (device != NULL && m->b->device.path[0] != '\0') {
		snprintf(device_word, sizeof device_word, "-D%s=%s", device->flag, m->b->device.path);
		argv[n++] = device_word;
	}
	for (i = 0; i < w->count; i++)
		argv[n++] = w->v[i];
	argv[n] = NULL;
	progress(m->ask, 0, 0, "configuring the engine");
	return make_run(m, "cmake", argv, ms ? ms : BUILD_CONFIGURE_MS,
		REASON_CONFIGURE_FAILED, why, e);
}

/* ---- ninja ---- */

/* The programs of an earlier, unproved attempt go, so that what stands there afterwards
 * was linked by this run. */
static int
programs_clear(const struct make *m, struct err *e)
{
	char path[BUILD_PATH + 80];
	int i;

	for (i = 0; i < m->ask->program_count; i++) {
		snprintf(path, sizeof path, "%s/%s", m->b->bin_dir, m->ask->programs[i]);
		if (unlink(path) != 0 && errno != ENOENT)
			return err_errno(e, errno, "%s", path);
	}
	snprintf(path, sizeof path, "%s/" MARKER, m->b->folder);
	unlink(path);
	return plat_write_file(path, "", 0, 0644, e);
}

static bool
is_older(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec < b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* The file system's own clock on both sides: no other clock has to agree with it. */
static int
programs_are_new(const struct make *m, enum reason *why, struct err *e)
{
	char path[BUILD_PATH + 80];
	struct stat start, st;
	int i;

	*why = REASON_ARTIFACT_MISSING;
	snprintf(path, sizeof path, "%s/" MARKER, m->b->folder);
	if (stat(path, &start) != 0)
		return err_errno(e, errno, "%s", path);
	for (i = 0; i < m->ask->program_count; i++) {
		snprintf(path, sizeof path, "%s/%s", m->b->bin_dir, m->ask->programs[i]);
		if (stat(path, &st) != 0)
			return err_set(e, ERR_BLOCKED,
				"the build ended well but made no %s", path);
		if (is_older(&st, &start))
			return err_set(e, ERR_BLOCKED, "%s is older than the build",
				path);
	}
	return 0;
}

static int
compile(struct make *m, const char *ninja, enum reason *why, struct err *e)
{
	char jobs[16];
	const char *argv[MAX_ARGV];
	uint32_t ms = m->ask->timeout_ms;
	int i, n = 0;

	snprintf(jobs, sizeof jobs, "%u", m->b->jobs);
	argv[n++] = ninja;
	argv[n++] = "-j";
	argv[n++] = jobs;
	argv[n++] = "--";
	for (i = 0; i < m->ask->program_count; i++)
		argv[n++] = m->ask->programs[i];
	argv[n] = NULL;
	progress(m->ask, 0, 0, "building the engine");
	return make_run(m, "ninja", argv, ms ? ms : BUILD_MS, REASON_BUILD_FAILED, why, e);
}

/* What fails in a joined file may be well in files of its own: nothing is known of the
 * source until they were tried.  Turns the joining off when it says yes. */
static bool
unity_is_to_blame(struct make *m, enum reason why)
{
	if (!m->b->unity || strstr(m->seen.failed, "/Unity/") == NULL ||
	    (why != REASON_BUILD_FAILED && why != REASON_TOOLCHAIN_CRASH))
		return false;
	m->b->unity = false;
	snprintf(m->unity, sizeof m->unity, BUILD_UNITY_OFF);
	return true;
}

static int
attempt(struct make *m, const struct build_words *w, const char *cmake, const char *ninja,
	const char *ccache, enum reason *why, struct err *e)
{
	if (configure(m, w, cmake, ninja, ccache, why, e))
		return -1;
	if (programs_clear(m, e))
		return build_why(e, REASON_INTERNAL, why);
	return compile(m, ninja, why, e);
}

int
build_make(const struct build_ask *ask, const struct build_words *w,
	struct transcript *log, struct build_info *b, const char *cmake, const char *ninja,
	const char *ccache, enum reason *why, struct err *e)
{
	struct make *m = calloc(1, sizeof *m);
	int rc = -1;

	if (m == NULL) {
		*why = REASON_INTERNAL;
		return err_set(e, ERR_NOMEM, "no memory for a build");
	}
	m->ask = ask;
	m->log = log;
	m->b = b;
	if (build_unity_flag(w, b, m->unity, sizeof m->unity, e)) {
		build_why(e, REASON_INTERNAL, why);
		goto out;
	}
	rc = attempt(m, w, cmake, ninja, ccache, why, e);
	if (rc != 0 && unity_is_to_blame(m, *why)) {
		rc = transcript_fact(log, "unity", "given up", e)
			? build_why(e, REASON_INTERNAL, why)
			: attempt(m, w, cmake, ninja, ccache, why, e);
	}
	if (rc)
		goto out;
	rc = programs_are_new(m, why, e);
out:
	free(m);
	return rc;
}
