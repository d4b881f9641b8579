-- When the child of a run ended: its run may end later, with its session.
ALTER TABLE runs ADD COLUMN exit_ms INTEGER;
UPDATE runs SET exit_ms = ended_ms WHERE exit_code IS NOT NULL OR exit_signal IS NOT NULL;
UPDATE runs SET exit_ms = coalesce(
        (SELECT min(e.since_ms) FROM evidence e WHERE e.source = 'run' AND e.says = 'exited'
            AND e.subject = runs.child_pid || ':' || coalesce(runs.child_start, '?')),
        status_since_ms)
    WHERE exit_ms IS NULL AND (exit_code IS NOT NULL OR exit_signal IS NOT NULL);

-- What every pass asks of runs is of those that are open, those without a session and those of a
-- few sessions; history grows beside them.
CREATE INDEX runs_session ON runs (agent, native_id) WHERE native_id IS NOT NULL;
CREATE INDEX runs_unlinked ON runs (host, id) WHERE native_id IS NULL;
CREATE INDEX runs_open ON runs (host, id) WHERE status IN ('starting', 'running');
