/*
 * The verdict on the mtp gate, the claim gemma-runtime: a Gemma model with flash attention
 * and stock caches whose drafter made tokens that the model accepted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/judge_impl.h"
#include "common/ntstatus.h"
#include "common/spec.h"
#include "common/str.h"

static bool
architecture_ok(const struct suite_mtp *m, const struct spec_facts *f)
{
	int i;

	for (i = 0; i < m->architecture_count; i++)
		if (strcmp(m->architectures[i], f->architecture) == 0)
			return true;
	return m->architecture_count == 0;
}

static void
drafter_hint(struct judgement *out)
{
	snprintf(out->hint, sizeof out->hint, "name a drafter with layers of multi-token prediction with --draft-model");
}

/* Of the drafter: its name, or that it has layers to predict more than one token. */
static bool
drafter_wrong(const struct suite_mtp *m, const struct spec_facts *f, struct judgement *out)
{
	int i;

	for (i = 0; i < m->drafter_count; i++)
		if (strcmp(m->drafters[i], f->draft_architecture) == 0)
			return false;
	if (m->drafter_count == 0 || f->nextn)
		return false;
	if (f->draft_architecture[0] == '\0')
		judgement_set(out, REASON_LOG_TOO_QUIET, "the log names no drafter's architecture, and no layers of "
			"multi-token prediction");
	else
		judgement_set(out, REASON_MODEL_NOT_SUITABLE, "the drafter is a %s, the claim is about %s",
			f->draft_architecture, m->drafters[0]);
	drafter_hint(out);
	return true;
}

static bool
cache_wrong(const struct spec_facts *f, const struct lane *lane, struct judgement *out)
{
	int i;

	for (i = 0; i < f->kv_count; i++)
		if (!spec_is_stock(f->kv[i].k) || !spec_is_stock(f->kv[i].v)) {
			judgement_set(out, REASON_KV_NOT_STOCK, "the caches are K %s and V %s", f->kv[i].k, f->kv[i].v);
			return true;
		}
	if (f->kv_count == 0 || f->kv_buffers == 0)
		judgement_set(out, REASON_LOG_TOO_QUIET, "the log names no cache type or no cache buffer");
	else if (f->kv_elsewhere > 0)
		judgement_set(out, REASON_KV_NOT_ON_DEVICE, "a cache is on %s, the lane is for %s", f->kv_device,
			lane->kv_device);
	else
		return false;
	return true;
}

static bool
speculation_wrong(const struct suite_mtp *m, const char *type, const struct spec_facts *f,
	struct judgement *out)
{
	double rate = f->drafted > 0 ? (double)f->accepted / (double)f->drafted : 0;

	if (type == NULL || !spec_is_mtp(type))
		judgement_set(out, REASON_SPEC_NOT_USED, "--spec-type was %.40s", type ? type : "not given");
	else if (f->none || f->implementation[0] == '\0')
		judgement_set(out, REASON_SPEC_NOT_USED, f->none ? "the engine says that no implementation was specified"
			: f->other ? "another speculator was added" : "no line says that the speculator was added");
	else if (f->drafted < 0)
		judgement_set(out, REASON_LOG_TOO_QUIET, "the log has no counters of drafted and accepted tokens");
	else if (f->drafted == 0 || f->accepted == 0)
		judgement_set(out, REASON_NO_DRAFT_ACCEPTED, "drafted %lld, accepted %lld", (long long)f->drafted,
			(long long)f->accepted);
	else if (f->accepted > f->drafted)
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "accepted %lld of %lld: more than were drafted",
			(long long)f->accepted, (long long)f->drafted);
	else if (rate < m->floor)
		judgement_set(out, REASON_ACCEPTANCE_LOW, "%lld of %lld drafts accepted, %.1f %%, the floor is %.1f %%",
			(long long)f->accepted, (long long)f->drafted, rate * 100, m->floor * 100);
	else
		return false;
	return true;
}

static void
facts_judge(const struct judge_ask *ask, const char *type, const struct spec_facts *f,
	struct judgement *out)
{
	const struct suite_mtp *m = &ask->suite->mtp;
	double rate;

	if (f->refused) {
		judgement_set(out, REASON_SPEC_NOT_IN_BUILD, "%s", f->error);
	} else if (f->no_layers) {
		judgement_set(out, REASON_MODEL_NOT_SUITABLE, "the engine says that the drafter has no layers of "
			"multi-token prediction");
		drafter_hint(out);
	} else if (f->architecture[0] == '\0') {
		judgement_set(out, REASON_LOG_TOO_QUIET, "the log does not name the model's architecture");
	} else if (!architecture_ok(m, f)) {
		judgement_set(out, REASON_MODEL_NOT_SUITABLE, "the model is a %s, the claim is about %s", f->architecture,
			m->architectures[0]);
	} else if (!f->flash_on || f->flash_off) {
		judgement_set(out, REASON_FLASH_ATTN_OFF, f->flash_off ? "the engine switched flash attention off"
			: "no line says that flash attention is on");
	} else if (!cache_wrong(f, ask->lane, out) && !speculation_wrong(m, type, f, out) &&
		   !drafter_wrong(m, f, out)) {
		rate = (double)f->accepted / (double)f->drafted;
		judgement_set(out, REASON_NONE, "%s, flash attention, K %s V %s on %s, %s accepted %lld of %lld (%.1f %%%s)",
			f->architecture, f->kv[0].k, f->kv[0].v, f->kv_device, f->implementation,
			(long long)f->accepted, (long long)f->drafted, rate * 100,
			rate > m->ceiling ? ", above the ceiling: let a person look at it" : "");
	}
}

void
judge_mtp(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct spec_facts *f = NULL;
	struct section s;
	size_t pos = 0;
	cJSON *o = NULL;
	char status[96];
	bool found = false;

	if (judge_decided(log, len, out))
		return;
	if ((f = malloc(sizeof *f)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	while (!found && transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0 && strstr(s.head, "\"-m\"") != NULL &&
		    json_parse(s.head, strlen(s.head), 1u << 20, &o, NULL) == 0) {
			found = true;
			spec_parse(s.body, s.len, ask->lane, f);
			if (s.timed_out)
				judgement_set(out, REASON_TIMEOUT, "the engine did not end within the time limit");
			else if (s.cancelled)
				judgement_set(out, REASON_CANCELLED, "cancelled while the engine ran");
			else if (s.signal != 0)
				judgement_set(out, REASON_ENGINE_CRASH, "the engine died by signal %d", s.signal);
			else if (ntstatus_is(s.exit)) {
				ntstatus_show(s.exit, status, sizeof status);
				judgement_set(out, ntstatus_not_loaded(s.exit) ? REASON_TOOL_BROKEN : REASON_ENGINE_CRASH,
					"the engine ended with %s", status);
			} else if (s.exit != 0 && !f->refused && !f->no_layers)
				judgement_set(out, REASON_ENGINE_EXIT, "the engine ended with exit code %d", s.exit);
			else
				facts_judge(ask, judge_argv_value(json_get(o, "argv"), "--spec-type", "--spec-type"), f, out);
			cJSON_Delete(o);
		}
		section_fini(&s);
	}
	if (!found)
		judgement_set(out, REASON_AGENT_DIED, "the log holds no engine run that ended");
	free(f);
}
