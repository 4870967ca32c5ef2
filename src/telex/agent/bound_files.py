"""The files a command names, as they were when a person was asked about it.

A yes to `sh run.sh` is a yes to what was in `run.sh` then, and one to `cp a d/` to where `d` led.
So each word of the command that can name a file is looked at before the question and after the
answer, from each directory the command may be in: where it leads, and inside the root what is
there. That counts for words of commands and for redirects, and also for what was no file then and
is one now. What a redirect writes to is only bound to its place.

The same look says what a person is told: where those words lead, if not where they seem to.

Not bound: text that was not understood, what is in files outside the root, names that a pattern
stands for, and what a program reads without being told its name (a Makefile, what a script
includes). Blocks; the callers run it in a thread. Used by `confirming`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from telex.agent.judging import shown
from telex.agent.judging.modes import Access
from telex.agent.judging.paths import NOWHERE
from telex.agent.sandbox import OutsideSandbox
from telex.wire.limits import AGENT_BOUND_PATHS, AGENT_COMMAND_PLACES, AGENT_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.agent.judging import Judgement, Piece
    from telex.agent.sandbox import Sandbox

_NO_FILE = "no file"


@dataclass(frozen=True, slots=True)
class Bound:
    """One path, as `shown` to people."""

    seems: str
    """Where it would be if nothing on the way were a link."""
    leads: str
    state: str


def bound_files(judged: Judgement, sandbox: Sandbox, cwd: Path) -> dict[str, Bound]:
    """Each path, absolute as the command has it, as it is shown."""
    found: dict[str, Bound] = {}
    left = AGENT_FILE_BYTES
    for path, is_read in _named(judged, cwd).items():
        real = _real(path)
        state, read = _state(sandbox, real, left) if is_read else (_NO_FILE, 0)
        left -= read
        found[shown(path)] = Bound(shown(os.path.normpath(path)), shown(real), state)
    return found


def _real(path: str) -> str:
    if path in NOWHERE or "\0" in path:  # ours are not the command's; and what is no path
        return path
    return os.path.realpath(path)


def _named(judged: Judgement, cwd: Path) -> dict[str, bool]:
    """Each path, and whether what is in it counts."""
    found: dict[str, bool] = {}
    for path, is_read in islice(_paths(judged, cwd), AGENT_BOUND_PATHS):
        found[path] = is_read or found.get(path, False)
    return found


def _paths(judged: Judgement, cwd: Path) -> Iterator[tuple[str, bool]]:
    if judged.not_understood is not None:
        return
    places = [os.fspath(cwd)]
    for piece in judged.pieces:
        is_read = all(one.access is Access.READ for one in piece.touched)
        for word in _words(piece):
            yield from ((os.path.join(place, word), is_read) for place in places)
        if piece.argv[:1] == ("cd",) and len(places) < AGENT_COMMAND_PLACES:
            places += [os.path.join(place, word) for place in places for word in piece.argv[1:2]]


def _words(piece: Piece) -> Iterator[str]:
    if piece.kind == "redirect":
        yield from piece.argv if piece.touched else ()  # untouched: nobody knows the file
        return
    for word in piece.argv if piece.kind == "command" else ():
        yield word
        if "=" in word:
            yield word.partition("=")[2]
        if len(word) > 2 and word[0] == "-" != word[1]:
            yield word[2:]  # `-fMakefile`


def _state(sandbox: Sandbox, real: str, most_bytes: int) -> tuple[str, int]:
    """And how many bytes were read for it. What is too large to be read is known by its inode,
    whose change time only the system sets."""
    try:
        with sandbox.opened(sandbox.place(real, sandbox.root)) as descriptor:
            known = os.fstat(descriptor)
            if not stat.S_ISREG(known.st_mode):
                return _NO_FILE, 0
            if known.st_size > most_bytes:
                return f"{known.st_ino} {known.st_size} {known.st_ctime_ns}", 0
            with open(descriptor, "rb", closefd=False) as file:
                return hashlib.sha256(file.read(most_bytes)).hexdigest(), known.st_size
    except (OSError, OutsideSandbox):
        return _NO_FILE, 0
