/* Probes that agree or block, the class of a GPU, and one device for a whole gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/agree.h"
#include "common/bound.h"
#include "common/str.h"
#include "tests/unit/device_log.h"

static void
two_cards(void)
{
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", DRIVER) "," H200(1, TWO, "0000:43:00.0", DRIVER));
}

/* ---- NVIDIA ---- */

static void
of_two_cards_the_first_by_place_is_taken_whatever_the_numbers(void **state)
{
	(void)state;
	facts("");
	two_cards();
	probe(CUDA, "cuda", H200(0, TWO, "0000:43:00.0", "") "," H200(1, ONE, "0000:1b:00.0", ""));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.uuid, ONE);
	assert_string_equal(d.driver, "580.65.06");
	assert_string_equal(d.device_class, "linux-x64-cuda/h200/sm_90");
	assert_int_equal(d.ordinal, 1);
}

static void
device_is_named_by_uuid_place_or_number(void **state)
{
	static const char *const names[] = {TWO, "66666666-7777-8888-9999-aaaaaaaaaaaa",
		"GPU-66666666-7777-8888-9999-AAAAAAAAAAAA",
		"1", "43:00.0", "0000:43:00.0", "00000000:43:00.0"};
	char text[128];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(text, sizeof text, "wantedDevice=%s\n", names[i]);
		facts(text);
		two_cards();
		probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", "") "," H200(1, TWO, "0000:43:00.0", ""));
		expect(NONE, "cuda");
		read_as("cuda", "linux-x64-cuda");
		assert_string_equal(d.uuid, TWO);
	}
}

static void
device_that_is_not_there_is_no_other(void **state)
{
	static const char *const names[] = {"2", "-1", "01", "1b", "GPU-", "GPU-11111111",
		"0000:99:00.0", "NVIDIA H200", " "};
	char text[128];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(text, sizeof text, "wantedDevice=%s\n", names[i]);
		facts(text);
		two_cards();
		probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", "") "," H200(1, TWO, "0000:43:00.0", ""));
		expect(NO_DEVICE, "cuda");
	}
}

static void
hidden_card_is_explained_by_the_variable_and_only_by_it(void **state)
{
	(void)state;
	facts("env.CUDA_VISIBLE_DEVICES=1\n");
	two_cards();
	probe(CUDA, "cuda", H200(0, TWO, "0000:43:00.0", ""));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.uuid, TWO);
	assert_non_null(strstr(d.override, "CUDA_VISIBLE_DEVICES=1"));
	assert_false(d.faked);
	facts("");
	two_cards();
	probe(CUDA, "cuda", H200(0, TWO, "0000:43:00.0", ""));
	expect(PROBES_DISAGREE, "cuda");
	/* a card that CUDA has and NVML has not is hidden by nothing */
	facts("env.CUDA_VISIBLE_DEVICES=0,1\n");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", DRIVER));
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", "") "," H200(1, TWO, "0000:43:00.0", ""));
	expect(PROBES_DISAGREE, "cuda");
	/* a card that is wanted and hidden */
	facts("env.CUDA_VISIBLE_DEVICES=1\nwantedDevice=" ONE "\n");
	two_cards();
	probe(CUDA, "cuda", H200(0, TWO, "0000:43:00.0", ""));
	expect(NO_DEVICE, "cuda");
}

static void
first_difference_is_named(void **state)
{
	static const struct {
		const char *cuda, *word;
	} rows[] = {
		{H200(0, TWO, "0000:43:00.0", ""), TWO},
		{H200(0, ONE, "0000:1c:00.0", ""), "PCI address"},
		{DEVICE(0, "NVIDIA H100", ONE, "0000:1b:00.0", "9.0", ""), "name"},
		{DEVICE(0, "NVIDIA H200", ONE, "0000:1b:00.0", "9.1", ""), "architecture"},
		{H200(0, ONE, "0000:1b:00.0", ",\"driver\":\"580.65.07\""), "driver"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		facts("");
		probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", DRIVER));
		probe(CUDA, "cuda", rows[i].cuda);
		expect(PROBES_DISAGREE, "cuda");
		if (strstr(j.detail, rows[i].word) == NULL)
			fail_msg("%s: %s", rows[i].word, j.detail);
	}
}

static void
vendor_in_front_of_a_name_is_no_difference(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", DEVICE(0, "GeForce RTX 4090", ONE, "0000:01:00.0", "8.9", DRIVER));
	probe(CUDA, "cuda", DEVICE(0, "NVIDIA GeForce RTX 4090", ONE, "0000:01:00.0", "8.9", ""));
	ran(SMI_L, "GPU 0: NVIDIA GeForce RTX 4090 (UUID: " ONE ")\n", 0, 0, false);
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.device_class, "linux-x64-cuda/rtx-4090/sm_89");
}

