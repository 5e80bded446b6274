/* What tools print, concluded as fixtures/probes/index.tsv tells it. */
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

static const struct row {
	const char *file;
	int exit;
	enum reason reason;
	int devices;       /* all rows, slices of MIG too; -1: not looked at */
	const char *name, *arch, *pci; /* of the first; NULL: not looked at */
} rows[] = {
	{"nvidia-smi-L/a100-mig-legacy-uuid.txt", 0, NONE, 3, "A100-SXM4-40GB", "", ""},
	{"nvidia-smi-L/a100-pcie-40gb-old-name.txt", 0, NONE, 1, "A100-PCIE-40GB", NULL, NULL},
	{"nvidia-smi-L/a100-sxm4-80gb-x4.txt", 0, NONE, 4, "NVIDIA A100-SXM4-80GB", NULL, NULL},
	{"nvidia-smi-L/driver-library-mismatch.txt", 18, REASON_DRIVER_MISMATCH, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/driver-not-running.txt", 9, REASON_DRIVER_MISSING_ON_HOST, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/gb10-dgx-spark.txt", 0, NONE, 1, "NVIDIA GB10", NULL, NULL},
	{"nvidia-smi-L/gb200-x4.txt", 0, NONE, 4, "NVIDIA GB200", NULL, NULL},
	{"nvidia-smi-L/gh200-120gb.txt", 0, NONE, 1, "NVIDIA GH200 120GB", NULL, NULL},
	{"nvidia-smi-L/gh200-480gb.txt", 0, NONE, 1, "NVIDIA GH200 480GB", NULL, NULL},
	{"nvidia-smi-L/gpu-lost.txt", 15, REASON_DEVICE_FAULT, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/h100-pcie.txt", 0, NONE, 1, "NVIDIA H100 PCIe", NULL, NULL},
	{"nvidia-smi-L/h100-sxm5-x8.txt", 0, NONE, 8, "NVIDIA H100 80GB HBM3", NULL, NULL},
	{"nvidia-smi-L/h200-mig-7x1g18gb.txt", 0, NONE, 8, "NVIDIA H200", NULL, NULL},
	{"nvidia-smi-L/h200-x1.txt", 0, NONE, 1, "NVIDIA H200", NULL, NULL},
	{"nvidia-smi-L/mig-enabled-no-instances.txt", 0, NONE, 1, "NVIDIA H100 80GB HBM3", NULL, NULL},
	{"nvidia-smi-L/mixed-consumer.txt", 0, NONE, 4, "NVIDIA GeForce RTX 4090", NULL, NULL},
	{"nvidia-smi-L/no-devices.txt", 6, REASON_NO_DEVICE, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/no-trailing-newline.txt", 0, NONE, 1, "NVIDIA L40S", NULL, NULL},
	{"nvidia-smi-L/nvml-insufficient-permissions.txt", 4, REASON_NO_PERMISSION, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/nvml-unknown-error.txt", 255, REASON_NO_PERMISSION, 0, NULL, NULL, NULL},
	{"nvidia-smi-L/vgpu-grid.txt", 0, NONE, 1, "GRID A100D-40C", NULL, NULL},
	{"nvidia-smi-L/windows-crlf.txt", 0, NONE, 1, "NVIDIA GeForce RTX 5060 Laptop GPU", NULL, NULL},
	{"nvidia-smi-query/a100-sxm4-80gb-x2.txt", 0, NONE, 2, "NVIDIA A100-SXM4-80GB", "8.0", "0000:07:00.0"},
	{"nvidia-smi-query/busy-other-tenant.txt", 0, REASON_DEVICE_BUSY, 1, "", "", ""},
	{"nvidia-smi-query/field-not-valid.txt", 2, REASON_UNKNOWN_TOOL_FORMAT, 0, NULL, NULL, NULL},
	{"nvidia-smi-query/gh200.txt", 0, NONE, 1, "NVIDIA GH200 480GB", "9.0", "0009:01:00.0"},
	{"nvidia-smi-query/gpu-requires-reset.txt", 0, REASON_DEVICE_FAULT, 1, NULL, NULL, NULL},
	{"nvidia-smi-query/h100-noheader-nounits.txt", 0, NONE, 1, "NVIDIA H100 80GB HBM3", "9.0", "0000:18:00.0"},
	{"nvidia-smi-query/h200-mig-on.txt", 0, NONE, 1, "NVIDIA H200", "9.0", "0000:1b:00.0"},
	{"nvidia-smi-query/h200-real.csv", 0, NONE, 1, "NVIDIA H200", "9.0", "0000:00:06.0"},
	{"nvidia-smi-query/mig-in-container-denied.txt", 0, NONE, 1, "NVIDIA A100-SXM4-80GB", "", ""},
	{"nvidia-smi-query/v100-old-not-supported.txt", 0, NONE, 2, "Tesla V100-SXM2-16GB", "", ""},
	{"nvidia-smi-query/windows-crlf.txt", 0, NONE, 1, "NVIDIA GeForce RTX 4070", "8.9", "0000:01:00.0"},
	{"nvcc-version/cuda-11.8.txt", 0, NONE, 0, NULL, NULL, NULL},
	{"nvcc-version/not-found-bash.txt", 127, REASON_TOOL_MISSING, 0, NULL, NULL, NULL},
	{"nvcc-version/not-found-cmd.txt", 9009, REASON_TOOL_MISSING, 0, NULL, NULL, NULL},
	{"rocminfo/cpu-only-agents.txt", 0, REASON_NO_DEVICE, 0, NULL, NULL, NULL},
	{"rocminfo/kfd-invalid-argument.txt", 1, REASON_NO_PERMISSION, 0, NULL, NULL, NULL},
	{"rocminfo/kfd-permission-denied.txt", 1, REASON_NO_PERMISSION, 0, NULL, NULL, NULL},
	{"rocminfo/mi210-xnack-on.txt", 0, NONE, 1, "AMD Instinct MI210", "gfx90a", "0000:c3:00.0"},
	{"rocminfo/mi300x-x8.txt", 0, NONE, 8, "AMD Instinct MI300X", "gfx942", "0000:05:00.0"},
	{"rocminfo/module-not-loaded-ansi.txt", 1, REASON_DRIVER_MISSING_ON_HOST, 0, NULL, NULL, NULL},
	{"rocminfo/override-env-lie.txt", 0, NONE, 1, "AMD Radeon 780M", "gfx1100", "0000:c5:00.0"},
	{"rocminfo/wsl-rx7900.txt", 0, NONE, 1, "AMD Radeon RX 7900 XTX", "gfx1100", ""},
	{"vulkaninfo-summary/a100-headless.txt", 0, NONE, 1, "NVIDIA A100-SXM4-80GB", NULL, NULL},
	{"vulkaninfo-summary/android-adreno-740.txt", 0, NONE, 1, "Adreno (TM) 740", NULL, NULL},
	{"vulkaninfo-summary/android-emulator-gfxstream.txt", 0, REASON_EMULATOR, 1, NULL, NULL, NULL},
	{"vulkaninfo-summary/android-mali-g715.txt", 0, NONE, 1, "Mali-G715", NULL, NULL},
	{"vulkaninfo-summary/arc-a770-anv-and-llvmpipe.txt", 0, NONE, 2, "Intel(R) Arc(tm) A770 Graphics (DG2)", NULL, NULL},
	{"vulkaninfo-summary/arc-warning-interleaved.txt", 0, NONE, 1, "Intel(R) Arc(tm) A750 Graphics (DG2)", NULL, NULL},
	{"vulkaninfo-summary/enumerate-failed-wsl-dzn.txt", 1, REASON_PROBE_CRASHED, 0, NULL, NULL, NULL},
	{"vulkaninfo-summary/gh200-aarch64.txt", 0, NONE, 1, "NVIDIA GH200 480GB", NULL, NULL},
	{"vulkaninfo-summary/h200-real.txt", 0, NONE, 1, "NVIDIA H200", NULL, NULL},
	{"vulkaninfo-summary/h200.txt", 0, NONE, 1, "NVIDIA H200", NULL, NULL},
	{"vulkaninfo-summary/llvmpipe-only.stderr.txt", 0, REASON_UNKNOWN_TOOL_FORMAT, 0, NULL, NULL, NULL},
	{"vulkaninfo-summary/llvmpipe-only.txt", 0, REASON_SOFTWARE_DEVICE, 1, NULL, NULL, NULL},
	{"vulkaninfo-summary/moltenvk.txt", 0, REASON_WRONG_DEVICE, 1, NULL, NULL, NULL},
	{"vulkaninfo-summary/no-driver.txt", 1, REASON_DRIVER_MISSING_ON_HOST, 0, NULL, NULL, NULL},
	{"vulkaninfo-summary/no-summary-option.txt", 0, REASON_TOOLCHAIN_TOO_OLD, 0, NULL, NULL, NULL},
	{"vulkaninfo-summary/rx7900xtx-radv-igpu-llvmpipe.txt", 0, NONE, 3, "AMD Radeon RX 7900 XTX (RADV NAVI31)", NULL, NULL},
	{"vulkaninfo-summary/swiftshader.txt", 0, REASON_SOFTWARE_DEVICE, 1, NULL, NULL, NULL},
	{"vulkaninfo-summary/windows-crlf.txt", 0, NONE, 1, "NVIDIA GeForce RTX 4070", NULL, NULL},
	{"test-backend-ops/backend-absent-ok.txt", 0, REASON_BACKEND_NOT_PRESENT, 0, NULL, NULL, NULL},
	{"test-backend-ops/cpu-attn-score-qjl.txt", 0, NONE, 0, NULL, NULL, NULL},
	{"test-backend-ops/cuda-one-fail.txt", 1, REASON_OP_MISMATCH, 0, NULL, NULL, NULL},
	{"test-backend-ops/only-cpu-skipped.txt", 0, REASON_BACKEND_NOT_PRESENT, 0, NULL, NULL, NULL},
	{"test-backend-ops/vulkan-all-not-supported.txt", 0, REASON_NO_CASE_EXECUTED, 0, NULL, NULL, NULL},
	{"test-backend-ops/h200-fork-test-backend-ops-attn_score_qjl.log", 0, REASON_NO_CASE_EXECUTED, 0, NULL, NULL, NULL},
	{"test-backend-ops/h200-fork-test-backend-ops-set_rows.log", 0, NONE, 0, NULL, NULL, NULL},
};

static enum tool_kind
kind_of(const char *file)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "/"), file);
	return (enum tool_kind)tool_kind_find(name);
}

