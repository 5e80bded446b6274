#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/suite.h"
#include "tests/unit/repo.h"

static struct suite *
builtin(const char *name)
{
	struct suite *s = NULL;
	struct err e = {0};

	if (suite_builtin(name, &s, &e))
		fail_msg("%s", e.msg);
	return s;
}

static void
families_are(const struct suite *s, const char *const rows[][4], int n)
{
	int i, k;

	assert_int_equal(s->family_count, n);
	for (i = 0; i < n; i++) {
		assert_string_equal(s->families[i].name, rows[i][0]);
		for (k = 0; k < 3 && rows[i][k + 1] != NULL; k++)
			assert_string_equal(s->families[i].aliases[k], rows[i][k + 1]);
		assert_int_equal(s->families[i].alias_count, k);
	}
}

static void
eliza_suite_names_the_five_families_with_aliases(void **state)
{
	static const char *const rows[][4] = {
		{"turbo3", "tbq3_0", "turbo3", NULL}, {"turbo4", "tbq4_0", "turbo4", NULL},
		{"turbo3_tcq", "tbq3_tcq", "turbo3_tcq", "turbo3-tcq"},
		{"qjl", "qjl1_256", "qjl_full", "qjl"}, {"polar", "q4_polar", "polarquant", "polar"},
	};
	struct suite *s = builtin("eliza-1");

	(void)state;
	families_are(s, rows, 5);
	assert_string_equal(s->driver, "llama-completion");
	assert_string_equal(s->prompt, "Eliza local backend graph dispatch smoke.");
	assert_int_equal(s->tokens, 4);
	assert_int_equal(s->ngl, 99);
	assert_string_equal(s->baseline, "f16");
	suite_free(s);
}

static void
stock_suite_names_the_seven_stock_types(void **state)
{
	static const char *const rows[][4] = {{"f16", "f16", NULL}, {"q8_0", "q8_0", NULL},
		{"q5_1", "q5_1", NULL}, {"q5_0", "q5_0", NULL}, {"q4_1", "q4_1", NULL},
		{"q4_0", "q4_0", NULL}, {"iq4_nl", "iq4_nl", NULL}};
	struct suite *s = builtin("llama.cpp");

	(void)state;
	families_are(s, rows, 7);
	assert_string_equal(s->driver, "llama-completion");
	assert_int_equal(s->tokens, 4);
	assert_int_equal(s->ngl, 99);
	assert_string_equal(s->baseline, "f16");
	suite_free(s);
}

static void
both_suites_require_every_gate_of_the_lane_and_make_two_claims(void **state)
{
	const struct lane *cpu = lane_find("cpu");
	const char *name;
	struct suite *s;
	size_t i;

	(void)state;
	for (i = 0; (name = suite_builtin_name(i)) != NULL; i++) {
		s = builtin(name);
		if (strcmp(name, "eliza-1-gemma") == 0) {
			/* what shipped tiers run; no cache family of it is on their route */
			assert_int_equal(s->claims, 1u << CLAIM_GEMMA_RUNTIME);
			assert_int_equal(s->family_count, 0);
			assert_true(s->mtp.type_count > 0 && s->mtp.drafter && s->mtp.floor > 0.02);
			suite_free(s);
			continue;
		}
		assert_int_equal(s->required & cpu->gates, cpu->gates & ~GATE_BIT(GATE_MTP));
		assert_true((s->required & GATE_BIT(GATE_OP_PARITY)) != 0);
		/* stock engines have no such ops */
		assert_int_equal(suite_wants(s, GATE_ROUTES), strcmp(name, "eliza-1") == 0);
		assert_int_equal((s->required & GATE_BIT(GATE_ROUTES)) != 0, strcmp(name, "eliza-1") == 0);
		assert_int_equal(s->claims, 1u << CLAIM_FIXTURE_PARITY | 1u << CLAIM_LEGACY_KV_GRAPH);
		assert_int_equal(s->fixture_count, 12);
		assert_true(s->tolerance == 1e-3);
		suite_free(s);
	}
	assert_int_equal(i, 3);
	assert_null(suite_builtin_name(99));
}

