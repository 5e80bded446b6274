#include "common/elog.h"

#include <stdlib.h>
#include <string.h>

#include "common/elog_impl.h"
#include "common/elog_line.h"
#include "common/str.h"
#include "common/tool.h"

struct row {
	const char *fn;  /* function in front; NULL any or none; "x*" begins so */
	const char *pat; /* see span_match() */
	void (*fill)(struct parse *, const struct span *caps, int arg);
	int arg;
};

/* ---- allocation ---- */

static void
group_close(struct parse *p)
{
	p->open = false;
}

static void
group_open(struct parse *p)
{
	if (p->open)
		return;
	p->open = true;
	p->real = false;
	p->reserving = p->trial = true;
	p->k_type[0] = p->v_type[0] = '\0';
}

/* A context really allocates: what was known of an earlier one, and troubles of the dry
 * pass that did not stop the engine, are no longer true. */
static void
group_real(struct parse *p)
{
	struct elog *l = p->l;

	p->real = true;
	p->levels = p->level != '\0';
	l->kv_count = l->place_count = l->attn_count = l->group_count = 0;
	l->custom_op = l->cache_cast = false;
	l->graphs = 0;
	l->kv_write_seen = l->attn_seen = l->overflow = false;
	l->model_load_failed = l->v_needs_fa = l->head_not_divisible = l->out_of_memory = false;
	l->model_reason = REASON_NONE;
	l->cause[0] = '\0';
	memcpy(l->k_type, p->k_type, sizeof l->k_type);
	memcpy(l->v_type, p->v_type, sizeof l->v_type);
	memcpy(l->layer_on, p->layer_on, sizeof l->layer_on);
	l->layer_count = p->layer_count;
}

static void
on_kv_buffer(struct parse *p, const struct span *caps, int arg)
{
	struct elog *l = p->l;
	double mib = span_number(caps[1]);
	char device[sizeof l->kv[0].device];
	int i;

	(void)arg;
	p->took = true;
	if (p->generating)
		return;
	group_open(p);
	if (mib <= 0)
		return;
	if (!p->real)
		group_real(p);
	span_copy(device, sizeof device, caps[0]);
	for (i = 0; i < l->kv_count && strcmp(l->kv[i].device, device) != 0; i++)
		;
	if (i == ELOG_MAX_BUFFERS) {
		l->overflow = true;
		return;
	}
	l->kv_line = p->number;
	if (i == l->kv_count) {
		memcpy(l->kv[i].device, device, sizeof device);
		l->kv[i].mib = 0;
		l->kv_count++;
	}
	l->kv[i].mib += mib;
}

/* A context with two caches (sliding window) has two types; when they differ the name
 * becomes "q8_0/f16", which equals no type that was asked for. */
static void
type_join(char type[ELOG_TYPE], struct span s)
{
	char word[ELOG_TYPE];
	size_t n = strlen(type);

	span_copy(word, sizeof word, s);
	if (n == 0) {
		memcpy(type, word, sizeof word);
	} else if (strcmp(type, word) != 0 && strchr(type, '/') == NULL &&
		   n + 2 < ELOG_TYPE) {
		type[n] = '/';
		span_copy(type + n + 1, ELOG_TYPE - n - 1, s);
	}
}

static void
on_kv_types(struct parse *p, const struct span *caps, int arg)
{
	/* a cache without layers, as of a model whose window slides in all of them */
	if (p->generating || span_has(caps[1], " 0 layers"))
		return;
	group_open(p);
	p->l->type_line = p->number;
	type_join(p->k_type, caps[arg]);
	type_join(p->v_type, caps[arg + 2]);
	if (!p->real)
		return;
	memcpy(p->l->k_type, p->k_type, sizeof p->k_type);
	memcpy(p->l->v_type, p->v_type, sizeof p->v_type);
}

static void
on_context(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	if (p->talking)
		return;
	group_close(p);
	p->l->flash_attention = ELOG_FA_UNKNOWN;
	p->l->compute_buffers = p->l->freed_buffers = 0;
	p->layer_count = 0;
}

static void
on_compute(struct parse *p, const struct span *caps, int arg)
{
	struct elog *l = p->l;
	char device[32];
	int i;

	(void)arg;
	span_copy(device, sizeof device, caps[0]);
	for (i = 0; i < l->compute_buffers && strcmp(p->compute[i], device) != 0; i++)
		;
	if (i == l->compute_buffers && i < ELOG_MAX_BUFFERS) {
		memcpy(p->compute[i], device, sizeof device);
		l->compute_buffers++;
	}
}

