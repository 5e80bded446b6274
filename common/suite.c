#include "common/suite.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

/* Made by the build from fixtures/suites (common/suites.S). */
extern const char suite_eliza_1[], suite_eliza_1_end[];
extern const char suite_llama_cpp[], suite_llama_cpp_end[];
extern const char suite_eliza_1_gemma[], suite_eliza_1_gemma_end[];

static const struct {
	const char *name, *text, *end;
} builtin[] = {
	{"llama.cpp", suite_llama_cpp, suite_llama_cpp_end},
	{"eliza-1", suite_eliza_1, suite_eliza_1_end},
	{"eliza-1-gemma", suite_eliza_1_gemma, suite_eliza_1_gemma_end},
};

static bool
is_plain_name(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n < 64 && s[0] != '.' && s[0] != '-' &&
		strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			  "0123456789._+-") == n;
}

/* Reads an array of plain names. */
static int
names(const cJSON *o, const char *key, const char **out, int max, int *count, struct err *e)
{
	const cJSON *list = json_get(o, key), *v;

	*count = 0;
	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PARSE, "\"%s\" must be an array", key);
	cJSON_ArrayForEach(v, list) {
		if (*count == max)
			return err_set(e, ERR_LIMIT, "\"%s\" has more than %d entries", key, max);
		if (!cJSON_IsString(v) || !is_plain_name(v->valuestring))
			return err_set(e, ERR_PARSE, "\"%s\"[%d] is not a plain name", key, *count);
		out[(*count)++] = v->valuestring;
	}
	if (*count == 0)
		return err_set(e, ERR_PARSE, "\"%s\" is empty", key);
	return 0;
}

/* A list of "OP TENSOR". */
static int
nodes(const cJSON *o, const char *key, const char **out, int *count, struct err *e)
{
	const cJSON *list = json_get(o, key), *v;
	const char *word, *blank;

	*count = 0;
	if (list == NULL)
		return 0;
	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PARSE, "\"%s\" must be an array", key);
	cJSON_ArrayForEach(v, list) {
		word = cJSON_GetStringValue(v);
		blank = word != NULL ? strchr(word, ' ') : NULL;
		if (*count == SUITE_MAX_NODES)
			return err_set(e, ERR_LIMIT, "\"%s\" has more than %d rules", key, SUITE_MAX_NODES);
		if (blank == NULL || blank == word || blank[1] == '\0' || strlen(word) > 48)
			return err_set(e, ERR_PARSE, "\"%s\": OP TENSOR is wanted, such as \"MUL_MAT kq*\"", key);
		out[(*count)++] = word;
	}
	return 0;
}

static int
placement(const cJSON *owner, struct suite_placement *out, struct err *e)
{
	static const char *const known[] = {"device", "cpu", NULL};
	const cJSON *o = json_get(owner, "placement");

	if (o == NULL)
		return 0;
	if (json_known(o, known, e) || nodes(o, "device", out->device, &out->device_count, e) ||
	    nodes(o, "cpu", out->cpu, &out->cpu_count, e))
		return err_wrap(e, "placement");
	return out->device_count > 0 ? 0
		: err_set(e, ERR_PARSE, "placement: a rule that demands nothing proves nothing");
}

static int
families(struct suite *s, struct err *e)
{
	static const char *const known[] = {"name", "aliases", "placement", "klCeiling", NULL};
	const cJSON *list = json_get(s->root, "families"), *v;
	struct suite_family *f;
	int i;

	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PARSE, "\"families\" must be an array");
	cJSON_ArrayForEach(v, list) {
		if (s->family_count == SUITE_MAX_FAMILIES)
			return err_set(e, ERR_LIMIT, "more than %d families", SUITE_MAX_FAMILIES);
		f = &s->families[s->family_count];
		if (json_known(v, known, e) || json_need_str(v, "name", &f->name, e) ||
		    names(v, "aliases", f->aliases, SUITE_MAX_ALIASES, &f->alias_count, e) ||
		    placement(v, &f->placement, e))
			return err_wrap(e, "families[%d]", s->family_count);
		f->kl_ceiling = json_get(v, "klCeiling") != NULL ? json_num(v, "klCeiling", -1) : 0;
		if (!(f->kl_ceiling >= 0 && f->kl_ceiling < 100))
			return err_set(e, ERR_PARSE, "families[%d].klCeiling must be above 0 and below 100",
				s->family_count);
		if (!is_plain_name(f->name))
			return err_set(e, ERR_PARSE, "families[%d].name is not a plain name",
				s->family_count);
		if (strcmp(f->name, "baseline") == 0)
			return err_set(e, ERR_PARSE, "no family may be named baseline");
		for (i = 0; i < s->family_count; i++)
			if (strcmp(s->families[i].name, f->name) == 0)
				return err_set(e, ERR_PARSE, "family %s stands twice", f->name);
		s->family_count++;
	}
	if (s->family_count == 0 && json_get(s->root, "mtp") == NULL)
		return err_set(e, ERR_PARSE, "\"families\" is empty");
	return 0;
}

