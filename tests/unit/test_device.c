#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/judge.h"
#include "common/plat.h"
#include "common/str.h"

#define BOUNDARY "0123456789abcdef"

/* By hand from the x86-64 psABI's table of levels and the processors' data sheets. */
static const struct machine {
	const char *file, *target, *class, *name;
} machines[] = {
	{"epyc-9654", "linux-x64-cpu", "linux-x64-cpu/epyc-9654/x86-64-v4", "AMD EPYC 9654 96-Core Processor"},
	{"xeon-8480", "linux-x64-cpu", "linux-x64-cpu/xeon-platinum-8480+/x86-64-v4", "Intel(R) Xeon(R) Platinum 8480+"},
	{"core-i9-13900k", "linux-x64-cpu", "linux-x64-cpu/13th-gen-core-i9-13900k/x86-64-v3", "13th Gen Intel(R) Core(TM) i9-13900K"},
	{"core-i9-9900k", "linux-x64-cpu", "linux-x64-cpu/core-i9-9900k/x86-64-v3", "Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz"},
	{"ryzen-7950x", "linux-x64-cpu", "linux-x64-cpu/ryzen-9-7950x/x86-64-v4", "AMD Ryzen 9 7950X 16-Core Processor"},
	{"ryzen-7950x-radeon", "linux-x64-cpu", "linux-x64-cpu/ryzen-9-7950x/x86-64-v4", "AMD Ryzen 9 7950X with Radeon Graphics"},
	{"ryzen-7840u", "linux-x64-cpu", "linux-x64-cpu/ryzen-7-7840u/x86-64-v4", "AMD Ryzen 7 7840U w/ Radeon 780M Graphics"},
	{"qemu-virtual", "linux-x64-cpu", "linux-x64-cpu/qemu-virtual-version-2.5+/x86-64-v1", "QEMU Virtual CPU version 2.5+"},
	{"kvm-skylake", "linux-x64-cpu", "linux-x64-cpu/xeon-skylake-ibrs/x86-64-v4", "Intel Xeon Processor (Skylake, IBRS)"},
	{"xeon-x5650", "linux-x64-cpu", "linux-x64-cpu/xeon-x5650/x86-64-v2", NULL},
	{"grace", "linux-aarch64-cpu", "linux-aarch64-cpu/neoverse-v2/armv9-a+sve2", "Neoverse-V2"},
	{"graviton3", "linux-aarch64-cpu", "linux-aarch64-cpu/neoverse-v1/armv8.2-a+sve", "Neoverse-V1"},
	{"raspberry-pi-5", "linux-aarch64-cpu", "linux-aarch64-cpu/cortex-a76/armv8.2-a+dotprod", "Cortex-A76"},
	{"raspberry-pi-4", "linux-aarch64-cpu", "linux-aarch64-cpu/cortex-a72/armv8-a", "Cortex-A72"},
	{"unknown-arm", "linux-aarch64-cpu", "linux-aarch64-cpu/0x48-0xd02/armv8.2-a+dotprod", NULL},
};

static char *
machine_text(const char *name, size_t *len)
{
	char path[256], *text;
	struct err e = {0};

	snprintf(path, sizeof path, "fixtures/machines/cpuinfo-%s.txt", name);
	if (plat_read_file(path, 1u << 20, &text, len, &e))
		fail_msg("%s", e.msg);
	return text;
}

static void
each_machine_has_the_class_a_person_expects(void **state)
{
	struct device_facts d;
	char *text;
	size_t i, len;

	(void)state;
	for (i = 0; i < str_count(machines); i++) {
		text = machine_text(machines[i].file, &len);
		assert_true(device_facts_cpuinfo(text, len, target_find(machines[i].target), &d));
		assert_string_equal(d.device_class, machines[i].class);
		if (machines[i].name != NULL)
			assert_string_equal(d.name, machines[i].name);
		assert_int_equal(d.memory_bytes, -1);
		assert_int_equal(d.cpus, -1);
		free(text);
	}
}

static bool
has(const char *list, const char *word)
{
	char padded[2100], with[40];

	snprintf(padded, sizeof padded, " %s ", list);
	snprintf(with, sizeof with, " %s ", word);
	return strstr(padded, with) != NULL;
}

