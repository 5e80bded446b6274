/*
 * The verdict on a control run: the family on the lane's device gives the numbers of f16 on
 * the CPU, as far as its ceiling allows, and a scrambled cache does not.
 *
 * Where the engine has llama-perplexity, its mean divergence decides.  Where it has not, the
 * greedy text must do: of a synthetic model the right text is known; of another only a text
 * that is the same to the letter says something.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/control.h"
#include "common/judge_impl.h"
#include "common/str.h"

#define SAYS_MAX 8192 /* of a fact */

struct look {
	const struct judge_ask *ask;
	const struct control_facts *f;
	double ceiling;
	struct judgement *out;
};

static const char *const names[CONTROL_PARTS] = {
	[CONTROL_BASE] = "f16 on the CPU", [CONTROL_FAMILY] = "the family on the CPU",
	[CONTROL_DEVICE] = "the family on the device", [CONTROL_SCRAMBLED] = "the scrambled cache",
};

/* A run that is not what the control needs is said in the words of the smoke.  Those on the
 * CPU are our own instrument: what the engine can not do there is no fault of the device. */
static bool
run_wrong(const struct look *l, const struct control_run *r, enum control_part part)
{
	const struct lane *lane = part == CONTROL_DEVICE ? l->ask->lane : lane_find("cpu");
	struct smoke_ask sa = smoke_ask_of(&r->f, lane, suite_placement_of(l->ask->suite, l->ask->family));
	struct smoke_verdict v = {0};

	if (!r->ended) {
		judgement_set(l->out, part == CONTROL_SCRAMBLED ? REASON_CONTROL_NOT_SENSITIVE : REASON_AGENT_DIED,
			part == CONTROL_SCRAMBLED ? "no run with %s is in the log: the library did not reach the engine"
						  : "the log holds no run of %s that ended", names[part]);
		return true;
	}
	elog_judge(&r->f.elog, &sa, &v);
	if (v.outcome == OUTCOME_PASS)
		return false;
	if (part == CONTROL_DEVICE || v.outcome == OUTCOME_INCOMPLETE)
		judgement_set(l->out, v.reason, "%s: %s", names[part], v.detail);
	else
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "%s could not be had: %s", names[part], v.detail);
	return true;
}

/* One model, one text, one cache type; f16 is what the suite calls the baseline. */
static bool
words_wrong(const struct look *l, const struct control_run *runs, const char *prompt)
{
	const char *cache = runs[CONTROL_DEVICE].f.cache_type;
	int i;

	if (!judge_cache_fits(l->ask, cache)) {
		judgement_set(l->out, REASON_KV_TYPE_DIFFERS, "the run asked for %.20s, which is not %s",
			cache[0] ? cache : "no cache type", l->ask->family ? l->ask->family : "a family");
		return true;
	}
	for (i = 0; i < CONTROL_PARTS; i++) {
		if (!runs[i].ended)
			continue;
		if (strcmp(runs[i].f.cache_type, i == CONTROL_BASE ? l->ask->suite->baseline : cache) != 0)
			judgement_set(l->out, REASON_KV_TYPE_DIFFERS, "%s was asked with the type %.20s", names[i],
				runs[i].f.cache_type);
		else if (strcmp(runs[i].f.model, runs[CONTROL_BASE].f.model) != 0)
			judgement_set(l->out, REASON_MODEL_CHANGED, "%s ran another model than f16", names[i]);
		else if (strcmp(runs[i].base, runs[CONTROL_BASE].base) != 0)
			judgement_set(l->out, REASON_AGENT_DIED, "%s was compared with another file than that of f16",
				names[i]);
		else if (prompt != NULL && strcmp(runs[i].prompt, prompt) != 0)
			judgement_set(l->out, REASON_AGENT_DIED, "%s was given another text", names[i]);
		else
			continue;
		return true;
	}
	return false;
}