/* The context's destructor, a line for each buffer: the engine's last words. */
static void
on_freed(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->freed_buffers++;
}

static void
on_loading(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	group_close(p);
}

static void
on_offloaded(struct parse *p, const struct span *caps, int arg)
{
	(void)arg;
	group_close(p);
	if (p->generating)
		return;
	p->l->offload_line = p->number;
	p->l->offloaded = span_int(caps[0]);
	p->l->layers = span_int(caps[1]);
}

static void
on_architecture(struct parse *p, const struct span *caps, int arg)
{
	if (p->generating)
		return;
	span_copy(p->l->architecture, sizeof p->l->architecture, span_trim(caps[arg]));
}

static void
on_flash_attention(struct parse *p, const struct span *caps, int arg)
{
	(void)caps;
	p->l->flash_attention = (enum elog_fa)arg;
}

/* ---- generation ---- */

static void
on_prompt_time(struct parse *p, const struct span *caps, int arg)
{
	p->l->prompt_ms = span_number(caps[arg]);
	p->l->prompt_tokens = span_int(caps[arg + 1]);
}

/*
 * The engine prints at least 1 run, even when there was none, and then 0.00 ms.  The
 * first token comes from the prompt's own evaluation; a prompt of one token is counted
 * as a run, then the prompt's time is 0.00 ms.
 */
static void
on_runs(struct parse *p, const struct span *caps, int arg)
{
	struct elog *l = p->l;
	int runs = span_int(caps[1]);

	(void)arg;
	l->eval_ms = span_number(caps[0]);
	l->tokens_line = p->number;
	if (runs == 1 && l->eval_ms < 0.005)
		runs = 0;
	l->tokens = runs + (l->prompt_ms >= 0 && l->prompt_ms < 0.005 ? 0 : 1);
}

/* The server's form, which llama-cli -st prints: the number of tokens itself. */
static void
on_tokens(struct parse *p, const struct span *caps, int arg)
{
	p->l->eval_ms = span_number(caps[arg]);
	p->l->tokens = span_int(caps[arg + 1]);
}

static void
on_predict(struct parse *p, const struct span *caps, int arg)
{
	if (p->real)
		p->generating = true;
	p->n_predict = span_int(caps[arg]);
	p->n_remain = -1;
}

static void
on_remain(struct parse *p, const struct span *caps, int arg)
{
	p->talking = p->talking || p->real;
	p->n_remain = span_int(caps[arg]);
}

/* ---- placement ---- */

/* What stood before the first token proves the placement; it must be all there. */
static void
on_cut(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->l->cut_late = p->talking;
}

static void
on_reserving(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	if (p->talking)
		return;
	p->reserving = true;
}

static void
on_reserved(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	p->reserving = false;
	group_close(p);
}

static void
on_reserve_graph(struct parse *p, const struct span *caps, int arg)
{
	(void)caps, (void)arg;
	if (p->talking)
		return;
	p->try_next = true;
}

/* "## SPLIT #0:" begins a graph. */
static void
on_split(struct parse *p, const struct span *caps, int arg)
{
	(void)arg;
	if (span_int(caps[0]) != 0)
		return;
	p->trial = p->reserving || p->try_next;
	p->try_next = false;
	if (p->real && !p->trial) {
		elog_graph_begin(p->l);
		p->generating = true;
	}
}

#define FLAG(name) (int)offsetof(struct elog, name)

/*
 * Version 1 of the table; ELOG_VERSION counts changes of meaning.  A line may fill from
 * several rows.  Function names changed often ("llm_load_tensors", "load_tensors"), so
 * most rows take any; the words after them hardly changed since 2024.  Lines of 2023
 * ("kv self size = 256.00 MB") name neither type nor device and so prove nothing.
 */