/* Optional members: a value of another type would widen a rule to "any". */
static int
text_or_absent(const cJSON *o, const char *key, const char **out, struct err *e)
{
	const cJSON *v = json_get(o, key);

	*out = cJSON_GetStringValue(v);
	if (v != NULL && (*out == NULL || (*out)[0] == '\0'))
		return err_set(e, ERR_PARSE, "\"%s\" must be text that is not empty", key);
	return 0;
}

static int
model(const cJSON *v, struct suite_model *m, struct err *e)
{
	static const char *const known[] = {"sha256", "architecture", "headSize", "synthetic",
		NULL};

	if (json_known(v, known, e) || text_or_absent(v, "sha256", &m->sha256, e) ||
	    text_or_absent(v, "architecture", &m->architecture, e))
		return -1;
	if (m->sha256 != NULL && !str_is_hex(m->sha256, 64))
		return err_set(e, ERR_PARSE, "\"sha256\" is not 64 lower-case hex digits");
	if (json_get(v, "headSize") != NULL &&
	    json_need_int(v, "headSize", 1, 65536, &m->head_size, e))
		return -1;
	if (json_get(v, "synthetic") != NULL && !cJSON_IsBool(json_get(v, "synthetic")))
		return err_set(e, ERR_PARSE, "\"synthetic\" must be true or false");
	m->synthetic_ok = json_bool(v, "synthetic", false);
	return 0;
}

static int
source(const cJSON *v, struct suite_source *r, struct err *e)
{
	static const char *const known[] = {"tree", "origin", NULL};

	if (json_known(v, known, e) || text_or_absent(v, "tree", &r->tree, e) ||
	    text_or_absent(v, "origin", &r->origin, e))
		return -1;
	if (r->tree == NULL && r->origin == NULL)
		return err_set(e, ERR_PARSE, "\"tree\" or \"origin\" is wanted");
	if (r->tree != NULL && !str_is_hex(r->tree, 40) && !str_is_hex(r->tree, 64))
		return err_set(e, ERR_PARSE, "\"tree\" is not a git tree id");
	return 0;
}

static int
rules(struct suite *s, struct err *e)
{
	const cJSON *list = json_get(s->root, "models"), *v;

	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PARSE, "\"models\" must be an array");
	cJSON_ArrayForEach(v, list) {
		if (s->model_count == SUITE_MAX_RULES)
			return err_set(e, ERR_LIMIT, "more than %d models", SUITE_MAX_RULES);
		if (model(v, &s->models[s->model_count], e))
			return err_wrap(e, "models[%d]", s->model_count);
		s->model_count++;
	}
	if (!cJSON_IsArray(list = json_get(s->root, "sources")))
		return err_set(e, ERR_PARSE, "\"sources\" must be an array");
	cJSON_ArrayForEach(v, list) {
		if (s->source_count == SUITE_MAX_RULES)
			return err_set(e, ERR_LIMIT, "more than %d sources", SUITE_MAX_RULES);
		if (source(v, &s->sources[s->source_count], e))
			return err_wrap(e, "sources[%d]", s->source_count);
		s->source_count++;
	}
	return 0;
}

