/* Jobs that wait for their evidence: written down, found again, forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "controller/pending.h"

#define A "aaaa0000000000000000000000000001"
#define B "aaaa0000000000000000000000000002"

static char folder[64];
static struct err e;

static int
setup(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	snprintf(folder, sizeof folder, "/tmp/pending.XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	return setenv("XDG_DATA_HOME", folder, 1);
}

static int
teardown(void **state)
{
	(void)state;
	return plat_remove_tree(folder, &e);
}

static void
save(const char *id)
{
	cJSON *o = cJSON_CreateObject();
	struct pending *p = NULL;
	struct job *job = NULL;

	assert_true(json_add_str(o, "id", id) && json_add_str(o, "lane", "cpu") &&
		json_add_str(o, "suite", "llama.cpp"));
	assert_int_equal(job_new(o, &job, &e), 0);
	assert_int_equal(pending_new("lab", job, &p, &e), 0);
	assert_int_equal(pending_save(p, &e), 0);
	pending_free(p);
}

static void
a_saved_job_comes_back_byte_for_byte(void **state)
{
	struct pending *p = NULL;
	char *text = NULL;
	size_t len;
	char path[200];
	cJSON *o = NULL;

	(void)state;
	save(A);
	assert_int_equal(pending_load(A, &p, &e), 0);
	assert_string_equal(p->host, "lab");
	assert_string_equal(p->job->id, A);
	snprintf(path, sizeof path, "%s/verify/pending/" A ".json", folder);
	assert_int_equal(plat_read_file(path, 100000, &text, &len, &e), 0);
	assert_int_equal(json_parse(text, len, 100000, &o, &e), 0);
	/* The agent compares bodies: a repeated submit must have the same bytes. */
	assert_string_equal(json_str(o, "job"), p->job->text);
	cJSON_Delete(o);
	free(text);
	pending_free(p);
}

static void
an_id_may_be_shortened_while_it_is_unique(void **state)
{
	char id[JOB_ID_HEX + 1];
	struct pending_id *ids = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(pending_find("aaaa", id, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	save(A);
	assert_int_equal(pending_find("aaaa", id, &e), 0);
	assert_string_equal(id, A);
	save(B);
	assert_int_equal(pending_find("aaaa", id, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(pending_find(B, id, &e), 0);
	assert_int_equal(pending_find("", id, &e), -1);
	assert_int_equal(pending_list(&ids, &n, &e), 0);
	assert_int_equal(n, 2);
	free(ids);
}

static void
done_forgets_the_job_and_what_was_pulled(void **state)
{
	char in[200], file[240];
	struct pending *p = NULL;

	(void)state;
	save(A);
	assert_int_equal(pending_incoming(A, in, sizeof in, &e), 0);
	snprintf(file, sizeof file, "%s/x.part", in);
	assert_int_equal(plat_write_file(file, "x", 1, 0600, &e), 0);
	assert_int_equal(pending_done(A, &e), 0);
	assert_false(plat_exists(in));
	assert_int_equal(pending_load(A, &p, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	/* A second time is no error: two controllers may both be last. */
	assert_int_equal(pending_done(A, &e), 0);
}

static void
foreign_files_are_no_jobs(void **state)
{
	char path[200];
	struct pending_id *ids = NULL;
	struct pending *p = NULL;
	size_t n = 0;

	(void)state;
	save(A);
	snprintf(path, sizeof path, "%s/verify/pending/" B ".json", folder);
	assert_int_equal(plat_write_file(path, "{}", 2, 0600, &e), 0);
	assert_int_equal(pending_load(B, &p, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	snprintf(path, sizeof path, "%s/verify/pending/notes.json", folder);
	assert_int_equal(plat_write_file(path, "{}", 2, 0600, &e), 0);
	assert_int_equal(pending_list(&ids, &n, &e), 0);
	assert_int_equal(n, 2);
	free(ids);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_saved_job_comes_back_byte_for_byte),
		T(an_id_may_be_shortened_while_it_is_unique),
		T(done_forgets_the_job_and_what_was_pulled),
		T(foreign_files_are_no_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
