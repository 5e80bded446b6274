/*
 * synth_text - what the synthetic model (agent/synth.h) says after a prompt, as a rule.
 *
 * The agent builds the model from it, and judges know the right text by it.  Pure
 * functions, any thread.
 */
#ifndef COMMON_SYNTH_TEXT_H
#define COMMON_SYNTH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define SYNTH_REACH 14       /* tokens the model needs before the rule holds */
#define SYNTH_TEXT_MAX 4096  /* bytes of prompt, and tokens, that synth_expect takes */
#define SYNTH_CODE 64        /* Walsh codes of 6 bits */
#define SYNTH_FLIP 42        /* keeps the zero state from being a fixed point */

/* Distances: which layer, which of a group's two heads. */
enum { SYNTH_BACK_S0 = 1, SYNTH_BACK_S1 = 6, SYNTH_BACK_T0 = 4, SYNTH_BACK_T1 = 13 };

/* Whether the model can say the token: one of 64 letters. */
bool synth_says(unsigned token);
/* The index of a token id (0 to 258) in the rule. */
unsigned synth_index(unsigned token);

/* What a working engine prints after prompt (greedy, no end-of-text), as `tokens`
 * characters and a NUL.  ERR_UNSUPPORTED when the prompt has fewer than SYNTH_REACH tokens,
 * <s> included; ERR_LIMIT when out or SYNTH_TEXT_MAX is too small. */
CHECKED int synth_expect(const char *prompt, unsigned tokens, char *out, size_t size,
	struct err *e);

#endif
