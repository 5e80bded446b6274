/*
 * store_run - from pulled evidence to a row of the ledger.
 *
 * The verdict is computed here, from the logs that lie in the folder (common/verdict.h);
 * numbers of smokes and fixtures are read again from the same logs.  Blobs first, then
 * the row: a row never names bytes that are not there.
 */
#ifndef CONTROLLER_STORE_RUN_H
#define CONTROLLER_STORE_RUN_H

#include "common/err.h"
#include "common/job.h"
#include "common/verdict.h"
#include "controller/ledger.h"
#include "controller/pull.h"

/* Opens the user's ledger: $XDG_DATA_HOME/verify/ledger.db.  flags as ledger_open. */
CHECKED int ledger_of_user(unsigned flags, struct ledger **out, struct err *e);

/* Appraises and stores.  Borrows everything.  A run that is stored already is a
 * success. */
CHECKED int store_run(const char *host, const struct job *job,
	const struct pulled *pulled, const char *folder, struct err *e);

/* Puts one pulled file among the blobs while its job goes on; a blob that no row names is
 * harmless. */
CHECKED int store_early(const char *folder, const char *name, const char *sha256,
	struct err *e);

#endif
