#include "controller/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/plat.h"
#include "controller/ledger_db.h"

#define APPLICATION_ID 1987208825 /* "vrfy"; in 001_ledger.sql too */
#define WAIT_MS 10000		  /* as long as busy_timeout */
#define MAX_SQL_BYTES (64 << 20)

/* In this order; `want`: what the pragma must answer. */
static const struct {
	enum sql_id id;
	const char *want;
} pragmas[] = {
	{SQL_PRAGMA_FOREIGN_KEYS, NULL},       {SQL_PRAGMA_RECURSIVE_TRIGGERS, NULL},
	{SQL_PRAGMA_TRUSTED_SCHEMA, NULL},     {SQL_PRAGMA_CELL_SIZE_CHECK, NULL},
	{SQL_PRAGMA_JOURNAL_MODE, "wal"},      {SQL_PRAGMA_SYNCHRONOUS, NULL},
	{SQL_PRAGMA_JOURNAL_SIZE_LIMIT, NULL},
};

/* ---- the place ---- */

/* The nearest thing that exists: the file, else the folder it will stand in. */
static int
existing(const char *path, char out[PATH_MAX], struct err *e)
{
	char *slash;

	if (str_copy(out, PATH_MAX, path, e))
		return -1;
	while (!plat_exists(out)) {
		if ((slash = strrchr(out, '/')) == NULL)
			return str_copy(out, PATH_MAX, ".", e);
		slash[slash == out] = '\0';
		if (slash == out)
			break;
	}
	return 0;
}

static int
place_check(const char *path, const struct ledger_hooks *hooks, struct err *e)
{
	char at[PATH_MAX];
	const char *fs;

	if (existing(path, at, e))
		return -1;
	fs = hooks != NULL && hooks->network_fs != NULL ? hooks->network_fs(at)
							: ledger_network_fs(at);
	if (fs == NULL)
		return 0;
	err_set(e, ERR_REFUSED, "%s lies on a network file system (%s)", path, fs);
	return err_hint(
		e, "SQLite's locks and log do not hold there: choose a folder on a "
		   "disk of this machine");
}

static int
folder_make(const char *path, struct err *e)
{
	char folder[PATH_MAX];
	char *slash;

	if (str_copy(folder, sizeof folder, path, e))
		return -1;
	if ((slash = strrchr(folder, '/')) == NULL || slash == folder)
		return 0;
	*slash = '\0';
	return plat_mkdirs(folder, 0700, e);
}

/* Makes an empty file that only its owner can read, so that SQLite's files beside it
 * get the same mode. */
static int
file_make(const char *path, unsigned flags, struct err *e)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return 0;
		err_set(e, ERR_USAGE, "%s is not a file", path);
		return err_hint(e, "name the file of a ledger, not its folder");
	}
	if (errno != ENOENT || !(flags & LEDGER_CREATE)) {
		err_errno(e, errno, "%s", path);
		return err_hint(e, "no ledger yet: the first `run HOST` makes one");
	}
	if (folder_make(path, e))
		return -1;
	if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return err_errno(e, errno, "%s", path);
	close(fd);
	return 0;
}