static char *
load(const char *file, size_t *len)
{
	char path[512], *text = NULL;

	snprintf(path, sizeof path, "fixtures/probes/%s", file);
	assert_int_equal(plat_read_file(path, TOOL_MAX_BYTES, &text, len, NULL), 0);
	return text;
}

static struct tool_answer *
answer(enum tool_kind k, const char *text, size_t len, int exit)
{
	static struct tool_answer a;

	tool_parse(k, text, len, exit, &a);
	assert_true(strlen(a.detail) < sizeof a.detail);
	return &a;
}

static void
check(const struct row *r, const struct tool_answer *a, const char *how)
{
	if (a->reason != r->reason)
		fail_msg("%s%s: wanted %s, got %s: %s", r->file, how, reason_name(r->reason),
			reason_name(a->reason), a->detail);
	if (r->devices >= 0 && a->count != r->devices)
		fail_msg("%s%s: wanted %d devices, got %d", r->file, how, r->devices, a->count);
	if (a->count == 0)
		return;
	if (r->name != NULL)
		assert_string_equal(a->device[0].name, r->name);
	if (r->arch != NULL)
		assert_string_equal(a->device[0].arch, r->arch);
	if (r->pci != NULL)
		assert_string_equal(a->device[0].pci, r->pci);
}

