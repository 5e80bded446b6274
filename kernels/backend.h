/*
 * backend - where a kernel can run: one row per API, the same tests for all of them.
 *
 * A backend lists devices and opens one as a session.  A session owns memory of the
 * device (buffers) and runs kernels over spans of them; it knows nothing of fixtures,
 * guards, properties or timing rules, which are the same code for every backend (verify,
 * property, bench).  What a backend can not do it says by ERR_UNSUPPORTED, which is
 * never a pass.
 *
 * Errors: ERR_UNSUPPORTED (no such kernel, variant or encoder here), ERR_NOMEM (the
 * device's or the host's), ERR_DEVICE (the API failed: its message names the call and the
 * API's own name of the error; the session is then lost and only close may follow).
 * Threads: a session belongs to one thread at a time.
 */
#ifndef KERNELS_BACKEND_H
#define KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/err.h"
#include "kernels/kernel.h"

#define BACKEND_DEVICES 64       /* listed at most */
#define BACKEND_VARIANTS 8       /* of a kernel, at most */
#define BACKEND_ALIGN 256        /* of every span's start: every API's offset rule */
#define BACKEND_TAIL 16          /* bytes after a span that a kernel may read, not use */

struct backend_device {
	unsigned index;          /* in the list; stable while drivers stay the same */
	char name[128];          /* as the driver says it */
	char uuid[48];           /* 8-4-4-4-12 lower case hex; "" when it has none */
	char arch[48];           /* "sm_90", "gfx942", "x86-64 avx2", ... */
	char driver[128];        /* name and version */
	char api[32];            /* version of the API that the device offers */
	char pci[16];            /* "0000:17:00.0"; "" when it has none */
	uint64_t memory;         /* bytes; 0: not known */
	unsigned ordinal;        /* place in the API's own list, before ours was sorted */
	char kind[16];           /* "discrete", "integrated", of Vulkan "virtual", "cpu", "other"
	                          * too; "" not known */
	char driver_id[48];      /* Vulkan's driverID: "NVIDIA_PROPRIETARY"; "" not known */
	bool nonconformant;      /* Vulkan: its conformance version is 0.0.0.0 */
	bool simulated;          /* a stand-in library answered, and said so */
	bool software;           /* runs on the CPU: never counts for a GPU class */
	bool emulated;           /* this program plays the device: never recordable */
	char note[160];          /* why it can not be used; "" when it can */
};

/* Code that a session runs on its device, as loaded. */
struct backend_code {
	char name[64];           /* "kernels.fatbin", "score.spv" */
	char sha256[DIGEST_HEX];
	char how[64];            /* "sm_90a", "compiled by hipcc 6.2", ... */
};

struct backend_buffer;           /* memory of the device */
struct backend_session;

struct backend_span {
	struct backend_buffer *buffer; /* NULL: no such operand */
	size_t at, bytes;        /* at: multiple of BACKEND_ALIGN */
};

/* A problem as ref_case has it, its arrays on the device.  q for polar_preht is the
 * transformed query, as in ref. */
struct backend_args {
	uint32_t n_heads, n_kv_heads, n_kv;
	bool use_qjl, causal;
	uint32_t q_pos_base;
	float sm_scale;
	struct backend_span q, k, v, out;
};

/* A job for time(): GPUs by events, CPUs by the monotonic clock. */
struct backend_timing {
	unsigned warm, runs;     /* runs <= the room in seconds */
	double *seconds;         /* one per run */
};

struct kernel_backend {
	const char *name;        /* "cpu", "cuda", "hip", "vulkan", "emulated" */
	const char *no_device;   /* what to try when there is none */
	/* Fills at most max rows, best first.  No driver or no device is not an error: count
	 * is 0 and e's message says which library or call said so. */
	int (*list)(struct backend_device *out, size_t max, size_t *count, struct err *e);
	int (*open)(const struct backend_device *d, struct backend_session **out,
		struct err *e);
	void (*close)(struct backend_session *s); /* NULL is fine; frees buffers too */
	size_t (*code)(struct backend_session *s, struct backend_code *out, size_t max);

	/* Buffers start undefined. */
	int (*buffer_new)(struct backend_session *s, size_t bytes,
		struct backend_buffer **out, struct err *e);
	void (*buffer_free)(struct backend_session *s, struct backend_buffer *b);
	int (*write)(struct backend_session *s, struct backend_buffer *b, size_t at,
		const void *src, size_t bytes, struct err *e);
	int (*read)(struct backend_session *s, struct backend_buffer *b, size_t at,
		void *dst, size_t bytes, struct err *e);
	int (*copy)(struct backend_session *s, struct backend_buffer *to, size_t to_at,
		struct backend_buffer *from, size_t from_at, size_t bytes, struct err *e);

	/* The kernel's implementations: fills names (static), the default first; 0: none.
	 * "plain" is the port that public kernels resemble, for comparison. */
	size_t (*variants)(struct backend_session *s, const struct kernel *k,
		const char *names[BACKEND_VARIANTS]);
	/* Runs once and waits.  variant: index into those names. */
	int (*run)(struct backend_session *s, const struct kernel *k, size_t variant,
		const struct backend_args *a, struct err *e);
	/* The same, timed; k NULL: a plain copy of a->k into a->out (bytes of a->out). */
	int (*time)(struct backend_session *s, const struct kernel *k, size_t variant,
		const struct backend_args *a, const struct backend_timing *t,
		struct err *e);
	/* x [n][REF_HEAD] floats to n keys of the format in out; pi [REF_PI] for qjl only.
	 * NULL: this backend has no encoders. */
	int (*encode)(struct backend_session *s, const struct kernel_format *f,
		const struct backend_span *x, const struct backend_span *pi, size_t n,
		const struct backend_span *out, struct err *e);
};

extern const struct kernel_backend backend_cpu;      /* scalar truth and SIMD */
extern const struct kernel_backend backend_cuda;
extern const struct kernel_backend backend_hip;
extern const struct kernel_backend backend_vulkan;
/* The CUDA and HIP sources played on the CPU: only in the program emulated-verify. */
extern const struct kernel_backend backend_emulated;

/* The first four, NULL-terminated. */
extern const struct kernel_backend *const kernel_backends[];
const struct kernel_backend *backend_find(const char *name); /* NULL if unknown */

/* Chooses from a list by index, UUID (either case, unique prefix of at least 8 digits) or
 * NULL for the first usable row that is not software unless software_ok.  -1: ERR_USAGE
 * for a wrong or ambiguous choice (also two rows with one UUID: both are named),
 * ERR_NO_DEVICE when there is nothing to choose from. */
CHECKED int backend_choose(const struct kernel_backend *b,
	const struct backend_device *list, size_t count, const char *wanted,
	bool software_ok, size_t *index, struct err *e);

#endif