static void
tool_that_ends_well_and_lists_nothing_blocks(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", DRIVER));
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	ran(SMI_L, "No devices were found\n", 0, 0, false);
	assert_int_not_equal(judged("cuda"), REASON_NONE);
	assert_int_equal(j.outcome, OUTCOME_BLOCKED);
	facts("");
	probe(NVML, "nvml", "");
	probe(CUDA, "cuda", "");
	expect(NO_DEVICE, "cuda");
	facts("");
	probe(NVML, "nvml", "");
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	expect(PROBES_DISAGREE, "cuda");
}

static void
own_reason_of_a_required_source_wins(void **state)
{
	static const struct {
		int code;
		const char *reason;
	} rows[] = {
		{802, "fabric_not_ready"}, {803, "driver_mismatch"}, {999, "device_fault"}, {46, "device_busy"},
		{304, "no_permission"}, {101, "driver_not_loaded"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		facts("");
		two_cards();
		probe_failed(CUDA, "cuda", rows[i].code, rows[i].reason);
		ran(SMI_L, "No devices were found\n", 6, 0, false);
		assert_string_equal(reason_name(judged("cuda")), rows[i].reason);
		assert_true(j.outcome == OUTCOME_BLOCKED && j.hint[0] != '\0');
		/* also when the other one is empty or late */
		facts("");
		probe(NVML, "nvml", "");
		probe_failed(CUDA, "cuda", rows[i].code, rows[i].reason);
		assert_string_equal(reason_name(judged("cuda")), rows[i].reason);
	}
	/* 100: what hides the devices is said, else the sources disagree */
	facts("env.CUDA_VISIBLE_DEVICES=-1\n");
	two_cards();
	probe_failed(CUDA, "cuda", 100, "no_device");
	expect(NO_DEVICE, "cuda");
	assert_non_null(strstr(j.detail, "CUDA_VISIBLE_DEVICES=-1"));
	facts("");
	two_cards();
	probe_failed(CUDA, "cuda", 100, "no_device");
	expect(PROBES_DISAGREE, "cuda");
	/* a reason that nobody knows is no pass */
	facts("");
	two_cards();
	probe_failed(CUDA, "cuda", 1, "none");
	expect(PROBE_UNREADABLE, "cuda");
}

static void
probe_that_crashes_hangs_or_lies_about_its_end_blocks(void **state)
{
	static const char good[] = "{\"probe\":\"cuda\",\"schema\":1,\"error\":null,\"devices\":["
		H200(0, ONE, "0000:1b:00.0", "") "]}\n";
	static const struct {
		const char *body;
		int exit, signal;
		bool timed_out;
		enum reason wanted;
	} rows[] = {
		{good, 0, 0, false, REASON_NONE},
		{good, -1, 11, false, REASON_PROBE_CRASHED},
		{good, -1, 9, true, REASON_PROBE_TIMEOUT},
		{good, 1, 0, false, REASON_PROBE_UNREADABLE},
		{"", 0, 0, false, REASON_PROBE_UNREADABLE},
		{"{}", 0, 0, false, REASON_PROBE_UNREADABLE},
		{"[]", 0, 0, false, REASON_PROBE_UNREADABLE},
		{"{\"probe\":\"cuda\",\"schema\":2,\"error\":null,\"devices\":[" H200(0, ONE, "0000:1b:00.0", "")
			"]}", 0, 0, false, REASON_PROBE_UNREADABLE},
		{"{\"probe\":\"cuda\",\"schema\":1,\"devices\":[" H200(0, ONE, "0000:1b:00.0", "") "]}", 0, 0,
			false, REASON_PROBE_UNREADABLE},
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		facts("");
		probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", DRIVER));
		ran(CUDA, rows[i].body, rows[i].exit, rows[i].signal, rows[i].timed_out);
		expect_(rows[i].wanted, "cuda", (int)i);
	}
}

static void
source_that_was_not_asked_blocks(void **state)
{
	(void)state;
	facts("");
	two_cards();
	expect(PROBE_UNREADABLE, "cuda");
	facts("");
	expect(PROBE_UNREADABLE, "rocm");
	expect(PROBE_UNREADABLE, "vulkan");
	/* of another program, or with other words */
	facts("");
	two_cards();
	probe("\"/tmp/verify\",\"probe\",\"cuda\"", "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	probe(SELF("\"cuda\",\"--device\",\"" ONE "\""), "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	expect(PROBE_UNREADABLE, "cuda");
}

static void
second_answer_of_a_source_changes_nothing(void **state)
{
	(void)state;
	facts("");
	two_cards();
	probe_failed(CUDA, "cuda", 803, "driver_mismatch");
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", "") "," H200(1, TWO, "0000:43:00.0", ""));
	expect(DRIVER_MISMATCH, "cuda");
}

/* ---- slices ---- */

#define SLICE(n) "{\"index\":" #n ",\"name\":\"NVIDIA H200 MIG 1g.18gb\",\"uuid\":\"MIG-0000000" #n \
	"-2222-3333-4444-555555555555\",\"pci\":\"0000:1b:00.0\",\"arch\":\"9.0\",\"parent\":0," \
	"\"type\":\"discrete\",\"mig\":\"1g.18gb\"}"
#define MIG_ON DRIVER ",\"migMode\":\"enabled\""

static void
slice_gives_its_own_class_and_id(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", MIG_ON) "," SLICE(0) "," SLICE(1));
	probe(CUDA, "cuda", DEVICE(0, "NVIDIA H200 MIG 1g.18gb", "GPU-00000000-2222-3333-4444-555555555555",
		"0000:1b:00.0", "9.0", ""));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.device_class, "linux-x64-cuda/h200/sm_90+mig-1g.18gb");
	assert_string_equal(d.uuid, "MIG-00000000-2222-3333-4444-555555555555");
	/* a slice of which NVML knows nothing */
	facts("");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", MIG_ON) "," SLICE(0) "," SLICE(1));
	probe(CUDA, "cuda", DEVICE(0, "NVIDIA H200 MIG 1g.18gb", "MIG-00000007-2222-3333-4444-555555555555",
		"0000:1b:00.0", "9.0", ""));
	expect(PROBES_DISAGREE, "cuda");
}

