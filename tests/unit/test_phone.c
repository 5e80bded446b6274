/* A phone behind adb: markers, signs of emulators, and graph evidence judged strictly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/agree.h"
#include "common/phone.h"
#include "common/plat.h"
#include "common/str.h"

#define SERIAL "1A2B3C4D"
#define COMMIT "96dd1a846f0123456789abcdef0123456789abcd"
#define MARK "__VERIFY_EXIT_0123456789abcdef__"
#define B "#verify 0011223344556677 "

/* ---- evidence ---- */

static int64_t
now(void)
{
	return plat_utc_parse("2026-06-01T12:00:00Z");
}

static enum reason
judged(const char *text, char *detail)
{
	struct phone_evidence ask = {.serial = SERIAL, .commit = COMMIT, .now_ms = now(),
		.tolerance = 1e-3};
	struct judgement j;

	phone_evidence_judge(text, strlen(text), &ask, &j);
	if (detail != NULL)
		snprintf(detail, 320, "%s", j.detail);
	return j.reason;
}

/* A bound document of these routes; extra members come first. */
static const char *
document(const char *extra, const char *routes)
{
	static char text[8192];

	snprintf(text, sizeof text, "{%s\"backend\":\"vulkan\",\"platform\":\"android\","
		"\"runtimeReady\":true,\"status\":\"runtime-ready\","
		"\"device\":{\"serial\":\"" SERIAL "\"},\"forkCommit\":\"" COMMIT "\","
		"\"evidenceDate\":\"2026-06-01\",\"graphRoutes\":[%s]}", extra, routes);
	return text;
}

#define ROUTE(name, diff) "{\"label\":\"GGML_OP_ATTN_SCORE_" name "\",\"runtimeReady\":true," \
	"\"status\":\"runtime-ready\",\"maxDiff\":" diff "}"
#define FIVE ROUTE("TBQ/turbo3", "0") "," ROUTE("TBQ/turbo4", "4.7e-7") "," \
	ROUTE("TBQ/turbo3_tcq", "4.7e-7") "," ROUTE("POLAR/use_qjl=0", "4.7e-7") "," \
	ROUTE("POLAR/use_qjl=1", "4.7e-7")

static void
six_routes_bound_to_phone_commit_and_day_are_a_pass(void **state)
{
	(void)state;
	assert_int_equal(judged(document("", FIVE "," ROUTE("QJL", "9e-4")), NULL), REASON_NONE);
	assert_int_equal(judged(document("", FIVE "," ROUTE("QJL", "9e-4")
		",{\"label\":\"GGML_OP_FUSED_ATTN_QJL_TBQ\",\"runtimeReady\":true,\"maxDiff\":1e-6}"), NULL),
		REASON_NONE);
}

static void
each_flaw_of_a_route_makes_the_evidence_invalid(void **state)
{
	static const char *const last[] = {
		ROUTE("QJL", "0.001"), ROUTE("QJL", "-1e-9"), ROUTE("QJL", "null"), ROUTE("QJL", "\"0\""),
		ROUTE("QJL", "1e308"), ROUTE("QJL", "true"), ROUTE("TBQ/turbo3", "0"),
		ROUTE("NEW", "0") "," ROUTE("QJL", "0"),
		"{\"label\":\"GGML_OP_ATTN_SCORE_QJL\",\"maxDiff\":0}",
		"{\"label\":\"GGML_OP_ATTN_SCORE_QJL\",\"runtimeReady\":false,\"maxDiff\":0}",
		"{\"label\":\"GGML_OP_ATTN_SCORE_QJL\",\"runtimeReady\":\"true\",\"maxDiff\":0}",
		"{\"label\":\"GGML_OP_ATTN_SCORE_QJL\",\"runtimeReady\":true,\"status\":\"fail\",\"maxDiff\":0}",
		"{\"label\":\"GGML_OP_ATTN_SCORE_QJL\",\"runtimeReady\":true}",
		"\"GGML_OP_ATTN_SCORE_QJL\"", "null", "7",
	};
	char text[4096], detail[320];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(last); i++) {
		snprintf(text, sizeof text, FIVE ",%s", last[i]);
		if (judged(document("", text), detail) != REASON_EVIDENCE_INVALID)
			fail_msg("%s: %s", last[i], detail);
	}
	assert_int_equal(judged(document("", FIVE), detail), REASON_EVIDENCE_INVALID);
	assert_non_null(strstr(detail, "GGML_OP_ATTN_SCORE_QJL is missing"));
	assert_int_equal(judged("[]", NULL), REASON_EVIDENCE_INVALID);
	assert_int_equal(judged("", NULL), REASON_EVIDENCE_INVALID);
	assert_int_equal(judged("{\"maxDiff\":NaN}", NULL), REASON_EVIDENCE_INVALID);
	assert_int_equal(judged(document("\"backend\":\"metal\",", FIVE "," ROUTE("QJL", "0")), NULL),
		REASON_EVIDENCE_INVALID); /* the same key twice */
}

