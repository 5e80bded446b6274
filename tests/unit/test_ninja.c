#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/ninja.h"
#include "common/str.h"

struct steps {
	int n;
	uint32_t done, total;
	char text[NINJA_TEXT];
};

static void
step(void *arg, uint32_t done, uint32_t total, const char *text)
{
	struct steps *s = arg;

	s->n++;
	s->done = done;
	s->total = total;
	snprintf(s->text, sizeof s->text, "%s", text);
}

/* In chunks of `size` bytes. */
static void
feed(struct ninja *n, struct steps *s, const char *text, size_t size)
{
	size_t len = strlen(text), k;

	memset(s, 0, sizeof *s);
	ninja_init(n, step, s);
	for (; len > 0; len -= k, text += k) {
		k = len < size ? len : size;
		ninja_add(n, text, k);
	}
	ninja_end(n);
}

static void
steps_are_counted_whatever_the_chunks(void **state)
{
	static const char log[] = "[0/2] Re-checking globbed directories...\n"
		"[1/2] Building C object a.o\nwarning: [3/9] no status\n"
		"\033[1m[2/2] Linking C executable b\033[0m";
	struct ninja n;
	struct steps s;
	size_t size;

	(void)state;
	for (size = 1; size < sizeof log; size++) {
		feed(&n, &s, log, size);
		assert_int_equal(s.n, 3);
		assert_int_equal(s.done, 2);
		assert_int_equal(s.total, 2);
		assert_string_equal(s.text, "Linking C executable b");
		assert_int_equal(n.trouble, NINJA_FINE);
	}
}

static void
strange_counts_are_no_progress(void **state)
{
	struct ninja n;
	struct steps s;

	(void)state;
	feed(&n, &s, "[3/2] x\n[/] x\n[1/0] x\n[-1/2] x\n[99999999999/99999999999] x\n"
		"[1/2]x\n[1/2\n[\n[]\n", 7);
	assert_int_equal(s.n, 0);
	assert_int_equal(n.total, 0);
}

