#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/build.h"
#include "agent/lock.h"
#include "common/str.h"
#include "tests/unit/repo.h"

#define NONCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#if defined(__aarch64__)
#define HERE "linux-aarch64-cpu"
#define ELSEWHERE "linux-x64-cpu"
#else
#define HERE "linux-x64-cpu"
#define ELSEWHERE "linux-aarch64-cpu"
#endif

/* A tiny engine that really is built by cmake and ninja; -DMODE= makes it misbehave. */
static const char cmakelists[] =
	"cmake_minimum_required(VERSION 3.14)\n"
	"project(tiny C)\n"
	"set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n"
	"set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n"
	"if(MODE STREQUAL \"nocmake\")\n"
	"  message(FATAL_ERROR \"the moon is not full\")\n"
	"endif()\n"
	"add_library(ggml ggml/a.c)\n"
	"set_target_properties(ggml PROPERTIES VERSION 1.2 SOVERSION 1)\n"
	"add_executable(llama-tiny main.c)\n"
	"target_link_libraries(llama-tiny ggml)\n"
	"file(GLOB models ${CMAKE_SOURCE_DIR}/models/*.c)\n"
	"if(models)\n"
	"  add_library(llama ${models})\n"
	"  target_link_libraries(llama-tiny llama)\n"
	"endif()\n"
	"if(MODE STREQUAL \"error\")\n"
	"  target_compile_definitions(llama-tiny PRIVATE WRONG)\n"
	"endif()\n"
	"if(MODE STREQUAL \"link\")\n"
	"  target_compile_definitions(llama-tiny PRIVATE ABSENT)\n"
	"endif()\n"
	"if(SAYS)\n"
	"  file(READ ${CMAKE_SOURCE_DIR}/says/${SAYS} said)\n"
	"  add_custom_command(OUTPUT said.h COMMAND sh ${CMAKE_SOURCE_DIR}/says/${SAYS}\n"
	"    VERBATIM)\n"
	"  add_custom_target(talk DEPENDS said.h)\n"
	"  add_dependencies(ggml talk)\n"
	"endif()\n"
	"add_custom_target(llama-nothing)\n"
	"add_custom_target(llama-script\n"
	"  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bin\n"
	"  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/says/script\n"
	"    ${CMAKE_BINARY_DIR}/bin/llama-script VERBATIM)\n";

static const char main_c[] =
	"#ifdef WRONG\nint wrong = undeclared;\n#endif\n"
	"#ifdef ABSENT\nint absent(void);\n#define A absent()\n#else\n#define A a()\n#endif\n"
	"int a(void);\nint main(void) { return A; }\n";

struct world {
	char root[256], engine[300], cache[300], out[300], log_path[300];
	struct transcript *log;
	struct source_ask source_ask;
	struct source_info source;
	struct build_ask ask;
	struct build_info *b;
	struct install_info in;
	enum reason why;
	struct err e;
	/* seen by the callbacks */
	uint32_t done, total;
	int steps, ticks, cancel_after;
	bool waited;
	int told;         /* times that the slow file was named, with no step between */
	char told_text[256];
};

static const char *const programs[] = {"llama-tiny"};

static int
tick(void *arg)
{
	struct world *w = arg;

	w->ticks++;
	return w->cancel_after > 0 && w->ticks >= w->cancel_after;
}

static void
progress(void *arg, uint32_t done, uint32_t total, const char *text)
{
	struct world *w = arg;

	assert_non_null(text);
	if (total > 0) {
		assert_true(done <= total);
		w->done = done;
		w->total = total;
		w->steps++;
	}
	if (strstr(text, "waiting") != NULL)
		w->waited = true;
	if (str_starts(text, "compiling ") && strstr(text, "ggml/a.c (") != NULL) {
		w->told++;
		snprintf(w->told_text, sizeof w->told_text, "%s", text);
	}
}

static void
says(struct world *w, const char *name, const char *script)
{
	char path[64];

	snprintf(path, sizeof path, "says/%s", name);
	repo_write(w->engine, path, script, 0755);
}

