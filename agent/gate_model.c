/* The model gate: what the GGUF header says, and the digest of every byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/gate.h"
#include "agent/hashcache.h"
#include "common/plat.h"
#include "common/str.h"

struct hashing {
	struct work *w;
	const char *gate;
	int64_t last_ms;
};

static int
hashing_progress(void *arg, uint64_t done, uint64_t total)
{
	struct hashing *h = arg;
	int64_t now = plat_mono_ms();

	if (now - h->last_ms >= 250) {
		h->last_ms = now;
		event_progress(h->w->ask->events, h->gate, done, total, "bytes", "SHA-256 of the model");
	}
	return work_cancelled();
}

int64_t
model_stamp(const char *path)
{
	uint64_t v[4], stamp = 14695981039346656037u;
	struct stat st;
	size_t i;

	if (stat(path, &st))
		return -1;
	v[0] = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	/* nobody sets this one back */
	v[1] = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	v[2] = (uint64_t)st.st_size;
	v[3] = (uint64_t)st.st_ino;
	for (i = 0; i < str_count(v); i++)
		stamp = (stamp ^ v[i]) * 1099511628211u;
	return (int64_t)(stamp >> 1);
}

static void
model_facts(struct transcript *t, const struct work *w)
{
	const struct gguf_info *m = &w->model;

	gate_factf(t, "path", "%s", w->model_path);
	gate_factf(t, "sha256", "%s", w->model_sha256);
	gate_factf(t, "sha256Cached", "%s", w->model_cached ? "true" : "false");
	gate_factf(t, "bytes", "%llu", (unsigned long long)w->model_bytes);
	gate_factf(t, "ggufVersion", "%u", m->version);
	gate_factf(t, "architecture", "%s", m->architecture);
	gate_factf(t, "name", "%s", m->name);
	gate_factf(t, "layers", "%lld", (long long)m->layers);
	gate_factf(t, "embedding", "%lld", (long long)m->embedding);
	gate_factf(t, "heads", "%lld", (long long)m->heads);
	gate_factf(t, "headsKv", "%lld", (long long)m->heads_kv);
	gate_factf(t, "headSizeK", "%lld", (long long)m->head_size_k);
	gate_factf(t, "headSizeV", "%lld", (long long)m->head_size_v);
	gate_factf(t, "vocabulary", "%lld %s", (long long)m->vocab_size, m->vocab_model);
	gate_factf(t, "quantisation", "%s", m->quantisation);
	gate_factf(t, "synthetic", "%s", m->synthetic ? "true" : "false");
}

/* Reads and hashes; the reason when that does not work. */
static enum reason
model_read(struct work *w, struct gate *g, struct err *e)
{
	struct hashing h = {.w = w, .gate = g->name};
	enum reason why = REASON_INTERNAL;
	char cache[GATE_PATH];
	char *whole;
	int bad;

	if (w->job->model == NULL) {
		err_set(e, ERR_BLOCKED, "no model was named");
		return REASON_MODEL_NOT_GIVEN;
	}
	/* the engine runs in another folder, so the path must be a whole one */
	whole = realpath(w->job->model, NULL);
	bad = str_copy(w->model_path, sizeof w->model_path, whole ? whole : w->job->model, e);
	free(whole);
	if (bad || str_fmt(cache, sizeof cache, e, "%s/model-digests", w->ask->cache_dir))
		return REASON_INTERNAL;
	w->model_stamp = model_stamp(w->model_path);
	if (gguf_read(w->model_path, &w->model, &why, e))
		return why;
	if (hashcache_file(cache, w->model_path, hashing_progress, &h, w->model_sha256,
		    &w->model_bytes, &w->model_cached, e))
		return e->code == ERR_CANCELLED ? REASON_CANCELLED
			: e->code == ERR_INTEGRITY ? REASON_MODEL_CHANGED : REASON_MODEL_UNREADABLE;
	w->model_known = true;
	return REASON_NONE;
}

void
gate_model(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "model");
	struct err e = {0};
	enum reason why;

	if (t == NULL)
		return;
	why = model_read(w, g, &e);
	if (why != REASON_NONE) {
		gate_say(t, why, e.hint, "%s", e.msg);
	} else {
		model_facts(t, w);
		gate_done(t, "%s%s, %s, %lld layers, head size %lld, %.1f MiB, SHA-256 %.12s%s",
			w->model.synthetic ? "synthetic " : "", w->model.architecture,
			w->model.quantisation, (long long)w->model.layers,
			(long long)w->model.head_size_k, (double)w->model_bytes / 1048576,
			w->model_sha256, w->model_cached ? " (remembered)" : "");
	}
	gate_close(w, g, t);
}
