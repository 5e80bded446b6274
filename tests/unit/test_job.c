#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/job.h"
#include "common/json.h"
#include "common/str.h"

#define ID "00112233445566778899aabbccddeeff"
#define NONCE "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEAD "{\"schemaVersion\":1,\"id\":\"" ID "\",\"nonce\":\"" NONCE "\""
#define JOB(rest) HEAD ",\"lane\":\"cpu\",\"suite\":\"llama.cpp\"" rest "}"
#define OVER(members) JOB(",\"overrides\":{" members "}")

static void
refused_bytes(const char *text, size_t len, enum err_code code, const char *word)
{
	char *copy = malloc(len > 0 ? len : 1);
	struct job *j = NULL;
	struct err e = {0};

	assert_non_null(copy);
	memcpy(copy, text, len);
	if (job_parse(copy, len, &j, &e) == 0)
		fail_msg("accepted: %.*s", (int)len, text);
	assert_null(j);
	if (e.code != code)
		fail_msg("%.*s: %s", (int)(len < 300 ? len : 300), text, e.msg);
	assert_true(str_starts(e.msg, "job: "));
	if (word != NULL && strstr(e.msg, word) == NULL)
		fail_msg("no %s in: %s", word, e.msg);
	free(copy);
}

static void
refused(const char *text, const char *word)
{
	refused_bytes(text, strlen(text), ERR_PARSE, word);
}

static struct job *
parsed(const char *text)
{
	struct job *j = NULL;
	struct err e = {0};

	if (job_parse(text, strlen(text), &j, &e))
		fail_msg("refused: %s: %s", text, e.msg);
	return j;
}

static void
accepted(const char *text)
{
	job_free(parsed(text));
}

static void
whole_job_is_read(void **state)
{
	struct job *j = parsed(JOB(",\"model\":\"/m/a b \xc3\xa9 %&'.gguf\",\"source\":\"/s\","
		"\"sourceRef\":\"v1\",\"only\":\"smoke\",\"prebuilt\":\"/p\",\"overrides\":{\"tokens\":\"8\","
		"\"ngl\":\"0\"},\"controller\":{\"version\":\"1\"}"));

	(void)state;
	assert_string_equal(j->id, ID);
	assert_string_equal(j->nonce, NONCE);
	assert_string_equal(j->lane->name, "cpu");
	assert_string_equal(j->suite->name, "llama.cpp");
	assert_string_equal(j->model, "/m/a b \xc3\xa9 %&'.gguf");
	assert_string_equal(j->source_ref, "v1");
	assert_string_equal(j->prebuilt, "/p");
	assert_int_equal(j->only, ONLY_SMOKE);
	assert_string_equal(j->override[OVERRIDE_TOKENS], "8");
	assert_string_equal(j->override[OVERRIDE_NGL], "0");
	assert_null(j->override[OVERRIDE_PROMPT]);
	job_free(j);
	j = parsed(JOB(""));
	assert_null(j->model);
	assert_int_equal(j->only, ONLY_ALL);
	job_free(j);
	job_free(NULL);
}

static void
unknown_lane_suite_and_field_are_named(void **state)
{
	struct job *j = NULL;
	struct err e = {0};
	const char *text = HEAD ",\"lane\":\"quantum\",\"suite\":\"llama.cpp\"}";

	(void)state;
	assert_int_equal(job_parse(text, strlen(text), &j, &e), -1);
	assert_non_null(strstr(e.msg, "unknown lane \"quantum\""));
	assert_non_null(strstr(e.hint, "cpu"));
	assert_int_equal(e.code, ERR_PARSE);
	text = HEAD ",\"lane\":\"cpu\",\"suite\":\"nope\"}";
	assert_int_equal(job_parse(text, strlen(text), &j, &e), -1);
	assert_non_null(strstr(e.msg, "\"nope\""));
	assert_non_null(strstr(e.hint, "llama.cpp"));
	assert_int_equal(e.code, ERR_PARSE);
	refused(JOB(",\"shell\":\"rm\""), "unknown field \"shell\"");
	refused(JOB(",\"Model\":\"/m\""), "unknown field \"Model\"");
	refused(OVER("\"path\":\"x\""), "unknown field \"overrides.path\"");
	refused(HEAD ",\"lane\":\"CPU\",\"suite\":\"llama.cpp\"}", "CPU");
	refused(HEAD ",\"lane\":\"\",\"suite\":\"llama.cpp\"}", "lane");
	refused(HEAD ",\"lane\":7,\"suite\":\"llama.cpp\"}", "lane");
	refused(HEAD ",\"lane\":\"cpu\",\"suite\":7}", "suite");
	refused(HEAD ",\"lane\":\"cpu\"}", "suite");
	refused(HEAD ",\"suite\":\"llama.cpp\"}", "lane");
}