static void
engine_write(struct world *w)
{
	repo_write(w->engine, "CMakeLists.txt", cmakelists, 0644);
	repo_write(w->engine, "ggml/a.c", "int a(void);\nint a(void) { return 0; }\n", 0644);
	repo_write(w->engine, "include/llama.h", "\n", 0644);
	repo_write(w->engine, "main.c", main_c, 0644);
	says(w, "script", "#!/bin/sh\necho a script is no program for a machine, whatever it is\n");
	says(w, "crash", "echo 'c++: fatal error: Killed signal terminated program cc1plus'; exit 1\n");
	says(w, "nogpu", "echo \"nvcc fatal   : Unsupported gpu architecture 'compute_No CUDA devices found.'\"; exit 1\n");
	says(w, "full", "echo 'cc: error: x.s: No space left on device' >&2; exit 1\n");
	says(w, "sleep", "sleep 60\n");
	says(w, "write", "dir=$(dirname \"$0\"); echo 'int changed;' >>\"$dir/../ggml/a.c\"; : >said.h\n");
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	assert_non_null(w->b = calloc(1, sizeof *w->b));
	repo_folder(w->root, sizeof w->root);
	/* Blanks, quotes, percent signs and other letters are only letters (BR-052). */
	snprintf(w->engine, sizeof w->engine, "%s/my engine's 100%% \xc3\xa4", w->root);
	snprintf(w->cache, sizeof w->cache, "%s/cache dir", w->root);
	snprintf(w->out, sizeof w->out, "%s/state/bin/mtp/" HERE, w->root);
	snprintf(w->log_path, sizeof w->log_path, "%s/log", w->root);
	assert_int_equal(transcript_open(w->log_path, NONCE, 1 << 20, &w->log, &w->e), 0);
	engine_write(w);
	w->source_ask.spec = w->engine;
	w->source_ask.cache_dir = w->cache;
	w->ask = (struct build_ask){.source_ask = &w->source_ask, .source = &w->source,
		.lane = lane_find("cpu"), .target = target_find(HERE), .programs = programs,
		.program_count = 1, .cache_dir = w->cache, .jobs = 2, .tick = tick,
		.progress = progress, .arg = w};
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	build_release(w->b);
	assert_int_equal(transcript_close(w->log, NULL, NULL, &w->e), 0);
	repo_remove(w->root);
	free(w->b);
	free(w);
	return 0;
}

static bool
has_tools(void)
{
	char path[4096];
	struct err e;

	return plat_find_tool("cmake", path, sizeof path, &e) == 0 &&
		plat_find_tool("ninja", path, sizeof path, &e) == 0 &&
		plat_find_tool("cc", path, sizeof path, &e) == 0 &&
		plat_find_tool("c++", path, sizeof path, &e) == 0;
}

static int
try(struct world *w)
{
	if (!has_tools())
		skip();
	build_release(w->b);
	memset(&w->e, 0, sizeof w->e);
	if (source_get(&w->source_ask, w->log, &w->source, &w->why, &w->e))
		fail_msg("%s: %s", reason_name(w->why), w->e.msg);
	return build_engine(&w->ask, w->log, w->b, &w->why, &w->e);
}

static void
good(struct world *w)
{
	if (try(w))
		fail_msg("%s: %s", reason_name(w->why), w->e.msg);
	assert_int_equal(w->why, REASON_NONE);
}

static void
bad(struct world *w, enum reason why, const char *begins)
{
	assert_int_equal(try(w), -1);
	if (w->why != why || strstr(w->e.msg, begins) == NULL)
		fail_msg("%s: %s", reason_name(w->why), w->e.msg);
}

/* ---- building ---- */

static void
built_program_is_proved_and_reused(void **state)
{
	struct world *w = *state;
	char hex[DIGEST_HEX], key[DIGEST_HEX], built_at[24], none[8];
	const struct build_artifact *a;
	struct err e;

	good(w);
	assert_false(w->b->reused);
	assert_int_equal(w->b->artifact_count, 1);
	assert_non_null(a = build_find(w->b, "llama-tiny"));
	assert_int_equal(a->machine, w->ask.target->elf_machine);
	assert_true(a->program);
	assert_int_equal(digest_file(a->path, hex, NULL, &e), 0);
	assert_string_equal(a->sha256, hex);
	assert_int_equal(repo_exec("/", none, sizeof none, (const char *const[]){a->path, NULL}), 0);
	assert_true(w->steps > 0);
	assert_int_equal(w->done, w->total);
	assert_true(strstr(w->b->flags, "-DLLAMA_CURL=OFF") != NULL);
	assert_true(w->b->cxx.path[0] == '/' && str_is_hex(w->b->cxx.sha256, 64));
	memcpy(key, w->b->key, sizeof key);
	memcpy(built_at, w->b->built_at, sizeof built_at);

	w->steps = 0;
	good(w);
	assert_true(w->b->reused);
	assert_int_equal(w->steps, 0);
	assert_string_equal(w->b->key, key);
	assert_string_equal(w->b->built_at, built_at);
	assert_string_equal(build_find(w->b, "llama-tiny")->sha256, hex);
}

