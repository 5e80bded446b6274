#include "agent/dispatch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "agent/build.h"
#include "agent/engine_env.h"
#include "agent/engine_verify.h"
#include "agent/gate.h"
#include "agent/run.h"
#include "common/plat.h"
#include "common/str.h"

#define TOOL "vulkan_dispatch_smoke"
#define LIBRARY "libggml-vulkan.so"

struct dispatch_values {
	const char *dir, *source, *log_dir;
};
static const struct opt dispatch_opts[] = {
	{"dir", 0, OPT_TEXT, offsetof(struct dispatch_values, dir), .word = "DIR",
		.help = "the folder with " LIBRARY ", instead of both candidates (ELIZA_MTP_VULKAN_BIN_DIR)"},
	{"source", 'S', OPT_TEXT, offsetof(struct dispatch_values, source), .word = "DIR",
		.help = "the engine's source, for its headers (ELIZA_MTP_LLAMA_DIR)"},
	{"log-dir", 0, OPT_TEXT, offsetof(struct dispatch_values, log_dir), .word = "DIR",
		.help = "where the log goes (ELIZA_MTP_HARDWARE_REPORT_DIR)"},
};

/* One smoke: where the engine is, and the log. */
struct smoke {
	const struct lane *lane;
	const struct target *target;
	const char *source;        /* NULL: not known */
	char cache[GATE_PATH];     /* scratch, gone at the end */
	char dir[GATE_PATH];       /* of the libraries */
	char log[GATE_PATH];
	struct transcript *t;
	bool software;             /* the diagnostic switch */
};

static int
target_find_here(struct smoke *s, struct err *e)
{
	const char *wanted = plat_env("ELIZA_MTP_TARGET", NULL);
	struct utsname u;

	s->lane = lane_find("vulkan");
	if (uname(&u) != 0 || strcmp(u.sysname, "Linux") != 0) {
		err_set(e, ERR_USAGE, "the smoke is for native Vulkan on Linux; MoltenVK is none");
		return -1;
	}
	if ((s->target = lane_target(s->lane, u.sysname, u.machine)) == NULL)
		return err_set(e, ERR_BLOCKED, "the vulkan lane has no target for %s on %s", u.sysname, u.machine);
	if (wanted != NULL && strcmp(wanted, s->target->name) != 0)
		return err_set(e, ERR_USAGE, "ELIZA_MTP_TARGET is %.60s, this host's is %s", wanted, s->target->name);
	return 0;
}

static bool
has_library(const char *dir)
{
	char path[GATE_PATH];

	return str_fmt(path, sizeof path, NULL, "%s/" LIBRARY, dir) == 0 && plat_is_file(path);
}

/* Says where one candidate is and whether it can be used; the first that can is taken. */
static void
candidate(struct smoke *s, const char *what, const char *dir)
{
	bool there = has_library(dir);

	printf("[" TOOL "] %s: %s%s\n", what, dir, there ? "" : " (no " LIBRARY ")");
	if (there && s->dir[0] == '\0' && realpath(dir, s->dir) == NULL)
		s->dir[0] = '\0';
}

static int
engine_choose(struct smoke *s, const char *given, struct err *e)
{
	char managed[GATE_PATH], tree[GATE_PATH];

	if (given == NULL)
		given = plat_env("ELIZA_MTP_VULKAN_BIN_DIR", NULL);
	if (given != NULL) {
		candidate(s, "given folder", given);
	} else {
		if (build_output_dir(s->target, managed, sizeof managed, e))
			return -1;
		candidate(s, "managed output", managed);
		if (s->source == NULL)
			printf("[" TOOL "] build tree: none, ELIZA_MTP_LLAMA_DIR is not set\n");
		else if (str_fmt(tree, sizeof tree, e, "%s/build/%s/bin", s->source, s->target->name))
			return -1;
		else
			candidate(s, "build tree", tree);
	}
	if (s->dir[0] != '\0')
		return 0;
	err_set(e, ERR_BLOCKED, "there is no " LIBRARY);
	return err_hint(e, "build the engine for %s with shared libraries, or name its folder with --dir",
		s->target->name);
}