/* "ops": [{"op": "SET_ROWS", "params": "...", "types": ["q8_0"]}], optional. */
static int
ops(struct suite *s, struct err *e)
{
	static const char *const known[] = {"op", "params", "types", NULL};
	const cJSON *list = json_get(s->root, "ops"), *v;
	struct suite_op *o;
	int i;

	s->routes = json_bool(s->root, "routes", false);
	if (list == NULL)
		return 0;
	if (!cJSON_IsArray(list))
		return err_set(e, ERR_PARSE, "\"ops\" must be an array");
	cJSON_ArrayForEach(v, list) {
		if (s->op_count == SUITE_MAX_OPS)
			return err_set(e, ERR_LIMIT, "more than %d ops", SUITE_MAX_OPS);
		o = &s->ops[s->op_count];
		if (json_known(v, known, e) || json_need_str(v, "op", &o->op, e) ||
		    text_or_absent(v, "params", &o->params, e) ||
		    (json_get(v, "types") != NULL && names(v, "types", o->types, SUITE_MAX_TYPES,
			    &o->type_count, e)))
			return err_wrap(e, "ops[%d]", s->op_count);
		if (!is_plain_name(o->op))
			return err_set(e, ERR_PARSE, "ops[%d].op is not a plain name", s->op_count);
		for (i = 0; i < s->op_count; i++)
			if (str_eq(s->ops[i].op, o->op) && str_eq(s->ops[i].params ? s->ops[i].params : "",
				    o->params ? o->params : ""))
				return err_set(e, ERR_PARSE, "ops[%d] is ops[%d] again", s->op_count, i);
		s->op_count++;
	}
	return 0;
}

/* "mtp": optional, and then whole. */
static int
mtp(struct suite *s, struct err *e)
{
	static const char *const known[] = {"types", "architectures", "drafter", "drafters", "tokens",
		"draftMax", "floor", "ceiling", NULL};
	const cJSON *o = json_get(s->root, "mtp");
	struct suite_mtp *m = &s->mtp;

	if (o == NULL)
		return (s->claims & (1u << CLAIM_GEMMA_RUNTIME)) == 0 ? 0
			: err_set(e, ERR_PARSE, "the claim gemma-runtime needs \"mtp\"");
	if (json_known(o, known, e) ||
	    names(o, "types", m->types, SUITE_MAX_ALIASES, &m->type_count, e) ||
	    names(o, "architectures", m->architectures, SUITE_MAX_ALIASES, &m->architecture_count, e) ||
	    (json_get(o, "drafters") != NULL &&
		    names(o, "drafters", m->drafters, SUITE_MAX_ALIASES, &m->drafter_count, e)) ||
	    json_need_int(o, "tokens", 1, 4096, &m->tokens, e) ||
	    json_need_int(o, "draftMax", 1, 64, &m->draft_max, e))
		return err_wrap(e, "mtp");
	m->drafter = json_bool(o, "drafter", true);
	m->floor = json_num(o, "floor", -1);
	m->ceiling = json_num(o, "ceiling", -1);
	if (!(m->floor > 0 && m->floor < m->ceiling && m->ceiling <= 1) || m->type_count == 0)
		return err_set(e, ERR_PARSE, "mtp: types, and 0 < floor < ceiling <= 1, are wanted");
	return 0;
}

/* "control": optional, and then whole, with a ceiling for every family. */
static int
control(struct suite *s, struct err *e)
{
	static const char *const known[] = {"text", "context", "chunks", "tokens", NULL};
	const cJSON *o = json_get(s->root, "control");
	struct suite_control *c = &s->control;
	int i;

	if (o == NULL)
		return (s->required & GATE_BIT(GATE_CONTROL)) == 0 ? 0
			: err_set(e, ERR_PARSE, "the required gate control needs \"control\"");
	if (json_known(o, known, e) || json_need_str(o, "text", &c->text, e) ||
	    json_need_int(o, "context", 16, 4096, &c->context, e) ||
	    json_need_int(o, "chunks", 1, 64, &c->chunks, e) ||
	    json_need_int(o, "tokens", 1, 256, &c->tokens, e))
		return err_wrap(e, "control");
	/* a word of a tokenizer is longer than a byte, and the engine wants two chunks and 100 values */
	if (strlen(c->text) < 256 || c->chunks * (c->context - 1 - c->context / 2) < 100)
		return err_set(e, ERR_PARSE, "control: a text of 256 bytes or more and chunks of at least "
			"100 values are wanted");
	for (i = 0; i < s->family_count; i++)
		if (!(s->families[i].kl_ceiling > 0))
			return err_set(e, ERR_PARSE, "control: family %s has no klCeiling",
				s->families[i].name);
	return 0;
}

