/* The CUDA and HIP backends over drivers that fail in known ways (tests/fake).  Each group
 * runs in a process of its own, whose library path begins with its driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/backend.h"
#include "kernels/gpu_api.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_plan.h"

/* Instead of the program's own code: small, and known. */
static const uint32_t one[4] = { 0xba55ed50, 1, 2, 3 }, two[4] = { 0xba55ed50, 4, 5, 6 };
static const char source[] = "kernel";
#define BYTES(a) (const uint8_t *)(a), (const uint8_t *)(a) + sizeof(a)
const struct gpu_code gpu_code[] = {
	{ "one.fatbin", "sm_80 sm_86 sm_90a compute_80", GPU_CODE_CUDA, BYTES(one) },
	{ "two.fatbin", "sm_80 sm_86 sm_90a compute_80", GPU_CODE_CUDA, BYTES(two) },
	{ "one.gfx90a.co", "gfx90a", GPU_CODE_HIP, BYTES(one) },
	{ "kernels/one.cu", "", GPU_CODE_SOURCE, BYTES(source) },
	{ "kernels/two.cu", "", GPU_CODE_SOURCE, BYTES(source) },
	{ "kernels/one.h", "", GPU_CODE_SOURCE, BYTES(source) },
	{ NULL, NULL, GPU_CODE_CUDA, NULL, NULL },
};

static char folder[64]; /* of this process */

static int
ask(const char *library, const char *function)
{
	void *h = dlopen(library, RTLD_NOW);
	int (*f)(void);
	void *p;

	assert_non_null(h);
	p = dlsym(h, function);
	assert_non_null(p);
	memcpy(&f, &p, sizeof f);
	return f();
}

static int
cuda_live(void)
{
	return ask("libcuda.so.1", "fake_cuda_live");
}

static void
scenario(const char *name)
{
	assert_int_equal(setenv("FAKE_CUDA", name, 1), 0);
	assert_int_equal(setenv("FAKE_HIP", name, 1), 0);
}

static void
assert_says(const struct err *e, enum err_code code, const char *text)
{
	if (e->code != code || strstr(e->msg, text) == NULL)
		fail_msg("%s \"%s\" instead of %s \"%s\"", err_name(e->code), e->msg,
			err_name(code), text);
}

static struct backend_device
device(const struct kernel_backend *b)
{
	struct backend_device d[4];
	struct err e = { 0 };
	size_t n = 0;

	assert_int_equal(b->list(d, 4, &n, &e), 0);
	if (n == 0)
		fail_msg("no device: %s", e.msg);
	return d[0];
}

static struct backend_session *
opened(const struct kernel_backend *b)
{
	struct backend_device d = device(b);
	struct backend_session *s = NULL;
	struct err e = { 0 };

	if (b->open(&d, &s, &e))
		fail_msg("open: %s", e.msg);
	return s;
}

static struct backend_buffer *
buffer(const struct kernel_backend *b, struct backend_session *s, size_t bytes)
{
	struct backend_buffer *out = NULL;
	struct err e = { 0 };

	if (b->buffer_new(s, bytes, &out, &e))
		fail_msg("buffer: %s", e.msg);
	return out;
}

/* A problem of 2 heads and 4 keys that any kernel takes; all in one buffer. */
static struct backend_args
problem(struct backend_buffer *b)
{
	struct backend_args a = { .n_heads = 2, .n_kv_heads = 1, .n_kv = 4, .sm_scale = 1,
		.q = { b, 0, 4096 }, .k = { b, 4096, 4096 }, .v = { b, 8192, 4096 },
		.out = { b, 12288, 4096 } };

	return a;
}

/* ---- CUDA ----------------------------------------------------------------------- */

static void
a_cuda_device_is_told_as_the_driver_says(void **state)
{
	struct backend_device d;

	(void)state;
	scenario("");
	d = device(&backend_cuda);
	assert_string_equal(d.name, "FAKE GPU 0");
	assert_string_equal(d.uuid, "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe00");
	assert_string_equal(d.arch, "sm_90");
	assert_string_equal(d.pci, "0000:a0:00.0");
	assert_string_equal(d.api, "CUDA 13.1");
	assert_string_equal(d.note, "");
	assert_true(d.memory == UINT64_C(80) << 30);
	assert_false(d.software || d.emulated);
	scenario("noname");
	d = device(&backend_cuda);
	assert_non_null(strstr(d.note, "cuDeviceGetName: CUDA_ERROR_INVALID_DEVICE"));
}

