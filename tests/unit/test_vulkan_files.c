#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/vulkan_files.h"
#include "kernels/vulkan_impl.h"

/* Files that the Vulkan backend reads: shaders, and the drivers that break it. */
static const struct kernel_backend *const vk = &backend_vulkan;
static char folder[64];

static void
put(const char *name, const void *data, size_t n)
{
	char path[256];
	struct err e = {0};

	assert_int_equal(str_fmt(path, sizeof path, &e, "%s/%s", folder, name), 0);
	assert_int_equal(plat_write_file(path, data, n, 0644, &e), 0);
}

static int
make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/test-vulkan-XXXXXX");
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int
remove_folder(void **state)
{
	struct err e = {0};

	(void)state;
	unsetenv("VERIFY_SPIRV_DIR");
	unsetenv("VERIFY_VULKAN_VALIDATION");
	return plat_remove_tree(folder, &e);
}

static int
check_copy(const void *data, size_t bytes, struct err *e)
{
	uint32_t *w = malloc(bytes + 4);
	int rc;

	assert_non_null(w);
	memcpy(w, data, bytes);
	memset(e, 0, sizeof *e);
	rc = vulkan_spirv_check(w, bytes, e);
	free(w);
	return rc;
}

static void
every_module_is_whole_and_cut_anywhere_is_refused(void **state)
{
	struct vulkan_spirv s;
	struct err e = {0};
	size_t n;
	int m;

	(void)state;
	for (m = 0; m < VULKAN_MODULE_COUNT; m++) {
		assert_int_equal(vulkan_spirv_load((enum vulkan_module)m, NULL, &s, &e), 0);
		for (n = 0; n < s.bytes; n += n % 4 || s.bytes < 3000 ? 1 : 7) {
			assert_int_equal(check_copy(s.words, n, &e), -1);
			assert_int_equal(e.code, ERR_PARSE);
		}
		assert_int_equal(check_copy(s.words, s.bytes, &e), 0);
		vulkan_spirv_free(&s);
	}
}

