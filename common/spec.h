/*
 * spec - what an engine's log says of speculative decoding.
 *
 * Counters stand there in several spellings, and one log prints those of every speculator:
 * only those of the multi-token-prediction type count.  Pure function over bytes.
 */
#ifndef COMMON_SPEC_H
#define COMMON_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lane.h"

#define SPEC_MAX_KV 8

struct spec_facts {
	char architecture[40];      /* of the first model, general.architecture */
	char draft_architecture[40]; /* of a second one; "" none */
	bool nextn;                 /* a key *.nextn_predict_layers above 0 */
	bool flash_on, flash_off;   /* said to be on; said to be off, last word or a refusal */
	struct {
		char k[24], v[24];
	} kv[SPEC_MAX_KV];          /* of each cache that is larger than 0 */
	int kv_count;
	char kv_device[32];         /* of a cache that is not on the lane's glob, else the first */
	int kv_buffers, kv_elsewhere; /* larger than 0; not on the glob */
	char implementation[40];    /* "draft-mtp" of the line that adds it; "" none */
	bool other;                 /* another speculator was added */
	bool none;                  /* "no implementations specified" */
	bool no_layers;             /* the drafter has none for multi-token prediction */
	bool refused;               /* the option or its value is unknown */
	int64_t drafted, accepted;  /* -1: not said */
	char counters[160];         /* the line that said it */
	char error[200];
};

/* "draft-mtp", "mtp", "draft_mtp" */
bool spec_is_mtp(const char *name);
/* f16, q8_0 and the like: what every engine has. */
bool spec_is_stock(const char *type);
void spec_parse(const char *log, size_t len, const struct lane *lane, struct spec_facts *out);

#endif