static void
log_says_built_then_reused(void **state)
{
	struct world *w = *state;
	char *text, *made;
	size_t n;

	good(w);
	good(w);
	assert_int_equal(plat_read_file(w->log_path, 1 << 24, &text, &n, &w->e), 0);
	assert_non_null(made = strstr(text, "\nbuild=made\n"));
	assert_non_null(strstr(made, "\nbuild=reused\n"));
	free(text);
}

static void
flags_and_source_make_another_key(void **state)
{
	struct world *w = *state;
	char first[DIGEST_HEX], second[DIGEST_HEX];

	good(w);
	memcpy(first, w->b->key, sizeof first);
	w->ask.extra_flags = "  -DCMAKE_C_FLAGS=-O1 ";
	good(w);
	assert_false(w->b->reused);
	memcpy(second, w->b->key, sizeof second);
	assert_string_not_equal(first, second);
	w->ask.extra_flags = NULL;
	repo_write(w->engine, "ggml/a.c", "int a(void);\nint a(void) { return 3; }\n", 0644);
	good(w);
	assert_false(w->b->reused);
	assert_string_not_equal(first, w->b->key);
}

static void
changed_program_is_built_again(void **state)
{
	struct world *w = *state;
	char hex[DIGEST_HEX];
	struct err e;

	good(w);
	repo_write(w->b->bin_dir, "llama-tiny", "not what the build made", 0755);
	good(w);
	assert_false(w->b->reused);
	assert_int_equal(digest_file(build_find(w->b, "llama-tiny")->path, hex, NULL, &e), 0);
	assert_string_equal(build_find(w->b, "llama-tiny")->sha256, hex);
}

/* A killed agent leaves a folder without a stamp: what is there is gone on with. */
static void
half_built_folder_is_continued(void **state)
{
	struct world *w = *state;
	char path[BUILD_PATH + 32];
	uint32_t whole;

	/* ninja can not read back a compiler's dependencies on a path with a quote. */
	snprintf(w->engine, sizeof w->engine, "%s/engine", w->root);
	engine_write(w);
	good(w);
	whole = w->total;
	snprintf(path, sizeof path, "%s/" BUILD_STAMP, w->b->folder);
	assert_int_equal(unlink(path), 0);
	w->total = 0;
	good(w);
	assert_false(w->b->reused);
	assert_true(w->total > 0 && w->total < whole); /* only the link is done again */
	assert_true(plat_is_file(path));
}

/* kill -9 in the middle: no lock is left, no stamp, and the next one finishes the work. */
static void
killed_build_is_finished_by_the_next(void **state)
{
	struct world *w = *state;
	char mark[300], script[800], stamp[BUILD_PATH + 32];
	int i, status;
	pid_t pid;

	if (!has_tools())
		skip();
	snprintf(mark, sizeof mark, "%s/mark", w->root);
	snprintf(script, sizeof script,
		"if test -e '%s'; then : >said.h; else : >'%s'; sleep 3; exit 1; fi\n", mark, mark);
	says(w, "once", script);
	w->ask.extra_flags = "-DSAYS=once";
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		w->ask.progress = NULL;
		if (source_get(&w->source_ask, w->log, &w->source, &w->why, &w->e) ||
		    build_engine(&w->ask, w->log, w->b, &w->why, &w->e))
			_exit(1);
		_exit(0);
	}
	for (i = 0; i < 600 && !plat_exists(mark); i++)
		usleep(100000);
	assert_true(plat_exists(mark));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	good(w);
	assert_false(w->b->reused);
	assert_false(w->waited);
	snprintf(stamp, sizeof stamp, "%s/" BUILD_STAMP, w->b->folder);
	assert_true(plat_is_file(stamp));
}

static char *
log_text(struct world *w)
{
	char *text;
	size_t n;

	assert_int_equal(plat_read_file(w->log_path, 1 << 24, &text, &n, &w->e), 0);
	return text;
}