static void
input_that_is_no_strict_json_is_refused(void **state)
{
	char *big = malloc(10u << 20), deep[256];
	size_t i;

	(void)state;
	assert_non_null(big);
	refused("", NULL);
	refused("[]", "object");
	refused("[[\"id\"]]", "object");
	refused("null", "object");
	refused(JOB(",\"model\":\"/a\",\"model\":\"/b\""), "duplicate key \"model\"");
	refused(JOB(",\"model\":\"/a\",\"\\u006dodel\":\"/b\""), "duplicate key");
	refused(JOB(",\"overrides\":{\"tokens\":NaN}"), NULL);
	refused(JOB(",\"controller\":{\"x\":1e999}"), "finite");
	refused(JOB("") "x", "after the value");
	refused("\xef\xbb\xbf" JOB(""), "byte order mark");
	refused_bytes("\xff\xfe{\0}\0", 6, ERR_PARSE, "UTF-16");
	refused_bytes("\0{\0}", 4, ERR_PARSE, "UTF-16");
	refused(JOB(",\"model\":\"/caf\xe9\""), "UTF-8");
	refused(JOB(",\"model\":\"/a\\u0000b\""), "NUL");
	snprintf(deep, sizeof deep, "%s,\"controller\":", HEAD);
	i = strlen(deep);
	memset(deep + i, '[', 64);
	refused_bytes(deep, i + 64, ERR_LIMIT, "deep");
	memset(big, ' ', 10u << 20);
	memcpy(big, JOB(""), sizeof JOB("") - 1);
	refused_bytes(big, 10u << 20, ERR_LIMIT, NULL);
	refused_bytes(big, JOB_MAX_BYTES + 1, ERR_LIMIT, NULL);
	free(big);
}

static void
cut_job_is_refused_at_every_length(void **state)
{
	const char *text = JOB(",\"overrides\":{\"tokens\":\"8\"}");
	size_t n;

	(void)state;
	for (n = 0; n < strlen(text); n++)
		refused_bytes(text, n, ERR_PARSE, NULL);
}

static void
id_and_nonce_are_lower_case_hex_of_their_length(void **state)
{
	static const char *const ids[] = {"", "00112233445566778899aabbccddeef",
		"00112233445566778899aabbccddeeff0", "00112233445566778899AABBCCDDEEFF",
		"00112233445566778899aabbccddeefg", "../../../../../../../../etc/passw",
		"00112233445566778899aabbccddee\\u0066\\u0066 "};
	char text[512];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(ids); i++) {
		snprintf(text, sizeof text, "{\"schemaVersion\":1,\"id\":\"%s\",\"nonce\":\"" NONCE
			"\",\"lane\":\"cpu\",\"suite\":\"llama.cpp\"}", ids[i]);
		refused(text, "\"id\"");
		snprintf(text, sizeof text, "{\"schemaVersion\":1,\"id\":\"" ID "\",\"nonce\":\"%s\","
			"\"lane\":\"cpu\",\"suite\":\"llama.cpp\"}", ids[i]);
		refused(text, "\"nonce\"");
	}
	refused("{\"schemaVersion\":1,\"nonce\":\"" NONCE "\",\"lane\":\"cpu\",\"suite\":\"x\"}", "\"id\"");
	refused("{\"schemaVersion\":1,\"id\":1,\"nonce\":\"" NONCE "\"}", "\"id\"");
}

static void
schema_version_is_one(void **state)
{
	(void)state;
	refused("{\"schemaVersion\":2,\"id\":\"" ID "\"}", "schemaVersion");
	refused("{\"schemaVersion\":\"1\",\"id\":\"" ID "\"}", "schemaVersion");
	refused("{\"id\":\"" ID "\"}", "schemaVersion");
	refused("{\"schemaVersion\":1.5,\"id\":\"" ID "\"}", "schemaVersion");
}

