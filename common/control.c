#include "common/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/elog_line.h"
#include "common/json.h"
#include "common/judge_impl.h"
#include "common/str.h"
#include "common/synth_text.h"
#include "common/tool.h"

/* Lines that neither elog nor kl is for. */
static void
message(void *arg, struct span text, char level, size_t line)
{
	struct control_run *r = arg;
	struct span f[SPAN_MAX_FIELDS];

	(void)level;
	(void)line;
	if (span_match(text, "verify scramble: %d writes to the K cache were moved", f))
		r->moved = span_int(f[0]);
	else if (span_match(text, "llama_model_loader: - kv %d: general.synthetic bool = true", f))
		r->synthetic = true;
}

static bool
has_word(const cJSON *argv, const char *word)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, argv)
		if (str_eq(cJSON_GetStringValue(v), word))
			return true;
	return false;
}

/* Which of the parts a run is; it says so itself. */
static enum control_part
part_of(const struct control_run *r, const cJSON *argv, bool tool, const char *baseline)
{
	const char *ngl = judge_argv_value(argv, "-ngl", "--n-gpu-layers");

	if (r->moved >= 0)
		return CONTROL_SCRAMBLED;
	if (!str_eq(ngl, "0"))
		return CONTROL_DEVICE;
	if (tool ? !has_word(argv, "--kl-divergence") : str_eq(r->f.cache_type, baseline))
		return CONTROL_BASE;
	return CONTROL_FAMILY;
}

/* What a synthetic model must say, from the words of the run. */
static void
expected_fill(struct control_facts *out, const cJSON *argv, int tokens)
{
	const char *prompt = judge_argv_value(argv, "-p", "--prompt");

	if (prompt == NULL || tokens <= 0 || synth_expect(prompt, (unsigned)tokens, out->expected,
			sizeof out->expected, NULL))
		out->expected[0] = '\0';
}

/* Gives the run of the driver whose output may follow; NULL: none. */
static struct control_run *
run_take(struct control_facts *out, const struct section *s, const char *baseline, struct control_run *r)
{
	struct control_run *to;
	const char *word;
	char name[64];
	cJSON *o = NULL;
	const cJSON *argv;
	bool tool;

	judge_tool_name(s, name, sizeof name);
	tool = str_starts(name, CONTROL_TOOL);
	if ((!tool && strstr(s->head, "--cache-type-k") == NULL) ||
	    json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL))
		return NULL;
	argv = json_get(o, "argv");
	memset(r, 0, sizeof *r);
	r->ended = s->ended;
	r->moved = -1;
	smoke_facts_section(s, &r->f);
	(void)elog_messages(s->body, s->len, 1, message, r);
	if ((word = judge_argv_value(argv, "--kl-divergence-base", "--kl-divergence-base")) != NULL)
		snprintf(r->base, sizeof r->base, "%s", word);
	if ((word = judge_argv_value(argv, "-p", "--prompt")) != NULL)
		digest_bytes(word, strlen(word), r->prompt);
	if (tool)
		kl_parse(s->body, s->len, &r->kl);
	to = &(tool ? out->kl : out->text)[part_of(r, argv, tool, baseline)];
	*to = *r;
	out->kl_runs += tool;
	if (!tool && r->synthetic)
		expected_fill(out, argv, r->f.tokens_asked);
	cJSON_Delete(o);
	return tool ? NULL : to;
}

static void
text_take(struct control_run *r, const struct section *s)
{
	size_t n = s->len, i = 0;

	while (n > 0 && (span_is_blank(s->body[n - 1]) || s->body[n - 1] == '\n' || s->body[n - 1] == '\r'))
		n--;
	while (i < n && (span_is_blank(s->body[i]) || s->body[i] == '\n' || s->body[i] == '\r'))
		i++;
	n = n - i < sizeof r->text ? n - i : sizeof r->text - 1;
	memcpy(r->text, s->body + i, n);
	r->text[n] = '\0';
	r->has_text = s->ended && n > 0;
}

struct control_facts *
control_read(const char *log, size_t len, const char *baseline)
{
	struct control_facts *out = calloc(1, sizeof *out);
	struct control_run *last = NULL, *room = malloc(sizeof *room);
	struct section s;
	size_t pos = 0;

	while (out != NULL && room != NULL && transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "run") == 0)
			last = run_take(out, &s, baseline, room);
		else if (strcmp(s.kind, "file") == 0 && last != NULL && strstr(s.head, "\"stdout\"") != NULL)
			text_take(last, &s);
		section_fini(&s);
	}
	if (room == NULL) {
		free(out);
		out = NULL;
	}
	free(room);
	/* the family is what all are compared with: one run on the CPU is both */
	if (out != NULL && !out->text[CONTROL_FAMILY].ended &&
	    str_eq(out->text[CONTROL_DEVICE].f.cache_type, baseline))
		out->text[CONTROL_FAMILY] = out->text[CONTROL_BASE];
	return out;
}

