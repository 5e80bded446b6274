#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/judge.h"
#include "common/str.h"
#include "common/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
walk(const char *log, size_t n)
{
	struct section s;
	size_t pos = 0, before = 0;
	char value[64];
	int r;

	while ((r = transcript_next(log, n, &pos, &s, NULL)) == 1) {
		if (pos <= before || pos > n || s.body < log || s.body + s.len > log + n ||
		    s.exit < -1 || s.exit > 255 || (s.exit == 0 && !s.ended))
			__builtin_trap();
		section_fact(&s, "reason", value, sizeof value);
		section_fini(&s);
		before = pos;
	}
	if (r == 0 && pos != n && n != 0)
		__builtin_trap();
}

/* Each judge over the same bytes: any answer, clean words, outcome as the reason says. */
static void
judge_all(const char *log, size_t n)
{
	static struct suite *suite;
	struct judge_ask ask = {.lane = lane_find("cpu"), .family = "q8_0", .min_tokens = 4};
	struct judgement j;
	struct err e;
	int g;

	if (suite == NULL && suite_builtin("llama.cpp", &suite, &e))
		__builtin_trap();
	ask.suite = suite;
	for (g = 0; g < GATE_COUNT; g++) {
		if (judge_of((enum gate_id)g) == NULL)
			continue;
		memset(&j, 0xaa, sizeof j);
		judge_of((enum gate_id)g)(log, n, &ask, &j);
		if (reason_outcome(j.reason) != j.outcome ||
		    !str_is_utf8(j.detail, strlen(j.detail)) || strchr(j.detail, 0x1b) != NULL)
			__builtin_trap();
	}
	cJSON_Delete(fixtures_read(log, n));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct device_facts d;

	walk((const char *)p, n);
	judge_all((const char *)p, n);
	device_facts_cpuinfo((const char *)p, n, target_find("linux-x64-cpu"), &d);
	return 0;
}