static void
mode_without_an_instance_is_said_even_when_a_variable_hides(void **state)
{
	static const char *const more[] = {"", "env.CUDA_VISIBLE_DEVICES=0\n"};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(more); i++) {
		facts(more[i]);
		probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", MIG_ON));
		probe_failed(CUDA, "cuda", 100, "no_device");
		ran(SMI_L, "GPU 0: NVIDIA H200 (UUID: " ONE ")\n", 0, 0, false);
		expect(MIG_NO_INSTANCE, "cuda");
	}
	/* the whole card answers to CUDA although it is in slices: nothing runs there */
	facts("");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", MIG_ON));
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	expect(MIG_NO_INSTANCE, "cuda");
}

static void
card_beside_one_in_slices_is_good(void **state)
{
	(void)state;
	facts("");
	probe(NVML, "nvml", H200(0, ONE, "0000:1b:00.0", MIG_ON) "," H200(1, TWO, "0000:43:00.0", DRIVER));
	probe(CUDA, "cuda", H200(0, TWO, "0000:43:00.0", ""));
	expect(NONE, "cuda");
	read_as("cuda", "linux-x64-cuda");
	assert_string_equal(d.device_class, "linux-x64-cuda/h200/sm_90");
}

/* ---- names and kin ---- */

static void
each_name_has_the_class_a_person_expects(void **state)
{
	static const struct {
		const char *name, *arch, *class;
	} rows[] = {
		{"NVIDIA H200", "9.0", "linux-x64-cuda/h200/sm_90"},
		{"NVIDIA A100-SXM4-80GB", "8.0", "linux-x64-cuda/a100-sxm4-80gb/sm_80"},
		{"NVIDIA GeForce RTX 5080 Laptop GPU", "12.0", "linux-x64-cuda/rtx-5080-laptop-gpu/sm_120"},
		{"NVIDIA H100 80GB HBM3", "9.0", "linux-x64-cuda/h100-80gb-hbm3/sm_90"},
		{"NVIDIA B200", "10.0", "linux-x64-cuda/b200/sm_100"},
		{"NVIDIA GB10", "12.1", "linux-x64-cuda/gb10/sm_121"},
		{"Tesla T4", "7.5", "linux-x64-cuda/t4/sm_75"},
		{"Tesla V100-SXM2-16GB", "7.0", "linux-x64-cuda/v100-sxm2-16gb/sm_70"},
		{"GRID A100D-40C", "8.0", "linux-x64-cuda/a100d-40c/sm_80+vgpu"},
	};
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, DEVICE(0, "%s", ONE, "0000:1b:00.0", "%s", DRIVER), rows[i].name,
			rows[i].arch);
		facts("");
		probe(NVML, "nvml", text);
		probe(CUDA, "cuda", text);
		expect_(REASON_NONE, "cuda", (int)i);
		read_as("cuda", "linux-x64-cuda");
		assert_string_equal(d.device_class, rows[i].class);
		assert_string_equal(d.name, rows[i].name);
	}
}

