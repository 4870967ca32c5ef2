"""The files of a workspace for a UI: a directory in pages, a file in pages, and matching lines.

The person looks, not the agent, so no permission is asked; but nothing outside the root is shown,
and no link is followed on the way. Secrets are masked unless the UI asks otherwise. Everything
blocks; the handlers run it in a thread.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import stat
from typing import TYPE_CHECKING, Final, Literal

from telex.agent.excerpts import count_lines
from telex.agent.ignore_rules import IgnoreRules
from telex.agent.images import image_type
from telex.agent.limits import AGENT_READ_BYTES, AGENT_READ_LINES
from telex.agent.protocol.extensions import (
    WorkspaceEntry,
    WorkspaceListParams,
    WorkspaceListResult,
    WorkspaceReadParams,
    WorkspaceReadResult,
)
from telex.agent.sandbox_files import (
    SKIPPED_DIRECTORIES,
    WalkedTooFar,
    is_binary,
    list_directory,
    read_whole,
    sha256_hex,
    walk,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from telex.agent.sandbox_files import Sandbox, SandboxEntry
    from telex.redaction import Redactor

_LISTED: Final = 200
"""Entries of a page, unless the UI asks for another number."""
_TEXT: Final = "text/plain"
_BINARY: Final = "application/octet-stream"


def list_page(
    sandbox: Sandbox, cwd: Path, asked: WorkspaceListParams, unwanted: threading.Event
) -> WorkspaceListResult:
    """List a directory. Raises `OutsideSandbox`, and `OSError` as `scandir` does."""
    place = sandbox.place(asked.path or os.curdir, cwd)
    rules, incomplete = IgnoreRules(sandbox), False
    shown: list[tuple[SandboxEntry, bool]] = []
    try:
        for entry, ignored in _entries(sandbox, place, asked, rules, unwanted):
            if asked.cursor is None or entry.path > asked.cursor:
                shown.append((entry, ignored))
    except WalkedTooFar:
        incomplete = True
    shown.sort(key=lambda found: found[0].path)
    if asked.match is not None:
        shown = _best_matches(asked.match, shown)
    most = asked.limit or _LISTED
    page, more = shown[:most], len(shown) > most
    with sandbox.opened(place) as directory:
        entries = [_described(directory, entry, ignored) for entry, ignored in page]
    cursor = page[-1][0].path if more and asked.match is None else None
    return WorkspaceListResult(place, entries, cursor, incomplete)


def _entries(
    sandbox: Sandbox,
    place: str,
    asked: WorkspaceListParams,
    rules: IgnoreRules,
    unwanted: threading.Event,
) -> Iterator[tuple[SandboxEntry, bool]]:
    """Yield the entries with whether git ignores each. Ignored directories are not entered."""
    if not asked.recursive:
        for entry in list_directory(sandbox, place):
            name = os.path.normpath(os.path.join(place, entry.path))
            ignored = rules.ignores(name, is_directory=entry.is_directory)
            if entry.path not in SKIPPED_DIRECTORIES and (asked.include_ignored or not ignored):
                yield entry, ignored
        return

    def is_ignored(entry: SandboxEntry) -> bool:
        name = os.path.normpath(os.path.join(place, entry.path))
        return rules.ignores(name, is_directory=entry.is_directory)

    skip = (lambda _: False) if asked.include_ignored else is_ignored
    for entry in walk(sandbox, place, unwanted, skip=skip):
        if os.path.basename(entry.path) not in SKIPPED_DIRECTORIES:
            yield entry, bool(asked.include_ignored) and is_ignored(entry)


def _described(directory: int, entry: SandboxEntry, ignored: bool) -> WorkspaceEntry:
    """Add the kind and the size of an entry."""
    path = entry.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if entry.is_directory or entry.is_link:
        return WorkspaceEntry(path, "directory" if entry.is_directory else "link", None, ignored)
    try:
        status = os.stat(entry.path, dir_fd=directory, follow_symlinks=False)
    except OSError:  # deleted meanwhile
        return WorkspaceEntry(path, "other", None, ignored)
    if not stat.S_ISREG(status.st_mode):
        return WorkspaceEntry(path, "other", None, ignored)
    return WorkspaceEntry(path, "file", status.st_size, ignored)


def _best_matches(
    wanted: str, entries: Iterable[tuple[SandboxEntry, bool]]
) -> list[tuple[SandboxEntry, bool]]:
    """Return the entries whose paths match, the best first."""
    ranked = [(_rank(wanted, found[0].path), found) for found in entries]
    matching = [(rank, found) for rank, found in ranked if rank is not None]
    return [found for _, found in sorted(matching, key=lambda one: (one[0], one[1][0].path))]


def _rank(wanted: str, path: str) -> tuple[int, int, int] | None:
    """Rank a path against typed characters; lower is better, None is no match.

    A name that begins with the text is best, then a name that contains it, then a path that
    contains it, then characters in order with the fewest gaps; shorter paths first.
    """
    text, whole = wanted.casefold(), path.casefold()
    name = os.path.basename(whole)
    if text in whole:
        tier = 0 if name.startswith(text) else 1 if text in name else 2
        return tier, 0, len(path)
    at, gaps = -1, 0
    for character in text:
        found = whole.find(character, at + 1)
        if found < 0:
            return None
        gaps += at >= 0 and found != at + 1
        at = found
    return 3, gaps, len(path)


def read_page(
    sandbox: Sandbox, cwd: Path, asked: WorkspaceReadParams, redactor: Redactor
) -> WorkspaceReadResult:
    """Read a page of a file. Raises `OutsideSandbox`, `FileRefused`, and `OSError` as `open`."""
    place = sandbox.place(asked.path, cwd)
    content = read_whole(sandbox, place)
    known = place, len(content), sha256_hex(content)
    if (image := image_type(content)) is not None:
        data = base64.b64encode(content).decode()
        return _file(*known, kind="image", media_type=image, data=data)
    guessed = mimetypes.guess_type(place)[0]
    if is_binary(content):
        return _file(*known, kind="binary", media_type=guessed or _BINARY)
    offset = asked.offset or 0
    text, total, shown = _lines(content, offset, asked.limit or AGENT_READ_LINES)
    after = offset + shown
    return _file(
        *known,
        kind="text",
        media_type=guessed or _TEXT,
        text=text if asked.redact is False else redactor.redact(text),
        lines=total,
        next_offset=after if after < total else None,
    )


def _file(
    place: str,
    size: int,
    sha256: str,
    *,
    kind: Literal["text", "image", "binary"],
    media_type: str,
    text: str | None = None,
    data: str | None = None,
    lines: int | None = None,
    next_offset: int | None = None,
) -> WorkspaceReadResult:
    return WorkspaceReadResult(
        place, kind, size, sha256, media_type, text, data, lines, next_offset
    )


def _lines(content: bytes, offset: int, limit: int) -> tuple[str, int, int]:
    """Return some lines with their ends, the number of all lines, and how many were returned. At
    least one line is returned, however long."""
    total, size = count_lines(content), 0
    shown: list[bytes] = []
    for line in content.split(b"\n", offset + limit)[offset : min(total, offset + limit)]:
        if shown and size + len(line) > AGENT_READ_BYTES:
            break
        size += len(line) + 1
        shown.append(line)
    ended = offset + len(shown) < total or content.endswith(b"\n")
    text = b"\n".join(shown) + b"\n" * (bool(shown) and ended)
    return text.decode("utf-8", "replace"), total, len(shown)
