/*
 * The one log of a run, as the Vulkan runners kept it: LANE'S-STEM-STAMP.log in the folder
 * of the logs, every gate's log one after the other.  Each is a transcript with the same
 * boundary, and so is the whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gate.h"
#include "common/plat.h"
#include "common/str.h"

#define COPY_BYTES 65536
#define SAME_SECOND_MAX 100 /* runs that began in one second */

static int
log_append(FILE *to, const char *path, struct err *e)
{
	FILE *from = fopen(path, "rbe");
	char *buf = malloc(COPY_BYTES);
	size_t n = 0;
	int rc = -1;

	if (buf == NULL) {
		err_set(e, ERR_NOMEM, "no memory to copy a log");
		goto out;
	}
	if (from == NULL) {
		err_errno(e, errno, "%s", path);
		goto out;
	}
	while ((n = fread(buf, 1, COPY_BYTES, from)) > 0)
		if (fwrite(buf, 1, n, to) != n) {
			err_errno(e, errno, "the log of all gates");
			goto out;
		}
	rc = ferror(from) ? err_errno(e, EIO, "%s", path) : 0;
out:
	if (from != NULL)
		fclose(from);
	free(buf);
	return rc;
}

/* "linux-vulkan-smoke-20261201T060350Z.log"; no run overwrites another's. */
static FILE *
whole_create(const struct work *w, char name[256], char path[GATE_PATH], struct err *e)
{
	char utc[24], stamp[24], number[16] = "";
	size_t i, n = 0;
	FILE *f = NULL;
	int k;

	plat_utc(w->started_ms, utc);
	for (i = 0; utc[i] != '\0'; i++)
		if (utc[i] != '-' && utc[i] != ':')
			stamp[n++] = utc[i];
	stamp[n] = '\0';
	for (k = 1; f == NULL && k <= SAME_SECOND_MAX; k++) {
		if (k > 1)
			snprintf(number, sizeof number, ".%d", k);
		if (str_fmt(name, 256, e, "%s-%s%s.log", w->lane->whole_log, stamp, number) ||
		    work_path(w, name, path, GATE_PATH, e))
			return NULL;
		if ((f = fopen(path, "wbxe")) == NULL && errno != EEXIST)
			k = SAME_SECOND_MAX;
	}
	if (f == NULL)
		err_errno(e, errno, "%s", path);
	return f;
}

static int
whole_write(const struct work *w, char name[256], struct err *e)
{
	char path[GATE_PATH], from[GATE_PATH];
	FILE *f = whole_create(w, name, path, e);
	int i, rc = 0;

	if (f == NULL)
		return -1;
	for (i = 0; rc == 0 && i < w->gate_count; i++)
		if (w->gates[i].log_name[0] != '\0')
			rc = work_path(w, w->gates[i].log_name, from, sizeof from, e) ||
				log_append(f, from, e) ? -1 : 0;
	if (rc == 0 && (fflush(f) != 0 || fsync(fileno(f)) != 0))
		rc = err_errno(e, errno, "%s", path);
	if (fclose(f) != 0 && rc == 0)
		rc = err_errno(e, errno, "%s", path);
	if (rc)
		unlink(path);
	return rc;
}

void
work_whole_log(struct work *w)
{
	struct err e = {0};
	char name[256];

	if (!w->ask->runner_names || w->lane->whole_log == NULL)
		return;
	if (whole_write(w, name, &e))
		event_note(w->ask->events, "report", e.msg);
	else
		work_artifact_file(w, name, NULL);
}
