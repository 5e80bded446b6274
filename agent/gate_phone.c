/*
 * The gates of the android lane: a phone behind adb.  The verifier, the shaders and the
 * fixtures are pushed, their digests are asked back from the phone, and every command there
 * ends with a random marker that carries its exit code (adb's own is 0 on old phones).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/elf.h"
#include "agent/gate.h"
#include "common/agree.h"
#include "common/phone.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"
#include "kernels/fixture.h"
#include "kernels/kernel.h"

#define ADB_TIMEOUT_MS 60000
#define RUN_TIMEOUT_MS 600000
#define REMOTE_DIR "/data/local/tmp/eliza-kernels"
#define VERIFIER "vulkan-verify"
#define MAX_FILES 96
#define ELF_AARCH64 183

struct phone {
	struct work *w;
	struct transcript *t;
	char adb[GATE_PATH];
	const char *serial;
};

static const char *
setting(const char *name, const char *fallback)
{
	const char *v = plat_env(name, NULL);

	return v != NULL ? v : fallback;
}

/* The path below the i-th place where an SDK may be; false past the end, and out is "" when
 * that place is not on this host. */
static bool
sdk_path(size_t i, const char *below, char *out, size_t size)
{
	static const struct {
		const char *variable, *folder;
	} places[] = {
		{"ANDROID_HOME", ""}, {"ANDROID_SDK_ROOT", ""}, {"HOME", "/Library/Android/sdk"},
		{"HOME", "/Android/Sdk"},
	};
	const char *v;

	if (i >= str_count(places))
		return false;
	v = getenv(places[i].variable);
	if (v == NULL || str_fmt(out, size, NULL, "%s%s/%s", v, places[i].folder, below))
		out[0] = '\0';
	return true;
}

/* ADB, PATH, then the places of an SDK. */
static int
adb_find(char *out, size_t size, struct err *e)
{
	size_t i;

	if (plat_find_tool(setting("ADB", "adb"), out, size, e) == 0)
		return 0;
	for (i = 0; sdk_path(i, "platform-tools/adb", out, size); i++)
		if (out[0] != '\0' && plat_is_file(out))
			return 0;
	err_set(e, ERR_NOTFOUND, "missing-adb: adb is neither in PATH nor in an Android SDK");
	return err_hint(e, "install the platform tools, or set ADB");
}

/* Runs one command on the phone into the log, with a marker of its own. */
static int
phone_run(const struct phone *p, uint32_t timeout_ms, const char *command, struct err *e)
{
	char text[4096], mark[PHONE_MARK_DIGITS + 1];
	const char *argv[] = {p->adb, "-s", p->serial, "shell", text, NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = timeout_ms, .tick = work_tick};
	struct proc_result r;

	if (plat_random_hex(mark, PHONE_MARK_DIGITS, e) ||
	    str_fmt(text, sizeof text, e, "%s; echo " PHONE_MARK "%s__ $?", command, mark) ||
	    transcript_run(p->t, &spec, NULL, &r, e))
		return -1;
	if (r.cancelled)
		return err_set(e, ERR_CANCELLED, "stopped while the phone worked");
	return r.timed_out ? err_set(e, ERR_TIMEOUT, "the phone did not answer within %u s",
		(unsigned)(timeout_ms / 1000)) : 0;
}

/* Runs adb itself. */
static int
adb_run(const struct phone *p, const char *const *argv, int *exit, struct err *e)
{
	struct proc_spec spec = {.argv = argv, .timeout_ms = RUN_TIMEOUT_MS, .tick = work_tick};
	struct proc_result r;

	if (transcript_run(p->t, &spec, NULL, &r, e))
		return -1;
	if (r.timed_out || r.cancelled)
		return err_set(e, r.timed_out ? ERR_TIMEOUT : ERR_CANCELLED, "adb was stopped");
	*exit = r.exit;
	return 0;
}

/* ---- device ---- */

static int
phones_ask(struct phone *p, const struct tool_answer *a, const char *wanted, struct err *e)
{
	size_t i;
	int k;

	for (k = 0; k < a->count && k < PHONE_MAX; k++) {
		if ((wanted != NULL && strcmp(a->device[k].uuid, wanted) != 0) ||
		    a->device[k].state[0] != '\0')
			continue;
		p->serial = a->device[k].uuid;
		for (i = 0; phone_question(i) != NULL; i++)
			if (phone_run(p, ADB_TIMEOUT_MS, phone_question(i), e))
				return -1;
	}
	return 0;
}