static void
model_sources_are_compiled_together(void **state)
{
	struct world *w = *state;
	char *text;

	repo_write(w->engine, "models/a.c", "int ma(void);\nint ma(void) { return 1; }\n", 0644);
	repo_write(w->engine, "models/b.c", "int mb(void);\nint mb(void) { return 1; }\n", 0644);
	/* A name of its own: stays a file of its own. */
	repo_write(w->engine, "models/c.c",
		"static int own(void) { return 1; }\nint mc(void);\nint mc(void) { return own(); }\n",
		0644);
	good(w);
	assert_true(w->b->unity);
	text = log_text(w);
	assert_non_null(strstr(text, "verify: 2 model sources are compiled together"));
	assert_non_null(strstr(text, "Unity/unity_0_c.c.o"));
	assert_non_null(strstr(text, "models/c.c.o"));
	assert_null(strstr(text, "models/a.c.o"));
	free(text);
	good(w);
	assert_true(w->b->reused && w->b->unity);
}

/* Two sources that only together are wrong are not the engine's failure. */
static void
sources_that_can_not_be_joined_are_built_alone(void **state)
{
	struct world *w = *state;
	char *text;

	repo_write(w->engine, "models/a.c", "  static int x = 1;\nint ma(void);\nint ma(void) { return x; }\n", 0644);
	repo_write(w->engine, "models/b.c", "  static int x = 2;\nint mb(void);\nint mb(void) { return x; }\n", 0644);
	good(w);
	assert_false(w->b->unity);
	text = log_text(w);
	assert_non_null(strstr(text, "unity=given up"));
	free(text);
	/* But what is wrong alone fails. */
	repo_write(w->engine, "models/b.c", "int mb(void) { return undeclared; }\n", 0644);
	bad(w, REASON_BUILD_FAILED, "models/b.c:1:");
}

static void
shared_build_names_its_libraries(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DBUILD_SHARED_LIBS=ON";
	good(w);
	assert_int_equal(w->b->artifact_count, 2);
	assert_non_null(build_find(w->b, "libggml.so.1.2"));
	assert_false(build_find(w->b, "libggml.so.1.2")->program);
}

/* ---- failing ---- */

static void
compile_error_is_build_failed_with_its_line(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DMODE=error";
	bad(w, REASON_BUILD_FAILED, "main.c:2:13: error: ");
	assert_false(plat_exists(w->b->folder) && w->b->artifact_count > 0);
	bad(w, REASON_BUILD_FAILED, "undeclared"); /* and no stamp */
}

static void
link_error_is_build_failed(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DMODE=link";
	bad(w, REASON_BUILD_FAILED, "undefined reference to");
}

static void
cmake_error_is_configure_failed(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DMODE=nocmake";
	bad(w, REASON_CONFIGURE_FAILED, "CMakeLists.txt:6: the moon is not full");
}

static void
killed_compiler_is_toolchain_crash(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DSAYS=crash";
	bad(w, REASON_TOOLCHAIN_CRASH, "Killed signal terminated program cc1plus (making ");
	assert_int_equal(reason_outcome(w->why), OUTCOME_BLOCKED);
}

static void
native_without_a_gpu_is_no_gpu_at_build_time(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DSAYS=nogpu";
	bad(w, REASON_NO_GPU_AT_BUILD, "compute_No CUDA devices found.' (making ");
	assert_int_equal(reason_outcome(w->why), OUTCOME_BLOCKED);
}

static void
full_disk_is_disk_full(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DSAYS=full";
	bad(w, REASON_DISK_FULL, "No space left on device");
	assert_int_equal(w->e.code, ERR_NOSPACE);
}

static void
missing_compiler_is_tool_missing(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DCMAKE_CXX_COMPILER=/no/such/c++";
	bad(w, REASON_TOOL_MISSING, "no C++ compiler");
	w->ask.extra_flags = "-DCMAKE_C_COMPILER:FILEPATH=no-such-cc";
	bad(w, REASON_TOOL_MISSING, "no C compiler");
}

static void
compiler_that_fails_is_tool_broken(void **state)
{
	struct world *w = *state;
	char flag[400];

	repo_write(w->root, "cc", "#!/bin/sh\nexit 3\n", 0755);
	snprintf(flag, sizeof flag, "-DCMAKE_C_COMPILER=%s/cc", w->root);
	w->ask.extra_flags = flag;
	bad(w, REASON_TOOL_BROKEN, "exit 3");
}

static void
source_that_the_build_writes_is_source_changed(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DSAYS=write";
	bad(w, REASON_SOURCE_CHANGED, "the source changed");
}

