/*
 * A pair of synthetic models for multi-token prediction: a gemma4 and the gemma4-assistant
 * that drafts for it.  Both know a row of Walsh codes (synth.h) and nothing else: after a
 * token of index s comes the letter of index s + 1.  The drafter is wrong about two letters
 * of every four, so that half of its drafts are accepted.  Attention moves codes beside the
 * answer, where nobody reads them.
 */
#include <stdbool.h>

#include "agent/synth.h"
#include "agent/synth_file.h"
#include "common/str.h"

#define HEAD 128
#define HEADS 2
#define EMBD 256  /* of the model */
#define DRAFT 128 /* of the drafter, which must be of another width */
#define FFN 64
#define LAYERS 2  /* one that looks through a window, one that sees all */
#define WINDOW 512
#define CODE SYNTH_CODE
#define AT_CONTEXT CODE /* where attention writes */

enum dim { DIM_ONE, DIM_EMBD, DIM_DRAFT, DIM_BOTH, DIM_Q, DIM_KV, DIM_HEAD, DIM_ROPE, DIM_FFN, DIM_TOKENS, DIMS };

static const unsigned dims[DIMS] = { [DIM_ONE] = 1, [DIM_EMBD] = EMBD, [DIM_DRAFT] = DRAFT, [DIM_BOTH] = 2 * EMBD,
	[DIM_Q] = HEADS * HEAD, [DIM_KV] = HEAD, [DIM_HEAD] = HEAD, [DIM_ROPE] = HEAD / 2, [DIM_FFN] = FFN,
	[DIM_TOKENS] = SYNTH_TOKENS };

static int32_t
weight_noise(const void *net, unsigned layer, unsigned out, unsigned in)
{
	(void)net;
	(void)layer;
	(void)out;
	(void)in;
	return 0;
}

static int32_t
weight_embd(const void *net, unsigned layer, unsigned token, unsigned dim)
{
	(void)net;
	(void)layer;
	return dim < CODE ? synth_walsh(synth_index(token), dim) * SYNTH_ONE : 0;
}

/* The first CODE dimensions as they are, somewhere. */
static int32_t
weight_code(const void *net, unsigned layer, unsigned out, unsigned in)
{
	(void)net;
	(void)layer;
	return in < CODE && out == in ? SYNTH_ONE : 0;
}

static int32_t
weight_o(const void *net, unsigned layer, unsigned out, unsigned in)
{
	(void)net;
	(void)layer;
	return in < CODE && out == AT_CONTEXT + in ? SYNTH_ONE : 0;
}

/* Of the letter that follows the index before its own. */
static int32_t
letter(unsigned token, unsigned dim, unsigned after)
{
	if (!synth_says(token) || dim >= CODE)
		return 0;
	return synth_walsh((synth_index(token) + CODE - after) % CODE, dim) * (SYNTH_ONE / 2);
}

static int32_t
weight_output(const void *net, unsigned layer, unsigned token, unsigned dim)
{
	(void)net;
	(void)layer;
	return letter(token, dim, 1);
}

/* The drafter has the first two letters of every four in each other's place. */
static int32_t
weight_draft(const void *net, unsigned layer, unsigned token, unsigned dim)
{
	static const unsigned after[] = { 0, 2, 1, 1 };

	(void)net;
	(void)layer;
	return letter(token, dim, after[synth_index(token) % str_count(after)]);
}

