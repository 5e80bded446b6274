/*
 * scramble_kv - damages the K cache of a real engine, to prove that the damage is seen.
 *
 * Preloaded into a llama.cpp program it waits for the decode of the prompt (a batch of more
 * than SCRAMBLE_AFTER tokens, default 2, which lets the warm-up pass), then takes the
 * sequence out of the engine with llama_state_seq_get_data, moves the K rows of every
 * layer by half the sequence, and puts it back with llama_state_seq_set_data.  Cells,
 * positions and V stay as they were.  SCRAMBLE_KV=copy takes it out and puts it back
 * unchanged: the control.  One line on stderr says what was done; anything that can not
 * be done ends the program with status 70.
 *
 * The state is: magic, sequence, streams; per stream the cell count, per cell position and
 * sequence ids; then "V transposed", layers, and per layer K type, row bytes, rows.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct llama_context;

struct llama_batch {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos;
	int32_t *n_seq_id;
	int32_t **seq_id;
	int8_t *logits;
};

int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch);

struct cursor {
	uint8_t *p;
	size_t left;
};

static _Noreturn void
give_up(const char *why)
{
	fprintf(stderr, "scramble_kv: %s\n", why);
	exit(70);
}

/* The engine's function of that name; a union because ISO C has no such cast. */
union function {
	void *object;
	int32_t (*decode)(struct llama_context *, struct llama_batch);
	size_t (*size)(struct llama_context *, int32_t);
	size_t (*get)(struct llama_context *, uint8_t *, size_t, int32_t);
	size_t (*set)(struct llama_context *, const uint8_t *, size_t, int32_t);
};

static union function
engine(const char *name)
{
	union function f;

	if ((f.object = dlsym(RTLD_NEXT, name)) == NULL)
		give_up(name);
	return f;
}

static uint8_t *
take(struct cursor *c, size_t n)
{
	uint8_t *p = c->p;

	if (n > c->left)
		give_up("the state is shorter than it says");
	c->p += n;
	c->left -= n;
	return p;
}

static uint32_t
take_u32(struct cursor *c)
{
	uint32_t v;

	memcpy(&v, take(c, sizeof v), sizeof v);
	return v;
}

static uint64_t
take_u64(struct cursor *c)
{
	uint64_t v;

	memcpy(&v, take(c, sizeof v), sizeof v);
	return v;
}

/* Row i gets what row i + count / 2 had: no row stays where it was. */
static void
turn_rows(uint8_t *rows, size_t count, size_t row)
{
	size_t total = count * row, half = count / 2 * row;
	uint8_t *copy = malloc(total);

	if (copy == NULL)
		give_up("out of memory");
	memcpy(copy, rows + half, total - half);
	memcpy(copy + total - half, rows, half);
	memcpy(rows, copy, total);
	free(copy);
}

/* Returns the number of rows moved. */
static size_t
turn_stream(struct cursor *c)
{
	uint32_t cells = take_u32(c), layers;
	size_t moved = 0;

	if (cells == 0)
		return 0;
	for (uint32_t i = 0; i < cells; i++) {
		(void)take_u32(c);                            /* position */
		take(c, (size_t)take_u32(c) * sizeof(int32_t)); /* sequence ids */
	}
	(void)take_u32(c); /* V transposed */
	layers = take_u32(c);
	for (uint32_t i = 0; i < layers; i++) {
		uint64_t row;

		(void)take_u32(c); /* K type */
		row = take_u64(c);
		if (row == 0 || row > c->left / cells)
			give_up("a K row is longer than the state");
		turn_rows(take(c, (size_t)row * cells), cells, (size_t)row);
		moved += cells;
	}
	return moved;
}

static void
scramble(struct llama_context *ctx, int change)
{
	size_t size = engine("llama_state_seq_get_size").size(ctx, 0), moved = 0;
	uint8_t *state = malloc(size + 1);
	struct cursor c;
	uint32_t streams;

	if (state == NULL)
		give_up("out of memory");
	if (engine("llama_state_seq_get_data").get(ctx, state, size, 0) != size)
		give_up("the engine did not give its state");
	c = (struct cursor){ state, size };
	(void)take_u32(&c); /* magic */
	(void)take_u32(&c); /* sequence */
	streams = take_u32(&c);
	if (streams != 1)
		give_up("only states of one stream are understood");
	if (change && (moved = turn_stream(&c)) == 0)
		give_up("the cache is empty");
	if (engine("llama_state_seq_set_data").set(ctx, state, size, 0) == 0)
		give_up("the engine did not take its state back");
	fprintf(stderr, "scramble_kv: %zu K rows moved\n", moved);
	free(state);
}

int32_t
llama_decode(struct llama_context *ctx, struct llama_batch batch)
{
	static int done;
	const char *mode = getenv("SCRAMBLE_KV"), *after = getenv("SCRAMBLE_AFTER");
	int32_t rc = engine("llama_decode").decode(ctx, batch);
	long least = after != NULL ? strtol(after, NULL, 10) : 2;

	if (rc == 0 && !done && batch.n_tokens > least) {
		done = 1;
		scramble(ctx, mode == NULL || strcmp(mode, "copy") != 0);
	}
	return rc;
}
