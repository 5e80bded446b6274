#include "agent/capabilities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

const struct kernel_bit kernel_bits[CAPABILITIES_KERNELS] = {
	/* key          older     family        types                                    word */
	{"mtp",         "dflash", NULL,         {NULL},                                  "draft-mtp"},
	{"turbo3",      NULL,     "turbo3",     {"tbq3_0", "turbo3"},                    NULL},
	{"turbo4",      NULL,     "turbo4",     {"tbq4_0", "turbo4"},                    NULL},
	{"turbo3_tcq",  NULL,     "turbo3_tcq", {"tbq3_tcq", "turbo3_tcq", "turbo3-tcq"}, NULL},
	{"qjl_full",    NULL,     "qjl",        {"qjl1_256", "qjl_full", "qjl"},         NULL},
	{"polarquant",  NULL,     "polar",      {"q4_polar", "polarquant", "polar"},     NULL},
	{"lookahead",   NULL,     NULL,         {NULL},                                  "lookahead"},
	{"ngramDraft",  NULL,     NULL,         {NULL},                                  "ngram"},
};

static bool
has_type(const struct capabilities_ask *ask, const struct kernel_bit *k)
{
	size_t i;
	int t;

	for (i = 0; i < str_count(k->types) && k->types[i] != NULL; i++)
		for (t = 0; t < ask->type_count; t++)
			if (strcasecmp(k->types[i], ask->types[t]) == 0)
				return true;
	return false;
}

static bool
is_required(const struct suite *s, const struct kernel_bit *k)
{
	int i;

	for (i = 0; s != NULL && k->family != NULL && i < s->family_count; i++)
		if (strcmp(s->families[i].name, k->family) == 0)
			return true;
	return false;
}

static void
kernels_derive(const struct capabilities_ask *ask, struct capabilities *out)
{
	bool every = true;
	unsigned i;

	for (i = 0; i < CAPABILITIES_KERNELS; i++) {
		const struct kernel_bit *k = &kernel_bits[i];
		bool has = has_type(ask, k) || (k->word != NULL && ask->help != NULL &&
			strstr(ask->help, k->word) != NULL);

		if (has)
			out->kernels |= 1u << i;
		else if (is_required(ask->suite, k))
			out->missing |= 1u << i;
		if (!has && k->family != NULL)
			every = false;
	}
	out->publishable = out->missing == 0;
	out->eliza1_eligible = every;
}

int
capabilities_derive(const struct capabilities_ask *ask, struct capabilities *out,
	struct err *e)
{
	int i;

	memset(out, 0, sizeof *out);
	if (ask->binary_count > CAPABILITIES_MAX_BINARIES)
		return err_set(e, ERR_LIMIT, "more than %d programs",
			CAPABILITIES_MAX_BINARIES);
	if (str_copy(out->target, sizeof out->target, ask->target->name, e) ||
	    str_copy(out->fork, sizeof out->fork, ask->fork, e) ||
	    str_copy(out->fork_commit, sizeof out->fork_commit, ask->commit, e) ||
	    str_copy(out->source_tree, sizeof out->source_tree, ask->tree, e) ||
	    str_copy(out->built_at, sizeof out->built_at, ask->built_at, e))
		return err_wrap(e, "capabilities");
	for (i = 0; i < ask->binary_count; i++)
		if (str_copy(out->binaries[i], sizeof out->binaries[i],
			    ask->binaries[i], e))
			return err_wrap(e, "capabilities");
	out->binary_count = ask->binary_count;
	kernels_derive(ask, out);
	return 0;
}

/* "linux-x64-cpu" is platform, architecture, backend. */
static bool
add_target(cJSON *o, const char *name)
{
	char part[3][CAPABILITIES_NAME] = {"", "", ""};
	size_t n;
	int i;

	for (i = 0; i < 3; i++) {
		n = i < 2 ? strcspn(name, "-") : strlen(name);
		snprintf(part[i], sizeof part[i], "%.*s", (int)n, name);
		name += n;
		name += *name == '-';
	}
	return json_add_str(o, "platform", part[0]) && json_add_str(o, "arch", part[1]) &&
		json_add_str(o, "backend", part[2]);
}

