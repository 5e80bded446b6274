/* Model headers: whatever the bytes, a verdict with its reason, and sane numbers. */
#include <stdlib.h>
#include <string.h>

#include "agent/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
insist(bool ok)
{
	if (!ok)
		abort();
}

static bool
is_text(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static void
check_info(const struct gguf_info *m)
{
	insist(m->version == 2 || m->version == 3);
	insist(m->architecture[0] != '\0');
	insist(is_text(m->architecture, sizeof m->architecture));
	insist(is_text(m->name, sizeof m->name));
	insist(is_text(m->vocab_model, sizeof m->vocab_model));
	insist(is_text(m->quantisation, sizeof m->quantisation));
	insist(is_text(m->synthetic_note, sizeof m->synthetic_note));
	insist(m->wanted_bytes <= m->file_bytes);
	insist(m->data_offset <= m->wanted_bytes);
	insist(m->layers >= 0 && m->layers <= GGUF_MAX_NUMBER);
	insist(m->heads >= 0 && m->head_size_k >= 0 && m->head_size_v >= 0);
	insist(m->context >= 0 && m->vocab_size >= 0);
}

static void
check(const uint8_t *data, size_t size, uint64_t file_bytes)
{
	struct gguf_info m;
	struct err e = { 0 };
	enum reason why = REASON_COUNT;

	if (gguf_parse(data, size, file_bytes, &m, &why, &e) == 0) {
		insist(why == REASON_NONE && e.code == ERR_NONE);
		check_info(&m);
		(void)gguf_suits(&m, "q8_0", &e);
		return;
	}
	insist(e.code != ERR_NONE && e.msg[0] != '\0' && e.hint[0] != '\0');
	insist(why == REASON_MODEL_NOT_GGUF || why == REASON_MODEL_TRUNCATED ||
		why == REASON_MODEL_MALFORMED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size, size);
	check(data, size, size + (UINT64_C(1) << 50)); /* long tensor data follows */
	return 0;
}