/* The words a failing build of each kind really prints, and what must come of it. */
static const struct {
	const char *log;
	enum ninja_trouble trouble;
	const char *reason;
} rows[] = {
	/* gcc; the command that ninja repeats is no error line */
	{"[1/2] Building C object a.o\nFAILED: CMakeFiles/a.dir/a.c.o \n"
	 "/usr/bin/cc -DX=\": error: \" -c a.c\n"
	 "a.c: In function 'f':\na.c:3:5: error: unknown type name 'foo'\n"
	 "a.c:9:5: error: later\nninja: build stopped: subcommand failed.\n",
	 NINJA_ERROR, "a.c:3:5: error: unknown type name 'foo'"},
	{"FAILED: [code=1] a.o \ncc\na.h:1:10: fatal error: b.h: No such file or directory\n",
	 NINJA_ERROR, "a.h:1:10: fatal error: b.h: No such file or directory"},
	{"FAILED: bin/x \nc++\n/usr/bin/ld: a.o: in function `main':\n"
	 "a.c:(.text+0xe): undefined reference to `g'\n"
	 "collect2: error: ld returned 1 exit status\n",
	 NINJA_ERROR, "a.c:(.text+0xe): undefined reference to `g'"},
	{"FAILED: x.o \nnvcc\nnvcc fatal   : Unsupported gpu architecture 'compute_120a'\n",
	 NINJA_TOO_OLD, "nvcc fatal   : Unsupported gpu architecture 'compute_120a' (making x.o)"},
	{"FAILED: gen.h \n./gen\nno such table\nmore\n", NINJA_FINE, "FAILED: gen.h: no such table"},
	{"FAILED: gen.h \n./gen\nninja: build stopped: subcommand failed.\n", NINJA_FINE,
	 "FAILED: gen.h"},
	{"ninja: error: unknown target 'llama-none'\n", NINJA_ERROR,
	 "ninja: error: unknown target 'llama-none'"},
	/* compilers that die: the file is named */
	{"FAILED: src/big.cpp.o \nc++\n"
	 "c++: fatal error: Killed signal terminated program cc1plus\n"
	 "compilation terminated.\n", NINJA_CRASH,
	 "c++: fatal error: Killed signal terminated program cc1plus (making src/big.cpp.o)"},
	{"FAILED: a.o \ncc\nSegmentation fault\n", NINJA_CRASH, "Segmentation fault (making a.o)"},
	{"FAILED: a.o \ncc\nKilled\n", NINJA_CRASH, "Killed (making a.o)"},
	{"FAILED: a.o \ncc\na.c:1:9: error: x\n  1 | Killed by it\n", NINJA_ERROR, "a.c:1:9: error: x"},
	{"FAILED: a.o \ncc\na.c:1:1: internal compiler error: Segmentation fault\n",
	 NINJA_CRASH,
	 "a.c:1:1: internal compiler error: Segmentation fault (making a.o)"},
	{"FAILED: k.cu.o \nnvcc\n"
	 "nvcc error   : 'ptxas' died due to signal 11 (Invalid memory reference)\n",
	 NINJA_CRASH, "nvcc error   : 'ptxas' died due to signal 11 "
	 "(Invalid memory reference) (making k.cu.o)"},
	{"FAILED: x \nc++\ncollect2: fatal error: ld terminated with signal 9 [Killed]\n",
	 NINJA_CRASH, "collect2: fatal error: ld terminated with signal 9 [Killed] (making x)"},
	{"FAILED: a.o \nclang\nclang: error: unable to execute command: Killed\n"
	 "clang: error: clang frontend command failed due to signal (use -v)\n", NINJA_CRASH,
	 "clang: error: unable to execute command: Killed (making a.o)"},
	/* what the source says wrong first is not excused by a later crash */
	{"FAILED: a.o \ncc\na.c:1:1: error: x\nFAILED: b.o \ncc\n"
	 "cc: fatal error: Killed signal terminated program cc1\n", NINJA_ERROR,
	 "a.c:1:1: error: x"},
	/* a full disk explains all the rest */
	{"FAILED: a.o \ncc\na.c:1:1: error: x\n"
	 "/tmp/cc.s: fatal error: error writing to a.s: No space left on device\n",
	 NINJA_NOSPACE,
	 "/tmp/cc.s: fatal error: error writing to a.s: No space left on device (making a.o)"},
	{"FAILED: lib.so \nc++\n/usr/bin/ld: final link failed: No space left on device\n"
	 "collect2: error: ld returned 1 exit status\n", NINJA_NOSPACE,
	 "/usr/bin/ld: final link failed: No space left on device (making lib.so)"},
	/* cmake: where, and what */
	{"-- The C compiler identification is GNU\n"
	 "CMake Error at CMakeLists.txt:12 (message):\n  the moon is not full\n\n\n"
	 "-- Configuring incomplete, errors occurred!\n", NINJA_ERROR,
	 "CMakeLists.txt:12: the moon is not full"},
	{"CMake Error at CMakeLists.txt:2 (project):\n"
	 "  No CMAKE_CXX_COMPILER could be found.\n", NINJA_MISSING,
	 "No CMAKE_CXX_COMPILER could be found."},
	{"CMake Error: CMake was unable to find a build program corresponding to \"Ninja\".\n",
	 NINJA_MISSING,
	 "CMake Error: CMake was unable to find a build program corresponding to \"Ninja\"."},
	{"CMake Error at x.cmake:67 (message):\n  The C compiler\n\n    \"/usr/bin/cc\"\n\n"
	 "  is not able to compile a simple test program.\n", NINJA_BROKEN,
	 "is not able to compile a simple test program."},
	{"CMake Error: The source directory \"/x\" does not exist.\n", NINJA_ERROR,
	 "CMake Error: The source directory \"/x\" does not exist."},
	/* the tool and the file, whoever it was */
	{"FAILED: mmq-instance-q8_0.cu.o \nnvcc\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\n",
	 NINJA_CRASH, "nvcc error   : 'cicc' died due to signal 9 (Kill signal) (making mmq-instance-q8_0.cu.o)"},
	{"FAILED: [code=255] k.cu.o \nnvcc\nptxas fatal   : (C7907) Internal compiler error\n", NINJA_CRASH,
	 "ptxas fatal   : (C7907) Internal compiler error (making k.cu.o)"},
	{"FAILED: k.cu.o \nnvcc\nptxas fatal   : Memory allocation failure\n", NINJA_CRASH,
	 "ptxas fatal   : Memory allocation failure (making k.cu.o)"},
	{"FAILED: k.obj \nnvcc\nnvcc error   : 'cudafe++' died with status 0xC0000005 (ACCESS_VIOLATION)\n",
	 NINJA_CRASH, "nvcc error   : 'cudafe++' died with status 0xC0000005 (ACCESS_VIOLATION) (making k.obj)"},
	{"FAILED: a.obj \ncl\na.cpp(9): fatal error C1001: Internal compiler error.\n", NINJA_CRASH,
	 "a.cpp(9): fatal error C1001: Internal compiler error. (making a.obj)"},
	{"FAILED: a.o \nhipcc\nclang++: error: clang frontend command failed with exit code 139 (use -v to see "
	 "invocation)\n", NINJA_CRASH,
	 "clang++: error: clang frontend command failed with exit code 139 (use -v to see invocation) (making a.o)"},
	{"FAILED: a.o \nc++\ncc1plus: out of memory allocating 65536 bytes after a total of 1 bytes\n", NINJA_CRASH,
	 "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes (making a.o)"},
	{"FAILED: mul_mm.spv \nglslc\nterminate called after throwing an instance of 'std::bad_alloc'\n", NINJA_CRASH,
	 "terminate called after throwing an instance of 'std::bad_alloc' (making mul_mm.spv)"},
	{"ninja: fatal: fork: Cannot allocate memory\n", NINJA_CRASH, "ninja: fatal: fork: Cannot allocate memory"},
	/* killed without a word: newer ninja gives the code */
	{"FAILED: [code=137] ggml/a.cu.o \nnvcc -c a.cu\nninja: build stopped: subcommand failed.\n", NINJA_CRASH,
	 "the compiler ended with code 137 (signal 9) (making ggml/a.cu.o)"},
	{"FAILED: [code=1] gen.h \n./gen\nno such table\n", NINJA_FINE, "FAILED: gen.h: no such table"},
	/* an error of the source is one, whatever ptxas says of it last */
	{"FAILED: k.cu.o \nnvcc\nptxas /tmp/x.ptx, line 9; error   : Feature '.scale_vec::2X' not supported on "
	 ".target 'sm_120'\nptxas fatal   : Ptx assembly aborted due to errors\n", NINJA_ERROR,
	 "ptxas /tmp/x.ptx, line 9; error   : Feature '.scale_vec::2X' not supported on .target 'sm_120'"},
	{"FAILED: k.cu.o \nnvcc\nptxas fatal   : Unresolved extern function '_Z1f'\n", NINJA_ERROR,
	 "ptxas fatal   : Unresolved extern function '_Z1f'"},
	/* built where no GPU is seen (BR-044), in every tool's words */
	{"FAILED: a.cu.o \nnvcc\nnvcc fatal   : Unsupported gpu architecture 'compute_No CUDA devices found.'\n",
	 NINJA_NO_GPU, "nvcc fatal   : Unsupported gpu architecture 'compute_No CUDA devices found.' (making a.cu.o)"},
	{"CMake Error in CMakeLists.txt:\n  CUDA_ARCHITECTURES is set to \"native\", but no GPU was detected.\n\n\n",
	 NINJA_NO_GPU, "CUDA_ARCHITECTURES is set to \"native\", but no GPU was detected."},
	{"CMake Error at /u/CMakeDetermineHIPCompiler.cmake:224 (message):\n"
	 "  Failed to find a default HIP architecture.\n", NINJA_NO_GPU, "Failed to find a default HIP architecture."},
	{"FAILED: a.o \nclang++\nclang++: error: cannot determine hip architecture: No AMD GPU detected in the "
	 "system; consider passing it via '--offload-arch'\n", NINJA_NO_GPU,
	 "clang++: error: cannot determine hip architecture: No AMD GPU detected in the system; consider passing it "
	 "via '--offload-arch' (making a.o)"},
	{"CMake Error at /u/CMakeDetermineCompilerId.cmake:726 (message):\n  Compiling the CUDA compiler identification "
	 "source file\n  \"CMakeCUDACompilerId.cu\" failed.\n\n  nvcc fatal : Unsupported gpu architecture 'compute_'\n",
	 NINJA_NO_GPU, "nvcc fatal : Unsupported gpu architecture 'compute_'"},
	/* compilers that do not fit the chip or each other: the source is not to blame */
	{"FAILED: a.o \nnvcc\n/u/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than "
	 "13 are not supported!\n", NINJA_TOO_OLD, "/u/host_config.h:143:2: error: #error -- unsupported GNU version! "
	 "gcc versions later than 13 are not supported! (making a.o)"},
	{"FAILED: a.o \nnvcc\nptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n", NINJA_TOO_OLD,
	 "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name' (making a.o)"},
	{"CMake Error at /u/CMakeDetermineCUDACompiler.cmake:603 (message):\n  Failed to detect a default CUDA "
	 "architecture.\n\n\n\n  Compiler output:\n\n", NINJA_BROKEN, "Failed to detect a default CUDA architecture."},
	/* a line of the source that is shown below a warning says nothing of the disk */
	{"FAILED: a.o \ncc\na.c:3:2: warning: unused [-Wunused]\n    3 |  die(\"No space left on device\");\n"
	 "      |  ^~~\na.c:9:1: error: real\n", NINJA_ERROR, "a.c:9:1: error: real"},
	{"", NINJA_FINE, "no output at all"},
	/* warnings are none */
	{"a.c:1:1: warning: error handling is odd [-Wx]\n", NINJA_FINE,
	 "a.c:1:1: warning: error handling is odd [-Wx]"},
};