static bool
add_kernels(cJSON *o, unsigned bits)
{
	cJSON *k = json_add_object(o, "kernels");
	bool ok = k != NULL;
	unsigned i;

	for (i = 0; i < CAPABILITIES_KERNELS; i++)
		ok = ok && json_add_bool(k, kernel_bits[i].key, bits >> i & 1);
	return ok;
}

static bool
add_word(cJSON *array, const char *word)
{
	cJSON *s = cJSON_CreateString(word);

	if (s != NULL && cJSON_AddItemToArray(array, s))
		return true;
	cJSON_Delete(s);
	return false;
}

static bool
add_missing(cJSON *o, unsigned bits)
{
	cJSON *a = json_add_array(o, "missingRequiredKernels");
	bool ok = a != NULL;
	unsigned i;

	for (i = 0; i < CAPABILITIES_KERNELS; i++)
		if (bits >> i & 1)
			ok = ok && add_word(a, kernel_bits[i].key);
	return ok;
}

static bool
add_binaries(cJSON *o, const struct capabilities *c)
{
	cJSON *a = json_add_array(o, "binaries");
	bool ok = a != NULL;
	int i;

	for (i = 0; i < c->binary_count; i++)
		ok = ok && add_word(a, c->binaries[i]);
	return ok;
}

/* No override that ships an incomplete build exists here, so those three are false. */
static bool
add_rest(cJSON *o, const struct capabilities *c, const struct capabilities_ask *ask)
{
	return json_add_bool(o, "dflashDraftArchitecture", c->kernels & 1) &&
		json_add_array(o, "supportedArchitectures") != NULL &&
		json_add_array(o, "draftArchitectures") != NULL &&
		json_add_bool(o, "publishable", c->publishable) &&
		json_add_bool(o, "eliza1DefaultEligible",
			c->publishable && c->eliza1_eligible) &&
		add_missing(o, c->missing) &&
		json_add_bool(o, "smokeOnlyIncompleteAllowed", false) &&
		json_add_bool(o, "reducedOptimizationLocalMode", false) &&
		json_add_bool(o, "unverifiedVulkanRuntimeAllowed", false) &&
		json_add_null(o, "shippedKernels") && json_add_null(o, "runtimeDispatch") &&
		add_binaries(o, c) && json_add_null(o, "omnivoice") &&
		json_add_str(o, "sourceTree", ask->tree) &&
		json_add_str(o, "sourceDirtyDigest",
			ask->dirty_digest[0] ? ask->dirty_digest : NULL);
}

static cJSON *
capabilities_json(const struct capabilities *c, const struct capabilities_ask *ask)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && json_add_str(o, "target", c->target) && add_target(o, c->target) &&
	    json_add_bool(o, "fused", false) && json_add_str(o, "builtAt", c->built_at) &&
	    json_add_str(o, "fork", c->fork) &&
	    json_add_str(o, "forkCommit", c->fork_commit[0] ? c->fork_commit : "unknown") &&
	    add_kernels(o, c->kernels) && add_rest(o, c, ask))
		return o;
	cJSON_Delete(o);
	return NULL;
}

int
capabilities_write(const char *path, const struct capabilities_ask *ask,
	struct capabilities *out, struct err *e)
{
	struct capabilities *c = malloc(sizeof *c);
	cJSON *o = NULL;
	char *text = NULL;
	int rc = -1;

