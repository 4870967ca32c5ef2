"""Resolve a path link by link, as the kernel does, and define the lookups that this needs. Pure: a
`FileLookup` does the lookups, `disk.DiskLookup` on the real disk.

`os.path.realpath` resolves for this process, and guesses where it cannot read. A link to
`/proc/self/cwd` leads to one directory for telex and to another for the command that it starts, and
`realpath` treats a link beyond PATH_MAX as a normal file. So the path is resolved here, one name at
a time. Where the result cannot be determined, `ResolvedPath.unknown` has the reason, and the
callers ask: at a link that the kernel generates, at a link into `/proc` or `/dev`, beyond the
longest path, in a loop, and after any error except "does not exist".

Used by `path_policy` to judge, by `telex.agent.sandbox_files` for the file tools, and by
`bound_files` for questions.
"""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from telex.agent.limits import AGENT_LINK_NAMES
from telex.agent.permissions.display_text import in_quotes

if TYPE_CHECKING:
    from collections.abc import Iterable


PATH_MAX: Final = 4096
"""The longest path of one system call on Linux, with its NUL. A longer one needs several calls."""
NAME_MAX: Final = 255
"""The longest name in bytes. A few file systems allow longer ones; those ask."""
LINKS_FOLLOWED: Final = 40
"""The number of links that Linux follows."""
SYSTEM_PLACES: Final = ("/proc", "/dev")
"""Directories whose content depends on the process: `/proc/self`, `/dev/fd`, `/dev/stdin`,
`/dev/tty`."""
_MOST_CHARACTERS: Final = 4 * PATH_MAX
"""Characters of one path together with those of its links. Without this limit, long links that lead
through each other could produce a path of a hundred thousand names."""
_FREE_NAMES: Final = 32
"""Names from the links of one path that do not count for `may_walk`. Links that people make have
fewer."""
_NOTHING_THERE: Final = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, as `FileLookup.link` returns it."""

    target: str
    is_magic: bool = False
    """Whether the kernel ignores the target text and goes to an object of its own, as for
    `/proc/self/cwd`."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """The result of resolving a path."""

    end: str
    """The absolute path without links and dots; the file need not exist. If `unknown` is set: the
    path at which the resolution stopped, with the rest of the original path."""
    passed: tuple[str, ...] = ()
    """For each link that was followed, two paths: the link's own, and the one with the link's
    target in its place. Both include the rest of the path, so that each name is seen with the names
    around it."""
    unknown: str = ""
    """Why the end cannot be determined; empty if it can."""


class LinkFollower:
    """Base class that resolves paths with the `link` method of its subclass."""

    def link(self, path: str) -> Link | None:
        """Return the link at an absolute path, or None if no link is there. Only the last name of
        the path may be a link. Raise `OSError` as `readlink` does, except for EINVAL."""
        raise NotImplementedError

    def system_places(self) -> tuple[str, ...]:
        """Return the directories whose content depends on the process."""
        return SYSTEM_PLACES

    def may_walk(self, names: int) -> bool:
        """Return whether this many more names from links may be resolved; called for each link."""
        return True

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve an absolute path; the file need not exist."""
        return follow_links(path, self)

    def real(self, path: str) -> str:
        """Return `ResolvedPath.end`. It is not reliable unless `ResolvedPath.unknown` is empty."""
        return self.resolve(path).end


def follow_links(path: str, disk: LinkFollower) -> ResolvedPath:
    """Resolve an absolute path. `..` after a link is the parent of the link's target."""
    walked = len(path)
    if walked > _MOST_CHARACTERS:
        return ResolvedPath(
            posixpath.normpath(path), (), "the path is longer than the system allows"
        )
    system = tuple(place.rstrip("/") + "/" for place in disk.system_places())
    done, rest = "", _names(path)
    passed: list[str] = []
    links, free = 0, _FREE_NAMES
    while rest:
        name = rest.pop()
        if name == "..":
            done = done.rpartition("/")[0]
            continue
        place = f"{done}/{name}"
        link, unknown = _look_up(place, name, disk)
        if not unknown and (link or links) and f"{place}/".startswith(system):
            unknown = f"{in_quotes(place)} differs from process to process"
        elif link is not None and link.is_magic:
            unknown = f"{in_quotes(place)} is a link that the kernel generates"
        names: list[str] = []
        if link is not None and not unknown:
            links, walked = links + 1, walked + len(link.target)
            names = _names(link.target)
            counted, free = max(len(names) - free, 0), max(free - len(names), 0)
            if links > LINKS_FOLLOWED or walked > _MOST_CHARACTERS or not disk.may_walk(counted):
                unknown = "the path goes through too many links"
        if unknown:
            return ResolvedPath(_joined(place, rest), tuple(passed), unknown)
        if link is None:
            done = place
            continue
        passed.append(_joined(place, rest))
        done = "" if link.target.startswith("/") else done
        rest += names
        passed.append(_joined(done, rest))
    return ResolvedPath(done or "/", tuple(passed))


