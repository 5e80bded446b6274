#include "agent/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/str.h"

#define WINDOW 65536

/* Value types of metadata. */
enum {
	KV_U8, KV_I8, KV_U16, KV_I16, KV_U32, KV_I32, KV_F32, KV_BOOL, KV_STR, KV_ARR,
	KV_U64, KV_I64, KV_F64, KV_TYPES
};

static const uint8_t kv_sizes[KV_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/*
 * Tensor types whose size every engine agrees on.  From 41 on, stock llama.cpp and its
 * forks use one number for different things, so those are not sized.
 */
static const struct type {
	const char *name; /* NULL: a number never used or withdrawn */
	uint16_t block, bytes;
} types[] = {
	[0] = { "f32", 1, 4 }, [1] = { "f16", 1, 2 }, [2] = { "q4_0", 32, 18 },
	[3] = { "q4_1", 32, 20 }, [6] = { "q5_0", 32, 22 }, [7] = { "q5_1", 32, 24 },
	[8] = { "q8_0", 32, 34 }, [9] = { "q8_1", 32, 36 }, [10] = { "q2_K", 256, 84 },
	[11] = { "q3_K", 256, 110 }, [12] = { "q4_K", 256, 144 }, [13] = { "q5_K", 256, 176 },
	[14] = { "q6_K", 256, 210 }, [15] = { "q8_K", 256, 292 }, [16] = { "iq2_xxs", 256, 66 },
	[17] = { "iq2_xs", 256, 74 }, [18] = { "iq3_xxs", 256, 98 }, [19] = { "iq1_s", 256, 50 },
	[20] = { "iq4_nl", 32, 18 }, [21] = { "iq3_s", 256, 110 }, [22] = { "iq2_s", 256, 82 },
	[23] = { "iq4_xs", 256, 136 }, [24] = { "i8", 1, 1 }, [25] = { "i16", 1, 2 },
	[26] = { "i32", 1, 4 }, [27] = { "i64", 1, 8 }, [28] = { "f64", 1, 8 },
	[29] = { "iq1_m", 256, 56 }, [30] = { "bf16", 1, 2 }, [34] = { "tq1_0", 256, 54 },
	[35] = { "tq2_0", 256, 66 }, [39] = { "mxfp4", 32, 17 }, [40] = { "nvfp4", 64, 36 },
};

/* Words for general.file_type. */
static const char *const file_types[] = {
	[0] = "F32", [1] = "F16", [2] = "Q4_0", [3] = "Q4_1", [7] = "Q8_0", [8] = "Q5_0",
	[9] = "Q5_1", [10] = "Q2_K", [11] = "Q3_K_S", [12] = "Q3_K_M", [13] = "Q3_K_L",
	[14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M", [18] = "Q6_K",
	[19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
	[23] = "IQ3_XXS", [24] = "IQ1_S", [25] = "IQ4_NL", [26] = "IQ3_S", [27] = "IQ3_M",
	[28] = "IQ2_S", [29] = "IQ2_M", [30] = "IQ4_XS", [31] = "IQ1_M", [32] = "BF16",
	[36] = "TQ1_0", [37] = "TQ2_0", [38] = "MXFP4_MOE", [39] = "NVFP4",
};

static const struct cache_block {
	const char *name;
	unsigned block;
} cache_blocks[] = {
	{ "f32", 1 }, { "f16", 1 }, { "bf16", 1 }, { "q8_0", 32 }, { "q4_0", 32 },
	{ "q4_1", 32 }, { "q5_0", 32 }, { "q5_1", 32 }, { "iq4_nl", 32 }, { "tbq3_0", 32 },
	{ "tbq4_0", 32 }, { "tbq3_tcq", 128 }, { "q4_polar", 128 }, { "qjl1_256", 128 },
	{ "tbq3_k", 256 }, { "tbq4_k", 256 },
};

struct reader {
	int fd;               /* -1: all there is lies in the window */
	const uint8_t *window;
	uint8_t *storage;     /* owned window of an fd */
	uint64_t start;       /* of the window in the file */
	size_t len;           /* of the window */
	uint64_t pos;
	uint64_t total;       /* bytes of the file */
	struct gguf_info *out;
	uint64_t alignment;
	uint64_t file_type;   /* UINT64_MAX: not said */
	int64_t vocab_tokens; /* elements of tokenizer.ggml.tokens */
	uint64_t elements[str_count(types)]; /* of tensors, by type; unknown types left out */
	char description[160];
	enum reason *why;
	struct err *e;
};

static int refuse(struct reader *r, enum reason why, const char *fmt, ...) PRINTF(3, 4);

static int
refuse(struct reader *r, enum reason why, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	*r->why = why;
	err_set(r->e, why == REASON_MODEL_MISSING ? ERR_NOTFOUND : why == REASON_INTERNAL ?
		ERR_NOMEM : ERR_BLOCKED, "%s", text);
	return err_hint(r->e, "%s", reason_hint(why));
}

static int
refuse_end(struct reader *r, const char *what)
{
	return refuse(r, REASON_MODEL_TRUNCATED, "the file ends after %" PRIu64
		" bytes, within %s", r->total, what);
}

/* Puts the window over pos. */
static int
reader_fill(struct reader *r, const char *what)
{
	size_t want = WINDOW, got = 0;

	if (r->fd < 0)
		return refuse_end(r, what);
	if (r->total - r->pos < want)
		want = (size_t)(r->total - r->pos);
	while (got < want) {
		ssize_t n = pread(r->fd, r->storage + got, want - got, (off_t)(r->pos + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(r, REASON_MODEL_UNREADABLE, "read: %s", strerror(errno));
		if (n == 0)
			break;
		got += (size_t)n;
	}
	r->start = r->pos;
	r->len = got;
	return got > 0 ? 0 : refuse_end(r, what);
}

/* Checks that n more bytes belong to the file. */
static int
reader_need(struct reader *r, uint64_t n, const char *what)
{
	if (n > r->total - r->pos)
		return refuse_end(r, what);
	if (r->pos + n > GGUF_MAX_HEADER)
		return refuse(r, REASON_MODEL_MALFORMED, "the header is longer than %u bytes",
			GGUF_MAX_HEADER);
	return 0;
}

static int
reader_skip(struct reader *r, uint64_t n, const char *what)
{
	if (reader_need(r, n, what))
		return -1;
	r->pos += n;
	return 0;
}

static int
reader_take(struct reader *r, void *to, size_t n, const char *what)
{
	uint8_t *dst = to;

	if (reader_need(r, n, what))
		return -1;
	while (n > 0) {
		size_t chunk, at;

		if (r->pos < r->start || r->pos - r->start >= r->len)
			if (reader_fill(r, what))
				return -1;
		at = (size_t)(r->pos - r->start);
		chunk = r->len - at < n ? r->len - at : n;
		memcpy(dst, r->window + at, chunk);
		dst += chunk;
		n -= chunk;
		r->pos += chunk;
	}
	return 0;
}

static int
reader_u(struct reader *r, unsigned bytes, uint64_t *v, const char *what)
{
	uint8_t b[8];

	if (reader_take(r, b, bytes, what))
		return -1;
	*v = 0;
	for (unsigned i = 0; i < bytes; i++)
		*v |= (uint64_t)b[i] << 8 * i;
	return 0;
}

/* A string of at most max bytes; its first size - 1 bytes go to dst. */
static int
reader_str(struct reader *r, char *dst, size_t size, uint64_t max, size_t *len,
	const char *what)
{
	uint64_t n;

	if (reader_u(r, 8, &n, what))
		return -1;
	if (n > max)
		return refuse(r, REASON_MODEL_MALFORMED, "%s of %" PRIu64
			" bytes at offset %" PRIu64 ", at most %" PRIu64 " are read", what, n,
			r->pos - 8, max);
	*len = n < size ? (size_t)n : size - 1;
	if (reader_take(r, dst, *len, what))
		return -1;
	dst[*len] = '\0';
	return reader_skip(r, n - *len, what);
}

/* A number of a metadata value; *known is false for texts, floats and arrays of them. */
struct number {
	bool known;
	int64_t value;
};

static void
number_max(struct number *n, uint64_t raw, unsigned type)
{
	unsigned bits = kv_sizes[type] * 8u;
	bool is_signed = type == KV_I8 || type == KV_I16 || type == KV_I32 || type == KV_I64;
	int64_t v;

	if (type == KV_F32 || type == KV_F64)
		return;
	if (is_signed && raw >> (bits - 1) & 1)
		v = -1;
	else
		v = raw > INT64_MAX ? INT64_MAX : (int64_t)raw;
	if (!n->known || v > n->value)
		n->value = v;
	n->known = true;
}

static int reader_value(struct reader *r, unsigned type, unsigned depth, bool wanted,
	struct number *n, uint64_t *count);

static int
reader_array(struct reader *r, unsigned depth, bool wanted, struct number *n,
	uint64_t *count)
{
	uint64_t type, elements, inner;

	if (depth >= GGUF_MAX_DEPTH)
		return refuse(r, REASON_MODEL_MALFORMED, "arrays nested deeper than %d",
			GGUF_MAX_DEPTH);
	if (reader_u(r, 4, &type, "an array") || reader_u(r, 8, &elements, "an array"))
		return -1;
	if (type >= KV_TYPES)
		return refuse(r, REASON_MODEL_MALFORMED, "array of the unknown type %" PRIu64,
			type);
	if (elements > GGUF_MAX_ARRAY)
		return refuse(r, REASON_MODEL_MALFORMED, "array of %" PRIu64
			" elements, at most %u are read", elements, GGUF_MAX_ARRAY);
	*count = elements;
	if (kv_sizes[type] > 0 && !wanted)
		return reader_skip(r, elements * kv_sizes[type], "an array");
	for (uint64_t i = 0; i < elements; i++)
		if (reader_value(r, (unsigned)type, depth + 1, wanted, n, &inner))
			return -1;
	return 0;
}

static int
reader_value(struct reader *r, unsigned type, unsigned depth, bool wanted,
	struct number *n, uint64_t *count)
{
	char unused[1];
	size_t len;
	uint64_t raw;

	if (type == KV_ARR)
		return reader_array(r, depth, wanted, n, count);
	if (type == KV_STR)
		return reader_str(r, unused, sizeof unused, GGUF_MAX_STRING, &len, "a string");
	if (reader_u(r, kv_sizes[type], &raw, "a value"))
		return -1;
	number_max(n, raw, type);
	return 0;
}

/* Keys we keep.  Those of the architecture are written without its name. */
static const struct wanted {
	const char *key;
	size_t offset; /* of an int64_t in gguf_info */
} arch_keys[] = {
	{ "block_count", offsetof(struct gguf_info, layers) },
	{ "embedding_length", offsetof(struct gguf_info, embedding) },
	{ "context_length", offsetof(struct gguf_info, context) },
	{ "vocab_size", offsetof(struct gguf_info, vocab_size) },
	{ "attention.head_count", offsetof(struct gguf_info, heads) },
	{ "attention.head_count_kv", offsetof(struct gguf_info, heads_kv) },
	{ "attention.key_length", offsetof(struct gguf_info, head_size_k) },
	{ "attention.key_length_swa", offsetof(struct gguf_info, head_size_k_swa) },
	{ "attention.value_length", offsetof(struct gguf_info, head_size_v) },
};

static int64_t *
arch_slot(struct reader *r, const char *key)
{
	size_t n = strlen(r->out->architecture);

	if (n == 0 || strncmp(key, r->out->architecture, n) != 0 || key[n] != '.')
		return NULL;
	for (size_t i = 0; i < str_count(arch_keys); i++)
		if (str_eq(key + n + 1, arch_keys[i].key))
			return (int64_t *)(void *)((char *)r->out + arch_keys[i].offset);
	return NULL;
}

/* Text values we keep. */
static char *
text_slot(struct reader *r, const char *key, size_t *size)
{
	const struct { const char *key; char *to; size_t size; } rows[] = {
		{ "general.architecture", r->out->architecture, sizeof r->out->architecture },
		{ "general.name", r->out->name, sizeof r->out->name },
		{ "general.description", r->description, sizeof r->description },
		{ "tokenizer.ggml.model", r->out->vocab_model, sizeof r->out->vocab_model },
	};

	for (size_t i = 0; i < str_count(rows); i++)
		if (str_eq(key, rows[i].key)) {
			*size = rows[i].size;
			return rows[i].to;
		}
	return NULL;
}

static int
keep_text(struct reader *r, char *to, size_t size)
{
	char text[256];
	size_t len;

	if (reader_str(r, text, sizeof text, GGUF_MAX_STRING, &len, "a string"))
		return -1;
	str_show(to, size, text, len);
	return 0;
}

static int
keep_alignment(struct reader *r, const struct number *n)
{
	uint64_t v = n->known && n->value > 0 ? (uint64_t)n->value : 0;

	if (v == 0 || v > GGUF_MAX_ALIGNMENT || (v & (v - 1)) != 0)
		return refuse(r, REASON_MODEL_MALFORMED,
			"general.alignment is not a power of two up to %u", GGUF_MAX_ALIGNMENT);
	r->alignment = v;
	return 0;
}

static int
keep_number(struct reader *r, const char *key, const struct number *n, uint64_t count)
{
	int64_t *slot = arch_slot(r, key);

	if (str_eq(key, "tokenizer.ggml.tokens"))
		r->vocab_tokens = (int64_t)count;
	if (str_eq(key, "general.alignment"))
		return keep_alignment(r, n);
	if (!n->known)
		return slot == NULL ? 0
			: refuse(r, REASON_MODEL_MALFORMED, "%s is not a whole number", key);
	if (str_eq(key, "general.synthetic"))
		r->out->synthetic = n->value != 0;
	if (str_eq(key, "general.file_type"))
		r->file_type = n->value < 0 ? UINT64_MAX : (uint64_t)n->value;
	if (str_eq(key, "split.count"))
		r->out->split_count = n->value;
	if (slot == NULL)
		return 0;
	if (n->value < 0 || n->value > GGUF_MAX_NUMBER)
		return refuse(r, REASON_MODEL_MALFORMED, "%s is out of range", key);
	*slot = n->value;
	return 0;
}

/* Hashes of names, to find one that comes twice. */
static uint64_t
name_hash(const char *s, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * UINT64_C(0x100000001b3);
	return h;
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static bool
has_twins(uint64_t *hashes, size_t n)
{
	if (n < 2)
		return false;
	qsort(hashes, n, sizeof *hashes, compare_u64);
	for (size_t i = 1; i < n; i++)
		if (hashes[i] == hashes[i - 1])
			return true;
	return false;
}

static int
reader_pair(struct reader *r, uint64_t *hash)
{
	char key[GGUF_MAX_KEY + 1], *text, shown[80];
	size_t len, size = 0;
	uint64_t type, count = 0;
	struct number n = { false, 0 };

	if (reader_str(r, key, sizeof key, GGUF_MAX_KEY, &len, "a key") ||
	    reader_u(r, 4, &type, "a value"))
		return -1;
	*hash = name_hash(key, len);
	if (len == 0 || strlen(key) != len || type >= KV_TYPES) {
		str_show(shown, sizeof shown, key, len);
		return refuse(r, REASON_MODEL_MALFORMED,
			"the key \"%s\" is empty or no text, or its value of no known type", shown);
	}
	text = text_slot(r, key, &size);
	if (text != NULL && type != KV_STR)
		return refuse(r, REASON_MODEL_MALFORMED, "%s is not a text", key);
	if (text != NULL)
		return keep_text(r, text, size);
	if (reader_value(r, (unsigned)type, 0, arch_slot(r, key) != NULL, &n, &count))
		return -1;
	return keep_number(r, key, &n, count);
}

static int
reader_pairs(struct reader *r)
{
	size_t count = (size_t)r->out->kv_count;
	uint64_t *hashes = NULL;
	int rc = -1;

	/* A pair is 13 bytes or more, so count is bounded by the file before malloc. */
	if (reader_need(r, r->out->kv_count * 13, "the metadata"))
		return -1;
	if ((hashes = calloc(count + 1, sizeof *hashes)) == NULL)
		return refuse(r, REASON_INTERNAL, "no memory for %zu keys", count);
	for (size_t i = 0; i < count; i++)
		if (reader_pair(r, &hashes[i]))
			goto out;
	if (has_twins(hashes, count)) {
		refuse(r, REASON_MODEL_MALFORMED, "a metadata key comes twice");
		goto out;
	}
	rc = 0;
out:
	free(hashes);
	return rc;
}

/* The keys of an architecture can only be told once its own key was met. */
static int
reader_meta(struct reader *r)
{
	uint64_t start = r->pos;

	if (reader_pairs(r))
		return -1;
	if (r->out->architecture[0] == '\0')
		return refuse(r, REASON_MODEL_MALFORMED, "no general.architecture in the file");
	r->pos = start;
	return reader_pairs(r);
}

/* Bytes of a tensor, 0 when its type is not one we can size. */
static int
tensor_bytes(struct reader *r, uint64_t type, const uint64_t dims[GGUF_MAX_DIMS],
	const char *name, uint64_t *bytes)
{
	const struct type *t = type < str_count(types) ? &types[type] : NULL;
	uint64_t n = 1;

	for (int i = 0; i < GGUF_MAX_DIMS; i++) {
		if (dims[i] > 0 && n > INT64_MAX / dims[i])
			return refuse(r, REASON_MODEL_MALFORMED,
				"tensor %s has more elements than a file can hold", name);
		n *= dims[i];
	}
	*bytes = 0;
	if (t == NULL || t->name == NULL)
		return 0;
	if (dims[0] % t->block != 0)
		return refuse(r, REASON_MODEL_MALFORMED,
			"tensor %s: %" PRIu64 " columns are not whole blocks of %s", name,
			dims[0], t->name);
	if (n / t->block > INT64_MAX / t->bytes)
		return refuse(r, REASON_MODEL_MALFORMED,
			"tensor %s is larger than a file can be", name);
	*bytes = n / t->block * t->bytes;
	r->elements[type] += r->elements[type] > INT64_MAX ? 0 : n;
	return 0;
}

/* Leaves in *end where the tensor ends, counted from the start of the data. */
static int
reader_tensor(struct reader *r, uint64_t *hash, uint64_t *end)
{
	char raw[GGUF_MAX_NAME + 1], name[80];
	uint64_t n_dims, dims[GGUF_MAX_DIMS] = { 1, 1, 1, 1 }, type, offset, bytes;
	size_t len;

	if (reader_str(r, raw, sizeof raw, GGUF_MAX_NAME, &len, "a tensor's name") ||
	    reader_u(r, 4, &n_dims, "the tensor table"))
		return -1;
	*hash = name_hash(raw, len);
	str_show(name, sizeof name, raw, len);
	if (n_dims > GGUF_MAX_DIMS)
		return refuse(r, REASON_MODEL_MALFORMED, "tensor %s has %" PRIu64
			" dimensions, at most %d are read", name, n_dims, GGUF_MAX_DIMS);
	for (uint64_t i = 0; i < n_dims; i++)
		if (reader_u(r, 8, &dims[i], "the tensor table"))
			return -1;
	if (reader_u(r, 4, &type, "the tensor table") ||
	    reader_u(r, 8, &offset, "the tensor table") ||
	    tensor_bytes(r, type, dims, name, &bytes))
		return -1;
	if (offset % r->alignment != 0 || offset > INT64_MAX)
		return refuse(r, REASON_MODEL_MALFORMED, "tensor %s starts at %" PRIu64
			", which is not aligned to %" PRIu64, name, offset, r->alignment);
	*end = offset + bytes; /* both are below 2^63 */
	return 0;
}

static int
reader_tensors(struct reader *r)
{
	size_t count = (size_t)r->out->tensor_count;
	uint64_t *hashes = NULL, end, most = 0;
	int rc = -1;

	if (reader_need(r, r->out->tensor_count * 24, "the tensor table"))
		return -1;
	if ((hashes = calloc(count + 1, sizeof *hashes)) == NULL)
		return refuse(r, REASON_INTERNAL, "no memory for %zu tensors", count);
	for (size_t i = 0; i < count; i++) {
		if (reader_tensor(r, &hashes[i], &end))
			goto out;
		most = end > most ? end : most;
	}
	if (has_twins(hashes, count)) {
		refuse(r, REASON_MODEL_MALFORMED, "a tensor's name comes twice");
		goto out;
	}
	r->out->data_offset = (r->pos + r->alignment - 1) / r->alignment * r->alignment;
	if (count == 0)
		r->out->data_offset = r->pos;
	r->out->wanted_bytes = most > UINT64_MAX - r->out->data_offset ? UINT64_MAX
		: r->out->data_offset + most;
	rc = 0;
	if (r->out->wanted_bytes > r->total)
		rc = refuse(r, REASON_MODEL_TRUNCATED, "the file has %" PRIu64 " bytes of %"
			PRIu64 " that its tensors need", r->total, r->out->wanted_bytes);
out:
	free(hashes);
	return rc;
}

static int
refuse_magic(struct reader *r, const uint8_t *magic, size_t n)
{
	if (memcmp(magic, "GGUF", n) == 0)
		return refuse_end(r, "the magic");
	refuse(r, REASON_MODEL_NOT_GGUF,
		"the file starts with %02x%02x%02x%02x, not with GGUF", magic[0], magic[1],
		magic[2], magic[3]);
	if (memcmp(magic, "vers", 4) == 0)
		err_hint(r->e, "is it a Git LFS pointer? then `git lfs pull` gets the model");
	return -1;
}

static int
reader_header(struct reader *r)
{
	uint8_t magic[4] = { 0 };
	size_t n = r->total < 4 ? (size_t)r->total : 4;
	uint64_t version;

	if (reader_take(r, magic, n, "the magic"))
		return -1;
	if (n < 4 || memcmp(magic, "GGUF", 4) != 0)
		return refuse_magic(r, magic, n);
	if (reader_u(r, 4, &version, "the version"))
		return -1;
	r->out->version = (uint32_t)version;
	if (version != 0 && (version & 0xFFFF) == 0)
		return refuse(r, REASON_MODEL_NOT_GGUF,
			"the file is big-endian GGUF; only little-endian is read");
	if (version != 2 && version != 3)
		return refuse(r, REASON_MODEL_NOT_GGUF,
			"the file is GGUF version %" PRIu64 "; only 2 and 3 are read", version);
	if (reader_u(r, 8, &r->out->tensor_count, "the counts") ||
	    reader_u(r, 8, &r->out->kv_count, "the counts"))
		return -1;
	if (r->out->tensor_count > GGUF_MAX_TENSORS || r->out->kv_count > GGUF_MAX_KV)
		return refuse(r, REASON_MODEL_MALFORMED, "%" PRIu64 " tensors and %" PRIu64
			" keys; at most %d and %d are read", r->out->tensor_count,
			r->out->kv_count, GGUF_MAX_TENSORS, GGUF_MAX_KV);
	return 0;
}

static void
reader_quantisation(struct reader *r)
{
	struct gguf_info *m = r->out;
	size_t most = 0;
	const char *word = "";

	for (size_t i = 1; i < str_count(types); i++)
		if (r->elements[i] > r->elements[most])
			most = i;
	if (r->elements[most] > 0)
		word = types[most].name;
	if (r->file_type < str_count(file_types) && file_types[r->file_type] != NULL)
		word = file_types[r->file_type];
	str_show(m->quantisation, sizeof m->quantisation, word, strlen(word));
}

static void
reader_derive(struct reader *r)
{
	struct gguf_info *m = r->out;
	int64_t share = m->heads > 0 ? m->embedding / m->heads : 0;

	if (m->head_size_k == 0)
		m->head_size_k = share;
	if (m->head_size_v == 0)
		m->head_size_v = share;
	if (m->heads_kv == 0)
		m->heads_kv = m->heads;
	if (r->vocab_tokens > 0)
		m->vocab_size = r->vocab_tokens;
	if (m->synthetic)
		str_show(m->synthetic_note, sizeof m->synthetic_note, r->description,
			strlen(r->description));
	reader_quantisation(r);
}

static int
reader_run(struct reader *r)
{
	memset(r->out, 0, sizeof *r->out);
	r->out->file_bytes = r->total;
	r->alignment = 32;
	r->file_type = UINT64_MAX;
	*r->why = REASON_NONE;
	if (reader_header(r) || reader_meta(r) || reader_tensors(r))
		return -1;
	reader_derive(r);
	return 0;
}

int
gguf_parse(const uint8_t *p, size_t len, uint64_t file_bytes, struct gguf_info *out,
	enum reason *why, struct err *e)
{
	struct reader r;

	memset(&r, 0, sizeof r);
	r.fd = -1;
	r.window = p;
	r.len = len;
	r.total = file_bytes;
	r.out = out;
	r.why = why;
	r.e = e;
	return reader_run(&r);
}

int
gguf_read_fd(int fd, struct gguf_info *out, enum reason *why, struct err *e)
{
	struct reader r;
	struct stat st;
	int rc;

	memset(&r, 0, sizeof r);
	r.fd = fd;
	r.out = out;
	r.why = why;
	r.e = e;
	if (fstat(fd, &st) != 0)
		return refuse(&r, REASON_MODEL_UNREADABLE, "stat: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(&r, REASON_MODEL_NOT_A_FILE, "not a regular file");
	r.total = (uint64_t)st.st_size;
	if ((r.storage = malloc(WINDOW)) == NULL)
		return refuse(&r, REASON_INTERNAL, "no memory to read a model");
	r.window = r.storage;
	rc = reader_run(&r);
	free(r.storage);
	return rc;
}

static enum reason
open_reason(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return REASON_MODEL_MISSING;
	case ENXIO: /* a socket, or a device without driver */
	case EISDIR:
		return REASON_MODEL_NOT_A_FILE;
	default:
		return REASON_MODEL_UNREADABLE;
	}
}

/* Opening some devices has effects, so the kind is looked at before and after. */
static int
model_open(struct reader *r, const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0)
		return refuse(r, open_reason(errno), "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(r, REASON_MODEL_NOT_A_FILE, S_ISDIR(st.st_mode) ? "is a folder"
			: S_ISFIFO(st.st_mode) ? "is a FIFO" : "is not a regular file");
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return refuse(r, open_reason(errno), "%s", strerror(errno));
	return fd;
}

int
gguf_read(const char *path, struct gguf_info *out, enum reason *why, struct err *e)
{
	struct reader r;
	int fd, rc;

	memset(&r, 0, sizeof r);
	memset(out, 0, sizeof *out);
	r.why = why;
	r.e = e;
	if ((fd = model_open(&r, path)) < 0)
		return err_wrap(e, "%s", path);
	rc = gguf_read_fd(fd, out, why, e);
	(void)close(fd);
	return rc ? err_wrap(e, "%s", path) : 0;
}

unsigned
gguf_cache_block(const char *cache_type)
{
	for (size_t i = 0; i < str_count(cache_blocks); i++)
		if (str_eq(cache_blocks[i].name, cache_type))
			return cache_blocks[i].block;
	return 0;
}

bool
gguf_suits(const struct gguf_info *m, const char *cache_type, struct err *e)
{
	const int64_t sizes[] = { m->head_size_k, m->head_size_k_swa };
	unsigned block = gguf_cache_block(cache_type);

	for (size_t i = 0; block > 0 && i < str_count(sizes); i++) {
		if (sizes[i] % block == 0)
			continue;
		err_set(e, ERR_BLOCKED, "head size %" PRId64
			" is not a multiple of %u, the block of %s", sizes[i], block, cache_type);
		err_hint(e, "%s", reason_hint(REASON_MODEL_NOT_SUITABLE));
		return false;
	}
	return true;
}