static void
grace_hopper_is_hopper_on_aarch64_and_nothing_else(void **state)
{
	static const struct {
		const char *host, *arch;
		enum reason gh200, cuda;
	} rows[] = {
		{"hostArch=aarch64\n", "9.0", REASON_NONE, REASON_WRONG_DEVICE},
		{"hostArch=x86_64\n", "9.0", REASON_WRONG_DEVICE, REASON_NONE},
		{"hostArch=aarch64\n", "12.1", REASON_WRONG_DEVICE, REASON_NONE},
		{"hostArch=aarch64\n", "10.0", REASON_WRONG_DEVICE, REASON_NONE},
		{"hostArch=aarch64\n", "8.7", REASON_WRONG_DEVICE, REASON_NONE},
		{"hostArch=\n", "9.0", REASON_WRONG_DEVICE, REASON_NONE},
	};
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		/* the name does not decide */
		snprintf(text, sizeof text, DEVICE(0, "NVIDIA GH200 480GB", ONE, "0009:01:00.0", "%s", DRIVER),
			rows[i].arch);
		facts(rows[i].host);
		probe(NVML, "nvml", text);
		probe(CUDA, "cuda", text);
		expect_(rows[i].gh200, "gh200", (int)i);
		expect_(rows[i].cuda, "cuda", (int)i);
		if (rows[i].cuda != REASON_NONE)
			assert_non_null(strstr(j.detail, "gh200"));
	}
	facts(rows[0].host);
	probe(NVML, "nvml", DEVICE(0, "NVIDIA GH200 480GB", ONE, "0009:01:00.0", "9.0", DRIVER));
	probe(CUDA, "cuda", DEVICE(0, "NVIDIA GH200 480GB", ONE, "0009:01:00.0", "9.0", ""));
	read_as("gh200", "linux-aarch64-cuda");
	assert_string_equal(d.device_class, "linux-aarch64-cuda/gh200-480gb/sm_90");
}

static void
state_of_a_card_that_can_not_work_blocks(void **state)
{
	static const struct {
		const char *more;
		enum reason wanted;
	} rows[] = {
		{",\"state\":\"lost\"", REASON_DEVICE_FAULT}, {",\"state\":\"requires_reset\"", REASON_DEVICE_FAULT},
		{",\"computeMode\":\"Prohibited\"", REASON_DEVICE_BUSY},
		{",\"state\":null,\"computeMode\":\"Exclusive_Process\"", REASON_NONE},
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
	}
}

/* ---- AMD ---- */

#define RX7900 DEVICE(0, "AMD Radeon RX 7900 XTX", "GPU-c21600bfb26ea2b4", "0000:03:00.0", "gfx1100", "")

static void
override_of_a_chip_is_never_silent(void **state)
{
	static const char *const more[] = {"env.HSA_OVERRIDE_GFX_VERSION=11.0.0\n",
		"env.HSA_OVERRIDE_GFX_VERSION_0=11.0.0\n", "env.HSA_OVERRIDE_GFX_VERSION=\n"};
	size_t i;

	(void)state;
	facts("env.HSA_ENABLE_SDMA=0\nenv.HSA_OVERRIDE=1\n");
	probe(HIP, "hip", RX7900);
	expect(NONE, "rocm");
	read_as("rocm", "linux-x64-rocm");
	assert_false(d.faked);
	assert_string_equal(d.device_class, "linux-x64-rocm/radeon-rx-7900-xtx/gfx1100");
	for (i = 0; i < str_count(more); i++) {
		facts(more[i]);
		probe(HIP, "hip", RX7900);
		read_as("rocm", "linux-x64-rocm");
		assert_true(d.faked);
		assert_non_null(strstr(d.override, "HSA_OVERRIDE_GFX_VERSION"));
	}
}

static void
subsystem_for_linux_stands_in_the_class(void **state)
{
	(void)state;
	facts("wsl=2\n");
	probe(HIP, "hip", RX7900);
	expect(NONE, "rocm");
	read_as("rocm", "linux-x64-rocm");
	assert_string_equal(d.device_class, "linux-x64-rocm/radeon-rx-7900-xtx/gfx1100+wsl");
}

/* ---- Vulkan ---- */

