"""From an older schema to this one, a version at a time, each in one transaction.

`user_version` in the file's header says where a database stands. An empty file is version 0, so
making the tables is the first step like any other. A later version is refused: guessing at it
could destroy what the later telex wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.agent.store.problems import NotAStore, TooNew
from telex.agent.store.schema import APPLICATION_ID, VERSION_1, VERSION_2, VERSION_3

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

STEPS: Final = (VERSION_1, VERSION_2, VERSION_3)
"""Step n leads from version n to n + 1. What has been released is never edited, only added to."""


def migrate(
    database: sqlite3.Connection, path: object, steps: Sequence[Sequence[str]] = STEPS
) -> None:
    """Bring the schema to the last step, or raise with the database as it was."""
    if version_of(database, path, len(steps)) == len(steps):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        # Asked again, now that nobody else can write: another process may have been quicker.
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
    """Where a database of ours stands; anybody else's, and a later one, is refused."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    mark: int = database.execute("PRAGMA application_id").fetchone()[0]
    empty = not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if mark != APPLICATION_ID and not (empty and version == 0 and mark == 0):
        raise NotAStore(
            f"{path} is a database of another program; move it away, or name another file"
        )
    if version > known:
        raise TooNew(
            f"{path} was written by a later telex (schema {version}, known here: {known}); "
            "use that one, or name another file"
        )
    return version
