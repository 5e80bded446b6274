/* Which device of a host is taken, and what keeps one from work: hosts as they stand in the
 * field, with graphics inside of processors, slices, tenants and worn memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/tool.h"
#include "tests/unit/device_log.h"

#define GFX(index, name, uuid, pci, arch, type) "{\"index\":" #index ",\"name\":\"" name "\",\"uuid\":" uuid \
	",\"pci\":\"" pci "\",\"arch\":\"" arch "\",\"type\":\"" type "\"}"
#define CARD_ID "\"GPU-c21600bfb26ea2b4\""
#define CARD(index, pci) GFX(index, "AMD Radeon RX 7900 XTX", CARD_ID, pci, "gfx1100", "discrete")

/* ---- AMD ---- */

static void
the_card_is_taken_though_the_processors_graphics_have_the_lower_place(void **state)
{
	/* who knows that it is none: HIP, KFD, or its architecture alone */
	static const struct {
		const char *hip, *kfd;
	} rows[] = {
		{GFX(0, "AMD Radeon Graphics", "null", "0000:01:00.0", "gfx1099", "integrated"),
			GFX(0, "gfx1099", "null", "0000:01:00.0", "gfx1099", "discrete")},
		{GFX(0, "AMD Radeon Graphics", "null", "0000:01:00.0", "gfx1099", "discrete"),
			GFX(0, "gfx1099", "null", "0000:01:00.0", "gfx1099", "integrated")},
		{GFX(0, "AMD Radeon Graphics", "null", "0000:01:00.0", "gfx1036", "discrete"),
			GFX(0, "gfx1036", "null", "0000:01:00.0", "gfx1036", "discrete")},
		{GFX(0, "AMD Radeon Graphics", "null", "0000:01:00.0", "gfx1151", "discrete"),
			GFX(0, "gfx1151", "null", "0000:01:00.0", "gfx1151", "discrete")},
	};
	char text[2048];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		facts("");
		snprintf(text, sizeof text, "%s," CARD(1, "0000:03:00.0"), rows[i].hip);
		probe(HIP, "hip", text);
		snprintf(text, sizeof text, "%s," CARD(1, "0000:03:00.0"), rows[i].kfd);
		probe(KFD, "kfd", text);
		expect_(REASON_NONE, "rocm", (int)i);
		read_as("rocm", "linux-x64-rocm");
		assert_string_equal(d.pci, "0000:03:00.0");
		assert_string_equal(d.device_class, "linux-x64-rocm/radeon-rx-7900-xtx/gfx1100");
	}
}

static void
a_chip_that_is_made_to_claim_another_is_no_card(void **state)
{
	(void)state;
	facts("env.HSA_OVERRIDE_GFX_VERSION=11.0.0\n");
	probe(HIP, "hip", GFX(0, "AMD Radeon 780M", "null", "0000:01:00.0", "gfx1100", "discrete") ","
		CARD(1, "0000:03:00.0"));
	probe(KFD, "kfd", GFX(0, "gfx1103", "null", "0000:01:00.0", "gfx1103", "discrete") ","
		CARD(1, "0000:03:00.0"));
	expect(NONE, "rocm");
	read_as("rocm", "linux-x64-rocm");
	assert_string_equal(d.pci, "0000:03:00.0");
	assert_true(d.faked);
}

static void
the_processors_graphics_alone_are_taken_and_named_ones_too(void **state)
{
	(void)state;
	facts("");
	probe(HIP, "hip", GFX(0, "Radeon 8060S Graphics", "null", "0000:c5:00.0", "gfx1151", "integrated"));
	probe(KFD, "kfd", GFX(0, "gfx1151", "null", "0000:c5:00.0", "gfx1151", "integrated"));
	expect(NONE, "rocm");
	read_as("rocm", "linux-x64-rocm");
	assert_string_equal(d.device_class, "linux-x64-rocm/radeon-8060s/gfx1151");
	facts("wantedDevice=0000:c5:00.0\n");
	probe(HIP, "hip", CARD(0, "0000:03:00.0") ","
		GFX(1, "Radeon 8060S Graphics", "null", "0000:c5:00.0", "gfx1151", "integrated"));
	expect(NONE, "rocm");
	read_as("rocm", "linux-x64-rocm");
	assert_string_equal(d.pci, "0000:c5:00.0");
}

