/* Device code in libraries: what containers hold, which chips it is for, and the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/code_objects.h"
#include "common/chip.h"
#include "common/judge.h"
#include "common/str.h"
#include "tests/unit/evidence.h"

/* ---- which code is for which chip ---- */

/* NVIDIA: binary code within a major version, upwards; `a` on that chip alone; PTX upwards.
 * AMD: the same name, and no setting that contradicts. */
static void
code_fits_the_chips_of_the_vendors_rules(void **state)
{
	static const struct {
		const char *code, *chip, *features;
		enum chip_fit wanted;
	} rows[] = {
		{"sm_90a", "sm_90", "", CHIP_NATIVE}, {"sm_90a", "sm_100", "", CHIP_NO},
		{"sm_90a", "sm_103", "", CHIP_NO}, {"sm_90", "sm_90", "", CHIP_NATIVE},
		{"sm_90", "sm_100", "", CHIP_NO}, {"sm_80", "sm_86", "", CHIP_NATIVE},
		{"sm_86", "sm_80", "", CHIP_NO}, {"sm_89", "sm_121", "", CHIP_NO},
		{"sm_100a", "sm_103", "", CHIP_NO}, {"sm_100f", "sm_103", "", CHIP_NATIVE},
		{"sm_100f", "sm_120", "", CHIP_NO}, {"sm_120", "sm_121", "", CHIP_NATIVE},
		{"compute_80", "sm_90", "", CHIP_JIT}, {"compute_80", "sm_100", "", CHIP_JIT},
		{"compute_90", "sm_89", "", CHIP_NO}, {"compute_90a", "sm_90", "", CHIP_JIT},
		{"compute_90a", "sm_100", "", CHIP_NO}, {"compute_100f", "sm_103", "", CHIP_JIT},
		{"gfx942", "gfx942", "sramecc+:xnack-", CHIP_NATIVE}, {"gfx942", "gfx90a", "", CHIP_NO},
		{"gfx90a", "gfx90a:sramecc+:xnack-", "", CHIP_NATIVE},
		{"gfx90a:xnack+", "gfx90a", "sramecc+:xnack-", CHIP_NO},
		{"gfx90a:xnack-", "gfx90a", "sramecc+:xnack-", CHIP_NATIVE},
		{"gfx90a:xnack+", "gfx90a", "", CHIP_NATIVE}, /* the setting is not known */
		{"gfx11-generic", "gfx1101", "", CHIP_NATIVE}, {"gfx11-generic", "gfx1200", "", CHIP_NO},
		{"gfx9-4-generic:xnack-", "gfx942", "sramecc+:xnack-", CHIP_NATIVE},
		{"gfx9-4-generic:xnack+", "gfx942", "sramecc+:xnack-", CHIP_NO},
		{"gfx9-generic", "gfx90a", "", CHIP_NO}, {"gfx9-generic", "gfx90", "", CHIP_NO},
		{"gfx1100", "gfx1101", "", CHIP_NO}, {"gfx90", "gfx90a", "", CHIP_NO},
		{"sm_90", "gfx942", "", CHIP_NO}, {"gfx942", "sm_90", "", CHIP_NO},
		{"sm_", "sm_90", "", CHIP_NO}, {"sm_9", "sm_90", "", CHIP_NO}, {"sm_90x", "sm_90", "", CHIP_NO},
		{"", "sm_90", "", CHIP_NO}, {"sm_90", "", "", CHIP_NO},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		if (chip_fits(rows[i].code, rows[i].chip, rows[i].features) != rows[i].wanted)
			fail_msg("%s on %s %s", rows[i].code, rows[i].chip, rows[i].features);
}

static void
names_of_architectures_are_checked_before_a_build(void **state)
{
	static const char *const good[] = {"90a", "90a;90;89;86;80", "100;120", "80-real;90-virtual",
		"gfx90a;gfx942;gfx1100;gfx1101;gfx1102", "gfx90a:xnack-", "native", "all-major"};
	static const struct {
		const char *list, *bad;
	} wrong[] = {{"gxf1032", "gxf1032"}, {"gfx1100;gxf1032", "gxf1032"}, {"90b", "90b"}, {"85", "85"},
		{"90;9", "9"}, {"90-fast", "90-fast"}};
	char bad[64];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(good); i++)
		if (!chip_list_known(good[i], bad, sizeof bad))
			fail_msg("%s: %s", good[i], bad);
	for (i = 0; i < str_count(wrong); i++) {
		assert_false(chip_list_known(wrong[i].list, bad, sizeof bad));
		if (strncmp(bad, wrong[i].bad, strlen(wrong[i].bad)) != 0)
			fail_msg("%s: \"%s\"", wrong[i].list, bad);
	}
	assert_true(chip_flag("sm_90", bad, sizeof bad));
	assert_string_equal(bad, "90a");
	assert_true(chip_flag("gfx90a:sramecc+:xnack-", bad, sizeof bad));
	assert_string_equal(bad, "gfx90a");
	assert_false(chip_flag("sm_42", bad, sizeof bad));
	assert_string_equal(chip_nvcc("sm_120"), "12.8");
	assert_int_equal(chip_version_compare("12.10", "12.8"), 1);
	assert_int_equal(chip_version_compare("12.8", "12.8"), 0);
	assert_int_equal(chip_version_compare("11.5", "12.0"), -1);
}

