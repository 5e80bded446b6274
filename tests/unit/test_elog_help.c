#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/elog.h"
#include "common/str.h"

#define MAX_HELP (1u << 18)

static char *
read_help(const char *file, size_t *len)
{
	char path[512], *p;
	FILE *f;

	if (str_fmt(path, sizeof path, NULL, "fixtures/logs/%s", file))
		return NULL;
	if ((f = fopen(path, "rb")) == NULL)
		return NULL;
	p = malloc(MAX_HELP);
	assert_non_null(p);
	*len = fread(p, 1, MAX_HELP, f);
	fclose(f);
	return p;
}

static int
help_types(const char *file, char names[][ELOG_TYPE], int max)
{
	size_t len = 0;
	char *help = read_help(file, &len);
	int n;

	assert_non_null(help);
	n = elog_help_types(help, len, names, max);
	free(help);
	return n;
}

static void
wrapped_list_of_the_fork_is_read_whole(void **state)
{
	static const char *const want[] = {
		"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1", "tbq3_0",
		"tbq4_0", "tbq3_k", "tbq4_k", "qjl1_256", "q4_polar", "tbq3_tcq",
	};
	char names[32][ELOG_TYPE];
	int i, n = help_types("fork-96dd1a8-llama-completion-help.txt", names, 32);

	(void)state;
	assert_int_equal(n, str_count(want));
	for (i = 0; i < n; i++)
		assert_string_equal(names[i], want[i]);
	assert_int_equal(help_types("fork-96dd1a8-llama-completion-help.txt", names, 3), 3);
}

static void
families_resolve_against_the_fork_and_not_against_stock(void **state)
{
	static const struct suite_family families[] = {
		{ "turbo3", { "tbq3_0", "turbo3" }, 2, {.device_count = 0}, 0 },
		{ "turbo4", { "tbq4_0", "turbo4" }, 2, {.device_count = 0}, 0 },
		{ "turbo3_tcq", { "tbq3_tcq", "turbo3_tcq", "turbo3-tcq" }, 3, {.device_count = 0}, 0 },
		{ "qjl", { "qjl1_256", "qjl_full", "qjl" }, 3, {.device_count = 0}, 0 },
		{ "polar", { "q4_polar", "polarquant", "polar" }, 3, {.device_count = 0}, 0 },
	};
	char fork[32][ELOG_TYPE], stock[32][ELOG_TYPE];
	int nf = help_types("fork-96dd1a8-llama-completion-help.txt", fork, 32);
	int ns = help_types("stock-v0.4.0-llama-completion-help.txt", stock, 32);
	size_t i;

	(void)state;
	assert_int_equal(ns, 9);
	for (i = 0; i < str_count(families); i++) {
		assert_string_equal(elog_resolve(&families[i], fork, nf), families[i].aliases[0]);
		assert_null(elog_resolve(&families[i], stock, ns));
	}
}

static void
alias_is_a_whole_word_without_case(void **state)
{
	static const struct suite_family turbo3 = { "turbo3", { "tbq3_0", "turbo3" }, 2, {.device_count = 0}, 0 };
	char names[2][ELOG_TYPE] = { "turbo3_tcq", "TURBO3" };

	(void)state;
	assert_null(elog_resolve(&turbo3, names, 1));
	assert_string_equal(elog_resolve(&turbo3, names, 2), "turbo3");
	assert_null(elog_resolve(&turbo3, names, 0));
}

static void
list_of_the_draft_model_does_not_count(void **state)
{
	static const char draft[] =
		"--spec-draft-type-k, -ctkd, --cache-type-k-draft TYPE\n"
		"                                        allowed values: f32, f16\n";
	static const char quiet[] =
		"-ctk,  --cache-type-k TYPE              KV cache data type for K (default: f16)\n"
		"-ctv,  --cache-type-v TYPE              KV cache data type for V\n"
		"                                        allowed values: f32, f16\n";
	char names[8][ELOG_TYPE];

	(void)state;
	assert_int_equal(elog_help_types(draft, strlen(draft), names, 8), 0);
	assert_int_equal(elog_help_types(quiet, strlen(quiet), names, 8), 0);
	assert_int_equal(elog_help_types("", 0, names, 8), 0);
}

static void
option_is_found_as_a_whole_word(void **state)
{
	size_t len = 0;
	char *help = read_help("stock-v0.4.0-llama-completion-help.txt", &len);

	(void)state;
	assert_non_null(help);
	assert_true(elog_help_has(help, len, "--fit"));
	assert_true(elog_help_has(help, len, "--ignore-eos"));
	assert_true(elog_help_has(help, len, "--cache-type-k"));
	assert_true(elog_help_has(help, len, "-no-cnv"));
	assert_false(elog_help_has(help, len, "--fi"));
	assert_false(elog_help_has(help, len, "--cache-type"));
	assert_false(elog_help_has(help, len, "-type-k"));
	assert_false(elog_help_has("--fit-target", 12, "--fit"));
	assert_true(elog_help_has("--fit", 5, "--fit"));
	assert_false(elog_help_has("--fi", 4, "--fit"));
	free(help);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrapped_list_of_the_fork_is_read_whole),
		cmocka_unit_test(families_resolve_against_the_fork_and_not_against_stock),
		cmocka_unit_test(alias_is_a_whole_word_without_case),
		cmocka_unit_test(list_of_the_draft_model_does_not_count),
		cmocka_unit_test(option_is_found_as_a_whole_word),
	};

	return cmocka_run_group_tests_name("engine help", tests, NULL, NULL);
}