/* nftw() has no argument for its function. */
static struct {
	struct timespec newest;
	char path[GATE_PATH];
} sources;

static bool
is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static int
source_seen(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type == FTW_F && is_later(&st->st_mtim, &sources.newest)) {
		sources.newest = st->st_mtim;
		snprintf(sources.path, sizeof sources.path, "%s", path);
	}
	return 0;
}

/* Where nobody wrote down what the libraries were built from, time must do. */
static int
age_check(const struct smoke *s, enum reason *why, struct err *e)
{
	static const char *const names[] = {LIBRARY, "libggml-base.so"};
	char path[GATE_PATH];
	struct stat st;
	size_t i;

	*why = REASON_INTERNAL;
	memset(&sources, 0, sizeof sources);
	if (str_fmt(path, sizeof path, e, "%s/ggml", s->source))
		return -1;
	if (nftw(path, source_seen, 32, FTW_PHYS) != 0) {
		*why = REASON_SOURCE_MISSING;
		return err_set(e, ERR_BLOCKED, "%s can not be read", path);
	}
	for (i = 0; i < str_count(names); i++) {
		if (str_fmt(path, sizeof path, e, "%s/%s", s->dir, names[i]))
			return -1;
		if (stat(path, &st) == 0 && is_later(&sources.newest, &st.st_mtim)) {
			*why = REASON_STALE_BINARY;
			err_set(e, ERR_BLOCKED, "%s is older than %s", names[i], sources.path);
			return err_hint(e, "build the engine again");
		}
	}
	return 0;
}

/* By what was written down at the build: target, digests, the source's tree or commit. */
static int
record_check(const struct smoke *s, const struct capabilities *c, bool *known, enum reason *why,
	struct err *e)
{
	const char *programs[] = {c->binaries[0]};
	struct source_ask ask = {.spec = s->source, .cache_dir = s->cache, .timeout_ms = 300000};
	struct source_info *source = s->source ? calloc(1, sizeof *source) : NULL;
	struct build_info *b = calloc(1, sizeof *b);
	struct prebuilt_ask asked = {.bin_dir = s->dir, .target = s->target, .programs = programs,
		.program_count = 1, .skip_build = true, .allow_prebuilt = true, .source = source};
	int rc = -1;

	if (b == NULL || (s->source != NULL && source == NULL)) {
		*why = REASON_INTERNAL;
		err_set(e, ERR_NOMEM, "no memory for an engine");
	} else if (source == NULL || source_get(&ask, s->t, source, why, e) == 0) {
		rc = build_prebuilt(&asked, s->t, b, why, e);
		*known = rc == 0 && (source == NULL || (b->tree[0] != '\0' && source->tree[0] != '\0'));
		build_release(b);
		if (source != NULL)
			source_release(source);
	}
	free(b);
	free(source);
	return rc;
}

static int
stale_check(const struct smoke *s, enum reason *why, struct err *e)
{
	struct capabilities *c = malloc(sizeof *c);
	char path[GATE_PATH];
	bool known = false;
	int rc = 0;

	*why = REASON_INTERNAL;
	if (c == NULL)
		return err_set(e, ERR_NOMEM, "no memory for capabilities");
	if (str_fmt(path, sizeof path, e, "%s/" CAPABILITIES_FILE, s->dir)) {
		rc = -1;
	} else if (plat_is_file(path)) {
		if ((rc = capabilities_read(path, c, e)) != 0)
			*why = REASON_STALE_BINARY;
		else if (c->binary_count > 0)
			rc = record_check(s, c, &known, why, e);
	}
	free(c);
	return rc || known || s->source == NULL ? rc : age_check(s, why, e);
}