/* ---- containers ---- */

static void
put(uint8_t *p, uint64_t v, int bytes)
{
	int i;

	for (i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* One entry of 64 + 8 bytes; gives its size. */
static size_t
entry(uint8_t *p, unsigned kind, unsigned chip, unsigned flags)
{
	memset(p, 0, 72);
	put(p, kind, 2);
	put(p + 4, 64, 4);
	put(p + 8, 8, 8);
	put(p + 28, chip, 4);
	put(p + 40, flags, 4);
	return 72;
}

#define PTX 1
#define CUBIN 2
#define CHIP_ONLY 0x100000u

/* A container with three entries, padding, and another one with a fourth. */
static size_t
fatbin(uint8_t *p)
{
	size_t n = 16, second;

	n += entry(p + n, CUBIN, 80, 0);
	n += entry(p + n, CUBIN, 90, CHIP_ONLY);
	n += entry(p + n, PTX, 90, 0);
	put(p, 0xba55ed50u, 4);
	put(p + 4, 1, 2);
	put(p + 6, 16, 2);
	put(p + 8, n - 16, 8);
	memset(p + n, 0, 8);
	second = n + 8;
	n = second + 16;
	n += entry(p + n, CUBIN, 80, 0);
	put(p + second, 0xba55ed50u, 4);
	put(p + second + 4, 1, 2);
	put(p + second + 6, 16, 2);
	put(p + second + 8, n - second - 16, 8);
	return n;
}

static void
fat_binary_names_its_chips_and_its_ptx(void **state)
{
	uint8_t bytes[512] = {0};
	struct code_objects o = {.count = 0};
	struct err e = {0};
	size_t n = fatbin(bytes);

	(void)state;
	assert_int_equal(code_objects_fatbin(bytes, n, &o, &e), 0);
	assert_int_equal(o.count, 3);
	assert_string_equal(o.v[0].name, "sm_80");
	assert_int_equal(o.v[0].count, 2);
	assert_string_equal(o.v[1].name, "sm_90a");
	assert_string_equal(o.v[2].name, "compute_90");
}

/* "__CLANG_OFFLOAD_BUNDLE__", count, then offset, size, length and name of each. */
static size_t
bundle(uint8_t *p)
{
	static const char *const ids[] = {"host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-",
		"hipv4-amdgcn-amd-amdhsa--gfx942"};
	size_t n = 24, i, k;

	memcpy(p, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put(p + n, str_count(ids), 8);
	for (n += 8, i = 0; i < str_count(ids); i++) {
		k = strlen(ids[i]);
		put(p + n, 4096, 8);
		put(p + n + 8, i * 100, 8);
		put(p + n + 16, k, 8);
		memcpy(p + n + 24, ids[i], k);
		n += 24 + k;
	}
	return n;
}

static void
offload_bundle_names_its_chips(void **state)
{
	uint8_t bytes[512] = {0};
	struct code_objects o = {.count = 0};
	struct err e = {0};
	size_t n = bundle(bytes);

	(void)state;
	assert_int_equal(code_objects_bundle(bytes, n, &o, &e), 0);
	assert_int_equal(o.count, 2);
	assert_string_equal(o.v[0].name, "gfx90a:xnack-");
	assert_string_equal(o.v[1].name, "gfx942");
	assert_int_equal(o.v[1].bytes, 200);
	memcpy(bytes, "CCOB", 4);
	memset(&o, 0, sizeof o);
	assert_int_equal(code_objects_bundle(bytes, n, &o, &e), 0);
	assert_int_equal(o.count, 0);
	assert_int_equal(o.compressed, 1);
}

/* Cut at any byte, or with any byte changed: no more than there is, and nothing is read
 * past the end (the copy ends where the bytes do). */
static void
damaged_containers_end_where_their_bytes_do(void **state)
{
	uint8_t bytes[512] = {0}, *copy;
	struct code_objects o;
	struct err e = {0};
	size_t n, i, k;
	int which;

	(void)state;
	for (which = 0; which < 2; which++) {
		n = which ? bundle(bytes) : fatbin(bytes);
		for (i = 0; i < 2 * n; i++) {
			k = i < n ? i : n;
			copy = malloc(k > 0 ? k : 1);
			assert_non_null(copy);
			memcpy(copy, bytes, k);
			if (i >= n)
				copy[i - n] ^= 0xff;
			memset(&o, 0, sizeof o);
			if ((which ? code_objects_bundle : code_objects_fatbin)(copy, k, &o, &e) == 0 && i < n && o.count > 3) {
				free(copy);
				fail_msg("%d kinds of code in %zu bytes", o.count, k);
			}
			free(copy);
		}
	}
}

/* ---- the verdict on a build ---- */

static struct judgement
built(const char *lane, const char *facts)
{
	struct judge_ask ask = {.lane = lane_find(lane)};
	struct judgement j;
	char *log = evidence_text(RUN("\"/usr/bin/ninja\",\"-C\",\"b\"") "[1/1] x\n" ENDED("0", "0")
		FACTS "%sreused=false\ndetail=built\ndone=true\n" END, facts);

	judge_of(GATE_BUILD)(log, strlen(log), &ask, &j);
	free(log);
	return j;
}

static void
build_must_hold_code_for_the_device(void **state)
{
	static const struct {
		const char *lane, *facts;
		enum reason wanted;
		const char *words;
	} rows[] = {
		{"cuda", "chip=sm_90\ncode=libggml-cuda.so sm_90a x120\n", REASON_NONE, "code for sm_90a"},
		{"cuda", "chip=sm_100\ncode=libggml-cuda.so sm_90a x120\n", REASON_NO_CODE_FOR_DEVICE,
			"libggml-cuda has code for sm_90a, the device is sm_100"},
		{"cuda", "chip=sm_121\ncode=libggml-cuda.so sm_89 x9\ncode=libggml-cuda.so sm_100a x9\n",
			REASON_NO_CODE_FOR_DEVICE, "sm_89, sm_100a"},
		{"cuda", "chip=sm_120\ncode=libggml-cuda.so sm_90a x9\ncode=libggml-cuda.so compute_90 x9\n",
			REASON_NONE, "compiled from PTX by the driver"},
		{"cuda", "chip=sm_90\n", REASON_NO_CODE_FOR_DEVICE, "code for no chip"},
		{"cuda", "code=libggml-cuda.so sm_90a x1\n", REASON_NO_CODE_FOR_DEVICE, "the device is unknown"},
		{"rocm", "chip=gfx942\ncode=libggml-hip.so gfx942 x3\n", REASON_NONE, "code for gfx942"},
		{"rocm", "chip=gfx1101\ncode=libggml-hip.so gfx1100 x3\n", REASON_NO_CODE_FOR_DEVICE, "gfx1100"},
		{"rocm", "chip=gfx90a\nchipFeatures=sramecc+:xnack-\ncode=libggml-hip.so gfx90a:xnack+ x3\n",
			REASON_NO_CODE_FOR_DEVICE, "gfx90a:xnack+"},
		{"rocm", "chip=gfx942\ncodeCompressed=libggml-hip.so x40\n", REASON_NONE,
			"compressed code that names no chip: libggml-hip.so x40"},
	};
	struct judgement j;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		j = built(rows[i].lane, rows[i].facts);
		if (j.reason != rows[i].wanted || strstr(j.detail, rows[i].words) == NULL)
			fail_msg("row %zu: %s: %s", i, reason_name(j.reason), j.detail);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_fits_the_chips_of_the_vendors_rules),
		cmocka_unit_test(names_of_architectures_are_checked_before_a_build),
		cmocka_unit_test(fat_binary_names_its_chips_and_its_ptx),
		cmocka_unit_test(offload_bundle_names_its_chips),
		cmocka_unit_test(damaged_containers_end_where_their_bytes_do),
		cmocka_unit_test(build_must_hold_code_for_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
