/* Headers of model files, whole, damaged and hostile; built here byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "agent/gguf.h"
#include "common/str.h"
#include "tests/unit/gguf_make.h"

static struct gguf_info info;
static struct err error;

static enum reason
parse(const struct file *f)
{
	enum reason why = REASON_COUNT;
	uint8_t *exact = malloc(f->n > 0 ? f->n : 1); /* so that the end is seen */
	int rc;

	assert_non_null(exact);
	memcpy(exact, f->b, f->n);
	memset(&error, 0, sizeof error);
	rc = gguf_parse(exact, f->n, f->n, &info, &why, &error);
	free(exact);
	assert_int_equal(rc, why == REASON_NONE ? 0 : -1);
	if (rc)
		assert_true(error.msg[0] != '\0' && error.hint[0] != '\0');
	return why;
}

static void
a_whole_model_is_read(void **state)
{
	struct file f;

	(void)state;
	small_model(&f, 3);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.version, 3);
	assert_string_equal(info.architecture, "llama");
	assert_string_equal(info.name, "a small one");
	assert_int_equal(info.tensor_count, 2);
	assert_int_equal(info.kv_count, 10);
	assert_int_equal(info.layers, 2);
	assert_int_equal(info.embedding, 256);
	assert_int_equal(info.heads, 4);
	assert_int_equal(info.heads_kv, 2);
	assert_int_equal(info.context, 4096);
	assert_int_equal(info.vocab_size, 3);
	assert_string_equal(info.vocab_model, "gpt2");
	assert_int_equal(info.file_bytes, f.n);
	assert_int_equal(info.wanted_bytes, f.n);
	assert_int_equal(info.data_offset, f.n - 1536 - 816);
	assert_false(info.synthetic);
	assert_string_equal(info.synthetic_note, "");
}

static void
version_2_is_read_too(void **state)
{
	struct file f;

	(void)state;
	small_model(&f, 2);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.version, 2);
}

static void
head_size_is_embedding_over_heads_unless_said(void **state)
{
	struct file f;

	(void)state;
	small_model(&f, 3);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.head_size_k, 64);
	assert_int_equal(info.head_size_v, 64);
	begin(&f, 3, 0, 5);
	key_text(&f, "general.architecture", "gemma4");
	key_u32(&f, "gemma4.embedding_length", 2560);
	key_u32(&f, "gemma4.attention.head_count", 8);
	key_u32(&f, "gemma4.attention.key_length", 512);
	key_u32(&f, "gemma4.attention.key_length_swa", 256);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.head_size_k, 512);
	assert_int_equal(info.head_size_k_swa, 256);
	assert_int_equal(info.head_size_v, 320);
	assert_int_equal(info.heads_kv, 8);
}

static void
of_heads_per_layer_the_largest_counts(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 0, 2);
	key_text(&f, "general.architecture", "x");
	key(&f, "x.attention.head_count_kv", ARR);
	put(&f, I32, 4);
	put(&f, 3, 8);
	put(&f, 2, 4);
	put(&f, 8, 4);
	put(&f, 4, 4);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.heads_kv, 8);
}

static void
the_architecture_may_come_last(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 0, 3);
	key_u32(&f, "gemma.block_count", 7);
	key_u32(&f, "llama.block_count", 9);
	key_text(&f, "general.architecture", "llama");
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.layers, 9);
}

static void
quantisation_is_the_file_type_or_the_commonest_type(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 3, 1);
	key_text(&f, "general.architecture", "x");
	tensor(&f, "a", 32, 9, 0, 0);
	tensor(&f, "b", 256, 2, 12, 1152);
	tensor(&f, "c", 32, 9, 1, 1440);
	data(&f, 1440 + 576, 32);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_string_equal(info.quantisation, "q4_K");
	begin(&f, 3, 0, 2);
	key_text(&f, "general.architecture", "x");
	key_u32(&f, "general.file_type", 15);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_string_equal(info.quantisation, "Q4_K_M");
	begin(&f, 3, 0, 2);
	key_text(&f, "general.architecture", "x");
	key_u32(&f, "general.file_type", 4000000000);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_string_equal(info.quantisation, "");
}

static void
synthetic_models_say_so(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 0, 3);
	key_text(&f, "general.architecture", "x");
	key(&f, "general.synthetic", BOOL);
	put(&f, 1, 1);
	key_text(&f, "general.description", "made\nup");
	assert_int_equal(parse(&f), REASON_NONE);
	assert_true(info.synthetic);
	assert_string_equal(info.synthetic_note, "made?up");
}

