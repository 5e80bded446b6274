/* The report: schema 2, a superset of what the shell runners wrote, and its envelope. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gate.h"
#include "agent/machine.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

static bool
add_utc(cJSON *o, const char *key, int64_t ms)
{
	char text[24];

	if (ms == 0)
		return json_add_null(o, key);
	plat_utc(ms, text);
	return json_add_str(o, key, text);
}

/* ---- the fields of schema 1, same names and meaning ---- */

/* The Grace Hopper runner left the work to the CUDA runner, and its report to a second one. */
static bool
is_delegator(const struct work *w, bool delegate)
{
	return w->lane->kin == KIN_GRACE && !delegate;
}

/* What the runner of a lane asks for, in the words of schema 1. */
static const struct need {
	const char *lane, *arch, *tools[6], *hardware, *fixture_parity;
} needs[] = {
	{"cpu", NULL, {"cmake", "ninja", "cc", "c++", "git"}, "the CPU that /proc/cpuinfo reports", NULL},
	{"cuda", NULL, {"nvcc", "nvidia-smi"}, "an NVIDIA GPU that NVML, CUDA and nvidia-smi agree on", NULL},
	{"gh200", "aarch64/arm64", {"nvcc", "nvidia-smi"}, "a Hopper GPU (compute capability 9.x) on aarch64",
		"delegated to cuda-verify"},
	{"rocm", "x86_64/amd64", {"hipcc", "rocminfo"}, "an AMD GPU that KFD, rocminfo and HIP agree on",
		"hip-verify on the device"},
	{"vulkan", NULL, {"glslc", "vulkaninfo"}, "a hardware Vulkan device of a native driver", NULL},
	{"android", NULL, {"adb", "clang", "glslc"}, "a phone, no emulator, behind adb", NULL},
	{"windows-cuda", NULL, {"nvidia-smi", "nvcc"}, "an NVIDIA GPU", NULL},
	{"windows-vulkan", NULL, {"vulkaninfo"}, "a hardware Vulkan device", NULL},
	{"windows-cpu", NULL, {NULL}, "the CPU", NULL},
	{"metal", NULL, {NULL}, "an Apple GPU", NULL},
};

static const struct need *
need_of(const struct lane *lane)
{
	size_t i;

	for (i = 0; i < str_count(needs) - 1 && strcmp(needs[i].lane, lane->name) != 0; i++)
		;
	return &needs[i];
}

static bool
requirements(cJSON *r, const struct work *w, bool delegate)
{
	const struct need *n = need_of(delegate ? lane_find("cuda") : w->lane);
	cJSON *o = json_add_object(r, "requirements"), *tools;
	bool smoked = !w->skip_smoke && (w->job->only == ONLY_ALL || w->job->only == ONLY_SMOKE);
	char fixtures[96];
	size_t i;

	if (o == NULL || !json_add_str(o, "os", w->target ? w->target->os : "Linux") ||
	    !json_add_str(o, "arch", n->arch ? n->arch : w->target ? w->target->arch : "x86_64 or aarch64") ||
	    (tools = json_add_array(o, "toolchain")) == NULL)
		return false;
	for (i = 0; i < str_count(n->tools) && n->tools[i] != NULL; i++)
		if (!cJSON_AddItemToArray(tools, cJSON_CreateString(n->tools[i])))
			return false;
	snprintf(fixtures, sizeof fixtures, "%s, every fixture of the suite, with controls",
		w->lane->harness);
	return json_add_str(o, "hardware", n->hardware) && json_add_str(o, "fixtures", fixtures) &&
		(n->fixture_parity == NULL || json_add_str(o, "fixtureParity", n->fixture_parity)) &&
		(!is_delegator(w, delegate) || json_add_str(o, "delegatedRunner", "cuda_runner.sh")) &&
		json_add_str(o, "graphSmoke", !smoked ? "skipped"
			: is_delegator(w, delegate) ? "delegated-required" : "required");
}

/* Sentence of a gate that passed, NULL otherwise. */
static const char *
passed_detail(const struct work *w, enum gate_id id)
{
	int i;

	for (i = 0; i < w->gate_count; i++)
		if (w->gates[i].id == id && w->gates[i].j.outcome == OUTCOME_PASS)
			return w->gates[i].j.detail;
	return NULL;
}