static void
bytes_that_are_no_module_are_named(void **state)
{
	static const struct {
		const char *what;
		uint32_t words[6];
		const char *says;
	} rows[] = {
		{"another format", {0x464c457f, 1, 2, 3, 4, 5}, "magic"},
		{"another byte order", {0x03022307, 1, 2, 3, 4, 5}, "byte order"},
		{"a later version", {0x07230203, 0x10600, 0, 9, 0, 0x00010038}, "version"},
		{"no entry", {0x07230203, 0x10300, 0, 9, 0, 0x00010038}, "entry"},
		{"an instruction of no words", {0x07230203, 0x10300, 0, 9, 0, 0}, "truncated"},
		{"one that is too long", {0x07230203, 0x10300, 0, 9, 0, 0xffff0038}, "truncated"},
	};
	static uint32_t large[VULKAN_SPIRV_MAX / 4 + 1];
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		assert_int_equal(check_copy(rows[i].words, sizeof rows[i].words, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
		if (strstr(e.msg, rows[i].says) == NULL)
			fail_msg("%s: \"%s\"", rows[i].what, e.msg);
	}
	large[0] = 0x07230203;
	assert_int_equal(vulkan_spirv_check(large, sizeof large, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

/* All modules as files; the copy one as it is given. */
static void
put_modules(const void *copy, size_t bytes)
{
	struct vulkan_spirv s;
	struct err e = {0};
	char name[64];
	int m;

	for (m = 0; m < VULKAN_MODULE_COUNT; m++) {
		assert_int_equal(vulkan_spirv_load((enum vulkan_module)m, NULL, &s, &e), 0);
		snprintf(name, sizeof name, "%s.spv", s.name);
		if (m == VULKAN_copy && copy != NULL)
			put(name, copy, bytes);
		else
			put(name, s.words, s.bytes);
		vulkan_spirv_free(&s);
	}
}

/* Opening comes as far as the shaders before it looks for a device. */
static void
open_says(enum err_code code, const char *says)
{
	struct backend_device none = {.uuid = "none"};
	struct backend_session *s = NULL;
	struct err e = {0};

	assert_int_equal(vk->open(&none, &s, &e), -1);
	if (e.code != code || strstr(e.msg, says) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", err_name(e.code), e.msg, says);
}

static void
shaders_come_from_the_folder_that_is_named(void **state)
{
	struct backend_device list[BACKEND_DEVICES];
	struct backend_code code[VULKAN_MODULE_COUNT];
	struct backend_session *s = NULL;
	struct err e = {0};
	size_t count;

	(void)state;
	put_modules(NULL, 0);
	setenv("VERIFY_SPIRV_DIR", folder, 1);
	assert_int_equal(vk->list(list, BACKEND_DEVICES, &count, &e), 0);
	if (count == 0) {
		print_message("skipped: %s\n", e.msg);
		skip();
	}
	assert_int_equal(vk->open(&list[0], &s, &e), 0);
	assert_int_equal(vk->code(s, code, VULKAN_MODULE_COUNT), VULKAN_MODULE_COUNT);
	assert_non_null(strstr(code[0].how, "VERIFY_SPIRV_DIR"));
	vk->close(s);
}

static void
bad_shader_files_are_named(void **state)
{
	struct vulkan_spirv s;
	struct err e = {0};
	char path[256];

	(void)state;
	setenv("VERIFY_SPIRV_DIR", "/nonexistent", 1);
	open_says(ERR_NOTFOUND, "/nonexistent/turbo3.spv");
	setenv("VERIFY_SPIRV_DIR", folder, 1);
	assert_int_equal(vulkan_spirv_load(VULKAN_copy, NULL, &s, &e), 0);
	put_modules(s.words, s.bytes - 1);
	open_says(ERR_PARSE, "copy.spv: truncated");
	put_modules(s.words, s.bytes / 2 / 4 * 4);
	open_says(ERR_PARSE, "copy.spv: truncated");
	put_modules("", 0);
	open_says(ERR_PARSE, "copy.spv");
	put_modules("not a shader, but text", 22);
	open_says(ERR_PARSE, "no SPIR-V");
	snprintf(path, sizeof path, "%s/copy.spv", folder);
	assert_int_equal(unlink(path), 0);
	open_says(ERR_NOTFOUND, "copy.spv");
	vulkan_spirv_free(&s);
}

/* ---- drivers -------------------------------------------------------------- */

/* The library that the Makefile puts beside the tests, as a driver file. */
static void
put_broken_driver(char *path, size_t size)
{
	char self[4096], text[4400];
	struct err e = {0};
	char *slash;
	int up;

	assert_int_equal(plat_self(self, sizeof self, &e), 0);
	for (up = 0; up < 2; up++) {
		assert_non_null(slash = strrchr(self, '/'));
		*slash = '\0';
	}
	snprintf(text, sizeof text,
		 "{\"file_format_version\":\"1.0.0\",\"ICD\":{\"library_path\":"
		 "\"%s/fake/broken_icd.so\",\"api_version\":\"1.0.5\"}}", self);
	put("broken_icd.json", text, strlen(text));
	snprintf(path, size, "%s/broken_icd.json", folder);
}

static void
broken_driver_is_named_and_the_others_are_listed(void **state)
{
	struct backend_device list[BACKEND_DEVICES], before[BACKEND_DEVICES];
	struct vulkan_files *files = calloc(1, sizeof *files);
	struct backend_session *s = NULL;
	char broken[256], both[8192];
	struct err e = {0};
	size_t had, count, i, n;

	(void)state;
	assert_non_null(files);
	assert_int_equal(vk->list(before, BACKEND_DEVICES, &had, &e), 0);
	if (had == 0 || before[0].note[0] != '\0') {
		print_message("skipped: no usable Vulkan device here\n");
		free(files);
		skip();
	}
	put_broken_driver(broken, sizeof broken);
	assert_int_equal(vulkan_files_find(files, &e), 0);
	n = (size_t)snprintf(both, sizeof both, "%s", broken);
	for (i = 0; i < files->count && n < sizeof both; i++)
		n += (size_t)snprintf(both + n, sizeof both - n, ":%s", files->paths[i]);
	setenv("VK_DRIVER_FILES", both, 1);
	setenv("VK_ICD_FILENAMES", both, 1);
	assert_int_equal(vk->list(list, BACKEND_DEVICES, &count, &e), 0);
	assert_string_equal(list[0].uuid, before[0].uuid);
	assert_string_equal(list[0].note, "");
	for (i = 0; i < count && !str_eq(list[i].name, "broken_icd.json"); i++)
		;
	if (i == count)
		fail_msg("the broken driver is not in the list of %zu", count);
	assert_non_null(strstr(list[i].note, "VK_ERROR_INITIALIZATION_FAILED"));
	assert_int_equal(vk->open(&list[i], &s, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	/* The one that works is opened all the same, and the environment is as it was. */
	if (vk->open(&list[0], &s, &e))
		fail_msg("%s", e.msg);
	vk->close(s);
	assert_string_equal(getenv("VK_DRIVER_FILES"), both);
	unsetenv("VK_DRIVER_FILES");
	unsetenv("VK_ICD_FILENAMES");
	vulkan_files_free(files);
}

static void
no_driver_is_an_answer_with_a_hint(void **state)
{
	struct backend_device list[BACKEND_DEVICES];
	struct err e = {0};
	size_t count = 9;

	(void)state;
	setenv("VK_DRIVER_FILES", "/nonexistent.json", 1);
	setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
	assert_int_equal(vk->list(list, BACKEND_DEVICES, &count, &e), 0);
	assert_int_equal(count, 0);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_true(strlen(e.msg) > 0);
	unsetenv("VK_DRIVER_FILES");
	unsetenv("VK_ICD_FILENAMES");
}

static void
validation_is_never_silently_off(void **state)
{
	struct backend_device list[BACKEND_DEVICES];
	struct err e = {0};
	char *layers = getenv("VK_LAYER_PATH");
	size_t count;

	(void)state;
	assert_null(layers);
	setenv("VERIFY_VULKAN_VALIDATION", "1", 1);
	/* An empty folder of layers. */
	setenv("VK_LAYER_PATH", folder, 1);
	if (vk->list(list, BACKEND_DEVICES, &count, &e) == 0 && e.code == ERR_NO_DEVICE) {
		unsetenv("VK_LAYER_PATH");
		print_message("skipped: %s\n", e.msg);
		skip();
	}
	unsetenv("VK_LAYER_PATH");
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.msg, "VK_LAYER_KHRONOS_validation"));
}

int
main(void)
{
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_module_is_whole_and_cut_anywhere_is_refused),
		cmocka_unit_test(bytes_that_are_no_module_are_named),
		IN_FOLDER(shaders_come_from_the_folder_that_is_named),
		IN_FOLDER(bad_shader_files_are_named),
		IN_FOLDER(broken_driver_is_named_and_the_others_are_listed),
		IN_FOLDER(no_driver_is_an_answer_with_a_hint),
		IN_FOLDER(validation_is_never_silently_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