static void
evidence_of_another_phone_commit_or_day_is_unbound(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{SERIAL, "FFFFFFFF"}, {COMMIT, "0000000000000000000000000000000000000000"},
		{COMMIT, "96dd1a8"}, {"2026-06-01", "2026-05-20"}, {"2026-06-01", "2026-06-09"},
		{"2026-06-01", "yesterday"}, {"evidenceDate", "noDate"}, {"forkCommit", "noCommit"},
		{"\"serial\"", "\"noSerial\""},
	};
	char text[8192], changed[8192], *at;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, "%s", document("", FIVE "," ROUTE("QJL", "0")));
		at = strstr(text, rows[i].from);
		assert_non_null(at);
		snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, rows[i].to,
			at + strlen(rows[i].from));
		if (judged(changed, NULL) != REASON_EVIDENCE_UNBOUND)
			fail_msg("%s -> %s", rows[i].from, rows[i].to);
	}
}

static void
published_shapes_are_valid_but_bound_to_nothing(void **state)
{
	static const struct {
		const char *name;
		enum reason wanted;
	} rows[] = {
		{"android-evidence-routes-ok", REASON_EVIDENCE_UNBOUND},
		{"android-evidence-five-capabilities-ok", REASON_EVIDENCE_UNBOUND},
		{"android-evidence-string-routes", REASON_EVIDENCE_UNBOUND},
		{"refuse-android-linux-platform", REASON_EVIDENCE_INVALID},
		{"refuse-android-not-ready", REASON_EVIDENCE_INVALID},
		{"refuse-android-null-maxdiff", REASON_EVIDENCE_INVALID},
		{"refuse-android-one-route-missing", REASON_EVIDENCE_INVALID},
	};
	char path[4096], *text;
	size_t i, len;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(path, sizeof path, "../shared/upstream-data/shape-examples/%s.json", rows[i].name);
		if (plat_read_file(path, 1u << 20, &text, &len, NULL)) {
			print_message("skipped: %s is not here\n", path);
			skip();
		}
		if (judged(text, NULL) != rows[i].wanted)
			fail_msg("%s", rows[i].name);
		free(text);
	}
}

/* ---- runs on the phone ---- */

static void
section_of(const char *body, const char *command, char *log, size_t size)
{
	snprintf(log, size, B "run {\"argv\":[\"/usr/bin/adb\",\"-s\",\"" SERIAL "\",\"shell\",\"%s; echo "
		MARK " $?\"]}\n%s" B "end {\"exit\":0,\"signal\":0,\"ms\":1,\"bytes\":%zu,\"dropped\":0}\n",
		command, body, strlen(body));
}

static int
exit_in(const char *body)
{
	static char log[8192];
	struct section s;
	const char *out;
	size_t pos = 0, len;
	int exit = -1;

	section_of(body, "true", log, sizeof log);
	assert_int_equal(transcript_next(log, strlen(log), &pos, &s, NULL), 1);
	if (!phone_output(&s, &out, &len, &exit))
		exit = -1;
	section_fini(&s);
	return exit;
}

static void
exit_code_is_that_of_the_marker_and_none_without_it(void **state)
{
	(void)state;
	assert_int_equal(exit_in("text\n" MARK " 0\n"), 0);
	assert_int_equal(exit_in("text\r\n" MARK " 127\r\n"), 127);
	assert_int_equal(exit_in(MARK " 3\n"), 3);
	assert_int_equal(exit_in(MARK " 0\nlate stderr\n"), 0);
	assert_int_equal(exit_in(MARK " 0\n" MARK " 1\n"), 1); /* the last one counts */
	assert_int_equal(exit_in("text\n"), -1);
	assert_int_equal(exit_in(""), -1);
	assert_int_equal(exit_in("text " MARK " 0\n"), -1); /* not at the start of a line */
	assert_int_equal(exit_in(MARK " \n"), -1);
	assert_int_equal(exit_in(MARK " 0x\n"), -1);
	assert_int_equal(exit_in("__VERIFY_EXIT_fedcba9876543210__ 0\n"), -1); /* another run's */
}

