#include "common/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define CACHE_TYPE_MAX 23 /* bytes of a name in an engine's log */

const struct override_row overrides[OVERRIDE_COUNT] = {
	[OVERRIDE_CACHE_TYPES] = {"cacheTypes", "ELIZA_MTP_SMOKE_CACHE_TYPES", 512, 0,
		"cache types to run instead of the suite's families, by comma or blank"},
	[OVERRIDE_TOKENS] = {"tokens", "ELIZA_MTP_SMOKE_TOKENS", 4096, 1,
		"tokens to generate"},
	[OVERRIDE_NGL] = {"ngl", "ELIZA_MTP_SMOKE_NGL", 9999, 1, "layers to offload"},
	[OVERRIDE_PROMPT] = {"prompt", "ELIZA_MTP_SMOKE_PROMPT", 4096, 0, "the prompt"},
	[OVERRIDE_EXTRA_ARGS] = {"extraArgs", "ELIZA_MTP_SMOKE_EXTRA_ARGS", 4096, 0,
		"arguments appended to the driver's, split at blanks"},
	[OVERRIDE_CMAKE_FLAGS] = {"cmakeFlags", "ELIZA_MTP_CMAKE_FLAGS", 4096, 0,
		"flags appended to cmake's, split at blanks"},
	[OVERRIDE_DRIVER] = {"driver", "ELIZA_MTP_SMOKE_DRIVER", 64, 0,
		"driver program: llama-completion or llama-cli"},
};

static int
id_check(const struct job *j, struct err *e)
{
	if (!str_is_hex(j->id, JOB_ID_HEX))
		return err_set(e, ERR_PARSE, "\"id\" is not %d lower-case hex digits", JOB_ID_HEX);
	if (!str_is_hex(j->nonce, JOB_NONCE_HEX))
		return err_set(e, ERR_PARSE, "\"nonce\" is not %d lower-case hex digits",
			JOB_NONCE_HEX);
	return 0;
}

static int
lane_read(struct job *j, struct err *e)
{
	const char *name;

	return json_need_str(j->root, "lane", &name, e) || lane_get(name, &j->lane, e) ? -1 : 0;
}

static int
suite_get(struct job *j, struct err *e)
{
	const char *name, *document = json_str(j->root, "suiteDocument");
	const char *digest = json_str(j->root, "suiteDigest");

	if (json_need_str(j->root, "suite", &name, e))
		return -1;
	if (json_get(j->root, "suiteDigest") != NULL &&
	    (digest == NULL || !str_is_hex(digest, DIGEST_HEX - 1)))
		return err_set(e, ERR_PARSE, "\"suiteDigest\" is not %d lower-case hex digits",
			DIGEST_HEX - 1);
	if (json_get(j->root, "suiteDocument") != NULL && document == NULL)
		return err_set(e, ERR_PARSE, "\"suiteDocument\" must be a string");
	if (document != NULL) {
		if (suite_parse(document, strlen(document), &j->suite, e))
			return -1;
		if (strcmp(j->suite->name, name) != 0)
			return err_set(e, ERR_PARSE, "the suite document is named \"%.64s\"",
				j->suite->name);
	} else if (suite_builtin(name, &j->suite, e)) {
		if (e != NULL && e->code == ERR_NOTFOUND)
			e->code = ERR_PARSE; /* the request is wrong, not its address */
		return -1;
	}
	if (digest != NULL && strcmp(digest, j->suite->digest) != 0) {
		err_set(e, ERR_CONFLICT, "suite %s differs from ours: %.12s, wanted %.12s", name,
			j->suite->digest, digest);
		return err_hint(e, "bring agent and controller to the same version");
	}
	return 0;
}

static int
path_get(const struct job *j, const char *key, const char **out, struct err *e)
{
	const cJSON *v = json_get(j->root, key);

	if (v == NULL)
		return 0;
	if (!cJSON_IsString(v) || v->valuestring[0] == '\0')
		return err_set(e, ERR_PARSE, "\"%s\" must be text that is not empty", key);
	if (strlen(v->valuestring) > JOB_MAX_PATH)
		return err_set(e, ERR_LIMIT, "\"%s\" is longer than %d bytes", key, JOB_MAX_PATH);
	*out = v->valuestring;
	return 0;
}

static int
only_get(struct job *j, struct err *e)
{
	const cJSON *v = json_get(j->root, "only");
	int i = ONLY_ALL;

	if (v != NULL && (!cJSON_IsString(v) || (i = only_find(v->valuestring)) < 0)) {
		err_set(e, ERR_PARSE, "\"only\" is none of probe, build, fixtures, smoke");
		return -1;
	}
	j->only = (enum only)i;
	return 0;
}

/*
 * Marks that a word processor puts in place of what was typed: quotes, primes, dashes and
 * blanks.  A flag with one of them means something else than its author sees.
 */