/* ---- slices under drivers that name them by their card ---- */

#define SLICE(n, profile) "{\"index\":" #n ",\"parent\":0,\"name\":\"NVIDIA A100-SXM4-40GB MIG " profile "\"," \
	"\"uuid\":\"MIG-" ONE "/" #n "/0\",\"pci\":\"0000:1b:00.0\",\"arch\":\"8.0\",\"type\":\"discrete\"," \
	"\"mig\":\"" profile "\"}"
#define A100(more) DEVICE(0, "NVIDIA A100-SXM4-40GB", ONE, "0000:1b:00.0", "8.0", more)
#define SHOWN(profile) DEVICE(0, "NVIDIA A100-SXM4-40GB MIG " profile, ONE, "0000:1b:00.0", "8.0", "")
#define MIG_ON DRIVER ",\"migMode\":\"enabled\""

static void
the_only_slice_of_a_profile_is_known_by_its_cards_id(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", A100(MIG_ON) "," SLICE(1, "1g.5gb"));
	probe(CUDA, "cuda", SHOWN("1g.5gb"));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.uuid, "MIG-" ONE "/1/0");
	assert_string_equal(d.device_class, "linux-x64-cuda/a100-sxm4-40gb/sm_80+mig-1g.5gb");
	facts("");
	probe(NVML, "nvml", A100(MIG_ON) "," SLICE(1, "1g.5gb") "," SLICE(2, "3g.20gb") "," SLICE(3, "1g.5gb"));
	probe(CUDA, "cuda", SHOWN("3g.20gb"));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.uuid, "MIG-" ONE "/2/0");
}

static void
of_slices_that_are_alike_one_must_be_named(void **state)
{
	static const char *const named[] = {"wantedDevice=MIG-" ONE "/2/0\n",
		"env.CUDA_VISIBLE_DEVICES=MIG-" ONE "/2/0\n"};
	size_t i;

	(void)state;
	facts("");
	probe(NVML, "nvml", A100(MIG_ON) "," SLICE(1, "1g.5gb") "," SLICE(2, "1g.5gb"));
	probe(CUDA, "cuda", SHOWN("1g.5gb"));
	expect(DEVICE_NOT_CHOSEN, "cuda");
	assert_non_null(strstr(j.hint, "--device MIG-"));
	for (i = 0; i < str_count(named); i++) {
		facts(named[i]);
		probe(NVML, "nvml", A100(MIG_ON) "," SLICE(1, "1g.5gb") "," SLICE(2, "1g.5gb"));
		probe(CUDA, "cuda", SHOWN("1g.5gb"));
		expect_(REASON_NONE, "cuda", (int)i);
		read_as("cuda", "linux-x64-cuda");
		assert_string_equal(d.uuid, "MIG-" ONE "/2/0");
	}
	/* another one was shown than was asked for */
	facts("env.CUDA_VISIBLE_DEVICES=MIG-" ONE "/1/0\n");
	add(MARK "facts {}\nwantedDevice=MIG-" ONE "/2/0\n" MARK "end {}\n");
	probe(NVML, "nvml", A100(MIG_ON) "," SLICE(1, "1g.5gb") "," SLICE(2, "1g.5gb"));
	probe(CUDA, "cuda", SHOWN("1g.5gb"));
	expect(NO_DEVICE, "cuda");
}

static void
a_card_that_is_not_in_slices_keeps_its_id(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", A100(DRIVER ",\"migMode\":\"disabled\""));
	probe(CUDA, "cuda", A100(""));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.uuid, ONE);
	assert_string_equal(d.mig, "");
}

/* ---- NVIDIA: tenants, memory ---- */

