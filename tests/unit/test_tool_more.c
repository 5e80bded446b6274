/* Outputs of tools beside the recorded ones: what shells say, other versions, damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"

#define NONE REASON_NONE
#define UNKNOWN REASON_UNKNOWN_TOOL_FORMAT
#define ID "GPU-0000d200-1111-2222-3333-44444444d200"
#define LIST(name) "GPU 0: " name " (UUID: " ID ")\n"
#define HEAD "Testing 1 devices\n\nBackend 1/1: CUDA0\n  Device description: NVIDIA H200\n\n"
#define VULKAN "Vulkan Instance Version: 1.3.280\n\nDevices:\n========\n"
#define DEVICE(n, name, type, driver) \
	"GPU" n ":\n\tapiVersion         = 1.3.274\n\tvendorID           = 0x10de\n" \
	"\tdeviceType         = PHYSICAL_DEVICE_TYPE_" type "\n\tdeviceName         = " name "\n" \
	"\tdriverID           = DRIVER_ID_" driver "\n\tdriverInfo         = 1\n" \
	"\tconformanceVersion = 1.3.0.0\n\tdeviceUUID         = 00000000-0300-0000-0000-00000000000" n "\n"

static const struct row {
	enum tool_kind kind;
	int exit;
	enum reason reason;
	int devices;
	const char *text;
} rows[] = {
	/* a tool that is not there, in the words of each shell; one that can not be loaded */
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, "sh: 1: nvidia-smi: not found\n"},
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, "bash: line 1: nvidia-smi: command not found\n"},
	{TOOL_NVIDIA_SMI_L, 127, REASON_TOOL_MISSING, 0, ""},
	{TOOL_NVIDIA_SMI_L, 1, REASON_TOOL_MISSING, 0, "nvidia-smi : The term 'nvidia-smi' is not recognized as the name of a cmdlet\n"},
	{TOOL_NVIDIA_SMI_QUERY, 127, REASON_TOOL_MISSING, 0, "/bin/sh: nvidia-smi: not found\n"},
	{TOOL_ROCMINFO, 127, REASON_TOOL_MISSING, 0, "sh: 1: rocminfo: not found\n"},
	{TOOL_ROCMINFO, 127, REASON_TOOL_BROKEN, 0, "rocminfo: error while loading shared libraries: libhsa-runtime64.so.1: cannot open shared object file: No such file or directory\n"},
	{TOOL_VULKANINFO, 127, REASON_TOOL_MISSING, 0, "sh: 1: vulkaninfo: not found\n"},
	{TOOL_ADB_DEVICES, 1, REASON_TOOL_MISSING, 0, "'adb' is not recognized as an internal or external command,\r\n"},
	{TOOL_NVCC, 127, REASON_TOOL_MISSING, 0, "sh: 1: nvcc: not found\n"},
	/* refusals */
	{TOOL_NVIDIA_SMI_L, 17, REASON_NO_PERMISSION, 0, "Failed to initialize NVML: GPU access blocked by the operating system\n"},
	{TOOL_NVIDIA_SMI_L, 12, REASON_DRIVER_MISSING_ON_HOST, 0, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed\n"},
	{TOOL_NVIDIA_SMI_L, 18, REASON_DRIVER_MISMATCH, 0, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 560.35\n"},
	{TOOL_ROCMINFO, 1, REASON_NO_DEVICE, 0, "WSL environment detected.\nhsa_init Failed, possibly no supported GPU devices\n"},
	{TOOL_ROCMINFO, 1, REASON_NO_PERMISSION, 0, "ROCk module is loaded\nUnable to open /dev/kfd read-write: No such file or directory\n"},
	{TOOL_VULKANINFO, 1, REASON_DRIVER_MISSING_ON_HOST, 0, "ERROR: [Loader Message] Code 0 : vkCreateInstance: Found no drivers!\nCannot create Vulkan instance.\n"},
	/* one column alone; sentences are not its rows */
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "compute_cap\n9.0\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 2, "9.0\r\n9.0\r\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "name\nNVIDIA H200\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "uuid\n" ID "\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 0, "name\nUnable to det"},
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_DEVICE_FAULT, 0, "name\nUnable to determine the device handle for GPU0000:41:00.0: GPU is lost.\n"},
	{TOOL_NVIDIA_SMI_QUERY, 9, REASON_DRIVER_MISSING_ON_HOST, 0, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"},
	/* warnings beside rows, and errors beside rows */
	{TOOL_NVIDIA_SMI_QUERY, 14, NONE, 1, "index, name, uuid\n0, Tesla V100-SXM2-32GB, " ID "\nWARNING: infoROM is corrupted at gpu 0000:B3:00.0\n"},
	{TOOL_NVIDIA_SMI_QUERY, 15, REASON_DEVICE_FAULT, 1, "index, name, uuid\n0, NVIDIA H200, " ID "\nUnable to determine the device handle for GPU0000:41:00.0: GPU is lost.\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, UNKNOWN, 1, "index, name, uuid\n0, NVIDIA H200, " ID "\n1, NVIDIA"},
	/* cells without facts */
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_DEVICE_FAULT, 1, "index, name, uuid\n0, [GPU is lost], [GPU is lost]\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, REASON_PROBE_UNREADABLE, 1, "index, name, uuid\n[Unknown Error], [Unknown Error], [Unknown Error]\n"},
	{TOOL_NVIDIA_SMI_QUERY, 0, NONE, 1, "\"index\",\"name\" ,\"uuid\"\n\"0\",\"NVIDIA H200\",\"" ID "\"\n"},
	/* kinds of Vulkan devices */
	{TOOL_VULKANINFO, 0, NONE, 2, VULKAN DEVICE("0", "NVIDIA H200", "DISCRETE_GPU", "NVIDIA_PROPRIETARY") DEVICE("1", "Odd", "OTHER", "NEW")},
	{TOOL_VULKANINFO, 0, REASON_NO_DEVICE, 1, VULKAN DEVICE("0", "Odd", "OTHER", "NEW")},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN DEVICE("0", "Gizmo", "DISCRETE_GPU", "MESA_LLVMPIPE")},
	{TOOL_VULKANINFO, 0, REASON_SOFTWARE_DEVICE, 1, VULKAN DEVICE("0", "Microsoft Direct3D12 (Microsoft Basic Render Driver)", "CPU", "MESA_DOZEN")},
	{TOOL_VULKANINFO, 0, REASON_EMULATOR, 2, VULKAN DEVICE("0", "Gfxstream", "VIRTUAL_GPU", "NEW") DEVICE("1", "SwiftShader Device", "CPU", "GOOGLE_SWIFTSHADER")},
	/* sums that are not those of the rows */
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, HEAD "  ADD(type=f32): \033[1;32mOK\033(B\033[m\n  1/1 tests passed\n  Backend CUDA0: \033[1;32mOK\033(B\033[m\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  2/2 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): [ADD] NaN at index 3 (CUDA0=nan CPU=1)\n  1/1 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): OK\n  9/3 tests passed\n  Backend CUDA0: OK\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, UNKNOWN, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: FAIL\n1/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_OP_MISMATCH, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n0/1 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_SUMMARY_MISSING, 0, HEAD "  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n"},
	/* heads of before October 2024 */
	{TOOL_TEST_BACKEND_OPS, 0, NONE, 0, "Testing 2 backends\n\nBackend 1/2 (CPU)\n  Skipping\nBackend 2/2 (CUDA0)\n  Backend name: CUDA0\n  ADD(type=f32): OK\n  1/1 tests passed\n  Backend CUDA0: OK\n\n2/2 backends passed\nOK\n"},
	{TOOL_TEST_BACKEND_OPS, 0, REASON_BACKEND_NOT_PRESENT, 0, "Testing 1 backends\n\nBackend 1/1 (CPU)\n  Skipping\n1/1 backends passed\nOK\n"},
	/* answers of probes that are none */
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":\"mismatch\",\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":803,\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	{TOOL_PROBE, 0, REASON_PROBE_UNREADABLE, 0, "{\"probe\":\"cuda\",\"schema\":1,\"error\":null,\"devices\":[1,null]}"},
	{TOOL_PROBE, 0, NONE, 1, "{\"probe\":\"cuda\",\"schema\":1,\"error\":null,\"devices\":[{\"index\":0,\"name\":\"NVIDIA H200\"}]}"},
	/* a phone found over the air a second time */
	{TOOL_ADB_DEVICES, 0, NONE, 1, "List of devices attached\nadb-1A2B3C-xyz (2)._adb-tls-connect._tcp device product:p model:Pixel_8 device:d transport_id:3\n"},
	{TOOL_ADB_DEVICES, 0, REASON_DEVICE_OFFLINE, 1, "List of devices attached\nadb-1A2B3C-xyz._adb-tls-connect._tcp offline transport_id:3\n"},
};

