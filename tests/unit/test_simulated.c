#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/verdict.h"
#include "tests/unit/evidence.h"

/* A run that a recording played, whose report does not say so. */
static void
appraised(struct evidence *v, struct verdict *out)
{
	struct verdict_logs logs = {evidence_read, v};
	struct err e = {0};

	if (verdict_appraise(v->report, v->suite, true, &logs, out, &e))
		fail_msg("%s", e.msg);
}

static void
a_good_run_is_not_simulated(void **state)
{
	struct evidence v;
	struct verdict out;

	(void)state;
	evidence_make(&v, "llama.cpp");
	appraised(&v, &out);
	assert_false(out.simulated);
	evidence_free(&v);
}

static void
played(const char *gate, const char *log, bool passes)
{
	struct evidence v;
	struct verdict out;

	evidence_make(&v, "llama.cpp");
	evidence_log(&v, gate, evidence_copy(log));
	if (!passes)
		evidence_claim(&v, gate, "blocked", "probe_unreadable");
	appraised(&v, &out);
	if (!out.simulated || out.recordable)
		fail_msg("%s: simulated %d, recordable %d", gate, out.simulated, out.recordable);
	evidence_free(&v);
}

static void
a_host_that_was_played_says_so_in_its_log(void **state)
{
	(void)state;
	played("host", FACTS "os=Linux\narch=x86_64\nkernel=6.1.0\nhostname=lab-3\n"
		"virtualisation=none\nemulated=\nsimulated=h200\n" END, true);
}

static void
a_device_that_was_played_says_so_though_its_gate_does_not_pass(void **state)
{
	(void)state;
	played("device", FACTS "simulated=driver-mismatch\n" END SAYS("probe_unreadable"), false);
}

static void
a_harness_whose_library_was_a_stand_in_says_so(void **state)
{
	struct evidence v;
	struct verdict out;

	(void)state;
	evidence_make(&v, "llama.cpp");
	evidence_log(&v, "fixtures", evidence_replace(evidence_copy(evidence_log_of(&v, "fixtures")),
		"\"emulated\":false", "\"emulated\":false,\"simulated\":true"));
	appraised(&v, &out);
	assert_true(out.simulated);
	assert_false(out.recordable);
	evidence_free(&v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_run_is_not_simulated),
		cmocka_unit_test(a_host_that_was_played_says_so_in_its_log),
		cmocka_unit_test(a_device_that_was_played_says_so_though_its_gate_does_not_pass),
		cmocka_unit_test(a_harness_whose_library_was_a_stand_in_says_so),
	};

	return cmocka_run_group_tests_name("simulated", tests, NULL, NULL);
}
