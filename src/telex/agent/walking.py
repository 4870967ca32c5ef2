"""Everything beneath a directory of the sandbox, in order, and without following a link.

Version control's own directories are passed over, and hidden ones unless they are asked for: what
tools keep there (`.venv`, `.cache`) is often more than all else. So are directories that cannot be
read: what a search may not see it does not find. Blocks; the callers run it in a thread and may
stop it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.sandbox import OutsideSandbox
from telex.wire.limits import AGENT_WALKED

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from telex.agent.sandbox import Sandbox

PASSED_OVER: Final = (".git", ".jj")


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    path: str
    """From the directory that was walked."""
    is_directory: bool
    is_link: bool


class WalkedTooFar(Exception):
    """There are more entries than one answer may look at."""


def entries(sandbox: Sandbox, place: str, prefix: str = "") -> list[Entry]:
    """What is in one directory. `OSError` as from `scandir`."""
    with sandbox.opened(place) as descriptor, os.scandir(descriptor) as found:
        listed = [
            Entry(prefix + one.name, one.is_dir(follow_symlinks=False), one.is_symlink())
            for one in found
        ]
    return sorted(listed, key=lambda entry: entry.path)


def walk(
    sandbox: Sandbox, place: str, unwanted: threading.Event, *, hidden: bool = False
) -> Iterator[Entry]:
    """All of it, a directory before what is in it. Raises `WalkedTooFar` at the limit."""
    left = AGENT_WALKED
    waiting = entries(sandbox, place)[::-1]
    while waiting and not unwanted.is_set():
        if (left := left - 1) < 0:
            raise WalkedTooFar(f"only the first {AGENT_WALKED} entries were looked at")
        entry = waiting.pop()
        yield entry
        name = os.path.basename(entry.path)
        is_entered = name not in PASSED_OVER and (hidden or not name.startswith("."))
        if entry.is_directory and is_entered:
            below = _below(sandbox, os.path.join(place, entry.path), entry.path + "/")
            waiting.extend(reversed(below))


def _below(sandbox: Sandbox, place: str, prefix: str) -> list[Entry]:
    try:
        return entries(sandbox, place, prefix)
    except (OSError, OutsideSandbox):  # not ours to read, or gone, or a link by now
        return []


def shown(path: str) -> str:
    """A path in an answer: one that could be taken for two lines, or for another, is quoted."""
    return path if path.isprintable() else ascii(path)
