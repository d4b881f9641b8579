-- `reading`: by which version of its agent's adapter a generation was read. One of an older version is
-- read anew as a generation with live = 2, which counts for nothing; when that has been read as far
-- as the old one was, the two change places in one transaction.
ALTER TABLE source_files ADD COLUMN reading INTEGER NOT NULL DEFAULT 1;
CREATE UNIQUE INDEX source_files_again ON source_files (path) WHERE live = 2;

-- The newest activity that was in a file all along and that only a newer reading told, ms: it is no
-- news, so it takes no end back and announces none.
ALTER TABLE sessions ADD COLUMN reread_ms INTEGER;
