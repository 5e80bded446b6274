#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A suite that is accepted asks for something, and keeps its own bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct suite *s = NULL, *again = NULL;
	struct err e = {0};

	if (suite_parse((const char *)p, n, &s, &e)) {
		if (s != NULL || e.code == ERR_NONE)
			__builtin_trap();
		return 0;
	}
	if (s->required == 0 || s->claims == 0 || s->family_count < 1 || s->fixture_count < 1 ||
	    s->program_count < 1 || !(s->tolerance > 0) || s->text_len != n ||
	    memcmp(s->text, p, n) != 0 || strchr(s->driver, '/') != NULL)
		__builtin_trap();
	suite_model_counts(s, "", "llama", 128, true);
	suite_source_counts(s, "x", "https://example.org/x");
	if (suite_parse(s->text, s->text_len, &again, &e) || strcmp(s->digest, again->digest) != 0)
		__builtin_trap();
	suite_free(s);
	suite_free(again);
	return 0;
}
