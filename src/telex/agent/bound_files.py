"""The files a command names, as they were when a person was asked about it.

A yes to `sh run.sh` is a yes to what was in `run.sh` then. So each word of the command that can
name a file inside the root is looked at before the question and after the answer, from each
directory the command may be in: where it leads, and what is there. That counts for words of
commands and for files read by `<`, and also for what was no file then and is one now.

Not bound: text that was not understood, files outside the root, names that a pattern stands for,
and what a program reads without being told its name (a Makefile, what a script includes). Blocks;
the callers run it in a thread. Used by `confirming`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import islice
from typing import TYPE_CHECKING

from telex.agent.judging.modes import Access
from telex.agent.sandbox import OutsideSandbox
from telex.wire.limits import AGENT_BOUND_PATHS, AGENT_COMMAND_PLACES, AGENT_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.agent.judging import Judgement, Piece
    from telex.agent.sandbox import Sandbox

_NO_FILE = "no file"


def bound_files(judged: Judgement, sandbox: Sandbox, cwd: Path) -> dict[str, str]:
    """Each path, absolute as the command has it, with its state."""
    found: dict[str, str] = {}
    left = AGENT_FILE_BYTES
    for path in dict.fromkeys(islice(_paths(judged, cwd), AGENT_BOUND_PATHS)):
        try:
            place = sandbox.place(path, cwd)
        except OutsideSandbox:
            continue
        state, read = _state(sandbox, place, left)
        left -= read
        found[path] = state if state == _NO_FILE else f"{place}: {state}"
    return found


def _paths(judged: Judgement, cwd: Path) -> Iterator[str]:
    if judged.not_understood is not None:
        return
    places = [os.fspath(cwd)]
    for piece in judged.pieces:
        for word in _words(piece):
            yield from (os.path.join(place, word) for place in places)
        if piece.argv[:1] == ("cd",) and len(places) < AGENT_COMMAND_PLACES:
            places += [os.path.join(place, word) for place in places for word in piece.argv[1:2]]


def _words(piece: Piece) -> tuple[str, ...]:
    if piece.kind == "command":
        return (*piece.argv, *(word.partition("=")[2] for word in piece.argv if "=" in word))
    if piece.kind == "redirect" and any(one.access is Access.READ for one in piece.touched):
        return piece.argv
    return ()


def _state(sandbox: Sandbox, place: str, most_bytes: int) -> tuple[str, int]:
    """And how many bytes were read for it. What is too large to be read is known by its inode,
    whose change time only the system sets."""
    try:
        with sandbox.opened(place) as descriptor:
            known = os.fstat(descriptor)
            if not stat.S_ISREG(known.st_mode):
                return _NO_FILE, 0
            if known.st_size > most_bytes:
                return f"{known.st_ino} {known.st_size} {known.st_ctime_ns}", 0
            with open(descriptor, "rb", closefd=False) as file:
                return hashlib.sha256(file.read(most_bytes)).hexdigest(), known.st_size
    except (OSError, OutsideSandbox):
        return _NO_FILE, 0