static void
every_cut_of_a_file_is_model_truncated(void **state)
{
	struct file f, cut;

	(void)state;
	small_model(&f, 3);
	for (size_t n = 0; n < f.n; n++) {
		memcpy(cut.b, f.b, n);
		cut.n = n;
		if (parse(&cut) != REASON_MODEL_TRUNCATED)
			fail_msg("cut at %zu of %zu: %s", n, f.n, error.msg);
	}
}

static void
other_files_are_model_not_gguf(void **state)
{
	static const char *const texts[] = {
		"GGML....", ("\x7f" "ELF"), "PK\3\4", "version https://git-lfs",
		"GGUE\3\0\0\0", "G\nUF",
	};
	struct file f;

	(void)state;
	for (size_t i = 0; i < str_count(texts); i++) {
		f.n = strlen(texts[i]);
		memcpy(f.b, texts[i], f.n);
		assert_int_equal(parse(&f), REASON_MODEL_NOT_GGUF);
	}
	f.n = 2;
	memcpy(f.b, "GX", 2);
	assert_int_equal(parse(&f), REASON_MODEL_NOT_GGUF);
}

static void
a_git_lfs_pointer_is_hinted_at(void **state)
{
	struct file f = { .n = 0 };

	(void)state;
	memcpy(f.b, "version https://git-lfs.github.com/spec/v1", 42);
	f.n = 42;
	assert_int_equal(parse(&f), REASON_MODEL_NOT_GGUF);
	assert_non_null(strstr(error.hint, "git lfs pull"));
}

static void
other_versions_and_byte_orders_are_refused_in_words(void **state)
{
	static const struct { uint32_t version; const char *word; } rows[] = {
		{ 0, "version 0" }, { 1, "version 1" }, { 4, "version 4" },
		{ 0x03000000, "big-endian" }, { 0x02000000, "big-endian" },
	};
	struct file f;

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++) {
		begin(&f, rows[i].version, 0, 1);
		key_text(&f, "general.architecture", "x");
		assert_int_equal(parse(&f), REASON_MODEL_NOT_GGUF);
		assert_non_null(strstr(error.msg, rows[i].word));
	}
}

/* Each breaks one rule of a file that is otherwise fine and long enough. */
static void break_tensors(struct file *f) { begin(f, 3, GGUF_MAX_TENSORS + 1, 1); }
static void break_keys(struct file *f) { begin(f, 3, 0, GGUF_MAX_KV + 1); }
static void break_sign(struct file *f) { begin(f, 3, UINT64_MAX, 1); }

static void
break_key_length(struct file *f)
{
	begin(f, 3, 0, 1);
	put(f, GGUF_MAX_KEY + 1, 8);
}

static void
break_key_overflow(struct file *f)
{
	begin(f, 3, 0, 1);
	put(f, UINT64_MAX - 7, 8);
}

static void
break_key_empty(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key_text(f, "", "y");
}

static void
break_key_nul(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	put(f, 3, 8);
	put(f, 0x620061, 3);
	put(f, U8, 4);
	put(f, 0, 1);
}

static void
break_key_twice(struct file *f)
{
	begin(f, 3, 0, 3);
	key_text(f, "general.architecture", "x");
	key_u32(f, "a", 1);
	key_u32(f, "a", 2);
}

static void
break_value_type(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "a", 13);
	put(f, 0, 8);
}

static void
break_string_length(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "a", STR);
	put(f, GGUF_MAX_STRING + 1, 8);
}

static void
break_array_length(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "a", ARR);
	put(f, F64, 4);
	put(f, UINT64_MAX / 8 + 2, 8);
}

static void
break_array_type(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "a", ARR);
	put(f, 99, 4);
	put(f, 0, 8);
}

static void
break_depth(struct file *f)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "a", ARR);
	for (int i = 0; i < GGUF_MAX_DEPTH; i++) {
		put(f, ARR, 4);
		put(f, 1, 8);
	}
	put(f, U8, 4);
	put(f, 1, 8);
	put(f, 1, 1);
}

static void
break_no_architecture(struct file *f)
{
	begin(f, 3, 0, 1);
	key_text(f, "general.name", "x");
}

static void
break_architecture_kind(struct file *f)
{
	begin(f, 3, 0, 1);
	key_u32(f, "general.architecture", 7);
}

static void
hyper(struct file *f, unsigned type, uint64_t value, unsigned bytes)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key(f, "x.block_count", type);
	put(f, value, bytes);
}