static const struct synth_tensor model_tensors[] = {
	{ "token_embd.weight", DIM_EMBD, DIM_TOKENS, weight_embd },
	{ "output_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "output.weight", DIM_EMBD, DIM_TOKENS, weight_output },
	{ "rope_freqs.weight", DIM_ROPE, DIM_ONE, NULL },
}, model_layer[] = {
	{ "attn_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "attn_q.weight", DIM_EMBD, DIM_Q, weight_noise },
	{ "attn_k.weight", DIM_EMBD, DIM_KV, weight_noise },
	{ "attn_v.weight", DIM_EMBD, DIM_KV, weight_code },
	{ "attn_output.weight", DIM_Q, DIM_EMBD, weight_o },
	{ "attn_q_norm.weight", DIM_HEAD, DIM_ONE, NULL },
	{ "attn_k_norm.weight", DIM_HEAD, DIM_ONE, NULL },
	{ "post_attention_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "ffn_norm.weight", DIM_EMBD, DIM_ONE, NULL },
	{ "ffn_gate.weight", DIM_EMBD, DIM_FFN, weight_noise },
	{ "ffn_up.weight", DIM_EMBD, DIM_FFN, weight_noise },
	{ "ffn_down.weight", DIM_FFN, DIM_EMBD, weight_noise },
	{ "post_ffw_norm.weight", DIM_EMBD, DIM_ONE, NULL },
}, drafter_tensors[] = {
	{ "token_embd.weight", DIM_DRAFT, DIM_TOKENS, weight_draft },
	{ "output_norm.weight", DIM_DRAFT, DIM_ONE, NULL },
	{ "rope_freqs.weight", DIM_ROPE, DIM_ONE, NULL },
	{ "nextn.pre_projection.weight", DIM_BOTH, DIM_DRAFT, weight_code },
	{ "nextn.post_projection.weight", DIM_DRAFT, DIM_EMBD, weight_code },
}, drafter_layer[] = {
	{ "attn_norm.weight", DIM_DRAFT, DIM_ONE, NULL },
	{ "attn_q.weight", DIM_DRAFT, DIM_Q, weight_noise },
	{ "attn_output.weight", DIM_Q, DIM_DRAFT, weight_noise },
	{ "attn_q_norm.weight", DIM_HEAD, DIM_ONE, NULL },
	{ "post_attention_norm.weight", DIM_DRAFT, DIM_ONE, NULL },
	{ "layer_output_scale.weight", DIM_ONE, DIM_ONE, NULL },
	{ "ffn_norm.weight", DIM_DRAFT, DIM_ONE, NULL },
	{ "ffn_gate.weight", DIM_DRAFT, DIM_FFN, weight_noise },
	{ "ffn_up.weight", DIM_DRAFT, DIM_FFN, weight_noise },
	{ "ffn_down.weight", DIM_FFN, DIM_DRAFT, weight_noise },
	{ "post_ffw_norm.weight", DIM_DRAFT, DIM_ONE, NULL },
};

/* What both architectures say of themselves under their own prefix. */
#define METAS(prefix, width) \
	{ prefix ".context_length", SYNTH_U32, NULL, SYNTH_CONTEXT }, \
	{ prefix ".embedding_length", SYNTH_U32, NULL, width }, \
	{ prefix ".embedding_length_per_layer_input", SYNTH_U32, NULL, 0 }, \
	{ prefix ".block_count", SYNTH_U32, NULL, LAYERS }, \
	{ prefix ".feed_forward_length", SYNTH_U32, NULL, FFN }, \
	{ prefix ".attention.head_count", SYNTH_U32, NULL, HEADS }, \
	{ prefix ".attention.head_count_kv", SYNTH_U32, NULL, 1 }, \
	{ prefix ".attention.key_length", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".attention.value_length", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".attention.key_length_swa", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".attention.value_length_swa", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".attention.layer_norm_rms_epsilon", SYNTH_F32, NULL, 0x358637BD }, /* 1e-6 */ \
	{ prefix ".attention.sliding_window", SYNTH_U32, NULL, WINDOW }, \
	{ prefix ".attention.sliding_window_pattern", SYNTH_BOOLS, NULL, 1 }, /* the first layer */ \
	{ prefix ".attention.shared_kv_layers", SYNTH_U32, NULL, 0 }, \
	{ prefix ".rope.dimension_count", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".rope.dimension_count_swa", SYNTH_U32, NULL, HEAD }, \
	{ prefix ".rope.freq_base", SYNTH_F32, NULL, 0x49742400 }, /* 1e6 */ \
	{ prefix ".rope.freq_base_swa", SYNTH_F32, NULL, 0x461C4000 }, /* 1e4 */ \
	{ prefix ".vocab_size", SYNTH_U32, NULL, SYNTH_TOKENS }

static const struct synth_meta model_metas[] = {
	METAS("gemma4", EMBD),
}, drafter_metas[] = {
	METAS("gemma4-assistant", DRAFT),
	{ "gemma4-assistant.embedding_length_out", SYNTH_U32, NULL, EMBD },
	{ "gemma4-assistant.nextn_predict_layers", SYNTH_U32, NULL, LAYERS },
};

#define FILE_OF(architecture, name, part) { architecture, name, NULL, dims, LAYERS, part##_metas, \
	part##_tensors, part##_layer, str_count(part##_metas), str_count(part##_tensors), str_count(part##_layer) }

int
synth_write_mtp(const char *model, const char *drafter, bool force, struct err *e)
{
	static const struct synth_file files[] = {
		FILE_OF("gemma4", "synthetic row of letters", model),
		FILE_OF("gemma4-assistant", "synthetic drafter, half right", drafter),
	};

	if (!force && (synth_file_vacant(model, e) || synth_file_vacant(drafter, e)))
		return -1;
	return synth_file_write(&files[0], model, e) || synth_file_write(&files[1], drafter, e) ? -1 : 0;
}