/* Whether a comparison is one, and over what f16 saw. */
static bool
numbers_wrong(const struct look *l, enum control_part part)
{
	const struct kl *k = &l->f->kl[part].kl, *base = &l->f->kl[CONTROL_BASE].kl;

	if (k->whole && !k->finite && part == CONTROL_DEVICE)
		judgement_set(l->out, REASON_KL_ABOVE_CEILING, "%s gives a divergence that is no number", names[part]);
	else if (k->whole && !k->finite)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "%s gives a divergence that is no number",
			names[part]);
	else if (!k->whole || !k->ordered)
		judgement_set(l->out, k->whole ? REASON_UNKNOWN_TOOL_FORMAT : REASON_SUMMARY_MISSING,
			"%s: the statistics of " CONTROL_TOOL " are %s", names[part],
			k->whole ? "not in order" : "not there or not whole");
	else if (k->chunks != base->chunks || k->context != base->context)
		judgement_set(l->out, REASON_UNKNOWN_TOOL_FORMAT, "%s was measured over %d chunks of %d, f16 over %d of %d",
			names[part], k->chunks, k->context, base->chunks, base->context);
	else
		return false;
	return true;
}

static bool
base_wrong(const struct look *l)
{
	const struct control_run *r = &l->f->kl[CONTROL_BASE];

	if (!r->kl.saved || !r->kl.final || r->kl.chunks <= 0)
		judgement_set(l->out, REASON_SUMMARY_MISSING, "%s: " CONTROL_TOOL " did not say that it saved its numbers",
			names[CONTROL_BASE]);
	else if (!isfinite(r->kl.ppl))
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "%s gives no number to compare with",
			names[CONTROL_BASE]);
	else if (r->kl.context != l->ask->suite->control.context)
		judgement_set(l->out, REASON_UNKNOWN_TOOL_FORMAT, "f16 was measured with a context of %d, the suite asks "
			"%lld", r->kl.context, (long long)l->ask->suite->control.context);
	else
		return false;
	return true;
}

static bool
text_missing(const struct look *l, enum control_part part)
{
	if (l->f->text[part].has_text)
		return false;
	judgement_set(l->out, REASON_LOG_TOO_QUIET, "%s said nothing", names[part]);
	return true;
}

static void
kl_judge(const struct look *l)
{
	const struct control_run *runs = l->f->kl;
	double device = runs[CONTROL_DEVICE].kl.mean, cpu = runs[CONTROL_FAMILY].kl.mean;
	double scrambled = runs[CONTROL_SCRAMBLED].kl.mean;
	char text[DIGEST_HEX];

	digest_bytes(l->ask->suite->control.text, strlen(l->ask->suite->control.text), text);
	if (run_wrong(l, &runs[CONTROL_BASE], CONTROL_BASE) || base_wrong(l) ||
	    run_wrong(l, &runs[CONTROL_DEVICE], CONTROL_DEVICE) || words_wrong(l, runs, NULL) ||
	    numbers_wrong(l, CONTROL_DEVICE))
		return;
	if (strcmp(runs[CONTROL_BASE].prompt, text) != 0)
		judgement_set(l->out, REASON_AGENT_DIED, "f16 was not given the suite's text");
	else if (device > l->ceiling)
		judgement_set(l->out, REASON_KL_ABOVE_CEILING, "mean divergence from f16 is %.6g, the ceiling %g; on the CPU "
			"%s", device, l->ceiling, runs[CONTROL_FAMILY].kl.whole && cpu > l->ceiling ? "it is too high as well"
			: "it is not");
	else if (run_wrong(l, &l->f->text[CONTROL_FAMILY], CONTROL_FAMILY) ||
		 text_missing(l, CONTROL_FAMILY) ||
		 run_wrong(l, &runs[CONTROL_FAMILY], CONTROL_FAMILY) || numbers_wrong(l, CONTROL_FAMILY) ||
		 run_wrong(l, &runs[CONTROL_SCRAMBLED], CONTROL_SCRAMBLED) || numbers_wrong(l, CONTROL_SCRAMBLED))
		return;
	else if (runs[CONTROL_SCRAMBLED].moved == 0)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "the library moved no write to the cache");
	else if (cpu > l->ceiling)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "on the CPU the family is at %.6g without being scrambled, "
			"the ceiling is %g", cpu, l->ceiling);
	else if (scrambled <= l->ceiling)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "the scrambled cache is at %.6g, below the ceiling %g",
			scrambled, l->ceiling);
	else
		judgement_set(l->out, REASON_NONE, "mean divergence from f16 is %.6g, the ceiling %g; on the CPU %.6g, "
			"scrambled %.6g", device, l->ceiling, cpu, scrambled);
}