static void break_negative(struct file *f) { hyper(f, I32, 0xFFFFFFFB, 4); }
static void break_small_negative(struct file *f) { hyper(f, I8, 0x80, 1); }
static void break_large(struct file *f) { hyper(f, U64, UINT64_MAX, 8); }
static void break_float(struct file *f) { hyper(f, F32, 0x3F800000, 4); }
static void break_text_number(struct file *f) { hyper(f, STR, 0, 8); }

static void
alignment(struct file *f, uint32_t value)
{
	begin(f, 3, 0, 2);
	key_text(f, "general.architecture", "x");
	key_u32(f, "general.alignment", value);
}

static void break_alignment_0(struct file *f) { alignment(f, 0); }
static void break_alignment_odd(struct file *f) { alignment(f, 48); }
static void break_alignment_large(struct file *f) { alignment(f, GGUF_MAX_ALIGNMENT * 2); }

static void
one_tensor(struct file *f, const char *name, uint64_t columns, uint64_t rows,
	uint32_t type, uint64_t offset)
{
	begin(f, 3, 1, 1);
	key_text(f, "general.architecture", "x");
	tensor(f, name, columns, rows, type, offset);
	data(f, 4096, 32);
}

static void break_offset(struct file *f) { one_tensor(f, "a", 32, 1, 0, 16); }
static void break_far_offset(struct file *f) { one_tensor(f, "a", 32, 1, 0, UINT64_MAX - 31); }
static void break_block(struct file *f) { one_tensor(f, "a", 48, 1, 8, 0); }
static void break_super_block(struct file *f) { one_tensor(f, "a", 128, 1, 12, 0); }
static void break_elements(struct file *f) { one_tensor(f, "a", 1u << 31, UINT64_C(1) << 33, 0, 0); }
static void break_bytes(struct file *f) { one_tensor(f, "a", 1u << 31, 1u << 31, 28, 0); }

static void
break_name(struct file *f)
{
	char name[GGUF_MAX_NAME + 2];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	one_tensor(f, name, 32, 1, 0, 0);
}

static void
break_dims(struct file *f)
{
	begin(f, 3, 1, 1);
	key_text(f, "general.architecture", "x");
	put_text(f, "a");
	put(f, 5, 4);
	for (int i = 0; i < 5; i++)
		put(f, 1, 8);
	put(f, 0, 4);
	put(f, 0, 8);
}

static void
break_tensor_twice(struct file *f)
{
	begin(f, 3, 2, 1);
	key_text(f, "general.architecture", "x");
	tensor(f, "a", 32, 1, 0, 0);
	tensor(f, "a", 32, 1, 0, 128);
	data(f, 4096, 32);
}

static void
every_broken_rule_is_model_malformed(void **state)
{
	static const struct { const char *rule; void (*make)(struct file *); } rows[] = {
		{ "tensors", break_tensors }, { "keys", break_keys }, { "sign", break_sign },
		{ "key length", break_key_length }, { "key overflow", break_key_overflow },
		{ "empty key", break_key_empty }, { "NUL in a key", break_key_nul },
		{ "key twice", break_key_twice }, { "value type", break_value_type },
		{ "string", break_string_length }, { "array", break_array_length },
		{ "array type", break_array_type }, { "depth", break_depth },
		{ "no architecture", break_no_architecture },
		{ "architecture", break_architecture_kind }, { "negative", break_negative },
		{ "small negative", break_small_negative }, { "large", break_large },
		{ "float", break_float }, { "text number", break_text_number },
		{ "alignment 0", break_alignment_0 }, { "alignment 48", break_alignment_odd },
		{ "alignment large", break_alignment_large }, { "offset", break_offset },
		{ "far offset", break_far_offset }, { "block", break_block },
		{ "super block", break_super_block }, { "elements", break_elements },
		{ "bytes", break_bytes }, { "name", break_name }, { "dims", break_dims },
		{ "tensor twice", break_tensor_twice },
	};
	struct file f;

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++) {
		memset(&f, 0, sizeof f);
		rows[i].make(&f);
		f.n += 1024; /* nothing fails for want of bytes */
		if (parse(&f) != REASON_MODEL_MALFORMED)
			fail_msg("%s: %s", rows[i].rule, error.msg);
	}
}

static void
arrays_may_nest_up_to_the_limit(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 0, 2);
	key_text(&f, "general.architecture", "x");
	key(&f, "a", ARR);
	for (int i = 1; i < GGUF_MAX_DEPTH; i++) {
		put(&f, ARR, 4);
		put(&f, 1, 8);
	}
	put(&f, STR, 4);
	put(&f, 1, 8);
	put_text(&f, "deep");
	assert_int_equal(parse(&f), REASON_NONE);
}

