/*
 * spec_help - for tests of speculative decoding: the lines of a good run, and the judge of
 * the mtp gate over a log that is made of such lines.
 */
#ifndef TESTS_UNIT_SPEC_HELP_H
#define TESTS_UNIT_SPEC_HELP_H

#include <stdio.h>
#include <string.h>

#include "common/judge.h"
#include "common/suite.h"

#define B "#verify 0011223344556677 "
#define ARCH "0.00.000.001 I llama_model_loader: - kv   0:                       general.architecture str              = gemma4\n"
#define DRAFTER "0.00.000.002 I llama_model_loader: - kv   0:                       general.architecture str              = gemma4-assistant\n" \
	"0.00.000.002 I llama_model_loader: - kv   9:        gemma4-assistant.nextn_predict_layers u32              = 4\n"
#define FLASH "0.00.000.003 I llama_context: flash_attn            = enabled\n"
#define SIZES(k, v) "0.00.000.004 I llama_kv_cache: size =    8.00 MiB (  2048 cells,   2 layers,  1/1 seqs), K (" k "):    4.00 MiB, V (" v "):    4.00 MiB\n"
#define BUFFER(d) "0.00.000.004 I llama_kv_cache:      " d " KV buffer size =     8.00 MiB\n"
#define CACHE BUFFER("CUDA0") SIZES("q8_0", "q8_0")
#define ADDED "0.00.000.005 I common_speculative_init: adding speculative implementation 'draft-mtp'\n"
#define STATISTICS(type, made, taken) "7.02.255.331 I statistics " type ": #calls(b,g,a) = 1 84 84, #gen drafts = 84, #acc drafts = 70, " \
	"#gen tokens = " made ", #acc tokens = " taken ", dur(b,g,a) = 0.016, 825.426, 2.174 ms\n"
#define FRONT ARCH DRAFTER FLASH CACHE
#define MTP_ARGV ",\"--spec-type\",\"draft-mtp\""

static inline struct judgement
judged(const char *text, size_t len, const char *lane, const char *argv, int exit)
{
	static char log[400000];
	struct suite *s = NULL;
	struct judge_ask ask = {.lane = lane_find(lane)};
	struct judgement j;
	size_t n;

	assert_non_null(ask.lane);
	assert_int_equal(suite_builtin("eliza-1-gemma", &s, NULL), 0);
	ask.suite = s;
	n = (size_t)snprintf(log, sizeof log, B "run {\"argv\":[\"/e/llama-cli\",\"-m\",\"g.gguf\"%s]}\n", argv);
	assert_true(n + len + 200 < sizeof log);
	memcpy(log + n, text, len);
	n += len;
	if (len > 0 && text[len - 1] != '\n')
		log[n++] = '\n';
	n += (size_t)snprintf(log + n, sizeof log - n, B "end {\"exit\":%d,\"signal\":0,\"ms\":1,\"bytes\":%zu,"
		"\"dropped\":0}\n", exit, len);
	judge_of(GATE_MTP)(log, n, &ask, &j);
	suite_free(s);
	return j;
}

static inline void
gives_on(const char *lane, const char *text, enum reason wanted)
{
	struct judgement j = judged(text, strlen(text), lane, MTP_ARGV, 0);

	if (j.reason != wanted)
		fail_msg("wanted %s, got %s: %s\n%s", reason_name(wanted), reason_name(j.reason), j.detail, text);
}

static inline void
gives(const char *text, enum reason wanted)
{
	gives_on("cuda", text, wanted);
}

/* No pass, whatever the reason is. */
static inline void
refuses(const char *text)
{
	struct judgement j = judged(text, strlen(text), "cuda", MTP_ARGV, 0);

	if (j.outcome == OUTCOME_PASS)
		fail_msg("passed: %s\n%s", j.detail, text);
}

#endif
