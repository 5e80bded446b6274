/*
 * result - a stored run, for people and for scripts.
 *
 * Everything comes from the ledger, so that the end of `run`, `attach` and `show` say the
 * same.
 */
#ifndef CONTROLLER_RESULT_H
#define CONTROLLER_RESULT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "controller/ledger.h"
#include "controller/progress.h"

#define RESULT_ID_MIN 8 /* digits of an abbreviated run id */

/* "RECORDABLE PASS", "FAIL build_failed: ...", "PASS, NOT RECORDABLE: ...". */
void result_line(const struct ledger_run *r, char *out, size_t size);
/* The word alone: "RECORDABLE PASS", "PASS, NOT RECORDABLE", "BLOCKED". */
const char *result_word(const struct ledger_run *r);

/* Verdict, gates with their times, what did not pass with sentence and hint, where the
 * evidence is.  after_list: the live list stands above, with every gate that passed. */
CHECKED int result_print(FILE *out, struct ledger *l, const struct ledger_run *r,
	const struct progress_look *look, bool after_list, struct err *e);
/* The run with all its rows; gives a tree, cJSON_Delete; NULL when out of memory. */
cJSON *result_json(const struct ledger_run *r);

/* Shortest unique beginning of a run id of at least RESULT_ID_MIN digits. */
void result_short(struct ledger *l, const char *run_id, char out[LEDGER_RUN_ID + 1]);
/* "2026-06-01 10:00" in local time, "-" when unknown. */
void result_time(int64_t ms, char *out, size_t size);

#endif
