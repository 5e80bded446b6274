/*
 * synth - a synthetic model that a real engine loads and runs, and whose text we know.
 *
 * It proves nothing about a real model; the file says so (general.synthetic = true).
 * It is GGUF v3, llama architecture, f16 weights, 259 byte-level tokens: <unk>, <s>,
 * </s>, <0x00> to <0xFF>.  The bytes are the same on every machine: integers only, no
 * libm, little-endian writes.
 *
 * What it computes.  Every token has an index s of 6 bits (synth_index).  The next token is
 *
 *     s[n] = s[n-6] ^ s[n-11] ^ s[n-14] ^ 42        printed as one of A-Z a-z 0-9 - _
 *
 * so one wrong look-up in the K cache changes that token and all that follow.  The first
 * layer looks 1 and 6 tokens back and multiplies what it found (SwiGLU multiplies, and
 * products of Walsh codes are XORs), the last looks 4 back at such a product and 13
 * back at a token, and multiplies again.  Where a head looks is decided by K alone: all
 * pairs of rotary dimensions agree at the wanted distance only (rope base 4), with a
 * score of about 100, at least 15 over the neighbours.  The error of 4-bit caches moves
 * scores by less than 2, so a working cache of that kind gives the text of f16; a
 * scrambled one can not.  K also carries a tag of its token (15 %), so that rows differ.
 *
 * Every weight also gets noise, and codes of the tags and signs of the rotary pairs are
 * random: bits of
 *
 *     z = SEED + (stream << 32 | i) * 0x9E3779B97F4A7C15            (SplitMix64)
 *     z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;  z = (z ^ z >> 27) * 0x94D049BB133111EB
 *     r = z ^ z >> 31
 *
 * with SEED 0x76657269667931 ("verify1").  Noise of element i of tensor number t (file order,
 * from 1) is (2 * (r >> 59) - 31) / 8192 of stream t; streams from 256 hold the signs.
 *
 * Threads: no shared state.
 */
#ifndef AGENT_SYNTH_H
#define AGENT_SYNTH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/synth_text.h"

#define SYNTH_LAYERS_MIN 2
#define SYNTH_LAYERS_MAX 8   /* layers between the first and the last are noise only */
#define SYNTH_CONTEXT 2048   /* tokens the model was "trained" for */
#define SYNTH_NOTE "synthetic weights made by make-model: a wiring test for engines; " \
	"it proves nothing about a real model"

struct synth_params {
	unsigned head_size; /* 64, 128 or 256 */
	unsigned layers;    /* SYNTH_LAYERS_MIN to SYNTH_LAYERS_MAX */
	bool force;         /* replace a file that is there */
};

/* Writes the model beside path and renames it.  ERR_CONFLICT when path exists and force
 * is false; ERR_USAGE for parameters out of range. */
CHECKED int synth_write(const char *path, const struct synth_params *p, struct err *e);

/*
 * Writes a gemma4 and a gemma4-assistant that drafts for it: what an engine needs to run
 * draft-mtp.  After a token of index s the model says the letter of index s + 1; the
 * drafter is right about half of the letters.  Errors as above; where one of the files
 * exists and force is false, none is written.
 */
CHECKED int synth_write_mtp(const char *model, const char *drafter, bool force, struct err *e);

#endif
