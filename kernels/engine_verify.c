/*
 * engine-verify - are the engine's own score ops right on a device?
 *
 *   engine-verify --device CUDA0 [--backends DIR]
 *
 * Six graph routes through the engine's public C interface: each op must be supported by
 * the device, is computed there in a real graph and on the engine's own CPU backend, and
 * both must be within 1e-3 of kernels/ref.c.  Keys are blocks that ref wrote.  Then one bit
 * of one key is turned, and the device must give another score, and the right one.
 *
 * This file is no part of our programs: it is compiled on the machine under test against
 * the headers and libraries of the engine there, with ref.c, ref_math.c and table.c.  Every
 * number is printed, since a judge reads them and not the summary.  Lines begin with the
 * program's own name:
 *
 *   [engine-verify] device=NVIDIA H200
 *   [engine-verify] backend=CUDA0 registry=CUDA id=0000:00:06.0
 *   [engine-verify] cpu=Intel ...
 *   [engine-verify] route GGML_OP_ATTN_SCORE_QJL type=qjl1_256 bytes=34
 *   [engine-verify] score plain 0 DEVICE CPU REFERENCE
 *   [engine-verify] PASS GGML_OP_ATTN_SCORE_QJL: 286 scores, max diff 9.537e-07
 *   [engine-verify] PASS engine suite: 6 graph routes
 *
 * Exit status: 0, 1 wrong or not supported, 2 usage, 3 not in the engine, no such device or
 * a software one (which ELIZA_ALLOW_SOFTWARE_VULKAN=1 lets through, to look at).
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <ggml.h>
#include <ggml-alloc.h>
#include <ggml-backend.h>

#include "kernels/ref.h"

#define TOLERANCE 1e-3
#define MAX_HEADS 8
#define MAX_KV_HEADS 4
#define MAX_TOKENS 64
#define MAX_SCORES (MAX_HEADS * MAX_TOKENS)
#define MAX_KEY 82
#define PI_SEED UINT64_C(0xCAFEBABE12345678)

/* An engine without them links all the same, and then they are NULL. */
struct ggml_tensor *ggml_attn_score_qjl(struct ggml_context *ctx, struct ggml_tensor *q,
	struct ggml_tensor *packed_k, int n_kv_heads) __attribute__((weak));
struct ggml_tensor *ggml_attn_score_tbq(struct ggml_context *ctx, struct ggml_tensor *q,
	struct ggml_tensor *packed_k, int n_kv_heads) __attribute__((weak));
struct ggml_tensor *ggml_attn_score_polar(struct ggml_context *ctx, struct ggml_tensor *q,
	struct ggml_tensor *packed_k, int n_kv_heads, bool use_qjl) __attribute__((weak));

enum op { OP_QJL, OP_TBQ, OP_POLAR };
static const char *const op_names[] = {"ggml_attn_score_qjl", "ggml_attn_score_tbq", "ggml_attn_score_polar"};

static const struct route {
	const char *label;
	enum op op;
	const char *type;      /* as ggml_type_name has it */
	bool use_qjl;
	uint32_t bytes, blocks; /* of a block; blocks of a key */
	uint32_t flip_at;      /* the byte of a key in which the planted error is */
	uint8_t flip;          /* and its bit: of a code, a sign, the residual */
	ref_quantise quantise;
	ref_decode decode;     /* NULL: sketches, scored by ref_qjl_score */
} routes[] = {
	{"GGML_OP_ATTN_SCORE_QJL", OP_QJL, "qjl1_256", false, REF_QJL_BLOCK, 1, 0, 1,
		ref_qjl_quantise, NULL},
	{"GGML_OP_ATTN_SCORE_TBQ/turbo3", OP_TBQ, "tbq3_0", false, REF_TBQ3_BLOCK, REF_QUARTERS, 2, 4,
		ref_tbq3_quantise, ref_tbq3_decode},
	{"GGML_OP_ATTN_SCORE_TBQ/turbo4", OP_TBQ, "tbq4_0", false, REF_TBQ4_BLOCK, REF_QUARTERS, 2, 8,
		ref_tbq4_quantise, ref_tbq4_decode},
	{"GGML_OP_ATTN_SCORE_TBQ/turbo3_tcq", OP_TBQ, "tbq3_tcq", false, REF_TCQ_BLOCK, 1, 12, 1,
		ref_tcq_quantise, ref_tcq_decode},
	/* the residual is in the blocks, and this route must not look at it */
	{"GGML_OP_ATTN_SCORE_POLAR/use_qjl=0", OP_POLAR, "q4_polar", false, REF_POLAR_BLOCK, 1, 2, 8,
		ref_polar_qjl_quantise, ref_polar_decode},
	{"GGML_OP_ATTN_SCORE_POLAR/use_qjl=1", OP_POLAR, "q4_polar", true, REF_POLAR_BLOCK, 1, 66, 1,
		ref_polar_qjl_quantise, ref_polar_qjl_decode},
};
#define ROUTES (sizeof routes / sizeof *routes)