static const struct row rows[] = {
	/* model and device */
	{ NULL, "loaded meta data with %*", on_loading, 0 },
	{ NULL, "- kv %d: general.architecture str = %s", on_architecture, 1 },
	{ NULL, "arch = %s", on_architecture, 0 },
	{ NULL, "using device %*", elog_on_device, 0 },
	{ "ggml_vulkan", "%d = %*", elog_on_vulkan_device, 1 },
	{ "Vulkan*", "%* | uma: %*", elog_on_vulkan_device, 0 },
	{ "ggml_vulkan", "Warning: Device type is CPU%*", elog_on_cpu_type, 0 },
	{ NULL, "%*, compute capability %d.%*", elog_on_listed, 0 },
	{ NULL, "%*, gfx%*", elog_on_listed, 0 },
	{ NULL, "offloaded %d/%d layers to GPU", on_offloaded, 0 },
	{ "warning", "no usable GPU found%*", elog_on_flag, FLAG(no_gpu_warning) },
	/* context and cache */
	{ NULL, "constructing llama_context", on_context, 0 },
	{ "llama_new_context_with_model", "n_ctx = %d", on_context, 0 },
	{ "llama_init_from_model", "n_ctx = %d", on_context, 0 },
	{ NULL, "flash_attn = auto", on_flash_attention, ELOG_FA_AUTO },
	{ NULL, "flash_attn = enabled", on_flash_attention, ELOG_FA_ENABLED },
	{ NULL, "flash_attn = disabled", on_flash_attention, ELOG_FA_DISABLED },
	{ NULL, "flash_attn = 1", on_flash_attention, ELOG_FA_ENABLED },
	{ NULL, "flash_attn = 0", on_flash_attention, ELOG_FA_DISABLED },
	{ NULL, "Flash Attention was auto, set to enabled", on_flash_attention, ELOG_FA_ENABLED },
	{ NULL, "Flash Attention was auto, set to disabled", on_flash_attention, ELOG_FA_DISABLED },
	{ NULL, "Flash Attention enabled", on_flash_attention, ELOG_FA_ENABLED },
	{ NULL, "Flash Attention not supported, set to disabled", on_flash_attention, ELOG_FA_DISABLED },
	{ NULL, "flash_attn%* forcing off", on_flash_attention, ELOG_FA_DISABLED },
	{ NULL, "layer %d: dev = %s", elog_on_layer, 1 },
	{ NULL, "%s KV buffer size = %f MiB", on_kv_buffer, 0 },
	{ NULL, "size = %f MiB (%*), K (%s): %f MiB, V (%s): %f MiB", on_kv_types, 2 },
	{ NULL, "KV self size = %f MiB, K (%s): %f MiB, V (%s): %f MiB", on_kv_types, 1 },
	{ NULL, "%s compute buffer size = %f MiB", on_compute, 0 },
	{ "~llama_context", "%s compute buffer size is %f MiB, matches expectation of %f MiB", on_freed, 0 },
	{ "~llama_context", "%s compute buffer size of %f MiB, does not match expectation of %f MiB", on_freed, 0 },
	/* graphs */
	{ NULL, "reserving ...", on_reserving, 0 },
	{ NULL, "reserving a graph for ubatch%*", on_reserve_graph, 0 },
	{ NULL, "graph splits = %*", on_reserved, 0 },
	{ NULL, "graph splits (measure): %*", on_reserved, 0 },
	{ NULL, "## SPLIT #%d: %*", on_split, 0 },
	{ NULL, "node #%*(%*): %* [%*] %*", elog_on_node, 0 },
	{ NULL, "node #%*(%*): %* [%*]", elog_on_node, 0 },
	{ NULL, "node #%*(%*): %* [%*]:", elog_on_node, 0 }, /* of 2024, without sources */
	/* timings */
	{ NULL, "prompt eval time = %f ms / %d tokens%*", on_prompt_time, 0 },
	{ NULL, "eval time = %f ms / %d runs%*", on_runs, 0 },
	{ NULL, "eval time = %f ms / %d tokens%*", on_tokens, 0 },
	{ NULL, "id %d | task %d | prompt eval time = %f ms / %d tokens%*", on_prompt_time, 2 },
	{ NULL, "id %d | task %d | eval time = %f ms / %d tokens%*", on_tokens, 2 },
	{ "generate", "n_ctx = %d, n_batch = %d, n_predict = %d,%*", on_predict, 2 },
	{ "n_remain", "%d", on_remain, 0 },
	/* devices that fail */
	{ "ggml_cuda_init", "failed to initialize %*", elog_on_trouble, FLAG(backend_init_failed) },
	{ "ggml_vulkan", "No devices found.", elog_on_trouble, FLAG(backend_init_failed) },
	{ NULL, "failed to initialize %s backend", elog_on_trouble, FLAG(backend_init_failed) },
	{ NULL, "failed to initialize the context: failed to initialize %s backend", elog_on_trouble, FLAG(backend_init_failed) },
	{ "ggml_metal*", "error: failed to %*", elog_on_trouble, FLAG(backend_init_failed) },
	{ "ggml_vulkan", "device lost on %*", elog_on_trouble, FLAG(device_lost) },
	{ NULL, "%*ErrorDeviceLost%*", elog_on_trouble, FLAG(device_lost) },
	{ NULL, "%*VK_ERROR_DEVICE_LOST%*", elog_on_trouble, FLAG(device_lost) },
	{ NULL, "%*GPU is lost%*", elog_on_trouble, FLAG(device_lost) },
	{ NULL, "%*failed: out of memory%*", elog_on_trouble, FLAG(out_of_memory) },
	{ NULL, "%*ErrorOutOfDeviceMemory%*", elog_on_trouble, FLAG(out_of_memory) },
	{ "error", "out of memory%*", elog_on_trouble, FLAG(out_of_memory) },
	/* code for other chips, in the words of CUDA, HIP and rocBLAS */
	{ "error", "no kernel image is available%*", elog_on_trouble, FLAG(no_code) },
	{ "error", "invalid device function%*", elog_on_trouble, FLAG(no_code) },
	{ "error", "the provided PTX was compiled with an unsupported toolchain%*", elog_on_trouble, FLAG(no_code) },
	{ "error", "Cannot read %*TensileLibrary%*", elog_on_trouble, FLAG(no_code) },
	{ NULL, "%*has no device code compatible with %*", elog_on_trouble, FLAG(no_code) },
	{ NULL, "%*hipErrorNoBinaryForGpu%*", elog_on_trouble, FLAG(no_code) },
	{ NULL, "%*hipErrorInvalidDeviceFunction%*", elog_on_trouble, FLAG(no_code) },
	{ NULL, "%*cudaErrorNoKernelImageForDevice%*", elog_on_trouble, FLAG(no_code) },
	{ NULL, "failed to allocate %s buffer of size %*", elog_on_trouble, FLAG(out_of_memory) },
	{ NULL, "%*failed to allocate buffer for kv cache%*", elog_on_trouble, FLAG(out_of_memory) },
	{ NULL, "%*failed to allocate compute %s buffers", elog_on_trouble, FLAG(out_of_memory) },
	{ NULL, "error loading model: unable to allocate %s buffer", elog_on_trouble, FLAG(out_of_memory) },
	/* what the engine refuses */
	{ NULL, "%*V cache quantization requires flash_attn", elog_on_trouble, FLAG(v_needs_fa) },
	{ NULL, "%*quantized V cache requires flash_attn%*", elog_on_trouble, FLAG(v_needs_fa) },
	{ NULL, "%*quantized V cache was requested, but this requires Flash Attention%*", elog_on_trouble, FLAG(v_needs_fa) },
	{ NULL, "%s cache type %s with block size %d does not divide %*", elog_on_trouble, FLAG(head_not_divisible) },
	{ NULL, "%*Unsupported cache type: %s", elog_on_trouble, FLAG(unknown_cache_type) },
	{ NULL, "%*Invalid cache type: %s", elog_on_trouble, FLAG(unknown_cache_type) },
	{ NULL, "please use llama-completion instead", elog_on_trouble, FLAG(conversation_refused) },
	{ NULL, "--no-conversation is not supported by %*", elog_on_trouble, FLAG(conversation_refused) },
	{ "commands", "", elog_on_flag, FLAG(speaks_cli_only) },
	/* model */
	{ NULL, "failed to open GGUF file '%*' (%*)", elog_on_model_open, 1 },
	{ NULL, "error loading model: failed to open %*: %*", elog_on_model_open, 1 },
	{ "gguf_init*", "invalid magic%*", elog_on_model, REASON_MODEL_NOT_GGUF },
	{ "gguf_init*", "failed to read magic%*", elog_on_model, REASON_MODEL_NOT_GGUF },
	{ "gguf_init*", "failed to read %*", elog_on_model, REASON_MODEL_MALFORMED },
	{ NULL, "%*is not within the file bounds%*", elog_on_model, REASON_MODEL_TRUNCATED },
	{ NULL, "error loading model%*unknown model architecture%*", elog_on_model, REASON_MODEL_NOT_SUITABLE },
	{ NULL, "error loading model%*unsupported model architecture%*", elog_on_model, REASON_MODEL_NOT_SUITABLE },
	{ NULL, "error loading model: %*", elog_on_model, REASON_MODEL_MALFORMED },
	{ NULL, "failed to load model%*", elog_on_model, REASON_MODEL_MALFORMED },
	{ NULL, "error: unable to load model%*", elog_on_model, REASON_MODEL_MALFORMED },
	/* of the transcript: bytes were dropped here */
	{ NULL, "#verify %s cut %d", on_cut, 0 },
	/* ends */
	{ NULL, "%*pre-allocated tensor (%*) in a buffer (%*) that cannot run the operation (%s)%*", elog_on_op_unsupported, 1 },
	{ NULL, "%*op not supported %*", elog_on_op_refused, 0 },
	{ NULL, "Missing op: %s for %*", elog_on_op_missing, 0 },
	{ "op", "%s for %*", elog_on_op_missing, 0 },
	{ NULL, "%*unsupported op '%*'%*", elog_on_op_missing, 1 },
	{ "GGML_ASSERT", "%*", elog_on_abort, 0 },
	{ NULL, "GGML_ASSERT(%*", elog_on_abort, 0 },
	{ NULL, "terminate called%*", elog_on_abort, 0 },
	{ NULL, "libc++abi: terminating%*", elog_on_abort, 0 },
	{ NULL, "Memory access fault by GPU%*", elog_on_abort, 0 },
	{ NULL, "%*(ggml_abort+%*", elog_on_backtrace, 0 },
	/* of the C library and of shells, who speak last */
	{ NULL, "Segmentation fault%*", elog_on_abort, 0 },
	{ NULL, "%*: line %d: %d Segmentation fault %*", elog_on_abort, 0 },
	{ NULL, "line %d: %d Segmentation fault %*", elog_on_abort, 0 },
	{ NULL, "%*: line %d: %d Aborted %*", elog_on_abort, 0 },
	{ NULL, "line %d: %d Aborted %*", elog_on_abort, 0 },
	{ NULL, "%*: line %d: %d Killed %*", elog_on_abort, 0 },
	{ NULL, "line %d: %d Killed %*", elog_on_abort, 0 },
	{ NULL, "Aborted", elog_on_abort, 0 },
	{ NULL, "Aborted (core dumped)%*", elog_on_abort, 0 },
	{ NULL, "Killed", elog_on_abort, 0 },
	{ NULL, "Bus error%*", elog_on_abort, 0 },
	{ NULL, "Illegal instruction%*", elog_on_abort, 0 },
	{ NULL, "double free or corruption%*", elog_on_abort, 0 },
	{ NULL, "free(): %*", elog_on_abort, 0 },
	{ NULL, "malloc(): %*", elog_on_abort, 0 },
	{ NULL, "munmap_chunk(): %*", elog_on_abort, 0 },
	{ NULL, "corrupted size vs. prev_size%*", elog_on_abort, 0 },
	{ NULL, "*** stack smashing detected ***%*", elog_on_abort, 0 },
	{ "zsh", "segmentation fault%*", elog_on_abort, 0 },
	{ "zsh", "abort %*", elog_on_abort, 0 },
	{ NULL, "Command terminated by signal %d", elog_on_abort, 0 },
	{ NULL, "ggml_backend_sched_graph_compute_async failed with error %*", elog_on_graph_failed, 0 },
	{ NULL, "failed to eval", elog_on_graph_failed, 0 },
	{ "Error", "%*", elog_on_error_prefix, 0 },
	{ "error", "%*", elog_on_error, 0 },
	{ NULL, "error: %*", elog_on_error, 0 },
	{ NULL, "error while handling %*", elog_on_error, 0 },
	{ NULL, "failed to %*", elog_on_error, 0 },
};

