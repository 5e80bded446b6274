#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/job.h"
#include "common/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A job that is accepted has its names in form, and its text is the same job. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct job *j = NULL, *again = NULL;
	struct err e = {0};

	if (job_parse((const char *)p, n, &j, &e)) {
		if (j != NULL || e.code == ERR_NONE || !str_starts(e.msg, "job: "))
			__builtin_trap();
		return 0;
	}
	if (!str_is_hex(j->id, JOB_ID_HEX) || !str_is_hex(j->nonce, JOB_NONCE_HEX) ||
	    j->lane == NULL || j->suite == NULL ||
	    (j->override[OVERRIDE_DRIVER] != NULL && strchr(j->override[OVERRIDE_DRIVER], '/') != NULL))
		__builtin_trap();
	if (job_parse(j->text, strlen(j->text), &again, &e) || strcmp(j->digest, again->digest) != 0)
		__builtin_trap();
	job_free(j);
	job_free(again);
	return 0;
}