static void
every_sample_is_concluded_as_its_index_says(void **state)
{
	char *text;
	size_t i, len;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		text = load(rows[i].file, &len);
		check(&rows[i], answer(kind_of(rows[i].file), text, len, rows[i].exit), "");
		free(text);
	}
}

/* The same text as another system would hand it over. */
static size_t
dress(int how, const char *text, size_t len, char *to)
{
	size_t i, n = 0;

	if (how == 0 || how == 3)
		n = (size_t)snprintf(to, 4, "%s", how == 0 ? "\xef\xbb\xbf" : "\xff\xfe");
	for (i = 0; i < len; i++) {
		if (how <= 1 && text[i] == '\n' && (i == 0 || text[i - 1] != '\r'))
			to[n++] = '\r';
		if (how == 4)
			to[n++] = '\0';
		to[n++] = text[i];
		if (how == 2 || how == 3)
			to[n++] = '\0';
		if (how == 5 && text[i] == '\n')
			n += (size_t)snprintf(to + n, 5, "\033[0m");
	}
	return n;
}

static void
windows_and_terminals_change_nothing(void **state)
{
	static const char *const names[] = {" (BOM, CRLF)", " (CRLF)", " (UTF-16LE)", " (UTF-16LE, mark)",
		" (UTF-16BE)", " (ANSI)"};
	char *text, *other;
	size_t i, len, n;
	int how;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		text = load(rows[i].file, &len);
		assert_non_null(other = malloc(len * 6 + 16));
		for (how = 0; how < 6; how++) {
			if ((how == 2 || how == 4) && len < 40)
				continue; /* too short to be known without a mark */
			n = dress(how, text, len, other);
			check(&rows[i], answer(kind_of(rows[i].file), other, n, rows[i].exit), names[how]);
		}
		free(other);
		free(text);
	}
}

