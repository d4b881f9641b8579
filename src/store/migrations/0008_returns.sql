-- What one file says of the end of a sub-agent whose records lie in another: a parent's notification or
-- result, or the document beside the sub-agent. The newest word of each file.
CREATE TABLE returns (
    generation       INTEGER NOT NULL,
    agent            TEXT NOT NULL,
    native_id        TEXT NOT NULL,
    parent_native_id TEXT NOT NULL,
    at_ms            INTEGER, -- NULL: it holds whenever the sub-agent worked
    outcome          TEXT NOT NULL,
    PRIMARY KEY (generation, native_id, parent_native_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX returns_to ON returns (agent, native_id, parent_native_id);