static const struct tool_answer *
answer(enum tool_kind k, const char *text, size_t len, int exit)
{
	static struct tool_answer a;

	tool_parse(k, text, len, exit, &a);
	return &a;
}

static void
outputs_that_nobody_recorded_are_concluded_right(void **state)
{
	const struct tool_answer *a;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		a = answer(rows[i].kind, rows[i].text, strlen(rows[i].text), rows[i].exit);
		if (a->reason != rows[i].reason || a->count != rows[i].devices)
			fail_msg("row %zu: wanted %s and %d devices, got %s and %d (%s)\n%s", i,
				reason_name(rows[i].reason), rows[i].devices, reason_name(a->reason), a->count,
				a->detail, rows[i].text);
	}
}

static void
a_column_that_is_new_to_us_makes_no_row_of_the_header(void **state)
{
	static const char text[] = "index, name, uuid, display_active, encoder.stats.sessionCount, "
		"compute_mode, mig.mode.current\n0, NVIDIA H200, " ID ", Enabled, 0, Prohibited, Disabled\n";
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_QUERY, text, sizeof text - 1, 0);

	(void)state;
	assert_int_equal(a->count, 1);
	assert_string_equal(a->device[0].mig_mode, "disabled");
	assert_string_equal(a->device[0].compute_mode, "Prohibited");
}