/* ---- lines ---- */

/* Keeps the lines after a refused cache type, as long as they fit. */
static void
usage_add(struct parse *p)
{
	if (!p->l->unknown_cache_type || p->usage_len + p->line.n + 1 > sizeof p->usage)
		return;
	memcpy(p->usage + p->usage_len, p->line.p, p->line.n);
	p->usage_len += p->line.n;
	p->usage[p->usage_len++] = '\n';
}

/* Messages that only make sense whole: one that was torn, by a second thread or a cut, may
 * have said the opposite of what the others say. */
static void
torn_note(struct parse *p, struct span line)
{
	if (p->took || !p->real)
		return;
	if ((!p->trial && ((line.n > 6 && memcmp(line.p, "node #", 6) == 0) || (span_has(line, " use=") && span_has(line, ",c=")))) ||
	    (!p->generating && span_has(line, "KV buffer size")))
		p->l->torn++;
}

static struct letters
letters_of(struct span s)
{
	struct letters l = {{0, 0}};
	size_t i;

	for (i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 128)
			l.bits[s.p[i] >> 6] |= (uint64_t)1 << (s.p[i] & 63);
	return l;
}

/* A blank of a pattern may be a tab. */
static void
needs_find(struct parse *p)
{
	struct span part;
	const char *pat;
	size_t i, k;

	_Static_assert(str_count(rows) <= ELOG_MAX_ROWS, "a set of letters for every row");
	for (i = 0; i < str_count(rows); i++)
		for (pat = rows[i].pat; *pat != '\0'; pat += *pat == '%' ? 2 : 1) {
			part.p = pat;
			part.n = *pat != '%' && *pat != ' ';
			for (k = 0; k < 2; k++)
				p->needs[i].bits[k] |= letters_of(part).bits[k];
		}
}

