#include "agent_help.h"

#include <inttypes.h>

#include "agent/conf.h"

static int
parse(const char *text, struct conf *c, struct err *e)
{
	memset(e, 0, sizeof *e);
	conf_default(c);
	return conf_parse(text, strlen(text), "agent.conf", c, e);
}

static void
refused(const char *text, const char *where, const char *what)
{
	struct conf c;
	struct err e;

	assert_int_equal(parse(text, &c, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	if (strncmp(e.msg, where, strlen(where)) != 0 || strstr(e.msg, what) == NULL)
		fail_msg("\"%s\" has not \"%s\" and \"%s\"", e.msg, where, what);
	assert_true(e.hint[0] != '\0');
}

static void
every_default_lies_in_its_range(void **state)
{
	struct conf c;
	size_t i;

	(void)state;
	conf_default(&c);
	for (i = 0; i < CONF_COUNT; i++) {
		const struct conf_row *r = &conf_rows[i];

		assert_non_null(r->key);
		assert_true(r->min <= r->def && r->def <= r->max);
		assert_true(r->help[0] != '\0' && r->unit[0] != '\0');
		assert_true(c.v[i] == r->def);
	}
}

/* Each row is settable at both ends of its range and refused one beyond. */
static void
every_row_holds_its_range(void **state)
{
	struct conf c;
	struct err e;
	char text[200];
	size_t i;

	(void)state;
	for (i = 0; i < CONF_COUNT; i++) {
		const struct conf_row *r = &conf_rows[i];
		const struct {
			uint64_t v;
			int rc;
		} ends[] = {{r->min, 0}, {r->max, 0}, {r->max + 1, -1}, {r->min - 1, -1}};
		size_t k;

		for (k = 0; k < str_count(ends) - (r->min == 0); k++) {
			assert_int_equal(str_fmt(text, sizeof text, NULL,
				"[%s]\n%s = %" PRIu64 "\n", r->section, r->key, ends[k].v), 0);
			assert_int_equal(parse(text, &c, &e), ends[k].rc);
			if (ends[k].rc == 0)
				assert_true(c.v[i] == ends[k].v);
		}
	}
}

static void
errors_name_file_and_line(void **state)
{
	(void)state;
	refused("[http]\n\nmax_bodi_bytes = 1\n", "agent.conf:3:", "max_bodi_bytes");
	refused("[htp]\nx = 1\n", "agent.conf:2:", "[htp]");
	refused("[http]\nmax_body_bytes = many\n", "agent.conf:2:", "many");
	refused("[http]\nmax_body_bytes = 10 MB\n", "agent.conf:2:", "10 MB");
	refused("[http]\nidle_timeout_s = 5\n# x\nidle_timeout_s = 6\n", "agent.conf:4:",
		"line 2");
	refused("[agent]\nlisten =\n", "agent.conf:2:", "empty");
	refused("[http]\nnonsense\n", "agent.conf:2:", "neither");
	refused("[http\n", "agent.conf:1:", "neither");
	refused("max_queue = 1\n", "agent.conf:1:", "section");
}

static void
line_that_libinih_would_cut_is_refused(void **state)
{
	char text[400] = "[agent]\nlisten = unix:/";

	(void)state;
	memset(text + strlen(text), 'x', 250);
	refused(text, "agent.conf:2:", "longer");
}

static void
comments_spaces_and_text_are_read(void **state)
{
	struct conf c;
	struct err e;

	(void)state;
	assert_int_equal(parse("\xef\xbb\xbf; c\n# d\n[agent]\n listen=unix:/run/a.sock ; "
			       "e\r\n[jobs]\nmax_queue = 7", &c, &e), 0);
	assert_string_equal(c.text[CONF_LISTEN], "unix:/run/a.sock");
	assert_true(c.v[CONF_MAX_QUEUE] == 7);
	assert_string_equal(c.text[CONF_STATE], "");
}

static void
missing_file_that_was_named_is_an_error(void **state)
{
	struct conf c;
	struct err e = {0};

	(void)state;
	assert_int_equal(conf_load("/nonexistent/agent.conf", &c, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
missing_default_file_is_none(void **state)
{
	struct place *p = *state;
	struct conf c;
	struct err e = {0};

	if (plat_exists("/etc/verify/agent.conf"))
		skip();
	assert_int_equal(setenv("XDG_CONFIG_HOME", p->dir, 1), 0);
	assert_int_equal(conf_load(NULL, &c, &e), 0);
	assert_true(c.v[CONF_MAX_QUEUE] == conf_rows[CONF_MAX_QUEUE].def);
}

static void
default_file_of_the_user_is_read(void **state)
{
	struct place *p = *state;
	struct conf c;
	struct err e = {0};
	char dir[300];

	assert_int_equal(str_fmt(dir, sizeof dir, NULL, "%s/verify", p->dir), 0);
	assert_int_equal(plat_mkdirs(dir, 0700, NULL), 0);
	file_write(dir, "agent.conf", "[jobs]\nmax_queue = 3\n");
	assert_int_equal(setenv("XDG_CONFIG_HOME", p->dir, 1), 0);
	assert_int_equal(conf_load(NULL, &c, &e), 0);
	assert_true(c.v[CONF_MAX_QUEUE] == 3);
}

static void
sample_file_is_what_the_table_makes(void **state)
{
	struct buf b;
	char *text = NULL;
	size_t len;

	(void)state;
	buf_init(&b, 65536);
	assert_int_equal(conf_sample(&b, NULL), 0);
	assert_int_equal(plat_read_file("deploy/verify-agent.conf", 65536, &text, &len,
		NULL), 0);
	assert_string_equal(text, b.data);
	free(text);
	buf_fini(&b);
}

/* The sample with its settings uncommented is a valid file that changes nothing. */
static void
sample_uncommented_is_the_defaults(void **state)
{
	struct buf b;
	struct conf c, def;
	struct err e;
	char *p;

	(void)state;
	buf_init(&b, 65536);
	assert_int_equal(conf_sample(&b, NULL), 0);
	for (p = b.data; (p = strstr(p, "\n#")) != NULL; p++)
		if (p[2] != ' ' && strpbrk(p, "=")[1] != '\n')
			memmove(p + 1, p + 2, strlen(p + 1));
	assert_non_null(strstr(b.data, "\nmax_queue = 64\n"));
	if (parse(b.data, &c, &e))
		fail_msg("%s", e.msg);
	conf_default(&def);
	assert_memory_equal(c.v, def.v, sizeof c.v);
	buf_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_default_lies_in_its_range),
		cmocka_unit_test(every_row_holds_its_range),
		cmocka_unit_test(errors_name_file_and_line),
		cmocka_unit_test(line_that_libinih_would_cut_is_refused),
		cmocka_unit_test(comments_spaces_and_text_are_read),
		cmocka_unit_test(missing_file_that_was_named_is_an_error),
		cmocka_unit_test_setup_teardown(missing_default_file_is_none, place_make,
			place_remove),
		cmocka_unit_test_setup_teardown(default_file_of_the_user_is_read, place_make,
			place_remove),
		cmocka_unit_test(sample_file_is_what_the_table_makes),
		cmocka_unit_test(sample_uncommented_is_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
