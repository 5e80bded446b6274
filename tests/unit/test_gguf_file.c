/* Models on disk: what is no file is told at once; which cache types a model suits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/gguf.h"
#include "common/str.h"
#include "tests/unit/gguf_make.h"
#include "tests/unit/repo.h"

static struct gguf_info info;
static struct err error;

static enum reason
read_path(const char *path)
{
	enum reason why = REASON_COUNT;
	int rc;

	memset(&error, 0, sizeof error);
	rc = gguf_read(path, &info, &why, &error);
	assert_int_equal(rc, why == REASON_NONE ? 0 : -1);
	if (rc)
		assert_true(str_starts(error.msg, path));
	return why;
}

static void
a_file_is_read_like_its_bytes(void **state)
{
	char folder[REPO_PATH], path[REPO_PATH + 8];
	struct file f;

	(void)state;
	small_model(&f, 3);
	repo_folder(folder, sizeof folder);
	snprintf(path, sizeof path, "%s/m", folder);
	assert_int_equal(plat_write_file(path, f.b, f.n, 0600, &error), 0);
	assert_int_equal(read_path(path), REASON_NONE);
	assert_int_equal(info.head_size_k, 64);
	assert_int_equal(info.wanted_bytes, f.n);
	assert_int_equal(truncate(path, (off_t)f.n - 1), 0);
	assert_int_equal(read_path(path), REASON_MODEL_TRUNCATED);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(read_path(path), REASON_MODEL_TRUNCATED);
	repo_remove(folder);
}

/* More metadata than one window of the reader, and a string across its edge. */
static void
a_long_header_is_read_in_pieces(void **state)
{
	char folder[REPO_PATH], path[REPO_PATH + 8];
	const size_t tokens = 20000;
	struct buf b;
	struct file f;

	(void)state;
	buf_init(&b, 1 << 20);
	begin(&f, 3, 0, 3);
	key(&f, "tokenizer.ggml.tokens", ARR);
	put(&f, STR, 4);
	put(&f, tokens, 8);
	assert_int_equal(buf_add(&b, f.b, f.n, &error), 0);
	f.n = 0;
	put_text(&f, "token");
	for (size_t i = 0; i < tokens; i++)
		assert_int_equal(buf_add(&b, f.b, f.n, &error), 0);
	f.n = 0;
	key_u32(&f, "x.block_count", 48);
	key_text(&f, "general.architecture", "x");
	assert_int_equal(buf_add(&b, f.b, f.n, &error), 0);
	repo_folder(folder, sizeof folder);
	snprintf(path, sizeof path, "%s/m", folder);
	assert_int_equal(plat_write_file(path, b.data, b.len, 0600, &error), 0);
	buf_fini(&b);
	assert_int_equal(read_path(path), REASON_NONE);
	assert_int_equal(info.vocab_size, 20000);
	assert_int_equal(info.layers, 48);
	repo_remove(folder);
}