#define VK(index, name, uuid, pci, type, id) "{\"index\":" #index ",\"name\":\"" name "\",\"uuid\":\"" uuid \
	"\",\"pci\":" pci ",\"arch\":null,\"type\":\"" type "\",\"driverId\":\"" id "\",\"driver\":\"1.2\"}"
#define ARC(index) VK(index, "Intel(R) Arc(tm) A770 Graphics (DG2)", "868056a0000000000000000000000000", \
	"\"0000:03:00.0\"", "discrete", "INTEL_OPEN_SOURCE_MESA")
#define PIPE(index) VK(index, "llvmpipe (LLVM 17.0.6, 256 bits)", "6d657361000000000000000000000000", \
	"null", "cpu", "MESA_LLVMPIPE")

static void
software_beside_hardware_is_never_chosen(void **state)
{
	(void)state;
	facts("");
	probe(VULKAN, "vulkan", PIPE(0) "," ARC(1));
	expect(NONE, "vulkan");
	read_as("vulkan", "linux-x64-vulkan");
	assert_string_equal(d.device_class, "linux-x64-vulkan/arc-a770/intel-open-source-mesa");
	assert_false(d.software);
	assert_int_equal(d.ordinal, 1);
	/* asked for by name it is refused, not exchanged for another */
	facts("wantedDevice=0\n");
	probe(VULKAN, "vulkan", PIPE(0) "," ARC(1));
	expect(SOFTWARE_DEVICE, "vulkan");
}

static void
software_alone_passes_with_the_switch_only_and_says_so(void **state)
{
	(void)state;
	facts("");
	probe(VULKAN, "vulkan", PIPE(0));
	expect(SOFTWARE_DEVICE, "vulkan");
	/* a driver that lies about its type is known by its name */
	facts("");
	probe(VULKAN, "vulkan", VK(0, "llvmpipe (LLVM 19.1, 512 bits)", "6d657361000000000000000000000000",
		"\"0000:00:02.0\"", "discrete", "UNKNOWN"));
	expect(SOFTWARE_DEVICE, "vulkan");
	facts("softwareAllowed=yes\n");
	probe(VULKAN, "vulkan", PIPE(0));
	expect(SOFTWARE_DEVICE, "vulkan");
	facts("softwareAllowed=1\n");
	probe(VULKAN, "vulkan", PIPE(0));
	expect(NONE, "vulkan");
	read_as("vulkan", "linux-x64-vulkan");
	assert_true(d.software);
}

static void
virtual_devices_and_translation_layers_are_refused(void **state)
{
	(void)state;
	facts("");
	probe(VULKAN, "vulkan", VK(0, "Apple M2", "00000000000000000000000000000001", "null", "integrated",
		"MOLTENVK"));
	expect(WRONG_DEVICE, "vulkan");
	facts("");
	probe(VULKAN, "vulkan", VK(0, "Virtio-GPU Venus", "00000000000000000000000000000001", "null",
		"virtual", "MESA_VENUS"));
	expect(EMULATOR, "vulkan");
	/* the switch for software opens nothing else */
	facts("softwareAllowed=1\n");
	probe(VULKAN, "vulkan", VK(0, "Virtio-GPU Venus", "00000000000000000000000000000001", "null",
		"virtual", "MESA_VENUS"));
	expect(EMULATOR, "vulkan");
}

static void
card_goes_before_shared_memory_and_names_lose_their_marks(void **state)
{
	static const struct {
		const char *name, *id, *class;
	} rows[] = {
		{"AMD Radeon RX 7900 XTX (RADV NAVI31)", "MESA_RADV", "linux-x64-vulkan/radeon-rx-7900-xtx/mesa-radv"},
		{"NVIDIA H200", "NVIDIA_PROPRIETARY", "linux-x64-vulkan/h200/nvidia-proprietary"},
		{"Adreno (TM) 740", "QUALCOMM_PROPRIETARY", "linux-x64-vulkan/adreno-740/qualcomm-proprietary"},
		{"Intel(R) Arc(TM) A770 Graphics", "INTEL_PROPRIETARY_WINDOWS",
			"linux-x64-vulkan/arc-a770/intel-proprietary-windows"},
	};
	char text[2048];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		snprintf(text, sizeof text, "%s,"
			VK(1, "%s", "00000000030000000000000000000000", "\"0000:03:00.0\"", "discrete", "%s"),
			VK(0, "AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)", "00000000000000000000000000000002",
				"\"0000:01:00.0\"", "integrated", "MESA_RADV"), rows[i].name, rows[i].id);
		facts("");
		probe(VULKAN, "vulkan", text);
		expect_(REASON_NONE, "vulkan", (int)i);
		read_as("vulkan", "linux-x64-vulkan");
		assert_string_equal(d.device_class, rows[i].class);
	}
}

