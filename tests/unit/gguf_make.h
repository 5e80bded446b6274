/*
 * gguf_make - for tests: GGUF files built byte by byte, right and wrong.
 */
#ifndef TESTS_UNIT_GGUF_MAKE_H
#define TESTS_UNIT_GGUF_MAKE_H

#include <stdint.h>
#include <string.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 };

/* A file under construction. */
struct file {
	uint8_t b[65536];
	size_t n;
};

static inline void
put(struct file *f, uint64_t v, unsigned bytes)
{
	assert_true(f->n + bytes <= sizeof f->b);
	while (bytes-- > 0) {
		f->b[f->n++] = (uint8_t)v;
		v >>= 8;
	}
}

static inline void
put_text(struct file *f, const char *s)
{
	put(f, strlen(s), 8);
	while (*s != '\0')
		put(f, (uint8_t)*s++, 1);
}

static inline void
begin(struct file *f, uint32_t version, uint64_t tensors, uint64_t keys)
{
	f->n = 0;
	put(f, 0x46554747, 4);
	put(f, version, 4);
	put(f, tensors, 8);
	put(f, keys, 8);
}

static inline void
key(struct file *f, const char *name, unsigned type)
{
	put_text(f, name);
	put(f, type, 4);
}

static inline void
key_text(struct file *f, const char *name, const char *value)
{
	key(f, name, STR);
	put_text(f, value);
}

static inline void
key_u32(struct file *f, const char *name, uint32_t value)
{
	key(f, name, U32);
	put(f, value, 4);
}

static inline void
tensor(struct file *f, const char *name, uint64_t columns, uint64_t rows, uint32_t type,
	uint64_t offset)
{
	put_text(f, name);
	put(f, 2, 4);
	put(f, columns, 8);
	put(f, rows, 8);
	put(f, type, 4);
	put(f, offset, 8);
}

static inline void
data(struct file *f, uint64_t bytes, size_t alignment)
{
	while (f->n % alignment != 0)
		put(f, 0, 1);
	while (bytes-- > 0)
		put(f, 0xAA, 1);
}

static inline void
small_model(struct file *f, uint32_t version)
{
	begin(f, version, 2, 10);
	key_text(f, "general.architecture", "llama");
	key_text(f, "general.name", "a small one");
	key_u32(f, "llama.block_count", 2);
	key_u32(f, "llama.embedding_length", 256);
	key_u32(f, "llama.attention.head_count", 4);
	key_u32(f, "llama.attention.head_count_kv", 2);
	key(f, "llama.context_length", U64);
	put(f, 4096, 8);
	key_text(f, "tokenizer.ggml.model", "gpt2");
	key(f, "tokenizer.ggml.tokens", ARR);
	put(f, STR, 4);
	put(f, 3, 8);
	put_text(f, "a");
	put_text(f, "");
	put_text(f, "ccc");
	key(f, "llama.attention.layer_norm_rms_epsilon", F32);
	put(f, 0x3727C5AC, 4);
	tensor(f, "token_embd.weight", 256, 3, 1, 0);
	tensor(f, "output.weight", 256, 3, 8, 1536);
	data(f, 1536 + 3 * 8 * 34, 32);
}

#endif