static void
program_that_is_not_made_is_missing(void **state)
{
	struct world *w = *state;
	static const char *const nothing[] = {"llama-nothing"}, *const none[] = {"llama-none"};

	w->ask.programs = nothing;
	bad(w, REASON_ARTIFACT_MISSING, "llama-nothing");
	w->ask.programs = none;
	bad(w, REASON_BUILD_FAILED, "unknown target 'llama-none'");
}

static void
program_for_another_machine_is_refused(void **state)
{
	struct world *w = *state;
	static const char *const script[] = {"llama-script"};

	w->ask.target = target_find(ELSEWHERE);
	bad(w, REASON_ARTIFACT_WRONG_MACHINE, "llama-tiny is for ");
	w->ask.target = target_find("windows-x64-cpu");
	bad(w, REASON_ARTIFACT_WRONG_MACHINE, "llama-tiny is an ELF file for ");
	bad(w, REASON_ARTIFACT_WRONG_MACHINE, "needs programs of Windows for x86_64");
	w->ask.target = target_find(HERE);
	w->ask.programs = script;
	bad(w, REASON_ARTIFACT_WRONG_MACHINE, "llama-script is a script, not an ELF file for ");
}

static void
build_without_end_is_cut_off(void **state)
{
	struct world *w = *state;

	w->ask.extra_flags = "-DSAYS=sleep";
	w->ask.timeout_ms = 1500;
	bad(w, REASON_TIMEOUT, "no end within 1 s");
	w->ask.timeout_ms = 0;
	w->ticks = 0;
	w->cancel_after = 12;
	bad(w, REASON_CANCELLED, "cancelled");
}

/* A compiler that takes long over one file, and over no other. */
static void
slow_compiler(struct world *w)
{
	static char flag[400];
	char path[4096], script[8192];
	struct err e;

	assert_int_equal(plat_find_tool("cc", path, sizeof path, &e), 0);
	snprintf(script, sizeof script, "#!/bin/sh\n"
		"case \" $* \" in *\" -c \"*/ggml/a.c\" \"*) sleep 3 ;; esac\nexec %s \"$@\"\n", path);
	repo_write(w->root, "slow/cc", script, 0755);
	snprintf(flag, sizeof flag, "-DCMAKE_C_COMPILER=%s/slow/cc", w->root);
	w->ask.extra_flags = flag;
	w->ask.look_ms = 500;
}

static void
file_that_takes_long_is_named_while_it_does(void **state)
{
	struct world *w = *state;
	char *text;
	size_t n;

	slow_compiler(w);
	good(w);
	/* three seconds, looked at twice a second, and no step in them */
	assert_in_range(w->told, 2, 8);
	assert_true(strtol(strchr(w->told_text, '(') + 1, NULL, 10) >= 1);
	assert_int_equal(plat_read_file(w->log_path, 1 << 24, &text, &n, &w->e), 0);
	assert_non_null(strstr(text, "\nslowStep=ggml/a.c "));
	free(text);
}

static void
build_cut_off_says_what_it_was_compiling(void **state)
{
	struct world *w = *state;

	slow_compiler(w);
	w->ask.timeout_ms = 2000;
	bad(w, REASON_TIMEOUT, "no end within 2 s, compiling ggml/a.c (");
}

static void
flags_of_a_word_processor_are_refused(void **state)
{
	struct world *w = *state;
	struct err e;

	assert_int_equal(build_flags_check("-DCMAKE_BUILD_TYPE=\xe2\x80\x9cRelease\xe2\x80\x9d", &e), -1);
	assert_non_null(strstr(e.msg, "typographic"));
	assert_int_equal(build_flags_check("\xe2\x80\x93" "DX=1", &e), -1);
	assert_int_equal(build_flags_check("-DX='1'", &e), -1);
	assert_int_equal(build_flags_check("-P evil.cmake", &e), -1);
	assert_int_equal(build_flags_check("-B/elsewhere", &e), -1);
	assert_int_equal(build_flags_check("--build x", &e), -1);
	assert_int_equal(build_flags_check("-DX=\xff", &e), -1);
	assert_int_equal(build_flags_check("-D", &e), -1);
	assert_int_equal(build_flags_check("", &e), 0);
	assert_int_equal(build_flags_check(NULL, &e), 0);
	assert_int_equal(build_flags_check(" -DA=1\t-DB=x;y -UC -Wno-dev ", &e), 0);
	assert_int_equal(build_flags_check("-DP=/home/j\xc3\xb6rg/x", &e), 0);
	w->ask.extra_flags = "-DCMAKE_BUILD_TYPE=\xe2\x80\x9cRelease\xe2\x80\x9d";
	bad(w, REASON_BAD_FLAGS, "typographic");
}

