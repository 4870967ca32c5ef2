"""The directory that an agent works in, and how a path of its is opened there and nowhere else.

A path is followed link by link first (`judging.links`), so that a link which stays inside is fine,
however it is written, and one that leads out, or nobody can say where, is refused with a sentence.
That look proves nothing a moment later: the opening itself follows no link (`config.beneath`), so a
file or a directory that becomes one in between leads nowhere. Where a file is made, every step to
it is taken by descriptor and follows no link. A call that was judged goes by the very places that
were judged (`exactly`).

It bounds the file tools. A command can go anywhere the person can; only its directory at the start
is bounded, and what it may do is for the permissions to judge.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.agent.judging.on_disk import Disk
from telex.processes.openat import open_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKERS: Final = (".git", ".jj", ".telex")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutsideSandbox(Exception):
    """A path that leads out of the sandbox root, or elsewhere than it did, or is none."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A root without links in its path. `enclosing` finds it."""

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
            way = Disk().way(os.fspath(cwd / path))
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
                at = _stepped(at, name, make=make)
            yield at
        finally:
            os.close(at)


def enclosing(cwd: Path, given: Path | None = None) -> Sandbox:
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


def downward(root: Path, cwd: Path) -> tuple[Path, ...]:
    """The directories from the root to the cwd, both included; only the root if it is elsewhere."""
    way = Disk().way(os.path.abspath(cwd))
    real = Path(way.end)
    if way.unknown or not real.is_relative_to(root):
        return (root,)
    inner = real.relative_to(root).parts
    return tuple(root.joinpath(*inner[:depth]) for depth in range(len(inner) + 1))


def _stepped(at: int, name: str, *, make: bool) -> int:
    """One directory further down; the one above is let go."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
    below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    os.close(at)
    return below
