-- What ran a run's fixtures: a row for each piece of code that was on the device.
CREATE TABLE code (
	run INTEGER NOT NULL REFERENCES runs (seq),
	n INTEGER NOT NULL,
	backend TEXT NOT NULL, -- "cuda"
	device TEXT,           -- as the backend calls it
	arch TEXT,             -- "sm_90"
	name TEXT NOT NULL,    -- "score.fatbin"
	digest TEXT,
	how TEXT,              -- which part of it was taken, or what compiled it
	PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER code_no_update BEFORE UPDATE ON code
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER code_no_delete BEFORE DELETE ON code
BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER code_sealed BEFORE INSERT ON code
WHEN EXISTS (SELECT 1 FROM entries WHERE seq = NEW.run)
BEGIN SELECT raise(ABORT, 'the run is sealed: the ledger is append-only'); END;

PRAGMA user_version = 2;