static int
phones_list(struct phone *p, struct tool_answer *a, struct err *e)
{
	const char *argv[] = {p->adb, "devices", "-l", NULL};
	struct buf said;
	struct proc_spec spec = {.argv = argv, .timeout_ms = ADB_TIMEOUT_MS, .tick = work_tick,
		.chunk = gate_keep, .arg = &said};
	struct proc_result r;
	int rc;

	buf_init(&said, TOOL_MAX_BYTES);
	if ((rc = transcript_run(p->t, &spec, NULL, &r, e)) == 0)
		tool_parse(TOOL_ADB_DEVICES, said.data ? said.data : "", said.len,
			r.exit, a);
	buf_fini(&said);
	return rc;
}

/* The log as it stands, to choose from. */
static int
serial_note(struct phone *p, const char *path, const char *wanted, struct err *e)
{
	char serial[64], *text = NULL;
	size_t len;
	struct err why = {0};

	if (plat_read_file(path, 64u << 20, &text, &len, e))
		return -1;
	if (phone_choose(text, len, wanted, serial, sizeof serial, &why) == REASON_NONE)
		gate_factf(p->t, "serial", "%s", serial);
	free(text);
	return 0;
}

void
gate_phone_device(struct work *w, struct gate *g)
{
	struct phone p = {.w = w, .t = gate_open(w, g, "device")};
	const char *wanted = w->job->device != NULL ? w->job->device : getenv("ANDROID_SERIAL");
	struct tool_answer *a = calloc(1, sizeof *a);
	char path[GATE_PATH] = "", *text = NULL;
	struct err e = {0};
	size_t len;

	if (wanted != NULL && wanted[0] == '\0')
		wanted = NULL;
	if (p.t == NULL) {
		free(a);
		return;
	}
	gate_factf(p.t, "wantedSerial", "%s", wanted ? wanted : "");
	if (str_eq(getenv("ELIZA_ALLOW_ANDROID_EMULATOR_VULKAN"), "1"))
		gate_factf(p.t, "emulatorAllowed", "1");
	if (str_eq(getenv("ELIZA_ALLOW_SOFTWARE_VULKAN"), "1"))
		gate_factf(p.t, "softwareAllowed", "1");
	if (a == NULL)
		gate_say(p.t, REASON_INTERNAL, NULL, "no memory for a list of phones");
	else if (adb_find(p.adb, sizeof p.adb, &e))
		gate_say(p.t, REASON_TOOL_MISSING, e.hint, "%s", e.msg);
	else if (phones_list(&p, a, &e) || phones_ask(&p, a, wanted, &e) ||
		 work_path(w, g->log_name, path, sizeof path, &e) ||
		 serial_note(&p, path, wanted, &e))
		gate_say(p.t, gate_reason_of(&e), e.hint, "%s", e.msg);
	gate_close(w, g, p.t);
	free(a);
	if (path[0] != '\0' && plat_read_file(path, 64u << 20, &text, &len, &e) == 0) {
		if (g->j.outcome == OUTCOME_PASS)
			phone_device_facts(text, len, w->target, &w->device);
		w->device.simulated = agree_simulated(text, len); /* also of one that was refused */
	}
	free(text);
}

/* ---- toolchain ---- */

/* A folder below the last one of a folder, by plain order: the newest NDK of an SDK. */
static bool
last_below(const char *dir, char *out, size_t size)
{
	DIR *d = opendir(dir);
	const struct dirent *en;
	char best[256] = "";

	if (d == NULL)
		return false;
	while ((en = readdir(d)) != NULL)
		if (en->d_name[0] != '.' && strcmp(en->d_name, best) > 0)
			snprintf(best, sizeof best, "%s", en->d_name);
	closedir(d);
	return best[0] != '\0' && str_fmt(out, size, NULL, "%s/%s", dir, best) == 0;
}

