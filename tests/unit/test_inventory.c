/* hosts.conf and the host grammar, good and hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"
#include "controller/inventory.h"

static struct err e;
static struct host_names names;

static int
parse(const char *text, struct inventory **out)
{
	memset(&e, 0, sizeof e);
	return inventory_parse(text, strlen(text), out, &e);
}

/* Expands and compares with wanted, the names joined by blanks. */
static void
expands_to(const char *expression, const char *wanted)
{
	char got[4096] = "";
	size_t i, n = 0;

	memset(&e, 0, sizeof e);
	memset(&names, 0, sizeof names);
	if (host_names_add(&names, expression, &e))
		fail_msg("%s: %s", expression, e.msg);
	for (i = 0; i < names.count; i++)
		n += (size_t)snprintf(got + n, sizeof got - n, "%s%s%s%s", i ? " " : "",
			names.item[i].user, names.item[i].user[0] ? "@" : "",
			names.item[i].name);
	assert_string_equal(got, wanted);
	host_names_fini(&names);
}

static void
is_refused(const char *expression)
{
	memset(&e, 0, sizeof e);
	memset(&names, 0, sizeof names);
	if (host_names_add(&names, expression, &e) == 0)
		fail_msg("\"%s\" was taken", expression);
	assert_int_equal(e.code, ERR_USAGE);
	host_names_fini(&names);
}

static void
local_is_there_without_a_file(void **state)
{
	struct inventory *inv = NULL;

	(void)state;
	assert_int_equal(parse("", &inv), 0);
	assert_int_equal(inv->count, 1);
	assert_non_null(inventory_find(inv, "local"));
	assert_null(inventory_find(inv, "other"));
	inventory_free(inv);
}

static void
settings_of_hosts_are_read(void **state)
{
	struct inventory *inv = NULL;
	const struct host *h;

	(void)state;
	assert_int_equal(parse("# lab\n[gh200-lab-3]\nurl = http://127.0.0.1:8420\n"
		"lane=cpu\nmodel = /srv/a b/m.gguf\ntags = lab arm\n\n[local]\r\n"
		"suite = eliza-1\r\n", &inv), 0);
	assert_int_equal(inv->count, 2);
	h = inventory_find(inv, "gh200-lab-3");
	assert_non_null(h);
	assert_string_equal(h->url, "http://127.0.0.1:8420");
	assert_string_equal(h->lane, "cpu");
	assert_string_equal(h->model, "/srv/a b/m.gguf");
	assert_null(h->suite);
	assert_string_equal(inventory_find(inv, "local")->suite, "eliza-1");
	inventory_free(inv);
}

static void
an_unknown_setting_is_named_with_its_line(void **state)
{
	struct inventory *inv = NULL;

	(void)state;
	assert_int_equal(parse("[a]\nurl = unix:/x\nlnae = cpu\n", &inv), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_string_equal(e.msg, "line 3: [a]: no such setting: \"lnae\"");
	assert_string_equal(e.hint, "did you mean lane?");
}

static void
bad_files_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum err_code code;
	} bad[] = {
		{"url = unix:/x\n", ERR_PARSE},
		{"[a]\nurl = unix:/x\nurl = unix:/y\n", ERR_PARSE},
		{"[a]\nurl = unix:/x\n  more\n", ERR_PARSE},
		{"[a]\nurl\n", ERR_PARSE},
		{"[a\nurl = unix:/x\n", ERR_PARSE},
		{"[a]\nurl =\n", ERR_PARSE},
		{"[../x]\nurl = unix:/x\n", ERR_PARSE},
		{"[-x]\nurl = unix:/x\n", ERR_PARSE},
		{"[]\nurl = unix:/x\n", ERR_PARSE},
		{"[a b]\nurl = unix:/x\n", ERR_PARSE},
		{"[a]\nurl = unix:/\xff\n", ERR_PARSE},
		{"[a23456789012345678901234567890123456789012345678x]\nurl = unix:/x\n",
		 ERR_PARSE},
	};
	struct inventory *inv = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		if (parse(bad[i].text, &inv) == 0)
			fail_msg("taken: %s", bad[i].text);
		assert_int_equal(e.code, bad[i].code);
	}
}

