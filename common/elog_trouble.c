/* elog_trouble - what a log says of devices, of what the engine refused, and of its end. */
#include "common/elog_impl.h"

#include <string.h>

#include "common/str.h"
#include "common/tool.h"

void
elog_set_error(struct parse *p)
{
	span_copy(p->l->error, sizeof p->l->error, p->line);
	p->l->error_line = p->number;
}

static void
set_cause(struct parse *p)
{
	if (p->l->cause[0] == '\0') {
		span_copy(p->l->cause, sizeof p->l->cause, p->line);
		p->l->cause_line = p->number;
	}
	elog_set_error(p);
}

/* ---- devices ---- */

static bool
names_one_of(struct span name, const char *const *words, size_t count)
{
	size_t i;

	for (i = 0; i < count && !span_has_nocase(name, words[i]); i++)
		;
	return i < count;
}

static bool
is_software(struct span name)
{
	static const char *const words[] = {
		"llvmpipe", "lavapipe", "swiftshader", "softpipe", "basic render",
	};

	return names_one_of(name, words, str_count(words));
}

/* Reached through another interface, or from inside of a virtual machine: what is proven
 * there is not proven of the device's own driver. */
static bool
is_layered(struct span name)
{
	static const char *const words[] = {
		"direct3d12", "virtio-gpu", "gfxstream", "moltenvk", "[zluda]",
	};

	return names_one_of(name, words, str_count(words));
}

void
elog_device_add(struct elog_device *list, int *count, struct span name, size_t line)
{
	char text[sizeof list->name];
	int i;

	span_copy(text, sizeof text, name);
	for (i = 0; i < *count && strcmp(list[i].name, text) != 0; i++)
		;
	if (i < *count || i == ELOG_MAX_BUFFERS)
		return;
	memcpy(list[i].name, text, sizeof text);
	list[i].line = line;
	*count = i + 1;
}

/* "layer   1: dev = CUDA0", in front of the buffer */
void
elog_on_layer(struct parse *p, const struct span *caps, int arg)
{
	if (p->generating)
		return;
	elog_device_add(p->layer_on, &p->layer_count, caps[arg], p->number);
	if (p->open && p->real)
		elog_device_add(p->l->layer_on, &p->l->layer_count, caps[arg], p->number);
}

/* " (0000:00:06.0) - ..." behind the description; "unknown id" is none. */
static void
pci_take(struct parse *p, struct span s, size_t from)
{
	size_t i, n;
	char text[32];

	for (i = from; i < s.n && s.p[i] != '('; i++)
		;
	for (n = 0; i + 1 + n < s.n && n < sizeof text - 1 && s.p[i + 1 + n] != ')'; n++)
		text[n] = s.p[i + 1 + n];
	text[n] = '\0';
	if (!tool_pci(text, p->l->device_pci))
		p->l->device_pci[0] = '\0';
}

/* "CUDA0 (NVIDIA H200) (0000:00:06.0) - 142629 MiB free": keeps name and description,
 * which may hold parentheses of its own.  The first device of the log stays. */
void
elog_on_device(struct parse *p, const struct span *caps, int arg)
{
	struct span s = caps[0], id = s;
	size_t i;
	int depth = 0;

	(void)arg;
	if (p->generating)
		return;
	for (i = 0; i < s.n; i++) {
		depth += s.p[i] == '(' ? 1 : s.p[i] == ')' ? -1 : 0;
		if (s.p[i] == ')' && depth <= 0)
			break;
	}
	s.n = i < s.n ? i + 1 : s.n;
	for (id.n = 0; id.n < s.n && !span_is_blank(s.p[id.n]); id.n++)
		;
	elog_device_add(p->l->used, &p->l->used_count, id, p->number);
	if (is_software(s))
		p->l->software_device = true;
	p->l->layered = p->l->layered || is_layered(s);
	if (p->l->device[0] != '\0')
		return;
	span_copy(p->l->device, sizeof p->l->device, s);
	p->l->device_line = p->number;
	pci_take(p, caps[0], s.n);
}

void
elog_on_vulkan_device(struct parse *p, const struct span *caps, int arg)
{
	if (p->generating)
		return;
	p->l->device_listed = true;
	if (is_software(caps[arg]))
		p->soft = true;
	else if (is_layered(caps[arg]))
		p->layered = true;
	else
		p->hard = true;
}

/* "Device 0: NVIDIA H200, compute capability 9.0, VMM: yes" */
void
elog_on_listed(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->device_listed = p->l->device_listed || !p->generating;
}

/* One device among several may be said to be software: which one is not said. */
void
elog_on_cpu_type(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->cpu_type = true;
}

/* ---- trouble ---- */

/* Flags that need no more than being seen; rows name them by offset. */
void
elog_on_flag(struct parse *p, const struct span *caps, int arg)
{
	bool *flag = (bool *)(void *)((char *)p->l + arg);

	(void)caps;
	*flag = true;
}

void
elog_on_trouble(struct parse *p, const struct span *caps, int arg)
{
	elog_on_flag(p, caps, arg);
	set_cause(p);
}

