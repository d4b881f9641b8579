-- Version 2: what the mirror needs to stay exact and quick.

-- Reading of a compressed file goes on inside a broken part, which has been counted.
ALTER TABLE source_files ADD COLUMN in_damage INTEGER NOT NULL DEFAULT 0;

-- The newest activity below a session is the last entry of its range: no walk over thousands of
-- sub-agents whenever one of them moves.
DROP INDEX sessions_parent;
CREATE INDEX sessions_parent ON sessions (agent, parent_native_id, host, last_activity_ms)
    WHERE parent_native_id <> '';
