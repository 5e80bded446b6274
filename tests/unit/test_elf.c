#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/elf.h"
#include "common/plat.h"
#include "tests/unit/repo.h"

#define IMAGE 0x400

/* A small shared object written by hand from the specification: one PT_LOAD over the
 * whole file at 0x10000, PT_DYNAMIC at 0x100, PT_NOTE at 0x200, PT_INTERP at 0x300, the
 * string table at 0x280. */
struct image {
	uint8_t b[IMAGE];
};

static void
put(uint8_t *p, uint64_t v, int n)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void
segment(struct image *m, int i, uint32_t type, uint64_t off, uint64_t size)
{
	uint8_t *p = m->b + 64 + 56 * i;

	put(p, type, 4);
	put(p + 8, off, 8);
	put(p + 16, 0x10000 + off, 8);
	put(p + 32, size, 8);
	put(p + 40, size, 8);
}

static void
dynamic(struct image *m, int i, uint64_t tag, uint64_t value)
{
	put(m->b + 0x140 + 16 * i, tag, 8);
	put(m->b + 0x140 + 16 * i + 8, value, 8);
}

static void
image_make(struct image *m)
{
	static const char strings[] = "\0libm.so.6\0libc.so.6\0liball.so\0$ORIGIN";

	memset(m, 0, sizeof *m);
	memcpy(m->b, "\177ELF\2\1\1", 7);
	put(m->b + 16, 3, 2);   /* ET_DYN */
	put(m->b + 18, 183, 2); /* aarch64 */
	put(m->b + 32, 64, 8);  /* e_phoff */
	put(m->b + 54, 56, 2);
	put(m->b + 56, 4, 2);
	segment(m, 0, 1, 0, IMAGE);
	segment(m, 1, 2, 0x140, 16 * 7);
	segment(m, 2, 4, 0x200, 12 + 4 + 20);
	segment(m, 3, 3, 0x300, 14);
	dynamic(m, 0, 1, 1);
	dynamic(m, 1, 1, 11);
	dynamic(m, 2, 14, 21);
	dynamic(m, 3, 29, 31);
	dynamic(m, 4, 5, 0x10000 + 0x280);
	dynamic(m, 5, 10, sizeof strings);
	put(m->b + 0x200, 4, 4);
	put(m->b + 0x204, 20, 4);
	put(m->b + 0x208, 3, 4);
	memcpy(m->b + 0x20c, "GNU\0\xde\xad\xbe\xef", 8);
	memcpy(m->b + 0x280, strings, sizeof strings);
	memcpy(m->b + 0x300, "/lib/ld-x.so.1", 14);
}

static void
image_is_read_whole(void **state)
{
	struct image m;
	struct elf f;
	struct err e = {0};

	(void)state;
	image_make(&m);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1); /* interp: no NUL */
	segment(&m, 3, 3, 0x300, 15);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), 0);
	assert_int_equal(f.bits, 64);
	assert_int_equal(f.machine, 183);
	assert_int_equal(f.type, ELF_DYN);
	assert_int_equal(f.needed_count, 2);
	assert_string_equal(f.needed[0], "libm.so.6");
	assert_string_equal(f.needed[1], "libc.so.6");
	assert_string_equal(f.soname, "liball.so");
	assert_string_equal(f.runpath, "$ORIGIN");
	assert_string_equal(f.interp, "/lib/ld-x.so.1");
	assert_string_equal(f.build_id, "deadbeef00000000000000000000000000000000");
}

static void
this_program_is_for_this_machine(void **state)
{
	char self[4096];
	struct elf f;
	struct err e = {0};
	int i;
	bool libc = false;

	(void)state;
	assert_int_equal(plat_self(self, sizeof self, &e), 0);
	assert_int_equal(elf_read(self, &f, &e), 0);
#if defined(__x86_64__)
	assert_int_equal(f.machine, 62);
#elif defined(__aarch64__)
	assert_int_equal(f.machine, 183);
#endif
	assert_int_equal(f.bits, 64);
	for (i = 0; i < f.needed_count; i++)
		libc = libc || strstr(f.needed[i], "libc.") != NULL;
	assert_true(libc);
}

/* Cut at every byte: an answer or an error, never a read outside (the sanitizers see). */
static void
cut_image_never_reads_outside(void **state)
{
	struct image m;
	struct elf f;
	struct err e;
	uint8_t *part;
	size_t n;
	int bad = 0;

	(void)state;
	image_make(&m);
	segment(&m, 3, 3, 0x300, 15);
	for (n = 0; n < sizeof m.b; n++) {
		assert_non_null(part = malloc(n + 1));
		memcpy(part, m.b, n);
		part = realloc(part, n ? n : 1);
		assert_non_null(part);
		bad += elf_parse(part, n, &f, &e) != 0;
		free(part);
	}
	assert_int_equal(bad, (int)sizeof m.b);
}

static void
parts_outside_the_file_are_errors(void **state)
{
	struct image m;
	struct elf f;
	struct err e = {0};

	(void)state;
	image_make(&m);
	segment(&m, 3, 3, 0x300, 15);
	put(m.b + 32, UINT64_MAX - 8, 8);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	put(m.b + 32, 64, 8);
	dynamic(&m, 5, 10, UINT64_MAX);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1);
	dynamic(&m, 5, 10, 40);
	dynamic(&m, 0, 1, UINT64_MAX);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1);
	dynamic(&m, 0, 1, 1);
	segment(&m, 1, 2, UINT64_MAX - 4, 64);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1);
}

static void
other_files_are_not_elf(void **state)
{
	struct image m;
	struct elf f;
	struct err e = {0};

	(void)state;
	assert_int_equal(elf_parse("#!/bin/sh\necho this is a script and not a program\n", 49,
		&f, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	image_make(&m);
	m.b[5] = 2; /* big-endian */
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), -1);
	assert_int_equal(elf_read("/", &f, &e), -1);
	assert_int_equal(elf_read("/does/not/exist", &f, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
machine_of_a_32_bit_file_is_read(void **state)
{
	struct image m;
	struct elf f;
	struct err e = {0};

	(void)state;
	image_make(&m);
	m.b[4] = 1;
	put(m.b + 18, 40, 2);
	assert_int_equal(elf_parse(m.b, sizeof m.b, &f, &e), 0);
	assert_int_equal(f.bits, 32);
	assert_int_equal(f.machine, 40);
}

static void
machines_have_names(void **state)
{
	char name[32];

	(void)state;
	elf_machine_name(62, name, sizeof name);
	assert_string_equal(name, "x86-64");
	elf_machine_name(4711, name, sizeof name);
	assert_string_equal(name, "machine 4711");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_is_read_whole),
		cmocka_unit_test(this_program_is_for_this_machine),
		cmocka_unit_test(cut_image_never_reads_outside),
		cmocka_unit_test(parts_outside_the_file_are_errors),
		cmocka_unit_test(other_files_are_not_elf),
		cmocka_unit_test(machine_of_a_32_bit_file_is_read),
		cmocka_unit_test(machines_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
