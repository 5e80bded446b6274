/* Exit codes of Windows programs in the forms that tools print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/elog.h"
#include "common/ntstatus.h"
#include "common/str.h"
#include "common/tool.h"

static void
one_code_is_read_in_three_forms(void **state)
{
	static const struct {
		const char *text;
		int code;
	} good[] = {
		{"0", 0}, {"3", 3}, {"255", 255}, {"-1", -1}, {"3221225781", -1073741515}, {"-1073741515", -1073741515},
		{"0xC0000135", -1073741515}, {"0xc0000135", -1073741515}, {"2147483647", 2147483647},
		{"4294967295", -1}, {"0x80000003", -2147483645},
	};
	static const char *const bad[] = {"", "-", "0x", "x3", "3 ", " 3", "4294967296", "-2147483649", "0x1C0000135",
		"99999999999999999999", "3.5", "C0000135"};
	struct err e = {0};
	size_t i;
	int code;

	(void)state;
	for (i = 0; i < str_count(good); i++) {
		code = 77;
		assert_int_equal(ntstatus_parse(good[i].text, &code, &e), 0);
		if (code != good[i].code)
			fail_msg("%s: %d", good[i].text, code);
	}
	for (i = 0; i < str_count(bad); i++)
		if (ntstatus_parse(bad[i], &code, &e) == 0)
			fail_msg("\"%s\" is %d", bad[i], code);
	assert_int_equal(e.code, ERR_USAGE);
}

static void
codes_are_named_and_others_stay_numbers(void **state)
{
	char text[96];

	(void)state;
	ntstatus_show(-1073741515, text, sizeof text);
	assert_string_equal(text, "0xC0000135 (STATUS_DLL_NOT_FOUND: a library is missing)");
	ntstatus_show(-1073741511, text, sizeof text);
	assert_non_null(strstr(text, "0xC0000139 (STATUS_ENTRYPOINT_NOT_FOUND"));
	ntstatus_show(-1073741819, text, sizeof text);
	assert_non_null(strstr(text, "0xC0000005 (STATUS_ACCESS_VIOLATION"));
	ntstatus_show((int)(0xC0001234u - 0x80000000u) - 2147483647 - 1, text, sizeof text);
	assert_string_equal(text, "0xC0001234");
	ntstatus_show(3, text, sizeof text);
	assert_string_equal(text, "3");
	assert_false(ntstatus_is(-1));
	assert_false(ntstatus_is(0));
	assert_false(ntstatus_is(139));
	assert_true(ntstatus_not_loaded(-1073741515));
	assert_false(ntstatus_not_loaded(-1073741819));
}

static void
a_code_in_a_text_is_found_as_a_word_only(void **state)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{"llama runner process no longer running: 3221225785", -1073741511},
		{"exited with code -1073741819.", -1073741819},
		{"unable to start correctly (0xc000007b). Click OK", -1073741701},
		{"version 13221225785, 3221225785.1.2", 0}, {"id a3221225785", 0}, {"0xC0000135A", 0},
		{"GPU-3221225785-11", 0}, {"exit 1", 0}, {"", 0},
	};
	size_t i;
	int code;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		code = 0;
		if (ntstatus_find(rows[i].text, strlen(rows[i].text), &code) != (rows[i].code != 0) || code != rows[i].code)
			fail_msg("\"%s\": %d", rows[i].text, code);
	}
}

static void
tools_that_windows_ended_prove_nothing_and_say_why(void **state)
{
	static const char list[] = "GPU 0: NVIDIA H200 (UUID: GPU-0000d200-1111-2222-3333-44444444d200)\n";
	static struct tool_answer a;

	(void)state;
	tool_parse(TOOL_NVIDIA_SMI_L, list, sizeof list - 1, 0, &a);
	assert_int_equal(a.reason, REASON_NONE);
	tool_parse(TOOL_NVIDIA_SMI_L, list, sizeof list - 1, -1073741819, &a);
	assert_int_equal(a.reason, REASON_PROBE_CRASHED);
	assert_non_null(strstr(a.detail, "0xC0000005 (STATUS_ACCESS_VIOLATION"));
	tool_parse(TOOL_NVIDIA_SMI_L, list, sizeof list - 1, 139, &a);
	assert_int_equal(a.reason, REASON_PROBE_CRASHED);
	tool_parse(TOOL_VULKANINFO, "", 0, -1073741515, &a);
	assert_int_equal(a.reason, REASON_TOOL_BROKEN);
	assert_non_null(strstr(a.detail, "STATUS_DLL_NOT_FOUND"));
	tool_parse(TOOL_VULKANINFO, "vulkaninfo.exe exited with code -1073741515\r\n", 45, 1, &a);
	assert_int_equal(a.reason, REASON_TOOL_BROKEN);
	/* what the tool itself said stays */
	tool_parse(TOOL_NVIDIA_SMI_L, "No devices were found\n", 22, -1073741819, &a);
	assert_int_equal(a.reason, REASON_NO_DEVICE);
}

static void
engines_that_windows_ended_are_no_unseen_ends(void **state)
{
	static const struct {
		int exit;
		enum reason reason;
		const char *says;
	} rows[] = {
		{-1073741819, REASON_ENGINE_CRASH, "0xC0000005 (STATUS_ACCESS_VIOLATION"},
		{-1073740791, REASON_ENGINE_CRASH, "0xC0000409 (STATUS_STACK_BUFFER_OVERRUN"},
		{-1073741515, REASON_TOOL_BROKEN, "0xC0000135 (STATUS_DLL_NOT_FOUND"},
		{-1, REASON_INTERNAL, "end was not seen"},
	};
	static struct elog l;
	struct smoke_verdict v;
	struct smoke_ask ask = {.lane = lane_find("cpu"), .cache_type = "f16", .tokens = 8};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		elog_parse("0.00.000.001 I build: 1\n", 24, &l);
		ask.exit = rows[i].exit;
		elog_judge(&l, &ask, &v);
		if (v.reason != rows[i].reason || strstr(v.detail, rows[i].says) == NULL)
			fail_msg("%d: %s: %s", rows[i].exit, reason_name(v.reason), v.detail);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_code_is_read_in_three_forms),
		cmocka_unit_test(codes_are_named_and_others_stay_numbers),
		cmocka_unit_test(a_code_in_a_text_is_found_as_a_word_only),
		cmocka_unit_test(tools_that_windows_ended_prove_nothing_and_say_why),
		cmocka_unit_test(engines_that_windows_ended_are_no_unseen_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