static int
routes_run(const struct smoke *s, enum reason *why, struct err *e)
{
	struct engine_env env;
	char device[32], seen[80];
	const char *visible = getenv("GGML_VK_VISIBLE_DEVICES");
	struct engine_verify ask = {.program = TOOL, .engine_dir = s->dir, .source = s->source,
		.device = device, .cache_dir = s->cache, .env = env.v};
	size_t n = 0;

	lane_device(s->lane, device, sizeof device);
	engine_env_make(&env, s->dir);
	while (env.v[n] != NULL)
		n++;
	/* which device is the caller's choice; the engine hides software unless it is named */
	if (visible == NULL && s->software)
		visible = "0";
	if (visible != NULL && str_fmt(seen, sizeof seen, NULL, "GGML_VK_VISIBLE_DEVICES=%s", visible) == 0) {
		env.v[n] = seen;
		env.v[n + 1] = NULL;
	}
	*why = REASON_INTERNAL;
	return engine_env_note(s->t, &env, e) || engine_verify_run(&ask, s->t, why, e) ? -1 : 0;
}

/* The program's lines but for the single scores. */
static void
lines_show(const char *log, size_t len)
{
	static const char mark[] = "[" TOOL "] ", score[] = "[" TOOL "] score ";
	struct section s;
	const char *line;
	size_t pos = 0, at, n;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		for (at = 0; section_line(&s, &at, &line, &n);)
			if (n >= sizeof mark - 1 && memcmp(line, mark, sizeof mark - 1) == 0 &&
			    (n < sizeof score - 1 || memcmp(line, score, sizeof score - 1) != 0))
				printf("%.*s\n", (int)n, line);
		section_fini(&s);
	}
}

static int
smoke_judge(const struct smoke *s, struct judgement *out, struct err *e)
{
	struct suite *suite = NULL;
	struct judge_ask ask = {.lane = s->lane};
	char *text = NULL;
	size_t len;

	if (suite_builtin("eliza-1", &suite, e))
		return -1;
	ask.suite = suite;
	if (plat_read_file(s->log, 64u << 20, &text, &len, e) == 0) {
		lines_show(text, len);
		judge_of(GATE_ROUTES)(text, len, &ask, out);
	}
	free(text);
	suite_free(suite);
	return text != NULL ? 0 : -1;
}

static int
log_open(struct smoke *s, const char *given, struct err *e)
{
	char dir[GATE_PATH], nonce[65], stamp[24], number[16] = "", *p, *q;
	int i, rc = -1;

	plat_utc(plat_now_ms(), stamp);
	for (p = q = stamp; *p != '\0'; p++) /* 20260601T100000Z, as in other logs */
		if (*p != '-' && *p != ':')
			*q++ = *p;
	*q = '\0';
	if (run_log_dir(given, dir, sizeof dir, e) || plat_mkdirs(dir, 0755, e) ||
	    plat_random_hex(nonce, 64, e))
		return -1;
	for (i = 2; rc != 0 && i < 100; i++) { /* two in one second */
		if (str_fmt(s->log, sizeof s->log, e, "%s/vulkan-dispatch-smoke-%s%s.log", dir, stamp, number))
			return -1;
		rc = transcript_open(s->log, nonce, 64u << 20, &s->t, e);
		if (rc != 0 && e->code != ERR_CONFLICT)
			break;
		snprintf(number, sizeof number, ".%d", i);
	}
	if (rc == 0)
		memset(e, 0, sizeof *e);
	return rc;
}

