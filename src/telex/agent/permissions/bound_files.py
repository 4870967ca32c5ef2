"""The files a command names or will run, as they were when a person was asked about it.

A yes to `sh run.sh` is a yes to what was in `run.sh` then, and one to `cp a d/` to where `d` led.
So each word of the command that can name a file is looked at before the question and after the
answer, from each directory the command may be in: where it leads, and inside the root what is
there. That counts for words of commands and for redirects, also for what was no file then and is
one now, for each file that a pattern stands for and for which they are. What a redirect writes to
is only bound to its place. Of a text that was not understood, whatever may be a name in it counts.
So do files that are run without being named (`implied_files`). `run_directories` knows the
directories a command runs in.

The same look says what a person is told: where those words lead, if not where they seem to.

Not bound: what is in files outside the root, and what a program finds in another way (what a script
includes, the programs in PATH). Blocks; the callers run it in a thread. Used by `confirmation`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_BOUND_PATHS, AGENT_COMMAND_PLACES, AGENT_FILE_BYTES
from telex.agent.permissions.embedded_paths import (
    UNKNOWN,
    names_and_directories_in_text,
    names_in_text,
)
from telex.agent.permissions.implied_files import ImpliedFiles
from telex.agent.permissions.path_policy import NOWHERE
from telex.agent.permissions.path_walk import CachedLookup, is_too_long_path
from telex.agent.permissions.read_only_programs import program_name
from telex.agent.permissions.run_directories import run_directories
from telex.agent.permissions.tool_rules import PathAccess, Permission
from telex.agent.sandbox_files import OutsideSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.agent.permissions import JudgedPiece, Judgement
    from telex.agent.permissions.path_policy import PathPolicy
    from telex.agent.sandbox_files import Sandbox

COMPUTED: Final = "a shell computes a part of it"
_COMPUTES: Final = re.compile(r"[`\[{]|\$[({\w@*]|\beval\b")
_GLUED: Final = 64
"""A longer word is no row of options."""
_NO_FILE: Final = "no file"
_TOO_MANY: Final = "too many names"
_MOST_PLACES: Final = 8 * AGENT_COMMAND_PLACES
"""Each `cd` may have failed, so that the places double with each. The paths are counted too."""


@dataclass(frozen=True, slots=True)
class BoundPath:
    """One path."""

    seems: str
    """Where it would be if nothing on the way were a link."""
    leads: str
    state: str


@dataclass(frozen=True, slots=True)
class BoundFiles:
    """By path, absolute as the command has it."""

    files: dict[str, BoundPath]
    is_whole: bool
    """False where there were more than are looked at: no yes is bound to the others."""
    unlisted: tuple[str, ...] = ()
    """Patterns that stand for more names than are looked at."""
    unknown: tuple[str, ...] = ()
    """Why it may run other files than these, in words of ours."""


@dataclass(frozen=True, slots=True)
class _Binding:
    """What is bound, in the order in which it matters."""

    paths: PathPolicy
    text: str
    places: list[str]
    missed: list[str] = field(default_factory=list)
    """What there was too much of to look at."""
    unknown: list[str] = field(default_factory=list)
    """Why what will run cannot be known."""

    def named(self, judged: Judgement) -> Iterator[tuple[str, bool]]:
        """Each path, and whether what is in it counts."""
        words: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        if judged.not_understood is not None:
            self._go_where((self.text,))
            self.unknown.extend([COMPUTED] if _COMPUTES.search(self.text) else [])
            yield from self._in_text(self.text)
            words.append(((self.text,), tuple(self.places)))
        else:
            for piece in judged.pieces:
                yield from self._in_piece(piece)
                if piece.kind == "command":
                    words.append((piece.argv, tuple(self.places)))
        files = ImpliedFiles(self.paths)
        for argv, places in words:
            for place in places:
                yield from ((path, True) for path in files.of(argv, place))

    def _in_text(self, text: str) -> Iterator[tuple[str, bool]]:
        found, moved = names_and_directories_in_text(text, self.paths.home)
        self._go_to([os.path.join(self.places[0], one) for one in moved])
        if found is None:
            self.missed.append("names")
        for name in found or ():
            yield from self._at_places(name.replace(UNKNOWN, "*"), is_read=True)

    def _in_piece(self, piece: JudgedPiece) -> Iterator[tuple[str, bool]]:
        is_read = all(one.access is PathAccess.READ for one in piece.touched)
        is_asked = piece.verdict.decision is not Permission.ALLOW
        if piece.kind == "command":
            self._go_where(piece.argv)
            if is_asked and ("$(" in piece.source or "`" in piece.source):
                self.unknown.append(COMPUTED)
                yield from self._in_text(piece.source)
        for word in _words(piece, self.paths.home):
            yield from self._at_places(word, is_read=is_read)
        for word in _glued(piece):
            yield from (
                (path, is_read)
                for place in self.places
                if self.paths.files.glob(path := os.path.join(place, word))
            )

    def _go_where(self, words: tuple[str, ...]) -> None:
        """To the directories that a command says it goes to, by whatever means."""
        going = run_directories(words)
        self.unknown.extend([going.unknown] if going.unknown else [])
        files = self.paths.files
        named = [os.path.join(one, word) for one in self.places for word in going.surely]
        perhaps = [os.path.join(one, word) for one in self.places for word in going.perhaps]
        self._go_to([*named, *(one for one in perhaps if files.is_directory(one))])

    def _go_to(self, places: list[str]) -> None:
        """A command may be there from now on, or still where it was."""
        new = [one for one in dict.fromkeys(map(self._plain, places)) if one not in self.places]
        room = _MOST_PLACES - len(self.places)
        self.places.extend(new[:room])
        if len(new) > room:
            self.missed.append("places")

    def _plain(self, path: str) -> str:
        """Without dots, where these lead to the same place: `cd a && cd ..` goes nowhere new."""
        plain = os.path.normpath(path)
        if "\0" in path or self.paths.files.resolve(path) != self.paths.files.resolve(plain):
            return path
        return plain

    def _at_places(self, name: str, *, is_read: bool) -> Iterator[tuple[str, bool]]:
        yield from ((os.path.join(place, name), is_read) for place in self.places)


def find_bound_files(
    judged: Judgement, paths: PathPolicy, sandbox: Sandbox, cwd: Path, text: str
) -> BoundFiles:
    """`text` is the command's."""
    paths = replace(paths, files=CachedLookup(paths.files))  # each link is looked at once
    binding = _Binding(paths, text, [os.fspath(cwd)])
    named: dict[str, bool] = {}
    is_whole = True
    for path, is_read in binding.named(judged):
        if path not in named and len(named) == AGENT_BOUND_PATHS:
            is_whole = False
            break
        named[path] = is_read or named.get(path, False)
    if not is_whole or binding.missed:
        return BoundFiles({}, is_whole=False)
    looking = _PathReader(paths, sandbox)
    for path, is_read in named.items():
        looking.look(path, is_read=is_read)
    unknown = tuple(dict.fromkeys(binding.unknown))
    return BoundFiles(looking.found, True, tuple(looking.unlisted), unknown)


