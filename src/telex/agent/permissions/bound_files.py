"""Record the files that a command names or will run, so that an answer is bound to their content.

A yes to `sh run.sh` is a yes to the content of `run.sh` at that time, and a yes to `cp a d/` covers
the directory to which `d` led. So each word of the command that can be a path is recorded before
the question and again after the answer, from each directory in which the command may run: the
resolved path and, inside the root, the content. That covers words of commands and redirects, files
that do not exist yet, and the matches of a pattern together with their content. For the target of
an output redirect only the path is recorded. In a text that cannot be parsed, every word that may
be a name counts. Files that are run without being named count too (`implied_files`).

The record also shows the user which words lead to another path than it seems.

Not covered: the content of files outside the root, and files that a program finds in another way
(files that a script includes, the programs in PATH). Blocks; the callers use a thread. Used by
`confirmation`.
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
from telex.agent.permissions.implied_files import ImpliedFiles, run_directories
from telex.agent.permissions.path_policy import NOWHERE
from telex.agent.permissions.path_walk import CachedLookup, is_too_long_path
from telex.agent.permissions.read_only_programs import program_name
from telex.agent.permissions.tool_rules import PathAccess, Permission
from telex.agent.sandbox_files import OutsideSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telex.agent.permissions import JudgedPiece, Judgement
    from telex.agent.permissions.path_policy import PathPolicy
    from telex.agent.sandbox_files import Sandbox

COMPUTED: Final = "the shell computes a part of the command"
_COMPUTES: Final = re.compile(r"[`\[{]|\$[({\w@*]|\beval\b")
_MOST_JOINED: Final = 64
"""A longer word is not a group of option letters."""
_NO_FILE: Final = "no file"
_TOO_MANY: Final = "too many names"
_MOST_PLACES: Final = 8 * AGENT_COMMAND_PLACES
"""Each `cd` may fail, so the number of possible directories doubles with each."""


@dataclass(frozen=True, slots=True)
class BoundPath:
    """The state of one path when it was recorded."""

    seems: str
    """The path without dots, as if it had no links."""
    leads: str
    """The resolved path, with the reason if it cannot be determined."""
    state: str
    """A hash of the content, or a text for "no file"."""


@dataclass(frozen=True, slots=True)
class BoundFiles:
    """The recorded files, by the absolute path as the command has it."""

    files: dict[str, BoundPath]
    is_complete: bool
    """False if there are too many paths; then no answer can cover the command."""
    unlisted: tuple[str, ...] = ()
    """Patterns with too many matches, or with matches that are not known."""
    unknown: tuple[str, ...] = ()
    """Why the command may run further files, as sentences of telex."""


@dataclass(frozen=True, slots=True)
class _PathCollector:
    """Collects the paths of a command, in the order of its words."""

    paths: PathPolicy
    text: str
    places: list[str]
    """The directories in which the command may run."""
    exceeded: list[str] = field(default_factory=list)
    """The limits that were exceeded."""
    unknown: list[str] = field(default_factory=list)
    """Why the command may run files that are not known."""

    def collect(self, judged: Judgement) -> Iterator[tuple[str, bool]]:
        """Yield each path, and whether its content counts."""
        commands: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        if judged.not_understood is not None:
            self._change_directories((self.text,))
            self.unknown.extend([COMPUTED] if _COMPUTES.search(self.text) else [])
            yield from self._in_text(self.text)
            commands.append(((self.text,), tuple(self.places)))
        else:
            for piece in judged.pieces:
                yield from self._in_piece(piece)
                if piece.kind == "command":
                    commands.append((piece.argv, tuple(self.places)))
        files = ImpliedFiles(self.paths)
        for argv, places in commands:
            for place in places:
                yield from ((path, True) for path in files.of(argv, place))

    def _in_text(self, text: str) -> Iterator[tuple[str, bool]]:
        found, directories = names_and_directories_in_text(text, self.paths.home)
        self._add_places([os.path.join(self.places[0], each) for each in directories])
        if found is None:
            self.exceeded.append("names")
        for name in found or ():
            yield from self._in_places(name.replace(UNKNOWN, "*"), is_read=True)

    def _in_piece(self, piece: JudgedPiece) -> Iterator[tuple[str, bool]]:
        is_read = all(path.access is PathAccess.READ for path in piece.touched)
        is_asked = piece.verdict.decision is not Permission.ALLOW
        if piece.kind == "command":
            self._change_directories(piece.argv)
            if is_asked and ("$(" in piece.source or "`" in piece.source):
                self.unknown.append(COMPUTED)
                yield from self._in_text(piece.source)
        for word in _words(piece, self.paths.home):
            yield from self._in_places(word, is_read=is_read)
        for word in _joined_values(piece):
            yield from (
                (path, is_read)
                for place in self.places
                if self.paths.files.glob(path := os.path.join(place, word))
            )

    def _change_directories(self, argv: tuple[str, ...]) -> None:
        """Add the directories to which a command may change, with `cd` or with an option."""
        found = run_directories(argv)
        self.unknown.extend([found.unknown] if found.unknown else [])
        certain = [os.path.join(place, word) for place in self.places for word in found.certain]
        possible = [os.path.join(place, word) for place in self.places for word in found.possible]
        is_directory = self.paths.files.is_directory
        self._add_places([*certain, *(path for path in possible if is_directory(path))])

    def _add_places(self, places: list[str]) -> None:
        """Add directories. The earlier ones stay, because a `cd` may fail."""
        plain = dict.fromkeys(map(self._without_dots, places))
        new = [place for place in plain if place not in self.places]
        room = _MOST_PLACES - len(self.places)
        self.places.extend(new[:room])
        if len(new) > room:
            self.exceeded.append("places")

    def _without_dots(self, path: str) -> str:
        """Remove dots if the path stays the same: `cd a && cd ..` adds no new directory."""
        plain = os.path.normpath(path)
        if "\0" in path or self.paths.files.resolve(path) != self.paths.files.resolve(plain):
            return path
        return plain

    def _in_places(self, name: str, *, is_read: bool) -> Iterator[tuple[str, bool]]:
        yield from ((os.path.join(place, name), is_read) for place in self.places)


def find_bound_files(
    judged: Judgement, paths: PathPolicy, sandbox: Sandbox, cwd: Path, text: str
) -> BoundFiles:
    """Record the files of a command; `text` is the text of the command."""
    paths = replace(paths, files=CachedLookup(paths.files))  # each link is read once
    collector = _PathCollector(paths, text, [os.fspath(cwd)])
    named: dict[str, bool] = {}
    for path, is_read in collector.collect(judged):
        if path not in named and len(named) == AGENT_BOUND_PATHS:
            return BoundFiles({}, is_complete=False)
        named[path] = is_read or named.get(path, False)
    if collector.exceeded:
        return BoundFiles({}, is_complete=False)
    recorder = _PathRecorder(paths, sandbox)
    for path, is_read in named.items():
        recorder.record(path, is_read=is_read)
    unknown = tuple(dict.fromkeys(collector.unknown))
    return BoundFiles(recorder.found, True, tuple(recorder.unlisted), unknown)


class _PathRecorder:
    """Records the states of paths, and reads at most `AGENT_FILE_BYTES` bytes for all of them."""

    def __init__(self, paths: PathPolicy, sandbox: Sandbox) -> None:
        self._paths, self._sandbox = paths, sandbox
        self._left = AGENT_FILE_BYTES
        self.found: dict[str, BoundPath] = {}
        self.unlisted: list[str] = []

    def record(self, path: str, *, is_read: bool) -> None:
        if "*" in path or "?" in path:
            names = self._paths.files.glob(path) if "\0" not in path else ()
            listed = _TOO_MANY if names is None else _hash("\0".join(sorted(names)).encode(*_RAW))
            self.found[path] = BoundPath(path, path, listed)
            self.unlisted += [path] if names is None else []
            for name in names or ():
                self._record_file(name, is_read=is_read)
        else:
            self._record_file(path, is_read=is_read)

    def _record_file(self, path: str, *, is_read: bool) -> None:
        leads, real = _resolve(path, self._paths)
        has_state = is_read and real
        state, read = _state(self._sandbox, real, self._left) if has_state else (_NO_FILE, 0)
        self._left -= read
        self.found[path] = BoundPath(os.path.normpath(path), leads, state)


_RAW: Final = ("utf-8", "surrogateescape")


def _resolve(path: str, paths: PathPolicy) -> tuple[str, str]:
    """Return the resolved path as it is shown to the user, and the path itself if it is known."""
    # The standard streams differ from process to process; the other two are not valid paths.
    if path in NOWHERE or "\0" in path or is_too_long_path(path):
        return path, ""
    resolved = paths.files.resolve(path)
    if resolved.unknown:
        return f"{resolved.end} ({resolved.unknown})", ""
    return resolved.end, resolved.end


def _words(piece: JudgedPiece, home: str) -> Iterator[str]:
    if piece.kind == "redirect":
        yield from piece.argv if piece.touched else ()  # without `touched`, the file is unknown
        return
    for word in piece.argv if piece.kind == "command" else ():
        yield word
        if word[:1] in ("@", "!"):
            yield word[1:]  # a file with arguments, or a command
        if "=" in word:
            value = word.partition("=")[2]
            yield value
            yield from (value[1:],) if value[:1] in ("@", "!") else ()
        if len(word) > 2 and word[0] == "-" != word[1]:
            yield word[2:]  # `-fMakefile`
        if any(char.isspace() for char in word):  # possibly a text for a shell
            yield from (name for name in names_in_text(word, home) or () if UNKNOWN not in name)


def _joined_values(piece: JudgedPiece) -> Iterator[str]:
    """Yield the texts that may be a file after joined option letters: `sed -nfx`,
    `tar xzfa.tgz`."""
    if piece.kind != "command" or not piece.argv:
        return
    is_tar = program_name(piece.argv[0]).endswith("tar")
    for at, word in enumerate(piece.argv[1:], 1):
        is_short = word[:1] == "-" != word[1:2] or (is_tar and at == 1)
        if is_short and len(word) <= _MOST_JOINED and not any(char in word for char in "*?\0"):
            yield from (word[start:] for start in range(1, len(word)))


def _state(sandbox: Sandbox, real: str, most_bytes: int) -> tuple[str, int]:
    """Return the state of a file, and the number of bytes that were read for it. A file that is too
    large is identified by its inode, its size and its change time, which only the system sets."""
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