static const struct shape {
	const char *name;
	uint32_t heads, kv_heads, tokens;
	bool flipped;
} shapes[] = {
	{"plain", 4, 2, 8, false},
	{"odd", 6, 3, 37, false},  /* nothing of it is a power of 2 */
	{"planted", 4, 2, 8, true},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* What one route is computed from, and what came out. */
struct problem {
	float q[MAX_HEADS][REF_PROJ];
	uint8_t k[MAX_KV_HEADS * MAX_TOKENS * MAX_KEY];
	float device[MAX_SCORES], cpu[MAX_SCORES], ref[MAX_SCORES];
};

enum answer { ANSWER_RIGHT, ANSWER_WRONG, ANSWER_UNSUPPORTED, ANSWER_MISSING, ANSWER_BROKEN };

struct engine {
	ggml_backend_t device, cpu;
	const char *device_name;
};

static const char *tool = "engine-verify";
static float pi[REF_PI];

/* ref's own way to say what went wrong; here there is nobody to tell it to. */
int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	(void)e;
	(void)code;
	(void)fmt;
	return -1;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
say(const char *fmt, ...)
{
	va_list ap;

	printf("[%s] ", tool);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout); /* an engine may abort in the next line */
}

/* GGML_TYPE_COUNT: no such type. */
static enum ggml_type
type_find(const char *name)
{
	const char *n;
	int i;

	for (i = 0; i < GGML_TYPE_COUNT; i++)
		if ((n = ggml_type_name((enum ggml_type)i)) != NULL && strcmp(n, name) == 0)
			return (enum ggml_type)i;
	return GGML_TYPE_COUNT;
}

static uint32_t
key_bytes(const struct route *r)
{
	return r->bytes * r->blocks;
}

static void
vector_draw(struct ref_rng *rng, float v[REF_HEAD])
{
	size_t i;

	for (i = 0; i < REF_HEAD; i++)
		v[i] = ref_rng_normal(rng);
}

/* Queries first, then keys: the flipped shape has those of the plain one, but for a bit. */
static void
problem_draw(const struct route *r, const struct shape *s, struct problem *p)
{
	struct ref_rng rng;
	float v[REF_HEAD];
	uint32_t i;

	ref_rng_init(&rng);
	for (i = 0; i < s->heads; i++) {
		vector_draw(&rng, v);
		if (r->op == OP_QJL)
			ref_sketch(v, pi, p->q[i]);
		else
			memcpy(p->q[i], v, sizeof v);
	}
	for (i = 0; i < s->kv_heads * s->tokens; i++) {
		vector_draw(&rng, v);
		r->quantise(v, pi, p->k + i * key_bytes(r));
	}
	if (s->flipped)
		p->k[(s->tokens - 1) * key_bytes(r) + r->flip_at] ^= r->flip;
}

static uint32_t
query_dim(const struct route *r)
{
	return r->op == OP_QJL ? REF_PROJ : REF_HEAD;
}

/* The queries without gaps: out[heads * query_dim]. */
static void
queries_pack(const struct route *r, const struct shape *s, const struct problem *p, float *out)
{
	uint32_t h;

	for (h = 0; h < s->heads; h++)
		memcpy(out + h * query_dim(r), p->q[h], query_dim(r) * sizeof *out);
}

