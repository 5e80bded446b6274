#include "controller/pending.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define PATH_SIZE 4096
#define SUFFIX ".json"

/* ---- one job ---- */

int
pending_new(const char *host, struct job *job, struct pending **out, struct err *e)
{
	struct pending *p = calloc(1, sizeof *p);

	if (p == NULL) {
		job_free(job);
		return err_set(e, ERR_NOMEM, "no memory for a job");
	}
	p->job = job;
	p->created_ms = plat_now_ms();
	if (str_copy(p->host, sizeof p->host, host, e)) {
		pending_free(p);
		return -1;
	}
	*out = p;
	return 0;
}

void
pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	job_free(p->job);
	free(p);
}

static int
path_of(const char *folder, const char *id, const char *suffix, char *out, struct err *e)
{
	char name[128];

	return str_fmt(name, sizeof name, e, "verify/%s/%s%s", folder, id, suffix) ||
		plat_xdg("DATA", name, out, PATH_SIZE, e) ? -1 : 0;
}

static int
make_folder(const char *folder, struct err *e)
{
	char name[64], path[PATH_SIZE];

	return str_fmt(name, sizeof name, e, "verify/%s", folder) ||
		plat_xdg("DATA", name, path, sizeof path, e) ||
		plat_mkdirs(path, 0700, e) ? -1 : 0;
}

int
pending_save(const struct pending *p, struct err *e)
{
	char path[PATH_SIZE], at[24], *text = NULL;
	cJSON *o = cJSON_CreateObject();
	int rc = -1;

	plat_utc(p->created_ms, at);
	if (o == NULL || !json_add_int(o, "schemaVersion", 1) ||
	    !json_add_str(o, "host", p->host) || !json_add_str(o, "createdAt", at) ||
	    !json_add_str(o, "job", p->job->text) || (text = json_text(o, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a job");
		goto out;
	}
	if (make_folder("pending", e) || path_of("pending", p->job->id, SUFFIX, path, e))
		goto out;
	rc = plat_write_file(path, text, strlen(text), 0600, e);
out:
	free(text);
	cJSON_Delete(o);
	return rc;
}

static int
read_tree(const cJSON *o, const char *id, struct pending **out, struct err *e)
{
	const char *host, *at, *text;
	struct job *job = NULL;
	int64_t version;

	if (json_need_int(o, "schemaVersion", 1, 1, &version, e) ||
	    json_need_str(o, "host", &host, e) || json_need_str(o, "createdAt", &at, e) ||
	    json_need_str(o, "job", &text, e) || job_parse(text, strlen(text), &job, e))
		return -1;
	if (!str_eq(job->id, id)) {
		job_free(job);
		return err_set(e, ERR_PARSE, "holds another job");
	}
	if (pending_new(host, job, out, e))
		return -1;
	(*out)->created_ms = plat_utc_parse(at);
	return 0;
}

int
pending_load(const char *id, struct pending **out, struct err *e)
{
	char path[PATH_SIZE];
	cJSON *o = NULL;
	int rc;

	if (path_of("pending", id, SUFFIX, path, e) ||
	    json_load(path, PENDING_MAX_BYTES, &o, e))
		return -1;
	rc = read_tree(o, id, out, e);
	cJSON_Delete(o);
	return rc ? err_wrap(e, "%s", path) : 0;
}

int
pending_incoming(const char *id, char *out, size_t size, struct err *e)
{
	char path[PATH_SIZE];

	return path_of("incoming", id, "", path, e) || plat_mkdirs(path, 0700, e) ||
		str_copy(out, size, path, e) ? -1 : 0;
}

int
pending_done(const char *id, struct err *e)
{
	char path[PATH_SIZE];

	/* The file last: what is half removed is found again. */
	if (path_of("incoming", id, "", path, e) ||
	    (plat_exists(path) && plat_remove_tree(path, e)) ||
	    path_of("pending", id, SUFFIX, path, e))
		return -1;
	if (unlink(path) != 0 && errno != ENOENT)
		return err_errno(e, errno, "%s", path);
	if (path_of("pending", id, ".lock", path, e))
		return -1;
	if (unlink(path) != 0 && errno != ENOENT)
		return err_errno(e, errno, "%s", path);
	return 0;
}

/* ---- all of them ---- */

struct found {
	struct pending_id id;
	struct timespec at;
};

static int
newest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct found *)a)->at;
	const struct timespec *y = &((const struct found *)b)->at;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return x->tv_nsec < y->tv_nsec ? 1 : x->tv_nsec > y->tv_nsec ? -1 : 0;
}