class _PathReader:
    """Looks at paths, and reads so many bytes altogether."""

    def __init__(self, paths: PathPolicy, sandbox: Sandbox) -> None:
        self._paths, self._sandbox = paths, sandbox
        self._left = AGENT_FILE_BYTES
        self.found: dict[str, BoundPath] = {}
        self.unlisted: list[str] = []

    def look(self, path: str, *, is_read: bool) -> None:
        if "*" in path or "?" in path:
            names = self._paths.files.glob(path) if "\0" not in path else ()
            listed = _TOO_MANY if names is None else _hash("\0".join(sorted(names)).encode(*_RAW))
            self.found[path] = BoundPath(path, path, listed)
            self.unlisted += [path] if names is None else []
            for name in names or ():
                self._look_at(name, is_read=is_read)
        else:
            self._look_at(path, is_read=is_read)

    def _look_at(self, path: str, *, is_read: bool) -> None:
        leads, real = _leads(path, self._paths)
        looked = is_read and real
        state, read = _state(self._sandbox, real, self._left) if looked else (_NO_FILE, 0)
        self._left -= read
        self.found[path] = BoundPath(os.path.normpath(path), leads, state)


_RAW: Final = ("utf-8", "surrogateescape")


def _leads(path: str, paths: PathPolicy) -> tuple[str, str]:
    """Where a path leads, as it is told, and the place itself if it is known."""
    if (
        path in NOWHERE or "\0" in path or is_too_long_path(path)
    ):  # not ours to say; or no path at all
        return path, ""
    way = paths.files.resolve(path)
    return (f"{way.end} ({way.unknown})", "") if way.unknown else (way.end, way.end)


def _words(piece: JudgedPiece, home: str) -> Iterator[str]:
    if piece.kind == "redirect":
        yield from piece.argv if piece.touched else ()  # untouched: nobody knows the file
        return
    for word in piece.argv if piece.kind == "command" else ():
        yield word
        if word[:1] in ("@", "!"):
            yield word[1:]  # a file with arguments, a command
        if "=" in word:
            value = word.partition("=")[2]
            yield value
            yield from (value[1:],) if value[:1] in ("@", "!") else ()
        if len(word) > 2 and word[0] == "-" != word[1]:
            yield word[2:]  # `-fMakefile`
        if any(char.isspace() for char in word):  # a text for a shell, maybe
            yield from (name for name in names_in_text(word, home) or () if UNKNOWN not in name)


def _glued(piece: JudgedPiece) -> Iterator[str]:
    """What may be a file after several letters of options: `sed -nfx`, `tar xzfa.tgz`."""
    if piece.kind != "command" or not piece.argv:
        return
    is_tar = program_name(piece.argv[0]).endswith("tar")
    for at, word in enumerate(piece.argv[1:], 1):
        is_short = word[:1] == "-" != word[1:2] or (is_tar and at == 1)
        if is_short and len(word) <= _GLUED and not any(char in word for char in "*?\0"):
            yield from (word[start:] for start in range(1, len(word)))


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
                return _hash(file.read(most_bytes)), known.st_size
    except (OSError, OutsideSandbox):
        return _NO_FILE, 0


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
