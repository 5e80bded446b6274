/* agent_help - what the tests of the agent's server share: a folder, a job document. */
#ifndef TESTS_AGENT_HELP_H
#define TESTS_AGENT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/job.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define NONCE "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define ID_A "0123456789abcdef0123456789abcdef"
#define ID_B "00000000000000000000000000000001"
#define ID_C "00000000000000000000000000000002"

struct place {
	char dir[256];
};

static inline int
place_make(void **state)
{
	static struct place p;
	const char *tmp = getenv("TMPDIR");

	if (str_fmt(p.dir, sizeof p.dir, NULL, "%s/verify-test-XXXXXX",
		    tmp != NULL ? tmp : "/tmp") || mkdtemp(p.dir) == NULL)
		return -1;
	*state = &p;
	return 0;
}

static inline int
place_remove(void **state)
{
	struct place *p = *state;

	return plat_remove_tree(p->dir, NULL);
}

/* A job document for the suite llama.cpp; ref (may be NULL) tells two bodies apart. */
static inline struct job *
job_make(const char *id, const char *ref)
{
	cJSON *o = cJSON_CreateObject();
	struct suite *s = NULL;
	struct job *j = NULL;
	struct err e = {0};

	assert_int_equal(suite_builtin("llama.cpp", &s, &e), 0);
	assert_true(json_add_int(o, "schemaVersion", 1));
	assert_true(json_add_str(o, "id", id));
	assert_true(json_add_str(o, "nonce", NONCE));
	assert_true(json_add_str(o, "lane", "cpu"));
	assert_true(json_add_str(o, "suite", "llama.cpp"));
	assert_true(json_add_str(o, "suiteDigest", s->digest));
	if (ref != NULL) {
		assert_true(json_add_str(o, "source", "/src"));
		assert_true(json_add_str(o, "sourceRef", ref));
	}
	suite_free(s);
	if (job_new(o, &j, &e))
		fail_msg("%s", e.msg);
	return j;
}

static inline void
file_write(const char *dir, const char *name, const char *text)
{
	char path[512];

	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/%s", dir, name), 0);
	assert_int_equal(plat_write_file(path, text, strlen(text), 0600, NULL), 0);
}

static inline bool
file_there(const char *dir, const char *name)
{
	char path[512];

	assert_int_equal(str_fmt(path, sizeof path, NULL, "%s/%s", dir, name), 0);
	return plat_exists(path);
}

#endif