static bool
evidence(cJSON *r, const struct work *w, bool delegate)
{
	cJSON *o = json_add_object(r, "evidence"), *runs, *run;
	const cJSON *s;
	char info[512];
	int i;

	if (w->lane->api == API_CPU)
		snprintf(info, sizeof info, "%s, %s", w->device.name, w->device.level);
	else
		snprintf(info, sizeof info, "%s, %s, %s, %s", w->device.name, w->device.driver,
			w->device.level, w->device.uuid);
	if (o == NULL || !json_add_str(o, "gpuInfo", w->device.name[0] ? info : NULL) ||
	    !json_add_str(o, "toolchainInfo", passed_detail(w, GATE_TOOLCHAIN)) ||
	    !json_add_str(o, "cmakeFlags", w->job->override[OVERRIDE_CMAKE_FLAGS]) ||
	    !json_add_text(o, "model", w->job->model ? w->job->model : "",
		    w->job->model ? strlen(w->job->model) : 0) ||
	    !json_add_str(o, "modelSha256", w->model_known ? w->model_sha256 : NULL) ||
	    (is_delegator(w, delegate) &&
		    !json_add_str(o, "delegatedReport", w->delegate_path[0] ? w->delegate_path : NULL)) ||
	    (runs = json_add_array(o, "cacheRuns")) == NULL)
		return false;
	for (i = 0; i < w->gate_count; i++) {
		if (w->gates[i].id != GATE_GRAPH_SMOKE || w->gates[i].j.outcome != OUTCOME_PASS)
			continue;
		run = cJSON_CreateObject();
		if (run == NULL || !cJSON_AddItemToArray(runs, run) ||
		    !json_add_str(run, "family", w->gates[i].family))
			return false;
		cJSON_ArrayForEach(s, w->smokes)
			if (str_eq(json_str(s, "family"), w->gates[i].family) &&
			    !json_add_str(run, "cache", json_str(s, "cacheAsked")))
				return false;
		if (!json_add_str(run, "log", w->gates[i].log_name) ||
		    !json_add_str(run, "backendPattern", w->lane->kv_device) ||
		    !json_add_str(run, "status", "pass"))
			return false;
	}
	return true;
}

static bool
head(cJSON *r, const struct work *w, const struct verdict *v, bool delegate)
{
	cJSON *host;
	const char *failure = v->outcome == OUTCOME_PASS ? NULL : v->detail;

	return json_add_int(r, "schemaVersion", 2) && json_add_str(r, "runner", delegate ? "cuda_runner.sh" : w->lane->runner) &&
		json_add_str(r, "status", v->outcome == OUTCOME_PASS ? "pass" : "fail") &&
		json_add_bool(r, "passRecordable", v->recordable) &&
		json_add_int(r, "exitCode", v->exit) &&
		(failure ? json_add_text(r, "failureReason", failure, strlen(failure))
			 : json_add_null(r, "failureReason")) &&
		add_utc(r, "startedAt", w->started_ms) &&
		add_utc(r, "finishedAt", plat_now_ms()) &&
		(host = json_add_object(r, "host")) != NULL &&
		json_add_str(host, "os", w->host.os) && json_add_str(host, "arch", w->host.arch) &&
		json_add_str(host, "kernel", w->host.kernel) &&
		json_add_text(host, "hostname", w->host.hostname, strlen(w->host.hostname)) &&
		json_add_str(host, "virtualisation", w->host.virtualisation) &&
		json_add_str(host, "emulated", w->host.emulated) &&
		json_add_str(r, "target", w->target ? w->target->name : NULL) &&
		json_add_bool(r, "remoteDelegated", false) && requirements(r, w, delegate) &&
		evidence(r, w, delegate);
}

/* ---- schema 2 ---- */

static bool
identity(cJSON *r, const struct work *w, const struct verdict *v)
{
	cJSON *agent, *suite;

	return json_add_str(r, "outcome", outcome_name(v->outcome)) &&
		json_add_str(r, "reasonCode", v->reason == REASON_NONE ? NULL : reason_name(v->reason)) &&
		json_add_str(r, "jobId", w->job->id) && json_add_str(r, "nonce", w->job->nonce) &&
		json_add_str(r, "jobDigest", w->job->digest) &&
		json_add_str(r, "lane", w->lane->name) &&
		json_add_bool(r, "simulated", machine_dir() != NULL || w->device.simulated) &&
		json_add_str(r, "only", w->job->only == ONLY_ALL ? NULL : only_name(w->job->only)) &&
		(suite = json_add_object(r, "suite")) != NULL &&
		json_add_str(suite, "name", w->suite->name) &&
		json_add_str(suite, "digest", w->suite->digest) &&
		(agent = json_add_object(r, "agent")) != NULL &&
		json_add_str(agent, "version", VERSION) &&
		json_add_str(agent, "keyId", w->ask->key ? sign_key_id(w->ask->key) : NULL) &&
		json_add_str(agent, "bootId", w->boot_id);
}

