#include "common/synth_text.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[SYNTH_CODE + 1] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static const char *
letter_find(unsigned token)
{
	return token <= 3 ? NULL : memchr(alphabet, (int)(token - 3), SYNTH_CODE);
}

bool
synth_says(unsigned token)
{
	return letter_find(token) != NULL;
}

unsigned
synth_index(unsigned token)
{
	const char *letter = letter_find(token);

	if (letter != NULL)
		return (unsigned)(letter - alphabet);
	return (token < 3 ? token : token - 3) % SYNTH_CODE;
}

/* The engine's tokenizer: <s>, then bytes; a space is U+2581 in three bytes. */
static int
prompt_indices(const char *prompt, uint8_t *s, size_t max, size_t *count)
{
	size_t n = 0;

	s[n++] = (uint8_t)synth_index(1);
	for (const char *c = prompt; *c != '\0'; c++) {
		const char *bytes = *c == ' ' ? "\xE2\x96\x81" : c;
		size_t len = *c == ' ' ? 3 : 1;

		if (n + len > max)
			return -1;
		for (size_t i = 0; i < len; i++)
			s[n++] = (uint8_t)synth_index((uint8_t)bytes[i] + 3u);
	}
	*count = n;
	return 0;
}

int
synth_expect(const char *prompt, unsigned tokens, char *out, size_t size, struct err *e)
{
	uint8_t s[SYNTH_TEXT_MAX];
	size_t n;

	if (prompt_indices(prompt, s, sizeof s, &n) || tokens > sizeof s - n || tokens >= size)
		return err_set(e, ERR_LIMIT, "prompt and tokens exceed %d", SYNTH_TEXT_MAX);
	if (n < SYNTH_REACH) {
		err_set(e, ERR_UNSUPPORTED, "the prompt has %zu tokens, %d are needed", n,
			SYNTH_REACH);
		return err_hint(e, "the text is only known when every look-up finds a token");
	}
	for (unsigned i = 0; i < tokens; i++, n++) {
		unsigned next = s[n - 1 - SYNTH_BACK_T0 - SYNTH_BACK_S0] ^
			s[n - 1 - SYNTH_BACK_T0 - SYNTH_BACK_S1] ^ s[n - 1 - SYNTH_BACK_T1] ^ SYNTH_FLIP;

		s[n] = (uint8_t)next;
		out[i] = alphabet[next];
	}
	out[tokens] = '\0';
	return 0;
}
