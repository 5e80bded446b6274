/* A job's files: the report's envelope and the artifacts, with ranges and entity tags. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/http.h"
#include "common/json.h"

#define LIST_MAX 4096
/* A larger file gets no entity tag: hashing would hold up other requests. */
#define ETAG_MAX_BYTES (128u << 20)

/* ---- entity tags ---- */

static const char *
etag_find(struct serve *s, const struct serve_etag *key)
{
	size_t i;

	for (i = 0; i < SERVE_ETAGS; i++) {
		const struct serve_etag *t = &s->etags[i];

		if (t->sha256[0] != '\0' && t->dev == key->dev && t->ino == key->ino &&
		    t->size == key->size && t->mtime_ns == key->mtime_ns)
			return t->sha256;
	}
	return NULL;
}

/* The digest of a file that does not change any more; "" when it is not to be had. */
static void
etag_of(struct serve *s, int fd, const struct stat *st, char out[DIGEST_HEX])
{
	struct serve_etag key = {
		.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
	};
	const char *known = etag_find(s, &key);

	out[0] = '\0';
	if (known != NULL) {
		memcpy(out, known, DIGEST_HEX);
		return;
	}
	if (st->st_size > ETAG_MAX_BYTES ||
	    digest_fd(fd, NULL, NULL, key.sha256, NULL, NULL))
		return;
	s->etags[s->etag_next++ % SERVE_ETAGS] = key;
	memcpy(out, key.sha256, DIGEST_HEX);
}

/* ---- one file ---- */

struct file {
	int fd;
	struct stat st;
	char etag[DIGEST_HEX];
};