/* ---- the report's row ---- */

static bool
kl_add(cJSON *row, const char *key, const struct kl *k)
{
	cJSON *o;

	if (!k->whole)
		return json_add_null(row, key);
	return (o = json_add_object(row, key)) != NULL && json_add_num(o, "mean", k->mean) &&
		json_add_num(o, "error", k->error) && json_add_num(o, "max", k->max) &&
		json_add_num(o, "p99", k->p99) && json_add_num(o, "median", k->median) &&
		json_add_num(o, "sameTop", k->same_top);
}

static bool
text_add(cJSON *row, const char *key, const struct control_run *r, const struct control_run *base)
{
	cJSON *o;
	double d = r->has_text && base->has_text ? output_distance(base->text, strlen(base->text), r->text,
		strlen(r->text)) : -1;

	if (!r->has_text)
		return json_add_null(row, key);
	return (o = json_add_object(row, key)) != NULL && json_add_text(o, "text", r->text, strlen(r->text)) &&
		(d < 0 ? json_add_null(o, "distance") : json_add_num(o, "distance", d));
}

cJSON *
control_row(const char *log, size_t len, const struct suite *s, const char *family)
{
	static const char *const names[CONTROL_PARTS] = {
		[CONTROL_BASE] = "base", [CONTROL_FAMILY] = "cpu", [CONTROL_DEVICE] = "device",
		[CONTROL_SCRAMBLED] = "scrambled",
	};
	struct control_facts *f = control_read(log, len, s->baseline);
	cJSON *row = cJSON_CreateObject(), *kl, *text;
	const char *cache;
	bool ok;
	int i;

	if (f == NULL || row == NULL) {
		free(f);
		cJSON_Delete(row);
		return NULL;
	}
	cache = f->text[CONTROL_DEVICE].f.cache_type;
	ok = json_add_str(row, "family", family) && json_add_str(row, "cache", cache[0] ? cache : NULL) &&
		json_add_num(row, "klCeiling", suite_ceiling(s, family)) &&
		(kl = json_add_object(row, "kl")) != NULL && (text = json_add_object(row, "greedy")) != NULL &&
		(f->kl[CONTROL_BASE].kl.final ? json_add_num(kl, "basePpl", f->kl[CONTROL_BASE].kl.ppl)
					      : json_add_null(kl, "basePpl")) &&
		json_add_str(text, "expected", f->expected[0] ? f->expected : NULL);
	for (i = CONTROL_FAMILY; ok && i < CONTROL_PARTS; i++)
		ok = kl_add(kl, names[i], &f->kl[i].kl);
	for (i = 0; ok && i < CONTROL_PARTS; i++)
		ok = text_add(text, names[i], &f->text[i], &f->text[CONTROL_BASE]);
	free(f);
	if (ok)
		return row;
	cJSON_Delete(row);
	return NULL;
}

/* Texts are compared: what both have read from the same bytes prints alike. */
bool
control_differs(const cJSON *report, const struct suite *s, const char *gate, const char *log,
	size_t len, char *text, size_t size)
{
	const char *family = strchr(gate, '/');
	cJSON *ours = control_row(log, len, s, family ? family + 1 : gate);
	const cJSON *row, *said = NULL;
	char *x, *y;
	bool differ;

	cJSON_ArrayForEach(row, json_get(report, "cacheControls"))
		if (family != NULL && str_eq(json_str(row, "family"), family + 1))
			said = row;
	x = ours ? json_text(ours, false) : NULL;
	y = said ? json_text(said, false) : NULL;
	differ = x == NULL || y == NULL || strcmp(x, y) != 0;
	if (differ)
		snprintf(text, size, "the agent says %.120s, its log says %.120s", y ? y : "nothing", x ? x : "nothing");
	free(x);
	free(y);
	cJSON_Delete(ours);
	return differ;
}

static bool
is_elsewhere(const struct control_run *r, const char *pci, char other[32])
{
	char at[32] = "";

	if (!r->ended || !tool_pci(r->f.elog.device_pci, at) || strcmp(at, pci) == 0)
		return false;
	snprintf(other, 32, "%s", at);
	return true;
}

bool
control_elsewhere(const char *log, size_t len, const char *baseline, const char *pci, char other[32])
{
	struct control_facts *f = control_read(log, len, baseline);
	bool yes = f != NULL && (is_elsewhere(&f->kl[CONTROL_DEVICE], pci, other) ||
		is_elsewhere(&f->text[CONTROL_DEVICE], pci, other));

	free(f);
	return yes;
}