/* ---- the cache ---- */

static void
second_job_waits_and_can_be_cancelled(void **state)
{
	struct world *w = *state;
	char path[BUILD_PATH + 8];
	int fd;

	good(w);
	snprintf(path, sizeof path, "%s.lock", w->b->folder);
	build_release(w->b);
	assert_int_equal(lock_try(path, true, &fd, &w->e), 0);
	w->ticks = 0;
	w->cancel_after = 6;
	bad(w, REASON_CANCELLED, "waiting");
	assert_true(w->waited);
	lock_release(fd);
	w->cancel_after = 0;
	good(w);
	assert_true(w->b->reused);
}

static void
oldest_build_goes_unless_it_is_in_use(void **state)
{
	struct world *w = *state;
	struct build_info *held = calloc(1, sizeof *held);
	char old[BUILD_PATH];

	assert_non_null(held);
	good(w);
	*held = *w->b; /* the lock goes along */
	memset(w->b, 0, sizeof *w->b);
	memcpy(old, held->folder, sizeof old);
	w->ask.keep = 1;
	w->ask.extra_flags = "-DMODE=other";
	good(w);
	assert_true(plat_is_dir(old));
	build_release(held);
	good(w);
	assert_true(w->b->reused);
	assert_false(plat_exists(old));
	assert_true(plat_is_dir(w->b->folder));
	free(held);
}

static void
cache_is_bounded_by_bytes(void **state)
{
	struct world *w = *state;
	char old[BUILD_PATH];

	good(w);
	memcpy(old, w->b->folder, sizeof old);
	w->ask.keep_bytes = 1;
	w->ask.extra_flags = "-DMODE=other";
	good(w);
	assert_false(plat_exists(old));
	assert_true(plat_is_file(build_find(w->b, "llama-tiny")->path));
}

/* ---- the managed output ---- */

static char stock_types[][ELOG_TYPE] = {"f16", "q8_0"};

static void
install(struct world *w, const char *suite, struct install_info *out)
{
	struct suite *s;
	struct install_ask ask = {.build = w->b, .source = &w->source,
		.target = w->ask.target, .types = stock_types, .type_count = 2,
		.out_dir = w->out};
	enum reason why;

	assert_int_equal(suite_builtin(suite, &s, &w->e), 0);
	ask.suite = s;
	if (build_install(&ask, w->log, out, &why, &w->e))
		fail_msg("%s: %s", reason_name(why), w->e.msg);
	suite_free(s);
}

static bool
is_there(const struct world *w, const char *name)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", w->out, name);
	return plat_is_file(path);
}

static void
publishable_build_is_installed_whole(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;
	char path[600], hex[DIGEST_HEX], none[8];

	w->ask.extra_flags = "-DBUILD_SHARED_LIBS=ON";
	good(w);
	install(w, "llama.cpp", in);
	assert_true(in->installed);
	assert_string_equal(in->folder, w->out);
	assert_true(is_there(w, "CAPABILITIES.json") && is_there(w, BUILD_STAMP));
	snprintf(path, sizeof path, "%s/llama-tiny", w->out);
	assert_int_equal(digest_file(path, hex, NULL, &w->e), 0);
	assert_string_equal(hex, build_find(w->b, "llama-tiny")->sha256);
	assert_true(is_there(w, "libggml.so.1")); /* a link to the library beside it */
	/* It runs from where it was installed, without the build. */
	assert_int_equal(plat_remove_tree(w->b->folder, &w->e), 0);
	assert_int_equal(repo_exec("/", none, sizeof none, (const char *const[]){path, NULL}), 0);
}

static void
publish_gate_leaves_what_stood_there(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;
	char path[BUILD_PATH + 32];

	good(w);
	repo_write(w->out, "CAPABILITIES.json", "old", 0644);
	repo_write(w->out, "llama-tiny", "old", 0755);
	install(w, "eliza-1", in);
	assert_false(in->installed);
	assert_string_equal(in->gate, "required kernels are missing: "
		"turbo3, turbo4, turbo3_tcq, qjl_full, polarquant");
	assert_string_equal(in->folder, w->b->folder);
	snprintf(path, sizeof path, "%s/CAPABILITIES.json", w->b->folder);
	assert_true(plat_is_file(path));
	assert_false(is_there(w, BUILD_STAMP));
}