static int
problem_score(const struct route *r, const struct shape *s, struct problem *p)
{
	float q[MAX_HEADS * REF_PROJ], key[REF_HEAD];
	struct ref_case c = {.n_heads = s->heads, .n_kv_heads = s->kv_heads, .n_kv = s->tokens,
		.q = q, .k = p->k};
	uint32_t h, t, i, kv;
	double sum;

	queries_pack(r, s, p, q);
	if (r->decode == NULL)
		return ref_qjl_score(&c, p->ref, NULL);
	for (h = 0; h < s->heads; h++)
		for (t = 0; t < s->tokens; t++) {
			kv = h / (s->heads / s->kv_heads);
			r->decode(p->k + (kv * s->tokens + t) * key_bytes(r), key);
			for (sum = 0, i = 0; i < REF_HEAD; i++)
				sum += (double)key[i] * (double)p->q[h][i];
			p->ref[h * s->tokens + t] = (float)sum;
		}
	return 0;
}

static struct ggml_tensor *
node_make(const struct route *r, const struct shape *s, struct ggml_context *ctx,
	struct ggml_tensor *q, struct ggml_tensor *k)
{
	switch (r->op) {
	case OP_QJL:
		return ggml_attn_score_qjl(ctx, q, k, (int)s->kv_heads);
	case OP_TBQ:
		return ggml_attn_score_tbq(ctx, q, k, (int)s->kv_heads);
	case OP_POLAR:
		return ggml_attn_score_polar(ctx, q, k, (int)s->kv_heads, r->use_qjl);
	}
	return NULL;
}

static bool
op_is_there(enum op op)
{
	return op == OP_QJL ? ggml_attn_score_qjl != NULL : op == OP_TBQ ? ggml_attn_score_tbq != NULL
		: ggml_attn_score_polar != NULL;
}

/* The graph is made, is in the backend's memory: operands in, computed, scores out. */
static enum answer
graph_run(const struct route *r, const struct shape *s, const struct problem *p,
	ggml_backend_t on, struct ggml_cgraph *graph, struct ggml_tensor *const t[3], float *out)
{
	float q[MAX_HEADS * REF_PROJ];
	size_t n = (size_t)s->heads * s->tokens, i;

	queries_pack(r, s, p, q);
	/* what is not written is no number */
	for (i = 0; i < n; i++)
		out[i] = NAN;
	ggml_backend_tensor_set(t[0], q, 0, s->heads * query_dim(r) * sizeof *q);
	ggml_backend_tensor_set(t[1], p->k, 0, (size_t)s->kv_heads * s->tokens * key_bytes(r));
	ggml_backend_tensor_set(t[2], out, 0, n * sizeof *out);
	if (ggml_backend_graph_compute(on, graph) != GGML_STATUS_SUCCESS) {
		say("note %s: the graph was not computed", r->label);
		return ANSWER_BROKEN;
	}
	ggml_backend_tensor_get(t[2], out, 0, n * sizeof *out);
	return ANSWER_RIGHT;
}

static enum answer
node_run(const struct route *r, const struct shape *s, const struct problem *p, ggml_backend_t on,
	struct ggml_context *ctx, struct ggml_tensor *const t[3], float *out)
{
	struct ggml_cgraph *graph = ggml_new_graph(ctx);
	ggml_backend_buffer_t memory;
	enum answer a;

	ggml_build_forward_expand(graph, t[2]);
	if (!ggml_backend_supports_op(on, t[2]))
		return ANSWER_UNSUPPORTED;
	if (ggml_nbytes(t[1]) != (size_t)s->kv_heads * s->tokens * key_bytes(r) ||
	    ggml_nbytes(t[2]) != (size_t)s->heads * s->tokens * sizeof *out) {
		say("note %s: keys of %zu bytes and scores of %zu are of another layout", r->label,
			ggml_nbytes(t[1]), ggml_nbytes(t[2]));
		return ANSWER_BROKEN;
	}
	if ((memory = ggml_backend_alloc_ctx_tensors(ctx, on)) == NULL) {
		say("note %s: no memory on the device", r->label);
		return ANSWER_BROKEN;
	}
	a = graph_run(r, s, p, on, graph, t, out);
	ggml_backend_buffer_free(memory);
	return a;
}

