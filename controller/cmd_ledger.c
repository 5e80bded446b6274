/* ledger: what the store says of itself. */
#include "controller/cmd.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "controller/blob.h"
#include "controller/store_run.h"

#define PAGE 1000 /* runs of one question */

static void
on_problem(void *arg, const char *text)
{
	char shown[1200];

	(void)arg;
	str_show(shown, sizeof shown, text, strlen(text));
	printf("problem: %s\n", shown);
}

static int
do_stats(struct ledger *l, struct err *e)
{
	struct ledger_stats s;
	char size[32];

	if (ledger_stats(l, &s, e))
		return -1;
	progress_amount((double)s.bytes, "bytes", size, sizeof size);
	printf("file        %s\nschema      %d\nruns        %lld\nentries     %lld\n"
		"size        %s\n", ledger_path(l), s.schema, (long long)s.runs,
		(long long)s.entries, size);
	progress_amount((double)s.wal_bytes, "bytes", size, sizeof size);
	printf("wal         %s, %d frames, %d copied back\nevidence    %s\n", size, s.wal_frames,
		s.wal_checkpointed, ledger_blobs(l));
	return 0;
}

static int
do_check(struct ledger *l, struct err *e)
{
	if (ledger_check(l, on_problem, NULL, e))
		return -1;
	printf("the ledger is internally consistent, not anchored: no checkpoint kept "
		"elsewhere was compared\n");
	return 0;
}

/* ---- verify: the bytes too ---- */

struct tally {
	const char *dir;
	uint64_t blobs, bad;
};

static void
verify_blob(struct tally *t, const struct ledger_run *r, const char *name,
	const char *digest)
{
	struct err e = {0};

	if (digest == NULL || digest[0] == '\0')
		return;
	t->blobs++;
	if (blob_verify(t->dir, digest, &e) == 0)
		return;
	t->bad++;
	printf("problem: run %.8s: %s: %s\n", r->run_id, name, e.msg);
}

static int
verify_run(struct ledger *l, struct tally *t, const char *run_id, struct err *e)
{
	struct ledger_list list = {0};
	const struct ledger_artifact *a;
	const struct ledger_run *r;

	if (ledger_get(l, run_id, &list, e))
		return -1;
	r = &list.runs[0];
	verify_blob(t, r, "envelope", r->envelope_digest);
	verify_blob(t, r, "report", r->report_digest);
	for (a = r->artifacts; a < r->artifacts + r->artifact_count; a++)
		verify_blob(t, r, a->name, a->sha256);
	ledger_list_fini(&list);
	return 0;
}

static int
do_verify(struct ledger *l, struct err *e)
{
	struct ledger_filter f = {.limit = PAGE};
	struct tally t = {.dir = ledger_blobs(l)};
	struct ledger_list list = {0};
	size_t got = PAGE, i;
	int rc = 0;

	if (do_check(l, e))
		return -1;
	while (rc == 0 && got == PAGE) {
		memset(&list, 0, sizeof list);
		if (ledger_runs(l, &f, &list, e))
			return -1;
		got = list.count;
		for (i = 0; rc == 0 && i < got; i++) {
			rc = verify_run(l, &t, list.runs[i].run_id, e);
			f.before = list.runs[i].seq;
		}
		ledger_list_fini(&list);
	}
	if (rc)
		return -1;
	if (t.bad > 0)
		return err_set(e, ERR_INTEGRITY, "%llu of %llu files of evidence are not what "
			"was stored", (unsigned long long)t.bad, (unsigned long long)t.blobs);
	printf("%llu files of evidence read again, all as stored\n",
		(unsigned long long)t.blobs);
	return 0;
}

/* ---- the verbs ---- */

static const struct {
	const char *name;
	unsigned flags;
	int (*run)(struct ledger *l, struct err *e);
} verbs[] = {
	{"stats", LEDGER_READ, do_stats},
	{"check", LEDGER_READ | LEDGER_INSPECT, do_check},
	{"verify", LEDGER_READ | LEDGER_INSPECT, do_verify},
};

int
cmd_ledger(const struct opt_call *call)
{
	const char *words[str_count(verbs)], *near;
	struct ledger *l = NULL;
	struct err e = {0};
	size_t i;
	int rc = -1;

	for (i = 0; i < str_count(verbs); i++) {
		words[i] = verbs[i].name;
		if (str_eq(verbs[i].name, call->argv[0]))
			break;
	}
	if (i == str_count(verbs)) {
		err_set(&e, ERR_USAGE, "ledger: no such verb: \"%.40s\"", call->argv[0]);
		near = opt_nearest(call->argv[0], words, str_count(words));
		err_hint(&e, near ? "did you mean %s?" : "stats, check, verify%s",
			near ? near : "");
		return cmd_fail(&e);
	}
	if (ledger_of_user(verbs[i].flags, &l, &e) == 0)
		rc = verbs[i].run(l, &e);
	else if (e.code == ERR_NOTFOUND)
		err_hint(&e, "the first run makes it: %s run local", CMD_NAME);
	ledger_close(l);
	return rc ? cmd_fail(&e) : EXIT_PASS;
}
