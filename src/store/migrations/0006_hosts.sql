-- Files of several hosts may have one path: a path is theirs alone.
ALTER TABLE source_files ADD COLUMN host TEXT NOT NULL DEFAULT '';
UPDATE source_files SET host =
    coalesce((SELECT roots.host FROM roots WHERE roots.id = source_files.root_id), '');
DROP INDEX source_files_path;
CREATE UNIQUE INDEX source_files_path ON source_files (path, host) WHERE live = 1;
DROP INDEX source_files_again;
CREATE UNIQUE INDEX source_files_again ON source_files (path, host) WHERE live = 2;
