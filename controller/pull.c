#include "controller/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/verdict.h"

#define PATH_SIZE 4096
#define NAME_MAX_BYTES 200
#define COPY 65536
#define STAGE "pull"

bool
pull_name_ok(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._+-";
	size_t n = strspn(name, good);

	return n > 0 && n <= NAME_MAX_BYTES && name[n] == '\0' && name[0] != '.';
}

/* ---- the envelope ---- */

static int
mismatch(const char *what, const char *found, const char *wanted, struct err *e)
{
	char shown[80];

	str_show(shown, sizeof shown, found ? found : "nothing",
		found ? strlen(found) : strlen("nothing"));
	err_set(e, ERR_REFUSED, "%s_mismatch: the report says %s, asked was %s", what, shown,
		wanted);
	return err_hint(e, "the agent answers another request; nothing of it is stored");
}

/* The report must answer this very request: yesterday's good one does not. */
static int
check_answers(const struct job *job, const cJSON *r, struct err *e)
{
	const struct {
		const char *what, *path, *wanted;
	} rows[] = {
		{"job", "jobId", job->id},
		{"nonce", "nonce", job->nonce},
		{"lane", "lane", job->lane->name},
		{"suite", "suite.name", job->suite->name},
		{"suite", "suite.digest", job->suite->digest},
	};
	const char *found;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		found = json_path_str(r, rows[i].path);
		if (!str_eq(found, rows[i].wanted))
			return mismatch(rows[i].what, found, rows[i].wanted, e);
	}
	return 0;
}

/* The digest that the statement gives for report.json. */
static int
report_subject(const cJSON *statement, char hex[DIGEST_HEX], struct err *e)
{
	const cJSON *s;
	const char *sha;

	cJSON_ArrayForEach(s, json_get(statement, "subject")) {
		if (!str_eq(json_str(s, "name"), PULL_REPORT))
			continue;
		sha = json_path_str(s, "digest.sha256");
		if (sha == NULL || !str_is_hex(sha, DIGEST_HEX - 1))
			return err_set(e, ERR_PARSE, "subject: %s has no SHA-256", PULL_REPORT);
		return str_copy(hex, DIGEST_HEX, sha, e);
	}
	return 0;
}

int
pull_open(const struct pull_ask *ask, struct pulled *out, struct err *e)
{
	char path[128];

	if (str_fmt(path, sizeof path, e, "/v1/jobs/%s/report", ask->job->id) ||
	    client_bytes(ask->client, path, SIGN_MAX_ENVELOPE, &out->envelope,
		&out->envelope_len, e))
		return err_wrap(e, "report");
	digest_bytes(out->envelope, out->envelope_len, out->envelope_sha256);
	if (sign_open(out->envelope, out->envelope_len, ask->public_key, &out->opened, e))
		return -1;
	out->report = json_get(out->opened.statement, "predicate");
	/* Whose answer it is comes before what it says. */
	if (check_answers(ask->job, out->report, e) || report_check(out->report, e) ||
	    report_subject(out->opened.statement, out->report_sha256, e))
		return -1;
	return 0;
}

/* ---- one artifact ---- */

struct file {
	const struct pull_ask *ask;
	const char *name, *sha256;
	uint64_t bytes;            /* as the report says */
	char part[PATH_SIZE], path[PATH_SIZE];
	int fd;
	uint64_t have;
	struct digest *digest;     /* of the first `have` bytes */
	uint64_t before, all;      /* of the whole pull, for the display */
};

static void
show(const struct file *f)
{
	if (f->all == 0)
		return;
	progress_stage(f->ask->progress, STAGE, f->before + f->have, f->all, "bytes", f->name,
		NULL);
}

static int
on_chunk(void *arg, const char *p, size_t n, struct err *e)
{
	struct file *f = arg;
	uint64_t old = f->have;
	ssize_t w;

	if (n > f->bytes - f->have)
		return err_set(e, ERR_INTEGRITY, "longer than the %llu bytes reported",
			(unsigned long long)f->bytes);
	while (n > 0) {
		if ((w = write(f->fd, p, n)) < 0) {
			if (errno == EINTR)
				continue;
			return err_errno(e, errno, "%s", f->part);
		}
		digest_add(f->digest, p, (size_t)w);
		p += w, n -= (size_t)w, f->have += (uint64_t)w;
	}
	/* Each MiB is often enough for a bar. */
	if (old >> 20 != f->have >> 20)
		show(f);
	return 0;
}