static void
slices_belong_to_their_card_and_carry_their_profile(void **state)
{
	size_t len;
	char *text = load("nvidia-smi-L/h200-mig-7x1g18gb.txt", &len);
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_L, text, len, 0);
	int i;

	(void)state;
	assert_string_equal(a->device[0].mig_mode, "enabled");
	for (i = 1; i < 8; i++) {
		assert_int_equal(a->device[i].parent, 0);
		assert_string_equal(a->device[i].mig, "1g.18gb");
		assert_int_equal(strncmp(a->device[i].uuid, "MIG-", 4), 0);
	}
	free(text);
	text = load("nvidia-smi-L/a100-mig-legacy-uuid.txt", &len);
	a = answer(TOOL_NVIDIA_SMI_L, text, len, 0);
	assert_string_equal(a->device[1].uuid, "MIG-GPU-0000a150-1111-2222-3333-44444444a150/1/0");
	free(text);
}

static void
what_is_not_known_is_not_zero(void **state)
{
	size_t len;
	char *text = load("nvidia-smi-query/mig-in-container-denied.txt", &len);
	const struct tool_answer *a = answer(TOOL_NVIDIA_SMI_QUERY, text, len, 0);

	(void)state;
	assert_int_equal(a->device[0].memory_mib, -1);
	assert_int_equal(a->device[0].used_mib, -1);
	assert_int_equal(a->device[0].utilization, -1);
	free(text);
	a = answer(TOOL_NVIDIA_SMI_QUERY, "name, memory.total [MiB]\nNVIDIA GB10, [Not Supported]\n", 54, 0);
	assert_int_equal(a->reason, REASON_NONE);
	assert_int_equal(a->device[0].memory_mib, -1);
}

