/*
 * gguf - what the header of a GGUF model file says, read with suspicion.
 *
 * The bytes are untrusted: every count, length and depth has a maximum below, sums can not
 * overflow, and nothing is allocated before the file is long enough to hold it.  Read are
 * versions 2 and 3, little-endian; tensor data is never touched, only its extent is
 * compared with the size of the file.
 *
 * Life: a struct on the caller's stack, nothing to free.  Threads: no shared state.
 */
#ifndef AGENT_GGUF_H
#define AGENT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/lane.h"

#define GGUF_MAX_KV 65536
#define GGUF_MAX_TENSORS 262144
#define GGUF_MAX_KEY 1024              /* bytes of a key */
#define GGUF_MAX_NAME 256              /* bytes of a tensor's name */
#define GGUF_MAX_STRING (16u << 20)    /* bytes of a string value */
#define GGUF_MAX_ARRAY (16u << 20)     /* elements */
#define GGUF_MAX_DEPTH 3               /* arrays in arrays */
#define GGUF_MAX_HEADER (1024u << 20)  /* bytes up to the tensor data */
#define GGUF_MAX_DIMS 4
#define GGUF_MAX_ALIGNMENT (1u << 20)
#define GGUF_MAX_NUMBER INT64_C(4294967295) /* of a hyper-parameter */

/* Numbers are 0 when the file does not say.  Texts are cut to fit and hold no control
 * bytes. */
struct gguf_info {
	uint32_t version;
	char architecture[64];
	char name[128];
	uint64_t tensor_count, kv_count;
	int64_t layers, embedding;
	int64_t heads, heads_kv;  /* the largest, where layers differ */
	int64_t head_size_k, head_size_v; /* said, else embedding / heads */
	int64_t head_size_k_swa;  /* of sliding-window layers, where it differs */
	int64_t context, vocab_size;
	int64_t split_count;      /* > 1: the rest of the model is in other files */
	char vocab_model[32];
	char quantisation[24];    /* "Q4_K_M", else the type of most weights: "q4_K" */
	uint64_t file_bytes;
	uint64_t data_offset;     /* where tensor data starts */
	uint64_t wanted_bytes;    /* what the tensor table needs; tensors of types we do
	                           * not know count with their start only */
	bool synthetic;           /* general.synthetic */
	char synthetic_note[160]; /* general.description of a synthetic model */
};

/*
 * Each returns 0, or -1 with a sentence in *e and the reason in *why:
 * MODEL_MISSING, MODEL_NOT_A_FILE (folder, FIFO, socket, device: never waited for),
 * MODEL_UNREADABLE, MODEL_NOT_GGUF (versions and byte orders we do not read included),
 * MODEL_TRUNCATED, MODEL_MALFORMED; INTERNAL when out of memory.
 */
CHECKED int gguf_read(const char *path, struct gguf_info *out, enum reason *why,
	struct err *e);
/* Borrows fd; its offset is neither used nor moved. */
CHECKED int gguf_read_fd(int fd, struct gguf_info *out, enum reason *why, struct err *e);
/* The first len bytes of a file of file_bytes. */
CHECKED int gguf_parse(const uint8_t *p, size_t len, uint64_t file_bytes,
	struct gguf_info *out, enum reason *why, struct err *e);

/* Whether the block of a K cache type divides the model's head sizes.  True for types
 * and models that do not say.  Else *e (ERR_BLOCKED) has the sentence of
 * MODEL_NOT_SUITABLE. */
bool gguf_suits(const struct gguf_info *m, const char *cache_type, struct err *e);
/* Elements per block of a K cache type; 0 when unknown. */
unsigned gguf_cache_block(const char *cache_type);

#endif