static int
smoke_do(struct smoke *s, const char *log_dir, struct judgement *out, struct err *e)
{
	enum reason why = REASON_INTERNAL;
	struct err ignored = {0};
	const char *tmp = getenv("TMPDIR");
	int rc = -1;

	if (str_fmt(s->cache, sizeof s->cache, e, "%s/vulkan-dispatch.XXXXXX",
		    tmp && tmp[0] ? tmp : "/tmp") || log_open(s, log_dir, e))
		return -1;
	if (mkdtemp(s->cache) == NULL) {
		err_set(e, ERR_IO, "no folder like %s can be made", s->cache);
		s->cache[0] = '\0';
	} else if (stale_check(s, &why, e) || routes_run(s, &why, e)) {
		gate_say(s->t, why, e->hint, "%s", e->msg);
		rc = 0;
	} else {
		rc = 0;
	}
	if (s->cache[0] != '\0' && plat_remove_tree(s->cache, &ignored))
		gate_factf(s->t, "left", "%s", s->cache);
	if (transcript_close(s->t, NULL, NULL, rc == 0 ? e : NULL))
		return -1;
	return rc == 0 ? smoke_judge(s, out, e) : -1;
}

static int
dispatch_run(const struct opt_call *call)
{
	static const int status[OUTCOME_COUNT] = {[OUTCOME_PASS] = EXIT_PASS, [OUTCOME_FAIL] = EXIT_FAIL,
		[OUTCOME_BLOCKED] = EXIT_BLOCKED, [OUTCOME_SKIPPED] = EXIT_UNRECORDED,
		[OUTCOME_INCOMPLETE] = EXIT_INCOMPLETE};
	const struct dispatch_values *v = call->values;
	struct smoke *s = calloc(1, sizeof *s);
	struct judgement j = {0};
	struct err e = {0};
	int rc = -1;

	if (s == NULL)
		err_set(&e, ERR_NOMEM, "no memory for a smoke");
	else if (target_find_here(s, &e) == 0) {
		s->source = v->source ? v->source : plat_env("ELIZA_MTP_LLAMA_DIR", NULL);
		s->software = str_eq(getenv("ELIZA_ALLOW_SOFTWARE_VULKAN"), "1");
		if (engine_choose(s, v->dir, &e) == 0)
			rc = smoke_do(s, v->log_dir, &j, &e);
	}
	if (rc) {
		err_print("verify-agent vulkan-dispatch-smoke", &e);
		free(s);
		return err_exit(e.code);
	}
	printf("[" TOOL "] log=%s\n", s->log);
	if (j.outcome == OUTCOME_PASS) {
		printf("[" TOOL "] PASS Vulkan dispatch suite: %d graph routes\n", ROUTE_FACTS_MAX);
	} else {
		fflush(stdout);
		fprintf(stderr, "%s %s: %s\n", outcome_name(j.outcome), reason_name(j.reason), j.detail);
		if (j.hint[0] != '\0')
			fprintf(stderr, "  hint: %s\n", j.hint);
	}
	free(s);
	return status[j.outcome];
}

const struct command dispatch_command = {
	.name = "vulkan-dispatch-smoke",
	.summary = "compute the engine's score routes on Vulkan, and compare them",
	.help = "Compiles engine-verify against an engine that is built for Vulkan, always anew, and\n"
		"computes the six score routes on its first device: each must be supported there, and\n"
		"within 1e-3 of the engine's CPU backend and of the reference.  The engine is the\n"
		"managed output, else the build tree of the source; both are printed.  Libraries that\n"
		"are not those of the source are refused.\n"
		"\n"
		"  ELIZA_MTP_LLAMA_DIR=~/llama.cpp verify-agent vulkan-dispatch-smoke\n"
		"\n"
		"A software device is refused; ELIZA_ALLOW_SOFTWARE_VULKAN=1 computes on it all the\n"
		"same, to look at, and is never a pass.  GGML_VK_VISIBLE_DEVICES chooses a device.\n"
		"\n"
		"Exit status: 0 pass, 1 wrong or not supported, 2 usage or another system, 3 blocked\n"
		"(no library, stale, not in the engine, software), 6 cut off.",
	.opts = dispatch_opts,
	.opt_count = str_count(dispatch_opts),
	.size = sizeof(struct dispatch_values),
	.run = dispatch_run,
};