static void
virtual_profiles_are_told_from_cards(void **state)
{
	static const struct {
		const char *name;
		bool vgpu;
	} names[] = {
		{"GRID A100D-40C", true}, {"NVIDIA A40-48Q", true}, {"NVIDIA L40S-24C", true},
		{"GRID T4-16Q", true}, {"NVIDIA A100-1-5C", true}, {"NVIDIA RTX6000-Ada-48Q", true},
		{"NVIDIA A100-PCIE-40GB", false}, {"NVIDIA A100-SXM4-80GB", false}, {"Tesla T4", false},
		{"NVIDIA GeForce RTX 4090", false}, {"NVIDIA L4", false}, {"NVIDIA H100 NVL", false},
		{"NVIDIA RTX 6000 Ada Generation", false}, {"NVIDIA H20", false}, {"NVIDIA A10G", false},
	};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < str_count(names); i++) {
		snprintf(text, sizeof text, "GPU 0: %s (UUID: GPU-0000a1d0-1111-2222-3333-44444444a1d0)\n",
			names[i].name);
		if (answer(TOOL_NVIDIA_SMI_L, text, strlen(text), 0)->device[0].vgpu != names[i].vgpu)
			fail_msg("%s", names[i].name);
	}
}

static void
chip_that_claims_another_architecture_is_marked(void **state)
{
	size_t len;
	char *text = load("rocminfo/override-env-lie.txt", &len);

	(void)state;
	assert_true(answer(TOOL_ROCMINFO, text, len, 0)->device[0].chip_differs);
	free(text);
	text = load("rocminfo/mi300x-x8.txt", &len);
	assert_false(answer(TOOL_ROCMINFO, text, len, 0)->device[0].chip_differs);
	free(text);
}

static void
software_devices_beside_hardware_are_marked_and_reject_nothing(void **state)
{
	size_t len;
	char *text = load("vulkaninfo-summary/rx7900xtx-radv-igpu-llvmpipe.txt", &len);
	const struct tool_answer *a = answer(TOOL_VULKANINFO, text, len, 0);

	(void)state;
	assert_int_equal(a->device[0].type, TYPE_DISCRETE);
	assert_int_equal(a->device[1].type, TYPE_INTEGRATED);
	assert_false(a->device[0].software || a->device[1].software);
	assert_true(a->device[2].software);
	assert_string_equal(a->device[0].driver_id, "MESA_RADV");
	free(text);
}

static void
rows_of_ops_are_counted_by_result(void **state)
{
	size_t len;
	char *text = load("test-backend-ops/h200-fork-test-backend-ops-set_rows.log", &len);
	const struct tool_answer *a = answer(TOOL_TEST_BACKEND_OPS, text, len, 0);

	(void)state;
	assert_int_equal(a->op_count, 1);
	assert_string_equal(a->op[0].op, "SET_ROWS");
	assert_string_equal(a->op[0].backend, "CUDA0");
	assert_int_equal(a->op[0].ok, 135);
	assert_int_equal(a->op[0].failed, 0);
	assert_true(a->op[0].not_supported > 0);
	free(text);
	text = load("test-backend-ops/cuda-one-fail.txt", &len);
	a = answer(TOOL_TEST_BACKEND_OPS, text, len, 1);
	assert_int_equal(a->op_count, 3);
	assert_int_equal(a->op[0].failed, 1);
	assert_true(a->op[0].worst_nmse > 1.02e-7 && a->op[0].worst_nmse < 1.04e-7);
	assert_int_equal(a->op[1].not_supported, 1);
	assert_int_equal(a->op[2].failed, 1);
	free(text);
}

static void
phones_are_listed_with_their_states(void **state)
{
	static const struct {
		const char *text;
		enum reason reason;
		int count;
	} lists[] = {
		{"List of devices attached\n1A2B device product:p model:Pixel_8 device:d transport_id:1\n\n", NONE, 1},
		{"* daemon not running; starting now at tcp:5037\n* daemon started successfully\n"
		 "List of devices attached\r\n1A2B\tdevice\r\n\r\n", NONE, 1},
		{"List of devices attached\n\n", REASON_NO_DEVICE, 0},
		{"List of devices attached\n1A2B unauthorized usb:1-1 transport_id:1\n", REASON_DEVICE_UNAUTHORIZED, 1},
		{"List of devices attached\n1A2B offline transport_id:1\n", REASON_DEVICE_OFFLINE, 1},
		{"List of devices attached\n1A2B no permissions (user in plugdev group; are your udev rules wrong?); see [x]\n",
		 REASON_NO_PERMISSION, 1},
		{"List of devices attached\n1A2B unauthorized\n3C4D device\n", NONE, 2},
		{"adb: command not found\n", REASON_TOOL_MISSING, 0},
		{"", REASON_UNKNOWN_TOOL_FORMAT, 0},
	};
	const struct tool_answer *a;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(lists); i++) {
		a = answer(TOOL_ADB_DEVICES, lists[i].text, strlen(lists[i].text), 0);
		if (a->reason != lists[i].reason || a->count != lists[i].count)
			fail_msg("row %zu: %s, %d devices", i, reason_name(a->reason), a->count);
	}
}