static bool
may_match(const struct letters *need, const struct letters *have)
{
	return (need->bits[0] & ~have->bits[0]) == 0 && (need->bits[1] & ~have->bits[1]) == 0;
}

/* What stands in front of a run's first allocation, or is that. */
static bool
begins_run(struct span body)
{
	static const char *const words[] = {
		"llama backend init", "using device %*", "loaded meta data with %*", "constructing llama_context",
		"found %d CUDA devices%*", "found %d ROCm devices%*", "Found %d Vulkan devices:", "%s KV buffer size = %*",
		"n_ctx = %d",
	};
	struct span caps[SPAN_MAX_FIELDS];
	size_t i;

	for (i = 0; i < str_count(words); i++)
		if (span_match(body, words[i], caps))
			return true;
	return false;
}

static void parse_begin(struct parse *p, struct elog *out);
static void parse_end(struct parse *p);

/* The first run has come to its end, and here is another. */
static void
run_next(struct parse *p)
{
	struct parse kept = {.each_run = p->each_run, .each_arg = p->each_arg, .line = p->line,
		.level = p->level, .number = p->number};

	if (p->each_run == NULL) {
		p->l->next_run = p->number;
		p->stop = true;
		return;
	}
	p->l->whole = true;
	parse_end(p);
	p->each_run(p->each_arg, p->l);
	parse_begin(p, p->l);
	p->each_run = kept.each_run;
	p->each_arg = kept.each_arg;
	p->line = kept.line;
	p->level = kept.level;
	p->number = kept.number;
}

