/*
 * kl - reads what llama-perplexity says when it compares two runs (--kl-divergence).
 *
 * The tool ends with exit 0 whatever it found, prints "nan" as readily as a number, and
 * leaves its statistics out when a file does not fit; so only the whole block counts: every
 * line of it once, in its order, each quantile not above the one before, and the line that
 * closes it.  Pure function over bytes: no state, any thread, any input.
 */
#ifndef COMMON_KL_H
#define COMMON_KL_H

#include <stdbool.h>
#include <stddef.h>

struct kl {
	int chunks, context;     /* over which was computed; -1 not said */
	bool saved;              /* the base run says that it saves its probabilities */
	bool final;              /* "Final estimate: PPL = ..." stands there */
	double ppl;
	bool whole;              /* all of the statistics */
	bool finite;             /* and every one of them is a number */
	bool ordered;            /* largest first */
	double mean, error;      /* of the divergence, in nats */
	double max, median, p99;
	double same_top;         /* per cent of places whose likeliest token is the same */
};

void kl_parse(const char *log, size_t len, struct kl *out);

#endif
