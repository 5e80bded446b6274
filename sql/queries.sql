-- Every statement of the ledger but the migrations.  `-- name: X` begins statement SQL_X of
-- controller/sql.h; embed.awk refuses one that the header does not list.

-- name: pragma_busy_timeout
PRAGMA busy_timeout = 10000;

-- name: pragma_foreign_keys
PRAGMA foreign_keys = on;

-- name: pragma_recursive_triggers
PRAGMA recursive_triggers = on;

-- name: pragma_trusted_schema
PRAGMA trusted_schema = off;

-- name: pragma_cell_size_check
PRAGMA cell_size_check = on;

-- name: pragma_journal_mode
PRAGMA journal_mode = wal;

-- name: pragma_synchronous
PRAGMA synchronous = full;

-- name: pragma_journal_size_limit
PRAGMA journal_size_limit = 16777216;

-- name: pragma_query_only
PRAGMA query_only = on;

-- name: pragma_quick_check
PRAGMA quick_check(8);

-- name: pragma_foreign_key_check
PRAGMA foreign_key_check;

-- name: identity
SELECT (SELECT application_id FROM pragma_application_id),
	(SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema);

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: schema
SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name;

-- name: next_seq
SELECT ifnull(max(seq), 0) + 1 FROM entries;

-- name: same_run
SELECT seq, ifnull(envelope_digest, ''), ifnull(report_digest, '')
FROM runs WHERE run_id = ?;

-- name: find_host
SELECT id FROM hosts WHERE name = ?;

-- name: add_host
INSERT INTO hosts (name, first_ms) VALUES (?, ?);

-- name: find_class
SELECT id FROM device_classes WHERE name = ?;

-- name: add_class
INSERT INTO device_classes (name, first_ms, target) VALUES (?, ?, ?);

-- name: class_tail
SELECT fixture_parity_pass, fixture_parity_try, legacy_kv_graph_pass,
	legacy_kv_graph_try, gemma_runtime_pass, gemma_runtime_try
FROM runs WHERE class_id = ? ORDER BY seq DESC LIMIT 1;