static void
tool_that_is_absent_or_writes_ids_with_hyphens_is_no_difference(void **state)
{
	static const char head[] = "Vulkan Instance Version: 1.3.296\n\nDevices:\n========\nGPU0:\n"
		"\tdeviceType = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName = Intel(R) Arc(tm) A770 Graphics (DG2)\n"
		"\tdriverID = DRIVER_ID_INTEL_OPEN_SOURCE_MESA\n\tconformanceVersion = 1.3.6.0\n"
		"\tdeviceUUID = %s-0000-0000-0000-000000000000\n";
	char text[1024];

	(void)state;
	snprintf(text, sizeof text, head, "868056a0");
	facts("");
	probe(VULKAN, "vulkan", ARC(0));
	ran(VULKANINFO, text, 0, 0, false);
	expect(NONE, "vulkan");
	snprintf(text, sizeof text, head, "868056a1");
	facts("");
	probe(VULKAN, "vulkan", ARC(0));
	ran(VULKANINFO, text, 0, 0, false);
	expect(PROBES_DISAGREE, "vulkan");
	facts("");
	probe(VULKAN, "vulkan", ARC(0));
	ran(VULKANINFO, "sh: 1: vulkaninfo: command not found\n", 127, 0, false);
	expect(NONE, "vulkan");
}

/* ---- bytes ---- */

static void
no_beginning_of_a_good_log_is_a_pass(void **state)
{
	struct judge_ask ask = {.lane = lane_find("cuda")};
	size_t n;

	(void)state;
	facts("");
	two_cards();
	ran(SMI_L, "GPU 0: NVIDIA H200 (UUID: " ONE ")\nGPU 1: NVIDIA H200 (UUID: " TWO ")\n", 0, 0, false);
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", "") "," H200(1, TWO, "0000:43:00.0", ""));
	expect(NONE, "cuda");
	for (n = 0; n + 1 < log_len; n++) {
		judge_gate(GATE_DEVICE, log_text, n, &ask, &j);
		if (j.outcome == OUTCOME_PASS)
			fail_msg("%zu of %zu bytes are a pass", n, log_len);
	}
}

/* ---- one device for a gate ---- */

#define LOOK SELF("\"nvml\",\"--device\",\"" ONE "\"")
#define BOOT "\"bootId\":\"b0\","

static void
look(const char *boot, const char *devices)
{
	char text[2048];

	snprintf(text, sizeof text, "{\"probe\":\"nvml\",\"schema\":1,%s\"error\":null,\"devices\":[%s]}\n", boot,
		devices);
	ran(LOOK, text, 0, 0, false);
}

static enum reason
bound(struct bound *b)
{
	memset(&j, 0, sizeof j);
	return bound_judge(log_text, log_len, lane_find("cuda"), b, &j);
}

#define SEEN(driver, pci, uuid, ecc, xid) H200(0, uuid, pci, ",\"driver\":\"" driver \
	"\",\"eccUncorrected\":" ecc ",\"xid\":" xid)
#define BEFORE SEEN("580.65.06", "0000:1b:00.0", ONE, "2", "1")

/* A gate's log up to its second look. */
static void
looked_and_ran(void)
{
	facts("");
	look(BOOT, BEFORE);
	ran("\"cuda-verify\"", "work", 0, 0, false);
}

static void
device_of_a_gate_is_the_same_before_and_after(void **state)
{
	static const struct {
		const char *boot, *after;
		enum reason wanted;
	} rows[] = {
		{BOOT, BEFORE, REASON_NONE},
		{BOOT, SEEN("580.65.06", "0000:1b:00.0", ONE, "null", "null"), REASON_NONE},
		{BOOT, SEEN("580.65.06", "0000:1b:00.0", ONE, "3", "1"), REASON_DEVICE_CHANGED},
		{BOOT, SEEN("580.65.06", "0000:1b:00.0", ONE, "2", "2"), REASON_DEVICE_CHANGED},
		{BOOT, SEEN("580.65.07", "0000:1b:00.0", ONE, "2", "1"), REASON_DEVICE_CHANGED},
		{BOOT, SEEN("580.65.06", "0000:1c:00.0", ONE, "2", "1"), REASON_DEVICE_CHANGED},
		{BOOT, SEEN("580.65.06", "0000:1b:00.0", TWO, "2", "1"), REASON_DEVICE_CHANGED},
		{"\"bootId\":\"b1\",", BEFORE, REASON_DEVICE_CHANGED},
		{BOOT, "", REASON_DEVICE_VANISHED},
		{BOOT, BEFORE "," BEFORE, REASON_DEVICE_CHANGED},
	};
	struct bound b;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		looked_and_ran();
		look(rows[i].boot, rows[i].after);
		if (bound(&b) != rows[i].wanted)
			fail_msg("row %zu: %s: %s", i, reason_name(j.reason), j.detail);
		if (rows[i].wanted == REASON_NONE)
			assert_string_equal(b.uuid, ONE);
		else
			assert_int_equal(j.outcome, OUTCOME_INCOMPLETE);
	}
}

