/* The verdict on a graph smoke: the engine run in the log, judged by elog. */
#include "common/judge_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"

/* The word after one of the options in an argv. */
const char *
judge_argv_value(const cJSON *argv, const char *option, const char *other)
{
	const cJSON *v;
	const char *found = NULL;
	size_t n = strlen(option);

	cJSON_ArrayForEach(v, argv) {
		if (!cJSON_IsString(v))
			continue;
		if (strcmp(v->valuestring, option) == 0 || strcmp(v->valuestring, other) == 0)
			found = v->next != NULL ? cJSON_GetStringValue(v->next) : found;
		else if (n > 2 && strncmp(v->valuestring, option, n) == 0 && v->valuestring[n] == '=')
			found = v->valuestring + n + 1;
	}
	return found;
}

static void
smoke_argv(const char *head, struct smoke_facts *out)
{
	cJSON *o = NULL;
	const cJSON *argv;
	const char *v;
	uint32_t n;

	if (json_parse(head, strlen(head), 1u << 20, &o, NULL))
		return;
	argv = json_get(o, "argv");
	if ((v = cJSON_GetStringValue(cJSON_GetArrayItem(argv, 0))) != NULL)
		snprintf(out->driver, sizeof out->driver, "%s", str_base(v));
	if ((v = judge_argv_value(argv, "--cache-type-k", "-ctk")) != NULL)
		snprintf(out->cache_type, sizeof out->cache_type, "%s", v);
	if ((v = judge_argv_value(argv, "-n", "--predict")) != NULL && str_u32(v, 0, 1u << 20, &n, NULL) == 0)
		out->tokens_asked = (int)n;
	if ((v = judge_argv_value(argv, "-m", "--model")) != NULL)
		snprintf(out->model, sizeof out->model, "%s", v);
	cJSON_Delete(o);
}

void
smoke_facts_section(const struct section *s, struct smoke_facts *out)
{
	memset(out, 0, sizeof *out);
	smoke_argv(s->head, out);
	elog_parse(s->body, s->len, &out->elog);
	out->exit = s->exit;
	out->signal = s->signal;
	out->timed_out = s->timed_out;
	out->cancelled = s->cancelled;
	out->dropped = s->dropped;
	out->ms = s->ms;
}

bool
smoke_facts_read(const char *log, size_t len, struct smoke_facts *out)
{
	struct section s;
	size_t pos = 0;
	bool found = false;

	memset(out, 0, sizeof *out);
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0 && strstr(s.head, "--cache-type-k") != NULL) {
			/* nothing of a run before it stays */
			found = s.ended;
			smoke_facts_section(&s, out);
			out->lines_before = str_lines(log, (size_t)(s.body - log));
		}
		section_fini(&s);
	}
	return found;
}

struct smoke_ask
smoke_ask_of(const struct smoke_facts *f, const struct lane *lane,
	const struct suite_placement *placement)
{
	return (struct smoke_ask){.lane = lane, .cache_type = f->cache_type,
		.tokens = f->tokens_asked, .exit = f->exit, .signal = f->signal,
		.timed_out = f->timed_out, .cancelled = f->cancelled, .dropped = f->dropped,
		.lines_before = f->lines_before,
		.placement = placement};
}

/* The cache type must be the one that the family stands for. */
bool
judge_cache_fits(const struct judge_ask *ask, const char *cache)
{
	const struct suite_family *f;
	int k;

	if (ask->only_cache != NULL)
		return strcmp(cache, ask->only_cache) == 0;
	if (ask->family == NULL)
		return false;
	if (strcmp(ask->family, "baseline") == 0)
		return strcmp(cache, ask->suite->baseline) == 0;
	f = suite_family_find(ask->suite, ask->family);
	for (k = 0; f != NULL && k < f->alias_count; k++)
		if (strcmp(f->aliases[k], cache) == 0)
			return true;
	return false;
}

void
judge_smoke(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct smoke_facts *f = ask->smoke;
	struct smoke_ask sa;
	struct smoke_verdict v = {0};

	if (judge_decided(log, len, out))
		return;
	if (f == NULL && (f = calloc(1, sizeof *f)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	if (!(ask->smoke != NULL && ask->smoke_read) && !smoke_facts_read(log, len, f)) {
		judgement_set(out, REASON_AGENT_DIED, "the log holds no engine run that ended");
		goto out;
	}
	if (!judge_cache_fits(ask, f->cache_type)) {
		judgement_set(out, REASON_KV_TYPE_DIFFERS, "the run asked for %.20s, which is not %s",
			f->cache_type[0] ? f->cache_type : "no cache type",
			ask->family ? ask->family : "a family");
		goto out;
	}
	sa = smoke_ask_of(f, ask->lane, suite_placement_of(ask->suite, ask->family));
	elog_judge(&f->elog, &sa, &v);
	out->outcome = v.outcome;
	out->reason = v.reason;
	snprintf(out->detail, sizeof out->detail, "%s", v.detail);
	snprintf(out->hint, sizeof out->hint, "%s", v.hint);
	/* fewer tokens than the suite asks can not be argued away by a smaller -n */
	if (out->outcome == OUTCOME_PASS && f->tokens_asked < ask->min_tokens)
		judgement_set(out, REASON_TOO_FEW_TOKENS,
			"only %d tokens were asked for, the suite wants %lld", f->tokens_asked,
			(long long)ask->min_tokens);
out:
	if (f != ask->smoke)
		free(f);
}

double
output_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned *row, left, up_left, best;
	size_t i, k;
	double d;

	a_len = a_len < 4096 ? a_len : 4096;
	b_len = b_len < 4096 ? b_len : 4096;
	if (a_len == 0 && b_len == 0)
		return 0;
	if ((row = malloc((b_len + 1) * sizeof *row)) == NULL)
		return -1;
	for (k = 0; k <= b_len; k++)
		row[k] = (unsigned)k;
	for (i = 0; i < a_len; i++) {
		up_left = row[0];
		row[0] = left = (unsigned)i + 1;
		for (k = 0; k < b_len; k++) {
			best = up_left + (a[i] != b[k]);
			if (row[k + 1] + 1 < best)
				best = row[k + 1] + 1;
			if (left + 1 < best)
				best = left + 1;
			up_left = row[k + 1];
			row[k + 1] = left = best;
		}
	}
	d = (double)row[b_len] / (double)(a_len > b_len ? a_len : b_len);
	free(row);
	return d;
}
