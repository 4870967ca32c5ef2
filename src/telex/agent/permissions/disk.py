"""Read the disk for the judge: link targets, matches of patterns, links below a directory,
contents.

All other modules of the judge are pure and get a `FileLookup`; `DiskLookup` is the real one."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from telex.agent.limits import AGENT_GLOB_NAMES, AGENT_WALKED
from telex.agent.permissions.path_walk import (
    PATH_MAX,
    SYSTEM_PLACES,
    CachedLookup,
    DirectoryScan,
    Link,
    LinkFollower,
)
from telex.processes import proc

_MOST_ENTRIES: Final = 50 * AGENT_GLOB_NAMES
_SYSTEM_TYPES: Final = frozenset({"proc", "devtmpfs", "devpts"})
_VIRTUAL: Final = (*SYSTEM_PLACES, "/sys")
_PACKAGES: Final = "node_modules"
_GIT_STORES: Final = ("/.git/objects", "/.git/lfs")
"""Installed packages and git's stores have many names, and no program acts on a link there."""


class DiskLookup(LinkFollower):
    """The `FileLookup` of the real disk."""

    def link(self, path: str) -> Link | None:
        try:
            target = os.readlink(path)
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a link
                return None
            raise
        except ValueError as error:  # not a valid path
            raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), path) from error
        # For a link that the kernel generates, st_size is zero or another length.
        return Link(target, is_magic=os.lstat(path).st_size != len(os.fsencode(target)))

    def system_places(self) -> tuple[str, ...]:
        """Return `/proc` and `/dev`, and all other mount points of such file systems."""
        try:
            mounts = proc.mounts()
        except OSError:  # not Linux
            return SYSTEM_PLACES
        found = [mount.point for mount in mounts if mount.file_system in _SYSTEM_TYPES]
        return tuple(dict.fromkeys((*SYSTEM_PLACES, *found)))

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        """Match as a shell does, or more: hidden names need a written dot, and `?` matches one byte
        or one character, because shells depend on the locale. Return None for a directory that
        differs from process to process or that cannot be reached: its names are not known."""
        found = ["/"]
        seen, looked_up = 0, CachedLookup(self)
        for part in (part for part in pattern.split("/") if part):
            reached: list[str] = []
            for directory in found:
                if not _is_same_for_all(directory, looked_up):
                    return None
                entries = self._matches(directory, part)
                seen += len(entries)
                reached += entries
            found = reached
            if len(found) > AGENT_GLOB_NAMES or seen > _MOST_ENTRIES:
                return None
        return tuple(found)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        found = self.scan(directory, depth)
        return None if found is None else found.links

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan | None:
        """Scan through real directories, without following links; None if there are too many
        entries."""
        found: list[str] = []
        trees: list[str] = []
        waiting = [(directory, 1)]
        left = AGENT_WALKED
        while waiting:
            place, level = waiting.pop()
            for entry in _entries(place):
                left -= 1
                if left < 0 or len(entry.path) >= PATH_MAX:
                    return None
                if entry.name == ".git":
                    trees.append(place)
                if entry.is_symlink():
                    found.append(entry.path)
                elif level != depth and _is_entered(entry, whole=whole):
                    waiting.append((entry.path, level + 1))
        return DirectoryScan(tuple(found), tuple(trees))

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        try:
            # O_NONBLOCK: do not wait for the other end of a named pipe.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except (OSError, ValueError):  # None: the callers treat the content as unknown
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                found = file.read(most_bytes + 1)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return found if len(found) <= most_bytes else None

    def is_hard_linked(self, path: str) -> bool:
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1

    def is_own(self, path: str) -> bool:
        try:
            return os.lstat(path).st_uid == os.geteuid()
        except (OSError, ValueError):
            return False

    def _matches(self, directory: str, part: str) -> list[str]:
        if "*" not in part and "?" not in part:
            path = os.path.join(directory, part)
            return [path] if os.path.lexists(path) else []
        try:
            names = os.listdir(directory)
        except OSError:
            return []  # a shell cannot list it either
        return [
            os.path.join(directory, name)
            for name in names
            if (part.startswith(".") or not name.startswith("."))
            and (_fits(part, name) or _fits(_raw(part), _raw(name)))
        ]


def _is_same_for_all(directory: str, disk: CachedLookup) -> bool:
    """Return whether the directory is the same for every process, and can be reached."""
    if len(os.fsencode(directory)) >= PATH_MAX:
        return False
    return not os.path.islink(directory) or not disk.resolve(directory).unknown


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:  # the directory does not exist, or may not be read
        return []


def _is_entered(entry: os.DirEntry[str], *, whole: bool) -> bool:
    if not whole and (entry.name == _PACKAGES or entry.path.endswith(_GIT_STORES)):
        return False
    if entry.path in _VIRTUAL:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # removed meanwhile
        return False


def _raw(name: str) -> str:
    """Return the name with one character for each byte."""
    return os.fsencode(name).decode("latin-1")


def _fits(pattern: str, name: str) -> bool:
    """Match `*` and `?`. No regular expression is used, because an agent chooses the pattern and
    could make the match slow.

    The last `*` takes one more character whenever the text after it does not match. Earlier `*`
    need not be tried again, so the time is bounded by the product of the two lengths.
    """
    at = here = 0
    star = taken = -1
    while here < len(name):
        if pattern[at : at + 1] == "*":
            star, taken, at = at, here, at + 1
        elif pattern[at : at + 1] in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            taken += 1
            at, here = star + 1, taken
        else:
            return False
    return pattern[at:].strip("*") == ""
