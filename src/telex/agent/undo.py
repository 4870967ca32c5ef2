"""Undo of a run's file changes: the old contents of changed files, and the plan that restores them.

Before `write` and `edit` replace a file, its content is stored by its SHA-256, because the diff in
the events is cut at a number of lines. The events name the hash of each file before and after each
change. The undo is refused as a whole where a file was changed since, or an old content is gone.

Changes made by commands are not known, and not undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.diffs import unified_diff
from telex.agent.protocol.extensions import UndoneFile
from telex.agent.sandbox_files import (
    FileRefused,
    OutsideSandbox,
    delete_file,
    read_whole,
    replace_file,
    sha256_hex,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.agent.content_store import ContentStore
    from telex.agent.sandbox_files import Sandbox

ABSENT: Final = ""
"""The hash of a missing file."""


class CannotUndo(Exception):
    """The changes of a run cannot be undone; the message says why."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file by a tool, as stored with its result."""

    path: str
    """Relative to the root."""
    before: str
    after: str
    """SHA-256 of the content before and after; `ABSENT` for no file."""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of one run, joined for each file: from its first `before` to its last `after`."""

    files: tuple[FileChange, ...]

    @classmethod
    def of(cls, changes: Iterable[FileChange]) -> RunChanges:
        joined: dict[str, FileChange] = {}
        for change in changes:
            first = joined.get(change.path, change)
            joined[change.path] = FileChange(change.path, first.before, change.after)
        return cls(tuple(one for one in joined.values() if one.before != one.after))

    def undo(self, sandbox: Sandbox, versions: ContentStore, *, dry_run: bool) -> list[UndoneFile]:
        """Restore every file, or none. Raises `CannotUndo`, `OutsideSandbox` and `OSError`."""
        contents = [self._contents(one, sandbox, versions) for one in self.files]
        done = []
        for change, (now, old) in zip(self.files, contents, strict=True):
            diff = unified_diff(change.path, now, old or b"").text
            if not dry_run:
                _restore(sandbox, change, old)
            done.append(UndoneFile(change.path, "deleted" if old is None else "restored", diff))
        return done

    @staticmethod
    def _contents(
        change: FileChange, sandbox: Sandbox, versions: ContentStore
    ) -> tuple[bytes | None, bytes | None]:
        """Return the current and the old content. Raises `CannotUndo`."""
        now = _read(sandbox, change.path)
        found = ABSENT if now is None else sha256_hex(now)
        if found != change.after:
            what = "was changed since" if found else "was deleted since"
            raise CannotUndo(
                f"{change.path} {what}, so nothing was undone; "
                "see the run's changes with run.diff, and undo them by hand"
            )
        if change.before == ABSENT:
            return now, None
        old = versions.load(change.before)
        if old is None:
            raise CannotUndo(
                f"the old content of {change.path} is not stored any more, so nothing was undone"
            )
        return now, old


def current_hash(sandbox: Sandbox, place: str) -> str:
    """Return the hash of a file; `ABSENT` if there is none."""
    content = _read(sandbox, place)
    return ABSENT if content is None else sha256_hex(content)


def _read(sandbox: Sandbox, place: str) -> bytes | None:
    try:
        return read_whole(sandbox, place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (FileRefused, OutsideSandbox) as refused:
        raise CannotUndo(f"{refused}, so nothing was undone") from refused


def _restore(sandbox: Sandbox, change: FileChange, old: bytes | None) -> None:
    # Read again just before: the files were compared a moment ago, one after another.
    if current_hash(sandbox, change.path) != change.after:
        raise CannotUndo(
            f"{change.path} was changed during the undo; the files before it were restored"
        )
    if old is None:
        delete_file(sandbox, change.path)
    else:
        replace_file(sandbox, change.path, old)
