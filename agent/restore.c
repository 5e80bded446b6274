/* What a dead worker knew, read again from the logs that it left. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gate.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define LOG_MAX (64u << 20)

struct log {
	const char *text;
	size_t len;
};

static void
fact(const struct log *l, const char *key, char *out, size_t size)
{
	if (!log_fact(l->text, l->len, key, out, size))
		out[0] = '\0';
}

static int64_t
number(const struct log *l, const char *key)
{
	char text[32];
	uint64_t n = 0;

	fact(l, key, text, sizeof text);
	return str_u64(text, 0, INT64_MAX, &n, NULL) ? 0 : (int64_t)n;
}

static bool
is_true(const struct log *l, const char *key)
{
	char text[8];

	fact(l, key, text, sizeof text);
	return strcmp(text, "true") == 0;
}

static void
host_restore(struct work *w, const struct log *l)
{
	if (!host_facts_read(l->text, l->len, &w->host))
		memset(&w->host, 0, sizeof w->host);
}

static void
device_restore(struct work *w, const struct log *l)
{
	if (!device_facts_read(l->text, l->len, w->lane, w->target, &w->device))
		memset(&w->device, 0, sizeof w->device);
}

static void
model_restore(struct work *w, const struct log *l)
{
	struct gguf_info *m = &w->model;
	char text[160], *blank;

	fact(l, "path", w->model_path, sizeof w->model_path);
	fact(l, "sha256", w->model_sha256, sizeof w->model_sha256);
	fact(l, "architecture", m->architecture, sizeof m->architecture);
	fact(l, "name", m->name, sizeof m->name);
	fact(l, "quantisation", m->quantisation, sizeof m->quantisation);
	fact(l, "vocabulary", text, sizeof text);
	if ((blank = strchr(text, ' ')) != NULL) {
		uint64_t n = 0;

		*blank = '\0';
		snprintf(m->vocab_model, sizeof m->vocab_model, "%s", blank + 1);
		m->vocab_size = str_u64(text, 0, INT64_MAX, &n, NULL) ? 0 : (int64_t)n;
	}
	w->model_bytes = (uint64_t)number(l, "bytes");
	m->layers = number(l, "layers");
	m->head_size_k = number(l, "headSizeK");
	m->head_size_v = number(l, "headSizeV");
	m->synthetic = is_true(l, "synthetic");
	w->model_known = true;
}

static void
source_restore(struct work *w, const struct log *l)
{
	struct source_info *s = &w->source;

	fact(l, "kind", s->kind, sizeof s->kind);
	fact(l, "origin", s->origin, sizeof s->origin);
	fact(l, "describe", s->describe, sizeof s->describe);
	fact(l, "commit", s->commit, sizeof s->commit);
	fact(l, "tree", s->tree, sizeof s->tree);
	fact(l, "dirty_digest", s->dirty_digest, sizeof s->dirty_digest);
	fact(l, "bundle_sha256", s->bundle_sha256, sizeof s->bundle_sha256);
	s->dirty = is_true(l, "dirty");
	w->source_known = true;
}

void
work_restore(struct work *w, const struct gate *g)
{
	static void (*const restores[GATE_COUNT])(struct work *, const struct log *) = {
		[GATE_HOST] = host_restore, [GATE_DEVICE] = device_restore,
		[GATE_MODEL] = model_restore, [GATE_SOURCE] = source_restore,
	};
	char path[GATE_PATH], *text = NULL;
	struct log l = {NULL, 0};

	if (restores[g->id] == NULL || g->j.outcome != OUTCOME_PASS || g->log_name[0] == '\0' ||
	    work_path(w, g->log_name, path, sizeof path, NULL) ||
	    plat_read_file(path, LOG_MAX, &text, &l.len, NULL))
		return;
	l.text = text;
	restores[g->id](w, &l);
	free(text);
}

void
work_cut_log(struct work *w, struct gate *g)
{
	if (g->log_name[0] == '\0')
		return;
	g->log_sha256[0] = '\0';
	work_artifact_file(w, g->log_name, g->log_sha256);
	if (g->log_sha256[0] == '\0')
		g->log_name[0] = '\0';
}

static bool
is_listed(const struct work *w, const char *name)
{
	int i;

	for (i = 0; i < w->artifact_count; i++)
		if (strcmp(w->artifacts[i].name, name) == 0)
			return true;
	return false;
}

static int
name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
work_strays(struct work *w)
{
	char *names[GATE_MAX_ARTIFACTS], own[GATE_PATH];
	const struct dirent *de;
	DIR *d = opendir(w->ask->log_dir);
	int i, n = 0;

	snprintf(own, sizeof own, "%s-", w->target ? w->target->name : w->lane->name);
	while (d != NULL && n < GATE_MAX_ARTIFACTS && (de = readdir(d)) != NULL)
		if (str_starts(de->d_name, own) && !is_listed(w, de->d_name) &&
		    (str_ends(de->d_name, ".log") || str_ends(de->d_name, ".out")) &&
		    (names[n] = strdup(de->d_name)) != NULL)
			n++;
	if (d != NULL)
		closedir(d);
	if (n > 1)
		qsort(names, (size_t)n, sizeof *names, name_compare);
	for (i = 0; i < n; i++) {
		work_artifact_file(w, names[i], NULL);
		free(names[i]);
	}
}

/* ---- events ---- */