static bool
device(cJSON *r, const struct work *w)
{
	const struct device_facts *d = &w->device;
	cJSON *o = json_add_object(r, "device");

	return o != NULL && json_add_str(o, "class", d->device_class[0] ? d->device_class : NULL) &&
		json_add_str(o, "name", d->name[0] ? d->name : NULL) &&
		json_add_str(o, "uuid", d->uuid[0] ? d->uuid : NULL) &&
		json_add_str(o, "pci", d->pci[0] ? d->pci : NULL) &&
		json_add_str(o, "driver", d->driver[0] ? d->driver : w->lane->api == API_CPU ? w->host.kernel
				: NULL) &&
		json_add_str(o, "firmware", d->firmware[0] ? d->firmware : NULL) &&
		json_add_bool(o, "software", d->software) && json_add_bool(o, "faked", d->faked) &&
		json_add_bool(o, "emulator", d->emulator) &&
		json_add_str(o, "override", d->override[0] ? d->override : NULL) &&
		json_add_bool(o, "wsl", d->wsl) && json_add_bool(o, "vgpu", d->vgpu) &&
		(d->memory_bytes >= 0 ? json_add_int(o, "memoryBytes", d->memory_bytes)
				      : json_add_null(o, "memoryBytes")) &&
		json_add_str(o, "mig", d->mig[0] ? d->mig : NULL) &&
		json_add_str(o, "virtualisation", w->host.virtualisation) &&
		json_add_str(o, "level", d->level) && json_add_str(o, "features", d->features) &&
		(d->cpus > 0 ? json_add_int(o, "cpus", d->cpus) : json_add_null(o, "cpus"));
}

static bool
source(cJSON *r, const struct work *w)
{
	const struct source_info *s = &w->source;
	cJSON *o;

	if (!w->source_known)
		return json_add_null(r, "source");
	return (o = json_add_object(r, "source")) != NULL && json_add_str(o, "kind", s->kind) &&
		json_add_text(o, "origin", s->origin, strlen(s->origin)) &&
		json_add_text(o, "describe", s->describe, strlen(s->describe)) &&
		json_add_str(o, "commit", s->commit[0] ? s->commit : NULL) &&
		json_add_str(o, "tree", s->tree) && json_add_bool(o, "dirty", s->dirty) &&
		json_add_str(o, "dirtyDigest", s->dirty ? s->dirty_digest : NULL) &&
		json_add_str(o, "bundleSha256", s->bundle_sha256[0] ? s->bundle_sha256 : NULL);
}

/* The device code of an artifact, as its sections say. */
static bool
code_add(cJSON *o, const struct work *w, int artifact)
{
	const cJSON *names = cJSON_GetArrayItem(w->code, artifact);

	return names != NULL ? json_add(o, "codeObjects", cJSON_Duplicate(names, true))
			     : json_add_array(o, "codeObjects") != NULL;
}