static void
vector_features_are_those_that_the_kernel_names(void **state)
{
	struct device_facts d;
	size_t len;
	char *text = machine_text("xeon-8480", &len);

	(void)state;
	assert_true(device_facts_cpuinfo(text, len, NULL, &d));
	assert_true(has(d.features, "avx512f") && has(d.features, "amx_bf16") &&
		has(d.features, "ssse3") && has(d.features, "fma") && has(d.features, "avx512_fp16"));
	assert_false(has(d.features, "fpu") || has(d.features, "lm") || has(d.features, "popcnt"));
	assert_string_equal(d.device_class, "");
	free(text);
	text = machine_text("grace", &len);
	assert_true(device_facts_cpuinfo(text, len, NULL, &d));
	assert_true(has(d.features, "sve2") && has(d.features, "asimd") && has(d.features, "i8mm"));
	assert_false(has(d.features, "crc32"));
	free(text);
}

/* Every flag of a level is needed for it: without one the level below counts. */
static void
each_flag_of_a_level_is_needed(void **state)
{
	static const struct {
		const char *flag, *level;
	} rows[] = {
		{"cx16", "x86-64-v1"}, {"lahf_lm", "x86-64-v1"}, {"popcnt", "x86-64-v1"},
		{"pni", "x86-64-v1"}, {"sse4_1", "x86-64-v1"}, {"sse4_2", "x86-64-v1"},
		{"ssse3", "x86-64-v1"}, {"avx", "x86-64-v2"}, {"avx2", "x86-64-v2"},
		{"bmi1", "x86-64-v2"}, {"bmi2", "x86-64-v2"}, {"f16c", "x86-64-v2"},
		{"fma", "x86-64-v2"}, {"abm", "x86-64-v2"}, {"movbe", "x86-64-v2"},
		{"xsave", "x86-64-v2"}, {"avx512f", "x86-64-v3"}, {"avx512bw", "x86-64-v3"},
		{"avx512cd", "x86-64-v3"}, {"avx512dq", "x86-64-v3"}, {"avx512vl", "x86-64-v3"},
	};
	struct device_facts d;
	size_t i, len, n;
	char *text, *at, with[32];

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		text = machine_text("epyc-9654", &len);
		n = (size_t)snprintf(with, sizeof with, " %s ", rows[i].flag);
		at = strstr(strstr(text, "flags"), with);
		assert_non_null(at);
		memset(at, ' ', n);
		assert_true(device_facts_cpuinfo(text, len, NULL, &d));
		assert_string_equal(d.level, rows[i].level);
		free(text);
	}
}

static void
name_of(const char *name, const char *slug)
{
	struct device_facts d;
	char text[600];

	snprintf(text, sizeof text, "model name\t: %s\nflags\t\t: fpu\n", name);
	assert_true(device_facts_cpuinfo(text, strlen(text), NULL, &d));
	assert_string_equal(d.slug, slug);
}

static void
names_lose_vendor_marks_clock_and_graphics(void **state)
{
	(void)state;
	name_of("Intel(R) Core(TM)2 Duo CPU     E8400  @ 3.00GHz", "core-2-duo-e8400");
	name_of("INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz", "xeon-platinum-8581c");
	name_of("AMD Ryzen 5 3500U with Radeon Vega Mobile Gfx", "ryzen-5-3500u");
	name_of("AMD EPYC-Milan Processor", "epyc-milan");
	name_of("Common KVM processor", "common-kvm");
	name_of("Intel(R) Xeon(R) Processor @ 2.30GHz", "xeon");
	name_of("AMD Eng Sample: 100-000000514-03_N", "eng-sample-100-000000514-03-n");
	name_of("unknown", "unknown");
	name_of("AMD", "unknown");
	name_of("", "unknown");
}

/* A class is a path in reports and tables: nothing may break out of its part. */
static void
hostile_names_make_harmless_slugs(void **state)
{
	static const char *const names[] = {"../../etc/passwd", "/////", "a/b/c", "x\x1b[31my",
		"caf\xc3\xa9 \xff\xfe", "a'b\"c;d|e&f$(g)", "%s%n", "--- -- -", "(R)(TM)(C)", "(((R)R)R)",
		"a b c d e f g h i j k l m n o p q r s t u v w x y z",
		"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"};
	struct device_facts d;
	char text[600];
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(text, sizeof text, "model name\t: %s\nflags\t\t: fpu\n", names[i]);
		assert_true(device_facts_cpuinfo(text, strlen(text), target_find("linux-x64-cpu"), &d));
		n = strlen(d.slug);
		assert_true(n > 0 && n < sizeof d.slug);
		assert_int_equal(strspn(d.slug, "abcdefghijklmnopqrstuvwxyz0123456789.+-"), n);
		assert_true(d.slug[0] != '-' && d.slug[n - 1] != '-');
		assert_null(strstr(d.slug, "--"));
		assert_true(str_ends(d.device_class, "/x86-64-v1"));
		assert_true(str_is_utf8(d.name, strlen(d.name)));
		assert_null(strchr(d.name, 0x1b));
	}
}