static enum answer
backend_score(const struct route *r, const struct shape *s, const struct problem *p,
	ggml_backend_t on, float *out)
{
	enum ggml_type type = type_find(r->type);
	struct ggml_init_params params = {.mem_size = ggml_tensor_overhead() * 16 +
		ggml_graph_overhead(), .mem_buffer = NULL, .no_alloc = true};
	struct ggml_context *ctx = ggml_init(params);
	struct ggml_tensor *t[3];
	enum answer a = ANSWER_BROKEN;

	if (ctx == NULL)
		return ANSWER_BROKEN;
	t[0] = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, query_dim(r), s->heads, 1);
	t[1] = ggml_new_tensor_3d(ctx, type, ggml_blck_size(type) * r->blocks, s->tokens, s->kv_heads);
	if ((t[2] = node_make(r, s, ctx, t[0], t[1])) != NULL)
		a = node_run(r, s, p, on, ctx, t, out);
	ggml_free(ctx);
	return a;
}

/* The larger of both differences; NaN where one is no number. */
static double
score_diff(const struct problem *p, size_t i)
{
	double a = fabs((double)p->device[i] - (double)p->ref[i]);
	double b = fabs((double)p->device[i] - (double)p->cpu[i]);

	return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}

static enum answer
shape_run(const struct engine *e, const struct route *r, const struct shape *s, struct problem *p,
	size_t *scores, double *worst)
{
	size_t n = (size_t)s->heads * s->tokens, i;
	enum answer a = ANSWER_RIGHT;
	const char *on = e->device_name;
	double d;

	problem_draw(r, s, p);
	if (problem_score(r, s, p))
		return ANSWER_BROKEN;
	if ((a = backend_score(r, s, p, e->device, p->device)) == ANSWER_RIGHT) {
		on = "the engine's CPU backend";
		a = backend_score(r, s, p, e->cpu, p->cpu);
	}
	if (a == ANSWER_UNSUPPORTED)
		say("UNSUPPORTED %s: %s refuses the op with %s keys", r->label, on, r->type);
	if (a != ANSWER_RIGHT)
		return a;
	for (i = 0; i < n; i++) {
		say("score %s %zu %.9g %.9g %.9g", s->name, i, (double)p->device[i], (double)p->cpu[i],
			(double)p->ref[i]);
		d = score_diff(p, i);
		if (!(d < TOLERANCE))
			a = ANSWER_WRONG;
		if (isnan(d) || d > *worst)
			*worst = d;
	}
	*scores += n;
	return a;
}

/* Whether the device saw the planted error: plain is what it said without. */
static bool
control_seen(const struct problem *p, const float *plain, const struct shape *s)
{
	size_t i;

	for (i = 0; i < (size_t)s->heads * s->tokens; i++)
		if (fabs((double)p->device[i] - (double)plain[i]) >= TOLERANCE)
			return true;
	return false;
}

static enum answer
route_shapes(const struct engine *e, const struct route *r, struct problem *p, size_t *scores,
	double *worst)
{
	float plain[MAX_SCORES];
	enum answer a, all = ANSWER_RIGHT;
	size_t i;

	for (i = 0; i < SHAPES; i++) {
		if ((a = shape_run(e, r, &shapes[i], p, scores, worst)) > ANSWER_WRONG)
			return a;
		if (i == 0)
			memcpy(plain, p->ref, sizeof plain);
		if (a == ANSWER_RIGHT && shapes[i].flipped && !control_seen(p, plain, &shapes[i])) {
			say("note %s: a turned bit was not seen", r->label);
			a = ANSWER_WRONG;
		}
		all = a > all ? a : all;
	}
	return all;
}

static enum answer
route_run(const struct engine *e, const struct route *r)
{
	enum ggml_type type = type_find(r->type);
	struct problem *p = calloc(1, sizeof *p);
	size_t scores = 0;
	double worst = 0;
	enum answer a = ANSWER_BROKEN;

	if (!op_is_there(r->op) || type == GGML_TYPE_COUNT) {
		say("MISSING %s: the engine has no %s %s", r->label, op_is_there(r->op) ? "type" : "function",
			op_is_there(r->op) ? r->type : op_names[r->op]);
		a = ANSWER_MISSING;
	} else if (p != NULL) {
		say("route %s type=%s bytes=%zu", r->label, r->type, ggml_type_size(type));
		if (ggml_type_size(type) == r->bytes)
			a = route_shapes(e, r, p, &scores, &worst);
		else
			say("note %s: blocks of %zu bytes, ours have %u", r->label, ggml_type_size(type), r->bytes);
		if (a == ANSWER_RIGHT)
			say("PASS %s: %zu scores, max diff %.3e", r->label, scores, worst);
		else if (a == ANSWER_WRONG || a == ANSWER_BROKEN)
			say("FAIL %s: %zu scores, max diff %.3e", r->label, scores, worst);
	}
	free(p);
	return a;
}