static bool
build(cJSON *r, const struct work *w)
{
	const struct build_info *b = &w->build;
	cJSON *o, *list, *a;
	int i;

	if (!w->build_known)
		return json_add_null(r, "build");
	if ((o = json_add_object(r, "build")) == NULL ||
	    !json_add_bool(o, "prebuilt", b->prebuilt) || !json_add_bool(o, "reused", b->reused) ||
	    !json_add_str(o, "key", b->key) || !json_add_str(o, "flags", b->flags) ||
	    !json_add_str(o, "compiler", b->cxx.path) ||
	    !json_add_str(o, "compilerVersion", b->cxx.version) ||
	    !json_add_str(o, "compilerSha256", b->cxx.sha256[0] ? b->cxx.sha256 : NULL) ||
	    !json_add_str(o, "deviceCompiler", b->device.path[0] ? b->device.path : NULL) ||
	    !json_add_str(o, "deviceCompilerVersion", b->device.path[0] ? b->device.version : NULL) ||
	    !json_add_str(o, "cmake", b->cmake) || !json_add_str(o, "ninja", b->ninja) ||
	    !json_add_bool(o, "ccache", b->ccache) || !json_add_str(o, "builtAt", b->built_at) ||
	    !json_add_bool(o, "installed", w->install.installed) ||
	    !json_add_str(o, "publishGate", w->install.gate[0] ? w->install.gate : NULL) ||
	    !json_add_text(o, "binDir", w->engine_dir, strlen(w->engine_dir)) ||
	    (list = json_add_array(o, "artifacts")) == NULL)
		return false;
	for (i = 0; i < b->artifact_count; i++) {
		a = cJSON_CreateObject();
		if (a == NULL || !cJSON_AddItemToArray(list, a) ||
		    !json_add_str(a, "name", b->artifacts[i].name) ||
		    !json_add_int(a, "bytes", (int64_t)b->artifacts[i].bytes) ||
		    !json_add_str(a, "sha256", b->artifacts[i].sha256) ||
		    !json_add_int(a, "elfMachine", b->artifacts[i].machine) ||
		    !json_add_str(a, "buildId", b->artifacts[i].build_id[0] ? b->artifacts[i].build_id
				: NULL) ||
		    !code_add(a, w, i))
			return false;
	}
	return true;
}

static bool
model(cJSON *r, const struct work *w)
{
	const struct gguf_info *m = &w->model;
	cJSON *o;

	if (!w->model_known)
		return json_add_null(r, "model");
	return (o = json_add_object(r, "model")) != NULL &&
		json_add_text(o, "path", w->model_path, strlen(w->model_path)) &&
		json_add_int(o, "bytes", (int64_t)w->model_bytes) &&
		json_add_str(o, "sha256", w->model_sha256) &&
		json_add_str(o, "architecture", m->architecture) &&
		json_add_str(o, "name", m->name) && json_add_int(o, "layers", m->layers) &&
		json_add_int(o, "headSize", m->head_size_k) &&
		json_add_int(o, "headSizeV", m->head_size_v) &&
		json_add_str(o, "vocabulary", m->vocab_model) &&
		json_add_int(o, "vocabularySize", m->vocab_size) &&
		json_add_str(o, "quantisation", m->quantisation) &&
		json_add_bool(o, "synthetic", m->synthetic);
}

static bool
gates_add(cJSON *r, const struct work *w)
{
	cJSON *list = json_add_array(r, "gates"), *o, *log;
	const struct gate *g;

	for (g = w->gates; list != NULL && g < w->gates + w->gate_count; g++) {
		o = cJSON_CreateObject();
		if (o == NULL || !cJSON_AddItemToArray(list, o) || !json_add_str(o, "name", g->name) ||
		    !json_add_str(o, "outcome", outcome_name(g->j.outcome)) ||
		    !json_add_str(o, "reasonCode", g->j.reason == REASON_NONE ? NULL
				: reason_name(g->j.reason)) ||
		    !json_add_text(o, "detail", g->j.detail, strlen(g->j.detail)) ||
		    !json_add_text(o, "hint", g->j.hint, strlen(g->j.hint)) ||
		    !add_utc(o, "startedAt", g->begun) || !add_utc(o, "finishedAt", g->ended) ||
		    !json_add_int(o, "ms", g->ms))
			return false;
		if (g->log_name[0] == '\0') {
			if (!json_add_null(o, "log"))
				return false;
		} else if ((log = json_add_object(o, "log")) == NULL ||
			!json_add_str(log, "name", g->log_name) ||
			!json_add_str(log, "sha256", g->log_sha256)) {
			return false;
		}
	}
	return list != NULL;
}

static bool
claims(cJSON *r, const struct verdict *v)
{
	cJSON *o = json_add_object(r, "claims");
	int c;

	for (c = 0; o != NULL && c < CLAIM_COUNT; c++)
		if (!json_add_str(o, claim_name((enum claim)c), outcome_name(v->claims[c])))
			return false;
	return o != NULL;
}

