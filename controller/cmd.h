/*
 * cmd - the subcommands: their values, and what several of them need.
 *
 * The table of commands and options is in main.c; a command gets its values filled in.
 * Every command returns an exit status of common/err.h and prints its own errors.
 */
#ifndef CONTROLLER_CMD_H
#define CONTROLLER_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/opt.h"
#include "controller/inventory.h"
#include "controller/ledger.h"
#include "controller/pending.h"
#include "controller/progress.h"

#define CMD_NAME "verify-controller"

struct run_values {
	const char *lane, *suite, *model, *source, *source_ref, *only, *prebuilt, *device, *draft_model;
	struct opt_list set;
	bool detach, json;
};
struct json_values {
	bool json;
};
struct runs_values {
	const char *host, *device_class, *outcome, *lane;
	uint64_t limit;
	bool recordable, json;
};
struct logs_values {
	bool follow, raw;
};
struct why_values {
	uint64_t limit;
};
struct hosts_values {
	bool names, json;
};
struct pin_values {
	bool replace;
};

struct appraise_values {
	const char *lane, *family, *cache_type, *suite;
	uint64_t tokens;
	const char *exit;
	bool json;
};

int cmd_appraise(const struct opt_call *call);
int cmd_run(const struct opt_call *call);
int cmd_attach(const struct opt_call *call);
int cmd_cancel(const struct opt_call *call);
int cmd_runs(const struct opt_call *call);
int cmd_show(const struct opt_call *call);
int cmd_logs(const struct opt_call *call);
int cmd_classes(const struct opt_call *call);
int cmd_why(const struct opt_call *call);
int cmd_hosts(const struct opt_call *call);
int cmd_pin(const struct opt_call *call);
int cmd_ledger(const struct opt_call *call);

/* Prints the error once; gives its exit status. */
int cmd_fail(const struct err *e);
/* Prints a tree to stdout, one line or indented, and frees it.  NULL: no memory. */
int cmd_json(cJSON *o, bool pretty);
/* Opens the ledger for reading.  *out stays NULL, as a success, when there is none. */
CHECKED int cmd_ledger_read(struct ledger **out, struct err *e);
/* The look of stdout for output that is printed once. */
void cmd_look(struct progress_look *look);

/* One job on one host to its end: prints everything; gives the exit status.  Takes
 * pending. */
int job_drive(const struct host *host, struct pending *pending, bool detach, bool json);
/* Many at once, a process each; prints their lines with the host's name in front, then a
 * table.  Takes the pendings (not the array). */
int job_drive_many(const struct host *const *hosts, struct pending **pending, size_t count,
	bool detach, bool json);

#endif