static void
suite_digest_that_differs_is_a_conflict(void **state)
{
	struct suite *s = NULL;
	struct err e = {0};
	char text[1024];

	(void)state;
	refused_bytes(JOB(",\"suiteDigest\":\"" NONCE "\""), sizeof JOB(",\"suiteDigest\":\"" NONCE "\"") - 1,
		ERR_CONFLICT, "differs");
	assert_int_equal(suite_builtin("llama.cpp", &s, &e), 0);
	snprintf(text, sizeof text, JOB(",\"suiteDigest\":\"%s\""), s->digest);
	accepted(text);
	suite_free(s);
	/* a digest that is none must not be passed over */
	refused(JOB(",\"suiteDigest\":7"), "suiteDigest");
	refused(JOB(",\"suiteDigest\":null"), "suiteDigest");
	refused(JOB(",\"suiteDigest\":\"\""), "suiteDigest");
	refused(JOB(",\"suiteDigest\":\"abc\""), "suiteDigest");
	refused(JOB(",\"suiteDigest\":{}"), "suiteDigest");
}

static void
suite_document_is_checked_like_any_suite(void **state)
{
	struct suite *s = NULL;
	struct err e = {0};
	struct job *j = NULL;
	cJSON *o = cJSON_CreateObject();

	(void)state;
	refused(JOB(",\"suiteDocument\":7"), "suiteDocument");
	refused(JOB(",\"suiteDocument\":{}"), "suiteDocument");
	refused(JOB(",\"suiteDocument\":\"{}\""), "suite: ");
	refused(JOB(",\"suiteDocument\":\"[[1]]\""), "suite: ");
	assert_int_equal(suite_builtin("eliza-1", &s, &e), 0);
	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "other") &&
		json_add_str(o, "suiteDocument", s->text));
	assert_int_equal(job_new(o, &j, &e), -1);
	assert_non_null(strstr(e.msg, "eliza-1"));
	o = cJSON_CreateObject();
	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "eliza-1") &&
		json_add_str(o, "suiteDocument", s->text) && json_add_str(o, "suiteDigest", s->digest));
	assert_int_equal(job_new(o, &j, &e), 0);
	assert_string_equal(j->suite->digest, s->digest);
	job_free(j);
	suite_free(s);
}

static void
paths_are_text_of_a_bounded_length(void **state)
{
	static const char *const keys[] = {"model", "source", "sourceRef", "prebuilt"};
	static const char *const values[] = {"\"\"", "null", "7", "[]", "{}", "true"};
	char text[8192], path[JOB_MAX_PATH + 2];
	size_t i, k;

	(void)state;
	for (i = 0; i < str_count(keys); i++)
		for (k = 0; k < str_count(values); k++) {
			snprintf(text, sizeof text, JOB(",\"%s\":%s"), keys[i], values[k]);
			refused(text, keys[i]);
		}
	memset(path, 'a', sizeof path);
	path[JOB_MAX_PATH + 1] = '\0';
	snprintf(text, sizeof text, JOB(",\"model\":\"%s\""), path);
	refused_bytes(text, strlen(text), ERR_LIMIT, "model");
	path[JOB_MAX_PATH] = '\0';
	snprintf(text, sizeof text, JOB(",\"model\":\"%s\""), path);
	accepted(text);
	refused(JOB(",\"sourceRef\":\"--upload-pack=x\""), "sourceRef");
	refused(JOB(",\"controller\":7"), "controller");
	refused(JOB(",\"controller\":[]"), "controller");
}

static void
only_is_one_of_its_words(void **state)
{
	(void)state;
	refused(JOB(",\"only\":\"everything\""), "only");
	refused(JOB(",\"only\":null"), "only");
	refused(JOB(",\"only\":2"), "only");
	accepted(JOB(",\"only\":\"probe\""));
	accepted(JOB(",\"only\":\"build\""));
	accepted(JOB(",\"only\":\"fixtures\""));
}