/* What it printed before it was stopped may be as good as before. */
static void
look_without_an_end_is_no_answer(void **state)
{
	static const char good[] = "{\"probe\":\"nvml\",\"schema\":1," BOOT "\"error\":null,\"devices\":[" BEFORE "]}\n";
	static const struct {
		int signal;
		bool timed_out;
		const char *says;
	} rows[] = {{9, true, "in time"}, {11, false, "signal 11"}};
	struct bound b;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		looked_and_ran();
		ran(LOOK, good, rows[i].signal ? -1 : 0, rows[i].signal, rows[i].timed_out);
		assert_int_equal(bound(&b), REASON_DEVICE_CHANGED);
		assert_int_equal(j.outcome, OUTCOME_INCOMPLETE);
		if (strstr(j.detail, rows[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", j.detail, rows[i].says);
	}
	looked_and_ran();
	add(MARK "run {\"argv\":[" LOOK "]}\n%s" MARK "end {\"exit\":-1,\"signal\":9,\"ms\":7,\"timedOut\":false,"
		"\"cancelled\":true,\"bytes\":%zu,\"dropped\":0}\n", good, strlen(good));
	assert_int_equal(bound(&b), REASON_CANCELLED);
}

static void
work_outside_of_both_looks_is_unbound(void **state)
{
	struct bound b;

	(void)state;
	looked_and_ran();
	assert_int_equal(bound(&b), REASON_DEVICE_CHANGED);
	facts("");
	ran("\"cuda-verify\"", "work", 0, 0, false);
	look(BOOT, BEFORE);
	look(BOOT, BEFORE);
	assert_int_equal(bound(&b), REASON_DEVICE_CHANGED);
	facts("");
	look(BOOT, BEFORE);
	look(BOOT, BEFORE);
	ran("\"cuda-verify\"", "work", 0, 0, false);
	assert_int_equal(bound(&b), REASON_DEVICE_CHANGED);
	/* looks of another interface */
	facts("");
	ran(SELF("\"cuda\",\"--device\",\"" ONE "\""), "{}", 0, 0, false);
	ran("\"cuda-verify\"", "work", 0, 0, false);
	ran(SELF("\"cuda\",\"--device\",\"" ONE "\""), "{}", 0, 0, false);
	assert_int_equal(bound(&b), REASON_DEVICE_CHANGED);
}

static void
many_uuids_in_a_variable_explain_hidden_cards(void **state)
{
	(void)state;
	facts("env.CUDA_VISIBLE_DEVICES=" ONE ",GPU-00000001-2222-3333-4444-555555555555,"
		"GPU-00000002-2222-3333-4444-555555555555,GPU-00000003-2222-3333-4444-555555555555\n");
	two_cards();
	probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
	expect(NONE, "cuda");
}

static void
a_long_value_fakes_as_a_short_one_does(void **state)
{
	char text[400];

	(void)state;
	snprintf(text, sizeof text, "env.HSA_OVERRIDE_GFX_VERSION=11.0.0%0200d\n", 0);
	facts(text);
	probe(HIP, "hip", RX7900);
	read_as("rocm", "linux-x64-rocm");
	assert_true(d.faked);
}

static void
variable_of_order_hides_nothing(void **state)
{
	static const char *const more[] = {"env.CUDA_DEVICE_ORDER=PCI_BUS_ID\n", "env.NVIDIA_VISIBLE_DEVICES=all\n"};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		facts(more[i]);
		two_cards();
		probe(CUDA, "cuda", H200(0, ONE, "0000:1b:00.0", ""));
		if (judged("cuda") == REASON_NONE) print_message("BUG %s\n", more[i]);
	}
}

static void
two_drivers_of_one_card_share_its_uuid(void **state)
{
	static const char info[] = "Vulkan Instance Version: 1.3.296\n\nDevices:\n========\n"
		"GPU0:\n\tdeviceType = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName = AMD Radeon RX 7900 XTX (RADV NAVI31)\n\tdriverID = DRIVER_ID_MESA_RADV\n"
		"\tdeviceUUID = 00000000-0300-0000-0000-000000000000\n"
		"GPU1:\n\tdeviceType = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU\n"
		"\tdeviceName = AMD Radeon RX 7900 XTX\n\tdriverID = DRIVER_ID_AMD_OPEN_SOURCE\n"
		"\tdeviceUUID = 00000000-0300-0000-0000-000000000000\n";

	(void)state;
	facts("");
	probe(VULKAN, "vulkan", VK(0, "AMD Radeon RX 7900 XTX (RADV NAVI31)", "00000000030000000000000000000000",
		"\"0000:03:00.0\"", "discrete", "MESA_RADV") "," VK(1, "AMD Radeon RX 7900 XTX",
		"00000000030000000000000000000000", "\"0000:03:00.0\"", "discrete", "AMD_OPEN_SOURCE"));
	ran(VULKANINFO, info, 0, 0, false);
	expect(NONE, "vulkan");
}

static void
apu_without_uuid_is_no_block(void **state)
{
	(void)state;
	facts("");
	probe(HIP, "hip", "{\"index\":0,\"name\":\"AMD Radeon Graphics\",\"uuid\":null,\"pci\":\"0000:c5:00.0\","
		"\"arch\":\"gfx1151\",\"type\":\"integrated\"}");
	expect(NONE, "rocm");
}

static void
swiftshader_is_told_by_its_driver_id(void **state)
{
	(void)state;
	facts("");
	probe(VULKAN, "vulkan", VK(0, "GPU", "00000000030000000000000000000000", "null", "discrete", "GOOGLE_SWIFTSHADER"));
	expect(SOFTWARE_DEVICE, "vulkan");
	facts("");
	probe(VULKAN, "vulkan", VK(0, "GPU", "00000000030000000000000000000000", "null", "discrete", "MESA_LLVMPIPE"));
	expect(SOFTWARE_DEVICE, "vulkan");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_two_cards_the_first_by_place_is_taken_whatever_the_numbers),
		cmocka_unit_test(device_is_named_by_uuid_place_or_number),
		cmocka_unit_test(device_that_is_not_there_is_no_other),
		cmocka_unit_test(hidden_card_is_explained_by_the_variable_and_only_by_it),
		cmocka_unit_test(first_difference_is_named),
		cmocka_unit_test(vendor_in_front_of_a_name_is_no_difference),
		cmocka_unit_test(tool_that_ends_well_and_lists_nothing_blocks),
		cmocka_unit_test(own_reason_of_a_required_source_wins),
		cmocka_unit_test(probe_that_crashes_hangs_or_lies_about_its_end_blocks),
		cmocka_unit_test(source_that_was_not_asked_blocks),
		cmocka_unit_test(second_answer_of_a_source_changes_nothing),
		cmocka_unit_test(slice_gives_its_own_class_and_id),
		cmocka_unit_test(mode_without_an_instance_is_said_even_when_a_variable_hides),
		cmocka_unit_test(card_beside_one_in_slices_is_good),
		cmocka_unit_test(each_name_has_the_class_a_person_expects),
		cmocka_unit_test(grace_hopper_is_hopper_on_aarch64_and_nothing_else),
		cmocka_unit_test(state_of_a_card_that_can_not_work_blocks),
		cmocka_unit_test(override_of_a_chip_is_never_silent),
		cmocka_unit_test(subsystem_for_linux_stands_in_the_class),
		cmocka_unit_test(software_beside_hardware_is_never_chosen),
		cmocka_unit_test(software_alone_passes_with_the_switch_only_and_says_so),
		cmocka_unit_test(virtual_devices_and_translation_layers_are_refused),
		cmocka_unit_test(card_goes_before_shared_memory_and_names_lose_their_marks),
		cmocka_unit_test(tool_that_is_absent_or_writes_ids_with_hyphens_is_no_difference),
		cmocka_unit_test(no_beginning_of_a_good_log_is_a_pass),
		cmocka_unit_test(device_of_a_gate_is_the_same_before_and_after),
		cmocka_unit_test(look_without_an_end_is_no_answer),
		cmocka_unit_test(work_outside_of_both_looks_is_unbound),
		cmocka_unit_test(many_uuids_in_a_variable_explain_hidden_cards),
		cmocka_unit_test(a_long_value_fakes_as_a_short_one_does),
		cmocka_unit_test(variable_of_order_hides_nothing),
		cmocka_unit_test(two_drivers_of_one_card_share_its_uuid),
		cmocka_unit_test(apu_without_uuid_is_no_block),
		cmocka_unit_test(swiftshader_is_told_by_its_driver_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