static bool
artifacts(cJSON *r, const struct work *w)
{
	cJSON *list = json_add_array(r, "artifacts"), *o;
	const struct artifact *a;

	for (a = w->artifacts; list != NULL && a < w->artifacts + w->artifact_count; a++) {
		o = cJSON_CreateObject();
		if (o == NULL || !cJSON_AddItemToArray(list, o) || !json_add_str(o, "name", a->name) ||
		    !json_add_int(o, "bytes", (int64_t)a->bytes) ||
		    !json_add_str(o, "sha256", a->sha256) ||
		    !json_add_bool(o, "truncated", a->dropped > 0))
			return false;
	}
	return list != NULL;
}

static bool
copies(cJSON *r, const struct work *w)
{
	return json_add(r, "fixtures", cJSON_Duplicate(w->fixtures, true)) &&
		json_add(r, "controls", cJSON_Duplicate(w->controls, true)) &&
		(w->kernels ? json_add(r, "kernels", cJSON_Duplicate(w->kernels, true))
			    : json_add_null(r, "kernels")) &&
		(w->ops ? json_add(r, "opParity", cJSON_Duplicate(w->ops, true))
			: json_add_null(r, "opParity")) &&
		(w->routes ? json_add(r, "engineRoutes", cJSON_Duplicate(w->routes, true))
			   : json_add_null(r, "engineRoutes")) &&
		json_add(r, "smokes", cJSON_Duplicate(w->smokes, true)) &&
		(w->cache_controls ? json_add(r, "cacheControls", cJSON_Duplicate(w->cache_controls, true))
				   : json_add_array(r, "cacheControls") != NULL) &&
		json_add(r, "overrides", cJSON_Duplicate(w->overrides, true)) &&
		json_add(r, "probes", cJSON_Duplicate(w->probes, true));
}

static bool
why_not(cJSON *r, const struct verdict *v)
{
	cJSON *list = json_add_array(r, "notRecordable");
	int i;

	for (i = 0; list != NULL && i < v->why_count; i++)
		if (!cJSON_AddItemToArray(list, cJSON_CreateString(v->why[i])))
			return false;
	return list != NULL;
}

static cJSON *
tree_make(const struct work *w, const struct verdict *v, bool delegate)
{
	cJSON *r = cJSON_CreateObject();

	if (r != NULL && head(r, w, v, delegate) && identity(r, w, v) && device(r, w) && copies(r, w) &&
	    source(r, w) && build(r, w) && model(r, w) && gates_add(r, w) && claims(r, v) &&
	    why_not(r, v) && artifacts(r, w))
		return r;
	cJSON_Delete(r);
	return NULL;
}

cJSON *
report_make(const struct work *w, const struct verdict *v)
{
	return tree_make(w, v, false);
}

/* ---- statement and files ---- */

/* GH200_DELEGATE_REPORT, else X.json -> X.cuda.json. */
static int
delegate_path(const struct work_result *out, char *path, size_t size, struct err *e)
{
	const char *given = getenv("GH200_DELEGATE_REPORT");
	size_t n = strlen(out->report_path);

	if (given != NULL && given[0] != '\0')
		return str_copy(path, size, given, e);
	if (str_ends(out->report_path, ".json"))
		n -= 5;
	return str_fmt(path, size, e, "%.*s.cuda.json", (int)n, out->report_path);
}

int
report_delegate(struct work *w, const struct verdict *v, const struct work_result *out,
	struct err *e)
{
	char *text = NULL, *slash, dir[GATE_PATH];
	cJSON *r = NULL;
	int rc = -1;