/* -DCMAKE_BUILD_TYPE in quotes of a word processor, and all their kin. */
static void
typographic_marks_in_flags_are_refused(void **state)
{
	static const char *const marks[] = {"\xe2\x80\x9c", "\xe2\x80\x9d", "\xe2\x80\x98",
		"\xe2\x80\x99", "\xe2\x80\x9e", "\xe2\x80\x9a", "\xe2\x80\x9f", "\xe2\x80\x9b", "\xc2\xab",
		"\xc2\xbb", "\xe2\x80\xb9", "\xe2\x80\xba", "\xe2\x80\xb2", "\xe2\x80\xb3", "\xc2\xb4",
		"\xef\xbc\x82", "\xef\xbc\x87", "\xe3\x80\x9d", "\xe3\x80\x9e", "\xe2\x9d\x9d",
		"\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x80\x91", "\xe2\x88\x92", "\xc2\xa0", "\xe2\x80\x8b",
		"\xe2\x80\xaf", "\xe3\x80\x80", "\xef\xbb\xbf"};
	static const char *const keys[] = {"cmakeFlags", "extraArgs", "driver", "cacheTypes"};
	char text[512];
	size_t i, k;

	(void)state;
	refused(OVER("\"cmakeFlags\":\"-DCMAKE_BUILD_TYPE=\xe2\x80\x9cRelease\xe2\x80\x9d\""),
		"overrides.cmakeFlags");
	for (i = 0; i < str_count(marks); i++)
		for (k = 0; k < str_count(keys); k++) {
			snprintf(text, sizeof text, OVER("\"%s\":\"a%sb\""), keys[k], marks[i]);
			refused(text, "typographic");
		}
	accepted(OVER("\"prompt\":\"\xe2\x80\x9cHello\xe2\x80\x9d \xe2\x80\x93 it\xe2\x80\x99s\""));
	accepted(OVER("\"cmakeFlags\":\"-DX='a b' -DY=\\\"c\\\"\""));
	accepted(OVER("\"extraArgs\":\"--lora /m/caf\xc3\xa9/\xe6\xa8\xa1\xe5\x9e\x8b.gguf\""));
	accepted(OVER("\"prompt\":\"\""));
}

static void
override_ranges_are_kept(void **state)
{
	char text[8192], *p;

	(void)state;
	refused(OVER("\"tokens\":\"0\""), "overrides.tokens");
	refused(OVER("\"tokens\":\"4097\""), "overrides.tokens");
	refused(OVER("\"tokens\":\"-1\""), "overrides.tokens");
	refused(OVER("\"tokens\":\" 4\""), "overrides.tokens");
	refused(OVER("\"tokens\":\"\""), "overrides.tokens");
	refused(OVER("\"tokens\":4"), "overrides.tokens");
	refused(OVER("\"ngl\":\"10000\""), "overrides.ngl");
	refused(OVER("\"ngl\":\"99999999999999999999\""), "overrides.ngl");
	refused(OVER("\"ngl\":\"all\""), "overrides.ngl");
	refused(OVER("\"ngl\":null"), "overrides.ngl");
	accepted(OVER("\"tokens\":\"1\",\"ngl\":\"0\""));
	accepted(OVER("\"tokens\":\"4096\",\"ngl\":\"9999\""));
	refused(JOB(",\"overrides\":[]"), "overrides");
	refused(JOB(",\"overrides\":null"), "overrides");
	refused(OVER("\"extraArgs\":\"\""), "overrides.extraArgs");
	p = text + (size_t)snprintf(text, sizeof text, "%s", HEAD
		",\"lane\":\"cpu\",\"suite\":\"llama.cpp\",\"overrides\":{\"prompt\":\"");
	memset(p, 'x', 4097);
	memcpy(p + 4097, "\"}}", 4);
	refused_bytes(text, strlen(text), ERR_LIMIT, "overrides.prompt");
	memcpy(p + 4096, "\"}}", 4);
	accepted(text);
}

static void
driver_is_one_of_two_programs(void **state)
{
	(void)state;
	accepted(OVER("\"driver\":\"llama-cli\""));
	accepted(OVER("\"driver\":\"llama-completion\""));
	refused(OVER("\"driver\":\"llama-bench\""), "llama-bench");
	refused(OVER("\"driver\":\"../../../bin/sh\""), "driver");
	refused(OVER("\"driver\":\"/bin/sh\""), "driver");
	refused(OVER("\"driver\":\"\""), "driver");
}

/* Each becomes a gate and the name of a file. */
static void
cache_types_are_plain_names_once(void **state)
{
	static const char *const bad[] = {"", " ", ",,", "../x", "a/b", "q8_0 q8_0", "q8_0,f16,q8_0",
		"baseline", "-x", ".x", "a\\u0001b", "q8_0;rm", "abcdefghijklmnopqrstuvwx"};
	char text[2048];
	size_t i, used;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		snprintf(text, sizeof text, OVER("\"cacheTypes\":\"%s\""), bad[i]);
		refused(text, "cacheTypes");
	}
	accepted(OVER("\"cacheTypes\":\"q8_0, f16 turbo3-tcq\""));
	used = (size_t)snprintf(text, sizeof text, "%s", HEAD
		",\"lane\":\"cpu\",\"suite\":\"llama.cpp\",\"overrides\":{\"cacheTypes\":\"");
	for (i = 0; i < 33; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "t%zu ", i);
	snprintf(text + used, sizeof text - used, "\"}}");
	refused_bytes(text, strlen(text), ERR_LIMIT, "cacheTypes");
}