/* Digests what an earlier try left; longer than the whole is rubbish. */
static int
take_up(struct file *f, struct err *e)
{
	char buffer[COPY];
	struct stat st;
	ssize_t n;

	digest_free(f->digest);
	f->have = 0;
	if ((f->digest = digest_new()) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	if (fstat(f->fd, &st) != 0)
		return err_errno(e, errno, "%s", f->part);
	if ((uint64_t)st.st_size > f->bytes && ftruncate(f->fd, 0) != 0)
		return err_errno(e, errno, "%s", f->part);
	if (lseek(f->fd, 0, SEEK_SET) < 0)
		return err_errno(e, errno, "%s", f->part);
	while ((n = read(f->fd, buffer, sizeof buffer)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "%s", f->part);
		digest_add(f->digest, buffer, (size_t)n);
		f->have += (uint64_t)n;
	}
	return 0;
}

/* From nothing again. */
static int
start_over(struct file *f, struct err *e)
{
	if (ftruncate(f->fd, 0) != 0)
		return err_errno(e, errno, "%s", f->part);
	return take_up(f, e);
}

/* Streams the rest, going on after every cut as long as something comes. */
static int
stream_rest(struct file *f, struct err *e)
{
	int64_t pause = 250;
	char url[512];
	uint64_t from;
	int silent = 0;

	if (str_fmt(url, sizeof url, e, "/v1/jobs/%s/artifacts/%s", f->ask->job->id, f->name))
		return -1;
	while (f->have < f->bytes) {
		from = f->have;
		if (client_stream(f->ask->client, url, from, on_chunk, f, e) == 0) {
			if (f->have == from)
				return 0; /* the agent has no more: the length tells */
			continue;
		}
		if (e->code != ERR_UNREACHABLE && e->code != ERR_TIMEOUT && e->code != ERR_BUSY)
			return -1;
		silent = f->have > from ? 0 : silent + 1;
		if (silent == CLIENT_ATTEMPTS)
			return -1;
		if (client_pause(f->ask->client, pause << silent))
			return err_set(e, ERR_CANCELLED, "stopped on request");
	}
	return 0;
}

/* 1: right and whole, 0: the bytes are wrong, -1: error. */
static int
one_try(struct file *f, struct err *e)
{
	char hex[DIGEST_HEX];

	if (stream_rest(f, e)) {
		if (e->code != ERR_INTEGRITY && e->code != ERR_NOTFOUND)
			return -1;
		return 0;
	}
	if (f->have != f->bytes) {
		err_set(e, ERR_INTEGRITY, "%llu bytes came, %llu are reported",
			(unsigned long long)f->have, (unsigned long long)f->bytes);
		return 0;
	}
	digest_end(f->digest, hex);
	f->digest = NULL;
	if (str_eq(hex, f->sha256))
		return 1;
	err_set(e, ERR_INTEGRITY, "digest %.16s came, %.16s is reported", hex, f->sha256);
	return 0;
}

static int
fetch_file(struct file *f, struct err *e)
{
	int tries, got = 0;

	if ((f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
		return err_errno(e, errno, "%s", f->part);
	if (take_up(f, e))
		return -1;
	for (tries = 1; (got = one_try(f, e)) == 0; tries++) {
		if (tries == PULL_ATTEMPTS) {
			e->code = ERR_INTEGRITY;
			return err_hint(e, "the job stays pending: \"attach\" tries again");
		}
		if (start_over(f, e))
			return -1;
	}
	if (got < 0)
		return -1;
	/* no fsync: what a power cut leaves here is compared again, and pulled again */
	if (rename(f->part, f->path) != 0)
		return err_errno(e, errno, "%s", f->path);
	return 0;
}

/* True when the whole lies there from an earlier pull. */
static bool
is_there(const struct file *f)
{
	char hex[DIGEST_HEX];
	struct err ignored;
	uint64_t bytes;

	return plat_is_file(f->path) && digest_file(f->path, hex, &bytes, &ignored) == 0 &&
		bytes == f->bytes && str_eq(hex, f->sha256);
}

/* part: the suffix of the unfinished file. */
static int
pull_file(const struct pull_ask *ask, const char *name, const char *sha256,
	uint64_t bytes, uint64_t before, uint64_t all, const char *part, struct err *e)
{
	struct file f = {.ask = ask, .name = name, .sha256 = sha256, .bytes = bytes, .fd = -1,
		.before = before, .all = all};
	int rc = -1;

	if (str_fmt(f.path, sizeof f.path, e, "%s/%s", ask->folder, name) ||
	    str_fmt(f.part, sizeof f.part, e, "%s/%s%s", ask->folder, name, part))
		return -1;
	if (is_there(&f)) {
		f.have = bytes;
		rc = 0;
	} else
		rc = fetch_file(&f, e);
	if (rc == 0)
		show(&f);
	if (f.fd >= 0)
		close(f.fd);
	digest_free(f.digest);
	return rc ? err_wrap(e, "artifact %s", name) : 0;
}

int
pull_early(const struct pull_ask *ask, const char *name, const char *sha256,
	uint64_t bytes, struct err *e)
{
	char part[32];

	if (!pull_name_ok(name) || !str_is_hex(sha256, DIGEST_HEX - 1) ||
	    bytes > CLIENT_MAX_ARTIFACT)
		return err_set(e, ERR_PARSE, "an event names no artifact");
	/* another controller may bring in the same job: unfinished files are not shared */
	snprintf(part, sizeof part, ".%d.part", (int)getpid());
	return pull_file(ask, name, sha256, bytes, 0, 0, part, e);
}

/* ---- all artifacts ---- */

static int
row_check(const cJSON *row, const char **name, const char **sha, uint64_t *bytes,
	struct err *e)
{
	int64_t n;

	if (json_need_str(row, "name", name, e) || json_need_str(row, "sha256", sha, e) ||
	    json_need_int(row, "bytes", 0, (int64_t)CLIENT_MAX_ARTIFACT, &n, e))
		return -1;
	*bytes = (uint64_t)n;
	if (!pull_name_ok(*name)) {
		err_set(e, ERR_REFUSED, "\"%.60s\" is no name for a file", *name);
		return err_hint(e, "letters, digits and . _ + - are, not beginning with '.'");
	}
	if (!str_is_hex(*sha, DIGEST_HEX - 1))
		return err_set(e, ERR_PARSE, "%s: \"sha256\" is not 64 hex digits", *name);
	return 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every row before the first byte: names, sizes, their sum, no name twice. */
static int
rows_check(const cJSON *list, uint64_t *all, struct err *e)
{
	const char **names = NULL, *sha;
	const cJSON *row;
	uint64_t bytes;
	int count = cJSON_GetArraySize(list), n = 0, rc = -1;

	*all = 0;
	if (count > PULL_MAX_ARTIFACTS)
		return err_set(e, ERR_LIMIT, "report: more than %d artifacts",
			PULL_MAX_ARTIFACTS);
	if ((names = calloc((size_t)count + 1, sizeof *names)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the artifacts");
	cJSON_ArrayForEach(row, list) {
		if (row_check(row, &names[n], &sha, &bytes, e)) {
			err_wrap(e, "report: artifacts[%d]", n);
			goto out;
		}
		*all += bytes;
		n++;
	}
	qsort(names, (size_t)n, sizeof *names, compare_names);
	for (; n > 1; n--)
		if (str_eq(names[n - 1], names[n - 2])) {
			err_set(e, ERR_PARSE, "report: artifact %s is listed twice", names[n - 1]);
			goto out;
		}
	rc = 0;
out:
	free(names);
	return rc;
}

/* report.json is not in its own list; the statement has its digest, not its size. */
static int
pull_report_file(const struct pull_ask *ask, struct pulled *out, struct err *e)
{
	char url[128], path[PATH_SIZE], hex[DIGEST_HEX], *text = NULL;
	size_t len;
	cJSON *tree = NULL;
	int rc = -1;

	if (out->report_sha256[0] == '\0')
		return 0;
	if (str_fmt(url, sizeof url, e, "/v1/jobs/%s/artifacts/%s", ask->job->id,
		PULL_REPORT) ||
	    str_fmt(path, sizeof path, e, "%s/%s", ask->folder, PULL_REPORT) ||
	    client_bytes(ask->client, url, SIGN_MAX_ENVELOPE, &text, &len, e))
		goto out;
	digest_bytes(text, len, hex);
	if (!str_eq(hex, out->report_sha256)) {
		err_set(e, ERR_REFUSED, "subject: %s has digest %.16s, signed is %.16s",
			PULL_REPORT, hex, out->report_sha256);
		goto out;
	}
	if (json_parse(text, len, SIGN_MAX_ENVELOPE, &tree, e))
		goto out;
	if (!cJSON_Compare(tree, out->report, true)) {
		err_set(e, ERR_REFUSED, "predicate: it is not what %s says", PULL_REPORT);
		goto out;
	}
	rc = plat_write_file(path, text, len, 0600, e);
out:
	cJSON_Delete(tree);
	free(text);
	return rc;
}

int
pull_artifacts(const struct pull_ask *ask, struct pulled *out, struct err *e)
{
	const cJSON *list = json_get(out->report, "artifacts"), *row;
	const char *name = "", *sha;
	uint64_t bytes, all;
	char text[64];

	if (rows_check(list, &all, e) || pull_report_file(ask, out, e))
		return -1;
	out->bytes = 0;
	cJSON_ArrayForEach(row, list) {
		if (row_check(row, &name, &sha, &bytes, e) ||
		    pull_file(ask, name, sha, bytes, out->bytes, all, ".part", e))
			return -1;
		out->bytes += bytes;
	}
	snprintf(text, sizeof text, "%d artifacts", cJSON_GetArraySize(list));
	progress_stage(ask->progress, STAGE, all, all, "bytes", text, "pass");
	return 0;
}

int
pull_run(const struct pull_ask *ask, struct pulled *out, struct err *e)
{
	return pull_open(ask, out, e) || pull_artifacts(ask, out, e) ? -1 : 0;
}

void
pulled_fini(struct pulled *p)
{
	free(p->envelope);
	sign_opened_fini(&p->opened);
	memset(p, 0, sizeof *p);
}