static void
what_is_not_a_file_is_told_without_waiting(void **state)
{
	char folder[REPO_PATH], path[REPO_PATH + 8];
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s;

	(void)state;
	repo_folder(folder, sizeof folder);
	assert_int_equal(read_path(folder), REASON_MODEL_NOT_A_FILE);
	assert_non_null(strstr(error.msg, "folder"));
	snprintf(path, sizeof path, "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(20); /* a reader that waits ends the test */
	assert_int_equal(read_path(path), REASON_MODEL_NOT_A_FILE);
	(void)alarm(0);
	assert_non_null(strstr(error.msg, "FIFO"));
	assert_int_equal(read_path("/dev/null"), REASON_MODEL_NOT_A_FILE);
	snprintf(path, sizeof path, "%s/sock", folder);
	assert_true(strlen(path) < sizeof a.sun_path);
	memcpy(a.sun_path, path, strlen(path) + 1);
	assert_true((s = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	assert_int_equal(bind(s, (struct sockaddr *)(void *)&a, sizeof a), 0);
	assert_int_equal(read_path(path), REASON_MODEL_NOT_A_FILE);
	close(s);
	repo_remove(folder);
}

static void
what_is_not_there_is_model_missing(void **state)
{
	char folder[REPO_PATH], path[REPO_PATH + 8];

	(void)state;
	repo_folder(folder, sizeof folder);
	snprintf(path, sizeof path, "%s/none", folder);
	assert_int_equal(read_path(path), REASON_MODEL_MISSING);
	assert_int_equal(error.code, ERR_NOTFOUND);
	assert_int_equal(symlink("none", path), 0); /* points at itself */
	assert_int_equal(read_path(path), REASON_MODEL_MISSING);
	assert_int_equal(read_path("/dev/null/model"), REASON_MODEL_MISSING);
	assert_int_equal(read_path(""), REASON_MODEL_MISSING);
	repo_remove(folder);
}

static void
what_may_not_be_read_is_model_unreadable(void **state)
{
	char folder[REPO_PATH], path[REPO_PATH + 8];

	bool root = geteuid() == 0; /* who reads everything */

	(void)state;
	repo_folder(folder, sizeof folder);
	snprintf(path, sizeof path, "%s/m", folder);
	assert_int_equal(plat_write_file(path, "GGUF", 4, 0, &error), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	if (root && seteuid(65534) != 0)
		skip();
	assert_int_equal(read_path(path), REASON_MODEL_UNREADABLE);
	if (root)
		assert_int_equal(seteuid(0), 0);
	repo_remove(folder);
}

/* Blocks of the cache types: stock ones from ggml's block definitions, the others as
 * the kernels' reference has them. */
static void
cache_types_suit_head_sizes_their_block_divides(void **state)
{
	static const struct { const char *type; bool suits[4]; } rows[] = {
		/*              48     64    128    256 */
		{ "f16",      { true,  true,  true,  true } },
		{ "bf16",     { true,  true,  true,  true } },
		{ "f32",      { true,  true,  true,  true } },
		{ "q8_0",     { false, true,  true,  true } },
		{ "q5_1",     { false, true,  true,  true } },
		{ "q5_0",     { false, true,  true,  true } },
		{ "q4_1",     { false, true,  true,  true } },
		{ "q4_0",     { false, true,  true,  true } },
		{ "iq4_nl",   { false, true,  true,  true } },
		{ "tbq3_0",   { false, true,  true,  true } },
		{ "tbq4_0",   { false, true,  true,  true } },
		{ "tbq3_tcq", { false, false, true,  true } },
		{ "q4_polar", { false, false, true,  true } },
		{ "qjl1_256", { false, false, true,  true } },
		{ "tbq3_k",   { false, false, false, true } },
		{ "tbq4_k",   { false, false, false, true } },
		{ "novel_9",  { true,  true,  true,  true } },
	};
	static const int64_t heads[] = { 48, 64, 128, 256 };

	(void)state;
	for (size_t i = 0; i < str_count(rows); i++)
		for (size_t k = 0; k < str_count(heads); k++) {
			struct gguf_info m = { .head_size_k = heads[k] };
			struct err e = { 0 };

			if (gguf_suits(&m, rows[i].type, &e) != rows[i].suits[k])
				fail_msg("%s with head size %d", rows[i].type, (int)heads[k]);
			assert_int_equal(e.code, rows[i].suits[k] ? ERR_NONE : ERR_BLOCKED);
		}
}

static void
sliding_window_heads_must_suit_as_well(void **state)
{
	struct gguf_info m = { .head_size_k = 512, .head_size_k_swa = 64 };
	struct err e = { 0 };

	(void)state;
	assert_true(gguf_suits(&m, "q8_0", &e));
	assert_false(gguf_suits(&m, "q4_polar", &e));
	assert_non_null(strstr(e.msg, "64"));
	assert_non_null(strstr(e.msg, "128"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_like_its_bytes),
		cmocka_unit_test(a_long_header_is_read_in_pieces),
		cmocka_unit_test(what_is_not_a_file_is_told_without_waiting),
		cmocka_unit_test(what_is_not_there_is_model_missing),
		cmocka_unit_test(what_may_not_be_read_is_model_unreadable),
		cmocka_unit_test(cache_types_suit_head_sizes_their_block_divides),
		cmocka_unit_test(sliding_window_heads_must_suit_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