/* "ID.json" of the folder, nothing else that may lie there. */
static bool
is_job_file(const char *name, struct pending_id *id)
{
	if (strlen(name) != JOB_ID_HEX + strlen(SUFFIX) ||
	    !str_eq(name + JOB_ID_HEX, SUFFIX))
		return false;
	memcpy(id->id, name, JOB_ID_HEX);
	id->id[JOB_ID_HEX] = '\0';
	return str_is_hex(id->id, JOB_ID_HEX);
}

static int
scan(DIR *d, struct found **list, size_t *n, struct err *e)
{
	struct dirent *entry;
	struct pending_id id;
	struct found *grown;
	struct stat st;

	while ((entry = readdir(d)) != NULL) {
		if (!is_job_file(entry->d_name, &id) ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (*n == PENDING_MAX)
			return err_set(e, ERR_LIMIT, "more than %d pending jobs", PENDING_MAX);
		if ((grown = realloc(*list, (*n + 1) * sizeof *grown)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for the pending jobs");
		*list = grown;
		grown[*n].id = id;
		grown[(*n)++].at = st.st_mtim;
	}
	return 0;
}

int
pending_list(struct pending_id **out, size_t *count, struct err *e)
{
	struct pending_id *ids = NULL;
	struct found *list = NULL;
	char path[PATH_SIZE];
	DIR *d = NULL;
	size_t n = 0, i;
	int rc = -1;

	if (plat_xdg("DATA", "verify/pending", path, sizeof path, e))
		return -1;
	if ((d = opendir(path)) == NULL && errno != ENOENT) {
		err_errno(e, errno, "%s", path);
		goto out;
	}
	if (d != NULL && scan(d, &list, &n, e))
		goto out;
	if (n > 0)
		qsort(list, n, sizeof *list, newest_first);
	if ((ids = calloc(n + 1, sizeof *ids)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the pending jobs");
		goto out;
	}
	for (i = 0; i < n; i++)
		ids[i] = list[i].id;
	*out = ids, *count = n;
	rc = 0;
out:
	if (d != NULL)
		closedir(d);
	free(list);
	return rc;
}

int
pending_find(const char *prefix, char id[JOB_ID_HEX + 1], struct err *e)
{
	struct pending_id *ids = NULL;
	size_t n, i, hits = 0;

	if (pending_list(&ids, &n, e))
		return -1;
	for (i = 0; i < n; i++)
		if (prefix[0] != '\0' && str_starts(ids[i].id, prefix) && hits++ == 0)
			memcpy(id, ids[i].id, JOB_ID_HEX + 1);
	free(ids);
	if (hits == 0)
		return err_set(e, ERR_NOTFOUND, "no pending job begins with \"%.40s\"", prefix);
	if (hits > 1) {
		err_set(e, ERR_CONFLICT, "\"%.40s\" may mean %zu pending jobs", prefix, hits);
		return err_hint(e, "give more digits");
	}
	return 0;
}

int
pending_lock(const char *id, int (*tick)(void *arg), void *arg, int *fd, struct err *e)
{
	const struct timespec pause = {0, 200000000};
	char path[PATH_SIZE];

	if (make_folder("pending", e) || path_of("pending", id, ".lock", path, e))
		return -1;
	if ((*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return err_errno(e, errno, "%s", path);
	while (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			err_errno(e, errno, "%s", path);
		else if (tick(arg))
			err_set(e, ERR_CANCELLED, "stopped while another controller brings it in");
		else {
			nanosleep(&pause, NULL);
			continue;
		}
		close(*fd);
		*fd = -1;
		return -1;
	}
	return 0;
}
