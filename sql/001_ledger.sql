-- The ledger: what was run where, and what came of it.  Rows are inserted, never updated.
--
-- A run is written in one transaction: hosts and device_classes when new, then runs, its
-- gates, fixtures, smokes and artifacts, and last its row of entries.  That row seals it:
-- nothing can be added to a sealed run, and a run without a seal can not be committed.
-- Times are stored in UTC milliseconds (*_ms) and shown as text (*_at).
-- (Checks of words are chains of OR: SQLite makes a table for each evaluation of an IN
-- list, which doubles the cost of a run.)

PRAGMA application_id = 1987208825; -- "vrfy"

CREATE TABLE hosts (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE CHECK (name <> ''),
	first_ms INTEGER NOT NULL,
	first_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', first_ms / 1000, 'unixepoch'))
) STRICT;

-- target / model without vendor / architecture.  No result moves from one to another.
CREATE TABLE device_classes (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE CHECK (name <> ''),
	target TEXT NOT NULL,
	first_ms INTEGER NOT NULL,
	first_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', first_ms / 1000, 'unixepoch')),
	CHECK (substr(name, 1, length(target) + 1) = target || '/')
) STRICT;

-- One row per thing that was recorded, numbered from 1 without gaps.  leaf_hash is the
-- RFC 6962 leaf hash, SHA-256 of a zero byte and the entry's canonical bytes
-- (controller/ledger.h), so entry N is leaf N - 1 of a Merkle tree.
CREATE TABLE entries (
	seq INTEGER PRIMARY KEY,
	kind TEXT NOT NULL CHECK (kind <> ''), -- 'run'
	leaf_hash TEXT NOT NULL CHECK (length(leaf_hash) = 64),
	created_ms INTEGER NOT NULL,
	created_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', created_ms / 1000, 'unixepoch'))
) STRICT;

CREATE TABLE runs (
	seq INTEGER PRIMARY KEY REFERENCES entries (seq) DEFERRABLE INITIALLY DEFERRED,
	class_id INTEGER REFERENCES device_classes (id), -- null: no device was found
	host_id INTEGER NOT NULL REFERENCES hosts (id),
	run_id TEXT NOT NULL UNIQUE
		CHECK (length(run_id) = 32 AND run_id NOT GLOB '*[^0-9a-f]*'),
	outcome TEXT NOT NULL
		CHECK (outcome = 'pass' OR outcome = 'fail' OR outcome = 'blocked'
			OR outcome = 'skipped' OR outcome = 'incomplete'),
	reason TEXT NOT NULL,
	recordable INTEGER NOT NULL
		CHECK (recordable = 0 OR (recordable = 1 AND outcome = 'pass')),
	started_ms INTEGER,
	finished_ms INTEGER,
	appended_ms INTEGER NOT NULL,
	started_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', started_ms / 1000, 'unixepoch')),
	finished_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', finished_ms / 1000, 'unixepoch')),
	appended_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', appended_ms / 1000, 'unixepoch')),

	-- What this run says of each claim; null: the suite does not make it.
	fixture_parity TEXT
		CHECK (fixture_parity = 'pass' OR fixture_parity = 'fail'
			OR fixture_parity = 'blocked' OR fixture_parity = 'skipped'
			OR fixture_parity = 'incomplete'),
	fixture_parity_reason TEXT,
	legacy_kv_graph TEXT
		CHECK (legacy_kv_graph = 'pass' OR legacy_kv_graph = 'fail'
			OR legacy_kv_graph = 'blocked' OR legacy_kv_graph = 'skipped'
			OR legacy_kv_graph = 'incomplete'),
	legacy_kv_graph_reason TEXT,
	gemma_runtime TEXT
		CHECK (gemma_runtime = 'pass' OR gemma_runtime = 'fail'
			OR gemma_runtime = 'blocked' OR gemma_runtime = 'skipped'
			OR gemma_runtime = 'incomplete'),
	gemma_runtime_reason TEXT,

	-- Of the same class, up to and with this run: the newest recordable pass of the
	-- claim, and the newest run that tried it.  Carried forward from row to row, so that
	-- the state of a class stands in its newest row; `ledger check` computes it again.
	fixture_parity_pass INTEGER REFERENCES runs (seq),
	fixture_parity_try INTEGER REFERENCES runs (seq),
	legacy_kv_graph_pass INTEGER REFERENCES runs (seq),
	legacy_kv_graph_try INTEGER REFERENCES runs (seq),
	gemma_runtime_pass INTEGER REFERENCES runs (seq),
	gemma_runtime_try INTEGER REFERENCES runs (seq),

	lane TEXT NOT NULL,
	target TEXT NOT NULL,
	suite TEXT NOT NULL,
	suite_digest TEXT,
	source_commit TEXT,
	device_driver TEXT,
	source_tree TEXT,
	source_dirty TEXT,    -- null: clean; else the digest of what differs
	source_origin TEXT,
	model_name TEXT,
	model_sha256 TEXT,
	model_bytes INTEGER,
	model_synthetic INTEGER NOT NULL CHECK (model_synthetic = 0 OR model_synthetic = 1),
	device_name TEXT,
	device_uuid TEXT,
	agent_version TEXT,
	agent_key TEXT,       -- id of the key that signed the report; null: unsigned
	controller_version TEXT NOT NULL,
	exit_code INTEGER,
	envelope_digest TEXT, -- of the signed report, a blob beside the ledger
	report_digest TEXT,
	agent_recordable INTEGER NOT NULL -- its claim
		CHECK (agent_recordable = 0 OR agent_recordable = 1),
	disagreement TEXT,    -- where agent and controller differ
	detail TEXT,
	not_recordable TEXT   -- why not, in words
) STRICT;
CREATE INDEX runs_by_class ON runs (class_id, seq);
CREATE INDEX runs_by_host ON runs (host_id, seq);

