#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mask.h"
#include "common/str.h"

static struct mask *
fresh(const char *name, const char *address)
{
	struct mask *m;
	struct err e = {0};

	if (mask_new(&m, &e) || (name != NULL && mask_name(m, name, &e)) ||
	    (address != NULL && mask_address(m, address, &e)))
		fail_msg("%s", e.msg);
	return m;
}

static void
learn(struct mask *m, const char *text)
{
	struct err e = {0};

	if (mask_learn(m, text, strlen(text), &e))
		fail_msg("%s", e.msg);
}

static char *
masked(struct mask *m, const char *text)
{
	struct err e = {0};
	char *out;
	size_t n;

	if (mask_apply(m, text, strlen(text), &out, &n, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(n, strlen(out));
	return out;
}

/* What must be gone from a text, and that nothing else of it changed its form. */
static const struct row {
	const char *text, *gone;
	bool same_length;
} rows[] = {
	{"GPU 0: NVIDIA H200 (UUID: GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544)", "b1c2d3e4-1f2e-3d4c-5b6a-798877665544", true},
	{"  MIG 1g.18gb Device 0: (UUID: MIG-b1c2d3e4-1f2e-3d4c-5b6a-798877665544)", "798877665544", true},
	{"MIG-GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544/1/0", "b1c2d3e4", true},
	{"\"uuid\": \"b1c2d3e41f2e3d4c5b6a798877665544\"", "b1c2d3e41f2e3d4c5b6a798877665544", true},
	{"deviceUUID = B1C2D3E4-1F2E-3D4C-5B6A-798877665544", "B1C2D3E4", true},
	{"  Uuid:                    GPU-3b1c8c8c5f2d4e10", "3b1c8c8c5f2d4e10", true},
	{"unique_id 4259433882105761296\n", "4259433882105761296", true},
	{"Unique ID: 0x3b1c8c8c5f2d4e10", "3b1c8c8c5f2d4e10", true},
	{"Serial Number                 : 1654922001234", "1654922001234", true},
	{"\"serial\": \"PCB7X4421\"", "PCB7X4421", true},
	{"[ro.serialno]: [R58M12ABCDE]", "R58M12ABCDE", true},
	{"List of devices attached\nR58M12ABCDE            device usb:1-2 transport_id:4\n", "R58M12ABCDE", true},
	{"List of devices attached\nadb-R58M12ABCDE-x1Y2z3._adb-tls-connect._tcp device\n", "R58M12ABCDE", true},
	{"List of devices attached\n192.168.7.21:5555 device\n", "192.168.7.21", false},
	{"error: /home/marlene/.config is not there", "marlene", true},
	{"C:\\Users\\marlene\\x", "marlene", true},
	{"peer 10.1.2.3/24 answers", "10.1.2.3", false},
	{"link 3c:ec:ef:12:34:56 up", "3c:ec:ef:12:34:56", true},
	{"from fe80::3eec:efff:fe12:3456 to all", "fe80::3eec:efff:fe12:3456", false},
	{"the kernel of rig-07.lab.example said no", "rig-07", true},
};

static void
no_id_is_left_in_any_form(void **state)
{
	struct mask *m;
	char *out;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		m = fresh("rig-07.lab.example", NULL);
		learn(m, rows[i].text);
		out = masked(m, rows[i].text);
		if (strstr(out, rows[i].gone) != NULL || mask_left(m, out, strlen(out)) || strcmp(out, rows[i].text) == 0)
			fail_msg("\"%s\" became \"%s\"", rows[i].text, out);
		if (rows[i].same_length && strlen(out) != strlen(rows[i].text))
			fail_msg("\"%s\" became \"%s\" of another length", rows[i].text, out);
		if (!mask_left(m, rows[i].text, strlen(rows[i].text)))
			fail_msg("\"%s\": the text itself should be seen to have an id", rows[i].text);
		free(out);
		mask_free(m);
	}
}

static void
what_is_no_id_stays(void **state)
{
	static const char *const texts[] = {
		"conformanceVersion = 1.4.1.3", "driverVersion      = 580.159.4.256", "  \"api\": \"1.3.2.1\"",
		"deviceUUID = 00000000-0000-0000-0000-000000000000", "Uuid: GPU-XX", "Uuid: CPU-XX", "pci 0000:3c:ec.0",
		"0, NVIDIA H200, 00000000:1B:00.0, 580.65.06, 9.0", "Max Wait: 18446744073709551615 (0xFFFFFFFFFFFFFFFF)",
		"List of devices attached\nemulator-5554 device product:sdk\n", "listens on 127.0.0.1:5037", "unique_id 0",
		"GPU-", "Serial Number : N/A", "Built on Wed_Aug_20_01:58:59_PM_PDT_2025", "std::abs a::b",
		"Build cuda_13.0.r13.0/compiler.36424714_0", "HIP version: 6.2.41133-dd7f95766",
	};
	struct mask *m = fresh("root", "127.0.0.1");
	char *out;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(texts); i++) {
		learn(m, texts[i]);
		out = masked(m, texts[i]);
		assert_string_equal(texts[i], out);
		free(out);
	}
	assert_int_equal(0, mask_count(m));
	mask_free(m);
}