static void
a_long_line_is_refused_instead_of_cut(void **state)
{
	struct inventory *inv = NULL;
	char text[400];

	(void)state;
	memset(text, 'x', sizeof text);
	memcpy(text, "[a]\nmodel = /", 13);
	text[4 + INVENTORY_MAX_LINE] = '\0';
	assert_int_equal(parse(text, &inv), 0);
	assert_int_equal(strlen(inventory_find(inv, "a")->model), INVENTORY_MAX_LINE - 8);
	inventory_free(inv);
	text[4 + INVENTORY_MAX_LINE] = 'x';
	text[5 + INVENTORY_MAX_LINE] = '\0';
	assert_int_equal(parse(text, &inv), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

static void
a_nul_byte_is_refused(void **state)
{
	struct inventory *inv = NULL;

	(void)state;
	memset(&e, 0, sizeof e);
	assert_int_equal(inventory_parse("[a]\nurl\0=x\n", 11, &inv, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
}

static void
plain_names_and_commas_expand(void **state)
{
	(void)state;
	expands_to("local", "local");
	expands_to("a,b-1,c.d_e", "a b-1 c.d_e");
	expands_to("a,b,a", "a b");
}

static void
brackets_expand_with_leading_zeros(void **state)
{
	(void)state;
	expands_to("node[01-04,06]", "node01 node02 node03 node04 node06");
	expands_to("node[8-11]", "node8 node9 node10 node11");
	expands_to("n[1-2]x[1,3].lab", "n1x1.lab n1x3.lab n2x1.lab n2x3.lab");
	expands_to("a,n[1,2],b", "a n1 n2 b");
	expands_to("n[007]", "n007");
}

static void
a_user_belongs_to_every_name_of_its_item(void **state)
{
	(void)state;
	expands_to("root@enode[01-02,06],b", "root@enode01 root@enode02 root@enode06 b");
}

static void
the_long_real_expression_expands_to_all_its_hosts(void **state)
{
	(void)state;
	memset(&names, 0, sizeof names);
	assert_int_equal(host_names_add(&names, "root@enode[01-04,06-10,12-20]", &e), 0);
	assert_int_equal(names.count, 18);
	assert_string_equal(names.item[17].name, "enode20");
	host_names_fini(&names);
}

static void
senseless_expressions_are_refused(void **state)
{
	static const char *const bad[] = {
		"", ",", "a,", ",a", "a,,b", "n[", "n]", "n[]", "n[1", "n[1-]", "n[-1]",
		"n[1,]", "n[4-1]", "n[a]", "n[1-2", "n[[1]]", "@a", "a@", "a b", "-x", ".x",
		"a/b", "a;b", "n[1 - 2]", "n[0-99999999]", "n[0000000001]", "u@-x", "-u@x",
		"$(id)", "a\n", "n[1-2]]",
	};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		is_refused(bad[i]);
}

static void
too_many_hosts_are_refused_not_allocated(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	memset(&names, 0, sizeof names);
	assert_int_equal(host_names_add(&names, "a[0-99]b[0-99]c[0-99]", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_true(names.count <= HOSTS_MAX);
	host_names_fini(&names);
}

static void
resolving_suggests_the_nearest_host(void **state)
{
	struct inventory *inv = NULL;
	const struct host **list = NULL;
	size_t n = 0;
	char *ok[] = {(char *)(uintptr_t)"gh[1-2]", (char *)(uintptr_t)"local"};
	char *bad[] = {(char *)(uintptr_t)"lcoal"};
	char *user[] = {(char *)(uintptr_t)"root@gh1"};

	(void)state;
	assert_int_equal(parse("[gh1]\nurl=unix:/1\n[gh2]\nurl=unix:/2\n", &inv), 0);
	assert_int_equal(inventory_resolve(inv, ok, 2, &list, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[1]->url, "unix:/2");
	free(list);
	list = NULL;
	assert_int_equal(inventory_resolve(inv, bad, 1, &list, &n, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.hint, "did you mean local?");
	assert_int_equal(inventory_resolve(inv, user, 1, &list, &n, &e), -1);
	assert_non_null(strstr(e.msg, "not supported yet"));
	inventory_free(inv);
}

static void
reach_of(const char *url, struct reach *r, int wanted)
{
	struct host h = {.name = "h"};

	memset(&e, 0, sizeof e);
	h.url = (char *)(uintptr_t)url;
	if (host_reach(&h, r, &e) != wanted)
		fail_msg("%s: %s", url, e.msg);
	if (wanted)
		assert_int_equal(err_exit(e.code), EXIT_USAGE);
}

static void
loopback_and_sockets_are_reached(void **state)
{
	struct reach r;

	(void)state;
	reach_of("unix:/run/verify agent.sock", &r, 0);
	assert_string_equal(r.socket, "/run/verify agent.sock");
	assert_string_equal(r.base, "http://localhost");
	reach_of("http://127.0.0.1:8420/", &r, 0);
	assert_string_equal(r.base, "http://127.0.0.1:8420");
	assert_string_equal(r.socket, "");
	reach_of("http://localhost:1", &r, 0);
	reach_of("http://[::1]:8420", &r, 0);
}

static void
other_ways_say_what_works(void **state)
{
	static const char *const bad[] = {
		"ssh://lab", "https://127.0.0.1", "http://192.168.1.7:80", "http://example.org",
		"http://127.0.0.1.example.org", "unix:agent.sock", "http://127.0.0.1:1/v1",
		"http://127.0.0.1:99999", "http://", "x", "http://127.0.0.1:1?a",
		"http://127.0.0.1@evil.example", "http://localhost.evil.example",
	};
	struct reach r;
	char lengthy[140] = "unix:/";
	size_t i;

	(void)state;
	for (i = 0; i < str_count(bad); i++)
		reach_of(bad[i], &r, -1);
	/* A socket's path has at most 107 bytes. */
	memset(lengthy + 6, 'x', 107);
	reach_of(lengthy, &r, -1);
	lengthy[5 + 107] = '\0';
	reach_of(lengthy, &r, 0);
	reach_of("ssh://lab", &r, -1);
	assert_non_null(strstr(e.msg, "not supported yet"));
	assert_non_null(strstr(e.hint, "unix:/PATH"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_is_there_without_a_file),
		cmocka_unit_test(settings_of_hosts_are_read),
		cmocka_unit_test(an_unknown_setting_is_named_with_its_line),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(a_long_line_is_refused_instead_of_cut),
		cmocka_unit_test(a_nul_byte_is_refused),
		cmocka_unit_test(plain_names_and_commas_expand),
		cmocka_unit_test(brackets_expand_with_leading_zeros),
		cmocka_unit_test(a_user_belongs_to_every_name_of_its_item),
		cmocka_unit_test(the_long_real_expression_expands_to_all_its_hosts),
		cmocka_unit_test(senseless_expressions_are_refused),
		cmocka_unit_test(too_many_hosts_are_refused_not_allocated),
		cmocka_unit_test(resolving_suggests_the_nearest_host),
		cmocka_unit_test(loopback_and_sockets_are_reached),
		cmocka_unit_test(other_ways_say_what_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