#define SHA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void
eliza_suite_never_counts_a_synthetic_model(void **state)
{
	static const char *const architectures[] = {"gemma4", "gemma3", "llama", "qwen3", "", NULL};
	struct suite *s = builtin("eliza-1");
	int64_t head;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(architectures); i++)
		for (head = 0; head <= 512; head += 32)
			assert_false(suite_model_counts(s, SHA, architectures[i], head, true));
	assert_true(suite_model_counts(s, SHA, "gemma4", 256, false));
	assert_true(suite_model_counts(s, SHA, "llama", 128, false));
	assert_false(suite_model_counts(s, SHA, "llama", 64, false));
	assert_false(suite_model_counts(s, SHA, NULL, 128, false));
	suite_free(s);
}

static void
stock_suite_counts_synthetic_and_real_models(void **state)
{
	struct suite *s = builtin("llama.cpp");

	(void)state;
	assert_true(suite_model_counts(s, SHA, "llama", 128, true));
	assert_true(suite_model_counts(s, SHA, "llama", 256, true));
	assert_true(suite_model_counts(s, SHA, "qwen3", 128, false));
	suite_free(s);
}

static void
stock_suite_counts_the_stock_tree_by_id(void **state)
{
	struct suite *s = builtin("llama.cpp");

	(void)state;
	assert_true(suite_source_counts(s, "0424752fbbc3bb01469ec830a30f2bc035497cd4", NULL));
	assert_true(suite_source_counts(s, "0424752fbbc3bb01469ec830a30f2bc035497cd4", "/home/x/any"));
	assert_false(suite_source_counts(s, "0424752fbbc3bb01469ec830a30f2bc035497cd5", "/home/x/any"));
	assert_false(suite_source_counts(s, NULL, NULL));
	assert_false(suite_source_counts(s, "", ""));
	assert_true(suite_source_counts(s, NULL, "https://github.com/ggml-org/llama.cpp"));
	suite_free(s);
}

static void
eliza_suite_counts_its_fork_and_not_the_stock_tree(void **state)
{
	struct suite *s = builtin("eliza-1");

	(void)state;
	assert_true(suite_source_counts(s, NULL, "https://github.com/elizaOS/llama.cpp.git"));
	assert_false(suite_source_counts(s, "0424752fbbc3bb01469ec830a30f2bc035497cd4",
		"https://github.com/ggml-org/llama.cpp"));
	suite_free(s);
}

static void
digest_is_that_of_the_file_in_the_tree(void **state)
{
	struct suite *in_program, *loaded = NULL;
	char path[128];
	const char *name;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; (name = suite_builtin_name(i)) != NULL; i++) {
		in_program = builtin(name);
		snprintf(path, sizeof path, "fixtures/suites/%s.json", name);
		if (suite_load(path, &loaded, &e))
			fail_msg("%s", e.msg);
		assert_string_equal(in_program->digest, loaded->digest);
		assert_string_equal(in_program->name, name);
		assert_true(str_is_hex(loaded->digest, 64));
		suite_free(in_program);
		suite_free(loaded);
	}
}

static void
unknown_suite_is_named_with_those_there_are(void **state)
{
	static const char *const names[] = {"nope", "", "ELIZA-1", "eliza-1 ", "../eliza-1"};
	struct suite *s = NULL;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		assert_int_equal(suite_builtin(names[i], &s, &e), -1);
		assert_int_equal(e.code, ERR_NOTFOUND);
		assert_non_null(strstr(e.hint, "llama.cpp"));
		assert_null(s);
	}
	suite_free(NULL);
}

/* ---- malformed ---- */

static const char whole[] =
	"{\"schemaVersion\":1,\"name\":\"t\",\"title\":\"T\",\"driver\":\"d\",\"programs\":[\"d\"],"
	"\"prompt\":\"p\",\"tokens\":4,\"ngl\":99,\"seed\":42,\"baseline\":\"f16\","
	"\"families\":[{\"name\":\"a\",\"aliases\":[\"x\"]}],\"fixtures\":[\"turbo3\"],"
	"\"tolerance\":0.001,\"models\":[{\"headSize\":128}],\"sources\":[{\"origin\":\"*\"}],"
	"\"required\":[\"host\"],\"claims\":[\"fixture-parity\"]}";