CREATE TABLE gates (
	run INTEGER NOT NULL REFERENCES runs (seq),
	n INTEGER NOT NULL,
	name TEXT NOT NULL,
	family TEXT,
	outcome TEXT NOT NULL
		CHECK (outcome = 'pass' OR outcome = 'fail' OR outcome = 'blocked'
			OR outcome = 'skipped' OR outcome = 'incomplete'),
	reason TEXT NOT NULL,
	detail TEXT,
	hint TEXT,
	started_ms INTEGER,
	finished_ms INTEGER,
	started_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', started_ms / 1000, 'unixepoch')),
	finished_at TEXT AS (strftime('%Y-%m-%dT%H:%M:%SZ', finished_ms / 1000, 'unixepoch')),
	log_digest TEXT,
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- A difference that is not finite is null; non_finite counts such elements.
CREATE TABLE fixtures (
	run INTEGER NOT NULL REFERENCES runs (seq),
	n INTEGER NOT NULL,
	name TEXT NOT NULL,
	digest TEXT,
	elements INTEGER,
	max_abs REAL CHECK (abs(max_abs) <= 1.7976931348623157e308),
	max_rel REAL CHECK (abs(max_rel) <= 1.7976931348623157e308),
	nmse REAL CHECK (abs(nmse) <= 1.7976931348623157e308),
	non_finite INTEGER,
	tolerance REAL CHECK (abs(tolerance) <= 1.7976931348623157e308),
	outcome TEXT NOT NULL
		CHECK (outcome = 'pass' OR outcome = 'fail' OR outcome = 'blocked'
			OR outcome = 'skipped' OR outcome = 'incomplete'),
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE smokes (
	run INTEGER NOT NULL REFERENCES runs (seq),
	n INTEGER NOT NULL,
	family TEXT NOT NULL,
	cache_asked TEXT,
	cache_applied TEXT,
	driver TEXT,
	kv_device TEXT,
	tokens_asked INTEGER,
	tokens_generated INTEGER,
	output_digest TEXT,
	distance REAL CHECK (abs(distance) <= 1.7976931348623157e308), -- from the baseline
	outcome TEXT NOT NULL
		CHECK (outcome = 'pass' OR outcome = 'fail' OR outcome = 'blocked'
			OR outcome = 'skipped' OR outcome = 'incomplete'),
	reason TEXT NOT NULL,
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
	run INTEGER NOT NULL REFERENCES runs (seq),
	n INTEGER NOT NULL,
	name TEXT NOT NULL,
	bytes INTEGER,
	sha256 TEXT,
	truncated INTEGER NOT NULL CHECK (truncated = 0 OR truncated = 1),
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- Append-only.  The insert triggers refuse INSERT OR REPLACE also for a connection that
-- left recursive_triggers off.
CREATE TRIGGER hosts_no_update BEFORE UPDATE ON hosts
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER hosts_no_delete BEFORE DELETE ON hosts
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER hosts_no_replace BEFORE INSERT ON hosts
WHEN EXISTS (SELECT 1 FROM hosts WHERE name = NEW.name)
	OR EXISTS (SELECT 1 FROM hosts WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER device_classes_no_update BEFORE UPDATE ON device_classes
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER device_classes_no_delete BEFORE DELETE ON device_classes
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER device_classes_no_replace BEFORE INSERT ON device_classes
WHEN EXISTS (SELECT 1 FROM device_classes WHERE name = NEW.name)
	OR EXISTS (SELECT 1 FROM device_classes WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_no_gap BEFORE INSERT ON entries
WHEN NEW.seq IS NOT (SELECT ifnull(max(seq), 0) + 1 FROM entries)
	OR NOT EXISTS (SELECT 1 FROM runs WHERE seq = NEW.seq)
BEGIN SELECT raise(ABORT, 'an entry follows the last one and seals a run'); END;

CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs
WHEN NEW.seq IS NOT (SELECT ifnull(max(seq), 0) + 1 FROM entries)
	OR EXISTS (SELECT 1 FROM runs WHERE seq = NEW.seq)
	OR EXISTS (SELECT 1 FROM runs WHERE run_id = NEW.run_id)
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER gates_no_update BEFORE UPDATE ON gates
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER gates_no_delete BEFORE DELETE ON gates
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER gates_sealed BEFORE INSERT ON gates
WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.run)
BEGIN SELECT raise(ABORT, 'the run is sealed: the ledger is append-only'); END;

CREATE TRIGGER fixtures_no_update BEFORE UPDATE ON fixtures
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER fixtures_no_delete BEFORE DELETE ON fixtures
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER fixtures_sealed BEFORE INSERT ON fixtures
WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.run)
BEGIN SELECT raise(ABORT, 'the run is sealed: the ledger is append-only'); END;

CREATE TRIGGER smokes_no_update BEFORE UPDATE ON smokes
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER smokes_no_delete BEFORE DELETE ON smokes
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER smokes_sealed BEFORE INSERT ON smokes
WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.run)
BEGIN SELECT raise(ABORT, 'the run is sealed: the ledger is append-only'); END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER artifacts_sealed BEFORE INSERT ON artifacts
WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.run)
BEGIN SELECT raise(ABORT, 'the run is sealed: the ledger is append-only'); END;

-- Runs with their host and class by name.
CREATE VIEW run_rows AS
SELECT r.seq, r.class_id, r.host_id, h.name AS host, c.name AS class, r.run_id, r.lane,
	r.target, r.suite, r.suite_digest, r.outcome, r.reason, r.detail, r.recordable,
	r.not_recordable, r.agent_recordable, r.disagreement, r.fixture_parity,
	r.fixture_parity_reason, r.legacy_kv_graph, r.legacy_kv_graph_reason,
	r.gemma_runtime, r.gemma_runtime_reason, r.source_origin, r.source_commit,
	r.source_tree, r.source_dirty, r.model_name, r.model_sha256, r.model_bytes,
	r.model_synthetic, r.device_name, r.device_driver, r.device_uuid, r.agent_version,
	r.agent_key, r.controller_version, r.started_ms, r.finished_ms, r.appended_ms,
	r.exit_code, r.envelope_digest, r.report_digest, r.started_at, r.finished_at,
	r.appended_at
FROM runs r JOIN hosts h ON h.id = r.host_id
LEFT JOIN device_classes c ON c.id = r.class_id;

-- The state of every class, one row each: its newest run carries it.
CREATE VIEW class_claims AS
SELECT c.name AS class, c.target, r.seq AS latest, 'fixture-parity' AS claim,
	r.fixture_parity_pass AS pass, r.fixture_parity_try AS try,
	(SELECT t.fixture_parity FROM runs t WHERE t.seq = r.fixture_parity_try) AS outcome,
	(SELECT t.fixture_parity_reason FROM runs t WHERE t.seq = r.fixture_parity_try) AS reason
FROM device_classes c
JOIN runs r ON r.seq = (SELECT max(seq) FROM runs WHERE class_id = c.id)
UNION ALL
SELECT c.name, c.target, r.seq, 'legacy-kv-graph',
	r.legacy_kv_graph_pass, r.legacy_kv_graph_try,
	(SELECT t.legacy_kv_graph FROM runs t WHERE t.seq = r.legacy_kv_graph_try),
	(SELECT t.legacy_kv_graph_reason FROM runs t WHERE t.seq = r.legacy_kv_graph_try)
FROM device_classes c
JOIN runs r ON r.seq = (SELECT max(seq) FROM runs WHERE class_id = c.id)
UNION ALL
SELECT c.name, c.target, r.seq, 'gemma-runtime',
	r.gemma_runtime_pass, r.gemma_runtime_try,
	(SELECT t.gemma_runtime FROM runs t WHERE t.seq = r.gemma_runtime_try),
	(SELECT t.gemma_runtime_reason FROM runs t WHERE t.seq = r.gemma_runtime_try)
FROM device_classes c
JOIN runs r ON r.seq = (SELECT max(seq) FROM runs WHERE class_id = c.id);

-- A claim in words: "pass TIME" of the newest recordable pass, what was seen since when
-- that was no such pass; else the newest reason why not; else "never tried".
CREATE VIEW claim_status AS
SELECT cc.class, cc.claim, CASE
	WHEN cc.try IS NULL THEN 'never tried'
	WHEN cc.pass = cc.try THEN 'pass ' || p.finished_at
	ELSE ifnull('pass ' || p.finished_at || ', then ', '')
		|| CASE cc.outcome WHEN 'pass' THEN 'pass, not recordable'
			ELSE cc.outcome || ' ' || cc.reason END
		|| CASE WHEN cc.pass IS NULL THEN '' ELSE ' ' || t.finished_at END
	END AS status
FROM class_claims cc LEFT JOIN runs p ON p.seq = cc.pass LEFT JOIN runs t ON t.seq = cc.try;

CREATE VIEW class_status AS
SELECT c.name AS class, c.target,
	(SELECT status FROM claim_status s WHERE s.class = c.name AND s.claim = 'fixture-parity')
		AS fixture_parity,
	(SELECT status FROM claim_status s WHERE s.class = c.name AND s.claim = 'legacy-kv-graph')
		AS legacy_kv_graph,
	(SELECT status FROM claim_status s WHERE s.class = c.name AND s.claim = 'gemma-runtime')
		AS gemma_runtime,
	r.outcome AS latest_outcome, r.reason AS latest_reason, r.detail AS latest_detail,
	CASE r.recordable WHEN 1 THEN 'yes' ELSE 'no' END AS latest_recordable,
	r.finished_at AS latest_at, h.name AS latest_host, r.run_id AS latest_run
FROM device_classes c
JOIN runs r ON r.seq = (SELECT max(seq) FROM runs WHERE class_id = c.id)
JOIN hosts h ON h.id = r.host_id
ORDER BY c.name;

-- The newest recordable pass of each claim of each class.
CREATE VIEW latest_pass AS
SELECT cc.class, cc.claim, p.finished_at AS passed_at, h.name AS host, p.suite,
	p.source_commit, p.source_tree, p.model_name, p.device_name, p.device_driver, p.run_id
FROM class_claims cc JOIN runs p ON p.seq = cc.pass JOIN hosts h ON h.id = p.host_id
ORDER BY cc.class, cc.claim;

-- What can not be true together: the same source, suite and model passed and failed on
-- one class; or agent and controller read the same evidence differently.
CREATE VIEW contradictions AS
SELECT 'passed and failed' AS kind, c.name AS class, r.suite, r.source_commit,
	r.source_tree, r.model_name,
	sum(r.recordable) AS passes, sum(r.outcome = 'fail') AS failures,
	max(CASE WHEN r.recordable = 1 THEN r.finished_at END) AS last_pass_at,
	max(CASE WHEN r.outcome = 'fail' THEN r.finished_at END) AS last_failure_at,
	'the same source, suite and model' AS detail
FROM runs r JOIN device_classes c ON c.id = r.class_id
WHERE r.source_dirty IS NULL AND r.source_tree IS NOT NULL
GROUP BY r.class_id, r.suite_digest, r.source_tree, r.model_sha256
HAVING sum(r.recordable) > 0 AND sum(r.outcome = 'fail') > 0
UNION ALL
SELECT 'agent and controller disagree', c.name, r.suite, r.source_commit,
	r.source_tree, r.model_name, r.recordable, r.outcome = 'fail',
	CASE WHEN r.recordable = 1 THEN r.finished_at END,
	CASE WHEN r.outcome = 'fail' THEN r.finished_at END,
	'run ' || r.run_id || ': ' || r.disagreement
FROM runs r LEFT JOIN device_classes c ON c.id = r.class_id
WHERE r.disagreement IS NOT NULL;

PRAGMA user_version = 1;
