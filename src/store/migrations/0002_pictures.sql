-- What every picture reads of every row lies in an index, beside the facts, which are a hundred times
-- as long: who is whose sub-agent, how many files there are, which of them are damaged.
CREATE INDEX sessions_nested ON sessions
    (agent, native_id, parent_native_id, host, kind, own_clock_ms, last_activity_ms)
    WHERE nested = 1;
CREATE INDEX sessions_top ON sessions (agent, native_id, host) WHERE nested = 0;
CREATE INDEX source_files_totals ON source_files (gone_ms, size, skipped_lines) WHERE live = 1;
CREATE INDEX source_files_damaged ON source_files (id) WHERE live = 1 AND damaged > 0;