	if (!is_delegator(w, false))
		return 0;
	if (delegate_path(out, w->delegate_path, sizeof w->delegate_path, e))
		return -1;
	if ((r = tree_make(w, v, true)) == NULL || (text = json_text(r, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the delegate's report");
	} else if (plat_write_file(w->delegate_path, text, strlen(text), 0644, e) == 0) {
		digest_bytes(text, strlen(text), w->delegate_sha256);
		/* what lies among the logs travels with them */
		snprintf(dir, sizeof dir, "%s", w->delegate_path);
		if ((slash = strrchr(dir, '/')) != NULL) {
			*slash = '\0';
			if (strcmp(dir, w->ask->log_dir) == 0)
				work_artifact(w, slash + 1, w->delegate_sha256, strlen(text), 0);
		}
		rc = 0;
	}
	cJSON_Delete(r);
	free(text);
	return rc;
}

static bool
subject(cJSON *list, const char *name, const char *sha256)
{
	cJSON *o = cJSON_CreateObject(), *d;

	if (o == NULL || !cJSON_AddItemToArray(list, o))
		return false;
	return json_add_text(o, "name", name, strlen(name)) &&
		(d = json_add_object(o, "digest")) != NULL && json_add_str(d, "sha256", sha256);
}

static cJSON *
statement(const struct work *w, const cJSON *report, const char *report_sha256)
{
	cJSON *st = cJSON_CreateObject(), *list;
	const char *slash = strrchr(w->model_path, '/');
	int i;
	bool ok;

	ok = st != NULL && json_add_str(st, "_type", SIGN_STATEMENT_TYPE) &&
		(list = json_add_array(st, "subject")) != NULL &&
		subject(list, "report.json", report_sha256);
	for (i = 0; ok && w->build_known && i < w->build.artifact_count; i++)
		ok = subject(list, w->build.artifacts[i].name, w->build.artifacts[i].sha256);
	if (ok && w->delegate_sha256[0] != '\0')
		ok = subject(list, "delegate.cuda.json", w->delegate_sha256);
	if (ok && w->model_known)
		ok = subject(list, slash ? slash + 1 : w->model_path, w->model_sha256);
	for (i = 0; ok && i < w->artifact_count; i++)
		ok = subject(list, w->artifacts[i].name, w->artifacts[i].sha256);
	ok = ok && json_add_str(st, "predicateType", SIGN_PREDICATE_TYPE) &&
		json_add(st, "predicate", cJSON_Duplicate(report, true));
	if (ok)
		return st;
	cJSON_Delete(st);
	return NULL;
}

static int
parent_make(const char *path, struct err *e)
{
	char dir[GATE_PATH];
	char *slash;

	if (str_copy(dir, sizeof dir, path, e))
		return -1;
	if ((slash = strrchr(dir, '/')) == NULL || slash == dir)
		return 0;
	*slash = '\0';
	return plat_mkdirs(dir, 0755, e);
}

/* A report that can not be written is no pass: better told before hours of work.  Nothing
 * but a file is ever replaced. */
static int
report_place(const char *path, struct err *e)
{
	if (plat_exists(path) && !plat_is_file(path)) {
		err_set(e, ERR_USAGE, "--report %.200s: it is there, and no regular file", path);
		return err_hint(e, "give the path of a file");
	}
	return parent_make(path, e) ? err_wrap(e, "--report") : 0;
}

int
report_paths(const struct work *w, struct work_result *out, struct err *e)
{
	char stem[GATE_PATH], name[256];
	size_t n;

	if (w->ask->report_path != NULL) {
		if (str_copy(out->report_path, sizeof out->report_path, w->ask->report_path, e) ||
		    report_place(out->report_path, e))
			return -1;
	} else if (w->ask->runner_names) {
		if (work_name(w, "report", "json", name, sizeof name, e) ||
		    work_path(w, name, out->report_path, sizeof out->report_path, e))
			return -1;
	} else if (work_path(w, "report.json", out->report_path, sizeof out->report_path, e)) {
		return -1;
	}
	if (str_copy(stem, sizeof stem, out->report_path, e))
		return -1;
	n = strlen(stem);
	if (str_ends(stem, ".json"))
		stem[n - 5] = '\0';
	return str_fmt(out->envelope_path, sizeof out->envelope_path, e, "%s.dsse.json", stem);
}

int
report_write(const struct work *w, const cJSON *report, struct work_result *out,
	struct err *e)
{
	char *text = NULL, *payload = NULL, *envelope = NULL;
	cJSON *st = NULL;
	int rc = -1;

	if ((text = json_text(report, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the report");
		goto out;
	}
	digest_bytes(text, strlen(text), out->report_sha256);
	if (plat_write_file(out->report_path, text, strlen(text), 0644, e))
		goto out;
	if (w->ask->key == NULL) {
		rc = 0;
		goto out;
	}
	if ((st = statement(w, report, out->report_sha256)) == NULL ||
	    (payload = json_text(st, false)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the statement");
		goto out;
	}
	if (sign_envelope(w->ask->key, payload, strlen(payload), &envelope, e) ||
	    plat_write_file(out->envelope_path, envelope, strlen(envelope), 0644, e))
		goto out;
	digest_bytes(envelope, strlen(envelope), out->envelope_sha256);
	rc = 0;
out:
	cJSON_Delete(st);
	free(payload);
	free(envelope);
	free(text);
	return rc;
}