/* The whole suite with one member replaced (NULL: taken away). */
static char *
changed(const char *key, const char *json)
{
	struct err e = {0};
	cJSON *o = NULL, *v = NULL;
	char *text;

	assert_int_equal(json_parse(whole, sizeof whole - 1, 65536, &o, &e), 0);
	if (json == NULL) {
		cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	} else {
		if (json_parse(json, strlen(json), 65536, &v, &e))
			fail_msg("%s: %s", json, e.msg);
		if (json_get(o, key) != NULL)
			cJSON_ReplaceItemInObjectCaseSensitive(o, key, v);
		else
			assert_true(json_add(o, key, v));
	}
	text = json_text(o, false);
	assert_non_null(text);
	cJSON_Delete(o);
	return text;
}

static void
refused(const char *text, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);
	struct suite *s = NULL;
	struct err e = {0};

	assert_non_null(copy);
	memcpy(copy, text, len);
	if (suite_parse(copy, len, &s, &e) == 0)
		fail_msg("accepted: %.*s", (int)len, text);
	assert_null(s);
	assert_true(e.code == ERR_PARSE || e.code == ERR_LIMIT);
	assert_true(str_starts(e.msg, "suite: "));
	free(copy);
}

static void
refused_with(const char *key, const char *json)
{
	char *text = changed(key, json);

	refused(text, strlen(text));
	free(text);
}

static void
accepted_with(const char *key, const char *json)
{
	char *text = changed(key, json);
	struct suite *s = NULL;
	struct err e = {0};

	if (suite_parse(text, strlen(text), &s, &e))
		fail_msg("refused %s=%s: %s", key, json, e.msg);
	suite_free(s);
	free(text);
}

static void
every_member_is_needed(void **state)
{
	static const char *const keys[] = {"schemaVersion", "name", "title", "driver", "programs",
		"prompt", "tokens", "ngl", "seed", "baseline", "families", "fixtures", "tolerance",
		"models", "sources", "required", "claims"};
	size_t i;

	(void)state;
	accepted_with("name", "\"t\"");
	for (i = 0; i < str_count(keys); i++)
		refused_with(keys[i], NULL);
}

static void
every_member_of_another_type_is_refused(void **state)
{
	static const char *const keys[] = {"schemaVersion", "name", "title", "driver", "programs",
		"prompt", "tokens", "ngl", "seed", "baseline", "families", "fixtures", "tolerance",
		"models", "sources", "required", "claims"};
	static const char *const values[] = {"null", "true", "{}", "[[]]", "[null]", "[1]", "-1",
		"1.5", "[[\"x\"]]", "[{\"x\":1}]", "{\"a\":[]}", "1e300"};
	size_t i, k;

	(void)state;
	for (i = 0; i < str_count(keys); i++)
		for (k = 0; k < str_count(values); k++)
			refused_with(keys[i], values[k]);
}