/* Without llama-perplexity. */
static void
text_judge(const struct look *l)
{
	const struct control_run *runs = l->f->text;
	const char *right = l->f->expected[0] ? l->f->expected : runs[CONTROL_BASE].text;
	bool known = l->f->expected[0] != '\0';

	if (strcmp(runs[CONTROL_DEVICE].text, right) != 0 && known)
		judgement_set(l->out, REASON_KL_ABOVE_CEILING, "the text is \"%.40s\", this model must say \"%.40s\"",
			runs[CONTROL_DEVICE].text, right);
	else if (strcmp(runs[CONTROL_DEVICE].text, right) != 0)
		judgement_set(l->out, REASON_CONTROL_NOT_OFFERED, "the text is not that of f16, and without " CONTROL_TOOL
			" nobody can say whether it is rounding");
	else if (run_wrong(l, &runs[CONTROL_FAMILY], CONTROL_FAMILY) || text_missing(l, CONTROL_FAMILY) ||
		 run_wrong(l, &runs[CONTROL_SCRAMBLED], CONTROL_SCRAMBLED) || text_missing(l, CONTROL_SCRAMBLED))
		return;
	else if (runs[CONTROL_SCRAMBLED].moved == 0 || strcmp(runs[CONTROL_SCRAMBLED].text, right) == 0)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "the text of a scrambled cache is the same");
	else if (strcmp(runs[CONTROL_FAMILY].text, right) != 0)
		judgement_set(l->out, REASON_CONTROL_NOT_SENSITIVE, "on the CPU the family says another text without being "
			"scrambled");
	else
		judgement_set(l->out, REASON_NONE, "%d tokens are those of %s, a scrambled cache gives others; the engine "
			"has no " CONTROL_TOOL, runs[CONTROL_DEVICE].f.tokens_asked, known ? "the model's rule" : "f16");
}

void
judge_control(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct look l = {.ask = ask, .out = out, .ceiling = suite_ceiling(ask->suite, ask->family)};
	struct control_facts *f;
	char why[SAYS_MAX];

	if (judge_decided(log, len, out))
		return;
	if (ask->suite->control.text == NULL || !(l.ceiling > 0)) {
		judgement_set(out, REASON_CONTROL_NOT_SENSITIVE, "the suite has no ceiling for %.40s",
			ask->family ? ask->family : "no family");
		return;
	}
	if ((l.f = f = control_read(log, len, ask->suite->baseline)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	/* the greedy texts are recorded in either case */
	if (!run_wrong(&l, &f->text[CONTROL_BASE], CONTROL_BASE) && !text_missing(&l, CONTROL_BASE) &&
	    !run_wrong(&l, &f->text[CONTROL_DEVICE], CONTROL_DEVICE) && !text_missing(&l, CONTROL_DEVICE) &&
	    !words_wrong(&l, f->text, f->text[CONTROL_BASE].prompt)) {
		if (f->kl_runs > 0)
			kl_judge(&l);
		else if (log_fact(log, len, "divergence", why, sizeof why))
			text_judge(&l);
		else
			judgement_set(out, REASON_AGENT_DIED, "the log holds no run of " CONTROL_TOOL);
	}
	free(f);
}