/* Only a regular file right in the folder: no link, no FIFO, no way out. */
static int
file_open(const char *dir, const char *name, struct file *f, struct err *e)
{
	int dfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	f->fd = -1;
	if (dfd >= 0) {
		f->fd = openat(dfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		close(dfd);
	}
	if (f->fd < 0 || fstat(f->fd, &f->st) || !S_ISREG(f->st.st_mode)) {
		if (f->fd >= 0)
			close(f->fd);
		f->fd = -1;
		err_set(e, ERR_NOTFOUND, "the job has no file %s", name);
		return err_hint(e, "GET /v1/jobs/ID/artifacts lists what there is");
	}
	return 0;
}

static const char *
type_of(const char *name)
{
	static const struct {
		const char *suffix, *type;
	} rows[] = {
		{".json", "application/json"},
		{".ndjson", "application/x-ndjson"},
		{".log", "text/plain; charset=utf-8"},
		{".txt", "text/plain; charset=utf-8"},
		{".summary", "text/plain; charset=utf-8"},
	};
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		if (str_ends(name, rows[i].suffix))
			return rows[i].type;
	return "application/octet-stream";
}

static bool
etag_add(struct MHD_Response *resp, const char *etag)
{
	char quoted[DIGEST_HEX + 2];

	if (etag[0] == '\0')
		return true;
	return str_fmt(quoted, sizeof quoted, NULL, "\"%s\"", etag) == 0 &&
		http_add(resp, "ETag", quoted);
}

static int
not_modified(struct req *r, const struct file *f, struct err *e)
{
	struct MHD_Response *resp =
		MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (resp != NULL && !etag_add(resp, f->etag)) {
		MHD_destroy_response(resp);
		resp = NULL;
	}
	return http_send(r, MHD_HTTP_NOT_MODIFIED, resp, e);
}

static int
range_outside(struct req *r, const struct file *f, struct err *e)
{
	static const char none[] = "{\"error\":{\"code\":\"range_not_satisfiable\","
		"\"message\":\"the range begins behind the end of the file\","
		"\"hint\":\"Content-Range says how long it is now\"}}\n";
	struct MHD_Response *resp = MHD_create_response_from_buffer(
		sizeof none - 1, (void *)(uintptr_t)none, MHD_RESPMEM_PERSISTENT);
	char text[64];

	if (resp != NULL && (str_fmt(text, sizeof text, NULL, "bytes */%" PRId64,
				    (int64_t)f->st.st_size) ||
				    !http_add(resp, "Content-Range", text) ||
				    !http_add(resp, "Content-Type", "application/json"))) {
		MHD_destroy_response(resp);
		resp = NULL;
	}
	return http_send(r, MHD_HTTP_RANGE_NOT_SATISFIABLE, resp, e);
}

static bool
headers_add(struct MHD_Response *resp, const struct file *f, const char *name, bool part,
	uint64_t from, uint64_t count)
{
	char text[96];

	return http_add(resp, "Content-Type", type_of(name)) &&
		http_add(resp, "Accept-Ranges", "bytes") && etag_add(resp, f->etag) &&
		(!part || (str_fmt(text, sizeof text, NULL,
				   "bytes %" PRIu64 "-%" PRIu64 "/%" PRId64, from,
				   from + count - 1, (int64_t)f->st.st_size) == 0 &&
				  http_add(resp, "Content-Range", text)));
}

/* Takes f->fd. */
static int
file_send(struct req *r, struct file *f, const char *name, struct err *e)
{
	uint64_t size = (uint64_t)f->st.st_size, from = 0, count = size;
	const char *if_range = http_header(r, "If-Range");
	enum range_kind kind = RANGE_NONE;
	struct MHD_Response *resp = NULL;
	int rc;

	if (range_etag_is(http_header(r, "If-None-Match"), f->etag, true)) {
		rc = not_modified(r, f, e);
		goto out;
	}
	if (!r->head && (if_range == NULL || range_etag_is(if_range, f->etag, false)))
		kind = range_parse(http_header(r, "Range"), size, &from, &count);
	if (kind == RANGE_OUTSIDE) {
		rc = range_outside(r, f, e);
		goto out;
	}
	resp = MHD_create_response_from_fd_at_offset64(count, f->fd, from);
	if (resp != NULL) {
		f->fd = -1; /* the response closes it */
		if (!headers_add(resp, f, name, kind == RANGE_PART, from, count)) {
			MHD_destroy_response(resp);
			resp = NULL;
		}
	}
	rc = http_send(r, kind == RANGE_PART ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK,
		resp, e);
out:
	if (f->fd >= 0)
		close(f->fd);
	return rc;
}

/* ---- handlers ---- */

static int
job_folder(struct req *r, struct job_state *s, char *dir, size_t size, struct err *e)
{
	struct store *st = r->serve->store;
	int rc;

	store_lock(st);
	rc = store_read(st, r->args.id, s, e);
	store_unlock(st);
	if (rc || store_spool(st, r->args.id, "", dir, size, e))
		return -1;
	if (s->pruned) {
		err_set(e, ERR_NOTFOUND, "the files of job %s were pruned", s->id);
		return err_hint(e, "a controller acknowledged them; ask its ledger");
	}
	return 0;
}

int
route_artifact(struct req *r, struct err *e)
{
	struct job_state s;
	struct file f;
	char dir[4096];

	if (job_folder(r, &s, dir, sizeof dir, e) ||
	    file_open(dir, r->args.name, &f, e))
		return -1;
	f.etag[0] = '\0';
	if (s.phase == PHASE_DONE)
		etag_of(r->serve, f.fd, &f.st, f.etag);
	return file_send(r, &f, r->args.name, e);
}

int
route_report(struct req *r, struct err *e)
{
	static const char name[] = "report.dsse.json";
	struct job_state s;
	struct file f;
	char dir[4096];

	if (job_folder(r, &s, dir, sizeof dir, e))
		return -1;
	if (s.phase != PHASE_DONE) {
		err_set(e, ERR_NOTFOUND, "job %s has not ended: no report yet", s.id);
		return err_hint(e, "follow GET /v1/jobs/ID/events to its end");
	}
	if (s.envelope_sha256[0] == '\0')
		return err_set(e, ERR_NOTFOUND, "job %s ended without a report: %.160s",
			s.id, s.detail);
	if (file_open(dir, name, &f, e))
		return -1;
	memcpy(f.etag, s.envelope_sha256, sizeof f.etag);
	return file_send(r, &f, name, e);
}

struct found {
	char name[ROUTE_MAX_NAME + 1];
	uint64_t bytes;
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

/* Gives *out (free()): the regular files that can be asked for. */
static int
folder_list(const char *path, struct found **out, size_t *count, struct err *e)
{
	struct found *list = NULL, *grown;
	struct dirent *d;
	struct stat st;
	size_t n = 0;
	DIR *dir;
	int rc = -1;

	if ((dir = opendir(path)) == NULL)
		return err_errno(e, errno, "the job's folder");
	while (n < LIST_MAX && (d = readdir(dir)) != NULL) {
		if (!route_is_name(d->d_name) ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (n % 64 == 0) {
			grown = realloc(list, (n + 64) * sizeof *list);
			if (grown == NULL) {
				err_set(e, ERR_NOMEM, "no memory for the list of files");
				goto out;
			}
			list = grown;
		}
		if (str_copy(list[n].name, sizeof list[n].name, d->d_name, e))
			goto out;
		list[n++].bytes = (uint64_t)st.st_size;
	}
	if (n > 1)
		qsort(list, n, sizeof *list, by_name);
	*out = list, list = NULL;
	*count = n;
	rc = 0;
out:
	free(list);
	closedir(dir);
	return rc;
}

int
route_artifacts(struct req *r, struct err *e)
{
	cJSON *o = NULL, *list, *row;
	struct found *found = NULL;
	struct job_state s;
	char dir[4096];
	size_t i, n = 0;

	if (job_folder(r, &s, dir, sizeof dir, e) || folder_list(dir, &found, &n, e))
		return -1;
	o = cJSON_CreateObject();
	list = json_add_array(o, "artifacts");
	for (i = 0; list != NULL && i < n; i++) {
		row = cJSON_CreateObject();
		if (row == NULL || !json_add_str(row, "name", found[i].name) ||
		    !json_add_int(row, "bytes", (int64_t)found[i].bytes) ||
		    !cJSON_AddItemToArray(list, row)) {
			cJSON_Delete(row);
			list = NULL;
		}
	}
	free(found);
	if (list == NULL) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for the list of files");
	}
	return http_json(r, MHD_HTTP_OK, o, e);
}