/* What was cut off may be less than the whole, and is never more. */
static void
no_part_of_a_sample_says_more_than_the_whole(void **state)
{
	const struct tool_answer *a;
	char *text;
	size_t i, n, len, step;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		text = load(rows[i].file, &len);
		step = len / 400 + 1;
		for (n = 0; n < len; n += step) {
			a = answer(kind_of(rows[i].file), text, n, rows[i].exit);
			/* a card whose mode or state is cut off is not known to be busy or lost */
			if (rows[i].reason != REASON_DEVICE_BUSY && rows[i].reason != REASON_DEVICE_FAULT && a->reason == REASON_NONE && (rows[i].reason != NONE || a->count > rows[i].devices) &&
			    rows[i].devices > 0)
				fail_msg("%s cut at %zu: %d devices", rows[i].file, n, a->count);
			if (kind_of(rows[i].file) == TOOL_TEST_BACKEND_OPS && a->reason == REASON_NONE && n + 12 < len)
				fail_msg("%s cut at %zu passes", rows[i].file, n);
		}
		free(text);
	}
}

static void
pci_addresses_have_one_form(void **state)
{
	char out[32];

	(void)state;
	assert_true(tool_pci("00000000:1B:00.0", out));
	assert_string_equal(out, "0000:1b:00.0");
	assert_true(tool_pci("00000009:01:00.0", out));
	assert_string_equal(out, "0009:01:00.0");
	assert_true(tool_pci("3b:00.1", out));
	assert_string_equal(out, "0000:3b:00.1");
	assert_true(tool_pci("00010000:01:00.0", out));
	assert_string_equal(out, "10000:01:00.0");
	assert_false(tool_pci("", out));
	assert_false(tool_pci("unknown id", out));
	assert_false(tool_pci("0000:1b:00", out));
	assert_false(tool_pci("0000:1b:00.9", out));
	assert_false(tool_pci("12:30:45", out));
}

static void
more_devices_than_the_table_prove_nothing(void **state)
{
	static char text[16384];
	size_t used = 0;
	int i;

	(void)state;
	for (i = 0; i < TOOL_MAX_DEVICES + 1; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
			"GPU %d: NVIDIA H200 (UUID: GPU-0000d200-1111-2222-3333-4444444%05d)\n", i, i);
	assert_int_equal(answer(TOOL_NVIDIA_SMI_L, text, used, 0)->reason, REASON_UNKNOWN_TOOL_FORMAT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_is_concluded_as_its_index_says),
		cmocka_unit_test(windows_and_terminals_change_nothing),
		cmocka_unit_test(slices_belong_to_their_card_and_carry_their_profile),
		cmocka_unit_test(what_is_not_known_is_not_zero),
		cmocka_unit_test(virtual_profiles_are_told_from_cards),
		cmocka_unit_test(chip_that_claims_another_architecture_is_marked),
		cmocka_unit_test(software_devices_beside_hardware_are_marked_and_reject_nothing),
		cmocka_unit_test(rows_of_ops_are_counted_by_result),
		cmocka_unit_test(phones_are_listed_with_their_states),
		cmocka_unit_test(no_part_of_a_sample_says_more_than_the_whole),
		cmocka_unit_test(pci_addresses_have_one_form),
		cmocka_unit_test(more_devices_than_the_table_prove_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
