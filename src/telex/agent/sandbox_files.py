"""The directory that an agent works in, and its files: opened, read, replaced, walked, matched.

A path is followed link by link first, so that a link which stays inside is fine, however it is
written, and one that leads out, or nobody can say where, is refused with a sentence. That look
proves nothing a moment later: the opening itself follows no link (`openat2`), so a file or a
directory that becomes one in between leads nowhere. Where a file is made, every step to it is taken
by descriptor and follows no link. A call that was judged goes by the very places that were judged
(`exactly`).

Files are read whole, and replaced whole or not at all. They are bytes here, so that a file which is
not quite UTF-8 survives an edit. What is refused is refused with a sentence: what is no file, what
is too large to be held, what is no text. Everything blocks; the callers run it in a thread.

This bounds the file tools. A command can go anywhere the person can; only its directory at the
start is bounded, and what it may do is for the permissions to judge.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_FILE_BYTES, AGENT_WALKED
from telex.agent.permissions.disk import DiskLookup
from telex.processes.openat import open_beneath
from telex.terminal.patterns import Pattern, PatternError
from telex.wire.limits import MIB

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator


MARKERS: Final = (".git", ".jj", ".telex")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutsideSandbox(Exception):
    """A path that leads out of the sandbox root, or elsewhere than it did, or is none."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A root without links in its path. `find_sandbox` finds it."""

    root: Path
    exact: bool = False
    """Paths are given without links, and one that has become a link is refused."""

    def exactly(self) -> Sandbox:
        return Sandbox(self.root, exact=True)

    def place(self, path: str, cwd: Path) -> str:
        """Where the path leads, from the root: no link, no `..`, `.` for the root itself."""
        if "\0" in path:
            raise OutsideSandbox(f"{path!r} is not a path: it holds a NUL")
        try:
            way = DiskLookup().resolve(os.fspath(cwd / path))
            place = os.path.relpath(way.end, self.root)
            place.encode()  # a link may lead to a name that no answer can hold
        except ValueError as error:  # what is no character
            raise OutsideSandbox(f"{path!r} is not a path: {error}") from error
        if way.unknown:
            raise OutsideSandbox(f"nobody can say where {path} leads: {way.unknown}")
        if place == os.pardir or place.startswith(os.pardir + os.sep):
            raise OutsideSandbox(f"{path} is outside the sandbox root {self.root}")
        if self.exact and way.end != os.path.normpath(cwd / path):
            raise OutsideSandbox(f"{path} leads to {place} by now; nothing was done")
        return place

    def directory(self, path: str, cwd: Path) -> Path:
        """A directory inside, without links; `OSError` where there is none."""
        place = self.place(path, cwd)
        with self.opened(place) as descriptor:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return self.root / place

    @contextlib.contextmanager
    def opened(self, place: str) -> Iterator[int]:
        """A descriptor to read a file or a directory from, for a place as `place` gives it: a link
        on the way is there only since. `OSError` as from `open`."""
        root = os.open(self.root, _DIRECTORY)
        try:
            descriptor = open_beneath(root, place, links=False)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise OutsideSandbox(f"{place} became a link while it was opened") from error
            raise
        finally:
            os.close(root)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def parent(self, place: str, *, make: bool = False) -> Iterator[int]:
        """The directory of a place, to change something in. With `make`, what is missing on the
        way is made."""
        at = os.open(self.root, _DIRECTORY)
        try:
            for name in Path(place).parts[:-1]:
                at = _open_child(at, name, make=make)
            yield at
        finally:
            os.close(at)


def find_sandbox(cwd: Path, given: Path | None = None) -> Sandbox:
    """The sandbox of a directory: the given root, else the nearest directory with a marker, else
    the directory itself."""
    try:
        start = Path(os.path.realpath(given or cwd, strict=True))
    except OSError as error:
        raise OutsideSandbox(f"{given or cwd}: {error.strerror}; name one with --root") from error
    upward = (start, *start.parents)
    marked = (one for one in upward if any(os.path.lexists(one / name) for name in MARKERS))
    root = start if given is not None else next(marked, start)
    if not root.is_dir():
        raise OutsideSandbox(f"{root} is no directory; name one with --root")
    return Sandbox(root)


def directories_down_to(root: Path, cwd: Path) -> tuple[Path, ...]:
    """The directories from the root to the cwd, both included; only the root if it is elsewhere."""
    way = DiskLookup().resolve(os.path.abspath(cwd))
    real = Path(way.end)
    if way.unknown or not real.is_relative_to(root):
        return (root,)
    inner = real.relative_to(root).parts
    return tuple(root.joinpath(*inner[:depth]) for depth in range(len(inner) + 1))