void
elog_on_abort(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->aborted = true;
	elog_set_error(p);
}

/* The engine may go on after a graph that failed; what it then says is worth nothing. */
void
elog_on_graph_failed(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->error_prefix = true;
	elog_set_error(p);
}

/* The backtrace after an abort: the line before it is the headline. */
void
elog_on_backtrace(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->aborted = true;
}

/* tensor "cache_k_l0 (view)", buffer "CUDA0", op "SET_ROWS" */
void
elog_on_op_unsupported(struct parse *p, const struct span *caps, int arg)
{
	struct span tensor = caps[arg];
	char op[24], device[20], name[24];
	size_t i;

	p->l->aborted = true;
	for (i = 0; i < tensor.n && tensor.p[i] != ' '; i++)
		if (tensor.p[i] == '_' && i + 2 < tensor.n && tensor.p[i + 1] == 'l' &&
		    span_is_digit(tensor.p[i + 2]))
			break;
	tensor.n = i;
	span_copy(op, sizeof op, caps[arg + 2]);
	span_copy(device, sizeof device, caps[arg + 1]);
	span_copy(name, sizeof name, tensor);
	if (str_fmt(p->l->op_unsupported, sizeof p->l->op_unsupported, NULL,
	    "%s on %s for %s", op, device, name))
		p->l->op_unsupported[0] = '?';
	set_cause(p);
}

/* Where the cache is, as the abort of a backend does not say which device it is. */
static void
op_set(struct parse *p, struct span op, struct span tensor)
{
	struct elog *l = p->l;
	char what[24], name[24];

	span_copy(what, sizeof what, op);
	span_copy(name, sizeof name, tensor);
	set_cause(p);
	if (l->op_unsupported[0] != '\0' || what[0] == '\0')
		return;
	if (str_fmt(l->op_unsupported, sizeof l->op_unsupported, NULL, "%s on %.20s for %s", what,
	    l->kv_count > 0 ? l->kv[0].device : "its device", name[0] ? name : "a tensor"))
		l->op_unsupported[0] = '?';
}

/* "cache_k_l0 (view) (SET_ROWS)" */
void
elog_on_op_refused(struct parse *p, const struct span *caps, int arg)
{
	struct span op = span_trim(caps[1]), tensor = op;
	size_t i;

	(void)arg;
	if (op.n < 2 || op.p[op.n - 1] != ')')
		return;
	for (i = op.n - 1; i > 0 && op.p[i - 1] != '('; i--)
		;
	op.p += i;
	op.n -= i + 1;
	for (i = 0; i < tensor.n && tensor.p[i] != ' ' && !(i > 1 && tensor.p[i] == '_' && tensor.p[i + 1] == 'l'); i++)
		;
	tensor.n = i;
	op_set(p, op, tensor);
}

void
elog_on_op_missing(struct parse *p, const struct span *caps, int arg)
{
	if (span_has(p->line, "Missing op: ") || span_has(p->line, "unsupported op "))
		op_set(p, caps[arg], caps[arg + 1]);
}

/* An abort in the source file of an op, about a type that it does not know. */
void
elog_source_abort(struct parse *p, struct span line, struct span body)
{
	static const char *const files[][2] = {
		{ "set-rows", "SET_ROWS" }, { "set_rows", "SET_ROWS" }, { "fattn", "FLASH_ATTN_EXT" },
		{ "cpy.cu", "CPY" }, { "softmax", "SOFT_MAX" },
	};
	struct span path = { line.p, (size_t)(body.p - line.p) }, op, none = { "cache_k", 7 };
	size_t i;

	elog_on_abort(p, NULL, 0);
	if (!span_has(body, "nsupported") && !span_has(body, "not supported"))
		return;
	for (i = 0; i < str_count(files); i++)
		if (span_has(path, files[i][0])) {
			op.p = files[i][1];
			op.n = strlen(op.p);
			op_set(p, op, none);
			return;
		}
}

/* A special reason beats the general one, the first special one stays. */
void
elog_on_model(struct parse *p, const struct span *caps, int arg)
{
	struct elog *l = p->l;

	(void)caps;
	l->model_load_failed = true;
	if (l->model_reason == REASON_NONE ||
	    (l->model_reason == REASON_MODEL_MALFORMED &&
	     arg != REASON_MODEL_MALFORMED)) {
		l->model_reason = (enum reason)arg;
		l->cause[0] = '\0';
	}
	set_cause(p);
}

void
elog_on_model_open(struct parse *p, const struct span *caps, int arg)
{
	elog_on_model(p, caps, span_has(caps[arg], "No such file") ? REASON_MODEL_MISSING :
		REASON_MODEL_UNREADABLE);
}

void
elog_on_error(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	if (p->level != 'D' && p->level != 'I')
		elog_set_error(p);
}

void
elog_on_error_prefix(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	/* llama-completion says n_remain with each token, and never this word */
	if (p->talking)
		return;
	p->l->error_prefix = true;
	elog_set_error(p);
}