static int
suite_run(const struct engine *e)
{
	size_t count[ANSWER_BROKEN + 1] = {0}, i;

	ref_pi_fill(PI_SEED, pi);
	for (i = 0; i < ROUTES; i++)
		count[route_run(e, &routes[i])]++;
	if (count[ANSWER_RIGHT] == ROUTES) {
		say("PASS engine suite: %zu graph routes", ROUTES);
		return 0;
	}
	say("FAIL engine suite: %zu of %zu graph routes right, %zu not supported, %zu not in the engine",
		count[ANSWER_RIGHT], ROUTES, count[ANSWER_UNSUPPORTED], count[ANSWER_MISSING]);
	return count[ANSWER_MISSING] + count[ANSWER_RIGHT] == ROUTES ? 3 : 1;
}

static bool
is_software(const char *description)
{
	static const char *const names[] = {"llvmpipe", "lavapipe", "swiftshader", "software rasterizer"};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		for (at = description; *at != '\0'; at++)
			if (strncasecmp(at, names[i], strlen(names[i])) == 0)
				return true;
	return false;
}

/* Backends that are files of their own are loaded, and no others twice. */
static ggml_backend_dev_t
device_find(const char *name, const char *folder)
{
	ggml_backend_dev_t d = ggml_backend_dev_by_name(name);

	if ((d == NULL || ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == NULL) && folder != NULL) {
		ggml_backend_load_all_from_path(folder);
		d = ggml_backend_dev_by_name(name);
	}
	return d;
}

static bool
engine_open(struct engine *e, ggml_backend_dev_t d)
{
	ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
	struct ggml_backend_dev_props props;

	memset(&props, 0, sizeof props);
	ggml_backend_dev_get_props(d, &props);
	e->device_name = ggml_backend_dev_name(d);
	say("device=%s", ggml_backend_dev_description(d));
	say("backend=%s registry=%s id=%s", e->device_name,
		ggml_backend_reg_name(ggml_backend_dev_backend_reg(d)),
		props.device_id != NULL && props.device_id[0] != '\0' ? props.device_id : "unknown");
	if (cpu == NULL) {
		say("note the engine has no CPU backend to compare with");
		return false;
	}
	say("cpu=%s", ggml_backend_dev_description(cpu));
	e->device = ggml_backend_dev_init(d, NULL);
	e->cpu = ggml_backend_dev_init(cpu, NULL);
	if (e->device == NULL || e->cpu == NULL)
		say("note the device could not be opened");
	return e->device != NULL && e->cpu != NULL;
}

static int
device_run(const char *name, const char *folder)
{
	ggml_backend_dev_t d = device_find(name, folder);
	const char *allowed = getenv("ELIZA_ALLOW_SOFTWARE_VULKAN");
	struct engine e = {NULL, NULL, NULL};
	size_t i;

	if (d == NULL) {
		say("NODEVICE %s", name);
		for (i = 0; i < ggml_backend_dev_count(); i++)
			say("note there is %s, %s", ggml_backend_dev_name(ggml_backend_dev_get(i)),
				ggml_backend_dev_description(ggml_backend_dev_get(i)));
		return 3;
	}
	if (!engine_open(&e, d))
		return 1;
	if (is_software(ggml_backend_dev_description(d)) && (allowed == NULL || strcmp(allowed, "1") != 0)) {
		say("SOFTWARE %s: proves nothing about hardware", e.device_name);
		return 3;
	}
	return suite_run(&e);
}

int
main(int argc, char **argv)
{
	const char *device = NULL, *folder = NULL;
	int i;

	if (argc > 0) /* its lines carry the name it was given */
		tool = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
	for (i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--device") == 0)
			device = argv[i + 1];
		else if (strcmp(argv[i], "--backends") == 0)
			folder = argv[i + 1];
		else
			break;
	}
	if (i != argc || device == NULL) {
		fprintf(stderr, "usage: %s --device NAME [--backends DIR]\n", tool);
		return 2;
	}
	i = device_run(device, folder);
	/* all is said: drivers that crash while they are torn down change nothing of it */
	fflush(NULL);
	_Exit(i);
}