static void
new_output_replaces_the_old_one_whole(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;

	good(w);
	repo_write(w->out, "CAPABILITIES.json", "old", 0644);
	repo_write(w->out, "llama-old", "old", 0755);
	install(w, "llama.cpp", in);
	assert_true(in->installed);
	assert_true(is_there(w, "llama-tiny"));
	assert_false(is_there(w, "llama-old"));
}

static void
folder_of_other_things_is_left_alone(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;

	good(w);
	repo_write(w->out, "letters.txt", "dear", 0644);
	install(w, "llama.cpp", in);
	assert_false(in->installed);
	assert_true(is_there(w, "letters.txt"));
	assert_non_null(strstr(in->gate, "left alone"));
}

/* Killed between the two renames of a kernel that can not exchange. */
static void
install_that_died_is_undone_by_the_next(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;
	char parent[300], old[64], path[700];

	good(w);
	snprintf(parent, sizeof parent, "%s/state/bin/mtp", w->root);
	snprintf(old, sizeof old, ".%s.old/CAPABILITIES.json", HERE);
	repo_write(parent, old, "old", 0644);
	snprintf(old, sizeof old, ".%s.new/llama-tiny", HERE);
	repo_write(parent, old, "half", 0644);
	install(w, "eliza-1", in); /* the gate stops it: nothing is touched */
	assert_false(is_there(w, "CAPABILITIES.json"));
	install(w, "llama.cpp", in);
	assert_true(in->installed);
	assert_true(is_there(w, "llama-tiny"));
	snprintf(path, sizeof path, "%s/.%s.old", parent, HERE);
	assert_false(plat_exists(path));
	snprintf(path, sizeof path, "%s/.%s.new", parent, HERE);
	assert_false(plat_exists(path));
}