static void
one_id_is_one_made_up_id_in_every_text_and_form(void **state)
{
	struct mask *m = fresh(NULL, NULL);
	char *a, *b, *c, *d;
	size_t i, k;

	(void)state;
	learn(m, "GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544");
	learn(m, "unique_id 4259433882105761296");
	a = masked(m, "GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544");
	b = masked(m, "B1C2D3E41F2E3D4C5B6A798877665544");
	for (i = 4, k = 0; a[i] != '\0'; i++)
		if (a[i] != '-')
			assert_int_equal(a[i], b[k++]); /* digits only: no case */
	assert_int_equal(32, k);
	c = masked(m, "CUDA_VISIBLE_DEVICES=GPU-b1c2d3e4");
	assert_memory_equal(a, c + strlen("CUDA_VISIBLE_DEVICES="), 12);
	free(c);
	c = masked(m, "GPU-3b1c8c8c5f2d4e10");
	d = masked(m, "unique_id 4259433882105761296");
	assert_true(strtoull(c + 4, NULL, 16) == strtoull(d + 10, NULL, 10));
	assert_int_equal(2, mask_count(m));
	free(a), free(b), free(c), free(d);
	mask_free(m);
}

static void
two_ids_are_two_even_when_one_looks_made_up(void **state)
{
	struct mask *m = fresh(NULL, NULL);
	char *first = masked(m, "GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544"), *a, *b;

	(void)state;
	mask_free(m);
	/* the made-up one of before is now a real one, and learned before anything is made up */
	m = fresh(NULL, NULL);
	learn(m, "GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544");
	learn(m, first);
	a = masked(m, "GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544");
	b = masked(m, first);
	assert_string_not_equal(a, b);
	assert_string_not_equal(a, first);
	assert_string_not_equal(b, first);
	free(a), free(b), free(first);
	mask_free(m);
}

/* Random ids, in random forms between random bytes: none is left, and the text around them
 * is as it was. */
static void
no_random_id_survives_and_nothing_else_changes(void **state)
{
	unsigned seed = 7, round, i, n;
	char hex[40], text[200], digits[] = "0123456789abcdef";
	struct mask *m;
	char *out;

	(void)state;
	for (round = 0; round < 2000; round++) {
		for (i = n = 0; i < 32; i++) {
			seed = seed * 1103515245 + 12345;
			if (round % 2 == 0 && (i == 8 || i == 12 || i == 16 || i == 20))
				hex[n++] = '-';
			hex[n++] = digits[seed >> 16 & 15];
		}
		hex[n] = '\0';
		snprintf(text, sizeof text, "%s=%s%s, 580.159.04 at 0000:1b:00.0\r\n", round % 3 ? "uuid" : "x y",
			round % 5 ? "GPU-" : "", hex);
		m = fresh(NULL, NULL);
		learn(m, text);
		out = masked(m, text);
		assert_null(strstr(out, hex));
		assert_int_equal(strlen(text), strlen(out));
		assert_non_null(strstr(out, ", 580.159.04 at 0000:1b:00.0\r\n"));
		assert_int_equal(1, mask_count(m));
		free(out);
		mask_free(m);
	}
}

static void
a_text_may_end_anywhere(void **state)
{
	static const char whole[] = "List of devices attached\nR58M12 device\nSerial Number: X1234\nfe80::1:2 /home/ab "
		"GPU-b1c2d3e4-1f2e-3d4c-5b6a-798877665544 unique_id 4259433882105761296 0x3b1c8c8c5f2d4e10 3c:ec:ef:12:34:56 10.1.2.3";
	struct err e = {0};
	struct mask *m;
	char *copy, *out;
	size_t n, k;

	(void)state;
	for (n = 0; n < sizeof whole; n++) {
		/* in a block of just that size: a sanitizer sees what is read behind it */
		copy = malloc(n ? n : 1);
		memcpy(copy, whole, n);
		m = fresh(NULL, NULL);
		if (mask_learn(m, copy, n, &e) || mask_apply(m, copy, n, &out, &k, &e))
			fail_msg("%s", e.msg);
		assert_false(mask_left(m, out, k));
		free(out);
		free(copy);
		mask_free(m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_id_is_left_in_any_form),
		cmocka_unit_test(what_is_no_id_stays),
		cmocka_unit_test(one_id_is_one_made_up_id_in_every_text_and_form),
		cmocka_unit_test(two_ids_are_two_even_when_one_looks_made_up),
		cmocka_unit_test(no_random_id_survives_and_nothing_else_changes),
		cmocka_unit_test(a_text_may_end_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
