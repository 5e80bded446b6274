/* The synthetic model: the same bytes everywhere, and the rule that its text follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "agent/gguf.h"
#include "agent/synth.h"
#include "common/digest.h"
#include "common/str.h"
#include "tests/unit/repo.h"

#define SUITE_PROMPT "Eliza local backend graph dispatch smoke."

static char folder[REPO_PATH], path[REPO_PATH + 16];
static struct err error;

static int
set_up(void **state)
{
	(void)state;
	repo_folder(folder, sizeof folder);
	snprintf(path, sizeof path, "%s/model.gguf", folder);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	repo_remove(folder);
	return 0;
}

static void
write_model(unsigned head_size, unsigned layers)
{
	struct synth_params p = { head_size, layers, true };

	assert_int_equal(synth_write(path, &p, &error), 0);
}

/* The files that real engines were tried with.  Another digest is another model: say so
 * in the change log, because old reports name these. */
static void
every_machine_writes_the_same_bytes(void **state)
{
	static const struct { unsigned head_size, layers; const char *sha256; } rows[] = {
		{ 64, 2, "e9ea8994bb851cb788be8cce27d336d03d985e0b7fa5ec5a33c042f9559a4dd3" },
		{ 128, 2, "899b4b49258ad4ff14a7ca975de00761ca7c0102c309d32fa98e85a814740751" },
		{ 256, 2, "9df558eec379b76bd80644e16a87b2d29d2a2f8e7f77ed807a270099d288d85d" },
		{ 128, 5, "a17c3b6f5a0cc24f153dc0c23a53c4565183521bc9fd50d1b9a50fbc048cca88" },
	};
	char hex[DIGEST_HEX];

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++) {
		write_model(rows[i].head_size, rows[i].layers);
		assert_int_equal(digest_file(path, hex, NULL, &error), 0);
		assert_string_equal(hex, rows[i].sha256);
	}
}

static void
the_header_says_what_it_is(void **state)
{
	static const unsigned sizes[] = { 64, 128, 256 };
	struct gguf_info m;
	enum reason why;

	(void)state;
	for (size_t i = 0; i < str_count(sizes); i++) {
		write_model(sizes[i], 2);
		assert_int_equal(gguf_read(path, &m, &why, &error), 0);
		assert_string_equal(m.architecture, "llama");
		assert_int_equal(m.version, 3);
		assert_int_equal(m.head_size_k, sizes[i]);
		assert_int_equal(m.head_size_v, sizes[i]);
		assert_int_equal(m.embedding / m.heads, sizes[i]);
		assert_int_equal(m.layers, 2);
		assert_int_equal(m.tensor_count, 21);
		assert_int_equal(m.vocab_size, 259);
		assert_int_equal(m.context, 2048);
		assert_string_equal(m.vocab_model, "llama");
		assert_string_equal(m.quantisation, "F16");
		assert_true(m.synthetic);
		assert_non_null(strstr(m.synthetic_note, "proves nothing"));
		assert_int_equal(m.wanted_bytes, m.file_bytes);
		assert_in_range(m.file_bytes, 2u << 20, 8u << 20);
	}
}

static void
a_file_that_is_there_is_kept_unless_forced(void **state)
{
	struct synth_params p = { 128, 2, false };
	char *text = NULL;
	size_t len;

	(void)state;
	assert_int_equal(plat_write_file(path, "mine", 4, 0600, &error), 0);
	assert_int_equal(synth_write(path, &p, &error), -1);
	assert_int_equal(error.code, ERR_CONFLICT);
	assert_int_equal(plat_read_file(path, 100, &text, &len, &error), 0);
	assert_string_equal(text, "mine");
	free(text);
	p.force = true;
	assert_int_equal(synth_write(path, &p, &error), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	p.force = false;
	assert_int_equal(synth_write(path, &p, &error), -1);
	assert_int_equal(error.code, ERR_CONFLICT);
	assert_int_equal(unlink(path), 0);
}

static void
other_shapes_are_usage_errors(void **state)
{
	static const struct synth_params rows[] = {
		{ 0, 2, true }, { 96, 2, true }, { 512, 2, true }, { 128, 1, true },
		{ 128, SYNTH_LAYERS_MAX + 1, true },
	};

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++) {
		memset(&error, 0, sizeof error);
		assert_int_equal(synth_write(path, &rows[i], &error), -1);
		assert_int_equal(error.code, ERR_USAGE);
		assert_false(plat_exists(path));
	}
}

/* Tried with llama.cpp v0.4.0, which accepts half of the drafts. */
static void
a_pair_for_multi_token_prediction_is_the_same_everywhere(void **state)
{
	static const struct { const char *architecture, *sha256; } rows[] = {
		{ "gemma4", "61b5bd4f82ff79eafb1cc0ed4e38d535eafa6341e3e7a64fe41edd2c5a0fcf98" },
		{ "gemma4-assistant", "786906d74df578ab1ba82052c54502cf6f47cd5a7c39ca389675f79c6c508f8a" },
	};
	char drafter[REPO_PATH + 32], hex[DIGEST_HEX];
	const char *paths[] = { path, drafter };
	struct gguf_info f;
	enum reason why;
	uint64_t bytes;

	(void)state;
	snprintf(drafter, sizeof drafter, "%s/drafter.gguf", folder);
	assert_int_equal(synth_write_mtp(path, drafter, true, &error), 0);
	for (size_t i = 0; i < str_count(rows); i++) {
		assert_int_equal(digest_file(paths[i], hex, &bytes, &error), 0);
		assert_string_equal(hex, rows[i].sha256);
		assert_int_equal(gguf_read(paths[i], &f, &why, &error), 0);
		assert_string_equal(f.architecture, rows[i].architecture);
		assert_true(f.synthetic);
	}
	/* One of them is there: neither is touched. */
	assert_int_equal(unlink(path), 0);
	memset(&error, 0, sizeof error);
	assert_int_equal(synth_write_mtp(path, drafter, false, &error), -1);
	assert_int_equal(error.code, ERR_CONFLICT);
	assert_false(plat_exists(path));
}