static void
values_out_of_range_are_refused(void **state)
{
	static const char *const rows[][2] = {
		{"schemaVersion", "2"}, {"schemaVersion", "0"}, {"schemaVersion", "\"1\""},
		{"tokens", "0"}, {"tokens", "4097"}, {"ngl", "10000"}, {"seed", "2147483648"},
		{"tolerance", "0"}, {"tolerance", "1.1"}, {"tolerance", "\"0.001\""},
		{"name", "\"\""}, {"name", "\"a/b\""}, {"name", "\"..\""}, {"name", "\"-a\""},
		{"name", "\"a b\""}, {"name", "\"a\\u0009\""}, {"driver", "\"../../bin/sh\""},
		{"driver", "\"/bin/sh\""}, {"driver", "\"\""}, {"baseline", "\"f16 --x\""},
		{"programs", "[]"}, {"programs", "[\"a;b\"]"}, {"programs", "[\"-j\"]"},
		{"programs", "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]"},
		{"fixtures", "[]"}, {"fixtures", "[\"../x\"]"}, {"fixtures", "[\"\"]"},
		{"required", "[]"}, {"required", "[\"nope\"]"}, {"required", "[\"graph-smoke/q8_0\"]"},
		{"required", "[\"graph-smoke/\"]"}, {"required", "[\"Host\"]"}, {"required", "[\"host\",7]"},
		{"claims", "[]"}, {"claims", "[\"everything\"]"}, {"claims", "[\"host\"]"},
		{"extra", "1"}, {"Name", "\"t\""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		refused_with(rows[i][0], rows[i][1]);
}

static void
malformed_families_are_refused(void **state)
{
	static const char *const rows[] = {"[]", "[{}]", "[{\"name\":\"a\"}]", "[[\"a\"]]", "[\"a\"]",
		"[{\"name\":\"a\",\"aliases\":[]}]", "[{\"name\":\"a\",\"aliases\":\"x\"}]",
		"[{\"name\":\"a\",\"aliases\":[1]}]", "[{\"name\":\"a\",\"aliases\":[\"x y\"]}]",
		"[{\"name\":\"a\",\"aliases\":[\"x\"],\"more\":1}]", "[{\"name\":\"\",\"aliases\":[\"x\"]}]",
		"[{\"name\":\"a/b\",\"aliases\":[\"x\"]}]", "[{\"name\":7,\"aliases\":[\"x\"]}]",
		"[{\"name\":\"baseline\",\"aliases\":[\"x\"]}]",
		"[{\"name\":\"a\",\"aliases\":[\"x\"]},{\"name\":\"a\",\"aliases\":[\"y\"]}]",
		"[{\"name\":\"a\",\"aliases\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}]"};
	char many[4096] = "[";
	size_t i, used = 1;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		refused_with("families", rows[i]);
	for (i = 0; i <= SUITE_MAX_FAMILIES; i++)
		used += (size_t)snprintf(many + used, sizeof many - used,
			"%s{\"name\":\"f%zu\",\"aliases\":[\"x\"]}", i ? "," : "", i);
	snprintf(many + used, sizeof many - used, "]");
	refused_with("families", many);
}

/* A typing error must not turn a rule into "any model" or "any source". */
static void
malformed_rules_are_refused(void **state)
{
	static const char *const models[] = {"[{\"sha256\":7}]", "[{\"sha256\":\"abc\"}]",
		"[{\"sha256\":\"\"}]", "[{\"sha256\":null}]", "[{\"architecture\":7}]",
		"[{\"architecture\":\"\"}]", "[{\"headSize\":\"128\"}]", "[{\"headSize\":0}]",
		"[{\"headSize\":-1}]", "[{\"headSize\":1.5}]", "[{\"headSize\":null}]",
		"[{\"synthetic\":\"no\"}]", "[{\"synthetic\":0}]", "[{\"headsize\":128}]", "[7]", "[[]]",
		"[[{}]]", "[null]"};
	static const char *const sources[] = {"[{}]", "[{\"tree\":7}]", "[{\"tree\":\"\"}]",
		"[{\"tree\":\"0424752\"}]", "[{\"tree\":\"0424752FBBC3BB01469EC830A30F2BC035497CD4\"}]",
		"[{\"origin\":7}]", "[{\"origin\":\"\"}]", "[{\"origin\":null}]", "[{\"url\":\"x\"}]",
		"[\"*\"]", "[[\"*\"]]", "[{\"tree\":7,\"origin\":\"*\"}]"};
	char many[1024] = "[{}";
	size_t i;

	(void)state;
	for (i = 0; i < str_count(models); i++)
		refused_with("models", models[i]);
	for (i = 0; i < str_count(sources); i++)
		refused_with("sources", sources[i]);
	for (i = 0; i < SUITE_MAX_RULES; i++)
		memcpy(many + 3 + 3 * i, ",{}", 3);
	memcpy(many + 3 + 3 * i, "]", 2);
	refused_with("models", many);
	accepted_with("models", "[]");
	accepted_with("sources", "[]");
	accepted_with("models", "[{}]");
}

static void
suite_without_rules_counts_nothing(void **state)
{
	char *text = changed("models", "[]");
	struct suite *s = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(suite_parse(text, strlen(text), &s, &e), 0);
	assert_false(suite_model_counts(s, SHA, "llama", 128, false));
	suite_free(s);
	free(text);
	text = changed("sources", "[]");
	assert_int_equal(suite_parse(text, strlen(text), &s, &e), 0);
	assert_false(suite_source_counts(s, "0424752fbbc3bb01469ec830a30f2bc035497cd4", "x"));
	suite_free(s);
	free(text);
}

static void
all_parts_of_a_rule_must_fit(void **state)
{
	char *text = changed("models", "[{\"sha256\":\"" SHA "\",\"architecture\":\"llama\","
		"\"headSize\":128,\"synthetic\":true}]");
	struct suite *s = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(suite_parse(text, strlen(text), &s, &e), 0);
	assert_true(suite_model_counts(s, SHA, "llama", 128, true));
	assert_true(suite_model_counts(s, SHA, "llama", 128, false));
	assert_false(suite_model_counts(s, NULL, "llama", 128, true));
	assert_false(suite_model_counts(s, SHA, "llamas", 128, true));
	assert_false(suite_model_counts(s, SHA, "llama", 129, true));
	assert_false(suite_model_counts(s, "b" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"llama", 128, true));
	suite_free(s);
	free(text);
}

static void
text_that_is_no_suite_is_refused(void **state)
{
	static const char *const rows[] = {"", "{}", "[]", "null", "7", "\"suite\"", "[[]]"};
	char *big = malloc(SUITE_MAX_BYTES + 1);
	size_t i;

	(void)state;
	assert_non_null(big);
	for (i = 0; i < str_count(rows); i++)
		refused(rows[i], strlen(rows[i]));
	for (i = 0; i < sizeof whole - 1; i++)
		refused(whole, i);
	memset(big, ' ', SUITE_MAX_BYTES + 1);
	memcpy(big, whole, sizeof whole - 1);
	refused(big, SUITE_MAX_BYTES + 1);
	free(big);
	refused("\xef\xbb\xbf{}", 5);
}

static void
loading_says_which_file(void **state)
{
	char dir[256], path[300];
	struct suite *s = NULL;
	struct err e = {0};

	(void)state;
	repo_folder(dir, sizeof dir);
	assert_int_equal(suite_load(dir, &s, &e), -1);
	repo_write(dir, "s.json", "{}", 0644);
	snprintf(path, sizeof path, "%s/s.json", dir);
	assert_int_equal(suite_load(path, &s, &e), -1);
	assert_non_null(strstr(e.msg, "s.json"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(suite_load(path, &s, &e), -1);
	assert_null(s);
	repo_remove(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eliza_suite_names_the_five_families_with_aliases),
		cmocka_unit_test(stock_suite_names_the_seven_stock_types),
		cmocka_unit_test(both_suites_require_every_gate_of_the_lane_and_make_two_claims),
		cmocka_unit_test(eliza_suite_never_counts_a_synthetic_model),
		cmocka_unit_test(stock_suite_counts_synthetic_and_real_models),
		cmocka_unit_test(stock_suite_counts_the_stock_tree_by_id),
		cmocka_unit_test(eliza_suite_counts_its_fork_and_not_the_stock_tree),
		cmocka_unit_test(digest_is_that_of_the_file_in_the_tree),
		cmocka_unit_test(unknown_suite_is_named_with_those_there_are),
		cmocka_unit_test(every_member_is_needed),
		cmocka_unit_test(every_member_of_another_type_is_refused),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(malformed_families_are_refused),
		cmocka_unit_test(malformed_rules_are_refused),
		cmocka_unit_test(suite_without_rules_counts_nothing),
		cmocka_unit_test(all_parts_of_a_rule_must_fit),
		cmocka_unit_test(text_that_is_no_suite_is_refused),
		cmocka_unit_test(loading_says_which_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
