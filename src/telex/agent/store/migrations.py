"""The schema as SQL statements, and the migration steps from older schemas.

A thread (a session on the wire) has runs and messages; a run has events and questions; decisions
belong to no thread. Tables are joined by integer numbers, and the ids are those of the wire, so an
event stores eight bytes to name its run.

`user_version` in the file's header is the schema version. An empty file has version 0, so creating
the tables is the first step like any other. All steps run in one transaction. A later version is
refused, because writing to an unknown schema could destroy data of the later telex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.agent.store.errors import NotAStore, StoreTooNew

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


APPLICATION_ID: Final = 0x746C7861
"""`tlxa` in the file's header: distinguishes our database from those of other programs."""

VERSION_1: Final = (
    """CREATE TABLE threads (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    meta BLOB
) STRICT""",
    "CREATE INDEX threads_by_time ON threads (updated_at)",
    # `events` and `head` are written when the run ends, to detect a log that lost its last events.
    """CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread INTEGER NOT NULL REFERENCES threads,
    status TEXT NOT NULL
        CHECK (status IN ('running', 'awaiting_ui', 'completed', 'error', 'cancelled')),
    message TEXT,
    input BLOB NOT NULL,
    said TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    owner TEXT NOT NULL,
    events INTEGER,
    head BLOB,
    meta BLOB,
    CHECK ((ended_at IS NULL) = (status IN ('running', 'awaiting_ui')))
) STRICT""",
    "CREATE INDEX runs_by_thread ON runs (thread)",
    # A thread has at most one active run, in all processes together.
    "CREATE UNIQUE INDEX one_active_run ON runs (thread) WHERE ended_at IS NULL",
    # WITHOUT ROWID stores the events of a run together, in order, in one B-tree.
    """CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs,
    seq INTEGER NOT NULL CHECK (seq >= 0),
    at INTEGER NOT NULL,
    event BLOB NOT NULL,
    meta BLOB,
    chain BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID""",
    # AUTOINCREMENT: an id on the wire (`ui_<number>`) is never used twice.
    """CREATE TABLE questions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER REFERENCES runs,
    owner TEXT NOT NULL,
    method TEXT NOT NULL,
    params BLOB NOT NULL,
    digest BLOB NOT NULL,
    asked_at INTEGER NOT NULL,
    answer BLOB,
    closed_by TEXT,
    closed_at INTEGER,
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
    CHECK (answer IS NULL OR closed_at IS NOT NULL)
) STRICT""",
    "CREATE INDEX questions_open ON questions (run) WHERE closed_at IS NULL",
    """CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    rule BLOB NOT NULL,
    made_by TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    question INTEGER REFERENCES questions,
    revoked_by TEXT,
    revoked_at INTEGER,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) STRICT""",
)

VERSION_2: Final = (
    # Whether a UI of the run may reconnect to it. If not, no UI can answer after a crash.
    "ALTER TABLE runs ADD COLUMN may_return INTEGER NOT NULL DEFAULT 1",
    # The import that is writing the session; queries hide the session until it is complete.
    "ALTER TABLE threads ADD COLUMN importing TEXT",
    "CREATE INDEX threads_importing ON threads (importing) WHERE importing IS NOT NULL",
)

VERSION_3: Final = (
    # The workspace of the last run, to list the sessions of one workspace. NULL for older sessions.
    "ALTER TABLE threads ADD COLUMN workspace TEXT",
    "CREATE INDEX threads_by_workspace ON threads (workspace, updated_at)",
)

_USER_MESSAGE: Final = (
    "json_object('role', 'user', 'parts', json_array(json_object('type', 'text', 'text', r.said)))"
)
_FINAL_EVENT: Final = "CAST(e.event AS TEXT)"
_FINAL_MESSAGE: Final = (
    "json_object('role', 'assistant', 'parts', json_array(json_object('type', 'text', 'text',"
    f" json_extract({_FINAL_EVENT}, '$.content'))), 'model', '')"
)

VERSION_4: Final = (
    # The conversation of a thread as a core reads it (`telex.agent.messages`). A row with
    # `kept_from` is a summary: it stands for every message before that position.
    """CREATE TABLE messages (
    thread INTEGER NOT NULL REFERENCES threads,
    position INTEGER NOT NULL CHECK (position >= 0),
    run INTEGER NOT NULL REFERENCES runs,
    message BLOB NOT NULL,
    kept_from INTEGER CHECK (kept_from BETWEEN 0 AND position),
    PRIMARY KEY (thread, position)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX messages_by_run ON messages (run)",
    "CREATE INDEX messages_compacted ON messages (thread, position) WHERE kept_from IS NOT NULL",
    # The tool call that a question is about.
    "ALTER TABLE questions ADD COLUMN call TEXT",
    # Older threads have the input and the answer of each run.
    f"""INSERT INTO messages (thread, position, run, message)
    SELECT thread, row_number() OVER (PARTITION BY thread ORDER BY run, place) - 1, run,
        CAST(message AS BLOB)
    FROM (
        SELECT r.thread AS thread, r.number AS run, 0 AS place, {_USER_MESSAGE} AS message
        FROM runs r
        UNION ALL
        SELECT r.thread, r.number, 1, {_FINAL_MESSAGE}
        FROM runs r JOIN events e ON e.run = r.number
            AND e.seq = (SELECT max(seq) FROM events WHERE run = r.number)
        WHERE CASE WHEN json_valid({_FINAL_EVENT})
            THEN json_extract({_FINAL_EVENT}, '$.type') = 'final'
                AND json_type({_FINAL_EVENT}, '$.content') = 'text'
            ELSE FALSE END
    )""",
)


STEPS: Final = (VERSION_1, VERSION_2, VERSION_3, VERSION_4)
"""Step n migrates from version n to n + 1. A released step is never edited; new ones are added."""


def migrate(
    database: sqlite3.Connection, path: object, steps: Sequence[Sequence[str]] = STEPS
) -> None:
    """Migrate the schema to the last step, or raise and leave the database unchanged."""
    if version_of(database, path, len(steps)) == len(steps):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        # Read the version again under the write lock: another process may have migrated meanwhile.
        for step in steps[version_of(database, path, len(steps)) :]:
            for statement in step:
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(steps)}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def version_of(database: sqlite3.Connection, path: object, known: int = len(STEPS)) -> int:
    """Return the schema version of a telex database.

    Raises:
        NotAStore: the database belongs to another program.
        StoreTooNew: the version is later than `known`.
    """
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    mark: int = database.execute("PRAGMA application_id").fetchone()[0]
    empty = not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if mark != APPLICATION_ID and not (empty and version == 0 and mark == 0):
        raise NotAStore(
            f"{path} is a database of another program; move it away, or use another file"
        )
    if version > known:
        raise StoreTooNew(
            f"{path} was written by a later telex (schema {version}, supported here: {known}); "
            "use that telex, or another file"
        )
    return version