static void
a_failed_write_leaves_nothing(void **state)
{
	struct synth_params p = { 128, 2, false };
	char where[REPO_PATH + 32];

	(void)state;
	snprintf(where, sizeof where, "%s/none/m.gguf", folder);
	assert_int_equal(synth_write(where, &p, &error), -1);
	assert_true(error.code != ERR_NONE && error.code != ERR_CONFLICT);
	assert_false(plat_exists(where));
}

/* 16 bits of a small normal number, exactly. */
static double
half_value(const uint8_t *p)
{
	unsigned h = p[0] | (unsigned)p[1] << 8, exponent = h >> 10 & 31;
	double v = 1024 + (h & 1023);

	assert_in_range(exponent, 1, 30);
	for (unsigned i = exponent; i < 25; i++)
		v /= 2;
	for (unsigned i = 25; i < exponent; i++)
		v *= 2;
	return h & 0x8000 ? -v : v;
}

/* The row of <unk> in output.weight, tensor 3, holds nothing but noise. */
static void
noise_is_the_documented_stream(void **state)
{
	struct gguf_info m;
	enum reason why;
	char *bytes = NULL;
	size_t len;

	(void)state;
	write_model(128, 2);
	assert_int_equal(gguf_read(path, &m, &why, &error), 0);
	assert_int_equal(plat_read_file(path, 8 << 20, &bytes, &len, &error), 0);
	for (uint64_t i = 0; i < 512; i++) {
		const size_t at = (size_t)m.data_offset + 259 * 512 * 2 + 512 * 4 + (size_t)i * 2;
		uint64_t z = UINT64_C(0x76657269667931) +
			(UINT64_C(3) << 32 | i) * UINT64_C(0x9E3779B97F4A7C15);

		z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
		z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
		z ^= z >> 31;
		assert_true(half_value((const uint8_t *)bytes + at) ==
			(2 * (double)(z >> 59) - 31) / 8192);
	}
	free(bytes);
}

/* What llama-completion of llama.cpp v0.4.0 printed for every stock cache type, and the
 * eliza fork at 96dd1a8 for tbq3_0, tbq4_0, qjl1_256 and q4_polar. */
static void
the_expected_text_is_what_engines_printed(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(synth_expect(SUITE_PROMPT, 48, text, sizeof text, &error), 0);
	assert_string_equal(text, "z3NEUKp0vW43q9yfVwgyn5nmPd47PzCgLEkvSUV8F8XG5SLA");
	assert_int_equal(synth_expect("Is the cache right?", 16, text, sizeof text, &error), 0);
	assert_string_equal(text, "8M08YciHUZtrpm-n");
}

static void
one_other_token_changes_the_text(void **state)
{
	char text[64], other[64];
	char prompt[] = SUITE_PROMPT;

	(void)state;
	assert_int_equal(synth_expect(prompt, 16, text, sizeof text, &error), 0);
	prompt[sizeof prompt - 2] = '!';
	assert_int_equal(synth_expect(prompt, 16, other, sizeof other, &error), 0);
	assert_string_not_equal(text, other);
}

static void
tokens_have_the_index_of_their_letter_or_byte(void **state)
{
	(void)state;
	assert_int_equal(synth_index('A' + 3), 0);
	assert_int_equal(synth_index('a' + 3), 26);
	assert_int_equal(synth_index('0' + 3), 52);
	assert_int_equal(synth_index('_' + 3), 63);
	assert_int_equal(synth_index(0xE2 + 3), 0xE2 % 64);
	assert_int_equal(synth_index(0 + 3), 0); /* byte 0 is not the end of the alphabet */
	assert_int_equal(synth_index(1), 1);     /* <s> */
}

static void
what_can_not_be_known_is_not_guessed(void **state)
{
	char text[32];

	(void)state;
	memset(&error, 0, sizeof error);
	assert_int_equal(synth_expect("twelve bytes", 4, text, sizeof text, &error), 0);
	assert_int_equal(synth_expect("twelvebytes!", 4, text, sizeof text, &error), -1);
	assert_int_equal(error.code, ERR_UNSUPPORTED);
	assert_int_equal(synth_expect(SUITE_PROMPT, 32, text, sizeof text, &error), -1);
	assert_int_equal(error.code, ERR_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_machine_writes_the_same_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_header_says_what_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_there_is_kept_unless_forced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_shapes_are_usage_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pair_for_multi_token_prediction_is_the_same_everywhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failed_write_leaves_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(noise_is_the_documented_stream, set_up, tear_down),
		cmocka_unit_test(the_expected_text_is_what_engines_printed),
		cmocka_unit_test(one_other_token_changes_the_text),
		cmocka_unit_test(tokens_have_the_index_of_their_letter_or_byte),
		cmocka_unit_test(what_can_not_be_known_is_not_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
