-- Version 1. Times are integer milliseconds since 1970 UTC, sizes and offsets bytes.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A place below which an agent keeps transcripts. The epoch is the begin of the root's first pass:
-- what ended before it is history and no news.
CREATE TABLE roots (
    id       INTEGER PRIMARY KEY,
    host     TEXT NOT NULL,
    agent    TEXT NOT NULL,
    path     BLOB NOT NULL,
    epoch_ms INTEGER NOT NULL,
    UNIQUE (host, agent, path)
) STRICT;

-- One row per file generation. A rewritten or replaced file gets a new row; the old one stops
-- counting (live = 0) in the same transaction. Its cursor: the decoded offset behind the last
-- complete line, and the frame in which reading goes on: where it starts in the file, and at which
-- decoded offset (both equal `position` in a plain file). `in_damage`: it goes on inside a broken
-- part of a compressed file, which has been counted.
CREATE TABLE source_files (
    id            INTEGER PRIMARY KEY,
    root_id       INTEGER NOT NULL,
    agent         TEXT NOT NULL,
    place         TEXT NOT NULL,
    path          BLOB NOT NULL,
    stem          TEXT NOT NULL,
    dev           INTEGER NOT NULL,
    ino           INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    ctime_ns      INTEGER NOT NULL,
    mtime_ms      INTEGER NOT NULL,
    position      INTEGER NOT NULL DEFAULT 0,
    frame_at      INTEGER NOT NULL DEFAULT 0,
    frame_position INTEGER NOT NULL DEFAULT 0,
    head_len      INTEGER NOT NULL DEFAULT 0,
    head_hash     INTEGER NOT NULL DEFAULT 0,
    tail_len      INTEGER NOT NULL DEFAULT 0,
    tail_hash     INTEGER NOT NULL DEFAULT 0,
    state         TEXT NOT NULL,
    skipped_lines INTEGER NOT NULL DEFAULT 0,
    damaged       INTEGER NOT NULL DEFAULT 0,
    in_damage     INTEGER NOT NULL DEFAULT 0,
    first_seen_ms INTEGER NOT NULL,
    gone_ms       INTEGER,
    live          INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX source_files_path ON source_files (path) WHERE live = 1;
CREATE INDEX source_files_dead ON source_files (id) WHERE live = 0;

-- One row per session identity, whatever files it lies in. `facts` is the merge of its live
-- generations (JSON). `status` and what follows it are written by lifecycle::apply alone, except
-- `deadline_ms` and `checked_ms`: they, `sign_of_life_ms` and `anchored_ms` are the reconciler's
-- notes, and it clears `dirty`. `sign_of_life_ms` is null unless it differs from the last activity;
-- `anchored_ms` is the last activity that lay ahead of the clock and that it stands in for.
CREATE TABLE sessions (
    id               INTEGER PRIMARY KEY,
    host             TEXT NOT NULL,
    agent            TEXT NOT NULL,
    native_id        TEXT NOT NULL,
    parent_native_id TEXT NOT NULL DEFAULT '',
    root_id          INTEGER NOT NULL,
    kind             TEXT NOT NULL DEFAULT 'main',
    nested           INTEGER NOT NULL DEFAULT 0,
    facts            TEXT NOT NULL DEFAULT '{}',
    transcript       TEXT NOT NULL DEFAULT 'present',
    own_clock_ms     INTEGER,
    first_activity_ms INTEGER,
    last_activity_ms INTEGER,
    child_activity_ms INTEGER,
    sign_of_life_ms  INTEGER,
    anchored_ms      INTEGER,
    clock_ahead      INTEGER NOT NULL DEFAULT 0,
    shares_usage     INTEGER NOT NULL DEFAULT 0,
    dirty            INTEGER NOT NULL DEFAULT 1,
    version          INTEGER NOT NULL DEFAULT 0,
    status           TEXT,
    status_since_ms  INTEGER,
    reason_code      TEXT,
    reason_summary   TEXT,
    basis            TEXT,
    rule             TEXT,
    evidence         TEXT NOT NULL DEFAULT '[]',
    ended_ms         INTEGER,
    ended_approx     INTEGER NOT NULL DEFAULT 0,
    duration_ms      INTEGER,
    transition_id    INTEGER,
    deadline_ms      INTEGER,
    checked_ms       INTEGER,
    origin           TEXT NOT NULL DEFAULT 'mirror',
    UNIQUE (agent, native_id, parent_native_id, host)
) STRICT;
-- The newest activity below a session is the last entry of its range: no walk over thousands of
-- sub-agents whenever one of them moves.
CREATE INDEX sessions_parent ON sessions (agent, parent_native_id, host, last_activity_ms)
    WHERE parent_native_id <> '';
CREATE INDEX sessions_due ON sessions (status, deadline_ms)
    WHERE deadline_ms IS NOT NULL AND nested = 0;
CREATE INDEX sessions_active ON sessions (agent, last_activity_ms) WHERE nested = 0;
CREATE INDEX sessions_dirty ON sessions (id) WHERE dirty = 1 AND nested = 0;

-- What one generation says of one session (JSON of source::facts::Facts).
CREATE TABLE facts (
    generation INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (generation, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX facts_session ON facts (session_id);

-- Titles as addressed: the session they are for need not be the file's, nor exist yet. Of each
-- kind the last one of a generation is kept (of slash commands the first).
CREATE TABLE titles (
    generation       INTEGER NOT NULL,
    position         INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    agent            TEXT NOT NULL,
    native_id        TEXT NOT NULL,
    parent_native_id TEXT NOT NULL DEFAULT '',
    at_ms            INTEGER NOT NULL,
    text             TEXT NOT NULL,
    PRIMARY KEY (generation, kind, native_id, parent_native_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX titles_to ON titles (agent, native_id, parent_native_id);

-- A preview and a pointer per row of a transcript. id = generation << 40 | place in the file.
CREATE TABLE messages (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    native     INTEGER,
    kind       TEXT NOT NULL,
    fallback   INTEGER NOT NULL,
    counted    INTEGER NOT NULL,
    at_ms      INTEGER,
    call       TEXT,
    name       TEXT,
    text       TEXT NOT NULL,
    position   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    hash       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_native ON messages (session_id, native, id >> 40)
    WHERE native IS NOT NULL;

-- Tokens that must count once wherever they are repeated. `key` is a 64-bit hash.
CREATE TABLE usage (
    session_id  INTEGER NOT NULL,
    key         INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    PRIMARY KEY (session_id, key, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_key ON usage (key, session_id);

-- The newest brackets of each session, as last folded (JSON of compaction's own type).
CREATE TABLE compactions (
    session_id INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

-- Observations of processes, locks, children and hooks: what was seen, in which scope, when.
-- `says` since `since_ms`; an `ended_ms` says that its subject is over and that this ends the
-- session. `body` is the observer's own memory (JSON), which nobody else reads.
CREATE TABLE evidence (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    source     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    says       TEXT NOT NULL,
    scope      TEXT NOT NULL DEFAULT '{}',
    since_ms   INTEGER NOT NULL,
    first_ms   INTEGER NOT NULL,
    last_ms    INTEGER NOT NULL,
    ended_ms   INTEGER,
    pid        INTEGER,
    started_ms INTEGER,
    state      TEXT,
    state_ms   INTEGER,
    waits_for  TEXT,
    why        TEXT NOT NULL DEFAULT '',
    body       TEXT NOT NULL DEFAULT '{}',
    UNIQUE (session_id, source, subject)
) STRICT;
-- What may change with the next look, so that a look need not go through what is over.
CREATE INDEX evidence_open ON evidence (session_id)
    WHERE source <> 'hook' AND says NOT IN ('gone', 'moved', 'exited');

-- Warnings that viewers see too.
CREATE TABLE findings (
    id       INTEGER PRIMARY KEY,
    code     TEXT NOT NULL,
    subject  TEXT NOT NULL,
    text     TEXT NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms  INTEGER NOT NULL,
    UNIQUE (code, subject)
) STRICT;

-- Commands under `lullwatch run`: an entity of its own, linked to the session it opens.
CREATE TABLE runs (
    id                INTEGER PRIMARY KEY,
    name              TEXT NOT NULL UNIQUE,
    host              TEXT NOT NULL,
    agent             TEXT,
    native_id         TEXT,
    argv              TEXT NOT NULL DEFAULT '[]',
    scope             TEXT NOT NULL DEFAULT '{}',
    wrapper_pid       INTEGER,
    wrapper_start     TEXT,
    child_pid         INTEGER,
    child_start       TEXT,
    exit_code         INTEGER,
    exit_signal       INTEGER,
    last_activity_ms  INTEGER,
    version           INTEGER NOT NULL DEFAULT 0,
    status            TEXT,
    status_since_ms   INTEGER,
    reason_code       TEXT,
    reason_summary    TEXT,
    basis             TEXT,
    rule              TEXT,
    evidence          TEXT NOT NULL DEFAULT '[]',
    started_ms        INTEGER,
    ended_ms          INTEGER,
    ended_approx      INTEGER NOT NULL DEFAULT 0,
    duration_ms       INTEGER,
    transition_id     INTEGER
) STRICT;

-- Append only. The id is the sequence: two rows of one pass have an order.
CREATE TABLE status_transitions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_type     TEXT NOT NULL,
    entity_id       INTEGER NOT NULL,
    previous_status TEXT,
    status          TEXT NOT NULL,
    reason_code     TEXT NOT NULL,
    reason_summary  TEXT NOT NULL DEFAULT '',
    basis           TEXT NOT NULL,
    rule            TEXT NOT NULL DEFAULT '',
    evidence        TEXT NOT NULL DEFAULT '[]',
    actor_type      TEXT NOT NULL,
    actor_id        TEXT NOT NULL,
    created_ms      INTEGER NOT NULL,
    ended_ms        INTEGER,
    origin          TEXT NOT NULL DEFAULT 'mirror',
    metadata        TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX status_transitions_entity ON status_transitions (entity_type, entity_id, id);
-- The population of the delivery ledger; its condition is that of every ledger query.
CREATE INDEX status_transitions_terminal ON status_transitions (id)
    WHERE previous_status IS NOT NULL AND previous_status <> status AND origin = 'mirror'
    AND status IN
        ('completed', 'completed_empty', 'failed', 'timed_out', 'aborted', 'cancelled');

-- Overrides, rejections, migrations. A repeated rejection counts up instead of adding a row.
-- `after_end` says what an override took back: 'silence' or 'exit'.
CREATE TABLE admin_events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    action        TEXT NOT NULL,
    entity_type   TEXT NOT NULL,
    entity_id     INTEGER NOT NULL,
    transition_id INTEGER,
    actor         TEXT NOT NULL,
    after_end     TEXT,
    details       TEXT NOT NULL,
    created_ms    INTEGER NOT NULL,
    last_ms       INTEGER NOT NULL,
    repeats       INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX admin_events_counts ON admin_events (action, after_end, repeats);
CREATE INDEX admin_events_newest ON admin_events (last_ms, id);
CREATE INDEX admin_events_entity ON admin_events (entity_type, entity_id);

CREATE TABLE consumers (
    name       TEXT PRIMARY KEY,
    since_seq  INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE terminal_deliveries (
    transition_id INTEGER NOT NULL,
    consumer      TEXT NOT NULL,
    acked_ms      INTEGER NOT NULL,
    how           TEXT NOT NULL DEFAULT 'acknowledged',
    PRIMARY KEY (transition_id, consumer)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery_attempts (
    transition_id INTEGER NOT NULL,
    consumer      TEXT NOT NULL,
    attempts      INTEGER NOT NULL,
    last_ms       INTEGER NOT NULL,
    next_ms       INTEGER NOT NULL,
    last_error    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (transition_id, consumer)
) STRICT, WITHOUT ROWID;