static void
same_job_has_the_same_digest_and_another_another(void **state)
{
	struct job *a = parsed(JOB(",\"model\":\"/m\"")), *b, *c;

	(void)state;
	b = parsed(" " HEAD " ,\n\"lane\" : \"cpu\",\"suite\":\"llama\\u002ecpp\",\"model\":\"\\/m\" } ");
	c = parsed(JOB(",\"model\":\"/n\""));
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->digest, b->digest);
	assert_string_not_equal(a->digest, c->digest);
	job_free(a);
	job_free(b);
	job_free(c);
}

static void
new_job_gets_random_names_and_can_be_parsed(void **state)
{
	struct job *a = NULL, *b = NULL, *again;
	struct err e = {0};
	cJSON *o = cJSON_CreateObject(), *p = cJSON_CreateObject();

	(void)state;
	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "eliza-1"));
	assert_true(json_add_str(p, "lane", "cpu") && json_add_str(p, "suite", "eliza-1"));
	assert_int_equal(job_new(o, &a, &e), 0);
	assert_int_equal(job_new(p, &b, &e), 0);
	assert_string_not_equal(a->id, b->id);
	assert_string_not_equal(a->nonce, b->nonce);
	again = parsed(a->text);
	assert_string_equal(again->digest, a->digest);
	job_free(again);
	job_free(a);
	job_free(b);
}

/* What is made on the laptop must be what the agent takes. */
static void
new_job_that_could_not_be_read_is_not_made(void **state)
{
	struct job *j = NULL;
	struct err e = {0};
	cJSON *o = cJSON_CreateObject();
	char *big = malloc(200000);

	(void)state;
	assert_non_null(big);
	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "eliza-1") &&
		json_add_str(o, "model", "/caf\xe9.gguf"));
	assert_int_equal(job_new(o, &j, &e), -1);
	assert_non_null(strstr(e.msg, "UTF-8"));
	o = cJSON_CreateObject();
	memset(big, 'x', 199999);
	big[199999] = '\0';
	assert_true(json_add_str(o, "lane", "cpu") && json_add_str(o, "suite", "eliza-1") &&
		json_add_str(json_add_object(o, "controller"), "x", big));
	assert_int_equal(job_new(o, &j, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(job_new(cJSON_CreateArray(), &j, &e), -1);
	assert_null(j);
	free(big);
}

static void
every_override_has_its_old_variable(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < OVERRIDE_COUNT; i++) {
		assert_true(str_starts(overrides[i].variable, "ELIZA_MTP_"));
		assert_true(overrides[i].max > 0 && overrides[i].help[0] != '\0');
	}
	assert_string_equal(overrides[OVERRIDE_CACHE_TYPES].variable, "ELIZA_MTP_SMOKE_CACHE_TYPES");
	assert_string_equal(overrides[OVERRIDE_TOKENS].variable, "ELIZA_MTP_SMOKE_TOKENS");
	assert_string_equal(overrides[OVERRIDE_NGL].variable, "ELIZA_MTP_SMOKE_NGL");
	assert_string_equal(overrides[OVERRIDE_EXTRA_ARGS].variable, "ELIZA_MTP_SMOKE_EXTRA_ARGS");
	assert_string_equal(overrides[OVERRIDE_PROMPT].variable, "ELIZA_MTP_SMOKE_PROMPT");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_job_is_read),
		cmocka_unit_test(unknown_lane_suite_and_field_are_named),
		cmocka_unit_test(input_that_is_no_strict_json_is_refused),
		cmocka_unit_test(cut_job_is_refused_at_every_length),
		cmocka_unit_test(id_and_nonce_are_lower_case_hex_of_their_length),
		cmocka_unit_test(schema_version_is_one),
		cmocka_unit_test(suite_digest_that_differs_is_a_conflict),
		cmocka_unit_test(suite_document_is_checked_like_any_suite),
		cmocka_unit_test(paths_are_text_of_a_bounded_length),
		cmocka_unit_test(only_is_one_of_its_words),
		cmocka_unit_test(typographic_marks_in_flags_are_refused),
		cmocka_unit_test(override_ranges_are_kept),
		cmocka_unit_test(driver_is_one_of_two_programs),
		cmocka_unit_test(cache_types_are_plain_names_once),
		cmocka_unit_test(same_job_has_the_same_digest_and_another_another),
		cmocka_unit_test(new_job_gets_random_names_and_can_be_parsed),
		cmocka_unit_test(new_job_that_could_not_be_read_is_not_made),
		cmocka_unit_test(every_override_has_its_old_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