static void
output_folder_follows_the_variables(void **state)
{
	char dir[600];
	struct err e;
	const struct target *t = target_find(HERE);

	(void)state;
	unsetenv("ELIZA_MTP_BIN_DIR");
	unsetenv("ELIZA_DFLASH_BIN_DIR");
	unsetenv("ELIZA_STATE_DIR");
	setenv("HOME", "/home/x", 1);
	assert_int_equal(build_output_dir(t, dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/home/x/.eliza/local-inference/bin/mtp/" HERE);
	setenv("ELIZA_STATE_DIR", "/srv/e", 1);
	assert_int_equal(build_output_dir(t, dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/srv/e/local-inference/bin/mtp/" HERE);
	setenv("ELIZA_DFLASH_BIN_DIR", "/older", 1);
	assert_int_equal(build_output_dir(t, dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/older");
	setenv("ELIZA_MTP_BIN_DIR", "/newer", 1);
	assert_int_equal(build_output_dir(t, dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/newer");
	/* the Vulkan runner's own word comes first, and is nobody else's */
	setenv("ELIZA_MTP_TARGET_OUT_DIR", "/vulkan", 1);
	assert_int_equal(build_output_dir(t, dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/newer");
	assert_int_equal(build_output_dir(target_find("linux-x64-vulkan"), dir, sizeof dir, &e), 0);
	assert_string_equal(dir, "/vulkan");
	unsetenv("ELIZA_MTP_TARGET_OUT_DIR");
	unsetenv("ELIZA_MTP_BIN_DIR");
	unsetenv("ELIZA_DFLASH_BIN_DIR");
	unsetenv("ELIZA_STATE_DIR");
}

/* ---- prebuilt ---- */

static void
prebuilt(struct world *w, struct prebuilt_ask *ask, enum reason why, const char *has)
{
	build_release(w->b);
	memset(&w->e, 0, sizeof w->e);
	assert_int_equal(build_prebuilt(ask, w->log, w->b, &w->why, &w->e),
		why == REASON_NONE ? 0 : -1);
	if (w->why != why || strstr(w->e.msg, has) == NULL)
		fail_msg("%s: %s", reason_name(w->why), w->e.msg);
}

static void
prebuilt_engine_needs_both_variables_and_a_file(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;
	struct prebuilt_ask ask = {.bin_dir = w->out, .target = w->ask.target,
		.programs = programs, .program_count = 1, .source = &w->source};
	static const char *const other[] = {"llama-other"};
	char path[600];

	good(w);
	install(w, "llama.cpp", in);
	prebuilt(w, &ask, REASON_PREBUILT_REFUSED, "ELIZA_MTP_SKIP_BUILD");
	ask.skip_build = true;
	prebuilt(w, &ask, REASON_PREBUILT_REFUSED, "ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE");
	ask.allow_prebuilt = true;
	prebuilt(w, &ask, REASON_NONE, "");
	assert_true(w->b->prebuilt);
	assert_string_equal(w->b->tree, w->source.tree);
	assert_int_equal(w->b->artifact_count, 1);
	ask.programs = other;
	prebuilt(w, &ask, REASON_PREBUILT_REFUSED, "does not name llama-other");
	ask.programs = programs;
	ask.target = target_find(ELSEWHERE);
	prebuilt(w, &ask, REASON_PREBUILT_REFUSED, "is for " HERE);
	ask.target = target_find(HERE);
	snprintf(path, sizeof path, "%s/CAPABILITIES.json", w->out);
	assert_int_equal(unlink(path), 0);
	prebuilt(w, &ask, REASON_PREBUILT_REFUSED, "CAPABILITIES.json");
}

static void
stale_prebuilt_engine_is_blocked(void **state)
{
	struct world *w = *state;
	struct install_info *in = &w->in;
	struct prebuilt_ask ask = {.bin_dir = w->out, .target = w->ask.target,
		.programs = programs, .program_count = 1, .skip_build = true,
		.allow_prebuilt = true, .source = &w->source};
	char tiny[600], self[4096], one = 'x';
	int fd;

	good(w);
	install(w, "llama.cpp", in);
	/* of another tree than the one under test */
	w->source.tree[0] = w->source.tree[0] == 'a' ? 'b' : 'a';
	prebuilt(w, &ask, REASON_STALE_BINARY, "was built from tree");
	w->source.tree[0] = '\0';
	prebuilt(w, &ask, REASON_NONE, "");
	/* changed since */
	snprintf(tiny, sizeof tiny, "%s/llama-tiny", w->out);
	assert_true((fd = open(tiny, O_WRONLY | O_APPEND)) >= 0);
	assert_int_equal(write(fd, &one, 1), 1);
	close(fd);
	prebuilt(w, &ask, REASON_STALE_BINARY, "llama-tiny is not the file");
	/* another program under the name */
	assert_int_equal(plat_self(self, sizeof self, &w->e), 0);
	assert_int_equal(unlink(tiny), 0);
	assert_int_equal(symlink(self, tiny), 0);
	prebuilt(w, &ask, REASON_STALE_BINARY, "llama-tiny is not the file");
	/* no program at all */
	assert_int_equal(unlink(tiny), 0);
	repo_write(w->out, "llama-tiny", "#!/bin/sh\necho far too short to be anything real\nexit 0\n", 0755);
	prebuilt(w, &ask, REASON_STALE_BINARY, "not an ELF file");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(built_program_is_proved_and_reused),
		T(log_says_built_then_reused),
		T(flags_and_source_make_another_key),
		T(changed_program_is_built_again),
		T(half_built_folder_is_continued),
		T(killed_build_is_finished_by_the_next),
		T(model_sources_are_compiled_together),
		T(sources_that_can_not_be_joined_are_built_alone),
		T(shared_build_names_its_libraries),
		T(compile_error_is_build_failed_with_its_line),
		T(link_error_is_build_failed),
		T(cmake_error_is_configure_failed),
		T(killed_compiler_is_toolchain_crash),
		T(native_without_a_gpu_is_no_gpu_at_build_time),
		T(full_disk_is_disk_full),
		T(missing_compiler_is_tool_missing),
		T(compiler_that_fails_is_tool_broken),
		T(source_that_the_build_writes_is_source_changed),
		T(program_that_is_not_made_is_missing),
		T(program_for_another_machine_is_refused),
		T(build_without_end_is_cut_off),
		T(file_that_takes_long_is_named_while_it_does),
		T(build_cut_off_says_what_it_was_compiling),
		T(flags_of_a_word_processor_are_refused),
		T(second_job_waits_and_can_be_cancelled),
		T(oldest_build_goes_unless_it_is_in_use),
		T(cache_is_bounded_by_bytes),
		T(publishable_build_is_installed_whole),
		T(publish_gate_leaves_what_stood_there),
		T(new_output_replaces_the_old_one_whole),
		T(folder_of_other_things_is_left_alone),
		T(install_that_died_is_undone_by_the_next),
		cmocka_unit_test(output_folder_follows_the_variables),
		T(prebuilt_engine_needs_both_variables_and_a_file),
		T(stale_prebuilt_engine_is_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