/* Bits of a list of words, each found by find(). */
static int
bits(const cJSON *root, const char *key, int (*find)(const char *), unsigned *out,
	struct err *e)
{
	const cJSON *v;
	int i;

	if (!cJSON_IsArray(json_get(root, key)))
		return err_set(e, ERR_PARSE, "\"%s\" must be an array", key);
	cJSON_ArrayForEach(v, json_get(root, key)) {
		if (!cJSON_IsString(v) || (i = find(v->valuestring)) < 0)
			return err_set(e, ERR_PARSE, "\"%s\" has an unknown word \"%.40s\"", key,
				cJSON_IsString(v) ? v->valuestring : "");
		*out |= 1u << i;
	}
	/* a run that need not show anything would always pass */
	if (*out == 0)
		return err_set(e, ERR_PARSE, "\"%s\" is empty", key);
	return 0;
}

/* A gate alone, without a family. */
static int
gate_word(const char *name)
{
	return strchr(name, '/') == NULL ? gate_find(name) : -1;
}

static int
claim_find(const char *name)
{
	int i;

	for (i = 0; i < CLAIM_COUNT; i++)
		if (strcmp(claim_name((enum claim)i), name) == 0)
			return i;
	return -1;
}

static int
fields(struct suite *s, struct err *e)
{
	static const char *const known[] = {"schemaVersion", "name", "title", "driver",
		"programs", "prompt", "tokens", "ngl", "seed", "baseline", "families", "fixtures",
		"tolerance", "models", "sources", "required", "claims", "ops", "routes", "mtp", "placement",
		"control", NULL};
	int64_t version;

	if (!cJSON_IsObject(s->root))
		return err_set(e, ERR_PARSE, "not an object");
	if (json_known(s->root, known, e) ||
	    json_need_int(s->root, "schemaVersion", 1, 1, &version, e) ||
	    json_need_str(s->root, "name", &s->name, e) ||
	    json_need_str(s->root, "title", &s->title, e) ||
	    json_need_str(s->root, "driver", &s->driver, e) ||
	    json_need_str(s->root, "prompt", &s->prompt, e) ||
	    json_need_str(s->root, "baseline", &s->baseline, e) ||
	    json_need_int(s->root, "tokens", 1, 4096, &s->tokens, e) ||
	    json_need_int(s->root, "ngl", 0, 9999, &s->ngl, e) ||
	    json_need_int(s->root, "seed", 0, INT32_MAX, &s->seed, e))
		return -1;
	if (!is_plain_name(s->name) || !is_plain_name(s->driver) || !is_plain_name(s->baseline))
		return err_set(e, ERR_PARSE, "name, driver and baseline must be plain names");
	s->tolerance = json_num(s->root, "tolerance", 0);
	if (!(s->tolerance > 0 && s->tolerance <= 1))
		return err_set(e, ERR_PARSE, "\"tolerance\" must be above 0 and at most 1");
	if (names(s->root, "programs", s->programs, SUITE_MAX_PROGRAMS, &s->program_count, e) ||
	    names(s->root, "fixtures", s->fixtures, SUITE_MAX_FIXTURES, &s->fixture_count, e) ||
	    families(s, e) || placement(s->root, &s->placement, e) || rules(s, e) || ops(s, e) ||
	    bits(s->root, "required", gate_word, &s->required, e) ||
	    bits(s->root, "claims", claim_find, &s->claims, e) || mtp(s, e) || control(s, e))
		return -1;
	return 0;
}

