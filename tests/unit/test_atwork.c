/* What a build is compiling now: names out of command lines, and real processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/atwork.h"
#include "common/str.h"

/* '\n' stands for the NUL between words. */
static const struct {
	const char *words, *name;
} rows[] = {
	{"/usr/bin/c++\n-DX=1\n-O3\n-MF\na.o.d\n-o\nsrc/a.cpp.o\n-c\n/e/src/models/gemma4.cpp", "models/gemma4.cpp"},
	{"ccache\n/usr/local/cuda/bin/nvcc\n-forward-unknown-to-host-compiler\n-arch=sm_90a\n-x\ncu\n-c\n"
	 "/e/ggml/src/ggml-cuda/fattn.cu\n-o\nfattn.cu.o", "ggml-cuda/fattn.cu"},
	/* what stands behind -c is meant, whatever else looks like a source */
	{"cc\n-include\nother.c\n-c\nd/a.c\n-o\na.o\nlast.c", "d/a.c"},
	{"glslc\n-fshader-stage=compute\n-o\nmul.spv\n/e/vulkan-shaders/mul_mm.comp", "vulkan-shaders/mul_mm.comp"},
	/* a link: its output */
	{"/usr/bin/c++\n-O3\na.o\nb.o\n-o\nbin/llama-cli\nlibx.a", "bin/llama-cli"},
	/* ninja's shell, with quotes and blanks in a path */
	{"/bin/sh\n-c\ncd /b && /usr/bin/cc -DQ=\\\"x\\\" -c \"/my engine/src/big file.c\" -o x.o && :", "src/big file.c"},
	{"/bin/sh\n-c\n: && /usr/bin/c++  'a b.o' -o bin/llama-bench  && :", "bin/llama-bench"},
	/* a script in the place of a compiler */
	{"/bin/sh\n/opt/slow/cc\n-c\nmain.c\n-o\nmain.o", "main.c"},
	{"a.c", ""}, /* the program itself */
	{"python3\ngenerate\n--all", ""},
	{"cc\n-c", ""},
	{"cc\n-c\n.c", ""},
	{"sh\n-c\n'open quote", ""},
	{"sh\n-c", ""},
	{"", ""},
};

static void
file_is_found_in_a_command_line(void **state)
{
	char words[512], name[ATWORK_NAME];
	size_t i, k, n;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		n = strlen(rows[i].words);
		memcpy(words, rows[i].words, n + 1);
		for (k = 0; k < n; k++)
			if (words[k] == '\n')
				words[k] = '\0';
		atwork_name(words, n, name);
		assert_string_equal(name, rows[i].name);
		/* cut off anywhere it is still text */
		for (k = 0; k < n; k++) {
			atwork_name(words, k, name);
			assert_true(strlen(name) < ATWORK_NAME);
		}
	}
}

static void
name_of_a_stranger_is_clean_and_cut(void **state)
{
	static const char red[] = "cc\0-c\0/a/\033[31mred.c";
	char name[ATWORK_NAME], words[5000];

	(void)state;
	atwork_name(red, sizeof red, name);
	assert_null(strchr(name, '\033'));
	assert_non_null(strstr(name, "red.c"));
	memset(words, 'x', sizeof words);
	memcpy(words, "cc\0-c\0/a/", 9);
	memcpy(words + sizeof words - 3, ".c", 3);
	atwork_name(words, sizeof words, name);
	assert_int_not_equal(strlen(name), 0);
	assert_true(strlen(name) < ATWORK_NAME);
}

/* A build tool that is a shell, and its two commands: parent, tool, commands. */
static void
running_commands_are_found_longest_first(void **state)
{
	static const char tool[] =
		"sh -c 'sleep 30; :' cc -c /e/src/slow.c -o slow.o & sleep 1.2; sh -c 'sleep 30; :' cc -c quick.c & "
		"sleep 30 & wait";
	struct atwork v[4];
	struct timespec nap = {0, 100000000};
	pid_t pid = fork();
	int i, n = 0;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		setpgid(0, 0);
		execl("/bin/sh", "sh", "-c", tool, (char *)NULL);
		_exit(127);
	}
	setpgid(pid, pid);
	for (i = 0; i < 100 && n < 2; i++) {
		nanosleep(&nap, NULL);
		n = atwork_list(getpid(), v, 4);
	}
	if (access("/proc/self/stat", R_OK) != 0) {
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	/* only those that name a file */
	assert_int_equal(n, 2);
	assert_string_equal(v[0].name, "src/slow.c");
	assert_string_equal(v[1].name, "quick.c");
	assert_true(v[0].ms >= v[1].ms + 500);
	assert_true(v[0].ms < 60000);
	/* more than there is room for: the number is still told */
	memset(v, 0, sizeof v);
	assert_int_equal(atwork_list(getpid(), v, 1), 2);
	assert_string_equal(v[1].name, "");
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(atwork_list(getpid(), v, 4), 0);
}

static void
line_names_what_fits_and_counts_the_rest(void **state)
{
	static const struct atwork v[3] = {{"ggml-cuda/fattn.cu", 612900}, {"b.cpp", 40000}, {"c.cpp", 1000}};
	char text[200];

	(void)state;
	atwork_text(v, 3, 3, text, sizeof text);
	assert_string_equal(text, "ggml-cuda/fattn.cu (612 s), b.cpp (40 s), c.cpp (1 s)");
	atwork_text(v, 2, 7, text, sizeof text);
	assert_string_equal(text, "ggml-cuda/fattn.cu (612 s), b.cpp (40 s) and 5 more");
	atwork_text(v, 3, 3, text, 48);
	assert_string_equal(text, "ggml-cuda/fattn.cu (612 s) and 2 more");
	atwork_text(v, 0, 0, text, sizeof text);
	assert_string_equal(text, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_found_in_a_command_line),
		cmocka_unit_test(name_of_a_stranger_is_clean_and_cut),
		cmocka_unit_test(running_commands_are_found_longest_first),
		cmocka_unit_test(line_names_what_fits_and_counts_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