/* One message: matched against every row. */
static void
message_whole(void *arg, struct span line, char level, size_t number)
{
	struct parse *p = arg;
	struct span caps[SPAN_MAX_FIELDS], fn = { "", 0 }, body = line;
	const struct letters have = letters_of(line);
	size_t i;

	if (p->stop)
		return;
	p->line = line;
	p->level = level;
	p->number = number;
	p->took = false;
	p->debug_seen = p->debug_seen || (level == 'D' && !p->real);
	usage_add(p);
	if (level == 'E')
		elog_set_error(p);
	if (elog_source_split(line, &body))
		elog_source_abort(p, line, body);
	else
		elog_head_split(line, &fn, &body);
	if (p->generating && p->l->compute_buffers > 0 && p->l->freed_buffers >= p->l->compute_buffers &&
	    begins_run(body))
		run_next(p);
	memset(caps, 0, sizeof caps);
	for (i = 0; i < str_count(rows); i++)
		if (may_match(&p->needs[i], &have) && elog_fn_matches(rows[i].fn, fn) &&
		    span_match(body, rows[i].pat, caps))
			rows[i].fill(p, caps, rows[i].arg);
	torn_note(p, line);
}

static void
message_parse(void *arg, struct span line, char level, size_t number)
{
	struct span rest = line;
	size_t at;

	while (rest.n > 0) {
		at = elog_glued_at(rest);
		line.p = rest.p;
		line.n = at;
		line = span_trim(line);
		if (line.n > 0)
			message_whole(arg, line, level, number);
		rest.p += at;
		rest.n -= at;
	}
}