int
suite_parse(const char *text, size_t len, struct suite **out, struct err *e)
{
	struct suite *s;
	int rc = -1;

	if (len > SUITE_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "suite: %zu bytes, more than %d", len,
			SUITE_MAX_BYTES);
	if ((s = calloc(1, sizeof *s)) == NULL || (s->text = malloc(len + 1)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a suite");
		goto out;
	}
	memcpy(s->text, text, len);
	s->text[len] = '\0';
	s->text_len = len;
	digest_bytes(text, len, s->digest);
	if (json_parse(text, len, SUITE_MAX_BYTES, &s->root, e) || fields(s, e)) {
		err_wrap(e, "suite");
		goto out;
	}
	*out = s, s = NULL;
	rc = 0;
out:
	suite_free(s);
	return rc;
}

int
suite_builtin(const char *name, struct suite **out, struct err *e)
{
	size_t i;

	for (i = 0; i < str_count(builtin); i++)
		if (strcmp(builtin[i].name, name) == 0)
			return suite_parse(builtin[i].text,
				(size_t)(builtin[i].end - builtin[i].text), out, e);
	err_set(e, ERR_NOTFOUND, "no suite is named \"%.64s\"", name);
	return err_hint(e, "the suites are llama.cpp, eliza-1 and eliza-1-gemma; a file is given by its path");
}

int
suite_load(const char *path, struct suite **out, struct err *e)
{
	char *text;
	size_t len;
	int rc;

	if (plat_read_file(path, SUITE_MAX_BYTES, &text, &len, e))
		return -1;
	if ((rc = suite_parse(text, len, out, e)))
		err_wrap(e, "%s", path);
	free(text);
	return rc;
}

void
suite_free(struct suite *s)
{
	if (s == NULL)
		return;
	cJSON_Delete(s->root);
	free(s->text);
	free(s);
}

const char *
suite_builtin_name(size_t i)
{
	return i < str_count(builtin) ? builtin[i].name : NULL;
}

bool
suite_is_path(const char *name)
{
	return strchr(name, '/') != NULL || str_ends(name, ".json");
}

const struct suite_family *
suite_family_find(const struct suite *s, const char *family)
{
	int i;

	for (i = 0; family != NULL && i < s->family_count; i++)
		if (strcmp(s->families[i].name, family) == 0)
			return &s->families[i];
	return NULL;
}

double
suite_ceiling(const struct suite *s, const char *family)
{
	const struct suite_family *f = suite_family_find(s, family);
	int i, k;

	for (i = 0; f == NULL && family != NULL && i < s->family_count; i++)
		for (k = 0; k < s->families[i].alias_count; k++)
			if (strcmp(s->families[i].aliases[k], family) == 0)
				f = &s->families[i];
	return f != NULL ? f->kl_ceiling : 0;
}

const struct suite_placement *
suite_placement_of(const struct suite *s, const char *family)
{
	const struct suite_family *f = suite_family_find(s, family);

	if (f != NULL && f->placement.device_count > 0)
		return &f->placement;
	return s->placement.device_count > 0 ? &s->placement : NULL;
}

bool
suite_wants(const struct suite *s, enum gate_id g)
{
	switch (g) {
	case GATE_GRAPH_SMOKE:
		return s->family_count > 0;
	case GATE_FIXTURES:
		return s->fixture_count > 0;
	case GATE_MTP:
		return (s->claims & (1u << CLAIM_GEMMA_RUNTIME)) != 0;
	case GATE_OP_PARITY:
		return s->op_count > 0;
	case GATE_ROUTES:
		return s->routes;
	case GATE_CONTROL:
		return s->control.text != NULL;
	default:
		return true;
	}
}

bool
suite_model_counts(const struct suite *s, const char *sha256, const char *architecture,
	int64_t head_size, bool synthetic)
{
	const struct suite_model *m;

	for (m = s->models; m < s->models + s->model_count; m++) {
		if (synthetic && !m->synthetic_ok)
			continue;
		if (m->sha256 != NULL && !str_eq(m->sha256, sha256))
			continue;
		if (m->architecture != NULL && !str_eq(m->architecture, architecture))
			continue;
		if (m->head_size != 0 && m->head_size != head_size)
			continue;
		return true;
	}
	return false;
}

bool
suite_source_counts(const struct suite *s, const char *tree, const char *origin)
{
	const struct suite_source *r;

	for (r = s->sources; r < s->sources + s->source_count; r++) {
		if (r->tree == NULL && r->origin == NULL)
			continue;
		if (r->tree != NULL && !str_eq(r->tree, tree))
			continue;
		if (r->origin != NULL &&
		    (origin == NULL || fnmatch(r->origin, origin, 0) != 0))
			continue;
		return true;
	}
	return false;
}