-- name: add_run
INSERT INTO runs (seq, host_id, class_id,
	fixture_parity_pass, fixture_parity_try, legacy_kv_graph_pass,
	legacy_kv_graph_try, gemma_runtime_pass, gemma_runtime_try,
	run_id, lane, target, suite, suite_digest, outcome, reason, detail, recordable,
	not_recordable, agent_recordable, disagreement, fixture_parity,
	fixture_parity_reason, legacy_kv_graph, legacy_kv_graph_reason,
	gemma_runtime, gemma_runtime_reason, source_origin, source_commit,
	source_tree, source_dirty, model_name, model_sha256, model_bytes,
	model_synthetic, device_name, device_driver, device_uuid, agent_version,
	agent_key, controller_version, started_ms, finished_ms, appended_ms,
	exit_code, envelope_digest, report_digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,
	?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
	?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_gate
INSERT INTO gates (run, n, name, family, outcome, reason, detail, hint, started_ms,
	finished_ms, log_digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_fixture
INSERT INTO fixtures (run, n, name, digest, elements, max_abs, max_rel, nmse,
	non_finite, tolerance, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_smoke
INSERT INTO smokes (run, n, family, cache_asked, cache_applied, driver, kv_device,
	tokens_asked, tokens_generated, output_digest, distance, outcome, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_artifact
INSERT INTO artifacts (run, n, name, bytes, sha256, truncated) VALUES (?, ?, ?, ?, ?, ?);

-- name: add_code
INSERT INTO code (run, n, backend, device, arch, name, digest, how)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_entry
INSERT INTO entries (seq, kind, leaf_hash, created_ms) VALUES (?, 'run', ?, ?);

-- The lists of runs take: ?1 outcome, ?2 lane, ?3 target (null: any), ?4 only recordable,
-- ?5 below this sequence number, ?6 at most so many, ?7 class and ?8 host by name.

-- name: runs
SELECT * FROM run_rows
WHERE seq < ?5 AND (?1 IS NULL OR outcome = ?1) AND (?2 IS NULL OR lane = ?2)
	AND (?3 IS NULL OR target = ?3) AND recordable >= ?4 AND ?7 IS NULL AND ?8 IS NULL
ORDER BY seq DESC LIMIT ?6;

-- name: runs_of_class
SELECT * FROM run_rows
WHERE class_id = (SELECT id FROM device_classes WHERE name = ?7)
	AND (?8 IS NULL OR host = ?8)
	AND seq < ?5 AND (?1 IS NULL OR outcome = ?1) AND (?2 IS NULL OR lane = ?2)
	AND (?3 IS NULL OR target = ?3) AND recordable >= ?4
ORDER BY seq DESC LIMIT ?6;

-- name: runs_of_host
SELECT * FROM run_rows
WHERE host_id = (SELECT id FROM hosts WHERE name = ?8) AND ?7 IS NULL
	AND seq < ?5 AND (?1 IS NULL OR outcome = ?1) AND (?2 IS NULL OR lane = ?2)
	AND (?3 IS NULL OR target = ?3) AND recordable >= ?4
ORDER BY seq DESC LIMIT ?6;

-- name: run
SELECT * FROM run_rows WHERE seq = ?;

-- name: find_run
SELECT seq, run_id FROM runs WHERE run_id >= ?1 AND run_id < ?1 || 'g'
ORDER BY run_id LIMIT 5;

-- name: match_class
SELECT name FROM device_classes WHERE name >= ?1 AND name < ?1 || char(1114111)
ORDER BY name LIMIT 5;

-- name: gates
SELECT name, family, outcome, reason, detail, hint, started_ms, finished_ms, log_digest
FROM gates WHERE run = ? ORDER BY n;

-- name: gates_not_passed
SELECT name, family, outcome, reason, detail, hint, started_ms, finished_ms, log_digest
FROM gates WHERE run = ? AND outcome <> 'pass' ORDER BY n;

-- name: fixtures
SELECT name, digest, elements, max_abs, max_rel, nmse, non_finite, tolerance, outcome
FROM fixtures WHERE run = ? ORDER BY n;

-- name: smokes
SELECT family, cache_asked, cache_applied, driver, kv_device, tokens_asked,
	tokens_generated, output_digest, distance, outcome, reason
FROM smokes WHERE run = ? ORDER BY n;

-- name: artifacts
SELECT name, bytes, sha256, truncated FROM artifacts WHERE run = ? ORDER BY n;

-- name: code
SELECT backend, device, arch, name, digest, how FROM code WHERE run = ? ORDER BY n;

-- name: classes
SELECT c.name, r.seq, h.name,
	r.fixture_parity_pass, r.fixture_parity_try, r.legacy_kv_graph_pass,
	r.legacy_kv_graph_try, r.gemma_runtime_pass, r.gemma_runtime_try,
	r.run_id, r.finished_ms, r.outcome, r.reason, r.fixture_parity,
	r.fixture_parity_reason, r.legacy_kv_graph, r.legacy_kv_graph_reason,
	r.gemma_runtime, r.gemma_runtime_reason, r.suite, r.source_commit,
	r.device_driver, r.recordable, r.detail, r.not_recordable, r.target
FROM device_classes c
JOIN runs r ON r.seq = (SELECT seq FROM runs WHERE class_id = c.id ORDER BY seq DESC LIMIT 1)
JOIN hosts h ON h.id = r.host_id
ORDER BY c.name;

-- What a class shows of an older run that passed, and of one that tried.
-- name: class_pass
SELECT run_id, finished_ms, suite, source_commit, device_driver FROM runs WHERE seq = ?;

-- name: class_try
SELECT run_id, finished_ms, fixture_parity, fixture_parity_reason, legacy_kv_graph,
	legacy_kv_graph_reason, gemma_runtime, gemma_runtime_reason, detail, not_recordable
FROM runs WHERE seq = ?;

-- name: hosts
SELECT h.name, h.first_ms, (SELECT count(*) FROM runs WHERE host_id = h.id),
	r.run_id, c.name, r.outcome, r.reason, r.finished_ms
FROM hosts h
LEFT JOIN runs r ON r.seq = (SELECT max(seq) FROM runs WHERE host_id = h.id)
LEFT JOIN device_classes c ON c.id = r.class_id
ORDER BY h.name;

-- name: counts
SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM entries),
	(SELECT ifnull(max(seq), 0) FROM entries);

-- name: entry
SELECT seq, leaf_hash FROM entries WHERE seq > ? ORDER BY seq LIMIT 1;

-- name: unsealed
SELECT run_id FROM runs WHERE seq NOT IN (SELECT seq FROM entries) LIMIT 1;

-- What the rows carry forward, computed again over the whole class.
-- name: carried_wrongly
SELECT run_id FROM (
	SELECT run_id,
		fixture_parity_pass IS max(iif(recordable AND fixture_parity = 'pass', seq, NULL)) OVER w
		AND fixture_parity_try IS max(iif(fixture_parity <> 'skipped', seq, NULL)) OVER w
		AND legacy_kv_graph_pass IS max(iif(recordable AND legacy_kv_graph = 'pass', seq, NULL)) OVER w
		AND legacy_kv_graph_try IS max(iif(legacy_kv_graph <> 'skipped', seq, NULL)) OVER w
		AND gemma_runtime_pass IS max(iif(recordable AND gemma_runtime = 'pass', seq, NULL)) OVER w
		AND gemma_runtime_try IS max(iif(gemma_runtime <> 'skipped', seq, NULL)) OVER w
		AS right
	FROM runs WHERE class_id IS NOT NULL
	WINDOW w AS (PARTITION BY class_id ORDER BY seq)
) WHERE NOT right LIMIT 1;