static void
accepted_types(const struct parse *p)
{
	char names[32][ELOG_TYPE];
	struct elog *out = p->l;
	size_t used = 0, n;
	int i, count = elog_help_types(p->usage, p->usage_len, names,
				       (int)str_count(names));

	for (i = 0; i < count; i++) {
		n = strlen(names[i]);
		if (used + n + 3 > sizeof out->accepted)
			break;
		if (used > 0) {
			memcpy(out->accepted + used, ", ", 2);
			used += 2;
		}
		memcpy(out->accepted + used, names[i], n);
		used += n;
	}
	out->accepted[used] = '\0';
}

static void
parse_begin(struct parse *p, struct elog *out)
{
	memset(out, 0, sizeof *out);
	out->offloaded = out->layers = out->prompt_tokens = out->tokens = -1;
	out->prompt_ms = out->eval_ms = -1;
	memset(p, 0, sizeof *p);
	p->l = out;
	p->trial = true;
	p->n_predict = p->n_remain = -1;
	needs_find(p);
}

static void
parse_end(struct parse *p)
{
	struct elog *out = p->l;

	elog_graph_end(out);
	/* what is used decides; where that is not said, what is there */
	if ((p->soft && (out->device[0] == '\0' || (!p->hard && str_starts(out->device, "Vulkan")))) ||
	    (out->cpu_type && !p->hard))
		out->software_device = true;
	out->layered = out->layered || (p->layered && !p->hard && out->device[0] == '\0');
	if (out->tokens < 0 && p->n_remain == 0)
		out->tokens = p->n_predict;
	accepted_types(p);
}

void
elog_parse(const char *log, size_t len, struct elog *out)
{
	struct parse p;
	char *wide;
	size_t wide_len = 0;

	parse_begin(&p, out);
	wide = tool_is_utf16(log, len) ? tool_utf8(log, len, &wide_len) : NULL;
	if (wide != NULL)
		(void)elog_messages(wide, wide_len, 1, message_parse, &p);
	else
		(void)elog_messages(log, len, 1, message_parse, &p);
	free(wide);
	out->whole = len > 0 && (log[len - 1] == '\n' || (wide_len > 0 && len > 1 && log[len - 2] == '\n'));
	parse_end(&p);
}

/* ---- in pieces ---- */

struct elog_stream {
	struct parse p;
	size_t line;      /* number of the line that comes next */
	size_t kept;      /* bytes of it that came with earlier pieces */
	char buf[ELOG_MAX_RAW];
};

int
elog_open(struct elog *out, struct elog_stream **s, struct err *e)
{
	if ((*s = malloc(sizeof **s)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory to read a log");
	parse_begin(&(*s)->p, out);
	(*s)->line = 1;
	(*s)->kept = 0;
	return 0;
}

void
elog_each_run(struct elog_stream *s, elog_run_fn each, void *arg)
{
	s->p.each_run = each;
	s->p.each_arg = arg;
}

/* Keeps the beginning of a line.  What is too long for that says nothing for certain. */
static void
line_keep(struct elog_stream *s, const char *p, size_t n)
{
	size_t room = sizeof s->buf - s->kept;

	if (n > room) {
		s->p.l->torn++;
		n = room;
	}
	memcpy(s->buf + s->kept, p, n);
	s->kept += n;
}

static size_t
last_newline(const char *p, size_t n)
{
	while (n > 0 && p[n - 1] != '\n')
		n--;
	return n;
}

void
elog_add(struct elog_stream *s, const char *p, size_t n)
{
	const char *end = s->kept > 0 ? memchr(p, '\n', n) : NULL;
	size_t whole;

	if (end != NULL) {
		whole = (size_t)(end - p) + 1;
		line_keep(s, p, whole - 1);
		p += whole, n -= whole;
		(void)elog_messages(s->buf, s->kept, s->line, message_parse, &s->p);
		s->line++;
		s->kept = 0;
	}
	whole = s->kept > 0 ? 0 : last_newline(p, n);
	s->line = elog_messages(p, whole, s->line, message_parse, &s->p);
	line_keep(s, p + whole, n - whole);
}

void
elog_close(struct elog_stream *s)
{
	if (s == NULL)
		return;
	s->p.l->whole = s->kept == 0 && s->line > 1;
	(void)elog_messages(s->buf, s->kept, s->line, message_parse, &s->p);
	parse_end(&s->p);
	free(s);
}