static void
first_error_line_is_the_headline(void **state)
{
	struct ninja n;
	struct steps s;
	char out[600];
	size_t i, size;

	(void)state;
	for (i = 0; i < str_count(rows); i++)
		for (size = 1; size < 200; size += 66) {
			feed(&n, &s, rows[i].log, size);
			ninja_reason(&n, out, sizeof out);
			assert_string_equal(out, rows[i].reason);
			assert_int_equal(n.trouble, rows[i].trouble);
		}
}

static void
colour_hides_nothing(void **state)
{
	struct ninja n;
	struct steps s;

	(void)state;
	feed(&n, &s, "\033[01m\033[Ka.c:3:5:\033[m\033[K \033[01;31m\033[Kerror: \033[m\033[Kbad\n", 5);
	assert_int_equal(n.trouble, NINJA_ERROR);
	assert_string_equal(n.headline, "a.c:3:5: error: bad");
}

static void
endless_line_is_cut(void **state)
{
	struct ninja n;
	int i;

	(void)state;
	ninja_init(&n, NULL, NULL);
	for (i = 0; i < 100000; i++)
		ninja_add(&n, "xxxxxxxxxx", 10);
	ninja_add(&n, "\na.c:1:1: error: y\n", 19);
	ninja_end(&n);
	assert_string_equal(n.headline, "a.c:1:1: error: y");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_counted_whatever_the_chunks),
		cmocka_unit_test(strange_counts_are_no_progress),
		cmocka_unit_test(first_error_line_is_the_headline),
		cmocka_unit_test(colour_hides_nothing),
		cmocka_unit_test(endless_line_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