static int
paths_set(struct ledger *l, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) + 1 : 0;
	size_t size = n + sizeof "blobs";

	if ((l->path = strdup(path)) == NULL || (l->blobs = malloc(size)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a ledger");
	return str_fmt(l->blobs, size, e, "%.*sblobs", (int)n, path);
}

/* ---- the file ---- */

struct identity {
	int64_t application, version, objects;
};

static int
identity_read(struct ledger *l, struct identity *id, struct err *e)
{
	sqlite3_stmt *s;

	if (ledger_stmt(l, SQL_IDENTITY, &s, e) || ledger_step(l, s, e) != 1)
		return -1;
	id->application = sqlite3_column_int64(s, 0);
	id->version = sqlite3_column_int64(s, 1);
	id->objects = sqlite3_column_int64(s, 2);
	sqlite3_reset(s);
	return 0;
}

static int
identity_check(const struct identity *id, struct err *e)
{
	if (id->application == 0 && id->version == 0 && id->objects == 0)
		return 0; /* an empty file */
	if (id->application != APPLICATION_ID) {
		err_set(e, ERR_CONFLICT, "an SQLite file of another program");
		return err_hint(e, "name a ledger, or a file that does not exist yet");
	}
	if (id->version > sql_version) {
		err_set(e, ERR_UNSUPPORTED,
			"ledger schema %lld is newer than %d, the newest that version "
			"%s knows",
			(long long)id->version, sql_version, VERSION);
		return err_hint(e, "upgrade verify-controller; it was left as it is");
	}
	return 0;
}

static int
pragma_set(struct ledger *l, enum sql_id id, const char *want, struct err *e)
{
	sqlite3_stmt *s;
	const char *got;
	int rc;

	if (ledger_stmt(l, id, &s, e) || (rc = ledger_step(l, s, e)) < 0)
		return -1;
	if (want != NULL) {
		got = rc == 1 ? (const char *)sqlite3_column_text(s, 0) : NULL;
		if (!str_eq(got, want))
			rc = err_set(e, ERR_UNSUPPORTED, "SQLite answers %s to %s",
				     got != NULL ? got : "nothing", sql_text[id]);
	}
	sqlite3_reset(s);
	return rc < 0 ? -1 : 0;
}

static int
pragmas_set(struct ledger *l, struct err *e)
{
	size_t i;

	for (i = 0; i < str_count(pragmas); i++)
		if (pragma_set(l, pragmas[i].id, pragmas[i].want, e))
			return -1;
	return 0;
}

/* Two programs may do this at once: the second finds the work done. */
static int
migrate(struct ledger *l, struct err *e)
{
	struct identity id;

	if (ledger_do(l, SQL_BEGIN, e))
		return -1;
	if (identity_read(l, &id, e) == 0 && identity_check(&id, e) == 0 &&
	    ledger_migrate(l->db, (int)id.version, e) == 0 &&
	    ledger_do(l, SQL_COMMIT, e) == 0)
		return 0;
	if (!sqlite3_get_autocommit(l->db) && ledger_do(l, SQL_ROLLBACK, NULL))
		return err_wrap(e, "not undone");
	return -1;
}

static int
prepare(struct ledger *l, struct err *e)
{
	struct identity id;

	if (pragma_set(l, SQL_PRAGMA_BUSY_TIMEOUT, NULL, e) ||
	    identity_read(l, &id, e) || identity_check(&id, e) || pragmas_set(l, e))
		return -1;
	return id.version < sql_version ? migrate(l, e) : 0;
}

/* The switch to the write-ahead log answers "busy" at once when another program makes
 * the same switch, whatever busy_timeout says. */
static int
prepare_patiently(struct ledger *l, struct err *e)
{
	const struct timespec nap = {0, 20 * 1000 * 1000};
	int64_t end = plat_mono_ms() + WAIT_MS;
	int rc;

	while ((rc = prepare(l, e)) != 0 && e->code == ERR_BUSY && plat_mono_ms() < end)
		nanosleep(&nap, NULL);
	return rc;
}

static void
first_problem(void *arg, const char *text)
{
	struct err *e = arg;

	if (e->code == ERR_NONE)
		err_set(e, ERR_INTEGRITY, "%s", text);
}

static int
schema_check(struct ledger *l, struct err *e)
{
	struct err found = {0};

	if (ledger_schema(l, first_problem, &found, e))
		return -1;
	if (found.code == ERR_NONE)
		return 0;
	err_set(e, found.code, "%s", found.msg);
	return err_hint(e, "`ledger check` lists all that is wrong; restore a copy");
}

static int
db_open(struct ledger *l, struct err *e)
{
	if (sqlite3_open_v2(l->path, &l->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		return l->db != NULL ? ledger_fail(l, e)
				     : err_set(e, ERR_NOMEM, "no memory for SQLite");
	sqlite3_extended_result_codes(l->db, 1);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(l->db, SQLITE_LIMIT_LENGTH, MAX_SQL_BYTES);
	sqlite3_limit(l->db, SQLITE_LIMIT_ATTACHED, 0);
	return 0;
}

int
ledger_open(const char *path, unsigned flags, const struct ledger_hooks *hooks,
	    struct ledger **out, struct err *e)
{
	struct err own = {0};
	struct ledger *l = NULL;
	int rc = -1;

	if (e == NULL)
		e = &own; /* prepare_patiently decides by the code */
	if (place_check(path, hooks, e) || file_make(path, flags, e))
		return err_wrap(e, "ledger");
	if ((l = calloc(1, sizeof *l)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a ledger");
		goto out;
	}
	if (paths_set(l, path, e) || db_open(l, e) || prepare_patiently(l, e))
		goto out;
	if (!(flags & LEDGER_INSPECT) && schema_check(l, e))
		goto out;
	if ((flags & LEDGER_READ) && ledger_do(l, SQL_PRAGMA_QUERY_ONLY, e))
		goto out;
	*out = l, l = NULL;
	rc = 0;
out:
	ledger_close(l);
	return rc ? err_wrap(e, "ledger %s", path) : 0;
}

void
ledger_close(struct ledger *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < SQL_COUNT; i++)
		sqlite3_finalize(l->stmt[i]);
	sqlite3_close(l->db);
	free(l->path);
	free(l->blobs);
	free(l);
}

const char *
ledger_path(const struct ledger *l)
{
	return l->path;
}

const char *
ledger_blobs(const struct ledger *l)
{
	return l->blobs;
}

static int64_t
file_bytes(const char *path, const char *suffix)
{
	char name[PATH_MAX];
	struct stat st;

	if (str_fmt(name, sizeof name, NULL, "%s%s", path, suffix) ||
	    stat(name, &st) != 0)
		return 0;
	return st.st_size;
}

int
ledger_stats(struct ledger *l, struct ledger_stats *out, struct err *e)
{
	sqlite3_stmt *s;

	memset(out, 0, sizeof *out);
	if (ledger_stmt(l, SQL_COUNTS, &s, e) || ledger_step(l, s, e) != 1)
		return err_wrap(e, "%s", l->path);
	out->runs = sqlite3_column_int64(s, 0);
	out->entries = sqlite3_column_int64(s, 1);
	sqlite3_reset(s);
	out->schema = sql_version;
	out->bytes = file_bytes(l->path, "");
	out->wal_bytes = file_bytes(l->path, "-wal");
	/* PASSIVE waits for nobody; "busy" only means that not all was copied. */
	if (sqlite3_wal_checkpoint_v2(l->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
				      &out->wal_frames,
				      &out->wal_checkpointed) != SQLITE_OK &&
	    (sqlite3_errcode(l->db) & 0xff) != SQLITE_BUSY)
		return ledger_fail(l, e);
	return 0;
}