/* Gates that had ended keep what their events say, with their logs when the bytes are
 * still those; the one in work is what was cut off. */
static void
gate_from_event(struct work *w, const cJSON *o)
{
	const char *name = json_str(o, "gate"), *log = json_str(o, "log");
	const char *sha = json_str(o, "logSha256"), *reason = json_str(o, "reasonCode");
	char path[GATE_PATH], hex[DIGEST_HEX];
	struct gate *g;
	uint64_t bytes;
	int outcome = outcome_find(json_str(o, "outcome"));

	for (g = w->gates; g < w->gates + w->gate_count; g++) {
		if (name == NULL || strcmp(g->name, name) != 0)
			continue;
		if (str_eq(json_str(o, "state"), "start")) {
			g->begun = json_int(o, "t", 0);
			continue;
		}
		if (outcome < 0)
			continue;
		g->ended = json_int(o, "t", 0);
		g->log_name[0] = '\0';
		g->ms = json_int(o, "ms", 0);
		g->j.outcome = (enum outcome)outcome;
		g->j.reason = reason && reason_find(reason) > 0 ? (enum reason)reason_find(reason)
								: REASON_NONE;
		snprintf(g->j.detail, sizeof g->j.detail, "%s",
			json_str(o, "detail") ? json_str(o, "detail") : "");
		snprintf(g->j.hint, sizeof g->j.hint, "%s", json_str(o, "hint") ? json_str(o, "hint") : "");
		if (log != NULL && sha != NULL && strchr(log, '/') == NULL &&
		    work_path(w, log, path, sizeof path, NULL) == 0 &&
		    digest_file(path, hex, &bytes, NULL) == 0 && strcmp(hex, sha) == 0) {
			snprintf(g->log_name, sizeof g->log_name, "%s", log);
			memcpy(g->log_sha256, hex, DIGEST_HEX);
			work_artifact(w, log, hex, bytes, 0);
			work_restore(w, g);
		}
	}
}

/* The log of a gate that was in work is what tells where it stopped. */
static void
log_from_event(struct work *w, const cJSON *o)
{
	const char *name = json_str(o, "gate"), *log = json_str(o, "name");
	struct gate *g;

	for (g = w->gates; g < w->gates + w->gate_count; g++)
		if (g->ended == 0 && str_eq(name, g->name) && log != NULL &&
		    strchr(log, '/') == NULL && strlen(log) < sizeof g->log_name)
			memcpy(g->log_name, log, strlen(log) + 1);
}

void
work_from_events(struct work *w, const char *events_path)
{
	char *text = NULL, *p, *nl;
	size_t len;
	cJSON *o;

	if (events_path == NULL || plat_read_file(events_path, 256u << 20, &text, &len, NULL))
		return;
	for (p = text; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		if (json_parse(p, (size_t)(nl - p), 1u << 20, &o, NULL))
			continue;
		if (str_eq(json_str(o, "type"), "gate"))
			gate_from_event(w, o);
		else if (str_eq(json_str(o, "type"), "log"))
			log_from_event(w, o);
		cJSON_Delete(o);
	}
	free(text);
}
