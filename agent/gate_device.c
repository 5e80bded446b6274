/* The device gate: /proc/cpuinfo for the cpu lane, every probe of the interface for the
 * others; and the looks at the device that other gates' logs begin and end with. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gate.h"
#include "agent/machine.h"
#include "common/agree.h"
#include "common/bound.h"
#include "common/plat.h"
#include "common/str.h"

extern char **environ;

/* The part of cpuinfo that speaks of the first processor: the others repeat it. */
static size_t
first_processor(const char *text)
{
	const char *end = strstr(text, "\n\n");

	return end != NULL ? (size_t)(end - text) + 1 : strlen(text);
}

static void
cpu_log(struct transcript *t)
{
	struct err e = {0};
	char *text = NULL;
	size_t len;
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	gate_factf(t, "cpus", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	if (pages > 0 && page > 0)
		gate_factf(t, "memoryKiB", "%lld", (long long)pages * (page / 1024));
	gate_factf(t, "pageSize", "%ld", page);
	if (plat_read_file("/proc/cpuinfo", 16u << 20, &text, &len, &e))
		gate_say(t, REASON_PROBE_UNREADABLE, NULL, "%s", e.msg);
	else if (transcript_bytes(t, "/proc/cpuinfo", text, first_processor(text), &e))
		gate_say(t, REASON_PROBE_UNREADABLE, NULL, "%s", e.msg);
	free(text);
}

/* ---- GPUs ---- */

static void
variables_note(struct transcript *t)
{
	char key[160];
	char **entry;

	for (entry = environ; *entry != NULL; entry++)
		if (agree_variable_find(*entry, strcspn(*entry, "=")) != NULL) {
			snprintf(key, sizeof key, "env.%.*s", (int)strcspn(*entry, "="), *entry);
			gate_factf(t, key, "%s", *entry + strcspn(*entry, "=") + 1);
		}
}

void
device_files_each(void (*each)(void *arg, const char *line), void *arg)
{
	static const char *const patterns[] = {"/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm",
		"/dev/kfd", "/dev/dri/renderD*", "/dev/dxg", "/dev/nvidia-caps/*"};
	const struct group *group;
	struct stat st;
	char line[320];
	glob_t g;
	size_t i, k;

	for (i = 0; i < str_count(patterns); i++) {
		if (glob(patterns[i], GLOB_NOSORT, NULL, &g) != 0)
			continue;
		for (k = 0; k < g.gl_pathc && k < 64; k++) {
			if (stat(g.gl_pathv[k], &st))
				continue;
			group = getgrgid(st.st_gid);
			snprintf(line, sizeof line, "%s mode %04o group %s, %s", g.gl_pathv[k],
				(unsigned)st.st_mode & 07777, group != NULL ? group->gr_name : "?",
				access(g.gl_pathv[k], R_OK | W_OK) == 0 ? "may be opened" : "may not be opened");
			each(arg, line);
		}
		globfree(&g);
	}
}

static void
device_file_note(void *arg, const char *line)
{
	gate_factf(arg, "device", "%s", line);
}

/* WSL's kernels say so in their release. */
static const char *
wsl_kind(const char *release)
{
	return strcasestr(release, "microsoft") != NULL ? "2" : "no";
}

/* One source into the log.  A tool that is not there is a fact. */
static int
source_run(const struct work *w, struct transcript *t, const struct agree_row *row, struct err *e)
{
	char path[GATE_PATH], slice[96];
	const char *argv[8] = {path};
	const char *env[] = {slice, NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = row->timeout_ms, .tick = work_tick};
	struct proc_result r;
	struct err missing = {0};
	int i;

	/* of a card in slices CUDA shows the first alone, unless it is told which */
	if (row->api == API_CUDA && w->job->device != NULL && str_starts(w->job->device, "MIG-") &&
	    getenv("CUDA_VISIBLE_DEVICES") == NULL && strcmp(row->argv[0], AGREE_SELF) == 0) {
		snprintf(slice, sizeof slice, "CUDA_VISIBLE_DEVICES=%.64s", w->job->device);
		spec.env = env;
	}
	for (i = 1; row->argv[i] != NULL; i++)
		argv[i] = row->argv[i];
	argv[i] = NULL;
	if (strcmp(row->argv[0], AGREE_SELF) == 0) {
		if (plat_self(path, sizeof path, e))
			return -1;
	} else if (plat_find_tool(row->argv[0], path, sizeof path, &missing)) {
		gate_factf(t, "absent", "%s: %s", row->name, missing.msg);
		return 0;
	}
	return transcript_run(t, &spec, NULL, &r, e);
}

static int
gpu_log(const struct work *w, struct transcript *t, struct err *e)
{
	struct utsname u;
	size_t i;

	gate_factf(t, "wantedDevice", "%s", w->job->device ? w->job->device : "");
	if (machine_uname(&u) == 0) {
		gate_factf(t, "hostArch", "%s", u.machine);
		gate_factf(t, "wsl", "%s", wsl_kind(u.release));
	}
	if (machine_dir() != NULL)
		gate_factf(t, "simulated", "%s", machine_name());
	if (str_eq(getenv("ELIZA_ALLOW_SOFTWARE_VULKAN"), "1"))
		gate_factf(t, "softwareAllowed", "1");
	gate_factf(t, "uid", "%u", (unsigned)geteuid());
	variables_note(t);
	device_files_each(device_file_note, t);
	for (i = 0; i < agree_row_count; i++)
		if (agree_rows[i].api == w->lane->api && source_run(w, t, &agree_rows[i], e))
			return -1;
	return 0;
}

/* What each source said, side by side, for whoever reads the log. */
static void
table_note(struct work *w, struct gate *g, struct transcript *t)
{
	struct agree *a = malloc(sizeof *a);
	char path[GATE_PATH], *text = NULL;
	struct buf b;
	size_t len;

	buf_init(&b, 65536);
	if (a != NULL && work_path(w, g->log_name, path, sizeof path, NULL) == 0 &&
	    plat_read_file(path, 64u << 20, &text, &len, NULL) == 0) {
		agree_read(text, len, w->lane->api, a);
		/* a full disk is seen when the log is closed */
		if (agree_table(a, &b, NULL) == 0 && b.len > 0 &&
		    transcript_bytes(t, "probes", b.data, b.len, NULL))
			len = 0;
	}
	free(text);
	free(a);
	buf_fini(&b);
}

void
gate_device(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "device");
	struct err e = {0};
	char path[GATE_PATH], *text = NULL;
	size_t len;

	if (t == NULL)
		return;
	if (w->lane->api == API_CPU)
		cpu_log(t);
	else if (gpu_log(w, t, &e))
		gate_say(t, gate_reason_of(&e), e.hint, "%s", e.msg);
	else
		table_note(w, g, t);
	gate_close(w, g, t);
	if (g->j.outcome == OUTCOME_PASS && work_path(w, g->log_name, path, sizeof path, &e) == 0 &&
	    plat_read_file(path, 64u << 20, &text, &len, &e) == 0)
		device_facts_read(text, len, w->lane, w->target, &w->device);
	free(text);
}

bool
device_now(const struct target *t, struct device_facts *out)
{
	char *text = NULL;
	size_t len;
	bool ok;

	if (plat_read_file("/proc/cpuinfo", 16u << 20, &text, &len, NULL))
		return false;
	ok = device_facts_cpuinfo(text, first_processor(text), t, out);
	free(text);
	return ok;
}

/* ---- looks at the device ---- */

int
gate_look(const struct work *w, const struct gate *g, struct transcript *t, struct err *e)
{
	char self[GATE_PATH];
	const char *argv[] = {self, "probe", bound_probe(w->lane->api), "--device", w->device.uuid, NULL};
	struct proc_spec spec = {.argv = argv, .timeout_ms = 30000, .tick = work_tick};
	struct proc_result r;

	if (!bound_gate(w->lane, g->id))
		return 0;
	return plat_self(self, sizeof self, e) ? -1 : transcript_run(t, &spec, NULL, &r, e);
}