static bool
is_ndk(const char *dir)
{
	char path[GATE_PATH];

	return str_fmt(path, sizeof path, NULL, "%s/build/cmake/android.toolchain.cmake", dir) == 0 &&
		plat_is_file(path);
}

static int
ndk_find(char *out, size_t size, struct err *e)
{
	static const char *const own[] = {"ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "ANDROID_NDK"};
	char dir[GATE_PATH];
	const char *v;
	size_t i;

	for (i = 0; i < str_count(own); i++)
		if ((v = getenv(own[i])) != NULL && is_ndk(v))
			return str_copy(out, size, v, e);
	for (i = 0; sdk_path(i, "ndk", dir, sizeof dir); i++)
		if (dir[0] != '\0' && last_below(dir, out, size) && is_ndk(out))
			return 0;
	err_set(e, ERR_NOTFOUND, "no Android NDK: looked at ANDROID_NDK_HOME, ANDROID_NDK_ROOT, "
		"ANDROID_NDK, and ndk/ of the SDK folders");
	return err_hint(e, "install the NDK and set ANDROID_NDK_HOME");
}

static const char *const host_tags[] = {
	"darwin-arm64", "darwin-x86_64", "linux-x86_64", "windows-x86_64",
};

static int
tools_probe(struct phone *p, struct err *e)
{
	char ndk[GATE_PATH], prebuilt[GATE_PATH], clang[GATE_PATH], glslc[GATE_PATH];
	const char *api = setting("ANDROID_API", "28"), *given = getenv("GLSLC");
	uint32_t level;
	size_t i;

	if (str_u32(api, 21, 99, &level, NULL)) {
		err_set(e, ERR_NOTFOUND, "ANDROID_API is \"%.20s\"", api);
		return err_hint(e, "give a number such as 28");
	}
	if (ndk_find(ndk, sizeof ndk, e))
		return -1;
	gate_factf(p->t, "ndk", "%s", ndk);
	for (i = 0; i < str_count(host_tags); i++)
		if (str_fmt(prebuilt, sizeof prebuilt, NULL, "%s/toolchains/llvm/prebuilt/%s", ndk,
			    host_tags[i]) == 0 && plat_is_dir(prebuilt))
			break;
	if (i == str_count(host_tags))
		return err_set(e, ERR_NOTFOUND, "%.200s has no compiler for a host like this", ndk);
	if (str_fmt(clang, sizeof clang, e, "%s/bin/aarch64-linux-android%u-clang", prebuilt,
		    (unsigned)level) ||
	    str_fmt(glslc, sizeof glslc, e, "%s", given ? given : "") ||
	    (given == NULL && str_fmt(glslc, sizeof glslc, e, "%s/shader-tools/%s/glslc", ndk,
		host_tags[i])))
		return -1;
	return gate_probe_tool(p->w, p->t, clang, "--version", e) ||
		gate_probe_tool(p->w, p->t, glslc, "--version", e) ||
		gate_probe_tool(p->w, p->t, p->adb, "version", e) ? -1 : 0;
}

void
gate_phone_toolchain(struct work *w, struct gate *g)
{
	struct phone p = {.w = w, .t = gate_open(w, g, "toolchain")};
	struct err e = {0};

	if (p.t == NULL)
		return;
	if (adb_find(p.adb, sizeof p.adb, &e) || tools_probe(&p, &e))
		gate_say(p.t, e.code == ERR_NOTFOUND ? REASON_TOOL_MISSING : gate_reason_of(&e), e.hint,
			"%s", e.msg);
	gate_close(w, g, p.t);
}

/* ---- fixtures ---- */

struct files {
	char path[MAX_FILES][GATE_PATH];
	int count;
};

static int
file_add(struct files *f, const char *dir, const char *name, struct err *e)
{
	if (f->count == MAX_FILES)
		return err_set(e, ERR_LIMIT, "more than %d files to push", MAX_FILES);
	return str_fmt(f->path[f->count++], GATE_PATH, e, "%s/%s", dir, name);
}

/* The verifier and the shaders, of the folder that the build of the verifier left. */
static int
verifier_add(struct files *f, const char *dir, struct err *e)
{
	struct elf elf;
	const struct dirent *en;
	DIR *d;
	int rc = 0, shaders = 0;

	if (file_add(f, dir, VERIFIER, e))
		return -1;
	if (elf_read(f->path[0], &elf, e)) {
		err_wrap(e, "the verifier");
		return err_hint(e, "build vulkan-verify for the phone with the NDK, and name its "
			"folder with ELIZA_ANDROID_VULKAN_OUT_DIR");
	}
	if (elf.machine != ELF_AARCH64)
		return err_set(e, ERR_UNSUPPORTED, "%.200s is for another machine (ELF %d)", f->path[0],
			elf.machine);
	if ((d = opendir(dir)) == NULL)
		return err_set(e, ERR_IO, "%.200s can not be read", dir);
	while (rc == 0 && (en = readdir(d)) != NULL)
		if (str_ends(en->d_name, ".spv")) {
			rc = file_add(f, dir, en->d_name, e);
			shaders++;
		}
	closedir(d);
	if (rc == 0 && shaders == 0)
		rc = err_set(e, ERR_NOTFOUND, "%.200s has no shaders (*.spv)", dir);
	return rc;
}

/* The fixtures of this program, as files of a folder that is made for them. */
static int
fixtures_add(struct files *f, const struct suite *s, const char *dir, struct err *e)
{
	const struct kernel *k;
	const char *text;
	char path[GATE_PATH];
	size_t len;
	int i;

	if (plat_mkdirs(dir, 0700, e))
		return -1;
	for (i = 0; i < s->fixture_count; i++) {
		if ((k = kernel_find(s->fixtures[i])) == NULL ||
		    (text = fixture_builtin(k->file, &len)) == NULL)
			return err_set(e, ERR_NOTFOUND, "no fixture is built in for %.60s", s->fixtures[i]);
		if (str_fmt(path, sizeof path, e, "%s/%s", dir, k->file))
			return -1;
		if (plat_is_file(path))
			continue;
		if (plat_write_file(path, text, len, 0644, e) || file_add(f, dir, k->file, e))
			return -1;
	}
	return 0;
}

/* A folder of the phone that may be wiped: plain letters, below the shell's own. */
static bool
is_remote_dir(const char *dir)
{
	return str_starts(dir, "/data/local/tmp/") && strlen(dir) > 16 && strlen(dir) < 128 &&
		strstr(dir, "..") == NULL && strstr(dir, "//") == NULL &&
		strspn(dir, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") ==
			strlen(dir);
}

static int
files_push(struct phone *p, const struct files *f, const char *remote, struct err *e)
{
	char command[4096], sha[DIGEST_HEX], to[256];
	const char *argv[] = {p->adb, "-s", p->serial, "push", NULL, to, NULL};
	const char *name;
	int i, exit;

	if (str_fmt(command, sizeof command, e, "rm -rf %s && mkdir -p %s", remote, remote) ||
	    phone_run(p, ADB_TIMEOUT_MS, command, e))
		return -1;
	for (i = 0; i < f->count; i++) {
		name = strrchr(f->path[i], '/') + 1;
		argv[4] = f->path[i];
		if (digest_file(f->path[i], sha, NULL, e) ||
		    str_fmt(to, sizeof to, e, "%s/%s", remote, name) || adb_run(p, argv, &exit, e))
			return -1;
		if (exit != 0)
			return err_set(e, ERR_NOSPACE, "adb push %.100s ended with exit %d", name, exit);
		gate_factf(p->t, "pushed", "%s  %s", sha, name);
	}
	if (str_fmt(command, sizeof command, e, "cd %s && chmod 755 " VERIFIER " && sha256sum *", remote))
		return -1;
	return phone_run(p, ADB_TIMEOUT_MS, command, e);
}

static int
verifier_run(struct phone *p, const char *remote, struct err *e)
{
	const struct suite *s = p->w->suite;
	char command[3000];
	struct buf names;
	int i, rc = 0;

	buf_init(&names, 2000);
	for (i = 0; rc == 0 && i < s->fixture_count; i++)
		rc = buf_addf(&names, e, "%s%s", i ? "," : "", s->fixtures[i]);
	if (rc == 0)
		rc = str_fmt(command, sizeof command, e, "cd %s && VERIFY_SPIRV_DIR=. ./" VERIFIER
			" --json --fixtures . --tolerance %.9g --only '%s'", remote, s->tolerance,
			names.data);
	buf_fini(&names);
	return rc ? rc : phone_run(p, p->w->ask->fixture_timeout_ms
		? p->w->ask->fixture_timeout_ms : RUN_TIMEOUT_MS, command, e);
}

static enum reason
fixtures_reason(const struct err *e)
{
	switch (e->code) {
	case ERR_NOTFOUND:
	case ERR_PARSE:
		return REASON_TOOL_MISSING;
	case ERR_UNSUPPORTED:
		return REASON_ARTIFACT_WRONG_MACHINE;
	case ERR_NOSPACE:
		return REASON_PUSH_MISMATCH;
	default:
		return gate_reason_of(e);
	}
}

void
gate_phone_fixtures(struct work *w, struct gate *g)
{
	struct phone p = {.w = w, .t = gate_open(w, g, "fixtures"), .serial = w->device.uuid};
	const char *remote = setting("ELIZA_ANDROID_VULKAN_REMOTE_DIR", REMOTE_DIR);
	const char *out = setting("ELIZA_ANDROID_VULKAN_OUT_DIR", "android-vulkan-smoke");
	struct files *f = calloc(1, sizeof *f);
	char dir[GATE_PATH] = "";
	struct err e = {0};

	if (p.t == NULL) {
		free(f);
		return;
	}
	gate_factf(p.t, "serial", "%s", p.serial);
	if (f == NULL)
		gate_say(p.t, REASON_INTERNAL, NULL, "no memory for a list of files");
	else if (!is_remote_dir(remote))
		gate_say(p.t, REASON_TOOL_MISSING, "give a folder below /data/local/tmp",
			"ELIZA_ANDROID_VULKAN_REMOTE_DIR may not be \"%.80s\"", remote);
	else if (adb_find(p.adb, sizeof p.adb, &e) || verifier_add(f, out, &e) ||
		 str_fmt(dir, sizeof dir, &e, "%s/phone-%s", w->ask->cache_dir, w->job->id) ||
		 fixtures_add(f, w->suite, dir, &e) || files_push(&p, f, remote, &e) ||
		 verifier_run(&p, remote, &e))
		gate_say(p.t, fixtures_reason(&e), e.hint, "%s", e.msg);
	if (dir[0] != '\0' && plat_is_dir(dir) && plat_remove_tree(dir, &e))
		gate_factf(p.t, "left", "%s", e.msg);
	gate_close(w, g, p.t);
	fixtures_note(w, g);
	free(f);
}

/* ---- graph evidence ---- */

/* As given, then below the folder of the logs' parent, as the shell runner searched. */
static bool
evidence_find(const struct work *w, const char *name, char *out, size_t size)
{
	return (str_copy(out, size, name, NULL) == 0 && plat_is_file(out)) ||
		(name[0] != '/' && str_fmt(out, size, NULL, "%s/../%s", w->ask->log_dir, name) == 0 &&
			plat_is_file(out));
}

void
gate_phone_evidence(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "graph-evidence");
	const char *name = plat_env("ELIZA_ANDROID_VULKAN_GRAPH_EVIDENCE", NULL);
	char path[GATE_PATH], now[24], *text = NULL;
	struct err e = {0};
	size_t len;

	if (t == NULL)
		return;
	plat_utc(plat_now_ms(), now);
	gate_factf(t, "serial", "%s", w->device.uuid);
	gate_factf(t, "commit", "%s", w->source_known ? w->source.commit : "");
	gate_factf(t, "now", "%s", now);
	if (name == NULL)
		gate_say(t, REASON_EVIDENCE_MISSING, NULL,
			"ELIZA_ANDROID_VULKAN_GRAPH_EVIDENCE names no file");
	else if (!evidence_find(w, name, path, sizeof path))
		gate_say(t, REASON_EVIDENCE_MISSING, NULL, "%.200s is not there", name);
	else if (plat_read_file(path, 1u << 20, &text, &len, &e) ||
		 transcript_bytes(t, path, text, len, &e))
		gate_say(t, REASON_EVIDENCE_MISSING, e.hint, "%s", e.msg);
	gate_close(w, g, t);
	free(text);
}
