#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/lane.h"
#include "common/str.h"

static void
outcomes_are_the_five_words(void **state)
{
	static const char *const words[] = {"pass", "fail", "blocked", "skipped", "incomplete"};
	int i;

	(void)state;
	assert_int_equal(OUTCOME_COUNT, 5);
	for (i = 0; i < OUTCOME_COUNT; i++) {
		assert_string_equal(outcome_name((enum outcome)i), words[i]);
		assert_int_equal(outcome_find(words[i]), i);
	}
	assert_int_equal(outcome_find("PASS"), -1);
	assert_int_equal(outcome_find("passed"), -1);
	assert_int_equal(outcome_find(""), -1);
	assert_int_equal(outcome_find(NULL), -1);
}

/* A reason that means a pass would be a way round every check. */
static void
no_reason_but_none_goes_with_a_pass(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < REASON_COUNT; i++) {
		assert_int_equal(reason_outcome((enum reason)i) == OUTCOME_PASS, i == REASON_NONE);
		assert_int_equal(reason_find(reason_name((enum reason)i)), i);
		assert_true(i == REASON_NONE || reason_hint((enum reason)i)[0] != '\0');
		for (k = 0; k < i; k++)
			assert_string_not_equal(reason_name((enum reason)i), reason_name((enum reason)k));
	}
	assert_int_equal(reason_find("nope"), -1);
	assert_int_equal(reason_find(NULL), -1);
}

static void
reasons_of_the_field_have_their_outcome(void **state)
{
	static const struct {
		const char *name;
		enum outcome outcome;
	} rows[] = {
		{"build_failed", OUTCOME_FAIL}, {"toolchain_crash", OUTCOME_BLOCKED},
		{"stale_binary", OUTCOME_BLOCKED}, {"family_not_in_build", OUTCOME_BLOCKED},
		{"log_too_quiet", OUTCOME_BLOCKED}, {"no_case_executed", OUTCOME_BLOCKED},
		{"backend_not_present", OUTCOME_BLOCKED}, {"v_cache_needs_flash_attn", OUTCOME_BLOCKED},
		{"timeout", OUTCOME_INCOMPLETE}, {"disk_full", OUTCOME_INCOMPLETE},
		{"device_vanished", OUTCOME_INCOMPLETE}, {"op_not_supported", OUTCOME_FAIL},
		{"not_asked", OUTCOME_SKIPPED}, {"control_missed", OUTCOME_FAIL},
	};
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_true((r = reason_find(rows[i].name)) > 0);
		assert_int_equal(reason_outcome((enum reason)r), rows[i].outcome);
	}
}

static void
gates_stand_in_the_order_they_run(void **state)
{
	static const char *const order[] = {"host", "device", "toolchain", "model", "source", "build",
		"fixtures", "op-parity", "engine-verify", "graph-smoke", "control", "mtp", "report"};
	int i;

	(void)state;
	assert_int_equal(GATE_COUNT, str_count(order));
	for (i = 0; i < GATE_COUNT; i++) {
		assert_string_equal(gates[i].name, order[i]);
		assert_int_equal(gate_find(order[i]), i);
		/* nothing needs what comes after it */
		assert_int_equal(gates[i].needs >> i, 0);
	}
}

static void
only_family_gates_take_a_family(void **state)
{
	(void)state;
	assert_int_equal(gate_find("graph-smoke/q8_0"), GATE_GRAPH_SMOKE);
	assert_int_equal(gate_find("host/x"), -1);
	assert_int_equal(gate_find("host/"), -1);
	assert_int_equal(gate_find("graph-smok"), -1);
	assert_int_equal(gate_find("graph-smokes"), -1);
	assert_int_equal(gate_find("Host"), -1);
	assert_int_equal(gate_find("/host"), -1);
	assert_int_equal(gate_find(""), -1);
}

static void
lane_has_its_target_by_system_and_machine(void **state)
{
	const struct lane *cpu = lane_find("cpu");

	(void)state;
	assert_non_null(cpu);
	assert_string_equal(lane_target(cpu, "Linux", "x86_64")->name, "linux-x64-cpu");
	assert_string_equal(lane_target(cpu, "Linux", "aarch64")->name, "linux-aarch64-cpu");
	assert_null(lane_target(cpu, "Linux", "i686"));
	assert_null(lane_target(cpu, "Linux", "armv7l"));
	assert_null(lane_target(cpu, "Darwin", "x86_64"));
	assert_null(lane_target(cpu, "linux", "x86_64"));
	assert_null(lane_target(cpu, "", ""));
	assert_null(lane_find("CPU"));
	assert_null(lane_find(NULL));
	assert_null(target_find("linux-x64"));
	assert_null(target_find(NULL));
	assert_int_equal(target_find("linux-x64-cpu")->elf_machine, 62);
	assert_int_equal(target_find("linux-aarch64-cpu")->elf_machine, 183);
}

static void
unknown_lane_names_those_that_there_are(void **state)
{
	const struct lane *l;
	struct err e = {0};

	(void)state;
	assert_int_equal(lane_get("gh200", &l, &e), 0);
	assert_ptr_equal(l, lane_find("gh200"));
	assert_int_equal(lane_get("gh201", &l, &e), -1);
	assert_string_equal(e.msg, "unknown lane \"gh201\"");
	assert_non_null(strstr(e.hint, "cpu, cuda, gh200, rocm, vulkan, android, windows-cuda"));
	assert_int_equal(err_exit(e.code), 2);
	assert_int_equal(lane_get("windows-arm64-cuda", &l, &e), -1);
	assert_non_null(strstr(e.msg, "cuda_not_declared_for_target"));
	assert_int_equal(err_exit(e.code), 2);
}

static void
claims_and_parts_have_their_words(void **state)
{
	(void)state;
	assert_string_equal(claim_name(CLAIM_FIXTURE_PARITY), "fixture-parity");
	assert_string_equal(claim_name(CLAIM_LEGACY_KV_GRAPH), "legacy-kv-graph");
	assert_string_equal(claim_name(CLAIM_GEMMA_RUNTIME), "gemma-runtime");
	assert_int_equal(only_find("probe"), ONLY_PROBE);
	assert_int_equal(only_find("all"), ONLY_ALL);
	assert_int_equal(only_find("Probe"), -1);
	assert_int_equal(only_find(NULL), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes_are_the_five_words),
		cmocka_unit_test(no_reason_but_none_goes_with_a_pass),
		cmocka_unit_test(reasons_of_the_field_have_their_outcome),
		cmocka_unit_test(gates_stand_in_the_order_they_run),
		cmocka_unit_test(only_family_gates_take_a_family),
		cmocka_unit_test(lane_has_its_target_by_system_and_machine),
		cmocka_unit_test(unknown_lane_names_those_that_there_are),
		cmocka_unit_test(claims_and_parts_have_their_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
