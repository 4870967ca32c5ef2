"""The sandbox directory of an agent, and its files: opened, read, replaced, walked, matched.

A path is resolved link by link first. A link that stays inside the root is allowed, however it is
written; a link that leads out, or whose target cannot be determined, is refused with a message. The
resolved path may be stale a moment later, so the open itself follows no link (`openat2`): a file or
directory that was replaced by a link in between cannot be opened. To create a file, each directory
on the way is opened by descriptor, without following links. A call that was judged uses exactly the
paths that were judged (`exactly`).

Files are read whole, and replaced whole or not at all. Contents are bytes, so that a file with
invalid UTF-8 survives an edit. Paths that are not regular files, files above the size limit and
binary files are refused with a message. Everything blocks; the callers run it in a thread.

The sandbox bounds the file tools. A command can use every file that the person can; only its
initial directory is bounded, and the permissions decide about the command.
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
    from collections.abc import Callable, Iterator


MARKERS: Final = (".git", ".jj", ".telex")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutsideSandbox(Exception):
    """A path outside the sandbox root, one whose target has changed, or an invalid path."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The root directory, a real path without links. Made by `find_sandbox`."""

    root: Path
    exact: bool = False
    """Paths are given resolved; a path that now contains a link is refused."""

    def exactly(self) -> Sandbox:
        return Sandbox(self.root, exact=True)

    def place(self, path: str, cwd: Path) -> str:
        """Return the resolved path relative to the root: no link, no `..`, `.` for the root itself.

        Raises `OutsideSandbox`.
        """
        if "\0" in path:
            raise OutsideSandbox(f"{path!r} is not a valid path: it contains a NUL")
        try:
            way = DiskLookup().resolve(os.fspath(cwd / path))
            place = os.path.relpath(way.end, self.root)
            place.encode()  # a link may lead to a name that is not valid UTF-8
        except ValueError as error:  # a lone surrogate
            raise OutsideSandbox(f"{path!r} is not a valid path: {error}") from error
        if way.unknown:
            raise OutsideSandbox(f"cannot resolve {path}: {way.unknown}")
        if place == os.pardir or place.startswith(os.pardir + os.sep):
            raise OutsideSandbox(f"{path} is outside the sandbox root {self.root}")
        if self.exact and way.end != os.path.normpath(cwd / path):
            raise OutsideSandbox(f"{path} leads to {place} now; nothing was done")
        return place

    def directory(self, path: str, cwd: Path) -> Path:
        """Return the real path of a directory inside the sandbox. Raises `OutsideSandbox`, and
        `OSError` if it is not a directory."""
        place = self.place(path, cwd)
        with self.opened(place) as descriptor:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return self.root / place

    @contextlib.contextmanager
    def opened(self, place: str) -> Iterator[int]:
        """Open a file or directory for reading, and yield its descriptor.

        `place` is a result of `place`. A link on the way was created since then, and is refused
        with `OutsideSandbox`. Raises `OSError` as `open` does.
        """
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
        """Open the parent directory of a place, to change an entry in it. With `make`, create
        missing directories on the way."""
        at = os.open(self.root, _DIRECTORY)
        try:
            for name in Path(place).parts[:-1]:
                at = _open_child(at, name, make=make)
            yield at
        finally:
            os.close(at)


def find_sandbox(cwd: Path, given: Path | None = None) -> Sandbox:
    """Return the sandbox for a directory: the given root, else the nearest parent directory with a
    marker (`MARKERS`), else the directory itself."""
    try:
        start = Path(os.path.realpath(given or cwd, strict=True))
    except OSError as error:
        raise OutsideSandbox(f"{given or cwd}: {error.strerror}; set it with --root") from error
    upward = (start, *start.parents)
    marked = (path for path in upward if any(os.path.lexists(path / name) for name in MARKERS))
    root = start if given is not None else next(marked, start)
    if not root.is_dir():
        raise OutsideSandbox(f"{root} is not a directory; set it with --root")
    return Sandbox(root)


def directories_down_to(root: Path, cwd: Path) -> tuple[Path, ...]:
    """Return the directories from the root to the cwd, both included; only the root if the cwd is
    not below it."""
    way = DiskLookup().resolve(os.path.abspath(cwd))
    real = Path(way.end)
    if way.unknown or not real.is_relative_to(root):
        return (root,)
    inner = real.relative_to(root).parts
    return tuple(root.joinpath(*inner[:depth]) for depth in range(len(inner) + 1))


