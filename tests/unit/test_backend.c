#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "kernels/backend.h"

#define A "01234567-89ab-cdef-0123-456789abcdef"
#define B "01234567-aaaa-cdef-0123-456789abcdef"

static const struct kernel_backend fake = {.name = "fake", .no_device = "plug one in"};

static const struct backend_device two[] = {
	{.index = 0, .name = "Card", .driver = "one 1.0", .uuid = A},
	{.index = 1, .name = "Card", .driver = "two 2.0", .uuid = B},
};
static const struct backend_device twins[] = {
	{.index = 0, .name = "Card", .driver = "one 1.0", .uuid = A},
	{.index = 1, .name = "Same card", .driver = "two 2.0", .uuid = A},
};
static const struct backend_device mixed[] = {
	{.index = 0, .name = "Old", .note = "has no int8"},
	{.index = 1, .name = "llvmpipe", .software = true, .uuid = A},
	{.index = 2, .name = "Card", .uuid = B},
};
static const struct backend_device shim[] = {
	{.index = 0, .name = "Played", .software = true, .emulated = true},
};

static int
choose(const struct backend_device *list, size_t n, const char *wanted, bool software_ok,
	struct err *e)
{
	size_t index = 99;

	memset(e, 0, sizeof *e);
	return backend_choose(&fake, list, n, wanted, software_ok, &index, e) ? -1 : (int)index;
}

static void
known_backends_are_found_by_name(void **state)
{
	size_t i;

	(void)state;
	assert_ptr_equal(backend_find("cpu"), &backend_cpu);
	for (i = 0; kernel_backends[i] != NULL; i++)
		assert_ptr_equal(backend_find(kernel_backends[i]->name), kernel_backends[i]);
	assert_null(backend_find("emulated"));
	assert_null(backend_find("metal"));
	assert_null(backend_find(""));
}

static void
index_uuid_and_prefix_choose(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(two, 2, NULL, false, &e), 0);
	assert_int_equal(choose(two, 2, "0", false, &e), 0);
	assert_int_equal(choose(two, 2, "1", false, &e), 1);
	assert_int_equal(choose(two, 2, A, false, &e), 0);
	assert_int_equal(choose(two, 2, B, false, &e), 1);
	assert_int_equal(choose(two, 2, "01234567-89", false, &e), 0);
	assert_int_equal(choose(two, 2, "01234567aaaa", false, &e), 1);
	assert_int_equal(choose(two, 2, "01234567-AA", false, &e), 1);
	assert_int_equal(choose(two, 2, "GPU-" B, false, &e), 1);
	assert_int_equal(choose(two, 2, "gpu-01234567-AAAA", false, &e), 1);
}

static void
wrong_choice_is_usage_with_a_hint(void **state)
{
	static const char *const wrong[] = {"2", "7", "-1", "", "x", "0x1", "1234567", "GPU-",
		"0123456", "01234568", A "0", "GPU-GPU-01234567", "4294967296", "Card"};
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(wrong); i++) {
		if (choose(two, 2, wrong[i], true, &e) != -1)
			fail_msg("\"%s\" chooses", wrong[i]);
		assert_int_equal(e.code, ERR_USAGE);
		assert_true(e.hint[0] != '\0');
	}
}

static void
short_prefix_of_two_is_ambiguous_and_both_are_named(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(two, 2, "01234567", false, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.msg, "one 1.0"));
	assert_non_null(strstr(e.msg, "two 2.0"));
	assert_non_null(strstr(e.hint, "--device 0 or --device 1"));
}

static void
two_drivers_for_one_card_are_told_apart_by_index(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(twins, 2, A, false, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.msg, "one UUID"));
	assert_non_null(strstr(e.msg, "device 0 (Card, one 1.0)"));
	assert_non_null(strstr(e.msg, "device 1 (Same card, two 2.0)"));
	assert_non_null(strstr(e.hint, "--device 0 or --device 1"));
	assert_int_equal(choose(twins, 2, "1", false, &e), 1);
}

static void
first_usable_device_that_is_no_software_is_the_default(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(mixed, 3, NULL, false, &e), 2);
	assert_int_equal(choose(mixed, 3, NULL, true, &e), 1);
	assert_int_equal(choose(mixed, 3, "1", true, &e), 1);
}

static void
software_is_refused_unless_it_is_allowed(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(mixed, 2, NULL, false, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_int_equal(err_exit(e.code), EXIT_BLOCKED);
	assert_non_null(strstr(e.msg, "llvmpipe"));
	assert_non_null(strstr(e.hint, "--software"));
	assert_int_equal(choose(mixed, 3, "1", false, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_int_equal(choose(mixed, 3, A, false, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	/* Emulation is asked for by name. */
	assert_int_equal(choose(shim, 1, NULL, false, &e), 0);
	assert_int_equal(choose(shim, 1, "0", false, &e), 0);
}

static void
device_that_can_not_be_used_says_why(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(choose(mixed, 3, "0", false, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_non_null(strstr(e.msg, "has no int8"));
	assert_int_equal(choose(mixed, 1, NULL, true, &e), -1);
	assert_int_equal(e.code, ERR_NO_DEVICE);
	assert_non_null(strstr(e.msg, "has no int8"));
}

static void
no_device_is_exit_3_whatever_was_wanted(void **state)
{
	static const char *const wanted[] = {NULL, "0", A, "nonsense"};
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(wanted); i++) {
		assert_int_equal(choose(two, 0, wanted[i], true, &e), -1);
		assert_int_equal(e.code, ERR_NO_DEVICE);
		assert_string_equal(e.hint, "plug one in");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_backends_are_found_by_name),
		cmocka_unit_test(index_uuid_and_prefix_choose),
		cmocka_unit_test(wrong_choice_is_usage_with_a_hint),
		cmocka_unit_test(short_prefix_of_two_is_ambiguous_and_both_are_named),
		cmocka_unit_test(two_drivers_for_one_card_are_told_apart_by_index),
		cmocka_unit_test(first_usable_device_that_is_no_software_is_the_default),
		cmocka_unit_test(software_is_refused_unless_it_is_allowed),
		cmocka_unit_test(device_that_can_not_be_used_says_why),
		cmocka_unit_test(no_device_is_exit_3_whatever_was_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
