/* Opening the state folder: the lock, and every job's state read, or made anew. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/store.h"
#include "agent/store_impl.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define PATH_BYTES 4096

static int
folders_make(struct store *st, const char *dir, struct err *e)
{
	static const char *const kinds[] = {"jobs", "events", "spool", "cache"};
	char path[PATH_BYTES];
	size_t i;

	if (plat_absolute(dir, st->dir, sizeof st->dir, e))
		return err_wrap(e, "state folder");
	for (i = 0; i < str_count(kinds); i++)
		if (str_fmt(path, sizeof path, e, "%s/%s", st->dir, kinds[i]) ||
		    plat_mkdirs(path, 0750, e)) {
			err_wrap(e, "state folder");
			return err_hint(e, "choose another one with --state DIR");
		}
	return 0;
}

static int
lock_take(struct store *st, struct err *e)
{
	char path[PATH_BYTES];

	if (str_fmt(path, sizeof path, e, "%s/lock", st->dir))
		return -1;
	st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (st->lock_fd < 0)
		return err_errno(e, errno, "open %s", path);
	if (flock(st->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_errno(e, errno, "lock %s", path);
	err_set(e, ERR_CONFLICT, "another agent uses the state folder %s", st->dir);
	return err_hint(e, "stop it, or choose another folder with --state DIR");
}

/*
 * A state that cannot be read is kept aside, and the job goes on as one whose agent died
 * while it ran: its report, when it is whole, decides; else a post mortem is written.
 */
static int
state_rebuild(struct store *st, const char *id, const char *path, struct job_state *s,
	struct err *e)
{
	char aside[PATH_BYTES], doc[PATH_BYTES], *text = NULL;
	struct job *j = NULL;
	size_t len = 0;

	memset(s, 0, sizeof *s);
	memcpy(s->id, id, JOB_ID_HEX);
	s->phase = PHASE_RUNNING;
	s->submitted_ms = s->started_ms = plat_now_ms();
	s->outcome = s->reason = s->exit = -1;
	if (store_spool(st, id, "job.json", doc, sizeof doc, e) == 0 &&
	    plat_read_file(doc, JOB_MAX_BYTES, &text, &len, e) == 0 &&
	    job_parse(text, len, &j, e) == 0) {
		str_show(s->lane, sizeof s->lane, j->lane->name, strlen(j->lane->name));
		str_show(s->suite, sizeof s->suite, j->suite->name, strlen(j->suite->name));
		memcpy(s->job_digest, j->digest, sizeof s->job_digest);
	}
	job_free(j);
	free(text);
	if (str_fmt(aside, sizeof aside, e, "%s.damaged", path))
		return -1;
	if (rename(path, aside))
		return err_errno(e, errno, "put %s aside", path);
	return 0;
}

static int
state_load(struct store *st, const char *id, struct err *e)
{
	char path[PATH_BYTES], *text = NULL;
	struct job_state s;
	struct entry *en;
	struct err why = {0};
	size_t len = 0;
	bool anew = false;
	int rc = -1;

	if (store_path(st, "jobs", id, ".json", path, sizeof path, e))
		return -1;
	if (plat_read_file(path, STORE_MAX_STATE, &text, &len, &why) ||
	    store_parse(text, len, &s, &why) || memcmp(s.id, id, JOB_ID_HEX) != 0) {
		fprintf(stderr, "verify-agent: state of job %s is damaged (%s): made anew\n",
			id, why.msg[0] != '\0' ? why.msg : "another job's id");
		anew = true;
		if (state_rebuild(st, id, path, &s, e))
			goto out;
	}
	if (store_insert(st, &s, &en, e) ||
	    (s.phase != PHASE_DONE && store_live(en, &s, e)))
		goto out;
	if (anew && store_save(st, &s, e))
		goto out;
	rc = 0;
out:
	free(text);
	return rc;
}

static int
by_submission(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->submitted_ms != y->submitted_ms)
		return x->submitted_ms < y->submitted_ms ? -1 : 1;
	return memcmp(x->id, y->id, JOB_ID_HEX);
}

static int
states_load(struct store *st, struct err *e)
{
	char path[PATH_BYTES], id[JOB_ID_HEX + 1];
	struct dirent *d;
	DIR *dir;
	int rc = -1;

	if (str_fmt(path, sizeof path, e, "%s/jobs", st->dir))
		return -1;
	if ((dir = opendir(path)) == NULL)
		return err_errno(e, errno, "open %s", path);
	while ((d = readdir(dir)) != NULL) {
		if (strlen(d->d_name) != JOB_ID_HEX + 5 || !str_ends(d->d_name, ".json"))
			continue;
		memcpy(id, d->d_name, JOB_ID_HEX);
		id[JOB_ID_HEX] = '\0';
		if (str_is_hex(id, JOB_ID_HEX) && state_load(st, id, e))
			goto out;
	}
	if (st->count > 1)
		qsort(st->entries, st->count, sizeof *st->entries, by_submission);
	rc = 0;
out:
	closedir(dir);
	return rc;
}

int
store_open(const char *dir, size_t max_known, struct store **out, struct err *e)
{
	struct store *st;
	int rc = -1;

	if ((st = calloc(1, sizeof *st)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the store");
	st->lock_fd = -1;
	st->max_known = max_known;
	if (pthread_mutex_init(&st->mutex, NULL)) {
		free(st);
		return err_set(e, ERR_NOMEM, "no mutex");
	}
	if (folders_make(st, dir, e) || lock_take(st, e) || states_load(st, e))
		goto out;
	*out = st, st = NULL;
	rc = 0;
out:
	store_close(st);
	return rc;
}

void
store_close(struct store *st)
{
	size_t i;

	if (st == NULL)
		return;
	for (i = 0; i < st->count; i++)
		free(st->entries[i].live);
	free(st->entries);
	if (st->lock_fd >= 0)
		close(st->lock_fd);
	pthread_mutex_destroy(&st->mutex);
	free(st);
}
