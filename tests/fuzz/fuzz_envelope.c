#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/sign.h"
#include "common/str.h"
#include "common/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The key of the seeds: RFC 8032, section 7.1, test 1. */
#define PUBLIC "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

static int
no_log(void *arg, const char *name, char **out, size_t *len, struct err *e)
{
	(void)arg, (void)name, (void)out, (void)len;
	return err_set(e, ERR_NOTFOUND, "not here");
}

/* The report part of a parsed text: without a log nothing can be recorded. */
static void
appraise(const cJSON *report)
{
	static struct suite *suite;
	static struct verdict v;
	struct verdict_logs logs = {no_log, NULL};
	struct err e = {0};

	if (suite == NULL && suite_builtin("llama.cpp", &suite, &e))
		__builtin_trap();
	if (verdict_appraise(report, suite, true, &logs, &v, &e)) {
		if (e.code == ERR_NONE)
			__builtin_trap();
	} else if (v.recordable || v.exit == EXIT_PASS || v.why_count == 0) {
		__builtin_trap();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct sign_opened o = {0};
	struct err e = {0};
	cJSON *report = NULL;

	if (sign_open((const char *)p, n, PUBLIC, &o, &e)) {
		if (o.statement != NULL || (e.code != ERR_REFUSED && e.code != ERR_PARSE &&
			e.code != ERR_LIMIT))
			__builtin_trap();
	} else {
		appraise(json_get(o.statement, "predicate"));
		sign_opened_fini(&o);
	}
	/* the same bytes as a report, which is what a key holder may send */
	if (json_parse((const char *)p, n, 1u << 20, &report, &e) == 0)
		appraise(report);
	cJSON_Delete(report);
	return 0;
}