static int
typography_check(const char *key, const char *text, struct err *e)
{
	static const struct {
		const char *first, *last;
	} marks[] = {
		{"\xc2\xa0", "\xc2\xa0"},         /* no-break space */
		{"\xc2\xab", "\xc2\xab"}, {"\xc2\xb4", "\xc2\xb4"}, {"\xc2\xbb", "\xc2\xbb"},
		{"\xe2\x80\x80", "\xe2\x80\x9f"}, /* blanks, dashes, quotes */
		{"\xe2\x80\xa8", "\xe2\x80\xaf"}, /* line separators, direction marks */
		{"\xe2\x80\xb2", "\xe2\x80\xba"}, /* primes, angle quotes */
		{"\xe2\x88\x92", "\xe2\x88\x92"}, /* minus */
		{"\xe2\x9d\x9b", "\xe2\x9d\xa0"}, /* ornament quotes */
		{"\xe3\x80\x80", "\xe3\x80\x80"}, {"\xe3\x80\x9d", "\xe3\x80\x9f"},
		{"\xef\xbc\x82", "\xef\xbc\x82"}, {"\xef\xbc\x87", "\xef\xbc\x87"},
		{"\xef\xbb\xbf", "\xef\xbb\xbf"}, /* byte order mark */
	};
	const char *p;
	size_t i, n;

	for (p = text; *p != '\0'; p++)
		for (i = 0; i < str_count(marks); i++) {
			n = strlen(marks[i].first);
			if (strncmp(p, marks[i].first, n) < 0 || strncmp(p, marks[i].last, n) > 0)
				continue;
			err_set(e, ERR_PARSE, "overrides.%s has a typographic mark at \"%.24s\"", key,
				p);
			return err_hint(e,
				"type plain ASCII quotes, dashes and blanks; no shell reads the flags");
		}
	return 0;
}