def _open_child(at: int, name: str, *, make: bool) -> int:
    """Open a subdirectory, and close the descriptor of its parent."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
    below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    os.close(at)
    return below


_TEXT_SAMPLE = 8192
"""A file with a NUL in its first bytes counts as binary."""


class FileRefused(Exception):
    """A file that the tools neither read nor write; the message is the reason."""


class FileChanged(FileRefused):
    """The file has changed since the caller last read it."""


def sha256_hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_whole(sandbox: Sandbox, place: str) -> bytes:
    """Read a regular file. Raises `FileRefused`, and `OSError` as `open` does."""
    with sandbox.opened(place) as descriptor:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise FileRefused(f"{place} is a directory; use `list`")
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused(f"{place} is neither a file nor a directory")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(AGENT_FILE_BYTES + 1)
    if len(content) > AGENT_FILE_BYTES:
        raise FileRefused(
            f"{place} is larger than {AGENT_FILE_BYTES // MIB} MiB; read parts of it with a "
            "command such as head, tail or grep"
        )
    return content


def read_text(sandbox: Sandbox, place: str) -> bytes:
    """Read a text file. Raises `FileRefused` for a binary file too."""
    content = read_whole(sandbox, place)
    if is_binary(content):
        raise FileRefused(f"{place} is a binary file of {len(content)} bytes")
    return content


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:_TEXT_SAMPLE]


def replace_file(sandbox: Sandbox, place: str, content: bytes) -> None:
    """Replace a file atomically, and keep its mode. Missing directories are created. A file without
    write permission is refused, although the system would allow to replace it."""
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


def delete_file(sandbox: Sandbox, place: str) -> None:
    """Delete a file. Raises `OSError` as `unlink` does."""
    with sandbox.parent(place) as parent:
        os.unlink(os.path.basename(place), dir_fd=parent)


def _existing_mode(parent: int, name: str) -> int | None:
    """Return the mode of an existing file, which must be regular and writable; None if there is no
    file."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{name} is not a regular file and cannot be replaced")
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise FileRefused(f"{name} is not writable; change its mode first")
    return stat.S_IMODE(status.st_mode) & 0o777  # without setuid, as after a write


SKIPPED_DIRECTORIES: Final = (".git", ".jj")


@dataclass(frozen=True, slots=True)
class SandboxEntry:
    """An entry of a directory."""

    path: str
    """Relative to the directory that was walked."""
    is_directory: bool
    is_link: bool


class WalkedTooFar(Exception):
    """A walk has visited `AGENT_WALKED` entries, and there are more."""


def list_directory(sandbox: Sandbox, place: str, prefix: str = "") -> list[SandboxEntry]:
    """List one directory, sorted. Raises `OSError` as `scandir` does."""
    with sandbox.opened(place) as descriptor, os.scandir(descriptor) as found:
        listed = [
            SandboxEntry(
                prefix + entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()
            )
            for entry in found
        ]
    return sorted(listed, key=lambda entry: entry.path)


def walk(
    sandbox: Sandbox,
    place: str,
    unwanted: threading.Event,
    *,
    hidden: bool = False,
    skip: Callable[[SandboxEntry], bool] | None = None,
) -> Iterator[SandboxEntry]:
    """Yield everything below a directory, a directory before its entries, without following links.

    Not entered are the directories of version control, hidden directories unless `hidden` is set,
    and directories that cannot be read. Entries that `skip` names are left out, with everything
    below them. Hidden directories of tools (`.venv`, `.cache`) often contain
    more than all others together. Raises `WalkedTooFar` at the limit; `unwanted` stops the walk.
    """
    left = AGENT_WALKED
    waiting = list_directory(sandbox, place)[::-1]
    while waiting and not unwanted.is_set():
        if (left := left - 1) < 0:
            raise WalkedTooFar(f"only the first {AGENT_WALKED} entries were visited")
        entry = waiting.pop()
        if skip is not None and skip(entry):
            continue
        yield entry
        name = os.path.basename(entry.path)
        is_entered = name not in SKIPPED_DIRECTORIES and (hidden or not name.startswith("."))
        if entry.is_directory and is_entered:
            below = _list_or_empty(sandbox, os.path.join(place, entry.path), entry.path + "/")
            waiting.extend(reversed(below))


def _list_or_empty(sandbox: Sandbox, place: str, prefix: str) -> list[SandboxEntry]:
    try:
        return list_directory(sandbox, place, prefix)
    except (OSError, OutsideSandbox):  # not readable, deleted, or replaced by a link
        return []


def printable_path(path: str) -> str:
    """Return a path for a result. A path with unprintable characters is quoted, so that it cannot
    look like two lines or like another path."""
    return path if path.isprintable() else ascii(path)


def path_text(path: str) -> str:
    """Return a path as JSON can hold it: bytes that are not UTF-8 are replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


_GLOB_PIECES: Final = re.compile(
    r"(?P<deep>\*\*/)|(?P<rest>\*\*)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]/]*\])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|\\?(?P<other>.)",
    re.DOTALL,
)


class BadGlob(ValueError):
    """A glob pattern that is not valid."""


class Glob:
    """A glob pattern of file names, as people and language models write it.

    `*.py` matches such a name at any depth, `src/*.py` such a path, `**` any number of directories,
    `{ts,tsx}` either. RE2 does the matching, so that matching takes linear time.
    """

    def __init__(self, source: str) -> None:
        rooted = source.removeprefix("./")
        anywhere = "" if "/" in rooted else "(?:.*/)?"
        try:
            self._pattern = Pattern(f"(?s)^{anywhere}{_glob_regex(rooted.lstrip('/'))}$")
        except PatternError as error:
            raise BadGlob(f"{source!r} is not a valid glob pattern: {error}") from None

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path relative to the searched directory."""
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
