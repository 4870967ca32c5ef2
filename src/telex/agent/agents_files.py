"""The AGENTS.md files that speak for a directory: one for each directory from the root down to it.

A link is followed while it stays inside the root; one that leads out is no file of this project.
Their text is for language models, and is read when it is needed. Blocks; the callers run it in a
thread.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.sandbox import OutsideSandbox, downward

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.sandbox import Sandbox

NAME: Final = "AGENTS.md"


@dataclass(frozen=True, slots=True)
class AgentsFile:
    """One file, as `context.inspect` tells of it."""

    path: str
    mtime_ms: int
    size_bytes: int


def agents_files(sandbox: Sandbox, cwd: Path) -> tuple[AgentsFile, ...]:
    """The outermost first: the nearest has the last word."""
    found = (_file(sandbox, directory / NAME) for directory in downward(sandbox.root, cwd))
    return tuple(file for file in found if file is not None)


def _file(sandbox: Sandbox, path: Path) -> AgentsFile | None:
    try:
        with sandbox.opened(sandbox.place(str(path), sandbox.root)) as descriptor:
            status = os.fstat(descriptor)
    except (OSError, OutsideSandbox):  # there is none, or none that counts
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return AgentsFile(str(path), status.st_mtime_ns // 1_000_000, status.st_size)
