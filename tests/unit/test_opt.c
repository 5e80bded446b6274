/* Option rows: what a person may type, and what the help and the completion say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/opt.h"
#include "common/str.h"

struct values {
	const char *lane, *model;
	uint64_t limit;
	bool json, verbose;
	struct opt_list set;
};

static const char *const lanes[] = {"cpu", "cuda", "vulkan", NULL};
static const struct opt opts[] = {
	{"lane", 'l', OPT_CHOICE, offsetof(struct values, lane), .fallback = "cpu",
	 .choices = lanes, .word = "LANE", .help = "kind of run"},
	{"model", 'm', OPT_TEXT, offsetof(struct values, model), .max = 8, .word = "PATH",
	 .help = "the model"},
	{"limit", 'n', OPT_NUMBER, offsetof(struct values, limit), .min = 1, .max = 1000,
	 .fallback = "20", .word = "N", .unit = "runs", .help = "at most so many"},
	{"json", 'j', OPT_FLAG, offsetof(struct values, json), .help = "for scripts"},
	{"verbose", 'v', OPT_FLAG, offsetof(struct values, verbose), .help = "say more"},
	{"set", 0, OPT_LIST, offsetof(struct values, set), .word = "KEY=VALUE",
	 .help = "an override"},
};

static int called;

static int
run_list(const struct opt_call *call)
{
	const struct values *v = call->values;

	called++;
	assert_string_equal(v->lane, "cuda");
	assert_int_equal(call->argc, 1);
	assert_string_equal(call->argv[0], "x");
	assert_null(call->argv[1]);
	return 7;
}

static const struct command commands[] = {
	{.name = "list", .arguments = "[NAME]", .summary = "list things",
	 .help = "Lists.", .opts = opts, .opt_count = str_count(opts),
	 .size = sizeof(struct values), .max_args = 1, .run = run_list,
	 .complete = "prog names"},
	{.name = "attach", .arguments = "JOB", .summary = "go on", .min_args = 1,
	 .max_args = 1, .run = run_list},
	{.name = "worker", .summary = "not for people", .run = run_list, .hidden = true},
};
static const struct program prog = {
	.name = "prog", .summary = "does things", .version = "1.2.3",
	.help = "examples:\n  prog list", .commands = commands,
	.count = str_count(commands),
};

static struct values v;
static char *args[16];
static int nargs;
static bool help;
static struct err e;

static int
parse(int argc, const char *const *argv)
{
	memset(&v, 0, sizeof v);
	memset(&e, 0, sizeof e);
	return opt_parse(opts, str_count(opts), argc, (char **)(uintptr_t)argv, &v, args, 4,
		&nargs, &help, &e);
}
#define PARSE(...) \
	parse((int)str_count(((const char *const[]){__VA_ARGS__})), \
		(const char *const[]){__VA_ARGS__})

static void
without_options_the_fallbacks_stand(void **state)
{
	(void)state;
	assert_int_equal(parse(0, NULL), 0);
	assert_string_equal(v.lane, "cpu");
	assert_int_equal(v.limit, 20);
	assert_null(v.model);
	assert_false(v.json);
	assert_int_equal(nargs, 0);
}

static void
long_short_joined_and_mixed_forms_are_read(void **state)
{
	(void)state;
	assert_int_equal(PARSE("a", "--lane=cuda", "-n", "7", "b", "-jv", "-mx.gguf"), 0);
	assert_string_equal(v.lane, "cuda");
	assert_int_equal(v.limit, 7);
	assert_true(v.json && v.verbose);
	assert_string_equal(v.model, "x.gguf");
	assert_int_equal(nargs, 2);
	assert_string_equal(args[1], "b");
	assert_int_equal(PARSE("-jn9"), 0);
	assert_true(v.json);
	assert_int_equal(v.limit, 9);
}

static void
two_dashes_end_the_options_and_one_is_an_argument(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-", "--", "--json", "-x"), 0);
	assert_false(v.json);
	assert_int_equal(nargs, 3);
	assert_string_equal(args[0], "-");
	assert_string_equal(args[1], "--json");
}

static void
the_last_of_a_repeated_option_wins_but_a_list_keeps_all(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--lane", "cuda", "--lane", "vulkan", "--set", "a=1",
		"--set=b=2"), 0);
	assert_string_equal(v.lane, "vulkan");
	assert_int_equal(v.set.count, 2);
	assert_string_equal(v.set.item[1], "b=2");
}

static void
a_list_has_a_maximum(void **state)
{
	const char *argv[OPT_MAX_LIST + 1];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(argv); i++)
		argv[i] = "--set=a=1";
	assert_int_equal(parse(OPT_MAX_LIST, argv), 0);
	assert_int_equal(parse(OPT_MAX_LIST + 1, argv), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
misspelt_options_get_a_suggestion(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--lnae", "cpu"), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.msg, "no such option: --lnae");
	assert_string_equal(e.hint, "did you mean --lane?");
	assert_int_equal(PARSE("-z"), -1);
	assert_string_equal(e.msg, "no such option: -z");
}

static void
values_out_of_their_bounds_are_usage_errors(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--limit", "0"), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(PARSE("--limit", "1001"), -1);
	assert_int_equal(PARSE("--limit", "-1"), -1);
	assert_int_equal(PARSE("--limit", "7x"), -1);
	assert_int_equal(PARSE("--limit="), -1);
	assert_int_equal(PARSE("--limit", "18446744073709551617"), -1);
	assert_int_equal(PARSE("--model", "123456789"), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(PARSE("--model", "12345678"), 0);
}

static void
an_unknown_choice_names_the_choices(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--lane", "vulcan"), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.msg, "cpu, cuda, vulkan"));
	assert_string_equal(e.hint, "did you mean vulkan?");
}

static void
a_missing_value_and_a_value_too_many_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--model"), -1);
	assert_string_equal(e.msg, "--model needs a value");
	assert_string_equal(e.hint, "--model PATH");
	assert_int_equal(PARSE("--json=yes"), -1);
	assert_string_equal(e.msg, "--json takes no value");
	assert_int_equal(PARSE("-m"), -1);
}

static void
too_many_arguments_are_refused(void **state)
{
	(void)state;
	assert_int_equal(PARSE("1", "2", "3", "4"), 0);
	assert_int_equal(PARSE("1", "2", "3", "4", "5"), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

static void
help_is_seen_anywhere(void **state)
{
	(void)state;
	assert_int_equal(PARSE("a", "--help", "--nonsense"), 0);
	assert_true(help);
	assert_int_equal(PARSE("-h"), 0);
	assert_true(help);
}

static void
the_nearest_word_is_near(void **state)
{
	static const char *const words[] = {"run", "runs", "attach", "cancel", "classes"};

	(void)state;
	assert_string_equal(opt_nearest("atach", words, 5), "attach");
	assert_string_equal(opt_nearest("clases", words, 5), "classes");
	assert_string_equal(opt_nearest("can", words, 5), "cancel");
	assert_string_equal(opt_nearest("rnu", words, 5), "run");
	assert_null(opt_nearest("frobnicate", words, 5));
	assert_null(opt_nearest("", words, 5));
}

static void
main_calls_the_command_and_gives_its_status(void **state)
{
	const char *argv[] = {"prog", "list", "x", "--lane", "cuda", NULL};
	const char *unknown[] = {"prog", "lst", NULL};
	const char *none[] = {"prog", NULL};
	const char *few[] = {"prog", "attach", NULL};
	const char *many[] = {"prog", "list", "a", "b", NULL};

	(void)state;
	called = 0;
	assert_int_equal(opt_main(&prog, 5, (char **)(uintptr_t)argv), 7);
	assert_int_equal(called, 1);
	assert_int_equal(opt_main(&prog, 2, (char **)(uintptr_t)unknown), EXIT_USAGE);
	assert_int_equal(opt_main(&prog, 1, (char **)(uintptr_t)none), EXIT_USAGE);
	assert_int_equal(opt_main(&prog, 2, (char **)(uintptr_t)few), EXIT_USAGE);
	assert_int_equal(opt_main(&prog, 4, (char **)(uintptr_t)many), EXIT_USAGE);
	assert_int_equal(called, 1);
}

static void
help_of_a_command_lists_every_row_with_bounds(void **state)
{
	char *text = opt_help_command(&prog, &commands[0]);

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "usage: prog list [NAME] [options]\n"));
	assert_non_null(strstr(text,
		"  -l, --lane LANE         kind of run (cpu, cuda, vulkan; default cpu)\n"));
	assert_non_null(strstr(text, "(1 to 1000 runs; default 20)"));
	assert_non_null(strstr(text, "      --set KEY=VALUE     an override (may be repeated)\n"));
	free(text);
}

static void
help_of_the_program_hides_hidden_commands(void **state)
{
	char *text = opt_help_program(&prog);

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "  attach JOB              go on\n"));
	assert_non_null(strstr(text, "examples:\n  prog list\n"));
	assert_null(strstr(text, "worker"));
	free(text);
}

static void
help_is_wrapped_at_eighty_columns(void **state)
{
	static const struct opt wide[] = {{"wide", 0, OPT_FLAG, 0,
		.help = "one two three four five six seven eight nine ten eleven twelve "
			"thirteen fourteen fifteen"}};
	static const struct command c = {.name = "c", .summary = "s", .opts = wide,
		.opt_count = 1};
	char *text = opt_help_command(&prog, &c), *line, *save = NULL;

	(void)state;
	assert_non_null(text);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		assert_true(strlen(line) <= 80);
	free(text);
}

static void
completion_has_commands_options_and_choices(void **state)
{
	char *text = opt_completion_bash(&prog);

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "commands=\"list attach help completion\""));
	assert_non_null(strstr(text, "\"list --lane\"|\"list -l\") COMPREPLY=($(compgen -W \"cpu cuda vulkan\""));
	assert_non_null(strstr(text, "\"list --model\"|\"list -m\") COMPREPLY=($(compgen -f"));
	assert_non_null(strstr(text, "\"list -\"*) words=\"--help --lane --model --limit"));
	assert_non_null(strstr(text, "complete -F _prog prog\n"));
	assert_null(strstr(text, "worker"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_the_fallbacks_stand),
		cmocka_unit_test(long_short_joined_and_mixed_forms_are_read),
		cmocka_unit_test(two_dashes_end_the_options_and_one_is_an_argument),
		cmocka_unit_test(the_last_of_a_repeated_option_wins_but_a_list_keeps_all),
		cmocka_unit_test(a_list_has_a_maximum),
		cmocka_unit_test(misspelt_options_get_a_suggestion),
		cmocka_unit_test(values_out_of_their_bounds_are_usage_errors),
		cmocka_unit_test(an_unknown_choice_names_the_choices),
		cmocka_unit_test(a_missing_value_and_a_value_too_many_are_told_apart),
		cmocka_unit_test(too_many_arguments_are_refused),
		cmocka_unit_test(help_is_seen_anywhere),
		cmocka_unit_test(the_nearest_word_is_near),
		cmocka_unit_test(main_calls_the_command_and_gives_its_status),
		cmocka_unit_test(help_of_a_command_lists_every_row_with_bounds),
		cmocka_unit_test(help_of_the_program_hides_hidden_commands),
		cmocka_unit_test(help_is_wrapped_at_eighty_columns),
		cmocka_unit_test(completion_has_commands_options_and_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