static void
without_a_cuda_device_the_list_is_empty_and_says_why(void **state)
{
	static const struct {
		const char *scenario, *says;
	} rows[] = {
		{ "stub", "cuInit: CUDA_ERROR_STUB_LIBRARY" },
		{ "mismatch", "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" },
		{ "none", "cuInit: CUDA_ERROR_NO_DEVICE" },
		{ "empty", "cuDeviceGetCount: 0 devices" },
	};
	struct backend_device d[4];
	struct err e;
	size_t i, n, index;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		scenario(rows[i].scenario);
		memset(&e, 0, sizeof e);
		n = 9;
		assert_int_equal(backend_cuda.list(d, 4, &n, &e), 0);
		assert_int_equal(n, 0);
		assert_non_null(strstr(e.msg, rows[i].says));
		assert_int_equal(backend_choose(&backend_cuda, d, n, NULL, true, &index, &e), -1);
		assert_int_equal(e.code, ERR_NO_DEVICE);
		assert_int_equal(err_exit(e.code), EXIT_BLOCKED);
	}
}

static void
two_devices_of_one_uuid_are_listed_and_not_chosen(void **state)
{
	struct backend_device d[4];
	struct err e = { 0 };
	size_t n = 0, index;

	(void)state;
	scenario("twins");
	assert_int_equal(backend_cuda.list(d, 4, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_string_equal(d[0].uuid, d[1].uuid);
	assert_string_not_equal(d[0].pci, d[1].pci);
	assert_int_equal(backend_choose(&backend_cuda, d, n, d[0].uuid, true, &index, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(backend_choose(&backend_cuda, d, n, "1", true, &index, &e), 0);
	assert_int_equal(index, 1);
	assert_int_equal(backend_cuda.list(d, 1, &n, &e), 0);
	assert_int_equal(n, 1);
}

static void
the_code_is_told_by_digest_and_by_what_the_driver_takes(void **state)
{
	struct backend_session *s;
	struct backend_code c;
	struct digest *d = digest_new();
	char want[DIGEST_HEX];

	(void)state;
	assert_non_null(d);
	digest_add(d, one, sizeof one);
	digest_add(d, two, sizeof two);
	digest_end(d, want);
	scenario("");
	s = opened(&backend_cuda);
	assert_int_equal(backend_cuda.code(s, &c, 1), 1);
	assert_string_equal(c.sha256, want);
	assert_string_equal(c.how, "sm_90a");
	backend_cuda.close(s);
	scenario("new");
	s = opened(&backend_cuda);
	assert_int_equal(backend_cuda.code(s, &c, 1), 1);
	assert_string_equal(c.how, "PTX of compute_80, compiled by the driver");
	backend_cuda.close(s);
	assert_int_equal(cuda_live(), 0);
}

static void
code_that_the_driver_refuses_is_unsupported_and_never_a_pass(void **state)
{
	static const struct {
		const char *scenario, *says;
	} rows[] = {
		{ "nobinary", "one.fatbin: cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ "image", "one.fatbin: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE" },
	};
	struct backend_session *s = NULL;
	struct backend_device d;
	struct err e;
	size_t i;

	(void)state;
	scenario("");
	d = device(&backend_cuda);
	for (i = 0; i < str_count(rows); i++) {
		scenario(rows[i].scenario);
		memset(&e, 0, sizeof e);
		assert_int_equal(backend_cuda.open(&d, &s, &e), -1);
		assert_says(&e, ERR_UNSUPPORTED, rows[i].says);
		assert_true(e.hint[0] != '\0');
		assert_null(s);
		assert_int_equal(cuda_live(), 0);
	}
}

static void
an_entry_point_that_is_missing_is_unsupported(void **state)
{
	struct backend_session *s;
	struct backend_args a;
	struct err e = { 0 };

	(void)state;
	scenario("noentry");
	s = opened(&backend_cuda);
	a = problem(buffer(&backend_cuda, s, 16384));
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_UNSUPPORTED, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
	backend_cuda.close(s);
}

static void
memory_that_is_not_there_is_named_and_the_session_lives(void **state)
{
	struct backend_session *s = NULL;
	struct backend_buffer *b = NULL;
	struct backend_device d;
	struct err e = { 0 };
	int calls;

	(void)state;
	scenario("oom");
	s = opened(&backend_cuda);
	assert_int_equal(backend_cuda.buffer_new(s, 2 << 20, &b, &e), -1);
	assert_says(&e, ERR_NOMEM, "a buffer of 2097152 bytes: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY");
	calls = ask("libcuda.so.1", "fake_cuda_calls");
	assert_int_equal(backend_cuda.buffer_new(s, SIZE_MAX - 8, &b, &e), -1);
	assert_int_equal(e.code, ERR_NOMEM);
	assert_int_equal(ask("libcuda.so.1", "fake_cuda_calls"), calls);
	backend_cuda.buffer_free(s, buffer(&backend_cuda, s, 4096));
	d = device(&backend_cuda);
	backend_cuda.close(s);
	scenario("full");
	s = NULL;
	assert_int_equal(backend_cuda.open(&d, &s, &e), -1);
	assert_says(&e, ERR_NOMEM, "cuMemAlloc_v2");
	assert_int_equal(cuda_live(), 0);
}

static void
a_device_that_is_lost_is_asked_no_more(void **state)
{
	struct backend_session *s;
	struct backend_buffer *b, *other = NULL;
	struct backend_args a;
	struct err e = { 0 };
	uint8_t byte = 0;
	int calls;

	(void)state;
	scenario("lost");
	s = opened(&backend_cuda);
	b = buffer(&backend_cuda, s, 16384);
	a = problem(b);
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_DEVICE, "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
	assert_int_equal(err_exit(e.code), EXIT_INCOMPLETE);
	calls = ask("libcuda.so.1", "fake_cuda_calls");
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_DEVICE, "the device was lost before: cuCtxSynchronize");
	assert_int_equal(backend_cuda.write(s, b, 0, &byte, 1, &e), -1);
	assert_int_equal(backend_cuda.read(s, b, 0, &byte, 1, &e), -1);
	assert_int_equal(backend_cuda.copy(s, b, 0, b, 256, 16, &e), -1);
	assert_int_equal(backend_cuda.buffer_new(s, 16, &other, &e), -1);
	assert_int_equal(e.code, ERR_DEVICE);
	assert_int_equal(ask("libcuda.so.1", "fake_cuda_calls"), calls);
	backend_cuda.close(s);
	assert_int_equal(cuda_live(), 0);
}

static void
a_device_can_be_lost_while_it_is_read(void **state)
{
	struct backend_session *s;
	struct backend_buffer *b;
	struct err e = { 0 };
	uint8_t byte = 0;

	(void)state;
	scenario("ecc");
	s = opened(&backend_cuda);
	b = buffer(&backend_cuda, s, 256);
	assert_int_equal(backend_cuda.read(s, b, 0, &byte, 1, &e), -1);
	assert_says(&e, ERR_DEVICE, "cuMemcpyDtoH_v2: CUDA_ERROR_ECC_UNCORRECTABLE");
	assert_int_equal(backend_cuda.read(s, b, 0, &byte, 1, &e), -1);
	assert_says(&e, ERR_DEVICE, "lost before");
	backend_cuda.close(s);
}

static void
every_kernel_is_launched_with_the_shared_memory_that_it_asks_for(void **state)
{
	struct gpu_limits l = { .sms = 7, .warp = 32, .shared = 227 * 1024, .matrix = true };
	const char *names[BACKEND_VARIANTS];
	struct backend_session *s;
	struct backend_args a;
	struct gpu_plan p;
	struct err e = { 0 };
	unsigned most = 0, step;
	size_t i, v, n;

	(void)state;
	scenario("");
	s = opened(&backend_cuda);
	a = problem(buffer(&backend_cuda, s, 16384));
	for (i = 0; i < KERNEL_COUNT; i++) {
		n = backend_cuda.variants(s, &kernels[i], names);
		assert_true(n > 0 && n <= BACKEND_VARIANTS);
		for (v = 0; v < n; v++) {
			if (backend_cuda.run(s, &kernels[i], v, &a, &e))
				fail_msg("%s %s: %s", kernels[i].name, names[v], e.msg);
			assert_int_equal(gpu_plan_kernel(&kernels[i], v, &a, &l, &p, &e), 0);
			for (step = 0; step < p.count; step++)
				if (p.steps[step].shared > most)
					most = p.steps[step].shared;
		}
	}
	assert_true(most <= l.shared);
	if (most > 48 * 1024)
		assert_int_equal(ask("libcuda.so.1", "fake_cuda_shared") > 48 * 1024, 1);
	backend_cuda.close(s);
	assert_int_equal(cuda_live(), 0);
}

static void
a_copy_is_timed_by_the_device(void **state)
{
	struct backend_session *s;
	struct backend_buffer *b;
	struct backend_args a = { 0 };
	struct err e = { 0 };
	double seconds[3] = { 0 };
	struct backend_timing t = { .warm = 2, .runs = 3, .seconds = seconds };
	uint8_t in[512], out[512];
	size_t i;

	(void)state;
	scenario("");
	for (i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(i * 7);
	s = opened(&backend_cuda);
	b = buffer(&backend_cuda, s, 1024);
	a.k = (struct backend_span){ b, 0, 512 };
	a.out = (struct backend_span){ b, 512, 512 };
	assert_int_equal(backend_cuda.write(s, b, 0, in, 512, &e), 0);
	if (backend_cuda.time(s, NULL, 0, &a, &t, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(backend_cuda.read(s, b, 512, out, 512, &e), 0);
	assert_memory_equal(in, out, 512);
	for (i = 0; i < 3; i++)
		assert_true(seconds[i] > 0.00149 && seconds[i] < 0.00151);
	backend_cuda.close(s);
}

static void
spans_that_are_not_in_their_buffers_are_refused(void **state)
{
	struct backend_session *s, *s2;
	struct backend_buffer *b, *foreign;
	struct backend_args a;
	struct err e = { 0 };
	uint8_t bytes[16] = { 0 };

	(void)state;
	scenario("");
	s = opened(&backend_cuda);
	s2 = opened(&backend_cuda);
	b = buffer(&backend_cuda, s, 16384);
	foreign = buffer(&backend_cuda, s2, 16384);
	assert_int_equal(backend_cuda.write(s, b, 16380, bytes, 5, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(backend_cuda.write(s, b, 16380, bytes, 4, &e), 0);
	assert_int_equal(backend_cuda.read(s, b, SIZE_MAX, bytes, 4, &e), -1);
	assert_int_equal(backend_cuda.read(s, foreign, 0, bytes, 4, &e), -1);
	assert_int_equal(backend_cuda.copy(s, b, 0, foreign, 0, 4, &e), -1);
	assert_int_equal(backend_cuda.copy(s, b, 16000, b, 0, 385, &e), -1);
	a = problem(b);
	a.q.at = 16;
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_USAGE, "no multiple of 256");
	a = problem(b);
	a.n_kv = UINT32_MAX;
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_USAGE, "k: a span of 4096 bytes is too short");
	a = problem(b);
	a.out.bytes = 31;
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	a = problem(foreign);
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	a = problem(b);
	a.n_kv_heads = 0;
	assert_int_equal(backend_cuda.run(s, &kernels[0], 0, &a, &e), -1);
	a = problem(b);
	assert_int_equal(backend_cuda.run(s, &kernels[0], 99, &a, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	backend_cuda.close(s);
	backend_cuda.close(s2);
	assert_int_equal(cuda_live(), 0);
}

/* ---- HIP ------------------------------------------------------------------------ */

static void
hip_says_which_device_is_part_of_a_processor(void **state)
{
	(void)state;
	scenario("apu");
	assert_string_equal(device(&backend_hip).kind, "integrated");
	scenario("");
	assert_string_equal(device(&backend_hip).kind, "discrete");
}

static void
hip_failures_are_named_like_those_of_cuda(void **state)
{
	struct backend_session *s = NULL;
	struct backend_device d;
	struct backend_args a;
	struct err e = { 0 };
	size_t n = 9;

	(void)state;
	unsetenv("FAKE_HIP_ARCH");
	scenario("none");
	assert_int_equal(backend_hip.list(&d, 1, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_non_null(strstr(e.msg, "hipInit: hipErrorNoDevice"));
	scenario("image");
	d = device(&backend_hip);
	assert_int_equal(backend_hip.open(&d, &s, &e), -1);
	assert_says(&e, ERR_UNSUPPORTED, "hipModuleLoadData: hipErrorInvalidImage");
	scenario("oom");
	assert_int_equal(backend_hip.open(&d, &s, &e), -1);
	assert_says(&e, ERR_NOMEM, "hipMalloc: hipErrorOutOfMemory");
	assert_int_equal(ask("libamdhip64.so", "fake_hip_live"), 0);
	scenario("lost");
	s = opened(&backend_hip);
	a = problem(buffer(&backend_hip, s, 16384));
	assert_int_equal(backend_hip.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_DEVICE, "hipDeviceSynchronize: hipErrorIllegalAddress");
	assert_int_equal(backend_hip.run(s, &kernels[0], 0, &a, &e), -1);
	assert_says(&e, ERR_DEVICE, "lost before");
	backend_hip.close(s);
	assert_int_equal(ask("libamdhip64.so", "fake_hip_live"), 0);
}

static void
a_hip_device_runs_the_code_of_its_chip(void **state)
{
	struct backend_device d;
	struct backend_session *s;
	struct backend_args a;
	struct backend_code c;
	struct err e = { 0 };
	char want[DIGEST_HEX];

	(void)state;
	unsetenv("FAKE_HIP_ARCH");
	scenario("");
	d = device(&backend_hip);
	assert_string_equal(d.name, "FAKE AMD GPU 0");
	assert_string_equal(d.arch, "gfx90a");
	assert_string_equal(d.uuid, "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a");
	assert_string_equal(d.pci, "0000:c0:00.0");
	assert_string_equal(d.note, "");
	s = opened(&backend_hip);
	digest_bytes(one, sizeof one, want);
	assert_int_equal(backend_hip.code(s, &c, 1), 1);
	assert_string_equal(c.sha256, want);
	assert_string_equal(c.how, "gfx90a");
	a = problem(buffer(&backend_hip, s, 16384));
	assert_int_equal(backend_hip.run(s, &kernels[0], 0, &a, &e), 0);
	backend_hip.close(s);
}

/* Counts what hipcc was asked to compile. */
static size_t
compiled(void)
{
	char path[128], *text = NULL, *p;
	struct err e = { 0 };
	size_t n = 0, len;

	assert_int_equal(str_fmt(path, sizeof path, &e, "%s/log", folder), 0);
	if (plat_read_file(path, 65536, &text, &len, &e))
		return 0;
	for (p = text; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	free(text);
	return n;
}

static void
hipcc_put(const char *version, bool fails)
{
	char path[128], text[1024];
	struct err e = { 0 };

	assert_int_equal(str_fmt(path, sizeof path, &e, "%s/hipcc", folder), 0);
	assert_int_equal(str_fmt(text, sizeof text, &e,
		"#!/bin/sh\n"
		"case $* in *--version*) echo 'HIP version: %s'; exit 0 ;; esac\n"
		"echo \"$*\" >>%s/log\n"
		"%s"
		"[ -f kernels/one.h ] || exit 9\n"
		"while [ $# -gt 1 ]; do [ \"$1\" != -o ] || out=$2; shift; done\n"
		"[ -f \"$1\" ] && echo code >$out\n",
		version, folder, fails ? "echo 'no such target' >&2; exit 1\n" : ""), 0);
	assert_int_equal(plat_write_file(path, text, strlen(text), 0755, &e), 0);
}

static void
code_for_another_chip_is_compiled_here_once(void **state)
{
	static const char made[] = "code\ncode\n";
	struct backend_session *s;
	struct backend_code c;
	char want[DIGEST_HEX];

	(void)state;
	scenario("");
	setenv("FAKE_HIP_ARCH", "gfx942:sramecc+:xnack-", 1);
	hipcc_put("6.2.41133-dd7f95766", false);
	s = opened(&backend_hip);
	assert_int_equal(compiled(), 2);
	digest_bytes(made, sizeof made - 1, want);
	assert_int_equal(backend_hip.code(s, &c, 1), 1);
	assert_string_equal(c.name, "kernels.gfx942.co");
	assert_string_equal(c.sha256, want);
	assert_string_equal(c.how, "gfx942 by this host's hipcc 6.2.41133-dd7f95766");
	backend_hip.close(s);
	backend_hip.close(opened(&backend_hip));
	assert_int_equal(compiled(), 2);
	/* Another compiler, another chip: made anew. */
	hipcc_put("6.3.0", false);
	backend_hip.close(opened(&backend_hip));
	assert_int_equal(compiled(), 4);
	setenv("FAKE_HIP_ARCH", "gfx1100", 1);
	backend_hip.close(opened(&backend_hip));
	assert_int_equal(compiled(), 6);
}

static void
what_hipcc_can_not_compile_is_unsupported(void **state)
{
	struct backend_session *s = NULL;
	struct backend_device d;
	struct err e = { 0 };

	(void)state;
	scenario("");
	setenv("FAKE_HIP_ARCH", "gfx1250", 1);
	hipcc_put("6.3.0", true);
	d = device(&backend_hip);
	assert_int_equal(backend_hip.open(&d, &s, &e), -1);
	assert_says(&e, ERR_UNSUPPORTED, "for gfx1250, kernels/one.cu: exit 1: no such target");
	assert_true(e.hint[0] != '\0');
	/* Nothing half-made is left to be found next time. */
	hipcc_put("6.3.0", false);
	backend_hip.close(opened(&backend_hip));
}

static void
without_hipcc_another_chip_has_no_code(void **state)
{
	struct backend_session *s = NULL;
	struct backend_device d;
	struct err e = { 0 };
	char path[128];

	(void)state;
	if (plat_exists("/opt/rocm/bin/hipcc"))
		skip();
	scenario("");
	setenv("FAKE_HIP_ARCH", "gfx1201", 1);
	assert_int_equal(str_fmt(path, sizeof path, &e, "%s/none", folder), 0);
	setenv("PATH", path, 1);
	d = device(&backend_hip);
	assert_non_null(strstr(d.note, "no_code_for_device"));
	assert_int_equal(backend_hip.open(&d, &s, &e), -1);
	assert_says(&e, ERR_UNSUPPORTED, "no_code_for_device");
	assert_true(e.hint[0] != '\0');
}

static void
a_chip_without_a_name_can_not_be_used(void **state)
{
	struct backend_device d;

	(void)state;
	scenario("");
	setenv("FAKE_HIP_ARCH", "../gfx90a", 1);
	d = device(&backend_hip);
	assert_string_equal(d.arch, "");
	assert_non_null(strstr(d.note, "no gfx name"));
}

/* ---- older, broken and missing libraries ----------------------------------------- */

static void
a_library_without_a_call_is_no_driver(void **state)
{
	struct backend_device d;
	struct err e = { 0 };
	size_t n = 9;

	(void)state;
	scenario("");
	assert_int_equal(backend_cuda.list(&d, 1, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_says(&e, ERR_NO_DEVICE, "libcuda.so.1 has no cuEventElapsedTime");
}

static void
the_older_layout_of_hip_is_read(void **state)
{
	struct backend_device d;
	struct err e = { 0 };
	size_t n = 9;

	(void)state;
	scenario("");
	unsetenv("FAKE_HIP_ARCH");
	d = device(&backend_hip);
	assert_string_equal(d.arch, "gfx90a");
	assert_string_equal(d.api, "HIP 5.2");
	scenario("ancient");
	assert_int_equal(backend_hip.list(&d, 1, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_says(&e, ERR_NO_DEVICE, "HIP 4 is too old");
}

static void
what_the_loader_says_is_passed_on(void **state)
{
	const char *broken = *state;
	struct backend_device d;
	struct err e = { 0 };
	size_t n = 9;

	if (!broken && dlopen("libcuda.so.1", RTLD_LAZY) != NULL)
		skip();
	assert_int_equal(backend_cuda.list(&d, 1, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_says(&e, ERR_NO_DEVICE, "libcuda.so.1: ");
	assert_non_null(strstr(e.msg, broken ? broken : "cannot open shared object file"));
}

/* ---- a process per driver ------------------------------------------------------- */

static const struct CMUnitTest with_fakes[] = {
	cmocka_unit_test(a_cuda_device_is_told_as_the_driver_says),
	cmocka_unit_test(without_a_cuda_device_the_list_is_empty_and_says_why),
	cmocka_unit_test(two_devices_of_one_uuid_are_listed_and_not_chosen),
	cmocka_unit_test(the_code_is_told_by_digest_and_by_what_the_driver_takes),
	cmocka_unit_test(code_that_the_driver_refuses_is_unsupported_and_never_a_pass),
	cmocka_unit_test(an_entry_point_that_is_missing_is_unsupported),
	cmocka_unit_test(memory_that_is_not_there_is_named_and_the_session_lives),
	cmocka_unit_test(a_device_that_is_lost_is_asked_no_more),
	cmocka_unit_test(a_device_can_be_lost_while_it_is_read),
	cmocka_unit_test(every_kernel_is_launched_with_the_shared_memory_that_it_asks_for),
	cmocka_unit_test(a_copy_is_timed_by_the_device),
	cmocka_unit_test(spans_that_are_not_in_their_buffers_are_refused),
	cmocka_unit_test(hip_says_which_device_is_part_of_a_processor),
		cmocka_unit_test(hip_failures_are_named_like_those_of_cuda),
	cmocka_unit_test(a_hip_device_runs_the_code_of_its_chip),
	cmocka_unit_test(code_for_another_chip_is_compiled_here_once),
	cmocka_unit_test(what_hipcc_can_not_compile_is_unsupported),
	cmocka_unit_test(a_chip_without_a_name_can_not_be_used),
	cmocka_unit_test(without_hipcc_another_chip_has_no_code),
};
static const struct CMUnitTest with_old[] = {
	cmocka_unit_test(a_library_without_a_call_is_no_driver),
	cmocka_unit_test(the_older_layout_of_hip_is_read),
};
static char file_too_short[] = "file too short";
static const struct CMUnitTest with_broken[] = {
	cmocka_unit_test_prestate(what_the_loader_says_is_passed_on, file_too_short),
};
static const struct CMUnitTest with_none[] = {
	cmocka_unit_test(what_the_loader_says_is_passed_on),
};

static int
run_group(const char *mode)
{
	if (str_eq(mode, "fakes"))
		return cmocka_run_group_tests_name("fakes", with_fakes, NULL, NULL);
	if (str_eq(mode, "old"))
		return cmocka_run_group_tests_name("old", with_old, NULL, NULL);
	if (str_eq(mode, "broken"))
		return cmocka_run_group_tests_name("broken", with_broken, NULL, NULL);
	return cmocka_run_group_tests_name("none", with_none, NULL, NULL);
}

/* This program again, with a folder in front of the library path and the path of tools. */
static int
run_self(const char *mode, const char *libraries)
{
	char path[4096], cache[128];
	struct err e = { 0 };
	const char *old = getenv("PATH");
	pid_t pid;
	int status = 0;

	if (str_fmt(path, sizeof path, &e, "%s:%s", folder, old ? old : "") ||
		str_fmt(cache, sizeof cache, &e, "%s/cache", folder))
		return 1;
	(void)fflush(NULL);
	if ((pid = fork()) == 0) {
		(void)setenv("LD_LIBRARY_PATH", libraries, 1);
		(void)setenv("PATH", path, 1);
		(void)setenv("XDG_CACHE_HOME", cache, 1);
		(void)execl("/proc/self/exe", "test_gpu_device", mode, folder, (char *)NULL);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

int
main(int argc, char **argv)
{
	char self[4096], fakes[4200], old[4200], broken[128], file[160];
	struct err e = { 0 };
	int bad = 0;

	if (argc == 3) {
		if (str_copy(folder, sizeof folder, argv[2], &e))
			return 1;
		return run_group(argv[1]);
	}
	(void)snprintf(folder, sizeof folder, "%s", "/tmp/test_gpu_device.XXXXXX");
	if (plat_self(self, sizeof self, &e) || strrchr(self, '/') == NULL ||
		mkdtemp(folder) == NULL)
		return 1;
	*strrchr(self, '/') = '\0';
	(void)snprintf(fakes, sizeof fakes, "%s/../fake", self);
	(void)snprintf(old, sizeof old, "%s/../fake/old", self);
	(void)snprintf(broken, sizeof broken, "%s/broken", folder);
	(void)snprintf(file, sizeof file, "%s/libcuda.so.1", broken);
	if (plat_mkdirs(broken, 0700, &e) || plat_write_file(file, "no", 2, 0600, &e))
		return 1;
	bad += run_self("fakes", fakes);
	bad += run_self("old", old);
	bad += run_self("broken", broken);
	bad += run_self("none", folder);
	if (plat_remove_tree(folder, &e))
		bad++;
	return bad != 0;
}
