/*
 * scramble - preloaded into the engine for the sensitivity control: K rows of a batch go
 * into the cells of other tokens, so that what is read from the cache is wrong.
 *
 * The engine asks ggml_set_rows for the node that writes a layer's rows; for tensors named
 * cache_k* the rows are rolled by half a batch first (ggml_roll), before any quantisation
 * and on whatever backend computes the graph.  A batch of one row has nowhere to go and is
 * left alone.  Only ggml's public names are used; an engine that is linked as one file
 * binds its own, and then the line at the end says 0.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct ggml_context;
struct ggml_tensor;

typedef struct ggml_tensor *set_rows_fn(struct ggml_context *, struct ggml_tensor *,
	struct ggml_tensor *, struct ggml_tensor *);
typedef struct ggml_tensor *roll_fn(struct ggml_context *, struct ggml_tensor *, int, int, int, int);
typedef int64_t nrows_fn(const struct ggml_tensor *);
typedef const char *name_fn(const struct ggml_tensor *);

/* A union because ISO C has no cast from an object to a function. */
union function {
	void *object;
	set_rows_fn *set_rows;
	roll_fn *roll;
	nrows_fn *nrows;
	name_fn *name;
};

static unsigned long moved;

struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a,
	struct ggml_tensor *b, struct ggml_tensor *c);

static union function
next(const char *name)
{
	return (union function){.object = dlsym(RTLD_NEXT, name)};
}

struct ggml_tensor *
ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
	struct ggml_tensor *c)
{
	union function set_rows = next("ggml_set_rows"), roll = next("ggml_roll");
	union function nrows = next("ggml_nrows"), name = next("ggml_get_name");
	int64_t n;

	if (roll.object != NULL && nrows.object != NULL && name.object != NULL &&
	    strncmp(name.name(a), "cache_k", 7) == 0 && (n = nrows.nrows(b)) > 1 && n <= INT32_MAX) {
		b = roll.roll(ctx, b, 0, (int)(n / 2), 0, 0);
		moved++;
	}
	return set_rows.set_rows(ctx, a, b, c);
}

__attribute__((destructor)) static void
say(void)
{
	fprintf(stderr, "\nverify scramble: %lu writes to the K cache were moved\n", moved);
}