def path_spellings(path: str, resolved: ResolvedPath) -> frozenset[str]:
    """Return all spellings of a path: as it is written, with each link that was followed, and the
    resolved one; each also with `..` removed as a shell removes it."""
    found = [_joined("", _names(path)), *resolved.passed, resolved.end]
    return frozenset((*found, *map(posixpath.normpath, found)))


def is_below(path: str, place: str) -> bool:
    """Return whether a path is the place itself or below it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def is_below_any(path: str, places: Iterable[str]) -> bool:
    return any(is_below(path, place) for place in places)


def is_too_long_path(word: str) -> bool:
    """Return whether no system call accepts the word as a path, in any directory."""
    return _size(word) >= PATH_MAX or any(_size(name) > NAME_MAX for name in word.split("/"))


def _look_up(place: str, name: str, disk: LinkFollower) -> tuple[Link | None, str]:
    """Return the link at a path, or the reason why it cannot be determined."""
    if _size(name) > NAME_MAX or _size(place) >= PATH_MAX:
        return None, f"{in_quotes(place[:80])}… is longer than the system allows for one path"
    try:
        return disk.link(place), ""
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None, ""
        return None, f"{in_quotes(place)}: {error.strerror or error.errno}"


def _names(path: str) -> list[str]:
    """Return the names of a path in reverse order, without empty names and `.`. `..` stays, because
    after a link it is another directory."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _joined(place: str, rest: list[str]) -> str:
    return "/".join([place, *reversed(rest)]) or "/"


def _size(text: str) -> int:
    """Return the length in bytes, as a file system counts it."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # a lone surrogate that encodes no byte
        return PATH_MAX


@dataclass(frozen=True, slots=True)
class DirectoryScan:
    """The links and working trees below a directory."""

    links: tuple[str, ...]
    trees: tuple[str, ...] = ()
    """Directories that have an entry `.git` of any kind."""


class FileLookup(Protocol):
    """The file lookups of the judge. `disk.DiskLookup` reads the disk; tests declare the files."""

    def link(self, path: str) -> Link | None:
        """Return the link at an absolute path, or None if no link is there. Only the last name of
        the path may be a link. Raise `OSError` if it cannot be read."""

    def system_places(self) -> tuple[str, ...]:
        """Return the directories whose content depends on the process."""

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve an absolute path; the file need not exist."""

    def real(self, path: str) -> str:
        """Return `ResolvedPath.end`."""

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        """Return the paths that an absolute pattern with `*` and `?` matches; None if there are too
        many, or if the command may see other ones."""

    def is_directory(self, path: str) -> bool:
        """Return whether the resolved path is a directory."""

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        """Return the links below a directory, up to a depth; None if there are too many files."""

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan | None:
        """Return the links and the working trees below a directory. With `whole`, also scan git's
        object stores and installed packages."""

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of the resolved file; empty if it does not exist; None if it is not a
        regular file, cannot be read or is longer than `most_bytes`."""

    def is_hard_linked(self, path: str) -> bool:
        """Return whether the resolved file has more than one hard link."""

    def is_own(self, path: str) -> bool:
        """Return whether the file itself, without following a link, belongs to the current user."""


class CachedLookup(LinkFollower):
    """A `FileLookup` that does each lookup once. Use one for each judgement, because links change.
    It limits the names that long links may add in total, because each word of a command may lead
    through all of them."""

    def __init__(self, files: FileLookup) -> None:
        self._files = files
        self._links: dict[str, Link | OSError | None] = {}
        self._resolved: dict[str, ResolvedPath] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}
        self._below: dict[tuple[str, int | None, bool], DirectoryScan | None] = {}
        self._contents: dict[tuple[str, int], bytes | None] = {}
        self._system: tuple[str, ...] | None = None
        self._names_left = AGENT_LINK_NAMES

    def link(self, path: str) -> Link | None:
        if path not in self._links:
            try:
                self._links[path] = self._files.link(path)
            except OSError as error:
                self._links[path] = error
        found = self._links[path]
        if isinstance(found, OSError):
            raise found
        return found

    def system_places(self) -> tuple[str, ...]:
        if self._system is None:
            self._system = self._files.system_places()
        return self._system

    def may_walk(self, names: int) -> bool:
        self._names_left -= names
        return self._names_left >= 0 or names == 0

    def resolve(self, path: str) -> ResolvedPath:
        if path not in self._resolved:
            self._resolved[path] = super().resolve(path)
        return self._resolved[path]

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        if pattern not in self._names:
            self._names[pattern] = self._files.glob(pattern)
        return self._names[pattern]

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        found = self.scan(directory, depth)
        return None if found is None else found.links

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan | None:
        key = (directory, depth, whole)
        if key not in self._below:
            self._below[key] = self._files.scan(directory, depth, whole=whole)
        return self._below[key]

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        if (path, most_bytes) not in self._contents:
            self._contents[path, most_bytes] = self._files.contents(path, most_bytes)
        return self._contents[path, most_bytes]

    def is_hard_linked(self, path: str) -> bool:
        return self._files.is_hard_linked(path)

    def is_own(self, path: str) -> bool:
        return self._files.is_own(path)