static void
a_count_the_file_can_not_hold_is_model_truncated(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 0, GGUF_MAX_KV);
	assert_int_equal(parse(&f), REASON_MODEL_TRUNCATED);
	begin(&f, 3, GGUF_MAX_TENSORS, 1);
	key_text(&f, "general.architecture", "x");
	assert_int_equal(parse(&f), REASON_MODEL_TRUNCATED);
}

/* Bits per weight as llama.cpp's documentation of its types gives them. */
static void
type_sizes_are_those_of_the_engine(void **state)
{
	static const struct { uint32_t type; double bits; } rows[] = {
		{ 0, 32 }, { 1, 16 }, { 2, 4.5 }, { 3, 5 }, { 6, 5.5 }, { 7, 6 }, { 8, 8.5 },
		{ 9, 9 }, { 10, 2.625 }, { 11, 3.4375 }, { 12, 4.5 }, { 13, 5.5 },
		{ 14, 6.5625 }, { 15, 9.125 }, { 16, 2.0625 }, { 17, 2.3125 }, { 18, 3.0625 },
		{ 19, 1.5625 }, { 20, 4.5 }, { 21, 3.4375 }, { 22, 2.5625 }, { 23, 4.25 },
		{ 24, 8 }, { 25, 16 }, { 26, 32 }, { 27, 64 }, { 28, 64 }, { 29, 1.75 },
		{ 30, 16 }, { 34, 1.6875 }, { 35, 2.0625 }, { 39, 4.25 }, { 40, 4.5 },
	};
	struct file f;

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++) {
		begin(&f, 3, 1, 1);
		key_text(&f, "general.architecture", "x");
		tensor(&f, "a", 256, 1, rows[i].type, 0);
		data(&f, (uint64_t)(rows[i].bits * 32), 32);
		assert_int_equal(parse(&f), REASON_NONE);
		assert_int_equal(info.wanted_bytes, f.n);
		f.n--;
		assert_int_equal(parse(&f), REASON_MODEL_TRUNCATED);
	}
}

static void
unknown_tensor_types_count_with_their_start(void **state)
{
	static const uint32_t unknown[] = { 4, 5, 31, 36, 41, 42, 46, 50, 1000, UINT32_MAX };
	struct file f;

	(void)state;
	for (size_t i = 0; i < str_count(unknown); i++) {
		begin(&f, 3, 2, 1);
		key_text(&f, "general.architecture", "x");
		tensor(&f, "a", 100, 7, unknown[i], 0);
		tensor(&f, "b", 100, 7, unknown[i], 64);
		data(&f, 64, 32);
		assert_int_equal(parse(&f), REASON_NONE);
		f.n--;
		assert_int_equal(parse(&f), REASON_MODEL_TRUNCATED);
	}
}

static void
a_said_alignment_is_used(void **state)
{
	struct file f;

	(void)state;
	begin(&f, 3, 1, 2);
	key_text(&f, "general.architecture", "x");
	key_u32(&f, "general.alignment", 256);
	tensor(&f, "a", 32, 1, 0, 256);
	data(&f, 256 + 128, 256);
	assert_int_equal(parse(&f), REASON_NONE);
	assert_int_equal(info.data_offset % 256, 0);
	assert_int_equal(info.wanted_bytes, f.n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_model_is_read),
		cmocka_unit_test(version_2_is_read_too),
		cmocka_unit_test(head_size_is_embedding_over_heads_unless_said),
		cmocka_unit_test(of_heads_per_layer_the_largest_counts),
		cmocka_unit_test(the_architecture_may_come_last),
		cmocka_unit_test(quantisation_is_the_file_type_or_the_commonest_type),
		cmocka_unit_test(synthetic_models_say_so),
		cmocka_unit_test(every_cut_of_a_file_is_model_truncated),
		cmocka_unit_test(other_files_are_model_not_gguf),
		cmocka_unit_test(a_git_lfs_pointer_is_hinted_at),
		cmocka_unit_test(other_versions_and_byte_orders_are_refused_in_words),
		cmocka_unit_test(every_broken_rule_is_model_malformed),
		cmocka_unit_test(arrays_may_nest_up_to_the_limit),
		cmocka_unit_test(a_count_the_file_can_not_hold_is_model_truncated),
		cmocka_unit_test(type_sizes_are_those_of_the_engine),
		cmocka_unit_test(unknown_tensor_types_count_with_their_start),
		cmocka_unit_test(a_said_alignment_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