static void
a_card_that_others_hold_or_whose_memory_is_worn_blocks(void **state)
{
	static const struct {
		const char *more;
		enum reason wanted;
	} rows[] = {
		{",\"computeMode\":\"Default\",\"processes\":3", REASON_NONE},
		{",\"computeMode\":\"Exclusive_Process\",\"processes\":0", REASON_NONE},
		{",\"computeMode\":\"Exclusive_Process\",\"processes\":1", REASON_DEVICE_BUSY},
		{",\"computeMode\":\"Exclusive_Thread\",\"processes\":1", REASON_DEVICE_BUSY},
		/* a server shares it among its clients */
		{",\"computeMode\":\"Exclusive_Process\",\"processes\":1,\"mps\":true", REASON_NONE},
		{",\"computeMode\":\"Exclusive_Process\",\"processes\":null", REASON_NONE},
		{",\"rowRemapFailed\":true", REASON_DEVICE_FAULT},
		{",\"rowRemapFailed\":false,\"rowsRemapped\":1,\"rowRemapPending\":true", REASON_NONE},
		{",\"rowRemapFailed\":null,\"eccUncorrectedEver\":9", REASON_NONE},
		{",\"fabric\":\"completed\",\"fabricStatus\":0", REASON_NONE},
	};
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, H200(0, ONE, "0000:1b:00.0", DRIVER "%s"), rows[i].more);
		facts("");
		probe(NVML, "nvml", text);
		probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
		expect_(rows[i].wanted, "cuda", (int)i);
		if (rows[i].wanted != REASON_NONE)
			assert_true(strlen(j.hint) > 0);
	}
}

/* ---- Vulkan ---- */

#define VK(index, name, uuid, pci, type, id) "{\"index\":" #index ",\"name\":\"" name "\",\"uuid\":\"" uuid \
	"\",\"pci\":" pci ",\"type\":\"" type "\",\"driver\":\"1\",\"driverId\":\"" id "\"}"

static void
a_device_of_another_kind_is_neither_taken_nor_in_the_way(void **state)
{
	static const char other[] = VK(0, "Odd", "00000000-0000-0000-0000-000000000001", "\"0000:01:00.0\"", "other", "NEW");
	static const char info[] = "Vulkan Instance Version: 1.3.280\n\nDevices:\n========\n"
		"GPU0:\n\tapiVersion         = 1.3.274\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_OTHER\n"
		"\tdeviceName         = Odd\n\tdriverID           = DRIVER_ID_NEW\n"
		"\tdeviceUUID         = 00000000-0000-0000-0000-000000000001\n"
		"GPU1:\n\tapiVersion         = 1.3.274\n\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName         = NVIDIA H200\n\tdriverID           = DRIVER_ID_NVIDIA_PROPRIETARY\n"
		"\tdeviceUUID         = 00000000-0000-0000-0000-000000000002\n";
	char text[1024];

	(void)state;
	facts("");
	snprintf(text, sizeof text, "%s,%s", other, VK(1, "NVIDIA H200", "00000000-0000-0000-0000-000000000002",
		"\"0000:06:00.0\"", "discrete", "NVIDIA_PROPRIETARY"));
	probe(VULKAN, "vulkan", text);
	ran(VULKANINFO, info, 0, 0, false);
	expect(NONE, "vulkan");
	read_as("vulkan", "linux-x64-vulkan");
	assert_string_equal(d.name, "NVIDIA H200");
	facts("");
	probe(VULKAN, "vulkan", other);
	expect(WRONG_DEVICE, "vulkan");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_card_is_taken_though_the_processors_graphics_have_the_lower_place),
		cmocka_unit_test(a_chip_that_is_made_to_claim_another_is_no_card),
		cmocka_unit_test(the_processors_graphics_alone_are_taken_and_named_ones_too),
		cmocka_unit_test(the_only_slice_of_a_profile_is_known_by_its_cards_id),
		cmocka_unit_test(of_slices_that_are_alike_one_must_be_named),
		cmocka_unit_test(a_card_that_is_not_in_slices_keeps_its_id),
		cmocka_unit_test(a_card_that_others_hold_or_whose_memory_is_worn_blocks),
		cmocka_unit_test(a_device_of_another_kind_is_neither_taken_nor_in_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