static void
one_sign_makes_an_emulator(void **state)
{
	static const struct {
		const char *line;
		bool emulator, software;
	} rows[] = {
		{"", false, false},
		{"[ro.kernel.qemu]: [1]\n", true, false},
		{"[ro.kernel.qemu]: [0]\n", false, false},
		{"[ro.boot.qemu]: [1]\n", true, false},
		{"[ro.product.name]: [sdk_gphone64_arm64]\n", true, false},
		{"[ro.hardware.egl]: [emulation]\n", true, false},
		{"[ro.product.board]: [goldfish_arm64]\n", true, false},
		{"[ro.build.fingerprint]: [google/sdk_gphone64_arm64/emulator64_arm64:14/U/1:userdebug/dev-keys]\n", true, false},
		{"[ro.build.fingerprint]: [google/sdk_gphone64_x86_64/emu64x:14/U/1:userdebug/dev-keys]\n", true, false},
		{"[ro.hardware.gralloc]: [ranchu]\n", true, false},
		{"[ro.product.device]: [vsoc_arm64]\n", true, false},
		{"[ro.hardware.vulkan]: [pastel]\n", false, true},
		{"[ro.build.fingerprint]: [google/husky/husky:14/U/1:user/release-keys]\n", false, false},
		{"[ro.product.name]: [husky]\n[ro.product.device]: [husky]\n", false, false},
	};
	static char log[8192], body[4096];
	struct phone_facts f;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(body, sizeof body, "[ro.product.model]: [Pixel 8 Pro]\n[ro.product.cpu.abi]: [arm64-v8a]\n"
			"%s" MARK " 0\n", rows[i].line);
		section_of(body, "getprop", log, sizeof log);
		assert_true(phone_facts_read(log, strlen(log), SERIAL, &f));
		assert_string_equal(f.model, "Pixel 8 Pro");
		if ((f.emulator[0] != '\0') != rows[i].emulator || (f.software[0] != '\0') != rows[i].software)
			fail_msg("%s: emulator \"%s\", software \"%s\"", rows[i].line, f.emulator, f.software);
	}
}

/* Graphics alone give an emulator away, whatever its properties say. */
static void
graphics_of_another_machine_make_an_emulator(void **state)
{
	static const struct {
		const char *name;
		int type, driver;
		bool emulator, software;
	} rows[] = {
		{"Adreno (TM) 740", 1, 8, false, false},
		{"Android Emulator Vulkan (NVIDIA GeForce RTX 3090)", 3, 4, true, true},
		{"Virtio-GPU Venus (NVIDIA GeForce RTX 3090)", 2, 22, true, false},
		{"SwiftShader Device (Subzero)", 4, 10, false, true},
	};
	static char log[8192], body[4096];
	struct phone_facts f;
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		section_of("[ro.product.model]: [Pixel 8 Pro]\n" MARK " 0\n", "getprop", log, sizeof log);
		n = strlen(log);
		snprintf(body, sizeof body, "{\"devices\":[{\"properties\":{\"deviceName\":\"%s\",\"deviceType\":%d},"
			"\"VK_KHR_driver_properties\":{\"driverPropertiesKHR\":{\"driverID\":%d}}}]}\n" MARK " 0\n",
			rows[i].name, rows[i].type, rows[i].driver);
		section_of(body, "cmd gpu vkjson", log + n, sizeof log - n);
		assert_true(phone_facts_read(log, strlen(log), SERIAL, &f));
		if ((f.emulator[0] != '\0') != rows[i].emulator || (f.software[0] != '\0') != rows[i].software)
			fail_msg("%s: emulator \"%s\", software \"%s\"", rows[i].name, f.emulator, f.software);
	}
}

static void
stand_in_says_that_it_is_none(void **state)
{
	static char log[8192];
	struct device_facts d;
	size_t n;

	(void)state;
	n = (size_t)snprintf(log, sizeof log, B "facts {}\nserial=" SERIAL "\n" B "end {\"bytes\":%zu,\"dropped\":0}\n",
		strlen("serial=" SERIAL "\n"));
	section_of("[ro.product.model]: [Pixel 8]\n" MARK " 0\n", "getprop", log + n, sizeof log - n);
	assert_false(agree_simulated(log, strlen(log)));
	assert_true(phone_device_facts(log, strlen(log), target_find("android-arm64-vulkan"), &d));
	assert_false(d.simulated);
	section_of("[ro.product.model]: [Pixel 8]\n[ro.verify.simulated]: [stand-in]\n" MARK " 0\n", "getprop", log + n,
		sizeof log - n);
	assert_true(agree_simulated(log, strlen(log)));
	assert_true(phone_device_facts(log, strlen(log), target_find("android-arm64-vulkan"), &d));
	assert_true(d.simulated);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(six_routes_bound_to_phone_commit_and_day_are_a_pass),
		cmocka_unit_test(each_flaw_of_a_route_makes_the_evidence_invalid),
		cmocka_unit_test(evidence_of_another_phone_commit_or_day_is_unbound),
		cmocka_unit_test(published_shapes_are_valid_but_bound_to_nothing),
		cmocka_unit_test(exit_code_is_that_of_the_marker_and_none_without_it),
		cmocka_unit_test(one_sign_makes_an_emulator),
		cmocka_unit_test(graphics_of_another_machine_make_an_emulator),
		cmocka_unit_test(stand_in_says_that_it_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