/* Names of cache types: each becomes a gate and a file, so none stands twice. */
static int
cache_types_check(const char *text, struct err *e)
{
	char copy[513], *words[SUITE_MAX_FAMILIES];
	int i, k, n;

	if (str_copy(copy, sizeof copy, text, e))
		return -1;
	if ((n = str_split(copy, true, words, SUITE_MAX_FAMILIES)) <= 0)
		return err_set(e, n < 0 ? ERR_LIMIT : ERR_PARSE, "1 to %d cache types are wanted",
			SUITE_MAX_FAMILIES);
	for (i = 0; i < n; i++) {
		if (strlen(words[i]) > CACHE_TYPE_MAX || words[i][0] == '-' || words[i][0] == '.' ||
		    words[i][strspn(words[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789._+-")] != '\0' || strcmp(words[i], "baseline") == 0)
			return err_set(e, ERR_PARSE, "\"%.40s\" is no name of a cache type", words[i]);
		for (k = 0; k < i; k++)
			if (strcmp(words[i], words[k]) == 0)
				return err_set(e, ERR_PARSE, "%s stands twice", words[i]);
	}
	return 0;
}

/* The driver is started from the engine's folder: no other program, no path. */
static int
driver_check(const char *text, struct err *e)
{
	if (strcmp(text, "llama-completion") == 0 || strcmp(text, "llama-cli") == 0)
		return 0;
	err_set(e, ERR_PARSE, "\"%.64s\" is no driver", text);
	return err_hint(e, "the drivers are llama-completion and llama-cli");
}

static int
override_check(int i, const char *value, struct err *e)
{
	uint32_t n;

	if (overrides[i].number)
		return str_u32(value, i == OVERRIDE_TOKENS, overrides[i].max, &n, e);
	if (strlen(value) > overrides[i].max)
		return err_set(e, ERR_LIMIT, "longer than %u bytes", overrides[i].max);
	if (i == OVERRIDE_PROMPT)
		return 0;
	if (value[0] == '\0')
		return err_set(e, ERR_PARSE, "empty");
	return i == OVERRIDE_CACHE_TYPES ? cache_types_check(value, e)
		: i == OVERRIDE_DRIVER ? driver_check(value, e)
				       : 0;
}

static int
overrides_get(struct job *j, struct err *e)
{
	const cJSON *o = json_get(j->root, "overrides"), *v;
	int i;

	if (o == NULL)
		return 0;
	if (!cJSON_IsObject(o))
		return err_set(e, ERR_PARSE, "\"overrides\" must be an object");
	cJSON_ArrayForEach(v, o) {
		for (i = 0; i < OVERRIDE_COUNT && strcmp(overrides[i].key, v->string) != 0; i++)
			;
		if (i == OVERRIDE_COUNT)
			return err_set(e, ERR_PARSE, "unknown field \"overrides.%.64s\"", v->string);
		if (!cJSON_IsString(v))
			return err_set(e, ERR_PARSE, "overrides.%s must be a string", v->string);
		if (i != OVERRIDE_PROMPT && typography_check(v->string, v->valuestring, e))
			return -1;
		if (override_check(i, v->valuestring, e))
			return err_wrap(e, "overrides.%s", v->string);
		j->override[i] = v->valuestring;
	}
	return 0;
}

/* A lane with pins takes no other chips: what it would build is of another class. */
static int
pins_check(const struct job *j, struct err *e)
{
	const char *flags = j->override[OVERRIDE_CMAKE_FLAGS], *at;
	size_t n = strlen(j->lane->arch_flag), k = strlen(j->lane->archs);

	if (!j->lane->pinned || flags == NULL || n == 0)
		return 0;
	for (at = strstr(flags, j->lane->arch_flag); at != NULL; at = strstr(at + 1, j->lane->arch_flag)) {
		at += n;
		at += strcspn(at, "= ");
		if (*at == '=' && strncmp(at + 1, j->lane->archs, k) == 0 && strchr(" \t", at[1 + k]) != NULL)
			continue;
		err_set(e, ERR_PARSE, "overrides.cmakeFlags: the lane %s builds for %s alone", j->lane->name,
			j->lane->archs);
		return err_hint(e, "leave %s away, or choose the lane cuda", j->lane->arch_flag);
	}
	return 0;
}

/* Takes j->root as read; fills the rest. */
static int
fill(struct job *j, struct err *e)
{
	static const char *const known[] = {"schemaVersion", "id", "nonce", "lane", "suite",
		"suiteDigest", "suiteDocument", "model", "source", "sourceRef", "only", "prebuilt",
		"overrides", "controller", "device", "draftModel", NULL};
	int64_t version;

	if (!cJSON_IsObject(j->root))
		return err_set(e, ERR_PARSE, "not an object");
	if (json_known(j->root, known, e) ||
	    json_need_int(j->root, "schemaVersion", 1, 1, &version, e) ||
	    json_need_str(j->root, "id", &j->id, e) ||
	    json_need_str(j->root, "nonce", &j->nonce, e) || id_check(j, e) ||
	    lane_read(j, e) || suite_get(j, e) || path_get(j, "model", &j->model, e) ||
	    path_get(j, "source", &j->source, e) ||
	    path_get(j, "sourceRef", &j->source_ref, e) ||
	    path_get(j, "prebuilt", &j->prebuilt, e) || path_get(j, "device", &j->device, e) ||
	    path_get(j, "draftModel", &j->draft_model, e) || only_get(j, e) || overrides_get(j, e) || pins_check(j, e))
		return -1;
	if (j->source_ref != NULL && j->source_ref[0] == '-')
		return err_set(e, ERR_PARSE, "\"sourceRef\" begins with a hyphen");
	if (json_get(j->root, "controller") != NULL &&
	    !cJSON_IsObject(json_get(j->root, "controller")))
		return err_set(e, ERR_PARSE, "\"controller\" must be an object");
	if ((j->text = json_text(j->root, false)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a job");
	/* a job made here must be one that can be read elsewhere */
	if (json_check(j->text, strlen(j->text), JOB_MAX_BYTES, e))
		return -1;
	digest_bytes(j->text, strlen(j->text), j->digest);
	return 0;
}

/* Takes root. */
static int
from_tree(cJSON *root, struct job **out, struct err *e)
{
	struct job *j = calloc(1, sizeof *j);

	if (j == NULL) {
		cJSON_Delete(root);
		return err_set(e, ERR_NOMEM, "no memory for a job");
	}
	j->root = root;
	if (fill(j, e)) {
		job_free(j);
		return err_wrap(e, "job");
	}
	*out = j;
	return 0;
}

int
job_parse(const char *text, size_t len, struct job **out, struct err *e)
{
	cJSON *root;

	if (json_parse(text, len, JOB_MAX_BYTES, &root, e))
		return err_wrap(e, "job");
	return from_tree(root, out, e);
}

int
job_new(cJSON *o, struct job **out, struct err *e)
{
	char id[JOB_ID_HEX + 1], nonce[JOB_NONCE_HEX + 1];

	if (plat_random_hex(id, JOB_ID_HEX, e) || plat_random_hex(nonce, JOB_NONCE_HEX, e))
		goto fail;
	if ((json_get(o, "schemaVersion") == NULL && !json_add_int(o, "schemaVersion", 1)) ||
	    (json_get(o, "id") == NULL && !json_add_str(o, "id", id)) ||
	    (json_get(o, "nonce") == NULL && !json_add_str(o, "nonce", nonce))) {
		err_set(e, ERR_NOMEM, "no memory for a job");
		goto fail;
	}
	return from_tree(o, out, e);
fail:
	cJSON_Delete(o);
	return -1;
}

void
job_free(struct job *j)
{
	if (j == NULL)
		return;
	cJSON_Delete(j->root);
	suite_free(j->suite);
	free(j->text);
	free(j);
}