static void
a_performance_state_is_no_name(void **state)
{
	static const char text[] = "P0, Default, NVIDIA H200, " ID "\n";
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_QUERY, text, sizeof text - 1, 0);

	(void)state;
	assert_string_equal(a->device[0].name, "NVIDIA H200");
	assert_string_equal(a->device[0].compute_mode, "Default");
}

static void
virtual_profiles_are_known_in_every_tool(void **state)
{
	static const char list[] = LIST("NVIDIA A100-1-5CME");
	static const char vulkan[] = VULKAN DEVICE("0", "GRID A100D-40C", "DISCRETE_GPU", "NVIDIA_PROPRIETARY");

	(void)state;
	assert_true(answer(TOOL_NVIDIA_SMI_L, list, sizeof list - 1, 0)->device[0].vgpu);
	assert_true(answer(TOOL_VULKANINFO, vulkan, sizeof vulkan - 1, 0)->device[0].vgpu);
}

static void
eight_cards_of_seven_slices_fit(void **state)
{
	static char text[16384];
	size_t used = 0;
	int i, k;

	(void)state;
	for (i = 0; i < 8; i++) {
		used += (size_t)snprintf(text + used, sizeof text - used,
			"GPU %d: NVIDIA H200 (UUID: GPU-0000d200-1111-2222-3333-44444444000%d)\n", i, i);
		for (k = 0; k < 7; k++)
			used += (size_t)snprintf(text + used, sizeof text - used, "  MIG 1g.18gb     Device  %d: "
				"(UUID: MIG-0000d200-1111-2222-3333-4444444400%d%d)\n", k, i, k);
	}
	assert_int_equal(answer(TOOL_NVIDIA_SMI_L, text, used, 0)->reason, NONE);
	assert_int_equal(answer(TOOL_NVIDIA_SMI_L, text, used, 0)->count, 64);
}

/* Refusals of recorded hosts: no damaged byte makes facts of them. */
static void
no_damaged_byte_makes_a_refusal_good(void **state)
{
	static const struct {
		const char *file;
		enum tool_kind kind;
		int exit;
	} bad[] = {
		{"nvidia-smi-L/driver-library-mismatch.txt", TOOL_NVIDIA_SMI_L, 18},
		{"nvidia-smi-L/driver-not-running.txt", TOOL_NVIDIA_SMI_L, 9},
		{"nvidia-smi-L/gpu-lost.txt", TOOL_NVIDIA_SMI_L, 15},
		{"nvidia-smi-L/no-devices.txt", TOOL_NVIDIA_SMI_L, 6},
		{"nvidia-smi-query/field-not-valid.txt", TOOL_NVIDIA_SMI_QUERY, 2},
		{"nvidia-smi-L/driver-not-running.txt", TOOL_NVIDIA_SMI_QUERY, 9},
		{"rocminfo/kfd-permission-denied.txt", TOOL_ROCMINFO, 1},
		{"rocminfo/module-not-loaded-ansi.txt", TOOL_ROCMINFO, 1},
		{"rocminfo/cpu-only-agents.txt", TOOL_ROCMINFO, 0},
		{"vulkaninfo-summary/llvmpipe-only.txt", TOOL_VULKANINFO, 0},
		{"vulkaninfo-summary/no-driver.txt", TOOL_VULKANINFO, 1},
		{"vulkaninfo-summary/swiftshader.txt", TOOL_VULKANINFO, 0},
		{"test-backend-ops/backend-absent-ok.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/only-cpu-skipped.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/vulkan-all-not-supported.txt", TOOL_TEST_BACKEND_OPS, 0},
		{"test-backend-ops/cuda-one-fail.txt", TOOL_TEST_BACKEND_OPS, 1},
	};
	static const char bytes[] = {'\0', '\n', '\r', ' ', '0', '1', 'G', 'O', '(', ',', '=', '\x1b', '\xff'};
	char path[256], *text = NULL, was;
	size_t i, k, n, len;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		snprintf(path, sizeof path, "fixtures/probes/%s", bad[i].file);
		assert_int_equal(plat_read_file(path, TOOL_MAX_BYTES, &text, &len, NULL), 0);
		for (n = 0; n < len; n++) {
			was = text[n];
			for (k = 0; k < sizeof bytes; k++) {
				text[n] = bytes[k];
				if (answer(bad[i].kind, text, len, bad[i].exit)->reason == NONE)
					fail_msg("%s is good with byte %zu as 0x%02x", bad[i].file, n, (unsigned)(uint8_t)bytes[k]);
			}
			text[n] = was;
		}
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outputs_that_nobody_recorded_are_concluded_right),
		cmocka_unit_test(a_column_that_is_new_to_us_makes_no_row_of_the_header),
		cmocka_unit_test(a_performance_state_is_no_name),
		cmocka_unit_test(virtual_profiles_are_known_in_every_tool),
		cmocka_unit_test(eight_cards_of_seven_slices_fit),
		cmocka_unit_test(no_damaged_byte_makes_a_refusal_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