	if (c == NULL) {
		err_set(e, ERR_NOMEM, "no memory for capabilities");
		goto out;
	}
	if (capabilities_derive(ask, c, e))
		goto out;
	if ((o = capabilities_json(c, ask)) == NULL || (text = json_text(o, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for capabilities");
		goto out;
	}
	if (plat_write_file(path, text, strlen(text), 0644, e))
		goto out;
	if (out != NULL)
		*out = *c;
	rc = 0;
out:
	free(text);
	cJSON_Delete(o);
	free(c);
	return rc;
}

static int
binaries_read(const cJSON *o, struct capabilities *c, struct err *e)
{
	const cJSON *a = json_get(o, "binaries"), *b;

	if (!cJSON_IsArray(a))
		return err_set(e, ERR_PARSE, "binaries is not a list");
	cJSON_ArrayForEach(b, a) {
		if (!cJSON_IsString(b))
			return err_set(e, ERR_PARSE, "binaries holds something else");
		if (c->binary_count == CAPABILITIES_MAX_BINARIES)
			return err_set(e, ERR_LIMIT, "more than %d binaries",
				CAPABILITIES_MAX_BINARIES);
		if (str_copy(c->binaries[c->binary_count++], CAPABILITIES_NAME,
			    b->valuestring, e))
			return err_wrap(e, "binaries");
	}
	return 0;
}

static int
missing_read(const cJSON *o, struct capabilities *c, struct err *e)
{
	const cJSON *a = json_get(o, "missingRequiredKernels"), *m;
	unsigned i;

	if (!cJSON_IsArray(a))
		return err_set(e, ERR_PARSE, "missingRequiredKernels is not a list");
	cJSON_ArrayForEach(m, a) {
		for (i = 0; i < CAPABILITIES_KERNELS && cJSON_IsString(m); i++)
			if (str_eq(m->valuestring, kernel_bits[i].key) ||
			    str_eq(m->valuestring, kernel_bits[i].older))
				c->missing |= 1u << i;
	}
	c->publishable = json_bool(o, "publishable", false);
	if (c->publishable != (cJSON_GetArraySize(a) == 0))
		return err_set(e, ERR_PARSE, "publishable contradicts missingRequiredKernels");
	return 0;
}

static int
text_read(const cJSON *o, const char *key, bool needed, char *dst, size_t size,
	struct err *e)
{
	const char *s = json_str(o, key);

	if (s == NULL && needed)
		return json_need_str(o, key, &s, e);
	return str_copy(dst, size, s != NULL ? s : "", e) ? err_wrap(e, "%s", key) : 0;
}

static void
kernels_read(const cJSON *o, struct capabilities *c)
{
	const cJSON *k = json_get(o, "kernels");
	unsigned i;

	for (i = 0; i < CAPABILITIES_KERNELS; i++)
		if (json_bool(k, kernel_bits[i].key, false) ||
		    (kernel_bits[i].older != NULL && json_bool(k, kernel_bits[i].older, false)))
			c->kernels |= 1u << i;
	c->eliza1_eligible = json_bool(o, "eliza1DefaultEligible", false);
}

int
capabilities_read(const char *path, struct capabilities *out, struct err *e)
{
	cJSON *o = NULL;
	int rc = -1;

	memset(out, 0, sizeof *out);
	if (json_load(path, CAPABILITIES_MAX_BYTES, &o, e))
		return -1;
	if (text_read(o, "target", true, out->target, sizeof out->target, e) ||
	    text_read(o, "fork", false, out->fork, sizeof out->fork, e) ||
	    text_read(o, "forkCommit", false, out->fork_commit, sizeof out->fork_commit, e) ||
	    text_read(o, "sourceTree", false, out->source_tree, sizeof out->source_tree, e) ||
	    text_read(o, "builtAt", false, out->built_at, sizeof out->built_at, e) ||
	    binaries_read(o, out, e) || missing_read(o, out, e))
		goto out;
	if (strcmp(out->fork_commit, "unknown") == 0)
		out->fork_commit[0] = '\0';
	kernels_read(o, out);
	rc = 0;
out:
	cJSON_Delete(o);
	return rc ? err_wrap(e, "%s", path) : 0;
}

bool
capabilities_has_binary(const struct capabilities *c, const char *name)
{
	int i;

	for (i = 0; i < c->binary_count; i++)
		if (strcmp(c->binaries[i], name) == 0)
			return true;
	return false;
}

void
capabilities_list(unsigned bits, char *out, size_t size)
{
	size_t len = 0;
	unsigned i;
	int n;

	out[0] = '\0';
	for (i = 0; i < CAPABILITIES_KERNELS && len < size; i++) {
		if (!(bits >> i & 1))
			continue;
		n = snprintf(out + len, size - len, "%s%s", len ? ", " : "",
			kernel_bits[i].key);
		len += n > 0 ? (size_t)n : 0;
	}
}
