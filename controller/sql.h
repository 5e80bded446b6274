/*
 * sql - the SQL of sql/, embedded at build time by sql/embed.awk.
 *
 * SQL_X is the statement that follows "-- name: x" in sql/queries.sql; the build fails
 * when this list and that file differ.  All data is static: no ownership, any thread.
 */
#ifndef CONTROLLER_SQL_H
#define CONTROLLER_SQL_H

enum sql_id {
	SQL_PRAGMA_BUSY_TIMEOUT,
	SQL_PRAGMA_FOREIGN_KEYS,
	SQL_PRAGMA_RECURSIVE_TRIGGERS,
	SQL_PRAGMA_TRUSTED_SCHEMA,
	SQL_PRAGMA_CELL_SIZE_CHECK,
	SQL_PRAGMA_JOURNAL_MODE,
	SQL_PRAGMA_SYNCHRONOUS,
	SQL_PRAGMA_JOURNAL_SIZE_LIMIT,
	SQL_PRAGMA_QUERY_ONLY,
	SQL_PRAGMA_QUICK_CHECK,
	SQL_PRAGMA_FOREIGN_KEY_CHECK,
	SQL_IDENTITY,
	SQL_BEGIN,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_SCHEMA,
	SQL_NEXT_SEQ,
	SQL_SAME_RUN,
	SQL_FIND_HOST,
	SQL_ADD_HOST,
	SQL_FIND_CLASS,
	SQL_ADD_CLASS,
	SQL_CLASS_TAIL,
	SQL_ADD_RUN,
	SQL_ADD_GATE,
	SQL_ADD_FIXTURE,
	SQL_ADD_SMOKE,
	SQL_ADD_ARTIFACT,
	SQL_ADD_CODE,
	SQL_ADD_ENTRY,
	SQL_RUNS,
	SQL_RUNS_OF_CLASS,
	SQL_RUNS_OF_HOST,
	SQL_RUN,
	SQL_FIND_RUN,
	SQL_MATCH_CLASS,
	SQL_GATES,
	SQL_GATES_NOT_PASSED,
	SQL_FIXTURES,
	SQL_SMOKES,
	SQL_ARTIFACTS,
	SQL_CODE,
	SQL_CLASSES,
	SQL_CLASS_PASS,
	SQL_CLASS_TRY,
	SQL_HOSTS,
	SQL_COUNTS,
	SQL_ENTRY,
	SQL_UNSEALED,
	SQL_CARRIED_WRONGLY,
	SQL_COUNT
};
extern const char *const sql_text[SQL_COUNT];

struct sql_migration {
	int version;	  /* the user_version that it leaves */
	const char *name; /* "ledger" of 001_ledger.sql */
	const char *text;
};
extern const struct sql_migration sql_migrations[]; /* in order; ends with version 0 */
extern const int sql_version;			    /* of the last one */

#endif