static bool
facts_of(const char *text, size_t len, struct device_facts *d)
{
	char *copy = malloc(len > 0 ? len : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, text, len);
	ok = device_facts_cpuinfo(copy, len, target_find("linux-x64-cpu"), d);
	free(copy);
	return ok;
}

static void
text_without_model_or_features_is_unknown(void **state)
{
	static const char *const bad[] = {"", "\n", ":", "flags", "flags\t\t: fpu\n", "model name\t: X\n",
		"flagship\t: avx\nmodel name: x\n", "model name X\nflags fpu\n", "Flags: fpu\nmodel name: x\n",
		" flags: fpu\nmodel name: x\n"};
	struct device_facts d;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		assert_false(facts_of(bad[i], strlen(bad[i]), &d));
}

static void
huge_line_without_newline_is_cut_and_claims_no_more(void **state)
{
	size_t n = 1u << 20, i;
	char *text = malloc(n);
	struct device_facts d;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	assert_false(facts_of(text, n, &d));
	memcpy(text, "model name\t: X\nflags\t\t: ", 24);
	assert_true(facts_of(text, n, &d));
	assert_string_equal(d.level, "x86-64-v1");
	for (i = 24; i + 8 < n; i += 8)
		memcpy(text + i, "avx512f ", 8);
	assert_true(facts_of(text, n, &d));
	assert_string_equal(d.level, "x86-64-v1");
	assert_true(strlen(d.features) < sizeof d.features);
	free(text);
}

static void
nul_bytes_end_nothing(void **state)
{
	static const char text[] = "model name\t: A\0B\0\nflags\t\t: fpu\0avx2 sse4_1\n";
	struct device_facts d;

	(void)state;
	assert_true(facts_of(text, sizeof text - 1, &d));
	assert_string_equal(d.name, "A?B?");
	assert_string_equal(d.slug, "a-b");
	assert_string_equal(d.level, "x86-64-v1");
}

static void
every_cut_of_a_text_is_safe(void **state)
{
	struct device_facts d;
	size_t len, n;
	char *text = machine_text("grace", &len);

	(void)state;
	for (n = 0; n < len; n++)
		facts_of(text, n, &d);
	free(text);
	text = machine_text("qemu-virtual", &len);
	for (n = 0; n < len; n++)
		facts_of(text, n, &d);
	free(text);
}

static void
log_gives_memory_and_cpus_when_they_are_sane(void **state)
{
	static const char log[] =
		"#verify " BOUNDARY " facts {}\ncpus=96\nmemoryKiB=1024\n#verify " BOUNDARY " end {}\n"
		"#verify " BOUNDARY " file {\"file\":\"/proc/cpuinfo\"}\nmodel name\t: AMD EPYC 9654\n"
		"flags\t\t: fpu\n#verify " BOUNDARY " end {\"bytes\":44,\"dropped\":0}\n";
	static const char odd[] =
		"#verify " BOUNDARY " facts {}\ncpus=-1\nmemoryKiB=99999999999999999999\n#verify "
		BOUNDARY " end {}\n";
	struct device_facts d;

	(void)state;
	assert_true(device_facts_read(log, sizeof log - 1, lane_find("cpu"), target_find("linux-x64-cpu"), &d));
	assert_string_equal(d.device_class, "linux-x64-cpu/epyc-9654/x86-64-v1");
	assert_int_equal(d.cpus, 96);
	assert_int_equal(d.memory_bytes, 1048576);
	assert_false(device_facts_read(odd, sizeof odd - 1, lane_find("cpu"), NULL, &d));
	assert_int_equal(d.cpus, -1);
	assert_int_equal(d.memory_bytes, -1);
	/* the file's section was cut off */
	assert_false(device_facts_read(log, sizeof log - 50, lane_find("cpu"), NULL, &d));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_machine_has_the_class_a_person_expects),
		cmocka_unit_test(vector_features_are_those_that_the_kernel_names),
		cmocka_unit_test(each_flag_of_a_level_is_needed),
		cmocka_unit_test(names_lose_vendor_marks_clock_and_graphics),
		cmocka_unit_test(hostile_names_make_harmless_slugs),
		cmocka_unit_test(text_without_model_or_features_is_unknown),
		cmocka_unit_test(huge_line_without_newline_is_cut_and_claims_no_more),
		cmocka_unit_test(nul_bytes_end_nothing),
		cmocka_unit_test(every_cut_of_a_text_is_safe),
		cmocka_unit_test(log_gives_memory_and_cpus_when_they_are_sane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