def _open_child(at: int, name: str, *, make: bool) -> int:
    """One directory further down; the one above is let go."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
    below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    os.close(at)
    return below


_TEXT_SAMPLE = 8192
"""Whether a file is text shows in its first bytes: text has no NUL."""


class FileRefused(Exception):
    """A file that the tools do not touch, and why."""


class FileChanged(FileRefused):
    """It is not what the caller last saw."""


def sha256_hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_whole(sandbox: Sandbox, place: str) -> bytes:
    """`FileRefused`, or `OSError` as from `open`."""
    with sandbox.opened(place) as descriptor:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise FileRefused(f"{place} is a directory; list it")
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused(f"{place} is neither a file nor a directory")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(AGENT_FILE_BYTES + 1)
    if len(content) > AGENT_FILE_BYTES:
        raise FileRefused(
            f"{place} is larger than {AGENT_FILE_BYTES // MIB} MiB; look into it with a command, "
            "such as head, tail or grep"
        )
    return content


def read_text(sandbox: Sandbox, place: str) -> bytes:
    """The same for a file that is text."""
    content = read_whole(sandbox, place)
    if is_binary(content):
        raise FileRefused(f"{place} is a binary file of {len(content)} bytes")
    return content


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:_TEXT_SAMPLE]


def replace_file(sandbox: Sandbox, place: str, content: bytes) -> None:
    """Put the content there, whole, with the mode that was there before. Directories on the way
    are made. A file that may not be written is not replaced either, though the system allows it."""
    name = os.path.basename(place)
    with sandbox.parent(place, make=True) as parent:
        mode = _existing_mode(parent, name)
        temporary = f".telex-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=parent)
        try:
            with open(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)
            raise


def _existing_mode(parent: int, name: str) -> int | None:
    """What the file there has; None where there is none yet."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{name} is not a file, so it is not replaced by one")
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise FileRefused(f"{name} may not be written; change its mode first")
    return stat.S_IMODE(status.st_mode) & 0o777  # as writing does, without setuid


SKIPPED_DIRECTORIES: Final = (".git", ".jj")


@dataclass(frozen=True, slots=True)
class SandboxEntry:
    """One name in a directory."""

    path: str
    """From the directory that was walked."""
    is_directory: bool
    is_link: bool


class WalkedTooFar(Exception):
    """There are more entries than one answer may look at."""


def list_directory(sandbox: Sandbox, place: str, prefix: str = "") -> list[SandboxEntry]:
    """What is in one directory. `OSError` as from `scandir`."""
    with sandbox.opened(place) as descriptor, os.scandir(descriptor) as found:
        listed = [
            SandboxEntry(prefix + one.name, one.is_dir(follow_symlinks=False), one.is_symlink())
            for one in found
        ]
    return sorted(listed, key=lambda entry: entry.path)


def walk(
    sandbox: Sandbox, place: str, unwanted: threading.Event, *, hidden: bool = False
) -> Iterator[SandboxEntry]:
    """Everything beneath a directory, a directory before what is in it, without following a link.

    Version control's own directories are passed over, and hidden ones unless they are asked for:
    what tools keep there (`.venv`, `.cache`) is often more than all else. So are directories that
    cannot be read. Raises `WalkedTooFar` at the limit; `unwanted` stops it.
    """
    left = AGENT_WALKED
    waiting = list_directory(sandbox, place)[::-1]
    while waiting and not unwanted.is_set():
        if (left := left - 1) < 0:
            raise WalkedTooFar(f"only the first {AGENT_WALKED} entries were looked at")
        entry = waiting.pop()
        yield entry
        name = os.path.basename(entry.path)
        is_entered = name not in SKIPPED_DIRECTORIES and (hidden or not name.startswith("."))
        if entry.is_directory and is_entered:
            below = _list_or_empty(sandbox, os.path.join(place, entry.path), entry.path + "/")
            waiting.extend(reversed(below))


def _list_or_empty(sandbox: Sandbox, place: str, prefix: str) -> list[SandboxEntry]:
    try:
        return list_directory(sandbox, place, prefix)
    except (OSError, OutsideSandbox):  # not ours to read, or gone, or a link by now
        return []


def printable_path(path: str) -> str:
    """A path in an answer: one that could be taken for two lines, or for another, is quoted."""
    return path if path.isprintable() else ascii(path)


_GLOB_PIECES: Final = re.compile(
    r"(?P<deep>\*\*/)|(?P<rest>\*\*)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]/]*\])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|\\?(?P<other>.)",
    re.DOTALL,
)


class BadGlob(ValueError):
    """A pattern of names that cannot be read."""


class Glob:
    """A pattern of file names, as people and language models write it.

    `*.py` means such a name at any depth, `src/*.py` such a path, `**` any number of directories,
    `{ts,tsx}` either. RE2 does the matching, so that no pattern takes for ever.
    """

    def __init__(self, source: str) -> None:
        rooted = source.removeprefix("./")
        anywhere = "" if "/" in rooted else "(?:.*/)?"
        try:
            self._pattern = Pattern(f"(?s)^{anywhere}{_glob_regex(rooted.lstrip('/'))}$")
        except PatternError as error:
            raise BadGlob(f"{source!r} is not a pattern of file names: {error}") from None

    def matches(self, path: str) -> bool:
        """Whether a path from the directory looked in is meant."""
        return self._pattern.search(path) is not None


def _glob_regex(source: str) -> str:
    regex, depth = [], 0
    for piece in _GLOB_PIECES.finditer(source):
        kind, text = piece.lastgroup or "other", piece[piece.lastgroup or 0]
        depth += (kind == "open") - (kind == "close")
        regex.append(_piece_regex(kind, text, inside=depth > 0))
    return "".join(regex)


def _piece_regex(kind: str, text: str, *, inside: bool) -> str:
    match kind:
        case "deep":
            return "(?:.*/)?"
        case "rest":
            return ".*"
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            return _set_regex(text)
        case "open":
            return "(?:"
        case "close":
            return ")"
        case "comma" if inside:
            return "|"
        case _:
            return re.escape(text)


def _set_regex(text: str) -> str:
    negated = text.startswith("[!")
    inner = text[2 if negated else 1 : -1].replace("\\", r"\\").replace("[", r"\[")
    return f"[{'^/' if negated else ''}{inner.replace('^', chr(92) + '^')}]"
